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
from lagging.cli.options import agent_options, message_options
from lagging.cli.run import agent_spec
from lagging.errors import counted

__all__ = ["command"]

DEFAULT = Bounds()
MiB = 1 << 20
COUNT, SECONDS = click.IntRange(min=1), click.FloatRange(min=0, min_open=True)


@click.command("serve")
@click.argument("agent", metavar="AGENT.py[:CLASS]")
@agent_options
@click.option("--host", default="127.0.0.1", help="Address to listen on; any but 127.0.0.1 needs a token.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, help="Port to listen on (default 8765); 0 for any free port."
)
@click.option("--token-file", metavar="FILE", help=f"File with the token that clients must show; else {TOKEN}.")
@click.option("--agents", type=COUNT, default=1, help="Number of agents, each for one sentence at a time (default 1).")
@click.option("--idle", type=SECONDS, default=DEFAULT.idle, help="Seconds that a client may be silent (default 60).")
@click.option(
    "--wait", type=SECONDS, default=DEFAULT.wait, help="Seconds that a client waits for an agent (default 60)."
)
@click.option(
    "--max-connections", type=COUNT, default=DEFAULT.connections, help="Largest number of clients (default 32)."
)
@click.option("--max-message", type=COUNT, default=DEFAULT.message // MiB, help="Largest message, in MiB (default 1).")
@click.option(
    "--max-sentence", type=COUNT, help="Memory per sentence, in MiB (default 256, or as --max-memory allows)."
)
@click.option(
    "--max-memory", type=COUNT, default=DEFAULT.memory // MiB, help="Memory for all clients, in MiB (default 768)."
)
@click.option(
    "--deadline", type=SECONDS, default=DEFAULT.deadline, help="Seconds that a sentence may take (default 3600)."
)
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
    """Serve an agent to `lagging run --remote`, on another machine or in another environment.

    It listens on this machine only, unless --host is given; that needs a token. A client that disconnects, falls
    silent or sends invalid data does not affect the others. Ctrl-C stops the server.

    \b
    lagging serve my_agent.py
    lagging serve my_agent.py:WaitK -a k=5 --port 0
    lagging serve --simuleval agent.py --agents 2
    LAGGING_TOKEN=… lagging serve my_agent.py --host 0.0.0.0
    """
    described = agent_spec(agent, simuleval, None, options)
    fingerprint = described.fingerprint()
    server = AgentServer(
        [described.make] * agents,
        Path(described.name).name,
        identity=hashlib.sha256(
            json.dumps(fingerprint | {"name": Path(described.name).name}, sort_keys=True).encode()
        ).hexdigest(),
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
        tell=lambda line, fault: messages.print(line) if fault or messages.verbose else None,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGTERM is handled like Ctrl-C
    try:
        print_message(f"serving {described.name}, {counted(agents, 'agent')}: {server.address}")
        server.run()
    except KeyboardInterrupt:
        _stop(server, messages)


def _stop(server: AgentServer, messages: Messages) -> None:
    """Wait for the current steps of the agents, unless Ctrl-C is pressed again."""
    try:
        if server.busy:
            messages.print("waiting for the current step of an agent; press Ctrl-C again to stop at once")
        server.stop()
    except KeyboardInterrupt:
        os._exit(130)  # a hanging agent cannot be stopped otherwise
    messages.print(f"stopped, after {counted(server.sentences, 'sentence')}")
