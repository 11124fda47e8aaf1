# SPDX-License-Identifier: Apache-2.0
"""Metrics of segments cut from a stream, against the oracle in exact fractions."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lagging
import oracle

SCALES = (0, 0.5, 0.95, 1, 1.25)
LENGTHS = ("hypothesis", "reference", "longest")
CLOCKS = ("ideal", "elapsed", "queue")


@dataclass(frozen=True)
class Segment:
    """One segment; `begin` is where it begins in its recording, `late` how much later the queue has each token."""

    g: tuple[float, ...]
    late: tuple[float, ...]
    x: float
    begin: float
    recording: str
    reference: int | None
    unit: str

    def y(self, length):
        written, referred = len(self.g), self.reference or 0
        return {"hypothesis": written, "reference": referred, "longest": max(written, referred)}[length]

    def times(self, clock):
        """On the elapsed clock, twice as late as on the queue's."""
        by = {"ideal": 0, "queue": 1, "elapsed": 2}[clock]
        return [g + by * late for g, late in zip(self.g, self.late, strict=True)]

    @property
    def scale(self):
        """The size of the numbers that lags are differences of."""
        return Fraction(max(map(abs, (0.0, *self.times("elapsed"))))) + Fraction(self.x) + abs(Fraction(self.begin))


@st.composite
def streams(draw, distinct=False):
    """Some segments in any order; in some, words come before it begins and after it ends, or there are none."""
    unit = draw(st.sampled_from(["token", "ms"]))
    one = 1.0 if unit == "token" else 250.125
    n = draw(st.integers(1, 6))
    begins = draw(st.lists(st.integers(0, 40), min_size=n, max_size=n, unique=distinct))
    out = []
    for begin in begins:
        x = draw(st.sampled_from([0, 1, 3, 5, 8]))
        g = sorted(draw(st.lists(st.integers(-4, x + 4), max_size=7)))
        late = sorted(draw(st.lists(st.integers(0, 9), min_size=len(g), max_size=len(g))))
        g, late = (tuple(v * one for v in values) for values in (g, late))
        reference = draw(st.none() | st.integers(0, 9))
        out.append(Segment(g, late, x * one, begin * one, draw(st.sampled_from("ab")), reference, unit))
    return out


def run_of(segments, **more):
    columns = {"offset": [s.begin for s in segments], "document": [s.recording for s in segments], "seg": "given"}
    if segments[0].unit == "ms":
        columns |= {"elapsed": [s.times("elapsed") for s in segments]}
        columns |= {"queue_times": [s.times("queue") for s in segments]}
    return lagging.Run.from_delays(
        [s.g for s in segments],
        source_length=[s.x for s in segments],
        reference_length=[math.nan if s.reference is None else s.reference for s in segments],
        unit=segments[0].unit,
        **columns | more,
    )


def of(run, metric):
    return lagging.score(run, [metric])[metric]


def assert_close(got, exact, scale):
    if exact is None:
        assert math.isnan(got)
    else:
        assert abs(Fraction(float(got)) - exact) <= Fraction(scale) / 10**12, (float(got), float(exact))


def check(score, exact, scale, corpus="mean"):
    """Segments and corpus against exact values; None is undefined."""
    for value, one in zip(score.segments, exact, strict=True):
        assert_close(value, one, scale)
    known = [one for one in exact if one is not None]
    if corpus == "mean":
        corpus = sum(known, Fraction(0)) / len(known) if known else None
    assert_close(score.value, corpus, scale)
    assert score.undefined == len(exact) - len(known)


def clocks_of(segments):
    return CLOCKS if segments[0].unit == "ms" else CLOCKS[:1]


def in_recordings(segments):
    """Rows of each recording, in the order of time; of two that begin together, the first comes first."""
    for name in sorted({s.recording for s in segments}):
        yield sorted((row for row, s in enumerate(segments) if s.recording == name), key=lambda r: segments[r].begin)


# ---- StreamLAAL ---------------------------------------------------------------------------------------------------


@given(streams(), st.sampled_from([1, 2]))
def test_stream_laal_agrees_with_the_oracle(segments, version):
    run, scale = run_of(segments), max(s.scale for s in segments)
    for clock in clocks_of(segments):
        source_end = [s.x - 1 if s.unit == "ms" else s.x for s in segments]
        exact = [
            oracle.stream_laal(s.times(clock), s.x, s.reference, version, r)
            for s, r in zip(segments, source_end, strict=True)
        ]
        check(of(run, f"StreamLAAL(version={version}, clock={clock})"), exact, scale)


@given(streams())
def test_versions_of_stream_laal(segments):
    run = run_of(segments)
    first, second, laal = lagging.score(run, ["StreamLAAL_v1", "StreamLAAL_v2", "LAAL"])
    assert first.segments.tobytes() == laal.segments.tobytes()
    early = np.array([bool(s.g) and s.g[0] < 0 for s in segments])
    assert (second.segments >= first.segments)[early & ~np.isnan(first.segments)].all()
    assert second.segments[~early].tobytes() == first.segments[~early].tobytes()


# ---- waits --------------------------------------------------------------------------------------------------------


