# SPDX-License-Identifier: Apache-2.0
import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

import lagging
import oracle
from lagging.cli import cli
from runs import scored_alike

# Made-up pieces of speech: delays, durations and |x| in ms, and what SimulEval 1.1.4's SpeechToSpeechInstance made of
# them, live, by `summarize()`: the beginning of each piece (`intervals`), and the silences between them (`silences`);
# and its scorers: EndOffset, DiscontinuityNum, DiscontinuitySum and DiscontinuityAve.
LIVE = [
    ([1000, 2000, 3000], [400, 1500, 250], 3500, [1000, 2000, 3500], [600], (250, 1, 600, 600)),
    (
        [640, 1280, 1920, 1920, 3200],
        [812.5, 300, 90, 1210.25, 600],
        4000,
        [640, 1452.5, 1920, 2010, 3220.25],
        [167.5],
        (-179.75, 1, 167.5, 167.5),
    ),
    ([500, 1000, 1500], [500, 500, 500], 1500, [500, 1000, 1500], [], (500, 0, 0, 0)),
    ([300, 600, 900], [900, 900, 900], 1000, [300, 1200, 2100], [], (2000, 0, 0, 0)),
    ([6849.886621315192], [5210], 6849.886621315192, [6849.886621315192], [], (5210, 0, 0, 0)),
    (
        [320, 960, 2560, 2560, 4480, 5120],
        [333.3333333333333, 125, 700.1, 10.7, 0, 64],
        5000,
        [320, 960, 2560, 3260.1, 4480, 5120],
        [306.66666666666674, 1475, 1209.2000000000003, 640],
        (184, 4, 3630.866666666667, 907.7166666666667),
    ),
]
SPOKEN = ["EndOffset", "DiscontinuityNum", "DiscontinuitySum", "DiscontinuityAve"]


def speech(**columns):
    given = {"unit": "ms", "source_length": [5000] * len(columns["delays"]), **columns}
    return lagging.Run.from_delays(**given)


def of(run, metric, convention="paper"):
    return lagging.score(run, [metric], convention=convention)[metric]


# ---- text ---------------------------------------------------------------------------------------------------------


def test_where_output_begins_and_ends():
    run = lagging.Run.from_delays([[1, 3, 3, 4], [5], [2, 2, 2], [6, 7]], source_length=[4, 5, 5, 5])
    assert of(run, "StartOffset").segments.tolist() == [1, 5, 2, 6]
    assert of(run, "EndOffset").segments.tolist() == [0, 0, -3, 2]
    assert of(run, "NumChunks").segments.tolist() == [3, 1, 1, 2]
    assert of(run, "NumChunks(of=tokens)").segments.tolist() == [4, 1, 3, 2]
    assert of(run, "StartOffset").value == 3.5
    assert of(run, "StartOffset(mean=token)").value == (4 * 1 + 5 + 3 * 2 + 2 * 6) / 10
    assert [of(run, m).unit for m in ("StartOffset", "NumChunks", "RTF(of=delays)")] == ["token", "count", "ratio"]


def test_what_is_written_before_anything_was_read_is_a_chunk():
    run = lagging.Run.from_delays([[0, 0, 0], [0, 1]], source_length=[3, 3])
    assert of(run, "NumChunks").segments.tolist() == [1, 2]
    assert of(run, "Segments").segments.tolist() == [0, 1]  # where only reads begin a segment


def test_what_has_no_offset_is_counted():
    run = lagging.Run.from_delays([[], [3], [1]], source_length=[5, 0, 5])
    for metric in ("StartOffset", "EndOffset", "NumChunks", "RTF(of=delays)"):
        score = of(run, metric)
        assert score.undefined == 2
        assert score.undefined.reasons["empty source"] == (1,)
    assert of(run, "StartOffset").undefined.reasons["empty hypothesis"] == (0,)
    assert of(run, "StartOffset(empty=source)").segments[0] == 5
    assert of(run, "EndOffset(empty=source)").segments[0] == 0
    assert of(run, "NumChunks(empty=source)").segments[0] == 1


