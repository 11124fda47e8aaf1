# SPDX-License-Identifier: Apache-2.0
"""Minimum word error rate as two other tools cut it, to reproduce their scores.

Both find a segmentation with the fewest edits, as `mwer` does, and of several the same one: seen from the end, a path
that leaves out reference tokens first, then hypothesis tokens, and pairs them last. Which one is taken moves StreamLAAL
of a real log between 2630 and 3283 ms. Words are compared with their punctuation: mweralign (1.4.1), which simulstream
uses, without the case of ASCII letters; RWTH's mwerSegmenter, which FBK's StreamLAAL uses, with case.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lagging.longform.corridor import Corridor, best, edit_path
from lagging.longform.stream import Stream
from lagging.longform.words import code, equality, worths
from lagging.ragged import Ints

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
    ours = [form(token) for segment in stream.references for token in segment]
    types, (reference, hypothesis) = code(ours, [form(token) for token in stream.tokens])
    end = stream.ends[-1:]
    corridor = Corridor.around(edit_path(reference.tolist(), hypothesis.tolist(), end), end)
    path = best(corridor, worths(corridor, types, reference, hypothesis, equality), gaps_first=True)
    return np.concatenate([[0], path.high[stream.ends[:-1]], [len(stream.tokens)]])
