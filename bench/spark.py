# SPDX-License-Identifier: Apache-2.0
"""The CPU seconds that scoring on Spark takes per segment, and where, measured in one run.

    python bench/spark.py                # 400 000 segments
    python bench/spark.py --quick        # a few thousand: shows that it runs, the numbers mean nothing

Each number is CPU time (user and system), never wall time: that of this process for what executors do in Python, and
that of Spark's Java and of its Python workers, from /proc, for all of it. Spark is warm: the same log was scored
before, so that starting and compiling are not counted. Needs Java and Linux.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lagging.formats import ReadOptions
from lagging.scoring.plan import Plan
from lagging.scoring.poisson import SEED
from lagging.scoring.spark import score, session, tasks
from lagging.scoring.spark.batches import ADDED, Task

METRICS = ("AP", "AL", "LAAL", "DAL")
GROUPS = 8
FILES = 4


def generate(folder: Path, segments: int) -> None:
    """Delays in ms, 25 tokens a segment on average, eight language pairs."""
    rng = np.random.default_rng(0)
    each = segments // FILES
    for file in range(FILES):
        lengths = rng.integers(5, 46, each)
        steps = rng.integers(0, 800, int(lengths.sum()))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        totals = np.cumsum(steps)
        delays = totals - np.repeat(np.concatenate([[0], totals])[offsets[:-1]], lengths)
        table = pa.table(
            {
                "id": [f"{file}-{row}" for row in range(each)],
                "delays": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), delays.astype(float)),
                "source_length": delays[offsets[1:] - 1] + 1000.0,
                "lang": [f"en-{row % GROUPS}" for row in range(each)],
                "unit": ["ms"] * each,
            }
        )
        pq.write_table(table, folder / f"{file}.parquet", row_group_size=50_000)


def cpu(call: Callable[[], Any]) -> float:
    """CPU seconds of this process for a call: the least of three."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds)


def batches(folder: Path) -> Iterator[Any]:
    """The batches that Spark passes to Python."""
    for path in sorted(folder.iterdir()):
        for batch in pq.ParquetFile(path).iter_batches(10_000):
            rows = batch.num_rows
            added = [
                pa.array([str(path)] * rows),
                pa.array(range(rows)),
                pa.array(np.random.default_rng(1).integers(0, 2**62, rows)),
            ]
            yield pa.RecordBatch.from_arrays([*batch.columns, *added], names=[*batch.schema.names, *ADDED])


def descendants(pid: int) -> Iterator[int]:
    """A process, and all processes that it started."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from descendants(int(child))


def cpu_of_children(pid: int) -> dict[str, float]:
    """CPU seconds of Java and of Python under a process, so far."""
    tick = os.sysconf("SC_CLK_TCK")
    seconds = {"java": 0.0, "python": 0.0}
    for process in descendants(pid):
        if process != os.getpid():
            name, _, rest = Path(f"/proc/{process}/stat").read_text().partition("(")[2].rpartition(")")
            # with the time of children that have ended
            seconds["java" if name == "java" else "python"] += sum(map(int, rest.split()[11:15])) / tick
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    segments = 4_000 if parser.parse_args().quick else 400_000
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "lake"
        folder.mkdir()
        generate(folder, segments)
        size = sum(path.stat().st_size for path in folder.iterdir())
        held = list(batches(folder))
        options = ReadOptions(unit="ms", level="token")
        plain = Task(Plan.make(METRICS, summary=True), options, buckets=0)
        plan, grouped = Plan.make(METRICS, group_by=["lang"], seed=SEED), replace(options, group_by=("lang",))
        full = Task(plan, grouped, buckets=200)
        answers = list(tasks.tally_partition(full, held))
        sent = sum(batch.nbytes for batch in answers)
        hashes = sum(len(row["data"]) for batch in answers for row in batch.to_pylist() if row["kind"] == "ids")
        tallies = [len(row["data"]) for batch in answers for row in batch.to_pylist() if row["kind"] == "tally"]
        rows = {
            "pyarrow reads the files": cpu(lambda: [pq.read_table(path) for path in folder.iterdir()]),
            "Python: scores alone": cpu(lambda: list(tasks.tally_partition(plain, held))),
            "Python: groups, intervals, ids": cpu(lambda: list(tasks.tally_partition(full, held))),
            "Python: segment scores": cpu(lambda: list(tasks.score_segments(full, held))),
        }
        merge = cpu(lambda: list(tasks.merge_partitions(full, answers)))
        spark = session("local[2]")
        spark.conf.set("spark.sql.shuffle.partitions", "2")
        df = spark.read.parquet(str(folder))
        process = spark.sparkContext._gateway.proc.pid
        requests: dict[str, dict[str, Any]] = {
            "Spark: scores alone": {"seed": None, "check_ids": False},
            "Spark: groups, intervals, ids": {"group_by": "lang"},
        }
        for label, arguments in requests.items():
            score(df, METRICS, **arguments)
            before = cpu_of_children(process)
            score(df, METRICS, **arguments)
            after = cpu_of_children(process)
            for part in before:
                rows[f"{label}, in {part.capitalize()}"] = after[part] - before[part]
        spark.stop()
    print(f"{segments} segments of 25 tokens, {', '.join(METRICS)}, {GROUPS} groups; ", end="")
    print(f"Parquet: {size / segments:.0f} bytes a segment")
    print(f"{'what':48} {'CPU s':>8} {'µs a segment':>14}")
    for label, seconds in rows.items():
        print(f"{label:48} {seconds:8.2f} {1e6 * seconds / segments:14.2f}")
    print(
        f"shuffled per partition: tallies {sum(tallies) / 1000:.0f} kB ({np.mean(tallies) / 1000:.1f} kB each), ",
        end="",
    )
    print(f"ids {hashes / segments:.0f} bytes a segment, in all {sent / 1000:.0f} kB")
    print(f"merging and finishing a tally: {1000 * merge / len(tallies):.1f} ms")


if __name__ == "__main__":
    main()
