# SPDX-License-Identifier: Apache-2.0
import itertools
import re
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagging.agents import DONE, Limits, Revise, Traits, Write, as_agent
from lagging.agents.failures import FAILURES, Failure, failure_from
from lagging.agents.loop import drive, drive_batch
from lagging.agents.protocol import Timed
from lagging.agents.runner.records import record
from lagging.agents.sentence import NS, RealTime, Sentence
from lagging.agents.sources import SpeechSource, TextSource

FEW = Limits(tokens=20)


class Script:
    """An agent that gives prepared answers, one a call, and then none; it notes what it is shown."""

    def __init__(self, *answers, **traits):
        self.answers, self.seen, self.resets = answers, [], 0
        vars(self).update(traits)

    def reset(self):
        self.resets += 1
        self.left = iter(self.answers)

    def policy(self, state):
        self.seen.append((len(state.source), state.finished, list(state.target)))
        return next(self.left, None)


def named(value: object) -> str:
    """A value without the place where it lies, which is another in every process."""
    return re.sub(" at 0x[0-9a-f]+", "", repr(value))


def driven(agent, source, chunk=1, limits=FEW, **settings):
    """A sentence that is over."""
    agent = as_agent(agent)
    units = source.split() if isinstance(source, str) else source
    sentence = Sentence(TextSource(units, chunk), Traits.of(agent), limits, **settings)
    drive(agent, sentence)
    return sentence


def said(sentence):
    text, steps = sentence.hypothesis.finish()
    return text, [sentence.arrivals[step] for step in steps]


def failure_of(agent, source="a b", **settings):
    with pytest.raises(Failure) as caught:
        driven(agent, source, **settings)
    return caught.value


# ---- the loop ---------------------------------------------------------------------------------------------------


def by_the_book(answers, length, chunk, chunkwise, patience, eager):
    """READ and WRITE by turns: what had been read at each question, and at each word."""
    read, finished, questions, words, quiet = 0, False, [], [], 0
    answers = iter(answers)
    if not eager:
        read = min(chunk, length)
        finished = read == length
    while True:
        answer = next(answers, None)
        questions.append(read)
        wrote = bool(answer)
        words += [read] * len((answer or "").split())
        if finished and wrote:
            quiet = 0
        elif finished:
            if quiet == patience:
                return questions, words
            quiet += 1
        elif not wrote or chunkwise:
            read = min(read + chunk, length)
            finished = read == length


@given(
    st.lists(st.sampled_from([None, "", "a", "a b"]), max_size=15),
    st.integers(0, 8),
    st.integers(1, 3),
    st.booleans(),
    st.integers(0, 2),
    st.booleans(),
)
def test_read_and_write_by_turns(answers, length, chunk, chunkwise, patience, eager):
    agent = Script(*answers, "end", chunkwise=chunkwise, patience=patience, eager=eager)
    answers = [*answers, "end"]  # so that something is written
    questions, words = by_the_book(answers, length, chunk, chunkwise, patience, eager)
    if not words and length:
        assert failure_of(agent, ["x"] * length, chunk=chunk).kind == "nothing-written"
        return
    sentence = driven(agent, ["x"] * length, chunk, Limits())
    assert sentence.arrivals == questions
    assert said(sentence)[1] == words
    assert [read for read, _, _ in agent.seen] == questions
    assert len(sentence.compute) == len(questions)
    assert agent.resets == 1


def test_the_agent_sees_what_it_wrote():
    agent = Script("a", None, Write("b c", erase=1), None)
    driven(agent, "x y")
    assert agent.seen == [
        (1, False, []),
        (1, False, ["a"]),
        (2, True, ["a"]),
        (2, True, ["b", "c"]),
    ]


def test_finished_is_finished():
    agent = Script(Write("a", finished=True))
    sentence = driven(agent, "x y z")
    assert said(sentence) == ("a", [1])
    assert (sentence.source.read, len(agent.seen)) == (1, 1)
    assert said(driven(Script("a", DONE), "x y z")) == ("a", [1])
    assert said(driven(Script(Revise("a b", finished=True)), "x y z")) == ("a b", [1, 1])


