# SPDX-License-Identifier: Apache-2.0
"""The equations of Cherry & Foster (2019) as they stand in the paper, in exact fractions, one sentence at a time.

Nothing here is taken from `lagging`: loops, recurrences and no NumPy. An undefined value is None.

g: delays; x: |x|; y: |y| as it enters γ = |y|/|x|, the number of delays if not given; source_end: from which delay
on the source counts as read, |x| if not given.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

Number = int | float | Fraction


def _exact(g: Sequence[Number]) -> list[Fraction]:
    return [Fraction(v) for v in g]


def _lengths(g: Sequence[Number], x: Number, y: Number | None) -> tuple[Fraction, Fraction] | None:
    length = len(g) if y is None else y
    if not g or not x or not length:
        return None
    return Fraction(x), Fraction(length)


def ap(g: Sequence[Number], x: Number, y: Number | None = None) -> Fraction | None:
    """Eq. 1."""
    lengths = _lengths(g, x, y)
    if lengths is None:
        return None
    return sum(_exact(g), Fraction(0)) / (lengths[0] * lengths[1])


def waits(g: Sequence[Number]) -> list[Fraction]:
    """Eq. 2: CW(t), position by position."""
    exact = _exact(g)
    return [exact[t] if t == 0 else exact[t] - exact[t - 1] for t in range(len(exact))]


def segments(g: Sequence[Number]) -> int | None:
    """Number of runs of reads that are followed by a write."""
    return sum(wait > 0 for wait in waits(g)) if g else None


def cw(g: Sequence[Number]) -> Fraction | None:
    """The mean of the waits that are not 0.

    In a segment cut from a stream, reading goes on where the segment before left it: what was read before its first
    token, if that was written before the segment began, is none of its waits; what is read from there on is.
    """
    exact = _exact(g)
    here = min([Fraction(0), *exact[:1]])
    some = []
    for delay in exact:
        if delay > here:
            some.append(delay - here)
        here = delay
    return sum(some, Fraction(0)) / len(some) if some else None


def tau(g: Sequence[Number], source_end: Number) -> int:
    """The first t (from 1) at which the source has been read; the last t if it never is (Table 6)."""
    for t, delay in enumerate(_exact(g), 1):
        if delay >= Fraction(source_end):
            return t
    return len(g)


def lags(g: Sequence[Number], x: Number, y: Number | None = None) -> list[Fraction] | None:
    """ℓ(t) = g(t) − (t−1)/γ."""
    lengths = _lengths(g, x, y)
    if lengths is None:
        return None
    gamma = lengths[1] / lengths[0]
    return [delay - Fraction(t - 1) / gamma for t, delay in enumerate(_exact(g), 1)]


def al(g: Sequence[Number], x: Number, y: Number | None = None, source_end: Number | None = None) -> Fraction | None:
    """Eq. 3."""
    each = lags(g, x, y)
    if each is None:
        return None
    last = tau(g, x if source_end is None else source_end)
    return sum(each[:last], Fraction(0)) / last


def al_y(g: Sequence[Number], x: Number, y: Number | None = None) -> Fraction | None:
    """Eq. 4."""
    each = lags(g, x, y)
    return None if each is None else sum(each, Fraction(0)) / len(each)


def laal(g: Sequence[Number], x: Number, reference: Number | None, source_end: Number | None = None) -> Fraction | None:
    """AL with the longer of hypothesis and reference."""
    return al(g, x, len(g) if reference is None else max(len(g), reference), source_end)


def yaal(g: Sequence[Number], x: Number, reference: Number | None, source_end: Number | None = None) -> Fraction | None:
    """LAAL's lags, averaged over the leading tokens that were written before the source ended."""
    each = lags(g, x, len(g) if reference is None else max(len(g), reference))
    if each is None:
        return None
    end = Fraction(x if source_end is None else source_end)
    counted = []
    for delay, lag in zip(_exact(g), each, strict=True):
        if delay >= end:
            break
        counted.append(lag)
    return sum(counted, Fraction(0)) / len(counted) if counted else None


