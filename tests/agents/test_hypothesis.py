# SPDX-License-Identifier: Apache-2.0
import re
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagging import UsageError
from lagging.agents.failures import Failure
from lagging.agents.hypothesis import JOINTS, LEVELS, Hypothesis

# ---- an oracle: the text after every action, and nothing else ---------------------------------------------------

LETTERS = {"Ġ": b" ", "Ã": b"\xc3", "¼": b"\xbc", "a": b"a", "b": b"b"}


def text_of(pieces, joined_by):
    """What pieces say, by string operations that know nothing of the joints."""
    if joined_by == "word":
        return " ".join(pieces)
    if joined_by == "none":
        return "".join(pieces)
    if joined_by == "bpe":
        return (" ".join(pieces) + " ").replace("@@ ", "").removesuffix("@@")
    if joined_by == "bytes":
        return b"".join(LETTERS[letter] for letter in "".join(pieces)).decode(errors="replace")
    raw = b"".join(bytes.fromhex(p[3:5]) if re.fullmatch("<0x..>", p) else p.encode() for p in pieces)
    return raw.decode(errors="replace").replace("▁", " ")


def tokens_of(pieces, joined_by, level):
    if level == "token":
        return list(pieces)
    text = text_of(pieces, joined_by)
    return text.split() if level == "word" else [letter for letter in text if not letter.isspace()]


def stable_since(snapshots):
    """Of each final token, the step from which on it, and all before it, stayed as they are."""
    final = snapshots[-1][1]
    since = []
    for i in range(len(final)):
        step = snapshots[-1][0]
        for at, tokens in reversed(snapshots):
            if tokens[: i + 1] != final[: i + 1]:
                break
            step = at
        since.append(step)
    return since


def gone(before, after):
    return next((len(before) - i for i, token in enumerate(before) if after[i : i + 1] != [token]), 0)


PIECES = {
    "word": ["a", "b", "ab"],
    "none": ["a", "b ", " a", "a b", " "],
    "spm": ["▁", "▁a", "b", "▁a▁b", "<0xC3>", "<0xBC>"],
    "bytes": ["Ġ", "Ġa", "b", "Ã", "¼", "ĠbÃ¼"],
    "bpe": ["a", "b@@", "a@@", "b"],
}


@st.composite
def histories(draw):
    joined_by = draw(st.sampled_from(list(PIECES)))
    some = st.lists(st.sampled_from(PIECES[joined_by]), max_size=4)
    action = st.one_of(
        st.tuples(st.just("write"), some, st.booleans()),
        st.tuples(st.just("erase"), st.integers(0, 3), st.none()),
        st.tuples(st.just("revise"), st.tuples(st.integers(0, 8), some), st.booleans()),
    )
    return joined_by, draw(st.sampled_from(LEVELS)), draw(st.lists(action, min_size=1, max_size=12))


@given(histories())
def test_every_token_is_there_since_it_stayed(history):
    joined_by, level, actions = history
    said = Hypothesis([], joined_by, level)
    snapshots, erased, revisions = [(-1, [])], 0, 0
    glue = "" if joined_by == "none" else " "
    for step, (kind, what, as_text) in enumerate(actions):
        before = list(said.pieces)
        if kind == "write":
            assert said.write(glue.join(what) if as_text else what, step) == bool(what)
            assert text_of(said.pieces, joined_by) == text_of(before + what, joined_by)
        elif kind == "erase":
            count = min(what, len(before))
            said.erase(count, step)
            assert said.pieces == before[: len(before) - count]
        else:
            whole = before[: what[0]] + what[1]
            changed = said.revise(glue.join(whole) if as_text else whole, step)
            assert changed == (said.pieces != before)
            assert text_of(said.pieces, joined_by) == text_of(whole, joined_by)
        snapshots.append((step, tokens_of(said.pieces, joined_by, level)))
        if said.pieces[: len(before)] != before:
            lost = gone(snapshots[-2][1], snapshots[-1][1])
            erased, revisions = erased + lost, revisions + (lost > 0)
    text, steps = said.finish()
    assert text == text_of(said.pieces, joined_by).strip()
    assert steps == stable_since(snapshots)
    assert steps == sorted(steps)
    assert (said.erased, said.revisions) == (erased, revisions)
    assert said.is_blank() == (not text)


