# SPDX-License-Identifier: Apache-2.0
"""A sentence ends, whatever an agent declares, answers or reports."""

import itertools
import math
import time
from pathlib import Path

import numpy as np
import pytest

from lagging.agents import DONE, Job, Limits, Revise, Settings, Spec, Traits, Write, as_agent, run, run_job
from lagging.agents.failures import Failure
from lagging.agents.loop import drive, drive_batch
from lagging.agents.protocol import Timed
from lagging.agents.sentence import Sentence
from lagging.agents.sources import SpeechSource, TextSource
from lagging.errors import UsageError
from running import lines

FOR_EVER = 100_000
"""Calls after which an agent has not been stopped; the default limit of a sentence of two words is 2042."""


SILENCES, RATES = "a whole number from 0 to 1000", "a whole number from 1 to 10000000"


class Silent:
    """Writes nothing, for ever; a test that should fail comes to an end all the same."""

    def __init__(self, **traits):
        vars(self).update(traits)
        self.calls = 0

    def policy(self, state):
        self.calls += 1
        assert self.calls < FOR_EVER, "it was asked for ever"


def failure_of(agent, source="a b", chunk=1, **settings):
    agent = as_agent(agent)
    with pytest.raises(Failure) as caught:
        drive(agent, Sentence(TextSource(source.split(), chunk), Traits.of(agent), **settings))
    return caught.value


# ---- declarations -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        *[("patience", value, SILENCES) for value in (-1, 0.5, "3", math.nan, 10**12, True, None)],
        *[("sample_rate", value, RATES) for value in (0, -1, 1.5, "16k", math.inf, True)],
        *[(name, 1, "True or False") for name in ("chunkwise", "eager", "must_finish", "sees_reference")],
        ("eager", "no", "True or False"),
        ("source", "scent", "'text' or 'speech'"),
        ("target", ["text"], "'text' or 'speech'"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_declaration_that_makes_no_sense_is_refused_with_its_rule(name, value, rule):
    for declare in (lambda: Traits.of(Silent(**{name: value})), lambda: Traits(**{name: value})):
        with pytest.raises(UsageError) as caught:
            declare()
        assert f"{name} = {value!r}, but it is {rule}" in str(caught.value)
        assert "\n  fix: " in str(caught.value)


def test_all_declarations_that_make_no_sense_are_told_at_once():
    with pytest.raises(UsageError) as caught:
        Traits.of(Silent(patience=-1, eager="yes", source="scent"))
    for name in ("patience = -1", "eager = 'yes'", "source = 'scent'"):
        assert name in str(caught.value)


def test_declarations_that_make_sense_are_taken():
    numbers = Traits.of(Silent(patience=np.int64(3), sample_rate=np.int32(16_000), source="speech", target="speech"))
    assert (numbers.patience, numbers.sample_rate) == (3, 16_000)
    assert {type(numbers.patience), type(numbers.sample_rate)} == {int}  # they go into run.json
    assert Traits.of(Silent(patience=1000)).patience == 1000


def test_a_long_value_is_not_shown_whole():
    with pytest.raises(UsageError) as caught:
        Traits.of(Silent(patience="x" * 10_000))
    assert len(str(caught.value)) < 500


# ---- steps ------------------------------------------------------------------------------------------------------


def test_the_calls_of_a_sentence_follow_from_its_source():
    limits = Limits()
    assert limits.max_calls(TextSource(["x"] * 7, 1)) == 7 + 2 * 1070
    assert limits.max_calls(TextSource(["x"] * 7, 3)) == 3 + 2 * 1070
    assert limits.max_calls(SpeechSource(np.zeros(16_000, np.float32), 16_000, 300)) == 4 + 2 * 1100
    assert Limits(tokens=5000).max_calls(TextSource(["x"], 1)) == 1 + 2 * 5000
    assert Limits(tokens=12).max_calls(TextSource(["x"], 1)) == 1 + 2 * 1010  # who may write little may still wait
    assert Limits(calls=12).max_calls(TextSource(["x"], 1)) == 12


def test_who_writes_after_every_silence_is_stopped():
    calls = itertools.count(1)

    def slow(state):
        call = next(calls)
        assert call < FOR_EVER
        return "word" if call % 1000 == 0 else None

    slow.patience = 1000
    failure = failure_of(slow)
    assert (failure.kind, failure.detail) == ("never-finished", "2042 calls, which is the limit (--call-limit)")


def test_the_call_limit_is_the_number_of_calls_that_are_made():
    silent = Silent(patience=50)
    assert failure_of(silent, limits=Limits(calls=20)).detail == "20 calls, which is the limit (--call-limit)"
    assert silent.calls == 20
    three = [lambda state: None if not state.finished else "a" if not state.target else None] * 2
    two_words = TextSource(["a", "b"], 1)
    drive(as_agent(three[0]), Sentence(two_words, Traits(), Limits(calls=3)))
    assert failure_of(three[1], limits=Limits(calls=2)).kind == "never-finished"


# ---- time -------------------------------------------------------------------------------------------------------


class Denies:
    """Reports no time at all, however long it takes."""

    def __init__(self, seconds, **traits):
        self.seconds = seconds
        vars(self).update(traits)
        self.calls = 0

    def policy(self, state):
        self.calls += 1
        assert self.calls < 1000, "it was asked for ever"
        time.sleep(self.seconds)
        return Timed(None, 0.0)


def test_a_step_is_bounded_by_the_wall_whatever_is_reported():
    failure = failure_of(Denies(0.05), limits=Limits(step=0.02))
    assert failure.kind == "step-limit"
    assert "by the clock on the wall" in failure.detail


def test_a_sentence_is_bounded_by_the_wall_whatever_is_reported():
    failure = failure_of(Denies(0.01, patience=1000), limits=Limits(sentence=0.1))
    assert failure.kind == "sentence-limit"
    assert "by the clock on the wall" in failure.detail


def test_what_is_reported_is_what_counts_in_the_log():
    def agent(state):
        time.sleep(0.01)
        return Timed("a", 0.125) if not state.target else Timed(None, 0.25)

    sentence = Sentence(TextSource(["x"]), Traits())
    drive(as_agent(agent), sentence)
    assert sentence.compute == [125_000_000, 250_000_000]


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1.0, "1", None, True, 1e300])
def test_seconds_that_are_no_time_fail_the_sentence(seconds):
    failure = failure_of(lambda state: Timed("a", seconds))
    assert failure.kind in ("wrong-type", "step-limit")
    assert failure.kind == "step-limit" or f"seconds={seconds!r}" in failure.detail


