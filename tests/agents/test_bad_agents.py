# SPDX-License-Identifier: Apache-2.0
"""Whatever an agent does costs it the sentence, not the run."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from lagging.agents import Job, Limits, Settings, Spec, run_job
from lagging.errors import LaggingError
from running import hashes, is_alive, lines, manifest, ran

sys.path.insert(0, str(Path(__file__).parent))
from bad import CHILDREN, FAILING, FINE

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sessions, signals and PyDLL of POSIX")

FILE = Path(__file__).parent / "bad.py"
BAD = f"{FILE}:Bad"
LIMITS = ("--step-limit", 1, "--sentence-limit", 1.5, "--token-limit", 40, "--no-times")
OF_EACH_KIND = {kind: what for what, kind in FAILING.items()}.values()


def between(failing: Collection[str]) -> list[str]:
    """What an agent is to do: what must not be done, and between them what may."""
    return [what for pair in zip(failing, FINE * 99, strict=False) for what in pair] + ["long-word"]


def sentences(tmp_path: Path, *what: str) -> Path:
    path = tmp_path / "source.txt"
    path.write_text("".join(f"{word} two three\n" for word in what), "utf-8")
    return path


def bad(source: Path, out: Path) -> Job:
    settings = Settings(limits=Limits(step=1, sentence=1.5, tokens=40), times=False)  # as LIMITS
    return Job(Spec("file", BAD), str(source), None, str(out), settings)


def agent(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "agent.py"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "failing", "how"), [("Bad", FAILING, "--workers 1"), ("BadBatch", OF_EACH_KIND, "--batch 4 --workers 2")]
)
def test_what_an_agent_does_costs_it_that_sentence_and_no_other(
    tmp_path: Path, name: str, failing: Collection[str], how: str
) -> None:
    children, all_of_it = tmp_path / "children", between(failing)
    source, out = sentences(tmp_path, *all_of_it), tmp_path / "out"
    done = ran(f"{FILE}:{name}", source, out, "--reference", source, *LIMITS, *how.split(), "-m", "DAL",
               env={**os.environ, CHILDREN: str(children)})  # fmt: skip
    assert done.returncode == 1, done.stderr
    got = lines(out)
    assert [line["index"] for line in got] == list(range(len(all_of_it)))
    assert [line.get("kind") for line in got] == [FAILING.get(what) for what in all_of_it]
    for what, line in zip(all_of_it, got, strict=True):
        if what in FAILING:
            assert (line["prediction"], line["delays"], line["steps"], line["arrivals"]) == ("", [], [], [])
            assert line["failed"]
            assert ("traceback" in line) == (FAILING[what] == "raised")
        elif what != "long-word":
            assert (line["prediction"], line["delays"]) == (f"{what.upper()} TWO THREE", [1, 2, 3])
    assert manifest(out)["summary"]["failed"] == sum(what in FAILING for what in all_of_it)
    assert (
        f"{len(all_of_it)} of {len(all_of_it)} sentences, {sum(what in FAILING for what in all_of_it)} failed"
        in done.stderr
    )
    assert "PRINTED" not in done.stdout
    assert done.stderr.count("PRINTED") >= 3 * sum(what == "prints" for what in all_of_it)
    pids = [int(line) for line in children.read_text().split()]
    assert pids
    assert not any(map(is_alive, pids))


@pytest.mark.parametrize("what", ["closes", "closes-and-opens"])
def test_who_closes_files_that_are_not_its_own_loses_the_sentence_and_is_told_so(tmp_path: Path, what: str) -> None:
    source, out = sentences(tmp_path, "good", what, "good"), tmp_path / "out"
    done = ran(BAD, source, out, *LIMITS, "-m", "DAL")
    assert done.returncode == 1, done.stderr
    assert [line.get("kind") for line in lines(out)] == [None, "closed-files", None]
    assert "the agent closed files that it had not opened" in done.stderr
    assert "--strict" not in done.stderr


def test_an_agent_that_closes_files_while_it_is_made_is_told_so(tmp_path: Path) -> None:
    closing = GOOD + "    def __init__(self):\n        import os; os.closerange(3, 256)\n"
    job = Job(Spec("file", str(agent(tmp_path, closing))), str(sentences(tmp_path, "one")), None, str(tmp_path / "out"))
    with pytest.raises(LaggingError, match=r"while the agent was being made.*closed files that it had not opened"):
        run_job(job)


def test_bytes_do_not_depend_on_who_died(tmp_path: Path) -> None:
    source = sentences(tmp_path, "good", "segfaults", "good", "sleeps", "raises", "good", "number", "good")
    for workers in (1, 2):
        run_job(bad(source, tmp_path / str(workers)), workers=workers)
    one, two = ((tmp_path / name / "instances.log").read_bytes() for name in "12")
    assert one == two


def test_strict_stops_at_the_first_failure_and_without_it_the_run_goes_on(tmp_path: Path) -> None:
    source, out = sentences(tmp_path, "good", "raises", *["good"] * 60), tmp_path / "out"
    done = ran(BAD, source, out, *LIMITS, "--strict", "--workers", 2, "-m", "DAL")
    assert done.returncode == 1
    assert "--strict" in done.stderr
    assert 2 <= len(lines(out)) < 62
    assert lines(out)[1]["kind"] == "raised"
    assert manifest(out)["sessions"][-1]["by"] == "stopped"
    assert run_job(bad(source, out)).finished
    assert len(lines(out)) == 62
    assert manifest(out)["summary"] == {"sentences": 62, "done": 62, "failed": 1, "failed_by_kind": {"raised": 1}}


@pytest.mark.parametrize("what", ["sleeps", "segfaults"])
def test_strict_stops_at_agents_that_had_to_be_ended(tmp_path: Path, what: str) -> None:
    source, out = sentences(tmp_path, "good", what, *["good"] * 5), tmp_path / "out"
    assert not run_job(bad(source, out), strict=True).finished
    assert [line.get("kind") for line in lines(out)] == [None, FAILING[what]]


GOOD = "class Good:\n    def policy(self, state):\n        return 'word' if not state.target else None\n"
UNMADE = {
    "no_such": ("import no_such_module\n" + GOOD, "No module named 'no_such_module'"),
    "syntax": ("def policy(state:\n", "SyntaxError"),
    "raises": (GOOD + "    def __init__(self):\n        raise ValueError('no model')\n", "no model"),
    "exits": (GOOD + "    def __init__(self):\n        import sys; sys.exit('no GPU')\n", "no GPU"),
    "interrupts": (GOOD + "    def __init__(self):\n        raise KeyboardInterrupt\n", "KeyboardInterrupt"),
    "segfaults": (GOOD + "    def __init__(self):\n        import ctypes; ctypes.string_at(0)\n", "SIGSEGV"),
    "leaves": (GOOD + "    def __init__(self):\n        import os; os._exit(4)\n", "exit code 4"),
    "leaves_child": (
        GOOD + "    def __init__(self):\n        import os; os.system('sleep 600 &'); os._exit(4)\n",
        "exit code 4",
    ),
    "missing_extra": (
        GOOD + "    def __init__(self):\n        from lagging.errors import optional; optional('no_such', 'speech')\n",
        "no_such is not installed\n  fix: pip install 'lagging[speech]'",
    ),
    "source": (GOOD + "    source = 'scent'\n", "'scent'"),
    "trait": (GOOD + "    chunkwise = property(lambda self: 1 / 0)\n", "ZeroDivisionError"),
    "none": ("x = 1\n", "has no agent"),
    "two": (GOOD + GOOD.replace("Good", "Better"), "Good, Better"),
}


@pytest.mark.parametrize("why", UNMADE)
def test_an_agent_that_cannot_be_made_is_told_at_once_and_nothing_is_recorded(tmp_path: Path, why: str) -> None:
    text, said = UNMADE[why]
    out = tmp_path / "out"
    job = Job(Spec("file", str(agent(tmp_path, text))), str(sentences(tmp_path, "one")), None, str(out))
    with pytest.raises(LaggingError) as error:
        run_job(job)
    assert said in str(error.value)
    assert "lagging/agents/runner/worker.py" not in str(error.value)  # the traceback is the agent's own
    assert hashes(out) == {}


def test_an_agent_that_cannot_be_made_is_told_on_the_command_line(tmp_path: Path) -> None:
    done = ran(agent(tmp_path, UNMADE["raises"][0]), sentences(tmp_path, "one"), tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr.startswith("error: the agent could not be made: Traceback")
    assert done.stderr.endswith("ValueError: no model\n")
    assert done.stdout == ""


def test_an_agent_that_can_be_made_only_once_stops_the_run_and_loses_nothing(tmp_path: Path) -> None:
    once = (
        "import os\nfrom pathlib import Path\nclass Once:\n    def __init__(self):\n"
        f"        made = Path({str(tmp_path / 'made')!r})\n"
        "        if made.exists(): os._exit(5)\n        made.touch()\n"
        "    def policy(self, state):\n        if state.source[0] == 'dies': os._exit(6)\n"
        "        return 'word' if not state.target else None\n"
    )
    source, out = sentences(tmp_path, "one", "dies", "three"), tmp_path / "out"
    done = ran(agent(tmp_path, once), source, out)
    assert done.returncode == 1
    assert "died, while the agent was being made again (exit code 5)" in done.stderr
    assert [line["index"] for line in lines(out)] == [0]
    (tmp_path / "made").unlink()
    (tmp_path / "agent.py").touch()


def test_what_an_agent_leaves_running_does_not_keep_the_run(tmp_path: Path) -> None:
    lingering = (
        "import threading, time\n" + GOOD + "    def __init__(self):\n"
        "        threading.Thread(target=time.sleep, args=(600,)).start()\n"
    )
    out = tmp_path / "out"
    done = ran(agent(tmp_path, lingering), sentences(tmp_path, "one", "two"), out)
    assert done.returncode == 0
    assert len(lines(out)) == 2


@pytest.mark.parametrize("where", ["import os; os.chdir('/')\n", ""])
def test_an_agent_may_go_to_another_folder(tmp_path: Path, where: str) -> None:
    (tmp_path / "helper.py").touch()
    moving = "import helper\n" + where + GOOD + "    def __init__(self):\n        import os; os.chdir('/')\n"
    agent(tmp_path, moving)
    sentences(tmp_path, "one", "two")
    done = ran("agent.py", "source.txt", "out", "--reference", "source.txt", "-m", "DAL", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(lines(tmp_path / "out")) == 2
    assert list(manifest(tmp_path / "out")["agent"]["modules"]) == ["helper.py"]


def test_a_forked_agent_that_comes_back_twice_writes_no_line_twice(tmp_path: Path) -> None:
    forks = "if state.source[0] == 'forks' and not state.target: os.fork()"
    forking = "import os\n" + GOOD.replace("return", f"{forks}\n        return")
    out = tmp_path / "out"
    done = ran(agent(tmp_path, forking), sentences(tmp_path, "one", "forks", "three"), out)
    assert done.returncode in (0, 1), done.stderr
    assert [line["index"] for line in lines(out)] == [0, 1, 2]
    assert [line.get("kind") for line in lines(out)] in ([None] * 3, [None, "died", None])
