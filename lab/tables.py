# SPDX-License-Identifier: Apache-2.0
"""What was kept, as tables of Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from lab.results import HIDDEN, METRICS, Result
from lagging.comparison.derivations import Derived
from lagging.curves import Curves
from lagging.curves.slopes import Lines
from lagging.scoring.intervals import interval

__all__ = [
    "agreement",
    "ceiling",
    "families",
    "hidden",
    "reach",
    "settings",
    "several",
    "signatures",
    "slopes",
    "steeper",
    "table",
    "worst",
]


ORDER = ("offline", "wait-k", "wait-k with catch-up", "wait-if-worse", "wait-if-diff", "MILk")
"""In which order families are shown; others come after them."""


def families(results: Iterable[Result]) -> dict[str, list[Result]]:
    """The settings of each family, from the fastest to the slowest."""
    by_family: dict[str, list[Result]] = {name: [] for name in ORDER}
    for result in sorted(results, key=lambda one: (one.setting.family, one.scores["DAL"].value)):
        by_family.setdefault(result.setting.family, []).append(result)
    return {name: members for name, members in by_family.items() if members}


def several(results: Iterable[Result]) -> dict[str, list[Result]]:
    """The families of which there is more than one setting."""
    return {name: members for name, members in families(results).items() if len(members) > 1}


def _named(results: Iterable[Result]) -> Iterable[tuple[str, Result]]:
    for family, members in families(results).items():
        for one in members:
            yield family if family == one.setting.label else f"{family}, {one.setting.label}", one


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """All columns but the first are to the right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _within(value: float, low: float | None, high: float | None, digits: int = 2) -> str:
    """`1.41 [1.38, 1.45]`."""
    shown = "–" if math.isnan(value) else f"{value:.{digits}f}"
    return shown if low is None or high is None else f"{shown} [{low:.{digits}f}, {high:.{digits}f}]"


def _bleu(one: Result, resamples: int) -> str:
    score = one.scores["BLEU"]
    estimate = interval(score, resamples=resamples)
    return _within(score.value, estimate.low, estimate.high, 1)


def _of(estimate: Derived, digits: int) -> str:
    return _within(estimate.value, estimate.low, estimate.high, digits)


def settings(results: Iterable[Result], resamples: int) -> str:
    """All settings with all metrics; BLEU with its interval."""
    rows = (
        [
            name,
            *(_within(one.scores[m].value, None, None, 3 if m == "AP" else 2) for m in METRICS),
            _bleu(one, resamples),
        ]
        for name, one in _named(results)
    )
    return table(["setting", *METRICS, "BLEU [95 %]"], rows)


def signatures(one: Result, resamples: int) -> str:
    """How the numbers were made."""
    bounds = interval(one.scores["BLEU"], resamples=resamples)
    how = f"intervals: 95 %, {bounds.method} by {bounds.resample}, {bounds.resamples} resamples, seed {bounds.seed}"
    return "\n".join(["```", *(str(score.signature) for score in one.scores), how, "```", ""])


def ceiling(tests: Mapping[str, Sequence[Result]], resamples: int) -> str:
    """BLEU on each test set: offline, and what reads the most of each family that was run on all."""
    slowest = [{family: members[-1] for family, members in families(results).items()} for results in tests.values()]
    common = [family for family in slowest[0] if all(family in members for members in slowest)]
    rows = (
        [test, *(f"{_bleu(by_family[family], resamples)} ({by_family[family].setting.label})" for family in common)]
        for test, by_family in zip(tests, slowest, strict=True)
    )
    return table(["test set", *common], rows)


def slopes(early: Lines, every: Lines) -> str:
    """The line of each family: without the settings that are nearly offline, and of all."""
    early_lines = {line.system: line for line in early.lines}
    rows = []
    for line in every.lines:
        shown = [str(len(line.curve.points)), _of(line.slope, 3)]
        few = ["0", "–", "–"]
        if one := early_lines.get(line.system):
            few = [str(len(one.curve.points)), _of(one.slope, 3), _of(one.start, 2)]
        rows.append([line.system, *few, *shown])
    heads = ["family", "settings, AP < 0.9", "slope [95 %]", "DAL where AL is 0 [95 %]", "all settings", "slope [95 %]"]
    return table(heads, rows)


def steeper(tests: Mapping[str, Lines], a: str, b: str) -> str:
    """By how much steeper the line of b is than that of a, on each test set."""
    rows = []
    for test, fitted in tests.items():
        line = {one.system: _of(one.slope, 3) for one in fitted.lines}
        (gap,) = (one for one in fitted.slope_differences if (one.a, one.b) == (a, b))
        rows.append([test, line[a], line[b], _of(gap.difference, 3), f"{gap.difference.p:.4f}"])
    return table(["test set", a, b, "difference", "p"], rows)


def reach(curves_by_latency: Mapping[str, Curves], qualities: Iterable[float]) -> str:
    """How late each curve has to be to reach a quality, by each metric of latency."""
    heads = [f"{curve.system}, {latency}" for latency, drawn in curves_by_latency.items() for curve in drawn]
    rows = (
        [
            f"{quality:.1f}",
            *(_within(at.value, at.low, at.high) for d in curves_by_latency.values() for at in d.latency_at(quality)),
        ]
        for quality in qualities
    )
    return table(["BLEU", *heads], rows)


def agreement(results: Iterable[Result]) -> str:
    """Of MILk: the latency that training expects, and the one that comes out."""
    rows = []
    for name, one in _named(results):
        if not one.trained.expected:
            continue
        by, wanted = str(one.trained.experiment["latency"]).upper(), one.trained.experiment["target"]
        last, soft, hard = one.trained.history[-1], one.trained.expected[by], one.trained.expected[f"hard {by}"]
        free = one.scores[by].value
        shown = ["" if wanted is None else f"{wanted:g}", *(f"{n:.2f}" for n in (last["latency"], soft, hard, free))]
        rows.append([name, by, f"{last['weight']:.3g}", *shown, f"{hard - soft:+.2f}", f"{free - soft:+.2f}"])
    heads = ["setting", "of", "λ", "wanted", "in training, with noise", "expected", "hard, reference", "hard, own"]
    return table([*heads, "hard − expected", "own − expected"], rows)


def hidden(results: Iterable[Result]) -> str:
    """DAL − AL of each setting, by where AL loses it."""
    rows = ([name, *(f"{one.scores[m].value:.2f}" for m in ("AL", "DAL", *HIDDEN))] for name, one in _named(results))
    return table(["setting", "AL", "DAL", "DAL − AL: free writes", "DAL − AL: tail"], rows)


def worst(results: Iterable[Result], count: int = 5) -> str:
    """The segments in which AL and DAL disagree most, of each setting that is given."""
    rows = []
    for name, one in _named(results):
        al, dal = one.scores["AL"].segments, one.scores["DAL"].segments
        for row in np.argsort(al - dal, kind="stable")[:count].tolist():
            lengths = f"{one.run.source_length[row]:.0f}", str(len(one.run.delays[row]))
            rows.append([name, str(one.run.id[row]), *lengths, f"{al[row]:.2f}", f"{dal[row]:.2f}"])
    return table(["setting", "segment", "&#124;x&#124;", "&#124;y&#124;", "AL", "DAL"], rows)
