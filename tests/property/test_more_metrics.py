# SPDX-License-Identifier: Apache-2.0
"""Clocks, percentiles, offsets and what a mean hides, against the oracle in exact fractions."""

import math
import pickle
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import lagging
import oracle
from lagging.data.ragged import Ragged
from lagging.metrics.clocks import clock, steps
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.plan import Plan
from lagging.scoring.signature import settings as settings_of

TOLERANCE = Fraction(1, 10**12)
LENGTHS = ("hypothesis", "reference", "longest")
PER = {"ms": 60_000, "token": 100}


@dataclass(frozen=True)
class Segment:
    """One segment; `reference` is None where there is none, `spent` is the computing before each token."""

    g: tuple[float, ...]
    x: float
    reference: int | None = None
    unit: str = "token"
    spent: tuple[float, ...] = ()
    durations: tuple[float, ...] = ()
    begin: float = 0.0
    recording: str = "a"

    @property
    def source_end(self):
        return self.x - 1.0 if self.unit == "ms" else self.x

    @property
    def elapsed(self):
        return tuple(g + sum(self.spent[: t + 1]) for t, g in enumerate(self.g))

    @property
    def scale(self):
        """The size of the numbers that lags are differences of."""
        return Fraction(max(map(abs, (self.x, *self.g, *self.elapsed)))) + sum(map(Fraction, self.durations))

    def y(self, length):
        if length == "hypothesis":
            return len(self.g)
        if length == "reference":
            return self.reference
        return max(len(self.g), self.reference or 0)

    def defined(self, length="hypothesis"):
        return bool(self.g and self.x and self.y(length))


# ---- generated cases --------------------------------------------------------------------------------------------


@st.composite
def token_segments(draw, min_tokens=0):
    x = draw(st.one_of(st.just(1), st.integers(0, 14)))
    low, high = draw(st.sampled_from([(0, x), (0, max(0, x - 1)), (0, 2 * x + 3), (x, 2 * x + 3), (0, 0)]))
    g = draw(st.lists(st.integers(low, high), min_size=min_tokens, max_size=12).map(sorted))
    return Segment(tuple(g), x, draw(st.none() | st.integers(0, 16)))


@st.composite
def ms_segments(draw, min_tokens=0, sound=False, low=0.0):
    """Speech: times to the microsecond, and computing that is whole or arbitrary, often none."""
    x = draw(st.one_of(st.floats(10, 60_000).map(lambda v: round(v, 3)), st.integers(10, 60_000).map(float)))
    x = draw(st.sampled_from([x, x, x, 0.0]))
    high = draw(st.sampled_from([x, x / 2, 2 * x + 50]))
    times = st.one_of(st.floats(low, high).map(lambda v: round(v, 3)), st.sampled_from([low, high, max(0.0, x - 1.0)]))
    some = draw(st.lists(times, min_size=1, max_size=6))  # few different ones make chunks
    g = sorted(draw(st.lists(times | st.sampled_from(some), min_size=min_tokens, max_size=8)))
    work = st.one_of(st.just(0.0), st.integers(0, 3000).map(float), st.floats(0, 3000).map(lambda v: round(v, 3)))
    spent = draw(st.lists(work, min_size=len(g), max_size=len(g)))
    lasts = draw(st.lists(work, min_size=len(g), max_size=len(g))) if sound else ()
    return Segment(
        tuple(g),
        x,
        draw(st.none() | st.integers(0, 16)),
        "ms",
        tuple(spent),
        tuple(lasts),
        draw(st.integers(0, 900).map(float)) * 100,
        draw(st.sampled_from("ab")),
    )


def many(segments):
    return st.lists(segments, min_size=1, max_size=5)


anything = st.one_of(many(token_segments()), many(ms_segments()))
spoken = many(ms_segments(sound=True))
cut = many(ms_segments(low=-500.0))


def run_of(segments, **more):
    unit = segments[0].unit
    columns = {} if unit == "token" else {"elapsed": [s.elapsed for s in segments]}
    if any(s.durations for s in segments):
        columns["durations"] = [s.durations for s in segments]
    return lagging.Run.from_delays(
        [s.g for s in segments],
        source_length=[s.x for s in segments],
        reference_length=[math.nan if s.reference is None else s.reference for s in segments],
        unit=unit,
        **columns,
        **more,
    )


