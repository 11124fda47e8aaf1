# SPDX-License-Identifier: Apache-2.0
r"""The equations, each once, as NumPy arithmetic on a rectangle: rows are segments of the same target length.

Arguments, in the paper's notation (Cherry & Foster 2019):

    g           delays g(t), shape (segments, |y|); times of simulstream's elapsed clock may decrease along a row
    x           |x|, source length, shape (segments, 1)
    y           |y| as it enters γ = |y|/|x|, shape (segments, 1); not always the length of the row
    source_end  the smallest delay at which the source counts as fully read: |x|, less a tolerance for milliseconds
    lag         ℓ(t), shaped like g
    tau         τ, the number of tokens that AL averages, shape (segments, 1)
    d           cost of writing one target token, in source units, shape (segments, 1)

A sentence function passes one row, a metric over a Run all rows of one length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Floats

__all__ = [
    "al",
    "al_y",
    "ap",
    "budget",
    "carried",
    "cutoff",
    "cw",
    "dal",
    "effective_delays",
    "finish_times",
    "inside",
    "lags",
    "over_budget",
    "paced",
    "queue",
    "read",
    "read_runs",
    "running",
    "translation_lag",
    "waits",
]


def _before(g: Floats) -> Floats:
    """The number of target tokens before each t: t − 1."""
    return np.arange(g.shape[1], dtype=np.float64)


def lags(g: Floats, x: Floats, y: Floats) -> Floats:
    """ℓ(t) = g(t) − (t−1)/γ, rounded once: products of whole numbers are exact, so equal lags are equal floats."""
    lag: Floats = g * y
    lag -= _before(g) * x
    lag /= y
    return lag


def budget(g: Floats, d: Floats) -> Floats:
    """g(t) − (t−1)d: by how much the source read before t exceeds the budget of t−1 writes at cost d."""
    over: Floats = g - _before(g) * d
    return over


def ap(g: Floats, x: Floats, y: Floats) -> Floats:
    """AP (eq. 1): Σ g(t) / (|x|·|y|)."""
    mean: Floats = g.sum(axis=1) / (x * y)[:, 0]
    return mean


def translation_lag(g: Floats, x: Floats) -> Floats:
    """Σ max(0, g(t) − t·|x|/|y|): by how much the tokens are later than the source that they stand for, if at all."""
    y = g.shape[1]
    late: Floats = np.maximum(g - np.arange(1, y + 1) * x / y, 0.0).sum(axis=1)
    return late


def waits(g: Floats) -> Floats:
    """CW(t) (eq. 2): g(t) − g(t−1), with g(0) = 0."""
    wait = np.empty_like(g, order="C")
    # subtract over all rows end to end; the first token of each row is set afterwards
    np.subtract(g.reshape(-1)[1:], g.reshape(-1)[:-1], out=wait.reshape(-1)[1:])
    wait[:, 0] = g[:, 0]
    return wait


def read_runs(g: Floats) -> Floats:
    """The number of runs of reads: the number of t with CW(t) > 0."""
    runs: Floats = np.count_nonzero(waits(g) > 0, axis=1).astype(np.float64)
    return runs


def read(g: Floats) -> Floats:
    """The source read in all runs: g(|y|) − min(g(1), 0).

    A segment cut from a stream may have its first token before its source begins; then reading begins at that token.
    Times that decrease along a row (simulstream's elapsed clock) do not reduce what was read.
    """
    amount: Floats = g[:, -1] - np.minimum(g[:, 0], 0.0) - np.minimum(waits(g)[:, 1:], 0.0).sum(axis=1)
    return amount


def cw(g: Floats) -> Floats:
    """Mean of CW(t) over the t with CW(t) > 0: source read ÷ number of read-runs; NaN if nothing was read."""
    runs = read_runs(g)
    mean: Floats = read(g) / np.where(runs > 0, runs, np.nan)
    return mean


def cutoff(g: Floats, source_end: Floats) -> Floats:
    """τ: the first t (from 1) with g(t) ≥ |x|; |y| if the source is never fully read (the paper's Table 6)."""
    tau: Floats = np.minimum(_leading(g, source_end) + 1.0, g.shape[1])
    return tau


def _leading(g: Floats, source_end: Floats) -> npt.NDArray[np.int64]:
    """The number of leading tokens with g(t) < |x|."""
    past = ~(g < source_end)
    first = past.argmax(axis=1)
    any_past = past[np.arange(len(g)), first]  # argmax is 0 where no token is past the end
    count: npt.NDArray[np.int64] = np.where(any_past, first, g.shape[1])
    return count


def al(lag: Floats, tau: Floats) -> Floats:
    """AL (eq. 3): (1/τ) Σ_{t≤τ} ℓ(t). With the number of tokens inside the source as τ, it is YAAL."""
    mean: Floats = (lag * (_before(lag) < tau)).sum(axis=1) / tau[:, 0]
    return mean


def al_y(lag: Floats) -> Floats:
    """AL_y (eq. 4): the mean of ℓ(t), AL with τ = |y|."""
    mean: Floats = lag.mean(axis=1)
    return mean


def running(lag: Floats) -> Floats:
    """ℓ'(t) = max_{i≤t} ℓ(i): the lag of g', where writing a token takes 1/γ."""
    return _along(np.maximum, lag)


def _along(step: np.ufunc, values: Floats) -> Floats:
    """`step.accumulate(values, axis=1)`; column by column for many short rows, which takes a third of the time."""
    rows, length = values.shape
    if rows < 8 * min(length, 32):
        return np.asarray(step.accumulate(values, axis=1))
    columns = values.T.copy()
    for before, column in pairwise(columns):
        step(before, column, out=column)
    return np.ascontiguousarray(columns.T)


def dal(over: Floats) -> Floats:
    """DAL (eqs. 6 to 8): the mean over t of max_{i≤t} [g(i) − (i−1)d].

    Eq. 8 says g'(t) = (t−1)d + max_{i≤t} [g(i) − (i−1)d]; in eq. 6 the (t−1)d cancel. The argument is `lags` for
    d = 1/γ, and `budget` for any other d.
    """
    mean: Floats = running(over).mean(axis=1)
    return mean


def effective_delays(over: Floats, d: Floats) -> Floats:
    """g'(t) (eq. 8): (t−1)d + max_{i≤t} [g(i) − (i−1)d]."""
    delays: Floats = _before(over) * d + running(over)
    return delays


def over_budget(over: Floats) -> Floats:
    """The i ≤ t (from 0) with the largest g(i) − (i−1)d; the first of equal ones."""
    rises = np.diff(running(over), axis=1, prepend=-np.inf) > 0
    return np.maximum.accumulate(np.where(rises, _before(over), 0.0), axis=1)


def carried(g: Floats, cost: Floats) -> Floats:
    """g'(t) = max(g(t), g'(t−1) + cost(t−1)): eq. 5 with a cost of its own for each token.

    Computed as g'(t) = C(t) + max_{i≤t} [g(i) − C(i)], where C(t) is the cost of all tokens before t.
    """
    spent = _along(np.add, cost) - cost
    delays: Floats = spent + running(g - spent)
    return delays


def queue(arrival: Floats, compute: Floats) -> Floats:
    """When each step is done: start(i) = max(arrival(i), finish(i−1)), finish(i) = start(i) + compute(i).

    It could be a running maximum, as DAL is, over arrivals less all computing before. It is computed step by step
    instead: then rounding puts no step before its own arrival, and steps that take no time end together.
    """
    rows, length = arrival.shape
    if rows < 8 * min(length, 32):  # floats are faster than short columns
        pairs = zip(arrival.tolist(), compute.tolist(), strict=True)
        return np.array([list(finish_times(*row, max)) for row in pairs]).reshape(arrival.shape)
    finish = np.empty_like(arrival, order="C")
    for step, done in enumerate(finish_times(arrival.T, compute.T, np.maximum)):
        finish[:, step] = done
    return finish


def finish_times(
    arrival: Iterable[Any], compute: Iterable[Any], later: Callable[[Any, Any], Any] = max
) -> Iterator[Any]:
    """When each step is done: of one row, as floats (`later` is max), or of all rows, as columns (np.maximum)."""
    done: Any = -np.inf
    for arrived, cost in zip(arrival, compute, strict=True):
        done = later(arrived, done) + cost
        yield done


def paced(arrival: Floats, cost: float) -> Floats:
    """`queue` for steps of the same cost: finish(i) = i·cost + max_{j≤i} [arrival(j) − (j−1)·cost]."""
    spent = _before(arrival) * cost
    finish: Floats = (spent + cost) + running(arrival - spent)
    return finish


def inside(g: Floats, source_end: Floats) -> Floats:
    """The number of leading tokens written before the source ended, g(t) < |x|; NaN if there are none."""
    count = _leading(g, source_end)
    return np.where(count > 0, count, np.nan)
