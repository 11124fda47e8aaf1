# SPDX-License-Identifier: Apache-2.0
"""Measures: what a Meter keeps of utterances that ended, in sketches and sums that add up.

Utterances become a Run, which is scored as `lagging score` scores the log. So the numbers are the same: those of the
metrics to the last bit, and percentiles of pooled tokens within 0.4 %.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from lagging.data.ragged import Ragged
from lagging.data.run import Run, make_ids, make_texts
from lagging.data.spoken import Spoken
from lagging.errors import UsageError
from lagging.meter.sketch import Sketch
from lagging.meter.utterance import Finished
from lagging.metrics import Metric, metric
from lagging.scoring.part import Part, score_part
from lagging.scoring.plan import Plan
from lagging.scoring.tally import Tally, tallies

__all__ = ["LAGS", "METRICS", "Measures", "measure", "run_of"]

LAGS = {
    "lag": "LagPercentile",
    "lag_elapsed": "LagPercentile(clock=elapsed)",
    "lag_first": "LagPercentile(clock=first)",
}
"""What is kept of every word, by the metric that pools the same values."""
WORD_LAGS = {"word_lag": "WordLagPercentile"}
METRICS = ("AL", "DAL", "DAL(clock=elapsed)", "TL", "NormalizedErasure", "StartOffset(clock=elapsed)")
"""What is scored of every utterance, if nothing else is requested."""
COUNTS = ("utterances", "empty", "words", "erased", "revisions")


@dataclass
class Measures:
    """Sketches, sums and counts of utterances; `a + b` are those of the utterances of both.

    Attributes:
        sketches: the distribution of each quantity, in ms.
        tallies: the sums of each metric, by what a token is; "" before any text shows it.
        counts: utterances, those without words, words, erased words, revisions.
        heard: how much audio there was, in ms.
    """

    sketches: dict[str, Sketch] = field(default_factory=dict)
    tallies: dict[tuple[Metric, str], Tally] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    heard: float = 0.0

    def __add__(self, other: Measures) -> Measures:
        """The Measures of the utterances of both."""
        sketches = dict(self.sketches)
        for name, sketch in other.sketches.items():
            sketches[name] = sketches[name] + sketch if name in sketches else sketch
        sums = dict(self.tallies)
        for key, tally in other.tallies.items():
            sums[key] = sums[key] + tally if key in sums else tally
        return Measures(sketches, sums, self.counts + other.counts, self.heard + other.heard)

    def snapshot(self) -> dict[str, Any]:
        """Counts, percentiles that the number of values carries, and scores with their signatures."""
        scores = {name: tally.score() for name, tally in self._named_tallies().items()}
        return {
            **{name: self.counts[name] for name in COUNTS},
            "heard_ms": self.heard,
            **{name: self.sketches.get(name, Sketch()).summary() for name in (*LAGS, *WORD_LAGS, "backlog")},
            "scores": {
                name: {
                    "score": score.value if score.value == score.value else None,
                    "unit": score.unit,
                    "n": score.n,
                    "undefined": int(score.undefined),
                    "signature": str(score.signature),
                }
                for name, score in scores.items()
            },
        }

    def _named_tallies(self) -> dict[str, Tally]:
        """The Tallies by the names of their metrics; lags in words and in characters have no common mean.

        The level of most utterances goes without saying, that of the others stands behind the name: `DAL (char)`.
        """
        named: dict[str, Tally] = {}
        for m in dict.fromkeys(m for m, _ in self.tallies):
            by_level = {level: tally for (other, level), tally in self.tallies.items() if other == m}
            first, *others = sorted(by_level, key=lambda level: (not level, -by_level[level].n, level))
            if "" in others:  # nothing was written there, so that any level has it
                others.remove("")
                by_level[first] += by_level[""]
            named[repr(m)] = by_level[first]
            named |= {f"{m!r} ({level})": by_level[level] for level in others}
        return named


def check_metrics(names: Sequence[str | Metric]) -> tuple[Metric, ...]:
    """The metrics of these names.

    Raises:
        UsageError: a metric is no function of sums over utterances.
    """
    metrics = tuple(metric(name) if isinstance(name, str) else name for name in names)
    for m in metrics:
        if not m.adds_up or m.needs_corpus:
            raise UsageError(f"a meter cannot keep {m!r} in bounded memory: it is no function of sums over utterances")
    return metrics


def run_of(utterances: Sequence[Finished], name: str = "") -> Run:
    """Utterances of one level as a Run, which is what `lagging.read` makes of their log."""
    spoken = [utterance.words for utterance in utterances]
    return Run(
        delays=Ragged.from_rows([utterance.delays for utterance in utterances]),
        elapsed=Ragged.from_rows([utterance.elapsed for utterance in utterances]),
        first_times=Ragged.from_rows([utterance.first for utterance in utterances]),
        source_length=np.array([utterance.source_length for utterance in utterances]),
        erased=np.array([float(utterance.erased) for utterance in utterances]),
        revisions=np.array([float(utterance.revisions) for utterance in utterances]),
        id=make_ids([utterance.name for utterance in utterances]),
        prediction=make_texts([utterance.text for utterance in utterances]),
        spoken=None if all(words is None for words in spoken) else Spoken.make(spoken),
        unit="ms",
        level=utterances[0].level or "word",
        name=name,
    )


def measure(
    utterances: Sequence[Finished], metrics: Sequence[Metric], name: str = "", groups: Sequence[int] | None = None
) -> dict[int, Measures]:
    """The Measures of utterances of one level, by group; scored together, since one alone would cost as much as many.

    Args:
        utterances: the utterances.
        metrics: what is scored of each.
        name: name of the system.
        groups: the group of each utterance; all are in group 0 if not given.
    """
    if not utterances:
        return {}
    run = run_of(utterances, name)
    labels, group = np.unique(np.zeros(len(run)) if groups is None else np.asarray(groups), return_inverse=True)
    pooled = LAGS | (WORD_LAGS if run.spoken is not None else {})
    parts = {name: part.rows for name, part in zip(pooled, _score(run, tuple(pooled.values())).metrics, strict=True)}
    scored = _score(run, tuple(metrics))
    sums = [(m.metric, tallies(scored, m, group, len(labels))) for m in scored.metrics]
    measured = {}
    for index, label in enumerate(labels.tolist()):
        rows = np.flatnonzero(group == index)
        own = [utterances[row] for row in rows.tolist()]
        sketches = {
            name: Sketch.of(part.take(rows).values if isinstance(part, Ragged) else ()) for name, part in parts.items()
        }
        sketches["backlog"] = Sketch.of(np.concatenate([utterance.backlog for utterance in own]))
        counts = Counter(
            utterances=len(own),
            empty=sum(not len(utterance.delays) for utterance in own),
            words=sum(len(utterance.delays) for utterance in own),
            erased=sum(utterance.erased for utterance in own),
            revisions=sum(utterance.revisions for utterance in own),
        )
        heard = sum(utterance.source_length for utterance in own)
        by_level = {(m, utterances[0].level): tally[index] for m, tally in sums}
        measured[int(label)] = Measures(sketches, by_level, counts, heard)
    return measured


def _score(run: Run, metrics: tuple[str | Metric, ...]) -> Part:
    return score_part(run, _plan(metrics))


@lru_cache(maxsize=16)
def _plan(metrics: tuple[str | Metric, ...]) -> Plan:
    return Plan.make(metrics)
