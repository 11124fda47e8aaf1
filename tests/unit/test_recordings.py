# SPDX-License-Identifier: Apache-2.0
"""Rows of a log as whole recordings, and as those of a segmentation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lagging
from lagging.data.run import Run
from lagging.errors import DataError, Note, UsageError
from lagging.longform.recordings import check_units, match, recording_names, streams
from lagging.longform.segmentation import Segmentation, read_segmentation


def rows(*delays: list[float], **columns: Any) -> Run:
    columns = {"source_length": [10_000.0] * len(delays), "unit": "ms", **columns}
    return Run.from_delays(delays, **columns)


def cut(*names: str) -> Segmentation:
    return Segmentation.from_lists(names, [1000.0 * i for i in range(len(names))], [1000.0] * len(names))


def told(error: pytest.ExceptionInfo[DataError]) -> list[tuple[str, Any, str]]:
    return [(fault.kind, fault.segment, fault.detail) for fault in error.value.faults]


# ---- names ----------------------------------------------------------------------------------------------------------


def test_a_row_is_named_by_document_sound_or_id():
    run = rows([1], [1], [1], document=["x", None, None], source=["s.wav", "talks/T.WAV", "a sentence"])
    assert recording_names(run) == ["x", "talks/T.WAV", "2"]
    assert recording_names(rows([1], [1], id=["u", "v"])) == ["u", "v"]


# ---- rows put together ----------------------------------------------------------------------------------------------


def test_whole_recordings_pass_through():
    for columns in ({}, {"document": ["a", "b"]}, {"document": ["a", "b"], "offset": [0, np.nan]}):
        run = rows([1], [2], **columns)
        assert streams(run) is run


def test_one_row_with_an_offset_is_moved():
    run = rows([1], [2], document=["a", "b"], offset=[0, 500])
    assert streams(run).delays.tolist() == [[1.0], [502.0]]
    assert streams(run).offset is None


def test_several_rows_without_offsets_are_refused():
    run = rows([1], [2], [3], document=["a", "b", "a"])
    with pytest.raises(DataError) as error:
        streams(replace(run, line=np.array([1, 2, 4])))
    assert told(error) == [("recording-twice", 0, '"a", also line 4'), ("recording-twice", 2, '"a", also line 1')]
    with pytest.raises(DataError) as error:
        streams(replace(run, offset=np.array([0, np.nan, np.nan])))
    assert told(error) == [("recording-twice", 2, '"a", also segment 0')]


def test_every_column_is_joined():
    run = rows(
        [100, 200],
        [50],
        [300],
        source_length=[1000, 900, 500],
        id=["u", "v", "w"],
        document=["a", "b", "a"],
        offset=[2000, 0, 0],
        prediction=["x y", "z", "w"],
        reference=["X Y", "Z", None],
        source=["2.wav", "b.wav", "1.wav"],
        elapsed=[[110, 220], [60], [330]],
        durations=[[1, 2], [3], [4]],
        arrivals=[[100, 200], [50], [150, 300]],
        compute=[[1, 2], [3], [4, 5]],
        steps=[[0, 1], [0], [1]],
        reference_length=[2, 1, 3],
        erased=[1, 2, 4],
        gone=[1, np.nan, np.nan],
        revisions=[1, 1, 1],
        recording_end=[1500, np.nan, np.nan],
        due=[[7, 8], [9], []],
        due_partial=[[7, 8], [9], []],
        shown=[[8, np.nan], [10], []],
        seg="given",
        level="token",
    )
    whole = streams(replace(run, line=np.array([3, 4, 5]), name="base"))
    joined = whole.to_dict()
    assert joined == {
        "id": ["a", "b"],
        "document": ["a", "b"],
        "delays": [[300, 2100, 2200], [50]],
        "source_length": [3500, 900],
        "prediction": ["w x y", "z"],
        "reference": ["X Y", "Z"],
        "elapsed": [[330, 2110, 2220], [60]],
        "durations": [[4, 1, 2], [3]],
        "arrivals": [[150, 300, 2100, 2200], [50]],
        "compute": [[4, 5, 1, 2], [3]],
        "steps": [[1, 2, 3], [0]],
        "reference_length": [5, 1],
        "erased": [5, 2],
        "gone": [None, None],
        "revisions": [2, 1],
        "due": [[7, 8], [9]],
        "due_partial": [[7, 8], [9]],
        "shown": [[8, None], [10]],
    }
    assert (whole.line.tolist(), whole.seg, whole.name, whole.level) == ([3, 4], "none", "base", "token")


def test_source_sentences_are_joined_and_characters_have_no_space_between():
    run = rows([1, 1], [2], prediction=["你好", "吗"], source=["good", "day"], document=["a", "a"], offset=[0, 5])
    whole = streams(run)
    assert (whole.level, whole.prediction.tolist(), whole.source.tolist()) == ("char", ["你好吗"], ["good day"])
    with pytest.raises(UsageError, match=r"strip=\['eos'\]"):
        streams(rows([1, 1], [2], prediction=["你</s>", "吗"], document=["a", "a"], offset=[0, 5], level="char"))


def test_empty_rows_leave_no_spaces():
    run = rows([1], [], [2], [], prediction=["a", "", "b", ""], document=[*"aaab"], offset=[0, 5, 9, 0])
    assert streams(run).prediction.tolist() == ["a b", ""]
    assert streams(run).delays.tolist() == [[1.0, 11.0], []]


def test_rows_that_overlap_are_raised_with_a_note():
    run = rows([100, 5000], [10, 20, 3000], [5], document=[*"aab"], offset=[0, 3000, 0])
    whole = streams(run)
    assert whole.delays.tolist() == [[100, 5000, 5000, 5000, 6000], [5]]
    (note,) = (note for note in whole.notes if note.kind == "rows overlap")
    assert (note.count, note.segments, note.noun) == (2, ("a",), "token")


def test_elapsed_of_single_steps_may_fall():
    more = {"compute": [[50], [1]], "arrivals": [[5], [5]], "steps": [[0], [0]]}
    run = rows([5], [5], elapsed=[[55], [6]], document=["a", "a"], offset=[0, 10], **more)
    assert streams(run).elapsed.tolist() == [[55.0, 16.0]]
    assert streams(replace(run, compute=None)).elapsed.tolist() == [[55.0, 55.0]]


def test_what_cannot_be_joined_is_left_out_with_a_note():
    run = rows([1], [1], elapsed=[[9], [9]], steps=[[0], [0]], unit="token", document=["a", "a"], offset=[0, 10])
    whole = streams(run)
    assert (whole.elapsed, whole.steps) == (None, None)
    assert sorted(n.text.split(":")[0] for n in whole.notes if n.kind == "column left out") == ["elapsed", "steps"]


def test_written_before_the_recording_began_is_a_fault():
    with pytest.raises(DataError) as error:
        streams(rows([-50], [1], document=["a", "a"], offset=[10, 500], seg="given"))
    assert told(error) == [("negative-delay", "a", "-40 ms")]


def test_notes_are_kept():
    run = rows([1], [], document=["a", "a"], offset=[0, 10])
    assert [note.kind for note in run.notes] == ["suspicious unit", "empty hypothesis"][::-1]
    whole = streams(replace(run, notes=(*run.notes, Note("time unit", "taken for ms"))))
    assert [note.kind for note in whole.notes] == ["time unit", "suspicious unit"]


@st.composite
def recordings(draw) -> tuple[list[list[float]], list[list[float]]]:
    """Delays of whole recordings, and where each of them is cut."""
    count = draw(st.integers(1, 4))
    whole = [sorted(draw(st.lists(st.integers(0, 10**7), max_size=8))) for _ in range(count)]
    cuts = [sorted(draw(st.sets(st.integers(1, 10**7), max_size=4)) | {0}) for _ in range(count)]
    return [[d / 1000 for d in row] for row in whole], [[c / 1000 for c in row] for row in cuts]


@given(recordings(), st.randoms(use_true_random=False))
def test_joining_undoes_cutting(made, random):
    whole, cuts = made
    pieces = []
    for name, (delays, begins) in enumerate(zip(whole, cuts, strict=True)):
        for begin, end in zip(begins, [*begins[1:], np.inf], strict=True):
            some = [d for d in delays if begin <= d < end]
            text = " ".join(f"{name}.{d}" for d in some)
            pieces.append((f"{name}.wav", begin, [d - begin for d in some], text, min(end, 20_000) - begin))
    random.shuffle(pieces)
    document, offset, delays, prediction, length = zip(*pieces, strict=True)
    elapsed = [[d + 1 for d in row] for row in delays]
    run = rows(
        *delays,
        source_length=length,
        document=document,
        offset=offset,
        prediction=prediction,
        elapsed=elapsed,
        level="word",
    )
    joined = streams(run)
    assert sorted(joined.document) == [f"{name}.wav" for name in range(len(whole))]
    for row, name in enumerate(joined.document.tolist()):
        expected = whole[int(name.split(".")[0])]
        assert joined.delays[row].tolist() == expected  # to the last bit: times are kept to the nanosecond
        assert joined.elapsed[row].tolist() == pytest.approx([d + 1 for d in expected], abs=1e-6)
        assert joined.prediction[row].split() == [f"{name.split('.')[0]}.{d}" for d in expected]
        assert joined.source_length[row] == 20_000
    assert "rows overlap" not in {note.kind for note in joined.notes}


# ---- recordings and their segments ----------------------------------------------------------------------------------


def paired(run: Run, segmentation: Segmentation, **options: Any) -> tuple[list[tuple[str, int, list[int]]], list[str]]:
    notes: list[Note] = []
    found = match(run, segmentation, notes=notes, **options)
    return [(name, row, segments.tolist()) for name, row, segments in found], [note.kind for note in notes]


@pytest.mark.parametrize(
    ("names", "log"),
    [
        (["a.wav", "b.wav"], ["b.wav", "a.wav"]),
        (["a.wav", "b.wav"], ["/x/b.wav", "/y/a.wav"]),
        (["d/a.wav", "d\\b.wav"], ["b", "a"]),
        (["a", "b"], ["b.flac", "x/a.WAV"]),
        (["1/a.wav", "2/a.wav"], ["2/a.wav", "1/a.wav"]),
        (["2022.acl-long.2", "2022.acl-long.1"], ["2022.acl-long.1.wav", "2022.acl-long.2"]),
    ],
)
def test_names_are_compared_by_ever_less_of_them(names, log):
    expected = [(names[0], 1, [0]), (names[1], 0, [1])]
    assert paired(rows([1], [1], document=log), cut(*names)) == (expected, [])
    sound = [name if name.lower().endswith((".wav", ".flac")) else f"{name}.wav" for name in log]
    assert paired(rows([1], [1], source=sound), cut(*names)) == (expected, [])
    assert paired(rows([1], [1], id=log), cut(*names)) == (expected, [])


def test_a_name_that_two_recordings_share_is_not_taken_for_either():
    with pytest.raises(DataError) as error:
        match(rows([1], [1], document=["a.wav", "3/a.wav"]), cut("1/a.wav", "2/a.wav"))
    assert error.value.counts == {"recording-missing": 2, "recording-extra": 2}


def test_an_ending_that_is_no_sound_is_part_of_the_name():
    with pytest.raises(DataError):
        match(rows([1], [1], document=["talk.1", "talk.2"]), cut("talk", "talk.2"))


def test_one_recording_on_both_sides_is_the_same():
    assert paired(rows([1]), cut("a.wav", "a.wav")) == ([("a.wav", 0, [0, 1])], [])
    assert paired(rows([1], document=["b.wav"]), cut("a.wav")) == ([("a.wav", 0, [0])], ["names differ"])
    assert paired(rows([1], document=["b.wav"]), cut("dev.de")) == ([("dev.de", 0, [0])], [])


def test_ids_count_where_names_have_nothing_in_common():
    run = rows([1], [1], [1], id=[2, 0, 1], source=["a.wav", "b.wav", "c.wav"])
    assert paired(run, cut("0", "1", "2")) == ([("0", 1, [0]), ("1", 2, [1]), ("2", 0, [2])], ["matched by id"])


def test_order_counts_at_last_and_loudly():
    expected = [("a.wav", 0, [0]), ("b.wav", 1, [1])]
    assert paired(rows([1], [1]), cut("a.wav", "b.wav")) == (expected, ["RECORDINGS MATCHED BY ORDER"])
    found, notes = paired(rows([1], [1], document=["x", "y"]), cut("7", "8"))
    assert ([row for _, row, _ in found], notes) == ([0, 1], ["RECORDINGS MATCHED BY ORDER"])
    for run in (rows([1], [1], [1]), rows([1], [1], document=["x", "y"]), rows([1], [1], id=["x", "y"])):
        with pytest.raises(DataError):
            match(run, cut("a.wav", "b.wav"))


def test_missing_extra_and_double_recordings_at_once():
    run = rows([1], [1], [1], [1], document=["a.wav", "x/a.flac", "c.wav", "y/c.wav"], id=[*"pqrs"])
    with pytest.raises(DataError) as error:
        match(run, cut("a.wav", "b.wav", "b.wav", "c"))
    assert told(error) == [
        ("recording-twice", "s", '"c", also segment r'),
        ("recording-missing", 1, '"b.wav", 2 segments; the log has "a.wav", "x/a.flac", "c.wav", …'),
        ("recording-extra", "q", '"x/a.flac"'),
    ]


def test_a_subset_leaves_recordings_aside_with_a_note():
    run = rows([1], [1], document=["b.wav", "a.wav"])
    assert paired(run, cut("a.wav"), subset=True) == ([("a.wav", 1, [0])], ["RECORDINGS LEFT ASIDE"])
    with pytest.raises(DataError, match="the log does not have"):
        match(run, cut("a.wav", "c.wav"), subset=True)


# ---- units ----------------------------------------------------------------------------------------------------------


def units(run: Run, segmentation: Segmentation) -> list[tuple[str, int, tuple[Any, ...]]]:
    return [(n.kind, n.count, n.segments) for n in check_units(run, segmentation, match(run, segmentation))]


def test_units_must_be_the_same():
    tokens = Segmentation.from_lists(["a"], [0], [10], unit="token")
    with pytest.raises(DataError) as error:
        units(rows([1]), tokens)
    assert told(error) == [("segmentation-unit", None, "source words in the segmentation, milliseconds in the log")]
    with pytest.raises(DataError, match="milliseconds in the segmentation, source words in the log"):
        units(rows([1], unit="token"), cut("a"))
    assert units(rows([1], unit="token", source_length=[10]), tokens) == []
    assert units(rows([1]), Segmentation.from_lists(["a"])) == []


@pytest.mark.parametrize(("factor", "wrong"), [(1, False), (19, False), (21, True), (1000, True), (1 / 25, True)])
def test_offsets_in_another_unit(factor, wrong):
    run = rows([500, 9800], [100], document=["a", "b"])
    made = Segmentation.from_lists(["a", "a", "b"], [0, 5000 * factor, 0], [100, 5000 * factor, 10_000])
    if not wrong:
        units(run, made)
        return
    with pytest.raises(DataError) as error:
        units(run, made)
    end = lagging.data.checks.number(10_000 * factor)
    assert told(error) == [("segmentation-unit", 1, f'"a" ends at {end} ms, but at 10000 ms in the log')]


def test_a_reference_for_the_beginning_of_a_silent_recording_is_no_other_unit():
    assert units(rows([90], source_length=[1_000_000]), Segmentation.from_lists(["a"], [0], [100])) == []


def test_the_length_of_a_recording_that_the_log_does_not_tell_is_that_of_what_was_written():
    run = rows([9000], source_length=[0])
    assert units(run, Segmentation.from_lists(["a"], [0], [10_000])) == []
    assert units(rows([], source_length=[0]), Segmentation.from_lists(["a"], [0], [10_000])) == []


def test_segments_beyond_the_end_are_noted():
    made = Segmentation.from_lists(["a", "b", "a"], [15_001, 15_000, 0], [10, 10, 10])
    found = units(rows([1], [1], document=["a", "b"]), made)
    assert found == [
        ("beyond the recording", 1, (0,)),
        ("beyond the recording", 1, (1,)),
    ]  # begins, and ends, beyond it


# ---- real logs ------------------------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize(
    ("folder", "log", "segmentation", "names", "kinds"),
    [
        ("simulstream_example", "simulstream_log.jsonl", "ref_segments.yaml", "ted_1096.wav", []),
        ("speech_resegmentation_example", "instances.log", "ref_segments.yaml", "2022.acl-long.268.wav", []),
        ("text_resegmentation_example", "instances.log", "text_segmentation.txt", "0", ["matched by id"]),
    ],
)
def test_real_logs_find_their_segments(data, folder, log, segmentation, names, kinds):
    folder = data / "omnisteval" / "examples" / folder
    run = lagging.read(folder / log)
    made = read_segmentation(folder / segmentation, reference=folder / "references.txt")
    assert streams(run) is run
    found, notes = paired(run, made)
    assert (found[0][0], [row for _, row, _ in found], notes) == (names, list(range(len(run))), kinds)
    assert check_units(run, made, match(run, made)) == []


@pytest.mark.data
def test_real_offsets_in_milliseconds_are_found_out(data, tmp_path):
    folder = data / "omnisteval" / "examples" / "speech_resegmentation_example"
    seconds = read_segmentation(folder / "ref_segments.yaml")
    lines = [
        f"- {{duration: {d}, offset: {o}, wav: {w}}}\n"
        for w, o, d in zip(seconds.document, seconds.offset, seconds.duration, strict=True)
    ]
    (tmp_path / "ms.yaml").write_text("".join(lines), "utf-8")
    run, made = lagging.read(folder / "instances.log"), read_segmentation(tmp_path / "ms.yaml")
    with pytest.raises(DataError) as error:
        check_units(run, made, match(run, made))
    assert error.value.counts == {"segmentation-unit": 5}
    assert error.value.faults[0].line == 107


@pytest.mark.data
def test_a_real_stream_of_source_tokens(data):
    folder = data / "rw_streams"
    run = lagging.read(folder / "REAL" / "1.RW")
    made = read_segmentation(reference=folder / "iwslt17.dev2010.prepro.en", source=folder / "norm.iwslt17.dev2010.de")
    ((_, row, segments),) = match(streams(run), made)
    assert (row, len(segments)) == (0, 888)
    assert check_units(run, made, [("", row, segments)]) == []


@pytest.mark.data
def test_a_real_log_by_segments_of_its_own(data):
    run = lagging.read(data / "sltev" / "sample-data" / "sample.en.cs.slt")
    whole = streams(run)
    assert (len(whole), whole.delays.lengths.item(0)) == (1, run.delays.lengths.sum())
    assert whole.delays[0][0] == run.offset[0] + run.delays[0][0]
