# SPDX-License-Identifier: Apache-2.0
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

import lagging
import oracle
from lagging.errors import MetricNameError
from runs import scored_alike

# wait-4 and the antagonist of Table 2: lags 4 4 3 2 1, and 4 3 2 1 1
TABLE_2 = [[4, 5, 5, 5, 5], [4, 4, 4, 4, 5]]


def tokens(delays, x=5, **more):
    return lagging.Run.from_delays(delays, source_length=[x] * len(delays), **more)


def of(run, metric, convention="paper"):
    return lagging.score(run, [metric], convention=convention)[metric]


# ---- percentiles --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "corpus", "segments"),
    [
        ("LagPercentile(p=0)", 1, [1, 1]),
        ("LagPercentile(p=50)", 2.5, [3, 2]),  # of 1 1 1 2 2 3 3 4 4 4
        ("LagPercentile", 4, [4, 3.6]),
        ("LagPercentile(p=25)", 1.25, [2, 1]),
        ("LagPercentile(p=100)", 4, [4, 4]),
        ("LagPercentile(p=12.5)", 1, [1.5, 1]),
        ("LagPercentile(p=50, effective=True)", 4, [4, 4]),
        ("LagPercentile(p=0, effective=True)", 4, [4, 4]),
        ("MaxLag", 4, [4, 4]),
    ],
)
def test_of_table_2(metric, corpus, segments):
    score = of(tokens(TABLE_2), metric)
    assert score.value == pytest.approx(corpus)
    assert score.segments == pytest.approx(segments)


def test_the_corpus_percentile_is_of_tokens_not_of_segments():
    run = tokens([[5], [1] * 99], x=100)
    score = of(run, "LagPercentile(p=50)")
    each = np.concatenate([lagging.lags(g, source_length=100) for g in ([5], [1] * 99)])
    assert score.value == np.percentile(each, 50) != score.segments.mean()


def test_the_median_of_one_token_is_its_lag():
    run = tokens([[3]])
    assert [of(run, m).value for m in ("LagPercentile", "LagPercentile(p=1)", "MaxLag")] == [3, 3, 3]


def test_segments_without_a_percentile_are_counted_and_add_no_token():
    run = lagging.Run.from_delays(
        [[4, 5, 5, 5, 5], [], [1], [2, 2]], source_length=[5, 5, 0, 2], reference_length=[5, 5, 1, math.nan]
    )
    score = of(run, "LagPercentile(p=50, length=reference)")
    assert score.undefined.reasons == {"empty hypothesis": (1,), "empty source": (2,), "no reference": (3,)}
    assert score.value == 3
    assert score.n == 4
    assert np.isnan(score.segments).tolist() == [False, True, True, True]


def test_nothing_at_all_has_no_percentile():
    for metric in ("LagPercentile", "MaxLag", "LagDrift"):
        score = of(tokens([[], []]), metric)
        assert math.isnan(score.value)
        assert score.undefined == 2


def test_an_empty_hypothesis_can_be_charged():
    run = tokens([[], [1, 2]])
    assert of(run, "LagPercentile(p=100, empty=source)").value == 5
    assert of(run, "MaxLag(empty=source)").segments.tolist() == [5, 1]
    assert of(run, "LagDrift(empty=source)").undefined.reasons == {"one token has no slope": (0,)}


@pytest.mark.parametrize("p", ["-1", "100.5", "nan", "inf", "many"])
def test_percentiles_are_from_0_to_100(p):
    with pytest.raises(MetricNameError, match="p must be a float, 0 or more, 100 or less"):
        lagging.metric(f"LagPercentile(p={p})")


def test_in_parts_as_at_once_and_again_by_the_signature():
    run = tokens([*TABLE_2, [], [1], [5, 5, 5]], reference_length=[5, 6, 5, 2, 3])
    names = ["LagPercentile", "LagPercentile(p=33.3, effective=True, length=longest)", "MaxLag", "LagDrift"]
    whole = scored_alike(run, names)
    assert whole["LagPercentile"].signature.get("mean") is None  # there is no mean
    assert str(whole[names[1]].signature).startswith("LagPercentile(p=33.3, effective=True)|unit:token|length:longest|")


