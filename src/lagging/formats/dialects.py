# SPDX-License-Identifier: Apache-2.0
"""The dialects of event streams: how a line of each becomes an Event.

generic            {"time": 2600, "audio": 2400, "text": " Hello", "mode": "append", "final": false}, in ms
whisper_streaming  2600.0000 764 2600  Hello, this is (time, begin and end in the audio, text that is appended)
SimulStreaming     {"emission_time": 2.246, "text": " And so,", "is_final": false}, in seconds, appended
updates            {"audio_processed_ms": 5760, "wallclock_elapsed_ms": 3557, "translation_text": "Hallo, ich"}
Deepgram, AssemblyAI, Google, Speechmatics
                   the results of these services, interim ones replacing each other until one is final, beside the
                   time of receipt: `time`, `received` or one of `RECEIPTS`; `_ms` or `_s` at its end names the unit
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

__all__ = [
    "DIGITS",
    "GOOGLE",
    "KEYS",
    "LATEST",
    "TIMES",
    "UNITS",
    "WHISPER",
    "Event",
    "Spoken",
    "dialect_of",
    "read_events",
    "read_spoken",
]

WHISPER = re.compile(rf"({DECIMAL})[ \t]({DECIMAL})[ \t]({DECIMAL})(?:[ \t](.*))?", re.DOTALL)
"""A line of whisper_streaming, without its line break."""

RECEIPTS = (
    *("time", "received", "received_at", "received_time", "receipt", "receipt_time", "time_received"),
    *("arrival_time", "timestamp"),
)
"""Names of the time at which the result of a service was received."""
UNITS = {"ms": 1.0, "s": 1000.0}
"""How many ms one is."""
TIMES = dict.fromkeys(RECEIPTS) | {f"{name}_{unit}": unit for name in RECEIPTS for unit in UNITS}
"""Keys of the time of receipt, and the unit that they name."""

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
        turn: the utterance that it is of, where the line says that: what stood before it is final.
        recording: its name; None if the line has none.
        first: when the text was shown first, if that was before, on the clock of `audio`, if there is any.
        erased, revisions: how many tokens were erased, and by how many updates, where these are not kept.
        timed: whether the line says when it was shown; if not, `time` is that of the audio.
        unclear: whether `time` is in a unit that the line does not name.
    """

    line: int
    time: float
    audio: float | None
    text: str
    replaces: bool = False
    final: bool = False
    turn: int | str | None = None
    recording: str | None = None
    first: float | None = None
    erased: float = 0.0
    revisions: float = 0.0
    timed: bool = True
    unclear: bool = False


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


GOOGLE = {"results", "speechEventType", "speech_event_type"}


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
    if message.keys() & GOOGLE:
        return "Google"
    return "generic" if "time" in record or "mode" in record else None


