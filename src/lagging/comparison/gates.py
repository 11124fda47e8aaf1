# SPDX-License-Identifier: Apache-2.0
"""Gates for continuous integration: conditions under which a result is to fail, such as `DAL>5` or `AL.high>2000`.

    [SYSTEM:]METRIC[.low|.high|.undefined] >|>=|<|<= NUMBER

A gate names what must not be. Numbers are in the unit of the log (milliseconds for speech). Without a system it is of
all of them. `.low` and `.high` are the ends of the interval, `.undefined` is the number of segments without a value.
What is undefined never passes a gate.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lagging.comparison.paired import Pair, verdict
from lagging.data.units import COUNTED
from lagging.errors import MetricNameError, UsageError, did_you_mean
from lagging.metrics import Metric, metric, metric_among
from lagging.scoring.scores import Score, Scores

__all__ = ["Gate", "failed", "gate", "worse"]

GATE = re.compile(r"(?:(?P<system>.+):)?(?P<metric>\s*+[^\s:<>][^:<>]*+)(?P<sign>[<>]=?+)(?P<limit>[^<>=]++)")
PARTS = ("low", "high", "undefined")
"""What of a score a gate may be about, if not about its value."""
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
        metric: its name, as it is written.
        of: "value", "low", "high" or "undefined".
        sign, limit: the comparison that must not be true.
        system: whose; None for all systems.
    """

    metric: str
    of: str
    sign: str
    limit: float
    system: str | None = None

    def __str__(self) -> str:
        """As it is written."""
        whose = "" if self.system is None else f"{self.system}:"
        return f"{whose}{self.metric}{'' if self.of == 'value' else '.' + self.of}{self.sign}{self.limit:.15g}"

    @property
    def needs_interval(self) -> bool:
        """Whether it is about an end of the interval."""
        return self.of in ("low", "high")

    def find(self, metrics: Sequence[Metric]) -> Metric:
        """Its metric among those that were scored, which need not be registered.

        Raises:
            UsageError: it is not among them.
        """
        found = metric_among(self.metric, metrics)
        if found not in metrics:
            there = ", ".join(map(repr, metrics))
            raise UsageError(f"the gate {self} is about {found!r}, which was not scored; these were: {there}")
        return found

    def failure(self, score: Score, system: str) -> str | None:
        """Why a score fails, in a sentence; None if it passes."""
        what = f"{self.metric}{'' if self.of == 'value' else '.' + self.of} of {system}"
        value = {"value": score.value, "low": score.low, "high": score.high, "undefined": int(score.undefined)}[self.of]
        if value is None or math.isnan(value):
            return f"{self}: {what} is undefined, and what is undefined passes no gate"
        if not SIGNS[self.sign](value, self.limit):
            return None
        unit = "" if self.of == "undefined" else COUNTED.get(score.unit, "")
        return f"{self}: {what} is {value:.6g} {unit}".rstrip()


def gate(text: str) -> Gate:
    """The gate written as `text`.

    Example:
        >>> gate("DAL>5"), gate("base:AL(length=reference).high >= 2e3").system
        (Gate(metric='DAL', of='value', sign='>', limit=5.0, system=None), 'base')

    Raises:
        UsageError: it is not written like a gate.
    """
    found = GATE.fullmatch(text.strip())
    try:
        limit = float(found["limit"]) if found is not None else math.nan
    except ValueError:
        limit = math.nan
    if found is None or not math.isfinite(limit):
        raise UsageError(
            f"cannot read the gate {text!r}\n"
            "  It looks like 'DAL>5', 'AL.high>2000', 'BLEU<20' or 'new:DAL.undefined>0'; quote it in the shell."
        )
    name, _, of = found["metric"].strip().rpartition(".")
    name, of = (name.rstrip(), of) if name and of in PARTS else (found["metric"].strip(), "value")
    return Gate(name, of, found["sign"], limit, found["system"])


def failed(gates: Iterable[Gate], results: Sequence[Scores]) -> list[str]:
    """A sentence for each gate and system that fails.

    Raises:
        UsageError: a gate is about a metric that was not scored, or a system that there is not.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[4, 4, 4, 4, 5], []], source_length=[5, 5], name="new")
        >>> for said in failed([gate("AL>2"), gate("DAL>5"), gate("DAL.undefined>0")], [lagging.score(run)]):
        ...     print(said)
        AL>2: AL of new is 2.2 tokens
        DAL.undefined>0: DAL.undefined of new is 1
    """
    said = []
    names = [scores.system for scores in results]
    for one in gates:
        if one.system is not None and one.system not in names:
            raise UsageError(f"the gate {one} is about a system that there is not.{did_you_mean(one.system, names)}")
        for scores in results:
            if one.system in (None, scores.system):
                of = one.find([score.metric for score in scores])
                said.append(one.failure(scores[of], scores.called))
    return [sentence for sentence in said if sentence is not None]


def worse(pairs: Iterable[Pair], alpha: float) -> list[str]:
    """A sentence for each pair whose b is significantly worse than its a, or could not be tested.

    Args:
        pairs: what systems are against a base, such as `Comparison.against` gives.
        alpha: below which a corrected p-value is significant.
    """
    said = []
    for pair in pairs:
        if pair.metric.higher_is_better is None:
            continue
        found = verdict(pair, alpha)
        values = f"{pair.value_b:.6g}, not {pair.value_a:.6g}; corrected p = {pair.p_adjusted:.4g}"
        if found == "worse":
            said.append(f"{pair.b} is significantly worse than {pair.a} in {pair.metric!r}: {values}")
        elif found == "untested":
            why = pair.reason or "no p-value"
            said.append(f"{pair.b} could not be tested against {pair.a} in {pair.metric!r}: {why}")
    return said


def check_names(gates: Iterable[Gate], asked: Sequence[str | Metric] = (), columns: Iterable[str] = ()) -> None:
    """Refuse, before a log is read, gates about metrics that do not exist, or will not be scored.

    Args:
        gates: the gates.
        asked: the metrics that were asked for; none if the log decides.
        columns: names of metrics that come from files.
    """
    given, metrics = set(columns), [metric(m) for m in asked]
    for one in gates:
        if one.metric not in given:
            try:
                found = metric(one.metric)
            except MetricNameError as error:
                raise UsageError(f"the gate {one}: {error}") from None
            one.find(metrics or [found])
