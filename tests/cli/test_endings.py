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


def _command(what: str, source: Path, folder: Path) -> list[str]:
    return [*COMMAND, *(part.format(log=source, folder=folder) for part in WRITING[what])]


@pytest.mark.parametrize("what", WRITING)
def test_where_a_file_may_not_grow_nothing_is_left(what: str, tmp_path: Path) -> None:
    source, folder = tmp_path / "a.jsonl", tmp_path / "full"
    log(source, 4000)
    folder.mkdir()
    done = subprocess.run(
        _command(what, source, folder),
        capture_output=True,
        text=True,
        timeout=GUARD,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
    )
    assert done.returncode == 2, done.stderr
    assert "cannot write" in done.stderr
    assert "File too large" in done.stderr
    assert list(folder.iterdir()) == []


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
def test_on_a_full_disk_the_old_file_stays_and_nothing_is_left(what: str, small_disk: Path, tmp_path: Path) -> None:
    source = tmp_path / "a.jsonl"
    log(source, 4000)
    out = small_disk / Path(WRITING[what][-1]).name
    out.write_text("old")
    done = subprocess.run(_command(what, source, small_disk), capture_output=True, text=True, timeout=GUARD)
    assert done.returncode == 1, done.stderr
    assert "No space left on device" in done.stderr
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
