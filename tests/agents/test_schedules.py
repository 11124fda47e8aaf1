# SPDX-License-Identifier: Apache-2.0
import time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lagging
from lagging import UsageError, policies
from lagging.agents import State, Traits
from lagging.agents.failures import Failure
from lagging.agents.loading import Spec
from lagging.agents.loop import drive
from lagging.agents.schedules import Oracle, Scheduled, from_name
from lagging.agents.sentence import Sentence
from lagging.agents.sources import TextSource

ONLINE = st.one_of(
    st.integers(0, 12).map(lambda k: f"wait-{k}"),
    st.tuples(st.integers(0, 12), st.sampled_from(["0", "0.1", "0.2", "0.25", "0.5", "0.75"])).map(
        lambda pair: "wait-{}-catchup={}".format(*pair)
    ),
    st.sampled_from(["offline", "prescient"]),
)
OFFLINE = st.one_of(
    st.integers(0, 12).map(lambda k: f"wait-{k}-catchup"),
    st.integers(0, 12).map(lambda k: f"antagonist-{k}"),
    st.integers(1, 6).map(lambda n: f"segment-{n}"),
    st.just("punctuation"),
)
SOURCES = st.lists(st.sampled_from(["a", "b", "c,", "d.", ";", "…e", "。"]), min_size=0, max_size=14)


def driven(agent, source, reference=None, chunk=1, **settings):
    """What an agent wrote, and its delays."""
    sentence = Sentence(TextSource(source, chunk), Traits.of(agent), reference=reference, **settings)
    drive(agent, sentence)
    text, steps = sentence.hypothesis.finish()
    return text, [sentence.arrivals[step] for step in steps]


@given(st.one_of(ONLINE, OFFLINE), SOURCES, st.integers(1, 14))
@example("antagonist-4", ["a"], 3)  # whose schedule writes before the only word is read
@example("prescient", ["a", "b"], 2)
@example("wait-0", [], 2)
def test_the_oracle_keeps_every_schedule(name, source, length):
    reference = " ".join(f"w{t}" for t in range(length))
    text, delays = driven(from_name(name, {}), source, reference)
    assert text == reference
    assert delays == policies.policy(name).delays(len(source), length, " ".join(source)).tolist()


def test_a_long_source_without_punctuation():
    source, began = ["word"] * 10_000, time.process_time()
    _, delays = driven(from_name("punctuation", {}), source, "a b")
    assert delays == [10_000, 10_000]
    assert time.process_time() - began < 2, "what has been seen is not looked through again"


@given(ONLINE, SOURCES, st.integers(1, 14))
def test_a_model_keeps_the_schedules_that_need_no_lengths(name, source, length):
    asked = []

    def count(source, target, finished):
        asked.append((len(source), len(target), finished))
        return f"w{len(target)}" if len(target) < length else None

    text, delays = driven(Scheduled(name, count), source)
    assert text == " ".join(f"w{t}" for t in range(length))
    assert delays == policies.policy(name).delays(len(source), length).tolist()
    assert [t for _, t, _ in asked] == list(range(length + 1))  # the model is asked once for each token, and the end
    assert all(finished == (read == len(source)) for read, _, finished in asked if source)


@given(ONLINE, OFFLINE, st.integers(0, 20), st.integers(1, 20), st.integers(1, 20))
def test_a_schedule_is_online_if_it_knows_no_lengths(online, offline, x, y, other):
    """`online` promises g(t) = min(h(t), |x|); what does not promise it must be refused."""
    policy = policies.policy(online)
    endless = policy.schedule(np.arange(1.0, y + 1), np.full(y, np.inf), np.full(y, float(other)))
    np.testing.assert_array_equal(policy.delays(x, y), np.minimum(endless, x))
    with pytest.raises(UsageError, match=f"{offline} cannot be followed online"):
        Scheduled(offline, lambda source, target, finished: None)


