# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np
import pytest

import lagging
from lagging.errors import MetricNameError
from runs import scored_alike


def cut(delays, source_length, **more):
    """Segments of one recording, one after the other."""
    offset = np.concatenate([[0], np.cumsum(source_length)[:-1]])
    return lagging.Run.from_delays(delays, source_length=source_length, **{"offset": offset, "seg": "given", **more})


def of(run, metric, convention="paper"):
    return lagging.score(run, [metric], convention=convention)[metric]


# ---- CW -----------------------------------------------------------------------------------------------------------


def test_cw_of_a_segment_written_before_it_began_counts_what_was_read():
    """Nothing was read between these words: undefined, and not −∞. From −2 to 4 in two runs: 3."""
    run = cut([[-5, -5], [-2, 1, 4], [3, 4]], [4, 4, 4])
    score = of(run, "CW")
    assert score.segments.tolist()[1:] == [3, 2]
    assert math.isnan(score.segments[0])
    assert score.undefined.reasons == {"nothing was read": (0,)}
    assert score.value == 2.5
    assert of(run, "SourcePerSegment").value == (6 + 4) / (2 + 2)


# ---- StreamLAAL ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        # lags −2 −1 2 with a reference of 4: γ = 1, τ = 3
        ("StreamLAAL(version=1)", (-2 + -1 + 2) / 3),
        ("StreamLAAL(version=2)", (0 + -1 + 2) / 3),
        ("StreamLAAL(version=1, length=hypothesis)", (-2 + (0 - 4 / 3) + (4 - 8 / 3)) / 3),
    ],
)
def test_before_the_segment(metric, value):
    run = cut([[-2, 0, 4]], [4], reference_length=[4])
    assert of(run, metric).value == pytest.approx(value)


@pytest.mark.parametrize("version", [1, 2])
def test_the_end_of_the_segment_has_the_tolerance_of_al(version):
    run = cut([[1000, 1999.5, 3000]], [2000], unit="ms", reference_length=[4])
    metric = f"StreamLAAL(version={version})"
    assert of(run, metric).value == (1000 + 1499.5) / 2
    assert of(run, metric, "omnisteval").value == (1000 + 1499.5 + 2000) / 3


def test_the_name_of_a_peer_is_its_number():
    """FBK's script prints StreamLAAL_CA, on times that it corrects; SimulEval's `_CA` are the elapsed times."""
    names = {
        "StreamLAAL_CA": "StreamLAAL(clock=fbk)",
        "streamlaal_ca": "StreamLAAL(clock=fbk)",
        "StreamLAAL_v1_CA": "StreamLAAL(version=1, clock=fbk1)",
        "StreamLAAL_v2_CA": "StreamLAAL(version=2, clock=fbk)",
        "LAAL_CA": "LAAL(clock=elapsed)",
    }
    assert {name: repr(lagging.metric(name)) for name in names} == names


def test_versions_have_names_and_show_in_the_signature():
    run = cut([[-1000, 500, 2000]], [2000], unit="ms", elapsed=[[-900, 700, 2500]], fbk1_times=[[-990, 600, 2300]])
    assert lagging.metric("StreamLAAL_v1") == lagging.metric("StreamLAAL(version=1)")
    heads = {
        name: str(of(run, name).signature).split("|")[0] for name in ("StreamLAAL", "StreamLAAL_v1", "StreamLAAL_v2")
    }
    assert heads == {
        "StreamLAAL": "StreamLAAL",
        "StreamLAAL_v1": "StreamLAAL(version=1)",
        "StreamLAAL_v2": "StreamLAAL",
    }
    assert of(run, "StreamLAAL").value == of(run, "StreamLAAL_v2").value != of(run, "StreamLAAL_v1").value
    scored_alike(run, ["StreamLAAL", "StreamLAAL_v1", "StreamLAAL_v1_CA"])
    with pytest.raises(MetricNameError, match="version must be '1' or '2', but got '3'"):
        lagging.metric("StreamLAAL(version=3)")


@pytest.mark.parametrize("metric", ["StreamLAAL", "StreamLAAL_v1", "StreamDAL", "StreamDrift"])
def test_what_was_not_cut_from_a_stream_is_refused(metric):
    run = lagging.Run.from_delays([[1, 2]], source_length=[2], offset=[0])
    with pytest.raises(
        lagging.MetricError, match=r"segments cut from a stream, and these are not\n  fix: .*--segmentation"
    ):
        of(run, metric)


# ---- StreamDAL ----------------------------------------------------------------------------------------------------

# four source words in two segments; the first is written when all of them were read
LATE = [[4, 4], [2, 2]]


