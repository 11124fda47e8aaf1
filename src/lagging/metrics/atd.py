# SPDX-License-Identifier: Apache-2.0
"""Average Token Delay (Kano et al., 2022).

Every target token is held against a source token: how long after that one ends does this one end? So both sides must be
cut into tokens, and tokens take time. Text: a token is a token, and lasts 1. Speech: each chunk of sound is cut into
pieces of 300 ms and one remainder. Text written beside speech takes no time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lagging.data.checks import number
from lagging.data.ragged import Floats, Ints, Ragged
from lagging.errors import DataError, Fault, MetricError, UsageError
from lagging.metrics import kernels
from lagging.metrics.paper import EMPTY
from lagging.metrics.record import Param
from lagging.metrics.registry import alias, register
from lagging.metrics.sentence import Delays, as_float, as_sentence

if TYPE_CHECKING:
    from lagging.metrics.schedule import Schedule

__all__ = ["atd"]

Bools = npt.NDArray[np.bool_]

PIECE = 300.0
"""How many ms of speech are a token."""

LONGEST = 60_000
"""No token is longer than a minute; far beyond, every wait would be a billionth of a token."""

MANY = 1e8
"""As many tokens, a year of speech, are not held in memory."""

NOISE = 1e-9
"""Part of a token that is no token of its own, but the rounding of 0.1 s + 0.2 s to 300.00000000000006 ms."""


def count(lengths: Floats, piece: float) -> Floats:
    """Into how many tokens a chunk is cut: pieces of one length, and a remainder."""
    tokens: Floats = lengths / piece
    tokens -= NOISE
    np.maximum(tokens, 0.0, out=tokens)
    return np.ceil(tokens, out=tokens)


def mean_delay(g: Floats, times: Floats, lasts: Floats | float, counted: Bools | None, piece: float) -> Floats:
    """ATD: the mean over t of T(y_t) − T(x_a(t)), in a fixed number of passes over the rectangle.

    Args:
        g: delays, on the ideal clock: the source is there when it is spoken, whatever the system does with it.
        times: from when on each token can be put out.
        lasts: how long each target token lasts.
        counted: which entries are tokens (None: all); a chunk without sound has an entry, for its source, and no token.
        piece: how long a source token lasts.
    """
    read = np.maximum(g, 0.0)  # before the segment began, nothing of it was read
    waits = kernels.waits(read)
    tokens = count(waits, piece)
    targets = np.arange(1.0, g.shape[1] + 1.0) if counted is None else _counts(counted)
    before = targets - (1.0 if counted is None else counted)
    whole = piece == 1.0 and np.array_equal(tokens, waits)  # source tokens are what delays count
    sources = read if whole else _counts(tokens)
    new = tokens > 0  # a chunk begins where source was read,
    chunk = new.copy()
    chunk[:, 0] = True  # or the segment does
    begins = np.flatnonzero(chunk)
    sizes = np.diff(begins, append=g.size)
    known = sources - tokens
    # target tokens that are ahead of the source tokens before the chunk
    ahead = np.repeat(np.maximum(before - known, 0.0).take(begins), sizes).reshape(g.shape)
    a = np.minimum(targets - ahead, sources)
    spoken = a if whole else _spoken(a, begins, new, known, read, waits, piece)
    # T(y_t): one after the other, none before its time
    ends = kernels.queue(times, lasts) if isinstance(lasts, np.ndarray) else kernels.paced(times, lasts)
    late = ends - spoken if counted is None else np.where(counted, ends - spoken, 0.0)
    mean: Floats = late.sum(axis=1) / targets[..., -1]
    return mean


def _counts(some: npt.NDArray[np.generic]) -> Floats:
    """How many there are up to each place of a row; whole numbers, so that all rows can be added up at once."""
    total = np.cumsum(some, dtype=np.int64).reshape(some.shape)
    return (total - (total[:, :1] - some[:, :1].astype(np.int64))).astype(np.float64)


def _spoken(a: Floats, begins: Ints, new: Bools, known: Floats, read: Floats, waits: Floats, piece: float) -> Floats:
    """T(x_a): when source token a ends; 0 for a = 0, when nothing of the source was read.

    Source token X_c + 1 is the first of chunk c. Over the source tokens of all rows, end to end, the number of such
    first tokens up to a tells the chunk of a. As a(t) ≤ t ≤ |y|, the first |y| source tokens of a row are enough.
    """
    rows, length = a.shape
    first = known.take(begins) + new.take(begins)  # 0 for what was written before anything was read
    near = np.flatnonzero(first <= length)
    begins, first = begins.take(near), first.take(near)
    place = (begins // length) * (length + 1) + first.astype(np.int64)
    is_first = np.zeros(rows * (length + 1), dtype=bool)
    is_first[place] = True
    asked = a.astype(np.int64)
    asked += np.arange(0, rows * (length + 1), length + 1)[:, None]
    at = begins.take(np.cumsum(is_first).take(asked) - 1)
    end: Floats = np.minimum(read.take(at), (read - waits).take(at) + piece * (a - known.take(at)))
    return end


def cut(g: Ragged, times: Ragged, durations: Ragged, piece: float) -> tuple[Ragged, Ragged, Ragged]:
    """Delays, times and lengths of the tokens that the output speech is cut into.

    What was put out at one time after one delay is one chunk of sound. A silent one keeps an entry, of length 0.
    """
    rows = np.repeat(np.arange(len(g)), g.lengths)
    same = [np.diff(column, prepend=-np.inf) <= NOISE * piece for column in (rows, g.values, times.values)]
    begins = np.flatnonzero(~np.logical_and.reduce(same))
    sound = np.add.reduceat(durations.values, begins) if len(begins) else durations.values
    found = count(sound, piece)
    if found.sum() > MANY:
        raise MetricError(f"{sound.sum():.4g} ms of output speech make more tokens than can be handled at once")
    sound, tokens = np.where(found > 0, sound, 0.0), np.maximum(found, 1.0).astype(np.int64)
    place = np.arange(tokens.sum()) - np.repeat(np.cumsum(tokens) - tokens, tokens)
    lasts = np.minimum(np.repeat(sound, tokens) - piece * place, piece)
    lengths = np.bincount(rows[begins], weights=tokens, minlength=len(g))
    entry = np.repeat(begins, tokens)
    made = [Ragged.from_lengths(v, lengths) for v in (g.values[entry], times.values[entry], lasts)]
    return made[0], made[1], made[2]


def token_delays(g: Ragged, times: Ragged, durations: Ragged | None, piece: float) -> Floats:
    """ATD of each segment of speech: into text, or, with durations, into speech."""
    if durations is None:
        return g.by_row(lambda g, times: mean_delay(g, times, 0.0, None, piece), times)
    g, times, lasts = cut(g, times, durations, piece)
    return g.by_row(lambda g, times, lasts: mean_delay(g, times, lasts, lasts > 0, piece), times, lasts)


def atd(
    delays: Delays,
    *,
    source_length: float | None = None,
    unit: str = "token",
    durations: Delays | None = None,
    piece: float = PIECE,
) -> float:
    r"""Average Token Delay (Kano et al., 2022): how long after its source token each target token ends.

    $$ \mathrm{ATD} = \frac{1}{|y|} \sum_{t} T(y_t) - T(x_{a(t)}), \qquad
       a(t) = \min\{t - \max(0,\, Y_c - X_c),\; X_{c+1}\} $$

    where $T$ is when a token ends, $c$ the chunk (run of equal delays) of $t$, and $X_c$ and $Y_c$ are the source and
    target tokens before it. A target token begins when its chunk has been read and the token before it has ended.
    Unlike in AL and DAL, a long translation is late at its end even if nothing was read in between.

    Args:
        delays: source consumed before each target token, non-decreasing, in source units.
        source_length: |x|; plays no part unless it is 0, and is taken so that every metric can be called alike.
        unit: "token": text, where every token on both sides lasts 1; or "ms": speech, where each chunk is cut into
            tokens of `piece` ms and one remainder, into text, whose tokens last 0.
        durations: for speech output, how many ms of it follow each delay; it is cut into tokens like the source.
        piece: length of a token of speech, in ms.

    Returns:
        Mean delay in source units; NaN when nothing was written (or, with durations, no sound), or the source is empty.

    Example:
        >>> atd([3, 4, 4, 4]), atd([4, 4, 4, 4, 5])                                  # wait-3; the antagonist of AL
        (3.0, 4.0)
        >>> atd([1000, 1000, 1900], unit="ms")                                       # (700 + 400 + 1000) / 3
        700.0
        >>> atd([1000, 2000], unit="ms", durations=[400, 700])                       # five tokens, to 2700 ms
        1240.0

    References:
        arXiv:2211.13173; arXiv:2311.14353.
    """
    s = as_sentence(delays, 1.0 if source_length is None else source_length, unit=unit)
    if not 1 <= piece <= LONGEST:
        raise MetricError(f"piece must be a number of ms, 1 or more and {LONGEST} or less, but got {piece}")
    if durations is not None and unit != "ms":
        raise UsageError("durations are in ms, and so must the delays be: unit='ms'")
    lasts = None if durations is None else _sound(durations, len(delays))
    if s is None:
        return math.nan
    if unit == "token":
        return float(mean_delay(s.g, s.g, 1.0, None, 1.0)[0])
    g = Ragged.from_rows(s.g)
    with np.errstate(invalid="ignore"):
        return float(token_delays(g, g, lasts, piece)[0])


def _sound(durations: Delays, delays: int) -> Ragged:
    """The durations of one sentence, checked."""
    try:
        lasts = np.array([as_float(v) for v in durations])
    except (TypeError, ValueError) as error:
        raise DataError(Fault("bad-column", f"durations: {error}")) from None
    if len(lasts) != delays:
        raise DataError(Fault("column-count", f"{len(lasts)} durations, {delays} delays"))
    wrong = ~((lasts >= 0) & np.isfinite(lasts))
    if wrong.any():
        place = int(wrong.argmax())
        raise DataError(Fault("impossible-step", f"a duration of {number(lasts[place])} ms", token=place + 1))
    return Ragged.from_rows([lasts])


@register(
    "ATD",
    needs={"durations"},
    params=(Param("piece", int(PIECE), "length of a token of speech, in ms", (), float, least=1, most=LONGEST),),
    summary="Average Token Delay: how long after its source token each target token ends.",
    formula="ATD = mean_t [T(y_t) − T(x_{a(t)})], a(t) = min(t − max(0, target − source tokens before the chunk), "
    "source tokens read), T(y_t) = max(time its chunk was read, T(y_{t−1})) + its duration",
    latex=r"\mathrm{ATD} = \frac{1}{|y|} \sum_{t=1}^{|y|} \left[ T(y_t) - T(x_{a(t)}) \right], \qquad"
    r" a(t) = \min\{t - \max(0,\, Y_c - X_c),\; X_{c+1}\}, \quad"
    r" T(y_t) = \max\{g(t),\; T(y_{t-1})\} + d(y_t)",
    paper="Kano et al. 2022 (arXiv:2211.13173)",
    bibtex="""\
