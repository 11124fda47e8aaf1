# SPDX-License-Identifier: Apache-2.0
"""The wild bootstrap: for few documents, where drawing some of them again says too little.

Instead of drawing documents, what each of them adds is multiplied by a random weight of mean 0 and variance 1. With
five documents, one of which is unlike the others, a third of all ordinary resamples is without that one and believes
that there is no variance; here no resample forgets a document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lagging.data.ragged import Floats
from lagging.stats.estimators import Sums
from lagging.stats.resamples import signs

__all__ = ["Wild", "wild"]

STEPS = 22
"""Halvings by which an end is found: to a millionth of a standard error."""
FARTHEST = 64.0
"""How many standard errors away an end is looked for; Student's t of two units is 12.7 at 95 %."""


@dataclass(frozen=True, eq=False)
class Wild:
    r"""Restricted wild cluster bootstrap of one value, or difference (Cameron, Gelbach & Miller 2008).

    If the true value were θ₀, unit c would add $e_c = B u_c + (\hat\theta - \theta_0)\, b_c$, with its influence $u_c$
    and its weight $b_c$ of B in all; of a ratio this is $t_c - \theta_0 b_c$. The test of θ₀ compares
    $t = \sum e_c / \sqrt{\sum (e_c - r b_c)^2}$, where $r = \sum e_c / B$, with the same of $v_c e_c$, where $v_c$ is
    one of $\pm\sqrt{1/2}, \pm 1, \pm\sqrt{3/2}$ (Webb 2023). The interval holds the θ₀ that are not rejected.

    As functions of $\hat\theta - \theta_0$, numerator and denominator of t² are polynomials of the second degree, so
    that another θ₀ is quickly tried.

    Attributes:
        value, error: the value, and its standard error.
        variance: the denominator without weights, Σ e² at θ₀ = θ̂; the same for all θ₀.
        tops, bottoms: coefficients of numerator and denominator in each resample: 3 × resamples.
    """

    value: float
    error: float
    variance: float
    tops: Floats
    bottoms: Floats

    def p(self, truth: float = 0.0) -> float:
        """Two-sided p-value of that being the true value."""
        away = self.value - truth
        top, bottom = (c[0] + away * (c[1] + away * c[2]) for c in (self.tops, self.bottoms))
        # with the same weight for all units, t is the same, but for rounding
        extreme = top * self.variance >= away**2 * (1 - 1e-9) * bottom
        return float((np.count_nonzero(extreme) + 1) / (len(extreme) + 1))

    def interval(self, level: float) -> tuple[float, float]:
        """The values that are not rejected; NaN where none ever is, as with two units."""
        alpha = round(1 - level, 14)
        return self._end(-1, alpha), self._end(1, alpha)

    def _end(self, side: int, alpha: float) -> float:
        inside, outside = 0.0, 1.0
        while self.p(self.value + side * outside * self.error) > alpha:
            inside, outside = outside, 2 * outside
            if outside > FARTHEST:
                return float("nan")
        for _ in range(STEPS):
            middle = (inside + outside) / 2
            if self.p(self.value + side * middle * self.error) > alpha:
                inside = middle
            else:
                outside = middle
        return self.value + side * outside * self.error


def wild(estimators: Sequence[tuple[Sums, Sums | None]], resamples: int, seed: int) -> list[Wild]:
    """Of each value, or difference of the first from the second, what the weights make of it: the same for all."""
    if not estimators:
        return []
    values, pulls, weights = [], [], []
    for one, other in estimators:
        weight = one.weight if other is None else (one.weight + other.weight) / 2
        pull = one.influence if other is None else other.influence - one.influence
        values.append(one.value if other is None else other.value - one.value)
        pulls.append(pull * weight.sum())
        weights.append(weight)
    e, b = np.stack(pulls, axis=1), np.stack(weights, axis=1)
    first, second = np.stack([e, b, e * b, b * b], axis=2), np.stack([e * e, e * b, b * b], axis=2)
    drawn = []
    for v in signs(len(e), resamples, seed):
        sums = np.zeros((len(v), e.shape[1], 7))
        # unit by unit, and not as a product of matrices: the same order of addition, so the same sums, everywhere
        for unit, weight in enumerate(v.T):
            sums[..., :4] += weight[:, None, None] * first[unit]
            sums[..., 4:] += (weight**2)[:, None, None] * second[unit]
        drawn.append(sums)
    whole = np.concatenate(drawn)
    return [_one(value, e[:, k], b[:, k], whole[:, k].T) for k, value in enumerate(values)]


def _one(value: float, e: Floats, b: Floats, sums: Floats) -> Wild:
    """From the sums of v·e, v·b, v·e·b, v·b², v²·e², v²·e·b and v²·b² at θ₀ = θ̂ to polynomials."""
    total, squares, there = b.sum(), (b * b).sum(), np.count_nonzero(b)
    ve, vb, veb, vbb, vvee, vveb, vvbb = sums
    r, s = ve / total, vb / total
    bottoms = (
        vvee - 2 * r * veb + r * r * squares,
        2 * (vveb - r * vbb - s * veb + r * s * squares),
        vvbb - 2 * s * vbb + s * s * squares,
    )
    variance = (e * e).sum()
    error = np.sqrt(variance * there / max(there - 1, 1)) / total
    return Wild(value, float(error), float(variance), np.stack([r * r, 2 * r * s, s * s]), np.stack(bottoms))
