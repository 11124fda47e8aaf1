# SPDX-License-Identifier: Apache-2.0
"""Word lag: matches by text and by alignment, against an oracle in fractions; signatures; what cannot be computed."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lagging
import oracle_words
from lagging.metrics import letters as alignment
from lagging.metrics.asr_latency import compared_words
from lagging.metrics.words import match_words

ALL = ["WordLag", "WordLag(of=start)", "WordLagPercentile(p=50)", "WordsMatched", "MAAL", "EVS"]

letters = st.text(st.sampled_from("abc,"), min_size=1, max_size=4)


def timed(delays, texts, times, **more):
    length = [max([9_000, *(1000 * word[1] for word in words or ())]) for words in times]
    run = lagging.Run.from_delays(
        delays, source_length=length, prediction=texts, unit="ms", level="word", reference=more.pop("reference", None)
    )
    return lagging.with_word_times(run, times, **more)


def value(run, metric):
    return lagging.score(run, [metric])[metric].value


@st.composite
def recognised(draw):
    """Source words with their times, a text that is like them, and when each of its words appeared; all in ms."""
    words = draw(st.lists(letters, min_size=1, max_size=8))
    steps = draw(st.lists(st.integers(0, 400), min_size=2 * len(words), max_size=2 * len(words)))
    at = np.cumsum(steps).tolist()
    spoken = [(Fraction(at[2 * k]), Fraction(at[2 * k + 1]), word) for k, word in enumerate(words)]
    kinds = draw(
        st.lists(st.sampled_from(["same", "gone", "other", "twice"]), min_size=len(words), max_size=len(words))
    )
    out: list[str] = []
    for word, kind in zip(words, kinds, strict=True):
        out += {"same": [word], "gone": [], "other": [draw(letters)], "twice": [word, word]}[kind]
    out = out or ["a"]
    times = np.cumsum(draw(st.lists(st.integers(0, 900), min_size=len(out), max_size=len(out)))).tolist()
    return spoken, " ".join(out), [Fraction(time) for time in times]


@given(recognised())
def test_word_lag_is_that_of_the_oracle(case) -> None:
    spoken, text, times = case
    seconds = [[(float(a) / 1000, float(b) / 1000, word) for a, b, word in spoken]]
    run = timed([[float(t) for t in times]], [text], seconds)
    expected = oracle_words.word_lag(spoken, text, times)
    assert value(run, "WordLag") == pytest.approx(math.nan if expected is None else float(expected), nan_ok=True)
    shown = oracle_words.appeared([word for _, _, word in spoken], text, times)
    found = [time is not None for time in shown]
    assert value(run, "WordsMatched") == sum(found) / len(found)
    charged = oracle_words.maal([end for _, end, _ in spoken], shown, [end - start for start, end, _ in spoken])
    assert value(run, "MAAL") == pytest.approx(float(charged))
    assert value(run, "EVS") == pytest.approx(value(run, "WordLag(of=start)"), nan_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_path_is_the_same_in_long_texts(seed: int) -> None:
    """Of long texts, rapidfuzz computes half by half, and first within a band."""
    random = np.random.default_rng(seed)
    words = ["".join(random.choice(list("etaoin"), size=3)) for _ in range(500)]
    kept = [word if random.random() > 0.1 else "eta" for word in words if random.random() > 0.1]
    times = [Fraction(k) for k in range(len(kept))]
    shown = oracle_words.appeared(words, " ".join(kept), times)
    assert [None if t < 0 else t for t in match_words(words, " ".join(kept)).tolist()] == shown


@pytest.mark.parametrize("seed", range(3))
def test_texts_that_are_divided_are_aligned_as_the_whole(seed: int, monkeypatch) -> None:
    monkeypatch.setattr(alignment, "PART", 150)
    random = np.random.default_rng(seed)
    words = ["".join(random.choice(list("etaoinsh"), size=random.integers(1, 8))) for _ in range(300)]
    kept = [word if random.random() > 0.1 else "eta" for word in words if random.random() > 0.05]
    a, b = " ".join(words), " ".join(kept)
    assert len(list(alignment._parts(a, b))) > 3
    ours, theirs = alignment.equal_letters(a, b, long=100)
    assert list(zip(ours.tolist(), theirs.tolist(), strict=True)) == oracle_words.equal_letters(a, b)
    moved = " ".join(kept[:200] + kept[230:] + kept[200:230])
    ours, theirs = alignment.equal_letters(a, moved, long=100)
    assert [a[k] for k in ours] == [moved[k] for k in theirs]
    assert (np.diff(ours) > 0).all()
    assert (np.diff(theirs) > 0).all()


def test_texts_without_common_passages_are_not_divided() -> None:
    a, b = "ab" * 100, "cd" * 90
    assert list(alignment._parts(a, b)) == [(0, 0, 200, 180)]
    assert [len(places) for places in alignment.equal_letters(a, b, long=10)] == [0, 0]


def test_a_simulated_stream_gives_exact_lags() -> None:
    """Words of 300 ms, each shown a second after its end, but the third after two, and the fourth never."""
    words = ["aa", "bb", "cc", "dd", "ee"]
    times = [[(0.3 * k, 0.3 * (k + 1), word) for k, word in enumerate(words)]]
    run = timed([[1300, 1600, 2900, 2900]], ["aa bb cc ee"], times)
    scores = lagging.score(run, [*ALL, "WordLagPercentile(p=100)"])
    lags = [Fraction(1000), Fraction(1000), Fraction(2000), Fraction(1400)]
    assert scores["WordLag"].value == float(sum(lags) / 4)
    assert scores["WordLag(of=start)"].value == float(sum(lags) / 4 + 300)
    assert scores["WordLagPercentile(p=50)"].value == 1200
    assert scores["WordLagPercentile(p=100)"].value == 2000
    assert scores["WordsMatched"].value == 0.8
    assert scores["MAAL"].value == float((sum(lags) + 2000 + 300) / 5)


def test_a_word_has_the_time_of_its_last_letter_that_is_found() -> None:
    assert match_words(["autocompletion"], "auto completion").tolist() == [1]
    assert match_words(["auto", "completion"], "auto-completion").tolist() == [0, 0]
    assert match_words(["Hello,"], "hello.").tolist() == [0]
    assert match_words(["xyz", "b"], "a  b").tolist() == [-1, 1]
    assert match_words(["今天", "天气"], "今天天气", "char").tolist() == [1, 3]
    assert match_words([], "a").tolist() == []
    assert match_words(["a"], "").tolist() == [-1]


def test_the_corpus_is_a_mean_over_words() -> None:
    run = timed([[1000], [2000, 2000, 2000]], ["a", "b c d"], [[(0, 0.5, "a")], [(0, 1, w) for w in "bcd"]])
    score = lagging.score(run, ["WordLag"])["WordLag"]
    assert (score.value, score.segments.tolist()) == ((500 + 3 * 1000) / 4, [500, 1000])


def test_segments_without_word_times_or_matches_are_undefined() -> None:
    run = timed(
        [[1000], [1000], [], [1000]], ["a", "a", "", "zz"], [[(0, 0.5, "a")], None, [(0, 0.5, "a")], [(0, 1, "b")]]
    )
    scores = lagging.score(run, ALL)
    assert scores["WordLag"].value == 500
    assert {reason: list(ids) for reason, ids in scores["WordLag"].undefined.reasons.items()} == {
        "empty hypothesis": [2],
        "no word times, or no source word is found in the output": [1, 3],
    }
    assert scores["WordsMatched"].value == 1 / 3
    assert scores["WordsMatched"].segments.tolist() == pytest.approx([1, math.nan, 0, 0], nan_ok=True)
    charged = lagging.score(run, ["WordLag(empty=source)"])["WordLag(empty=source)"]
    assert charged.segments[2] == 9000 - 500


@given(recognised())
def test_what_asr_latency_compares_is_that_of_the_oracle(case) -> None:
    spoken, text, times = case
    words = [word for _, _, word in spoken]
    pairs = oracle_words.compared(words, text.split())
    assert compared_words(words, text.split()).tolist() == [list(pair) for pair in pairs]
    lags = [max(Fraction(), times[there] - spoken[here][1]) for here, there in pairs]
    seconds = [[(float(a) / 1000, float(b) / 1000, word) for a, b, word in spoken]]
    run = timed([[float(t) for t in times]], [text], seconds)
    expected = float(sum(lags, Fraction()) / len(lags)) if lags else math.nan
    assert value(run, "WordLag(pairs=asr_latency)") == pytest.approx(expected, nan_ok=True)


def test_asr_latency_needs_words_and_has_a_limit() -> None:
    run = timed([[1000]], ["a"], [[(0, 0.5, "a")]], alignment=["0-0"])
    with pytest.raises(lagging.MetricError, match="finds words by their text"):
        value(run, "WordLag(pairs=asr_latency)")
    with pytest.raises(lagging.MetricError, match="too many"):
        compared_words(["a" * 20_000], ["b" * 20_000])


# ---- alignments ---------------------------------------------------------------------------------------------------


def test_an_alignment_of_the_hypothesis() -> None:
    """ich habe eine Katze gesehen → I saw a cat: saw belongs to two words, of which the last is spoken last."""
    words = ["ich", "habe", "eine", "Katze", "gesehen"]
    times = [[(0.4 * k, 0.4 * k + 0.3, word) for k, word in enumerate(words)]]
    delays = [[1000, 2400, 2400, 2600]]
    run = timed(delays, ["I saw a cat"], times, alignment=["0-0 1-1 4-1 2-2 3-3"])
    ends, starts = [Fraction(400 * k + 300) for k in range(5)], [Fraction(400 * k) for k in range(5)]
    shown = [Fraction(t) for t in (1000, 2400, 2400, 2600, 2400)]
    assert value(run, "WordLag") == float(sum(s - e for s, e in zip(shown, ends, strict=True)) / 5)
    assert value(run, "WordsMatched") == 1
    target = [Fraction(t) for t in delays[0]]
    owners = [0, 4, 2, 3]
    assert value(run, "MAAL") == float(oracle_words.maal([ends[k] for k in owners], target, [Fraction(300)]))
    firsts = [0, 1, 2, 3]
    assert value(run, "EVS") == float(sum(t - starts[k] for t, k in zip(target, firsts, strict=True)) / 4)


def test_a_word_that_is_not_aligned_is_charged() -> None:
    times = [[(0, 0.2, "ja"), (0.2, 0.6, "gut")]]
    run = timed([[500, 900, 1000]], ["oh yes good"], times, alignment=["0-1 1-2"])
    assert value(run, "MAAL") == float(
        oracle_words.maal(
            [None, Fraction(200), Fraction(600)],
            [Fraction(500), Fraction(900), Fraction(1000)],
            [Fraction(200), Fraction(400)],
        )
    )
    assert value(run, "MAAL") == (300 + 700 + 400) / 3


def test_an_alignment_of_the_reference_goes_on_by_text() -> None:
    times = [[(0, 0.3, "guten"), (0.3, 0.7, "Abend"), (0.7, 1.0, "alle")]]
    more = {"alignment": ["0-0 1-1 2-2"], "aligned_with": "reference", "reference": ["good evening everybody"]}
    run = timed([[1000, 1200]], ["good evening"], times, **more)
    assert value(run, "WordLag") == (700 + 500) / 2
    assert value(run, "WordsMatched") == 2 / 3
    assert value(run, "MAAL") == pytest.approx((700 + 500 + 500 + 1000 / 3) / 3)
    with pytest.raises(lagging.MetricError, match="the alignment is of the reference, and segment 0 has none"):
        value(replace(run, reference=None), "WordLag")


# ---- signatures, and what cannot be computed ----------------------------------------------------------------------


def test_signatures_name_the_words_and_the_match() -> None:
    run = timed([[1000]], ["a"], [[(0, 0.5, "a")]])
    signature = lagging.score(run, ["WordLag"])["WordLag"].signature
    assert signature["match"] == "text"
    assert signature["of"] == "end"
    assert signature.get("align") is None
    other = timed([[1000]], ["a"], [[(0, 0.6, "a")]], alignment=["0-0"])
    aligned = lagging.score(other, ["WordLag(of=start)"])["WordLag(of=start)"].signature
    assert aligned["words"] != signature["words"]
    assert (aligned["match"], aligned["of"], aligned["align"][:11]) == ("alignment", "start", "hypothesis-")
    assert lagging.score(run, ["DAL"])["DAL"].signature.get("words") is None


def test_parts_add_up_and_must_have_the_same_words() -> None:
    run = timed([[1000], [2000]], ["a", "b"], [[(0, 0.5, "a")], [(0, 1, "b")]], alignment=["0-0", "0-0"])
    whole = lagging.score(run, ALL)
    for metric in ALL:
        parts = lagging.score(iter([run[:1], run[1:]]), [metric])[metric]
        assert (parts.value, parts.signature) == (whole[metric].value, whole[metric].signature)
    joined = lagging.Run.concat([run[:1], run[[1]]])
    assert lagging.score(joined, ALL)["MAAL"].value == whole["MAAL"].value
    other = timed([[1000]], ["a"], [[(0, 0.4, "a")]])
    with pytest.raises(lagging.UsageError, match="these runs differ in their word times"):
        lagging.Run.concat([run[:1], other])


def test_what_cannot_be_computed_says_why() -> None:
    plain = lagging.Run.from_delays([[1, 2]], source_length=[2], prediction=["a b"])
    with pytest.raises(lagging.MetricError, match="word_times=FILE"):
        lagging.score(plain, ["WordLag"])
    tokens = lagging.with_word_times(plain, [[(0, 0.001, "a")]])
    with pytest.raises(lagging.MetricError, match="word times are in milliseconds"):
        lagging.score(tokens, ["WordLag"])
    run = timed([[1000]], ["a"], [[(0, 0.5, "a")]])
    with pytest.raises(lagging.MetricError, match="segments cut from them"):
        lagging.score(replace(run, seg="given"), ["WordLag"])
    with pytest.raises(lagging.MetricError, match="not words of the text"):
        lagging.score(replace(run, level="token"), ["WordLag"])


def test_writing_says_that_word_times_are_lost(tmp_path) -> None:
    run = timed([[1000]], ["a"], [[(0, 0.5, "a")]])
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        assert lagging.write(run, tmp_path / name) == ["word times (give them again with --word-times)"]
    assert "word_start" not in json.loads((tmp_path / "a.jsonl").read_text())


# ---- a recording of whisper_streaming -----------------------------------------------------------------------------


def test_whisper_streaming_against_its_gold_words(data, tmp_path) -> None:
    folder = data / "streams" / "whisper_streaming"
    delays: list[float] = []
    words: list[str] = []
    for line in (folder / "candidate.txt").read_text().splitlines():
        time, _, _, *text = line.split()
        delays += [float(time)] * len(text)
        words += text
    run = lagging.Run.from_delays([delays], source_length=[6280], prediction=[" ".join(words)], unit="ms")
    run = lagging.with_word_times(run, folder / "gold_words.tsv")
    gold = [line.split("\t") for line in (folder / "gold_words.tsv").read_text().splitlines()]
    exact = [(Fraction(round(float(a) * 1000)), Fraction(round(float(b) * 1000)), w) for a, b, w in gold]
    expected = oracle_words.word_lag(exact, " ".join(words), [Fraction(d) for d in delays])
    assert value(run, "WordLag") == float(expected) == 1948.8
    # ufal/asr_latency prints 1.966727272727273: it counts the last word again, for the space after it
    assert value(run, "WordLag(pairs=asr_latency)") == pytest.approx(1966.727272727273, abs=1e-9)
