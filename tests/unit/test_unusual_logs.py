# SPDX-License-Identifier: Apache-2.0
"""Logs of real tools that are no line per segment, or lack what others have: each is a small file made for it."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest

import lagging
from lagging.errors import DataError, UsageError
from lagging.formats import ReadOptions, write
from lagging.longform.cutting import Cutting
from lagging.scoring.log import Log
from lagging.scoring.plan import Plan

ROWS = [
    {"index": 0, "prediction": "a b", "delays": [1.0, 2.0], "source_length": 3, "reference": "a b"},
    {"index": 1, "prediction": "c", "delays": [2.0], "source_length": 2, "reference": "c"},
]
S2S = [
    {
        "index": 0,
        "doc_id": "t.wav",
        "seg_id": 1,
        "source": "",
        "reference": "guten Tag Welt",
        "source_length": 3000.0,
        "delays": [1000.0, 2000.0, 3500.0],
        "elapsed": [1100.0, 2100.0, 3600.0],
        "recording_end": 6000.0,
        "prediction": "Guten Tag , Welt",
        "raw_units": ["Guten", "Tag", "Welt"],
    },
    {"index": 1, "doc_id": "t.wav", "seg_id": 2, "reference": "ja gut", "source_length": None, "prediction": ""},
    {
        "index": 2,
        "doc_id": "t.wav",
        "seg_id": 3,
        "source": "",
        "reference": "ja gut so",
        "source_length": 3000.0,
        "delays": [-100.0, 2000.0],
        "elapsed": [0.0, 2500.0],
        "recording_end": 3000.0,
        "prediction": "ja gut",
        "raw_units": ["ja", "gut"],
    },
]


def kinds(run):
    return {note.kind: note.count for note in run.notes}


# ---- JSON values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ROWS),
        json.dumps(ROWS, indent=2),
        "\n\n" + json.dumps(ROWS, indent=1) + "\n",
        "\n".join(json.dumps(row, indent=2) for row in ROWS),
        json.dumps(ROWS).replace('"delays"', '\n"delays"'),
        "\ufeff" + json.dumps(ROWS, indent=2),
    ],
)
@pytest.mark.parametrize("form", [None, "simuleval"])
def test_json_values_are_read_like_lines(text, form, tmp_path):
    lines, value = tmp_path / "lines.jsonl", tmp_path / "value.json"
    lines.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    value.write_text(text, encoding="utf-8")
    one, other = lagging.read(lines), lagging.read(value, format=form)
    assert one.delays == other.delays
    assert one.id.tolist() == other.id.tolist()
    assert one.prediction.tolist() == other.prediction.tolist()


def test_ids_count_objects_not_lines(tmp_path):
    file = tmp_path / "a.json"
    file.write_text(json.dumps([{"delays": [1], "source_length": 2}, {"delays": [2], "source_length": 2}], indent=2))
    assert lagging.read(file).id.tolist() == [0, 1]


def test_faults_name_the_line_on_which_an_object_begins(tmp_path):
    file = tmp_path / "a.json"
    rows = [ROWS[0], {**ROWS[1], "delays": ["x"]}, 7]
    file.write_text(json.dumps(rows, indent=2))
    lines = file.read_text().splitlines()
    with pytest.raises(DataError) as error:
        lagging.read(file)
    found = [(fault.kind, fault.line) for fault in error.value.faults]
    begin = [number for number, line in enumerate(lines, 1) if line.startswith("  {")]
    assert found == [("bad-delay", begin[1]), ("not-an-object", len(lines) - 1)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (json.dumps(ROWS, indent=2)[:-20], "broken-off"),
        (json.dumps(ROWS, indent=2).replace("]", ")", 1), "not-json"),
        ("[1, 2]", "json-array"),
        ("[]", "empty-log"),
    ],
)
def test_broken_json_values_are_refused(text, kind, tmp_path):
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(DataError) as error:
        lagging.read(file)
    assert error.value.faults[0].kind == kind
    assert "fix:" in str(error.value)


def test_a_first_line_that_breaks_off_is_still_a_fault_of_that_line(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"index": 0, "delays": [1],\n' + json.dumps(ROWS[1]) + "\n")
    with pytest.raises(DataError) as error:
        lagging.read(file)
    assert [(fault.kind, fault.line) for fault in error.value.faults] == [("not-json", 1)]


# ---- output speech, long form ---------------------------------------------------------------------------------------


@pytest.fixture
def s2s(tmp_path):
    file = tmp_path / "instances.resegmented.json"
    file.write_text(json.dumps(S2S, indent=2))
    return file


def test_segments_of_output_speech(s2s):
    run = lagging.read(s2s.parent)
    assert (run.origin.format, run.unit, run.seg, run.level) == ("s2s", "ms", "given", "token")
    assert run.delays.tolist() == [[1000, 2000, 3500], [], [-100, 2000]]
    assert run.document.tolist() == ["t.wav"] * 3
    assert run.reference_length.tolist() == [3, 2, 3]
    assert kinds(run)["NOT ALIGNED"] == 1
    scores = lagging.score(run, ["LongYAAL", "BLEU"], convention="s2s-latency")
    first = Fraction(1000 + (2000 - 1000) + (3500 - 2000), 3)
    second = Fraction(-100 + (2000 - 1500), 2)
    assert scores["LongYAAL"].value == pytest.approx(float((first + second) / 2))
    assert scores["LongYAAL"].signature.get("length") == "hypothesis"
    assert scores["LongYAAL"].undefined.counts == {"empty hypothesis": 1}
    assert scores["BLEU"].n == 3
    longest = Fraction(-100 + (2000 - 1000), 2)
    omnisteval = lagging.score(run, ["LongYAAL"], convention="omnisteval")["LongYAAL"].value
    assert omnisteval == pytest.approx(float((first + longest) / 2))


def test_units_that_are_the_words_of_the_text_are_words(tmp_path):
    rows = [{**row, "prediction": " ".join(row.get("raw_units", []))} for row in S2S]
    file = tmp_path / "a.json"
    file.write_text(json.dumps(rows))
    assert lagging.read(file).level == "word"


def test_a_length_of_the_reference_counts_before_that_in_units(tmp_path):
    rows = [{**S2S[0], "reference": "a b c", "reference_length": 7}, {**S2S[2], "reference": "a b"}]
    file = tmp_path / "a.json"
    file.write_text(json.dumps(rows))
    run = lagging.read(file)
    assert (run.level, run.reference_length.tolist()) == ("token", [7, 2])


def test_as_many_units_as_delays(tmp_path):
    rows = [{**S2S[0], "raw_units": ["Guten", "Tag"]}]
    file = tmp_path / "a.json"
    file.write_text(json.dumps(rows))
    with pytest.raises(DataError, match="3 delays, 2 tokens"):
        lagging.read(file, format="s2s")


def test_an_unaligned_segment_with_text_is_a_fault(tmp_path):
    file = tmp_path / "a.json"
    file.write_text(json.dumps([S2S[0], {**S2S[1], "prediction": "ja"}]))
    with pytest.raises(DataError) as error:
        lagging.read(file)
    assert {fault.kind for fault in error.value.faults} == {"missing-delays", "missing-source-length"}


def test_end_offset_of_recordings(tmp_path):
    more = [{**row, "doc_id": "u.wav", "index": 3 + row["index"]} for row in S2S if row.get("delays")]
    more[1] = {**more[1], "delays": [100.0, 3700.0], "elapsed": [100.0, 3900.0]}
    file = tmp_path / "a.json"
    file.write_text(json.dumps([*S2S, *more]))
    run = lagging.read(file)
    after: dict[str, Fraction] = {}
    for row in [*S2S, *more]:
        if row.get("delays"):
            value = Fraction(row["delays"][-1]) - Fraction(row["recording_end"])
            after[row["doc_id"]] = max(after.get(row["doc_id"], value), value)
    assert after == {"t.wav": -1000, "u.wav": 700}
    score = lagging.score(run, ["StreamEndOffset"])["StreamEndOffset"]
    assert score.value == float(sum(after.values()) / len(after))
    assert [v for v in score.segments if not math.isnan(v)] == [-1000, -1000, 700, 700]


@pytest.mark.parametrize("units", ["ab", ["Guten", 7, "Welt"], {"a": 1}, 0])
def test_units_that_are_no_list_of_texts(tmp_path, units):
    file = tmp_path / "a.json"
    file.write_text(json.dumps([S2S[0], {**S2S[2], "raw_units": units}]))
    assert "bad-value" in [fault.kind for fault in lagging.validate(file).faults]
    with pytest.raises(DataError, match=r"raw_units: .*, which is no list of texts"):
        lagging.read(file)


def test_segments_that_nothing_was_aligned_with_are_written_as_such(s2s, tmp_path):
    write(lagging.read(s2s), tmp_path / "b.json", format="s2s")
    assert [row["source_length"] for row in json.loads((tmp_path / "b.json").read_text())][1] is None
    assert kinds(lagging.read(tmp_path / "b.json", level="token"))["NOT ALIGNED"] == 1


def test_default_metrics_of_segments_of_output_speech(s2s):
    run = lagging.read(s2s)
    assert list(lagging.score(run).keys()) == ["LongYAAL", "DAL", "EndOffset", "BLEU"]
    assert lagging.score(run, convention="s2s-latency")["LongYAAL"].signature["length"] == "hypothesis"


def test_s2s_is_written_and_read_back(s2s, tmp_path):
    run = lagging.read(s2s)
    run = run[[0, 2]]
    write(run, tmp_path / "b.json", format="s2s")
    again = lagging.read(tmp_path / "b.json", level="token")
    assert again.delays == run.delays
    assert again.recording_end.tolist() == run.recording_end.tolist()


# ---- trajectories ---------------------------------------------------------------------------------------------------


def trajectory(tmp_path, *rows):
    file = tmp_path / "t.jsonl"
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return file


def test_trajectories(tmp_path):
    rows = (
        {"src_trajectory": ["", "And these", "people"], "target_trajectory": ["", "Und diese", "Leute"]},
        {"src_trajectory": ["Good", "morning", ""], "target_trajectory": ["", "Guten Morgen", "!"]},
    )
    run = lagging.read(trajectory(tmp_path, *rows))
    assert (run.unit, run.level) == ("token", "word")
    assert run.delays.tolist() == [[2, 2, 3], [2, 2, 2]]
    assert run.source_length.tolist() == [3, 2]
    assert run.prediction.tolist() == ["Und diese Leute", "Guten Morgen !"]
    write(run, tmp_path / "again.trajectory.jsonl")
    assert lagging.read(tmp_path / "again.trajectory.jsonl").delays == run.delays


def test_trajectories_without_spaces(tmp_path):
    row = {"src_trajectory": ["And these", " people"], "target_trajectory": ["而这些", "人"], "reference": "而这些人"}
    run = lagging.read(trajectory(tmp_path, row))
    assert (run.level, run.delays.tolist()) == ("char", [[2, 2, 2, 3]])
    assert run.reference.tolist() == ["而这些人"]


@pytest.mark.parametrize(
    ("row", "detail"),
    [
        ({"src_trajectory": ["a"], "target_trajectory": ["b", "c"]}, "1 chunks of source, 2 of target"),
        ({"src_trajectory": "a", "target_trajectory": ["b"]}, 'src_trajectory: "a"'),
        ({"src_trajectory": ["a"], "target_trajectory": [1]}, "target_trajectory: [1]"),
        ({"src_trajectory": ["a"]}, "target_trajectory: null"),
    ],
)
def test_bad_trajectories(row, detail, tmp_path):
    good = {"src_trajectory": ["a"], "target_trajectory": ["b"]}
    with pytest.raises(DataError) as error:
        lagging.read(trajectory(tmp_path, good, row))
    (fault,) = error.value.faults
    assert (fault.kind, fault.line, fault.detail) == ("bad-trajectory", 2, detail)


# ---- what a log lacks -----------------------------------------------------------------------------------------------


def test_the_end_of_the_last_segment_is_the_source_length(tmp_path):
    row = {"source": ["talk.wav"], "prediction": "a b c d", "delays": [900.0, 1900.0, 2500.0, 3000.0], "index": 0}
    log, whole = tmp_path / "a.log", tmp_path / "b.log"
    log.write_text(json.dumps(row) + "\n")
    whole.write_text(json.dumps({**row, "source_length": 4000.0}) + "\n")
    (tmp_path / "s.yaml").write_text(
        "- {wav: talk.wav, offset: 0, duration: 2.0}\n- {wav: talk.wav, offset: 2.0, duration: 2.0}\n"
    )
    (tmp_path / "r.txt").write_text("a b\nc d\n")
    cutting = Cutting(segmentation=str(tmp_path / "s.yaml"), reference=str(tmp_path / "r.txt"))
    run = Log(log, ReadOptions(), cutting=cutting).read()
    assert kinds(run)["source length"] == 1
    assert run.delays == Log(whole, ReadOptions(), cutting=cutting).read().delays
    with pytest.raises(DataError, match="no `source_length`"):
        lagging.read(log)


def test_an_empty_text_beside_one_delay_is_scored_by_convention(tmp_path):
    empty = {"index": 2, "prediction": "", "delays": [3.0], "source_length": 3, "reference": "x"}
    log = tmp_path / "instances.log"
    log.write_text("".join(json.dumps(row) + "\n" for row in (*ROWS, empty)))
    run = lagging.read(log)
    assert run.lone.tolist() == [False, False, True]
    paper = lagging.score(run, ["DAL"])
    theirs = lagging.score(run, ["DAL"], convention="simuleval")
    assert paper["DAL"].undefined.counts == {"empty hypothesis": 1}
    assert paper["DAL"].signature.get("eos") == "stripped"
    assert theirs["DAL"].segments[2] == 3
    assert theirs["DAL"].signature.get("eos") == "kept"
    for scores in (paper, theirs):
        (note,) = (note for note in scores.notes if note.kind == "EMPTY TEXT WITH A DELAY")
        assert note.count == 1
    stripped = lagging.read(log, strip="eos")
    assert stripped.delays.lengths.tolist() == [*run.delays.lengths.tolist()[:2], 0]
    assert stripped.stripped == (("eos", 1),)
    assert lagging.score(stripped, ["DAL"])["DAL"].value == paper["DAL"].value
    rows = [{"delays": [900], "prediction": "a"}, {"delays": [1800], "prediction": ""}]
    log.write_text("".join(json.dumps({"source_length": 1800, "unit": "ms", **row}) + "\n" for row in rows))
    timed = lagging.read(log)
    with pytest.raises(DataError, match="1 delay, 0 words, that of the end of an empty text: `strip="):
        lagging.write(timed, tmp_path / "a.stream.jsonl")
    lagging.write(lagging.strip(timed, "eos"), tmp_path / "a.stream.jsonl")
    assert lagging.read(tmp_path / "a.stream.jsonl").delays.tolist() == [[900], []]
    log.write_text(json.dumps({**empty, "delays": [2.0, 3.0]}) + "\n" + json.dumps(ROWS[0]) + "\n")
    with pytest.raises(DataError, match="2 delays, 0 words"):
        lagging.read(log)


def test_transcripts_of_output_speech_give_quality_alone(tmp_path):
    rows = [
        {
            "index": k,
            "prediction": f"wavs/{k}.wav",
            "delays": [1000.0, 2000.0],
            "durations": [300.0, 200.0],
            "elapsed": [1001.0, 2001.0],
            "source_length": 3000.5,
            "reference": "a b c d",
        }
        for k in range(2)
    ]
    log, heard = tmp_path / "instances.log", tmp_path / "heard.txt"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    heard.write_text("a b c d\na b c d\n")
    names = ["LAAL", "EndOffset", "DiscontinuitySum"]
    plain = Log(log, ReadOptions()).score(Plan.make(names))[0].scores()
    both = (
        Log(log, ReadOptions(), cutting=Cutting(hypothesis=str(heard))).score(Plan.make([*names, "BLEU"]))[0].scores()
    )
    assert [both[name].value for name in names] == [plain[name].value for name in names]
    assert both["BLEU"].value == pytest.approx(100)
    assert "TRANSCRIPTS" in {note.kind for note in both.notes}


# ---- folders --------------------------------------------------------------------------------------------------------

SIMULSTREAM = (
    '{"id": 0, "metadata": {"wav_name": "a.wav"}}\n'
    '{"id": 0, "total_audio_processed": 1.0, "computation_time": 0.1, '
    '"generated_tokens": ["▁a"], "deleted_tokens": []}\n'
)


def test_a_folder_of_nemo(tmp_path):
    folder = tmp_path / "nemo"
    folder.mkdir()
    (folder / "simulstream_output.json").write_text(SIMULSTREAM, encoding="utf-8")
    (folder / "references.txt").write_text("a\n")
    (folder / "audio_definitions.yaml").write_text("- {wav: a.wav, offset: 0, duration: 1}\n")
    run = lagging.read(folder)
    assert (run.name, run.origin.format) == ("nemo", "simulstream")


def test_any_known_log_of_a_folder_is_found(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.json").write_text('{"beam": 5}\n')
    (folder / "comet.json").write_text('{"score": 0.8}\n')
    (folder / "output.txt").write_text("RRWRW\n")
    assert lagging.read(folder).origin.format == "rw"
    (folder / "other.json").write_text(json.dumps(ROWS))
    with pytest.raises(UsageError, match=r"several logs \(other.json, output.txt\)"):
        lagging.read(folder)


def test_a_folder_without_a_log(tmp_path):
    (tmp_path / "readme.md").write_text("nothing\n")
    with pytest.raises(UsageError, match=r"holds no instances\.log, and nothing else"):
        lagging.read(tmp_path)


def test_a_trajectory_holds_whole_tokens_of_its_source_alone(tmp_path):
    columns = {"source_length": [2], "prediction": ["x"], "source": ["a b"], "seg": "given"}
    for delays in ([[-1.0]], [[1.5]], [[3.0]]):
        run = lagging.Run.from_delays(delays, **columns)
        with pytest.raises(DataError, match="not a whole number of source tokens"):
            write(run, tmp_path / "a.trajectory.jsonl")
