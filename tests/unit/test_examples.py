# SPDX-License-Identifier: Apache-2.0
import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import nbclient
import nbformat
import pytest

import lagging
from lagging.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
DATA = EXAMPLES / "data"
TEXT_SYSTEMS = ("wait-1", "wait-3", "wait-5", "antagonist-5", "adaptive", "offline")


@pytest.fixture(scope="module")
def make_data() -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(EXAMPLES / "make_data.py"), run_name="make_data"))


@pytest.fixture(scope="module")
def values() -> dict[str, dict[str, float]]:
    """Metric → system → value."""
    scored = {name: lagging.score(lagging.read(DATA / name), ["AL", "DAL", "BLEU"]) for name in TEXT_SYSTEMS}
    return {m: {name: scores[m].value for name, scores in scored.items()} for m in ("AL", "DAL", "BLEU")}


def lagging_exits(*args: str) -> int:
    with pytest.raises(SystemExit) as exited:
        main(list(args))
    return exited.value.code


def test_the_data_is_what_make_data_makes(make_data):
    made = make_data.make()
    there = {path.relative_to(DATA).as_posix() for path in DATA.rglob("*") if path.is_file()}
    assert there - {"sentences.tsv"} == set(made)
    for name, text in made.items():
        assert (DATA / name).read_text("utf-8") == text, f"{name} is out of date: run examples/make_data.py"


def test_the_sentences_are_what_they_are_said_to_be(make_data):
    sentences = make_data.sentences()
    assert len(sentences) == 40
    assert all(4 <= len(s.words) <= 25 for s in sentences)
    assert all(part == " ".join(part.split()) for s in sentences for part in vars(s).values())
    assert sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file()) < 300_000


@pytest.mark.parametrize("name", [*TEXT_SYSTEMS, "speech", "schedules.rw"])
def test_every_example_scores(name, capsys):
    assert lagging_exits("score", str(DATA / name), "-f", "json") == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert {s["undefined"] for s in scores} == {0}
    assert {s["n"] for s in scores} == {4 if name == "schedules.rw" else 40}


def test_speech_has_both_clocks():
    scores = lagging.score(lagging.read(DATA / "speech"), ["DAL", "DAL_CA"])
    assert scores["DAL"].unit == "ms"
    assert scores["DAL"].value < scores["DAL_CA"].value


@pytest.mark.parametrize("command", ["score", "validate"])
def test_the_broken_log_is_refused(command):
    assert lagging_exits(command, str(DATA / "broken")) == 1


def test_the_broken_log_shows_many_kinds_of_fault():
    kinds = {
        "decreasing-delays": 2,
        "token-count": 3,
        "negative-delay": 4,
        "missing-source-length": 5,
        "bad-delay": 6,
        "not-finite": 7,
        "duplicate-id": 8,
        "missing-prediction": 9,
        "bad-source-length": 10,
        "truncated": 12,
    }
    found = lagging.validate(DATA / "broken")
    assert {fault.kind: fault.line for fault in found.faults} == kinds
    assert [note.kind for note in found.notes] == ["empty hypothesis"]


@pytest.mark.parametrize("metric", ["AL", "DAL", "BLEU"])
def test_who_waits_longer_is_later_and_better(values, metric):
    ordered = [values[metric][name] for name in ("wait-1", "wait-3", "wait-5", "offline")]
    assert ordered == sorted(ordered)
    assert len(set(ordered)) == 4


def test_the_antagonist_deceives_al_and_not_dal(values):
    assert values["AL"]["antagonist-5"] < values["AL"]["wait-5"] - 1
    # on sentences with |x| = |y| the two are equal; where |y| > |x| the last read it saves is worth 1 − d
    assert values["DAL"]["antagonist-5"] == pytest.approx(values["DAL"]["wait-5"], rel=0.02)


def test_al_and_dal_rank_the_adaptive_system_differently(values):
    assert values["AL"]["adaptive"] < values["AL"]["wait-3"]
    assert values["DAL"]["wait-3"] < values["DAL"]["adaptive"] < values["DAL"]["wait-5"]


@pytest.mark.slow
@pytest.mark.parametrize("folder", [EXAMPLES.parent, EXAMPLES], ids=["root", "examples"])
def test_the_notebook_runs(folder):
    notebook = nbformat.read(EXAMPLES / "first_steps.ipynb", as_version=4)
    where = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
    printed = "".join(o.get("text", "") for cell in notebook.cells for o in cell.get("outputs", ()))
    assert "cheat    AL 2.2  DAL 4.0" in printed


def test_the_notebook_is_stored_without_outputs():
    notebook = nbformat.read(EXAMPLES / "first_steps.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert not [cell for cell in notebook.cells if cell.cell_type == "code" and (cell.outputs or cell.execution_count)]
