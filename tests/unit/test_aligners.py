# SPDX-License-Identifier: Apache-2.0
"""Where each aligner cuts a stream: against all cuts there are, and what must not change a cut."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from lagging.longform import ALIGNERS, Stream
from lagging.longform.aligners import NEIGHBOURS, _running_median, mwer, soft, timed
from lagging.longform.softsegmenter import _jaccard, _parts, _table
from lagging.longform.words import CUT_CAPITAL, CUT_SENTENCE, Punctuation, fold, resemblance

EACH = pytest.mark.parametrize("aligner", list(ALIGNERS.values()), ids=list(ALIGNERS))
WORDS = ["ja", "Ja", "ja.", "und", "Und,", "nein?", "(Applaus)", "--", "ist", "isst", "U.S.", "x-y", "3,14"]


def made(seed: int, segments: int, glue: bool = False) -> Stream:
    """A stream that has something to do with its references, or nothing; with times, or without."""
    rng = random.Random(seed)

    def some(most: int) -> list[str]:
        return rng.choices(WORDS, k=rng.randint(0, most))

    references = [some(6) for _ in range(rng.randint(1, segments))]
    tokens = some(6) if rng.random() < 0.3 else [word for part in references for word in part]
    for _ in range(rng.randint(0, 3)):
        place = rng.randint(0, len(tokens))
        tokens = [*tokens[:place], *some(3), *tokens[place + rng.randint(0, 2) :]]
    more: dict[str, np.ndarray] = {}
    if rng.random() < 0.7:
        when, begin = (sorted(rng.choices(range(60), k=n)) for n in (len(tokens), len(references)))
        more = {"times": np.array(when) * 500.0, "offset": np.array(begin) * 500.0}
    if glue:
        more["glued"] = np.array([k > 0 and rng.random() < 0.5 for k in range(len(tokens))], dtype=bool)
    return Stream(tokens, references, **more)


def streams(segments: int = 5, **more: bool) -> st.SearchStrategy[Stream]:
    return st.integers(0, 2**30).map(lambda seed: made(seed, segments, **more))


def parts(stream: Stream, boundaries: Sequence[int]) -> list[list[str]]:
    return [list(stream.tokens[a:b]) for a, b in pairwise(boundaries)]


def edits(stream: Stream, boundaries: Sequence[int]) -> int:
    """The sum of the segments' edit distances, without case and punctuation."""
    pairs = zip(stream.references, parts(stream, boundaries), strict=True)
    return sum(Levenshtein.distance(list(map(fold, ours)), list(map(fold, theirs))) for ours, theirs in pairs)


# ---- all of them ----------------------------------------------------------------------------------------------------


@EACH
@settings(max_examples=50)
@given(streams())
def test_a_stream_is_cut_and_nothing_is_lost(aligner, stream):
    boundaries = aligner(stream)
    assert boundaries.dtype.kind == "i"
    assert len(boundaries) == len(stream.references) + 1
    assert (boundaries[0], boundaries[-1]) == (0, len(stream.tokens))
    assert (np.diff(boundaries) >= 0).all()
    assert [token for part in parts(stream, boundaries) for token in part] == list(stream.tokens)
    again = Stream(stream.tokens, stream.references, stream.times, stream.offset)
    assert aligner(again).tolist() == boundaries.tolist()


SENTENCES = {
    "german": ["Guten Tag!", "Wir fahren heute nach Köln.", "", "(Applaus)", "und dann weiter, ja und dann", "ja"],
    "arabic": ["صباح الخير.", "كيف حالك اليوم؟", "أنا بخير، شكرا لك"],
    "greek": ["Καλημέρα!", "Στις 3 Μαΐου πάμε", "στην Αθήνα."],
}
CHARACTERS = {
    "chinese": ["今天她看起来很好，", "我们一起去公园散步吧。", "", "Amy", "今天心情很好"],
    "thai": ["สวัสดีครับ", "วันนี้อากาศดีมาก", "ไปเที่ยวกันเถอะ"],
    "japanese": ["はい。", "はい。", "そうですね、ー", "はい"],
}


