# SPDX-License-Identifier: Apache-2.0
"""A remote agent, as an agent of a run.

A step costs one message in each direction; only the new part of the source is sent. The time that counts is the
computing time of the agent, measured by the server.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from importlib import import_module
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
import numpy as np

from lagging.agents.failures import Failure, truncate
from lagging.agents.loading import parse_value
from lagging.agents.protocol import Answer, State, Timed, Traits
from lagging.agents.remote.messages import (
    BUSY,
    SAMPLES,
    SUBPROTOCOL,
    Answered,
    Begin,
    Declared,
    Failed,
    FromClient,
    FromServer,
    Hello,
    ProtocolError,
    Ready,
    Step,
    decode,
    decode_samples,
    encode,
    unpack,
)
from lagging.agents.remote.tokens import TOKEN, read_token
from lagging.errors import UsageError, did_you_mean, optional

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

__all__ = ["RemoteAgent", "from_address"]

_DECODER = msgspec.json.Decoder(FromServer)
_FIX = "\n  fix: "
OPTIONS = ("count_network", "reconnect", "timeout", "token_file")
OPENING = 10.0
"""Seconds within which a connection must be opened, and the server must have sent its first message."""
MAX_MESSAGE_BYTES = 64 << 20
"""Largest number of bytes of a message from a server."""
MAX_SAMPLE_BYTES = 256 << 20
"""Largest number of bytes of samples with one answer."""
FIX_SERVER = "correct the server: docs/remote.md has the protocol, and what an agent may declare"


class NoAnswer(Exception):
    """No answer can be received."""


class ConnectionLost(NoAnswer):
    """The connection is closed, or could not be opened."""


class RemoteAgent:
    """An agent behind an address.

    It has the traits (`source`, `chunkwise`, …) that the server reports. If the connection breaks, the sentence in
    progress fails, and the next one begins with a new connection.

    Attributes:
        agent: its name, as the server reports it.
        identity: a text that differs between agents; empty if the server does not report one.

    Args:
        address: `ws://…` or `wss://…`.
        token: the token of the server, if it needs one.
        count_network: whether the time of transmission counts as the agent's time.
        timeout: seconds to wait for an answer.
        reconnect: seconds to try to reconnect before a sentence fails.

    Raises:
        UsageError: no server answers, or it does not speak the protocol.
    """

    source: str
    target: str
    chunkwise: bool
    eager: bool
    patience: int
    must_finish: bool
    sample_rate: int | None
    sees_reference: bool

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        count_network: bool = False,
        timeout: float = 300.0,
        reconnect: float = 60.0,
    ) -> None:
        self._address, self._token = address, token
        self._count_network, self._timeout, self._reconnect = count_network, timeout, reconnect
        self._loopback = _is_loopback(address)
        optional("websockets", "remote")
        self._client = import_module("websockets.sync.client")
        self._errors = import_module("websockets.exceptions")
        self._close: weakref.finalize[Any, Any] | None = None
        self._connection: ClientConnection | None = None
        self._known: Hello | None = None
        self._begun = self._is_new = self._is_down = False
        self._sent = 0
        self._target: list[str] = []
        try:
            self._connect()
        except NoAnswer as lost:
            fix = "" if _FIX in str(lost) else f"{_FIX}start the server, with `lagging serve`, or correct the address."
            raise UsageError(f"{lost}{fix}") from None
        self.agent, self.identity = self._hello.agent, self._hello.identity
        for name in Declared.__struct_fields__:
            setattr(self, name, getattr(self._hello.traits, name))

    # ---- as an agent --------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Begin a sentence; reconnect if the connection is closed.

        Raises:
            Failure: no connection can be opened.
        """
        self._begun, self._is_new, self._sent, self._target = False, False, 0, []
        if self._connection is None:
            self._connect_again()

    def policy(self, state: State) -> Answer:
        """What the agent writes now.

        Raises:
            Failure: the agent or the connection failed.
        """
        try:
            if not self._begun:
                self._begin(state)
            self._send_message(self._changes(state))
            answered, samples = self._receive(Answered)
            answer = unpack(answered.actions, samples)
        except (NoAnswer, ProtocolError) as error:
            self.close()
            raise Failure("connection", str(error)) from None
        except KeyboardInterrupt:  # a late answer must not be taken for that of the next sentence
            self.close()
            raise
        return answer if self._count_network else Timed(answer, answered.seconds)

    def close(self) -> None:
        """Close the connection. The next sentence, if there is one, opens a new one."""
        if self._close is not None:
            self._close()
        self._close = self._connection = None

    # ---- the sentence -------------------------------------------------------------------------------------------

    def _begin(self, state: State) -> None:
        """Request an agent; reconnect if the connection was closed while it was idle."""
        begin = Begin(state.sentence, state.sample_rate, state.reference, state.source_length)
        until = time.monotonic() + self._reconnect
        while True:
            try:
                self._send_message(begin)
                self._receive(Ready)
                break
            except ConnectionLost:  # the server may have closed it again for another client
                if self._is_new and time.monotonic() > until:
                    raise
            self.close()
            self._connect_again()
        self._begun = True

    def _changes(self, state: State) -> Step:
        """The changes since the last step; samples are sent at once."""
        source, target = state.source[self._sent :], self._target
        self._sent += len(source)
        if self.target == "speech":  # the server has its own copy
            erase, written = 0, []
        else:
            kept = len(target)
            if state.target[:kept] != target:
                kept = next(i for i, token in enumerate(target) if state.target[i : i + 1] != [token])
            erase, written = len(target) - kept, state.target[kept:]
            if erase or written:
                self._target = list(state.target)
        if self.source == "text":
            return Step(source, state.finished, erase, written)
        data = np.ascontiguousarray(source, dtype=SAMPLES).tobytes()
        size = self._hello.max_message // SAMPLES.itemsize * SAMPLES.itemsize
        for at in range(0, len(data), size):
            self._send(data[at : at + size])
        return Step([], state.finished, erase, written)

    # ---- the connection -----------------------------------------------------------------------------------------

    @property
    def _hello(self) -> Hello:
        """What the server said of its agent when the connection was opened."""
        assert self._known is not None
        return self._known

    def _connect(self) -> None:
        """Open a connection, and receive what the server says of its agent.

        Raises:
            NoAnswer: that is not possible.
            Failure: it is another agent than before.
        """
        stack = ExitStack()
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        try:
            connection = stack.enter_context(
                self._client.connect(
                    self._address,
                    subprotocols=[SUBPROTOCOL],
                    additional_headers=headers,
                    compression=None,
                    proxy=None if self._loopback else True,
                    open_timeout=OPENING,
                    close_timeout=2,
                    ping_timeout=None,  # an agent may block its process: `timeout` is the limit
                    max_size=MAX_MESSAGE_BYTES,
                    max_queue=2,
                )
            )
            self._connection, self._close = connection, weakref.finalize(self, stack.close)
            if connection.subprotocol != SUBPROTOCOL:
                raise ProtocolError(f"it has agreed on {connection.subprotocol or 'nothing'}")
            hello, _ = self._receive(Hello, OPENING)
            Traits(**{name: getattr(hello.traits, name) for name in Declared.__struct_fields__})
        except self._errors.InvalidStatus as error:
            raise NoAnswer(self._refused(error.response)) from None
        except ProtocolError as error:
            self.close()
            raise NoAnswer(f"{self._address} does not speak {SUBPROTOCOL}: {error}{_FIX}{FIX_SERVER}.") from None
        except UsageError as error:
            self.close()
            raise NoAnswer(f"{self._address}: {str(error).partition(_FIX)[0]}{_FIX}{FIX_SERVER}.") from None
        except NoAnswer as lost:
            self.close()
            raise NoAnswer(f"cannot connect to {self._address}: {lost}") from None
        except (OSError, self._errors.WebSocketException) as error:
            raise NoAnswer(f"cannot connect to {self._address}: {_reason(error)}") from None
        if self._known is not None and _identity(hello) != _identity(self._known):
            self.close()
            raise Failure("connection", f"{self._address} now serves another agent: {hello.agent}")
        self._known, self._is_new = hello, True

    def _connect_again(self) -> None:
        """Try to connect for some time; once that has failed, try only once per sentence."""
        until = time.monotonic() + (0 if self._is_down else self._reconnect)
        pause = 0.1
        while True:
            try:
                self._connect()
                self._is_down = False
                return
            except NoAnswer as lost:
                if time.monotonic() + pause > until:
                    self._is_down = True
                    raise Failure("connection", str(lost)) from None
            time.sleep(pause)
            pause = min(2 * pause, 5.0)

    def _refused(self, response: Any) -> str:
        reason = bytes(response.body or b"").decode("utf-8", "replace").strip().partition("\n")[0]
        fix = f"\n  fix: give it the server's, with -a token_file=… or {TOKEN}." if response.status_code == 401 else ""
        return f"{self._address} refused the connection: {response.status_code} {reason}{fix}"

    def _send_message(self, message: FromClient) -> None:
        data = encode(message)
        if len(data) > self._hello.max_message:
            raise NoAnswer(
                f"a message of {len(data)} bytes, but the server takes {self._hello.max_message} (--max-message)"
            )
        self._send(data, text=True)

    def _send(self, data: bytes, text: bool = False) -> None:
        if self._connection is None:
            raise ConnectionLost("there is none")
        try:
            self._connection.send(data, text=text)
        except self._errors.ConnectionClosed as closed:
            raise _closed_error(closed) from None

    def _receive(self, expected: type[Any], timeout: float | None = None) -> tuple[Any, Any]:
        """Receive the next message, and the samples before it.

        Raises:
            Failure: the agent has failed.
            ProtocolError: it is not the expected message.
        """
        if self._connection is None:
            raise ConnectionLost("there is none")
        pieces = []
        size, timeout = 0, self._timeout if timeout is None else timeout
        until = time.monotonic() + timeout
        try:
            while isinstance(data := self._connection.recv(timeout=until - time.monotonic()), bytes):
                pieces.append(decode_samples(data))
                size += len(data)
                if size > MAX_SAMPLE_BYTES:
                    raise NoAnswer(f"more than {MAX_SAMPLE_BYTES} bytes of samples before an answer")
        except TimeoutError:
            raise NoAnswer(f"no answer for {timeout:g} s") from None
        except self._errors.ConnectionClosed as closed:
            raise _closed_error(closed) from None
        message = decode(data, _DECODER)
        if isinstance(message, Failed):
            raise Failure(message.kind, truncate(message.detail), truncate(message.trace))
        if not isinstance(message, expected):
            raise ProtocolError(f"{type(message).__name__.lower()!r} came where {expected.__name__.lower()!r} was due")
        return message, np.concatenate(pieces, dtype=np.float32) if pieces else np.zeros(0, np.float32)


