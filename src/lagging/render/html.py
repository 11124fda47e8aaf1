# SPDX-License-Identifier: Apache-2.0
"""Small tables for notebooks: plain HTML without script or style sheet, all text escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import singledispatch
from html import escape

from lagging.comparison import Comparison
from lagging.curves import Curves
from lagging.data.run import Run
from lagging.errors import counted
from lagging.metrics import Metric
from lagging.render.card import DIRECTIONS, UNITS
from lagging.render.comparison import pair_table, system_table
from lagging.render.curves import front_note, point_tables
from lagging.render.scores import signature_lines
from lagging.render.table import Cell, Column, Difference, Table, format_interval, format_value, metric_title
from lagging.render.timeline import Timeline
from lagging.scoring.scores import Scores

__all__ = ["render_html", "write_html"]

ROWS = 5
"""Segments of a Run that are shown."""
DRAWN = 100
"""Tokens of a timeline that are drawn."""
LETTERS = 90
"""Characters of a text that are shown."""


def html_text(text: str) -> str:
    """Foreign text in HTML.

    Example:
        >>> html_text("a < b")
        'a &lt; b'
    """
    plain = "".join(c if c.isprintable() or c in "\u200c\u200d" else "\N{REPLACEMENT CHARACTER}" for c in text.strip())
    return escape(plain)


def _cell(cell: str | Cell | Difference) -> str:
    if not isinstance(cell, Cell):
        return f"<bdi>{html_text(str(cell))}</bdi>"
    text = escape(" ".join(filter(None, (cell.value, cell.interval, cell.unit))))
    return (f"<strong>{text}</strong>" if cell.best else text) + f"<sup>{escape(cell.mark)}</sup>"


def write_html(table: Table, caption: str, below: Iterable[str] = ()) -> str:
    """A table whose first column names its rows, and lines below it."""
    head = "".join(f'<th scope="col">{_cell(column.title)}</th>' for column in table.columns)
    lines = []
    for first, *cells in table.rows:
        row = "".join(f"<td>{_cell(cell)}</td>" for cell in cells)
        lines.append(f'<tr><th scope="row">{_cell(first)}</th>{row}</tr>')
    foot = "".join(f"<div><small>{_cell(line)}</small></div>" for line in below)
    return (
        f'<table class="lagging"><caption>{html_text(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>{foot}"
    )


def _table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> Table:
    return Table([Column(head) for head in heads], [[str(cell) for cell in row] for row in rows])


def _short(text: str | None) -> str:
    return "" if text is None else text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"


# ---- objects ----------------------------------------------------------------------------------------------------


@singledispatch
def render_html(object: object) -> str:
    """The table of an object, for a notebook."""
    raise TypeError(f"there is no table of a {type(object).__name__}")


@render_html.register
def _(run: Run) -> str:
    heads = ["segment", *(["|x|"] if run.unit != "none" else []), "tokens", "prediction", "reference"]
    rows = []
    for row in range(min(len(run), ROWS)):
        texts = [None if column is None else column[row] for column in (run.prediction, run.reference)]
        length = [format_value(float(run.source_length[row]), run.unit)] if run.unit != "none" else []
        rows.append([run.id[row], *length, int(run.delays.lengths[row]), *map(_short, texts)])
    left = len(run) - len(rows)
    below = [f"and {counted(left, 'more segment')}"] if left > 0 else []
    return write_html(_table(heads, rows), repr(run), [*below, *map(str, run.notes)])


@render_html.register
def _(scores: Scores) -> str:
    rows = [
        [
            metric_title(score.metric, score.unit),
            format_value(score.value, score.unit),
            format_interval(score.low, score.high, score.unit),
            score.n,
            int(score.undefined) or "",
        ]
        for score in scores
    ]
    table = _table(["metric", "score", "interval", "segments", "undefined"], rows)
    return write_html(table, scores.system or "Scores", [*signature_lines([scores]), *map(str, scores.notes)])


@render_html.register
def _(comparison: Comparison) -> str:
    table = system_table(comparison)
    rows = [row[:-1] for row in table.rows[: len(comparison.systems)]]
    signatures = signature_lines(list(comparison.scores.values()))
    below = [comparison.key, comparison.description, *signatures, *map(str, comparison.notes)]
    systems = write_html(Table(table.columns[:-1], rows), repr(comparison), filter(None, below))
    if not comparison.pairs:
        return systems
    return systems + write_html(pair_table(comparison, comparison.pairs), "pairs")


@render_html.register
def _(curves: Curves) -> str:
    (points, *_), fronts = point_tables(curves), curves.front()
    return write_html(points, repr(curves), [front_note(fronts)])


@render_html.register
def _(metric: Metric) -> str:
    facts = {
        "formula": metric.formula,
        "unit": UNITS[metric.unit],
        "better": DIRECTIONS[metric.higher_is_better],
        **{f"{p.name}={'none' if p.default is None else p.default}": p.help for p in metric.params},
        **{f"edge case {number}": text for number, text in enumerate(metric.edge_cases, 1)},
        "paper": metric.paper,
    }
    rows = [[name, text] for name, text in facts.items() if text]
    return write_html(_table(["", metric.summary], rows), repr(metric))


def _draw(line: Timeline) -> str:
    """The timeline as a drawing: a row per token, from the ideal time to g′, with g between them."""
    height, width, left = 16, 520.0, 110
    end = max([line.source_length, *(v for v in line.effective_delays.tolist() if math.isfinite(v)), 1e-9])
    rows = []
    for t in range(min(len(line.delays), DRAWN)):
        times = [line.ideal[t], line.delays[t], line.effective_delays[t]]
        if not all(map(math.isfinite, times)):
            continue
        ideal, g, effective = (left + width * max(float(v), 0.0) / end for v in times)
        y = height * (t + 1)
        word = html_text(_short(line.target[t])[:16]) or str(t + 1)
        rows.append(
            f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{word}</text>'
            f'<line x1="{min(ideal, g):.1f}" x2="{effective:.1f}" y1="{y}" y2="{y}"></line>'
            f'<circle cx="{ideal:.1f}" cy="{y}" r="1.5"></circle><circle cx="{g:.1f}" cy="{y}" r="4"></circle>'
            f'<circle cx="{effective:.1f}" cy="{y}" r="4" fill="none"></circle>'
        )
    title = f"<title>{html_text(f'segment {line.id}: ideal, g and g′ of each token')}</title>"
    size = f'width="{left + width + 10:.0f}" height="{height * (len(rows) + 1)}"'
    return (
        f'<svg {size} role="img" font-size="11" fill="currentColor" stroke="none">{title}'
        f'<g stroke="currentColor" stroke-width="1">{"".join(rows)}</g></svg>'
    )


@render_html.register
def _(line: Timeline) -> str:
    def time(value: float) -> str:
        return format_value(value, line.unit)

    unit = "s" if line.unit == "ms" else "tokens"
    columns: dict[str, Sequence[object]] = {
        "t": range(1, len(line.delays) + 1),
        "read": line.read,
        "written": line.target,
        f"g ({unit})": [*map(time, line.delays)],
        "g′": [*map(time, line.effective_delays)],
        "ideal": [*map(time, line.ideal)],
        "lag": [*map(time, line.lags)],
        "lag of g′": [*map(time, line.effective_lags)],
        "largest lag so far": ["◀" if broke else "" for broke in line.broke],
    }
    columns = {head: cells for head, cells in columns.items() if head not in ("read", "written") or any(cells)}
    scores = ", ".join(f"{score.metric!r} {format_value(score.value, score.unit)}" for score in line.scores)
    texts = [
        f"{name}: {_short(text)}" for name, text in (("source", line.source), ("reference", line.reference)) if text
    ]
    caption = f"segment {line.id}, |x| = {time(line.source_length)} {unit}"
    return _draw(line) + write_html(_table(columns, zip(*columns.values(), strict=True)), caption, [scores, *texts])
