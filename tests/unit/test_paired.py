# SPDX-License-Identifier: Apache-2.0
import math
import os
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

import lagging
from lagging.comparison.derivations import Draws
from lagging.comparison.match import match
from lagging.comparison.pairs import paired
from lagging.data.ragged import Ragged
from lagging.scoring.intervals import interval
from lagging.scoring.scores import Scores
from lagging.stats import joint
from lagging.stats.resamples import counts, swaps
from statistic import made

SEED = 12345


def lags(n: int, seed: int, shift: float = 0.0):
    return np.random.default_rng(seed).lognormal(1.0, 0.6, n) + shift


def two(a, b, name: str = "AL", **more):
    return {"a": Scores([made(name, a, **more)]), "b": Scores([made(name, b, **more)])}


# ---- against something slow ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_the_interval_of_a_difference_is_that_of_scipy(method) -> None:
    a, b = lags(70, 1), lags(70, 2, 0.5)
    want = scipy.stats.bootstrap(
        (a, b),
        lambda a, b, axis: b.mean(axis=axis) - a.mean(axis=axis),
        paired=True,
        n_resamples=3000,
        method={"bca": "BCa"}.get(method, method),
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    (got,) = paired(two(a, b), method=method, resamples=3000).pairs
    assert (got.low, got.high) == pytest.approx((want.low, want.high), rel=1e-9)
    assert got.difference == pytest.approx(b.mean() - a.mean())


def test_p_and_effect_are_those_of_one_resample_at_a_time() -> None:
    a, b = lags(40, 3), lags(40, 4, 0.9)
    d = b - a
    draws = np.random.default_rng(SEED).integers(0, 40, size=(800, 40))
    t = [(d[draw].mean() - d.mean()) / (d[draw].std(ddof=1) / math.sqrt(40)) for draw in draws]
    seen = d.mean() / (d.std(ddof=1) / math.sqrt(40))
    (got,) = paired(two(a, b), test="bootstrap", resamples=800).pairs
    assert got.p == (1 + sum(abs(one) >= abs(seen) for one in t)) / 801
    assert 0.01 < got.p < 0.9
    assert got.effect == pytest.approx(d.mean() / d.std(ddof=1))
    sizes = [d[draw].mean() / d[draw].std(ddof=1) for draw in draws]
    assert (got.effect_low, got.effect_high) == pytest.approx(tuple(np.quantile(sizes, [0.025, 0.975])), rel=1e-8)
    assert (got.wins, got.ties, got.losses, got.n) == ((d < 0).sum(), 0, (d > 0).sum(), 40)


@pytest.mark.parametrize("by", ["segment", "document"])
def test_randomisation_one_trial_at_a_time_and_scipys_exact_one(by) -> None:
    talk = np.arange(10) if by == "segment" else np.repeat(np.arange(10), [1, 2, 3, 1, 2, 3, 1, 2, 3, 4])
    n = len(talk)
    a, b = lags(n, 5), lags(n, 6, 0.8)
    flips = np.random.default_rng(SEED).integers(2, size=(3000, 10), dtype=bool)[:, talk]
    trials = [abs(np.where(flip, a - b, b - a).mean()) for flip in flips]
    (got,) = paired(
        two(a, b, documents=[str(t) for t in talk]), resample=by, test="randomisation", resamples=3000
    ).pairs
    seen = abs((b - a).mean())
    assert got.p == (1 + sum(one >= seen - 1e-12 for one in trials)) / 3001
    totals = np.bincount(talk, b - a)
    exact = scipy.stats.permutation_test(
        (totals, 0 * totals),
        lambda x, y, axis: np.abs((x - y).sum(axis=axis)),
        permutation_type="samples",
        alternative="greater",
        n_resamples=np.inf,
    ).pvalue
    assert got.p == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 3000))


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_pooled_percentiles_are_compared_too(test) -> None:
    dice = np.random.default_rng(9)
    one, other = ([dice.exponential(4 + k, dice.integers(1, 9)) for _ in range(30)] for k in (0, 1))
    systems = two(Ragged.from_rows(one), Ragged.from_rows(other), "LagPercentile(p=75)")
    (got,) = paired(systems, test=test, resamples=400, method="percentile").pairs

    def value(rows):
        return np.percentile(np.concatenate(rows), 75)

    d = value(other) - value(one)
    draws = np.random.default_rng(SEED).integers(0, 30, size=(400, 30))
    values = [value([other[i] for i in draw]) - value([one[i] for i in draw]) for draw in draws]
    assert (got.low, got.high) == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), rel=1e-9)
    extreme = np.abs(np.array(values) - d) >= abs(d)
    if test == "randomisation":
        flips = np.random.default_rng(SEED).integers(2, size=(400, 30), dtype=bool)
        mixed = [
            (
                value([x if f else y for x, y, f in zip(one, other, flip, strict=True)]),
                value([y if f else x for x, y, f in zip(one, other, flip, strict=True)]),
            )
            for flip in flips
        ]
        extreme = np.array([abs(new - old) for new, old in mixed]) >= abs(d)
    assert got.p == (1 + extreme.sum()) / 401
    assert math.isnan(got.effect)


