# SPDX-License-Identifier: Apache-2.0
"""The kinds of fault of event streams, in words, as in `lagging.errors.catalogue`."""

from __future__ import annotations

__all__ = ["STREAM_KINDS"]

STREAM_KINDS: dict[str, tuple[str, str, str]] = {
    "not-a-stream": (
        "not an update of an event stream",
        "A line has a time and a text, in one of the dialects that the page on streams lists.",
        'write `{"time": ms, "text": …, "mode": "append"}`, or remove the line.',
    ),
    "mixed-dialects": (
        "lines of several dialects in one stream",
        "What a line means depends on its dialect, so a file has one.",
        "put them into files of their own, or write all lines in the generic form.",
    ),
    "missing-time": (
        "no time",
        "An update without the time at which it was shown has no delay.",
        "write the time: `time` in ms from the beginning of the recording; of a service's results, that of receipt.",
    ),
    "missing-text": (
        "no text",
        "An update says what is shown; also a final one does.",
        "write the text; an update that shows nothing has an empty one.",
    ),
    "unknown-mode": (
        "a mode that is neither append nor replace",
        "A text is appended to what is shown, or replaces what is not final.",
        'write `"mode": "append"` or `"mode": "replace"`.',
    ),
    "time-goes-back": (
        "the times of a stream decrease",
        "Updates stand in the order in which they were shown, and what was heard only grows.",
        "sort the lines by time; give each recording a name of its own (`recording`), or a file.",
    ),
    "impossible-stream-time": (
        "an impossible time",
        "Times of a stream count from the beginning of its recording; they are not negative, and below three years.",
        "subtract the time at which the recording began.",
    ),
    "missing-audio-time": (
        "a recording without audio times",
        "Where it is known how much had been heard, that is the delay, and otherwise the time of showing.",
        "write `audio` in all recordings, or in none; or score them as files of their own.",
    ),
    "unclear-time-unit": (
        "seconds or milliseconds",
        "whisper_streaming writes whole milliseconds, and older versions write seconds with decimals. This is neither.",
        "say which, with `--time-unit s` or `--time-unit ms` (time_unit=… in Python).",
    ),
}
