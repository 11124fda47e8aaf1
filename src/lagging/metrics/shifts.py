# SPDX-License-Identifier: Apache-2.0
"""The edits of TER: sacreBLEU searches the shifts, and what takes the time, its edit distance, is computed here.

sacreBLEU computes the distance of every shifted hypothesis in Python, within a band around the diagonal. rapidfuzz
computes the distance without a band. The two are equal, and so are their paths, where no path with the fewest edits
leaves the band; elsewhere sacreBLEU's is used. Words are characters here: rapidfuzz is fastest on strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from lagging.data.edits import optimal_steps

if TYPE_CHECKING:
    from sacrebleu.metrics.lib_ter import BeamEditDistance

__all__ = ["count_edits"]

WITHIN_BAND = 46
"""Of texts of m and n words with d edits between them, a path with the fewest edits is at most (|m − n| + d) / 2 words
away from the diagonal: |m − n| of insertions or deletions lead along it, and every two others lead away and back. The
band of sacreBLEU is 25 words to either side, less 1 for rounding and 1 because its end is excluded."""

HIGHEST = 0xD800
"""So many words can be characters; those from here on are surrogates."""


def count_edits(hypothesis: Sequence[str], reference: Sequence[str]) -> int:
    """The number of shifts, insertions, deletions and substitutions, as sacreBLEU counts them.

    Example:
        >>> count_edits("b c d a".split(), "a b c d e".split())
        2
    """
    from sacrebleu.metrics import lib_ter

    numbers: dict[str, int] = {}
    for word in (*reference, *hypothesis):
        numbers.setdefault(word, len(numbers))
    if not reference or len(numbers) > HIGHEST:
        return int(lib_ter.translation_edit_rate([*hypothesis], [*reference])[0])
    written, expected = ("".join(chr(numbers[word]) for word in words) for words in (hypothesis, reference))
    distance = _Distance(expected)
    shifts = tried = 0
    while distance(written)[0]:
        distance.base = written
        gain, shifted, tried = lib_ter._shift(written, expected, distance, tried)  # type: ignore[arg-type]
        if tried >= lib_ter._MAX_SHIFT_CANDIDATES or gain <= 0:
            break
        shifts, written = shifts + 1, shifted  # type: ignore[assignment]
    return shifts + distance(written)[0]


class _Distance:
    """The edit distance from a reference, called as sacreBLEU calls its own.

    Attributes:
        base: the text whose path is needed, and not only its distance.
    """

    def __init__(self, reference: str) -> None:
        from rapidfuzz.distance import Levenshtein

        self._levenshtein = Levenshtein.distance
        self._reference = reference
        self.base: str | None = None

    @cached_property
    def _band(self) -> BeamEditDistance:
        from sacrebleu.metrics.lib_ter import BeamEditDistance

        return BeamEditDistance(self._reference)  # type: ignore[arg-type]

    def __call__(self, words: str) -> tuple[int, str]:
        distance: int = self._levenshtein(words, self._reference)
        if distance + abs(len(words) - len(self._reference)) > WITHIN_BAND:
            return self._band(words)  # type: ignore[arg-type]
        return distance, _path(words, self._reference) if words == self.base else ""


def _path(words: str, reference: str) -> str:
    """The fewest edits, in sacreBLEU's letters: where several are possible, a pair, then a deletion, then an insertion.

    Example:
        >>> _path("abd", "bcd")
        'ss '
    """
    rights, downs, unpaired = optimal_steps([*map(ord, words)], [*map(ord, reference)])
    i, j, path = len(words), len(reference), []
    while i and j:
        column = 1 << (j - 1)
        if not unpaired[i - 1] & column:
            i, j = i - 1, j - 1
            path.append(" " if words[i] == reference[j] else "s")
        elif downs[i - 1] & column:
            i -= 1
            path.append("d")
        else:
            assert rights[i - 1] & column
            j -= 1
            path.append("i")
    return "i" * j + "d" * i + "".join(reversed(path))
