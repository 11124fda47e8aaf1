# SPDX-License-Identifier: Apache-2.0
"""From streams to segments: every token is there again, once, in order, with its times; what is refused, or noted."""

from __future__ import annotations

import io
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lagging
import oracle
from lagging import DataError, Run, UsageError
from lagging.data.tokens import count_tokens, load_spm, tokens
from lagging.longform import ALIGNERS, Segmentation, Stream, cut, read_segmentation, resegment
from lagging.longform.recordings import streams
from lagging.metrics.clocks import clock
from lagging.scoring.signature import settings as settings_of

WORDS = ["ja", "Ja,", "und", "so.", "Und", "nein?", "(Applaus)", "heute", "gehen", "wir", "nach", "Köln.", "Wir"]
CHARACTERS = [*"你好今天我们去公园吧。，很", "A"]
EACH = pytest.mark.parametrize("aligner", list(ALIGNERS))


def text_of(rng: random.Random, level: str, most: int) -> str:
    if level == "word":
        return " ".join(rng.choices(WORDS, k=rng.randint(0, most)))
    return "".join(rng.choice(["", "", "", " "]) + c for c in rng.choices(CHARACTERS, k=rng.randint(0, most))).strip()


def made(seed: int, level: str = "word") -> tuple[Run, Segmentation]:
    """A log and segments of the same recordings, in any order; times are whole and half milliseconds."""
    rng = random.Random(seed)
    names = [f"{name}.wav" for name in "abc"[: rng.randint(1, 3)]]
    rows, entries = [], []
    for name in names:
        offset, parts = 0, []
        for duration in [*rng.choices([0, 1500, 2000, 4000], k=rng.randint(0, 4)), 3000]:
            reference = text_of(rng, level, 6)
            entries.append((name, offset, duration, reference))
            parts += [reference] if rng.random() < 0.7 else [text_of(rng, level, 4)]
            offset += duration + rng.choice([0, 500] if duration else [1, 500])  # no segment is another once more
        text = (" " if level == "word" else "").join(filter(None, parts))
        n = len(tokens(text, level))
        delays = sorted(rng.randint(0, 2 * offset + 2000) / 2 for _ in range(n))
        delays = [g if rng.random() < 0.5 else delays[max(k - 1, 0)] for k, g in enumerate(delays)]  # several at once
        delays = np.maximum.accumulate(delays).tolist() if delays else []
        spent = np.cumsum([(k == 0 or g > delays[k - 1]) * rng.randint(0, 200) / 2 for k, g in enumerate(delays)])
        rows.append((f"talks/{name}", delays, [d + s for d, s in zip(delays, spent, strict=True)], offset + 1000, text))
    if rng.random() < 0.5:
        rng.shuffle(entries)
        rng.shuffle(rows)
    document, delays, elapsed, length, prediction = map(list, zip(*rows, strict=True))
    run = Run.from_delays(
        delays,
        elapsed=elapsed,
        source_length=length,
        unit="ms",
        prediction=prediction,
        document=document,
        level=level,
        name="base",
    )
    return run, Segmentation.from_lists(*zip(*entries, strict=True))


some = st.tuples(st.integers(0, 2**30), st.sampled_from(["word", "char"])).map(lambda two: made(*two))


def told(error: Any) -> list[tuple[str, Any]]:
    return [(fault.kind, fault.detail) for fault in error.value.faults]


def kinds(run: Run) -> dict[str, int]:
    return {note.kind: note.count for note in run.notes}


# ---- nothing is lost ------------------------------------------------------------------------------------------------


