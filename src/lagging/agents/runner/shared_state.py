# SPDX-License-Identifier: Apache-2.0
"""Shared memory of the processes of a run: what is left to do, and what each worker is doing.

It is an array of 64-bit integers. The first two hold for the whole run: how many sentences have been handed out, and
whether to stop. Then each worker has a row: when its step began (ns of the monotonic clock, 0 between steps), whether
its files were closed, how many sentences it has in progress, and their indices. Sentences are handed out under the
lock of the journal, so that none is lost when a worker dies.
"""

from __future__ import annotations

from multiprocessing.sharedctypes import RawArray
from typing import Any

__all__ = ["SharedState"]

N_TAKEN, STOP = 0, 1
STEP, CLOSED, COUNT, FIRST = 0, 1, 2, 3


class SharedState:
    """The shared memory; it is passed to a process when that is started."""

    def __init__(self, workers: int, width: int) -> None:
        self._row_size = FIRST + width
        self._raw: Any = RawArray("q", 2 + workers * self._row_size)
        self._map()

    def _map(self) -> None:
        self.cells = memoryview(self._raw).cast("B").cast("q")

    def __getstate__(self) -> dict[str, Any]:
        return {"_row_size": self._row_size, "_raw": self._raw}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._map()

    def row(self, slot: int) -> memoryview:
        """The row of a worker; its first number is the heartbeat."""
        start = 2 + slot * self._row_size
        return self.cells[start : start + self._row_size]

    def take(self, slot: int, todo: Any) -> int | None:
        """Hand the next sentence to a worker; None if there is none, or the run stops. The caller holds the lock."""
        if not self.has_more(todo):
            return None
        n_taken = self.cells[N_TAKEN]
        self.cells[N_TAKEN] = n_taken + 1
        index = int(todo[n_taken])
        self.add(slot, index)
        return index

    def add(self, slot: int, index: int) -> None:
        """Note that a worker has a sentence in progress."""
        row = self.row(slot)
        row[FIRST + row[COUNT]] = index
        row[COUNT] += 1

    def remove(self, slot: int, index: int) -> None:
        """Note that a sentence is done. A worker killed here may leave an index twice, but never loses one."""
        row = self.row(slot)
        last = FIRST + row[COUNT] - 1
        cell = next(cell for cell in range(FIRST, last + 1) if row[cell] == index)
        row[cell] = row[last]
        row[COUNT] -= 1

    def in_progress(self, slot: int) -> list[int]:
        """The indices of the sentences that a worker has in progress."""
        row = self.row(slot)
        return list(dict.fromkeys(row[FIRST : FIRST + row[COUNT]].tolist()))

    def has_more(self, todo: Any) -> bool:
        """Whether a sentence is left to hand out, and the run does not stop."""
        return self.cells[N_TAKEN] < len(todo) and not self.cells[STOP]

    def restart(self) -> None:
        """Hand out from the beginning again."""
        self.cells[N_TAKEN] = 0

    def reset(self) -> None:
        """Forget everything, before another job."""
        for cell in range(len(self.cells)):
            self.cells[cell] = 0

    def clear(self, slot: int) -> None:
        """Empty the row of a worker that has ended."""
        row = self.row(slot)
        row[COUNT] = row[STEP] = row[CLOSED] = 0

    def step_began(self, slot: int) -> int:
        """When the step of a worker began; 0 between steps."""
        return self.row(slot)[STEP]

    def mark_closed(self, slot: int) -> None:
        """Note that the files of a worker were closed, so that it can neither continue nor report it."""
        self.row(slot)[CLOSED] = 1

    def is_closed(self, slot: int) -> bool:
        """Whether the files of a worker were closed."""
        return bool(self.row(slot)[CLOSED])

    def stop(self) -> None:
        """Hand out no more sentences."""
        self.cells[STOP] = 1

    @property
    def stopped(self) -> bool:
        """Whether the run was asked to stop."""
        return bool(self.cells[STOP])
