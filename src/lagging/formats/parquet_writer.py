# SPDX-License-Identifier: Apache-2.0
"""A Run as a Parquet file, or one of Arrow's own. Needs pyarrow (the extra `arrow`)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from lagging.data.ragged import Ragged
from lagging.data.run import NUMBERS, Run
from lagging.formats import segment_rows
from lagging.formats.arrow_arrays import import_arrow
from lagging.formats.parquet import KEY
from lagging.formats.tables import scalars

if TYPE_CHECKING:
    import pyarrow

__all__ = ["write_arrow", "write_parquet"]


def write_parquet(run: Run, file: IO[bytes]) -> list[str]:
    """Write a Parquet file, compressed. Nothing is lost."""
    pa = import_arrow()
    from pyarrow.parquet import ParquetWriter

    compression = next((codec for codec in ("zstd", "snappy") if pa.Codec.is_available(codec)), "none")
    _write(run, file, lambda sink, schema: ParquetWriter(sink, schema, compression=compression))
    return []


def write_arrow(run: Run, file: IO[bytes]) -> list[str]:
    """Write a file of Arrow's own format. Nothing is lost."""
    _write(run, file, import_arrow().ipc.new_file)
    return []


def _write(run: Run, file: IO[bytes], writer: Callable[[Any, pyarrow.Schema], Any]) -> None:
    """The rows of a Run, some at a time, and before them what holds for all."""
    pa, columns = import_arrow(), run.columns
    schema = pa.schema(
        [(column, _type(getattr(run, column))) for column in columns],
        metadata={KEY: json.dumps(scalars(run), ensure_ascii=False)},
    )
    with writer(file, schema) as table:
        for start in range(0, len(run), segment_rows.SEGMENTS_PER_PART):
            rows = slice(start, start + segment_rows.SEGMENTS_PER_PART)
            arrays = [_array(column, getattr(run, column)[rows]) for column in columns]
            table.write_batch(pa.record_batch(arrays, schema=schema))


def _type(values: Any) -> pyarrow.DataType:
    pa = import_arrow()
    if isinstance(values, Ragged):
        return pa.list_(pa.float64())
    return pa.string() if values.dtype == object else pa.from_numpy_dtype(values.dtype)


def _array(column: str, values: Any) -> pyarrow.Array:
    """Some values of a column; what is unknown is null."""
    pa = import_arrow()
    if isinstance(values, Ragged):
        flat = pa.array(values.values, from_pandas=column == "shown")
        return pa.ListArray.from_arrays(pa.array(values.offsets.astype(np.int32)), flat)
    if values.dtype == object:
        return pa.array(values.tolist(), pa.string())
    return pa.array(values, from_pandas=column in NUMBERS)
