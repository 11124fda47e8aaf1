# SPDX-License-Identifier: Apache-2.0
"""A pool of agents, each taken for a sentence and returned; clients are served in the order in which they wait."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any, TypeVar

from lagging.agents.failures import failure_from
from lagging.agents.protocol import Traits, as_agent
from lagging.errors import LaggingError, UsageError, counted

__all__ = ["AgentThread", "Pool"]

_T = TypeVar("_T")

POLL_SECONDS = 0.5
"""Seconds between two checks whether the client still waits."""


class AgentThread:
    """An agent with a thread of its own, in which it is made and called: some libraries keep settings per thread.

    Attributes:
        traits: what it declares.
        began: when its current call began; None if there is none.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="agent")
        self.began: float | None = None
        try:
            self.agent = self.call(lambda: _make_agent(make))
            self.traits = Traits.of(self.agent)
            if not callable(getattr(self.agent, "policy", None)):
                raise UsageError(
                    "an agent that takes many sentences at once, with `policies`, cannot be served: every client has "
                    "its own sentence\n  fix: give it `policy(state)`, or run it where it is, with `lagging run`."
                )
        except BaseException:
            self.close()
            raise

    def call(self, function: Callable[[], _T]) -> _T:
        """Call a function in the thread, and wait for the result."""
        self.began = time.monotonic()
        try:
            return self._thread.submit(function).result()
        finally:
            self.began = None

    def close(self) -> None:
        """End the thread after its current call."""
        self._thread.shutdown(wait=False)


def _make_agent(make: Callable[[], Any]) -> Any:
    try:
        return as_agent(make())
    except LaggingError:
        raise
    except (Exception, SystemExit) as error:
        raise LaggingError(f"the agent could not be made: {failure_from(error).trace.rstrip()}") from None


class Pool:
    """A pool of equal agents.

    Attributes:
        agents: all of them.
        taken: how often an agent was taken.

    Example:
        >>> pool = Pool([AgentThread(lambda: str.upper)])
        >>> one = pool.take(0)
        >>> pool.take(0) is None
        True
        >>> pool.give(one)
        >>> pool.close()
    """

    def __init__(self, agents: Sequence[AgentThread]) -> None:
        self.agents = agents
        self.taken = 0
        self._closed = False
        self._free = deque(agents)
        self._waiting: deque[Future[AgentThread]] = deque()
        self._lock = threading.Lock()

    def take(self, timeout: float, gone: Callable[[], bool] = lambda: False) -> AgentThread | None:
        """Take an agent, when one is free.

        Args:
            timeout: seconds to wait for one.
            gone: whether the client that waits has gone away; it is called now and then.

        Returns:
            None after the timeout, if the pool was closed, or if the client has gone away.
        """
        turn: Future[AgentThread] = Future()
        with self._lock:
            if self._closed:
                return None
            if self._free:
                self.taken += 1
                return self._free.popleft()
            self._waiting.append(turn)
        until = time.monotonic() + timeout
        while (left := until - time.monotonic()) > 0 and not gone():
            try:
                return turn.result(min(left, POLL_SECONDS))
            except CancelledError:
                return None
            except TimeoutError:
                continue
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
                return None
        try:
            return turn.result()  # it was assigned at the last moment
        except CancelledError:
            return None

    def give(self, agent: AgentThread) -> None:
        """Return an agent; the client that has waited longest gets it."""
        with self._lock:
            if self._waiting:
                self.taken += 1
                self._waiting.popleft().set_result(agent)
            else:
                self._free.append(agent)

    def busy(self) -> str:
        """What the agents are doing, in words."""
        since = [began for agent in self.agents if (began := agent.began) is not None]
        steps = f", one of them in a step for {time.monotonic() - min(since):.0f} s" if since else ""
        return f"{counted(len(self.agents), 'agent')}, all taken{steps}"

    def stop(self) -> None:
        """Hand out no more agents, also to clients that wait."""
        with self._lock:
            self._closed = True
            while self._waiting:
                self._waiting.popleft().cancel()

    def close(self) -> None:
        """End the threads after their current calls."""
        self.stop()
        for agent in self.agents:
            agent.close()
