# SPDX-License-Identifier: Apache-2.0
"""A Tally: the sums of segments that were scored by one metric, and how two of them add up.

It holds

- the exact sum of each column of the metric's statistics, so that the value is that of `lagging.score` to the last
  bit, however the segments were divided into parts;
- how many segments there are, how many have no value and why, and the ids of a few of them;
- for a summary, a histogram of the segments' values, for percentiles;
- for intervals, the same sums over each of 1024 buckets of segments (see `poisson`).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

import msgspec
import numpy as np
import numpy.typing as npt

from lagging.data.exact import expansions, fold, total
from lagging.data.ragged import Ints, Ragged
from lagging.errors import MetricError, UsageError
from lagging.metrics import Metric, metric
from lagging.metrics.schedule import REASONS
from lagging.scoring.estimators import aggregation_of
from lagging.scoring.histogram import buckets, percentile
from lagging.scoring.part import MetricPart, Part, reason
from lagging.scoring.poisson import (
    BUCKETS,
    LIMIT,
    RESAMPLES,
    bucket_sums,
    carry,
    segment_buckets,
    sums_as_floats,
    weights_in_parts,
)
from lagging.scoring.scores import Score, Summary, Undefined, sign_interval
from lagging.scoring.signature import COUNTED, Signature, joined
from lagging.stats import Interval, check_confidence
from lagging.stats.estimators import Sums, estimator_of_unit_sums, evaluate
from lagging.stats.intervals import interval_from_resamples

__all__ = ["PERCENTILES", "Tally", "poisson_intervals", "tallies"]

PERCENTILES = (50.0, 90.0, 95.0, 99.0)
BATCH = 64
"""The number of intervals of `RESAMPLES` that are made at once."""
SAMPLE = 5
"""The number of segments without a value whose ids are kept, for each reason."""

Reasons = Mapping[str, tuple[int, tuple[int | str, ...]]]
"""How many segments have no value, by reason, and the ids of a few."""


@dataclass(frozen=True, eq=False)
class Tally:
    """The sums of segments that were scored by one metric; `a + b` is the Tally of the segments of both.

    Attributes:
        metric, resolved: the metric as it was named, and with what the convention sets.
        unit: of its values.
        signature: every setting that can change them.
        written: whether anything was written in these segments; if not, they do not tell unit and level.
        n, n_defined: number of segments, and of those that have a value.
        undefined: how many have no value, by reason, and the ids of a few.
        sums: of each column of the statistics, a few numbers with exactly its sum.
        histogram: the number of values in each bucket; None without a summary.
        least, most: of the values.
        seed: of the buckets for an interval; None without one.
        bucket_sums: sums over each bucket (rows) of each column, and of the number of segments with a value.
        overflow: whether a value was too large for these sums.
    """

    metric: Metric
    resolved: Metric
    unit: str
    signature: Signature
    written: bool
    n: int
    n_defined: int
    undefined: Reasons
    sums: tuple[tuple[float, ...], ...]
    histogram: Mapping[int, int] | None = None
    least: float = math.inf
    most: float = -math.inf
    seed: int | None = None
    bucket_sums: Ints | None = None
    overflow: bool = False

    def __add__(self, other: Tally) -> Tally:
        """The Tally of the segments of both."""
        if self.resolved != other.resolved:
            raise UsageError(f"a tally of {self.resolved!r} cannot be added to one of {other.resolved!r}")
        if self.seed != other.seed:
            raise UsageError(f"tallies of the seeds {self.seed} and {other.seed} cannot be added")
        known = self if self.written or not other.written else other
        added, mine, theirs = None, self.bucket_sums, other.bucket_sums
        # the shapes differ only where the metric cannot be computed on one of both, so that the log has no value
        if mine is not None and theirs is not None and mine.shape == theirs.shape:
            added = carry(mine + theirs)
        histogram = None
        if self.histogram is not None and other.histogram is not None:
            histogram = dict(self.histogram)
            for bucket, count in other.histogram.items():
                histogram[bucket] = histogram.get(bucket, 0) + count
        too_large = added is not None and bool(np.abs(added[..., 0]).max() >= 2**61)
        columns = zip_longest(self.sums, other.sums, fillvalue=())
        return replace(
            self,
            unit=known.unit,
            signature=_join_signatures(self, other),
            written=self.written or other.written,
            n=self.n + other.n,
            n_defined=self.n_defined + other.n_defined,
            undefined=_join_reasons(self.undefined, other.undefined),
            sums=tuple(tuple(fold(chain(mine, theirs))) for mine, theirs in columns),
            histogram=histogram,
            least=min(self.least, other.least),
            most=max(self.most, other.most),
            bucket_sums=added,
            overflow=self.overflow or other.overflow or too_large,
        )

    def without_value(self, reason: str) -> Tally:
        """The Tally of the same segments by a metric that cannot be computed on the log, and why."""
        _, ids = self.undefined.get(reason, (0, ()))
        return replace(
            self,
            signature=self.signature.of(0),
            n_defined=0,
            undefined={reason: (self.n, ids)} if self.n else {},
            sums=((),),
            histogram=None if self.histogram is None else {},
            least=math.inf,
            most=-math.inf,
            bucket_sums=None if self.seed is None else np.zeros((BUCKETS, 2, 2), dtype=np.int64),
            overflow=False,
        )

    @property
    def value(self) -> float:
        """The corpus value; NaN if no segment has one."""
        return self.resolved.value_from_sums([total(column) for column in self.sums], self.n_defined)

    def interval(self, confidence: float = 0.95, resamples: int = RESAMPLES) -> Interval:
        """An interval by the Poisson bootstrap over the buckets; NaN, with the reason, where there is none."""
        return poisson_intervals([self], confidence, resamples)[0]

    def _estimator(self) -> Sums | str:
        """The value as a function of how often each bucket counts; or the reason why there is no interval."""
        if self.bucket_sums is None:
            return "no sums over buckets were kept"
        if self.overflow or not all(math.isfinite(value) for column in self.sums for value in column):
            return "some segments have an infinite value, or nearly"
        sums = sums_as_floats(self.bucket_sums)
        if not self.n_defined and sums.shape[1] == 2:  # of a metric that cannot be computed here: one empty column
            return estimator_of_unit_sums(sums, "mean")
        aggregation = aggregation_of(self.resolved)
        assert aggregation is not None  # `check_additive` refuses others
        return estimator_of_unit_sums(sums, aggregation)

    def score(self, interval: Interval | None = None) -> Score:
        """A Score, which has the value but no segments."""
        score = Score(
            metric=self.metric,
            value=self.value,
            statistics=np.empty((0, len(self.sums))),
            ids=np.empty(0, dtype=np.int64),
            undefined=Undefined(
                {reason: ids for reason, (_, ids) in self.undefined.items()},
                {reason: count for reason, (count, _) in self.undefined.items()},
            ),
            unit=self.unit,
            signature=self.signature,
            resolved=self.resolved,
            count=self.n,
            summary=self._summary(),
            totals=tuple(total(column) for column in self.sums),
        )
        return score if interval is None else sign_interval(score, interval)

    def _summary(self) -> Summary | None:
        if self.histogram is None:
            return None
        percentiles = {p: percentile(self.histogram, p, self.least, self.most) for p in PERCENTILES}
        ends = (self.least, self.most) if self.histogram else (math.nan, math.nan)
        return Summary(percentiles, *ends)

    def to_bytes(self) -> bytes:
        """Write the Tally as bytes that `from_bytes` reads on any machine: MessagePack."""
        kept = b"" if self.bucket_sums is None else zlib.compress(self.bucket_sums.astype("<i8").tobytes(), 1)
        return msgspec.msgpack.encode(
            _State(
                repr(self.metric),
                repr(self.resolved),
                self.unit,
                str(self.signature),
                self.written,
                self.n,
                self.n_defined,
                {reason: (count, list(ids)) for reason, (count, ids) in self.undefined.items()},
                [list(column) for column in self.sums],
                None if self.histogram is None else dict(self.histogram),
                self.least,
                self.most,
                self.seed,
                kept,
                self.overflow,
            )
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Tally:
        """Read what `to_bytes` wrote."""
        s = msgspec.msgpack.decode(data, type=_State)
        sums = None
        if s.bucket_sums:
            sums = np.frombuffer(zlib.decompress(s.bucket_sums), "<i8").astype(np.int64).reshape(BUCKETS, -1, 2)
        return cls(
            metric=metric(s.metric),
            resolved=metric(s.resolved),
            unit=s.unit,
            signature=Signature.parse(s.signature),
            written=s.written,
            n=s.n,
            n_defined=s.n_defined,
            undefined={reason: (count, tuple(ids)) for reason, (count, ids) in s.undefined.items()},
            sums=tuple(map(tuple, s.sums)),
            histogram=s.histogram,
            least=s.least,
            most=s.most,
            seed=s.seed,
            bucket_sums=sums,
            overflow=s.overflow,
        )


class _State(msgspec.Struct, array_like=True):
    """A Tally as it is sent."""

    metric: str
    resolved: str
    unit: str
    signature: str
    written: bool
    n: int
    n_defined: int
    undefined: dict[str, tuple[int, list[int | str]]]
    sums: list[list[float]]
    histogram: dict[int, int] | None
    least: float
    most: float
    seed: int | None
    bucket_sums: bytes
    overflow: bool


def tallies(part: Part, m: MetricPart, group: Ints | None = None, groups: int = 1) -> list[Tally]:
    """The Tally of the segments of each group, by one metric."""
    if isinstance(m.rows, Ragged):
        raise MetricError(f"{m.metric!r} cannot be tallied: it pools the tokens of all segments")
    plan = part.plan
    group = np.zeros(len(part.run), dtype=np.int64) if group is None else group
    defined = np.asarray(~np.isnan(m.rows).any(axis=1), dtype=np.bool_)
    rows, row_group = m.rows[defined], group[defined]
    sums = [expansions(column, row_group if groups > 1 else None, groups) for column in rows.T]
    n = np.bincount(group, minlength=groups).tolist()
    n_defined = np.bincount(row_group, minlength=groups).tolist()
    signatures, undefined = part.signatures(m, group, groups), _reasons(part, m, group, groups)
    sums_only = [
        Tally(
            metric=m.metric,
            resolved=m.resolved,
            unit=m.unit,
            signature=signatures[g],
            written=part.written,
            n=n[g],
            n_defined=n_defined[g],
            undefined=undefined[g],
            sums=tuple(tuple(fold(column[g])) for column in sums),
        )
        for g in range(groups)
    ]
    return sums_only if not plan.summary else _add_summaries(sums_only, part, m, defined, row_group)


def _add_summaries(
    tallies: Sequence[Tally], part: Part, m: MetricPart, defined: npt.NDArray[np.bool_], group: Ints
) -> list[Tally]:
    """The same Tallies with histograms and, for intervals, sums over buckets."""
    groups, seed = len(tallies), part.plan.seed
    assert not isinstance(m.rows, Ragged)
    rows, values = m.rows[defined], m.segments[defined]
    known = ~np.isnan(values)  # a segment may add to the corpus, and have no value of its own
    values, value_group = values[known], group[known]
    least, most = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(least, value_group, values)
    np.maximum.at(most, value_group, values)
    histograms: list[dict[int, int]] = [{} for _ in range(groups)]
    bounded = np.clip(values, -np.finfo(float).max, np.finfo(float).max)
    pairs, counts = np.unique((value_group << 32) + buckets(bounded) + 2**31, return_counts=True)
    cells = zip((pairs >> 32).tolist(), (pairs % 2**32 - 2**31).tolist(), counts.tolist(), strict=True)
    for g, bucket, count in cells:
        histograms[g][bucket] = count
    overflow = np.bincount(group, (np.abs(rows) >= LIMIT).any(axis=1), groups)
    sums: list[Ints | None] = [None] * groups
    if seed is not None:
        bucket = segment_buckets(part.run.id, seed)[defined]
        sums = [*bucket_sums(np.where(np.isfinite(rows), rows, 0), bucket, group, groups)]
    return [
        replace(
            tally,
            histogram=histograms[g],
            least=float(least[g]),
            most=float(most[g]),
            seed=seed,
            bucket_sums=sums[g],
            overflow=bool(overflow[g]),
        )
        for g, tally in enumerate(tallies)
    ]


def _reasons(part: Part, m: MetricPart, group: Ints, groups: int) -> list[Reasons]:
    """How many segments of each group have no value, by reason, and the ids of a few."""
    reasons: list[dict[str, tuple[int, tuple[int | str, ...]]]] = [{} for _ in range(groups)]
    for code in np.flatnonzero(np.bincount(m.codes)[1:]) + 1:
        ids: dict[int, list[int | str]] = {}
        where = m.codes == code
        for g, name in zip(group[where].tolist(), part.run.id[where].tolist(), strict=True):
            ids.setdefault(g, []).append(name)
        for g, names in ids.items():
            reasons[g][reason(m.metric, code, m.unavailable)] = (len(names), _sample(names))
    return list(reasons)


def _join_reasons(first: Reasons, second: Reasons) -> Reasons:
    """The reasons of both, in one order, whatever came first."""
    joint = dict(first)
    for text, (count, ids) in second.items():
        before, known = joint.get(text, (0, ()))
        joint[text] = (before + count, _sample((*known, *ids)))
    order = {text: code for code, text in enumerate(REASONS)}
    return {text: joint[text] for text in sorted(joint, key=lambda text: order.get(text, len(order)))}


def _sample(ids: Iterable[int | str]) -> tuple[int | str, ...]:
    """The same few ids, whatever their order."""
    return tuple(sorted(ids, key=lambda name: (len(str(name)), str(name)))[:SAMPLE])


def _join_signatures(first: Tally, second: Tally) -> Signature:
    """The signature of both; where nothing was written, unit and level are those of the other."""
    a, b = first.signature, second.signature
    if first.written == second.written:
        return joined(a, b)
    known, silent = (a, b) if first.written else (b, a)
    counted = tuple(pair for pair in silent.fields if pair[0] in COUNTED)
    return joined(known, Signature(known.metric, (*(p for p in known.fields if p[0] not in COUNTED), *counted)))


def poisson_intervals(tallies: Sequence[Tally], confidence: float = 0.95, resamples: int = RESAMPLES) -> list[Interval]:
    """The intervals of Tallies of one seed: the same as `Tally.interval` makes, in less time."""
    check_confidence(confidence, resamples)
    ends: list[Interval] = []
    size = max(1, BATCH * RESAMPLES // max(resamples, RESAMPLES))
    for start in range(0, len(tallies), size):
        batch = tallies[start : start + size]
        seed = batch[0].seed or 0
        estimators = [tally._estimator() for tally in batch]
        sums = [e for e in estimators if isinstance(e, Sums)]
        with np.errstate(divide="ignore", invalid="ignore"):
            values = iter(np.concatenate([evaluate(sums, part) for part in weights_in_parts(resamples, seed)]).T)
            for tally, e in zip(batch, estimators, strict=True):
                empty = Interval(math.nan, math.nan, "bca", "segment", confidence, resamples, seed, tally.n_defined)
                if isinstance(e, str):
                    interval = replace(empty, reason=e)
                else:
                    interval = interval_from_resamples(empty, tally.value, e, next(values), None)
                ends.append(replace(interval, method="poisson"))
    return ends
