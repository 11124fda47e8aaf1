# SPDX-License-Identifier: Apache-2.0
r"""The best way through a corridor: the one alignment that every aligner is a case of.

Rows are reference tokens, columns hypothesis tokens. A path goes from the upper left to the lower right; a step down or
to the right is free, a diagonal step earns what its two tokens are worth to each other. Costs of insertions and
deletions need no place here: a path with p pairs has n − p and m − p of them, so that a cost c of each is the same as
2c more for every pair. Levenshtein's distance is n + m − the best sum, if equal tokens are worth 2 and others 1.

Where a path crosses the end of a reference segment, the stream is cut, and it earns what the potential of that boundary
gives for the column. So time, punctuation, or whatever else speaks for a boundary, enters the same sum as the words.

Only a corridor is looked at, some columns to the left and right of a path that is known already: time and memory grow
with the length of the texts, not with its square.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from lagging.ragged import Floats, Ints

__all__ = ["Corridor", "Path", "best", "edit_path"]

Potential = Callable[[int, slice], Any]
"""What each column of a slice is worth as the end of a segment; columns count the hypothesis tokens before."""


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
    found = [tuple(part) for part in Levenshtein.opcodes(reference, hypothesis)]
    diagonal = np.array([tag in ("equal", "replace") for tag, *_ in found], dtype=bool)
    a, b, x, y = np.array([places for _, *places in found], dtype=np.int64).reshape(-1, 4).T
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


REACH, CELLS = 64, 1 << 21
"""How many tokens a corridor goes to the left and right of a path: at least so many, and more in a short recording, as
long as it has no more cells than these."""


@dataclass(frozen=True)
class Corridor:
    """The columns of each row that are looked at.

    Attributes:
        low, high: first and last column of each row; neither ever decreases.
        columns: number of hypothesis tokens.
        ends: the row in which each segment ends.
    """

    low: Ints
    high: Ints
    columns: int
    ends: Ints

    @classmethod
    def around(cls, path: Path, ends: Ints, reach: int | None = None) -> Corridor:
        """Up to `reach` columns to the left and right of a path; if not given, as many as memory allows."""
        columns = int(path.boundaries[-1])
        reach = max(REACH, CELLS // (2 * len(path.low))) if reach is None else reach
        return cls(np.maximum(path.low - reach, 0), np.minimum(path.high + reach, columns), columns, ends)

    @cached_property
    def starts(self) -> Ints:
        """Where each row begins, if all of them lie end to end; and how many cells there are."""
        return np.concatenate([[0], np.cumsum(self.high - self.low + 1)])

    def touches(self, path: Path) -> bool:
        """Whether a path runs along a wall of the corridor, or through it, so that a better one may lie beyond."""
        left = (path.low <= self.low) & (self.low > 0)
        right = (path.high >= self.high) & (self.high < self.columns)
        return bool((left | right).any())


def _nothing(k: int, columns: slice) -> float:
    return 0.0


def best(corridor: Corridor, worth: Any, potential: Potential = _nothing, *, gaps_first: bool = False) -> Path:
    """The path of the largest sum.

    Args:
        corridor: where to look.
        worth: of each cell of the corridor, row by row, what its reference token (row − 1) and its hypothesis token
            (column − 1) earn as a pair.
        potential: what the end of a segment (from 0) at each column of a slice earns.
        gaps_first: of equal paths, whether to take that which, seen from the end, leaves tokens out as soon as it can
            (first of the reference), instead of that which pairs them.

    Example:
        >>> path = edit_path([1, 2, 3], [1, 9, 2, 3], np.array([1, 3]))
        >>> corridor = Corridor.around(path, np.array([1, 3]))
        >>> worth = np.array([0.0] * 5 + [0, 2, 1, 1, 1] + [0, 1, 1, 2, 1] + [0, 1, 1, 1, 2])
        >>> best(corridor, worth).boundaries, best(corridor, worth, lambda k, columns: [0, 0, 0.5, 0, 0]).boundaries
        (array([0, 1, 4]), array([0, 2, 4]))
    """
    low, high, starts = corridor.low.tolist(), corridor.high.tolist(), corridor.starts.tolist()
    rows, last = len(low) - 1, len(corridor.ends) - 1
    # `row` is the row above, then the row itself: left of the corridor it keeps what an earlier row had there, to which
    # steps down are free; right of it, what the last cell had, from which steps to the right are free
    row = np.full(corridor.columns + 1, -np.inf)
    row[: high[0] + 1] = 0.0
    filled = np.empty(starts[-1])
    filled[: starts[1]] = row[low[0] : high[0] + 1]
    crossed: dict[int, list[tuple[int, Floats]]] = {}
    after: dict[int, Floats] = {}
    known, dead = high[0], 0
    cuts: dict[int, list[int]] = {}
    for k, end in enumerate(corridor.ends[:last].tolist()):
        cuts.setdefault(end, []).append(k)
    for i in range(rows + 1):
        left, right = low[i], high[i]
        if i:
            if right > known:
                row[known + 1 : right + 1] = row[known]
                known = right
            first = max(left, 1)
            pairs = row[first - 1 : right] + worth[starts[i] + first - left : starts[i + 1]]
            here = row[first : right + 1]
            np.maximum(here, pairs, out=here)
            here = row[left : right + 1]
            np.maximum.accumulate(here, out=here)
            filled[starts[i] : starts[i + 1]] = here
        if i in cuts:
            here = row[left : right + 1]
            crossed[i] = []
            for k in cuts[i]:
                gain = here + potential(k, slice(left, right + 1))
                crossed[i].append((k, gain))
                np.maximum.accumulate(gain, out=here)
            row[dead:left] = -np.inf  # no boundary but within the corridor
            dead = left
            after[i] = here.copy()
    return _trace(corridor, worth, filled, crossed, after, gaps_first)


def _trace(
    corridor: Corridor,
    worth: Any,
    filled: Floats,
    crossed: dict[int, list[tuple[int, Floats]]],
    after: dict[int, Floats],
    gaps_first: bool,
) -> Path:
    """The path back from the end."""
    low, high, starts = corridor.low.tolist(), corridor.high.tolist(), corridor.starts.tolist()

    def value(i: int, j: int) -> float:
        """What the best path to a cell has earned, once it has crossed the boundaries in its row."""
        while j < low[i]:
            if i == 0 or i in after:
                return -np.inf
            i -= 1
        place = min(j, high[i]) - low[i]
        return float(after[i][place]) if i in after else float(filled[starts[i] + place])

    rows, j = len(low) - 1, corridor.columns
    enter, leave = np.zeros(rows + 1, dtype=np.int64), np.zeros(rows + 1, dtype=np.int64)
    boundaries = np.zeros(len(corridor.ends) + 1, dtype=np.int64)
    boundaries[-1] = j
    pairs = []
    for i in range(rows, -1, -1):
        leave[i] = j
        for k, gain in reversed(crossed.get(i, [])):
            j = low[i] + int(np.argmax(gain[: min(j, high[i]) - low[i] + 1]))
            boundaries[k + 1] = j
        if i == 0:
            break
        while True:
            enter[i] = j
            if j < low[i]:
                break
            j = enter[i] = min(j, high[i])
            cell = starts[i] + j - low[i]
            here = float(filled[cell])
            pair = j > 0 and value(i - 1, j - 1) + float(worth[cell]) >= here
            skip = value(i - 1, j) >= here
            back = j > low[i] and float(filled[cell - 1]) >= here
            if pair and not (gaps_first and (skip or back)):
                j -= 1
                pairs.append((i - 1, j))
                break
            if skip:
                break
            j -= 1
    return Path(enter, leave, np.array(pairs[::-1], dtype=np.int64).reshape(-1, 2), boundaries)
