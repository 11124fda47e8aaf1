# SPDX-License-Identifier: Apache-2.0
"""Reading: every variant of SimulEval's log, our own JSON lines, READ/WRITE strings; in one piece and in parts."""

from __future__ import annotations

import dataclasses
import gzip
import json
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest

import lagging
from lagging.errors import DataError, UsageError
from lagging.formats import ReadKeywords, ReadOptions, read, scan, segment_rows, source, validate, write
from lagging.scoring.plan import default_metrics

WAIT_3 = [3, 4, 5, 6, 6, 6]
ABSENT = object()


def dump(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def text_line(index: object = 0, **changes: Any) -> dict[str, Any]:
    record = {
        "index": index,
        "prediction": "a b c d e f",
        "delays": WAIT_3,
        "elapsed": [0] * 6,
        "prediction_length": 6,
        "reference": "a b c d e f\n",
        "source": "u v w x y z",
        "source_length": 6,
        **changes,
    }
    return {key: value for key, value in record.items() if value is not ABSENT}


def speech_line(index: int = 0, **changes: Any) -> dict[str, Any]:
    return text_line(
        index,
        **{
            "prediction": "1 second",
            "delays": [1000.0, 1000.0],
            "elapsed": [1000.46, 1000.46],
            "prediction_length": 2,
            "reference": "1 second",
            "source": ["test.wav", "samplerate: 22050 Hz", "channels: 1", "duration: 6.850 s"],
            "source_length": 6849.886621315192,
            **changes,
        },
    )


def speech_out_line(index: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "index": index,
        "prediction": f"wavs/{index}_pred.wav",
        "delays": [1000.0, 2000.0, 3000.0],
        "durations": [300.0, 400.0, 200.0],
        "prediction_offset": 1000.0,
        "elapsed": [],
        "intervals": [[1000.0, 300.0], [2000.0, 400.0], [3000.0, 200.0]],
        "prediction_length": 2.2,
        "source_length": 3000.0,
        "reference": "one two three four five",
        "source": "audio/0.wav",
        **changes,
    }


@pytest.fixture
def log(tmp_path):
    def write(content: str | bytes, name: str = "instances.log"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def faults(error: pytest.ExceptionInfo[DataError]) -> list[tuple[str, int | None, object, int | None]]:
    return [(fault.kind, fault.line, fault.segment, fault.token) for fault in error.value.faults]


def columns(run: lagging.Run) -> dict[str, Any]:
    return {**run.to_dict(), "line": run.line.tolist(), "unit": run.unit, "level": run.level}


# ---- SimulEval --------------------------------------------------------------------------------------------------


def test_text(log):
    run = read(log(dump(text_line(0), text_line(1, delays=[6] * 6))))
    assert (run.unit, run.level, run.origin.format, len(run)) == ("token", "word", "simuleval", 2)
    assert run.delays.tolist() == [WAIT_3, [6] * 6]
    assert run.source_length.tolist() == [6, 6]
    assert run.id.tolist() == [0, 1]
    assert run.line.tolist() == [1, 2]
    assert run.prediction.tolist() == ["a b c d e f"] * 2
    assert run.source.tolist() == ["u v w x y z"] * 2
    assert run.notes == ()
    assert "source_length is the number of source tokens" in run.origin.description


def test_a_reference_that_ends_in_a_newline_has_no_more_words(log):
    path = log(dump(text_line(0)))
    scores = lagging.score(read(path), ["AL(length=reference)", "BLEU"])
    assert scores["AL(length=reference)"].value == 3.0
    assert scores["BLEU"].value == pytest.approx(100)


def test_speech(log):
    run = read(log(dump(speech_line(0), speech_line(1))))
    assert (run.unit, run.level) == ("ms", "word")
    assert run.source.tolist() == ["test.wav"] * 2
    assert run.elapsed.tolist() == [[1000.46, 1000.46]] * 2
    assert run.source_length.tolist() == [6849.886621315192] * 2
    assert "speech → text, delays in ms (the source is sound)" in run.origin.description


@pytest.mark.parametrize("sound", ["a.wav", "b.FLAC", "dir/c.mp3"])
def test_the_path_of_a_sound_file_means_milliseconds(sound, log):
    run = read(log(dump(speech_line(0, source=sound, source_length=300, delays=[100, 300]))))
    assert run.unit == "ms"


def test_sound_that_is_measured_in_seconds(log):
    seconds = {"source_length": 6.85, "delays": [1.0, 6.85], "elapsed": [1.1, 7.0]}
    path = log(dump(speech_line(0, **seconds)))
    with pytest.raises(UsageError, match="these look like seconds"):
        read(path)
    assert read(path, unit="ms").delays.tolist() == [[1.0, 6.85]]
    assert read(log(dump(speech_line(0, **seconds), speech_line(1)))).unit == "ms"  # one that is short is short
    assert read(log(dump(speech_line(0, source_length=0, delays=[], elapsed=[], prediction="")))).unit == "ms"


def talk_in_seconds(**changes: Any) -> dict[str, Any]:
    """A talk of ten minutes, 2.5 words a second, in a log whose author wrote seconds."""
    times = [0.4 * place for place in range(1500)]
    said = {"prediction": "ja " * 1500, "delays": times, "elapsed": times, "source_length": 600.5}
    return speech_line(0, **{**said, **changes})


@pytest.mark.parametrize("source", [["talk.wav"], "talk.wav", None])
@pytest.mark.parametrize("text", ["ja " * 1500, "好" * 1500])
def test_talks_that_are_measured_in_seconds(source, text, log):
    path = log(dump(talk_in_seconds(source=source, prediction=text)))
    with pytest.raises(UsageError, match=r"as milliseconds, these would be 2498 (word|char)s a second") as error:
        read(path)
    assert "look like seconds" in str(error.value)
    assert read(path, unit="ms").source_length.tolist() == [600.5]


def test_talks_in_seconds_beside_a_configuration(log):
    path = log(dump(talk_in_seconds()))
    path.with_name("config.yaml").write_text("source_type: speech\n")
    with pytest.raises(UsageError, match="look like seconds"):
        read(path)


def test_a_fast_speaker_and_one_that_repeats_itself_are_not_in_seconds(log):
    fast = speech_line(0, prediction="ja " * 60, delays=[9000.0] * 60, elapsed=[], source_length=10000.5)  # 6 words/s
    loop = speech_line(1, prediction="ja " * 500, delays=[900.0] * 500, elapsed=[], source_length=900.5)
    chars = speech_line(0, prediction="x" * 250, delays=[9000.0] * 250, elapsed=[], source_length=10000.5)
    assert read(log(dump(fast, loop))).unit == "ms"
    assert (read(log(dump(chars))).unit, read(log(dump(chars))).level) == ("ms", "char")
    assert read(log(dump(speech_line(0, source_length=100.5, delays=[100.0] * 2)))).unit == "ms"


def test_speech_to_speech(log):
    run = read(log(dump(speech_out_line(0), speech_out_line(1))))
    assert (run.unit, run.level) == ("ms", "token")
    assert run.delays.tolist() == [[1000, 2000, 3000]] * 2
    assert run.durations.tolist() == [[300, 400, 200]] * 2
    assert run.elapsed is None
    assert "speech → speech" in run.origin.description
    assert run.notes == ()


def test_speech_to_speech_with_one_piece_is_not_one_word(log):
    one = {"delays": [1000.0], "durations": [300.0], "intervals": [[1000.0, 300.0]]}
    assert read(log(dump(speech_out_line(0, **one), speech_out_line(1, **one)))).level == "token"


def test_speech_to_speech_after_a_blank_line(log):
    one = {"delays": [1000.0], "durations": [300.0], "intervals": [[1000.0, 300.0]]}
    run = read(log("\n" + dump(speech_out_line(0, **one), speech_out_line(1, **one))))
    assert run.level == "token"
    assert "speech → speech" in run.origin.description


SPEECH = dump(speech_out_line(0), speech_out_line(1))


@pytest.mark.parametrize("format", ["simuleval", "jsonl", "csv", "tsv", "parquet", "arrow"])
def test_speech_stays_speech_in_every_format_that_can_hold_it(format, log, tmp_path):
    path = tmp_path / f"out.{format}"
    assert lagging.write(read(log(SPEECH)), path, format=format) == []
    for part in scan(path, columns=[]):  # as `lagging score` reads it
        assert "speech → speech" in part.origin.description
        assert (part.level, part.prediction) == ("token", None)
    with pytest.raises(lagging.MetricError, match="no predictions whose text could be judged"):
        lagging.score(read(path), ["BLEU"])


@pytest.mark.parametrize("format", ["omnisteval", "simulstream", "sltev", "fairseq", "text"])
def test_speech_is_not_written_where_it_would_be_text(format, log, tmp_path):
    with pytest.raises(UsageError, match=rf"{format} holds text, and what this Run has written is speech"):
        lagging.write(read(log(SPEECH)), tmp_path / "out", format=format)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format", ["simuleval", "jsonl", "csv", "parquet"])
def test_predictions_that_are_sound_files_are_speech_without_durations_too(format, log, tmp_path):
    lines = [{**speech_out_line(i), "durations": ABSENT} for i in range(2)]
    lines.append({**speech_out_line(2), "durations": ABSENT, "delays": [], "prediction": ""})
    path = log(dump(*({k: v for k, v in line.items() if v is not ABSENT} for line in lines)))
    for _ in range(2):
        run = read(path)
        assert (run.level, run.speech_out, run.durations) == ("token", True, None)
        assert "speech → speech" in run.origin.description
        assert "BLEU" not in default_metrics(run)
        with pytest.raises(lagging.MetricError, match="no predictions whose text could be judged"):
            lagging.score(run, ["BLEU"])
        lagging.write(run, path := tmp_path / f"again.{format}", format=format)


@pytest.mark.parametrize("word", ["durations", "intervals"])
@pytest.mark.parametrize("where", ["prediction", "reference", "source", "tag", "tags", "meta"])
def test_a_word_of_the_first_line_does_not_make_a_text_log_a_speech_log(word, where, log):
    said = {"tags": [word], "meta": {word: [1]}}.get(where, word)
    first = text_line(0, **{"delays": [6], "prediction": "a", where: said})
    run = read(log(dump(first, text_line(1))))
    assert (run.level, run.speech_out) == ("word", False)
    assert "→ text" in run.origin.description
    assert lagging.score(run, ["BLEU"])["BLEU"].value > 0


def test_a_durations_key_of_a_later_line_makes_a_speech_log(log):
    first = {k: v for k, v in speech_out_line(0, delays=[], prediction="").items() if k != "durations"}
    assert read(log(dump(first, speech_out_line(1)))).speech_out


@pytest.mark.parametrize("word", ["emission_cu", "seg", "docid", "segid", "model_loading_time"])
def test_a_word_of_the_first_line_does_not_change_the_format(word, log):
    run = read(log(dump(text_line(0, prediction=word, delays=[6], source=word, source_length=1, tags=["segid", word]))))
    assert (run.origin.format, run.level, len(run)) == ("simuleval", "word", 1)


@pytest.mark.parametrize("text", ["a b c d e f", "我用中文字母"])
def test_one_of_two_lines_with_delays_too_many_is_the_fault(text, log):
    path = log(dump(text_line(0, prediction=text), text_line(1, prediction=text, delays=[*WAIT_3, 6, 6])))
    with pytest.raises(DataError, match="8 delays, 6 ") as error:
        read(path)
    assert faults(error) == [("token-count", 2, 1, None)]
    assert read(path, level="token").level == "token"  # if these are the log's own tokens, one can say so


def test_a_line_with_delays_for_spaces_and_one_of_words_are_no_level(log):
    path = log(
        dump(text_line(0, prediction="我用 B", delays=[3] * 4), text_line(1, prediction="so what", delays=[3] * 2))
    )
    assert read(path).level == "token"


def test_simuleval_1_0(log):
    old = text_line(
        0,
        prediction="a b c d e f </s>",
        delays=[*WAIT_3, 6],
        elapsed=[0] * 7,
        prediction_length=7,
        reference_length=7,
        metric={"sentence_bleu": 100.0, "latency": {"AL": 3.0}},
    )
    run = read(log(dump(old, {**old, "index": 1})))
    assert run.level == "word"
    assert run.eos.tolist() == [True, True]
    scores = lagging.score(run, ["AL", "DAL", "AP"])
    assert [score.value for score in scores] == [3.0, 3.0, pytest.approx(5 / 6)]
    assert scores["DAL"].signature["eos"] == "stripped"


def test_simuleval_1_0_with_its_own_tokens_counts_the_references_itself(log):
    """Sub-word delays: the log's reference_length is in the same tokens."""
    old = text_line(0, delays=[1, 2, 3, 4, 5, 6, 6, 6], elapsed=[0] * 8, reference_length=4)
    run = read(log(dump(old)))
    assert run.level == "token"
    assert run.reference_length.tolist() == [4]
    assert [note.kind for note in run.notes] == ["tokens"]
    # γ = 4/6: Σ over the first six of g(t) − (t−1)·6/4, over 6
    expected = np.mean([t + 1 - t * 1.5 for t in range(6)])
    assert lagging.score(run, ["AL(length=reference)"])["AL(length=reference)"].value == pytest.approx(expected)


def test_simuleval_1_1_0(log):
    run = read(log(dump(text_line(0, metric={}), text_line(1, metric={}))))
    assert lagging.score(run, ["DAL"])["DAL"].value == 3.0


def test_prediction_spm(log):
    pieces = text_line(0, prediction_spm="▁a ▁b ▁c ▁d ▁e ▁f")
    assert read(log(dump(pieces))).level == "word"


def test_keys_in_any_order_and_keys_that_nobody_knows(log):
    expected = columns(read(log(dump(text_line(0), text_line(1)))))
    turned = [dict(reversed({**text_line(i), "x": {"delays": [9]}, "y": [None]}.items())) for i in (0, 1)]
    assert columns(read(log(dump(*turned)))) == expected


def test_every_key_given_twice_is_told(log):
    twice = dump(text_line(0)).replace('{"index": 0,', '{"index": 9, "delays": "x", "index": 0,')
    found = [(fault.kind, fault.detail) for fault in validate(log(twice)).faults]
    assert found == [("repeated-key", '"index"'), ("repeated-key", '"delays"')]


@pytest.mark.parametrize(("kind", "unit"), [("text", "token"), ("speech", "ms")])
def test_config_yaml_decides_the_unit(kind, unit, log):
    log(f"source_type: {kind}\ntarget_type: text\n", "config.yaml")
    run = read(log(dump(text_line(0))))
    assert run.unit == unit
    assert "says config.yaml" in run.origin.description


def test_config_yaml_is_for_simuleval_logs_only(log):
    log("source_type: speech\n", "config.yaml")
    assert read(log('{"delays": [1, 2], "source_length": 2}\n', "a.jsonl")).unit == "token"


def test_the_unit_given_wins(log):
    log("source_type: speech\n", "config.yaml")
    run = read(log(dump(text_line(0))), unit="token")
    assert run.unit == "token"
    assert "(as given)" in run.origin.description


def test_a_broken_config_yaml(log):
    log("source_type: [\n", "config.yaml")
    path = log(dump(text_line(0)))
    with pytest.raises(UsageError, match=r"config\.yaml is not readable YAML"):
        read(path)
    assert read(path, unit="token").unit == "token"


@pytest.mark.parametrize(
    ("lengths", "unit"), [([6, 400], "token"), ([6, 401], "ms"), ([600.5, 7], "ms"), ([300.0, 399.0], "token")]
)
def test_a_unit_guessed_is_a_unit_announced(lengths, unit, log):
    run = read(log(dump(*({"delays": [1], "source_length": x} for x in lengths)), "a.jsonl"))
    assert run.unit == unit
    assert "guessed from the numbers; --unit" in run.origin.description


# ---- where logs are ---------------------------------------------------------------------------------------------


def test_a_directory(log):
    log(dump(text_line(0)), "wait-3/instances.log")
    path = log("x", "wait-3/scores.tsv").parent
    run = read(path)
    assert (run.name, len(run)) == ("wait-3", 1)
    assert run.origin.path == str(path / "instances.log")


def test_a_directory_with_one_log_of_another_name(log):
    assert read(log(dump(text_line(0)), "d/out.jsonl").parent).name == "out"


def test_instances_log_wins_over_other_logs(log):
    log(dump(text_line(0)), "d/debug.log")
    assert len(read(log(dump(text_line(0), text_line(1)), "d/instances.log").parent)) == 2


def test_a_directory_without_a_log(tmp_path):
    with pytest.raises(UsageError, match=r"holds no instances\.log, and nothing else in it is .* a log; name the file"):
        read(tmp_path)


def test_the_streams_of_a_directory_are_recordings_of_one_system(tmp_path):
    folder = tmp_path / "beam-5"
    folder.mkdir()
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text("1500.0 0 1200  good\n2600.0 1200 2400  morning\n")
    (folder / "gold.tsv").write_text("0.1\t0.4\tgood\n")
    (folder / "debug.log").write_text("loading\n")
    run = read(folder)
    assert (run.document.tolist(), run.name) == (["a", "b"], "beam-5")
    assert "each as a recording of it" in str(next(note for note in run.notes if note.kind == "several files"))
    (folder / "b.txt").unlink()
    assert read(folder).document.tolist() == ["a"]


def test_a_directory_of_several_logs_names_the_glob(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(dump(text_line(len(name) + ord(name[0]))))
    with pytest.raises(UsageError, match=r"several logs \(a\.txt, b\.txt\); name the file, or quote a glob") as error:
        read(tmp_path)
    glob = str(error.value).split("'")[1]
    assert len(read(glob)) == 2


def test_a_glob(log):
    log(dump(text_line(2)), "b.log")
    path = log(dump(text_line(0), text_line(1)), "a.log")
    run = read(str(path.with_name("?.log")))
    assert run.id.tolist() == [0, 1, 2]
    assert run.line.tolist() == [1, 2, 1]


def test_a_glob_of_directories(log):
    log(dump(text_line(1)), "part-2/instances.log")
    path = log(dump(text_line(0)), "part-1/instances.log")
    assert read(str(path.parent.with_name("part-*"))).id.tolist() == [0, 1]


def test_a_file_whose_name_looks_like_a_glob(log):
    assert len(read(log(dump(text_line(0)), "a[1].log"))) == 1


def test_several_paths(log):
    paths = [log(dump(text_line(7)), "z.log"), str(log(dump(text_line(3)), "a.log"))]
    assert read(paths).id.tolist() == [7, 3]


def test_several_paths_share_no_index(log):
    with pytest.raises(DataError) as error:
        read([log(dump(text_line(7)), "z.log"), log(dump(text_line(3), text_line(7)), "a.log")])
    assert faults(error) == [("id-in-two-files", 2, 7, None)]


def test_no_paths():
    with pytest.raises(UsageError):
        read([])


def test_no_such_file(tmp_path):
    with pytest.raises(UsageError, match="no such file or directory"):
        read(tmp_path / "nowhere.log")


@pytest.mark.parametrize("given", ["foo", "words"])
def test_a_level_that_does_not_exist(given, log):
    with pytest.raises(UsageError, match=given):
        read(log(dump(text_line(0))), level=given)


def test_a_unit_that_does_not_exist(log):
    with pytest.raises(UsageError, match="seconds"):
        read(log(dump(text_line(0))), unit="seconds")


def test_gzip(log):
    text = dump(text_line(0), text_line(1))
    plain = columns(read(log(text)))
    assert columns(read(log(gzip.compress(text.encode()), "instances.log.gz"))) == plain
    # known by its content, not by its name; two members are one file
    both = gzip.compress(dump(text_line(0)).encode()) + gzip.compress(dump(text_line(1)).encode())
    assert columns(read(log(both, "packed"))) == plain


def test_the_name_of_a_system(log):
    text = dump(text_line(0))
    assert read(log(text, "base/instances.log")).name == "base"
    assert read(log(gzip.compress(text.encode()), "base/instances.log.gz")).name == "base"
    assert read(log(text, "new.jsonl")).name == "new"
    assert read(log(text), name="other").name == "other"


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_standard_input(packed, tmp_path):
    text = dump(*(text_line(i) for i in range(2000))).encode()
    code = (
        "import lagging; run = lagging.read('-');"
        "print(len(run), run.name, run.origin.path, run.unit, int(run.line[-1]), float(run.delays[9].mean()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=gzip.compress(text) if packed else text,
        capture_output=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.stderr == b""
    assert done.stdout.split() == b"2000 stdin <stdin> token 2000 5.0".split()


# ---- our own JSON lines -----------------------------------------------------------------------------------------


def test_the_smallest_jsonl(log):
    run = read(log('{"delays": [4, 4, 4, 4, 5], "source_length": 5}\n', "a.jsonl"))
    assert (run.origin.format, run.unit, run.level) == ("jsonl", "token", "token")
    assert run.id.tolist() == [0]
    assert (run.prediction, run.reference, run.source, run.elapsed) == (None, None, None, None)
    assert lagging.score(run, ["DAL"])["DAL"].value == 4.0


@pytest.mark.parametrize("key", ["id", "index"])
def test_jsonl_ids(key, log):
    text = dump({key: "x", "delays": [1], "source_length": 1}, {key: "y", "delays": [1], "source_length": 1})
    assert read(log(text, "a.jsonl")).id.tolist() == ["x", "y"]


def test_jsonl_unit(log):
    run = read(log('{"delays": [1, 2], "source_length": 2, "unit": "ms"}\n', "a.jsonl"))
    assert run.unit == "ms"
    assert "says the log" in run.origin.description


def test_jsonl_documents(log):
    text = dump(*({"delays": [1], "source_length": 1, "document": d} for d in ("talk", 7, None)))
    assert read(log(text, "a.jsonl")).document.tolist() == ["talk", "7", None]


def test_jsonl_with_a_prediction_is_checked_against_it(log):
    with pytest.raises(DataError) as error:
        read(
            log(
                dump(*({"delays": [1, 2], "source_length": 2, "prediction": t} for t in ("a b", "c d", "e"))), "a.jsonl"
            )
        )
    assert faults(error) == [("token-count", 3, 2, None)]


def test_an_id_that_comes_late_is_not_called_missing(log, monkeypatch):
    """Line 1 has no id and line 2 has one: "no `index`" cannot be what is wrong with line 2."""
    path = log('{"delays": [1], "source_length": 1}\n{"id": 7, "delays": [1], "source_length": 1}\n', "a.jsonl")
    with pytest.raises(DataError) as error:
        read(path)
    assert faults(error) == [("missing-id", 1, None, None)]
    monkeypatch.setattr(source, "BATCH_BYTES", 10)
    with pytest.raises(DataError) as error:
        read(path)
    assert ("missing-id", 2, 7, None) not in faults(error)


# ---- READ/WRITE strings -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "delays", "length"),
    [
        ("RRRRWWWWRW", [4, 4, 4, 4, 5], 5),
        ("R R R R W W W W R W", [4, 4, 4, 4, 5], 5),
        ("rrrrwwwwrw", [4, 4, 4, 4, 5], 5),
        ("R\tr  W w", [2, 2], 2),
        ("RWRRR", [1], 4),
        ("RRR", [], 3),
        ("W", [0], 0),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_read_write_strings(line, delays, length, end, log):
    run = read(log(line + end, "a.rw"))
    assert run.origin.format == "rw"
    assert run.delays.tolist() == [delays]
    assert run.source_length.tolist() == [length]


def test_a_blank_line_between_actions_is_an_empty_segment(log):
    run = read(log("RW\n\nRRW\n", "a.rw"))
    assert run.delays.tolist() == [[1], [], [2]]
    assert run.id.tolist() == [0, 1, 2]
    assert [note.kind for note in run.notes] == ["empty hypothesis", "empty source"]


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ("RRXWW", "'X' at column 3"),
        ("R R , W", "',' at column 5"),
        ("RéWW", "'é' at column 2"),
        ("RW…R…", "'…' at column 3"),
    ],
)
def test_a_character_that_is_no_action(line, detail, log):
    with pytest.raises(DataError) as error:
        read(log(f"RRW\n{line}\nRW\n", "a.rw"))
    assert faults(error) == [("not-an-action", 2, 1, None)]
    assert error.value.faults[0].detail == detail


def test_a_byte_that_is_no_text_among_actions(log):
    with pytest.raises(DataError) as error:
        read(log(b"RRW\nR\xe9W\n", "a.rw"))
    assert faults(error) == [("not-an-action", 2, 1, None)]
    assert error.value.faults[0].detail.endswith("at column 2")


def test_read_write_strings_with_a_byte_order_mark(log):
    run = read(log(b"\xef\xbb\xbfRRW\n", "a.rw"))
    assert run.delays.tolist() == [[2]]
    assert [note.kind for note in run.notes] == ["byte order mark"]


def test_two_files_of_actions_are_numbered_through(log):
    assert read([log("RW\nRW\n", "a.rw"), log("RRW\n", "b.rw")]).delays.tolist() == [[1], [1], [2]]


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ({"unit": "token"}, {"unit": "ms"}, "mixed-unit"),
        ({"level": "word"}, {"level": "char"}, "mixed-level"),
        ({"seg": "given"}, {}, "mixed-seg"),
        ({"prediction": "a b"}, {"level": "word"}, "missing-prediction"),
    ],
)
def test_two_files_that_do_not_belong_together(one, other, kind, log):
    line = {"delays": [1, 2], "source_length": 3}
    paths = [log(dump({**line, **said, "id": i}), f"{i}.jsonl") for i, said in enumerate((one, other))]
    with pytest.raises(DataError) as error:
        read(paths)
    assert [fault.kind for fault in error.value.faults] == [kind]
    assert str(paths[0]) in str(error.value)
    assert str(paths[1]) in str(error.value)
    assert [fault.kind for fault in validate(paths).faults] == [kind]


# ---- recognising ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (dump(text_line()), "simuleval"),
        (dump(text_line(prediction_length=ABSENT)), "simuleval"),
        (dump(speech_out_line()), "simuleval"),
        ('{"delays": [1], "source_length": 1}\n', "jsonl"),
        ('\n \n  {"delays": [1], "source_length": 1}\n', "jsonl"),
        ("RRW\n", "rw"),
        ("\n\nR R W\n", "rw"),
    ],
)
def test_formats_are_recognised_by_content(content, format, log):
    assert read(log(content, "any.thing")).origin.format == format


