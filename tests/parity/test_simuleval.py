# SPDX-License-Identifier: Apache-2.0
import csv
import json
import math

import numpy as np
import pytest

import lagging
import oracle

pytestmark = pytest.mark.data

EXAMPLE = "omnisteval/examples/short_form_degenerate_policy_example"

# SimulEval 1.1.4's scores, by the metric of ours that makes them under its convention
SIMULEVAL = {
    "AL": "AL",
    "AP": "AP",
    "DAL": "DAL",
    "LAAL": "LAAL",
    "AL --no-use-ref-len": "AL(length=hypothesis)",
    "AP --no-use-ref-len": "AP(length=hypothesis)",
    "DAL --no-use-ref-len": "DAL(length=hypothesis)",
    "LAAL --no-use-ref-len": "LAAL(length=hypothesis)",
    "AL_CA": "AL_CA",
    "AP_CA": "AP_CA",
    "DAL_CA": "DAL_CA",
    "LAAL_CA": "LAAL_CA",
    "AL_CA --no-use-ref-len": "AL(length=hypothesis, clock=elapsed)",
    "AP_CA --no-use-ref-len": "AP(length=hypothesis, clock=elapsed)",
    "DAL_CA --no-use-ref-len": "DAL(length=hypothesis, clock=elapsed)",
    "LAAL_CA --no-use-ref-len": "LAAL(length=hypothesis, clock=elapsed)",
}
OMNISTEVAL = {
    "BLEU": "BLEU",
    "chrF": "chrF",
    "YAAL (CU)": "YAAL",
    "AL (CU)": "AL",
    "LAAL (CU)": "LAAL",
    "AP (CU)": "AP",
    "DAL (CU)": "DAL",
    "YAAL (CA)": "YAAL_CA",
    "AL (CA)": "AL_CA",
    "LAAL (CA)": "LAAL_CA",
    "AP (CA)": "AP_CA",
    "DAL (CA)": "DAL_CA",
}


@pytest.fixture(scope="module")
def log(data):
    return data / EXAMPLE / "instances.log"


@pytest.fixture(scope="module")
def run(log):
    return lagging.read(log)


def test_the_log_is_read_as_what_it_is(run):
    assert len(run) == 2580
    assert (run.unit, run.level, run.origin.format) == ("ms", "word", "simuleval")
    assert run.elapsed is not None
    assert run.reference is not None
    assert all(text.endswith("</s>") for text in run.prediction)


def test_simulevals_convention_gives_simulevals_scores(data, run):
    published = json.loads((data / "simuleval_scores_of_short_form_example.json").read_text("utf-8"))["scores"]
    scores = lagging.score(run, SIMULEVAL.values(), convention="simuleval")
    for theirs, ours in SIMULEVAL.items():
        assert scores[ours].value == pytest.approx(published[theirs], rel=1e-9, abs=0), theirs
        assert scores[ours].undefined == 0
        assert scores[ours].signature["eos"] == "kept"
    assert scores["AL"].signature["length"] == "reference"
    assert scores["DAL"].signature["length"] == "hypothesis"


def test_the_values_of_the_segments_that_simuleval_1_0_wrote_into_the_log(log, run):
    # in single precision, and by the hypothesis length; its AL counted the reference with a </s> that it does not have
    names = {"AP": "AP(length=hypothesis)", "DAL": "DAL"}
    lines = [json.loads(line)["metric"] for line in log.read_text("utf-8").splitlines()]
    for theirs, ours in names.items():
        for clock, key in (("ideal", "latency"), ("elapsed", "latency_ca")):
            metric = lagging.metric(ours)(clock=clock)
            segments = lagging.score(run, [metric], convention="simuleval")[metric].segments
            assert segments == pytest.approx(np.array([line[key][theirs] for line in lines]), rel=1e-5)


def test_omnistevals_convention_gives_its_scores_to_the_last_digit(data, run):
    with (data / EXAMPLE / "evaluation_output" / "scores.tsv").open(encoding="utf-8", newline="") as file:
        published = {row["metric"]: row["value"] for row in csv.DictReader(file, delimiter="\t")}
    scores = lagging.score(run, OMNISTEVAL.values(), convention="omnisteval")
    for theirs, ours in OMNISTEVAL.items():
        assert f"{scores[ours].value:.4f}" == published[theirs], theirs


def test_the_segments_agree_with_the_oracle(run):
    scores = lagging.score(run, ["AL", "DAL", "AP", "LAAL", "YAAL"], convention="simuleval")
    for row in range(0, len(run), 20):
        g, x = run.delays[row].tolist(), float(run.source_length[row])
        reference = run.reference[row].count(" ") + 1
        exact = {
            "AL": oracle.al(g, x, reference),
            "DAL": oracle.dal(g, x),
            "AP": oracle.ap(g, x, reference),
            "LAAL": oracle.laal(g, x, reference),
            "YAAL": oracle.yaal(g, x, reference),
        }
        for name, value in exact.items():
            got = scores[name].segments[row]
            assert math.isnan(got) if value is None else got == pytest.approx(float(value), rel=1e-12, abs=1e-12 * x)


@pytest.mark.parametrize("clock", ["ideal", "elapsed"])
@pytest.mark.parametrize("length", ["hypothesis", "reference", "longest"])
def test_al_is_never_above_dal_with_one_target_length(run, length, clock):
    al, al_y, dal = lagging.score(run, [f"{m}(length={length}, clock={clock})" for m in ("AL", "AL_y", "DAL")])
    assert not (al.segments > dal.segments * (1 + 1e-12)).any()
    assert not (al_y.segments > dal.segments * (1 + 1e-12)).any()
    assert al.value <= dal.value * (1 + 1e-12)


