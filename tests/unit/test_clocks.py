# SPDX-License-Identifier: Apache-2.0
import json

import numpy as np
import pytest
from click.testing import CliRunner

import lagging
import oracle
from lagging.cli import cli
from lagging.data.ragged import Ragged
from lagging.metrics.clocks import CLOCKS, clock, steps
from lagging.metrics.record import CLOCK_COLUMNS

CORRECTED = ["queue", "omnisteval", "fbk", "fbk1"]
SHOWN = ["first", "stable"]
NOT_IDEAL = [name for name in CLOCKS if name not in ("ideal", *SHOWN)]


def speech(delays, elapsed=None, **more):
    given = {"source_length": [max([0, *row]) for row in delays], "unit": "ms", **more}
    return lagging.Run.from_delays(delays, elapsed=elapsed, **given)


def test_every_clock_has_a_name_and_columns():
    assert list(CLOCKS) == list(CLOCK_COLUMNS) == list(lagging.metric("DAL").param("clock").choices)


# ---- what they say ------------------------------------------------------------------------------------------------


def test_the_worked_example():
    # a chunk each second, 1 s and 1.5 s of computing, then hardly any
    run = speech([[1000, 2000, 3000]], [[2000, 4500, 5600]], first_times=[[1000, 1500, 3000]])
    assert {name: clock(run, name).tolist() for name in CLOCKS} == {
        "ideal": [[1000, 2000, 3000]],
        "elapsed": [[2000, 4500, 5600]],
        "queue": [[2000, 3500, 3600]],  # the second step starts at 2000, the third at 3500
        "omnisteval": [[2000, 3500, 3500]],  # 5600 − 4500 + 2000 is 3100, but not before the token before
        "fbk": [[2000, 3500, 3100]],
        "fbk1": [[2000, 3500, 3100]],
        "first": [[1000, 1500, 3000]],
        "stable": [[1000, 2000, 3000]],
    }
    assert steps(run)[1].tolist() == [[1000, 1500, 100]]


def test_computing_that_is_faster_than_listening_does_not_add_up():
    # 100 ms of computing after each 500 ms of listening: nobody waits longer than 100 ms
    g = [500 * t for t in range(1, 21)]
    run = speech([g], [[delay + 100 * t for t, delay in enumerate(g, 1)]])
    assert (clock(run, "queue")[0] - g).tolist() == [100] * 20
    assert (clock(run, "elapsed")[0] - g).tolist() == [100 * t for t in range(1, 21)]
    scores = lagging.score(run, ["LagDrift(clock=queue)", "LagDrift(clock=elapsed)", "RTF", "EndOffset(clock=queue)"])
    assert scores["LagDrift(clock=queue)"].value == pytest.approx(0, abs=1e-9)
    assert scores["LagDrift(clock=elapsed)"].value == pytest.approx(12_000)  # 12 s a minute
    assert scores["RTF"].value == pytest.approx(0.2)
    assert scores["EndOffset(clock=queue)"].value == 100


def test_computing_that_is_slower_than_listening_adds_up():
    # 600 ms after each 500 ms: every step waits 100 ms longer for the one before
    g = [500 * t for t in range(1, 11)]
    run = speech([g], [[delay + 600 * t for t, delay in enumerate(g, 1)]])
    assert (clock(run, "queue")[0] - g).tolist() == [500 + 100 * t for t in range(1, 11)]
    assert lagging.score(run, ["RTF"])["RTF"].value == pytest.approx(1.2)


def test_tokens_written_at_once_are_there_at_once():
    run = speech([[400, 400, 800, 800]], [[500, 500, 1100, 1100]])
    for name in CORRECTED:
        assert clock(run, name).tolist() == [[500, 500, 1000, 1000]]


def test_steps_of_the_log_are_taken_where_it_has_them():
    # the second step writes nothing, and holds up the third all the same
    run = speech(
        [[1000, 3000]], arrivals=[[1000, 2000, 3000]], compute=[[200, 1500, 300]], steps=[[0, 2]], elapsed=[[1, 2]]
    )
    assert steps(run)[1].tolist() == [[200, 1500, 300]]
    assert clock(run, "queue").tolist() == [[1200, 3800]]
    assert oracle.finishes([1000, 2000, 3000], [200, 1500, 300]) == [1200, 3500, 3800]
    assert clock(run, "elapsed").tolist() == [[1, 2]]
    assert lagging.score(run, ["RTF"])["RTF"].value == 2000 / 3000


