# SPDX-License-Identifier: Apache-2.0
"""The Comparison: scores with intervals, pairs with p-values, and letters, marks and sentences made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from lagging.comparison.letters import compact_letters
from lagging.comparison.pairs import Pair, Paired, check_system, verdict
from lagging.comparison.published import PublishedScore
from lagging.comparison.summary import Together
from lagging.data import notebooks
from lagging.errors import MetricNameError, Note, UsageError, counted, optional
from lagging.metrics import Metric, metric_among
from lagging.scoring.scores import Scores
from lagging.scoring.signature import Signature
from lagging.stats import DEFAULT_METHODS
from lagging.version import __version__

if TYPE_CHECKING:
    import pandas

__all__ = ["Comparison", "find_metric"]

TESTS = {"bootstrap": "paired bootstrap", "randomisation": "paired approximate randomisation"}
CORRECTIONS = {"holm": "Holm", "bh": "Benjamini and Hochberg"}
MARKS = {"better": "+", "worse": "-", "different": "≠", "alike": "", "untested": ""}


def find_metric(name: str | Metric, known: tuple[Metric, ...]) -> Metric:
    """The metric of that name among those that were compared, which need not be registered."""
    metric = metric_among(name, known)
    if metric not in known:
        raise MetricNameError(f"{metric!r} was not compared; these were: {', '.join(map(repr, known))}")
    return metric


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Several systems on the same segments.

    Attributes:
        systems: the names of the systems; `metrics`: the metrics by which they were compared.
        scores: of each system, the scores of the segments that all of them have, with intervals.
        pairs: one for each metric and two systems (see `lagging.comparison.pairs.Pair`); with a base, only those with
            it.
        base: the system that the others are compared with; None if all pairs are compared.
        n: number of segments that all systems have; `unmatched`: of each system, the ids of its other segments.
        clusters: number of segments or documents that were resampled.
        published: scores without a log, to be shown beside these.
        notes: what a reader must know.
        test, correction, resample, confidence, resamples, seed: the options.
        resampled: the values of all resamples; None for a single system.
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
    resample: str
    confidence: float
    resamples: int
    seed: int
    published: tuple[PublishedScore, ...] = ()
    notes: tuple[Note, ...] = ()
    resampled: Paired | None = field(default=None)

    @property
    def alpha(self) -> float:
        """A corrected p-value is significant below it: 0.05 where the confidence is 0.95."""
        return round(1 - self.confidence, 14)

    def pair(self, name: str | Metric, a: str, b: str) -> Pair:
        """How b compares with a: the pair as it was tested, or reversed."""
        metric = find_metric(name, self.metrics)
        self._check(a, b)
        for pair in self.pairs:
            if pair.metric == metric and (pair.a, pair.b) == (a, b):
                return pair
            if pair.metric == metric and (pair.a, pair.b) == (b, a):
                return _reverse(pair)
        raise UsageError(f"{a} and {b} were not compared with each other, but with {self.base}")

    def against(self, base: str) -> tuple[Pair, ...]:
        """How every other system compares with one of them, metric by metric."""
        compared = [system for system in self.systems if system != base]
        return tuple(self.pair(m, base, system) for m in self.metrics for system in compared)

    def verdict(self, pair: Pair) -> str:
        """What the test says of b: "better", "worse" or "different" than a, "alike", or "untested"."""
        return verdict(pair, self.alpha)

    @property
    def letters(self) -> dict[Metric, dict[str, str]]:
        """Per metric, letters of the systems: two that share a letter do not differ significantly; none with a base.

        The best system has an `a`. A system that could not be tested has no letter.
        """
        if self.base is not None or not self.pairs:
            return {}
        letters = {}
        for m in self.metrics:
            tested = [p for p in self.pairs if p.metric == m and self.verdict(p) != "untested"]
            ranked = [s for s in self.systems if any(s in (p.a, p.b) for p in tested)]
            sign = -1 if m.higher_is_better else 1
            ranked.sort(key=lambda system, m=m, sign=sign: sign * self._value(system, m))  # type: ignore[misc]
            differ = [(p.a, p.b) for p in tested if self.verdict(p) != "alike"]
            letters[m] = dict.fromkeys(self.systems, "") | (compact_letters(ranked, differ) if ranked else {})
        return letters

    @property
    def marks(self) -> dict[Metric, dict[str, str]]:
        """Per metric, marks of the systems: `+` better than the base, `-` worse, `≠` different; none without a base."""
        if self.base is None:
            return {}
        marks: dict[Metric, dict[str, str]] = {m: dict.fromkeys(self.systems, "") for m in self.metrics}
        for pair in self.pairs:
            marks[pair.metric][pair.b] = MARKS[self.verdict(pair)]
        return marks

    def best(self, name: str | Metric) -> tuple[str, ...]:
        """The system with the best value of a metric, and those that do not differ from it significantly.

        With a base, or where neither direction is better, only those with the best value, or none.
        """
        metric = find_metric(name, self.metrics)
        values = {s: value for s in self.systems if not math.isnan(value := self._value(s, metric))}
        if len(values) < 2 or metric.higher_is_better is None:
            return ()
        best = (max if metric.higher_is_better else min)(values.values())
        first = next(system for system, value in values.items() if value == best)
        letters = self.letters.get(metric, {})
        return tuple(s for s in values if values[s] == best or set(letters.get(s, "")) & set(letters.get(first, "")))

    def together(self, a: str, b: str, margins: Mapping[str, float] | None = None) -> Together:
        """How b compares with a by several metrics at once, on the same resamples; `str` of it is a sentence.

        Args:
            a, b: the systems.
            margins: the metrics, and how much worse b may be, in the unit of the log: {"BLEU": 0.5, "AL": 0}. All
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
            check_system(name, self.systems)

    def _value(self, system: str, m: Metric) -> float:
        return self.scores[system][m].value

    def _unit(self, m: Metric) -> str:
        return next(iter(self.scores.values()))[m].unit

    @property
    def signature(self) -> Signature:
        """How the p-values were made; the scores have signatures of their own."""
        fields = {
            "test": self.test,
            "correction": self.correction,
            "against": "all" if self.base is None else "base",
            "systems": len(self.systems),
            "ci": f"{100 * self.confidence:.10g}",
            "by": self.resample,
            "method": DEFAULT_METHODS[self.resample],
            "bs": self.resamples,
            "seed": self.seed,
            "n": self.n,
            "v": __version__,
        }
        return Signature("pairs", tuple((key, str(value)) for key, value in fields.items()))

    @property
    def description(self) -> str:
        """The test, the correction and the intervals, in words."""
        units = counted(self.clusters, self.resample)
        units += "" if self.resample == "segment" else f" of {counted(self.n, 'segment')}"
        resamples = f"{self.resamples} resamples, seed {self.seed}"
        intervals = f"{100 * self.confidence:.10g} % intervals ({DEFAULT_METHODS[self.resample]} bootstrap)"
        if not self.pairs:
            return f"{intervals} over {units}, {resamples}"
        tests = len(self.pairs) // len(self.metrics)
        if self.correction == "none" or tests == 1:
            correction = f"p of {counted(tests, 'pair')} per metric, not corrected"
        else:
            correction = f"p corrected by {CORRECTIONS[self.correction]} for {tests} pairs per metric"
        alone = "" if "not corrected" in correction else ", not corrected"
        return f"{TESTS[self.test]} over {units}, {resamples}; {correction}; {intervals}{alone}"

    @property
    def key(self) -> str:
        """The meaning of the letters or marks; empty where there are none."""
        if not self.pairs:
            return ""
        if self.base is None:
            key = f"systems that share a letter do not differ significantly (p < {self.alpha:g})"
            several = max((mark for marks in self.letters.values() for mark in marks.values()), key=len, default="")
            if len(several) < 2:
                return key
            groups = " and ".join(several[:2])
            return f"{key}; {several[:2]} is like both {groups}, although {groups} differ"
        return f"+ significantly better than {self.base}, - significantly worse (p < {self.alpha:g})"

    @property
    def summary(self) -> str:
        """A sentence for each system compared with the base, or the first; then the tests and intervals, in words."""
        first = self.base or self.systems[0]
        tested = any(m.higher_is_better is not None for m in self.metrics) and self.pairs
        sentences = [str(self.together(first, s)) for s in self.systems if s != first] if tested else []
        return "\n".join([*sentences, self.description])

    def to_pandas(self) -> pandas.DataFrame:
        """A row per pair: metric, a, b, values, difference, low, high, p, p_adjusted, effect, wins … (needs pandas)."""
        names = [f.name for f in fields(Pair)]
        rows = [[repr(p.metric), *(getattr(p, name) for name in names[1:])] for p in self.pairs]
        return optional("pandas").DataFrame(rows, columns=names)

    _repr_html_ = notebooks.html

    def __repr__(self) -> str:
        """`Comparison(base, new: AL, DAL of 40 segments)`."""
        return f"Comparison({', '.join(self.systems)}: {', '.join(map(repr, self.metrics))} of {self.n} segments)"


def _reverse(pair: Pair) -> Pair:
    """The same pair with a and b exchanged."""
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
