# SPDX-License-Identifier: Apache-2.0
"""A sentence in the terminal: a row per target token, time to the right, as in Figure 1 of the paper."""

from __future__ import annotations

import math

import numpy as np
from rich.cells import cell_len

from lagging.data.ragged import Floats
from lagging.render.table import format_value
from lagging.render.text import DIM, PLAIN, pad, shorten, terminal_text
from lagging.render.timeline import Timeline

__all__ = ["draw", "window"]

BARS = "▁▂▃▄▅▆▇█"
BROKE = "◀ the largest lag so far; in DAL every later token has at least this lag"
SINCE = "since: from the end of its source word, under spoken, to g"
LEGEND = f"· ideal (t−1)d   ● written g   ○ if writing takes time g'\n{BROKE}"
REVISED = f"· ideal (t−1)d   ◇ first shown   ● stable g   ○ if writing takes time g'\n{BROKE}"


def _span(line: Timeline, rows: range) -> tuple[float, float]:
    """The times between which rows are drawn: from 0 to the end of the source, or of what is drawn of a long one."""
    ends = [v for v in line.effective_delays[rows.start : rows.stop].tolist() if math.isfinite(v)]
    if len(rows) == len(line.delays):
        return 0.0, max([line.source_length, *ends, 1e-9])
    starts = [*line.ideal[rows.start : rows.stop].tolist(), *line.delays[rows.start : rows.stop].tolist()]
    begin = min(value for value in starts if math.isfinite(value))
    return begin, max([*ends, begin + 1e-9])


def _track(line: Timeline, t: int, width: int, scale: float, begin: float = 0.0) -> str:
    """One token on the time axis, from the ideal time to g'."""
    if not np.isfinite(line.effective_delays[t]):
        return ""
    positions = [round((float(v) - begin) * scale) for v in (line.ideal[t], line.delays[t], line.effective_delays[t])]
    ideal, real, effective = (min(max(p, 0), width - 1) for p in positions)
    cells = [" "] * width
    for i in range(min(ideal, effective) + 1, effective):
        cells[i] = "─"
    cells[ideal] = "·"
    cells[effective] = "○"
    if line.first is not None:
        cells[min(max(round((float(line.first[t]) - begin) * scale), 0), width - 1)] = "◇"
    cells[real] = "●"
    return "".join(cells).rstrip()


def _ruler(line: Timeline, width: int, scale: float) -> str:
    """`0 … |x|` above the tracks."""
    mark = f"|x|={_format_time(line.source_length, line.unit)}"
    end = min(round(line.source_length * scale), width - 1)
    start = max(2, min(end - len(mark) + 1, width - len(mark)))
    return "0" + " " * (start - 1) + mark


def _window_ruler(span: tuple[float, float], width: int, unit: str) -> str:
    """The first and the last time above the tracks of a part of a timeline."""
    first, last = (_format_time(value, unit) for value in span)
    return first + last.rjust(width - len(first))


def _format_time(value: float, unit: str) -> str:
    if math.isnan(value):
        return "–"
    return f"{value / 1000:.2f}" if unit == "ms" else f"{value:.2f}".rstrip("0").rstrip(".")


