# SPDX-License-Identifier: Apache-2.0
"""simulstream's own logs, read as simulstream 1.0.0 and OmniSTEval read them.

simulstream's numbers are those of its `LogReader`, `NormalizedErasure` and `RealTimeFactor` (simulstream.metrics), with
`detokenizer_type: simuleval` and `latency_unit: spm`, on the same files.
"""

import json
import time
from collections import defaultdict

import numpy as np
import pytest
import yaml

import lagging

pytestmark = pytest.mark.data

EXAMPLE = "omnisteval/examples/simulstream_example"
# deleted words, final words, real-time factor, mean ideal and computation-aware delay in ms
SIMULSTREAM = {
    "simulstream/uts/assets/test_metrics.jsonl": (74, 52, 1.384433913230896, 13038.461538461539, 17866.01169301923),
    "simulstream/uts/assets/test_all_text_deleted.jsonl": (13, 6, 1.0234149032168918, 18000.0, 23007.310152053833),
    f"{EXAMPLE}/simulstream_log.jsonl": (0, 43562, 0.25624591936310886, 433045.5615387264, 433326.1215683375),
}


@pytest.fixture(scope="module")
def run(data):
    return lagging.read(data / EXAMPLE / "simulstream_log.jsonl")


@pytest.mark.parametrize("path", SIMULSTREAM)
def test_simulstreams_own_statistics(path, data):
    erased, words, factor, ideal, aware = SIMULSTREAM[path]
    run = lagging.read(data / path)
    assert (run.origin.format, run.unit, run.level) == ("simulstream", "ms", "word")
    assert run.erased.sum() == erased
    assert len(run.delays.values) == words
    assert run.compute.values.sum() / run.source_length.sum() == pytest.approx(factor, rel=1e-9)
    assert run.delays.values.mean() == pytest.approx(ideal, rel=1e-12)
    assert run.elapsed.values.mean() == pytest.approx(aware, rel=1e-9)
    scores = lagging.score(run, ["NormalizedErasure", "RTF"])
    assert scores["NormalizedErasure"].value == pytest.approx(erased / words, rel=1e-12)
    assert scores["RTF"].value == pytest.approx(factor, rel=1e-9)


def test_simulstreams_own_tests(data):
    vectors = json.loads((data / "test_vectors.json").read_text("utf-8"))["resegmentation_and_longform"]
    expected = {
        v["source"].split("+")[-1].split()[0].rpartition("/")[2]: v["expected"]
        for v in vectors
        if "uts/assets" in v["source"]
    }
    first = lagging.read(data / "simulstream/uts/assets/test_metrics.jsonl")
    assert (first.delays[0][:8] / 1000).tolist() == expected["test_metrics.jsonl"]["ideal_delays_first8"]
    assert first.revisions.tolist() == [4]
    second = lagging.read(data / "simulstream/uts/assets/test_all_text_deleted.jsonl")
    assert second.delays.lengths.tolist() == [expected["test_all_text_deleted.jsonl"]["n_ideal_delays"]]
    assert second.prediction.tolist() == ["Back in New York, io sono"]


def test_the_example(run):
    assert (len(run), len(run.arrivals.values)) == (27, 17570)
    assert run.id.tolist() == list(range(27))
    assert run.document[0] == "ted_1096.wav"
    assert run.revisions.sum() == 0
    assert [(note.kind, note.count) for note in run.notes] == [("WHOLE RECORDINGS", 27)]
    assert round(run.compute.values.sum() / run.source_length.sum(), 3) == 0.256


def test_the_words_and_times_that_omnisteval_found(data, run):
    """All of them, but for the first words of 26 talks, which OmniSTEval loses."""
    places = yaml.load((data / EXAMPLE / "ref_segments.yaml").read_text("utf-8"), Loader=yaml.CSafeLoader)
    lines = (data / EXAMPLE / "segmentation_output/instances.resegmented.jsonl").read_text("utf-8").splitlines()
    theirs = defaultdict(list)
    for place, line in zip(places, lines, strict=True):
        segment, offset = json.loads(line), 1000 * place["offset"]
        if segment["prediction"]:
            times = zip(segment["emission_cu"], segment["emission_ca"], strict=True)
            words = zip(segment["prediction"].split(), times, strict=True)
            theirs[place["wav"]] += [(word, g + offset, e + offset) for word, (g, e) in words]
    lost = []
    for row, talk in enumerate(run.document):
        words, delays, elapsed = zip(*theirs[talk], strict=True)
        ours = run.prediction[row].split()
        first = len(ours) - len(words)
        lost += ours[:first]
        assert tuple(ours[first:]) == words
        np.testing.assert_allclose(run.delays[row][first:], delays, rtol=0, atol=1e-6)
        np.testing.assert_allclose(run.elapsed[row][first:], elapsed, rtol=0, atol=1e-6)
    assert lost == ["(Applaus)"] * 26


def test_what_is_written_is_read_back(run, tmp_path):
    assert lagging.formats.write(run, tmp_path / "again.metrics.jsonl") == []
    assert lagging.read(tmp_path / "again.metrics.jsonl").to_dict() == run.to_dict()


def test_it_is_quick(data):
    """simulstream needs 8 s for this log; here it takes a seventh of a second."""
    start = time.process_time()
    lagging.read(data / EXAMPLE / "simulstream_log.jsonl")
    assert time.process_time() - start < 1
