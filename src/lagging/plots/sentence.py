# SPDX-License-Identifier: Apache-2.0
"""One sentence over time, as in Figure 1 of Cherry & Foster (2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lagging.plots import look
from lagging.text import tokens
from lagging.timeline import Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["timeline"]

ROW = 0.19
"""Inches that a target token takes."""
REAL, EFFECTIVE = look.COLOURS[0], look.COLOURS[1]


def timeline(line: Timeline, ax: Axes | None = None) -> Axes:
    """A sentence: time to the right with the source on top as it comes in, and a row per target token.

    A dot is when the token was written, g; a circle when it would have been if writing took time, g'; the dotted line
    when the ideal translator writes it, (t−1)d. Bars are the lags, which stand to the right: ℓ = g − (t−1)d and
    ℓ' = g' − (t−1)d. A triangle marks a read that went further over budget than any before it.

    Words that no installed font can draw are shown by their number, and warned of.

    Args:
        line: from `lagging.timeline`.
        ax: where to draw; new axes, as high as the sentence needs, if not given.

    Returns:
        The axes.

    Example:
        >>> from lagging import Run
        >>> from lagging.timeline import timeline as of
        >>> run = Run.from_delays([[4, 4, 4, 4, 5]], source_length=[5], prediction=["I saw a black cat"],
        ...     source=["ich sah eine schwarze Katze"])
        >>> ax = timeline(of(run, 0))
        >>> [text.get_text() for text in ax.get_yticklabels()], ax.get_title()
        (['I', 'saw', 'a', 'black', 'cat'], 'segment 0:  AP 0.84,  AL 2.20,  DAL 4.00')
    """
    n, s = len(line.delays), look.scale(line.unit)
    ax = look.canvas(ax, 7.0, 1.7 + ROW * max(n, 3))
    source = _source(line)
    target = [word or str(t) for t, word in enumerate(line.target, 1)]
    lettering = look.Lettering([*source, *target, str(line.id)])
    rows = np.arange(1, n + 1)
    g, effective, ideal = line.delays / s, line.effective_delays / s, line.ideal / s
    ax.hlines(rows, ideal, effective, color=EFFECTIVE, linewidth=3.5, alpha=0.25)
    ax.hlines(rows, np.minimum(ideal, g), np.maximum(ideal, g), color=REAL, linewidth=3.5, alpha=0.4)
    ax.plot(
        ideal,
        rows,
        color=look.INK,
        linestyle=(0, (1, 1.5)),
        linewidth=1.0,
        marker=".",
        markersize=3,
        label="ideal (t−1)d",
    )
    hollow: dict[str, Any] = {"marker": "o", "markersize": 6.5, "markerfacecolor": "white", "markeredgewidth": 1.2}
    ax.plot(effective, rows, color=EFFECTIVE, linewidth=0.9, **hollow, label="g', if writing takes time")
    ax.plot(g, rows, color=REAL, linestyle="none", marker="o", markersize=4.5, label="written, g")
    broke = np.array(line.broke, dtype=bool)
    ax.plot(
        effective[broke],
        rows[broke],
        color=look.INK,
        linestyle="none",
        marker=4,  # a triangle to the left
        markersize=6,
        label="a read further over budget than any before",
    )
    end = max([line.source_length / s, *effective[np.isfinite(effective)].tolist()])
    ax.axvline(line.source_length / s, color=look.GREY, linewidth=0.9)
    ax.set_xlim(0, 1.03 * end or 1.0)
    ax.set_ylim(n + 0.7, 0.3)
    ax.set_xlabel(f"time ({look.unit(line.unit)}, ideal clock)")
    ax.set_yticks(rows, [""] * n)
    for t, words in enumerate(ax.get_yticklabels()):
        lettering.write(words, target[t] if lettering.can(target[t]) else f"[{t + 1}]")
    ax.tick_params(axis="y", length=0)
    _lags(ax, line, s)
    _on_top(ax, source, lettering)
    if n:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False, fontsize=look.SMALL)
    scores = ",  ".join(f"{score.metric!r} {look.amount(score.value, score.unit)}" for score in line.scores)
    ax.set_title("", fontsize=look.SMALL + 1)
    lettering.write(ax.title, f"segment {line.id}:  {scores}" + ("" if n else "\nnothing was written"))
    look.sign(ax, (score.signature for score in line.scores))
    return ax


def _source(line: Timeline) -> list[str]:
    """The source words, or characters; none where |x| counts neither."""
    if line.unit != "token" or line.source is None:
        return []
    ways = (tokens(line.source, level) for level in ("word", "char"))
    return next((words for words in ways if len(words) == line.source_length), [])


def _on_top(ax: Axes, source: list[str], lettering: look.Lettering) -> None:
    """The source, each word over the time in which it comes in."""
    if not source:
        return
    top = ax.secondary_xaxis("top")
    top.set_xticks(np.arange(len(source)) + 0.5, [""] * len(source))
    top.tick_params(labelsize=look.SMALL, length=0, rotation=90)
    for i, words in enumerate(top.get_xticklabels()):
        lettering.write(words, source[i] if lettering.can(source[i]) else f"[{i + 1}]")


def _lags(ax: Axes, line: Timeline, s: float) -> None:
    """Both lags of every token, right of its row."""
    for t, (lag, effective) in enumerate(zip(line.lags / s, line.effective_lags / s, strict=True), 1):
        text = f"{lag:5.2f}  {effective:5.2f}".replace("-", "−")
        ax.annotate(
            text, (1, t), (4, 0), ax.get_yaxis_transform(), "offset points", va="center", fontsize=look.SMALL - 1
        )
    ax.annotate("ℓ        ℓ'", (1, 0.3), (8, 3), ax.get_yaxis_transform(), "offset points", fontsize=look.SMALL - 1)
