# SPDX-License-Identifier: Apache-2.0
"""The best path, against all paths there are (tiny texts), and against the whole matrix (small ones); exactly."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from lagging.longform.corridor import Corridor, Path, best, edit_path

Table = list[list[Fraction]]
quarters = st.integers(-4, 8).map(lambda n: Fraction(n, 4))
seeds = st.integers(0, 2**30)


def flat(table: Table, corridor: Corridor) -> np.ndarray:
    """The worths of the cells of a corridor, row by row; where there is no pair, what must not be looked at."""
    cells = []
    for i, (low, high) in enumerate(zip(corridor.low, corridor.high, strict=True)):
        cells += [float(table[i - 1][j - 1]) if i and j else 1e9 for j in range(low, high + 1)]
    return np.array(cells)


def whole(rows: int, columns: int, ends: list[int]) -> Corridor:
    return Corridor(np.zeros(rows + 1, np.int64), np.full(rows + 1, columns), columns, np.array(ends))


def as_potential(worths: Table):
    return lambda k, columns: np.array([float(w) for w in worths[k]])[columns]


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
    corridor = whole(rows, columns, ends)
    path = best(corridor, flat(table, corridor), as_potential(worths), gaps_first=gaps_first)
    check(path, rows, columns, ends)
    assert earned(path, table, worths) == by_all(table, worths, rows, columns, ends)
    assert not corridor.touches(path)


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
    corridor = whole(rows, columns, ends)
    path = best(corridor, flat(table, corridor), as_potential(worths), gaps_first=gaps_first)
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


@given(streams(), st.integers(0, 4), seeds)
def test_in_a_narrow_corridor(stream, reach, seed):
    """However narrow: a path, no worse than that which the corridor was laid around, and no better than the best."""
    reference, hypothesis, ends = stream
    rows, columns = len(reference), len(hypothesis)
    rng = random.Random(seed)
    table = [[Fraction(rng.randint(-4, 8), 4) for _ in range(columns)] for _ in range(rows)]
    worths = [[Fraction(rng.randint(-4, 8), 4) for _ in range(columns + 1)] for _ in ends[:-1]]
    known = edit_path(reference, hypothesis, np.array(ends))
    corridor = Corridor.around(known, np.array(ends), reach)
    path = best(corridor, flat(table, corridor), as_potential(worths))
    check(path, rows, columns, ends)
    found, most = earned(path, table, worths), by_matrix(table, worths, rows, columns, ends)
    assert earned(known, table, worths) <= found <= most
    cuts = np.array(ends[:-1], dtype=np.int64)
    assert (corridor.low[cuts] <= path.boundaries[1:-1]).all()
    assert (path.boundaries[1:-1] <= corridor.high[cuts]).all()


@given(streams(), st.integers(0, 3), seeds)
def test_moving_a_corridor_is_never_for_the_worse_and_no_wall_is_passed_unseen(stream, reach, seed):
    """A path that goes out of its corridor touches it; one that is looked for around the last one earns as much."""
    reference, hypothesis, ends = stream
    rows, columns = len(reference), len(hypothesis)
    rng = random.Random(seed)
    table = [[Fraction(rng.randint(1, 8), 4) for _ in range(columns)] for _ in range(rows)]
    path = edit_path(reference, hypothesis, np.array(ends))
    sums = [earned(path, table, [[Fraction()] * (columns + 1)] * len(ends))]
    for _ in range(4):
        corridor = Corridor.around(path, np.array(ends), reach)
        path = best(corridor, flat(table, corridor))
        sums.append(earned(path, table, [[Fraction()] * (columns + 1)] * len(ends)))
        within = (path.low >= corridor.low).all() and (path.high <= corridor.high).all()
        assert within or corridor.touches(path)
    assert sums == sorted(sums)


def test_a_path_through_the_wall_touches_it():
    # rows 2 and 3 would pair with columns 7 and 8; the corridor ends at 2 and 3
    low, high = np.array([0, 0, 1, 2]), np.array([1, 2, 3, 9])
    corridor = Corridor(low, high, 9, np.array([3]))
    inside = Path(np.array([0, 1, 2, 3]), np.array([0, 1, 2, 9]), np.array([[0, 0], [1, 1], [2, 2]]), np.array([0, 9]))
    beyond = Path(np.array([0, 1, 2, 9]), np.array([0, 1, 8, 9]), np.array([[0, 0], [1, 1], [2, 8]]), np.array([0, 9]))
    left = Path(np.array([0, 0, 0, 9]), np.array([0, 0, 8, 9]), np.array([[2, 8]]), np.array([0, 9]))
    assert not corridor.touches(inside)
    assert corridor.touches(beyond)
    assert corridor.touches(left)


def test_a_boundary_is_not_looked_for_outside():
    corridor = Corridor(np.array([0, 1, 2]), np.array([1, 2, 3]), 3, np.array([1, 2]))
    seen = []
    path = best(corridor, np.ones(6), lambda k, columns: seen.append((k, columns)) or np.array([0.0, 5.0]))
    assert seen == [(0, slice(1, 3))]
    assert path.boundaries.tolist() == [0, 2, 3]


def test_corridors_are_as_wide_as_memory_allows():
    path = edit_path([1] * 10, [1] * 500, np.array([10]))
    assert Corridor.around(path, np.array([10])).high.tolist() == [500] * 11  # the whole matrix
    long = edit_path([1] * 40_000, [1] * 40_000, np.array([40_000]))
    made = Corridor.around(long, np.array([40_000]))
    assert made.high[20_000] - made.low[20_000] == 2 * 64
    assert made.starts[-1] < 129 * 40_001
    assert Corridor.around(long, np.array([40_000]), 3).starts[1] == 4


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
    corridor = Corridor.around(path, np.array(ends))
    table = [[Fraction(1 + (a == b)) for b in hypothesis] for a in reference]
    again = best(corridor, flat(table, corridor))
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
    corridor = whole(rows, columns, [rows])
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
        found = best(corridor, flat(table, corridor), gaps_first=gaps_first)
        assert steps(found) == min(equal, key=lambda path, order=order: [order.index(step) for step in path])


def test_the_first_of_equal_boundaries():
    corridor = whole(1, 4, [0, 1])
    path = best(corridor, np.zeros(10), lambda k, columns: np.array([0.0, 3, 1, 3, 3])[columns])
    assert path.boundaries.tolist() == [0, 1, 4]
