# SPDX-License-Identifier: Apache-2.0
"""A small version of bench/server.py: a server amid a crowd that means it harm."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("websockets", reason="NOT RUN: there is no websockets")
BENCH = Path(__file__).parents[2] / "bench"
LIMIT = 400
"""MiB that the server may need, of which 46 are there before and 256 are for clients; the letters of one sentence of
256 MiB, as they were counted once, are 3000."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")


@pytest.mark.parametrize("speech", [False, True], ids=["text", "speech"])
def test_a_server_stays_small_and_serves_an_honest_client_amid_a_crowd(
    monkeypatch: pytest.MonkeyPatch, speech: bool
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    found = importlib.import_module("server").measure(speech, 150, 4.0, ("--max-memory", "256"))
    assert sum(found.opened.values()) >= 150
    assert set(found.opened) == {"asks_nothing", "falls_silent", "sends_bytes", "sends_much", "asks_emptily"}
    assert found.megabytes < LIMIT
    assert found.served > 0
    assert found.failed == []


def test_the_benchmark_prints_its_table(tmp_path: Path) -> None:
    """That it runs; what it measures depends on the machine."""
    ran = subprocess.run(
        [sys.executable, str(BENCH / "server.py"), "--quick"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for row in ("100 connections at once", "memory of the server, at most", "sentences of the honest client"):
        assert row in ran.stdout
    assert not list(tmp_path.iterdir()), "what it made is gone"
