# SPDX-License-Identifier: Apache-2.0
"""How executors read: batches of rows, with their places in files, as segments and faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from lagging.data.run import Run
from lagging.errors import Fault, optional
from lagging.formats.arrow_arrays import as_texts
from lagging.formats.tables import match
from lagging.metrics.conventions import Convention
from lagging.scoring.arrow import runs_of
from lagging.scoring.plan import Plan
from lagging.scoring.poisson import RESAMPLES, SEED

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ADDED", "Batches", "Hashes", "Part", "Places", "Task", "decoded", "gathered", "twin"]

Batches = Iterable["pyarrow.RecordBatch"]
Hashes = npt.NDArray[np.int64]

ADDED = ("__lagging_file", "__lagging_row", "__lagging_hash")
"""Columns that the driver adds: where a row comes from, and the hash of its id."""

DOUBLE = ("duplicate-id", "id-in-two-files")
ENOUGH_ROWS, ENOUGH_BYTES = 1 << 16, 1 << 26


def _arrow() -> Any:
    return optional("pyarrow", "spark")


@dataclass
class Part:
    """A batch, read.

    Attributes:
        runs: the segments without faults.
        faults: of the other rows, with their places in the files.
        doubles: the same, of rows whose only fault is an id that the batch had before.
        places: where the rows come from.
    """

    runs: list[Run]
    faults: dict[int, list[Fault]]
    doubles: dict[int, list[Fault]]
    places: Places

    @property
    def hashes(self) -> Hashes:
        """Of the ids of all rows that may count."""
        return np.delete(self.places.hashes, list(self.faults))


@dataclass(frozen=True)
class Task:
    """How a DataFrame is to be scored, as it travels to the executors.

    Attributes:
        metrics, convention: as in `lagging.score`.
        columns: what the DataFrame calls columns of ours.
        by: the columns of the groups.
        unit, level: of the delays, and of the target tokens.
        repair: names of repairs.
        said: settings that every row must have, if it says anything about them.
        seed, confidence, resamples: of the intervals; no intervals without a seed.
        buckets: in how many parts hashes are looked through; 0 if ids are not looked at.
        skip: rows that are left out, by file and row, and where the id was first.
    """

    metrics: tuple[str, ...]
    convention: str | Convention = "paper"
    columns: Mapping[str, str] = field(default_factory=dict)
    by: tuple[str, ...] = ()
    unit: str | None = None
    level: str | None = None
    repair: tuple[str, ...] = ()
    said: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = SEED
    confidence: float = 0.95
    resamples: int = RESAMPLES
    buckets: int = 1
    skip: Mapping[tuple[str, int], tuple[str, int]] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        """What is scored."""
        return Plan.make(self.metrics, self.convention, group_by=self.by, summary=True, seed=self.seed)

    def runs_of(self, batch: pyarrow.RecordBatch) -> tuple[list[Run], dict[int, list[Fault]]]:
        """The segments of a batch of the log alone, and the faults of other rows."""
        return runs_of(batch, self.columns, self.unit, self.level, self.by, self.repair, "quarantine")

    def read(self, batch: pyarrow.RecordBatch) -> Part:
        """Part the rows of a batch into segments and faults."""
        places = Places(batch, self.columns)
        wrong = self._skipped(places)
        for row, fault in self._unlike(places.log):
            wrong.setdefault(row, []).append(fault)
        rest = [row for row in range(batch.num_rows) if row not in wrong]
        runs, found = self.runs_of(places.log.take(rest) if wrong else places.log)
        doubles: dict[int, list[Fault]] = {}
        for row, faults in found.items():
            double = self.buckets and all(fault.kind in DOUBLE for fault in faults)
            (doubles if double else wrong)[rest[row]] = faults
        return Part(runs, places.all_placed(wrong), places.all_placed(doubles), places)

    def _skipped(self, places: Places) -> dict[int, list[Fault]]:
        """Rows that are left out because of another with the same id."""
        out: dict[int, list[Fault]] = {}
        if self.skip:
            for row in range(len(places.hashes)):
                first = self.skip.get(places.at(row))
                if first is not None:
                    out[row] = [twin(places.at(row)[0], first)]
        return out

    def _unlike(self, batch: pyarrow.RecordBatch) -> Iterator[tuple[int, Fault]]:
        """Rows that say that they are otherwise than the first ones."""
        where = match(batch.schema.names, self.columns).places
        for setting, value in self.said.items():
            column = batch.column(where[setting])
            for row in np.flatnonzero(_arrow().compute.not_equal(column, value).fill_null(False)).tolist():
                yield row, Fault(f"mixed-{setting}", f"{column[row].as_py()}, not {value}")


class Places:
    """Where the rows of a batch come from.

    Attributes:
        log: the batch without what the driver added.
        hashes: of the ids.
    """

    def __init__(self, batch: pyarrow.RecordBatch, columns: Mapping[str, str]) -> None:
        files, rows, hashes = (batch.column(name) for name in ADDED)
        self.log = batch.select([name for name in batch.schema.names if name not in ADDED])
        self.hashes: Hashes = hashes.to_numpy(zero_copy_only=False)
        known = files.dictionary_encode()
        self._columns = columns
        self._paths = [decoded(name) for name in known.dictionary.to_pylist()]
        self._files = known.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        self._rows = rows.fill_null(-1).to_numpy(zero_copy_only=False)

    def at(self, row: int) -> tuple[str, int]:
        """The file of a row, and its number there, from 1; nothing and 0 if that is not known."""
        file = int(self._files[row])
        return ("" if file < 0 else self._paths[file]), int(self._rows[row]) + 1

    @cached_property
    def names(self) -> list[str | None]:
        """The ids of the rows."""
        return as_texts(self.log.column(match(self.log.schema.names, self._columns).places["id"]))

    def placed(self, row: int, fault: Fault) -> Fault:
        """A fault with its place."""
        file, number = self.at(row)
        return replace(fault, path=file or None, line=number or None, segment=self.names[row])

    def all_placed(self, faults: Mapping[int, list[Fault]]) -> dict[int, list[Fault]]:
        """The faults of rows with their places, in the order of the rows."""
        return {row: [self.placed(row, fault) for fault in faults[row]] for row in sorted(faults)}


def twin(file: str, first: tuple[str, int]) -> Fault:
    """The fault of a segment in a file whose id was used before."""
    return Fault("duplicate-id" if file == first[0] else "id-in-two-files", f"first at {first[0]}:{first[1]}")


def decoded(path: str) -> str:
    """A path as people write it.

    Example:
        >>> decoded("file:///data/a%20b.parquet"), decoded("file:/a.parquet"), decoded("s3a://lake/a.parquet")
        ('/data/a b.parquet', '/a.parquet', 's3a://lake/a.parquet')
    """
    return unquote(path.removeprefix("file://") if path.startswith("file://") else path.removeprefix("file:"))


def gathered(batches: Batches) -> Iterator[pyarrow.RecordBatch]:
    """The same rows in larger batches, none of which is empty: what a batch is need not be found out so often."""
    pa, held, rows, size = _arrow(), list[Any](), 0, 0
    for batch in batches:
        held += [batch] if batch.num_rows else []
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= ENOUGH_ROWS or size >= ENOUGH_BYTES:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held, rows, size = [], 0, 0
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()
