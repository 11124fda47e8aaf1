# SPDX-License-Identifier: Apache-2.0
r"""The path with the largest sum, and a proof that no path outside the cells that were computed earns as much.

Only a corridor around a known path is computed exactly. Paths outside the corridor are bounded from above: columns are
grouped into blocks, and a row may earn the most that any column of the block offers. The bound is taken on through the
corridor where such a path comes back. If it is below the sum of the best path inside in the end, then that path is the
best of the whole table. Otherwise a corridor that is four times as wide is laid around the new path, until the proof
succeeds or the corridor is the whole table.

Text that follows its reference earns more inside than even the bound does outside. Then a narrow corridor is enough,
and time and memory grow with the length of the texts. Where a system repeated itself or wrote nothing, corridors become
wider.

The corridor is divided into rectangles, rows with the same walls. In a rectangle, what lies to the left does not depend
on what lies inside, and that not on what lies to the right; so each is computed for all rows before the next, and a row
takes few calls of NumPy. The last step of the best path to each cell is kept, in a byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Floats, Ints
from lagging.longform.corridor import Corridor, Flat, Pairs, Path, Potential

__all__ = ["Solution", "best", "optimum"]

WHOLE, KEPT = 1 << 18, 1 << 25
"""Up to so many cells, the whole table is computed; up to so many, the steps to all cells of a corridor are kept."""

REACH, WIDER = 64, 4
"""How many columns the first corridor goes to the left and right of its path, and how much wider the next one is."""

SHARE = 4
"""A corridor with more than one in so many cells of the table takes longer than the whole table without a bound."""

ROWS = 48
"""The most rows of a rectangle; more where steps are not kept."""

BATCH, BATCH_CELLS = 256, 1 << 21
"""The pairs of so many rows are evaluated together, or of fewer rows if these have more cells."""

PAIR, RIGHT = 0, 2
"""Steps to a cell; a step down is 1."""

SLACK = 1e-9
"""How much lower the bound must be than the best sum, relative to that."""

Steps = npt.NDArray[np.uint8]
Cuts = dict[int, tuple[int, Floats]]
"""By state that crosses a boundary: the segment, and the sum of a path that crosses it at each column."""


@dataclass(frozen=True)
class Solution:
    """The best path in a corridor.

    Attributes:
        path: the path.
        earned: its sum.
        corridor: where it was searched for.
        beyond: no path that leaves the corridor earns more than this.
    """

    path: Path
    earned: float
    corridor: Corridor
    beyond: float

    @property
    def proven(self) -> bool:
        """Whether every path that leaves the corridor earns less."""
        return self.beyond < self.earned - SLACK * max(1.0, abs(self.earned))


def optimum(
    pairs: Pairs,
    start: Path,
    ends: Ints,
    potential: Potential | None = None,
    *,
    gaps_first: bool = False,
    relaxed: Solution | None = None,
) -> Solution:
    """The path with the largest sum of all paths.

    Args:
        pairs: what pairs of tokens are worth.
        start: a path that the best one is probably near to.
        ends: the row in which each segment ends.
        potential: what the end of a segment earns.
        gaps_first: of equal paths, whether to take that which, seen from the end, leaves tokens out as soon as it can
            (first of the reference), instead of that which pairs them.
        relaxed: the optimum with a potential that is nowhere lower. Its bound holds here, too.
    """

    def solve(corridor: Corridor, beyond: float | None = None) -> Solution:
        return best(corridor, pairs, ends, potential, gaps_first=gaps_first, beyond=beyond)

    if relaxed is not None:
        solution = solve(relaxed.corridor, relaxed.beyond)
        if solution.proven:
            return solution
    rows, columns = len(start.low) - 1, int(start.boundaries[-1])
    cells = (rows + 1) * (columns + 1)
    path, reach = start, REACH
    while cells > WHOLE:
        corridor = Corridor.around(path, reach, pairs.width, rows=ROWS)
        if corridor.cells * SHARE > cells:
            break
        solution = solve(corridor)
        if solution.proven:
            return solution
        path, reach = solution.path, reach * WIDER
    return solve(Corridor.whole(rows, columns))


def best(
    corridor: Corridor,
    pairs: Pairs,
    ends: Ints,
    potential: Potential | None = None,
    *,
    gaps_first: bool = False,
    beyond: float | None = None,
) -> Solution:
    """The path with the largest sum in a corridor; `beyond` is computed unless it is known."""
    sweep = _Sweep(corridor, pairs, potential or Flat(), ends, gaps_first)
    earned, bound = sweep.run(bounded=beyond is None and not corridor.is_whole)
    return Solution(sweep.trace(), earned, corridor, bound if beyond is None else beyond)


@dataclass
class _Rectangle:
    """Consecutive rows of a corridor with the same walls.

    A rectangle has a state for each of its rows, and another for each boundary in a row, after it is crossed. State 0
    is the last one of the rectangle above; in the first rectangle, it is row 0.

    Attributes:
        first, last: the rows, from and before.
        low, high: the first and the last column.
        start: the values of state 0, from the column before `low` to `high`.
        steps: the last step of the best path to each column, by state from 1; None if they are not kept.
        cuts: the boundaries; None if they are not kept.
    """

    first: int
    last: int
    low: int
    high: int
    start: Floats
    steps: Steps | None = None
    cuts: Cuts | None = None


class _Sweep:
    """The values of a corridor, rectangle by rectangle."""

    def __init__(self, corridor: Corridor, pairs: Pairs, potential: Potential, ends: Ints, gaps_first: bool) -> None:
        self.corridor, self.pairs, self.potential, self.gaps_first = corridor, pairs, potential, gaps_first
        self.segments = len(ends)
        self.boundaries: dict[int, list[int]] = {}
        for k, end in enumerate(ends[:-1].tolist()):
            self.boundaries.setdefault(end, []).append(k)
        self.rectangles: list[_Rectangle] = []
        self.keep = corridor.cells <= KEPT

    def run(self, *, bounded: bool) -> tuple[float, float]:
        """Compute all values: the best sum, and, if `bounded`, no less than a path earns that leaves the corridor."""
        outside = _Outside(self.corridor, self.pairs, self.potential) if bounded else None
        above, low = np.zeros(0), 0
        for rectangle, worths in self._rectangles():
            if rectangle.first:
                known = above[max(rectangle.low - 1 - low, 0) :]
                begin = 0 if rectangle.low > low else 1
                rectangle.start[begin : begin + len(known)] = known
            segments, gains = self._gains(rectangle, rectangle.high, worths)
            values, steps, cuts = self._fill(rectangle, rectangle.high, segments, gains)
            if self.keep:
                rectangle.steps, rectangle.cuts = steps, cuts
            if outside is not None:
                outside.follow(rectangle, segments, gains, values, above)
            above, low = values[-1, 1:].copy(), rectangle.low
            self.rectangles.append(rectangle)
        return float(above[-1]), -np.inf if outside is None else float(outside.returned[-1])

    def _rectangles(self) -> Iterator[tuple[_Rectangle, list[Any]]]:
        """All rectangles, each with the worths of the pairs in its rows; row 0 has none."""
        low, high = self.corridor.low, self.corridor.high
        most = ROWS if self.keep else max(ROWS, isqrt(len(low) // 2))
        step = max(most, min(BATCH, BATCH_CELLS // int((high - low).max() + 1)) // most * most)
        for begin in range(0, len(low), step):
            lows, highs = low[begin : begin + step].tolist(), high[begin : begin + step].tolist()
            skip = 0 if begin else 1
            worths = self.pairs.rows(begin + skip, lows[skip:], highs[skip:])
            first = 0
            for row in range(1, len(lows) + 1):
                if row < len(lows) and row - first < most and (lows[row], highs[row]) == (lows[first], highs[first]):
                    continue
                start = np.full(highs[first] - lows[first] + 2, -np.inf if begin + first else 0.0)
                rectangle = _Rectangle(begin + first, begin + row, lows[first], highs[first], start)
                yield rectangle, worths[max(first - skip, 0) : row - skip]
                first = row

    def _gains(self, rectangle: _Rectangle, high: int, worths: list[Any]) -> tuple[list[int], list[Any]]:
        """By state from 1: the segment whose end it crosses, −1 for none; and what each column earns."""
        segments, gains, columns, row = [], [], slice(rectangle.low, high + 1), iter(worths)
        for i in range(rectangle.first, rectangle.last):
            if i:
                segments.append(-1)
                gains.append(next(row))
            for k in self.boundaries.get(i, ()):
                segments.append(k)
                gains.append(self.potential.at(k, columns))
        return segments, gains

    def _fill(
        self, rectangle: _Rectangle, high: int, segments: list[int], gains: list[Any]
    ) -> tuple[Floats, Steps, Cuts]:
        """The values of a rectangle up to column `high`, its steps and its boundaries."""
        wide = high - rectangle.low + 1
        values, sums = np.full((len(gains) + 1, wide + 1), -np.inf), np.full((len(gains), wide), -np.inf)
        values[0] = rectangle.start[: wide + 1]
        _advance(values, sums, segments, gains)
        cuts = {state + 1: (k, sums[state].copy()) for state, k in enumerate(segments) if k >= 0}
        here, above = values[1:, 1:], values[:-1, 1:]
        if self.gaps_first:
            steps = np.where(above < here, np.where(values[1:, :-1] < here, PAIR, RIGHT), 1).astype(np.uint8)
        else:
            steps = (sums < here).view(np.uint8)
            steps += steps & (above < here).view(np.uint8)
        return values, steps, cuts

    def _steps(self, rectangle: _Rectangle, column: int) -> tuple[Steps, Cuts]:
        """The steps and boundaries of a rectangle, at least up to a column."""
        if rectangle.steps is not None and rectangle.cuts is not None:
            return rectangle.steps, rectangle.cuts
        begin, high = max(rectangle.first, 1), min(rectangle.high, column)
        rows = rectangle.last - begin
        worths = self.pairs.rows(begin, [rectangle.low] * rows, [high] * rows)
        return self._fill(rectangle, high, *self._gains(rectangle, high, worths))[1:]

    def trace(self) -> Path:
        """The path back from the end."""
        rows, j = len(self.corridor.low) - 1, self.corridor.columns
        enter, leave = [0] * (rows + 1), [0] * (rows + 1)
        boundaries = np.zeros(self.segments + 1, dtype=np.int64)
        boundaries[-1] = j
        paired: list[int] = []
        for rectangle in reversed(self.rectangles):
            steps, cuts = self._steps(rectangle, j)
            low, wide, state, flat = rectangle.low, steps.shape[1], len(steps), steps.tobytes()
            for i in range(rectangle.last - 1, rectangle.first - 1, -1):
                leave[i] = j
                while state in cuts:
                    k, sums = cuts[state]
                    boundaries[k + 1] = j = low + int(sums[: j - low + 1].argmax())
                    state -= 1
                if i == 0:
                    break
                state -= 1
                begin = state * wide - low
                while (step := flat[begin + j]) == RIGHT:
                    j -= 1
                enter[i] = j
                if step == PAIR:
                    paired.append(i)
                    j -= 1
        first, ends = np.array(enter, dtype=np.int64), np.array(paired[::-1], dtype=np.int64)
        pairs = np.stack([ends - 1, first[ends] - 1], axis=1)
        return Path(first, np.array(leave, dtype=np.int64), pairs, boundaries)


def _advance(values: Floats, sums: Floats, segments: list[int], gains: list[Any]) -> None:
    """Compute the values of a rectangle, state by state.

    Args:
        values: by state; state 0 is known, and so is the first column, that before the rectangle.
        sums: by state from 1: the values before free steps, down and to the right. Column 0 has no pairs: −∞.
        segments, gains: by state from 1: the segment whose end it crosses, −1 for none; and what each column earns.
    """
    wide = sums.shape[1]
    rows, inner, before, out = list(values), list(values[:, 1:]), list(values[:, :wide]), list(sums)
    add, maximum, accumulate = np.add, np.maximum, np.maximum.accumulate
    for state, (k, gain) in enumerate(zip(segments, gains, strict=True)):
        total, here = out[state], inner[state + 1]
        if k < 0:
            if len(gain) == wide:
                add(before[state], gain, out=total)
            else:
                add(before[state][1:], gain, out=total[1:])
            maximum(total, inner[state], out=here)
        else:
            add(inner[state], gain, out=total)
            here[:] = total
        here = rows[state + 1]
        accumulate(here, out=here)


class _Outside:
    """An upper bound of what paths earn that have left the corridor.

    Attributes:
        bound: for such paths that are outside now, by block of columns: no less than any has earned up to the end of
            the block; −∞ for blocks inside.
        returned: for such paths that are inside again, by column: no less than any has earned.
        low, high: the first and the last column of the corridor.
        begin, end: the first block of the corridor, and the first one to its right.
    """

    def __init__(self, corridor: Corridor, pairs: Pairs, potential: Potential) -> None:
        self.columns, self.width, self.potential = corridor.columns, corridor.width, potential
        self.ceilings, self.kinds = pairs.ceilings
        self.blocks = corridor.columns // corridor.width + 1
        self.bound, self.returned = np.full(self.blocks, -np.inf), np.zeros(0)
        self.low, self.high, self.begin, self.end = 0, -1, 0, 0

    def follow(
        self, rectangle: _Rectangle, segments: list[int], gains: list[Any], values: Floats, above: Floats
    ) -> None:
        """Take the bound over the rows of a rectangle.

        Args:
            rectangle: where it lies.
            segments, gains, values: by state, as in `_advance`.
            above: the values of the row above it, in the columns of the rectangle above.
        """
        start, leaving = self._move_walls(rectangle, above)
        most, exits = self._most(rectangle, segments), values[:, -1].tolist()
        begin, end, states, wide = self.begin, self.end, len(values), len(start)
        # one array: blocks to the left, or a column of −∞; columns inside; the exit; blocks to the right
        first = max(begin, 1)
        last = first + wide
        bounds = np.full((states, last + 1 + self.blocks - end), -np.inf)
        bounds[0, :begin], bounds[0, first:last] = self.bound[:begin], start
        bounds[0, last], bounds[0, last + 1 :] = leaving, self.bound[end:]
        added = np.zeros((states - 1, 1 + self.blocks - end))
        added[:, 1:] = most[:, end:]
        rows, left, before = list(bounds), list(bounds[:, :begin]), list(bounds[:, first - 1 : last - 1])
        inside, right = list(bounds[:, first:last]), list(bounds[:, last:])
        sums = np.full(wide, -np.inf)
        add, maximum, accumulate = np.add, np.maximum, np.maximum.accumulate
        row = rows[0]
        accumulate(row, out=row)
        steps = enumerate(zip(segments, gains, most[:, :begin].astype(np.float64), added, strict=True))
        for state, (k, gain, more, beyond) in steps:
            here, row = inside[state + 1], rows[state + 1]
            if k < 0:
                add(before[state][wide - len(gain) :], gain, out=sums[wide - len(gain) :])
                maximum(sums, inside[state], out=here)
            else:
                add(inside[state], gain, out=here)
            if begin:
                add(left[state], more, out=left[state + 1])
            add(right[state], beyond, out=right[state + 1])
            row[last] = exits[state + 1]
            accumulate(row, out=row)
        self.bound[:begin], self.returned, self.bound[end:] = row[:begin], row[first:last].copy(), row[last + 1 :]

    def _move_walls(self, rectangle: _Rectangle, above: Floats) -> tuple[Floats, float]:
        """Of the row above: what paths have earned that are inside again, and the most of those that leave there."""
        width, low, high, begin, end = self.width, self.low, self.high, self.begin, self.end
        self.low, self.high, self.begin = rectangle.low, rectangle.high, rectangle.low // width
        self.end = self.blocks if rectangle.high == self.columns else (rectangle.high + 1) // width
        start = np.full(rectangle.high - rectangle.low + 1, -np.inf)
        if not rectangle.first:
            self.bound[self.end :] = 0.0
            return start, 0.0
        latest = np.maximum(above, self.returned)
        self.bound[begin : self.begin] = latest[np.arange(begin, self.begin) * width + width - 1 - low]
        kept = self.returned[self.low - low :]
        start[: len(kept)] = kept
        start[len(kept) :] = np.repeat(self.bound[end : self.end], width)[: self.high - high]
        self.bound[self.begin : self.end] = -np.inf
        return start, float(latest[-1])

    def _most(self, rectangle: _Rectangle, segments: list[int]) -> Floats:
        """The most that a column of each block earns, by state from 1."""
        rows: Floats = self.ceilings[self.kinds[max(rectangle.first, 1) - 1 : rectangle.last - 1]]
        if len(rows) == len(segments):
            return rows
        most = np.empty((len(segments), self.blocks))
        most[np.array(segments) < 0] = rows
        for state, k in enumerate(segments):
            if k >= 0:
                most[state] = self.potential.most(k, self.width)
        return most
