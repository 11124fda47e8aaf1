# SPDX-License-Identifier: Apache-2.0
"""A worker process.

It makes the agent, takes a sentence, translates it, appends its line to the journal, and takes the next. The worker
itself writes the line, so that a finished sentence is in the log at once. It exits when its parent process has ended.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from lagging.agents.failures import Failure, failure_from
from lagging.agents.loading import sibling_modules
from lagging.agents.protocol import Traits
from lagging.agents.runner.jobs import Job, SentenceRunner
from lagging.agents.runner.journal import Journal
from lagging.agents.runner.locks import ClosedError, Descriptor
from lagging.agents.runner.shared_state import SharedState
from lagging.errors import LaggingError, UsageError
from lagging.errors.printable import printable

__all__ = ["STOP_SIGNALS", "Handshake", "work"]

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Signals that ask a run to stop."""

RETRY = "give the same command again, with --retry-failed for the sentence that it broke off in"


@dataclass(frozen=True)
class Handshake:
    """The first message of a worker, when it has made the agent.

    Attributes:
        traits: what the agent declares.
        modules: hashes of the modules that it imported from its folder; of a remote agent, or of one that is a model,
            its identity.
    """

    traits: Traits
    modules: dict[str, str]


class _Handler(logging.StreamHandler[Any]):
    """Log to standard error, with control characters escaped."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def work(job: Job, slot: int, shared: SharedState, pipe: Connection, strict: bool, stays: bool = False) -> None:
    """The main function of a worker process; one that stays waits for another job when it has done this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    if os.name == "posix":
        os.setsid()  # processes that the agent starts are killed with this one
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # drop a SIGTERM that was sent to the whole process group
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.stdout is not None:
        os.dup2(2, 1)  # standard output is for the scores: what an agent prints goes to standard error
    logging.getLogger("lagging").addHandler(_Handler())
    parent, start_folder = os.getppid(), Path.cwd()
    threading.Thread(target=_exit_with_parent, args=(parent, shared, slot), daemon=True).start()
    try:
        while _run(job, slot, shared, pipe, strict, parent, start_folder) and stays:
            try:
                job = pipe.recv()
            except EOFError:  # there is no other
                return
    except ClosedError:
        shared.mark_closed(slot)
        _kill_group()


def _run(
    job: Job, slot: int, shared: SharedState, pipe: Connection, strict: bool, parent: int, start_folder: Path
) -> bool:
    """Make the agent, receive the work, do it, and report the outcome; whether all went well.

    Raises:
        ClosedError: the agent has closed files of the runner.
    """
    descriptor = Descriptor(pipe.fileno()) if os.name == "posix" else None

    def send(message: Handshake | LaggingError | None) -> None:
        if descriptor is not None:
            descriptor.stat()
        pipe.send(message)

    try:
        agent = job.agent.make()
        handshake = Handshake(Traits.of(agent), _modules(job, agent, start_folder))
    except BaseException as error:
        send(_as_lagging_error(error))
        return False
    send(handshake)
    try:
        todo, retries = pipe.recv()
    except EOFError:  # nothing is left to do, or the run was refused
        return False
    try:
        runner, journal = _open_job(job, agent, handshake.traits, start_folder)
        _translate(runner, journal, slot, shared, strict, parent, todo, retries)
    except ClosedError:
        raise
    except Exception as error:  # for example a full disk
        send(_as_lagging_error(error, "a worker could not go on"))
        return False
    send(None)
    return True


def _modules(job: Job, agent: Any, start_folder: Path) -> dict[str, str]:
    """What identifies the agent besides its description."""
    if job.agent.file is not None:
        return sibling_modules(start_folder / job.agent.file)
    identity = getattr(agent, "identity", None) or {}
    return dict(identity) if isinstance(identity, dict) else {"served": identity}


def _open_job(job: Job, agent: Any, traits: Traits, start_folder: Path) -> tuple[SentenceRunner, Journal]:
    """Open inputs and log relative to the folder of the run, even if the agent has changed the working directory."""
    agent_folder = Path.cwd()
    os.chdir(start_folder)
    source = job.settings.open(job.source, traits.source, check=False)
    folder = Path(job.output).resolve()
    runner = SentenceRunner(agent, traits, source, job.references(len(source)), job.settings, folder)
    journal = Journal(folder)
    os.chdir(agent_folder)
    return runner, journal


def _translate(
    runner: SentenceRunner,
    journal: Journal,
    slot: int,
    shared: SharedState,
    strict: bool,
    parent: int,
    todo: Sequence[int],
    retries: Sequence[int],
) -> None:
    """Translate until nothing is left, and write each line before the next sentence is taken."""
    heartbeat, lock = shared.row(slot), journal.lock
    n_disconnects = 0

    def append(index: int, line: bytes, failure: Failure | None) -> None:
        """Write a line. The caller holds the lock."""
        nonlocal n_disconnects
        if os.name == "posix" and os.getppid() != parent:
            _kill_group()  # another process may have resumed the run
        n_disconnects = n_disconnects + 1 if failure is not None and failure.kind == "connection" else 0
        if n_disconnects > 1:  # only the sentence in which the connection broke has failed
            raise LaggingError(f"{failure}; what is done is in the log\n  fix: start the server, then {RETRY}.")
        journal.append(line)
        shared.remove(slot, index)
        if strict and failure is not None:
            shared.stop()

    for index in retries:  # one at a time, to find the sentence that kills the worker
        line, failure = runner.translate(index, heartbeat)
        with lock.held():
            append(index, line, failure)
    if runner.settings.batch == 1:
        with lock.held():
            taken = shared.take(slot, todo)
        while taken is not None:
            line, failure = runner.translate(taken, heartbeat)
            with lock.held():
                append(taken, line, failure)
                taken = shared.take(slot, todo)
        return

    def indices() -> Iterator[int]:
        while True:
            with lock.held():
                index = shared.take(slot, todo)
            if index is None:
                return
            yield index

    for index, line, failure in runner.translate_many(indices(), heartbeat):
        with lock.held():
            append(index, line, failure)


def _exit_with_parent(pid: int, shared: SharedState, slot: int) -> None:
    """Exit when the parent process has ended, or when the agent has closed the file that shows it."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    with suppress(OSError):  # closed before the wait began
        wait([parent.sentinel])
    until = time.monotonic() + 1
    while os.name == "posix" and os.getppid() == pid:  # the files of a process are closed shortly before it is gone
        if time.monotonic() > until:
            shared.mark_closed(slot)
            break
        time.sleep(0.01)
    _kill_group()


def _kill_group() -> None:
    if os.name == "posix":
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _as_lagging_error(error: BaseException, what: str = "the agent could not be made") -> LaggingError:
    if isinstance(error, LaggingError):  # only the message: not every subclass can be pickled
        return UsageError(str(error)) if isinstance(error, UsageError) else LaggingError(str(error))
    return LaggingError(f"{what}: {failure_from(error).trace.rstrip()}")
