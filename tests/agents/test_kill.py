# SPDX-License-Identifier: Apache-2.0
"""Whoever is killed, and whenever: the same command goes on, and the log becomes what it would have been."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from lagging.agents import Job, Settings, Spec, run_job
from lagging.agents.runner.journal import Journal
from lagging.agents.runner.records import TIMES
from lagging.agents.runner.shared_state import SharedState
from lagging.errors import LaggingError
from running import PATIENCE, is_alive, manifest, ran, size, started, until, workers_of

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes in /proc")

SENTENCES, KILLS = 500, 3
AGENT = """
import time

def act(state):
    place = len(state.target)
    return state.source[place][::-1] if place < len(state.source) else None

class One:
    def policy(self, state):
        if len(state.source) == 1 and not state.target:
            time.sleep(0.002)
        return act(state)

class Many:
    def policies(self, states):
        time.sleep(0.002)
        return [act(state) for state in states]

class Slow(One):
    def policy(self, state):
        if state.sentence == 3 and not state.target:
            time.sleep(1)
        return act(state)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an agent, a test set, and the log of a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("kill")
    (folder / "agent.py").write_text(AGENT)
    draw = random.Random(1)
    words = ("ein", "größer", "犬", "\U0001f600", '"quote"', "back\\slash")
    text = "".join(" ".join(draw.choices(words, k=draw.randint(1, 6))) + "\n" for _ in range(SENTENCES))
    (folder / "source.txt").write_text(text, "utf-8")
    done = ran(folder / "agent.py:One", folder / "source.txt", folder / "whole", "--no-times", "--no-scores")
    assert done.returncode == 0, done.stderr
    return folder


def whole(place: Path) -> bytes:
    return (place / "whole" / "instances.log").read_bytes()


def kill(process: subprocess.Popen[str], whom: str, draw: random.Random) -> None:
    victims = [process.pid] if whom == "runner" else [process.pid, *workers_of(process.pid)]
    draw.shuffle(victims)
    for victim in victims:
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize(
    ("how", "whom"),
    [
        ("One --workers 1 --times", "runner"),
        ("One --workers 2", "all"),
        ("Many --batch 3 --workers 2", "runner"),
    ],
)
def test_a_run_that_is_killed_over_and_over_ends_with_the_same_log(
    place: Path, tmp_path: Path, how: str, whom: str
) -> None:
    draw = random.Random(how + whom)
    name, *options = how.replace(" --times", "").split()
    options += [] if "--times" in how else ["--no-times"]
    command = f"{place}/agent.py:{name}", place / "source.txt", tmp_path / "out", "--no-scores", *options
    amid = 0
    for number in range(KILLS):
        before, process = size(tmp_path / "out"), started(*command)
        if number:  # the first time at any moment, then when it is amid the work
            until(lambda p=process, b=before: size(tmp_path / "out") > b or p.poll() is not None)  # type: ignore[misc]
            time.sleep(draw.uniform(0, 0.15))
        else:
            time.sleep(draw.uniform(0, 1))
        if process.poll() is not None:
            process.communicate()
            break
        kill(process, whom, draw)
        amid += size(tmp_path / "out") > before
    assert amid >= 2
    done = ran(*command)
    assert done.returncode == 0, done.stderr
    log = (tmp_path / "out" / "instances.log").read_bytes()
    if "--times" in how:
        told = [json.loads(line) for line in log.splitlines()]
        assert [untimed(line) for line in told] == [untimed(json.loads(line)) for line in whole(place).splitlines()]
        assert all("compute" in line for line in told)
    else:
        assert log == whole(place)
    assert manifest(tmp_path / "out")["summary"] == {
        "sentences": SENTENCES, "done": SENTENCES, "failed": 0, "failed_by_kind": {},
    }  # fmt: skip
    left = {file.name for file in (tmp_path / "out").iterdir()} - {"torn.txt"}
    assert left == {".log.lock", ".run.lock", "config.yaml", "instances.log", "run.json"}


def untimed(line: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in line.items() if key not in TIMES}


