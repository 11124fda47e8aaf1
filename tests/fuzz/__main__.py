# SPDX-License-Identifier: Apache-2.0
"""Hostile inputs for as long as asked: `python -m fuzz --minutes 60`, or `make fuzz MINUTES=60`.

Ends with 1 if anything was found.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from fuzz.cases import Case, seed_files
from fuzz.findings import Findings, case_of, minimised, write
from fuzz.pool import GUARD, Request, Result, Worker, tried
from fuzz.targets import SPARK, TARGETS

QUICK = ("crash", "difference", "memory")
"""What can be tried again and again, to make it smaller."""


def requests(targets: list[str], start: int, end: float) -> Iterator[Request]:
    """The seeds, then inputs of all targets by turns, until time is up."""
    for file in seed_files():
        record = json.loads(file.read_text("utf-8"))
        if record["target"] in targets:
            yield {"case": Case.from_json(record).to_json(), "name": file.stem}
    for turn in count():
        for target in targets:
            share = {**TARGETS, **SPARK}[target].share
            for seed in range(start + turn * share, start + (turn + 1) * share):
                if time.monotonic() >= end:
                    return
                yield {"target": target, "seed": seed}


def fuzz(asked: argparse.Namespace) -> int:
    """Try inputs, write down what is found, and say how many there were; 1 if anything was found."""
    targets = asked.target or [*TARGETS, *(SPARK if asked.spark else ())]
    begun = time.monotonic()
    end = begun + 60 * asked.minutes
    findings, inputs, told = Findings(Path(asked.findings)), Counter[str](), begun
    written: list[tuple[Path, Request, Result]] = []
    guard = max(asked.guard, 300.0) if asked.spark else asked.guard
    for request, result in tried(requests(targets, asked.seed, end), asked.workers, guard):
        inputs[request.get("target") or request["case"]["target"]] += 1
        if result is not None and (path := findings.add(request, result)) is not None:
            print(f"{result['kind']}: {result['target']}: {result['where']}\n  {path}", flush=True)
            if result["kind"] in QUICK:
                written.append((path, request, result))
        if time.monotonic() - told > 10:
            told = time.monotonic()
            minutes = f"{(told - begun) / 60:.1f} of {asked.minutes:g} minutes"
            print(f"{minutes}: {inputs.total()} inputs, {findings.seen.total()} findings", flush=True)
    for target, number in inputs.items():
        print(f"{number:10} {target}")
    hangs, crashes = findings.count("hang"), findings.count("crash", "killed", "memory")
    print(f"{inputs.total():10} inputs: crashes {crashes}, hangs {hangs}, differences {findings.count('difference')}")
    for (kind, target, where), number in sorted(findings.seen.items()):
        print(f"{number:10} {kind}: {target}: {where}")
    with Worker(guard) as worker:
        for path, request, result in written:
            print(f"made smaller: {path}", flush=True)
            write(path, minimised(case_of(request, result), result, worker), request, result)
    return bool(findings.seen)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="how long")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="processes; one per core")
    parser.add_argument("--seed", type=int, default=0, help="the first number of inputs")
    parser.add_argument("--target", action="append", choices=[*TARGETS, *SPARK], help="only this; may be repeated")
    parser.add_argument("--guard", type=float, default=GUARD, help="seconds for an input; more is a hang")
    parser.add_argument("--spark", action="store_true", help="Spark as well; needs Java")
    parser.add_argument("--findings", default=str(Findings().folder), help="the folder for what is found")
    parser.add_argument("--replay", metavar="FILE", help="try a finding or seed once, and say what happens")
    asked = parser.parse_args()
    if asked.replay is None:
        return fuzz(asked)
    with Worker(asked.guard) as worker:
        record = json.loads(Path(asked.replay).read_text("utf-8"))
        result = worker.tried({"case": Case.from_json(record).to_json()})
    print("all is well" if result is None else f"{result['kind']}: {result['where']}\n{result['text']}")
    return result is not None


if __name__ == "__main__":
    sys.exit(main())
