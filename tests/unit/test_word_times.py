# SPDX-License-Identifier: Apache-2.0
"""Files with word times and word alignments: every format, which row a recording belongs to, and every fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lagging
from lagging.formats.report import ReadReport
from lagging.formats.word_times import read_word_times, stem

WORDS = [(500.0, 750.0, "hello"), (750.0, 1250.0, "there,"), (1500.0, 2000.0, "Ann")]

LONG = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 2.5
tiers? <exists>
size = 3
item []:
    item [1]:
        class = "IntervalTier"
        name = "Ann - words"
        xmin = 0
        xmax = 2.5
        intervals: size = 5
        intervals [1]:
            xmin = 0
            xmax = 0.5
            text = ""
        intervals [2]:
            xmin = 0.5
            xmax = 0.75
            text = "hello"
        intervals [3]:
            xmin = 0.75
            xmax = 1.25
            text = "there,"
        intervals [4]:
            xmin = 1.25
            xmax = 1.5
            text = "sp"
        intervals [5]:
            xmin = 1.5
            xmax = 2
            text = "Ann"
    item [2]:
        class = "IntervalTier"
        name = "Ann - phones"
        xmin = 0
        xmax = 2.5
        intervals: size = 1
        intervals [1]:
            xmin = 0
            xmax = 2.5
            text = "say ""h"" 1 2"
    item [3]:
        class = "TextTier"
        name = "bells"
        xmin = 0
        xmax = 2.5
        points: size = 1
        points [1]:
            number = 0.5
            mark = "ding"
"""
SHORT = """File type = "ooTextFile"
Object class = "TextGrid"

0
2.5
<exists>
1
"IntervalTier"
"Mary"
0
2.5
3
0.5
0.75
"hello"
0.75
1.25
"there,"
1.5
2
"Ann"
"""
WHISPER = {
    "text": " hello there, Ann",
    "segments": [
        {"words": [{"word": " hello", "start": 0.5, "end": 0.75}, {"word": " the", "start": 0.75, "end": 1.0}]},
        {"words": [{"word": "re,", "start": 1.0, "end": 1.25}, {"word": " Ann", "start": 1.5, "end": 2.0}]},
    ],
}
PLAIN = [{"text": word, "start": start / 1000, "end": end / 1000} for start, end, word in WORDS]
FILES = {
    "a.ctm": ";; made by hand\na 1 0.5 0.25 hello\na 1 0.75 0.5 there, 0.98\na 1 1.25 0.25 <eps>\na 1 1.5 .5 Ann\n",
    "a.tsv": "0.5\t0.75\thello\n0.75\t1.2500000000000002\tthere,\n\n1.5\t2\tAnn\n",
    "a.TextGrid": LONG,
    "short.TextGrid": SHORT,
    "whisper.json": json.dumps(WHISPER, indent=1),
    "words.json": json.dumps({"words": PLAIN}),
    "list.json": json.dumps([{"words": PLAIN[:1]}, {"words": PLAIN[1:]}]),
    "bare.json": json.dumps([{"word": word["text"], **word} for word in PLAIN]),
    "header.tsv": "start\tend\tword\n0.5\t0.75\thello\n0.75\t1.25\tthere,\n1.5\t2\tAnn\n",
    "blanks.txt": "0.5 0.75 hello\n0.75  1.25 there,\n1.5 2 Ann\n",
    "a.en.OStt": "P 500 750 hello\nP 500 1250 hello there,\nC 500 1250 hello there,\nC 1500 2000 Ann\n",
}


def read(folder: Path, name: str, text: str | bytes) -> tuple[list[list[tuple[float, float, str]]], ReadReport]:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    report = ReadReport()
    recordings = read_word_times(folder / name, report).recordings
    return [[(word.start, word.end, word.text) for word in words] for words in recordings.values()], report


def talks(*names: str, length: float = 3000, **more: object) -> lagging.Run:
    n = len(names)
    texts = more.pop("prediction", ["hello there, Ann"] * n)
    return lagging.Run.from_delays(
        [[1000, 2000, 2500]] * n, source_length=[length] * n, prediction=texts, id=list(names), unit="ms", **more
    )


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_words(name: str, tmp_path: Path) -> None:
    words, report = read(tmp_path, name, FILES[name])
    assert words == [WORDS]
    assert not report.faults
    assert not report.notes