def test_the_format_given_wins(log):
    path = log(dump(text_line()))
    assert read(path, format="jsonl").origin.format == "jsonl"
    with pytest.raises(DataError) as error:
        read(path, format="rw")
    assert error.value.faults[0].kind == "not-an-action"
    with pytest.raises(DataError) as error:
        read(log("RRW\n", "a.rw"), format="jsonl")
    assert error.value.faults[0].kind == "not-json"


def test_a_format_that_does_not_exist(log):
    with pytest.raises(UsageError, match=r"no format is called 'simulevel'. Did you mean simuleval\?"):
        read(log(dump(text_line())), format="simulevel")


def test_a_format_that_is_not_recognised(log):
    with pytest.raises(UsageError) as error:
        read(log("hello\n", "a.txt"))
    said = str(error.value)
    assert "is not recognised; it begins: 'hello'" in said
    assert "Known formats: simuleval, omnisteval, simulstream, " in said
    assert "format=" in said


def test_a_file_that_begins_with_many_blank_lines(log, monkeypatch):
    monkeypatch.setattr(source, "BATCH_BYTES", 4)
    assert len(read(log("\n" * 20 + dump(text_line())))) == 1


# ---- in parts ---------------------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(segment_rows, "SAMPLE", 1)
    monkeypatch.setattr(segment_rows, "SEGMENTS_PER_PART", 3)
    monkeypatch.setattr(source, "BATCH_BYTES", 200)


