# SPDX-License-Identifier: Apache-2.0
"""Statistics of scores: intervals, paired tests, corrections for many tests.

Everything is drawn from an explicit seed, and is the same on every machine and with any number of threads.
"""

from __future__ import annotations

from lagging.stats.intervals import Interval, interval, intervals, with_intervals

__all__ = ["Interval", "interval", "intervals", "with_intervals"]
