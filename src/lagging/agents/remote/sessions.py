# SPDX-License-Identifier: Apache-2.0
"""A client of a server, from the greeting until it is gone, and the sentences it asks for."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from sys import getsizeof
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from lagging.agents.failures import Failure, raised, shortened
from lagging.agents.protocol import State, Timed
from lagging.agents.remote.messages import (
    BUSY,
    CUT_OFF,
    NONSENSE,
    SAMPLES,
    Answered,
    Begin,
    End,
    Failed,
    FromClient,
    Garbage,
    Ready,
    Step,
    decode,
    drain,
    encode,
    is_finished,
    pack,
    samples_of,
)
from lagging.agents.remote.pool import Housed, Pool
from lagging.agents.sources import Tape
from lagging.errors import UsageError, counted

if TYPE_CHECKING:
    from websockets.sync.server import ServerConnection

__all__ = ["Bounds", "Session", "Tell", "hang_up", "who"]

Tell: TypeAlias = Callable[[str, bool], None]

_DECODER = msgspec.json.Decoder(FromClient)
MiB = 1 << 20
QUEUED = 4
"""Messages that are held of a client at once: two in the queue, one that comes, and one that is read."""
GROWTH = 2
"""A recording that grows is there twice for a moment."""
USUAL = 256 * MiB
SLOT = 24
"""Bytes that a token takes beside itself: its place in a list, and up to the next size that there is."""
PACE = 2.0
"""Seconds that a token of text may last, where it comes at the pace of its speaker."""


@dataclass(frozen=True)
class Bounds:
    """How much clients may ask for.

    Attributes:
        message: bytes of one message.
        sentence: bytes that are held of a sentence: of its source, its target and its reference; if not given, 256 MiB,
            or less where `memory` has no room for so many from all agents.
        memory: bytes that are held for all clients together.
        connections: how many clients there may be at once; for another one, who has been idle longest has to go.
        idle: seconds that a client may be silent, or not take what it is sent; amid a sentence, in all, beside the time
            that its source lasts.
        wait: seconds that a client waits for an agent when all are taken.
        deadline: seconds that a sentence may take.
    """

    message: int = MiB
    sentence: int | None = None
    memory: int = 768 * MiB
    connections: int = 32
    idle: float = 60.0
    wait: float = 60.0
    deadline: float = 3600.0

    def of_sentence(self, agents: int) -> int:
        """Bytes that may be held of a sentence, where so many agents have one each.

        Raises:
            UsageError: there is no room for so much.

        Example:
            >>> Bounds().of_sentence(4) // MiB
            80
        """
        queued = self.connections * QUEUED * self.message
        room = max(self.memory - queued, 0) // (GROWTH * agents)
        least = self.message if self.sentence is None else self.sentence
        if least > room:
            need = -(-(queued + GROWTH * agents * least) // MiB)
            clients = counted(self.connections, "client")
            raise UsageError(
                f"{counted(agents, 'agent')} with sentences of {_mebi(least)} and {clients} with messages of "
                f"{_mebi(self.message)} need {need} MiB, but it may hold {self.memory // MiB} MiB\n"
                "  fix: a larger --max-memory, or fewer --agents or --max-connections, or a smaller --max-sentence or "
                "--max-message."
            )
        return min(USUAL, room) if self.sentence is None else self.sentence


def _mebi(count: int) -> str:
    return f"{count / MiB:g} MiB"


class Cut(Exception):
    """A client has to go."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


class Left(Exception):
    """A client has hung up while nobody listened to it."""


