# SPDX-License-Identifier: Apache-2.0
"""Average Token Delay (Kano et al., 2022).

ATD compares every target token with a source token: how long after the source token ends does the target token end? So
both sides are divided into tokens, and tokens have durations. A token of text lasts 1. Speech is divided chunk by chunk
into pieces of 300 ms and one remainder, and each is a token. Text that is written for speech takes no time.
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
"""Length of a token of speech, in ms."""

LONGEST = 60_000
"""The longest token that can be chosen, in ms: a minute. With far longer ones, a wait would be lost in `NOISE`."""

MANY = 1e8
"""The largest number of tokens that are held in memory: about a year of speech."""

NOISE = 1e-9
"""The part of a token that counts as rounding, as in 0.1 s + 0.2 s = 300.00000000000006 ms, not as a token."""


def count(lengths: Floats, piece: float) -> Floats:
    """The number of tokens in chunks of these lengths: pieces of one length, and a remainder."""
    tokens: Floats = lengths / piece
    tokens -= NOISE
    np.maximum(tokens, 0.0, out=tokens)
    return np.ceil(tokens, out=tokens)


def mean_delay(g: Floats, times: Floats, durations: Floats | float, counted: Bools | None, piece: float) -> Floats:
    """ATD: the mean over t of T(y_t) − T(x_a(t)), in a fixed number of passes over the rectangle.

    Args:
        g: delays on the ideal clock: source tokens are timed by when they were spoken.
        times: the earliest time at which each target token can begin.
        durations: the duration of each target token.
        counted: which entries are tokens (None: all). A chunk without sound has an entry, for its source, but no token.
        piece: the duration of a source token.
    """
    read = np.maximum(g, 0.0)  # nothing of a segment is read before it begins
    waits = kernels.waits(read)
    tokens = count(waits, piece)
    targets = np.arange(1.0, g.shape[1] + 1.0) if counted is None else _counts(counted)
    before = targets - (1.0 if counted is None else counted)
    delays_count_tokens = piece == 1.0 and np.array_equal(tokens, waits)
    sources = read if delays_count_tokens else _counts(tokens)
    has_read = tokens > 0
    chunk = has_read.copy()  # a chunk begins where source was read, and at the beginning of a segment
    chunk[:, 0] = True
    begins = np.flatnonzero(chunk)
    sizes = np.diff(begins, append=g.size)
    sources_before = sources - tokens
    # by how many tokens the target is ahead of the source before the chunk
    ahead = np.repeat(np.maximum(before - sources_before, 0.0).take(begins), sizes).reshape(g.shape)
    a = np.minimum(targets - ahead, sources)
    source_ends = a if delays_count_tokens else _source_ends(a, begins, has_read, sources_before, read, waits, piece)
    # T(y_t): one token after the other, none before its time
    ends = kernels.queue(times, durations) if isinstance(durations, np.ndarray) else kernels.paced(times, durations)
    delays = ends - source_ends if counted is None else np.where(counted, ends - source_ends, 0.0)
    mean: Floats = delays.sum(axis=1) / targets[..., -1]
    return mean


def _counts(counts: npt.NDArray[np.generic]) -> Floats:
    """The cumulative sum along each row, of whole numbers: one exact sum over all rows, less what came before a row."""
    total = np.cumsum(counts, dtype=np.int64).reshape(counts.shape)
    return (total - (total[:, :1] - counts[:, :1].astype(np.int64))).astype(np.float64)


def _source_ends(
    a: Floats, begins: Ints, has_read: Bools, sources_before: Floats, read: Floats, waits: Floats, piece: float
) -> Floats:
    """T(x_a): when source token a ends; 0 for a = 0, when nothing of the source was read.

    Source token X_c + 1 is the first of chunk c. With the source tokens of all rows end to end, the chunk of a is the
    number of such first tokens up to a. As a(t) ≤ t ≤ |y|, the first |y| source tokens of a row are enough.
    """
    rows, length = a.shape
    first = sources_before.take(begins) + has_read.take(begins)  # 0 for what was written before anything was read
    within = np.flatnonzero(first <= length)
    begins, first = begins.take(within), first.take(within)
    is_first = np.zeros(rows * (length + 1), dtype=bool)
    is_first[(begins // length) * (length + 1) + first.astype(np.int64)] = True
    index = a.astype(np.int64)
    index += np.arange(0, rows * (length + 1), length + 1)[:, None]
    begin = begins.take(np.cumsum(is_first).take(index) - 1)
    end: Floats = np.minimum(read.take(begin), (read - waits).take(begin) + piece * (a - sources_before.take(begin)))
    return end


def cut(g: Ragged, times: Ragged, durations: Ragged, piece: float) -> tuple[Ragged, Ragged, Ragged]:
    """Delays, times and durations of the tokens that the output speech is divided into.

    Speech with the same delay and the same time is one chunk. A chunk without sound keeps an entry, of duration 0.
    """
    rows = np.repeat(np.arange(len(g)), g.lengths)
    unchanged = [np.diff(column, prepend=-np.inf) <= NOISE * piece for column in (rows, g.values, times.values)]
    begins = np.flatnonzero(~np.logical_and.reduce(unchanged))
    sound = np.add.reduceat(durations.values, begins) if len(begins) else durations.values
    counts = count(sound, piece)
    if counts.sum() > MANY:
        raise MetricError(f"{sound.sum():.4g} ms of output speech make more tokens than can be handled at once")
    sound, entries = np.where(counts > 0, sound, 0.0), np.maximum(counts, 1.0).astype(np.int64)
    index = np.arange(entries.sum()) - np.repeat(np.cumsum(entries) - entries, entries)  # of a token in its chunk
    token_durations = np.minimum(np.repeat(sound, entries) - piece * index, piece)
    lengths = np.bincount(rows[begins], weights=entries, minlength=len(g))
    chunk = np.repeat(begins, entries)
    columns = [Ragged.from_lengths(v, lengths) for v in (g.values[chunk], times.values[chunk], token_durations)]
    return columns[0], columns[1], columns[2]


def token_delays(g: Ragged, times: Ragged, durations: Ragged | None, piece: float) -> Floats:
    """ATD of each segment of speech: into text, or, with durations, into speech."""
    if durations is None:
        return g.by_row(lambda g, times: mean_delay(g, times, 0.0, None, piece), times)
    g, times, durations = cut(g, times, durations, piece)
    return g.by_row(lambda g, times, lengths: mean_delay(g, times, lengths, lengths > 0, piece), times, durations)


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
    Unlike in AL and DAL, a long translation ends late even if nothing was read in between.

    Args:
        delays: source consumed before each target token, non-decreasing, in source units.
        source_length: |x|. ATD does not depend on it unless it is 0; it is accepted because other metrics need it.
        unit: "token": text to text, every token lasts 1. "ms": speech to text; each chunk of the source is divided
            into tokens of `piece` ms and one remainder, and target tokens last 0.
        durations: for output speech, the ms of speech after each delay; it is divided into tokens like the source.
        piece: length of a token of speech, in ms.

    Returns:
        Mean delay in source units; NaN when nothing was written (or, with durations, no sound), or the source is empty.

    Example:
        >>> atd([3, 4, 4, 4]), atd([4, 4, 4, 4, 5])                              # wait-3; the schedule that lowers AL
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
        raise UsageError("durations are in ms, so the delays must be in ms, too: give unit='ms'")
    checked = None if durations is None else _checked(durations, len(delays))
    if s is None:
        return math.nan
    if unit == "token":
        return float(mean_delay(s.g, s.g, 1.0, None, 1.0)[0])
    g = Ragged.from_rows(s.g)
    with np.errstate(invalid="ignore"):
        return float(token_delays(g, g, checked, piece)[0])


def _checked(durations: Delays, delays: int) -> Ragged:
    """The durations of one sentence.

    Raises:
        DataError: one is no number or negative, or there are more or fewer than delays.
    """
    try:
        values = np.array([as_float(v) for v in durations])
    except (TypeError, ValueError) as error:
        raise DataError(Fault("bad-column", f"durations: {error}")) from None
    if len(values) != delays:
        raise DataError(Fault("column-count", f"{len(values)} durations, {delays} delays"))
    wrong = ~((values >= 0) & np.isfinite(values))
    if wrong.any():
        index = int(wrong.argmax())
        raise DataError(Fault("impossible-step", f"a duration of {number(values[index])} ms", token=index + 1))
    return Ragged.from_rows([values])


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
        "source tokens up to its end, and T is the time at which a token ends.",
        "Text: every token lasts 1, on both sides. Speech: the new sound of each chunk is divided into pieces of 300 ms"
        " and one remainder, each a token. Text written for speech lasts 0; output speech lasts as long as it plays.",
        "A remainder is a token, however short: 600.0001 ms are three tokens. Only a billionth of a token counts as "
        "rounding, so that 0.1 s + 0.2 s, which is 300.00000000000006 ms in floating point, are one token. Delays that "
        "differ by as little are equal.",
        "Nothing read yet (g ≤ 0): a(t) = 0 and T(x_0) = 0, the beginning of the segment. Delays may be negative.",
        "Source tokens are counted in what was read: ATD does not depend on |x|, and delays may exceed it.",
        "`clock=elapsed`: target tokens on the elapsed clock, source tokens at the time they were spoken.",
        "SimulEval's ATD_CA, unlike its other `_CA` metrics, lets the system compute while it listens: T(y_t) = "
        "max(g(t), T(y_{t−1})) + computing time of t. So `ATD_CA` is `ATD(clock=queue)` here.",
        "From a log, SimulEval treats all output as text written for speech. That is right for speech → text; but text "
        "→ text gets 0 where 3 is right (wait-3), and the duration of output speech is lost. No convention does so.",
        "Output speech: what follows equal delays is one chunk, played without a break; a chunk without sound has no "
        "token. No sound at all: undefined. `empty=source` charges one token of full length.",
        "`mean=token` weights a segment by its number of delays, not by the pieces of its sound.",
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
