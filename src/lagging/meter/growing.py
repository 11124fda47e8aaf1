# SPDX-License-Identifier: Apache-2.0
"""A growing log: the lines that are new since the last look, measured as a Meter measures them.

A recording of a Meter's log ends with an empty text that is final. Recordings that have not ended are measured at every
look as if they ended there.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lagging.data.ragged import Floats
from lagging.errors import Fault, UsageError
from lagging.formats.dialects import (
    DIGITS,
    KEYS,
    LATEST,
    UNITS,
    Event,
    dialect_of,
    read_events,
    read_spoken,
)
from lagging.formats.line import explain, read_as_is
from lagging.formats.stream_units import unit_of_receipts
from lagging.meter.measures import METRICS, Measures, check_metrics, measure
from lagging.meter.utterance import Finished, Utterance
from lagging.metrics.sentence import lags

__all__ = ["GrowingLog", "find_logs"]

ENDINGS = (".jsonl", ".log", ".txt", ".json")
READERS = dict.fromkeys(KEYS, read_as_is)
RECENT = 2000
"""The number of words whose lags are kept, for the course of the lag."""
BLOCK = 1 << 20


def find_logs(path: str | Path) -> list[Path]:
    """The logs that a path names: a file, or those of a folder.

    Raises:
        UsageError: there is nothing of that name.
    """
    path = Path(path)
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix in ENDINGS and file.is_file())
    if not path.exists():
        raise UsageError(f"no such file or directory: {path}")
    return [path]


@dataclass
class GrowingLog:
    """An event stream that grows.

    Attributes:
        path: the file.
        measured: the Measures of the recordings that ended.
        recordings: those that have not ended.
        label: the name of the system; that of the file if there is none.
        unread: how many lines are no updates, or of another dialect than the first.
        course: the lags of the last words of recordings that ended, in ms.
    """

    path: Path
    label: str = ""
    measured: Measures = field(default_factory=Measures)
    recordings: dict[str | None, Utterance] = field(default_factory=dict)
    unread: int = 0
    course: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _dialect: str | None = None
    _offset: int = 0
    _rest: bytes = b""
    _ended: list[Finished] = field(default_factory=list)
    _metrics: Any = field(default_factory=lambda: check_metrics(METRICS))

    @property
    def name(self) -> str:
        """The name of the system."""
        return self.label or self.path.name.removesuffix(self.path.suffix).removesuffix(".stream")

    def read(self) -> bool:
        """Read what is new. Returns whether there was anything."""
        before = self._offset
        with self.path.open("rb") as file:
            if file.seek(0, 2) < self._offset:  # it was begun anew
                self.__init__(self.path, self.label)  # type: ignore[misc]
            file.seek(self._offset)
            while block := file.read(BLOCK):
                self._offset += len(block)
                *lines, self._rest = (self._rest + block).split(b"\n")
                for line in lines:
                    self._take(line)
        if self._ended:
            self._fold()
        return self._offset != before

    def _take(self, raw: bytes) -> None:
        if not raw.strip():
            return
        dialect, events = _events(raw)
        if not events or dialect != (self._dialect or dialect):
            self.unread += 1
            return
        self._dialect = dialect
        for event in events:
            self._replay(event)

    def _replay(self, event: Event) -> None:
        name = event.recording
        if name not in self.recordings:
            self.recordings[name] = Utterance(name or self.name, None, lambda: 0.0, None, self._end)
        self.recordings[name].replay(event)
        if event.final and not event.text:
            self.recordings.pop(name).ended()

    def _end(self, utterance: Utterance, finished: Finished | None) -> None:
        if finished is not None:
            self._ended.append(finished)

    def _fold(self) -> None:
        """Measure the recordings that have ended."""
        for utterances in _by_level(self._ended):
            self.measured += measure(utterances, self._metrics, self.name)[0]
        for finished in self._ended:
            self.course.extend(_lags(finished).tolist())
        self._ended.clear()

    def snapshot(self) -> dict[str, Any]:
        """What a Meter's snapshot has, the recordings that have not ended included, and the course of the lag."""
        still_open = [utterance.finished() for utterance in self.recordings.values()]
        measured = self.measured
        for utterances in _by_level(still_open):
            measured += measure(utterances, self._metrics, self.name)[0]
        course = [*self.course, *(lag for finished in still_open for lag in _lags(finished).tolist())]
        backlogs = [float(finished.backlog[-1]) for finished in still_open if len(finished.backlog)]
        return {
            "system": self.name,
            "open": len(still_open),
            "backlog_now_ms": max(backlogs, default=0.0),
            "unread": self.unread,
            "course": course[-RECENT:],
            **measured.snapshot(),
        }


def _by_level(utterances: list[Finished]) -> list[list[Finished]]:
    groups: dict[str, list[Finished]] = {}
    for finished in utterances:
        groups.setdefault(finished.level, []).append(finished)
    return list(groups.values())


def _lags(finished: Finished) -> Floats:
    if not len(finished.delays) or finished.source_length <= 0:
        return np.empty(0)
    return np.asarray(lags(finished.delays, source_length=finished.source_length))


def _events(raw: bytes) -> tuple[str | None, list[Event]]:
    """The dialect and the updates of a line; none if it has none."""
    if raw.lstrip().startswith(b"{"):
        record, faults = explain(raw, READERS)
        dialect = None if record is None or faults else dialect_of(record)
        events = [] if record is None or dialect is None else read_events(0, record, dialect)
        if isinstance(events, Fault):
            return dialect, []
        for event in events:
            if event.unclear:
                event.time *= UNITS[(unit_of_receipts([event]) or ("ms", ""))[0]]
        return dialect, events
    spoken = read_spoken(0, raw.decode("utf-8", "replace").rstrip("\r"))
    if spoken is None:
        return None, []
    time = round(spoken.numbers[0] * (1 if spoken.whole else 1000), DIGITS)
    return "whisper_streaming", [Event(0, time, None, spoken.text)] if 0 <= time < LATEST else []
