# SPDX-License-Identifier: Apache-2.0
import math
import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lagging import Ragged, Run

VALUES = st.floats(-1e6, 1e6)
ROWS = st.lists(
    st.one_of(st.just([]), st.lists(VALUES, min_size=1, max_size=1), st.lists(VALUES, max_size=7)), max_size=9
)


def masks(rows):
    return st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)).map(lambda m: np.array(m, dtype=bool))


@given(ROWS)
@example([])
@example([[]])
@example([[1.0]])
@example([[], [], [2.0], []])
def test_rows_in_rows_out(rows):
    ragged = Ragged.from_rows(rows)
    assert ragged.tolist() == rows
    assert len(ragged) == len(rows)
    assert ragged.lengths.tolist() == [len(row) for row in rows]
    assert [row.tolist() for row in ragged] == rows
    assert [ragged[i].tolist() for i in range(-len(rows), 0)] == rows
    for outside in (len(rows), -len(rows) - 1):
        with pytest.raises(IndexError):
            ragged[outside]
    flat = [v for row in rows for v in row]
    assert Ragged.from_lengths(flat, [len(row) for row in rows]) == ragged
    assert pickle.loads(pickle.dumps(ragged)) == ragged
    assert repr(ragged) == f"Ragged({len(rows)} rows, {len(flat)} values)"


@given(ROWS)
def test_the_values_cannot_be_changed(rows):
    ragged = Ragged.from_rows([*rows, [1.0]])
    with pytest.raises(ValueError, match="read-only"):
        ragged[-1][0] = 2.0


@given(ROWS, st.data())
def test_take(rows, data):
    ragged = Ragged.from_rows(rows)
    ends = st.none() | st.integers(-12, 12)
    cut = slice(data.draw(ends), data.draw(ends), data.draw(st.sampled_from([None, 1, 2, 3, -1, -2])))
    assert ragged.take(cut).tolist() == rows[cut]
    mask = data.draw(masks(rows))
    assert ragged.take(mask).tolist() == [row for row, kept in zip(rows, mask, strict=True) if kept]
    numbers = data.draw(st.lists(st.integers(-len(rows), len(rows) - 1), max_size=12)) if rows else []
    assert ragged.take(np.array(numbers, dtype=np.int64)).tolist() == [rows[i] for i in numbers]


@given(st.lists(ROWS, min_size=1, max_size=4))
def test_concat(parts):
    together = Ragged.concat([Ragged.from_rows(rows) for rows in parts])
    assert together.tolist() == [row for rows in parts for row in rows]


@given(ROWS, st.data())
def test_parts_put_together_are_the_whole(rows, data):
    ragged = Ragged.from_rows(rows)
    cut = data.draw(st.integers(0, len(rows)))
    assert Ragged.concat([ragged.take(slice(None, cut)), ragged.take(slice(cut, None))]) == ragged


@given(ROWS, st.data())
def test_drop_last(rows, data):
    mask = data.draw(masks(rows))
    expected = [row[:-1] if dropped else row for row, dropped in zip(rows, mask, strict=True)]
    assert Ragged.from_rows(rows).drop_last(mask).tolist() == expected


@given(ROWS)
def test_fill_empty(rows):
    values = np.arange(len(rows), dtype=float) + 0.5
    expected = [row or [value] for row, value in zip(rows, values.tolist(), strict=True)]
    assert Ragged.from_rows(rows).fill_empty(values).tolist() == expected


@given(ROWS)
def test_last_and_falls_and_owner(rows):
    ragged = Ragged.from_rows(rows)
    for got, row in zip(ragged.last(), rows, strict=True):
        assert math.isnan(got) if not row else got == row[-1]
    places = [(r, t) for r, row in enumerate(rows) for t in range(len(row))]
    owners, within = ragged.owner(np.arange(len(places)))
    assert list(zip(owners.tolist(), within.tolist(), strict=True)) == places
    falling = [flat for flat, (r, t) in enumerate(places) if t and rows[r][t] < rows[r][t - 1]]
    assert ragged.falls().tolist() == falling


@given(ROWS)
def test_by_row(rows):
    columns = np.arange(len(rows), dtype=float), np.arange(len(rows), dtype=float) ** 2
    seen = []

    def kernel(rectangle, a, b):
        assert a.shape == b.shape == (len(rectangle), 1)
        seen.append(rectangle.shape)
        return (rectangle * a + b).max(axis=1)

    got = Ragged.from_rows(rows).by_row(kernel, *columns)
    assert len(got) == len(rows)
    for number, (value, row) in enumerate(zip(got, rows, strict=True)):
        assert math.isnan(value) if not row else value == max(v * number + number**2 for v in row)
    assert all(n and length for n, length in seen)
    assert sum(n * length for n, length in seen) == sum(map(len, rows))


