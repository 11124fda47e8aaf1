# SPDX-License-Identifier: Apache-2.0
"""Columns of Arrow as columns of a Run: which types fit, and how their values are taken over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Floats, Ragged
from lagging.data.run import LISTS, NUMBERS, Texts
from lagging.errors import Fault, optional
from lagging.formats.tables import MAPS, WRONG_LIST, WRONG_NUMBER, joined_labels, label

if TYPE_CHECKING:
    import pyarrow

__all__ = ["as_texts", "import_arrow", "join_groups", "to_floats", "to_python", "to_ragged", "type_faults"]


def import_arrow() -> Any:
    """Import pyarrow, or say how to install it."""
    return optional("pyarrow", "arrow")


def type_faults(column: str, kind: pyarrow.DataType, path: str) -> Iterator[Fault]:
    """A fault if the type of a column does not fit its name."""
    types = import_arrow().types

    def numeric(kind: Any) -> bool:
        return any(t(kind) for t in (types.is_integer, types.is_floating, types.is_decimal, types.is_null))

    def textual(kind: Any) -> bool:
        kind = kind.value_type if types.is_dictionary(kind) else kind
        tests = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary, types.is_null)
        return any(t(kind) for t in tests)

    def is_list(kind: Any, fits: Callable[[Any], bool]) -> bool:
        tests = (types.is_list, types.is_large_list, types.is_fixed_size_list)
        return any(t(kind) for t in tests) and fits(kind.value_type)

    if column == "delays" or column in LISTS:
        fits, wrong = is_list(kind, numeric) or types.is_null(kind), WRONG_LIST.get(column, ("bad-column",))[0]
    elif column == "source_length" or column in NUMBERS:
        fits, wrong = numeric(kind), WRONG_NUMBER.get(column, "bad-column")
    elif column == "id":
        fits, wrong = textual(kind) or numeric(kind), "bad-id"
    elif column in ("source", "document"):
        fits, wrong = textual(kind) or types.is_integer(kind) or is_list(kind, textual), "bad-value"
    else:
        fits, wrong = textual(kind) or column in MAPS, "bad-value"
        wrong = {"prediction": "bad-prediction", "reference": "bad-reference"}.get(column, wrong)
    if not fits:
        yield Fault(wrong, f"the column {column} is of {kind}", path)


def to_floats(array: pyarrow.Array) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Numbers, with NaN for null, and which of them are null."""
    pa = import_arrow()
    if array.type != pa.float64():
        array = array.cast(pa.float64(), safe=False)
    return array.to_numpy(zero_copy_only=False), _nulls(array)


def _nulls(array: pyarrow.Array) -> npt.NDArray[np.bool_]:
    """Which entries are null; most columns have none, and say so."""
    if array.null_count == 0:
        return np.zeros(len(array), dtype=bool)
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False))


def to_ragged(array: pyarrow.Array) -> tuple[Ragged, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Lists, which of them are null, and which of their entries are null."""
    pa = import_arrow()
    missing = _nulls(array)
    if pa.types.is_null(array.type):
        return Ragged([], np.zeros(len(array) + 1)), missing, np.zeros(0, dtype=bool)
    values, null = to_floats(array.flatten())
    lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return Ragged.from_lengths(values, lengths), missing, null


def to_python(array: pyarrow.Array) -> list[Any]:
    """Texts, numbers or lists of texts as Python objects; bytes that are not UTF-8 stay bytes."""
    pa = import_arrow()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        try:
            return list(array.to_pylist())
        except UnicodeDecodeError:
            array = array.cast(pa.large_binary())
    return [_decoded(value) if isinstance(value, bytes) else value for value in array.to_pylist()]


def as_texts(array: pyarrow.Array) -> list[str | None]:
    """Values as text, as ids and labels are compared; None for null."""
    return [label(value) for value in to_python(array)]


def join_groups(columns: Sequence[pyarrow.Array]) -> Texts:
    """The labels of each row as one text; each combination of labels is joined once, not once per row."""
    pa = import_arrow()
    codes, labels = np.zeros(len(columns[0]), dtype=np.int64), [()]
    for column in columns:
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode("encode")
        own: list[str | None] = as_texts(coded.dictionary)
        index = coded.indices.fill_null(len(own)).to_numpy(zero_copy_only=False)
        pairs, codes = np.unique(codes * (len(own) + 1) + index, return_inverse=True)
        labels = [(*labels[pair // (len(own) + 1)], [*own, None][pair % (len(own) + 1)]) for pair in pairs.tolist()]
    return np.array([joined_labels(row) for row in labels], dtype=object)[codes]


def _decoded(value: bytes) -> str | bytes:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value