def test_the_pulse_goes_on_while_an_answer_is_taken_over():
    heartbeat, beats = [0], []

    class Lazy(list):
        def __iter__(self):
            beats.append(heartbeat[0])
            return iter(["a", DONE])

    class Batched:
        def policies(self, states):
            return [Lazy() for _ in states]

    drive(as_agent(lambda state: Lazy()), Sentence(TextSource(["x"]), Traits()), heartbeat)
    for _, failure in drive_batch(Batched(), [Sentence(TextSource(["x"]), Traits(batched=True))], 1, heartbeat):
        assert failure is None
        assert heartbeat == [0], "whoever writes the line is not watched"
    assert len(beats) == 2
    assert all(beats)
    assert heartbeat == [0]


STUCK = """
import time

class Stuck(list):
    def __iter__(self):
        time.sleep(600)

class Agent:
    def policy(self, state):
        return Stuck() if state.source[0] == "stuck" else state.source[0].upper() if not state.target else None
"""


def test_an_answer_that_cannot_be_read_to_its_end_costs_the_sentence(tmp_path: Path):
    (tmp_path / "agent.py").write_text(STUCK)
    (tmp_path / "source.txt").write_text("a\nstuck\nb\n")
    limits = Settings(limits=Limits(step=1), times=False)
    job = Job(
        Spec("file", str(tmp_path / "agent.py")), str(tmp_path / "source.txt"), None, str(tmp_path / "out"), limits
    )
    assert run_job(job).finished
    assert [line.get("kind") for line in lines(tmp_path / "out")] == [None, "step-limit", None]


# ---- bytes ------------------------------------------------------------------------------------------------------


def test_the_bytes_of_a_translation_follow_from_its_source():
    mebi = 1 << 20
    second = SpeechSource(np.zeros(16_000, np.float32), 16_000, 300)
    assert Limits().max_bytes(TextSource(["x"] * 7), "text") == Limits().max_bytes(second, "text") == 16 * mebi
    assert Limits().max_bytes(second, "speech") == 64 * mebi + 10 * 65_536
    assert Limits(bytes=99).max_bytes(second, "speech") == 99


