# SPDX-License-Identifier: Apache-2.0
"""Distributions of lags, and lags over the time of a recording."""

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

LONGEST_TAIL = 2.0
"""A tail that is longer than this many times all the rest is not drawn, but counted above the axes."""
NAMED_AT = (75, 60, 85, 40, 25, 93, 15)
"""Percentiles beside which a line may be named, best first."""
MANY = 5
"""From this number of systems on, dots are faint."""
MINUTES = 180_000.0
"""Recordings of more than this many ms are measured in minutes."""


def ecdf(
    systems: Mapping[str, Run | Scores | Score],
    ax: Axes | None = None,
    *,
    metric: str | Metric = "LagPercentile",
    marks: Sequence[float] = (50, 90, 99),
) -> Axes:
    """The share of target tokens, or of segments, that lag by at most each amount.

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
    theme.check_named(systems)
    m = parse(metric)
    scores = {name: _score(system, m) for name, system in systems.items()}
    unit: str = theme.common_value("units", (score.unit for score in scores.values()))
    columns = [_values(score) / theme.scale(unit) for score in scores.values()]
    if not any(map(len, columns)):
        raise UsageError(f"no system has a value of {m!r}")
    names = theme.shorten_names(list(scores))
    ax = theme.prepare_axes(ax)
    fonts = theme.Fonts(names)
    named = []
    for i, (name, values) in enumerate(zip(names, columns, strict=True)):
        if not len(values):
            continue
        style = theme.system_style(i)
        (line,) = ax.plot(*_steps(values), color=style.colour, linestyle=style.dash, linewidth=1.5)
        (marked,) = ax.plot(np.percentile(values, marks), np.asarray(marks) / 100, **style.line | {"linestyle": "none"})
        anchors = [(float(np.percentile(values, p)), p / 100) for p in NAMED_AT]
        named.append(labels.Labelled(name, (line, marked), anchors, -float(np.median(values))))
    tokens = m.pool is not None
    noun = "target token" if tokens else "segment"
    ax.set_xlabel(theme.axis_title(m, unit, _pooled_quantity(m) if tokens else None))
    ax.set_ylabel(f"share of {noun}s")
    ax.set_ylim(0, 1.02)
    cut = _cut_tail(ax, [values for values in columns if len(values)], max([*marks, 50]), unit, noun)
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
    undefined = [f"{n}: no value in {counted(int(s.undefined), 'segment')}" for n, s in scores.items() if s.undefined]
    theme.add_note(ax, "; ".join(undefined), cut)
    theme.add_signatures(ax, (s.signature if tokens else s.segment_signature for s in scores.values()))
    labels.label_lines(ax, named, fonts)
    return ax


def _steps(values: Floats) -> tuple[Floats, Floats]:
    """The corners of the distribution. `Axes.ecdf(compress=True)` counts equal values once (matplotlib 3.11)."""
    distinct, count = np.unique(values, return_counts=True)
    share = np.concatenate([[0.0], np.cumsum(count) / len(values)])
    return np.repeat(distinct, 2), np.repeat(share, 2)[1:-1]


def _score(system: Run | Scores | Score, m: Metric) -> Score:
    if isinstance(system, Score):
        return system
    return (score(system, [m]) if isinstance(system, Run) else system)[m]


def _values(score: Score) -> Floats:
    """The values of all tokens, where the metric pools tokens; else of all segments that have one."""
    if isinstance(score.statistics, Ragged):
        return score.statistics.values
    return score.segments[~np.isnan(score.segments)]


def _pooled_quantity(m: Metric) -> str:
    """The quantity that a metric pools, which does not depend on its percentile."""
    own = ", ".join(f"{n}={v}" for n, v in m.values if n not in (m.quantile, "clock"))
    return f"{'lag' if m.unit == 'time' else m.name} of a target token" + (f" ({own})" if own else "")


def _cut_tail(ax: Axes, columns: Sequence[Floats], highest: float, unit: str, noun: str) -> str:
    """End the axis before a tail that would press everything else together; a note of what is beyond."""
    low = min(float(np.percentile(values, 100 - highest)) for values in columns)
    high = max(float(np.percentile(values, highest)) for values in columns)
    least, most = min(float(values.min()) for values in columns), max(float(values.max()) for values in columns)
    if high <= low or (most - high <= LONGEST_TAIL * (high - low) and low - least <= LONGEST_TAIL * (high - low)):
        return ""
    room = 0.25 * (high - low)
    ax.set_xlim(max(least - room / 4, low - room), min(most + room / 4, high + room))
    left, right = ax.get_xlim()
    beyond = sum(int(((values < left) | (values > right)).sum()) for values in columns)
    ends = " to ".join(theme.format_amount(end * theme.scale(unit), unit) for end in (least, most))
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
    theme.check_named(systems)
    m = parse(metric)
    slope = None if drift is None else _like(parse(drift), m)
    results = {name: score(run, [m, *([slope] if slope else [])]) for name, run in systems.items()}
    unit: str = theme.common_value("units", (scores[m].unit for scores in results.values()))
    names = theme.shorten_names(list(results))
    middles = {name: _middle_times(run, m, name) for name, run in systems.items()}
    span = max((float(np.nanmax(time, initial=0.0)) for time, _ in middles.values()), default=0.0)
    minutes = unit == "ms" and span > MINUTES
    scale, time_unit = (60_000.0, "min") if minutes else (theme.scale(unit), theme.unit_label(unit))
    ax = theme.prepare_axes(ax, 7.0, 3.6)
    named: list[labels.Labelled] = []
    for i, (name, text) in enumerate(zip(results, names, strict=True)):
        style, (time, weight), scores = theme.system_style(i), middles[name], results[name]
        values = scores[m].segments / theme.scale(unit)
        defined = np.isfinite(values) & np.isfinite(time)
        if not defined.any():
            continue
        x, y = time[defined] / scale, values[defined]
        dots = {"markersize": 3.5, "alpha": 0.45 if len(results) < MANY else 0.2, "linestyle": "none"}
        dotted = ax.plot(x, y, **style.line | dots | {"markeredgewidth": 0})
        straight: list[Line2D] = []
        if slope is not None and math.isfinite(scores[slope].value):
            straight, text = _draw_drift(ax, x, y, weight[defined], scores[slope], scale, unit, style, text)
        lines = straight or dotted  # a name may lie over dots, not over a line
        ends = [(float(v), float(w)) for v, w in np.asarray(lines[0].get_xydata())]
        named.append(labels.Labelled(text, tuple(lines), labels.anchor_points(ends), ends[-1][1]))
    if not named:
        raise UsageError(f"no segment has a value of {m!r}")
    ax.set_xlabel(f"time in {_count_recordings(systems.values())} ({time_unit})")
    ax.set_ylabel(theme.axis_title(m, unit))
    undefined = {name: int(scores[m].undefined) for name, scores in results.items()}
    theme.add_note(ax, "; ".join(f"{name}: no value in {counted(n, 'segment')}" for name, n in undefined.items() if n))
    every = [score for scores in results.values() for score in scores]
    theme.add_signatures(ax, (s.segment_signature if s.metric == m else s.signature for s in every))
    labels.label_lines(ax, named, theme.Fonts([system.name for system in named]))
    return ax


def _count_recordings(runs: Iterable[Run]) -> str:
    """`the recording`, or the number of those that lie over each other."""
    recordings = {name for run in runs for name in ([None] if run.document is None else run.document.tolist())}
    return "the recording" if len(recordings) < 2 else f"each of {len(recordings)} recordings"


def _like(m: Metric, other: Metric) -> Metric:
    """A metric with the clock and the length of another, unless it has its own."""
    shared = [n for n in ("clock", "length") if m.has(n) and other.has(n) and other.is_set(n) and not m.is_set(n)]
    return m(**{n: other.get(n) for n in shared}) if shared else m


def _middle_times(run: Run, m: Metric, name: str) -> tuple[Floats, Floats]:
    """When in its recording the tokens of each segment were due, on average, and their number."""
    if run.seg == "none":
        raise MetricError(
            f"{name}: its segments were not cut from recordings, so they have no place in one\n"
            "  fix: cut the log of the recordings by lagging.longform.resegment."
        )
    schedule = Schedules(run).for_metric(m)
    n = schedule.g.lengths.astype(np.float64)
    written = n > 0
    # where segments are placed by the end of the recording, the first of them begins at 0
    start = start_times(schedule, written, from_first=run.offset is None or bool(np.isnan(run.offset[written]).any()))
    return np.where(written, start + schedule.x * (n - 1) / (2 * np.maximum(n, 1)), np.nan), n


def _draw_drift(
    ax: Axes, x: Floats, y: Floats, weight: Floats, drift: Score, scale: float, unit: str, style: theme.Style, name: str
) -> tuple[list[Line2D], str]:
    """Draw the line of a drift; the line, and its name with the slope."""
    mean_x, mean_y = np.average(x, weights=weight), np.average(y, weights=weight)
    slope = drift.value / theme.scale(drift.unit) * scale / DRIFT_SPAN[unit]
    ends = np.array([x.min(), x.max()])
    line = ax.plot(ends, mean_y + slope * (ends - mean_x), **style.line)
    sign = "+" if drift.value >= 0 else ""
    return line, f"{name}\n{sign}{theme.format_amount(drift.value, drift.unit)}"