class Session:
    """A client.

    Attributes:
        idle_since: when it fell silent, if it has no sentence under way and waits for no agent.

    Args:
        connection: to it.
        hello: the greeting.
        pool: the agents.
        bounds: how much it may ask for.
        tell: called with a line when something happens, and whether it is something wrong.
    """

    def __init__(self, connection: ServerConnection, hello: bytes, pool: Pool, bounds: Bounds, tell: Tell) -> None:
        self._connection, self._hello, self._pool, self._bounds, self._tell = connection, hello, pool, bounds, tell
        self._most = bounds.of_sentence(len(pool.agents))
        self._sentence: Asked | None = None
        self._amid = ""
        self._waited = 0.0
        self._until = math.inf
        self._who = who(connection)
        self._sending: float | None = None
        self._lock, self._leaving = threading.Lock(), False
        self.idle_since: float | None = None

    def run(self) -> None:
        """Serve it, until it hangs up or has to go. Whatever happens, no agent stays with it."""
        self._tell(f"{self._who}: connected", False)
        if (cut := self._served()) is not None:
            self._cut(cut.code, cut.reason)

    def _served(self) -> Cut | None:
        """Serve it; why it has to go, if it does. What was held of a sentence is let go by then."""
        try:
            self._serve()
        except import_module("websockets.exceptions").ConnectionClosed as closed:
            self._tell(f"{self._who}: gone{self._amid}{_reason(closed)}", bool(self._amid or _reason(closed)))
        except Left:
            self._tell(f"{self._who}: gone{self._amid}", bool(self._amid))
        except Garbage as error:
            return Cut(NONSENSE, str(error))
        except Cut as cut:
            return Cut(cut.code, cut.reason)  # without the traceback, which keeps the sentence
        return None

    def watch(self) -> None:
        """From another thread: end it, if it does not take what it is sent for longer than it may be silent."""
        began, now = self._sending, time.monotonic()
        if began is not None and (now - began > self._bounds.idle or now > self._until):
            hang_up(self._connection)

    def make_room(self) -> bool:
        """From another thread: end it, because it is idle and others have come, if it still is; whether it was."""
        with self._lock:
            if self.idle_since is None:
                return False
            self._leaving = True  # what it asks for from now on is not begun
        threading.Thread(target=self._cut, args=(CUT_OFF, "idle, and another client has come"), daemon=True).start()
        return True

    def end(self) -> None:
        """From another thread: hang up, because the server goes."""
        self._connection.close(1001)

    def _serve(self) -> None:
        self._send(self._hello, text=True)
        message = self._hear()
        while True:
            if isinstance(message, Begin):
                with self._taken() as agent:
                    self._sentence = Asked(agent, message, self._most)
                    over = self._translate(self._sentence)
                message = over or self._hear()
            elif isinstance(message, End):
                message = self._hear()
            else:
                raise Garbage(f"{'a step' if isinstance(message, Step) else 'samples'} outside a sentence")

    def _translate(self, sentence: Asked) -> FromClient | None:
        """A sentence, to its end; or to a message that is not about it any more."""
        self._send(sentence.begin(), text=True)
        while not sentence.over:
            message = self._hear()
            if isinstance(message, Step):
                reply, samples = sentence.step(message)
                for at in range(0, len(samples), MiB):
                    self._send(samples[at : at + MiB])
                self._send(reply, text=True)
            elif isinstance(message, (Begin, End)):
                return message
            else:
                sentence.hear(message)
        return None

    @contextmanager
    def _taken(self) -> Iterator[Housed]:
        """An agent, for a sentence."""
        self._amid = " while it waited for an agent"
        agent = self._pool.take(self._bounds.wait, self._is_gone)
        if agent is None and self._is_gone():
            raise Left
        if agent is None:
            raise Cut(BUSY, f"no agent was free for {self._bounds.wait:g} s: {self._pool.busy()}")
        self._amid, self._waited, self._until = " amid a sentence", 0.0, time.monotonic() + self._bounds.deadline
        try:
            yield agent
        finally:
            self._sentence = None  # what was held of it
            self._pool.give(agent)
        self._amid, self._until = "", math.inf

    def _is_gone(self) -> bool:
        return self._connection.state.name == "CLOSED"

    def _send(self, data: bytes, text: bool = False) -> None:
        self._sending = time.monotonic()
        self._connection.send(data, text=text)
        self._sending = None

    def _hear(self) -> Any:
        """The next message, or samples."""
        begin = time.monotonic()
        seconds, reason = self._patience(begin)
        self.idle_since = begin if self._sentence is None else None
        try:
            data = self._connection.recv(timeout=max(seconds, 0))
        except TimeoutError:
            raise Cut(CUT_OFF, reason) from None
        finally:
            with self._lock:
                self.idle_since = None
        if self._leaving:
            raise Left
        self._waited += time.monotonic() - begin
        return samples_of(data) if isinstance(data, bytes) else decode(data, _DECODER)

    def _patience(self, now: float) -> tuple[float, str]:
        """Seconds to wait for a message, and what to say when they are over."""
        idle, deadline = self._bounds.idle, self._bounds.deadline
        limits = [(idle, f"silent for {idle:g} s{self._amid}")]
        if self._sentence is not None:
            allowed = idle + self._sentence.lasts
            in_all = f"the sentence has waited for its client for {allowed:g} s in all (--idle)"
            limits += [(allowed - self._waited, in_all)]
            limits += [(self._until - now, f"a sentence may take {deadline:g} s (--deadline)")]
        return min(limits, key=lambda limit: limit[0])

    def _cut(self, code: int, reason: str) -> None:
        self._tell(f"{self._who}: cut off: {reason}", True)
        self._sending = time.monotonic()
        self._connection.close(code, reason.encode()[:120].decode("utf-8", "ignore"))  # RFC 6455 has room for 123


