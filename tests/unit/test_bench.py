# SPDX-License-Identifier: Apache-2.0
import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
SCRIPT = BENCH / "scoring.py"

pytestmark = pytest.mark.slow


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


def printed(name, *options, cwd):
    ran = subprocess.run(
        [sys.executable, str(BENCH / name), *map(str, options)],
        cwd=cwd,
        env={**os.environ, "TMPDIR": str(cwd), "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_benchmark_of_quality_prints_its_table(tmp_path):
    out = printed("quality.py", "--quick", cwd=tmp_path)
    for row in ("BLEU", "chrF", "chrF++", "TER", "WER", "≥ 5×", "jiwer", "equal", "the defaults"):
        assert row in out
    assert "DIFFERENT" not in out


def test_the_benchmark_of_kernels_prints_its_table(tmp_path):
    out = printed("kernels.py", "--quick", cwd=tmp_path)
    for row in ("rows into rectangles", "ATD", "six averages", "the six together", "≤ 50", "together ÷ np.sum"):
        assert row in out


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="the CPU time of another process cannot be measured here")
def test_the_benchmark_of_growth_prints_its_table(tmp_path):
    out = printed("growth.py", "--quick", cwd=tmp_path)
    assert "JSON lines (AP,AL,LAAL,DAL)" in out
    sizes = [line.split()[0] for line in out.splitlines() if line.startswith("         ") and line.split()[0].isdigit()]
    assert sizes == ["200", "400", *(["200"] if "pyarrow, s CPU" in out else [])]


def test_the_page_keeps_its_prose_and_the_benchmarks_that_were_not_run(tmp_path):
    page = tmp_path / "page.md"
    begin, end = "<!-- from here on written by bench/page.py -->", "<!-- up to here written by bench/page.py -->"
    page.write_text(
        f"# B\n\nprose\n\n{begin}\n\n## Old\n\n<!-- bench/atd.py -->\n\nwas here\n\n{end}\n\nafter\n", "utf-8"
    )
    printed("page.py", "kernels", "--quick", "-o", page, cwd=tmp_path)
    text = page.read_text("utf-8")
    assert text.startswith(f"# B\n\nprose\n\n{begin}\n\nMeasured on: ")
    assert text.endswith(f"{end}\n\nafter\n")
    assert "## What a token costs in memory" in text
    assert "`python bench/kernels.py --quick`" in text
    assert "the six together" in text
    assert "was here" in text
    assert text.index("bench/kernels.py -->") < text.index("bench/atd.py -->")


def test_the_page_says_what_did_not_run(tmp_path):
    """A benchmark that fails is named, with its reason; it does not stop the others."""
    sys.path.insert(0, str(BENCH))
    try:
        import page
    finally:
        sys.path.remove(str(BENCH))
    broken = tmp_path / "broken.py"
    broken.write_text('"""Broken."""\nimport sys\nprint("so far")\nsys.exit("no such peer")\n', "utf-8")
    asked = argparse.Namespace(quick=True, full=False, simuleval_python=None, data=None, before=None)
    said, ran = page.measured(broken, asked)
    assert not ran
    assert "so far\n\nNOT RUN: no such peer" in said
    assert {"scoring", "kernels", "growth", "atd", "comparing"} <= set(page.scripts())
    assert not {"page", "streams", "numerics"} & set(page.scripts())


def test_the_page_shows_another_version_first(tmp_path):
    """Its own benchmark runs with its own package; one that it does not have is said to be new."""
    (tmp_path / "bench").mkdir()
    (tmp_path / "src" / "lagging").mkdir(parents=True)
    (tmp_path / "src" / "lagging" / "__init__.py").write_text("", "utf-8")
    (tmp_path / "bench" / "kernels.py").write_text("import lagging\nprint(lagging.__file__)\n", "utf-8")
    page = tmp_path / "page.md"
    printed("page.py", "kernels", "atd", "--quick", "--before", tmp_path, "-o", page, cwd=tmp_path)
    text = page.read_text("utf-8")
    assert str(tmp_path / "src" / "lagging" / "__init__.py") in text
    assert text.index("Before:\n") < text.index("Now:\n") < text.index("the six together")
    assert "Before: there was no such benchmark." in text


def test_the_benchmark_of_the_meter_loses_no_call(tmp_path):
    out = printed("meter.py", "--quick", cwd=tmp_path)
    for row in ("heard()", "wrote()", "shows()", "ended()", "snapshot()", "calls: ", "nothing lost"):
        assert row in out
