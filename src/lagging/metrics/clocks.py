# SPDX-License-Identifier: Apache-2.0
"""Clocks: the time at which each target token was written, in the time of the source.

    ideal       when its source had been read: g(t), as if computing took no time (elsewhere: CU, computation-unaware)
    elapsed     the log's own elapsed time (elsewhere: CA). SimulEval adds all computation so far to every delay, so
                that computing never overlaps listening, and the lag grows without bound on long input
    queue       what a listener would see: a step starts when its source has arrived and the step before has finished
    omnisteval  elapsed times corrected as OmniSTEval's `--fix_simuleval_emission_ca` does it
    fbk         elapsed times corrected as FBK-fairseq's StreamLAAL does it since its version 2.0
    fbk1        elapsed times corrected as its earlier versions did it; differs from fbk only where recordings are cut
    first       when the token was first shown, even if it was erased in between and came back
    stable      since when it was there for good: the ideal clock, under the name that is used beside `first`

omnisteval, fbk and fbk1 exist to reproduce published numbers: they charge a token the computation of its own step, but
no backlog from the steps before. Elapsed times that count only their own step, as simulstream's do, need no
correction.

Rounding puts no token before its delay, and the tokens of one step have the same time.

Segments cut from a stream do not show what was computed before them. So queue and these three are computed on the whole
recording before it is cut, and the segments keep the times of their tokens as columns (`queue_times`, …).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from lagging.data.checks import LONGEST
from lagging.data.columns import first_shown
from lagging.data.ragged import Floats, Ragged
from lagging.data.run import TIMES, Run
from lagging.errors import MetricError
from lagging.metrics import kernels

__all__ = ["CLOCKS", "clock", "counts_own_step", "find_cumulative_elapsed", "steps"]

ROUNDING = 1.0
"""By how many ms elapsed − delay may decrease, at once or in several steps, and still count as SimulEval's."""


def steps(run: Run) -> tuple[Ragged, Ragged]:
    """Arrival and computing time, in ms, of every step that the system took.

    They are taken from the log if it has them. Otherwise every target token is a step, and its computing time is the
    increase of elapsed − delay. SimulEval's elapsed times are delays plus all computation so far, so this is exact
    except for steps that wrote nothing: their computing time is charged to the next step that wrote.

    Raises:
        MetricError: the log has neither, or its elapsed times do not add up as SimulEval's do.

    Example:
        >>> run = Run.from_delays([[500, 1000]], elapsed=[[600, 1300]], source_length=[1000], unit="ms")
        >>> arrivals, compute = steps(run)
        >>> compute.tolist()
        [[100.0, 200.0]]
    """
    if run.arrivals is not None and run.compute is not None:
        return run.arrivals, run.compute
    if run.elapsed is None:
        raise MetricError("it needs elapsed times, or the computing time of each step, and there are none")
    spent = _elapsed_uncut(run).by_token(lambda e, g: e - g, run.delays)
    so_far = _risen(spent)
    if (so_far.values - spent.values > ROUNDING).any():
        raise MetricError(
            "elapsed − delay shrinks, so these elapsed times do not add up computing time as SimulEval's do\n"
            "  fix: ask for clock=elapsed, or score a log that has the computing time of each step."
        )
    return run.delays, so_far.by_token(lambda s: np.diff(s, axis=1, prepend=0.0))


def _risen(spent: Ragged) -> Ragged:
    """Computing time so far, which never decreases: differences due to rounding are removed."""
    return spent.by_token(lambda s: np.maximum.accumulate(np.maximum(s, 0.0), axis=1))


LONG, SECOND = LONGEST["ms"], 1000.0
"""In ms. A source of this length or more is a recording, not a sentence."""


def find_cumulative_elapsed(run: Run) -> list[str]:
    """The recordings whose elapsed times add up all computing since their beginning, as SimulEval's do.

    A recording is listed if it is long (`LONG`) and its elapsed − delay never decreases and grows by a second or more.

    Example:
        >>> run = Run.from_delays([[500, 90_000]], elapsed=[[600, 150_000]], source_length=[180_000], unit="ms")
        >>> find_cumulative_elapsed(run)
        ['0']
    """
    if run.elapsed is None or run.unit != "ms" or (run.seg == "none" and not (run.source_length >= LONG).any()):
        return []
    if run.compute is not None and (run.steps is None or counts_own_step(run)):
        return []  # without the steps of tokens, nothing is known
    ids = [str(name) for name in run.id.tolist()]
    documents = [""] * len(run) if run.document is None else [str(name) for name in run.document.tolist()]
    names = ids if run.seg == "none" else documents
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    recording = np.array([numbers[name] for name in names], dtype=np.int64)
    order = np.lexsort((np.zeros(len(run)) if run.offset is None else run.offset, recording))
    spent = run.elapsed.by_token(lambda e, g: e - g, run.delays).take(order)
    sizes = np.bincount(recording[order], spent.lengths, minlength=len(numbers)).astype(np.int64)
    joined = Ragged.from_lengths(spent.values, sizes)
    so_far = _risen(joined)
    shrinks = joined.rows_with(np.flatnonzero(so_far.values - joined.values > ROUNDING))
    grows = joined.by_row(lambda s: s[:, -1] - s[:, 0]) >= SECOND
    long = np.bincount(recording, run.source_length, minlength=len(numbers)) >= LONG
    return [name for name, adds in zip(numbers, grows & long & ~shrinks, strict=True) if adds]


def _elapsed(run: Run) -> Ragged:
    if run.elapsed is None:
        raise MetricError("it needs elapsed times, and there are none")
    return run.elapsed


