# SPDX-License-Identifier: Apache-2.0
"""Which words of a re-translation show which words of a reference, and since when: the rules of SLTev 1.2.3.

A re-translating system shows a text, replaces it, and in the end leaves it as it is. SLTev (Ansari et al. 2021) asks of
every word of the reference when it was *due* and when it was *shown*:

- due (SLTev's T): the words of the reference are spread evenly over the time in which its source was spoken.
- due, from the partial transcripts (SLTev's PT): every source word has the time at which its end was first transcribed;
  the words of the reference are spread evenly over the source words, with straight lines between their times. Before
  the first of them, the line begins at time 0, even late in a recording.
- shown: when the same word, letter by letter, was first seen in the translation of about that time. A word counts if
  the final text still has it, wherever; that it came and went meanwhile does not matter.

A word that a sentence has more than once counts once. Where the words of a translation belong in time is estimated: the
update in which a word was first seen spreads its words evenly over the source that it is a translation of. The words
in the time of a reference sentence are those looked at, and one more on each side. Where there are none in that time,
SLTev takes the first and the last word of the whole recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from lagging.data.ragged import Floats

__all__ = ["SeenWords", "Update", "due", "due_by_partials", "first_seen"]

BOUNDS = (1e9, -1.0)
"""Where SLTev begins its search for the least and the greatest time of a word; beyond, it finds none beside."""

ESCAPES = str.maketrans(
    {
        "&": "&amp;",
        "|": "&#124;",
        "<": "&lt;",
        ">": "&gt;",
        "'": "&apos;",
        '"': "&quot;",
        "[": "&#91;",
        "]": "&#93;",
    }
)
"""How Moses spells what XML cannot hold: of words at the same time, SLTev takes them in the order of this spelling."""


class Update(NamedTuple):
    """One line of a log or a transcript: what was shown, when, and for which part of the source.

    Attributes:
        shown: when it was shown; NaN in a transcript.
        start, end: the source it is for.
        words: its tokens.
        text: the same as it was written.
        line: where it is in its file.
        final: whether nothing replaces it.
    """

    shown: float
    start: float
    end: float
    words: list[str]
    text: str = ""
    line: int = 0
    final: bool = True


class _Word(NamedTuple):
    """A word of a final text, where in time it belongs, and when it was first seen."""

    place: float
    word: str
    shown: float


def _ends(update: Update) -> dict[str, float]:
    """The estimated end of each word of an update, at its first occurrence."""
    step = (update.end - update.start) / max(len(update.words), 1)
    ends: dict[str, float] = {}
    for k, word in enumerate(update.words, 1):
        ends.setdefault(word, update.start + k * step)
    return ends


def first_seen(updates: Sequence[Update]) -> list[_Word]:
    """When each word of the last update was first seen in any of them, and where in time it belongs.

    Example:
        >>> updates = [Update(5, 0, 4, ["a", "x"]), Update(9, 0, 8, ["b", "a"])]
        >>> [tuple(word) for word in first_seen(updates)]
        [(4.0, 'b', 9), (2.0, 'a', 5)]
    """
    final_words = dict.fromkeys(updates[-1].words)
    first: dict[str, _Word] = {}
    for update in updates:
        for word, place in _ends(update).items():
            if word in final_words:
                first.setdefault(word, _Word(place, word, update.shown))
    return [first[word] for word in final_words]


class SeenWords:
    """The words of all translations of a recording, to be found by their place in time."""

    def __init__(self, segments: Iterable[Sequence[_Word]]) -> None:
        self._words = [word for segment in segments for word in segment]
        keys = [(place, word.translate(ESCAPES), shown) for place, word, shown in self._words]
        self._order = sorted(range(len(keys)), key=keys.__getitem__)
        self._places = np.array([self._words[i].place for i in self._order])

    def between(self, start: float, end: float) -> dict[str, float]:
        """The words in a time, with one more on each side, and when each was first seen.

        Of several that are the same word, the last in the log counts; those beside the time before those in it.
        """
        a, b = np.searchsorted(self._places, start), np.searchsorted(self._places, end, side="right")
        inside = [self._words[i] for i in sorted(self._order[a:b])]
        low = self._places[a:b].min(initial=BOUNDS[0])
        high = self._places[a:b].max(initial=BOUNDS[1])
        before = int(np.searchsorted(self._places, low)) - 1
        after = int(np.searchsorted(self._places, high, side="right"))
        beside = [self._words[self._order[i]] for i in (before, after) if 0 <= i < len(self._order)]
        return {word.word: word.shown for word in (*inside, *beside)}


def due(transcript: Sequence[Update], words: Sequence[str]) -> Floats:
    """When each word of a reference sentence was due (T): the words evenly over the time of the source.

    A word that occurs several times is due with its last occurrence.

    Args:
        transcript: the updates of the transcript of the sentence.
        words: the tokens of its translation.

    Returns:
        A time for each different word, in the order of their first occurrence.

    Example:
        >>> due([Update(0, 10, 14, ["a"]), Update(0, 10, 20, ["a", "b"])], ["u", "v", "u", "w", "x"])
        array([16., 14., 18., 20.])
    """
    start = transcript[0].start
    step = (transcript[-1].end - start) / max(len(words), 1)
    times = {word: start + k * step for k, word in enumerate(words, 1)}
    return np.array(list(times.values()))


def due_by_partials(transcript: Sequence[Update], words: Sequence[str]) -> Floats:
    """When each word of a reference sentence was due, from the times of the source words (PT).

    Args:
        transcript: the updates of the transcript of the sentence.
        words: the tokens of its translation.

    Returns:
        A time for each different word, in the order of their first occurrence.

    Example:
        >>> due_by_partials([Update(0, 10, 14, ["a"]), Update(0, 10, 20, ["a", "b"])], ["u", "v", "w", "x"])
        array([ 7., 14., 17., 20.])
    """
    known = set(transcript[-1].words)
    heard: dict[str, float] = {}
    for update in transcript:
        for word, end in _ends(update).items():
            if word in known:
                heard.setdefault(word, end)
    many = len(set(words))
    places = np.arange(1, many + 1) * (len(heard) / max(many, 1))
    times: Floats = np.interp(places, np.arange(len(heard) + 1), [0.0, *heard.values()])
    return times
