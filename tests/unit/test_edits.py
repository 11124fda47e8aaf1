# SPDX-License-Identifier: Apache-2.0
"""Stripping target tokens together with their times."""

from __future__ import annotations

import json
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lagging
from lagging import Run, UsageError
from lagging.data.ragged import Ragged
from lagging.data.strip import KINDS
from lagging.data.tokens import tokens
from lagging.errors import DataError
from lagging.formats import segment_rows, source
from lagging.scoring.signature import settings

ALL = list(KINDS)
PIECES = ["ja", "nein", "3.5", "don't", ".", ",", "...", "—", "$", "«»", "</s>", "<eos>", "<|endoftext|>", "<unk>"]
PIECES += ["[laughter]", "[1]", "<3", "a<b>c", "ja</s>", "[]", "<a b>", "♪", "。", "a.", "<>"]
SPACES = [" ", " ", "  ", "\t", "\u3000", "\n"]


# ---- an oracle that goes token by token -------------------------------------------------------------------------


def is_punctuation(token: str) -> bool:
    return all(unicodedata.category(c).startswith(("P", "S")) for c in token)


def is_tag(token: str) -> bool:
    for left, right in ("<>", "[]"):
        inner = token[1:-1]
        if len(token) > 2 and token[0] == left and token[-1] == right and left not in inner and right not in inner:
            return not any(c.isspace() for c in inner)
    return False


def gone_words(text: str, kinds: list[str]) -> list[bool]:
    words = text.split()
    gone = [("tags" in kinds and is_tag(w)) or ("punctuation" in kinds and is_punctuation(w)) for w in words]
    last = len(words) - 1
    while "eos" in kinds and last >= 0 and words[last] in ("</s>", "<eos>", "<|endoftext|>"):
        gone[last] = True
        last -= 1
    return gone


def gone_characters(text: str, kinds: list[str]) -> list[bool]:
    """Over the tokens that `tokens` gives: every character, but a final </s>, which is one."""
    letters = list(text.rstrip())
    gone = ["punctuation" in kinds and is_punctuation(c) for c in letters]
    for start in range(len(letters)) if "tags" in kinds else ():
        for end in range(start + 1, len(letters) + 1):
            if is_tag("".join(letters[start:end])):
                gone[start:end] = [True] * (end - start)
    end = len(letters)
    mark = None
    while "eos" in kinds:
        rest = "".join(letters[:end]).rstrip()
        mark = next((m for m in ("</s>", "<eos>", "<|endoftext|>") if rest.endswith(m)), None)
        if mark is None:
            break
        end = len(rest) - len(mark)
        gone[end : len(rest)] = [True] * len(mark)
    out = [g for g, c in zip(gone, letters, strict=True) if not c.isspace()]
    if "".join(letters).endswith("</s>"):
        whole = "tags" in kinds or "eos" in kinds
        out[-4:] = [whole]
    return out


def kept(units: list, gone: list[bool]) -> list:
    return [unit for unit, g in zip(units, gone, strict=True) if not g]


lines = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(SPACES)), max_size=8).map(
    lambda pairs: "".join(piece + space for piece, space in pairs)
)
glued = st.lists(st.sampled_from([*PIECES, " ", "你", "好", "</s>"]), max_size=8).map("".join)


