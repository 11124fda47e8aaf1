# SPDX-License-Identifier: Apache-2.0
"""Small tables for notebooks: plain HTML without script or style sheet, all text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatch
from html import escape

from lagging.comparison import Comparison
from lagging.data.run import Run
from lagging.errors import counted
from lagging.render.cells import best, cell, columns, heading, shown, signatures, wins
from lagging.render.timeline import Timeline
from lagging.scoring.scores import Scores

__all__ = ["written"]

ROWS = 5
"""Segments of a Run that are shown."""
LETTERS = 90
"""Of a text."""


class Markup(str):
    """What is HTML already; any other text is escaped."""

    __slots__ = ()


def _safe(text: object) -> str:
    if isinstance(text, Markup):
        return text
    plain = "".join(
        c if c.isprintable() or c in "\u200c\u200d" else "\N{REPLACEMENT CHARACTER}" for c in str(text).strip()
    )
    return f"<bdi>{escape(plain)}</bdi>"


def _short(text: str | None) -> str:
    return "" if text is None else text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]], below: Sequence[str] = ()) -> str:
    """A table whose first column names its rows; numbers to the right."""
    top = "".join(f'<th scope="col">{_safe(head)}</th>' for head in heads)
    lines = []
    for first, *others in rows:
        cells = "".join(f"<td>{_safe(one)}</td>" for one in others)
        lines.append(f'<tr><th scope="row">{_safe(first)}</th>{cells}</tr>')
    foot = "".join(f"<div><small>{_safe(line)}</small></div>" for line in below)
    return (
        f'<table class="lagging"><caption>{_safe(caption)[5:-6]}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table>{foot}"
    )


@singledispatch
def written(shown: object) -> str:
    """The table of an object."""
    raise TypeError(f"there is no table of a {type(shown).__name__}")


@written.register
def _(run: Run) -> str:
    heads = ["segment", *(["|x|"] if run.unit != "none" else []), "tokens", "prediction", "reference"]
    rows = []
    for row in range(min(len(run), ROWS)):
        texts = [None if column is None else column[row] for column in (run.prediction, run.reference)]
        length = [shown(float(run.source_length[row]), run.unit)] if run.unit != "none" else []
        rows.append([run.id[row], *length, int(run.delays.lengths[row]), *map(_short, texts)])
    left = len(run) - len(rows)
    below = [f"and {counted(left, 'more segment')}"] if left > 0 else []
    return _table(repr(run), heads, rows, [*below, *map(str, run.notes)])


@written.register
def _(scores: Scores) -> str:
    rows = []
    for one in scores:
        ends = "" if one.low is None else f"[{shown(one.low, one.unit)}, {shown(one.high, one.unit)}]"
        without = int(one.undefined) or ""
        rows.append([heading(one.metric, one.unit), shown(one.value, one.unit), ends, one.n, without])
    heads = ["metric", "score", "interval", "segments", "undefined"]
    return _table(scores.system or "Scores", heads, rows, [*signatures([scores]), *map(str, scores.notes)])


@written.register
def _(found: Comparison) -> str:
    scores = list(found.scores.values())
    heads = columns(scores)
    winners = {m: best(scores, m) if len(scores) > 1 else set() for m, _ in heads}
    marks = found.letters or found.marks
    rows: list[list[object]] = []
    for name, one in found.scores.items():
        line: list[object] = [name]
        for m, unit in heads:
            text = cell(one, m, unit)
            bold = f"<strong>{escape(text)}</strong>" if wins(text, winners[m]) else escape(text)
            line.append(Markup(f"{bold}<sup>{escape(marks.get(m, {}).get(name, ''))}</sup>"))
        rows.append(line)
    titles = ["system", *(heading(m, unit) for m, unit in heads)]
    below = [found.key, found.how, *signatures(scores), *map(str, found.notes)]
    return _table(repr(found), titles, rows, [line for line in below if line])


@written.register
def _(line: Timeline) -> str:
    def time(value: float) -> str:
        return shown(value, line.unit)

    unit = "s" if line.unit == "ms" else "tokens"
    rows = [
        [t + 1, *row]
        for t, row in enumerate(
            zip(
                line.read,
                line.target,
                map(time, line.delays),
                map(time, line.effective_delays),
                map(time, line.ideal),
                map(time, line.lags),
                map(time, line.effective_lags),
                ("◀" if broke else "" for broke in line.broke),
                strict=True,
            )
        )
    ]
    heads = ["t", "read", "written", f"g ({unit})", "g′", "ideal", "lag", "lag of g′", "over budget"]
    scores = ", ".join(f"{one.metric!r} {shown(one.value, one.unit)}" for one in line.scores)
    texts = [
        f"{name}: {_short(text)}" for name, text in (("source", line.source), ("reference", line.reference)) if text
    ]
    caption = f"segment {line.id}, |x| = {time(line.source_length)} {unit}"
    keep = [i for i, head in enumerate(heads) if head not in ("read", "written") or any(row[i] for row in rows)]
    return _table(caption, [heads[i] for i in keep], [[row[i] for i in keep] for row in rows], [scores, *texts])
