# SPDX-License-Identifier: Apache-2.0
"""Does `lagging serve` stay small, and serve an honest client, amid a crowd that means it harm? On this machine only.

    python bench/server.py                  # 1000 connections, text and then speech: a minute
    python bench/server.py --connections 5000 --seconds 60
    python bench/server.py --quick          # shows that it runs, the numbers mean nothing

A server with four agents and its usual limits, but for `--idle 5`, is started as a process of its own. A crowd in
another process opens connections and keeps them as long as it may; who is closed comes back a second later. Most of
them never ask for anything; 30 of 100 greet and fall silent, 6 of 100 send a handshake by the byte; 18 send sentences
of as much as the server takes, and 8 sentences of empty steps. Meanwhile an honest client translates one sentence after
another. Memory is the highest that the system has seen of the server; past 4 GiB it is ended, so that no machine
suffers.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import multiprocessing
import os
import re
import resource
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lagging.agents import State
from lagging.agents.failures import Failure
from lagging.agents.protocol import Timed
from lagging.agents.remote import RemoteAgent

MEMORY, ENOUGH = 1024, 4096
"""MiB that the server may need; and at which it is ended."""
RATE = 16_000
PAUSE = 1.0
"""Seconds after which somebody who was closed comes back."""
HONEST_PAUSE = 0.01
"""Seconds between two sentences of the honest client: the CPU is left to the server and the crowd."""
AGENTS = """
class Upper:
    def policy(self, state):
        written = len(state.target)
        return state.source[written].upper() if written < len(state.source) else None

class Listener:
    source = "speech"
    def policy(self, state):
        return "heard" if state.finished and not state.target else None
"""


@dataclass
class Findings:
    """What was seen.

    Attributes:
        megabytes: the highest memory of the server, and that before anybody came, in MiB.
        threads: the most threads that it had.
        opened: connections that the crowd opened, by what they did.
        served: sentences that the honest client had translated; failed: those that it had not.
        longest: seconds that it waited for one of them.
    """

    megabytes: float = 0.0
    before: float = 0.0
    threads: int = 0
    opened: dict[str, int] = field(default_factory=dict)
    served: int = 0
    failed: list[str] = field(default_factory=list)
    longest: float = 0.0


# ---- the crowd --------------------------------------------------------------------------------------------------


def frame(data: bytes, opcode: int = 1) -> bytes:
    """A frame of a client; its mask is zero, which leaves the data as it is."""
    size = len(data)
    head = struct.pack("!B", 0x80 | opcode)
    if size < 126:
        return head + struct.pack("!B", 0x80 | size) + bytes(4) + data
    if size < 65536:
        return head + struct.pack("!BH", 0x80 | 126, size) + bytes(4) + data
    return head + struct.pack("!BQ", 0x80 | 127, size) + bytes(4) + data


def request() -> bytes:
    """The opening handshake."""
    key = base64.b64encode(os.urandom(16)).decode()
    lines = ("GET / HTTP/1.1", "Host: x", "Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {key}",
             "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: lagging-agent-1", "", "")  # fmt: skip
    return "\r\n".join(lines).encode()


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Deed = Callable[[Streams], Coroutine[Any, Any, None]]


class Crowd:
    """Connections that mean harm, until a moment.

    Args:
        port: of the server, on this machine.
        speech: whether its agents take speech.
        seconds: how long.
    """

    def __init__(self, port: int, speech: bool, seconds: float) -> None:
        self.port, self.speech, self.until = port, speech, time.monotonic() + seconds
        self.opened: Counter[str] = Counter()
        self.begin = frame(json.dumps({"type": "begin", "sample_rate": RATE if speech else 0}).encode())
        words = json.dumps({"type": "step", "source": ["ab"] * 170_000}).encode()  # 1 MB, and 10 MB when it is read
        self.large = frame(bytes(1 << 20), 2) if speech else frame(words)

    async def come(self, count: int) -> None:
        """So many of them, all at once."""
        await asyncio.gather(*(self.keep_on(kind) for kind in self.kinds(count)))

    def kinds(self, count: int) -> list[Deed]:
        """What each of them does: some begin sentences, but not more than the server has places for."""
        numbers: list[tuple[Deed, int]] = [
            (self.sends_much, min(max(count // 50, 2), 18)),
            (self.asks_emptily, min(max(count // 100, 1), 8)),
            (self.sends_bytes, count * 6 // 100),
            (self.falls_silent, count * 30 // 100),
        ]
        kinds = [kind for kind, number in numbers for _ in range(number)]
        return kinds + [self.asks_nothing] * (count - len(kinds))

    async def keep_on(self, kind: Deed) -> None:
        """Connect, do it until it is closed, and come back."""
        while time.monotonic() < self.until:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
                async with self.connected() as streams:
                    self.opened[kind.__name__] += 1
                    async with asyncio.timeout_at(asyncio.get_running_loop().time() + self.until - time.monotonic()):
                        await kind(streams)
            await asyncio.sleep(min(PAUSE, max(self.until - time.monotonic(), 0)))

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[Streams]:
        """A connection, without a word."""
        streams = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield streams
        finally:
            streams[1].transport.abort()

    async def greets(self, streams: Streams) -> None:
        """The handshake."""
        reader, writer = streams
        writer.write(request())
        await reader.readuntil(b"\r\n\r\n")

    async def asks_nothing(self, streams: Streams) -> None:
        """Open a connection, and leave it at that."""
        await streams[0].read()

    async def falls_silent(self, streams: Streams) -> None:
        """Greet, and leave it at that."""
        await self.greets(streams)
        await streams[0].read()

    async def sends_bytes(self, streams: Streams) -> None:
        """A handshake by the byte."""
        for byte in request() * 100:
            streams[1].write(bytes([byte]))
            await streams[1].drain()
            await asyncio.sleep(0.05)

    async def sends_much(self, streams: Streams) -> None:
        """A sentence of as much as the server takes."""
        await self.sends(streams, self.large, 0)

    async def asks_emptily(self, streams: Streams) -> None:
        """A sentence of empty steps."""
        await self.sends(streams, frame(b'{"type":"step"}'), 0.5)

    async def sends(self, streams: Streams, message: bytes, pause: float) -> None:
        """A sentence of one message, again and again, until it is cut off."""
        reader, writer = streams
        await self.greets(streams)
        writer.write(self.begin)
        sink = asyncio.ensure_future(reader.read())
        try:
            while not sink.done():
                writer.write(message)
                await writer.drain()
                await asyncio.sleep(pause)
        finally:
            sink.cancel()


def crowd(port: int, speech: bool, count: int, seconds: float, queue: Any) -> None:
    """The crowd, in a process of its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, count + 100), hard), hard))
    those = Crowd(port, speech, seconds)
    asyncio.run(those.come(count))
    queue.put(dict(those.opened))