@pytest.mark.parametrize(("level", "texts", "oracle"), [("word", lines, gone_words), ("char", glued, gone_characters)])
def test_against_the_oracle(level, texts, oracle) -> None:
    @given(st.lists(st.tuples(texts, texts | st.none()), min_size=1, max_size=5), st.sets(st.sampled_from(ALL)))
    def compare(pairs, asked) -> None:
        predictions, references = [list(side) for side in zip(*pairs, strict=True)]
        kinds = sorted(asked)
        units = [tokens(text, level) for text in predictions]
        delays = [list(range(1, len(row) + 1)) for row in units]
        elapsed = [[10.5 * t for t in row] for row in delays]
        steps = [[t // 2 for t in row] for row in delays]
        run = Run.from_delays(
            delays,
            source_length=[9] * len(units),
            elapsed=elapsed,
            steps=steps,
            prediction=predictions,
            reference=references,
            level=level,
            unit="ms",
        )
        bare = lagging.strip(run, kinds)
        gone = [oracle(text, kinds) for text in predictions]
        assert bare.delays.tolist() == [kept(row, g) for row, g in zip(delays, gone, strict=True)]
        assert bare.elapsed.tolist() == [kept(row, g) for row, g in zip(elapsed, gone, strict=True)]
        assert bare.steps.tolist() == [kept(row, g) for row, g in zip(steps, gone, strict=True)]
        left = [kept(row, g) for row, g in zip(units, gone, strict=True)]
        if level == "word":
            assert [text.split() for text in bare.prediction] == left
            assert [None if text is None else text.split() for text in bare.reference] == [
                None if text is None else kept(text.split(), oracle(text, kinds)) for text in references
            ]
        else:
            assert ["".join(text.split()) for text in bare.prediction] == ["".join(row) for row in left]
        for before, after, g in zip(predictions, bare.prediction, gone, strict=True):
            assert after == before or any(g)  # what loses nothing is left alone, white space and all
        lost = sum(map(sum, gone)) + sum(sum(oracle(text, kinds)) for text in references if text is not None)
        assert sum(count for _, count in bare.stripped) == lost
        assert bare.source_length.tolist() == run.source_length.tolist()

    compare()


# ---- one by one -------------------------------------------------------------------------------------------------


def one(prediction: str, level: str | None = None, **columns: object) -> Run:
    delays = [list(range(1, len(tokens(prediction, level or "word")) + 1))]
    return Run.from_delays(delays, source_length=[9], prediction=[prediction], level=level or "word", **columns)


@pytest.mark.parametrize(
    ("text", "kinds", "left"),
    [
        ("a b </s>", "eos", "a b"),
        ("a b </s> </s>\n", "eos", "a b\n"),
        ("a </s> b", "eos", "a </s> b"),
        ("a </s> b", "tags", "a b"),
        ("a b </s>", "tags", "a b"),
        ("a b</s>", "eos", "a b</s>"),
        ("a <eos>", "eos", "a"),
        ("a <unk>", "eos", "a <unk>"),
        ("a  b , c", "punctuation", "a  b c"),
        (". a", "punctuation", "a"),
        ("a.", "punctuation", "a."),
        ("( a )", "punctuation", "a"),
        ("(noise) [noise] <noise>", "tags", "(noise)"),
        (". ! ?", "punctuation", ""),
    ],
)
def test_words(text, kinds, left) -> None:
    bare = lagging.strip(one(text), kinds)
    assert bare.prediction.tolist() == [left]
    assert bare.delays.lengths.tolist() == [len(left.split())]


@pytest.mark.parametrize(
    ("text", "kinds", "left"),
    [
        ("你好。</s>", "eos", "你好。"),
        ("你好。</s>", "punctuation", "你好</s>"),
        ("你好 。 </s>", ["eos", "punctuation"], "你好"),
        ("你<unk>好", "tags", "你好"),
        ("<b>", "tags", ""),
        ("a < b > c", "tags", "a < b > c"),
        ("你好<eos>", "eos", "你好"),
        ("well , yes", "punctuation", "well yes"),
    ],
)
def test_characters(text, kinds, left) -> None:
    bare = lagging.strip(one(text, "char"), kinds)
    assert bare.prediction.tolist() == [left]
    assert bare.delays.lengths.tolist() == [len(tokens(left, "char"))]


def test_the_right_delays_stay() -> None:
    run = Run.from_delays([[1, 2, 3, 5], [1, 1]], source_length=[5, 5], prediction=["a , b .", "c d"])
    bare = lagging.strip(run, "punctuation")
    assert bare.delays.tolist() == [[1, 3], [1, 1]]
    assert bare.stripped == (("punctuation", 2),)
    assert [str(note) for note in bare.notes] == [
        "stripped: 1 segment (0): hypotheses that lost tokens, with their delays, to --strip punctuation"
    ]
    assert lagging.dal([1, 3], source_length=5) == lagging.score(bare[:1], ["DAL"])["DAL"].value


def test_stripping_twice_adds_up() -> None:
    run = one("a , b <unk> .")
    twice = lagging.strip(lagging.strip(run, ["tags"]), ["punctuation"])
    at_once = lagging.strip(run, ["tags", "punctuation"])
    assert twice.stripped == at_once.stripped == (("punctuation", 2), ("tags", 1))
    assert twice.to_dict() == at_once.to_dict()
    assert lagging.strip(at_once, ALL) is at_once


def test_nothing_to_strip_is_the_same_run() -> None:
    run = one("a b")
    assert lagging.strip(run, ALL) is run
    assert "strip" not in str(lagging.score(run, ["DAL"])["DAL"].signature)


def test_a_segment_of_nothing_else_is_empty() -> None:
    run = Run.from_delays([[1, 2], [], [1]], source_length=[2] * 3, prediction=[". .", "", "a"], id=["p", "q", "r"])
    bare = lagging.strip(run, "punctuation")
    assert bare.delays.tolist() == [[], [], [1]]
    notes = [str(note) for note in bare.notes]
    assert "emptied: 1 segment (p): nothing but stripped tokens was written: an empty hypothesis" in notes
    assert "empty hypothesis: 2 segments (p, q): nothing was written, so there is no latency" in notes
    assert not any(note.startswith("empty hypothesis: 1 segment") for note in notes)
    score = lagging.score(bare, ["DAL"])["DAL"]
    assert score.undefined.reasons == {"empty hypothesis": ("p", "q")}


def test_notes_that_no_longer_hold_are_gone() -> None:
    run = Run.from_delays([[1, 9]], source_length=[2], prediction=["a ."])
    assert any(note.kind == "beyond the source" for note in run.notes)
    assert not any(note.kind == "beyond the source" for note in lagging.strip(run, "punctuation").notes)


def test_references_are_counted_alike() -> None:
    run = one("a b c .", reference=["a , b ."], reference_length=[4])
    bare = lagging.strip(run, "punctuation")
    assert bare.reference.tolist() == ["a b"]
    assert bare.reference_length.tolist() == [2]
    expected = lagging.laal([1, 2, 3], source_length=9, reference_length=2)
    score = lagging.score(bare, ["LAAL"])["LAAL"]
    assert score.value == expected
    assert score.signature["strip"] == "punctuation"


def test_only_references_lose_something() -> None:
    bare = lagging.strip(one("a b", reference=["a , b ."]), "punctuation")
    assert bare.delays.tolist() == [[1, 2]]
    assert bare.stripped == (("punctuation", 2),)
    assert not bare.notes
    assert lagging.score(bare, ["LAAL"])["LAAL"].signature["strip"] == "punctuation"


def test_a_reference_length_without_text_is_not_known_any_more() -> None:
    run = Run.from_delays(
        [[1, 2], [1, 2]],
        source_length=[2, 2],
        prediction=["a .", "b c"],
        reference=[None, "a ."],
        reference_length=[5, 2],
    )
    bare = lagging.strip(run, "punctuation")
    np.testing.assert_array_equal(bare.reference_length, [np.nan, 1])
    assert any(note.kind == "unknown length" and note.count == 1 for note in bare.notes)


def test_times_of_reference_tokens_go_with_them() -> None:
    run = one("a b", reference=["a , b"], due=[[1, 2, 3]], shown=[[1, 2, None]])
    bare = lagging.strip(run, "punctuation")
    assert bare.due.tolist() == [[1, 3]]
    assert bare.shown[0][0] == 1
    assert np.isnan(bare.shown[0][1])
    other = lagging.strip(one("a b", reference=["a , b"], due=[[1, 2]]), "punctuation")  # counted otherwise
    assert other.due is None
    assert [note.kind for note in other.notes] == ["reference times"]
    kept = lagging.strip(one("a , b", reference=["a b"], due=[[1, 2, 3]]), "punctuation")  # nothing to match
    assert kept.due.tolist() == [[1, 2, 3]]


def test_elapsed_times_beside_tokens_need_not_match() -> None:
    """No metric can use them, so they are not checked; those that match stay with their tokens."""
    run = Run.from_delays(
        [[1, 2], [1, 2]], source_length=[2, 2], prediction=["a .", "b ."], elapsed=[[7], [8, 9]], unit="token"
    )
    assert lagging.strip(run, "punctuation").elapsed.tolist() == [[7], [8]]


def test_steps_of_the_system_stay() -> None:
    run = one("a .", steps=[[0, 1]], arrivals=[[1, 2]], compute=[[5, 5]])
    bare = lagging.strip(run, "punctuation")
    assert (bare.steps.tolist(), bare.arrivals.tolist(), bare.compute.tolist()) == ([[0]], [[1, 2]], [[5, 5]])


def test_deleted_tokens_cannot_be_stripped_again() -> None:
    bare = lagging.strip(one("a .", erased=[3]), "punctuation")
    assert [note.kind for note in bare.notes] == ["stripped", "erased"]
    assert bare.erased.tolist() == [3]


# ---- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({}, "there is no text to find eos in"),
        ({"prediction": ["one two three four"]}, "the delays count the log's own tokens"),
        ({"prediction": ["a.wav b.wav"], "level": "word", "durations": [[5, 5]], "unit": "ms"}, "pieces of sound"),
    ],
)
def test_tokens_that_cannot_be_told_apart(columns, why) -> None:
    run = Run.from_delays([[1, 2]], source_length=[2], name="base", **columns)
    with pytest.raises(UsageError, match=f"base: nothing can be stripped: .*{why}[\\s\\S]*fix: leave strip= out"):
        lagging.strip(run, "eos")