class Asked:
    """A sentence that an agent is asked about.

    Attributes:
        over: whether there is nothing more to ask.
        lasts: seconds that the source lasts so far, at the pace of its speaker.

    Args:
        agent: which is asked.
        begin: what the client says of the sentence.
        most: bytes that may be held of it.
    """

    def __init__(self, agent: Housed, begin: Begin, most: int) -> None:
        self._agent, self._traits = agent, agent.traits
        self._most, self._held = most, 0
        self._speech = self._traits.source == "speech"
        if self._speech != (begin.sample_rate > 0):
            wrong = f"this agent takes {self._traits.source}, but the sentence has a sample rate of {begin.sample_rate}"
            raise Garbage(wrong)
        self.over = False
        self.lasts = 0.0
        self._tape = Tape(most // SAMPLES.itemsize)
        self._idle = 0
        self._state = State(
            self._tape.heard if self._speech else [], begin.sentence, begin.sample_rate, begin.reference
        )
        self._state.source_length = begin.source_length
        self._target = self._state.target
        self._hold(getsizeof(begin.reference))

    def _hold(self, size: int) -> None:
        """Count what is held of the sentence, before it is.

        Raises:
            Cut: it is too much.
        """
        self._held += size
        if self._held > self._most:
            raise Cut(CUT_OFF, f"a sentence may hold {self._most} bytes (--max-sentence)")

    def begin(self) -> bytes:
        """Have the agent reset; what to tell the client."""
        return self._agent.do(self._reset)

    def hear(self, samples: Any) -> None:
        """Speech that has been read."""
        if not self._speech:
            raise Garbage("samples, but this agent takes text")
        if self._state.finished:
            raise Garbage("samples after the end of the source")
        self._hold(samples.nbytes)
        self._tape.add(samples)
        self.lasts += len(samples) / self._state.sample_rate

    def step(self, news: Step) -> tuple[bytes, bytes]:
        """Ask the agent; what to tell the client, and the samples that go before."""
        state, target = self._state, self._target
        if news.source and self._speech:
            raise Garbage("tokens, but this agent takes speech")
        if news.source and state.finished:
            raise Garbage("tokens after the end of the source")
        if (news.erase or news.target) and self._traits.target == "speech":
            raise Garbage("a target of tokens, but this agent writes speech")
        if news.erase > len(target):
            raise Garbage(f"{news.erase} tokens of the target are erased, where {len(target)} stood")
        kept = len(target) - news.erase
        self._hold(-_size(target[kept:]))
        self._hold(_size(news.source) + _size(news.target))
        if self._speech:
            state.source = self._tape.heard
        else:
            state.source += news.source
            self.lasts += PACE * len(news.source)
        state.finished = state.finished or news.finished
        del target[kept:]
        target += news.target
        return self._agent.do(self._ask)

    # ---- in the agent's thread ----------------------------------------------------------------------------------

    def _reset(self) -> bytes:
        try:
            if (reset := getattr(self._agent.agent, "reset", None)) is not None:
                reset()
        except (Exception, SystemExit) as error:
            return self._fail(error)
        return encode(Ready())

    def _ask(self) -> tuple[bytes, bytes]:
        state, target = self._state, self._target
        stood = len(target)
        try:
            begin = time.perf_counter_ns()
            answer = drain(self._agent.agent.policy(state))
            seconds = (time.perf_counter_ns() - begin) / 1e9
            if isinstance(answer, Timed):
                seconds, answer = answer.seconds, answer.answer
            if state.target is not target or len(target) != stood:
                raise Failure("changed-state", "`state.target` is for reading; what is to be written is returned")
            actions, pieces = pack(answer, self._traits.target == "speech")
            reply = encode(Answered(seconds, actions))
        except (Exception, SystemExit) as error:  # whatever an agent raises is the agent's, as where it runs
            return self._fail(error), b""
        self._hold(sum(piece.nbytes for piece in pieces))
        target += [piece for piece in pieces if len(piece)]
        self._idle = self._idle + 1 if state.finished and not actions else 0
        self.over = is_finished(actions) or self._idle > self._traits.patience
        return reply, b"".join(piece.astype(SAMPLES).tobytes() for piece in pieces)

    def _fail(self, error: BaseException) -> bytes:
        self.over = True
        failure = raised(error)
        kind: Any = failure.kind
        return encode(Failed(kind, _sendable(failure.detail), _sendable(failure.trace)))


def _size(tokens: list[Any]) -> int:
    """Bytes that tokens take in a list."""
    return sum(map(getsizeof, tokens)) + SLOT * len(tokens)


def _sendable(text: str) -> str:
    """What of a text can be sent."""
    return shortened(text).encode("utf-8", "backslashreplace").decode()


def hang_up(connection: ServerConnection) -> None:
    """End a connection without a word; whoever reads from it or writes to it, notices."""
    with suppress(OSError):  # it is gone already
        connection.socket.shutdown(socket.SHUT_RDWR)


def who(connection: ServerConnection) -> str:
    """A client, by its address."""
    try:
        host, port = connection.remote_address[:2]
    except OSError:
        return "somebody"
    return f"{host}:{port}"


def _reason(closed: Any) -> str:
    """What of a client's could not be taken, if that is why it is gone."""
    frame = None if closed.rcvd_then_sent else closed.sent
    return f" ({frame.code} {frame.reason})" if frame is not None and frame.reason else ""
