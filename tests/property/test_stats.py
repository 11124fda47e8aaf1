# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from lagging.comparison.pairs import paired
from lagging.data.ragged import Ragged
from lagging.scoring.intervals import interval
from lagging.scoring.scores import Scores
from lagging.stats.estimators import Quantile, Units
from lagging.stats.resamples import on_grid
from statistic import made

numbers = st.integers(-50, 50).map(float) | st.floats(-1e4, 1e4).map(lambda v: round(v, 3))
columns = st.lists(st.tuples(numbers, numbers), min_size=2, max_size=12)
methods = st.sampled_from(["percentile", "bca", "wild"])
tests = st.sampled_from(["bootstrap", "randomisation"])


def ends(found):
    return found.low, found.high


def near(one, other, scale) -> None:
    """The same, but for rounding of numbers of that size; NaN where the other is."""
    for x, y in zip(one, other, strict=True):
        assert math.isnan(x) == math.isnan(y)
        assert math.isnan(x) or x == pytest.approx(y, abs=1e-8 * scale, rel=1e-8)


@settings(max_examples=60)
@given(columns, methods, st.randoms(use_true_random=False), st.sampled_from(["segment", "document"]))
def test_the_order_of_segments_does_not_matter(rows, method, dice, by) -> None:
    """To the last bit: segments are drawn in the order of their ids, and sums are exact."""
    ids = [f"s{k}" for k in range(len(rows))]
    talks = [f"t{k % 5}" for k in range(len(rows))]
    shuffled = list(range(len(rows)))
    dice.shuffle(shuffled)

    def systems(order):
        chosen = {"ids": [ids[k] for k in order], "documents": [talks[k] for k in order]}
        return {
            name: Scores([made("AL", [rows[k][column] for k in order], **chosen)]) for column, name in enumerate("ab")
        }

    plain, mixed = systems(range(len(rows))), systems(shuffled)
    found = [ends(interval(s["a"]["AL"], resample=by, method=method, resamples=60)) for s in (plain, mixed)]
    np.testing.assert_array_equal(found[0], found[1])
    one, other = (paired(s, resample=by, method=method, resamples=60).pairs[0] for s in (plain, mixed))
    np.testing.assert_array_equal([one.p, *ends(one), one.effect_low], [other.p, *ends(other), other.effect_low])


@settings(max_examples=60)
@given(columns, tests, methods)
def test_exchanging_the_systems_flips_the_sign(rows, test, method) -> None:
    a, b = np.array(rows).T
    scores = {"a": Scores([made("AL", a)]), "b": Scores([made("AL", b)])}
    turned = {"b": scores["b"], "a": scores["a"]}
    (one,), (other,) = (paired(s, test=test, method=method, resamples=60).pairs for s in (scores, turned))
    assert one.difference == -other.difference
    assert one.p == other.p
    assert (one.wins, one.ties, one.losses) == (other.losses, other.ties, other.wins)
    near(ends(one), (-other.high, -other.low), np.abs(rows).max() * (1e4 if method == "wild" else 1))
    near((one.effect,), (-other.effect,), 1)


@settings(max_examples=60)
@given(columns, methods, st.sampled_from([1.0, 100.0, 0.5]), st.integers(-1000, 1000))
def test_intervals_move_and_stretch_with_the_lags(rows, method, scale, shift) -> None:
    a, b = np.array(rows).T
    assume(np.ptp(a) > 1e-2)
    one = interval(made("AL", a), method=method, resamples=60)
    other = interval(made("AL", scale * a + shift), method=method, resamples=60)
    size = scale * np.abs(a).max() + abs(shift)
    # the ends of a wild interval are found by halving
    near(ends(other), (scale * one.low + shift, scale * one.high + shift), size * (1e4 if method == "wild" else 1))
    pairs = [
        paired({"a": Scores([made("AL", x)]), "b": Scores([made("AL", y)])}, method="percentile", resamples=60).pairs[0]
        for x, y in ((a, b), (scale * a + shift, scale * b + shift))
    ]
    near(ends(pairs[1]), (scale * pairs[0].low, scale * pairs[0].high), scale * np.abs(rows).max() + abs(shift))


@settings(max_examples=60)
@given(st.lists(numbers, min_size=2, max_size=12), tests, methods)
def test_a_system_is_as_good_as_itself(values, test, method) -> None:
    same = {name: Scores([made("AL", values)]) for name in "ab"}
    (got,) = paired(same, test=test, method=method, resamples=60).pairs
    assert (got.p, got.difference, got.low, got.high, got.effect) == (1.0, 0.0, 0.0, 0.0, 0.0)
    assert (got.wins, got.ties, got.losses) == (0, len(values), 0)


@settings(max_examples=100)
@given(
    st.lists(st.lists(st.integers(-5, 5).map(float), max_size=9), min_size=1, max_size=9),
    st.floats(0.5, 99.5),
    st.data(),
)
@example([[1.0] * 300, [2.0] * 300], 50.0, None)
def test_a_weighted_percentile_is_that_of_repeated_tokens(rows, p, data) -> None:
    assume(any(rows))
    n = len(rows)
    counts = [[1] * n, [0] * n, [2] * n]
    if data is not None:
        counts += data.draw(st.lists(st.lists(st.integers(0, 4), min_size=n, max_size=n), max_size=3))
    ragged = Ragged.from_rows(rows)
    got = Quantile.make(ragged, Units("segment", n, np.arange(n)), p).values(np.array(counts, dtype=float))
    for value, times in zip(got, counts, strict=True):
        tokens = [v for row, k in zip(rows, times, strict=True) for v in row * k]
        assert math.isnan(value) if not tokens else value == pytest.approx(np.percentile(tokens, p), abs=1e-9)


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=30), st.randoms(use_true_random=False))
@example([5e-324, 1e-320, -5e-324], None)
@example([0.0, -0.0], None)
@example([1e300] * 30, None)
def test_sums_on_the_grid_are_exact(values, dice) -> None:
    rows = on_grid(np.array(values)[:, None])[:, 0]
    largest = max(map(abs, values))
    assert np.abs(rows - values).max() <= max(largest * len(values) * 2.0**-51, 2.0**-1022)
    order = list(rows)
    if dice is not None:
        dice.shuffle(order)
    total = 0.0
    for value in order:
        total += value
    assert total == math.fsum(rows)


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=50))
def test_whole_numbers_are_on_the_grid(values) -> None:
    assert on_grid(np.array(values, dtype=float)[:, None])[:, 0].tolist() == values