def effective_delays(g: Sequence[Number], d: Number) -> list[Fraction]:
    """Eq. 5: g'(1) = g(1), g'(t) = max(g(t), g'(t−1) + d)."""
    out: list[Fraction] = []
    for delay in _exact(g):
        out.append(max(delay, out[-1] + Fraction(d)) if out else delay)
    return out


def write_cost(g: Sequence[Number], x: Number, y: Number | None = None) -> Fraction | None:
    """The recommended d = 1/γ = |x|/|y|."""
    lengths = _lengths(g, x, y)
    return None if lengths is None else lengths[0] / lengths[1]


def effective_lags(
    g: Sequence[Number], x: Number, y: Number | None = None, d: Number | None = None
) -> list[Fraction] | None:
    """ℓ'(t) = g'(t) − (t−1)d."""
    own = write_cost(g, x, y)
    if own is None:
        return None
    cost = own if d is None else Fraction(d)
    return [delay - (t - 1) * cost for t, delay in enumerate(effective_delays(g, cost), 1)]


def dal(g: Sequence[Number], x: Number, y: Number | None = None, d: Number | None = None) -> Fraction | None:
    """Eqs. 6 and 7; with the recommended d if none is given."""
    each = effective_lags(g, x, y, d)
    return None if each is None else sum(each, Fraction(0)) / len(each)


def over_budget(g: Sequence[Number], x: Number, y: Number | None = None, d: Number | None = None) -> list[int]:
    """For each t the i ≤ t (from 0) with the largest g(i) − (i−1)d; the first of equals."""
    own = write_cost(g, x, y)
    if own is None:
        return []
    cost = own if d is None else Fraction(d)
    over = [delay - i * cost for i, delay in enumerate(_exact(g))]
    return [max(range(t + 1), key=lambda i: (over[i], -i)) for t in range(len(over))]


# ---- Average Token Delay (Kano et al., 2022) ------------------------------------------------------------------------