def several(n: int) -> str:
    """Lines that differ: lengths, empty hypotheses, delays beyond the source, references null."""
    records = []
    for i in range(1, n + 1):
        words = list("abcdef"[: i % 7])
        delays = WAIT_3[: len(words)] if i % 5 else [9] * len(words)
        reference = None if i % 4 == 3 else "" if i % 4 == 2 else "a b c"
        changes = {"elapsed": [0] * len(words), "prediction_length": len(words), "reference": reference}
        records.append(text_line(i, prediction=" ".join(words), delays=delays, **changes))
    return dump(*records)


LATE = [
    ({"prediction": "a b"}, "prediction"),
    ({"reference": "c"}, "reference"),
    ({"elapsed": [2, 3]}, "elapsed"),
    ({"source": "d"}, "source"),
    ({"document": "e"}, "document"),
    ({"offset": 5}, "offset"),
    ({"durations": [1, 2]}, "durations"),
]


@pytest.mark.parametrize(("late", "column"), LATE, ids=lambda part: part if isinstance(part, str) else "")
@pytest.mark.parametrize("nothing", [ABSENT, None])
def test_what_comes_late_is_told(late, column, nothing, log, small):
    """What a log is, is settled by its first lines; what they do not have is not read, and not passed over either."""
    line = {"delays": [1, 2], "source_length": 3, "unit": "ms"}
    blank = {} if nothing is ABSENT else {column: None}
    path = log(dump(*({**line, **(late if i in (7, 9) else blank), "id": i} for i in range(12))))
    run = read(path)
    assert [str(note) for note in run.notes] == [
        f"column left out: 2 segments (7, 9): {column}: not in the first 1 rows"
    ]
    assert getattr(run, column) is None
    wanted = scan(path, columns=[])
    told = [note for part in wanted for note in part.notes]
    assert bool(told) == (column in ("prediction", "reference", "elapsed", "offset"))  # the others are not asked for


