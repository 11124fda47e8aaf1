# SPDX-License-Identifier: Apache-2.0
"""Which recording of a segmentation each row of a Run is; rows of one recording put together; units compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lagging.data.checks import check
from lagging.data.endings import LONE
from lagging.data.ragged import Floats, Ints, Ragged
from lagging.data.run import LISTS, SHARES, Run, Texts, make_ids, make_texts
from lagging.data.strip import renoted
from lagging.data.tokens import count_tokens, is_sound, noun
from lagging.errors import SHOWN, DataError, Fault, Faults, Note, UsageError, counted
from lagging.formats.line import shown
from lagging.formats.simulstream import DIGITS, file_name
from lagging.longform.segmentation import Segmentation

__all__ = ["Pair", "check_units", "is_one_recording", "match", "recording_names", "streams"]

Pair = tuple[str, int, Ints]
"""A recording, its row in the Run, and its segments in the segmentation, in order of time."""

SUMS = ("reference_length", *SHARES, "erased", "gone", "revisions")
"""Columns that add up when rows are put together."""

TIMES_TOO_FAR = 20
"""A segmentation that ends so many times later than its recording, or earlier, is in another unit."""

SLACK = {"ms": 5000.0, "token": 5.0}
"""How far beyond the end of its recording a segment may begin without a word."""


def recording_names(run: Run) -> list[str]:
    """What the recording of each row is called: its document, else the sound file that is its source, else its id.

    Example:
        >>> recording_names(Run.from_delays([[1], [2]], source_length=[2, 2], source=["talks/a.wav", "good morning"]))
        ['talks/a.wav', '1']
    """
    nothing = [None] * len(run)
    documents = nothing if run.document is None else run.document.tolist()
    sources = nothing if run.source is None else run.source.tolist()
    known = [source if document is None else document for document, source in zip(documents, sources, strict=True)]
    named = [document is not None or is_sound(source) for document, source in zip(documents, sources, strict=True)]
    return [str(name) if so else str(own) for name, so, own in zip(known, named, run.id.tolist(), strict=True)]


def is_one_recording(run: Run) -> bool:
    """Whether the rows are one recording: a single row, or parts that say where they begin.

    Example:
        >>> is_one_recording(Run.from_delays([[1], [2]], source_length=[2, 2]))
        False
    """
    return len(run) == 1 or (run.offset is not None and len(set(recording_names(run))) == 1)


def _place(run: Run, row: int) -> dict[str, Any]:
    """Where a row stands, for a fault."""
    line = None if run.line is None else int(run.line[row])
    return {"path": run.origin.path, "line": line, "segment": run.id.item(row)}


def _twice(run: Run, name: str, row: int, first: int) -> Fault:
    other = f"segment {run.id.item(first)}" if run.line is None else f"line {run.line[first]}"
    return Fault("recording-twice", f"{shown(name)}, also {other}", **_place(run, row))


# ---- rows of one recording ------------------------------------------------------------------------------------------


def streams(run: Run) -> Run:
    """A Run with one row per recording, and times from its beginning.

    Rows of one recording are put together in order of their offsets: offset + delay is when a token was written.

    Raises:
        DataError: several rows of a recording, and no offsets.

    Example:
        >>> columns = {"document": ["a.wav", "a.wav"], "offset": [5000, 0], "prediction": ["good day", "well"]}
        >>> run = Run.from_delays([[1000, 2000], [3000]], source_length=[4000, 4500], unit="ms", **columns)
        >>> whole = streams(run)
        >>> whole.delays.tolist(), whole.prediction.tolist(), whole.source_length.tolist()
        ([[3000.0, 6000.0, 7000.0]], ['well good day'], [9000.0])
    """
    if run.prediction is not None and run.lone.any() and any(run.prediction):
        empty, detail = Faults(), f"1 delay, 0 {noun(run.level)}s{LONE}"
        empty.add(*(Fault("token-count", detail, **_place(run, row)) for row in np.flatnonzero(run.lone).tolist()))
        raise DataError(empty)
    names = recording_names(run)
    first: dict[str, int] = {}
    firsts = np.array([first.setdefault(name, row) for row, name in enumerate(names)], dtype=np.int64)
    alone = np.bincount(firsts, minlength=len(run))[firsts] == 1
    offset = np.full(len(run), np.nan) if run.offset is None else run.offset
    if alone.all() and not np.nan_to_num(offset).any():
        return run
    last = {name: row for row, name in enumerate(names)}
    faults = Faults()
    for row in np.flatnonzero(np.isnan(offset) & ~alone).tolist():
        other = first[names[row]] if row != first[names[row]] else last[names[row]]
        faults.add(_twice(run, names[row], row, other))
    if faults:
        raise DataError(faults)
    return _joined(run, firsts, np.nan_to_num(offset), names)


def _joined(run: Run, firsts: Ints, offset: Floats, names: list[str]) -> Run:
    """The rows of each recording as one."""
    if run.level not in ("word", "token") and (run.eos & run.marked).any():
        raise UsageError("</s> would stand amid the characters of a recording\n  fix: take it out with `--strip eos`.")
    order = np.lexsort((offset, firsts))
    parts = _Parts(
        replace(run, notes=())[order],
        begins=offset[order],
        cuts=np.flatnonzero(np.diff(firsts[order], prepend=-1, append=-1)),
        names=[name for row, name in enumerate(names) if firsts[row] == row],
    )
    whole = parts.whole()
    faults = Faults()
    counts = None if whole.prediction is None else count_tokens(whole.prediction, whole.level, whole.delays.lengths)
    faults.add(*check(whole, token_counts=counts))
    if faults:
        raise DataError(faults)
    return renoted(run, whole, *parts.notes)


@dataclass
class _Parts:
    """Rows of several recordings, one recording after the other, each in order of time.

    Attributes:
        rows: the rows.
        begins: where each begins in its recording.
        cuts: the row at which each recording begins, and the number of rows.
        names: of the recordings.
        notes: what had to be done to put them together.
    """

    rows: Run
    begins: Floats
    cuts: Ints
    names: list[str]
    notes: list[Note] = field(default_factory=list)

    def whole(self) -> Run:
        """One row per recording."""
        rows, starts = self.rows, self.cuts[:-1]
        changed: dict[str, Any] = {c: self._list(c) for c in LISTS if getattr(rows, c) is not None}
        changed |= {c: np.add.reduceat(getattr(rows, c), starts) for c in SUMS if getattr(rows, c) is not None}
        sound = rows.source is not None and any(map(is_sound, rows.source))
        return replace(
            rows,
            delays=self._rising("delays"),
            source_length=self._lengths(),
            **changed,
            id=make_ids(self.names),
            document=make_texts(self.names),
            prediction=self._text(rows.prediction, "" if rows.level == "char" else " "),
            reference=self._text(rows.reference),
            source=None if sound else self._text(rows.source),
            line=None if rows.line is None else np.minimum.reduceat(rows.line, starts),
            offset=None,
            recording_end=None,
            seg="none",
        )

    def _lengths(self) -> Floats:
        """The end of each recording, where that is known, else of its last row."""
        ends = self.begins + self.rows.source_length
        if self.rows.recording_end is not None:
            ends = np.fmax(ends, self.begins + self.rows.recording_end)
        lengths: Floats = np.maximum.reduceat(ends, self.cuts[:-1])
        return np.round(lengths, DIGITS)

    def _list(self, column: str) -> Ragged | None:
        """A column of lists."""
        rows = self.rows
        if column == "steps":
            return self._steps()
        if column == "elapsed" and rows.unit == "token":
            self.notes.append(Note("column left out", "elapsed: in ms, while offsets are in source tokens"))
            return None
        if column == "elapsed" and rows.compute is not None:  # each may count the computing of its own step alone
            return self._absolute(column)
        if column in ("elapsed", "arrivals"):
            return self._rising(column)
        if column == "first_times":
            return self._absolute(column)
        values: Ragged = getattr(rows, column)
        return Ragged(values.values, values.offsets[self.cuts])

    def _absolute(self, column: str) -> Ragged:
        """Times from the beginning of the recording."""
        values: Ragged = getattr(self.rows, column)
        times = values.values + np.repeat(self.begins, values.lengths)
        return Ragged(np.round(times, DIGITS), values.offsets[self.cuts])

    def _rising(self, column: str) -> Ragged:
        """Times from the beginning of the recording, none before an earlier one."""
        times = self._absolute(column)
        falling = np.flatnonzero(times.rows_with(times.falls()))
        if not len(falling):
            return times
        risen = times.by_token(lambda g: np.maximum.accumulate(g, axis=1))
        text = f"{column} of a row before those of the row that begins before it: raised to the last of them"
        names = tuple(self.names[place] for place in falling[:SHOWN])
        what = "step" if column == "arrivals" else noun(self.rows.level)
        self.notes.append(Note("rows overlap", text, int((risen.values > times.values).sum()), names, what))
        return risen

    def _steps(self) -> Ragged | None:
        """Steps counted on from row to row."""
        steps, arrivals = self.rows.steps, self.rows.arrivals
        if steps is None or arrivals is None:
            self.notes.append(Note("column left out", "steps: without arrivals it is not known how many there were"))
            return None
        before = arrivals.offsets[:-1] - np.repeat(arrivals.offsets[self.cuts[:-1]], np.diff(self.cuts))
        return Ragged(steps.values + np.repeat(before, steps.lengths), steps.offsets[self.cuts])

    def _text(self, texts: Texts | None, glue: str = " ") -> Texts | None:
        """The texts of each recording as one; None where none of its rows has any."""
        if texts is None:
            return None
        parts = [texts[a:b].tolist() for a, b in pairwise(self.cuts.tolist())]
        return make_texts([None if set(part) == {None} else glue.join(filter(None, part)) for part in parts])


# ---- recordings and their segments ----------------------------------------------------------------------------------


def match(run: Run, segmentation: Segmentation, *, subset: bool = False, notes: list[Note] | None = None) -> list[Pair]:
    """Which row of a Run is which recording of a segmentation.

    Names are compared as they are, then without directories, then without the ending of a sound file. One recording on
    both sides is the same. Where names say nothing, ids are compared, and at last the order counts, with a loud note.

    Args:
        run: a row per recording, as `streams` returns it.
        segmentation: what it is to be cut into.
        subset: leave recordings that the segmentation does not have aside, with a note.
        notes: where to put what a reader of the scores must know.

    Raises:
        DataError: recordings that only one of them has, or two rows of one name.

    Example:
        >>> run = Run.from_delays([[900], [400]], source_length=[9000, 8000], unit="ms", document=["/data/b.wav", "a"])
        >>> cut = Segmentation.from_lists(["a.wav", "b.wav", "b.wav"], [0, 0, 4000], [8000, 4000, 4000])
        >>> match(run, cut)
        [('a.wav', 1, array([0])), ('b.wav', 0, array([1, 2]))]
    """
    remarks: list[Note] = []
    ours, theirs = list(segmentation.recordings), recording_names(run)
    matches = _find(ours, theirs, run, remarks)
    faults = Faults()
    for place, rows in matches.items():
        faults.add(*(_twice(run, ours[place], row, rows[0]) for row in rows[1:]))
    used = {row for rows in matches.values() for row in rows}
    extra = [row for row in range(len(run)) if row not in used]
    faults.add(*_missing(segmentation, [name for place, name in enumerate(ours) if place not in matches], theirs))
    if not subset:
        faults.add(*(Fault("recording-extra", shown(theirs[row]), **_place(run, row)) for row in extra))
    elif extra:
        names = tuple(theirs[row] for row in extra[:SHOWN])
        remarks.append(Note("RECORDINGS LEFT ASIDE", "not in the segmentation", len(extra), names, "recording"))
    if faults:
        raise DataError(faults)
    if notes is not None:
        notes.extend(remarks)
    return [(name, matches[place][0], segmentation.recordings[name]) for place, name in enumerate(ours)]


def _missing(segmentation: Segmentation, names: list[str], theirs: list[str]) -> Iterator[Fault]:
    more = ", …" if len(theirs) > 3 else ""
    for name in names:
        segments = segmentation.recordings[name]
        first = int(segments.min())
        line = None if segmentation.line is None else int(segmentation.line[first])
        had = ", ".join(map(shown, theirs[:3])) + more
        detail = f"{shown(name)}, {counted(len(segments), 'segment')}; the log has {had}"
        yield Fault("recording-missing", detail, segmentation.path, line, first)


def _find(ours: list[str], theirs: list[str], run: Run, notes: list[Note]) -> dict[int, list[int]]:
    """The rows of each recording of a segmentation that has any; more than one row is one too many."""
    if matches := _by_name(ours, theirs):
        return matches
    numbered = _are_numbers(ours) or _are_numbers(theirs)
    if len(ours) == len(theirs) == 1:
        if not numbered and is_sound(ours[0]):
            text = f"one recording each, taken to be the same: {shown(theirs[0])}, {shown(ours[0])} in the segmentation"
            notes.append(Note("names differ", text))
        return {0: [0]}
    by_id = _by_name(ours, list(map(str, run.id.tolist())))
    if len(by_id) == len(ours):
        notes.append(Note("matched by id", "recordings of the segmentation are called as the ids of the log"))
        return by_id
    if numbered and len(ours) == len(theirs):
        text = f"names do not tell which recording is which: the first one is taken for {shown(ours[0])}, and so on"
        notes.append(Note("RECORDINGS MATCHED BY ORDER", text, len(ours), noun="recording"))
        return {place: [place] for place in range(len(ours))}
    return {}


def _are_numbers(names: Sequence[str]) -> bool:
    """Whether all names are numbers, which do not tell which recording is which."""
    return all(name.isdecimal() for name in names)


def _bare(name: str) -> str:
    """The name of a file without directory and without the ending of a sound file."""
    name = file_name(name)
    return name[: name.rindex(".")] if is_sound(name) else name


def _by_name(ours: list[str], theirs: list[str]) -> dict[int, list[int]]:
    """Rows by name: first by the name as it is, then by ever less of it, where that is clear."""
    matches: dict[int, list[int]] = {}
    free = dict(enumerate(theirs))
    keys: tuple[Callable[[str], str], ...] = (str, file_name, _bare)
    for key in keys:
        rows: dict[str, list[int]] = {}
        for row, name in free.items():
            rows.setdefault(key(name), []).append(row)
        left = {place: key(name) for place, name in enumerate(ours) if place not in matches}
        clear = Counter(left.values())
        for place, name in left.items():
            if clear[name] == 1 and name in rows:
                matches[place] = rows[name]
                for row in rows[name]:
                    del free[row]
    return matches


# ---- units ----------------------------------------------------------------------------------------------------------


def check_units(run: Run, segmentation: Segmentation, pairs: Sequence[Pair]) -> list[Note]:
    """Compare where segments lie with how long their recordings are.

    Returns:
        What a reader of the scores must know.

    Raises:
        DataError: segmentation and log are in different units, or their times far apart.

    Example:
        >>> run = Run.from_delays([[900]], source_length=[9000], unit="ms")
        >>> cut = Segmentation.from_lists(["a"], [0], [9_000_000])
        >>> check_units(run, cut, match(run, cut))      # doctest: +ELLIPSIS
        Traceback (most recent call last):
        lagging.errors.DataError: segmentation and log do not measure in the same unit (segment 0): "a" ends at \
