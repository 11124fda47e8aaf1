# SPDX-License-Identifier: Apache-2.0
"""From a log on the command line to its scores, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lagging.cli.common import Talk
from lagging.cli.longform import Cutting
from lagging.conventions import Convention
from lagging.defaults import default_metrics
from lagging.errors import DataError, Fault, UsageError
from lagging.formats import scan
from lagging.metrics import Metric, metric, split_names
from lagging.run import TIMES, Run
from lagging.scoring import DEFAULT_METRICS, LONGFORM_METRICS, Keep, Score, Scorer, Scores
from lagging.signature import differing

if TYPE_CHECKING:
    from lagging.parallel import Spread

__all__ = ["columns_of", "distinct", "named_metrics", "parts_of", "say_unlike", "scored"]


def named_metrics(names: Iterable[str]) -> list[str | Metric]:
    """The metrics of `-m`, which may be repeated; a wrong name is told before a log is read."""
    names = list(names)
    if any(not split_names(text) for text in names):
        raise UsageError("-m was given without a metric")
    return [metric(name) for text in names for name in split_names(text)]


def parts_of(
    path: str,
    name: str | None,
    asked: list[str | Metric],
    chosen: Convention,
    cutting: Cutting,
    how: dict[str, Any],
) -> Iterator[Run]:
    """The parts of a log; of one whose streams are to be cut, or that is to be given texts, all of it."""
    metrics = [chosen.settle(metric(m)) for m in asked or (*DEFAULT_METRICS, *LONGFORM_METRICS)]
    if not cutting.asked:
        yield from scan(path, columns=columns_of(asked, chosen), name=name, **how)
        return
    clocks = {str(m.get("clock")) for m in metrics if m.has("clock")} & TIMES.keys()
    yield cutting.cut(cutting.read(path, name, how), how["strip"], clocks=sorted(clocks)).run


def columns_of(asked: list[str | Metric], chosen: Convention) -> set[str]:
    """What of a log is to be read: what the metrics need, and what intervals may go by."""
    metrics = [chosen.settle(metric(m)) for m in asked or (*DEFAULT_METRICS, *LONGFORM_METRICS)]
    return {"document", *(column for m in metrics for column in m.columns)}


def scored(
    parts: Iterable[Run],
    asked: list[str | Metric],
    chosen: Convention,
    said: set[str] | None,
    peers: bool = False,
    shared: Spread | None = None,
    keep: Keep = "all",
) -> tuple[Scores, Score | None]:
    """The scores of one log; beside them, if asked for and it is not to be compared, AL as SimulEval would count it.

    What was recognised is said once: `said` holds what was; None if nothing is to be said. A log that is shared out is
    scored by several processes, once its first part has told by which metrics; if that fails, in order.
    """
    scorer, peer, system = None, None, ""
    for part in parts:
        if scorer is None:
            system = part.name
            if said is not None and part.origin.description not in said:
                Talk().say(f"{system}: {part.origin.description}")
                said.add(part.origin.description)
            scorer = Scorer(asked or default_metrics(part), chosen, keep=keep)
            told = peers and said is not None and chosen.name == "paper"
            if told and part.reference is not None and metric("AL") in scorer.metrics and part.seg == "none":
                peer = Scorer(["AL"], "simuleval", keep="sums")
            if shared is not None and shared.fill([s for s in (scorer, peer) if s is not None]):
                break
        scorer.add(part)
        if peer is not None:
            peer.add(part)
    if scorer is None:
        raise DataError(Fault("nothing-given"))
    return scorer.result(system), None if peer is None else peer.result()["AL"]


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
