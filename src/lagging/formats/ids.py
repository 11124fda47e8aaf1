# SPDX-License-Identifier: Apache-2.0
"""Ids over the parts of a log: those used twice, and those that are missing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lagging.data.hashes import id_codes
from lagging.data.ragged import Ints
from lagging.data.run import Ids, Run
from lagging.errors import Fault, Note

__all__ = ["SeenIds"]

Keys = npt.NDArray[np.uint64]
Hashes = tuple[Keys, npt.NDArray[np.uint32]]


@dataclass
class _Part:
    """Where some segments are: the number of the first, the file, and their lines (of consecutive lines, the first)."""

    start: int
    path: str | None
    lines: Ints | int | None

    def place(self, number: int) -> str:
        """File and line of a segment."""
        at = number - self.start
        line = self.lines if self.lines is None else self.lines + at if isinstance(self.lines, int) else self.lines[at]
        return f"{self.path}:{line}"


class SeenIds:
    """Finds ids that two parts share; ids that only grow, the common case, need no look-up.

    What is kept of an id is 20 bytes: 96 bits of hashes, by which two ids are told apart, and a number.
    """

    def __init__(self) -> None:
        self._n = 0
        self._distinct = 0
        self._parts: list[_Part] = []
        self._growing = True
        self._waiting: list[tuple[Ids | range | Hashes, int]] = []
        self._whole = True
        self._low: int | None = None
        self._high: int | None = None
        self._index = _Index()
        self._found: list[Fault] = []

    def __len__(self) -> int:
        """Number of segments so far."""
        return self._n

    def repeated(self, run: Run) -> dict[int, Fault]:
        """The rows of a part whose ids were in parts before, once each, and the fault of each."""
        return {} if self._grows(run) else self._repeated(run, _hashes(run.id))

    def _repeated(self, run: Run, hashes: Hashes) -> dict[int, Fault]:
        if not len(run) or not self._n:
            return {}
        self._index_waiting()
        out: dict[int, Fault] = {}
        reported: set[str] = set()  # ids that a part itself repeats were reported when it was checked
        for row, number in self._index.find(*hashes):
            name = run.id.item(row)
            if str(name) not in reported:
                reported.add(str(name))
                part = self._part(number)
                kind = "duplicate-id" if part.path == run.origin.path else "id-in-two-files"
                line = None if run.line is None else int(run.line[row])
                out[row] = Fault(kind, f"first at {part.place(number)}", run.origin.path, line, name)
        return out

    def add(self, run: Run) -> None:
        """Add the ids of a part."""
        growing = self._grows(run)
        hashes = None if growing else _hashes(run.id)
        repeated = {} if hashes is None else self._repeated(run, hashes)
        self._found += repeated.values()
        self._distinct += (len(run) if growing else len(set(run.id.tolist()))) - len(repeated)
        lines: Ints | int | None = run.line
        if run.line is not None and len(run) and int(run.line[-1]) - int(run.line[0]) + 1 == len(run):
            lines = int(run.line[0])
        self._parts.append(_Part(self._n, run.origin.path, lines))
        self._whole &= run.id.dtype != object
        if self._whole and len(run):
            low, high = int(run.id.min()), int(run.id.max())
            self._low = low if self._low is None else min(low, self._low)
            self._high = high if self._high is None else max(high, self._high)
        self._growing &= growing
        one_by_one = growing and len(run) and int(run.id[-1]) - int(run.id[0]) + 1 == len(run)
        names = range(int(run.id[0]), int(run.id[-1]) + 1) if one_by_one else run.id
        self._waiting.append((names if hashes is None else hashes, self._n))
        self._n += len(run)
        if not self._growing:
            self._index_waiting()

    def _grows(self, run: Run) -> bool:
        """Whether the ids of all parts are whole numbers that only grow, and so do these."""
        if not self._growing or run.id.dtype == object or not (np.diff(run.id) > 0).all():
            return False
        return not len(run) or self._high is None or int(run.id[0]) > self._high

    def _part(self, number: int) -> _Part:
        """The part that a segment is in."""
        return self._parts[bisect_right(self._parts, number, key=lambda part: part.start) - 1]

    def _index_waiting(self) -> None:
        """Add to the index the ids that were not needed in it so far."""
        for ids, start in self._waiting:
            self._index.add(*(ids if isinstance(ids, tuple) else _hashes(ids)), start)
        self._waiting = []

    def gaps(self) -> Iterator[Note]:
        """Whole numbers that are missing between the lowest and the highest id: perhaps a run that did not finish."""
        if not self._whole or self._low is None or self._high is None:
            return
        missing = self._high - self._low + 1 - self._distinct
        if missing > 0:
            between = f"between {self._low} and {self._high}"
            yield Note("index gap", f"{missing} of the indices {between} are missing: is the log complete?")

    def faults(self, refused: list[tuple[int | str, int, str]]) -> Iterator[Fault]:
        """Ids that occur in more than one part, or in a line that was refused for another fault."""
        yield from self._found
        if not refused:
            return
        self._index_waiting()
        seen: dict[str, str] = {}
        keys, checks = _hashes(np.array([name for name, _, _ in refused], dtype=object))
        known = dict(self._index.find(keys, checks))
        for row, (name, line, path) in enumerate(refused):
            place = f"{path}:{line}"
            if row in known:
                seen.setdefault(str(name), self._part(known[row]).place(known[row]))
            if seen.setdefault(str(name), place) != place:
                yield Fault("duplicate-id", f"also at {seen[str(name)]}", path, line, name)


def _hashes(ids: Ids | range) -> Hashes:
    """Two hashes of the text of each id: 7 and "7" are one name."""
    texts = list(map(str, ids if isinstance(ids, range) else ids.tolist()))
    keys = np.fromiter(map(hash, texts), np.int64, len(texts)).view(np.uint64)
    return keys, id_codes(texts)


class _Index:
    """The hashes that were seen, and where first, as sorted arrays, each at least twice as long as the next."""

    def __init__(self) -> None:
        self._runs: list[tuple[Keys, npt.NDArray[np.uint32], Ints]] = []

    def add(self, keys: Keys, checks: npt.NDArray[np.uint32], start: int) -> None:
        """Add the hashes of segments that are numbered from `start`."""
        if not len(keys):
            return
        new = _first_of_each(keys, checks, np.arange(start, start + len(keys)))
        while self._runs and len(self._runs[-1][0]) < 2 * len(new[0]):
            old = self._runs.pop()
            keys, checks = np.concatenate([old[0], new[0]]), np.concatenate([old[1], new[1]])
            new = _first_of_each(keys, checks, np.concatenate([old[2], new[2]]))
        self._runs.append(new)

    def find(self, keys: Keys, checks: npt.NDArray[np.uint32]) -> list[tuple[int, int]]:
        """The rows whose hashes were seen, each with the number of the segment that had them first."""
        first_numbers: dict[int, int] = {}
        order = np.argsort(keys, kind="stable")
        sorted_keys = keys[order]  # in order, look-ups stay near each other in memory
        for known, known_checks, numbers in self._runs:
            first = np.searchsorted(known, sorted_keys)
            for place in np.flatnonzero(known.take(first, mode="clip") == sorted_keys).tolist():
                row, at = int(order[place]), int(first[place])
                while at < len(known) and known[at] == sorted_keys[place]:  # usually one
                    if known_checks[at] == checks[row]:
                        first_numbers[row] = min(int(numbers[at]), first_numbers.get(row, int(numbers[at])))
                    at += 1
        return sorted(first_numbers.items())


def _first_of_each(
    keys: Keys, checks: npt.NDArray[np.uint32], numbers: Ints
) -> tuple[Keys, npt.NDArray[np.uint32], Ints]:
    """Sorted hashes, each once, with the first segment that has it."""
    order = np.argsort(keys, kind="stable")
    keys, checks, numbers = keys[order], checks[order], numbers[order]
    if len(keys) > 1 and (keys[1:] == keys[:-1]).any():
        order = np.lexsort((numbers, checks, keys))
        keys, checks, numbers = keys[order], checks[order], numbers[order]
        new = np.append(True, (keys[1:] != keys[:-1]) | (checks[1:] != checks[:-1]))
        keys, checks, numbers = keys[new], checks[new], numbers[new]
    return keys, checks, numbers
