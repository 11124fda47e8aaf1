# SPDX-License-Identifier: Apache-2.0
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import lagging
import oracle
from lagging.cli import cli

ROOT = Path(__file__).parents[2]

# the schedules of Tables 1 to 6 of Cherry & Foster; SimulEval 1.1.4's live scorer gives the same
TABLES = [
    ([1, 2, 3, 4], 1),
    ([3, 4, 4, 4], 3),
    ([4, 5, 5, 5, 5], 4),
    ([4, 4, 4, 4, 5], 4),
    ([1, 2, 3, 3, 3, 3], 2),
    ([1, 1, 2, 2, 3, 3], 2.5),
    ([1, 2, 3], 1),
]


def score(metric="ATD", **columns):
    given = {"unit": "ms", "source_length": [5000] * len(columns["delays"]), **columns}
    return lagging.score(lagging.Run.from_delays(**given), [metric])[metric]


# ---- what it is ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("delays", "value"), TABLES)
def test_the_schedules_of_the_tables(delays, value):
    assert lagging.atd(delays) == lagging.atd(delays, source_length=max(delays)) == value == oracle.atd(delays)


def test_over_a_run_of_text():
    run = lagging.Run.from_delays([delays for delays, _ in TABLES], source_length=[max(d) for d, _ in TABLES])
    got = lagging.score(run, ["ATD"])["ATD"]
    assert got.segments.tolist() == [value for _, value in TABLES]
    assert got.value == sum(value for _, value in TABLES) / 7
    assert str(got.signature) == (
        f"ATD|unit:token|clock:ideal|level:token|empty:nan|seg:none|mean:segment|n:7|v:{lagging.__version__}"
    )


def test_a_long_translation_ends_late():
    assert lagging.atd([2] * 9) == np.mean([3 + t - min(1 + t, 2) for t in range(9)])
    assert lagging.al([2] * 9, source_length=2) == 2


def test_speech_into_text_by_hand():
    # 1000 ms: tokens that end at 300, 600, 900, 1000; 900 ms more: 1300, 1600, 1900
    assert lagging.atd([1000, 1000, 1900], unit="ms") == (700 + 400 + 1000) / 3
    # five words stand beside four tokens; the sixth catches up: 5 before it, but 4 of the source
    assert lagging.atd([1000] * 5 + [1900], unit="ms") == (700 + 400 + 100 + 0 + 0 + 600) / 6


def test_speech_into_speech_by_hand():
    # 400 ms after 1000: ends at 1300, 1400; 700 ms after 2000: 2300, 2600, 2700
    value = (1000 + 800 + 1400 + 1600 + 1400) / 5
    assert lagging.atd([1000, 2000], unit="ms", durations=[400, 700]) == value
    assert lagging.atd([1000, 1000, 2000], unit="ms", durations=[150, 250, 700]) == value  # one chunk of 400 ms
    # too long to be done before the next chunk: 1000 + 1500, and only then 300 more
    assert lagging.atd([1000, 2000], unit="ms", durations=[1500, 300]) == pytest.approx(
        np.mean([1300 - 300, 1600 - 600, 1900 - 900, 2200 - 1000, 2500 - 1000, 2800 - 1300])
    )


def test_the_length_of_a_token_can_be_chosen():
    assert lagging.atd([1000], unit="ms", piece=1000) == 0
    assert lagging.atd([1000], unit="ms", piece=250) == 750
    assert score("ATD(piece=250)", delays=[[1000]]).value == 750
    assert str(score("ATD(piece=250)", delays=[[1000]]).signature).startswith("ATD(piece=250)|unit:ms|")
    assert lagging.atd([3, 4, 4, 4], piece=250) == 3  # of text, it is 1


# ---- clocks -------------------------------------------------------------------------------------------------------


def test_on_the_elapsed_clock_the_source_is_spoken_as_before():
    columns = {"delays": [[1000, 1000, 1900]], "elapsed": [[1200, 1250, 2500]]}
    assert score("ATD(clock=elapsed)", **columns).value == pytest.approx((900 + 650 + 1600) / 3)
    assert score("ATD(clock=elapsed)", **columns).signature["clock"] == "elapsed"


def test_computing_while_listening():
    # 700 ms for the first word are done at 1700; 100 ms for the second at 2000 + 100, though the log says 2800
    columns = {"delays": [[1000, 2000]], "elapsed": [[1700, 2800]]}
    assert score("ATD(clock=queue)", **columns).value == (1700 - 300 + 2100 - 600) / 2
    assert score("ATD(clock=elapsed)", **columns).value == (1700 - 300 + 2800 - 600) / 2
    # a backlog: 1500 ms of computing end at 2500, and 100 ms more at 2600
    columns = {"delays": [[1000, 2000]], "elapsed": [[2500, 3600]]}
    assert score("ATD(clock=queue)", **columns).value == (2500 - 300 + 2600 - 600) / 2