def test_several_segments_keep_their_own_steps():
    run = speech(
        [[1000, 2000], [], [500, 500, 1500]],
        arrivals=[[1000, 2000], [700], [500, 1000, 1500]],
        compute=[[100, 1], [50], [900, 10, 20]],
        steps=[[0, 1], [], [0, 0, 2]],
    )
    assert clock(run, "queue").tolist() == [[1100, 2001], [], [1400, 1400, 1520]]


def test_computing_in_vain_counts_in_rtf():
    run = speech(
        [[1000], []], arrivals=[[1000], [1000]], compute=[[500], [300]], steps=[[0], []], source_length=[1000] * 2
    )
    score = lagging.score(run, ["RTF"])["RTF"]
    assert score.value == 0.4
    assert score.segments.tolist() == [0.5, 0.3]


def test_empty_and_single():
    run = speech([[], [700]], [[], [900]], source_length=[500, 800])
    for name in NOT_IDEAL:
        assert clock(run, name).tolist() == [[], [900]]
    empty = speech([[], []], [[], []], source_length=[500, 800])
    for name in CLOCKS:
        assert clock(empty, name).tolist() == [[], []]
        (score,) = lagging.score(empty, [f"DAL(clock={name})"])
        assert np.isnan(score.value)
        assert score.undefined.reasons == {"empty hypothesis": (0, 1)}


def test_an_end_mark_goes_with_its_time():
    columns = {"source_length": [3000], "unit": "ms", "level": "word"}
    with_mark = lagging.Run.from_delays(
        [[1000, 2000, 3000]], elapsed=[[1500, 4000, 9000]], prediction=["a b </s>"], **columns
    )
    without = lagging.Run.from_delays([[1000, 2000]], elapsed=[[1500, 4000]], prediction=["a b"], **columns)
    names = [f"DAL(clock={name})" for name in ["ideal", *NOT_IDEAL]]
    for one, other in zip(lagging.score(with_mark, names), lagging.score(without, names), strict=True):
        assert one.value == other.value
        assert one.signature["eos"] == "stripped"
    # but what was computed was computed
    assert lagging.score(with_mark, ["RTF"])["RTF"].value == 2
    late = [f"EndOffset(clock={name})" for name in ["ideal", *NOT_IDEAL]]
    assert [score.value for score in lagging.score(with_mark, late)] == [-1000, 1000, 500, 500, 500, 500]
    kept = lagging.score(with_mark, late, convention="simuleval")
    assert [score.value for score in kept] == [0, 6000, 4500, 4000, 4000, 4000]
    assert {score.signature["eos"] for score in kept} == {"kept"}


def test_an_empty_hypothesis_is_charged_the_source_on_every_clock():
    run = speech([[], [700]], [[], [900]], source_length=[500, 800])
    for name in NOT_IDEAL:
        got = lagging.score(run, [f"DAL(clock={name}, empty=source)", f"Offline(clock={name}, empty=source)"])
        assert [score.segments.tolist() for score in got] == [[500, 900], [1, 1]]


# ---- FBK's, where the recording is cut ------------------------------------------------------------------------------


def test_fbk_copies_what_is_left_of_a_cost_after_a_word_before_its_segment():
    """Three words of one step that cost 400 ms. The first came 300 ms before its segment: FBK's script has cut that off
    of its time, so that 100 ms are left for the words after it.
    """
    run = speech([[1000, 1000, 1000, 1000]], [[1400, 1400, 1400, 1400]])
    begin = Ragged.from_rows([[0, 1300, 1300, 0]])
    assert clock(run, "fbk", begin).tolist() == [[1400, 1400, 1100, 1000]]
    assert clock(run, "fbk").tolist() == [[1400, 1400, 1400, 1400]]  # nothing is cut
    assert clock(run, "fbk1", begin).tolist() == [[1400, 1400, 1400, 1400]]  # before version 2.0, nothing was cut off
    exact = oracle.by_fbk([1000] * 4, [1400] * 4, [0, 1300, 1300, 0])
    assert clock(run, "fbk", begin).tolist() == [exact]