def test_a_segment_without_a_value_in_one_system_is_compared_in_none() -> None:
    a, b = lags(20, 1), lags(20, 2, 0.3)
    a[3] = b[11] = np.nan
    flips = np.random.default_rng(SEED).integers(2, size=(300, 20), dtype=bool)
    gain = b - a
    trials = [abs(np.nanmean(np.where(f, -gain, gain))) for f in flips]
    (got,) = paired(two(a, b), test="randomisation", resamples=300).pairs
    assert got.difference == pytest.approx(np.nanmean(gain))
    assert got.n == 18
    assert got.p == (1 + sum(t >= abs(np.nanmean(gain)) - 1e-12 for t in trials)) / 301


def test_silence_does_not_win() -> None:
    late = np.array([1.0, 2.0, 9.0, 1.5, 2.5, 8.0])
    silent = np.where(late > 5, np.nan, late)
    (got,) = paired(two(late, silent), resamples=200).pairs
    assert (got.difference, got.p, got.wins, got.ties, got.losses) == (0.0, 1.0, 0, 4, 0)
    found = match(two(late, silent))
    assert found.scores[0][0].value == found.scores[1][0].value == np.nanmean(silent)
    assert found.scores[0][0].undefined.reasons == {"no value in another system": (2, 5)}


# ---- several systems and metrics ----------------------------------------------------------------------------------


def several(n: int = 60):
    names = ("AL", "DAL", "BLEU")
    dice = np.random.default_rng(4)
    out = {}
    for k, system in enumerate("abc"):
        total = np.maximum(dice.integers(6, 20, (n, 1)) - np.arange(4), 0)
        bleu = np.hstack([total[:, :1], total[:, :1] + 1, dice.binomial(total, [0.7, 0.5, 0.4, 0.3]), total])
        rows = (lags(n, k, 0.3 * k), lags(n, 10 + k, 0.1 * k), bleu)
        out[system] = Scores([made(name, row) for name, row in zip(names, rows, strict=True)])
    return out


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_all_pairs_at_once_are_each_pair_alone(test) -> None:
    systems = several()
    whole = paired(systems, test=test, resamples=300, correction="none")
    assert [(p.metric.name, p.a + p.b) for p in whole.pairs] == [
        (m, pair) for m in ("AL", "DAL", "BLEU") for pair in ("ab", "ac", "bc")
    ]
    for pair in whole.pairs:
        chosen = {name: systems[name] for name in (pair.a, pair.b)}
        (alone,) = paired(chosen, [pair.metric], test=test, resamples=300, correction="none").pairs
        assert alone.p == pair.p
        assert (alone.low, alone.high, alone.effect) == pytest.approx((pair.low, pair.high, pair.effect), rel=1e-9)
    corrected = paired(systems, test=test, resamples=300).pairs
    for first in range(0, 9, 3):
        raw = [p.p for p in whole.pairs[first : first + 3]]
        assert [p.p_adjusted for p in corrected[first : first + 3]] == lagging.stats.holm(raw).tolist()
    against = paired(systems, base="b", resamples=50).pairs
    assert [(p.a, p.b) for p in against[:2]] == [("b", "a"), ("b", "c")]


