# SPDX-License-Identifier: Apache-2.0
"""A Run as an event stream in the generic form: of each recording, a line per time at which tokens became stable.

Texts that were erased are not in a Run. So the lines append text that is never revised; `first` says when it had been
shown before, and the last line of a recording, at the end of its source, how much was erased and revised.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, TextIO

import numpy as np

from lagging.data.endings import LONE
from lagging.data.ragged import Floats
from lagging.data.run import Run
from lagging.data.scripts import is_unspaced
from lagging.data.tokens import noun, spans
from lagging.errors import DataError, Fault, counted
from lagging.formats.dialects import DIGITS, LATEST
from lagging.formats.omissions import lost, require_timed_text

__all__ = ["write"]


def write(run: Run, file: TextIO) -> list[str]:
    """Write the lines of each segment as those of a recording. Returns what the format could not hold.

    Raises:
        UsageError: the delays are no times, or the Run has no text whose tokens they are.
        DataError: a delay is negative, or beyond all recordings.
    """
    _check(run)
    names = _names(run)
    losses = _Losses(run)
    for row, name in enumerate(names):
        text = "" if run.prediction is None else (run.prediction[row] or "").strip()
        _, _, ends = spans(text, run.level)
        if len(ends) != len(run.delays[row]):
            detail = f"{counted(len(run.delays[row]), 'delay')}, {counted(len(ends), noun(run.level))}"
            detail += LONE * bool(run.lone[row])
            raise DataError(Fault("token-count", detail, run.origin.path, segment=run.id.item(row)))
        for line in _lines(run, row, text, ends, losses):
            file.write(json.dumps({**line, "recording": name}, ensure_ascii=False) + "\n")
    return losses.listed(names)


def _check(run: Run) -> None:
    require_timed_text(run, times="a stream has times", text="a stream has the text itself")
    long = np.flatnonzero(run.source_length >= LATEST)
    if len(long):
        detail = f"source_length: {run.source_length[long[0]]:g} ms"
        raise DataError(Fault("impossible-stream-time", detail, run.origin.path, segment=run.id.item(long[0])))
    for column in ("delays", "elapsed", "first_times"):
        times = getattr(run, column)
        flat = np.empty(0) if times is None else times.values
        wrong = np.flatnonzero(~((flat >= 0) & (flat < LATEST)))
        if len(wrong):
            (row, *_), (token, *_) = times.owner(wrong)
            detail = f"{column}: {times.values[wrong[0]]:g} ms"
            kind = "negative-delay" if times.values[wrong[0]] < 0 else "impossible-stream-time"
            raise DataError(Fault(kind, detail, run.origin.path, segment=run.id.item(row), token=int(token) + 1))


def _names(run: Run) -> list[str]:
    """The name of each recording: its document, if all have one of their own, else its id."""
    names = [] if run.document is None else run.document.tolist()
    ids = [str(name) for name in run.id.tolist()]
    return [str(name) for name in names] if names and None not in names and len(set(names)) == len(names) else ids


class _Losses:
    """What the form cannot hold of a Run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.short = self.late = self.rounded = False

    def time(self, ms: float) -> float | int:
        """A time as it is written."""
        kept = round(float(ms), DIGITS)
        self.rounded |= bool(kept != ms)
        return int(kept) if kept.is_integer() else kept

    def listed(self, names: list[str]) -> list[str]:
        """All losses, in words."""
        run = self.run
        texts = [] if run.prediction is None else [text or "" for text in run.prediction]
        held = {"delays", "source_length", "prediction", "elapsed", "first_times"}
        held |= {"id"} if names == [str(name) for name in run.id.tolist()] and run.id.dtype == object else set()
        held |= {"document"} if run.document is not None and names == run.document.tolist() else set()
        if run.queue_times is not None and run.elapsed is not None:  # they are the times of showing again
            held |= {"queue_times"} if np.array_equal(run.queue_times.values, run.elapsed.values) else set()
        held |= {c for c in ("erased", "revisions") if (n := getattr(run, c)) is not None and (n < LATEST).all()}
        more = ["source_length (read back as the last time, where that is beyond it)"] * self.short
        more += ["elapsed (read back as the time of an earlier token where it decreases)"] * self.late
        more += ["delays (kept to the nanosecond)"] * self.rounded
        more += ["prediction (white space at its ends)"] * any(text != text.strip() for text in texts)
        if run.prediction is not None and any(text is None for text in run.prediction):
            more.append("prediction (null is read back as empty)")
        level = "char" if is_unspaced("".join(texts)) else "word"
        return lost(run, held, *more, level=level if len(run.delays.values) else None, seg="none")


def _lines(run: Run, row: int, text: str, ends: list[int], losses: _Losses) -> list[dict[str, Any]]:
    """The lines of a recording."""
    g, x = run.delays[row], float(run.source_length[row])
    elapsed = g if run.elapsed is None else np.maximum.accumulate(run.elapsed[row]) if len(g) else g
    first = g if run.first_times is None else run.first_times[row]
    losses.late |= run.elapsed is not None and not np.array_equal(elapsed, run.elapsed[row])
    losses.short |= bool(len(g)) and bool(max(g[-1], 0) > x)
    changes = np.flatnonzero(np.diff(g) + np.abs(np.diff(elapsed)) + np.abs(np.diff(first))) + 1
    cuts = [0, *changes.tolist(), len(g)] if len(g) else []
    lines: list[dict[str, Any]] = []
    for a, b in pairwise(cuts):
        begin = ends[a - 1] if a else 0
        line = _line(run, g[a], elapsed[a], losses) | {"text": text[begin : ends[b - 1]], "mode": "append"}
        lines.append(line | ({"first": losses.time(first[a])} if first[a] < g[a] else {}))
    end = max(x, float(g[-1])) if len(g) else x
    shown = max(end, float(elapsed[-1])) if len(g) else end
    counts = {c: _count(getattr(run, c)[row]) for c in ("erased", "revisions") if _known(getattr(run, c), row)}
    lines.append(_line(run, end, shown, losses) | {"text": "", "mode": "append", "final": True} | counts)
    return lines


def _known(column: Floats | None, row: int) -> bool:
    return column is not None and bool(0 < column[row] < LATEST)


def _count(value: float) -> float | int:
    return int(value) if float(value).is_integer() else float(value)


def _line(run: Run, heard: float, shown: float, losses: _Losses) -> dict[str, Any]:
    """The times of a line."""
    if run.elapsed is None:
        return {"time": losses.time(heard)}
    return {"time": losses.time(shown), "audio": losses.time(heard)}
