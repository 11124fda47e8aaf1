# SPDX-License-Identifier: Apache-2.0
"""Which letters of two texts belong together: an alignment with the fewest edits (Levenshtein).

The time of an alignment grows with the square of the length. So texts of more than `LONG` letters are divided first, at
passages of `PASSAGE` letters or more that both texts have, each text only once, in the same order; if such passages are
in different orders, as many of them are used as go together. Each is divided in its middle, and the parts are aligned.
So the edits are the fewest of each part; where passages were moved, the whole may need fewer. Shorter texts are never
divided, and neither are texts without such passages.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from lagging.data.ragged import Ints

__all__ = ["LONG", "PASSAGE", "equal_letters"]

LONG = 1 << 18
"""Texts of more letters are divided before they are aligned; this is about five hours of speech."""
PASSAGE = 32
"""The number of letters of a passage at which texts are divided."""
PART = 1000
"""The least number of letters of a part, but for the last."""
HINT = 1000
"""The number of edits that rapidfuzz first looks for; it goes on where there are more. The alignment is the same."""

MARKS = "\U0010fffe", "\U0010ffff"
"""No letters: they stand at the end of a part, which is then aligned as it is within the whole. rapidfuzz pairs the
equal ends of texts first, and would choose another of several alignments with the fewest edits."""


def equal_letters(a: str, b: str, long: int = LONG) -> tuple[Ints, Ints]:
    """The places of the letters of both texts that are aligned and equal.

    Args:
        a, b: the texts.
        long: texts of more letters are divided.

    Example:
        >>> equal_letters("morning", "mourning")
        (array([0, 1, 2, 3, 4, 5, 6]), array([0, 1, 3, 4, 5, 6, 7]))
    """
    from rapidfuzz.distance import Levenshtein

    blocks = []
    for i, j, k, m in _parts(a, b) if max(len(a), len(b)) > long else [(0, 0, len(a), len(b))]:
        ends = MARKS if k < len(a) and m < len(b) else ("", "")
        for op in Levenshtein.opcodes(a[i:k] + ends[0], b[j:m] + ends[1], score_hint=HINT):
            if op.tag == "equal":
                blocks.append((i + op.src_start, i + op.src_end, j + op.dest_start))
    first, last, to = np.array(blocks, dtype=np.int64).reshape(-1, 3).T
    sizes = last - first
    place = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.repeat(first, sizes) + place, np.repeat(to, sizes) + place


def _parts(a: str, b: str) -> Iterator[tuple[int, int, int, int]]:
    """The parts into which both texts are divided: where each begins in both, and ends."""
    i = j = 0
    for k, m in _passages(a, b):
        if min(k - i, m - j) >= PART:
            yield i, j, k, m
            i, j = k, m
    yield i, j, len(a), len(b)


def _passages(a: str, b: str) -> list[tuple[int, int]]:
    """The middle of each passage that both texts have only once, in both texts; both places increase."""
    (ours, our_places), (theirs, their_places) = map(_unique_passages, (a, b))
    _, mine, yours = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    order = np.argsort(our_places[mine])
    here, there = our_places[mine][order], their_places[yours][order]
    if not len(here):
        return []
    # passages that overlap are one, whose middle counts
    begins = np.flatnonzero(np.concatenate([[True], (np.diff(here) != 1) | (np.diff(there) != 1)]))
    ends = np.concatenate([begins[1:], [len(here)]]) - 1
    middle = (begins + ends) // 2
    pairs = zip((here[middle] + PASSAGE // 2).tolist(), (there[middle] + PASSAGE // 2).tolist(), strict=True)
    same = PASSAGE // 2
    return [(i, j) for i, j in _increasing(list(pairs)) if a[i - same : i + same] == b[j - same : j + same]]


def _unique_passages(text: str) -> tuple[Ints, Ints]:
    """The hashes of the passages that a text has only once, in order, and where each begins."""
    hashes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    width, factor = 1, np.uint64(0x9E3779B97F4A7C15)
    while width < PASSAGE:  # of twice as many letters, from the hashes of both halves
        hashes = (hashes[:-width] * factor + hashes[width:] + np.uint64(width)) * factor
        hashes ^= hashes >> np.uint64(29)
        width *= 2
    values, places, counts = np.unique(hashes, return_index=True, return_counts=True)
    once = counts == 1
    return values[once].view(np.int64), places[once]


def _increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most pairs, of those sorted by the first number, of which the second numbers increase too."""
    tails: list[int] = []  # the smallest last number of a chain of each length, and the pair that it is of
    owners: list[int] = []
    before: list[int] = []
    for at, (_, number) in enumerate(pairs):
        length = bisect_left(tails, number)
        before.append(owners[length - 1] if length else -1)
        if length == len(tails):
            tails.append(number)
            owners.append(at)
        else:
            tails[length], owners[length] = number, at
    chain, at = [], owners[-1] if owners else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]
