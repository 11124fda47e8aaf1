# SPDX-License-Identifier: Apache-2.0
import json
import math

import pytest
from click.testing import CliRunner

import lagging
import oracle
from lagging import policies
from lagging.cli import cli
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.plan import Plan
from runs import scored_alike

ALL = [
    "HiddenLag",
    "HiddenLag(where=writes)",
    "HiddenLag(where=tail)",
    "HiddenShare",
    "HiddenShare(where=writes)",
    "HiddenShare(where=tail)",
    "Offline",
    "SWF",
    "EFSW",
    "DSPTV",
]


def of(run, metric, convention="paper"):
    return lagging.score(run, [metric], convention=convention)[metric]


def tokens(*delays, x=5):
    return lagging.Run.from_delays(
        list(delays), source_length=[x] * len(delays), reference_length=[len(d) for d in delays]
    )


# ---- the seven policies -------------------------------------------------------------------------------------------

# name, g, |x|; then HiddenLag, HiddenShare, Offline, and OmniSTEval's verdict, whose YAAL, AL, LAAL and DAL are
# those that OmniSTEval 0.1.10 printed for these seven. |reference| = |y|
SEVEN = [
    ("wait-4", [4, 5, 5, 5, 5], 5, 0, 0, 0, False, (4, 4, 4, 4)),
    ("antagonist-4", [4, 4, 4, 4, 5], 5, 1.8, 0.45, 0, True, (2.5, 2.2, 2.2, 4)),
    ("wait-1", [1, 2, 3, 3, 3, 3], 3, 0.25, 1 / 7, 0, True, (1.25, 1.5, 1.5, 1.75)),
    ("wait-1-catchup", [1, 1, 2, 2, 3, 3], 3, 0.2, 0.2, 0, False, (0.75, 0.8, 0.8, 1)),
    ("wait-1", [1, 2, 3], 6, 1, 1, 0, False, (0, 0, 0, 1)),
    ("offline", [5, 5, 5, 5, 5], 5, 0, 0, 1, False, (math.nan, 5, 5, 5)),
    ("one word, then offline", [1, 5, 5, 5, 5], 5, 0.9, 0.9 / 3.4, 0, True, (1, 2.5, 2.5, 3.4)),
]


@pytest.mark.parametrize(
    ("name", "g", "x", "hidden", "share", "offline", "verdict", "scores"),
    SEVEN,
    ids=[f"{case[0]}-{case[2]}-{len(case[1])}" for case in SEVEN],
)
def test_seven_policies(name, g, x, hidden, share, offline, verdict, scores):
    if name[0] != "o" or name == "offline":
        assert policies.policy(name).delays(x, len(g)).tolist() == g
    run = tokens(g, x=x)
    assert of(run, "HiddenLag").value == pytest.approx(hidden, abs=1e-12)
    assert of(run, "HiddenShare").value == pytest.approx(share, abs=1e-12)
    assert of(run, "Offline").value == offline
    writes, tail = oracle.hidden(g, x)
    assert of(run, "HiddenLag(where=writes)").value == pytest.approx(float(writes), abs=1e-12)
    assert of(run, "HiddenLag(where=tail)").value == pytest.approx(float(tail), abs=1e-12)
    assert float(writes + tail) == pytest.approx(hidden)
    got = lagging.score(run, ["YAAL", "AL", "LAAL", "DAL", "DSPTV"], convention="omnisteval")
    assert [score.value for score in got][:4] == pytest.approx(scores, nan_ok=True)
    assert (abs(got["DSPTV"].value) > 20) == verdict


def test_what_the_verdict_gets_wrong():
    values = {name: of(tokens(g, x=x), "DSPTV").value for name, g, x, *_ in SEVEN if name != "wait-1"}
    assert values == pytest.approx(
        {
            "wait-4": 0,
            "antagonist-4": -30,
            "wait-1-catchup": 75 - 200 / 3,
            "offline": math.nan,
            "one word, then offline": 60,
        },
        nan_ok=True,
    )
    assert of(tokens([1, 2, 3, 3, 3, 3], x=3), "DSPTV").value == pytest.approx(175 / 3 - 100 / 3)  # a false alarm
    assert of(tokens([1, 2, 3], x=6), "DSPTV").value == 0


