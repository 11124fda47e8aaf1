# SPDX-License-Identifier: Apache-2.0
"""What scoring costs as logs grow: JSON lines against msgspec's decoding, Parquet against pyarrow's reading.

    python bench/growth.py                  # 1 000 to 300 000 segments: two minutes
    python bench/growth.py --full           # JSON lines to 1 000 000, Parquet to 10 000 000: an hour, and 3 GB of disk
    python bench/growth.py --quick          # shows that it runs, the numbers mean nothing

CPU time (user and system, all processes) and peak memory of a process of its own, start-up included, best of three, of
one for the largest. "Each" is what a segment costs beside those of the smallest log. On one core: `--jobs 1`. The
last column is the time on the clock with all cores (`--jobs`), which on a busy machine says little. The logs have 25
tokens a segment, on average. Parquet has delays, source length and reference length, and is read in row groups.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
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

KINDS = {"JSON lines": (GENERATE, DECODE, "log.jsonl", "msgspec"), "Parquet": (TABLE, READ, "log.parquet", "pyarrow")}
METRICS = "AP,AL,LAAL,DAL"
LINEAR = 1.2


def scoring(log: Path, jobs: int) -> list[str]:
    command = [sys.executable, "-m", "lagging", "score", str(log), "-m", METRICS, "-f", "json", "-q"]
    return [*command, "--jobs", str(jobs)]


def table(kind: str, counts: Sequence[int], folder: Path, bench: Bench) -> None:
    """Measure one kind of log in all sizes, and print a line for each."""
    generate, read, name, reader = KINDS[kind]
    print(f"\n{kind} ({METRICS})")
    print(
        f"  {'segments':>10} {'MB':>6} {reader + ', s CPU':>15} {'score, s CPU':>13} {'ratio':>7} {'each, µs':>9}"
        f" {'each, ratio':>12} {'memory, MB':>11} {'clock, s':>9} {'all cores, s':>13}"
    )
    first: tuple[int, float, float] | None = None
    each: dict[int, float] = {}
    for count in counts:
        log = folder / str(count) / name
        log.parent.mkdir(exist_ok=True)
        run([sys.executable, "-c", generate, str(count), str(log)], bench.bytecode)
        commands: dict[str, Sequence[str]] = {"read": [sys.executable, "-c", read, str(log)], "score": scoring(log, 1)}
        clock = {}
        for jobs in sorted({1, os.cpu_count() or 1}):
            start = time.perf_counter()
            run(scoring(log, jobs), bench.bytecode)
            clock[jobs] = time.perf_counter() - start
        fewer = Bench(1, bench.bytecode) if count >= 3_000_000 else bench
        cost = fewer.best(commands)
        theirs, ours = cost["read"].cpu, cost["score"].cpu
        further, ratio = "", ""
        if first is None:
            first = (count, theirs, ours)
        elif ours > first[2]:
            each[count] = (ours - first[2]) / (count - first[0]) * 1e6
            further = f"{each[count]:.2f}"
            ratio = f"{(ours - first[2]) / (theirs - first[1]):.2f}×" if theirs > first[1] else "?"
        print(
            f"  {count:>10,} {log.stat().st_size / 1e6:>6.0f} {theirs:>15.3f} {ours:>13.3f} {ours / theirs:>6.2f}×"
            f" {further:>9} {ratio:>12} {cost['score'].memory:>11.0f} {clock[1]:>9.2f}"
            f" {clock[max(clock)]:>13.2f}",
            flush=True,
        )
        log.unlink()
    large = [value for count, value in each.items() if count > 10_000]
    if len(large) > 1:
        spread = max(large) / min(large)
        print(f"  dearest ÷ cheapest segment above 10,000: {spread:.2f}× (≤ {LINEAR}×: {spread <= LINEAR})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="two small sizes, once: the numbers mean nothing")
    size.add_argument("--full", action="store_true", help="up to ten million segments")
    args = parser.parse_args()
    if not hasattr(os, "wait4"):
        sys.exit("NOT RUN: the CPU time of another process cannot be measured on this system (no os.wait4)")
    counts = [200, 400] if args.quick else [1_000, 10_000, 30_000, 100_000, 300_000]
    if args.full:
        counts += [1_000_000, 3_000_000, 10_000_000]
    print(f"CPU time of whole processes; Python {sys.version.split()[0]}, {os.cpu_count()} CPUs")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = Bench(1 if args.quick else 3, folder / "bytecode")
        table("JSON lines", [count for count in counts if count <= 1_000_000], folder, bench)
        if importlib.util.find_spec("pyarrow") is None:
            print("\nParquet\n  NOT RUN: pyarrow is not installed")
        else:
            table("Parquet", counts[:1] if args.quick else counts, folder, bench)


if __name__ == "__main__":
    main()
