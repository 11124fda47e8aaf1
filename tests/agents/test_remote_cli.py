# SPDX-License-Identifier: Apache-2.0
"""`lagging serve` and `lagging run --remote`, as processes of their own; all bounded in time."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from lagging.agents import Job, Settings, Spec, State, run_job
from lagging.agents.remote import RemoteAgent
from lagging.cli.serve import command as serve_command
from lagging.errors import UsageError

pytest.importorskip("websockets")
SOON = 60
TOKEN = "correct-horse-battery"
AGENT = """
import time

class Wait:
    def __init__(self, k=2):
        self.k = k

    def policy(self, state):
        if state.source[-1:] == ["raise"]:
            raise ValueError("as it was told to")
        if state.source[-1:] == ["stuck"]:
            time.sleep(600)
        if state.source[-1:] == ["slow"]:
            time.sleep(0.05)
        lead = len(state.source) - len(state.target)
        if lead and (state.finished or lead >= self.k):
            return state.source[len(state.target)].upper()
"""


class Served:
    """`lagging serve`, and what it says."""

    def __init__(self, *args: object, **environment: str) -> None:
        command = [sys.executable, "-m", "lagging", "serve", *map(str, args)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )
        self.lines: list[str] = []
        self.thread = threading.Thread(target=self._listen)
        self.thread.start()
        end = time.monotonic() + SOON
        while not (found := re.search(r"ws://\S+", "".join(self.lines))) and self.process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.02)
        self.address = found[0] if found else ""

    def _listen(self) -> None:
        for line in self.process.stderr:
            self.lines.append(line)

    def end(self, *signals: int) -> int:
        """Send signals, and wait for the end."""
        for number in signals:
            if self.process.poll() is None:
                self.process.send_signal(number)
                time.sleep(0.5)
        try:
            code = self.process.wait(SOON)
        finally:
            self.process.kill()
        self.thread.join(SOON)
        self.out = self.process.stdout.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return code


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    (tmp_path / "agent.py").write_text(AGENT)
    made: list[Served] = []

    def start(*args: object, **environment: str) -> Served:
        made.append(Served(tmp_path / "agent.py", "--port", 0, *args, **environment))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None or not one.process.stdout.closed:
            one.process.kill()
            one.end()


def run(folder: Path, out: str, *args: object) -> tuple[subprocess.CompletedProcess[str], bytes]:
    command = [sys.executable, "-m", "lagging", "run", *map(str, args), "--source", folder / "source.txt"]
    command += ["--reference", folder / "source.txt", "-o", folder / out, "--no-times", "--no-progress", "-m", "DAL"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * SOON)
    log = folder / out / "instances.log"
    return done, log.read_bytes() if log.exists() else b""


def job(folder: Path, address: str) -> Job:
    """A run from afar, in the folder `out`."""
    return Job(Spec("remote", address), str(folder / "source.txt"), None, str(folder / "out"), Settings(times=False))


posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@posix
def test_a_run_from_afar_leaves_the_same_log(serve, tmp_path: Path) -> None:
    lines = [" ".join("abcdefgh"[: n % 8 + 1]) for n in range(40)]
    lines[7] = "it will raise"
    (tmp_path / "source.txt").write_text("\n".join(lines) + "\n")
    there = serve("-a", "k=3", "--agents", 2)
    here, log = run(tmp_path, "here", tmp_path / "agent.py", "-a", "k=3")
    assert here.returncode == 1
    assert len(log.splitlines()) == 40
    assert b"as it was told to" in log.splitlines()[7]
    for number, more in enumerate(((), ("--workers", 2))):
        afar, from_afar = run(tmp_path, f"afar{number}", "--remote", there.address, *more)
        assert afar.returncode == 1, afar.stderr
        assert from_afar == log
        assert afar.stdout.split() == here.stdout.replace("here", f"afar{number}").split()
    assert there.end(signal.SIGTERM) == 0
    assert there.lines[-1] == "stopped, after 80 sentences\n"
    assert there.out == ""


@posix
def test_a_server_that_is_killed_amid_a_run_costs_a_sentence_and_no_more(serve, tmp_path: Path) -> None:
    (tmp_path / "source.txt").write_text("slow b c\n" * 30)
    _, log = run(tmp_path, "here", tmp_path / "agent.py")
    first = serve("-v")
    port = first.address.rpartition(":")[2]

    def crash() -> None:
        while sum("connected" in line for line in first.lines) < 1:
            time.sleep(0.02)
        time.sleep(0.4)
        first.process.kill()
        time.sleep(0.3)
        again.append(serve("--port", port))

    again: list[Served] = []
    thread = threading.Thread(target=crash)
    thread.start()
    afar, from_afar = run(tmp_path, "afar", "--remote", first.address)
    thread.join(SOON)
    failed = [line for line in map(json.loads, from_afar.splitlines()) if "failed" in line]
    assert afar.returncode == len(failed), afar.stderr  # 1; 0 if it was between two sentences
    assert all("the server is gone" in line["failed"] and line["kind"] == "connection" for line in failed)
    mended, from_afar = run(tmp_path, "afar", "--remote", first.address, "--retry-failed")
    assert mended.returncode == 0, mended.stderr
    assert from_afar == log
    assert again[0].end(signal.SIGTERM) == 0
    assert not again[0].lines[-1].startswith(("stopped, after 0", "stopped, after 30"))  # it was amid the run


@posix
def test_ctrl_c_ends_it_and_twice_ends_it_at_once(serve) -> None:
    quiet = serve()
    agent = RemoteAgent(quiet.address)
    agent.policy(State(["a"]))
    assert quiet.end(signal.SIGINT) == 0
    agent.close()
    busy = serve()
    agent = RemoteAgent(busy.address, timeout=0.5, reconnect=0)
    with pytest.raises(Exception, match=r"no answer for 0.5 s"):
        agent.policy(State(["stuck"]))
    assert busy.end(signal.SIGINT, signal.SIGINT) == 130
    assert any("press Ctrl-C again to stop at once" in line for line in busy.lines)


def test_others_need_a_token(serve, tmp_path: Path) -> None:
    refused = serve("--host", "0.0.0.0")
    assert refused.end() == 2
    assert refused.lines[0].startswith("error: 0.0.0.0 can be reached from other machines")
    (tmp_path / "token").write_text(TOKEN)
    for server in (
        serve("--host", "0.0.0.0", "--token-file", tmp_path / "token"),
        serve("--host", "0.0.0.0", LAGGING_TOKEN=TOKEN),
    ):
        address = server.address.replace("0.0.0.0", "127.0.0.1")
        with pytest.raises(Exception, match="401 no token"):
            RemoteAgent(address)
        agent = RemoteAgent(address, token=TOKEN)
        assert agent.policy(State(["a"])).answer is None
        agent.close()
        assert not any(TOKEN in line for line in server.lines)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("raise OSError('no weights')", 1, "error: the agent could not be made: Traceback"),
        ("x = 1", 2, "has no agent"),
        ("class A:\n    def policies(self, states): ...", 2, "cannot be served: every client has its own sentence"),
    ],
)
def test_what_cannot_be_served(serve, tmp_path: Path, text: str, code: int, said: str) -> None:
    (tmp_path / "odd.py").write_text(text)
    odd = Served(tmp_path / "odd.py", "--port", 0)
    assert odd.end() == code
    assert said in "".join(odd.lines)


def test_its_help() -> None:
    done = CliRunner().invoke(serve_command, ["--help"])
    assert done.exit_code == 0
    assert "--token-file" in done.stdout


@posix
def test_a_run_goes_on_with_the_agent_that_it_began_with_wherever_that_is_served(serve, tmp_path: Path) -> None:
    (tmp_path / "source.txt").write_text("a b c\n" * 4)
    begun, log = job(tmp_path, serve("-a", "k=3").address), tmp_path / "out" / "instances.log"
    assert run_job(begun, first=2).done == 2
    part = log.read_bytes()
    with pytest.raises(UsageError, match=r"agent\.modules\.served"):
        run_job(job(tmp_path, serve("-a", "k=1").address))
    assert log.read_bytes() == part
    moved = run_job(job(tmp_path, serve("-a", "k=3").address))
    assert (moved.before, moved.done) == (2, 4)
    assert log.read_bytes().startswith(part)


@posix
def test_a_server_that_does_not_come_back_stops_the_run_and_costs_a_sentence(serve, tmp_path: Path) -> None:
    (tmp_path / "source.txt").write_text("slow b c\n" * 30)
    served = serve("-v")

    def crash() -> None:
        while sum("connected" in line for line in served.lines) < 1:
            time.sleep(0.02)
        time.sleep(0.4)
        served.process.kill()

    thread = threading.Thread(target=crash)
    thread.start()
    done, log = run(tmp_path, "out", "--remote", served.address, "-a", "reconnect=0.2")
    thread.join(SOON)
    assert done.returncode == 1
    assert "the connection to the agent broke" in done.stderr
    assert "give the same command again" in done.stderr
    written = [json.loads(line) for line in log.splitlines()]
    assert len(written) < 30
    assert sum("failed" in line for line in written) <= 1
