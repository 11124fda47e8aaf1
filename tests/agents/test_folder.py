# SPDX-License-Identifier: Apache-2.0
"""The folder of a run: who may go on in it, what stops him, and that nothing in it is ever written over."""

from __future__ import annotations

import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lagging.agents import Job, Settings, Spec, run_job
from lagging.agents.runner.locks import Descriptor, Lock
from lagging.errors import LaggingError, UsageError
from running import arguments, hashes, is_alive, lines, manifest, ran, size, started, until, workers_of

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes in /proc")

AGENT = """
import os
import time
from pathlib import Path

from helper import said

HERE = Path(__file__).parent

class WaitK:
    def __init__(self, k=1, seconds=0.0):
        with (HERE / "made").open("a") as file:
            file.write("x")
        self.k, self.seconds = k, seconds

    def policy(self, state):
        place = len(state.target)
        if not place and len(state.source) == 1:
            time.sleep(self.seconds)
        while state.source[-1] == "c3" and (HERE / "held").exists():
            time.sleep(0.01)
        if (HERE / "broken").exists() and state.source[0] == "b":
            raise ValueError("broken")
        if state.finished or len(state.source) - place >= self.k:
            return said(state.source[place]) if place < len(state.source) else None

class Other(WaitK):
    pass
"""
SENTENCES = 40


def furnish(folder: Path) -> Path:
    """Put an agent, a module beside it, and a test set into a new folder."""
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    (folder / "helper.py").write_text("def said(word):\n    return word.upper()\n")
    text = "".join(f"{'ab'[number % 2]} c{number} d e\n" for number in range(SENTENCES))
    (folder / "source.txt").write_text(text)
    (folder / "reference.txt").write_text(text.upper())
    return folder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with an agent, a module beside it, and a test set."""
    return furnish(tmp_path / "place")


@pytest.fixture(scope="module")
def done_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Such folders with runs that nobody disturbed: five sentences of `half`, all of `finished`."""
    folder = tmp_path_factory.mktemp("done")
    run_job(job(furnish(folder / "half")), first=5)
    run_job(job(furnish(folder / "finished")))
    return folder


@pytest.fixture
def half(done_once: Path, tmp_path: Path) -> Path:
    """A run, of which a part is done; the folder is another now, which is no change."""
    return Path(shutil.copytree(done_once / "half", tmp_path / "place"))


@pytest.fixture
def whole(done_once: Path) -> bytes:
    """The log of a run that nobody disturbed."""
    return (done_once / "finished" / "out" / "instances.log").read_bytes()


def job(place: Path, out: Path | None = None, options: tuple[tuple[str, str], ...] = (), **settings: Any) -> Job:
    files = str(place / "source.txt"), str(place / "reference.txt"), str(out or place / "out")
    settings.setdefault("times", False)
    return Job(Spec("file", f"{place}/agent.py:WaitK", options), *files, Settings(**settings))


def command(place: Path, *more: object) -> tuple[object, ...]:
    files = f"{place}/agent.py:WaitK", place / "source.txt", place / "out", "--reference", place / "reference.txt"
    return *files, "--no-times", *more


def made(place: Path) -> int:
    """How often the agent was made."""
    return len((place / "made").read_text()) if (place / "made").exists() else 0


# ---- what has changed -----------------------------------------------------------------------------------------------


def write(name: str, text: str) -> Callable[[Path], None]:
    return lambda place: (place / name).write_text((place / name).read_text() + text) and None


CHANGES: dict[str, tuple[Callable[[Path], None], dict[str, Any], str]] = {
    "a line of the source": (
        lambda place: (place / "source.txt").write_text("X" + (place / "source.txt").read_text()[1:]) and None,
        {},
        "source.sha256",
    ),
    "a line of the reference": (
        lambda place: (place / "reference.txt").write_text("X" + (place / "reference.txt").read_text()[1:]) and None,
        {},
        "reference.sha256",
    ),
    "agent": (write("agent.py", "\n# new\n"), {}, "agent.sha256"),
    "module beside it": (write("helper.py", "\n# new\n"), {}, "agent.modules.helper.py"),
    "module is gone": (lambda place: (place / "helper.py").unlink(), {}, "agent.modules.helper.py"),
    "option": (lambda place: None, {"options": (("k", "3"),)}, "agent.options.k: null then, \"3\" now"),
    "chunk": (lambda place: None, {"chunk": 2}, "settings.chunk: null then, 2 now"),
    "level": (lambda place: None, {"level": "char"}, 'settings.level: "word" then, "char" now'),
    "source level": (lambda place: None, {"source_level": "char"}, 'settings.source_level: "word" then, "char" now'),
    "times": (lambda place: None, {"times": True}, "settings.times: false then, true now"),
}  # fmt: skip


