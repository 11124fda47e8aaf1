# SPDX-License-Identifier: Apache-2.0
"""Agents on another machine, or in another language: the same loop and the same log, over a WebSocket.

`lagging serve` shows an agent to others (`server`); to a run, the other end is an agent like any other (`client`). What
goes over the wire is in `messages`, and, for those who write an end of their own, in `docs/remote.md`.
"""

from __future__ import annotations

from lagging.agents.remote.client import RemoteAgent, from_address
from lagging.agents.remote.server import AgentServer, Bounds

__all__ = ["AgentServer", "Bounds", "RemoteAgent", "from_address"]