@EACH
@pytest.mark.parametrize(
    "references",
    [
        *([text.split() for text in texts] for texts in SENTENCES.values()),
        *([list(text) for text in texts] for texts in CHARACTERS.values()),
        *([text.split() for text in texts] for texts in CHARACTERS.values()),
        [["ja"]],
        [[], ["ja"], [], [], ["ja"], []],
    ],
)
@pytest.mark.parametrize("lag", [None, 0.0, 3000.0])
def test_a_perfect_hypothesis_is_cut_at_the_references(aligner, references, lag):
    tokens = [token for segment in references for token in segment]
    ends = np.cumsum([0, *map(len, references)])
    more = {} if lag is None else {"times": np.arange(len(tokens)) * 400.0 + lag, "offset": ends[:-1] * 400.0}
    assert aligner(Stream(tokens, references, **more)).tolist() == ends.tolist()


@EACH
@settings(max_examples=30)
@given(streams(segments=6), st.integers(0, 3000))
def test_any_perfect_hypothesis(aligner, stream, lag):
    references = stream.references
    tokens = [token for segment in references for token in segment]
    ends = np.cumsum([0, *map(len, references)])
    stream = Stream(tokens, references, np.arange(len(tokens)) * 400.0 + lag, ends[:-1] * 400.0)
    assert aligner(stream).tolist() == ends.tolist()


def full_width(token: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if c.isascii() and c.isalnum() else c for c in token)


def decomposed(token: str) -> str:
    return unicodedata.normalize("NFD", token)


ALWAYS = [full_width, decomposed]
FORMS: dict[str, list[Callable[[str], str]]] = {
    "timed": ALWAYS,  # capitals have their say in where a sentence begins
    "soft": ALWAYS,
    "mwer": ALWAYS,
    "omnisteval": [*ALWAYS, str.upper, str.lower],
    "mweralign": [str.upper, str.lower],
}


@pytest.mark.parametrize(("name", "form"), [(name, form) for name, forms in FORMS.items() for form in forms])
@settings(max_examples=25)
@given(streams())
def test_forms_of_letters_change_no_cut(name, form, stream):
    changed = Stream([form(token) for token in stream.tokens], stream.references, stream.times, stream.offset)
    assert ALIGNERS[name](changed).tolist() == ALIGNERS[name](stream).tolist()


@pytest.mark.parametrize(("name", "equal"), [("mweralign", "UNS"), ("mwersegmenter", "uns")])
def test_case_as_other_tools_compare_it(name, equal):
    """mweralign lowers ASCII letters alone, mwerSegmenter none: what is not equal is as good as any other word."""

    def cut(*tokens: str) -> list[int]:
        return ALIGNERS[name](Stream(tokens, [["so", "uns"], ["über", "so"]])).tolist()

    assert cut("so", equal, "x", "x") == [0, 2, 4]
    assert cut("so", "ÜBER") == cut("so", "x") != cut("so", "über")


@pytest.mark.parametrize("aligner", [mwer, soft, timed])
@settings(max_examples=60)
@given(streams(glue=True))
def test_nothing_is_cut_within_a_word(aligner, stream):
    inner = np.flatnonzero(stream.glued)
    assert not set(aligner(stream).tolist()) & set(inner.tolist())


# ---- mwer -----------------------------------------------------------------------------------------------------------


@given(streams(segments=8))
def test_the_segments_have_as_few_edits_as_the_whole(stream):
    reference = [fold(token) for segment in stream.references for token in segment]
    least = Levenshtein.distance(reference, list(map(fold, stream.tokens)))
    assert edits(stream, mwer(stream).tolist()) == least


