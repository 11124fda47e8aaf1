# SPDX-License-Identifier: Apache-2.0
"""An Accumulator: scores a log part by part, by group, and adds up exactly what it keeps of the segments.

One class, with what it keeps of a metric in a group. Adding a part, joining two of them and making Scores are in one
file because they must agree on what is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from lagging.data.hashes import reference_hashes, segment_keys
from lagging.data.ragged import Floats, Ints, Ragged
from lagging.data.run import Ids, Run, Texts, join_ids
from lagging.errors import DataError, Fault, MetricError, Note, UsageError, merge_notes
from lagging.formats.tables import labels_of
from lagging.metrics import Metric
from lagging.metrics.record import Statistics
from lagging.metrics.schedule import REASONS, Schedules
from lagging.scoring.columns import Matching
from lagging.scoring.part import Codes, MetricPart, Part, reason, score_part
from lagging.scoring.percentiles import note_few_values
from lagging.scoring.plan import Keep, Plan
from lagging.scoring.poisson import RESAMPLES
from lagging.scoring.scores import Score, Scores, Undefined
from lagging.scoring.tally import Tally, poisson_intervals
from lagging.scoring.tally import tallies as make_tallies
from lagging.stats.intervals import Interval

__all__ = ["Accumulator", "Group", "join_documents"]

Group = tuple[str | None, ...]
"""The labels of a group, in the order of the columns that divide the segments."""


class Accumulator:
    """Scores a system part by part: memory grows by what the Plan keeps of segments, never by tokens or text.

    Args:
        plan: what is scored, and what is kept.
        system: name of the system; that of the first part if not given.

    Attributes:
        plan: the Plan; its metrics are resolved by the first part.
        groups: by group and metric, the Tallies of segments that are only added up.
        intervals: by group and metric, the intervals that another machine made of these Tallies.
        notes: what a reader of the scores must know about the log.
        system: name of the system.
        has_references: whether any part came with references.
        unavailable: why a metric cannot be computed on a part. Then it has no value on the whole log, so that scores do
            not depend on how the log is divided into parts.

    Example:
        >>> import lagging
        >>> accumulator = Accumulator(Plan.make(["AL", "DAL"]))
        >>> for delays in ([4, 5, 5, 5, 5], [4, 4, 4, 4, 5]):
        ...     accumulator.add(lagging.Run.from_delays([delays], source_length=[5]))
        >>> accumulator.scores()
        Scores(AL=3.1, DAL=4)
    """

    def __init__(self, plan: Plan, system: str = "") -> None:
        self.plan = plan
        self.groups: dict[Group, dict[Metric, Tally]] = {}
        self.intervals: dict[tuple[Group, Metric], Interval] = {}
        self.notes: tuple[Note, ...] = ()
        self.system = system
        self.has_references = False
        self.unavailable: dict[Metric, str] = {}
        self._recordings: set[str] = set()
        self._scoring_notes: tuple[Note, ...] = ()
        self._rows: dict[Metric, _Rows] = {}
        self._segments = _Segments(plan.keep)
        self._pending: list[Run] = []
        self._matchings: dict[Metric, Matching] = {}

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics, as they were named, and those of the columns."""
        if self.plan.metrics is None:
            raise DataError(Fault("nothing-given"))
        return (*self.plan.metrics, *(column.metric for column in self.plan.external))

    # ---- parts --------------------------------------------------------------------------------------------------

    def add(self, run: Run, on_part: Callable[[Part], None] | None = None) -> None:
        """Score more segments.

        Args:
            run: the segments.
            on_part: called with them once they are scored.
        """
        self.plan = self.plan.resolve(run)
        self.system = self.system or run.name
        self._segments.add(run)
        if run.document is not None and any(m.quantile for m in self.metrics):
            self._recordings |= set(run.document.tolist())
        self.has_references |= run.reference is not None or run.reference_length is not None
        if any(m.needs_corpus for m in self.plan.resolved_metrics.values()):
            self._pending.append(self._without_unused_texts(run))
        else:
            self._take(run, on_part)

    def _take(self, run: Run, on_part: Callable[[Part], None] | None = None) -> None:
        if self.plan.summary and run.reference is None and run.reference_length is None:
            # other parts may have references; then these are segments without
            run = replace(run, reference=np.full(len(run), None, dtype=object))
        if not self._matchings:
            self._matchings = {column.metric: Matching(column, self.system) for column in self.plan.external}
        part = score_part(run, self.plan, tuple(self._matchings.values()))
        self.add_notes(part.notes)
        self.add_unavailable(
            {m.metric: reason(m.metric, len(REASONS), m.unavailable) for m in part.metrics if m.unavailable}
        )
        self._scoring_notes = merge_notes([*self._scoring_notes, *part.scoring_notes])
        labels, group = _divide(run, len(self.plan.group_by))
        for m in part.metrics:
            if self._keeps_rows(m):
                self._rows.setdefault(m.metric, _Rows()).add(part, m)
            else:
                for label, tally in zip(labels, make_tallies(part, m, group, len(labels)), strict=True):
                    self.add_tally(label, tally)
        if on_part is not None:
            on_part(part)

    def _keeps_rows(self, m: MetricPart) -> bool:
        return not self.plan.summary and (self.plan.keeps_values or not m.resolved.adds_up)

    def _without_unused_texts(self, run: Run) -> Run:
        """The columns that are needed until all segments are there.

        Of predictions that no metric needs, those are kept that end with the end of the sentence, or are empty beside
        its delay: what is stripped does not depend on how a log is divided into parts.
        """
        prediction = run.prediction
        texts = {"reference", "prediction"} & {need for m in self.metrics for need in m.needs}
        schedules = Schedules(run, self.plan.convention)
        by_reference = any(schedules.length_of(m) != "hypothesis" for m in self.metrics)
        if run.prediction is not None and not texts:
            decisive = run.marked | run.lone
            prediction = np.full(len(run), "…", dtype=object)
            prediction[decisive] = run.prediction[decisive]
        return replace(
            run,
            prediction=prediction,
            reference=run.reference if texts or by_reference else None,
        )

    def add_tally(self, group: Group, tally: Tally, interval: Interval | None = None) -> None:
        """Add the sums of segments of one group.

        Args:
            group: the labels of the group.
            tally: the sums.
            interval: that of the whole group, if the Tally is complete and does not have what an interval needs.
        """
        metrics = self.groups.setdefault(group, {})
        metrics[tally.metric] = metrics[tally.metric] + tally if tally.metric in metrics else tally
        if interval is not None:
            self.intervals[group, tally.metric] = interval

    def add_notes(self, notes: Iterable[Note]) -> None:
        """Add to what a reader of the scores must know about the log."""
        self.notes = merge_notes([*self.notes, *notes])

    def add_unavailable(self, reasons: Mapping[Metric, str]) -> None:
        """Add why metrics cannot be computed on a part; of several reasons the same is kept, whichever came first."""
        for m, text in reasons.items():
            self.unavailable[m] = min(text, self.unavailable.get(m, text))

    def empty(self) -> Accumulator:
        """An Accumulator with the same Plan that has scored nothing yet."""
        return Accumulator(self.plan)

    def join(self, other: Accumulator) -> None:
        """Add what another Accumulator with the same Plan has scored: the segments that come next.

        Example:
            >>> import lagging
            >>> one, other = (Accumulator(Plan.make(["DAL"])) for _ in range(2))
            >>> for accumulator, delays in ((one, [4, 5, 5]), (other, [1, 2, 3])):
            ...     accumulator.add(lagging.Run.from_delays([delays], source_length=[5]))
            >>> one.join(other)
            >>> one.scores()["DAL"].n
            2
        """
        if self.plan.external or other.plan.external:
            raise UsageError("a column is matched with the segments in order, so scores with one cannot be joined")
        self.plan = other.plan if self.plan.metrics is None else self.plan
        self._pending += other._pending
        self._segments.join(other._segments)
        self._recordings |= other._recordings
        for m, rows in other._rows.items():
            self._rows.setdefault(m, _Rows()).join(rows)
        for group, metrics in other.groups.items():
            for tally in metrics.values():
                self.add_tally(group, tally)
        self.add_notes(other.notes)
        self._scoring_notes = merge_notes([*self._scoring_notes, *other._scoring_notes])
        self.has_references |= other.has_references
        self.add_unavailable(other.unavailable)

    # ---- scores -------------------------------------------------------------------------------------------------

    def all_notes(self) -> tuple[Note, ...]:
        """What a reader of the scores must know."""
        return merge_notes([*self.notes, *self._scoring_notes])

    def scores(self, system: str = "") -> Scores:
        """The scores of all segments.

        Raises:
            DataError: no segment was added.
            MetricError: no metric has a value, because all of them need references, and there are none.
        """
        if self._pending:
            self._take(Run.concat(self._pending))
            self._pending = []
        if not self._rows and not self.groups:
            raise DataError(Fault("nothing-given"))
        columns = self._segments.columns()
        scores = [self._score(m, columns) for m in self.metrics]
        self._check_references({score.metric: [score] for score in scores}, system)
        notes = merge_notes([*self.all_notes(), *self._tail_notes()])
        return Scores(scores, system, notes, keys=self._segments.keys())

    def _tail_notes(self) -> Iterator[Note]:
        """A note about each percentile that the number of tokens, or of recordings, does not carry."""
        for m, rows in self._rows.items():
            pooled = [part for part in rows.rows if isinstance(part, Ragged)]
            if m.quantile and pooled:
                tokens = sum(len(part.values) for part in pooled)
                recordings = len(self._recordings) or sum(map(len, pooled))
                if (note := note_few_values(m, tokens, recordings)) is not None:
                    yield note

    def _score(self, m: Metric, columns: dict[str, Any]) -> Score:
        if m in self._rows:
            score = self._rows[m].score(columns, self.plan.keeps_values, self.unavailable.get(m, ""))
        else:
            whole = reduce(add, (self._tally(group, m) for group in self.groups)).score()
            score = replace(whole, **columns) if self.plan.keeps_values else whole
        return self._sign_column(score)

    def _tally(self, group: Group, m: Metric) -> Tally:
        """The Tally of a group; without a value, if the metric cannot be computed on a part of the log."""
        tally = self.groups[group][m]
        return tally.without_value(self.unavailable[m]) if m in self.unavailable else tally

    def _sign_column(self, score: Score) -> Score:
        """The score with a signature that names its column, if it has one; it must fit the segments."""
        matching = self._matchings.get(score.metric)
        return score if matching is None else replace(score, signature=matching.sign(score.signature))

    def _check_references(self, metrics: Mapping[Metric, Sequence[Score]], system: str = "") -> None:
        """Add a note about each metric that needs references where no segment came with any; refuse it alone."""
        lacking = []
        for m, scores in metrics.items():
            alone = [score.undefined.counts.get("no reference") == score.n for score in scores if score.n]
            if not self.has_references and alone and all(alone):
                lacking.append(m)
        text = "there are no references to compare with"
        if lacking and len(lacking) + len(self.unavailable) == len(metrics):
            raise MetricError(f"{lacking[0]!r}{f' of {system}' if system else ''}: {text}")
        self.add_notes(Note("UNDEFINED", f"{m!r}: {text}") for m in lacking)

    def group_scores(
        self, system: str = "", *, confidence: float = 0.95, resamples: int = RESAMPLES
    ) -> Iterator[Scores]:
        """The scores of each group, in the order of their labels; with intervals, if the Plan has a seed."""
        by = self.plan.group_by
        for position, name in enumerate(by):
            if self.groups and all(group[position] is None for group in self.groups):
                raise UsageError(f"no segment has anything in the column {name!r}, so there are no groups by it")
        order = sorted(self.groups, key=lambda labels: [(label is not None, label or "") for label in labels])
        keys = [(group, m) for group in order for m in self.metrics]
        tallies = [self._tally(group, m) for group, m in keys]
        ends: Sequence[Interval | None] = [self._interval(group, m) for group, m in keys]
        if self.plan.seed is not None and not self.intervals:
            ends = poisson_intervals(tallies, confidence, resamples)
        scores = [self._sign_column(tally.score(end)) for tally, end in zip(tallies, ends, strict=True)]
        width = len(self.metrics)
        self._check_references({m: scores[column::width] for column, m in enumerate(self.metrics)})
        for row, group in enumerate(order):
            labels = dict(zip(by, group, strict=True))
            yield Scores(scores[row * width : (row + 1) * width], system, (), labels)

    def _interval(self, group: Group, m: Metric) -> Interval | None:
        """The interval that another machine made; of a metric without a value, it has no ends."""
        interval = self.intervals.get((group, m))
        if interval is None or m not in self.unavailable:
            return interval
        return replace(interval, low=np.nan, high=np.nan, reason=interval.reason or self.unavailable[m])


