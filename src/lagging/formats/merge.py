# SPDX-License-Identifier: Apache-2.0
"""Several logs of one system as one: shards, runs that were resumed, copies. Segments are matched by id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Unpack

import numpy as np
import numpy.typing as npt

from lagging.data.checks import about, add_counts, number
from lagging.data.ragged import Ints, Ragged
from lagging.data.run import LISTS, NUMBERS, PER_TOKEN, TEXTS, Origin, Run
from lagging.data.strip import renoted
from lagging.data.strip import strip as strip_tokens
from lagging.errors import DataError, Fault, Faults, Note, counted
from lagging.formats import Paths, read_parts
from lagging.formats.options import ReadKeywords, ReadOptions

__all__ = ["merge", "merge_logs"]

CONTENT = ("delays", "source_length", *LISTS, *NUMBERS, *TEXTS)
"""What two lines of one segment must agree in."""


def merge(
    paths: Paths,
    *,
    name: str | None = None,
    **options: Unpack[ReadKeywords],
) -> Run:
    r"""Several logs of one system as one Run: a segment that occurs again with the same content is kept once.

    Args:
        paths: files, directories with an `instances.log`, globs.
        name: name of the system; that of the first log if not given.
        options: as in `lagging.read`. Of `repair`, "first" or "last" decides between lines that differ, and "torn"
            leaves out a last line that breaks off.

    Returns:
        The Run: in the order of the ids if they are whole numbers, else in the order of their first appearance.

    Raises:
        DataError: a segment occurs with different content, elapsed times included: each is named with both places and
            what differs; or there is a fault in a log.

    Example:
        >>> import tempfile, pathlib
        >>> logs = pathlib.Path(tempfile.mkdtemp())
        >>> lines = [f'{{"id": {i}, "delays": [{i + 1}], "source_length": 4}}\n' for i in range(3)]
        >>> _ = (logs / "a.jsonl").write_text(lines[2] + lines[1]), (logs / "b.jsonl").write_text(lines[0] + lines[1])
        >>> run = merge([logs / "a.jsonl", logs / "b.jsonl"])
        >>> run.id, run.delays.tolist()
        (array([0, 1, 2]), [[1.0], [2.0], [3.0]])
        >>> print(run.notes[0])
        duplicate: 1 segment (1): the same line again: kept once
    """
    return merge_logs(paths, ReadOptions.make(**options), name=name)


def merge_logs(paths: Paths, options: ReadOptions, *, name: str | None = None) -> Run:
    """Several logs of one system as one Run, like `merge`, with all options in one object."""
    parts = read_parts(paths, options, name)
    run = Run.concat(parts)
    run = replace(
        run, notes=tuple(note for note in run.notes if note.kind != "several files")
    )  # expected when logs are merged
    _, first, which = np.unique(run.id, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[which] != np.arange(len(run)))
    differ = {column: _differ(getattr(run, column), first[which[again]], again) for column in CONTENT}
    clash = np.logical_or.reduce(list(differ.values()))
    keep = next((keep for keep in ("first", "last") if keep in options.repair), None)
    if clash.any() and keep is None:
        raise DataError(_conflicts(run, parts, again[clash], first[which[again[clash]]]))
    rows = first.copy()
    if keep == "last":
        last = np.zeros_like(first)
        np.maximum.at(last, which, np.arange(len(run)))
        rows = np.where(np.isin(np.arange(len(first)), which[again[clash]]), last, first)
    if run.id.dtype == object:
        rows = rows[np.argsort(first)]
    once = np.zeros(len(run), dtype=bool)
    once[again[~clash]] = True
    notes = [*about(run, "duplicate", "the same line again: kept once", once), *_dropped(parts, run)]
    repaired = add_counts(run.repaired, [(keep or "", int(clash.sum()))])
    merged = replace(run[rows], line=None, origin=_origin(parts), repaired=repaired)
    merged = renoted(run, merged, *notes)
    return strip_tokens(merged, options.strip) if options.strip else merged


def _origin(parts: Sequence[Run]) -> Origin:
    files = list(dict.fromkeys(part.origin.path for part in parts))
    more = f" and {counted(len(files) - 1, 'other log')}" if len(files) > 1 else ""
    named = all(part.origin.named for part in parts)
    return replace(parts[0].origin, path=f"{files[0]}{more}", named=named)


def _dropped(parts: Sequence[Run], run: Run) -> Iterator[Note]:
    """Notes about columns that are left out because not every log has them."""
    for column in CONTENT:
        if getattr(run, column) is None and any(getattr(part, column) is not None for part in parts):
            yield Note("column left out", f"{column}: not every log has it")


# ---- what differs -------------------------------------------------------------------------------------------------


def _differ(column: Ragged | npt.NDArray[np.generic] | None, one: Ints, other: Ints) -> npt.NDArray[np.bool_]:
    """Where two rows of a column have different values; NaN is equal to NaN."""
    if column is None:
        return np.zeros(len(one), dtype=bool)
    if not isinstance(column, Ragged):
        return _unequal(column[one], column[other])
    out: npt.NDArray[np.bool_] = column.lengths[one] != column.lengths[other]
    alike = np.flatnonzero(~out)
    a, b = column.take(one[alike]), column.take(other[alike])
    out[alike[a.owner(np.flatnonzero(_unequal(a.values, b.values)))[0]]] = True
    return out


def _unequal(a: npt.NDArray[np.generic], b: npt.NDArray[np.generic]) -> npt.NDArray[np.bool_]:
    return np.asarray((a != b) & ~((a != a) & (b != b)), dtype=bool)


def _conflicts(run: Run, parts: Sequence[Run], later: Ints, earlier: Ints) -> Faults:
    """A fault for each line that differs from the first of its segment, with both places."""
    starts = np.cumsum([0, *(len(part) for part in parts)])
    faults = Faults()
    for row, first in zip(later.tolist(), earlier.tolist(), strict=True):
        places = []
        for index in (row, first):
            which = int(np.searchsorted(starts, index, side="right")) - 1
            lines = parts[which].line
            line = None if lines is None else int(lines[index - starts[which]])
            places.append((parts[which].origin.path, line))
        (path, line), (first_path, first_line) = places
        differences = "; ".join(text for column in CONTENT if (text := _difference(run, column, first, row)))
        first_place = first_path if first_line is None else f"{first_path}:{first_line}"
        faults.add(Fault("conflict", f"{differences} (first at {first_place})", path, line, run.id.item(row)))
    return faults


def _difference(run: Run, column: str, one: int, other: int) -> str:
    """What differs in a column between two rows, in words; nothing if they are equal."""
    values = getattr(run, column)
    if not _differ(values, np.array([one]), np.array([other]))[0]:
        return ""
    a, b = values[one], values[other]
    if column in TEXTS:
        return _text_difference(column, a, b)
    if not isinstance(values, Ragged):
        return f"{column}: {number(float(a))} → {number(float(b))}"
    if len(a) != len(b):
        return f"{column}: {len(a)} → {len(b)} entries"
    place = int(np.flatnonzero(_unequal(a, b))[0])
    at = "token" if column in ("delays", *PER_TOKEN) else "entry"
    return f"{column} at {at} {place + 1}: {number(float(a[place]))} → {number(float(b[place]))}"


def _text_difference(column: str, a: str | None, b: str | None) -> str:
    if a is None or b is None:
        return f"{column}: {'none' if a is None else 'given'} → {'none' if b is None else 'given'}"
    words = enumerate(zip_longest(a.split(), b.split(), fillvalue="nothing"), 1)
    first = next(((place, pair) for place, pair in words if pair[0] != pair[1]), None)
    if first is None:
        return f"{column}: white space"
    place, (word, other_word) = first
    return f"{column} at word {place}: {word} → {other_word}"