def too_early(stream: Stream, boundaries: Sequence[int]) -> int:
    """Boundaries after which there is a token that was written before the next segment began."""
    if stream.times is None:
        return 0
    inner = zip(boundaries[1:-1], stream.offset[1:], strict=True)
    return sum(cut < len(stream.times) and stream.times[cut] < begin for cut, begin in inner)


def agreed(stream: Stream, boundaries: Sequence[int]) -> float:
    """How much punctuation agrees at the boundaries, straight from its words."""
    total = 0.0
    for k, cut in enumerate(boundaries[1:-1]):
        before = [w for part in stream.references[: k + 1] for w in part][-1:]
        after = [w for part in stream.references[k + 1 :] for w in part][:1]
        for theirs, ours, worth, has in (
            (stream.tokens[:cut][-1:], before, CUT_SENTENCE, lambda w: w[-1] in ".?!"),
            (stream.tokens[cut : cut + 1], after, CUT_CAPITAL, lambda w: w.lstrip("(")[:1].isupper()),
        ):
            if any(map(has, theirs)):
                total += worth if any(map(has, ours)) else -worth
    return total


@settings(max_examples=100)
@given(streams(segments=4))
def test_punctuation_of_boundaries(stream):
    potential = Punctuation(stream.tokens, stream.references)
    n = len(stream.tokens)
    for cuts in combinations_with_replacement(range(n + 1), min(len(stream.references) - 1, 2)):
        cuts = (*cuts, *[n] * (len(stream.references) - 1 - len(cuts)))
        found = sum(potential.at(k, slice(cut, cut + 1)).item() for k, cut in enumerate(cuts))
        assert found == pytest.approx(agreed(stream, (0, *cuts, n)), abs=1e-12)


@given(streams(segments=3))
def test_of_equal_cuts_time_decides_then_punctuation(stream):
    n, inner = len(stream.tokens), len(stream.references) - 1
    all_cuts = [(0, *cuts, n) for cuts in combinations_with_replacement(range(n + 1), inner)]
    least = min(edits(stream, cut) for cut in all_cuts)
    equal = [cut for cut in all_cuts if edits(stream, cut) == least]
    found = tuple(mwer(stream).tolist())
    assert found in equal

    def wish(cut: tuple[int, ...]) -> float:
        return agreed(stream, cut) - 4 * too_early(stream, cut)

    assert wish(found) == pytest.approx(max(map(wish, equal)), abs=1e-9)
    if inner == 1:
        assert too_early(stream, found) == min(too_early(stream, cut) for cut in equal)


def test_a_word_is_not_given_away_too_early():
    tokens, references = ["a", "b", "x", "y", "c", "d"], [["a", "b"], ["c", "d"]]
    for early, expected in ((2, 2), (3, 3), (4, 4)):  # which words of x, y were written before the second segment
        times = np.array([0.0, 0, *([100.0] * (early - 2)), *([900.0] * (6 - early))])
        stream = Stream(tokens, references, times, np.array([0.0, 500.0]))
        assert mwer(stream)[1] >= expected
    stream = Stream(["a", "b", "x.", "Y", "c", "d"], [["a", "b."], ["C", "d"]])
    assert mwer(stream).tolist() == [0, 3, 6]
    late = Stream(stream.tokens, stream.references, np.array([0.0, 0, 0, 100, 900, 900]), np.array([0.0, 500.0]))
    assert mwer(late).tolist() == [0, 4, 6]  # time before punctuation


# ---- soft -----------------------------------------------------------------------------------------------------------


def test_a_segment_without_words_silences_no_punctuation():
    references = [["a", "b."], [], ["C", "d"]]
    assert soft(Stream(["a", "b", "so.", "Die", "C", "d"], references)).tolist() == [0, 3, 3, 6]