@EACH
@settings(max_examples=40)
@given(some)
def test_every_token_is_there_again_with_its_times(aligner, both):
    run, segmentation = both
    clocks = ("queue", "omnisteval", "fbk", "fbk1")
    found = resegment(run, segmentation, aligner=aligner, clocks=clocks)
    assert len(found) == len(segmentation)
    for name, segments in segmentation.recordings.items():
        (row,) = np.flatnonzero(run.document == f"talks/{name}")
        for column, times in (
            ("delays", run.delays),
            ("elapsed", run.elapsed),
            *((f"{c}_times", clock(run, c)) for c in clocks if c != "fbk"),
        ):
            joined = [t + segmentation.offset[s] for s in segments.tolist() for t in getattr(found, column)[s].tolist()]
            assert joined == pytest.approx(times[row].tolist(), abs=1e-9), column
        begins = [segmentation.offset[s] for s in segments.tolist() for _ in found.delays[s]]
        joined = [t + segmentation.offset[s] for s in segments.tolist() for t in found.fbk_times[s].tolist()]
        exact = oracle.by_fbk(run.delays[row].tolist(), run.elapsed[row].tolist(), begins)
        assert joined == pytest.approx([float(time) for time in exact], abs=1e-9)
        units = [u for s in segments.tolist() for u in tokens(found.prediction[s], run.level)]
        assert units == tokens(run.prediction[row], run.level)
        texts = " ".join(found.prediction[s] for s in segments.tolist())
        assert "".join(texts.split()) == "".join(run.prediction[row].split())
        for segment in filter(None, (found.prediction[s] for s in segments.tolist())):
            assert segment in run.prediction[row]  # white space within a segment is as it was
    counts = count_tokens(found.prediction, run.level, found.delays.lengths)
    assert counts.tolist() == found.delays.lengths.tolist()


@settings(max_examples=40)
@given(some)
def test_what_a_segment_is_told_about_itself(both):
    run, segmentation = both
    found = resegment(run, segmentation, aligner="soft")
    assert found.id.tolist() == list(range(len(segmentation)))
    for column in ("document", "offset", "reference"):
        assert getattr(found, column).tolist() == getattr(segmentation, column).tolist()
    assert found.source_length.tolist() == segmentation.duration.tolist()
    assert (found.unit, found.level, found.seg, found.name) == ("ms", run.level, "soft", "base")
    ends = segmentation.offset + segmentation.duration
    for name, segments in segmentation.recordings.items():
        latest = max(ends[segmentation.document == name])
        for segment in segments.tolist():
            assert found.recording_end[segment] == latest - segmentation.offset[segment]
    early = sum((times < 0).any() for times in found.delays)
    assert kinds(found).get("before the segment", 0) == early


@EACH
@settings(max_examples=25)
@given(some)
def test_segments_cut_again_are_the_same(aligner, both):
    run, segmentation = both
    once = resegment(run, segmentation, aligner=aligner)
    assert streams(once).delays.lengths.sum() == run.delays.lengths.sum()
    twice = resegment(once, segmentation, aligner=aligner)
    assert twice.prediction.tolist() == once.prediction.tolist()
    assert twice.delays.tolist() == once.delays.tolist()
    assert twice.elapsed.tolist() == once.elapsed.tolist()
    assert twice.recording_end.tolist() == once.recording_end.tolist()


# ---- texts ----------------------------------------------------------------------------------------------------------


def run_of(text: str, n: int, level: str, **more: Any) -> Run:
    return Run.from_delays([np.arange(1, n + 1) * 300.0], source_length=[6000], prediction=[text], level=level, **more)


def three(*references: str, unit: str = "ms") -> Segmentation:
    return Segmentation.from_lists(["a"] * 3, [0, 2000, 4000], [2000] * 3, references, unit=unit)


@EACH
@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("你好 Amy 今天", "今天"),
        ("你好Amy今天", "今天"),
        (" 你好  Amy\u3000今天 ", "今天"),
        ("你好 Amy 今天</s>", "今天</s>"),
        ("你好 Amy 今天 </s> ", "今天 </s>"),
    ],
)
def test_characters_with_spaces_among_them(aligner, text, last):
    n = 8 if "</s>" in text else 7
    found = resegment(run_of(text, n, "char", unit="ms"), three("你好", "Amy", "今天"), aligner=aligner)
    assert found.prediction.tolist() == ["你好", "Amy", last]
    assert found.delays.lengths.tolist() == [2, 3, n - 5]


