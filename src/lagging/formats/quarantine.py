# SPDX-License-Identifier: Apache-2.0
"""Leave out rows with faults, and report each, while all others are read: `--on-error quarantine`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from lagging.data.run import Run
from lagging.errors import DataError, Fault, UsageError
from lagging.formats.report import ReadReport
from lagging.formats.source import Source

__all__ = ["assign_to_segments", "catch_unreadable", "drop_faulty", "flush_faults", "reason_of"]


def catch_unreadable(parts: Callable[[], Iterable[Run]], source: Source, report: ReadReport) -> Iterator[Run]:
    """The parts of a file; an error that ends the reading of this file is recorded as its fault."""
    try:
        yield from parts()
    except DataError as error:
        report.faults.add(*error.faults)
    except UsageError as error:
        report.faults.add(Fault("unreadable", str(error).partition("\n")[0], source.path))


def flush_faults(report: ReadReport, lines: set[int], kinds: set[str]) -> list[Fault]:
    """Hand the faults found since the last call to the quarantine, and remove them from the report.

    Args:
        report: what was found.
        lines: the lines with faults, added to.
        kinds: the kinds of faults, added to.
    """
    faults = list(report.faults.sorted())
    report.faults.kept.clear()
    report.faults.counts.clear()
    report.refused.clear()
    lines.update(fault.line for fault in faults if fault.line is not None)
    kinds.update(fault.kind for fault in faults)
    if report.quarantine is not None:
        for fault in faults:
            report.quarantine(fault)
    return faults


def drop_faulty(part: Run, faults: Iterable[Fault]) -> Run:
    """The segments of a part that have no fault of their own.

    Example:
        >>> run = Run.from_delays([[1], [2]], source_length=[2, 2], id=["a", "b"])
        >>> drop_faulty(run, [Fault("bad-delay", segment="a")]).id.tolist()
        ['b']
    """
    ids_by_line: dict[int | None, set[str] | None] = {}  # None: every segment of the line
    for fault in faults:
        if fault.path == part.origin.path and (fault.line is not None or fault.segment is not None):
            ids = ids_by_line.setdefault(fault.line, set())
            if fault.segment is None:
                ids_by_line[fault.line] = None
            elif ids is not None:
                ids.add(str(fault.segment))
    if not ids_by_line:
        return part
    lines = [None] * len(part) if part.line is None else part.line.tolist()
    kept = [True] * len(part)
    for row, (line, segment) in enumerate(zip(lines, part.id.tolist(), strict=True)):
        if line in ids_by_line:
            ids = ids_by_line[line]
            kept[row] = ids is not None and str(segment) not in ids
    return part if all(kept) else part[np.array(kept, dtype=bool)]


def reason_of(fault: Fault) -> str:
    """What is wrong with a row, in words, without its place.

    Example:
        >>> reason_of(Fault("decreasing-delays", "4 → 3", "a.parquet", 7, "x", 2))
        'delays decrease: 4 → 3 (token 2)'
    """
    token = "" if fault.token is None else f" (token {fault.token})"
    return (f"{fault.what}: {fault.detail}" if fault.detail else fault.what) + token


def assign_to_segments(part: Run, faults: Iterable[Fault]) -> Iterator[Fault]:
    """The faults of a whole file, once for each of its segments."""
    for fault in faults:
        for row, segment in enumerate(part.id.tolist()):
            line = None if part.line is None else int(part.line[row])
            yield Fault(fault.kind, fault.detail, part.origin.path, line, segment)