def resembling(stream: Stream, boundaries: Sequence[int]) -> float:
    """What a cut is worth: the best alignment of each segment by the whole matrix, and punctuation."""
    total = agreed(stream, boundaries)
    for ours, theirs in zip(stream.references, parts(stream, boundaries), strict=True):
        if not ours or not theirs:
            continue
        worth = resemblance(list(map(fold, ours)), list(map(fold, theirs))).astype(float)
        table = np.zeros((len(ours) + 1, len(theirs) + 1))
        for i in range(1, len(ours) + 1):
            for j in range(1, len(theirs) + 1):
                table[i, j] = max(table[i - 1, j], table[i, j - 1], table[i - 1, j - 1] + worth[i - 1, j - 1])
        total += table[-1, -1]
    return total


@settings(max_examples=60)
@given(streams(segments=3))
def test_no_other_cut_resembles_the_references_more(stream):
    n = len(stream.tokens)
    cuts = [(0, *cut, n) for cut in combinations_with_replacement(range(n + 1), len(stream.references) - 1)]
    found = resembling(stream, soft(stream).tolist())
    assert found == pytest.approx(max(resembling(stream, cut) for cut in cuts), abs=1e-6)


def test_a_corridor_moves_to_where_the_words_are(monkeypatch):
    """The path with the fewest edits goes elsewhere; the corridor is narrow, and must follow."""
    monkeypatch.setattr("lagging.longform.optimum.REACH", 4)
    monkeypatch.setattr("lagging.longform.optimum.WHOLE", 1)
    monkeypatch.setattr("lagging.longform.words.BLOCK", 2)
    letters = random.Random(0)
    words = ["".join(letters.choices("abcdefghijklmnop", k=8)) for _ in range(40)]
    alike = [f"{word}z" for word in words]  # no two are equal, so that any path pairs as many
    tokens = [token for k, word in enumerate(alike) for token in ([word, "qq"] if k % 3 == 2 else [word])]
    assert len(tokens) == 40 + 13
    stream = Stream(tokens, [words[:9], words[9:21], words[21:30], words[30:]])
    assert np.abs(stream.edits.low - np.arange(41) * 4 // 3).max() > 8  # two corridors away
    assert [cut - 4 * end // 3 in (-1, 0) for cut, end in zip(soft(stream)[1:-1], (9, 21, 30), strict=True)] == [
        True
    ] * 3


# ---- timed ----------------------------------------------------------------------------------------------------------


def spoken(seed: int, segments: int = 60, noise: float = 0.5) -> tuple[Stream, list[int]]:
    """A talk whose translation has other words here and there, 2 s late, and where it is truly cut."""
    rng = random.Random(seed)
    words = [f"{a}{b}" for a in "kmtrs" for b in ("a", "en", "ist", "ung")]
    references, tokens, times, offset, cuts = [], [], [], [], [0]
    now = 0.0
    for _ in range(segments):
        reference = [rng.choice(words) for _ in range(rng.randint(3, 12))]
        offset.append(now)
        spoken = [rng.choice(words) if rng.random() < noise else word for word in reference]
        spoken = [word for word in spoken if rng.random() > 0.2] + rng.sample(words, rng.randint(0, 3))
        lasts = 400.0 * len(reference)
        times += [now + 2000 + round(lasts * (k + 1) / len(spoken)) for k in range(len(spoken))]
        now += lasts + rng.randint(0, 1000)
        references.append(reference)
        tokens += spoken
        cuts.append(len(tokens))
    return Stream(tokens, references, np.maximum.accumulate(times), np.array(offset)), cuts


def misplaced(stream: Stream, found: Sequence[int], true: Sequence[int]) -> int:
    places = np.arange(len(stream.tokens))
    ours, theirs = (np.searchsorted(cuts[1:-1], places, side="right") for cuts in (found, true))
    return int((ours != theirs).sum())


def test_times_help_and_meaningless_times_do_little_harm():
    wrong = {"soft": 0, "timed": 0, "even": 0, "any": 0}
    for seed in range(6):
        stream, true = spoken(seed)
        rng = np.random.default_rng(seed)
        end = stream.times[-1]
        even = np.linspace(0, end, len(stream.tokens))
        anyhow = np.sort(rng.uniform(0, end, len(stream.tokens)))
        wrong["soft"] += misplaced(stream, soft(stream), true)
        for name, times in (("timed", stream.times), ("even", even), ("any", anyhow)):
            other = Stream(stream.tokens, stream.references, times, stream.offset)
            wrong[name] += misplaced(other, timed(other), true)
    assert wrong["soft"] > 100, "too easy"
    assert wrong["timed"] < 0.75 * wrong["soft"]
    assert wrong["even"] < 1.1 * wrong["soft"]
    assert wrong["any"] < 1.1 * wrong["soft"]


def at(stream: Stream, times: np.ndarray, offset: np.ndarray) -> list[int]:
    return timed(Stream(stream.tokens, stream.references, times, offset)).tolist()


@settings(max_examples=100)
@given(streams(), st.integers(-40, 4000).map(lambda n: n * 125.0))
def test_when_a_recording_begins_is_of_no_account(stream, shift):
    if stream.times is not None:
        moved = at(stream, stream.times + shift, stream.offset + shift)
        assert moved == timed(stream).tolist()


@settings(max_examples=100)
@given(streams(), st.integers(0, 4000).map(lambda n: n * 125.0))
def test_how_late_a_system_is_all_in_all_is_of_no_account(stream, lag):
    """Once every word is later than every segment, so that no cut is against causality."""
    if stream.times is not None:
        late = stream.times + 30_000
        assert at(stream, late + lag, stream.offset) == at(stream, late, stream.offset)


def test_without_times_it_is_soft():
    for seed in range(2):
        stream, _ = spoken(seed, 20)
        assert timed(Stream(stream.tokens, stream.references)).tolist() == soft(stream).tolist()
        unknown = np.full(len(stream.references), np.nan)
        assert at(stream, stream.times, unknown) == soft(stream).tolist()


def test_a_word_before_its_segment_began_is_less_likely():
    """The lag says little, as it varies; the sentence says that a word is of the next segment, which has not begun."""
    references = [["ja", "gut."]] * 30
    tokens = [word for k in range(30) for word in ("ja", "gut.", *(["tja"] if k == 14 else []))]
    offset = np.arange(30) * 2000.0
    lags = 200.0 + np.arange(30) * 7919 % 17 * 100
    times = np.insert(np.repeat(offset + lags, 2), 30, 29_900.0)
    assert (np.diff(times) >= 0).all()
    stream = Stream(tokens, references, times, offset)
    assert soft(stream).tolist() == [*range(0, 31, 2), *range(33, 62, 2)]
    assert timed(stream).tolist() == [*range(0, 30, 2), *range(31, 62, 2)]


@settings(max_examples=100)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=70))
def test_running_median(values):
    width = min(NEIGHBOURS, len(values))
    found = _running_median(np.array(values, dtype=float))
    for place, median in enumerate(found):
        first = min(max(place - width // 2, 0), len(values) - width)
        near = sorted(values[first : first + width])
        assert median == (near[(width - 1) // 2] + near[width // 2]) / 2


# ---- omnisteval -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "expected"),
    [  # as the Moses tokenizer, which OmniSTEval uses, splits them
        ("Wort,", ["wort", ","]),
        ("(Applaus)", ["(", "applaus", ")"]),
        ("U-Bahn", ["u", "@-@", "bahn"]),
        ("--", ["--"]),
        ("-", ["-"]),
        ("3,14", ["3,14"]),
        ("so...", ["so", "..."]),
        ("z.B.", ["z.b."]),
        ("Nr.", ["nr", "."]),
        ("e-", ["e-"]),
        ("km/h", ["km", "/", "h"]),
        ("\ufb01n", ["fin"]),
        ("。", ["。"]),
    ],
)
def test_parts_of_a_word(token, expected):
    assert _parts(token) == expected


@settings(max_examples=50)
@given(st.lists(st.text("abc.,", min_size=1, max_size=4), min_size=1, max_size=5))
def test_letters_that_two_words_share(words):
    table = _table(words, words, like=_jaccard)
    for i, a in enumerate(words):
        for j, b in enumerate(words):
            if (a in ".,") != (b in ".,"):
                assert table[i, j] < -1000
            else:
                assert table[i, j] == len(set(a) & set(b)) / len(set(a) | set(b))


def test_leftover_words_go_to_the_neighbour_that_they_resemble():
    def cut(word: str) -> int:
        return int(ALIGNERS["omnisteval"](Stream(["abc", word, "xyz"], [["abc"], ["xyz"]]))[1])

    assert (cut("ab"), cut("xy")) == (2, 1)
    assert cut("qq") == 2  # neither: the one before


# ---- the whole table ------------------------------------------------------------------------------------------------


def stuck(segments: int, words: int, types: int, loops: dict[int, int], seed: int) -> Stream:
    """A system that copies every other word, and says "ja" over and over after some segments."""
    rng = random.Random(seed)
    references = [[f"w{rng.randrange(types)}" for _ in range(words)] for _ in range(segments)]
    tokens: list[str] = []
    for k, reference in enumerate(references):
        tokens += [word if rng.random() < 0.5 else f"w{rng.randrange(types)}" for word in reference]
        tokens += ["ja"] * loops.get(k, 0)
    return Stream(tokens, references, np.arange(len(tokens)) * 300.0, np.arange(segments) * words * 300.0)


def by_edit_matrix(reference: Sequence[str], hypothesis: Sequence[str], ends: Sequence[int]) -> list[int]:
    """Where the whole edit matrix cuts: seen from the end, deletions first, then insertions, then pairs."""
    types = {word: k for k, word in enumerate({*reference, *hypothesis})}
    ours, theirs = np.array([types[w] for w in reference]), np.array([types[w] for w in hypothesis])
    table = np.empty((len(ours) + 1, len(theirs) + 1), dtype=np.int32)
    columns = np.arange(len(theirs) + 1)
    table[0] = columns
    for i, word in enumerate(ours, 1):
        row = np.append(i, np.minimum(table[i - 1, 1:] + 1, table[i - 1, :-1] + (theirs != word)))
        table[i] = np.minimum.accumulate(row - columns) + columns
    i, j, leave = len(ours), len(theirs), {len(ours): len(theirs)}
    while i:
        if table[i - 1, j] + 1 == table[i, j]:
            i -= 1
            leave[i] = j
        elif j and table[i, j - 1] + 1 == table[i, j]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            leave[i] = j
    return [0, *(leave[end] for end in ends)]


def test_a_system_that_is_stuck_in_a_loop_is_cut_as_the_whole_edit_matrix_cuts_it():
    stream = stuck(150, 20, 400, {40: 1500, 90: 1500}, seed=1)
    reference = [word for segment in stream.references for word in segment]
    expected = by_edit_matrix(reference, stream.tokens, stream.ends.tolist())
    assert ALIGNERS["mweralign"](stream).tolist() == expected
    assert ALIGNERS["mwersegmenter"](stream).tolist() == expected


def noisy(seed: int) -> Stream:
    """A talk with loops, gaps, repetitions and swaps, of words or of characters."""
    rng = random.Random(seed)
    words = (
        list("的一是不了人我在有他这为之大来以个中上们")
        if rng.random() < 0.4
        else [f"{a}{b}" for a in "kmt" for b in ("a", "en")]
    )
    references = [rng.choices(words, k=rng.randint(0, 9)) for _ in range(rng.randint(2, 14))]
    parts = [[w for w in reference if rng.random() > 0.15] for reference in references]
    for _ in range(rng.randint(0, 4)):
        k = rng.randrange(len(parts))
        kind = rng.choice(("loop", "gap", "again", "swap"))
        if kind == "loop":
            parts[k] = parts[k] + [rng.choice(words)] * rng.randint(5, 40)
        elif kind == "gap":
            parts[k : k + 3] = [[] for _ in parts[k : k + 3]]
        elif kind == "again":
            parts[k] = parts[k] * rng.randint(2, 4)
        else:
            other = rng.randrange(len(parts))
            parts[k], parts[other] = parts[other], parts[k]
    tokens = [word for part in parts for word in part]
    times = np.sort(np.array([rng.uniform(0, 4000 * len(references)) for _ in tokens]))
    return Stream(tokens, references, times, np.arange(len(references)) * 4000.0)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**30))
@pytest.mark.parametrize("name", list(ALIGNERS))
def test_loops_gaps_repetitions_and_swaps_are_cut_as_by_the_whole_table(name, seed, monkeypatch):
    """A narrow corridor gives the cut that the whole table gives."""
    stream = noisy(seed)
    whole = ALIGNERS[name](stream).tolist()
    with monkeypatch.context() as patch:
        patch.setattr("lagging.longform.optimum.WHOLE", 0)
        patch.setattr("lagging.longform.optimum.KEPT", 500)
        patch.setattr("lagging.longform.optimum.REACH", 2)
        patch.setattr("lagging.longform.optimum.ROWS", 16)
        patch.setattr("lagging.longform.words.BLOCK", 4)
        again = replace(stream)  # with nothing of what was worked out before
        assert ALIGNERS[name](again).tolist() == whole


# ---- as other tools cut ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("references", "hypothesis", "boundaries"),
    [
        (["a b c", "d e"], "d e", [0, 1, 2]),
        (["a b c", "d e", "f"], "d e f", [0, 1, 2, 3]),
        (["a", "b", "c d"], "c d", [0, 1, 1, 2]),
        (["a", "b", "b"], "b a", [0, 2, 2, 2]),
        (["a a", "b a b", "b b b"], "b a b", [0, 2, 3, 3]),
    ],
)
@pytest.mark.parametrize("name", ["mweralign", "mwersegmenter"])
def test_the_first_segment_is_not_left_empty(name, references, hypothesis, boundaries):
    """Measured: what mweralign 1.4.1 and mwerSegmenter print."""
    stream = Stream(hypothesis.split(), [text.split() for text in references])
    assert ALIGNERS[name](stream).tolist() == boundaries


