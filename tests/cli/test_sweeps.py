# SPDX-License-Identifier: Apache-2.0
"""Folders of many runs: what is scored, what is not, and what the systems are called."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import pytest

from lagging.cli.systems import name_settings

RUNS = 40
BROKEN = "step-length_1.7"


def write_run(folder, k):
    folder.mkdir(parents=True)
    with (folder / "instances.log").open("w") as file:
        for index in range(5):
            delays = [float(min(t + k, 6)) for t in range(1, 6)]
            row = {"index": index, "prediction": "a b c d e", "delays": delays, "source_length": 6, "reference": "a b"}
            file.write(json.dumps(row) + "\n")


@pytest.fixture
def runs(tmp_path, monkeypatch):
    for k in range(1, RUNS + 1):
        write_run(tmp_path / "runs" / f"step-length_{k / 10:.1f}", k)
    with (tmp_path / "runs" / BROKEN / "instances.log").open("a") as file:
        file.write('{"index": 5, "prediction": "a')
    monkeypatch.chdir(tmp_path)
    return sorted(f"runs/{folder.name}/" for folder in Path("runs").iterdir())


def test_a_sweep_scores_what_can_be_scored(run, runs):
    result = run("score", *runs)
    assert result.code == 1
    header, *rows = result.out.split("\n\n")[0].splitlines()
    assert len(rows) == RUNS - 1
    assert [row.split()[0] for row in rows[:3]] == ["0.1", "0.2", "0.3"]
    assert max(map(len, (header, *rows))) <= 80
    failed = [line for line in result.err.splitlines() if line.startswith("NOT SCORED")]
    assert len(failed) == 1
    assert failed[0].startswith(f"NOT SCORED (1 of 1, of {RUNS} logs): 1.7: the last line breaks off")
    assert f"runs/{BROKEN}/instances.log:6" in failed[0]
    assert len(result.err.splitlines()) < 10


def test_strict_stops_at_the_first(run, runs):
    result = run("score", *runs, "--strict")
    assert result.code == 1
    assert result.out == ""
    assert "the last line breaks off" in result.err


def test_a_folder_without_a_log_is_named_too(run, runs, tmp_path):
    (tmp_path / "runs" / "step-length_9.9").mkdir()
    result = run("score", *runs, "runs/step-length_9.9")
    assert result.code == 1
    assert "NOT SCORED (2 of 2, of 41 logs): 9.9: runs/step-length_9.9 holds no instances.log" in result.err


def test_where_nothing_can_be_scored_the_error_is_that_of_the_first(run, runs, tmp_path):
    (tmp_path / "runs" / "empty").mkdir()
    result = run("score", f"runs/{BROKEN}", "runs/empty")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: the last line breaks off")


def names_of(result):
    return sorted({score["system"] for score in json.loads(result.out)["scores"]})


def test_every_command_has_the_same_names(run, runs):
    two = [runs[0], runs[2]]
    assert names_of(run("score", *two, "-f", "json", "-m", "AL")) == ["0.1", "0.3"]
    assert names_of(run("compare", *two, "-f", "json", "-m", "AL", "--resamples", "100")) == ["0.1", "0.3"]
    curve = run("curve", "runs/step-length_0.[13]", "--latency", "AL", "--resamples", "100")
    assert curve.code == 0, curve.err
    assert " 0.1 " in curve.out
    report = run("report", *two, "-o", "r.html", "-m", "AL,DAL", "--resamples", "100")
    assert report.code == 0, report.err
    page = Path("r.html").read_text("utf-8")
    packed = re.search(r'<script id="data"[^>]*>([^<]+)</script>', page)
    assert packed is not None
    data = json.loads(zlib.decompress(base64.b64decode(packed[1])))
    assert [system["name"] for system in data["systems"]] == ["0.1", "0.3"]


def test_a_symbolic_link_is_called_by_its_own_name(run, runs):
    Path("best").symlink_to(runs[0])
    assert names_of(run("score", "best", "-f", "json", "-m", "AL")) == ["best"]
    assert names_of(run("score", "best", runs[1], "-f", "json", "-m", "AL")) == ["best", "runs/step-length_0.2"]


def test_names_for_a_paper(run, runs, tmp_path):
    two = [runs[0], runs[2]]
    for command in ("score", "compare"):
        result = run(command, *two, "-f", "latex", "-m", "AL", "--rename", "0.3=Ours (0.3)")
        assert result.code == 0, result.err
        assert "Ours (0.3)" in result.out
    (tmp_path / "names.yaml").write_text("0.1: Base\n0.3: Ours\n")
    assert names_of(run("score", *two, "-f", "json", "-m", "AL", "--rename", "names.yaml")) == ["Base", "Ours"]
    one = run("score", runs[0], "-f", "json", "-m", "AL", "--rename", "step-length_0.1=Base")
    assert names_of(one) == ["Base"]
    curve = run(
        "curve", "w=runs/step-length_0.[13]", "--latency", "AL", "--resamples", "100",
        "--rename", "w=Ours", "--rename", "0.1=short",
    )  # fmt: skip
    assert "Ours" in curve.out
    assert "short" in curve.out


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["0.4=x"], "nothing is called '0.4'"),
        (["nosuch=x"], "error: --rename: nothing is called 'nosuch'.\n  Names: "),
        (["nothing"], "cannot read --rename 'nothing'"),
        (["0.1=x", "0.3=x"], "gives two systems the name 'x'"),
        (["0.1=x", "0.1=y"], "renames '0.1' twice"),
        (["list.yaml"], "does not have a new name for each old one"),
        (["twice.yaml"], "twice.yaml:2: the name"),
    ],
)
def test_names_that_are_refused(names, message, run, runs, tmp_path):
    (tmp_path / "list.yaml").write_text("- a\n")
    (tmp_path / "twice.yaml").write_text("0.1: a\n0.1: b\n")
    result = run("score", runs[0], runs[2], *(part for name in names for part in ("--rename", name)))
    assert result.code == 2
    assert message in result.err


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["r/step-length_0.3", "r/step-length_0.5"], ["0.3", "0.5"]),
        (["wait-3", "wait-5"], ["wait-3", "wait-5"]),
        (["wait-3", "wait-5", "wait-7"], ["3", "5", "7"]),
        (["k=1,b=2", "k=3,b=2"], ["1", "3"]),
        (["k_1", "k_1_b_2"], ["1", "1_b_2"]),
        (["r/k_1_b", "r/k_2_b", "r/k_3_b", "r/best"], ["1", "2", "3", "best"]),
        (["r/k_1_b", "r/k_2_b", "r/k_3_b", "r/2"], ["k_1_b", "k_2_b", "k_3_b", "2"]),
        (["r/k_1_b", "r/best", "r/other-one"], ["k_1_b", "best", "other-one"]),
        (["a/k_1/x", "b/k_1/x"], ["a", "b"]),
        (["a/k_1/x", "b/k_2/x"], ["a/1", "b/2"]),
        (["x", "x"], ["x", "x"]),
    ],
)
def test_what_differs_in_paths(paths, names):
    assert name_settings(paths) == names
