# SPDX-License-Identifier: Apache-2.0
"""Numbers that were wrong once, or could be: each with the smallest case that shows it."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import lagging
from lagging.scoring.signature import settings


def log(path: Path, *lines: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def test_reference_length_is_read_by_every_route(tmp_path: Path) -> None:
    path = log(
        tmp_path / "a.jsonl",
        {"id": 0, "prediction": "a b", "delays": [1, 2], "source_length": 4, "reference_length": 8},
    )
    for run in (lagging.read(path), lagging.scan(path, columns=())):
        assert lagging.score(run, ["LAAL"])["LAAL"].value == 1.25


def test_reference_length_fills_in_for_a_missing_text(tmp_path: Path) -> None:
    common = {"prediction": "a b", "delays": [1, 2], "source_length": 4}
    path = log(
        tmp_path / "a.jsonl", {**common, "reference": None, "reference_length": 8}, {**common, "reference": "x y"}
    )
    laal = lagging.score(lagging.read(path), ["LAAL"])["LAAL"]
    assert laal.segments.tolist() == [1.25, 0.5]
    assert laal.signature.get("noref") is None


def test_files_with_and_without_reference_length_read_as_they_scan(tmp_path: Path) -> None:
    common = {"prediction": "a b", "delays": [1, 2], "source_length": 4}
    paths = [
        log(tmp_path / "a.jsonl", {**common, "id": 0, "reference_length": 8}),
        log(tmp_path / "b.jsonl", {**common, "id": 1}),
    ]
    read, scanned = (lagging.score(run, ["LAAL"])["LAAL"] for run in (lagging.read(paths), lagging.scan(paths)))
    assert (read.value, str(read.signature)) == (scanned.value, str(scanned.signature))


def test_files_with_and_without_references_scan_as_they_read(tmp_path: Path) -> None:
    common = {"prediction": "a b c d", "delays": [1, 2, 3, 4], "source_length": 4}
    paths = [
        log(tmp_path / "a.jsonl", {**common, "id": 0, "reference": "a b c d"}),
        log(tmp_path / "b.jsonl", {**common, "id": 1}),
    ]
    for run in (lagging.read(paths), lagging.scan(paths)):
        bleu = lagging.score(run, ["BLEU"])["BLEU"]
        assert bleu.value == pytest.approx(100)
        assert bleu.undefined.reasons == {"no reference": (1,)}


def test_latency_bleu_keeps_the_spaces_between_characters() -> None:
    text = "the cat sat on it"
    run = lagging.Run.from_delays([[1] * 13], source_length=[1], prediction=[text], reference=[text])
    assert run.level == "char"
    assert lagging.score(run, ["LBLEU"])["LBLEU"].value == pytest.approx(100)


def test_segment_values_say_how_they_were_made() -> None:
    run = lagging.Run.from_delays([[1, 2]], source_length=[2], prediction=["a b"], reference=["a b"])
    bleu = lagging.score(run, ["BLEU"])["BLEU"]
    assert bleu.value != bleu.segments[0]
    assert (bleu.signature["eff"], bleu.segment_signature["eff"]) == ("no", "yes")


def test_an_empty_reference_that_is_stood_in_for_is_counted() -> None:
    run = lagging.Run.from_delays([[1, 2]] * 2, source_length=[2, 2], prediction=["a b"] * 2, reference=["a b", ""])
    assert lagging.score(run, ["LAAL"])["LAAL"].signature["noref"] == "1"


@pytest.mark.parametrize(
    ("text", "delays", "kept"),
    [
        ("a b c </s>", [1, 2, 3, 3], [1, 2, 3]),  # a token with its delay
        ("a b c </s>", [1, 2, 3], [1, 2, 3]),  # it has no delay in this log
        ("a b c</s>", [1, 2, 3], [1, 2, 3]),  # glued to a word
        ("▁a ▁b c</s>", [1, 2, 3, 3], [1, 2, 3, 3]),  # whose delay is the last is not known
    ],
)
def test_a_mark_takes_no_delay_that_is_not_its_own(text: str, delays: list[int], kept: list[int]) -> None:
    run = lagging.Run.from_delays([delays], source_length=[4], prediction=[text], reference=["a b c"])
    scores = lagging.score(run, ["AL", "BLEU"])
    assert scores["AL"].value == lagging.al(kept, source_length=4)
    assert scores["AL"].signature["eos"] == ("stripped" if len(kept) < len(delays) else "kept")
    assert scores["BLEU"].signature["eos"] == "stripped"
    again = settings(scores["AL"].signature)
    assert lagging.score(run, [again.metric], convention=again.convention)[again.metric].value == scores["AL"].value


def test_units_are_not_mixed_in_any_format(tmp_path: Path) -> None:
    lines = [
        {"index": i, "prediction": "a b", "delays": [1, 2], "source_length": 2, "unit": u}
        for i, u in enumerate(("token", "ms"))
    ]
    with pytest.raises(lagging.DataError, match="ms, not token"):
        lagging.read(log(tmp_path / "a.log", *lines))


def test_seconds_are_not_taken_for_milliseconds(tmp_path: Path) -> None:
    with pytest.raises(lagging.UsageError, match="look like seconds"):
        lagging.read(log(tmp_path / "a.jsonl", {"delays": [1.2, 2.5, 3.2], "source_length": 3.2}))


def test_write_cost_and_length() -> None:
    texts = {"prediction": ["a b", "c d"], "reference": ["a b c d", "e"]}
    run = lagging.Run.from_delays([[1, 2], [2, 2]], source_length=[2, 2], **texts)
    by_reference = "DAL(write_cost=corpus, length=reference)"
    scores = lagging.score(run, ["DAL(write_cost=corpus)", by_reference, "DAL(write_cost=1, length=reference)"])
    d = 4 / 5
    expected = np.mean([lagging.dal(g, source_length=2, write_cost=d) for g in ([1, 2], [2, 2])])
    assert scores[by_reference].value == pytest.approx(expected)
    assert scores[by_reference].value != scores["DAL(write_cost=corpus)"].value
    assert scores["DAL(write_cost=1, length=reference)"].signature.get("length") is None


def test_silence_is_not_rewarded() -> None:
    run = lagging.Run.from_delays([[]], source_length=[5], prediction=[""], reference=["a b c d e f g h i j"])
    for name in ("AP(empty=source, length=reference)", "AP(empty=source)"):
        assert lagging.score(run, [name])[name].value == 1


def test_a_users_metric_cannot_change_the_run_or_other_metrics() -> None:
    @lagging.register("Length")
    def length(schedule):
        return schedule.x

    @lagging.register("InPlace")
    def in_place(schedule):
        def kernel(g):
            g *= 2
            return g[:, 0]

        return schedule.by_row(kernel)

    run = lagging.Run.from_delays([[1, 2], []], source_length=[2, 2])
    lagging.score(run, ["Length"])
    assert run.source_length.tolist() == [2, 2]
    with pytest.raises(ValueError, match="read-only"):
        lagging.score(run, ["InPlace"])
    with pytest.raises(ValueError, match="read-only"):
        run.source_length[0] = -7


def test_a_users_metric_declares_what_can_change_its_number() -> None:
    lagging.register("Tau")(lambda schedule: schedule.cutoff)
    lagging.register("DeclaredTau", needs={"cutoff"})(lambda schedule: schedule.cutoff)
    run = lagging.Run.from_delays([[500.0, 999.5, 1000.0]], source_length=[1000], unit="ms")
    with pytest.raises(lagging.MetricError, match="cutoff"):
        lagging.score(run, ["Tau"])
    near, exact = (lagging.score(run, ["DeclaredTau"], convention=c)["DeclaredTau"] for c in ("paper", "simuleval"))
    assert (near.value, exact.value) == (2, 3)
    assert exact.signature["tol"] == "0"


def test_a_metric_of_the_whole_corpus_sees_it_whole() -> None:
    @lagging.register("Total", needs={"corpus"})
    def total(schedule):
        return np.full(len(schedule.x), schedule.x.sum())

    parts = [lagging.Run.from_delays([[1]], source_length=[n], id=[n]) for n in (1, 9)]
    assert lagging.score(parts, ["Total"])["Total"].segments.tolist() == [10, 10]


@pytest.mark.parametrize(
    "signature",
    [
        "AL|count:foo|n:1|v:1",
        "AL|tol:abc|n:1|v:1",
        "AL|tol:nan|n:1|v:1",
        "AL|eos:foo|n:1|v:1",
        "AL|what:ever|n:1|v:1",
        "AL|unit:ms|unit:token|n:1|v:1",
        "AL|clock:sundial|n:1|v:1",
        "FOO|n:1|v:1",
    ],
)
def test_nonsense_in_a_signature_is_refused(signature: str) -> None:
    with pytest.raises(lagging.UsageError):
        settings(signature)


@pytest.mark.parametrize("tolerance", [0.12345678, 1.0000001, 0.5])
def test_any_tolerance_repeats(tolerance: float) -> None:
    run = lagging.Run.from_delays([[500.0, 999.6, 1000.0]], source_length=[1000], unit="ms")
    score = lagging.score(run, ["AL"], convention=lagging.Convention("mine", tolerance=tolerance))["AL"]
    assert settings(score.signature).convention.tolerance == tolerance


def test_conventions_that_nobody_has_are_refused() -> None:
    for wrong in ({"eos": "stripp"}, {"count": "foo"}, {"tolerance": -1.0}, {"tolerance": math.nan}):
        with pytest.raises(lagging.UsageError):
            lagging.Convention("mine", **wrong)


def test_simuleval_counts_words_of_references_also_beside_its_own_tokens() -> None:
    run = lagging.Run.from_delays([[1, 2, 3]], source_length=[4], prediction=["ab cd"], reference=["a b c d e"])
    score = lagging.score(run, ["AL"], convention="simuleval")["AL"]
    assert score.value == lagging.al([1, 2, 3], source_length=4, reference_length=5, length="reference")
    assert score.signature.get("noref") is None


def test_notes_are_about_the_segments_there_are() -> None:
    run = lagging.Run.from_delays([[1], [], [2]], source_length=[2] * 3)
    assert run[:1].notes == ()
    assert run[1:].notes[0].segments == (1,)
    assert lagging.score(run.segments(), ["DAL"]).notes[0].count == 1


def test_two_objects_on_a_line_are_not_two_lines(tmp_path: Path) -> None:
    line = json.dumps({"delays": [1], "source_length": 1})
    path = tmp_path / "a.jsonl"
    path.write_text(f"{line}{line}\n\n")
    with pytest.raises(lagging.DataError, match="not valid JSON"):
        lagging.read(path)


def test_a_level_survives_our_own_format(tmp_path: Path) -> None:
    run = lagging.Run.from_delays([[1, 2]], source_length=[2], prediction=["a b"], level="token")
    lagging.write(run, tmp_path / "a.jsonl")
    assert lagging.read(tmp_path / "a.jsonl").level == "token"


def test_text_is_not_a_number() -> None:
    for delays in (["1", "2"], [["1"], ["2"]]):
        with pytest.raises(lagging.DataError):
            lagging.dal(delays, source_length=2)
    with pytest.raises(lagging.DataError):
        lagging.Run.from_delays([["1", "2"]], source_length=[2])
    with pytest.raises(lagging.DataError, match="reference_length"):
        lagging.al([1, 2], source_length=2, reference_length=-3, length="reference")


def test_parameters_are_given_once_and_under_their_own_names() -> None:
    with pytest.raises(lagging.UsageError, match="given twice"):
        lagging.metric("AL(clock=ideal, clock=elapsed)")
    with pytest.raises(lagging.UsageError, match="parameter of every metric"):
        lagging.register("Res")(lambda schedule, *, length=3: schedule.x)


def test_scores_say_which_sentences_two_systems_share() -> None:
    a = lagging.score(lagging.Run.from_delays([[1]] * 3, source_length=[1] * 3, id=[0, 1, 2]), ["DAL"])
    b = lagging.score(lagging.Run.from_delays([[1]] * 2, source_length=[1] * 2, id=["1", "x"]), ["DAL"])
    assert a.shared(a) == (3, 3, 3)
    assert a.shared(b) == (1, 3, 2)
    assert a.to_pandas()["DAL"].tolist() == [1, 1, 1]


def test_a_path_is_not_a_run() -> None:
    with pytest.raises(lagging.UsageError, match=r"lagging\.read\('wait-3'\)"):
        lagging.score("wait-3", ["DAL"])
    with pytest.raises(lagging.DataError, match="only once"):
        lagging.score(iter([]), ["DAL"])


@pytest.mark.parametrize("size", [3, 4000])
def test_a_pipe_is_read_from_its_beginning(size: int, tmp_path: Path) -> None:
    import os
    import threading

    path = tmp_path / "pipe"
    os.mkfifo(path)
    lines = [
        {"index": i, "prediction": "a b", "delays": [1, 2], "source": "x y", "source_length": 2} for i in range(size)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    writer = threading.Thread(target=lambda: path.write_text(text))
    writer.start()
    assert len(lagging.read(path)) == size
    writer.join()


SOUND = {
    "index": 0,
    "prediction": "wavs/0_pred.wav",
    "delays": [500.0, 1000.0],
    "durations": [300.0, 200.0],
    "elapsed": [],
    "source_length": 1200.0,
    "reference": "guten Tag",
    "source": "a.wav",
}


def test_the_path_of_a_sound_file_is_no_translation(tmp_path: Path) -> None:
    path = log(tmp_path / "a.log", SOUND)
    for run in (lagging.read(path), lagging.scan(path, columns=())):
        with pytest.raises(lagging.MetricError, match="no predictions whose text"):
            lagging.score(run, ["BLEU"])
    assert lagging.read(path).prediction.tolist() == ["wavs/0_pred.wav"]


def test_silence_at_the_beginning_does_not_settle_what_the_log_is(tmp_path: Path) -> None:
    common = {"reference": "a b c d", "source": "x y z", "source_length": 3}
    silent = [{"index": i, "prediction": "", "delays": [], **common} for i in range(1000)]
    spoken = [{"index": i, "prediction": "a b c", "delays": [1, 2, 3], **common} for i in range(1000, 1010)]
    laal = lagging.score(lagging.scan(log(tmp_path / "a.log", *silent, *spoken)), ["LAAL"])["LAAL"]
    assert (laal.value, laal.signature["level"], laal.signature.get("noref")) == (1.25, "word", None)
    spoken[3]["delays"] = [1, 2]
    with pytest.raises(lagging.DataError, match="2 delays, 3 words"):
        lagging.read(log(tmp_path / "a.log", *silent, *spoken))


@pytest.mark.parametrize("filler", ["", "  ", "\r"])
def test_two_objects_on_a_line_are_never_two_lines(filler: str, tmp_path: Path) -> None:
    line = json.dumps({"delays": [1], "source_length": 1})
    path = tmp_path / "a.jsonl"
    path.write_bytes(f"{line}{line}\n{filler}\n".encode())
    with pytest.raises(lagging.DataError, match="not valid JSON"):
        lagging.read(path)


@pytest.mark.parametrize("size", [100, 20_000])
def test_which_line_of_several_counts_does_not_depend_on_the_size_of_the_log(size: int, tmp_path: Path) -> None:
    lines = [{"index": i, "delays": [1, 2], "source_length": 2} for i in range(size) if i != 7]
    path = log(tmp_path / "a.jsonl", *lines, {"index": 0, "delays": [2, 2], "source_length": 2})
    path.write_text("\n" + path.read_text())
    for keep, delays in (("first", [1, 2]), ("last", [2, 2])):
        run = lagging.read(path, repair=[keep])
        assert len(run) == size - 1
        assert run[run.id == 0].delays.tolist() == [delays]
        assert {note.kind for note in run.notes} == {"blank line", "index gap"}
    log(tmp_path / "b.jsonl", *lines, {"index": 0, "delays": [2, 1], "source_length": 2})
    with pytest.raises(lagging.DataError, match="delays decrease"):
        lagging.read(tmp_path / "b.jsonl", repair=["first"])


def test_files_with_and_without_texts_are_not_one_system(tmp_path: Path) -> None:
    common = {"delays": [1, 2], "source_length": 3, "level": "word", "reference": "a b"}
    paths = [
        log(tmp_path / "a.jsonl", {**common, "id": 0, "prediction": "a b"}),
        log(tmp_path / "b.jsonl", {**common, "id": 1}),
    ]
    with pytest.raises(lagging.DataError, match="no `prediction`"):
        lagging.read(paths)


def test_a_file_in_which_nothing_was_written_goes_with_any_other(tmp_path: Path) -> None:
    common = {"source": "x y", "source_length": 2, "reference": "a b"}
    spoken = log(tmp_path / "a.log", {"index": 0, "prediction": "a b", "delays": [1, 2], **common})
    silent = log(tmp_path / "b.log", {"index": 1, "prediction": "", "delays": [], **common})
    for paths in ([spoken, silent], [silent, spoken]):
        for run in (lagging.read(paths), lagging.scan(paths)):
            score = lagging.score(run, ["DAL"])["DAL"]
            assert (score.value, score.n, score.signature["level"]) == (1, 2, "word")
    assert lagging.score(lagging.read(silent), ["BLEU"])["BLEU"].value == 0


@pytest.mark.parametrize("times", [["q", 0], "oops", [1, int("1" + "0" * 400)]])
def test_what_no_metric_can_use_is_no_fault(times: object, tmp_path: Path) -> None:
    line = {"index": 0, "prediction": "a b", "delays": [1, 2], "source": "x y", "source_length": 2, "elapsed": times}
    path = log(tmp_path / "a.log", line)
    assert lagging.validate(path).ok
    assert lagging.score(lagging.read(path), ["DAL"])["DAL"].value == 1


@pytest.mark.parametrize(
    ("durations", "kind"), [(["q", 0], "bad-column"), ("oops", "bad-column"), ([1, 10**400], "impossible-step")]
)
def test_the_sound_that_was_put_out_lasts_some_time(durations: object, kind: str, tmp_path: Path) -> None:
    fine = {**SOUND, "index": 0, "durations": [100.0] * len(SOUND["delays"])}
    path = log(tmp_path / "s.log", fine, {**SOUND, "index": 1, "durations": durations})
    assert [fault.kind for fault in lagging.validate(path).faults] == [kind]


def test_an_elapsed_time_beyond_any_number_is_a_fault_in_speech(tmp_path: Path) -> None:
    line = {"index": 0, "prediction": "a b", "delays": [1, 2.5], "source": "x.wav", "source_length": 300.5}
    path = log(tmp_path / "a.log", {**line, "elapsed": [1, int("1" + "0" * 400)]})
    with pytest.raises(lagging.DataError, match="elapsed time is not finite"):
        lagging.read(path)


def test_a_unit_or_level_given_goes_before_what_the_log_says(tmp_path: Path) -> None:
    path = log(
        tmp_path / "a.jsonl", {"id": 0, "delays": [1000, 2000], "source_length": 3000, "unit": "ms", "level": "token"}
    )
    run = lagging.read(path, unit="token", level="word")
    assert (run.unit, run.level) == ("token", "word")


def test_levels_are_not_mixed(tmp_path: Path) -> None:
    lines = [
        {"id": i, "delays": [1, 2], "source_length": 3, "level": level} for i, level in enumerate(("word", "char"))
    ]
    with pytest.raises(lagging.DataError, match="char, not word"):
        lagging.read(log(tmp_path / "a.jsonl", *lines))
    with pytest.raises(lagging.UsageError, match="level must be one of"):
        lagging.read(log(tmp_path / "b.jsonl", {**lines[0], "level": "wrod"}))


def test_half_a_character_is_refused_or_replaced_and_never_crashes(tmp_path: Path) -> None:
    line = {"index": 0, "prediction": "a b", "delays": [1, 2], "source": "x \ud800", "source_length": 2}
    path = log(tmp_path / "a.log", line)
    lagging.write(lagging.read(path), tmp_path / "b.jsonl")
    with pytest.raises(lagging.DataError, match="surrogate"):
        lagging.read(log(tmp_path / "c.log", {**line, "index": "\ud800"}))


def test_a_link_to_nothing_is_no_such_file(tmp_path: Path) -> None:
    (tmp_path / "broken.log").symlink_to(tmp_path / "nothing")
    with pytest.raises(lagging.UsageError, match="no such file"):
        lagging.read(tmp_path / "broken.log")


def test_latency_bleu_of_a_very_long_source() -> None:
    run = lagging.Run.from_delays([[1, 2]], source_length=[10**11], prediction=["a b"], reference=["a b"])
    assert lagging.score(run, ["LBLEU"])["LBLEU"].value == pytest.approx(100)


def test_a_packed_log_in_a_directory(tmp_path: Path) -> None:
    import gzip

    with gzip.open(tmp_path / "instances.log.gz", "wt") as file:
        file.write(
            json.dumps({"index": 0, "prediction": "a b", "delays": [1, 2], "source": "x y", "source_length": 2}) + "\n"
        )
    assert len(lagging.read(tmp_path)) == 1
