# SPDX-License-Identifier: Apache-2.0
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagging import UsageError
from lagging.agents import Traits
from lagging.agents.criteria import Greedy, Segmented, wait_if_diff
from lagging.agents.failures import Failure
from lagging.agents.loop import drive
from lagging.agents.sentence import Sentence
from lagging.agents.sources import TextSource


class Toy:
    """A distribution for every prefix of source and target, all of them random; nothing is longer than nine tokens."""

    vocabulary = ("a", "b", "c", "</s>")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.asked: list[tuple[object, ...]] = []

    def __call__(self, source, target, finished):
        self.asked.append((tuple(source), tuple(target), finished))
        dice = random.Random(repr((self.seed, tuple(source), tuple(target), finished)))
        odds = [dice.randint(1, 4) for _ in self.vocabulary]  # few, so that there are ties
        if len(target) == 9:
            odds[-1] = 1000
        return np.log(np.array(odds) / sum(odds))


def paper(model, x, criterion, s0, delta):
    """Simultaneous greedy decoding as the paper's algorithm has it, with the whole source x at hand.

    The target, and for every token what had been read of x: C, and C′ where there was one.
    """
    context, candidates, written, read = list(x[:s0]), [], [], []
    stream = list(x[s0:])
    while True:
        if not candidates:
            candidates, stream = stream[:delta], stream[delta:]
        both = context + candidates
        given_c = model(context, written, len(context) == len(x))
        best = max(range(len(given_c)), key=lambda y: given_c[y])
        if candidates:
            given_both = model(both, written, len(both) == len(x))
            waits = {
                "wait-if-worse": given_c[best] > given_both[best],
                "wait-if-diff": best != max(range(len(given_both)), key=lambda y: given_both[y]),
            }
            if waits[criterion]:
                context, candidates = both, []
                continue
        if model.vocabulary[best] == "</s>":
            return written, read
        written.append(model.vocabulary[best])
        read.append(len(both))


def driven(agent, source, chunk=1):
    sentence = Sentence(TextSource(list(source), chunk), Traits.of(agent))
    drive(agent, sentence)
    text, steps = sentence.hypothesis.finish()
    return text.split(), [sentence.arrivals[step] for step in steps]


CRITERION = st.sampled_from(["wait-if-worse", "wait-if-diff"])


@given(st.integers(0, 10**6), st.integers(1, 9), CRITERION, st.integers(1, 5), st.integers(1, 4))
def test_the_algorithm_of_the_paper(seed, length, criterion, s0, delta):
    x = "uvwxyzstr"[:length]
    target, read = paper(Toy(seed), x, criterion, s0, delta)
    model = Toy(seed)
    if target:
        assert driven(Greedy(model, criterion, s0=s0, delta=delta), x) == (target, read)
        assert len(set(model.asked)) == len(model.asked)  # nothing is computed twice
        assert set(model.asked) <= set(asked_by_the_paper(seed, x, criterion, s0, delta))
    else:
        with pytest.raises(Failure, match="wrote nothing"):
            driven(Greedy(model, criterion, s0=s0, delta=delta), x)


def asked_by_the_paper(seed, x, criterion, s0, delta):
    model = Toy(seed)
    paper(model, x, criterion, s0, delta)
    return model.asked


