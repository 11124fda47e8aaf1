# SPDX-License-Identifier: Apache-2.0
"""Texts that a log does not have: what was written, and references. Which line of a file belongs to which row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from lagging.data.ragged import Ints
from lagging.data.run import Run, make_texts
from lagging.data.strip import renoted
from lagging.data.tokens import count_tokens, detect_level, noun
from lagging.errors import DataError, Fault, Faults, Note, counted
from lagging.formats.line import shown
from lagging.formats.report import ReadReport
from lagging.longform.entries import read_lines
from lagging.longform.segmentation import Segmentation

__all__ = ["pair_lines", "with_predictions", "with_references"]


def pair_lines(run: Run, count: int, where: str) -> tuple[Ints, list[Note]]:
    """The place, from 0, of the line that belongs to each row, and what a reader of the scores must know of that.

    Where all rows have a whole number of their own for an index, that is the place. The file must have a line for every
    index up to the largest; rows may be missing. Counting may start at 1, or, where no row is missing, anywhere. Where
    rows have names, or nothing, the order counts.

    Args:
        run: the rows.
        count: how many lines there are.
        where: name of the file.

    Raises:
        DataError: neither fits.

    Example:
        >>> run = Run.from_delays([[1], [2]], source_length=[2, 2], id=[2, 0])
        >>> places, notes = pair_lines(run, 3, "ref.txt")
        >>> places, str(notes[0])
        (array([2, 0]), 'lines left aside: 1 line: of ref.txt: no row of the log has their index')
    """
    numbers = _indices(run)
    if numbers is not None and (first := _first_index(numbers, count)) is not None:
        return numbers - first, list(_index_notes(numbers, first, count, where))
    if (numbers is None or run.id.dtype == object) and count == len(run):
        return np.arange(count), [_order_note(run, where)]
    rows = counted(len(run), "row") if numbers is None else f"indices from {numbers.min()} to {numbers.max()}"
    detail = f"{counted(count, 'line')}, but {rows} in {run.origin.path or 'the log'}"
    raise DataError(Fault("line-count", detail, where))


def _indices(run: Run) -> Ints | None:
    """The ids as whole numbers, if they are the log's own, and each is one."""
    if not run.origin.named or not len(run):
        return None
    if run.id.dtype != object:
        return np.asarray(run.id, dtype=np.int64)
    names = [str(name) for name in run.id.tolist()]
    if not all(name.isascii() and name.isdecimal() and len(name) < 19 for name in names):
        return None
    numbers = np.array(list(map(int, names)), dtype=np.int64)
    return numbers if len(np.unique(numbers)) == len(numbers) else None


def _first_index(numbers: Ints, count: int) -> int | None:
    """The index of the first line; None if so many lines do not fit these indices."""
    low, high = int(numbers.min()), int(numbers.max())
    if low >= 0 and high + 1 == count:
        return 0
    if low >= 1 and high == count:
        return 1
    return low if low >= 0 and high - low + 1 == count == len(numbers) else None


def _index_notes(numbers: Ints, first: int, count: int, where: str) -> Iterator[Note]:
    """Notes about how indices were read, where they do not count from 0 or lines are left over."""
    low = int(numbers.min())
    if first:
        none = "no index 0" if first == 1 else f"no index below {first}"
        yield Note(f"counted from {first}", f"the log has {none}: line 1 of {where} belongs to index {first}")
    elif low:
        text = f"the log has no index 0: line {low + 1} of {where} belongs to index {low}, and not line {low}"
        yield Note("COUNTED FROM 0", text)
    if count > len(numbers):
        text = f"of {where}: no row of the log has their index"
        yield Note("lines left aside", text, count - len(numbers), noun="line")


def _order_note(run: Run, where: str) -> Note:
    """The note that lines belong to rows by their order; in capitals, where the two orders may differ."""
    named = run.origin.named
    several = any(note.kind == "several files" for note in run.notes)
    why = "ids are names" if named else "the log has no index" + ", and is of several files" * several
    first = shown(run.id.item(0)) if named else "its first row"
    kind = "PAIRED BY ORDER" if named or several else "paired by order"
    return Note(kind, f"{why}: line 1 of {where} belongs to {first}, and so on")


def with_predictions(run: Run, path: str | Path) -> Run:
    r"""A Run with what was written, from a text file: a line per row, or any number of lines for a single row.

    Lines are paired with rows as `pair_lines` does.

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
