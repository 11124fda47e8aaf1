# SPDX-License-Identifier: Apache-2.0
"""From scored segments to their tallies, by group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np

from lagging.conventions import Convention, convention
from lagging.errors import MetricError, Note, UsageError, merge_notes
from lagging.formats.columns import labels_of
from lagging.metrics import Metric, metric
from lagging.ragged import Floats, Ints, Ragged
from lagging.run import Run
from lagging.scoring import Score, Scorer, Scores
from lagging.signature import Signature
from lagging.stacking import missing
from lagging.tallies.additive import (
    LARGE,
    LOTS,
    RESAMPLES,
    SEED,
    buckets,
    carried,
    exact,
    lots,
    points,
)
from lagging.tallies.record import Reasons, Tallied, Tally, few, intervals

__all__ = ["Group", "Tallies", "check_metrics", "tally"]

Group = tuple[str | None, ...]
"""The labels of a group, in the order of the columns that it goes by."""


# ---- from segments ----------------------------------------------------------------------------------------------


def check_metrics(metrics: Iterable[str | Metric], convention_: str | Convention = "paper") -> list[Metric]:
    """The metrics; those that cannot be tallied are refused by name.

    Example:
        >>> check_metrics(["AL", "LagPercentile"])
        Traceback (most recent call last):
        lagging.errors.MetricError: LagPercentile cannot be tallied: it pools the tokens of all segments
    """
    chosen, found = convention(convention_), list(dict.fromkeys(metric(m) for m in metrics))
    for m in found:
        settled = chosen.settle(m)
        why = ""
        if settled.whole:
            why = "the value of a segment depends on the other segments"
        elif settled.pool is not None:
            why = "it pools the tokens of all segments"
        elif not settled.adds_up:
            why = "its value is no function of sums over the segments"
        if why:
            raise MetricError(f"{m!r} cannot be tallied: {why}")
    return found


def tally(score: Score, *, told: bool = True, seed: int | None = SEED) -> Tally:
    """The tally of the segments of a score.

    Args:
        score: a score, with its statistics.
        told: whether anything was written in these segments.
        seed: of the lots for an interval; None for none.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[4, 5, 5, 5, 5], [4, 4, 4, 4, 5]], source_length=[5, 5])
        >>> one, other = (tally(lagging.score(run[[row]], ["AL"])["AL"]) for row in (0, 1))
        >>> (one + other).value == lagging.score(run, ["AL"])["AL"].value
        True
    """
    lot = None if seed is None else lots(score.ids, seed)
    return _tallied(score, np.zeros(score.n, dtype=np.int64), 1, told, seed, lot)[0]


def _tallied(score: Score, group: Ints, groups: int, told: bool, seed: int | None, lot: Ints | None) -> list[Tally]:
    """The tallies of the segments of each group; those of a seed with sums over lots."""
    rows = score.statistics
    if isinstance(rows, Ragged):
        raise MetricError(f"{score.metric!r} cannot be tallied: it pools the tokens of all segments")
    there = ~missing(rows)
    some, of = rows[there], group[there]
    finite = np.isfinite(some)
    sums = [exact(np.where(ok, column, 0.0), of, groups) for column, ok in zip(some.T, finite.T, strict=True)]
    endless = np.zeros((groups, rows.shape[1]))
    for column, ok in enumerate(finite.T):
        np.add.at(endless[:, column], of[~ok], some[~ok, column])
    values = score.segments[there]
    known = ~np.isnan(values)  # a segment may add to the corpus, and have no value of its own
    values, whose = values[known], of[known]
    least, most = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(least, whose, values)
    np.maximum.at(most, whose, values)
    histograms: list[dict[int, int]] = [{} for _ in range(groups)]
    bounded = np.clip(values, -np.finfo(float).max, np.finfo(float).max)
    pairs, counts = np.unique((whose << 32) + buckets(bounded) + 2**31, return_counts=True)
    for at, bucket, count in zip(
        (pairs >> 32).tolist(), (pairs % 2**32 - 2**31).tolist(), counts.tolist(), strict=True
    ):
        histograms[at][bucket] = count
    kept: list[Ints | None] = [None] * groups
    large = np.bincount(of, (np.abs(some) >= LARGE).any(axis=1), groups)
    if lot is not None:
        kept = [*_in_lots(lot[there], np.where(finite, some, 0), of, groups)]
    n, with_value = np.bincount(group, minlength=groups), np.bincount(of, minlength=groups)
    undefined = _reasons(score, group, groups)
    return [
        Tally(
            metric=score.metric,
            settled=score.settled,
            unit=score.unit,
            signature=_of(score, int(n[g]), int(with_value[g])),
            told=told,
            n=int(n[g]),
            some=int(with_value[g]),
            undefined=undefined[g],
            sums=tuple(column[g] for column in sums),
            endless=tuple(endless[g].tolist()),
            histogram=histograms[g],
            least=float(least[g]),
            most=float(most[g]),
            seed=seed,
            lots=kept[g],
            large=bool(large[g]),
        )
        for g in range(groups)
    ]


def _of(score: Score, n: int, some: int) -> Signature:
    """The signature of n of the segments, of which some count; where all lack a reference, so do these."""
    made = score.signature
    whole = made.get("noref") == str(score.n)
    fields = ((key, str(n) if key == "noref" and whole else value) for key, value in made.fields)
    return Signature(made.metric, tuple(fields)).of(some)


def _in_lots(lot: Ints, rows: Floats, group: Ints, groups: int) -> list[Ints]:
    """The sums over each lot, of each group."""
    added = points(np.column_stack([np.clip(rows, -LARGE, LARGE), np.ones(len(rows))]))
    out = np.zeros((groups * LOTS, *added.shape[1:]), dtype=np.int64)
    place = group * LOTS + lot
    order = np.argsort(place, kind="stable")
    found, first = np.unique(place[order], return_index=True)
    if len(found):
        out[found] = np.add.reduceat(added[order], first, axis=0)
    return list(carried(out.reshape(groups, LOTS, *added.shape[1:])))


def _reasons(score: Score, group: Ints, groups: int) -> list[Reasons]:
    """How many segments of each group have no value, and why; and the names of some."""
    out: list[dict[str, tuple[int, tuple[int | str, ...]]]] = [{} for _ in range(groups)]
    if score.undefined:
        where = dict(zip(score.ids.tolist(), group.tolist(), strict=True))
        for reason, ids in score.undefined.reasons.items():
            for g in range(groups):
                names = [name for name in ids if where[name] == g]
                if names:
                    out[g][reason] = (len(names), few(names))
    return list(out)


class Tallies:
    """The tallies of a log, by group and metric.

    Args:
        metrics, convention_: as in `lagging.score`.
        by: names of the columns that groups go by; the labels are in `Run.group`.
        seed: of the lots for intervals; None for no intervals.

    Attributes:
        groups: the tallies.
        notes: what a reader of the scores must know.
        referenced: whether any of the segments came with references, be they empty.

    Example:
        >>> import lagging
        >>> tallies = Tallies(["AL", "DAL"])
        >>> for delays in ([4, 5, 5, 5, 5], [4, 4, 4, 4, 5]):
        ...     tallies.add(lagging.Run.from_delays([delays], source_length=[5]))
        >>> [(score.metric, score.value, score.n) for _, scores in tallies.scores() for score in scores]
        [(AL, 3.1, 2), (DAL, 4.0, 2)]
    """

    def __init__(
        self,
        metrics: Iterable[str | Metric],
        convention_: str | Convention = "paper",
        *,
        by: Sequence[str] = (),
        seed: int | None = SEED,
    ) -> None:
        self.convention = convention(convention_)
        self.metrics = check_metrics(metrics, self.convention)
        if not self.metrics:
            raise UsageError("no metric was asked for")
        self.by, self.seed = tuple(by), seed
        self.groups: dict[Group, dict[Metric, Tally]] = {}
        self.notes: tuple[Note, ...] = ()
        self.referenced = False

    def add(self, run: Run) -> None:
        """Score some more segments."""
        self.count(run, self.scored(run))

    def scored(self, run: Run) -> Scores:
        """The scores of some segments, which are not counted yet."""
        if run.reference is None and run.reference_length is None:
            # others may have references, and these are then segments without
            run = replace(run, reference=np.full(len(run), None, dtype=object))
        scorer = Scorer(self.metrics, self.convention, keep="values")
        scorer.add(run)
        return scorer.result()

    def count(self, run: Run, scores: Scores) -> None:
        """Count segments that were scored."""
        self.remark(scores.notes)
        self.referenced |= run.reference is not None or run.reference_length is not None
        labels, group = _groups(run, len(self.by))
        if len(labels) > 1 and any(_uneven(score, run) for score in scores):
            for at, label in enumerate(labels):  # a signature counts what is not alike in all segments
                some = run[group == at]
                self._take(self.scored(some), [label], np.zeros(len(some), dtype=np.int64), some)
        else:
            self._take(scores, labels, group, run)

    def _take(self, scores: Scores, labels: Sequence[Group], group: Ints, run: Run) -> None:
        lot = None if self.seed is None else lots(run.id, self.seed)
        told = len(run.delays.values) > 0
        for score in scores:
            found = _tallied(score, group, len(labels), told, self.seed, lot)
            for label, one in zip(labels, found, strict=True):
                self.take(label, one)

    def take(self, group: Group, one: Tally) -> None:
        """Add a tally to its group."""
        into = self.groups.setdefault(group, {})
        into[one.metric] = into[one.metric] + one if one.metric in into else one

    def empty(self) -> Tallies:
        """Tallies of the same kind, of nothing yet."""
        return Tallies(self.metrics, self.convention, by=self.by, seed=self.seed)

    def join(self, other: Tallies) -> None:
        """Add the tallies of other segments."""
        for group, of in other.groups.items():
            for one in of.values():
                self.take(group, one)
        self.remark(other.notes)
        self.referenced |= other.referenced

    def remark(self, notes: Iterable[Note]) -> None:
        """Add to what a reader of the scores must know."""
        self.notes = merge_notes([*self.notes, *notes])

    def __add__(self, other: Tallies) -> Tallies:
        """The tallies of the segments of both."""
        out = self.empty()
        out.join(self)
        out.join(other)
        return out

    def scores(
        self, *, level: float = 0.95, resamples: int = RESAMPLES
    ) -> Iterator[tuple[dict[str, str | None], list[Tallied]]]:
        """The labels and the scores of each group, in the order of their labels; with intervals, if there is a seed."""
        self._check()
        order = sorted(self.groups, key=lambda labels: [(label is not None, label or "") for label in labels])
        found = [self.groups[group][m] for group in order for m in self.metrics]
        made = iter([None] * len(found) if self.seed is None else intervals(found, level, resamples))
        for group in order:
            labels = dict(zip(self.by, group, strict=True))
            yield labels, [self.groups[group][m].score(labels, next(made)) for m in self.metrics]

    def _check(self) -> None:
        """Refuse metrics that no segment can have, and columns that no segment has."""
        for place, name in enumerate(self.by):
            if self.groups and all(group[place] is None for group in self.groups):
                raise UsageError(f"no segment has anything in the column {name!r}, so there are no groups by it")
        for m in self.metrics:
            missing = [of[m].undefined.get("no reference", (0, ()))[0] == of[m].n for of in self.groups.values()]
            if not self.referenced and missing and all(missing):
                raise MetricError(f"{m!r}: there are no references to compare with")

    def total(self) -> Tallies:
        """All groups as one."""
        out = Tallies(self.metrics, self.convention, seed=self.seed)
        for m in self.metrics:
            if self.groups:
                out.take((), reduce(add, (of[m] for of in self.groups.values())))
        out.notes, out.referenced = self.notes, self.referenced
        return out


def _uneven(score: Score, run: Run) -> bool:
    """Whether a signature counts something that need not be alike in all groups."""
    if score.signature.get("noref") not in (None, str(score.n)):
        return True
    return score.signature.get("eos") is not None and not (run.marked.all() and (run.eos.all() or not run.eos.any()))


def _groups(run: Run, columns: int) -> tuple[list[Group], Ints]:
    """The groups of a Run, and which of them each segment is in."""
    if not columns or run.group is None:
        return [(None,) * columns], np.zeros(len(run), dtype=np.int64)
    texts = run.group
    places: dict[str, int] = {}
    codes = np.array([places.setdefault(text, len(places)) for text in texts.tolist()], dtype=np.int64)
    return [labels_of(text, columns) for text in places], codes
