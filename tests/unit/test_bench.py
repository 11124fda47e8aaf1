# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "bench" / "scoring.py"


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="the CPU time of another process cannot be measured here")
def test_the_benchmark_of_scoring_prints_its_table(tmp_path):
    """That it runs; what it measures depends on the machine, so no time is asserted."""
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for row in (
        "against decoding with msgspec",
        "score ÷ decode, 1,000 segments",
        "score ÷ decode, each further segment up to 2,000",
        "peak memory, 2,000 segments",
        "against SimulEval",
        "import lagging ÷ import numpy",
        "lagging --help",
    ):
        assert row in ran.stdout
    assert "≤ 4×" in ran.stdout
    assert not list(tmp_path.iterdir()), "the logs it made are gone"
