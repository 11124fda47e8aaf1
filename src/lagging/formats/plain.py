# SPDX-License-Identifier: Apache-2.0
"""Plain text: a prediction per line, and no delays. Any file of text looks like it, so it is read only on request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TextIO

import numpy as np

from lagging.data.run import Run
from lagging.data.tokens import are_sounds, text_level
from lagging.errors import DataError, Fault, Faults, UsageError
from lagging.formats.line import Line
from lagging.formats.omissions import lost
from lagging.formats.options import ReadOptions
from lagging.formats.report import ReadReport
from lagging.formats.segment_rows import Rows, collect
from lagging.formats.source import Source

__all__ = ["recognise", "scan", "write"]


def recognise(head: bytes) -> bool:
    """Never: any text would be taken for a translation."""
    return False


def scan(source: Source, options: ReadOptions, report: ReadReport) -> Iterator[Run]:
    """The lines of a file, in parts, each a segment; a blank line is an empty prediction."""
    if options.unit is not None:
        raise UsageError(f"{source.path}: plain text has no delays that could be in a unit\n  fix: leave --unit out.")
    return collect(source, options, report, _Decoder(source, report))


class _Decoder:
    """Turns lines of text into rows."""

    def __init__(self, source: Source, report: ReadReport) -> None:
        self.source, self.report = source, report

    def only(self, columns: Iterable[str], absent: Iterable[str]) -> None:
        """There is nothing to skip."""

    def chunks(self) -> Iterator[Rows]:
        """The rows of each batch of lines."""
        for batch in self.source.batches():
            rows = Rows()
            for number, line in enumerate(batch.lines, batch.first):
                try:
                    text = line.decode("utf-8").removesuffix("\n").removesuffix("\r")
                except UnicodeDecodeError as error:
                    what = f"byte {error.start + 1} is 0x{line[error.start]:02x}"
                    self.report.refuse([Fault("not-utf8", what)], self.source, number, None)
                    continue
                rows.rows.append(Line(prediction=text, unit="none"))
                rows.lines.append(number)
                rows.places.append(number - 1 + self.report.placed)
            yield rows


def write(run: Run, file: TextIO) -> list[str]:
    """Write a line per prediction. Returns what it could not hold.

    Raises:
        UsageError: there are no predictions.
        DataError: a line break in a prediction.
    """
    if run.prediction is None:
        raise UsageError("a file of plain text holds predictions, and this Run has none")
    faults = Faults()
    texts = [text or "" for text in run.prediction]
    for row, text in enumerate(texts):
        if "\n" in text or "\r" in text:
            faults.add(Fault("line-break", repr(text[:60]), run.origin.path, segment=run.id.item(row)))
    if faults:
        raise DataError(faults)
    file.writelines(text + "\n" for text in texts)
    kept = {"prediction"} | ({"id"} if np.array_equal(run.id, np.arange(len(run))) else set())
    changed = ["prediction (none, read back as empty)"] if None in run.prediction.tolist() else []
    if texts and texts[0].startswith("\ufeff"):
        changed.append("prediction (without the byte order mark that it begins with)")
    level = None if run.level == "token" else text_level(texts)  # tokens of its own are gone with the delays
    if level is not None and are_sounds(texts):
        level = "token"  # a reader takes texts that read like `a.wav` for the names of sound files
    return lost(run, kept, *changed, level=level, seg="none")
