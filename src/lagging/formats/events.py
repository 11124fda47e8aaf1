# SPDX-License-Identifier: Apache-2.0
"""Event streams: a line per update of what is shown, with the time of showing it, in one of several dialects.

See `lagging.formats.dialects` for the dialects, and `lagging.formats.display` for what an update changes.

Each recording is a segment, with the text that is shown in the end. The delay of a word is how much audio had been
heard when it became stable, and its elapsed time is when that was shown. Where the stream does not say how much had
been heard, the delay is the time at which it was shown. `first_times` are the times at which words were first shown.

The source of a recording is as long as the last update says, or as `source_length` of the options.

The queue clock is what a listener sees. Where nothing was shown before its audio had been heard, that is the time of
showing. Elsewhere it is not known: the run did not wait for its audio, or its clocks do not agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lagging.data.checks import about, check, number, remark, repair
from lagging.data.ragged import Floats, Ints, Ragged
from lagging.data.run import Origin, Run, make_ids, make_texts
from lagging.data.scripts import is_unspaced
from lagging.data.tokens import count_tokens, noun
from lagging.errors import Fault, Note, UsageError, counted
from lagging.formats.dialects import (
    DIGITS,
    KEYS,
    LATEST,
    UNITS,
    Event,
    Spoken,
    dialect_of,
    read_events,
    read_spoken,
)
from lagging.formats.display import Display
from lagging.formats.line import brief, explain, read_as_is, shown
from lagging.formats.options import ReadOptions
from lagging.formats.report import ReadReport
from lagging.formats.source import Source, first_line
from lagging.formats.stream_units import SHORTEST, unit_of_receipts, unit_of_spoken
from lagging.formats.subwords import AS_IS

__all__ = ["recognise", "scan"]

ROUNDING = 1.0
"""In ms: what is shown this much before its audio was not shown before it."""

READERS = dict.fromkeys(KEYS, read_as_is)

DIALECTS = {
    "generic": "lagging's own form, times in ms",
    "whisper_streaming": "text that is appended, never revised",
    "SimulStreaming": "text that is appended, never revised, times in seconds",
    "updates": "the whole text so far in each line, times in ms",
}


def recognise(head: bytes) -> bool:
    """Whether the first line that is not blank is one of whisper_streaming's; `json_kinds` knows the others."""
    return read_spoken(1, first_line(head).decode("utf-8", "replace").rstrip("\r\n")) is not None


def scan(source: Source, options: ReadOptions, report: ReadReport) -> Iterator[Run]:
    """The recordings of a stream as one Run, since none is known to be complete before the end."""
    if options.unit == "token":
        raise UsageError(f"{source.path}: the delays of a stream are times, so its unit is ms")
    if options.level not in (None, "word", "char"):
        raise UsageError(f"{source.path}: a stream has words and characters, and no other tokens; leave --level out")
    log = _Log(source, options, report)
    log.read()
    if log.recordings:
        yield log.run()


@dataclass(slots=True)
class _Recording:
    """A recording: its name, if the lines give one, and its updates."""

    name: str | None
    events: list[Event] = field(default_factory=list)

    def read(self, level: str) -> tuple[str, Ints, Ints, float, float]:
        """The text in the end, the updates that made stable and first showed its tokens, and what was revised."""
        display = Display(level)
        for step, event in enumerate(self.events):
            display.update(step, event)
        text, steps, first, erased = display.writing.read(AS_IS, level)
        more = [sum(getattr(event, what) for event in self.events) for what in ("erased", "revisions")]
        return text, steps, first, erased + more[0], len(display.writing.deletions) + more[1]

    @property
    def timed(self) -> bool:
        """Whether any update says when it was shown."""
        return any(event.timed for event in self.events)

    def times(self, heard: bool) -> list[float]:
        """Of each update, when it was shown; or how much had been heard, which is nothing where it is not known yet."""
        return [event.audio or 0.0 for event in self.events] if heard else [event.time for event in self.events]


