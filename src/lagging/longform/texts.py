# SPDX-License-Identifier: Apache-2.0
"""Texts that a log does not have: what was written, and references. Which line of a file belongs to which row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from lagging.data.run import Run, make_texts
from lagging.data.strip import renoted
from lagging.data.tokens import count_tokens, detect_level, noun
from lagging.errors import DataError, Fault, Faults, Note
from lagging.formats.line_pairs import pair_lines
from lagging.formats.report import ReadReport
from lagging.longform.entries import read_lines
from lagging.longform.segmentation import Segmentation

__all__ = ["pair_lines", "with_predictions", "with_references"]


def with_predictions(run: Run, path: str | Path) -> Run:
    r"""A Run with what was written, from a text file: a line per row, or any number of lines for a single row.

    Lines are paired with rows as `pair_lines` does. Where the output is speech, the lines are its transcripts: they
    give quality, and the times of the pieces of sound stay as they are.

    Raises:
        DataError: lines that do not fit the rows, or not as many words as delays.

    Example:
        >>> import lagging, tempfile, pathlib
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "talk.rw").write_text("RRWRWW\n"), (folder / "talk.de").write_text("guten Tag\nBob\n")
        >>> with_predictions(lagging.read(folder / "talk.rw"), folder / "talk.de").prediction.tolist()
        ['guten Tag Bob']
    """
    report = ReadReport()
    where, lines = read_lines(path, report)
    if report.faults:
        raise DataError(report.faults)
    notes: list[Note] = []
    if len(run) == 1:
        texts = [" ".join(lines)]
    else:
        places, notes = pair_lines(run, len(lines), where)
        texts = [lines[place] for place in places.tolist()]
    if run.speech_out:
        spoken = replace(run, prediction=make_texts(texts), transcribed=True)
        note = Note("TRANSCRIPTS", f"{where} is what was heard of the output speech: quality alone is scored on it")
        return renoted(run, spoken, *notes, note)
    counts = run.delays.lengths
    level = run.level if run.level != "token" else detect_level(texts, counts)
    level = "word" if level == "token" else level
    token_counts = count_tokens(texts, level, counts)
    faults = Faults()
    for row in np.flatnonzero(token_counts != counts).tolist():
        detail = f"{counts[row]} delays, {token_counts[row]} {noun(level)}s in {where}"
        faults.add(Fault("token-count", detail, run.origin.path, segment=run.id.item(row)))
    if faults:
        raise DataError(faults)
    return renoted(run, replace(run, prediction=make_texts(texts), level=level), *notes)


def with_references(run: Run, segmentation: Segmentation) -> Run:
    """A Run with the references of a file, each with the row that `pair_lines` finds for it.

    Raises:
        DataError: there are no references, or they do not fit the rows.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[1], [2]], source_length=[2, 2], prediction=["ja", "nein"], id=[1, 0])
        >>> with_references(run, Segmentation.from_lists(["x"] * 2, reference=["doch", "ja"])).reference.tolist()
        ['ja', 'doch']
    """
    if segmentation.reference is None:
        raise DataError(Fault("no-references", path=segmentation.path))
    places, paired = pair_lines(run, len(segmentation), segmentation.path or "the references")
    # a row with an empty reference has a note of its own
    notes = [*(note for note in segmentation.notes if note.kind != "empty reference"), *paired]
    if run.reference is not None and any(run.reference):
        notes.append(Note("REFERENCES REPLACED", "the log has others"))
    return renoted(run, replace(run, reference=segmentation.reference[places], reference_length=None), *notes)
