# SPDX-License-Identifier: Apache-2.0
"""Workers, and who watches them: an input that takes too long, or kills its worker, is a finding."""

from __future__ import annotations

import json
import math
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

Request = dict[str, Any]
"""A target and a seed, or a case."""

Result = dict[str, Any]
"""What was found: kind, target, where, text, and the case if it is known."""

TESTS = Path(__file__).parent.parent
GUARD = 20.0
"""Seconds of computing for an input."""
WALL = 6
"""On the clock it may take so many times as long: a machine may be busy, and what waits for ever is found too."""
MEMORY = 2 << 30
"""Bytes for a worker."""
INPUTS = 5000
"""After so many a worker makes room for a fresh one."""
START = 120.0
"""Seconds in which a worker must be there."""


class Worker:
    """A process that tries inputs, one after the other, and is started again when it is gone."""

    def __init__(self, guard: float = GUARD, memory: int = MEMORY, wall: float | None = None) -> None:
        self.guard, self.memory = guard, memory
        self.wall = WALL * guard if wall is None else wall
        self.request: Request | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="lagging-fuzz-", ignore_cleanup_errors=True)
        self._process: subprocess.Popen[bytes] | None = None
        self._deadline = self._last = 0.0
        self._computed = 0.0
        self._tried = 0
        self._answer = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._folder.cleanup()

    def _start(self) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
        arguments = [self._folder.name, str(self.guard), str(self.memory)]
        with self._errors.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "fuzz.worker", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"},
                start_new_session=True,  # with whatever it starts, it can be ended
                bufsize=0,
            )
        self._process, self._tried, self._answer = process, 0, b""
        self._deadline = self._last = time.monotonic() + START
        ready = self._line()
        if ready != b"ready":
            said = self._said()
            self.stop()
            raise RuntimeError(f"a worker does not start: {said}")
        return process

    @property
    def _errors(self) -> Path:
        return Path(self._folder.name) / "stderr"

    def _said(self) -> str:
        return self._errors.read_text("utf-8", "replace")[-6000:] if self._errors.exists() else ""

    def stop(self) -> None:
        """End the process, and all that it started."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]

    def send(self, request: Request) -> None:
        """Have an input tried."""
        if self._process is None or self._tried >= INPUTS:
            self.stop()
            self._start()
        self.request, self._tried = request, self._tried + 1
        self._deadline, self._last = (time.monotonic() + seconds for seconds in (self.guard, self.wall))
        self._computed = _computing_time(self._process.pid)  # type: ignore[union-attr]
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")  # type: ignore[union-attr]

    def fileno(self) -> int:
        """Where the answer will come."""
        return self._process.stdout.fileno()  # type: ignore[union-attr]

    @property
    def overdue(self) -> float:
        """For how many seconds the answer has been overdue; below 0 if it is not.

        A process that has not computed for as long as the guard allows gets more time, until the last deadline.
        """
        now = time.monotonic()
        if self._process is not None and self._deadline <= now < self._last:
            left = self.guard - (_computing_time(self._process.pid) - self._computed)
            self._deadline = min(now + max(left, 0.5), self._last) if left > 0 else self._deadline
        return now - self._deadline

    def _line(self) -> bytes | None:
        """The next answer; None if the process ended or takes too long."""
        with selectors.DefaultSelector() as one:
            one.register(self, selectors.EVENT_READ)
            while self.overdue < 0:
                if one.select(-self.overdue):
                    answer = self.receive()
                    if answer is not None:
                        return answer or None
        return None

    def receive(self) -> bytes | None:
        """What has come of the answer: all of it, None if more will come, nothing if nothing ever will."""
        some = os.read(self.fileno(), 1 << 16)
        self._answer += some
        if not some:
            return b""
        if not self._answer.endswith(b"\n"):
            return None
        answer, self._answer = self._answer[:-1], b""
        return answer

    def result(self, answer: bytes | None) -> Result | None:
        """What an answer says; what its absence says, if there is none."""
        request, self.request = self.request or {}, None
        if answer:
            found: Result | None = json.loads(answer)
            return found
        kind, where = ("hang", "") if answer is None else ("killed", self._signal())
        said = self._said()
        self.stop()
        target = request.get("target") or request["case"]["target"]
        functions = re.findall(r'File "[^"]*/lagging/([^"]*)", line \d+ in (\w+)', said)
        place = ":".join(functions[0]) if functions else ""
        return {"kind": kind, "target": target, "where": f"{where} {place}".strip(), "text": said, "case": None}

    def _signal(self) -> str:
        code = self._process.wait() if self._process is not None else 0
        return signal.Signals(-code).name if code < 0 else f"exit {code}"

    def tried(self, request: Request) -> Result | None:
        """What was found with an input; waits for it."""
        self.send(request)
        answer = self._line()
        gone = answer is None and self.overdue < 0
        return self.result(b"" if gone else answer)


def _computing_time(process: int) -> float:
    """Seconds that a process, and those of its children that have ended, have computed; infinite where unknown."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return math.inf
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def tried(
    requests: Iterator[Request], workers: int, guard: float = GUARD, memory: int = MEMORY
) -> Iterator[tuple[Request, Result | None]]:
    """Every request, with what was found, in the order in which they end."""
    with ExitStack() as stack:
        idle = [stack.enter_context(Worker(guard, memory)) for _ in range(workers)]
        busy: list[Worker] = []
        while True:
            while idle and (request := next(requests, None)) is not None:
                worker = idle.pop()
                worker.send(request)
                busy.append(worker)
            if not busy:
                return
            for worker, answer in _answers(busy):
                request = worker.request
                busy.remove(worker)
                idle.append(worker)
                yield request, worker.result(answer)  # type: ignore[misc]


def _answers(busy: list[Worker]) -> list[tuple[Worker, bytes | None]]:
    """The workers that are done, or will never be."""
    with selectors.DefaultSelector() as all_of_them:
        for worker in busy:
            all_of_them.register(worker, selectors.EVENT_READ, worker)
        soonest = max(0.0, -max(worker.overdue for worker in busy))
        ready = [key.data for key, _ in all_of_them.select(soonest)]
    answers = [(worker, answer) for worker in ready if (answer := worker.receive()) is not None]
    done = [worker for worker, _ in answers]
    return answers + [(worker, None) for worker in busy if worker not in done and worker.overdue >= 0]
