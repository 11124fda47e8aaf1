# SPDX-License-Identifier: Apache-2.0
"""Whether the times of an event stream are seconds or milliseconds, where its lines do not say it."""

from __future__ import annotations

from collections.abc import Sequence

from lagging.formats.dialects import Event, Spoken

__all__ = ["SHORTEST", "unit_of_receipts", "unit_of_spoken"]

FASTEST = 0.1
"""Letters per ms: nobody speaks faster, so that larger numbers are seconds."""
SHORTEST = 100.0
"""No recording is shorter than 100 ms, so that smaller numbers are seconds."""
EARLY, LATE = 0.02, 0.1
"""Results that come before so little of their audio has passed have times in seconds; after so much of it, in ms."""


def unit_of_receipts(events: Sequence[Event]) -> tuple[str, str] | None:
    """The unit of times that do not name it, "ms" or "s", and why; None if neither is likely.

    Example:
        >>> unit_of_receipts([Event(1, 2.5, 2100.0, "hello")])
        ('s', 'in ms, results would have come long before their audio')
    """
    shares = sorted(event.time / event.audio for event in events if event.audio)
    if shares:
        middle = shares[len(shares) // 2]
        if middle >= LATE:
            return "ms", ""
        return ("s", "in ms, results would have come long before their audio") if middle < EARLY else None
    letters: dict[int | str | None, int] = {}
    for event in events:
        letters[event.turn] = max(letters.get(event.turn, 0), len("".join(event.text.split())))
    if sum(letters.values()) > FASTEST * max(event.time for event in events):
        return "s", "in ms, nobody could have spoken so fast"
    return "ms", ""


def unit_of_spoken(lines: Sequence[Spoken]) -> tuple[str, str] | None:
    """The unit of the lines of whisper_streaming, "ms" or "s", and why; None if neither is likely.

    Example:
        >>> unit_of_spoken([Spoken(1, (2600.0, 764.0, 2600.0), True, " Hello, this is")])
        ('ms', 'places in the audio are whole numbers')
    """
    whole = all(spoken.whole for spoken in lines)
    largest = max(max(spoken.numbers) for spoken in lines)
    letters = sum(len("".join(spoken.text.split())) for spoken in lines)
    if whole:
        return ("ms", "places in the audio are whole numbers") if largest >= SHORTEST else None
    if largest < SHORTEST:
        return "s", "all times are below 100, places with decimals"
    if letters > FASTEST * largest:
        return "s", "places in the audio have decimals, and in ms nobody could have spoken so fast"
    return None
