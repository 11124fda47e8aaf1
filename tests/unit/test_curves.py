# SPDX-License-Identifier: Apache-2.0
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lagging
from lagging.comparison.derivations import Draws
from lagging.comparison.pairs import paired
from lagging.comparison.published.rows import PublishedRow
from lagging.curves import curves
from lagging.errors import MetricError, UsageError
from lagging.scoring.columns import Column
from lagging.scoring.intervals import interval
from lagging.scoring.scores import Scores
from lagging.stats.polylines import fit, front, height, mean_gap, ordered, reach
from lagging.stats.resamples import counts

whole = st.integers(-6, 6)
points = st.lists(st.tuples(whole, whole), min_size=1, max_size=6)
holes = st.lists(st.tuples(whole | st.none(), whole | st.none()), min_size=1, max_size=6)


# ---- lines, against what the definitions say, exactly --------------------------------------------------------------


def line(some):
    """x → y of the points that count, by rising x."""
    best = {}
    for x, y in some:
        if x is not None and y is not None:
            best[x] = max(y, best.get(x, y))
    return [(Fraction(x), Fraction(best[x])) for x in sorted(best)]


def slow_height(some, at):
    joined = line(some)
    for x, y in joined:
        if x == at:
            return y
    for (x0, y0), (x1, y1) in pairwise(joined):
        if x0 < at < x1:
            return y0 + (y1 - y0) * (at - x0) / (x1 - x0)
    return None


def slow_reach(some, level):
    joined = line(some)
    if not joined or joined[0][1] > level:
        return None
    if joined[0][1] == level:
        return joined[0][0]
    for (x0, y0), (x1, y1) in pairwise(joined):
        if y0 < level <= y1:
            return x0 + (x1 - x0) * (level - y0) / (y1 - y0)
    return None


def slow_gap(one, other):
    a, b = line(one), line(other)
    if not a or not b:
        return None
    low, high = max(a[0][0], b[0][0]), min(a[-1][0], b[-1][0])
    if low > high:
        return None
    if low == high:
        return slow_height(other, low) - slow_height(one, low)
    cuts = sorted({low, high, *(x for x, _ in a + b if low < x < high)})
    area = sum(
        (right - left) * sum(slow_height(other, x) - slow_height(one, x) for x in (left, right)) / 2
        for left, right in pairwise(cuts)
    )
    return area / (high - low)


def columns(some):
    return np.array([[np.nan if v is None else v for v in p] for p in some], dtype=np.float64).T


def same(found, exact):
    assert np.isnan(found) if exact is None else found == pytest.approx(float(exact), abs=1e-12), (found, exact)


@settings(max_examples=100)
@given(holes, st.fractions(-7, 7, max_denominator=4))
def test_height_and_reach(some, at) -> None:
    same(float(height(*columns(some), float(at))), slow_height(some, at))
    same(float(reach(*columns(some), float(at))), slow_reach(some, at))


@settings(max_examples=100)
@given(holes, holes)
def test_gap(one, other) -> None:
    same(float(mean_gap(*columns(one), *columns(other))), slow_gap(one, other))


@given(st.lists(st.tuples(whole, whole), min_size=1, max_size=8))
def test_front(some) -> None:
    beaten = [any(x <= a and y >= b and (x, y) != (a, b) for x, y in some) for a, b in some]
    assert front(*columns(some)).tolist() == [not lost for lost in beaten]


@settings(max_examples=60)
@given(st.lists(st.lists(st.tuples(whole, whole), min_size=4, max_size=4), min_size=1, max_size=4))
def test_many_lines_at_once_are_each_as_if_alone(some) -> None:
    x, y = np.stack([columns(one) for one in some], axis=1)
    at = np.arange(len(some)) - 1.5
    np.testing.assert_array_equal(height(x, y, at), [height(*columns(s), a) for s, a in zip(some, at, strict=True)])
    np.testing.assert_array_equal(reach(x, y, 1.5), [reach(*columns(s), 1.5) for s in some])
    np.testing.assert_array_equal(front(x, y), [front(*columns(s)) for s in some])
    np.testing.assert_array_equal(
        mean_gap(x[:, :2], y[:, :2], x[:, 2:], y[:, 2:]), [mean_gap(*columns(s[:2]), *columns(s[2:])) for s in some]
    )