def indices(out: Path) -> set[int]:
    """The sentences that are in the log."""
    lines = (out / "instances.log").read_bytes().splitlines(keepends=True)
    return {json.loads(line)["index"] for line in lines if line.endswith(b"\n")}


@pytest.mark.parametrize("how", ["One --workers 1", "Many --batch 4 --workers 2"])
def test_the_sentence_of_a_worker_that_is_killed_is_tried_again_by_another(
    place: Path, tmp_path: Path, how: str
) -> None:
    draw, killed, out = random.Random(how), 0, tmp_path / "out"
    name, *options = how.split()
    with started(f"{place}/agent.py:{name}", place / "source.txt", out, "--no-times", "--no-scores", *options) as run:
        known: set[int] = set()
        lost: set[int] = set()
        for _ in range(3):
            until(lambda: bool(set(workers_of(run.pid)) - known) or run.poll() is not None)
            victim = max(set(workers_of(run.pid)) - known, default=None)  # one that was not there the last time
            before = size(out)
            until(lambda b=before: size(out) > b + 4000 or run.poll() is not None)  # type: ignore[misc]
            until(lambda gone=lost: gone <= indices(out) or run.poll() is not None)  # type: ignore[misc]
            time.sleep(draw.uniform(0, 0.05))
            if victim is not None and is_alive(victim):
                os.kill(victim, signal.SIGKILL)
                killed += 1
                known.add(victim)
                lost = set(range(min(max(indices(out)) + 9, SENTENCES)))  # it may have had these: lost twice, they fail
        _, err = run.communicate(timeout=PATIENCE)
    assert run.returncode == 0, err
    assert killed >= 2
    assert (out / "instances.log").read_bytes() == whole(place)
    assert len(manifest(out)["sessions"]) == 1


