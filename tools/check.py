# SPDX-License-Identifier: Apache-2.0
"""Every check of the project, one after the other: `python tools/check.py [NAME…]`.

All of them run, whatever fails. The last line says which passed, or, where something that a suite needs is absent,
which suite was NOT RUN.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTHON = sys.executable


def check_package() -> int:
    """Build the distributions, and let twine look at them."""
    out = Path(tempfile.mkdtemp(prefix="lagging-dist-"))
    built = subprocess.run([PYTHON, "-m", "build", "--outdir", str(out), "."], cwd=ROOT, stdout=subprocess.DEVNULL)
    if built.returncode:
        return built.returncode
    return subprocess.run([PYTHON, "-m", "twine", "check", "--strict", *map(str, out.iterdir())]).returncode


def suites() -> dict[str, list[list[str]]]:
    """Commands of each suite, by name."""
    return {
        "style": [[PYTHON, "-m", "ruff", "check", "."], [PYTHON, "-m", "ruff", "format", "--check", "--quiet", "."]],
        "types": [[PYTHON, "-m", "mypy"]],
        "docs": [
            [
                PYTHON,
                "-m",
                "mkdocs",
                "build",
                "--strict",
                "--quiet",
                "--site-dir",
                tempfile.mkdtemp(prefix="lagging-site-"),
            ]
        ],
        "package": [[PYTHON, __file__, "--package"]],
        "tests": [[PYTHON, "-m", "pytest", "-q", "--cov", "--cov-report=term-missing:skip-covered"]],
    }


def main(names: list[str]) -> int:
    """Run the suites; 1 if one failed."""
    chosen = {name: commands for name, commands in suites().items() if not names or name in names}
    failed = []
    for name, commands in chosen.items():
        for command in commands:
            print(f"── {name}: {' '.join(command[1:6])}", flush=True)
            if subprocess.run(command, cwd=ROOT).returncode:
                failed.append(name)
                break
    absent = [] if os.environ.get("LAGGING_TEST_DATA") else ["parity (LAGGING_TEST_DATA is not set)"]
    print(f"failed: {', '.join(failed)}" if failed else f"passed: {', '.join(chosen)}")
    if absent and "tests" in chosen:
        print(f"NOT RUN: {', '.join(absent)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(check_package() if sys.argv[1:] == ["--package"] else main(sys.argv[1:]))
