# SPDX-License-Identifier: Apache-2.0
"""Corrections for many tests: adjusted p-values, each to be compared with α as if it were the only one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Floats
from lagging.errors import UsageError

__all__ = ["CORRECTIONS", "benjamini_hochberg", "check_correction", "holm"]


def holm(p: npt.ArrayLike) -> Floats:
    r"""Holm's step-down procedure (1979): the probability of any false positive among all tests is at most α.

    $$ \tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1)\, p_{(j)}) $$

    It is valid whatever the dependence between the tests, and never less powerful than Bonferroni's.

    Args:
        p: p-values; NaN, of a test that could not be made, stays NaN and is not counted.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        array([0.03, 0.06, 0.06])
    """
    return _adjust(p, lambda rising: np.maximum.accumulate(rising * np.arange(len(rising), 0, -1)))


def benjamini_hochberg(p: npt.ArrayLike) -> Floats:
    r"""Benjamini and Hochberg's step-up procedure (1995): the expected share of false positives is at most α.

    $$ \tilde p_{(i)} = \min_{j \ge i} \min(1, m\, p_{(j)} / j) $$

    It is valid for tests that are independent, or positively dependent.

    Args:
        p: p-values; NaN, of a test that could not be made, stays NaN and is not counted.

    Example:
        >>> benjamini_hochberg([0.01, 0.04, 0.03])
        array([0.03, 0.04, 0.04])
    """

    def step_up(rising: Floats) -> Floats:
        return np.minimum.accumulate((rising * len(rising) / np.arange(1, len(rising) + 1))[::-1])[::-1]

    return _adjust(p, step_up)


def _adjust(p: npt.ArrayLike, step: Callable[[Floats], Floats]) -> Floats:
    """Adjust the p-values that are not NaN, in ascending order."""
    adjusted = np.array(p, dtype=np.float64, ndmin=1)
    if ((adjusted < 0) | (adjusted > 1)).any():
        raise ValueError("a p-value lies between 0 and 1")
    defined = np.flatnonzero(~np.isnan(adjusted))
    ascending = defined[np.argsort(adjusted[defined], kind="stable")]
    adjusted[ascending] = np.minimum(step(adjusted[ascending]), 1.0)
    return adjusted


def check_correction(name: str) -> None:
    """Refuse a correction that there is not.

    Raises:
        UsageError: there is no correction of that name.
    """
    if name not in CORRECTIONS:
        raise UsageError(f"there is no correction {name!r}; there are {', '.join(CORRECTIONS)}")


CORRECTIONS: dict[str, Callable[[npt.ArrayLike], Floats]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
    "none": lambda p: np.array(p, dtype=np.float64, ndmin=1),
}
"""The corrections, by the names that tables and commands give them."""
