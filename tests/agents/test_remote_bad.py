# SPDX-License-Identifier: Apache-2.0
"""Clients that do what they must not: they are cut off, and harm no other. Real sockets, all bounded in time."""

import base64
import contextlib
import faulthandler
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np
import pytest

from lagging import UsageError
from lagging.agents import State, Write
from lagging.agents.failures import Failure
from lagging.agents.remote import AgentServer, Bounds, RemoteAgent, from_address, server
from lagging.agents.remote.pool import AgentThread, Pool
from lagging.agents.remote.tokens import read_token, shows_token

websockets = pytest.importorskip("websockets")
from websockets.sync.client import connect  # noqa: E402

SOON = 20
"""Seconds after which a test has failed; nothing takes so long."""
TOKEN = "correct-horse-battery"


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """No test waits for ever: after two minutes all threads tell where they are, and everything ends."""
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    Counts.go.set()
    for raw in Raw.open:
        raw.sock.close()
    Raw.open.clear()
    faulthandler.cancel_dump_traceback_later()


class Counts:
    """Says how often it was asked since its reset; `stuck` makes it wait until `go`."""

    go = threading.Event()

    def reset(self) -> None:
        self.asked = 0

    def policy(self, state):
        self.asked += 1
        if len(state.source) and state.source[-1] == "stuck":
            self.go.wait(SOON)
        return str(self.asked)


class Listens(Counts):
    source = "speech"


class Talks:
    source = target = "speech"

    def policy(self, state):
        return Write(np.zeros(1 << 22, np.float32), sample_rate=16_000)


def serving(make: Callable = Counts, agents: int = 1, told: list | None = None, **how) -> AgentServer:
    bounds = Bounds(**{"idle": SOON, "wait": SOON, **how.pop("bounds", {})})
    return AgentServer(
        [make] * agents,
        "test",
        port=0,
        bounds=bounds,
        tell=lambda line, wrong: (told if told is not None else []).append(line),
        **how,
    )


def answer(agent: RemoteAgent, *words: str, begin: bool = True) -> str:
    """One step of a sentence."""
    if begin:
        agent.reset()
    said = agent.policy(State(list(words)))
    return said.answer


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + SOON
    while not what():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)