@pytest.mark.parametrize("by", ["segment", "document"])
def test_each_system_has_its_intervals_too(by) -> None:
    talks = [f"t{k % 6}" for k in range(50)]
    systems = {
        name: Scores(
            [
                made("AL", lags(50, k), documents=talks),
                made("LagPercentile(p=80)", Ragged.from_rows([lags(4, k + i) for i in range(50)]), documents=talks),
                made("MaxLag", lags(50, k), documents=talks),
            ]
        )
        for k, name in enumerate("ab")
    }
    found = paired(systems, resample=by, resamples=300)
    for intervals, scores in zip(found.intervals, systems.values(), strict=True):
        for one, score in zip(intervals, scores, strict=True):
            alone = interval(score, resample=by, resamples=300)
            assert (one.low, one.high) == pytest.approx((alone.low, alone.high), rel=1e-9, nan_ok=True)
            assert (one.reason, one.method, one.clusters) == (alone.reason, alone.method, alone.clusters)


def test_metrics_share_their_resamples() -> None:
    """Two metrics with the same values differ in no resample; quality and latency are judged together."""
    systems = several()
    found = paired(systems, resamples=500)
    same = Draws.make(systems, resamples=500)
    np.testing.assert_array_equal(found.values, same.values)
    assert same.value.shape == (3, 3)
    gain = found.values[:, 0] - found.values[:, 1]  # a against b: AL, DAL, BLEU
    want = ((gain[:, 0] <= 0) & (gain[:, 2] >= -1)).mean()
    assert found.together("b", "a", {"AL": 0, "BLEU": 1}) == want
    assert 0 < want < 1
    assert found.together("b", "a") == ((gain[:, :2] <= 0).all(axis=1) & (gain[:, 2] >= 0)).mean()
    assert found.pair("BLEU", "a", "c").metric.name == "BLEU"
    with pytest.raises(lagging.UsageError, match="were not compared by BLEU"):
        found.pair("BLEU", "c", "a")
    with pytest.raises(lagging.UsageError, match="not compared"):
        found.together("a", "b", {"LAAL": 0})
    with pytest.raises(lagging.UsageError, match="Did you mean"):
        found.together("a", "bb")


# ---- edges --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["segment", "document"])
@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_a_system_does_not_differ_from_itself(test, by) -> None:
    a = lags(30, 1)
    (got,) = paired(two(a, a, documents=[str(i % 6) for i in range(30)]), test=test, resample=by, resamples=200).pairs
    assert (got.p, got.difference, got.low, got.high, got.effect) == (1.0, 0.0, 0.0, 0.0, 0.0)
    assert (got.wins, got.ties, got.losses) == (0, 30, 0)


def test_a_constant_difference_is_certain() -> None:
    a = np.arange(20.0)
    (got,) = paired(two(a, a + 2), resamples=999).pairs
    assert (got.low, got.difference, got.high, got.p) == (2.0, 2.0, 2.0, 0.001)
    assert math.isnan(got.effect)


