# SPDX-License-Identifier: Apache-2.0
"""Where metrics disagree: who ranks systems otherwise, and which kind of system a metric favours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from lagging.comparison.derived import Derived, Draws, Function
from lagging.comparison.published.rows import PublishedRow
from lagging.curves import NO_LOG, Curve, Curves, Setting, axis, joined, scores_of, values_of
from lagging.data.ragged import Floats, Ints
from lagging.errors import UsageError, counted
from lagging.metrics import Metric
from lagging.metrics.conventions import Convention
from lagging.scoring.plan import DEFAULT_METRICS, default_resample
from lagging.scoring.scores import Scores
from lagging.stats import CORRECTIONS, RESAMPLES, SEED
from lagging.stats.estimators import Ratio
from lagging.stats.intervals import percentile, tails
from lagging.stats.polylines import fit
from lagging.stats.wild import wild

__all__ = ["Flip", "Line", "Lines", "Ranking", "Steeper", "Tau", "kendall", "lines", "ranking"]

PART = 256
"""Resamples of which every two systems are compared at a time: their number grows with the square of the systems."""


@dataclass(frozen=True)
class Tau:
    """Kendall's τ-b between two metrics.

    Attributes:
        a, b: the metrics.
        value: from −1, the reverse order, to 1, the same order; NaN if a metric gives all systems the same.
        low, high: ends of the interval; None where there is none.
        reason: why there is no value, or no interval; empty otherwise.
    """

    a: Metric
    b: Metric
    value: float
    low: float | None
    high: float | None
    reason: str


@dataclass(frozen=True)
class Flip:
    """Two systems whose order depends on the metric.

    Attributes:
        a, b: the systems.
        before: the metrics by which a is better.
        after: the metrics by which b is better.
        share: in which share of the resamples all of these metrics say so; None without logs, or of one segment.
    """

    a: str
    b: str
    before: tuple[Metric, ...]
    after: tuple[Metric, ...]
    share: float | None


@dataclass(frozen=True, eq=False)
class Ranking:
    """The same systems, ranked by each metric.

    Attributes:
        systems, metrics: what was ranked, and by what.
        values: systems × metrics; `units`: of the metrics.
        ranks: systems × metrics: 1 for the best; equal values have the same rank; 0 where there is no value.
        taus: a Tau for every two metrics.
        flips: a Flip for every two systems whose order depends on the metric.
        draws: the resamples; None if not all systems have logs.
        scores: of the systems that have logs.
    """

    systems: tuple[str, ...]
    metrics: tuple[Metric, ...]
    values: Floats
    units: tuple[str, ...]
    ranks: Ints
    taus: tuple[Tau, ...]
    flips: tuple[Flip, ...]
    draws: Draws | None = field(repr=False)
    scores: tuple[Scores, ...] = field(repr=False)


def kendall(a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    r"""Kendall's τ-b along the last axis (Kendall 1945).

    $$ \tau_b = \frac{P - Q}{\sqrt{(P + Q + T_a)(P + Q + T_b)}} $$

    where P pairs are in the same order, Q in the reverse one, and $T_a$, $T_b$ are tied in a, or in b, only.

    Example:
        >>> float(kendall([1, 2, 3, 4], [1, 2, 4, 3])), float(kendall([1, 2, 3], [1, 1, 1]))
        (0.6666666666666666, nan)
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    first, second = np.triu_indices(a.shape[-1], 1)
    left, right = (np.sign(of[..., second] - of[..., first]) for of in (a, b))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((left * right).sum(-1) / np.sqrt((left**2).sum(-1) * (right**2).sum(-1)))


