# SPDX-License-Identifier: Apache-2.0
"""Python lists as columns: rows of numbers, numbers, names, texts; anything else is a fault."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Floats, Ragged
from lagging.data.tokens import count_tokens, is_torn
from lagging.errors import DataError, Fault

if TYPE_CHECKING:
    from lagging.data.run import Run

__all__ = [
    "Ids",
    "Texts",
    "as_ids",
    "as_lengths",
    "as_rows",
    "first_shown",
    "freeze",
    "join_ids",
    "make_ids",
    "make_texts",
    "misfits",
    "no_times",
]

Texts = npt.NDArray[np.object_]
Ids = npt.NDArray[Any]


def freeze(record: object, columns: Iterable[str]) -> None:
    """Make the columns of a frozen record read-only; the arrays that it was given stay as they are."""
    for column in columns:
        values = getattr(record, column)
        if isinstance(values, np.ndarray) and values.flags.writeable:
            view = values.view()
            view.flags.writeable = False
            object.__setattr__(record, column, view)


def as_rows(rows: Sequence[Sequence[float]] | Ragged, kind: str) -> Ragged:
    """Lists of numbers; anything else is a fault of this kind."""
    try:
        if not isinstance(rows, Ragged) and any(isinstance(value, str) for row in rows for value in row):
            raise TypeError("text among the numbers")
        return rows if isinstance(rows, Ragged) else Ragged.from_rows(rows)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(Fault(kind, str(error))) from None


def as_lengths(lengths: npt.ArrayLike, kind: str) -> Floats:
    """Numbers; anything else is a fault of this kind."""
    try:
        return np.array(lengths, dtype=np.float64, ndmin=1)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(Fault(kind, str(error))) from None


def as_ids(ids: Sequence[int | str] | npt.NDArray[Any] | None, n: int) -> Ids:
    """Names of segments: whole numbers or strings; 0, 1, 2, … if none are given."""
    if ids is None:
        return make_ids(range(n))
    names = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    for row, name in enumerate(names):
        if not isinstance(name, int | str) or isinstance(name, bool):
            raise DataError(Fault("bad-id", f"id[{row}] is {name!r}"))
    return make_ids(names)


def misfits(columns: Mapping[str, Any], texts: Collection[str], n: int, counted: str) -> Iterator[Fault]:
    """What is wrong with columns beside one another: their lengths, and entries of `texts` that are no text.

    Example:
        >>> [fault.detail for fault in misfits({"reference": ["a", 7]}, {"reference"}, 1, "prediction")]
        ['reference has 2 entries, prediction 1', 'reference[1] is 7, not text']
    """
    for column, values in columns.items():
        if values is not None and len(values) != n:
            yield Fault("length-mismatch", f"{column} has {len(values)} entries, {counted} {n}")
    for column in (c for c in columns if c in texts and columns[c] is not None):
        for row, text in enumerate(columns[column]):
            if text is not None and not isinstance(text, str):
                yield Fault("bad-value", f"{column}[{row}] is {text!r}, not text")
            elif text and is_torn(text):
                yield Fault("not-utf8", f"half of a surrogate pair in {column}[{row}]")


def no_times(texts: Sequence[str | None] | Texts, level: str) -> Ragged:
    """Unknown times of target tokens: NaN for each, so that their number is kept.

    Example:
        >>> no_times(["guten Tag", None], "word").tolist()
        [[nan, nan], []]
    """
    counts = count_tokens(texts, level, np.zeros(len(texts), dtype=np.int64))
    return Ragged.from_lengths(np.full(counts.sum(), np.nan), counts)


def make_texts(texts: Sequence[str | None] | npt.NDArray[np.object_] | None) -> Texts | None:
    """Texts as an object array; None for no column."""
    if texts is None:
        return None
    out = np.empty(len(texts), dtype=object)
    out[:] = np.fromiter(texts, dtype=object, count=len(texts))
    return out


def make_ids(ids: Sequence[int | str] | range) -> Ids:
    """Ids as whole numbers if all of them are, else as strings."""
    if set(map(type, ids)) <= {int}:
        with suppress(OverflowError):  # too large for 64 bits: treated as a name
            return np.array(ids, dtype=np.int64)
    out = np.empty(len(ids), dtype=object)
    out[:] = [str(i) for i in ids]
    return out


def join_ids(parts: Sequence[Ids]) -> Ids:
    """The ids of all parts: whole numbers if all of them are."""
    if len({part.dtype for part in parts}) == 1:
        return np.concatenate(parts)
    return make_ids([name for part in parts for name in part.tolist()])


def first_shown(run: Run) -> Ragged | None:
    """When each target token was first shown; None if that is not known. Where nothing was erased, it is the delay."""
    if run.first_times is not None:
        return run.first_times
    never_erased = run.erased is not None and bool((run.erased == 0).all())
    return run.delays if never_erased or not len(run.delays.values) else None
