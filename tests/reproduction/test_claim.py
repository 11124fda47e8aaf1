# SPDX-License-Identifier: Apache-2.0
"""The test of the claim: gaps, intervals, slopes and the rule, against values that can be worked out by hand."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import t as student

from lab import claim
from lab.claim import Estimate, Family, Trial, decide, estimate
from lab.experiments import Experiment, Plan, Setting
from lab.results import Kept, Trained
from lagging.data.ragged import Ragged
from lagging.data.run import Run

N = 20


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch):
    monkeypatch.setattr(claim, "RESAMPLES", 2000)


def family(points, ap=0.5, noise=0.0) -> Family:
    """Settings with these means of AL and DAL; `noise` is added to DAL, and adds up to nothing."""
    wave = np.resize([noise, -noise], N)
    rows = [[np.full(N, al), dal + wave, np.full(N, ap)] for al, dal in points]
    return Family(tuple(f"{al}" for al, _ in points), np.array(rows, dtype=float), np.zeros(len(points)))


WAIT = family([(0.5, 1.5), (4, 5), (9, 10)])
"""DAL = AL + 1."""


def test_a_constant_gap_is_found_and_only_over_the_al_that_both_have():
    one = Trial("test", {1: WAIT}, {1: family([(2, 3.75), (6, 7.75)])})
    assert one.covered == (2, 6)
    assert one.gap.value == pytest.approx(0.75)
    assert one.gap_at(3).value == pytest.approx(0.75)
    assert np.isnan(one.gap_at(1).value), "nothing is extrapolated"


def test_the_gap_is_the_area_between_the_lines_over_1_to_8():
    one = Trial("test", {1: WAIT}, {1: family([(0, 0), (10, 20)])})
    assert one.covered == (1, 8)
    assert one.gap.value == pytest.approx(np.mean([1 - 1, 8 - 1])), "2·AL − (AL + 1), a line"


def test_a_common_range_that_is_too_short_has_no_gap():
    assert np.isnan(Trial("test", {1: WAIT}, {1: family([(4, 6), (6.5, 8)])}).gap.value)


def test_with_one_or_two_seeds_the_interval_is_over_sentences_alone():
    one = Trial("test", {1: WAIT, 2: WAIT}, {1: family([(0, 2), (9, 11)]), 2: family([(0, 4), (9, 13)])})
    assert (one.gap.value, one.gap.seeds) == (2.0, (1.0, 3.0))
    assert (one.gap.low, one.gap.high) == (2.0, 2.0), "sentences do not differ"
    assert np.isnan(one.gap.t_low)


def test_with_three_seeds_the_interval_is_over_them_too():
    values = [1.0, 2.0, 3.0]
    found = estimate(values, [np.full(2000, value) for value in values])
    every = sorted(np.mean(draw) for draw in product(values, repeat=3))
    assert (found.low, found.high) == pytest.approx((every[0], every[-1])), "1/27 of the draws are 1, 1, 1"
    half = student.ppf(0.975, 2) / np.sqrt(3)
    assert (found.t_low, found.t_high) == pytest.approx((2 - half, 2 + half))


def test_seeds_make_the_interval_wider_than_sentences():
    noisy = [family([(0, 1 + gap), (9, 10 + gap)], noise=0.5) for gap in (0.2, 0.5, 0.8)]
    one = Trial("test", dict.fromkeys((1, 2, 3), WAIT), dict(zip((1, 2, 3), noisy, strict=True)))
    alone = Trial("test", {1: WAIT}, {1: noisy[1]})
    assert one.gap.value == pytest.approx(alone.gap.value) == pytest.approx(0.5)
    assert one.gap.high - one.gap.low > alone.gap.high - alone.gap.low > 0


def test_slopes_leave_out_what_is_nearly_offline_unless_all_are_wanted():
    bent = family([(1, 2), (2, 4), (3, 6)])
    late = family([(9, 9)], ap=0.95)
    both = Family(("a", "b", "c", "d"), np.concatenate([bent.rows, late.rows]), np.zeros(4))
    one = Trial("test", {1: WAIT}, {1: both})
    assert one.slope("other").value == pytest.approx(2)
    assert one.slope("difference").value == pytest.approx(1)
    assert one.slope("other", all_settings=True).value == pytest.approx(np.polyfit([1, 2, 3, 9], [2, 4, 6, 9], 1)[0])


def test_settings_that_are_drawn_again_count_again():
    means = np.array([[[1.0, 2.0], [2.0, 5.0], [4.0, 6.0]]] * 2)
    slope = claim._weighted_slope(means, np.array([[1.0, 2, 3], [3, 0, 3]]))
    again = np.repeat(means[0], [1, 2, 3], axis=0)
    assert slope[0] == pytest.approx(np.polyfit(again[:, 0], again[:, 1], 1)[0])
    assert np.isnan(slope[1]), "two different settings make no line"
    one = Trial("test", {1: WAIT}, {1: family([(1, 2), (2, 5), (4, 6), (5, 9)])}).slope(
        "difference", over_settings=True
    )
    assert one.dropped > 0
    assert one.high > one.low


def trials_of(monkeypatch, gaps, seeds=3):
    """Four test sets with these gaps."""
    made = {f"test_{n}": Trial("", dict.fromkeys(range(seeds), WAIT), {}) for n in range(len(gaps))}
    by_id = {id(one): gap for one, gap in zip(made.values(), gaps, strict=True)}
    monkeypatch.setattr(Trial, "gap", property(lambda one: by_id[id(one)]))
    return made


ABOVE, BELOW = Estimate(0.5, 0.3, 0.7, 0.2, 0.8), Estimate(-0.5, -0.7, -0.3, -0.8, -0.2)
TOUCHES, NOTHING = Estimate(0.5, 0.3, 0.7, -0.1, 1.1), Estimate(0.0, -0.05, 0.05, -0.2, 0.2)


@pytest.mark.parametrize(
    ("gaps", "said"),
    [
        ([ABOVE] * 4, "supported"),
        ([ABOVE] * 3 + [TOUCHES], "not decided"),
        ([ABOVE] * 3 + [Estimate(0.05, 0.01, 0.09, 0.01, 0.09)], "not decided"),
        ([ABOVE] * 3 + [BELOW], "refuted"),
        ([ABOVE] + [NOTHING] * 3, "refuted"),
        ([ABOVE] * 2 + [NOTHING] * 2, "not decided"),
    ],
)
def test_the_rule_of_the_plan(monkeypatch, gaps, said):
    assert decide(trials_of(monkeypatch, gaps)) == said


def test_the_rule_says_nothing_of_too_few_seeds(monkeypatch):
    assert decide(trials_of(monkeypatch, [ABOVE] * 4, seeds=2)) == "too few seeds"
    assert decide({}) == "too few seeds"


def test_only_seeds_with_all_settings_are_complete(scale, tmp_path):
    def one(name, seed):
        return Experiment(name, seed=seed, settings=(Setting(name, "wait-k", name, "wait-k", {"k": 1}, "k=1"),))

    plan = Plan(scale, {name: one(name, seed) for name, seed in (("a-1", 1), ("b-1", 1), ("a-2", 2), ("b-2", 2))})
    for name in ("a-1", "b-1", "a-2"):
        (tmp_path / f"{name}.npz").touch()
    assert claim.complete_seeds(plan, tmp_path) == [1]


def test_a_word_is_written_with_its_last_piece_and_read_with_its_first():
    run = Run.from_delays([[2, 3, 5]], source_length=[5])
    begins = Ragged.from_lengths(np.array([1.0, 0, 1]), [3]), Ragged.from_lengths(np.array([1.0, 0, 1, 0, 1]), [5])
    setting = Setting("one", "wait-k", "model", "wait-k", {}, "one")
    kept = Kept(setting, Trained({}, {}, [], {}), run, (np.zeros((1, 10)), ""), begins, None)
    assert kept.words.delays[0].tolist() == [2, 3], "3 pieces are 2 words; 5 are all 3"
    assert kept.words.source_length.tolist() == [3]
