# SPDX-License-Identifier: Apache-2.0
"""What was found: as a file that can be tried again, and as small as it can be made."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from fuzz.cases import Case
from fuzz.pool import Request, Result, Worker
from fuzz.targets import make

FOLDER = Path(__file__).parent / "findings"
ALIKE = 2
"""Of findings that look alike, so many are written; all are counted."""
PATIENCE = 20.0
"""Seconds in which an input is made smaller."""


@dataclass
class Findings:
    """What was found, by what it looks like."""

    folder: Path = FOLDER
    seen: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def add(self, request: Request, result: Result) -> Path | None:
        """Count a finding; the file it was written to, if it looks like none before."""
        key = (result["kind"], result["target"], re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "#", result["where"]))
        self.seen[key] += 1
        if self.seen[key] > ALIKE:
            return None
        case = case_of(request, result)
        self.folder.mkdir(exist_ok=True)
        name = request.get("name", request.get("seed", self.seen[key]))
        path = self.folder / f"{result['kind']}-{result['target']}-{name}.json"
        write(path, case, request, result)
        return path

    def count(self, *kinds: str) -> int:
        """How many of these kinds there are."""
        return sum(number for (kind, *_), number in self.seen.items() if kind in kinds)


def case_of(request: Request, result: Result) -> Case:
    """The input of a finding; made again if its worker is gone."""
    if result.get("case"):
        return Case.from_json(result["case"])
    return Case.from_json(request["case"]) if "case" in request else make(request["target"], request["seed"])


def write(path: Path, case: Case, request: Request, result: Result) -> None:
    """Write a finding; moved to `seeds`, and said what it shows, it is a seed."""
    record = {**case.to_json(), "seed": request.get("seed")}
    record["found"] = {key: result[key] for key in ("kind", "where", "text")}
    path.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def minimised(case: Case, result: Result, worker: Worker, patience: float = PATIENCE) -> Case:
    """A smaller input with which the same is found: without some lines, then without some bytes, of its files."""
    end = time.monotonic() + patience

    def goes_on() -> bool:
        return time.monotonic() < end

    def fails(smaller: Case) -> bool:
        again = worker.tried({"case": smaller.to_json()})
        return again is not None and (again["kind"], again["where"]) == (result["kind"], result["where"])

    for name in [*case.files]:
        if len(case.files) > 1 and fails(
            smaller := replace(case, files={k: v for k, v in case.files.items() if k != name})
        ):
            case = smaller
    for split in (lines, letters):
        for name in case.files:
            case = _shorter(case, name, split, fails, goes_on)
    return case


def _shorter(
    case: Case,
    name: str,
    split: Callable[[bytes], list[bytes]],
    fails: Callable[[Case], bool],
    goes_on: Callable[[], bool],
) -> Case:
    pieces = split(case.files[name])
    size = len(pieces) // 2
    while size and goes_on():
        at = 0
        while at < len(pieces) and goes_on():
            smaller = replace(case, files={**case.files, name: b"".join(pieces[:at] + pieces[at + size :])})
            if fails(smaller):
                case, pieces = smaller, pieces[:at] + pieces[at + size :]
            else:
                at += size
        size //= 2
    return case


def lines(content: bytes) -> list[bytes]:
    """A file by lines."""
    return content.splitlines(keepends=True)


def letters(content: bytes) -> list[bytes]:
    """A file by bytes; a large one in larger pieces."""
    size = max(1, len(content) // 512)
    return [content[at : at + size] for at in range(0, len(content), size)]
