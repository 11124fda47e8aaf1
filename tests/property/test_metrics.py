# SPDX-License-Identifier: Apache-2.0
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import Phase, assume, example, given, settings
from hypothesis import strategies as st

import lagging
import oracle
from lagging import policies
from lagging.metrics import kernels
from lagging.metrics.registry import registered
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.plan import Plan

TOLERANCE = Fraction(1, 10**12)
LENGTHS = ("hypothesis", "reference", "longest")


@dataclass(frozen=True)
class Segment:
    """Delays, source length and reference length (None: no reference) of one segment."""

    g: tuple[float, ...]
    x: float
    reference: int | None
    unit: str

    @property
    def source_end(self):
        return self.x - 1.0 if self.unit == "ms" else self.x

    @property
    def scale(self):
        """The size of the numbers that lags are differences of."""
        return Fraction(max(self.x, *self.g)) if self.g else Fraction(self.x)

    @property
    def floor(self):
        """Below a thousandth of its terms, a difference of milliseconds has lost digits that no one can bring back."""
        return self.scale / 1000 if self.unit == "ms" else 0

    def y(self, length):
        """The |y| that enters γ; None where there is none."""
        if length == "hypothesis":
            return len(self.g)
        if length == "reference":
            return self.reference
        return len(self.g) if self.reference is None else max(len(self.g), self.reference)


# ---- generated cases --------------------------------------------------------------------------------------------


@st.composite
def token_segments(draw, min_tokens=0, max_tokens=12):
    x = draw(st.one_of(st.just(1), st.integers(0, 14)))
    low, high = draw(st.sampled_from([(0, x), (0, max(0, x - 1)), (0, 2 * x + 3), (x, 2 * x + 3), (0, 0)]))
    g = draw(st.lists(st.integers(low, high), min_size=min_tokens, max_size=max_tokens).map(sorted))
    return Segment(tuple(g), x, draw(st.none() | st.integers(0, 16)), "token")


@st.composite
def ms_segments(draw, min_tokens=0, max_tokens=12):
    x = draw(st.one_of(st.floats(0.001, 60_000), st.integers(1, 60_000).map(float), st.sampled_from([0.0, 1.0, 1.5])))
    low, high = draw(st.sampled_from([(0.0, x), (0.0, x / 2), (0.0, 2 * x + 50), (x, 2 * x + 50)]))
    times = st.one_of(st.floats(low, high).map(lambda v: round(v, 6)), st.sampled_from([low, high, max(0.0, x - 1.0)]))
    g = draw(st.lists(times, min_size=min_tokens, max_size=max_tokens).map(sorted))
    return Segment(tuple(g), x, draw(st.none() | st.integers(0, 16)), "ms")


def many(segments):
    return st.lists(segments, min_size=1, max_size=10)


anything = st.one_of(token_segments(), ms_segments())
something = st.one_of(token_segments(min_tokens=1), ms_segments(min_tokens=1)).filter(lambda s: s.x > 0)