def assert_close(got, exact, scale=0):
    """Within 1e-12 of the exact value, or of `scale` where that is larger; NaN where it is undefined."""
    if exact is None:
        assert math.isnan(got)
    else:
        assert abs(Fraction(float(got)) - exact) <= TOLERANCE * max(abs(exact), scale), (float(got), float(exact))


def check(run, metric, exact, scale, corpus="mean", convention="paper"):
    """The segments against exact values (None: undefined), and the corpus against their mean or the value given."""
    score = lagging.score(run, [metric], convention=convention)[metric]
    for value, one in zip(score.segments, exact, strict=True):
        assert_close(value, one, scale)
    defined = [one for one in exact if one is not None]
    if corpus == "mean":
        corpus = sum(defined, Fraction(0)) / len(defined) if defined else None
    assert_close(score.value, corpus, scale)
    assert score.undefined == len(exact) - len(defined)
    assert score.n == len(exact)
    return score


def ratio(pairs):
    """Sum ÷ sum over the segments that have both."""
    known = [pair for pair in pairs if pair is not None]
    below = sum((b for _, b in known), Fraction(0))
    return sum((a for a, _ in known), Fraction(0)) / below if below else None


# ---- clocks -----------------------------------------------------------------------------------------------------

CORRECTED = {"queue": oracle.queued, "omnisteval": oracle.by_omnisteval, "fbk": oracle.by_fbk, "fbk1": oracle.by_fbk}


@settings(max_examples=100)
@given(many(ms_segments()))
def test_every_clock_agrees_with_the_oracle(segments):
    run = run_of(segments)
    for name, exact in CORRECTED.items():
        times = clock(run, name)
        for row, s in enumerate(segments):
            for got, one in zip(times[row], exact(s.g, s.elapsed), strict=True):
                assert_close(got, one, s.scale)


@settings(max_examples=100)
@given(many(ms_segments()), st.data())
def test_the_clock_of_fbk_where_a_recording_is_cut_agrees_with_the_oracle(segments, data):
    """Wherever the segments begin: before their tokens, after them, or between the delay and the time of one."""
    begins = [data.draw(st.lists(st.integers(0, 4000), min_size=len(s.g), max_size=len(s.g))) for s in segments]
    times = clock(run_of(segments), "fbk", Ragged.from_rows(begins))
    for row, (s, begin) in enumerate(zip(segments, begins, strict=True)):
        for got, one in zip(times[row], oracle.by_fbk(s.g, s.elapsed, begin), strict=True):
            assert_close(got, one, s.scale)


@settings(max_examples=100)
@given(many(ms_segments()))
def test_no_clock_is_earlier_than_the_delay(segments):
    run = run_of(segments)
    for name in CORRECTED:
        assert (clock(run, name).values >= run.delays.values).all()


@settings(max_examples=100)
@given(many(ms_segments()))
def test_a_queue_lies_between_ideal_and_elapsed(segments):
    run = run_of(segments)
    queue, scale = clock(run, "queue").values, float(max(s.scale for s in segments))
    assert (queue >= run.delays.values).all()
    assert (queue <= run.elapsed.values + 1e-12 * scale).all()
    late = clock(run, "queue")
    assert not len(late.falls())
    for s in segments:  # and so it does in exact numbers
        spent = [sum(map(Fraction, s.spent[: t + 1]), Fraction(0)) for t in range(len(s.g))]
        elapsed = [Fraction(g) + so_far for g, so_far in zip(s.g, spent, strict=True)]
        exact = oracle.queued(s.g, elapsed)
        assert all(a <= b <= c for a, b, c in zip(s.g, exact, elapsed, strict=True))
        assert exact == sorted(exact)