@inproceedings{kano-etal-2023-average,
  title     = {Average Token Delay: A Latency Metric for Simultaneous Translation},
  author    = {Kano, Yasumasa and Sudoh, Katsuhito and Nakamura, Satoshi},
  booktitle = {Proceedings of Interspeech 2023},
  year      = {2023},
  doi       = {10.21437/Interspeech.2023-933}
}""",
    edge_cases=(
        EMPTY,
        "A chunk c is a run of equal delays. X_c and Y_c are the source and target tokens before it, X_{c+1} the "
        "source tokens up to its end, and T is when a token ends.",
        "Text: every token lasts 1, on both sides. Speech: the new sound of each chunk is cut into pieces of 300 ms "
        "and one remainder, each a token. Text written beside speech lasts 0; output speech lasts as long as it plays.",
        "However short, a remainder is a token: 600.0001 ms are three. Only a billionth of a token is taken for "
        "rounding, so that 0.1 s + 0.2 s, which a computer makes 300.00000000000006 ms, are one; delays "
        "that differ by as little are equal.",
        "Nothing read yet (g ≤ 0): a(t) = 0, and T(x_0) = 0, when the segment begins; delays may be negative.",
        "Source tokens are counted in what was read: |x| plays no part, and delays may be beyond it.",
        "`clock=elapsed`: target tokens on the elapsed clock, source tokens when they were spoken.",
        "SimulEval's ATD_CA, unlike its other `_CA` metrics, lets the system compute while it listens: T(y_t) = "
        "max(g(t), T(y_{t−1})) + what it computed for t. So `ATD_CA` is `ATD(clock=queue)` here.",
        "From a log, SimulEval takes all output for text written beside speech: right for speech → text; but text → "
        "text gets 0 where 3 is right (wait-3), and the duration of output speech is lost. No convention repeats that.",
        "Output speech: what follows equal delays is one chunk, played without a break; a chunk without sound has no "
        "token. No sound at all: undefined. `empty=source` charges one token of full length.",
        "`mean=token` weighs a segment by its delays, not by the pieces of its sound.",
    ),
    undefined="no sound was put out",
)
def _atd(s: Schedule, *, piece: float) -> Floats:
    g, times, durations = s.ideal, s.g, s.durations
    if s.run.unit == "token":
        if durations is not None:
            raise MetricError("the source is counted in tokens and the output speech in milliseconds")
        return g.by_row(lambda g: mean_delay(g, g, 1.0, None, 1.0))
    if durations is not None:
        charged = np.isnan(durations.values)
        durations = Ragged(np.where(charged, piece, durations.values), durations.offsets)
    return token_delays(g, times, durations, piece)


alias("ATD_CA", "ATD(clock=queue)")
