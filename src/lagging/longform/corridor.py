# SPDX-License-Identifier: Apache-2.0
r"""Paths through the table of reference and hypothesis tokens, and the corridor in which the best one is looked for.

Rows are reference tokens, columns hypothesis tokens. A path goes from the upper left to the lower right; a step down or
to the right is free, a diagonal step earns what its two tokens are worth to each other. Costs of insertions and
deletions need no place here: a path with p pairs has n − p and m − p of them, so that a cost c of each is the same as
2c more for every pair. Levenshtein's distance is n + m − the best sum, if equal tokens are worth 2 and others 1.

Where a path crosses the end of a reference segment, the stream is cut, and it earns what the potential of that boundary
gives for the column. So time, punctuation, or whatever else speaks for a boundary, enters the same sum as the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from lagging.data.ragged import Floats, Ints

__all__ = ["Corridor", "Flat", "Pairs", "Path", "Potential", "block_most", "edit_path"]


class Pairs(Protocol):
    """What pairs of tokens are worth."""

    def rows(self, first: int, low: Sequence[int], high: Sequence[int]) -> list[Any]:
        """Of row `first` and those after it, the worth of the pairs in the columns from max(low, 1) to high."""

    @property
    def width(self) -> int:
        """How many columns make a block, outside of a corridor."""

    @property
    def ceilings(self) -> tuple[Any, Ints]:
        """The largest worth in each block of columns, but at least 0, for every kind of row; and each row's kind."""


class Potential(Protocol):
    """What the end of a segment earns; columns count the hypothesis tokens before it."""

    def at(self, k: int, columns: slice) -> Any:
        """What the end of segment k (from 0) earns at each column of a slice."""

    def most(self, k: int, width: int) -> Any:
        """No less than the end of segment k earns anywhere in each block of `width` columns."""


class Flat:
    """The potential that is the same everywhere."""

    def at(self, k: int, columns: slice) -> float:
        """Zero."""
        return 0.0

    def most(self, k: int, width: int) -> float:
        """Zero."""
        return 0.0


def block_most(values: Any, width: int) -> Floats:
    """The largest value in each block of `width` columns; the last block may be shorter.

    Example:
        >>> block_most([1, 3, 2, 0, 5], 2)
        array([3., 2., 5.])
    """
    padded = np.full(-(-len(values) // width) * width, -np.inf)
    padded[: len(values)] = values
    most: Floats = padded.reshape(-1, width).max(axis=1)
    return most


@dataclass(frozen=True)
class Path:
    """A path: the columns at which it comes into, and leaves, each row from 0 to the number of reference tokens.

    Attributes:
        low, high: first and last column in each row.
        pairs: reference token and hypothesis token of every diagonal step, shape (pairs, 2).
        boundaries: the column at which each segment begins, and the number of columns.
    """

    low: Ints
    high: Ints
    pairs: Ints = field(repr=False)
    boundaries: Ints


def edit_path(reference: Sequence[int], hypothesis: Sequence[int], ends: Ints) -> Path:
    """A path with the fewest edits, by rapidfuzz's bit-parallel alignment.

    Example:
        >>> path = edit_path([1, 2, 3], [1, 9, 2, 3], np.array([1, 3]))
        >>> path.low, path.high, path.boundaries
        (array([0, 1, 3, 4]), array([0, 2, 3, 4]), array([0, 2, 4]))
    """
    from rapidfuzz.distance import Levenshtein  # loaded only where streams are cut

    opcodes = [tuple(part) for part in Levenshtein.opcodes(reference, hypothesis)]
    diagonal = np.array([tag in ("equal", "replace") for tag, *_ in opcodes], dtype=bool)
    a, b, x, y = np.array([places for _, *places in opcodes], dtype=np.int64).reshape(-1, 4).T
    rows, within = _ranges(b - a)
    low = np.zeros(len(reference) + 1, dtype=np.int64)
    low[1:] = x[rows] + np.where(diagonal[rows], within + 1, 0)
    high = low.copy()
    high[a[a == b]] = y[a == b]
    of, along = _ranges(np.where(diagonal, b - a, 0))
    pairs = np.stack([a[of] + along, x[of] + along], axis=1)
    return Path(low, high, pairs, np.concatenate([[0], high[ends[:-1]], [len(hypothesis)]]))


def _ranges(lengths: Ints) -> tuple[Ints, Ints]:
    """For ranges of these lengths, end to end: which range each entry is in, and its place there."""
    which = np.repeat(np.arange(len(lengths)), lengths)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(lengths) - lengths, lengths)


@dataclass(frozen=True)
class Corridor:
    """The columns of each row that are looked at. A path in it never leaves it.

    Attributes:
        low, high: first and last column of each row; neither ever decreases.
        columns: number of hypothesis tokens.
        width: of the blocks of columns; the corridor begins and ends with whole blocks.
    """

    low: Ints
    high: Ints
    columns: int
    width: int = 1

    @classmethod
    def around(cls, path: Path, reach: int, width: int = 1, rows: int = 1) -> Corridor:
        """At least `reach` columns to the left and right of a path, with the same walls for every `rows` rows.

        Example:
            >>> Corridor.around(edit_path([1, 2, 3], [1, 9, 2, 3], np.array([3])), 1, 2)
            Corridor(low=array([0, 0, 2, 2]), high=array([1, 3, 4, 4]), columns=4, width=2)
        """
        columns = int(path.boundaries[-1])
        low = np.maximum(path.low - reach, 0) // width * width
        high = np.minimum((path.high + reach) // width * width + width - 1, columns)
        return cls.between(low, high, width, rows)

    @classmethod
    def between(cls, low: Ints, high: Ints, width: int = 1, rows: int = 1) -> Corridor:
        """From the first to the last column of each row, with the same walls for every `rows` rows.

        Example:
            >>> Corridor.between(np.array([0, 1, 3, 4]), np.array([0, 2, 3, 4]), rows=2)
            Corridor(low=array([0, 0, 3, 3]), high=array([2, 2, 4, 4]), columns=4, width=1)
        """
        first = np.arange(len(low)) // rows * rows
        last = np.minimum(first + rows, len(low)) - 1
        return cls(low[first], high[last], int(high[-1]), width)

    @classmethod
    def whole(cls, rows: int, columns: int) -> Corridor:
        """All columns of all rows."""
        return cls(np.zeros(rows + 1, dtype=np.int64), np.full(rows + 1, columns), columns)

    @property
    def is_whole(self) -> bool:
        """Whether there is nothing outside."""
        return bool(self.low[-1] == 0 and self.high[0] == self.columns)

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return int((self.high - self.low + 1).sum())
