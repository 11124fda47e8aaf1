# SPDX-License-Identifier: Apache-2.0
"""Gates for continuous integration: conditions under which a result is to fail, such as `DAL>5` or `AL.high>2s`.

    [SYSTEM:]METRIC[.low|.high|.undefined] >|>=|<|<= NUMBER[ms|s|min]

A gate is a condition that must not be true. A number without a unit is in that of the table, which is
seconds for speech. Without a system it holds for all of them. `.low` and `.high` are the ends of the interval,
`.undefined` is the number of segments without a value. A score that is undefined fails every gate.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lagging.comparison.pairs import Pair, verdict
from lagging.data.units import LARGE, SHOWN, Amount, scale
from lagging.errors import MetricNameError, Note, UsageError, did_you_mean
from lagging.metrics import Metric, metric, metric_among
from lagging.scoring.scores import Score, Scores

__all__ = ["Gate", "failed", "gate", "worse"]

GATE = re.compile(r"(?:(?P<system>.+):)?(?P<metric>\s*+[^\s:<>][^:<>]*+)(?P<sign>[<>]=?+)(?P<limit>[^<>=]++)")
PARTS = ("low", "high", "undefined")
"""The parts of a score that a gate may be about, other than its value."""
SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass(frozen=True)
class Gate:
    """A condition under which a result fails.

    Attributes:
        metric: the name of the metric, as it is written.
        part: "value", "low", "high" or "undefined".
        sign, limit: the comparison that must not be true.
        system: the name of the system; None for all systems.
        unit: the unit of the limit: "ms", "s" or "min"; empty for the unit of the table.
    """

    metric: str
    part: str
    sign: str
    limit: float
    system: str | None = None
    unit: str = ""

    def __str__(self) -> str:
        """The gate as it is written."""
        system = "" if self.system is None else f"{self.system}:"
        return f"{system}{self._name}{self.sign}{self.amount}"

    @property
    def amount(self) -> Amount:
        """The limit with its unit."""
        return Amount(self.limit, self.unit)

    @property
    def _name(self) -> str:
        """The metric, and the part of its score."""
        return self.metric if self.part == "value" else f"{self.metric}.{self.part}"

    @property
    def needs_interval(self) -> bool:
        """Whether it is about an end of the interval."""
        return self.part in ("low", "high")

    def find(self, metrics: Sequence[Metric]) -> Metric:
        """The metric of the gate among those that were scored, which need not be registered.

        Raises:
            UsageError: it is not among them.
        """
        metric = metric_among(self.metric, metrics)
        if metric not in metrics:
            scored = ", ".join(map(repr, metrics))
            raise UsageError(f"the gate {self} is about {metric!r}, which was not scored; these were: {scored}")
        return metric

    def failure(self, score: Score, system: str) -> str | None:
        """Why a score fails, in a sentence; None if it passes."""
        subject = f"{self._name} of {system}"
        values = {"value": score.value, "low": score.low, "high": score.high, "undefined": int(score.undefined)}
        value = values[self.part]
        if value is None or math.isnan(value):
            return f"{self}: {subject} is undefined, and an undefined score fails every gate"
        unit = "count" if self.part == "undefined" else score.unit
        if not SIGNS[self.sign](value, self.amount.value(unit, f"the gate {self}")):
            return None
        read = f" (read as {reading})" if (reading := self.amount.reading(unit)) else ""
        return f"{self}{read}: {subject} is {value / scale(unit):.6g} {SHOWN.get(unit, '')}".rstrip()

    def doubt(self, results: Sequence[Scores]) -> Note | None:
        """A note, if the limit has no unit and was hardly meant in seconds."""
        units = {score.unit for scores in results for score in scores if self.metric == repr(score.metric)}
        if self.part == "undefined" or not any(map(self.amount.reading, units)) or self.limit < LARGE:
            return None
        number = f"{self.limit:.15g}"
        return Note("GATE IN SECONDS", f"{self} was read as {number} s; write {number}ms if that is what it means")


def gate(text: str) -> Gate:
    """Parse a gate.

    Example:
        >>> gate("DAL>5s").amount, gate("base:AL(length=reference).high >= 2e3").system
        (Amount(number=5.0, unit='s'), 'base')

    Raises:
        UsageError: the text is not a gate.
    """
    match = GATE.fullmatch(text.strip())
    try:
        limit = Amount.parse(match["limit"] if match is not None else "", "a gate")
    except UsageError:
        limit = None
    if match is None or limit is None:
        raise UsageError(
            f"cannot read the gate {text!r}\n"
            "  It looks like 'DAL>5s', 'AL.high>2', 'BLEU<20' or 'new:DAL.undefined>0'; quote it in the shell."
        )
    name, _, part = match["metric"].strip().rpartition(".")
    if not name or part not in PARTS:
        name, part = match["metric"].strip(), "value"
    return Gate(name.rstrip(), part, match["sign"], limit.number, match["system"], limit.unit)


def failed(gates: Iterable[Gate], results: Sequence[Scores]) -> list[str]:
    """A sentence for each gate and system that fails.

    Raises:
        UsageError: a gate is about a metric that was not scored, or a system that does not exist.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[4, 4, 4, 4, 5], []], source_length=[5, 5], name="new")
        >>> for sentence in failed([gate("AL>2"), gate("DAL>5"), gate("DAL.undefined>0")], [lagging.score(run)]):
        ...     print(sentence)
        AL>2: AL of new is 2.2 tokens
        DAL.undefined>0: DAL.undefined of new is 1
    """
    failures = []
    names = [scores.system for scores in results]
    for each in gates:
        if each.system is not None and each.system not in names:
            raise UsageError(f"the gate {each} is about an unknown system.{did_you_mean(each.system, names)}")
        for scores in results:
            if each.system in (None, scores.system):
                m = each.find([score.metric for score in scores])
                failures.append(each.failure(scores[m], scores.called))
    return [sentence for sentence in failures if sentence is not None]


def worse(pairs: Iterable[Pair], alpha: float) -> list[str]:
    """A sentence for each pair whose b is significantly worse than its a, or could not be tested.

    Args:
        pairs: the systems compared with a base, as `Comparison.against` returns them.
        alpha: a corrected p-value is significant below it.
    """
    sentences = []
    for pair in pairs:
        if pair.metric.higher_is_better is None:
            continue
        result = verdict(pair, alpha)
        values = f"{pair.value_b:.6g}, not {pair.value_a:.6g}; corrected p = {pair.p_adjusted:.4g}"
        if result == "worse":
            sentences.append(f"{pair.b} is significantly worse than {pair.a} in {pair.metric!r}: {values}")
        elif result == "untested":
            reason = pair.reason or "no p-value"
            sentences.append(f"{pair.b} could not be tested against {pair.a} in {pair.metric!r}: {reason}")
    return sentences


def check_names(gates: Iterable[Gate], requested: Sequence[str | Metric] = (), columns: Iterable[str] = ()) -> None:
    """Refuse, before a log is read, gates about metrics that do not exist, or will not be scored.

    Args:
        gates: the gates.
        requested: the metrics that were requested; none if the log decides.
        columns: the names of metrics that are read from files.
    """
    read, metrics = set(columns), [metric(m) for m in requested]
    for each in gates:
        if each.metric not in read:
            try:
                named = metric(each.metric)
            except MetricNameError as error:
                raise UsageError(f"the gate {each}: {error}") from None
            each.find(metrics or [named])