@pytest.fixture(params=["half", "finished"])
def begun(request: pytest.FixtureRequest, done_once: Path, tmp_path: Path) -> Path:
    """A run, of which a part is done, or all."""
    return Path(shutil.copytree(done_once / request.param, tmp_path / "place"))


def test_what_has_changed_since_is_named_and_nothing_written(begun: Path, tmp_path: Path) -> None:
    for what, (change, settings, said) in CHANGES.items():
        other = tmp_path / what.replace(" ", "-")
        shutil.copytree(begun, other)  # the folder is another now, which is no change
        change(other)
        before, agents = hashes(other / "out"), made(other)
        with pytest.raises(UsageError, match="holds another run") as error:
            run_job(job(other, **settings))
        assert said in str(error.value), what
        assert str(error.value).count(" then, ") == 1, what
        assert hashes(other / "out") == before, what
        assert made(other) == agents, what


def test_everything_that_has_changed_is_named_at_once(begun: Path) -> None:
    write("agent.py", "\n")(begun)
    write("helper.py", "\n")(begun)
    with pytest.raises(UsageError) as error:
        run_job(job(begun, chunk=2, options=(("k", "2"),)))
    for part in ("agent.sha256", "agent.modules.helper.py", "agent.options.k", "settings.chunk"):
        assert part in str(error.value)


def test_another_agent_of_the_same_file_is_another(begun: Path) -> None:
    other = Job(Spec("file", f"{begun}/agent.py:Other"), *(str(begun / f"{n}.txt") for n in ("source", "reference")),
                str(begun / "out"), Settings(times=False))  # fmt: skip
    with pytest.raises(UsageError, match=r'agent.name: "WaitK" then, "Other" now'):
        run_job(other)


def test_another_policy_is_another(place: Path) -> None:
    first, second = (
        Job(Spec("policy", name), str(place / "source.txt"), str(place / "reference.txt"), str(place / "out"))
        for name in ("wait-3", "wait-5")
    )
    run_job(first, first=3)
    with pytest.raises(UsageError, match=r'agent.name: "wait-3" then, "wait-5" now'):
        run_job(second)


def test_a_reference_that_was_not_there_is_a_change(begun: Path) -> None:
    without = Job(Spec("file", f"{begun}/agent.py:WaitK"), str(begun / "source.txt"), None, str(begun / "out"),
                  Settings(times=False))  # fmt: skip
    with pytest.raises(UsageError, match=r"reference: .* then, null now"):
        run_job(without)


def test_limits_batches_and_workers_may_change(half: Path, whole: bytes) -> None:
    from lagging.agents import Limits

    run_job(job(half, limits=Limits(step=77)), workers=2)
    assert (half / "out" / "instances.log").read_bytes() == whole


# ---- what is there already ------------------------------------------------------------------------------------------


def test_the_log_of_somebody_else_is_not_written_over(place: Path) -> None:
    (place / "out").mkdir()
    (place / "out" / "instances.log").write_text("anything")
    before = hashes(place / "out")
    with pytest.raises(UsageError, match=r"has a log, but no run\.json"):
        run_job(job(place))
    assert hashes(place / "out") == before
    assert made(place) == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: '{"schema": 1}',
        lambda text: text.replace('"traits"', '"treats"'),
        lambda text: text.replace('"source": "text"', '"source": "scent"'),
        lambda text: text.replace('"settings"', '"sitting"'),
        lambda text: json.dumps(json.loads(text) | {"sessions": []}),
        lambda text: text.replace('"schema": 1', '"schema": 2'),
        lambda text: text.encode("utf-16").decode("latin-1"),
    ],
)
def test_a_damaged_manifest_is_told_and_nothing_written(half: Path, damage: Callable[[str], str]) -> None:
    path = half / "out" / "run.json"
    path.write_text(damage(path.read_text()))
    before = hashes(half / "out")
    with pytest.raises(UsageError, match=r"run\.json"):
        run_job(job(half))
    assert hashes(half / "out") == before


