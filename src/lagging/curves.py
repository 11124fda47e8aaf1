# SPDX-License-Identifier: Apache-2.0
"""Quality against latency: several settings per system, joined to a curve."""

from __future__ import annotations

from dataclasses import dataclass

from lagging.metrics import Metric
from lagging.scoring import Scores

__all__ = ["Axis", "Curve", "Point"]


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
        scores: of the log; None where the numbers were published without one.
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
        unit: of latency: "token", "ms" or "ratio".
    """

    system: str
    points: tuple[Point, ...]
    latency: Metric
    quality: Metric
    unit: str
