# SPDX-License-Identifier: Apache-2.0
"""A score as a function of how often each unit counts: what a resample is worth, and how much each unit moves it.

A unit is what is resampled: a segment, or a document with all its segments. Nearly every metric is a function of sums
over the units (a mean, a ratio, BLEU), so that a thousand resamples are one product of matrices. A pooled percentile is
a weighted one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Floats, Ints, Ragged
from lagging.errors import UsageError, counted
from lagging.scoring.scores import Score
from lagging.stats.resamples import on_grid, order

__all__ = ["Estimator", "Quantile", "Sums", "Units", "estimator", "evaluate", "units_of"]

BLOCK = 256
"""How many of the sorted values of a quantile are counted together before one of them is looked for."""


@dataclass(frozen=True)
class Units:
    """What is resampled: the number of units, in the order of resampling, and which of them each segment is in."""

    by: str
    n: int
    of: Ints

    def total(self, rows: Floats) -> Floats:
        """The sum over each unit's segments, whatever their order."""
        if self.by == "segment":
            return rows[np.argsort(self.of)]
        first = np.argsort(self.of, kind="stable")
        return np.stack([np.bincount(self.of[first], on_grid(column[first]), self.n) for column in rows.T], axis=1)


def units_of(score: Score, by: str = "segment") -> Units:
    """The units of a score: its segments in the order of their ids, or its documents in that of their names."""
    if by == "segment":
        place = np.empty(score.n, dtype=np.int64)
        place[order(score.ids)] = np.arange(score.n)
        return Units(by, score.n, place)
    if by != "document":
        raise UsageError(f"an interval is by segment or by document, not by {by!r}")
    if score.documents is None:
        raise UsageError("the log does not say which document a segment belongs to: resample by segment")
    without = [name for name, document in zip(score.ids, score.documents, strict=True) if document is None]
    if without:
        raise UsageError(f"{counted(len(without), 'segment')} without a document, the first is {str(without[0])!r}")
    names = list(dict.fromkeys(score.documents.tolist()))
    place_of = {names[at]: rank for rank, at in enumerate(order(names))}
    return Units(by, len(names), np.array([place_of[name] for name in score.documents], dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Sums:
    """A function of sums over the units.

    Attributes:
        rows: what each unit adds; the last column is the number of its segments that have a value.
        function: sums, along the last axis, to values; NaN where no segment has one.
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
    def some(self) -> int:
        """Number of units that have a value."""
        return int(np.count_nonzero(self.there))

    @cached_property
    def there(self) -> npt.NDArray[np.bool_]:
        """Which units have a value."""
        return np.asarray(self.rows[:, -1] > 0)

    @property
    def weight(self) -> Floats:
        """How much each unit counts: by its segments."""
        return self.rows[:, -1]

    @cached_property
    def sums(self) -> Floats:
        """Over all units."""
        return np.asarray(self.rows.sum(axis=0))

    @cached_property
    def value(self) -> float:
        """Of all units, once each."""
        return float(self.function(self.sums))

    def values(self, counts: Floats) -> Floats:
        """Of resamples, given how often each has each unit."""
        return self.function(counts @ self.rows)

    def jackknife(self) -> Floats:
        """The value without each unit in turn."""
        return self.function(self.sums - self.rows)

    def gradient(self, sums: Floats) -> Floats:
        """By how much the value changes per sum, by central differences."""
        step = np.maximum(np.abs(sums), 1.0) * 2.0**-17  # the cube root of the precision
        slopes = []
        for column in range(self.width):
            up, down = sums.copy(), sums.copy()
            up[..., column] += step[..., column]
            down[..., column] -= step[..., column]
            slopes.append((self.function(up) - self.function(down)) / (up - down)[..., column])
        return np.stack(slopes, axis=-1)

    @cached_property
    def influence(self) -> Floats:
        """By how much each unit moves the value, to first order; they add up to 0."""
        return np.asarray(self.pull(np.ones((1, self.n)))[0])

    def errors(self, counts: Floats) -> Floats:
        """The standard error in each resample, by linearisation, with m/(m−1) for m units (Binder 1983)."""
        return standard_error(self.pull(counts), counts, self.there)

    def pull(self, counts: Floats) -> Floats:
        """By how much each unit moves the value of each resample, to first order."""
        sums: Floats = counts @ self.rows
        with np.errstate(invalid="ignore"):  # a resample without any value has no slope
            slope = self.gradient(sums)
            mean = (slope * sums).sum(axis=1) / np.maximum(counts @ self.there, 1)
            return np.where(self.there, slope @ self.rows.T - mean[:, None], 0.0)


class Ratio(Sums):
    """The first sum over the last but one; a mean is one too."""

    @classmethod
    def of(cls, rows: Floats) -> Ratio:
        """From what each unit adds: top, bottom, and the number of its segments that have a value."""
        return cls(rows, _divided)

    @property
    def weight(self) -> Floats:
        """How much each unit counts: by what it adds to the bottom."""
        return self.rows[:, 1]

    def gradient(self, sums: Floats) -> Floats:
        """Exact: (1, −R) / bottom."""
        top, bottom = sums[..., 0], sums[..., 1]
        out = np.zeros(sums.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            out[..., 0], out[..., 1] = 1 / bottom, -top / bottom**2
        return out


def standard_error(pull: Floats, counts: Floats, there: npt.NDArray[np.bool_]) -> Floats:
    """√(m/(m−1) Σ u²) over the m units of a resample that have a value."""
    m: Floats = counts @ there
    squares: Floats = (counts * pull**2).sum(axis=-1)
    return np.sqrt(squares * m / np.where(m > 1, m - 1, np.nan))


@dataclass(frozen=True, eq=False)
class Quantile:
    """A percentile of the values of all tokens, as `np.percentile` interpolates it.

    Attributes:
        sorted_values: of all tokens.
        unit: the unit of each.
        n: number of units.
        p: which percentile.
    """

    sorted_values: Floats
    unit: Ints
    n: int
    p: float

    @classmethod
    def make(cls, rows: Ragged, units: Units, p: float) -> Quantile:
        """Sort the tokens of all segments once."""
        unit = np.repeat(units.of, rows.lengths)
        up = np.lexsort((unit, rows.values))
        return cls(rows.values[up], unit[up], units.n, p)

    @cached_property
    def value(self) -> float:
        """Of all tokens."""
        return float(np.percentile(self.sorted_values, self.p)) if len(self.sorted_values) else np.nan

    @property
    def some(self) -> int:
        """Number of units that have a value."""
        return len(np.unique(self.unit))

    @cached_property
    def blocks(self) -> Floats:
        """How many values of each block each unit has: blocks are counted by a product of matrices."""
        block = np.arange(len(self.unit)) // BLOCK
        size = self.n * (int(block[-1]) + 1)
        return np.bincount(self.unit * (size // self.n) + block, minlength=size).reshape(self.n, -1).astype(np.float64)

    def values(self, counts: Floats) -> Floats:
        """Of resamples, given how often each has each unit."""
        if not len(self.unit):
            return np.full(len(counts), np.nan)
        below = np.cumsum(counts @ self.blocks, axis=1)
        rank = np.maximum(below[:, -1] - 1, 0) * (self.p / 100)
        first = np.floor(rank)
        low, high = (self._at(counts, below, place) for place in (first, np.minimum(first + 1, below[:, -1] - 1)))
        out = low + (high - low) * (rank - first)
        return np.where(below[:, -1] > 0, out, np.nan)

    def _at(self, counts: Floats, below: Floats, rank: Floats) -> Floats:
        """The value of that rank, from 0, in each resample."""
        last = len(self.unit) - 1
        block = np.minimum((below <= rank[:, None]).sum(axis=1), below.shape[1] - 1)
        before = np.where(block > 0, np.take_along_axis(below, np.maximum(block - 1, 0)[:, None], axis=1)[:, 0], 0)
        place = np.minimum(block[:, None] * BLOCK + np.arange(BLOCK), last)
        inside = np.cumsum(np.take_along_axis(counts, self.unit[place], axis=1), axis=1)
        offset = np.minimum((inside <= (rank - before)[:, None]).sum(axis=1), BLOCK - 1)
        return np.asarray(self.sorted_values[np.minimum(block * BLOCK + offset, last)])

    def below(self) -> Ratio:
        """The share of tokens up to the value: a ratio of sums, with the standard error that a percentile lacks."""
        total = np.bincount(self.unit, minlength=self.n).astype(np.float64)
        some = np.bincount(self.unit, self.sorted_values <= self.value, self.n)
        return Ratio.of(np.stack([some, total, total], axis=1))

    @cached_property
    def influence(self) -> Floats:
        """By how much each unit moves the value, up to a factor, the density, that all have in common."""
        return -self.below().influence


Estimator = Sums | Quantile


def linear(e: Estimator) -> Sums:
    """What has a standard error: the estimator itself; for a percentile, the share of tokens up to it."""
    return e.below() if isinstance(e, Quantile) else e


def _divided(sums: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(sums[..., 1] != 0, sums[..., 0] / sums[..., 1], np.nan))


def estimator(score: Score, units: Units) -> Estimator | str:
    """A score as a function of how often each unit counts; or, in words, why it is none."""
    metric, statistics = score.resolved, score.statistics
    if isinstance(statistics, Ragged):
        p = float(str(metric.get(metric.quantile))) if metric.quantile else None
        if p is None:
            return "its function pools tokens in a way that cannot be resampled"
        return Quantile.make(statistics, units, p) if 0 < p < 100 else "the largest or smallest value has no interval"
    some = np.logical_not(np.isnan(statistics).any(axis=1))
    if not np.isfinite(statistics[some]).all():
        return "some segments have an infinite value"
    full = np.where(some[:, None], statistics, 0.0)
    if not callable(metric.aggregate):
        pair = full[:, :2] if metric.ratio else np.stack([full[:, 0], some], axis=1)
        return Ratio.of(on_grid(units.total(np.column_stack([pair, some]))))
    if metric.from_sums is None:
        return "its function is not one of sums, so that it cannot be resampled"
    return Sums(on_grid(units.total(np.column_stack([full, some]))), _defined(metric.from_sums))


def _defined(from_sums: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    """The function, which is not asked about sums over nothing."""

    def function(sums: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(sums[..., -1] > 0, from_sums(sums[..., :-1]), np.nan)

    return function


def evaluate(estimators: Sequence[Estimator], counts: Floats) -> Floats:
    """The value of each estimator (columns) in each resample (rows): the sums of all of them in one product."""
    rows = [e.rows for e in estimators if isinstance(e, Sums)]
    stacked = np.concatenate([np.zeros((counts.shape[1], 0)), *rows], axis=1)
    sums = iter(np.split(counts @ stacked, np.cumsum([part.shape[1] for part in rows[:-1]], dtype=np.int64), axis=1))
    columns = [e.function(next(sums)) if isinstance(e, Sums) else e.values(counts) for e in estimators]
    return np.stack(columns, axis=1) if columns else np.empty((len(counts), 0))
