# SPDX-License-Identifier: Apache-2.0
"""A remote agent does what it does where it is: the same loop, the same log. Real sockets, all bounded in time."""

import contextlib
import faulthandler
import gc
import itertools
import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagging import UsageError
from lagging.agents import DONE, Revise, State, Traits, Write
from lagging.agents.failures import Failure
from lagging.agents.protocol import Timed, as_agent
from lagging.agents.remote import AgentServer, RemoteAgent, client, from_address
from lagging.agents.remote.messages import Declared
from lagging.agents.runner.jobs import SentenceRunner, Settings
from lagging.agents.sentence import Limits
from lagging.agents.sources import SpeechTestSet, TextTestSet
from lagging.errors import MissingExtraError

websockets = pytest.importorskip("websockets")
pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """No test waits for ever: after two minutes all threads tell where they are, and everything ends."""
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


LINES = ["see you soon at the lake", "no", "", "a rather longer sentence that goes on and on for some more words"]


def lines_of(agent, source, references=None, folder=None, **how) -> list[dict]:
    """What the log says of an agent, times aside."""
    traits = Traits.of(agent)
    runner = SentenceRunner(agent, traits, source, references, Settings(times=False, **how), folder)
    return [json.loads(runner.translate(place)[0]) for place in range(len(source))]


def both(make, source, references=None, folder=None, **how) -> tuple[list[dict], list[dict]]:
    """The log of an agent where it is, and from afar."""
    here = lines_of(as_agent(make()), source, references, folder, **how)
    with AgentServer([make], "test", port=0) as server:
        agent = RemoteAgent(server.address, reconnect=0)
        there = lines_of(agent, source, references, folder, **how)
        agent.close()
    return here, there


# ---- agents -----------------------------------------------------------------------------------------------------


class WaitK:
    def __init__(self, k: int = 2) -> None:
        self.k = k

    def policy(self, state):
        lead = len(state.source) - len(state.target)
        if lead and (state.finished or lead >= self.k):
            return state.source[len(state.target)].upper()
        return None


class Keeps(WaitK):
    """Uses everything that it can keep."""

    def reset(self) -> None:
        self.asked = 0

    def policy(self, state):
        self.asked += 1
        state.memory = [*(state.memory or []), len(state.source)]
        return f"{state.sentence}:{self.asked}:{len(state.memory)}" if state.finished and self.asked < 20 else None


class Chunkwise:
    chunkwise = True

    def policy(self, state):
        return Write(" ".join([str(len(state.target))] * len(state.source)), finished=state.finished)


class Retranslates:
    chunkwise = True

    def policy(self, state):
        words = state.source[::-1] if len(state.source) % 2 else state.source
        return Revise(" ".join(words), finished=state.finished)


class Erases:
    def policy(self, state):
        if state.target and len(state.source) % 2 == 0 and state.target[-1] != "kept":
            return Write(["kept", "for", "kept"], erase=1)
        if state.finished:
            return DONE if state.target else "end"
        return [None, "one", ["two", Write("three")]] if len(state.target) < 3 * len(state.source) else None


class Yields:
    def policy(self, state):
        for word in state.source[len(state.target) :]:
            yield word
            yield None


