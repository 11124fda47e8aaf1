# SPDX-License-Identifier: Apache-2.0
"""The metrics against the truth: which of them orders systems as the true lag of their words does?

Where the source word of each target word is known, so is how long a listener waits for it. Systems are schedules:
the policies of `lagging.policies`, which do not look at the words, and adaptive rules, which do. See lab/PLAN.md.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import lagging
from lab.alignments import read_places
from lab.data import CLAUSES, clause_pair, clause_pairs
from lab.results import Kept
from lagging import policies
from lagging.data.ragged import Floats, Ints
from lagging.data.run import Run
from lagging.scoring.scores import Score
from lagging.stats.resamples import counts, on_grid

__all__ = [
    "COSTS",
    "LATENCIES",
    "Corpus",
    "Judged",
    "controlled",
    "judge",
    "judge_trained",
    "multi30k",
    "signatures",
    "systems",
    "true_lags",
]

LATENCIES = ("AP", "AL", "LAAL", "YAAL", "ATD", "DAL", "DAL(write_cost=1)", "StreamDAL")
COSTS = (0.0, 0.5, 1.0, 1.5)
"""How long a listener needs for a target word, in source words."""
RESAMPLES = 2000
SENTENCES = 300
"""Of the controlled corpus."""


@dataclass(frozen=True)
class Corpus:
    """Sentences whose words are aligned.

    Attributes:
        name: what it is called.
        sizes: how many words each source has.
        places: of each target word, the place of its source word, from 1; 0 for none.
    """

    name: str
    sizes: Sequence[int]
    places: Sequence[Ints]


def controlled() -> Corpus:
    """Sentences whose verbs come last, after 1 to 8 words."""
    chance = random.Random(2)
    made = [clause_pair(chance) for _ in range(SENTENCES)]
    return Corpus("verb-final", [len(source) for source, _, _ in made], [np.array(places) for *_, places in made])


def multi30k() -> Corpus:
    """Test 2016 of Multi30k, German to English, as `lab.alignments` has aligned it."""
    kept = read_places()
    return Corpus("Multi30k", [size for size, _ in kept], [places for _, places in kept])


Rule = Callable[[int, Ints], Floats]
"""From the length of a source and the places of the target words to g(t)."""


@dataclass(frozen=True)
class System:
    """A rule that says when each word is written, and whether it looks at the words."""

    name: str
    adaptive: bool
    rule: Rule


def _known(size: int, places: Ints) -> Floats:
    """g(t) of the best policy: each word as soon as its source word, and those of the words before it, are read."""
    return np.maximum(np.maximum.accumulate(places.astype(np.float64)), 1.0)


def _later(words: int) -> Rule:
    return lambda size, places: np.minimum(_known(size, places) + words, size)


def _bursts(n: int) -> Rule:
    """N words at once, as soon as all of them are known."""

    def rule(size: int, places: Ints) -> Floats:
        known = _known(size, places)
        last = np.minimum((np.arange(len(known)) // n + 1) * n, len(known)) - 1
        return np.asarray(known[last])

    return rule


def _held(n: int) -> Rule:
    """A word is written when the n words after it are known too, or everything has been read."""

    def rule(size: int, places: Ints) -> Floats:
        return np.concatenate([_known(size, places)[n:], np.full(min(n, len(places)), float(size))])

    return rule


def _started(share: float) -> Rule:
    """Nothing is written before a share of the source has been read."""
    return lambda size, places: np.maximum(_known(size, places), np.ceil(share * size))


def _pausing(size: int, places: Ints) -> Floats:
    """The best policy, but the last read comes with the last word: the paper's antagonist."""
    known = np.minimum(_known(size, places), max(size - 1, 1))
    known[-1] = size
    return known


def _hesitating(mean: float) -> Rule:
    """Before each word, a pause by chance of that many words in the mean."""

    def rule(size: int, places: Ints) -> Floats:
        pauses = np.random.default_rng([size, *places.tolist()]).geometric(1 / (1 + mean), len(places)) - 1
        return np.minimum(np.maximum.accumulate(_known(size, places) + pauses), size)

    return rule


def _fixed(policy: policies.Policy) -> System:
    return System(policy.name, False, lambda size, places: policy.delays(size, len(places)))


