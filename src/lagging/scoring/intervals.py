# SPDX-License-Identifier: Apache-2.0
"""Scores with intervals: from what an Accumulator holds, by the method that fits it."""

from __future__ import annotations

from collections.abc import Sequence

from lagging.errors import SHOWN, Note, counted
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.plan import IntervalSettings, default_resample
from lagging.scoring.poisson import RESAMPLES as POISSON_RESAMPLES
from lagging.scoring.scores import Scores
from lagging.stats import RESAMPLES, with_intervals
from lagging.stats.intervals import FEW, few

__all__ = ["finish_scores", "group_notes"]


def finish_scores(accumulator: Accumulator, system: str, interval: IntervalSettings | None) -> list[Scores]:
    """The Scores of a system, one for each group; with intervals, if these are requested.

    Example:
        >>> import lagging
        >>> from lagging.scoring.plan import Plan
        >>> accumulator = Accumulator(Plan.make(["AP"]))
        >>> accumulator.add(lagging.Run.from_delays([[k, 5, 5] for k in (1, 2, 3, 4, 5)], source_length=[5] * 5))
        >>> (scores,) = finish_scores(accumulator, "wait", IntervalSettings())
        >>> round(scores["AP"].low, 4), round(scores["AP"].high, 4)
        (0.7867, 0.9467)
    """
    if accumulator.plan.summary:
        settings = interval or IntervalSettings()
        groups = list(
            accumulator.group_scores(
                system, confidence=settings.confidence, resamples=settings.resamples or POISSON_RESAMPLES
            )
        )
        if groups:
            groups[0].notes = (*accumulator.all_notes(), *(group_notes(groups) if interval is not None else ()))
        return groups
    scores = accumulator.scores(system)
    return [scores if interval is None else add_intervals(scores, interval)]


def add_intervals(scores: Scores, interval: IntervalSettings) -> Scores:
    """Scores whose segments are kept, with intervals."""
    return with_intervals(
        scores,
        by=interval.resample or default_resample(scores),
        level=interval.confidence,
        method=interval.method,
        resamples=interval.resamples or RESAMPLES,
        seed=interval.seed,
    )


def group_notes(groups: Sequence[Scores]) -> list[Note]:
    """Notes about groups without an interval, and about groups of so few segments that it is too narrow."""
    notes = []
    without = [scores.called for scores in groups if any(score.low is None for score in scores)]
    if without:
        notes.append(Note("interval", f"{_list(without)}: there is none: too few segments, or all alike"))
    sizes = [
        (scores.called, min((s.n - s.undefined for s in scores if s.low is not None), default=FEW)) for scores in groups
    ]
    small = [(name, n) for name, n in sizes if n < FEW]
    if small:
        names = _list([f"{name}: {counted(n, 'segment')}" for name, n in small])
        notes.append(few(min(n for _, n in small), "segment", f"{names}: " if groups[0].group else ""))
    return notes


def _list(names: Sequence[str]) -> str:
    return f"{', '.join(names[:SHOWN])}{' …' * (len(names) > SHOWN)}"