@given(points)
def test_fit_is_least_squares(some) -> None:
    slope, start = fit(*columns(some))
    x, y = [[Fraction(v) for v in column] for column in zip(*some, strict=True)]
    if len(set(x)) == 1:
        assert np.isnan(slope)
        return
    n, mean = len(x), sum(x) / len(x)
    exact = sum((a - mean) * b for a, b in some) / sum((a - mean) ** 2 for a in x)
    same(float(slope), exact)
    same(float(start), sum(y) / n - exact * mean)


def test_points_in_disorder() -> None:
    x, y = ordered([3, np.nan, 1], [30, 20, 10])
    np.testing.assert_array_equal(x, [1, 3, np.nan])
    np.testing.assert_array_equal(y, [10, 30, np.nan])


# ---- curves ----------------------------------------------------------------------------------------------------------


def scored(latency, quality, document=None, ids=None, unit="ms"):
    """Scores with these latencies and qualities of the segments."""
    run = lagging.Run.from_delays(
        [[x] for x in latency], source_length=[1e6] * len(latency), unit=unit, document=document, id=ids
    )
    one = lagging.score(run, ["AL", "DAL"])
    return Scores([*one, Column("COMET", "s", list(quality), ids=ids).score(one)])


def family(seed, latencies, gain=0.0, n=40, document=None):
    dice = np.random.default_rng(seed)
    hard = np.random.default_rng(99).normal(size=n)  # the segments are the same for all
    return [
        (f"{x:g}", scored(x + 5 * hard + dice.normal(0, 9, n), x / 9 + gain + hard + dice.normal(0, 1, n), document))
        for x in latencies
    ]


def made(systems, **how):
    return curves(systems, "AL", "COMET", **{"resamples": 200, **how})


def test_points_come_by_latency_with_the_intervals_of_their_scores() -> None:
    found = made({"a": family(1, (300, 100, 200))})
    assert [p.setting for p in found[0].points] == ["100", "200", "300"]
    for (_, scores), point in zip(sorted(family(1, (300, 100, 200))), found[0].points, strict=True):
        for axis, name in ((point.latency, "AL"), (point.quality, "COMET")):
            alone = interval(scores[name], resamples=200)
            assert axis.value == scores[name].value
            assert (axis.low, axis.high) == pytest.approx((alone.low, alone.high), rel=1e-12)
            assert point.scores[name].signature.get("bs") == "200"
    assert found.unit == found[0].unit == "ms"
    assert (len(found), [c.system for c in found]) == (1, ["a"])


def test_what_is_derived_is_as_sure_as_a_slow_loop_says() -> None:
    systems = {"a": family(1, (100, 110, 130)), "b": family(2, (105, 120), 0.5)}
    found = made(systems, method="percentile", resamples=80)
    each = {k: [(s["AL"].segments, s["COMET"].segments) for _, s in v] for k, v in systems.items()}
    drawn = {"at": [], "to": [], "gap": []}
    for some in np.concatenate(list(counts(40, 80))).astype(int):
        a, b = (
            [(float(np.repeat(x, some).mean()), float(np.repeat(y, some).mean())) for x, y in each[k]] for k in "ab"
        )
        drawn["at"].append(slow_height(a, 115))
        drawn["to"].append(slow_reach(a, Fraction(13)))
        drawn["gap"].append(slow_gap(a, b))
    assert all(value is not None for values in drawn.values() for value in values)
    at, to, area = found.quality_at(115)[0], found.latency_at(13)[0], found.areas()[0]
    for one, values in ((at, drawn["at"]), (to, drawn["to"]), (area, drawn["gap"])):
        ends = np.quantile([float(value) for value in values], [0.025, 0.975])
        assert (one.low, one.high) == pytest.approx(tuple(ends), rel=1e-9)
    away = [abs(float(value) - area.difference) >= abs(area.difference) for value in drawn["gap"]]
    assert area.p == pytest.approx((sum(away) + 1) / 81)
    assert (area.a, area.b, area.reason) == ("a", "b", "")


