# SPDX-License-Identifier: Apache-2.0
"""A client of a server, from the first message until it is gone, and the sentences that it requests.

They are in one file because a sentence ends with its client, and both draw on the same bounds of memory and time.
"""

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

from lagging.agents.failures import Failure, failure_from, truncate
from lagging.agents.protocol import State, Timed
from lagging.agents.remote.messages import (
    BUSY,
    CUT_OFF,
    INVALID_DATA,
    SAMPLES,
    Answered,
    Begin,
    End,
    Failed,
    FromClient,
    ProtocolError,
    Ready,
    Step,
    collect_answers,
    decode,
    decode_samples,
    encode,
    is_finished,
    pack,
)
from lagging.agents.remote.pool import AgentThread, Pool
from lagging.agents.sources import SampleBuffer
from lagging.errors import UsageError, counted

if TYPE_CHECKING:
    from websockets.sync.server import ServerConnection

__all__ = ["Bounds", "Session", "Tell", "client_address", "close_socket"]

Tell: TypeAlias = Callable[[str, bool], None]

_DECODER = msgspec.json.Decoder(FromClient)
MiB = 1 << 20
HELD_MESSAGES = 4
"""Messages of a client that are held at once: two in the queue, one being received, and one being read."""
GROWTH = 2
"""A growing recording is held twice for a moment."""
DEFAULT_SENTENCE = 256 * MiB
LIST_SLOT = 24
"""Bytes of a token in a list, besides the token itself."""
SECONDS_PER_TOKEN = 2.0
"""Seconds that a token of text may last at the pace of its speaker."""


@dataclass(frozen=True)
class Bounds:
    """Limits for clients.

    Attributes:
        message: largest number of bytes of a message.
        sentence: largest number of bytes held for a sentence: its source, target and reference; by default 256 MiB, or
            less where `memory` does not suffice for that many bytes for every agent.
        memory: largest number of bytes held for all clients together.
        connections: largest number of clients; for a further one, the longest idle client is disconnected.
        idle: seconds that a client may be silent, or not receive what it is sent; within a sentence in total, plus the
            duration of its source.
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

    def sentence_bytes(self, agents: int) -> int:
        """Bytes that may be held for a sentence, with this number of agents.

        Raises:
            UsageError: the limits do not fit into `memory`.

        Example:
            >>> Bounds().sentence_bytes(4) // MiB
            80
        """
        queued = self.connections * HELD_MESSAGES * self.message
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
        return min(DEFAULT_SENTENCE, room) if self.sentence is None else self.sentence


def _mebi(count: int) -> str:
    return f"{count / MiB:g} MiB"


class Disconnect(Exception):
    """A client is disconnected by the server."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


class ClientLeft(Exception):
    """A client has closed the connection."""