@given(st.integers(0, 10**6), CRITERION, st.integers(2, 4))
def test_larger_reads_change_the_delays_and_nothing_else(seed, criterion, chunk):
    target, read = paper(Toy(seed), "uvwxyzs", criterion, 2, 1)
    if target:
        said, delays = driven(Greedy(Toy(seed), criterion, s0=2), "uvwxyzs", chunk)
        assert said == target
        assert delays == [min(-(-g // chunk) * chunk, 7) for g in read]


def test_the_look_ahead_is_part_of_the_delay():
    """A model that is always sure writes from one word, having read one more to be sure of it."""

    class Sure(Toy):
        def __call__(self, source, target, finished):
            return np.log([0.7, 0.1, 0.1, 0.1] if len(target) < 3 else [0.1, 0.1, 0.1, 0.7])

    assert driven(Greedy(Sure(0), "wait-if-diff", s0=1, delta=1), "vwxyz") == (["a"] * 3, [2, 2, 2])
    assert driven(Greedy(Sure(0), "wait-if-worse", s0=2, delta=2), "vwxyz") == (["a"] * 3, [4, 4, 4])
    assert driven(Greedy(Sure(0), "wait-if-worse", s0=9, delta=2), "vwxyz") == (["a"] * 3, [5, 5, 5])


def test_the_criteria_differ():
    """With the second word, `a` is still best but less likely: worse, not different."""

    class Doubting(Toy):
        def __call__(self, source, target, finished):
            odds = [0.1, 0.1, 0.1, 0.7] if target else [0.9 - 0.2 * len(source), 0.05, 0.05, 0.2 * len(source)]
            return np.log(odds)

    assert driven(Greedy(Doubting(0), "wait-if-diff"), "vwx") == (["a"], [2])
    with pytest.raises(Failure, match="wrote nothing"):  # by the third word, the end is more likely
        driven(Greedy(Doubting(0), "wait-if-worse"), "vwx")


def test_any_criterion():
    never = Greedy(Toy(3), lambda now, more: False, s0=1, delta=1)
    always = Greedy(Toy(3), lambda now, more: True, s0=1, delta=1)
    assert set(driven(always, "wxyz")[1]) == {4}
    assert set(driven(never, "wxyz")[1]) == {2}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"criterion": "wait-if-dif"}, r"no criterion 'wait-if-dif'.*wait-if-diff"),
        ({"s0": 0}, "s0 is a whole number of source tokens, at least 1, but got 0"),
        ({"delta": 1.5}, r"delta is a whole number .* got 1\.5"),
        ({"end": "<eos>"}, "vocabulary has no '<eos>'"),
    ],
)
def test_arguments_that_make_no_sense(wrong, said):
    with pytest.raises(UsageError, match=said):
        Greedy(Toy(0), **{"criterion": "wait-if-diff", **wrong})


@pytest.mark.parametrize(
    ("answer", "said"), [([0.0, 0.0], r"4 tokens .* shape \(2,\)"), ([0.0, np.nan, 0.0, 0.0], "4 tokens .* gave NaN")]
)
def test_what_is_no_distribution(answer, said):
    class Wrong(Toy):
        def __call__(self, source, target, finished):
            return answer

    with pytest.raises(Failure, match=said) as failure:
        driven(Greedy(Wrong(0), wait_if_diff), "xy")
    assert failure.value.kind == "raised"


# ---- segments ---------------------------------------------------------------------------------------------------


def whole_segments(source, ends):
    """The segments of a source, all at once."""
    cuts = [i for i in range(1, len(source) + 1) if ends(source[:i])]
    cuts = sorted({*cuts, len(source)})
    return [source[a:b] for a, b in zip([0, *cuts], cuts, strict=False)]


@given(st.lists(st.sampled_from(["a", "b,", "c.", "d"]), min_size=1, max_size=12), st.integers(1, 4))
def test_segments_are_translated_when_they_are_complete(source, chunk):
    given_to = []

    def translate(segment):
        given_to.append(list(segment))
        return " ".join(segment).upper()

    said, delays = driven(Segmented(translate), source, chunk)
    segments = whole_segments(source, lambda so_far: so_far[-1][-1] in ",.")
    assert given_to == segments
    assert said == [word.upper() for word in source]
    ends = np.repeat(np.cumsum([len(s) for s in segments]), [len(s) for s in segments])
    assert delays == np.minimum(-(-ends // chunk) * chunk, len(source)).tolist()


def test_a_segment_may_have_no_translation():
    quiet = Segmented(lambda segment: "" if segment == ["um,"] else " ".join(segment), lambda so_far: len(so_far) == 1)
    assert driven(quiet, ["um,", "I", "see"]) == (["I", "see"], [3, 3])
