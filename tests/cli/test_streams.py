# SPDX-License-Identifier: Apache-2.0
"""Event streams on the command line: each dialect from a file to scores and a timeline, and back out again."""

import json

import pytest

import lagging


def deepgram(time, text, final, start, duration):
    words = [{"word": word, "start": start, "end": start + duration} for word in text.split()]
    channel = {"alternatives": [{"transcript": text, "words": words}]}
    return {"time": time, "is_final": final, "start": start, "duration": duration, "channel": channel}


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


STREAMS = {
    "whisper_streaming": (
        "1500.0000 0 1200  Good mor\n2600.0000 1200 2400 ning dear\n4100.0000 2400 3900  friends\n",
        {"prediction": "Good morning dear friends", "delays": [1500, 2600, 2600, 4100]},
    ),
    "whisper_streaming in seconds": (
        "1.5000 0.0 1.2  Good mor\n2.6 1.2 2.4 ning dear\n4.1 2.4 3.9  friends\n",
        {"prediction": "Good morning dear friends", "delays": [1500, 2600, 2600, 4100]},
    ),
    "SimulStreaming": (
        lines(
            {"start": 0.3, "end": 0.8, "text": " Good mor", "words": [], "is_final": False, "emission_time": 1.5},
            {"start": 0.8, "end": 2.4, "text": "ning", "words": [], "is_final": False, "emission_time": 2.6},
            {"is_final": True, "emission_time": 3.0},
            {"start": 2.4, "end": 3.9, "text": " friends", "words": [], "is_final": False, "emission_time": 4.1},
        ),
        {"prediction": "Good morning friends", "delays": [1500, 2600, 4100]},
    ),
    "updates": (
        lines(
            {"update_idx": 0, "audio_processed_ms": 960.0, "wallclock_elapsed_ms": 1100.5, "translation_text": "Gut"},
            {
                "update_idx": 1,
                "audio_processed_ms": 1920.0,
                "wallclock_elapsed_ms": 2100,
                "translation_text": "Guten M",
            },
            {
                "update_idx": 2,
                "audio_processed_ms": 2880.0,
                "wallclock_elapsed_ms": 3000,
                "translation_text": "Guten T",
            },
            {
                "update_idx": 3,
                "audio_processed_ms": 3840.0,
                "wallclock_elapsed_ms": 4000,
                "translation_text": "Guten M",
            },
        ),
        {"prediction": "Guten M", "delays": [1920, 3840], "first": [1920, 1920], "erased": 3, "elapsed": [2100, 4000]},
    ),
    "Deepgram": (
        lines(
            deepgram(1100, "hello word", False, 0, 1),
            deepgram(2200, "hello world", True, 0, 2),
            deepgram(3300, "again", False, 2, 1),
        ),
        {"prediction": "hello world again", "delays": [1000, 2000, 3000], "erased": 1, "elapsed": [1100, 2200, 3300]},
    ),
    "AssemblyAI": (
        lines(
            {"received_ms": 1100, "message_type": "PartialTranscript", "audio_end": 1000, "text": "hello word"},
            {"received_ms": 2200, "message_type": "FinalTranscript", "audio_end": 2000, "text": "hello world"},
        ),
        {"prediction": "hello world", "delays": [1000, 2000], "erased": 1, "elapsed": [1100, 2200]},
    ),
    "Google": (
        lines(
            {"time_s": 1.1, "results": [{"alternatives": [{"transcript": "hello word"}], "resultEndTime": "1s"}]},
            {
                "time_s": 2.2,
                "results": [{"alternatives": [{"transcript": "hello world"}], "isFinal": True, "resultEndTime": "2s"}],
            },
        ),
        {"prediction": "hello world", "delays": [1000, 2000], "erased": 1, "elapsed": [1100, 2200]},
    ),
    "Speechmatics": (
        lines(
            {"time": 1100, "message": "AddPartialTranscript", "metadata": {"end_time": 1, "transcript": "hello word"}},
            {"time": 2200, "message": "AddTranscript", "metadata": {"end_time": 2, "transcript": "hello world"}},
        ),
        {"prediction": "hello world", "delays": [1000, 2000], "erased": 1, "elapsed": [1100, 2200]},
    ),
    "generic": (
        lines(
            {"time": 1100, "audio": 1000, "text": "hello word", "mode": "replace", "recording": "talk"},
            {"time": 2200, "audio": 2000, "text": "hello world", "mode": "replace", "final": True, "recording": "talk"},
            {"time": 3300, "audio": 3000, "text": " again", "mode": "append", "recording": "talk"},
        ),
        {"prediction": "hello world again", "delays": [1000, 2000, 3000], "erased": 1, "elapsed": [1100, 2200, 3300]},
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_from_a_file_to_scores_a_timeline_and_back(name, run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    text, expected = STREAMS[name]
    (tmp_path / "talk.txt").write_text(text, "utf-8")
    dialect = name.split()[0]
    delays, elapsed = expected["delays"], expected.get("elapsed")

    metrics = [
        "DAL",
        "TL",
        "ETL",
        "NormalizedErasure",
        *(["DAL(clock=elapsed)", "DAL(clock=queue)"] if elapsed else []),
    ]
    done = run("score", "talk.txt", "-m", ",".join(metrics), "-f", "json")
    assert done.code == 0, done.err
    assert f"event stream of the dialect {dialect}" in done.err
    assert ("no audio times" in done.err) == (elapsed is None)
    values = {row["metric"]: row["score"] for row in json.loads(done.out)["scores"]}
    assert values["DAL"] == lagging.dal(delays, source_length=delays[-1])
    assert values["NormalizedErasure"] == expected.get("erased", 0) / len(delays)
    assert values["TL(clock=first)"] <= values["TL"]
    if elapsed:
        assert values["DAL(clock=queue)"] == values["DAL(clock=elapsed)"]
        assert values["DAL(clock=queue)"] == lagging.dal(elapsed, source_length=delays[-1])

    done = run("inspect", "talk.txt", "-i", "talk" if name == "generic" else "0", "--width", "100")
    assert done.code == 0, done.err
    assert all(word in done.out for word in expected["prediction"].split())
    assert ("first shown" in done.out) == ("erased" in expected)

    done = run("convert", "talk.txt", "--to", "stream", "-o", "back.jsonl")
    assert done.code == 0, done.err
    there, back = lagging.read("talk.txt"), lagging.read("back.jsonl")
    assert back.prediction.tolist() == there.prediction.tolist() == [expected["prediction"]]
    assert back.delays.tolist() == there.delays.tolist() == [delays]
    assert back.document.tolist() == there.document.tolist() == ["talk"]
    for column in ("source_length", "elapsed", "first_times", "queue_times", "erased", "revisions"):
        ours, theirs = getattr(there, column), getattr(back, column)
        assert (ours is None) == (theirs is None), column
        assert ours is None or ours.tolist() == theirs.tolist(), column
    assert (there.first_times is None) == ("erased" not in expected)
    assert "first" not in expected or there.first_times.tolist() == [expected["first"]]


@pytest.fixture
def talk(tmp_path, monkeypatch):
    """A recording of two sentences, revised on the way."""
    monkeypatch.chdir(tmp_path)
    texts = ["guten Morgen", "guten Tag ich", "guten Tag ich habe", "guten Tag ich habe Bienen"]
    rows = [
        {"time": 1000 * k + 200, "audio": 1000 * k, "text": text, "mode": "replace"} for k, text in enumerate(texts, 1)
    ]
    (tmp_path / "talk.jsonl").write_text(lines(*rows), "utf-8")
    (tmp_path / "talk.yaml").write_text(
        "- {duration: 2.0, offset: 0.0, wav: talk.wav}\n- {duration: 2.0, offset: 2.0, wav: talk.wav}\n", "utf-8"
    )
    (tmp_path / "talk.de").write_text("guten Tag\nich habe Bienen\n", "utf-8")
    return tmp_path


def test_a_stream_is_cut_like_any_other(run, talk) -> None:
    files = ["--segmentation", "talk.yaml", "--reference", "talk.de"]
    metrics = "DAL,DAL(clock=first),DAL(clock=elapsed),DAL(clock=queue),StreamLAAL,BLEU"
    done = run("score", "talk.jsonl", *files, "-m", metrics, "-f", "json")
    assert done.code == 0, done.err
    values = {row["metric"]: row["score"] for row in json.loads(done.out)["scores"]}
    assert values["DAL(clock=first)"] <= values["DAL"] < values["DAL(clock=elapsed)"] == values["DAL(clock=queue)"]
    done = run("score", "talk.jsonl", *files, "-m", "NormalizedErasure")
    assert done.code == 1
    assert "in which segment of a recording something was erased" in done.err
    done = run("report", "talk.jsonl", *files, "-o", "talk.html")
    assert done.code == 0, done.err
    done = run("resegment", "talk.jsonl", *files, "-o", "cut.jsonl")
    assert done.code == 0, done.err
    done = run("inspect", "cut.jsonl", "-i", "0")
    assert done.code == 0, done.err
    assert "first shown" in done.out


def test_lengths_of_the_source(run, talk) -> None:
    given = json.loads(run("score", "talk.jsonl", "-m", "DAL", "-f", "json", "--source-length", "5000").out)["scores"][
        0
    ]
    taken = json.loads(run("score", "talk.jsonl", "-m", "DAL", "-f", "json").out)["scores"][0]
    g = [1000, 2000, 2000, 3000, 4000]
    assert given["score"] == lagging.dal(g, source_length=5000)
    assert taken["score"] == lagging.dal(g, source_length=4000)
    assert "x:5000" in given["signature"]
    assert "x:" not in taken["signature"].replace("max:", "")


def test_several_files_are_several_recordings(run, talk) -> None:
    (talk / "other.jsonl").write_text((talk / "talk.jsonl").read_text())
    done = run("score", "*.jsonl", "-m", "DAL", "-f", "json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["scores"][0]["n"] == 2
    assert lagging.read(str(talk / "*.jsonl")).document.tolist() == ["other", "talk"]


def test_times_that_look_like_seconds_are_noted(run, talk) -> None:
    (talk / "short.jsonl").write_text(lines({"time": 1.5, "text": "a", "mode": "append"}))
    assert "TIMES BELOW 100 MS" in run("score", "short.jsonl").err
    assert "TIMES BELOW 100 MS" not in run("score", "talk.jsonl").err


def test_words_may_be_spoken_after_the_last_update(run, talk) -> None:
    """The length of a stream is a stand-in, unless it is given."""
    (talk / "talk.tsv").write_text("0.1\t0.9\tguten\n1.0\t1.8\tTag\n4.5\t4.9\txyz\n", "utf-8")
    words = ["--word-times", "talk.tsv", "-m", "WordLag,WordsMatched", "-f", "json"]
    done = run("score", "talk.jsonl", *words)
    assert done.code == 0, done.err
    lag, matched = json.loads(done.out)["scores"]
    assert (lag["score"], matched["score"]) == ((100 + 200) / 2, 2 / 3)
    done = run("score", "talk.jsonl", *words, "--source-length", "4000")
    assert done.code == 1
    assert "xyz begins at 4.5 s, the source ends at 4 s" in done.err


def test_inspect_finds_a_recording_by_the_name_of_its_file(run, tmp_path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("1500.0000 0 1200  Good\n2600.0000 1200 2400  morning\n")
    result = run("inspect", str(tmp_path), "-i", "b")
    assert result.code == 0, result.err
    assert result.out.startswith("segment 1 ")
