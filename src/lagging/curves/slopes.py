# SPDX-License-Identifier: Apache-2.0
"""One metric against another: a line for each family of settings, and the differences of their slopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from lagging.comparison.derivations import Derived, Function
from lagging.curves import Curve, Curves, Setting, axis, join_settings, values_of
from lagging.data.ragged import Floats
from lagging.errors import counted
from lagging.metrics import Metric
from lagging.metrics.conventions import Convention
from lagging.stats import CORRECTIONS, RESAMPLES, SEED, check_correction
from lagging.stats.estimators import Ratio
from lagging.stats.polylines import fit
from lagging.stats.wild import wild

__all__ = ["Line", "Lines", "SlopeDifference", "lines"]


@dataclass(frozen=True)
class Line:
    """The straight line nearest to the settings of a system, one metric over another.

    Attributes:
        system: the name of the system.
        curve: its settings.
        slope: by how much the second metric grows where the first grows by 1; the p-value is that of a slope of 1.
        start: the second metric where the first is 0.
        resample: what the intervals are over: "segment", "document", or "setting" where there are no logs.
    """

    system: str
    curve: Curve
    slope: Derived
    start: Derived
    resample: str


@dataclass(frozen=True)
class SlopeDifference:
    """The difference of the slopes of two systems, b − a; see `Line`."""

    a: str
    b: str
    difference: Derived
    p_adjusted: float


@dataclass(frozen=True, eq=False)
class Lines:
    """One metric against another, a line per system.

    Attributes:
        x, y: the metrics.
        lines: the lines of the systems.
        slope_differences: the differences of all pairs of systems that have logs and a slope.
        curves: the points, and the resamples.
    """

    x: Metric
    y: Metric
    lines: tuple[Line, ...]
    slope_differences: tuple[SlopeDifference, ...]
    curves: Curves = field(repr=False)


def lines(
    settings: Mapping[str, Sequence[tuple[str, Setting]]],
    x: str | Metric = "AL",
    y: str | Metric = "DAL",
    *,
    convention: str | Convention = "paper",
    resample: str | None = None,
    confidence: float = 0.95,
    correction: str = "holm",
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Lines:
    r"""Fit a line to one metric over another at several settings: Figure 2 of Cherry & Foster (2019).

    $$ b = \frac{\sum_i (x_i - \bar x)(y_i - \bar y)}{\sum_i (x_i - \bar x)^2}, \qquad a = \bar y - b\, \bar x $$

    A fixed policy has a slope near 1: DAL exceeds AL by the same amount at every latency. The steeper the line of an
    adaptive policy, the more of its lag AL does not count.

    Intervals are over segments, or documents, with all settings of all systems on the same resamples. Where numbers
    were published without logs, intervals are over the settings, by a wild bootstrap of the residuals (Cameron, Gelbach
    & Miller 2008): they say how straight the line is, not how sure its points are.

    Args:
        settings: by system, the name of each setting, and its Run, its Scores, or its published numbers.
        x, y: the metrics; the line is fitted by least squares in y.
        convention: the convention by which Runs are scored.
        resample, confidence, resamples, seed: options of the intervals; see `lagging.stats.intervals`.
        correction: the correction of the p-values of the differences: "holm", "bh" or "none".

    Example:
        >>> import lagging
        >>> lengths = [9, 12, 17, 20, 26, 31]
        >>> def run(policy):
        ...     return policy.run(source_lengths=lengths, target_lengths=lengths)
        >>> family = [(f"k={k}", run(lagging.policies.wait_k(k))) for k in (2, 4, 6)]
        >>> result = lines({"wait-k": family}, resamples=100)
        >>> round(result.lines[0].slope.value, 3), round(result.lines[0].start.value, 3)
        (1.0, 0.0)
    """
    check_correction(correction)
    curves = join_settings(
        settings,
        axis(x),
        axis(y),
        convention=convention,
        resample=resample,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
    )
    logged = [min(indices) >= 0 for indices in curves.indices]
    derived = curves.derive([(f, (c,)) for c in range(len(curves)) for f in (_slope, _start, _slope_minus_1)])
    resampled = "" if curves.draws is None else curves.draws.template.resample
    fitted = []
    for c, curve in enumerate(curves):
        slope, start, minus_1 = derived[3 * c : 3 * c + 3]
        slope = replace(slope, p=minus_1.p)
        if not logged[c]:
            slope = _over_settings(slope.value, values_of([curve]), confidence, resamples, seed)
        fitted.append(
            Line(
                system=curve.system,
                curve=curve,
                slope=_explain(slope, curve),
                start=_explain(start, curve),
                resample=resampled if logged[c] else "setting",
            )
        )
    pairs = [
        (a, b)
        for a, b in combinations(range(len(curves)), 2)
        if all(logged[c] and not np.isnan(derived[3 * c].value) for c in (a, b))
    ]
    differences = curves.derive([(_slope_difference(len(curves[a].points)), (a, b)) for a, b in pairs])
    adjusted = CORRECTIONS[correction]([difference.p for difference in differences])
    slope_differences = tuple(
        SlopeDifference(curves[a].system, curves[b].system, difference, float(p))
        for (a, b), difference, p in zip(pairs, differences, adjusted, strict=True)
    )
    return Lines(curves.latency, curves.quality, tuple(fitted), slope_differences, curves)


def _slope(values: Floats) -> Floats:
    return fit(values[..., 0], values[..., 1])[0]


def _slope_minus_1(values: Floats) -> Floats:
    return _slope(values) - 1


def _start(values: Floats) -> Floats:
    return fit(values[..., 0], values[..., 1])[1]


def _slope_difference(first: int) -> Function:
    """The slope of the settings after the `first` ones, minus that of these."""

    def function(values: Floats) -> Floats:
        return _slope(values[..., first:, :]) - _slope(values[..., :first, :])

    return function


def _explain(derived: Derived, curve: Curve) -> Derived:
    """The same, with the reason why there is no line."""
    if not np.isnan(derived.value):
        return derived
    single = len(curve.points) == 1
    return Derived(
        derived.value, reason="a line needs two settings" if single else "all settings have the same x, or no value"
    )


def _over_settings(slope: float, values: Floats, confidence: float, resamples: int, seed: int) -> Derived:
    """The slope with an interval over the settings: it is a ratio of sums over them, with random weights."""
    n = len(values)
    if np.isnan(slope) or n < 3:
        return Derived(slope, reason=f"{counted(n, 'setting')}: too few for an interval")
    x, y = (values - values.mean(axis=0)).T
    if np.ptp(y - slope * x) <= 1e-12 * np.abs(values).max():
        return Derived(slope, slope, slope, reason="all settings lie on the line")
    weighted = wild([(Ratio.from_rows(np.column_stack([x * y, x * x, np.ones(n)])), None)], resamples, seed)[0]
    low, high = weighted.interval(confidence)
    if np.isnan(low) or np.isnan(high):
        return Derived(slope, reason=f"{counted(n, 'setting')}: too few for an interval")
    return Derived(slope, low, high, weighted.p(1.0))