def test_one_recording_belongs_to_a_log_that_names_none(tmp_path: Path) -> None:
    (tmp_path / "a.ctm").write_text("talk 1 0.5 0.25 hello\n")
    (tmp_path / "out.txt").write_text("1000.0000 0 900  hello\n")
    (tmp_path / "log.jsonl").write_text(
        '{"delays": [1000], "source_length": 1000, "prediction": "hello", "unit": "ms"}\n'
    )
    for log in ("out.txt", "log.jsonl"):
        run = lagging.read(tmp_path / log, word_times=tmp_path / "a.ctm")
        assert lagging.score(run, ["WordLag"])["WordLag"].value == 250
        assert [note.kind for note in run.notes if '"talk"' in str(note)] == ["word times"]
    (tmp_path / "talk.txt").write_text("1000.0000 0 900  hello\n")
    run = lagging.read(tmp_path / "talk.txt", word_times=tmp_path / "a.ctm")
    assert "word times" not in [note.kind for note in run.notes]
    (tmp_path / "named.jsonl").write_text('{"time": 1000, "text": "hello", "mode": "append", "recording": "other"}\n')
    with pytest.raises(lagging.DataError, match="none of the recordings"):
        lagging.read(tmp_path / "named.jsonl", word_times=tmp_path / "a.ctm")


def test_praat_writes_utf16_too(tmp_path: Path) -> None:
    assert read(tmp_path, "a.TextGrid", LONG.encode("utf-16"))[0] == [WORDS]


def test_words_of_a_transcript_without_updates_share_its_time(tmp_path: Path) -> None:
    words, _ = read(tmp_path, "a.OStt", "C 0 900 a b c\nP 900 1000 d\nC 900 1400 d e f\n")
    assert words == [
        [(0, 300, "a"), (300, 600, "b"), (600, 900, "c"), (900, 1000, "d"), (1000, 1200, "e"), (1200, 1400, "f")]
    ]


def test_words_without_times_are_left_out_with_a_note(tmp_path: Path) -> None:
    words, report = read(tmp_path, "a.json", json.dumps({"words": [{"word": "1995"}, *PLAIN]}))
    assert words == [WORDS]
    assert [note.kind for note in report.notes] == ["words without times"]


@pytest.mark.parametrize(
    ("name", "text", "line", "detail"),
    [
        ("a.ctm", "a 1 0.5 0.25 hello\na 1 x 0.5 there\n", 2, "a 1 x 0.5 there"),
        ("a.tsv", "0.5\t1\thello\n0.75 1.25 there\n", 2, "0.75 1.25 there"),
        ("a.txt", "hello there\n", 1, "hello there"),
        ("a.txt", "", 1, '""'),
        ("a.json", "{\n  1}", 2, "not valid JSON"),
        ("a.json", '{"text": "hello"}', None, "no `words`"),
        ("a.json", '{"words": [{"word": "a", "start": "0", "end": 1}]}', None, "words[0]"),
        ("a.json", '{"segments": [{"words": [7]}]}', None, "segments[0].words[0]: 7"),
        ("a.TextGrid", LONG[:600], 23, "breaks off"),
        ("a.TextGrid", LONG.replace("words", "tokens"), None, '0 tiers of words among "Ann - tokens", "Ann - phones"'),
        ("a.OStt", "C 0 900 a\nC nine 10 b\n", 2, "C nine 10 b"),
        ("a.tsv", b"0\t1\ta\n1\t2\t\xff\n", 2, "0xff"),
    ],
)
def test_lines_that_cannot_be_read(name, text, line, detail, tmp_path: Path) -> None:
    _, report = read(tmp_path, name, text)
    (fault,) = report.faults.kept
    assert fault.path == str(tmp_path / name)
    assert fault.line == line or name == "a.TextGrid"
    assert detail in fault.detail


def test_names_of_recordings() -> None:
    assert [stem(name) for name in ("x/a.b.wav", "a.b.ts.txt", "a.b.TextGrid", "a.b")] == ["a.b"] * 4


# ---- which row a recording belongs to -----------------------------------------------------------------------------


def test_rows_are_found_by_id_document_and_sound_file(tmp_path: Path) -> None:
    file = tmp_path / "all.ctm"
    file.write_text("".join(f"{name} 1 0.5 {k} hello\n" for k, name in enumerate(("a", "b", "c", "d"), 1)))
    run = talks("a", "2", "3", document=[None, "talks/b.wav", None], source=[None, None, "/sound/c.wav"])
    run = lagging.with_word_times(run, file)
    assert run.spoken.end.tolist() == [[1500], [2500], [3500]]
    (note,) = (n for n in run.notes if n.kind == "word times left aside")
    assert (note.count, note.segments, note.noun) == (1, ("d",), "recording")


def test_a_folder_has_a_file_for_each_recording(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(FILES["a.tsv"])
    (tmp_path / "b.TextGrid").write_text(LONG)
    run = lagging.with_word_times(talks("b", "a", "c"), tmp_path)
    assert [words and len(words) for words in run.spoken.words] == [3, 3, None]
    assert [str(n) for n in run.notes if n.kind == "no word times"] == [f"no word times: 1 segment (c): in {tmp_path}"]


def test_a_single_file_belongs_to_a_single_row_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "gold.tsv").write_text(FILES["a.tsv"])
    assert lagging.with_word_times(talks("x"), tmp_path / "gold.tsv").spoken.end.tolist() == [[750, 1250, 2000]]