@EACH
def test_white_space_within_a_segment_stays(aligner):
    run = run_of("  a  b\tc \u00a0 d\u2003e  </s> ", 6, "word", unit="ms")
    found = resegment(run, three("a b", "c", "d e"), aligner=aligner)
    assert found.prediction.tolist() == ["a  b", "c", "d\u2003e  </s>"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    sentencepiece = pytest.importorskip("sentencepiece")
    sentences = ["the cat sat on the mat", "a black cat saw me", "we saw the train at eight", "again and again … again"]
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences * 20), model_writer=made, vocab_size=60, hard_vocab_limit=False, minloglevel=2
    )
    path = tmp_path_factory.mktemp("spm") / "target.model"
    path.write_bytes(made.getvalue())
    return load_spm(path), " ".join(sentences).split()


@EACH
@settings(max_examples=25)
@given(seed=st.integers(0, 2**30))
def test_words_are_not_cut_between_their_pieces(aligner, model, seed):
    level, words = model
    rng = random.Random(seed)
    text = " ".join(rng.choices(words, k=rng.randint(1, 12)))
    n = len(tokens(text, level))
    references = [" ".join(rng.choices(words, k=rng.randint(0, 5))) for _ in range(3)]
    found = resegment(run_of(text, n, level, unit="ms"), three(*references), aligner=aligner)
    assert " ".join(filter(None, found.prediction)) == text
    assert found.delays.lengths.sum() == n
    assert count_tokens(found.prediction, level, found.delays.lengths).tolist() == found.delays.lengths.tolist()
    again = resegment(found, three(*references), aligner=aligner)
    assert (again.prediction.tolist(), again.delays.tolist()) == (found.prediction.tolist(), found.delays.tolist())


def test_pieces_of_a_text_without_spaces_are_counted_as_in_the_stream(tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece")
    texts, made = ["今天她看起很好，", "我们一起去公园散步吧。", "今天心情很好"], io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts * 20), model_writer=made, vocab_size=30, hard_vocab_limit=False, minloglevel=2
    )
    (tmp_path / "zh.model").write_bytes(made.getvalue())
    level = load_spm(tmp_path / "zh.model")
    n = len(tokens("".join(texts), level))
    found = resegment(run_of("".join(texts), n, level, unit="ms"), three(*texts))
    assert found.prediction.tolist() == texts
    assert found.delays.lengths.sum() == n
    assert found.level == "token"
    assert found.reference_length.tolist() == [len(tokens(text, level)) for text in texts]
    assert "tokens" in kinds(found)
    for score in lagging.score(found, ["LAAL", "BLEU"]):  # other models cut elsewhere
        assert score.signature["seg"] == f"timed-{level}"
        again = settings_of(score.signature)
        assert (again.aligner, again.level) == ("timed", level)
    lagging.write(found, tmp_path / "out.jsonl")
    assert lagging.read(tmp_path / "out.jsonl").delays == found.delays


def test_source_words_as_a_clock():
    made = three("a b", "c", "d e", unit="token")
    run = Run.from_delays([[1, 1999, 2001, 5000, 6000]], source_length=[6000], prediction=["a b c d e"])
    found = resegment(run, made)
    assert (found.unit, found.delays.tolist()) == ("token", [[1.0, 1999.0], [1.0], [1000.0, 2000.0]])
    assert found.recording_end.tolist() == [6000.0, 4000.0, 2000.0]
    assert found.queue_times is None


# ---- without times --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("aligner", [None, *(name for name in ALIGNERS if name != "timed")])
def test_text_alone(aligner):
    texts, untimed = Run.from_texts(["a b c d e"]), Segmentation.from_lists(["a"] * 3, reference=["a b", "c", "d e"])
    timed = Run.from_delays([[1, 2, 3, 4, 5]], elapsed=[[2, 3, 4, 5, 6]], source_length=[9], prediction=["a b c d e"])
    for run, segmentation in ((texts, three("a b", "c", "d e")), (texts, untimed), (timed, untimed)):
        found = resegment(run, segmentation, aligner=aligner)
        assert found.prediction.tolist() == ["a b", "c", "d e"]
        assert (found.unit, found.seg) == ("none", aligner or "soft")
        assert np.isnan(found.delays.values).all()
        assert found.elapsed is None
        assert found.queue_times is None
        assert "no delays" in kinds(found)
        assert not {"delays", "source_length", "elapsed"} & set(found.columns)


