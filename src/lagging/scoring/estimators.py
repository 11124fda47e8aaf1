# SPDX-License-Identifier: Apache-2.0
"""Scores as estimators: what `lagging.stats` needs to resample a Score."""

from __future__ import annotations

from lagging.data.ragged import Ragged
from lagging.errors import UsageError
from lagging.metrics import Metric
from lagging.metrics.record import missing
from lagging.scoring.scores import Score
from lagging.stats import Aggregation, Estimator, Quantile, Units, estimator_of_sums

__all__ = ["aggregation_of", "score_estimator", "score_units"]


def aggregation_of(metric: Metric) -> Aggregation | None:
    """How the sums of a metric's statistics become its value; None if the value is no function of sums.

    Example:
        >>> import lagging
        >>> aggregation_of(lagging.metric("AL")), aggregation_of(lagging.metric("AL(mean=token)"))
        ('mean', 'ratio')
    """
    if callable(metric.aggregate):
        return metric.from_sums
    return "ratio" if metric.ratio else "mean"


def score_units(score: Score, resample: str = "segment") -> Units:
    """What is resampled of a Score: its segments in the order of their ids, or its documents in that of their names.

    Raises:
        UsageError: the Score does not say which document a segment belongs to.
    """
    if resample == "segment":
        return Units.segments(score.ids)
    if score.documents is None:
        raise UsageError("the log does not say which document a segment belongs to: resample by segment")
    return Units.documents(score.documents.tolist(), score.ids.tolist())


def score_estimator(score: Score, units: Units) -> Estimator | str:
    """The estimator of a Score; or the reason why there is none, in words.

    Example:
        >>> import lagging
        >>> score = lagging.score(lagging.Run.from_delays([[1], [2]], source_length=[2, 2]), ["AL"])["AL"]
        >>> score_estimator(score, score_units(score)).value
        1.5
    """
    metric, statistics = score.resolved, score.statistics
    if isinstance(statistics, Ragged):
        if not metric.quantile:
            return "it pools tokens in a way that cannot be resampled"
        p = float(str(metric.get(metric.quantile)))
        return Quantile.make(statistics, units, p) if 0 < p < 100 else "the largest or smallest value has no interval"
    if statistics.shape[1] == 1 and missing(statistics).all():  # also of a metric that cannot be computed here
        return estimator_of_sums(statistics, "mean", units)
    aggregation = aggregation_of(metric)
    if aggregation is None:
        return "it is not a function of sums, so it cannot be resampled"
    return estimator_of_sums(statistics, aggregation, units)
