# SPDX-License-Identifier: Apache-2.0
"""Tallies: exact sums, histograms, buckets, intervals, and that they are what `lagging.score` says."""

from __future__ import annotations

import math
import pickle
import zlib
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import lagging
from lagging import Run
from lagging.data.exact import expansions, total
from lagging.errors import MetricError, UsageError
from lagging.metrics import metric as metric_named
from lagging.metrics import register, registry
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.histogram import bucket_middle, buckets
from lagging.scoring.intervals import interval
from lagging.scoring.part import score_part
from lagging.scoring.plan import Plan
from lagging.scoring.poisson import BUCKETS, RESAMPLES, SEED, segment_buckets, weights
from lagging.scoring.signature import Signature, joined
from lagging.scoring.tally import Tally, tallies
from lagging.stats.estimators import Ratio
from lagging.stats.intervals import acceleration, bca

EXAMPLES = Path(__file__).parents[2] / "examples/data"
SUMS = ["AP", "CW", "AL", "DAL", "LAAL", "ATD", "DAL(mean=token)", "AL(empty=source)", "HiddenLag", "HiddenShare"]
SUMS += ["BLEU", "chrF", "TER"]


def speech(n: int, seed: int = 1, **more: object) -> Run:
    """Random segments of speech, some of them empty."""
    dice = np.random.default_rng(seed)
    lengths = dice.integers(0, 20, n)
    delays = [np.sort(dice.gamma(2, 1000, k)).tolist() for k in lengths]
    named = {"id": [f"s{i}" for i in range(n)], "unit": "ms", "source_length": dice.uniform(500, 8000, n), **more}
    return Run.from_delays(delays, **named)


def accumulate(
    metrics: Sequence[str], *runs: Run, group_by: Sequence[str] = (), seed: int | None = SEED
) -> Accumulator:
    """An Accumulator that has added up these segments."""
    accumulator = Accumulator(Plan.make(metrics, group_by=group_by, summary=True, seed=seed))
    for run in runs:
        accumulator.add(run)
    return accumulator


def join(first: Accumulator, second: Accumulator) -> Accumulator:
    first.join(second)
    return first


def tally(run: Run, name: str, seed: int | None = SEED) -> Tally:
    """The Tally of a Run by one metric."""
    return accumulate([name], run, seed=seed).groups[()][metric_named(name)]


