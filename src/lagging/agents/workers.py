# SPDX-License-Identifier: Apache-2.0
"""The processes that translate, and how they are watched.

A worker makes the agent, takes a sentence, translates it, appends its line to the journal, and takes the next. Nothing
passes through anybody else, so that a sentence that is over is in the log. Whoever watches them ends a worker whose
step takes too long (it may be stuck where no Python runs), writes down that its sentence failed, and starts another.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from lagging.agents.board import Board
from lagging.agents.failures import Failure, raised
from lagging.agents.jobs import Desk, Job
from lagging.agents.journal import Journal
from lagging.agents.loading import beside
from lagging.agents.protocol import Traits
from lagging.agents.sentence import NS
from lagging.errors import LaggingError

__all__ = ["Crew", "Hello"]

TICK = 0.05
"""Seconds between two looks at the workers, if none of them ends."""


@dataclass(frozen=True)
class Hello:
    """What a worker says when it has made the agent: what it is, and the files beside it that it imported."""

    traits: Traits
    modules: dict[str, str]


# ---- in a worker ------------------------------------------------------------------------------------------------


def work(job: Job, worker: int, board: Board, wire: Connection, strict: bool) -> None:
    """The life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever watches decides when to stop
    if os.name == "posix":
        os.setsid()  # what an agent starts ends with it
    if sys.stdout is not None:
        os.dup2(2, 1)  # standard output is for the scores: what an agent prints goes to standard error
    parent = os.getppid()
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    try:
        agent = job.agent.make()
        hello = Hello(Traits.of(agent), beside(job.agent.file) if job.agent.file is not None else {})
    except (Exception, SystemExit) as error:
        wire.send(_broken(error))
        return
    wire.send(hello)
    try:
        todo, again = wire.recv()
    except EOFError:  # nothing was left to do, or something else was wrong
        return
    try:
        _serve(job, agent, hello.traits, worker, board, strict, parent, todo, again)
    except Exception as error:  # the disk is full, say: what is safe is safe
        board.stop()
        wire.send(_broken(error, "a worker could not go on"))


def _serve(
    job: Job,
    agent: Any,
    traits: Traits,
    worker: int,
    board: Board,
    strict: bool,
    parent: int,
    todo: Sequence[int],
    again: Sequence[int],
) -> None:
    source = job.settings.open(job.source, traits.source, check=False)
    desk = Desk(agent, traits, source, job.references(len(source)), job.settings, Path(job.output))
    journal = Journal(Path(job.output))

    def put(place: int, line: bytes, failure: Failure | None) -> None:
        """Write a line. The caller has the lock."""
        if os.name == "posix" and os.getppid() != parent:
            _leave()  # somebody else may have taken the run over
        journal.append(line)
        board.remove(worker, place)
        if strict and failure is not None:
            board.stop()

    _translate(desk, journal, board, worker, todo, again, put)


def _translate(
    desk: Desk,
    journal: Journal,
    board: Board,
    worker: int,
    todo: Sequence[int],
    again: Sequence[int],
    put: Callable[[int, bytes, Failure | None], None],
) -> None:
    pulse, lock = board.row(worker), journal.lock
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


