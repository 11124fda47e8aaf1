# SPDX-License-Identifier: Apache-2.0
"""Does a long run grow? Memory of a run and of its workers, noted every so many sentences by the agent itself.

    python bench/soak.py                    # 20 000 sentences: half a minute
    python bench/soak.py --workers 2 --sentences 100000
    python bench/soak.py --quick            # shows that it runs, the numbers mean nothing

Every fiftieth sentence fails, so that what failures leave behind is seen too. The slope is that of a straight line
through what was noted from the tenth part of the run on: before, modules are still being imported and caches filled.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lagging.agents import State

WORDS = 25
LIMIT = 20.0
"""KB for 1000 sentences that a process may grow by; a byte that is kept of every step would be 50."""


class Noting:
    """Wait-3, which copies. It fails at every fiftieth sentence, and notes the memory of its process and of the run."""

    def __init__(self, notes: str, every: int = 500) -> None:
        self.notes, self.every = Path(notes), every

    def policy(self, state: State) -> str | None:
        """The next word, if it is due."""
        read, written = len(state.source), len(state.target)
        if read == 1 and not written:
            self.begin(state.sentence)
        if read - written >= 3 or (state.finished and read > written):
            word: str = state.source[written]
            return word
        return None

    def begin(self, sentence: int) -> None:
        """Note down, or fail."""
        if sentence % self.every == 0:
            noted = {"sentence": sentence, "worker": os.getpid(), "KB": resident(), "run KB": resident(os.getppid())}
            with self.notes.open("a", encoding="utf-8") as file:
                file.write(json.dumps(noted) + "\n")
        if sentence % 50 == 49:
            raise RuntimeError("one of those that fail")


def resident(process: int | str = "self") -> float:
    """The resident memory of a process in KB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024


def soak(sentences: int, workers: int, every: int) -> list[dict[str, float]]:
    """Run it; what was noted, by sentence."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        line = " ".join(f"word{n}" for n in range(WORDS))
        (folder / "source").write_text(f"{line}\n" * sentences, encoding="utf-8")
        agent = [f"{Path(__file__)}:Noting", "-a", f"notes={folder / 'notes'}", "-a", f"every={every}"]
        data = ["--source", str(folder / "source"), "-o", str(folder / "out"), "--workers", str(workers)]
        command = [sys.executable, "-m", "lagging", "run", *agent, *data, "--no-scores", "-q"]
        ran = subprocess.run(command, capture_output=True, encoding="utf-8")
        with (folder / "out" / "instances.log").open("rb") as log:
            lines = sum(1 for _ in log)
        if ran.returncode != 1 or lines != sentences:  # 1: some failed, as they should
            sys.exit(f"exit code {ran.returncode}, {lines} lines\n{ran.stderr[-2000:]}")
        noted = [json.loads(line) for line in (folder / "notes").read_text(encoding="utf-8").splitlines()]
    return sorted(noted, key=lambda note: note["sentence"])


def slopes(noted: list[dict[str, float]], sentences: int) -> Iterator[tuple[str, float]]:
    """KB for 1000 sentences, of the run and of each worker."""
    late = [note for note in noted if note["sentence"] >= sentences / 10]
    yield "run", slope([note["sentence"] for note in late], [note["run KB"] for note in late])
    for number, worker in enumerate(sorted({note["worker"] for note in late}), 1):
        mine = [note for note in late if note["worker"] == worker]
        yield f"worker {number}", slope([note["sentence"] for note in mine], [note["KB"] for note in mine])


def slope(sentence: list[float], memory: list[float]) -> float:
    return float(np.polyfit(sentence, memory, 1)[0]) * 1000 if len(sentence) > 1 else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description="Does a long run grow?")
    parser.add_argument("--quick", action="store_true", help="400 sentences: the numbers mean nothing")
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    if not Path("/proc/self/statm").exists():
        sys.exit("the memory of another process cannot be read on this system (no /proc)")
    sentences = 400 if args.quick else args.sentences
    noted = soak(sentences, args.workers, every=max(sentences // 40, 1))
    print(f"{sentences:,} sentences of {WORDS} words, {args.workers} worker(s)\n")
    print(f"  {'sentence':>10}  {'run':>10}  {'worker':>10}")
    for note in noted[:: max(len(noted) // 10, 1)]:
        print(f"  {note['sentence']:>10,}  {note['run KB']:>7,.0f} KB  {note['KB']:>7,.0f} KB")
    print()
    for who, kb in slopes(noted, sentences):
        verdict = "" if args.quick else "  met" if kb < LIMIT else "  MISSED"
        print(f"  {who}: {kb:+.1f} KB for 1000 sentences  (< {LIMIT:g}){verdict}")


if __name__ == "__main__":
    main()
