# SPDX-License-Identifier: Apache-2.0
"""Scores that add up: what is kept of segments, so that a log may be scored in any parts, in any order, anywhere.

A `Tally` is made of some scored segments, and `a + b` is the tally of the segments of both. It holds

- the exact sum of each column of the metric's statistics, as one whole number of 2⁻¹¹²⁷: no rounding, so that the
  value is that of `lagging.score` to the last bit, however the segments were parted;
- how many segments there are, how many have no value and why, and the names of some of them;
- how many values lie in each bucket of a histogram, for percentiles: buckets are ¹⁄₁₂₈ of a power of two wide, so that
  a percentile is right within 0.4 %, and a bucket is found without a logarithm, so that no two machines disagree;
- for intervals, the same sums over each of 1024 lots of segments. Which lot a segment is in says a hash of its name
  and the seed; how often a lot counts in a resample is a Poisson number from a hash of the seed, the lot and the
  resample (Chamandy et al. 2012). So the weight of a segment in a resample depends on its name and nothing else, one
  pass suffices, no segment need know of another, and a thousand resamples cost no more per segment than ten.

The hash of a name: CRC-32 of its text in UTF-8, then SplitMix64 (Steele, Lea & Flood 2014) of that and the seed.

A metric whose corpus value is no function of such sums (a pooled percentile, a maximum), or whose segments depend on
each other, cannot be tallied, and is refused.
"""

from lagging.tallies.additive import RESAMPLES, SEED
from lagging.tallies.making import Group, Tallies, check_metrics, tally
from lagging.tallies.record import PERCENTILES, Tallied, Tally

__all__ = ["PERCENTILES", "RESAMPLES", "SEED", "Group", "Tallied", "Tallies", "Tally", "check_metrics", "tally"]
