# SPDX-License-Identifier: Apache-2.0
"""READ/WRITE strings: `RRRWRWRW`, or `R R W`, one sentence a line.

The source length is the number of reads, so a source that was not read to its end ends in reads without a write.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

import numpy as np

from lagging.data.checks import check, remark
from lagging.data.ragged import Floats, Ragged
from lagging.data.run import Origin, Run
from lagging.errors import DataError, Fault
from lagging.formats.omissions import lost
from lagging.formats.options import ReadOptions
from lagging.formats.report import ReadReport
from lagging.formats.source import Source, first_line

__all__ = ["recognise", "scan", "write"]

ACTIONS = b"RrWw"
SPACES = b" \t\r\n"


def recognise(head: bytes) -> bool:
    """Whether the first line that is not blank holds nothing but actions."""
    first = first_line(head)
    return bool(first) and not first.translate(None, ACTIONS + SPACES)


def parse(line: bytes) -> tuple[Floats, int]:
    """Delays and source length of one line of actions.

    Example:
        >>> parse(b"RRRRWWWWRW")
        (array([4., 4., 4., 4., 5.]), 5)
    """
    actions = np.frombuffer(line.translate(None, SPACES).upper(), dtype=np.uint8)
    reads = np.cumsum(actions == ord("R"))
    return reads[actions == ord("W")].astype(np.float64), int(reads[-1]) if len(reads) else 0


def scan(source: Source, options: ReadOptions, report: ReadReport) -> Iterator[Run]:
    """The sentences of a file of actions, in parts; faults and notes go to the report."""
    described = "READ/WRITE strings, delays in source tokens, source length = number of reads"
    origin = Origin(source.path, "rw", described, named=False)
    for batch in source.batches():
        delays, lengths, lines = [], [], []
        for number, line in enumerate(batch.lines, batch.first):
            strange = line.translate(None, ACTIONS + SPACES)
            if strange:
                text = line.decode("utf-8", "replace")
                column = next(i for i, c in enumerate(text, 1) if c not in "RrWw \t\r\n")
                detail = f"{text[column - 1]!r} at column {column}"
                report.faults.add(Fault("not-an-action", detail, source.path, number, number - 1 + report.placed))
                continue
            g, x = parse(line)
            delays.append(g)
            lengths.append(x)
            lines.append(number)
        if not lines:
            continue
        run = Run(
            delays=Ragged.from_rows(delays),
            source_length=np.array(lengths, dtype=np.float64),
            id=np.array(lines, dtype=np.int64) - 1 + report.placed,
            line=np.array(lines, dtype=np.int64),
            unit=options.unit or "token",
            level=options.level or "token",
            origin=origin,
        )
        report.faults.add(*check(run))
        report.notes.extend(remark(run))
        yield run


def write(run: Run, file: TextIO) -> list[str]:
    """Write one line of actions per segment. Returns what it could not hold.

    Raises:
        DataError: a delay is negative, is not a whole number of source tokens, or goes beyond the source.
    """
    for row in range(len(run)):
        g, x = run.delays[row], float(run.source_length[row])
        if len(early := np.flatnonzero(g < 0)):
            detail, token = f"{g[early[0]]:g}", int(early[0]) + 1
            raise DataError(Fault("negative-delay", detail, run.origin.path, segment=run.id.item(row), token=token))
        whole = bool((g == np.floor(g)).all()) and x == int(x) and (not len(g) or g[-1] <= x)
        if run.unit != "token" or not whole:
            detail = "delays in milliseconds" if run.unit != "token" else ""
            raise DataError(Fault("not-whole", detail, run.origin.path, segment=run.id.item(row)))
        waits = np.diff(g, prepend=0.0, append=x).astype(int).tolist()
        file.write("W".join("R" * wait for wait in waits) + "\n")
    kept = {"delays", "source_length"} | ({"id"} if (run.id == np.arange(len(run))).all() else set())
    return lost(run, kept, level="token", seg="none")