def test_nothing_written_tells_no_level() -> None:
    run = Run.from_delays([[], []], source_length=[2, 2], prediction=["", None], reference=["a .", None])
    assert run.level == "token"
    assert lagging.strip(run, "punctuation").reference.tolist() == ["a", None]
    bare = Run.from_delays([[]], source_length=[2])
    assert lagging.strip(bare, "punctuation") is bare


def test_a_kind_that_there_is_not() -> None:
    with pytest.raises(UsageError, match=r"no kind of token 'tag' to strip. Did you mean tags\?"):
        lagging.strip(one("a"), ["tag"])


def test_a_run_whose_text_does_not_match() -> None:
    run = Run(
        Ragged.from_rows([[1, 2]]), np.array([2.0]), np.array([0]), prediction=np.array(["a"], object), level="word"
    )
    with pytest.raises(DataError, match="2 delays, 1 words"):
        lagging.strip(run, "eos")


# ---- a real log -------------------------------------------------------------------------------------------------


@pytest.mark.data
def test_end_marks_of_a_real_log(data) -> None:
    """The paper's convention drops a final </s> with its delay: the same numbers on another way."""
    (path,) = (data / "omnisteval/examples/short_form_degenerate_policy_example").rglob("instances.log")
    run = lagging.read(path)
    bare = lagging.strip(run, "eos")
    assert bare.stripped == (("eos", 2580),)
    metrics = ["AP", "AL", "LAAL", "DAL", "DAL(clock=elapsed)", "BLEU"]
    plain, stripped = lagging.score(run, metrics), lagging.score(bare, metrics)
    for name in metrics:
        assert stripped[name].value == plain[name].value
        np.testing.assert_array_equal(stripped[name].segments, plain[name].segments)
        assert plain[name].signature["eos"] == "stripped"
        assert stripped[name].signature.get("eos") is None
        assert stripped[name].signature["strip"] == "eos"