def test_a_finished_run_gives_the_same_scores_again_and_the_agent_is_not_made_again(place: Path) -> None:
    first = ran(*command(place))
    before = hashes(place / "out")
    again = ran(*command(place))
    assert (first.returncode, again.returncode) == (0, 0)
    assert first.stdout == again.stdout != ""
    assert "nothing was left to do" in again.stderr
    assert made(place) == 1
    assert hashes(place / "out") == before


def test_the_first_sentences_then_the_rest(place: Path, whole: bytes) -> None:
    part = run_job(job(place), first=7)
    assert (part.done, part.total, part.finished) == (7, SENTENCES, True)
    assert [line["index"] for line in lines(place / "out")] == list(range(7))
    rest = run_job(job(place))
    assert (rest.done, rest.before, rest.finished) == (SENTENCES, 7, True)
    assert (place / "out" / "instances.log").read_bytes() == whole
    assert [session["done_before"] for session in manifest(place / "out")["sessions"]] == [0, 7]


def test_what_failed_is_tried_again_when_that_is_asked_for(place: Path, whole: bytes) -> None:
    (place / "broken").touch()
    done = run_job(job(place))
    assert len(done.failed) == SENTENCES // 2
    assert set(done.failed.values()) == {"raised"}
    (place / "broken").unlink()
    assert len(run_job(job(place)).failed) == SENTENCES // 2
    again = run_job(job(place), retry_failed=True)
    assert (again.failed, again.before, again.done) == ({}, SENTENCES // 2, SENTENCES)
    assert (place / "out" / "instances.log").read_bytes() == whole


def test_a_run_goes_on_from_another_folder_and_in_another_place(place: Path, tmp_path: Path, whole: bytes) -> None:
    files = "agent.py:WaitK", "source.txt", "out", "--reference", "reference.txt", "--no-times", "--no-scores"
    assert ran(*files, "--first", 5, cwd=place).returncode == 0
    (place / "out").rename(tmp_path / "moved")
    far = "place/agent.py:WaitK", "place/source.txt", "moved", "--reference", "place/reference.txt"
    done = ran(*far, "--no-times", "--no-scores", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "moved" / "instances.log").read_bytes() == whole


def test_another_run_in_the_same_folder_is_told_who_is_there(place: Path, whole: bytes) -> None:
    (place / "held").touch()
    with started(*command(place, "--no-scores")) as one:
        until(lambda: size(place / "out") > 0)
        two = ran(*command(place))
        (place / "held").unlink()
        assert two.returncode == 2
        assert f"another run uses {place / 'out'} (process {one.pid})" in two.stderr
        one.communicate()
    assert one.returncode == 0
    assert (place / "out" / "instances.log").read_bytes() == whole
    assert len(manifest(place / "out")["sessions"]) == 1


# ---- where nothing can be written -----------------------------------------------------------------------------------


def test_a_file_in_place_of_the_folder(place: Path) -> None:
    (place / "out").write_text("mine")
    with pytest.raises(UsageError, match=r"cannot write .*out"):
        run_job(job(place))
    assert (place / "out").read_text() == "mine"
    with pytest.raises(UsageError, match=r"cannot write .*out/deeper"):
        run_job(job(place, place / "out" / "deeper"))
    assert made(place) == 0


def test_a_folder_that_cannot_be_made(place: Path) -> None:
    with pytest.raises(UsageError, match="cannot write /proc/"):
        run_job(job(place, Path("/proc/lagging")))
    with pytest.raises(UsageError, match="cannot write /proc/self"):
        run_job(job(place, Path("/proc/self")))


@pytest.mark.parametrize("name", [".run.lock", ".log.lock"])
@pytest.mark.parametrize("there", [True, False], ids=["file", "nothing"])
def test_a_lock_that_is_a_link_is_refused_and_its_target_stays(place: Path, name: str, there: bool) -> None:
    precious, out = place / "precious.txt", place / "out"
    if there:
        precious.write_text("kept")
    out.mkdir()
    (out / name).symlink_to(precious)
    with pytest.raises(UsageError, match=rf"{name} is a link, and is not followed\n  fix: remove it"):
        run_job(job(place))
    assert (precious.read_text() if there else precious.exists()) == ("kept" if there else False)
    assert {path.name for path in out.iterdir()} == {".run.lock", name}


def test_a_lock_that_somebody_has_is_not_emptied(tmp_path: Path) -> None:
    first = Lock(tmp_path / "lock")
    assert first.take(wait=False)
    first.write_owner("process 1")
    second = Lock(tmp_path / "lock")
    assert not second.take(wait=False)
    assert second.read_owner() == "process 1"
    for lock in (first, second):
        lock.close()


@pytest.mark.parametrize("name", ["run.json", "instances.log", "config.yaml", "scores.json", "torn.txt", ".run.lock"])
def test_a_pipe_in_place_of_a_file_is_told_and_not_waited_for(place: Path, name: str) -> None:
    out = place / "out"
    out.mkdir()
    os.mkfifo(out / name)
    done = ran(*command(place))
    assert done.returncode == 2, done.stderr
    assert f"{name} is not a regular file\n  fix: remove it, or give another folder with -o." in done.stderr
    assert made(place) == 0


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="there is no file that cannot be locked")
def test_a_file_that_cannot_be_locked(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "lock")
    lock.close()
    lock._file = Descriptor(
        os.open(tmp_path, os.O_PATH)
    )  # which the system does not lock, as some network drives do not
    with pytest.raises(UsageError, match=r"cannot lock .*lock: Bad file descriptor\n  fix: a folder on a disk whose"):
        lock.take()
    lock.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere, but for a disk that is read-only (below)")