def test_text_alone_has_no_times_for_the_aligner_timed():
    for run, made in (
        (Run.from_texts(["a"]), three("a", "b", "c")),
        (run_of("a", 1, "word", unit="ms"), Segmentation.from_lists(["a"], reference=["a"])),
    ):
        with pytest.raises(UsageError, match="--aligner soft"):
            resegment(run, made, aligner="timed")


# ---- what there is to say -------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(some, st.sampled_from(list(ALIGNERS)))
def test_moves_are_counted(both, aligner):
    run, segmentation = both
    made = cut(run, segmentation, aligner=aligner)
    assert kinds(made.run).get("moved", 0) == len(made.moves)
    for recording, place, token, time, before, now in made.moves:
        (row,) = np.flatnonzero(run.document == f"talks/{recording}")
        assert token == tokens(run.prediction[row], run.level)[place]
        assert time == run.delays[row][place]
        assert before != now
        segments = segmentation.recordings[recording].tolist()
        assert {before, now} <= set(segments)
        first = sum(int(made.run.delays.lengths[s]) for s in segments[: segments.index(now)])
        assert first <= place < first + made.run.delays.lengths[now]


def test_a_word_that_time_moves():
    run = Run.from_delays([[500, 900, 2600]], source_length=[3000], unit="ms", prediction=["gut ja gut"])
    two = Segmentation.from_lists(["a.wav"] * 2, [0, 2000], [2000, 1000], ["gut", "gut"])
    by_edits = int(Stream(["gut", "ja", "gut"], [["gut"], ["gut"]]).edits.boundaries[1])
    for aligner, boundary in (("timed", 2), ("soft", 1)):
        found = cut(run, two, aligner=aligner)
        assert found.run.delays.lengths.tolist() == [boundary, 3 - boundary]
        moved = [("a.wav", 1, "ja", 900.0, 2 - by_edits, 2 - boundary)]
        assert found.moves == (moved if boundary != by_edits else [])
    assert by_edits in (1, 2)  # so that one of the two has moved it


TALK = [
    "Wir haben heute über das Wetter in den Bergen zu reden.",
    "Es schneit dort seit drei Tagen, und niemand weiß, wann es aufhört.",
    "Deshalb bleiben die Straßen vorerst gesperrt.",
]
OTHER = [
    "Mein Vater baute Boote aus altem Holz,",
    "manchmal verkaufte er eines davon an Fischer,",
    "öfter aber verschenkte er alles, was fertig wurde.",
]


@EACH
def test_the_text_of_another_talk_is_noted_loudly(aligner):
    text = " ".join(TALK).replace("heute", "nun").replace("niemand weiß", "keiner sagt")
    n = len(text.split())
    run = Run.from_delays(
        [np.arange(n) * 200.0] * 2, source_length=[6000] * 2, unit="ms", prediction=[text] * 2, document=["a", "b"]
    )
    made = Segmentation.from_lists(["a"] * 3 + ["b"] * 3, [0, 2000, 4000] * 2, [2000] * 6, [*TALK, *OTHER])
    notes = {note.kind: note for note in resegment(run, made, aligner=aligner).notes}
    assert (notes["UNRELATED TEXT"].count, notes["UNRELATED TEXT"].segments) == (1, ("b",))
    own = resegment(run[[0]], Segmentation.from_lists(["a"] * 3, [0, 2000, 4000], [2000] * 3, TALK), aligner=aligner)
    assert "UNRELATED TEXT" not in kinds(own)


