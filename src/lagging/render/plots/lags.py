# SPDX-License-Identifier: Apache-2.0
"""How the lags of a system are distributed, and how they go on over a recording."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lagging.data.ragged import Floats, Ragged
from lagging.data.run import Run
from lagging.errors import MetricError, UsageError, counted
from lagging.metrics import Metric
from lagging.metrics import metric as parse
from lagging.metrics.schedule import Schedules
from lagging.metrics.tail import DRIFT_SPAN
from lagging.render.analysis import start_times
from lagging.render.plots import labels, theme
from lagging.scoring.log import score
from lagging.scoring.scores import Score, Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["ecdf", "lag_over_time"]

FAR = 2.0
"""A tail that is longer than that many times all the rest is not drawn, but counted above the axes."""
NAMED_AT = (75, 60, 85, 40, 25, 93, 15)
"""Percentiles beside which a line may be named, best first."""
MANY = 5
"""From that many systems on, dots are faint."""
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
    theme.named(systems)
    wanted = parse(metric)
    found = {name: _score(one, wanted) for name, one in systems.items()}
    unit: str = theme.agreed("units", (one.unit for one in found.values()))
    values = [_values(one) / theme.scale(unit) for one in found.values()]
    if not any(map(len, values)):
        raise UsageError(f"no system has a value of {wanted!r}")
    names = theme.short(list(found))
    ax = theme.canvas(ax)
    lettering = theme.Lettering(names)
    named = []
    for i, (name, some) in enumerate(zip(names, values, strict=True)):
        if not len(some):
            continue
        style = theme.look(i)
        (line,) = ax.plot(*_steps(some), color=style.colour, linestyle=style.dash, linewidth=1.5)
        (marked,) = ax.plot(np.percentile(some, marks), np.asarray(marks) / 100, **style.line | {"linestyle": "none"})
        anchors = [(float(np.percentile(some, p)), p / 100) for p in NAMED_AT]
        named.append(labels.Labelled(name, (line, marked), anchors, -float(np.median(some))))
    tokens = wanted.pool is not None
    noun = "target token" if tokens else "segment"
    ax.set_xlabel(theme.title(wanted, unit, _of_a_token(wanted) if tokens else None))
    ax.set_ylabel(f"share of {noun}s")
    ax.set_ylim(0, 1.02)
    remark = _cut(ax, [some for some in values if len(some)], max([*marks, 50]), unit, noun)
    for p in marks:
        ax.axhline(p / 100, color=theme.GREY, linewidth=0.7, linestyle=(0, (1, 2)), zorder=1)
        ax.annotate(
            f"p{p:g}",
            (0, p / 100),
            (3, 0.5),
            ax.get_yaxis_transform(),
            "offset points",
            va="top" if p > 95 else "bottom",
            fontsize=theme.SMALL - 1,
            color=theme.GREY,
        )
    lost = [f"{n}: no value in {counted(int(s.undefined), 'segment')}" for n, s in found.items() if s.undefined]
    theme.note(ax, "; ".join(lost), remark)
    theme.sign(ax, (s.signature if tokens else s.segment_signature for s in found.values()))
    labels.label(ax, named, lettering)
    return ax


def _steps(values: Floats) -> tuple[Floats, Floats]:
    """The corners of the distribution. `Axes.ecdf(compress=True)` counts equal values once (matplotlib 3.11)."""
    at, count = np.unique(values, return_counts=True)
    share = np.concatenate([[0.0], np.cumsum(count) / len(values)])
    return np.repeat(at, 2), np.repeat(share, 2)[1:-1]


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


def _cut(ax: Axes, values: Sequence[Floats], highest: float, unit: str, noun: str) -> str:
    """End the axis before a tail that would press everything else together, and say what is beyond."""
    low = min(float(np.percentile(some, 100 - highest)) for some in values)
    high = max(float(np.percentile(some, highest)) for some in values)
    least, most = min(float(some.min()) for some in values), max(float(some.max()) for some in values)
    if high <= low or (most - high <= FAR * (high - low) and low - least <= FAR * (high - low)):
        return ""
    room = 0.25 * (high - low)
    ax.set_xlim(max(least - room / 4, low - room), min(most + room / 4, high + room))
    left, right = ax.get_xlim()
    beyond = sum(int(((some < left) | (some > right)).sum()) for some in values)
    ends = " to ".join(theme.amount(end * theme.scale(unit), unit) for end in (least, most))
    return f"{counted(beyond, noun)} beyond the axis, of {ends}"


# ---- over a recording -----------------------------------------------------------------------------------------


def lag_over_time(
    systems: Mapping[str, Run],
    ax: Axes | None = None,
    *,
    metric: str | Metric = "AL_y",
    drift: str | Metric | None = "LagDrift",
) -> Axes:
    r"""The lag of each segment over the time of its recording, and by how much it grows.

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
        (['slow\n+0.50 s/min'], 'AL_y ↓ (s, ideal clock)')
    """
    theme.named(systems)
    wanted = parse(metric)
    sloped = None if drift is None else _alike(parse(drift), wanted)
    found = {name: score(run, [wanted, *([sloped] if sloped else [])]) for name, run in systems.items()}
    unit: str = theme.agreed("units", (one[wanted].unit for one in found.values()))
    names = theme.short(list(found))
    places = {name: _middle(run, wanted, name) for name, run in systems.items()}
    span = max((float(np.nanmax(at, initial=0.0)) for at, _ in places.values()), default=0.0)
    per, told = (60_000.0, "min") if unit == "ms" and span > MINUTES else (theme.scale(unit), theme.unit(unit))
    ax = theme.canvas(ax, 7.0, 3.6)
    named: list[labels.Labelled] = []
    for i, (name, shown) in enumerate(zip(found, names, strict=True)):
        style, (at, weight), scores = theme.look(i), places[name], found[name]
        values = scores[wanted].segments / theme.scale(unit)
        some = np.isfinite(values) & np.isfinite(at)
        if not some.any():
            continue
        x, y = at[some] / per, values[some]
        dots = {"markersize": 3.5, "alpha": 0.45 if len(found) < MANY else 0.2, "linestyle": "none"}
        dotted, text = ax.plot(x, y, **style.line | dots | {"markeredgewidth": 0}), shown
        straight: list[Line2D] = []
        if sloped is not None and math.isfinite(scores[sloped].value):
            straight, text = _straight(ax, x, y, weight[some], scores[sloped], per, unit, style, shown)
        lines = straight or dotted  # a name may lie over dots, not over a line
        ends = [(float(v), float(w)) for v, w in np.asarray(lines[0].get_xydata())]
        named.append(labels.Labelled(text, tuple(lines), labels.along(ends), ends[-1][1]))
    if not named:
        raise UsageError(f"no segment has a value of {wanted!r}")
    ax.set_xlabel(f"time in {_each(systems.values())} ({told})")
    ax.set_ylabel(theme.title(wanted, unit))
    lost = [f"{n}: no value in {counted(int(s[wanted].undefined), 'segment')}" for n, s in found.items()]
    theme.note(ax, "; ".join(text for text, s in zip(lost, found.values(), strict=True) if s[wanted].undefined))
    theme.sign(
        ax, (one.segment_signature if one.metric == wanted else one.signature for s in found.values() for one in s)
    )
    labels.label(ax, named, theme.Lettering([one.name for one in named]))
    return ax


def _each(runs: Iterable[Run]) -> str:
    """`the recording`, or how many lie over each other."""
    several = {name for run in runs for name in ([None] if run.document is None else run.document.tolist())}
    return "the recording" if len(several) < 2 else f"each of {len(several)} recordings"


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
    schedule = Schedules(run).for_metric(wanted)
    n = schedule.g.lengths.astype(np.float64)
    written = n > 0
    # where segments are placed by the end of the recording, the first of them begins at 0
    start = start_times(schedule, written, from_first=run.offset is None or bool(np.isnan(run.offset[written]).any()))
    return np.where(written, start + schedule.x * (n - 1) / (2 * np.maximum(n, 1)), np.nan), n


def _straight(
    ax: Axes, x: Floats, y: Floats, weight: Floats, drift: Score, per: float, unit: str, style: theme.Look, name: str
) -> tuple[list[Line2D], str]:
    """The line of a drift, and what to call it."""
    mean_x, mean_y = np.average(x, weights=weight), np.average(y, weights=weight)
    slope = drift.value / theme.scale(drift.unit) * per / DRIFT_SPAN[unit]
    ends = np.array([x.min(), x.max()])
    line = ax.plot(ends, mean_y + slope * (ends - mean_x), **style.line)
    sign = "+" if drift.value >= 0 else ""
    return line, f"{name}\n{sign}{theme.amount(drift.value, drift.unit)}"
