# SPDX-License-Identifier: Apache-2.0
"""The worker processes of a run, and their supervision.

A worker whose step takes too long is killed, since it may hang in native code; its sentence is recorded as failed and
another worker is started. If a worker dies by itself, its sentences are tried again, one at a time.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from lagging.agents.failures import FAILURES, Failure
from lagging.agents.runner.jobs import Job, SentenceRunner
from lagging.agents.runner.journal import Journal
from lagging.agents.runner.shared_state import SharedState
from lagging.agents.runner.worker import STOP_SIGNALS, Handshake, work
from lagging.agents.sentence import NS
from lagging.errors import LaggingError

__all__ = ["WorkerPool"]

POLL_SECONDS = 0.05
"""Seconds between two checks of the workers, if none of them ends."""

EXIT_SECONDS = 3.0
"""Seconds that a worker may take to exit when all is done; an agent may have left threads or processes running."""

MAX_IDLE_DEATHS = 3
"""How many workers in a row may die without a sentence in progress."""


@dataclass
class _Worker:
    """A worker process, as the parent sees it.

    Attributes:
        process: the process.
        pipe: the connection to it.
        ready: whether it has been sent its work.
        retries: the sentences that it tries again, one after the other, before any other.
        done: when it reported that all is done; 0 before.
    """

    process: BaseProcess
    pipe: Connection
    ready: bool = False
    retries: Sequence[int] = ()
    done: float = 0.0


@dataclass
class WorkerPool:
    """The workers of a run.

    Attributes:
        job: what they do.
        size: how many there are.
        strict: whether the first failure ends the run.
        width: how many sentences a worker may have in progress.
        stays: whether workers wait for another job when they have done one, with what they have loaded.
        handshake: the first message of the first worker.
        interrupted: whether the run was asked to stop.
    """

    job: Job
    size: int = 1
    strict: bool = False
    width: int = 1
    stays: bool = False
    handshake: Handshake | None = None
    interrupted: bool = False
    _workers: dict[int, _Worker] = field(default_factory=dict)
    _waiting: dict[int, _Worker] = field(default_factory=dict)
    _deaths: Counter[int] = field(default_factory=Counter)
    _idle_deaths: int = 0
    _log_size: int = 0

    def __post_init__(self) -> None:
        """Allocate the shared memory."""
        self._context = multiprocessing.get_context("spawn")
        self._shared = SharedState(self.size, self.width)

    def take(self, job: Job) -> None:
        """Turn to another job; workers that have done theirs are given it when they are needed."""
        self.job, self.handshake = job, None
        self._shared.reset()
        self._deaths.clear()
        self._idle_deaths = self._log_size = 0

    def start_first(self) -> Handshake:
        """Start the first worker, and receive what the agent declares.

        Raises:
            LaggingError: the agent cannot be made.
        """
        self._start(0)
        self.handshake = self._receive_handshake(0)
        return self.handshake

    def _start(self, slot: int) -> None:
        waiting = self._waiting.pop(slot, None)
        if waiting is not None:
            with suppress(BrokenPipeError, ConnectionResetError):  # it has died
                waiting.pipe.send(self.job)
                self._workers[slot] = _Worker(waiting.process, waiting.pipe)
                return
            waiting.pipe.close()
        parent_end, worker_end = self._context.Pipe()
        args = (self.job, slot, self._shared, worker_end, self.strict, self.stays)
        process = self._context.Process(target=work, args=args, name=f"lagging-{slot}")
        with _blocked_stop_signals():
            process.start()
            worker_end.close()
            self._workers[slot] = _Worker(process, parent_end)

    def _receive_handshake(self, slot: int) -> Handshake:
        worker = self._workers[slot]
        while not worker.pipe.poll(POLL_SECONDS) and worker.process.exitcode is None:
            pass  # the worker may die while a process that it started keeps the pipe open
        try:
            message = worker.pipe.recv() if worker.pipe.poll() else None
        except (EOFError, OSError):
            worker.process.join()
            message = None
        if isinstance(message, LaggingError):
            raise message
        if message is None:
            how = self._describe_end(slot, worker)
            raise LaggingError(f"the agent's process died while the agent was being made ({how})")
        assert isinstance(message, Handshake)
        return message

    def run(self, todo: Sequence[int], runner: SentenceRunner, journal: Journal, progress: Callable[[], None]) -> bool:
        """Translate all sentences; False if the run was stopped before.

        Args:
            todo: the indices of the sentences.
            runner: makes the lines of sentences whose worker was lost.
            journal: where the lines go.
            progress: called now and then.

        Raises:
            LaggingError: a worker cannot continue.
            KeyboardInterrupt: the run was asked to stop a second time.
        """
        with self._stop_on_signals():
            try:
                self._send_work(0, todo)
                self._supervise(todo, runner, journal, progress)
                while not self._shared.stopped and (missing := self._missing(todo, journal)):
                    self._shared.restart()  # a worker died just when it was handed these sentences
                    self._start(0)
                    self._supervise(missing, runner, journal, progress)
                    if len(self._missing(todo, journal)) == len(missing):
                        raise LaggingError("the agent's processes end before their work is done")
            except KeyboardInterrupt:
                self.interrupted = True
                with journal.lock.held():  # no worker is killed while it writes a line
                    self.kill()
                raise
        return not self._shared.stopped

    def _supervise(
        self, todo: Sequence[int], runner: SentenceRunner, journal: Journal, progress: Callable[[], None]
    ) -> None:
        """Start the other workers, and check all of them until they have ended."""
        for slot in range(1, min(self.size, len(todo))):
            self._start(slot)
        synced = time.monotonic()
        while self._workers:
            self._check(todo, runner, journal)
            if time.monotonic() - synced >= 0.5:
                journal.sync()
                synced = time.monotonic()
            progress()
        journal.sync()
        progress()

    @contextmanager
    def _stop_on_signals(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM: the first finishes the sentences in progress, the second stops at once."""

        def handle(*_: object) -> None:
            if self.interrupted:
                raise KeyboardInterrupt
            self.interrupted = True
            self._shared.stop()

        in_main = threading.current_thread() is threading.main_thread()
        handled = [
            number for number in STOP_SIGNALS if in_main and signal.getsignal(number) is signal.default_int_handler
        ]
        for number in handled:
            signal.signal(number, handle)
        try:
            yield
        finally:
            for number in handled:
                signal.signal(number, signal.default_int_handler)

    def _missing(self, todo: Sequence[int], journal: Journal) -> list[int]:
        """The sentences that are not in the log."""
        with journal.lock.held():
            written = journal.written_indices()
        return [index for index in todo if index not in written]

    def _send_work(self, slot: int, todo: Sequence[int], retries: Sequence[int] = ()) -> None:
        worker = self._workers[slot]
        worker.ready, worker.retries = True, retries
        with suppress(BrokenPipeError, ConnectionResetError):  # it has died, which the next check sees
            worker.pipe.send((todo, retries))

    def _check(self, todo: Sequence[int], runner: SentenceRunner, journal: Journal) -> None:
        """Receive messages, and handle workers that have ended or take too long."""
        waitables: list[Any] = [worker.process.sentinel for worker in self._workers.values()]
        waitables += [worker.pipe for worker in self._workers.values() if not worker.done]
        wait(waitables, POLL_SECONDS)
        for slot, worker in list(self._workers.items()):
            if not worker.done and worker.pipe.poll():
                self._receive(slot, worker, todo)
                if slot not in self._workers:  # it waits for another job
                    continue
            if worker.done and time.monotonic() - worker.done > EXIT_SECONDS:
                _kill(worker.process)
            if worker.process.exitcode is not None:
                _kill(worker.process)  # processes that it started may still run
                closed = self._shared.is_closed(slot)
                failure = Failure("closed-files") if closed else Failure("died", _exit_text(worker.process.exitcode))
                self._handle_end(slot, runner, journal, failure, todo)
            elif (failure_late := self._exceeded_limit(slot)) is not None:
                with journal.lock.held():  # it does not write a line now, and its sentence is still not done
                    if self._exceeded_limit(slot) is None:
                        continue
                    _kill(worker.process)
                self._handle_end(slot, runner, journal, failure_late, todo)

    def _receive(self, slot: int, worker: _Worker, todo: Sequence[int]) -> None:
        try:
            message = worker.pipe.recv()
        except (EOFError, OSError):  # it is about to end
            worker.done = time.monotonic()
            return
        if isinstance(message, LaggingError):
            self.kill()
            raise message
        if message is None and self.stays:
            self._waiting[slot] = self._workers.pop(slot)
            self._shared.clear(slot)
        elif message is None:
            worker.done = time.monotonic()
        else:
            self._send_work(slot, todo, self._shared.in_progress(slot))

    def _exceeded_limit(self, slot: int) -> Failure | None:
        began, limits = self._shared.step_began(slot), self.job.settings.limits
        if not began:
            return None
        seconds = (time.perf_counter_ns() - began) / NS
        if seconds > limits.step:
            return Failure("step-limit", f"more than {limits.step:g} s")
        return Failure("sentence-limit", f"more than {limits.sentence:g} s") if seconds > limits.sentence else None

    def _handle_end(
        self, slot: int, runner: SentenceRunner, journal: Journal, failure: Failure, todo: Sequence[int]
    ) -> None:
        """Record the sentences of a worker that has ended as failed, or have another worker try them again."""
        worker = self._workers.pop(slot)
        code, how = worker.process.exitcode, self._describe_end(slot, worker)
        worker.pipe.close()
        indices = self._shared.in_progress(slot)
        self._shared.clear(slot)
        if not indices and (worker.done or code == 0):
            return
        if not (indices and worker.ready):
            unchanged = journal.size() == self._log_size
            self._idle_deaths, self._log_size = self._idle_deaths + 1 if unchanged else 1, journal.size()
        if self._idle_deaths > MAX_IDLE_DEATHS:
            when = "not over a sentence" if worker.ready else "while the agent was being made again"
            raise LaggingError(f"the agent's process died, {when} ({how})")
        with journal.lock.held():
            written = journal.written_indices()
        suspects = ([index for index in worker.retries if index in indices][:1] or indices) if worker.ready else []
        retries = []
        for index in indices:
            if index in written:  # the worker died after it had written the line
                continue
            self._deaths[index] += index in suspects
            if index in suspects and (self._deaths[index] > 1 or (failure.kind != "died" and len(suspects) == 1)):
                with journal.lock.held():
                    journal.append(runner.fail(index, failure))
                if self.strict:
                    self._shared.stop()
            else:
                retries.append(index)
        if retries or self._shared.has_more(todo):
            self._start(slot)
            for index in retries:
                self._shared.add(slot, index)

    def _describe_end(self, slot: int, worker: _Worker) -> str:
        """How a worker ended, in words."""
        return FAILURES["closed-files"] if self._shared.is_closed(slot) else _exit_text(worker.process.exitcode)

    def kill(self) -> None:
        """Kill all workers."""
        for worker in (*self._workers.values(), *self._waiting.values()):
            _kill(worker.process)
            worker.pipe.close()
        self._workers.clear()
        self._waiting.clear()


@contextmanager
def _blocked_stop_signals() -> Iterator[None]:
    """Block SIGINT and SIGTERM while a child process is started; the child unblocks them when it is ready."""
    if os.name != "posix":
        yield
        return
    resource_tracker.ensure_running()  # starting it inside the block would unblock them
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _kill(process: BaseProcess) -> None:
    """Kill a worker, and the processes that it has started."""
    if os.name == "posix" and process.pid is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


def _exit_text(code: int | None) -> str:
    """An exit code, in words."""
    if code is None or code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"
