# SPDX-License-Identifier: Apache-2.0
"""Clocks, offsets and diagnoses on the logs that OmniSTEval publishes, with its scores, SimulEval's and FBK's."""

import csv
import json
from collections import defaultdict

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

import lagging
import oracle
from lagging.cli import cli
from lagging.metrics.clocks import clock

pytestmark = pytest.mark.data

EXAMPLES = "omnisteval/examples"
SHORT = f"{EXAMPLES}/short_form_degenerate_policy_example"
TALKS = f"{EXAMPLES}/speech_resegmentation_example"
LONG = [TALKS, f"{EXAMPLES}/simulstream_example"]
LATENCIES = ("LongYAAL", "LongAL", "LongLAAL", "LongAP", "LongDAL")


def published(folder):
    """Metric → value, as it was printed."""
    with (folder / "scores.tsv").open(encoding="utf-8", newline="") as file:
        return {row["metric"]: row["value"] for row in csv.DictReader(file, delimiter="\t")}


@pytest.fixture(scope="module")
def short(data):
    return lagging.read(data / SHORT / "instances.log")


@pytest.fixture(scope="module")
def talks(data):
    """The log of five whole recordings."""
    return lagging.read(data / TALKS / "instances.log")


# ---- OmniSTEval ---------------------------------------------------------------------------------------------------


def test_its_diagnosis_of_the_short_form_example(data, short):
    names = {
        "SWF": "Simultaneous Words Fraction (%)",
        "EFSW": "Expected Simul. Words Fraction (%)",
        "DSPTV": "Degeneracy Test Value",
    }
    said = published(data / SHORT / "evaluation_output")
    scores = lagging.score(short, names, convention="omnisteval")
    for ours, theirs in names.items():
        assert f"{scores[ours].value:.4f}" == said[theirs]
    assert (abs(scores["DSPTV"].value) > 20) == (said["Likely Degenerate Simultaneous Policy"] == "YES")
    # the 220 segments without a word before the end have no YAAL, and so no part in what is expected
    assert scores["EFSW"].undefined == 220
    assert scores["DSPTV"].undefined == 220  # but they have their part in what is counted


@pytest.mark.parametrize("example", LONG)
def test_its_scores_of_segments_cut_from_a_stream(data, example):
    folder = data / example / "segmentation_output"
    said = published(folder)
    run = lagging.read(folder / "instances.resegmented.jsonl")
    assert (run.seg, run.unit, run.level) == ("given", "ms", "word")
    ours = {"BLEU": "BLEU", "chrF": "chrF"}
    ours |= {f"{name} (CU)": name for name in LATENCIES} | {f"{name} (CA)": f"{name}_CA" for name in LATENCIES}
    assert ours.keys() == said.keys()
    scores = lagging.score(run, ours.values(), convention="omnisteval")
    for theirs, name in ours.items():
        assert f"{scores[name].value:.4f}" == said[theirs], theirs
        assert scores[name].signature["seg"] == "given"


@pytest.mark.parametrize("example", LONG)
def test_long_yaal_agrees_with_the_oracle(data, example):
    run = lagging.read(data / example / "segmentation_output" / "instances.resegmented.jsonl")
    segments = lagging.score(run, ["LongYAAL"], convention="omnisteval")["LongYAAL"].segments
    for row in range(0, len(run), 7):
        g, x, end = run.delays[row].tolist(), float(run.source_length[row]), float(run.recording_end[row])
        exact = oracle.yaal(g, x, run.reference[row].count(" ") + 1, end)
        assert segments[row] == pytest.approx(np.nan if exact is None else float(exact), rel=1e-11, nan_ok=True)