def sparkline(values: Floats) -> str:
    """Values as small bars, from 0 (or the smallest, if negative) to the largest."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return ""
    low, high = min(0.0, float(finite.min())), float(finite.max())
    span = (high - low) or 1.0
    return "".join(BARS[min(7, int((v - low) / span * 8))] if math.isfinite(v) else " " for v in values.tolist())


def window(line: Timeline, rows: int, at: float | None = None) -> range:
    """The tokens to show of a long timeline: around the worst lag, or around a time.

    Example:
        >>> from lagging import Run
        >>> from lagging.render.timeline import timeline
        >>> run = Run.from_delays([[1, 2, 6, 7, 8, 8]], source_length=[8])
        >>> window(timeline(run, 0), 3), window(timeline(run, 0), 3, at=8)
        (range(1, 4), range(3, 6))
    """
    lags = np.where(np.isfinite(line.lags), line.lags, -np.inf)
    middle = int(lags.argmax()) if at is None else int(np.searchsorted(line.delays, at))
    start = max(0, min(middle - rows // 2, len(line.delays) - rows))
    return range(start, min(start + rows, len(line.delays)))


def draw(
    line: Timeline, *, width: int = 100, rows: range | None = None, colour: bool = False, signed: bool = True
) -> str:
    """The timeline as text, at most `width` cells wide where the words allow it.

    Args:
        line: the timeline.
        width: columns of the terminal.
        rows: the tokens to draw; all of them by default.
        colour: whether terminal colours may be used.
        signed: whether the signatures of the scores are printed.

    Example:
        >>> from lagging import Run
        >>> from lagging.render.timeline import timeline
        >>> run = Run.from_delays([[4, 4, 4, 4, 5]], source_length=[5], prediction=["I saw a black cat"],
        ...     source=["ich sah eine schwarze Katze"])
        >>> print(draw(timeline(run, 0), width=74))
        segment 0    AP 0.840  AL 2.200  DAL 4.000
        |x| = 5 tokens, |y| = 5, d = 1
        <BLANKLINE>
        t  read         write  g  g'  lag  lag'     0             |x|=5
        1  ich sah ei…  I      4   4    4     4  ◀  ·─────────────●
        2               saw    4   5    3     4         ·─────────●───○
        3               a      4   6    2     4            ·──────●──────○
        4               black  4   7    1     4               ·───●─────────○
        5  Katze        cat    5   8    1     4                   ·───●─────────○
        <BLANKLINE>
        lag   █▇▅▃▃
        lag'  █████
        · ideal (t−1)d   ● written g   ○ if writing takes time g'
        ◀ the largest lag so far; in DAL every later token has at least this lag
        AP|unit:token|length:hypothesis|clock:ideal|level:word|empty:nan|seg:none|mean:segment|n:1|v:0.2.0.dev0
        AL|unit:token|length:hypothesis|clock:ideal|level:word|empty:nan|seg:none|mean:segment|n:1|v:0.2.0.dev0
        DAL|unit:token|length:hypothesis|clock:ideal|level:word|empty:nan|seg:none|mean:segment|n:1|v:0.2.0.dev0
    """
    unit = {"token": "tokens", "ms": "s"}[line.unit]
    scores = "  ".join(f"{s.metric!r} {format_value(s.value, s.unit)}" for s in line.scores)
    x, d = _format_time(line.source_length, line.unit), _format_time(line.write_cost, line.unit)
    lengths = f"|x| = {x} {unit}, |y| = {len(line.delays)}, d = {d}"
    head = [f"segment {terminal_text(str(line.id))}    {scores}", lengths]
    if not math.isnan(line.offset) and line.unit == "ms":
        start, end = (_format_time(time, "ms") for time in (line.offset, line.offset + line.source_length))
        head.append(f"recording: {terminal_text(line.recording)}, {start}–{end} s".replace(": ,", ":"))
    elif line.unit == "ms" and line.source:
        head.append(f"source: {terminal_text(line.source)}")
    if line.reference:
        reference = terminal_text(line.reference.strip())
        head.append(f"reference: {reference if rows is None else shorten(reference, 2 * width - 11)}")
    if not len(line.delays):
        return "\n".join([*head, "", "nothing was written"])

    shown = range(len(line.delays)) if rows is None else rows
    names = ["t", "read", "write", *(["first"] * (line.first is not None)), "g", "g'", "lag", "lag'", ""]
    columns = (line.first, line.delays, line.effective_delays, line.lags, line.effective_lags)
    body = [
        [
            str(t + 1),
            terminal_text(line.read[t]),
            terminal_text(line.target[t]),
            *(_format_time(float(c[t]), line.unit) for c in columns if c is not None),
            "◀" if line.broke[t] else "",
        ]
        for t in shown
    ]
    if not any(line.read):
        names, body = [n for n in names if n != "read"], [row[:1] + row[2:] for row in body]
    if line.word_lags is not None:
        at = names.index("g")
        names[at:at] = ["spoken", "since"]
        for t, row in zip(shown, body, strict=True):
            row[at:at] = [terminal_text(line.spoken[t]), _format_time(float(line.word_lags[t]), line.unit)]
    if not any(line.target):
        i = names.index("write")
        names, body = [n for n in names if n != "write"], [row[:i] + row[i + 1 :] for row in body]

    widths = [max(cell_len(row[i]) for row in [names, *body]) for i in range(len(names))]
    texts = [i for i, name in enumerate(names) if name in ("read", "write", "spoken")]
    fixed = sum(w for i, w in enumerate(widths) if i not in texts) + 2 * len(names)
    room = max(0, width - fixed)
    for i in texts:
        widths[i] = min(widths[i], max(6, room // (2 * len(texts)) if room >= 24 else room // len(texts)))
    track = max(0, width - sum(widths) - 2 * len(names) - 1)
    track = track if track >= 12 else 0

    lines, span = [], _span(line, shown)
    scale = (track - 1) / (span[1] - span[0])
    whole = len(shown) == len(line.delays)
    for r, row in enumerate([names, *body]):
        cells = [pad(shorten(cell, widths[i]), widths[i], right=i not in texts) for i, cell in enumerate(row)]
        drawing = ""
        if track and r:
            drawing = _track(line, shown[r - 1], track, scale, span[0])
        elif track:
            drawing = _ruler(line, track, scale) if whole else _window_ruler(span, track, line.unit)
        lines.append(("  ".join(cells) + "  " + drawing).rstrip())
    part = slice(shown.start, shown.stop)
    sparks = [f"lag   {sparkline(line.lags[part])}", f"lag'  {sparkline(line.effective_lags[part])}"]
    if len(shown) > width - 6:
        sparks = []
    since = [] if line.word_lags is None else [SINCE]
    signatures = [str(score.signature) for score in line.scores] if signed else []
    signatures = [f"{DIM}{text}{PLAIN}" for text in signatures] if colour else signatures
    legend = BROKE if not track else LEGEND if line.first is None else REVISED
    return "\n".join([*head, "", *lines, "", *sparks, legend, *since, *signatures])
