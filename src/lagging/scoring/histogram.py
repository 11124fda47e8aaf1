# SPDX-License-Identifier: Apache-2.0
"""A histogram whose buckets do not depend on the data, so that histograms of parts add up.

Buckets are ¹⁄₁₂₈ of a power of two wide, so that a percentile is right within 0.4 %. The bucket of a value is computed
without a logarithm, so that no two machines disagree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from lagging.data.ragged import Floats, Ints

__all__ = ["bucket_middle", "buckets", "percentile"]

SPLITS = 128
"""The number of buckets between a power of two and the next."""


def buckets(values: Floats) -> Ints:
    """The bucket of each value; buckets are in the order of the values."""
    mantissa, exponent = np.frexp(np.abs(values))
    inside = np.floor((2 * mantissa - 1) * SPLITS).astype(np.int64)
    size = np.where(values == 0, 0, (exponent.astype(np.int64) + 1100) * SPLITS + inside + 1)
    return np.where(values < 0, -size, size)


def bucket_middle(bucket: int) -> float:
    """The middle of a bucket."""
    if bucket == 0:
        return 0.0
    exponent, inside = divmod(abs(bucket) - 1, SPLITS)
    return math.copysign(math.ldexp(1 + (inside + 0.5) / SPLITS, exponent - 1101), bucket)


def percentile(histogram: Mapping[int, int], p: float, least: float, most: float) -> float:
    """The value that p of 100 values do not exceed, within 0.4 %; NaN if there are no values.

    Args:
        histogram: the number of values in each bucket.
        p: in percent.
        least, most: the smallest and the largest value.

    Example:
        >>> percentile({int(b): 1 for b in buckets(np.array([1.0, 2.0, 4.0]))}, 50, 1.0, 4.0)
        2.0078125
    """
    if not histogram:
        return math.nan
    rank, below = max(1, math.ceil(p / 100 * sum(histogram.values()))), 0
    for bucket in sorted(histogram):
        below += histogram[bucket]
        if below >= rank:
            return min(max(bucket_middle(bucket), least), most)
    return most