@pytest.mark.parametrize("by", ["segment", "document"])
def test_a_difference_of_scores_is_judged_as_paired_judges_it(by) -> None:
    document = [f"d{min(i % 15, 7)}" for i in range(40)]  # one is larger than the others
    one, other = family(1, (100,), document=document)[0][1], family(2, (104,), 0.2, document=document)[0][1]
    systems = {"one": one, "other": other}
    metrics = ["AL", one["COMET"].metric]
    draws = Draws.make(systems, metrics, resample=by, resamples=400)
    alone, gain = draws.derive([(lambda v: v[..., 0, 1], [0]), (lambda v: v[..., 1, 0] - v[..., 0, 0], [0, 1])])
    kept = interval(one["COMET"], resample=by, resamples=400)
    pair = paired(systems, metrics, resample=by, resamples=400).pair("AL", "one", "other")
    assert (alone.low, alone.high) == pytest.approx((kept.low, kept.high), rel=1e-6)
    assert (gain.low, gain.high) == pytest.approx((pair.low, pair.high), rel=1e-4)
    if by == "document":
        assert gain.p == pytest.approx(pair.p, abs=0.01)


def test_intervals_of_pooled_percentiles() -> None:
    document = [f"d{i % 8}" for i in range(40)]
    rows = np.random.default_rng(0).integers(1, 9, size=(40, 3)).cumsum(axis=1)
    run = lagging.Run.from_delays(rows.tolist(), source_length=[40] * 40, document=document)
    scores = lagging.score(run, ["LagPercentile", "AL"])
    for by in ("segment", "document"):
        draws = Draws.make({"a": scores}, ["LagPercentile", "AL"], resample=by, resamples=300)
        shown = draws.scores()[0]["LagPercentile"]
        alone = interval(scores["LagPercentile"], resample=by, resamples=300)
        assert (shown.low, shown.high) == pytest.approx((alone.low, alone.high))
        both = draws.derive([(lambda v: v[..., 0, 0] - v[..., 0, 1], [0])])[0]
        ends = np.quantile(draws.values[:, 0, 0] - draws.values[:, 0, 1], [0.025, 0.975])
        assert (both.low, both.high) == pytest.approx(tuple(ends))


def test_nothing_is_extrapolated() -> None:
    found = made({"a": family(1, (1000, 2000))})
    first, last = (p.quality.value for p in found[0].points)
    for at in (found.quality_at(500)[0], found.quality_at(2500)[0]):
        assert np.isnan(at.value)
        assert (at.low, at.high) == (None, None)
        assert at.reason.startswith("its latency goes from ")
        assert at.reason.endswith(" s")
    assert found.latency_at(last + 1)[0].reason.startswith("its best is ")
    assert "already at its lowest latency" in found.latency_at(first - 1)[0].reason
    assert found.quality_at(1500)[0].low < found.quality_at(1500)[0].value < found.quality_at(1500)[0].high


def test_where_many_resamples_do_not_get_there_is_no_interval() -> None:
    found = made({"a": family(1, (100, 200))})
    edge = found[0].points[1].latency.value
    at = found.quality_at(edge)[0]
    assert at.value == pytest.approx(found[0].points[1].quality.value)
    assert at.low is None
    assert "of the resamples have no value" in at.reason


def test_a_curve_of_one_setting() -> None:
    found = made({"a": family(1, (100, 200)), "b": family(2, (150,), 2.0)})
    x, y = (axis.value for axis in (found[1].points[0].latency, found[1].points[0].quality))
    area = found.areas()[0]
    assert (area.start, area.end) == (x, x)
    assert area.difference == pytest.approx(y - found.quality_at(x)[0].value)
    assert area.low < area.difference < area.high
    assert area.p < 0.05
    assert found.quality_at(x)[1].value == pytest.approx(y)
    assert found.quality_at(x + 1)[1].reason.startswith("its latency is ")
    alone = made({"b": family(2, (150,))})
    assert alone[0].points[0].latency.low is not None
    assert [one.on for one in alone.front()] == [True]
    assert alone.areas() == ()


def test_curves_that_share_no_latency() -> None:
    area = made({"a": family(1, (100, 200)), "b": family(2, (300, 400))}).areas()[0]
    assert np.isnan([area.difference, area.start, area.p, area.p_adjusted]).all()
    assert (area.low, area.reason) == (None, "they have no latency in common")


def test_a_curve_that_falls_and_settings_that_are_equally_late() -> None:
    flat = np.zeros(40)
    several = [(str(k), scored(flat + x, flat + y)) for k, (x, y) in enumerate([(10, 1), (20, 5), (30, 2), (20, 4)])]
    found = made({"a": several})
    assert found.quality_at(20)[0].value == 5
    assert found.quality_at(25)[0].value == 3.5
    assert found.latency_at(3)[0].value == 15
    assert found.latency_at(1)[0].value == 10
    at = found.quality_at(15)[0]
    assert (at.low, at.value, at.high) == (3, 3, 3)
    assert at.reason == "all resamples have the same value"
    assert {one.setting: (one.on, one.share) for one in found.front()} == {
        "0": (True, 1.0),
        "1": (True, 1.0),
        "3": (False, 0.0),
        "2": (False, 0.0),
    }


