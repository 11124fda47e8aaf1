# SPDX-License-Identifier: Apache-2.0
"""What a comparison of systems is: scores with intervals, pairs with p-values, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from lagging.comparison.letters import compact_letters
from lagging.comparison.published import PublishedScore
from lagging.comparison.summary import Together
from lagging.data import notebooks
from lagging.errors import MetricNameError, Note, UsageError, counted, did_you_mean, optional
from lagging.metrics import Metric, metric_among
from lagging.scoring.scores import Scores
from lagging.scoring.signature import Signature
from lagging.stats import DEFAULTS, Pair, Paired, verdict
from lagging.version import __version__

if TYPE_CHECKING:
    import pandas

__all__ = ["Comparison", "find_metric"]

TESTS = {"bootstrap": "paired bootstrap", "randomisation": "paired approximate randomisation"}
CORRECTIONS = {"holm": "Holm", "bh": "Benjamini and Hochberg"}
MARKS = {"better": "+", "worse": "-", "different": "≠", "alike": "", "untested": ""}


def find_metric(name: str | Metric, known: tuple[Metric, ...]) -> Metric:
    """The metric of that name among some, which need not be registered."""
    found = metric_among(name, known)
    if found not in known:
        raise MetricNameError(f"{found!r} was not compared; these were: {', '.join(map(repr, known))}")
    return found


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Several systems on the same segments.

    Attributes:
        systems: their names; `metrics`: by what they were compared.
        scores: of each system, on the segments that all of them have, with intervals.
        pairs: one for each metric and two systems (see `lagging.stats.Pair`); with a base, only those with it.
        base: the system that the others are compared with; None if all pairs are.
        n: number of segments that all systems have; `unmatched`: of each system, the ids of its other segments.
        clusters: number of segments or documents that were resampled.
        published: scores without a log, to be shown beside these.
        notes: what a reader must know.
        test, correction, by, level, resamples, seed: how it was made.
        resampled: the values of all resamples; None of a single system.
    """

    systems: tuple[str, ...]
    metrics: tuple[Metric, ...]
    scores: dict[str, Scores]
    pairs: tuple[Pair, ...]
    base: str | None
    n: int
    clusters: int
    unmatched: dict[str, tuple[Any, ...]]
    test: str
    correction: str
    by: str
    level: float
    resamples: int
    seed: int
    published: tuple[PublishedScore, ...] = ()
    notes: tuple[Note, ...] = ()
    resampled: Paired | None = field(default=None)

    @property
    def alpha(self) -> float:
        """Below it, a corrected p-value is significant: 0.05 where the level is 0.95."""
        return round(1 - self.level, 14)

    def pair(self, name: str | Metric, a: str, b: str) -> Pair:
        """What b is against a: the pair as it was compared, or turned round."""
        of = find_metric(name, self.metrics)
        self._check(a, b)
        for pair in self.pairs:
            if pair.metric == of and (pair.a, pair.b) == (a, b):
                return pair
            if pair.metric == of and (pair.a, pair.b) == (b, a):
                return _turned(pair)
        raise UsageError(f"{a} and {b} were not compared with each other, but with {self.base}")

    def against(self, base: str) -> tuple[Pair, ...]:
        """What every other system is against one of them, metric by metric."""
        others = [system for system in self.systems if system != base]
        return tuple(self.pair(m, base, other) for m in self.metrics for other in others)

    def verdict(self, pair: Pair) -> str:
        """What a pair says of b: "better", "worse" or "different" than a, "alike", or "untested"."""
        return verdict(pair, self.alpha)

    @property
    def letters(self) -> dict[Metric, dict[str, str]]:
        """Per metric, letters of the systems: two that share one do not differ significantly; none with a base.

        The best system has an `a`. One that no test could be made of has no letter.
        """
        if self.base is not None or not self.pairs:
            return {}
        found = {}
        for m in self.metrics:
            tested = [p for p in self.pairs if p.metric == m and self.verdict(p) != "untested"]
            there = [s for s in self.systems if any(s in (p.a, p.b) for p in tested)]
            sign = -1 if m.higher_is_better else 1
            there.sort(key=lambda system, m=m, sign=sign: sign * self._value(system, m))  # type: ignore[misc]
            differ = [(p.a, p.b) for p in tested if self.verdict(p) != "alike"]
            found[m] = dict.fromkeys(self.systems, "") | (compact_letters(there, differ) if there else {})
        return found

    @property
    def marks(self) -> dict[Metric, dict[str, str]]:
        """Per metric, what the systems are against the base: `+` better, `-` worse, `≠` different; none without one."""
        if self.base is None:
            return {}
        found: dict[Metric, dict[str, str]] = {m: dict.fromkeys(self.systems, "") for m in self.metrics}
        for pair in self.pairs:
            found[pair.metric][pair.b] = MARKS[self.verdict(pair)]
        return found

    def together(self, a: str, b: str, margins: Mapping[str, float] | None = None) -> Together:
        """What b is against a by several metrics at once, on the same resamples; `str` of it is a sentence.

        Args:
            a, b: the systems.
            margins: which metrics, and how much worse b may be, in the unit of the log: {"BLEU": 0.5, "AL": 0}. All
                metrics that have a better direction, without a margin, by default.
        """
        if self.resampled is None:
            raise UsageError("there is only one system")
        self._check(a, b)
        if margins is None:
            chosen = {m: 0.0 for m in self.metrics if m.higher_is_better is not None}
        else:
            chosen = {find_metric(name, self.metrics): float(margin) for name, margin in margins.items()}
        for m, margin in chosen.items():
            if m.higher_is_better is None:
                raise UsageError(f"{m!r} has no better direction")
            if not math.isfinite(margin):
                raise UsageError(f"the margin of {m!r} must be a number, but is {margin}")
        if not chosen:
            raise UsageError("no metric that was compared has a better direction")
        pairs = tuple(self.pair(m, a, b) for m in chosen)
        share = self.resampled.together(a, b, chosen)  # type: ignore[arg-type]
        units = tuple(self._unit(m) for m in chosen)
        return Together(a, b, pairs, units, chosen, share, self.resamples, self.alpha)

    def _check(self, *names: str) -> None:
        for name in names:
            if name not in self.systems:
                raise UsageError(f"there is no system {name!r}.{did_you_mean(name, self.systems)}")

    def _value(self, system: str, m: Metric) -> float:
        return self.scores[system][m].value

    def _unit(self, m: Metric) -> str:
        return next(iter(self.scores.values()))[m].unit

    @property
    def signature(self) -> Signature:
        """How the p-values were made; the scores have signatures of their own."""
        said = {
            "test": self.test,
            "correction": self.correction,
            "against": "all" if self.base is None else "base",
            "systems": len(self.systems),
            "ci": f"{100 * self.level:.10g}",
            "by": self.by,
            "method": DEFAULTS[self.by],
            "bs": self.resamples,
            "seed": self.seed,
            "n": self.n,
            "v": __version__,
        }
        return Signature("pairs", tuple((key, str(value)) for key, value in said.items()))

    @property
    def how(self) -> str:
        """The test, the correction and the intervals, in words."""
        units = counted(self.clusters, self.by)
        units += "" if self.by == "segment" else f" of {counted(self.n, 'segment')}"
        drawn = f"{self.resamples} resamples, seed {self.seed}"
        intervals = f"{100 * self.level:.10g} % intervals ({DEFAULTS[self.by]} bootstrap)"
        if not self.pairs:
            return f"{intervals} over {units}, {drawn}"
        tests = len(self.pairs) // len(self.metrics)
        if self.correction == "none" or tests == 1:
            many = f"p of {counted(tests, 'pair')} per metric, not corrected"
        else:
            many = f"p corrected by {CORRECTIONS[self.correction]} for {tests} pairs per metric"
        return f"{TESTS[self.test]} over {units}, {drawn}; {many}; {intervals}"

    @property
    def key(self) -> str:
        """What the letters or marks mean; empty where there are none."""
        if not self.pairs:
            return ""
        if self.base is None:
            return f"systems that share a letter do not differ significantly (p < {self.alpha:g})"
        return f"+ significantly better than {self.base}, - significantly worse (p < {self.alpha:g})"

    @property
    def summary(self) -> str:
        """Each system against the base, or the first, in a sentence; then how that was found."""
        first = self.base or self.systems[0]
        some = any(m.higher_is_better is not None for m in self.metrics) and self.pairs
        said = [str(self.together(first, s)) for s in self.systems if s != first] if some else []
        return "\n".join([*said, self.how])

    def to_pandas(self) -> pandas.DataFrame:
        """A row per pair: metric, a, b, values, difference, low, high, p, p_adjusted, effect, wins … (needs pandas)."""
        names = [f.name for f in fields(Pair)]
        rows = [[repr(p.metric), *(getattr(p, name) for name in names[1:])] for p in self.pairs]
        return optional("pandas").DataFrame(rows, columns=names)

    _repr_html_ = notebooks.html

    def __repr__(self) -> str:
        """`Comparison(base, new: AL, DAL of 40 segments)`."""
        return f"Comparison({', '.join(self.systems)}: {', '.join(map(repr, self.metrics))} of {self.n} segments)"


def _turned(pair: Pair) -> Pair:
    """The same pair, seen from the other side."""
    return replace(
        pair,
        a=pair.b,
        b=pair.a,
        value_a=pair.value_b,
        value_b=pair.value_a,
        difference=-pair.difference,
        low=-pair.high,
        high=-pair.low,
        effect=-pair.effect,
        effect_low=-pair.effect_high,
        effect_high=-pair.effect_low,
        wins=pair.losses,
        losses=pair.wins,
    )
