# SPDX-License-Identifier: Apache-2.0
"""Aligners: which tokens of a stream belong to which reference segment. All cut the stream, so that none is ever lost.

mwer        the fewest edits, exactly; where several cuts have as few, time decides, then punctuation
soft        words that resemble each other count in part, and so do sentences and capitals
timed       soft, and when each word was written
omnisteval  the decisions of SoftSegmenter in OmniSTEval, to reproduce its scores
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from lagging.data.ragged import Floats, Ints
from lagging.longform.corridor import Path, Potential, block_most
from lagging.longform.edits import relaxed_edits
from lagging.longform.mweralign import mweralign, mwersegmenter
from lagging.longform.optimum import optimum
from lagging.longform.softsegmenter import omnisteval
from lagging.longform.stream import Stream
from lagging.longform.words import Punctuation, resemblance

__all__ = ["ALIGNERS", "Aligner", "Stream", "mwer", "soft", "timed"]

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
    wishes = _Wishes(stream)
    relaxed = relaxed_edits(stream.pairs, stream.edits, stream.ends, wishes)
    return optimum(stream.pairs, stream.edits, stream.ends, wishes, relaxed=relaxed).path.boundaries


class _Wishes:
    """What decides between cuts with as few edits; all wishes together are worth less than one edit."""

    def __init__(self, stream: Stream) -> None:
        self.punctuation = Punctuation(stream.tokens, stream.references, stream.glued)
        self.least = 1.0 / (8.0 * len(stream.references))
        self.times = np.append(stream.times, np.inf) if stream.has_times and stream.times is not None else None
        self.offset = stream.offset
        self._latest: dict[int, Floats] = {}

    def at(self, k: int, columns: slice) -> Floats:
        """What the end of segment k earns at each column of a slice."""
        worth = self.punctuation.at(k, columns)
        return self.least * (worth if self.times is None else worth - self._too_early(k, self.times[columns]))

    def most(self, k: int, width: int) -> Floats:
        """No less than that in each block of columns."""
        worth = self.punctuation.most(k, width)
        if self.times is None:
            return self.least * worth
        if width not in self._latest:
            self._latest[width] = block_most(self.times, width)
        return self.least * (worth - self._too_early(k, self._latest[width]))

    def _too_early(self, k: int, times: Floats) -> Floats:
        """What it costs that the next segment begins with a token of each of these times, before it began."""
        assert self.offset is not None
        cost: Floats = 4.0 * (times < self.offset[k + 1])
        return cost


# ---- soft -----------------------------------------------------------------------------------------------------------


def soft(stream: Stream) -> Ints:
    """Words that resemble each other count in part (the idea of SoftSegmenter, Polák et al. 2025).

    Example:
        >>> words = "Wir gehen heim. Morgen kommt er".split()
        >>> soft(Stream(words, ["Wir gingen heim.".split(), "Er kommt morgen".split()]))
        array([0, 3, 6])
    """
    return _Soft(stream).best.path.boundaries


class _Soft:
    """The best path by resemblance and punctuation."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.pairs = stream, replace(stream.pairs, table=resemblance)
        self.punctuation = Punctuation(stream.tokens, stream.references, stream.glued)
        self.best = optimum(self.pairs, stream.edits, stream.ends, self.punctuation)

    def restricted(self, potential: Potential) -> Path:
        """The best path with a potential of the boundaries that is nowhere higher than punctuation alone."""
        return optimum(self.pairs, self.best.path, self.stream.ends, potential, relaxed=self.best).path


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
        return first.best.path.boundaries
    return first.restricted(_Lags(stream, first)).boundaries


class _Lags:
    """Punctuation, and how well the time of a cut fits the lag of the system: nowhere more than punctuation alone."""

    def __init__(self, stream: Stream, first: _Soft) -> None:
        assert stream.times is not None
        assert stream.offset is not None
        times, self.begin = stream.times, stream.offset[1:]
        self.before, self.after = np.append(-np.inf, times), np.append(times, np.inf)
        between = np.append(np.append(times[0], (times[1:] + times[:-1]) / 2), times[-1])
        cuts = first.best.path.boundaries[1:-1]
        lag = _running_median(between[cuts] - self.begin)
        least, most = STEADY[stream.unit]
        self.spread = np.maximum(1.5 * _running_median(np.abs(between[cuts] - self.begin - lag)), least)
        self.weight = LAG_WEIGHT * np.minimum(1.0, most / self.spread)
        early = (self.after[cuts] < self.begin).sum()
        self.odds = CAUSAL_WEIGHT * max(0.0, float(np.log((len(cuts) - early + CAUSAL_CUTS) / (early + 1))))
        self.expected = self.begin + lag
        self.punctuation = first.punctuation
        self._blocks: dict[int, tuple[Floats, Floats]] = {}

    def at(self, k: int, columns: slice) -> Floats:
        """What the end of segment k earns at each column of a slice."""
        return self.punctuation.at(k, columns) - self._cost(k, self.before[columns], self.after[columns])

    def most(self, k: int, width: int) -> Floats:
        """No less than that in each block of columns."""
        if width not in self._blocks:
            self._blocks[width] = -block_most(-self.before, width), block_most(self.after, width)
        return self.punctuation.most(k, width) - self._cost(k, *self._blocks[width])

    def _cost(self, k: int, before: Floats, after: Floats) -> Floats:
        """How unlikely it is that the end of segment k lies between two times."""
        off = np.maximum(before - self.expected[k], self.expected[k] - after)
        unlike = np.log1p(np.square(np.maximum(off, 0.0) / self.spread[k]))
        cost: Floats = self.weight[k] * unlike + self.odds * (after < self.begin[k])
        return cost


def _running_median(values: Floats) -> Floats:
    """The median of each value and its neighbours; at the ends, of the first or last few."""
    width = min(NEIGHBOURS, len(values))
    medians = np.median(sliding_window_view(values, width), axis=1)
    places = np.clip(np.arange(len(values)) - width // 2, 0, len(medians) - 1)
    running: Floats = medians[places]
    return running


ALIGNERS: dict[str, Aligner] = {
    "timed": timed,
    "soft": soft,
    "mwer": mwer,
    "omnisteval": omnisteval,
    "mweralign": mweralign,
    "mwersegmenter": mwersegmenter,
}
