# SPDX-License-Identifier: Apache-2.0
"""Score a log in one process, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from lagging.data.run import Run
from lagging.errors import DataError, Fault, UsageError
from lagging.metrics import Metric
from lagging.metrics.conventions import Convention
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.part import Part
from lagging.scoring.plan import Plan
from lagging.scoring.scores import Scores

if TYPE_CHECKING:
    from lagging.scoring.processes import ParallelLog

__all__ = ["accumulate", "score"]


def accumulate(
    parts: Iterable[Run],
    plans: Callable[[Run], Sequence[Plan]],
    *,
    parallel: ParallelLog | None = None,
    on_part: Callable[[Part], None] | None = None,
) -> list[Accumulator]:
    """Score a log: the one way from parts of a log to their scores.

    Args:
        parts: the log.
        plans: what to score, decided by the first part.
        parallel: the same log divided among processes, which score it if they can.
        on_part: called with each part once the first Plan has scored it.

    Returns:
        An Accumulator for each Plan.

    Raises:
        DataError: there is no part.
    """
    accumulators: list[Accumulator] = []
    for part in parts:
        if not accumulators:
            accumulators = [Accumulator(plan.resolve(part)) for plan in plans(part)]
            if parallel is not None and parallel.score(accumulators):
                break
        for position, accumulator in enumerate(accumulators):
            accumulator.add(part, on_part if position == 0 else None)
    if not accumulators:
        raise DataError(Fault("nothing-given"))
    return accumulators


def score(
    run: Run | Iterable[Run],
    metrics: Iterable[str | Metric] | str | None = None,
    *,
    convention: str | Convention = "paper",
) -> Scores:
    """Score a Run, or a Run that comes in parts.

    Args:
        run: a Run, or an iterator over its parts such as `lagging.scan` returns.
        metrics: names or Metric records; if not given those of `lagging score`: AP, AL, LAAL and DAL, and BLEU where
            there are references.
        convention: "paper" (default), "simuleval" or "omnisteval"; shows in the signatures by its effects.

    Returns:
        Scores, by metric.

    Raises:
        MetricError: a metric is unknown, or cannot be computed on this Run.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[4, 5, 5, 5, 5], [4, 4, 4, 4, 5]], source_length=[5, 5])
        >>> scores = lagging.score(run, ["AL", "DAL"])
        >>> scores["AL"].value, scores["AL"].segments, scores["DAL"].value
        (3.1, array([4. , 2.2]), 4.0)
        >>> print(scores["DAL"].signature)
        DAL|unit:token|length:hypothesis|clock:ideal|level:token|empty:nan|seg:none|mean:segment|n:2|v:0.2.0.dev0
    """
    if isinstance(run, str | PathLike):
        raise UsageError(f"score takes a Run: lagging.score(lagging.read({str(run)!r}), …)")
    accumulator = Accumulator(Plan.make(metrics, convention))
    system = ""
    for part in [run] if isinstance(run, Run) else run:
        accumulator.add(part)
        system = part.name
    return accumulator.scores(system)
