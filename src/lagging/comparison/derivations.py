# SPDX-License-Identifier: Apache-2.0
"""Numbers derived from several scores (quality at a latency, an area, a slope): intervals and tests.

Scores are functions of sums over segments, or documents, and so are numbers that are derived from them. Such a number
therefore gets the interval that a score gets: all scores that it is derived from are resampled together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lagging.comparison.match import Matched, on_common_segments
from lagging.data.ragged import Floats
from lagging.errors import Note, UsageError, counted
from lagging.metrics import Metric
from lagging.scoring.scores import Scores, sign_interval
from lagging.stats import RESAMPLES, SEED, Estimator, Interval, JointEstimators, Quantile, default_method
from lagging.stats.estimators import Sums, linear
from lagging.stats.intervals import check_options, interval_from_resamples, is_constant, tails
from lagging.stats.joint import bootstrap
from lagging.stats.wild import Wild, wild

__all__ = ["Derived", "Draws", "Function"]

Function = Callable[[Floats], Floats]
"""From the values of systems and metrics, along the last two axes, to a number."""


@dataclass(frozen=True)
class Pooled:
    """Marks a number derived from pooled percentiles: no function of sums, so its interval is a percentile interval."""

    first: Quantile


Item = tuple[Estimator | Pooled | str, float, Floats]
"""The estimator of a number, its value, and its value in each resample."""


@dataclass(frozen=True)
class Derived:
    """A number with its interval, and with the p-value of its being 0.

    Attributes:
        value: of the whole test set; NaN where it is undefined.
        low, high: ends of the interval; None where there is none.
        p: two-sided p-value of 0; NaN where there is none.
        reason: why there is no interval, or why it has no width; empty otherwise.
    """

    value: float
    low: float | None = None
    high: float | None = None
    p: float = float("nan")
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Draws:
    """The values of several systems and metrics on the same resamples of the segments that all of them have.

    Attributes:
        matched: the scores of these segments, and the segments that were left out.
        joint: the estimators of these scores.
        values: resamples × systems × metrics; NaN where a resample has no value.
        template: an Interval without ends, which says how intervals are made.
    """

    matched: Matched
    joint: JointEstimators
    values: Floats
    template: Interval

    @classmethod
    def make(
        cls,
        systems: Mapping[str, Scores],
        metrics: Iterable[str | Metric] | None = None,
        *,
        resample: str = "segment",
        confidence: float = 0.95,
        method: str | None = None,
        resamples: int = RESAMPLES,
        seed: int = SEED,
    ) -> Draws:
        """Match the segments of the systems, and resample them.

        Args:
            systems: Scores by system; one is enough.
            metrics: the metrics to resample; all that every system has, by default.
            resample: "segment" or "document".
            confidence: the confidence level of the intervals: 0.95 for 95 %.
            method: "percentile", "bca" or "wild"; by default "bca" for segments and "wild" for documents.
            resamples, seed: the number of resamples, and the seed of the random numbers.

        Example:
            >>> import lagging
            >>> def scores(k):
            ...     delays = [[min(k + t, x) for t in range(x)] for x in (4, 5, 6, 9)]
            ...     return lagging.score(lagging.Run.from_delays(delays, source_length=[4, 5, 6, 9]), ["AP", "DAL"])
            >>> draws = Draws.make({"wait-1": scores(1), "wait-3": scores(3)}, resamples=1000)
            >>> draws.values.shape
            (1000, 2, 2)
            >>> bool((draws.values[:, 0] < draws.values[:, 1]).all())  # wait-1 is earlier in all resamples, by both
            True
        """
        method = default_method(resample) if method is None else method
        check_options(method, resample, confidence, resamples)
        if method not in ("percentile", "bca", "wild"):
            raise UsageError(
                f"a number derived from several scores has a percentile, bca or wild interval, not {method}"
            )
        matched = on_common_segments(systems, metrics, resample=resample)
        joint = matched.estimators(resample)
        values = bootstrap(joint.units.n, resamples, seed, {"values": joint.values})["values"]
        template = Interval(np.nan, np.nan, method, resample, confidence, resamples, seed, joint.units.n)
        return cls(matched, joint, values, template)

    @property
    def too_few(self) -> str:
        """Why there are no intervals at all, in words: fewer than two units; empty otherwise."""
        clusters = self.template.clusters
        return f"{counted(clusters, self.template.resample)}: too few" if clusters < 2 else ""

    @property
    def note(self) -> Note | None:
        """A note if intervals are from so few segments, or documents, that they are too narrow."""
        estimators = [e for row in self.joint.table for e in row if not isinstance(e, str)]
        n_defined = [e.n_defined for e in estimators if e.n_defined > 1]
        return replace(self.template, low=0.0, n_defined=min(n_defined)).too_few if n_defined else None

    @property
    def value(self) -> Floats:
        """Systems × metrics: the values of the whole test set."""
        return self.joint.observed

    def scores(self) -> list[Scores]:
        """The scores of each system on the common segments, with intervals."""
        cells = [(s, m) for s in range(len(self.matched.systems)) for m in range(len(self.matched.metrics))]
        derived = iter(
            self._derive([(self.joint.table[m][s], float(self.value[s, m]), self.values[:, s, m]) for s, m in cells])
        )
        return [
            Scores([sign_interval(score, self._interval(next(derived))) for score in scores], system)
            for system, scores in zip(self.matched.systems, self.matched.scores, strict=True)
        ]

    def _interval(self, derived: Derived) -> Interval:
        if derived.low is None or derived.high is None:
            return self.template
        return replace(self.template, low=derived.low, high=derived.high)

    def derive(self, functions: Sequence[tuple[Function, Sequence[int]]]) -> list[Derived]:
        """The value, interval and p-value of each function of the values of some systems, given by index."""
        items: list[Item] = []
        for function, systems in functions:
            rows = list(systems)
            parts = [self.joint.table[m][s] for s in rows for m in range(len(self.joint.table))]
            estimator = _combine(parts, function, len(rows))
            items.append((estimator, float(function(self.value[rows])), function(self.values[:, rows])))
        return self._derive(items)

    def _derive(self, items: Sequence[Item]) -> list[Derived]:
        sums: list[Sums | None] = [None] * len(items)
        for row, (e, value, _) in enumerate(items):
            if self.template.method == "wild" and isinstance(e, Sums | Quantile) and e.n_defined > 1:
                sums[row] = linear(e) if np.isfinite(value) else None
        weighted = iter(wild([(e, None) for e in sums if e is not None], self.template.resamples, self.template.seed))
        tests = [None if e is None else next(weighted) for e in sums]
        return [self._derive_item(*item, test) for item, test in zip(items, tests, strict=True)]

    def _derive_item(self, e: Estimator | Pooled | str, value: float, values: Floats, test: Wild | None) -> Derived:
        if isinstance(e, str):
            return Derived(value, reason=e)
        if not np.isfinite(value):
            return Derived(value, reason="it has no value")
        undefined = float(np.isnan(values).mean())
        if undefined > tails(self.template.confidence)[0]:
            return Derived(value, reason=f"{100 * undefined:.2g} % of the resamples have no value: too many")
        if isinstance(e, Pooled):
            template, estimator = replace(self.template, method="percentile"), e.first
            interval = interval_from_resamples(template, value, estimator, values, test)
        else:
            interval = interval_from_resamples(self.template, value, e, values, test)
        if np.isnan(interval.low):
            return Derived(value, reason=interval.reason)
        values = values[~np.isnan(values)]
        if test is not None and isinstance(e, Sums) and not is_constant(values, float(np.abs(values).max())):
            p = test.p()
        else:
            p = float((np.count_nonzero(np.abs(values - value) >= abs(value)) + 1) / (len(values) + 1))
        return Derived(value, interval.low, interval.high, p, interval.reason)


def _combine(parts: Sequence[Estimator | str], function: Function, systems: int) -> Sums | Pooled | str:
    """The estimator of a function of several scores, from all their sums; or the reason why there is none."""
    for part in parts:
        if isinstance(part, str):
            return part
    pooled = [part for part in parts if isinstance(part, Quantile)]
    if pooled:
        return Pooled(pooled[0])
    sums = [part for part in parts if isinstance(part, Sums)]
    ends = np.cumsum([part.width for part in sums])
    counts = np.max([part.rows[:, -1] for part in sums], axis=0)

    def values_from_sums(total: Floats) -> Floats:
        columns = np.split(total[..., : ends[-1]], ends[:-1], axis=-1)
        values = [part.function(column) for part, column in zip(sums, columns, strict=True)]
        return function(np.stack(values, axis=-1).reshape(*total.shape[:-1], systems, -1))

    return Sums(np.column_stack([*(part.rows for part in sums), counts]), values_from_sums)