def test_several_answers_at_once():
    listed = driven(Script(["a", None, Write("b"), ("c", "")], None, ["d", DONE]), "x y z")
    assert said(listed) == ("a b c d", [1, 1, 1, 2])

    def yielding(state):
        if len(state.target) < 4:
            yield "a"
            yield Write("b")

    assert said(driven(yielding, "x y")) == ("a b a b", [1, 1, 1, 1])


def test_an_empty_source():
    agent = Script(None)
    sentence = driven(agent, "")
    assert (agent.seen, said(sentence)) == ([(0, True, [])], ("", []))
    assert said(driven(Script("hm"), "")) == ("hm", [0])


@pytest.mark.parametrize(
    ("joined_by", "level", "answers", "text", "delays"),
    [
        ("word", "word", ["with", None, "out"], "with out", [1, 2]),
        ("none", "word", ["with", None, "out", None, " end"], "without end", [2, 3]),
        ("none", "char", ["你", None, "好"], "你好", [1, 2]),
        ("spm", "word", ["▁with", None, "out", None, "▁end"], "without end", [2, 3]),
        ("spm", "token", ["▁with", None, "out", None, "▁end"], "without end", [1, 2, 3]),
        ("bytes", "word", ["Ġgr", None, "Ã¼", None, "n"], "grün", [3]),
        ("bytes", "char", ["Ġgr", None, "Ã", None, "¼"], "grü", [1, 1, 3]),
        ("bpe", "word", ["with@@", None, "out", None, "end"], "without end", [2, 3]),
    ],
)
def test_pieces_over_several_writes(joined_by, level, answers, text, delays):
    assert said(driven(Script(*answers), "x y z", joined_by=joined_by, level=level)) == (text, delays)


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=4), min_size=1, max_size=8), st.booleans())
def test_revising(hypotheses, at_once):
    """Re-translation: a word is there since it, and all before it, stayed."""
    source = ["x"] * len(hypotheses)
    answers = [[Revise(" ".join(words))] if at_once else Revise(words) for words in hypotheses]
    agent = Script(*answers, chunkwise=True)
    if not hypotheses[-1]:
        assert failure_of(agent, source).kind == "nothing-written"
        return
    sentence = driven(agent, source)
    final = hypotheses[-1]
    since = []
    for i in range(len(final)):
        holds = [words[: i + 1] == final[: i + 1] for words in hypotheses]
        since.append(len(holds) - len(list(itertools.takewhile(bool, reversed(holds)))) + 1)
    assert said(sentence) == (" ".join(final), since)
    pairs = list(itertools.pairwise([[], *hypotheses]))
    gone = [next((len(a) - i for i in range(len(a)) if a[: i + 1] != b[: i + 1]), 0) for a, b in pairs]
    assert sentence.hypothesis.erased == sum(gone)
    assert sentence.hypothesis.revisions == sum(count > 0 for count in gone)


# ---- what an agent must not do ----------------------------------------------------------------------------------


def stop(state):
    raise StopIteration("enough")


def leave(state):
    raise SystemExit(3)


def mumble(state):
    raise RuntimeError("\ud800")  # half a character, which no log can hold


def stumble(state):
    return state.source[9]


@pytest.mark.parametrize(
    ("agent", "detail"),
    [
        (stop, "StopIteration: enough"),
        (leave, "SystemExit: 3"),
        (stumble, "IndexError: list index out of range"),
        (mumble, r"RuntimeError: \\ud800"),
    ],
)
def test_raised(agent, detail):
    failure = failure_of(agent)
    assert failure.kind == "raised"
    assert re.search(detail, failure.detail)
    assert "agents/sentence.py" not in failure.trace  # what it shows is the agent's own
    assert (failure.trace + str(failure)).encode()
    assert agent.__name__ in failure.trace


