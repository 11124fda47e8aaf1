# SPDX-License-Identifier: Apache-2.0
"""Tokens as they are compared: without case and punctuation. What is written out is never changed."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Indel
from rapidfuzz.process import cdist

from lagging.longform.corridor import Corridor, Potential
from lagging.ragged import Floats, Ints

__all__ = ["Cells", "code", "equality", "fold", "punctuation", "resemblance", "worths"]

Cells = npt.NDArray[np.float32]
"""A number for each cell of a corridor, or of a table."""

MARKS = tuple(".!?…。！？｡؟۔।॥")
CLOSING = "\"'»”’›)]}」』）】"
"""The end of a sentence, and what may close after it."""

PAIR = 0.1
"""What any pair is worth, so that a word is sooner replaced by another than left out."""

CUT_SENTENCE, CUT_CAPITAL = 0.6, 0.4
"""What it is worth if hypothesis and reference agree in that a sentence ends, and that what follows has a capital.

As the square of a similarity, so that a word that is equal is worth 1; `bench/resegmentation.py` shows what they do."""


NEVER = -1e6
"""What a boundary within a word is worth."""


@lru_cache(maxsize=1 << 17)
def fold(token: str) -> str:
    """A token as it is compared: NFKC, without case, punctuation and symbols; of these alone, all of it.

    Example:
        >>> fold("„Über"), fold("ÜBER,"), fold("--")
        ('über', 'über', '--')
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", token).casefold())
    bare = "".join(letter for letter in folded if unicodedata.category(letter)[0] not in "PSZC")
    return bare or folded


def code(*texts: Sequence[str]) -> tuple[list[str], list[Ints]]:
    """The different tokens of several texts, and each text as their numbers.

    Example:
        >>> code(["a", "b", "a"], ["b", "c"])
        (['a', 'b', 'c'], [array([0, 1, 0]), array([1, 2])])
    """
    places: dict[str, int] = {}
    coded = [np.array([places.setdefault(token, len(places)) for token in text], dtype=np.int64) for text in texts]
    return list(places), coded


ROWS = 256
"""Reference tokens whose worth is worked out together."""

Table = Callable[[list[str], list[str]], npt.NDArray[np.float32]]
"""What each of some tokens is worth beside each of others."""


def worths(corridor: Corridor, types: list[str], reference: Ints, hypothesis: Ints, table: Table) -> Cells:
    """What each pair in a corridor is worth, by a table of tokens; of each block of rows, it is made once."""
    low, high, starts = corridor.low.tolist(), corridor.high.tolist(), corridor.starts.tolist()
    out = np.zeros(starts[-1], dtype=np.float32)
    names = np.array(types, dtype=object)
    for first in range(1, len(low), ROWS):
        last = min(first + ROWS, len(low))
        begin, end = max(low[first] - 1, 0), high[last - 1]
        if begin == end:
            continue
        ours, row = np.unique(reference[first - 1 : last - 1], return_inverse=True)
        theirs, column = np.unique(hypothesis[begin:end], return_inverse=True)
        known = table(names[ours].tolist(), names[theirs].tolist())
        for i in range(first, last):
            left = max(low[i], 1)
            cells = slice(starts[i] + left - low[i], starts[i + 1])
            out[cells] = known[row[i - first]][column[left - 1 - begin : high[i] - begin]]
    return out


def equality(ours: list[str], theirs: list[str]) -> Cells:
    """2 for equal tokens and 1 for others: so the best path has the fewest edits.

    Example:
        >>> equality(["a"], ["a", "b"])
        array([[2., 1.]], dtype=float32)
    """
    places = {token: place for place, token in enumerate(theirs)}
    table = np.ones((len(ours), len(theirs)), dtype=np.float32)
    same = [(row, places[token]) for row, token in enumerate(ours) if token in places]
    table[tuple(np.array(same, dtype=np.int64).reshape(-1, 2).T)] = 2.0
    return table


def resemblance(ours: list[str], theirs: list[str]) -> Cells:
    """The square of the similarity of two tokens, and a little more.

    The similarity is 2·(common letters in order) ÷ (letters of both), 1 for equal tokens. Squared, since between any
    two words it is about a third.

    Example:
        >>> resemblance(["gingen"], ["gehen", "gingen"]).round(3)
        array([[0.398, 1.1  ]], dtype=float32)
    """
    similar = cdist(ours, theirs, scorer=Indel.normalized_similarity, dtype=np.float32)
    worth: Cells = similar * similar + np.float32(PAIR)
    return worth


def punctuation(
    tokens: Sequence[str], references: Sequence[Sequence[str]], glued: npt.NDArray[np.bool_] | None = None
) -> Potential:
    """What sentences and capitals say of a boundary: whether hypothesis and reference agree there; within words, no."""
    ends, capital = np.zeros(len(tokens) + 1), np.zeros(len(tokens) + 1)
    ends[1:] = [CUT_SENTENCE if _ends(token) else 0.0 for token in tokens]
    capital[:-1] = [CUT_CAPITAL if _is_capital(token) else 0.0 for token in tokens]
    within = np.zeros(len(tokens) + 1)
    if glued is not None:
        within[:-1][glued] = NEVER
    lasts = _known(segment[-1] if segment else "" for segment in references)
    firsts = _known(segment[0] if segment else "" for segment in reversed(references))[::-1]
    full = [_ends(word) for word in lasts]
    high = [_is_capital(word) for word in firsts]

    def potential(k: int, columns: slice) -> Floats:
        sentence = ends[columns] if full[k] else -ends[columns]
        return sentence + (capital[columns] if high[k + 1] else -capital[columns]) + within[columns]

    return potential


def _known(words: Iterable[str]) -> list[str]:
    """Of segments without words, the word of the last before them that has any."""
    known: Iterator[str] = accumulate(words, lambda before, word: word or before)
    return list(known)


def _ends(token: str) -> bool:
    """Whether a sentence ends with it, be it in quotes or brackets."""
    return token.rstrip(CLOSING).endswith(MARKS)


def _is_capital(token: str) -> bool:
    """Whether the first letter is a capital."""
    return next((letter.isupper() for letter in token if letter.isalnum()), False)
