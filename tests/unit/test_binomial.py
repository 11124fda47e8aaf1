# SPDX-License-Identifier: Apache-2.0
"""Percentiles that the number of values can carry, against exact fractions and SciPy."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import lagging
from lagging.errors import UsageError
from lagging.scoring.intervals import with_intervals
from lagging.scoring.percentiles import binomial_bound
from lagging.stats import carries, needed_values, percentile_ranks


def cdf(k, n, share):
    """P(B ≤ k) in fractions."""
    return sum(math.comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(k + 1))


def test_the_numbers_of_mlperf():
    assert [needed_values(p) for p in (50, 90, 95, 97, 99, 99.9)] == [11, 64, 130, 219, 662, 6636]


@pytest.mark.parametrize("p", [1, 10, 25, 50, 75, 90, 99])
@pytest.mark.parametrize("confidence", ["0.9", "0.99"])
def test_needed_values_are_the_fewest(p, confidence):
    n, share = needed_values(p, float(confidence)), Fraction(min(p, 100 - p), 100)
    missed = 1 - Fraction(confidence)
    assert cdf(1, n, share) <= missed < cdf(1, n - 1, share)
    assert needed_values(100 - p, float(confidence)) == n
    assert carries(n, p, float(confidence))
    assert not carries(n - 1, p, float(confidence))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 10, 44, 63])
@pytest.mark.parametrize("p", [5, 10, 50, 90, 95, 99])
@pytest.mark.parametrize("confidence", ["0.5", "0.9", "0.95", "0.99"])
def test_ranks_against_exact_fractions(n, p, confidence):
    share, tail = Fraction(p, 100), (1 - Fraction(confidence)) / 2
    low = max((k for k in range(1, n + 1) if cdf(k - 1, n, share) <= tail), default=None)
    high = min((k for k in range(1, n + 1) if 1 - cdf(k - 1, n, share) <= tail), default=None)
    assert percentile_ranks(n, p, float(confidence)) == (low, high)


@pytest.mark.parametrize("n", [1000, 54_321, 2_000_000])
@pytest.mark.parametrize("p", [0.7, 33.3, 90, 99.9])
def test_ranks_of_many_values_against_scipy(n, p):
    low, high = percentile_ranks(n, p, 0.987)
    tail = (1 - 0.987) / 2
    if low is not None:
        assert binom.cdf(low - 1, n, p / 100) <= tail < binom.cdf(low, n, p / 100)
    if high is not None:
        assert binom.sf(high - 1, n, p / 100) <= tail < binom.sf(high - 2, n, p / 100)


def test_the_smallest_and_the_largest_are_carried_by_no_number():
    assert needed_values(0) == needed_values(100) == math.inf
    assert percentile_ranks(9, 100) == (9, None)
    assert percentile_ranks(9, 0) == (None, 1)
    assert percentile_ranks(0, 50) == (None, None)


@pytest.mark.parametrize("p", [-1, 101, math.nan])
def test_what_is_no_percentile_is_refused(p):
    with pytest.raises(UsageError, match="from 0 to 100"):
        needed_values(p)
    with pytest.raises(UsageError, match="from 0 to 100"):
        percentile_ranks(9, p)
    with pytest.raises(UsageError, match="between 0 and 1"):
        percentile_ranks(9, 50, 1.0)


# ---- the metric ---------------------------------------------------------------------------------------------------


def run(segments, tokens, documents=None):
    dice = np.random.default_rng(5)
    delays = [np.sort(dice.uniform(0, 100, tokens)).tolist() for _ in range(segments)]
    return lagging.Run.from_delays(delays, source_length=[100] * segments, document=documents)


def kinds(notes):
    return [note.kind for note in notes]


def test_a_percentile_of_too_few_tokens_has_a_note():
    scores = lagging.score(run(3, 21), ["LagPercentile", "LagPercentile(p=50)", "LagPercentile(p=100)", "DAL"])
    few = [str(note) for note in scores.notes if note.kind.startswith("TOO FEW")]
    assert few == [
        "TOO FEW TOKENS: LagPercentile: 63 tokens do not carry this percentile, 64 are needed",
        "TOO FEW RECORDINGS: LagPercentile(p=50): 63 tokens carry this percentile of these 3 recordings; "
        "11 are needed for others",
    ]
    assert "TOO FEW TOKENS" not in kinds(lagging.score(run(4, 16), ["LagPercentile"]).notes)
    assert not kinds(lagging.score(run(64, 1), ["LagPercentile"]).notes)


def test_recordings_are_documents_where_these_are_known():
    documents = [f"talk {n % 10}" for n in range(64)]
    assert kinds(lagging.score(run(64, 2, documents), ["LagPercentile"]).notes) == ["TOO FEW RECORDINGS"]
    parts = iter([run(64, 2, documents), run(64, 2, [f"more {n}" for n in range(64)])])
    assert not kinds(lagging.score(parts, ["LagPercentile"]).notes)


def test_the_bound_stands_beside_the_interval():
    scores = lagging.score(run(30, 10), ["LagPercentile(p=50)", "AL"])
    score = scores["LagPercentile(p=50)"]
    low, high = binomial_bound(score, 0.9)
    ranks = percentile_ranks(300, 50, 0.9)
    assert [low, high] == [np.sort(score.statistics.values)[rank - 1] for rank in ranks]
    assert low < score.value < high
    assert binomial_bound(scores["AL"]) is None
    notes = with_intervals(scores, confidence=0.9, resamples=200).notes
    (note,) = [note for note in notes if note.kind == "binomial bound"]
    assert note.text == f"LagPercentile(p=50): from {low:.6g} to {high:.6g} token at 90 %, if tokens were independent"


def test_an_end_that_so_few_values_do_not_bound():
    score = lagging.score(run(2, 5), ["LagPercentile"])["LagPercentile"]
    low, high = binomial_bound(score)
    assert math.isfinite(low)
    assert high == math.inf
    notes = with_intervals(lagging.score(run(2, 5), ["LagPercentile"]), resamples=200).notes
    assert any(note.text.startswith(f"LagPercentile: at least {low:.6g} token at 95 %") for note in notes)
