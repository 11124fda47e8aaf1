# SPDX-License-Identifier: Apache-2.0
"""Percentiles of pooled tokens: whether their number carries a percentile, and exact bounds of it."""

from __future__ import annotations

import math

import numpy as np

from lagging.data.checks import number
from lagging.data.ragged import Floats, Ragged
from lagging.errors import Note, counted
from lagging.metrics import Metric
from lagging.scoring.scores import Score
from lagging.stats import carries, needed_values, percentile_ranks

__all__ = ["binomial_bound", "note_few_values"]


def note_few_values(m: Metric, tokens: int, recordings: int) -> Note | None:
    """A note if a percentile is of too few tokens, or of the tokens of too few recordings; None if it is of enough.

    Tokens of one recording are alike. Where they are all the same, the recordings are what is counted.

    Example:
        >>> import lagging
        >>> print(note_few_values(lagging.metric("LagPercentile(p=99)"), 500, 20))
        TOO FEW TOKENS: LagPercentile(p=99): 500 tokens do not carry this percentile, 662 are needed
        >>> print(note_few_values(lagging.metric("LagPercentile"), 500, 1))
        TOO FEW RECORDINGS: LagPercentile: 500 tokens carry this percentile of this recording; 64 are needed for others
    """
    needed = needed_values(percentile_of(m))
    if not tokens or math.isinf(needed):
        return None
    if not carries(tokens, percentile_of(m)):
        text = f"{m!r}: {counted(tokens, 'token')} do not carry this percentile, {needed} are needed"
        return Note("TOO FEW TOKENS", text)
    if not carries(recordings, percentile_of(m)):
        own = "this recording" if recordings == 1 else f"these {recordings} recordings"
        text = f"{m!r}: {counted(tokens, 'token')} carry this percentile of {own}; {needed} are needed for others"
        return Note("TOO FEW RECORDINGS", text)
    return None


def percentile_of(m: Metric) -> float:
    """Which percentile a metric takes."""
    return float(str(m.get(m.quantile)))


def pooled_values(score: Score) -> Floats:
    """The values of which a Score is a percentile; none of any other Score."""
    pooled = isinstance(score.statistics, Ragged) and score.resolved.quantile
    return score.statistics.values if pooled and isinstance(score.statistics, Ragged) else np.empty(0)


def binomial_bound(score: Score, confidence: float = 0.95) -> tuple[float, float] | None:
    """Two of the pooled values between which the true percentile is, by the binomial distribution; see `stats`.

    It is exact for any distribution of independent values, and does not resample. An end that so few values do not
    bound is infinite.

    Returns:
        The two values; None for a Score that is no percentile of pooled tokens, or has none.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([list(range(1, 101))], source_length=[1000])
        >>> score = lagging.score(run, ["LagPercentile(p=50)"])["LagPercentile(p=50)"]
        >>> score.value, binomial_bound(score)
        (-444.5, (-539.0, -350.0))
    """
    values = pooled_values(score)
    if not len(values):
        return None
    low, high = percentile_ranks(len(values), percentile_of(score.resolved), confidence)
    ordered = np.sort(values)
    return (
        -math.inf if low is None else float(ordered[low - 1]),
        math.inf if high is None else float(ordered[high - 1]),
    )


def note_bound(score: Score, confidence: float) -> Note | None:
    """The binomial bound of a Score in words, to stand beside its interval; None if there is none.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([list(range(1, 101))], source_length=[1000])
        >>> print(note_bound(lagging.score(run, ["LagPercentile"])["LagPercentile"], 0.95))
        binomial bound: LagPercentile: from -143 to -35 token at 95 %, if tokens were independent
    """
    bound = binomial_bound(score, confidence)
    if bound is None:
        return None
    low, high = (f"{value:.6g}" for value in bound)
    ends = f"at least {low}" if math.isinf(bound[1]) else f"at most {high}" if math.isinf(bound[0]) else ""
    ends = "no end is bounded" if all(map(math.isinf, bound)) else (ends or f"from {low} to {high}") + f" {score.unit}"
    share = number(100 * confidence)
    return Note("binomial bound", f"{score.metric!r}: {ends} at {share} %, if tokens were independent")