def _identity(hello: Hello) -> tuple[str, str, Declared]:
    """What must stay the same during a run."""
    return hello.agent, hello.identity, hello.traits


def _closed_error(closed: Any) -> NoAnswer:
    """The error for a closed connection: which side closed it, and why."""
    if closed.rcvd is not None and closed.rcvd_then_sent is not False:
        reason = f" {closed.rcvd.reason}" if closed.rcvd.reason else ""
        kind = NoAnswer if closed.rcvd.code == BUSY else ConnectionLost
        return kind(f"the server closed it ({closed.rcvd.code}{reason})")
    if closed.sent is not None and closed.sent.reason:
        return ConnectionLost(f"a message of the server was refused ({closed.sent.code} {closed.sent.reason})")
    return ConnectionLost("the server is gone")


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _is_loopback(address: str) -> bool:
    """Whether an address is on this machine.

    Raises:
        UsageError: it is not a valid address.
    """
    message = f"an agent's address is ws://HOST:PORT or wss://HOST:PORT, not {address!r}"
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise UsageError(message) from None
    if parts.scheme not in ("ws", "wss") or not host:
        raise UsageError(message)
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            f"a token must not be part of an address, since logs keep addresses: use {TOKEN} or token_file"
        )
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def from_address(name: str, options: Mapping[str, str]) -> RemoteAgent:
    """The agent behind an address.

    Args:
        name: `ws://127.0.0.1:8765`, or `wss://…`.
        options: `count_network=true` counts the time of transmission; `timeout` is the number of seconds to wait for an
            answer (300); `reconnect` is the number of seconds to try to reconnect (60); `token_file` is the file of the
            token, if it is not in LAGGING_TOKEN.
    """
    for option in options:
        if option not in OPTIONS:
            raise UsageError(f"a remote agent has no option {option!r}.{did_you_mean(option, OPTIONS)}")
    count = parse_value(options.get("count_network", "false"))
    if not isinstance(count, bool):
        raise UsageError(f"count_network is true or false, not {options['count_network']!r}")
    seconds = {key: parse_value(options[key]) for key in ("timeout", "reconnect") if key in options}
    for key, value in seconds.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
            raise UsageError(f"{key} is a number of seconds, not {options[key]!r}")
    token = read_token(options.get("token_file"), os.environ)
    return RemoteAgent(name, token=token, count_network=count, **seconds)