class _Log:
    """Turns lines into updates, and updates into a Run."""

    def __init__(self, source: Source, options: ReadOptions, report: ReadReport) -> None:
        self.source, self.options, self.report = source, options, report
        self.recordings: dict[str | None, _Recording] = {}
        self.dialect: str | None = None
        self.spoken: list[Spoken] = []
        self.unclear: list[Event] = []
        self._unit_used = False
        self._blank = self._other = 0

    def _fault(self, kind: str, detail: str, line: int, name: str | None = None) -> None:
        self.report.faults.add(Fault(kind, detail, self.source.path, line, name))

    # ---- lines --------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read all lines."""
        for batch in self.source.batches():
            for line, raw in zip(batch.numbers, batch.lines, strict=True):
                if not raw.strip():
                    self._blank += 1
                elif raw.lstrip().startswith((b"{", b"[")):
                    self._take_object(raw, line)
                else:
                    self._take_text(raw, line)
        self._convert()
        self.report.note_blank_lines(self.source, self._blank)
        if self._other and not (self.recordings or self.report.faults):
            self._fault(
                "empty-log", f"{counted(self._other, 'message')} of {self.dialect}, and none is a transcript", 1
            )
        if self._other:
            text = f"a message of the service that is no result: skipped, in {self.source.path}"
            self.report.notes.append(Note("other line", text, self._other, noun="line"))

    def _is(self, dialect: str, line: int) -> bool:
        """Whether a line in this dialect is in that of the file."""
        self.dialect = self.dialect or dialect
        if self.dialect != dialect:
            self._fault("mixed-dialects", f"{dialect}, and {self.dialect} before", line)
        return self.dialect == dialect

    def _take_text(self, raw: bytes, line: int) -> None:
        try:
            text = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            self._fault("not-utf8", f"byte {error.start + 1} is 0x{raw[error.start]:02x}", line)
            return
        spoken = read_spoken(line, text)
        if spoken is None:
            self._fault("not-a-stream", shown(brief(text)), line)
        elif self._is("whisper_streaming", line):
            self.spoken.append(spoken)

    def _take_object(self, raw: bytes, line: int) -> None:
        record, faults = explain(raw, READERS)
        if self.report.leave_out_torn(faults, self.source, line, self.options.repair):
            return
        for fault in faults:
            self._fault(fault.kind, fault.detail, line)
        if record is None or faults:
            return
        dialect = dialect_of(record)
        if dialect is None:
            self._fault("not-a-stream", brief(raw.decode("utf-8").strip()), line)
            return
        if not self._is(dialect, line):
            return
        events = read_events(line, record, dialect)
        if isinstance(events, Fault):
            name = record.get("recording")
            self._fault(events.kind, events.detail, line, name if isinstance(name, str) else None)
            return
        self._other += not events
        for event in events:
            if event.unclear:
                self.unclear.append(event)
            else:
                self._hold(self._in_ms(event) if dialect == "generic" else event)

    def _in_ms(self, event: Event) -> Event:
        """An update in the generic form, whose times are in the unit of the options, with all of them in ms."""
        if self.options.time_unit is not None:
            self._unit_used = True
            scale = UNITS[self.options.time_unit]
            event.time = round(event.time * scale, DIGITS)
            event.audio = None if event.audio is None else round(event.audio * scale, DIGITS)
            event.first = None if event.first is None else round(event.first * scale, DIGITS)
        return event

    def _hold(self, event: Event) -> None:
        """Add an update to its recording; its times do not go back."""
        if event.time >= LATEST:
            self._fault("impossible-stream-time", f"{number(event.time)} ms", event.line, event.recording)
            return
        events = self.recordings.setdefault(event.recording, _Recording(event.recording)).events
        last = events[-1] if events else None
        for key in ("time", "audio"):
            before, now = getattr(last, key, None), getattr(event, key)
            if key == "time" and last is not None and not event.timed:
                event.time = max(event.time, last.time)
            elif before is not None and now is not None and now < before:
                self._fault(
                    "time-goes-back", f"{key}: {number(before)} → {number(now)} ms", event.line, event.recording
                )
                setattr(event, key, before)
        if last is not None and event.audio is None:
            event.audio = last.audio
        events.append(event)

    # ---- units --------------------------------------------------------------------------------------------------

    def _convert(self) -> None:
        """The updates whose unit is known only now."""
        self._check_requested_unit()
        if self.spoken:
            self._convert_spoken()
        if self.unclear:
            self._convert_received()

    def _check_requested_unit(self) -> None:
        """Refuse a unit other than that which a dialect always has."""
        requested, own = self.options.time_unit, {"SimulStreaming": "s", "updates": "ms"}.get(self.dialect or "")
        service = own is None and self.dialect not in (None, "generic", "whisper_streaming")
        if requested is not None and ((own or requested) != requested or (service and not self.unclear)):
            raise UsageError(
                f"{self.source.path}: the times of this stream ({self.dialect}) name their unit, so "
                f"--time-unit {requested} does not go with it; leave it out"
            )

    def _unit(self, detected: tuple[str, str] | None, line: int, looks: str) -> str:
        """The unit of the options, or the one detected, with a note; a fault at this line if there is neither."""
        if self.options.time_unit is not None:
            self._unit_used = True
            unit, why = self.options.time_unit, ""
            note = f"{unit}, as requested"
        else:
            unit, why = detected or ("ms", "")
            note = f"taken for {unit}: {why}" if why else ""
            if detected is None:
                self._fault("unclear-time-unit", looks, line)
        if note:
            self.report.notes.append(Note("time unit", f"{note}, in {self.source.path}"))
        return unit

    def _convert_received(self) -> None:
        """The results of services, in ms."""
        first = self.unclear[0]
        looks = f"{number(first.time)} for results about {number(first.audio or 0.0)} ms of audio"
        unit = self._unit(unit_of_receipts(self.unclear), first.line, looks)
        held = [event for recording in self.recordings.values() for event in recording.events]
        self.recordings = {}
        for event in self.unclear:
            event.time = round(event.time * UNITS[unit], DIGITS)
        for event in sorted([*held, *self.unclear], key=lambda event: event.line):
            self._hold(event)

    def _convert_spoken(self) -> None:
        """The lines of whisper_streaming."""
        looks = "whole numbers" if all(spoken.whole for spoken in self.spoken) else "numbers with decimals"
        looks += f", the largest is {number(max(max(spoken.numbers) for spoken in self.spoken))}"
        unit = self._unit(unit_of_spoken(self.spoken), self.spoken[0].line, looks)
        texts = [spoken.text for spoken in self.spoken if spoken.text.strip()]
        glued = len(texts) > 1 and not any(text[0].isspace() for text in texts) and not is_unspaced("".join(texts))
        if glued:
            text = f"no line begins with a space: each is taken to begin a new word, in {self.source.path}"
            self.report.notes.append(Note("no leading space", text))
        for spoken in self.spoken:
            time = round(spoken.numbers[0] * UNITS[unit], DIGITS)
            if not 0 <= time < LATEST:
                self._fault("impossible-stream-time", number(spoken.numbers[0]), spoken.line)
                continue
            self._hold(Event(spoken.line, time, None, " " * glued + spoken.text))

    # ---- the Run ------------------------------------------------------------------------------------------------

    def _name(self, recording: _Recording) -> str:
        if recording.name is not None:
            return recording.name
        file = self.source.file
        return "stdin" if file is None else Path(file.name.removesuffix(".gz")).stem

    def run(self) -> Run:
        """A checked Run with a segment per recording."""
        recordings, options, report = list(self.recordings.values()), self.options, self.report
        everything = "".join(event.text for recording in recordings for event in recording.events)
        level = options.level or ("char" if is_unspaced(everything) else "word")
        read = [recording.read(level) for recording in recordings]
        texts = [text for text, *_ in read]
        steps, first = Ragged.from_rows([row[1] for row in read]), Ragged.from_rows([row[2] for row in read])
        heard, timed = self._heard(recordings), self._timed(recordings)
        times, axis = (Ragged.from_rows([recording.times(h) for recording in recordings]) for h in (False, heard))
        named = [recording.name for recording in recordings]
        columns: dict[str, Any] = {
            "elapsed": times.pick(steps) if heard and timed else None,
            "queue_times": times.pick(steps) if heard and timed and _waited(times, axis) else None,
            "first_times": _first_times(recordings, axis, steps, first) if any(row[4] for row in read) else None,
        }
        run = Run(
            delays=axis.pick(steps),
            source_length=_lengths(axis, options.source_length),
            **{name: column for name, column in columns.items() if options.columns is None or name in options.columns},
            erased=np.array([row[3] for row in read]),
            revisions=np.array([row[4] for row in read]),
            id=make_ids([report.placed + row if name is None else name for row, name in enumerate(named)]),
            prediction=make_texts(texts),
            document=make_texts([self._name(recording) for recording in recordings]),
            line=np.array([recording.events[0].line for recording in recordings], dtype=np.int64),
            unit="ms",
            level=level,
            origin=Origin(self.source.path, "stream", self._describe(heard, level), named=None not in named),
            given=self._given(),
        )
        run = repair(run, [name for name in options.repair if name not in ("first", "last")])
        report.faults.add(*check(run, token_counts=count_tokens(texts, level, run.delays.lengths)))
        report.notes.extend([*remark(run), *self._remark(run, heard, timed)])
        return run

    def _heard(self, recordings: list[_Recording]) -> bool:
        """Whether it is known how much had been heard; of all recordings, or of none."""
        heard = [recording.events[-1].audio is not None for recording in recordings]
        for recording, known in zip(recordings, heard, strict=True):
            if not known and any(heard):
                detail = "no `audio`, which other recordings of the file have"
                self._fault("missing-audio-time", detail, recording.events[0].line, recording.name)
        return all(heard)

    def _timed(self, recordings: list[_Recording]) -> bool:
        """Whether it is known when updates were shown; of all, or of none."""
        timed = any(recording.timed for recording in recordings)
        for recording in recordings:
            for event in recording.events:
                if timed and not event.timed:
                    detail = "no `wallclock_elapsed_ms`, which other lines of the file have"
                    self._fault("missing-time", detail, event.line, recording.name)
        return timed

    def _given(self) -> tuple[tuple[str, str], ...]:
        """What the options say of times, as a signature has it."""
        given = []
        if self.options.time_unit is not None and self._unit_used:
            given.append(("times", self.options.time_unit))
        if self.options.source_length is not None:
            given.append(("x", number(self.options.source_length)))
        return tuple(given)

    def _describe(self, heard: bool, level: str) -> str:
        dialect = self.dialect or "generic"
        times = "delays in ms of audio heard" if heard else "delays in ms until shown"
        return f"event stream of the dialect {dialect}, speech → text, {times}, target counted in {noun(level)}s"

    def _remark(self, run: Run, heard: bool, timed: bool) -> Iterator[Note]:
        dialect = self.dialect or "generic"
        description = DIALECTS.get(dialect, "interim results replace each other until one is final")
        yield Note("dialect", f"{dialect}: {description}")
        if not heard:
            text = "no line says how much audio had been heard: delays are the times of showing, computing included"
            yield Note("no audio times", text)
        if not timed:
            yield Note("no times of showing", "no line says when it was shown: there are no elapsed times")
        largest = max(event.time for recording in self.recordings.values() for event in recording.events)
        if 0 < largest < SHORTEST and self.dialect in ("generic", "updates", "Deepgram", "AssemblyAI", "Speechmatics"):
            yield Note("TIMES BELOW 100 MS", "are they in seconds? they are taken for ms, as this dialect has them")
        if self.options.source_length is None:
            last = "audio time" if heard else "time"
            text = f"not in the stream: the last {last} stands in for it; --source-length or --segmentation gives it"
            yield Note("source length", text)
        else:
            yield Note("source length", f"{number(self.options.source_length)} ms, as requested")
        late = run.delays.last() > run.source_length
        if self.options.source_length is not None and late.any():
            yield from about(run, "beyond the source", "text was shown after the end that --source-length gives", late)


def _waited(times: Ragged, axis: Ragged) -> bool:
    """Whether nothing was shown before its audio had been heard."""
    return bool((times.values >= axis.values - ROUNDING).all())


def _lengths(axis: Ragged, given: float | None) -> Floats:
    last: Floats = np.nan_to_num(axis.last())
    return last if given is None else np.full(len(axis), given)


def _first_times(recordings: list[_Recording], axis: Ragged, steps: Ragged, first: Ragged) -> Ragged:
    """When each token was first shown, by the updates themselves, or by what they say of earlier ones."""
    earlier = Ragged.from_rows(
        [[math.inf if event.first is None else event.first for event in recording.events] for recording in recordings]
    )
    times = np.minimum(axis.pick(first).values, earlier.pick(steps).values)
    return Ragged(times, steps.offsets)
