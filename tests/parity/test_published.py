# SPDX-License-Identifier: Apache-2.0
"""Score files of other tools, read by us, against our own scores of the same logs: each side checks the other."""

import csv
import math

import pytest

import lagging

pytestmark = pytest.mark.data

OMNISTEVAL = "omnisteval/examples"
SHORT = f"{OMNISTEVAL}/short_form_degenerate_policy_example"

# the log, the folder with the scores, how many there are, and the clock that the published (CA) stands for
EXAMPLES = {
    "short": (f"{SHORT}/instances.log", f"{SHORT}/evaluation_output", 15, "elapsed"),
    "simulstream": (
        f"{OMNISTEVAL}/simulstream_example/segmentation_output/instances.resegmented.jsonl",
        f"{OMNISTEVAL}/simulstream_example/segmentation_output",
        12,
        "elapsed",
    ),
    "speech": (
        f"{OMNISTEVAL}/speech_resegmentation_example/segmentation_output/instances.resegmented.jsonl",
        f"{OMNISTEVAL}/speech_resegmentation_example/segmentation_output",
        12,
        "elapsed",
    ),
}


def printed(folder):
    """The rows of scores.tsv, as text."""
    with (folder / "scores.tsv").open(encoding="utf-8", newline="") as file:
        rows = {row["metric"]: row["value"] for row in csv.DictReader(file, delimiter="\t")}
    rows.pop("Likely Degenerate Simultaneous Policy", None)
    return rows


@pytest.mark.parametrize("name", EXAMPLES)
def test_omnisteval_published_what_we_score(data, name):
    log, folder, count, clock = EXAMPLES[name]
    published = lagging.read_scores(data / folder)
    rows = printed(data / folder)
    assert [s.label for s in published] == list(rows)
    assert len(published) == count
    aware = [s for s in published if s.label.endswith("(CA)")]
    assert len(aware) == 5
    assert all(f"clock={clock}" in s.metric for s in aware)
    run = lagging.read(data / log)
    for score in published:
        ours = lagging.metric(score.metric)
        got = lagging.score(run, [ours], convention="omnisteval")[ours]
        assert f"{got.value:.4f}" == f"{score.score:.4f}" == rows[score.label], score.label
        assert got.unit == score.unit, score.label


def test_omnisteval_published_quality_of_text_without_delays(data):
    folder = data / OMNISTEVAL / "text_resegmentation_example" / "segmentation_output"
    published, run = lagging.read_scores(folder), lagging.read(folder / "instances.resegmented.jsonl")
    assert [(s.metric, f"{s.score:.4f}") for s in published] == [
        (s.metric.name, f"{s.value:.4f}") for s in lagging.score(run, ["BLEU", "chrF"], convention="omnisteval")
    ]


@pytest.mark.parametrize("example", ["short_form_degenerate_policy", "simulstream", "speech_resegmentation"])
def test_the_report_and_the_table_say_the_same(data, example):
    (folder,) = {report.parent for report in (data / OMNISTEVAL / f"{example}_example").glob("*/evaluation_report.txt")}
    report, table = (lagging.read_scores(folder / name) for name in ("evaluation_report.txt", "scores.tsv"))
    assert [(s.label, s.score, s.unit) for s in report] == [(s.label, s.score, s.unit) for s in table]
    assert lagging.read_scores(folder) == report
    assert {s.version for s in report} == {"0.1.7"}
    assert {s.version for s in table} == {None}
    assert {s.system for s in report + table} == {folder.name}
    for scores in (report, table):
        text = (folder / scores[0].path).read_text("utf-8").splitlines()
        for score in scores:
            assert (
                text[score.line - 1].split("\t" if scores is table else "  ")[0 if scores is table else 1]
                == score.label
            )


@pytest.fixture(scope="module")
def simuleval(data):
    return lagging.read_scores(data / "simuleval_scores_of_short_form_example.json")


@pytest.fixture(scope="module")
def ours(data, simuleval):
    """Our scores, by published metric; what is kept under its label has no part in γ, and so no --no-use-ref-len."""
    run = lagging.read(data / SHORT / "instances.log")
    names = {s.metric: s.metric.removesuffix(" --no-use-ref-len") for s in simuleval}
    scores = lagging.score(run, dict.fromkeys(names.values()), convention="simuleval")
    return {metric: scores[name].value for metric, name in names.items()}


def test_simuleval_published_what_we_score(simuleval, ours):
    assert len(simuleval) == 30
    assert {(s.tool, s.version) for s in simuleval} == {("SimulEval", "1.1.4")}
    for score in simuleval:
        assert ours[score.metric] == pytest.approx(score.score, rel=1e-9, abs=0), score.label
    kept = [s.label for s in simuleval if s.metric == s.label and " " in s.label]
    assert kept == [
        f"{name} --no-use-ref-len" for name in ("StartOffset", "EndOffset", "StartOffset_CA", "EndOffset_CA")
    ]


@pytest.mark.parametrize("layout", ["tsv", "indexed", "plain"])
def test_simuleval_tables(simuleval, ours, layout, tmp_path):
    """As SimulEval makes them: a frame of one row, rounded to three digits."""
    pandas = pytest.importorskip("pandas")
    row = {s.label: s.score for s in simuleval if " " not in s.label}
    frame = pandas.DataFrame([row]).round(3)
    with pandas.option_context("display.max_columns", None):
        text = {
            "tsv": frame.to_csv(sep="\t", index=False),
            "indexed": repr(frame),
            "plain": frame.to_string(index=False),
        }
    (tmp_path / "scores.tsv").write_text(text[layout], "utf-8")
    (tmp_path / "config.yaml").write_text("source_type: speech\ntarget_type: speech\n", "utf-8")
    scores = lagging.read_scores(tmp_path)
    assert [s.label for s in scores] == list(row)
    for score in scores:
        assert score.score == pytest.approx(ours[score.metric], rel=0, abs=5.001e-4), score.label
        measure = lagging.metric(score.metric).unit
        assert score.unit == ("ms" if measure == "time" else measure)


def test_no_other_file_is_taken_for_a_score_file(data):
    """Logs, references, settings, tables of another kind: none of them is read as scores."""
    taken, tried = [], 0
    for file in sorted(data.rglob("*")):
        small = file.is_file() and file.stat().st_size < 1 << 21
        if small and file.name not in ("scores.tsv", "evaluation_report.txt") and "scores_of" not in file.name:
            tried += 1
            try:
                scores = lagging.read_scores(file)
            except lagging.LaggingError:
                continue
            taken.append((file.name, [s.score for s in scores if not math.isnan(s.score)]))
    assert tried > 50
    assert not taken
