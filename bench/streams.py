# SPDX-License-Identifier: Apache-2.0
"""Streams whose true segments are known: real ones, end to end, with times that help, mislead, or say nothing."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SHORT = Path("omnisteval", "examples", "short_form_degenerate_policy_example", "instances.log")
READ_WRITE = Path("rw_streams")
GAP, OPENING = 700.0, (5000.0, 17500.0)
"""Mean pause between two segments, and when the first begins, in ms; as in MuST-C's tst-COMMON."""


@dataclass(frozen=True, eq=False)
class Talk:
    """A recording: tokens, when they were written, and its segments; `truth` is where each begins, and the end."""

    name: str
    tokens: list[str]
    times: Floats
    truth: Ints
    offset: Floats
    duration: Floats
    references: list[str]

    @property
    def segment(self) -> Ints:
        """The true segment of each token."""
        return np.repeat(np.arange(len(self.offset)), np.diff(self.truth))


@dataclass(frozen=True, eq=False)
class Case:
    """Talks, and what their tokens and times are."""

    name: str
    talks: list[Talk]
    unit: str = "ms"
    level: str = "word"
    language: str = "de"

    def question(self) -> dict[str, Any]:
        """What an aligner may know: all but the truth; for JSON."""
        talks = [
            {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(talk).items() if k != "truth"}
            for talk in self.talks
        ]
        return {**asdict(replace(self, talks=[])), "talks": talks}


# ---- short segments of a real system ----------------------------------------------------------------------------


def short_form(data: Path) -> list[Talk]:
    """The talks of the log of short segments; a segment's words come when they did, after its beginning."""
    recordings: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for line in (data / SHORT).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        name, place = re.fullmatch(r"(.*)_(\d+)\.wav", row["source"][0].rsplit("/", 1)[-1]).groups()  # type: ignore[union-attr]
        recordings.setdefault(name, []).append((int(place), row))
    dice = np.random.default_rng(0)
    return [
        _joined(name, [row for _, row in sorted(rows, key=lambda r: r[0])], dice) for name, rows in recordings.items()
    ]


def _joined(name: str, rows: list[dict[str, Any]], dice: np.random.Generator) -> Talk:
    words = [[word for word in row["prediction"].split() if word != "</s>"] for row in rows]
    duration = np.array([row["source_length"] for row in rows])
    pauses = np.append(dice.uniform(*OPENING), dice.exponential(GAP, len(rows) - 1))
    offset = np.round(np.cumsum(pauses) + np.cumsum(duration) - duration, 3)
    times = [begin + np.array(row["delays"][: len(w)]) for begin, row, w in zip(offset, rows, words, strict=True)]
    return Talk(
        name,
        [word for segment in words for word in segment],
        np.concatenate(times),
        np.cumsum([0, *map(len, words)]),
        offset,
        duration,
        [row["reference"].strip() for row in rows],
    )


# ---- times ------------------------------------------------------------------------------------------------------

Times = Callable[[Talk, np.random.Generator], Floats]


def _jittered(talk: Talk, dice: np.random.Generator, mean: float) -> Floats:
    return np.maximum.accumulate(talk.times + 1000 + dice.exponential(mean, len(talk.times)))


def _chunked(times: Floats) -> Floats:
    return np.ceil(times / 2000) * 2000


def _wandering(talk: Talk, dice: np.random.Generator) -> Floats:
    """Words evenly over their segment, so that no pause betrays its end; the lag changes within a few words."""
    place = np.arange(len(talk.tokens)) - talk.truth[talk.segment]
    even = talk.offset[talk.segment] + talk.duration[talk.segment] * (place + 1) / np.diff(talk.truth)[talk.segment]
    steps = dice.normal(0, 1000 * np.sqrt(1 - 0.9**2), len(even))
    walk = np.zeros(len(even))
    for i in range(1, len(even)):
        walk[i] = 0.9 * walk[i - 1] + steps[i]
    return np.maximum.accumulate(even + np.maximum(2000 + walk, 0))


def _shuffled(talk: Talk, dice: np.random.Generator) -> Floats:
    """Lags behind a steady reading of the talk, in any order."""
    steady = np.interp(np.arange(len(talk.tokens)), talk.truth[:-1], talk.offset)
    return np.maximum(np.maximum.accumulate(dice.permutation(talk.times - steady) + steady), 0)


CONDITIONS: dict[str, Times] = {
    "lag 0 s": lambda talk, dice: talk.times,
    "lag 1 s": lambda talk, dice: talk.times + 1000,
    "lag 2 s": lambda talk, dice: talk.times + 2000,
    "lag 4 s": lambda talk, dice: talk.times + 4000,
    "lag grows by 2 % of time": lambda talk, dice: talk.times * 1.02,
    "written every 2 s": lambda talk, dice: _chunked(talk.times + 1000),
    "jitter 1 s": lambda talk, dice: _jittered(talk, dice, 1000),
    "jitter 3 s, every 2 s": lambda talk, dice: _chunked(_jittered(talk, dice, 3000)),
    "even words, lag 2 ± 1 s": _wandering,
    "shuffled lags": _shuffled,
    "random times": lambda talk, dice: np.sort(dice.uniform(talk.offset[0], talk.times[-1], len(talk.times))),
}
"""When words are written, in ms."""


