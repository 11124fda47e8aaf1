# SPDX-License-Identifier: Apache-2.0
"""SLTev's logs of re-translation: what is read, what is refused, what is written, and the metrics of revision."""

from __future__ import annotations

import gzip
import io
import math
import sys
import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lagging
import oracle_revision as oracle
from lagging import Run
from lagging.errors import DataError, MetricError, MissingExtraError
from lagging.formats import read, scan, sltev, validate, write
from lagging.formats.moses import _tokenize, moses
from lagging.formats.sltev_pairs import SeenWords, Update, due, due_by_partials, first_seen

LOG = """\
P 5 0 4 we see
P 7 0 6 we saw a
P 9 0 8 we saw a dog
C 12 0 10 we saw the dog bark.
P 16 11 14 a cat
C 15 11 18 a cat sat
"""
TRANSCRIPT = "P 0 3 wir\nC 0 9 wir sahen bellen\nC 11 19 Katze sass\n"
REFERENCE = "we saw a dog bark.\nthe cat sat\n"

LEFT = "nothing is left of the hypothesis, or what was erased is not known"


@pytest.fixture
def log(tmp_path):
    def put(text: str | bytes = LOG, name: str = "talk.de.en.slt", **beside: str) -> Path:
        for ending, content in beside.items():
            (tmp_path / f"talk.{'de' if ending == 'OStt' else 'en'}.{ending}").write_text(content, "utf-8")
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return put


def faults(path: Path, **how) -> list[tuple[str, str, int | None]]:
    return [(fault.kind, Path(fault.path).name, fault.line) for fault in validate(path, **how).faults]


# ---- reading ----------------------------------------------------------------------------------------------------


def test_segments_are_lines_c(log):
    run = read(log())
    assert (run.origin.format, run.unit, run.level, run.seg) == ("sltev", "ms", "token", "given")
    assert run.id.tolist() == [0, 1]
    assert run.prediction.tolist() == ["we saw the dog bark.", "a cat sat"]
    assert run.document.tolist() == ["talk.de.en"] * 2
    assert run.offset.tolist() == [0, 11]
    assert run.source_length.tolist() == [10, 7]
    assert run.line.tolist() == [4, 6]
    assert run.due is None
    assert run.reference_length is None


def test_a_token_is_late_until_it_and_all_before_it_are_final(log):
    # "dog" has been there since 9, but "the" before it only since 12; display time 15 cannot be before 16
    assert read(log()).delays.tolist() == [[5, 7, 12, 12, 12, 12], [5, 5, 5]]


def test_a_token_that_comes_back_is_final_since_it_came_back(log):
    run = read(log("P 1 0 1 a b\nP 2 0 2 x b\nC 3 0 3 a b\n"))
    assert run.delays.tolist() == [[3, 3]]
    assert (run.erased.tolist(), run.revisions.tolist()) == ([4], [2])


def test_erased_are_the_tokens_after_the_first_difference(log):
    run = read(log())
    assert run.erased.tolist() == [1 + 0 + 2, 0]
    assert run.revisions.tolist() == [2, 0]


def test_gone_are_those_that_the_new_text_has_nowhere(log):
    assert read(log()).gone.tolist() == [1 + 1, 0]
    assert read(log("P 1 0 1 a b c\nC 2 0 2 c b a\n")).gone.tolist() == [0]


def test_display_times_that_go_back_are_counted(log):
    notes = {note.kind: note for note in read(log()).notes}
    assert (notes["display time goes back"].count, notes["display time goes back"].noun) == (1, "update")
    assert "foreign update" not in notes


def test_updates_of_another_time_are_counted(log):
    run = read(log("P 5 0 4 a\nP 25 20 24 b\nC 9 0 8 a\nC 30 20 28 b\n"))
    assert {note.kind: note.count for note in run.notes}["foreign update"] == 1


