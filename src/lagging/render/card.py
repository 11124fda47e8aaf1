# SPDX-License-Identifier: Apache-2.0
"""The card of a metric: summary, formula, parameters, edge cases and the paper to cite; and the list of metrics."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from lagging.metrics import Metric
from lagging.render.table import ARROWS
from lagging.render.text import align_columns

__all__ = ["card", "listing"]

UNITS = {
    "time": "time, in the unit of the log (tokens or milliseconds)",
    "drift": "lag per source: ms per minute of speech, or tokens per 100 tokens of text",
    "ratio": "a ratio",
    "count": "a count",
    "points": "points",
    "score": "a score from elsewhere",
}

DIRECTIONS = {True: "higher is better", False: "lower is better", None: "neither higher nor lower is better"}


def _format_default(value: object) -> str:
    return "none" if value is None else str(value)


def card(metric: Metric, *, width: int = 100) -> str:
    """The card of a metric as plain text.

    Example:
        >>> import lagging
        >>> print(card(lagging.metric("AL_y")).splitlines()[0])
        AL_y: Average Lagging over all target tokens: AL without its cut-off.
    """

    def wrapped(text: str, indent: str = "  ") -> str:
        return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent)

    direction = DIRECTIONS[metric.higher_is_better]
    lines = [f"{metric.name}: {metric.summary}", ""]
    lines += [wrapped(metric.formula), ""] if metric.formula else []
    lines += [wrapped(f"{UNITS[metric.unit]}; {direction}")]
    lines += ["", "parameters"] if metric.params else []
    for p in metric.params:
        allowed = ", ".join([*p.choices, *(["a number"] if p.kind in (int, float) else [])])
        lines.append(wrapped(f"{p.name}={_format_default(p.default)}: {p.help}" + (f" ({allowed})" if allowed else "")))
    if metric.edge_cases:
        lines += [
            "",
            "edge cases",
            *(textwrap.fill(e, width, initial_indent="  - ", subsequent_indent="    ") for e in metric.edge_cases),
        ]
    lines += ["", "paper", wrapped(metric.paper)] if metric.paper else []
    lines += ["", textwrap.indent(metric.bibtex, "  ")] if metric.bibtex else []
    return "\n".join(lines)


def listing(metrics: Iterable[Metric], *, width: int | None = None) -> str:
    """Name, direction and summary of each metric."""
    rows = [[m.name, ARROWS[m.higher_is_better], m.summary] for m in metrics]
    if width is not None:
        room = max(20, width - max(len(row[0]) for row in rows) - 5)
        rows = [[a, b, textwrap.shorten(c, room, placeholder="…")] for a, b, c in rows]
    return "\n".join(align_columns(rows, [False] * 3))