# ---- rounding -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CORRECTED)
def test_no_token_is_there_before_its_delay_by_rounding(name):
    """Computing took no time after the first step: then each token is there at its delay, or when the first was."""
    rng = np.random.default_rng(7)
    for spent in (0.1, 333.3, 1234.567):
        g = np.cumsum(rng.uniform(0, 700, 300))
        run = speech([g.tolist()], [(g + spent).tolist()])
        times = clock(run, name)[0]
        assert (times >= g).all()


@pytest.mark.parametrize(
    ("name", "g", "spent"),
    [
        ("queue", [837.9, 1460.7, 1497.2, 2230.0], 366),
        ("omnisteval", [761.9, 920.0, 1000.4, 1777.2], 11.1),
        ("fbk", [761.9, 920.0, 1000.4, 1777.2], 11.1),
    ],
)
def test_rounding_does_not_move_the_end_of_the_source(name, g, spent):
    """The second word has read all of the source, and was computed before: there AL ends, compared exactly."""
    run = speech([g], [[round(delay + spent, 1) for delay in g]], source_length=[g[1]])
    (score,) = lagging.score(run, [f"AL(clock={name})"], convention="simuleval")
    assert score.value == pytest.approx((g[0] + spent + g[1] - g[1] / 4) / 2)


@pytest.mark.parametrize("name", CORRECTED)
def test_tokens_of_one_step_are_there_at_one_time(name):
    rng = np.random.default_rng(3)
    arrivals = np.cumsum(rng.uniform(100, 900, 60))
    spent = np.cumsum(rng.uniform(0, 900, 60))
    g, e = np.repeat(arrivals, 3), np.repeat(arrivals + spent, 3)
    times = clock(speech([g.tolist()], [e.tolist()]), name)[0].reshape(60, 3)
    assert (times == times[:, :1]).all()


def test_a_queue_that_never_waits_adds_computing_to_arrival_alone():
    rng = np.random.default_rng(5)
    arrivals = np.cumsum(rng.uniform(500, 900, 400))
    compute = rng.uniform(0, 400, 400)
    run = speech(
        [arrivals.tolist()],
        arrivals=[arrivals.tolist()],
        compute=[compute.tolist()],
        steps=[list(range(400))],
    )
    assert clock(run, "queue")[0].tolist() == (arrivals + compute).tolist()


def test_rounding_of_elapsed_times_does_not_add_up():
    g = [100.0 * t for t in range(1, 201)]
    elapsed = [delay + 50 + 0.9 * (t % 2) for t, delay in enumerate(g)]  # to and fro by 0.9 ms
    run = speech([g], [elapsed])
    assert steps(run)[1].values.sum() == pytest.approx(50.9)
    assert clock(run, "queue")[0].max() <= g[-1] + 50.9 + 1e-9


@pytest.mark.parametrize(
    "elapsed",
    [
        [150, 240, 340],  # by 10 ms at once
        [150 + 99.2 * t for t in range(3)],  # by 1.6 ms little by little
        [90, 190, 290],  # before the source was there
    ],
)
def test_elapsed_times_that_are_not_simulevals_are_refused(elapsed):
    run = speech([[100, 200, 300]], [elapsed])
    with pytest.raises(lagging.MetricError, match="elapsed − delay shrinks"):
        clock(run, "queue")
    with pytest.raises(lagging.MetricError, match=r"RTF: elapsed − delay shrinks"):
        lagging.score(run, ["RTF"])
    assert clock(run, "elapsed").tolist() == [elapsed]


# ---- first and stable -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["ms", "token"])
def test_first_and_stable(unit):
    """Any unit will do; where nothing was erased, the two are the same."""
    revised = speech([[4, 5]], unit=unit, first_times=[[4, 4]], erased=[1])
    assert [clock(revised, name).tolist() for name in SHOWN] == [[[4, 4]], [[4, 5]]]
    never = speech([[4, 5]], unit=unit, erased=[0])
    assert [clock(never, name).tolist() for name in SHOWN] == [[[4, 5]], [[4, 5]]]