def _elapsed_uncut(run: Run) -> Ragged:
    """Elapsed times since the beginning of the recording; computing times cannot be found from any others."""
    if run.seg != "none" and run.elapsed is not None:
        raise MetricError(
            "the computing time of a step cannot be found from segments cut out of a stream, and these have no times "
            "of this clock\n  fix: score the log of the whole recordings with `--segmentation`, which cuts it once "
            "the time of every token is known; or ask for clock=elapsed, which the log of the segments has."
        )
    return _elapsed(run)


def counts_own_step(run: Run) -> bool:
    """Whether elapsed times count only the computing of their own step, as simulstream's do; SimulEval's add up.

    This is known only of a log that has the computing time of each step; otherwise False.
    """
    if run.elapsed is None or run.compute is None or run.steps is None:
        return False
    spent = run.elapsed.values - run.delays.values
    return bool((np.abs(spent - run.compute.pick(run.steps).values) <= ROUNDING).all())


def _queue(run: Run) -> Ragged:
    arrivals, compute = steps(run)
    finish = arrivals.by_token(kernels.queue, compute)
    if run.arrivals is None or run.compute is None:
        return finish
    if run.steps is None:
        raise MetricError("it needs to know which step wrote which token, and the log has no `steps`")
    return finish.pick(run.steps)


NOISE = 1e-6
"""A nanosecond, in ms: a time that is less than this before the delay is the delay, but for rounding."""


def _differenced(e: Floats, g: Floats) -> Floats:
    """e(t) − e(t−1) + g(t−1): the delay and the computation since the token before, in the order of other tools."""
    corrected: Floats = np.diff(e, axis=1, prepend=0.0)
    corrected[:, 1:] += g[:, :-1]
    return np.where((g - NOISE < corrected) & (corrected < g), g, corrected)


def _by_omnisteval(e: Floats, g: Floats) -> Floats:
    return np.maximum.accumulate(_differenced(e, g), axis=1)


def _omnisteval(run: Run) -> Ragged:
    e = _elapsed_uncut(run)
    if counts_own_step(run):
        raise MetricError(
            "it corrects elapsed times that add up all computing, as SimulEval's do; in this log each has that of its "
            "own step alone\n  fix: ask for clock=queue, clock=elapsed or clock=fbk."
        )
    return e.by_token(_by_omnisteval, run.delays)


def _by_fbk(e: list[float], g: list[float], begin: list[float]) -> Iterator[float]:
    """The corrected times of one recording. A token with the elapsed time of the one before has the same cost.

    From version 2.0 on, that cost is what is left of it after both times of the token before have been raised to the
    beginning of its segment.
    """
    time = 0.0
    for t, delay in enumerate(g):
        if t == 0:
            time = e[t]
        elif e[t] == e[t - 1]:
            time = max(time, begin[t - 1]) + (delay - max(g[t - 1], begin[t - 1]))
        else:
            time = e[t] - e[t - 1] + g[t - 1]
        if delay - NOISE < time < delay:
            time = delay
        yield time


def _fbk(run: Run, begin: Ragged | None) -> Ragged:
    e = _elapsed_uncut(run)
    if counts_own_step(run):
        return e
    begin = Ragged(np.zeros(len(e.values)), e.offsets) if begin is None else begin
    rows = zip(e.tolist(), run.delays.tolist(), begin.tolist(), strict=True)
    return Ragged.from_rows([list(_by_fbk(*row)) for row in rows])


def _first(run: Run) -> Ragged:
    if (times := first_shown(run)) is None:
        raise MetricError(
            "it needs the time at which each token was first shown, and the log does not have it (`first_times`)\n"
            "  fix: score the log of a system that revises what it wrote: a stream, simulstream's or SLTev's."
        )
    return times


CLOCKS: dict[str, Callable[[Run, Ragged | None], Ragged]] = {
    "ideal": lambda run, _: run.delays,
    "elapsed": lambda run, _: _elapsed(run),
    "queue": lambda run, _: _queue(run),
    "omnisteval": lambda run, _: _omnisteval(run),
    "fbk": _fbk,
    "fbk1": lambda run, _: _fbk(run, None),
    "first": lambda run, _: _first(run),
    "stable": lambda run, _: run.delays,
}


def clock(run: Run, name: str, begin: Ragged | None = None) -> Ragged:
    """The time of every target token on the clock of that name.

    Args:
        run: the Run.
        name: the name of the clock.
        begin: when the segment of each token begins, if the recordings are to be cut; the clock fbk depends on it.

    Raises:
        MetricError: the Run does not have the times that the clock needs.

    Example:
        >>> run = Run.from_delays([[400, 400, 800, 800]], elapsed=[[500, 500, 1100, 1100]], source_length=[800],
        ...                       unit="ms")
        >>> clock(run, "queue").tolist(), clock(run, "fbk").tolist()
        ([[500.0, 500.0, 1000.0, 1000.0]], [[500.0, 500.0, 1000.0, 1000.0]])
        >>> cut = Run.from_delays([[-200, 200]], queue_times=[[0, 400]], source_length=[800], unit="ms", seg="given")
        >>> clock(cut, "queue").tolist()
        [[0.0, 400.0]]
    """
    if name not in ("ideal", "first", "stable") and run.unit != "ms":
        raise MetricError(
            "the source is counted in tokens and elapsed time in milliseconds\n"
            "  fix: ask for the ideal clock, or score a log of speech input."
        )
    kept: Ragged | None = getattr(run, TIMES[name]) if name in TIMES else None
    return CLOCKS[name](run, begin) if kept is None else kept
