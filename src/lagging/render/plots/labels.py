# SPDX-License-Identifier: Apache-2.0
"""Names beside the lines that they belong to, where there is room for all of them; else a key to the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lagging.data.ragged import Floats
from lagging.render.plots.theme import GREY, INK, SMALL, Lettering, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation, Text

__all__ = ["Labelled", "along", "boxes", "dots", "label", "tag"]

Place = tuple[float, float]

SIDES = ((1, 0), (1, 1), (1, -1), (0, 1), (0, -1), (-1, 0), (-1, 1), (-1, -1))
"""Where a label can be from its point, best first."""
GAPS = (5.0, 9.0, 15.0)
"""Points between them."""
STEP = 4.0
"""Pixels between the places of a line where a label is checked against it."""
CLEAR = 2.0
"""Pixels around a label that nothing may enter."""
NEARER = 1.3
"""How many times farther than its own line any other line is from a name."""


@dataclass(frozen=True)
class Labelled:
    """A system to be named.

    Attributes:
        name: what is written, on several lines beside a line, on one in a key.
        lines: what is drawn of it, which no name may cross.
        anchors: points beside which the name may be, best first.
        rank: its place in a key, from the highest.
        key: what is shown of it in a key, one upon the other, if that is not all of its lines.
    """

    name: str
    lines: tuple[Line2D, ...]
    anchors: Sequence[Place]
    rank: float = 0.0
    key: tuple[Line2D, ...] = ()


def along(points: Sequence[Place]) -> list[Place]:
    """Where a line may be named: at its end, its beginning, its other points, and half way between two of them."""
    halves = [((a + c) / 2, (b + d) / 2) for (a, b), (c, d) in pairwise(points)]
    return [points[-1], points[0], *points[-2:0:-1], *halves[::-1]]


def label(ax: Axes, systems: Sequence[Labelled], lettering: Lettering, others: Sequence[Line2D] = ()) -> None:
    """Name the systems.

    Args:
        ax: where they are, drawn as they will stay.
        systems: what is to be named.
        lettering: fonts for the names.
        others: lines that have no name, and that no name may cross.
    """
    if not _beside(ax, systems, lettering, others):
        _key(ax, systems, lettering)


def tag(ax: Axes, text: str, anchors: Sequence[Place], lettering: Lettering, taken: list[Floats]) -> None:
    """A small grey word beside one of some points, where it covers nothing if there is such a place."""
    words = _annotation(ax, text, lettering, SMALL - 1, GREY)
    if not _placed(ax, words, anchors, taken):
        words.xy = anchors[0]
        _offset(words, (0, 1), GAPS[0])
    taken.append(_area(words))


def boxes(ax: Axes) -> list[Floats]:
    """Where words already are, in pixels."""
    return [_area(words) for words in ax.texts]


def dots(line: Line2D) -> Floats:
    """Places of a line, in pixels, close enough together that no word fits between two of them."""
    points: Floats = line.get_transform().transform(np.asarray(line.get_xydata(), dtype=np.float64).reshape(-1, 2))
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) < 2 or line.get_linestyle() == "None":
        return points
    way = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    at = np.linspace(0, way[-1], max(2, int(way[-1] / STEP)))
    return np.concatenate([points, np.stack([np.interp(at, way, column) for column in points.T], axis=1)])


def _area(words: Text) -> Floats:
    """Places of a word, in pixels."""
    box = words.get_window_extent()
    xs, ys = (np.append(np.arange(a, b, STEP), b) for a, b in ((box.x0, box.x1), (box.y0, box.y1)))
    return np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)


def _annotation(ax: Axes, text: str, lettering: Lettering, size: float, colour: str) -> Annotation:
    words = ax.annotate("", (0, 0), (0, 0), textcoords="offset points", fontsize=size, color=colour, zorder=5)
    words.set_bbox({"facecolor": "white", "edgecolor": "none", "alpha": 0.65, "pad": 0.8})
    lettering.write(words, text)
    return words


def _offset(words: Annotation, side: tuple[int, int], gap: float) -> None:
    """Put a label on one side of its point."""
    words.set_position((side[0] * gap, side[1] * gap))
    words.set_horizontalalignment("center" if side[0] == 0 else "left" if side[0] > 0 else "right")
    words.set_verticalalignment("center" if side[1] == 0 else "bottom" if side[1] > 0 else "top")


def _placed(
    ax: Axes,
    words: Annotation,
    anchors: Sequence[Place],
    taken: Sequence[Floats],
    own: Sequence[Floats] = (),
    foreign: Sequence[Floats] = (),
) -> bool:
    """Put a label where it is inside the axes, covers nothing, and is nearest to its own lines; False if nowhere."""
    inside = ax.get_window_extent()
    for gap in GAPS:
        for anchor in anchors:
            words.xy = anchor
            for side in SIDES:
                _offset(words, side, gap)
                box = words.get_window_extent()
                if box.x0 < inside.x0 or box.x1 > inside.x1 or box.y0 < inside.y0 or box.y1 > inside.y1:
                    continue
                corners = np.array([[box.x0, box.y0], [box.x1, box.y1]])
                if _distance(corners, taken) > CLEAR and (
                    not foreign or _distance(corners, foreign) > NEARER * _distance(corners, own)
                ):
                    return True
    return False


def _distance(corners: Floats, places: Sequence[Floats]) -> float:
    """From a box to the nearest of some places."""
    some = [place for place in places if len(place)]
    if not some:
        return np.inf
    all_of = np.concatenate(some)
    away = np.maximum(np.maximum(corners[0] - all_of, all_of - corners[1]), 0.0)
    return float(np.hypot(*away.T).min())


def _beside(ax: Axes, systems: Sequence[Labelled], lettering: Lettering, others: Sequence[Line2D]) -> bool:
    """Names beside their lines; False, and nothing drawn, if there is no room for one of them."""
    figure(ax).draw_without_rendering()  # where things are is not known before
    owned = [[dots(line) for line in one.lines] for one in systems]
    taken = [some for own in owned for some in own] + [dots(line) for line in others] + boxes(ax)
    placed: list[Annotation] = []
    for i, one in enumerate(systems):
        words = _annotation(ax, one.name, lettering, SMALL, INK)
        placed.append(words)
        foreign = [some for j, own in enumerate(owned) if j != i for some in own]
        if not _placed(ax, words, one.anchors, taken, owned[i], foreign):
            for artist in placed:
                artist.remove()
            return False
        taken.append(_area(words))
    return True


def _key(ax: Axes, systems: Sequence[Labelled], lettering: Lettering) -> None:
    """A key to the right of the axes, from the highest line to the lowest."""
    ranked = sorted(systems, key=lambda one: -one.rank)
    key = ax.legend(
        [one.key or one.lines for one in ranked],
        [str(i) for i in range(len(ranked))],  # matplotlib drops names that begin with _
        loc="center left",
        bbox_to_anchor=(1.03, 0.5),
        frameon=False,
        fontsize=SMALL,
        handlelength=3.2,
    )
    for words, one in zip(key.get_texts(), ranked, strict=True):
        lettering.write(words, one.name.replace("\n", ", "))
    figure(ax).draw_without_rendering()  # it has made the axes smaller
