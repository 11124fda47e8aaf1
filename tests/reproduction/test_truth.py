# SPDX-License-Identifier: Apache-2.0
"""True lags, alignments, and what metrics say of them."""

import random
from fractions import Fraction

import numpy as np
import pytest

import lagging
from lab import truth
from lab.alignments import both, read_places, words
from lab.data import CLAUSES, clause_pair, clause_pairs, clauses
from lagging.data.run import Run


@pytest.fixture(scope="module")
def judged():
    return {which: truth.judge(which, 500) for which in ("verb-final", "Multi30k")}


@pytest.mark.parametrize("cost", [Fraction(0), Fraction(1, 2), Fraction(1), Fraction(3, 2)])
def test_true_lags_are_those_of_a_listener_who_needs_time_per_word(cost):
    delays, places = [2, 2, 2, 5, 5], [1, 2, 0, 5, 3]
    wanted, heard = [], Fraction(0)
    for g, place in zip(delays, places, strict=True):
        begun = max(Fraction(g), heard)
        heard = begun + cost
        wanted.append(float(begun - place) if place else np.nan)
    lags = truth.true_lags(np.array(delays, dtype=float), np.array(places), float(cost))
    assert lags.tolist() == pytest.approx(wanted, rel=0, abs=0, nan_ok=True)


def test_where_the_words_of_both_sides_take_the_same_time_the_truth_is_dal_but_for_where_words_are_from():
    corpus = truth.controlled()
    for system in truth.systems():
        delays = [system.rule(size, places) for size, places in zip(corpus.sizes, corpus.places, strict=True)]
        dal = lagging.score(Run.from_delays([g.tolist() for g in delays], source_length=corpus.sizes), ["DAL"])["DAL"]
        lags = [truth.true_lags(g, row, 1.0).mean() for g, row in zip(delays, corpus.places, strict=True)]
        assert np.array(lags) + 1 == pytest.approx(dal.segments), system.name


def test_every_rule_reads_on_and_no_rule_writes_what_it_cannot_know():
    corpus = truth.controlled()
    for system in truth.systems():
        for size, places in zip(corpus.sizes[:50], corpus.places[:50], strict=True):
            g = system.rule(size, places)
            assert len(g) == len(places)
            assert (np.diff(g) >= 0).all()
            assert g[0] >= 1
            assert g[-1] <= size
            if system.adaptive and system.name != "as known, last read late":
                assert (g >= places).all(), system.name


def test_clauses_are_translated_word_for_word_with_the_verb_after_the_subject():
    (source, target, places) = clause_pair(random.Random(4))
    assert [source[place - 1].upper() for place in places] == target
    assert sorted(places) == list(range(1, len(source) + 1))
    corpus, made = clauses(), clause_pairs(CLAUSES)
    assert corpus.tests["test"][7] == (" ".join(made["test"][7][0]), " ".join(made["test"][7][1]))


def test_alignment_finds_the_source_words_of_a_language_whose_verbs_come_last():
    chance = random.Random(3)
    pairs = [clause_pair(chance) for _ in range(400)]
    found = both([source for source, _, _ in pairs], [target for _, target, _ in pairs])
    right = [place == true for row, (_, _, places) in zip(found, pairs, strict=True)
             for place, true in zip(row.tolist(), places, strict=True) if place]  # fmt: skip
    assert np.mean(right) > 0.98
    assert len(right) > 0.8 * sum(len(places) for *_, places in pairs)


def test_words_and_marks_of_punctuation_are_apart():
    assert words("ein mann, ein's.") == ["ein", "mann", ",", "ein", "'", "s", "."]


def test_the_places_that_were_kept_are_in_their_sentences():
    kept = read_places()
    assert len(kept) == 1000
    assert all(row.min() >= 0 and row.max() <= size for size, row in kept)
    assert 0.6 < np.concatenate([row > 0 for _, row in kept]).mean() < 0.9


def test_metrics_agree_with_a_truth_that_they_are(judged):
    """Where lengths are the same and c = 1, DAL is the truth but for a constant, and all pairs are in its order."""
    assert judged["verb-final"].agreement("DAL", 1.0) == 1
    assert not list(judged["verb-final"].wrong("DAL", 1.0))
    assert judged["Multi30k"].agreement("DAL(write_cost=1)", 1.0) > 0.98


def test_where_words_take_time_al_puts_adaptive_systems_too_early_and_dal_does_not(judged):
    for one in judged.values():
        assert one.agreement("DAL", 1.0) > one.agreement("AL", 1.0) + 0.1
        adaptive = dict(one.systems)
        mixed = [pair for pair in one.wrong("AL", 1.0) if adaptive[pair[0]] != adaptive[pair[1]]]
        favoured = [adaptive[late] for _, late in mixed]
        assert np.mean(favoured) > 0.9


def test_where_words_take_no_time_al_is_nearer_to_the_truth_than_dal(judged):
    for one in judged.values():
        assert one.agreement("AL", 0.0) > one.agreement("DAL", 0.0)