@pytest.mark.parametrize(
    ("scale", "carried"),
    [
        (1, [4, 5, 6, 7]),  # what was late stays late
        (0.5, [4, 4.5, 5, 5.5]),
        (0, [4, 4, 4, 4]),
    ],
)
def test_delay_is_carried_on_to_the_next_segment(scale, carried):
    due = [0, 1, 2, 3]
    lags = [time - at for time, at in zip(carried, due, strict=True)]
    score = of(cut(LATE, [2, 2]), f"StreamDAL(scale={scale})")
    assert score.segments.tolist() == [sum(lags[:2]) / 2, sum(lags[2:]) / 2]


def test_the_cost_of_a_token_is_that_of_its_own_segment():
    run = cut([[6, 6, 6], [0, 0]], [6, 1])  # d = 2, then 1/2
    # g' = 6, 8, 10 and then 12, 12.5, in a segment that begins at 6
    assert of(run, "StreamDAL(scale=1)").segments.tolist() == [6, (6 + 6.5 - 0.5) / 2]


def test_recordings_do_not_wait_for_each_other():
    run = cut([*LATE, *LATE], [2] * 4, offset=[0, 2, 0, 2], document=["a", "a", "b", "b"])
    assert of(run, "StreamDAL(scale=1)").segments.tolist() == [4, 4, 4, 4]
    turned = cut([LATE[1], LATE[0], *LATE], [2] * 4, offset=[2, 0, 0, 2], document=["b", "b", "a", "a"])
    assert of(turned, "StreamDAL(scale=1)").segments.tolist() == [4, 4, 4, 4]
    as_one = cut([*LATE, *LATE], [2] * 4)
    assert of(as_one, "StreamDAL(scale=1)").segments.tolist() == [4, 4, 4, 4]
    behind = cut([[9, 9], *LATE], [2] * 3, document=["a", "a", "b"])
    assert of(behind, "StreamDAL(scale=1)").segments.tolist() == [9, 9, 2]


def test_a_segment_without_a_value_does_not_break_the_chain():
    run = cut([[4, 4], [], [7], [2, 2]], [2, 3, 0, 2], offset=[0, 2, 5, 5])
    score = of(run, "StreamDAL(scale=1)")
    assert score.undefined.reasons == {"empty hypothesis": (1,), "empty source": (2,)}
    # g' = 4, 5 | – | 12, which costs nothing | 12, 13, in a segment that begins at 5
    assert [score.segments[0], score.segments[3]] == [4, (7 + 8 - 1) / 2]
    unknown = cut([[4, 4], [2, 2], [0, 0]], [2, 2, 2], reference_length=[2, math.nan, 2])
    score = of(unknown, "StreamDAL(scale=1, length=reference)")
    assert score.undefined.reasons == {"no reference": (1,)}
    assert [score.segments[0], score.segments[2]] == [4, (2 + 3 - 1) / 2]  # g' = 4, 5 | 6, 6 | 6, 7


def test_stream_dal_by_default_as_in_the_paper():
    run = cut(LATE, [2, 2])
    assert of(run, "StreamDAL").value == of(run, "StreamDAL(scale=0.95)").value != of(run, "StreamDAL(scale=1)").value
    scored_alike(cut([*LATE, [], [1]], [2, 2, 1, 1]), ["StreamDAL", "StreamDAL(scale=1)", "StreamDAL(empty=source)"])
    with pytest.raises(MetricNameError, match="scale must be a float, 0 or more"):
        lagging.metric("StreamDAL(scale=-1)")


def test_stream_dal_on_a_clock():
    run = cut([[100], [100]], [1000, 1000], unit="ms", elapsed=[[300], [500]], queue_times=[[2500], [1600]])
    # d = 1000: the queue has them at 2500 and 2600, and then the second cannot be there before 3500
    assert of(run, "StreamDAL(scale=1, clock=queue)").segments.tolist() == [2500, 2500]
    assert of(run, "StreamDAL(scale=0, clock=queue)").segments.tolist() == [2500, 1600]
    assert of(run, "StreamDAL_CA").segments.tolist() == [300, 500]
    with pytest.raises(lagging.MetricError, match="segments cut out of a stream"):
        of(run, "StreamDAL(clock=fbk)")


def test_an_end_that_is_that_of_the_segment_places_nothing():
    """As OmniSTEval up to 0.1.9 wrote it; the difference of two times is rounded."""
    ends = [2, 2.0000000001]
    for metric in ("StreamDAL", "LagDrift"):
        with pytest.raises(lagging.MetricError, match=r"end of each segment.*\n  fix: cut the log"):
            of(cut(LATE, [2, 2], offset=None, recording_end=ends), metric)
        # of recordings of one segment each, that is the end
        alone = cut(LATE, [2, 2], offset=None, recording_end=ends, document=["a", "b"])
        assert not math.isnan(of(alone, metric).value)
    with pytest.raises(lagging.MetricError, match="where in its recording each segment lies"):
        of(cut(LATE, [2, 2], offset=None), "StreamDAL")