@pytest.mark.parametrize(
    "answer",
    [
        "w" * 101,
        "ä" * 51,
        "\ud800" * 34,
        "a b " * 26,
        ["w" * 60, "w" * 60],
        ("w" * 60, "w" * 60),
        Write("w" * 101),
        Write(["w" * 60, "w" * 60]),
        Write("w" * 101, finished=True),
        Revise("w" * 101),
        Revise(["w" * 60, "w" * 60]),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_a_word_that_is_too_long_fails_the_sentence(answer):
    failure = failure_of(lambda state: answer, limits=Limits(bytes=100))
    assert failure.kind == "never-finished"
    assert failure.detail == "more than 100 bytes, which is the limit (--byte-limit)"
    assert len(failure.trace) == 0


def test_a_text_of_too_many_words_is_not_split_to_its_end():
    failure = failure_of(lambda state: "w " * 41, limits=Limits(tokens=20))
    assert (failure.kind, failure.detail) == (
        "never-finished",
        "20 tokens or writes, which is the limit (--token-limit)",
    )
    sentence = Sentence(TextSource(["x"]), Traits(), Limits(tokens=20))
    with pytest.raises(Failure):
        drive(as_agent(lambda state: "word " * 21), sentence)
    assert sentence.state.target == []
    as_it_is = Sentence(TextSource(["x"]), Traits(), Limits(tokens=20), joined_by="none")
    drive(as_agent(lambda state: None if state.target else "word " * 21), as_it_is)  # one piece
    drive(
        as_agent(lambda state: None if state.target else "w  " * 20),
        Sentence(TextSource(["x"]), Traits(), Limits(tokens=20)),
    )


def test_the_bytes_of_all_that_stands_count_together():
    assert failure_of(lambda state: "w" * 30, limits=Limits(bytes=100)).detail.startswith("more than 100 bytes")
    assert failure_of(lambda state: Write("w" * 30), limits=Limits(bytes=100)).detail.startswith("more than 100 bytes")


def test_what_was_taken_back_does_not_count():
    numbers = itertools.count()

    def revises(state):
        return Revise("w" * 60 + str(number)) if (number := next(numbers)) < 5 else None

    def erases(state):
        return Write("w" * 60, erase=len(state.target)) if next(numbers) < 15 else None

    for agent in (revises, erases):
        sentence = Sentence(TextSource(["x"]), Traits(), Limits(bytes=100))
        drive(as_agent(agent), sentence)
        assert len(sentence.state.target) == 1


def test_speech_is_bounded_too():
    class Speaks:
        source = target = "speech"
        sample_rate = 8000

        def policy(self, state):
            assert len(state.target) < 100
            return np.zeros(10, np.float32)

    sentence = Sentence(SpeechSource(np.zeros(8, np.float32), 8000, 1), Traits.of(Speaks()), Limits(bytes=100))
    with pytest.raises(Failure, match="more than 100 bytes"):
        drive(Speaks(), sentence)


@pytest.mark.parametrize("rate", [math.nan, -1, 0.5, 1e300, "16000", True])
def test_a_rate_that_is_none_fails_the_sentence(rate):
    class Speaks:
        source = target = "speech"

        def policy(self, state):
            return Write(np.zeros(10, np.float32), sample_rate=rate, finished=True)

    sentence = Sentence(SpeechSource(np.zeros(8, np.float32), 8000, 1), Traits.of(Speaks()))
    with pytest.raises(Failure, match=r"sample_rate=") as caught:
        drive(Speaks(), sentence)
    assert caught.value.kind == "wrong-type"


# ---- a whole run ------------------------------------------------------------------------------------------------


def test_a_run_goes_on_after_such_sentences():
    def agent(state):
        word = state.source[0]
        if word == "long":
            return "w" * 1000
        if word == "slow":
            time.sleep(0.02)
            return Timed(None, 0.0)
        return word.upper() if not state.target else None

    agent.patience = 1000
    limits = Limits(sentence=0.2, bytes=500, calls=2000)
    made = run(agent, ["a", "long", "slow", "b"], settings=Settings(limits=limits))
    assert made.prediction.tolist() == ["A", "", "", "B"]
    assert [note.segments for note in made.notes if note.kind == "failed"] == [(1,), (2,)]
