# SPDX-License-Identifier: Apache-2.0
"""The whole lab in small: what the paper says, on a language that was made for it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lab import figures
from lab.results import read_results
from lab.tables import families

ROOT = Path(__file__).parents[2]


def lab(*options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lab", "--smoke", *map(str, options)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, encoding="utf-8", env={**os.environ, "PYTHONUTF8": "1"}
    )


MOST = """
import sys
from pathlib import Path
from lab.experiments import read_plan
from lab.work import HERE, Work

folder = Path(sys.argv[1])
plan = read_plan(HERE / "smoke")
work = Work(plan, folder, folder / "results", None, print)
work.prepare()
*most, last = plan.experiments
for name in most:
    work.train(name)
for name, setting in plan.settings.items():
    if setting.model != last:
        work.run(name)
"""
"""All but the last experiment in one process: the lab starts one for each task, which imports PyTorch again."""


def test_the_lab_in_small(tmp_path):
    """One test, since the lab takes a minute: what was made, that it goes on, what is kept, what is drawn."""
    work = tmp_path / "work"
    most = subprocess.run([sys.executable, "-c", MOST, str(work)], cwd=ROOT, capture_output=True, encoding="utf-8")
    assert most.returncode == 0, most.stderr
    ran = lab("--work", work)
    assert ran.returncode == 0, ran.stderr
    _shows_what_the_paper_says(read_results(work / "results"))
    _keeps_no_text(work)

    again = lab("--work", work)
    assert (again.returncode, again.stderr, again.stdout) == (0, "", ran.stdout), "nothing was left to do"

    drawn = lab("--draw", "--work", tmp_path / "none", "--results", work / "results", "--figures", tmp_path / "figures")
    assert (drawn.returncode, drawn.stdout) == (0, ran.stdout), drawn.stderr
    names = {path.stem for path in (tmp_path / "figures").glob("*.svg")}
    assert {"al-against-dal", "bleu-against-al", "bleu-against-dal", "hidden", "learning"} < names
    assert sum(name.startswith("timeline-") for name in names) == 2


def _shows_what_the_paper_says(results):
    found = families(results)

    def of(family: str, name: str) -> list[float]:
        dearest_first = sorted(found[family], key=lambda one: -one.trained.experiment["weight"])
        return [one.scores[name].value for one in dearest_first]

    late = of("MILk", "DAL")
    assert late == sorted(late), "the dearer latency is, the sooner it writes"
    assert late[-1] > 3 * late[0]
    assert of("MILk", "BLEU")[-1] == pytest.approx(100, abs=0.5)
    waits = {one.setting.label: one.scores["BLEU"].value for one in found["wait-k"]}
    assert waits["k=1"] < 60 < 99 < waits["k=5"], "a verb cannot be guessed"

    lines = {line.system: line.slope for line in figures.against(results, 1000).lines}
    assert lines["MILk"].low > lines["wait-k"].high, "AL favours what is adaptive"
    assert lines["wait-k"].value == pytest.approx(1)

    (target,) = found["MILk by target"]
    assert target.trained.expected["DAL"] == pytest.approx(target.trained.experiment["target"], rel=0.1)
    for one in (*found["MILk"], target):
        for name in ("DAL", "AL"):
            assert one.scores[name].value == pytest.approx(one.trained.expected[name], abs=0.5)
            assert one.scores[name].value == pytest.approx(one.trained.expected[f"hard {name}"], abs=0.3)


def _keeps_no_text(work):
    texts = (work / "tests.source").read_text("utf-8") + (work / "tests.reference").read_text("utf-8")
    for path in (work / "results").glob("*.npz"):
        with np.load(path) as kept:
            assert {name: kept[name].dtype.kind for name in kept} == {
                "delays": "i", "lengths": "i", "source_length": "i", "reference_length": "i", "id": "i", "bleu": "i",
                "begins": "i", "source_begins": "i", "right": "i", "said": "U",
            }  # fmt: skip
            assert not any(line in str(kept["said"]) for line in texts.splitlines())


def test_without_data_or_results_the_lab_says_what_is_missing(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-m", "lab", "--work", str(tmp_path)], cwd=ROOT, capture_output=True, encoding="utf-8"
    )
    assert ran.returncode == 1
    assert ran.stderr == "say where Multi30k is: --data FOLDER (lab/README.md says where to get it)\n"
    wrong = lab("--work", tmp_path, "--train", "milk-0.04")
    assert (wrong.returncode, wrong.stderr) == (1, "there is no experiment 'milk-0.04'. Did you mean milk-0.03?\n")
    drawn = lab("--draw", "--work", tmp_path)
    assert drawn.returncode == 1
    assert "has no results: train first" in drawn.stderr