@pytest.mark.parametrize("name", ["mweralign", "mwersegmenter"])
def test_words_end_at_ascii_white_space_alone(name):
    # to these tools "x\u00a0c" is one word, which resembles neither "x" nor "c"
    text, references = "a b x\u00a0c d", ["a b x", "c d"]
    tokens, parts = text.split(), [reference.split() for reference in references]
    assert ALIGNERS[name](Stream(tokens, parts)).tolist() == [0, 3, 5]
    assert ALIGNERS[name](Stream(tokens, parts, texts=(text, references))).tolist() in ([0, 2, 5], [0, 4, 5])


def test_letters_are_equal_or_not():
    # "…" is "..." in NFKC: as sets of letters the same as ".", as a character another
    tokens, references = ["a", "…", "b"], [["a", "."], ["b"]]
    assert ALIGNERS["omnisteval"](Stream(tokens, references, letters=True)).tolist() == [0, 2, 3]


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("-Ansatz", ["-ansatz"]),
        (".S", [".s"]),
        ("2D-Problem.", ["2d", "@-@", "problem", "."]),
        ("55,", ["55,"]),
        ("1,5", ["1,5"]),
        ("so,da", ["so", ",", "da"]),
        ("geht's", ["geht", "'", "s"]),
        ("a--b", ["a--b"]),
        ("_x", ["_", "x"]),
        ("U.S.", ["u.s."]),
    ],
)
def test_words_are_split_as_moses_splits_them(word, parts):
    """Measured with Moses's own tokenizer, called for German as OmniSTEval calls it."""
    assert _parts(word) == parts
