# SPDX-License-Identifier: Apache-2.0
"""Score and Scores: the value of a metric, what is known of its segments, and its signature."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lagging.data import notebooks
from lagging.data.hashes import segment_keys
from lagging.data.ragged import Floats, Ints, Ragged
from lagging.data.run import Ids, Texts
from lagging.errors import MetricError, Note, UsageError, optional
from lagging.metrics import Metric, metric_among
from lagging.metrics.record import Statistics
from lagging.scoring.signature import Signature
from lagging.stats import Interval

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["Score", "Scores", "Summary", "Undefined", "sign_interval"]


class Undefined(int):
    """How many segments have no value; a number that also knows which they are, and why.

    Attributes:
        reasons: the segments, by reason; of scores that were only added up, some of them or none.
        counts: how many there are, by reason.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[1, 2], []], source_length=[2, 2], id=["a", "b"])
        >>> u = lagging.score(run, ["DAL"])["DAL"].undefined
        >>> u, u.ids, u.reasons
        (1, ('b',), {'empty hypothesis': ('b',)})
    """

    reasons: dict[str, tuple[Any, ...]]
    counts: dict[str, int]

    def __new__(cls, reasons: Mapping[str, tuple[Any, ...]], counts: Mapping[str, int] | None = None) -> Undefined:
        """Add up the counts; without any, all ids are given."""
        known = {reason: len(ids) for reason, ids in reasons.items()} if counts is None else dict(counts)
        self = super().__new__(cls, sum(known.values()))
        self.reasons, self.counts = dict(reasons), known
        return self

    @property
    def ids(self) -> tuple[Any, ...]:
        """The segments without a value, as far as they are known."""
        return tuple(i for ids in self.reasons.values() for i in ids)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with the reasons."""
        return Undefined, (self.reasons, self.counts)


@dataclass(frozen=True)
class Summary:
    """How the values of segments are distributed that were only added up.

    Attributes:
        percentiles: of the values: 50, 90, 95 and 99, within 0.4 %.
        least, most: of the values.
    """

    percentiles: Mapping[float, float]
    least: float
    most: float


@dataclass(frozen=True, eq=False)
class Score:
    """One metric of one system.

    Attributes:
        metric: the metric as it was named.
        value: the corpus value, in `unit`; NaN if no segment has one.
        statistics: a row per segment, from which `value` and `segments` are made.
        ids: the segments' ids; empty, as `statistics` is, if segments were only added up.
        n: number of segments, undefined ones included.
        undefined: how many have no value; which, and why.
        unit: "token", "ms", "ratio", "count", "points" or "score".
        signature: how the number was made.
        resolved: the metric with what the convention set.
        low, high: ends of the interval, where one was requested.
        documents: the document of each segment, where the log tells.
        sources, references: of each segment |x|, and a hash of the reference (0 without any): they tell whether two
            systems had the same input.
        count: number of segments, if they were only added up.
        summary: how the values of such segments are distributed, where that was kept.
        totals: the sum of each column of the statistics of such segments.
    """

    metric: Metric
    value: float
    statistics: Statistics = field(repr=False)
    ids: Ids = field(repr=False)
    undefined: Undefined
    unit: str
    signature: Signature
    resolved: Metric = field(repr=False)
    low: float | None = None
    high: float | None = None
    documents: Texts | None = field(default=None, repr=False)
    sources: Floats | None = field(default=None, repr=False)
    references: Ints | None = field(default=None, repr=False)
    count: int | None = field(default=None, repr=False)
    summary: Summary | None = field(default=None, repr=False)
    totals: tuple[float, ...] = field(default=(), repr=False)

    @property
    def counts(self) -> dict[str, int]:
        """What the metric counts beside its value, summed over the segments: substitutions, deletions, … of WER."""
        names = self.resolved.counts
        if not names or isinstance(self.statistics, Ragged) or not self.n > int(self.undefined):
            return {}
        totals = self.totals if self.count is not None else np.nansum(self.statistics, axis=0).tolist()
        return {name: int(total) for name, total in zip(names, totals[-len(names) :], strict=True)}

    @property
    def n(self) -> int:
        """Number of segments, undefined ones included."""
        return len(self.statistics) if self.count is None else self.count

    @cached_property
    def segments(self) -> Floats:
        """The value of each segment, in the order of the Run; NaN where it is undefined.

        Raises:
            UsageError: the segments were only added up.
        """
        self.check_segments()
        return self.resolved.segments(self.statistics)

    def check_segments(self) -> None:
        """Refuse to go on without the values of segments, and say how to keep them."""
        if self.count is not None:
            raise UsageError(
                f"the {self.count} segments of {self.metric!r} were only added up, and their values are not kept\n"
                "  fix: score a Run with lagging.score, or make the Plan with keep='all' and without group_by."
            )

    @property
    def segment_signature(self) -> Signature:
        """How the values of the segments were made, where that is not how the corpus value was."""
        changed = dict(self.metric.describe_segments)
        plain = self.signature.without_interval()
        return Signature(plain.metric, tuple((k, changed.get(k, v)) for k, v in plain.fields))


