# SPDX-License-Identifier: Apache-2.0
"""Live numbers as a table: the lag of the last words, percentiles of all, backlog, erasure, course of the lag."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lagging.errors import counted
from lagging.render.table import MISSING, Column, Sheet, Table, format_value
from lagging.render.text import write_text
from lagging.render.timeline_text import BARS
from lagging.stats import needed_values

__all__ = ["draw_course", "live_table"]

LAST = 20
"""The number of words whose mean lag is the lag now."""
WIDE, NARROW = 24, 12
"""Bars of the course of the lag, on a wide and on a narrow terminal."""
NARROW_TERMINAL = 100


def draw_course(values: Sequence[float], bars: int) -> str:
    """The course of values, from 0, in so many bars at most; each is the mean of as many values.

    Example:
        >>> draw_course([0, 1, 2, 3, 4, 5, 6, 7], 4)
        '▂▄▆█'
    """
    if not values:
        return ""
    size = math.ceil(len(values) / bars)
    means = [sum(part) / len(part) for start in range(0, len(values), size) if (part := values[start : start + size])]
    top = max(means)
    return "".join(BARS[round(max(mean, 0) / top * (len(BARS) - 1))] if top > 0 else BARS[0] for mean in means)


def live_table(snapshots: Sequence[Mapping[str, Any]], *, width: int | None = None, colour: bool = False) -> str:
    """The live numbers of several systems, as text.

    Args:
        snapshots: of `Meter.snapshot`, each with `course`, the lags of the last words.
        width: columns of the terminal; None to let lines be as long as they are.
        colour: whether terminal colours may be used.
    """
    narrow = width is not None and width < NARROW_TERMINAL
    columns = [
        Column("system", number=False),
        Column("words"),
        *(Column(name, unit="s") for name in ("now", "p50", "p90", "p99", "backlog")),
        Column("erasure"),
        Column("course", number=False),
    ]
    rows = [_row(snapshot, NARROW if narrow else WIDE) for snapshot in snapshots]
    notes = []
    for snapshot in snapshots:
        state = [counted(snapshot["utterances"], "utterance")]
        state += [f"{snapshot['open']} of them not ended"] * bool(snapshot["open"])
        state += [f"{snapshot['empty']} without words"] * bool(snapshot["empty"])
        state += [f"{counted(snapshot['unread'], 'line')} not read"] * bool(snapshot.get("unread"))
        notes.append(f"{snapshot['system']}: {', '.join(state)}")
    if any(snapshot["lag"][f"p{p}"] is None for snapshot in snapshots for p in (50, 90, 99)):
        needed = ", ".join(f"p{p} {needed_values(p)}" for p in (50, 90, 99))
        notes.append(f"{MISSING}: too few words; needed: {needed}")
    return write_text(Sheet([Table(columns, rows)], notes), width=width, colour=colour)


def _row(snapshot: Mapping[str, Any], bars: int) -> list[str]:
    lag, course = snapshot["lag"], snapshot["course"]
    now = course[-LAST:]
    erasure = snapshot["scores"].get("NormalizedErasure", {}).get("score")
    return [
        snapshot["system"],
        str(snapshot["words"]),
        format_value(sum(now) / len(now) if now else None, "ms"),
        *(format_value(lag[f"p{p}"], "ms") for p in (50, 90, 99)),
        format_value(snapshot["backlog_now_ms"], "ms"),
        format_value(erasure, "ratio"),
        draw_course(course, bars),
    ]
