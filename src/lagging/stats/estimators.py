# SPDX-License-Identifier: Apache-2.0
"""Estimators: a value as a function of how often each unit counts, and the influence of each unit on it.

A unit is what is resampled: a segment, or a document with all its segments. Nearly every value is a function of sums
over the units (a mean, a ratio, BLEU), so a thousand resamples are one product of matrices. A percentile of pooled
tokens is a weighted percentile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Floats, Ints, Ragged
from lagging.errors import UsageError, counted
from lagging.stats.resamples import on_grid, order

__all__ = ["Aggregation", "Estimator", "Quantile", "Ratio", "Sums", "Units", "estimator_of_sums", "evaluate", "linear"]

Aggregation = Literal["mean", "ratio"] | Callable[[Floats], Floats]
"""From the sums of the columns to a value: the mean of the first column, the first sum over the second, or a function
of the sums along the last axis."""

BLOCK = 256
"""The number of sorted values of a quantile that are counted together before one of them is searched for."""


@dataclass(frozen=True)
class Units:
    """What is resampled.

    Attributes:
        resample: "segment" or "document".
        n: the number of units.
        index: the unit of each segment; units are numbered in the order of resampling.
    """

    resample: str
    n: int
    index: Ints

    @classmethod
    def in_order(cls, n: int) -> Units:
        """Segments that are resampled in the order in which they are."""
        return cls("segment", n, np.arange(n))

    @classmethod
    def segments(cls, ids: Sequence[Any] | npt.NDArray[Any]) -> Units:
        """Segments in the order of their ids.

        Example:
            >>> Units.segments(["10", "9"]).index
            array([1, 0])
        """
        index = np.empty(len(ids), dtype=np.int64)
        index[order(ids)] = np.arange(len(ids))
        return cls("segment", len(ids), index)

    @classmethod
    def documents(cls, documents: Iterable[Any], ids: Iterable[Any]) -> Units:
        """Documents in the order of their names; `ids` names the segments in errors.

        Raises:
            UsageError: a segment has no document.

        Example:
            >>> Units.documents(["b", "a", "b"], [1, 2, 3])
            Units(resample='document', n=2, index=array([1, 0, 1]))
        """
        names = list(documents)
        without = [name for name, document in zip(ids, names, strict=True) if document is None]
        if without:
            raise UsageError(f"{counted(len(without), 'segment')} without a document, the first is {str(without[0])!r}")
        unique = list(dict.fromkeys(names))
        number = {unique[row]: unit for unit, row in enumerate(order(unique))}
        return cls("document", len(unique), np.array([number[name] for name in names], dtype=np.int64))

    def total(self, rows: Floats) -> Floats:
        """The sum over each unit's segments, whatever their order."""
        if self.resample == "segment":
            return rows[np.argsort(self.index)]
        first = np.argsort(self.index, kind="stable")
        return np.stack([np.bincount(self.index[first], on_grid(column[first]), self.n) for column in rows.T], axis=1)