def test_free_writes_and_the_tail():
    # the antagonist writes four tokens for one read: all of it is free writes
    assert oracle.hidden([4, 4, 4, 4, 5], 5) == (oracle.dal([4, 4, 4, 4, 5], 5) - oracle.al([4, 4, 4, 4, 5], 5), 0)
    # one word early, then everything after the end: AL looks at two tokens of five
    writes, tail = oracle.hidden([1, 5, 5, 5, 5], 5)
    assert (writes, float(tail)) == (0, 0.9)
    run = tokens([4, 4, 4, 4, 5], [1, 5, 5, 5, 5])
    assert of(run, "HiddenLag(where=writes)").segments == pytest.approx([1.8, 0])
    assert of(run, "HiddenLag(where=tail)").segments == pytest.approx([0, 0.9])
    assert of(run, "HiddenShare").value == pytest.approx(2.7 / 7.4)  # a ratio of sums
    assert of(run, "HiddenShare(where=writes)").value == pytest.approx(1.8 / 7.4)


# ---- edge cases ---------------------------------------------------------------------------------------------------


def test_wait_k_hides_nothing():
    for k in range(1, 8):
        run = policies.wait_k(k).run(source_lengths=[7, 12, 30], target_lengths=[7, 12, 30])
        assert of(run, "HiddenLag").segments.tolist() == [0, 0, 0]
        assert of(run, "HiddenShare").value == 0


def test_no_lag_has_no_share():
    score = of(tokens([0, 0, 0, 0, 0], [4, 5, 5, 5, 5]), "HiddenShare")
    assert score.undefined.reasons == {"there is no lag, so nothing to hide": (0,)}
    assert score.value == 0
    run = lagging.Run.from_delays([[-300, -200], [500, 900]], source_length=[1000] * 2, unit="ms", seg="given")
    assert of(run, "HiddenShare").undefined == 1  # DAL is negative
    assert of(run, "HiddenLag").undefined == 0


def test_more_than_all_can_be_hidden():
    run = tokens([0, 0, 0, 0, 5])
    assert of(run, "AL").value < 0 < of(run, "DAL").value
    assert of(run, "HiddenShare").value > 1


def test_empty_hypotheses_and_sources():
    run = lagging.Run.from_delays([[], [1], [4, 5, 5, 5, 5]], source_length=[5, 0, 5], reference_length=[5, 1, 5])
    for metric in ALL:
        score = of(run, metric)
        assert score.undefined.reasons == {"empty hypothesis": (0,), "empty source": (1,)}, metric
        assert score.value == of(run[2:], metric).value
    charged = {metric: of(run, lagging.metric(metric)(empty="source")).segments[0] for metric in ALL}
    assert math.isnan(charged.pop("EFSW"))  # nothing was written before the source ended
    assert math.isnan(charged.pop("DSPTV"))
    assert charged.pop("Offline") == 1
    assert set(charged.values()) == {0}


def test_one_token():
    assert [of(tokens([3], x=5), m).value for m in ALL] == [0, 0, 0, 0, 0, 0, 0, 100, 40, -60]
    values = [of(tokens([5], x=5), m).value for m in ALL]
    assert values[:8] == [0, 0, 0, 0, 0, 0, 1, 0]
    assert math.isnan(values[8])
    assert math.isnan(values[9])


def test_the_end_of_the_source_is_within_a_millisecond():
    run = lagging.Run.from_delays([[4999.5, 5200]], source_length=[5000], reference_length=[2], unit="ms")
    assert [of(run, m).value for m in ("Offline", "SWF")] == [1, 0]
    assert [of(run, m, "omnisteval").value for m in ("Offline", "SWF")] == [0, 50]
    assert of(run, "Offline", "omnisteval").signature["tol"] == "0"


def test_offline_is_a_share_of_segments_or_of_tokens():
    run = tokens([5, 5], [1, 5, 5, 5, 5], [5])
    assert of(run, "Offline").segments.tolist() == [1, 0, 1]
    assert of(run, "Offline").value == 2 / 3
    assert of(run, "Offline(mean=token)").value == 3 / 8