def test_al_is_never_above_dal_under_the_papers_convention(run):
    scores = lagging.score(run, ["AL", "DAL", "AL_CA", "DAL_CA"])
    for end in ("", "_CA"):
        al, dal = scores[f"AL{end}"], scores[f"DAL{end}"]
        assert not (al.segments > dal.segments * (1 + 1e-12)).any()
        assert al.value <= dal.value * (1 + 1e-12)
        assert al.signature["eos"] == dal.signature["eos"] == "stripped"


@pytest.mark.parametrize("convention", ["paper", "simuleval", "omnisteval"])
def test_scanning_is_reading(log, run, convention, monkeypatch):
    names = ["AP", "CW", "AL", "AL_y", "DAL", "LAAL", "YAAL", "AL_CA", "DAL_CA", "SourcePerSegment", "BLEU", "chrF"]
    names += ["DAL(mean=token)", "DAL(write_cost=corpus)"]
    read = lagging.score(run, names, convention=convention)
    monkeypatch.setattr("lagging.formats.segment_rows.SEGMENTS_PER_PART", 1)  # a part for every batch of lines
    monkeypatch.setattr("lagging.formats.source.BATCH_BYTES", 1 << 16)
    assert sum(1 for _ in lagging.scan(log)) > 10
    for scanned in (
        lagging.score(lagging.scan(log), names, convention=convention),
        lagging.score((run[i : i + 97] for i in range(0, len(run), 97)), names, convention=convention),
    ):
        for one, other in zip(read, scanned, strict=True):
            assert one.value.hex() == other.value.hex()
            assert one.segments.tobytes() == other.segments.tobytes()
            assert str(one.signature) == str(other.signature)


# ---- one sentence at a time -------------------------------------------------------------------------------------

# the vectors whose AL takes the reference as |y|; in all others that give AL, AP or DAL, the two lengths are equal
BY_REFERENCE = {"uniss-overgen", "uniss-undergen"}
WITHOUT_DELAYS = {"simuleval-quickstart-wait3", "autosimtrans-note"}


def test_vectors_of_other_tools(data):
    vectors = json.loads((data / "test_vectors.json").read_text("utf-8"))["sentence_level"]
    checked = 0
    for vector in vectors:
        name, g, x, reference = (vector[key] for key in ("name", "delays", "source_length", "reference_length"))
        if g is None:
            assert name in WITHOUT_DELAYS
            continue
        unit = "ms" if vector["unit"] == "ms" else "token"  # seconds are compared exactly, as tokens are
        length = "reference" if name in BY_REFERENCE else "hypothesis"
        options = {"source_length": x, "reference_length": reference}
        expected = dict(vector["expected"])
        if {"AL", "AP", "DAL", "AL_y"} & expected.keys() and name not in BY_REFERENCE:
            assert len(g) == reference, name  # so that it does not matter whose length is taken
        got = {
            "AL": lagging.al(g, length=length, unit=unit, **options),
            "AL_y": lagging.al_y(g, length=length, **options),
            "AP": lagging.ap(g, length=length, **options),
            "DAL": lagging.dal(g, source_length=x),
            "LAAL": lagging.laal(g, unit=unit, **options),
        }
        if expected.pop("LAAL_equals_AL", False):
            assert got["LAAL"] == got["AL"], name
            checked += 1
        if "tau" in expected:
            assert oracle.tau(g, x) == expected.pop("tau")
        expected.pop("YAAL_note", None)
        for metric, value in expected.items():
            assert got[metric] == pytest.approx(value, rel=1e-9, abs=1e-9), (name, metric)  # printed to 10 digits
            checked += 1
    assert checked == 36


def test_over_generation_is_rewarded_only_by_al(data):
    vectors = json.loads((data / "test_vectors.json").read_text("utf-8"))["sentence_level"]
    vector = next(v for v in vectors if v["name"] == "uniss-overgen")
    g, options = vector["delays"], {"source_length": vector["source_length"], "unit": "ms"}
    reference = vector["reference_length"]
    assert lagging.al(g, length="reference", reference_length=reference, **options) == vector["expected"]["AL"]
    assert lagging.al(g, length="hypothesis", **options) != vector["expected"]["AL"]
    assert lagging.laal(g, reference_length=reference, **options) == vector["expected"]["LAAL"]


def test_streams_of_reads_and_writes_as_one_sentence(data):
    folder = data / "rw_streams"
    with (folder / "oracle_concat1.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 10
    for row in rows:
        run = lagging.read(folder / row["setup"] / f"{row['k']}.RW")
        assert len(run) == 1
        scores = lagging.score(run, ["AP", "AL", "DAL"])
        # their recurrence gathers rounding over 20 000 tokens, hence 1e-9
        for name in ("AP", "AL", "DAL"):
            assert scores[name].value == pytest.approx(float(row[name]), rel=1e-9), (row["k"], name)


def test_a_stream_of_reads_and_writes_is_scored_as_exactly_as_a_sentence(data):
    run = lagging.read(data / "rw_streams" / "REAL" / "1.RW")
    g, x = run.delays[0].tolist(), int(run.source_length[0])
    scores = lagging.score(run, ["AP", "AL", "DAL", "AL_y"])
    for name, exact in (("AP", oracle.ap), ("DAL", oracle.dal)):
        assert scores[name].value == pytest.approx(float(exact(g, x)), rel=1e-12)
    for name, exact in (("AL", oracle.al), ("AL_y", oracle.al_y)):
        assert scores[name].value == pytest.approx(float(exact(g, x)), abs=1e-12 * x)
