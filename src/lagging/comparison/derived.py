# SPDX-License-Identifier: Apache-2.0
"""Numbers made of several scores (a quality at some latency, an area, a slope): intervals and tests on joint resamples.

Scores are functions of sums over segments, or documents, and so is what is made of them. Therefore such a number gets
the interval that a score gets: all that it is made of is drawn together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lagging.data.ragged import Floats
from lagging.errors import Note, UsageError, counted
from lagging.metrics import Metric
from lagging.scoring.scores import Score, Scores
from lagging.stats import DEFAULTS, RESAMPLES, SEED, Interval
from lagging.stats.estimators import Estimator, Quantile, Sums, linear
from lagging.stats.intervals import check, constant, finish, signed_by, tails
from lagging.stats.joint import Joint, bootstrap
from lagging.stats.match import on_common_segments
from lagging.stats.wild import Wild, wild

__all__ = ["Derived", "Draws"]

Function = Callable[[Floats], Floats]
"""Values of systems and metrics, along the last two axes, to a number."""


@dataclass(frozen=True)
class Pooled:
    """Stands for what is made of pooled percentiles: no function of sums, so that its interval is a percentile one."""

    first: Quantile


Item = tuple[Estimator | Pooled | str, float, Floats]
"""What a number is a function of, its value, and that of each resample."""


@dataclass(frozen=True)
class Derived:
    """A number, how sure it is, and whether it could be 0.

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
        joint: the scores, and what they are functions of.
        values: resamples × systems × metrics; NaN where a resample has no value.
        made: how intervals are made.
    """

    joint: Joint
    values: Floats
    made: Interval

    @classmethod
    def make(
        cls,
        systems: Mapping[str, Scores],
        metrics: Iterable[str | Metric],
        *,
        by: str = "segment",
        level: float = 0.95,
        method: str | None = None,
        resamples: int = RESAMPLES,
        seed: int = SEED,
    ) -> Draws:
        """Match the systems, and draw.

        Args:
            systems: scores by system; one is enough.
            metrics: which of them.
            by: what is drawn: "segment" or "document".
            level: of the intervals.
            method: "percentile", "bca" or "wild"; by default "bca" for segments and "wild" for documents.
            resamples, seed: how many, and of which random numbers.
        """
        method = DEFAULTS.get(by, "") if method is None else method
        check(method, by, level, resamples)
        if method not in ("percentile", "bca", "wild"):
            raise UsageError(f"the interval of a number made of several scores is not {method}, but bca or wild")
        joint = Joint.make(on_common_segments(systems, metrics, by=by), by)
        values = bootstrap(joint.units.n, resamples, seed, {"values": joint.values_of})["values"]
        return cls(joint, values, Interval(np.nan, np.nan, method, by, level, resamples, seed, joint.units.n))

    @property
    def too_few(self) -> str:
        """Why nothing can be said of other sentences, in words; empty otherwise."""
        return f"{counted(self.made.clusters, self.made.by)}: too few" if self.made.clusters < 2 else ""

    @property
    def note(self) -> Note | None:
        """What is to be said of intervals from so few segments, or documents, that they are too narrow."""
        valued = [e.some for row in self.joint.table for e in row if not isinstance(e, str) and e.some > 1]
        return replace(self.made, low=0.0, valued=min(valued)).too_few if valued else None

    @property
    def value(self) -> Floats:
        """Systems × metrics: of the whole test set."""
        return np.array([[score.value for score in scores] for scores in self.joint.matched.scores])

    def scores(self) -> list[Scores]:
        """Of each system, the scores of the common segments, with intervals."""
        matched = self.joint.matched
        cells = [(s, m) for s in range(len(matched.systems)) for m in range(len(matched.metrics))]
        parts = [self.joint.table[m][s] for s, m in cells]
        found = self._judge([(part, self.value[c], self.values[:, *c]) for part, c in zip(parts, cells, strict=True)])
        out = iter(found)
        return [
            Scores([self._signed(score, next(out)) for score in scores], system)
            for system, scores in zip(matched.systems, matched.scores, strict=True)
        ]

    def _signed(self, score: Score, found: Derived) -> Score:
        if found.low is None or found.high is None:
            return score
        return signed_by(score, replace(self.made, low=found.low, high=found.high))

    def derive(self, functions: Sequence[tuple[Function, Sequence[int]]]) -> list[Derived]:
        """Of each function of the values of some systems, by number: its value, interval and p-value."""
        items: list[Item] = []
        for function, which in functions:
            some = list(which)
            parts = [self.joint.table[m][s] for s in some for m in range(len(self.joint.table))]
            estimator = _combined(parts, function, len(some))
            items.append((estimator, float(function(self.value[some])), function(self.values[:, some])))
        return self._judge(items)

    def _judge(self, items: Sequence[Item]) -> list[Derived]:
        parts: list[Sums | None] = [None] * len(items)
        for place, (e, value, _) in enumerate(items):
            if self.made.method == "wild" and isinstance(e, Sums | Quantile) and e.some > 1 and np.isfinite(value):
                parts[place] = linear(e)
        weighted = iter(wild([(e, None) for e in parts if e is not None], self.made.resamples, self.made.seed))
        more = [None if e is None else next(weighted) for e in parts]
        return [self._one(*item, weights) for item, weights in zip(items, more, strict=True)]

    def _one(self, e: Estimator | Pooled | str, value: float, values: Floats, more: Wild | None) -> Derived:
        if isinstance(e, str):
            return Derived(value, reason=e)
        if not np.isfinite(value):
            return Derived(value, reason="it has no value")
        lost = float(np.isnan(values).mean())
        if lost > tails(self.made.level)[0]:
            return Derived(value, reason=f"{100 * lost:.2g} % of the resamples have no value: too many")
        made, unit = (replace(self.made, method="percentile"), e.first) if isinstance(e, Pooled) else (self.made, e)
        ends = finish(made, value, unit, values, more)
        if np.isnan(ends.low):
            return Derived(value, reason=ends.reason)
        values = values[~np.isnan(values)]
        if more is not None and isinstance(e, Sums) and not constant(values, float(np.abs(values).max())):
            p = more.p()
        else:
            p = float((np.count_nonzero(np.abs(values - value) >= abs(value)) + 1) / (len(values) + 1))
        return Derived(value, ends.low, ends.high, p, ends.reason)


def _combined(parts: Sequence[Estimator | str], function: Function, systems: int) -> Sums | Pooled | str:
    """A function of scores as a function of all their sums; or why it is none."""
    for part in parts:
        if isinstance(part, str):
            return part
    pooled = [part for part in parts if isinstance(part, Quantile)]
    if pooled:
        return Pooled(pooled[0])
    sums: list[Any] = [part for part in parts if isinstance(part, Sums)]
    ends = np.cumsum([part.width for part in sums])
    counts = np.max([part.rows[:, -1] for part in sums], axis=0)

    def of_sums(total: Floats) -> Floats:
        split = np.split(total[..., : ends[-1]], ends[:-1], axis=-1)
        values = [part.function(some) for part, some in zip(sums, split, strict=True)]
        return function(np.stack(values, axis=-1).reshape(*total.shape[:-1], systems, -1))

    return Sums(np.column_stack([*(part.rows for part in sums), counts]), of_sums)