# ---- StreamDrift --------------------------------------------------------------------------------------------------


def talks(**more):
    """Segments of a minute: in one talk they lag 1, 2 and 4 s, in another 3 s, twice; of a third there is only one."""
    lag, minutes = [1000, 2000, 4000, 3000, 3000, 9000], [0, 1, 2, 5, 6, 3]
    given = {"offset": [60_000 * at for at in minutes], "document": [*"aaabbc"], "seg": "given", "unit": "ms", **more}
    delays = [[late, late + 30_000] for late in lag]
    return lagging.Run.from_delays(delays, source_length=[60_000] * 6, **given)


def test_a_lag_that_grows():
    score = of(talks(), "StreamDrift")
    # Σ (o − ō)(ℓ − ℓ̄) = 3000 and 0, Σ (o − ō)² = 2 and 0.5, in minutes
    assert score.value == pytest.approx(3000 / 2.5)
    assert score.segments == pytest.approx(np.array([1500, 1500, 1500, 0, 0, math.nan]), nan_ok=True)
    assert score.undefined.reasons == {"no other segment of its recording begins at another time": (5,)}
    assert (score.unit, of(talks(), "LagDrift").unit) == ("ms/min", "ms/min")
    assert of(talks()[:3], "StreamDrift").value == pytest.approx(1500)
    by_end = talks(offset=None, recording_end=[600_000 - 60_000 * at for at in (0, 1, 2, 5, 6, 3)])
    assert of(by_end, "StreamDrift").value == pytest.approx(score.value)


def test_what_has_no_value_does_not_move_the_drift():
    run = talks(reference_length=[2, math.nan, 2, 2, 0, 2])
    score = of(run, "StreamDrift(length=reference)")
    assert score.value == pytest.approx(1500)  # of 1 s, and 4 s two minutes later; of the other talk there is one left
    assert score.undefined.reasons["no reference"] == (1,)
    assert score.undefined.reasons["empty reference"] == (4,)
    assert score.undefined == 4
    assert math.isnan(of(talks()[[0, 3, 5]], "StreamDrift").value)
    scored_alike(talks(), ["StreamDrift", "StreamDrift(length=longest)"])


def test_segments_at_one_time_have_no_drift():
    run = talks(offset=[0.1] * 6, document=None)
    assert of(run, "StreamDrift").undefined == 6


# ---- LongYAAL -----------------------------------------------------------------------------------------------------


def test_long_yaal_up_to_two_ends():
    run = cut([[1000, 2000, 3000, 6000]], [3000], unit="ms", recording_end=[5000], reference_length=[4])
    recording, segment = lagging.score(run, ["LongYAAL", "LongYAAL(end=segment)"])
    assert recording.value == (1000 + 1250 + 1500) / 3
    assert segment.value == (1000 + 1250) / 2
    assert str(segment.signature).startswith("LongYAAL(end=segment)|unit:ms|length:longest|")
    assert str(recording.signature).startswith("LongYAAL|unit:ms|")
    # a word at the very end is beyond it, and there is no tolerance: YAAL has one
    near = cut([[1000, 2999.5]], [3000], unit="ms", reference_length=[3])
    assert of(near, "LongYAAL(end=segment)").value == (1000 + 1999.5) / 2
    assert of(near, "YAAL").value == 1000
    assert of(near, "LongYAAL(end=segment)").value == of(near, "YAAL", "omnisteval").value
    with pytest.raises(lagging.MetricError, match="it needs `recording_end`"):
        of(near, "LongYAAL")


@pytest.mark.parametrize("at", [1, 2, 3])
def test_what_is_stripped_does_not_depend_on_where_a_stream_is_divided(at) -> None:
    texts = ["good", "good day", "good </s>", "day"]  # one text has an end that is stripped
    run = lagging.Run.from_delays(
        [[100.0], [100.0, 300.0], [50.0, 900.0], [200.0]],
        source_length=[1000.0] * 4,
        prediction=texts,
        recording_end=[4000.0, 3000.0, 2000.0, 1000.0],
        unit="ms",
        level="word",
        seg="given",
    )
    whole, parts = (lagging.score(made, ["StreamDAL"])["StreamDAL"] for made in (run, [run[:at], run[at:]]))
    assert whole.segments.tolist() == parts.segments.tolist()
    assert str(whole.signature) == str(parts.signature)
    assert not whole.undefined
