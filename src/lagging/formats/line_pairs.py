# SPDX-License-Identifier: Apache-2.0
"""Which line of a file belongs to which row of a log."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lagging.data.ragged import Ints
from lagging.data.run import Run
from lagging.errors import DataError, Fault, Note, counted
from lagging.formats.line import shown

__all__ = ["pair_lines"]


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
