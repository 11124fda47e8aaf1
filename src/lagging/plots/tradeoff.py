# SPDX-License-Identifier: Apache-2.0
"""Systems at several settings: quality against latency, and AL against DAL."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
    lines, bars = [], []
    for i, curve in enumerate(drawn):
        style = look.look(i)
        points = [(p.latency, p.quality) for p in curve.points if p.quality is not None and _sound(p)]
        for a, q in points:
            bars += _bars(ax, a, q, s, style.colour)
        x, y = [a.value / s for a, _ in points], [q.value for _, q in points]
        lines += ax.plot(x, y, **style.line)
    ax.set_xlabel(look.title(latency, unit))
    ax.set_ylabel(look.title(quality, quality.unit))
    others = list(bars)
    if pareto:
        others += _front(ax, lines, latency, quality)
    if bands is not None:
        _bands(ax, bands, latency, unit)
    if min(ax.dataLim.x0, 0.0) < 0:
        ax.axvline(0.0, color=look.GREY, linewidth=0.8, zorder=1)
    lost = [f"{n} {p.setting}" for n, c in zip(names, drawn, strict=True) for p in c.points if not _sound(p)]
    look.note(ax, f"not drawn, because undefined: {', '.join(lost)}" if lost else "")
    scores = (s for c in drawn for p in c.points for s in p.scores or ())
    look.sign(ax, (s.signature for s in scores if s.metric in (latency, quality)))
    named = [_named(name, line) for name, line in zip(names, lines, strict=True) if len(_points(line))]
    labels.label(ax, named, lettering, others)
    if settings:
        taken = [labels.dots(line) for line in (*lines, *others)] + labels.boxes(ax)
        for curve in drawn:
            for p in curve.points:
                if p.quality is not None and _sound(p):
                    labels.tag(ax, p.setting, [(p.latency.value / s, p.quality.value)], lettering, taken)
    return ax


def _sound(p: Point) -> bool:
    return p.quality is not None and math.isfinite(p.latency.value) and math.isfinite(p.quality.value)


def _points(line: Line2D) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in np.asarray(line.get_xydata())]


def _named(name: str, line: Line2D) -> labels.Labelled:
    """A curve may be named at its end, at its beginning, or at any other point."""
    points = _points(line)
    return labels.Labelled(name, line, [points[-1], points[0], *points[1:-1]], points[-1][1])


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
    style: dict[str, Any] = {"color": "#cccccc", "linewidth": 3.5, "zorder": 0.5}
    return ax.step(best[:, 0], best[:, 1], where="post" if better[0] > 0 else "pre", **style)


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
    """AL against DAL, a straight line per family of systems, as in Figure 2 of Cherry & Foster (2019).

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
        ['wait-k, slope 1.00', 'AL = DAL']
    """
    right, up = metric(metrics[0]), metric(metrics[1])
    found = _families(families, right, up)
    unit: str = look.agreed("units", (s.unit for pairs in found.values() for pair in pairs for s in pair))
    names = look.short(list(found))
    ax = look.canvas(ax, 4.6, 4.2)
    s = look.scale(unit)
    lines, straight, told, lost = [], [], [], 0
    for i, (name, pairs) in enumerate(zip(names, found.values(), strict=True)):
        style = look.look(i)
        points = np.array([(a.value, b.value) for a, b in pairs], dtype=np.float64).reshape(-1, 2) / s
        lost += int(np.isnan(points).any(axis=1).sum())
        points = points[~np.isnan(points).any(axis=1)]
        lines += ax.plot(points[:, 0], points[:, 1], **style.line | {"linestyle": "none"})
        slope, start = fit(points[:, 0], points[:, 1]) if len(points) > 1 else (np.float64(np.nan), np.float64(np.nan))
        if math.isnan(slope):
            told.append(name)
            continue
        ends = np.array([points[:, 0].min(), points[:, 0].max()])
        straight += ax.plot(ends, start + slope * ends, **style.line | {"marker": "", "zorder": 1.8})
        told.append(f"{name}, slope {look.amount(float(slope), 'ratio')}")
    ax.set_xlabel(look.title(right, unit))
    ax.set_ylabel(look.title(up, unit))
    low, high = _identity(ax)
    same = ax.plot([low, high], [low, high], color=look.GREY, linestyle=(0, (4, 3)), linewidth=0.9, zorder=1)
    look.note(ax, f"{lost} settings have no value, and are not drawn" if lost else "")
    look.sign(ax, (score.signature for pairs in found.values() for pair in pairs for score in pair))
    lettering = look.Lettering(told)
    named = [_named(text, line) for text, line in zip(told, lines, strict=True) if len(_points(line))]
    labels.label(ax, named, lettering, [*straight, *same])
    taken = [labels.dots(line) for line in (*lines, *straight, *same)] + labels.boxes(ax)
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
