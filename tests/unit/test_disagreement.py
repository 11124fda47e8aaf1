# SPDX-License-Identifier: Apache-2.0
import math
from itertools import combinations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import lagging
from lagging.comparison.published.rows import PublishedRow
from lagging.curves.ranking import kendall, ranking
from lagging.curves.slopes import lines
from lagging.errors import UsageError
from lagging.render.ranking import render_lines
from lagging.stats.resamples import counts

values = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=7)


@given(values)
def test_kendall_is_that_of_scipy(pairs) -> None:
    a, b = zip(*pairs, strict=True)
    found, known = float(kendall(a, b)), scipy.stats.kendalltau(a, b).statistic
    assert math.isnan(known) if math.isnan(found) else found == pytest.approx(known)


def test_kendall_of_many_at_once() -> None:
    a, b = np.random.default_rng(0).integers(0, 4, size=(2, 30, 5))
    np.testing.assert_array_equal(kendall(a, b), [kendall(*pair) for pair in zip(a, b, strict=True)])


# ---- ranks -----------------------------------------------------------------------------------------------------------


def waiting(seed, k, n=30, jump=0):
    """A wait-k system whose words sometimes come in bursts, on sentences of their own length."""
    lengths = np.random.default_rng(7).integers(6, 20, n)
    dice = np.random.default_rng(seed)
    rows = []
    for x in lengths:
        g = np.minimum(k + np.arange(x) + dice.integers(0, 2, x), x)
        for t in range(0, x - jump, 2 * jump) if jump else ():
            g[t : t + jump] = g[t + jump]
        rows.append(np.maximum.accumulate(g).tolist())
    return lagging.Run.from_delays(rows, source_length=lengths)


def test_ranks_and_flips() -> None:
    runs = {"a": waiting(1, 1), "b": waiting(2, 5), "c": waiting(3, 2, jump=3), "d": waiting(4, 4)}
    found = ranking(runs, ["AL", "DAL", "AP"], resamples=60)
    scores = {name: lagging.score(run, ["AL", "DAL", "AP"]) for name, run in runs.items()}
    for m, metric in enumerate(found.metrics):
        column = [scores[name][metric].value for name in runs]
        assert found.values[:, m].tolist() == column
        assert found.ranks[:, m].tolist() == scipy.stats.rankdata(column, method="min").tolist()
        for other in range(m + 1, 3):
            tau = next(t for t in found.taus if (t.a, t.b) == (metric, found.metrics[other]))
            assert tau.value == pytest.approx(scipy.stats.kendalltau(column, found.values[:, other]).statistic)
    seen = set()
    for i, j in combinations(range(4), 2):
        before = {m for m, v in zip(found.metrics, found.values.T, strict=True) if v[i] < v[j]}
        if 0 < len(before) < 3:
            seen.add((found.systems[i], found.systems[j], frozenset(before)))
    assert {(f.a, f.b, frozenset(f.before)) for f in found.flips} == seen
    assert seen, "nothing flips: this test shows nothing"
    assert found.units == ("token", "token", "ratio")


def test_tau_and_flips_in_resamples_are_those_of_a_slow_loop() -> None:
    runs = {"a": waiting(1, 3), "b": waiting(2, 3), "c": waiting(3, 1, jump=5), "d": waiting(4, 4)}
    found = ranking(runs, ["AL", "DAL"], resamples=60)
    each = {m: [lagging.score(run, [m])[m].segments for run in runs.values()] for m in ("AL", "DAL")}
    taus, held = [], [[] for _ in found.flips]
    for some in np.concatenate(list(counts(30, 60))).astype(int):
        means = {m: [np.repeat(one, some).mean() for one in each[m]] for m in ("AL", "DAL")}
        taus.append(scipy.stats.kendalltau(means["AL"], means["DAL"]).statistic)
        for flip, seen in zip(found.flips, held, strict=True):
            a, b = (found.systems.index(name) for name in (flip.a, flip.b))
            ahead = {m for m, values in means.items() if values[a] < values[b]}
            seen.append(ahead == {repr(m) for m in flip.before})
    assert (found.taus[0].low, found.taus[0].high) == pytest.approx(tuple(np.quantile(taus, [0.025, 0.975])))
    assert found.taus[0].low < found.taus[0].high
    assert [flip.share for flip in found.flips] == pytest.approx([np.mean(seen) for seen in held])
    assert any(0 < flip.share < 1 for flip in found.flips)


