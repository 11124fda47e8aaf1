# SPDX-License-Identifier: Apache-2.0
"""All systems and all metrics on the same resamples: what they are worth together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from lagging.data.ragged import Floats
from lagging.metrics import Metric
from lagging.scoring.scores import Scores
from lagging.stats.estimators import (
    Estimator,
    Quantile,
    Sums,
    Units,
    estimator,
    evaluate,
    linear,
    standard_error,
    units_of,
)
from lagging.stats.intervals import student
from lagging.stats.match import Matched, match
from lagging.stats.resamples import RESAMPLES, SEED, check_resamples, counts, on_grid, swaps
from lagging.stats.wild import Wild, wild

__all__ = ["Joint", "Resampled", "bootstrap", "resampled"]

Row = list[Estimator | str]
Function = Callable[[Floats], Floats]
"""From how often each resample has each unit to what it is worth."""

CELLS = 1 << 21
"""How many numbers of pairs, over all resamples and metrics, are in memory at a time: 16 MB, and a few times that."""


@dataclass(frozen=True, eq=False)
class Resampled:
    """The values of several systems and metrics on the same resamples, for whatever is to be made of them.

    Attributes:
        systems, metrics: names of the systems, and the metrics.
        value: systems × metrics, of the segments that all systems have.
        values: resamples × systems × metrics; NaN where a resample, or a metric, has no value.
        matched: the scores of those segments, and which segments were left out.
        by, clusters: what was resampled, and how many there are.
        resamples, seed: how many, and of which random numbers.
    """

    systems: tuple[str, ...]
    metrics: tuple[Metric, ...]
    value: Floats
    values: Floats
    matched: Matched
    by: str
    clusters: int
    resamples: int
    seed: int


def resampled(
    systems: Mapping[str, Scores],
    metrics: Iterable[str | Metric] | None = None,
    *,
    by: str = "segment",
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Resampled:
    """Score several systems on the same resamples of the segments, or documents, that all of them have.

    Example:
        >>> import lagging
        >>> def scores(k):
        ...     delays = [[min(k + t, x) for t in range(x)] for x in (4, 5, 6, 9)]
        ...     return lagging.score(lagging.Run.from_delays(delays, source_length=[4, 5, 6, 9]), ["AP", "DAL"])
        >>> found = resampled({"wait-1": scores(1), "wait-3": scores(3)}, resamples=1000)
        >>> found.values.shape
        (1000, 2, 2)
        >>> faster = found.values[:, 0] < found.values[:, 1]        # in which resamples, by both metrics
        >>> bool(faster.all())
        True
    """
    check_resamples(resamples)
    joint = Joint.make(match(systems, metrics, by=by), by)
    matched = joint.matched
    return Resampled(
        matched.systems,
        matched.metrics,
        np.array([[score.value for score in scores] for scores in matched.scores]),
        bootstrap(joint.units.n, resamples, seed, {"values": joint.values_of})["values"],
        matched,
        by,
        joint.units.n,
        resamples,
        seed,
    )


@dataclass(frozen=True, eq=False)
class Joint:
    """The estimators of all systems, metric by metric, on common units.

    Attributes:
        matched: the scores.
        units: what is resampled.
        table: for each metric, the estimators of all systems, or why there is none.
        pairs: the systems compared, by number.
    """

    matched: Matched
    units: Units
    table: tuple[Row, ...]
    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def make(cls, matched: Matched, by: str, base: str | None = None) -> Joint:
        """Estimators for the matched scores, whose sums are multiples of the same power of two for all systems."""
        first = matched.scores[0][0]
        units = units_of(first, by) if by == "document" else Units(by, first.n, np.arange(first.n))
        table = tuple(
            _on_one_grid([estimator(scores[m], units) for scores in matched.scores])
            for m in range(len(matched.metrics))
        )
        names = matched.systems
        pairs = tuple(combinations(range(len(names)), 2))
        if base is not None:
            at = names.index(base)
            pairs = tuple((at, other) for other in range(len(names)) if other != at)
        return cls(matched, units, table, pairs)

    def parts(self, resamples: int) -> Iterator[Part]:
        """The pairs, as many at a time as `CELLS` suffice for, with the estimators of their systems alone."""
        step = max(1, CELLS // (resamples * len(self.table)))
        for start in range(0, len(self.pairs), step):
            pairs = self.pairs[start : start + step]
            systems = sorted({s for pair in pairs for s in pair})
            place = {s: at for at, s in enumerate(systems)}
            table = tuple([row[s] for s in systems] for row in self.table)
            yield Part(self.matched, self.units, table, tuple((place[a], place[b]) for a, b in pairs), systems)

    @property
    def shape(self) -> tuple[int, int]:
        """Systems, metrics."""
        return len(self.table[0]), len(self.table)

    @property
    def _flat(self) -> list[tuple[int, int, Estimator]]:
        """Metric, system, estimator, where there is one."""
        return [(m, s, e) for m, row in enumerate(self.table) for s, e in enumerate(row) if not isinstance(e, str)]

    def values_of(self, some: Floats) -> Floats:
        """Resamples, by how often they have each unit, × systems × metrics."""
        return self._spread_out(evaluate([e for _, _, e in self._flat], some))

    def t_of(self, some: Floats) -> Floats:
        """The studentised values: resamples × systems × metrics."""
        return self._spread_out(student([e for _, _, e in self._flat], some))

    def _spread_out(self, columns: Floats) -> Floats:
        out = np.full((len(columns), *self.shape), np.nan)
        for column, (m, s, _) in enumerate(self._flat):
            out[:, s, m] = columns[:, column]
        return out

    @cached_property
    def _linear(self) -> tuple[list[int], Floats]:
        """Which metrics are functions of sums; each unit's influence on the systems, then its square on the pairs.

        It is NaN of a system that has no such function.
        """
        linear = [m for m, row in enumerate(self.table) if any(isinstance(e, Sums) for e in row)]
        none = np.full(self.units.n, np.nan)
        pull = [np.stack([e.influence if isinstance(e, Sums) else none for e in self.table[m]], axis=1) for m in linear]
        a, b = np.array(self.pairs).T
        squares = [(one[:, b] - one[:, a]) ** 2 for one in pull]
        return linear, on_grid(np.concatenate([np.zeros((self.units.n, 0)), *pull, *squares], axis=1))

    def spreads_of(self, some: Floats) -> Floats:
        """Standard deviation of the units' influence on each difference: resamples × pairs × metrics.

        The influence is that in the whole sample, so that the squares are sums like others; of a mean, this is exact.
        """
        out = np.full((len(some), len(self.pairs), len(self.table)), np.nan)
        linear, stacked = self._linear
        sums, n, width = some @ stacked, self.units.n, self.shape[0]
        a, b = np.array(self.pairs).T
        for place, m in enumerate(linear):
            pull = sums[:, place * width : (place + 1) * width]
            first = len(linear) * width + place * len(self.pairs)
            mean = (pull[:, b] - pull[:, a]) / n
            variance = sums[:, first : first + len(self.pairs)] / n - mean**2
            out[:, :, m] = np.sqrt(np.maximum(variance, 0) * n / max(n - 1, 1)) * n
        return out

    def wild_of_systems(self, m: int, resamples: int, seed: int) -> dict[int, Wild]:
        """The wild bootstrap of each system by one metric, where it has one."""
        ones = {s: linear(e) for s, e in enumerate(self.table[m]) if not isinstance(e, str) and e.some > 1}
        return dict(zip(ones, wild([(e, None) for e in ones.values()], resamples, seed), strict=True))

    def wild_of_pairs(self, m: int, resamples: int, seed: int) -> dict[int, Wild]:
        """The wild bootstrap of each pair by one metric, where it has one."""
        sums = {s: e for s, e in enumerate(self.table[m]) if isinstance(e, Sums) and e.some > 1}
        both = {place: (sums[a], sums[b]) for place, (a, b) in enumerate(self.pairs) if a in sums and b in sums}
        return dict(zip(both, wild(list(both.values()), resamples, seed), strict=True))

    def errors_of(self, some: Floats) -> Floats:
        """Standard error of each difference, linearised in each resample: resamples × pairs × metrics."""
        out = np.full((len(some), len(self.pairs), len(self.table)), np.nan)
        for m, row in enumerate(self.table):
            pull = [e.pull(some) if isinstance(e, Sums) else None for e in row]
            for place, (a, b) in enumerate(self.pairs):
                one, other, of, against = pull[a], pull[b], row[a], row[b]
                if one is not None and other is not None and isinstance(of, Sums) and isinstance(against, Sums):
                    out[:, place, m] = standard_error(other - one, some, of.there | against.there)
        return out

    def exchanged(self, resamples: int, seed: int) -> Floats:
        """Differences b − a in trials that exchange the systems in some units: resamples × pairs × metrics."""
        out = np.full((resamples, len(self.pairs), len(self.table)), np.nan)
        sums = [(m, s, e) for m, s, e in self._flat if isinstance(e, Sums)]
        pooled = {
            (m, place): (_both(row[a], row[b]), _both(row[b], row[a]))
            for m, row in enumerate(self.table)
            for place, (a, b) in enumerate(self.pairs)
            if isinstance(row[a], Quantile) and isinstance(row[b], Quantile)
        }
        stacked = np.concatenate([e.rows for _, _, e in sums], axis=1) if sums else np.zeros((self.units.n, 0))
        ends = np.cumsum([e.width for _, _, e in sums])[:-1]
        start = 0
        for some in swaps(self.units.n, resamples, seed):
            rows = slice(start, start + len(some))
            start += len(some)
            moved = np.split(some @ stacked, ends, axis=1)
            given = {(m, s): part for (m, s, _), part in zip(sums, moved, strict=False)}
            for place, (a, b) in enumerate(self.pairs):
                for m, row in enumerate(self.table):
                    one, other = row[a], row[b]
                    if isinstance(one, Sums) and isinstance(other, Sums):
                        gain = given[m, b] - given[m, a]
                        out[rows, place, m] = other.function(other.sums - gain) - one.function(one.sums + gain)
                    elif (m, place) in pooled:
                        weights = np.concatenate([1 - some, some], axis=1)
                        new, old = (both.values(weights) for both in (pooled[m, place][1], pooled[m, place][0]))
                        out[rows, place, m] = new - old
        return out


@dataclass(frozen=True, eq=False)
class Part(Joint):
    """Some of the pairs of all systems.

    Attributes:
        systems: the systems of these pairs, by their number among all; `table` has these alone, and `pairs` are by
            their place in it.
    """

    systems: list[int]


def bootstrap(n: int, resamples: int, seed: int, functions: Mapping[str, Function]) -> dict[str, Floats]:
    """What each function gives of all resamples of n units, which are drawn once for all of them."""
    out: dict[str, Floats] = {}
    start = 0
    for some in counts(n, resamples, seed):
        for name, function in functions.items():
            rows = function(some)
            out.setdefault(name, np.empty((resamples, *rows.shape[1:])))[start : start + len(some)] = rows
        start += len(some)
    return out


def _on_one_grid(row: Sequence[Estimator | str]) -> Row:
    """The same estimators; equal sums of two systems are then equal to the last bit."""
    sums = [e for e in row if isinstance(e, Sums)]
    if not sums:
        return list(row)
    parts = iter(np.split(on_grid(np.concatenate([e.rows for e in sums])), len(sums)))
    return [replace(e, rows=next(parts)) if isinstance(e, Sums) else e for e in row]


def _both(one: Estimator | str, other: Estimator | str) -> Quantile:
    """The tokens of two systems: units of the first, then those of the second."""
    if not isinstance(one, Quantile) or not isinstance(other, Quantile):
        raise TypeError("only percentiles are pooled")
    values = np.concatenate([one.sorted_values, other.sorted_values])
    unit = np.concatenate([one.unit, other.unit + one.n])
    up = np.lexsort((unit, values))
    return Quantile(values[up], unit[up], one.n + other.n, one.p)
