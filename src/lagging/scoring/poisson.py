# SPDX-License-Identifier: Apache-2.0
"""The Poisson bootstrap of segments that are only added up: buckets, weights, and sums over buckets.

A hash of a segment's id and the seed puts it into one of 1024 buckets. How often a bucket counts in a resample is a
Poisson number from a hash of the seed, the bucket and the resample (Chamandy et al. 2012). So the weight of a segment
depends on its id and nothing else: one pass suffices, and a thousand resamples cost no more per segment than ten.

The hash of an id: CRC-32 of its text in UTF-8, then SplitMix64 (Steele, Lea & Flood 2014) of that and the seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from lagging.data.columns import Ids
from lagging.data.hashes import id_codes
from lagging.data.ragged import Floats, Ints
from lagging.errors import UsageError

__all__ = [
    "BUCKETS",
    "LIMIT",
    "RESAMPLES",
    "SEED",
    "bucket_sums",
    "carry",
    "segment_buckets",
    "sums_as_floats",
    "weights",
    "weights_in_parts",
]

SEED = 12345
RESAMPLES = 1000
BUCKETS = 1024
ROWS = 1024
"""The number of resamples whose weights are made at a time: 8 MB."""
POINT = 40
"""Sums over buckets are exact in whole numbers of 2⁻⁴⁰; they enter no score."""
LIMIT = 2.0**44
"""From here on there is no interval: sums over buckets might overflow."""


# ---- hashes -----------------------------------------------------------------------------------------------------

GOLDEN = 0x9E3779B97F4A7C15


def _mix(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finisher of SplitMix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _start(seed: int) -> np.uint64:
    if not 0 <= seed < 2**63:
        raise UsageError(f"a seed is 0 or more, and below 2⁶³, but is {seed}")
    return np.uint64(_mix(np.array([(seed + 1) * GOLDEN % 2**64], dtype=np.uint64))[0])


def segment_buckets(ids: Ids | Sequence[int | str], seed: int = SEED) -> Ints:
    """The bucket of each segment, by its id: 7 and "7" are one id.

    Example:
        >>> segment_buckets([1, 2, "talk-3"]), segment_buckets(["1", "2", "talk-3"])
        (array([1014,  782,  726]), array([1014,  782,  726]))
    """
    mixed = _mix(id_codes(ids).astype(np.uint64) * np.uint64(GOLDEN) + _start(seed))
    return (mixed >> np.uint64(54)).astype(np.int64)


@lru_cache(maxsize=8)
def weights(resamples: int = RESAMPLES, seed: int = SEED, first: int = 0) -> Floats:
    """How often each bucket (columns) counts in each resample (rows): Poisson numbers of mean 1.

    Args:
        resamples: the number of resamples.
        seed: of the hashes.
        first: the first resample to return.

    Example:
        >>> weights(2)[:, :8].tolist()
        [[1.0, 1.0, 2.0, 2.0, 1.0, 2.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0, 1.0, 3.0, 1.0, 0.0]]
        >>> round(float(weights().mean()), 3), round(float(weights().var()), 3)
        (1.0, 0.999)
    """
    positions = np.arange(first * BUCKETS + 1, resamples * BUCKETS + 1, dtype=np.uint64)
    uniform = _mix(positions * np.uint64(GOLDEN) + _start(seed)) >> np.uint64(11)
    counts: Floats = np.searchsorted(_thresholds(), uniform, side="right").reshape(-1, BUCKETS).astype(np.float64)
    counts.flags.writeable = False
    return counts


def weights_in_parts(resamples: int, seed: int) -> Iterator[Floats]:
    """The same weights, for `ROWS` resamples at a time."""
    for first in range(0, resamples, ROWS):
        yield weights(min(first + ROWS, resamples), seed, first)


@cache
def _thresholds() -> npt.NDArray[np.uint64]:
    """The 53-bit number below which a Poisson number of mean 1 is 0, at most 1, at most 2, …; exact."""
    e = sum(Fraction(1, math.factorial(i)) for i in range(40))
    cumulative = [sum(Fraction(1, math.factorial(i)) for i in range(k + 1)) / e for k in range(18)]
    return np.array([int(share * 2**53) for share in cumulative], dtype=np.uint64)


# ---- sums over buckets ----------------------------------------------------------------------------------------


def _fixed_point(rows: Floats) -> Ints:
    """Numbers as whole part and fraction, in the last axis, so that their sums are exact."""
    whole = np.floor(rows)
    fraction = np.floor((rows - whole) * 2.0**POINT)
    return np.stack([whole, fraction], axis=-1).astype(np.int64)


def carry(sums: Ints) -> Ints:
    """The same sums, with fractions below 1."""
    sums[..., 0] += sums[..., 1] >> POINT
    sums[..., 1] &= (1 << POINT) - 1
    return sums


def bucket_sums(rows: Floats, bucket: Ints, group: Ints, groups: int) -> list[Ints]:
    """For each group, the sums over each bucket: of each column, and of the number of segments.

    Args:
        rows: the statistics of segments that have a value.
        bucket, group: of each segment.
        groups: the number of groups.
    """
    added = _fixed_point(np.column_stack([np.clip(rows, -LIMIT, LIMIT), np.ones(len(rows))]))
    sums = np.zeros((groups * BUCKETS, *added.shape[1:]), dtype=np.int64)
    cell = group * BUCKETS + bucket
    order = np.argsort(cell, kind="stable")
    cells, first = np.unique(cell[order], return_index=True)
    if len(cells):
        sums[cells] = np.add.reduceat(added[order], first, axis=0)
    return list(carry(sums.reshape(groups, BUCKETS, *added.shape[1:])))


def sums_as_floats(sums: Ints) -> Floats:
    """Sums over buckets as floats."""
    return sums[..., 0] + sums[..., 1] * 2.0**-POINT
