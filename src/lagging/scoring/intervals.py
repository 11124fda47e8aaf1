# SPDX-License-Identifier: Apache-2.0
"""Scores with intervals: from their segments, or from what an Accumulator holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lagging.errors import SHOWN, Note, counted, merge_notes
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.estimators import score_estimator, score_units
from lagging.scoring.percentiles import note_bound
from lagging.scoring.plan import IntervalSettings, default_resample
from lagging.scoring.poisson import RESAMPLES as POISSON_RESAMPLES
from lagging.scoring.scores import Score, Scores, sign_interval
from lagging.stats import RESAMPLES, SEED, Interval, Units, default_method, note_few_units
from lagging.stats import intervals as bootstrap_intervals
from lagging.stats.intervals import FEW, check_options

__all__ = ["finish_scores", "group_notes", "interval", "intervals", "sign_intervals", "with_intervals"]


def interval(
    score: Score,
    *,
    resample: str = "segment",
    confidence: float = 0.95,
    method: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval:
    """A bootstrap interval of a Score; see `lagging.stats.intervals` for the methods.

    Args:
        score: a Score whose segments are kept.
        resample: "segment" or "document".
        confidence: 0.95 for 95 %.
        method: "bca" for segments and "wild" for documents, by default.
        resamples: the number of resamples.
        seed: the seed of the random numbers; the same seed gives the same interval everywhere.

    Returns:
        An Interval. Its ends are NaN where fewer than two units have a value, or where the metric is no function of
        sums; both are the value itself where all resamples have the same value.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[k, 5, 5] for k in (1, 2, 3, 4, 5)], source_length=[5] * 5)
        >>> ends = interval(lagging.score(run, ["AP"])["AP"])
        >>> round(ends.low, 4), round(ends.high, 4), ends.method
        (0.7867, 0.9467, 'bca')
    """
    return intervals([score], resample=resample, confidence=confidence, method=method, resamples=resamples, seed=seed)[
        0
    ]


def intervals(
    scores: Iterable[Score],
    *,
    resample: str = "segment",
    confidence: float = 0.95,
    method: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Interval, ...]:
    """The intervals of several Scores of the same segments, on the same resamples; see `interval`."""
    scores = list(scores)
    for score in scores:
        score.check_segments()
    if not scores:
        return ()
    method = default_method(resample) if method is None else method
    check_options(method, resample, confidence, resamples)
    units = Units.in_order(scores[0].n) if method == "sacrebleu" else score_units(scores[0], resample)
    return bootstrap_intervals(
        [score.value for score in scores],
        [score_estimator(score, units) for score in scores],
        units,
        confidence=confidence,
        method=method,
        resamples=resamples,
        seed=seed,
    )


def with_intervals(
    scores: Scores,
    *,
    resample: str = "segment",
    confidence: float = 0.95,
    method: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Scores:
    """The Scores with `low` and `high`, and with how these were made in the signatures; see `interval`.

    A Score without an interval has None, and a note says why.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[k, 5, 5] for k in (1, 2, 3, 4, 5)], source_length=[5] * 5)
        >>> score = with_intervals(lagging.score(run, ["AP"]))["AP"]
        >>> round(score.low, 4), round(score.value, 4), round(score.high, 4)
        (0.7867, 0.8667, 0.9467)
        >>> [str(score.signature.get(key)) for key in ("ci", "by", "method", "bs", "seed")]
        ['95', 'segment', 'bca', '10000', '12345']
    """
    ends = intervals(scores, resample=resample, confidence=confidence, method=method, resamples=resamples, seed=seed)
    return sign_intervals(list(scores), ends, scores.system, scores.notes)


def sign_intervals(
    scores: Sequence[Score], intervals: Sequence[Interval], system: str, notes: Sequence[Note]
) -> Scores:
    """The Scores with their intervals, and a note for each that has none, no width, or too few units.

    Beside the interval of a percentile, a note has its binomial bound.
    """
    signed, notes = [], list(notes)
    for score, interval in zip(scores, intervals, strict=True):
        if interval.reason:
            what = "there is none" if np.isnan(interval.low) else "it has no width"
            notes.append(Note("interval", f"{score.metric!r}: {what}: {interval.reason}"))
        if (note := interval.too_few) is not None:
            notes.append(note)
        if (note := note_bound(score, interval.confidence)) is not None:
            notes.append(note)
        signed.append(sign_interval(score, interval))
    return Scores(signed, system, merge_notes(notes))


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
        resample=interval.resample or default_resample(scores),
        confidence=interval.confidence,
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
        notes.append(note_few_units(min(n for _, n in small), "segment", f"{names}: " if groups[0].group else ""))
    return notes


def _list(names: Sequence[str]) -> str:
    return f"{', '.join(names[:SHOWN])}{' …' * (len(names) > SHOWN)}"
