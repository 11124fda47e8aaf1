# SPDX-License-Identifier: Apache-2.0
"""How many values carry a percentile, and exact bounds of it from the binomial distribution.

Of n independent values, the number below the true p-th percentile has the binomial distribution with n and p/100,
whatever the distribution of the values is. So two of the sorted values bound the percentile with a known probability.
Values of one recording are alike: then the bound is about this recording, and not about another one.
"""

from __future__ import annotations

import math
from functools import lru_cache

from lagging.errors import UsageError

__all__ = ["CARRIED", "carries", "needed_values", "percentile_ranks"]

CARRIED = 0.99
"""The confidence of the upper bound that a percentile must have to be carried by the number of values."""

NEGLIGIBLE = 1e-25
"""A probability that is smaller, relative to that of the most likely count, changes no bound."""

ROUNDING = 1e-12
"""A probability may exceed its limit by so much, relative to it."""


@lru_cache(maxsize=256)
def needed_values(p: float, confidence: float = CARRIED) -> float:
    r"""The number of values from which on a percentile is carried: bounded without the most extreme value.

    $$ \min \left\{ n : P(B \le 1) \le 1 - c \right\}, \qquad B \sim \mathrm{Bin}(n,\; \min(p, 100 - p) / 100) $$

    From so many values on, the second largest of them (for p below 50, the second smallest) is a bound of the true
    percentile at the confidence c, so that one stray value does not make the bound. This is the rule by which MLPerf's
    LoadGen accepts a percentile.

    Args:
        p: which percentile: from 0 to 100.
        confidence: between 0 and 1.

    Returns:
        The number of values; infinity for the smallest and the largest value, which no number of values carries.

    Example:
        >>> needed_values(90), needed_values(99), needed_values(50), needed_values(100)
        (64, 662, 11, inf)

    References:
        Reddi, V. J. et al. (2020). MLPerf Inference Benchmark. ISCA. The rule is LoadGen's early stopping criterion.
    """
    share = _tail(p)
    _check(confidence)
    if share == 0:
        return math.inf

    def missed(n: int) -> float:
        """P(B ≤ 1)."""
        return (1 - share) ** (n - 1) * (1 + (n - 1) * share)

    high = 2
    while missed(high) > 1 - confidence:
        high *= 2
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if missed(middle) > 1 - confidence else (low, middle)
    return high


def carries(n: int, p: float, confidence: float = CARRIED) -> bool:
    """Whether n values carry a percentile.

    Example:
        >>> carries(63, 90), carries(64, 90)
        (False, True)
    """
    return n >= needed_values(p, confidence)


def percentile_ranks(n: int, p: float, confidence: float = 0.95) -> tuple[int | None, int | None]:
    r"""The places, from 1, of the two sorted values between which the true percentile is, at this confidence.

    $$ l = \max \{ k : P(B < k) \le \alpha / 2 \}, \quad u = \min \{ k : P(B \ge k) \le \alpha / 2 \},
       \quad B \sim \mathrm{Bin}(n,\; p / 100) $$

    Args:
        n: the number of values.
        p: which percentile: from 0 to 100.
        confidence: 0.95 for 95 %.

    Returns:
        The two places; None for an end that so few values do not bound.

    Example:
        >>> percentile_ranks(100, 50)
        (40, 61)
        >>> percentile_ranks(20, 99)
        (19, None)

    References:
        David, H. A. & Nagaraja, H. N. (2003). Order Statistics, section 7.1.
    """
    _tail(p)
    _check(confidence)
    alpha = round((1 - confidence) / 2, 14)
    if n < 1 or p in (0, 100):  # the smallest and the largest value bound themselves on one side
        return (None, 1 if p == 0 and n else None) if p != 100 else (n or None, None)
    first, weights = _weights(n, p / 100)
    tail = alpha * math.fsum(weights) * (1 + ROUNDING)
    below, low = 0.0, first
    for weight in weights:  # P(B < k) for k = first, first + 1, …
        if below + weight > tail:
            break
        below, low = below + weight, low + 1
    above, high = 0.0, first + len(weights)
    for weight in reversed(weights):
        if above + weight > tail:
            break
        above, high = above + weight, high - 1
    return low if low >= 1 else None, high if high <= n else None


def _weights(n: int, share: float) -> tuple[int, list[float]]:
    """The probabilities of all counts that are not negligible, relative to that of the mode, from the first count."""
    mode = min(int((n + 1) * share), n)
    odds = share / (1 - share)
    up, down = [1.0], [1.0]
    for k in range(mode, n):
        if up[-1] < NEGLIGIBLE:
            break
        up.append(up[-1] * (n - k) / (k + 1) * odds)
    for k in range(mode, 0, -1):
        if down[-1] < NEGLIGIBLE:
            break
        down.append(down[-1] * k / (n - k + 1) / odds)
    return mode - len(down) + 1, [*reversed(down[1:]), *up]


def _tail(p: float) -> float:
    """The share of values beyond a percentile, on its shorter side."""
    if not 0 <= p <= 100:
        raise UsageError(f"a percentile is from 0 to 100, not {p!r}")
    return round(min(p, 100 - p) / 100, 14)


def _check(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise UsageError(f"the confidence of a bound must be between 0 and 1, such as 0.95, but is {confidence!r}")
