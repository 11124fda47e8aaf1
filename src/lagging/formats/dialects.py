# SPDX-License-Identifier: Apache-2.0
"""The dialects of event streams: how a line of each becomes an Event.

generic            {"time": 2600, "audio": 2400, "text": " Hello", "mode": "append", "final": false}, in ms
whisper_streaming  2600.0000 764 2600  Hello, this is (time, begin and end in the audio, text that is appended)
SimulStreaming     {"emission_time": 2.246, "text": " And so,", "is_final": false}, in seconds, appended
updates            {"audio_processed_ms": 5760, "wallclock_elapsed_ms": 3557, "translation_text": "Hallo, ich"}
Deepgram, AssemblyAI, Google, Speechmatics
                   the results of these services, interim ones replacing each other until one is final, beside the
                   time of receipt: `time`, `time_ms` or `received_ms`, or `time_s` or `received_s` in seconds
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lagging.data.decimals import DECIMAL, decimal
from lagging.data.tokens import is_torn
from lagging.errors import Fault
from lagging.formats.line import shown, surrogate_fault

__all__ = ["KEYS", "WHISPER", "Event", "Spoken", "dialect_of", "read_event", "read_spoken"]

WHISPER = re.compile(rf"({DECIMAL})[ \t]({DECIMAL})[ \t]({DECIMAL})(?:[ \t](.*))?", re.DOTALL)
"""A line of whisper_streaming, without its line break."""

TIMES = {"time": 1.0, "time_ms": 1.0, "received_ms": 1.0, "time_s": 1000.0, "received_s": 1000.0}
"""Keys of the time at which an update was shown or received, and how many ms one is."""

LATEST = 1e11
"""In ms: three years. A later time counts from somewhere else than the beginning of a recording."""

DIGITS = 6
"""Decimal places of a millisecond that are kept."""


@dataclass(slots=True)
class Event:
    """An update of what is shown.

    Attributes:
        line: its line.
        time: when it was shown, in ms from the beginning of the recording.
        audio: how many ms of the recording had been heard; None if not known.
        text: what is appended to the text, or replaces what is not final.
        replaces: whether it replaces what is not final.
        final: whether all that is shown is final now.
        fresh: whether it begins a new utterance: what stood before is final.
        recording: its name; None if the line has none.
        first: when the text was shown first, if that was before, on the clock of `audio`, if there is any.
        erased, revisions: how many tokens were erased, and by how many updates, where these are not kept.
    """

    line: int
    time: float
    audio: float | None
    text: str
    replaces: bool = False
    final: bool = False
    fresh: bool = False
    recording: str | None = None
    first: float | None = None
    erased: float = 0.0
    revisions: float = 0.0


@dataclass(slots=True)
class Spoken:
    """A line of whisper_streaming, whose unit is known only when all of them have been read."""

    line: int
    numbers: tuple[float, float, float]
    whole: bool
    text: str


def read_spoken(line: int, text: str) -> Spoken | None:
    """A line of whisper_streaming; None if it is none.

    Example:
        >>> read_spoken(1, "2600.0000 764 2600  Hello, this is")
        Spoken(line=1, numbers=(2600.0, 764.0, 2600.0), whole=True, text=' Hello, this is')
    """
    match = WHISPER.fullmatch(text)
    if match is None or None in (numbers := tuple(map(decimal, match.groups()[:3]))):
        return None
    return Spoken(line, numbers, "." not in match[2] + match[3], match[4] or "")  # type: ignore[arg-type]


# ---- which one --------------------------------------------------------------------------------------------------


def _message(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a service has sent, where it stands in an object of its own."""
    inner = next((record[key] for key in ("message", "response") if isinstance(record.get(key), dict)), None)
    return record if inner is None else inner