def _leave_with_parent() -> None:
    """End when whoever started this process has ended."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    _leave()


def _leave() -> None:
    if os.name == "posix":
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _broken(error: BaseException, what: str = "the agent could not be made") -> LaggingError:
    if isinstance(error, LaggingError):
        return error
    return LaggingError(f"{what}: {raised(error).trace.rstrip()}")


# ---- whoever watches --------------------------------------------------------------------------------------------


@dataclass
class _Hand:
    """A worker, as it is seen from outside."""

    process: BaseProcess
    wire: Connection
    ready: bool = False


@dataclass
class Crew:
    """The workers of a run.

    Attributes:
        job: what they do.
        size: how many there are.
        strict: whether the first failure ends the run.
        hello: what the first of them said.
        interrupted: whether somebody asked to stop.
    """

    job: Job
    size: int = 1
    strict: bool = False
    hello: Hello | None = None
    interrupted: bool = False
    _hands: dict[int, _Hand] = field(default_factory=dict)
    _strikes: Counter[int] = field(default_factory=Counter)
    _idle: int = 0

    def __post_init__(self) -> None:
        """Prepare the memory that they share."""
        self._context = multiprocessing.get_context("spawn")
        self._board = Board(self.size, self.job.settings.batch)

    def meet(self) -> Hello:
        """Start the first worker, and hear what the agent is.

        Raises:
            LaggingError: it cannot be made.
        """
        self._start(0)
        self.hello = self._hear(0)
        return self.hello

    def _start(self, worker: int) -> None:
        ours, theirs = self._context.Pipe()
        args = (self.job, worker, self._board, theirs, self.strict)
        process = self._context.Process(target=work, args=args, name=f"lagging-{worker}")
        process.start()
        theirs.close()
        self._hands[worker] = _Hand(process, ours)

    def _hear(self, worker: int) -> Hello:
        hand = self._hands[worker]
        try:
            said = hand.wire.recv()
        except (EOFError, OSError):
            hand.process.join()
            code = hand.process.exitcode
            raise LaggingError(f"the agent's process died while the agent was being made ({_ended(code)})") from None
        if isinstance(said, LaggingError):
            raise said
        assert isinstance(said, Hello)
        return said

    def run(self, todo: Sequence[int], desk: Desk, journal: Journal, progress: Callable[[], None]) -> bool:
        """Have all of it done; whether it was, or somebody said to stop.

        Args:
            todo: the sentences.
            desk: for the lines of sentences whose worker was lost.
            journal: where the lines go.
            progress: called now and then.

        Raises:
            LaggingError: a worker cannot go on.
            KeyboardInterrupt: somebody asked twice to stop.
        """
        self._go(0, todo)
        for worker in range(1, min(self.size, len(todo))):
            self._start(worker)
        synced = time.monotonic()
        while self._hands:
            try:
                self._look(todo, desk, journal)
                if time.monotonic() - synced >= 0.5:
                    journal.sync()
                    synced = time.monotonic()
                progress()
            except KeyboardInterrupt:
                if self.interrupted:
                    with journal.lock.held():
                        self.dismiss()
                    raise
                self.interrupted = True
                self._board.stop()
        journal.sync()
        progress()
        return not self._board.stopped

    def _go(self, worker: int, todo: Sequence[int], again: Sequence[int] = ()) -> None:
        hand = self._hands[worker]
        hand.ready = True
        with suppress(BrokenPipeError):  # it has died, which will be seen
            hand.wire.send((todo, again))

    def _look(self, todo: Sequence[int], desk: Desk, journal: Journal) -> None:
        """See which workers have something to say, have ended, or take too long."""
        watched: list[Any] = [hand.process.sentinel for hand in self._hands.values()]
        watched += [hand.wire for hand in self._hands.values()]
        wait(watched, TICK)
        for worker, hand in list(self._hands.items()):
            if hand.wire.poll():
                self._listen(worker, hand, todo)
            if hand.process.exitcode is not None:
                self._lost(worker, desk, journal, Failure("died", _ended(hand.process.exitcode)), todo)
            elif (late := self._late(worker)) is not None:
                with journal.lock.held():  # so that it is not amid a line, and has not just been done
                    if self._late(worker) is None:
                        continue
                    _kill(hand.process)
                self._lost(worker, desk, journal, late, todo)

    def _listen(self, worker: int, hand: _Hand, todo: Sequence[int]) -> None:
        try:
            said = hand.wire.recv()
        except (EOFError, OSError):
            hand.process.join()  # it has ended, or is about to
            return
        if isinstance(said, LaggingError):
            self.dismiss()
            raise said
        self._go(worker, todo, self._board.under_way(worker))

    def _late(self, worker: int) -> Failure | None:
        began, limits = self._board.began(worker), self.job.settings.limits
        if not began:
            return None
        took = (time.perf_counter_ns() - began) / NS
        if took > limits.step:
            return Failure("step-limit", f"more than {limits.step:g} s")
        return Failure("sentence-limit", f"more than {limits.sentence:g} s") if took > limits.sentence else None

    def _lost(self, worker: int, desk: Desk, journal: Journal, why: Failure, todo: Sequence[int]) -> None:
        """A worker has ended: it has done all, or what it had under way failed, or is tried again by another."""
        hand = self._hands.pop(worker)
        code = hand.process.exitcode
        hand.wire.close()
        places = self._board.under_way(worker)
        self._board.clear(worker)
        if not places and code == 0:
            return
        if not places:
            self._idle += 1
        if self._idle > 3 or not (places or hand.ready):
            raise LaggingError(f"the agent's process died, and not over a sentence ({_ended(code)})")
        again = []
        with journal.lock.held():
            written = journal.look().at if places else {}
        for place in places:
            if place in written:  # it died after the last stroke
                continue
            self._strikes[place] += 1
            if self._strikes[place] > 1 or (why.kind != "died" and len(places) == 1):
                with journal.lock.held():
                    journal.append(desk.fail(place, why))
                if self.strict:
                    self._board.stop()
            else:
                again.append(place)
        if again or not self._board.stopped:
            self._start(worker)
            for place in again:
                self._board.add(worker, place)

    def dismiss(self) -> None:
        """End them all, wherever they are."""
        for hand in self._hands.values():
            _kill(hand.process)
            hand.wire.close()
        self._hands.clear()


def _kill(process: BaseProcess) -> None:
    """End a worker, and whatever it has started."""
    if os.name == "posix" and process.pid is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


def _ended(code: int | None) -> str:
    """How a process ended, in words."""
    if code is None or code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"
