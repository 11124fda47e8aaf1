# SPDX-License-Identifier: Apache-2.0
"""What scoring a log costs: a table of ratios, measured in one run.

    python bench/scoring.py                 # 100 000 and 200 000 segments: a few minutes
    python bench/scoring.py --full          # and 1 000 000
    python bench/scoring.py --quick         # a few thousand: shows that it runs, the ratios mean nothing

Each number is the CPU time (user and system) of a process of its own, start-up included, best of three (against
decoding: of nine); what is compared takes turns, so that a busy machine slows all alike. Never wall time. The
yardstick is a process that decodes the same file with msgspec, line by line, and does nothing else. With SimulEval
(importable, or in another environment given by --simuleval-python), its scoring of the same log is measured too.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

# ---- what is run ----------------------------------------------------------------------------------------------

GENERATE = """
import json, random, sys
count, path = int(sys.argv[1]), sys.argv[2]
dice = random.Random(0)
letters = "abcdefghijklmnopqrstuvwxyz"
words = ["".join(dice.choices(letters, k=dice.randint(2, 9))) for _ in range(5000)]
text = lambda length: " ".join(dice.choices(words, k=length))
about = lambda length: max(1, round(length * dice.uniform(0.8, 1.2)))
with open(path, "w", encoding="utf-8", newline="\\n") as file:
    for index in range(count):
        x = dice.randint(5, 45)
        y, r, k = about(x), about(x), dice.randint(1, 7)
        line = {
            "index": index,
            "prediction": text(y),
            "delays": [min(t + k, x) for t in range(y)],
            "elapsed": [0] * y,
            "prediction_length": y,
            "reference": text(r) + "\\n",
            "source": text(x),
            "source_length": x,
        }
        file.write(json.dumps(line) + "\\n")
"""
"""A log like SimulEval's of text in, text out: 25 tokens a segment, on average; the same for one count every time."""

DECODE = """
import sys
import msgspec
decode = msgspec.json.Decoder().decode
with open(sys.argv[1], "rb") as file:
    for line in file:
        decode(line)
"""

SIMULEVAL_CLI = "from simuleval.cli import main; main()"

SIMULEVAL_OBJECTS = """
import sys
from argparse import Namespace
from simuleval.evaluator import SentenceLevelEvaluator
evaluator = SentenceLevelEvaluator.from_args(Namespace(
    score_only=True, no_scoring=False, no_progress_bar=True, continue_unfinished=False, output=sys.argv[1],
    source_type="text", target_type="text", source_segment_size=1, start_index=0, end_index=-1,
    quality_metrics=[], latency_metrics=["AL", "AP", "DAL"], computation_aware=False, no_use_ref_len=False,
    eval_latency_unit="word", eval_latency_spm_model=None,
))
print(evaluator.latency)
"""


# ---- how it is measured ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """CPU seconds and peak resident memory, in MB, of one process."""

    cpu: float
    memory: float

    def __str__(self) -> str:
        """`1.234 s CPU, 56 MB`."""
        return f"{self.cpu:.3f} s CPU, {self.memory:.0f} MB"


def run(command: Sequence[str], bytecode: Path) -> Cost:
    """Run a process to its end; what it prints is dropped, unless it fails.

    Compiled modules are kept in `bytecode`, for every package alike: a checkout has none, an installed package has. Who
    has set PYTHONPYCACHEPREFIX says where.
    """
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    env.setdefault("PYTHONPYCACHEPREFIX", str(bytecode))
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            sys.exit(f"failed: {' '.join(command)[:200]}\n{output.read().decode(errors='replace')[-2000:]}")
    # Linux counts memory in KB, macOS in bytes
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / (1_000_000 if sys.platform == "darwin" else 1000))