def test_equal_systems_are_equal() -> None:
    one = family(1, (100, 150, 200))
    found = made({"a": one, "b": one})
    area = found.areas()[0]
    assert (area.difference, area.low, area.high, area.p) == (0, 0, 0, 1)
    assert all(
        one.on and one.share == other.share for one, other in zip(found.front()[:3], found.front()[3:], strict=True)
    )


def test_the_better_of_ter_is_the_lower() -> None:
    def run(k, wrong):
        text = [f"a b c d {'x' if i < wrong else 'e'} f" for i in range(10)]
        delays = [[min(k + t, 6) for t in range(6)]] * 10
        return lagging.Run.from_delays(delays, source_length=[6] * 10, prediction=text, reference=["a b c d e f"] * 10)

    runs = {"a": [("1", run(1, 9)), ("3", run(3, 4))], "b": [("1", run(1, 6)), ("3", run(3, 2))]}
    found = curves(runs, "DAL", "TER", resamples=100)
    on = {(one.system, one.setting) for one in found.front() if one.on}
    assert on == {("b", "1"), ("b", "3")} == {(one.system, one.setting) for one in found.front() if one.share > 0.5}
    assert (
        curves({"a": [*runs["a"], ("1, worse", run(1, 10))]}, "DAL", "TER", resamples=20).quality_at(1)[0].value == 15
    )
    middle = found.quality_at(2)[0].value
    assert found.latency_at(middle)[0].value == pytest.approx(2)
    area = found.areas()[0]
    assert area.difference == pytest.approx(-100 * (3 + 2) / 2 / 60)
    assert area.low <= area.difference <= area.high < 0


def test_a_base_and_a_correction() -> None:
    found = made({name: family(seed, (100, 200), seed / 4) for seed, name in enumerate("abc")})
    assert [(area.a, area.b) for area in found.areas()] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [(area.a, area.b) for area in found.areas("b")] == [("b", "a"), ("b", "c")]
    plain, holm = (found.areas(correction=name) for name in ("none", "holm"))
    np.testing.assert_allclose([a.p_adjusted for a in holm], lagging.stats.holm([a.p for a in plain]))
    for wrong in ({"base": "d"}, {"correction": "x"}):
        with pytest.raises(UsageError, match="there is no"):
            found.areas(**wrong)


def test_a_setting_without_a_value_is_left_out() -> None:
    lost = scored(np.full(40, 150.0), np.full(40, np.nan))
    found = made({"a": [*family(1, (100, 200)), ("lost", lost)]})
    assert found.quality_at(150)[0].value == pytest.approx(made({"a": family(1, (100, 200))}).quality_at(150)[0].value)
    assert {one.setting: one.on for one in found.front()}["lost"] is False
    only = made({"a": [("lost", lost)]})
    assert only.quality_at(150)[0].reason == "no setting has a latency and a quality"


def test_settings_are_matched_by_segment() -> None:
    a = scored([100, 110, 120], [1, 2, 3], ids=["x", "y", "z"])
    b = scored([220, 200], [5, 4], ids=["y", "x"])
    found = made({"s": [("a", a), ("b", b)]})
    assert found.unmatched == {"s a": ("z",), "s b": ()}
    assert [p.latency.value for p in found[0].points] == [105, 210]
    assert {score.signature["n"] for p in found[0].points for score in p.scores} == {"2"}


def test_too_few_segments_for_an_interval() -> None:
    found = made({"a": [("1", scored([100], [1])), ("2", scored([200], [2]))]})
    assert found[0].points[0].latency.low is None
    at = found.quality_at(150)[0]
    assert (at.value, at.low, at.reason) == (1.5, None, "1 segment with a value: too few")


def test_by_document() -> None:
    document = [f"d{i % 8}" for i in range(40)]
    found = made({"a": family(1, (100, 150, 200), document=document)}, resample="document")
    at = found.quality_at(140)[0]
    assert at.low < at.value < at.high
    assert found.draws.template.clusters == 8
    assert found[0].points[0].scores["AL"].signature.get("method") == "wild"


