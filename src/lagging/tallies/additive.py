# SPDX-License-Identifier: Apache-2.0
"""Numbers that add up, in any order and parting: sums without rounding, histograms, and weights from hashes."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from lagging.arrays import Ids
from lagging.errors import UsageError
from lagging.ragged import Floats, Ints

__all__ = [
    "LARGE",
    "LOTS",
    "POINT",
    "RESAMPLES",
    "SEED",
    "buckets",
    "carried",
    "exact",
    "lots",
    "middle",
    "points",
    "rounded",
    "weights",
    "weights_in_parts",
]

SEED = 12345
RESAMPLES = 1000
LOTS = 1024
ROWS = 1024
"""How many resamples are weighted at a time: 8 MB."""
SPLITS = 128
"""How many buckets there are between a power of two and the next."""
SCALE = 1127
"""Every float is a whole number of 2⁻¹¹²⁷."""
POINT = 40
"""Sums over lots are exact in whole numbers of 2⁻⁴⁰; they enter no value."""
LARGE = 2.0**44
"""From here on there is no interval: sums over lots might overflow."""


# ---- hashes -----------------------------------------------------------------------------------------------------

GOLDEN = 0x9E3779B97F4A7C15


def _mixed(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finisher of SplitMix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _start(seed: int) -> np.uint64:
    if not 0 <= seed < 2**63:
        raise UsageError(f"a seed is 0 or more, and below 2⁶³, but is {seed}")
    return np.uint64(_mixed(np.array([(seed + 1) * GOLDEN % 2**64], dtype=np.uint64))[0])


def lots(ids: Ids | Sequence[int | str], seed: int = SEED) -> Ints:
    """Which of the 1024 lots each segment is in, by its name: 7 and "7" are one name.

    Example:
        >>> lots([1, 2, "talk-3"]), lots(["1", "2", "talk-3"])
        (array([1014,  782,  726]), array([1014,  782,  726]))
    """
    names = ids.tolist() if isinstance(ids, np.ndarray) else ids
    codes = [zlib.crc32(str(name).encode("utf-8", "surrogatepass")) for name in names]
    mixed = _mixed(np.array(codes, dtype=np.uint64) * np.uint64(GOLDEN) + _start(seed))
    return (mixed >> np.uint64(54)).astype(np.int64)


@lru_cache(maxsize=8)
def weights(resamples: int = RESAMPLES, seed: int = SEED, first: int = 0) -> Floats:
    """How often each lot (columns) counts in each resample (rows), from the first on: Poisson numbers of mean 1.

    Example:
        >>> weights(2)[:, :8].tolist()
        [[1.0, 1.0, 2.0, 2.0, 1.0, 2.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0, 1.0, 3.0, 1.0, 0.0]]
        >>> round(float(weights().mean()), 3), round(float(weights().var()), 3)
        (1.0, 0.999)
    """
    places = np.arange(first * LOTS + 1, resamples * LOTS + 1, dtype=np.uint64)
    uniform = _mixed(places * np.uint64(GOLDEN) + _start(seed)) >> np.uint64(11)
    found: Floats = np.searchsorted(_thresholds(), uniform, side="right").reshape(-1, LOTS).astype(np.float64)
    found.flags.writeable = False
    return found


def weights_in_parts(resamples: int, seed: int) -> Iterator[Floats]:
    """The same weights, some resamples at a time."""
    for first in range(0, resamples, ROWS):
        yield weights(min(first + ROWS, resamples), seed, first)


@cache
def _thresholds() -> npt.NDArray[np.uint64]:
    """Below which 53-bit number a Poisson number of mean 1 is 0, at most 1, at most 2, …: exact."""
    e = sum(Fraction(1, math.factorial(i)) for i in range(40))
    below = [sum(Fraction(1, math.factorial(i)) for i in range(k + 1)) / e for k in range(18)]
    return np.array([int(share * 2**53) for share in below], dtype=np.uint64)


# ---- sums, exact ------------------------------------------------------------------------------------------------


def exact(column: Floats, group: Ints, groups: int) -> list[int]:
    """The sum of the numbers of each group, in whole numbers of 2⁻¹¹²⁷."""
    mantissa, exponent = np.frexp(column)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    key, place = np.unique(group * 4096 + (exponent + 2048), return_inverse=True)
    # halves of 27 bits add up exactly as floats, for more segments than there ever are in a block
    high, low = np.bincount(place, whole >> 27), np.bincount(place, whole & (2**27 - 1))
    out = [0] * groups
    for k, h, part in zip(key.tolist(), high.tolist(), low.tolist(), strict=True):
        at, shift = divmod(k, 4096)
        out[at] += ((int(h) << 27) + int(part)) << (shift - 2048 - 53 + SCALE)
    return out


def rounded(total: int) -> float:
    """An exact sum as the float nearest to it."""
    try:
        return total / (1 << SCALE)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def points(rows: Floats) -> Ints:
    """Numbers as whole part and rest, in the last axis, so that sums of them are exact."""
    whole = np.floor(rows)
    rest = np.floor((rows - whole) * 2.0**POINT)
    return np.stack([whole, rest], axis=-1).astype(np.int64)


def carried(points: Ints) -> Ints:
    """The same sums with rests below 1."""
    points[..., 0] += points[..., 1] >> POINT
    points[..., 1] &= (1 << POINT) - 1
    return points


# ---- a histogram ------------------------------------------------------------------------------------------------


def buckets(values: Floats) -> Ints:
    """The bucket of each value; buckets are in the order of the values."""
    mantissa, exponent = np.frexp(np.abs(values))
    inside = np.floor((2 * mantissa - 1) * SPLITS).astype(np.int64)
    size = np.where(values == 0, 0, (exponent.astype(np.int64) + 1100) * SPLITS + inside + 1)
    return np.where(values < 0, -size, size)


def middle(bucket: int) -> float:
    """The middle of a bucket."""
    if bucket == 0:
        return 0.0
    exponent, inside = divmod(abs(bucket) - 1, SPLITS)
    return math.copysign(math.ldexp(1 + (inside + 0.5) / SPLITS, exponent - 1101), bucket)
