# SPDX-License-Identifier: Apache-2.0
"""Several logs as one: shards, resumed runs, copies, and lines that disagree."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lagging
from lagging.errors import DataError, UsageError


def segment(name: int | str, **changes: Any) -> dict[str, Any]:
    record = {
        "index": name,
        "prediction": "a b c",
        "delays": [1000.0, 2000.0, 3000.0],
        "elapsed": [1040.0, 2050.0, 3060.0],
        "prediction_length": 3,
        "reference": "a b c d",
        "source": ["a.wav", "x"],
        "source_length": 3000.0,
        **changes,
    }
    return {key: value for key, value in record.items() if value is not ...}


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def to(name: str, *records: dict[str, Any], end: str = "") -> str:
        Path(name).write_text("".join(json.dumps(record) + "\n" for record in records) + end, "utf-8")
        return name

    return to


def told(run: lagging.Run) -> list[str]:
    return [str(note) for note in run.notes]


# ---- shards -----------------------------------------------------------------------------------------------------


def test_shards_in_any_order_are_the_whole(write) -> None:
    rng = random.Random(7)
    all_of = [segment(i, delays=[i, i + 1.0, i + 2.0]) for i in range(40)]
    whole = lagging.read(write("whole.log", *all_of))
    rest = list(all_of)
    rng.shuffle(rest)
    names = [write(f"shard-{k}.log", *rest[k::3]) for k in range(3)]
    for paths in (names, list(reversed(names)), "shard-*.log"):
        merged = lagging.merge(paths)
        assert merged.to_dict() == whole.to_dict()
        assert merged.notes == whole.notes
        assert merged.repaired == ()
    one, other = (lagging.score(run, ["DAL", "DAL_CA", "LAAL"]) for run in (merged, whole))
    assert [str(s.signature) for s in one] == [str(s.signature) for s in other]
    assert [s.value for s in one] == [s.value for s in other]


def test_whole_numbers_are_sorted_and_names_stay_in_order(write) -> None:
    assert lagging.merge([write("a.log", segment(9)), write("b.log", segment(2))]).id.tolist() == [2, 9]
    run = lagging.merge([write("a.log", segment("z"), segment("m")), write("b.log", segment("a"), segment("m"))])
    assert run.id.tolist() == ["z", "m", "a"]


def test_a_number_and_the_same_number_as_text_are_one_name(write) -> None:
    run = lagging.merge([write("a.log", segment(1), segment(2)), write("b.log", segment("1"), segment("x"))])
    assert run.id.tolist() == ["1", "2", "x"]


def test_lines_without_names_are_all_different(write) -> None:
    names = [write(f"{k}.jsonl", segment(0, index=..., prediction_length=...)) for k in "ab"]
    assert lagging.merge(names).id.tolist() == [0, 1]


def test_what_the_merged_run_says_of_itself(write) -> None:
    run = lagging.merge([write("a.log", segment(0)), write("b.log", segment(1)), write("c.log", segment(2))])
    assert run.name == "a"
    assert run.origin.path == "a.log and 2 other logs"
    assert run.line is None
    assert lagging.merge("a.log", name="base").name == "base"


def test_gaps_are_noted(write) -> None:
    run = lagging.merge([write("a.log", segment(0), segment(1)), write("b.log", segment(1), segment(4))])
    assert "index gap: 2 of the indices between 0 and 4 are missing: is the log complete?" in told(run)


def test_compressed_and_plain(write) -> None:
    line = json.dumps(segment(0)) + "\n"
    Path("a.log.gz").write_bytes(gzip.compress(line.encode()))
    assert len(lagging.merge(["a.log.gz", write("b.log", segment(0))])) == 1


@pytest.mark.data
def test_a_real_log_in_shards(data, write) -> None:
    (path,) = (data / "omnisteval/examples/short_form_degenerate_policy_example").rglob("instances.log")
    lines = path.read_bytes().splitlines(keepends=True)
    Path("a.log").write_bytes(b"".join(lines[1000:]) + lines[0][:200])
    Path("b.log").write_bytes(b"".join(reversed(lines[:1500])))
    run, whole = lagging.merge(["a.log", "b.log"], repair=["torn"]), lagging.read(path)
    assert run.to_dict() == whole.to_dict()
    assert any(str(note).startswith("duplicate: 500 segments") for note in run.notes)


# ---- the same again ---------------------------------------------------------------------------------------------


def test_the_same_content_is_kept_once(write) -> None:
    write("a.log", segment(0), segment(1))
    write("b.log", segment(1), segment(2), segment(0))
    run = lagging.merge(["a.log", "b.log"])
    assert run.id.tolist() == [0, 1, 2]
    assert told(run) == ["duplicate: 2 segments (1, 0): the same line again: kept once"]
    assert run.repaired == ()
    assert "repair" not in str(lagging.score(run, ["DAL"])["DAL"].signature)


def test_one_log_given_twice_or_repeating_itself(write) -> None:
    write("a.log", segment(0), segment(1))
    assert lagging.merge(["a.log", "a.log"]).to_dict() == lagging.read("a.log").to_dict()
    write("b.log", segment(0), segment(1), segment(0))
    assert lagging.merge("b.log").id.tolist() == [0, 1]


def test_notes_count_what_is_left(write) -> None:
    empty = {"prediction": "", "delays": [], "elapsed": []}
    run = lagging.merge([write("a.log", segment(0, **empty), segment(1)), write("b.log", segment(0, **empty))])
    assert "empty hypothesis: 1 segment (0): nothing was written, so there is no latency" in told(run)


def test_nan_is_equal_to_itself(write) -> None:
    """Where one column has no number, it has none in both."""
    one = segment(0, erased=..., due=[1, 2], shown=[1, None])
    run = lagging.merge([write("a.log", one, segment(1, erased=2)), write("b.log", one)])
    assert len(run) == 2
    assert np.isnan(run.erased[0])


# ---- conflicts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"delays": [1000.0, 2500.0, 3000.0]}, "delays at token 2: 2000 → 2500"),
        ({"elapsed": [1040.0, 2050.0, 3060.5]}, "elapsed at token 3: 3060 → 3060.5"),
        ({"prediction": "a x c"}, "prediction at word 2: b → x"),
        ({"prediction": "a b  c"}, "prediction: white space"),
        ({"reference": "a b c"}, "reference at word 4: d → nothing"),
        ({"reference": None}, "reference: given → none"),
        ({"source_length": 3100.0}, "source_length: 3000 → 3100"),
        ({"source": ["b.wav", "x"]}, "source at word 1: a.wav → b.wav"),
        (
            {"prediction": "a b", "delays": [1000.0, 2000.0], "elapsed": [1040.0, 2050.0]},
            "delays: 3 → 2 entries; elapsed: 3 → 2 entries; prediction at word 3: c → nothing",
        ),
    ],
)
def test_a_conflict_is_told_with_both_places(changes, said, write) -> None:
    write("a.log", segment(0), segment(7))
    write("b.log", segment(7, **changes), segment(8))
    with pytest.raises(DataError) as error:
        lagging.merge(["a.log", "b.log"])
    assert str(error.value).splitlines() == [
        f"lines of one segment that differ in b.log:1 (segment 7): {said} (first at a.log:2)",
        "  Only one of them can be counted. Elapsed times count as well: two runs of a sentence are two measurements.",
        "  fix: `repair=['first']` or `repair=['last']` decides for all of them, or remove one line of each.",
    ]
    (fault,) = error.value.faults
    assert (fault.kind, fault.path, fault.line, fault.segment) == ("conflict", "b.log", 1, 7)


def test_every_conflict_is_listed(write) -> None:
    write("a.log", *(segment(i) for i in range(9)))
    write("b.log", *(segment(i, prediction="a b x") for i in range(9)))
    with pytest.raises(DataError) as error:
        lagging.merge(["a.log", "b.log"])
    text = str(error.value)
    assert [fault.segment for fault in error.value.faults] == list(range(9))
    for i in range(9):
        assert f"b.log:{i + 1} (segment {i}): prediction at word 3: c → x (first at a.log:{i + 1})" in text


def test_thousands_of_conflicts_are_counted(write) -> None:
    write("a.log", *(segment(i) for i in range(1200)))
    write("b.log", *(segment(i, prediction="a b x") for i in range(1200)))
    with pytest.raises(DataError) as error:
        lagging.merge(["a.log", "b.log"])
    assert error.value.counts == {"conflict": 1200}
    assert str(error.value).splitlines()[-2:] == [
        "  and 200 more",
        "  fix: `repair=['first']` or `repair=['last']` decides for all of them, or remove one line of each.",
    ]


def test_other_columns_that_differ(write) -> None:
    steps = {"arrivals": [1000, 3000], "compute": [5, 6], "steps": [0, 0, 1]}
    write("a.jsonl", segment(0, **steps))
    write("b.jsonl", segment(0, **steps | {"compute": [5, 7], "steps": [0, 1, 1]}))
    with pytest.raises(DataError, match=r": compute at entry 2: 6 → 7; steps at token 2: 0 → 1 \(first at a.jsonl:1\)"):
        lagging.merge(["a.jsonl", "b.jsonl"])


@pytest.mark.parametrize(("keep", "delays"), [("first", 1000), ("last", 1500)])
def test_a_repair_decides(keep, delays, write) -> None:
    write("a.log", segment("x"), segment("y"))
    write("b.log", segment("y"), segment("x", delays=[1500.0, 2000.0, 3000.0]))
    run = lagging.merge(["a.log", "b.log"], repair=[keep])
    assert run.id.tolist() == ["x", "y"]
    assert run.delays[0][0] == delays
    assert run.repaired == ((keep, 1),)
    assert "duplicate: 1 segment (y): the same line again: kept once" in told(run)
    assert lagging.score(run, ["DAL"])["DAL"].signature["repair"] == keep


def test_a_repair_that_decides_nothing_is_not_told(write) -> None:
    write("a.log", segment(0))
    assert lagging.merge(["a.log", "a.log"], repair=["last"]).repaired == ()


def test_three_lines_of_one_segment(write) -> None:
    later = segment(0, prediction="a b x")
    names = [write("a.log", segment(0)), write("b.log", later), write("c.log", segment(0))]
    with pytest.raises(DataError) as error:
        lagging.merge(names)
    assert [fault.path for fault in error.value.faults] == ["b.log"]
    for keep in ("first", "last"):
        assert lagging.merge(names, repair=[keep]).prediction.tolist() == ["a b c"]
    assert lagging.merge([names[1], names[0]], repair=["last"]).prediction.tolist() == ["a b c"]
    assert lagging.merge([*names, write("d.log", later)], repair=["last"]).prediction.tolist() == ["a b x"]


# ---- what logs lack ---------------------------------------------------------------------------------------------


def test_a_column_that_not_every_log_has(write) -> None:
    run = lagging.merge([write("a.log", segment(0)), write("b.log", segment(1, elapsed=...))])
    assert run.elapsed is None
    assert "column left out: elapsed: not every log has it" in told(run)


def test_a_log_in_which_nothing_was_written_lacks_nothing(write) -> None:
    empty = segment(1, prediction="", delays=[], elapsed=[])
    run = lagging.merge([write("a.log", segment(0)), write("b.log", empty)])
    assert run.elapsed.lengths.tolist() == [3, 0]
    assert not any("left out" in note for note in told(run))


def test_logs_that_do_not_belong_together(write) -> None:
    tokens = segment(1, delays=[1, 2, 3], source_length=3, source="x y z", elapsed=[0, 0, 0])
    with pytest.raises(DataError, match=r"token, but ms in a\.log"):
        lagging.merge([write("a.log", segment(0)), write("b.log", tokens)])


def test_faults_are_told_as_ever(write) -> None:
    write("a.log", segment(0), segment(1, delays=[3.0, 2.0, 1.0]))
    write("b.log", segment(0))
    with pytest.raises(DataError, match=r"delays decrease in a\.log:2"):
        lagging.merge(["a.log", "b.log"])
    assert lagging.merge(["a.log", "b.log"], repair=["monotone"]).repaired == (("monotone", 1),)
    with pytest.raises(UsageError, match="no repair is called 'frist'"):
        lagging.merge("b.log", repair=["frist"])
    with pytest.raises(UsageError, match="no such file"):
        lagging.merge(["b.log", "nowhere"])


def test_stripping_after_merging(write) -> None:
    text = {"prediction": "a , c"}
    run = lagging.merge([write("a.log", segment(0, **text)), write("b.log", segment(0, **text))], strip=["punctuation"])
    assert run.prediction.tolist() == ["a c"]
    assert run.stripped == (("punctuation", 1),)


def test_reading_several_as_one_system_is_a_fault_as_before(write) -> None:
    write("a.log", segment(0))
    write("b.log", segment(0))
    with pytest.raises(DataError, match=r"the index was used in another file in b\.log:1"):
        lagging.read(["a.log", "b.log"])


# ---- a line that breaks off -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", ['{"index": 1, "prediction": "a b', "{", '{"index": 1, "delays": [1000.0, 20'])
def test_a_torn_line_is_left_out_if_asked(cut, write) -> None:
    write("a.log", segment(0), end=cut)
    write("b.log", segment(1), segment(2))
    with pytest.raises(DataError, match=r"the last line breaks off in a.log:2[\s\S]*`repair=\['torn'\]` leaves it out"):
        lagging.merge(["a.log", "b.log"])
    run = lagging.merge(["a.log", "b.log"], repair=["torn"])
    assert run.id.tolist() == [0, 1, 2]
    assert run.repaired == (("torn", 1),)
    assert told(run) == ["torn: the last line breaks off, and is left out: a.log:2"]
    scores = lagging.score(lagging.scan(["a.log", "b.log"], repair=["torn"]), ["DAL"])
    assert scores["DAL"].signature["repair"] == "torn"
    assert "repaired: 1 segment: by --repair torn" in [str(note) for note in scores.notes]


def test_a_line_torn_within_a_letter(write) -> None:
    whole = json.dumps(segment(1, prediction="ä ö ü"), ensure_ascii=False).encode()
    place = whole.index("ö".encode()) + 1
    Path("a.log").write_bytes(json.dumps(segment(0)).encode() + b"\n" + whole[:place])
    with pytest.raises(DataError, match=f"the last line breaks off in a.log:2: within a letter, at byte {place}"):
        lagging.read("a.log")
    assert lagging.read("a.log", repair=["torn"]).id.tolist() == [0]


def test_a_log_that_is_one_torn_line(write) -> None:
    write("a.log", end='{"index": 0, "prediction": "a')
    with pytest.raises(DataError, match=r"the log holds no segments in a\.log"):
        lagging.read("a.log", repair=["torn"])
    write("b.log", segment(0))
    assert lagging.merge(["a.log", "b.log"], repair=["torn"]).repaired == (("torn", 1),)


def test_a_torn_line_after_the_last_part(write, monkeypatch) -> None:
    """The line may be read when the last segments have been given away already."""
    from lagging.formats import segment_rows, source

    monkeypatch.setattr(segment_rows, "SAMPLE", 1)
    monkeypatch.setattr(segment_rows, "SEGMENTS_PER_PART", 1)
    monkeypatch.setattr(source, "BATCH_BYTES", 10)
    write("a.log", segment(0), segment(1), end='{"index": 2')
    parts = list(lagging.scan("a.log", repair=["torn"]))
    assert len(parts) == 2
    assert [part.repaired for part in parts] == [(), (("torn", 1),)]


def test_only_a_last_line_can_be_torn(write) -> None:
    write("a.log", segment(0), end='{"index": 1, "pred\n')
    with pytest.raises(DataError, match=r"not valid JSON in a\.log:2"):
        lagging.read("a.log", repair=["torn"])
