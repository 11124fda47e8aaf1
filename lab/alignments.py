# SPDX-License-Identifier: Apache-2.0
"""Which source word a target word translates: IBM model 1, and a hidden Markov model, by expectation maximisation.

    python -m lab.alignments --data FOLDER     # Multi30k: aligns test 2016, and keeps places and lengths

Model 1 (Brown et al., 1993) says how likely a word translates another; the hidden Markov model (Vogel et al., 1996)
adds how far a translation jumps in the source. Both are trained in both directions, and a link counts if both have it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lab.data import TESTS, read_multi30k
from lagging.data.files import write_whole
from lagging.data.ragged import Floats, Ints

__all__ = ["align", "both", "read_places", "words"]

KEPT = Path(__file__).parent / "results" / "truth" / "multi30k.npz"
NOTHING = 0.2
"""How likely a target word translates no source word."""
JUMPS = 7
"""Jumps farther than that are as likely as that."""


def words(text: str) -> list[str]:
    """Words, and marks of punctuation, each by itself."""
    return re.findall(r"\w+|[^\w\s]", text)


@dataclass(frozen=True)
class _Table:
    """t(target word | source word) of the pairs that occur together; source word 0 is nothing."""

    keys: Ints
    values: Floats
    size: int

    def at(self, source: Ints, target: Ints) -> Floats:
        """Of pairs of words."""
        return self.values[np.searchsorted(self.keys, source * self.size + target)]


def _numbers(texts: Sequence[Sequence[str]]) -> tuple[list[Ints], int]:
    """Words as numbers from 1, and the largest number + 1."""
    known: dict[str, int] = {}
    rows = [np.array([known.setdefault(word, len(known) + 1) for word in text], dtype=np.int64) for text in texts]
    return rows, len(known) + 1


def _model_1(pairs: Sequence[tuple[Ints, Ints]], size: int, rounds: int) -> _Table:
    """IBM model 1; `size` is the largest number of a target word + 1."""
    source = [np.repeat(np.concatenate([[0], x]), len(y)) for x, y in pairs]
    target = [np.tile(y, len(x) + 1) for x, y in pairs]
    first = np.cumsum([0, *(len(y) for _, y in pairs)])
    row = np.concatenate(
        [np.tile(np.arange(a, b), len(x) + 1) for (x, _), a, b in zip(pairs, first, first[1:], strict=False)]
    )
    keys, at = np.unique(np.concatenate(source) * size + np.concatenate(target), return_inverse=True)
    t = np.full(len(keys), 1.0)
    words_of = keys // size
    for _ in range(rounds):
        share = t[at]
        share = share / np.bincount(row, share)[row]
        t = np.bincount(at, share, len(keys))
        t = t / np.bincount(words_of, t)[words_of]
    return _Table(keys, t, size)


def _groups(pairs: Sequence[tuple[Ints, Ints]]) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Pairs of the same lengths together: their rows, sources and targets."""
    by_lengths: dict[tuple[int, int], list[int]] = {}
    for n, (x, y) in enumerate(pairs):
        by_lengths.setdefault((len(x), len(y)), []).append(n)
    for rows in by_lengths.values():
        yield np.array(rows), np.stack([pairs[n][0] for n in rows]), np.stack([pairs[n][1] for n in rows])


def _emissions(table: _Table, x: Ints, y: Ints) -> Floats:
    """(B, T, 2S): of each source word, and of nothing after each source word."""
    word = table.at(x[:, None, :], y[:, :, None])
    nothing = np.broadcast_to(table.at(np.zeros_like(y), y)[:, :, None], word.shape)
    return np.asarray(np.maximum(np.concatenate([word, nothing], 2), 1e-12))


def _jump(size: int) -> Ints:
    """From where to where: the jump, cut to ±JUMPS, as an index."""
    place = np.arange(size)
    return np.asarray(np.clip(place[None, :] - place[:, None], -JUMPS, JUMPS) + JUMPS)


def _steps(jumps: Floats, size: int) -> Floats:
    """(2S, 2S): how likely each state follows each; state S + j is nothing, after source word j."""
    move = jumps[_jump(size)]
    move = (1 - NOTHING) * move / move.sum(1, keepdims=True)
    stay = NOTHING * np.eye(size)
    return np.asarray(np.block([[move, stay], [move, stay]]))


def _first(jumps: Floats, size: int) -> Floats:
    """(2S,): how likely each state is the first; as if the word before the source had been translated."""
    move = jumps[np.clip(np.arange(size) + 1, -JUMPS, JUMPS) + JUMPS]
    return np.concatenate([(1 - NOTHING) * move / move.sum(), np.full(size, NOTHING / size)])


