# SPDX-License-Identifier: Apache-2.0
"""The segments that several systems have in common: matched by id, and the others are listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from lagging.data.hashes import short_hash
from lagging.data.ragged import Ints, Ragged
from lagging.data.run import Texts
from lagging.errors import DataError, Fault, MetricError, UsageError
from lagging.metrics import Metric, metric_among
from lagging.metrics.record import missing
from lagging.scoring.estimators import score_estimator, score_units
from lagging.scoring.scores import Score, Scores, Undefined
from lagging.stats import JointEstimators, Units
from lagging.stats.resamples import order

__all__ = ["UNDEFINED_ELSEWHERE", "Matched", "match", "on_common_segments"]

UNDEFINED_ELSEWHERE = "no value in another system"
"""Why a segment that has a value is not counted: another system has none."""


@dataclass(frozen=True, eq=False)
class Matched:
    """The scores of several systems on the segments that all of them have.

    Attributes:
        systems: the names of the systems.
        metrics: the metrics by which they are compared.
        scores: of each system, a Score per metric; all of the same segments in the same order.
        unmatched: of each system, the ids of the segments that not all other systems have.
    """

    systems: tuple[str, ...]
    metrics: tuple[Metric, ...]
    scores: tuple[tuple[Score, ...], ...]
    unmatched: dict[str, tuple[Any, ...]]

    @property
    def n(self) -> int:
        """Number of segments that all systems have."""
        return self.scores[0][0].n

    def estimators(self, resample: str = "segment", base: str | None = None) -> JointEstimators:
        """The estimators of all systems and metrics, with all pairs of systems, or those with a base."""
        first = self.scores[0][0]
        units = Units.in_order(first.n) if resample == "segment" else score_units(first, resample)
        pairs = list(combinations(range(len(self.systems)), 2))
        if base is not None:
            index = self.systems.index(base)
            pairs = [(index, other) for other in range(len(self.systems)) if other != index]
        return JointEstimators.make(
            units,
            np.array([[score.value for score in scores] for scores in self.scores]),
            [[score_estimator(scores[m], units) for scores in self.scores] for m in range(len(self.metrics))],
            pairs,
        )


def match(
    systems: Mapping[str, Scores],
    metrics: Iterable[str | Metric] | None = None,
    *,
    resample: str = "segment",
    in_order: bool = False,
) -> Matched:
    """Find the segments that all of several systems have, and list the others.

    By each metric, a segment in which one of the systems has no value is undefined in all of them.

    Args:
        systems: Scores by system.
        metrics: the metrics to compare by; all that every system has, by default.
        resample: "document" if the systems must agree on the documents too.
        in_order: keep the order of the first system's log; else segments are in the order of resampling.

    Raises:
        UsageError: fewer than two systems, no metric, or documents that differ.
        DataError: no segment in common.

    Example:
        >>> import lagging
        >>> def scores(ids):
        ...     return lagging.score(lagging.Run.from_delays([[1]] * len(ids), source_length=[2] * len(ids), id=ids))
        >>> matched = match({"base": scores(["b", "a", "x"]), "new": scores(["a", "b"])}, ["AL"])
        >>> matched.scores[0][0].ids.tolist(), matched.unmatched
        (['a', 'b'], {'base': ('x',), 'new': ()})
    """
    if len(systems) < 2:
        raise UsageError("a comparison needs at least two systems")
    return on_common_segments(systems, metrics, resample=resample, in_order=in_order)


def on_common_segments(
    systems: Mapping[str, Scores],
    metrics: Iterable[str | Metric] | None = None,
    *,
    resample: str = "segment",
    in_order: bool = False,
) -> Matched:
    """The same as `match`, for a single system too: all of its segments."""
    for scores in systems.values():
        for score in scores:
            score.check_segments()
    compared = _compared_metrics(systems, metrics)
    names = {system: [str(name) for name in next(iter(scores)).ids.tolist()] for system, scores in systems.items()}
    common = set.intersection(*(set(ids) for ids in names.values()))
    if not common:
        raise DataError(Fault("no-common-segment", ", ".join(systems)))
    for system, ids in names.items():
        twice = next((name for name, times in Counter(ids).items() if times > 1), None)
        if twice is not None:
            raise UsageError(f"{system} has the segment {twice!r} twice: it cannot be matched")
    kept = [name for name in next(iter(names.values())) if name in common]
    if not in_order:
        kept = [kept[row] for row in order(kept)]
    rows = {}
    for system, ids in names.items():
        row_of = {name: row for row, name in enumerate(ids)}
        rows[system] = np.array([row_of[name] for name in kept], dtype=np.int64)
    documents = _documents(systems, rows) if resample == "document" else None
    by_system = [
        [_take_segments(scores[m], rows[system], documents) for m in compared] for system, scores in systems.items()
    ]
    by_metric = [_drop_undefined(scores) for scores in zip(*by_system, strict=True)]
    matched = tuple(
        tuple(_sign(scores[m], score) for m, score in zip(compared, row, strict=True))
        for scores, row in zip(systems.values(), zip(*by_metric, strict=True), strict=True)
    )
    unmatched = {
        system: tuple(name for name in next(iter(scores)).ids.tolist() if str(name) not in common)
        for system, scores in systems.items()
    }
    return Matched(tuple(systems), compared, matched, unmatched)


def _compared_metrics(systems: Mapping[str, Scores], metrics: Iterable[str | Metric] | None) -> tuple[Metric, ...]:
    scored = {system: [score.metric for score in scores] for system, scores in systems.items()}
    first = next(iter(scored.values()))
    if metrics is None:
        common = tuple(m for m in first if all(m in known for known in scored.values()))
        if not common:
            raise UsageError(f"{' and '.join(systems)} have no metric in common")
        return common
    requested = tuple(dict.fromkeys(metric_among(m, first) for m in metrics))
    for m in requested:
        for system, known in scored.items():
            if m not in known:
                raise MetricError(f"{m!r} of {system} was not scored; these were: {', '.join(map(repr, known))}")
    if not requested:
        raise UsageError("no metric was asked for")
    return requested


def _documents(systems: Mapping[str, Scores], rows: Mapping[str, Ints]) -> Texts | None:
    """The documents of the segments, from the first system that has any; all systems that have any must agree."""
    first: tuple[str, Texts] | None = None
    for system, scores in systems.items():
        known = next(iter(scores)).documents
        if known is None:
            continue
        documents: Texts = known[rows[system]]
        if first is not None and not np.array_equal(first[1], documents):
            raise UsageError(f"{first[0]} and {system} do not agree which document a segment belongs to")
        first = first or (system, documents)
    return first[1] if first is not None else None


def _of_one_width(scores: Sequence[Score]) -> Sequence[Score]:
    """The scores of several systems by one metric; one that could not be computed has as many columns as the others."""
    rows = [score.statistics for score in scores]
    width = max((r.shape[1] for r in rows if not isinstance(r, Ragged)), default=1)
    return [
        score
        if isinstance(r, Ragged) or r.shape[1] == width
        else replace(score, statistics=np.full((len(r), width), np.nan))
        for score, r in zip(scores, rows, strict=True)
    ]


def _drop_undefined(scores: Sequence[Score]) -> list[Score]:
    """The scores of several systems by one metric, without the segments in which one of them has no value.

    Otherwise a system that writes nothing where it would be late would be earlier on average. A system without any
    value is not compared, and takes no segment from the others.
    """
    scores = _of_one_width(scores)
    undefined = [missing(score.statistics) for score in scores]
    dropped = np.logical_or.reduce([own for own in undefined if not own.all()] or undefined[:1])
    return [
        score if own[dropped].all() else _without(score, dropped & ~own)
        for score, own in zip(scores, undefined, strict=True)
    ]


def _without(score: Score, dropped: npt.NDArray[np.bool_]) -> Score:
    """The score without the values of the dropped segments."""
    statistics: Any = score.statistics
    if isinstance(statistics, Ragged):
        statistics = statistics.keep(~dropped)
    else:
        statistics = np.where(dropped[:, None], np.nan, statistics)
    reasons = {**score.undefined.reasons, UNDEFINED_ELSEWHERE: tuple(score.ids[dropped].tolist())}
    return replace(score, value=score.resolved.corpus(statistics), statistics=statistics, undefined=Undefined(reasons))


def _take_segments(score: Score, rows: Ints, documents: Texts | None) -> Score:
    """The score of some of its segments."""
    statistics: Any = score.statistics
    statistics = statistics.take(rows) if isinstance(statistics, Ragged) else statistics[rows]
    ids: npt.NDArray[Any] = score.ids[rows]
    kept = set(ids.tolist())
    undefined = {why: tuple(name for name in names if name in kept) for why, names in score.undefined.reasons.items()}
    return replace(
        score,
        value=score.resolved.corpus(statistics),
        statistics=statistics,
        ids=ids,
        undefined=Undefined({why: names for why, names in undefined.items() if names}),
        signature=score.signature.without_interval(),
        documents=documents,
        low=None,
        high=None,
    )


def _sign(whole: Score, matched: Score) -> Score:
    """The matched score with a signature that says how many segments count and, if fewer than of the whole, which.

    The other systems decide that, so that as many segments may be other segments.
    """
    count = matched.n - matched.undefined
    common = None
    if (matched.n, count) != (whole.n, whole.n - whole.undefined):
        defined = ~missing(matched.statistics)
        lines = (f"{name}\t{value}" for name, value in zip(matched.ids.tolist(), defined.tolist(), strict=True))
        common = short_hash(sorted(lines))
    return replace(matched, signature=matched.signature.of(count, common))
