# SPDX-License-Identifier: Apache-2.0
"""Writing: what is written can be read back, what a format cannot hold is named, and a file is whole or untouched."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace

import numpy as np
import pytest

import lagging
from lagging import Run
from lagging.data.checks import is_length
from lagging.errors import DataError, UsageError
from lagging.formats import read, validate, write
from lagging.scoring.plan import DEFAULT_METRICS

BOTH = pytest.mark.parametrize("form", ["simuleval", "jsonl"])


def run_of_text(**changes) -> Run:
    given = {
        "source_length": [6, 6],
        "prediction": ["a b c", "d e"],
        "reference": ["a b c d", "e"],
        "source": ["u v w x y z"] * 2,
        "name": "base",
    }
    return Run.from_delays([[3, 4, 6], [6, 6]], **{**given, **changes})


def again(run: Run, folder, form: str) -> tuple[Run, list[str]]:
    path = folder / {"simuleval": "instances.log", "jsonl": "run.jsonl", "rw": "run.rw"}[form]
    lost = write(run, path, format=form)
    return read(path), lost


# ---- layouts ----------------------------------------------------------------------------------------------------


def test_simuleval_keys_and_order(tmp_path):
    write(run_of_text(), tmp_path / "instances.log")
    assert (tmp_path / "instances.log").read_text("utf-8").splitlines()[0] == (
        '{"index": 0, "prediction": "a b c", "delays": [3, 4, 6], "elapsed": [0, 0, 0], "prediction_length": 3, '
        '"reference": "a b c d", "source": "u v w x y z", "source_length": 6}'
    )


def test_simuleval_milliseconds_are_floats(tmp_path):
    run = Run.from_delays([[1000, 2000.5]], source_length=[3000], prediction=["a b"], elapsed=[[1100, 2100]], unit="ms")
    write(run, tmp_path / "instances.log")
    record = (tmp_path / "instances.log").read_text("utf-8")
    assert '"delays": [1000.0, 2000.5], "elapsed": [1100.0, 2100.0]' in record
    assert '"source_length": 3000.0' in record


def test_jsonl_layout(tmp_path):
    write(run_of_text(id=["x", "y"], reference=None), tmp_path / "a.jsonl")
    assert (tmp_path / "a.jsonl").read_text("utf-8").splitlines()[1] == (
        '{"id": "y", "delays": [6, 6], "source_length": 6, "prediction": "d e", "source": "u v w x y z", '
        '"unit": "token", "level": "word"}'
    )


def test_read_write_layout(tmp_path):
    write(Run.from_delays([[1, 2, 2], [], [2]], source_length=[3, 2, 2]), tmp_path / "a.rw")
    assert (tmp_path / "a.rw").read_bytes() == b"RWRWWR\nRR\nRRW\n"


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.log", "simuleval"),
        ("a.jsonl", "jsonl"),
        ("a.json", "jsonl"),
        ("a.NDJSON", "jsonl"),
        ("a.rw", "rw"),
        ("a.txt", "rw"),
    ],
)
def test_the_ending_names_the_format(name, form, tmp_path):
    write(Run.from_delays([[1, 2]], source_length=[2]), tmp_path / name)
    assert read(tmp_path / name).origin.format in (form, "jsonl" if form == "simuleval" else form)


def test_an_ending_that_names_no_format(tmp_path):
    with pytest.raises(UsageError, match=r"names no format; give one of simuleval, omnisteval, .*arrow"):
        write(run_of_text(), tmp_path / "a.xyz")
    assert list(tmp_path.iterdir()) == []


def test_a_format_that_does_not_exist(tmp_path):
    with pytest.raises(UsageError, match="no format is called 'xml'"):
        write(run_of_text(), tmp_path / "a.xml", format="xml")
    assert list(tmp_path.iterdir()) == []


def test_standard_output(capsys):
    write(Run.from_delays([[1, 2]], source_length=[2]), "-", format="rw")
    assert capsys.readouterr().out == "RWRW\n"


# ---- what is lost -----------------------------------------------------------------------------------------------


def test_what_simuleval_cannot_hold(tmp_path):
    run = Run.from_delays([[1, 2]], source_length=[2], document=["talk"], reference_length=[3])
    lost = write(run, tmp_path / "a.log")
    assert lost == ["document", "reference_length", "prediction (this Run has no text)"]


def test_what_read_write_strings_cannot_hold(tmp_path):
    lost = write(run_of_text(id=[4, 5], elapsed=[[1, 2, 3], [4, 5]]), tmp_path / "a.rw")
    assert set(lost) == {"id", "elapsed", "prediction", "reference", "source", "level (read it with --level word)"}
    assert write(Run.from_delays([[1], [2]], source_length=[2, 2]), tmp_path / "a.rw") == []


@pytest.mark.parametrize(
    "run",
    [
        Run.from_delays([[1.5]], source_length=[2]),
        Run.from_delays([[3]], source_length=[2]),
        Run.from_delays([[1]], source_length=[2.5]),
        Run.from_delays([[1]], source_length=[2], unit="ms"),
    ],
    ids=["half a token", "beyond the source", "half a source", "milliseconds"],
)
def test_what_has_no_read_write_string(run, tmp_path):
    (tmp_path / "a.rw").write_text("RW\n")
    with pytest.raises(DataError) as error:
        write(run, tmp_path / "a.rw")
    said = str(error.value)
    assert "segment 0" in said
    assert "READ/WRITE strings can hold nothing else" in said
    assert "It cannot be read." not in said  # it is about writing
    assert [file.name for file in tmp_path.iterdir()] == ["a.rw"]
    assert (tmp_path / "a.rw").read_text() == "RW\n"


# ---- round trips ------------------------------------------------------------------------------------------------


@BOTH
def test_scores_survive(form, tmp_path):
    run = run_of_text()
    back, lost = again(run, tmp_path, form)
    assert lost == []
    for convention in ("paper", "simuleval"):
        one, two = (lagging.score(r, [*DEFAULT_METRICS, "BLEU"], convention=convention) for r in (run, back))
        assert [(str(s.signature), s.value) for s in one] == [(str(s.signature), s.value) for s in two]


@BOTH
def test_a_reference_that_is_missing_stays_missing(form, tmp_path):
    """Under SimulEval's convention no reference and an empty one make two different numbers."""
    run = run_of_text(reference=["a b c d", None])
    back, _ = again(run, tmp_path, form)
    assert back.reference.tolist() == ["a b c d", None]
    one, two = (lagging.score(r, ["AL"], convention="simuleval")["AL"] for r in (run, back))
    assert (one.value, one.signature) == (two.value, two.signature)


