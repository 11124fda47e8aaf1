# SPDX-License-Identifier: Apache-2.0
"""Clocks: at what time each target token was there, in the time of the source.

    ideal       when its source had been read: g(t), as if computing took no time (elsewhere: CU, computation-unaware)
    elapsed     the log's own elapsed time (elsewhere: CA). SimulEval adds all computation so far to every delay, so
                that computing never overlaps listening, and the lag grows without bound on long input
    queue       what a listener would see: a step starts when its source has arrived and the step before has finished
    omnisteval  elapsed times corrected as OmniSTEval's `--fix_simuleval_emission_ca` does it
    fbk         elapsed times corrected as FBK-fairseq's StreamLAAL does it

The last two are there to reproduce published numbers: they charge a token the computation of its own step, but no
backlog from the steps before.

Segments cut from a stream no longer tell what was computed before them. What cuts them works out the last three clocks
on the whole recording first, and the segments keep the times of their tokens as columns (`queue_times`, …).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lagging.errors import MetricError
from lagging.metrics import kernels
from lagging.ragged import Floats, Ragged
from lagging.run import TIMES, Run

__all__ = ["CLOCKS", "clock", "steps"]

ROUNDING = 1.0
"""By how many ms elapsed − delay may shrink, be it at once or little by little, and still be SimulEval's."""


def steps(run: Run) -> tuple[Ragged, Ragged]:
    """Arrival and computing time, in ms, of every step that the system took.

    From the log where it says; else a step per target token, whose computing time is what elapsed − delay has grown by.
    SimulEval's elapsed times are delays plus all computation so far, so that this is exact but for steps that wrote
    nothing: their computing time is charged to the step that wrote next.

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
    spent = _whole(run).by_token(lambda e, g: e - g, run.delays)
    so_far = spent.by_token(lambda s: np.maximum.accumulate(np.maximum(s, 0.0), axis=1))  # what rounding took back
    if (so_far.values - spent.values > ROUNDING).any():
        raise MetricError(
            "elapsed − delay shrinks, so that these elapsed times do not add up computing time as SimulEval's do\n"
            "  fix: ask for clock=elapsed, or score a log that has the computing time of each step."
        )
    return run.delays, so_far.by_token(lambda s: np.diff(s, axis=1, prepend=0.0))


def _elapsed(run: Run) -> Ragged:
    if run.elapsed is None:
        raise MetricError("it needs elapsed times, and there are none")
    return run.elapsed


def _whole(run: Run) -> Ragged:
    """Elapsed times from the beginning of the recording on, without which no computing time can be had from them."""
    if run.seg != "none":
        raise MetricError(
            "the computing time of a step cannot be had from segments cut out of a stream\n"
            "  fix: score the log of the whole recordings; `--segmentation` and `lagging resegment` cut it once the "
            "time of every token is known."
        )
    if run.compute is not None:
        raise MetricError(
            "it corrects elapsed times that add up all computing, as SimulEval's do; this log has that of each step\n"
            "  fix: ask for clock=queue or clock=elapsed."
        )
    return _elapsed(run)


def _queue(run: Run) -> Ragged:
    arrivals, compute = steps(run)
    finish = arrivals.by_token(kernels.queue, compute)
    if run.arrivals is None or run.compute is None:
        return finish
    if run.steps is None:
        raise MetricError("it needs to know which step wrote which token (`steps`), and the log does not say")
    return finish.pick(run.steps)


def _differenced(e: Floats, g: Floats) -> Floats:
    """e(t) − e(t−1) + g(t−1): the delay, and the computation since the token before."""
    corrected: Floats = np.diff(e, axis=1, prepend=0.0) + g - np.diff(g, axis=1, prepend=0.0)
    return corrected


def _by_omnisteval(e: Floats, g: Floats) -> Floats:
    return np.maximum.accumulate(_differenced(e, g), axis=1)


def _by_fbk(e: Floats, g: Floats) -> Floats:
    """A token with the elapsed time of the one before cost as much as that."""
    place = np.arange(e.shape[1])
    step = np.maximum.accumulate(np.where(np.diff(e, axis=1, prepend=-np.inf) > 0, place, 0), axis=1)
    cost: Floats = np.take_along_axis(_differenced(e, g) - g, step, axis=1)
    return g + cost


CLOCKS: dict[str, Callable[[Run], Ragged]] = {
    "ideal": lambda run: run.delays,
    "elapsed": _elapsed,
    "queue": _queue,
    "omnisteval": lambda run: _whole(run).by_token(_by_omnisteval, run.delays),
    "fbk": lambda run: _whole(run).by_token(_by_fbk, run.delays),
}


def clock(run: Run, name: str) -> Ragged:
    """The time of every target token on the clock of that name.

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
    if name != "ideal" and run.unit != "ms":
        raise MetricError(
            "the source is counted in tokens and elapsed time in milliseconds\n"
            "  fix: ask for the ideal clock, or score a log of speech input."
        )
    kept: Ragged | None = getattr(run, TIMES[name]) if name in TIMES else None
    return CLOCKS[name](run) if kept is None else kept