def dialect_of(record: Mapping[str, Any]) -> str | None:
    """The dialect of an object; None if it is in none.

    Example:
        >>> dialect_of({"time": 7, "text": "a", "mode": "append"}), dialect_of({"emission_time": 2.2, "text": " And"})
        ('generic', 'SimulStreaming')
    """
    if "emission_time" in record:
        return "SimulStreaming"
    if "audio_processed_ms" in record or "translation_text" in record:
        return "updates"
    message = _message(record)
    if "channel" in message or message.get("type") in ("Results", "Metadata", "UtteranceEnd", "SpeechStarted"):
        return "Deepgram"
    if "message_type" in message or message.get("type") in ("Turn", "Begin", "Termination"):
        return "AssemblyAI"
    if isinstance(message.get("message"), str):
        return "Speechmatics"
    if "results" in message:
        return "Google"
    return "generic" if "time" in record or "mode" in record else None


KEYS = (
    *TIMES,
    *("audio", "text", "mode", "final", "recording", "first", "erased", "revisions", "emission_time", "is_final"),
    *("audio_processed_ms", "wallclock_elapsed_ms", "translation_text", "message", "response", "channel", "type"),
    *("start", "duration", "message_type", "audio_end", "transcript", "turn_order", "results", "metadata"),
)
"""All keys that are read of an object."""


# ---- values -----------------------------------------------------------------------------------------------------


class _Wrong(Exception):
    """A value that cannot be read, as a fault."""

    def __init__(self, kind: str, detail: str = "") -> None:
        self.fault = Fault(kind, detail)


def _number(record: Mapping[str, Any], key: str, scale: float = 1.0) -> float | None:
    """A number that is not negative, and not beyond all recordings; None if there is none."""
    value = record.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Wrong("bad-value", f"{key}: {shown(value)}")
    if not 0 <= value < LATEST / scale:  # a whole number may be larger than any float
        raise _Wrong("impossible-stream-time", f"{key}: {shown(value)}")
    return round(float(value) * scale, DIGITS)


def _needed(record: Mapping[str, Any], key: str, scale: float = 1.0) -> float:
    value = _number(record, key, scale)
    if value is None:
        raise _Wrong("missing-time", f"no `{key}`")
    return value


def _text(record: Any, key: str, missing: str | None = None) -> str:
    value = record.get(key, missing) if isinstance(record, dict) else missing
    if value is None:
        raise _Wrong("missing-text", f"no `{key}`")
    if not isinstance(value, str):
        raise _Wrong("bad-value", f"{key}: {shown(value)}")
    if is_torn(value):
        raise _Wrong("not-utf8", surrogate_fault(key).detail)
    return value


def _flag(record: Mapping[str, Any], *keys: str) -> bool:
    key = next((key for key in keys if key in record), keys[0])
    value = record.get(key, False)
    if value is not None and not isinstance(value, bool):
        raise _Wrong("bad-value", f"{key}: {shown(value)}")
    return bool(value)


def _received(record: Mapping[str, Any]) -> float:
    """The time of receipt."""
    key = next((key for key in TIMES if record.get(key) is not None), None)
    if key is None:
        raise _Wrong("missing-time", f"none of {', '.join(f'`{key}`' for key in TIMES)}")
    return _needed(record, key, TIMES[key])


def _offset(value: Any) -> float | None:
    """A duration as Google writes it, in ms: "2.5s", seconds, or seconds and nanoseconds."""
    if isinstance(value, dict):
        seconds, nanos = value.get("seconds", 0), value.get("nanos", 0)
        parts = [decimal(str(part)) for part in (seconds, nanos)]
        value = None if None in parts else (parts[0] or 0.0) + (parts[1] or 0.0) / 1e9
    elif isinstance(value, str):
        value = decimal(value.removesuffix("s"))
    return None if value is None else _number({"result_end_time": value}, "result_end_time", 1000)


# ---- objects to events ------------------------------------------------------------------------------------------

Record = dict[str, Any]