@st.composite
def long_segments(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, x = draw(st.integers(100, 400)), draw(st.integers(1, 40_000))
    unit = draw(st.sampled_from(["token", "ms"]))
    g = rng.integers(0, x + 2, n).astype(float) if unit == "token" else rng.uniform(0, x * 1.01, n)
    return Segment(tuple(np.sort(g).tolist()), float(x), draw(st.none() | st.integers(1, 500)), unit)


def run_of(segments):
    return lagging.Run.from_delays(
        [s.g for s in segments],
        source_length=[s.x for s in segments],
        reference_length=[math.nan if s.reference is None else s.reference for s in segments],
        unit=segments[0].unit,
    )


def assert_close(got, exact, scale=0):
    """Within 1e-12 of the exact value, or of `scale` where that is larger; NaN where it is undefined."""
    if exact is None:
        assert math.isnan(got)
    else:
        assert abs(Fraction(float(got)) - exact) <= TOLERANCE * max(abs(exact), scale), (float(got), float(exact))


def assert_all_close(got, exact, scale=0):
    assert len(got) == len(exact)
    for one, value in zip(got, exact, strict=True):
        assert_close(one, value, scale)


def bits(values):
    return np.atleast_1d(np.asarray(values, dtype=np.float64)).view(np.int64).tolist()


# ---- Runs against the oracle ------------------------------------------------------------------------------------


def exact_values(s):
    """Metric → exact value (None: undefined), and the scale to which it must hold."""
    pure, terms = Fraction(s.floor), s.scale
    values = {}
    for length in LENGTHS:
        y, which = s.y(length), f"(length={length})"
        known = y is not None
        values["AP" + which] = (oracle.ap(s.g, s.x, y) if known else None, 0)
        values["AL" + which] = (oracle.al(s.g, s.x, y, s.source_end) if known else None, terms)
        values["AL_y" + which] = (oracle.al_y(s.g, s.x, y) if known else None, terms)
        values["DAL" + which] = (oracle.dal(s.g, s.x, y) if known else None, pure)
        values["LAAL" + which] = values["AL" + which]
    for name, default in (("AP", "hypothesis"), ("AL", "hypothesis"), ("AL_y", "hypothesis"), ("DAL", "hypothesis")):
        values[name] = values[f"{name}(length={default})"]
    values["LAAL"] = (oracle.laal(s.g, s.x, s.reference, s.source_end), terms)
    values["YAAL"] = (oracle.yaal(s.g, s.x, s.reference, s.source_end), terms)
    values["YAAL(length=hypothesis)"] = (oracle.yaal(s.g, s.x, None, s.source_end), terms)
    for cost in (0, 1, 0.37, 250):
        values[f"DAL(write_cost={cost})"] = (oracle.dal(s.g, s.x, d=cost), pure or terms / 1000)
    values["CW"] = (oracle.cw(s.g) if s.x else None, 0)
    values["Segments"] = (oracle.segments(s.g) if s.x else None, 0)
    return values


NAMES = list(exact_values(Segment((1,), 1, 1, "token")))


def check_run(segments):
    exact = [exact_values(s) for s in segments]
    scores = lagging.score(run_of(segments), NAMES)
    for name in NAMES:
        got, expected = scores[name], [values[name] for values in exact]
        for value, (one, scale) in zip(got.segments, expected, strict=True):
            assert_close(value, one, scale)
        defined = [one for one, _ in expected if one is not None]
        mean = sum(defined, Fraction(0)) / len(defined) if defined else None
        assert_close(got.value, mean, max(scale for _, scale in expected))
        assert got.undefined == len(expected) - len(defined)
        assert got.n == len(segments)


@settings(max_examples=200)
@given(many(token_segments()))
@example([Segment((), 5, None, "token")])
@example([Segment((3,), 1, 1, "token"), Segment((), 0, 0, "token"), Segment((0,), 1, None, "token")])
def test_runs_of_tokens_agree_with_the_oracle(segments):
    check_run(segments)


@settings(max_examples=200)
@given(many(ms_segments()))
def test_runs_of_milliseconds_agree_with_the_oracle(segments):
    check_run(segments)


@settings(max_examples=25)
@given(st.lists(long_segments(), min_size=1, max_size=4))
def test_runs_of_long_segments_agree_with_the_oracle(segments):
    check_run([s for s in segments if s.unit == segments[0].unit])


@given(many(token_segments()) | many(ms_segments()))
def test_other_ways_of_averaging_agree_with_the_oracle(segments):
    scores = lagging.score(
        run_of(segments),
        [
            "DAL(mean=token)",
            "DAL(empty=source)",
            "AL(empty=source, length=longest)",
            "DAL(write_cost=corpus)",
            "SourcePerSegment",
            "TargetPerSegment",
        ],
    )
    scale = max(s.scale for s in segments)
    usable = [s for s in segments if s.g and s.x]

    tokens = sum(len(s.g) for s in usable)
    total = sum((oracle.dal(s.g, s.x) * len(s.g) for s in usable), Fraction(0))
    assert_close(scores["DAL(mean=token)"].value, total / tokens if tokens else None, scale)

    filled = [Segment(s.g or (s.x,), s.x, s.reference, s.unit) for s in segments if s.x]
    for s, value in zip(filled, scores["DAL(empty=source)"].segments[[s.x > 0 for s in segments]], strict=True):
        assert_close(value, oracle.dal(s.g, s.x), s.floor)
    longest = "AL(empty=source, length=longest)"
    for s, value in zip(filled, scores[longest].segments[[s.x > 0 for s in segments]], strict=True):
        assert_close(value, oracle.laal(s.g, s.x, s.reference, s.source_end), s.scale)

    cost = sum((Fraction(s.x) for s in usable), Fraction(0)) / tokens if tokens else 0
    for s, value in zip(segments, scores["DAL(write_cost=corpus)"].segments, strict=True):
        assert_close(value, oracle.dal(s.g, s.x, d=cost), scale)

    reading = [s for s in usable if oracle.segments(s.g)]
    runs = sum(oracle.segments(s.g) for s in reading)
    read = sum((Fraction(s.g[-1]) for s in reading), Fraction(0))
    assert_close(scores["SourcePerSegment"].value, read / runs if runs else None)
    assert_close(scores["TargetPerSegment"].value, Fraction(sum(len(s.g) for s in reading), runs) if runs else None)


@settings(max_examples=100)
@given(many(ms_segments()), st.integers(0, 2**32))
def test_the_elapsed_clock_is_the_same_formulas_on_other_times(segments, seed):
    rng = np.random.default_rng(seed)
    elapsed = [np.maximum.accumulate(np.array(s.g) + rng.uniform(0, 500, len(s.g))).tolist() for s in segments]
    assume(any(elapsed))
    x, names = [s.x for s in segments], ("AP", "AL", "AL_y", "DAL", "LAAL", "YAAL", "CW")
    both = lagging.Run.from_delays([s.g for s in segments], source_length=x, elapsed=elapsed, unit="ms")
    alone = lagging.Run.from_delays(elapsed, source_length=x, unit="ms")
    on_clock = lagging.score(both, [f"{name}_CA" for name in names])
    plain = lagging.score(alone, names)
    for name in names:
        assert bits(on_clock[f"{name}_CA"].segments) == bits(plain[name].segments)


# ---- sentences against the oracle -------------------------------------------------------------------------------


@settings(max_examples=500)
@given(anything)
@example(Segment((), 5, 3, "token"))
@example(Segment((7,), 1, None, "token"))
def test_sentences_agree_with_the_oracle(s):
    for length in LENGTHS:
        y = s.y(length)
        options = {"source_length": s.x, "reference_length": s.reference, "length": length}
        if y is None:
            with pytest.raises(lagging.UsageError, match="needs reference_length"):
                lagging.dal(s.g, **options)
            continue
        assert_close(lagging.ap(s.g, **options), oracle.ap(s.g, s.x, y))
        assert_close(lagging.al(s.g, unit=s.unit, **options), oracle.al(s.g, s.x, y, s.source_end), s.scale)
        assert_close(lagging.al(s.g, **options), oracle.al(s.g, s.x, y), s.scale)
        assert_close(lagging.al_y(s.g, **options), oracle.al_y(s.g, s.x, y), s.scale)
        assert_close(lagging.dal(s.g, **options), oracle.dal(s.g, s.x, y), s.floor)
        undefined = [None] * len(s.g)
        assert_all_close(lagging.lags(s.g, **options), oracle.lags(s.g, s.x, y) or undefined, s.scale)
        effective = oracle.effective_lags(s.g, s.x, y) or undefined
        assert_all_close(lagging.lags(s.g, effective=True, **options), effective, s.scale)
    options = {"source_length": s.x, "reference_length": s.reference}
    assert_close(lagging.laal(s.g, unit=s.unit, **options), oracle.laal(s.g, s.x, s.reference, s.source_end), s.scale)
    assert_close(lagging.yaal(s.g, unit=s.unit, **options), oracle.yaal(s.g, s.x, s.reference, s.source_end), s.scale)
    assert_close(lagging.cw(s.g), oracle.cw(s.g))
    assert_all_close(lagging.waits(s.g), oracle.waits(s.g))


@settings(max_examples=500)
@given(anything, st.none() | st.integers(0, 5) | st.floats(0, 2000).map(lambda v: round(v, 3)))
def test_the_recurrence_is_the_running_maximum(s, cost):
    options = {"source_length": s.x, "write_cost": cost}
    d = oracle.write_cost(s.g, s.x) if cost is None else cost
    defined = bool(s.g) and s.x > 0
    terms = max(s.scale, Fraction(d or 0) * len(s.g))
    expected = oracle.effective_delays(s.g, d) if defined else [None] * len(s.g)
    assert_all_close(lagging.effective_delays(s.g, **options), expected, terms)
    expected = oracle.effective_lags(s.g, s.x, d=cost) if defined else [None] * len(s.g)
    assert_all_close(lagging.lags(s.g, effective=True, **options), expected, terms)
    assert_close(lagging.dal(s.g, **options), oracle.dal(s.g, s.x, d=cost), terms / 1000)
    if defined:  # the same in exact numbers: eq. 5 is eq. 8
        g, d = [Fraction(v) for v in s.g], Fraction(d)
        running = [t * d + max(g[i] - i * d for i in range(t + 1)) for t in range(len(g))]
        assert oracle.effective_delays(s.g, d) == running


@settings(max_examples=500)
@given(token_segments(), st.none() | st.integers(0, 4) | st.sampled_from([0.25, 0.5, 1.75]), st.sampled_from(LENGTHS))
def test_the_read_over_budget_is_exactly_the_first_maximum(s, cost, length):
    y = s.y(length)
    assume(y is not None)
    got = lagging.over_budget(
        s.g, source_length=s.x, write_cost=cost, reference_length=s.reference, length=length
    ).tolist()
    assert got == oracle.over_budget(s.g, s.x, y, cost)


def test_reads_equally_over_budget_are_equal():
    # where t·|x|/|y| is whole, the read before t may use up the budget to the token; t·(|x|/|y|) in floats is not whole
    checked = 0
    for x in range(1, 81):
        for y in range(2, 81):
            for t in range(1, y):
                whole, rest = divmod(t * x, y)
                if not rest and t * (x / y) != whole:
                    g = [1] * t + [1 + whole] * (y - t)
                    assert lagging.over_budget(g, source_length=x).tolist() == [0] * y
                    assert lagging.dal(g, source_length=x) == 1
                    checked += 1
    assert checked > 10


@given(ms_segments(min_tokens=1), st.none() | st.floats(0, 2000))
def test_the_read_over_budget_is_a_maximum_in_milliseconds(s, cost):
    assume(s.x > 0)
    got = lagging.over_budget(s.g, source_length=s.x, write_cost=cost).tolist()
    d = oracle.write_cost(s.g, s.x) if cost is None else Fraction(cost)
    over = [Fraction(v) - i * d for i, v in enumerate(s.g)]
    assert got == sorted(got)
    for t, i in enumerate(got):
        assert i <= t
        assert max(over[: t + 1]) - over[i] <= TOLERANCE * max(s.scale, d * len(s.g))


@given(many(token_segments()))
def test_kernels_by_token_over_a_run_agree_with_the_oracle(segments):
    segments = [s for s in segments if s.x]
    assume(segments)
    run = run_of(segments)
    x, y = run.source_length, run.delays.lengths.astype(float)
    with np.errstate(divide="ignore"):
        d = x / y
    lag = run.delays.by_token(kernels.lags, x, y)
    effective, places = lag.by_token(kernels.effective_delays, d), lag.by_token(kernels.over_budget)
    for row, s in enumerate(segments):
        assert_all_close(lag[row], oracle.lags(s.g, s.x) or [], s.scale)
        cost = oracle.write_cost(s.g, s.x) or 0
        assert_all_close(effective[row], oracle.effective_delays(s.g, cost), s.scale)
        assert places[row].tolist() == oracle.over_budget(s.g, s.x)
    tau = run.delays.by_row(kernels.cutoff, x)
    assert [t for t in tau if not np.isnan(t)] == [oracle.tau(s.g, s.x) for s in segments if s.g]


# ---- facts ------------------------------------------------------------------------------------------------------


@given(st.integers(1, 300), st.data())
def test_wait_k_has_al_and_dal_of_k(n, data):
    k = data.draw(st.integers(1, n))
    g = policies.wait_k(k).delays(n, n)
    assert lagging.al(g, source_length=n) == k
    assert lagging.dal(g, source_length=n) == k
    scores = lagging.score(
        policies.wait_k(k).run(source_lengths=[n, k, n], target_lengths=[n, k, n]), ["AL", "DAL", "LAAL"]
    )
    assert [score.value for score in scores] == [k, k, k]


@settings(max_examples=500)
@given(something)
def test_dal_is_not_below_al_nor_al_y_nor_the_first_delay(s):
    margin = float(TOLERANCE * s.scale)
    assert lagging.dal(s.g, source_length=s.x) >= s.g[0] - margin
    for length in LENGTHS:
        if s.y(length):
            options = {"source_length": s.x, "reference_length": s.reference, "length": length}
            dal = lagging.dal(s.g, **options)
            assert dal >= 0
            assert dal >= lagging.al_y(s.g, **options) - margin
            assert dal >= lagging.al(s.g, **options) - margin
            assert dal >= lagging.al(s.g, unit="ms", **options) - margin
            exact = oracle.dal(s.g, s.x, s.y(length))
            assert exact >= max(oracle.al(s.g, s.x, s.y(length)), oracle.al_y(s.g, s.x, s.y(length)), s.g[0])


@given(many(ms_segments()))
def test_the_corpus_dal_is_not_below_the_corpus_al(segments):
    run = run_of(segments)
    for length in LENGTHS:
        names = [f"{name}(length={length})" for name in ("AL", "AL_y", "DAL")]
        al, al_y, dal = lagging.score(run, names)
        margin = float(TOLERANCE * max(s.scale for s in segments))
        assert not (al.segments > dal.segments + margin).any()
        assert not (al_y.segments > dal.segments + margin).any()
        assert not al.value > dal.value + margin


@settings(max_examples=400)
@given(something, st.data(), st.none() | st.floats(0, 500))
def test_dal_does_not_fall_when_a_delay_rises(s, data, cost):
    place = data.draw(st.integers(0, len(s.g) - 1))
    ceiling = s.g[place + 1] if place + 1 < len(s.g) else s.g[place] + 2 * s.x
    raised = data.draw(st.just(ceiling) | st.floats(s.g[place], ceiling))
    later = (*s.g[:place], raised, *s.g[place + 1 :])
    options = {"source_length": s.x, "write_cost": cost}
    assert lagging.dal(later, **options) >= lagging.dal(s.g, **options) * (1 - 1e-12)
    assert oracle.dal(later, s.x, d=cost) >= oracle.dal(s.g, s.x, d=cost)


@settings(max_examples=400)
@given(st.integers(1, 60), st.data())
def test_delaying_the_last_read_gains_nothing(x, data):
    y, k = data.draw(st.integers(1, x)), data.draw(st.integers(0, x - 1))
    honest, cheat = policies.wait_k(k).delays(x, y), policies.antagonist(k).delays(x, y)
    assert oracle.dal(cheat.tolist(), x) == oracle.dal(honest.tolist(), x)
    assert lagging.dal(cheat, source_length=x) == pytest.approx(lagging.dal(honest, source_length=x), rel=1e-12)
    assert lagging.al(cheat, source_length=x) <= lagging.al(honest, source_length=x) + 1e-12 * x


def test_delaying_the_last_read_can_gain_if_the_target_is_longer():
    honest, cheat = policies.wait_k(1).delays(3, 6), policies.antagonist(1).delays(3, 6)
    assert cheat.tolist() == [1, 2, 2, 2, 2, 3]
    assert lagging.dal(honest, source_length=3) == 1.75
    assert oracle.dal(cheat.tolist(), 3) == Fraction(17, 12)  # 1.41666…
    assert lagging.dal(cheat, source_length=3) == pytest.approx(17 / 12, rel=1e-12)


@settings(max_examples=400)
@given(token_segments(min_tokens=1).filter(lambda s: s.x > 0), st.floats(0.001, 1000), st.integers(-20, 20))
def test_scaling_time_scales_al_and_dal_but_not_ap(s, factor, power):
    for by, exactly in ((2.0**power, True), (factor, False)):
        g, x = [v * by for v in s.g], s.x * by
        for metric in (lagging.al, lagging.al_y, lagging.dal):
            before, after = metric(s.g, source_length=s.x), metric(g, source_length=x)
            assert after == before * by if exactly else after == pytest.approx(before * by, abs=1e-12 * s.scale * by)
        before, after = lagging.ap(s.g, source_length=s.x), lagging.ap(g, source_length=x)
        assert after == before if exactly else after == pytest.approx(before, rel=1e-12)
        run = lagging.Run.from_delays([g], source_length=[x])
        for name in ("AL", "DAL", "AP"):
            same = getattr(lagging, name.lower())(g, source_length=x)
            assert bits(lagging.score(run, [name])[name].value) == bits(same)


@settings(max_examples=300)
@given(something, st.none() | st.floats(0, 500))
def test_the_gradient_of_dal_by_counts_sums_to_one(s, cost):
    places = lagging.over_budget(s.g, source_length=s.x, write_cost=cost)
    gradient = np.bincount(places, minlength=len(s.g)) / len(s.g)
    assert gradient.sum() == pytest.approx(1, rel=1e-12)
    step = s.x / 2
    moved = lagging.dal([v + step for v in s.g], source_length=s.x, write_cost=cost)
    before = lagging.dal(s.g, source_length=s.x, write_cost=cost)
    assert moved == pytest.approx(before + step, abs=1e-12 * (float(s.scale) + 500 * len(s.g)))


@settings(max_examples=300)
@given(token_segments(min_tokens=1).filter(lambda s: s.x > 0))
def test_the_gradient_of_dal_by_finite_differences_sums_to_one(s):
    g = [v + i * i / 1024 for i, v in enumerate(s.g)]  # takes the reads apart: at a tie there is no gradient
    d = oracle.write_cost(g, s.x)
    over = sorted(Fraction(v) - i * d for i, v in enumerate(g))
    step = 2.0**-16
    assume(all(b - a > 2 * step for a, b in pairwise(over)))
    places = lagging.over_budget(g, source_length=s.x)
    counted = np.bincount(places, minlength=len(g)) / len(g)
    rows = np.array(g) + step * np.eye(len(g))
    x, y = np.full((len(g), 1), float(s.x)), np.full((len(g), 1), float(len(g)))
    differences = (kernels.dal(kernels.lags(rows, x, y)) - lagging.dal(g, source_length=s.x)) / step
    assert differences == pytest.approx(counted, abs=1e-8)
    assert differences.sum() == pytest.approx(1, abs=1e-8)
    exact = [
        oracle.dal([v + (i == j) * Fraction(step) for j, v in enumerate(map(Fraction, g))], s.x) for i in range(len(g))
    ]
    assert sum(exact) - len(g) * oracle.dal(g, s.x) == Fraction(step)


def test_a_write_cost_below_zero_is_refused_everywhere():
    with pytest.raises(lagging.MetricError):
        lagging.dal([1, 2], source_length=2, write_cost=-1)
    with pytest.raises(lagging.MetricError):
        lagging.score(lagging.Run.from_delays([[1, 2]], source_length=[2]), ["DAL(write_cost=-1)"])


# ---- order and partition ----------------------------------------------------------------------------------------

WORDS = ["ja", "nein", "das", "Haus", "ist", "sehr", "klein,", "groß."]
LATENCY = [
    "AP",
    "CW",
    "AL",
    "AL(length=reference)",
    "AL_y",
    "DAL",
    "DAL(mean=token)",
    "DAL(empty=source)",
    "DAL(write_cost=0.37)",
    "LAAL",
    "YAAL",
    "Segments",
    "SourcePerSegment",
    "TargetPerSegment",
    "AL_CA",
    "DAL_CA",
]
QUALITY = ["BLEU", "chrF", "TER"]


@st.composite
def runs_with_text(draw):
    segments = draw(st.lists(ms_segments(max_tokens=8), min_size=2, max_size=12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    words = [" ".join(rng.choice(WORDS, len(s.g))) for s in segments]
    references = [None if s.reference is None else " ".join(rng.choice(WORDS, s.reference)) for s in segments]
    elapsed = [np.maximum.accumulate(np.array(s.g) + rng.uniform(0, 500, len(s.g))).tolist() for s in segments]
    return lagging.Run.from_delays(
        [s.g for s in segments],
        source_length=[s.x for s in segments],
        elapsed=elapsed,
        prediction=words,
        reference=references,
        unit="ms",
        level="word",
    )


def assert_same_scores(one, other, order=slice(None)):
    for a, b in zip(one, other, strict=True):
        assert bits(a.value) == bits(b.value), a.metric
        assert bits(a.segments[order]) == bits(b.segments), a.metric
        assert str(a.signature) == str(b.signature)
        assert sorted(a.undefined.ids) == sorted(b.undefined.ids)


@settings(max_examples=100)
@given(runs_with_text(), st.data())
def test_permuting_segments_changes_no_corpus_value(run, data):
    order = np.array(data.draw(st.permutations(range(len(run)))))
    names = LATENCY + QUALITY
    assert_same_scores(lagging.score(run, names), lagging.score(run[order], names), order)


def test_permuting_segments_does_not_change_the_write_cost_of_the_corpus():
    run = lagging.Run.from_delays([[0.0, 0.15]] * 3, source_length=[0.1, 0.2, 0.3], unit="ms")
    order, names = np.array([2, 1, 0]), ["DAL(write_cost=corpus)"]  # 0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1
    assert_same_scores(lagging.score(run, names), lagging.score(run[order], names), order)


@settings(phases=[Phase.explicit, Phase.generate])  # what fails here has too many digits to be made smaller
@given(st.lists(ms_segments(), min_size=2, max_size=12), st.data())
def test_permuting_segments_changes_no_value_that_depends_on_the_corpus(segments, data):
    run = run_of(segments)
    order = np.array(data.draw(st.permutations(range(len(run)))))
    names = ["DAL(write_cost=corpus)"]
    assert_same_scores(lagging.score(run, names), lagging.score(run[order], names), order)


@settings(max_examples=100)
@given(runs_with_text(), st.data())
def test_scoring_in_parts_is_scoring_the_whole(run, data):
    cuts = sorted(data.draw(st.sets(st.integers(1, len(run) - 1))))
    parts = [run[a:b] for a, b in zip([0, *cuts], [*cuts, len(run)], strict=True)]
    names = [*LATENCY, *QUALITY, "DAL(write_cost=corpus)"]
    whole, in_parts = lagging.score(run, names), lagging.score(iter(parts), names)
    assert_same_scores(whole, in_parts)
    for name in names:
        assert in_parts[name].undefined.reasons == whole[name].undefined.reasons
    without = [*LATENCY, *QUALITY]  # no metric that needs the whole corpus: parts are forgotten as they are scored
    accumulator = Accumulator(Plan.make(without))
    for part in parts:
        accumulator.add(part)
    assert_same_scores(lagging.score(run, without), accumulator.scores())


@settings(max_examples=60)
@given(runs_with_text())
def test_a_segment_alone_has_the_value_it_has_in_its_run(run):
    scores = lagging.score(run, LATENCY)
    for row, alone in enumerate(run.segments()):
        for score in lagging.score(alone, LATENCY):
            assert bits(score.segments[0]) == bits(scores[score.metric].segments[row])


def test_order_and_partition_of_many_long_segments():
    rng = np.random.default_rng(1)
    lengths = rng.integers(0, 400, 3000)
    x = rng.uniform(1000, 60_000, len(lengths))
    flat = lagging.Ragged.from_lengths(rng.uniform(0, 61_000, lengths.sum()), lengths)
    run = lagging.Run.from_delays(flat.by_token(lambda g: np.sort(g, axis=1)), source_length=x, unit="ms")
    names = ["AP", "CW", "AL", "AL_y", "DAL", "DAL(mean=token)", "DAL(write_cost=corpus)", "YAAL", "SourcePerSegment"]
    whole = lagging.score(run, names)
    order = rng.permutation(len(run))
    assert_same_scores(whole, lagging.score(run[order], names), order)
    cuts = [0, 1, 7, 1000, 1001, 2500, 3000]
    assert_same_scores(whole, lagging.score((run[a:b] for a, b in pairwise(cuts)), names))
    for row in range(0, 3000, 500):
        g, options = run.delays[row], {"source_length": x[row]}
        assert bits(whole["DAL"].segments[row]) == bits(lagging.dal(g, **options))
        assert bits(whole["AL"].segments[row]) == bits(lagging.al(g, unit="ms", **options))
        assert_close(whole["DAL"].segments[row], oracle.dal(g.tolist(), x[row]))


# ---- names and signatures ---------------------------------------------------------------------------------------


def values_of(param):
    options = [st.sampled_from(param.choices)] if param.choices else []
    if param.kind is float:
        most = param.most if math.isfinite(param.most) else None
        options.append(st.floats(max(0, param.least), most, allow_nan=False, allow_infinity=False))
    if param.kind is int:
        options.append(st.integers())
    if param.kind is str and not param.choices:
        options.append(st.sampled_from(["13a", "zh", "char", "intl"]))
    if param.default is None:
        options.append(st.none())
    return st.one_of(options)


@cache
def of_delays_alone(m):
    """Whether a metric can be had of a Run that has nothing but delays and lengths."""
    try:
        return m.has("clock") and len(lagging.score(run_of([Segment((1,), 1, 1, "token")]), [m])) == 1
    except lagging.MetricError:
        return False


@st.composite
def metrics(draw, among=lambda m: m.params):
    base = draw(st.sampled_from([m for m in registered() if among(m)]))
    chosen = draw(st.sets(st.sampled_from([p.name for p in base.params])))
    return base(**{name: draw(values_of(base.param(name))) for name in sorted(chosen)})


@settings(max_examples=500)
@given(metrics())
def test_a_metric_parses_back_from_its_repr(m):
    again = lagging.metric(repr(m))
    assert again == m
    assert hash(again) == hash(m)
    assert repr(again) == repr(m)
    assert again.values == m.values
    assert lagging.metric(repr(m).replace("(", " ( ").replace("=", " = ")) == m
    for param in m.params:
        assert again.get(param.name) == m.get(param.name)


def test_most_metrics_need_nothing_but_delays_and_lengths():
    needy = {m.name for m in registered() if m.has("clock")} - {m.name for m in registered() if of_delays_alone(m)}
    assert "RTF" in needy
    assert not needy & {"AP", "CW", "AL", "AL_y", "DAL", "LAAL", "YAAL", "ATD", "LagPercentile", "HiddenShare", "SWF"}


def test_every_registered_metric_parses_back_from_its_name():
    for m in registered():
        assert lagging.metric(m.name) == m
        assert lagging.metric(repr(m)) == m


SYMBOLS = st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="|:", exclude_categories=["Z", "C"])
FIELD = st.text(SYMBOLS, min_size=1, max_size=8)


@settings(max_examples=300)
@given(FIELD, st.lists(st.tuples(FIELD, FIELD), min_size=1, max_size=8, unique_by=lambda pair: pair[0]))
def test_a_signature_parses_back(head, fields):
    signature = lagging.Signature(head, tuple(fields))
    again = lagging.Signature.parse(str(signature))
    assert again == signature
    assert str(again) == str(signature)
    for key, value in fields:
        assert again[key] == again.get(key) == value


@settings(max_examples=300)
@given(metrics(of_delays_alone), many(token_segments(min_tokens=1)))
def test_the_signature_of_a_score_parses_back_and_names_its_metric(m, segments):
    assume(m.get("clock") == "ideal")
    score = lagging.score(run_of(segments), [m])[m]
    again = lagging.Signature.parse(str(score.signature))
    assert again == score.signature
    assert str(again) == str(score.signature)
    assert again["n"] == str(len(segments) - score.undefined)
    assert lagging.metric(again.metric).own_values == m.own_values


@settings(max_examples=100)
@given(runs_with_text(), st.sampled_from(["paper", "simuleval", "omnisteval", "fbk"]))
def test_a_signature_says_how_to_make_the_score_again(run, convention):
    from lagging.scoring.signature import settings as settings_of

    names = ["AP", "AL", "DAL", "LAAL", "YAAL", "AL_CA", "DAL(mean=token)", "CW", "AL(empty=source)"]
    for score in lagging.score(run, names, convention=convention):
        said = settings_of(str(score.signature))
        again = lagging.score(run, [said.metric], convention=said.convention)[said.metric]
        assert bits(again.value) == bits(score.value)
        assert bits(again.segments) == bits(score.segments)
        assert str(again.signature) == str(score.signature)
