# SPDX-License-Identifier: Apache-2.0
"""Bootstrap confidence intervals over segments, or over documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from lagging.data.ragged import Floats
from lagging.errors import Note, UsageError, counted
from lagging.stats.estimators import Estimator, Quantile, Sums, Units, evaluate, linear
from lagging.stats.resamples import RESAMPLES, SEED, check_resamples, counts
from lagging.stats.wild import Wild, wild

__all__ = [
    "DEFAULT_METHODS",
    "METHODS",
    "Interval",
    "check_confidence",
    "check_options",
    "default_method",
    "interval_from_resamples",
    "intervals",
    "note_few_units",
]

METHODS = ("percentile", "bca", "wild", "sacrebleu")
DEFAULT_METHODS = {"segment": "bca", "document": "wild"}
"""The methods that cover the true value about as often as they promise: see `bench/coverage.py`."""

FEW = 20
"""Intervals from fewer units miss the true value at least twice as often as they say, if units are drawn."""
COVERAGE = {
    2: (47, 50),
    3: (66, 75),
    4: (73, 81),
    5: (77, 84),
    6: (81, 87),
    8: (84, 90),
    10: (86, 90),
    12: (86, 91),
    15: (89, 92),
}
"""How often, in %, BCa intervals of 95 % from so few segments cover the true mean of skewed and of normal lags, in 2000
simulations each (`bench/coverage.py`)."""


@dataclass(frozen=True)
class Interval:
    """The values between which a score would lie on other segments, or documents, of the same kind.

    Attributes:
        low, high: its ends; NaN where there is no interval.
        method: "percentile", "bca", "wild", "sacrebleu" or "poisson".
        resample: what was resampled: "segment" or "document".
        confidence: how often such an interval covers the true value.
        resamples, seed: the number of resamples, and the seed of the random numbers.
        clusters: the number of segments, or documents, that there were to resample.
        reason: why there is no interval, or why it has no width; empty otherwise.
        n_defined: how many of the segments, or documents, have a value.
    """

    low: float
    high: float
    method: str
    resample: str
    confidence: float
    resamples: int
    seed: int
    clusters: int
    reason: str = ""
    n_defined: int = 0

    @property
    def too_few(self) -> Note | None:
        """A note if the interval is from so few segments, or documents, that it is too narrow."""
        too_narrow = self.method != "wild" and not np.isnan(self.low) and self.n_defined < FEW
        return note_few_units(self.n_defined, self.resample) if too_narrow else None


def note_few_units(n: int, resample: str, prefix: str = "") -> Note:
    """A note about intervals from so few segments, or documents, that they are too narrow.

    Example:
        >>> note_few_units(2, "segment").kind
        'TOO FEW SEGMENTS'
        >>> note_few_units(2, "segment").text.partition(": ")[2]
        'simulated ones of 95 % cover the true mean 47 to 50 % of the time'
    """
    skewed, normal = COVERAGE[max(known for known in COVERAGE if known <= n)]
    coverage = f"simulated ones of 95 % cover the true mean {skewed} to {normal} % of the time"
    return Note(
        f"TOO FEW {resample.upper()}S", f"{prefix}intervals from {counted(n, resample)} are too narrow: {coverage}"
    )


def intervals(
    values: Sequence[float],
    estimators: Sequence[Estimator | str],
    units: Units,
    *,
    confidence: float = 0.95,
    method: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Interval, ...]:
    r"""Bootstrap intervals of several values of the same units, on the same resamples (Efron 1979).

    Units, segments or whole documents, are drawn with replacement, and the value is computed again. From the values
    $\theta^*$ of the resamples,

    - `percentile` takes the α/2 and 1 − α/2 quantiles;
    - `bca` takes them at levels corrected for bias and skewness (Efron 1987);
    - `wild` holds the values that a wild bootstrap does not reject (Cameron, Gelbach & Miller 2008), which gives the
      units random weights instead of drawing them: the best for few documents, where drawing may leave out the only
      one that is unlike the others; see `lagging.stats.wild`. For a pooled percentile it is an interval of the share of
      tokens below it (Woodruff 1952);
    - `sacrebleu` is what `sacrebleu --confidence` prints: the mean of the resamples, plus and minus half the distance
      between their quantiles, with segments in the order of the log. It needs `resamples=1000` to be the same.

    Segments of one talk are alike, so an interval over segments promises too much about another talk.

    From few units, all but `wild` are too narrow: no resample goes beyond what was seen, so from n units not even the
    whole range covers the true median more often than $1 - 2^{1-n}$ (half of the time, from two), and skewness makes
    it worse (Hesterberg 2015). Measured, BCa intervals of 95 % from 2, 5, 10 and 20 segments with skewed lags cover the
    true mean 47, 77, 86 and 90 % of the time. Below 20 units, `Interval.too_few` is a note about it.

    Args:
        values: the values of the whole sample.
        estimators: their estimators; or the reason why there is none.
        units: what is resampled.
        confidence: 0.95 for 95 %.
        method: "bca" for segments and "wild" for documents, by default.
        resamples: the number of resamples.
        seed: the seed of the random numbers; the same seed gives the same interval everywhere.

    Returns:
        The Intervals. The ends are NaN where fewer than two units have a value; both are the value itself where all
        resamples have the same value.

    Example:
        >>> from lagging.stats.estimators import estimator_of_sums
        >>> units = Units.in_order(5)
        >>> mean = estimator_of_sums(np.array([[1.0], [2.0], [3.0], [4.0], [5.0]]), "mean", units)
        >>> (interval,) = intervals([mean.value], [mean], units)
        >>> interval.low, interval.high, interval.method
        (1.8, 4.2, 'bca')

    References:
        Efron, B. (1987). Better bootstrap confidence intervals. JASA 82. Davison & Hinkley (1997), chapter 5.
        Hesterberg, T. (2015). What teachers should know about the bootstrap. The American Statistician 69.
    """
    method = default_method(units.resample) if method is None else method
    check_options(method, units.resample, confidence, resamples)
    empty = Interval(np.nan, np.nan, method, units.resample, confidence, resamples, seed, units.n)
    known = [e for e in estimators if not isinstance(e, str)]
    resampled = iter(np.concatenate([evaluate(known, part) for part in counts(units.n, resamples, seed)]).T)
    tests: Iterator[Wild | None] = iter([None] * len(known))
    if method == "wild":
        weighted = iter(wild([(linear(e), None) for e in known if e.n_defined > 1], resamples, seed))
        tests = iter([next(weighted) if e.n_defined > 1 else None for e in known])
    return tuple(
        replace(empty, reason=e)
        if isinstance(e, str)
        else interval_from_resamples(empty, value, e, next(resampled), next(tests))
        for value, e in zip(values, estimators, strict=True)
    )


def default_method(resample: str) -> str:
    """The method of intervals if none is named.

    Example:
        >>> default_method("segment"), default_method("document")
        ('bca', 'wild')
    """
    check_resample(resample)
    return DEFAULT_METHODS[resample]


def check_resample(resample: str) -> None:
    """Refuse to resample anything but segments and documents."""
    if resample not in DEFAULT_METHODS:
        raise UsageError(f"an interval resamples by segment or by document, not by {resample!r}")


def check_options(method: str, resample: str, confidence: float, resamples: int) -> None:
    """Refuse options by which no interval can be made."""
    check_resample(resample)
    if method not in METHODS:
        raise UsageError(f"there is no interval method {method!r}; there are {', '.join(METHODS)}")
    check_confidence(confidence, resamples)
    if method == "sacrebleu" and resample != "segment":
        raise UsageError("sacreBLEU resamples segments, not documents")


def check_confidence(confidence: float, resamples: int) -> None:
    """Refuse a confidence level, or a number of resamples, that no interval can have."""
    if not (0 < confidence < 1 and tails(confidence)[0] > 0):
        raise UsageError(f"the confidence of an interval must be between 0 and 1, such as 0.95, but is {confidence!r}")
    check_resamples(resamples)


# ---- from resamples to ends -------------------------------------------------------------------------------------


def interval_from_resamples(
    empty: Interval, value: float, estimator: Estimator, values: Floats, test: Wild | None
) -> Interval:
    """The interval of a value, from the values of the resamples.

    Args:
        empty: an Interval without ends, which says how it is made.
        value: the value of the whole sample.
        estimator: its estimator.
        values: the values of the resamples.
        test: the wild bootstrap of the estimator, for a "wild" interval.
    """
    n_defined = estimator.n_defined
    empty = replace(empty, n_defined=n_defined)
    if n_defined < 2:
        return replace(empty, reason=f"{counted(n_defined, empty.resample)} with a value: too few")
    values = values[~np.isnan(values)]
    if not len(values) or not np.isfinite(value):
        return replace(empty, reason="no resample has a value")
    if is_constant(values, np.abs(values).max()):
        return replace(empty, low=value, high=value, reason="all resamples have the same value")
    if test is not None:
        low, high = _wild(estimator, test, empty.confidence)
        if not (np.isfinite(low) and np.isfinite(high)):
            return replace(empty, reason=f"{counted(n_defined, empty.resample)}: too few for a {empty.method} interval")
    elif empty.method == "bca":
        low, high = bca(values, estimator.value, acceleration(estimator), empty.confidence)
    elif empty.method == "sacrebleu":
        low, high = _sacrebleu(values, empty.confidence)
    else:
        low, high = percentile(values, empty.confidence)
    return replace(empty, low=float(low), high=float(high))


ROUNDING = 1e-12
"""A number that is smaller, relative to the values themselves, may be a rounding error."""


def is_constant(values: Floats, scale: float) -> bool:
    """Whether the values differ by no more than rounding errors of numbers of that size."""
    return bool(np.ptp(values) <= ROUNDING * scale)


def tails(confidence: float) -> tuple[float, float]:
    """α/2 and 1 − α/2, rounded so that 0.95 gives 0.025 and not the float after it."""
    lower = round((1 - confidence) / 2, 14)
    return lower, 1 - lower


def percentile(values: Floats, confidence: float) -> tuple[float, float]:
    """The α/2 and 1 − α/2 quantiles."""
    low, high = np.quantile(values, tails(confidence))
    return float(low), float(high)


def acceleration(estimator: Estimator) -> float:
    """How the standard error changes with the value: the skewness of the jackknife over 6 (Efron 1987)."""
    if isinstance(estimator, Sums):
        left_out = estimator.jackknife()[estimator.defined]
        influence = np.nanmean(left_out) - left_out[~np.isnan(left_out)]
    else:
        influence = estimator.influence
    return skewness(influence)


def skewness(influence: Floats) -> float:
    """Σ u³ / (6 (Σ u²)^1.5), of the influence u of the units."""
    squares = float((influence**2).sum())
    return float((influence**3).sum() / (6 * squares**1.5)) if squares > 0 else 0.0


def bca(values: Floats, value: float, acceleration: float, confidence: float) -> tuple[float, float]:
    """Quantiles at levels corrected for bias and acceleration (Efron 1987)."""
    normal = NormalDist()
    share = (np.count_nonzero(values < value) + np.count_nonzero(values <= value)) / 2 / len(values)
    bias = normal.inv_cdf(float(np.clip(share, 0.5 / len(values), 1 - 0.5 / len(values))))
    levels = []
    for tail in tails(confidence):
        z = bias + normal.inv_cdf(tail)
        levels.append(normal.cdf(bias + z / (1 - acceleration * z)))
    low, high = np.quantile(values, levels)
    return float(low), float(high)


def _wild(estimator: Estimator, test: Wild, confidence: float) -> tuple[float, float]:
    """The interval of a wild bootstrap; of a percentile, between the percentiles that its share could be."""
    low, high = test.interval(confidence)
    if isinstance(estimator, Quantile) and np.isfinite(low + high):
        shares = 100 * (np.array([low, high]) - linear(estimator).value) + estimator.p
        low, high = np.percentile(estimator.sorted_values, np.clip(shares, 0, 100))
    return float(low), float(high)


def _sacrebleu(values: Floats, confidence: float) -> tuple[float, float]:
    """The mean ± half the distance between two resamples (sacrebleu/significance.py, estimate_ci)."""
    ascending = np.sort(values)
    lower = int(len(ascending) * tails(confidence)[0])
    half = (ascending[len(ascending) - lower - 1] - ascending[lower]) / 2
    return float(ascending.mean() - half), float(ascending.mean() + half)
