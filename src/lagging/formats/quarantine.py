# SPDX-License-Identifier: Apache-2.0
"""Rows with faults are set aside, and named, while all others are read: `--on-error quarantine`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from lagging.data.run import Run
from lagging.errors import DataError, Fault, UsageError
from lagging.formats.report import ReadReport
from lagging.formats.source import Source

__all__ = ["drained", "each", "guarded", "reason_of", "without"]


def guarded(parts: Callable[[], Iterable[Run]], source: Source, report: ReadReport) -> Iterator[Run]:
    """The parts of a file; what makes it unreadable is its fault, and not the end of all reading."""
    try:
        yield from parts()
    except DataError as error:
        report.faults.add(*error.faults)
    except UsageError as error:
        report.faults.add(Fault("unreadable", str(error).partition("\n")[0], source.path))


def drained(report: ReadReport, lines: set[int], kinds: set[str]) -> list[Fault]:
    """The faults that were found since the last time; they are told, and forgotten, and lines and kinds are noted."""
    found = list(report.faults.sorted())
    report.faults.kept.clear()
    report.faults.counts.clear()
    report.refused.clear()
    lines.update(fault.line for fault in found if fault.line is not None)
    kinds.update(fault.kind for fault in found)
    if report.quarantine is not None:
        for fault in found:
            report.quarantine(fault)
    return found


def without(part: Run, faults: Iterable[Fault]) -> Run:
    """The segments of a part that have no fault of their own."""
    lines: dict[int | None, set[str] | None] = {}
    for fault in faults:
        if fault.path == part.origin.path and (fault.line is not None or fault.segment is not None):
            names = lines.setdefault(fault.line, set())
            if fault.segment is None:
                lines[fault.line] = None  # all that is in the line
            elif names is not None:
                names.add(str(fault.segment))
    if not lines:
        return part
    at = [None] * len(part) if part.line is None else part.line.tolist()
    kept = [True] * len(part)
    for row, (line, name) in enumerate(zip(at, part.id.tolist(), strict=True)):
        if line in lines:
            names = lines[line]
            kept[row] = names is not None and str(name) not in names
    return part if all(kept) else part[np.array(kept, dtype=bool)]


def reason_of(fault: Fault) -> str:
    """What is wrong with a row, in words, without where it is.

    Example:
        >>> reason_of(Fault("decreasing-delays", "4 → 3", "a.parquet", 7, "x", 2))
        'delays decrease: 4 → 3 (token 2)'
    """
    at = "" if fault.token is None else f" (token {fault.token})"
    return (f"{fault.what}: {fault.detail}" if fault.detail else fault.what) + at


def each(part: Run, faults: Iterable[Fault]) -> Iterator[Fault]:
    """Faults of a file as those of each of its segments."""
    for fault in faults:
        for row, name in enumerate(part.id.tolist()):
            line = None if part.line is None else int(part.line[row])
            yield Fault(fault.kind, fault.detail, part.origin.path, line, name)
