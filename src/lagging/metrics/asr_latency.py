# SPDX-License-Identifier: Apache-2.0
"""Which words ufal/asr_latency compares, and how often it counts each, so that its numbers can be repeated.

It aligns letters with the fewest edits, a space after every word, the last included. Of several such alignments it
takes one that is followed back from the end: pairing letters goes on as long as it can, then skipping them does. Then
it cuts: after every space of the source, and after every space of the output that is paired with nothing. The source
letters between two cuts are compared with the output letters there, if there are both. So a source word may count more
than once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lagging.data.edits import optimal_steps
from lagging.data.ragged import Ints
from lagging.errors import MetricError

__all__ = ["compared_words"]

CELLS = 1 << 28
"""Up to so many pairs of letters are looked at, in half a byte each."""

ORDER = {"pair": ("pair", "source", "output"), "source": ("source", "output", "pair")}
ORDER["output"] = ("output", "source", "pair")
"""After a step, which steps back are tried, in this order: pair two letters, skip one of the source, of the output."""


def compared_words(source: Sequence[str], output: Sequence[str]) -> Ints:
    """Pairs of a source word and an output word whose times are compared: shape (pairs, 2).

    Raises:
        MetricError: the texts are too long.

    Example:
        >>> compared_words(["I", "am"], ["I", "am", "very"]).tolist()
        [[0, 0], [1, 1], [1, 2]]
    """
    ours, theirs = ("".join(f"{word} " for word in words) for words in (source, output))
    if len(ours) * len(theirs) > CELLS:
        raise MetricError(
            f"{len(ours)} and {len(theirs)} letters are too many for what ufal/asr_latency does\n"
            "  fix: ask for WordLag, which has no such limit."
        )
    word_of = [np.repeat(np.arange(len(words)), [len(word) + 1 for word in words]) for words in (source, output)]
    pairs: list[tuple[int, int]] = []
    source_letters, output_letters = "", ""
    at = [0, 0]  # the last letter of each since the last cut
    for i, j in reversed(list(_path(ours, theirs))):
        source_letters, at[0] = (source_letters, at[0]) if i is None else (source_letters + ours[i], i)
        output_letters, at[1] = (output_letters, at[1]) if j is None else (output_letters + theirs[j], j)
        ends_source = i is not None and ours[i] == " "
        ends_output = i is None and j is not None and theirs[j] == " "
        if (ends_source and output_letters not in ("", " ")) or (ends_output and source_letters):
            pairs.append((int(word_of[0][at[0]]), int(word_of[1][at[1]])))
            source_letters = ""
        source_letters = "" if ends_source else source_letters
        output_letters = "" if ends_source or ends_output else output_letters
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _path(ours: str, theirs: str) -> Iterator[tuple[int | None, int | None]]:
    """The letters that are paired, or None for the other where one is skipped, from the end back."""
    output, source, unpaired = optimal_steps([ord(c) for c in ours], [ord(c) for c in theirs])
    i, j, last = len(ours), len(theirs), "pair"
    while i and j:
        bit = 1 << (j - 1)
        best = {
            "pair": not unpaired[i - 1] & bit,
            "source": bool(source[i - 1] & bit),
            "output": bool(output[i - 1] & bit),
        }
        last = next(step for step in ORDER[last] if best[step])
        i, j = i - (last != "output"), j - (last != "source")
        yield None if last == "output" else i, None if last == "source" else j
    yield from ((k, None) for k in range(i - 1, -1, -1))
    yield from ((None, k) for k in range(j - 1, -1, -1))