def test_higher_is_better_where_it_is() -> None:
    def row(al, bleu):
        return PublishedRow("s", "", {lagging.metric("AL"): al, lagging.metric("BLEU"): bleu}, "token", "t.csv", 2)

    found = ranking({"fast": row(1, 20), "good": row(4, 30), "both": row(1, 30)}, ["AL", "BLEU"])
    assert found.ranks.tolist() == [[1, 3], [3, 1], [1, 1]]
    assert [(f.a, f.b, f.share) for f in found.flips] == [("fast", "good", None)]
    assert (found.taus[0].low, found.taus[0].reason) == (None, "published without a log")
    assert found.draws is None


def test_what_cannot_be_ranked() -> None:
    run = waiting(1, 2)
    same = ranking({"a": run, "b": run}, ["AL", "DAL"], resamples=10)
    assert same.ranks.tolist() == [[1, 1], [1, 1]]
    assert math.isnan(same.taus[0].value)
    assert same.taus[0].reason == "a metric gives all systems the same value"
    assert same.flips == ()
    for systems, metrics, words in (
        ({"a": run}, ["AL", "DAL"], "at least two"),
        ({"a": run, "b": run}, ["AL"], "at least two"),
        ({"a": run, "b": run}, ["AL", "NumChunks"], "NumChunks cannot rank systems"),
        (
            {"a": run, "b": PublishedRow("b", "", {lagging.metric("AL"): 1}, "token", "t", 1)},
            ["AL", "DAL"],
            "has no DAL",
        ),
        (
            {"a": run, "b": PublishedRow("b", "", {lagging.metric(m): 1 for m in ("AL", "AP")}, "ms", "t", 1)},
            ["AL", "AP"],
            "different units",
        ),
    ):
        with pytest.raises(UsageError, match=words):
            ranking(systems, metrics, resamples=10)


def test_a_system_without_a_value_has_no_rank() -> None:
    nothing = lagging.Run.from_delays([[]] * 30, source_length=[9] * 30)
    found = ranking({"a": waiting(1, 1), "b": waiting(2, 3), "silent": nothing}, ["AL", "DAL"], resamples=20)
    assert found.ranks.tolist() == [[1, 1], [2, 2], [0, 0]]
    assert found.taus[0].value == 1


# ---- lines -----------------------------------------------------------------------------------------------------------


def test_slopes_in_resamples_are_those_of_a_slow_loop() -> None:
    families = {
        "fixed": [(f"k={k}", waiting(k, k)) for k in (1, 3, 5)],
        "jumping": [(f"j={j}", waiting(9 + j, 2, jump=j)) for j in (1, 2, 3)],
    }
    found = lines(families, "AL", "DAL", resamples=80)
    each = {
        name: [[lagging.score(run, [m])[m].segments for _, run in some] for m in ("AL", "DAL")]
        for name, some in families.items()
    }
    slopes = {name: [] for name in families}
    for some in np.concatenate(list(counts(30, 80))).astype(int):
        for name, pair in each.items():
            x, y = ([np.repeat(one, some).mean() for one in values] for values in pair)
            slopes[name].append(scipy.stats.linregress(x, y).slope)
    for line, (name, pair) in zip(found.lines, each.items(), strict=True):
        known = scipy.stats.linregress(*([one.mean() for one in values] for values in pair))
        assert (line.slope.value, line.start.value) == pytest.approx((known.slope, known.intercept))
        # the ends are BCa's: quantiles of these slopes, if not at 2.5 and 97.5 %
        assert min(slopes[name]) <= line.slope.low < line.slope.value < line.slope.high <= max(slopes[name])
        away = np.abs(np.array(slopes[name]) - known.slope) >= abs(known.slope - 1)
        assert line.slope.p == pytest.approx((away.sum() + 1) / 81)
        assert line.resample == "segment"
    (steeper,) = found.slope_differences
    assert (steeper.a, steeper.b) == ("fixed", "jumping")
    assert steeper.difference.value == pytest.approx(found.lines[1].slope.value - found.lines[0].slope.value)
    gains = np.subtract(slopes["jumping"], slopes["fixed"])
    away = np.abs(gains - steeper.difference.value) >= abs(steeper.difference.value)
    assert steeper.difference.p == steeper.p_adjusted == pytest.approx((away.sum() + 1) / 81)


