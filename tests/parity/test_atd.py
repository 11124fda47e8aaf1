# SPDX-License-Identifier: Apache-2.0
"""ATD against SimulEval 1.1.4: its scores of a real log, and what its live scorer makes of single sentences."""

import json

import pytest

import lagging
import oracle

EXAMPLE = "omnisteval/examples/short_form_degenerate_policy_example"

# computed with simuleval 1.1.4: ATDScorer on instances as they are before a log is written, where it is right for text
# and for output speech as well; the last of speech into text with its elapsed times, computation-aware
TEXT = [
    ([3, 4, 4, 4], 3.0),
    ([3, 4, 5, 6, 7, 8, 9, 9, 9], 3.0),
    ([2, 2, 2, 2, 5, 5, 7, 7, 7, 7], 3.4),
    ([0, 0, 1, 6, 6], 3.0),
]
SPEECH_TO_TEXT = [
    ([320.0, 960.0, 960.0, 2560.0, 2560.0, 2560.0], 923.3333333333334),
    ([1000.0, 1000.0, 3400.5, 6849.886621315192], 2362.596655328798),
]
COMPUTATION_AWARE = [
    ([1000.0, 2000.0, 2000.0, 4000.0], [1700.0, 2800.0, 2800.0, 7100.0], 2350.0),
    ([500.0, 1000.0, 1500.0], [1600.0, 2200.0, 2800.0], 1166.6666666666667),
]
SPEECH_TO_SPEECH = [
    ([1000.0, 2000.0, 3000.0], [400.0, 1500.0, 250.0], 1418.75),
    ([1000.0, 1000.0, 2500.0], [150.0, 250.0, 700.0], 1540.0),
    ([640.0, 1280.0, 1920.0, 1920.0, 3200.0], [812.5, 300.0, 90.0, 1210.25, 600.0], 1045.9772727272727),
    ([6849.886621315192], [5210.0], 6839.331065759637),
    ([300.0, 600.0, 900.0], [900.0, 900.0, 900.0], 1200.0),
]


@pytest.mark.parametrize(("delays", "value"), TEXT)
def test_text_as_simulevals_live_scorer(delays, value):
    assert lagging.atd(delays) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(("delays", "value"), SPEECH_TO_TEXT)
def test_speech_into_text_as_simulevals_live_scorer(delays, value):
    assert lagging.atd(delays, unit="ms") == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(("delays", "durations", "value"), SPEECH_TO_SPEECH)
def test_speech_into_speech_as_simulevals_live_scorer(delays, durations, value):
    assert lagging.atd(delays, unit="ms", durations=durations) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(("delays", "elapsed", "value"), COMPUTATION_AWARE)
def test_computation_aware_as_simulevals_live_scorer(delays, elapsed, value):
    run = lagging.Run.from_delays([delays], elapsed=[elapsed], source_length=[delays[-1]], unit="ms")
    assert lagging.score(run, ["ATD(clock=queue)"])["ATD(clock=queue)"].value == pytest.approx(value, rel=1e-12)


# ---- a real log ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(data):
    return lagging.read(data / EXAMPLE / "instances.log")


@pytest.fixture(scope="module")
def published(data):
    return json.loads((data / "simuleval_scores_of_short_form_example.json").read_text("utf-8"))["scores"]


@pytest.mark.data
def test_simulevals_score_of_a_real_log(run, published):
    got = lagging.score(run, ["ATD"], convention="simuleval")["ATD"]
    assert got.value == pytest.approx(published["ATD"], rel=1e-12)
    assert got.undefined == 0


@pytest.mark.data
@pytest.mark.parametrize("metric", ["ATD_CA", "ATD(clock=queue)"])
def test_simulevals_computation_aware_score_of_a_real_log(run, published, metric):
    got = lagging.score(run, [metric], convention="simuleval")[metric]
    assert got.value == pytest.approx(published["ATD_CA"], rel=1e-12)
    assert got.signature["clock"] == "queue"


@pytest.mark.data
def test_the_segments_of_a_real_log_agree_with_the_oracle(run):
    names = ["ATD", "ATD(clock=elapsed)", "ATD(clock=queue)"]
    ideal, elapsed, overlap = lagging.score(run, names, convention=lagging.Convention("keep", eos="keep"))
    for row in range(0, len(run), 20):
        g, e = run.delays[row].tolist(), run.elapsed[row].tolist()
        scale = 1e-12 * e[-1]
        for score, times in ((ideal, g), (elapsed, e), (overlap, oracle.queued(g, e))):
            exact = float(oracle.atd(g, speech=True, times=times))
            assert score.segments[row] == pytest.approx(exact, rel=1e-12, abs=scale)
    # computing while listening makes up for some of the computing, never for more than all of it
    assert (ideal.segments <= overlap.segments + 1e-6).all()
    assert (overlap.segments <= elapsed.segments + 1e-6).all()
    assert ideal.value < overlap.value < elapsed.value


@pytest.mark.data
def test_a_stream_of_reads_and_writes_as_one_sentence(data):
    """20 000 tokens in one segment; what is quadratic takes minutes."""
    stream = lagging.read(data / "rw_streams" / "REAL" / "3.RW")
    assert len(stream) == 1
    g = stream.delays[0].tolist()
    assert len(g) > 15_000
    exact = 0
    before = sources = 0
    end = 0.0
    for t, delay in enumerate(g, 1):
        if t == 1 or delay != g[t - 2]:
            before, sources = t - 1, g[t - 2] if t > 1 else 0
        end = max(delay, end) + 1
        exact += end - min(t - max(0, before - sources), delay)
    assert lagging.score(stream, ["ATD"])["ATD"].value == pytest.approx(exact / len(g), rel=1e-12)