def _divide(run: Run, columns: int) -> tuple[list[Group], Ints]:
    """The groups of a Run, and the group of each segment."""
    if not columns or run.group is None:
        return [(None,) * columns], np.zeros(len(run), dtype=np.int64)
    numbers: dict[str, int] = {}
    codes = np.array([numbers.setdefault(text, len(numbers)) for text in run.group.tolist()], dtype=np.int64)
    return [labels_of(text, columns) for text in numbers], codes


# ---- what is kept of segments -----------------------------------------------------------------------------------


@dataclass
class _Rows:
    """The statistics of one metric, segment by segment; and, without them, the Tally of the same segments.

    Attributes:
        rows, codes: of each part.
        meta: metric, unit and signature of all parts.
    """

    rows: list[Statistics] = field(default_factory=list)
    codes: list[Codes] = field(default_factory=list)
    meta: Tally | None = None

    @property
    def resolved(self) -> Metric:
        """The metric with what the convention sets."""
        assert self.meta is not None
        return self.meta.resolved

    def add(self, part: Part, m: MetricPart) -> None:
        """Add the segments of a part."""
        n, (signature,) = len(m.codes), part.signatures(m)
        meta = Tally(m.metric, m.resolved, m.unit, signature, part.written, n, int((m.codes == 0).sum()), {}, ())
        self.join(_Rows([m.rows], [m.codes], meta))

    def join(self, other: _Rows) -> None:
        """Add the segments of another, which come next."""
        self.rows += other.rows
        self.codes += other.codes
        if other.meta is not None:
            self.meta = other.meta if self.meta is None else self.meta + other.meta

    def score(self, columns: dict[str, Any], keeps_values: bool, unavailable: str = "") -> Score:
        """The Score of all segments; `unavailable` says why the metric cannot be computed on one of the parts."""
        resolved = self.resolved
        assert self.meta is not None
        m, signature, codes = self.meta.metric, self.meta.signature, np.concatenate(self.codes)
        if unavailable:
            codes, signature = np.full_like(codes, len(REASONS)), signature.of(0)
        rows = np.full((len(codes), 1), np.nan) if unavailable else self._stack(resolved)
        reasons, counts = {}, {}
        for code, count in enumerate(np.bincount(codes).tolist()):
            if code and count:
                text = reason(m, code, unavailable)
                reasons[text] = tuple(columns["ids"][codes == code].tolist()) if keeps_values else ()
                counts[text] = count
        return Score(
            metric=m,
            value=resolved.corpus(rows),
            statistics=rows if keeps_values else rows[:0],
            undefined=Undefined(reasons, counts),
            unit=self.meta.unit,
            signature=signature,
            resolved=resolved,
            **columns,
        )

    def _stack(self, resolved: Metric) -> Statistics:
        ragged = [part for part in self.rows if isinstance(part, Ragged)]
        if ragged:
            return Ragged.concat(ragged)
        rows = [part for part in self.rows if not isinstance(part, Ragged)]
        widths = sorted({part.shape[1] for part in rows})
        if len(widths) > 1:
            raise MetricError(
                f"{resolved!r}: its function gave {widths[0]} columns for some segments, {widths[-1]} for others"
            )
        return rows[0] if len(rows) == 1 else np.concatenate(rows)