def pieces(length: Fraction, piece: Fraction) -> list[Fraction]:
    """The lengths of the tokens of a chunk: as many full ones as there are, and what is left, unless it is rounding."""
    out = [piece] * (length // piece)
    left = length - piece * len(out)
    return [*out, left] if left > piece / 10**9 else out


def atd(
    g: Sequence[Number],
    *,
    speech: bool = False,
    times: Sequence[Number] | None = None,
    durations: Sequence[Number] | None = None,
    piece: Number = 300,
) -> Fraction | None:
    """Token by token, chunk by chunk. `times`: when each output was there, if that is not its delay.

    Text: each token lasts 1. Speech: sound is cut into `pieces`, and text lasts 0.
    """
    size = Fraction(piece if speech else 1)
    outputs = list(zip(_exact(g), _exact(g if times is None else times), strict=True))
    tokens = [(delay, time, Fraction(0 if speech else 1)) for delay, time in outputs]
    if durations is not None:
        tokens = [
            (delay, time, length)
            for delay, time, sound in _sounds(outputs, _exact(durations), size / 10**9)
            for length in pieces(sound, size) or [None]
        ]
    source_ends = [Fraction(0)]  # T(x_0), T(x_1), …
    late: list[Fraction] = []
    t = sources_before = targets_before = 0
    heard, target_end = Fraction(0), None
    for delay, time, lasts in tokens:
        begin, heard = heard, max(delay, Fraction(0))
        new = pieces(heard - begin, size)
        if new:  # source was read: a chunk begins
            sources_before, targets_before = len(source_ends) - 1, t
            for length in new:
                begin += length
                source_ends.append(begin)
            source_ends[-1] = heard  # together with what was rounding
        if lasts is None:
            continue
        t += 1
        a = min(t - max(0, targets_before - sources_before), len(source_ends) - 1)
        target_end = (time if target_end is None else max(time, target_end)) + lasts
        late.append(target_end - source_ends[a])
    return sum(late, Fraction(0)) / len(late) if late else None


def _sounds(
    outputs: list[tuple[Fraction, Fraction]], durations: list[Fraction], rounding: Fraction
) -> list[tuple[Fraction, Fraction, Fraction]]:
    """Delay, time and length of what was put out at one time, be they equal or equal but for rounding."""
    out: list[tuple[Fraction, Fraction, Fraction]] = []
    before: tuple[Fraction, Fraction] | None = None
    for (delay, time), lasts in zip(outputs, durations, strict=True):
        if before is not None and delay - before[0] <= rounding and time - before[1] <= rounding:
            out[-1] = (*out[-1][:2], out[-1][2] + lasts)
        else:
            out.append((delay, time, lasts))
        before = delay, time
    return out


def queued(g: Sequence[Number], elapsed: Sequence[Number]) -> list[Fraction]:
    """When each token is there if computing overlaps listening: max(its delay, the token before) + its computing."""
    out: list[Fraction] = []
    before = Fraction(0)
    for delay, late in zip(_exact(g), _exact(elapsed), strict=True):
        computed, before = late - delay - before, late - delay
        out.append((max(delay, out[-1]) if out else delay) + computed)
    return out


# ---- clocks -----------------------------------------------------------------------------------------------------


def finishes(arrivals: Sequence[Number], compute: Sequence[Number]) -> list[Fraction]:
    """When each step is done: it starts when its source is there and the step before is done."""
    out: list[Fraction] = []
    for arrival, cost in zip(_exact(arrivals), _exact(compute), strict=True):
        out.append((max(arrival, out[-1]) if out else arrival) + cost)
    return out


def by_omnisteval(g: Sequence[Number], elapsed: Sequence[Number]) -> list[Fraction]:
    """e(t) − e(t−1) + g(t−1), and never before the token before; e(0) = g(0) = 0."""
    out: list[Fraction] = []
    delays, late = _exact(g), _exact(elapsed)
    for t in range(len(delays)):
        time = late[t] - late[t - 1] + delays[t - 1] if t else late[t]
        out.append(max(time, out[-1]) if out else time)
    return out


def by_fbk(g: Sequence[Number], elapsed: Sequence[Number], begins: Sequence[Number] | None = None) -> list[Fraction]:
    """e(t) − e(t−1) + g(t−1); a token with the elapsed time of the one before has the same cost on top of its delay.

    That cost is the difference of the two times of the token before, both counted from the beginning of its segment
    and 0 at least. `begins`: when the segment of each token begins; 0 if nothing is cut.
    """
    out: list[Fraction] = []
    delays, late = _exact(g), _exact(elapsed)
    starts = _exact(begins or [0] * len(delays))
    kept = Fraction(0)  # what the token before cost, by its capped times
    for t, start in enumerate(starts):
        if t == 0:
            time = late[t]
        elif late[t] == late[t - 1]:
            time = delays[t] + kept
        else:
            time = late[t] - late[t - 1] + delays[t - 1]
        kept = max(Fraction(0), time - start) - max(Fraction(0), delays[t] - start)
        out.append(time)
    return out


# ---- the tail of the lags, and their drift ----------------------------------------------------------------------


def percentile(values: Sequence[Number], p: Number) -> Fraction | None:
    """Sorted, and read at the place p/100 of the way from the first to the last; between two of them linearly."""
    if not values:
        return None
    ordered = sorted(_exact(values))
    place = Fraction(p) / 100 * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def slope(recordings: Sequence[Sequence[tuple[Fraction, Fraction]]]) -> Fraction | None:
    """Of points (time, lag): by least squares, one slope for all recordings, each with an intercept of its own."""
    top = bottom = Fraction(0)
    for points in recordings:
        n = len(points)
        times, late = [time for time, _ in points], [lag for _, lag in points]
        top += sum((time * lag for time, lag in points), Fraction(0)) - sum(times) * sum(late) / n if n else 0
        bottom += sum((time * time for time in times), Fraction(0)) - sum(times) ** 2 / n if n else 0
    return top / bottom if bottom else None


def points(
    g: Sequence[Number], x: Number, y: Number | None = None, begin: Number = 0, effective: bool = False
) -> list[tuple[Fraction, Fraction]]:
    """When each token was due, and its lag."""
    each = effective_lags(g, x, y) if effective else lags(g, x, y)
    d = write_cost(g, x, y)
    if each is None or d is None:
        return []
    return [(Fraction(begin) + t * d, lag) for t, lag in enumerate(each)]


# ---- segments cut from a stream ---------------------------------------------------------------------------------


def stream_laal(
    g: Sequence[Number], x: Number, reference: Number | None, version: int, source_end: Number | None = None
) -> Fraction | None:
    """LAAL; from version 2 on, what was written before the segment began counts as written when it began."""
    return laal([max(delay, 0) for delay in g] if version == 2 else g, x, reference, source_end)


def stream_dal(
    segments: Sequence[tuple[Number, Sequence[Number], Number, Number]], scale: Number
) -> list[Fraction | None]:
    """Of the segments (beginning, g, |x|, |y|) of one recording in their order: g' is not begun anew in any of them."""
    out: list[Fraction | None] = []
    ready = None  # when the next token can be there at the earliest
    for begin, g, x, y in segments:
        d = write_cost(g, x, y)
        late = []
        for i, delay in enumerate(_exact(g)):
            time = Fraction(begin) + delay
            if ready is not None and ready > time:
                time = ready
            ready = time + Fraction(scale) * (d or 0)
            late.append(time - Fraction(begin) - i * (d or 0))
        out.append(None if d is None else sum(late, Fraction(0)) / len(late))
    return out


# ---- output speech ----------------------------------------------------------------------------------------------


def played(g: Sequence[Number], durations: Sequence[Number]) -> list[tuple[Fraction, Fraction]]:
    """Beginning and end of each piece: it is played when it is there and the piece before has ended."""
    out: list[tuple[Fraction, Fraction]] = []
    for delay, lasts in zip(_exact(g), _exact(durations), strict=True):
        start = max(delay, out[-1][1]) if out else delay
        out.append((start, start + lasts))
    return out


def silences(g: Sequence[Number], durations: Sequence[Number]) -> list[Fraction]:
    """How long nothing is heard between two pieces, where that happens."""
    return [start - end for (_, end), (start, _) in pairwise(played(g, durations)) if start > end]


# ---- what a mean hides ------------------------------------------------------------------------------------------


def hidden(
    g: Sequence[Number], x: Number, y: Number | None = None, source_end: Number | None = None
) -> tuple[Fraction, Fraction] | None:
    """The two parts of DAL − AL: free writes up to τ, and the tail."""
    plain, paid = lags(g, x, y), effective_lags(g, x, y)
    if plain is None or paid is None:
        return None
    last = tau(g, x if source_end is None else source_end)
    writes = sum((paid[t] - plain[t] for t in range(last)), Fraction(0)) / last
    tail = sum(paid, Fraction(0)) / len(paid) - sum(paid[:last], Fraction(0)) / last
    return writes, tail


def simultaneous(g: Sequence[Number], source_end: Number) -> int:
    """How many tokens were written before the source ended."""
    return sum(delay < Fraction(source_end) for delay in _exact(g))


def expected_simultaneous(
    g: Sequence[Number], x: Number, reference: Number | None, source_end: Number | None = None
) -> Fraction | None:
    """max(0, |x| − YAAL): how much of the source was left after YAAL; None where that is."""
    average = yaal(g, x, reference, source_end)
    return None if average is None else max(Fraction(0), Fraction(x) - average)


# ---- error rates --------------------------------------------------------------------------------------------------


def errors(hypothesis: Sequence[str], reference: Sequence[str]) -> int:
    """The fewest substitutions, deletions and insertions that make the reference into the hypothesis.

    `fewest[i][j]` is their number for the first i tokens of the reference and the first j of the hypothesis.
    """
    fewest = [[i + j for j in range(len(hypothesis) + 1)] for i in range(len(reference) + 1)]
    for i, expected in enumerate(reference, 1):
        for j, written in enumerate(hypothesis, 1):
            substituted = fewest[i - 1][j - 1] + (expected != written)
            fewest[i][j] = min(substituted, fewest[i - 1][j] + 1, fewest[i][j - 1] + 1)
    return fewest[-1][-1]


def error_rate(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> Fraction | None:
    """WER or CER in percent, of hypotheses and references as tokens; an empty reference is left out."""
    judged = [(h, r) for h, r in pairs if r]
    length = sum(len(r) for _, r in judged)
    return Fraction(100 * sum(errors(h, r) for h, r in judged), length) if length else None