def _expect(emissions: Floats, jumps: Floats) -> tuple[Floats, Floats]:
    """How likely each state is at each target word, (B, T, 2S); and how often each step is taken, (2S, 2S)."""
    size = emissions.shape[2] // 2
    steps, count = _steps(jumps, size), emissions.shape[1]
    forward, backward = np.empty_like(emissions), np.ones_like(emissions)
    scale = np.empty(emissions.shape[:2])
    for t in range(count):
        before = _first(jumps, size) if t == 0 else forward[:, t - 1] @ steps
        forward[:, t] = before * emissions[:, t]
        scale[:, t] = forward[:, t].sum(1)
        forward[:, t] /= scale[:, t, None]
    taken = np.zeros_like(steps)
    for t in range(count - 2, -1, -1):
        after = emissions[:, t + 1] * backward[:, t + 1] / scale[:, t + 1, None]
        taken += steps * (forward[:, t].T @ after)
        backward[:, t] = after @ steps.T
    return forward * backward, taken


def _markov(pairs: Sequence[tuple[Ints, Ints]], table: _Table, rounds: int) -> tuple[_Table, Floats]:
    """The hidden Markov model, begun with the table of model 1."""
    jumps = np.exp(-np.abs(np.arange(-JUMPS, JUMPS + 1) - 1.0))
    for _ in range(rounds):
        counts, moved = np.zeros(len(table.keys)), np.zeros(2 * JUMPS + 1)
        for _, x, y in _groups(pairs):
            size = x.shape[1]
            state, taken = _expect(_emissions(table, x, y), jumps)
            keys = np.searchsorted(table.keys, x[:, None, :] * table.size + y[:, :, None])
            np.add.at(counts, keys.ravel(), state[:, :, :size].ravel())
            np.add.at(counts, np.searchsorted(table.keys, y).ravel(), state[:, :, size:].sum(2).ravel())
            index = _jump(size)
            np.add.at(moved, index.ravel(), (taken[:size, :size] + taken[size:, :size]).ravel())
        words_of = table.keys // table.size
        table = _Table(table.keys, counts / np.maximum(np.bincount(words_of, counts)[words_of], 1e-12), table.size)
        jumps = (moved + 1) / (moved + 1).sum()
    return table, jumps


def _best(emissions: Floats, jumps: Floats) -> Ints:
    """The most likely states, (B, T) (Viterbi): places from 1, and 0 for nothing."""
    size, count = emissions.shape[2] // 2, emissions.shape[1]
    with np.errstate(divide="ignore"):
        steps, logs = np.log(_steps(jumps, size)), np.log(emissions)
        best = np.log(_first(jumps, size)) + logs[:, 0]
    came = []
    for t in range(1, count):
        ways = best[:, :, None] + steps
        came.append(ways.argmax(1))
        best = ways.max(1) + logs[:, t]
    states = [best.argmax(1)]
    for before in reversed(came):
        states.append(np.take_along_axis(before, states[-1][:, None], 1)[:, 0])
    path = np.stack(states[::-1], 1)
    return np.where(path < size, path + 1, 0)


def align(
    sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]], rounds: tuple[int, int] = (5, 5)
) -> list[Ints]:
    """Of each target word, the place of its source word, counted from 1; 0 for none. `rounds` of the two models."""
    (x, _), (y, size) = _numbers(sources), _numbers(targets)
    pairs = list(zip(x, y, strict=True))
    table, jumps = _markov(pairs, _model_1(pairs, size, rounds[0]), rounds[1])
    places: list[Ints] = [np.zeros(0, dtype=np.int64)] * len(pairs)
    for rows, source, target in _groups(pairs):
        for row, path in zip(rows.tolist(), _best(_emissions(table, source, target), jumps), strict=True):
            places[row] = path
    return places


def both(sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]]) -> list[Ints]:
    """The same, of the links that both directions have."""
    there, back = align(sources, targets), align(targets, sources)
    kept = []
    for forward, reverse in zip(there, back, strict=True):
        place = np.arange(1, len(forward) + 1)
        same = (forward > 0) & (reverse[np.maximum(forward, 1) - 1] == place)
        kept.append(np.where(same, forward, 0))
    return kept


def keep(data: Path, kept: Path = KEPT) -> None:
    """Align the training set and test 2016 together, and keep what there is of the test set, without the words."""
    corpus = read_multi30k(data)
    test = corpus.parts[TESTS[0]]
    pairs = [(words(source), words(target)) for source, target in (*test, *corpus.parts["train"])]
    pairs = [(source, target) for source, target in pairs if source and target]
    places = both(*zip(*pairs, strict=True))[: len(test)]
    kept.parent.mkdir(parents=True, exist_ok=True)
    with write_whole(kept, binary=True) as file:
        np.savez_compressed(
            file,
            places=np.concatenate(places).astype(np.int16),
            lengths=np.array([len(row) for row in places], dtype=np.int16),
            source_length=np.array([len(source) for source, _ in pairs[: len(test)]], dtype=np.int16),
        )


def read_places(kept: Path = KEPT) -> list[tuple[int, Ints]]:
    """Of each sentence, the number of its source words, and the place of each target word's source word; 0 for none."""
    with np.load(kept) as arrays:
        ends = np.cumsum(arrays["lengths"].astype(np.int64))
        rows = np.split(arrays["places"].astype(np.int64), ends[:-1])
        return list(zip(arrays["source_length"].tolist(), rows, strict=True))


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m lab.alignments", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder with Multi30k (see lab/README.md)")
    keep(parser.parse_args().data)


if __name__ == "__main__":
    main()