def timed(name: str, talks: list[Talk], condition: str, **more: str) -> Case:
    """A case: talks whose words are written on a condition."""
    times = CONDITIONS[condition]
    moved = [replace(t, times=np.round(times(t, np.random.default_rng(seed)), 3)) for seed, t in enumerate(talks)]
    return Case(name, moved, **more)


# ---- other texts ------------------------------------------------------------------------------------------------


def bare(talk: Talk) -> Talk:
    """In lower case and without punctuation, as recognised speech is."""
    kept = np.array([bool(_bare(token)) for token in talk.tokens])
    before = np.append(0, np.cumsum(kept))
    tokens = [_bare(token) for token in talk.tokens if _bare(token)]
    references = [" ".join(filter(None, map(_bare, text.split()))) for text in talk.references]
    return replace(talk, tokens=tokens, times=talk.times[kept], truth=before[talk.truth], references=references)


def _bare(word: str) -> str:
    return "".join(letter for letter in word.lower() if unicodedata.category(letter)[0] not in "PS")


def characters(talk: Talk) -> Talk:
    """Each letter is a token, without spaces."""
    lengths = np.array([len(word) for word in talk.tokens])
    before = np.append(0, np.cumsum(lengths))
    return replace(
        talk,
        tokens=list("".join(talk.tokens)),
        times=np.repeat(talk.times, lengths),
        truth=before[talk.truth],
        references=["".join(text.split()) for text in talk.references],
    )


def read_write(data: Path, k: int, sentences: int = 80) -> list[Talk]:
    """A wait-k stream, German to English: tokenised, in source words, in pieces of so many sentences.

    The system cut its source elsewhere than the reference does; where both do, it is known where its output belongs.
    References between two such places are one.
    """
    folder = data / READ_WRITE

    def lines(name: str) -> list[list[str]]:
        return [line.split() for line in (folder / name).read_text(encoding="utf-8").splitlines()]

    source, shown = lines("norm.iwslt17.dev2010.de"), lines("segmented.norm.iwslt17.dev2010.de")
    written = lines(f"REAL/{k}.orig_h")
    references = [" ".join(line) for line in lines("iwslt17.dev2010.prepro.en")]
    steps = np.array((folder / f"REAL/{k}.RW").read_text(encoding="utf-8").split())
    times = np.cumsum(steps == "R")[steps == "W"].astype(np.float64)
    ours, theirs = (np.cumsum([0, *map(len, text)]) for text in (source, shown))
    words, tokens = np.cumsum([0, *map(len, written)]), [word for line in written for word in line]
    both = np.intersect1d(ours, theirs)
    sentence, cut = np.searchsorted(ours, both), words[np.searchsorted(theirs, both)]
    talks = []
    for a in range(0, len(both) - 1, sentences):
        b = min(a + sentences, len(both) - 1)
        texts = [" ".join(references[i:j]) for i, j in zip(sentence[a:b], sentence[a + 1 : b + 1], strict=True)]
        begin, end = cut[a], cut[b]
        offset = (both[a:b] - both[a]).astype(np.float64)
        duration = np.diff(both[a : b + 1]).astype(np.float64)
        mine = times[begin:end] - both[a]
        talks.append(
            Talk(f"part {a // sentences}", tokens[begin:end], mine, cut[a : b + 1] - begin, offset, duration, texts)
        )
    return talks


# ---- made up ----------------------------------------------------------------------------------------------------


def synthetic(words: int) -> Case:
    """One recording: segments of 20 words, of which 20 % are others in the hypothesis, 5 % missing, and 5 % more."""
    dice = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    names = ["".join(dice.choice(letters, dice.integers(2, 10))) for _ in range(8000)]
    reference = dice.zipf(1.3, words) % len(names)
    fate, other, more = dice.random(words), dice.integers(len(names), size=(words, 2)), dice.random(words) < 0.05
    spoken = np.where(fate < 0.2, other[:, 0], reference)
    pairs = np.stack([spoken, other[:, 1]], axis=1)
    kept = np.stack([(fate < 0.2) | (fate >= 0.25), more], axis=1)
    times = np.repeat(np.arange(words) * 400.0 + 2000.0, 2)[kept.ravel()]
    starts = np.arange(0, words, 20)
    texts = [" ".join(names[i] for i in reference[a : a + 20]) for a in starts]
    truth = np.append(0, np.cumsum(kept.sum(axis=1)))[np.append(starts, words)]
    offset = np.append(starts, words).astype(np.float64) * 400.0
    tokens = [names[i] for i in pairs[kept]]
    return Case(f"{words:,} words", [Talk("synthetic", tokens, times, truth, offset[:-1], np.diff(offset), texts)])
