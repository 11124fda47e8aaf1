# SPDX-License-Identifier: Apache-2.0
"""Paired tests of Scores: whether one system is better than another on the same segments, or it could be chance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lagging.comparison.match import Matched, match
from lagging.data.ragged import Floats
from lagging.errors import UsageError, did_you_mean
from lagging.metrics import Metric, metric_among
from lagging.scoring.scores import Score, Scores
from lagging.stats import (
    CORRECTIONS,
    DEFAULT_TESTS,
    RESAMPLES,
    SEED,
    Difference,
    Interval,
    check_correction,
    compare_pairs,
    default_method,
)
from lagging.stats.intervals import check_options
from lagging.stats.paired import check_test

__all__ = ["Pair", "Paired", "check_system", "paired", "verdict"]


@dataclass(frozen=True)
class Pair:
    """One metric of two systems.

    Attributes:
        metric: the metric.
        a, b: the systems; `value_a`, `value_b`: their values on the segments that all systems have.
        difference: b − a, with an interval from `low` to `high`.
        p: two-sided p-value of no difference; `p_adjusted`: corrected for the number of pairs.
        effect: the difference in standard deviations of the segments' differences (Cohen's d_z), or of the documents',
            with an interval from `effect_low` to `effect_high`; NaN for a pooled percentile.
        wins, ties, losses: the numbers of segments in which b is better than a, as good, and worse; `wins` and `losses`
            are None where neither direction is better.
        n: number of segments that have a value in both.
        method: the method of the interval of the difference.
        reason: why there is no interval or no p-value; empty otherwise.
    """

    metric: Metric
    a: str
    b: str
    value_a: float
    value_b: float
    difference: float
    low: float
    high: float
    p: float
    p_adjusted: float
    effect: float
    effect_low: float
    effect_high: float
    wins: int | None
    ties: int
    losses: int | None
    n: int
    method: str
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Paired:
    """Several systems, pair by pair, on the same resamples.

    Attributes:
        matched: the scores on the segments that all systems have, and the segments that were left out.
        intervals: of each system, an Interval per metric, on the same resamples.
        pairs: a Pair for each metric and two systems, metric by metric.
        values: resamples × systems × metrics: the bootstrap values.
        test, correction, resample, confidence, resamples, seed: the options.
        clusters: the number of segments, or documents, that were resampled.
    """

    matched: Matched = field(repr=False)
    intervals: tuple[tuple[Interval, ...], ...]
    pairs: tuple[Pair, ...]
    values: Floats = field(repr=False)
    test: str
    correction: str
    resample: str
    confidence: float
    resamples: int
    seed: int
    clusters: int

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems."""
        return self.matched.systems

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics by which they were compared."""
        return self.matched.metrics

    @property
    def n(self) -> int:
        """Number of segments that all systems have."""
        return self.matched.n

    @property
    def unmatched(self) -> dict[str, tuple[Any, ...]]:
        """Of each system, the ids of the segments that not all other systems have."""
        return self.matched.unmatched

    def pair(self, name: str | Metric, a: str, b: str) -> Pair:
        """The pair of a metric and two systems, in the order in which they were compared."""
        for pair in self.pairs:
            if (pair.metric, pair.a, pair.b) == (metric_among(name, self.metrics), a, b):
                return pair
        raise UsageError(f"{a} and {b} were not compared by {name}")

    def together(self, a: str, b: str, margins: Mapping[str, float] | None = None) -> float:
        """The share of the resamples in which b is not worse than a by any of the metrics.

        Args:
            a, b: the systems.
            margins: the metrics, and how much worse b may be, in the unit of each: {"BLEU": 0.5, "AL": 0} if b may lose
                half a point of BLEU and must not be later. Negative: how much better it must be. All metrics that have
                a better direction, without a margin, by default.

        Returns:
            A share between 0 and 1; NaN if no resample has a value.
        """
        allowed = (
            {m: 0.0 for m in self.metrics if m.higher_is_better is not None}
            if margins is None
            else {metric_among(name, self.metrics): margin for name, margin in margins.items()}
        )
        row_a, row_b = (self.systems.index(check_system(name, self.systems)) for name in (a, b))
        good, defined = np.ones(len(self.values), dtype=bool), np.ones(len(self.values), dtype=bool)
        for m, margin in allowed.items():
            if m not in self.metrics or m.higher_is_better is None:
                raise UsageError(f"{m!r} was not compared, or has no better direction")
            column = self.metrics.index(m)
            gain = self.values[:, row_b, column] - self.values[:, row_a, column]
            good &= (gain if m.higher_is_better else -gain) >= -margin
            defined &= ~np.isnan(gain)
        return float(good[defined].mean()) if defined.any() else np.nan


def paired(
    systems: Mapping[str, Scores],
    metrics: Iterable[str | Metric] | None = None,
    *,
    test: str | None = None,
    resample: str = "segment",
    base: str | None = None,
    confidence: float = 0.95,
    method: str | None = None,
    correction: str = "holm",
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Paired:
    """Compare systems pair by pair on the segments that all of them have, all metrics on the same resamples.

    See `lagging.stats.paired.compare_pairs` for the tests, and `lagging.stats.intervals` for the intervals.

    Args:
        systems: Scores by system; segments are matched by id.
        metrics: the metrics to compare by; all that every system has, by default.
        test: "bootstrap" or "randomisation"; by default, randomisation of segments and bootstrap of documents.
        resample: "segment" or "document".
        base: compare the other systems with this system only; all pairs, by default.
        confidence: the confidence level of the intervals: 0.95 for 95 %.
        method: the method of the intervals; "bca" for segments and "wild" for documents, by default.
        correction: "holm", "bh" or "none": over the pairs of each metric.
        resamples, seed: the number of resamples, and the seed of the random numbers.

    Raises:
        UsageError: fewer than two systems, or nothing in common.

    Example:
        >>> import lagging
        >>> def scores(k):
        ...     delays = [[min(k + t, x) for t in range(x)] for x in range(4, 16)]
        ...     return lagging.score(lagging.Run.from_delays(delays, source_length=range(4, 16)), ["AP", "DAL"])
        >>> result = paired({"wait-3": scores(3), "wait-1": scores(1)})
        >>> for pair in result.pairs:
        ...     print(f"{pair.metric}: {pair.difference:.2f} [{pair.low:.2f}, {pair.high:.2f}], p = {pair.p:.4f}")
        AP: -0.19 [-0.23, -0.16], p = 0.0006
        DAL: -2.00 [-2.00, -2.00], p = 0.0006
        >>> result.pairs[0].wins, result.pairs[0].ties, result.pairs[0].losses
        (12, 0, 0)
    """
    method = default_method(resample) if method is None else method
    check_options(method, resample, confidence, resamples)
    test = DEFAULT_TESTS[resample] if test is None else test
    check_test(test)
    check_correction(correction)
    if base is not None:
        check_system(base, systems)
    matched = match(systems, metrics, resample=resample, in_order=method == "sacrebleu")
    joint = matched.estimators(resample, base)
    empty = Interval(np.nan, np.nan, method, resample, confidence, resamples, seed, joint.units.n)
    result = compare_pairs(joint, empty, test)
    pairs = []
    for m, differences in enumerate(result.differences):
        adjusted = CORRECTIONS[correction]([difference.p for difference in differences])
        for (a, b), difference, p_adjusted in zip(joint.pairs, differences, adjusted, strict=True):
            pairs.append(_pair(matched, m, a, b, difference, float(p_adjusted)))
    return Paired(
        matched=matched,
        intervals=result.intervals,
        pairs=tuple(pairs),
        values=result.values,
        test=test,
        correction=correction,
        resample=resample,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        clusters=joint.units.n,
    )


def _pair(matched: Matched, m: int, a: int, b: int, difference: Difference, p_adjusted: float) -> Pair:
    """A Pair from what the test says of two systems."""
    metric, score_a, score_b = matched.metrics[m], matched.scores[a][m], matched.scores[b][m]
    wins, ties, losses = _count_wins(metric, score_a, score_b)
    return Pair(
        metric=metric,
        a=matched.systems[a],
        b=matched.systems[b],
        value_a=score_a.value,
        value_b=score_b.value,
        difference=score_b.value - score_a.value,
        low=difference.low,
        high=difference.high,
        p=difference.p,
        p_adjusted=p_adjusted,
        effect=difference.effect,
        effect_low=difference.effect_low,
        effect_high=difference.effect_high,
        wins=wins if metric.higher_is_better is not None else None,
        ties=ties,
        losses=losses if metric.higher_is_better is not None else None,
        n=wins + ties + losses,
        method=difference.method,
        reason=difference.reason,
    )


def _count_wins(metric: Metric, a: Score, b: Score) -> tuple[int, int, int]:
    """The numbers of segments in which b is better than a, as good, and worse."""
    gain = b.segments - a.segments
    more, less, same = (int(np.count_nonzero(rows)) for rows in (gain > 0, gain < 0, gain == 0))
    return (more, same, less) if metric.higher_is_better else (less, same, more)


def verdict(pair: Pair, alpha: float) -> str:
    """What the test says of b: "better", "worse" or "different" than a, "alike", or "untested".

    "alike" means that no difference was shown, not that there is none; "different" is for metrics of which neither
    direction is better.
    """
    if np.isnan(pair.p_adjusted):
        return "untested"
    if pair.p_adjusted >= alpha:
        return "alike"
    if pair.metric.higher_is_better is None:
        return "different"
    return "better" if (pair.difference > 0) == pair.metric.higher_is_better else "worse"


def check_system(name: str, systems: Iterable[str]) -> str:
    """The name, if a system is called that.

    Raises:
        UsageError: there is no such system.
    """
    names = list(systems)
    if name not in names:
        raise UsageError(f"there is no system {name!r}.{did_you_mean(name, names)}")
    return name
