# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
from pathlib import Path

PLUGIN = """
import lagging

@lagging.register("FirstDelay", summary="when the first token comes")
def first_delay(schedule):
    return schedule.by_row(lambda g: g[:, 0])
"""


def install(directory: Path, module: str) -> dict[str, str]:
    """A package with an entry point, as an installer would leave it."""
    (directory / "first_delay.py").write_text(module)
    info = directory / "first_delay-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: first-delay\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[lagging.metrics]\nfirst = first_delay\n")
    return {**os.environ, "PYTHONPATH": str(directory)}


def call(environment: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lagging", *args]
    return subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8")


def test_a_package_can_bring_a_metric(tmp_path: Path) -> None:
    environment = install(tmp_path, PLUGIN)
    assert "FirstDelay" in call(environment, "metrics").stdout
    (tmp_path / "a.rw").write_text("RRRWRW\n")
    scored = call(environment, "score", str(tmp_path / "a.rw"), "-m", "FirstDelay,FirstDelay_CA", "-f", "tsv")
    assert scored.returncode == 1  # the clock of an alias is known for it too, and this log has none
    scored = call(environment, "score", str(tmp_path / "a.rw"), "-m", "FirstDelay", "-f", "tsv")
    assert scored.stdout.splitlines()[1].split("\t")[:3] == ["a", "FirstDelay", "3.0"]


def test_a_broken_package_is_named_and_harms_nobody_else(tmp_path: Path) -> None:
    environment = install(tmp_path, "raise RuntimeError('no luck')")
    found = call(environment, "metrics")
    assert found.returncode == 1
    assert found.stderr == "error: the metric plug-in 'first_delay' cannot be loaded: no luck\n"
    (tmp_path / "a.rw").write_text("RRRWRW\n")
    assert call(environment, "score", str(tmp_path / "a.rw"), "-m", "DAL").returncode == 0