@dataclass
class _Segments:
    """What is kept of segments beside their statistics: lists of columns, one for each part."""

    keep: Keep
    n: int = 0
    ids: list[Ids] = field(default_factory=list)
    documents: list[Texts | None] = field(default_factory=list)
    sources: list[Floats] = field(default_factory=list)
    references: list[Ints] = field(default_factory=list)

    def add(self, run: Run) -> None:
        """Add segments."""
        self.n += len(run)
        if self.keep in ("all", "values"):
            self.ids.append(run.id)
            self.documents.append(run.document)
        if self.keep == "keys":
            self.ids.append(segment_keys(run.id))
        if self.keep == "all":
            self.sources.append(run.source_length)
            self.references.append(reference_hashes(run))

    def join(self, other: _Segments) -> None:
        """Add the segments of another, which come next."""
        self.n += other.n
        self.ids += other.ids
        self.documents += other.documents
        self.sources += other.sources
        self.references += other.references

    def keys(self) -> Ints | None:
        """A number for each id, if that is what is kept."""
        return np.concatenate(self.ids) if self.keep == "keys" else None

    def columns(self) -> dict[str, Any]:
        """All parts end to end; the number of segments, if that is all that is kept."""
        if self.keep not in ("all", "values"):
            return {"ids": np.empty(0, dtype=np.int64), "count": self.n}
        columns = {"ids": join_ids(self.ids), "documents": join_documents(self.documents, self.ids)}
        if self.keep == "all":
            columns |= {"sources": np.concatenate(self.sources), "references": np.concatenate(self.references)}
        return columns


def join_documents(parts: Sequence[Texts | None], ids: Sequence[Ids]) -> Texts | None:
    """The documents of all parts; None if no part has them."""
    if all(part is None for part in parts):
        return None
    missing = (np.full(len(part_ids), None) for part_ids in ids)
    return np.concatenate([m if p is None else p for p, m in zip(parts, missing, strict=True)])
