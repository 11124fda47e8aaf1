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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from lagging.data.run import Run
from lagging.errors import Fault, Faults, LaggingError, Note, optional
from lagging.formats.parquet import as_texts
from lagging.formats.quarantine import reason_of
from lagging.formats.tables import joined_labels, labels_of, match
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.arrow import finish_tallies, score_batch, scores_schema, tallies_schema
from lagging.scoring.plan import default_metrics
from lagging.scoring.spark.batches import ADDED, Batches, Hashes, Task, gathered
from lagging.scoring.tally import Tally

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "FAULTS",
    "PLACES",
    "ROWS",
    "Facts",
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
]

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


# ---- one pass ---------------------------------------------------------------------------------------------------


def tallied(task: Task, batches: Batches) -> Iterator[pyarrow.RecordBatch]:
    """What a partition adds to the scores, and what is wrong with it."""
    try:
        accumulator, faults, doubles = Accumulator(task.plan), Faults(), Faults()
        hashes: list[Hashes] = []
        for batch in gathered(batches):
            part = task.read(batch)
            for run in part.runs:
                accumulator.add(run)
            faults.add(*chain.from_iterable(part.faults.values()))
            doubles.add(*chain.from_iterable(part.doubles.values()))
            hashes.append(part.hashes)
    except LaggingError as error:
        yield _batch(ROWS, [("error", "", str(error).encode())])
        return
    rows: list[tuple[str, str, bytes]] = []
    for group, of in accumulator.groups.items():
        rows += [("tally", joined_labels((*group, repr(m))), one.to_bytes()) for m, one in of.items()]
    for kind, some in (("faults", faults), ("doubles", doubles)):
        if some:
            rows.append((kind, "", _coded((some.kept, some.counts))))
    rows.append(("notes", "", _coded((accumulator.all_notes(), accumulator.has_references))))
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
    total = finish_tallies(batch, by=task.by, confidence=task.confidence, resamples=task.resamples)
    return _coded((total.to_pylist()[0], replace(one, seed=None, bucket_sums=None).to_bytes()))


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
    """The scores of segments, as `lagging.scoring.arrow.score_batch` gives them; rows with faults have none."""
    pa = _arrow()
    schema = scores_schema(task.metrics, by=task.by)
    how: dict[str, Any] = {
        "convention": task.convention,
        "columns": task.columns,
        "unit": task.unit,
        "level": task.level,
    }
    for batch in gathered(batches):
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
    for batch in gathered(batches):
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
    for batch in gathered(batches):
        if (part := task.read(batch)).runs:
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
