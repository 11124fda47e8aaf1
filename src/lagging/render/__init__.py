# SPDX-License-Identifier: Apache-2.0
"""Scores, comparisons and curves → terminal, JSON, TSV, Markdown, LaTeX; figures, notebooks and the report. No maths.

Scores, a Comparison or Curves become a `Sheet` of Tables once, and text, Markdown, LaTeX and HTML are writers of it.
JSON and TSV are written from records, which are unrounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lagging.comparison.regimes import Verdict
from lagging.errors import UsageError, did_you_mean
from lagging.scoring.scores import Scores

if TYPE_CHECKING:
    from lagging.render.table import Layout, Sheet

__all__ = ["RENDERERS", "check_format", "render", "write_sheet"]

RENDERERS = ("table", "json", "tsv", "markdown", "latex")


def render(
    scores: Sequence[Scores],
    format: str = "table",
    *,
    width: int | None = None,
    colour: bool = False,
    verdicts: Sequence[Verdict] = (),
    notes: Sequence[str] = (),
    fields: Mapping[str, Any] | None = None,
    signed: bool = True,
    layout: Layout | None = None,
) -> str:
    """The scores of several systems in one of the formats.

    Args:
        scores: one entry per system.
        format: "table", "json", "tsv", "markdown" or "latex".
        width: columns of the terminal, for the table; None to let lines be as long as they are.
        colour: whether the table may use terminal colours.
        verdicts: the regime that each system is in, if systems were judged.
        notes: sentences below the table.
        fields: further fields of the JSON, by name.
        layout: digits, direction, caption and label of the table.
        signed: whether the table has the signatures; the other formats always have them.

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
    from lagging.render.records import score_records, write_json, write_tsv
    from lagging.render.scores import score_sheet

    judged = list(zip(scores, verdicts, strict=True)) if verdicts else []
    if format == "json":
        regimes = {"regimes": [_regime_record(each.system, verdict) for each, verdict in judged]} if judged else {}
        return write_json({"scores": score_records(scores), **(fields or {}), **regimes})
    if format == "tsv":
        return write_tsv({"": score_records(scores)})
    regime_notes = [f"{verdict.regime.name}: {each.system}: {verdict}" for each, verdict in judged]
    sheet = score_sheet(scores, [*regime_notes, *notes], None if layout is None else layout.digits)
    return write_sheet(sheet, format, width=width, colour=colour, signed=signed, layout=layout)


def _regime_record(system: str, verdict: Verdict) -> dict[str, Any]:
    return {
        "system": system,
        "regime": verdict.regime.name,
        "metric": repr(verdict.score.metric),
        "limits": dict(verdict.regime.limits),
        "band": verdict.band,
        "sure": verdict.sure,
    }


def write_sheet(
    sheet: Sheet,
    format: str,
    *,
    width: int | None = None,
    colour: bool = False,
    signed: bool = True,
    layout: Layout | None = None,
) -> str:
    """A sheet as text ("table"), Markdown or LaTeX; text may be without signatures."""
    sheet = sheet if layout is None else layout.apply(sheet)
    if format == "markdown":
        from lagging.render.markdown import write_markdown

        return write_markdown(sheet)
    if format == "latex":
        from lagging.render.latex import write_latex

        return write_latex(sheet)
    from lagging.render.text import write_text

    return write_text(sheet if signed else replace(sheet, signatures=()), width=width, colour=colour)


def check_format(format: str) -> None:
    """Refuse an unknown format."""
    if format not in RENDERERS:
        raise UsageError(f"no output format is called {format!r}.{did_you_mean(format, RENDERERS)}")