class Pieces:
    def policy(self, state):
        new = state.source[len(state.target) // 2 :]
        return Write([piece for word in new for piece in (f"▁{word[:1]}", word[1:] + "x")]) if new else None


class Eager:
    eager = True

    def policy(self, state):
        lead = len(state.source) - len(state.target) + 1
        if lead > 0 and (state.finished or not state.target or lead > 2):
            return ["well", *state.source][len(state.target)]
        return None


class Patient:
    patience = 3
    must_finish = True

    def reset(self) -> None:
        self.asked = 0

    def policy(self, state):
        self.asked += state.finished
        return Write("at last", finished=True) if self.asked == 3 else None


class Oracle:
    sees_reference = True

    def policy(self, state):
        words = state.reference.split()
        return f"{words[len(state.target)]}/{state.source_length}" if len(state.target) < len(words) else None


class NumPyish:
    """Strings of NumPy, and a time that was measured by the agent."""

    def policy(self, state):
        return Timed(np.str_("word") if len(state.target) < len(state.source) else None, 0.25)


GOOD = [WaitK, Keeps, Chunkwise, Retranslates, Erases, Yields, Eager, Patient, NumPyish, lambda: WaitK(3).policy]


@pytest.mark.parametrize("make", GOOD, ids=lambda make: make.__name__)
def test_the_log_is_the_same_from_afar(make) -> None:
    here, there = both(make, TextTestSet(LINES), LINES)
    assert here == there
    assert not any("failed" in line for line in here)
    assert all(line["delays"] for line in here if line["source_length"])


@pytest.mark.parametrize(("level", "joined_by"), [("word", "spm"), ("char", "spm"), ("token", "none")])
def test_pieces_and_levels_are_the_same_from_afar(level: str, joined_by: str) -> None:
    here, there = both(Pieces, TextTestSet(LINES, "word", 2), level=level, joined_by=joined_by)
    assert here == there
    assert len(here[0]["delays"]) > 4


def test_an_oracle_sees_the_reference_from_afar_and_no_other_agent_does() -> None:
    here, there = both(Oracle, TextTestSet(LINES), [line.upper() or "NONE" for line in LINES])
    assert here == there
    assert here[0]["prediction"].startswith("SEE/6")
    seen = []

    def spy(state):
        seen.append((state.reference, state.source_length))

    both(lambda: spy, TextTestSet(["a"]), ["secret"])
    assert set(seen) == {(None, None)}


def test_characters_of_any_kind_arrive_as_they_are() -> None:
    odd = ['"quoted\\" \t', "日本語 𝄞 e\u0301", "\u2028 \x00 \x7f", "ﬁ … “ ”"]
    here, there = both(lambda: WaitK(1), TextTestSet(odd, "char"), level="char", joined_by="none")
    assert here == there
    assert "𝄞" in here[1]["prediction"]


class Bad:
    """Does what it must not, in a way that is chosen by the first word."""

    def reset(self) -> None:
        Bad.resets += 1

    resets = 0

    def policy(self, state):
        how = state.source[0]
        if how == "wait":
            return WaitK().policy(state)
        if how == "raises":
            raise ValueError("with \ud800 surrogate" if len(state.source) > 1 else "plainly")
        if how == "exits":
            raise SystemExit(3)
        if how == "stops":
            raise StopIteration
        if how == "forever":
            return "again"
        if how == "mutates":
            state.target.append("sneaked in")
            return None
        if how == "replaces":
            state.target = ["another"]
            return None
        return {
            "number": 42,
            "bytes": b"bytes",
            "nested": ["a", ["b", 42]],
            "erase": Write("x", erase="2"),
            "numpy erase": Write("x", erase=np.int64(1)),
            "too-much": Write("x", erase=2),
            "negative": Write("x", erase=-2),
            "content": Write(42),
            "tokens": Write(["a", 3]),
            "revise": Revise(None),
            "array": np.zeros(3),
            "set": {"a"},
            "after": [DONE, "more"],
            "silent": None,
            "blank": "  ",
            "object": Bad,
        }[" ".join(state.source[:2]) if how == "numpy" else how]


WAYS = "raises exits stops forever mutates replaces number bytes nested erase numpy|erase too-much negative content"
WAYS = [way.replace("|", " ") for way in f"{WAYS} tokens revise set after silent blank object".split()]


def test_every_failure_is_the_same_from_afar_and_the_server_lives_on() -> None:
    lines = [text for way in WAYS for text in (way, "wait for it")]
    here, there = both(Bad, TextTestSet(lines), limits=Limits(tokens=50))
    assert here == there
    assert [("failed" in line) for line in there] == [True, False] * len(WAYS)
    kinds = {line["source"]: line["kind"] for line in there if "failed" in line}
    assert {kinds[way] for way in WAYS} == {
        *("raised", "wrong-type", "never-finished", "changed-state", "erased-too-much", "after-finish"),
        "nothing-written",
    }
    trace = there[0]["traceback"]
    assert trace.startswith("Traceback")
    assert 'raise ValueError("with' in trace
    assert "lagging/agents/remote" not in trace


def test_what_cannot_be_sent_is_told() -> None:
    here, there = both(Bad, TextTestSet(["raises twice", "array"]), limits=Limits(tokens=50))
    assert [line["kind"] for line in there] == [line["kind"] for line in here]
    assert there[0] == here[0]

    def surrogate(state):
        return "\ud800"

    _, there = both(lambda: surrogate, TextTestSet(["a", "b"]))
    assert [line["kind"] for line in there] == ["raised", "raised"]
    assert "UnicodeEncodeError" in there[0]["failed"]


def test_a_reset_that_raises_fails_the_sentence_only() -> None:
    class Sulks(WaitK):
        resets = 0

        def reset(self) -> None:
            self.resets += 1
            if self.resets == 2:
                raise RuntimeError("not now")

    here, there = both(Sulks, TextTestSet(["a b", "c d", "e f"]))
    assert here == there
    assert ["failed" in line for line in there] == [False, True, False]


def test_an_endless_generator_ends() -> None:
    def endless(state):
        while True:
            yield "word"

    here, there = both(lambda: endless, TextTestSet(["a"]))
    assert here[0]["kind"] == there[0]["kind"] == "never-finished"


def test_a_long_traceback_is_cut() -> None:
    def shouts(state):
        raise ValueError("x" * 1_000_000)

    _, there = both(lambda: shouts, TextTestSet(["a"]))
    assert there[0]["kind"] == "raised"
    assert 10_000 < len(there[0]["traceback"]) < 20_000


# ---- anything that an agent may do, in any order ----------------------------------------------------------------

WORDS = st.sampled_from(["a", "b c", "", " ", "d"])
TOKENS = st.lists(st.sampled_from(["a", "b", ""]), max_size=3)
LEAVES = st.one_of(
    st.none(),
    WORDS,
    st.builds(Write, st.one_of(WORDS, TOKENS), st.booleans(), st.integers(-1, 2)),
    st.builds(Revise, st.one_of(WORDS, TOKENS), st.booleans()),
)
ANSWERS = st.one_of(LEAVES, st.lists(LEAVES, max_size=3))


class Scripted:
    """Answers by a script, and keeps what it saw."""

    def __init__(self, traits: dict) -> None:
        self.script, self.saw = [], []
        for name, value in traits.items():
            setattr(self, name, value)

    def policy(self, state):
        self.saw.append((list(state.source), state.finished, list(state.target)))
        return self.script[len(self.saw) - 1] if len(self.saw) <= len(self.script) else None


@pytest.mark.parametrize("traits", [{}, {"chunkwise": True}, {"patience": 2, "must_finish": True}], ids=str)
def test_any_answers_in_any_order_are_the_same_from_afar(traits: dict) -> None:
    here, there = Scripted(traits), Scripted(traits)
    with AgentServer([lambda: there], "script", port=0) as server:
        remote = RemoteAgent(server.address)

        @settings(max_examples=100)
        @given(st.lists(ANSWERS, max_size=12), st.integers(0, 5), st.sampled_from(["word", "none", "spm"]))
        def check(script, length, joined_by) -> None:
            here.script = there.script = script
            here.saw, there.saw = [], []
            source = TextTestSet([" ".join("abcde"[:length])])
            assert lines_of(here, source, joined_by=joined_by) == lines_of(remote, source, joined_by=joined_by)
            assert here.saw == there.saw

        check()
        remote.close()


# ---- speech -----------------------------------------------------------------------------------------------------


@pytest.fixture
def sounds(tmp_path: Path) -> SpeechTestSet:
    soundfile = pytest.importorskip("soundfile")
    dice = np.random.default_rng(7)
    paths = []
    for number, length in enumerate([16_000, 3, 40_123]):
        paths.append(str(tmp_path / f"{number}.wav"))
        soundfile.write(paths[-1], dice.uniform(-1, 1, length).astype(np.float32), 16_000, subtype="FLOAT")
    return SpeechTestSet(paths, 170)


class Hears:
    """Writes what it heard, to the last bit."""

    source = "speech"
    chunkwise = False

    def policy(self, state):
        assert state.source.dtype == np.float32
        assert not state.source.flags.writeable
        if len(state.target) * 8000 < len(state.source) or (state.finished and not state.target):
            return f"{len(state.source)}/{state.source.astype(np.float64).sum()}/{state.sample_rate}"
        return None


class HearsChunks(Hears):
    chunkwise = True


class Speaks:
    """Says what it heard, an octave lower, in two pieces, and how much it has said as silence."""

    source = target = "speech"
    sample_rate = 8000
    chunkwise = True

    def policy(self, state):
        new = state.source[2 * sum(len(piece) for piece in state.target) :: 2]
        if not len(new):
            return Write(np.zeros(len(state.target)), sample_rate=8000, finished=state.finished)
        return [new[: len(new) // 2], Write(new[len(new) // 2 :].tolist(), sample_rate=np.int32(8000))]


@pytest.mark.parametrize("make", [Hears, HearsChunks])
def test_speech_is_heard_to_the_last_bit(make, sounds: SpeechTestSet) -> None:
    here, there = both(make, sounds)
    assert here == there
    assert [len(line["delays"]) for line in here] == [2, 1, 6]


def test_speech_is_spoken_to_the_last_bit(sounds: SpeechTestSet, tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    here = lines_of(Speaks(), sounds, folder=tmp_path)
    spoken = [soundfile.read(line["prediction"], dtype="float32")[0] for line in here]
    with AgentServer([Speaks], "speaks", port=0) as server:
        agent = RemoteAgent(server.address)
        there = lines_of(agent, sounds, folder=tmp_path)
        agent.close()
    assert here == there
    assert all(line["durations"] for line in here)
    for line, samples in zip(there, spoken, strict=True):
        assert np.array_equal(soundfile.read(line["prediction"], dtype="float32")[0], samples)


def test_what_is_wrong_with_speech_is_told_alike(sounds: SpeechTestSet, tmp_path: Path) -> None:
    wrong = ["text", np.zeros((2, 2)), [np.nan], Write("text"), Write(np.ones(3)), Write(np.ones(3), erase=1)]
    wrong += [Write(["x"]), Write(np.ones(3), sample_rate=16_000, erase=1), Revise("x"), [np.ones(2), DONE, np.ones(2)]]
    for answer in wrong:

        class Wrong:
            source = target = "speech"

            def policy(self, state, answer=answer):
                return answer

        here, there = both(Wrong, SpeechTestSet(sounds.paths[:1], 5000), folder=tmp_path)
        assert here == there
        assert "failed" in here[0]


def test_a_long_recording_goes_over_in_parts(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    path = str(tmp_path / "long.wav")
    soundfile.write(path, np.arange(700_000, dtype=np.float32) % 1000 / 1000, 16_000, subtype="FLOAT")
    here, there = both(HearsChunks, SpeechTestSet([path], 30_000))
    assert here == there
    assert set(there[0]["arrivals"]) == {30_000.0, 43_750.0}


# ---- time -------------------------------------------------------------------------------------------------------


def test_network_time_is_not_counted_unless_asked_for() -> None:
    def at_once(state):
        return Timed(None, 12.5)

    with AgentServer([lambda: at_once], "x", port=0) as server:
        agent = from_address(server.address, {})
        answer = agent.policy(State(["a"]))
        assert isinstance(answer, Timed)
        assert answer.seconds == 12.5
        agent.close()
        agent = from_address(server.address, {"count_network": "true"})
        assert not isinstance(agent.policy(State(["a"])), Timed)
        agent.close()


def test_the_time_is_that_of_the_agent() -> None:
    def slow(state):
        time.sleep(0.02)
        yield "word"
        time.sleep(0.02)

    with AgentServer([lambda: slow], "x", port=0) as server:
        agent = RemoteAgent(server.address)
        answer = agent.policy(State(["a"]))
        agent.close()
    assert isinstance(answer, Timed)
    assert answer.seconds >= 0.04


# ---- traits, and what cannot be served --------------------------------------------------------------------------


def test_every_trait_goes_over_the_wire_but_batches() -> None:
    assert {field.name for field in fields(Traits)} - {"batched"} == set(Declared.__struct_fields__)

    class Everything:
        source = target = "speech"
        chunkwise = eager = must_finish = sees_reference = True
        patience = 4
        sample_rate = 22_050

        def policy(self, state): ...

    with AgentServer([Everything], "all", identity="abc", port=0) as server:
        agent = RemoteAgent(server.address)
        assert Traits.of(agent) == Traits.of(Everything()) == server.traits
        assert (agent.agent, agent.identity) == ("all", "abc")
        agent.close()


def test_agents_for_batches_are_not_served() -> None:
    class Batched:
        def policies(self, states): ...

    with pytest.raises(UsageError, match=r"many sentences at once, with `policies`, cannot be served"):
        AgentServer([Batched], "x", port=0)

    class Either(WaitK):
        def policies(self, states): ...

    with AgentServer([Either], "x", port=0) as server:
        agent = RemoteAgent(server.address)
        assert not Traits.of(agent).batched
        assert lines_of(agent, TextTestSet(["a b"])) == lines_of(WaitK(), TextTestSet(["a b"]))
        agent.close()


def test_traits_that_cannot_be_told() -> None:
    class Odd(WaitK):
        patience = "much"

    with pytest.raises(UsageError, match=r"declarations are not valid: .*patience"):
        AgentServer([Odd], "x", port=0)


def test_without_the_library_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] == "websockets"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "websockets", None)
    for make in (lambda: RemoteAgent("ws://127.0.0.1:1"), lambda: AgentServer([WaitK], "x", port=0)):
        with pytest.raises(
            MissingExtraError, match=r"websockets is not installed\n  fix: pip install 'lagging\[remote\]'"
        ):
            make()


def test_an_agent_lives_in_one_thread_from_its_making_on() -> None:
    class Threaded:
        def __init__(self) -> None:
            self.home = threading.get_ident()

        def reset(self) -> None:
            assert threading.get_ident() == self.home

        def policy(self, state):
            return str(threading.get_ident() == self.home) if not state.target else None

    with AgentServer([Threaded], "x", port=0) as server:
        for _ in range(2):
            agent = RemoteAgent(server.address)
            assert lines_of(agent, TextTestSet(["a"]))[0]["prediction"] == "True"
            agent.close()


# ---- connections that break -------------------------------------------------------------------------------------


def test_the_sentence_under_way_fails_and_the_next_one_has_a_new_connection() -> None:
    server = AgentServer([WaitK], "x", port=0)
    port = int(server.address.rpartition(":")[2])
    with server:
        agent = RemoteAgent(server.address, reconnect=20)
        state = State(["a"])
        agent.reset()
        assert agent.policy(state).answer is None
    state.source.append("b")
    with pytest.raises(Failure, match=r"connection to the agent broke: the server closed it \(1001") as failed:
        agent.policy(state)
    assert failed.value.kind == "connection"
    later = threading.Timer(0.5, lambda: again.append(AgentServer([WaitK], "x", port=port).__enter__()))
    again: list[AgentServer] = []
    later.start()
    assert lines_of(agent, TextTestSet(["a b", "c d"])) == lines_of(WaitK(), TextTestSet(["a b", "c d"]))
    later.join()
    agent.close()
    again[0].__exit__()


def test_a_server_that_stays_away_is_waited_for_once() -> None:
    with AgentServer([WaitK], "x", port=0) as server:
        agent = RemoteAgent(server.address, reconnect=0.5)
    begin = time.monotonic()
    log = lines_of(agent, TextTestSet(["a b"] * 50))
    assert time.monotonic() - begin < 20  # and not 50 times half a second
    assert {line["kind"] for line in log} == {"connection"}
    assert "cannot connect to" in log[0]["failed"]
    agent.close()


def test_another_agent_behind_the_same_address_is_not_taken_for_the_first() -> None:
    with AgentServer([WaitK], "x", identity="1", port=0) as server:
        agent = RemoteAgent(server.address)
        port = int(server.address.rpartition(":")[2])
    with AgentServer([WaitK], "x", identity="2", port=port):
        log = lines_of(agent, TextTestSet(["a b"]))
    assert "now serves another agent" in log[0]["failed"]
    agent.close()


def test_an_agent_that_nobody_has_any_more_hangs_up() -> None:
    told = []
    with AgentServer([WaitK], "x", port=0, tell=lambda line, wrong: told.append(line)) as server:
        agent = RemoteAgent(server.address)
        agent.policy(State(["a"]))
        del agent
        gc.collect()
        until = time.monotonic() + 20
        while not any("gone" in line for line in told) and time.monotonic() < until:
            time.sleep(0.01)
    assert any(line.endswith("gone amid a sentence") for line in told)


def test_an_interrupted_step_does_not_answer_the_next_one() -> None:
    go = threading.Event()

    def slow(state):
        if state.sentence == 7:
            go.wait(20)
            return "stale"
        return "fresh" if not state.target else None

    with AgentServer([lambda: slow], "x", port=0) as server:
        agent = RemoteAgent(server.address)
        real = agent._receive
        heard = []

        def interrupted(wanted, timeout=None):
            heard.append(wanted)
            if len(heard) == 2:
                raise KeyboardInterrupt
            return real(wanted, timeout)

        agent._receive = interrupted
        agent.reset()
        with pytest.raises(KeyboardInterrupt):
            agent.policy(State(["a"], 7))
        agent._receive = real
        go.set()
        assert lines_of(agent, TextTestSet(["a"]))[0]["prediction"] == "fresh"
        agent.close()


# ---- what is not a server ---------------------------------------------------------------------------------------


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(UsageError, match=r"cannot connect to ws://127.0.0.1:\d+: .*refused\n  fix: start the server"):
        RemoteAgent(f"ws://127.0.0.1:{port}")


@pytest.mark.parametrize("address", ["http://a", "127.0.0.1:8765", "ws://", "ws://host:port", "ws://[::1", ""])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(UsageError, match="an agent's address is ws://HOST:PORT"):
        RemoteAgent(address)
    with pytest.raises(UsageError, match="a token must not be part of an address"):
        RemoteAgent("ws://me:secret@127.0.0.1:1")


def test_what_is_no_option() -> None:
    with pytest.raises(UsageError, match=r"no option 'timout'\. Did you mean timeout\?"):
        from_address("ws://127.0.0.1:1", {"timout": "3"})
    with pytest.raises(UsageError, match="count_network is true or false, not 'yes'"):
        from_address("ws://127.0.0.1:1", {"count_network": "yes"})
    with pytest.raises(UsageError, match="timeout is a number of seconds, not 'soon'"):
        from_address("ws://127.0.0.1:1", {"timeout": "soon"})


def served(handler, **how) -> tuple[object, str]:
    """A server of somebody else's."""
    from websockets.sync.server import serve

    server = serve(handler, "127.0.0.1", 0, **how)
    threading.Thread(target=server.serve_forever).start()
    return server, f"ws://127.0.0.1:{server.socket.getsockname()[1]}"


HELLO = '{"type": "hello", "agent": "theirs"}'
WRONG = [
    (["not json"], "not a message: JSON is malformed"),
    (['{"type": "hullo"}'], "not a message: Invalid value 'hullo'"),
    (['{"type": "hello"}'], "missing required field `agent`"),
    (['{"type": "ready"}'], "'ready' came where 'hello' was due"),
    (["[" * 100_000], "not a message"),
    ([b"\x00\x01\x02"], "3 bytes are no samples of float32"),
]


@pytest.mark.parametrize(("messages", "reason"), WRONG)
def test_a_server_that_greets_wrongly(messages: list, reason: str) -> None:
    def handler(connection) -> None:
        for message in messages:
            connection.send(message)
        connection.recv(timeout=20)

    server, address = served(handler, subprotocols=["lagging-agent-1"])
    with server, pytest.raises(UsageError) as wrong:
        RemoteAgent(address)
    assert "does not speak lagging-agent-1" in str(wrong.value)
    assert reason in str(wrong.value)


def test_a_server_of_another_protocol() -> None:
    server, address = served(lambda connection: connection.recv(timeout=20))
    with server, pytest.raises(UsageError, match="does not speak lagging-agent-1: it has agreed on nothing"):
        RemoteAgent(address)
    server, address = served(lambda connection: None, subprotocols=["lagging-agent-2"])
    with server, pytest.raises(UsageError, match=r"refused the connection: 400 .*expected one of lagging-agent-2"):
        RemoteAgent(address)


REPLIES = [
    (["garbage"], "not a message"),
    (['{"type": "ready"}'], "'ready' came where 'answered' was due"),
    (['{"type": "answer"}'], "missing required field `seconds`"),
    (['{"type": "answer", "seconds": -1}'], "not a message"),
    (['{"type": "answer", "seconds": 1, "actions": [{"type": "write", "samples": 3}]}'], "about 3 samples, but 0 came"),
    ([b"1234", '{"type": "answer", "seconds": 1}'], "about 0 samples, but 1 came"),
    (['{"type": "answer", "seconds": 1, "actions": [{"type": "write", "samples": -1}]}'], "not a message"),
    (['{"type": "failed", "kind": "bored"}'], "not a message: Invalid enum value 'bored'"),
    (["x" * (65 << 20)], "a message of the server was refused (1009"),
    ([], "the server closed it (1000)"),
    ([None], "no answer for 1 s"),
]


@pytest.mark.parametrize(("replies", "reason"), REPLIES, ids=[reason for _, reason in REPLIES])
def test_a_server_that_answers_wrongly(replies: list, reason: str) -> None:
    def handler(connection) -> None:
        connection.send(HELLO)
        connection.recv(timeout=20)
        connection.send('{"type": "ready"}')
        connection.recv(timeout=20)
        for reply in replies:
            if reply is None:
                connection.recv(timeout=20)
            connection.send(reply)

    def quietly(connection) -> None:
        with contextlib.suppress(websockets.ConnectionClosed):
            handler(connection)

    server, address = served(quietly, subprotocols=["lagging-agent-1"])
    with server:
        agent = RemoteAgent(address, timeout=1 if None in replies else 20)
        agent.reset()
        with pytest.raises(Failure) as failed:
            agent.policy(State(["a"]))
        agent.close()
    assert failed.value.kind == "connection"
    assert reason in str(failed.value)


# ---- servers that would keep a run for ever ---------------------------------------------------------------------


@contextlib.contextmanager
def answering(answer, hello: str = HELLO) -> Iterator[str]:
    """A server of somebody else's, that answers every step with what a function of the connection sends."""

    def handler(connection) -> None:
        with contextlib.suppress(websockets.ConnectionClosed, TimeoutError):
            connection.send(hello)
            while True:
                message = connection.recv(timeout=20)
                kind = json.loads(message)["type"] if isinstance(message, str) else "samples"
                if kind == "begin":
                    connection.send('{"type": "ready"}')
                elif kind == "step":
                    answer(connection)

    server, address = served(handler, subprotocols=["lagging-agent-1"])
    with server:
        yield address


@pytest.mark.parametrize(
    ("traits", "reason"),
    [
        ({"patience": 10**12}, "patience = 1000000000000, but it is a whole number from 0 to 1000"),
        ({"patience": -1}, "patience = -1, but it is a whole number from 0 to 1000"),
        ({"sample_rate": 0}, "sample_rate = 0, but it is a whole number from 1 to 10000000"),
        ({"target": "speech"}, "agents from text to speech cannot be run"),
        ({"patience": 0.5}, "Expected `int`, got `float` - at `$.traits.patience`"),
        ({"patience": "3"}, "Expected `int`, got `str` - at `$.traits.patience`"),
        ({"eager": 1}, "Expected `bool`, got `int` - at `$.traits.eager`"),
    ],
    ids=str,
)
def test_what_a_server_declares_is_checked_when_it_greets(traits: dict, reason: str) -> None:
    hello = json.dumps({"type": "hello", "agent": "theirs", "traits": traits})
    with answering(lambda connection: None, hello) as address, pytest.raises(UsageError) as wrong:
        RemoteAgent(address)
    assert reason in str(wrong.value)
    assert address in str(wrong.value)
    assert "\n  fix: " in str(wrong.value)
    assert "start the server" not in str(wrong.value)


@pytest.mark.parametrize(
    "field",
    [{"max_message": 0}, {"max_message": -4}, {"agent": "x" * 5000}, {"identity": "x" * 5000}],
    ids=lambda field: next(iter(field)),
)
def test_a_greeting_out_of_range_is_refused(field: dict) -> None:
    hello = json.dumps({"type": "hello", "agent": "theirs"} | field)
    with answering(lambda connection: None, hello) as address, pytest.raises(UsageError, match="not a message"):
        RemoteAgent(address)


PATIENT = json.dumps({"type": "hello", "agent": "theirs", "traits": {"patience": 1000}})
NOTHING = '{"type": "answer", "seconds": 0}'


def test_a_server_that_says_nothing_and_reports_no_time_is_bounded_by_the_wall() -> None:
    def slowly(connection) -> None:
        time.sleep(0.02)
        connection.send(NOTHING)

    with answering(slowly, PATIENT) as address:
        agent = RemoteAgent(address)
        log = lines_of(agent, TextTestSet(["a", "b"]), limits=Limits(sentence=0.3))
        agent.close()
    assert [line["kind"] for line in log] == ["sentence-limit"] * 2
    assert "by the clock on the wall" in log[0]["failed"]


def test_a_server_that_says_nothing_for_ever_is_bounded_by_its_calls() -> None:
    words = itertools.count()

    def sometimes(connection) -> None:
        word = next(words)
        said = f'{{"type": "answer", "seconds": 0, "actions": ["{word}"]}}'
        connection.send(said if word % 40 == 0 else NOTHING)

    with answering(sometimes, PATIENT) as address:
        agent = RemoteAgent(address)
        log = lines_of(agent, TextTestSet(["a"]), limits=Limits(calls=200))
        agent.close()
    assert log[0]["failed"].endswith("200 calls, which is the limit (--call-limit)")


def test_a_server_that_streams_samples_for_ever_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_SAMPLE_BYTES", 1 << 20)
    sent = itertools.count()

    def stream(connection) -> None:
        while next(sent) < 1000:
            connection.send(b"\0" * (1 << 16))

    hello = json.dumps({"type": "hello", "agent": "theirs", "traits": {"source": "speech", "target": "speech"}})
    with answering(stream, hello) as address:
        agent = RemoteAgent(address, timeout=20)
        agent.reset()
        with pytest.raises(Failure, match=r"more than 1048576 bytes of samples before an answer"):
            agent.policy(State(np.zeros(3, np.float32), 0, 16_000))
        agent.close()


def test_samples_by_the_drop_do_not_keep_a_run() -> None:
    drops = itertools.count()

    def drip(connection) -> None:
        while next(drops) < 100:
            connection.send(b"\0" * 4)
            time.sleep(0.1)

    hello = json.dumps({"type": "hello", "agent": "theirs", "traits": {"source": "speech", "target": "speech"}})
    with answering(drip, hello) as address:
        agent = RemoteAgent(address, timeout=1)
        agent.reset()
        with pytest.raises(Failure, match="no answer for 1 s"):
            agent.policy(State(np.zeros(3, np.float32), 0, 16_000))
        assert next(drops) < 90, "it was not waited for the last of them"
        agent.close()


def test_a_long_failure_is_shortened_before_it_is_logged() -> None:
    failed = json.dumps({"type": "failed", "kind": "raised", "detail": "d" * 10**6, "trace": "t" * 10**6})
    with answering(lambda connection: connection.send(failed)) as address:
        agent = RemoteAgent(address)
        log = lines_of(agent, TextTestSet(["a"]))
        agent.close()
    assert log[0]["kind"] == "raised"
    assert len(json.dumps(log[0])) < 100_000
