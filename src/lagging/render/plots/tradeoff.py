# SPDX-License-Identifier: Apache-2.0
"""Systems at several settings: quality against latency, and DAL against AL."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lagging.comparison.derivations import Derived
from lagging.comparison.regimes import Regime, regime
from lagging.curves import Axis, Curve, Point
from lagging.curves.slopes import Lines
from lagging.data.ragged import Floats
from lagging.errors import UsageError
from lagging.metrics import Metric, metric
from lagging.render.plots import labels, theme
from lagging.stats.polylines import fit, front

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["al_dal", "curves"]


def curves(
    systems: Iterable[Curve],
    ax: Axes | None = None,
    *,
    pareto: bool = True,
    bands: str | Regime | None = None,
    settings: bool = False,
) -> Axes:
    """Quality against latency, a line per system and a point per setting, with the intervals of both.

    Args:
        systems: the curves, all of the same two metrics and unit.
        ax: where to draw; new axes if not given.
        pareto: whether to draw the best quality that any setting reaches within each latency.
        bands: the shared task whose bands of latency are shown.
        settings: whether to write the settings beside their points.

    Returns:
        The axes.

    Raises:
        UsageError: the curves differ in metric or unit, none has a quality, or the regime judges another metric.

    Example:
        >>> from lagging import metric
        >>> from lagging.curves import Axis, Curve, Point
        >>> points = [Point(f"k={k}", Axis(k), Axis(10 + 3 * k)) for k in (1, 3, 5)]
        >>> ax = curves([Curve("wait-k", tuple(points), metric("AL"), metric("BLEU"), "token")])
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('AL ↓ (source tokens, ideal clock)', 'BLEU ↑')
    """
    drawn = list(systems)
    latency: Metric = theme.common_value("metrics of latency", (c.latency for c in drawn))
    quality: Metric = theme.common_value("metrics of quality", (c.quality for c in drawn))
    unit: str = theme.common_value("units", (c.unit for c in drawn))
    if not any(_is_defined(p) for c in drawn for p in c.points):
        raise UsageError("no setting of any system has both a latency and a quality")
    names = theme.shorten_names([c.system for c in drawn])
    ax = theme.prepare_axes(ax)
    fonts = theme.Fonts([*names, *(p.setting for c in drawn for p in c.points if settings)])
    s = theme.scale(unit)
    lines, bars, named = [], [], []
    for i, curve in enumerate(drawn):
        style = theme.system_style(i)
        points = [(p.latency, p.quality) for p in curve.points if p.quality is not None and _is_defined(p)]
        crosses = [bar for a, q in points for bar in _draw_intervals(ax, a, q, s, style.colour)]
        (line,) = ax.plot([a.value / s for a, _ in points], [q.value for _, q in points], **style.line)
        lines.append(line)
        bars += crosses
        if points:
            ends = [end for bar in crosses for end in _points(bar)]
            at = _points(line)
            named.append(
                labels.Labelled(names[i], (line, *crosses), [*labels.anchor_points(at), *ends], at[-1][1], (line,))
            )
    ax.set_xlabel(theme.axis_title(latency, unit))
    ax.set_ylabel(theme.axis_title(quality, quality.unit))
    steps = _draw_front(ax, lines, latency, quality) if pareto else []
    if bands is not None:
        _draw_bands(ax, bands, latency, unit)
    if min(ax.dataLim.x0, 0.0) < 0:
        ax.axvline(0.0, color=theme.GREY, linewidth=0.8, zorder=1)
    _add_notes(ax, drawn)
    labels.label_lines(ax, named, fonts, steps)
    taken = [labels.line_points(line) for line in (*lines, *bars, *steps)] + labels.text_areas(ax)
    for line, curve in zip(lines, drawn, strict=True):
        texts = [p.setting for p in curve.points if _is_defined(p)] if settings else []
        for text, point in zip(texts, _points(line) if settings else [], strict=True):
            if text:
                labels.add_tag(ax, text, [point], fonts, taken)
    for step in steps:
        corners = _points(step)
        halves = [((a + c) / 2, b) for (a, b), (c, d) in pairwise(corners) if b == d]
        labels.add_tag(ax, "Pareto front", [*halves[::-1], *corners[::-1]], fonts, taken)
    return ax


def _is_defined(p: Point) -> bool:
    return p.quality is not None and math.isfinite(p.latency.value) and math.isfinite(p.quality.value)


def _points(line: Line2D) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in np.asarray(line.get_xydata())]


def _draw_intervals(ax: Axes, a: Axis, q: Axis, s: float, colour: str, up: float = 1.0) -> list[Line2D]:
    """Draw the intervals of a point, as a cross; x is divided by `s`, and y by `up`."""
    x, y = a.value / s, q.value / up
    lines = []
    if a.low is not None and a.high is not None and math.isfinite(a.high - a.low):
        lines += ax.plot([a.low / s, a.high / s], [y, y], color=colour, alpha=0.55, linewidth=1.0, zorder=1.5)
    if q.low is not None and q.high is not None and math.isfinite(q.high - q.low):
        lines += ax.plot([x, x], [q.low / up, q.high / up], color=colour, alpha=0.55, linewidth=1.0, zorder=1.5)
    return lines


def _draw_front(ax: Axes, lines: Sequence[Line2D], latency: Metric, quality: Metric) -> list[Line2D]:
    """Draw the best quality that any setting reaches within each latency, as steps."""
    points = np.array([point for line in lines for point in _points(line)])
    better = (1.0 if latency.higher_is_better is not True else -1.0, -1.0 if quality.higher_is_better is False else 1.0)
    best = points[front(points[:, 0] * better[0], points[:, 1] * better[1])]
    best = best[np.argsort(best[:, 0])]
    if len(best) < 2:
        return []
    x, y = np.repeat(best[:, 0], 2), np.repeat(best[:, 1], 2)
    x, y = (x[1:], y[:-1]) if better[0] > 0 else (x[:-1], y[1:])
    return ax.plot(x, y, color="#c8c8c8", linewidth=3.0, zorder=0.5, solid_joinstyle="miter")


def _draw_bands(ax: Axes, band: str | Regime, latency: Metric, unit: str) -> None:
    """Draw the regimes of a shared task, as bands with their names on top."""
    chosen = regime(band) if isinstance(band, str) else band
    if latency.name != metric(chosen.metric).name or unit != "ms":
        raise UsageError(f"{chosen.name} judges {chosen.metric} in seconds, and these curves are of {latency!r}")
    begin, end = ax.get_xlim()
    for name, limit in chosen.limits:
        x = limit / theme.scale(unit)
        end = max(end, 1.05 * x)
        ax.axvspan(min(begin, 0.0), x, color=theme.INK, alpha=0.05, zorder=0, linewidth=0)
        ax.axvline(x, color=theme.GREY, linewidth=0.8, linestyle=(0, (2, 2)), zorder=0.6)
        ax.annotate(
            f"{name}: up to {x:g} s",
            (x, 1.0),
            (-3, -2),
            xycoords=ax.get_xaxis_transform(),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=theme.SMALL - 1,
            color=theme.GREY,
        )
    ax.set_xlim(begin, end)


# ---- AL against DAL -------------------------------------------------------------------------------------------


def al_dal(families: Lines | Iterable[Curve], ax: Axes | None = None) -> Axes:
    r"""DAL against AL, a straight line per family of systems, as in Figure 2 of Cherry & Foster (2019).

    The steeper the line of a family, the more of its lag AL forgives.

    Args:
        families: the result of `lagging.curves.slopes.lines`, or curves that have a latency on both axes.
        ax: where to draw; new axes if not given.

    Returns:
        The axes; the identity is dashed, and names have the slope of their line (least squares), with its interval
        where there is one.

    Raises:
        UsageError: the families differ in metric or unit, or none has a value.

    Example:
        >>> from lagging import policies
        >>> from lagging.curves.slopes import lines
        >>> lengths = {"source_lengths": [6, 9, 11], "target_lengths": [6, 9, 11]}
        >>> waits = [(f"k={k}", policies.wait_k(k).run(**lengths)) for k in (1, 3, 5)]
        >>> ax = al_dal(lines({"wait-k": waits}, resamples=100).curves)
        >>> [text.get_text() for text in ax.texts], ax.get_ylabel()
        (['wait-k\nslope 1.00', 'DAL = AL'], 'DAL ↓ (source tokens, ideal clock)')
    """
    drawn = [line.curve for line in families.lines] if isinstance(families, Lines) else list(families)
    right: Metric = theme.common_value("metrics to the right", (c.latency for c in drawn))
    up: Metric = theme.common_value("metrics upward", (c.quality for c in drawn))
    unit: str = theme.common_value("units", (c.unit for c in drawn))
    if right.unit != up.unit:
        raise UsageError(
            f"{up!r} is not measured in what {right!r} is, so that there is no line where they are the same"
        )
    if not any(_is_defined(p) for c in drawn for p in c.points):
        raise UsageError(f"no setting has both {right!r} and {up!r}")
    ax = theme.prepare_axes(ax, 6.2, 4.4)
    s = theme.scale(unit)
    lines, named = [], []
    for i, (name, curve) in enumerate(zip(theme.shorten_names([c.system for c in drawn]), drawn, strict=True)):
        style = theme.system_style(i)
        points = [(p.latency, p.quality) for p in curve.points if p.quality is not None and _is_defined(p)]
        x, y = np.array([(a.value, q.value) for a, q in points]).reshape(-1, 2).T
        crosses = [bar for a, q in points for bar in _draw_intervals(ax, a, q, s, style.colour, s)]
        family = ax.plot(x / s, y / s, **style.line | {"linestyle": "none"})
        slope, start = _fit_line(families, i, x, y)
        if math.isfinite(slope.value):
            ends = np.array([x.min(), x.max()])
            family += ax.plot(ends / s, (start + slope.value * ends) / s, **style.line | {"marker": "", "zorder": 1.8})
            name += f"\nslope {_format_slope(slope)}"
        lines += [*family, *crosses]
        if points:
            at = _points(family[0])
            named.append(labels.Labelled(name, (*family, *crosses), labels.anchor_points(at), at[-1][1], tuple(family)))
    ax.set_xlabel(theme.axis_title(right, unit))
    ax.set_ylabel(theme.axis_title(up, unit))
    low, high = _set_equal_ranges(ax)
    same = ax.plot([low, high], [low, high], color=theme.GREY, linestyle=(0, (4, 3)), linewidth=0.9, zorder=1)
    _add_notes(ax, drawn)
    fonts = theme.Fonts([family.name for family in named])
    labels.label_lines(ax, named, fonts, same)
    taken = [labels.line_points(line) for line in (*lines, *same)] + labels.text_areas(ax)
    middle = [low + share * (high - low) for share in (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)]
    labels.add_tag(ax, f"{up!r} = {right!r}", [(at, at) for at in middle], fonts, taken)
    return ax


def _fit_line(families: Lines | Iterable[Curve], i: int, x: Floats, y: Floats) -> tuple[Derived, float]:
    """Slope of a family's line, and its height at 0: as given, or by least squares over its settings."""
    if isinstance(families, Lines):
        return families.lines[i].slope, families.lines[i].start.value
    if len(x) < 2:
        return Derived(math.nan), math.nan
    slope, start = fit(x, y)
    return Derived(float(slope)), float(start)


