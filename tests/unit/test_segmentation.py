# SPDX-License-Identifier: Apache-2.0
"""Segmentations: YAML, JSON, docids; references and source sentences beside them; everything that can be wrong."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagging.errors import DataError, UsageError
from lagging.longform.segmentation import Segmentation, read_segmentation

THREE = [("a.wav", 2.433, 9.05), ("a.wav", 15.003, 4.28), ("b.wav", 0, 3)]


def entry(wav: Any = "a.wav", offset: Any = 0.5, duration: Any = 2) -> str:
    return f"- {{duration: {duration}, offset: {offset}, speaker_id: s, wav: {wav}}}\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def to(name: str, text: str | bytes) -> str:
        Path(name).write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return name

    return to


def told(error: pytest.ExceptionInfo[DataError]) -> list[tuple[str, int | None, str]]:
    return [(fault.kind, fault.line, fault.detail) for fault in error.value.faults]


def kinds(made: Segmentation) -> dict[str, int]:
    return {note.kind: note.count for note in made.notes}


# ---- what is read ---------------------------------------------------------------------------------------------------

YAML = "".join(entry(*row) for row in THREE)
BLOCK = "# made by hand\n" + "".join(f"- wav: {w}\n  offset: {o}\n  duration: {d}\n" for w, o, d in THREE)
OBJECTS = [{"wav": w, "offset": o, "duration": d, "more": [1]} for w, o, d in THREE]


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("s.yaml", YAML, [1, 2, 3]),
        ("s.txt", YAML, [1, 2, 3]),
        ("s.yaml", BLOCK, [2, 5, 8]),
        ("s", "---\n" + YAML, [2, 3, 4]),
        ("s.yaml", YAML.replace("\n", "\r\n"), [1, 2, 3]),
        ("s.yaml", YAML.rstrip("\n"), [1, 2, 3]),
        ("s.yaml", YAML.replace("a.wav", '"a.wav"'), [1, 2, 3]),
        ("s.yaml", f"[{', '.join(line.strip('- ') for line in YAML.splitlines())}]", [1, 1, 1]),
        ("s.json", json.dumps(OBJECTS), [1, 1, 1]),
        ("s.json", "\n" + json.dumps(OBJECTS, indent=1), [3, 11, 19]),
        ("s.jsonl", "".join(json.dumps(o) + "\n" for o in OBJECTS), [1, 2, 3]),
        ("s.json", "\n".join(json.dumps(o) for o in OBJECTS), [1, 2, 3]),
    ],
)
def test_yaml_and_json_say_the_same(write, name, text, lines):
    made = read_segmentation(write(name, text))
    assert made.document.tolist() == ["a.wav", "a.wav", "b.wav"]
    assert made.offset.tolist() == [2433, 15003, 0]
    assert made.duration.tolist() == [9050, 4280, 3000]
    assert made.id.tolist() == [0, 1, 2]
    assert (made.line.tolist(), made.unit, made.path, made.notes) == (lines, "ms", name, ())
    assert (made.reference, made.source) == (None, None)
    assert repr(made) == "Segmentation(2 recordings, 3 segments, ms)"


def test_seconds_are_kept_to_the_nanosecond(write):
    made = read_segmentation(write("s.yaml", entry(offset=4.280000000000001, duration="1.0000010009")))
    assert (made.offset.item(0), made.duration.item(0)) == (4280.0, 1000.001001)


def test_a_recording_may_be_called_by_a_number(write):
    assert read_segmentation(write("s.yaml", entry("007") + entry("1e3"))).document.tolist() == ["007", "1e3"]
    assert read_segmentation(write("s.json", '[{"wav": 7, "offset": 0, "duration": 1}]')).document.tolist() == ["7"]


def test_text_files_belong_line_by_line(write):
    reference = write("r.txt", "eins\u2028zwei\r\n\ndrei\n")
    made = read_segmentation(write("s.yaml", YAML), reference=reference, source=write("x.txt", "one\ntwo\nthree four"))
    assert made.reference.tolist() == ["eins\u2028zwei", "", "drei"]
    assert made.source.tolist() == ["one", "two", "three four"]
    assert made.unit == "ms"
    assert kinds(made) == {"empty reference": 1}


def test_packed_files_and_byte_order_marks(write):
    made = read_segmentation(write("s.yaml.gz", gzip.compress(YAML.encode())))
    assert made.offset.tolist() == [2433, 15003, 0]
    marked = read_segmentation(write("s.yaml", b"\xef\xbb\xbf" + YAML.encode()))
    assert [note.kind for note in marked.notes] == ["byte order mark"]


def test_docids_have_no_times(write):
    numbered = read_segmentation(write("t.txt", "docid=0,segid=0\ndocid=0,segid=1\ndocid=1,segid=0\n"))
    named = read_segmentation(write("d.txt", "0\n0\n1\n"), reference=write("r.txt", "a\nb\nc\n"))
    for made in (numbered, named):
        assert made.document.tolist() == ["0", "0", "1"]
        assert (made.unit, np.isnan(made.offset).all(), np.isnan(made.duration).all()) == ("none", True, True)
        assert [rows.tolist() for rows in made.recordings.values()] == [[0, 1], [2]]
        assert repr(made) == "Segmentation(2 recordings, 3 segments, no times)"
        assert made.notes == ()


def test_source_words_are_a_clock(write):
    texts = {"source": write("x.txt", "a b c\n\nd  e\nf\n"), "reference": write("r.de", "A\nB\nC\nD\n")}
    whole = read_segmentation(**texts)
    assert (whole.unit, whole.document.tolist()) == ("token", ["r.de"] * 4)
    assert (whole.offset.tolist(), whole.duration.tolist()) == ([0, 3, 3, 5], [3, 0, 2, 1])
    assert kinds(whole) == {"empty segment": 1}
    cut = read_segmentation(write("d.txt", "x\nx\ny\nx\n"), **texts)
    assert (cut.offset.tolist(), cut.duration.tolist()) == ([0, 3, 0, 3], [3, 0, 2, 1])
    assert cut.recordings["x"].tolist() == [0, 1, 3]


def test_a_reference_alone_is_one_recording(write):
    made = read_segmentation(reference=write("r.de", "A\nB\n"))
    assert (made.unit, made.document.tolist(), made.reference.tolist()) == ("none", ["r.de", "r.de"], ["A", "B"])
    with pytest.raises(UsageError, match="is needed"):
        read_segmentation()
    with pytest.raises(UsageError, match="cannot read nowhere"):
        read_segmentation("nowhere.yaml")


# ---- notes ----------------------------------------------------------------------------------------------------------


def test_order_and_overlap_are_noted():
    made = Segmentation.from_lists(
        ["a", "b", "a", "a", "b"],
        [5000, 0, 0, 1000, 900],
        [1000, 1000, 4000, 500, 100],
        reference=["x", " ", "y", "", "z"],
    )
    assert kinds(made) == {
        "not in order of time": 1,
        "interleaved recordings": 2,
        "overlapping segments": 2,
        "empty reference": 2,
    }
    by_kind = {note.kind: note.segments for note in made.notes}
    assert by_kind["not in order of time"] == (2,)
    assert by_kind["overlapping segments"] == (3, 4)
    assert made.recordings["a"].tolist() == [2, 3, 0]
    assert made.reference.tolist() == ["x", " ", "y", "", "z"]


def test_segments_that_touch_do_not_overlap(write):
    made = read_segmentation(write("s.yaml", entry(offset=0.1, duration=0.2) + entry(offset=0.299999, duration=1)))
    assert made.notes == ()


def test_a_segment_of_no_length_is_noted():
    assert kinds(Segmentation.from_lists(["a"], [0], [0])) == {"empty segment": 1}


def test_segids_that_go_back_are_noted(write):
    made = read_segmentation(write("t.txt", "docid=0,segid=1\ndocid=1,segid=0\ndocid=0,segid=0\n"))
    assert kinds(made) == {"segid goes back": 1, "interleaved recordings": 1}


# ---- faults ---------------------------------------------------------------------------------------------------------


def test_all_faults_at_once(write):
    text = (
        entry()
        + "- {offset: 1, wav: a.wav}\n"
        + entry(offset="soon")
        + entry(offset=-1)
        + entry(duration=-0.5)
        + entry()
        + entry(offset=".nan")
        + entry(offset="nan", duration="1e30")
        + entry(wav="~")
        + "- 5\n"
        + "- {wav: a, wav: b, offset: 1, duration: 1}\n"
    )
    with pytest.raises(DataError) as error:
        read_segmentation(write("s.yaml", text), reference=write("r.txt", "a\nb\n"))
    assert told(error) == [
        ("segment-lines", None, "2 lines, but 11 segments in s.yaml"),
        ("segment-field", 2, "no duration"),
        ("segment-field", 3, 'offset: "soon"'),
        ("segment-time", 4, "offset -1000 ms"),
        ("segment-time", 5, "duration -500 ms"),
        ("segment-twice", 6, "line 1"),
        ("segment-field", 7, 'offset: ".nan"'),
        ("segment-field", 8, 'offset: "nan"'),
        ("segment-field", 8, 'duration: "1e30"'),
        ("segment-field", 9, "no wav"),
        ("segment-field", 10, 'not an entry: "5"'),
        ("repeated-key", 11, '"wav"'),
    ]
    assert "in s.yaml:2 (segment 1): no duration" in str(error.value)
    assert error.value.faults[0].path == "r.txt"


@pytest.mark.parametrize(
    ("name", "text", "kind", "line"),
    [
        ("s.yaml", "", "no-segments", None),
        ("s.txt", "", "no-segments", None),
        ("s.json", "[]", "no-segments", None),
        ("s.yaml", "[]", "no-segments", None),
        ("s.yaml", "# nothing\n", "no-segments", None),
        ("s.yaml", entry() + "- {a: [}\n", "not-a-segmentation", 2),
        ("s.yaml", entry() + "- \x07\n", "not-a-segmentation", None),
        ("s.yaml", "wav: a\n", "not-a-segmentation", 1),
        ("s.yaml", "- [1, 2]\n", "segment-field", 1),
        ("s.yaml", "- {wav: [a.wav], offset: 0, duration: 1}\n", "segment-field", 1),
        ("s.yaml", "- {wav: {a: b}, offset: 0, duration: 1}\n", "segment-field", 1),
        ("s.json", '[{"wav": "a"},\n {]', "not-a-segmentation", 2),
        ("s.json", '"a"', "not-a-segmentation", 1),
        ("s.json", " \n", "no-segments", None),
        ("s.jsonl", '{"wav": "a", "offset": 0, "duration": 1}\n\n{"wav": "a"', "not-a-segmentation", 3),
        ("s.jsonl", '{"wav": "a", "offset": 0, "duration": true}', "segment-field", 1),
        ("s.jsonl", '{"wav": ["a"], "offset": 0, "duration": 1}', "segment-field", 1),
        ("s.jsonl", '{"wav": "\\ud800", "offset": 0, "duration": 1}', "segment-field", 1),
        ("s.json", "[" * 100_000, "not-a-segmentation", None),
        ("s.txt", "docid=0,segid=0\nnothing\n", "not-a-segmentation", 2),
        ("s.txt", "docid=0,segid=0\ndocid=1,segid=0\ndocid=0,segid=0\n", "segment-twice", 3),
        ("s.txt", "Guten Tag!\n", "not-a-segmentation", 1),
        ("s.txt", "a\n\nb\n", "segment-field", 2),
        ("s.txt", b"a\n\xff\n", "not-utf8", 2),
        ("s.yaml", entry().encode() + entry("\xe9").encode("latin1"), "not-utf8", 2),
    ],
)
def test_files_that_are_no_segmentation(write, name, text, kind, line):
    with pytest.raises(DataError) as error:
        read_segmentation(write(name, text))
    assert [(fault.kind, fault.line) for fault in error.value.faults] == [(kind, line)]


def test_blank_lines_among_json_are_noted(write):
    lines = "\n\n".join(json.dumps(o) for o in OBJECTS)
    made = read_segmentation(write("s.jsonl", lines))
    assert (made.line.tolist(), kinds(made)) == ([1, 3, 5], {"blank line": 2})


def test_a_reference_that_is_not_utf8(write):
    with pytest.raises(DataError) as error:
        read_segmentation(write("s.yaml", YAML), reference=write("r.txt", b"a\nb\n\xe9\n"))
    assert [(f.kind, f.path, f.line) for f in error.value.faults] == [("not-utf8", "r.txt", 3)]


def test_a_text_of_another_length_beside_entries_that_are_none(write):
    with pytest.raises(DataError) as error:
        read_segmentation(write("s.yaml", "- 1\n- 2\n"), source=write("x.txt", "a\nb\n"))
    assert [fault.kind for fault in error.value.faults] == ["segment-field"] * 2


def test_lists_are_checked():
    with pytest.raises(DataError) as error:
        Segmentation.from_lists(["a", "b"], [0], [1, 2, 3])
    assert [fault.kind for fault in error.value.faults] == ["length-mismatch"] * 2
    with pytest.raises(DataError) as error:
        Segmentation.from_lists(["a", None, "b", "b"], [0, np.nan, 1, 1], [1, np.inf, 1, 1], reference=["", 1, "", ""])
    assert [(f.kind, f.segment, f.detail) for f in error.value.faults] == [
        ("segment-field", 1, "no document"),
        ("segment-field", 1, "offset: nan"),
        ("segment-field", 1, "duration: inf"),
        ("bad-value", 1, "reference: 1"),
        ("segment-twice", 3, "entry 2"),
    ]
    with pytest.raises(DataError, match="no segments"):
        Segmentation.from_lists([])
    with pytest.raises(UsageError, match="go together"):
        Segmentation.from_lists(["a"], [0])
    with pytest.raises(UsageError, match="unit"):
        Segmentation.from_lists(["a"], [0], [1], unit="s")


def test_columns_are_read_only():
    made = Segmentation.from_lists(["a"], [0], [1], reference=["x"])
    for column in (made.document, made.offset, made.duration, made.id, made.reference):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = column[0]


# ---- properties -----------------------------------------------------------------------------------------------------

segments = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 20), st.integers(1, 6)),
    min_size=1,
    max_size=12,
    unique=True,
)


@given(segments)
def test_recordings_hold_every_segment_once_in_order_of_time(rows):
    made = Segmentation.from_lists(*zip(*rows, strict=True))
    assert sorted(np.concatenate(list(made.recordings.values())).tolist()) == list(range(len(rows)))
    assert list(made.recordings) == list(dict.fromkeys(name for name, _, _ in rows))
    for name, places in made.recordings.items():
        assert {rows[place][0] for place in places} == {name}
        assert [(rows[p][1], p) for p in places] == sorted((rows[p][1], p) for p in places)


@given(segments)
def test_what_is_noted_is_what_a_slow_count_finds(rows):
    made = Segmentation.from_lists(*zip(*rows, strict=True))
    back = over = 0
    for i, (name, begin, _) in enumerate(rows):
        above = [row for row in rows[:i] if row[0] == name]
        back += bool(above) and begin < above[-1][1]
        before = [r for j, r in enumerate(rows) if r[0] == name and (r[1], j) < (begin, i)]
        over += any(r[1] + r[2] > begin for r in before)
    turns = [name for i, (name, _, _) in enumerate(rows) if i == 0 or rows[i - 1][0] != name]
    apart = sum(turns.count(name) > 1 for name in set(turns))
    expected = {"not in order of time": back, "interleaved recordings": apart, "overlapping segments": over}
    assert kinds(made) == {kind: count for kind, count in expected.items() if count}


# ---- real files -----------------------------------------------------------------------------------------------------


@pytest.mark.data
def test_real_segmentations(data):
    examples = data / "omnisteval" / "examples"
    began = time.process_time()
    folder = examples / "simulstream_example"
    made = read_segmentation(folder / "ref_segments.yaml", reference=folder / "references.txt")
    assert time.process_time() - began < 2  # 0.1 s; a loader that makes objects of everything takes ten times that
    assert repr(made) == "Segmentation(27 recordings, 2641 segments, ms)"
    assert (made.offset.item(0), made.duration.item(0)) == (12610, 4069.999)
    assert kinds(made) == {"overlapping segments": 2}
    folder = examples / "text_resegmentation_example"
    made = read_segmentation(folder / "text_segmentation.txt", reference=folder / "references.txt")
    assert repr(made) == "Segmentation(5 recordings, 468 segments, no times)"


@pytest.mark.data
def test_a_real_stream_of_sentences(data):
    folder = data / "rw_streams"
    made = read_segmentation(reference=folder / "iwslt17.dev2010.prepro.en", source=folder / "norm.iwslt17.dev2010.de")
    assert repr(made) == "Segmentation(1 recording, 888 segments, token)"
    assert made.offset[-1] + made.duration[-1] == 16393
