# SPDX-License-Identifier: Apache-2.0
"""What executors compute: functions from Arrow batches to Arrow batches, which do not need Spark.

Partitions return rows of kind, key and data, so that one shuffle carries all of them:

    tally    group and metric   a Tally
    ids      bucket             hashes of ids, 8 bytes each
    faults   –                  the faults of a partition: the first thousand of each kind, and the number of all
    repeated –                  the same, of ids that occur before in a batch
    notes    –                  its notes, whether it has references, and why metrics cannot be computed on it
    error    –                  the message of an error in the request

After the shuffle there are no `tally` and `ids`, but

    score    group and metric   the Tally of all partitions without its sums over buckets, and the interval
    twice    –                  hashes that occur more than once
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from lagging.errors import Fault, Faults, LaggingError, Note, optional
from lagging.formats.quarantine import reason_of
from lagging.formats.tables import joined_labels
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.arrow import read_batch, score_rows
from lagging.scoring.spark.batches import ADDED, Batches, Hashes, Places, Task, combine_batches
from lagging.scoring.tally import Tally
from lagging.stats.intervals import Interval

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "FAULTS",
    "PLACES",
    "ROWS",
    "decode_faults",
    "decode_notes",
    "decode_score",
    "list_faults",
    "locate_ids",
    "merge_partitions",
    "score_segments",
    "select_valid",
    "tally_partition",
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

MAX_REPEATED = 100_000
"""The number of ids that may occur twice: their places are held in memory."""


def _arrow() -> Any:
    return optional("pyarrow", "spark")


def _batch(types: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> pyarrow.RecordBatch:
    pa = _arrow()
    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    arrays = [pa.array(column, pa.type_for_alias(kind)) for column, kind in zip(columns, types.values(), strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(types))


def _encode(value: Any) -> bytes:
    return msgspec.msgpack.encode(value)


# ---- one pass ---------------------------------------------------------------------------------------------------


def tally_partition(task: Task, batches: Batches) -> Iterator[pyarrow.RecordBatch]:
    """Add up the scores of a partition, and collect its faults, notes and hashes of ids."""
    try:
        accumulator, faults, repeated = Accumulator(task.plan), Faults(), Faults()
        hashes: list[Hashes] = []
        for batch in combine_batches(batches):
            rows = task.read(batch)
            for run in rows.runs:
                accumulator.add(run)
            faults.add(*chain.from_iterable(rows.faults.values()))
            repeated.add(*chain.from_iterable(rows.repeated.values()))
            hashes.append(rows.hashes)
    except LaggingError as error:
        yield _batch(ROWS, [("error", "", str(error).encode())])
        return
    answers: list[tuple[str, str, bytes]] = []
    for group, tallies in accumulator.groups.items():
        answers += [("tally", joined_labels((*group, repr(m))), tally.to_bytes()) for m, tally in tallies.items()]
    for kind, collected in (("faults", faults), ("repeated", repeated)):
        if collected:
            answers.append((kind, "", _encode((collected.kept, collected.counts))))
    unavailable = {repr(m): text for m, text in accumulator.unavailable.items()}
    answers.append(("notes", "", _encode((accumulator.all_notes(), accumulator.has_references, unavailable))))
    yield _batch(ROWS, answers)
    if task.buckets and hashes:
        yield _batch(ROWS, [("ids", str(bucket), part.tobytes()) for bucket, part in _divide(hashes, task.buckets)])


def _divide(hashes: Sequence[Hashes], buckets: int) -> Iterator[tuple[int, Hashes]]:
    """Hashes by bucket."""
    joined = np.concatenate(hashes).astype("<i8")
    bucket = (joined.view("<u8") % np.uint64(buckets)).astype(np.int64)
    order = np.argsort(bucket, kind="stable")
    ends = np.cumsum(np.bincount(bucket, minlength=buckets))
    for number, part in enumerate(np.split(joined[order], ends[:-1])):
        if len(part):
            yield number, part


def merge_partitions(task: Task, batches: Batches) -> Iterator[pyarrow.RecordBatch]:
    """Add up what all partitions return for certain keys: Tallies with their intervals, and ids that occur twice."""
    tallies: dict[str, Tally] = {}
    hashes: dict[str, list[Hashes]] = {}
    try:
        for batch in batches:
            for row in batch.to_pylist():
                kind, key, data = row["kind"], row["key"], row["data"]
                if kind == "tally":
                    tally = Tally.from_bytes(data)
                    tallies[key] = tallies[key] + tally if key in tallies else tally
                elif kind == "ids":
                    hashes.setdefault(key, []).append(np.frombuffer(data, "<i8"))
                else:
                    yield _batch(ROWS, [(kind, key, data)])
        for key, tally in tallies.items():
            interval = None if tally.seed is None else tally.interval(task.confidence, task.resamples)
            small = replace(tally, seed=None, bucket_sums=None)
            yield _batch(ROWS, [("score", key, _encode((small.to_bytes(), interval)))])
    except LaggingError as error:
        yield _batch(ROWS, [("error", "", str(error).encode())])
        return
    for parts in hashes.values():
        values, counts = np.unique(np.concatenate(parts), return_counts=True)
        if (counts > 1).any():
            yield _batch(ROWS, [("twice", "", values[counts > 1][: MAX_REPEATED + 1].tobytes())])


def decode_score(data: bytes) -> tuple[Tally, Interval | None]:
    """The Tally and the interval of a row `score`."""
    tally, interval = msgspec.msgpack.decode(data, type=tuple[bytes, Interval | None])
    return Tally.from_bytes(tally), interval


def decode_notes(data: bytes) -> tuple[list[Note], bool, dict[str, str]]:
    """The notes of a partition, whether it has references, and why metrics cannot be computed on it."""
    return msgspec.msgpack.decode(data, type=tuple[list[Note], bool, dict[str, str]])


def decode_faults(data: bytes) -> tuple[list[Fault], dict[str, int]]:
    """The faults of a partition, and the number of each kind."""
    return msgspec.msgpack.decode(data, type=tuple[list[Fault], dict[str, int]])


# ---- rows -------------------------------------------------------------------------------------------------------


def locate_ids(task: Task, hashes: frozenset[int], batches: Batches) -> Iterator[pyarrow.RecordBatch]:
    """Ids and places of the segments whose ids have one of these hashes."""
    requested = np.array(sorted(hashes), dtype=np.int64)
    for batch in batches:
        chosen = batch.filter(_arrow().array(np.isin(batch.column(ADDED[2]).to_numpy(zero_copy_only=False), requested)))
        if chosen.num_rows:
            rows = task.read(chosen)
            ids = enumerate(rows.places.ids)
            yield _batch(PLACES, [(name, *rows.places[row]) for row, name in ids if row not in rows.faults])


def score_segments(task: Task, batches: Batches) -> Iterator[pyarrow.RecordBatch]:
    """The scores of segments, as `lagging.scoring.arrow.score_batch` returns them; rows with faults have none."""
    for batch in combine_batches(batches):
        rows = task.read(batch)
        yield score_rows(rows.places.log, rows.runs, rows.faults | rows.repeated, task.plan, task.options)


def list_faults(task: Task, batches: Batches) -> Iterator[pyarrow.RecordBatch]:
    """The faults of a partition, a row each."""
    for batch in combine_batches(batches):
        faults = chain.from_iterable(task.read(batch).faults.values())
        yield _batch(FAULTS, [(f.path, f.line, f.segment, f.kind, reason_of(f), f.detail, f.token) for f in faults])


def select_valid(task: Task, batches: Batches) -> Iterator[pyarrow.RecordBatch]:
    """The rows without faults; the unit, which is not known yet, may be guessed."""
    for batch in combine_batches(batches):
        places = Places(batch, task.options.column_map)
        runs, _ = read_batch(places.log, task.options, "quarantine", guess=True)
        rows = [run.line - 1 for run in runs if run.line is not None]
        if rows:
            yield batch.take(np.concatenate(rows))