@settings(max_examples=100)
@given(many(ms_segments()), st.data())
def test_steps_that_a_log_has_are_the_recurrence(segments, data):
    """Here computing times are given, and tokens belong to steps, of which some write nothing."""
    silent = [s for s in segments if s.g]
    assume(silent)
    belongs = [sorted(data.draw(st.lists(st.integers(0, len(s.g) - 1), max_size=6))) for s in silent]
    run = lagging.Run.from_delays(
        [[s.g[i] for i in of] for s, of in zip(silent, belongs, strict=True)],
        source_length=[s.x for s in silent],
        unit="ms",
        arrivals=[s.g for s in silent],
        compute=[s.spent for s in silent],
        steps=belongs,
    )
    times = clock(run, "queue")
    for row, (s, of) in enumerate(zip(silent, belongs, strict=True)):
        done = oracle.finishes(s.g, s.spent)
        total = [sum(map(Fraction, s.spent[: i + 1]), Fraction(0)) for i in range(len(s.g))]
        running = [
            total[i] + max(Fraction(s.g[j]) - total[j] + Fraction(s.spent[j]) for j in range(i + 1))
            for i in range(len(s.g))
        ]
        assert running == done  # the recurrence is the running maximum
        for got, i in zip(times[row], of, strict=True):
            assert_close(got, done[i], s.scale + total[-1])
    pairs = [(sum(map(Fraction, s.spent), Fraction(0)), Fraction(s.x)) if s.x else None for s in silent]
    scale = max(a / b if b else Fraction(0) for a, b in (pair or (0, 1) for pair in pairs))
    check(run, "RTF", [pair and pair[0] / pair[1] for pair in pairs], scale, ratio(pairs))


@settings(max_examples=100)
@given(many(ms_segments()))
def test_rtf_from_elapsed_times_is_all_that_was_spent(segments):
    run = run_of(segments)
    pairs = [(Fraction(s.elapsed[-1]) - Fraction(s.g[-1]), Fraction(s.x)) if s.g and s.x else None for s in segments]
    scale = max((s.scale / Fraction(s.x) for s in segments if s.x), default=0)
    check(run, "RTF", [pair and pair[0] / pair[1] for pair in pairs], scale, ratio(pairs))
    last = [Fraction(s.g[-1]) / Fraction(s.x) if s.g and s.x else None for s in segments]
    check(run, "RTF", last, 0, convention="simuleval")


@settings(max_examples=50)
@given(many(ms_segments()), st.sampled_from(["queue", "omnisteval"]))
def test_a_metric_on_a_clock_is_the_metric_of_its_times(segments, name):
    run = run_of(segments)
    plain = ["AL_y", "DAL", "StartOffset", "EndOffset", "MaxLag", "LagPercentile(p=75)", "Offline", "SWF", "NumChunks"]
    times = clock(run, name)
    assume(not len(times.falls()))  # by rounding
    alone = lagging.Run.from_delays(times, source_length=run.source_length, unit="ms")
    on_clock = lagging.score(run, [lagging.metric(m)(clock=name) for m in plain])
    for one, other in zip(on_clock, lagging.score(alone, plain), strict=True):
        assert one.segments.tobytes() == other.segments.tobytes()


# ---- percentiles, and the largest -------------------------------------------------------------------------------

percents = st.one_of(st.sampled_from([0, 50, 90, 99, 100]), st.floats(0, 100).map(lambda v: round(v, 2)))


@settings(max_examples=100)
@given(anything, percents, st.booleans(), st.sampled_from(LENGTHS))
def test_percentiles_agree_with_the_oracle(segments, p, effective, length):
    lags = oracle.effective_lags if effective else oracle.lags
    each = [lags(s.g, s.x, s.y(length)) if s.defined(length) else None for s in segments]
    scale = max(s.scale for s in segments)
    pooled = [lag for row in each if row is not None for lag in row]
    exact = [None if row is None else oracle.percentile(row, p) for row in each]
    metric = f"LagPercentile(p={p}, effective={effective}, length={length})"
    check(run_of(segments), metric, exact, scale, oracle.percentile(pooled, p))
    largest = [None if row is None else max(row) for row in each]
    known = [lag for lag in largest if lag is not None]
    check(run_of(segments), f"MaxLag(length={length})", largest, scale, max(known, default=None))


@settings(max_examples=100)
@given(anything, percents)
def test_the_percentile_of_the_corpus_is_numpys_of_all_tokens(segments, p):
    every = [lagging.lags(s.g, source_length=s.x) for s in segments if s.defined()]
    assume(every)
    metric = f"LagPercentile(p={p})"
    assert lagging.score(run_of(segments), [metric])[metric].value == np.percentile(np.concatenate(every), p)


# ---- drift ------------------------------------------------------------------------------------------------------


def drift_scale(segments, length):
    """What rounding of the lags does to a slope: their size over the time between two tokens."""
    sizes = [s.scale * s.y(length) / Fraction(s.x) for s in segments if s.defined(length)]
    return PER[segments[0].unit] * max(sizes, default=Fraction(0)) * 100


