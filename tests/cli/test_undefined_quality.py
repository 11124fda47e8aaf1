# SPDX-License-Identifier: Apache-2.0
"""A system, or a group, none of whose segments has a reference: no command fails, and every one says why."""

import json
from pathlib import Path

import numpy as np
import pytest

import lagging
from lagging.render import RENDERERS

QUALITY = "BLEU,TER,chrF"


def refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def valid(text: str) -> object:
    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`bare` has empty references, `full` has all, `half` those of group b only; two recordings each."""
    monkeypatch.chdir(tmp_path)
    for name, referenced in (("bare", range(0)), ("full", range(8)), ("half", range(4, 8))):
        lines = [
            {
                "index": i,
                "delays": [1, 2 + i % 3, 4],
                "source_length": 9,
                "prediction": "a b c",
                "reference": "a b d e" if i in referenced else "",
                "g": "ab"[i // 4],
                "document": f"talk {i // 2}",
            }
            for i in range(8)
        ]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


@pytest.mark.parametrize("form", RENDERERS)
@pytest.mark.parametrize("name", QUALITY.split(","))
@pytest.mark.parametrize("resample", ["segment", "document"])
def test_a_system_without_any_reference_is_scored_with_intervals(run, systems, form, name, resample) -> None:
    done = run("score", "bare.jsonl", "full.jsonl", "-m", f"AL,{name}", "--ci", "--resample", resample, "-f", form)
    assert done.code == 0
    assert f"note: bare: interval: {name}: there is none: 0 {resample}s with a value: too few" in done.err
    if form == "json":
        found = {(s["system"], s["metric"]): s for s in valid(done.out)["scores"]}
        assert found["bare", name]["score"] is None
        assert found["bare", name]["undefined"] == 8
        assert found["full", name]["score"] is not None
    if form not in ("json", "tsv"):
        assert f"bare: {name} undefined in 8 of 8 segments (empty reference 8)" in done.out.replace("\\", "")


@pytest.mark.parametrize("form", RENDERERS)
def test_a_group_without_any_reference_is_scored_with_intervals(run, systems, form) -> None:
    done = run("score", "half.jsonl", "-m", QUALITY, "--by", "g", "--ci", "-f", form)
    assert done.code == 0
    assert "note: half: interval: half (a)" in done.err
    if form == "json":
        found = {(s["group"]["g"], s["metric"]): s for s in valid(done.out)["scores"]}
        for name in QUALITY.split(","):
            assert found["a", name]["score"] is None
            assert found["a", name]["undefined"] == 4
            assert found["b", name]["score"] is not None
    if form not in ("json", "tsv"):
        assert "undefined in 4 of 4 segments (empty reference 4)" in done.out.replace("\\", "")


@pytest.mark.parametrize("form", RENDERERS)
@pytest.mark.parametrize("others", [["full.jsonl"], ["other=bare.jsonl"], ["half.jsonl", "full.jsonl"]])
@pytest.mark.parametrize("by", ["segment", "document"])
def test_systems_without_any_reference_are_compared(run, systems, form, others, by) -> None:
    done = run(
        *("compare", "bare.jsonl", *others, "-m", f"AL,{QUALITY}", "--resamples", "100"),
        *("--resample", by, "-f", form),
    )
    assert done.code == 0
    assert "note: no test: 1 pair: BLEU: 0" in done.err or "no test: 2 pairs: BLEU: 0" in done.err
    if form == "json":
        valid(done.out)


@pytest.mark.parametrize("form", RENDERERS)
@pytest.mark.parametrize("quality", QUALITY.split(","))
def test_a_curve_has_a_setting_without_any_reference(run, systems, form, quality) -> None:
    done = run(
        "curve", "x=bare.jsonl", "x=half.jsonl", "y=full.jsonl", "--quality", quality, "--resamples", "100", "-f", form
    )
    assert done.code == 0
    if form == "json":
        valid(done.out)
    assert (
        run("curve", "bare.jsonl", "full.jsonl", "--ranks", f"AL,{quality}", "--resamples", "100", "-f", form).code == 0
    )


def test_a_report_has_systems_without_any_reference(run, systems) -> None:
    done = run("report", "bare.jsonl", "full.jsonl", "-m", f"AL,{QUALITY}", "--resamples", "100", "-o", "report.html")
    assert done.code == 0
    assert run("report", "bare.jsonl", "-m", f"AL,{QUALITY}", "--resamples", "100", "-o", "one.html").code == 0


@pytest.mark.parametrize("quality", [*QUALITY.split(","), "LagPercentile(p=90)"])
@pytest.mark.parametrize("others", [["full.jsonl"], ["half.jsonl", "full.jsonl"]])
@pytest.mark.parametrize("by", ["segment", "document"])
def test_a_system_without_any_text_stands_beside_others(run, systems, quality, others, by) -> None:
    lines = [{**json.loads(line), "prediction": None} for line in Path("full.jsonl").read_text().splitlines()]
    Path("mute.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    few = ("--resamples", "100")
    done = run("compare", "mute.jsonl", *others, "-m", f"AL,{quality}", *few, "--resample", by, "-f", "json")
    assert done.code == 0
    valid(done.out)
    if quality in QUALITY:
        assert "no predictions whose text could be judged" in done.err
        done = run("curve", *others, "mute.jsonl", "--quality", quality, *few, "--resample", by, "-f", "json")
        assert done.code == 0
        valid(done.out)
        done = run("report", "mute.jsonl", *others, "-m", f"AL,{quality}", *few, "-o", f"{by}.html")
        assert done.code == 0


@pytest.mark.parametrize("name", ["BLEU", "chrF", "TER", "LBLEU"])
def test_statistics_have_the_same_width_with_and_without_references(name) -> None:
    def width(references: list[str]) -> int:
        delays, texts = [[1, 2]] * 2, ["a b"] * 2
        some = lagging.Run.from_delays(
            delays, source_length=[3, 3], prediction=texts, reference=references, level="word"
        )
        statistics = lagging.score(some, [name])[name].statistics
        assert np.isnan(statistics).all() == (references == ["", ""])
        return statistics.shape[1]

    assert width(["", ""]) == width(["a c", "a b"])


@pytest.mark.parametrize("form", RENDERERS)
def test_latency_of_texts_without_times_is_undefined_beside_quality(run, tmp_path, monkeypatch, form) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [{"id": i, "prediction": "a b c", "reference": "a b d"} for i in range(5)]
    for name in "ab":
        Path(f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    asked = ("-m", "AL,LagDrift,BLEU", "--resamples", "100")
    done = run("compare", "a.jsonl", "b.jsonl", *asked, "-f", form)
    assert done.code == 0
    assert "UNDEFINED: AL: it needs delays, and this log has none" in done.err
    if form == "json":
        units = {score["metric"]: score["unit"] for score in valid(done.out)["scores"]}
        assert units == {"AL": "none", "LagDrift": "none", "BLEU": "points"}
    assert run("report", "a.jsonl", "b.jsonl", *asked, "-o", "report.html").code == 0
    for quiet in ([], ["-q"]):
        done = run("score", "a.jsonl", *asked[:2], "-f", form, *quiet)
        assert (done.code, "UNDEFINED: AL" in done.err) == (0, True)
    scores = lagging.score(lagging.read("a.jsonl"), ["AL", "BLEU"])
    assert (scores["AL"].unit, scores["BLEU"].n) == ("none", 5)
    assert "AL" in str(scores)
