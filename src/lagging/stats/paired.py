# SPDX-License-Identifier: Apache-2.0
"""Is one system better than another on the same segments, or could it be chance?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lagging.data.ragged import Floats
from lagging.errors import UsageError, counted, did_you_mean
from lagging.metrics import Metric, metric_among
from lagging.scoring.scores import Scores
from lagging.stats.corrections import CORRECTIONS
from lagging.stats.difference import Pair, Seen, start
from lagging.stats.estimators import Estimator, Quantile
from lagging.stats.intervals import DEFAULTS, Interval, check, finish
from lagging.stats.joint import Joint, Part, bootstrap
from lagging.stats.match import match
from lagging.stats.resamples import RESAMPLES, SEED
from lagging.stats.wild import Wild

__all__ = ["DEFAULT_TESTS", "TESTS", "Pair", "Paired", "paired"]

TESTS = ("bootstrap", "randomisation")
DEFAULT_TESTS = {"segment": "randomisation", "document": "bootstrap"}
"""Exchanging errs as often as it promises where names mean nothing: at 0.05, in 4.4 to 5.1 % of simulations with 20 to
500 segments, be lags normal or skewed. Where two systems differ by something skewed whose mean is 0 it errs more often:
8.8 % with 30 segments, 7.1 % with 100, 5.7 % with 500, at a skewness of 3.7 (`bench/coverage.py`). Five documents can
be exchanged in 32 ways only, so that it would never reject."""


@dataclass(frozen=True, eq=False)
class Paired:
    """Several systems, pair by pair, on the same resamples.

    Attributes:
        systems, metrics: what was compared.
        intervals: of each system, an Interval per metric, on the same resamples.
        pairs: a Pair for each metric and two systems, metric by metric.
        n: number of segments that all systems have; `unmatched`: of each system, the ids of its other segments.
        values: resamples × systems × metrics: the bootstrap values.
        test, correction, by, level, resamples, seed, clusters: how it was made; clusters is the number of units.
    """

    systems: tuple[str, ...]
    metrics: tuple[Metric, ...]
    intervals: tuple[tuple[Interval, ...], ...]
    pairs: tuple[Pair, ...]
    n: int
    unmatched: dict[str, tuple[Any, ...]]
    values: Floats = field(repr=False)
    test: str
    correction: str
    by: str
    level: float
    resamples: int
    seed: int
    clusters: int

    def pair(self, name: str | Metric, a: str, b: str) -> Pair:
        """The pair of a metric and two systems, in the order in which they were compared."""
        for pair in self.pairs:
            if (pair.metric, pair.a, pair.b) == (metric_among(name, self.metrics), a, b):
                return pair
        raise UsageError(f"{a} and {b} were not compared by {name}")

    def together(self, a: str, b: str, margins: Mapping[str, float] | None = None) -> float:
        """How likely it is that b is no worse than a by any of the metrics: in which share of the resamples it is so.

        Args:
            a, b: the systems.
            margins: which metrics, and how much worse b may be, in the unit of each: {"BLEU": 0.5, "AL": 0} for b that
                loses at most half a point of BLEU and is not later. Negative: how much better it must be. All metrics
                with a direction, and no margin, by default.

        Returns:
            A share between 0 and 1; NaN if no resample has a value.
        """
        wanted = (
            {m: 0.0 for m in self.metrics if m.higher_is_better is not None}
            if margins is None
            else {metric_among(name, self.metrics): margin for name, margin in margins.items()}
        )
        one, other = (self.systems.index(_known(name, self.systems)) for name in (a, b))
        good, there = np.ones(len(self.values), dtype=bool), np.ones(len(self.values), dtype=bool)
        for m, margin in wanted.items():
            if m not in self.metrics or m.higher_is_better is None:
                raise UsageError(f"{m!r} was not compared, or has no better direction")
            gain = self.values[:, other, self.metrics.index(m)] - self.values[:, one, self.metrics.index(m)]
            good &= (gain if m.higher_is_better else -gain) >= -margin
            there &= ~np.isnan(gain)
        return float(good[there].mean()) if there.any() else np.nan


def paired(
    systems: Mapping[str, Scores],
    metrics: Iterable[str | Metric] | None = None,
    *,
    test: str | None = None,
    by: str = "segment",
    base: str | None = None,
    level: float = 0.95,
    method: str | None = None,
    correction: str = "holm",
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Paired:
    r"""Compare systems pair by pair on the segments that all of them have, all metrics on the same resamples.

    With $d$ the difference and $d^*$ that of a resample, the two-sided p-value is $(k + 1)/(B + 1)$, where k of B are
    as extreme as what was seen (Davison & Hinkley 1997, chapter 4):

    - `bootstrap` (Koehn 2004): segments or documents are drawn with replacement, the same for both systems; extreme is
      $|d^* - d|/s^* \ge |d|/s$, with standard errors, as a test of the mean of few segments errs too often without
      them (Hall & Wilson 1991); with `method="wild"`, the default for documents, units are weighted, not drawn;
    - `randomisation` (Noreen 1989; Riezler & Maxwell 2005): the two systems exchange their outputs in a random half of
      the segments or documents; extreme is $|d^*| \ge |d|$. It assumes nothing but that under no difference the names
      of the systems mean nothing.

    The interval of the difference is a bootstrap interval in both cases; see `interval`. Pooled percentiles have no
    standard error: extreme is $|d^* - d| \ge |d|$, and the interval is a percentile interval where another would be
    studentised.

    Args:
        systems: scores by system; segments are matched by id.
        metrics: which to compare; all that every system has, by default.
        test: "bootstrap" or "randomisation"; by default, randomisation by segment and bootstrap by document.
        by: "segment" or "document".
        base: compare the others with this system only; all pairs, by default.
        level: of intervals.
        method: of intervals; "bca" by segment and "wild" by document, by default. "sacrebleu" makes p as
            sacreBLEU's --paired-bs and --paired-ar do: of $|d^*| - \overline{|d^*|} > |d|$ and of $|d^*| > |d|$.
        correction: "holm", "bh" or "none": over the pairs of each metric.
        resamples, seed: how many, and of which random numbers.

    Raises:
        UsageError: fewer than two systems, or nothing in common.

    Example:
        >>> import lagging
        >>> def scores(k):
        ...     delays = [[min(k + t, x) for t in range(x)] for x in range(4, 16)]
        ...     return lagging.score(lagging.Run.from_delays(delays, source_length=range(4, 16)), ["AP", "DAL"])
        >>> found = paired({"wait-3": scores(3), "wait-1": scores(1)})
        >>> for pair in found.pairs:
        ...     print(f"{pair.metric}: {pair.difference:.2f} [{pair.low:.2f}, {pair.high:.2f}], p = {pair.p:.4f}")
        AP: -0.19 [-0.23, -0.16], p = 0.0006
        DAL: -2.00 [-2.00, -2.00], p = 0.0006
        >>> found.pairs[0].wins, found.pairs[0].ties, found.pairs[0].losses
        (12, 0, 0)
    """
    method = DEFAULTS.get(by, "") if method is None else method
    check(method, by, level, resamples)
    test = DEFAULT_TESTS[by] if test is None else test
    if test not in TESTS:
        raise UsageError(f"there is no test {test!r}; there are {', '.join(TESTS)}")
    if correction not in CORRECTIONS:
        raise UsageError(f"there is no correction {correction!r}; there are {', '.join(CORRECTIONS)}")
    if base is not None:
        _known(base, systems)
    matched = match(systems, metrics, by=by, in_order=method == "sacrebleu")
    joint = Joint.make(matched, by, base)
    made = Interval(np.nan, np.nan, method, by, level, resamples, seed, joint.units.n)
    functions = {"values": joint.values_of} | ({"t": joint.t_of} if method == "studentised" else {})
    drawn: dict[str, Floats] = {}  # of systems, and of the pairs of a part
    found: list[list[Pair]] = [[] for _ in matched.metrics]
    for part in joint.parts(resamples):
        functions |= {"spreads": part.spreads_of} | ({"errors": part.errors_of} if method == "studentised" else {})
        drawn |= bootstrap(joint.units.n, resamples, seed, functions)
        functions = {}  # systems are drawn once
        for of, more in zip(found, _pairs(part, drawn, made, test), strict=True):
            of += more
        del drawn["spreads"]
    pairs = []
    for of in found:
        adjusted = CORRECTIONS[correction]([pair.p for pair in of])
        pairs += [replace(pair, p_adjusted=float(p)) for pair, p in zip(of, adjusted, strict=True)]
    return Paired(
        systems=matched.systems,
        metrics=matched.metrics,
        intervals=_intervals(joint, drawn, made),
        pairs=tuple(pairs),
        n=matched.n,
        unmatched=matched.unmatched,
        values=drawn["values"],
        test=test,
        correction=correction,
        by=by,
        level=level,
        resamples=resamples,
        seed=seed,
        clusters=joint.units.n,
    )


def _pairs(part: Part, drawn: Mapping[str, Floats], made: Interval, test: str) -> Iterator[list[Pair]]:
    """The pairs of a part, by each metric."""
    matched, n, method, (resamples, seed) = part.matched, part.units.n, made.method, (made.resamples, made.seed)
    values, spreads, errors = drawn["values"][:, part.systems], drawn["spreads"], drawn.get("errors")
    trials = part.exchanged(resamples, seed) if test == "randomisation" else None
    whole = part.errors_of(np.ones((1, n)))[0]
    names, scores = [matched.systems[s] for s in part.systems], [matched.scores[s] for s in part.systems]
    for m, of in enumerate(matched.metrics):
        weighted = part.wild_of_pairs(m, resamples, seed) if method == "wild" else {}
        found = []
        for place, (a, b) in enumerate(part.pairs):
            pair = start(of, scores[a][m], scores[b][m], names[a], names[b])
            one, other = part.table[m][a], part.table[m][b]
            reason = one if isinstance(one, str) else other if isinstance(other, str) else _too_few(one, other, made.by)
            if isinstance(one, str) or isinstance(other, str) or reason:
                found.append(replace(pair, method=method, reason=str(reason)))
                continue
            seen = Seen(
                difference=other.value - one.value,
                error=float(whole[place, m]),
                scale=float(np.nanmax(np.abs(values[:, [a, b], m]), initial=0)),
                values=values[:, b, m] - values[:, a, m],
                errors=None if errors is None or isinstance(one, Quantile) else errors[:, place, m],
                wild=weighted.get(place),
                trials=None if trials is None else trials[:, place, m],
                spread=spreads[:, place, m],
                n=n,
                by=made.by,
            )
            found.append(seen.fill(pair, one, other, method, made.level))
        yield found


def _intervals(joint: Joint, drawn: Mapping[str, Floats], made: Interval) -> tuple[tuple[Interval, ...], ...]:
    """Of each system, an interval per metric."""

    def one(s: int, m: int, more: Floats | Wild | None) -> Interval:
        e = joint.table[m][s]
        if isinstance(e, str):
            return replace(made, reason=e)
        return finish(made, joint.matched.scores[s][m].value, e, drawn["values"][:, s, m], more)

    by_metric = []
    for m in range(len(joint.table)):
        weighted = joint.wild_of_systems(m, made.resamples, made.seed) if made.method == "wild" else {}
        t = drawn.get("t")
        systems = range(len(joint.matched.systems))
        by_metric.append([one(s, m, weighted.get(s) if t is None else t[:, s, m]) for s in systems])
    return tuple(zip(*by_metric, strict=True))


def _known(name: str, systems: Iterable[str]) -> str:
    names = list(systems)
    if name not in names:
        raise UsageError(f"there is no system {name!r}.{did_you_mean(name, names)}")
    return name


def _too_few(one: Estimator, other: Estimator, by: str) -> str:
    some = min(one.some, other.some)
    return f"{counted(some, by)} with a value: too few" if some < 2 else ""