def test_what_is_passed_over_is_told_of_every_file(log):
    run = read(log("\ufeff\n" + LOG, OStt="\ufeff" + TRANSCRIPT, OSt=REFERENCE + "\n\n"), unit="ms")
    told = sorted((note.kind, Path(note.text.split()[-1 if note.count else -2]).name, note.count) for note in run.notes)
    assert [line for line in told if line[0] in ("blank line", "byte order mark")] == [
        ("blank line", "talk.de.en.slt", 1),
        ("blank line", "talk.en.OSt", 2),
        ("byte order mark", "talk.de.OStt:", 0),
        ("byte order mark", "talk.de.en.slt:", 0),
    ]


def test_the_unit_is_not_known_and_that_is_said(log):
    path = log()
    assert any(note.kind == "time unit" for note in read(path).notes)
    assert "SLTev names no unit" in read(path).origin.description
    assert not any(note.kind == "time unit" for note in read(path, unit="ms").notes)


@pytest.mark.parametrize(
    "text",
    [
        LOG.replace(" ", "\t", 3),
        LOG.replace("\n", "\r\n"),
        LOG.replace("\n", "\n\n  \n"),
        LOG.replace("C 12 0 10 we", "  C   12.0 0.0 1e1   we"),
        LOG.removesuffix("\n"),
        "\ufeff" + LOG,
        gzip.compress(LOG.encode()),
    ],
    ids=["tabs", "crlf", "blank lines", "floats", "no last line break", "byte order mark", "gzip"],
)
def test_liberal_in_what_is_accepted(text, log):
    plain, other = read(log()), read(log(text, "talk.xx.yy.slt"))
    assert other.delays == plain.delays
    assert other.prediction.tolist() == plain.prediction.tolist()
    assert other.source_length.tolist() == plain.source_length.tolist()


def test_an_empty_text_is_an_empty_hypothesis(log):
    run = read(log("P 3 0 2 a b\nC 4 0 3\nC 9 4 8 c\n"))
    assert run.delays.tolist() == [[], [5]]
    assert run.erased.tolist() == [2, 0]
    score = lagging.score(run, ["NormalizedErasure"])["NormalizedErasure"]
    assert score.undefined.reasons == {LEFT: (0,)}
    assert score.value == 0


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ("X 1 2 3 a", "not-an-update"),
        ("P 1 2 a", "not-an-update"),
        ("C 1 2 3a b", "not-an-update"),
        ("C 1 nan 3 a", "not-an-update"),
        ("C 1e999 0 3 a", "not-an-update"),
        ("###docSpliter###", "not-an-update"),
        ("C 20 18 17 a", "bad-source-length"),
        (b"C 20 18 19 \xff", "not-utf8"),
    ],
)
def test_what_is_refused(bad, kind, log):
    path = log(LOG.encode() + (bad if isinstance(bad, bytes) else bad.encode()) + b"\n")
    assert faults(path) == [(kind, "talk.de.en.slt", 7)]
    with pytest.raises(DataError, match=r"talk\.de\.en\.slt:7"):
        read(path)


def test_updates_at_the_end_that_nothing_completes_are_left_out_and_counted(log):
    run, whole = read(log(LOG + "P 20 18 19 a\nP 21 18 20 a b\n")), read(log(LOG))
    assert run.delays == whole.delays
    (note,) = (note for note in run.notes if note.kind == "NEVER COMPLETED")
    assert (note.count, note.noun) == (2, "update")
    assert "from line 7 on" in note.text


def test_a_log_that_nothing_completes_is_refused(log):
    assert faults(log("P 20 18 19 a\n")) == [("never-completed", "talk.de.en.slt", 1)]


@pytest.mark.parametrize("name", ["talk.de.TTen", "talk.de.TTen1"])
def test_references_of_the_elitr_test_set_are_found(name, tmp_path):
    (tmp_path / "talk.de.en.slt").write_text(LOG)
    (tmp_path / "talk.de.OStt").write_text(TRANSCRIPT)
    (tmp_path / name).write_text(REFERENCE)
    if name.endswith("1"):
        (tmp_path / "talk.de.TTen2").write_text(REFERENCE)
    run = read(tmp_path / "talk.de.en.slt")
    assert run.due is not None
    assert f"reference from {name}" in run.origin.description
    others = [note.text.split(" not read")[0] for note in run.notes if note.kind == "several references"]
    assert others == (["talk.de.TTen2"] if name.endswith("1") else [])


