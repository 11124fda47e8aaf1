# SPDX-License-Identifier: Apache-2.0
"""Scores → terminal table, JSON, TSV, Markdown, LaTeX; a sentence → its timeline; a metric → its card. No maths.

Every renderer takes the same list of Scores and returns a string.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lagging.comparison.regimes import Verdict
from lagging.errors import UsageError, did_you_mean
from lagging.scoring.scores import Scores

__all__ = ["RENDERERS", "check_format", "render"]

RENDERERS = ("table", "json", "tsv", "markdown", "latex")


def render(
    scores: Sequence[Scores],
    format: str = "table",
    *,
    width: int | None = None,
    colour: bool = False,
    verdicts: Sequence[Verdict] = (),
    said: Sequence[str] = (),
    more: Mapping[str, Any] | None = None,
) -> str:
    """The scores of some systems in one of the formats.

    Args:
        scores: one entry per system.
        format: "table", "json", "tsv", "markdown" or "latex".
        width: columns of the terminal, for the table; None to let lines be as long as they are.
        colour: whether the table may use terminal colours.
        verdicts: where each system stands in a regime, if that was asked for.
        said: what is to stand below, for people.
        more: what else the JSON has, by name.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[4, 4, 4, 4, 5]], source_length=[5], name="antagonist")
        >>> print(render([lagging.score(run, ["AL", "DAL"])]))
        system      AL ↓ tokens  DAL ↓ tokens  n
        antagonist        2.200         4.000  1
        <BLANKLINE>
        AL|unit:token|length:hypothesis|clock:ideal|level:token|empty:nan|seg:none|mean:segment|n:1|v:0.2.0.dev0
        DAL|unit:token|length:hypothesis|clock:ideal|level:token|empty:nan|seg:none|mean:segment|n:1|v:0.2.0.dev0
    """
    check_format(format)
    pairs = zip(scores, verdicts, strict=True) if verdicts else ()
    remarks = [*(f"{v.regime.name}: {one.system}: {v}" for one, v in pairs), *said]
    if format == "table":
        from lagging.render.table import table

        return table(scores, width=width, colour=colour, remarks=remarks)
    from lagging.render import documents

    if format == "json":
        return documents.as_json(scores, verdicts, more)
    if format == "tsv":
        return documents.as_tsv(scores)
    return {"markdown": documents.as_markdown, "latex": documents.as_latex}[format](scores, remarks)


def check_format(format: str) -> None:
    """Refuse a format that there is not."""
    if format not in RENDERERS:
        raise UsageError(f"no output format is called {format!r}.{did_you_mean(format, RENDERERS)}")
