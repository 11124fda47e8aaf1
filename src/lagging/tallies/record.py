# SPDX-License-Identifier: Apache-2.0
"""A tally: what is kept of segments that were scored by one metric, and how two of them add up."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import add

import msgspec
import numpy as np

from lagging.errors import UsageError
from lagging.metrics import Metric, metric
from lagging.ragged import Ints
from lagging.scoring import Score, Undefined
from lagging.signature import ADDED, Signature, joined
from lagging.stats.estimators import Ratio, Sums, evaluate
from lagging.stats.intervals import Interval, check_drawn, finish
from lagging.stats.resamples import on_grid
from lagging.tallies.additive import (
    LOTS,
    POINT,
    RESAMPLES,
    carried,
    middle,
    rounded,
    weights_in_parts,
)

__all__ = ["NAMED", "PERCENTILES", "Reasons", "Tallied", "Tally", "few", "intervals"]

PERCENTILES = (50.0, 90.0, 95.0, 99.0)
TOGETHER = 64
"""How many intervals of `RESAMPLES` are made at once."""
NAMED = 5
"""How many segments without a value are named, for each reason."""

Reasons = Mapping[str, tuple[int, tuple[int | str, ...]]]
"""How many segments have no value, by reason, and the names of some."""

# ---- a tally ----------------------------------------------------------------------------------------------------


class _State(msgspec.Struct, array_like=True):
    """A tally as it travels."""

    metric: str
    settled: str
    unit: str
    signature: str
    told: bool
    n: int
    undefined: dict[str, tuple[int, list[int | str]]]
    sums: list[bytes]
    endless: list[float]
    some: int
    histogram: dict[int, int]
    least: float
    most: float
    seed: int | None
    lots: bytes
    large: bool


@dataclass(frozen=True, eq=False)
class Tally:
    """What is kept of some segments that were scored by one metric; `a + b` is that of the segments of both.

    Attributes:
        metric, settled: the metric as asked for, and with what the convention set.
        unit: of its values.
        signature: how they were made.
        told: whether anything was written in these segments; if not, they do not say what unit and level are.
        n, some: number of segments, and of those that have a value.
        undefined: how many have no value, by reason, and the names of some of them.
        sums: of each column of the statistics, exact, in whole numbers of 2⁻¹¹²⁷.
        endless: of each column, the sum of what is not finite.
        histogram: how many values lie in each bucket.
        least, most: of the values.
        seed: of the lots; None if there is to be no interval.
        lots: sums over each lot (rows) of each column, and of the number of segments with a value.
        large: whether anything was too large for these sums.
    """

    metric: Metric
    settled: Metric
    unit: str
    signature: Signature
    told: bool
    n: int
    some: int
    undefined: Reasons
    sums: tuple[int, ...]
    endless: tuple[float, ...]
    histogram: Mapping[int, int]
    least: float
    most: float
    seed: int | None = None
    lots: Ints | None = field(default=None, repr=False)
    large: bool = False

    def __add__(self, other: Tally) -> Tally:
        """The tally of the segments of both."""
        if self.metric != other.metric or self.settled != other.settled:
            raise UsageError(f"a tally of {self.settled!r} cannot be added to one of {other.settled!r}")
        if self.seed != other.seed:
            raise UsageError(f"tallies of the seeds {self.seed} and {other.seed} cannot be added")
        told = self if self.told or not other.told else other
        kept = None
        if self.lots is not None and other.lots is not None:
            kept = carried(self.lots + other.lots)
        histogram = dict(self.histogram)
        for bucket, count in other.histogram.items():
            histogram[bucket] = histogram.get(bucket, 0) + count
        return replace(
            self,
            unit=told.unit,
            signature=_signed(self, other),
            told=self.told or other.told,
            n=self.n + other.n,
            some=self.some + other.some,
            undefined=_both(self.undefined, other.undefined),
            sums=tuple(map(add, self.sums, other.sums)),
            endless=tuple(map(add, self.endless, other.endless)),
            histogram=histogram,
            least=min(self.least, other.least),
            most=max(self.most, other.most),
            lots=kept,
            large=self.large or other.large or (kept is not None and bool(np.abs(kept[..., 0]).max() >= 2**61)),
        )

    @property
    def value(self) -> float:
        """The corpus value; NaN if no segment has one."""
        sums = [rounded(total) + endless for total, endless in zip(self.sums, self.endless, strict=True)]
        return self.settled.of_sums(sums, self.some)

    def percentile(self, p: float) -> float:
        """The value that p of 100 segments do not exceed, within 0.4 %; NaN if no segment has one."""
        if not self.histogram:
            return math.nan
        rank, below = max(1, math.ceil(p / 100 * sum(self.histogram.values()))), 0
        for bucket in sorted(self.histogram):
            below += self.histogram[bucket]
            if below >= rank:
                return min(max(middle(bucket), self.least), self.most)
        return self.most

    def interval(self, level: float = 0.95, resamples: int = RESAMPLES) -> Interval:
        """An interval by the Poisson bootstrap over the lots; NaN, with the reason, where there is none."""
        return intervals([self], level, resamples)[0]

    def _estimator(self) -> Sums | str:
        """The value as a function of how often each lot counts; or, in words, why there is no interval."""
        if self.lots is None:
            return "nothing was kept for one"
        if self.large or any(map(bool, self.endless)):
            return "some segments have an infinite value, or nearly"
        # on a grid, sums are exact, be it one at a time or many at once
        sums = on_grid(self.lots[..., 0] + self.lots[..., 1] * 2.0**-POINT)
        if not callable(self.settled.aggregate):
            return Ratio.of(sums[:, [0, 1, -1] if self.settled.ratio else [0, -1, -1]])
        from_sums = self.settled.from_sums
        assert from_sums is not None  # `check_metrics` refuses others
        return Sums(sums, lambda s: np.where(s[..., -1] > 0, from_sums(s[..., :-1]), np.nan))

    def score(self, group: Mapping[str, str | None] | None = None, interval: Interval | None = None) -> Tallied:
        """As a score, which has the value but no segments."""
        low, high, signature = None, None, self.signature
        if interval is not None and not math.isnan(interval.low):
            low, high = interval.low, interval.high
            ci = f"{100 * interval.level:.10g}"
            signature = signature.with_interval(
                ci=ci, by="segment", method="poisson", bs=interval.resamples, seed=interval.seed
            )
        return Tallied(
            metric=self.metric,
            value=self.value,
            statistics=np.empty((0, len(self.sums))),
            ids=np.empty(0, dtype=np.int64),
            undefined=Undefined(
                {reason: names for reason, (_, names) in self.undefined.items()},
                {reason: count for reason, (count, _) in self.undefined.items()},
            ),
            unit=self.unit,
            signature=signature,
            settled=self.settled,
            low=low,
            high=high,
            count=self.n,
            group=dict(group or {}),
            percentiles={p: self.percentile(p) for p in PERCENTILES},
            least=self.least if self.histogram else math.nan,
            most=self.most if self.histogram else math.nan,
        )

    def to_bytes(self) -> bytes:
        """As bytes that `from_bytes` reads on any machine: MessagePack."""
        kept = b"" if self.lots is None else zlib.compress(self.lots.astype("<i8").tobytes(), 1)
        state = _State(
            repr(self.metric),
            repr(self.settled),
            self.unit,
            str(self.signature),
            self.told,
            self.n,
            {reason: (count, list(names)) for reason, (count, names) in self.undefined.items()},
            [total.to_bytes(total.bit_length() // 8 + 1, "little", signed=True) for total in self.sums],
            list(self.endless),
            self.some,
            dict(self.histogram),
            self.least,
            self.most,
            self.seed,
            kept,
            self.large,
        )
        return msgspec.msgpack.encode(state)

    @classmethod
    def from_bytes(cls, data: bytes) -> Tally:
        """Read back what `to_bytes` wrote."""
        s = msgspec.msgpack.decode(data, type=_State)
        kept = None
        if s.lots:
            kept = np.frombuffer(zlib.decompress(s.lots), "<i8").astype(np.int64).reshape(LOTS, -1, 2)
        return cls(
            metric=metric(s.metric),
            settled=metric(s.settled),
            unit=s.unit,
            signature=Signature.parse(s.signature),
            told=s.told,
            n=s.n,
            some=s.some,
            undefined={reason: (count, tuple(names)) for reason, (count, names) in s.undefined.items()},
            sums=tuple(int.from_bytes(total, "little", signed=True) for total in s.sums),
            endless=tuple(s.endless),
            histogram=s.histogram,
            least=s.least,
            most=s.most,
            seed=s.seed,
            lots=kept,
            large=s.large,
        )


def intervals(tallies: Sequence[Tally], level: float = 0.95, resamples: int = RESAMPLES) -> list[Interval]:
    """The intervals of tallies of one seed: those of one by one, in less time."""
    check_drawn(level, resamples)
    out: list[Interval] = []
    together = max(1, TOGETHER * RESAMPLES // max(resamples, RESAMPLES))
    for start in range(0, len(tallies), together):
        some = tallies[start : start + together]
        seed = some[0].seed or 0
        found = [one._estimator() for one in some]
        sums = [e for e in found if isinstance(e, Sums)]
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn = iter(np.concatenate([evaluate(sums, part) for part in weights_in_parts(resamples, seed)]).T)
            for one, e in zip(some, found, strict=True):
                made = Interval(math.nan, math.nan, "bca", "segment", level, resamples, seed, one.some)
                made = replace(made, reason=e) if isinstance(e, str) else finish(made, one.value, e, next(drawn), None)
                out.append(replace(made, method="poisson"))
    return out


def _both(one: Reasons, other: Reasons) -> Reasons:
    out = dict(one)
    for reason, (count, names) in other.items():
        before, known = out.get(reason, (0, ()))
        out[reason] = (before + count, few((*known, *names)))
    return out


def few(names: Iterable[int | str]) -> tuple[int | str, ...]:
    """The same few of some names, whatever their order."""
    return tuple(sorted(names, key=lambda name: (len(str(name)), str(name)))[:NAMED])


def _signed(one: Tally, other: Tally) -> Signature:
    """How the scores of both were made; where nothing was written, unit and level are those of the other."""
    a, b = one.signature, other.signature
    if one.told == other.told:
        return joined(a, b)
    told, silent = (a, b) if one.told else (b, a)
    added = tuple(pair for pair in silent.fields if pair[0] in ADDED)
    return joined(told, Signature(told.metric, (*(p for p in told.fields if p[0] not in ADDED), *added)))


# ---- as scores --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Tallied(Score):
    """A score without its segments.

    Attributes:
        group: what they have in common, by column.
        percentiles: of the segments' values: 50, 90, 95 and 99, within 0.4 %.
        least, most: of the segments' values.
    """

    group: Mapping[str, str | None] = field(default_factory=dict)
    percentiles: Mapping[float, float] = field(default_factory=dict)
    least: float = math.nan
    most: float = math.nan
