# SPDX-License-Identifier: Apache-2.0
"""Polylines through a few points, for many resamples at once: points are along the last axis.

A line joins its points in the order of x. Of points with the same x, the highest counts. A point without an x or a y
does not count. Nothing is extrapolated: before its first and after its last point, a line has no height.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Floats

__all__ = ["common_range", "fit", "front", "height", "integral", "mean_gap", "ordered", "reach"]


def ordered(x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Sort the points by x; each is as high as the highest with that x. Those that do not count are NaN, and last.

    Example:
        >>> ordered([3, 1, 3, 2], [5, 7, 6, np.nan])
        (array([ 1.,  3.,  3., nan]), array([ 7.,  6.,  6., nan]))
    """
    y = np.where(np.isnan(x), np.nan, np.asarray(y, dtype=np.float64))
    x = np.where(np.isnan(y), np.nan, np.asarray(x, dtype=np.float64))
    order = np.lexsort((-y, x), axis=-1)
    x, y = np.take_along_axis(x, order, -1), np.take_along_axis(y, order, -1)
    for i in range(1, x.shape[-1]):
        y[..., i] = np.where(x[..., i] == x[..., i - 1], y[..., i - 1], y[..., i])
    return x, y


def height(x: npt.ArrayLike, y: npt.ArrayLike, at: npt.ArrayLike) -> Floats:
    """The height of the line at an x, or at one x per line; NaN outside its ends.

    Example:
        >>> float(height([1, 3, 4], [10, 20, 18], 2)), float(height([1, 3, 4], [10, 20, 18], 4.5))
        (15.0, nan)
    """
    x, y, at = *ordered(x, y), np.asarray(at)
    before = np.count_nonzero(x <= at[..., None], axis=-1)
    left, right = np.maximum(before - 1, 0), np.minimum(before, x.shape[-1] - 1)
    x0, x1, y0, y1 = _take(x, left), _take(x, right), _take(y, left), _take(y, right)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = y0 + (y1 - y0) * ((at - x0) / (x1 - x0))
    return np.where(before == 0, np.nan, np.where(x0 == at, y0, np.where(x1 > at, between, np.nan)))


def reach(x: npt.ArrayLike, y: npt.ArrayLike, target: float) -> Floats:
    """The lowest x at which the line has a height; NaN if it never has, or is higher from its first point.

    Example:
        >>> float(reach([1, 3, 4], [10, 20, 18], 19)), float(reach([1, 3, 4], [10, 20, 18], 9))
        (2.8, nan)
    """
    x, y = ordered(x, y)
    high = y >= target
    right = np.argmax(high, axis=-1)
    left = np.maximum(right - 1, 0)
    x0, x1, y0, y1 = _take(x, left), _take(x, right), _take(y, left), _take(y, right)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = x0 + (x1 - x0) * ((target - y0) / (y1 - y0))
    first = np.where(y1 == target, x1, np.nan)
    return np.where(~high.any(axis=-1), np.nan, np.where(right == 0, first, np.where(y1 == target, x1, between)))


def integral(x: Floats, y: Floats, low: npt.ArrayLike, high: npt.ArrayLike) -> Floats:
    """The area below a line through ordered points, between two x within its ends."""
    low, high = np.asarray(low)[..., None], np.asarray(high)[..., None]
    rise, run = np.diff(y, axis=-1), np.diff(x, axis=-1)
    left, right = np.clip(x[..., :-1], low, high), np.clip(x[..., 1:], low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = y[..., :-1] + np.where(run > 0, rise / run, 0.0) * ((left + right) / 2 - x[..., :-1])
        parts = np.where(run > 0, middle * (right - left), 0.0)
    return np.asarray(parts.sum(axis=-1))


def mean_gap(x: npt.ArrayLike, y: npt.ArrayLike, other_x: npt.ArrayLike, other_y: npt.ArrayLike) -> Floats:
    r"""The mean difference of the other line and this line over the x that both have; NaN if they share none.

    $$ \frac{1}{b - a} \int_a^b y_2(x) - y_1(x)\, dx $$

    If they share a single x, as a line of one point does, it is the difference there.

    Example:
        >>> float(mean_gap([0, 4], [10, 14], [2, 6], [13, 13])), float(mean_gap([0, 4], [10, 14], [1], [15]))
        (0.0, 4.0)
    """
    line, other = ordered(x, y), ordered(other_x, other_y)
    low, high = common_range(line[0], other[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (integral(*other, low, high) - integral(*line, low, high)) / (high - low)
    at_low = height(*other, low) - height(*line, low)
    return np.where(high > low, mean, np.where(high == low, at_low, np.nan))


def common_range(x: Floats, other_x: Floats) -> tuple[Floats, Floats]:
    """The first and the last x that both lines have; the last is before the first if they share nothing."""
    low = np.maximum(np.fmin.reduce(x, axis=-1), np.fmin.reduce(other_x, axis=-1))
    high = np.minimum(np.fmax.reduce(x, axis=-1), np.fmax.reduce(other_x, axis=-1))
    return low, high


def front(x: npt.ArrayLike, y: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Which points are on the Pareto front: no other is as far left and as high, and farther left or higher.

    Two equal points are both on the front, or both not.

    Example:
        >>> front([1, 2, 2, 3, 3], [10, 12, 11, 12, 15])
        array([ True,  True, False, False,  True])
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    on: npt.NDArray[np.bool_] = ~(np.isnan(x) | np.isnan(y))
    for i in range(x.shape[-1]):
        x_i, y_i = x[..., i, None], y[..., i, None]
        on &= ~((x_i <= x) & (y_i >= y) & ((x_i < x) | (y_i > y)))
    return on


def fit(x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Slope and height at 0 of the straight line nearest to the points (least squares in y); NaN if all x are the same.

    Example:
        >>> slope, start = fit([1, 2, 4], [3, 5, 9])
        >>> float(slope), float(start)
        (2.0, 1.0)
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    mean_x, mean_y = x.mean(axis=-1, keepdims=True), y.mean(axis=-1, keepdims=True)
    deviation = x - mean_x
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (deviation * (y - mean_y)).sum(axis=-1) / (deviation**2).sum(axis=-1)
    slope = np.where(np.ptp(x, axis=-1) > 0, slope, np.nan)
    return slope, mean_y[..., 0] - slope * mean_x[..., 0]


def _take(values: Floats, index: npt.NDArray[np.intp]) -> Floats:
    return np.take_along_axis(values, index[..., None], -1)[..., 0]