@dataclass(frozen=True, eq=False)
class Sums:
    """A function of sums over the units.

    Attributes:
        rows: what each unit adds; the last column is the number of its segments that have a value.
        function: from sums, along the last axis, to values; NaN where no segment has a value.
    """

    rows: Floats
    function: Callable[[Floats], Floats]

    @property
    def n(self) -> int:
        """Number of units."""
        return len(self.rows)

    @property
    def width(self) -> int:
        """Number of sums."""
        return int(self.rows.shape[1])

    @property
    def n_defined(self) -> int:
        """Number of units that have a value."""
        return int(np.count_nonzero(self.defined))

    @cached_property
    def defined(self) -> npt.NDArray[np.bool_]:
        """Which units have a value."""
        return np.asarray(self.rows[:, -1] > 0)

    @property
    def weight(self) -> Floats:
        """The weight of each unit: the number of its segments that have a value."""
        return self.rows[:, -1]

    @cached_property
    def sums(self) -> Floats:
        """The sums over all units."""
        return np.asarray(self.rows.sum(axis=0))

    @cached_property
    def value(self) -> float:
        """The value of the whole sample: every unit counts once."""
        return float(self.function(self.sums))

    def values(self, counts: Floats) -> Floats:
        """The values of resamples, from how often each unit is in each of them."""
        return self.function(counts @ self.rows)

    def jackknife(self) -> Floats:
        """The value without each unit in turn."""
        return self.function(self.sums - self.rows)

    def gradient(self, sums: Floats) -> Floats:
        """The derivative of the value by each sum, by central differences."""
        step = np.maximum(np.abs(sums), 1.0) * 2.0**-17  # about the cube root of the machine precision
        slopes = []
        for column in range(self.width):
            up, down = sums.copy(), sums.copy()
            up[..., column] += step[..., column]
            down[..., column] -= step[..., column]
            slopes.append((self.function(up) - self.function(down)) / (up - down)[..., column])
        return np.stack(slopes, axis=-1)

    @cached_property
    def influence(self) -> Floats:
        """By how much each unit moves the value, to first order (linearisation); all of them add up to 0."""
        counts = np.ones((1, self.n))
        sums: Floats = counts @ self.rows
        with np.errstate(invalid="ignore"):  # without any value there is no slope
            slope = self.gradient(sums)
            mean = (slope * sums).sum(axis=1) / np.maximum(counts @ self.defined, 1)
            return np.asarray(np.where(self.defined, slope @ self.rows.T - mean[:, None], 0.0)[0])


