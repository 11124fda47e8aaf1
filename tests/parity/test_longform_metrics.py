# SPDX-License-Identifier: Apache-2.0
"""LongYAAL of two versions of OmniSTEval, and FBK's StreamLAAL of the segments in its own tests."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
import yaml

import lagging
import oracle
from lagging.data.run import make_texts
from lagging.metrics.clocks import clock

pytestmark = pytest.mark.data


# ---- OmniSTEval ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def example(data):
    return data / "omnisteval/examples/simulstream_example"


@pytest.fixture(scope="module")
def placed(example):
    """The segments that OmniSTEval cut, with their places, and the right end of each recording: that of its last."""
    run = lagging.read(example / "segmentation_output" / "instances.resegmented.jsonl")
    segments = yaml.safe_load((example / "ref_segments.yaml").read_text("utf-8"))
    begin, lasts = (np.array([1000 * segment[key] for segment in segments]) for key in ("offset", "duration"))
    assert (lasts == run.source_length).all()
    wavs = [segment["wav"] for segment in segments]
    ends = {wav: max(e for w, e in zip(wavs, begin + lasts, strict=True) if w == wav) for wav in wavs}
    recording_end = np.array([ends[wav] for wav in wavs]) - begin
    return replace(run, offset=begin, recording_end=recording_end, document=make_texts(wavs))


def test_two_versions_of_long_yaal(example, placed):
    with (example / "segmentation_output" / "scores.tsv").open(encoding="utf-8", newline="") as file:
        said = {row["metric"]: row["value"] for row in csv.DictReader(file, delimiter="\t")}
    # as published (0.1.7), with the end of the segment for that of the recording
    for metric, name in (("LongYAAL(end=segment)", "CU"), ("LongYAAL(end=segment, clock=elapsed)", "CA")):
        (score,) = lagging.score(placed, [metric], convention="omnisteval")
        assert f"{score.value:.4f}" == said[f"LongYAAL ({name})"]
        assert score.signature.metric == "LongYAAL(end=segment)"
    # as 0.1.10 has it
    for metric, value in (("LongYAAL", 2621.5), ("LongYAAL_CA", 2902.7)):
        (score,) = lagging.score(placed, [metric], convention="omnisteval")
        assert round(score.value, 1) == value


def test_long_laal_is_stream_laal_of_version_1(placed):
    long, first, second = lagging.score(placed, ["LongLAAL", "StreamLAAL_v1", "StreamLAAL_v2"], convention="omnisteval")
    assert (round(long.value, 1), first.value) == (2547.0, long.value)
    early = np.array([len(g) > 0 and g[0] < 0 for g in placed.delays])
    assert early.sum() == 20
    assert (second.segments[early] > first.segments[early]).all()
    assert second.value > first.value


def test_its_ends_place_no_segment(example):
    run = lagging.read(example / "segmentation_output" / "instances.resegmented.jsonl")
    with pytest.raises(lagging.MetricError, match=r"as OmniSTEval up to 0\.1\.9 wrote it"):
        lagging.score(run, ["StreamDAL"])


def test_stream_dal_of_five_talks(data):
    """Placed by the end of the recording, or by where they begin: the same; and as the recurrence has it."""
    folder = data / "omnisteval/examples/speech_resegmentation_example"
    run = lagging.read(folder / "segmentation_output" / "instances.resegmented.jsonl")
    segments = yaml.safe_load((folder / "ref_segments.yaml").read_text("utf-8"))
    begin = np.array([1000 * segment["offset"] for segment in segments])
    by_end, by_begin = (
        lagging.score(one, ["StreamDAL"])["StreamDAL"] for one in (run, replace(run, offset=begin, recording_end=None))
    )
    assert by_end.segments == pytest.approx(by_begin.segments, abs=1e-6, nan_ok=True)
    rows = [row for row, document in enumerate(run.document) if document == run.document[0]]
    given = [(begin[r], run.delays[r].tolist(), float(run.source_length[r]), len(run.delays[r])) for r in rows]
    exact = [np.nan if value is None else float(value) for value in oracle.stream_dal(given, 0.95)]
    assert by_begin.segments[rows] == pytest.approx(np.array(exact), abs=1e-6, nan_ok=True)


# ---- FBK ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", ["test_elapsed_with_offset_at_the_beginning", "with_negative_delays"])
def test_fbks_segments_and_their_stream_laal(data, test):
    """From the stream to its segments: their delays and elapsed times, and StreamLAAL, which caps what is negative."""
    found = json.loads((data / "test_vectors.json").read_text("utf-8"))["resegmentation_and_longform"]
    (vector,) = [vector for vector in found if test in vector["source"]]
    before = [vector["prev"]] if "prev" in vector else []  # their example begins in the middle of a stream
    delays = [*(b["delay"] for b in before), *vector["delays"]]
    elapsed = [*(b["elapsed"] for b in before), *vector["elapsed"]]
    stream = lagging.Run.from_delays([delays], elapsed=[elapsed], source_length=[max(delays)], unit="ms")
    texts, offsets = vector["segments"], vector["offsets_ms"]
    cuts = np.cumsum([len(text.split()) for text in texts])[:-1]

    def segments(times):
        return [part - o for part, o in zip(np.split(np.array(times)[len(before) :], cuts), offsets, strict=True)]

    lasts = [2000.0, 1250.0, 4000.0][: len(texts)]  # theirs have no duration, so any will do
    run = lagging.Run.from_delays(
        segments(delays),
        fbk_times=segments(clock(stream, "fbk")[0]),
        source_length=lasts,
        offset=offsets,
        prediction=texts,
        reference=[f"{text} ja" for text in texts],
        unit="ms",
        seg="given",
    )
    early = any(times.min() < 0 for times in run.delays)
    assert early == ("negative" in test)
    for column, metric in (("delays", "StreamLAAL"), ("elapsed", "StreamLAAL(clock=fbk)")):
        expected = vector["expected"][column]
        times = run.delays if column == "delays" else clock(run, "fbk")
        for ours, theirs in zip(times, expected, strict=True):
            assert np.maximum(ours, 0) == pytest.approx(np.array(theirs), abs=1e-9)
        (score,) = lagging.score(run, [metric], convention="simuleval")
        exact = [oracle.laal(g, x, len(g) + 1) for g, x in zip(expected, lasts, strict=True)]
        assert score.segments == pytest.approx(np.array([float(value) for value in exact]), abs=1e-9)
        (first,) = lagging.score(run, [lagging.metric(metric)(version=1)], convention="simuleval")
        assert (first.value < score.value) == early
