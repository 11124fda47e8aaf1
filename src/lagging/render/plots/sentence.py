# SPDX-License-Identifier: Apache-2.0
"""One sentence over time, as in Figure 1 of Cherry & Foster (2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Floats, Ints
from lagging.data.tokens import tokens
from lagging.render.plots import theme
from lagging.render.timeline import Timeline
from lagging.scoring.scores import Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["timeline"]

ROW = 0.19
"""Inches that a target token takes."""
WORD = 0.115
"""Inches that an upright source word takes."""
REAL, EFFECTIVE = theme.COLOURS[0], theme.COLOURS[1]


def timeline(line: Timeline, ax: Axes | None = None) -> Axes:
    """A sentence: time to the right with the source on top as it comes in, and a row per target token.

    A dot is when the token was written, g; a circle when it would have been if writing took time, g'; the dotted line
    when the ideal translator writes it, (t−1)d. Bars are the lags, which stand to the right: ℓ = g − (t−1)d and
    ℓ' = g' − (t−1)d. A triangle marks the largest lag so far.

    Words that no installed font can draw are shown by their number, and warned of.

    Args:
        line: from `lagging.render.timeline`.
        ax: where to draw; new axes, as high as the sentence needs, if not given.

    Returns:
        The axes.

    Example:
        >>> from lagging import Run
        >>> from lagging.render.timeline import timeline as make_timeline
        >>> run = Run.from_delays([[4, 4, 4, 4, 5]], source_length=[5], prediction=["I saw a black cat"],
        ...     source=["ich sah eine schwarze Katze"])
        >>> ax = timeline(make_timeline(run, 0))
        >>> [text.get_text() for text in ax.get_yticklabels()], ax.get_title()
        (['I', 'saw', 'a', 'black', 'cat'], 'segment 0:  AP 0.84,  AL 2.20,  DAL 4.00')
    """
    n, s = len(line.delays), theme.scale(line.unit)
    rows = np.arange(1, n + 1)
    g, effective, ideal = line.delays / s, line.effective_delays / s, line.ideal / s
    end = max([line.source_length / s, *effective[np.isfinite(effective)].tolist()])
    source, target = _source_words(line), [word or str(t) for t, word in enumerate(line.target, 1)]
    ax = theme.prepare_axes(ax, min(max(7.0, 2.0 + WORD * end * bool(source)), 24.0), 1.7 + ROW * max(n, 3))
    fonts = theme.Fonts([*source, *target, str(line.id)])
    written = np.maximum(ideal, g)
    ax.hlines(rows, written, np.maximum(effective, written), color=EFFECTIVE, linewidth=3.5, alpha=0.3)
    ax.hlines(rows, np.minimum(ideal, g), written, color=REAL, linewidth=3.5, alpha=0.4)
    dotted: dict[str, Any] = {"linestyle": (0, (1, 1.5)), "linewidth": 1.0, "marker": ".", "markersize": 3}
    ax.plot(ideal, rows, color=theme.INK, **dotted, label="ideal, (t−1)d")
    hollow: dict[str, Any] = {"marker": "o", "markersize": 6.5, "markerfacecolor": "white", "linewidth": 0.9}
    ax.plot(effective, rows, color=EFFECTIVE, **hollow, label="if writing takes time, g'")
    ax.plot(g, rows, color=REAL, linestyle="none", marker="o", markersize=4.5, label="written, g")
    _add_triangles(ax, effective, rows, np.array(line.broke, dtype=bool))
    ax.axvline(line.source_length / s, color=theme.GREY, linewidth=0.9, zorder=1)
    begin = min([0.0, *g.tolist()])  # a word may be written before its segment begins
    ax.set_xlim(begin - 0.03 * (end - begin) * (begin < 0), begin + 1.03 * (end - begin) if end > begin else 1.0)
    ax.set_ylim(n + 0.7, 0.3)
    ax.set_xlabel(f"time ({theme.unit_label(line.unit)}, ideal clock)")
    ax.set_yticks(rows, [fonts.replace_missing(w) if fonts.can_draw(w) else f"[{t}]" for t, w in enumerate(target, 1)])
    ax.tick_params(axis="y", length=0)
    for label in ax.get_yticklabels():
        fonts.set_fonts(label)
    _add_source(ax, source, fonts, end)
    _add_lags(ax, line, s)
    if n:
        _add_legend(ax)
    scores = ",  ".join(f"{score.metric!r} {_format_value(score)}" for score in line.scores)
    ax.set_title("", fontsize=theme.SMALL + 1)
    fonts.write(ax.title, f"segment {line.id}:  {scores}")
    if not n:
        ax.text(0.5, 0.5, "nothing was written", transform=ax.transAxes, ha="center", color=theme.GREY)
    theme.add_signatures(ax, (score.signature for score in line.scores))
    return ax


def _format_value(score: Score) -> str:
    """A value as it stands in the title: tokens are what the axis says."""
    return theme.format_amount(score.value, score.unit).removesuffix(f" {theme.unit_label('token')}")


def _add_triangles(ax: Axes, effective: Floats, rows: Ints, broke: npt.NDArray[np.bool_]) -> None:
    """Triangles, a little to the right of where they belong."""
    from matplotlib.transforms import offset_copy

    style: dict[str, Any] = {"color": theme.INK, "linestyle": "none", "marker": 4, "markersize": 5}
    aside = offset_copy(ax.transData, theme.figure_of(ax), x=5, units="points")
    label = "the largest lag so far"
    ax.plot(effective[broke], rows[broke], **style, transform=aside, label=label)


def _add_legend(ax: Axes) -> None:
    """What the signs mean, below the title of the axis."""
    from matplotlib.transforms import offset_copy

    below = offset_copy(ax.transAxes, theme.figure_of(ax), y=-32, units="points")
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=below,
        ncols=4,
        frameon=False,
        fontsize=theme.SMALL,
        columnspacing=1.2,
        handletextpad=0.4,
    )


def _source_words(line: Timeline) -> list[str]:
    """The source words, or characters; none where |x| counts neither."""
    if line.unit != "token" or line.source is None:
        return []
    units = (tokens(line.source, level) for level in ("word", "char"))
    return next((words for words in units if len(words) == line.source_length), [])


def _add_source(ax: Axes, source: list[str], fonts: theme.Fonts, end: float) -> None:
    """The source, each word over the time in which it comes in; upright where the words are too long to lie."""
    if not source:
        return
    top = ax.secondary_xaxis("top")
    words = [fonts.replace_missing(w) if fonts.can_draw(w) else f"[{i}]" for i, w in enumerate(source, 1)]
    top.set_xticks(np.arange(len(source)) + 0.5, words)
    top.tick_params(labelsize=theme.SMALL, length=0)
    labels = top.get_xticklabels()
    for label in labels:
        fonts.set_fonts(label)
    room = 0.8 * ax.get_window_extent().width / end
    if max(label.get_window_extent().width for label in labels) > room:
        top.tick_params(rotation=90)


def _add_lags(ax: Axes, line: Timeline, s: float) -> None:
    """Both lags of every token, right of its row."""
    style: dict[str, Any] = {"fontsize": theme.SMALL - 1, "ha": "right", "va": "center"}
    for name, place, values in (("ℓ", 32, line.lags / s), ("ℓ'", 62, line.effective_lags / s)):
        texts = [theme.format_amount(value, "") for value in values.tolist()]
        for t, text in enumerate([name, *texts] if texts else []):
            ax.annotate(text, (1, t), (place, 0), ax.get_yaxis_transform(), "offset points", **style)
