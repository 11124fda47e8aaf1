# SPDX-License-Identifier: Apache-2.0
"""Scores for programs and papers: JSON, TSV, Markdown, LaTeX. Each carries the signatures."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lagging.comparison.regimes import Verdict
from lagging.errors.printable import field, printable
from lagging.render.cells import (
    UNITS,
    best,
    cell,
    columns,
    find,
    heading,
    labelled,
    labels,
    signatures,
    undefined,
    wins,
)
from lagging.scoring.scores import Score, Scores

__all__ = ["as_json", "as_latex", "as_markdown", "as_tsv", "moves_table", "segment_table"]

SCHEMA = 1
FIELDS = ("system", "metric", "score", "low", "high", "unit", "n", "undefined", "signature")


def finite(value: float | None) -> float | None:
    """A number for JSON, which has no NaN."""
    return None if value is None or not math.isfinite(value) else value


def record(system: str, score: Score, group: Mapping[str, str | None] | None = None) -> dict[str, Any]:
    """One score as the fields of the JSON and TSV output: unrounded, in the unit named, null for undefined.

    That of a group has its labels too, and percentiles of the values of its segments.
    """
    values = (
        system,
        repr(score.metric),
        finite(score.value),
        finite(score.low),
        finite(score.high),
        score.unit,
        score.n,
        int(score.undefined),
        str(score.signature),
    )
    said = dict(zip(FIELDS, values, strict=True))
    if not group:
        return said
    percentiles = {} if score.summary is None else score.summary.percentiles
    spread = {f"p{p:g}": finite(value) for p, value in percentiles.items()}
    return {"system": system, "group": dict(group), **said, "percentiles": spread}


def _records(scores: Sequence[Scores]) -> Iterator[dict[str, Any]]:
    return (record(one.system, score, one.group) for one in scores for score in one)


def as_json(scores: Sequence[Scores], verdicts: Sequence[Verdict] = (), more: Mapping[str, Any] | None = None) -> str:
    """One object: `{"schema": 1, "scores": […]}`, with `"regimes"` where systems were judged; and `more`."""
    found: dict[str, Any] = {"schema": SCHEMA, "scores": list(_records(scores)), **(more or {})}
    if verdicts:
        found["regimes"] = [
            {
                "system": one.system,
                "regime": v.regime.name,
                "metric": repr(v.score.metric),
                "limits": dict(v.regime.limits),
                "band": v.band,
                "sure": v.sure,
            }
            for one, v in zip(scores, verdicts, strict=True)
        ]
    return json.dumps(found, ensure_ascii=False, indent=1)


def tsv_field(value: object) -> str:
    """A TSV field: nothing for null; a tab or a line break is written as a backslash and a letter."""
    return "" if value is None else field(str(value))


def as_tsv(scores: Sequence[Scores]) -> str:
    """A row per system and metric, with the fields of the JSON output."""
    flat = [_flat(fields) for fields in _records(scores)]
    rows = ["\t".join(map(tsv_field, flat[0] if flat else FIELDS))]
    rows += ["\t".join(tsv_field(value) for value in fields.values()) for fields in flat]
    return "\n".join(rows)


def _flat(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields within fields beside the others: `group_lang`."""
    out: dict[str, Any] = {}
    for name, value in fields.items():
        out |= {f"{name}_{key}": one for key, one in value.items()} if isinstance(value, dict) else {name: value}
    return out


def markdown_text(text: str) -> str:
    """Foreign text in Markdown."""
    flat = printable(re.sub(r"\s+", " ", text))
    return re.sub(r"([\\`*_{}\[\]<>()#|~])", r"\\\1", flat)


