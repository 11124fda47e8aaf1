# SPDX-License-Identifier: Apache-2.0
"""A metric that cannot be computed on a log stops no other: its row is undefined, says why, and the exit code is 0."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lagging
from lagging.errors import MetricError
from lagging.render import RENDERERS
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.plan import Plan

MIXED = "AL,AL_CA,RTF,DAL"
WHY = "the source is counted in tokens and elapsed time in milliseconds"


def write(name: str, count: int = 12, **columns: object) -> None:
    lines = (
        {
            "index": i,
            "delays": [1 + i % 3, 2 + i % 3, 4 + i % 3],
            "source_length": 9,
            "prediction": "a b c",
            "lang": "ab"[i % 2],
        }
        | columns
        for i in range(count)
    )
    Path(name).write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`text` has no elapsed times and no references, `speech` has elapsed times, `speechless` has none."""
    monkeypatch.chdir(tmp_path)
    write("text.jsonl")
    speech = {"delays": [1000, 2000, 4000], "source_length": 5000, "unit": "ms", "reference": "a b d"}
    write("speech.jsonl", elapsed=[1100, 2300, 4500], **speech)
    write("speechless.jsonl", **speech)


def table(text: str) -> dict[tuple[str, str], dict[str, object]]:
    return {(s["system"], s["metric"]): s for s in json.loads(text)["scores"]}


@pytest.mark.parametrize("more", [(), ("--ci",), ("--jobs", "2"), ("--segment-scores", "s.tsv")], ids=" ".join)
def test_the_others_are_scored(run, logs, more) -> None:
    done = run("score", "text.jsonl", "-m", MIXED, "-f", "json", *more)
    assert done.code == 0, done.err
    found = table(done.out)
    alone = table(run("score", "text.jsonl", "-m", "AL,DAL", "-f", "json").out)
    for name in ("AL", "DAL"):
        assert found["text", name]["score"] == alone["text", name]["score"]
    for name in ("AL(clock=elapsed)", "RTF"):
        row = found["text", name]
        assert (row["score"], row["n"], row["undefined"]) == (None, 12, 12)
        assert "|n:0|" in str(row["signature"])
        assert f"note: text: UNDEFINED: {name}: " in done.err
    assert f"AL(clock=elapsed): {WHY}; fix: ask for the ideal clock" in done.err


@pytest.mark.parametrize("form", RENDERERS)
def test_every_table_has_the_row(run, logs, form) -> None:
    done = run("score", "text.jsonl", "-m", MIXED, "-f", form)
    assert done.code == 0
    if form not in ("json", "tsv"):
        assert "undefined in 12 of 12 segments" in done.out.replace("\\", "")


@pytest.mark.parametrize("names", ["AL_CA", "AL_CA,RTF", "RTF,BLEU", "BLEU", "BLEU,chrF"])
def test_where_none_can_be_computed_the_log_is_refused(run, logs, names) -> None:
    done = run("score", "text.jsonl", "-m", names)
    assert done.code == 1
    assert done.out == ""


def test_an_unknown_tokenizer_is_refused_beside_others(run, logs) -> None:
    assert run("score", "speech.jsonl", "-m", "AL,BLEU(tok=foo)").code == 2


def test_quality_without_references(run, logs) -> None:
    done = run("score", "text.jsonl", "-m", "AL,BLEU,WER", "-f", "json")
    assert done.code == 0
    for name in ("BLEU", "WER"):
        assert table(done.out)["text", name]["score"] is None
        assert f"note: text: UNDEFINED: {name}: there are no references to compare with" in done.err


@pytest.mark.parametrize("more", [(), ("--ci",), ("--jobs", "2")], ids=" ".join)
def test_groups(run, logs, more) -> None:
    done = run("score", "text.jsonl", "-m", f"{MIXED},BLEU", "--by", "lang", "-f", "json", *more)
    assert done.code == 0, done.err
    rows = json.loads(done.out)["scores"]
    undefined = {(s["group"]["lang"], s["metric"]) for s in rows if s["score"] is None}
    assert undefined == {(lang, name) for lang in "ab" for name in ("AL(clock=elapsed)", "RTF", "BLEU")}
    assert done.err.count("UNDEFINED: BLEU: there are no references to compare with") == 1


