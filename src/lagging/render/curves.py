# SPDX-License-Identifier: Apache-2.0
"""Curves, ranks and lines of several systems → text, JSON, TSV, Markdown, LaTeX. No maths."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lagging.curves import Area, At, Axis, Curves, OnFront
from lagging.derived import Derived, Draws
from lagging.disagreement import Lines, Ranking
from lagging.errors import UsageError, counted, did_you_mean
from lagging.metrics import Metric
from lagging.render import RENDERERS
from lagging.render.blocks import Block, blocks_as_latex, blocks_as_markdown, blocks_as_text
from lagging.render.cells import ARROWS, NOTHING, UNITS, heading, shown, signatures, undefined
from lagging.render.documents import SCHEMA, finite, record, tsv_field
from lagging.scoring import Scores

__all__ = ["render_curves", "render_lines", "render_ranking"]

Record = dict[str, Any]


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
    x, y = (curves.latency, curves.unit), (curves.quality, curves.quality.unit)
    blocks = [_points(curves, fronts)]
    if at_latency or at_quality:
        head = [f"{_named(*y)} at {curves.latency!r} {_amount(some[0].at, curves.unit)}" for some in at_latency]
        head += [f"{_named(*x)} at {curves.quality!r} {_amount(some[0].at, y[1])}" for some in at_quality]
        columns = [(some, y[1]) for some in at_latency] + [(some, x[1]) for some in at_quality]
        rows = [
            [curve.system, *(_with_ends(some[i], unit) for some, unit in columns)] for i, curve in enumerate(curves)
        ]
        blocks.append(Block("", ["system", *head], rows))
    if areas:
        rows = [
            [
                f"{area.b} − {area.a}",
                _ends(area.difference, area.low, area.high, y[1]),
                _range(area.start, area.end, curves.unit),
                _p(area.p),
                _p(area.p_adjusted),
            ]
            for area in areas
        ]
        head = ["difference", heading(*y), f"over {curves.latency!r} {UNITS[curves.unit]}".rstrip(), "p", "p adjusted"]
        blocks.append(Block("", head, rows))
    notes = [*_shares(fronts), *_reasons(at_latency, curves.latency), *_reasons(at_quality, curves.quality)]
    notes += [f"{area.b} − {area.a}: {area.reason}" for area in areas if area.reason]
    notes += [f"difference: mean over the latencies that both have; p: {_test(curves.draws, correction)}"] * bool(
        [area for area in areas if not math.isnan(area.p)]
    )
    records = {
        "points": list(_point_records(curves, fronts)),
        "at_latency": [_at_record(a, "latency", "quality") for some in at_latency for a in some],
        "at_quality": [_at_record(a, "quality", "latency") for some in at_quality for a in some],
        "areas": [_area_record(area, curves) for area in areas],
    }
    scores = [point.scores for curve in curves for point in curve.points if point.scores is not None]
    return _render(format, records, blocks, notes, scores, curves.draws, width=width, colour=colour)


def render_ranking(ranking: Ranking, format: str = "table", *, width: int | None = None, colour: bool = False) -> str:
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
    head = [heading(m, unit) for m, unit in zip(ranking.metrics, ranking.units, strict=True)]
    blocks = [Block("", ["system", *head], rows)]
    if ranking.flips:
        flips = [[f"{f.a} / {f.b}", _metrics(f.before), _metrics(f.after), _share(f.share)] for f in ranking.flips]
        blocks.append(Block("", ["order depends", "first is better by", "second is better by", "resamples"], flips, 3))
    taus = [[f"{t.a!r}, {t.b!r}", _ends(t.value, t.low, t.high, "ratio")] for t in ranking.taus]
    blocks.append(Block("", ["metrics", "Kendall's τ"], taus))
    notes = ["rank (value); *: not the rank that the first metric gives"]
    notes += [f"{t.a!r}, {t.b!r}: {t.reason}" for t in ranking.taus if t.reason]
    known = {one.system: one for one in ranking.scores}
    records: dict[str, list[Record]] = {
        "ranks": [
            {
                "system": system,
                "metric": repr(m),
                "rank": int(ranking.ranks[s, i]) or None,
                "score": finite(float(ranking.values[s, i])),
                "unit": ranking.units[i],
                "signature": _signature(known.get(system), m),
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
    return _render(format, records, blocks, notes, ranking.scores, ranking.draws, width=width, colour=colour)


def render_lines(
    lines: Lines,
    format: str = "table",
    *,
    correction: str = "holm",
    width: int | None = None,
    colour: bool = False,
) -> str:
    """One metric over another: the line of each system, and who is steeper."""
    unit = lines.curves.unit
    rows = [
        [
            line.system,
            counted(len(line.curve.points), "setting").split()[0],
            _derived(line.slope, "ratio"),
            _derived(line.start, unit if lines.y.unit == lines.x.unit else lines.y.unit),
            line.by,
        ]
        for line in lines.lines
    ]
    start = f"{lines.y!r} where {lines.x!r} is 0, {UNITS[unit]}".rstrip(", ")
    blocks = [Block("", ["system", "settings", f"slope of {lines.y!r} over {lines.x!r}", start, "by"], rows)]
    if lines.steeper:
        steeper = [
            [f"{s.b} − {s.a}", _derived(s.difference, "ratio"), _p(s.difference.p), _p(s.p_adjusted)]
            for s in lines.steeper
        ]
        blocks.append(Block("", ["steeper by", "slope", "p", "p adjusted"], steeper))
    notes = [f"{line.system}: {line.slope.reason}" for line in lines.lines if line.slope.reason]
    notes += [f"p: {_test(lines.curves.draws, correction)}"] * bool(lines.steeper)
    notes += ["by setting: how straight the settings lie, not how sure each of them is"] * any(
        line.by == "setting" and line.slope.low is not None for line in lines.lines
    )
    records: dict[str, list[Record]] = {
        "points": [
            {
                "system": line.system,
                "setting": point.setting,
                repr(lines.x): _axis(point.latency),
                repr(lines.y): _axis(point.quality),
                "unit": unit,
                "x_signature": _signature(point.scores, lines.x),
                "y_signature": _signature(point.scores, lines.y),
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
                "by": line.by,
            }
            for line in lines.lines
        ],
        "steeper": [
            {"a": s.a, "b": s.b, **_derived_record(s.difference), "p_adjusted": finite(s.p_adjusted)}
            for s in lines.steeper
        ],
    }
    scores = [point.scores for line in lines.lines for point in line.curve.points if point.scores is not None]
    return _render(format, records, blocks, notes, scores, lines.curves.draws, width=width, colour=colour)


# ---- all of them ---------------------------------------------------------------------------------------------------


def _render(
    format: str,
    records: dict[str, list[Record]],
    blocks: Sequence[Block],
    notes: Sequence[str],
    scores: Sequence[Scores],
    draws: Draws | None,
    *,
    width: int | None,
    colour: bool,
) -> str:
    if format not in RENDERERS:
        raise UsageError(f"no output format is called {format!r}.{did_you_mean(format, RENDERERS)}")
    if format == "json":
        made = [record(one.system, score) for one in scores for score in one]
        return json.dumps({"schema": SCHEMA, "scores": made, **records}, ensure_ascii=False, indent=1)
    if format == "tsv":
        return _as_tsv(records)
    said = [*notes, *undefined(scores)]
    below = signatures(scores)
    if format == "markdown":
        return blocks_as_markdown(blocks, said, below)
    if format == "latex":
        return blocks_as_latex(blocks, said, below)
    return blocks_as_text(blocks, said, below, width=width, colour=colour)


def _as_tsv(records: dict[str, list[Record]]) -> str:
    """A table per kind of record, with its name in the first column; an empty line between them."""
    parts = []
    for kind, some in records.items():
        flat = [dict(_flat(one)) for one in some]
        names = list(dict.fromkeys(name for one in flat for name in one))
        lines = ["\t".join([kind, *names])] + [
            "\t".join([kind, *(tsv_field(one.get(n)) for n in names)]) for one in flat
        ]
        parts += ["\n".join(lines)] if some else []
    return "\n\n".join(parts)


def _flat(one: Record, before: str = "") -> Iterator[tuple[str, object]]:
    for name, value in one.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}_")
        else:
            yield f"{before}{name}".removesuffix("_value"), ", ".join(value) if isinstance(value, list) else value


# ---- cells ---------------------------------------------------------------------------------------------------------


def _points(curves: Curves, fronts: Iterable[OnFront]) -> Block:
    on = iter(fronts)
    rows = []
    for curve in curves:
        for place, point in enumerate(curve.points):
            x = _ends(point.latency.value, point.latency.low, point.latency.high, curves.unit)
            y = NOTHING
            if point.quality is not None:
                y = _ends(point.quality.value, point.quality.low, point.quality.high, curves.quality.unit)
            one = next(on)
            rows.append([curve.system if place == 0 else "", point.setting, x, y, _front(one)])
    head = [heading(curves.latency, curves.unit), heading(curves.quality, curves.quality.unit)]
    return Block("", ["system", "setting", *head, "front"], rows, 2)


def _front(one: OnFront) -> str:
    mark = "●" if one.on else ""
    return mark if one.share is None else f"{mark} {_share(one.share)}".strip()


def _share(share: float | None) -> str:
    if share is None:
        return NOTHING
    return "< 1 %" if 0 < share < 0.01 else "> 99 %" if 0.99 < share < 1 else f"{100 * share:.0f} %"


def _shares(fronts: Iterable[OnFront]) -> list[str]:
    drawn = any(one.share is not None for one in fronts)
    more = "; in which share of the resamples it is so" if drawn else ""
    return [f"front: ● no other setting is as early and as good, and earlier or better{more}"]


def _ends(value: float, low: float | None, high: float | None, unit: str) -> str:
    text = shown(value, unit)
    return text if low is None else f"{text} [{shown(low, unit)}, {shown(high, unit)}]"


def _with_ends(at: At, unit: str) -> str:
    return _ends(at.value, at.low, at.high, unit)


def _derived(one: Derived, unit: str) -> str:
    return _ends(one.value, one.low, one.high, unit)


def _named(metric: Metric, unit: str) -> str:
    return " ".join(filter(None, (repr(metric), ARROWS[metric.higher_is_better], UNITS[unit])))


def _amount(value: float, unit: str) -> str:
    return f"{value / 1000 if unit.startswith('ms') else value:g} {UNITS[unit]}".rstrip()


def _range(start: float, end: float, unit: str) -> str:
    if math.isnan(start):
        return NOTHING
    return shown(start, unit) if start == end else f"{shown(start, unit)} to {shown(end, unit)}"


def _p(p: float) -> str:
    return NOTHING if math.isnan(p) else f"{p:.4f}" if p >= 0.0001 else "< 0.0001"


def _rank(rank: int, value: float, unit: str, moved: bool) -> str:
    return NOTHING if rank == 0 else f"{rank}{'*' if moved else ' '} ({shown(value, unit)})"


def _metrics(some: Iterable[Metric]) -> str:
    return ", ".join(map(repr, some))


def _reasons(several: Sequence[Sequence[At]], metric: Metric) -> list[str]:
    return [f"{a.system} at {metric!r} {a.at:g}: {a.reason}" for some in several for a in some if a.reason]


def _test(draws: Draws | None, correction: str) -> str:
    if draws is None:
        return ""
    made = draws.made
    kind = "wild bootstrap" if made.method == "wild" else "bootstrap"
    named = {"holm": "Holm", "bh": "Benjamini-Hochberg", "none": "not adjusted"}[correction]
    units = counted(made.clusters, made.by)
    return f"paired {kind} over {units}, {made.resamples} resamples, seed {made.seed}, {named}"


# ---- records -------------------------------------------------------------------------------------------------------


def _axis(one: Axis | None) -> Record | None:
    return None if one is None else {"value": finite(one.value), "low": finite(one.low), "high": finite(one.high)}


def _signature(scores: Scores | None, metric: Metric) -> str | None:
    return None if scores is None else str(scores[metric].signature)


def _point_records(curves: Curves, fronts: Sequence[OnFront]) -> Iterator[Record]:
    on = iter(fronts)
    for curve in curves:
        for point in curve.points:
            one = next(on)
            yield {
                "system": curve.system,
                "setting": point.setting,
                "latency": _axis(point.latency),
                "quality": _axis(point.quality),
                "front": one.on,
                "front_share": one.share,
                "latency_metric": repr(curves.latency),
                "latency_unit": curves.unit,
                "quality_metric": repr(curves.quality),
                "latency_signature": _signature(point.scores, curves.latency),
                "quality_signature": _signature(point.scores, curves.quality),
            }


def _at_record(a: At, given: str, found: str) -> Record:
    ends = {f"{found}": finite(a.value), "low": finite(a.low), "high": finite(a.high)}
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


def _derived_record(one: Derived) -> Record:
    return {
        "value": finite(one.value),
        "low": finite(one.low),
        "high": finite(one.high),
        "p": finite(one.p),
        "reason": one.reason or None,
    }
