# SPDX-License-Identifier: Apache-2.0
"""What the meter costs a live service.

The CPU time of each call of `lagging.Meter`, with and without a log, in one thread; of an utterance's end, with
all that is measured of it; and of threads that call at once, of which nothing may be lost. Utterances have 20 words.

    python bench/meter.py           # 8 threads × 1,000,000 calls: some minutes
    python bench/meter.py --quick   # shows that it runs
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lagging

WORDS = 20


def once(function: Callable[[], object]) -> float:
    """Microseconds of CPU time of one call."""
    begin = time.thread_time()
    function()
    return (time.thread_time() - begin) * 1e6


def repeat(method: Callable[[Any], None], arguments: Sequence[float | str]) -> float:
    """Microseconds of CPU time of as many calls as there are arguments."""
    begin = time.thread_time()
    for argument in arguments:
        method(argument)
    return (time.thread_time() - begin) * 1e6


def calls(meter: lagging.Meter, utterances: int) -> dict[str, float]:
    """Microseconds per call of each kind."""
    spent = dict.fromkeys(("heard", "wrote", "shows", "ended"), 0.0)
    texts = [" ".join(["Wort"] * n) for n in range(1, WORDS + 1)]
    for number in range(utterances):
        utterance = meter.utterance()
        spent["heard"] += repeat(utterance.heard, [20.0] * WORDS)
        if number % 2:
            spent["wrote"] += repeat(utterance.wrote, [" Wort"] * WORDS)
        else:
            spent["shows"] += repeat(utterance.shows, texts)
        spent["ended"] += once(utterance.ended)
    number_of = {"heard": WORDS * utterances, "wrote": WORDS * (utterances // 2), "ended": utterances}
    number_of["shows"] = WORDS * utterances - number_of["wrote"]
    return {name: total / number_of[name] for name, total in spent.items()}


def together(threads: int, each: int) -> tuple[float, bool]:
    """Seconds of CPU time of threads that call at once, and whether nothing was lost."""
    meter = lagging.Meter()
    rounds = each // (2 * WORDS + 1)

    def work() -> None:
        for _ in range(rounds):
            with meter.utterance() as utterance:
                for _ in range(WORDS):
                    utterance.heard(20)
                    utterance.wrote(" Wort")

    workers = [threading.Thread(target=work) for _ in range(threads)]
    begin = time.process_time()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.process_time() - begin
    snapshot, utterances = meter.snapshot(), threads * rounds
    kept = (snapshot["words"], snapshot["heard_ms"], snapshot["utterances"], snapshot["lag"]["n"])
    return seconds, kept == (utterances * WORDS, utterances * WORDS * 20, utterances, utterances * WORDS)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="Few calls: the numbers mean nothing.")
    args = parser.parse_args()
    utterances, each = (130, 2000) if args.quick else (4000, 1_000_000)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        calls(lagging.Meter(), 70)  # everything is imported
        memory = calls(lagging.Meter(), utterances)
        with lagging.Meter(log=Path(folder) / "live.stream.jsonl") as meter:
            disk = calls(meter, utterances)
    lines += [f"{'call':<28}{'µs':>10}{'µs with log':>14}"]
    lines += [f"{name + '()':<28}{memory[name]:>10.1f}{disk[name]:>14.1f}" for name in memory]
    meter = lagging.Meter()
    calls(meter, utterances)
    meter.snapshot()
    lines += [f"{'snapshot()':<28}{once(meter.snapshot):>10.1f}"]
    seconds, whole = together(8, each)
    lines += [
        f"8 threads × {each:,} calls: {seconds:.1f} s of CPU time, {'nothing lost' if whole else 'CALLS WERE LOST'}"
    ]
    print("\n".join(lines))
    if not whole:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