def test_a_folder_without_the_right_to_write(place: Path) -> None:
    (place / "out").mkdir(mode=0o500)
    with pytest.raises(UsageError, match=r"cannot write .*Permission denied"):
        run_job(job(place))


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))


def test_a_log_that_may_not_grow_keeps_whole_lines_and_goes_on_later(place: Path, whole: bytes) -> None:
    done = ran(*command(place, "--workers", 2, "--no-scores"), preexec_fn=limited)
    assert done.returncode == 1
    assert done.stderr == f"error: cannot write {place / 'out' / 'instances.log'}: File too large\n"
    log = (place / "out" / "instances.log").read_bytes()
    assert log.endswith(b"\n")
    assert 10 < len(log.splitlines()) < SENTENCES
    assert run_job(job(place), workers=2).finished
    assert (place / "out" / "instances.log").read_bytes() == whole
    assert not (place / "out" / "torn.txt").exists()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk with hardly any room."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "lagging", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("NOT RUN: may not mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_disk_that_is_read_only(place: Path, small: Path) -> None:
    (small / "there").mkdir()
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    for folder in (small / "there", small / "new"):
        with pytest.raises(UsageError, match=rf"cannot write {folder}.*: Read-only file system"):
            run_job(job(place, folder))
    assert made(place) == 0


def test_a_full_disk_is_told_and_the_run_goes_on_when_there_is_room(place: Path, small: Path, whole: bytes) -> None:
    files = f"{place}/agent.py:WaitK", place / "source.txt", small / "out", "--reference", place / "reference.txt"
    done = ran(*files, "--no-times")
    assert done.returncode == 1
    assert "cannot write" in done.stderr
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    log = (small / "out" / "instances.log").read_bytes()
    assert log == b"".join(whole.splitlines(keepends=True)[: len(log.splitlines())])
    again = ran(*files, "--no-times")  # still full
    assert again.returncode == 1
    assert "No space left on device\n  fix: make room, then give the same command again." in again.stderr
    assert (small / "out" / "instances.log").read_bytes()[: len(log)] == log
    subprocess.run(["mount", "-o", "remount,size=1m", str(small)], check=True)
    assert run_job(job(place, small / "out")).finished
    assert (small / "out" / "instances.log").read_bytes() == whole


