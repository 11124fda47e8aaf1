# SPDX-License-Identifier: Apache-2.0
"""Systems at several settings: quality against latency, and AL against DAL."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lagging.curves import Axis, Curve, Point
from lagging.errors import UsageError
from lagging.metrics import Metric, metric
from lagging.plots import labels, look
from lagging.polylines import fit, front
from lagging.regimes import Regime, regime
from lagging.scoring import Score, Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["al_dal", "curves"]


def curves(
    several: Iterable[Curve],
    ax: Axes | None = None,
    *,
    pareto: bool = True,
    bands: str | Regime | None = None,
    settings: bool = False,
) -> Axes:
    """Quality against latency, a line per system and a point per setting, with the intervals of both.

    Args:
        several: the curves, all of the same two metrics and unit.
        ax: where to draw; new axes if not given.
        pareto: whether to draw the best quality that some setting reaches within each latency.
        bands: the shared task whose bands of latency to show.
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
    drawn = list(several)
    latency: Metric = look.agreed("metrics of latency", (c.latency for c in drawn))
    quality: Metric = look.agreed("metrics of quality", (c.quality for c in drawn))
    unit: str = look.agreed("units", (c.unit for c in drawn))
    if not any(_sound(p) for c in drawn for p in c.points):
        raise UsageError("no setting of any system has both a latency and a quality")
    names = look.short([c.system for c in drawn])
    ax = look.canvas(ax)
    lettering = look.Lettering([*names, *(p.setting for c in drawn for p in c.points if settings)])
    s = look.scale(unit)
    lines, bars, named = [], [], []
    for i, curve in enumerate(drawn):
        style = look.look(i)
        points = [(p.latency, p.quality) for p in curve.points if p.quality is not None and _sound(p)]
        crosses = [bar for a, q in points for bar in _bars(ax, a, q, s, style.colour)]
        (line,) = ax.plot([a.value / s for a, _ in points], [q.value for _, q in points], **style.line)
        lines.append(line)
        bars += crosses
        if points:
            ends = [end for bar in crosses for end in _points(bar)]
            at = _points(line)
            named.append(labels.Labelled(names[i], (line, *crosses), [*labels.along(at), *ends], at[-1][1], (line,)))
    ax.set_xlabel(look.title(latency, unit))
    ax.set_ylabel(look.title(quality, quality.unit))
    steps = _front(ax, lines, latency, quality) if pareto else []
    if bands is not None:
        _bands(ax, bands, latency, unit)
    if min(ax.dataLim.x0, 0.0) < 0:
        ax.axvline(0.0, color=look.GREY, linewidth=0.8, zorder=1)
    lost = [f"{n} {p.setting}" for n, c in zip(names, drawn, strict=True) for p in c.points if not _sound(p)]
    look.note(ax, f"not drawn, because undefined: {', '.join(lost)}" if lost else "")
    scores = (s for c in drawn for p in c.points for s in p.scores or ())
    look.sign(ax, (s.signature for s in scores if s.metric in (latency, quality)))
    labels.label(ax, named, lettering, steps)
    taken = [labels.dots(line) for line in (*lines, *bars, *steps)] + labels.boxes(ax)
    for line, curve in zip(lines, drawn, strict=True):
        told = [p.setting for p in curve.points if _sound(p)] if settings else []
        for text, place in zip(told, _points(line) if settings else [], strict=True):
            if text:
                labels.tag(ax, text, [place], lettering, taken)
    for step in steps:
        corners = _points(step)
        halves = [((a + c) / 2, b) for (a, b), (c, d) in pairwise(corners) if b == d]
        labels.tag(ax, "Pareto front", [*halves[::-1], *corners[::-1]], lettering, taken)
    return ax


def _sound(p: Point) -> bool:
    return p.quality is not None and math.isfinite(p.latency.value) and math.isfinite(p.quality.value)


def _points(line: Line2D) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in np.asarray(line.get_xydata())]


def _bars(ax: Axes, a: Axis, q: Axis, s: float, colour: str) -> list[Line2D]:
    """The intervals of a point, as a cross."""
    x, y = a.value / s, q.value
    drawn = []
    if a.low is not None and a.high is not None and math.isfinite(a.high - a.low):
        drawn += ax.plot([a.low / s, a.high / s], [y, y], color=colour, alpha=0.55, linewidth=1.0, zorder=1.5)
    if q.low is not None and q.high is not None and math.isfinite(q.high - q.low):
        drawn += ax.plot([x, x], [q.low, q.high], color=colour, alpha=0.55, linewidth=1.0, zorder=1.5)
    return drawn


def _front(ax: Axes, lines: Sequence[Line2D], latency: Metric, quality: Metric) -> list[Line2D]:
    """The best quality that some setting reaches within each latency, as steps."""
    points = np.array([point for line in lines for point in _points(line)])
    better = (1.0 if latency.higher_is_better is not True else -1.0, -1.0 if quality.higher_is_better is False else 1.0)
    best = points[front(points[:, 0] * better[0], points[:, 1] * better[1])]
    best = best[np.argsort(best[:, 0])]
    if len(best) < 2:
        return []
    x, y = np.repeat(best[:, 0], 2), np.repeat(best[:, 1], 2)
    x, y = (x[1:], y[:-1]) if better[0] > 0 else (x[:-1], y[1:])
    return ax.plot(x, y, color="#c8c8c8", linewidth=3.0, zorder=0.5, solid_joinstyle="miter")


