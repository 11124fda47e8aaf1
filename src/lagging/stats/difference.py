# SPDX-License-Identifier: Apache-2.0
"""One metric of two systems: from what became of their difference in the resamples to an interval and a p-value."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lagging.data.ragged import Floats
from lagging.errors import counted
from lagging.metrics import Metric
from lagging.scoring.scores import Score
from lagging.stats.estimators import Estimator, Sums
from lagging.stats.intervals import bca, bootstrap_t, constant, percentile, skewness, studentise
from lagging.stats.wild import Wild

__all__ = ["Pair", "verdict"]


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
        wins, ties, losses: in how many segments b is better than a, as good, and worse; None where neither direction is
            better.
        n: number of segments that have a value in both.
        method: of the interval of the difference.
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


def start(of: Metric, one: Score, other: Score, a: str, b: str) -> Pair:
    """What needs no resamples: values, and who wins how often."""
    gain = other.segments - one.segments
    more, less, same = (int(np.count_nonzero(which)) for which in (gain > 0, gain < 0, gain == 0))
    better: tuple[int | None, int | None] = (None, None)
    if of.higher_is_better is not None:
        better = (more, less) if of.higher_is_better else (less, more)
    nan = float("nan")
    return Pair(
        metric=of,
        a=a,
        b=b,
        value_a=one.value,
        value_b=other.value,
        difference=other.value - one.value,
        low=nan,
        high=nan,
        p=nan,
        p_adjusted=nan,
        effect=nan,
        effect_low=nan,
        effect_high=nan,
        wins=better[0],
        ties=same,
        losses=better[1],
        n=more + less + same,
        method="",
    )


def verdict(pair: Pair, alpha: float) -> str:
    """What a pair says of b: "better", "worse" or "different" than a, "alike", or "untested".

    "alike" means that no difference was shown, not that there is none; "different" is of metrics where neither
    direction is better.
    """
    if np.isnan(pair.p_adjusted):
        return "untested"
    if pair.p_adjusted >= alpha:
        return "alike"
    if pair.metric.higher_is_better is None:
        return "different"
    return "better" if (pair.difference > 0) == pair.metric.higher_is_better else "worse"


@dataclass(frozen=True)
class Seen:
    """A difference, and what became of it in the resamples; the scale is the size of what is subtracted."""

    difference: float
    error: float
    scale: float
    values: Floats
    errors: Floats | None
    wild: Wild | None
    trials: Floats | None
    spread: Floats
    n: int
    by: str

    def fill(self, pair: Pair, one: Estimator, other: Estimator, method: str, level: float) -> Pair:
        there = ~np.isnan(self.values)
        values = self.values[there]
        if not len(values):
            return replace(pair, method=method, reason="no resample has a value")
        if (method == "studentised" and self.errors is None) or (method == "wild" and self.wild is None):
            method = "percentile"  # a pooled percentile has no standard error
        errors = self.spread / np.sqrt(self.n) if self.errors is None else self.errors
        t = None if np.isnan(self.error) else studentise(values - self.difference, errors[there], self.scale)
        low = high = pair.difference
        same = constant(values, self.scale)
        if not same:
            if t is not None and method == "studentised":
                low, high = bootstrap_t(t, self.difference, self.error, level)
            elif self.wild is not None:
                low, high = self.wild.interval(level)
            elif method == "bca":
                low, high = bca(values, self.difference, _acceleration(one, other), level)
            else:
                low, high = percentile(values, level)
        reason = ""
        if not (np.isfinite(low) and np.isfinite(high)):
            low = high = np.nan
            reason = f"{counted(self.n, self.by)}: too few for a {method} interval"
        effect, effect_low, effect_high = self._effect(level, same)
        return replace(
            pair,
            low=low,
            high=high,
            p=self._p(values, t, method),
            effect=effect,
            effect_low=effect_low,
            effect_high=effect_high,
            method=method,
            reason=reason,
        )

    def _p(self, values: Floats, t: Floats | None, method: str) -> float:
        trials = self.trials
        if trials is not None:
            trials = np.abs(trials[~np.isnan(trials)])
            extreme = trials > abs(self.difference) if method == "sacrebleu" else trials >= abs(self.difference)
        elif method == "sacrebleu":
            size = np.abs(values)
            extreme = size - size.mean() > abs(self.difference)
        elif self.wild is not None:
            return self.wild.p() if self.difference else 1.0
        elif t is not None:
            seen = studentise(np.array(self.difference), np.array(self.error), self.scale)
            extreme = np.abs(t[~np.isnan(t)]) >= abs(float(seen))
        else:
            extreme = np.abs(values - self.difference) >= abs(self.difference)
        return float((np.count_nonzero(extreme) + 1) / (len(extreme) + 1))

    def _effect(self, level: float, same: bool) -> tuple[float, float, float]:
        """Cohen's d_z, and a percentile interval of it; of a constant difference 0 if that is 0, else NaN."""
        if same:
            return (0.0, 0.0, 0.0) if self.difference == 0 else (np.nan, np.nan, np.nan)
        whole = self.error * np.sqrt(self.n)
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = self.values / self.spread
        sizes = sizes[np.isfinite(sizes)]
        if not whole > 0 or not len(sizes):
            return np.nan, np.nan, np.nan
        return (self.difference / float(whole), *percentile(sizes, level))


def _acceleration(one: Estimator, other: Estimator) -> float:
    if isinstance(one, Sums) and isinstance(other, Sums):
        there = one.there | other.there
        left_out = (other.jackknife() - one.jackknife())[there]
        left_out = left_out[~np.isnan(left_out)]
        return skewness(left_out.mean() - left_out) if len(left_out) else 0.0
    return 0.0
