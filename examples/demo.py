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


def short(path: Path) -> Path:
    """A path as it must be typed here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def main() -> None:
    """Score, inspect, compare, report, validate."""
    quiet = ("-q", "--no-signatures")
    show("Six systems on the same sentences: how late, and how good?", "score", *SYSTEMS, "--audit", *quiet)
    show("One sentence of the system that delays its last read", "inspect", "antagonist-5", "-i", "7", "-q")
    pair = ("base=wait-5", "new=adaptive")
    show("Is the adaptive system better than wait-5?", "compare", *pair, "-m", "AL,DAL,BLEU", *quiet)
    page = Path(tempfile.gettempdir()) / "lagging-report.html"
    show("The same, and every sentence, as one page", "report", *pair, "-o", str(page), "-q")
    show("A broken log: what is wrong, where, and how to fix it", "validate", "broken", code=1)
    name, data = short(Path(sys.executable).with_name("lagging")), short(DATA)
    print(f"\nThe page is {page}. Next, try:\n")
    print(f"  {name} score YOUR.log                                  # how late is your own system?")
    print(f"  {name} inspect {data}/speech --worst DAL      # the worst sentence of a speech log")
    print(f"  {name} metrics DAL                                     # what DAL is, and whom to cite")


if __name__ == "__main__":
    main()
