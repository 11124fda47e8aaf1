# SPDX-License-Identifier: Apache-2.0
"""How executors read: a batch of rows becomes segments and faults, each with its place in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from lagging.data.checks import add_counts
from lagging.data.run import Run
from lagging.errors import Fault, optional
from lagging.formats.arrow_arrays import as_texts
from lagging.formats.options import ReadOptions
from lagging.formats.schema import LogSchema
from lagging.formats.source import Source
from lagging.formats.tables import match
from lagging.scoring.arrow import PATH, read_batch
from lagging.scoring.plan import Plan
from lagging.scoring.poisson import RESAMPLES

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "ADDED",
    "Batches",
    "Counts",
    "FirstRows",
    "Hashes",
    "Place",
    "Places",
    "Rows",
    "Task",
    "combine_batches",
    "plain_path",
]

Batches = Iterable["pyarrow.RecordBatch"]
Hashes = npt.NDArray[np.int64]
Place = tuple[str, int]
"""A file, and a row in it, from 1; an empty name and 0 where that is not known."""
Counts = Mapping[str, Mapping[str, int]]
"""What had been done to a log before it was written (`repaired`, `stripped`), and how often."""

ADDED = ("__lagging_file", "__lagging_row", "__lagging_hash")
"""Columns that the driver adds: file and row of a segment, and the hash of its id."""

REPEATED = ("duplicate-id", "id-in-two-files")
BATCH_ROWS, BATCH_BYTES = 1 << 16, 1 << 26


@dataclass
class FirstRows:
    """The first rows of a log: they decide unit, level, columns and default metrics.

    Attributes:
        run: their segments.
        schema: what they show of the log.
    """

    run: Run
    schema: LogSchema


@dataclass
class Rows:
    """The rows of a batch, divided into segments and faults.

    Attributes:
        runs: the segments without faults; `Run.line` is the row of the batch, from 1.
        faults: of the other rows, with their places in the files.
        repeated: the same, of rows whose only fault is an id that occurs before in the batch.
        places: where the rows come from.
    """

    runs: list[Run]
    faults: dict[int, list[Fault]]
    repeated: dict[int, list[Fault]]
    places: Places

    @property
    def hashes(self) -> Hashes:
        """The hashes of the ids of all rows that may count."""
        return np.delete(self.places.hashes, list(self.faults))


@dataclass(frozen=True)
class Task:
    """What executors do with the rows of a DataFrame; it is sent to them.

    Attributes:
        plan: what is scored.
        options: how rows are read.
        schema: what the log is, as the driver resolved it from the first rows; None if no row is without a fault.
        given: what was given beside the log when it was written; see `Run`.
        counts: by file, what had been done to it before it was written.
        confidence, resamples: of the intervals; there are none if the Plan has no seed.
        buckets: the number of parts into which hashes of ids are divided; 0 if no id is looked for in other batches.
        skip: rows that are left out because of their id, and the places where the id occurs first.
        guess: whether the unit may be guessed from a batch, because no row of the log is without a fault.
    """

    plan: Plan
    options: ReadOptions
    schema: LogSchema | None = None
    given: tuple[tuple[str, str], ...] = ()
    counts: Mapping[str, Counts] = field(default_factory=dict)
    confidence: float = 0.95
    resamples: int = RESAMPLES
    buckets: int = 1
    skip: Mapping[Place, Place] = field(default_factory=dict)
    guess: bool = False

    def read(self, batch: pyarrow.RecordBatch) -> Rows:
        """Divide the rows of a batch into segments and faults."""
        places = Places(batch, self.options.column_map)
        faults = self._skipped(places)
        rest = np.array([row for row in range(batch.num_rows) if row not in faults], dtype=np.int64)
        rows, log = places.log.take(rest) if faults else places.log, Source(PATH, None, schema=self.schema)
        runs, faults_in_rest = read_batch(rows, self.options, "quarantine", log=log, guess=self.guess)
        if faults:
            runs = [replace(run, line=None if run.line is None else rest[run.line - 1] + 1) for run in runs]
        if self.given:
            runs = [replace(run, given=self.given) for run in runs]
        repeated: dict[int, list[Fault]] = {}
        for row, row_faults in faults_in_rest.items():
            only_id = self.buckets and all(fault.kind in REPEATED for fault in row_faults)
            (repeated if only_id else faults)[int(rest[row])] = row_faults
        return Rows(self._with_counts(runs, places), places.locate(faults), places.locate(repeated), places)

    def _skipped(self, places: Places) -> dict[int, list[Fault]]:
        """Rows that are left out because their id occurs before."""
        faults: dict[int, list[Fault]] = {}
        for row in range(len(places.hashes)) if self.skip else ():
            first = self.skip.get(places[row])
            if first is not None:
                faults[row] = [repeated_id(places[row][0], first)]
        return faults

    def _with_counts(self, runs: list[Run], places: Places) -> list[Run]:
        """The runs, the first with what had been done to the files that begin in this batch."""
        begun = [counts for file, counts in self.counts.items() if (file, 1) in places.all] if self.counts else []
        for counts in begun if runs else ():
            added: dict[str, Any] = {name: add_counts(getattr(runs[0], name), n.items()) for name, n in counts.items()}
            runs[0] = replace(runs[0], **added)
        return runs


class Places:
    """Where the rows of a batch come from: `places[row]` is a file, and a row in it.

    Attributes:
        log: the batch without the columns that the driver added.
        hashes: those of the ids.
    """

    def __init__(self, batch: pyarrow.RecordBatch, column_map: Mapping[str, str]) -> None:
        files, rows, hashes = (batch.column(name) for name in ADDED)
        self.log = batch.select([name for name in batch.schema.names if name not in ADDED])
        self.hashes: Hashes = hashes.to_numpy(zero_copy_only=False)
        encoded = files.dictionary_encode()
        self._column_map = column_map
        self._paths = [plain_path(name) for name in encoded.dictionary.to_pylist()]
        self._files = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        self._rows = rows.fill_null(-1).to_numpy(zero_copy_only=False)

    def __getitem__(self, row: int) -> Place:
        """The place of a row."""
        file = int(self._files[row])
        return ("" if file < 0 else self._paths[file]), int(self._rows[row]) + 1

    @cached_property
    def all(self) -> set[Place]:
        """The places of all rows."""
        return {self[row] for row in range(len(self.hashes))}

    @cached_property
    def ids(self) -> list[str | None]:
        """The ids of the rows."""
        return as_texts(self.log.column(match(self.log.schema.names, self._column_map).places["id"]))

    def locate(self, faults: Mapping[int, list[Fault]]) -> dict[int, list[Fault]]:
        """The faults of rows with file, row and id, in the order of the rows."""
        located = {}
        for row in sorted(faults):
            file, number = self[row]
            place: dict[str, Any] = {"path": file or None, "line": number or None, "segment": self.ids[row]}
            located[row] = [replace(fault, **place) for fault in faults[row]]
        return located


def repeated_id(file: str, first: Place) -> Fault:
    """The fault of a segment whose id occurs before."""
    return Fault("duplicate-id" if file == first[0] else "id-in-two-files", f"first at {first[0]}:{first[1]}")


def plain_path(uri: str) -> str:
    """The path of a file as people write it.

    Example:
        >>> plain_path("file:///data/a%20b.parquet"), plain_path("file:/a.parquet"), plain_path("s3a://lake/a.parquet")
        ('/data/a b.parquet', '/a.parquet', 's3a://lake/a.parquet')
    """
    return unquote(uri.removeprefix("file://") if uri.startswith("file://") else uri.removeprefix("file:"))


def combine_batches(batches: Batches) -> Iterator[pyarrow.RecordBatch]:
    """The same rows in larger batches, none of them empty: reading has a fixed cost for each batch."""
    pa, held, rows, size = optional("pyarrow", "spark"), list[Any](), 0, 0
    for batch in batches:
        held += [batch] if batch.num_rows else []
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= BATCH_ROWS or size >= BATCH_BYTES:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held, rows, size = [], 0, 0
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()