# ---- by hand ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("joined_by", "level", "writes", "text", "steps"),
    [
        ("word", "word", ["see you", "soon"], "see you soon", [0, 0, 1]),
        ("word", "word", [["see you", "", " soon "], ["!"]], "see you soon !", [0, 0, 0, 1]),
        ("word", "char", ["ab", "c"], "ab c", [0, 0, 1]),
        ("word", "token", [["New York"], ["a"]], "New York a", [0, 1]),
        ("none", "word", ["with", "out end", "ing"], "without ending", [1, 2]),
        ("none", "char", ["你", "好 吗"], "你好 吗", [0, 1, 1]),
        ("none", "token", ["你", "好 吗"], "你好 吗", [0, 1]),
        ("spm", "word", ["▁with", "out", "▁end"], "without end", [1, 2]),
        ("spm", "word", ["▁with out", "▁end"], "without end", [0, 1]),  # pieces between spaces, as SimulEval has them
        ("spm", "char", [["▁", "<0xE4>"], ["<0xBD>"], ["<0xA0>", "好"]], "你好", [2, 2]),
        ("spm", "token", ["▁with", "out"], "without", [0, 1]),
        ("bytes", "word", ["Gr", "Ã¼ÃŁe", "Ġdich"], "Grüße dich", [1, 2]),
        ("bytes", "char", ["Ã", "¼"], "ü", [1]),
        ("bpe", "word", ["with@@ out", "en@@", "d"], "without end", [0, 2]),
        ("bpe", "word", ["with@@"], "with", [0]),
        ("none", "word", ["", "  "], "", []),
    ],
)
def test_pieces_become_a_text(joined_by, level, writes, text, steps):
    said = Hypothesis([], joined_by, level)
    for step, content in enumerate(writes):
        said.write(content, step)
    assert said.finish() == (text, steps)
    assert (said.erased, said.revisions) == (0, 0)


def test_a_word_that_loses_its_end_is_new():
    said = Hypothesis([], "spm")
    said.write(["▁so", "▁with"], 0)
    said.write(["out"], 1)
    said.erase(1, 2)
    assert said.finish() == ("so with", [0, 2])
    assert (said.erased, said.revisions) == (1, 1)


def test_a_revised_text_keeps_what_it_shares():
    said = Hypothesis([], "none")
    for step, text in enumerate(["I see", "I see you", "I see yours", "I say"]):
        assert said.revise(text, step)
    assert said.finish() == ("I say", [0, 3])
    assert not said.revise("I say", 4)
    assert (said.erased, said.revisions) == (2, 1)  # "see" and "yours"; that "you" grew took nothing back


def test_strings_of_other_kinds_are_strings():
    words = np.array(["see you", "soon"])  # whose items are a subclass of str
    said = Hypothesis([])
    said.write(words[0], 0)
    said.write([words[1]], 1)
    said.revise(words[0], 2)
    assert said.finish() == ("see you", [0, 0])


def test_more_than_there_is_cannot_be_erased():
    said = Hypothesis([])
    said.write("a b", 0)
    with pytest.raises(Failure, match="took back what it had never written: 3 tokens, where 2 stood"):
        said.erase(3, 1)
    assert said.finish() == ("a b", [0, 0])


def test_names_that_are_not_there():
    assert list(JOINTS) == ["word", "none", "spm", "bytes", "bpe"]
    with pytest.raises(UsageError, match="joined by one of word, none, spm, bytes, bpe, not 'sp'"):
        Hypothesis([], "sp")
    with pytest.raises(UsageError, match="counted by one of word, char, token, not 'spm'"):
        Hypothesis([], level="spm")


def test_what_a_step_costs_does_not_grow_with_the_text():
    said, began = Hypothesis([]), time.process_time()
    for step in range(20_000):  # 50 s, if every step went over the whole text
        said.erase(min(step, 1), step)
        said.write(["a", "B"], step)
    assert time.process_time() - began < 5
    assert said.finish() == ("a " * 20_000 + "B", [*range(20_000), 19_999])
    assert (said.erased, said.revisions) == (19_999, 19_999)
