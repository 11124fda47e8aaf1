# SPDX-License-Identifier: Apache-2.0
"""`lagging run --grid`: every setting in its own folder, one process for all, and the curve at the end."""

from __future__ import annotations

import json
import os
import random
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from hf_models import save, sentences
from lagging.agents import Job, Spec
from lagging.cli.grid import grid_jobs
from lagging.errors import UsageError
from running import lines, manifest, ran, size, started, until, workers_of

AGENT = """
import os, time
from pathlib import Path

class Wait:
    def __init__(self, k, pause=0.0, drop=0):
        if k < 1:
            raise ValueError(f"k is {k}")
        self.k, self.pause, self.drop = k, pause, drop
        with (Path(__file__).parent / "pids.txt").open("a") as file:
            file.write(f"{k} {os.getpid()}\\n")

    def policy(self, state):
        place = len(state.target)
        if not place and len(state.source) == 1:
            time.sleep(self.pause)
        if not state.finished and len(state.source) < place + self.k:
            return None
        return state.source[place].upper() if place < len(state.source) - self.drop else None
"""
SENTENCES = 60


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(AGENT)
    text = sentences(SENTENCES)
    (tmp_path / "source.txt").write_text("\n".join(text) + "\n")
    (tmp_path / "reference.txt").write_text("\n".join(one.upper() for one in text) + "\n")
    return tmp_path


def grid(place: Path, out: str, *more: object, run=ran):  # type: ignore[no-untyped-def]
    common = ("--reference", place / "reference.txt", "--no-times", "-m", "AL,DAL,BLEU")
    return run(place / "agent.py", place / "source.txt", place / out, *common, *more)


def logs(folder: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in sorted(folder.glob("*/instances.log"))}


def test_every_setting_has_its_folder_and_the_end_is_the_curve(place: Path) -> None:
    done = grid(place, "out", "--grid", "k=1,3", "--grid", "drop=0,1", "--figure", place / "curve.png")
    assert done.returncode == 0, done.stderr
    assert list(logs(place / "out")) == ["k=1,drop=0", "k=1,drop=1", "k=3,drop=0", "k=3,drop=1"]
    for setting in ("k=1,drop=0", "k=3,drop=1"):
        assert f"{setting}: {SENTENCES} of {SENTENCES} sentences, " in done.stderr
        assert setting in done.stdout
    assert "AL ↓" in done.stdout
    assert "DAL ↓" in done.stdout
    assert (place / "curve.png").stat().st_size > 10_000
    assert manifest(place / "out" / "k=3,drop=1")["agent"]["options"] == {"k": "3", "drop": "1"}
    assert manifest(place / "out" / "k=3,drop=1")["signatures"]
    assert json.loads((place / "out" / "k=3,drop=1" / "scores.json").read_text())
    pids = [line.split()[1] for line in (place / "pids.txt").read_text().splitlines()]
    assert len(pids) == 4
    assert len(set(pids)) == 1  # what was loaded is shared
    again = grid(place, "out", "--grid", "k=1,3", "--grid", "drop=0,1", "-f", "json")
    assert again.stderr.count("nothing was left to do") == 4
    assert {"k=1,drop=0", "k=3,drop=1"} <= {point["setting"] for point in _points(again.stdout)}


def _points(text: str) -> list[dict[str, str]]:
    first, _ = json.JSONDecoder().raw_decode(text)
    found: list[dict[str, str]] = []

    def walk(tree: object) -> None:
        if isinstance(tree, dict):
            if "setting" in tree:
                found.append(tree)
            for value in tree.values():
                walk(value)
        elif isinstance(tree, list):
            for value in tree:
                walk(value)

    walk(first)
    return found


def test_a_setting_that_fails_is_reported_and_left_out(place: Path) -> None:
    done = grid(place, "out", "--grid", "k=1,0,2")
    assert done.returncode == 1
    assert "left out: k=0: " in done.stderr
    assert "k is 0" in done.stderr
    assert list(logs(place / "out")) == ["k=1", "k=2"]
    assert "k=2" in done.stdout
    assert "k=0" not in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes in /proc")
def test_killed_in_the_middle_the_same_command_ends_with_the_same_logs(place: Path) -> None:
    options = ("--grid", "k=1,2,3", "-a", "pause=0.005")
    assert grid(place, "whole", *options).returncode == 0
    draw = random.Random(4)
    for setting in ("k=1", "k=2", "k=3"):
        with grid(place, "parts", *options, run=started) as process:
            until(lambda folder=place / "parts" / setting: size(folder) > 500)
            victims = [process.pid, *workers_of(process.pid)]
            draw.shuffle(victims)
            for victim in victims:
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
            process.communicate()
    done = grid(place, "parts", *options)
    assert done.returncode == 0, done.stderr
    assert logs(place / "parts") == logs(place / "whole")
    assert all(len(lines(place / "parts" / setting)) == SENTENCES for setting in ("k=1", "k=2", "k=3"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["k"], "is not NAME=VALUE"),
        (["k=1,,2"], "is not NAME=VALUE"),
        (["k=1,1"], "has 1 twice"),
        (["k=1", "k=2"], "the option k is given twice"),
        (["n=2"], "the option n is given twice"),
        (["k=a/b"], "cannot be a part of the name of a folder"),
    ],
)
def test_a_grid_that_cannot_be_is_refused(given: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        grid_jobs(Job(Spec("policy", "wait-3", (("n", "1"),)), "s", None, "out"), given)


def test_a_figure_needs_a_grid_and_an_image(place: Path) -> None:
    assert "give --grid" in grid(place, "out", "-a", "k=1", "--figure", "curve.pdf").stderr
    assert "figures end in" in grid(place, "out", "--grid", "k=1", "--figure", "curve.txt").stderr
    assert not (place / "out").exists()


@pytest.mark.slow
def test_a_model_is_run_by_its_policy(place: Path) -> None:
    pytest.importorskip("transformers", reason="NOT RUN: transformers is not installed")
    folder = save("marian", place / "model")
    common = (
        "--reference",
        place / "reference.txt",
        "--no-times",
        "--first",
        4,
        "-a",
        "max_tokens=8",
        "-m",
        "DAL,BLEU",
    )
    env = {**os.environ, "HF_HUB_OFFLINE": "1"}
    options = ("--policy", "wait-k", "--grid", "k=0,1,2", "--batch", 2, "-m", "DAL,BLEU", *common)
    done = ran(f"hf:{folder}", place / "source.txt", place / "out", *options, env=env)
    assert done.returncode == 1
    assert "left out: k=0: k is a whole number from 1 on, but got 0" in done.stderr
    agent = manifest(place / "out" / "k=2")["agent"]
    assert agent["options"] == {"policy": "wait-k", "k": "2", "max_tokens": "8"}
    assert len(agent["modules"]["model.safetensors"]) == 64
    assert agent["modules"]["device"] == "cpu"
    assert json.loads(agent["modules"]["generation"])["max_tokens"] == 8
    assert {"torch", "transformers", "tokenizers"} <= set(manifest(place / "out" / "k=2")["versions"])
    assert manifest(place / "out" / "k=2")["settings"]["joined_by"] == "none"
    (folder / "generation_config.json").write_text("{}")
    again = ran(f"hf:{folder}", place / "source.txt", place / "out", *options, env=env)
    assert "agent.modules.generation_config.json" in again.stderr