def as_markdown(scores: Sequence[Scores], remarks: Sequence[str] = ()) -> str:
    """A table, best values in bold, signatures below."""
    metrics = columns(scores)
    by = labels(scores)
    head = ["system", *map(markdown_text, by), *(markdown_text(heading(m, unit)) for m, unit in metrics), "n"]
    rows = ["| " + " | ".join(head) + " |", "|---|" + "---|" * len(by) + "---:|" * (len(head) - 1 - len(by))]
    winners = [best(scores, metric) for metric, _ in metrics]
    for one in scores:
        cells = [markdown_text(text) for text in (one.system, *labelled(one, by))]
        for (metric, unit), winner in zip(metrics, winners, strict=True):
            text = cell(one, metric, unit)
            cells.append(f"**{text}**" if wins(text, winner) else text)
        rows.append("| " + " | ".join([*cells, str(max(s.n for s in one))]) + " |")
    said = [f"- {markdown_text(line)}" for line in (*remarks, *undefined(scores))]
    below = [*said, *(f"- `{line}`" for line in signatures(scores))]
    return "\n".join([*rows, "", *below])


LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{c: "\\" + c for c in "&%$#_{}"},
}
LATEX_SIGNS = str.maketrans(
    {"↓": r"$\downarrow$", "↑": r"$\uparrow$", "–": "--", "−": "$-$", "●": r"$\bullet$", "τ": r"$\tau$"}
)
"""Our own signs, which are no foreign text: to be put into what `latex_text` returns."""


def latex_text(text: str) -> str:
    """Foreign text in LaTeX."""
    return "".join(LATEX.get(c, c) for c in printable(re.sub(r"\s+", " ", text)))


def as_latex(scores: Sequence[Scores], remarks: Sequence[str] = ()) -> str:
    """A booktabs table, best values in bold; what is undefined, and the signatures, as comments."""
    metrics = columns(scores)
    units = [f" ({UNITS[unit]})" if UNITS[unit] else "" for _, unit in metrics]
    names = [latex_text(heading(m, "")).translate(LATEX_SIGNS) for m, _ in metrics]
    by = labels(scores)
    head = ["System", *map(latex_text, by), *(name + unit for name, unit in zip(names, units, strict=True)), "$n$"]
    lines = [
        "% needs \\usepackage{booktabs}",
        r"\begin{tabular}{l" + "l" * len(by) + "r" * (len(metrics) + 1) + "}",
        r"\toprule",
        " & ".join(head) + r" \\",
        r"\midrule",
    ]
    winners = [best(scores, metric) for metric, _ in metrics]
    for one in scores:
        cells = [latex_text(text).replace("–", "--") for text in (one.system, *labelled(one, by))]
        for (metric, unit), winner in zip(metrics, winners, strict=True):
            text = cell(one, metric, unit)
            text = text.replace("–", "--") if text == "–" else f"${text}$" if text.startswith("-") else text
            cells.append(rf"\textbf{{{text}}}" if wins(text.strip("$"), winner) else text)
        lines.append(" & ".join([*cells, str(max(s.n for s in one))]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    below = [printable(line) for line in (*remarks, *undefined(scores), *signatures(scores))]
    return "\n".join([*lines, *(f"% {line}" for line in below)])


def segment_table(scores: Sequence[Scores]) -> Iterator[str]:
    """Lines of a TSV with a row per segment: signatures as comments, then system, id, and a column per metric."""
    metrics = [metric for metric, _ in columns(scores)]
    for line in signatures(scores, segments=True):
        yield f"# {tsv_field(line)}\n"
    yield "\t".join(["system", "id", *map(repr, metrics)]) + "\n"
    for one in scores:
        found = [find(one, metric) for metric in metrics]
        ids = next(score.ids for score in one).tolist()
        values = [[""] * len(ids) if score is None else _cells(score) for score in found]
        for row, name in enumerate(ids):
            yield "\t".join([tsv_field(one.system), tsv_field(name), *(column[row] for column in values)]) + "\n"


MOVES = ("recording", "place", "token", "time", "by_edits", "segment")


def moves_table(moves: Sequence[Sequence[Any]]) -> Iterator[str]:
    """Lines of a TSV with a row per token that is not where the fewest edits would have put it."""
    yield "\t".join(MOVES) + "\n"
    for move in moves:
        yield "\t".join(tsv_field(None if value != value else value) for value in move) + "\n"


def _cells(score: Score) -> list[str]:
    return ["" if math.isnan(value) else repr(value) for value in score.segments.tolist()]
