# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np
import pytest
import scipy.stats
from scipy.stats import bootstrap

import lagging
from lagging.comparison.pairs import paired
from lagging.data.ragged import Ragged
from lagging.scoring.intervals import interval, intervals, with_intervals
from lagging.scoring.scores import Scores
from lagging.scoring.signature import settings
from lagging.stats.intervals import COVERAGE
from statistic import made

SEED = 12345


def skewed(n: int, seed: int = 1):
    return np.random.default_rng(seed).lognormal(1.0, 0.8, n)


# ---- SciPy as the oracle ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("n", [5, 40, 313])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_a_mean_is_that_of_scipy(method, n, level) -> None:
    values = skewed(n)
    want = bootstrap(
        (values,),
        np.mean,
        n_resamples=2000,
        confidence_level=level,
        method={"bca": "BCa"}.get(method, method),
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    got = interval(made("AL", values), method=method, resamples=2000, confidence=level)
    assert (got.low, got.high) == pytest.approx((want.low, want.high), rel=1e-9)
    assert (got.method, got.resample, got.confidence, got.resamples, got.seed, got.clusters, got.reason) == (
        method,
        "segment",
        level,
        2000,
        SEED,
        n,
        "",
    )


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("name", ["SWF", "AL(mean=token)"])
def test_a_ratio_is_that_of_scipy(method, name) -> None:
    top, bottom = skewed(60), skewed(60, 2)

    def ratio(top, bottom, axis):
        return top.sum(axis=axis) / bottom.sum(axis=axis)

    want = bootstrap(
        (top, bottom),
        ratio,
        paired=True,
        n_resamples=2000,
        method={"bca": "BCa"}.get(method, method),
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    got = interval(made(name, np.stack([top, bottom], axis=1)), method=method, resamples=2000)
    assert (got.low, got.high) == pytest.approx((want.low, want.high), rel=1e-9)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_documents_are_resampled_whole(method) -> None:
    """As SciPy does it with the totals of the documents."""
    dice = np.random.default_rng(3)
    talk = dice.integers(0, 9, 80)
    values = skewed(80) + talk
    totals = [np.bincount(talk, values, 9), np.bincount(talk, minlength=9)]
    want = bootstrap(
        totals,
        lambda top, bottom, axis: top.sum(axis=axis) / bottom.sum(axis=axis),
        paired=True,
        n_resamples=2000,
        method={"bca": "BCa"}.get(method, method),
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    score = made("AL", values, documents=[f"talk {t}" for t in talk])
    got = interval(score, resample="document", method=method, resamples=2000)
    assert (got.low, got.high) == pytest.approx((want.low, want.high), rel=1e-9)
    assert got.clusters == 9


# ---- undefined, few, alike ----------------------------------------------------------------------------------------


def test_undefined_segments_stay_and_count_for_nothing() -> None:
    values = skewed(50)
    values[::7] = np.nan
    draws = np.random.default_rng(SEED).integers(0, 50, size=(500, 50))
    want = np.quantile([np.nanmean(values[draw]) for draw in draws], [0.025, 0.975])
    got = interval(made("AL", values), method="percentile", resamples=500)
    assert (got.low, got.high) == pytest.approx(tuple(want), rel=1e-9)


@pytest.mark.parametrize("method", ["percentile", "bca", "wild"])
@pytest.mark.parametrize("by", ["segment", "document"])
def test_what_has_no_interval_says_why(method, by) -> None:
    def found(values):
        return interval(
            made("AL", values, documents=list("abcde")[: len(values)]), resample=by, method=method, resamples=50
        )

    for few in ([4.0], [4.0, math.nan], [math.nan] * 3):
        got = found(few)
        assert math.isnan(got.low)
        assert math.isnan(got.high)
        assert "too few" in got.reason
    same = found([4.0] * 5)
    assert (same.low, same.high, same.reason) == (4.0, 4.0, "all resamples have the same value")
    assert found([4.0, 4.0, math.nan]).low == 4.0


def test_how_few_documents_are_too_few() -> None:
    three, two = (
        [made("AL", values, documents=list("abc")[: len(values)])] for values in ([1.0, 2.0, 4.0], [1.0, 2.0])
    )
    (got,) = intervals(two, resample="document", method="wild")
    assert math.isnan(got.low)
    assert got.reason == "2 documents: too few for a wild interval"
    (got,) = intervals(three, resample="document")
    assert got.method == "wild"
    assert got.high - got.low > 4  # there is one, but it says little


def test_wild_intervals_hold_what_is_not_rejected() -> None:
    """One resample at a time, and as the theory of ratios has it: of t_c − θ₀ b_c."""
    talk = np.repeat(np.arange(6), [3, 9, 4, 6, 2, 7])
    values = skewed(31) + talk
    top, size = np.bincount(talk, values), np.bincount(talk)
    weights = np.array([-math.sqrt(0.5), -1, -math.sqrt(1.5), math.sqrt(0.5), 1, math.sqrt(1.5)])
    draws = weights[np.random.default_rng(SEED).integers(0, 6, size=(400, 6))]

    def t(e):
        ratio = e.sum() / size.sum()
        return abs(ratio) / math.sqrt(((e - ratio * size) ** 2).sum())

    def p(truth):
        e = top - truth * size
        return (1 + sum(t(v * e) >= t(e) * (1 - 1e-9) for v in draws)) / 401

    score = made("AL", values, documents=[f"t{i}" for i in talk])
    got = interval(score, resample="document", resamples=400)
    width = got.high - got.low
    for end, out in ((got.low, -1), (got.high, 1)):
        assert p(end + out * 1e-4 * width) <= 0.05 < p(end - out * 1e-4 * width)
    same = {
        name: Scores([one]) for name, one in (("a", score), ("b", made("AL", 0 * values, documents=score.documents)))
    }
    (pair,) = paired(same, resample="document", resamples=400).pairs
    assert pair.p == p(0)
    assert (pair.low, pair.high) == pytest.approx((-got.high, -got.low), rel=1e-5)


@pytest.mark.parametrize("name", ["BLEU", "SWF", "AL(mean=token)", "LagPercentile"])
def test_wild_intervals_of_many_documents_are_near_the_others(name) -> None:
    dice = np.random.default_rng(4)
    talks = [f"t{k % 60}" for k in range(600)]
    if name == "LagPercentile":
        rows = Ragged.from_rows([dice.exponential(5, 20) for _ in talks])
    elif name == "BLEU":
        total = np.maximum(dice.integers(6, 20, (600, 1)) - np.arange(4), 0)
        rows = np.hstack([total[:, :1], total[:, :1] + 1, dice.binomial(total, [0.7, 0.5, 0.4, 0.3]), total])
    else:
        rows = np.stack([skewed(600), skewed(600, 2)], axis=1)
    plain, other = (
        interval(made(name, rows, documents=talks), resample="document", method=method, resamples=2000)
        for method in ("percentile", "wild")
    )
    width = plain.high - plain.low
    assert (other.low, other.high) == pytest.approx((plain.low, plain.high), abs=0.15 * width)


@pytest.mark.parametrize("method", ["percentile", "bca", "wild", "sacrebleu"])
def test_a_percentile_of_no_tokens_has_no_interval(method) -> None:
    got = interval(made("LagPercentile", Ragged.from_rows([[], []])), method=method, resamples=50)
    assert math.isnan(got.low)
    assert got.reason == "0 segments with a value: too few"


def test_a_largest_value_has_no_interval() -> None:
    for score in (made("MaxLag", skewed(9)), made("LagPercentile(p=100)", Ragged.from_rows([[1, 2], [3]]))):
        assert math.isnan(interval(score).low)
        assert interval(score).reason


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"resample": "talk"}, "by segment or by document"),
        ({"method": "normal"}, "there are percentile, bca"),
        ({"confidence": 95}, "between 0 and 1"),
        ({"resamples": 1}, "from 2 to 1000000, but are 1"),
        ({"resamples": 10**12}, "from 2 to 1000000, but are 1000000000000"),
        ({"confidence": 1 - 1e-15}, "between 0 and 1"),
        ({"resample": "document"}, "does not say which document"),
        ({"resample": "document", "method": "sacrebleu"}, "resamples segments"),
    ],
)
def test_what_cannot_be_asked_for(wrong, message) -> None:
    with pytest.raises(lagging.UsageError, match=message):
        interval(made("AL", [1.0, 2.0]), **wrong)


