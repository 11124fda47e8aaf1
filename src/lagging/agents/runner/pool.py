# SPDX-License-Identifier: Apache-2.0
"""The processes that translate, and how they are watched.

Whoever watches them ends a worker whose step takes too long (it may be stuck where no Python runs), writes down that
its sentence failed, and starts another; what a worker had under way that died of itself is tried again, alone.
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
from lagging.agents.runner.jobs import Desk, Job
from lagging.agents.runner.journal import Journal
from lagging.agents.runner.shared import Board
from lagging.agents.runner.worker import ASKING, Hello, work
from lagging.agents.sentence import NS
from lagging.errors import LaggingError

__all__ = ["Crew"]

TICK = 0.05
"""Seconds between two looks at the workers, if none of them ends."""

GRACE = 3.0
"""Seconds that a worker may take to end when all is done: what else an agent keeps going is ended."""


@dataclass
class _Hand:
    """A worker, as it is seen from outside.

    Attributes:
        process, wire: itself, and how one speaks with it.
        ready: whether it has been told what to do.
        again: the sentences that it is to try again, one after the other, before anything else.
        done: when it said that all is done; 0 before.
    """

    process: BaseProcess
    wire: Connection
    ready: bool = False
    again: Sequence[int] = ()
    done: float = 0.0


@dataclass
class Crew:
    """The workers of a run.

    Attributes:
        job: what they do.
        size: how many there are.
        strict: whether the first failure ends the run.
        width: how many sentences one of them may have under way.
        hello: what the first of them said.
        interrupted: whether somebody asked to stop.
    """

    job: Job
    size: int = 1
    strict: bool = False
    width: int = 1
    hello: Hello | None = None
    interrupted: bool = False
    _hands: dict[int, _Hand] = field(default_factory=dict)
    _strikes: Counter[int] = field(default_factory=Counter)
    _idle: int = 0
    _size: int = 0

    def __post_init__(self) -> None:
        """Prepare the memory that they share."""
        self._context = multiprocessing.get_context("spawn")
        self._board = Board(self.size, self.width)

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
        with _unasked():
            process.start()
            theirs.close()
            self._hands[worker] = _Hand(process, ours)

    def _hear(self, worker: int) -> Hello:
        hand = self._hands[worker]
        while not hand.wire.poll(TICK) and hand.process.exitcode is None:
            pass  # it may die, and leave behind somebody who keeps the wire open
        try:
            said = hand.wire.recv() if hand.wire.poll() else None
        except (EOFError, OSError):
            hand.process.join()
            said = None
        if isinstance(said, LaggingError):
            raise said
        if said is None:
            raise LaggingError(f"the agent's process died while the agent was being made ({self._end(worker, hand)})")
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
        with self._listening():
            try:
                self._go(0, todo)
                self._watch(todo, desk, journal, progress)
                while not self._board.stopped and (left := self._left(todo, journal)):
                    self._board.begin()  # whoever had these died just when they were given out
                    self._start(0)
                    self._watch(left, desk, journal, progress)
                    if len(self._left(todo, journal)) == len(left):
                        raise LaggingError("the agent's processes end before their work is done")
            except KeyboardInterrupt:
                self.interrupted = True
                with journal.lock.held():  # so that no line breaks off
                    self.dismiss()
                raise
        return not self._board.stopped

    def _watch(self, todo: Sequence[int], desk: Desk, journal: Journal, progress: Callable[[], None]) -> None:
        """Until all workers have ended; the first has been started."""
        for worker in range(1, min(self.size, len(todo))):
            self._start(worker)
        synced = time.monotonic()
        while self._hands:
            self._look(todo, desk, journal)
            if time.monotonic() - synced >= 0.5:
                journal.sync()
                synced = time.monotonic()
            progress()
        journal.sync()
        progress()

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Whoever asks to stop is heeded between two looks; whoever asks again, at once."""

        def ask(*_: object) -> None:
            if self.interrupted:
                raise KeyboardInterrupt
            self.interrupted = True
            self._board.stop()

        here = threading.current_thread() is threading.main_thread()
        heard = [number for number in ASKING if here and signal.getsignal(number) is signal.default_int_handler]
        for number in heard:
            signal.signal(number, ask)
        try:
            yield
        finally:
            for number in heard:
                signal.signal(number, signal.default_int_handler)

    def _left(self, todo: Sequence[int], journal: Journal) -> list[int]:
        """What has not been done."""
        with journal.lock.held():
            written = journal.written()
        return [place for place in todo if place not in written]

    def _go(self, worker: int, todo: Sequence[int], again: Sequence[int] = ()) -> None:
        hand = self._hands[worker]
        hand.ready, hand.again = True, again
        with suppress(BrokenPipeError, ConnectionResetError):  # it has died, which will be seen
            hand.wire.send((todo, again))

    def _look(self, todo: Sequence[int], desk: Desk, journal: Journal) -> None:
        """See which workers have something to say, have ended, or take too long."""
        watched: list[Any] = [hand.process.sentinel for hand in self._hands.values()]
        watched += [hand.wire for hand in self._hands.values() if not hand.done]
        wait(watched, TICK)
        for worker, hand in list(self._hands.items()):
            if not hand.done and hand.wire.poll():
                self._listen(worker, hand, todo)
            if hand.done and time.monotonic() - hand.done > GRACE:
                _kill(hand.process)
            if hand.process.exitcode is not None:
                _kill(hand.process)  # what it has started has not ended yet
                closed = self._board.is_closed(worker)
                why = Failure("closed-files") if closed else Failure("died", _ended(hand.process.exitcode))
                self._lost(worker, desk, journal, why, todo)
            elif (late := self._late(worker)) is not None:
                with journal.lock.held():  # so that it is not amid a line, and has not just been done
                    if self._late(worker) is None:
                        continue
                    _kill(hand.process)
                self._lost(worker, desk, journal, late, todo)

    def _listen(self, worker: int, hand: _Hand, todo: Sequence[int]) -> None:
        try:
            said = hand.wire.recv()
        except (EOFError, OSError):  # it is about to end
            said = None
        if isinstance(said, LaggingError):
            self.dismiss()
            raise said
        if said is None:
            hand.done = time.monotonic()
        else:
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
        code, end = hand.process.exitcode, self._end(worker, hand)
        hand.wire.close()
        places = self._board.under_way(worker)
        self._board.clear(worker)
        if not places and (hand.done or code == 0):
            return
        if not (places and hand.ready):
            self._idle, self._size = self._idle + 1 if journal.size() == self._size else 1, journal.size()
        if self._idle > 3:
            when = "not over a sentence" if hand.ready else "while the agent was being made again"
            raise LaggingError(f"the agent's process died, {when} ({end})")
        with journal.lock.held():
            written = journal.written()
        suspects = ([place for place in hand.again if place in places][:1] or places) if hand.ready else []
        again = []
        for place in places:
            if place in written:  # it died after the last stroke
                continue
            self._strikes[place] += place in suspects
            if place in suspects and (self._strikes[place] > 1 or (why.kind != "died" and len(suspects) == 1)):
                with journal.lock.held():
                    journal.append(desk.fail(place, why))
                if self.strict:
                    self._board.stop()
            else:
                again.append(place)
        if again or self._board.has_more(todo):
            self._start(worker)
            for place in again:
                self._board.add(worker, place)

    def _end(self, worker: int, hand: _Hand) -> str:
        """How a worker ended, in words."""
        return FAILURES["closed-files"] if self._board.is_closed(worker) else _ended(hand.process.exitcode)

    def dismiss(self) -> None:
        """End them all, wherever they are."""
        for hand in self._hands.values():
            _kill(hand.process)
            hand.wire.close()
        self._hands.clear()


@contextmanager
def _unasked() -> Iterator[None]:
    """Whoever asks to stop is heard later; a process that is started meanwhile does not hear it, until it will."""
    if os.name != "posix":
        yield
        return
    resource_tracker.ensure_running()  # which would unblock them
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ASKING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
