# SPDX-License-Identifier: Apache-2.0
"""How a number, a heading and a piece of foreign text are written."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from functools import reduce

from rich.cells import cell_len, set_cell_size

from lagging.data.units import SHOWN, scale
from lagging.errors import UsageError
from lagging.errors.printable import printable
from lagging.metrics import Metric
from lagging.scoring.scores import Score, Scores
from lagging.scoring.signature import Signature, joined

__all__ = ["best", "cell", "columns", "heading", "pad", "safe", "shorten", "shown", "signatures", "undefined", "wins"]

DIGITS = {"token": 3, "ms": 3, "token/100": 3, "ms/min": 3, "ratio": 3, "count": 2, "points": 2, "score": 4}
UNITS = dict.fromkeys((*DIGITS, ""), "") | SHOWN | {"points": ""}
"""What stands beside a name: nothing for points, as for a ratio or a count."""
ARROWS = {True: "↑", False: "↓", None: ""}
NOTHING = "–"

ISOLATE, END = "\u2068", "\u2069"
"""Around text from right to left, so that a terminal that reorders text leaves the columns beside it where they are."""


def shown(value: float | None, unit: str) -> str:
    """A number as tables show it: milliseconds as seconds, NaN as a dash."""
    if value is None or math.isnan(value):
        return NOTHING
    return f"{value / scale(unit):z.{DIGITS[unit]}f}"


def heading(metric: Metric, unit: str) -> str:
    """`DAL ↓ s`: name, direction, unit."""
    return " ".join(part for part in (repr(metric), ARROWS[metric.higher_is_better], UNITS[unit]) if part)


def columns(scores: Sequence[Scores]) -> list[tuple[Metric, str]]:
    """The metrics that occur, with their unit; no unit where systems differ in it."""
    found: dict[Metric, str] = {}
    for one in scores:
        for score in one:
            found[score.metric] = score.unit if found.get(score.metric, score.unit) == score.unit else ""
    return list(found.items())


def cell(scores: Scores, metric: Metric, unit: str) -> str:
    """The value of a metric in its column; with its unit, if the column has none."""
    score = find(scores, metric)
    if score is None:
        return NOTHING
    text = shown(score.value, score.unit)
    if score.low is not None:
        text += f" [{shown(score.low, score.unit)}, {shown(score.high, score.unit)}]"
    return text if unit else f"{text} {UNITS[score.unit]}".rstrip()


def find(scores: Scores, metric: Metric) -> Score | None:
    """The score of a metric, if the system has one."""
    return next((score for score in scores if score.metric == metric), None)


def best(scores: Sequence[Scores], metric: Metric) -> set[str]:
    """How the best value of a column is written; nothing if there is nothing to choose from."""
    found = [s for s in (find(one, metric) for one in scores) if s is not None and not math.isnan(s.value)]
    if len(found) < 2 or len({s.unit for s in found}) > 1 or metric.higher_is_better is None:
        return set()
    if any(scores[0].shared(one) != (found[0].n,) * 3 for one in scores[1:]):
        return set()  # not the same sentences: nothing to be best at
    pick = max if metric.higher_is_better else min
    top = pick(found, key=lambda s: s.value)
    return {shown(top.value, top.unit)}


def wins(text: str, winner: set[str]) -> bool:
    """Whether a cell, be it with an interval, has the best value of its column."""
    return text.partition(" [")[0] in winner


def labels(scores: Sequence[Scores]) -> list[str]:
    """The columns that segments are grouped by; none if they are not."""
    return list(dict.fromkeys(name for one in scores for name in one.group))


def labelled(one: Scores, names: Sequence[str]) -> list[str]:
    """What a group has in each of the columns."""
    found = [one.group.get(name) for name in names]
    return [NOTHING if label is None else label for label in found]


def signatures(scores: Sequence[Scores], segments: bool = False) -> list[str]:
    """One line per metric if all systems agree, else one per metric and system; of corpus values, or of segments.

    Groups of one system differ in what is counted, and are told as one: n is then that of all.
    """
    lines = []
    for metric, _ in columns(scores):
        found = [(one, s) for one in scores if (s := find(one, metric)) is not None]
        signed = [(one.called, one.system, s.segment_signature if segments else s.signature) for one, s in found]
        if labels(scores):
            signed = _together(signed)
        made = [(called, str(signature)) for called, _, signature in signed]
        if len({signature for _, signature in made}) == 1:
            lines.append(made[0][1])
        else:
            lines += [f"{signature}  ({system})" for system, signature in made]
    return lines


def _together(signed: Sequence[tuple[str, str, Signature]]) -> list[tuple[str, str, Signature]]:
    """One signature for the groups of a system, where they were made alike."""
    systems = dict.fromkeys(system for _, system, _ in signed)
    try:
        return [(name, name, reduce(joined, (made for _, of, made in signed if of == name))) for name in systems]
    except UsageError:
        return list(signed)


def undefined(scores: Sequence[Scores]) -> list[str]:
    """`base: AL undefined in 3 of 2588 segments (empty hypothesis 3)`, one line per system and set of reasons."""
    lines = []
    for one in scores:
        by_reason: dict[str, list[str]] = {}
        for score in one:
            if score.undefined:
                reasons = ", ".join(f"{reason} {count}" for reason, count in score.undefined.counts.items())
                text = f"undefined in {int(score.undefined)} of {score.n} segments ({reasons})"
                by_reason.setdefault(text, []).append(repr(score.metric))
        lines += [f"{one.called}: {', '.join(names)} {text}" for text, names in by_reason.items()]
    return lines


def safe(text: str, isolate: bool = True) -> str:
    """Text for a terminal: control characters are shown, not obeyed; text from right to left keeps to itself."""
    shown = printable(text)
    if isolate and any(unicodedata.bidirectional(c) in ("R", "AL") for c in shown):
        return f"{ISOLATE}{shown}{END}"
    return shown


def pad(text: str, width: int, right: bool = False) -> str:
    """Text in a field as wide as the terminal will show it: Chinese takes two cells a character."""
    space = " " * max(0, width - cell_len(text))
    return space + text if right else text + space


def shorten(text: str, width: int) -> str:
    """Text that takes at most `width` cells, with an ellipsis if something was left out."""
    if cell_len(text) <= width:
        return text
    if text.startswith(ISOLATE):
        return ISOLATE + shorten(text[1:-1], width) + END
    return set_cell_size(text, max(0, width - 1)).rstrip() + "…" if width > 0 else ""