def rows(x, y):
    al, dal = lagging.metric("AL"), lagging.metric("DAL")
    return [
        (f"{k}", PublishedRow("s", f"{k}", {al: a, dal: b}, "token", "t.csv", k + 2))
        for k, (a, b) in enumerate(zip(x, y, strict=True))
    ]


def test_an_interval_over_settings_covers() -> None:
    dice, covered = np.random.default_rng(5), 0
    x = np.array([1.0, 2, 4, 5, 8, 9, 12])
    for _ in range(100):
        (line,) = lines({"a": rows(x, 1.5 * x + 1 + dice.normal(0, 0.5, 7))}, resamples=400).lines
        covered += line.slope.low <= 1.5 <= line.slope.high
        assert line.resample == "setting"
    assert covered >= 88  # 95 are expected; below 88 lies one in two hundred


@pytest.mark.parametrize(
    ("x", "y", "head"), [("AP", "AL", "AL where AP is 0, tokens"), ("AL", "AP", "AP where AL is 0 ")]
)
def test_a_line_begins_in_the_unit_of_what_is_upward(x, y, head) -> None:
    found = lines({"a": [("1", waiting(1, 1)), ("2", waiting(2, 2))]}, x, y, resamples=20)
    text = render_lines(found)
    assert head in text.splitlines()[0]
    assert f"{found.lines[0].start.value:.3f} [" in text


def test_one_axis_has_one_unit() -> None:
    spoken = PublishedRow("b", "1", {lagging.metric("AP"): 0.5, lagging.metric("AL"): 900.0}, "ms", "t.csv", 2)
    with pytest.raises(UsageError, match=r"different units cannot be on one axis: token \(a 1\), ms \(b 1\)"):
        lines({"a": [("1", waiting(1, 1))], "b": [("1", spoken)]}, "AP", "AL", resamples=20)


def test_lines_of_few_settings() -> None:
    for n, reason in ((1, "a line needs two settings"), (2, "2 settings: too few for an interval")):
        (line,) = lines({"a": rows(range(n), range(n))}).lines
        assert (line.slope.low, line.slope.reason) == (None, reason)
    (line,) = lines({"a": rows([1, 2, 4], [3, 5, 9])}).lines
    assert (line.slope.value, line.slope.low, line.slope.high) == pytest.approx((2, 2, 2))
    assert line.slope.reason == "all settings lie on the line"
    (line,) = lines({"a": rows([1, 1, 1], [3, 5, 9])}).lines
    assert line.slope.reason == "all settings have the same x, or no value"
    alone = lines({"a": [("1", waiting(1, 1))], "b": [("1", waiting(1, 1)), ("2", waiting(2, 2))]}, resamples=20)
    assert alone.lines[0].slope.reason == "a line needs two settings"
    assert alone.slope_differences == ()
    with pytest.raises(UsageError, match="no correction"):
        lines({"a": rows([1, 2], [3, 5])}, correction="x")


def test_only_what_can_be_scored_is_ranked() -> None:
    with pytest.raises(UsageError, match="COMET is not computed from logs"):
        ranking({"a": waiting(1, 1), "b": waiting(2, 2)}, ["AL", "COMET"])
    with pytest.raises(UsageError, match="b must be a Run, Scores, or a published row, but is a str"):
        ranking({"a": waiting(1, 1), "b": "b.log"}, ["AL", "DAL"])