# ---- the server -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def serving(name: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`lagging serve`, and its address."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "agents.py").write_text(AGENTS, encoding="utf-8")
        command = [sys.executable, "-m", "lagging", "serve", f"{folder}/agents.py:{name}", "--port", "0", *options]
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, encoding="utf-8") as process:
            assert process.stderr is not None
            line = process.stderr.readline()
            address = re.search(r"ws://\S+", line)
            if address is None:
                sys.exit(f"the server did not start: {line}{process.stderr.read()}")
            drain = threading.Thread(target=process.stderr.read, daemon=True)  # who was cut off, line by line
            drain.start()
            try:
                yield process, address[0]
            finally:
                process.kill()
                drain.join()


def status(process: int, key: str) -> float:
    """A number that the system tells of a process: `VmHWM` is its highest memory in KB."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith(f"{key}:"):
                return float(line.split()[1])
    return 0.0


def measure(speech: bool, connections: int, seconds: float, options: tuple[str, ...] = ()) -> Findings:
    """A server amid a crowd of so many connections, for so long."""
    findings = Findings()
    options = ("--agents", "4", "--idle", "5", *options)
    with serving("Listener" if speech else "Upper", *options) as (process, address):
        honest = RemoteAgent(address)
        translate(honest, speech)
        findings.before = status(process.pid, "VmHWM") / 1024
        context = multiprocessing.get_context("spawn")
        queue: Any = context.SimpleQueue()
        others = context.Process(
            target=crowd, args=(int(address.rpartition(":")[2]), speech, connections, seconds, queue)
        )
        others.start()
        until = time.monotonic() + seconds
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.05):
                findings.megabytes = max(findings.megabytes, status(process.pid, "VmHWM") / 1024)
                findings.threads = max(findings.threads, int(status(process.pid, "Threads")))
                if findings.megabytes > ENOUGH:
                    process.kill()

        watcher = threading.Thread(target=watch)
        watcher.start()
        while time.monotonic() < until and process.poll() is None:
            begin = time.monotonic()
            try:
                translate(honest, speech)
                findings.served += 1
            except Failure as failure:
                findings.failed.append(str(failure))
            findings.longest = max(findings.longest, time.monotonic() - begin)
            time.sleep(HONEST_PAUSE)
        over.set()
        watcher.join()
        others.join(60)
        if others.exitcode != 0:
            others.kill()
            sys.exit(f"the crowd did not come to an end: exit code {others.exitcode}")
        findings.opened = queue.get()
        honest.close()
    return findings


def translate(agent: RemoteAgent, speech: bool) -> None:
    """A sentence, as a run asks for it."""
    agent.reset()
    state = State(np.zeros(RATE, np.float32) if speech else ["see", "you"], 0, RATE if speech else 0)
    state.finished = True
    while (answer := agent.policy(state)) is not None:
        words = answer.answer if isinstance(answer, Timed) else answer
        if words is None:
            return
        state.target.append(str(words))


def main() -> None:
    parser = argparse.ArgumentParser(description="A server amid a crowd that means it harm.")
    parser.add_argument("--quick", action="store_true", help="100 connections for 1 s: the numbers mean nothing")
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=25.0)
    args = parser.parse_args()
    if not Path("/proc/self/status").exists():
        sys.exit("the memory of another process cannot be read on this system (no /proc)")
    connections, seconds = (100, 1.0) if args.quick else (args.connections, args.seconds)
    print(f"{connections:,} connections at once, {seconds:g} s; lagging serve --agents 4 --idle 5\n")
    for speech in (False, True):
        findings = measure(speech, connections, seconds)
        print("an agent that takes speech" if speech else "an agent that takes text")
        row("connections opened by the crowd", f"{sum(findings.opened.values()):,}")
        for kind, count in sorted(findings.opened.items()):
            row(f"  {kind.replace('_', ' ')}", f"{count:,}")
        row("threads of the server, at most", f"{findings.threads:,}")
        row("memory of the server before", f"{findings.before:,.0f} MiB")
        bound = "" if args.quick else "  met" if findings.megabytes < MEMORY else "  MISSED"
        row("memory of the server, at most", f"{findings.megabytes:,.0f} MiB  (< {MEMORY:,}){bound}")
        bound = "" if args.quick else "  met" if findings.served and not findings.failed else "  MISSED"
        row("sentences of the honest client", f"{findings.served:,}, {len(findings.failed)} failed{bound}")
        row("the longest that it waited for one", f"{findings.longest:.1f} s")
        for reason in sorted(set(findings.failed))[:3]:
            print(f"    failed: {reason}")
        print()


def row(name: str, value: str) -> None:
    print(f"  {name:<44}{value}")


if __name__ == "__main__":
    main()
