# SPDX-License-Identifier: Apache-2.0
"""The decisions of SoftSegmenter as OmniSTEval makes them (0.1.10), in a corridor instead of the whole matrix.

Words are split into word and punctuation; a pair is worth the Jaccard index of the two *sets* of letters, and
punctuation never pairs with words. A token without a partner goes to the neighbour that it resembles more. The first
part of a word decides for all of it. Differences: words are split by a pattern instead of Moses, and tokens that
SoftSegmenter would drop, before the first pair, go to the first segment; so does all, where no segment has a reference.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import chain

import numpy as np
from rapidfuzz.distance import Indel
from rapidfuzz.process import cdist

from lagging.longform.corridor import Corridor, best, edit_path
from lagging.longform.stream import Stream
from lagging.longform.words import Cells, code, worths
from lagging.ragged import Ints

__all__ = ["omnisteval"]

PARTS = re.compile(
    r"(?<=\w)-(?=\w)|-{2,}|\d+(?:[.,]\d+)*|[^\W\d]\w*(?:\.\w+)+\.|\w+(?:\.\w+)*-?(?!\w)|\w+(?:\.\w+)*|\.{2,}|[^\w\s]"
)
"""As Moses does it: a hyphen within a word is a part of its own, dots within are not, nor the last one after others."""
MARKS = frozenset(".!?,;:-()。！？，；：—（）ー")
HYPHEN = "@-@"
NEVER = np.float32(-1e6)


def omnisteval(stream: Stream) -> Ints:
    """SoftSegmenter (Polák et al. 2025) as in OmniSTEval.

    Example:
        >>> words = "Wir gehen heim. Morgen kommt er".split()
        >>> omnisteval(Stream(words, ["Wir gingen heim.".split(), "Morgen kommt er".split()]))
        array([0, 3, 6])
    """
    ours = [[_parts(token) for token in segment] for segment in stream.references]
    theirs = [_parts(token) for token in stream.tokens]
    ends = np.cumsum([sum(map(len, segment)) for segment in ours], dtype=np.int64)
    reference = [part for segment in ours for word in segment for part in word]
    if not reference:
        return np.append(0, np.full(len(ends), len(stream.tokens)))
    types, (coded, hypothesis) = code(reference, list(chain.from_iterable(theirs)))
    path = edit_path(coded.tolist(), hypothesis.tolist(), ends)
    corridor = Corridor.around(path, ends[-1:])  # where segments end is of no account until the path is known
    path = best(corridor, worths(corridor, types, coded, hypothesis, _jaccard))
    partner = np.full(len(hypothesis), -1, dtype=np.int64)
    partner[path.pairs[:, 1]] = path.pairs[:, 0]
    for row in np.flatnonzero(path.high > path.low).tolist():
        alone = [j for j in range(path.low[row], path.high[row]) if partner[j] < 0]
        before, after = max(row - 1, 0), min(row, len(coded) - 1)
        late = False
        for j in alone:
            word, one, other = types[hypothesis[j]], types[coded[before]], types[coded[after]]
            late = late or row == 0 or (row < len(coded) and _like(word, other) > _like(word, one))
            partner[j] = after if late else before
    first = np.cumsum([0, *map(len, theirs)])[:-1]
    segment = np.searchsorted(ends, partner[first], side="right")
    return np.append(np.searchsorted(segment, np.arange(len(ends)), side="left"), len(stream.tokens))


def _parts(token: str) -> list[str]:
    """A word and its punctuation, without case."""
    folded = unicodedata.normalize("NFKC", token).lower()
    return [HYPHEN if part == "-" and folded != "-" else part for part in PARTS.findall(folded)] or [folded]


def _jaccard(ours: list[str], theirs: list[str]) -> Cells:
    """Common letters ÷ letters of both; of punctuation and a word, never.

    In order of the alphabet, the longest common subsequence of two sets is what they have in common.
    """
    a, b = ["".join(sorted(set(word))) for word in ours], ["".join(sorted(set(word))) for word in theirs]
    both = np.add.outer(list(map(len, a)), list(map(len, b))).astype(np.float32)
    apart = cdist(a, b, scorer=Indel.distance, dtype=np.int32).astype(np.float32)
    marks = np.not_equal.outer([word in MARKS for word in ours], [word in MARKS for word in theirs])
    worth: Cells = np.where(marks, NEVER, (both - apart) / (both + apart))
    return worth


def _like(one: str, other: str) -> float:
    a, b = set(one), set(other)
    return -1.0 if (one in MARKS) != (other in MARKS) else len(a & b) / len(a | b)