def test_a_unit_that_comes_late_and_is_another_is_a_fault(log, small):
    lines = [{"delays": [1, 2], "source_length": 3, "id": i} for i in range(9)]
    assert len(read(log(dump(*lines[:-1], {**lines[-1], "unit": "token"})))) == 9
    with pytest.raises(DataError, match=r"ms, not token"):
        read(log(dump(*lines[:-1], {**lines[-1], "unit": "ms"})))


METRICS = ["AP", "AL", "LAAL", "DAL", "AL(length=reference)", "BLEU", "CW"]


@pytest.mark.parametrize("n", [1, 3, 4, 12, 13])
def test_parts_add_up_to_the_whole(n, log, monkeypatch):
    path = log(several(n))
    whole, scores = read(path), lagging.score(read(path), METRICS)
    monkeypatch.setattr(segment_rows, "SAMPLE", 1)
    monkeypatch.setattr(segment_rows, "SEGMENTS_PER_PART", 3)
    monkeypatch.setattr(source, "BATCH_BYTES", 10)
    parts = list(scan(path))
    assert len(parts) == -(-n // 3)
    joined = lagging.Run.concat(parts)
    assert columns(joined) == columns(whole)
    assert set(joined.notes) == set(whole.notes)
    again = lagging.score(scan(path), METRICS)
    for name in METRICS:
        assert again[name].value == pytest.approx(scores[name].value, nan_ok=True)
        assert again[name].signature == scores[name].signature
        assert again[name].undefined.reasons == scores[name].undefined.reasons
        np.testing.assert_array_equal(again[name].segments, scores[name].segments)
    assert set(again.notes) == set(scores.notes)


@pytest.mark.usefixtures("small")
def test_read_write_strings_in_parts(log):
    lines = ["R" * (i % 9 + 1) + "W" * (i % 4) for i in range(200)]
    path = log("\n".join(lines) + "\n", "a.rw")
    assert len(list(scan(path))) > 1
    run = read(path)
    assert run.id.tolist() == list(range(200))
    assert run.delays.tolist() == [[i % 9 + 1] * (i % 4) for i in range(200)]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("ids", [list(range(10)), list("abcdefghij"), [5, 3, 9, 1, 0, 2, 4, 8, 7, 6]])
def test_duplicates_across_parts(ids, log):
    found = validate(log(dump(*map(text_line, [*ids, ids[1], ids[9]])))).faults
    assert [(f.kind, f.line, f.segment) for f in found] == [("duplicate-id", 11, ids[1]), ("duplicate-id", 12, ids[9])]
    assert found[0].detail.endswith("instances.log:2")


@pytest.mark.usefixtures("small")
def test_a_number_and_a_string_across_parts(log):
    with pytest.raises(DataError) as error:
        read(log(dump(*map(text_line, [0, 1, 2, 3, "1", 5, 6]))))
    assert [(fault.kind, fault.line) for fault in error.value.faults] == [("duplicate-id", 5)]


@pytest.mark.usefixtures("small")
def test_a_duplicate_within_and_across_parts_is_counted_once(log):
    found = validate(log(dump(*map(text_line, [0, 5, 1, 5, 5, 6]))))
    assert [fault.line for fault in found.faults] == [4, 5]
    assert found.counts == {"duplicate-id": 2}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("keep", ["first", "last"])
def test_repairing_duplicates_across_parts(keep, log):
    text = dump(*map(text_line, range(7)), text_line(1, delays=[6] * 6), text_line(4, delays=[6] * 6))
    (run,) = scan(log(text), repair=[keep])
    assert sorted(run.id.tolist()) == list(range(7))
    assert dict(run.repaired) == {keep: 2}
    assert lagging.score(run, ["DAL"])["DAL"].value == pytest.approx(3.0 if keep == "first" else 27 / 7)


@pytest.mark.usefixtures("small")
def test_a_fault_in_the_last_part(log):
    parts = scan(log(several(10) + dump(text_line(0, delays=[6, 5, 4, 3, 2, 1]))))
    with pytest.raises(DataError) as error:
        list(parts)
    assert faults(error) == [("decreasing-delays", 11, 0, 2)]


@pytest.mark.usefixtures("small")
def test_faults_of_all_parts_at_once(log):
    bad = [text_line(i, delays=[6, 5, 4, 3, 2, 1]) if i % 4 == 0 else text_line(i) for i in range(12)]
    with pytest.raises(DataError) as error:
        read(log(dump(*bad)))
    assert faults(error) == [("decreasing-delays", i + 1, i, 2) for i in (0, 4, 8)]


@pytest.mark.parametrize("end", ["blank line", "byte order mark"])
def test_notes_are_not_lost_where_a_part_ends(end, log, monkeypatch):
    text = dump(*map(text_line, range(3))).encode()
    path = log(b"\xef\xbb\xbf" + text if end == "byte order mark" else text + b"\n")
    expected = read(path).notes
    assert [note.kind for note in expected] == [end]
    monkeypatch.setattr(segment_rows, "SEGMENTS_PER_PART", 3)
    assert read(path).notes == expected
    monkeypatch.setattr(source, "BATCH_BYTES", 10)
    assert read(path).notes == expected


def test_blank_lines_are_counted_in_all_batches(log, monkeypatch):
    path = log("\n".join(json.dumps(text_line(i)) + "\n" for i in range(10)))
    assert [str(note) for note in read(path).notes] == [f"blank line: 9 lines: skipped, in {path}"]
    monkeypatch.setattr(source, "BATCH_BYTES", 200)
    assert [str(note) for note in read(path).notes] == [f"blank line: 9 lines: skipped, in {path}"]


@pytest.mark.parametrize("key", ["reference", "elapsed", "reference_length", "source"])
def test_a_key_that_a_whole_part_lacks(key, log, monkeypatch):
    """However a log is cut, it reads the same, and so do its scores."""
    text = dump(
        *(text_line(i, reference_length=6) for i in range(3)),
        *(
            text_line(i, **{key: ABSENT, **({} if key == "reference_length" else {"reference_length": 6})})
            for i in (3, 4, 5)
        ),
    )
    path = log(text)

    def outcome() -> object:
        try:
            run = read(path)
            scores = lagging.score(scan(path), ["AL", "AL(length=reference)", "LAAL"])
        except lagging.LaggingError as error:
            return str(error)
        return columns(run), [(str(s.signature), s.value) for s in scores]

    expected = outcome()
    monkeypatch.setattr(segment_rows, "SEGMENTS_PER_PART", 3)
    monkeypatch.setattr(source, "BATCH_BYTES", 10)
    assert outcome() == expected


def test_scan_keeps_ids_and_no_tokens(log, monkeypatch):
    def generate(n: int) -> bytes:
        words, delays = " ".join(["word"] * 40), list(range(1, 41))
        line = text_line(ABSENT, prediction=words, delays=delays, elapsed=[0] * 40, source=words, reference=words)
        body = json.dumps({**line, "source_length": 40})[1:]
        return "".join(f'{{"index": {i}, {body}\n' for i in range(n)).encode()

    def peak(n: int) -> tuple[int, int]:
        content = generate(n)
        path = log(content)
        tracemalloc.start()
        try:
            count = sum(len(part) for part in scan(path, columns=()))
            return tracemalloc.get_traced_memory()[1], count
        finally:
            tracemalloc.stop()

    monkeypatch.setattr(segment_rows, "SEGMENTS_PER_PART", 512)
    monkeypatch.setattr(segment_rows, "SAMPLE", 100)
    few, _ = peak(2_000)
    many, count = peak(20_000)
    size = 20_000 * (40 * (24 + 8) + 3 * 250)  # numbers and texts as Python holds them
    assert count == 20_000
    assert many < size / 10
    assert many - few < 64 * 18_000  # ids and line numbers


# ---- what a target token is -------------------------------------------------------------------------------------

CHINESE = ["今天天气很好", "我们去公园吧"]


def test_characters(log):
    run = read(log(dump(*(text_line(i, prediction=t, reference=t) for i, t in enumerate(CHINESE)))))
    assert run.level == "char"
    assert run.notes == ()
    scores = lagging.score(run, ["AL(length=reference)", "DAL"])
    assert [score.value for score in scores] == [3.0, 3.0]
    assert scores["DAL"].signature["level"] == "char"


def test_characters_with_spaces_between_some(log):
    run = read(log(dump(text_line(0, prediction="今天 天气 很好"), text_line(1, prediction=CHINESE[1]))))
    assert run.level == "char"


# SimulEval leaves out the plain space and no other, OmniSTEval leaves out none
@pytest.mark.parametrize("first", ["今天。\u3000很好", "今 天。\u00a0很好", "用 B 很好"])
@pytest.mark.parametrize("second", ["我们去公园吧", "第 二 很好"])
def test_white_space_that_is_counted_among_characters(first, second, log):
    path = log(dump(text_line(0, prediction=first), text_line(1, prediction=second)))
    run = read(path)
    assert (run.level, run.delays.lengths.tolist()) == ("char", [6, 6])
    spaced = 1 + (" " in second)
    assert [(note.kind, note.count) for note in run.notes] == [("white space", spaced)]
    assert lagging.score(run, ["DAL"])["DAL"].value == 3.0
    again = path.with_name("again.log")
    assert write(run, again) == []
    assert read(again).delays.tolist() == run.delays.tolist()


@pytest.mark.parametrize("text", ["今天很好", "今天 很好", "今天 很</s>"])
def test_white_space_excuses_no_other_number_of_characters(text, log):
    with pytest.raises(DataError) as error:
        read(log(dump(text_line(0, prediction=text), *(text_line(i, prediction=CHINESE[0]) for i in (1, 2)))))
    assert faults(error) == [("token-count", 1, 0, None)]


def test_omnisteval_leaves_out_a_length_that_is_not_above_0(log):
    whole = {"index": 0, "docid": 0, "segid": 0, "prediction": "a b", "reference": "a b", "source_length": 3000.0}
    empty = {"index": 1, "docid": 0, "segid": 1, "prediction": "c", "reference": "c", "emission_cu": [500.0]}
    run = read(log(dump({**whole, "emission_cu": [1000.0, 3000.0]}, empty), "a.jsonl"))
    assert run.source_length.tolist() == [3000, 0]
    assert lagging.score(run, ["DAL"])["DAL"].undefined == 1
    untimed = {key: value for key, value in empty.items() if key != "emission_cu"}
    with pytest.raises(DataError) as error:
        read(log(dump({**whole, "emission_cu": [1000.0, 3000.0]}, untimed), "a.jsonl"))
    assert [kind for kind, *_ in faults(error)] == ["missing-delays", "missing-source-length"]


def test_an_end_mark_among_characters(log):
    marked = {"delays": [*WAIT_3, 6], "elapsed": [0] * 7}
    run = read(log(dump(*(text_line(i, prediction=t + "</s>", **marked) for i, t in enumerate(CHINESE)))))
    assert run.level == "char"
    assert lagging.score(run, ["DAL", "AL"])["AL"].value == 3.0
    assert lagging.score(run, ["AP"])["AP"].value == pytest.approx(5 / 6)


def test_an_end_mark_glued_to_the_last_word_has_no_delay_of_its_own(log):
    run = read(log(dump(text_line(0, prediction="a b c d e f</s>"))))
    assert run.level == "word"
    scores = lagging.score(run, ["AP", "AL", "DAL", "BLEU"])
    assert [score.value for score in scores] == [pytest.approx(v) for v in (5 / 6, 3, 3, 100)]


def test_tokens(log):
    run = read(log(dump(text_line(0, prediction="ab cd"), text_line(1, prediction="abc de f ghi jk"))))
    assert run.level == "token"
    assert [note.kind for note in run.notes] == ["tokens"]
    assert "delays match neither words nor characters; they are taken to be the log's own tokens" in str(run.notes[0])


def test_tokens_with_one_delay_too_many(log):
    more = {"delays": [*WAIT_3, 6], "elapsed": [0] * 7}
    run = read(log(dump(text_line(0, **more), text_line(1, **more))))
    assert "one more than words, is </s> still among them?" in str(run.notes[0])


def test_the_level_given_wins(log):
    path = log(dump(text_line(0)))
    assert read(path, level="token").level == "token"
    with pytest.raises(DataError) as error:
        read(log(dump(text_line(0, prediction="ab cd ef gh ij kl"))), level="char")
    assert error.value.faults[0].detail == "6 delays, 12 chars"


def test_one_line_too_short_does_not_change_the_level(log):
    with pytest.raises(DataError) as error:
        read(log(dump(*map(text_line, range(5)), text_line(5, prediction="a b"))))
    assert faults(error) == [("token-count", 6, 5, None)]


@pytest.mark.parametrize("text", ["今天天气很好", "きょうはいい天気です", "วันนี้อากาศดี", "ថ្ងៃនេះ", "ມື້ນີ້"])
def test_scripts_without_spaces_by_words(text, log):
    one = {"delays": [6], "elapsed": [0], "prediction": text, "reference": text}
    run = read(log(dump(text_line(0, **one), text_line(1, **one))), level="word")
    assert [note.kind for note in run.notes] == ["SCRIPT WITHOUT SPACES"]
    assert "log a delay per character" in str(run.notes[0])


def test_a_foreign_name_is_no_script_without_spaces(log):
    assert read(log(dump(text_line(0, prediction="he said 你好 to the crowd")))).notes == ()


def test_sentences_that_an_agent_failed_on_are_told(tmp_path):
    path = tmp_path / "instances.log"
    lines = [
        {"index": 0, "prediction": "a b", "delays": [1, 2], "source_length": 2},
        {"index": 1, "prediction": "", "delays": [], "source_length": 2, "failed": "the agent raised: ValueError: no"},
        {"index": 2, "prediction": "", "delays": [], "source_length": 2, "failed": "the agent raised: KeyError: 1"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    notes = [str(note) for note in lagging.read(path).notes if note.kind == "failed"]
    assert notes == ["failed: 2 segments (1, 2): the agent raised; nothing of it counts"]


# ---- options ----------------------------------------------------------------------------------------------------


def test_every_read_option_is_a_keyword_of_the_functions_that_read():
    fields = {field.name for field in dataclasses.fields(ReadOptions)} | {"spm_model"}
    assert set(ReadKeywords.__annotations__) == fields - {"columns", "needs_length"}  # which nobody chooses for a log


def test_an_option_that_does_not_exist(tmp_path):
    for function in (read, scan, validate, lagging.merge, lagging.scoring.log.score_files):
        with pytest.raises(TypeError, match="Did you mean level"):
            function(tmp_path, levle="word")


def test_one_name_stands_for_a_list_of_one():
    options = ReadOptions.make(repair="clip", strip="eos", group_by="lang")
    assert (options.repair, options.strip, options.group_by) == (("clip",), ("eos",), ("lang",))