def test_its_scores_of_text_alone(data):
    """There are no delays in that file, and the command line asks for nothing else by itself."""
    folder = data / EXAMPLES / "text_resegmentation_example" / "segmentation_output"
    log = folder / "instances.resegmented.jsonl"
    run, said = lagging.read(log), published(folder)
    assert (run.unit, run.level, run.seg, len(run)) == ("none", "word", "given", 468)
    assert said == {"BLEU": "22.6566", "chrF": "52.5447"}
    scores = lagging.score(run, said, convention="omnisteval")
    assert {name: f"{scores[name].value:.4f}" for name in said} == said
    result = CliRunner().invoke(cli, ["score", str(log), "-q", "-f", "json", "--convention", "omnisteval"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["scores"]
    assert {row["metric"]: f"{row['score']:.4f}" for row in rows} == said


def test_the_command_line_repeats_its_main_score(data):
    log = data / TALKS / "segmentation_output" / "instances.resegmented.jsonl"
    args = ["score", str(log), "-m", "LongYAAL,LongYAAL_CA", "-q", "-f", "json", "--convention", "omnisteval"]
    result = CliRunner().invoke(cli, args)
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["scores"]
    assert [f"{row['score']:.4f}" for row in rows] == ["2934.0779", "5873.8065"]
    again = CliRunner().invoke(cli, ["score", str(log), "-q", "-f", "json", "--like", rows[1]["signature"]])
    (row,) = json.loads(again.stdout)["scores"]
    assert (row["score"], row["signature"]) == (rows[1]["score"], rows[1]["signature"])


def test_its_correction_of_elapsed_times(data, talks):
    """`--fix_simuleval_emission_ca`, done before cutting: `emission_ca` is what it gave less the segment's offset."""
    segments = yaml.safe_load((data / TALKS / "ref_segments.yaml").read_text("utf-8"))
    log = data / TALKS / "segmentation_output" / "instances.resegmented.jsonl"
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert len(segments) == len(lines) == 468
    words, ideal, late = defaultdict(list), defaultdict(list), defaultdict(list)
    for line, segment in zip(lines, segments, strict=True):
        offset, talk = 1000 * segment["offset"], line["docid"]
        words[talk] += line["prediction"].split()
        ideal[talk] += [offset + time for time in line["emission_cu"]]
        late[talk] += [offset + time for time in line["emission_ca"]]
    ours, checked = clock(talks, "omnisteval"), 0
    for talk, row in enumerate(range(len(talks))):
        assert words[talk] == talks.prediction[row].split()  # no word of this log was dropped or moved
        assert ideal[talk] == pytest.approx(talks.delays[row], abs=1e-6)
        assert late[talk] == pytest.approx(ours[row], abs=1e-6)
        checked += len(words[talk])
    assert checked == len(talks.delays.values) == 7699


# ---- the queue ----------------------------------------------------------------------------------------------------

# of recordings 1 to 5: real-time factor, and how much later than its delay a word is there, on average, in ms
QUEUED = [(1.1395, 63_512), (0.893, 4895), (0.854, 3649), (0.903, 4118), (0.956, 7056)]
# as the page on clocks has it, in seconds: mean on four clocks, and the queue's backlog at the end
SHOWN = {
    "queue": [63.5, 4.9, 3.6, 4.1, 7.1],
    "at the end": [110.0, 4.7, 1.9, 4.4, 1.7],
    "omnisteval": [4.3, 2.7, 2.5, 2.4, 2.8],
    "fbk": [3.2, 2.4, 2.3, 2.1, 2.6],
    "elapsed": [418.2, 311.6, 244.3, 314.5, 341.7],
}


def test_a_system_slower_than_real_time_falls_behind(talks):
    rtf, backlog, ideal = lagging.score(talks, ["RTF", "EndOffset(clock=queue)", "EndOffset"])
    extra = [queue - g for queue, g in zip(clock(talks, "queue"), talks.delays, strict=True)]
    for row, (factor, late) in enumerate(QUEUED):
        assert rtf.segments[row] == pytest.approx(factor, abs=0.0005)
        assert extra[row].mean() == pytest.approx(late, abs=0.5)
        assert extra[row][-1] == pytest.approx(backlog.segments[row] - ideal.segments[row], abs=1e-6)
        exact = oracle.queued(talks.delays[row].tolist(), talks.elapsed[row].tolist())
        assert clock(talks, "queue")[row] == pytest.approx(np.array([float(time) for time in exact]), rel=1e-12)
    assert extra[0][-1] == pytest.approx(109_972, abs=0.5)
    assert max(times[-1] for times in extra[1:]) < 5000


def test_what_the_other_clocks_say_of_it(talks):
    by = {name: clock(talks, name) for name in ("elapsed", "queue", "omnisteval", "fbk")}
    extra = {
        name: [float((row - g).mean()) for row, g in zip(times, talks.delays, strict=True)]
        for name, times in by.items()
    }
    extra["at the end"] = [row[-1] - g[-1] for row, g in zip(by["queue"], talks.delays, strict=True)]
    for name, seconds in SHOWN.items():
        assert [round(ms / 1000, 1) for ms in extra[name]] == seconds, name
    for row in range(5):
        assert extra["fbk"][row] < extra["queue"][row] < extra["elapsed"][row]
    for name, correct in (("omnisteval", oracle.by_omnisteval), ("fbk", oracle.by_fbk)):
        exact = [float(time) for time in correct(talks.delays[2].tolist(), talks.elapsed[2].tolist())]
        assert by[name][2] == pytest.approx(np.array(exact), rel=1e-12)


def test_only_the_slow_recording_drifts_for_long(talks):
    queue, ideal = lagging.score(talks, ["LagDrift(clock=queue)", "LagDrift"])
    assert [round(ms / 1000, 1) for ms in queue.segments] == [7.5, 1.2, -0.4, -1.0, -0.1]  # seconds per minute
    assert [round(ms / 1000, 1) for ms in ideal.segments] == [0.0, 1.0, -0.3, -0.9, 0.0]
    # what is slower than real time by 0.14 falls behind by about 8.4 s a minute
    assert queue.segments[0] - ideal.segments[0] == pytest.approx(60_000 * (1.1395 - 1), rel=0.15)


# ---- FBK ----------------------------------------------------------------------------------------------------------


def vectors(data, key):
    found = json.loads((data / "test_vectors.json").read_text("utf-8"))["resegmentation_and_longform"]
    (one,) = [vector for vector in found if key in f"{vector['source']} {vector.get('note')}"]
    return one


def streamed(delays, elapsed):
    return lagging.Run.from_delays([delays], elapsed=[elapsed], source_length=[max(delays)], unit="ms")


def test_fbks_correction(data):
    vector = vectors(data, "FBK CA-elapsed transform")
    assert clock(streamed(vector["delays"], vector["elapsed"]), "fbk").tolist() == [vector["expected"]]


@pytest.mark.parametrize("test", ["test_elapsed_with_offset_at_the_beginning", "with_negative_delays"])
def test_fbks_segments(data, test):
    """Their functions take one stream and give it in segments; what came before their example is put before it here."""
    vector = vectors(data, test)
    before = [vector["prev"]] if "prev" in vector else []
    delays = [*(b["delay"] for b in before), *vector["delays"]]
    elapsed = [*(b["elapsed"] for b in before), *vector["elapsed"]]
    times = clock(streamed(delays, elapsed), "fbk")[0][len(before) :]
    got = {"delays": np.array(vector["delays"]), "elapsed": times}
    cuts = np.cumsum([len(words.split()) for words in vector["segments"]])[:-1]
    for key, expected in vector["expected"].items():
        for row, part in enumerate(np.split(got[key], cuts)):
            # they cut off what is negative
            relative = np.maximum(part - vector["offsets_ms"][row], 0)
            assert relative == pytest.approx(np.array(expected[row]), abs=1e-9), (key, row)


# ---- SimulEval ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["StartOffset", "EndOffset", "NumChunks", "RTF"])
def test_simulevals_offsets(data, short, name):
    said = json.loads((data / "simuleval_scores_of_short_form_example.json").read_text("utf-8"))["scores"]
    checked = 0
    for metric in (name, f"{name}_CA"):
        score = lagging.score(short, [metric], convention="simuleval")[metric]
        for theirs in (metric, f"{metric} --no-use-ref-len"):  # of neither does the length of the reference play a part
            if theirs in said:
                assert score.value == pytest.approx(said[theirs], rel=1e-9, abs=1e-9), theirs
                checked += 1
    assert checked == (4 if "Offset" in name else 2)


# ---- what AL hides ------------------------------------------------------------------------------------------------


def test_how_much_al_hides_of_a_real_system(short):
    al, dal = lagging.score(short, ["AL", "DAL"], convention="omnisteval")
    assert (round(al.value), round(dal.value)) == (1804, 3532)
    share, hidden, writes, tail, offline = lagging.score(
        short, ["HiddenShare", "HiddenLag", "HiddenLag(where=writes)", "HiddenLag(where=tail)", "Offline"]
    )
    assert share.value == pytest.approx(0.517, abs=0.0005)
    assert (round(hidden.value), round(writes.value), round(tail.value)) == (1776, 387, 1389)
    assert offline.value == 220 / 2580
    for row in range(0, len(short), 50):
        g, x = short.delays[row].tolist()[:-1], float(short.source_length[row])  # the last is that of </s>
        parts = oracle.hidden(g, x, source_end=x - 1)
        for score, exact in zip((writes, tail), parts, strict=True):
            assert score.segments[row] == pytest.approx(float(exact), abs=1e-12 * x)