class Raw:
    """A client by hand, that may send anything."""

    open: ClassVar[list["Raw"]] = []

    def __init__(self, address: str, shake: bool = True, **headers: str) -> None:
        host, _, port = address.removeprefix("ws://").rpartition(":")
        self.sock = socket.create_connection((host, int(port)), SOON)
        self.open.append(self)
        if not shake:
            return
        lines = {
            "Host": "x",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Protocol": "lagging-agent-1",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        self.sock.sendall(("GET / HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items()) + "\r\n").encode())
        self.head = b""
        while b"\r\n\r\n" not in self.head:
            self.head += self.sock.recv(1)
        if b" 101 " in self.head.partition(b"\r\n")[0]:
            self.hello = json.loads(self.frame()[1])

    def send(self, data: bytes, opcode: int = 1, mask: bool = True) -> None:
        self.sock.sendall(frame_of(data, opcode, mask))

    def frame(self) -> tuple[int, bytes]:
        """What the server sent: opcode and payload."""
        first, size = self.exactly(2)
        size &= 127
        if size > 125:
            size = int.from_bytes(self.exactly(2 if size == 126 else 8), "big")
        return first & 15, self.exactly(size)

    def exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            if not (more := self.sock.recv(count - len(data))):
                raise EOFError
            data += more
        return data

    def message(self) -> dict:
        return json.loads(self.frame()[1])

    def closed(self) -> tuple[int, str]:
        """Code and reason with which the server closed the connection."""
        while True:
            opcode, data = self.frame()
            if opcode == 8:
                return struct.unpack("!H", data[:2])[0], data[2:].decode()

    def rest(self) -> bytes:
        """All that comes until the server closes the connection."""
        data = b""
        with contextlib.suppress(ConnectionError):
            while more := self.sock.recv(65536):
                data += more
        return data

    def reset(self) -> None:
        """Hang up without a word."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


def frame_of(data: bytes, opcode: int = 1, mask: bool = True) -> bytes:
    size = len(data)
    long = b"" if size < 126 else struct.pack("!H", size) if size < 65536 else struct.pack("!Q", size)
    head = bytes([0x80 | opcode, (0x80 if mask else 0) | (size if size < 126 else 126 if size < 65536 else 127)])
    return head + long + (b"\0\0\0\0" if mask else b"") + data


BEGIN = b'{"type":"begin"}'
HEAR = b'{"type":"begin","sample_rate":16000}'
STEP = b'{"type":"step","source":["a"]}'
LAST = b'{"type":"step","source":["a"],"finished":true}'


# ---- nonsense ---------------------------------------------------------------------------------------------------

NONSENSE = [
    ([b"nonsense"], 1007, "not a message: JSON is malformed"),
    ([b""], 1007, "not a message"),
    ([b"[]"], 1007, "not a message: Expected `object`"),
    ([b'{"type":"destroy"}'], 1007, "Invalid value 'destroy'"),
    ([b'{"type":"begin","sentence":"x"}'], 1007, "Expected `int`, got `str`"),
    ([b'{"type":"begin","more":1}'], 1007, "unknown field `more`"),
    ([b"[" * 200_000], 1007, "not a message"),
    ([b'{"type":"begin","reference":' + b"[" * 200_000], 1007, "not a message"),
    ([b'{"type":"begin","sentence":1' + b"0" * 5000 + b"}"], 1007, "not a message"),
    ([STEP], 1007, "a step outside a sentence"),
    ([BEGIN, b'{"type":"end"}', STEP], 1007, "a step outside a sentence"),
    ([(b"\0" * 8, 2)], 1007, "samples outside a sentence"),
    ([BEGIN, (b"\0" * 7, 2)], 1007, "7 bytes are no samples"),
    ([BEGIN, (b"\0" * 8, 2)], 1007, "samples, but this agent takes text"),
    ([HEAR], 1007, "this agent takes text, but the sentence has a sample rate of 16000"),
    ([BEGIN, LAST, STEP], 1007, "tokens after the end of the source"),
    ([BEGIN, b'{"type":"step","erase":1}'], 1007, "1 tokens of the target are erased, where 0 stood"),
    ([BEGIN, b'{"type":"step","erase":-1}'], 1007, "not a message"),
    ([BEGIN, b'{"type":"step","source":"ab"}'], 1007, "Expected `array`"),
    ([(b"\xff\xfe", 1)], 1007, "invalid start byte"),
    ([BEGIN, (b"x", 3)], 1002, "invalid opcode"),
    ([BEGIN, (b"x" * 200, 9)], 1002, "control frame too long"),
    ([BEGIN, (b"x", 0)], 1002, "unexpected continuation frame"),
    ([(b"x" * ((1 << 20) + 1), 1)], 1009, "exceeds limit of 1048576 bytes"),
    ([BEGIN, (b"x" * ((1 << 20) + 4), 2)], 1009, "exceeds limit of 1048576 bytes"),
]


@pytest.mark.parametrize(("messages", "code", "reason"), NONSENSE, ids=[why for *_, why in NONSENSE])
def test_nonsense_is_cut_off_with_the_reason_and_harms_no_other(messages: list, code: int, reason: str) -> None:
    told: list[str] = []
    with serving(agents=2, told=told) as there:
        witness = RemoteAgent(there.address)
        state = State(["a"])
        witness.reset()
        assert witness.policy(state).answer == "1"
        bad = Raw(there.address)
        for message in messages:
            with contextlib.suppress(ConnectionError):  # it may be cut off before it has said everything
                bad.send(*(message if isinstance(message, tuple) else (message,)))
        assert (found := bad.closed())[0] == code
        assert reason in found[1]
        bad.sock.close()
        assert witness.policy(state).answer == "2"  # amid its sentence, and not reset
        other = RemoteAgent(there.address)
        assert answer(other, "a") == "1"  # with the agent that the bad one had
        assert witness.policy(state).answer == "3"
        witness.close()
        other.close()
    assert any(reason[:30] in line for line in told)


def test_frames_without_a_mask_are_cut_off() -> None:
    with serving() as there:
        bad = Raw(there.address)
        bad.send(BEGIN, mask=False)
        assert bad.closed()[0] == 1002
        bad.sock.close()


def test_speech_is_not_for_text_and_text_not_for_speech() -> None:
    for messages, reason in [
        ([BEGIN], "takes speech, but the sentence has a sample rate of 0"),
        ([HEAR, STEP], "tokens, but this agent takes speech"),
        ([HEAR, b'{"type":"step","finished":true}', (b"\0" * 4, 2)], "samples after the end of the source"),
    ]:
        with serving(Listens) as there:
            bad = Raw(there.address)
            for message in messages:
                bad.send(*(message if isinstance(message, tuple) else (message,)))
            assert reason in bad.closed()[1]
            bad.sock.close()
    with serving(Talks) as there:
        bad = Raw(there.address)
        bad.send(HEAR)
        bad.send(b'{"type":"step","target":["a"]}')
        assert "this agent writes speech" in bad.closed()[1]
        bad.sock.close()


def test_a_sentence_may_have_so_many_bytes_and_the_next_as_many_again() -> None:
    with serving(Listens, bounds={"sentence": 100_000}) as there:
        client = Raw(there.address)
        for _ in range(3):
            client.send(HEAR)
            assert client.message() == {"type": "ready"}
            client.send(b"\0" * 90_000, 2)
            client.send(b'{"type":"step"}')
            assert client.message()["actions"] == ["1"]
        client.send(b"\0" * 90_000, 2)
        assert client.closed() == (1008, "a sentence may hold 100000 bytes (--max-sentence)")
        client.sock.close()


def words(count: int, word: str = "ab", kind: str = "source") -> bytes:
    return json.dumps({"type": "step", kind: [word] * count}, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("word", "kind"),
    [("ab", "source"), ("ab", "target"), ("", "source"), ("𐍈" * 50, "source")],
    ids=["short", "written", "empty", "wide"],
)
def test_what_is_held_of_a_text_counts_and_not_its_letters(word: str, kind: str) -> None:
    """A list of short words takes twelve times the memory of its letters."""
    with serving(bounds={"sentence": 1_000_000}) as there:
        client = Raw(there.address)
        client.send(BEGIN)
        client.message()
        count = 1500 if len(word) > 2 else 10_000
        sent = 0
        for _ in range(20):
            client.send(words(count, word, kind))
            opcode, data = client.frame()
            if opcode == 8:
                break
            sent += 8 * count + count * (50 if word == "ab" else 4 * len(word))
        assert data[2:].decode() == "a sentence may hold 1000000 bytes (--max-sentence)"
        assert sent < 1_000_000
        client.sock.close()


def test_what_is_erased_does_not_count() -> None:
    with serving(bounds={"sentence": 1_000_000}) as there:
        client = Raw(there.address)
        client.send(BEGIN)
        client.message()
        for erase in (0, *[10_000] * 10):
            client.send(json.dumps({"type": "step", "erase": erase, "target": ["ab"] * 10_000}).encode())
            assert client.message()["type"] == "answer"
        client.sock.close()


def test_what_an_agent_says_in_a_sentence_counts_too() -> None:
    with serving(Talks, bounds={"sentence": 40 << 20, "memory": 1 << 30}) as there:
        client = Raw(there.address)
        client.send(HEAR)
        client.message()
        for _ in range(2):
            client.send(b'{"type":"step"}')
            while client.frame()[0] == 2:
                pass
        client.send(b'{"type":"step"}')
        assert client.closed() == (1008, "a sentence may hold 41943040 bytes (--max-sentence)")
        client.sock.close()


def test_all_clients_together_hold_no_more_than_the_server_may() -> None:
    mebi = 1 << 20
    assert Bounds().sentence_bytes(1) == 256 * mebi
    for agents in (1, 2, 5, 40):
        held = Bounds().sentence_bytes(agents)
        assert 2 * agents * held + 32 * 4 * mebi <= 768 * mebi  # twice, while a recording grows
    assert Bounds(sentence=99).sentence_bytes(4) == 99
    for bounds, agents in [
        (Bounds(sentence=321 * mebi), 1),
        (Bounds(sentence=100 * mebi), 4),
        (Bounds(message=64 * mebi), 1),
        (Bounds(memory=mebi), 1),
        (Bounds(), 400),
    ]:
        with pytest.raises(UsageError, match=r"MiB, but it may hold \d+ MiB\n  fix: a larger --max-memory, or "):
            bounds.sentence_bytes(agents)
    with pytest.raises(UsageError, match="--max-memory"):
        serving(agents=4, bounds={"sentence": 256 * mebi})


def test_a_source_that_is_too_long_for_a_message_is_told_by_the_client() -> None:
    with serving(bounds={"message": 1000}) as there:
        agent = RemoteAgent(there.address)
        agent.reset()
        with pytest.raises(Failure, match=r"a message of 5\d\d\d bytes, but the server takes 1000 \(--max-message\)"):
            agent.policy(State(["x" * 5000]))
        assert answer(agent, "a") == "1"
        agent.close()


# ---- hanging up, and falling silent -----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["reset", "close", "goodbye", "shutdown"])
def test_who_hangs_up_amid_a_sentence_leaves_a_reset_agent(how: str) -> None:
    told: list[str] = []
    with serving(told=told, bounds={"idle": 1}) as there:
        leaves = Raw(there.address)
        leaves.send(BEGIN)
        assert leaves.message() == {"type": "ready"}
        leaves.send(STEP)
        assert leaves.message()["actions"][0] == "1"
        if how == "reset":
            leaves.reset()
        elif how == "close":
            leaves.sock.close()
        elif how == "goodbye":
            leaves.send(struct.pack("!H", 1000), 8)
        else:
            leaves.sock.shutdown(socket.SHUT_WR)
        agent = RemoteAgent(there.address)
        assert answer(agent, "a") == "1"
        agent.close()
        leaves.sock.close()
    gone = [line.partition(": ")[2] for line in told if "amid" in line]
    assert gone[0] == ("cut off: silent for 1 s amid a sentence" if how == "goodbye" else "gone amid a sentence")


def test_who_hangs_up_amid_a_step_leaves_the_agent_when_it_is_done() -> None:
    Counts.go.clear()
    with serving() as there:
        leaves = Raw(there.address)
        leaves.send(BEGIN)
        leaves.message()
        leaves.send(b'{"type":"step","source":["stuck"]}')
        until(lambda: there.busy)
        leaves.reset()
        agent = RemoteAgent(there.address)
        threading.Timer(0.3, Counts.go.set).start()
        assert answer(agent, "a") == "1"
        agent.close()


@pytest.mark.parametrize("amid", [True, False], ids=["amid a sentence", "between sentences"])
def test_who_is_silent_is_cut_off_and_the_agent_is_given_back(amid: bool) -> None:
    with serving(bounds={"idle": 0.5}) as there:
        silent = Raw(there.address)
        if amid:
            silent.send(BEGIN)
            silent.message()
        agent = RemoteAgent(there.address)
        assert answer(agent, "a") == "1"  # when the other has been cut off, if it has the agent
        assert silent.closed() == (1008, "silent for 0.5 s" + " amid a sentence" * amid)
        silent.sock.close()
        agent.close()


def test_our_own_client_comes_back_when_it_was_cut_off_between_sentences() -> None:
    told: list[str] = []
    with serving(told=told, bounds={"idle": 0.3}) as there:
        agent = RemoteAgent(there.address)
        for _ in range(2):
            assert answer(agent, "a") == "1"
            before = sum("cut off" in line for line in told)
            until(lambda before=before: sum("cut off" in line for line in told) > before)
        with pytest.raises(Failure, match=r"the server closed it \(1008 silent for 0.3 s amid a sentence\)"):
            agent.policy(State(["a", "b"]))
        agent.close()


def test_an_agent_may_take_longer_over_a_step_than_a_client_may_be_silent() -> None:
    Counts.go.clear()
    with serving(bounds={"idle": 0.3}) as there:
        agent = RemoteAgent(there.address)
        threading.Timer(1.0, Counts.go.set).start()
        assert answer(agent, "stuck") == "1"
        agent.close()


def trickle(sock: socket.socket, data: bytes) -> None:
    """Send so slowly that it would take for ever."""
    with contextlib.suppress(OSError):
        for place in range(len(data)):
            sock.sendall(data[place : place + 1])
            time.sleep(0.05)


def test_a_message_that_comes_by_the_byte_does_not_keep_an_agent() -> None:
    with serving(bounds={"idle": 0.5}) as there:
        slow = Raw(there.address)
        slow.send(BEGIN)
        slow.message()
        thread = threading.Thread(target=trickle, args=(slow.sock, frame_of(b" " * 1000)))
        thread.start()
        agent = RemoteAgent(there.address)
        assert answer(agent, "a") == "1"
        assert slow.closed()[0] == 1008
        slow.sock.close()
        thread.join(SOON)
        agent.close()


def asking(client: Raw, message: bytes, pause: float) -> threading.Thread:
    """A thread that sends a message again and again."""

    def ask() -> None:
        with contextlib.suppress(OSError):
            for _ in range(400):
                client.send(message)
                time.sleep(pause)

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


def test_empty_steps_do_not_keep_an_agent() -> None:
    with serving(bounds={"idle": 0.5}) as there:
        slow = Raw(there.address)
        slow.send(BEGIN)
        slow.message()
        thread = asking(slow, b'{"type":"step"}', 0.1)
        agent = RemoteAgent(there.address)
        assert answer(agent, "a") == "1"
        assert slow.closed() == (1008, "the sentence has waited for its client for 0.5 s in all (--idle)")
        slow.sock.close()
        thread.join(SOON)
        agent.close()


def test_a_client_may_take_the_time_that_its_source_lasts() -> None:
    # 1.25 s in all: more than a client may be idle, and a second of room for a busy machine
    with serving(Listens, bounds={"idle": 1.0}) as there:
        client = Raw(there.address)
        client.send(HEAR)
        client.message()
        for _ in range(5):
            time.sleep(0.25)  # of speech at its own pace
            client.send(b"\0" * 16_000, 2)
            client.send(b'{"type":"step"}')
            assert client.message()["type"] == "answer"
        client.sock.close()
    with serving(bounds={"idle": 1.0}) as there:
        client = Raw(there.address)
        client.send(BEGIN)
        client.message()
        for _ in range(5):
            client.send(STEP)
            assert client.message()["type"] == "answer"
            time.sleep(0.25)  # of text, two seconds for a word
        client.sock.close()


def test_a_sentence_has_a_deadline_however_busy_its_client_is() -> None:
    told: list[str] = []
    with serving(told=told, bounds={"deadline": 1.0}) as there:
        busy = Raw(there.address)
        busy.send(BEGIN)
        busy.message()
        thread = asking(busy, STEP, 0.05)
        agent = RemoteAgent(there.address)
        assert answer(agent, "a") == "1"
        assert busy.closed() == (1008, "a sentence may take 1 s (--deadline)")
        busy.sock.close()
        thread.join(SOON)
        agent.close()


def test_who_takes_a_little_at_a_time_has_the_deadline_too() -> None:
    with serving(Talks, bounds={"deadline": 1.0}) as there:
        slow = Raw(there.address)
        slow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.send(HEAR)
        slow.message()
        slow.send(b'{"type":"step"}')
        agent = RemoteAgent(there.address)
        agent.reset()
        assert agent.policy(State(np.zeros(0, np.float32), 0, 16_000)) is not None
        agent.close()
        slow.sock.close()


def test_pings_are_no_sign_of_life() -> None:
    with serving(bounds={"idle": 0.5}) as there:
        pinging = Raw(there.address)
        pinging.send(BEGIN)
        pinging.message()
        thread = threading.Thread(target=trickle, args=(pinging.sock, frame_of(b"", 9) * 100))
        thread.start()
        assert pinging.closed()[0] == 1008
        pinging.sock.close()
        thread.join(SOON)


def test_a_handshake_that_never_comes_or_comes_by_the_byte_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "OPENING", 0.5)
    with serving() as there:
        nothing, slow = Raw(there.address, shake=False), Raw(there.address, shake=False)
        thread = threading.Thread(target=trickle, args=(slow.sock, b"GET / HTTP/1.1\r\nX-Slow: " + b"x" * 500))
        thread.start()
        agent = RemoteAgent(there.address)
        assert answer(agent, "a") == "1"
        assert nothing.rest() == slow.rest() == b""
        thread.join(SOON)
        nothing.sock.close()
        slow.sock.close()
        assert answer(agent, "a") == "1"
        agent.close()


@pytest.mark.parametrize(
    "said", [b"\x00\xff" * 5000, b"GET / HTTP/1.1\r\n\r\n", b"EHLO me\r\n", b"GET " + b"x" * 99_999]
)
def test_what_is_no_handshake_is_refused(said: bytes) -> None:
    with serving() as there:
        odd = Raw(there.address, shake=False)
        with contextlib.suppress(ConnectionError):
            odd.sock.sendall(said)
        reply = odd.rest()
        assert reply == b"" or reply.startswith(b"HTTP/1.1 4")
        odd.sock.close()
        agent = RemoteAgent(there.address)
        assert answer(agent, "a") == "1"
        agent.close()


def test_who_takes_a_little_at_a_time_does_not_keep_an_agent() -> None:
    with serving(Talks, bounds={"idle": 0.5}) as there:
        slow = Raw(there.address)
        slow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.send(HEAR)
        slow.message()
        slow.send(b'{"type":"step"}')

        enough = threading.Event()

        def sip() -> None:
            with contextlib.suppress(OSError):
                while not enough.wait(0.02) and slow.sock.recv(64):
                    pass

        thread = threading.Thread(target=sip)
        thread.start()
        agent = RemoteAgent(there.address)
        agent.reset()
        assert agent.policy(State(np.zeros(0, np.float32), 0, 16_000)) is not None
        agent.close()
        enough.set()
        thread.join(SOON)


def test_who_asks_on_and_on_and_takes_nothing_does_not_keep_an_agent() -> None:
    with serving(bounds={"idle": 0.5}) as there:
        deaf = Raw(there.address)
        deaf.send(BEGIN)

        def ask() -> None:
            with contextlib.suppress(OSError):
                while True:
                    deaf.sock.sendall(frame_of(b'{"type":"step"}') * 50 + frame_of(b"x" * 100, 9) * 50)

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join(SOON)
        assert not thread.is_alive()
        agent = RemoteAgent(there.address)
        assert answer(agent, "a") == "1"
        agent.close()


def test_who_takes_nothing_does_not_keep_an_agent() -> None:
    told: list[str] = []
    with serving(Talks, told=told, bounds={"idle": 0.5}) as there:
        deaf = Raw(there.address)
        deaf.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.send(HEAR)
        deaf.message()
        deaf.send(b'{"type":"step"}')
        agent = RemoteAgent(there.address)
        agent.reset()
        said = agent.policy(State(np.zeros(0, np.float32), 0, 16_000))
        assert len(said.answer.content) == 1 << 22
        agent.close()
        deaf.sock.close()
    assert any("gone amid a sentence" in line for line in told)


# ---- many at once -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agents", [1, 2])
def test_two_clients_at_once_get_what_each_would_get_alone(agents: int) -> None:
    wrong: list[object] = []

    def client(address: str, number: int) -> None:
        agent = RemoteAgent(address)
        try:
            for sentence in range(30):
                state = State([], sentence)
                agent.reset()
                for step in range(5):
                    state.source.append(f"{number}-{sentence}-{step}")
                    said = agent.policy(state).answer
                    state.target.append(said)
                if state.target != ["1", "2", "3", "4", "5"]:
                    wrong.append(state)
        except BaseException as error:
            wrong.append(error)
            raise
        finally:
            agent.close()

    with serving(agents=agents, bounds={"wait": 10}) as there:
        threads = [threading.Thread(target=client, args=(there.address, number)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert there.sentences == 4 * 30
    assert not wrong


def test_who_waits_longest_is_served_first() -> None:
    pool = Pool([AgentThread(Counts)])
    first = pool.take(0)
    order: list[int] = []

    def wait(number: int) -> None:
        agent = pool.take(SOON)
        order.append(number)
        pool.give(agent)

    threads = []
    for number in range(5):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        until(lambda number=number: len(pool._waiting) == number + 1)
    assert pool.take(0.01) is None
    pool.give(first)
    for thread in threads:
        thread.join(SOON)
    assert order == [0, 1, 2, 3, 4]
    assert pool.taken == 6
    pool.close()
    assert pool.take(SOON) is None


def test_when_all_agents_are_taken_it_is_told_and_why() -> None:
    Counts.go.clear()
    with serving(bounds={"wait": 0.3}) as there:
        stuck = Raw(there.address)
        stuck.send(BEGIN)
        stuck.message()
        stuck.send(b'{"type":"step","source":["stuck"]}')
        until(lambda: there.busy)
        agent = RemoteAgent(there.address)
        agent.reset()
        with pytest.raises(
            Failure, match=r"1013 no agent was free for 0.3 s: 1 agent, all taken, one .* a step for . s"
        ):
            agent.policy(State(["a"]))
        Counts.go.set()
        assert stuck.message()["type"] == "answer"
        stuck.sock.close()
        assert answer(agent, "a") == "1"
        agent.close()


def test_a_server_that_stops_keeps_nobody_waiting() -> None:
    Counts.go.clear()
    there = serving(bounds={"wait": 60}).__enter__()
    taken, waits = Raw(there.address), Raw(there.address)
    taken.send(BEGIN)
    taken.message()
    waits.send(BEGIN)
    time.sleep(0.2)
    begin = time.monotonic()
    there.__exit__()
    assert time.monotonic() - begin < SOON
    for client in (taken, waits):
        assert client.closed()[0] in (1001, 1013)
        client.sock.close()


def test_a_sentence_that_is_over_gives_its_agent_back_at_once() -> None:
    class Done:
        def policy(self, state):
            return Write("x", finished=True) if state.source == ["done"] else None

    with serving(Done, bounds={"wait": 5}) as there:
        one, two = RemoteAgent(there.address), RemoteAgent(there.address)
        for words, finished in ((["done"], False), (["a"], True)):
            for agent in (one, two, one):
                state = State(list(words))
                state.finished = finished
                agent.reset()
                agent.policy(state)
        raw = Raw(there.address)
        raw.send(BEGIN)
        raw.message()
        raw.send(b'{"type":"end"}')
        one.reset()
        one.policy(State(["a"]))
        for agent in (one, two):
            agent.close()
        raw.sock.close()


def test_only_so_many_clients() -> None:
    with serving(agents=2, bounds={"connections": 2}) as there:
        opening = [Raw(there.address, shake=False) for _ in range(5)]  # do not count
        one, two = Raw(there.address), Raw(there.address)
        for client in (one, two):
            client.send(BEGIN)
            client.message()
        full = Raw(there.address)
        assert full.head.startswith(b"HTTP/1.1 503 ")
        with pytest.raises(
            UsageError, match="refused the connection: 503 2 clients are connected, and more may not be"
        ):
            RemoteAgent(there.address)
        one.reset()
        until(lambda: len(there._sessions) == 1)
        agent = RemoteAgent(there.address)
        assert answer(agent, "a") == "1"
        agent.close()
        for client in (two, full, *opening):
            client.sock.close()


def test_who_has_been_idle_longest_goes_first() -> None:
    told: list[str] = []
    with serving(told=told, bounds={"connections": 3}) as there:
        first, second, third = (Raw(there.address) for _ in range(3))
        first.send(BEGIN)
        first.message()
        until(lambda: sum(session.idle_since is not None for session in there._sessions) == 2)
        fourth = Raw(there.address)
        assert second.closed() == (1008, "idle, and another client has come")
        for client in (third, fourth):
            client.send(b'{"type":"end"}')
        first.send(STEP)
        assert first.message()["actions"] == ["1"]  # amid its sentence, and not idle
        assert sum("cut off: idle, and another client has come" in line for line in told) == 1
        for client in (first, second, third, fourth):
            client.sock.close()


def test_our_own_client_comes_back_when_it_had_to_make_room() -> None:
    with serving(bounds={"connections": 2}) as there:
        agent = RemoteAgent(there.address)
        assert answer(agent, "a") == "1"
        agent.policy(finished("a"))
        others = [Raw(there.address) for _ in range(3)]
        assert answer(agent, "a") == "1"
        agent.close()
        for client in others:
            client.sock.close()


def finished(*words: str) -> State:
    state = State(list(words))
    state.finished = True
    return state


def test_many_who_come_at_once_are_not_more_than_there_may_be() -> None:
    most: list[int] = []
    with serving(bounds={"connections": 4}) as there:
        come = threading.Barrier(24)

        def client() -> None:
            raw = Raw(there.address, shake=False)
            come.wait(SOON)
            with contextlib.suppress(OSError, EOFError):
                Raw(there.address)
            raw.sock.close()

        threads = [threading.Thread(target=client) for _ in range(24)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            most.append(sum(one.state.name == "OPEN" for one in list(there._connections)))
            time.sleep(0.001)
        assert len(there._clients) <= 4
    assert max(most) <= 4 + 1  # one may be on its way out


def test_half_open_connections_shut_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "EXTRA_CONNECTIONS", 8)
    with serving(bounds={"connections": 2}) as there:
        enough, half = threading.Event(), []

        def flood() -> None:
            while not enough.wait(0.05) and len(half) < 400:
                half.append(Raw(there.address, shake=False))

        thread = threading.Thread(target=flood)
        thread.start()
        until(lambda: len(half) > 20)
        for _ in range(10):
            agent = RemoteAgent(there.address)
            assert answer(agent, "a") == "1"
            agent.close()
        enough.set()
        thread.join(SOON)
        for client in half:
            client.sock.close()


def test_who_hangs_up_while_it_waits_for_an_agent_leaves_the_queue() -> None:
    told: list[str] = []
    with serving(told=told, bounds={"connections": 3}) as there:
        taken = Raw(there.address)
        taken.send(BEGIN)
        taken.message()
        waits = [Raw(there.address) for _ in range(2)]
        for client in waits:
            client.send(BEGIN)
        until(lambda: len(there._pool._waiting) == 2)
        for client in waits:
            client.reset()
        until(lambda: not there._pool._waiting)
        until(lambda: len(there._clients) == 1)
        agent = RemoteAgent(there.address)
        taken.send(b'{"type":"end"}')
        assert answer(agent, "a") == "1"
        agent.close()
        taken.sock.close()
    assert sum("gone while it waited for an agent" in line for line in told) == 2


def test_a_flood_of_connections_is_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "EXTRA_CONNECTIONS", 3)
    with serving(bounds={"connections": 2}) as there:
        flood = [Raw(there.address, shake=False) for _ in range(20)]
        closed = [client for client in flood if _is_closed(client)]
        assert len(closed) >= 15
        for client in flood:
            client.sock.close()
        until(lambda: all(one.state.name == "CLOSED" for one in list(there._connections)))
        agent = RemoteAgent(there.address)
        assert answer(agent, "a") == "1"
        agent.close()


def _is_closed(client: Raw) -> bool:
    client.sock.settimeout(0.2)
    try:
        return client.sock.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


# ---- who may come in --------------------------------------------------------------------------------------------


def test_a_token_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    told: list[str] = []
    with serving(token=TOKEN, told=told) as there:
        for wrong in (None, "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper()):
            with pytest.raises(
                UsageError, match=r"401 no token, or a wrong one\n  fix: .*token_file=… or LAGGING_TOKEN\.$"
            ):
                RemoteAgent(there.address, token=wrong)
        assert all(TOKEN not in line for line in told)
        for header in (TOKEN, f"Basic {TOKEN}", "Bearer", "Bearer \xff", ""):
            raw = Raw(there.address, Authorization=header)
            assert raw.head.startswith(b"HTTP/1.1 401 ")
            raw.sock.close()
        monkeypatch.setenv("LAGGING_TOKEN", TOKEN)
        from_address(there.address, {}).close()
        (tmp_path / "token").write_text(TOKEN + "\n")
        monkeypatch.setenv("LAGGING_TOKEN", "another-token-altogether")
        agent = from_address(there.address, {"token_file": str(tmp_path / "token")})
        assert answer(agent, "a") == "1"
        agent.close()


def test_others_cannot_reach_it_without_a_token() -> None:
    for host in ("0.0.0.0", "::"):
        with pytest.raises(UsageError, match="can be reached from other machines") as refused:
            AgentServer([Counts], "x", host=host, port=0)
        assert "--token-file or LAGGING_TOKEN" in str(refused.value)
    with AgentServer([Counts], "x", host="0.0.0.0", port=0, token=TOKEN) as there:
        agent = RemoteAgent(there.address.replace("0.0.0.0", "127.0.0.1"), token=TOKEN)
        assert answer(agent, "a") == "1"
        agent.close()


def test_other_names_of_this_machine() -> None:
    hosts = ["localhost", "127.0.0.2"]
    with contextlib.suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        hosts.append("::1")
    for host in hosts:
        with AgentServer([Counts], "x", host=host, port=0) as there:
            agent = RemoteAgent(there.address)
            assert answer(agent, "a") == "1"
            agent.close()


def test_where_nobody_can_listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=rf"cannot listen on 127.0.0.1:{port}: .*\n  fix: another --port; 0 finds"):
            AgentServer([Counts], "x", port=port)
    with pytest.raises(UsageError, match=r"cannot listen on no\.such\.host\.invalid"):
        AgentServer([Counts], "x", host="no.such.host.invalid", port=0)


def test_web_pages_may_not_come_in() -> None:
    with serving() as there:
        page = Raw(there.address, Origin="http://127.0.0.1:8000")
        assert page.head.startswith(b"HTTP/1.1 403 ")
        page.sock.close()


@pytest.mark.parametrize("offered", [None, ["lagging-agent-2"], ["chat", "lagging-agent-0"]])
def test_other_versions_of_the_protocol_are_refused(offered: list[str] | None) -> None:
    with serving() as there, pytest.raises(websockets.InvalidStatus) as refused:
        connect(there.address, subprotocols=offered).__enter__()
    assert refused.value.response.status_code == 400
    assert b"subprotocol" in refused.value.response.body


def test_tokens(tmp_path) -> None:
    assert read_token(None, {}) is None
    for bad in ("short", "with spaces in the middle", "", "with-ümlauts-and-more"):
        with pytest.raises(UsageError, match=r"the token in LAGGING_TOKEN is not 16 or more .*\n  fix: python -c"):
            read_token(None, {"LAGGING_TOKEN": bad})
    with pytest.raises(UsageError, match=r"cannot read .*: No such file"):
        read_token(str(tmp_path / "none"), {"LAGGING_TOKEN": TOKEN})
    (tmp_path / "binary").write_bytes(b"\xff" * 40)
    with pytest.raises(UsageError, match="holds no token"):
        read_token(str(tmp_path / "binary"), {})
    assert shows_token(TOKEN, f"bearer  {TOKEN} ")
    assert not shows_token(TOKEN, None)
    assert not shows_token(TOKEN, "Bearer \ud800")


# ---- agents that cannot be made, and such as are broken ---------------------------------------------------------


def test_an_agent_that_cannot_be_made_is_told_and_nothing_stays_open() -> None:
    from lagging.errors import LaggingError

    made = []

    def make() -> object:
        made.append(1)
        if len(made) == 2:
            raise OSError("no weights")
        return Counts()

    threads = threading.active_count()
    with pytest.raises(LaggingError, match=r"(?s)the agent could not be made: Traceback.*OSError: no weights"):
        AgentServer([make, make], "x", port=0)
    until(lambda: threading.active_count() <= threads)


def test_threads_and_connections_do_not_pile_up() -> None:
    before = threading.active_count()
    with serving() as there:
        for number in range(30):
            agent = RemoteAgent(there.address)
            assert answer(agent, "a") == "1"
            if number % 2:
                agent.close()
            else:
                agent._connection.socket.shutdown(socket.SHUT_RDWR)
                agent.close()
        until(lambda: all(one.state.name == "CLOSED" for one in list(there._connections)))
    until(lambda: threading.active_count() <= before)