def test_raised_in_reset_and_in_a_generator():
    class Broken:
        def reset(self):
            raise RuntimeError("no model")

        def policy(self, state): ...

    def late(state):
        yield "a"
        raise KeyError("b")

    assert failure_of(Broken()).detail == "RuntimeError: no model"
    assert failure_of(late).detail == "KeyError: 'b'"


def test_an_interrupt_is_nobody_s_failure():
    def interrupted(state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        driven(interrupted, "a")


@pytest.mark.parametrize(
    "answer",
    [
        {"a": 1},
        b"a",
        3,
        float("nan"),
        True,
        object(),
        {"a"},
        Ellipsis,
        np.float64("nan"),
        np.zeros(3),
        ["a", 3],
        [["a", b"b"]],
        Write(3),
        Write(None),
        Write(["a", 3]),
        Write(np.zeros(3)),
        Write("a", erase=-1),
        Write("a", erase=0.5),
        Write("a", erase="1"),
        Revise(3),
        Revise([3]),
        map(str, [1]),
        Write("\ud800"),
        "a\udfff",
    ],
    ids=named,
)
def test_wrong_type(answer):
    failure = failure_of(Script(answer))
    assert failure.kind == "wrong-type"
    assert str(failure).startswith("the agent's answer is not one of None, str, Write, Revise, or several of them: ")


def test_a_piece_that_is_not_of_bytes():
    assert failure_of(Script("…"), joined_by="bytes").kind == "wrong-type"
    assert failure_of(Script("…", Write(erase=1)), joined_by="bytes").kind == "raised"


@pytest.mark.parametrize("answers", [[], [""], [[]], [Write()], [DONE], [Revise("")], ["a", Write(erase=1)]], ids=named)
def test_nothing_written(answers):
    assert failure_of(Script(*answers)).kind == "nothing-written"


@pytest.mark.parametrize(("joined_by", "blank"), [("none", "  "), ("spm", "▁"), ("bytes", "Ġ")])
def test_a_space_is_nothing(joined_by, blank):
    assert failure_of(Script(blank), joined_by=joined_by).kind == "nothing-written"


FOR_EVER = 10_000
"""So that a test comes to an end even if the loop should not."""


def endless(state):
    yield from ["a"] * FOR_EVER


def endless_silence(state):
    yield from [None] * FOR_EVER


def endless_doubt(state):
    yield from map(Revise, map(str, range(FOR_EVER)))


@pytest.mark.parametrize(
    "agent",
    [
        lambda state: "a",
        lambda state: Write(["a", "b", "c"]),
        lambda state: ["a"] * 30,
        lambda state: Revise("b" if state.target == ["a"] else "a"),
        lambda state: Write("a", erase=len(state.target)),
        endless,
        endless_silence,
        endless_doubt,
    ],
    ids=["write", "more", "all", "revise", "erase", "yield", "yield-none", "yield-revise"],
)
def test_never_finished(agent):
    calls = itertools.count()

    def bounded(state):
        assert next(calls) < FOR_EVER
        return agent(state)

    assert failure_of(bounded).kind == "never-finished"


def test_never_finished_by_falling_silent():
    failure = failure_of(Script("a", must_finish=True, patience=2))
    assert (failure.kind, "asked 3 times" in failure.detail) == ("never-finished", True)
    assert said(driven(Script("a", DONE, must_finish=True), "x y")) == ("a", [1])


def test_as_many_as_there_may_be():
    twenty = Script(*["a"] * 20)
    assert said(driven(twenty, "x")) == (" ".join(["a"] * 20), [1] * 20)
    assert failure_of(Script(*["a"] * 21)).kind == "never-finished"
    assert Limits().max_tokens(TextSource(["x"] * 7)) == 1070
    assert Limits().max_tokens(SpeechSource(np.zeros(16_000, np.float32), 16_000, 500)) == 1100


@pytest.mark.parametrize(
    "answers",
    [
        [DONE, "a"],
        ["a", DONE, Revise("b")],
        [Write("a", finished=True), Write(erase=1)],
        [Write("a", finished=True), [None, "b"]],
        [DONE, Write(3)],
        [DONE, DONE, "a"],
    ],
    ids=named,
)
def test_after_finish(answers):
    assert failure_of(Script(answers)).kind == "after-finish"


def test_nothing_after_the_end_is_no_fault():
    quiet = [Write("a", finished=True), None, "", [], Write(), DONE, np.zeros(0)]
    assert said(driven(Script(quiet), "x y")) == ("a", [1])


def test_erased_too_much():
    failure = failure_of(Script("a b", Write(erase=3)))
    assert (failure.kind, failure.detail) == ("erased-too-much", "3 tokens, where 2 stood")


def test_the_target_is_for_reading():
    def adds(state):
        if not state.target:
            state.target.append("a")
            return "a"
        return None

    def replaces(state):
        state.target = ["b"]
        return Write("a", finished=True)

    for meddler in (adds, replaces):
        assert failure_of(meddler).kind == "changed-state"


def test_who_changes_the_source_changes_nothing_else():
    def forgetful(state):
        assert len(state.source) <= 1, "the loop goes on"
        state.source.clear()
        return "a" if state.finished and not state.target else None

    assert said(driven(forgetful, "x y z")) == ("a", [3])

    def adding(state):
        state.source.append("more")
        return "a" if state.finished and not state.target else None

    assert said(driven(adding, "x y z")) == ("a", [3])


def test_time_limits():
    slow = failure_of(Script(Timed("a", 0.2), Timed("b", 1.5)), limits=Limits(step=1))
    assert (slow.kind, slow.detail) == ("step-limit", "more than 1 s")
    long = failure_of(Script(*[Timed("a", 0.4)] * 3), limits=Limits(step=1, sentence=1))
    assert (long.kind, long.detail) == ("sentence-limit", "more than 1 s")


def test_time_that_was_measured_elsewhere():
    sentence = driven(Script(Timed(["a", DONE], 0.25)), "x")
    assert sentence.compute == [NS // 4]
    assert said(sentence) == ("a", [1])
    assert failure_of(Script(Timed("a", float("nan")))).kind == "wrong-type"


def test_only_the_agent_s_time_counts():
    heartbeat = [0]

    def watched(state):
        assert heartbeat[0] > 0
        return state.source[len(state.target) :]

    agent = as_agent(watched)
    sentence = Sentence(TextSource(["a", "b"]), Traits.of(agent))
    drive(agent, sentence, heartbeat)
    assert heartbeat == [0]
    assert all(ns >= 0 for ns in sentence.compute)
    with pytest.raises(Failure):
        drive(as_agent(stumble), Sentence(TextSource(["a"]), Traits()), heartbeat)
    assert heartbeat == [0]


def test_source_begins_when_the_agent_is_ready():
    heartbeat, noted = [0], []

    class Late:
        def reset(self):
            noted.append(heartbeat[0])
            time.sleep(0.2)

        def policy(self, state):
            return state.source[len(state.target) :]

    class Noting(RealTime):
        def wait(self, read):
            noted.append(heartbeat[0])
            super().wait(read)

    sentence = Sentence(TextSource(["a", "b"]), Traits(), real_time=Noting(10.0))
    drive(Late(), sentence, heartbeat)
    assert 10 <= sentence.starts[0] < 150
    assert noted[0] > 0, "a reset is watched"
    assert noted[1:] == [0, 0], "waiting for the source is not"


def test_every_kind_is_known():
    here = {"raised", "wrong-type", "nothing-written", "never-finished", "after-finish", "erased-too-much"}
    here |= {"changed-state", "step-limit", "sentence-limit"}
    assert here | {"died", "closed-files", "unreadable", "connection"} == set(FAILURES)
    failure = Failure("raised", "x", "y")
    made, parts = failure.__reduce__()
    assert vars(made(*parts)) == vars(failure)
    assert failure_from(failure) is failure


# ---- many at once -----------------------------------------------------------------------------------------------

ANSWERS = st.one_of(
    st.none(),
    st.sampled_from(["a", "b c", Write("d", erase=1), Write("e", finished=True), Revise("a b"), 3, RuntimeError("x")]),
    st.lists(st.sampled_from(["a", DONE]), max_size=2),
)


class Scripts:
    """The same scripts, for one sentence at a time, or for many."""

    def __init__(self, scripts):
        self.scripts = scripts

    def policy(self, state):
        state.memory = -1 if state.memory is None else state.memory
        answers = self.scripts[state.sentence]
        if state.memory + 1 < len(answers) and isinstance(answers[state.memory + 1], Exception):
            raise answers[state.memory + 1]  # before anything is changed, so that it can be asked again
        state.memory += 1
        return answers[state.memory] if state.memory < len(answers) else None


class Together(Scripts):
    def policies(self, states):
        for state in states:  # nothing is changed before somebody raises
            answers = self.scripts[state.sentence]
            here = 0 if state.memory is None else state.memory + 1
            if here < len(answers) and isinstance(answers[here], Exception):
                raise answers[here]
        return [self.policy(state) for state in states]


def outcome(sentence, failure):
    if failure is not None:
        return failure.kind, failure.detail
    return *said(sentence), sentence.arrivals, sentence.hypothesis.erased, sentence.hypothesis.revisions


@given(st.lists(st.tuples(st.integers(0, 5), st.lists(ANSWERS, max_size=6)), min_size=1, max_size=6), st.integers(1, 4))
def test_a_batch_is_its_sentences(tests, width):
    scripts = [answers for _, answers in tests]

    def opened(traits):
        return (Sentence(TextSource(["x"] * n), traits, FEW, place) for place, (n, _) in enumerate(tests))

    alone = {}
    for sentence in opened(Traits()):
        try:
            drive(Scripts(scripts), sentence)
            alone[sentence.index] = outcome(sentence, None)
        except Failure as failure:
            alone[sentence.index] = outcome(sentence, failure)
    traits = Traits(batched=True)
    many = {s.index: outcome(s, failure) for s, failure in drive_batch(Together(scripts), opened(traits), width)}
    assert many == alone


def test_no_more_are_open_than_there_is_room_for():
    opened, most = [], []

    class Copy:
        def policies(self, states):
            most.append(len(states))
            return [state.source[len(state.target) :] for state in states]

    def sentences():
        for place in range(7):
            opened.append(place)
            yield Sentence(TextSource(["x"] * (place % 3 + 1)), Traits(batched=True), index=place)

    over = [sentence.index for sentence, _ in drive_batch(Copy(), sentences(), 3)]
    assert sorted(over) == list(range(7))
    assert max(most) == 3


@pytest.mark.parametrize("wrong", [None, "ab", [], ["a"], ["a"] * 3, iter("ab")], ids=named)
def test_a_batch_needs_an_answer_for_each(wrong):
    class Wrong:
        def policies(self, states):
            return wrong

    two = [Sentence(TextSource(["x"]), Traits(batched=True), FEW, place) for place in range(2)]
    kinds = {failure.kind for _, failure in drive_batch(Wrong(), two, 2) if failure}
    assert kinds == ({"never-finished"} if wrong == ["a"] else {"wrong-type"})


def test_batches_may_yield_and_may_be_wrong():
    class Mixed:
        def policies(self, states):
            return [self.one(state) for state in states]

        def one(self, state):
            if state.sentence == 0:
                return (word for word in (["a", "b"] if not state.target else []))
            return {1: endless(state), 2: Write("\ud800", finished=True), 3: Timed("a", float("nan"))}[state.sentence]

    four = [Sentence(TextSource(["x"]), Traits(batched=True), FEW, place) for place in range(4)]
    found = {s.index: failure and failure.kind for s, failure in drive_batch(Mixed(), four, 4)}
    assert found == {0: None, 1: "never-finished", 2: "wrong-type", 3: "wrong-type"}
    assert said(four[0]) == ("a b", [1, 1])


# ---- speech -----------------------------------------------------------------------------------------------------


def heard(agent, seconds=1.0, chunk=300, limits=FEW):
    agent = as_agent(agent)
    samples = np.arange(round(seconds * 1000), dtype=np.float32)
    sentence = Sentence(SpeechSource(samples, 1000, chunk), Traits.of(agent), limits)
    drive(agent, sentence)
    return sentence


def test_speech_in():
    shown = []

    class Listener:
        source = "speech"

        def policy(self, state):
            shown.append((len(state.source), state.finished, state.sample_rate))
            assert state.source.dtype == np.float32
            with pytest.raises(ValueError, match="read-only"):
                state.source[0] = 1
            return None if state.target and not state.finished else "a" if len(state.target) < 2 else None

    sentence = heard(Listener())
    assert said(sentence) == ("a a", [300.0, 1000.0])
    assert sorted(set(shown)) == [(300, False, 1000), (600, False, 1000), (900, False, 1000), (1000, True, 1000)]
    assert sentence.arrivals == [300.0, 300.0, 600.0, 900.0, 1000.0, 1000.0]


def test_a_chunk_that_is_no_whole_number_of_samples():
    source = SpeechSource(np.zeros(100, np.float32), 16_000, 1.03)
    source.advance()
    assert source.read == 17 / 16  # 16.48 samples, rounded up


class Speaker:
    source = target = "speech"
    sample_rate = 500

    def __init__(self, *answers):
        self.answers = answers

    def reset(self):
        self.left = iter(self.answers)

    def policy(self, state):
        return next(self.left, None)


def test_speech_out():
    tone = np.ones(250)  # half a second
    sentence = heard(Speaker(tone, None, Write(tone[:50], sample_rate=500), Write([0.5] * 100, finished=True)))
    assert [len(piece) for piece in sentence.state.target] == [250, 50, 100]
    assert {piece.dtype for piece in sentence.state.target} == {np.dtype(np.float32)}
    line = record(sentence, source_entry="tone", reference=None, times=False)
    assert line["delays"] == [300.0, 600.0, 600.0]
    assert line["durations"] == [500.0, 100.0, 200.0]
    assert line["intervals"] == [[300.0, 500.0], [800.0, 100.0], [900.0, 200.0]]  # one after the other, none too early


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("a", "wrong-type"),
        (Write("a"), "wrong-type"),
        (Revise("a"), "wrong-type"),
        (np.zeros((2, 2)), "wrong-type"),
        (np.array(["a"]), "wrong-type"),
        (np.array([np.nan]), "wrong-type"),
        (np.array([0.0, np.inf]), "wrong-type"),
        (Write([0.1], sample_rate=8), "wrong-type"),  # after speech at another rate
        (Write(np.zeros(1), erase=1), "erased-too-much"),
        ([0.1, 0.2], "wrong-type"),
        (3, "wrong-type"),
    ],
    ids=named,
)
def test_what_is_no_speech(answer, kind):
    with pytest.raises(Failure) as caught:
        heard(Speaker(np.zeros(3), answer))
    assert caught.value.kind == kind


def test_silence_is_nothing():
    for answers in ([], [np.zeros(0)], [""], [DONE]):
        with pytest.raises(Failure, match="wrote nothing"):
            heard(Speaker(*answers))


def test_speech_without_a_rate():
    class Forgot(Speaker):
        sample_rate = None

    with pytest.raises(Failure, match="speech without a sample_rate"):
        heard(Forgot(np.zeros(3)))


def test_endless_speech():
    class Endless(Speaker):
        def policy(self, state):
            assert len(state.target) < FOR_EVER
            return np.zeros(1)

    with pytest.raises(Failure) as caught:
        heard(Endless())
    assert caught.value.kind == "never-finished"