CHINESE = (
    "今天我想和大家谈谈我们村里的那条小河。小时候，我们每天放学以后都到河边去玩水、抓鱼。后来工厂建起来了，河水慢慢变黑，鱼也不见了。"
    "去年冬天，村民们决定一起清理河道。现在水又清了，孩子们也回来了。",
    "我要讲的是家乡的一条河.以前放学我们总是到那里游泳和钓鱼.后来有了factory,水变成黑色,鱼都没有了.去年村民终于把它打扫干净."
    "如今河水清澈,小孩又能玩耍了.",
    "新的图书馆将于下个月开放。读者可以在三楼借阅外文杂志，也能预约安静的学习室。管理员说，周末的开放时间会延长到晚上九点，"
    "停车场则需要另外付费。如果您忘记带证件，请先到服务台登记姓名和电话。",
)
JAPANESE = (
    "今日は、私たちの村を流れる小さな川についてお話しします。子どものころ、学校が終わると毎日川で泳いだり魚をとったりしました。"
    "その後、工場ができて水は黒くなり、魚もいなくなりました。去年の冬、村の人たちは一緒に川を掃除することに決めました。",
    "これから村の川の話をします.子供の時は毎日放課後に泳ぎに行って魚を取りました.それからfactoryが建てられて水が汚れて魚は消えました."
    "昨年の冬に村人がみんなで川をきれいにしました.",
    "新しい図書館は来月から利用できます。三階では外国の雑誌を借りられますし、静かな学習室も予約可能です。週末は夜九時まで開いていますが、"
    "駐車場には別の料金がかかります。身分証を忘れた方は受付で名前と電話番号を書いてください。",
)
"""A talk, a free translation of what was said in it, which shares a quarter of its characters, and another talk."""


@pytest.mark.parametrize(("reference", "written", "other"), [CHINESE, JAPANESE], ids=["zh", "ja"])
@pytest.mark.parametrize("level", ["char", "word"])
def test_text_without_spaces_is_compared_by_characters(reference, written, other, level):
    n = len(tokens(written, level))
    run = Run.from_delays(
        [np.arange(n) * 200.0] * 2,
        source_length=[6000] * 2,
        unit="ms",
        level=level,
        prediction=[written] * 2,
        document=["a", "b"],
    )
    made = Segmentation.from_lists(["a", "b"], [0, 0], [6000] * 2, [reference, other])
    notes = {note.kind: note for note in resegment(run, made).notes}
    assert (notes["UNRELATED TEXT"].count, notes["UNRELATED TEXT"].segments) == (1, ("b",))


def test_another_language_without_spaces_is_unrelated():
    run = Run.from_delays(
        [np.arange(30) * 200.0], source_length=[6000], unit="ms", prediction=["so what is it " * 7 + "x y"]
    )
    made = Segmentation.from_lists(["0"], [0], [6000], [CHINESE[0]])
    assert kinds(resegment(run, made))["UNRELATED TEXT"] == 1


def test_nothing_written_is_not_unrelated():
    run = Run.from_delays([[]], source_length=[6000], unit="ms", prediction=[""])
    found = resegment(run, three("a", "b", "c"))
    assert found.prediction.tolist() == ["", "", ""]
    assert "UNRELATED TEXT" not in kinds(found)
    assert kinds(found)["empty hypothesis"] == 3


def test_notes_of_log_and_segmentation_are_kept():
    run = run_of("a b c", 3, "word", unit="ms", document=["a"])
    entries = ["a", "a", "a"], [4000, 0, 2000], [0, 2000, 2500], ["c", "a", "b"]
    found = resegment(run, Segmentation.from_lists(*entries))
    assert {"not in order of time", "overlapping segments", "empty segment"} <= set(kinds(found))
    assert found.prediction.tolist() == ["c", "a", "b"]
    assert kinds(found)["before the segment"] == 2


# ---- what is refused ------------------------------------------------------------------------------------------------