9000000 ms, but at 9000 ms in the log
        ...
    """
    if "none" in (segmentation.unit, run.unit):
        return []
    if segmentation.unit != run.unit:
        log = run.origin.path or "the log"
        detail = f"{_unit_name(segmentation.unit)} in the segmentation, {_unit_name(run.unit)} in {log}"
        raise DataError(Fault("segmentation-unit", detail, segmentation.path))
    faults, beyond, after = Faults(), [], []
    ends = segmentation.offset + segmentation.duration
    written = np.nan_to_num(run.delays.last())
    lengths = np.maximum(run.source_length, written)
    for name, row, segments in pairs:
        last = int(segments[np.argmax(ends[segments])])
        end, length = float(ends[last]), float(lengths[row])
        if (length and end > TIMES_TOO_FAR * length) or end * TIMES_TOO_FAR < written[row]:
            line = None if segmentation.line is None else int(segmentation.line[last])
            detail = f"{shown(name)} ends at {end:.10g} {run.unit}, but at {length:.10g} {run.unit} in the log"
            faults.add(Fault("segmentation-unit", detail, segmentation.path, line, last))
        late = segmentation.offset[segments] > length + SLACK[run.unit]
        beyond.append(segments[late])
        after.append(segments[~late & (ends[segments] > length + SLACK[run.unit]) & (length > 0)])
    if faults:
        raise DataError(faults)
    return [
        *_beyond(beyond, "begin after the end of their recording in the log: was it cut off?"),
        *_beyond(after, "end long after their recording does in the log: are their times right?"),
    ]


def _unit_name(unit: str) -> str:
    return "milliseconds" if unit == "ms" else "source words"


def _beyond(rows: Sequence[npt.NDArray[np.int64]], text: str) -> list[Note]:
    segments = np.sort(np.concatenate(rows)) if rows else np.empty(0, np.int64)
    named = tuple(segments[:SHOWN].tolist())
    return [Note("beyond the recording", text, len(segments), named)] if len(segments) else []
