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


LINES = 12
"""How much is shown of a long list of faults."""


def show(text: str, *args: str, code: int = 0, lines: int | None = None) -> None:
    """Print what a command is for, print the command, and run it; of its output, the first lines if so requested."""
    shown = shlex.join(["lagging", *args])
    print(f"\n# {text}\n$ {shown}\n", flush=True)
    command = [sys.executable, "-m", "lagging", *args]
    if lines is None:
        returncode = subprocess.run(command, cwd=DATA).returncode
    else:
        done = subprocess.run(command, cwd=DATA, text=True, encoding="utf-8", capture_output=True)
        returncode, printed = done.returncode, (done.stdout + done.stderr).splitlines()
        print("\n".join(printed[:lines]))
        if len(printed) > lines:
            print(f"… and {len(printed) - lines} lines more: why each is a fault, and how to mend it", flush=True)
    if returncode != code:
        sys.exit(f"`{shown}` ended with {returncode}, not {code}")


def short(path: Path) -> Path:
    """A path as it must be typed here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def main() -> None:
    """Score, inspect, compare, report, validate."""
    quiet = ("-q", "--no-signatures")
    show("Six systems on the same sentences: how late, and how good?", "score", *SYSTEMS, "--audit", *quiet)
    show("One sentence of the system that delays its last read", "inspect", "antagonist-5", "-i", "7", *quiet)
    pair = ("base=wait-5", "new=adaptive")
    show("Is the adaptive system better than wait-5?", "compare", *pair, "-m", "AL,DAL,BLEU", *quiet)
    page = Path(tempfile.gettempdir()) / "lagging-report.html"
    show("The same, and every sentence, as one page", "report", *pair, "-o", str(page), "-q")
    show("A broken log: what is wrong, where, and how to fix it", "validate", "broken", code=1, lines=LINES)
    name, data = short(Path(sys.executable).with_name("lagging")), short(DATA)
    print(f"\nThe page is {page}. Next, try:\n")
    commands = {
        f"{name} score YOUR.log": "how late is your own system?",
        f"{name} inspect {data}/speech --worst DAL": "the worst sentence of a speech log",
        f"{name} metrics DAL": "what DAL is, and whom to cite",
    }
    widest = max(map(len, commands))
    for typed, purpose in commands.items():
        print(f"  {typed:{widest}}  # {purpose}")


if __name__ == "__main__":
    main()
