# SPDX-License-Identifier: Apache-2.0
"""Texts that a log does not have: what was written, and references."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from lagging.edits import renoted
from lagging.errors import DataError, Fault, Faults, Note, counted
from lagging.formats.options import Options
from lagging.longform.entries import read_lines
from lagging.longform.segmentation import Segmentation
from lagging.run import Run, make_texts
from lagging.text import count_tokens, detect_level, noun

__all__ = ["with_predictions", "with_references"]


def with_predictions(run: Run, path: str | Path) -> Run:
    r"""A Run with what was written, from a text file: a line per row, or any number of lines for a single row.

    Raises:
        DataError: not as many lines as rows, or not as many words as delays.

    Example:
        >>> import lagging, tempfile, pathlib
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "talk.rw").write_text("RRWRWW\n"), (folder / "talk.de").write_text("guten Tag\nBob\n")
        >>> with_predictions(lagging.read(folder / "talk.rw"), folder / "talk.de").prediction.tolist()
        ['guten Tag Bob']
    """
    options = Options()
    where, lines = read_lines(path, options)
    if options.faults:
        raise DataError(options.faults)
    texts = [" ".join(lines)] if len(run) == 1 else lines
    if len(texts) != len(run):
        rows = counted(len(run), "recording")
        raise DataError(Fault("line-count", f"{counted(len(texts), 'line')}, but {rows} in the log", where))
    counts = run.delays.lengths
    level = run.level if run.level != "token" else detect_level(texts, counts)
    level = "word" if level == "token" else level
    found = count_tokens(texts, level, counts)
    faults = Faults()
    for row in np.flatnonzero(found != counts).tolist():
        detail = f"{counts[row]} delays, {found[row]} {noun(level)}s in {where}"
        faults.add(Fault("token-count", detail, run.origin.path, segment=run.id.item(row)))
    if faults:
        raise DataError(faults)
    return renoted(run, replace(run, prediction=make_texts(texts), level=level))


def with_references(run: Run, segmentation: Segmentation) -> Run:
    """A Run with a reference for each of its rows, in order.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[1], [2]], source_length=[2, 2], prediction=["ja", "nein"])
        >>> with_references(run, Segmentation.from_lists(["x"] * 2, reference=["ja", "doch"])).reference.tolist()
        ['ja', 'doch']
    """
    notes = [note for note in segmentation.notes if note.kind != "empty reference"]  # said of the rows, too
    if run.reference is not None and any(run.reference):
        notes.append(Note("REFERENCES REPLACED", "the log has others"))
    return renoted(run, replace(run, reference=segmentation.reference, reference_length=None), *notes)
