# SPDX-License-Identifier: Apache-2.0
"""Quality against latency: several settings per system, joined to a curve.

A curve joins its settings by straight lines, in the order of latency. Of settings with the same latency, the best
counts. Nothing is extrapolated: before its first and after its last setting, a curve has no quality.
"""

from __future__ import annotations

from lagging.curves.estimates import Curves
from lagging.curves.joining import Setting, axis, check_axes, curves, join_settings, score_setting
from lagging.curves.points import NO_LOG, Area, Axis, Curve, CurveValue, OnFront, Point, values_of

__all__ = [
    "NO_LOG",
    "Area",
    "Axis",
    "Curve",
    "CurveValue",
    "Curves",
    "OnFront",
    "Point",
    "Setting",
    "axis",
    "check_axes",
    "curves",
    "join_settings",
    "score_setting",
    "values_of",
]
