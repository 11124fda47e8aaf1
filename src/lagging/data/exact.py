# SPDX-License-Identifier: Apache-2.0
"""Sums without rounding errors: the same to the last bit in any order, and in any division into parts.

A sum is kept as an expansion: a few floats whose exact sum is that of all values. Two expansions are joined by `fold`,
and `total` rounds an expansion once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from lagging.data.ragged import Floats, Ints

__all__ = ["exact_sum", "expansions", "fold", "total"]

BLOCK = 8192
"""Values that are summed at once: few enough to stay in the processor's cache."""

ROUNDS = 4
"""Each round removes some forty leading bits; the scores of one metric need two or three."""


def exact_sum(column: Floats) -> float:
    """The sum, correctly rounded, so that neither the order nor the division of the segments changes a score.

    Example:
        >>> exact_sum(np.array([1e16, 0.1, 0.2, -1e16]))
        0.30000000000000004
    """
    return total(expansions(column)[0])


def expansions(column: Floats, group: Ints | None = None, groups: int = 1) -> list[list[float]]:
    """For each group a few numbers whose exact sum is that of the group's values.

    Args:
        column: the values.
        group: the group of each value, from 0; one group if not given.
        groups: the number of groups.

    Example:
        >>> expansions(np.array([1.0, 2.0, 4.0]), np.array([0, 1, 0]), 2)
        [[5.0], [2.0]]
    """
    numbers: list[list[float]] = [[] for _ in range(groups)]
    for start in range(0, len(column), BLOCK):
        block = slice(start, start + BLOCK)
        _add_block(numbers, column[block], None if group is None else group[block])
    return numbers


def _add_block(numbers: list[list[float]], values: Floats, group: Ints | None) -> None:
    """Add a few numbers with exactly the sum of a block of values.

    Added to a power of two and subtracted again, each value keeps its leading bits. These are multiples of one unit
    and few enough, so they add up without rounding (Rump, Ogita & Oishi 2008). The remainders are treated likewise.
    """
    spare_bits = len(values).bit_length() + 1
    for _ in range(ROUNDS):
        largest = float(np.abs(values).max(initial=0.0))
        if largest == 0.0:
            return
        exponent = math.frexp(largest)[1] + spare_bits
        if not (math.isfinite(largest) and -900 < exponent < 900):
            break
        shift = math.ldexp(1.0, exponent)
        leading = (values + shift) - shift
        if group is None:
            numbers[0].append(float(leading.sum()))
        else:
            for g, value in enumerate(np.bincount(group, leading, len(numbers)).tolist()):
                if value:
                    numbers[g].append(value)
        values = values - leading
    where = [0] * len(values) if group is None else group.tolist()
    for g, value in zip(where, values.tolist(), strict=True):
        if value:
            numbers[g].append(value)


def fold(numbers: Iterable[float]) -> list[float]:
    """As few numbers as can have exactly the sum of these: each is the rounded sum of what the ones before leave.

    Example:
        >>> fold([1e16, 0.1, 0.2, -1e16])
        [0.30000000000000004, -2.7755575615628914e-17]
    """
    finite, nonfinite = _split(numbers)
    folded: list[float] = []
    try:
        while rounded := math.fsum(finite):
            folded.append(rounded)
            finite.append(-rounded)
    except OverflowError:  # the sum is no float: nothing can be folded
        folded = finite[: len(finite) - len(folded)]
    return [*folded, sum(nonfinite)] if nonfinite else folded


def total(numbers: Iterable[float]) -> float:
    """The sum, rounded once; infinite if it is larger than any float.

    Example:
        >>> total([1e16, 0.1, 0.2, -1e16]), total([1.0, math.inf])
        (0.30000000000000004, inf)
    """
    finite, nonfinite = _split(numbers)
    try:
        return math.fsum(finite) + sum(nonfinite)
    except OverflowError:
        return math.copysign(math.inf, sum(value * 2.0**-60 for value in finite)) + sum(nonfinite)


def _split(numbers: Iterable[float]) -> tuple[list[float], list[float]]:
    """The finite numbers, and the others."""
    finite: list[float] = []
    nonfinite: list[float] = []
    for value in numbers:
        (finite if math.isfinite(value) else nonfinite).append(value)
    return finite, nonfinite
