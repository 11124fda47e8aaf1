# SPDX-License-Identifier: Apache-2.0
"""The best path, against all paths there are (tiny texts), and against the whole matrix (small ones); exactly."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from lagging.longform import optimum as module
from lagging.longform.corridor import Corridor, Path, block_most, edit_path
from lagging.longform.optimum import best, optimum

Table = list[list[Fraction]]
quarters = st.integers(-4, 8).map(lambda n: Fraction(n, 4))
seeds = st.integers(0, 2**30)


class TablePairs:
    """The worths of a table; what must not be looked at is not there."""

    def __init__(self, table: Table, columns: int, width: int = 1) -> None:
        self.values = np.array([[float(w) for w in row] for row in table]).reshape(len(table), columns)
        self.columns, self.width = columns, width

    def rows(self, first, low, high):
        spans = zip(range(first, first + len(low)), low, high, strict=True)
        return [self.values[i - 1, max(left - 1, 0) : right] for i, left, right in spans]

    @property
    def ceilings(self):
        padded = [np.append(0.0, row) for row in self.values]
        most = np.array([np.maximum(block_most(row, self.width), 0.0) for row in padded])
        return most.reshape(len(padded), self.columns // self.width + 1), np.arange(len(padded))


class TablePotential:
    """What each boundary earns at each column, from a table."""

    def __init__(self, worths: Table) -> None:
        self.values = [np.array([float(w) for w in row]) for row in worths]

    def at(self, k, columns):
        return self.values[k][columns]

    def most(self, k, width):
        return block_most(self.values[k], width)


def whole(rows: int, columns: int) -> Corridor:
    return Corridor.whole(rows, columns)


def check(path: Path, rows: int, columns: int, ends: list[int]) -> None:
    """That it is a path: it begins and ends in the corners, and every step is to the right, down, or a pair."""
    assert len(path.low) == len(path.high) == rows + 1
    assert (path.low[0], path.high[-1]) == (0, columns)
    assert (path.low <= path.high).all()
    paired = dict(path.pairs.tolist())
    assert len(paired) == len(path.pairs)
    assert path.pairs.tolist() == sorted(path.pairs.tolist())
    for i in range(1, rows + 1):
        assert path.low[i] == path.high[i - 1] + (i - 1 in paired)
        assert paired.get(i - 1, path.high[i - 1]) == path.high[i - 1]
    assert (path.boundaries[0], path.boundaries[-1], len(path.boundaries)) == (0, columns, len(ends) + 1)
    assert (np.diff(path.boundaries) >= 0).all()
    for end, cut in zip(ends[:-1], path.boundaries[1:-1], strict=True):
        assert path.low[end] <= cut <= path.high[end]


def earned(path: Path, table: Table, worths: Table) -> Fraction:
    """What a path earns."""
    pairs = sum((table[i][j] for i, j in path.pairs.tolist()), Fraction())
    return pairs + sum((worths[k][cut] for k, cut in enumerate(path.boundaries[1:-1].tolist())), Fraction())


# ---- all paths there are ---------------------------------------------------------------------------------------------


def matchings(rows: range, columns: range) -> Iterator[list[tuple[int, int]]]:
    """Every way to pair some tokens with some others, in order."""
    for size in range(min(len(rows), len(columns)) + 1):
        for some in combinations(rows, size):
            for others in combinations(columns, size):
                yield list(zip(some, others, strict=True))


def by_all(table: Table, worths: Table, rows: int, columns: int, ends: list[int]) -> Fraction:
    """The largest sum over all segmentations and, in each segment, all alignments."""

    def segment(a: int, b: int, x: int, y: int) -> Fraction:
        return max(sum((table[i][j] for i, j in some), Fraction()) for some in matchings(range(a, b), range(x, y)))

    sums = []
    for cuts in combinations_with_replacement(range(columns + 1), len(ends) - 1):
        boundaries, places = [0, *cuts, columns], [0, *ends]
        parts = zip(pairwise(places), pairwise(boundaries), strict=True)
        inner = sum((segment(a, b, x, y) for (a, b), (x, y) in parts), Fraction())
        sums.append(inner + sum((worths[k][cut] for k, cut in enumerate(cuts)), Fraction()))
    return max(sums)


@st.composite
def problems(draw, size: int, segments: int):
    """Worths of pairs and boundaries; segments may be empty, and be more than there are words."""
    rows, columns = draw(st.integers(0, size)), draw(st.integers(0, size))
    count = draw(st.integers(1, segments))
    ends = [*sorted(draw(st.lists(st.integers(0, rows), min_size=count - 1, max_size=count - 1))), rows]
    table = [draw(st.lists(quarters, min_size=columns, max_size=columns)) for _ in range(rows)]
    worths = [draw(st.lists(quarters, min_size=columns + 1, max_size=columns + 1)) for _ in range(count - 1)]
    return rows, columns, ends, table, worths


@given(problems(3, 4), st.booleans())
def test_nothing_earns_more_than_the_best_path(problem, gaps_first):
    rows, columns, ends, table, worths = problem
    corridor, potential = whole(rows, columns), TablePotential(worths)
    solution = best(corridor, TablePairs(table, columns), np.array(ends), potential, gaps_first=gaps_first)
    path, proven = solution.path, solution.proven
    check(path, rows, columns, ends)
    assert earned(path, table, worths) == by_all(table, worths, rows, columns, ends)
    assert proven


# ---- the whole matrix ------------------------------------------------------------------------------------------------


def by_matrix(table: Table, worths: Table, rows: int, columns: int, ends: list[int]) -> Fraction:
    """The largest sum, by the recurrence over the whole matrix."""
    cuts: dict[int, list[int]] = {}
    for k, end in enumerate(ends[:-1]):
        cuts.setdefault(end, []).append(k)
    above: list[Fraction] = [Fraction()] * (columns + 1)
    for i in range(rows + 1):
        row = list(above)
        for j in range(1, columns + 1):
            row[j] = max([row[j], row[j - 1], *([above[j - 1] + table[i - 1][j - 1]] if i else [])])
        for k in cuts.get(i, ()):
            row = [value + worth for value, worth in zip(row, worths[k], strict=True)]
            for j in range(1, columns + 1):
                row[j] = max(row[j], row[j - 1])
        above = row
    return above[-1]


@settings(max_examples=60)
@given(problems(3, 4))
def test_the_two_oracles_agree(problem):
    rows, columns, ends, table, worths = problem
    assert by_matrix(table, worths, rows, columns, ends) == by_all(table, worths, rows, columns, ends)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(1, 6), st.booleans(), seeds)
def test_the_best_path_of_the_whole_matrix(rows, columns, segments, gaps_first, seed):
    rng = random.Random(seed)
    ends = [*sorted(rng.choices(range(rows + 1), k=segments - 1)), rows]
    table = [[Fraction(rng.randint(-4, 8), 4) for _ in range(columns)] for _ in range(rows)]
    worths = [[Fraction(rng.randint(-4, 8), 4) for _ in range(columns + 1)] for _ in ends[:-1]]
    corridor, potential = whole(rows, columns), TablePotential(worths)
    path = best(corridor, TablePairs(table, columns), np.array(ends), potential, gaps_first=gaps_first).path
    check(path, rows, columns, ends)
    assert earned(path, table, worths) == by_matrix(table, worths, rows, columns, ends)


# ---- corridors -------------------------------------------------------------------------------------------------------

texts = st.lists(st.integers(0, 3), max_size=14)


@st.composite
def streams(draw):
    """Reference and hypothesis, with runs that only one of them has, and where segments end."""
    reference, hypothesis = draw(texts), draw(texts)
    run = draw(st.lists(st.integers(4, 6), max_size=12))
    place = draw(st.integers(0, 14))
    if draw(st.booleans()):
        hypothesis = [*hypothesis[:place], *run, *hypothesis[place:]]
    else:
        reference = [*reference[:place], *run, *reference[place:]]
    ends = [*sorted(draw(st.lists(st.integers(0, len(reference)), max_size=5))), len(reference)]
    return reference, hypothesis, ends


def random_worths(rng: random.Random, rows: int, columns: int, ends: list[int], least: int) -> tuple[Table, Table]:
    table = [[Fraction(rng.randint(least, 8), 4) for _ in range(columns)] for _ in range(rows)]
    return table, [[Fraction(rng.randint(-4, 8), 4) for _ in range(columns + 1)] for _ in ends[:-1]]


@given(streams(), st.integers(0, 4), st.integers(1, 4), st.integers(-4, 1), seeds)
def test_in_a_narrow_corridor(stream, reach, width, least, seed):
    """However narrow: a path inside, no worse than that which it was laid around; if called proven, the best."""
    reference, hypothesis, ends = stream
    rows, columns = len(reference), len(hypothesis)
    table, worths = random_worths(random.Random(seed), rows, columns, ends, least)
    known = edit_path(reference, hypothesis, np.array(ends))
    corridor = Corridor.around(known, reach, width)
    solution = best(corridor, TablePairs(table, columns, width), np.array(ends), TablePotential(worths))
    path, proven = solution.path, solution.proven
    check(path, rows, columns, ends)
    assert (corridor.low <= path.low).all()
    assert (path.high <= corridor.high).all()
    value, most = earned(path, table, worths), by_matrix(table, worths, rows, columns, ends)
    assert earned(known, table, worths) <= value <= most
    assert not proven or value == most


@pytest.fixture
def small(monkeypatch):
    """Corridors so narrow, and chunks so small, that short texts need many of them."""
    monkeypatch.setattr(module, "WHOLE", 0)
    monkeypatch.setattr(module, "KEPT", 20)
    monkeypatch.setattr(module, "REACH", 1)
    monkeypatch.setattr(module, "WIDER", 2)
    monkeypatch.setattr(module, "ROWS", 3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(streams(), st.integers(1, 3), st.integers(-4, 1), st.booleans(), seeds)
def test_the_optimum_is_the_best_of_the_whole_matrix_wherever_it_was_looked_for(
    small, stream, width, least, gaps_first, seed
):
    """The same path, not only the same sum, as the whole matrix has; from whichever path the search starts."""
    reference, hypothesis, ends = stream
    rows, columns = len(reference), len(hypothesis)
    rng = random.Random(seed)
    table, worths = random_worths(rng, rows, columns, ends, least)
    pairs, potential = TablePairs(table, columns, width), TablePotential(worths)
    starts = [edit_path(reference, hypothesis, np.array(ends)), edit_path([1] * rows, [2] * columns, np.array(ends))]
    for start in starts:
        path = optimum(pairs, start, np.array(ends), potential, gaps_first=gaps_first).path
        check(path, rows, columns, ends)
        assert earned(path, table, worths) == by_matrix(table, worths, rows, columns, ends)
        other = best(whole(rows, columns), pairs, np.array(ends), potential, gaps_first=gaps_first).path
        assert path.pairs.tolist() == other.pairs.tolist()
        assert path.boundaries.tolist() == other.boundaries.tolist()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(streams(), st.integers(1, 3), st.integers(-4, 1), seeds)
def test_the_optimum_with_a_lower_potential(small, stream, width, least, seed):
    """The bound of a problem serves another one in which no boundary earns more."""
    reference, hypothesis, ends = stream
    rows, columns = len(reference), len(hypothesis)
    rng = random.Random(seed)
    table, worths = random_worths(rng, rows, columns, ends, least)
    lower = [[worth - Fraction(rng.randint(0, 4), 4) for worth in row] for row in worths]
    pairs, start = TablePairs(table, columns, width), edit_path(reference, hypothesis, np.array(ends))
    relaxed = optimum(pairs, start, np.array(ends), TablePotential(worths))
    path = optimum(pairs, relaxed.path, np.array(ends), TablePotential(lower), relaxed=relaxed).path
    check(path, rows, columns, ends)
    assert earned(path, table, lower) == by_matrix(table, lower, rows, columns, ends)
    other = best(whole(rows, columns), pairs, np.array(ends), TablePotential(lower)).path
    assert path.pairs.tolist() == other.pairs.tolist()
    assert path.boundaries.tolist() == other.boundaries.tolist()


def test_a_corridor_is_proof_where_texts_agree_and_not_where_a_better_path_lies_outside():
    texts = [[1] * 20 + [2] * 20 + [3] * 20, [1] * 20 + [9] * 30 + [2] * 20 + [3] * 20]
    table = [[Fraction(1 + (a == b)) for b in texts[1]] for a in texts[0]]
    pairs, ends = TablePairs(table, len(texts[1]), 4), np.array([60])
    start = edit_path([1] * 60, [2] * 90, ends)
    assert best(Corridor.around(start, 4, 4), pairs, ends).proven is False
    path = optimum(pairs, start, ends).path
    assert best(Corridor.around(path, 40, 4), pairs, ends).proven is True
    assert earned(path, table, []) == 120


def test_corridors_begin_and_end_with_whole_blocks():
    path = edit_path([1] * 10, [1] * 500, np.array([10]))
    corridor = Corridor.around(path, 3, 8)
    assert (corridor.low % 8 == 0).all()
    assert ((corridor.high % 8 == 7) | (corridor.high == 500)).all()
    assert (corridor.low <= path.low).all()
    assert (corridor.high >= path.high).all()
    assert Corridor.around(path, 500, 8).is_whole
    assert whole(3, 5).cells == 24


# ---- edit_path -------------------------------------------------------------------------------------------------------


@given(streams())
def test_a_path_with_the_fewest_edits(stream):
    reference, hypothesis, ends = stream
    path = edit_path(reference, hypothesis, np.array(ends))
    check(path, len(reference), len(hypothesis), ends)
    equality = [[Fraction(1 + (a == b)) for b in hypothesis] for a in reference]
    edits = len(reference) + len(hypothesis) - earned(path, equality, [[Fraction()] * 99] * len(ends))
    assert edits == Levenshtein.distance(reference, hypothesis)
    for end, cut in zip(ends[:-1], path.boundaries[1:-1], strict=True):
        assert cut == path.high[end]


@pytest.mark.parametrize(
    ("reference", "hypothesis", "ends", "boundaries"),
    [
        ([], [], [0], [0, 0]),
        ([], [], [0, 0, 0], [0, 0, 0, 0]),
        ([], [1, 2], [0, 0], [0, 2, 2]),
        ([1, 2], [], [0, 1, 2, 2], [0, 0, 0, 0, 0]),
        ([1, 2], [1, 2], [0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 1, 2, 2]),
        ([1], [1], [1], [0, 1]),
    ],
)
def test_nothing_on_either_side(reference, hypothesis, ends, boundaries):
    path = edit_path(reference, hypothesis, np.array(ends))
    check(path, len(reference), len(hypothesis), ends)
    assert path.boundaries.tolist() == boundaries
    table = [[Fraction(1 + (a == b)) for b in hypothesis] for a in reference]
    again = optimum(TablePairs(table, len(hypothesis)), path, np.array(ends)).path
    check(again, len(reference), len(hypothesis), ends)
    assert again.pairs.tolist() == path.pairs.tolist()


# ---- equal paths -----------------------------------------------------------------------------------------------------


@st.composite
def alike(draw):
    """Few different words, so that many paths are equal."""
    reference, hypothesis = (draw(st.lists(st.integers(0, 1), max_size=5)) for _ in range(2))
    return [[Fraction(1 + (a == b)) for b in hypothesis] for a in reference], len(reference), len(hypothesis)


def steps(path: Path) -> str:
    """The steps of a path, seen from the end: D leaves out a reference token, I one of the hypothesis, P pairs."""
    paired = {i for i, _ in path.pairs.tolist()}
    said = ""
    for i in range(len(path.low) - 1, -1, -1):
        said += "I" * int(path.high[i] - path.low[i])
        said += "" if i == 0 else "P" if i - 1 in paired else "D"
    return said


@given(alike())
def test_which_of_equal_paths(made):
    """Seen from the end, the first in the order of D, I, P; or of P, D, I, as SoftSegmenter has it."""
    table, rows, columns = made
    paths: dict[Fraction, list[str]] = {}

    def go(i: int, j: int, so_far: str, total: Fraction) -> None:
        if i == j == 0:
            paths.setdefault(total, []).append(so_far)
        if i:
            go(i - 1, j, so_far + "D", total)
        if j:
            go(i, j - 1, so_far + "I", total)
        if i and j:
            go(i - 1, j - 1, so_far + "P", total + table[i - 1][j - 1])

    go(rows, columns, "", Fraction())
    equal = paths[max(paths)]
    for gaps_first, order in ((True, "DIP"), (False, "PDI")):
        path = best(whole(rows, columns), TablePairs(table, columns), np.array([rows]), gaps_first=gaps_first).path
        assert steps(path) == min(equal, key=lambda steps, order=order: [order.index(step) for step in steps])


def test_the_first_of_equal_boundaries():
    worths = [[Fraction(w) for w in (0, 3, 1, 3, 3)]]
    pairs = TablePairs([[Fraction()] * 4], 4)
    path = best(whole(1, 4), pairs, np.array([0, 1]), TablePotential(worths)).path
    assert path.boundaries.tolist() == [0, 1, 4]