def test_segments_of_a_stream_may_begin_before_they_began():
    run = lagging.Run.from_delays([[-300, 200]], source_length=[1000], unit="ms", seg="given")
    assert of(run, "StartOffset").value == -300
    assert of(run, "EndOffset").value == -800
    assert of(run, "NumChunks").value == 2


def test_an_end_mark_is_no_output():
    run = speech(delays=[[1000, 3000]], source_length=[3000], prediction=["ja </s>"], level="word")
    names = ["StartOffset", "EndOffset", "NumChunks", "NumChunks(of=tokens)"]
    assert [score.value for score in lagging.score(run, names)] == [1000, -2000, 1, 1]
    assert [score.value for score in lagging.score(run, names, convention="simuleval")] == [1000, 0, 2, 2]


# ---- computing ----------------------------------------------------------------------------------------------------


def test_rtf_is_a_ratio_of_sums():
    run = speech(delays=[[1000, 2000], [500]], elapsed=[[1500, 3500], [600]], source_length=[2000, 8000])
    score = of(run, "RTF")
    assert score.segments.tolist() == [0.75, 0.0125]
    assert score.value == 0.16 != score.segments.mean()


def test_simulevals_rtf_is_a_mean_of_last_delays():
    run = speech(delays=[[1000, 2000], [500]], elapsed=[[1500, 3500], [600]], source_length=[2000, 8000])
    assert of(run, "RTF", "simuleval").value == (1 + 0.0625) / 2
    assert of(run, "RTF_CA", "simuleval").value == (1.75 + 0.075) / 2
    assert str(of(run, "RTF", "simuleval").signature).startswith("RTF(of=delays)|")
    assert of(run, "RTF(of=compute)", "simuleval").value == 0.16  # what is asked for stands above the convention
    tokens = lagging.Run.from_delays([[1, 2]], source_length=[4])
    assert of(tokens, "RTF", "simuleval").value == 0.5


def test_rtf_needs_time_and_is_the_same_on_every_clock():
    with pytest.raises(lagging.MetricError, match="it needs elapsed times, or the computing time"):
        of(speech(delays=[[1000]]), "RTF")
    with pytest.raises(lagging.MetricError, match="source in milliseconds only"):
        of(lagging.Run.from_delays([[1]], source_length=[1], elapsed=[[5]]), "RTF")
    with pytest.raises(lagging.MetricError, match="the same on every clock"):
        of(speech(delays=[[1000]], elapsed=[[1500]]), "RTF_CA")


def test_rtf_of_nothing_written_is_not_known_from_elapsed_times():
    run = speech(delays=[[], [1000]], elapsed=[[], [1500]])
    score = of(run, "RTF")
    assert score.undefined.reasons == {"nothing was written, and the log does not say what was computed": (0,)}
    assert score.value == 0.1


# ---- speech -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("delays", "durations", "x", "starts", "silences", "scores"), LIVE)
def test_as_simulevals_live_instance(delays, durations, x, starts, silences, scores):
    played = oracle.played(delays, durations)
    assert [float(start) for start, _ in played] == pytest.approx(starts, rel=1e-12)
    assert [float(gap) for gap in oracle.silences(delays, durations)] == pytest.approx(silences, rel=1e-12)
    run = speech(delays=[delays], durations=[durations], source_length=[x])
    for convention in ("paper", "simuleval"):
        got = lagging.score(run, SPOKEN, convention=convention)
        assert [score.value for score in got] == pytest.approx(scores, rel=1e-12, abs=1e-9)
        assert of(run, "NumChunks", convention).value == len(delays)
        assert of(run, "StartOffset", convention).value == delays[0]
    # from its own log it takes the last delay instead, and gets less than in the run that wrote the log
    assert of(run, "RTF", "simuleval").value == pytest.approx((starts[-1] + durations[-1]) / x)


def test_all_of_them_at_once():
    run = speech(
        delays=[case[0] for case in LIVE],
        durations=[case[1] for case in LIVE],
        source_length=[case[2] for case in LIVE],
    )
    for place, metric in enumerate(SPOKEN):
        score = of(run, metric)
        assert score.segments == pytest.approx(np.array([case[5][place] for case in LIVE]), rel=1e-12, abs=1e-9)
        assert score.value == pytest.approx(np.mean([case[5][place] for case in LIVE]))


