# SPDX-License-Identifier: Apache-2.0
"""`lagging run` in a process of its own, as people start it, and what it leaves behind."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "lagging", "run"]
PATIENCE = 120
"""Seconds after which a test has failed; none takes a tenth of it."""


def arguments(agent: object, source: object, folder: object, *more: object) -> list[str]:
    return [*COMMAND, str(agent), "--source", str(source), "-o", str(folder), *map(str, more)]


class Started(subprocess.Popen[str]):
    """A process that is ended where the test that started it has failed."""

    def __exit__(self, kind: Any, *more: Any) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, *more)


def started(agent: object, source: object, folder: object, *more: object, **how: Any) -> Started:
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return Started(arguments(agent, source, folder, *more), **pipes | how)


def ran(agent: object, source: object, folder: object, *more: object, **how: Any) -> subprocess.CompletedProcess[str]:
    with started(agent, source, folder, *more, **how) as process:
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "instances.log").read_text("utf-8").splitlines()]


def manifest(folder: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((folder / "run.json").read_text("utf-8"))
    return made


def hashes(folder: Path) -> dict[str, str]:
    """What is in a folder, but for the locks, that say who was there."""
    files = [file for file in folder.rglob("*") if file.is_file() and file.suffix != ".lock"]
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def is_alive(pid: int) -> bool:
    """Whether a process is there, and has not ended."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def workers_of(pid: int) -> list[int]:
    """The processes that a run has started to translate."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(child) for child in children if b"spawn_main" in _command(child)]


def _command(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def size(folder: Path) -> int:
    log = folder / "instances.log"
    return log.stat().st_size if log.exists() else 0