def sign_interval(score: Score, interval: Interval) -> Score:
    """The Score with the ends of an interval, and with how that was made in its signature.

    An interval without ends leaves neither: `low` and `high` are None.

    Example:
        >>> import lagging
        >>> score = lagging.score(lagging.Run.from_delays([[1], [2]], source_length=[2, 2]), ["AL"])["AL"]
        >>> score = sign_interval(score, Interval(1.0, 2.0, "bca", "segment", 0.95, 10_000, 12345, clusters=2))
        >>> score.low, score.high, score.signature.get("ci"), score.signature.get("method")
        (1.0, 2.0, '95', 'bca')
    """
    if np.isnan(interval.low):
        return replace(score, low=None, high=None, signature=score.signature.without_interval())
    signature = score.signature.with_interval(
        ci=f"{100 * interval.confidence:.10g}",
        by=interval.resample,
        method=interval.method,
        bs=interval.resamples,
        seed=interval.seed,
    )
    return replace(score, low=interval.low, high=interval.high, signature=signature)


class Scores:
    """The scores of one system, by metric: `scores["DAL"].value`.

    Attributes:
        system: name of the system.
        notes: what a reader of these scores must know.
        group: what these segments have in common, by column, where a log was scored by group.
    """

    def __init__(
        self,
        scores: Iterable[Score],
        system: str = "",
        notes: tuple[Note, ...] = (),
        group: Mapping[str, str | None] | None = None,
        keys: Ints | None = None,
    ) -> None:
        self._keys = keys
        self._scores = {score.metric: score for score in scores}
        self.system = system
        self.notes = notes
        self.group = dict(group or {})

    @property
    def called(self) -> str:
        """The system, and the group of its segments: `new (de-en, v2)`."""
        labels = ", ".join("–" if label is None else label for label in self.group.values())
        return f"{self.system} ({labels})" if self.group else self.system

    def __getitem__(self, name: str | Metric) -> Score:
        """The score of a metric, by the name it was requested by, or an alias of it."""
        score = self._scores.get(metric_among(name, self._scores))
        if score is None:
            raise MetricError(f"{name} was not scored; these were: {', '.join(map(repr, self._scores))}")
        return score

    def __iter__(self) -> Iterator[Score]:
        """The scores, in the order in which the metrics were named."""
        return iter(self._scores.values())

    def __contains__(self, name: object) -> bool:
        """Whether a metric was scored."""
        return any(name in (score, metric, repr(metric)) for metric, score in self._scores.items())

    def keys(self) -> tuple[str, ...]:
        """The names of the metrics, so that `dict(scores)` is a dictionary of scores by name.

        Example:
            >>> import lagging
            >>> scores = lagging.score(lagging.Run.from_delays([[1, 2]], source_length=[2]), ["AL", "DAL"])
            >>> {name: score.value for name, score in scores.items()}, "DAL" in scores, list(dict(scores))
            ({'AL': 1.0, 'DAL': 1.0}, True, ['AL', 'DAL'])
        """
        return tuple(map(repr, self._scores))

    def values(self) -> tuple[Score, ...]:
        """The scores."""
        return tuple(self)

    def items(self) -> tuple[tuple[str, Score], ...]:
        """Names and scores."""
        return tuple(zip(self.keys(), self, strict=True))

    def to_polars(self) -> polars.DataFrame:
        """A row per segment: its id, and a column per metric (needs polars)."""
        ids = next(iter(self)).ids.tolist()
        return optional("polars").DataFrame({"id": ids, **{repr(s.metric): s.segments for s in self}}, strict=False)

    def shared(self, other: Scores) -> tuple[int, int, int]:
        """How many segments two systems have in common, and how many each has."""
        mine, theirs = (segment_keys(next(iter(s)).ids) if s._keys is None else s._keys for s in (self, other))
        same = np.array_equal(mine, theirs)
        return len(mine) if same else len(np.intersect1d(mine, theirs)), len(mine), len(theirs)

    def to_pandas(self) -> pandas.DataFrame:
        """A row per segment: its id, and a column per metric (needs pandas)."""
        return optional("pandas").DataFrame({"id": next(iter(self)).ids, **{repr(s.metric): s.segments for s in self}})

    _repr_html_ = notebooks.html

    def __len__(self) -> int:
        """How many metrics were scored."""
        return len(self._scores)

    def __repr__(self) -> str:
        """`Scores('base', DAL=4.0, …)`."""
        inside = [repr(self.system)] if self.system else []
        return f"Scores({', '.join(inside + [f'{s.metric!r}={s.value:.6g}' for s in self])})"
