# SPDX-License-Identifier: Apache-2.0
"""Agents on another machine, or in another language: the same loop and the same log, over a WebSocket.

`lagging serve` serves an agent (`server`); in a run, `client` is an agent like any other. The messages are in
`messages`, and are documented in `docs/remote.md` for other implementations.
"""

from __future__ import annotations

from lagging.agents.remote.client import RemoteAgent, from_address
from lagging.agents.remote.server import AgentServer, Bounds

__all__ = ["AgentServer", "Bounds", "RemoteAgent", "from_address"]
