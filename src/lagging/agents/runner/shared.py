# SPDX-License-Identifier: Apache-2.0
"""Memory that a run's processes share: what is left to do, and what each of them is doing.

Numbers of 64 bits. Two for all: how many sentences have been given out, and whether to stop. Then a row for each
worker: when its step began (in ns of the monotonic clock, 0 between steps), whether its files were closed, how many
sentences it has under way, and which.
Whoever gives out a sentence has the lock of the journal, so that nothing is lost when a worker dies.
"""

from __future__ import annotations

from multiprocessing.sharedctypes import RawArray
from typing import Any

__all__ = ["Board"]

GIVEN, STOP = 0, 1
STEP, CLOSED, COUNT, FIRST = 0, 1, 2, 3


class Board:
    """The shared memory; it can be given to a process when that is started."""

    def __init__(self, workers: int, width: int) -> None:
        self._size = FIRST + width
        self._raw: Any = RawArray("q", 2 + workers * self._size)
        self._open()

    def _open(self) -> None:
        self.cells = memoryview(self._raw).cast("B").cast("q")

    def __getstate__(self) -> dict[str, Any]:
        return {"_size": self._size, "_raw": self._raw}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def row(self, worker: int) -> memoryview:
        """The row of a worker; its first number is the pulse."""
        start = 2 + worker * self._size
        return self.cells[start : start + self._size]

    def give(self, worker: int, todo: Any) -> int | None:
        """The next sentence, if there is one and nobody has said to stop. The caller has the lock."""
        if not self.has_more(todo):
            return None
        given = self.cells[GIVEN]
        self.cells[GIVEN] = given + 1
        place = int(todo[given])
        self.add(worker, place)
        return place

    def add(self, worker: int, place: int) -> None:
        """A worker has a sentence under way."""
        row = self.row(worker)
        row[FIRST + row[COUNT]] = place
        row[COUNT] += 1

    def remove(self, worker: int, place: int) -> None:
        """A sentence is over. Who dies amid this leaves another there twice, but none out."""
        row = self.row(worker)
        last = FIRST + row[COUNT] - 1
        at = next(at for at in range(FIRST, last + 1) if row[at] == place)
        row[at] = row[last]
        row[COUNT] -= 1

    def under_way(self, worker: int) -> list[int]:
        """The sentences that a worker has under way."""
        row = self.row(worker)
        return list(dict.fromkeys(row[FIRST : FIRST + row[COUNT]].tolist()))

    def has_more(self, todo: Any) -> bool:
        """Whether there is anything left to give out."""
        return self.cells[GIVEN] < len(todo) and not self.cells[STOP]

    def begin(self) -> None:
        """Nothing has been given out."""
        self.cells[GIVEN] = 0

    def clear(self, worker: int) -> None:
        """A worker is gone."""
        row = self.row(worker)
        row[COUNT] = row[STEP] = row[CLOSED] = 0

    def began(self, worker: int) -> int:
        """When the step of a worker began; 0 between steps."""
        return self.row(worker)[STEP]

    def close(self, worker: int) -> None:
        """The files of a worker were closed: it can neither work on nor say so."""
        self.row(worker)[CLOSED] = 1

    def is_closed(self, worker: int) -> bool:
        """Whether they were."""
        return bool(self.row(worker)[CLOSED])

    def stop(self) -> None:
        """No more sentences are given out."""
        self.cells[STOP] = 1

    @property
    def stopped(self) -> bool:
        """Whether somebody said to stop."""
        return bool(self.cells[STOP])