def systems() -> list[System]:
    """All systems: those that do not look at the words, and those that do."""
    fixed = [policies.wait_k(k) for k in (1, 2, 3, 4, 5, 7, 9)]
    fixed += [policies.wait_k(k, catchup=rate) for k in (2, 4, 6) for rate in ("paper", 0.25)]
    fixed += [policies.segmentwise(size) for size in (2, 3, 4, 6, 8, 12)]
    fixed += [policies.antagonist(k) for k in (2, 4, 6, 8)]
    fixed += [policies.offline()]
    rules: dict[str, Rule] = {"as known": _known}
    rules |= {f"as known, {n} later": _later(n) for n in (1, 2, 4)}
    rules |= {f"bursts of {n}": _bursts(n) for n in (2, 3, 4, 6, 8)}
    rules |= {f"hold {n}": _held(n) for n in (1, 2, 4, 6)}
    rules |= {f"from {share:.0%} of the source": _started(share) for share in (0.25, 0.5, 0.75)}
    rules |= {"as known, last read late": _pausing}
    rules |= {f"hesitating, {mean:g}": _hesitating(mean) for mean in (0.5, 1.0, 2.0)}
    return [*map(_fixed, fixed), *(System(name, True, rule) for name, rule in rules.items())]


def true_lags(delays: Floats, places: Ints, cost: float) -> Floats:
    """How long after its source word each target word is heard, by a listener who needs `cost` for each word.

    Words are along the last axis; NaN for a word that has no source word.

    Example:
        >>> true_lags(np.array([2.0, 2, 2]), np.array([1, 2, 0]), 1.0)
        array([ 1.,  1., nan])
    """
    taken = np.arange(delays.shape[-1]) * cost
    # the larger of g(t) and the end of the word before, for all t at once: t·c + the largest g(s) − s·c so far
    begun = taken + np.maximum.accumulate(delays - taken, axis=-1)
    return np.where(places > 0, begun - places, np.nan)


def _mean_true_lags(delays: Sequence[Floats], places: Sequence[Ints], cost: float) -> Floats:
    """Of each sentence; NaN if no word has a source word."""
    shape = len(delays), max(map(len, delays))
    g, from_where = np.zeros(shape), np.zeros(shape, dtype=np.int64)
    for row, (one, place) in enumerate(zip(delays, places, strict=True)):
        g[row, : len(one)], from_where[row, : len(place)] = one, place
    lags = true_lags(g, from_where, cost)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nansum(lags, axis=1) / (~np.isnan(lags)).sum(axis=1))


@dataclass(frozen=True)
class Judged:
    """What the metrics and the truth say of all systems on a corpus.

    Attributes:
        systems: their names, and whether they are adaptive.
        values: systems × measures: the true lags at `COSTS`, then `LATENCIES`.
        signs: measures × pairs: −1, 0 for a tie, or 1: what each says of b − a; NaN where it has no value.
        pairs: the two systems of each pair.
    """

    systems: Sequence[tuple[str, bool]]
    values: Floats
    signs: Floats
    pairs: npt.NDArray[np.int64]

    def mixed(self) -> npt.NDArray[np.bool_]:
        """Which pairs are of a fixed and an adaptive system."""
        adaptive = np.array([adaptive for _, adaptive in self.systems])
        return np.asarray(adaptive[self.pairs[:, 0]] != adaptive[self.pairs[:, 1]])

    def agreement(self, latency: str, cost: float, among: npt.NDArray[np.bool_] | None = None) -> float:
        """The share of pairs of which a metric says what the truth says, ties included."""
        said, true = self.signs[len(COSTS) + LATENCIES.index(latency)], self.signs[COSTS.index(cost)]
        agree = said == true
        return float(agree.mean() if among is None else agree[among].mean())

    def wrong(self, latency: str, cost: float) -> Iterator[tuple[str, str]]:
        """The pairs that a metric puts the other way round: who is earlier in truth comes first."""
        said, true = self.signs[len(COSTS) + LATENCIES.index(latency)], self.signs[COSTS.index(cost)]
        for pair in np.flatnonzero(said * true == -1):
            a, b = (self.systems[one][0] for one in self.pairs[pair].tolist())
            yield (a, b) if true[pair] > 0 else (b, a)


def judge(which: str, resamples: int = RESAMPLES) -> Judged:
    """All rules on the corpus "verb-final" or "Multi30k"."""
    corpus = {"verb-final": controlled, "Multi30k": multi30k}[which]()
    every = systems()
    columns = [_measured(corpus, system) for system in every]
    return _judged([(one.name, one.adaptive) for one in every], columns, resamples)


