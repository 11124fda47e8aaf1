# SPDX-License-Identifier: Apache-2.0
"""`lagging serve`."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from pathlib import Path

import click

from lagging.agents.remote import AgentServer, Bounds
from lagging.agents.remote.tokens import TOKEN, read_token
from lagging.cli.messages import Messages, print_message
from lagging.cli.options import message_options
from lagging.cli.run import spec
from lagging.errors import counted

__all__ = ["command"]

DEFAULT = Bounds()
MiB = 1 << 20
COUNT, SECONDS = click.IntRange(min=1), click.FloatRange(min=0, min_open=True)


@click.command("serve")
@click.argument("agent", metavar="AGENT.py[:CLASS]")
@click.option("-a", "--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the agent.")
@click.option("--simuleval", is_flag=True, help="The agent is one of SimulEval's.")
@click.option("--host", default="127.0.0.1", help="Where to listen; what others can reach needs a token (127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, help="Where to listen; 0 finds a free one (8765).")
@click.option("--token-file", metavar="FILE", help=f"The token that clients must show; or in {TOKEN}.")
@click.option("--agents", type=COUNT, default=1, help="How many agents to make; one sentence at a time for each (1).")
@click.option("--idle", type=SECONDS, default=DEFAULT.idle, help="Seconds that a client may be silent (60).")
@click.option("--wait", type=SECONDS, default=DEFAULT.wait, help="Seconds that a client waits for an agent (60).")
@click.option("--max-connections", type=COUNT, default=DEFAULT.connections, help="Clients at once (32).")
@click.option("--max-message", type=COUNT, default=DEFAULT.message // MiB, help="MiB of a message (1).")
@click.option("--max-sentence", type=COUNT, help="MiB held of a sentence (256, or what --max-memory has room for).")
@click.option("--max-memory", type=COUNT, default=DEFAULT.memory // MiB, help="MiB held for all clients (768).")
@click.option("--deadline", type=SECONDS, default=DEFAULT.deadline, help="Seconds that a sentence may take (3600).")
@message_options
def command(
    agent: str,
    options: tuple[str, ...],
    simuleval: bool,
    host: str,
    port: int,
    token_file: str | None,
    agents: int,
    idle: float,
    wait: float,
    max_connections: int,
    max_message: int,
    max_sentence: int | None,
    max_memory: int,
    deadline: float,
    messages: Messages,
) -> None:
    """Show an agent to others, who run it with `lagging run --remote`: on another machine, or in another environment.

    It listens on this machine only, unless --host says otherwise, and then there must be a token. A client that hangs
    up, falls silent or sends nonsense harms no other. Ctrl-C ends it.

    \b
    lagging serve my_agent.py
    lagging serve my_agent.py:WaitK -a k=5 --port 0
    lagging serve --simuleval agent.py --agents 2
    LAGGING_TOKEN=… lagging serve my_agent.py --host 0.0.0.0
    """
    made = spec(agent, simuleval, None, options)
    told = made.fingerprint()
    server = AgentServer(
        [made.make] * agents,
        Path(made.name).name,
        identity=hashlib.sha256(json.dumps(told | {"name": Path(made.name).name}, sort_keys=True).encode()).hexdigest(),
        host=host,
        port=port,
        token=read_token(token_file, os.environ),
        bounds=Bounds(
            message=max_message * MiB,
            sentence=None if max_sentence is None else max_sentence * MiB,
            memory=max_memory * MiB,
            connections=max_connections,
            idle=idle,
            wait=wait,
            deadline=deadline,
        ),
        tell=lambda line, wrong: messages.print(line) if wrong or messages.verbose else None,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # who ends jobs politely is treated as Ctrl-C is
    try:
        print_message(f"serving {made.name}, {counted(agents, 'agent')}: {server.address}")
        server.run()
    except KeyboardInterrupt:
        _stop(server, messages)


def _stop(server: AgentServer, messages: Messages) -> None:
    """Let the agents finish what they are doing, unless somebody is in a hurry."""
    try:
        if server.busy:
            messages.print("an agent is at work, and may finish its step; Ctrl-C again ends it at once")
        server.stop()
    except KeyboardInterrupt:
        os._exit(130)  # an agent that is stuck cannot be ended otherwise
    messages.print(f"stopped, after {counted(server.sentences, 'sentence')}")
