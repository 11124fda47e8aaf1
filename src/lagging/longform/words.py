# SPDX-License-Identifier: Apache-2.0
"""Tokens as they are compared: without case and punctuation. What is written out is never changed."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Floats, Ints
from lagging.longform.corridor import block_most

__all__ = ["Cells", "Punctuation", "WordPairs", "equality", "fold", "resemblance"]

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


Table = Callable[[list[str], list[str]], Any]
"""What each of some tokens is worth beside each of others."""

BLOCK, BLOCKS, CEILINGS = 16, 1536, 1 << 24
"""Columns of a block: at least so many, and more where there would be more blocks, or ceilings, than these."""

CELLS = 1 << 21
"""How many cells of a table are worked out together."""


@dataclass(frozen=True, eq=False)
class WordPairs:
    """What pairs of a reference token and a hypothesis token are worth, by a table of tokens.

    Attributes:
        types: the different tokens.
        reference, hypothesis: the two texts, as numbers of types.
        table: what tokens are worth beside each other.

    Example:
        >>> pairs = WordPairs.of(["a", "b"], ["b", "a", "c"], equality)
        >>> pairs.rows(1, [0, 1], [3, 3])
        [array([1., 2., 1.]), array([2., 1., 1.])]
    """

    types: list[str]
    reference: Ints
    hypothesis: Ints
    table: Table

    @classmethod
    def of(cls, reference: Sequence[str], hypothesis: Sequence[str], table: Table) -> WordPairs:
        """The pairs of two texts."""
        places: dict[str, int] = {}
        ours, theirs = (
            np.array([places.setdefault(token, len(places)) for token in text], dtype=np.int64)
            for text in (reference, hypothesis)
        )
        return cls(list(places), ours, theirs, table)

    @cached_property
    def _names(self) -> npt.NDArray[np.object_]:
        return np.array(self.types, dtype=object)

    @cached_property
    def _kinds(self) -> tuple[Ints, Ints]:
        ours, kind = np.unique(self.reference, return_inverse=True)
        return ours, kind

    @property
    def width(self) -> int:
        """How many columns make a block, outside of a corridor."""
        columns = len(self.hypothesis)
        return max(BLOCK, columns // BLOCKS, -(-len(self._kinds[0]) * columns // CEILINGS))

    def rows(self, first: int, low: Sequence[int], high: Sequence[int]) -> list[Any]:
        """Of row `first` and those after it, the worth of the pairs in the columns from max(low, 1) to high."""
        begin, end = (max(low[0] - 1, 0), high[-1]) if low else (0, 0)
        theirs, column = np.unique(self.hypothesis[begin:end], return_inverse=True)
        if not len(theirs):
            return [np.zeros(0)] * len(low)
        ours, row = np.unique(self.reference[first - 1 : first - 1 + len(low)], return_inverse=True)
        known = self.table(self._names[ours].tolist(), self._names[theirs].tolist()).astype(np.float64)
        worths: list[Any] = []
        for (left, right), group in groupby(zip(low, high, strict=True)):
            kinds = row[len(worths) : len(worths) + sum(1 for _ in group)]
            worths += list(known[kinds].take(column[max(left - 1, 0) - begin : right - begin], axis=1))
        return worths

    @cached_property
    def ceilings(self) -> tuple[Any, Ints]:
        """The largest worth in each block of columns, but at least 0, for every kind of row; and each row's kind."""
        (ours, kind), width = self._kinds, self.width
        theirs, column = np.unique(self.hypothesis, return_inverse=True)
        blocks = len(self.hypothesis) // width + 1
        ceilings = np.zeros((len(ours), blocks), dtype=np.float32)
        if not len(theirs):
            return ceilings, kind
        # column 0 stands before the first token; after the last one, tokens are repeated, which changes no maximum
        places = np.clip(np.arange(blocks * width) - 1, 0, len(column) - 1).reshape(blocks, width).T.ravel()
        names = self._names[theirs].tolist()
        step = max(1, CELLS // max(len(places), len(names)))
        for begin in range(0, len(ours), step):
            known = self.table(self._names[ours[begin : begin + step]].tolist(), names)
            most = known.take(column[places], axis=1).reshape(-1, width, blocks).max(axis=1)
            ceilings[begin : begin + step] = np.maximum(most, 0.0)
            if most.dtype != np.float32:  # rounded up: a ceiling is never too low
                ceilings[begin : begin + step] = np.nextafter(ceilings[begin : begin + step], np.float32(np.inf))
        return ceilings, kind


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
    from rapidfuzz.distance import Indel
    from rapidfuzz.process import cdist

    similar = cdist(ours, theirs, scorer=Indel.normalized_similarity, dtype=np.float32)
    worth: Cells = similar * similar + np.float32(PAIR)
    return worth


class Punctuation:
    """What sentences and capitals say of a boundary: whether hypothesis and reference agree there; within words, no."""

    def __init__(
        self,
        tokens: Sequence[str],
        references: Sequence[Sequence[str]],
        glued: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        sentence, capital, within = np.zeros((3, len(tokens) + 1))
        sentence[1:] = [CUT_SENTENCE if _ends(token) else 0.0 for token in tokens]
        capital[:-1] = [CUT_CAPITAL if _is_capital(token) else 0.0 for token in tokens]
        if glued is not None:
            within[:-1][glued] = NEVER
        # by whether the reference ends a sentence there, and begins with a capital after it
        self._worth = {
            (full, high): (sentence if full else -sentence) + (capital if high else -capital) + within
            for full in (False, True)
            for high in (False, True)
        }
        self._blocks: dict[tuple[bool, bool, int], Floats] = {}
        lasts = _known(segment[-1] if segment else "" for segment in references)
        firsts = _known(segment[0] if segment else "" for segment in reversed(references))[::-1]
        self.full = [_ends(word) for word in lasts]
        self.high = [_is_capital(word) for word in firsts]

    def at(self, k: int, columns: slice) -> Floats:
        """What the end of segment k earns at each column of a slice."""
        return self._worth[self.full[k], self.high[k + 1]][columns]

    def most(self, k: int, width: int) -> Floats:
        """The largest of that in each block of columns."""
        key = self.full[k], self.high[k + 1], width
        if key not in self._blocks:
            self._blocks[key] = block_most(self._worth[key[:2]], width)
        return self._blocks[key]


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
