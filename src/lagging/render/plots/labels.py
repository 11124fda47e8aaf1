# SPDX-License-Identifier: Apache-2.0
"""Names of systems: beside their lines where there is room for all of them, else in a legend to the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lagging.data.ragged import Floats
from lagging.render.plots.theme import GREY, INK, SMALL, Fonts, figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation, Text

__all__ = ["Labelled", "add_tag", "anchor_points", "label_lines", "line_points", "text_areas"]

Place = tuple[float, float]

SIDES = ((1, 0), (1, 1), (1, -1), (0, 1), (0, -1), (-1, 0), (-1, 1), (-1, -1))
"""The sides of its point on which a label can be, best first."""
GAPS = (5.0, 9.0, 15.0)
"""Points between a label and its point."""
STEP = 4.0
"""Pixels between the places of a line where a label is checked against it."""
CLEAR = 2.0
"""Pixels around a label that nothing may enter."""
NEARER = 1.3
"""Any other line is at least this many times farther from a name than its own line."""


@dataclass(frozen=True)
class Labelled:
    """A system to be named.

    Attributes:
        name: its name; may have several lines, which are joined in a legend.
        lines: what is drawn of it, which no name may cross.
        anchors: points beside which the name may be, best first.
        rank: its place in a legend, from the highest.
        key: the lines that a legend shows of it, if not all.
    """

    name: str
    lines: tuple[Line2D, ...]
    anchors: Sequence[Place]
    rank: float = 0.0
    key: tuple[Line2D, ...] = ()


def anchor_points(points: Sequence[Place]) -> list[Place]:
    """Points at which a line may be named: its end, its beginning, its other points, and half way between two."""
    halves = [((a + c) / 2, (b + d) / 2) for (a, b), (c, d) in pairwise(points)]
    return [points[-1], points[0], *points[-2:0:-1], *halves[::-1]]


def label_lines(ax: Axes, systems: Sequence[Labelled], fonts: Fonts, unnamed: Sequence[Line2D] = ()) -> None:
    """Name the systems.

    Args:
        ax: the axes, on which everything else is drawn.
        systems: the systems to be named.
        fonts: fonts for the names.
        unnamed: lines without a name, which no name may cross.
    """
    if not _label_beside(ax, systems, fonts, unnamed):
        _add_legend(ax, systems, fonts)


def add_tag(ax: Axes, text: str, anchors: Sequence[Place], fonts: Fonts, taken: list[Floats]) -> None:
    """Write a small grey text beside one of the points, where it covers nothing if there is such a place."""
    label = _annotate(ax, text, fonts, SMALL - 1, GREY)
    if not _place(ax, label, anchors, taken):
        label.xy = anchors[0]
        _set_offset(label, (0, 1), GAPS[0])
    taken.append(_area(label))


def text_areas(ax: Axes) -> list[Floats]:
    """The places of all texts on the axes, in pixels."""
    return [_area(text) for text in ax.texts]


def line_points(line: Line2D) -> Floats:
    """Points of a line, in pixels, so close that no text fits between two of them."""
    points: Floats = line.get_transform().transform(np.asarray(line.get_xydata(), dtype=np.float64).reshape(-1, 2))
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) < 2 or line.get_linestyle() == "None":
        return points
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    steps = np.linspace(0, length[-1], max(2, int(length[-1] / STEP)))
    return np.concatenate([points, np.stack([np.interp(steps, length, column) for column in points.T], axis=1)])


def _area(text: Text) -> Floats:
    """Points of a text, in pixels."""
    box = text.get_window_extent()
    xs, ys = (np.append(np.arange(a, b, STEP), b) for a, b in ((box.x0, box.x1), (box.y0, box.y1)))
    return np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)


def _annotate(ax: Axes, text: str, fonts: Fonts, size: float, colour: str) -> Annotation:
    label = ax.annotate("", (0, 0), (0, 0), textcoords="offset points", fontsize=size, color=colour, zorder=5)
    label.set_bbox({"facecolor": "white", "edgecolor": "none", "alpha": 0.65, "pad": 0.8})
    fonts.write(label, text)
    return label


def _set_offset(label: Annotation, side: tuple[int, int], gap: float) -> None:
    """Put a label on one side of its point."""
    label.set_position((side[0] * gap, side[1] * gap))
    label.set_horizontalalignment("center" if side[0] == 0 else "left" if side[0] > 0 else "right")
    label.set_verticalalignment("center" if side[1] == 0 else "bottom" if side[1] > 0 else "top")


def _place(
    ax: Axes,
    label: Annotation,
    anchors: Sequence[Place],
    taken: Sequence[Floats],
    own: Sequence[Floats] = (),
    foreign: Sequence[Floats] = (),
) -> bool:
    """Put a label where it is inside the axes, covers nothing, and is nearest to its own lines; False if nowhere."""
    inside = ax.get_window_extent()
    for gap in GAPS:
        for anchor in anchors:
            label.xy = anchor
            for side in SIDES:
                _set_offset(label, side, gap)
                box = label.get_window_extent()
                if box.x0 < inside.x0 or box.x1 > inside.x1 or box.y0 < inside.y0 or box.y1 > inside.y1:
                    continue
                corners = np.array([[box.x0, box.y0], [box.x1, box.y1]])
                if _distance(corners, taken) > CLEAR and (
                    not foreign or _distance(corners, foreign) > NEARER * _distance(corners, own)
                ):
                    return True
    return False


def _distance(corners: Floats, places: Sequence[Floats]) -> float:
    """The distance from a box to the nearest of several points."""
    filled = [points for points in places if len(points)]
    if not filled:
        return np.inf
    points = np.concatenate(filled)
    distance = np.maximum(np.maximum(corners[0] - points, points - corners[1]), 0.0)
    return float(np.hypot(*distance.T).min())


def _label_beside(ax: Axes, systems: Sequence[Labelled], fonts: Fonts, unnamed: Sequence[Line2D]) -> bool:
    """Names beside their lines; False, and nothing drawn, if there is no room for one of them."""
    figure_of(ax).draw_without_rendering()  # only then positions are known
    owned = [[line_points(line) for line in system.lines] for system in systems]
    taken = [points for own in owned for points in own] + [line_points(line) for line in unnamed] + text_areas(ax)
    placed: list[Annotation] = []
    for i, system in enumerate(systems):
        label = _annotate(ax, system.name, fonts, SMALL, INK)
        placed.append(label)
        foreign = [points for j, own in enumerate(owned) if j != i for points in own]
        if not _place(ax, label, system.anchors, taken, owned[i], foreign):
            for artist in placed:
                artist.remove()
            return False
        taken.append(_area(label))
    return True


def _add_legend(ax: Axes, systems: Sequence[Labelled], fonts: Fonts) -> None:
    """Add a legend to the right of the axes, from the highest line to the lowest."""
    ranked = sorted(systems, key=lambda system: -system.rank)
    legend = ax.legend(
        [system.key or system.lines for system in ranked],
        [str(i) for i in range(len(ranked))],  # matplotlib drops names that begin with _
        loc="center left",
        bbox_to_anchor=(1.03, 0.5),
        frameon=False,
        fontsize=SMALL,
        handlelength=3.2,
    )
    for text, system in zip(legend.get_texts(), ranked, strict=True):
        fonts.write(text, system.name.replace("\n", ", "))
    figure_of(ax).draw_without_rendering()  # the legend has made the axes smaller
