# SPDX-License-Identifier: Apache-2.0
"""N-grams that hypotheses share with their references, counted for many segments at once.

A token is an integer. An n-gram of the highest order, with its segment before it and the text that it is from behind
it, is one integer of 64 bits. After these are sorted, equal n-grams stand side by side, and so do those of every lower
order, which are their beginnings: one sort counts all orders. An n-gram that both texts have counts as often as in the
text that has it less often (Papineni et al. 2002).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Ints

__all__ = ["Symbols", "count_matches", "count_ngrams"]

Codes = npt.NDArray[np.int32]
Keys = npt.NDArray[np.uint64]

TOKENS_PER_BATCH = 1 << 16
"""About so many tokens are sorted at once: 512 KB, so that they stay in the cache."""

SEGMENTS_PER_BATCH = (1 << 12) - 1
"""At most so many segments are sorted at once, so that 12 of the 64 bits are enough for their numbers."""

PADS = 2
"""What follows the end of a hypothesis is 0, and what follows that of a reference is 1. So these never match."""


@dataclass(frozen=True)
class Symbols:
    """Texts as integers, end to end: from 0, equal for equal tokens.

    Attributes:
        codes: the tokens of all texts.
        offsets: where each text begins, and where the last one ends.
    """

    codes: Codes
    offsets: Ints

    @property
    def lengths(self) -> Ints:
        """The number of tokens of each text."""
        return np.diff(self.offsets)

    def part(self, start: int, stop: int) -> Symbols:
        """The texts from `start` to before `stop`."""
        offsets = self.offsets[start : stop + 1]
        return Symbols(self.codes[offsets[0] : offsets[-1]], offsets - offsets[0])


def count_ngrams(texts: Symbols, order: int) -> Ints:
    """The number of n-grams of each text, with a column for each n from 1 to `order`.

    Example:
        >>> count_ngrams(Symbols(np.array([7, 8, 7]), np.array([0, 3, 3])), 4)
        array([[3, 2, 1, 0],
               [0, 0, 0, 0]])
    """
    counts: Ints = np.maximum(texts.lengths[:, None] - np.arange(order), 0)
    return counts


def count_matches(hypotheses: Symbols, references: Symbols, order: int) -> Ints:
    """The number of n-grams that each hypothesis shares with its reference, with a column for each n up to `order`.

    Example:
        >>> hypothesis = Symbols(np.array([7, 7, 8, 9]), np.array([0, 4]))
        >>> count_matches(hypothesis, Symbols(np.array([7, 8, 9, 9]), np.array([0, 4])), 3)
        array([[3, 2, 1]])
    """
    matches = np.zeros((len(hypotheses.offsets) - 1, order), dtype=np.int64)
    for start, stop in _batches(hypotheses, references):
        matches[start:stop] = _matches(hypotheses.part(start, stop), references.part(start, stop), order)
    return matches


def _batches(hypotheses: Symbols, references: Symbols) -> Iterator[tuple[int, int]]:
    """The first and last segment of each batch; a segment that is larger than a batch is one by itself."""
    ends = hypotheses.offsets + references.offsets
    start, n = 0, len(ends) - 1
    while start < n:
        stop = int(np.searchsorted(ends, ends[start] + TOKENS_PER_BATCH, side="right")) - 1
        stop = min(max(stop, start + 1), start + SEGMENTS_PER_BATCH, n)
        yield start, stop
        start = stop


def _matches(hypotheses: Symbols, references: Symbols, order: int) -> Ints:
    n = len(hypotheses.offsets) - 1
    width = (63 - n.bit_length()) // order  # the bits of a token; the last bit says which text it is from
    codes = np.concatenate([hypotheses.codes, references.codes])
    lengths = np.concatenate([hypotheses.lengths, references.lengths])
    many: Ints = np.empty(0, dtype=np.int64)
    if len(codes) and codes.max() + PADS >= 1 << width:
        codes, distinct = _renumber(codes, lengths)
        many = np.flatnonzero(distinct + PADS > 1 << width)
        codes = np.minimum(codes, (1 << width) - 1 - PADS)  # those of `many` must not reach into the segment's bits
    keys = _sorted_keys(codes, lengths, order, width)
    from_reference = np.zeros(len(keys) + 1, dtype=np.int64)
    np.cumsum(keys & np.uint64(1), out=from_reference[1:])
    differ = keys[1:] ^ keys[:-1]
    ends = np.concatenate([[0], np.cumsum(lengths[:n] + lengths[n:] + 2 * (order - 1))])
    matches = np.empty((n, order), dtype=np.int64)
    for column in range(order):
        # where another n-gram begins: the first bit that differs is one of its own
        begins = np.flatnonzero(differ >= np.uint64(1 << (1 + width * (order - 1 - column))))
        bounds = np.concatenate([[0], begins + 1, [len(keys)]])
        theirs = np.diff(from_reference[bounds])
        shared = np.zeros(len(bounds), dtype=np.int64)
        np.cumsum(np.minimum(theirs, np.diff(bounds) - theirs), out=shared[1:])
        matches[:, column] = np.diff(shared[np.searchsorted(bounds, ends)])
    for row in many.tolist():
        matches[row] = _count_one(hypotheses.part(row, row + 1), references.part(row, row + 1), order)
    return matches


def _sorted_keys(codes: Codes, lengths: Ints, order: int, width: int) -> Keys:
    """The n-gram that begins at each token, of the highest order, as an integer: segment, tokens, and which text."""
    n, pads = len(lengths) // 2, order - 1
    segments = np.tile(np.arange(n, dtype=np.uint64), 2)
    padded = lengths + pads
    is_reference = np.repeat(np.array([0, 1], dtype=np.uint64), [padded[:n].sum(), padded[n:].sum()])
    tokens = is_reference.copy()
    tokens[np.arange(len(codes)) + np.repeat(pads * np.arange(2 * n), lengths)] = codes + PADS
    keys = np.repeat(segments << np.uint64(width * order), padded)
    for place in range(order):
        keys[: len(keys) - place] |= tokens[place:] << np.uint64(width * (pads - place))
    keys = keys << np.uint64(1) | is_reference
    keys.sort()
    return keys


def _renumber(codes: Codes, lengths: Ints) -> tuple[Codes, Ints]:
    """Number the tokens of each segment from 0, as few bits as possible; and count the distinct ones of each."""
    n, bits = len(lengths) // 2, np.uint64(len(codes).bit_length())
    segments = np.repeat(np.tile(np.arange(n, dtype=np.uint64), 2), lengths)
    keys = (segments << np.uint64(32) | codes.astype(np.uint64)) << bits | np.arange(len(codes), dtype=np.uint64)
    keys.sort()
    places = (keys & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
    keys >>= bits
    rank = np.zeros(len(codes) + 1, dtype=np.int64)  # the number of distinct tokens, of all segments, up to each place
    rank[1] = 1
    np.cumsum(keys[1:] != keys[:-1], out=rank[2:])
    rank[2:] += 1
    counts = lengths[:n] + lengths[n:]
    before = rank[np.concatenate([[0], np.cumsum(counts)])]
    numbers = np.empty(len(codes), dtype=np.int32)
    numbers[places] = rank[1:] - 1 - np.repeat(before[:-1], counts)
    return numbers, np.diff(before)


def _count_one(hypothesis: Symbols, reference: Symbols, order: int) -> list[int]:
    """The matches of one segment with more distinct tokens than fit into a key."""

    def ngrams(text: Symbols, n: int) -> Counter[tuple[int, ...]]:
        codes: list[int] = text.codes.tolist()
        return Counter(zip(*(codes[place:] for place in range(n)), strict=False))

    return [(ngrams(hypothesis, n) & ngrams(reference, n)).total() for n in range(1, order + 1)]
