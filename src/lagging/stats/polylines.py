# SPDX-License-Identifier: Apache-2.0
"""Lines through a few points, for many resamples at once: points along the last axis, resamples along the others.

A line joins its points in the order of x. Of points with the same x, the highest counts. A point without an x or a y
does not count. Nothing is extrapolated: beyond its ends a line has no height.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Floats

__all__ = ["fit", "front", "gap", "height", "integral", "ordered", "reach"]


def ordered(x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Floats]:
    """The points by rising x, each as high as the highest with that x; those that do not count are NaN, and last.

    Example:
        >>> ordered([3, 1, 3, 2], [5, 7, 6, np.nan])
        (array([ 1.,  3.,  3., nan]), array([ 7.,  6.,  6., nan]))
    """
    y = np.where(np.isnan(x), np.nan, np.asarray(y, dtype=np.float64))
    x = np.where(np.isnan(y), np.nan, np.asarray(x, dtype=np.float64))
    order = np.lexsort((-y, x), axis=-1)
    x, y = np.take_along_axis(x, order, -1), np.take_along_axis(y, order, -1)
    for at in range(1, x.shape[-1]):
        y[..., at] = np.where(x[..., at] == x[..., at - 1], y[..., at - 1], y[..., at])
    return x, y


def height(x: npt.ArrayLike, y: npt.ArrayLike, at: npt.ArrayLike) -> Floats:
    """How high the line is at that x, or at one x per line; NaN beyond its ends.

    Example:
        >>> float(height([1, 3, 4], [10, 20, 18], 2)), float(height([1, 3, 4], [10, 20, 18], 4.5))
        (15.0, nan)
    """
    x, y, at = *ordered(x, y), np.asarray(at)
    before = np.count_nonzero(x <= at[..., None], axis=-1)
    left, right = np.maximum(before - 1, 0), np.minimum(before, x.shape[-1] - 1)
    x0, x1, y0, y1 = _at(x, left), _at(x, right), _at(y, left), _at(y, right)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = y0 + (y1 - y0) * ((at - x0) / (x1 - x0))
    return np.where(before == 0, np.nan, np.where(x0 == at, y0, np.where(x1 > at, between, np.nan)))


def reach(x: npt.ArrayLike, y: npt.ArrayLike, level: float) -> Floats:
    """The lowest x at which the line is that high; NaN if it never is, or is higher from its beginning.

    Example:
        >>> float(reach([1, 3, 4], [10, 20, 18], 19)), float(reach([1, 3, 4], [10, 20, 18], 9))
        (2.8, nan)
    """
    x, y = ordered(x, y)
    high = y >= level
    right = np.argmax(high, axis=-1)
    left = np.maximum(right - 1, 0)
    x0, x1, y0, y1 = _at(x, left), _at(x, right), _at(y, left), _at(y, right)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = x0 + (x1 - x0) * ((level - y0) / (y1 - y0))
    first = np.where(y1 == level, x1, np.nan)
    return np.where(~high.any(axis=-1), np.nan, np.where(right == 0, first, np.where(y1 == level, x1, between)))


def integral(x: Floats, y: Floats, low: npt.ArrayLike, high: npt.ArrayLike) -> Floats:
    """The area below a line, of ordered points, between two x that lie on it."""
    low, high = np.asarray(low)[..., None], np.asarray(high)[..., None]
    rise, run = np.diff(y, axis=-1), np.diff(x, axis=-1)
    left, right = np.clip(x[..., :-1], low, high), np.clip(x[..., 1:], low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = y[..., :-1] + np.where(run > 0, rise / run, 0.0) * ((left + right) / 2 - x[..., :-1])
        parts = np.where(run > 0, middle * (right - left), 0.0)
    return np.asarray(parts.sum(axis=-1))


def gap(x: npt.ArrayLike, y: npt.ArrayLike, other_x: npt.ArrayLike, other_y: npt.ArrayLike) -> Floats:
    r"""By how much the other line is higher, on average over the x that both have; NaN if they share none.

    $$ \frac{1}{b - a} \int_a^b y_2(x) - y_1(x)\, dx $$

    If they share a single x, as a line of one point does, it is the difference there.

    Example:
        >>> float(gap([0, 4], [10, 14], [2, 6], [13, 13])), float(gap([0, 4], [10, 14], [1], [15]))
        (0.0, 4.0)
    """
    one, other = ordered(x, y), ordered(other_x, other_y)
    low, high = common(one[0], other[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (integral(*other, low, high) - integral(*one, low, high)) / (high - low)
    there = height(*other, low) - height(*one, low)
    return np.where(high > low, found, np.where(high == low, there, np.nan))


def common(x: Floats, other_x: Floats) -> tuple[Floats, Floats]:
    """From where to where both lines go; the end is before the beginning if they share nothing."""
    low = np.maximum(np.fmin.reduce(x, axis=-1), np.fmin.reduce(other_x, axis=-1))
    high = np.minimum(np.fmax.reduce(x, axis=-1), np.fmax.reduce(other_x, axis=-1))
    return low, high


def front(x: npt.ArrayLike, y: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Which points no other beats: none is as far left and as high, and farther left or higher (Pareto).

    Two points in the same place are both on the front, or both not.

    Example:
        >>> front([1, 2, 2, 3, 3], [10, 12, 11, 12, 15])
        array([ True,  True, False, False,  True])
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    on: npt.NDArray[np.bool_] = ~(np.isnan(x) | np.isnan(y))
    for at in range(x.shape[-1]):
        here_x, here_y = x[..., at, None], y[..., at, None]
        on &= ~((here_x <= x) & (here_y >= y) & ((here_x < x) | (here_y > y)))
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
    away = x - mean_x
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (away * (y - mean_y)).sum(axis=-1) / (away**2).sum(axis=-1)
    slope = np.where(np.ptp(x, axis=-1) > 0, slope, np.nan)
    return slope, mean_y[..., 0] - slope * mean_x[..., 0]


def _at(values: Floats, place: npt.NDArray[np.intp]) -> Floats:
    return np.take_along_axis(values, place[..., None], -1)[..., 0]
