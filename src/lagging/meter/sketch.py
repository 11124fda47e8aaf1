# SPDX-License-Identifier: Apache-2.0
"""A Sketch: the distribution of many values in bounded memory, which merges with others.

It is the histogram by which `lagging score` summarises segments: a percentile is right within 0.4 %, as DDSketch
promises it, two sketches add up exactly, and no further package is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from lagging.data.exact import expansions, fold, total
from lagging.data.ragged import Floats
from lagging.scoring.histogram import bucket_middle, buckets, percentile
from lagging.stats.binomial import carries

__all__ = ["PERCENTILES", "Sketch"]

PERCENTILES = (50.0, 90.0, 99.0)
"""What a snapshot shows."""


@dataclass
class Sketch:
    """The distribution of values; `a + b` is that of the values of both.

    Attributes:
        counts: the number of values in each bucket.
        sums: a few numbers with exactly the sum of the values.
        least, most: of the values.

    Example:
        >>> sketch = Sketch.of([100.0, 200.0]) + Sketch.of([300.0])
        >>> sketch.n, sketch.mean, round(sketch.percentile(50), -1)
        (3, 200.0, 200.0)
        >>> sketch.summary()["p50"] is None  # three values do not carry a median
        True
    """

    counts: dict[int, int] = field(default_factory=dict)
    sums: tuple[float, ...] = ()
    least: float = math.inf
    most: float = -math.inf

    @classmethod
    def of(cls, values: Iterable[float] | Floats) -> Sketch:
        """The sketch of some values; NaN is left out."""
        array = np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=np.float64)
        array = array[np.isfinite(array)]
        if not len(array):
            return cls()
        where, counts = np.unique(buckets(array), return_counts=True)
        sums = tuple(fold(expansions(array, None, 1)[0]))
        return cls(
            dict(zip(where.tolist(), counts.tolist(), strict=True)), sums, float(array.min()), float(array.max())
        )

    def __add__(self, other: Sketch) -> Sketch:
        """The sketch of the values of both."""
        counts = dict(self.counts)
        for bucket, count in other.counts.items():
            counts[bucket] = counts.get(bucket, 0) + count
        sums = tuple(fold((*self.sums, *other.sums)))
        return Sketch(counts, sums, min(self.least, other.least), max(self.most, other.most))

    @property
    def n(self) -> int:
        """The number of values."""
        return sum(self.counts.values())

    @property
    def sum(self) -> float:
        """The sum of the values."""
        return total(self.sums)

    @property
    def mean(self) -> float:
        """The mean of the values; NaN without any."""
        return self.sum / self.n if self.counts else math.nan

    def percentile(self, p: float) -> float:
        """The value that p of 100 values do not exceed, within 0.4 %; NaN without any."""
        return percentile(self.counts, p, self.least, self.most)

    def count_up_to(self, limit: float) -> int:
        """The number of values up to a limit, within the width of a bucket."""
        return sum(count for bucket, count in self.counts.items() if bucket_middle(bucket) <= limit)

    def summary(self) -> dict[str, float | int | None]:
        """Count, mean, smallest and largest value, and percentiles: None for one that so many values do not carry."""
        n = self.n
        ends = (
            {"mean": self.mean, "least": self.least, "most": self.most}
            if n
            else dict.fromkeys(("mean", "least", "most"))
        )
        percentiles = {f"p{p:g}": self.percentile(p) if carries(n, p) else None for p in PERCENTILES}
        return {"n": n, **ends, **percentiles}
