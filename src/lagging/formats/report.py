# SPDX-License-Identifier: Apache-2.0
"""What a reader finds in a log beside its segments: faults, notes, rows that are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from lagging.errors import Fault, Faults, Note
from lagging.formats.source import Source

__all__ = ["ReadReport"]


@dataclass
class ReadReport:
    """What is found while a log is read; every reader adds to it.

    Attributes:
        faults: what makes the log unfit to be scored.
        notes: what a reader of the scores must know.
        refused: id, line and file of the rows with a fault of their own; their ids still count as used.
        torn: the places of last lines that break off and were left out, as `--repair torn` requests.
        placed: the number of segments in the files before; the ids of segments without a name go on from there.
        quarantine: called with every fault, where rows with faults are left out; None if a fault makes a log unfit.
    """

    faults: Faults = field(default_factory=Faults)
    notes: list[Note] = field(default_factory=list)
    refused: list[tuple[int | str, int, str]] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)
    placed: int = 0
    quarantine: Callable[[Fault], None] | None = None

    def refuse(self, faults: Iterable[Fault], source: Source, line: int, segment: int | str | None) -> None:
        """Record the faults of a row, which is left out; they get their place here.

        Example:
            >>> report = ReadReport()
            >>> report.refuse([Fault("bad-delay", "x", token=2)], Source("a.log", None), 7, "s1")
            >>> print(report.faults.kept[0])
            a.log:7: segment s1, token 2: a delay is not a number: x
        """
        self.faults.add(*(replace(fault, path=source.path, line=line, segment=segment) for fault in faults))
        if segment is not None:
            self.refused.append((segment, line, source.path))

    def leave_out_torn(self, faults: Sequence[Fault], source: Source, line: int, repair: Sequence[str]) -> bool:
        """Whether a line only breaks off and `repair` allows to leave it out; then its place is recorded."""
        if "torn" not in repair or not faults or faults[0].kind != "truncated":
            return False
        self.torn.append(f"{source.path}:{line}")
        return True

    def note_byte_order_mark(self, source: Source) -> None:
        """Add a note if a file, read to its end, began with a byte order mark."""
        if source.bom:
            self.notes.append(Note("byte order mark", f"at the start of {source.path}: ignored"))

    def note_blank_lines(self, source: Source, count: int) -> None:
        """Add a note if a file has blank lines."""
        if count:
            self.notes.append(Note("blank line", f"skipped, in {source.path}", count, noun="line"))
