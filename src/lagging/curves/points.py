# SPDX-License-Identifier: Apache-2.0
"""The points of curves, and the results that are computed from curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lagging.data.ragged import Floats
from lagging.metrics import Metric
from lagging.scoring.scores import Scores

__all__ = ["NO_LOG", "Area", "Axis", "Curve", "CurveValue", "OnFront", "Point", "values_of"]

NO_LOG = "published without a log"


@dataclass(frozen=True)
class Axis:
    """A value, and its interval where there is one.

    Attributes:
        value: in the unit of the log; NaN where it is undefined.
        low, high: ends of the interval; None where there is none.
    """

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Point:
    """One setting of a system.

    Attributes:
        setting: its name, such as "k=3".
        latency, quality: where it lies; quality is None where there is none.
        scores: the scores of the log; None where the numbers were published without one.
    """

    setting: str
    latency: Axis
    quality: Axis | None = None
    scores: Scores | None = None


@dataclass(frozen=True)
class Curve:
    """One system at several settings.

    Attributes:
        system: its name.
        points: its settings, by rising latency.
        latency, quality: the metrics of the two axes.
        unit: the unit of latency: "token", "ms" or "ratio".
    """

    system: str
    points: tuple[Point, ...]
    latency: Metric
    quality: Metric
    unit: str


@dataclass(frozen=True)
class CurveValue:
    """The quality of a curve at a latency, or its latency at a quality.

    Attributes:
        system: the system of the curve.
        at: the latency, or the quality, that was asked for.
        value: the quality at that latency, or the latency at that quality; NaN where the curve does not reach it.
        low, high: ends of its interval; None where there is none.
        reason: why there is no value, or no interval; empty otherwise.
    """

    system: str
    at: float
    value: float
    low: float | None
    high: float | None
    reason: str


@dataclass(frozen=True)
class OnFront:
    """Whether a setting is on the Pareto front of all settings of all systems.

    Attributes:
        system, setting: the system, and its setting.
        on: whether it is on the front: no other setting is as early and as good, and earlier or better.
        share: the share of the resamples in which it is; None where the numbers were published without a log, or there
            is only one segment, or document.
    """

    system: str
    setting: str
    on: bool
    share: float | None


@dataclass(frozen=True)
class Area:
    """The mean difference of quality of two curves over the latencies that both have.

    Attributes:
        a, b: the systems.
        start, end: the latencies that both have, in the whole test set; NaN if there are none.
        difference: the mean of b − a, with an interval from `low` to `high` (None where there is none).
        p: two-sided p-value of no difference; `p_adjusted`: corrected for the number of pairs.
        reason: why there is no difference, or no interval; empty otherwise.
    """

    a: str
    b: str
    start: float
    end: float
    difference: float
    low: float | None
    high: float | None
    p: float
    p_adjusted: float
    reason: str


def values_of(curves: Sequence[Curve]) -> Floats:
    """The values of all points of the curves: points × latency and quality."""
    points = [point for curve in curves for point in curve.points]
    return np.array([[p.latency.value, np.nan if p.quality is None else p.quality.value] for p in points])