@BOTH
def test_an_empty_reference_stays_empty(form, tmp_path):
    back, _ = again(run_of_text(reference=["a b c d", ""]), tmp_path, form)
    assert back.reference.tolist() == ["a b c d", ""]


@BOTH
def test_a_prediction_that_is_missing(form, tmp_path):
    """A file of which some lines say what was written, and others only when, is refused; so is such a Run."""
    with pytest.raises(lagging.DataError, match="no `prediction`"):
        run_of_text(prediction=["a b c", None])
    run = run_of_text(prediction=None)
    back, _ = again(run, tmp_path, form)
    assert back.prediction is None
    assert back.delays == run.delays


@BOTH
def test_an_empty_prediction(form, tmp_path):
    run = Run.from_delays([[1, 2], []], source_length=[2, 2], prediction=["a b", ""])
    back, _ = again(run, tmp_path, form)
    assert back.prediction.tolist() == ["a b", ""]
    assert back.delays.tolist() == [[1, 2], []]


@BOTH
@pytest.mark.parametrize(("unit", "length"), [("ms", 300.0), ("token", 5000), ("ms", 6849.88)])
def test_the_unit_survives_or_is_named_as_lost(form, unit, length, tmp_path):
    run = Run.from_delays([[100, 200]], source_length=[length], prediction=["a b"], unit=unit)
    back, lost = again(run, tmp_path, form)
    assert back.unit == unit or any("unit" in what for what in lost)


def test_times_that_look_like_seconds_have_no_unit_that_could_be_told(tmp_path):
    run = Run.from_delays([[1.5]], source_length=[2.5], prediction=["a"], unit="ms")
    assert write(run, tmp_path / "a.log") == ["unit (read it with --unit ms)"]
    with pytest.raises(UsageError, match="these look like seconds"):
        read(tmp_path / "a.log")


@pytest.mark.parametrize("form", ["simuleval", "omnisteval", "jsonl", "rw", "fairseq", "csv"])
@pytest.mark.parametrize(
    ("level", "text"),
    [("word", "a b"), ("char", "a b"), ("char", "ab"), ("token", "a b"), ("token", "a b c"), ("word", None)],
)
def test_the_level_survives_or_is_named_as_lost(form, level, text, tmp_path):
    run = Run.from_delays([[1, 2]], source_length=[2], prediction=None if text is None else [text], level=level)
    lost = write(run, tmp_path / "a", format=form)
    back = read(tmp_path / "a", format=form)
    assert (back.level != level) == (f"level (read it with --level {level})" in lost)
    assert read(tmp_path / "a", format=form, level=level).level == level


