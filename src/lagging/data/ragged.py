# SPDX-License-Identifier: Apache-2.0
"""Uneven rows as two flat arrays: the only module that knows that rows are uneven.

Rows of one length form a rectangle. A kernel is written once, as NumPy arithmetic on a rectangle
(rows × tokens), and `Ragged` applies it to each rectangle in turn: no padding, no masks, no loop over rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, overload

import numpy as np
import numpy.typing as npt

__all__ = ["Ragged"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Kernel = Callable[..., Floats]

TOKENS_PER_RECTANGLE = 1 << 15
"""Rectangles of at most this many tokens (256 KB), so that a kernel's temporaries stay in the cache."""


class Ragged:
    """Rows of different lengths: `values`, end to end, and `offsets`, where each row begins.

    Example:
        >>> r = Ragged.from_rows([[3, 4, 4], [], [1]])
        >>> r.lengths
        array([3, 0, 1])
        >>> r[0]
        array([3., 4., 4.])
        >>> r.by_row(lambda g, x: g.sum(axis=1) / x[:, 0], np.array([4.0, 4.0, 4.0]))   # empty rows have no value
        array([2.75,  nan, 0.25])
    """

    def __init__(self, values: npt.ArrayLike, offsets: npt.ArrayLike) -> None:
        # views, so that the caller's own arrays stay writable
        self.values = np.ascontiguousarray(values, dtype=np.float64).view()
        self.offsets: Ints = np.ascontiguousarray(offsets, dtype=np.int64).view()
        self.values.flags.writeable = False
        self.offsets.flags.writeable = False
        whole = len(self.offsets) > 0 and self.offsets[0] == 0 and self.offsets[-1] == len(self.values)
        if not whole or (self.offsets[1:] < self.offsets[:-1]).any():
            raise ValueError(f"these offsets do not cut {len(self.values)} values into rows")

    @classmethod
    def _from_rectangles(cls, rectangles: list[Floats], like: Ragged) -> Ragged:
        """Rows, as many and as long as those of another, that so far exist as rectangles only."""
        self = cls.__new__(cls)
        self.offsets, self._order, self._cuts = like.offsets, like._order, like._cuts
        self._rectangles = rectangles
        for rectangle in rectangles:
            rectangle.flags.writeable = False
        return self

    @cached_property
    def values(self) -> Floats:
        """The rows, end to end."""
        out = np.empty(self.offsets[-1])
        for (start, stop, length), rectangle in zip(self._cuts, self._rectangles, strict=True):
            _windows(out, length)[self.offsets[self._order[start:stop]]] = rectangle
        out.flags.writeable = False
        return out

    @classmethod
    def from_lengths(cls, values: npt.ArrayLike, lengths: npt.ArrayLike) -> Ragged:
        """Rows of the given lengths, cut from `values` in order."""
        lengths = np.asarray(lengths, dtype=np.int64)
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return cls(values, offsets)

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[float] | npt.NDArray[np.generic]]) -> Ragged:
        """Rows from Python sequences or arrays."""
        rows = list(rows)
        lengths = [len(row) for row in rows]
        values = np.fromiter(chain.from_iterable(rows), np.float64, sum(lengths))
        return cls.from_lengths(values, lengths)

    @classmethod
    def concat(cls, parts: Sequence[Ragged]) -> Ragged:
        """The rows of all parts, in order."""
        values = np.concatenate([part.values for part in parts])
        return cls.from_lengths(values, np.concatenate([part.lengths for part in parts]))

    @cached_property
    def lengths(self) -> Ints:
        """Length of each row."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> Floats: ...

    @overload
    def __getitem__(self, index: slice) -> Ragged: ...

    def __getitem__(self, index: int | slice) -> Floats | Ragged:
        """One row; or, for a slice, some rows."""
        if isinstance(index, slice):
            return self.take(index)
        n = len(self)
        if not -n <= index < n:
            raise IndexError(f"row {index} of {n}")
        index %= n
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    def __iter__(self) -> Iterator[Floats]:
        """The rows, one at a time."""
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        """The same rows."""
        if not isinstance(other, Ragged):
            return NotImplemented
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.values, other.values)

    __hash__ = None  # type: ignore[assignment]  # an array is not a key

    def __repr__(self) -> str:
        """`Ragged(3 rows, 4 values)`."""
        return f"Ragged({len(self)} rows, {len(self.values)} values)"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the two arrays, not what was derived from them."""
        return Ragged, (self.values, self.offsets)

    def take(self, index: slice | npt.NDArray[np.generic]) -> Ragged:
        """The rows at `index` (a slice, row numbers, or a mask), in that order."""
        if isinstance(index, slice) and index.step in (None, 1):
            start, stop, _ = index.indices(len(self))
            offsets = self.offsets[start : max(start, stop) + 1]
            return Ragged(self.values[offsets[0] : offsets[-1]], offsets - offsets[0])
        rows = np.arange(len(self))[index]
        lengths = self.lengths[rows]
        taken = Ragged.from_lengths(np.empty(lengths.sum()), lengths)
        where = np.repeat(self.offsets[rows] - taken.offsets[:-1], lengths) + np.arange(len(taken.values))
        return Ragged(self.values[where], taken.offsets)

    def tolist(self) -> list[list[float]]:
        """Rows as Python lists."""
        flat, ends = self.values.tolist(), self.offsets.tolist()
        return [flat[a:b] for a, b in pairwise(ends)]

    # ---- reading single places --------------------------------------------------------------------------------

    def last(self) -> Floats:
        """Last value of each row; NaN for an empty row."""
        out = np.full(len(self), np.nan)
        filled = self.lengths > 0
        out[filled] = self.values[self.offsets[1:][filled] - 1]
        return out

    def owner(self, flat: npt.NDArray[np.integer]) -> tuple[Ints, Ints]:
        """Row and position in the row of the values at the given flat places."""
        rows = np.searchsorted(self.offsets, flat, side="right") - 1
        return rows, flat - self.offsets[rows]

    def rows_with(self, flat: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        """Which rows have one of the values at the given flat places."""
        hit = np.zeros(len(self), dtype=bool)
        hit[self.owner(flat)[0]] = True
        return hit

    def pick(self, places: Ragged) -> Ragged:
        """The values at some places of each row, from 0.

        Example:
            >>> Ragged.from_rows([[5, 7], [9]]).pick(Ragged.from_rows([[0, 1, 1], [0]])).tolist()
            [[5.0, 7.0, 7.0], [9.0]]
        """
        flat = np.repeat(self.offsets[:-1], places.lengths) + places.values.astype(np.int64)
        return Ragged(self.values[flat], places.offsets)

    def falls(self) -> Ints:
        """Flat places of the values that are smaller than their predecessor in the same row."""
        down = np.zeros(len(self.values) + 1, dtype=bool)
        np.less(self.values[1:], self.values[:-1], out=down[1:-1])
        down[self.offsets] = False  # a first value has no predecessor
        return np.flatnonzero(down)

    # ---- changing rows ----------------------------------------------------------------------------------------

    def drop_last(self, rows: npt.NDArray[np.bool_]) -> Ragged:
        """Without the last value of the rows where `rows` is true."""
        rows = rows & (self.lengths > 0)
        keep = np.ones(len(self.values), dtype=bool)
        keep[self.offsets[1:][rows] - 1] = False
        return Ragged.from_lengths(self.values[keep], self.lengths - rows)

    def fill_empty(self, values: npt.NDArray[np.floating]) -> Ragged:
        """With one value, taken from `values`, in each row that was empty."""
        empty = self.lengths == 0
        filled = np.insert(self.values, self.offsets[:-1][empty], values[empty])
        return Ragged.from_lengths(filled, self.lengths + empty)

    # ---- arithmetic -------------------------------------------------------------------------------------------

    @cached_property
    def _order(self) -> Ints:
        """Row numbers by length, rows of one length in their own order."""
        # NumPy sorts small numbers much faster than large ones
        small = not len(self) or self.lengths.max() < 1 << 16
        return np.argsort(self.lengths.astype(np.uint16) if small else self.lengths, kind="stable")

    @cached_property
    def _cuts(self) -> list[tuple[int, int, int]]:
        """Where each rectangle begins and ends in `_order`, and the length of its rows; empty rows are in none."""
        ordered = self.lengths[self._order]
        bounds = [0, *(np.flatnonzero(np.diff(ordered)) + 1).tolist(), len(ordered)]
        cuts = []
        for first, last in pairwise(bounds):
            length = int(ordered[first]) if first < last else 0
            step = max(1, TOKENS_PER_RECTANGLE // max(length, 1))
            cuts += [(a, min(a + step, last), length) for a in range(first, last, step) if length]
        return cuts

    @cached_property
    def _rectangles(self) -> list[Floats]:
        """The values of the rows of one length, for each length that occurs except 0."""
        starts = self.offsets[self._order]
        # in this order of memory a row is summed alike, to the last bit, whichever rows are beside it
        rectangles = [_windows(self.values, length)[starts[a:b]] for a, b, length in self._cuts]
        for rectangle in rectangles:
            rectangle.flags.writeable = False  # every metric sees the same
        return rectangles

    def _with(self, columns: Sequence[npt.NDArray[np.generic] | Ragged]) -> Iterator[list[Any]]:
        """Each rectangle, and what belongs to its rows: of a Ragged the rectangle, of an array a column (rows, 1)."""
        beside: list[Any] = []
        for column in columns:
            if not isinstance(column, Ragged):
                beside.append(column.take(self._order)[:, None])
            elif column.offsets is self.offsets or np.array_equal(column.offsets, self.offsets):
                beside.append(column._rectangles)  # rows of the same lengths are cut into the same rectangles
            else:
                raise ValueError("rows of different lengths")
        for place, (start, stop, _) in enumerate(self._cuts):
            yield [self._rectangles[place], *(c[place] if isinstance(c, list) else c[start:stop] for c in beside)]

    def by_row(self, kernel: Kernel, *columns: npt.NDArray[np.generic] | Ragged) -> Floats:
        """One number per row: `kernel(rectangle, *columns)`, with columns of shape (rows, 1), or like the rectangle.

        Empty rows give NaN; the kernel never sees them.
        """
        ordered = np.full(len(self), np.nan)
        for (start, stop, _), given in zip(self._cuts, self._with(columns), strict=True):
            ordered[start:stop] = kernel(*given)
        out = np.empty(len(self))
        out[self._order] = ordered
        return out

    def by_token(self, kernel: Kernel, *columns: npt.NDArray[np.generic] | Ragged) -> Ragged:
        """One number per token: `kernel(rectangle, *columns)` of the rectangle's own shape."""
        return Ragged._from_rectangles([kernel(*given) for given in self._with(columns)], self)

    def keep(self, which: npt.NDArray[np.bool_]) -> Ragged:
        """Without the rows where `which` is false: they become empty."""
        return Ragged.from_lengths(self.values[np.repeat(which, self.lengths)], np.where(which, self.lengths, 0))


def _windows(values: Floats, length: int) -> Floats:
    """A view whose row i are the `length` values from place i on: rows are copied as wholes, not value by value."""
    step = values.itemsize
    return np.ndarray((len(values) - length + 1, length), np.float64, values, strides=(step, step))