def test_all_faults_at_once(log):
    path = log("C 1 0 1 a\nC x\nP 3 2\nC 4 2 1 b\nP 9 8 8 c\n", OStt="C 0\nC 0 1 a\n", OSt="x\ny\n")
    assert faults(path) == [
        ("not-an-update", "talk.de.OStt", 1),
        ("not-an-update", "talk.de.en.slt", 2),
        ("not-an-update", "talk.de.en.slt", 3),
        ("bad-source-length", "talk.de.en.slt", 4),
        ("reference-count", "talk.en.OSt", None),
    ]


def test_several_files_are_one_system(tmp_path):
    for name in ("a.de.en.slt", "b.de.en.slt"):
        (tmp_path / name).write_text(LOG)
    run = read(str(tmp_path / "*.slt"))
    assert run.id.tolist() == [0, 1, 2, 3]
    assert run.document.tolist() == ["a.de.en"] * 2 + ["b.de.en"] * 2


def test_parts_are_the_whole(log, monkeypatch):
    monkeypatch.setattr(sltev, "PART", 1)
    path = log()
    parts = list(scan(path))
    assert [len(part) for part in parts] == [1, 1]
    whole = Run.concat(parts)
    assert whole.id.tolist() == [0, 1]
    assert lagging.score(iter(parts), ["DAL", "Flicker"])["DAL"].value == lagging.score(read(path))["DAL"].value


def test_a_transcript_is_not_a_log():
    assert sltev.recognise(b"\n C 1 2 3 a\n")
    assert sltev.recognise(b"P 1 2 3\n")
    assert not sltev.recognise(b"P 1 2 a\n")
    assert not sltev.recognise(b"PC 1 2 3 a\n")
    assert not sltev.recognise(b"")


def test_nothing_stands_beside_standard_input(log, monkeypatch):
    log(OStt=TRANSCRIPT, OSt=REFERENCE)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(LOG.encode()))))
    run = read("-")
    assert (len(run), run.document, run.due) == (2, None, None)
    assert "beside standard input" in run.origin.description


def test_other_levels(log):
    words = read(log(), level="word")
    assert (words.level, words.delays.tolist()) == ("word", [[5, 7, 12, 12, 12], [5, 5, 5]])
    chars = read(log("P 2 0 2 你好\nC 3 0 3 你们好\n"), level="char")
    assert (chars.delays.tolist(), chars.erased.tolist()) == ([[2, 3, 3]], [1])


# ---- what stands beside -----------------------------------------------------------------------------------------


def test_transcript_and_reference_beside_the_log(log):
    run = read(log(OStt=TRANSCRIPT, OSt=REFERENCE))
    assert "source times from talk.de.OStt, reference from talk.en.OSt" in run.origin.description
    assert run.reference_length.tolist() == [6, 3]
    assert run.due.tolist() == [[1.5, 3, 4.5, 6, 7.5, 9], [11 + 8 / 3, 11 + 16 / 3, 19]]
    assert [[None if math.isnan(v) else v for v in row] for row in run.shown.tolist()] == [
        [5, 7, None, 9, 12, 12],  # "a" was replaced; the full stop is beyond the time of the sentence, but next to it
        [None, 16, 15],
    ]
    scores = lagging.score(run, ["SLTevDelay", "SLTevDelay(over=reference)", "Missed"])
    total = 3.5 + 4 + 3 + 4.5 + 3 + 0 + 0
    assert scores["SLTevDelay"].value == pytest.approx(total / 7)
    assert scores["SLTevDelay(over=reference)"].value == pytest.approx(total / 9)
    assert scores["Missed"].value == pytest.approx(2 / 9)


