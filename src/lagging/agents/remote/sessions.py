# SPDX-License-Identifier: Apache-2.0
"""A client of a server, from the greeting until it is gone, and the sentences it asks for."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
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

if TYPE_CHECKING:
    from websockets.sync.server import ServerConnection

__all__ = ["Bounds", "Session", "Tell"]

Tell: TypeAlias = Callable[[str, bool], None]

_DECODER = msgspec.json.Decoder(FromClient)
MiB = 1 << 20


@dataclass(frozen=True)
class Bounds:
    """How much a client may ask for.

    Attributes:
        message: bytes of one message.
        sentence: bytes of all messages about a sentence.
        connections: how many clients there may be at once.
        idle: seconds that a client may be silent, or not take what it is sent.
        wait: seconds that a client waits for an agent when all are taken.
    """

    message: int = MiB
    sentence: int = 256 * MiB
    connections: int = 32
    idle: float = 60.0
    wait: float = 60.0


class Cut(Exception):
    """A client has to go."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Session:
    """A client.

    Args:
        connection: to it.
        hello: the greeting.
        pool: the agents.
        bounds: how much it may ask for.
        tell: called with a line when something happens, and whether it is something wrong.
    """

    def __init__(self, connection: ServerConnection, hello: bytes, pool: Pool, bounds: Bounds, tell: Tell) -> None:
        self._connection, self._hello, self._pool, self._bounds, self._tell = connection, hello, pool, bounds, tell
        self._left = bounds.sentence
        self._amid = ""
        self._who = who(connection)
        self._sending: float | None = None

    def run(self) -> None:
        """Serve it, until it hangs up or has to go. Whatever happens, no agent stays with it."""
        self._tell(f"{self._who}: connected", False)
        try:
            self._serve()
        except import_module("websockets.exceptions").ConnectionClosed as closed:
            self._tell(f"{self._who}: gone{self._amid}{_reason(closed)}", bool(self._amid or _reason(closed)))
        except TimeoutError:
            self._cut(CUT_OFF, f"silent for {self._bounds.idle:g} s{self._amid}")
        except Garbage as error:
            self._cut(NONSENSE, str(error))
        except Cut as cut:
            self._cut(cut.code, str(cut))

    def watch(self) -> None:
        """From another thread: end it, if it has not taken what it was sent for longer than it may be silent."""
        if self._sending is not None and time.monotonic() - self._sending > self._bounds.idle:
            with suppress(OSError):  # it is gone already
                self._connection.socket.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """From another thread: hang up, because the server goes."""
        self._connection.close(1001)

    def _serve(self) -> None:
        self._send(self._hello, text=True)
        message = self._hear()
        while True:
            if isinstance(message, Begin):
                with self._taken() as agent:
                    over = self._translate(Asked(agent, message))
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
        agent = self._pool.take(self._bounds.wait)
        if agent is None:
            raise Cut(BUSY, f"no agent was free for {self._bounds.wait:g} s: {self._pool.busy()}")
        self._left, self._amid = self._bounds.sentence, " amid a sentence"
        try:
            yield agent
        finally:
            self._pool.give(agent)
        self._amid = ""

    def _send(self, data: bytes, text: bool = False) -> None:
        self._sending = time.monotonic()
        self._connection.send(data, text=text)
        self._sending = None

    def _hear(self) -> Any:
        """The next message, or samples."""
        data = self._connection.recv(timeout=self._bounds.idle)
        self._left -= len(data)
        if self._left < 0:
            raise Cut(CUT_OFF, f"the messages about a sentence may have {self._bounds.sentence} bytes")
        return samples_of(data) if isinstance(data, bytes) else decode(data, _DECODER)

    def _cut(self, code: int, reason: str) -> None:
        self._tell(f"{self._who}: cut off: {reason}", True)
        self._sending = time.monotonic()
        self._connection.close(code, reason.encode()[:120].decode("utf-8", "ignore"))  # RFC 6455 has room for 123


class Asked:
    """A sentence that an agent is asked about.

    Attributes:
        over: whether there is nothing more to ask.
    """

    def __init__(self, agent: Housed, begin: Begin) -> None:
        self._agent, self._traits = agent, agent.traits
        self._speech = self._traits.source == "speech"
        if self._speech != (begin.sample_rate > 0):
            wrong = f"this agent takes {self._traits.source}, but the sentence has a sample rate of {begin.sample_rate}"
            raise Garbage(wrong)
        self.over = False
        self._tape = Tape()
        self._idle = 0
        self._state = State(
            self._tape.heard if self._speech else [], begin.sentence, begin.sample_rate, begin.reference
        )
        self._state.source_length = begin.source_length
        self._target = self._state.target

    def begin(self) -> bytes:
        """Have the agent reset; what to tell the client."""
        return self._agent.do(self._reset)

    def hear(self, samples: Any) -> None:
        """Speech that has been read."""
        if not self._speech:
            raise Garbage("samples, but this agent takes text")
        if self._state.finished:
            raise Garbage("samples after the end of the source")
        self._tape.add(samples)

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
        if self._speech:
            state.source = self._tape.heard
        else:
            state.source += news.source
        state.finished = state.finished or news.finished
        del target[len(target) - news.erase :]
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
        target += [piece for piece in pieces if len(piece)]
        self._idle = self._idle + 1 if state.finished and not actions else 0
        self.over = is_finished(actions) or self._idle > self._traits.patience
        return reply, b"".join(piece.astype(SAMPLES).tobytes() for piece in pieces)

    def _fail(self, error: BaseException) -> bytes:
        self.over = True
        failure = raised(error)
        kind: Any = failure.kind
        return encode(Failed(kind, _sendable(failure.detail), _sendable(failure.trace)))


def _sendable(text: str) -> str:
    """What of a text can be sent."""
    return shortened(text).encode("utf-8", "backslashreplace").decode()


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
