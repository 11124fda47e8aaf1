# SPDX-License-Identifier: Apache-2.0
"""What executors do: functions from Arrow batches to Arrow batches, which know nothing of Spark.

What they answer are rows of kind, key and data, so that one shuffle carries all:

    tally   group and metric   a tally
    ids     bucket             hashes of ids, 8 bytes each
    faults  –                  the faults of a partition, the first thousand of each kind, and how many there are
    doubles –                  the same, of ids that a batch had before
    notes   –                  its notes, and whether it came with references
    error   –                  what was wrong with the question

and, after the shuffle, also

    score   group and metric   a row of scores, and the tally without what only intervals need
    twice   –                  hashes that occur more than once
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
import numpy as np
import numpy.typing as npt

from lagging.arrow import finish_tallies, runs_of, score_batch, scores_schema, tallies_schema
from lagging.conventions import Convention
from lagging.defaults import default_metrics
from lagging.errors import Fault, Faults, LaggingError, Note, optional
from lagging.formats.columns import joined_labels, labels_of, match
from lagging.formats.parquet import as_texts
from lagging.formats.quarantine import reason_of
from lagging.run import Run
from lagging.tallies import RESAMPLES, SEED, Tallies, Tally

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "ADDED",
    "FAULTS",
    "PLACES",
    "ROWS",
    "Facts",
    "Task",
    "decoded",
    "facts_of",
    "faults_of",
    "faulty",
    "located",
    "merged",
    "notes_of",
    "score_of",
    "segments",
    "settled",
    "tallied",
    "twin",
]

Batches = Iterable["pyarrow.RecordBatch"]
Hashes = npt.NDArray[np.int64]

ADDED = ("__lagging_file", "__lagging_row", "__lagging_hash")
"""Columns that the driver adds: where a row comes from, and the hash of its id."""

ROWS = {"kind": "string", "key": "string", "data": "binary"}
FAULTS = {
    "file": "string",
    "row": "int64",
    "id": "string",
    "kind": "string",
    "reason": "string",
    "detail": "string",
    "token": "int64",
}
PLACES = {"id": "string", "file": "string", "row": "int64"}

DOUBLE = ("duplicate-id", "id-in-two-files")
MOST = 100_000
"""How many ids that occur twice are told of."""


def _arrow() -> Any:
    return optional("pyarrow", "spark")


def _batch(names: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> pyarrow.RecordBatch:
    pa = _arrow()
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    types = [pa.type_for_alias(kind) for kind in names.values()]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def _coded(value: Any) -> bytes:
    return msgspec.msgpack.encode(value)


# ---- reading ----------------------------------------------------------------------------------------------------


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


# ---- one pass ---------------------------------------------------------------------------------------------------


def tallied(task: Task, batches: Batches) -> Iterator[pyarrow.RecordBatch]:
    """What a partition adds to the scores, and what is wrong with it."""
    try:
        tallies, faults, doubles = (
            Tallies(task.metrics, task.convention, by=task.by, seed=task.seed),
            Faults(),
            Faults(),
        )
        hashes: list[Hashes] = []
        for batch in batches:
            if batch.num_rows:
                part = task.read(batch)
                for run in part.runs:
                    tallies.add(run)
                faults.add(*chain.from_iterable(part.faults.values()))
                doubles.add(*chain.from_iterable(part.doubles.values()))
                hashes.append(part.hashes)
    except LaggingError as error:
        yield _batch(ROWS, [("error", "", str(error).encode())])
        return
    rows: list[tuple[str, str, bytes]] = []
    for group, of in tallies.groups.items():
        rows += [("tally", joined_labels((*group, repr(m))), one.to_bytes()) for m, one in of.items()]
    for kind, some in (("faults", faults), ("doubles", doubles)):
        if some:
            rows.append((kind, "", _coded((some.kept, some.counts))))
    rows.append(("notes", "", _coded((tallies.notes, tallies.referenced))))
    yield _batch(ROWS, rows)
    if task.buckets and hashes:
        yield _batch(ROWS, [("ids", str(bucket), some.tobytes()) for bucket, some in _parted(hashes, task.buckets)])


def _parted(hashes: Sequence[Hashes], buckets: int) -> Iterator[tuple[int, Hashes]]:
    """Hashes by bucket."""
    found = np.concatenate(hashes).astype("<i8")
    bucket = (found.view("<u8") % np.uint64(buckets)).astype(np.int64)
    order = np.argsort(bucket, kind="stable")
    ends = np.cumsum(np.bincount(bucket, minlength=buckets))
    for number, some in enumerate(np.split(found[order], ends[:-1])):
        if len(some):
            yield number, some


def merged(task: Task, batches: Batches) -> Iterator[pyarrow.RecordBatch]:
    """What all partitions say of some groups and metrics, as scores; and the ids that some of them share."""
    found: dict[str, Tally] = {}
    hashes: dict[str, list[Hashes]] = {}
    try:
        for batch in batches:
            for row in batch.to_pylist():
                kind, key, data = row["kind"], row["key"], row["data"]
                if kind == "tally":
                    one = Tally.from_bytes(data)
                    found[key] = found[key] + one if key in found else one
                elif kind == "ids":
                    hashes.setdefault(key, []).append(np.frombuffer(data, "<i8"))
                else:
                    yield _batch(ROWS, [(kind, key, data)])
        for key, one in found.items():
            yield _batch(ROWS, [("score", key, _finished(task, key, one))])
    except LaggingError as error:
        yield _batch(ROWS, [("error", "", str(error).encode())])
        return
    for some in hashes.values():
        names, counts = np.unique(np.concatenate(some), return_counts=True)
        if (counts > 1).any():
            yield _batch(ROWS, [("twice", "", names[counts > 1][: MOST + 1].tobytes())])


def _finished(task: Task, key: str, one: Tally) -> bytes:
    """A row of scores, and the tally without its lots."""
    *labels, name = labels_of(key, len(task.by) + 1)
    row = dict(zip(task.by, labels, strict=True)) | {"metric": name, "n": one.n, "tally": one.to_bytes()}
    batch = _arrow().RecordBatch.from_pylist([row], schema=tallies_schema(by=task.by))
    total = finish_tallies(batch, by=task.by, level=task.confidence, resamples=task.resamples)
    return _coded((total.to_pylist()[0], replace(one, seed=None, lots=None).to_bytes()))


# ---- the rest ---------------------------------------------------------------------------------------------------


def located(task: Task, twice: frozenset[int], batches: Batches) -> Iterator[pyarrow.RecordBatch]:
    """Ids and places of the segments with one of these hashes."""
    wanted = np.array(sorted(twice), dtype=np.int64)
    for batch in batches:
        hashes = batch.column(ADDED[2]).to_numpy(zero_copy_only=False)
        some = batch.filter(_arrow().array(np.isin(hashes, wanted)))
        if some.num_rows:
            part = task.read(some)
            rows = [
                (name, *part.places.at(row)) for row, name in enumerate(part.places.names) if row not in part.faults
            ]
            yield _batch(PLACES, rows)


def segments(task: Task, batches: Batches) -> Iterator[pyarrow.RecordBatch]:
    """The scores of segments, as `lagging.arrow.score_batch` gives them; rows with faults have none."""
    pa = _arrow()
    schema = scores_schema(task.metrics, by=task.by)
    how: dict[str, Any] = {
        "convention": task.convention,
        "columns": task.columns,
        "unit": task.unit,
        "level": task.level,
    }
    for batch in batches:
        if not batch.num_rows:
            continue
        part = task.read(batch)
        wrong = part.faults | part.doubles
        good = [row for row in range(batch.num_rows) if row not in wrong]
        if good:
            log = part.places.log.take(good)
            yield score_batch(log, task.metrics, by=task.by, repair=task.repair, on_error="quarantine", **how)
        if wrong:
            bad = part.places.log.take(list(wrong))
            columns: dict[str, Any] = {"id": [part.places.names[row] for row in wrong]}
            columns["fault"] = ["; ".join(dict.fromkeys(map(reason_of, of))) for of in wrong.values()]
            for name, place in zip(task.by, match(bad.schema.names, task.columns, task.by).by, strict=True):
                columns[name] = as_texts(bad.column(place))
            arrays = [pa.array(columns.get(f.name, [None] * len(wrong)), f.type) for f in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def faulty(task: Task, batches: Batches) -> Iterator[pyarrow.RecordBatch]:
    """The faults of a partition, a row each."""
    for batch in batches:
        if batch.num_rows:
            found = chain.from_iterable(task.read(batch).faults.values())
            rows = [(f.path, f.line, f.segment, f.kind, reason_of(f), f.detail, f.token) for f in found]
            yield _batch(FAULTS, rows)


class Facts(msgspec.Struct, array_like=True, order=True):
    """What a log is, as its first segment tells, and where that is.

    Attributes:
        file, row: of the segment.
        unit, level, seg: what holds for the whole log.
        usual: the metrics that are scored if nobody says which.
    """

    file: str
    row: int
    unit: str
    level: str
    seg: str
    usual: tuple[str, ...]

    @classmethod
    def of(cls, run: Run, file: str, row: int) -> Facts:
        """What a Run tells."""
        return cls(file, row, run.unit, run.level, run.seg, default_metrics(run))


def settled(task: Task, batches: Batches) -> Iterator[pyarrow.RecordBatch]:
    """What the first segment of a partition tells."""
    for batch in batches:
        if batch.num_rows and (part := task.read(batch)).runs:
            run = part.runs[0]
            row = part.places.names.index(str(run.id.item(0)))
            yield _batch(ROWS, [("facts", "", _coded(Facts.of(run, *part.places.at(row))))])
            return


def facts_of(data: bytes) -> Facts:
    """What the first segment of a partition tells."""
    return msgspec.msgpack.decode(data, type=Facts)


def notes_of(data: bytes) -> tuple[list[Note], bool]:
    """The notes of a partition, and whether it came with references."""
    return msgspec.msgpack.decode(data, type=tuple[list[Note], bool])


def faults_of(data: bytes) -> tuple[list[Fault], dict[str, int]]:
    """The faults of a partition, and how many there are of each kind."""
    return msgspec.msgpack.decode(data, type=tuple[list[Fault], dict[str, int]])


def score_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    """A row of scores, and a tally."""
    return msgspec.msgpack.decode(data, type=tuple[dict[str, Any], bytes])