def test_a_repeated_word_is_looked_for_once_and_counts_in_the_length(log):
    run = read(log(OStt=TRANSCRIPT, OSt="we saw we we\na cat\n"))
    assert run.due.lengths.tolist() == [2, 2]
    assert run.reference_length.tolist() == [4, 2]


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        ({}, "talk.de.OStt and talk.en.OSt not found"),
        ({"OStt": TRANSCRIPT}, "talk.en.OSt not found"),
        ({"OSt": REFERENCE}, "talk.de.OStt not found"),
    ],
)
def test_without_them_the_delay_says_what_is_missing(beside, said, log):
    run = read(log(**beside))
    for name in ("SLTevDelay", "Missed", "SLTevDelay(partial=True)"):
        with pytest.raises(MetricError, match=said):
            lagging.score(run, [name])


def test_names_that_tell_no_languages(log):
    run = read(log(name="talk.slt", OStt=TRANSCRIPT, OSt=REFERENCE))
    assert "not called NAME.SOURCE.TARGET.slt" in run.origin.description
    with pytest.raises(MetricError, match=r"NAME\.SOURCE\.OStt"):
        lagging.score(lagging.Run.from_delays([[1]], source_length=[1]), ["SLTevDelay"])


@pytest.mark.parametrize(
    ("beside", "expected"),
    [
        ({"OStt": TRANSCRIPT, "OSt": "one\n"}, ("reference-count", "talk.en.OSt", None)),
        ({"OStt": TRANSCRIPT + "P 1 2 x\n", "OSt": REFERENCE}, ("never-completed", "talk.de.OStt", 4)),
        ({"OStt": TRANSCRIPT.replace("11 19", "20 19"), "OSt": REFERENCE}, ("bad-source-length", "talk.de.OStt", 3)),
        ({"OStt": TRANSCRIPT + "P 1 2\n", "OSt": REFERENCE}, ("not-an-update", "talk.de.OStt", 4)),
    ],
)
def test_faults_of_the_files_beside(beside, expected, log):
    assert faults(log(**beside)) == [expected]


def test_other_references_are_named(log, tmp_path):
    path = log(OStt=TRANSCRIPT, OSt=REFERENCE)
    (tmp_path / "talk.en.OSt2").write_text(REFERENCE)
    note = next(note for note in read(path).notes if note.kind == "several references")
    assert "talk.en.OSt2 not read" in note.text


def test_a_sentence_belongs_where_most_of_its_time_is(log):
    spoken = (
        "C 0 2 a\nC 8 13 b\nC 30 40 c\n"  # the second: 2 with the first segment, 2 with the second; the third: none
    )
    run = read(log(OStt=spoken, OSt="x\ny y\nz\n"))
    assert run.reference_length.tolist() == [3, 1]


# ---- SLTev's tokens ---------------------------------------------------------------------------------------------


