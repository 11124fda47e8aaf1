# SPDX-License-Identifier: Apache-2.0
"""Minimum word error rate as two other tools cut it, to reproduce their scores.

Both find a segmentation with the fewest edits, as `mwer` does, and of several the same one: seen from the end, a path
that leaves out reference tokens first, then hypothesis tokens, and pairs them last. Which one is taken moves StreamLAAL
of a real log between 2630 and 3283 ms. Neither leaves the first segment empty. Words are compared with their
punctuation, and end at ASCII white space alone: what a no-break space joins is one word. mweralign (1.4.1), which
simulstream uses, compares without the case of ASCII letters; RWTH's mwerSegmenter, which FBK's StreamLAAL uses, with
case. Differences: where the first reference is empty, mweralign gives it a word all the same, unless the next one
begins with that word; mwerSegmenter takes no empty reference at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from lagging.data.ragged import Floats, Ints
from lagging.longform.corridor import block_most, edit_path
from lagging.longform.edits import relaxed_edits
from lagging.longform.optimum import optimum
from lagging.longform.stream import Stream
from lagging.longform.words import NEVER, WordPairs, equality

__all__ = ["mweralign", "mwersegmenter"]


def mweralign(stream: Stream) -> Ints:
    """As mweralign 1.4.1 without a tokenizer (Post & Hoang 2025).

    Example:
        >>> mweralign(Stream("so it goes . and then".split(), ["It goes .".split(), "and now".split()]))
        array([0, 4, 6])
    """
    return _cut(stream, lambda token: "".join(letter.lower() if letter.isascii() else letter for letter in token))


def mwersegmenter(stream: Stream) -> Ints:
    """As RWTH's mwerSegmenter (Matusov et al. 2005).

    Example:
        >>> mwersegmenter(Stream("so it goes . and then".split(), ["it goes .".split(), "and now".split()]))
        array([0, 4, 6])
    """
    return _cut(stream, str)


def _cut(stream: Stream, form: Callable[[str], str]) -> Ints:
    tokens, references = _words(stream)
    ends = np.cumsum([len(segment) for segment in references], dtype=np.int64)
    reference = [form(token) for segment in references for token in segment]
    pairs = WordPairs.of(reference, [form(token) for token in tokens], equality)
    first = [ends[0], ends[-1]] if len(tokens) and 0 < ends[0] < ends[-1] else ends[-1:]
    start = edit_path(pairs.reference.tolist(), pairs.hypothesis.tolist(), ends[-1:])
    boundary = np.array(first)
    potential = _NotFirst(len(tokens))
    relaxed = relaxed_edits(pairs, start, boundary, potential)
    path = optimum(pairs, start, boundary, potential, gaps_first=True, relaxed=relaxed).path
    cuts = np.concatenate([[0], path.high[ends[:-1]], [len(tokens)]])
    if stream.texts is None:
        return cuts
    units: Ints = np.cumsum([0, *(len(token.split()) for token in tokens)])[cuts]
    return units


def _words(stream: Stream) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """The words of the hypothesis and of each reference, as these tools split them."""
    if stream.texts is None:
        return stream.tokens, stream.references
    text, references = stream.texts
    return ASCII_WORD.findall(text), [ASCII_WORD.findall(reference) for reference in references]


ASCII_WORD = re.compile(r"[^ \t\n\v\f\r]+")


class _NotFirst:
    """The potential that keeps the end of the first segment from the first column."""

    def __init__(self, columns: int) -> None:
        self.values = np.zeros(columns + 1)
        self.values[0] = NEVER

    def at(self, k: int, columns: slice) -> Floats:
        """What a boundary earns at each column of a slice."""
        return self.values[columns]

    def most(self, k: int, width: int) -> Floats:
        """No less than that in each block of columns."""
        return block_most(self.values, width)
