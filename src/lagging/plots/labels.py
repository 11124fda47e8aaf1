# SPDX-License-Identifier: Apache-2.0
"""Names beside the lines that they belong to, where there is room for all of them; else a key to the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lagging.plots.look import GREY, INK, SMALL, Lettering
from lagging.ragged import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation, Text

__all__ = ["Labelled", "boxes", "dots", "label", "tag"]

SIDES = ((1, 0), (1, 1), (1, -1), (0, 1), (0, -1), (-1, 0), (-1, 1), (-1, -1))
"""Where a label can be from its point, best first."""
GAPS = (6.0, 12.0)
"""Points between them."""
STEP = 4.0
"""Pixels between the places of a line where a label is checked against it."""
CLEAR = 5.0
"""Pixels around a label that no other line may enter."""


@dataclass(frozen=True)
class Labelled:
    """A line to be named: its name, its artist, places where the name may be (best first), and its rank in a key."""

    name: str
    line: Line2D
    anchors: Sequence[tuple[float, float]]
    rank: float = 0.0


def label(ax: Axes, lines: Sequence[Labelled], lettering: Lettering, others: Sequence[Line2D] = ()) -> None:
    """Name the lines.

    Args:
        ax: where they are, drawn as they will stay.
        lines: what is to be named.
        lettering: fonts for the names.
        others: lines that no name may cross, and that have none.
    """
    if not _beside(ax, lines, lettering, others):
        _key(ax, lines, lettering)


def tag(ax: Axes, text: str, anchors: Sequence[tuple[float, float]], lettering: Lettering, taken: list[Floats]) -> None:
    """A small grey word beside one of some points, where it covers nothing if there is such a place."""
    words = _annotation(ax, text, lettering, SMALL - 1, GREY)
    if not _placed(ax, words, anchors, taken, 1.0):
        words.xy = anchors[0]
        _offset(words, (0, 1), GAPS[0])
    taken.append(_area(words))


def boxes(ax: Axes) -> list[Floats]:
    """Where words already are, in pixels."""
    return [_area(words) for words in ax.texts]


def _area(words: Text) -> Floats:
    box = words.get_window_extent()
    xs, ys = (np.append(np.arange(a, b, STEP), b) for a, b in ((box.x0, box.x1), (box.y0, box.y1)))
    return np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)


def dots(line: Line2D) -> Floats:
    """Places of a line, in pixels, close enough together that no word fits between two of them."""
    points = line.get_transform().transform(np.asarray(line.get_xydata()))
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) < 2:
        return np.asarray(points)
    steps = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    at = np.linspace(0, steps[-1], max(2, int(steps[-1] / STEP)))
    return np.concatenate([points, np.stack([np.interp(at, steps, column) for column in points.T], axis=1)])


def _annotation(ax: Axes, text: str, lettering: Lettering, size: float, colour: str) -> Annotation:
    words = ax.annotate("", (0, 0), (0, 0), textcoords="offset points", fontsize=size, color=colour, zorder=5)
    lettering.write(words, text)
    return words


def _offset(words: Annotation, side: tuple[int, int], gap: float) -> None:
    """Put a label on one side of its point."""
    words.set_position((side[0] * gap, side[1] * gap))
    words.set_horizontalalignment("center" if side[0] == 0 else "left" if side[0] > 0 else "right")
    words.set_verticalalignment("center" if side[1] == 0 else "bottom" if side[1] > 0 else "top")


def _placed(
    ax: Axes, words: Annotation, anchors: Sequence[tuple[float, float]], taken: Sequence[Floats], clear: float
) -> bool:
    """Put a label where it is inside the axes and covers nothing; False if there is no such place."""
    inside = ax.get_window_extent()
    dots = np.concatenate([d for d in taken if len(d)] or [np.empty((0, 2))])
    for gap in GAPS:
        for anchor in anchors:
            words.xy = anchor
            for side in SIDES:
                _offset(words, side, gap)
                box = words.get_window_extent()
                if box.x0 < inside.x0 or box.x1 > inside.x1 or box.y0 < inside.y0 or box.y1 > inside.y1:
                    continue
                within = (np.abs(dots - (box.x0 + box.width / 2, box.y0 + box.height / 2))).T
                if not ((within[0] < box.width / 2 + clear) & (within[1] < box.height / 2 + clear / 2)).any():
                    return True
    return False


def _beside(ax: Axes, lines: Sequence[Labelled], lettering: Lettering, others: Sequence[Line2D]) -> bool:
    """Names beside their lines; False, and nothing drawn, if there is no room for one of them."""
    figure = ax.get_figure(root=True)
    if figure is not None:
        figure.draw_without_rendering()  # where things are is not known before
    taken = [dots(one.line) for one in lines] + [dots(line) for line in others] + boxes(ax)
    placed: list[Annotation] = []
    for one in lines:
        words = _annotation(ax, one.name, lettering, SMALL, INK)
        placed.append(words)
        if not _placed(ax, words, one.anchors, taken, CLEAR):
            for artist in placed:
                artist.remove()
            return False
        taken.append(_area(words))
    return True


def _key(ax: Axes, lines: Sequence[Labelled], lettering: Lettering) -> None:
    """A key to the right of the axes, from the highest line to the lowest."""
    ranked = sorted(lines, key=lambda one: -one.rank)
    key = ax.legend(
        [one.line for one in ranked],
        [str(i) for i in range(len(ranked))],  # matplotlib drops names that begin with _
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
        fontsize=SMALL,
        handlelength=3.2,
    )
    for words, one in zip(key.get_texts(), ranked, strict=True):
        lettering.write(words, one.name)
