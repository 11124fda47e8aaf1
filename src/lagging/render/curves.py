# SPDX-License-Identifier: Apache-2.0
"""Curves of several systems → text, JSON, TSV, Markdown, LaTeX. No maths."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from lagging.curves import NO_LOG, Area, At, Axis, Curves, OnFront
from lagging.data.units import scale
from lagging.metrics import Metric
from lagging.render.blocks import Block
from lagging.render.cells import NOTHING, UNITS, heading, shown
from lagging.render.documents import finite
from lagging.render.settings import (
    Record,
    axis_record,
    how_made,
    how_tested,
    p_value,
    rendered,
    share_of,
    signature_of,
    with_ends,
    without_logs,
)

__all__ = ["render_curves"]


def render_curves(
    curves: Curves,
    format: str = "table",
    *,
    at_latency: Sequence[Sequence[At]] = (),
    at_quality: Sequence[Sequence[At]] = (),
    areas: Sequence[Area] = (),
    correction: str = "holm",
    width: int | None = None,
    colour: bool = False,
) -> str:
    """Curves, what they have at fixed latencies and qualities, and the areas between them."""
    fronts = curves.front()
    x, y = (curves.latency, curves.unit), (curves.quality, curves.quality_unit)
    blocks = [_points(curves, fronts)]
    if at_latency or at_quality:
        head = [f"{heading(*y)} at {curves.latency!r} {_amount(some[0].at, curves.unit)}" for some in at_latency]
        head += [f"{heading(*x)} at {curves.quality!r} {_amount(some[0].at, y[1])}" for some in at_quality]
        columns = [(some, y[1]) for some in at_latency] + [(some, x[1]) for some in at_quality]
        rows = [[curve.system, *(with_ends(some[i], unit) for some, unit in columns)] for i, curve in enumerate(curves)]
        blocks.append(Block(["system", *head], rows))
    if areas:
        rows = [
            [
                f"{area.b} − {area.a}",
                with_ends(Axis(area.difference, area.low, area.high), y[1]),
                _range(area.start, area.end, curves.unit),
                p_value(area.p),
                p_value(area.p_adjusted),
            ]
            for area in areas
        ]
        head = ["difference", heading(*y), f"over {curves.latency!r} {UNITS[curves.unit]}".rstrip(), "p", "p adjusted"]
        blocks.append(Block(head, rows))
    notes = [*_shares(fronts), *_reasons(at_latency, *x), *_reasons(at_quality, *y)]
    notes += [f"{curves.draws.too_few} for intervals"] if curves.draws is not None and curves.draws.too_few else []
    notes += [f"{area.b} − {area.a}: {area.reason}" for area in areas if area.reason not in ("", NO_LOG)]
    notes += without_logs(curves, ", so without intervals")
    notes += [f"difference: mean over the latencies that both have; p: {how_tested(curves.draws, correction)}"] * bool(
        [area for area in areas if not math.isnan(area.p)]
    )
    records = {
        "points": list(_point_records(curves, fronts)),
        "at_latency": [_at_record(a, "latency", "quality") for some in at_latency for a in some],
        "at_quality": [_at_record(a, "quality", "latency") for some in at_quality for a in some],
        "areas": [_area_record(area, curves) for area in areas],
    }
    scores = [point.scores for curve in curves for point in curve.points if point.scores is not None]
    return rendered(
        format, records, blocks, notes, scores, how_made(curves.draws, correction), width=width, colour=colour
    )


# ---- cells ---------------------------------------------------------------------------------------------------------


def _points(curves: Curves, fronts: Iterable[OnFront]) -> Block:
    on = iter(fronts)
    rows = []
    for curve in curves:
        for point in curve.points:
            x = with_ends(point.latency, curves.unit)
            y = NOTHING if point.quality is None else with_ends(point.quality, curves.quality_unit)
            rows.append([curve.system, point.setting, x, y, _front(next(on))])
    head = [heading(curves.latency, curves.unit), heading(curves.quality, curves.quality_unit)]
    return Block(["system", "setting", *head, "front"], rows, 2, 2)


def _front(one: OnFront) -> str:
    mark = "●" if one.on else ""
    return mark if one.share is None else f"{mark} {share_of(one.share)}".strip()


def _shares(fronts: Iterable[OnFront]) -> list[str]:
    drawn = any(one.share is not None for one in fronts)
    more = "; in which share of the resamples it is so" if drawn else ""
    return [f"front: ● no other setting is as early and as good, and earlier or better{more}"]


def _amount(value: float, unit: str) -> str:
    return f"{value / scale(unit):g} {UNITS[unit]}".rstrip()


def _range(start: float, end: float, unit: str) -> str:
    if math.isnan(start):
        return NOTHING
    return shown(start, unit) if start == end else f"{shown(start, unit)} to {shown(end, unit)}"


def _reasons(several: Sequence[Sequence[At]], metric: Metric, unit: str) -> list[str]:
    return [
        f"{a.system} at {metric!r} {_amount(a.at, unit)}: {a.reason}"
        for some in several
        for a in some
        if a.reason not in ("", NO_LOG)
    ]


# ---- records -------------------------------------------------------------------------------------------------------


def _point_records(curves: Curves, fronts: Sequence[OnFront]) -> Iterator[Record]:
    on = iter(fronts)
    for curve in curves:
        for point in curve.points:
            one = next(on)
            yield {
                "system": curve.system,
                "setting": point.setting,
                "latency": axis_record(point.latency),
                "quality": axis_record(point.quality),
                "front": one.on,
                "front_share": one.share,
                "latency_metric": repr(curves.latency),
                "latency_unit": curves.unit,
                "quality_metric": repr(curves.quality),
                "latency_signature": signature_of(point.scores, curves.latency),
                "quality_signature": signature_of(point.scores, curves.quality),
            }


def _at_record(a: At, given: str, found: str) -> Record:
    ends = {found: finite(a.value), "low": finite(a.low), "high": finite(a.high)}
    return {"system": a.system, f"at_{given}": a.at, **ends, "reason": a.reason or None}


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