@settings(max_examples=100)
@given(anything, st.booleans(), st.sampled_from(LENGTHS))
def test_drift_agrees_with_the_oracle(segments, effective, length):
    several = [s if s.defined(length) and len(s.g) > 1 else None for s in segments]
    points = [s and oracle.points(s.g, s.x, s.y(length), effective=effective) for s in several]
    per = PER[segments[0].unit]
    exact = [p and per * oracle.slope([p]) for p in points]
    pooled = oracle.slope([p for p in points if p])
    metric = f"LagDrift(effective={effective}, length={length})"
    check(run_of(segments), metric, exact, drift_scale(segments, length), None if pooled is None else per * pooled)


@settings(max_examples=100)
@given(cut, st.booleans())
def test_drift_of_recordings_agrees_with_the_oracle(segments, by_end):
    several = [s if s.defined() and len(s.g) > 1 else None for s in segments]
    points = [s and oracle.points(s.g, s.x, begin=s.begin) for s in several]
    recordings = {s.recording: [] for s in segments}
    for s, p in zip(segments, points, strict=True):
        recordings[s.recording] += p or []
    pooled = oracle.slope(list(recordings.values()))
    place = {"offset": [s.begin for s in segments]}
    if by_end:
        place = {"recording_end": [1e6 - s.begin for s in segments]}
    run = run_of(segments, seg="given", document=[s.recording for s in segments], **place)
    exact = [p and 60_000 * oracle.slope([p]) for p in points]
    scale = drift_scale(segments, "hypothesis")
    check(run, "LagDrift", exact, scale * 100, None if pooled is None else 60_000 * pooled)


# ---- offsets ----------------------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(anything)
@example([Segment((), 5), Segment((2, 2), 0), Segment((7,), 3)])
def test_offsets_agree_with_the_oracle(segments):
    run, scale = run_of(segments), max(s.scale for s in segments)
    known = [s if s.g and s.x else None for s in segments]
    check(run, "StartOffset", [s and Fraction(s.g[0]) for s in known], 0)
    check(run, "EndOffset", [s and Fraction(s.g[-1]) - Fraction(s.x) for s in known], scale)
    check(run, "NumChunks", [s and Fraction(len(set(s.g))) for s in known], 0)
    check(run, "NumChunks(of=tokens)", [s and Fraction(len(s.g)) for s in known], 0)
    charged = [None if not s.x else Fraction(s.g[0] if s.g else s.x) for s in segments]
    check(run, "StartOffset(empty=source)", charged, 0)
    weighted = ratio([s and (Fraction(s.g[0]) * len(s.g), Fraction(len(s.g))) for s in known])
    check(run, "StartOffset(mean=token)", [s and Fraction(s.g[0]) for s in known], 0, weighted)


@settings(max_examples=100)
@given(spoken)
def test_speech_agrees_with_the_oracle(segments):
    assume(any(s.durations for s in segments))
    run, scale = run_of(segments), max(s.scale for s in segments)
    known = [s if s.g and s.x else None for s in segments]
    gaps = [s and oracle.silences(s.g, s.durations) for s in known]
    assume(not any(0 < gap < Fraction(1, 10**5) for row in gaps for gap in row or ()))  # shorter than 10 ns
    ends = [s and oracle.played(s.g, s.durations)[-1][1] - Fraction(s.x) for s in known]
    check(run, "EndOffset", ends, scale)
    check(run, "DiscontinuityNum", [None if row is None else Fraction(len(row)) for row in gaps], 0)
    check(run, "DiscontinuitySum", [None if row is None else sum(row, Fraction(0)) for row in gaps], scale)
    means = [None if row is None else sum(row, Fraction(0)) / max(len(row), 1) for row in gaps]
    check(run, "DiscontinuityAve", means, scale)
    check(run, "NumChunks", [s and Fraction(len(s.g)) for s in known], 0)