@pytest.mark.parametrize("names", [("x",), ("x", "y")])
def test_names_of_both_are_listed_where_none_fits(names, tmp_path: Path) -> None:
    (tmp_path / "a.ctm").write_text(FILES["a.ctm"])
    with pytest.raises(lagging.DataError) as error:
        lagging.with_word_times(talks(*names), tmp_path / "a.ctm")
    assert list(error.value.counts) == ["no-recording"]
    assert "a in it, but x" in str(error.value).replace('"', "")


def test_a_recording_belongs_to_one_row(tmp_path: Path) -> None:
    (tmp_path / "a.ctm").write_text(FILES["a.ctm"])
    with pytest.raises(lagging.DataError, match="belong to several rows"):
        lagging.with_word_times(talks("x", "y", document=["a", "a"]), tmp_path / "a.ctm")


# ---- faults -------------------------------------------------------------------------------------------------------


def test_every_wrong_time_is_reported_at_once_with_its_line(tmp_path: Path) -> None:
    lines = ["0.5\t0.4\ta", "1\t2\tb", "0.9\t2.5\tc", "1.5\t1.8\td", "-1\t3\te", "7\t8\tf"]
    (tmp_path / "a.tsv").write_text("\n".join(lines) + "\n")
    with pytest.raises(lagging.DataError) as error:
        lagging.with_word_times(talks("a"), tmp_path / "a.tsv", alignment=["0-0", "0-0"])
    found = {(fault.kind, fault.line) for fault in error.value.faults}
    assert found == {*(("word-times", k) for k in (1, 3, 4, 5)), ("word-outside", 6), ("line-count", None)}
    assert "f begins at 7 s, the source ends at 3 s" in str(error.value)


def test_wrong_pairs_of_an_alignment(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(FILES["a.tsv"])
    (tmp_path / "a.align").write_text("0-0 3-1 1-3 x-1 2\n")
    with pytest.raises(lagging.DataError) as error:
        lagging.with_word_times(talks("a"), tmp_path / "a.tsv", alignment=tmp_path / "a.align")
    assert [(f.kind, f.line, f.detail) for f in error.value.faults] == [
        ("not-an-alignment", 1, '"x-1"'),
        ("not-an-alignment", 1, '"2"'),
        ("alignment-range", 1, "3-1: source word 3 of 3"),
        ("alignment-range", 1, "1-3: target token 3 of 3"),
    ]


def test_lines_of_an_alignment_are_paired_by_index(tmp_path: Path) -> None:
    run = lagging.Run.from_delays(
        [[1000], [2000]], source_length=[3000, 3000], prediction=["b", "a"], id=[1, 0], unit="ms"
    )
    times = [[(0, 0.5, "B")], [(0, 0.5, "A")]]
    run = lagging.with_word_times(run, times, alignment=["", "0-0"])
    assert run.spoken.source.tolist() == [[0], []]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"word_alignment": "x"}, "give the times: word_times="),
        ({"word_times": "x", "aligned_with": "reference"}, "aligned_with= says which text word_alignment= aligns"),
        ({"word_times": "x", "word_alignment": "y", "strip": ["eos"]}, "strip= leaves out target tokens"),
        ({"word_times": "nowhere.ctm"}, "no such file or directory: nowhere.ctm"),
    ],
)
def test_options_that_do_not_go_together(options, message, tmp_path: Path) -> None:
    lagging.write(talks("a"), tmp_path / "a.jsonl")
    with pytest.raises(lagging.UsageError, match=message):
        lagging.read(tmp_path / "a.jsonl", **options)


def test_score_takes_the_files_too(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(FILES["a.tsv"])
    (tmp_path / "a.align").write_text("0-0 1-1 2-2\n")
    files = {"word_times": tmp_path / "a.tsv", "word_alignment": tmp_path / "a.align"}
    read = lagging.with_word_times(talks("a"), tmp_path / "a.tsv", alignment=tmp_path / "a.align")
    expected = lagging.score(read, ["WordLag"])["WordLag"]
    for run in (talks("a"), iter([talks("a")])):
        found = lagging.score(run, ["WordLag"], **files)["WordLag"]
        assert (found.value, found.signature) == (expected.value, expected.signature) == (500, expected.signature)
    with pytest.raises(lagging.UsageError, match="give the times: word_times="):
        lagging.score(talks("a"), ["WordLag"], word_alignment=tmp_path / "a.align")


def test_python_lists_must_fit() -> None:
    with pytest.raises(lagging.UsageError, match="word times of 1 segment for a Run of 2"):
        lagging.with_word_times(talks("a", "b"), [[(0, 1, "a")]])
    with pytest.raises(lagging.UsageError, match="hypothesis or the reference"):
        lagging.with_word_times(talks("a"), [[(0, 1, "a")]], alignment=["0-0"], aligned_with="source")