@given(streams())
def test_cw_of_segments_that_begin_with_early_words_agrees_with_the_oracle(segments):
    """Elapsed times may fall along a row, as simulstream's do; delays may be negative."""
    scale = max(s.scale for s in segments)
    falling = {"elapsed": [s.times("elapsed")[::-1] for s in segments]} if segments[0].unit == "ms" else {}
    columns = {"compute": [[]] * len(segments), "arrivals": [[]] * len(segments)} if falling else {}
    run = run_of(segments, **falling, **columns)
    for clock in clocks_of(segments):
        times = [s.times(clock)[:: -1 if clock == "elapsed" else 1] for s in segments]
        exact = [oracle.cw(g) if s.x else None for s, g in zip(segments, times, strict=True)]
        check(of(run, f"CW(clock={clock})"), exact, scale)
        runs = [oracle.segments(g) if one is not None else 0 for g, one in zip(times, exact, strict=True)]
        read = sum((one * n for one, n in zip(exact, runs, strict=True) if n), Fraction(0))
        mean = read / sum(runs) if sum(runs) else None
        assert_close(of(run, f"SourcePerSegment(clock={clock})").value, mean, scale)


# ---- StreamDAL ----------------------------------------------------------------------------------------------------


@given(streams(), st.sampled_from(SCALES), st.sampled_from(LENGTHS))
def test_stream_dal_agrees_with_the_oracle(segments, scale, length):
    run, size = run_of(segments), 20 * sum(s.scale for s in segments)
    for clock in clocks_of(segments):
        exact = [None] * len(segments)
        for rows in in_recordings(segments):
            given = [(s.begin, s.times(clock), s.x, s.y(length)) for s in (segments[row] for row in rows)]
            for row, value in zip(rows, oracle.stream_dal(given, scale), strict=True):
                missing = length == "reference" and not segments[row].reference
                exact[row] = None if missing else value
        check(of(run, f"StreamDAL(scale={scale}, length={length}, clock={clock})"), exact, size)


@given(streams(), st.sampled_from(SCALES))
def test_of_a_segment_alone_stream_dal_is_dal(segments, scale):
    alone = [replace(s, recording=str(row)) for row, s in enumerate(segments)]
    run, size = run_of(alone), float(20 * sum(s.scale for s in segments))
    one, dal = of(run, "StreamDAL(scale=1)"), of(run, "DAL")
    assert one.segments == pytest.approx(dal.segments, abs=1e-12 * size, nan_ok=True)
    scaled = of(run, f"StreamDAL(scale={scale})")
    for row, s in enumerate(segments):
        if s.g and s.x:  # by the formula, with g' of another d
            d = oracle.write_cost(s.g, s.x)
            paid = oracle.effective_delays(s.g, Fraction(scale) * d)
            exact = sum((time - i * d for i, time in enumerate(paid)), Fraction(0)) / len(paid)
            assert_close(scaled.segments[row], exact, size)


@given(streams())
def test_what_is_carried_is_never_less(segments):
    run, size = run_of(segments), float(20 * sum(s.scale for s in segments))
    by_scale = [of(run, f"StreamDAL(scale={scale})").segments for scale in SCALES]
    for lower, higher in pairwise(by_scale):
        assert ((higher >= lower - 1e-12 * size) | np.isnan(lower)).all()
    assert ((by_scale[3] >= of(run, "DAL").segments - 1e-12 * size) | np.isnan(by_scale[3])).all()
    assert ((by_scale[0] >= of(run, "AL_y").segments - 1e-12 * size) | np.isnan(by_scale[0])).all()


@settings(max_examples=100)
@given(streams(distinct=True), st.data())
def test_neither_order_nor_the_beginning_of_time_changes_stream_dal(segments, data):
    run, size = run_of(segments), float(20 * sum(s.scale for s in segments))
    metrics = ["StreamDAL", "StreamDAL(scale=1, mean=token)"]
    whole = lagging.score(run, metrics)
    order = np.array(data.draw(st.permutations(range(len(run)))))
    ends = [1e4 - s.begin for s in segments]
    by_end = run_of(segments, offset=None, recording_end=ends)
    later = run_of(segments, offset=[s.begin + 1e4 for s in segments])
    for score in whole:
        (moved,) = lagging.score(run[order], [score.metric])
        assert score.segments[order].tobytes() == moved.segments.tobytes()
        assert np.array(score.value).tobytes() == np.array(moved.value).tobytes()
        for other in (by_end, later):
            (same,) = lagging.score(other, [score.metric])
            assert same.segments == pytest.approx(score.segments, abs=1e-12 * (size + 1e6), nan_ok=True)
        (in_parts,) = lagging.score(run.segments(), [score.metric])
        assert in_parts.segments.tobytes() == score.segments.tobytes()


# ---- StreamDrift --------------------------------------------------------------------------------------------------


@given(streams(), st.sampled_from(LENGTHS))
def test_stream_drift_agrees_with_the_oracle(segments, length):
    points, exact = [], [None] * len(segments)
    per = {"ms": 60_000, "token": 100}[segments[0].unit]
    for rows in in_recordings(segments):
        known = [(row, oracle.al_y(segments[row].g, segments[row].x, segments[row].y(length))) for row in rows]
        known = [(row, lag) for row, lag in known if lag is not None]
        points.append([(Fraction(segments[row].begin), lag) for row, lag in known])
        slope = oracle.slope(points[-1:])
        for row, _ in known:
            exact[row] = None if slope is None else per * slope
    pooled = oracle.slope(points)
    scale = 10 * per * sum(s.scale for s in segments)
    check(of(run_of(segments), f"StreamDrift(length={length})"), exact, scale, None if pooled is None else per * pooled)


# ---- LongYAAL -----------------------------------------------------------------------------------------------------


@given(streams())
def test_long_yaal_up_to_the_end_of_the_segment_agrees_with_the_oracle(segments):
    run, scale = run_of(segments), max(s.scale for s in segments)
    exact = [oracle.yaal(s.g, s.x, s.reference, s.x) for s in segments]
    check(of(run, "LongYAAL(end=segment)"), exact, scale)
