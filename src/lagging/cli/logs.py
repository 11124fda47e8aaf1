# SPDX-License-Identifier: Apache-2.0
"""From a log on the command line to its scores, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lagging.cli.common import Talk
from lagging.cli.longform import Cutting
from lagging.data.run import TIMES, Run
from lagging.errors import UsageError
from lagging.formats import scan
from lagging.metrics import Metric, metric, split_names
from lagging.scoring.plan import Plan
from lagging.scoring.scores import Scores
from lagging.scoring.serial import accumulate
from lagging.scoring.signature import differing

__all__ = ["Announcer", "distinct", "named_metrics", "parts_of", "say_unlike", "score_log"]


def named_metrics(names: Iterable[str]) -> list[str | Metric]:
    """The metrics of `-m`, which may be repeated; a wrong name is told before a log is read."""
    names = list(names)
    if any(not split_names(text) for text in names):
        raise UsageError("-m was given without a metric")
    return [metric(name) for text in names for name in split_names(text)]


def parts_of(
    path: str, name: str | None, plan: Plan, cutting: Cutting, how: dict[str, Any], **more: Any
) -> Iterator[Run]:
    """The parts of a log; of one whose streams are to be cut, or that is to be given texts, all of it."""
    if not cutting.asked:
        yield from scan(path, columns=plan.columns, name=name, **how, **more)
        return
    clocks = {str(m.get("clock")) for m in plan.resolved_metrics.values() if m.has("clock")} & TIMES.keys()
    yield cutting.cut(cutting.read(path, name, how), how["strip"], clocks=sorted(clocks)).run


class Announcer:
    """Says what each log was recognised as, once for each description."""

    def __init__(self, talk: Talk) -> None:
        self._talk, self._descriptions = talk, set[str]()

    def announce(self, run: Run) -> None:
        """Say what the log of this Run was recognised as, unless that was said before."""
        if run.origin.description not in self._descriptions:
            self._talk.say(f"{run.name}: {run.origin.description}")
            self._descriptions.add(run.origin.description)


def score_log(parts: Iterable[Run], plan: Plan, announcer: Announcer) -> Scores:
    """The scores of one log."""
    names: list[str] = []

    def plans(first: Run) -> list[Plan]:
        announcer.announce(first)
        names.append(first.name)
        return [plan]

    (accumulator,) = accumulate(parts, plans)
    return accumulator.scores(names[0])


def say_unlike(results: Sequence[Scores], talk: Talk) -> None:
    """Say where scores that stand side by side were not made alike."""
    for scores in results[1:]:
        for score in scores:
            base = next((one for one in results[0] if one.metric == score.metric), None)
            if base is not None and (differ := differing(base.signature, score.signature)):
                both = f"{results[0].system} and {scores.system}"
                talk.say(f"note: {score.metric} of {both} cannot be compared: {', '.join(differ)}")


def distinct(results: list[Scores], paths: list[str]) -> list[Scores]:
    """Systems that would share a name are called by their paths."""
    names = [scores.system for scores in results]
    for scores, path in zip(results, paths, strict=True):
        if names.count(scores.system) > 1:
            scores.system = path
    for place, scores in enumerate(results):
        before = sum(other.system == scores.system for other in results[:place])
        scores.system += f" ({before + 1})" if before else ""
    return results
