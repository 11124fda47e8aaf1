# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("script", "arguments", "rows"),
    [
        ("comparing.py", ["--quick"], ["agree, resample by resample", "< 5 s CPU", "loop ÷ paired bootstrap"]),
        (
            "coverage.py",
            ["--quick"],
            ["skewed, 20 segments", "normal, 5 documents", "false positives at 0.05", "one-sided, 30 segments"],
        ),
    ],
)
def test_the_benchmark_prints_its_table(script, arguments, rows, tmp_path) -> None:
    """That it runs; what it measures depends on the machine, or on chance."""
    ran = subprocess.run(
        [sys.executable, str(BENCH / script), *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for row in rows:
        assert row in ran.stdout