def test_a_segment_without_a_document_is_named() -> None:
    with pytest.raises(lagging.UsageError, match="1 segment without a document, the first is 'y'"):
        interval(made("AL", [1.0, 2.0], ids=["x", "y"], documents=["a", None]), resample="document")


# ---- pooled percentiles -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 50, 90, 99.5])
def test_a_pooled_percentile_is_that_of_the_tokens_drawn(p) -> None:
    dice = np.random.default_rng(7)
    rows = [np.round(dice.exponential(5, dice.integers(0, 40)), 1) for _ in range(60)]
    draws = np.random.default_rng(SEED).integers(0, 60, size=(300, 60))
    values = [np.percentile(np.concatenate([rows[i] for i in draw]), p) for draw in draws]
    got = interval(made(f"LagPercentile(p={p})", Ragged.from_rows(rows)), method="percentile", resamples=300)
    assert (got.low, got.high) == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), rel=1e-12)


@pytest.mark.parametrize("method", ["bca", "wild"])
def test_other_intervals_of_a_percentile_are_near(method) -> None:
    dice = np.random.default_rng(8)
    score = made("LagPercentile(p=50)", Ragged.from_rows([dice.exponential(5, 20) for _ in range(400)]))
    plain, other = (interval(score, method=m, resamples=2000) for m in ("percentile", method))
    assert (other.low, other.high) == pytest.approx((plain.low, plain.high), rel=0.02)
    assert other != plain


