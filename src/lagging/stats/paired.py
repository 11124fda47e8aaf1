# SPDX-License-Identifier: Apache-2.0
"""Is one system better than another on the same segments, or could it be chance?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lagging.errors import UsageError, counted, did_you_mean
from lagging.metrics import Metric, metric
from lagging.ragged import Floats
from lagging.scoring import Score, Scores
from lagging.stats.corrections import CORRECTIONS
from lagging.stats.estimators import Estimator, Quantile, Sums
from lagging.stats.intervals import (
    DEFAULTS,
    Interval,
    bca,
    bootstrap_t,
    check,
    constant,
    finish,
    percentile,
    skewness,
    studentise,
)
from lagging.stats.joint import Joint
from lagging.stats.matching import match
from lagging.stats.resamples import RESAMPLES, SEED

__all__ = ["TESTS", "Pair", "Paired", "paired"]

TESTS = ("bootstrap", "randomisation")


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


@dataclass(frozen=True, eq=False)
class Paired:
    """Several systems, pair by pair, on the same resamples.

    Attributes:
        systems, metrics: what was compared.
        intervals: of each system, an Interval per metric, on the same resamples.
        pairs: a Pair for each metric and two systems, metric by metric.
        n: number of segments that all systems have; `unmatched`: of each system, the ids of its other segments.
        values: resamples × systems × metrics: the bootstrap values.
        test, correction, by, level, resamples, seed, clusters: how it was made; clusters is the number of units.
    """

    systems: tuple[str, ...]
    metrics: tuple[Metric, ...]
    intervals: tuple[tuple[Interval, ...], ...]
    pairs: tuple[Pair, ...]
    n: int
    unmatched: dict[str, tuple[Any, ...]]
    values: Floats = field(repr=False)
    test: str
    correction: str
    by: str
    level: float
    resamples: int
    seed: int
    clusters: int

    def pair(self, name: str | Metric, a: str, b: str) -> Pair:
        """The pair of a metric and two systems, in the order in which they were compared."""
        for pair in self.pairs:
            if (pair.metric, pair.a, pair.b) == (metric(name), a, b):
                return pair
        raise UsageError(f"{a} and {b} were not compared by {name}")

    def together(self, a: str, b: str, margins: Mapping[str, float] | None = None) -> float:
        """How likely it is that b is no worse than a by any of the metrics: in which share of the resamples it is so.

        Args:
            a, b: the systems.
            margins: which metrics, and how much worse b may be, in the unit of each: {"BLEU": 0.5, "AL": 0} for b that
                loses at most half a point of BLEU and is not later. Negative: how much better it must be. All metrics
                with a direction, and no margin, by default.

        Returns:
            A share between 0 and 1; NaN if no resample has a value.
        """
        wanted = (
            {m: 0.0 for m in self.metrics if m.higher_is_better is not None}
            if margins is None
            else {metric(name): margin for name, margin in margins.items()}
        )
        one, other = (self.systems.index(_known(name, self.systems)) for name in (a, b))
        good, there = np.ones(len(self.values), dtype=bool), np.ones(len(self.values), dtype=bool)
        for m, margin in wanted.items():
            if m not in self.metrics or m.higher_is_better is None:
                raise UsageError(f"{m!r} was not compared, or has no better direction")
            gain = self.values[:, other, self.metrics.index(m)] - self.values[:, one, self.metrics.index(m)]
            good &= (gain if m.higher_is_better else -gain) >= -margin
            there &= ~np.isnan(gain)
        return float(good[there].mean()) if there.any() else np.nan


def paired(
    systems: Mapping[str, Scores],
    metrics: Iterable[str | Metric] | None = None,
    *,
    test: str = "bootstrap",
    by: str = "segment",
    base: str | None = None,
    level: float = 0.95,
    method: str | None = None,
    correction: str = "holm",
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Paired:
    r"""Compare systems pair by pair on the segments that all of them have, all metrics on the same resamples.

    With $d$ the difference and $d^*$ that of a resample, the two-sided p-value is $(k + 1)/(B + 1)$, where k of B are
    as extreme as what was seen (Davison & Hinkley 1997, chapter 4):

    - `bootstrap` (Koehn 2004): segments or documents are drawn with replacement, the same for both systems; extreme is
      $|d^* - d|/s^* \ge |d|/s$, with standard errors, as a test of the mean of few segments errs too often without
      them (Hall & Wilson 1991);
    - `randomisation` (Noreen 1989; Riezler & Maxwell 2005): the two systems exchange their outputs in a random half of
      the segments or documents; extreme is $|d^*| \ge |d|$. It assumes nothing but that under no difference the names
      of the systems mean nothing.

    The interval of the difference is a bootstrap interval in both cases; see `interval`. Pooled percentiles have no
    standard error: extreme is $|d^* - d| \ge |d|$, and the interval is a percentile interval where another would be
    studentised.

    Args:
        systems: scores by system; segments are matched by id.
        metrics: which to compare; all that every system has, by default.
        test: "bootstrap" or "randomisation".
        by: "segment" or "document".
        base: compare the others with this system only; all pairs, by default.
        level: of intervals.
        method: of intervals; "bca" by segment and "studentised" by document, by default. "sacrebleu" makes p as
            sacreBLEU's --paired-bs and --paired-ar do: of $|d^*| - \overline{|d^*|} > |d|$ and of $|d^*| > |d|$.
        correction: "holm", "bh" or "none": over the pairs of each metric.
        resamples, seed: how many, and of which random numbers.

    Raises:
        UsageError: fewer than two systems, or nothing in common.

    Example:
        >>> import lagging
        >>> def scores(k):
        ...     delays = [[min(k + t, x) for t in range(x)] for x in range(4, 16)]
        ...     return lagging.score(lagging.Run.from_delays(delays, source_length=range(4, 16)), ["AP", "DAL"])
        >>> found = paired({"wait-3": scores(3), "wait-1": scores(1)})
        >>> for pair in found.pairs:
        ...     print(f"{pair.metric}: {pair.difference:.2f} [{pair.low:.2f}, {pair.high:.2f}], p = {pair.p:.4f}")
        AP: -0.19 [-0.23, -0.16], p = 0.0001
        DAL: -2.00 [-2.00, -2.00], p = 0.0001
        >>> found.pairs[0].wins, found.pairs[0].ties, found.pairs[0].losses
        (12, 0, 0)
    """
    method = DEFAULTS.get(by, "") if method is None else method
    check(method, by, level, resamples)
    if test not in TESTS:
        raise UsageError(f"there is no test {test!r}; there are {', '.join(TESTS)}")
    if correction not in CORRECTIONS:
        raise UsageError(f"there is no correction {correction!r}; there are {', '.join(CORRECTIONS)}")
    if base is not None:
        _known(base, systems)
    matched = match(systems, metrics, by=by, in_order=method == "sacrebleu")
    joint = Joint.make(matched, by, base)
    studentised = ("errors", "t") if method == "studentised" else ()
    drawn = joint.bootstrap(resamples, seed, "values", "spreads", *studentised)
    values, spreads, errors = drawn["values"], drawn["spreads"], drawn.get("errors")
    trials = joint.exchanged(resamples, seed) if test == "randomisation" else None
    whole = joint.errors_of(np.ones((1, joint.units.n)))[0]
    pairs = []
    for m, of in enumerate(matched.metrics):
        some = []
        for place, (a, b) in enumerate(joint.pairs):
            pair = _start(of, matched.scores[a][m], matched.scores[b][m], matched.systems[a], matched.systems[b])
            one, other = joint.table[m][a], joint.table[m][b]
            reason = one if isinstance(one, str) else other if isinstance(other, str) else _too_few(one, other, by)
            if isinstance(one, str) or isinstance(other, str) or reason:
                some.append(replace(pair, method=method, reason=str(reason)))
                continue
            seen = _Seen(
                difference=other.value - one.value,
                error=float(whole[place, m]),
                scale=float(np.nanmax(np.abs(values[:, [a, b], m]), initial=0)),
                values=values[:, b, m] - values[:, a, m],
                errors=None if errors is None or isinstance(one, Quantile) else errors[:, place, m],
                trials=None if trials is None else trials[:, place, m],
                spread=spreads[:, place, m],
                n=joint.units.n,
                by=by,
            )
            some.append(seen.fill(pair, one, other, method, level))
        adjusted = CORRECTIONS[correction]([pair.p for pair in some])
        pairs += [replace(pair, p_adjusted=float(p)) for pair, p in zip(some, adjusted, strict=True)]
    return Paired(
        systems=matched.systems,
        metrics=matched.metrics,
        intervals=_intervals(joint, drawn, Interval(np.nan, np.nan, method, by, level, resamples, seed, joint.units.n)),
        pairs=tuple(pairs),
        n=matched.n,
        unmatched=matched.unmatched,
        values=values,
        test=test,
        correction=correction,
        by=by,
        level=level,
        resamples=resamples,
        seed=seed,
        clusters=joint.units.n,
    )


def _intervals(joint: Joint, drawn: dict[str, Floats], made: Interval) -> tuple[tuple[Interval, ...], ...]:
    """Of each system, an interval per metric."""
    values, t = drawn["values"], drawn.get("t", drawn["values"])

    def one(s: int, m: int, score: Score) -> Interval:
        e = joint.table[m][s]
        return (
            replace(made, reason=e) if isinstance(e, str) else finish(made, score.value, e, values[:, s, m], t[:, s, m])
        )

    return tuple(
        tuple(one(s, m, score) for m, score in enumerate(scores)) for s, scores in enumerate(joint.matched.scores)
    )


def _known(name: str, systems: Iterable[str]) -> str:
    names = list(systems)
    if name not in names:
        raise UsageError(f"there is no system {name!r}.{did_you_mean(name, names)}")
    return name


def _too_few(one: Estimator, other: Estimator, by: str) -> str:
    some = min(one.some, other.some)
    return f"{counted(some, by)} with a value: too few" if some < 2 else ""


def _start(of: Metric, one: Score, other: Score, a: str, b: str) -> Pair:
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


@dataclass(frozen=True)
class _Seen:
    """A difference, and what became of it in the resamples; the scale is the size of what is subtracted."""

    difference: float
    error: float
    scale: float
    values: Floats
    errors: Floats | None
    trials: Floats | None
    spread: Floats
    n: int
    by: str

    def fill(self, pair: Pair, one: Estimator, other: Estimator, method: str, level: float) -> Pair:
        there = ~np.isnan(self.values)
        values = self.values[there]
        if not len(values):
            return replace(pair, method=method, reason="no resample has a value")
        if method == "studentised" and self.errors is None:
            method = "percentile"  # a pooled percentile has no standard error
        errors = self.spread / np.sqrt(self.n) if self.errors is None else self.errors
        t = None if np.isnan(self.error) else studentise(values - self.difference, errors[there], self.scale)
        low = high = pair.difference
        same = constant(values, self.scale)
        if not same:
            if t is not None and method == "studentised":
                low, high = bootstrap_t(t, self.difference, self.error, level)
            elif method == "bca":
                low, high = bca(values, self.difference, _acceleration(one, other), level)
            else:
                low, high = percentile(values, level)
        reason = ""
        if not (np.isfinite(low) and np.isfinite(high)):
            low = high = np.nan
            reason = f"{counted(self.n, self.by)}: too few for a studentised interval"
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
