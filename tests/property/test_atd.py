# SPDX-License-Identifier: Apache-2.0
"""ATD in a fixed number of passes against ATD token by token, in exact fractions."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import lagging
import oracle

SPEECH = ("s2t", "s2s")


@dataclass(frozen=True)
class Case:
    """One segment: delays, and where there are any, elapsed times and durations."""

    kind: str
    g: tuple[float, ...]
    elapsed: tuple[float, ...] = ()
    durations: tuple[float, ...] = ()

    def exact(self, times=None, piece=300):
        sound = self.durations if self.kind == "s2s" else None
        return oracle.atd(self.g, speech=self.kind in SPEECH, times=times, durations=sound, piece=piece)

    @property
    def scale(self):
        """The size of the numbers that delays are differences of."""
        sizes = map(abs, (*self.g, *self.elapsed))
        return Fraction(max(sizes, default=0)) + sum(map(Fraction, self.durations)) + len(self.g)


def ms(most):
    """Times as logs have them: whole, to the microsecond, multiples of a step, any; and what seconds are rounded to."""
    steps = st.sampled_from([300, 320, 600, 1000, 7.5])
    return st.one_of(
        st.integers(0, most).map(float),
        st.floats(0, most).map(lambda v: round(v, 3)),
        st.builds(lambda step, n: step * n, steps, st.integers(0, most // 300)),
        st.builds(lambda n: 0.6 * n * 1000, st.integers(0, most // 600)),
        st.floats(0, most),
    )


@st.composite
def cases(draw, kind, max_tokens=14, low=0):
    if kind == "text":
        g = draw(st.lists(st.integers(low, draw(st.sampled_from([3, 12, 40]))), max_size=max_tokens).map(sorted))
        return Case(kind, tuple(map(float, g)))
    most = draw(st.sampled_from([900, 6000, 60_000]))
    # few different delays make chunks of several tokens
    some = draw(st.lists(ms(most) if low == 0 else ms(most).map(lambda v: v - 500), min_size=1, max_size=6))
    g = sorted(draw(st.lists(st.sampled_from(some), max_size=max_tokens)))
    spent = sorted(draw(st.lists(st.floats(0, 3000), min_size=len(g), max_size=len(g))))
    if draw(st.booleans()):  # what is written in one step has one elapsed time
        spent = [spent[g.index(v)] for v in g]
    elapsed = tuple(a + b for a, b in zip(g, spent, strict=True))
    lasts = st.one_of(st.sampled_from([0.0, 100.0, 300.0, 400.0, 600.0, 1234.5]), st.floats(0, 2000))
    durations = draw(st.lists(lasts, min_size=len(g), max_size=len(g))) if kind == "s2s" else ()
    return Case(kind, tuple(g), elapsed, tuple(durations))


def many(*kinds, low=0):
    return st.sampled_from(kinds or ("text", *SPEECH)).flatmap(
        lambda kind: st.lists(cases(kind, low=low), min_size=1, max_size=6)
    )


def run_of(several, seg="none"):
    kind = several[0].kind
    columns = {}
    if kind in SPEECH:
        columns["elapsed"] = [c.elapsed for c in several]
    if kind == "s2s":
        columns["durations"] = [c.durations for c in several]
    return lagging.Run.from_delays(
        [c.g for c in several],
        source_length=[max(1.0, *c.g, 1.0) for c in several],
        unit="ms" if kind in SPEECH else "token",
        seg=seg,
        **columns,
    )


def assert_close(got, exact, scale):
    if exact is None:
        assert math.isnan(got)
    else:
        assert abs(Fraction(float(got)) - exact) <= Fraction(1, 10**12) * max(abs(exact), scale), (got, float(exact))


def check(several, metric, times=lambda c: None, piece=300, seg="none"):
    score = lagging.score(run_of(several, seg), [metric])[metric]
    for got, c in zip(score.segments, several, strict=True):
        assert_close(got, c.exact(times(c), piece), c.scale)


# ---- Runs against the oracle --------------------------------------------------------------------------------------


@given(many())
@example([Case("text", (3, 4, 4, 4)), Case("text", ()), Case("text", (0, 0, 2))])
@example([Case("s2t", (600.0, 1200.0, 1799.9999999999998, 2400.0), (0,) * 4)])
@example([Case("s2s", (0.0, 500.0, 500.0, 900.0), (0,) * 4, (200.0, 0.0, 0.0, 700.0))])
@example([Case("s2s", (500.0,), (0,), (0.0,))])
@example([Case("s2s", (0.0, 1.0, 2.0), (0,) * 3, (100.0, 6e-8, 100.0))])
@example([Case("s2t", (1.2e-7, 301.0), (0,) * 2)])
@example([Case("s2t", (0.0, 0.6 * 24 * 1000, 14400.0), (0,) * 3)])
@example([Case("s2s", (0.6 * 24 * 1000, 14400.0), (0,) * 2, (200.0, 200.0))])
def test_runs_agree_with_the_oracle(several):
    check(several, "ATD")


@settings(max_examples=100)
@given(many(low=-5))
def test_negative_delays_agree_with_the_oracle(several):
    check(several, "ATD", seg="given")


@settings(max_examples=100)
@given(many(*SPEECH), st.sampled_from([25, 299.5, 1000]))
def test_other_lengths_of_a_token_agree_with_the_oracle(several, piece):
    check(several, f"ATD(piece={piece})", piece=piece)


@settings(max_examples=100)
@given(many(*SPEECH))
def test_elapsed_times_agree_with_the_oracle(several):
    check(several, "ATD(clock=elapsed)", lambda c: c.elapsed)


@settings(max_examples=100)
@given(many(*SPEECH))
def test_computing_while_listening_agrees_with_the_oracle(several):
    assume(all(any(c.elapsed) or not any(c.g) for c in several))  # zeros for times: not SimulEval's, and refused
    check(several, "ATD(clock=queue)", lambda c: oracle.queued(c.g, c.elapsed))


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from(["text", "s2t", "s2s"]))
def test_long_sentences_agree_with_the_oracle(seed, kind):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(100, 500))
    g = np.cumsum(rng.integers(0, 3, n) * (rng.random(n) < 0.5)) * (1.0 if kind == "text" else rng.choice([320, 77.7]))
    check([Case(kind, tuple(g.tolist()), tuple(g.tolist()), tuple(rng.uniform(0, 900, n).tolist()))], "ATD")


# ---- the sentence function ----------------------------------------------------------------------------------------


@given(many())
def test_a_sentence_is_scored_as_in_a_run(several):
    run = run_of(several)
    for one, c in zip(lagging.score(run, ["ATD"])["ATD"].segments, several, strict=True):
        got = lagging.atd(c.g, unit=run.unit, durations=c.durations if c.kind == "s2s" else None)
        assert got == one or (math.isnan(got) and math.isnan(one))


# ---- properties ---------------------------------------------------------------------------------------------------


@given(st.integers(1, 30), st.integers(1, 30))
def test_wait_k_of_equal_lengths_has_atd_k(k, n):
    k = min(k, n)
    assert lagging.atd([min(t + k, n) for t in range(n)], source_length=n) == k


@given(cases("s2t") | cases("s2s"), st.sampled_from([0.25, 0.5, 2, 8]))
def test_scaling_time_scales_atd(c, factor):
    def atd(by):
        sound = [by * v for v in c.durations] if c.kind == "s2s" else None
        return lagging.atd([by * v for v in c.g], unit="ms", durations=sound, piece=300 * by)

    assert atd(factor) == pytest.approx(factor * atd(1), nan_ok=True, rel=1e-12, abs=1e-9)


@given(cases("text"))
def test_text_is_speech_in_words_of_a_second(c):
    g = sorted(set(c.g))  # one word a chunk: the sound of several would be joined, and cut anew
    sound = lagging.atd([1000 * v for v in g], unit="ms", durations=[1000] * len(g), piece=1000)
    assert sound == pytest.approx(1000 * lagging.atd(g), nan_ok=True)


@given(cases("s2t"))
def test_computing_makes_no_token_earlier(c):
    names = ["ATD", "ATD(clock=queue)", "ATD(clock=elapsed)"]
    ideal, overlap, elapsed = (score.value for score in lagging.score(run_of([c]), names))
    if c.g:
        assert ideal <= overlap + 1e-9
        assert overlap <= elapsed + 1e-9


@given(many())
def test_other_segments_change_nothing(several):
    together = lagging.score(run_of(several), ["ATD"])["ATD"].segments
    alone = [lagging.score(run_of([c]), ["ATD"])["ATD"].segments[0] for c in several]
    assert [v.hex() for v in together.tolist()] == [v.hex() for v in map(float, alone)]
