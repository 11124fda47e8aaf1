# SPDX-License-Identifier: Apache-2.0
"""What a long run keeps of the sentences that are over: nothing."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
LIMIT = 2000
"""KB in 4000 sentences, of which 80 fail. What is kept of each sentence, be it 500 bytes, is more."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")


@pytest.fixture
def soak(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("soak")


def test_neither_run_nor_worker_grows(soak) -> None:
    noted = soak.soak(6000, workers=2, every=250)
    assert [note["sentence"] for note in noted] == list(range(0, 6000, 250))
    late = [note for note in noted if note["sentence"] >= 2000]
    assert max(note["run KB"] for note in late) - late[0]["run KB"] < LIMIT
    for worker in {note["worker"] for note in late}:
        memory = [note["KB"] for note in late if note["worker"] == worker]
        assert max(memory) - memory[0] < LIMIT


def test_what_grows_is_seen(soak) -> None:
    noted = [{"sentence": n, "worker": 1 + n % 2, "KB": n * (n % 2), "run KB": 5.0} for n in range(0, 100, 5)]
    assert dict(soak.slopes(noted, 100)) == {
        "run": pytest.approx(0, abs=1e-9),
        "worker 1": pytest.approx(0, abs=1e-9),
        "worker 2": pytest.approx(1000),
    }


@pytest.mark.parametrize(
    ("script", "rows"),
    [
        ("soak.py", ["400 sentences of 25 words", "worker 1:", "run:"]),
        (
            "agents.py",
            [
                "beside the policy",
                "log of 2 workers = log of 1, to the byte                                    yes",
                "steps a second, by the clock on the wall",
                "memory of each further second in one recording: ours",
            ],
        ),
    ],
)
def test_the_benchmark_prints_its_table(script, rows, tmp_path) -> None:
    """That it runs; what it measures depends on the machine."""
    pytest.importorskip("soundfile", reason="NOT RUN: there is no soundfile")
    pytest.importorskip("websockets", reason="NOT RUN: there is no websockets")
    ran = subprocess.run(
        [sys.executable, str(BENCH / script), "--quick"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUTF8": "1", "PYTHONPYCACHEPREFIX": ""},  # as it is
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for row in rows:
        assert row in ran.stdout
    assert not list(tmp_path.iterdir()), "what it made is gone"
