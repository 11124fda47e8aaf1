# SPDX-License-Identifier: Apache-2.0
"""Files of Parquet, and Arrow's own: their schema, and some of their columns, some rows at a time.

A Parquet file is read some row groups at a time, so that several processes can share the work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lagging.errors import Fault
from lagging.formats import segment_rows
from lagging.formats.arrow_arrays import import_arrow
from lagging.formats.options import ReadOptions
from lagging.formats.report import ReadReport
from lagging.formats.source import RowGroups, Source

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Batches", "list_row_groups", "opened", "recognise"]

MAGIC = {"parquet": b"PAR1", "arrow": b"ARROW1"}
LEAST = 1000
"""The least number of rows read together: as many as the schema of JSON lines is resolved from."""

PARTS = 4
"""How many parts small row groups that are read together have at least."""


class Batches(Protocol):
    """Reads some columns, some rows at a time: those of the portion to read, or from the first row on."""

    def __call__(self, names: list[str], /, *, first: bool = False) -> Iterator[pyarrow.RecordBatch]:
        """The rows."""


def recognise(head: bytes) -> str | None:
    """`parquet` or `arrow`, by the first bytes."""
    return next((name for name, magic in MAGIC.items() if head.startswith(magic)), None)


@contextmanager
def opened(source: Source, options: ReadOptions, report: ReadReport) -> Iterator[tuple[pyarrow.Schema, Batches]]:
    """The schema of a file, and a function that reads some columns of it."""
    pa, size = import_arrow(), segment_rows.SEGMENTS_PER_PART
    # such a file is read from its end: a pipe, or a compressed file, is read into memory
    plain = source.file is not None and source.file.is_file() and recognise(_start(source.file)) is not None
    with pa.OSFile(str(source.file)) if plain else pa.BufferReader(source.whole()) as file:
        if options.format == "arrow":
            ipc = pa.ipc.open_file(file)
            yield (
                ipc.schema,
                lambda names, *, first=False: _join(_whole(_slices(ipc, names, size), None, source, report)),
            )
        else:
            from pyarrow.parquet import ParquetFile

            parquet = ParquetFile(file, page_checksum_verification=True)
            rows = parquet.metadata.num_rows

            def read(names: list[str], *, first: bool = False) -> Iterator[pyarrow.RecordBatch]:
                portion = source.portion
                portions = [*_row_groups(parquet.metadata)] if first or portion is None else [portion]
                batches = (
                    batch
                    for groups in portions
                    for batch in parquet.iter_batches(size, range(groups.start, groups.stop), names, use_threads=False)
                )
                return _join(_whole(batches, rows, source, report))

            yield parquet.schema_arrow, read


def list_row_groups(source: Source) -> Sequence[RowGroups] | None:
    """Divide a Parquet file into row groups that are read together; None if it cannot be read."""
    pa = import_arrow()
    from pyarrow.parquet import read_metadata

    try:
        return [*_row_groups(read_metadata(str(source.file)))]
    except (pa.ArrowException, OSError):  # reading in order reports it, with all else that is wrong
        return None


def _row_groups(metadata: Any) -> Iterator[RowGroups]:
    start, first, rows = 0, 1, 0
    for group in range(metadata.num_row_groups):
        rows += metadata.row_group(group).num_rows
        if rows >= PARTS * segment_rows.SEGMENTS_PER_PART or group == metadata.num_row_groups - 1:
            yield RowGroups(start, group + 1, first, rows)
            start, first, rows = group + 1, first + rows, 0


def _join(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """The same rows, at least `LEAST` at a time, so that what a table is does not depend on its row groups."""
    pa, pending, least = import_arrow(), list[Any](), min(LEAST, segment_rows.SEGMENTS_PER_PART)
    for batch in chain(batches, [None]):
        pending += [] if batch is None else [batch]
        if pending and (batch is None or sum(part.num_rows for part in pending) >= least):
            joined = pa.Table.from_batches(pending).unify_dictionaries().combine_chunks().to_batches()
            yield joined[0] if len(pending) > 1 and joined else pending[0]
            pending = []


def _whole(
    batches: Iterator[pyarrow.RecordBatch], rows: int | None, source: Source, report: ReadReport
) -> Iterator[pyarrow.RecordBatch]:
    """The batches up to one that cannot be read; a fault says from which row on."""
    pa, read = import_arrow(), 0
    try:
        for batch in batches:
            read += batch.num_rows
            yield batch
    except (pa.ArrowException, OSError) as error:
        message = str(error).partition("\n")[0][:100]
        lost = f"row {read + 1} and all after it" if rows is None else f"rows {read + 1} to {rows}"
        report.faults.add(Fault("not-arrow", f"{lost}: {message}", source.path, read + 1))


def _start(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(8)


def _slices(ipc: Any, names: list[str], size: int) -> Iterator[pyarrow.RecordBatch]:
    for number in range(ipc.num_record_batches):
        batch = ipc.get_batch(number).select(names)
        batch.validate(full=True)  # pyarrow does not check Arrow files itself, and would misread a damaged one
        yield from (batch.slice(start, size) for start in range(0, batch.num_rows, size))