def judge_trained(kept: Sequence[Kept], resamples: int = RESAMPLES) -> Judged:
    """Trained systems on the verb-final corpus, each with its own translation and seed.

    A word counts if it is that of the reference at the same place; a listener needs time for the others too.
    """
    places = [np.array(places) for *_, places in clause_pairs(CLAUSES)["test"]]
    named, columns = [], []
    for one in kept:
        if one.right is None:
            raise ValueError(f"{one.setting.name}: which words are right was not kept")
        own = [_right(right, row) for right, row in zip(one.right, places, strict=True)]
        named.append((one.setting.name, one.setting.family != "wait-k"))
        columns.append(_columns(list(one.run.delays), own, one.run.source_length, one.run.reference_length))
    return _judged(named, columns, resamples)


def _right(right: Floats, places: Ints) -> Ints:
    """The places of the words that are right; 0 for the others."""
    padded = np.zeros(len(right), dtype=np.int64)
    padded[: len(places)] = places[: len(right)]
    return np.where(right > 0, padded, 0)


def _judged(named: Sequence[tuple[str, bool]], columns: Sequence[Floats], resamples: int) -> Judged:
    defined = np.stack([~np.isnan(column) for column in columns])
    rows = np.stack([np.nan_to_num(column) for column in columns])
    pairs = np.array([(a, b) for b in range(len(named)) for a in range(b)])
    values, signs = [], []
    for measure in range(rows.shape[2]):
        sums, known = on_grid(rows[:, :, measure].T), defined[:, :, measure].T.astype(np.float64)
        drawn = np.concatenate([_means(weights, sums, known) for weights in counts(len(sums), resamples)])
        values.append(_means(np.ones((1, len(sums))), sums, known)[0])
        signs.append(np.concatenate([_signs(drawn, some) for some in np.array_split(pairs, len(pairs) // 500 + 1)]))
    return Judged(named, np.stack(values, 1), np.stack(signs), pairs)


def _signs(drawn: Floats, pairs: Ints) -> Floats:
    """What the resamples say of each pair, b − a."""
    low, high = np.quantile(drawn[:, pairs[:, 1]] - drawn[:, pairs[:, 0]], [0.025, 0.975], axis=0)
    return np.where(np.isnan(low), np.nan, np.where(low > 0, 1.0, np.where(high < 0, -1.0, 0.0)))


def _means(weights: Floats, sums: Floats, known: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((weights @ sums) / (weights @ known))


def _measured(corpus: Corpus, system: System) -> Floats:
    """Sentences × measures: the true lags, and the metrics; NaN where there is none."""
    delays = [system.rule(size, places) for size, places in zip(corpus.sizes, corpus.places, strict=True)]
    return _columns(delays, corpus.places, corpus.sizes, [len(places) for places in corpus.places])


def signatures(corpus: Corpus, system: System) -> list[str]:
    """How the metrics were made."""
    delays = [system.rule(size, places) for size, places in zip(corpus.sizes, corpus.places, strict=True)]
    return [str(one.signature) for one in _scored(delays, corpus.sizes, [len(places) for places in corpus.places])]


def _scored(delays: Sequence[Floats], sizes: npt.ArrayLike, reference_lengths: npt.ArrayLike | None) -> list[Score]:
    """All metrics; for StreamDAL, the sentences are one recording."""
    lengths = np.asarray(sizes, dtype=np.float64)
    begins = np.cumsum(lengths) - lengths
    columns: dict[str, Any] = {"source_length": lengths, "reference_length": reference_lengths, "level": "word"}
    rows = [g.tolist() for g in delays]
    alone = Run.from_delays(rows, **columns)
    stream = Run.from_delays(rows, **columns, seg="given", offset=begins, recording_end=lengths.sum() - begins)
    of_sentences = [name for name in LATENCIES if name != "StreamDAL"]
    scores = {**_by_name(alone, of_sentences), **_by_name(stream, ["StreamDAL"])}
    return [scores[name] for name in LATENCIES]


def _by_name(run: Run, names: Sequence[str]) -> dict[str, Score]:
    return dict(zip(names, lagging.score(run, names), strict=True))


def _columns(
    delays: Sequence[Floats], places: Sequence[Ints], sizes: npt.ArrayLike, reference_lengths: npt.ArrayLike | None
) -> Floats:
    truth = [_mean_true_lags(delays, places, cost) for cost in COSTS]
    scores = _scored(delays, sizes, reference_lengths)
    return np.column_stack([*truth, *(score.segments for score in scores)])