def test_scores_of_tokens_can_be_pickled_and_indexed():
    scores = lagging.score(tokens(TABLE_2), ["LagPercentile(p=50)", "LagDrift", "MaxLag"])
    for score in scores:
        again = pickle.loads(pickle.dumps(score))
        assert again.metric == score.metric
        assert again.value == score.value
        assert again.segments.tolist() == score.segments.tolist()
    drawn = scores["LagPercentile(p=50)"]
    twice = drawn.statistics.take(np.array([1, 1, 0]))
    assert drawn.metric.corpus(twice) == np.percentile([4, 3, 2, 1, 1] * 2 + [4, 4, 3, 2, 1], 50)


def test_a_pool_needs_a_row_for_every_segment_and_a_way_to_make_one_number():
    def short(s):
        return s.lags[:1]

    def plain(s):
        return s.lags

    def metric(function, **more):
        return lagging.Metric("Own", function, needs=frozenset({"length"}), **more)

    with pytest.raises(lagging.MetricError, match="1 rows for 2 segments"):
        lagging.score(tokens(TABLE_2), [metric(short, pool=lambda v: v.max(axis=-1))])
    with pytest.raises(lagging.MetricError, match="no `pool`"):
        lagging.score(tokens(TABLE_2), [metric(plain)])


def test_the_largest_lag_is_that_of_the_worst_segment():
    run = tokens([[1, 2], [5, 5], [0, 0]])
    score = of(run, "MaxLag")
    assert score.value == 5
    assert score.segments.tolist() == [1, 5, 0]
    assert not lagging.metric("MaxLag").has("effective")  # it would change nothing
    for g in TABLE_2:
        assert max(oracle.lags(g, 5)) == max(oracle.effective_lags(g, 5))


# ---- drift --------------------------------------------------------------------------------------------------------