# ---- what a mean hides ------------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(anything, st.sampled_from(LENGTHS))
@example([Segment((4, 4, 4, 4, 5), 5, 5), Segment((0, 0, 5), 5, None)], "hypothesis")
def test_hidden_lag_agrees_with_the_oracle(segments, length):
    run, scale = run_of(segments), max(s.scale for s in segments)
    parts = [oracle.hidden(s.g, s.x, s.y(length), s.source_end) if s.defined(length) else None for s in segments]
    dal = [oracle.dal(s.g, s.x, s.y(length)) if s.defined(length) else None for s in segments]
    assume(not any(d and 0 < d < scale / 1000 for d in dal))  # of a share of next to nothing no digit can be had
    al = [oracle.al(s.g, s.x, s.y(length), s.source_end) if s.defined(length) else None for s in segments]
    for part, d, a in zip(parts, dal, al, strict=True):
        assert part is None or (part[0] + part[1] == d - a and part[0] >= 0 and part[1] >= 0)
    choose = {"all": sum, "writes": lambda part: part[0], "tail": lambda part: part[1]}
    for where, chosen in choose.items():
        exact = [None if part is None else chosen(part) for part in parts]
        score = check(run, f"HiddenLag(where={where}, length={length})", exact, scale)
        assert not (score.segments < -1e-12 * float(scale)).any()
        pairs = [(one, d) if d else None for one, d in zip(exact, dal, strict=True)]
        shares = [pair and pair[0] / pair[1] for pair in pairs]
        check(run, f"HiddenShare(where={where}, length={length})", shares, 1000, ratio(pairs))


@settings(max_examples=100)
@given(anything, st.sampled_from(LENGTHS))
def test_free_writes_and_tail_add_up_to_dal_less_al(segments, length):
    names = [
        "HiddenLag(where=writes",
        "HiddenLag(where=tail",
        "HiddenLag(where=all",
        "DAL(mean=segment",
        "AL(mean=segment",
    ]
    scores = lagging.score(run_of(segments), [f"{name}, length={length})" for name in names])
    writes, tail, hidden, dal, al = (np.array([score.value, *score.segments]) for score in scores)
    scale = float(max(s.scale for s in segments))
    assert writes + tail == pytest.approx(hidden, abs=1e-12 * scale, nan_ok=True)
    assert dal - al == pytest.approx(hidden, abs=1e-12 * scale, nan_ok=True)
    assert not (hidden < -1e-12 * scale).any()


def check_degeneracy(segments, convention):
    run = run_of(segments)
    exact = convention == "omnisteval"
    known = [s if s.g and s.x else None for s in segments]

    def source_end(s):
        return s.x if exact else s.source_end

    def reference(s):
        # an empty reference is none; OmniSTEval's 0 is 0, which is never the longer
        return s.reference or None

    offline = [s and Fraction(Fraction(s.g[0]) >= Fraction(source_end(s))) for s in known]
    check(run, "Offline", offline, 0, convention=convention)
    swf = [s and (Fraction(100 * oracle.simultaneous(s.g, source_end(s))), Fraction(len(s.g))) for s in known]
    check(run, "SWF", [pair and pair[0] / pair[1] for pair in swf], 0, ratio(swf), convention)
    efsw = []
    for s in known:
        left = s and oracle.expected_simultaneous(s.g, s.x, reference(s), source_end(s))
        efsw.append(None if left is None else (100 * left, Fraction(s.x)))
    scale = 100 * max((s.scale / Fraction(s.x) for s in segments if s.x), default=Fraction(0))
    check(run, "EFSW", [pair and pair[0] / pair[1] for pair in efsw], scale, ratio(efsw), convention)
    differences = [None if a is None else a[0] / a[1] - b[0] / b[1] for a, b in zip(efsw, swf, strict=True)]
    corpus = None if ratio(efsw) is None else ratio(efsw) - ratio(swf)
    check(run, "DSPTV", differences, max(scale, 100), corpus, convention)


@settings(max_examples=100)
@given(anything)
def test_degeneracy_agrees_with_the_oracle(segments):
    check_degeneracy(segments, "paper")


@settings(max_examples=100)
@given(anything)
def test_omnistevals_degeneracy_agrees_with_the_oracle(segments):
    check_degeneracy(segments, "omnisteval")


@settings(max_examples=100)
@given(cut, st.data())
def test_long_yaal_agrees_with_the_oracle(segments, data):
    ends = [data.draw(st.sampled_from([s.x, s.x / 2, 3 * s.x + 9, 0.0, math.nan])) for s in segments]
    run = run_of(segments, seg="given", recording_end=ends)
    exact = [
        oracle.yaal(s.g, s.x, s.reference or None, end) if s.g and s.x and not math.isnan(end) else None
        for s, end in zip(segments, ends, strict=True)
    ]
    check(run, "LongYAAL", exact, max(s.scale for s in segments))


