# SPDX-License-Identifier: Apache-2.0
"""What scoring costs as logs grow: JSON lines against msgspec's decoding, Parquet against pyarrow's reading.

    python bench/growth.py                  # 1 000 to 300 000 segments: three minutes
    python bench/growth.py --full           # JSON lines to 1 000 000, Parquet to 10 000 000: a quarter of an hour
    python bench/growth.py --kind parquet --most 1000000
    python bench/growth.py --quick          # shows that it runs, the numbers mean nothing

CPU time (user and system, all processes) and peak memory of a process of its own, start-up included, best of three, of
one for the largest; on one core, `--jobs 1`. "Each" is what a further segment costs, beside those of the smallest log:
measured in turns in a process that has scored both before, so that what it costs to start is not in it. The last two
columns are time on the clock with `--jobs 1` and with all cores, in turns, which on a busy machine says little. The
logs have 25 tokens a segment, on average, and are written some at a time. Parquet has delays, source length and
reference length, and row groups of 65 536 segments.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from scoring import DECODE, GENERATE, Bench, run

TABLE = """
import sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
count, path = int(sys.argv[1]), sys.argv[2]
dice = np.random.default_rng(0)
schema = pa.schema([("id", pa.int64()), ("delays", pa.list_(pa.float64())), ("source_length", pa.float64()),
                    ("reference_length", pa.float64())], metadata={"unit": "token"})
with pq.ParquetWriter(path, schema) as writer:
    for start in range(0, count, 65_536):
        n = min(65_536, count - start)
        y = dice.integers(5, 46, n)
        x, r = (np.maximum(1, np.round(y * dice.uniform(0.8, 1.2, n))) for _ in range(2))
        offsets = np.concatenate([[0], np.cumsum(y)]).astype(np.int32)
        t = np.arange(offsets[-1]) - np.repeat(offsets[:-1], y)
        g = np.minimum(t + np.repeat(dice.integers(1, 8, n), y), np.repeat(x, y))
        columns = [np.arange(start, start + n), pa.ListArray.from_arrays(offsets, g), x, r]
        writer.write_table(pa.table(columns, schema=schema))
"""

READ = """
import sys
import pyarrow.parquet as pq
with pq.ParquetFile(sys.argv[1]) as file:
    for batch in file.iter_batches(65_536, use_threads=False):
        pass
"""

WARM = """
import contextlib, io, sys, time
from lagging.cli import cli
small, log, metrics, read = sys.argv[1:]
command = ["-m", metrics, "-f", "json", "-q", "--jobs", "1"]
def score(path):
    with contextlib.redirect_stdout(io.StringIO()):
        cli.main(["score", path, *command], standalone_mode=False)
def reading(path):
    sys.argv[1] = path
    exec(compiled, {})
compiled = compile(read, "read", "exec")
for function in (reading, score):
    function(small)
    spent = {small: [], log: []}
    while sum(spent[log]) < 0.5 or (len(spent[log]) < 3 and sum(spent[log]) < 5):
        for path in spent:
            start = time.process_time()
            function(path)
            spent[path].append(time.process_time() - start)
    print(min(spent[log]) - min(spent[small]))