def test_documents_that_there_are_not(tmp_path):
    run = Run.from_delays([[100]], source_length=[200], prediction=["a"], unit="ms", seg="given")
    assert write(run, tmp_path / "a", format="omnisteval") == ["document (none, read back as 0)"]
    assert read(tmp_path / "a").document.tolist() == ["0"]
    assert write(read(tmp_path / "a"), tmp_path / "b", format="omnisteval") == []


@pytest.mark.parametrize("form", ["simuleval", "fairseq"])
def test_a_segment_that_began_before_the_first_of_its_words(form, tmp_path):
    cut = {"source_length": [2000], "prediction": ["a b"], "unit": "ms", "seg": "given"}
    path = tmp_path / "cut"
    said = "negative delays (a fault when read back)"
    assert said in write(Run.from_delays([[-500.5, 700]], **cut), path, format=form)
    with pytest.raises(DataError, match="a delay is negative"):
        read(path)
    assert said not in write(Run.from_delays([[500.5, 700]], **cut), path, format=form)
    assert read(path).delays.tolist() == [[500.5, 700]]


def test_elapsed_times_that_nobody_measured(tmp_path):
    """SimulEval's zeros for text would be wrong times for speech: AL_CA of them means nothing."""
    run = Run.from_delays([[100.5, 200]], source_length=[300], prediction=["a b"], unit="ms")
    back, lost = again(run, tmp_path, "simuleval")
    assert back.elapsed is None or any("elapsed" in what for what in lost)


@BOTH
@pytest.mark.parametrize("text", ["你好 </s>", "a\u2028b", "\u0000", '"quoted" \\ back', "é\u0301", "🙂 🙃", "\x85 a"])
def test_texts_survive(text, form, tmp_path):
    n = len(text.split())
    back, _ = again(Run.from_delays([[1] * n], source_length=[2], prediction=[text]), tmp_path, form)
    assert back.prediction.tolist() == [text]


@BOTH
@pytest.mark.parametrize("value", [0.1 + 0.2, 1e-300, 1e17, 123456789.123456789, 5e-324, 2.0**53 + 2])
def test_numbers_survive_to_the_last_digit(value, form, tmp_path):
    length = value if is_length(value) else 1 / 3  # a time may be as small as it likes, a length may not
    run = Run.from_delays([[value]], source_length=[length], prediction=["a"], elapsed=[[value]], unit="ms")
    write(run, tmp_path / "a.log", format=form)
    back = read(tmp_path / "a.log", unit="ms")
    assert back.delays.tolist() == [[value]]
    assert back.source_length.tolist() == [length]
    assert back.elapsed.tolist() == [[value]]


def test_durations_survive_in_jsonl(tmp_path):
    line = {
        "id": 0,
        "delays": [1000.5],
        "durations": [300.0],
        "source_length": 2000.0,
        "prediction": "x.wav",
        "unit": "ms",
    }
    (tmp_path / "in.jsonl").write_text(json.dumps(line) + "\n")
    run = read(tmp_path / "in.jsonl")
    assert write(run, tmp_path / "out.jsonl") == []
    assert read(tmp_path / "out.jsonl").durations.tolist() == [[300.0]]
    assert write(run, tmp_path / "out.log") == []
    assert read(tmp_path / "out.log").durations.tolist() == [[300.0]]


@BOTH
def test_a_run_without_segments(form, tmp_path):
    write(Run.from_delays([], source_length=[]), tmp_path / "a.log", format=form)
    with pytest.raises(DataError, match="the log holds no segments"):
        read(tmp_path / "a.log")


# ---- whole or not at all ----------------------------------------------------------------------------------------


class Boom(Exception):
    pass


def test_a_failing_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    path.write_text("old\n")

    def fail(run, file):
        file.write("half of it")
        raise Boom

    monkeypatch.setattr("lagging.formats.jsonl_writer.write_jsonl", fail)
    with pytest.raises(Boom):
        write(run_of_text(), path)
    assert [file.name for file in tmp_path.iterdir()] == ["a.jsonl"]
    assert path.read_text() == "old\n"


