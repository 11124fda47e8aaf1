# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np
import pytest

import lagging

TIMED = [lagging.ap, lagging.cw, lagging.al, lagging.al_y, lagging.laal, lagging.yaal, lagging.dal]


@pytest.mark.parametrize("function", TIMED)
def test_nothing_written_or_nothing_to_read_is_nan(function) -> None:
    assert math.isnan(function([], source_length=3))
    assert math.isnan(function([0], source_length=0))


def test_nothing_written_token_by_token() -> None:
    assert math.isnan(lagging.cw([]))
    assert math.isnan(lagging.cw([0, 0]))
    assert len(lagging.waits([])) == 0
    assert len(lagging.lags([], source_length=3)) == 0
    assert np.isnan(lagging.lags([0, 0], source_length=0)).all()
    assert np.isnan(lagging.effective_delays([0, 0], source_length=0)).all()
    assert len(lagging.over_budget([0, 0], source_length=0)) == 0


@pytest.mark.parametrize(
    ("delays", "length", "message"),
    [
        ([1, 3, 2], 3, r"delays decrease, token 3: 3 → 2"),
        ([1, math.nan], 3, r"a delay is not finite, token 2: NaN"),
        ([-1, 0], 3, r"a delay is negative, token 1: -1"),
        ([[1, 2]], 3, r"not a list of numbers: an array of shape \(1, 2\)"),
        ([1], -1, r"`source_length` is not a number .*: -1"),
        ([1], math.inf, r"`source_length` is not a number .*: Infinity"),
    ],
)
def test_bad_sentences_say_what_and_where(delays, length, message) -> None:
    with pytest.raises(lagging.DataError, match=message):
        lagging.dal(delays, source_length=length)


def test_bad_arguments() -> None:
    with pytest.raises(lagging.UsageError, match="length must be one of"):
        lagging.al([1], source_length=1, length="source")
    with pytest.raises(lagging.UsageError, match="needs reference_length"):
        lagging.al([1], source_length=1, length="reference")
    with pytest.raises(lagging.UsageError, match="unit must be"):
        lagging.al([1], source_length=1, unit="s")
    for cost in (-1, math.nan, "corpus"):
        with pytest.raises(lagging.MetricError, match="write_cost must be"):
            lagging.dal([1], source_length=1, write_cost=cost)


def test_write_cost_everywhere() -> None:
    g = [1, 1, 4]
    assert lagging.effective_delays(g, source_length=6, write_cost=1).tolist() == [1, 2, 4]
    assert lagging.lags(g, source_length=6, write_cost=1).tolist() == [1, 0, 2]
    assert lagging.lags(g, source_length=6, write_cost=1, effective=True).tolist() == [1, 1, 2]
    assert lagging.over_budget(g, source_length=6, write_cost=1).tolist() == [0, 0, 2]
    assert lagging.dal(g, source_length=6, write_cost=0) == (1 + 1 + 4) / 3


def test_other_lengths() -> None:
    g = [2, 4, 4]
    assert lagging.al(g, source_length=4, reference_length=2, length="reference") == (2 + 2) / 2
    assert lagging.laal(g, source_length=4, reference_length=2) == lagging.al(g, source_length=4)
    assert lagging.laal(g, source_length=4) == lagging.al(g, source_length=4)
    assert math.isnan(lagging.al(g, source_length=4, reference_length=0, length="reference"))


def test_every_function_can_be_called_alike() -> None:
    assert lagging.cw([4, 4, 4, 4, 5], source_length=5) == 2.5
    assert lagging.waits([4, 4, 4, 4, 5], source_length=5).tolist() == [4, 0, 0, 0, 1]


def test_one_token() -> None:
    for function in (lagging.al, lagging.al_y, lagging.laal, lagging.dal):
        assert function([3], source_length=7) == 3
    assert lagging.al([1, 1], source_length=1) == 1


def test_a_millisecond_before_the_end_is_the_end() -> None:
    late = [500.0, 999.2, 999.2]
    assert lagging.al(late, source_length=1000, unit="ms") == pytest.approx((500 + 999.2 - 1000 / 3) / 2)
    assert lagging.al(late, source_length=1000) == pytest.approx((500 + 2 * 999.2 - 1000) / 3)
    assert lagging.yaal(late, source_length=1000, unit="ms") == 500
