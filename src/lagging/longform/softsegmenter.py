# SPDX-License-Identifier: Apache-2.0
"""The decisions of SoftSegmenter as OmniSTEval makes them (0.1.10).

Words are split into word and punctuation; a pair is worth the Jaccard index of the two *sets* of letters, and
punctuation never pairs with words. A token without a partner goes to the neighbour that it resembles more. The first
part of a word decides for all of it. Letters are equal or not.

Differences: words are split as Moses does, but without its lists of abbreviations and its rules for apostrophes in
English, French and Italian, since the language is not known here ("ca.", "3." and "a." are one token in its German).
Tokens that SoftSegmenter would drop, before the first pair, go to the first segment; so does all, where no segment has
a reference.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import chain

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Ints
from lagging.longform.corridor import edit_path
from lagging.longform.optimum import optimum
from lagging.longform.stream import Stream
from lagging.longform.words import WordPairs

__all__ = ["omnisteval"]

SPLITS = (
    (re.compile(r"[^\w\s.'`,-]|_"), r" \g<0> "),  # a symbol stands alone
    (re.compile(r"(?<=[^\W_])-(?=[^\W_])"), " @-@ "),  # so does a hyphen within a word
    (re.compile(r"\.{2,}"), r" \g<0> "),  # and several dots, together
    (re.compile(r"(?<=[^\d]),|,(?=[^\d])"), " , "),  # and a comma, unless a number goes on or ends with it
    (re.compile(r"'"), " ' "),
)
"""How Moses splits a word, in languages for which it has no rules of its own for apostrophes."""
MARKS = frozenset(".!?,;:-()。！？，；：—（）ー")
NEVER = -1e6

BATCH = 32
"""So many tokens without a partner are compared with their neighbours together."""


def omnisteval(stream: Stream) -> Ints:
    """SoftSegmenter (Polák et al. 2025) as in OmniSTEval.

    Example:
        >>> words = "Wir gehen heim. Morgen kommt er".split()
        >>> omnisteval(Stream(words, ["Wir gingen heim.".split(), "Morgen kommt er".split()]))
        array([0, 3, 6])
    """
    split, like = (_letter, _equal) if stream.letters else (_parts, _jaccard)
    parts = {token: split(token) for token in {*chain.from_iterable(stream.references), *stream.tokens}}
    ours = [[parts[token] for token in segment] for segment in stream.references]
    theirs = [parts[token] for token in stream.tokens]
    ends = np.cumsum([sum(map(len, segment)) for segment in ours], dtype=np.int64)
    reference = [part for segment in ours for word in segment for part in word]
    if not reference:
        return np.append(0, np.full(len(ends), len(stream.tokens)))
    pairs = WordPairs.of(reference, list(chain.from_iterable(theirs)), partial(_table, like=like))
    hypothesis = pairs.hypothesis
    start = edit_path(pairs.reference.tolist(), hypothesis.tolist(), ends[-1:])
    path = optimum(pairs, start, ends[-1:]).path  # where segments end is of no account until the path is known

    partner = np.full(len(hypothesis), -1, dtype=np.int64)
    partner[path.pairs[:, 1]] = path.pairs[:, 0]
    alone = np.flatnonzero(partner < 0)
    partner[alone] = _neighbours(pairs, alone, np.searchsorted(path.high, alone, side="right"))
    first = np.cumsum([0, *map(len, theirs)])[:-1]
    segment = np.searchsorted(ends, partner[first], side="right")
    return np.append(np.searchsorted(segment, np.arange(len(ends)), side="left"), len(stream.tokens))


def _neighbours(pairs: WordPairs, alone: Ints, rows: Ints) -> Ints:
    """The reference token that each hypothesis token without a partner goes to: the one before its row, or after it.

    A token goes to the one after it if it resembles that more, or if a token before it in the same row does.
    """
    if not len(alone):
        return alone
    before, after = np.maximum(rows - 1, 0), np.minimum(rows, len(pairs.reference) - 1)
    later = np.zeros(len(alone), dtype=bool)
    for begin in range(0, len(alone), BATCH):
        batch = slice(begin, begin + BATCH)
        words = [pairs.types[word] for word in pairs.hypothesis[alone[batch]].tolist()]
        near, place = np.unique(pairs.reference[np.stack([before[batch], after[batch]])], return_inverse=True)
        first, second = place.reshape(2, -1)
        scores, each = pairs.table(words, [pairs.types[word] for word in near.tolist()]), np.arange(len(words))
        later[batch] = scores[each, second] > scores[each, first]
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    order = np.arange(len(alone))
    switch = np.minimum.reduceat(np.where(later, order, len(order)), starts)
    partners: Ints = np.where(order >= np.repeat(switch, np.diff(starts, append=len(order))), after, before)
    return partners


@lru_cache(maxsize=1 << 17)
def _parts(token: str) -> list[str]:
    """A word and its punctuation, without case, as Moses splits it.

    Example:
        >>> _parts("E-Mails,"), _parts("U.S."), _parts("Ende."), _parts("so...")
        (['e', '@-@', 'mails', ','], ['u.s.'], ['ende', '.'], ['so', '...'])
    """
    text = unicodedata.normalize("NFKC", token).lower()
    for pattern, split in SPLITS:
        text = pattern.sub(split, text)
    parts = [part for word in text.split() for part in _final_dot(word)]
    return parts or [text]


def _final_dot(word: str) -> list[str]:
    """A dot at the end stands alone, unless the word has others, and letters."""
    stem = word.rstrip(".")
    if not stem or stem + "." != word or ("." in stem and any(map(str.isalpha, stem))):
        return [word]
    return [stem, "."]


def _letter(token: str) -> list[str]:
    """A letter without case."""
    return [unicodedata.normalize("NFKC", token).lower()]


Scores = npt.NDArray[np.float64]


def _jaccard(ours: list[str], theirs: list[str]) -> Scores:
    """Common letters ÷ letters of both.

    In order of the alphabet, the longest common subsequence of two sets is what they have in common.
    """
    from rapidfuzz.distance import Indel
    from rapidfuzz.process import cdist

    a, b = list(map(_alphabetic, ours)), list(map(_alphabetic, theirs))
    both = np.add.outer(list(map(len, a)), list(map(len, b)))
    apart = cdist(a, b, scorer=Indel.distance, dtype=np.int32)
    worth: Scores = (both - apart) / (both + apart)
    return worth


@lru_cache(maxsize=1 << 17)
def _alphabetic(word: str) -> str:
    """The different letters of a word in order of the alphabet."""
    return "".join(sorted(set(word)))


def _equal(ours: list[str], theirs: list[str]) -> Scores:
    """1 for equal letters, 0 for others."""
    equal: Scores = np.equal.outer(np.array(ours, dtype=object), np.array(theirs, dtype=object)).astype(np.float64)
    return equal


def _table(ours: list[str], theirs: list[str], like: Callable[[list[str], list[str]], Scores]) -> Scores:
    """How alike two texts are; punctuation and a word, never."""
    marks = np.not_equal.outer([word in MARKS for word in ours], [word in MARKS for word in theirs])
    worth: Scores = np.where(marks, NEVER, like(ours, theirs))
    return worth
