# SPDX-License-Identifier: Apache-2.0
"""Curves of several systems → Tables and records, and from these every format. No maths."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lagging.comparison.derivations import Draws
from lagging.curves import NO_LOG, Area, Axis, Curves, CurveValue, OnFront
from lagging.data.units import scale
from lagging.errors import counted
from lagging.metrics import Metric
from lagging.render import check_format, write_sheet
from lagging.render.records import Record, estimate_record, finite, score_records, write_json, write_tsv
from lagging.render.scores import signature_lines, undefined_notes
from lagging.render.table import (
    MISSING,
    UNITS,
    Column,
    Difference,
    Estimate,
    Layout,
    Sheet,
    Table,
    format_p,
    format_value,
    make_cell,
    metric_title,
)
from lagging.scoring.scores import Scores

__all__ = ["render_curves"]


def render_curves(
    curves: Curves,
    format: str = "table",
    *,
    at_latency: Sequence[Sequence[CurveValue]] = (),
    at_quality: Sequence[Sequence[CurveValue]] = (),
    areas: Sequence[Area] = (),
    correction: str = "holm",
    width: int | None = None,
    colour: bool = False,
    signed: bool = True,
    layout: Layout | None = None,
) -> str:
    """Curves, what they have at fixed latencies and qualities, and the areas between them."""
    fronts = curves.front()
    x, y = (curves.latency, curves.unit), (curves.quality, curves.quality_unit)
    tables = [_point_table(curves, fronts)]
    if at_latency or at_quality:
        heads = [f"{metric_title(*y)} at {curves.latency!r} {_amount(row[0].at, x[1])}" for row in at_latency]
        heads += [f"{metric_title(*x)} at {curves.quality!r} {_amount(row[0].at, y[1])}" for row in at_quality]
        columns = [(row, y[1]) for row in at_latency] + [(row, x[1]) for row in at_quality]
        rows = [
            [curve.system, *(with_interval(row[i], unit) for row, unit in columns)] for i, curve in enumerate(curves)
        ]
        tables.append(make_table(["system", *heads], rows))
    if areas:
        rows = [
            [
                str(Difference(area.b, area.a)),
                with_interval(Axis(area.difference, area.low, area.high), y[1]),
                _range(area.start, area.end, curves.unit),
                format_p(area.p),
                format_p(area.p_adjusted),
            ]
            for area in areas
        ]
        over = f"over {curves.latency!r} {UNITS[curves.unit]}".rstrip()
        tables.append(make_table(["difference", metric_title(*y), over, "p", "p adjusted"], rows))
    notes = [front_note(fronts), *_reasons(at_latency, *x), *_reasons(at_quality, *y)]
    if curves.draws is not None and curves.draws.too_few:
        notes.append(f"{curves.draws.too_few} for intervals")
    notes += _area_notes(areas)
    if curves.draws is not None and len(curves) > 1 and all(len(curve.points) == 1 for curve in curves):
        notes.append("every system has one setting; settings become a curve if they have one name: 'ours=runs/k*'")
    notes += published_notes(curves, ", so without intervals")
    if any(not math.isnan(area.p) for area in areas):
        test = describe_test(curves.draws, correction)
        notes.append(f"difference: mean over the latencies that both have; p: {test}")
    records = {
        "points": list(_point_records(curves, fronts)),
        "at_latency": [_at_record(at, "latency", "quality") for row in at_latency for at in row],
        "at_quality": [_at_record(at, "quality", "latency") for row in at_quality for at in row],
        "areas": [_area_record(area, curves) for area in areas],
    }
    scores = [point.scores for curve in curves for point in curve.points if point.scores is not None]
    settings = interval_record(curves.draws, correction)
    return render_tables(
        format, tables, notes, scores, records, settings, width=width, colour=colour, signed=signed, layout=layout
    )


# ---- what Curves, Ranking and Lines share ------------------------------------------------------------------------


def render_tables(
    format: str,
    tables: Sequence[Table],
    notes: Sequence[str],
    results: Sequence[Scores],
    records: Mapping[str, list[Record]],
    settings: Record,
    *,
    width: int | None,
    colour: bool,
    signed: bool,
    layout: Layout | None = None,
    caption: str = "Quality and latency of the systems at their settings",
) -> str:
    """Tables and notes for people, records for programs; `settings` are those of the intervals."""
    check_format(format)
    if format == "json":
        return write_json({"scores": score_records(results), **records, "made": settings})
    if format == "tsv":
        return write_tsv({**records, "made": [settings]})
    below = [*notes, *undefined_notes(results)]
    sheet = Sheet(tables, below, signature_lines(results, brief=True), caption, "tab:curve", stacked=True)
    return write_sheet(sheet, format, width=width, colour=colour, signed=signed, layout=layout)


def make_table(heads: Sequence[str], rows: Sequence[Sequence[str]], names: int = 1, texts: int = 1) -> Table:
    """A table of texts; the first `names` columns name a row, the first `texts` columns are no numbers."""
    return Table([Column(head, number=i >= texts) for i, head in enumerate(heads)], rows, names)


def with_interval(estimate: Estimate, unit: str) -> str:
    """A value with its interval."""
    return str(make_cell(estimate, unit))


def format_share(share: float | None) -> str:
    """A share of the resamples, never rounded to all or none."""
    if share is None:
        return MISSING
    return "< 1 %" if 0 < share < 0.01 else "> 99 %" if 0.99 < share < 1 else f"{100 * share:.0f} %"


def interval_record(draws: Draws | None, correction: str | None = None, method: str | None = None) -> Record:
    """How intervals and p-values were made; nothing where there are none."""
    if draws is None:
        return {}
    interval = draws.template
    return {
        "by": interval.resample,
        "units": interval.clusters,
        "level": interval.confidence,
        "method": method or interval.method,
        "resamples": interval.resamples,
        "seed": interval.seed,
        "correction": correction,
    }


def describe_test(draws: Draws | None, correction: str) -> str:
    """How p-values were made, in words."""
    if draws is None:
        return ""
    interval = draws.template
    kind = "wild bootstrap" if interval.method == "wild" else "bootstrap"
    units = counted(interval.clusters, interval.resample)
    name = {"holm": "Holm", "bh": "Benjamini-Hochberg", "none": "not adjusted"}[correction]
    return f"paired {kind} over {units}, {interval.resamples} resamples, seed {interval.seed}, {name}"


def published_notes(curves: Curves, consequence: str = "") -> list[str]:
    """The systems whose numbers were published without logs; a line per file."""
    files: dict[str, list[str]] = {}
    for system, paths in curves.published.items():
        for path in paths:
            files.setdefault(path, []).append(system)
    return [f"published in {path}, without logs{consequence}: {', '.join(names)}" for path, names in files.items()]


def signature_text(scores: Scores | None, metric: Metric) -> str | None:
    """How the number was made; None if it was published without that."""
    return None if scores is None else str(scores[metric].signature)


# ---- cells ---------------------------------------------------------------------------------------------------------


def point_tables(curves: Curves) -> list[Table]:
    """The settings of all curves, for a notebook."""
    return [_point_table(curves, curves.front())]


def _point_table(curves: Curves, fronts: Iterable[OnFront]) -> Table:
    front = iter(fronts)
    rows = []
    for curve in curves:
        for point in curve.points:
            x = with_interval(point.latency, curves.unit)
            y = MISSING if point.quality is None else with_interval(point.quality, curves.quality_unit)
            rows.append([curve.system, point.setting, x, y, _front_cell(next(front))])
    heads = [metric_title(curves.latency, curves.unit), metric_title(curves.quality, curves.quality_unit)]
    return make_table(["system", "setting", *heads, "front"], rows, names=2, texts=2)


def _front_cell(front: OnFront) -> str:
    mark = "●" if front.on else ""
    return mark if front.share is None else f"{mark} {format_share(front.share)}".strip()


def front_note(fronts: Iterable[OnFront]) -> str:
    resampled = any(front.share is not None for front in fronts)
    share = "; in which share of the resamples it is so" if resampled else ""
    return f"front: ● no other setting is as early and as good, and earlier or better{share}"


def _amount(value: float, unit: str) -> str:
    return f"{value / scale(unit):g} {UNITS[unit]}".rstrip()


def _range(start: float, end: float, unit: str) -> str:
    if math.isnan(start):
        return MISSING
    first, last = format_value(start, unit), format_value(end, unit)
    return first if start == end else f"{first} to {last}"


def _area_notes(areas: Sequence[Area]) -> list[str]:
    """Why systems cannot be compared over their latencies; of many pairs with one reason, the first three."""
    pairs: dict[str, list[str]] = {}
    for area in areas:
        if area.reason not in ("", NO_LOG):
            pairs.setdefault(area.reason, []).append(f"{area.b} − {area.a}")
    return [
        f"{', '.join(names[:3])}{f' and {len(names) - 3} other pairs' if len(names) > 3 else ''}: {reason}"
        for reason, names in pairs.items()
    ]


def _reasons(rows: Sequence[Sequence[CurveValue]], metric: Metric, unit: str) -> list[str]:
    return [
        f"{at.system} at {metric!r} {_amount(at.at, unit)}: {at.reason}"
        for row in rows
        for at in row
        if at.reason not in ("", NO_LOG)
    ]


# ---- records -------------------------------------------------------------------------------------------------------


def _point_records(curves: Curves, fronts: Sequence[OnFront]) -> Iterator[Record]:
    points = [(curve.system, point) for curve in curves for point in curve.points]
    for (system, point), front in zip(points, fronts, strict=True):
        yield {
            "system": system,
            "setting": point.setting,
            "latency": estimate_record(point.latency),
            "quality": estimate_record(point.quality),
            "front": front.on,
            "front_share": front.share,
            "latency_metric": repr(curves.latency),
            "latency_unit": curves.unit,
            "quality_metric": repr(curves.quality),
            "latency_signature": signature_text(point.scores, curves.latency),
            "quality_signature": signature_text(point.scores, curves.quality),
        }


def _at_record(at: CurveValue, axis: str, estimated: str) -> Record:
    ends = {estimated: finite(at.value), "low": finite(at.low), "high": finite(at.high)}
    return {"system": at.system, f"at_{axis}": at.at, **ends, "reason": at.reason or None}


def _area_record(area: Area, curves: Curves) -> Record:
    return {
        "metric": repr(curves.quality),
        "a": area.a,
        "b": area.b,
        "from": finite(area.start),
        "to": finite(area.end),
        "difference": finite(area.difference),
        "low": finite(area.low),
        "high": finite(area.high),
        "p": finite(area.p),
        "p_adjusted": finite(area.p_adjusted),
        "reason": area.reason or None,
    }
