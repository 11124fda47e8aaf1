# SPDX-License-Identifier: Apache-2.0
"""The main jobs on the bundled examples: `make demo`."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

DATA = Path(__file__).parent / "data"
SYSTEMS = ("wait-1", "wait-3", "wait-5", "antagonist-5", "adaptive", "offline")


def show(text: str, *args: str, code: int = 0) -> None:
    """Print what a command is for, print the command, and run it."""
    shown = shlex.join(["lagging", *args])
    print(f"\n# {text}\n$ {shown}\n", flush=True)
    returncode = subprocess.run([sys.executable, "-m", "lagging", *args], cwd=DATA).returncode
    if returncode != code:
        sys.exit(f"`{shown}` ended with {returncode}, not {code}")


def main() -> None:
    """Score, inspect, compare, run, validate."""
    show("Six systems on the same sentences: how late, and how good?", "score", *SYSTEMS)
    show("What happened in one sentence of the system that delays its last read", "inspect", "antagonist-5", "-i", "7")
    show("A speech log: delays in milliseconds, on two clocks", "score", "speech", "-m", "AL,DAL,AL_CA,DAL_CA")
    show(
        "As SimulEval counts, for a number that was published",
        "score",
        "wait-3",
        "--convention",
        "simuleval",
        "-m",
        "AL,AP,DAL",
    )
    show("Is the adaptive system better than wait-5?", "compare", "base=wait-5", "new=adaptive", "-m", "AL,DAL,BLEU")
    page = Path(tempfile.gettempdir()) / "lagging-report.html"
    show("The same, and every sentence, as one page", "report", "base=wait-5", "new=adaptive", "-o", str(page))
    with tempfile.TemporaryDirectory() as folder:
        out, test_set = str(Path(folder, "my-wait-3")), ("--source", "source.txt", "--reference", "reference.txt")
        show("An agent of fifteen lines over a test set, and its scores", "run", "../wait_k.py", *test_set, "-o", out)
    show("A broken log: what is wrong, where, and how to fix it", "validate", "broken", code=1)
    show("What DAL is, and whom to cite", "metrics", "DAL")
    print(f"\nThe page is {page}.")
    print(f"The logs are in {DATA}; docs/tutorial.md goes on from here.")


if __name__ == "__main__":
    main()