class Session:
    """A client.

    Attributes:
        idle_since: since when it is silent, if it has no sentence in progress and waits for no agent.

    Args:
        connection: the connection to it.
        hello: the first message.
        pool: the agents.
        bounds: limits for clients.
        tell: called with a line for every event, and whether the event is a fault.
    """

    def __init__(self, connection: ServerConnection, hello: bytes, pool: Pool, bounds: Bounds, tell: Tell) -> None:
        self._connection, self._hello, self._pool, self._bounds, self._tell = connection, hello, pool, bounds, tell
        self._max_bytes = bounds.sentence_bytes(len(pool.agents))
        self._sentence: ServedSentence | None = None
        self._phase = ""
        self._client_seconds = 0.0
        self._deadline = math.inf
        self._address = client_address(connection)
        self._sending: float | None = None
        self._lock, self._is_leaving = threading.Lock(), False
        self.idle_since: float | None = None

    def run(self) -> None:
        """Serve the client until the connection ends. In every case its agent is returned to the pool."""
        self._tell(f"{self._address}: connected", False)
        if (cut := self._serve_until_end()) is not None:
            self._disconnect(cut.code, cut.reason)

    def _serve_until_end(self) -> Disconnect | None:
        """Serve the client; why the server disconnects it, if it does. Its sentence has been released by then."""
        try:
            self._serve()
        except import_module("websockets.exceptions").ConnectionClosed as closed:
            self._tell(f"{self._address}: gone{self._phase}{_reason(closed)}", bool(self._phase or _reason(closed)))
        except ClientLeft:
            self._tell(f"{self._address}: gone{self._phase}", bool(self._phase))
        except ProtocolError as error:
            return Disconnect(INVALID_DATA, str(error))
        except Disconnect as cut:
            return Disconnect(cut.code, cut.reason)  # without the traceback, which would keep the sentence in memory
        return None

    def watch(self) -> None:
        """Called from another thread: disconnect the client if it does not receive what it is sent."""
        began, now = self._sending, time.monotonic()
        if began is not None and (now - began > self._bounds.idle or now > self._deadline):
            close_socket(self._connection)

    def make_room(self) -> bool:
        """Called from another thread: disconnect the client if it is idle; whether it was."""
        with self._lock:
            if self.idle_since is None:
                return False
            self._is_leaving = True  # no new sentence of it is begun
        threading.Thread(
            target=self._disconnect, args=(CUT_OFF, "idle, and another client has come"), daemon=True
        ).start()
        return True

    def end(self) -> None:
        """Called from another thread: close the connection, because the server stops."""
        self._connection.close(1001)

    def _serve(self) -> None:
        self._send(self._hello, text=True)
        message = self._receive()
        while True:
            if isinstance(message, Begin):
                with self._agent_taken() as agent:
                    self._sentence = ServedSentence(agent, message, self._max_bytes)
                    over = self._translate(self._sentence)
                message = over or self._receive()
            elif isinstance(message, End):
                message = self._receive()
            else:
                raise ProtocolError(f"{'a step' if isinstance(message, Step) else 'samples'} outside a sentence")

    def _translate(self, sentence: ServedSentence) -> FromClient | None:
        """Serve a sentence to its end; returns a message that belongs to the next one, if there is one."""
        self._send(sentence.begin(), text=True)
        while not sentence.over:
            message = self._receive()
            if isinstance(message, Step):
                reply, samples = sentence.step(message)
                for at in range(0, len(samples), MiB):
                    self._send(samples[at : at + MiB])
                self._send(reply, text=True)
            elif isinstance(message, (Begin, End)):
                return message
            else:
                sentence.add_samples(message)
        return None

    @contextmanager
    def _agent_taken(self) -> Iterator[AgentThread]:
        """Take an agent for a sentence."""
        self._phase = " while it waited for an agent"
        agent = self._pool.take(self._bounds.wait, self._is_closed)
        if agent is None and self._is_closed():
            raise ClientLeft
        if agent is None:
            raise Disconnect(BUSY, f"no agent was free for {self._bounds.wait:g} s: {self._pool.busy()}")
        self._phase, self._client_seconds, self._deadline = (
            " amid a sentence",
            0.0,
            time.monotonic() + self._bounds.deadline,
        )
        try:
            yield agent
        finally:
            self._sentence = None  # release its memory
            self._pool.give(agent)
        self._phase, self._deadline = "", math.inf

    def _is_closed(self) -> bool:
        return self._connection.state.name == "CLOSED"

    def _send(self, data: bytes, text: bool = False) -> None:
        self._sending = time.monotonic()
        self._connection.send(data, text=text)
        self._sending = None

    def _receive(self) -> Any:
        """Receive the next message, or samples."""
        begin = time.monotonic()
        seconds, reason = self._receive_limit(begin)
        self.idle_since = begin if self._sentence is None else None
        try:
            data = self._connection.recv(timeout=max(seconds, 0))
        except TimeoutError:
            raise Disconnect(CUT_OFF, reason) from None
        finally:
            with self._lock:
                self.idle_since = None
        if self._is_leaving:
            raise ClientLeft
        self._client_seconds += time.monotonic() - begin
        return decode_samples(data) if isinstance(data, bytes) else decode(data, _DECODER)

    def _receive_limit(self, now: float) -> tuple[float, str]:
        """Seconds to wait for a message, and the reason if none comes."""
        idle, deadline = self._bounds.idle, self._bounds.deadline
        limits = [(idle, f"silent for {idle:g} s{self._phase}")]
        if self._sentence is not None:
            allowed = idle + self._sentence.source_seconds
            in_all = f"the sentence has waited for its client for {allowed:g} s in all (--idle)"
            limits += [(allowed - self._client_seconds, in_all)]
            limits += [(self._deadline - now, f"a sentence may take {deadline:g} s (--deadline)")]
        return min(limits, key=lambda limit: limit[0])

    def _disconnect(self, code: int, reason: str) -> None:
        self._tell(f"{self._address}: cut off: {reason}", True)
        self._sending = time.monotonic()
        self._connection.close(code, reason.encode()[:120].decode("utf-8", "ignore"))  # RFC 6455 allows 123 bytes