def test_nothing_to_compare():
    segmentation = three("a", "b", "c")
    with pytest.raises(DataError) as error:
        resegment(run_of("a", 1, "word", unit="ms"), Segmentation.from_lists(["a"], [0], [1]))
    assert told(error) == [("no-references", "")]
    for run in (
        Run.from_delays([[1]], source_length=[6000], unit="ms"),
        Run.from_delays([[1]], source_length=[6000], unit="ms", prediction=[None], level="word"),
        Run.from_delays([[1]], source_length=[6000], unit="ms", prediction=["1.wav"], durations=[[5]], level="token"),
    ):
        with pytest.raises(DataError) as error:
            resegment(run, segmentation)
        assert told(error) == [("no-text", "")]
    with pytest.raises(DataError) as error:
        resegment(Run.from_delays([[1, 2]], source_length=[6000], unit="ms", prediction=["a b c"]), segmentation)
    assert told(error) == [("no-words", "")]


def test_names_that_there_are_not():
    run, segmentation = run_of("a", 1, "word", unit="ms"), three("a", "b", "c")
    with pytest.raises(UsageError, match=r"no aligner is called 'tmed'.*timed"):
        resegment(run, segmentation, aligner="tmed")
    with pytest.raises(UsageError, match=r"cannot keep the clock 'quue'.*queue"):
        resegment(run, segmentation, clocks=["quue"])
    assert resegment(run, segmentation).queue_times is None  # there are no elapsed times, and nobody asked


def test_a_clock_that_the_log_does_not_allow_is_refused_before_it_is_cut():
    """With the reason that the log gives, and not with the advice to cut it."""
    run, segmentation = run_of("a", 1, "word", unit="ms"), three("a", "b", "c")
    with pytest.raises(lagging.MetricError, match=r"^clock=fbk: it needs elapsed times, and there are none$"):
        resegment(run, segmentation, clocks=["fbk"])


# ---- what was computed ----------------------------------------------------------------------------------------------


@EACH
@settings(max_examples=25)
@given(some)
def test_the_rtf_of_a_recording_is_that_of_its_segments(aligner, both):
    run, segmentation = both
    found = resegment(run, segmentation, aligner=aligner)
    (whole,), (cut_,) = lagging.score(run, ["RTF"]), lagging.score(found, ["RTF"])
    assert cut_.value == pytest.approx(whole.value, rel=1e-12, nan_ok=True)
    for name, segments in segmentation.recordings.items():
        (row,) = np.flatnonzero(run.document == f"talks/{name}")
        some_source = found.source_length[segments] > 0
        of_segments = cut_.segments[segments][some_source]
        assert of_segments == pytest.approx(np.full(some_source.sum(), whole.segments[row]), rel=1e-12, nan_ok=True)
    again = resegment(found, segmentation, aligner=aligner)  # what was cut before is known, too
    assert lagging.score(again, ["RTF"])["RTF"].value == pytest.approx(whole.value, rel=1e-12, nan_ok=True)


def test_a_recording_is_not_counted_once_for_each_segment():
    """Two recordings of 10 and 30 s, of which the first has nine segments: 5 + 27 s of computing in 40 s."""
    names = ["a"] * 9 + ["b"]
    made_ = Segmentation.from_lists(
        names, [*range(0, 9000, 1000), 0], [500] * 9 + [30_000], [f"wort{k}" for k in range(10)]
    )
    texts = [" ".join(f"wort{k}" for k in range(9)), "wort9"]
    delays = [[1000 * k + 600 for k in range(9)], [20_000]]
    elapsed = [[g + 5000 for g in delays[0]], [47_000]]
    run = Run.from_delays(
        delays, elapsed=elapsed, source_length=[10_000, 30_000], unit="ms", prediction=texts, document=["a", "b"]
    )
    found = resegment(run, made_)
    assert found.compute_share.sum() == pytest.approx(32_000)
    assert found.recording_share.sum() == pytest.approx(40_000)
    assert lagging.score(found, ["RTF"])["RTF"].value == pytest.approx(0.8)


def test_rtf_of_segments_says_what_the_log_must_have():
    run, segmentation = run_of("a", 1, "word", unit="ms"), three("a", "b", "c")
    with pytest.raises(lagging.MetricError, match=r"it must have the computing time of each step, or elapsed times"):
        lagging.score(resegment(run, segmentation), ["RTF"])


