# SPDX-License-Identifier: Apache-2.0
"""Texts as integers: each distinct piece of text is tokenized once, and each distinct token has a number.

A tokenizer that treats every word by itself is given words, which recur; any other is given whole lines.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Sequence
from itertools import chain
from threading import Lock

import numpy as np

from lagging.data.ragged import Ints
from lagging.metrics.ngrams import Symbols

__all__ = ["Lexicon", "encode_characters"]

PIECES, CHARACTERS = 1 << 17, 1 << 23
"""A lexicon with more pieces, or more characters of them, is emptied before the next texts: it takes about 50 MB."""

KEPT = 1 << 16
"""So many references are kept as integers, so that several systems on one test set share them."""


class Lexicon(dict[str, int]):
    """Tokenizes texts and numbers their tokens; as a dictionary, piece of text → its number.

    Args:
        tokenize: the tokens of a piece of text.
        by_word: whether the tokens of a line are those of its words; a line that contains a line break is never split.

    Example:
        >>> lexicon = Lexicon(list)
        >>> hypotheses, references = lexicon.encode(("abc", ""), ("bca", "d"))
        >>> hypotheses.codes, references.codes, references.offsets
        (array([2, 0, 1], dtype=int32), array([0, 1, 2, 3], dtype=int32), array([0, 3, 4]))
    """

    def __init__(self, tokenize: Callable[[str], Sequence[str]], *, by_word: bool = False) -> None:
        self.tokenize = tokenize
        self.by_word = by_word
        self._lock = Lock()  # a lexicon is shared by all threads of a process
        self.clear()

    def clear(self) -> None:
        """Forget all texts."""
        super().clear()
        self.characters = 0
        self.numbers: dict[str, int] = {}
        self.codes, self.ends = array("i"), array("q", [0])
        self.kept: dict[tuple[str, ...], Symbols] = {}

    def __missing__(self, piece: str) -> int:
        self.codes.extend(self.numbers.setdefault(token, len(self.numbers)) for token in self.tokenize(piece))
        self.ends.append(len(self.codes))
        self.characters += len(piece)
        self[piece] = number = len(self)
        return number

    def encode(self, hypotheses: tuple[str, ...], references: tuple[str, ...]) -> tuple[Symbols, Symbols]:
        """The hypotheses and the references of some segments, as integers."""
        with self._lock:
            if len(self) > PIECES or self.characters > CHARACTERS:
                self.clear()
            known = self.kept.pop(references, None)
            self.kept[references] = known or self._encode(references)  # the last one used stands last
            while len(self.kept) > 1 and sum(map(len, self.kept)) > KEPT:
                del self.kept[next(iter(self.kept))]
            return self._encode(hypotheses), self.kept[references]

    def _pieces(self, line: str) -> list[str]:
        return line.split() if self.by_word and "\n" not in line else [line.rstrip()]

    def _encode(self, lines: tuple[str, ...]) -> Symbols:
        pieces = list(map(self._pieces, lines))
        numbers = np.fromiter(map(self.__getitem__, chain.from_iterable(pieces)), dtype=np.int64)
        ends, codes = np.array(self.ends, dtype=np.int64), np.array(self.codes, dtype=np.int32)
        starts, counts = ends[numbers], ends[numbers + 1] - ends[numbers]
        tokens = _offsets(counts)
        places = np.repeat(starts - tokens[:-1], counts) + np.arange(tokens[-1])
        return Symbols(codes[places], tokens[_offsets(np.fromiter(map(len, pieces), dtype=np.int64))])


def encode_characters(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[Symbols, Symbols]:
    """The characters of hypotheses and references as integers, without white space.

    Example:
        >>> hypotheses, references = encode_characters(["c b"], ["a", "bc"])
        >>> hypotheses.codes, references.codes, references.offsets
        (array([2, 1], dtype=int32), array([0, 1, 2], dtype=int32), array([0, 1, 3]))
    """
    lines = [*hypotheses, *references]
    points = np.frombuffer("".join(lines).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    distinct = np.zeros(sys.maxunicode + 1, dtype=bool)
    distinct[points] = True
    spaces = [point for point in np.flatnonzero(distinct).tolist() if chr(point).isspace()]
    distinct[spaces] = False
    kept = distinct[points]
    codes = (np.cumsum(distinct, dtype=np.int32) - 1)[points[kept]]
    ends = np.concatenate([[0], np.cumsum(kept)])[_offsets(np.fromiter(map(len, lines), dtype=np.int64))]
    both = Symbols(codes, ends)
    return both.part(0, len(hypotheses)), both.part(len(hypotheses), len(lines))


def _offsets(lengths: Ints) -> Ints:
    """Where each of some texts begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)])
