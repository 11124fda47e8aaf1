# SPDX-License-Identifier: Apache-2.0
"""Plans in folders: seeds, stages, corpora, other networks."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lab.data import Pieces, read_corpus, verb_final
from lab.experiments import read_plan
from lab.model import find
from lab.training import Training

ROOT = Path(__file__).parents[2]
SCALE = """
corpus = { train = ["train.x", "train.y"], val = ["val.x", "val.y"], tests = { own = ["test.x", "test.y"] } }
seeds = [1, 2]
model = "own_network:Own"
pieces = 130
width = 16
layers = 1
heads = 2
inner = 16
dropout = 0.0
tokens = 600
warm_up = 5
smoothing = 0.0
noise = 1.0
largest_k = 5
watched = 5
"""
WAIT = """
family = "wait-k"

[[train]]
name = "wait-k"
path = "wait-k"
run = [
  { name = "wait-1", label = "k=1", policy = "wait-k", k = 1 },
  { name = "wait-5", label = "k=5", policy = "wait-k", k = 5 },
]
"""
MILK = """
family = "MILk"
stage = 2

[[train]]
name = "milk"
start = "wait-k"
path = "milk"
weight = 0.1
run = [
  { name = "milk", label = "all", policy = "milk" },
  { name = "early", label = "p", policy = "milk", threshold = 0.1 },
]
"""
NETWORK = """
from lab.model import Translator


