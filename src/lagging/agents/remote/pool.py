# SPDX-License-Identifier: Apache-2.0
"""Agents that are taken for a sentence and given back; who waits longest is served first."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any, TypeVar

from lagging.agents.failures import raised
from lagging.agents.protocol import Traits, as_agent
from lagging.errors import LaggingError, UsageError, counted

__all__ = ["Housed", "Pool"]

_T = TypeVar("_T")

LOOK = 0.5
"""Seconds between two looks at whether somebody still waits."""


class Housed:
    """An agent with a thread of its own, in which it is made and asked: much is set per thread, such as gradients.

    Attributes:
        traits: what it declares of itself.
        began: when what it is doing began; None if it does nothing.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="agent")
        self.began: float | None = None
        try:
            self.agent = self.do(lambda: _made(make))
            self.traits = Traits.of(self.agent)
            if not callable(getattr(self.agent, "policy", None)):
                raise UsageError(
                    "an agent that takes many sentences at once, with `policies`, cannot be served: every client has "
                    "its own sentence\n  fix: give it `policy(state)`, or run it where it is, with `lagging run`."
                )
        except BaseException:
            self.close()
            raise

    def do(self, what: Callable[[], _T]) -> _T:
        """Have something done in its thread, and wait for it."""
        self.began = time.monotonic()
        try:
            return self._thread.submit(what).result()
        finally:
            self.began = None

    def close(self) -> None:
        """End its thread, when it has nothing more to do."""
        self._thread.shutdown(wait=False)


def _made(make: Callable[[], Any]) -> Any:
    try:
        return as_agent(make())
    except LaggingError:
        raise
    except (Exception, SystemExit) as error:
        raise LaggingError(f"the agent could not be made: {raised(error).trace.rstrip()}") from None


class Pool:
    """Some agents, all alike.

    Attributes:
        agents: all of them.
        taken: how often one of them was.

    Example:
        >>> pool = Pool([Housed(lambda: str.upper)])
        >>> one = pool.take(0)
        >>> pool.take(0) is None
        True
        >>> pool.give(one)
        >>> pool.close()
    """

    def __init__(self, agents: Sequence[Housed]) -> None:
        self.agents = agents
        self.taken = 0
        self._closed = False
        self._free = deque(agents)
        self._waiting: deque[Future[Housed]] = deque()
        self._lock = threading.Lock()

    def take(self, timeout: float, gone: Callable[[], bool] = lambda: False) -> Housed | None:
        """An agent, when there is one.

        Args:
            timeout: seconds to wait for one.
            gone: whether whoever wants it has gone away; it is asked now and then.

        Returns:
            None if there is none for so long, or will be none any more, or nobody wants it any more.
        """
        turn: Future[Housed] = Future()
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
                return turn.result(min(left, LOOK))
            except CancelledError:
                return None
            except TimeoutError:
                continue
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
                return None
        try:
            return turn.result()  # it came at the last moment
        except CancelledError:
            return None

    def give(self, agent: Housed) -> None:
        """Give it back: it is the next one's, if somebody waits."""
        with self._lock:
            if self._waiting:
                self.taken += 1
                self._waiting.popleft().set_result(agent)
            else:
                self._free.append(agent)

    def busy(self) -> str:
        """What they are all doing."""
        since = [began for agent in self.agents if (began := agent.began) is not None]
        steps = f", one of them in a step for {time.monotonic() - min(since):.0f} s" if since else ""
        return f"{counted(len(self.agents), 'agent')}, all taken{steps}"

    def dismiss(self) -> None:
        """Give none out any more, also to those who wait."""
        with self._lock:
            self._closed = True
            while self._waiting:
                self._waiting.popleft().cancel()

    def close(self) -> None:
        """End their threads, when they have nothing more to do."""
        self.dismiss()
        for agent in self.agents:
            agent.close()
