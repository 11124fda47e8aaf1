# SPDX-License-Identifier: Apache-2.0
"""An agent for others to ask.

Every client has a connection and a thread. A sentence takes an agent from the pool, and gives it back when it is over,
however that comes: by its end, a failure, a client that hangs up, falls silent, or sends what makes no sense. Such a
client is cut off, with the reason; the others notice nothing.

What is held for clients is bounded in bytes, for each and so for all. Where more come than may be there, who has been
idle longest has to go: among those that are open, and among those that are opening.
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
from lagging.agents.remote.pool import Housed, Pool
from lagging.agents.remote.sessions import Bounds, Session, Tell, hang_up, who
from lagging.agents.remote.tokens import TOKEN, is_shown
from lagging.errors import UsageError, optional

if TYPE_CHECKING:
    from websockets.http11 import Request, Response
    from websockets.sync.server import ServerConnection

__all__ = ["AgentServer", "Bounds"]

OPENING = 5.0
"""Seconds in which a connection must be open."""
SPARE = 64
"""Connections that may be opening, or closing, beside those that are open."""


class AgentServer:
    """Agents behind an address.

    Args:
        makers: what makes each of the agents; they are made in order.
        name: what clients are told that it is.
        identity: what is another when the agent is another.
        host: where to listen; what others can reach needs a token.
        port: where to listen; 0 for any that is free.
        token: what clients have to show.
        bounds: how much they may ask for.
        tell: called with a line when something happens, and whether it is something wrong.

    Raises:
        UsageError: others could reach it, but there is no token; nobody can listen there; or the agents cannot be
            served.

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
        tell: Tell = lambda line, wrong: None,
    ) -> None:
        optional("websockets", "remote")
        self._library = import_module("websockets.sync.server")
        self._token, self._bounds, self._tell = token, bounds or Bounds(), tell
        self._bounds.of_sentence(len(makers))
        listener = _listen(host, port, token)
        agents: list[Housed] = []
        try:
            for make in makers:
                agents.append(Housed(make))
            self.traits = agents[0].traits
            self._hello = encode(Hello(name, identity, Declared.of(self.traits), self._bounds.message))
        except BaseException:
            for made in agents:
                made.close()
            listener.close()
            raise
        self._pool = Pool(agents)
        self._known: list[ServerConnection] = []  # not closed, by age
        self._clients: dict[ServerConnection, Session | None] = {}  # let in; without a session while they come
        self._sessions: set[Session] = set()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._server = self._library.serve(
            self._handle,
            sock=listener,
            origins=[None],  # no web page: it would come from a browser on this very machine
            subprotocols=[SUBPROTOCOL],
            compression=None,
            process_request=self._admit,
            create_connection=self._connection_class(),
            open_timeout=OPENING,
            close_timeout=1,
            ping_timeout=None,  # an agent may keep the whole process busy; `idle` is the limit
            max_size=self._bounds.message,
            max_queue=(1, 0),
        )
        self._thread: threading.Thread | None = None
        bound = listener.getsockname()
        self.address = f"ws://{f'[{bound[0]}]' if ':' in bound[0] else bound[0]}:{bound[1]}"

    def run(self) -> None:
        """Serve, until `stop` is called or somebody interrupts."""
        threading.Thread(target=self._watch, name="watch", daemon=True).start()
        self._server.serve_forever()

    def stop(self) -> None:
        """Take no more clients, hang up on those there are, and wait for the agents to finish what they are doing."""
        self._pool.dismiss()
        self._server.shutdown()
        while self._sessions:  # before version 17 the library did not wait for them
            for session in list(self._sessions):
                session.end()
            time.sleep(0.05)
        self._stopped.set()
        self._pool.close()

    @property
    def sentences(self) -> int:
        """How many were begun."""
        return self._pool.taken

    @property
    def busy(self) -> bool:
        """Whether an agent is being asked."""
        return any(agent.began is not None for agent in self._pool.agents)

    def __enter__(self) -> AgentServer:
        """Serve in the background."""
        self._thread = threading.Thread(target=self.run, name="server")
        self._thread.start()
        return self

    def __exit__(self, *why: object) -> None:
        """Stop."""
        self.stop()
        if self._thread is not None:
            self._thread.join()

    # ---- who comes in -------------------------------------------------------------------------------------------

    def _connection_class(self) -> type[ServerConnection]:
        most, lock, known = self._bounds.connections + SPARE, self._lock, self._known

        class Bounded(self._library.ServerConnection):  # type: ignore[name-defined, misc]
            """A connection; if there are too many, the oldest of those that are opening or closing goes."""

            def __init__(self, *parts: Any, **how: Any) -> None:
                with lock:
                    _forget(known)
                    if len(known) >= most:
                        oldest = next((one for one in known if one.state.name != "OPEN"), None)
                        if oldest is None:
                            raise ConnectionError("too many connections")
                        known.remove(oldest)
                        hang_up(oldest)
                    super().__init__(*parts, **how)
                    known.append(self)

        return Bounded

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        """Whether a client may come in; None if so."""
        if self._token is not None and not is_shown(self._token, request.headers.get("Authorization")):
            self._tell(f"{who(connection)}: refused: no token, or a wrong one", True)
            response = connection.respond(HTTPStatus.UNAUTHORIZED, "no token, or a wrong one\n")
            response.headers["WWW-Authenticate"] = "Bearer"
            return response
        if not self._make_room(connection):
            self._tell(f"{who(connection)}: refused: {self._bounds.connections} clients are connected", True)
            full = f"{self._bounds.connections} clients are connected, and more may not be\n"
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, full)
        return None

    def _make_room(self, connection: ServerConnection) -> bool:
        """Have a place for a client, if need be that of the one who has been idle longest; whether there is one."""
        with self._lock:
            clients = self._clients
            for one in [one for one, session in clients.items() if session is None and one.state.name == "CLOSED"]:
                del clients[one]  # it went away while it came
            if len(clients) >= self._bounds.connections:
                ages = [(s.idle_since or math.inf, one, s) for one, s in clients.items() if s is not None]
                ages.sort(key=itemgetter(0))
                oldest = next((one for _, one, session in ages if session.make_room()), None)
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
        """Look after those who do not take what they are sent, and forget those who are gone."""
        while not self._stopped.wait(min(1.0, self._bounds.idle / 4)):
            with self._lock:
                _forget(self._known)
            for session in list(self._sessions):
                session.watch()


def _forget(known: list[ServerConnection]) -> None:
    """Let go of connections that are closed, and of what is held of them."""
    known[:] = [one for one in known if one.state.name != "CLOSED"]


def _listen(host: str, port: int, token: str | None) -> socket.socket:
    """A socket to listen on.

    Raises:
        UsageError: there is no such host, others could reach it without a token, or it is taken.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise UsageError(f"cannot listen on {host}: {error.strerror or error}") from None
    family, _, _, _, where = found[0]
    if token is None and not ip_address(str(where[0]).partition("%")[0]).is_loopback:
        raise UsageError(
            f"{host} can be reached from other machines, and whoever reaches it could use the agent\n"
            f"  fix: give a token, with --token-file or {TOKEN}; or keep to 127.0.0.1, and tunnel: ssh -L."
        )
    try:
        return socket.create_server(where[:2], family=family)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror or error}\n  fix: another --port; 0 finds one."
        ) from None