"""
"""By how much more CPU time a log is read than a small one, and scored, in a process that has done both before."""

KINDS = {"JSON lines": (GENERATE, DECODE, "log.jsonl", "msgspec"), "Parquet": (TABLE, READ, "log.parquet", "pyarrow")}
METRICS = "AP,AL,LAAL,DAL"
SIZES = (1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
LINEAR = 0.2
MEMORY = 1000


def scoring(log: Path, jobs: int) -> list[str]:
    command = [sys.executable, "-m", "lagging", "score", str(log), "-m", METRICS, "-f", "json", "-q"]
    return [*command, "--jobs", str(jobs)]


def warm(small: Path, log: Path, read: str) -> tuple[float, float]:
    """CPU seconds of reading a log, and of scoring it, beyond those of a small one."""
    command = [sys.executable, "-c", WARM, str(small), str(log), METRICS, read]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    theirs, ours = map(float, done.stdout.split())
    return theirs, ours


def clocks(log: Path, bench: Bench) -> list[float]:
    """Seconds on the clock, of one process and of as many as there are cores: the best; they take turns."""
    jobs = [1, os.cpu_count() or 1]
    best = [float("inf")] * len(jobs)
    for place in list(range(len(jobs))) * bench.rounds:
        start = time.perf_counter()
        run(scoring(log, jobs[place]), bench.bytecode)
        best[place] = min(best[place], time.perf_counter() - start)
    return best


def table(kind: str, counts: Sequence[int], folder: Path, bench: Bench) -> None:
    """Measure one kind of log in all sizes, and print a line for each."""
    generate, read, name, reader = KINDS[kind]
    print(f"\n{kind} ({METRICS})")
    print(
        f"  {'segments':>10} {'MB':>6} {reader + ', s CPU':>15} {'score, s CPU':>13} {'ratio':>7} {'each, µs':>9}"
        f" {'each, ratio':>12} {'memory, MB':>11} {'clock, s':>9} {'all cores, s':>13}"
    )
    small: Path | None = None
    each: dict[int, float] = {}
    memory = 0.0
    for count in counts:
        log = folder / str(count) / name
        log.parent.mkdir(exist_ok=True)
        run([sys.executable, "-c", generate, str(count), str(log)], bench.bytecode)
        commands: dict[str, Sequence[str]] = {"read": [sys.executable, "-c", read, str(log)], "score": scoring(log, 1)}
        fewer = Bench(1, bench.bytecode) if count >= 3_000_000 else bench
        cost, clock = fewer.best(commands), clocks(log, fewer)
        further, ratio, memory = "", "", max(memory, cost["score"].memory)
        if small is None:
            small = log
        else:
            theirs, ours = warm(small, log, read)
            each[count] = ours / (count - counts[0]) * 1e6
            further, ratio = f"{each[count]:.2f}", f"{ours / theirs:.2f}×" if theirs > 0 else "?"
        print(
            f"  {count:>10,} {log.stat().st_size / 1e6:>6.0f} {cost['read'].cpu:>15.3f} {cost['score'].cpu:>13.3f}"
            f" {cost['score'].cpu / cost['read'].cpu:>6.2f}× {further:>9} {ratio:>12} {cost['score'].memory:>11.0f}"
            f" {clock[0]:>9.2f} {clock[1]:>13.2f}",
            flush=True,
        )
        if small != log:
            log.unlink()
    large = {count: cost for count, cost in each.items() if count >= 10_000}
    if len(large) > 1:
        usual = statistics.median(large.values())
        off = max(abs(cost / usual - 1) for cost in large.values())
        sizes = f"{min(large):,} to {max(large):,}"
        print(f"  linear from {sizes}: each costs {usual:.2f} µs ± {off:.0%}, ≤ 20 %: {off <= LINEAR}")
    if each:
        print(f"  throughput, at {counts[-1]:,}: {1e6 / each[counts[-1]]:,.0f} segments a second on one core")
    print(f"  peak memory {memory:.0f} MB, < {MEMORY} MB: {memory < MEMORY}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small sizes, once: the numbers mean nothing")
    size.add_argument("--full", action="store_const", const=SIZES[-1], dest="most", help="up to ten million segments")
    size.add_argument("--most", type=int, metavar="N", help="up to so many segments")
    parser.add_argument("--kind", choices=["json", "parquet"], help="only logs of this kind")
    parser.set_defaults(most=300_000)
    args = parser.parse_args()
    if not hasattr(os, "wait4"):
        sys.exit("NOT RUN: the CPU time of another process cannot be measured on this system (no os.wait4)")
    counts = [200, 400] if args.quick else [count for count in SIZES if count <= args.most]
    print(f"CPU time of whole processes; Python {sys.version.split()[0]}, {os.cpu_count()} CPUs")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = Bench(1 if args.quick else 3, folder / "bytecode")
        if args.kind != "parquet":
            table("JSON lines", [count for count in counts if count <= 1_000_000], folder, bench)
        if args.kind == "json":
            return
        if importlib.util.find_spec("pyarrow") is None:
            print("\nParquet\n  NOT RUN: pyarrow is not installed")
        else:
            table("Parquet", counts[:1] if args.quick else counts, folder, bench)


if __name__ == "__main__":
    main()