def test_who_has_lost_its_runner_writes_nothing_more_and_does_not_keep_the_folder(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = f"{place}/agent.py:Slow", place / "source.txt", out, "--no-times", "--no-scores", "--first", 10
    process = started(*command)
    until(lambda: size(out) > 0)
    until(lambda: (out / "instances.log").read_bytes().count(b"\n") == 3)
    orphans = workers_of(process.pid)
    assert orphans
    kill(process, "runner", random.Random(1))
    until(lambda: not any(map(is_alive, orphans)), 20)
    assert (out / "instances.log").read_bytes() == b"".join(whole(place).splitlines(keepends=True)[:3])
    done = ran(*command)
    assert done.returncode == 0, done.stderr
    assert (out / "instances.log").read_bytes() == b"".join(whole(place).splitlines(keepends=True)[:10])


def test_a_runner_that_is_killed_while_the_agent_is_made_leaves_nobody_behind(tmp_path: Path) -> None:
    slow = "import time\nclass Slow:\n    def __init__(self): time.sleep(600)\n    def policy(self, state): pass\n"
    (tmp_path / "agent.py").write_text(slow)
    (tmp_path / "source.txt").write_text("one\n")
    process = started(tmp_path / "agent.py", tmp_path / "source.txt", tmp_path / "out")
    until(lambda: bool(workers_of(process.pid)))
    orphans = workers_of(process.pid)
    time.sleep(0.5)
    kill(process, "runner", random.Random(1))
    until(lambda: not any(map(is_alive, orphans)), 20)


TEARS = {
    "the last line has no end": lambda lines: [*lines[:-1], lines[-1][:-1]],
    "half of the last line": lambda lines: [*lines[:-1], lines[-1][: len(lines[-1]) // 2]],
    "a letter of the last line is cut in two": lambda lines: [*lines[:-1], lines[-1][: lines[-1].find(b"\xc3") + 1]],
    "a line in the middle": lambda lines: [*lines[:4], lines[4][:20], b"\n", *lines[5:]],
    "a line that runs into the next": lambda lines: [*lines[:4], lines[4][:20], *lines[5:]],
    "zeros after a power cut": lambda lines: [*lines[:-2], b"\0" * 4096],
    "empty lines": lambda lines: [*lines[:3], b"\n\n", *lines[3:]],
    "out of order": lambda lines: [lines[5], *lines[:5], *lines[6:]],
    "nothing": lambda lines: [],
}


def parted(log: bytes, lines: list[bytes]) -> list[bytes]:
    """What of a log is no whole line."""
    pieces = log.split(b"\n")
    return [piece for piece in pieces[:-1] if piece.strip() and piece + b"\n" not in lines] + [
        *filter(None, pieces[-1:])
    ]


@pytest.mark.parametrize("how", TEARS)
def test_what_broke_off_is_put_aside(place: Path, tmp_path: Path, how: str) -> None:
    lines = whole(place).splitlines(keepends=True)[:20]
    log = b"".join(TEARS[how](lines))
    (tmp_path / "instances.log").write_bytes(log)
    journal = Journal(tmp_path)
    held = journal.read()
    journal.sort(held)
    whole_ones = [line for line in lines if line in log.splitlines(keepends=True)]
    assert (tmp_path / "instances.log").read_bytes() == b"".join(whole_ones)
    kept = (tmp_path / "torn.txt").read_bytes() if (tmp_path / "torn.txt").exists() else b""
    assert kept == b"".join(piece + b"\n" for piece in parted(log, lines))
    assert held.torn == len(parted(log, lines))
    assert journal.read().sorted
    assert (
        journal.read().positions.keys()
        == journal.written_indices()
        == {json.loads(line)["index"] for line in whole_ones}
    )
    journal.append(b'{"index": 99}\n')
    assert journal.read().positions.keys() == journal.written_indices() >= {99}
    journal.close()


@pytest.mark.parametrize(
    "how", ["a letter of the last line is cut in two", "a line that runs into the next", "out of order"]
)
def test_what_broke_off_is_translated_again(place: Path, tmp_path: Path, how: str) -> None:
    out = tmp_path / "out"
    job = Job(Spec("file", f"{place}/agent.py:One"), f"{place}/source.txt", None, str(out), Settings(times=False))
    lines = whole(place).splitlines(keepends=True)[:20]
    shutil.copytree(place / "whole", out)
    log = b"".join(TEARS[how](lines))
    (out / "instances.log").write_bytes(log)
    done = run_job(job, first=20)
    assert (out / "instances.log").read_bytes() == b"".join(lines)
    assert bool(done.torn) == bool(parted(log, lines)) == (out / "torn.txt").exists()


def test_what_was_mended_is_told(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(place / "whole", out)
    with (out / "instances.log").open("ab") as log:
        log.write(b'{"ind')
    done = ran(f"{place}/agent.py:One", place / "source.txt", out, "--no-times", "--no-scores")
    assert "repaired: 1 partial line moved to torn.txt" in done.stderr
    assert (out / "instances.log").read_bytes() == whole(place)
    assert (out / "torn.txt").read_bytes() == b'{"ind\n'


def test_a_line_closes_the_one_before_it_that_broke_off(tmp_path: Path) -> None:
    (tmp_path / "instances.log").write_bytes(b'{"index": 0}\n{"ind')
    journal = Journal(tmp_path)
    journal.append(b'{"index": 1}\n')
    assert (tmp_path / "instances.log").read_bytes() == b'{"index": 0}\n{"ind\n{"index": 1}\n'
    assert journal.written_indices() == {0, 1}
    journal.close()


def test_a_sentence_that_is_there_twice_is_told(tmp_path: Path) -> None:
    (tmp_path / "instances.log").write_bytes(b'{"index": 0}\n{"index": 0}\n')
    journal = Journal(tmp_path)
    with pytest.raises(LaggingError, match="sentence 0 twice"):
        journal.read()
    journal.close()


@pytest.mark.parametrize("over", [0, 1, 3])
def test_a_worker_that_dies_amid_its_notes_forgets_no_sentence(over: int) -> None:
    shared = SharedState(2, 4)
    for _ in range(4):
        shared.take(1, range(10, 20))
    shared.remove(1, 10 + over)
    assert sorted(shared.in_progress(1)) == sorted({10, 11, 12, 13} - {10 + over})
    row = shared.row(1)
    row[1] += 1  # as it is after the first half of a removal
    assert sorted({*shared.in_progress(1), 10 + over}) == [10, 11, 12, 13]
    assert shared.in_progress(0) == []