def test_speech_put_out_at_two_times_after_one_delay_is_two_chunks_of_sound():
    columns = {"delays": [[1000, 1000]], "elapsed": [[1100, 1900]], "durations": [[200, 200]]}
    assert score(**columns).value == (1300 - 300 + 1400 - 600) / 2
    assert score("ATD(clock=elapsed)", **columns).value == (1300 - 300 + 2100 - 600) / 2


def test_a_stripped_end_of_sentence_takes_its_times_with_it():
    columns = {"prediction": ["a b </s>"], "delays": [[1000, 1000, 4000]], "elapsed": [[1100, 1100, 9000]]}
    assert score("ATD", **columns).value == (700 + 400) / 2
    assert score("ATD(clock=elapsed)", **columns).value == (800 + 500) / 2


# ---- edges --------------------------------------------------------------------------------------------------------


def test_nothing_written_or_nothing_to_read_is_undefined():
    assert math.isnan(lagging.atd([]))
    assert math.isnan(lagging.atd([], unit="ms", durations=[]))
    assert math.isnan(lagging.atd([0], source_length=0))
    got = score(delays=[[], [1000], [0]], source_length=[1000, 1000, 0])
    assert got.undefined.reasons == {"empty hypothesis": (0,), "empty source": (2,)}
    assert got.value == 700


def test_an_empty_hypothesis_can_be_charged():
    text = lagging.Run.from_delays([[], [1]], source_length=[6, 6])
    assert lagging.score(text, ["ATD(empty=source)"])["ATD(empty=source)"].segments.tolist() == [6, 1]
    assert score("ATD(empty=source)", delays=[[], [1000]]).segments.tolist() == [4700, 700]
    spoken = {"delays": [[], [1000]], "durations": [[], [300]], "elapsed": [[], [1000]]}
    for clock in ("ideal", "elapsed"):
        assert score(f"ATD(empty=source, clock={clock})", **spoken).segments.tolist() == [5000, 1000]


def test_sound_of_two_segments_is_not_joined():
    got = score(delays=[[1000], [1000]], durations=[[200], [200]])
    assert got.segments.tolist() == [900, 900]


def test_no_sound_is_undefined():
    got = score(delays=[[1000, 2000], [1000]], durations=[[0, 0], [300]])
    assert got.undefined.reasons == {"no sound was put out": (0,)}
    assert got.value == 1000
    assert math.isnan(lagging.atd([1000], unit="ms", durations=[0]))


def test_a_chunk_without_sound_has_read_its_source_all_the_same():
    # 200 + 200 ms are two tokens, 400 ms would be 300 and 100
    assert lagging.atd([200, 400], unit="ms", durations=[0, 300]) == 700 - 200
    assert lagging.atd([400], unit="ms", durations=[300]) == 700 - 300


def test_nothing_read_yet():
    assert lagging.atd([0, 0]) == (1 + 2) / 2
    assert lagging.atd([0, 0], unit="ms") == 0
    assert lagging.atd([0, 1000], unit="ms") == (0 + 700) / 2


def test_written_before_the_segment_began():
    got = score(delays=[[-400, -100, 600]], seg="given")
    assert got.value == pytest.approx((-400 - 100 + 600 - 300) / 3)


def test_delays_beyond_the_source():
    assert score(delays=[[1000, 9000]]).value == lagging.atd([1000, 9000], unit="ms")


def test_however_short_a_remainder_is_a_token():
    assert lagging.atd([600, 600, 600], unit="ms") == pytest.approx((300 + 0 + 0) / 3)
    assert lagging.atd([600.0001] * 3, unit="ms") == pytest.approx((300.0001 + 0.0001 + 0) / 3)
    assert lagging.atd([0.0001, 300.0001], unit="ms") == pytest.approx(0)


def test_but_rounding_is_not():
    seconds = (0.3, 0.1 + 0.2)
    assert seconds[0] < seconds[1]
    # a second token would be the one that the second word stands beside
    assert [lagging.atd([1000 * s, 1000 * s + 300], unit="ms") for s in seconds] == pytest.approx([0, 0], abs=1e-9)
    steps = [0.6 * n * 1000 for n in range(1, 2000)]
    assert steps != [600.0 * n for n in range(1, 2000)]
    assert lagging.atd(steps, unit="ms") == pytest.approx(lagging.atd([600.0 * n for n in range(1, 2000)], unit="ms"))


def test_fractions_of_a_source_token_are_tokens():
    assert lagging.atd([1.5, 2.5]) == pytest.approx(float(oracle.atd([1.5, 2.5])))


