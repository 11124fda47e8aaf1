# SPDX-License-Identifier: Apache-2.0
"""How sure a score is: bootstrap intervals over segments, or over documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from lagging.data.ragged import Floats
from lagging.errors import Note, UsageError, counted, merge_notes
from lagging.scoring.scores import Score, Scores
from lagging.stats.estimators import Estimator, Quantile, Sums, Units, estimator, evaluate, linear, units_of
from lagging.stats.resamples import RESAMPLES, SEED, check_resamples, counts
from lagging.stats.wild import Wild, wild

__all__ = ["DEFAULTS", "METHODS", "Interval", "interval", "intervals", "with_intervals"]

METHODS = ("percentile", "bca", "studentised", "wild", "sacrebleu")
DEFAULTS = {"segment": "bca", "document": "wild"}
"""The methods that cover what they promise: see `bench/coverage.py`."""

FEW = 20
"""Intervals from fewer units miss the true value at least twice as often as they say, if units are drawn."""
COVERED = {
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
    """Between which values a score would lie on other segments, or documents, of the same kind.

    Attributes:
        low, high: its ends; NaN where there is none.
        method: "percentile", "bca", "studentised", "wild" or "sacrebleu".
        by: what was resampled: "segment" or "document".
        level: how often such an interval covers the true value.
        resamples, seed: how many, and of which random numbers.
        clusters: how many segments, or documents, there were to resample.
        reason: why there is no interval, or why it has no width; empty otherwise.
        valued: how many of the segments, or documents, have a value.
    """

    low: float
    high: float
    method: str
    by: str
    level: float
    resamples: int
    seed: int
    clusters: int
    reason: str = ""
    valued: int = 0

    @property
    def too_few(self) -> Note | None:
        """What is to be said of an interval from so few segments, or documents, that it is too narrow."""
        drawn = self.method not in ("studentised", "wild") and not np.isnan(self.low)
        return few(self.valued, self.by) if drawn and self.valued < FEW else None


def few(n: int, by: str, whose: str = "") -> Note:
    """What is to be said of intervals from so few segments, or documents.

    Example:
        >>> few(2, "segment").kind
        'TOO FEW SEGMENTS'
        >>> few(2, "segment").text.partition(": ")[2]
        'simulated ones of 95 % cover the true mean 47 to 50 % of the time'
    """
    skewed, normal = COVERED[max(known for known in COVERED if known <= n)]
    covered = f"simulated ones of 95 % cover the true mean {skewed} to {normal} % of the time"
    return Note(f"TOO FEW {by.upper()}S", f"{whose}intervals from {counted(n, by)} are too narrow: {covered}")


def interval(
    score: Score,
    *,
    by: str = "segment",
    level: float = 0.95,
    method: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval:
    r"""A bootstrap interval of a score (Efron 1979).

    Units, segments or whole documents, are drawn with replacement, and the score is computed anew. Of the values
    $\theta^*$ of the resamples,

    - `percentile` takes the α/2 and 1 − α/2 quantiles;
    - `bca` takes them at levels corrected for bias and skewness (Efron 1987);
    - `studentised` takes quantiles of $t^* = (\theta^* - \hat\theta)/s^*$, and the interval
      $[\hat\theta - t^*_{1-\alpha/2}\,s,\ \hat\theta - t^*_{\alpha/2}\,s]$, with standard errors by linearisation over
      the units; of a pooled percentile, those of the share of tokens below it (Woodruff 1952);
    - `wild` holds the values that a wild bootstrap does not reject (Cameron, Gelbach & Miller 2008), which gives the
      units random weights instead of drawing them: studentised too, and the best for few documents, where drawing may
      leave out the only one that is unlike the others; see `lagging.stats.wild`;
    - `sacrebleu` is what `sacrebleu --confidence` prints: the mean of the resamples, give or take half the distance
      between their quantiles, with segments in the order of the log. It needs `resamples=1000` to be the same.

    Segments of one talk are alike, so that an interval by segment promises too much about another talk.

    From few units, the first two and the last are too narrow: no resample goes beyond what was seen, so that of n units
    not even the whole range covers the true median more often than $1 - 2^{1-n}$ (half of the time, of two), and
    skewness takes more (Hesterberg 2015). Measured, BCa intervals of 95 % from 2, 5, 10 and 20 segments with skewed
    lags cover the true mean 47, 77, 86 and 90 % of the time. Below 20 units, `Interval.too_few` says so.

    Args:
        score: a score, with its statistics.
        by: "segment" or "document".
        level: 0.95 for 95 %.
        method: the default is "bca" for segments and "wild" for documents.
        resamples: how many.
        seed: of the random numbers; the same seed gives the same interval everywhere.

    Returns:
        An Interval. Its ends are NaN where fewer than two units have a value, or where the metric is no function of
        sums; both are the value itself where all resamples have the same.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[k, 5, 5] for k in (1, 2, 3, 4, 5)], source_length=[5] * 5)
        >>> found = interval(lagging.score(run, ["AP"])["AP"])
        >>> round(found.low, 4), round(found.high, 4), found.method
        (0.7867, 0.9467, 'bca')

    References:
        Efron, B. (1987). Better bootstrap confidence intervals. JASA 82. Davison & Hinkley (1997), chapter 5.
        Hesterberg, T. (2015). What teachers should know about the bootstrap. The American Statistician 69.
    """
    return intervals([score], by=by, level=level, method=method, resamples=resamples, seed=seed)[0]


def intervals(
    scores: Iterable[Score],
    *,
    by: str = "segment",
    level: float = 0.95,
    method: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Interval, ...]:
    """The intervals of several scores of the same segments, on the same resamples; see `interval`."""
    scores = list(scores)
    if not scores:
        return ()
    method = DEFAULTS.get(by, "") if method is None else method
    check(method, by, level, resamples)
    if method == "sacrebleu":
        units = Units("segment", scores[0].n, np.arange(scores[0].n))
    else:
        units = units_of(scores[0], by)
    made = Interval(np.nan, np.nan, method, by, level, resamples, seed, units.n)
    found = [estimator(score, units) for score in scores]
    good = [e for e in found if not isinstance(e, str)]
    values, t = [], []
    for some in counts(units.n, resamples, seed):
        values.append(evaluate(good, some))
        if method == "studentised":
            t.append(student(good, some))
    drawn = iter(np.concatenate(values).T)
    more: Iterator[Floats | Wild | None] = iter([None] * len(good))
    if method == "studentised":
        more = iter(np.concatenate(t).T)
    elif method == "wild":
        weighted = iter(wild([(linear(e), None) for e in good if e.some > 1], resamples, seed))
        more = iter([next(weighted) if e.some > 1 else None for e in good])
    return tuple(
        replace(made, reason=e) if isinstance(e, str) else finish(made, score.value, e, next(drawn), next(more))
        for score, e in zip(scores, found, strict=True)
    )


def with_intervals(
    scores: Scores,
    *,
    by: str = "segment",
    level: float = 0.95,
    method: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Scores:
    """The scores with `low` and `high`, and how they were made in the signatures; see `interval`.

    A score without an interval keeps None, and a note says why.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[k, 5, 5] for k in (1, 2, 3, 4, 5)], source_length=[5] * 5)
        >>> score = with_intervals(lagging.score(run, ["AP"]))["AP"]
        >>> round(score.low, 4), round(score.value, 4), round(score.high, 4)
        (0.7867, 0.8667, 0.9467)
        >>> [str(score.signature.get(key)) for key in ("ci", "by", "method", "bs", "seed")]
        ['95', 'segment', 'bca', '10000', '12345']
    """
    found = intervals(scores, by=by, level=level, method=method, resamples=resamples, seed=seed)
    return signed(list(scores), found, scores.system, scores.notes)


def signed(of: Sequence[Score], found: Sequence[Interval], system: str, notes: Sequence[Note]) -> Scores:
    """The scores with their intervals, and how these were made in the signatures; a note where there is none."""
    out, said = [], list(notes)
    for score, made in zip(of, found, strict=True):
        if made.reason:
            what = "there is none" if np.isnan(made.low) else "it has no width"
            said.append(Note("interval", f"{score.metric!r}: {what}: {made.reason}"))
        if (note := made.too_few) is not None:
            said.append(note)
        if np.isnan(made.low):
            out.append(replace(score, low=None, high=None, signature=score.signature.without_interval()))
            continue
        out.append(signed_by(score, made))
    return Scores(out, system, merge_notes(said))


def signed_by(score: Score, made: Interval) -> Score:
    """The score with its interval, and how that was made in its signature."""
    signature = score.signature.with_interval(
        ci=f"{100 * made.level:.10g}", by=made.by, method=made.method, bs=made.resamples, seed=made.seed
    )
    return replace(score, low=made.low, high=made.high, signature=signature)


def check(method: str, by: str, level: float, resamples: int) -> None:
    """Refuse what no interval can be made by."""
    if by not in DEFAULTS:
        raise UsageError(f"an interval is by segment or by document, not by {by!r}")
    if method not in METHODS:
        raise UsageError(f"there is no interval {method!r}; there are {', '.join(METHODS)}")
    check_drawn(level, resamples)
    if method == "sacrebleu" and by != "segment":
        raise UsageError("sacreBLEU resamples segments, not documents")


def check_drawn(level: float, resamples: int) -> None:
    """Refuse a level, or a number of resamples, that no interval can have."""
    if not (0 < level < 1 and tails(level)[0] > 0):
        raise UsageError(f"the level of an interval is between 0 and 1, such as 0.95, but is {level!r}")
    check_resamples(resamples)


# ---- from resamples to ends -------------------------------------------------------------------------------------


def finish(made: Interval, value: float, e: Estimator, values: Floats, more: Floats | Wild | None) -> Interval:
    """The interval of a value, given the values of the resamples, and t* or what weights make of it, if need be."""
    made = replace(made, valued=e.some)
    if e.some < 2:
        return replace(made, reason=f"{counted(e.some, made.by)} with a value: too few")
    values = values[~np.isnan(values)]
    if not len(values) or not np.isfinite(value):
        return replace(made, reason="no resample has a value")
    if constant(values, np.abs(values).max()):
        return replace(made, low=value, high=value, reason="all resamples have the same value")
    if more is not None:
        low, high = _of_units(e, more, made.level)
        if not (np.isfinite(low) and np.isfinite(high)):
            return replace(made, reason=f"{counted(e.some, made.by)}: too few for a {made.method} interval")
    elif made.method == "bca":
        low, high = bca(values, e.value, acceleration(e), made.level)
    elif made.method == "sacrebleu":
        low, high = _sacrebleu(values, made.level)
    else:
        low, high = percentile(values, made.level)
    return replace(made, low=float(low), high=float(high))


ROUNDING = 1e-12
"""What is smaller, compared with the values themselves, is not told apart from nothing."""


def constant(values: Floats, scale: float) -> bool:
    """Whether the values differ by no more than rounding, of numbers of that size."""
    return bool(np.ptp(values) <= ROUNDING * scale)


def tails(level: float) -> tuple[float, float]:
    """α/2 and 1 − α/2, such that 95 % gives 0.025 and not the number of the machine after it."""
    below = round((1 - level) / 2, 14)
    return below, 1 - below


def percentile(values: Floats, level: float) -> tuple[float, float]:
    """The α/2 and 1 − α/2 quantiles."""
    low, high = np.quantile(values, tails(level))
    return float(low), float(high)


def acceleration(e: Estimator) -> float:
    """How the standard error changes with the value: a sixth of the skewness of leaving out each unit (Efron 1987)."""
    if isinstance(e, Sums):
        left_out = e.jackknife()[e.there]
        pull = np.nanmean(left_out) - left_out[~np.isnan(left_out)]
    else:
        pull = e.influence
    return skewness(pull)


def skewness(pull: Floats) -> float:
    """Σ u³ / (6 (Σ u²)^1.5)."""
    spread = float((pull**2).sum())
    return float((pull**3).sum() / (6 * spread**1.5)) if spread > 0 else 0.0


def bca(values: Floats, value: float, a: float, level: float) -> tuple[float, float]:
    """Quantiles at levels corrected for bias and acceleration (Efron 1987)."""
    normal = NormalDist()
    share = (np.count_nonzero(values < value) + np.count_nonzero(values <= value)) / 2 / len(values)
    bias = normal.inv_cdf(float(np.clip(share, 0.5 / len(values), 1 - 0.5 / len(values))))
    levels = []
    for tail in tails(level):
        z = bias + normal.inv_cdf(tail)
        levels.append(normal.cdf(bias + z / (1 - a * z)))
    low, high = np.quantile(values, levels)
    return float(low), float(high)


def student(estimators: Iterable[Estimator], some: Floats) -> Floats:
    """t* of each estimator (columns) in each resample (rows); of a percentile, of the share of tokens below it."""
    columns = []
    for e in map(linear, estimators):
        values = e.values(some)
        columns.append(studentise(values - e.value, e.errors(some), float(np.nanmax(np.abs(values), initial=0))))
    return np.stack(columns, axis=1) if columns else np.empty((len(some), 0))


def studentise(difference: Floats, error: Floats, scale: float) -> Floats:
    """Difference, of values of that size, over standard error: infinite where only the error is 0."""
    none, sure = (np.abs(part) <= ROUNDING * scale for part in (difference, error))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(none, 0.0, difference / np.where(sure, 0.0, error))


def _of_units(e: Estimator, more: Floats | Wild, level: float) -> tuple[float, float]:
    """An interval by standard errors; of a percentile, between the percentiles that its share could be."""
    if isinstance(more, Wild):
        low, high = more.interval(level)
    else:
        low, high = bootstrap_t(more, linear(e).value, float(linear(e).errors(np.ones((1, e.n)))[0]), level)
    if isinstance(e, Quantile) and np.isfinite(low + high):
        shares = 100 * (np.array([low, high]) - linear(e).value) + e.p
        low, high = np.percentile(e.sorted_values, np.clip(shares, 0, 100))
    return float(low), float(high)


def bootstrap_t(t: Floats, value: float, error: float, level: float) -> tuple[float, float]:
    """[θ − t*(1 − α/2)·s, θ − t*(α/2)·s]; t* may be infinite, so that no two of them are averaged."""
    t = t[~np.isnan(t)]
    if not len(t):
        return np.nan, np.nan
    low, high = np.quantile(t, tails(level), method="inverted_cdf")
    return value - float(high) * error, value - float(low) * error


def _sacrebleu(values: Floats, level: float) -> tuple[float, float]:
    """The mean, give or take half the distance between two resamples (sacrebleu/significance.py, estimate_ci)."""
    up = np.sort(values)
    below = int(len(up) * tails(level)[0])
    half = (up[len(up) - below - 1] - up[below]) / 2
    return float(up.mean() - half), float(up.mean() + half)