def test_a_gap_that_is_rounding_is_no_silence():
    # the second piece begins when the first ends, and the third when the second does
    run = speech(delays=[[0.7, 0.8, 1.1]], durations=[[0.1, 0.3, 1]])
    assert 0.7 + 0.1 < 0.8
    assert [score.value for score in lagging.score(run, SPOKEN[1:])] == [0, 0, 0]
    run = speech(delays=[[100, 300.001]], durations=[[200, 1]])
    assert of(run, "DiscontinuityNum").value == 1
    assert of(run, "DiscontinuitySum").value == pytest.approx(0.001)


def test_a_silent_output_is_undefined_or_charged():
    run = speech(delays=[[], [1000]], durations=[[], [300]], source_length=[2000, 1200])
    for metric in SPOKEN:
        assert of(run, metric).undefined.reasons == {"empty hypothesis": (0,)}
    assert [of(run, f"{m}(empty=source)").segments.tolist() for m in SPOKEN] == [[0, 100], [0, 0], [0, 0], [0, 0]]


def test_on_another_clock_the_pieces_come_later():
    run = speech(
        delays=[[1000, 2000]], durations=[[400, 100]], elapsed=[[1500, 2600]], source_length=[2000], document=["a"]
    )
    assert [score.value for score in lagging.score(run, SPOKEN)] == [100, 1, 600, 600]
    late = [f"{m}(clock=elapsed)" for m in SPOKEN]
    assert [score.value for score in lagging.score(run, late)] == [700, 1, 700, 700]


@pytest.mark.parametrize("metric", SPOKEN[1:])
def test_text_has_no_silence(metric):
    with pytest.raises(lagging.MetricError, match=f"{metric}: it is defined for output speech"):
        of(speech(delays=[[1000]]), metric)


@pytest.mark.parametrize("metric", SPOKEN)
def test_speech_from_text_cannot_be_placed(metric):
    run = lagging.Run.from_delays([[1, 2]], source_length=[2], durations=[[300, 300]])
    with pytest.raises(lagging.MetricError, match="counted in tokens and the output speech in milliseconds"):
        of(run, metric)
    assert of(run, "NumChunks").value == 2


# ---- in a log -----------------------------------------------------------------------------------------------------


def spoken_log(path):
    lines = [
        {
            "index": place,
            "prediction": f"{place}.wav",
            "delays": delays,
            "durations": durations,
            "prediction_offset": delays[0],
            "elapsed": [],
            "intervals": [list(pair) for pair in zip(starts, durations, strict=True)],
            "prediction_length": 1.5,
            "source_length": x,
            "reference": "ja",
            "source": f"{place}.src.wav",
        }
        for place, (delays, durations, x, starts, _, _) in enumerate(LIVE)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def test_from_a_log_of_speech(tmp_path):
    path = spoken_log(tmp_path / "instances.log")
    names = [*SPOKEN, "NumChunks", "StartOffset"]
    expected = {m: float(np.mean([case[5][place] for case in LIVE])) for place, m in enumerate(SPOKEN)}
    expected |= {"NumChunks": np.mean([len(case[0]) for case in LIVE])}
    expected |= {"StartOffset": np.mean([case[0][0] for case in LIVE])}
    for chosen in (names, *([name] for name in names)):  # only the columns that a metric names are read
        result = CliRunner().invoke(cli, ["score", str(path), "-m", ",".join(chosen), "-q", "-f", "json"])
        assert result.exit_code == 0, result.output
        for row in json.loads(result.stdout)["scores"]:
            assert row["score"] == pytest.approx(expected[row["metric"]]), row["metric"]


def test_in_parts_as_at_once_and_again_by_the_signature(tmp_path):
    run = lagging.read(spoken_log(tmp_path / "instances.log"))
    names = [*SPOKEN, "NumChunks", "StartOffset(mean=token)", "RTF(of=delays)"]
    for convention in ("paper", "simuleval"):
        scored_alike(run, names, convention)


def test_a_run_of_which_nothing_is_known_has_no_number():
    run = lagging.Run.from_delays([[], []], source_length=[3, 3])
    for metric in ("StartOffset", "EndOffset", "NumChunks", "RTF(of=delays)"):
        assert math.isnan(of(run, metric).value)