def ranking(
    systems: Mapping[str, Setting],
    metrics: Iterable[str | Metric] = DEFAULT_METRICS,
    *,
    convention: str | Convention = "paper",
    by: str | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Ranking:
    """Rank systems by each metric, and say how far the metrics agree.

    τ is no smooth function of the scores, so that its interval is a percentile one, also by documents.

    Args:
        systems: by name, a Run, or Scores, or what was published.
        metrics: at least two, each with a better direction.
        convention: how Runs are counted.
        by, level, resamples, seed: of the intervals of τ; see `lagging.stats.interval`.

    Example:
        >>> import lagging
        >>> def run(delays):
        ...     return lagging.Run.from_delays([delays] * 4, source_length=[5] * 4)
        >>> systems = {"wait-3": run([3, 4, 5, 5, 5]), "antagonist": run([4, 4, 4, 4, 5])}
        >>> found = ranking(systems, ["AL", "DAL"], resamples=100)
        >>> found.ranks.tolist(), found.taus[0].value
        ([[2, 1], [1, 2]], -1.0)
        >>> found.flips
        (Flip(a='wait-3', b='antagonist', before=(DAL,), after=(AL,), share=1.0),)
    """
    asked = tuple(dict.fromkeys(axis(m) for m in metrics))
    for m in asked:
        if m.higher_is_better is None:
            raise UsageError(f"{m!r} ranks nothing: neither more nor less of it is better")
    if len(asked) < 2 or len(systems) < 2:
        raise UsageError("metrics can disagree if there are at least two, and two systems")
    scored = {name: scores_of(name, given, asked, convention) for name, given in systems.items()}
    logs = {name: given for name, given in scored.items() if isinstance(given, Scores)}
    draws = None
    if logs:
        by = default_resample(*logs.values()) if by is None else by
        draws = Draws.make(logs, asked, by=by, level=level, resamples=resamples, seed=seed)
    drawn = {} if draws is None else dict(zip(logs, draws.value, strict=True))
    values = np.array([_row(drawn[n] if n in drawn else scored[n], asked) for n in scored])
    signs = np.array([1.0 if m.higher_is_better else -1.0 for m in asked])
    whole = draws if len(logs) == len(scored) else None
    few = "" if whole is None else whole.too_few
    better = None if whole is None or few else whole.values * signs
    pairs = combinations(range(len(asked)), 2)
    return Ranking(
        systems=tuple(scored),
        metrics=asked,
        values=values,
        units=_units(scored, asked),
        ranks=_ranks(values * signs),
        taus=tuple(_tau(asked, pair, values * signs, better, level, few or NO_LOG) for pair in pairs),
        flips=_flips(tuple(scored), asked, values * signs, better),
        draws=draws,
        scores=() if draws is None else tuple(draws.scores()),
    )


def _row(given: Any, asked: Sequence[Metric]) -> Floats:
    return np.asarray([given.value(m) for m in asked] if isinstance(given, PublishedRow) else given)


def _units(scored: Mapping[str, Scores | PublishedRow], asked: Sequence[Metric]) -> tuple[str, ...]:
    """What each metric is counted in; all systems must agree, or they cannot be ranked."""
    found = []
    for m in asked:
        said = {given.unit_of(m) if isinstance(given, PublishedRow) else given[m].unit for given in scored.values()}
        if len(said) > 1:
            raise UsageError(f"{m!r} in different units ({', '.join(sorted(said))}) ranks nothing")
        found.append(said.pop())
    return tuple(found)


def _ranks(better: Floats) -> Ints:
    """1 for the highest of each column; equal ones share the better rank; 0 for NaN."""
    above = (better[None, :, :] > better[:, None, :]).sum(axis=1)
    return np.where(np.isnan(better), 0, above + 1)


def _tau(
    asked: Sequence[Metric], pair: tuple[int, int], better: Floats, drawn: Floats | None, level: float, why: str
) -> Tau:
    """The τ of two metrics; `why` it has no interval where nothing was drawn."""
    i, j = pair
    there = ~np.isnan(better[:, [i, j]]).any(axis=1)
    value = float(kendall(better[there, i], better[there, j]))
    low = high = None
    reason = "" if drawn is not None else why
    if np.isnan(value):
        reason = "a metric gives all systems the same value"
    elif drawn is not None:
        parts = (drawn[at : at + PART, there] for at in range(0, len(drawn), PART))
        values = np.concatenate([kendall(part[..., i], part[..., j]) for part in parts])
        lost = float(np.isnan(values).mean())
        if lost > tails(level)[0]:
            reason = f"{100 * lost:.2g} % of the resamples have no value: too many"
        else:
            low, high = percentile(values[~np.isnan(values)], level)
    return Tau(asked[i], asked[j], value, low, high, reason)


def _flips(systems: Sequence[str], asked: Sequence[Metric], better: Floats, drawn: Floats | None) -> tuple[Flip, ...]:
    found = []
    for i, j in combinations(range(len(systems)), 2):
        before, after = better[i] > better[j], better[j] > better[i]
        if not (before.any() and after.any()):
            continue
        share = None
        if drawn is not None:
            ahead, behind = drawn[:, i] > drawn[:, j], drawn[:, j] > drawn[:, i]
            share = float((ahead[:, before].all(axis=1) & behind[:, after].all(axis=1)).mean())
        names = [tuple(m for m, yes in zip(asked, which, strict=True) if yes) for which in (before, after)]
        found.append(Flip(systems[i], systems[j], names[0], names[1], share))
    return tuple(found)


# ---- one metric against another: a line per family -----------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """The straight line nearest to the settings of a system, one metric over another.

    Attributes:
        system: its name.
        curve: its settings.
        slope: by how much the second metric grows where the first grows by 1; the p-value is of a slope of 1.
        start: the second metric where the first is 0.
        by: what the intervals are over: "segment", "document", or "setting" where there are no logs.
    """

    system: str
    curve: Curve
    slope: Derived
    start: Derived
    by: str


@dataclass(frozen=True)
class Steeper:
    """By how much steeper the line of b is than that of a; see `Line`."""

    a: str
    b: str
    difference: Derived
    p_adjusted: float


@dataclass(frozen=True, eq=False)
class Lines:
    """One metric against another, a line per system.

    Attributes:
        x, y: the metrics.
        lines: of the systems.
        steeper: every two of them that have logs and a slope.
        curves: the points, and the resamples.
    """

    x: Metric
    y: Metric
    lines: tuple[Line, ...]
    steeper: tuple[Steeper, ...]
    curves: Curves = field(repr=False)


def lines(
    settings: Mapping[str, Sequence[tuple[str, Setting]]],
    x: str | Metric = "AL",
    y: str | Metric = "DAL",
    *,
    convention: str | Convention = "paper",
    by: str | None = None,
    level: float = 0.95,
    correction: str = "holm",
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Lines:
    r"""One metric over another at several settings, and the line nearest to them: Figure 2 of Cherry & Foster (2019).

    $$ b = \frac{\sum_i (x_i - \bar x)(y_i - \bar y)}{\sum_i (x_i - \bar x)^2}, \qquad a = \bar y - b\, \bar x $$

    A fixed policy has a slope near 1: what DAL adds to AL is the same at every latency. The steeper the line of an
    adaptive policy, the more of its lag AL forgives.

    Intervals are over segments, or documents, with all settings of all systems on the same resamples; where numbers
    were published without logs, over the settings, by a wild bootstrap of the residuals (Cameron, Gelbach & Miller
    2008), and then they tell how straight the line is, not how sure its points are.

    Args:
        settings: by system, the name of each setting, and its Run, or Scores, or what was published of it.
        x, y: the metrics; the line is least squares in y.
        convention: how Runs are counted.
        by, level, resamples, seed: of the intervals; see `lagging.stats.interval`.
        correction: of the p-values of the differences: "holm", "bh" or "none".

    Example:
        >>> import lagging
        >>> lengths = [9, 12, 17, 20, 26, 31]
        >>> def run(policy):
        ...     return policy.run(source_lengths=lengths, target_lengths=lengths)
        >>> family = [(f"k={k}", run(lagging.policies.wait_k(k))) for k in (2, 4, 6)]
        >>> found = lines({"wait-k": family}, resamples=100)
        >>> round(found.lines[0].slope.value, 3), round(found.lines[0].start.value, 3)
        (1.0, 0.0)
    """
    if correction not in CORRECTIONS:
        raise UsageError(f"there is no correction {correction!r}; there are {', '.join(CORRECTIONS)}")
    how: dict[str, Any] = {"by": by, "level": level, "resamples": resamples, "seed": seed}
    found = joined(settings, axis(x), axis(y), convention=convention, **how)
    logged = [min(places) >= 0 for places in found.places]
    functions = [(f, (c,)) for c in range(len(found)) for f in (_slope, _start, _beyond)]
    drawn = found.derive(functions)
    made = "" if found.draws is None else found.draws.made.by
    out = []
    for c, curve in enumerate(found):
        slope, start, beyond = drawn[3 * c : 3 * c + 3]
        slope = replace(slope, p=beyond.p)
        if not logged[c]:
            slope = _over_settings(slope.value, values_of([curve]), level, resamples, seed)
        out.append(
            Line(curve.system, curve, _said(slope, curve), _said(start, curve), made if logged[c] else "setting")
        )
    pairs = [
        (a, b)
        for a, b in combinations(range(len(found)), 2)
        if all(logged[c] and not np.isnan(drawn[3 * c].value) for c in (a, b))
    ]
    gaps = found.derive([(_steeper(len(found[a].points)), (a, b)) for a, b in pairs])
    adjusted = CORRECTIONS[correction]([gap.p for gap in gaps])
    steeper = (
        Steeper(found[a].system, found[b].system, gap, float(p))
        for (a, b), gap, p in zip(pairs, gaps, adjusted, strict=True)
    )
    return Lines(found.latency, found.quality, tuple(out), tuple(steeper), found)


def _slope(values: Floats) -> Floats:
    return fit(values[..., 0], values[..., 1])[0]


def _beyond(values: Floats) -> Floats:
    return _slope(values) - 1


def _start(values: Floats) -> Floats:
    return fit(values[..., 0], values[..., 1])[1]


def _steeper(first: int) -> Function:
    def function(values: Floats) -> Floats:
        return _slope(values[..., first:, :]) - _slope(values[..., :first, :])

    return function


def _said(found: Derived, curve: Curve) -> Derived:
    """Why there is no line, in words."""
    if not np.isnan(found.value):
        return found
    alone = len(curve.points) == 1
    return Derived(
        found.value, reason="one setting makes no line" if alone else "all settings have the same x, or none"
    )


def _over_settings(slope: float, values: Floats, level: float, resamples: int, seed: int) -> Derived:
    """The slope with an interval over the settings: a ratio of sums over them, so that residuals get random weights."""
    n = len(values)
    if np.isnan(slope) or n < 3:
        return Derived(slope, reason=f"{counted(n, 'setting')}: too few for an interval")
    x, y = (values - values.mean(axis=0)).T
    if np.ptp(y - slope * x) <= 1e-12 * np.abs(values).max():
        return Derived(slope, slope, slope, reason="all settings lie on the line")
    weighted = wild([(Ratio.of(np.column_stack([x * y, x * x, np.ones(n)])), None)], resamples, seed)[0]
    low, high = weighted.interval(level)
    if np.isnan(low) or np.isnan(high):
        return Derived(slope, reason=f"{counted(n, 'setting')}: too few for an interval")
    return Derived(slope, low, high, weighted.p(1.0))
