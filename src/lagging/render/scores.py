# SPDX-License-Identifier: Apache-2.0
"""Scores of several systems as a Table: a row per system or group, a column per metric; and as a TSV of segments."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from lagging.errors import UsageError
from lagging.metrics import Metric
from lagging.render.records import tsv_field
from lagging.render.table import MISSING, UNITS, Cell, Column, Sheet, Table, format_value, make_cell, metric_column
from lagging.scoring.scores import Score, Scores
from lagging.scoring.signature import Signature, joined

__all__ = ["best_value", "metrics_and_units", "score_sheet", "segment_table", "signature_lines", "undefined_notes"]

SYSTEM = Column("system", number=False, latex="System")
COUNT = Column("n", latex="$n$")


def score_sheet(results: Sequence[Scores], notes: Sequence[str] = (), digits: int | None = None) -> Sheet:
    """The scores, the notes, what is undefined, and the signatures.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[4, 4, 4, 4, 5]], source_length=[5], name="antagonist")
        >>> table = score_sheet([lagging.score(run, ["AL", "DAL"])]).tables[0]
        >>> [column.title for column in table.columns], [str(cell) for cell in table.rows[0]]
        (['system', 'AL ↓ tokens', 'DAL ↓ tokens', 'n'], ['antagonist', '2.200', '4.000', '1'])
    """
    metrics = metrics_and_units(results)
    groups = _group_columns(results)
    best = {metric: best_value(results, metric, digits) for metric, _ in metrics}
    rows: list[list[str | Cell]] = []
    for scores in results:
        labels = [scores.group.get(name) for name in groups]
        cells = [score_cell(scores, metric, unit, best[metric], digits=digits) for metric, unit in metrics]
        count = str(max(score.n for score in scores))
        rows.append([scores.system, *(MISSING if label is None else label for label in labels), *cells, count])
    columns = [SYSTEM, *(Column(name, number=False) for name in groups)]
    columns += [*(metric_column(metric, unit) for metric, unit in metrics), COUNT]
    return Sheet(
        [Table(columns, rows)],
        [*notes, *undefined_notes(results)],
        signature_lines(results, brief=True),
        _caption(results, bold=any(best.values())),
    )


def _caption(results: Sequence[Scores], bold: bool) -> str:
    """What a table of scores shows, for its caption; `bold` if some of its values are."""
    counts = {max(score.n for score in scores) for scores in results}
    segments = f" of {counts.pop()} segments" if len(counts) == 1 else ""
    ends = [score.signature.get("ci") for scores in results for score in scores if score.low is not None]
    interval = f", with {ends[0]} % intervals" if ends else ""
    best = "; the best values are bold" if bold else ""
    return f"Latency and quality{segments}{interval}{best}"


def score_cell(
    scores: Scores, metric: Metric, unit: str, best: str | None, mark: str = "", digits: int | None = None
) -> Cell:
    """The value of a metric in its column; with its unit, if the column has none."""
    score = _find(scores, metric)
    if score is None:
        return Cell(MISSING)
    cell = make_cell(score, score.unit, mark, digits)
    return replace(cell, unit="" if unit else UNITS[score.unit], best=cell.value == best)


def metrics_and_units(results: Sequence[Scores]) -> list[tuple[Metric, str]]:
    """The metrics that occur, with their unit; no unit where systems differ in it."""
    units: dict[Metric, str] = {}
    for scores in results:
        for score in scores:
            units[score.metric] = score.unit if units.get(score.metric, score.unit) == score.unit else ""
    return list(units.items())


def _find(scores: Scores, metric: Metric) -> Score | None:
    """The score of a metric, if the system has one."""
    return next((score for score in scores if score.metric == metric), None)


def best_value(results: Sequence[Scores], metric: Metric, digits: int | None = None) -> str | None:
    """The best value of a column as it is written; None if there is nothing to choose from."""
    scores = [score for each in results if (score := _find(each, metric)) is not None and not math.isnan(score.value)]
    if len(scores) < 2 or len({score.unit for score in scores}) > 1 or metric.higher_is_better is None:
        return None
    if any(results[0].shared(other) != (scores[0].n,) * 3 for other in results[1:]):
        return None  # not the same sentences, so no system is the best
    best = (max if metric.higher_is_better else min)(scores, key=lambda score: score.value)
    return format_value(best.value, best.unit, digits)


def _group_columns(results: Sequence[Scores]) -> list[str]:
    """The columns that segments are grouped by; none if they are not."""
    return list(dict.fromkeys(name for scores in results for name in scores.group))


def signature_lines(results: Sequence[Scores], segments: bool = False, brief: bool = False) -> list[str]:
    """One line per metric if all systems agree, else one per metric and system; of corpus values, or of segments.

    Groups of one system differ in the number of segments, and have one signature: n is then that of all.

    Args:
        results: the scores.
        segments: whether the signatures are those of segments.
        brief: whether, of systems that do not agree, the first is written whole, and of the others what differs.
    """
    lines = []
    for metric, _ in metrics_and_units(results):
        scored = [(each, score) for each in results if (score := _find(each, metric)) is not None]
        signed = [(each.called, each.system, s.segment_signature if segments else s.signature) for each, s in scored]
        if _group_columns(results):
            signed = _join_groups(signed)
        texts = [(name, str(signature)) for name, _, signature in signed]
        if len({text for _, text in texts}) == 1:
            lines.append(texts[0][1])
        elif brief:
            lines += _brief_lines([(name, signature) for name, _, signature in signed])
        else:
            lines += [f"{text}  ({name})" for name, text in texts]
    return lines


def _brief_lines(signed: Sequence[tuple[str, Signature]]) -> Iterator[str]:
    """The signature of the first system, and what differs in those of the others; alike ones share a line."""
    (first, signature), *others = signed
    yield f"{signature}  ({first})"
    base = dict(signature.fields)
    names: dict[str, list[str]] = {}
    for name, other in others:
        own = dict(other.fields)
        differs = [key for key in {**base, **own} if base.get(key) != own.get(key)]
        names.setdefault("|".join(f"{key}:{own.get(key, 'none')}" for key in differs), []).append(name)
    yield from (f"  {', '.join(alike)}: {text or 'the same'}" for text, alike in names.items())


def _join_groups(signed: Sequence[tuple[str, str, Signature]]) -> list[tuple[str, str, Signature]]:
    """One signature for the groups of a system, where they were made alike."""
    systems = dict.fromkeys(system for _, system, _ in signed)
    try:
        return [(name, name, reduce(joined, (s for _, system, s in signed if system == name))) for name in systems]
    except UsageError:
        return list(signed)


def undefined_notes(results: Sequence[Scores]) -> list[str]:
    """`base: AL undefined in 3 of 2588 segments (empty hypothesis 3)`, one line per system and set of reasons."""
    lines = []
    for scores in results:
        metrics: dict[str, list[str]] = {}
        for score in scores:
            if score.undefined:
                reasons = ", ".join(f"{reason} {count}" for reason, count in score.undefined.counts.items())
                text = f"undefined in {int(score.undefined)} of {score.n} segments ({reasons})"
                metrics.setdefault(text, []).append(repr(score.metric))
        lines += [f"{scores.called}: {', '.join(names)} {text}" for text, names in metrics.items()]
    return lines


def segment_table(results: Sequence[Scores]) -> Iterator[str]:
    """Lines of a TSV with a row per segment: signatures as comments, then system, id, and a column per metric."""
    metrics = [metric for metric, _ in metrics_and_units(results)]
    for line in signature_lines(results, segments=True):
        yield f"# {tsv_field(line)}\n"
    yield "\t".join(["system", "id", *map(repr, metrics)]) + "\n"
    for scores in results:
        ids = next(score.ids for score in scores).tolist()
        columns = [_segment_values(_find(scores, metric), len(ids)) for metric in metrics]
        for row, name in enumerate(ids):
            yield "\t".join([tsv_field(scores.system), tsv_field(name), *(column[row] for column in columns)]) + "\n"


def _segment_values(score: Score | None, n: int) -> list[str]:
    if score is None:
        return [""] * n
    return ["" if math.isnan(value) else repr(value) for value in score.segments.tolist()]
