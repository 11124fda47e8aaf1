# SPDX-License-Identifier: Apache-2.0
"""Aligners: which tokens of a stream belong to which reference segment. All cut the stream, so that none is ever lost.

mwer        the fewest edits, exactly; where several cuts have as few, time decides, then punctuation
soft        words that resemble each other count in part, and so do sentences and capitals
timed       soft, and when each word was written
omnisteval  the decisions of SoftSegmenter in OmniSTEval, to reproduce its scores
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from lagging.longform.corridor import Corridor, Path, Potential, best
from lagging.longform.mweralign import mweralign, mwersegmenter
from lagging.longform.softsegmenter import omnisteval
from lagging.longform.stream import Stream
from lagging.longform.words import equality, punctuation, resemblance, worths
from lagging.ragged import Floats, Ints

__all__ = ["ALIGNERS", "Aligner", "Stream", "mwer", "soft", "timed"]

NEAR = 24
"""How far from a path with the fewest edits others with as few are looked for, in tokens."""

TRIES = 8
"""How often a corridor is moved to a path that ran along its wall."""


Aligner = Callable[[Stream], Ints]
"""From a stream to the hypothesis token at which each segment begins, and the number of tokens."""


# ---- mwer -----------------------------------------------------------------------------------------------------------


def mwer(stream: Stream) -> Ints:
    """Minimum word error rate segmentation (Matusov et al. 2005), exactly.

    The sum of the segments' edit distances is least if and only if the stream is cut where an alignment of the whole
    with the fewest edits passes the ends of the segments. Of the cuts that are equal in that, those count more that
    give no segment a word from before its beginning, then those that agree with the reference in punctuation.

    Example:
        >>> mwer(Stream("so it goes . and then".split(), ["it goes .".split(), "and now".split()]))
        array([0, 4, 6])
    """
    corridor = Corridor.around(stream.edits, stream.ends, NEAR)
    worth = worths(corridor, stream.types, stream.reference, stream.hypothesis, equality)
    wishes = [punctuation(stream.tokens, stream.references, stream.glued)]
    if stream.has_times:
        wishes.append(lambda k, columns: -4.0 * _too_early(stream, k, columns))
    least = 1.0 / (8.0 * len(stream.references))  # all wishes together are worth less than one edit

    def potential(k: int, columns: slice) -> Floats:
        total: Floats = least * sum(wish(k, columns) for wish in wishes)
        return total

    return best(corridor, worth, potential).boundaries


def _too_early(stream: Stream, k: int, columns: slice) -> npt.NDArray[np.bool_]:
    """Whether a cut at these columns gives the next segment a token that was written before it began."""
    assert stream.times is not None
    assert stream.offset is not None
    early = stream.times[columns] < stream.offset[k + 1]
    return np.append(early, False) if columns.stop > len(stream.times) else early


# ---- soft -----------------------------------------------------------------------------------------------------------


def soft(stream: Stream) -> Ints:
    """Words that resemble each other count in part (the idea of SoftSegmenter, Polák et al. 2025).

    Example:
        >>> words = "Wir gehen heim. Morgen kommt er".split()
        >>> soft(Stream(words, ["Wir gingen heim.".split(), "Er kommt morgen".split()]))
        array([0, 3, 6])
    """
    return _Soft(stream).path.boundaries


class _Soft:
    """The best path by resemblance and punctuation, and the corridor that it lies in."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.punctuation = punctuation(stream.tokens, stream.references, stream.glued)
        path = stream.edits
        for _ in range(TRIES):
            self.corridor = Corridor.around(path, stream.ends)
            self.worth = worths(self.corridor, stream.types, stream.reference, stream.hypothesis, resemblance)
            path = self.again(self.punctuation)
            if not self.corridor.touches(path):
                break
        self.path = path

    def again(self, potential: Potential) -> Path:
        """The best path with another potential of the boundaries."""
        return best(self.corridor, self.worth, potential)


# ---- timed ----------------------------------------------------------------------------------------------------------

NEIGHBOURS = 15
"""How many boundaries the lag at a boundary is taken from."""

LAG_WEIGHT = 0.3
"""What a factor e in the likelihood of a lag is worth, in equal words, as long as the lag is steady."""

CAUSAL_WEIGHT = 0.3
"""The same for the likelihood that a word was written before its segment began."""

CAUSAL_CUTS = 20
"""With how many cuts that give no segment such a word a stream starts, before its own are counted."""

STEADY = {"ms": (200.0, 1000.0), "token": (1.0, 5.0)}
"""No lag is taken to be steadier than the first; one that is less steady than the second counts ever less."""


def timed(stream: Stream) -> Ints:
    """Soft, and when each word was written; without times, soft.

    Text alone gives a first cut, and that the lag of the system: how long after the beginning of a segment its first
    word came, the running median over the neighbouring segments, and how much it varies, from the median deviation. A
    cut is then the less likely the farther it lies from that lag (as a Cauchy distribution has it: far is not
    impossible), and less likely still if it gives a segment a word that was written before it began. The less steady
    the lag, the less times count.

    Example:
        >>> words, references = ["gut", "ja", "gut"], [["gut"], ["gut"]]
        >>> soft(Stream(words, references))
        array([0, 1, 3])
        >>> timed(Stream(words, references, times=np.array([500.0, 900.0, 2600.0]), offset=np.array([0.0, 2000.0])))
        array([0, 2, 3])
    """
    first = _Soft(stream)
    if not stream.has_times or len(stream.references) < 2 or not len(stream.tokens):
        return first.path.boundaries
    assert stream.times is not None
    assert stream.offset is not None
    times, begin = stream.times, stream.offset[1:]
    before, after = np.append(-np.inf, times), np.append(times, np.inf)
    between = np.append(np.append(times[0], (times[1:] + times[:-1]) / 2), times[-1])
    cuts = first.path.boundaries[1:-1]
    lag = _running_median(between[cuts] - begin)
    least, most = STEADY[stream.unit]
    spread = np.maximum(1.5 * _running_median(np.abs(between[cuts] - begin - lag)), least)
    weight = LAG_WEIGHT * np.minimum(1.0, most / spread)
    early = (after[cuts] < begin).sum()
    odds = CAUSAL_WEIGHT * max(0.0, float(np.log((len(cuts) - early + CAUSAL_CUTS) / (early + 1))))
    expected = begin + lag

    def potential(k: int, columns: slice) -> Floats:
        off = np.maximum(before[columns] - expected[k], expected[k] - after[columns])
        unlike = np.log1p(np.square(np.maximum(off, 0.0) / spread[k]))
        worth: Floats = first.punctuation(k, columns) - weight[k] * unlike - odds * (after[columns] < begin[k])
        return worth

    return first.again(potential).boundaries


def _running_median(values: Floats) -> Floats:
    """The median of each value and its neighbours; at the ends, of the first or last few."""
    width = min(NEIGHBOURS, len(values))
    medians = np.median(sliding_window_view(values, width), axis=1)
    places = np.clip(np.arange(len(values)) - width // 2, 0, len(medians) - 1)
    found: Floats = medians[places]
    return found


ALIGNERS: dict[str, Aligner] = {
    "timed": timed,
    "soft": soft,
    "mwer": mwer,
    "omnisteval": omnisteval,
    "mweralign": mweralign,
    "mwersegmenter": mwersegmenter,
}