# ---- what is around it --------------------------------------------------------------------------------------------


def run(n: int = 30, **more):
    dice = np.random.default_rng(2)
    delays = [sorted(dice.integers(1, 9, 6).tolist()) for _ in range(n)]
    return lagging.Run.from_delays(delays, source_length=[8] * n, **more)


def test_scores_get_their_intervals_and_signatures() -> None:
    scores = lagging.score(run(document=[f"t{i % 6}" for i in range(30)]), ["AL", "DAL", "MaxLag"])
    found = with_intervals(scores, resample="document", confidence=0.9, resamples=500, seed=7)
    for score, plain in zip(found, scores, strict=True):
        if score.metric.name == "MaxLag":
            assert score.low is None
            assert score.signature == plain.signature
            continue
        alone = interval(plain, resample="document", confidence=0.9, resamples=500, seed=7)
        assert (score.low, score.high) == (alone.low, alone.high)
        assert score.low < score.value < score.high
        assert f"|ci:90|by:document|method:wild|bs:500|seed:7|n:30|v:{lagging.__version__}" in str(score.signature)
        assert score.segment_signature == plain.segment_signature
        assert score.signature.without_interval() == plain.signature
    assert [n.text for n in found.notes if n.kind == "interval"] == [
        "MaxLag: there is none: it is not a function of sums, so it cannot be resampled"
    ]


def test_a_signature_repeats_its_interval() -> None:
    (score,) = with_intervals(lagging.score(run(), ["AL"]), confidence=0.975, resamples=300, seed=3)
    said = settings(str(score.signature))
    (again,) = lagging.score(run(), [said.metric], convention=said.convention)
    how = said.interval
    got = interval(
        again,
        resample=how.resample,
        confidence=how.confidence,
        method=how.method,
        resamples=how.resamples,
        seed=how.seed,
    )
    assert (got.low, got.high) == (score.low, score.high)
    assert settings("AL|n:1|v:1").interval is None
    with pytest.raises(lagging.UsageError, match="but not its 'method'"):
        settings("AL|ci:95|by:segment|bs:9|seed:1|n:1|v:1")
    with pytest.raises(lagging.UsageError, match="must be numbers"):
        settings("AL|ci:95|by:segment|method:bca|bs:many|seed:1|n:1|v:1")


