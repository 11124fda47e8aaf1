# SPDX-License-Identifier: Apache-2.0
"""The wild bootstrap: for few documents, where drawing documents with replacement says too little.

Instead of drawing documents, it multiplies what each of them adds by a random weight of mean 0 and variance 1. With
five documents, one of which is unlike the others, a third of all ordinary resamples leaves that one out and shows no
variance; here every document is in every resample.
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
"""The number of bisections by which an end is found: to a millionth of a standard error."""
FARTHEST = 64.0
"""An end is searched for up to so many standard errors away; Student's t of two units is 12.7 at 95 %."""


@dataclass(frozen=True, eq=False)
class Wild:
    r"""Restricted wild cluster bootstrap of a value, or of a difference (Cameron, Gelbach & Miller 2008).

    If the true value were θ₀, unit c would add $e_c = B u_c + (\hat\theta - \theta_0)\, b_c$, with its influence $u_c$
    and its weight $b_c$ of B in all; of a ratio this is $t_c - \theta_0 b_c$. The test of θ₀ compares
    $t = \sum e_c / \sqrt{\sum (e_c - r b_c)^2}$, where $r = \sum e_c / B$, with the same of $v_c e_c$, where $v_c$ is
    one of $\pm\sqrt{1/2}, \pm 1, \pm\sqrt{3/2}$ (Webb 2023). The interval holds the θ₀ that are not rejected.

    As functions of $\hat\theta - \theta_0$, numerator and denominator of t² are polynomials of the second degree, so
    that a test of another θ₀ costs little.

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
        """Two-sided p-value of the hypothesis that `truth` is the true value."""
        distance = self.value - truth
        top, bottom = (c[0] + distance * (c[1] + distance * c[2]) for c in (self.tops, self.bottoms))
        # with the same weight for all units, t is the same, except for rounding
        extreme = top * self.variance >= distance**2 * (1 - 1e-9) * bottom
        return float((np.count_nonzero(extreme) + 1) / (len(extreme) + 1))

    def interval(self, confidence: float) -> tuple[float, float]:
        """The values that are not rejected; NaN where no value is ever rejected, as with two units."""
        alpha = round(1 - confidence, 14)
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
    """The wild bootstrap of each value, or of the difference second − first, with the same weights for all."""
    if not estimators:
        return []
    values, residuals, weights = [], [], []
    for first, second in estimators:
        weight = first.weight if second is None else (first.weight + second.weight) / 2
        influence = first.influence if second is None else second.influence - first.influence
        values.append(first.value if second is None else second.value - first.value)
        residuals.append(influence * weight.sum())
        weights.append(weight)
    e, b = np.stack(residuals, axis=1), np.stack(weights, axis=1)
    linear, squared = np.stack([e, b, e * b, b * b], axis=2), np.stack([e * e, e * b, b * b], axis=2)
    parts = []
    for v in signs(len(e), resamples, seed):
        sums = np.zeros((len(v), e.shape[1], 7))
        # unit by unit, not as a product of matrices: the order of addition, and so the sums, are the same everywhere
        for unit, weight in enumerate(v.T):
            sums[..., :4] += weight[:, None, None] * linear[unit]
            sums[..., 4:] += (weight**2)[:, None, None] * squared[unit]
        parts.append(sums)
    joined = np.concatenate(parts)
    return [_from_sums(value, e[:, k], b[:, k], joined[:, k].T) for k, value in enumerate(values)]


def _from_sums(value: float, e: Floats, b: Floats, sums: Floats) -> Wild:
    """From the sums of v·e, v·b, v·e·b, v·b², v²·e², v²·e·b and v²·b² at θ₀ = θ̂ to polynomials."""
    total, squares, n_defined = b.sum(), (b * b).sum(), np.count_nonzero(b)
    ve, vb, veb, vbb, vvee, vveb, vvbb = sums
    r, s = ve / total, vb / total
    bottoms = (
        vvee - 2 * r * veb + r * r * squares,
        2 * (vveb - r * vbb - s * veb + r * s * squares),
        vvbb - 2 * s * vbb + s * s * squares,
    )
    variance = (e * e).sum()
    error = np.sqrt(variance * n_defined / max(n_defined - 1, 1)) / total
    return Wild(value, float(error), float(variance), np.stack([r * r, 2 * r * s, s * s]), np.stack(bottoms))
