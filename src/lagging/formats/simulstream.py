# SPDX-License-Identifier: Apache-2.0
"""simulstream's `metrics.jsonl` (hlt-mt/simulstream): one line per processed chunk of audio, times in seconds.

    {"model_loading_time": 22.95}
    {"id": 0, "metadata": {"wav_name": "/data/talk1.wav"}}
    {"id": 0, "total_audio_processed": 2.0, "computation_time": 0.18, "generated_tokens": ["▁Hal", "lo", "▁da"],
     "deleted_tokens": []}                                                                        (on one line)
    {"id": 0, "total_audio_processed": 3.0, "computation_time": 0.19, "generated_tokens": ["▁hier"],
     "deleted_tokens": ["▁da"]}

Each stream is a segment: what is left of its text after all deletions. The delay of a word is the audio processed when
it was last changed, so that a word of which a sub-word was rewritten, or taken away, is timed anew; its elapsed time is
that plus the computing time of that one chunk. So does simulstream 1.0, which detokenises the whole text at every
chunk, in quadratic time. Times are kept to the nanosecond.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET, UnsetType

from lagging.data.checks import about, check, remark, repair
from lagging.data.ragged import Floats, Ragged
from lagging.data.run import Origin, Run, make_ids, make_texts
from lagging.data.tokens import count_tokens, is_torn
from lagging.errors import Fault, Note, UsageError
from lagging.formats.line import Read, decode, explain, read_id, read_number, shown, surrogate_fault
from lagging.formats.options import ReadOptions
from lagging.formats.report import ReadReport
from lagging.formats.revisions import Stream
from lagging.formats.source import Batch, Source
from lagging.formats.subwords import Joint, find_joint, join, usual_level

__all__ = ["file_name", "scan", "to_ms"]

ADDRESS = 1 << 31
"""A server names a stream by the address of an object: a number beyond this is a name, not an index."""

DIGITS = 6
"""Decimal places of a millisecond that are kept, so that seconds survive writing and reading."""

PER_STEP = (
    "elapsed times decrease: as in simulstream, each counts the computing of its own step alone; "
    "clock=queue carries it over"
)


class Row(msgspec.Struct, gc=False):
    """The fields that are read of a line; all others are skipped."""

    id: int | str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType | None = UNSET
    total_audio_processed: float | UnsetType | None = UNSET
    computation_time: float | UnsetType | None = UNSET
    generated_tokens: list[str] | UnsetType | None = UNSET
    deleted_tokens: list[str] | UnsetType | None = UNSET
    model_loading_time: Any = UNSET


STEP = ("total_audio_processed", "computation_time", "generated_tokens", "deleted_tokens")


# ---- lines ----------------------------------------------------------------------------------------------------------


def _read_metadata(key: str, value: Any) -> tuple[Any, list[Fault]]:
    if value is not None and not isinstance(value, dict):
        return UNSET, [Fault("bad-value", f"{key}: {shown(value)}")]
    return (UNSET, [surrogate_fault(key)]) if value and is_torn(str(value.get("wav_name"))) else (value, [])


def _read_tokens(key: str, value: Any) -> tuple[Any, list[Fault]]:
    if value is not None and not (isinstance(value, list) and all(isinstance(token, str) for token in value)):
        return UNSET, [Fault("bad-value", f"{key}: {shown(value)}")]
    return (UNSET, [surrogate_fault(key)]) if value and any(map(is_torn, value)) else (value, [])


READERS: dict[str, Read] = {
    "id": read_id,
    "metadata": _read_metadata,
    "total_audio_processed": read_number("bad-value"),
    "computation_time": read_number("bad-value"),
    "generated_tokens": _read_tokens,
    "deleted_tokens": _read_tokens,
    "model_loading_time": lambda key, value: (value, []),
}
"""How each field of a line is read, when the line is decoded by itself."""


# ---- reading --------------------------------------------------------------------------------------------------------


def scan(source: Source, options: ReadOptions, report: ReadReport) -> Iterator[Run]:
    """The streams of a log as one Run, since none is known to be complete before the end; faults go to the report."""
    if options.unit == "token":
        raise UsageError(f"{source.path}: the delays of a simulstream log are times, so its unit is ms")
    log = _Log(source, options, report)
    for batch in source.batches():
        log.hold(batch)
    log.finish()
    if log.streams:
        yield log.run()


class _Log:
    """Turns lines into streams, and streams into a Run."""

    def __init__(self, source: Source, options: ReadOptions, report: ReadReport) -> None:
        self.source, self.options, self.report = source, options, report
        self.streams: list[Stream] = []
        self._by_id: dict[int | str, Stream] = {}
        self._json = msgspec.json.Decoder(Row)
        self._again: dict[int | str, int] = {}
        self._blank = self._other = 0
        self._sure = True

    def _fault(self, kind: str, detail: str, line: int, name: int | str | None = None) -> None:
        self.report.faults.add(Fault(kind, detail, self.source.path, line, name))

    def hold(self, batch: Batch) -> None:
        """Add the lines of a batch; a batch that cannot be decoded at once is decoded line by line."""
        rows = decode(batch, self._json)
        if rows is not None:
            for line, row in zip(batch.numbers, rows, strict=True):
                self._take(row, line)
            return
        for line, text in zip(batch.numbers, batch.lines, strict=True):
            if not text.strip():
                self._blank += 1
                continue
            values, faults = explain(text, READERS)
            if self.report.leave_out_torn(faults, self.source, line, self.options.repair):
                continue
            row = Row(**(values or {}))
            name = None if row.id is UNSET else row.id
            for fault in faults:
                self._fault(fault.kind, fault.detail, line, name)
            if faults:
                self._doubt(name)
            if name is not None or not faults:
                self._take(row, line, faulty=bool(faults))

    def _doubt(self, name: int | str | None) -> None:
        """Stop checking the deletions of a stream after a line that cannot be read; of all streams, if it has no id."""
        if name is None and self._sure:
            self._sure = False
            for stream in self.streams:
                stream.sure = False
        elif name in self._by_id:
            self._by_id[name].sure = False

    def _take(self, row: Row, line: int, faulty: bool = False) -> None:
        """Add a line; `faulty` if a wrong type in it was reported already."""
        step = [None if (value := getattr(row, key)) is UNSET else value for key in STEP]
        is_step = row.metadata is UNSET or any(value is not None for value in step)
        if row.id is UNSET:
            if row.metadata is UNSET and all(value is None for value in step):
                self._other += row.model_loading_time is UNSET
                return
            self._fault("missing-id", "a line belongs to a stream by its `id`", line)
            self._doubt(None)
            return
        stream = self._by_id.get(row.id)
        if stream is None:
            stream = self._by_id[row.id] = Stream(row.id, line, sure=self._sure and not faulty)
            self.streams.append(stream)
        if isinstance(row.metadata, dict):
            stream = self._by_id[row.id] = self._name(stream, row.metadata, line, row.id)
        if is_step:
            for fault in stream.step(*step):
                if not (faulty and fault.kind in ("missing-audio", "bad-value")):
                    self._fault(fault.kind, fault.detail, line, row.id)

    def _name(self, stream: Stream, metadata: dict[str, Any], line: int, key: int | str) -> Stream:
        """The stream of a recording; a new one if the id was used for another recording, since servers reuse ids."""
        name = metadata.get("wav_name")
        if name is None:
            return stream
        if not isinstance(name, str):
            self._fault("bad-value", f"wav_name: {shown(name)}", line, stream.id)
            return stream
        if stream.recording not in (None, name):
            self._again[key] = self._again.get(key, 1) + 1
            stream = Stream(f"{key}-{self._again[key]}", line)
            self.streams.append(stream)
        stream.recording = name
        return stream

    def finish(self) -> None:
        """Report what was skipped, and recordings that were processed twice."""
        note, path = self.report.notes.append, self.source.path
        self.report.note_blank_lines(self.source, self._blank)
        if self._other:
            note(Note("other line", f"neither a chunk nor metadata: skipped, in {path}", self._other, noun="line"))
        if self._again:
            text = "used for another recording later on: that is a stream of its own"
            note(Note("id used again", text, len(self._again), tuple(self._again)[:5], noun="id"))
        first: dict[str, Stream] = {}
        for stream in self.streams:
            if stream.recording is not None and (before := first.setdefault(stream.recording, stream)) is not stream:
                detail = f"{shown(stream.recording)}, also stream {before.id} from line {before.line} on"
                self._fault("stream-twice", detail, stream.line, stream.id)

    def run(self) -> Run:
        """A checked Run with a segment per stream."""
        streams, options, report = self.streams, self.options, self.report
        vocabulary = {token for stream in streams for pieces in (stream.tokens, *stream.deletions) for token in pieces}
        joint = find_joint([stream.tokens for stream in streams], vocabulary)
        level = options.level or usual_level((join(stream.tokens, joint).text for stream in streams), vocabulary)
        texts, written, first, erased = zip(*(stream.read(joint, level) for stream in streams), strict=True)
        columns = self._columns(Ragged.from_rows(written), Ragged.from_rows(first))
        unknown = np.array([not stream.says_deleted for stream in streams])
        revisions = np.array([len(stream.deletions) for stream in streams])
        named = [stream.id for stream in streams]
        run = Run(
            **{name: values for name, values in columns.items() if values is not None},
            erased=np.where(unknown, np.nan, erased),
            revisions=np.where(unknown, np.nan, revisions),
            id=make_ids(list(map(str, named)) if _are_addresses(named) else named),
            prediction=make_texts(texts),
            document=make_texts(_documents([stream.recording for stream in streams])),
            line=np.array([stream.line for stream in streams], dtype=np.int64),
            unit="ms",
            level=level,
            # an id belongs to a connection to a server, not to a segment of the test set
            origin=Origin(self.source.path, "simulstream", _describe(joint, level), named=False),
        )
        run = repair(run, [name for name in options.repair if name not in ("first", "last")])
        report.faults.add(*check(run, token_counts=count_tokens(texts, level, run.delays.lengths)))
        report.notes.extend([*remark(run), *self._remark(run, unknown)])
        return run

    def _columns(self, steps: Ragged, first: Ragged) -> dict[str, Any]:
        """The columns of times, from the steps that wrote, and that first showed, each target token."""
        arrivals = Ragged.from_rows([to_ms(stream.audio) for stream in self.streams])
        delays, compute, elapsed = arrivals.pick(steps), None, None
        if not any(None in stream.compute for stream in self.streams):
            compute = Ragged.from_rows([to_ms(stream.compute) for stream in self.streams])
            elapsed = Ragged(np.round(delays.values + compute.pick(steps).values, DIGITS), steps.offsets)
        requested = self.options.columns
        revised = any(stream.deletions for stream in self.streams)
        aside = {
            "first_times": arrivals.pick(first) if revised else None,
            "arrivals": arrivals,
            "compute": compute,
            "steps": steps,
        }
        return {
            "delays": delays,
            "source_length": np.nan_to_num(arrivals.last()),
            "elapsed": elapsed,
            **{name: values for name, values in aside.items() if requested is None or name in {"compute", *requested}},
        }

    def _remark(self, run: Run, unknown: npt.NDArray[np.bool_]) -> Iterator[Note]:
        if untimed := sum(stream.compute.count(None) for stream in self.streams):
            text = "no `computation_time`: elapsed times and computing times are not available"
            yield Note("no computing time", text, untimed, noun="line")
        text = "no `deleted_tokens`: taken to delete nothing; what was erased is not available"
        yield from about(run, "no deletions", text, unknown)
        nameless = [stream.recording is None for stream in self.streams]
        yield from about(run, "no recording", "no metadata with a `wav_name`: the document is not known", nameless)
        if run.elapsed is not None:
            yield from about(run, "elapsed per step", PER_STEP, run.elapsed.rows_with(run.elapsed.falls()))


def to_ms(seconds: Any) -> Floats:
    """Seconds as milliseconds, to the nanosecond."""
    return np.round(np.array(seconds, dtype=np.float64) * 1000, DIGITS)


def _are_addresses(ids: list[int | str]) -> bool:
    return any(isinstance(name, int) and abs(name) >= ADDRESS for name in ids)


def file_name(path: str) -> str:
    """The last part of a path, of any operating system."""
    return re.split(r"[/\\]", path)[-1] or path


def _documents(recordings: list[str | None]) -> list[str | None] | None:
    """The names of the files; their paths if two files have the same name; None if no name is known."""
    known = {path for path in recordings if path is not None}
    if not known:
        return None
    clear = len({file_name(path) for path in known}) == len(known)
    return [file_name(path) if path is not None and clear else path for path in recordings]


def _describe(joint: Joint, level: str) -> str:
    counted = level if level in ("word", "char", "token") else "piece"
    times = "delays and source length in ms of audio processed"
    return f"simulstream log, speech → text, {times}, {joint.description}, target counted in {counted}s"
