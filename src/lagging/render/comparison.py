# SPDX-License-Identifier: Apache-2.0
"""A Comparison → its Tables (systems, pairs) and records, and from these every format. No maths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from lagging.comparison import Comparison
from lagging.comparison.pairs import Pair
from lagging.comparison.published import PublishedScore
from lagging.errors import SHOWN, counted
from lagging.metrics import Metric
from lagging.render import check_format, write_sheet
from lagging.render.records import Record, finite, score_record, write_json, write_tsv
from lagging.render.scores import COUNT, SYSTEM, best_value, score_cell, signature_lines, undefined_notes
from lagging.render.table import (
    MISSING,
    UNITS,
    Cell,
    Column,
    Difference,
    Layout,
    Sheet,
    Table,
    format_interval,
    format_p,
    format_value,
    metric_column,
)

__all__ = ["comparison_sheet", "pair_table", "render_comparison", "system_table"]

WORDS = {"alike": "not significant", "untested": "not tested"}
PAIR = ("metric", "a", "b", "difference", "low", "high", "p", "p_adjusted")
EFFECT = ("metric", "a", "b", "effect", "effect_low", "effect_high", "wins", "ties", "losses", "n", "method", "reason")


def render_comparison(
    comparison: Comparison,
    format: str = "table",
    *,
    width: int | None = None,
    colour: bool = False,
    every: bool = False,
    sentences: Sequence[str] = (),
    signed: bool = True,
    layout: Layout | None = None,
) -> str:
    """A comparison in one of the formats.

    Args:
        comparison: the comparison.
        format: "table", "json", "tsv", "markdown" or "latex".
        width: columns of the terminal, for the table; None to let lines be as long as they are.
        colour: whether the table may use terminal colours.
        every: whether all pairs are listed; else, of many systems, those with the base, or the first.
        sentences: notes below the pairs.
        layout: digits, direction, caption and label of the table.
        signed: whether the table has the signatures; the other formats always have them.
    """
    check_format(format)
    if format == "json":
        return write_json(_json_fields(comparison))
    if format == "tsv":
        return write_tsv({"": _tsv_records(comparison)})
    sheet = comparison_sheet(comparison, every, sentences, None if layout is None else layout.digits)
    return write_sheet(sheet, format, width=width, colour=colour, signed=signed, layout=layout)


# ---- for people -------------------------------------------------------------------------------------------------


def comparison_sheet(
    comparison: Comparison, every: bool = False, sentences: Sequence[str] = (), digits: int | None = None
) -> Sheet:
    """The systems and the pairs; notes and signatures below."""
    c = comparison
    pairs = _listed_pairs(c, every)
    hidden = len(c.pairs) - len(pairs)
    notes = [
        *([f"{counted(hidden, 'more pair')}: -v"] if hidden else []),
        *sentences,
        *filter(None, (c.key, c.description)),
    ]
    left_out = [f"{len(ids)} of {name} ({_first_ids(ids)})" for name, ids in c.unmatched.items() if ids]
    if left_out:
        notes.append(f"{counted(c.n, 'segment')} that all systems have; left out: {', '.join(left_out)}")
    results = list(c.scores.values())
    published = [f"{row.signature}  ({row.system})" for row in c.published if row.signature]
    signatures = [*signature_lines(results, brief=True), *published, *([str(c.signature)] if c.pairs else [])]
    caption = ". ".join(text[:1].upper() + text[1:] for text in (c.description, c.key) if text)
    tables = [system_table(c, digits), *([pair_table(c, pairs, digits)] if pairs else [])]
    return Sheet(tables, [*notes, *undefined_notes(results)], signatures, caption, "tab:comparison")


def system_table(comparison: Comparison, digits: int | None = None) -> Table:
    """A row per system, a column per metric; then the systems whose scores were published."""
    c = comparison
    results = list(c.scores.values())
    metrics = _metrics_and_units(c)
    marks = c.letters or c.marks
    best = {metric: c.best(metric) for metric, _ in metrics}
    values = {metric: best_value(results, metric, digits) for metric, _ in metrics}
    rows: list[list[str | Cell]] = []
    for name, scores in c.scores.items():
        cells = [score_cell(scores, m, unit, values[m], marks.get(m, {}).get(name, ""), digits) for m, unit in metrics]
        cells = [replace(cell, best=name in best[m]) for cell, (m, _) in zip(cells, metrics, strict=True)]
        rows.append([name, *cells, str(c.n)])
    published: dict[tuple[str, str], list[PublishedScore]] = {}
    for row in c.published:
        published.setdefault((row.system, row.path), []).append(row)
    for (name, _), scores_of_file in published.items():
        shown = {row.metric: row.score for row in scores_of_file}
        cells = [Cell(format_value(shown.get(repr(metric)), unit, digits)) for metric, unit in metrics]
        rows.append([f"{name} ({scores_of_file[0].tool or 'published'})", *cells, MISSING])
    return Table([SYSTEM, *(metric_column(metric, unit, split=True) for metric, unit in metrics), COUNT], rows)


def _metrics_and_units(comparison: Comparison) -> list[tuple[Metric, str]]:
    return [(score.metric, score.unit) for score in next(iter(comparison.scores.values()))]


def _listed_pairs(comparison: Comparison, every: bool) -> list[Pair]:
    c = comparison
    if every or c.base is not None or len(c.systems) <= 2:
        return list(c.pairs)
    return [pair for pair in c.pairs if pair.a == c.systems[0]]


def pair_table(comparison: Comparison, pairs: Iterable[Pair], digits: int | None = None) -> Table:
    """A row per pair: metric, systems, difference, p, what that means, wins."""
    units = dict(_metrics_and_units(comparison))
    corrected = comparison.correction != "none" and len(comparison.pairs) != len(units)
    alpha = comparison.alpha
    rows: list[list[str | Cell | Difference]] = []
    for pair in pairs:
        unit = units[pair.metric]
        interval = "" if pair.low != pair.low else format_interval(pair.low, pair.high, unit, digits)
        verdict = comparison.verdict(pair)
        rows.append(
            [
                repr(pair.metric),
                Difference(pair.b, pair.a),
                " ".join(filter(None, (format_value(pair.difference, unit, digits), interval, UNITS[unit]))),
                format_p(pair.p),
                *([format_p(pair.p_adjusted)] if corrected else []),
                "not after correction" if pair.p < alpha <= pair.p_adjusted else WORDS.get(verdict, verdict),
                MISSING if pair.wins is None else f"{pair.wins}/{pair.ties}/{pair.losses}",
            ]
        )
    heads = [("metric", ""), ("pair", ""), ("difference", ""), ("p", "")]
    heads += [*([("p", "(corrected)")] if corrected else []), ("", ""), ("wins/ties/losses", "")]
    return Table([Column(name, unit=unit, number=False) for name, unit in heads], rows, pairs=True)


def _first_ids(ids: Sequence[Any]) -> str:
    return ", ".join(map(str, ids[:SHOWN])) + (", …" if len(ids) > SHOWN else "")


# ---- for programs -----------------------------------------------------------------------------------------------


def _pair_record(pair: Pair, names: Iterable[str]) -> Record:
    values = {name: getattr(pair, name) for name in names}
    return {k: repr(v) if k == "metric" else finite(v) if isinstance(v, float) else v for k, v in values.items()}


def _json_fields(c: Comparison) -> Record:
    return {
        "scores": [score_record(name, score) for name, scores in c.scores.items() for score in scores],
        "pairs": [_pair_record(pair, PAIR) for pair in c.pairs],
        "effects": [_pair_record(pair, EFFECT) for pair in c.pairs],
        "letters": {repr(metric): marks for metric, marks in (c.letters or c.marks).items()},
        "base": c.base,
        "unmatched": {name: list(ids) for name, ids in c.unmatched.items()},
        "published": [
            {
                "system": row.system,
                "metric": row.metric,
                "score": finite(row.score),
                "unit": row.unit,
                "tool": row.tool,
                "signature": row.signature,
            }
            for row in c.published
        ],
        "signature": str(c.signature),
    }


def _tsv_records(c: Comparison) -> list[Record]:
    """A record per system and metric, with its difference from the base, or the first system; then published scores."""
    first = c.base or c.systems[0]
    marks = c.letters or c.marks
    records = []
    for name, scores in c.scores.items():
        for score in scores:
            tested = name != first and bool(c.pairs)
            pair = _pair_record(c.pair(score.metric, first, name), PAIR) if tested else {}
            records.append(
                score_record(name, score)
                | {
                    "letters": marks.get(score.metric, {}).get(name),
                    "against": first if tested else None,
                    "difference": pair.get("difference"),
                    "difference_low": pair.get("low"),
                    "difference_high": pair.get("high"),
                    "p": pair.get("p"),
                    "p_adjusted": pair.get("p_adjusted"),
                    "test": str(c.signature),
                }
            )
    for row in c.published:
        fields = ("system", "metric", "unit", "signature")
        records.append({name: getattr(row, name) for name in fields} | {"score": finite(row.score)})
    return records
