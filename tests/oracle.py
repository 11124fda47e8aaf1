# SPDX-License-Identifier: Apache-2.0
"""The equations of Cherry & Foster (2019) as they stand in the paper, in exact fractions, one sentence at a time.

Nothing here is taken from `lagging`: loops, recurrences and no NumPy. An undefined value is None.

g: delays; x: |x|; y: |y| as it enters γ = |y|/|x|, the number of delays if not given; reach: from which delay on the
source counts as read, |x| if not given.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

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
    """The mean of the waits that are not 0."""
    some = [wait for wait in waits(g) if wait > 0]
    return sum(some, Fraction(0)) / len(some) if some else None


def tau(g: Sequence[Number], reach: Number) -> int:
    """The first t (from 1) at which the source has been read; the last t if it never is (Table 6)."""
    for t, delay in enumerate(_exact(g), 1):
        if delay >= Fraction(reach):
            return t
    return len(g)


def lags(g: Sequence[Number], x: Number, y: Number | None = None) -> list[Fraction] | None:
    """ℓ(t) = g(t) − (t−1)/γ."""
    lengths = _lengths(g, x, y)
    if lengths is None:
        return None
    gamma = lengths[1] / lengths[0]
    return [delay - Fraction(t - 1) / gamma for t, delay in enumerate(_exact(g), 1)]


def al(g: Sequence[Number], x: Number, y: Number | None = None, reach: Number | None = None) -> Fraction | None:
    """Eq. 3."""
    each = lags(g, x, y)
    if each is None:
        return None
    last = tau(g, x if reach is None else reach)
    return sum(each[:last], Fraction(0)) / last


def al_y(g: Sequence[Number], x: Number, y: Number | None = None) -> Fraction | None:
    """Eq. 4."""
    each = lags(g, x, y)
    return None if each is None else sum(each, Fraction(0)) / len(each)


def laal(g: Sequence[Number], x: Number, reference: Number | None, reach: Number | None = None) -> Fraction | None:
    """AL with the longer of hypothesis and reference."""
    return al(g, x, len(g) if reference is None else max(len(g), reference), reach)


def yaal(g: Sequence[Number], x: Number, reference: Number | None, reach: Number | None = None) -> Fraction | None:
    """LAAL's lags, averaged over the leading tokens that were written before the source ended."""
    each = lags(g, x, len(g) if reference is None else max(len(g), reference))
    if each is None:
        return None
    end = Fraction(x if reach is None else reach)
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
    sound = _exact([0] * len(outputs) if durations is None else durations)
    source_ends = [Fraction(0)]  # T(x_0), T(x_1), …
    delays: list[Fraction] = []
    target_end: Fraction | None = None
    t, heard = 0, Fraction(0)
    for chunk in sorted(set(_exact(g))):
        sources_before, targets_before = len(source_ends) - 1, t
        for length in pieces(max(chunk, Fraction(0)) - heard, size):
            source_ends.append(source_ends[-1] + length)
        heard = max(chunk, Fraction(0))
        if sources_before < len(source_ends) - 1:
            source_ends[-1] = heard  # together with what was rounding
        here = [(time, lasts) for (delay, time), lasts in zip(outputs, sound, strict=True) if delay == chunk]
        tokens = [(time, Fraction(0 if speech else 1)) for time, _ in here]
        if durations is not None:
            moments = sorted({time for time, _ in here})
            spoken = {moment: sum((lasts for time, lasts in here if time == moment), Fraction(0)) for moment in moments}
            tokens = [(moment, length) for moment in moments for length in pieces(spoken[moment], size)]
        for time, lasts in tokens:
            t += 1
            a = min(t - max(0, targets_before - sources_before), len(source_ends) - 1)
            target_end = (time if target_end is None else max(time, target_end)) + lasts
            delays.append(target_end - source_ends[a])
    return sum(delays, Fraction(0)) / len(delays) if delays else None


def queued(g: Sequence[Number], elapsed: Sequence[Number]) -> list[Fraction]:
    """When each token is there if computing overlaps listening: max(its delay, the token before) + its computing."""
    out: list[Fraction] = []
    before = Fraction(0)
    for delay, late in zip(_exact(g), _exact(elapsed), strict=True):
        computed, before = late - delay - before, late - delay
        out.append((max(delay, out[-1]) if out else delay) + computed)
    return out