# ---- facts ------------------------------------------------------------------------------------------------------

TIMES = ["StartOffset", "EndOffset", "MaxLag", "LagPercentile(p=75)", "HiddenLag", "HiddenLag(where=tail)"]
NUMBERS = ["NumChunks", "HiddenShare", "Offline", "SWF", "EFSW", "DSPTV", "LagDrift"]


@settings(max_examples=100)
@given(many(token_segments()), st.integers(-8, 8))
def test_scaling_time_scales_times_and_nothing_else(segments, power):
    by = 2.0**power
    scaled = [Segment(tuple(v * by for v in s.g), s.x * by, s.reference) for s in segments]
    before, after = (lagging.score(run_of(some), TIMES + NUMBERS) for some in (segments, scaled))
    for one, other in zip(before, after, strict=True):
        factor = by if repr(one.metric) in TIMES else 1
        assert (one.segments * factor).tobytes() == other.segments.tobytes(), one.metric
        assert other.value == pytest.approx(one.value * factor, rel=1e-12, abs=1e-12, nan_ok=True)


@settings(max_examples=100)
@given(spoken, st.integers(-4, 4))
def test_scaling_time_scales_speech(segments, power):
    assume(any(s.durations for s in segments))
    by = 2.0**power
    names = ["DiscontinuitySum(clock=queue)", "DiscontinuityAve(clock=elapsed)", "EndOffset(clock=queue)", "RTF"]
    several = [
        Segment(
            tuple(v * f for v in s.g),
            s.x * f,
            None,
            "ms",
            tuple(v * f for v in s.spent),
            tuple(v * f for v in s.durations),
        )
        for f in (1.0, by)
        for s in segments
    ]
    before, after = (
        lagging.score(run_of(some), names) for some in (several[: len(segments)], several[len(segments) :])
    )
    scale = float(max(s.scale for s in several))
    for one, other in zip(before, after, strict=True):
        factor = 1 if repr(one.metric) == "RTF" else by
        close = pytest.approx(one.segments * factor, abs=1e-6 if factor != 1 else 1e-9 * scale, rel=1e-9, nan_ok=True)
        assert other.segments == close, one.metric


@settings(max_examples=40)
@given(many(ms_segments()), st.data())
def test_order_parts_signatures_and_pickles_change_nothing(segments, data):
    run = run_of(segments)
    names = [*TIMES, *NUMBERS, "RTF", "HiddenShare(clock=queue)", "LagPercentile(clock=fbk, effective=True)"]
    names += ["Offline(mean=token, empty=source)", "MaxLag(clock=omnisteval, length=longest)", "EFSW(empty=source)"]
    whole = lagging.score(run, names)
    order = np.array(data.draw(st.permutations(range(len(run)))))
    # LagDrift keeps everything until the end
    accumulator = Accumulator(Plan.make([name for name in names if name != "LagDrift"]))
    for part in run.segments():
        accumulator.add(part)
    in_parts = {score.metric: score for score in accumulator.scores()}
    for moved in lagging.score(run[order], names):
        score = whole[moved.metric]
        assert score.segments[order].tobytes() == moved.segments.tobytes()
        assert np.array(score.value).tobytes() == np.array(moved.value).tobytes(), score.metric
        part = in_parts.get(score.metric, lagging.score(iter(run.segments()), [score.metric])[score.metric])
        said = settings_of(str(score.signature))
        again = lagging.score(run, [said.metric], convention=said.convention)[said.metric]
        for other in (part, again, pickle.loads(pickle.dumps(score))):
            assert score.segments.tobytes() == other.segments.tobytes()
            assert np.array(score.value).tobytes() == np.array(other.value).tobytes()
            assert str(score.signature) == str(other.signature)
            assert score.undefined.reasons == other.undefined.reasons


@settings(max_examples=100)
@given(many(ms_segments()))
def test_what_was_computed_is_what_elapsed_times_grew_by(segments):
    arrivals, compute = steps(run_of(segments))
    assert arrivals == run_of(segments).delays
    assert (compute.values >= 0).all()
    for s, row in zip(segments, compute, strict=True):
        for got, spent in zip(row, s.spent, strict=True):
            assert abs(got - spent) <= 1e-12 * s.scale
