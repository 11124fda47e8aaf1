# SPDX-License-Identifier: Apache-2.0
"""Ids over the parts of a log: those used twice, and those that are missing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lagging.errors import Fault, Note
from lagging.ragged import Ints
from lagging.run import Ids, Run

__all__ = ["SeenIds"]


class SeenIds:
    """Finds ids that two parts share; in the common case of ids that only grow, it has nothing to look up."""

    def __init__(self) -> None:
        self._highest: int | None = None
        self._parts: list[tuple[Ids, Ints | None, str | None]] = []
        self._growing = True

    def __len__(self) -> int:
        """Number of segments so far."""
        return sum(len(ids) for ids, _, _ in self._parts)

    def add(self, run: Run) -> None:
        """Take note of the ids of a part."""
        growing = run.id.dtype != object and bool((np.diff(run.id) > 0).all())
        if growing and len(run) and (self._highest is None or int(run.id[0]) > self._highest):
            self._highest = int(run.id[-1])
        else:
            self._growing = False
        self._parts.append((run.id, run.line, run.origin.path))

    def gaps(self) -> Iterator[Note]:
        """Whole numbers that are missing between the lowest and the highest id: perhaps a run that did not finish."""
        if not self._parts or any(ids.dtype == object for ids, _, _ in self._parts):
            return
        low = min(int(ids.min()) for ids, _, _ in self._parts)
        high = max(int(ids.max()) for ids, _, _ in self._parts)
        distinct = len(self) if self._growing else len(set(np.concatenate([ids for ids, _, _ in self._parts]).tolist()))
        missing = high - low + 1 - distinct
        if missing > 0:
            yield Note(
                "index gap", f"{missing} of the indices between {low} and {high} are missing: is the log complete?"
            )

    def faults(self, refused: list[tuple[int | str, int, str]]) -> Iterator[Fault]:
        """Ids that occur in more than one part, or in a line that was refused for another fault."""
        if self._growing and not refused:
            return
        seen: dict[str, tuple[int, str]] = {}
        for part, (ids, lines, path) in enumerate(self._parts):
            told: set[str] = set()  # what two lines of one part share was told when it was checked
            for row, name in enumerate(ids.tolist()):
                line = None if lines is None else int(lines[row])
                first = seen.setdefault(str(name), (part, f"{path}:{line}"))
                if first[0] != part and str(name) not in told:
                    same = first[1].rpartition(":")[0] == path
                    yield Fault("duplicate-id" if same else "id-in-two-files", f"first at {first[1]}", path, line, name)
                told.add(str(name))
        for refused_name, refused_line, refused_path in refused:
            place = f"{refused_path}:{refused_line}"
            if seen.setdefault(str(refused_name), (-1, place))[1] != place:
                at = seen[str(refused_name)][1]
                yield Fault("duplicate-id", f"also at {at}", refused_path, refused_line, refused_name)
