# SPDX-License-Identifier: Apache-2.0
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lagging.data.scripts import is_unspaced
from lagging.data.tokens import count_spaces, count_tokens, count_words, detect_level, tokens, without_eos

# letters, every kind of white space that str.split knows, marks that begin with the same bytes, control characters
letters = st.sampled_from(
    [*"ab é你😀", *"\t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u2003\u2009\u2028\u202f\u205f\u3000", *"“”…\x00\x07\x1b\ud800"]
)
texts = st.lists(st.text(letters, max_size=12), max_size=6)


@given(texts)
def test_words_are_counted_as_split_counts(many: list[str]) -> None:
    np.testing.assert_array_equal(count_words(many), [len(text.split()) for text in many])


@given(texts)
def test_spaces_are_counted_as_count_counts(many: list[str]) -> None:
    np.testing.assert_array_equal(count_spaces(many), [text.count(" ") for text in many])


@given(st.lists(st.text(st.sampled_from("ab é“"), max_size=12), max_size=6))
def test_words_are_counted_in_bulk(many: list[str]) -> None:
    np.testing.assert_array_equal(count_words(many), [len(text.split()) for text in many])


def test_tokens_without_text_are_the_logs_own() -> None:
    assert count_tokens(["a b", None], "char", [9, 4]).tolist() == [2, 4]
    assert count_tokens(["a b", " ", None], "token", [9, 4, 3]).tolist() == [9, 0, 3]


def test_eos_is_one_token() -> None:
    assert tokens("你好 </s> ", "char") == ["你", "好", "</s>"]
    assert without_eos("a b </s>\n") == "a b"
    assert without_eos("a b\n") == "a b\n"


def test_level_is_what_most_lines_say() -> None:
    assert detect_level(["a b", "c d", "e f"], [2, 2, 9]) == "word"
    assert detect_level(["你好", "你好吗", "嗯"], [2, 3, 9]) == "char"
    assert detect_level(["", None], [0, 0]) == "token"


def test_level_of_two_lines_is_what_the_one_that_fits_says() -> None:
    assert detect_level(["a b", "c d"], [2, 9]) == "word"
    assert detect_level(["ab cd", "ef gh"], [9, 2]) == "word"
    assert detect_level(["你好", "你好吗"], [2, 9]) == "char"
    assert detect_level(["ab cd", "你好吗"], [2, 3]) == "token"  # one fits words, and the other characters
    assert detect_level(["ab cd", "ef gh", "ij kl"], [2, 9, 7]) == "token"  # two of three do not fit


def test_lines_without_text_or_without_delays_say_nothing_of_the_level() -> None:
    assert detect_level(["", None, " ", "a b", "c d"], [3, 3, 0, 2, 9]) == "word"
    assert detect_level(["a b", "c d", "e f", "g h"], [2, 0, 0, 0]) == "word"
    assert detect_level(["guten Tag", "</s>"], [5, 1]) == "token"
    assert detect_level(["</s>"], [1]) == "word"


def test_scripts_without_spaces() -> None:
    assert is_unspaced("你好 世界")
    assert is_unspaced("สวัสดี")
    assert is_unspaced("ဒီနေ့ရာသီဥတုကောင်းတယ်။")
    assert is_unspaced("བཀྲ་ཤིས་བདེ་ལེགས།")
    assert is_unspaced("𠮷野家")
    assert is_unspaced("ｶﾀｶﾅ")
    assert not is_unspaced("hello 世")
    assert not is_unspaced("안녕 세계")