def test_what_cannot_be_compared_says_why() -> None:
    (one,) = paired(two([1.0], [2.0])).pairs
    assert math.isnan(one.p)
    assert one.difference == 1
    assert one.reason == "1 segment with a value: too few"
    (none,) = paired(two([math.nan] * 3, [1.0, 2.0, 3.0])).pairs
    assert none.reason == "0 segments with a value: too few"
    assert math.isnan(none.difference)
    (most,) = paired(two([1.0, 2.0], [2.0, 5.0], "MaxLag")).pairs
    assert "cannot be resampled" in most.reason
    assert most.difference == 3
    systems = two([1.0, 2.0], [2.0, 5.0], documents=list("ab"))
    (few,) = paired(systems, resample="document").pairs
    assert few.reason == "2 documents: too few for a wild interval"
    (neither,) = paired(two([[1.0, 2.0], [1.0, 3.0]], [[2.0, 2.0], [2.0, 3.0]], "SWF"), resamples=50).pairs
    assert (neither.wins, neither.losses) == (None, None)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"test": "t"}, "no test 't'"),
        ({"correction": "bonferroni"}, "no correction"),
        ({"base": "aa"}, "no system 'aa'"),
        ({"metrics": []}, "no metric was asked for"),
        ({"resample": "document"}, "does not say which document"),
        ({"method": "x"}, "no interval method 'x'"),
        ({"resamples": 10**12}, "from 2 to 1000000"),
    ],
)
def test_what_cannot_be_asked_for(wrong, message) -> None:
    with pytest.raises(lagging.UsageError, match=message):
        paired(two([1.0, 2.0], [2.0, 3.0]), **wrong)


def test_segments_are_matched_by_id_and_the_others_are_listed() -> None:
    a = Scores([made("AL", [1.0, 2.0, 3.0, 9.0], ids=[2, 1, 10, 7])])
    b = Scores([made("AL", [5.0, 6.0, 7.0], ids=["1", "10", "x"])])
    found = match({"a": a, "b": b})
    assert [scores[0].ids.tolist() for scores in found.scores] == [[1, 10], ["1", "10"]]
    assert [scores[0].segments.tolist() for scores in found.scores] == [[2.0, 3.0], [5.0, 6.0]]
    assert found.unmatched == {"a": (2, 7), "b": ("x",)}
    got = paired({"a": a, "b": b}, resamples=50)
    assert got.n == 2
    assert got.pairs[0].value_a == 2.5
    assert got.unmatched == found.unmatched


def test_what_cannot_be_matched() -> None:
    one = Scores([made("AL", [1.0, 2.0], ids=["a", "b"], documents=["x", "y"])])
    with pytest.raises(lagging.UsageError, match="at least two systems"):
        match({"one": one})
    with pytest.raises(lagging.DataError, match="no segment in common: one, two"):
        match({"one": one, "two": Scores([made("AL", [1.0], ids=["c"])])})
    with pytest.raises(lagging.UsageError, match="no metric in common"):
        match({"one": one, "two": Scores([made("DAL", [1.0], ids=["a"])])})
    with pytest.raises(lagging.MetricError, match="DAL of one was not scored"):
        match({"one": one, "two": Scores([made("DAL", [1.0], ids=["a"])])}, ["DAL"])
    with pytest.raises(lagging.UsageError, match="the segment 'a' twice"):
        match({"one": one, "two": Scores([made("AL", [1.0, 2.0], ids=["a", "a"])])})
    other = Scores([made("AL", [1.0, 2.0], ids=["a", "b"], documents=["x", "z"])])
    with pytest.raises(lagging.UsageError, match="do not agree which document"):
        match({"one": one, "two": other}, resample="document")
    assert match({"one": one, "two": other}).n == 2


# ---- the same everywhere ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [counts, swaps])
@pytest.mark.parametrize("n", [1, 7, 100])
def test_resamples_do_not_depend_on_how_many_are_made_at_a_time(draw, n) -> None:
    whole = np.concatenate(list(draw(n, 200)))
    assert whole.shape == (200, n)
    for cells in (1, 50, 3333):
        np.testing.assert_array_equal(np.concatenate(list(draw(n, 200, cells=cells))), whole)


