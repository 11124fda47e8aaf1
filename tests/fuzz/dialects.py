# SPDX-License-Identifier: Apache-2.0
"""Event streams: a recording or more in each of the dialects."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from fuzz.documents import dropped, dump, encode, json_values, word
from fuzz.hostile import Pairs


def stream_lines(random: Random, tree: list[Any]) -> bytes:
    """Objects as JSON, and lists as words of a line; now and then all objects in an array, or over several lines."""
    if random.random() < 0.08 and all(isinstance(entry, Pairs) for entry in tree):
        return json_values(1.0)(random, tree)
    escaped = random.random() < 0.5
    lines = (
        " ".join(cell if isinstance(cell, str) else dump(cell) for cell in entry)
        if isinstance(entry, list) and not isinstance(entry, Pairs)
        else dump(entry, escaped)
        for entry in tree
    )
    return encode("".join(line + "\n" for line in lines))


def texts(random: Random, count: int) -> list[str]:
    """The whole text after each update; words are added, and some are replaced."""
    shown: list[str] = []
    made = []
    for _ in range(count):
        shown = [random.choice((token, token, word(random))) for token in shown]
        shown += [word(random) for _ in range(random.randrange(3))]
        made.append(" ".join(shown))
    return made


def generic(random: Random) -> list[Any]:
    """Texts that are appended, or replace others."""
    lines: list[Any] = []
    heard = random.random() < 0.5
    for recording in range(random.randint(1, 3)):
        for step, text in enumerate(texts(random, random.randrange(1, 6)), 1):
            appended = random.random() < 0.5
            line: list[Any] = [("time", step * 400.5), *([("audio", step * 400)] if heard else [])]
            line += [("text", f" {word(random)}" if appended else text), ("mode", "append" if appended else "replace")]
            if random.random() < 0.1:
                line += [("first", step * 200), ("erased", 1), ("revisions", 1)]
            lines.append(Pairs([*line, ("final", random.random() < 0.2), ("recording", f"talk{recording}")]))
    return dropped(random, lines, "final")


def whisper_streaming(random: Random) -> list[Any]:
    """Lines of three times and a text, in seconds or milliseconds."""
    ms = random.random() < 0.5
    lines: list[Any] = []
    for step in range(1, random.randint(2, 6)):
        times = [step * 2600, step * 700, step * 2600] if ms else [step * 2.6, step * 0.75, step * 2.6]
        lines.append([*times, random.choice(("", " ")) + word(random), word(random)])
    return lines


def simulstreaming(random: Random) -> list[Any]:
    """Text that is appended, in seconds."""
    return [
        Pairs([("emission_time", step * 1.25), ("text", f" {word(random)}"), ("is_final", random.random() < 0.2)])
        for step in range(1, random.randint(2, 6))
    ]


def updates(random: Random) -> list[Any]:
    """The whole text so far."""
    return [
        Pairs([("audio_processed_ms", k * 960), ("wallclock_elapsed_ms", k * 1000.5), ("translation_text", text)])
        for k, text in enumerate(texts(random, random.randint(1, 5)), 1)
    ]


def deepgram(random: Random) -> list[Any]:
    """Results with alternatives, and messages of the service."""
    lines = [Pairs([("type", "Metadata"), ("received_ms", 1)])] if random.random() < 0.3 else []
    for k, text in enumerate(texts(random, random.randint(1, 5)), 1):
        channel = Pairs([("alternatives", [Pairs([("transcript", text), ("confidence", 0.5)])])])
        line = [("time_s", k * 1.5), ("type", "Results"), ("start", 0), ("duration", k * 1.25), ("channel", channel)]
        lines.append(Pairs([*line, ("is_final", random.random() < 0.3)]))
    return lines


def assemblyai(random: Random) -> list[Any]:
    """Turns, or partial and final transcripts."""
    turns = random.random() < 0.5
    lines = []
    for k, text in enumerate(texts(random, random.randint(1, 5)), 1):
        if turns:
            line = [("type", "Turn"), ("turn_order", k // 3), ("transcript", text)]
        else:
            kind = random.choice(("PartialTranscript", "PartialTranscript", "FinalTranscript"))
            line = [("message_type", kind), ("audio_end", k * 900), ("text", text)]
        lines.append(Pairs([("time_ms", k * 1000), ("message", Pairs(line))]))
    return lines


def google(random: Random) -> list[Any]:
    """Results with the time of their ends, written in three ways."""
    lines = []
    for k, text in enumerate(texts(random, random.randint(1, 5)), 1):
        end = random.choice((f"{k}.5s", k + 0.5, Pairs([("seconds", str(k)), ("nanos", 500000000)])))
        key = random.choice(("resultEndTime", "result_end_time"))
        result = Pairs([("alternatives", [Pairs([("transcript", text)])]), (key, end), ("isFinal", k % 3 == 0)])
        lines.append(Pairs([("received_s", k * 1.75), ("response", Pairs([("results", [result])]))]))
    return lines


def speechmatics(random: Random) -> list[Any]:
    """Partial transcripts and such that are final."""
    lines = []
    for k, text in enumerate(texts(random, random.randint(1, 5)), 1):
        kind = random.choice(("AddPartialTranscript", "AddPartialTranscript", "AddTranscript", "AudioAdded"))
        metadata = Pairs([("transcript", text), ("start_time", 0), ("end_time", k * 1.25)])
        lines.append(Pairs([("time", k * 1400), ("message", Pairs([("message", kind), ("metadata", metadata)]))]))
    return lines


DIALECTS: tuple[Callable[[Random], list[Any]], ...] = (
    *(generic, generic, generic, whisper_streaming, simulstreaming, updates),
    *(deepgram, assemblyai, google, speechmatics),
)


def stream(random: Random) -> list[Any]:
    """An event stream in one of the dialects; now and then in two."""
    lines = random.choice(DIALECTS)(random)
    return [*lines, *random.choice(DIALECTS)(random)] if random.random() < 0.05 else lines
