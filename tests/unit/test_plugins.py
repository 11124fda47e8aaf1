# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PLUGIN = """
import lagging

@lagging.register("FirstDelay", summary="when the first token comes")
def first_delay(schedule):
    return schedule.by_row(lambda g: g[:, 0])
"""
HALF = PLUGIN.replace("FirstDelay", "HalfDelay")
"""Registers a metric, before whatever is written below it goes wrong."""

FAILURES = {
    "raise RuntimeError('no luck')": "RuntimeError: no luck",
    "import sys; sys.exit(3)": "SystemExit: 3",
    "import nowhere_to_be_found": "ModuleNotFoundError: No module named 'nowhere_to_be_found'",
    "def (": "SyntaxError: invalid syntax (half_delay.py, line 7)",
    "lagging.register('DAL')(first_delay)": "MetricNameError: a metric called 'DAL' exists already",
    "class Panic(BaseException): pass\nraise Panic('of a library')": "Panic: of a library",
}


def install(directory: Path, **modules: str) -> dict[str, str]:
    """Packages with an entry point, as an installer would leave them."""
    for name, module in modules.items():
        (directory / f"{name}.py").write_text(module)
        info = directory / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[lagging.metrics]\nfirst = {name}\n")
    (directory / "a.rw").write_text("RRRWRW\n")
    paths = [str(directory), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def call(environment: dict[str, str], *args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lagging", *map(str, args)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8")


def test_a_package_can_bring_a_metric(tmp_path: Path) -> None:
    environment = install(tmp_path, first_delay=PLUGIN)
    assert "FirstDelay" in call(environment, "metrics").stdout
    scored = call(environment, "score", tmp_path / "a.rw", "-m", "FirstDelay_CA", "-f", "tsv")
    assert scored.returncode == 1  # the clock of an alias is known for it too, and this log has none
    scored = call(environment, "score", tmp_path / "a.rw", "-m", "FirstDelay", "-f", "tsv")
    assert scored.stdout.splitlines()[1].split("\t")[:3] == ["a", "FirstDelay", "3.0"]


@pytest.mark.parametrize("failure", FAILURES)
def test_a_broken_package_is_named_and_harms_nobody_else(tmp_path: Path, failure: str) -> None:
    environment = install(tmp_path, half_delay=HALF + failure, zoo=PLUGIN)
    reason = (
        f"the metric plug-in 'half_delay' cannot be loaded, and none of its metrics can be used: {FAILURES[failure]}"
    )
    found = call(environment, "metrics")
    assert (found.returncode, found.stderr) == (0, f"warning: {reason}\n")
    assert "FirstDelay" in found.stdout
    assert "HalfDelay" not in found.stdout
    assert call(environment, "score", tmp_path / "a.rw", "-m", "DAL").returncode == 0
    scored = call(environment, "score", tmp_path / "a.rw", "-m", "FirstDelay", "-f", "tsv")
    assert scored.stdout.splitlines()[1].split("\t")[:3] == ["a", "FirstDelay", "3.0"]
    assert scored.stderr.count(reason) == 1


@pytest.mark.parametrize("failure", FAILURES)
def test_a_metric_that_a_broken_package_would_have_brought_is_refused_with_the_reason(
    tmp_path: Path, failure: str
) -> None:
    environment = install(tmp_path, half_delay=HALF + failure)
    found = call(environment, "score", tmp_path / "a.rw", "-m", "HalfDelay")
    assert found.returncode == 2
    assert found.stderr.startswith("error: no metric is called 'HalfDelay'.")
    assert found.stderr.count(FAILURES[failure]) == 1


def test_a_metric_that_ends_the_program_is_no_failed_gate(tmp_path: Path) -> None:
    environment = install(tmp_path, first_delay=PLUGIN.replace("return", "import sys; sys.exit(3)\n    return"))
    found = call(environment, "score", tmp_path / "a.rw", "-m", "FirstDelay")
    assert found.returncode == 1
    assert "error: FirstDelay of " in found.stderr
    assert "its function ended the program: SystemExit: 3" in found.stderr
