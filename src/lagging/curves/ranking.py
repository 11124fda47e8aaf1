# SPDX-License-Identifier: Apache-2.0
"""The ranks of systems by several metrics: where metrics disagree, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import numpy.typing as npt

from lagging.comparison.derivations import Draws
from lagging.comparison.published.rows import PublishedRow
from lagging.curves import NO_LOG, Setting, axis, score_setting
from lagging.data.ragged import Floats, Ints
from lagging.errors import UsageError
from lagging.metrics import Metric
from lagging.metrics.conventions import Convention
from lagging.scoring.plan import DEFAULT_METRICS, default_resample
from lagging.scoring.scores import Scores
from lagging.stats import RESAMPLES, SEED
from lagging.stats.intervals import percentile, tails

__all__ = ["Flip", "Ranking", "Tau", "kendall", "ranking"]

PART = 256
"""The number of resamples in which all pairs of systems are compared at a time."""


@dataclass(frozen=True)
class Tau:
    """Kendall's τ-b between two metrics.

    Attributes:
        a, b: the metrics.
        value: from −1, the reverse order, to 1, the same order; NaN if a metric gives all systems the same value.
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
        share: the share of the resamples in which all of these metrics say so; None without logs, or with one segment.
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
        systems, metrics: the systems, and the metrics by which they are ranked.
        values: systems × metrics; `units`: the units of the metrics.
        ranks: systems × metrics: 1 for the best; equal values have the same rank; 0 where there is no value.
        taus: a Tau for every two metrics.
        flips: a Flip for every two systems whose order depends on the metric.
        draws: the resamples; None if not all systems have logs.
        scores: the scores of the systems that have logs.
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
    left, right = (np.sign(values[..., second] - values[..., first]) for values in (a, b))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((left * right).sum(-1) / np.sqrt((left**2).sum(-1) * (right**2).sum(-1)))


def ranking(
    systems: Mapping[str, Setting],
    metrics: Iterable[str | Metric] = DEFAULT_METRICS,
    *,
    convention: str | Convention = "paper",
    resample: str | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Ranking:
    """Rank systems by each metric, and say how far the metrics agree.

    τ is no smooth function of the scores, so its interval is a percentile interval, for documents too.

    Args:
        systems: by name, a Run, Scores, or published numbers.
        metrics: at least two, each with a better direction.
        convention: the convention by which Runs are scored.
        resample, confidence, resamples, seed: options of the intervals of τ; see `lagging.stats.intervals`.

    Example:
        >>> import lagging
        >>> def run(delays):
        ...     return lagging.Run.from_delays([delays] * 4, source_length=[5] * 4)
        >>> systems = {"wait-3": run([3, 4, 5, 5, 5]), "antagonist": run([4, 4, 4, 4, 5])}
        >>> result = ranking(systems, ["AL", "DAL"], resamples=100)
        >>> result.ranks.tolist(), result.taus[0].value
        ([[2, 1], [1, 2]], -1.0)
        >>> result.flips
        (Flip(a='wait-3', b='antagonist', before=(DAL,), after=(AL,), share=1.0),)
    """
    chosen = tuple(dict.fromkeys(axis(m) for m in metrics))
    for m in chosen:
        if m.higher_is_better is None:
            raise UsageError(f"{m!r} cannot rank systems: neither higher nor lower is better")
    if len(chosen) < 2 or len(systems) < 2:
        raise UsageError("a ranking needs at least two metrics and two systems")
    results = {name: score_setting(name, setting, chosen, convention) for name, setting in systems.items()}
    logs = {name: result for name, result in results.items() if isinstance(result, Scores)}
    draws = None
    if logs:
        resample = default_resample(*logs.values()) if resample is None else resample
        draws = Draws.make(logs, chosen, resample=resample, confidence=confidence, resamples=resamples, seed=seed)
    rows = {} if draws is None else dict(zip(logs, draws.value, strict=True))
    for name, result in results.items():
        if isinstance(result, PublishedRow):
            rows[name] = np.array([result.value(m) for m in chosen])
    signs = np.array([1.0 if m.higher_is_better else -1.0 for m in chosen])
    values = np.array([rows[name] for name in results])
    reason = NO_LOG
    resampled = None
    if draws is not None and len(logs) == len(results):
        reason = draws.too_few
        resampled = None if reason else draws.values * signs
    pairs = combinations(range(len(chosen)), 2)
    return Ranking(
        systems=tuple(results),
        metrics=chosen,
        values=values,
        units=_units(results, chosen),
        ranks=_ranks(values * signs),
        taus=tuple(_tau(chosen, pair, values * signs, resampled, confidence, reason) for pair in pairs),
        flips=_flips(tuple(results), chosen, values * signs, resampled),
        draws=draws,
        scores=() if draws is None else tuple(draws.scores()),
    )


def _units(results: Mapping[str, Scores | PublishedRow], metrics: Sequence[Metric]) -> tuple[str, ...]:
    """The unit of each metric; all systems must have the same, or they cannot be ranked."""
    agreed = []
    for m in metrics:
        units = {
            result.unit_of(m) if isinstance(result, PublishedRow) else result[m].unit for result in results.values()
        }
        if len(units) > 1:
            raise UsageError(f"{m!r} cannot rank systems in different units: {', '.join(sorted(units))}")
        agreed.append(units.pop())
    return tuple(agreed)


def _ranks(better: Floats) -> Ints:
    """1 for the highest of each column; equal values share the better rank; 0 for NaN."""
    above = (better[None, :, :] > better[:, None, :]).sum(axis=1)
    return np.where(np.isnan(better), 0, above + 1)


def _tau(
    metrics: Sequence[Metric],
    pair: tuple[int, int],
    better: Floats,
    resampled: Floats | None,
    confidence: float,
    reason: str,
) -> Tau:
    """The τ of two metrics; without resamples it has no interval, for the reason that is given."""
    i, j = pair
    defined = ~np.isnan(better[:, [i, j]]).any(axis=1)
    value = float(kendall(better[defined, i], better[defined, j]))
    low = high = None
    if np.isnan(value):
        reason = "a metric gives all systems the same value"
    elif resampled is not None:
        reason = ""
        parts = (resampled[start : start + PART, defined] for start in range(0, len(resampled), PART))
        values = np.concatenate([kendall(part[..., i], part[..., j]) for part in parts])
        undefined = float(np.isnan(values).mean())
        if undefined > tails(confidence)[0]:
            reason = f"{100 * undefined:.2g} % of the resamples have no value: too many"
        else:
            low, high = percentile(values[~np.isnan(values)], confidence)
    return Tau(metrics[i], metrics[j], value, low, high, reason)


def _flips(
    systems: Sequence[str], metrics: Sequence[Metric], better: Floats, resampled: Floats | None
) -> tuple[Flip, ...]:
    flips = []
    for i, j in combinations(range(len(systems)), 2):
        before, after = better[i] > better[j], better[j] > better[i]
        if not (before.any() and after.any()):
            continue
        share = None
        if resampled is not None:
            ahead, behind = resampled[:, i] > resampled[:, j], resampled[:, j] > resampled[:, i]
            share = float((ahead[:, before].all(axis=1) & behind[:, after].all(axis=1)).mean())
        chosen = [tuple(m for m, yes in zip(metrics, which, strict=True) if yes) for which in (before, after)]
        flips.append(Flip(systems[i], systems[j], chosen[0], chosen[1], share))
    return tuple(flips)