def test_text_that_is_not_text_leaves_no_trace(tmp_path):
    with pytest.raises(lagging.DataError, match="surrogate"):
        Run.from_delays([[1]], source_length=[1], prediction=["\ud800"])
    run = Run.from_delays([[1]], source_length=[1], prediction=["a"])
    run = replace(run, prediction=np.array(["\ud800"], dtype=object))
    with pytest.raises(UnicodeEncodeError):
        write(run, tmp_path / "a.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_in_the_way(tmp_path):
    (tmp_path / "a.jsonl").mkdir()
    with pytest.raises(UsageError, match="cannot write"):
        write(run_of_text(), tmp_path / "a.jsonl")
    assert [file.name for file in tmp_path.iterdir()] == ["a.jsonl"]


def test_no_directory(tmp_path):
    with pytest.raises(UsageError, match=r"cannot write .*No such file or directory"):
        write(run_of_text(), tmp_path / "no" / "a.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_replaced(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("old\n")
    write(run_of_text(), path)
    assert len(read(path)) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["a.jsonl"]


def test_line_ends_are_the_same_on_every_system(tmp_path):
    write(run_of_text(), tmp_path / "a.jsonl")
    content = (tmp_path / "a.jsonl").read_bytes()
    assert b"\r" not in content
    assert content.endswith(b"}\n")


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes with names")
def test_a_pipe_is_written_into_and_not_replaced(tmp_path):
    """As /dev/null and /dev/stdout must not be replaced by a file."""
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(run_of_text(), pipe)
        assert pipe.is_fifo()
        assert os.read(reader, 10).startswith(b'{"id": 0')
    finally:
        os.close(reader)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_is_followed(tmp_path):
    (tmp_path / "real.jsonl").write_text("old\n")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    write(run_of_text(), tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert len(read(tmp_path / "real.jsonl")) == 2


def test_ids_are_numbers_again(tmp_path):
    run = run_of_text(id=np.array([3, 1]).tolist())
    back, _ = again(run, tmp_path, "simuleval")
    assert back.id.tolist() == [3, 1]


def test_ids_may_come_as_an_array():
    assert run_of_text(id=np.array([3, 1])).id.tolist() == [3, 1]


@pytest.mark.parametrize("form", ["simuleval", "omnisteval"])
def test_elapsed_times_that_decrease_are_named_and_not_written_where_they_would_be_a_fault(form, tmp_path):
    """simulstream counts the computing of each step alone; without the steps, such times are refused."""
    chunks = [(1.0, 0.9, ["▁a"]), (1.5, 0.1, ["▁b"])]
    lines = [{"id": 0, "metadata": {"wav_name": "a.wav"}}]
    lines += [
        {"id": 0, "total_audio_processed": t, "computation_time": c, "generated_tokens": new, "deleted_tokens": []}
        for t, c, new in chunks
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = read(tmp_path / "metrics.jsonl")
    assert run.elapsed.tolist() == [[1900, 1600]]
    lost = write(run, tmp_path / "a.log", format=form)
    assert "elapsed (it decreases, which is a fault without the steps)" in lost
    assert validate(tmp_path / "a.log", format=form).ok
    back = read(tmp_path / "a.log", format=form, unit="ms")
    assert back.elapsed is None
    assert back.delays == run.delays
    assert write(replace(run, elapsed=run.delays), tmp_path / "b.log", format=form).count("elapsed") == 0
    assert read(tmp_path / "b.log", format=form, unit="ms").elapsed == run.delays


@pytest.mark.parametrize("form", ["parquet", "arrow", "csv", "tsv"])
def test_tables_hold_what_was_given_beside_a_log(form, tmp_path):
    run = replace(run_of_text(), given=(("x", "talk.yaml"), ("t", "s")))
    assert write(run, tmp_path / f"run.{form}") == []
    assert read(tmp_path / f"run.{form}").given == run.given


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_transcripts_of_output_speech_are_named_as_a_loss(form, tmp_path):
    sound = Run.from_delays([[3, 4]], source_length=[6], unit="ms", durations=[[1, 1]], prediction=["a.wav"])
    heard = replace(sound, prediction=np.array(["guten Tag"], dtype=object), transcribed=True)
    assert [loss.split(" (")[0] for loss in write(heard, tmp_path / f"run.{form}")] == [
        "that the texts are transcripts"
    ]
    again = read(tmp_path / f"run.{form}")
    assert (again.speech_out, again.transcribed, again.has_text) == (True, False, False)