@dataclass(frozen=True)
class Bench:
    """How often each command is run, and where compiled modules are kept."""

    rounds: int
    bytecode: Path

    def best(self, commands: dict[str, Sequence[str]], times: int = 1) -> dict[str, Cost]:
        """The least CPU time, and the most memory, of each command; they take turns, `times` as often as usual."""
        seen: dict[str, list[Cost]] = {name: [] for name in commands}
        for _ in range(self.rounds * times):
            for name, command in commands.items():
                seen[name].append(run(command, self.bytecode))
        return {n: Cost(min(c.cpu for c in costs), max(c.memory for c in costs)) for n, costs in seen.items()}


# ---- what is compared -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    what: str
    measured: str
    target: str = ""
    met: bool | None = None


def decoding(log: Path) -> list[str]:
    return [sys.executable, "-c", DECODE, str(log)]


def scoring(log: Path, metrics: str = "AP,AL,DAL") -> list[str]:
    """On one core."""
    return [sys.executable, "-m", "lagging", "score", str(log), "-m", metrics, "-f", "json", "-q", "--jobs", "1"]


def at_most(what: str, ratio: float, limit: float) -> Row:
    return Row(what, f"{ratio:.2f}×", f"≤ {limit:g}×", ratio <= limit)


def at_least(what: str, ratio: float, limit: float) -> Row:
    return Row(what, f"{ratio:.1f}×", f"≥ {limit:g}×", ratio >= limit)


def below(what: str, value: float, limit: float, unit: str) -> Row:
    shown = f"{value:.0f} {unit}" if unit == "MB" else f"{value:.3f} {unit}"
    return Row(what, shown, f"< {limit:g} {unit}", value < limit)


def against_decoding(logs: dict[int, Path], bench: Bench) -> Iterator[Row]:
    """Scoring against decoding the same file, and what each further segment costs."""
    commands: dict[str, Sequence[str]] = {}
    for count, log in logs.items():
        commands |= {f"decode {count}": decoding(log), f"score {count}": scoring(log)}
    cost = bench.best(commands, times=3)  # differences of short times need more rounds
    for count, log in logs.items():
        decode, score = cost[f"decode {count}"], cost[f"score {count}"]
        yield Row(f"decode {count:,} segments ({log.stat().st_size / 1e6:.0f} MB)", str(decode))
        yield Row(f"score {count:,} segments", str(score))
    smallest, largest = min(logs), max(logs)
    ratio = cost[f"score {smallest}"].cpu / cost[f"decode {smallest}"].cpu
    yield at_most(f"score ÷ decode, {smallest:,} segments", ratio, 4)
    for count in sorted(set(logs) - {smallest}):
        further = {what: cost[f"{what} {count}"].cpu - cost[f"{what} {smallest}"].cpu for what in ("score", "decode")}
        what = f"score ÷ decode, each further segment up to {count:,}"
        if min(further.values()) > 0:
            yield at_most(what, further["score"] / further["decode"], 2.5)
        else:
            yield Row(what, "too few to tell", "≤ 2.5×")
    for count in logs:
        limit = 400 if count == largest and count >= 1_000_000 else 200
        yield below(f"peak memory, {count:,} segments", cost[f"score {count}"].memory, limit, "MB")


def against_simuleval(python: str, log: Path, count: int, bench: Bench) -> Iterator[Row]:
    """SimulEval on the same log, which must be called instances.log."""
    folder = str(log.parent)
    only = ["--score-only", "--output", folder, "--source-type", "text", "--target-type", "text"]
    metrics = ["--quality-metrics", "BLEU", "--latency-metrics", "AL", "AP", "DAL"]
    cost = bench.best(
        {
            "ours": scoring(log),
            "ours with BLEU": scoring(log, "BLEU,AL,AP,DAL"),
            "cli": [python, "-c", SIMULEVAL_CLI, *only, *metrics],
            "objects": [python, "-c", SIMULEVAL_OBJECTS, folder],
        }
    )
    yield Row(f"score {count:,} segments, with BLEU", str(cost["ours with BLEU"]))
    yield Row(f"simuleval --score-only, {count:,} segments", str(cost["cli"]))
    yield Row(f"simuleval's scorer objects, {count:,} segments", str(cost["objects"]))
    yield at_least("simuleval --score-only (BLEU, AL, AP, DAL) ÷ score", cost["cli"].cpu / cost["ours"].cpu, 20)
    yield at_least("simuleval's scorer objects (AL, AP, DAL) ÷ score", cost["objects"].cpu / cost["ours"].cpu, 5)
    ratio = cost["cli"].cpu / cost["ours with BLEU"].cpu
    yield Row("simuleval --score-only ÷ score, both with BLEU", f"{ratio:.1f}×")