def test_a_log_read_in_parts_knows_its_documents() -> None:
    whole = run(document=[f"t{i % 6}" for i in range(30)])
    (one,) = lagging.score(whole, ["AL"])
    (parts,) = lagging.score(whole.segments(), ["AL"])
    (kept,) = lagging.score(whole.segments(), ["DAL(write_cost=corpus)"])
    assert one.documents.tolist() == parts.documents.tolist() == kept.documents.tolist() == whole.document.tolist()
    (some,) = lagging.score([whole[:3], run(4)], ["AL"])
    assert some.documents.tolist() == ["t0", "t1", "t2", None, None, None, None]
    assert lagging.score(run(), ["AL"])["AL"].documents is None


def test_nothing_has_no_intervals() -> None:
    assert intervals([]) == ()


@pytest.mark.slow
def test_coverage_in_miniature() -> None:
    """300 samples; the slow one is bench/coverage.py."""
    dice = np.random.default_rng(0)
    hit = {"segment": 0, "document": 0}
    for _ in range(300):
        values = dice.exponential(3.0, 200)
        got = interval(made("AL", values), resamples=400)
        hit["segment"] += got.low <= 3.0 <= got.high
        talk = np.repeat(np.arange(5), 20)
        values = dice.normal(3, 1, 5)[talk] + dice.exponential(1.0, 100) - 1
        got = interval(made("AL", values, documents=[str(t) for t in talk]), resample="document", resamples=400)
        hit["document"] += got.low <= 3.0 <= got.high
    for by, count in hit.items():
        # at a true coverage of 93 to 97 %, fewer or more than this happens once in a thousand times
        assert scipy.stats.binom.ppf(0.001, 300, 0.93) <= count <= scipy.stats.binom.ppf(0.999, 300, 0.97), (by, count)


@pytest.mark.parametrize("by", ["segment", "document"])
def test_a_seed_is_not_negative(by) -> None:
    scores = {name: Scores([made("AL", [1.0, 2.0, 4.0], documents=["x", "y", "z"])]) for name in ("a", "b")}
    for test in ("randomisation", "bootstrap"):
        with pytest.raises(lagging.UsageError, match="a seed is 0 or more, but is -1"):
            paired(scores, resample=by, test=test, seed=-1)


# ---- few units ----------------------------------------------------------------------------------------------------


def few(n: int, **how) -> list[str]:
    scores = Scores([made("AL", skewed(n), documents=[str(i) for i in range(n)])])
    return [str(note) for note in with_intervals(scores, resamples=200, **how).notes]


@pytest.mark.parametrize("method", ["percentile", "bca", "sacrebleu"])
def test_an_interval_from_few_segments_is_noted_with_how_often_it_covers(method) -> None:
    (said,) = few(2, method=method)
    assert said == (
        "TOO FEW SEGMENTS: intervals from 2 segments are too narrow: "
        "simulated ones of 95 % cover the true mean 47 to 50 % of the time"
    )
    (said,) = few(19, method=method)
    assert "intervals from 19 segments are too narrow" in said
    assert "89 to 92 % of the time" in said
    assert few(20, method=method) == []


def test_few_documents_are_noted_where_they_are_drawn_and_not_where_they_are_weighted() -> None:
    (said,) = few(5, resample="document", method="bca")
    assert said.startswith("TOO FEW DOCUMENTS: intervals from 5 documents are too narrow")
    assert few(5, resample="document", method="wild") == []


def test_segments_without_a_value_do_not_count() -> None:
    values = skewed(30)
    values[2:] = np.nan
    found = with_intervals(Scores([made("AL", values)]), resamples=200)
    assert any("intervals from 2 segments" in str(note) for note in found.notes)


@pytest.mark.parametrize("n", [2, 5, 15])
def test_so_often_do_intervals_from_few_segments_cover(n) -> None:
    dice, covered = np.random.default_rng(n), {}
    for kind in ("skewed", "normal"):
        rows = dice.lognormal(-0.32, 0.8, (400, n)) if kind == "skewed" else dice.normal(1, 0.5, (400, n))
        found = intervals([made("AL", row) for row in rows], resamples=400)
        covered[kind] = 100 * np.mean([one.low <= 1 <= one.high for one in found])
    assert covered["skewed"] == pytest.approx(COVERAGE[n][0], abs=6)  # three standard errors
    assert covered["normal"] == pytest.approx(COVERAGE[n][1], abs=6)
