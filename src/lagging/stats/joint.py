# SPDX-License-Identifier: Apache-2.0
"""Several systems and metrics on the same resamples: their values, and the differences of pairs of systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lagging.data.ragged import Floats
from lagging.stats.estimators import Estimator, Quantile, Sums, Units, evaluate, linear, standard_error
from lagging.stats.resamples import counts, on_grid, swaps
from lagging.stats.wild import Wild, wild

__all__ = ["JointEstimators", "PairBatch", "bootstrap"]

Row = list[Estimator | str]
Function = Callable[[Floats], Floats]
"""From how often each unit is in each resample to what is computed of each resample."""

CELLS = 1 << 21
"""The number of values of pairs, over all resamples and metrics, in memory at a time: 16 MB, and a few times that."""


@dataclass(frozen=True, eq=False)
class JointEstimators:
    """The estimators of several systems and metrics, on common units.

    Attributes:
        units: what is resampled.
        observed: systems × metrics: the values of the whole sample.
        table: for each metric, the estimators of all systems; or the reason why there is none.
        pairs: the systems that are compared, as indices of systems.
    """

    units: Units
    observed: Floats
    table: tuple[Row, ...]
    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def make(
        cls, units: Units, observed: Floats, table: Sequence[Row], pairs: Sequence[tuple[int, int]] = ()
    ) -> JointEstimators:
        """Round the sums of all systems to multiples of the same power of two, metric by metric.

        Equal sums of two systems are then equal to the last bit.
        """
        return cls(units, observed, tuple(map(_on_one_grid, table)), tuple(pairs))

    def batches(self, resamples: int) -> Iterator[PairBatch]:
        """The pairs in batches that fit into `CELLS`, each with the estimators of its systems alone."""
        step = max(1, CELLS // (resamples * len(self.table)))
        for start in range(0, len(self.pairs), step):
            pairs = self.pairs[start : start + step]
            systems = sorted({s for pair in pairs for s in pair})
            index = {s: row for row, s in enumerate(systems)}
            table = tuple([row[s] for s in systems] for row in self.table)
            renumbered = tuple((index[a], index[b]) for a, b in pairs)
            yield PairBatch(self.units, self.observed[systems], table, renumbered, systems)

    @property
    def shape(self) -> tuple[int, int]:
        """Systems, metrics."""
        return len(self.table[0]), len(self.table)

    @property
    def _known(self) -> list[tuple[int, int, Estimator]]:
        """Metric, system and estimator, wherever there is an estimator."""
        return [(m, s, e) for m, row in enumerate(self.table) for s, e in enumerate(row) if not isinstance(e, str)]

    def values(self, counts: Floats) -> Floats:
        """The values of resamples × systems × metrics, from how often each unit is in each resample."""
        columns = evaluate([e for _, _, e in self._known], counts)
        values = np.full((len(columns), *self.shape), np.nan)
        for column, (m, s, _) in enumerate(self._known):
            values[:, s, m] = columns[:, column]
        return values

    @cached_property
    def _influences(self) -> tuple[list[int], Floats]:
        """The metrics that are functions of sums; of each unit, its influence on the systems, then squares for pairs.

        It is NaN for a system that has no such function.
        """
        metrics = [m for m, row in enumerate(self.table) if any(isinstance(e, Sums) for e in row)]
        none = np.full(self.units.n, np.nan)
        influences = [
            np.stack([e.influence if isinstance(e, Sums) else none for e in self.table[m]], axis=1) for m in metrics
        ]
        a, b = np.array(self.pairs).T
        squares = [(influence[:, b] - influence[:, a]) ** 2 for influence in influences]
        return metrics, on_grid(np.concatenate([np.zeros((self.units.n, 0)), *influences, *squares], axis=1))

    def deviations(self, counts: Floats) -> Floats:
        """Standard deviation of the units' influence on each difference: resamples × pairs × metrics.

        The influence is that in the whole sample, so that its squares add up; for a mean, this is exact.
        """
        deviations = np.full((len(counts), len(self.pairs), len(self.table)), np.nan)
        metrics, influences = self._influences
        sums, n, width = counts @ influences, self.units.n, self.shape[0]
        a, b = np.array(self.pairs).T
        for row, m in enumerate(metrics):
            influence = sums[:, row * width : (row + 1) * width]
            first = len(metrics) * width + row * len(self.pairs)
            mean = (influence[:, b] - influence[:, a]) / n
            variance = sums[:, first : first + len(self.pairs)] / n - mean**2
            deviations[:, :, m] = np.sqrt(np.maximum(variance, 0) * n / max(n - 1, 1)) * n
        return deviations

    def wild_by_system(self, m: int, resamples: int, seed: int) -> dict[int, Wild]:
        """The wild bootstrap of each system by one metric, where it has one."""
        sums = {s: linear(e) for s, e in enumerate(self.table[m]) if not isinstance(e, str) and e.n_defined > 1}
        return dict(zip(sums, wild([(e, None) for e in sums.values()], resamples, seed), strict=True))

    def wild_by_pair(self, m: int, resamples: int, seed: int) -> dict[int, Wild]:
        """The wild bootstrap of each pair by one metric, where it has one."""
        sums = {s: e for s, e in enumerate(self.table[m]) if isinstance(e, Sums) and e.n_defined > 1}
        both = {pair: (sums[a], sums[b]) for pair, (a, b) in enumerate(self.pairs) if a in sums and b in sums}
        return dict(zip(both, wild(list(both.values()), resamples, seed), strict=True))

    def standard_error(self, m: int, pair: tuple[int, int]) -> float:
        """The standard error of a difference by linearisation; NaN where an estimator is no function of sums."""
        a, b = (self.table[m][s] for s in pair)
        if isinstance(a, Sums) and isinstance(b, Sums):
            return standard_error(b.influence - a.influence, a.defined | b.defined)
        return float("nan")

    def exchange(self, resamples: int, seed: int) -> Floats:
        """Differences b − a in trials that exchange the systems in half of the units: resamples × pairs × metrics."""
        differences = np.full((resamples, len(self.pairs), len(self.table)), np.nan)
        sums = [(m, s, e) for m, s, e in self._known if isinstance(e, Sums)]
        pooled = {
            (m, pair): (_pool(row[a], row[b]), _pool(row[b], row[a]))
            for m, row in enumerate(self.table)
            for pair, (a, b) in enumerate(self.pairs)
            if isinstance(row[a], Quantile) and isinstance(row[b], Quantile)
        }
        stacked = np.concatenate([e.rows for _, _, e in sums], axis=1) if sums else np.zeros((self.units.n, 0))
        ends = np.cumsum([e.width for _, _, e in sums])[:-1]
        start = 0
        for swapped in swaps(self.units.n, resamples, seed):
            rows = slice(start, start + len(swapped))
            start += len(swapped)
            moved = np.split(swapped @ stacked, ends, axis=1)
            moved_of = {(m, s): part for (m, s, _), part in zip(sums, moved, strict=False)}
            for pair, (a, b) in enumerate(self.pairs):
                for m, row in enumerate(self.table):
                    first, second = row[a], row[b]
                    if isinstance(first, Sums) and isinstance(second, Sums):
                        gain = moved_of[m, b] - moved_of[m, a]
                        value_b, value_a = second.function(second.sums - gain), first.function(first.sums + gain)
                        differences[rows, pair, m] = value_b - value_a
                    elif (m, pair) in pooled:
                        weights = np.concatenate([1 - swapped, swapped], axis=1)
                        value_b, value_a = (pool.values(weights) for pool in reversed(pooled[m, pair]))
                        differences[rows, pair, m] = value_b - value_a
        return differences


@dataclass(frozen=True, eq=False)
class PairBatch(JointEstimators):
    """Some of the pairs of systems.

    Attributes:
        systems: the indices of the systems of these pairs among all systems; `observed` and `table` have these alone,
            and `pairs` are indices of them.
    """

    systems: list[int]


def bootstrap(n: int, resamples: int, seed: int, functions: Mapping[str, Function]) -> dict[str, Floats]:
    """The results of each function for all resamples of n units, which are drawn once for all functions."""
    results: dict[str, Floats] = {}
    start = 0
    for part in counts(n, resamples, seed):
        for name, function in functions.items():
            rows = function(part)
            results.setdefault(name, np.empty((resamples, *rows.shape[1:])))[start : start + len(part)] = rows
        start += len(part)
    return results


def _on_one_grid(row: Sequence[Estimator | str]) -> Row:
    """The same estimators, with sums on a common grid."""
    sums = [e for e in row if isinstance(e, Sums)]
    if not sums:
        return list(row)
    parts = iter(np.split(on_grid(np.concatenate([e.rows for e in sums])), len(sums)))
    return [replace(e, rows=next(parts)) if isinstance(e, Sums) else e for e in row]


def _pool(first: Estimator | str, second: Estimator | str) -> Quantile:
    """The tokens of two systems: units of the first, then those of the second."""
    if not isinstance(first, Quantile) or not isinstance(second, Quantile):
        raise TypeError("only percentiles are pooled")
    values = np.concatenate([first.sorted_values, second.sorted_values])
    unit = np.concatenate([first.unit, second.unit + first.n])
    ascending = np.lexsort((unit, values))
    return Quantile(values[ascending], unit[ascending], first.n + second.n, first.p)
