# SPDX-License-Identifier: Apache-2.0
"""What a comparison says, in a sentence: who is better by how much, in which metric, and how sure all of it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lagging.comparison.paired import Pair, verdict
from lagging.data.units import SHOWN, scale
from lagging.metrics import Metric

__all__ = ["Together", "amount"]

DIGITS = {"ratio": 3, "score": 4}
"""After the point; else two."""


def amount(*values: float, unit: str, between: str = "–") -> str:
    """`0.31–0.60 s`: numbers as a sentence has them, milliseconds in seconds.

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
    """In %, and never rounded to all or none."""
    if 0 < share < 0.001:
        return "< 0.1 %"
    return "> 99.9 %" if 0.999 < share < 1 else f"{100 * share:.1f} %"


@dataclass(frozen=True)
class Together:
    """Two systems by several metrics at once; `str` says it in a sentence.

    Attributes:
        a, b: the systems; what is said is said of b.
        pairs: one per metric.
        units: what each is measured in.
        margins: how much worse b may be, per metric.
        probability: in which share of the resamples b is worse in no metric by more than its margin; NaN if no
            resample has a value of all of them.
        resamples: how many there are.
        alpha: below which a p-value is significant.
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
        within = " by more than its margin" if any(self.margins.values()) else ""
        none = "not worse" if len(parts) == 1 else "worse in none of them"
        said = f"{self.b}, compared with {self.a}, is {listed}"
        if math.isnan(self.probability):
            return f"{said}; no resample tells how often it is {none}{within}"
        return f"{said}; in {_share(self.probability)} of {self.resamples} resamples it is {none}{within}"

    def _part(self, pair: Pair, unit: str) -> str:
        name, margin = repr(pair.metric), self.margins[pair.metric]
        if math.isnan(pair.low) or math.isnan(pair.p):
            return f"not known to be better or worse in {name} ({pair.reason or 'no interval'})"
        up = pair.metric.higher_is_better
        least, most = (pair.low, pair.high) if up else (-pair.high, -pair.low)
        found = verdict(pair, self.alpha)
        timed = pair.metric.unit == "time" and pair.metric.has("clock") and not up
        if found == "better" and least > 0:
            return f"{'earlier' if timed else 'better'} in {name} by {amount(least, most, unit=unit)}"
        if found == "worse" and most < 0:
            return f"{'later' if timed else 'worse'} in {name} by {amount(-most, -least, unit=unit)}"
        if pair.low == pair.high == 0:
            return f"the same in {name}"
        both = amount(pair.low, pair.high, unit=unit, between=" to ")
        if margin > 0 and least >= -margin:
            return f"no worse in {name} by more than {amount(margin, unit=unit)} ({both})"
        return f"not clearly better or worse in {name} ({both}, p = {pair.p_adjusted:.2g})"