def _format_slope(slope: Derived) -> str:
    """`1.32 [1.20, 1.45]`."""
    value = theme.format_amount(slope.value, "ratio")
    if slope.low is None or slope.high is None:
        return value
    return f"{value} [{theme.format_amount(slope.low, 'ratio')}, {theme.format_amount(slope.high, 'ratio')}]"


def _add_notes(ax: Axes, drawn: Sequence[Curve]) -> None:
    """Add a note of what is not drawn, and the signatures of the numbers."""
    names = theme.shorten_names([c.system for c in drawn])
    undefined = [f"{n} {p.setting}" for n, c in zip(names, drawn, strict=True) for p in c.points if not _is_defined(p)]
    theme.add_note(ax, f"not drawn, because undefined: {', '.join(undefined)}" if undefined else "")
    metrics = {m for c in drawn for m in (c.latency, c.quality)}
    theme.add_signatures(
        ax, (s.signature for c in drawn for p in c.points for s in p.scores or () if s.metric in metrics)
    )


def _set_equal_ranges(ax: Axes) -> tuple[float, float]:
    """Give both axes the same range, that of the data, so that the identity is at 45 degrees; the range."""
    box = ax.dataLim
    low, high = min(box.x0, box.y0, 0.0), max(box.x1, box.y1)
    room = 0.04 * (high - low) or 1.0
    ax.set_xlim(low - room * (low < 0), high + room)
    ax.set_ylim(low - room * (low < 0), high + room)
    ax.set_aspect("equal", adjustable="box")
    return low - room * (low < 0), high + room