def starting(bench: Bench) -> Iterator[Row]:
    """Importing, and asking for help."""
    cost = bench.best(
        {
            "nothing": [sys.executable, "-c", ""],
            "numpy": [sys.executable, "-c", "import numpy"],
            "lagging": [sys.executable, "-c", "import lagging"],
            "dal": [sys.executable, "-c", "import lagging; lagging.dal([1, 2], source_length=2)"],
            "help": [sys.executable, "-m", "lagging", "--help"],
        }
    )
    yield Row("python -c ''", f"{cost['nothing'].cpu:.3f} s CPU")
    yield Row("import numpy", f"{cost['numpy'].cpu:.3f} s CPU")
    yield Row("import lagging", f"{cost['lagging'].cpu:.3f} s CPU")
    yield Row("import lagging, and a first sentence", f"{cost['dal'].cpu:.3f} s CPU")
    yield at_most("import lagging ÷ import numpy", cost["lagging"].cpu / cost["numpy"].cpu, 1)
    yield below("lagging --help", cost["help"].cpu, 0.25, "s CPU")


# ---- the table ------------------------------------------------------------------------------------------------


def show(title: str, rows: Iterator[Row], judge: bool) -> None:
    """Print a part of the table as soon as it has been measured."""
    print(f"\n{title}")
    for row in rows:
        verdict = "" if row.met is None or not judge else "met" if row.met else "MISSED"
        print(f"  {row.what:<56} {row.measured:>22}  {row.target:>12}  {verdict}".rstrip(), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="What scoring a log costs: a table of ratios of CPU time.")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a few thousand segments, once: the ratios mean nothing")
    size.add_argument("--full", action="store_true", help="also a million segments")
    parser.add_argument("--simuleval-python", metavar="PATH", help="a Python that has SimulEval, if not this one")
    args = parser.parse_args()
    if not hasattr(os, "wait4"):
        sys.exit("the CPU time of another process cannot be measured on this system (no os.wait4)")
    counts = [1_000, 2_000] if args.quick else [100_000, 200_000, 1_000_000] if args.full else [100_000, 200_000]
    rounds = 1 if args.quick else 3
    python = args.simuleval_python or (sys.executable if importlib.util.find_spec("simuleval") else None)

    print(f"CPU time of whole processes, best of {rounds}; Python {sys.version.split()[0]}, {os.cpu_count()} CPUs")
    with tempfile.TemporaryDirectory() as folder:
        bench, logs = Bench(rounds, Path(folder, "bytecode")), {}
        for count in counts:
            logs[count] = Path(folder, str(count), "instances.log")
            logs[count].parent.mkdir()
            run([sys.executable, "-c", GENERATE, str(count), str(logs[count])], bench.bytecode)
        show("against decoding with msgspec (AP, AL, DAL)", against_decoding(logs, bench), not args.quick)
        if python is None:
            print("\nagainst SimulEval\n  NOT RUN: simuleval is not installed (see --simuleval-python)")
        else:
            rows = against_simuleval(python, logs[counts[0]], counts[0], bench)
            show("against SimulEval", rows, not args.quick)
        show("starting", starting(bench if args.quick else replace(bench, rounds=9)), not args.quick)


if __name__ == "__main__":
    main()
