# SPDX-License-Identifier: Apache-2.0
"""A verdict on degeneracy: whether the latency of a system says what it seems to say, by named thresholds.

A system is *degenerate* where its AL is low, or its log is that of a simultaneous system, without its being early:
most of its lag is hidden from AL, or nearly nothing is written before the source has ended. It is *suspicious* where
this holds in part, and *sound* otherwise. `docs/degeneracy.md` explains what is measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lagging.data.run import Run
from lagging.metrics import metric
from lagging.metrics.conventions import Convention
from lagging.scoring.plan import Plan
from lagging.scoring.scores import Score, Scores

__all__ = ["THRESHOLDS", "VERDICT_METRICS", "Threshold", "Verdict", "judge", "verdict_plan"]


@dataclass(frozen=True)
class Threshold:
    """From which value on a metric makes a system suspicious, and from which on degenerate.

    Attributes:
        metric: the name of the metric.
        suspicious, degenerate: the two values; above them, or below them if `suspicious` is the larger one.
        reason: what such a value means; `{}` is the value in percent.
        talks: whether it holds of segments that were cut from whole talks, too.
    """

    metric: str
    suspicious: float
    degenerate: float
    reason: str
    talks: bool = False

    def verdict(self, value: float) -> str:
        """`sound`, `suspicious` or `degenerate`."""
        sign = 1 if self.degenerate > self.suspicious else -1
        if math.isnan(value) or sign * value < sign * self.suspicious:
            return "sound"
        return "degenerate" if sign * value >= sign * self.degenerate else "suspicious"


THRESHOLDS = (
    Threshold("HiddenShare", 0.25, 0.5, "AL hides {:.0f} % of the lag that DAL counts", talks=True),
    Threshold("Offline", 0.5, 0.9, "{:.0f} % of the segments are written after their source has ended"),
    Threshold("SWF", 50.0, 10.0, "{:.0f} % of the words are written before their source has ended"),
)
"""By which a system is judged; the worst of them counts."""
VERDICT_METRICS = tuple(threshold.metric for threshold in THRESHOLDS)
"""The metrics that the verdict is made of."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on a system.

    Attributes:
        system: its name.
        verdict: "sound", "suspicious" or "degenerate".
        reasons: why, worst first; empty for a sound system.
        values: the numbers behind it, by metric.
    """

    system: str
    verdict: str
    reasons: tuple[str, ...]
    values: Mapping[str, float]

    def __str__(self) -> str:
        """`new: degenerate: AL hides 52 % of the lag that DAL counts`."""
        return ": ".join(filter(None, (self.system, self.verdict, "; ".join(self.reasons))))

    @property
    def numbers(self) -> str:
        """`HiddenShare 0.517, Offline 0.085, SWF 32.9`."""
        return ", ".join(f"{name} {value:.3g}" for name, value in self.values.items() if not math.isnan(value))


def verdict_plan(first: Run, convention: str | Convention = "paper") -> Plan | None:
    """A Plan for the scores that a verdict is made of; None for a log without delays."""
    return None if first.unit == "none" else Plan.make(VERDICT_METRICS, convention, keep="sums")


def judge(scores: Scores | Mapping[str, Score], system: str = "") -> Verdict:
    """Judge a system by its scores of `VERDICT_METRICS`.

    Args:
        scores: the scores, by metric.
        system: the name of the system; that of the Scores by default.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[4, 4, 4, 4, 5], [5, 5, 5, 5, 5]], source_length=[5, 5], name="new")
        >>> print(judge(lagging.score(run, VERDICT_METRICS)))
        new: suspicious: 50 % of the segments are written after their source has ended; 40 % of the words are written \
before their source has ended
    """
    name = system or (scores.system if isinstance(scores, Scores) else "")
    values, judged = {}, []
    for threshold in THRESHOLDS:
        score = scores[metric(threshold.metric)] if isinstance(scores, Scores) else scores[threshold.metric]
        values[threshold.metric] = score.value
        if threshold.talks or score.signature.get("seg") == "none":
            judged.append(
                (
                    threshold.verdict(score.value),
                    threshold.reason.format(score.value * (1 if score.unit == "points" else 100)),
                )
            )
    for verdict in ("degenerate", "suspicious"):
        reasons = [reason for word, reason in judged if word == verdict]
        if reasons:
            others = [reason for word, reason in judged if word == "suspicious" and verdict == "degenerate"]
            return Verdict(name, verdict, (*reasons, *others), values)
    return Verdict(name, "sound", (), values)