# ---- in parts ---------------------------------------------------------------------------------------------------


def log(count: int) -> str:
    words = ["ja", "nein", ".", ",", "<unk>", "</s>"]
    rows = []
    for i in range(count):
        text = " ".join(words[(i * 7 + t * (i % 5 + 1)) % 6] for t in range(i % 6 + 1))
        delays = list(range(1, len(text.split()) + 1))
        rows.append({"id": i, "delays": delays, "source_length": 7, "prediction": text, "reference": "ja , nein ."})
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_a_log_in_parts_is_stripped_alike(tmp_path, monkeypatch) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(log(60))
    whole = lagging.strip(lagging.read(path), ALL)
    monkeypatch.setattr(segment_rows, "SAMPLE", 1)
    monkeypatch.setattr(segment_rows, "SEGMENTS_PER_PART", 3)
    monkeypatch.setattr(source, "BATCH_BYTES", 200)
    parts = list(lagging.scan(path, strip=ALL))
    assert len(parts) > 5
    joined = Run.concat(parts)
    assert joined.to_dict() == whole.to_dict()
    assert joined.stripped == whole.stripped
    assert set(map(str, joined.notes)) == set(map(str, whole.notes))
    one, other = lagging.score(iter(parts), ["LAAL"]), lagging.score(whole, ["LAAL"])
    assert str(one["LAAL"].signature) == str(other["LAAL"].signature)
    assert one["LAAL"].value == other["LAAL"].value
    assert set(map(str, one.notes)) == set(map(str, other.notes))


def test_the_signature_repeats_it(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(log(20))
    score = lagging.score(lagging.scan(path, strip=["tags", "punctuation"]), ["LAAL"])
    signature = score["LAAL"].signature
    assert signature["strip"] == "punctuation+tags"
    assert settings(str(signature)).strip == ("punctuation", "tags")
    again = lagging.score(lagging.scan(path, strip=settings(signature).strip), ["LAAL"])
    assert str(again["LAAL"].signature) == str(signature)
    told = [str(note) for note in score.notes if note.noun == "token"]
    expected = lagging.read(path, strip=["tags", "punctuation"]).stripped
    assert told == [f"stripped: {count} tokens: {kind}, of hypotheses and references" for kind, count in expected]


def test_stripping_and_choosing_among_duplicates(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    line = {"id": 0, "delays": [1, 2], "source_length": 2, "prediction": "a ."}
    path.write_text(json.dumps(line) + "\n" + json.dumps({**line, "delays": [2, 2]}) + "\n")
    run = lagging.read(path, repair=["last"], strip=["punctuation"])
    assert (run.delays.tolist(), run.stripped) == ([[2]], (("punctuation", 1),))


def test_faults_come_before_stripping(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(log(20) + '{"id": 99, "delays": [1], "source_length": 7, "prediction": "a ."}\n')
    with pytest.raises(DataError, match="1 delays, 2 words"):
        lagging.read(path, strip=["punctuation"])
