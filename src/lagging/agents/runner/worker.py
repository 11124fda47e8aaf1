# SPDX-License-Identifier: Apache-2.0
"""What a worker does, in a process of its own.

It makes the agent, takes a sentence, translates it, appends its line to the journal, and takes the next. Nothing passes
through anybody else, so that a sentence that is over is in the log. It ends when whoever started it has ended.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from lagging.agents.failures import Failure, raised
from lagging.agents.loading import beside
from lagging.agents.protocol import Traits
from lagging.agents.runner.jobs import Desk, Job
from lagging.agents.runner.journal import Journal
from lagging.agents.runner.locks import ClosedError, Descriptor
from lagging.agents.runner.shared import Board
from lagging.errors import LaggingError, UsageError
from lagging.errors.printable import printable

__all__ = ["ASKING", "Hello", "work"]

ASKING = (signal.SIGINT, signal.SIGTERM)
"""How somebody asks to stop."""


AGAIN = "give the same command again, with --retry-failed for the sentence that it broke off in"


@dataclass(frozen=True)
class Hello:
    """What a worker says when it has made the agent.

    Attributes:
        traits: what it is.
        modules: the files beside its own that it imported, by their hashes; of one that is served elsewhere, who it is.
    """

    traits: Traits
    modules: dict[str, str]


class _Handler(logging.StreamHandler[Any]):
    """Lines on standard error, with nothing in them that a terminal would obey."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def work(job: Job, worker: int, board: Board, wire: Connection, strict: bool) -> None:
    """The life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever watches decides when to stop
    if os.name == "posix":
        os.setsid()  # what an agent starts ends with it
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # what was meant for the others has come here too
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ASKING)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.stdout is not None:
        os.dup2(2, 1)  # standard output is for the scores: what an agent prints goes to standard error
    logging.getLogger("lagging").addHandler(_Handler())
    parent, home = os.getppid(), Path.cwd()
    threading.Thread(target=_leave_with_parent, args=(parent, board, worker), daemon=True).start()
    try:
        _live(job, worker, board, wire, strict, parent, home)
    except ClosedError:
        board.close(worker)
        _leave()


def _live(job: Job, worker: int, board: Board, wire: Connection, strict: bool, parent: int, home: Path) -> None:
    """Make the agent, hear what to do, do it, and say how that went.

    Raises:
        ClosedError: the agent has closed files that are ours.
    """
    kept = Descriptor(wire.fileno()) if os.name == "posix" else None

    def say(message: Hello | LaggingError | None) -> None:
        if kept is not None:
            kept.look()
        wire.send(message)

    try:
        agent = job.agent.make()
        file, identity = job.agent.file, getattr(agent, "identity", None)
        modules = beside(home / file) if file is not None else {"served": identity} if identity else {}
        hello = Hello(Traits.of(agent), modules)
    except BaseException as error:
        say(_broken(error))
        return
    say(hello)
    try:
        todo, again = wire.recv()
    except EOFError:  # nothing was left to do, or something else was wrong
        return
    try:
        desk, journal = _settle(job, agent, hello.traits, home)
        _serve(desk, journal, worker, board, strict, parent, todo, again)
    except ClosedError:
        raise
    except Exception as error:  # the disk is full, say: what is safe is safe
        say(_broken(error, "a worker could not go on"))
    else:
        say(None)


def _settle(job: Job, agent: Any, traits: Traits, home: Path) -> tuple[Desk, Journal]:
    """Open everything from where the run began; the agent may have gone to another folder, and stays there."""
    there = Path.cwd()
    os.chdir(home)
    source = job.settings.open(job.source, traits.source, check=False)
    folder = Path(job.output).resolve()
    desk = Desk(agent, traits, source, job.references(len(source)), job.settings, folder)
    journal = Journal(folder)
    os.chdir(there)
    return desk, journal


def _serve(
    desk: Desk,
    journal: Journal,
    worker: int,
    board: Board,
    strict: bool,
    parent: int,
    todo: Sequence[int],
    again: Sequence[int],
) -> None:
    """Translate until nothing is left, and write each line before the next sentence is taken."""
    pulse, lock = board.row(worker), journal.lock
    cut_off = 0

    def put(place: int, line: bytes, failure: Failure | None) -> None:
        """Write a line. The caller has the lock."""
        nonlocal cut_off
        if os.name == "posix" and os.getppid() != parent:
            _leave()  # somebody else may have taken the run over
        cut_off = cut_off + 1 if failure is not None and failure.kind == "connection" else 0
        if cut_off > 1:  # the sentence that it broke off in has failed; the others need not
            raise LaggingError(f"{failure}; what is done is in the log\n  fix: start the server, then {AGAIN}.")
        journal.append(line)
        board.remove(worker, place)
        if strict and failure is not None:
            board.stop()

    for place in again:  # those that were under way when a worker was lost: alone, so that it is known which it is
        line, failure = desk.translate(place, pulse)
        with lock.held():
            put(place, line, failure)
    if desk.settings.batch == 1:
        with lock.held():
            taken = board.give(worker, todo)
        while taken is not None:
            line, failure = desk.translate(taken, pulse)
            with lock.held():
                put(taken, line, failure)
                taken = board.give(worker, todo)
        return

    def places() -> Any:
        while True:
            with lock.held():
                place = board.give(worker, todo)
            if place is None:
                return
            yield place

    for place, line, failure in desk.translate_many(places(), pulse):
        with lock.held():
            put(place, line, failure)


def _leave_with_parent(pid: int, board: Board, worker: int) -> None:
    """End when whoever started this process has ended, or when the agent has closed what tells so."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    with suppress(OSError):  # closed before it was waited for
        wait([parent.sentinel])
    until = time.monotonic() + 1
    while os.name == "posix" and os.getppid() == pid:  # its files are closed a little before it is gone
        if time.monotonic() > until:
            board.close(worker)
            break
        time.sleep(0.01)
    _leave()


def _leave() -> None:
    if os.name == "posix":
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _broken(error: BaseException, what: str = "the agent could not be made") -> LaggingError:
    if isinstance(error, LaggingError):  # by its words: not all of them can go from one process to another
        return UsageError(str(error)) if isinstance(error, UsageError) else LaggingError(str(error))
    return LaggingError(f"{what}: {raised(error).trace.rstrip()}")
