# SPDX-License-Identifier: Apache-2.0
"""Several systems on the same segments: matched by id, and what does not match is listed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Ints, Ragged
from lagging.data.run import Texts
from lagging.errors import DataError, Fault, MetricError, UsageError
from lagging.metrics import Metric, metric_among
from lagging.metrics.record import missing
from lagging.scoring.scores import Score, Scores, Undefined
from lagging.stats.resamples import order

__all__ = ["Matched", "match", "on_common_segments"]


@dataclass(frozen=True, eq=False)
class Matched:
    """The scores of several systems on the segments that all of them have.

    Attributes:
        systems: their names.
        metrics: those compared.
        scores: of each system, a Score per metric; all of the same segments in the same order.
        unmatched: of each system, the ids of the segments that not all of the others have.
    """

    systems: tuple[str, ...]
    metrics: tuple[Metric, ...]
    scores: tuple[tuple[Score, ...], ...]
    unmatched: dict[str, tuple[Any, ...]]

    @property
    def n(self) -> int:
        """Number of segments that all systems have."""
        return self.scores[0][0].n


def match(
    systems: Mapping[str, Scores],
    metrics: Iterable[str | Metric] | None = None,
    *,
    by: str = "segment",
    in_order: bool = False,
) -> Matched:
    """Find the segments that all systems have, and leave out the others, by name.

    By each metric, a segment in which one of the systems has no value has none in any.

    Args:
        systems: scores by system.
        metrics: which to compare; all that every system has, by default.
        by: "document" if the systems must agree on the documents too.
        in_order: keep the order of the first system's log; else segments come in the order of resampling.

    Raises:
        UsageError: fewer than two systems, no metric, or documents that differ.
        DataError: no segment in common.

    Example:
        >>> import lagging
        >>> def scores(ids):
        ...     return lagging.score(lagging.Run.from_delays([[1]] * len(ids), source_length=[2] * len(ids), id=ids))
        >>> found = match({"base": scores(["b", "a", "x"]), "new": scores(["a", "b"])}, ["AL"])
        >>> found.scores[0][0].ids.tolist(), found.unmatched
        (['a', 'b'], {'base': ('x',), 'new': ()})
    """
    if len(systems) < 2:
        raise UsageError("a comparison needs at least two systems")
    return on_common_segments(systems, metrics, by=by, in_order=in_order)


def on_common_segments(
    systems: Mapping[str, Scores],
    metrics: Iterable[str | Metric] | None = None,
    *,
    by: str = "segment",
    in_order: bool = False,
) -> Matched:
    """What `match` finds, of one system too: all of its segments."""
    wanted = _metrics(systems, metrics)
    names = {system: [str(name) for name in next(iter(scores)).ids.tolist()] for system, scores in systems.items()}
    common = set.intersection(*(set(ids) for ids in names.values()))
    if not common:
        raise DataError(Fault("no-common-segment", ", ".join(systems)))
    for system, ids in names.items():
        twice = next((name for name, times in Counter(ids).items() if times > 1), None)
        if twice is not None:
            raise UsageError(f"{system} has the segment {twice!r} twice: it cannot be matched")
    first = [name for name in next(iter(names.values())) if name in common]
    chosen = first if in_order else [first[at] for at in order(first)]
    rows = {}
    for system, ids in names.items():
        place = {name: at for at, name in enumerate(ids)}
        rows[system] = np.array([place[name] for name in chosen], dtype=np.int64)
    documents = _documents(systems, rows) if by == "document" else None
    each = [[_some(scores[m], rows[system], documents) for m in wanted] for system, scores in systems.items()]
    alike = [_alike(of) for of in zip(*each, strict=True)]
    kept = tuple(
        tuple(_signed(scores[m], one) for m, one in zip(wanted, of, strict=True))
        for scores, of in zip(systems.values(), zip(*alike, strict=True), strict=True)
    )
    unmatched = {
        system: tuple(name for name in next(iter(scores)).ids.tolist() if str(name) not in common)
        for system, scores in systems.items()
    }
    return Matched(tuple(systems), wanted, kept, unmatched)


def _metrics(systems: Mapping[str, Scores], metrics: Iterable[str | Metric] | None) -> tuple[Metric, ...]:
    scored = {system: [score.metric for score in scores] for system, scores in systems.items()}
    if metrics is None:
        found = [m for m in next(iter(scored.values())) if all(m in others for others in scored.values())]
        if not found:
            raise UsageError(f"{' and '.join(systems)} have no metric in common")
        return tuple(found)
    wanted = tuple(dict.fromkeys(metric_among(m, next(iter(scored.values()))) for m in metrics))
    for m in wanted:
        for system, there in scored.items():
            if m not in there:
                raise MetricError(f"{m!r} of {system} was not scored; these were: {', '.join(map(repr, there))}")
    if not wanted:
        raise UsageError("no metric was asked for")
    return wanted


def _documents(systems: Mapping[str, Scores], rows: Mapping[str, Ints]) -> Texts | None:
    """The documents of the segments, of whichever system tells; two must not tell different things."""
    told: tuple[str, Texts] | None = None
    for system, scores in systems.items():
        known = next(iter(scores)).documents
        if known is None:
            continue
        mine: Texts = known[rows[system]]
        if told is not None and not np.array_equal(told[1], mine):
            raise UsageError(f"{told[0]} and {system} do not agree which document a segment belongs to")
        told = told or (system, mine)
    return told[1] if told is not None else None


ELSEWHERE = "no value in another system"


def _alike(of: Sequence[Score]) -> list[Score]:
    """The scores of several systems by one metric, without the segments in which one of them has no value.

    Otherwise a system that is silent where it would be late would be earlier on average. One without any value is not
    compared, and silences no other.
    """
    without = [missing(score.statistics) for score in of]
    gone = np.logical_or.reduce([own for own in without if not own.all()] or without[:1])
    return [score if own[gone].all() else _less(score, gone & ~own) for score, own in zip(of, without, strict=True)]


def _less(score: Score, gone: npt.NDArray[np.bool_]) -> Score:
    """The score without the values of some segments."""
    statistics: Any = score.statistics
    if isinstance(statistics, Ragged):
        statistics = statistics.keep(~gone)
    else:
        statistics = np.where(gone[:, None], np.nan, statistics)
    reasons = {**score.undefined.reasons, ELSEWHERE: tuple(score.ids[gone].tolist())}
    return replace(score, value=score.resolved.corpus(statistics), statistics=statistics, undefined=Undefined(reasons))


def _some(score: Score, rows: Ints, documents: Texts | None) -> Score:
    """The score of some of its segments."""
    statistics: Any = score.statistics
    some = statistics.take(rows) if isinstance(statistics, Ragged) else statistics[rows]
    ids: npt.NDArray[Any] = score.ids[rows]
    there = set(ids.tolist())
    undefined = {why: tuple(name for name in which if name in there) for why, which in score.undefined.reasons.items()}
    return replace(
        score,
        value=score.resolved.corpus(some),
        statistics=some,
        ids=ids,
        undefined=Undefined({why: which for why, which in undefined.items() if which}),
        signature=score.signature.without_interval(),
        documents=documents,
        low=None,
        high=None,
    )


def _signed(whole: Score, some: Score) -> Score:
    """The score of what is left of a whole one; its signature says how many segments count and, if some were left out,
    which: other systems decide that, so that as many may be others.
    """
    count = some.n - some.undefined
    common = None
    if (some.n, count) != (whole.n, whole.n - whole.undefined):
        there = ~missing(some.statistics)
        text = "\n".join(sorted(f"{name}\t{so}" for name, so in zip(some.ids.tolist(), there.tolist(), strict=True)))
        common = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return replace(some, signature=some.signature.of(count, common))
