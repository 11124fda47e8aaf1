# SPDX-License-Identifier: Apache-2.0
"""What ATD costs as sentences grow: linear in their length, or not.

    python bench/atd.py                                     # a minute
    python bench/atd.py --simuleval-python PATH             # SimulEval's as well, in the environment where it is
    python bench/atd.py --quick                             # shows that it runs, the numbers mean nothing

Nanoseconds of CPU time per target token, best of nine, of a Run with as many tokens at every length; the lengths take
turns, so that a busy machine slows all alike. Ours is the whole metric, `lagging.score` on a fresh Run; theirs only the
call of the scorer on objects that are there already, as SimulEval's own, live evaluation makes it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

import lagging
from lagging.data.ragged import Ragged

KINDS = ("text → text", "speech → text", "speech → speech")
LIMIT = 1.5
DURATION = 400.0

SIMULEVAL = """
import json, sys, time
from simuleval.evaluator.instance import SpeechToSpeechInstance, SpeechToTextInstance, TextToTextInstance
from simuleval.evaluator.scorers.latency_scorer import ATDScorer
kinds = dict(zip(sys.argv[1:], [TextToTextInstance, SpeechToTextInstance, SpeechToSpeechInstance]))
for line in sys.stdin:
    case = json.loads(line)
    instances = {}
    for index, delays in enumerate(case["delays"]):
        instances[index] = instance = object.__new__(kinds[case["kind"]])
        instance.delays, instance.durations, instance.metrics = delays, [case["duration"]] * len(delays), {}
    start = time.process_time()
    value = ATDScorer()(instances)
    print(json.dumps([time.process_time() - start, value]), flush=True)
"""


def delays(kind: str, tokens: int, length: int) -> Ragged:
    """Runs of words after reads of several lengths; in speech, a read is some steps of 320 ms."""
    rng = np.random.default_rng(0)
    reads = rng.choice([0, 0, 1, 1, 1, 2, 3], size=(max(1, tokens // length), length))
    g = np.cumsum(reads, axis=1) * (1.0 if kind == KINDS[0] else 320.0)
    return Ragged.from_rows(g)


def fresh(kind: str, g: Ragged) -> lagging.Run:
    """A Run on which nothing has been computed yet."""
    return lagging.Run.from_delays(
        Ragged(g.values, g.offsets),
        source_length=g.last() + 1,
        durations=Ragged(np.full(len(g.values), DURATION), g.offsets) if kind == KINDS[2] else None,
        unit="token" if kind == KINDS[0] else "ms",
    )


def ours(kind: str, g: Ragged) -> tuple[float, float]:
    """CPU seconds, and the value."""
    run = fresh(kind, g)
    start = time.process_time()
    value = lagging.score(run, ["ATD"])["ATD"].value
    return time.process_time() - start, value


def table(
    title: str, measure: Callable[[str, Ragged], tuple[float, float]], tokens: int, lengths: list[int], rounds: int
) -> tuple[dict[tuple[str, int], float], dict[tuple[str, int], float]]:
    """Print ns per token, and their ratio to those at the shortest length; give the ns, and the values."""
    cost: dict[tuple[str, int], float] = {}
    values: dict[tuple[str, int], float] = {}
    for _ in range(rounds):
        for kind in KINDS:
            for length in lengths:
                g = delays(kind, tokens, length)
                seconds, values[kind, length] = measure(kind, g)
                each = seconds / len(g.values) * 1e9
                cost[kind, length] = min(each, cost.get((kind, length), each))
    print(f"\n{title}: ns of CPU time per target token (÷ that at {lengths[0]})")
    print(" " * 17 + "".join(f"{length:>16}" for length in lengths) + "   tokens")
    for kind in KINDS:
        first = cost[kind, lengths[0]]
        cells = (f"{cost[kind, n]:.0f} ({cost[kind, n] / first:.2f}×)" for n in lengths)
        print(f"{kind:<17}" + "".join(f"{cell:>16}" for cell in cells))
    return cost, values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few tokens, one round")
    parser.add_argument("--simuleval-python", metavar="PATH", help="the Python of an environment with SimulEval")
    args = parser.parse_args()
    lengths = [100, 200] if args.quick else [100, 200, 400, 800, 1600, 3200]
    cost, _ = table("lagging", ours, 2_000 if args.quick else 320_000, lengths, 1 if args.quick else 9)
    worst = max(cost[kind, lengths[-1]] / cost[kind, lengths[0]] for kind in KINDS)
    if not args.quick:
        print(f"\n{lengths[-1]} ÷ {lengths[0]} tokens, worst: {worst:.2f}× (≤ {LIMIT}×: {worst <= LIMIT})")
    if not args.simuleval_python:
        print("SimulEval: not measured (--simuleval-python)")
        return
    command = [args.simuleval_python, "-W", "ignore", "-c", SIMULEVAL, *KINDS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def theirs(kind: str, g: Ragged) -> tuple[float, float]:
            rows = g.tolist() if kind != KINDS[0] else [[int(v) for v in row] for row in g.tolist()]
            print(json.dumps({"kind": kind, "delays": rows, "duration": DURATION}), file=requests, flush=True)
            seconds, value = json.loads(answers.readline())
            return seconds, value

        _, values = table("SimulEval", theirs, 2_000 if args.quick else 6_400, lengths, 1 if args.quick else 2)
    for (kind, length), value in values.items():
        own = ours(kind, delays(kind, 2_000 if args.quick else 6_400, length))[1]
        if not np.isclose(own, value, rtol=1e-9):
            sys.exit(f"{kind}, {length} tokens: {own} here, {value} there")
    print("the values agree")


if __name__ == "__main__":
    main()