class Ratio(Sums):
    """The first sum over the second; a mean is such a ratio too."""

    @classmethod
    def from_rows(cls, rows: Floats) -> Ratio:
        """From what each unit adds: numerator, denominator, and the number of its segments that have a value."""
        return cls(rows, _divide)

    @property
    def weight(self) -> Floats:
        """The weight of each unit: what it adds to the denominator."""
        return self.rows[:, 1]

    def gradient(self, sums: Floats) -> Floats:
        """The exact derivatives: (1, −ratio) / denominator."""
        top, bottom = sums[..., 0], sums[..., 1]
        out = np.zeros(sums.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            out[..., 0], out[..., 1] = 1 / bottom, -top / bottom**2
        return out


def standard_error(influence: Floats, defined: npt.NDArray[np.bool_]) -> float:
    """√(m/(m−1) Σ u²), with the influence u of each of the m units that have a value (Binder 1983)."""
    m = float(np.count_nonzero(defined))
    return float(np.sqrt((influence**2).sum() * m / (m - 1))) if m > 1 else np.nan


@dataclass(frozen=True, eq=False)
class Quantile:
    """A percentile of the values of all tokens, as `np.percentile` interpolates it.

    Attributes:
        sorted_values: the values of all tokens.
        unit: the unit of each of these tokens.
        n: number of units.
        p: the percentile, from 0 to 100.
    """

    sorted_values: Floats
    unit: Ints
    n: int
    p: float

    @classmethod
    def make(cls, rows: Ragged, units: Units, p: float) -> Quantile:
        """Sort the tokens of all segments once."""
        unit = np.repeat(units.index, rows.lengths)
        ascending = np.lexsort((unit, rows.values))
        return cls(rows.values[ascending], unit[ascending], units.n, p)

    @cached_property
    def value(self) -> float:
        """The percentile of all tokens."""
        return float(np.percentile(self.sorted_values, self.p)) if len(self.sorted_values) else np.nan

    @property
    def n_defined(self) -> int:
        """Number of units that have a value."""
        return len(np.unique(self.unit))

    @cached_property
    def blocks(self) -> Floats:
        """The number of values that each unit has in each block; a product of matrices counts blocks."""
        block = np.arange(len(self.unit)) // BLOCK
        size = self.n * (int(block[-1]) + 1)
        return np.bincount(self.unit * (size // self.n) + block, minlength=size).reshape(self.n, -1).astype(np.float64)

    def values(self, counts: Floats) -> Floats:
        """The values of resamples, from how often each unit is in each of them."""
        if not len(self.unit):
            return np.full(len(counts), np.nan)
        below = np.cumsum(counts @ self.blocks, axis=1)
        rank = np.maximum(below[:, -1] - 1, 0) * (self.p / 100)
        first = np.floor(rank)
        low, high = (self._at(counts, below, position) for position in (first, np.minimum(first + 1, below[:, -1] - 1)))
        out = low + (high - low) * (rank - first)
        return np.where(below[:, -1] > 0, out, np.nan)

    def _at(self, counts: Floats, below: Floats, rank: Floats) -> Floats:
        """The value of a rank, counted from 0, in each resample."""
        last = len(self.unit) - 1
        block = np.minimum((below <= rank[:, None]).sum(axis=1), below.shape[1] - 1)
        before = np.where(block > 0, np.take_along_axis(below, np.maximum(block - 1, 0)[:, None], axis=1)[:, 0], 0)
        positions = np.minimum(block[:, None] * BLOCK + np.arange(BLOCK), last)
        inside = np.cumsum(np.take_along_axis(counts, self.unit[positions], axis=1), axis=1)
        offset = np.minimum((inside <= (rank - before)[:, None]).sum(axis=1), BLOCK - 1)
        return np.asarray(self.sorted_values[np.minimum(block * BLOCK + offset, last)])

    def share_below(self) -> Ratio:
        """The share of tokens up to the value: a ratio of sums, which has a standard error as a percentile has not."""
        total = np.bincount(self.unit, minlength=self.n).astype(np.float64)
        below = np.bincount(self.unit, self.sorted_values <= self.value, self.n)
        return Ratio.from_rows(np.stack([below, total, total], axis=1))

    @cached_property
    def influence(self) -> Floats:
        """By how much each unit moves the value, up to a factor (the density) that all units have in common."""
        return -self.share_below().influence


Estimator = Sums | Quantile


def linear(estimator: Estimator) -> Sums:
    """What has a standard error: the estimator itself; for a percentile, the share of tokens up to it."""
    return estimator.share_below() if isinstance(estimator, Quantile) else estimator


def _divide(sums: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(sums[..., 1] != 0, sums[..., 0] / sums[..., 1], np.nan))


def estimator_of_sums(statistics: Floats, aggregation: Aggregation, units: Units) -> Sums | str:
    """The estimator of a function of column sums; or the reason why there is none, in words.

    Args:
        statistics: a row per segment; NaN where it has no value.
        aggregation: from the sums of the columns to a value.
        units: what is resampled.

    Example:
        >>> estimator = estimator_of_sums(np.array([[1.0], [2.0], [6.0]]), "mean", Units.in_order(3))
        >>> estimator.value, estimator.values(np.array([[2, 1, 0], [0, 1, 2]]))
        (3.0, array([1.33333333, 4.66666667]))
    """
    defined = np.logical_not(np.isnan(statistics).any(axis=1))
    if not np.isfinite(statistics[defined]).all():
        return "some segments have an infinite value"
    rows = np.column_stack([np.where(defined[:, None], statistics, 0.0), defined])
    return estimator_of_unit_sums(units.total(rows), aggregation)


def estimator_of_unit_sums(rows: Floats, aggregation: Aggregation) -> Sums:
    """The same from the sums of each unit; the last column is the number of its segments that have a value."""
    rows = on_grid(rows)
    if not callable(aggregation):
        columns = [0, 1, -1] if aggregation == "ratio" else [0, -1, -1]
        return Ratio.from_rows(np.ascontiguousarray(rows[:, columns]))
    return Sums(rows, _where_defined(aggregation))


def _where_defined(function: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    """The function of the sums without the last one, which is a count: NaN where that is 0."""

    def values(sums: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(sums[..., -1] > 0, function(sums[..., :-1]), np.nan)

    return values


def evaluate(estimators: Sequence[Estimator], counts: Floats) -> Floats:
    """The value of each estimator (columns) in each resample (rows): the sums of all of them in one product."""
    rows = [e.rows for e in estimators if isinstance(e, Sums)]
    stacked = np.concatenate([np.zeros((counts.shape[1], 0)), *rows], axis=1)
    sums = iter(np.split(counts @ stacked, np.cumsum([part.shape[1] for part in rows[:-1]], dtype=np.int64), axis=1))
    columns = [e.function(next(sums)) if isinstance(e, Sums) else e.values(counts) for e in estimators]
    return np.stack(columns, axis=1) if columns else np.empty((len(counts), 0))
