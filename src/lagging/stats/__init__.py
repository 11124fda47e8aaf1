# SPDX-License-Identifier: Apache-2.0
"""Statistics of scores: intervals, paired tests, corrections for many tests.

Everything is drawn from an explicit seed, and is the same on every machine and with any number of threads.
"""

from __future__ import annotations

from lagging.stats.corrections import CORRECTIONS, benjamini_hochberg, holm
from lagging.stats.difference import verdict
from lagging.stats.intervals import DEFAULTS, METHODS, Interval, check_drawn, interval, intervals, with_intervals
from lagging.stats.joint import Resampled, resampled
from lagging.stats.match import Matched, match
from lagging.stats.paired import DEFAULT_TESTS, TESTS, Pair, Paired, paired
from lagging.stats.resamples import MOST, RESAMPLES, SEED

__all__ = [
    "CORRECTIONS",
    "DEFAULTS",
    "DEFAULT_TESTS",
    "METHODS",
    "MOST",
    "RESAMPLES",
    "SEED",
    "TESTS",
    "Interval",
    "Matched",
    "Pair",
    "Paired",
    "Resampled",
    "benjamini_hochberg",
    "check_drawn",
    "holm",
    "interval",
    "intervals",
    "match",
    "paired",
    "resampled",
    "verdict",
    "with_intervals",
]
