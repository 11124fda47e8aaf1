# SPDX-License-Identifier: Apache-2.0
r"""The path of the largest sum, with a proof that no other path earns as much.

Only a corridor around a path that is known already is computed exactly. Beside it, in the same pass, an upper bound is
computed for every path that leaves the corridor anywhere: outside, columns are taken together in blocks of a few, and a
row may earn the most that any column of the block offers. If that bound is below what the best path inside earns, then
every best path lies inside, and the one that was found is the optimum of the whole table. Otherwise the corridor is
laid around the new path, four times as wide, until the bound proves it or the corridor is the whole table.

Text that follows its reference earns more inside than even the bound does outside, so that a narrow corridor is proof
enough, and time and memory grow with the length of the texts. Where a system was stuck in a loop, or silent, corridors
become as wide as that takes. Values are kept for some rows only, and the rows between are computed again on the way
back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lagging.data.ragged import Floats, Ints
from lagging.longform.corridor import Corridor, Flat, Pairs, Path, Potential

__all__ = ["best", "optimum"]

WHOLE, KEPT = 1 << 18, 1 << 23
"""Up to so many cells, the whole table is computed; up to so many, all values of a corridor are kept."""

REACH, WIDER = 64, 4
"""How many columns the first corridor goes to the left and right of its path, and how much wider the next one is."""

ROWS = 256
"""Rows between those whose values are kept."""


def optimum(
    pairs: Pairs, start: Path, ends: Ints, potential: Potential | None = None, *, gaps_first: bool = False
) -> Path:
    """The path of the largest sum of all there are.

    Args:
        pairs: what pairs of tokens are worth.
        start: a path that the best one is probably near to.
        ends: the row in which each segment ends.
        potential: what the end of a segment earns.
        gaps_first: of equal paths, whether to take that which, seen from the end, leaves tokens out as soon as it can
            (first of the reference), instead of that which pairs them.
    """
    rows, columns = len(start.low) - 1, int(start.boundaries[-1])
    cells = (rows + 1) * (columns + 1)
    path, reach = start, REACH
    while cells > WHOLE:
        corridor = Corridor.around(path, reach, pairs.width)
        if corridor.cells * 2 > cells:
            break
        path, proven = best(corridor, pairs, ends, potential, gaps_first=gaps_first)
        if proven:
            return path
        reach *= WIDER
    return best(Corridor.whole(rows, columns), pairs, ends, potential, gaps_first=gaps_first)[0]


def best(
    corridor: Corridor, pairs: Pairs, ends: Ints, potential: Potential | None = None, *, gaps_first: bool = False
) -> tuple[Path, bool]:
    """The path of the largest sum in a corridor, and whether every path that leaves the corridor earns less."""
    sweep = _Sweep(corridor, pairs, potential or Flat(), ends)
    earned, beyond = sweep.run()
    return sweep.trace(gaps_first), beyond < earned - 1e-9 * max(1.0, abs(earned))


@dataclass
class _Chunk:
    """Some rows, and what the best path to each cell of theirs has earned.

    Attributes:
        first, last: the rows, from and before.
        low, above: the first column of the row above them, and its values; of row 0, nothing.
        worths: by row, but for row 0, what the pairs in it are worth.
        rows: by row, the values before the boundaries in it are crossed.
        crossed: by row, the boundaries in it, and what they leave of the path to each column.
        after: by row, the values after its boundaries.
    """

    first: int
    last: int
    low: int
    above: Floats
    worths: list[Any] = field(default_factory=list)
    rows: list[Floats] = field(default_factory=list)
    crossed: dict[int, list[tuple[int, Floats]]] = field(default_factory=dict)
    after: dict[int, Floats] = field(default_factory=dict)


class _Sweep:
    """The values of a corridor, row by row."""

    def __init__(self, corridor: Corridor, pairs: Pairs, potential: Potential, ends: Ints) -> None:
        self.corridor, self.pairs, self.potential = corridor, pairs, potential
        self.low, self.high = corridor.low.tolist(), corridor.high.tolist()
        self.segments = len(ends)
        self.cuts: dict[int, list[int]] = {}
        for k, end in enumerate(ends[:-1].tolist()):
            self.cuts.setdefault(end, []).append(k)
        self.chunks: list[_Chunk] = []
        self.keep = corridor.cells <= KEPT

    def run(self) -> tuple[float, float]:
        """What the best path inside earns, and more than any path earns that goes outside."""
        corridor, rows = self.corridor, len(self.low)
        front = _Front(corridor.columns, None if corridor.is_whole else corridor.width)
        most = None if corridor.is_whole else self.pairs.ceilings
        for first in range(0, rows, ROWS):
            above = front.inside().copy() if first else np.empty(0)
            chunk = _Chunk(first, min(first + ROWS, rows), front.low, above)
            self._fill(chunk, front, most, self.keep, corridor.columns)
            self.chunks.append(chunk)
        return front.ends()

    def _fill(self, chunk: _Chunk, front: _Front, most: tuple[Any, Ints] | None, keep: bool, column: int) -> None:
        """Move a front over the rows of a chunk, up to a column, and keep its values if asked to."""
        lows = self.low[chunk.first : chunk.last]
        highs = [min(high, column) for high in self.high[chunk.first : chunk.last]]
        begin = max(chunk.first, 1)
        worths = self.pairs.rows(begin, lows[begin - chunk.first :], highs[begin - chunk.first :])
        if keep:
            chunk.worths = worths
        for i, low, high in zip(range(chunk.first, chunk.last), lows, highs, strict=True):
            if i == 0:
                front.begin(high)
            else:
                front.step(low, high, worths[i - begin], None if most is None else most[0][most[1][i - 1]])
            if keep:
                chunk.rows.append(front.inside().copy())
            for k in self.cuts.get(i, ()):
                gains = front.cross(k, self.potential)
                if keep:
                    chunk.crossed.setdefault(i, []).append((k, gains))
            if keep and i in self.cuts:
                chunk.after[i] = front.inside().copy()

    def _values(self, chunk: _Chunk, column: int) -> _Chunk:
        """The chunk with all of its values up to a column."""
        if chunk.rows:
            return chunk
        front = _Front(column, None)
        if chunk.first:
            front.continue_from(chunk.low, chunk.above[: column - chunk.low + 1])
        again = _Chunk(chunk.first, chunk.last, chunk.low, chunk.above)
        self._fill(again, front, None, True, column)
        return again

    def trace(self, gaps_first: bool) -> Path:
        """The path back from the end."""
        rows, j = len(self.low) - 1, self.corridor.columns
        enter, leave = np.zeros(rows + 1, dtype=np.int64), np.zeros(rows + 1, dtype=np.int64)
        boundaries = np.zeros(self.segments + 1, dtype=np.int64)
        boundaries[-1] = j
        pairs: list[tuple[int, int]] = []
        for chunk in reversed(self.chunks):
            chunk = self._values(chunk, j)
            for i in range(chunk.last - 1, chunk.first - 1, -1):
                leave[i] = j
                low, here = self.low[i], chunk.rows[i - chunk.first]
                for k, gains in reversed(chunk.crossed.get(i, [])):
                    j = low + int(np.argmax(gains[: j - low + 1]))
                    boundaries[k + 1] = j
                if i == 0:
                    break
                above, left = self._above(chunk, i)
                worth = chunk.worths[i - max(chunk.first, 1)]
                right, first = left + len(above) - 1, max(low, 1)
                while True:
                    value = here[j - low]
                    pair = first <= j <= right + 1 and j > left and above[j - 1 - left] + worth[j - first] >= value
                    skip = left <= j <= right and above[j - left] >= value
                    back = j > low and here[j - 1 - low] >= value
                    if pair and not (gaps_first and (skip or back)):
                        enter[i] = j
                        j -= 1
                        pairs.append((i - 1, j))
                        break
                    if skip:
                        enter[i] = j
                        break
                    j -= 1
        return Path(enter, leave, np.array(pairs[::-1], dtype=np.int64).reshape(-1, 2), boundaries)

    def _above(self, chunk: _Chunk, i: int) -> tuple[Floats, int]:
        """The values of the row above row i, after its boundaries, and its first column."""
        if i == chunk.first:
            return chunk.above, chunk.low
        before = chunk.after.get(i - 1)
        return chunk.rows[i - 1 - chunk.first] if before is None else before, self.low[i - 1]


class _Front:
    """The values of one row, and of what lies outside the corridor in it.

    Attributes:
        row: by column, what a path inside has earned; in a second lane, if there is an outside, more than any path has
            that was outside before.
        far: by block of columns outside the corridor, more than any path has earned up to the end of the block.
    """

    def __init__(self, columns: int, width: int | None) -> None:
        self.row = np.full((1 if width is None else 2, columns + 1), -np.inf)
        self.width = width or 1
        self.far = None if width is None else np.full(columns // width + 1, -np.inf)
        self.low, self.high = 0, -1

    def begin(self, high: int) -> None:
        """Row 0: all columns can be reached, and nothing has been earned."""
        self.row[0, : high + 1] = 0.0
        if self.far is not None:
            self.far[high // self.width + 1 :] = 0.0
        self._look(0, high)

    def continue_from(self, low: int, values: Floats) -> None:
        """A row whose values are known."""
        self.row[0, low : low + len(values)] = values
        self._look(low, low + len(values) - 1)

    def inside(self) -> Floats:
        """The values of paths that never left the corridor."""
        values: Floats = self.here[0]
        return values

    def ends(self) -> tuple[float, float]:
        """What the best path inside earned at the end, and the bound for the others."""
        return float(self.row[0, -1]), float(self.row[1, -1]) if len(self.row) > 1 else -np.inf

    def _look(self, low: int, high: int) -> None:
        """Keep views of the row between two walls, and of what lies beyond them: walls stay for many rows."""
        self.low, self.high, first = low, high, max(low, 1)
        self.here = self.row[:, low : high + 1]
        self.after, self.before = self.row[:, first : high + 1], self.row[:, first - 1 : high]
        self.first, self.beyond = low // self.width, high // self.width + 1
        if self.far is not None:
            self.left, self.right = self.far[: self.first], self.far[self.beyond :]

    def step(self, low: int, high: int, worth: Any, most: Any) -> None:
        """Go to the next row."""
        old = self.low
        if low != old or high != self.high:
            self._move(low, high)
            self._look(low, high)
        if most is not None:
            if low:
                self.row[1, low - 1] = self.far[self.first - 1]  # type: ignore[index]  # a pair may lead back inside
            self.left += most[: self.first]
            self.right += most[self.beyond :]
        np.maximum(self.after, self.before + worth, out=self.after)
        if low != old:
            self.row[:, old:low] = -np.inf
        self._spread()

    def cross(self, k: int, potential: Potential) -> Floats:
        """Cross the end of segment k; what each column has earned if it is crossed there."""
        self.here += potential.at(k, slice(self.low, self.high + 1))
        gains: Floats = self.here[0].copy()
        if self.far is not None:
            self.far += potential.most(k, self.width)
        self._spread()
        return gains

    def _move(self, low: int, high: int) -> None:
        """Let blocks come into the corridor on the right, and leave it on the left."""
        row, far, width = self.row, self.far, self.width
        if far is None:
            return
        begin, end = self.high // width + 1, high // width + 1
        if end > begin:
            row[1, self.high + 1 : high + 1] = np.repeat(far[begin:end], width)[: high - self.high]
            far[begin:end] = -np.inf
        begin, end = self.low // width, low // width
        if end > begin:
            far[begin:end] = row[:, begin * width + width - 1 : end * width : width].max(axis=0)

    def _spread(self) -> None:
        """Steps to the right are free, within the corridor and over its walls."""
        here, outside = self.here, self.far is not None
        if outside and self.first:
            np.maximum.accumulate(self.left, out=self.left)
            here[1, 0] = max(here[1, 0], self.left[-1])
        np.maximum.accumulate(here, axis=1, out=here)
        if outside and len(self.right):
            self.right[0] = max(self.right[0], here[0, -1], here[1, -1])
            np.maximum.accumulate(self.right, out=self.right)
