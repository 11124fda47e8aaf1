# SPDX-License-Identifier: Apache-2.0
"""Faults, notes and repairs of Runs made in Python."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lagging
from lagging import Run
from lagging.data.checks import REPAIRS, check, number, remark, repair
from lagging.data.ragged import Ragged
from lagging.data.run import make_ids, make_texts
from lagging.errors import DataError, Fault, Faults, Note, UsageError, merge_notes
from lagging.errors.catalogue import KINDS
from lagging.errors.remedies import on_command_line
from lagging.longform import Segmentation, resegment

NAN, INF = math.nan, math.inf
Found = list[tuple[str, object, int | None, str]]


def faults_of(delays: object, **given: object) -> Found:
    given.setdefault("source_length", [5] * len(delays))
    with pytest.raises(DataError) as error:
        Run.from_delays(delays, **given)
    return [(f.kind, f.segment, f.token, f.detail) for f in error.value.faults]


def raw(delays: list[list[float]], **given: object) -> Run:
    """Columns as they are, unchecked."""
    g = Ragged.from_rows(delays)
    x = given.pop("source_length", np.full(len(g), 5.0))
    ids = make_ids(given.pop("id", range(len(g))))
    return Run(delays=g, source_length=np.asarray(x, float), id=ids, **given)


def notes_of(delays: list[list[float]], **given: object) -> list[str]:
    given.setdefault("source_length", [5] * len(delays))
    return [str(note) for note in Run.from_delays(delays, **given).notes]


# ---- faults -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delays", "given", "expected"),
    [
        ([[1, 2], [4, 3]], {}, ("decreasing-delays", 1, 2, "4 → 3")),
        ([[4, 4, 3, 2, 1]], {}, ("decreasing-delays", 0, 3, "4 → 3")),
        ([[4000.5, 3999.25]], {"unit": "ms"}, ("decreasing-delays", 0, 2, "4000.5 → 3999.25 ms")),
        ([[-1e-9]], {}, ("negative-delay", 0, 1, "-1e-09")),
        ([[1], [NAN]], {}, ("not-finite", 1, 1, "NaN")),
        ([[1, INF]], {}, ("not-finite", 0, 2, "Infinity")),
        ([[1], [2]], {"source_length": [5, -1]}, ("bad-source-length", 1, None, "-1")),
        ([[1], [2]], {"source_length": [NAN, 1]}, ("bad-source-length", 0, None, "NaN")),
        ([[1], [2]], {"source_length": [INF, 1]}, ("bad-source-length", 0, None, "Infinity")),
        ([[1], [2]], {"source_length": [1e-320, 1]}, ("bad-source-length", 0, None, "1e-320")),
        ([[1], [2]], {"source_length": [5e-19, 1]}, ("bad-source-length", 0, None, "5e-19")),
        ([[1]], {"reference_length": [1e-320]}, ("bad-reference-length", 0, None, "1e-320")),
        ([[1], [2]], {"id": ["a", "a"]}, ("duplicate-id", "a", None, "entry 0")),
        ([[1], [2]], {"id": [7, 7]}, ("duplicate-id", 7, None, "entry 0")),
        ([[1], [2]], {"id": [7, "7"]}, ("duplicate-id", "7", None, "entry 0")),
        ([[1, 2], [2]], {"prediction": ["a b", "c d"], "level": "word"}, ("token-count", 1, None, "1 delays, 2 words")),
        ([[1, 2]], {"prediction": ["a b"], "level": "char", "source_length": [2]}, None),
        ([[1, 2], []], {"prediction": ["a b", "c"], "level": "word"}, ("token-count", 1, None, "0 delays, 1 words")),
        ([[1, 2], [1]], {"prediction": ["a b", " "]}, ("token-count", 1, None, "1 delays, 0 words")),
        ([[1]], {"elapsed": [[1, 2]], "unit": "ms"}, ("elapsed-count", 0, None, "2 elapsed, 1 delays")),
        ([[1, 1]], {"elapsed": [[2, 1]], "unit": "ms"}, ("decreasing-elapsed", 0, 2, "2 → 1 ms")),
        ([[1, 1]], {"elapsed": [[2, NAN]], "unit": "ms"}, ("elapsed-not-finite", 0, 2, "NaN ms")),
        ([[1]], {"source_length": [5, 6]}, ("length-mismatch", None, None, "source_length has 2 entries, delays 1")),
        ([[1]], {"reference": ["a", "b"]}, ("length-mismatch", None, None, "reference has 2 entries, delays 1")),
        ([[1], [2]], {"id": ["a"]}, ("length-mismatch", None, None, "id has 1 entries, delays 2")),
    ],
)
def test_one_fault(delays, given, expected):
    if expected is None:
        Run.from_delays(delays, **given)
        return
    kind, segment, token, detail = expected
    ((found, name, where, said),) = faults_of(delays, **given)
    assert (found, name, where) == (kind, segment, token)
    assert said.lower() == detail.lower()


def test_nan_is_written_as_json_writes_it():
    assert (number(NAN), number(3.0), number(2.5), number(-0.0)) == ("NaN", "3", "2.5", "0")


@pytest.mark.parametrize("value", [12345.678, 123456.78, 1234567.5])
def test_numbers_keep_their_digits(value):
    assert float(number(value)) == value


def test_large_numbers_stay_short():
    assert len(number(1e300)) < 30


def test_every_fault_at_once():
    found = faults_of(
        [[2, 1], [NAN], [-1, 2], [1]],
        source_length=[5, 5, 5, -5],
        id=["a", "b", "a", "d"],
        elapsed=[[1, 2], [1], [2, 1], [1, 2]],
        prediction=["x y", "x", "x y", "x y"],
        level="word",
        unit="ms",
    )
    assert sorted(found) == sorted(
        [
            ("decreasing-delays", "a", 2, "2 → 1 ms"),
            ("not-finite", "b", 1, "NaN ms"),
            ("negative-delay", "a", 1, "-1 ms"),
            ("bad-source-length", "d", None, "-5"),
            ("duplicate-id", "a", None, "entry 0"),
            ("decreasing-elapsed", "a", 2, "2 → 1 ms"),
            ("elapsed-count", "d", None, "2 elapsed, 1 delays"),
            ("token-count", "d", None, "1 delays, 2 words"),
        ]
    )


def test_a_nan_does_not_hide_a_negative_delay():
    assert [kind for kind, *_ in faults_of([[NAN], [-1]])] == ["not-finite", "negative-delay"]


def test_one_fault_of_a_kind_per_segment():
    assert faults_of([[5, 4, 3, 2, 1]]) == [("decreasing-delays", 0, 2, "5 → 4")]


def test_a_fall_between_segments_is_none():
    assert Run.from_delays([[5], [1], [], [0]], source_length=[5] * 4).delays.tolist() == [[5], [1], [], [0]]


def test_a_negative_delay_that_falls_is_two_faults():
    assert [kind for kind, *_ in faults_of([[3, -1]])] == ["negative-delay", "decreasing-delays"]


def test_the_message_says_what_where_and_how_to_mend_it():
    with pytest.raises(DataError) as error:
        Run.from_delays([[1, 2], [4, 3], [4, 3]], source_length=[5] * 3, id=["a", "b", "c"])
    assert str(error.value).splitlines() == [
        "delays decrease (segment b), token 2: 4 → 3",
        "  AL, LAAL and DAL need non-decreasing delays. 1 more with the same fault: c.",
        "  fix: `repair=['monotone']` clamps them (the signature then says repair:monotone), or re-export the log.",
    ]
    assert (error.value.segment, error.value.line, error.value.path) == ("b", None, None)
    assert error.value.counts == {"decreasing-delays": 2}
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize(
    ("delays", "given"),
    [
        ([["a"]], {}),
        ([[[1]]], {}),
        ([1, 2], {}),
        ([[1]], {"source_length": ["x"]}),
        ([[1]], {"prediction": [3]}),
        ([[1]], {"reference": [3]}),
        ([[1]], {"elapsed": [["x"]]}),
        ([[1]], {"level": "foo", "prediction": ["a"]}),
        ([[1]], {"level": "foo"}),
        ([[1]], {"unit": "s"}),
        ([[1]], {"reference_length": [-3]}),
        ([[1]], {"reference_length": [INF]}),
        ([[1], [2]], {"elapsed": [[1]]}),
        ([[1]], {"id": [None]}),
    ],
    ids=str,
)
def test_nonsense_is_refused_by_name(delays, given):
    """By an error of this package that says which column; never an AttributeError from inside, never silently."""
    given = {"source_length": [5] * len(delays), **given}
    with pytest.raises((DataError, UsageError)):
        Run.from_delays(delays, **given)


STEPS = {"arrivals": [[1, 2]], "steps": [[0, 1]]}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"arrivals": [[2, 1]]}, ("impossible-step", 0, 2, "arrivals: 2 → 1 ms")),
        ({"arrivals": [[-1, 1]]}, ("impossible-step", 0, 1, "arrivals: -1 ms")),
        ({"compute": [[INF, 1]]}, ("impossible-step", 0, 1, "compute: Infinity ms")),
        ({"compute": [[1, -1]], "seg": "given"}, ("impossible-step", 0, 2, "compute: -1 ms")),
        ({"durations": [[NAN, 1]]}, ("impossible-step", 0, 1, "durations: NaN ms")),
        ({**STEPS, "steps": [[-1, 0]], "seg": "given"}, ("impossible-step", 0, 1, "steps: -1")),
        ({**STEPS, "steps": [[0, 0.5]]}, ("impossible-step", 0, 2, "steps: 0.5")),
        ({**STEPS, "steps": [[1, 0]]}, ("impossible-step", 0, 2, "steps: 1 → 0")),
        ({**STEPS, "steps": [[0, 2]]}, ("impossible-step", 0, None, "step 2 of 2")),
        ({**STEPS, "steps": [[0]]}, ("column-count", 0, None, "1 steps, 2 delays")),
        ({**STEPS, "compute": [[1]]}, ("column-count", 0, None, "1 compute, 2 arrivals")),
        ({"due": [[1]], "shown": [[INF]]}, ("bad-column", 0, 1, "shown: Infinity ms")),
        ({"due": [[NAN]], "shown": [[NAN]]}, ("bad-column", 0, 1, "due: NaN ms")),
        ({"erased": [-1]}, ("bad-column", 0, None, "erased: -1")),
        ({"gone": [INF]}, ("bad-column", 0, None, "gone: Infinity")),
        ({"revisions": [-0.5]}, ("bad-column", 0, None, "revisions: -0.5")),
        ({"offset": [INF]}, ("bad-column", 0, None, "offset: Infinity")),
        ({"queue_times": [[1, INF]]}, ("bad-column", 0, 2, "queue_times: Infinity ms")),
        ({"omnisteval_times": [[NAN, 1]]}, ("bad-column", 0, 1, "omnisteval_times: NaN ms")),
        ({"fbk_times": [[1]]}, ("column-count", 0, None, "1 fbk_times, 2 delays")),
        ({"recording_end": [-INF]}, ("bad-column", 0, None, "recording_end: -Infinity")),
    ],
    ids=str,
)
def test_columns_that_few_logs_have(given, expected):
    assert faults_of([[1, 2]], unit="ms", **given) == [expected]


def test_columns_that_few_logs_have_and_nothing_is_wrong_with():
    cut = {"arrivals": [[-1, 2]], "steps": [[0, 1]], "compute": [[0, 0]], "offset": [-2], "recording_end": [-3]}
    unknown = {"due": [[-1]], "shown": [[NAN]], "erased": [NAN], "revisions": [0]}
    assert len(Run.from_delays([[-1, 2]], source_length=[5], unit="ms", seg="given", **cut, **unknown)) == 1


def test_the_columns_are_named_in_a_usage_error():
    with pytest.raises(UsageError, match="unit must be 'token' or 'ms', but got 's'"):
        Run.from_delays([[1]], source_length=[1], unit="s")


def test_check_is_silent_about_a_good_run():
    run = raw([[1, 2], []], elapsed=Ragged.from_rows([[1, 2], []]))
    assert list(check(run, token_counts=np.array([2, 0]))) == []


def test_check_knows_lines():
    run = raw([[1], [3, 2]], line=np.array([4, 9]), origin=lagging.Run.from_delays([[1]], source_length=[1]).origin)
    (fault,) = check(run)
    assert (fault.line, fault.segment, fault.token) == (9, 1, 2)
    assert type(fault.segment) is int


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_of_fault_is_said_whole(kind):
    what, why, fix = KINDS[kind]
    assert what[0].islower() or what[0] == "`"
    assert not what.endswith(".")
    assert why.endswith(".")
    assert fix.endswith(".")
    error = DataError(Fault(kind, "7", "a.log", 3, "x", 2))
    with on_command_line():
        said = str(error)
    assert said.splitlines() == [f"{what} in a.log:3 (segment x), token 2: 7", f"  {why}", f"  fix: {fix}"]
    assert str(error.faults[0]) == f"a.log:3: segment x, token 2: {what}: 7"


def test_faults_are_counted_beyond_those_kept():
    faults = Faults(limit=2)
    faults.add(*(Fault("not-json", path="a.log", line=i) for i in (5, 3, 1, 2)))
    assert (len(faults), faults.counts) == (4, {"not-json": 4})
    assert [fault.line for fault in faults.sorted()] == [3, 5]
    assert "3 more with the same fault: line 5 and 2 more." in str(DataError(faults))


# ---- notes ------------------------------------------------------------------------------------------------------


def test_no_notes():
    assert notes_of([[1, 2]], prediction=["a b"], reference=["c d"]) == []


def test_empty_hypothesis():
    assert notes_of([[1], [], []], id=["a", "b", "c"]) == [
        "empty hypothesis: 2 segments (b, c): nothing was written, so there is no latency"
    ]


def test_empty_source():
    assert notes_of([[1], [0]], source_length=[5, 0]) == [
        "empty source: 1 segment (1): source_length is 0, so there is no latency"
    ]


@pytest.mark.parametrize(
    ("unit", "delay", "noted"),
    [
        ("token", 5, False),
        ("token", 5.5, True),
        ("token", 6, True),
        ("ms", 5, False),
        ("ms", 6, False),
        ("ms", 6.5, True),
    ],
)
def test_beyond_the_source(unit, delay, noted):
    expected = ["beyond the source: 1 segment (0): delays larger than source_length"] if noted else []
    assert notes_of([[1, delay]], unit=unit) == expected


def test_more_segments_than_are_named():
    (note,) = notes_of([[9]] * 8)
    assert note.startswith("beyond the source: 8 segments (0, 1, 2, 3, 4 and 3 more): ")


def test_suspicious_unit():
    seconds, ms = [1.5, 3.0], [1500.0, 3000.0]
    (note,) = notes_of([seconds, seconds, ms], source_length=[3000] * 3, unit="ms")
    assert note.startswith("suspicious unit: 2 segments (0, 1): delays below 1 % of source_length: are they seconds")
    assert notes_of([ms, ms], source_length=[3000] * 2, unit="ms") == []
    assert notes_of([[1], [1]], source_length=[300] * 2) == []  # tokens
    assert notes_of([[0], [0]], source_length=[3000] * 2, unit="ms") == []


def test_more_words_a_second_than_anybody_speaks():
    times = [0.4 * place for place in range(150)]
    (note,) = notes_of([times, [1000.0 * t for t in times]], source_length=[60, 60_000], unit="ms", level="word")
    assert note == (
        "IMPOSSIBLE RATE: 1 segment (0): more than 100 words per second of source: "
        "are source_length and delays seconds, and taken for milliseconds?"
    )
    assert notes_of([times], source_length=[60], unit="token") == []
    assert notes_of([[1.0] * 9], source_length=[10], unit="ms", level="word") == []  # too few to tell
    for rate, level, count in (
        (99, "word", 0),
        (101, "word", 1),
        (299, "char", 0),
        (301, "char", 1),
        (301, "token", 1),
    ):
        assert len(notes_of([[500.0] * rate], source_length=[1000], unit="ms", level=level)) == count, (rate, level)
    assert notes_of([[5.0] * 99], source_length=[5], unit="ms", level="word", seg="given") == []  # cut where words are


MINUTES = 60_000


def whole(**given: object) -> list[str]:
    return [note for note in notes_of([[1.0, 2.0]], **given) if note.startswith("WHOLE RECORDINGS")]


@pytest.mark.parametrize(("unit", "longest"), [("ms", 2 * MINUTES), ("token", 400)])
def test_whole_recordings_scored_as_sentences_get_a_loud_note_with_the_command_that_cuts(unit, longest):
    assert whole(source_length=[longest], unit=unit) == []
    (note,) = whole(source_length=[longest + 1], unit=unit)
    assert note.startswith("WHOLE RECORDINGS: 1 segment (0): ")
    assert note.endswith("cut them first: lagging score LOG --segmentation FILE --reference FILE")
    assert whole(source_length=[longest + 1], unit=unit, seg="given") == []  # that was done


@pytest.mark.parametrize("sentence", ["Das ist ein kurzer Satz. ", "これは短い文です。", "Is this a short one?' "])
def test_many_sentences_in_a_reference_are_no_sentence(sentence):
    def told(sentences: int) -> bool:
        notes = notes_of([[90.0] * 120], source_length=[100], unit="token", reference=[sentence * sentences])
        return any(note.startswith("WHOLE RECORDINGS") for note in notes)

    assert told(21)
    assert not told(20)


def test_a_system_that_repeats_a_sentence_has_not_translated_a_recording():
    loop = notes_of([[9000.0] * 600], source_length=[10_000], unit="ms", prediction=["Ja. " * 600], reference=["Ja."])
    assert loop == []


def test_whole_recordings_that_were_cut_are_whole_no_more():
    talk = Run.from_delays(
        [[900, 1900, 180_000]], source_length=[200_000], unit="ms", prediction=["Guten Tag! Ende"], document=["a.wav"]
    )
    assert [note.kind for note in talk.notes] == ["WHOLE RECORDINGS"]
    two = Segmentation.from_lists(["a.wav"] * 2, [0, 170_000], [3000, 30_000], ["Guten Tag!", "Ende"])
    assert [note.kind for note in resegment(talk, two).notes] == []


def test_elapsed_below_ideal():
    run = {"source_length": [6000] * 2, "unit": "ms"}
    (note,) = notes_of([[1000, 2000], [1000, 2000]], elapsed=[[1100, 1500], [1000, 2000]], **run)
    assert note == "elapsed below ideal: 1 segment (0): written before its source was there, says the log"
    assert notes_of([[1000, 2000]], elapsed=[[999.5, 2000]], source_length=[6000], unit="ms") == []  # rounding
    assert notes_of([[1, 2]], elapsed=[[0, 0]]) == []  # SimulEval's zeros for text


def test_references():
    given = {"prediction": ["a"] * 4}
    assert notes_of([[1]] * 4, reference=["a", None, "", " \n"], **given) == [
        "no reference: 1 segment (1): left out where a reference is needed",
        "empty reference: 2 segments (2, 3): left out where a reference is needed",
    ]
    alone = ["no reference: 4 segments (0, 1, 2, 3): left out where a reference is needed"]
    assert notes_of([[1]] * 4, reference=[None] * 4, **given) == alone
    assert notes_of([[1]] * 4, reference=["\u3000", "a", "a", "a"], **given) == [
        "empty reference: 1 segment (0): left out where a reference is needed"
    ]


def test_a_script_without_spaces():
    (note,) = notes_of([[1]], prediction=["今天天气很好"], level="word")
    assert note.startswith("SCRIPT WITHOUT SPACES: scored by words")
    assert notes_of([[1]], prediction=["今天天气很好"], level="token") == []


def test_notes_add_up():
    one, two = Note("k", "t", 2, (1, 2)), Note("k", "t", 3, (3, 4, 5))
    other = Note("k", "u", 1, (9,))
    assert merge_notes([one, other, two, Note("bare", "x"), Note("bare", "x")]) == (
        Note("k", "t", 5, (1, 2, 3, 4, 5)),
        other,
        Note("bare", "x"),
    )
    assert str(one + two + one) == "k: 7 segments (1, 2, 3, 4, 5 and 2 more): t"


def test_remark_of_a_run_without_segments():
    assert list(remark(Run.from_delays([], source_length=[]))) == []


# ---- repairs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "delays", "mended", "done"),
    [
        (["monotone"], [[6, 5, 4], [1, 2, 3], [3, 1, 4]], [[6, 6, 6], [1, 2, 3], [3, 3, 4]], {"monotone": 2}),
        (["clip"], [[-3, -1, 4], [1, 2, 3]], [[0, 0, 4], [1, 2, 3]], {"clip": 1}),
        (["monotone", "clip"], [[-3, -5, 4]], [[0, 0, 4]], {"clip": 1, "monotone": 1}),
        (["clip", "monotone"], [[2, -5, 4]], [[2, 2, 4]], {"monotone": 1}),
        (["monotone"], [[-3, -5, 4]], [[-3, -3, 4]], {"monotone": 1}),
        (["monotone", "clip"], [[1, 2], [], [2, 2]], [[1, 2], [], [2, 2]], {}),
        ([], [[3, 1]], [[3, 1]], {}),
    ],
)
def test_repairing_delays(names, delays, mended, done):
    run = repair(raw(delays), names)
    assert run.delays.tolist() == mended
    assert dict(run.repaired) == done


@pytest.mark.parametrize(("keep", "rows"), [("first", [0, 1, 3]), ("last", [1, 2, 3])])
def test_repairing_duplicates(keep, rows):
    run = raw([[1], [2], [3], [4]], id=["a", "b", "a", "c"], prediction=make_texts(["w", "x", "y", "z"]))
    mended = repair(run, [keep])
    assert mended.delays.tolist() == [run.delays.tolist()[row] for row in rows]
    assert mended.prediction.tolist() == ["wxyz"[row] for row in rows]
    assert dict(mended.repaired) == {keep: 1}
    assert list(check(mended)) == []


def test_repairing_elapsed_times():
    run = repair(raw([[1, 2]], elapsed=Ragged.from_rows([[5, 4]]), unit="ms"), ["monotone"])
    assert run.elapsed.tolist() == [[5, 5]]
    assert run.delays.tolist() == [[1, 2]]
    assert dict(run.repaired) == {"monotone": 1}


def test_a_segment_mended_in_two_columns_is_one_segment():
    run = repair(raw([[2, 1]], elapsed=Ragged.from_rows([[5, 4]]), unit="ms"), ["monotone"])
    assert dict(run.repaired) == {"monotone": 1}


def test_what_no_repair_mends():
    run = repair(raw([[3, NAN, 2], [INF, 1]]), ["monotone", "clip"])
    assert {fault.kind for fault in check(run)} == {"not-finite"}


def test_repairing_twice_changes_nothing_more():
    once = repair(raw([[3, 1], [-1, 2]]), ["monotone", "clip"])
    twice = repair(once, ["monotone", "clip"])
    assert twice.delays == once.delays
    assert twice.repaired == once.repaired


def test_a_repair_that_does_not_exist():
    with pytest.raises(UsageError, match=r"no repair is called 'frist'. Did you mean first\?"):
        repair(raw([[1]]), ["frist"])
    with pytest.raises(UsageError, match="exclude each other"):
        repair(raw([[1]]), ["first", "last"])
    assert set(REPAIRS) == {"monotone", "clip", "first", "last", "torn"}


def test_a_repair_shows_in_the_signature_and_among_the_notes():
    mended = repair(raw([[5, 4], [1, 2]]), ["monotone", "clip"])
    scores = lagging.score(mended, ["DAL"])
    assert scores["DAL"].signature["repair"] == "monotone"
    assert "repaired: 1 segment: by --repair monotone" in [str(note) for note in scores.notes]
    assert lagging.score(repair(raw([[1, 2]]), ["monotone"]), ["DAL"])["DAL"].signature.get("repair") is None
