# SPDX-License-Identifier: Apache-2.0
"""Files without lines, or without an end: a limit that is said, in bounded memory, and never a MemoryError."""

from __future__ import annotations

import gzip
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import lagging
from lagging.errors import DataError, UsageError
from lagging.formats import source

pytestmark = pytest.mark.slow

GUARD = 300
"""Seconds after which something hangs; each takes a few."""

MiB = 1 << 20
LINE = b'{"index": %d, "prediction": "a b", "delays": [1, 2], "source_length": 2}\n'


def call(*args: str, memory: int = 3 << 30, folder: Path, limit: str = "") -> subprocess.CompletedProcess[str]:
    """A command in a process that may not have more than some memory."""
    return subprocess.run(
        [sys.executable, "-m", "lagging", *args],
        capture_output=True,
        text=True,
        timeout=GUARD,
        cwd=folder,
        env={**os.environ, source.VARIABLE: limit, "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)),
    )


@pytest.mark.parametrize("command", ["validate", "score", "inspect", "convert", "compare"])
def test_a_device_without_an_end_is_told_as_such(command: str, tmp_path: Path) -> None:
    more = ["-o", "x.jsonl"] if command == "convert" else []
    done = call(command, "/dev/zero", *more, folder=tmp_path)
    assert done.returncode == 1, done.stderr
    said = done.stdout + done.stderr
    assert f"more than is taken into memory in /dev/zero:1: a line of more than {1 << 28} bytes" in said or (
        f"/dev/zero:1: more than is taken into memory: a line of more than {1 << 28} bytes" in said
    )
    assert "LAGGING_LONGEST_LINE=BYTES" in said
    assert not list(tmp_path.iterdir())


def test_a_small_file_that_unpacks_to_one_endless_line(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.jsonl.gz", "wb", compresslevel=1) as file:
        file.write(LINE % 0)
        file.write(b'{"delays": [')
        for _ in range(400):
            file.write(b"1, " * (MiB // 3))
    assert (tmp_path / "a.jsonl.gz").stat().st_size < 2 * MiB
    for command in ("validate", "score"):
        done = call(command, "a.jsonl.gz", folder=tmp_path)
        assert done.returncode == 1, done.stderr
        assert "a.jsonl.gz:2" in done.stdout + done.stderr
        assert "more than is taken into memory" in done.stdout + done.stderr


@pytest.mark.parametrize("blank", [b"\n", b" \n", b"\r\n"])
def test_blank_lines_without_an_end(blank: bytes, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.gz", "wb", compresslevel=1) as file:
        for _ in range(100):
            file.write(blank * (MiB // len(blank)))
    done = call("score", "a.gz", folder=tmp_path, memory=1 << 30)
    assert done.returncode == 1
    assert "the log holds no segments in a.gz: nothing but blank lines in the first 16 MiB" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("resegment", "a.jsonl", "--segmentation", "{}", "-o", "o.jsonl"),
        ("resegment", "a.jsonl", "--reference", "{}", "-o", "o.jsonl"),
        ("compare", "a=a.jsonl", "b=a.jsonl", "--column", "COMET=a:{}"),
        ("curve", "--published", "{}"),
        ("simulate", "wait-3", "--source", "{}", "--target", "a.jsonl", "-o", "o.rw"),
    ],
    ids=lambda command: command[0],
)
def test_files_beside_a_log_without_an_end(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(LINE % 0)
    (tmp_path / "endless").symlink_to("/dev/zero")
    with gzip.open(tmp_path / "lines.gz", "wb", compresslevel=1) as file:
        for _ in range(30):
            file.write(b"1\n" * (MiB // 2))
    for name in ("endless", "lines.gz"):
        done = call(*(part.format(name) for part in command), folder=tmp_path, limit=str(4 * MiB))
        assert done.returncode in (1, 2), done.stderr
        assert "Traceback" not in done.stderr
        assert "memory" in done.stderr or "MiB" in done.stderr, done.stderr


def test_where_there_is_not_enough_memory_it_is_said(tmp_path: Path) -> None:
    done = call("score", "/dev/zero", folder=tmp_path, memory=700 * MiB, limit=str(1 << 40))
    assert done.returncode == 1
    assert done.stderr.endswith("error: there is not enough memory\n  fix: check that the file is the right one.\n")


def test_the_limit_is_that_of_a_line_and_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "a.jsonl"
    log.write_bytes(b"".join(LINE % k for k in range(5000)))  # more than one batch
    longest = len(LINE % 4999)
    monkeypatch.setenv(source.VARIABLE, str(longest))
    assert len(lagging.read(log)) == 5000
    long = LINE.replace(b'"a b"', b'"a b", "comment": "' + b"x" * 300_000 + b'"') % 5000
    log.write_bytes(b"".join(LINE % k for k in range(5000)) + long + LINE % 5001)
    with pytest.raises(DataError) as error:
        lagging.read(log)
    assert [(f.kind, f.line) for f in error.value.faults] == [("too-large", 5001)]
    assert [(f.kind, f.line) for f in lagging.validate(log).faults] == [("too-large", 5001)]
    monkeypatch.setenv(source.VARIABLE, str(len(long)))
    assert len(lagging.read(log)) == 5002
    for wrong in ("many", "-1", "0", "1e9", "9" * 30):
        monkeypatch.setenv(source.VARIABLE, wrong)
        with pytest.raises(UsageError, match="is a number of bytes"):
            lagging.read(log)


def test_what_was_wrong_before_a_line_that_is_too_long_is_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "a.jsonl"
    log.write_bytes(LINE % 0 + b'{"delays": 3}\n' + LINE % 1 + b"x" * 500_000 + b"\n")
    monkeypatch.setenv(source.VARIABLE, "200000")
    told = [(fault.kind, fault.line) for fault in lagging.validate(log).faults]
    assert told == [("delays-not-a-list", 2), ("too-large", 4)]
