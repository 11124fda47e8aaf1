# SPDX-License-Identifier: Apache-2.0
"""Every check of the project, one after the other: `python tools/check.py [NAME…]`.

All of them run, whatever fails. The last line says which passed, or, where something that a suite needs is absent,
which suite was NOT RUN.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTHON = sys.executable
PYTEST = [PYTHON, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder"]
"""Tests on all cores; those of a file in one process, so that what they share is made once."""
COUNTED = ["--cov", "--cov-append", "--cov-report=term-missing:skip-covered"]
"""Coverage, added to that of Spark's tests."""
LONG = ("tests/reproduction", "tests/parity", "tests/property", "tests/fuzz")
"""Tests that repeat the same lines with many inputs; they run without coverage, which would take half as long again."""
CORE = ("tests/unit", "tests/golden", "tests/cli", "src/lagging/metrics", "src/lagging/formats", "src/lagging/scoring")
"""What `make test-core` runs, but for the tests that are marked as slow; with fewer examples of each property."""


def check_package() -> int:
    """Build the distributions, see that all of the package is in them, and let twine look at them."""
    with tempfile.TemporaryDirectory(prefix="lagging-dist-") as folder:
        out = Path(folder)
        built = subprocess.run([PYTHON, "-m", "build", "--outdir", folder, "."], cwd=ROOT, stdout=subprocess.DEVNULL)
        if built.returncode:
            return built.returncode
        (wheel,), (archive,) = out.glob("*.whl"), out.glob("*.tar.gz")
        with zipfile.ZipFile(wheel) as packed, tarfile.open(archive) as sources:
            names, sent = set(packed.namelist()), sources.getnames()
        files = [path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("lagging/**/*.*")]
        wrong = [f"{name} is not in the wheel" for name in files if name not in names and "__pycache__" not in name]
        wrong += [f"{name} is in the archive" for name in sent if name.endswith("/node_modules")]
        if wrong:
            print("\n".join(wrong))
            return 1
        return subprocess.run([PYTHON, "-m", "twine", "check", "--strict", *map(str, out.iterdir())]).returncode


def chromium() -> str | None:
    """The browser in which pages are tried."""
    named = os.environ.get("LAGGING_CHROMIUM")
    return named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def web() -> list[list[str]]:
    """Install what builds the pages, unless it is there; types, tests, and whether the shipped pages are fresh."""
    npm = shutil.which("npm")
    if npm is None:
        return []
    run = [npm, "--prefix", "web", "--silent"]
    lock, installed = ROOT / "web" / "package-lock.json", ROOT / "web" / "node_modules" / ".package-lock.json"
    is_current = installed.exists() and installed.stat().st_mtime >= lock.stat().st_mtime
    steps = ["types", "unit", "fresh", *(["e2e"] if chromium() else [])]
    # not `npm ci`: it fails where a registry lacks a binary for some other system, which nothing here needs
    install = [*run, "install", "--no-save", "--no-audit", "--no-fund"]
    return [*([] if is_current else [install]), *([*run, "run", step] for step in steps)]


def java() -> str | None:
    """What runs Spark."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java") or (home and shutil.which("java", path=f"{home}/bin")) or None


def spark() -> list[list[str]]:
    """Tests with a Spark of several executors, in one process; what they cover counts with the other tests."""
    counted = ["--cov", "--cov-report=", "--cov-fail-under=0"]
    return [[PYTHON, "-m", "pytest", "-q", "tests/spark", *counted]] if java() else []


def suites() -> dict[str, list[list[str]]]:
    """Commands of each suite, by name; a suite whose tool is absent has none."""
    return {
        "style": [[PYTHON, "-m", "ruff", "check", "."], [PYTHON, "-m", "ruff", "format", "--check", "--quiet", "."]],
        "types": [[PYTHON, "-m", "mypy"]],
        "package": [[PYTHON, __file__, "--package"]],
        "web": web(),
        "spark": spark(),
        "tests": [
            # the documentation is built, strictly, by tests/unit/test_docs.py
            [*PYTEST, "tests", "src", *(f"--ignore={folder}" for folder in ("tests/spark", *LONG)), *COUNTED]
        ],
        "long": [[*PYTEST, *LONG]],
        "core": [[PYTHON, "-m", "pytest", "-q", "-m", "not slow", "--hypothesis-profile=quick", *CORE]],
    }


EVERYTHING = ("style", "types", "package", "web", "spark", "tests", "long")
"""The suites that run where none is named; `core` is a part of `tests`."""


def absent(suite: str) -> str | None:
    """What of a suite cannot be run here, and why."""
    peers = Path(os.environ.get("LAGGING_PEERS") or Path(sys.prefix) / "peers")
    if suite == "tests" and not (peers / "simuleval").is_dir():
        return "SimulEval's own runner (`make test` installs it into .venv/peers)"
    if suite == "long" and not os.environ.get("LAGGING_TEST_DATA"):
        return "parity (LAGGING_TEST_DATA is not set)"
    if suite == "spark" and java() is None:
        return "spark (there is no Java)"
    if suite == "web" and shutil.which("npm") is None:
        return "web (there is no npm)"
    if suite == "web" and chromium() is None:
        return "pages in a browser (there is no Chromium)"
    return None


def main(names: list[str]) -> int:
    """Run the suites; 1 if one failed."""
    requested = {name: commands for name, commands in suites().items() if name in (names or EVERYTHING)}
    chosen = {name: commands for name, commands in requested.items() if commands}
    failed = []
    if (browser := chromium()) is not None:
        os.environ["LAGGING_CHROMIUM"] = browser
    os.environ.setdefault("LAGGING_PYTHON", PYTHON)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each of a thousand processes compiles the package again
    (ROOT / ".coverage").unlink(missing_ok=True)
    for name, commands in chosen.items():
        for command in commands:
            print(f"── {name}: {' '.join(command[1:6])}", flush=True)
            if subprocess.run(command, cwd=ROOT).returncode:
                failed.append(name)
                break
    print(f"failed: {', '.join(failed)}" if failed else f"passed: {', '.join(chosen)}")
    if missing := [why for name in requested if (why := absent(name))]:
        print(f"NOT RUN: {', '.join(missing)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(check_package() if sys.argv[1:] == ["--package"] else main(sys.argv[1:]))