def _bands(ax: Axes, which: str | Regime, latency: Metric, unit: str) -> None:
    """The regimes of a shared task, as bands with their names on top."""
    chosen = regime(which) if isinstance(which, str) else which
    if latency.name != metric(chosen.metric).name or unit != "ms":
        raise UsageError(f"{chosen.name} judges {chosen.metric} in seconds, and these curves are of {latency!r}")
    begin, end = ax.get_xlim()
    for name, limit in chosen.limits:
        x = limit / look.scale(unit)
        end = max(end, 1.05 * x)
        ax.axvspan(min(begin, 0.0), x, color=look.INK, alpha=0.05, zorder=0, linewidth=0)
        ax.axvline(x, color=look.GREY, linewidth=0.8, linestyle=(0, (2, 2)), zorder=0.6)
        ax.annotate(
            f"{name}: up to {x:g} s",
            (x, 1.0),
            (-3, -2),
            xycoords=ax.get_xaxis_transform(),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=look.SMALL - 1,
            color=look.GREY,
        )
    ax.set_xlim(begin, end)


# ---- AL against DAL -------------------------------------------------------------------------------------------


def al_dal(
    families: Iterable[Curve] | Mapping[str, Sequence[Scores]],
    ax: Axes | None = None,
    *,
    metrics: tuple[str | Metric, str | Metric] = ("DAL", "AL"),
) -> Axes:
    r"""AL against DAL, a straight line per family of systems, as in Figure 2 of Cherry & Foster (2019).

    A family whose line is flatter is one that AL favours: it lags as much, and AL says that it lags less.

    Args:
        families: curves whose points have scores, or the scores of the settings of each family.
        ax: where to draw; new axes if not given.
        metrics: what is drawn to the right, and what up.

    Returns:
        The axes; the identity is dashed, and names have the slope of their line (least squares).

    Raises:
        UsageError: a setting was not scored by both metrics, or they differ in unit.

    Example:
        >>> from lagging import policies, score
        >>> lengths = {"source_lengths": [6, 9], "target_lengths": [6, 9]}
        >>> waits = [score(policies.wait_k(k).run(**lengths), ["AL", "DAL"]) for k in (1, 3, 5)]
        >>> ax = al_dal({"wait-k": waits})
        >>> [text.get_text() for text in ax.texts]
        ['wait-k\nslope 1.00', 'AL = DAL']
    """
    right, up = metric(metrics[0]), metric(metrics[1])
    found = _families(families, right, up)
    unit: str = look.agreed("units", (s.unit for pairs in found.values() for pair in pairs for s in pair))
    names = look.short(list(found))
    ax = look.canvas(ax, 5.0, 4.6)
    s = look.scale(unit)
    lines, named, lost = [], [], 0
    for i, (name, pairs) in enumerate(zip(names, found.values(), strict=True)):
        style = look.look(i)
        points = np.array([(a.value, b.value) for a, b in pairs], dtype=np.float64).reshape(-1, 2) / s
        lost += int(np.isnan(points).any(axis=1).sum())
        points = points[~np.isnan(points).any(axis=1)]
        family = ax.plot(points[:, 0], points[:, 1], **style.line | {"linestyle": "none"})
        slope, start = fit(points[:, 0], points[:, 1]) if len(points) > 1 else (np.nan, np.nan)
        if math.isfinite(slope):
            ends = np.array([points[:, 0].min(), points[:, 0].max()])
            family += ax.plot(ends, start + slope * ends, **style.line | {"marker": "", "zorder": 1.8})
            name += f"\nslope {look.amount(float(slope), 'ratio')}"
        if len(points):
            at = sorted(_points(family[0]))
            named.append(labels.Labelled(name, tuple(family), labels.along(at), at[-1][1]))
        lines += family
    ax.set_xlabel(look.title(right, unit))
    ax.set_ylabel(look.title(up, unit))
    low, high = _identity(ax)
    same = ax.plot([low, high], [low, high], color=look.GREY, linestyle=(0, (4, 3)), linewidth=0.9, zorder=1)
    look.note(ax, f"{lost} settings have no value, and are not drawn" if lost else "")
    look.sign(ax, (score.signature for pairs in found.values() for pair in pairs for score in pair))
    lettering = look.Lettering([one.name for one in named])
    labels.label(ax, named, lettering, same)
    taken = [labels.dots(line) for line in (*lines, *same)] + labels.boxes(ax)
    middle = [low + share * (high - low) for share in (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)]
    labels.tag(ax, f"{up!r} = {right!r}", [(at, at) for at in middle], lettering, taken)
    return ax


def _families(
    families: Iterable[Curve] | Mapping[str, Sequence[Scores]], right: Metric, up: Metric
) -> dict[str, list[tuple[Score, Score]]]:
    """Both scores of every setting of every family."""
    if isinstance(families, Mapping):
        return {name: [(one[right], one[up]) for one in scores] for name, scores in families.items()}
    found: dict[str, list[tuple[Score, Score]]] = {}
    for curve in families:
        bare = [p.setting for p in curve.points if p.scores is None]
        if bare:
            raise UsageError(f"{curve.system} {', '.join(bare)}: published without a log, so {up!r} is not known")
        pairs = [(p.scores[right], p.scores[up]) for p in curve.points if p.scores is not None]
        found.setdefault(curve.system, []).extend(pairs)
    return found


def _identity(ax: Axes) -> tuple[float, float]:
    """From where to where both axes go: as far as the data, both alike, so that the identity is at 45 degrees."""
    box = ax.dataLim
    low, high = min(box.x0, box.y0, 0.0), max(box.x1, box.y1)
    room = 0.04 * (high - low) or 1.0
    ax.set_xlim(low - room * (low < 0), high + room)
    ax.set_ylim(low - room * (low < 0), high + room)
    ax.set_aspect("equal", adjustable="box")
    return low - room * (low < 0), high + room