@pytest.mark.parametrize("name", ["wait-2-catchup", "antagonist-3", "segment-2", "punctuation"])
def test_what_is_refused_does_depend_on_lengths(name):
    policy, source = policies.policy(name), "a b, c"
    shapes = {tuple(policy.delays(3, y, source)[:2]) for y in (2, 3, 9)}
    assert len(shapes) > 1


@pytest.mark.parametrize(
    ("name", "x", "y", "al", "dal"),
    [
        ("wait-4", 5, 5, 4, 4),  # Tables 2 and 4 of Cherry & Foster: the antagonist gets a lower AL for nothing
        ("antagonist-4", 5, 5, 2.2, 4),
        ("wait-1", 3, 6, 1.5, 1.75),  # Table 5: more is written than read
        ("wait-1-catchup", 3, 6, 0.8, 1),
        ("wait-1", 6, 3, 0, 1),  # Table 6: the source is never fully read
    ],
)
def test_the_tables_of_the_paper_through_the_loop(name, x, y, al, dal):
    _, delays = driven(Oracle(name), list("abcdefg")[:x], " ".join("uvwxyz"[:y]))
    assert lagging.al(delays, source_length=x) == pytest.approx(al, abs=1e-12)
    assert lagging.dal(delays, source_length=x) == pytest.approx(dal, abs=1e-12)


def test_a_model_that_ends_early_ends_the_sentence():
    stop = Scheduled("wait-1", lambda source, target, finished: None if target else "hm")
    assert driven(stop, ["a", "b", "c"]) == ("hm", [1])


def test_larger_reads_are_charged_whole():
    count = Scheduled("wait-2", lambda source, target, finished: None if len(target) == 5 else "w")
    assert driven(count, list("abcde"), chunk=3)[1] == [3, 3, 5, 5, 5]
    assert driven(Oracle("wait-2"), list("abcde"), "v w x y z", chunk=3)[1] == [3, 3, 5, 5, 5]
    commas = ["a,", "b", "c", "d,", "e"]
    assert driven(Oracle("punctuation"), commas, "v w x y z", chunk=2)[1] == [2, 4, 4, 4, 5]


def test_characters_keep_their_spaces():
    text, delays = driven(Oracle("wait-1", level="char"), list("abcd"), "你 好 吗", joined_by="none", level="char")
    assert (text, delays) == ("你 好 吗", [1, 2, 3])


def test_the_end_of_the_reference_is_the_end():
    sentence = Sentence(TextSource(list("abcdef")), Traits.of(Oracle("wait-1")), reference="x y")
    drive(Oracle("wait-1"), sentence)
    assert sentence.source.read == 2  # as in Table 6: what is not needed is not read


@pytest.mark.parametrize("kind", ["empty", "absent"])
def test_there_must_be_a_reference(kind):
    sentence = Sentence(TextSource(["a"]), Traits.of(Oracle("wait-1")), reference="" if kind == "empty" else None)
    with pytest.raises(Failure) as failure:
        drive(Oracle("wait-1"), sentence)
    assert failure.value.kind == ("nothing-written" if kind == "empty" else "raised")


def test_nobody_else_is_told():
    seen = []

    def look(state: State):
        seen.append((state.reference, state.source_length))
        return state.source[len(state.target) :]

    driven(lagging.agents.as_agent(look), ["a", "b"])
    assert set(seen) == {(None, None)}


def test_from_the_command_line():
    agent = Spec("policy", "segment-5", (("level", "char"),)).make()
    assert isinstance(agent, Oracle)
    assert agent.schedule.name == "segment-5"
    with pytest.raises(UsageError, match=r"no policy is called 'wait-x'"):
        Spec("policy", "wait-x").make()
    with pytest.raises(UsageError, match=r"wait-3 has no option 'levl'.*level"):
        Spec("policy", "wait-3", (("levl", "char"),)).make()
    with pytest.raises(UsageError, match="one of word, char, not 'spm'"):
        from_name("wait-3", {"level": "spm"})