KEYS = (
    *TIMES,
    *("audio", "text", "mode", "final", "recording", "first", "erased", "revisions", "emission_time", "is_final"),
    *("audio_processed_ms", "wallclock_elapsed_ms", "translation_text", "message", "response", "channel", "type"),
    *("start", "duration", "message_type", "audio_end", "transcript", "turn_order", "words", "metadata", *GOOGLE),
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
        raise _Wrong("bad-value", f"{key}: {shown(value)}, which is no number")
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
        raise _Wrong("bad-value", f"{key}: {shown(value)}, which is no text")
    if is_torn(value):
        raise _Wrong("not-utf8", surrogate_fault(key).detail)
    return value


def _flag(record: Mapping[str, Any], *keys: str) -> bool:
    key = next((key for key in keys if key in record), keys[0])
    value = record.get(key, False)
    if value is not None and not isinstance(value, bool):
        raise _Wrong("bad-value", f"{key}: {shown(value)}, which is neither true nor false")
    return bool(value)


def _receive(line: int, record: Mapping[str, Any], audio: float | None, text: str, final: bool = False) -> Event:
    """The result of a service, with the time of receipt."""
    key = next((key for key in TIMES if record.get(key) is not None), None)
    if key is None:
        raise _Wrong("missing-time", "no `time`, `received` or the like, in ms, or `time_s`, in seconds")
    unit = TIMES[key]
    time = _needed(record, key, UNITS[unit or "ms"])
    return Event(line, time, audio, text, replaces=True, final=final, unclear=unit is None)


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
    audio, time = (_number(record, key) for key in ("audio_processed_ms", "wallclock_elapsed_ms"))
    if audio is None and time is None:
        raise _Wrong("missing-time", "no `audio_processed_ms`, and no `wallclock_elapsed_ms`")
    text = _text(record, "translation_text")
    return Event(line, (audio or 0.0) if time is None else time, audio, text, replaces=True, timed=time is not None)


def _deepgram(line: int, record: Record) -> Event | None:
    message = _message(record)
    if "channel" not in message:
        return None
    alternatives = message["channel"].get("alternatives") if isinstance(message["channel"], dict) else None
    best = alternatives[0] if isinstance(alternatives, list) and alternatives else None
    begin, lasting = _number(message, "start", 1000), _number(message, "duration", 1000)
    audio = None if begin is None or lasting is None else round(begin + lasting, DIGITS)
    return _receive(line, record, audio, _text(best, "transcript"), _flag(message, "is_final"))


def _assemblyai(line: int, record: Record) -> Event | None:
    message = _message(record)
    kind = message.get("message_type")
    if kind in ("PartialTranscript", "FinalTranscript"):
        return _receive(line, record, _number(message, "audio_end"), _text(message, "text"), kind == "FinalTranscript")
    if message.get("type") != "Turn":
        return None
    words = message.get("words") or []
    if not isinstance(words, list) or not all(isinstance(word, dict) for word in words):
        raise _Wrong("bad-value", f"words: {shown(words)}")
    interim = [_text(word, "text") for word in words if not _flag({"word_is_final": True, **word}, "word_is_final")]
    # `transcript` has the words that are final, and `words` all
    event = _receive(line, record, None, " ".join([_text(message, "transcript"), *interim]).strip())
    turn = message.get("turn_order")
    if isinstance(turn, bool) or not isinstance(turn, int | str | None):
        raise _Wrong("bad-value", f"turn_order: {shown(turn)}")
    event.turn = turn
    return event


def _google(line: int, record: Record) -> list[Event]:
    """The results that are final, and those that are not: the next response replaces the latter alone."""
    results = _message(record).get("results") or []
    if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
        raise _Wrong("bad-value", f"results: {shown(results)}")
    texts: dict[bool, list[str]] = {True: [], False: []}
    ends = []
    for result in results:
        alternatives = result.get("alternatives")
        best = alternatives[0] if isinstance(alternatives, list) and alternatives else None
        texts[_flag(result, "isFinal", "is_final")].append(_text(best, "transcript"))
        ends.append(_offset(next((result[key] for key in RESULT_ENDS if key in result), None)))
    audio = max((end for end in ends if end is not None), default=None)
    return [_receive(line, record, audio, "".join(part), final) for final, part in texts.items() if part]


RESULT_ENDS = ("resultEndTime", "result_end_time", "resultEndOffset", "result_end_offset")
"""How much audio a result of Google's is about, in the first and the second version of the service."""


def _speechmatics(line: int, record: Record) -> Event | None:
    message = _message(record)
    if message.get("message") not in ("AddPartialTranscript", "AddTranscript"):
        return None
    metadata = message.get("metadata")
    audio = _number(metadata, "end_time", 1000) if isinstance(metadata, dict) else None
    final = message["message"] == "AddTranscript"
    return _receive(line, record, audio, _text(metadata, "transcript"), final)


READERS: dict[str, Callable[[int, Record], Event | list[Event] | None]] = {
    "generic": _generic,
    "SimulStreaming": _simulstreaming,
    "updates": _updates,
    "Deepgram": _deepgram,
    "AssemblyAI": _assemblyai,
    "Google": _google,
    "Speechmatics": _speechmatics,
}


def read_events(line: int, record: Record, dialect: str) -> list[Event] | Fault:
    """The updates that an object is: none if it is a service's message about itself; or its fault.

    Example:
        >>> read_events(1, {"time": 900, "text": "a", "mode": "add"}, "generic").kind
        'unknown-mode'
    """
    try:
        read = READERS[dialect](line, record)
        events = read if isinstance(read, list) else [] if read is None else [read]
        if record.get("recording") is not None:
            for event in events:
                event.recording = _text(record, "recording")
    except _Wrong as wrong:
        return wrong.fault
    return events
