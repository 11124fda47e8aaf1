# SPDX-License-Identifier: Apache-2.0
"""What is left to do, whatever happened before."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lab.experiments import Experiment, Plan, Setting
from lab.work import Work

ROOT = Path(__file__).parents[2]


@pytest.fixture
def work(scale, tmp_path) -> Work:
    setting = Setting("wait-3", "wait-k", "base", "wait-k", {"k": 3}, "k=3")
    plan = Plan(scale, {"base": Experiment("base", epochs=1, path="wait-k", settings=(setting,))})
    (tmp_path / "runs").mkdir()
    return Work(plan, tmp_path, tmp_path / "kept", None, print)


def pretend(work: Work) -> None:
    """That all was done."""
    trained = {"recipe": work.plan.recipe("base"), "history": [{"epoch": 1}]}
    (work.folder / "base.json").write_text(json.dumps(trained), "utf-8")
    (work.folder / "runs" / "wait-3.kept").write_text(work._ticket("wait-3"), "utf-8")
    work.kept.mkdir()
    (work.kept / "wait-3.npz").touch()


def test_a_run_waits_for_its_model_and_what_is_done_is_not_done_again(work):
    assert list(work._left()) == [("train", "base")]
    pretend(work)
    assert list(work._left()) == []
    (work.kept / "wait-3.npz").unlink()
    assert list(work._left()) == [("run", "wait-3")]


def test_a_run_of_another_setting_is_done_again(work):
    pretend(work)
    base = work.plan.experiments["base"]
    other = replace(base, settings=(replace(base.settings[0], options={"k": 5}),))
    assert list(replace(work, plan=Plan(work.plan.scale, {"base": other}))._left()) == [("run", "wait-3")]


def test_a_model_of_another_configuration_is_refused(work):
    pretend(work)
    slower = replace(work.plan.experiments["base"], rate=1e-9)
    with pytest.raises(SystemExit, match=r"base\.json is of another configuration: remove it and base\.pt"):
        list(replace(work, plan=Plan(work.plan.scale, {"base": slower}))._left())


def test_a_setting_whose_model_is_not_trained_is_not_run(work):
    with pytest.raises(SystemExit, match="wait-3 is run on base, which has not been trained"):
        work.run("wait-3")


def test_other_data_need_another_folder(work):
    work.prepare()
    work.prepare()
    (work.folder / "corpus.sha256").write_text("of something else", "utf-8")
    with pytest.raises(SystemExit, match="was made from other data or other subwords: give another --work"):
        work.prepare()


def test_a_task_that_fails_stops_the_others(work):
    command = [sys.executable, "-c", "import sys; sys.exit(7)"]
    with pytest.raises(SystemExit, match="train base ended with exit code 7; see above"):
        work.everything(2, command)


def test_two_labs_do_not_work_in_one_folder(work):
    held = "from lagging.agents.runner.locks import Lock; from pathlib import Path; import sys, time; "
    held += "lock = Lock(Path(sys.argv[1])); lock.take(); print('held', flush=True); time.sleep(60)"
    other = subprocess.Popen([sys.executable, "-c", held, str(work.folder / ".lab.lock")], stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(SystemExit, match="another lab works in"):
            work.everything(1, ["true"])
    finally:
        other.kill()
        other.communicate()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for the process in /proc")
@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_a_lab_that_is_stopped_leaves_nobody_behind(tmp_path, asked):
    command = [sys.executable, "-m", "lab", "--smoke", "--work", str(tmp_path)]
    lab = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    assert lab.stderr.readline() == "train wait-k\n"
    (child,) = _children(lab.pid)
    lab.send_signal(asked)
    _, said = lab.communicate(timeout=60)
    assert lab.returncode == 130
    assert said.endswith("stopped; the same command goes on\n")
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def _children(pid: int) -> list[int]:
    for _ in range(100):
        found = [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat") if _parent(path) == pid]
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it started nobody")


def _parent(path: Path) -> int:
    try:
        return int(path.read_text("utf-8").rpartition(")")[2].split()[1])
    except OSError:  # it has ended
        return -1