def _generic(line: int, record: Record) -> Event:
    if record.get("mode") not in ("append", "replace"):
        raise _Wrong("unknown-mode", shown(record["mode"]) if "mode" in record else "no `mode`")
    return Event(
        line,
        _needed(record, "time"),
        _number(record, "audio"),
        _text(record, "text"),
        replaces=record["mode"] == "replace",
        final=_flag(record, "final"),
        first=_number(record, "first"),
        erased=_number(record, "erased") or 0.0,
        revisions=_number(record, "revisions") or 0.0,
    )


def _simulstreaming(line: int, record: Record) -> Event:
    final = _flag(record, "is_final")
    text = _text(record, "text", "" if final else None)  # a line may only say that an utterance ends
    return Event(line, _needed(record, "emission_time", 1000), None, text, final=final)


def _updates(line: int, record: Record) -> Event:
    audio = _needed(record, "audio_processed_ms")
    time = _number(record, "wallclock_elapsed_ms")
    return Event(line, audio if time is None else time, audio, _text(record, "translation_text"), replaces=True)


def _deepgram(line: int, record: Record) -> Event | None:
    message = _message(record)
    if "channel" not in message:
        return None
    alternatives = message["channel"].get("alternatives") if isinstance(message["channel"], dict) else None
    best = alternatives[0] if isinstance(alternatives, list) and alternatives else None
    begin, lasting = _number(message, "start", 1000), _number(message, "duration", 1000)
    audio = None if begin is None or lasting is None else round(begin + lasting, DIGITS)
    text, final = _text(best, "transcript"), _flag(message, "is_final")
    return Event(line, _received(record), audio, text, replaces=True, final=final)


def _assemblyai(line: int, record: Record) -> Event | None:
    message = _message(record)
    kind = message.get("message_type")
    if kind in ("PartialTranscript", "FinalTranscript"):
        final, audio = kind == "FinalTranscript", _number(message, "audio_end")
        return Event(line, _received(record), audio, _text(message, "text"), replaces=True, final=final)
    if message.get("type") != "Turn":
        return None
    return Event(line, _received(record), None, _text(message, "transcript"), replaces=True)


def _google(line: int, record: Record) -> Event | None:
    results = _message(record)["results"]
    if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
        raise _Wrong("bad-value", f"results: {shown(results)}")
    if not results:
        return None
    texts, ends, final = [], [], False
    for result in results:
        alternatives = result.get("alternatives")
        best = alternatives[0] if isinstance(alternatives, list) and alternatives else None
        texts.append(_text(best, "transcript"))
        ends.append(_offset(result.get("resultEndTime", result.get("result_end_time"))))
        final = final or _flag(result, "isFinal", "is_final")
    known = [end for end in ends if end is not None]
    return Event(line, _received(record), max(known, default=None), "".join(texts), replaces=True, final=final)


def _speechmatics(line: int, record: Record) -> Event | None:
    message = _message(record)
    if message.get("message") not in ("AddPartialTranscript", "AddTranscript"):
        return None
    metadata = message.get("metadata")
    text = _text(metadata, "transcript")
    audio = _number(metadata, "end_time", 1000) if isinstance(metadata, dict) else None
    return Event(line, _received(record), audio, text, replaces=True, final=message["message"] == "AddTranscript")


READERS: dict[str, Callable[[int, Record], Event | None]] = {
    "generic": _generic,
    "SimulStreaming": _simulstreaming,
    "updates": _updates,
    "Deepgram": _deepgram,
    "AssemblyAI": _assemblyai,
    "Google": _google,
    "Speechmatics": _speechmatics,
}


def read_event(line: int, record: Record, dialect: str) -> Event | Fault | None:
    """The update that an object is; None if it is none, such as a service's message about itself; or its fault.

    Example:
        >>> read_event(1, {"time": 900, "text": "a", "mode": "add"}, "generic").kind
        'unknown-mode'
    """
    try:
        event = READERS[dialect](line, record)
        if event is not None and record.get("recording") is not None:
            event.recording = _text(record, "recording")
    except _Wrong as wrong:
        return wrong.fault
    return event
