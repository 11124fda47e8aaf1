# SPDX-License-Identifier: Apache-2.0
"""Paired tests: from the resamples of two systems to an interval and a p-value of their difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Floats
from lagging.errors import UsageError, counted
from lagging.stats.estimators import Estimator, Sums
from lagging.stats.intervals import (
    ROUNDING,
    Interval,
    bca,
    interval_from_resamples,
    is_constant,
    percentile,
    skewness,
)
from lagging.stats.joint import JointEstimators, PairBatch, bootstrap
from lagging.stats.wild import Wild

__all__ = ["DEFAULT_TESTS", "TESTS", "Difference", "PairSample", "PairedResamples", "check_test", "compare_pairs"]

TESTS = ("bootstrap", "randomisation")
DEFAULT_TESTS = {"segment": "randomisation", "document": "bootstrap"}
"""Randomisation errs as often as it promises where the names of systems mean nothing: at 0.05, in 4.4 to 5.1 % of
simulations with 20 to 500 segments, for normal and for skewed lags. Where two systems differ by something skewed whose
mean is 0 it errs more often: 8.8 % with 30 segments, 7.1 % with 100, 5.7 % with 500, at a skewness of 3.7
(`bench/coverage.py`). Five documents can be exchanged in 32 ways only, so that it would never reject."""


@dataclass(frozen=True)
class Difference:
    """How sure the difference of two systems by one metric is.

    Attributes:
        low, high: ends of the interval of the difference b − a; NaN where there is none.
        p: two-sided p-value of no difference; NaN where there is none.
        effect: the difference in standard deviations of the units' differences (Cohen's d_z), with an interval from
            `effect_low` to `effect_high`; NaN for a pooled percentile.
        method: the method of the interval.
        reason: why there is no interval or no p-value; empty otherwise.
    """

    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    effect: float = np.nan
    effect_low: float = np.nan
    effect_high: float = np.nan
    method: str = ""
    reason: str = ""


@dataclass(frozen=True, eq=False)
class PairedResamples:
    """What the resamples of several systems and metrics say.

    Attributes:
        values: resamples × systems × metrics: the bootstrap values.
        intervals: of each system, an Interval per metric.
        differences: for each metric, a Difference per pair.
    """

    values: Floats
    intervals: tuple[tuple[Interval, ...], ...]
    differences: tuple[tuple[Difference, ...], ...]


def check_test(test: str) -> None:
    """Refuse a test that there is not."""
    if test not in TESTS:
        raise UsageError(f"there is no test {test!r}; there are {', '.join(TESTS)}")


def compare_pairs(joint: JointEstimators, empty: Interval, test: str) -> PairedResamples:
    r"""Test all pairs of systems by all metrics, on the same resamples.

    With $d$ the difference and $d^*$ that of a resample, the two-sided p-value is $(k + 1)/(B + 1)$, where k of B are
    as extreme as the observed one (Davison & Hinkley 1997, chapter 4):

    - `bootstrap` (Koehn 2004): segments or documents are drawn with replacement, the same for both systems; extreme is
      $|d^* - d|/s^* \ge |d|/s$, with standard errors, as a test of the mean of few segments errs too often without
      them (Hall & Wilson 1991); for "wild" intervals, units are weighted, not drawn;
    - `randomisation` (Noreen 1989; Riezler & Maxwell 2005): the two systems exchange their outputs in a random half of
      the segments or documents; extreme is $|d^*| \ge |d|$. It assumes only that under no difference the names of the
      systems mean nothing.

    The interval of the difference is a bootstrap interval in both cases; see `lagging.stats.intervals`. Pooled
    percentiles have no standard error: extreme is $|d^* - d| \ge |d|$, and the interval is a percentile interval
    instead of a wild one. With the method "sacrebleu", p is that of sacreBLEU's --paired-bs and --paired-ar: extreme is
    $|d^*| - \overline{|d^*|} > |d|$, or $|d^*| > |d|$.

    Args:
        joint: the estimators, and the pairs.
        empty: an Interval without ends, which says how intervals are made.
        test: "bootstrap" or "randomisation".

    Example:
        >>> from lagging.stats.estimators import Units, estimator_of_sums
        >>> units, rows = Units.in_order(12), [np.arange(12.0)[:, None] ** power for power in (1, 2)]
        >>> systems = [estimator_of_sums(statistics, "mean", units) for statistics in rows]
        >>> joint = JointEstimators.make(units, np.array([[s.value] for s in systems]), [systems], [(0, 1)])
        >>> empty = Interval(np.nan, np.nan, "bca", "segment", 0.95, 1000, 12345, 12)
        >>> ((difference,),) = compare_pairs(joint, empty, "randomisation").differences
        >>> round(difference.low, 2), round(difference.high, 2), round(difference.p, 3)
        (20.15, 62.41, 0.004)
    """
    n, resamples, seed = joint.units.n, empty.resamples, empty.seed
    results: dict[str, Floats] = {}
    differences: list[list[Difference]] = [[] for _ in joint.table]
    for batch in joint.batches(resamples):
        functions = {"deviations": batch.deviations}
        if "values" not in results:  # the systems are resampled once, the pairs in batches
            functions["values"] = joint.values
        results |= bootstrap(n, resamples, seed, functions)
        for row, more in zip(differences, _test_batch(batch, results, empty, test), strict=True):
            row += more
        del results["deviations"]
    values = results["values"]
    return PairedResamples(values, _system_intervals(joint, values, empty), tuple(map(tuple, differences)))


def _test_batch(
    batch: PairBatch, results: Mapping[str, Floats], empty: Interval, test: str
) -> Iterator[list[Difference]]:
    """The differences of the pairs of a batch, metric by metric."""
    n, method, resamples, seed = batch.units.n, empty.method, empty.resamples, empty.seed
    values, deviations = results["values"][:, batch.systems], results["deviations"]
    trials = batch.exchange(resamples, seed) if test == "randomisation" else None
    for m, row in enumerate(batch.table):
        weighted = batch.wild_by_pair(m, resamples, seed) if method == "wild" else {}
        differences = []
        for pair, (a, b) in enumerate(batch.pairs):
            first, second = row[a], row[b]
            if isinstance(first, str) or isinstance(second, str):
                reason = first if isinstance(first, str) else str(second)
                differences.append(Difference(method=method, reason=reason))
                continue
            n_defined = min(first.n_defined, second.n_defined)
            if n_defined < 2:
                reason = f"{counted(n_defined, empty.resample)} with a value: too few"
                differences.append(Difference(method=method, reason=reason))
                continue
            sample = PairSample(
                observed=float(batch.observed[b, m] - batch.observed[a, m]),
                difference=second.value - first.value,
                error=batch.standard_error(m, (a, b)),
                scale=float(np.nanmax(np.abs(values[:, [a, b], m]), initial=0)),
                values=values[:, b, m] - values[:, a, m],
                wild=weighted.get(pair),
                trials=None if trials is None else trials[:, pair, m],
                deviations=deviations[:, pair, m],
                n=n,
                resample=empty.resample,
            )
            differences.append(sample.test(first, second, method, empty.confidence))
        yield differences


def _system_intervals(joint: JointEstimators, values: Floats, empty: Interval) -> tuple[tuple[Interval, ...], ...]:
    """Of each system, an interval per metric."""
    columns = []
    for m, row in enumerate(joint.table):
        weighted = joint.wild_by_system(m, empty.resamples, empty.seed) if empty.method == "wild" else {}
        columns.append(
            [
                replace(empty, reason=e)
                if isinstance(e, str)
                else interval_from_resamples(empty, float(joint.observed[s, m]), e, values[:, s, m], weighted.get(s))
                for s, e in enumerate(row)
            ]
        )
    return tuple(zip(*columns, strict=True))


@dataclass(frozen=True, eq=False)
class PairSample:
    """The difference of two systems by one metric, in the whole sample and in the resamples.

    Attributes:
        observed: the difference of the exact values.
        difference: that of the estimators, whose sums are rounded to a grid.
        error: its standard error; NaN where it has none.
        scale: the size of the values that are subtracted.
        values: the difference in each resample.
        wild: its wild bootstrap, for a "wild" interval.
        trials: the difference in each trial of a randomisation test; None for a bootstrap test.
        deviations: in each resample, the standard deviation of the units' differences.
        n, resample: the number of units, and what they are.
    """

    observed: float
    difference: float
    error: float
    scale: float
    values: Floats
    wild: Wild | None
    trials: Floats | None
    deviations: Floats
    n: int
    resample: str

    def test(self, a: Estimator, b: Estimator, method: str, confidence: float) -> Difference:
        """The interval, the p-value and the effect size."""
        defined = ~np.isnan(self.values)
        values = self.values[defined]
        if not len(values):
            return Difference(method=method, reason="no resample has a value")
        if method == "wild" and self.wild is None:
            method = "percentile"  # a pooled percentile has no standard error
        low = high = self.observed
        same = is_constant(values, self.scale)
        if not same:
            if self.wild is not None:
                low, high = self.wild.interval(confidence)
            elif method == "bca":
                low, high = bca(values, self.difference, _acceleration(a, b), confidence)
            else:
                low, high = percentile(values, confidence)
        reason = ""
        if not (np.isfinite(low) and np.isfinite(high)):
            low = high = np.nan
            reason = f"{counted(self.n, self.resample)}: too few for a {method} interval"
        effect, effect_low, effect_high = self._effect(confidence, same)
        return Difference(low, high, self._p(defined, method), effect, effect_low, effect_high, method, reason)

    def _p(self, defined: npt.NDArray[np.bool_], method: str) -> float:
        values, size = self.values[defined], abs(self.difference)
        if self.trials is not None:
            trials = np.abs(self.trials[~np.isnan(self.trials)])
            extreme = trials > size if method == "sacrebleu" else trials >= size
        elif method == "sacrebleu":
            sizes = np.abs(values)
            extreme = sizes - sizes.mean() > size
        elif self.wild is not None:
            return self.wild.p() if self.difference else 1.0
        elif not np.isnan(self.error):
            errors = self.deviations[defined] / np.sqrt(self.n)
            t = studentise(values - self.difference, errors, self.scale)
            observed = studentise(np.array(self.difference), np.array(self.error), self.scale)
            extreme = np.abs(t[~np.isnan(t)]) >= abs(float(observed))
        else:
            extreme = np.abs(values - self.difference) >= size
        return float((np.count_nonzero(extreme) + 1) / (len(extreme) + 1))

    def _effect(self, confidence: float, same: bool) -> tuple[float, float, float]:
        """Cohen's d_z with a percentile interval; of a constant difference, 0 if that is 0, else NaN."""
        if same:
            return (0.0, 0.0, 0.0) if self.difference == 0 else (np.nan, np.nan, np.nan)
        deviation = self.error * np.sqrt(self.n)
        with np.errstate(divide="ignore", invalid="ignore"):
            effects = self.values / self.deviations
        effects = effects[np.isfinite(effects)]
        if not deviation > 0 or not len(effects):
            return np.nan, np.nan, np.nan
        return (self.difference / float(deviation), *percentile(effects, confidence))


def studentise(difference: Floats, error: Floats, scale: float) -> Floats:
    """Difference over standard error, of values of that size: infinite where only the error is 0."""
    no_difference, no_error = (np.abs(part) <= ROUNDING * scale for part in (difference, error))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(no_difference, 0.0, difference / np.where(no_error, 0.0, error))


def _acceleration(a: Estimator, b: Estimator) -> float:
    """The acceleration of a difference, for a BCa interval."""
    if isinstance(a, Sums) and isinstance(b, Sums):
        left_out = (b.jackknife() - a.jackknife())[a.defined | b.defined]
        left_out = left_out[~np.isnan(left_out)]
        return skewness(left_out.mean() - left_out) if len(left_out) else 0.0
    return 0.0