# ---- somebody asks to stop ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "whom", "workers"),
    [
        (signal.SIGINT, "group", 1),
        (signal.SIGINT, "runner", 2),
        (signal.SIGTERM, "runner", 1),
        (signal.SIGTERM, "group", 2),
    ],
)
def test_whoever_asks_to_stop_gets_whole_sentences_and_how_to_go_on(
    place: Path, whole: bytes, number: signal.Signals, whom: str, workers: int
) -> None:
    how = command(place, "-a", "seconds=0.05", "--workers", workers, "--no-scores")
    with started(*how, start_new_session=True) as process:
        until(lambda: size(place / "out") > 0 or process.poll() is not None)
        (os.killpg if whom == "group" else os.kill)(process.pid, number)
        out, err = process.communicate()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert out == ""
    done = lines(place / "out")
    assert 1 <= len(done) < SENTENCES
    assert [line["index"] for line in done] == sorted(line["index"] for line in done)
    assert not any("failed" in line for line in done)
    assert manifest(place / "out")["sessions"][-1]["by"] == "interrupted"
    told = shlex.split(err.partition("to resume: ")[2])
    assert told == ["lagging", *arguments(*how)[3:]]
    assert run_job(job(place, options=(("seconds", "0.05"),)), workers=2).finished
    assert (place / "out" / "instances.log").read_bytes() == whole


def test_whoever_asks_twice_is_heard_at_once(place: Path) -> None:
    how = command(place, "-a", "seconds=600", "--workers", 2)
    with started(*how) as process:
        until(lambda: made(place) == 2)
        until(lambda: (place / "out" / "run.json").exists())
        workers = workers_of(process.pid)
        time.sleep(0.5)  # both are amid a sentence
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert "press Ctrl-C again to stop at once" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "to resume: " in err
    assert "Traceback" not in err
    assert not any(map(is_alive, workers))
    assert lines(place / "out") == []


def test_whoever_asks_while_the_agent_is_made_is_heard_at_once(place: Path) -> None:
    (place / "agent.py").write_text("import time\ntime.sleep(600)\n" + AGENT)
    with started(*command(place), start_new_session=True) as process:
        until(lambda: bool(workers_of(process.pid)))
        workers = workers_of(process.pid)
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err.startswith("interrupted; to resume: lagging run ")
    assert not any(map(is_alive, workers))
    assert hashes(place / "out") == {}


def test_whoever_asks_while_workers_start_interrupts_and_breaks_nothing(place: Path, whole: bytes) -> None:
    how = command(place, "-a", "seconds=0.05", "--workers", 3, "--no-scores")
    with started(*how, start_new_session=True) as process:
        until(lambda: len(workers_of(process.pid)) >= 2)  # they have begun to start, but do not listen yet
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert run_job(job(place, options=(("seconds", "0.05"),)), workers=2).finished
    assert (place / "out" / "instances.log").read_bytes() == whole


def test_a_run_inside_a_program_gives_the_signals_back(place: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    run_job(job(place), first=1)
    assert signal.getsignal(signal.SIGINT) is before


def test_it_needs_a_worker(place: Path) -> None:
    with pytest.raises(UsageError, match="1 worker or more"):
        run_job(job(place), workers=0)


def test_an_agent_that_cannot_be_made_is_told_in_a_program_too(place: Path) -> None:
    (place / "agent.py").write_text(AGENT + "\n1 / 0\n")
    with pytest.raises(LaggingError, match="ZeroDivisionError"):
        run_job(job(place))


def test_what_somebody_left_unfinished_is_cleared_away(half: Path) -> None:
    for name in (".run.json-abc.unfinished", ".instances.log.unfinished"):
        (half / "out" / name).write_text("half")
    (half / "out" / "mine.unfinished").write_text("kept")
    run_job(job(half), first=6)
    assert hashes(half / "out").keys() == {"config.yaml", "instances.log", "mine.unfinished", "run.json"}
