# SPDX-License-Identifier: Apache-2.0
"""A server for agents.

Every client has a connection and a thread. A sentence takes an agent from the pool, and returns it when the sentence is
over: at its end, after a failure, or when the client disconnects, falls silent or sends invalid data. Such a client is
disconnected with the reason; the other clients are not affected.

The memory held for clients is limited, for each client and so for all. If there are too many connections, the one that
has been idle longest is closed, both among the open ones and among those being opened.
"""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from importlib import import_module
from ipaddress import ip_address
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from lagging.agents.remote.messages import SUBPROTOCOL, Declared, Hello, encode
from lagging.agents.remote.pool import AgentThread, Pool
from lagging.agents.remote.sessions import Bounds, Session, Tell, client_address, close_socket
from lagging.agents.remote.tokens import TOKEN, shows_token
from lagging.errors import UsageError, optional

if TYPE_CHECKING:
    from websockets.http11 import Request, Response
    from websockets.sync.server import ServerConnection

__all__ = ["AgentServer", "Bounds"]

OPENING = 5.0
"""Seconds within which a connection must be opened."""
EXTRA_CONNECTIONS = 64
"""Connections that may be opening or closing, besides the open ones."""


class AgentServer:
    """Agents behind an address.

    Args:
        makers: functions that make the agents; they are called in order.
        name: the name of the agent, sent to clients.
        identity: a text that differs between agents.
        host: the address to listen on; one that other machines can reach needs a token.
        port: the port to listen on; 0 for any free one.
        token: the token that clients must show.
        bounds: limits for clients.
        tell: called with a line for every event, and whether the event is a fault.

    Raises:
        UsageError: other machines could reach it and there is no token; the address cannot be used; or the agents
            cannot be served.

    Example:
        >>> from lagging.agents.remote import RemoteAgent
        >>> from lagging.agents import State
        >>> def shout(state):
        ...     return state.source[-1].upper()
        >>> with AgentServer([lambda: shout], "shout", port=0) as server:
        ...     agent = RemoteAgent(server.address)
        ...     agent.policy(State(["see"])).answer
        ...     agent.close()
        'SEE'
    """

    def __init__(
        self,
        makers: Sequence[Callable[[], Any]],
        name: str,
        *,
        identity: str = "",
        host: str = "127.0.0.1",
        port: int = 8765,
        token: str | None = None,
        bounds: Bounds | None = None,
        tell: Tell = lambda line, fault: None,
    ) -> None:
        optional("websockets", "remote")
        self._library = import_module("websockets.sync.server")
        self._token, self._bounds, self._tell = token, bounds or Bounds(), tell
        self._bounds.sentence_bytes(len(makers))
        listener = _listen(host, port, token)
        agents: list[AgentThread] = []
        try:
            for make in makers:
                agents.append(AgentThread(make))
            self.traits = agents[0].traits
            self._hello = encode(Hello(name, identity, Declared.of(self.traits), self._bounds.message))
        except BaseException:
            for agent in agents:
                agent.close()
            listener.close()
            raise
        self._pool = Pool(agents)
        self._connections: list[ServerConnection] = []  # not closed, oldest first
        self._clients: dict[ServerConnection, Session | None] = {}  # accepted; None until the session begins
        self._sessions: set[Session] = set()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._server = self._library.serve(
            self._handle,
            sock=listener,
            origins=[None],  # no web pages: a browser on this machine could connect
            subprotocols=[SUBPROTOCOL],
            compression=None,
            process_request=self._admit,
            create_connection=self._connection_class(),
            open_timeout=OPENING,
            close_timeout=1,
            ping_timeout=None,  # an agent may block the process; `idle` is the limit
            max_size=self._bounds.message,
            max_queue=(1, 0),
        )
        self._thread: threading.Thread | None = None
        bound = listener.getsockname()
        self.address = f"ws://{f'[{bound[0]}]' if ':' in bound[0] else bound[0]}:{bound[1]}"

    def run(self) -> None:
        """Serve until `stop` is called, or SIGINT."""
        threading.Thread(target=self._watch, name="watch", daemon=True).start()
        self._server.serve_forever()

    def stop(self) -> None:
        """Accept no more clients, disconnect all, and wait for the current steps of the agents."""
        self._pool.stop()
        self._server.shutdown()
        while self._sessions:  # websockets before version 17 does not wait for them
            for session in list(self._sessions):
                session.end()
            time.sleep(0.05)
        self._stopped.set()
        self._pool.close()

    @property
    def sentences(self) -> int:
        """The number of sentences that were begun."""
        return self._pool.taken

    @property
    def busy(self) -> bool:
        """Whether a step is in progress."""
        return any(agent.began is not None for agent in self._pool.agents)

    def __enter__(self) -> AgentServer:
        """Serve in the background."""
        self._thread = threading.Thread(target=self.run, name="server")
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop."""
        self.stop()
        if self._thread is not None:
            self._thread.join()

    # ---- new clients ---------------------------------------------------------------------------------------------

    def _connection_class(self) -> type[ServerConnection]:
        limit, lock, connections = self._bounds.connections + EXTRA_CONNECTIONS, self._lock, self._connections

        class Bounded(self._library.ServerConnection):  # type: ignore[name-defined, misc]
            """A connection; if there are too many, the oldest one that is opening or closing is closed."""

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                with lock:
                    _drop_closed(connections)
                    if len(connections) >= limit:
                        oldest = next(
                            (connection for connection in connections if connection.state.name != "OPEN"), None
                        )
                        if oldest is None:
                            raise ConnectionError("too many connections")
                        connections.remove(oldest)
                        close_socket(oldest)
                    super().__init__(*args, **kwargs)
                    connections.append(self)

        return Bounded

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        """Check a new client; None if it is accepted."""
        if self._token is not None and not shows_token(self._token, request.headers.get("Authorization")):
            self._tell(f"{client_address(connection)}: refused: no token, or a wrong one", True)
            response = connection.respond(HTTPStatus.UNAUTHORIZED, "no token, or a wrong one\n")
            response.headers["WWW-Authenticate"] = "Bearer"
            return response
        if not self._make_room(connection):
            self._tell(f"{client_address(connection)}: refused: {self._bounds.connections} clients are connected", True)
            full = f"{self._bounds.connections} clients are connected, and more may not be\n"
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, full)
        return None

    def _make_room(self, connection: ServerConnection) -> bool:
        """Reserve a place for a client, if needed that of the longest idle one; whether that succeeded."""
        with self._lock:
            clients = self._clients
            for client in [c for c, session in clients.items() if session is None and c.state.name == "CLOSED"]:
                del clients[client]  # closed before its session began
            if len(clients) >= self._bounds.connections:
                ages = [(s.idle_since or math.inf, client, s) for client, s in clients.items() if s is not None]
                ages.sort(key=itemgetter(0))
                oldest = next((client for _, client, session in ages if session.make_room()), None)
                if oldest is None:
                    return False
                del clients[oldest]
            clients[connection] = None
            return True

    def _handle(self, connection: ServerConnection) -> None:
        session = Session(connection, self._hello, self._pool, self._bounds, self._tell)
        self._sessions.add(session)
        with self._lock:
            if connection in self._clients:
                self._clients[connection] = session
        try:
            session.run()
        finally:
            self._sessions.discard(session)
            with self._lock:
                self._clients.pop(connection, None)

    def _watch(self) -> None:
        """Disconnect clients that do not receive what they are sent, and drop closed connections."""
        while not self._stopped.wait(min(1.0, self._bounds.idle / 4)):
            with self._lock:
                _drop_closed(self._connections)
            for session in list(self._sessions):
                session.watch()


def _drop_closed(connections: list[ServerConnection]) -> None:
    """Drop closed connections."""
    connections[:] = [connection for connection in connections if connection.state.name != "CLOSED"]


def _listen(host: str, port: int, token: str | None) -> socket.socket:
    """A socket to listen on.

    Raises:
        UsageError: the host is unknown, other machines could reach it without a token, or the port is in use.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise UsageError(f"cannot listen on {host}: {error.strerror or error}") from None
    family, _, _, _, address = addresses[0]
    if token is None and not ip_address(str(address[0]).partition("%")[0]).is_loopback:
        raise UsageError(
            f"{host} can be reached from other machines, and whoever reaches it could use the agent\n"
            f"  fix: give a token, with --token-file or {TOKEN}; or keep to 127.0.0.1, and tunnel: ssh -L."
        )
    try:
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror or error}\n  fix: another --port; 0 finds one."
        ) from None