@given(ROWS)
def test_by_token(rows):
    column = np.arange(len(rows), dtype=float)
    got = Ragged.from_rows(rows).by_token(lambda rectangle, a: np.cumsum(rectangle, axis=1) + a, column)
    expected = []
    for number, row in enumerate(rows):
        expected.append([sum(row[: t + 1]) + number for t in range(len(row))])
    assert got.lengths.tolist() == [len(row) for row in rows]
    for one, other in zip(got.tolist(), expected, strict=True):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-6)


@given(ROWS, st.booleans())
def test_several_ragged_side_by_side(rows, made):
    """Also one that so far exists as rectangles only, beside a column, and in rectangles of few rows."""
    ragged = Ragged.from_rows(rows)
    other = ragged.by_token(lambda g: -2 * g) if made else Ragged.from_rows([[-2 * v for v in row] for row in rows])
    third = Ragged.from_rows([[float(t) for t in range(len(row))] for row in rows])
    column = np.arange(len(rows), dtype=float)

    def kernel(g, twice, place, number):
        assert g.shape == twice.shape == place.shape
        assert number.shape == (len(g), 1)
        return g + twice + 10 * place + 100 * number

    expected = [[v - 2 * v + 10 * t + 100 * r for t, v in enumerate(row)] for r, row in enumerate(rows)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lagging.data.ragged.TOKENS_PER_RECTANGLE", 7)
        small = [Ragged(r.values, r.offsets) for r in (ragged, other, third)]
        in_small = small[0].by_token(kernel, *small[1:], column).tolist()
    for got in (ragged.by_token(kernel, other, third, column).tolist(), in_small):
        for one, row in zip(got, expected, strict=True):
            assert one == pytest.approx(row)
    by_row = ragged.by_row(lambda *args: kernel(*args).max(axis=1), other, third, column)
    for value, row in zip(by_row, expected, strict=True):
        assert math.isnan(value) if not row else value == pytest.approx(max(row))


@given(ROWS.filter(lambda rows: any(rows)))
def test_rows_of_other_lengths_are_refused(rows):
    ragged = Ragged.from_rows(rows)
    for other in (ragged.drop_last(ragged.lengths > 0), Ragged.from_rows([*rows, []]), Ragged.from_rows([])):
        for way in (ragged.by_row, ragged.by_token):
            with pytest.raises(ValueError, match="rows of different lengths"):
                way(lambda g, h: g, other)


@given(ROWS, st.data())
def test_keep(rows, data):
    mask = data.draw(masks(rows))
    kept = Ragged.from_rows(rows).keep(mask)
    assert kept.tolist() == [row if keep else [] for row, keep in zip(rows, mask, strict=True)]
    assert len(kept) == len(rows)
    made = Ragged.from_rows(rows).by_token(lambda g: g + 1).keep(mask)
    assert made == Ragged.from_rows(
        [[v + 1 for v in row] if keep else [] for row, keep in zip(rows, mask, strict=True)]
    )
    assert pickle.loads(pickle.dumps(made)) == made


def test_equality():
    ragged = Ragged.from_rows([[1.0], [], [2.0, 3.0]])
    assert ragged == Ragged.from_rows([[1.0], [], [2.0, 3.0]])
    assert ragged != Ragged.from_rows([[1.0], [2.0], [3.0]])
    assert ragged != Ragged.from_rows([[1.0], [], [2.0, 4.0]])
    assert ragged != [[1.0], [], [2.0, 3.0]]
    with pytest.raises(TypeError, match="unhashable"):
        hash(ragged)


def test_a_million_rows():
    lengths = np.arange(1_000_000) % 7
    values = np.arange(lengths.sum(), dtype=float)
    ragged = Ragged.from_lengths(values, lengths)
    assert len(ragged) == 1_000_000
    first, last = ragged.offsets[:-1].astype(float), ragged.offsets[1:] - 1.0
    total = ragged.by_row(lambda g: g.sum(axis=1))
    assert np.array_equal(total, np.where(lengths > 0, (first + last) * lengths / 2, np.nan), equal_nan=True)
    assert np.array_equal(ragged.last(), np.where(lengths > 0, last, np.nan), equal_nan=True)
    assert np.array_equal(ragged.by_token(lambda g, a: g + a, np.ones(len(ragged))).values, values + 1)
    assert len(ragged.falls()) == 0
    even = ragged.take(np.arange(0, 1_000_000, 2))
    assert np.array_equal(even.lengths, lengths[::2])
    assert np.array_equal(even.by_row(lambda g: g.sum(axis=1)), total[::2], equal_nan=True)
    assert np.array_equal(ragged.drop_last(lengths > 0).lengths, np.maximum(lengths - 1, 0))
    filled = ragged.fill_empty(first)
    assert np.array_equal(filled.lengths, np.maximum(lengths, 1))
    assert np.array_equal(filled.last(), np.where(lengths > 0, last, first))


def test_no_rows_of_a_run_is_a_run_without_rows():
    run = Run.from_delays([[1, 2], [2]], source_length=[2, 2])
    assert len(run[0:0]) == 0
    assert len(run[np.zeros(2, dtype=bool)]) == 0
    assert len(run[[]]) == 0