def test_threads_change_nothing() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import numpy as np; from statistic import made;"
        "from lagging.scoring.scores import Scores; from lagging.comparison.pairs import paired;"
        "d = np.random.default_rng(1);"
        "s = {k: Scores([made('AL', d.lognormal(0, 1, 3000))]) for k in 'abc'};"
        "print([(p.low.hex(), p.high.hex(), p.p, p.effect_low.hex()) for p in paired(s, resamples=300).pairs])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code, os.path.dirname(os.path.dirname(__file__))],  # noqa: PTH120
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads, "OPENBLAS_CORETYPE": core},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for threads, core in (("1", "Prescott"), ("2", "Haswell"))
    }
    assert len(said) == 1


@pytest.mark.slow
def test_false_positives_in_miniature() -> None:
    """400 pairs of 100 segments that do not differ; the slow one is bench/coverage.py."""
    dice = np.random.default_rng(2)
    names = [f"DAL(write_cost={k})" for k in range(400)]
    systems = {s: Scores([made(name, dice.exponential(3.0, 100)) for name in names]) for s in "ab"}
    for test in ("bootstrap", "randomisation"):
        found = sum(pair.p <= 0.05 for pair in paired(systems, test=test, resamples=500).pairs)
        assert scipy.stats.binom.ppf(0.001, 400, 0.04) <= found <= scipy.stats.binom.ppf(0.999, 400, 0.06), test


def many(count: int) -> dict[str, Scores]:
    dice = np.random.default_rng(7)

    def run(k: int) -> lagging.Run:
        delays = [sorted(dice.integers(1, 9, 5).tolist()) if (k, i) != (3, 4) else [] for i in range(20)]
        documents = [f"talk {i // 4}" for i in range(20)]
        return lagging.Run.from_delays(delays, source_length=[8] * 20, document=documents)

    return {f"s{k}": lagging.score(run(k), ["AL", "AP(mean=token)", "LagPercentile"]) for k in range(count)}


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"test": "bootstrap"},
        {"method": "percentile"},
        {"resample": "document"},
        {"base": "s2"},
        {"method": "sacrebleu"},
    ],
)
def test_pairs_are_the_same_however_few_are_in_memory(how, monkeypatch) -> None:
    systems = many(5)
    whole = paired(systems, resamples=200, **how)
    monkeypatch.setattr(joint, "CELLS", 200 * 3 * 2)  # two pairs at a time
    few = paired(systems, resamples=200, **how)
    assert repr(few.pairs) == repr(whole.pairs)
    assert few.intervals == whole.intervals
    np.testing.assert_array_equal(few.values, whole.values)


def test_memory_does_not_grow_with_the_number_of_pairs(monkeypatch) -> None:
    monkeypatch.setattr(joint, "CELLS", 1 << 16, raising=False)
    resamples, peaks = 2000, {}
    for count in (6, 24):
        systems = many(count)
        tracemalloc.start()
        pairs = paired(systems, ["AL"], resamples=resamples).pairs
        peaks[count] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert len(pairs) == 276
    assert peaks[24] - peaks[6] < 8 * resamples * len(pairs)  # a number for each resample and pair


def test_a_system_that_has_no_interval_takes_nothing_from_other_pairs() -> None:
    systems = many(3)
    whole = paired({name: systems[name] for name in ("s0", "s1")}, ["AL"], resamples=200)
    odd = replace(systems["s2"]["AL"], statistics=np.full((20, 1), np.inf))
    beside = paired({**systems, "s2": Scores([odd], "s2")}, ["AL"], resamples=200)
    assert repr(beside.pair("AL", "s0", "s1")) == repr(replace(whole.pairs[0], p_adjusted=beside.pairs[0].p_adjusted))
    assert beside.pair("AL", "s0", "s2").reason == "some segments have an infinite value"


@pytest.mark.parametrize("resamples", [-1, 0, 1, 10**6 + 1, 10**23])
def test_resamples_that_would_take_for_ever_are_refused(resamples) -> None:
    with pytest.raises(lagging.UsageError, match=f"from 2 to 1000000, but are {resamples}"):
        Draws.make(two([1.0, 2.0], [2.0, 3.0]), resamples=resamples)
