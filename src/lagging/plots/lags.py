# SPDX-License-Identifier: Apache-2.0
"""How the lags of a system are distributed, and how they go on over a recording."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lagging.errors import MetricError, UsageError, counted
from lagging.metrics import Metric
from lagging.metrics import metric as parse
from lagging.metrics.tail import PER, recordings
from lagging.plots import labels, look
from lagging.ragged import Floats, Ragged
from lagging.run import Run
from lagging.schedule import Schedules
from lagging.scoring import Score, Scores, score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["ecdf", "lag_over_time"]

FAR = 2.0
"""The axis of lags ends at that many times the largest percentile marked; what lies beyond is counted above it."""
NAMED_AT = (75, 60, 85, 40, 25, 93, 15)
"""Percentiles beside which a line may be named, best first."""
MINUTES = 180_000.0
"""Recordings of more than that many ms are measured in minutes."""


def ecdf(
    systems: Mapping[str, Run | Scores | Score],
    ax: Axes | None = None,
    *,
    metric: str | Metric = "LagPercentile",
    marks: Sequence[float] = (50, 90, 99),
) -> Axes:
    """Which share of the target tokens, or of the segments, lags by at most how much.

    Args:
        systems: Runs, or their scores, by name.
        ax: where to draw; new axes if not given.
        metric: one that pools tokens, such as `LagPercentile(clock=elapsed)`, for the lags of tokens; any other for
            the values of segments.
        marks: percentiles to mark on every line.

    Returns:
        The axes. Marks of tokens are at the values that `LagPercentile` has.

    Raises:
        UsageError: the systems differ in unit, or none has a value.

    Example:
        >>> run = Run.from_delays([[4, 4, 4, 4, 5]], source_length=[5])
        >>> ax = ecdf({"antagonist": run}, marks=(50,))
        >>> ax.get_xlabel(), ax.get_ylabel(), ax.lines[1].get_xydata().tolist()
        ('lag of a target token ↓ (source tokens, ideal clock)', 'share of target tokens', [[2.0, 0.5]])
    """
    wanted = parse(metric)
    found = {name: _score(one, wanted) for name, one in systems.items()}
    unit: str = look.agreed("units", (one.unit for one in found.values()))
    values = [_values(one) / look.scale(unit) for one in found.values()]
    if not any(map(len, values)):
        raise UsageError(f"no system has a value of {wanted!r}")
    names = look.short(list(found))
    ax = look.canvas(ax)
    lettering = look.Lettering(names)
    named, ends = [], []
    for i, (name, some) in enumerate(zip(names, values, strict=True)):
        if not len(some):
            continue
        style = look.look(i)
        line = ax.ecdf(some, compress=True, color=style.colour, linestyle=style.dash, linewidth=1.5)
        at = np.percentile(some, marks)
        (marked,) = ax.plot(at, np.asarray(marks) / 100, **style.line | {"linestyle": "none"})
        ends.append(float(at.max(initial=np.median(some))))
        anchors = [(float(np.percentile(some, p)), p / 100) for p in NAMED_AT]
        named.append((labels.Labelled(name, line, anchors, -float(np.median(some))), style, marked))
    tokens = wanted.pool is not None
    noun = "target token" if tokens else "segment"
    ax.set_xlabel(look.title(wanted, unit, _of_a_token(wanted) if tokens else None))
    ax.set_ylabel(f"share of {noun}s")
    ax.set_ylim(0, 1.02)
    remark = _cut(ax, values, max(ends), unit, noun)
    for p in marks:
        ax.axhline(p / 100, color=look.GREY, linewidth=0.7, linestyle=(0, (1, 2)), zorder=1)
        ax.annotate(f"p{p:g}", (1, p / 100), (3, 0), "axes fraction", "offset points", va="center", fontsize=look.SMALL)
    lost = [f"{n}: no value in {counted(int(s.undefined), 'segment')}" for n, s in found.items() if s.undefined]
    look.note(ax, "; ".join(lost), remark)
    look.sign(ax, (s.signature if tokens else s.segment_signature for s in found.values()))
    labels.label(ax, [one for one, _, _ in named], lettering, [marked for _, _, marked in named])
    return ax


def _score(one: Run | Scores | Score, wanted: Metric) -> Score:
    if isinstance(one, Score):
        return one
    return (score(one, [wanted]) if isinstance(one, Run) else one)[wanted]


def _values(one: Score) -> Floats:
    """Of all tokens, where the metric pools tokens; else of all segments that have one."""
    if isinstance(one.statistics, Ragged):
        return one.statistics.values
    return one.segments[~np.isnan(one.segments)]


def _of_a_token(m: Metric) -> str:
    """What a metric pools, which does not depend on its percentile."""
    own = ", ".join(f"{n}={v}" for n, v in m.values if n not in (m.quantile, "clock"))
    return f"{'lag' if m.unit == 'time' else m.name} of a target token" + (f" ({own})" if own else "")


def _cut(ax: Axes, values: Sequence[Floats], end: float, unit: str, noun: str) -> str:
    """End the axis before a tail that would press everything else together, and say what is beyond."""
    low, top = min(v.min() for v in values if len(v)), max(v.max() for v in values if len(v))
    if top - low <= FAR * (end - low) or end <= low:
        return ""
    ax.set_xlim(ax.get_xlim()[0], end + 0.25 * (end - low))
    beyond = sum(int((v > ax.get_xlim()[1]).sum()) for v in values)
    return f"{counted(beyond, noun)} beyond the axis, up to {look.amount(top * look.scale(unit), unit)}"


# ---- over a recording -----------------------------------------------------------------------------------------


def lag_over_time(
    systems: Mapping[str, Run],
    ax: Axes | None = None,
    *,
    metric: str | Metric = "AL_y",
    drift: str | Metric | None = "LagDrift",
) -> Axes:
    """The lag of each segment over the time of its recording, and by how much it grows.

    A dot is a segment, in the middle of what it was due in. Several recordings lie over each other, each from its own
    beginning. The straight line has the slope of `LagDrift`, and goes through the mean of the dots, weighted by tokens.

    Args:
        systems: Runs of segments that were cut from recordings, by name.
        ax: where to draw; new axes if not given.
        metric: the value of a segment. AL_y is the mean of the lags that `LagDrift` looks at.
        drift: the metric whose slope is drawn, with the clock and the length of `metric` unless it has its own; None
            for no line.

    Returns:
        The axes.

    Raises:
        MetricError: it is not known where in its recording a segment lies.

    Example:
        >>> run = Run.from_delays([[1000, 2000], [1500, 2500], [2000, 3000]], source_length=[2000] * 3, unit="ms",
        ...                       offset=[0, 60000, 120000], seg="given")
        >>> ax = lag_over_time({"slow": run})
        >>> [text.get_text() for text in ax.texts], ax.get_ylabel()
        (['slow, +0.50 s/min'], 'AL_y ↓ (s, ideal clock)')
    """
    wanted = parse(metric)
    sloped = None if drift is None else _alike(parse(drift), wanted)
    found = {name: score(run, [wanted, *([sloped] if sloped else [])]) for name, run in systems.items()}
    unit: str = look.agreed("units", (one[wanted].unit for one in found.values()))
    names = look.short(list(found))
    places = {name: _middle(run, wanted, name) for name, run in systems.items()}
    span = max((float(np.nanmax(at, initial=0.0)) for at, _ in places.values()), default=0.0)
    per, told = (60_000.0, "min") if unit == "ms" and span > MINUTES else (look.scale(unit), look.unit(unit))
    ax = look.canvas(ax, 7.0, 3.6)
    named: list[labels.Labelled] = []
    for i, (name, shown) in enumerate(zip(found, names, strict=True)):
        style, (at, weight), scores = look.look(i), places[name], found[name]
        values = scores[wanted].segments / look.scale(unit)
        some = np.isfinite(values) & np.isfinite(at)
        if not some.any():
            continue
        x, y = at[some] / per, values[some]
        dots = {"markersize": 3.5, "alpha": 0.45, "linestyle": "none", "markeredgewidth": 0}
        (line,) = ax.plot(x, y, **style.line | dots)
        text = shown
        if sloped is not None and math.isfinite(scores[sloped].value):
            line, text = _straight(ax, x, y, weight[some], scores[sloped], per, unit, style, shown)
        ends = [(float(v), float(w)) for v, w in np.asarray(line.get_xydata())]
        named.append(labels.Labelled(text, line, [ends[-1], ends[0]], ends[-1][1]))
    if not named:
        raise UsageError(f"no segment has a value of {wanted!r}")
    ax.set_xlabel(f"time in the recording ({told})")
    ax.set_ylabel(look.title(wanted, unit))
    lost = [f"{n}: no value in {counted(int(s[wanted].undefined), 'segment')}" for n, s in found.items()]
    look.note(ax, "; ".join(text for text, s in zip(lost, found.values(), strict=True) if s[wanted].undefined))
    look.sign(
        ax, (one.segment_signature if one.metric == wanted else one.signature for s in found.values() for one in s)
    )
    labels.label(ax, named, look.Lettering([one.name for one in named]))
    return ax


def _alike(m: Metric, wanted: Metric) -> Metric:
    """A metric with the clock and the length of another, unless it has its own."""
    shared = [n for n in ("clock", "length") if m.has(n) and wanted.has(n) and wanted.is_set(n) and not m.is_set(n)]
    return m(**{n: wanted.get(n) for n in shared}) if shared else m


def _middle(run: Run, wanted: Metric, name: str) -> tuple[Floats, Floats]:
    """When in its recording the tokens of each segment were due, on average, and how many they are."""
    if run.seg == "none":
        raise MetricError(
            f"{name}: its segments were not cut from recordings, so they have no place in one\n"
            "  fix: cut the log of the recordings by lagging.longform.resegment."
        )
    schedule = Schedules(run).of(wanted)
    n = schedule.g.lengths.astype(np.float64)
    some = n > 0
    recording, begin = recordings(schedule, some)
    if run.offset is None or np.isnan(run.offset[some]).any():  # placed by the end: the first one begins at 0
        first = np.full(recording.max(initial=0) + 1, np.inf)
        np.minimum.at(first, recording[some], begin[some])
        begin = begin - first[recording]
    return np.where(some, begin + schedule.x * (n - 1) / (2 * np.maximum(n, 1)), np.nan), n


def _straight(
    ax: Axes, x: Floats, y: Floats, weight: Floats, drift: Score, per: float, unit: str, style: look.Look, name: str
) -> tuple[Line2D, str]:
    """The line of a drift, and what to call it."""
    mean_x, mean_y = np.average(x, weights=weight), np.average(y, weights=weight)
    slope = drift.value / look.scale(drift.unit) * per / PER[unit]
    ends = np.array([x.min(), x.max()])
    (line,) = ax.plot(ends, mean_y + slope * (ends - mean_x), color=style.colour, linestyle=style.dash, linewidth=1.8)
    sign = "+" if drift.value >= 0 else ""
    return line, f"{name}, {sign}{look.amount(drift.value, drift.unit)}"