def accumulate_parts(
    run: Run, metrics: list[str], parts: int, seed: int = 3, group_by: Sequence[str] = ()
) -> Accumulator:
    """Shuffle the segments of a Run, divide them into parts, and add these up in a tree."""
    dice = np.random.default_rng(seed)
    accumulators = [
        accumulate(metrics, *([run[rows]] if len(rows) else []), group_by=group_by)
        for rows in np.array_split(dice.permutation(len(run)), parts)
    ]
    while len(accumulators) > 1:
        pairs = [accumulators[i : i + 2] for i in range(0, len(accumulators), 2)]
        accumulators = [join(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return accumulators[0]


# ---- sums -------------------------------------------------------------------------------------------------------


def test_sums_are_exact():
    dice = np.random.default_rng(5)
    values = np.ldexp(dice.normal(size=4000), dice.integers(-1060, 1000, 4000))
    values[:7] = [0.0, -0.0, 5e-324, -5e-324, 8e307, 2.2250738585072014e-308, 1.0]
    group = dice.integers(0, 3, len(values))
    for g, numbers in enumerate(expansions(values, group, 3)):
        assert sum(map(Fraction, numbers)) == sum(map(Fraction, values[group == g].tolist()))
        assert total(numbers) == math.fsum(values[group == g])


def test_a_sum_beyond_all_floats_is_infinite():
    most = np.array([1.7e308, 1.7e308])
    assert total(expansions(most, np.zeros(2, dtype=np.int64), 1)[0]) == math.inf
    assert total(expansions(-most, np.zeros(2, dtype=np.int64), 1)[0]) == -math.inf


@pytest.mark.parametrize("system", ["wait-5", "antagonist-5", "offline"])
def test_the_values_are_those_of_score_to_the_last_bit(system):
    run = lagging.read(EXAMPLES / system)
    scores = lagging.score(run, SUMS)
    group, *rest = accumulate_parts(run, SUMS, 7).group_scores()
    assert not group.group
    assert not rest
    for score in group:
        assert score.value == scores[score.metric].value, score.metric
        assert score.n == scores[score.metric].n
        assert int(score.undefined) == int(scores[score.metric].undefined)
        assert str(score.signature.without_interval()) == str(scores[score.metric].signature)
        assert score.unit == scores[score.metric].unit


def test_undefined_segments_are_counted_by_reason_and_some_are_named():
    run = speech(300)
    empty = [name for name, delays in zip(run.id.tolist(), run.delays, strict=True) if not len(delays)]
    ((al,),) = accumulate_parts(run, ["AL"], 9).group_scores()
    assert len(empty) > 5
    assert al.undefined == len(empty)
    assert al.undefined.counts == {"empty hypothesis": len(empty)}
    assert al.undefined.reasons == {"empty hypothesis": tuple(sorted(empty, key=lambda name: (len(name), name))[:5])}
    again = pickle.loads(pickle.dumps(al.undefined))
    assert (again, again.counts, again.reasons) == (al.undefined, al.undefined.counts, al.undefined.reasons)


def test_nothing_but_undefined_segments():
    run = Run.from_delays([[], []], source_length=[3, 3])
    ((al,),) = accumulate_parts(run, ["AL"], 2).group_scores()
    assert math.isnan(al.value)
    assert math.isnan(al.summary.percentiles[50])
    assert math.isnan(al.summary.least)
    assert (al.n, al.undefined, al.low, al.high) == (2, 2, None, None)


def test_segments_that_add_to_the_corpus_and_have_no_value_of_their_own():
    register("ZeroBelow", summary="x", aggregate="ratio", unit="ratio")(
        lambda s: np.stack([s.g.lengths, np.where(s.g.lengths > 2, 0.0, 2.0)], axis=1)
    )
    try:
        run = Run.from_delays([[1, 1, 1], [1, 1], [1]], source_length=[3, 3, 3])
        ((ratio,),) = accumulate_parts(run, ["ZeroBelow"], 2).group_scores()
        assert ratio.value == lagging.score(run, ["ZeroBelow"])["ZeroBelow"].value == 6 / 4
        assert (ratio.summary.least, ratio.summary.most, ratio.n) == (0.5, math.inf, 3)
    finally:
        del registry._metrics["ZeroBelow"]


def test_infinite_values():
    register("Endless", summary="x")(lambda s: np.where(s.g.lengths > 2, np.inf, 1.0))
    try:
        run = Run.from_delays([[1, 1, 1], [1, 1], [1]], source_length=[3, 3, 3])
        ((endless,),) = accumulate_parts(run, ["Endless"], 3).group_scores()
        assert endless.value == math.inf
        assert (endless.low, endless.high) == (None, None)
    finally:
        del registry._metrics["Endless"]


# ---- percentiles ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["AL", "DAL", "AP", "CW"])
def test_percentiles_are_right_within_what_is_promised(metric):
    run = speech(2000)
    segments = lagging.score(run, [metric])[metric].segments
    values = segments[~np.isnan(segments)]
    ((score,),) = accumulate_parts(run, [metric], 5).group_scores()
    for p, found in score.summary.percentiles.items():
        true = np.percentile(values, p, method="inverted_cdf")
        assert abs(found - true) <= abs(true) / 256, p
    assert (score.summary.least, score.summary.most) == (values.min(), values.max())


def test_buckets_are_in_the_order_of_values_and_hold_their_middle():
    dice = np.random.default_rng(2)
    values = np.sort(np.concatenate([np.ldexp(dice.normal(size=3000), dice.integers(-1073, 1023, 3000)), [0, 5e-324]]))
    found = buckets(values)
    assert (np.diff(found) >= 0).all()
    normal = np.abs(values) > 1e-300
    middles = np.array([bucket_middle(bucket) for bucket in found.tolist()])
    assert (np.abs(middles - values)[normal] <= np.abs(values)[normal] / 256).all()
    assert (buckets(middles[normal]) == found[normal]).all()
    assert bucket_middle(0) == 0.0
    assert buckets(np.array([-0.0]))[0] == 0


# ---- weights ----------------------------------------------------------------------------------------------------


def test_a_bucket_is_the_hash_that_is_documented():
    def mixed(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    golden, names = 0x9E3779B97F4A7C15, ["", "a", "7", "Grüße", "x" * 100]
    for seed in (0, 12345, 2**63 - 1):
        start = mixed((seed + 1) * golden % 2**64)
        wanted = [mixed((zlib.crc32(name.encode()) * golden + start) % 2**64) >> 54 for name in names]
        assert segment_buckets(names, seed).tolist() == wanted
    with pytest.raises(UsageError, match="a seed is 0 or more"):
        segment_buckets(names, -1)


def test_buckets_are_even_and_unlike_for_other_seeds():
    names = [f"segment-{i}" for i in range(50_000)]
    one, other = segment_buckets(names), segment_buckets(names, 1)
    for found in (one, other, segment_buckets(list(range(50_000)))):
        assert stats.chisquare(np.bincount(found, minlength=BUCKETS)).pvalue > 1e-4
    together = np.bincount(one // 64 * 16 + other // 64, minlength=256)
    assert stats.chisquare(together).pvalue > 1e-4


def test_weights_are_poisson_and_independent():
    w = weights()
    assert w.shape == (RESAMPLES, BUCKETS)
    counts = np.bincount(w.astype(int).ravel(), minlength=8)
    expected = stats.poisson(1).pmf(np.arange(7)) * w.size
    expected = np.append(expected, w.size - expected.sum())
    assert stats.chisquare(np.append(counts[:7], counts[7:].sum()), expected).pvalue > 1e-4
    assert abs(np.corrcoef(w[:-1].ravel(), w[1:].ravel())[0, 1]) < 0.005
    assert abs(np.corrcoef(w[:, :-1].ravel(), w[:, 1:].ravel())[0, 1]) < 0.005
    assert abs(np.corrcoef(w.ravel(), weights(seed=1).ravel())[0, 1]) < 0.005
    assert (weights(10) == w[:10]).all()


# ---- intervals --------------------------------------------------------------------------------------------------


def test_an_interval_is_that_of_weighting_every_segment_by_itself():
    run = speech(400)
    score = lagging.score(run, ["DAL"])["DAL"]
    defined = ~np.isnan(score.segments)
    each = weights()[:, segment_buckets(score.ids[defined])]  # resamples × segments
    values = (each @ score.segments[defined]) / each.sum(axis=1)
    bucket = segment_buckets(score.ids[defined])
    rows = np.stack(
        [np.bincount(bucket, score.segments[defined], BUCKETS), *[np.bincount(bucket, minlength=BUCKETS)] * 2], axis=1
    )
    low, high = bca(values, score.value, acceleration(Ratio.from_rows(rows.astype(float))), 0.95)
    found = tally(run, "DAL").interval()
    assert (found.low, found.high) == (pytest.approx(low, rel=1e-9), pytest.approx(high, rel=1e-9))
    assert (found.method, found.resample, found.resamples, found.seed) == ("poisson", "segment", 1000, 12345)


@pytest.mark.parametrize("metric", ["DAL", "DAL(mean=token)", "BLEU", "HiddenLag"])
def test_an_interval_is_close_to_that_of_the_usual_bootstrap(metric):
    run = lagging.read(EXAMPLES / "antagonist-5")
    score = lagging.score(run, [metric])[metric]
    usual, found = interval(score), tally(run, metric).interval()
    width = usual.high - usual.low
    assert abs(found.low - usual.low) < 0.25 * width
    assert abs(found.high - usual.high) < 0.25 * width
    assert found.low < score.value < found.high


@pytest.mark.slow
def test_intervals_cover_what_they_promise():
    """Measured once with 4000 trials of 500 segments: 95.3 % (normal), 94.8 % (exponential), 94.4 % (lognormal)."""
    dice = np.random.default_rng(11)
    covered, trials = 0, 300
    for _ in range(trials):
        x, bucket = dice.exponential(size=500), segment_buckets(dice.integers(0, 2**60, 500))
        rows = np.stack([np.bincount(bucket, x, BUCKETS), *[np.bincount(bucket, minlength=BUCKETS)] * 2], axis=1)
        e = Ratio.from_rows(rows.astype(float))
        low, high = bca(e.values(weights()), e.value, acceleration(e), 0.95)
        covered += low <= 1.0 <= high
    assert 0.91 < covered / trials < 0.985  # three standard errors around 0.948


def test_levels_and_resamples_of_intervals():
    one = tally(speech(200), "AL")
    wide, narrow = one.interval(0.99), one.interval(0.5)
    assert wide.low < narrow.low < narrow.high < wide.high
    assert one.interval(resamples=100) != one.interval(resamples=200)
    assert tally(speech(200), "AL", seed=1).interval() != one.interval()


def test_no_interval_without_a_seed_or_with_one_segment():
    run = speech(200)
    without = tally(run, "AL", seed=None)
    assert math.isnan(without.interval().low)
    assert without.interval().reason
    assert without.value == lagging.score(run, ["AL"])["AL"].value
    alone = tally(Run.from_delays([[1, 2]], source_length=[2]), "AL").interval()
    assert math.isnan(alone.low)
    assert "too few" in alone.reason


def test_values_too_large_for_an_interval():
    run = Run.from_delays([[1e17, 2e17], [1e17, 3e17]], source_length=[4e17, 5e17], unit="ms")
    one = tally(run, "DAL")
    assert one.value == lagging.score(run, ["DAL"])["DAL"].value
    assert math.isnan(one.interval().low)
    assert "infinite" in one.interval().reason


# ---- adding up --------------------------------------------------------------------------------------------------


def test_a_tally_travels_as_bytes():
    for m in ("AL", "BLEU", "DAL(mean=token)"):
        one = tally(lagging.read(EXAMPLES / "wait-5"), m)
        again = Tally.from_bytes(one.to_bytes())
        assert again.to_bytes() == one.to_bytes()
        assert (again.value, again.interval(), again.score().summary) == (
            one.value,
            one.interval(),
            one.score().summary,
        )
        assert (again.metric, again.resolved, again.n, again.undefined) == (
            one.metric,
            one.resolved,
            one.n,
            one.undefined,
        )


def test_conventions_travel_too():
    run = lagging.read(EXAMPLES / "wait-5")
    scores = lagging.score(run, ["AL"], convention="simuleval")
    accumulator = Accumulator(Plan.make(["AL"], "simuleval", summary=True, seed=SEED))
    accumulator.add(run)
    again = Tally.from_bytes(accumulator.groups[()][metric_named("AL")].to_bytes())
    assert again.value == scores["AL"].value
    assert again.score().signature.without_interval() == scores["AL"].signature


def test_what_cannot_be_added():
    run = speech(20)
    al, dal = (tally(run, name) for name in ("AL", "DAL"))
    with pytest.raises(UsageError, match="a tally of AL cannot be added to one of DAL"):
        al + dal
    with pytest.raises(UsageError, match="seeds 12345 and 1 cannot"):
        al + tally(run, "AL", seed=1)
    tokens = tally(Run.from_delays([[1]], source_length=[2]), "AL")
    with pytest.raises(UsageError, match="unit:ms and unit:token: their scores cannot be averaged"):
        al + tokens


def test_segments_in_which_nothing_was_written_do_not_tell_the_unit():
    silent, spoken = Run.from_delays([[]], source_length=[7], id=["x"]), speech(20)
    for first, second in ((silent, spoken), (spoken, silent)):
        ((al,),) = join(accumulate(["AL"], first), accumulate(["AL"], second)).group_scores()
        assert (al.signature["unit"], al.unit, al.n) == ("ms", "ms", 21)


@pytest.mark.parametrize(
    ("metric", "why"),
    [("LagPercentile", "pools"), ("MaxLag", "no function of sums"), ("LagDrift", "depends on the other segments")],
)
def test_metrics_that_cannot_be_tallied_are_refused_by_name(metric, why):
    with pytest.raises(MetricError, match=rf"{metric} cannot be tallied: .*{why}"):
        Plan.make(["AL", metric], summary=True)
    with pytest.raises(MetricError, match="cannot be tallied"):
        Plan.make([metric], group_by=["lang"])
    with pytest.raises(UsageError, match="no metric"):
        Plan.make([], summary=True)


def test_a_metric_that_pools_is_refused():
    part = score_part(speech(10), Plan.make(["LagPercentile"]))
    with pytest.raises(MetricError, match="LagPercentile cannot be tallied"):
        tallies(part, part.metrics[0])


def test_signatures_join():
    a = Signature.parse("LAAL|unit:ms|level:word|eos:kept|noref:2|repair:clip|n:5|v:0.2.0.dev0")
    b = Signature.parse("LAAL|unit:ms|level:word|eos:stripped|repair:clip+torn|strip:tags|n:7|v:0.2.0.dev0")
    wanted = "LAAL|unit:ms|level:word|eos:stripped|noref:2|repair:clip+torn|strip:tags|n:12|v:0.2.0.dev0"
    assert str(joined(a, b)) == str(joined(b, a)) == wanted
    with pytest.raises(UsageError, match="level:word and level:char"):
        joined(a, Signature.parse(str(b).replace("word", "char")))


# ---- groups -----------------------------------------------------------------------------------------------------


def labelled(run: Run, *columns: list[str | None]) -> Run:
    from dataclasses import replace

    from lagging.formats.tables import joined_labels

    return replace(run, group=np.array([joined_labels(of) for of in zip(*columns, strict=True)], dtype=object))


def test_groups_are_scored_as_if_alone():
    run = speech(400)
    dice = np.random.default_rng(4)
    langs, models = dice.choice(["de", "cs", None], 400).tolist(), dice.choice(["v1", "v2"], 400).tolist()
    accumulator = accumulate_parts(labelled(run, langs, models), ["AL", "DAL"], 6, group_by=["lang", "model"])
    groups = list(accumulator.group_scores())
    assert [tuple(scores.group.values()) for scores in groups] == [
        (lang, model) for lang in (None, "cs", "de") for model in ("v1", "v2")
    ]
    for scores in groups:
        labels = scores.group
        mine = [i for i in range(400) if (langs[i], models[i]) == (labels["lang"], labels["model"])]
        alone = lagging.score(run[mine], ["AL", "DAL"])
        (by_itself,) = accumulate_parts(run[mine], ["AL", "DAL"], 1).group_scores()
        for score in scores:
            assert score.value == alone[score.metric].value
            assert (score.low, score.high) == (by_itself[score.metric].low, by_itself[score.metric].high)
            assert score.signature.without_interval() == alone[score.metric].signature


def test_what_signatures_count_is_counted_by_group():
    predictions = ["a b </s>", "a b c", "a b </s>", "a b c"]
    references: list[str | None] = ["a b", None, "a b", "a b c"]
    delays = [[1, 2, 3]] * 4
    run = Run.from_delays(delays, source_length=[4] * 4, prediction=predictions, reference=references, level="word")
    run = labelled(run, ["x", "y", "x", "y"])
    for scores in accumulate(["LAAL", "AL"], run, group_by=["g"]).group_scores():
        mine = [i for i, name in enumerate("xyxy") if name == scores.group["g"]]
        alone = lagging.score(run[mine], ["LAAL", "AL"])
        for score in scores:
            assert str(score.signature.without_interval()) == str(alone[score.metric].signature)
    assert "noref:1" in str(scores["LAAL"].signature)
    assert "eos" not in str(scores["LAAL"].signature)


def test_parts_without_references_beside_parts_with_them():
    texts = ["good day", "see you"]
    with_reference = Run.from_texts(texts, reference=texts, id=["a", "b"])
    without = Run.from_texts(texts, id=["c", "d"])
    ((bleu,),) = accumulate(["BLEU"], without, with_reference).group_scores()
    assert bleu.value == lagging.score(with_reference, ["BLEU"])["BLEU"].value
    assert (bleu.n, bleu.undefined.counts) == (4, {"no reference": 2})
    with pytest.raises(MetricError, match="BLEU: there are no references"):
        list(accumulate(["BLEU"], without).group_scores())


def test_a_column_in_which_nothing_is():
    accumulator = accumulate(["AL"], labelled(speech(5), ["de"] * 5, [None] * 5), group_by=["lang", "model"])
    with pytest.raises(UsageError, match="no segment has anything in the column 'model'"):
        list(accumulator.group_scores())


def test_all_groups_together():
    run = labelled(speech(100), ["a", "b"] * 50)
    scores = accumulate(["AL", "DAL"], run, group_by=["g"]).scores()
    assert not scores.group
    assert [score.value for score in scores] == [score.value for score in lagging.score(run, ["AL", "DAL"])]


def test_notes_add_up():
    accumulator = accumulate_parts(speech(300), ["AL"], 5)
    ours = {note.kind: note.count for note in accumulator.all_notes()}
    whole = {note.kind: note.count for note in lagging.score(speech(300), ["AL"]).notes}
    assert ours == whole
    assert ours["empty hypothesis"] > 5


def test_many_intervals_at_once_are_those_of_one_by_one():
    run = labelled(lagging.read(EXAMPLES / "wait-5"), [f"g{i % 25}" for i in range(40)])
    metrics = ["AL", "BLEU", "DAL(mean=token)"]  # more intervals than are made together
    accumulator = accumulate(metrics, run, group_by=["g"])
    for scores in accumulator.group_scores(confidence=0.9, resamples=200):
        for score in scores:
            alone = accumulator.groups[scores.group["g"],][score.metric].interval(0.9, 200)
            expected = (None, None) if math.isnan(alone.low) else (alone.low, alone.high)
            assert (score.low, score.high) == expected


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"resamples": 10**12}, "from 2 to 1000000, but are 1000000000000"),
        ({"resamples": 1}, "from 2 to 1000000, but are 1"),
        ({"resamples": -3}, "from 2 to 1000000, but are -3"),
        ({"confidence": 1.0}, "between 0 and 1"),
        ({"confidence": 0.0}, "between 0 and 1"),
        ({"confidence": float("nan")}, "between 0 and 1"),
    ],
)
def test_intervals_that_cannot_be_made_are_refused(wrong, message):
    accumulator = accumulate(["AL"], speech(5))
    with pytest.raises(UsageError, match=message):
        list(accumulator.group_scores(**wrong))


def test_resamples_are_the_same_however_few_are_in_memory(monkeypatch):
    accumulator = accumulate(["AL", "DAL"], labelled(speech(60), ["a", "b", "c"] * 20), group_by=["g"])

    def ends():
        return [(score.low, score.high) for scores in accumulator.group_scores(resamples=300) for score in scores]

    whole = ends()
    monkeypatch.setattr("lagging.scoring.poisson.ROWS", 7)
    weights.cache_clear()
    assert ends() == whole
    weights.cache_clear()