class ServedSentence:
    """A sentence of a client.

    Attributes:
        over: whether it has ended.
        source_seconds: seconds that the source so far source_seconds, at the pace of its speaker.

    Args:
        agent: the agent that translates it.
        begin: the client's message.
        max_bytes: largest number of bytes held for it.
    """

    def __init__(self, agent: AgentThread, begin: Begin, max_bytes: int) -> None:
        self._agent, self._traits = agent, agent.traits
        self._max_bytes, self._n_bytes = max_bytes, 0
        self._speech = self._traits.source == "speech"
        if self._speech != (begin.sample_rate > 0):
            fault = f"this agent takes {self._traits.source}, but the sentence has a sample rate of {begin.sample_rate}"
            raise ProtocolError(fault)
        self.over = False
        self.source_seconds = 0.0
        self._buffer = SampleBuffer(max_bytes // SAMPLES.itemsize)
        self._idle = 0
        self._state = State(
            self._buffer.samples_so_far if self._speech else [], begin.sentence, begin.sample_rate, begin.reference
        )
        self._state.source_length = begin.source_length
        self._target = self._state.target
        self._reserve(getsizeof(begin.reference))

    def _reserve(self, size: int) -> None:
        """Count bytes before they are held.

        Raises:
            Disconnect: they exceed the limit.
        """
        self._n_bytes += size
        if self._n_bytes > self._max_bytes:
            raise Disconnect(CUT_OFF, f"a sentence may hold {self._max_bytes} bytes (--max-sentence)")

    def begin(self) -> bytes:
        """Reset the agent; returns the reply."""
        return self._agent.call(self._reset)

    def add_samples(self, samples: Any) -> None:
        """Add samples to the source."""
        if not self._speech:
            raise ProtocolError("samples, but this agent takes text")
        if self._state.finished:
            raise ProtocolError("samples after the end of the source")
        self._reserve(samples.nbytes)
        self._buffer.add(samples)
        self.source_seconds += len(samples) / self._state.sample_rate

    def step(self, step: Step) -> tuple[bytes, bytes]:
        """Call the agent; returns the reply, and the samples that are sent before it."""
        state, target = self._state, self._target
        if step.source and self._speech:
            raise ProtocolError("tokens, but this agent takes speech")
        if step.source and state.finished:
            raise ProtocolError("tokens after the end of the source")
        if (step.erase or step.target) and self._traits.target == "speech":
            raise ProtocolError("a target of tokens, but this agent writes speech")
        if step.erase > len(target):
            raise ProtocolError(f"{step.erase} tokens of the target are erased, where {len(target)} stood")
        kept = len(target) - step.erase
        self._reserve(-_size(target[kept:]))
        self._reserve(_size(step.source) + _size(step.target))
        if self._speech:
            state.source = self._buffer.samples_so_far
        else:
            state.source += step.source
            self.source_seconds += SECONDS_PER_TOKEN * len(step.source)
        state.finished = state.finished or step.finished
        del target[kept:]
        target += step.target
        return self._agent.call(self._ask)

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
        n_before = len(target)
        try:
            begin = time.perf_counter_ns()
            answer = collect_answers(self._agent.agent.policy(state))
            seconds = (time.perf_counter_ns() - begin) / 1e9
            if isinstance(answer, Timed):
                seconds, answer = answer.seconds, answer.answer
            if state.target is not target or len(target) != n_before:
                raise Failure("changed-state", "`state.target` is for reading; what is to be written is returned")
            actions, pieces = pack(answer, self._traits.target == "speech")
            reply = encode(Answered(seconds, actions))
        except (Exception, SystemExit) as error:  # every exception of an agent is a failure, as in a local run
            return self._fail(error), b""
        self._reserve(sum(piece.nbytes for piece in pieces))
        target += [piece for piece in pieces if len(piece)]
        self._idle = self._idle + 1 if state.finished and not actions else 0
        self.over = is_finished(actions) or self._idle > self._traits.patience
        return reply, b"".join(piece.astype(SAMPLES).tobytes() for piece in pieces)

    def _fail(self, error: BaseException) -> bytes:
        self.over = True
        failure = failure_from(error)
        kind: Any = failure.kind
        return encode(Failed(kind, _sendable(failure.detail), _sendable(failure.trace)))


def _size(tokens: list[Any]) -> int:
    """Bytes that tokens take in a list."""
    return sum(map(getsizeof, tokens)) + LIST_SLOT * len(tokens)


def _sendable(text: str) -> str:
    """A text as it can be sent."""
    return truncate(text).encode("utf-8", "backslashreplace").decode()


def close_socket(connection: ServerConnection) -> None:
    """Close a connection without a closing message; threads that read or write it notice."""
    with suppress(OSError):  # already closed
        connection.socket.shutdown(socket.SHUT_RDWR)


def client_address(connection: ServerConnection) -> str:
    """The address of a client."""
    try:
        host, port = connection.remote_address[:2]
    except OSError:
        return "somebody"
    return f"{host}:{port}"


def _reason(closed: Any) -> str:
    """Why the server refused the client's data, if that ended the connection."""
    frame = None if closed.rcvd_then_sent else closed.sent
    return f" ({frame.code} {frame.reason})" if frame is not None and frame.reason else ""
