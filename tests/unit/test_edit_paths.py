# SPDX-License-Identifier: Apache-2.0
"""The corridor of all paths with the fewest edits, against every cell that such a path passes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from lagging.longform import edits
from lagging.longform.aligners import ALIGNERS, Stream
from lagging.longform.corridor import Flat, block_most, edit_path
from lagging.longform.edits import hull, relaxed_edits
from lagging.longform.optimum import best, optimum
from lagging.longform.words import WordPairs, equality

texts = st.lists(st.integers(0, 3), max_size=10)
words = st.lists(st.sampled_from("abcd"), max_size=12)


@given(texts, texts)
def test_the_hull_has_every_path_with_the_fewest_edits_and_no_more(reference, hypothesis):
    low, high = hull(reference, hypothesis)
    fewest = Levenshtein.distance(reference, hypothesis)
    for i in range(len(reference) + 1):
        passed = [
            j
            for j in range(len(hypothesis) + 1)
            if Levenshtein.distance(reference[:i], hypothesis[:j]) + Levenshtein.distance(reference[i:], hypothesis[j:])
            == fewest
        ]
        assert (low[i], high[i]) == (passed[0], passed[-1])


class Table:
    """A potential from a table."""

    def __init__(self, values):
        self.values = np.array(values, dtype=np.float64)

    def at(self, k, columns):
        return self.values[k, columns]

    def most(self, k, width):
        return block_most(self.values[k], width)


@given(words, words, st.data(), st.booleans())
def test_the_optimum_is_the_same_with_and_without_the_hull(reference, hypothesis, data, gaps_first):
    """With potentials of less than an edit, and of several, for which the hull proves nothing."""
    ends = [*sorted(data.draw(st.lists(st.integers(0, len(reference)), max_size=4))), len(reference)]
    scale = data.draw(st.sampled_from([1 / 64, 1 / 4, 2.0]))
    rows = st.lists(st.integers(-2, 2), min_size=len(hypothesis) + 1, max_size=len(hypothesis) + 1)
    potential = Table([[scale * n for n in data.draw(rows)] for _ in ends])
    pairs = WordPairs.of(reference, hypothesis, equality)
    start = edit_path(pairs.reference.tolist(), pairs.hypothesis.tolist(), np.array(ends))
    relaxed = relaxed_edits(pairs, start, np.array(ends), potential)
    assert relaxed is not None
    solution = best(relaxed.corridor, pairs, np.array(ends), potential, gaps_first=gaps_first, beyond=relaxed.beyond)
    plain = optimum(pairs, start, np.array(ends), potential, gaps_first=gaps_first)
    path = optimum(pairs, start, np.array(ends), potential, gaps_first=gaps_first, relaxed=relaxed).path
    assert path.pairs.tolist() == plain.path.pairs.tolist()
    assert path.boundaries.tolist() == plain.path.boundaries.tolist()
    if solution.proven:
        assert solution.earned == pytest.approx(plain.earned)


@given(words, st.lists(st.lists(st.sampled_from("abcd"), max_size=4), min_size=1, max_size=5))
@pytest.mark.parametrize("aligner", ["mwer", "mweralign", "mwersegmenter"])
def test_aligners_cut_long_texts_as_they_cut_short_ones(aligner, tokens, references):
    with pytest.MonkeyPatch.context() as patch:
        short = ALIGNERS[aligner](Stream(tokens, references))
        patch.setattr(edits, "CELLS", -1)
        assert ALIGNERS[aligner](Stream(tokens, references)).tolist() == short.tolist()


def test_a_long_text_has_no_hull(monkeypatch):
    monkeypatch.setattr(edits, "CELLS", 3)
    pairs = WordPairs.of(["a", "b"], ["a", "b"], equality)
    start = edit_path([0, 1], [0, 1], np.array([2]))
    assert relaxed_edits(pairs, start, np.array([2]), Flat()) is None