def published(system, *values):
    al, comet = lagging.metric("AL"), scored([1], [1])["COMET"].metric
    return [(f"{x}", PublishedRow(system, f"{x}", {al: x, comet: y}, "ms", "t.csv", 2)) for x, y in values]


def test_published_beside_logs() -> None:
    found = made({"a": family(1, (100, 200)), "b": published("b", (120, 20), (160, 30))})
    assert found[1].points[0].scores is None
    assert found[1].points[0].latency.low is None
    at = found.quality_at(140)
    assert at[0].low is not None
    assert (at[1].value, at[1].low, at[1].reason) == (25, None, "published without a log")
    area = found.areas()[0]
    assert area.difference == pytest.approx(float(slow_gap(*(pairs(c) for c in found))))
    assert (area.low, area.reason) == (None, "published without a log")
    assert [one.share is None for one in found.front()] == [False, False, True, True]
    assert found.published == {"b": ("t.csv",)}
    assert curves({"b": published("b", (120, 20))}, "AL", "COMET").draws is None


def pairs(curve):
    return [(Fraction(p.latency.value), Fraction(p.quality.value)) for p in curve.points]


@pytest.mark.parametrize(
    ("given_settings", "axes", "words"),
    [
        ({}, ("AL", "COMET"), "at least one setting"),
        ({"a": []}, ("AL", "COMET"), "at least one setting"),
        ({"a": family(1, (100,)) * 2}, ("AL", "COMET"), "has the setting '100' twice"),
        ({"a": family(1, (100,))}, ("COMET", "AL"), "COMET is no latency"),
        ({"a": family(1, (100,))}, ("AL", "NumChunks"), "NumChunks is no quality"),
        ({"a": family(1, (100,))}, ("AL", "DAL"), "DAL is no quality, but about time"),
        (
            {"a b": [("1", scored([1.0] * 40, [1.0] * 40))], "a": [("b 1", scored([2.0] * 40, [1.0] * 40))]},
            ("AL", "COMET"),
            "two settings are called 'a b 1'",
        ),
        ({"a": family(1, (100,))}, ("AL", "AL"), "both axes"),
        ({"a": family(1, (100,))}, ("TER", "COMET"), "TER is no latency: it is not about time"),
        ({"a": family(1, (100,))}, ("AL", "AP"), "AP is no quality, but about time"),
        (
            {"a": [("1", lagging.policies.wait_k(1).run(source_lengths=[3], target_lengths=[3]))]},
            ("AL", "COMET"),
            "not computed",
        ),
        ({"a": family(1, (100,))[0][1]}, ("AL", "COMET"), "a needs settings with their names"),
        ({"a": [family(1, (100,))[0][1]]}, ("AL", "COMET"), "a needs settings with their names"),
        ({"a": [("1", "a.log")]}, ("AL", "COMET"), "a 1 must be a Run, Scores, or a published row, but is a str"),
        (family(1, (100,)), ("AL", "COMET"), "settings are given by system"),
        (
            {"a": family(1, (100,)), "b": [("1", scored([1.0] * 40, [1.0] * 40, unit="token"))]},
            ("AL", "COMET"),
            "units",
        ),
    ],
)
def test_what_makes_no_curve(given_settings, axes, words) -> None:
    with pytest.raises(UsageError, match=words):
        curves(given_settings, *axes, resamples=10)


def test_what_was_not_scored_or_published() -> None:
    with pytest.raises(MetricError, match="BLEU of a 100 was not scored"):
        curves({"a": family(1, (100,))}, "AL", "BLEU", resamples=10)
    with pytest.raises(UsageError, match=r"t\.csv:2: b 120 has no DAL; it has AL, COMET"):
        curves({"b": published("b", (120, 20))}, "DAL", "COMET")


def test_an_interval_that_nothing_derived_has() -> None:
    with pytest.raises(UsageError, match="not sacrebleu"):
        made({"a": family(1, (100,))}, method="sacrebleu")


def test_the_test_of_an_area_keeps_its_level() -> None:
    rejected = 0
    for seed in range(80):
        one, other = family(3 * seed, (100, 120, 140), n=60), family(3 * seed + 1, (105, 125, 145), n=60)
        # the truth: both lie on the line x / 9
        rejected += made({"a": one, "b": other}, resamples=150).areas()[0].p < 0.05
    assert 1 <= rejected <= 11  # 4 are expected; beyond 11 lies one in a thousand
