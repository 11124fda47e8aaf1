# SPDX-License-Identifier: Apache-2.0
"""Many tests at once: adjusted p-values, each to be compared with the level as if it were alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Floats

__all__ = ["CORRECTIONS", "benjamini_hochberg", "holm"]


def holm(p: npt.ArrayLike) -> Floats:
    r"""Holm's step-down procedure (1979): with it, one false positive among all tests is as rare as the level says.

    $$ \tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1)\, p_{(j)}) $$

    Valid whatever the dependence between tests, and never less powerful than Bonferroni's.

    Args:
        p: p-values; NaN, of a test that could not be made, stays NaN and does not count.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        array([0.03, 0.06, 0.06])
    """
    return _adjust(p, lambda up: np.maximum.accumulate(up * np.arange(len(up), 0, -1)))


def benjamini_hochberg(p: npt.ArrayLike) -> Floats:
    r"""Benjamini and Hochberg's step-up procedure (1995): of the positives, the share of false ones stays at the level.

    $$ \tilde p_{(i)} = \min_{j \ge i} \min(1, m\, p_{(j)} / j) $$

    For tests that are independent, or positively dependent.

    Args:
        p: p-values; NaN, of a test that could not be made, stays NaN and does not count.

    Example:
        >>> benjamini_hochberg([0.01, 0.04, 0.03])
        array([0.03, 0.04, 0.04])
    """

    def step_up(up: Floats) -> Floats:
        return np.minimum.accumulate((up * len(up) / np.arange(1, len(up) + 1))[::-1])[::-1]

    return _adjust(p, step_up)


def _adjust(p: npt.ArrayLike, step: Callable[[Floats], Floats]) -> Floats:
    """Adjust the p-values that there are, in rising order."""
    given = np.array(p, dtype=np.float64, ndmin=1)
    if ((given < 0) | (given > 1)).any():
        raise ValueError("a p-value lies between 0 and 1")
    there = np.flatnonzero(~np.isnan(given))
    up = there[np.argsort(given[there], kind="stable")]
    given[up] = np.minimum(step(given[up]), 1.0)
    return given


CORRECTIONS: dict[str, Callable[[npt.ArrayLike], Floats]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
    "none": lambda p: np.array(p, dtype=np.float64, ndmin=1),
}
"""By the name that a table or a command gives them."""
