# SPDX-License-Identifier: Apache-2.0
"""Statistics of arrays: bootstrap intervals, paired tests, corrections for many tests.

All random numbers come from an explicit seed, so that results are the same on every machine and with any number of
threads. This package knows no metric and no Score: `lagging.scoring.intervals` makes intervals of Scores, and
`lagging.comparison.pairs` tests pairs of systems.
"""

from __future__ import annotations

from lagging.stats.binomial import carries, needed_values, percentile_ranks
from lagging.stats.corrections import CORRECTIONS, benjamini_hochberg, check_correction, holm
from lagging.stats.estimators import Aggregation, Estimator, Quantile, Units, estimator_of_sums
from lagging.stats.intervals import (
    DEFAULT_METHODS,
    METHODS,
    Interval,
    check_confidence,
    default_method,
    intervals,
    note_few_units,
)
from lagging.stats.joint import JointEstimators
from lagging.stats.paired import DEFAULT_TESTS, TESTS, Difference, PairedResamples, compare_pairs
from lagging.stats.resamples import MAX_RESAMPLES, RESAMPLES, SEED

__all__ = [
    "CORRECTIONS",
    "DEFAULT_METHODS",
    "DEFAULT_TESTS",
    "MAX_RESAMPLES",
    "METHODS",
    "RESAMPLES",
    "SEED",
    "TESTS",
    "Aggregation",
    "Difference",
    "Estimator",
    "Interval",
    "JointEstimators",
    "PairedResamples",
    "Quantile",
    "Units",
    "benjamini_hochberg",
    "carries",
    "check_confidence",
    "check_correction",
    "compare_pairs",
    "default_method",
    "estimator_of_sums",
    "holm",
    "intervals",
    "needed_values",
    "note_few_units",
    "percentile_ranks",
]