def test_fractions_are_ratios_of_sums():
    run = lagging.Run.from_delays(
        [[2, 4], [1, 5, 5, 5, 5], [5]], source_length=[4, 5, 5], reference_length=[4, 5, math.nan]
    )
    assert of(run, "SWF").value == 100 * 2 / 8
    assert of(run, "SWF").segments.tolist() == [50, 20, 0]
    # YAAL is 2, 1 and undefined
    assert of(run, "EFSW").value == 100 * (2 + 4) / (4 + 5)
    assert of(run, "EFSW").undefined.reasons == {"nothing was written before the source ended": (2,)}
    assert of(run, "EFSW").signature["noref"] == "1"
    # what has no YAAL counts in SWF all the same, but has no value of its own
    assert of(run, "DSPTV").value == pytest.approx(600 / 9 - 25)
    assert of(run, "DSPTV").segments == pytest.approx([0, 60, math.nan], nan_ok=True)
    assert of(run, "DSPTV").undefined.reasons == {"nothing was written before the source ended": (2,)}


def test_where_nothing_was_expected_there_is_no_test_value():
    """OmniSTEval has nan for a system that is offline throughout, not 0."""
    run = lagging.Run.from_delays([[5, 5], [4, 6]], source_length=[5, 4], reference_length=[2, 2])
    score = of(run, "DSPTV")
    assert math.isnan(score.value)
    assert score.undefined.reasons == {"nothing was written before the source ended": (0, 1)}
    keep_sums = Accumulator(Plan.make(["DSPTV"], keep="sums"))
    keep_sums.add(run)
    (summed,) = keep_sums.scores()
    assert math.isnan(summed.value)
    assert summed.undefined == 2


def test_what_is_written_too_early_raises_what_is_expected_above_100():
    run = tokens([0, 0, 0, 0], x=5)
    assert of(run, "EFSW").value == 100 * (5 + 1.875) / 5
    assert oracle.expected_simultaneous([0, 0, 0, 0], 5, 4) == 5 + oracle.Fraction(15, 8)


def test_whose_length_is_taken():
    run = lagging.Run.from_delays([[4, 4, 4, 4, 5]], source_length=[5], reference_length=[10])
    assert of(run, "HiddenLag").signature["length"] == "hypothesis"
    assert of(run, "HiddenLag(length=longest)").value == pytest.approx(
        float(oracle.dal([4, 4, 4, 4, 5], 5, 10) - oracle.al([4, 4, 4, 4, 5], 5, 10))
    )
    assert of(run, "EFSW").signature["length"] == "longest"
    assert of(run, "SWF").signature.get("length") is None


# ---- in a signature, and in parts ---------------------------------------------------------------------------------


def mixed():
    return lagging.Run.from_delays(
        [[400.0, 400.0, 900.0], [], [1000.0], [999.5, 1200.0], [100.0, 100.0, 100.0, 1000.0]],
        source_length=[1000, 1000, 0, 1000, 1000],
        elapsed=[[500.0, 500.0, 1200.0], [], [1100.0], [1300.0, 1600.0], [120.0, 120.0, 120.0, 1100.0]],
        prediction=["a b c", "", "d", "e </s>", "f g h </s>"],
        reference=["a b c", "x", "d", "e  f", "f"],
        unit="ms",
        level="word",
    )


@pytest.mark.parametrize("convention", ["paper", "simuleval", "omnisteval"])
def test_in_parts_as_at_once_and_again_by_the_signature(convention):
    run = mixed()
    names = [*ALL, "HiddenLag(where=tail, mean=token)", "Offline(empty=source, mean=token)"]
    names += ["HiddenShare(clock=queue)", "DSPTV(clock=elapsed, empty=source)", "HiddenShare(length=longest)"]
    scored_alike(run, names, convention)


def test_the_segments_that_hide_most_can_be_found(tmp_path):
    log, out = tmp_path / "log.jsonl", tmp_path / "segments.tsv"
    lines = [{"id": name, "delays": g, "source_length": x} for name, g, x, *_ in SEVEN if name != "wait-1"]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    args = ["score", str(log), "-m", "HiddenLag,Offline", "--segment-scores", str(out), "-q"]
    assert CliRunner().invoke(cli, args).exit_code == 0
    head, *rows = [line.split("\t") for line in out.read_text("utf-8").splitlines() if not line.startswith("#")]
    hidden = {row[head.index("id")]: float(row[head.index("HiddenLag")]) for row in rows}
    assert max(hidden, key=hidden.get) == "antagonist-4"
