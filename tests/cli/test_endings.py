# SPDX-License-Identifier: Apache-2.0
"""Full disks and signals: a file is there whole, or as it was, and nothing half-written lies beside it."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lagging.data.files import write_whole
from lagging.errors import LaggingError

COMMAND = [sys.executable, "-m", "lagging"]
GUARD = 120
"""Seconds after which something hangs."""


def log(path: Path, lines: int) -> None:
    """A log of words that nobody can compress."""
    dice = random.Random(1)
    with path.open("w") as file:
        for _ in range(lines):
            words = " ".join(f"{dice.randrange(1 << 40):x}" for _ in range(20))
            delays = sorted(dice.uniform(0, 20) for _ in range(20))
            record = {"index": f"{dice.randrange(1 << 60):x}", "prediction": words, "delays": delays}
            file.write(json.dumps({**record, "source_length": 20, "unit": "token", "lang": "de"}) + "\n")


WRITING = {
    "convert to JSON": ["convert", "{log}", "-o", "{folder}/out.jsonl"],
    "convert to CSV": ["convert", "{log}", "-o", "{folder}/out.csv"],
    "convert to Parquet": ["convert", "{log}", "-o", "{folder}/out.parquet"],
    "convert to Arrow": ["convert", "{log}", "-o", "{folder}/out.arrow"],
    "scores of segments": ["score", "{log}", "--segment-scores", "{folder}/out.tsv"],
    "scores of segments as Parquet": ["score", "{log}", "--segment-scores", "{folder}/out.parquet"],
    "a page": ["report", "{log}", "-o", "{folder}/out.html"],
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log that is larger than what can be written."""
    path = tmp_path_factory.mktemp("source") / "a.jsonl"
    log(path, 4000)
    return path


def _command(what: str, source: Path, folder: Path) -> list[str]:
    return [part.format(log=source, folder=folder) for part in WRITING[what]]


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file that this process writes may grow beyond a size.

    Bytecode is not written meanwhile: Python would keep the part of it that fits.
    """
    before, bytecode = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = bytecode


@pytest.mark.parametrize("what", WRITING)
def test_where_a_file_may_not_grow_nothing_is_left(what: str, source: Path, tmp_path: Path, run: Any) -> None:
    with largest_file(20_000):
        code, _, err = run(*_command(what, source, tmp_path))
    assert code == 2, err
    assert "cannot write" in err
    assert "File too large" in err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("NOT RUN: only root mounts a file system")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("NOT RUN: a file system cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("what", WRITING)
def test_on_a_full_disk_the_old_file_stays_and_nothing_is_left(
    what: str, small_disk: Path, source: Path, run: Any
) -> None:
    out = small_disk / Path(WRITING[what][-1]).name
    out.write_text("old")
    code, _, err = run(*_command(what, source, small_disk))
    assert code == 1, err
    assert "No space left on device" in err
    assert [file.name for file in small_disk.iterdir()] == [out.name]
    assert out.read_text() == "old"


class Broken:
    """A file whose disk is full: what was written is refused when it is flushed, and again when it is closed."""

    def __init__(self, file: Any) -> None:
        self.file, self.name = file, file.name

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def close(self) -> None:
        self.file.close()
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_file_that_cannot_be_closed_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    made = tempfile.NamedTemporaryFile
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", lambda **how: Broken(made(**how)))
    with pytest.raises(LaggingError, match="make room"), write_whole(tmp_path / "out.txt") as file:
        file.write("new")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_on_the_disk_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out.txt").write_text("old")
    told: list[str] = []
    sync = os.fsync

    def noted(handle: int) -> None:
        told.append((tmp_path / "out.txt").read_text())
        sync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    with write_whole(tmp_path / "out.txt") as file:
        file.write("new")
    assert told == ["old", "new"]  # the file before it is renamed, the folder after


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_who_is_asked_to_end_leaves_nothing_half_written(number: int, code: int, tmp_path: Path) -> None:
    """The table of segments is open while the log is read, from somebody who has not written all of it yet."""
    log(tmp_path / "a.jsonl", 3000)
    command = [
        *COMMAND,
        "score",
        "-",
        "--by",
        "lang",
        "-m",
        "AL",
        "--segment-scores",
        "out.tsv",
        "--format-in",
        "jsonl",
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stdin is not None
        process.stdin.write((tmp_path / "a.jsonl").read_bytes())
        process.stdin.flush()
        began = time.monotonic()
        while not list(tmp_path.glob(".*.unfinished")):
            assert time.monotonic() - began < GUARD
            assert process.poll() is None
            time.sleep(0.02)
        for _ in range(GUARD // 5):  # a signal that comes just before a read begins is heard when that has ended
            process.send_signal(number)
            try:
                process.wait(5)
                break
            except subprocess.TimeoutExpired:
                continue
        assert process.returncode == code
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    assert [file.name for file in tmp_path.iterdir()] == ["a.jsonl"]