class Own(Translator):
    \"\"\"Another network: it stops sooner.\"\"\"

    def stops(self, heard, states):
        return super().stops(heard, states) + 1
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    """A plan, its corpus, and its network."""
    plan = tmp_path / "mine"
    plan.mkdir()
    for name, text in (("scale", SCALE), ("1-wait-k", WAIT), ("2-milk", MILK)):
        (plan / f"{name}.toml").write_text(text, "utf-8")
    (tmp_path / "own_network.py").write_text(NETWORK, "utf-8")
    for part, pairs in verb_final(200).parts.items():
        for side, lines in zip("xy", zip(*pairs, strict=True), strict=True):
            (tmp_path / f"{part}.{side}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return plan


def test_every_experiment_is_done_with_every_seed_and_stage_by_stage(folder):
    plan = read_plan(folder)
    assert list(plan.experiments) == ["wait-k-seed-1", "wait-k-seed-2", "milk-seed-1", "milk-seed-2"]
    milk = plan.experiments["milk-seed-2"]
    assert (milk.seed, milk.start, milk.settings[0].model) == (2, "wait-k-seed-2", "milk-seed-2")
    assert list(plan.until(1).experiments) == ["wait-k-seed-1", "wait-k-seed-2"]
    assert plan.recipe("milk-seed-1")[0]["model"] == "own_network:Own"


def test_a_plan_of_old_has_the_recipe_that_it_always_had():
    plan = read_plan(ROOT / "lab" / "experiments")
    first = plan.recipe("wait-k")[0]
    assert {"seeds", "model", "reverse"}.isdisjoint(first)
    assert plan.experiments["wait-k"].seed == 1


@pytest.mark.parametrize("name", ["de-en", "en-de", "verb-final"])
def test_the_plans_of_the_lab_have_the_settings_of_the_plan(name):
    plan = read_plan(ROOT / "lab" / "plans" / name).until(1)
    assert plan.scale.seeds == (1, 2, 3, 4, 5)
    assert plan.scale.reverse == (name == "en-de")
    labels = [one.label for one in plan.settings.values() if one.family == "MILk" and one.name.endswith("seed-3")]
    assert labels == [f"λ={weight}" for weight in ("0.2", "0.1", "0.05", "0.03", "0.02", "0.01", "0.003", "0")]
    assert all(one.everywhere for one in plan.settings.values())


def test_an_epoch_gives_what_was_kept(tmp_path):
    """The first epoch of the first seed of the verb-final plan, but for the rounding of other machines."""
    plan = read_plan(ROOT / "lab" / "plans" / "verb-final")
    with np.load(ROOT / "lab" / "results" / "verb-final" / "wait-3-seed-1.npz") as kept:
        first = json.loads(str(kept["said"]))["trained"]["history"][0]
    corpus = read_corpus(plan.scale.corpus, None)
    pieces = Pieces.train(corpus, tmp_path / "pieces.model", plan.scale.pieces)
    made = Training(plan, "wait-k-seed-1", corpus, pieces, tmp_path).epoch()
    assert {name: made[name] for name in ("loss", "val_loss")} == pytest.approx(
        {name: first[name] for name in ("loss", "val_loss")}, rel=1e-3
    )


def test_a_folder_is_trained_and_run_and_its_seeds_come_together(folder):
    """A corpus of files, another network, two seeds; the same command again has nothing left to do."""
    command = [sys.executable, "-m", "lab", "--plan", str(folder), "--data", str(folder.parent), "--jobs", "1"]
    command += ["--work", str(folder.parent / "work"), "--results", str(folder.parent / "kept")]
    ran = _run(command, folder)
    assert ran.returncode == 0, ran.stderr
    names = {f"{name}-seed-{seed}.npz" for name in ("wait-1", "wait-5", "milk", "early") for seed in (1, 2)}
    assert {path.name for path in (folder.parent / "kept").iterdir()} == names
    done = [line.split() for line in ran.stderr.splitlines() if line.startswith(("train ", "run ")) and ":" not in line]
    assert done == [
        ["train", "wait-k-seed-1"], ["run", "wait-1-seed-1"], ["run", "wait-5-seed-1"],
        ["train", "wait-k-seed-2"], ["run", "wait-1-seed-2"], ["run", "wait-5-seed-2"],
        ["train", "milk-seed-1"], ["run", "milk-seed-1"], ["run", "early-seed-1"],
        ["train", "milk-seed-2"], ["run", "milk-seed-2"], ["run", "early-seed-2"],
    ]  # fmt: skip
    assert "| wait-k | k=5 | 2 | " in ran.stdout
    assert "| MILk | all | 2 | " in ran.stdout
    assert "gap to wait-k at the same AL" in ran.stdout
    again = _run([*command, "--draw"], folder)
    assert (again.returncode, again.stdout) == (0, ran.stdout)


def _run(command, folder):
    path = f"import sys, runpy; sys.path.insert(0, {str(folder.parent)!r}); sys.argv[:] = {command[2:]!r}; "
    path += "runpy.run_module('lab', run_name='__main__', alter_sys=False)"
    return subprocess.run([sys.executable, "-c", path], cwd=ROOT, capture_output=True, encoding="utf-8")


def test_what_a_plan_lacks_is_said_at_once(tmp_path):
    with pytest.raises(SystemExit, match=r"has no scale\.toml"):
        read_plan(tmp_path)
    (tmp_path / "scale.toml").write_text(SCALE + "colour = 1\n", "utf-8")
    with pytest.raises(SystemExit, match="there is no colour in a plan"):
        read_plan(tmp_path)
    with pytest.raises(SystemExit, match=r"has no val\n.*has no tests\n.*has 'test', which is none"):
        read_corpus({"train": ["a", "b"], "test": ["a", "b"]}, tmp_path)
    with pytest.raises(SystemExit, match=r"val needs two files, but has 1\n.*there is no .*a"):
        read_corpus({"train": ["a", "b"], "val": ["a"], "tests": {}}, tmp_path)
    with pytest.raises(SystemExit, match="there is no corpus 'wmt'; there are multi30k, verb-final, clauses"):
        read_corpus("wmt", None)


def test_the_other_direction_is_the_same_pairs_turned_round():
    there, back = read_corpus("verb-final", None), read_corpus("verb-final", None, reverse=True)
    assert back.parts["val"][3] == there.parts["val"][3][::-1]


@pytest.mark.parametrize("name", ["no.such.module:Own", "lab.model:Own", "lab.model"])
def test_a_network_that_is_not_there_is_named(name):
    with pytest.raises(SystemExit, match="name a class as"):
        find(name)
