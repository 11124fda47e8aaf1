# SPDX-License-Identifier: Apache-2.0
"""Ranks by several metrics, and lines of one metric over another → Tables and records, and every format. No maths."""

from __future__ import annotations

from collections.abc import Iterable

from lagging.comparison.derivations import Derived
from lagging.curves import NO_LOG
from lagging.curves.ranking import Ranking
from lagging.curves.slopes import Lines
from lagging.metrics import Metric
from lagging.render.curves import (
    describe_test,
    format_share,
    interval_record,
    make_table,
    published_notes,
    render_tables,
    signature_text,
    with_interval,
)
from lagging.render.records import Record, estimate_record, finite
from lagging.render.table import MISSING, UNITS, Layout, format_p, format_value, metric_title

__all__ = ["render_lines", "render_ranking"]

CAPTION = "The systems by each of the metrics"


def render_ranking(
    ranking: Ranking,
    format: str = "table",
    *,
    width: int | None = None,
    colour: bool = False,
    signed: bool = True,
    layout: Layout | None = None,
) -> str:
    """The ranks of systems by each metric, the flips, and Kendall's τ."""
    first = ranking.ranks[:, 0]
    rows = [
        [
            system,
            *(
                _rank(int(rank), float(value), unit, int(rank) != int(first[s]))
                for rank, value, unit in zip(ranking.ranks[s], ranking.values[s], ranking.units, strict=True)
            ),
        ]
        for s, system in enumerate(ranking.systems)
    ]
    head = [metric_title(m, unit) for m, unit in zip(ranking.metrics, ranking.units, strict=True)]
    tables = [make_table(["system", *head], rows)]
    if ranking.flips:
        flips = [
            [f"{f.a} / {f.b}", _metrics(f.before), _metrics(f.after), format_share(f.share)] for f in ranking.flips
        ]
        tables.append(
            make_table(["order depends", "first is better by", "second is better by", "resamples"], flips, texts=3)
        )
    taus = [[f"{t.a!r}, {t.b!r}", with_interval(t, "ratio")] for t in ranking.taus]
    tables.append(make_table(["metrics", "Kendall's τ"], taus))
    notes = ["rank (value); *: not the rank that the first metric gives"]
    notes += [f"{t.a!r}, {t.b!r}: {t.reason}" for t in ranking.taus if t.reason not in ("", NO_LOG)]
    notes += ["no intervals: some systems were published without logs"] * any(t.reason == NO_LOG for t in ranking.taus)
    settings = interval_record(ranking.draws, method="percentile")
    by_system = {scores.system: scores for scores in ranking.scores}
    records: dict[str, list[Record]] = {
        "ranks": [
            {
                "system": system,
                "metric": repr(m),
                "rank": int(ranking.ranks[s, i]) or None,
                "score": finite(float(ranking.values[s, i])),
                "unit": ranking.units[i],
                "signature": signature_text(by_system.get(system), m),
            }
            for s, system in enumerate(ranking.systems)
            for i, m in enumerate(ranking.metrics)
        ],
        "flips": [
            {"a": f.a, "b": f.b, "before": [*map(repr, f.before)], "after": [*map(repr, f.after)], "share": f.share}
            for f in ranking.flips
        ],
        "taus": [
            {"a": repr(t.a), "b": repr(t.b), "tau": finite(t.value), "low": t.low, "high": t.high, "reason": t.reason}
            for t in ranking.taus
        ],
    }
    return render_tables(
        format, tables, notes, ranking.scores, records, settings, width=width, colour=colour, signed=signed
    )


def render_lines(
    lines: Lines,
    format: str = "table",
    *,
    correction: str = "holm",
    width: int | None = None,
    colour: bool = False,
    signed: bool = True,
    layout: Layout | None = None,
) -> str:
    """One metric over another: the line of each system, and who is steeper."""
    unit, upward = lines.curves.unit, lines.curves.quality_unit
    rows = [
        [
            line.system,
            str(len(line.curve.points)),
            with_interval(line.slope, "ratio"),
            with_interval(line.start, upward),
            line.resample,
        ]
        for line in lines.lines
    ]
    start = f"{lines.y!r} where {lines.x!r} is 0, {UNITS[upward]}".rstrip(", ")
    tables = [make_table(["system", "settings", f"slope of {lines.y!r} over {lines.x!r}", start, "by"], rows)]
    if lines.slope_differences:
        steeper = [
            [f"{s.b} − {s.a}", with_interval(s.difference, "ratio"), format_p(s.difference.p), format_p(s.p_adjusted)]
            for s in lines.slope_differences
        ]
        tables.append(make_table(["steeper by", "slope", "p", "p adjusted"], steeper))
    notes = [f"{line.system}: {line.slope.reason}" for line in lines.lines if line.slope.reason]
    notes += [f"p: {describe_test(lines.curves.draws, correction)}"] * bool(lines.slope_differences)
    notes += ["by setting: how straight the settings lie, not how sure each of them is"] * any(
        line.resample == "setting" and line.slope.low is not None for line in lines.lines
    )
    notes += published_notes(lines.curves)
    records: dict[str, list[Record]] = {
        "points": [
            {
                "system": line.system,
                "setting": point.setting,
                repr(lines.x): estimate_record(point.latency),
                repr(lines.y): estimate_record(point.quality),
                "unit": unit,
                "x_signature": signature_text(point.scores, lines.x),
                "y_signature": signature_text(point.scores, lines.y),
            }
            for line in lines.lines
            for point in line.curve.points
        ],
        "lines": [
            {
                "system": line.system,
                "x": repr(lines.x),
                "y": repr(lines.y),
                "settings": len(line.curve.points),
                "slope": _derived_record(line.slope),
                "start": _derived_record(line.start),
                "by": line.resample,
            }
            for line in lines.lines
        ],
        "steeper": [
            {"a": s.a, "b": s.b, **_derived_record(s.difference), "p_adjusted": finite(s.p_adjusted)}
            for s in lines.slope_differences
        ],
    }
    scores = [point.scores for line in lines.lines for point in line.curve.points if point.scores is not None]
    settings = interval_record(lines.curves.draws, correction)
    return render_tables(
        format,
        tables,
        notes,
        scores,
        records,
        settings,
        width=width,
        colour=colour,
        signed=signed,
        layout=layout,
        caption=CAPTION,
    )


def _rank(rank: int, value: float, unit: str, moved: bool) -> str:
    return MISSING if rank == 0 else f"{rank}{'*' if moved else ' '} ({format_value(value, unit)})"


def _metrics(metrics: Iterable[Metric]) -> str:
    return ", ".join(map(repr, metrics))


def _derived_record(derived: Derived) -> Record:
    return {**(estimate_record(derived) or {}), "p": finite(derived.p), "reason": derived.reason or None}