@pytest.mark.parametrize("form", RENDERERS)
@pytest.mark.parametrize("resample", ["segment", "document"])
def test_a_system_without_elapsed_times_is_compared(run, logs, form, resample) -> None:
    write("other.jsonl", delays=[500, 2500, 4000], elapsed=[700, 2900, 4500], source_length=5000, unit="ms")
    metrics = "AL,AL_CA,RTF,LagPercentile(clock=elapsed),AL(clock=elapsed, mean=token),BLEU"
    systems = ("speech.jsonl", "speechless.jsonl", "other.jsonl")
    done = run("compare", *systems, "-m", metrics, "--resamples", "100", "-f", form)
    assert done.code == 0, done.err
    if form == "json":
        found = table(done.out)
        for name in ("AL(clock=elapsed)", "RTF", "LagPercentile(clock=elapsed)"):
            assert found["speechless", name]["score"] is None
            assert found["speech", name]["score"] is not None
            assert found["other", name]["score"] is not None
        assert found["other", "BLEU"]["score"] is None


def test_a_curve_and_a_report_have_the_system(run, logs) -> None:
    done = run("curve", "speech.jsonl", "speechless.jsonl", "--ranks", "AL,AL_CA", "--resamples", "100", "-f", "json")
    assert done.code == 0, done.err
    metrics = ("-m", "AL,AL_CA,RTF", "--resamples", "100", "-o", "report.html")
    assert run("report", "speech.jsonl", "speechless.jsonl", *metrics).code == 0
    assert run("report", "speechless.jsonl", *metrics).code == 0


def test_a_clock_of_whole_recordings(run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    talk = {"index": 0, "delays": [1000, 2000, 3000, 4000], "source_length": 4500, "prediction": "a b c d"}
    Path("talk.jsonl").write_text(json.dumps(talk | {"source": "talk.wav", "unit": "ms"}) + "\n")
    Path("talk.yaml").write_text("".join(f"- {{wav: talk.wav, offset: {at}, duration: 2}}\n" for at in (0, 2.2)))
    Path("talk.ref").write_text("a b\nc d\n")
    cut = ("--segmentation", "talk.yaml", "--reference", "talk.ref")
    done = run("score", "talk.jsonl", *cut, "-m", "StreamLAAL,StreamLAAL(clock=queue)", "-f", "json")
    assert done.code == 0, done.err
    assert [s["score"] is None for s in json.loads(done.out)["scores"]] == [False, True]
    assert "UNDEFINED: StreamLAAL(clock=queue): it needs elapsed times, or the computing time" in done.err
    assert run("score", "talk.jsonl", *cut, "-m", "StreamLAAL(clock=queue)").code == 1


def parts() -> list[lagging.Run]:
    """The second part has elapsed times from which computing times cannot be found; the clock queue needs them."""
    elapsed = ([[600, 1300]], [[900, 1000]], [[650, 1500]])
    common = {"source_length": [1000], "unit": "ms"}
    return [lagging.Run.from_delays([[500, 1000]], elapsed=e, id=[i], **common) for i, e in enumerate(elapsed)]


@pytest.mark.parametrize("name", ["AL(clock=queue)", "LagPercentile(clock=queue)", "AL(clock=queue, mean=token)"])
@pytest.mark.parametrize("keep", ["all", "sums"])
def test_a_metric_that_fails_on_one_part_has_no_value_on_the_log(name, keep) -> None:
    expected = lagging.score(lagging.Run.concat(parts()), ["AL", name])
    assert expected[name].undefined == 3
    for order in ([0, 1, 2], [1, 0, 2], [2, 0, 1]):
        accumulator = Accumulator(Plan.make(["AL", name], keep=keep))
        for index in order:
            part = accumulator.empty()
            part.add(parts()[index])
            accumulator.join(part)
        scores = accumulator.scores()
        assert scores["AL"].value == expected["AL"].value
        assert str(scores[name].signature) == str(expected[name].signature)
        assert scores[name].undefined.counts == expected[name].undefined.counts
        assert scores[name].value != scores[name].value


def test_a_group_has_no_value_where_another_part_of_the_log_fails() -> None:
    for seed in (None, 1):
        accumulator = Accumulator(Plan.make(["AL", "AL(clock=queue, mean=token)"], group_by=["lang"], seed=seed))
        for part, lang in zip(parts(), "aab", strict=True):
            accumulator.add(replace(part, group=np.array([lang], dtype=object)))
        for scores in accumulator.group_scores():
            al, queue = scores
            assert al.undefined == 0
            assert queue.undefined == queue.n
            assert queue.low is None


def test_python_refuses_a_log_on_which_nothing_can_be_computed() -> None:
    run = lagging.Run.from_delays([[1, 2]], source_length=[2])
    with pytest.raises(MetricError, match=WHY):
        lagging.score(run, ["AL_CA", "RTF"])
    scores = lagging.score(run, ["AL", "AL_CA"])
    assert scores["AL_CA"].undefined.counts == {WHY: 1}
    assert any(note.kind == "UNDEFINED" for note in scores.notes)