def test_recordings_that_do_not_match():
    run = Run.from_delays(
        [[1], [1], [1]], source_length=[6000] * 3, unit="ms", prediction=["a"] * 3, document=["a.wav", "x/a.flac", "d"]
    )
    made = Segmentation.from_lists(["a", "c", "d"], [0] * 3, [6000] * 3, ["a"] * 3)
    with pytest.raises(DataError) as error:
        resegment(run, made)
    assert [kind for kind, _ in told(error)] == ["recording-twice", "recording-missing"]
    same = run[[0, 2]]
    with pytest.raises(DataError) as error:
        resegment(same, Segmentation.from_lists(["a"], [0], [6000], ["a"]))
    assert told(error) == [("recording-extra", '"d"')]
    found = resegment(same, Segmentation.from_lists(["a"], [0], [6000], ["a"]), subset=True)
    assert (len(found), kinds(found)["RECORDINGS LEFT ASIDE"]) == (1, 1)
    with pytest.raises(DataError) as error:  # the same recording twice, and no offsets
        resegment(
            Run.from_delays([[1], [1]], source_length=[6000] * 2, unit="ms", prediction=["a"] * 2, document=["a", "a"]),
            made,
        )
    assert [kind for kind, _ in told(error)] == ["recording-twice"] * 2


def test_files_with_their_lines(tmp_path):
    """Interleaved, unsorted, with an empty segment: cut with notes; in milliseconds, or short of a line: refused."""
    entries = [("b", 3.0, 2.0), ("a", 0.0, 2.0), ("b", 0.0, 3.0), ("a", 2.0, 0.0)]
    yaml, texts = tmp_path / "ref.yaml", tmp_path / "ref.txt"

    def write(scale: float) -> None:
        lines = [f"- {{duration: {d * scale}, offset: {o * scale}, wav: {w}.wav}}\n" for w, o, d in entries]
        yaml.write_text("".join(lines), "utf-8")

    write(1)
    texts.write_text("vier\neins\ndrei\nzwei\n", "utf-8")
    run = Run.from_delays(
        [[900, 1900], [2900, 4800]],
        source_length=[2000, 5000],
        unit="ms",
        prediction=["eins zwei", "drei vier"],
        document=["a", "b"],
    )
    found = resegment(run, read_segmentation(yaml, reference=texts))
    assert found.prediction.tolist() == ["vier", "eins", "drei", "zwei"]
    assert found.delays.tolist() == [[1800.0], [900.0], [2900.0], [-100.0]]
    assert found.recording_end.tolist() == [2000.0, 2000.0, 5000.0, 0.0]
    noted = kinds(found)
    assert noted["not in order of time"] == noted["empty segment"] == noted["before the segment"] == 1
    assert noted["interleaved recordings"] == 2
    scores = lagging.score(found, ["StreamLAAL"])
    assert scores["StreamLAAL"].undefined == 1  # a segment of no length leaves the others theirs
    write(1000)
    with pytest.raises(DataError) as error:
        resegment(run, read_segmentation(yaml, reference=texts))
    assert [(f.kind, f.path, f.line) for f in error.value.faults] == [
        ("segmentation-unit", str(yaml), line) for line in (1, 2)
    ]
    texts.write_text("vier\neins\ndrei\n", "utf-8")
    with pytest.raises(DataError) as error:
        read_segmentation(yaml, reference=texts)
    assert told(error) == [("segment-lines", f"3 lines, but 4 segments in {yaml}")]


def test_notes_are_made_once():
    found = resegment(run_of("a b", 2, "word", unit="ms"), three("a", "", "b"))
    (note,) = [note for note in found.notes if note.kind == "empty reference"]
    assert (note.count, note.segments) == (1, (1,))


def test_times_that_do_not_fit_are_told():
    run = Run.from_delays([[100, 200, 300]], source_length=[9000], prediction=["a b c"], unit="ms")
    assert "TIMES DO NOT FIT" in kinds(resegment(run, three("a", "b", "c")))
    late = Run.from_delays([[2500, 4500, 6500]], source_length=[9000], prediction=["a b c"], unit="ms")
    assert "TIMES DO NOT FIT" not in kinds(resegment(late, three("a", "b", "c")))