@pytest.mark.parametrize("erased", [None, [1], [np.nan]])
def test_when_a_token_was_first_shown_must_be_known(erased):
    more = {} if erased is None else {"erased": erased}
    with pytest.raises(lagging.MetricError, match=r"first shown, and the log does not have it .*\n  fix: "):
        clock(speech([[4, 5]], **more), "first")


def test_a_line_without_first_times_was_never_revised(tmp_path):
    path = tmp_path / "log.jsonl"
    lines = [
        {"delays": [100, 200], "first_times": [100, 150], "erased": 1, "source_length": 300, "unit": "ms"},
        {"delays": [50], "erased": 0, "source_length": 300, "unit": "ms"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    assert lagging.read(path).first_times.tolist() == [[100, 150], [50]]


# ---- what they refuse ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NOT_IDEAL)
def test_without_times_there_is_no_clock(name):
    with pytest.raises(lagging.MetricError, match=f"DAL.clock={name}.: it needs elapsed times"):
        lagging.score(speech([[1000]]), [f"DAL(clock={name})"])


@pytest.mark.parametrize("name", NOT_IDEAL)
def test_tokens_have_no_time(name):
    run = lagging.Run.from_delays([[1, 2]], elapsed=[[100, 200]], source_length=[2])
    with pytest.raises(lagging.MetricError, match="counted in tokens and elapsed time in milliseconds"):
        clock(run, name)


@pytest.mark.parametrize("name", CORRECTED)
def test_segments_cut_from_a_stream_do_not_tell_what_was_computed(name):
    run = speech([[100, 200]], [[90_000, 90_100]], seg="given")
    with pytest.raises(lagging.MetricError, match="segments cut out of a stream"):
        clock(run, name)
    assert clock(run, "elapsed").tolist() == [[90_000, 90_100]]


# ---- segments that keep the times of the whole recording ----------------------------------------------------------

KEPT = {
    "elapsed": [[-300, 100], [90_000]],
    "queue_times": [[-250, 150], [700]],
    "omnisteval_times": [[-260, 160], [800]],
    "fbk_times": [[-270, -280], [900]],
    "fbk1_times": [[-275, -285], [950]],
}


@pytest.mark.parametrize("name", NOT_IDEAL)
def test_segments_keep_the_times_of_the_whole_recording(name):
    run = speech([[-400, 50], [600]], seg="given", **KEPT)
    times = KEPT["elapsed" if name == "elapsed" else f"{name}_times"]
    assert clock(run, name).tolist() == times
    last, first = lagging.score(run, [f"EndOffset(clock={name})", f"StartOffset(clock={name})"])
    assert last.segments.tolist() == [row[-1] - x for row, x in zip(times, run.source_length, strict=True)]
    assert first.segments.tolist() == [row[0] for row in times]


def test_an_end_mark_goes_with_its_time_in_a_segment_too():
    run = speech([[100, 200]], seg="given", prediction=["a </s>"], queue_times=[[150, 950]])
    (score,) = lagging.score(run, ["EndOffset(clock=queue)"])
    assert score.value == 150 - run.source_length[0]
    bare = lagging.strip(run, "eos")
    assert bare.queue_times.tolist() == [[150]]


@pytest.mark.parametrize("name", CORRECTED)
def test_a_column_of_one_clock_is_not_that_of_another(name):
    columns = {column: times for column, times in KEPT.items() if column != f"{name}_times"}
    run = speech([[-400, 50], [600]], seg="given", **columns)
    with pytest.raises(lagging.MetricError, match=r"segments cut out of a stream.*\n  fix: .*--segmentation"):
        clock(run, name)


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("name", NOT_IDEAL)
def test_times_of_segments_are_read_where_a_clock_wants_them(name, ending, tmp_path):
    """Negative ones too: what was there before the segment began."""
    run = speech([[-400, 50], [600]], seg="given", **KEPT)
    path = tmp_path / f"cut.{ending}"
    lagging.write(run, path)
    metric = f"DAL(clock={name})"
    parts = lagging.scan(path, columns=lagging.metric(metric).columns)
    assert (
        lagging.score(parts, [metric])[metric].segments.tolist()
        == lagging.score(run, [metric])[metric].segments.tolist()
    )
    again = lagging.read(path)
    for column, times in KEPT.items():
        assert getattr(again, column).tolist() == times


def test_steps_without_tokens_are_refused():
    run = speech([[100]], arrivals=[[100]], compute=[[10]])
    with pytest.raises(lagging.MetricError, match="which step wrote which token"):
        clock(run, "queue")
    assert lagging.score(run, ["RTF"])["RTF"].value == 0.1


# ---- in a signature -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLOCKS)
def test_a_signature_names_the_clock_and_repeats_it(name, tmp_path):
    path = tmp_path / "log.jsonl"
    lines = [
        {"delays": [1000, 2000, 3000], "elapsed": [2000, 4500, 5600], "source_length": 3000, "unit": "ms"}
        | {"first_times": [1000, 1200, 3000], "erased": 2},
        {"delays": [500], "elapsed": [700], "source_length": 900, "unit": "ms"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    metric = f"DAL(clock={name})"
    score = lagging.score(lagging.read(path), [metric])[metric]
    assert score.signature["clock"] == name
    args = ["score", str(path), "-q", "-f", "json"]
    shown = [CliRunner().invoke(cli, [*args, *more]) for more in (["-m", metric], ["--like", str(score.signature)])]
    assert [result.exit_code for result in shown] == [0, 0]
    for result in shown:
        (row,) = json.loads(result.stdout)["scores"]
        assert row["score"] == score.value
        assert row["signature"] == str(score.signature)


def stepped(elapsed):
    columns = {"arrivals": [[1000, 2000]], "compute": [[500, 100]], "steps": [[0, 1]]}
    return speech([[1000, 2000]], [elapsed], **columns)


def test_times_of_single_steps_need_no_correction():
    """As simulstream has them: FBK's clock takes them as they are, and OmniSTEval corrects no such log."""
    run = stepped([1500, 2100])
    assert clock(run, "fbk").tolist() == [[1500, 2100]]
    with pytest.raises(lagging.MetricError, match=r"DAL.clock=omnisteval.: .*each has that of its own step alone"):
        lagging.score(run, ["DAL(clock=omnisteval)"])


@pytest.mark.parametrize("name", ["omnisteval", "fbk", "fbk1"])
def test_times_that_add_up_are_corrected_where_the_log_has_the_steps_too(name):
    assert clock(stepped([1500, 2600]), name).tolist() == [[1500, 2100]]


# ---- what adds up ---------------------------------------------------------------------------------------------------


def talk(spent=200.0):
    """A talk of 5 minutes, a word each second, of which each takes some computing."""
    g = [1000.0 * k for k in range(1, 301)]
    return speech([g], [[delay + spent * k for k, delay in enumerate(g, 1)]], source_length=[300_000])


def loud(run, *metrics):
    return [note for note in lagging.score(run, metrics).notes if note.kind == "ELAPSED TIMES ADD UP"]


def test_elapsed_times_of_a_recording_come_with_a_loud_note():
    (note,) = loud(talk(), "AL", "AL_CA")
    assert (note.count, note.noun) == (1, "recording")
    assert "clock=queue" in note.text
    assert not loud(talk(), "AL", "AL(clock=queue)", "AL(clock=fbk)")


def test_elapsed_times_of_segments_cut_from_a_recording_come_with_it_too():
    run = talk()
    e, g = run.elapsed[0].reshape(30, 10), run.delays[0].reshape(30, 10)
    offset = np.arange(30) * 10_000.0
    cut = {"source_length": [10_000] * 30, "offset": offset, "seg": "given", "document": ["a.wav"] * 30}
    (note,) = loud(speech((g - offset[:, None]).tolist(), (e - offset[:, None]).tolist(), **cut), "LAAL_CA")
    assert note.segments == ("a.wav",)
    by_step = (g - offset[:, None] + np.tile([200.0, 900.0], 5)).tolist()  # as simulstream has them
    assert not loud(speech((g - offset[:, None]).tolist(), by_step, **cut), "LAAL_CA")


def test_sentences_come_without_it():
    assert not loud(speech([[1000, 9000]], [[3000, 25_000]], source_length=[10_000]), "AL_CA")
    assert not loud(talk(spent=0.0), "AL_CA")  # no computing, nothing to add up
