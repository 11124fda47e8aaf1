# SPDX-License-Identifier: Apache-2.0
"""What a token costs in memory: AP, AL, LAAL, DAL, CW and ATD together, each one's share, and np.sum beside them.

    python bench/kernels.py                 # half a minute
    python bench/kernels.py --quick         # shows that it runs, the numbers mean nothing

Nanoseconds of CPU time per target token on one core, best of nine, of a Run that is in memory: 40 000 segments of 25
tokens on average, wait-k with k from 1 to 7; text (delays in tokens), and speech (a read is 320 ms). "Together" is
`lagging.score` on a Run on which nothing has been computed yet. The shares are measured inside such a run, one after
the other: first the rows are sorted into rectangles, then each metric has its segments scored, then all are averaged.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import lagging
from lagging.data.ragged import Floats, Ragged
from lagging.metrics.schedule import Schedules

METRICS = ("AP", "AL", "LAAL", "DAL", "CW", "ATD")
LIMIT = 50.0
STEP = {"text": ("token", 1.0), "speech": ("ms", 320.0)}


def runs(kind: str, segments: int) -> Callable[[], lagging.Run]:
    """A function that gives a Run on which nothing has been computed yet."""
    dice = np.random.default_rng(0)
    lengths = dice.integers(5, 46, segments)
    x, reference = (np.maximum(1, np.round(lengths * dice.uniform(0.8, 1.2, segments))) for _ in range(2))
    k = dice.integers(1, 8, segments)
    g = Ragged.from_lengths(np.empty(lengths.sum()), lengths)
    t = np.arange(len(g.values)) - np.repeat(g.offsets[:-1], lengths)
    unit, step = STEP[kind]
    delays = np.minimum(t + np.repeat(k, lengths), np.repeat(x, lengths)) * step
    return lambda: lagging.Run.from_delays(
        Ragged(delays, g.offsets), source_length=x * step, reference_length=reference, unit=unit
    )


def spent(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def summed(values: Floats) -> list[float]:
    return [float(values.sum()) for _ in range(10)]


def shares(run: lagging.Run) -> dict[str, float]:
    """CPU seconds of each step of scoring, in a run of their own."""
    schedules = Schedules(run)
    seconds = {"rectangles": spent(lambda: run.delays.by_row(lambda g: g[:, 0]))}
    rows = {}
    for name in METRICS:
        metric = lagging.metric(name)
        start = time.process_time()
        rows[metric] = metric.statistics(schedules.for_metric(metric))
        seconds[name] = time.process_time() - start
    seconds["averages"] = spent(lambda: [metric.corpus(statistics) for metric, statistics in rows.items()])
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few segments, once: the numbers mean nothing")
    quick = parser.parse_args().quick
    segments, rounds = (500, 1) if quick else (40_000, 9)
    makers = {kind: runs(kind, segments) for kind in STEP}
    tokens = len(makers["text"]().delays.values)
    best: dict[tuple[str, str], float] = {}

    def note(kind: str, what: str, seconds: float) -> None:
        each = seconds / tokens * 1e9
        best[kind, what] = min(each, best.get((kind, what), each))

    for _ in range(rounds):  # they take turns, so that a busy machine slows all alike
        for kind, make in makers.items():
            run = make()
            note(kind, "together", spent(partial(lagging.score, run, METRICS)))
            for what, seconds in shares(make()).items():
                note(kind, what, seconds)
            values = make().delays.values
            note(kind, "np.sum", spent(partial(summed, values)) / 10)
            for name in METRICS:
                run = make()
                note(kind, f"{name} alone", spent(partial(lagging.score, run, [name])))
    print(f"ns of CPU time per target token, {segments:,} segments, {tokens:,} tokens; NumPy {np.__version__}\n")
    print(f"  {'':<28}" + "".join(f"{kind:>10}" for kind in STEP))

    def row(what: str, cells: list[str], verdict: str = "") -> None:
        print(f"  {what:<28}{''.join(f'{cell:>10}' for cell in cells)}  {verdict}".rstrip())

    for what in ("rectangles", *METRICS, "averages"):
        name = {"rectangles": "rows into rectangles", "averages": "six averages"}.get(what, what)
        row(name, [f"{best[kind, what]:.1f}" for kind in STEP])
    met = ["" if quick else "met" if best[kind, "together"] <= LIMIT else "MISSED" for kind in STEP]
    together = [f"{best[kind, 'together']:.1f}" for kind in STEP]
    row("the six together", together, f"≤ {LIMIT:g}: {', '.join(f'{k} {m}' for k, m in zip(STEP, met, strict=True))}")
    for name in METRICS:
        row(f"{name} alone", [f"{best[kind, f'{name} alone']:.1f}" for kind in STEP])
    row("np.sum of the delays", [f"{best[kind, 'np.sum']:.2f}" for kind in STEP])
    row("together ÷ np.sum", [f"{best[kind, 'together'] / best[kind, 'np.sum']:.0f}×" for kind in STEP])


if __name__ == "__main__":
    main()
