# SPDX-License-Identifier: Apache-2.0
"""The quick ways of computing against the plain ones: the same to the last bit."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import lagging
from lagging.data.exact import BLOCK, exact_sum
from lagging.data.ragged import TOKENS_PER_RECTANGLE, Ragged
from lagging.metrics import kernels
from lagging.metrics.schedule import Schedules

SHAPES = [(1, 1), (1, 400), (900, 1), (900, 7), (300, 25), (20, 25)]


def rectangle(shape, seed=0):
    return np.random.default_rng(seed).normal(3, 5, shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_running_maximum_is_that_of_numpy(shape):
    a = rectangle(shape)
    assert kernels.running(a).tobytes() == np.maximum.accumulate(a, axis=1).tobytes()
    assert kernels.running(a).flags.c_contiguous  # else the order in which a row is added up would change


@pytest.mark.parametrize("shape", SHAPES)
def test_the_queue_is_its_recurrence(shape):
    a, cost = rectangle(shape), np.abs(rectangle(shape, 1))
    expected = np.empty(shape)
    for row in range(shape[0]):
        done = -math.inf
        for step in range(shape[1]):
            done = max(a[row, step], done) + cost[row, step]
            expected[row, step] = done
    assert kernels.queue(a, cost).tobytes() == expected.tobytes()
    assert kernels.queue(a, cost).flags.c_contiguous
    total = np.cumsum(cost, axis=1)  # the same as a running maximum, but for rounding
    assert np.allclose(expected, total + np.maximum.accumulate(a - (total - cost), axis=1))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_queue_of_equal_steps_is_a_queue(shape):
    a = np.round(rectangle(shape))
    assert kernels.paced(a, 1.0).tolist() == kernels.queue(a, np.ones(shape)).tolist()
    assert kernels.paced(a, 0.0).tolist() == kernels.queue(a, np.zeros(shape)).tolist()


@pytest.mark.parametrize("shape", SHAPES)
def test_waits_are_differences_within_rows(shape):
    a = rectangle(shape)
    assert kernels.waits(a).tobytes() == np.diff(a, axis=1, prepend=0.0).tobytes()
    assert kernels.waits(np.asfortranarray(a)).tobytes() == np.diff(a, axis=1, prepend=0.0).tobytes()


def test_the_cutoff_is_the_first_place_past_the_end():
    g = np.array([[1.0, 2, 3], [3, 3, 3], [1, 1, 1], [1, 3, 2]])
    assert kernels.cutoff(g, np.full((4, 1), 3.0)).tolist() == [3, 1, 3, 2]
    assert kernels.inside(g, np.full((4, 1), 3.0))[[0, 2, 3]].tolist() == [2, 3, 1]


@given(
    arrays.arrays(
        np.float64,
        st.integers(0, 40),
        elements=st.one_of(
            st.floats(-1e6, 1e6, allow_subnormal=True),
            st.floats(-1e300, 1e300),
            st.sampled_from([1e-320, -1e-320, 1e16, -1e16, 0.1, -0.0]),
        ),
    )
)
def test_exact_sums_are_those_of_fsum(column):
    assert exact_sum(column) == math.fsum(column.tolist())


@pytest.mark.parametrize("scale", [1e-280, 1e-3, 1.0, 1e250])
@pytest.mark.parametrize("n", [1, BLOCK - 1, BLOCK, 3 * BLOCK + 5])
def test_exact_sums_of_many(n, scale):
    column = np.random.default_rng(n).standard_cauchy(n) * scale
    assert exact_sum(column) == math.fsum(column.tolist())
    assert exact_sum(column[::-1]) == exact_sum(column)


def test_exact_sums_that_are_not_finite():
    assert exact_sum(np.array([1.0, math.inf])) == math.inf
    assert math.isnan(exact_sum(np.array([1.0, math.nan])))


def uneven(n, seed=0, whole=False):
    """Non-decreasing delays, with rows of 0 to 40 tokens, so that some rectangles have many rows, and some few."""
    dice = np.random.default_rng(seed)
    lengths = np.where(dice.random(n) < 0.5, dice.integers(0, 4, n), dice.integers(0, 41, n))
    steps = dice.choice([0, 0, 1, 1, 2, 3], lengths.sum()) * (1.0 if whole else dice.uniform(0, 700, lengths.sum()))
    rows = np.split(steps, np.cumsum(lengths)[:-1])
    return Ragged.from_rows([np.cumsum(row) for row in rows])


@pytest.mark.parametrize(("unit", "whole"), [("token", True), ("token", False), ("ms", False)])
def test_many_segments_score_as_each_alone(unit, whole):
    """Alone, a segment is a rectangle of one row, for which NumPy's own accumulation is used."""
    g = uneven(2500, whole=whole)
    x = np.nan_to_num(g.last(), nan=5.0) + 1
    reference = np.random.default_rng(1).integers(1, 40, len(g)).astype(float)
    run = lagging.Run.from_delays(g, source_length=x, reference_length=reference, unit=unit)
    names = ["AP", "AL", "LAAL", "DAL", "CW", "ATD", "YAAL"]
    together = lagging.score(run, names)
    some = list(range(0, len(run), 61))
    for name in names:
        alone = [lagging.score(run[i : i + 1], [name])[name].segments[0] for i in some]
        assert together[name].segments[some].tobytes() == np.array(alone).tobytes()


def test_lags_need_not_be_held():
    run = lagging.Run.from_delays(uneven(400), source_length=np.full(400, 9.0), unit="ms")
    s = Schedules(run).for_metric(lagging.metric("DAL"))
    assert s.by_lag(kernels.dal).tobytes() == s.lags.by_row(kernels.dal).tobytes()
    assert "length" in s.used


def test_rows_come_back_in_their_order():
    g = uneven(3000, seed=3)
    assert g.by_token(lambda a: a.copy()) == g
    firsts = g.by_row(lambda a: a[:, 0])
    assert np.array_equal(firsts, [row[0] if len(row) else np.nan for row in g], equal_nan=True)


def test_rows_longer_than_a_rectangle_and_than_16_bits():
    lengths = [70_000, 3, TOKENS_PER_RECTANGLE + 1, 0, 3]
    g = Ragged.from_lengths(np.arange(sum(lengths), dtype=np.float64), lengths)
    assert g.by_row(lambda a: a[:, -1])[[0, 1, 2, 4]].tolist() == (g.offsets[1:] - 1)[[0, 1, 2, 4]].tolist()
    assert g.by_token(lambda a: a + 0) == g
