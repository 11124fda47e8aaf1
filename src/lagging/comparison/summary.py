# SPDX-License-Identifier: Apache-2.0
"""A comparison of two systems as a sentence: which is better, by how much, in which metric, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lagging.comparison.pairs import Pair, verdict
from lagging.data.units import SHOWN, scale
from lagging.metrics import Metric

__all__ = ["Together", "amount"]

DIGITS = {"ratio": 3, "score": 4}
"""Digits after the decimal point; two for other units."""


def amount(*values: float, unit: str, between: str = "–") -> str:
    """Numbers with their unit, as in `0.31–0.60 s`; milliseconds are shown in seconds.

    Example:
        >>> amount(310, 604, unit="ms"), amount(0.5, unit="points"), amount(-0.012, 0.034, unit="ratio", between=" to ")
        ('0.31–0.60 s', '0.50 points', '-0.012 to 0.034')
        >>> amount(0.0021, unit="score")
        '0.0021'
    """
    digits = DIGITS.get(unit, 2)
    numbers = between.join(f"{value / scale(unit):z.{digits}f}" for value in values)
    return f"{numbers} {SHOWN.get(unit, '')}".rstrip()


def _share(share: float) -> str:
    """A share in %; one that is neither 0 nor 1 is not rounded to 0 or 100 %."""
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    if 0 < share < 0.001:
        return "less than 0.1 %"
    return "more than 99.9 %" if 0.999 < share < 1 else f"{100 * share:.1f} %"


@dataclass(frozen=True)
class Together:
    """Two systems by several metrics at once; `str` of it is a sentence.

    Attributes:
        a, b: the systems; b is compared with a.
        pairs: a Pair per metric.
        units: the unit of each metric.
        margins: how much worse b may be, per metric.
        probability: the share of the resamples in which b is worse in no metric by more than its margin; NaN if no
            resample has a value of all of them.
        resamples: the number of resamples.
        alpha: a p-value is significant below it.
    """

    a: str
    b: str
    pairs: tuple[Pair, ...]
    units: tuple[str, ...]
    margins: Mapping[Metric, float]
    probability: float
    resamples: int
    alpha: float

    def __str__(self) -> str:
        """The sentence."""
        parts = [self._part(pair, unit) for pair, unit in zip(self.pairs, self.units, strict=True)]
        listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
        sentence = f"{self.b}, compared with {self.a}, is {listed}"
        if math.isnan(self.probability):
            return f"{sentence}; no resample has a value of every metric"
        all_of_them = {1: "", 2: " in both"}.get(len(parts), " in all of these metrics")
        margin = ", within its margin," if any(self.margins.values()) else ""
        share = f"{_share(self.probability)} of {self.resamples} resamples"
        return f"{sentence}; it is at least as good{all_of_them}{margin} in {share}"

    def _part(self, pair: Pair, unit: str) -> str:
        name, margin = repr(pair.metric), self.margins[pair.metric]
        if math.isnan(pair.low) or math.isnan(pair.p):
            return f"not known to be better or worse in {name} ({pair.reason or 'no interval'})"
        higher_is_better = pair.metric.higher_is_better
        least, most = (pair.low, pair.high) if higher_is_better else (-pair.high, -pair.low)
        result = verdict(pair, self.alpha)
        is_latency = pair.metric.unit == "time" and pair.metric.has("clock") and not higher_is_better
        if result == "better" and least > 0:
            return f"{'earlier' if is_latency else 'better'} in {name} by {amount(least, most, unit=unit)}"
        if result == "worse" and most < 0:
            return f"{'later' if is_latency else 'worse'} in {name} by {amount(-most, -least, unit=unit)}"
        if pair.low == pair.high == 0:
            return f"the same in {name}"
        difference = f"difference {amount(pair.low, pair.high, unit=unit, between=' to ')}"
        if margin > 0 and least >= -margin:
            return f"not worse in {name} by more than {amount(margin, unit=unit)} ({difference})"
        if least > 0 or most < 0:  # interval and p do not agree, and a reader must know why
            corrected = pair.p < self.alpha
            after = f"p = {pair.p:.2g}, but {pair.p_adjusted:.2g} after correction" if corrected else f"{pair.p:.2g}"
            why = after if corrected else f"the interval leaves 0 out, but the test gives p = {after}"
            return f"not shown to be better or worse in {name} ({difference}; {why})"
        return f"not clearly better or worse in {name} ({difference}, p = {pair.p_adjusted:.2g})"
