# SPDX-License-Identifier: Apache-2.0
"""A Segmentation: where the segments of each recording lie, and what their references are. Checked when it is made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lagging.data.checks import FAR, number
from lagging.data.columns import freeze
from lagging.data.ragged import Floats, Ints, Ragged
from lagging.data.run import Texts, make_texts
from lagging.data.tokens import count_words, is_torn
from lagging.errors import SHOWN, DataError, Fault, Faults, Note, UsageError, counted, merge_notes
from lagging.formats.line import shown
from lagging.formats.report import ReadReport
from lagging.formats.simulstream import DIGITS, file_name
from lagging.longform.entries import Entry, read_entries, read_lines

__all__ = ["Segmentation", "read_segmentation"]

FIELDS = ("wav", "offset", "duration")
"""What an entry must have; whatever else it has is left aside."""

NOTHING = ("", "~", "null")
"""How YAML writes no value."""

TOUCHING = 1e-2
"""Segments that share less than this, in ms, only touch: times in seconds are rounded."""

Problem = tuple[str, str, int]
"""Kind of fault, offending value, segment."""


@dataclass(frozen=True, eq=False, repr=False)
class Segmentation:
    """The segments of a test set, in the order of their file, one entry per segment in every column.

    Make one with `read_segmentation` or `Segmentation.from_lists`; the constructor itself takes columns as they are.

    Attributes:
        document: the recording that the segment belongs to.
        offset: where it begins in its recording, in `unit`s; NaN where that is not known.
        duration: how long it is.
        id: 0, 1, 2, … in the order of the file.
        reference, source: texts; None for no column.
        line: line of each segment in its file; None where it comes from no file.
        unit: "ms", "token" (source words), or "none" if there are no times.
        path: the file; None for a Segmentation made in Python.
        notes: what a reader of the scores must know.
    """

    document: Texts
    offset: Floats
    duration: Floats
    id: Ints
    reference: Texts | None = None
    source: Texts | None = None
    line: Ints | None = None
    unit: str = "ms"
    path: str | None = None
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        """Make every column read-only."""
        freeze(self, ("document", "offset", "duration", "id", "reference", "source", "line"))

    @classmethod
    def from_lists(
        cls,
        document: Sequence[str],
        offset: Sequence[float] | npt.NDArray[Any] | None = None,
        duration: Sequence[float] | npt.NDArray[Any] | None = None,
        reference: Sequence[str] | None = None,
        source: Sequence[str] | None = None,
        unit: str = "ms",
    ) -> Segmentation:
        """A Segmentation from Python lists, checked: every fault is reported at once.

        Args:
            document: the recording of each segment.
            offset, duration: where each begins, and how long it is, in `unit`s; neither if that is not known.
            reference, source: a text for each.
            unit: "ms" or "token".

        Raises:
            DataError: for anything that makes no sense, with the segment.

        Example:
            >>> Segmentation.from_lists(["a.wav", "a.wav", "b.wav"], [0, 2000, 0], [1900, 2500, 3000])
            Segmentation(2 recordings, 3 segments, ms)
            >>> Segmentation.from_lists(["a.wav"], [0], [-5])
            Traceback (most recent call last):
            lagging.errors.DataError: a segment at a time that cannot be (segment 0): duration -5 ms
              A segment begins at 0 or later, and its duration is not negative.
              fix: mend the entry; in YAML and JSON offset and duration are seconds.
        """
        if unit not in ("ms", "token"):
            raise UsageError(f"unit must be 'ms' or 'token', but got {unit!r}")
        if (offset is None) != (duration is None):
            raise UsageError("offset and duration go together: give both, or neither")
        inputs = {
            "document": document,
            "offset": offset,
            "duration": duration,
            "reference": reference,
            "source": source,
        }
        columns = {name: list(values) for name, values in inputs.items() if values is not None}
        faults = Faults()
        for name, values in columns.items():
            if len(values) != len(columns["document"]):
                detail = f"{name} has {len(values)} entries, document {len(columns['document'])}"
                faults.add(Fault("length-mismatch", detail))
        if faults:
            raise DataError(faults)
        return _make(columns, ReadReport(), unit=unit if "offset" in columns else "none")

    def __len__(self) -> int:
        """Number of segments."""
        return len(self.document)

    def __repr__(self) -> str:
        """`Segmentation(27 recordings, 2641 segments, ms)`."""
        unit = "no times" if self.unit == "none" else self.unit
        counts = f"{counted(len(self.recordings), 'recording')}, {counted(len(self), 'segment')}"
        return f"Segmentation({counts}, {unit})"

    @cached_property
    def codes(self) -> Ints:
        """The recording of each segment as a number: 0, 1, 2, … in the order of their first appearance."""
        places: dict[str, int] = {}
        return np.array([places.setdefault(name, len(places)) for name in self.document.tolist()], dtype=np.int64)

    @cached_property
    def by_time(self) -> Ints:
        """The segments of the first recording in order of time, those of the second, and so on."""
        return np.lexsort((self.offset, self.codes))

    @cached_property
    def recordings(self) -> dict[str, Ints]:
        """The segments of each recording, in order of time; without times, in the order of the file.

        Example:
            >>> Segmentation.from_lists(["a", "b", "a"], [2000, 0, 1000], [500, 500, 500]).recordings
            {'a': array([2, 0]), 'b': array([1])}
        """
        names = dict.fromkeys(self.document.tolist())
        ends = np.cumsum(np.bincount(self.codes, minlength=len(names)))
        return dict(zip(names, np.split(self.by_time, ends[:-1]), strict=True))


# ---- making one -----------------------------------------------------------------------------------------------------


def _make(
    columns: dict[str, list[Any]],
    report: ReadReport,
    *,
    unit: str,
    scale: float = 1.0,
    path: str | None = None,
    line: Sequence[int] | None = None,
) -> Segmentation:
    """Columns of whatever was given, checked and in order."""
    names = [_name(value) for value in columns["document"]]
    unknown = [math.nan] * len(names)
    times = {
        name: np.array(list(map(_number, columns.get(name, unknown))), np.float64) for name in ("offset", "duration")
    }
    segmentation = Segmentation(
        document=_texts(names),
        offset=np.round(times["offset"] * scale, DIGITS),
        duration=np.round(times["duration"] * scale, DIGITS),
        id=np.arange(len(names)),
        reference=make_texts(columns.get("reference")),
        source=make_texts(columns.get("source")),
        line=None if line is None else np.array(line, dtype=np.int64),
        unit=unit,
        path=path,
    )
    for kind, detail, row in (
        *_wrong_fields(segmentation, columns),
        *_wrong_texts(columns),
        *_duplicates(segmentation),
    ):
        report.faults.add(Fault(kind, detail, path, None if line is None else line[row], row))
    if not names and not report.faults:
        report.faults.add(Fault("no-segments", path=path))
    if report.faults:
        raise DataError(report.faults)
    return replace(segmentation, notes=merge_notes([*report.notes, *_notes(segmentation)]))


def _texts(names: Sequence[str | None]) -> Texts:
    out = np.empty(len(names), dtype=object)
    out[:] = names
    return out


def _name(value: object) -> str | None:
    """The name of a recording; None if it is none."""
    if isinstance(value, str):
        return None if value.strip() in NOTHING or is_torn(value) else value.strip()
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float:
    """A finite number; NaN if it is none."""
    try:
        result = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return result if abs(result) < FAR else math.nan


def _wrong_fields(segmentation: Segmentation, columns: dict[str, list[Any]]) -> Iterator[Problem]:
    """Fields that are missing, of the wrong type, or beyond what can be."""

    def describe(field: str, row: int) -> str:
        value = columns[field][row]
        name = "wav" if field == "document" and segmentation.line is not None else field
        return f"no {name}" if value is None or value in NOTHING else f"{name}: {shown(value)}"

    for row in (row for row, name in enumerate(segmentation.document) if name is None):
        yield "segment-field", describe("document", row), row
    for field, times in (("offset", segmentation.offset), ("duration", segmentation.duration)):
        for row in np.flatnonzero(np.isnan(times)).tolist() if field in columns else ():
            yield "segment-field", describe(field, row), row
        for row in np.flatnonzero(times < 0).tolist():
            yield "segment-time", f"{field} {number(times.item(row))} {segmentation.unit}", row


def _wrong_texts(columns: dict[str, list[Any]]) -> Iterator[Problem]:
    for field in ("reference", "source"):
        for row, text in enumerate(columns.get(field, ())):
            if not isinstance(text, str) or is_torn(text):
                yield "bad-value", f"{field}: {shown(text)}", row


def _duplicates(segmentation: Segmentation) -> Iterator[Problem]:
    """Segments with the recording and the times of an earlier one; without times in ms, none is reported."""
    seen: dict[tuple[Any, ...], int] = {}
    keys = zip(
        segmentation.document.tolist(), segmentation.offset.tolist(), segmentation.duration.tolist(), strict=True
    )
    for row, key in enumerate(keys if segmentation.unit == "ms" else ()):
        if (first := seen.setdefault(key, row)) != row and None not in key:
            yield (
                "segment-twice",
                f"entry {first}" if segmentation.line is None else f"line {segmentation.line[first]}",
                row,
            )


def _note(segmentation: Segmentation, kind: str, text: str, rows: npt.NDArray[np.integer[Any]]) -> Iterator[Note]:
    """A note about segments, if there are any."""
    if len(rows):
        yield Note(kind, text, len(rows), tuple(segmentation.id[rows[:SHOWN]].tolist()))


def _notes(segmentation: Segmentation) -> Iterator[Note]:
    """What a reader of the scores must know of these segments."""
    codes, order = segmentation.codes, np.argsort(segmentation.codes, kind="stable")
    same = codes[order][1:] == codes[order][:-1]
    back = order[1:][same & (np.diff(segmentation.offset[order]) < 0)]
    yield from _note(
        segmentation, "not in order of time", "begin before the segment above them: sorted within the recording", back
    )
    parts = np.bincount(codes[np.flatnonzero(np.diff(codes, prepend=-1))])
    if (parts > 1).any():
        names = tuple(np.array(list(segmentation.recordings), dtype=object)[parts > 1][:SHOWN].tolist())
        text = "the segments of others stand among theirs in the file"
        yield Note("interleaved recordings", text, int((parts > 1).sum()), names, "recording")
    yield from _note(
        segmentation,
        "overlapping segments",
        "begin before the end of an earlier one of the recording",
        _overlaps(segmentation),
    )
    empty = np.flatnonzero(segmentation.duration == 0)
    yield from _note(segmentation, "empty segment", "the duration is 0, so there is no latency", empty)
    if segmentation.reference is not None:
        blank = np.flatnonzero([not text.strip() for text in segmentation.reference.tolist()])
        yield from _note(segmentation, "empty reference", "left out where a reference is needed", blank)


def _overlaps(segmentation: Segmentation) -> Ints:
    """The segments that begin before an earlier one has ended."""
    order = segmentation.by_time
    ends = Ragged.from_lengths((segmentation.offset + segmentation.duration)[order], np.bincount(segmentation.codes))
    latest = ends.by_token(lambda e: np.maximum.accumulate(e, axis=1)).values
    same = np.diff(segmentation.codes[order]) == 0
    return np.sort(order[1:][same & (segmentation.offset[order][1:] < latest[:-1] - TOUCHING)])


# ---- reading one ----------------------------------------------------------------------------------------------------


def read_segmentation(
    path: str | Path | None = None, *, reference: str | Path | None = None, source: str | Path | None = None
) -> Segmentation:
    r"""Read a segmentation, and the texts that go with it; every fault is reported at once.

    Args:
        path: YAML or JSON with `wav`, `offset` and `duration` (seconds) of each segment; or lines
            `docid=0,segid=0`; or the name of the recording of each segment, one per line. None if everything belongs to
            one recording.
        reference: a text file, a reference per segment.
        source: a text file, a source sentence per segment. Without YAML or JSON, its words are the clock: a segment
            begins after the source words before it, and is as long as it has words.

    Raises:
        DataError: for anything that makes no sense, with file and line.

    Example:
        >>> import tempfile, pathlib
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "dev.yaml").write_text("- {duration: 2.5, offset: 0.75, speaker_id: s, wav: talk.wav}\n")
        >>> _ = (folder / "dev.de").write_text("Hallo Welt\n")
        >>> segmentation = read_segmentation(folder / "dev.yaml", reference=folder / "dev.de")
        >>> segmentation.offset, segmentation.duration, segmentation.reference
        (array([750.]), array([2500.]), array(['Hallo Welt'], dtype=object))
    """
    report = ReadReport()
    files = {name: file for name, file in (("reference", reference), ("source", source)) if file is not None}
    if path is None and not files:
        raise UsageError("a segmentation, a reference or a source is needed")
    texts = {name: read_lines(file, report) for name, file in files.items()}
    if path is None:
        (where, lines), *_ = texts.values()
        entries: list[Entry] = [(line, {"wav": file_name(where)}) for line in range(1, len(lines) + 1)]
    else:
        where, lines = read_lines(path, report)
        entries = read_entries(where, lines, report)
    columns = _columns(entries, where, report)
    for name, (file, text) in texts.items():
        if len(text) == len(entries):
            columns[name] = text
        elif entries:
            detail = f"{counted(len(text), 'line')}, but {counted(len(entries), 'segment')} in {where}"
            report.faults.add(Fault("segment-lines", detail, file))
    if "offset" in columns:
        unit, scale = "ms", 1000.0
    else:
        unit, scale = ("token" if "source" in columns else "none"), 1.0
        columns |= _counted(columns) if unit == "token" else {}
    return _make(columns, report, unit=unit, scale=scale, path=where, line=[line for line, _ in entries])


def _columns(entries: list[Entry], path: str, report: ReadReport) -> dict[str, list[Any]]:
    """Names, and times if any entry has them."""
    rows = []
    for place, (line, entry) in enumerate(entries):
        if not isinstance(entry, dict):
            report.faults.add(Fault("segment-field", f"not an entry: {shown(entry)}", path, line, place))
            entry = {"wav": f"entry {place}", "offset": 0, "duration": 0}  # reported above
        rows.append(entry)
    columns = {name: [entry.get(name) for entry in rows] for name in FIELDS}
    timed = any(set(entry) != {"wav"} for entry in rows)
    return {"document": columns.pop("wav"), **(columns if timed else {})}


def _counted(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Offsets and durations in source words, counted anew in every recording."""
    words = count_words(columns["source"]).tolist()
    read: dict[str, int] = {}
    offset = []
    for name, count in zip(map(str, columns["document"]), words, strict=True):  # what is no name is a fault of its own
        offset.append(read.get(name, 0))
        read[name] = offset[-1] + count
    return {"offset": offset, "duration": words}