def test_a_lag_that_grows_by_a_second_a_minute():
    # |x| = 60 s, a token each second, the t-th (t − 1)/60 s later than the first
    g = [2000 + 1000 * t + 1000 * t / 60 for t in range(60)]
    run = lagging.Run.from_delays([g], source_length=[60_000], unit="ms")
    assert of(run, "LagDrift").value == pytest.approx(1000)
    assert of(run, "LagDrift").unit == "ms/min"
    # of tokens: per 100 of them
    run = lagging.Run.from_delays([[t + t // 2 for t in range(0, 50, 2)]], source_length=[50])
    assert of(run, "LagDrift").value == pytest.approx(50)


def test_wait_k_does_not_drift_and_the_antagonist_does():
    score = of(tokens([[1, 2, 3, 4, 5], *TABLE_2]), "LagDrift")
    assert score.segments == pytest.approx([0, -80, -80])
    assert score.value == pytest.approx(-160 / 3)
    # g' never falls behind it
    assert of(tokens(TABLE_2), "LagDrift(effective=True)").segments == pytest.approx([0, 0])


def test_segments_with_more_tokens_count_for_more():
    flat, steep = [1, 2, 3, 4, 5, 6], [1, 5]
    run = lagging.Run.from_delays([flat, steep], source_length=[6, 2])
    exact = oracle.slope([oracle.points(flat, 6), oracle.points(steep, 2)])
    assert of(run, "LagDrift").value == pytest.approx(float(100 * exact))
    assert of(run, "LagDrift").segments == pytest.approx([0, 300])
    assert exact * 18 == 3 * Fraction(1, 2)  # Σ (s − s̄)² is 17.5 in one and 0.5 in the other


def stream(**more):
    """Two recordings: in one the segments lag 1, 2 and 3 s, every 10 s; in the other 5 s, twice."""
    lag, offset = [1000, 2000, 3000, 5000, 5000], [0, 10_000, 20_000, 0, 10_000]
    ends = [30_000, 20_000, 10_000, 20_000, 10_000]
    given = {"offset": offset, "recording_end": ends, "document": ["a", "a", "a", "b", "b"], "seg": "given", **more}
    delays = [[late + 1000 * t for t in range(10)] for late in lag]
    return lagging.Run.from_delays(delays, source_length=[10_000] * 5, unit="ms", **given)


def test_a_recording_drifts_as_a_whole():
    run = stream()
    exact = oracle.slope(
        [
            [p for row in rows for p in oracle.points(run.delays[row].tolist(), 10_000, begin=run.offset[row])]
            for rows in ([0, 1, 2], [3, 4])
        ]
    )
    score = of(run, "LagDrift")
    assert score.value == pytest.approx(float(60_000 * exact), rel=1e-12)
    assert score.value > 3000  # about 6 s a minute in one, 0 in the other
    assert score.segments == pytest.approx([0] * 5, abs=1e-9)  # no segment drifts by itself
    alone = run[[0, 1, 2]]
    assert of(alone, "LagDrift").value == pytest.approx(60_000 * 200 / 2247.5)  # Σ (s − s̄)(ℓ − ℓ̄) ÷ Σ (s − s̄)²


def test_a_recording_may_be_placed_by_its_end():
    for more in ({"offset": None}, {"offset": [0, math.nan, 20_000, 0, 10_000]}, {"recording_end": None}):
        assert of(stream(**more), "LagDrift").value == pytest.approx(of(stream(), "LagDrift").value, rel=1e-12)


def test_a_segment_that_lies_nowhere_is_refused():
    unknown = [0, math.nan, 20_000, 0, 10_000]
    for more in ({"offset": None, "recording_end": None}, {"offset": unknown, "recording_end": unknown}):
        with pytest.raises(lagging.MetricError, match="where in its recording each segment lies"):
            of(stream(**more), "LagDrift")
    # but not if it would not have counted
    run = stream(offset=unknown, recording_end=None)
    silent = lagging.Run.from_delays(
        [[], *run.delays.tolist()], source_length=[10_000] * 6, unit="ms", seg="given", offset=[math.nan, 0, 1, 2, 3, 4]
    )
    assert of(silent, "LagDrift").undefined.reasons == {"empty hypothesis": (0,)}


def test_without_documents_all_is_one_recording():
    run = stream(document=None, offset=[0, 10_000, 20_000, 30_000, 40_000])
    rows = [p for row in range(5) for p in oracle.points(run.delays[row].tolist(), 10_000, begin=run.offset[row])]
    assert of(run, "LagDrift").value == pytest.approx(float(60_000 * oracle.slope([rows])), rel=1e-12)


def test_without_documents_segments_must_go_on_in_time():
    with pytest.raises(lagging.MetricError, match="needs `document`"):
        of(stream(document=None), "LagDrift")


def test_what_has_no_value_does_not_move_the_drift_of_its_recording():
    run = stream(reference_length=[10, math.nan, 10, 0, 10])
    score = of(run, "LagDrift(length=reference)")
    assert score.undefined.reasons == {"no reference": (1,), "empty reference": (3,)}
    known = stream(reference_length=[10] * 5)[[0, 2, 4]]
    assert score.value == pytest.approx(of(known, "LagDrift(length=reference)").value, rel=1e-12)


def test_one_token_counts_for_nothing():
    run = lagging.Run.from_delays([[1000], [1000, 3000]], source_length=[2000, 2000], unit="ms")
    score = of(run, "LagDrift")
    assert score.undefined.reasons == {"one token has no slope": (0,)}
    assert score.value == score.segments[1] == 60_000
    for metric in ("LagPercentile(p=100)", "MaxLag"):
        assert of(run, metric).undefined == 0