# ---- what cannot be ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"unit": "s"}, lagging.UsageError, "unit must be"),
        ({"durations": [1, 1]}, lagging.UsageError, "unit='ms'"),
        ({"unit": "ms", "durations": [1]}, lagging.DataError, "1 durations, 2 delays"),
        ({"unit": "ms", "durations": [1, -2]}, lagging.DataError, "token 2: a duration of -2 ms"),
        ({"unit": "ms", "durations": [math.nan, 1]}, lagging.DataError, "token 1: a duration of NaN ms"),
        ({"unit": "ms", "durations": ["1", 1]}, lagging.DataError, "durations: '1' is not a number"),
        ({"unit": "ms", "durations": 3}, lagging.DataError, "not valid numbers"),
        ({"unit": "ms", "durations": [[1, 2], [3, 4]]}, lagging.DataError, "not valid numbers"),
        ({"unit": "ms", "piece": 0}, lagging.MetricError, "piece must be a number of ms, 1 or more"),
        ({"unit": "ms", "piece": 60_001}, lagging.MetricError, "60000 or less"),
        ({"unit": "ms", "piece": math.nan}, lagging.MetricError, "piece must be"),
        ({"source_length": -1}, lagging.DataError, "source_length"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        lagging.atd([1, 2], **arguments)


def test_bad_delays():
    with pytest.raises(lagging.DataError, match="1 durations, 0 delays"):
        lagging.atd([], unit="ms", durations=[1])
    with pytest.raises(lagging.DataError, match=r"delays decrease, token 2: 2 → 1"):
        lagging.atd([2, 1])


def test_bad_parameters():
    for wrong in ("piece=0", "piece=60001", "piece=nan", "piece=short"):
        with pytest.raises(lagging.MetricError, match=wrong.partition("=")[0]):
            lagging.metric(f"ATD({wrong})")
    assert repr(lagging.metric("ATD_CA")) == "ATD(clock=queue)"


def test_tokens_in_and_speech_out_do_not_go_together():
    with pytest.raises(lagging.MetricError, match="source is counted in tokens and the output speech in milliseconds"):
        score(delays=[[1, 2]], source_length=[2], durations=[[300, 300]], unit="token")


def test_speech_without_end():
    with pytest.raises(lagging.MetricError, match="more tokens than can be handled"):
        score(delays=[[1000]], durations=[[1e17]])


def test_durations_must_be_declared():
    talkative = lagging.Metric("Talkative", lambda s: s.durations.by_row(lambda lasts: lasts.sum(axis=1)))
    with pytest.raises(lagging.MetricError, match=r"did not declare: needs=\['durations'\]"):
        score(talkative, delays=[[1000]], durations=[[300]])


# ---- from a log ----------------------------------------------------------------------------------------------------


def test_a_log_of_speech_output_is_scored_with_its_durations(tmp_path):
    common = {"prediction": "0.wav", "prediction_offset": 1000, "elapsed": [], "prediction_length": 1.0}
    line = {"index": 0, **common, "delays": [1000, 2000], "durations": [400, 700], "source_length": 2000}
    line |= {"intervals": [[1000, 400], [2000, 700]], "reference": "a", "source": "0.wav"}
    path = tmp_path / "instances.log"
    path.write_text(json.dumps(line) + "\n", "utf-8")
    for run in (lagging.read(path), lagging.scan(path, columns={"durations"})):
        assert lagging.score(run, ["ATD"])["ATD"].value == 1240
    said = CliRunner().invoke(cli, ["score", str(path), "-m", "ATD", "-f", "json", "-q"])
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["scores"][0]["score"] == 1240


# ---- cost ----------------------------------------------------------------------------------------------------------


def test_the_table_of_source_tokens_does_not_grow_with_the_source():
    """A delay of 10¹⁵ ms is 3·10¹² source tokens, of which two are looked at."""
    assert lagging.atd([1e15, 1e15], unit="ms") == 1e15 - 450


def test_the_benchmark_prints_its_table(tmp_path):
    """That it runs; what it measures depends on the machine, so no time is asserted."""
    command = [sys.executable, "-X", "utf8", str(ROOT / "bench" / "atd.py"), "--quick"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert ran.returncode == 0, ran.stderr
    for kind in ("text → text", "speech → text", "speech → speech"):
        assert kind in ran.stdout
    assert "SimulEval: not measured" in ran.stdout
    assert not list(tmp_path.iterdir())


def test_many_rows_in_one_rectangle_are_told_apart():
    rng = np.random.default_rng(0)
    rows = np.sort(rng.integers(0, 9000, (50, 7)), axis=1).astype(float)
    got = score(delays=rows.tolist(), source_length=[9000] * 50).segments
    assert got.tolist() == pytest.approx([float(oracle.atd(row, speech=True)) for row in rows.tolist()], abs=1e-8)