def test_without_the_package_that_cuts_them(log, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    monkeypatch.setattr("lagging.formats.moses._tokenize", _tokenize.__wrapped__)
    with pytest.raises(MissingExtraError, match=r"pip install 'lagging\[sltev\]'"):
        read(log())
    assert read(log(), level="word").level == "word"


# as sacremoses 0.2.0 cuts them, MosesTokenizer().tokenize(text, escape=False)
CUT = [
    ("Jako většina a řídící orgán.", "Jako|většina|a|řídící|orgán|."),
    ("společností Canonical Lt.", "společností|Canonical|Lt."),
    ("společností Canonical Ltd.", "společností|Canonical|Ltd|."),
    ("Mr. and Mrs. Smith's dogs' toys, e.g. bones.", "Mr.|and|Mrs.|Smith|'s|dogs|'|toys|,|e.g.|bones|."),
    ("It's 5,300 (or 3.14%)...", "It|'s|5,300|(|or|3.14|%|)|..."),
    ("'tis the rock'n'roll of the 90's", "'tis|the|rock|'n'roll|of|the|90|'s"),
    ("a,,b ,5 x,", "a|,|,|b|,|5|x|,"),
    ("No. 5, No. x, pp. 3; etc. and so on.", "No.|5|,|No.|x|,|pp.|3|;|etc.|and|so|on|."),
    ("U.S. U.S.", "U.S.|U.S."),
    ('"Hi!" -- she said-so_there & <b> [c] d/e', '"|Hi|!|"|--|she|said-so|_|there|&|<|b|>|[|c|]|d|/|e'),
    ("end.'", "end|.|'"),
    ("你好，世界 한국 ひらがな", "你|好|，|世|界|한|국|ひらがな"),
    ("“Übung” … …", "“|Übung|”|…|…"),
    ("x\ty\u00a0z", "x|y|z"),
    ("Привет, мир.", "Привет|,|мир|."),
    ("1,000,000 a.b. c.d", "1,000,000|a.b.|c.d"),
    ("don`t 5' 6'a", "don`t|5|'|6'a"),
    (". .", ".|."),
    ("", ""),
]


@pytest.mark.parametrize(("text", "cut"), CUT)
def test_moses(text, cut):
    assert moses(text) == [word for word in cut.split("|") if word]


# ---- against the oracle -----------------------------------------------------------------------------------------

WORDS = st.sampled_from("abcdef")
TEXTS = st.lists(WORDS, min_size=1, max_size=6)


@st.composite
def recordings(draw):
    """Segments, transcripts and references of a recording, times in whole numbers."""
    segments, transcripts, now = [], [], draw(st.sampled_from([0, 500]))
    begin = now
    for _ in range(draw(st.integers(1, 4))):
        start, updates = now, []
        for _ in range(draw(st.integers(0, 4))):
            now += draw(st.integers(-1, 5))
            updates.append((now + draw(st.integers(0, 9)), start, max(start, now), draw(TEXTS)))
        now = max(now, start) + draw(st.integers(0, 5))
        final = draw(st.one_of(TEXTS, st.just(updates[-1][3]))) if updates else draw(TEXTS)
        segments.append([*updates, (now + 9, start, now, final)])
        now += draw(st.integers(0, 9))
    now = begin
    for _ in range(draw(st.integers(1, 4))):
        start, words, spoken = now, draw(TEXTS), []
        for k in range(1, len(words)):
            now += draw(st.integers(0, 4))
            spoken.append((start, now, draw(st.permutations(words))[:k]))
        now += draw(st.integers(1, 4))
        transcripts.append([*spoken, (start, now, words)])
        now += draw(st.integers(0, 20))
    return segments, transcripts, [draw(TEXTS) for _ in transcripts]


def put(folder: str, segments, transcripts, references) -> Path:
    def lines(groups) -> str:
        return "".join(
            f"{'C' if row is group[-1] else 'P'} {' '.join(map(str, row[:-1]))} {' '.join(row[-1])}\n"
            for group in groups
            for row in group
        )

    path = Path(folder) / "talk.de.en.slt"
    path.write_text(lines(segments), "utf-8")
    path.with_name("talk.de.OStt").write_text(lines(transcripts), "utf-8")
    path.with_name("talk.en.OSt").write_text("".join(" ".join(words) + "\n" for words in references), "utf-8")
    return path


def close(value: float, exact: Fraction | None) -> bool:
    return math.isnan(value) if exact is None else value == pytest.approx(float(exact), rel=1e-12, abs=1e-9)


@settings(max_examples=300)
@given(recordings())
def test_everything_agrees_with_the_oracle(recording):
    segments, transcripts, references = recording
    with tempfile.TemporaryDirectory() as folder:
        run = read(put(folder, *recording))
    assert run.delays.tolist() == [[float(v) for v in oracle.delays(segment)] for segment in segments]
    exact = oracle.flicker(segments)
    names = {
        "content": "Erased",
        "sentences": "NormalizedErasure(mean=segment)",
        "documents": "NormalizedErasure",
        "revision": "Flicker",
    }
    names["tokens"] = "Erased(gone=True)"
    for key, name in names.items():
        assert close(lagging.score(run, [name])[name].value, exact[key]), key
    for partial in (False, True):
        total, shown, missed = oracle.delay(segments, transcripts, references, partial)
        length = sum(map(len, references))
        for name, value in (
            (f"SLTevDelay(partial={partial})", Fraction(total, shown) if shown else None),
            (f"SLTevDelay(partial={partial}, over=reference)", Fraction(total, length)),
            ("Missed", Fraction(missed, shown + missed)),
        ):
            assert close(lagging.score(run, [name])[name].value, value), name


@settings(max_examples=300)
@given(recordings())
def test_the_times_of_reference_words_agree_with_the_oracle(recording):
    _, transcripts, references = recording
    for spoken, words in zip(transcripts, references, strict=True):
        updates = [Update(math.nan, start, end, list(source)) for start, end, source in spoken]
        for ours, theirs in ((due, oracle.due), (due_by_partials, oracle.due_by_partials)):
            exact = theirs(spoken, words)
            assert list(exact) == list(dict.fromkeys(words))
            assert ours(updates, words).tolist() == pytest.approx([float(v) for v in exact.values()], abs=1e-9)


def test_without_a_word_in_its_time_a_sentence_sees_the_first_and_the_last():
    seen = SeenWords([first_seen([Update(7, 0, 2, ["a", "b"])]), first_seen([Update(9, 90, 92, ["c", "d"])])])
    assert seen.between(40, 50) == {"a": 7, "d": 9}
    assert seen.between(0, 2) == {"a": 7, "b": 7, "c": 9}
    assert SeenWords([]).between(0, 1) == {}


def test_of_two_that_are_the_same_word_the_last_in_the_log_counts():
    seen = SeenWords([first_seen([Update(1, 0, 5, ["a"])]), first_seen([Update(2, 0, 3, ["a"])])])
    assert seen.between(0, 9) == {"a": 2}


def test_beyond_a_thousand_million_no_word_is_found_before():
    far = 10**9
    seen = SeenWords([first_seen([Update(far + 9, far, far + 6, ["a", "b", "c"])])])
    assert seen.between(far + 4, far + 4) == {"b": far + 9, "c": far + 9}


# ---- the metrics on Runs of other origin ------------------------------------------------------------------------


def revised(**columns) -> Run:
    return Run.from_delays([[1, 2], [], [3, 3, 3], [1]], source_length=[3] * 4, **columns)


def test_ratios_of_sums_and_what_is_undefined():
    run = revised(erased=[3, 4, 0, math.nan], revisions=[2, 1, 0, math.nan])
    scores = lagging.score(run, ["NormalizedErasure", "NormalizedErasure(mean=segment)", "Flicker", "Erased"])
    assert scores["NormalizedErasure"].value == pytest.approx(3 / 5)
    assert scores["NormalizedErasure"].undefined.reasons == {LEFT: (1, 3)}
    assert scores["NormalizedErasure(mean=segment)"].value == pytest.approx(1.5 / 2)
    assert scores["Flicker"].value == pytest.approx(7 / 3)
    assert scores["Flicker"].undefined.reasons == {"never revised, or what was erased is not known": (2, 3)}
    assert np.array_equal(scores["Flicker"].segments, [1.5, 4, np.nan, np.nan], equal_nan=True)
    assert scores["Erased"].value == 7
    assert scores["Erased"].undefined.reasons == {"what was erased is not known": (3,)}


@pytest.mark.parametrize("name", ["NormalizedErasure", "Erased", "Flicker", "Erased(gone=True)"])
def test_a_log_that_counts_no_revisions(name):
    with pytest.raises(MetricError, match=r"it needs `(erased|revisions|gone)`"):
        lagging.score(revised(), [name])


def test_missed_words_are_not_words_without_delay():
    run = Run.from_delays(
        [[1], [2]],
        source_length=[3, 3],
        reference_length=[3, math.nan],
        due=[[10, 20, 30], []],
        shown=[[14, math.nan, 25], []],
    )
    scores = lagging.score(run, ["SLTevDelay", "SLTevDelay(over=reference)", "Missed"])
    assert scores["SLTevDelay"].value == 2  # 4 and 0: shown before it was due is no delay
    assert scores["SLTevDelay(over=reference)"].value == pytest.approx(4 / 3)
    assert scores["Missed"].value == pytest.approx(1 / 3)
    assert scores["SLTevDelay"].undefined.reasons == {"no word of the reference was shown": (1,)}
    assert scores["Missed"].undefined.reasons == {"no reference belongs to it": (1,)}


def test_partial_transcripts_have_times_of_their_own():
    run = Run.from_delays([[1]], source_length=[3], due=[[10]], due_partial=[[12]], shown=[[15]])
    scores = lagging.score(run, ["SLTevDelay", "SLTevDelay(partial=True)"])
    assert [score.value for score in scores] == [5, 3]


# ---- writing ----------------------------------------------------------------------------------------------------


def test_layout(tmp_path):
    run = Run.from_delays(
        [[2, 2, 4.5], []],
        source_length=[4, 3],
        prediction=["a b c.", ""],
        offset=[10, 20],
        unit="ms",
        level="word",
        seg="given",
    )
    lost = write(run, tmp_path / "a.slt")
    assert (tmp_path / "a.slt").read_text() == "P 12 10 12 a b\nC 14.5 10 14 a b c.\nC 23 20 23\n"
    assert lost == ["level (read it with --level word)"]


def test_what_is_written_is_read_back(log, tmp_path):
    run = read(log())
    lost = write(run, tmp_path / "again.slt")
    assert lost == ["document", "first_times", "erased", "gone", "revisions"]
    again = read(tmp_path / "again.slt")
    for column in ("delays", "source_length", "prediction", "offset", "id"):
        assert getattr(again, column).tolist() == getattr(run, column).tolist()
    assert again.erased.tolist() == [0, 0]
    assert write(replace(again, document=None), tmp_path / "third.slt") == []
    assert (tmp_path / "third.slt").read_text() == (tmp_path / "again.slt").read_text()


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.lists(WORDS, max_size=6), st.integers(0, 9)), min_size=1, max_size=4),
    st.sampled_from(["word", "char", "token"]),
    st.data(),
)
def test_any_run_with_texts_is_read_back(rows, level, data):
    delays = [sorted(data.draw(st.lists(st.integers(-2, 20), min_size=len(w), max_size=len(w)))) for w, _ in rows]
    run = Run.from_delays(
        delays,
        source_length=[x for _, x in rows],
        prediction=[" ".join(words) for words, _ in rows],
        offset=range(len(rows)),
        unit="ms",
        level=level,
        seg="given",
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.slt"
        lost = write(run, path)
        again = read(path, level=level)
    assert lost == ([] if level == "token" else [f"level (read it with --level {level})"])
    assert again.delays == run.delays
    for column in ("source_length", "prediction", "offset", "id"):
        assert getattr(again, column).tolist() == getattr(run, column).tolist()


def test_delays_that_sltev_would_read_otherwise_are_named(tmp_path):
    # at the end of a text, "etc." is two tokens; before a small letter it is one
    run = Run.from_delays(
        [[1, 2]], source_length=[3], prediction=["etc. and"], offset=[0], unit="ms", level="token", seg="given"
    )
    assert write(run, tmp_path / "a.slt") == ["1 delays (of tokens that are others at the end of a text)"]


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(DataError, match="no `prediction`"):
        write(Run.from_delays([[1]], source_length=[1]), tmp_path / "a.slt")
    pieces = Run.from_delays([[1, 2]], source_length=[2], prediction=["guten"], level="token")
    with pytest.raises(DataError, match="2 delays, 1 SLTev tokens"):
        write(pieces, tmp_path / "a.slt")
    assert list(tmp_path.iterdir()) == []


def test_what_is_lost(tmp_path):
    run = Run.from_delays([[1, 2]], source_length=[2], prediction=["a b"], reference=["c"], id=["x"])
    assert write(run, tmp_path / "a.slt") == [
        "id",
        "reference",
        "level (read it with --level word)",
        "unit (read it with --unit token)",
        "seg (none, read back as given)",
    ]
