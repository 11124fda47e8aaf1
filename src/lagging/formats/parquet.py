# SPDX-License-Identifier: Apache-2.0
"""Parquet, and Arrow's own files: a row per segment, lists as lists. Needs pyarrow (the extra `arrow`).

Columns are found by our names, or by the others that CSV may have. Numbers may be of any width, lists of any kind,
texts plain or as a dictionary. What holds for the whole log (unit, level, name, repairs) is in the metadata of the
schema, as JSON under `lagging`; where it is not, it is resolved from the first rows, as for JSON lines. Some rows are
read at a time, and their lists go from Arrow's memory into a Run without a copy. The line of a segment is its row,
from 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from lagging.data.columns import no_times
from lagging.data.ragged import Ints, Ragged
from lagging.data.run import LISTS, NUMBERS, TEXTS, Run, make_ids, make_texts
from lagging.data.trees import read_json
from lagging.errors import Fault
from lagging.formats import segment_rows
from lagging.formats.arrow_arrays import import_arrow, join_groups, to_floats, to_python, to_ragged, type_faults
from lagging.formats.line import Line
from lagging.formats.options import ReadOptions
from lagging.formats.report import ReadReport
from lagging.formats.row_groups import Batches, opened, recognise
from lagging.formats.schema import (
    OPTIONAL,
    SAMPLE,
    SETTINGS,
    TELLING,
    Sample,
    first_texts,
    is_requested,
    resolve_schema,
)
from lagging.formats.source import Source
from lagging.formats.tables import (
    COUNTS,
    MAPS,
    NEEDED,
    SCALARS,
    WRONG_LIST,
    check_columns,
    check_setting,
    match,
    restore_settings,
)
from lagging.formats.values import labels

if TYPE_CHECKING:
    import pyarrow

__all__ = ["from_batches", "recognise", "scan"]

KEY = b"lagging"
SAMPLED_TABLES = 4
"""How many parts are searched for one in which something was written, to resolve the schema from."""


# ---- a file -----------------------------------------------------------------------------------------------------


def scan(source: Source, options: ReadOptions, report: ReadReport) -> Iterator[Run]:
    """The segments of a file, in parts; faults and notes go to the report."""
    pa = import_arrow()
    try:
        with opened(source, options, report) as (arrow_schema, batches):
            declared = _read_metadata(arrow_schema, source, report)
            if source.portion is not None and source.portion.start:  # counts are of the whole file: counted once
                declared = {name: value for name, value in declared.items() if name not in COUNTS}
            yield from restore_settings(
                _scan_batches(source, options, report, arrow_schema, batches, declared), declared
            )
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        report.faults.add(Fault("not-arrow", str(error).partition("\n")[0][:100], source.path))


def from_batches(
    batches: Sequence[pyarrow.RecordBatch], source: Source, options: ReadOptions, report: ReadReport
) -> Iterator[Run]:
    """The segments of batches of one schema that are in memory; faults and notes go to the report.

    If the source has a schema, they are a part of the log that it describes; else it gets that of the batches.
    """
    arrow_schema = batches[0].schema

    def slices(names: list[str], *, first: bool = False) -> Iterator[pyarrow.RecordBatch]:
        size = segment_rows.SEGMENTS_PER_PART
        chosen = (batch.select(names) for batch in batches)
        return (batch.slice(start, size) for batch in chosen for start in range(0, batch.num_rows, size))

    declared = _read_metadata(arrow_schema, source, report)
    yield from restore_settings(
        _scan_batches(source, options, report, arrow_schema, slices, declared, sample_all=True), declared
    )


def _read_metadata(arrow_schema: pyarrow.Schema, source: Source, report: ReadReport) -> dict[str, Any]:
    """What the metadata declare of the whole table; faults are recorded."""
    text = (arrow_schema.metadata or {}).get(KEY, b"{}")
    try:
        declared = read_json(text.decode("utf-8"))
    except ValueError:
        declared = None
    if not isinstance(declared, dict):
        report.faults.add(Fault("bad-value", f"the metadata `lagging` of the schema are {text[:60]!r}", source.path))
        return {}
    wrong = {name: check_setting(name, value) for name, value in declared.items() if name in SCALARS}
    report.faults.add(*(replace(fault, path=source.path) for faults in wrong.values() for fault in faults))
    return {name: declared[name] for name, faults in wrong.items() if not faults}


def _scan_batches(
    source: Source,
    options: ReadOptions,
    report: ReadReport,
    arrow_schema: pyarrow.Schema,
    batches: Batches,
    declared: dict[str, Any],
    *,
    sample_all: bool = False,
) -> Iterator[Run]:
    """The parts of a table. Its first batches, or all if `sample_all`, give its schema, where the source has none."""
    matched = match(arrow_schema.names, options.column_map, options.group_by)
    if not check_columns(matched, arrow_schema.names, options.column_map, report, source.path):
        return
    types = {column: arrow_schema.field(place).type for column, place in matched.places.items()}
    misfits = [fault for column, kind in types.items() for fault in type_faults(column, kind, source.path)]
    for field in (arrow_schema.field(place) for place in matched.by):
        if import_arrow().types.is_nested(field.type):
            misfits.append(
                Fault("bad-value", f"segments cannot be grouped by {field.name}, of {field.type}", source.path)
            )
    if misfits:
        report.faults.add(*misfits)
        return
    requested = [
        c for c in types if c not in MAPS and (c not in OPTIONAL or c in TELLING or is_requested(c, options, "ms"))
    ]
    names = {column: arrow_schema.names[matched.places[column]] for column in requested}
    group_by = tuple(arrow_schema.names[place] for place in matched.by)
    unread = frozenset(column for column in types if column in LISTS and column not in requested)
    portion = source.portion

    def read(rows: int = 0, *, first: bool = False) -> Iterator[_Table]:
        parts = _numbered(batches(list(dict.fromkeys((*names.values(), *group_by))), first=first), rows, source)
        return (_Table(source, report, declared, names, group_by, row, batch) for row, batch in parts)

    tables = read(0 if portion is None else portion.first - 1)
    schema, sampled = source.schema, list[_Table]()
    if schema is None or sample_all:
        rows, written = 0, False
        for table in tables if portion is None or portion.first == 1 else read(first=True):
            sampled.append(table)
            rows, written = rows + len(table), written or len(table.columns["delays"].values) > 0
            if not sample_all and rows >= SAMPLE and (written or len(sampled) >= SAMPLED_TABLES):
                break
        if not sampled:
            return
        sample = _sample(sampled, declared, unread, sample_all)
        schema = resolve_schema(source, options, report, sample) if schema is None else schema.extend(sample)
    source.schema = source.schema or schema
    if portion is not None and portion.first > 1:
        sampled.clear()  # they are of another portion
    reader = segment_rows.Reader(source, options, report, schema)
    while sampled:
        yield from sampled.pop(0).runs(reader)
    for table in tables:
        yield from table.runs(reader)


def _sample(tables: Sequence[_Table], declared: dict[str, Any], unread: frozenset[str], sample_all: bool) -> Sample:
    """The first rows of tables, by column."""
    rows = [(table, table.sample(sample_all)) for table in tables]

    def values(column: str) -> list[Any]:
        """The values of a column; UNSET where the file has none."""
        return [value for table, numbers in rows for value in table.values(column, numbers)]

    def defined(column: str) -> bool:
        """Whether a column of lists or numbers is not null in some row."""
        return any(column in table.missing and not table.missing[column][numbers].all() for table, numbers in rows)

    def present(column: str) -> bool:
        """Whether a column has a value in some row."""
        return any(table.has_value(column)[numbers].any() for table, numbers in rows)

    lengths = [int(n) for table, numbers in rows for n in table.columns["delays"].lengths[numbers]]
    settings = {name: values(name) if name in tables[0].read else [declared.get(name)] for name in SETTINGS}
    return Sample(
        predictions=values("prediction"),
        lengths=lengths,
        sources=values("source"),
        source_lengths=values("source_length"),
        declared=first_texts(settings),
        timed=defined("delays"),
        has_durations=defined("durations"),
        has_id=any(value is not UNSET and value is not None for value in values("id")),
        has_reference=any(isinstance(text, str) for text in values("reference")),
        present=frozenset((*unread, *first_texts(settings), *filter(present, tables[0].read))),
    )


def _numbered(
    batches: Iterator[pyarrow.RecordBatch], rows: int, source: Source
) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
    """The batches, each with the number of rows before it."""
    for batch in batches:
        yield rows, batch
        rows += batch.num_rows
        if source.progress is not None:
            source.progress(batch.nbytes)


# ---- some rows --------------------------------------------------------------------------------------------------


@dataclass
class _Table:
    """Some rows of a file, by column.

    Attributes:
        source, report: the file, and what was found in it.
        declared: what holds for the whole file.
        read: the columns that are read, with the names that the file has for them.
        group_by: the names that the file has for the columns of the groups.
        before: the number of rows before these.
        batch: the rows, in Arrow.
    """

    source: Source
    report: ReadReport
    declared: dict[str, Any]
    read: dict[str, str]
    group_by: tuple[str, ...]
    before: int
    batch: Any

    def __post_init__(self) -> None:
        """Convert the columns from Arrow; rows with impossible values are marked to be left out."""
        self.columns: dict[str, Any] = {}
        self.missing: dict[str, npt.NDArray[np.bool_]] = {}
        self.faults: dict[int, list[Fault]] = {}
        for column, name in self.read.items():
            array = self.batch.column(name)
            if column == "delays" or column in LISTS:
                ragged, self.missing[column], null = to_ragged(array)
                self.columns[column] = ragged
                if null.any() and column != "shown":
                    rows, tokens = ragged.owner(np.flatnonzero(null))
                    rows, first = np.unique(rows, return_index=True)
                    for row, token in zip(rows.tolist(), tokens[first].tolist(), strict=True):
                        self._wrong(row, WRONG_LIST.get(column, ("", "bad-column"))[1], f"{column} null", token + 1)
            elif column == "source_length" or column in NUMBERS:
                self.columns[column], self.missing[column] = to_floats(array)
            elif column == "id" and import_arrow().types.is_signed_integer(array.type) and not array.null_count:
                self.columns[column] = array.to_numpy().astype(np.int64, copy=False)
            else:
                self.columns[column] = [self._text(row, column, v) for row, v in enumerate(to_python(array))]
        self.groups = join_groups([self.batch.column(name) for name in self.group_by]) if self.group_by else None
        for column in (c for c in NEEDED if c not in self.columns):
            nothing = to_ragged if column == "delays" else to_floats
            self.columns[column], self.missing[column], *_ = nothing(import_arrow().nulls(len(self)))

    def _wrong(self, row: int, kind: str, detail: str, token: int | None = None) -> None:
        self.faults.setdefault(row, []).append(Fault(kind, detail, token=token))

    def _text(self, row: int, column: str, value: Any) -> Any:
        """A value that is neither a number nor a list; its faults are recorded."""
        if isinstance(value, bytes):
            self._wrong(row, "not-utf8", f"{column} has bytes that are no text")
        elif column == "id" and isinstance(value, float):
            if value.is_integer():
                return int(value)
            self._wrong(row, "bad-id", str(value))
        elif column == "name" and value is not None and self.declared.setdefault("name", value) != value:
            self._wrong(row, "several-systems", f"{value!r}, but {self.declared['name']!r} before")
        return value

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.batch.num_rows)

    def line(self, row: int) -> Line:
        """One row by itself."""
        values: dict[str, Any] = {setting: self.declared.get(setting, UNSET) for setting in SETTINGS}
        for column in self.read:
            value = self.columns[column][row]
            if column in self.missing:
                value = None if self.missing[column][row] else value.tolist()
            value = int(value) if isinstance(value, np.integer) else value
            if column in Line.__struct_fields__:
                values[column] = UNSET if value is None and column in ("id", *SETTINGS) else value
        return Line(**values)

    def sample(self, of_every_column: bool) -> Ints:
        """The numbers of the first rows, and of the first in which something was written.

        With `of_every_column`, also the first row that has a value in each column.
        """
        rows = set(range(min(len(self), SAMPLE)))
        rows |= set(np.flatnonzero(self.columns["delays"].lengths)[:SAMPLE].tolist())
        for column in self.read if of_every_column else ():
            rows |= set(np.flatnonzero(self._is_filled(column))[:1].tolist())
        return np.array(sorted(rows - self.faults.keys()), dtype=np.int64)

    def values(self, column: str, rows: Ints) -> list[Any]:
        """The values of a column of texts or numbers in some rows; None for null, UNSET without the column."""
        if column not in self.read:
            return [UNSET] * len(rows)
        missing, values = self.missing.get(column), self.columns[column]
        if missing is None:
            return [values[row] for row in rows.tolist()]
        return [None if missing[row] else values[row].item() for row in rows.tolist()]

    def has_value(self, column: str) -> npt.NDArray[np.bool_]:
        """Which rows have a value in a column, be it an empty text."""
        values = self.columns[column]
        if isinstance(values, Ragged):
            return values.lengths > 0
        if column in self.missing:
            return ~self.missing[column]
        return np.array([value is not None and value != [] for value in values], dtype=bool)

    def runs(self, reader: segment_rows.Reader) -> Iterator[Run]:
        """The rows as a Run, without those that cannot be in one; nothing if none can."""
        kept = self._kept(reader)
        if not kept.any():
            return
        chosen = slice(None) if kept.all() else kept
        rows = np.arange(1, len(self) + 1) + self.before
        schema = reader.schema
        texts = {c: np.array([*self.columns[c], None], dtype=object)[:-1][chosen] for c in TEXTS if c in self.columns}
        ids = self.columns["id"] if schema.has_id else rows - 1 + self.report.placed
        ids = ids if isinstance(ids, np.ndarray) else np.array([*ids, None], dtype=object)[:-1]
        names = ids[chosen]
        for column in (*schema.absent, *(() if schema.has_text or schema.speech_out else ("prediction",))):
            if column in self.columns:
                reader.left_out(column, ids[self._is_filled(column) & kept].tolist())
        columns = {c: self.columns[c] for c in (*LISTS, *NUMBERS) if c in schema.columns and c in self.columns}
        columns |= {c: self.columns[c] for c in NEEDED}
        numbers = {c: v.take(chosen) if isinstance(v, Ragged) else v[chosen] for c, v in columns.items()}
        if schema.untimed:
            written = texts.get("prediction", np.full(len(names), None))
            numbers |= {"delays": no_times(written, schema.level), "source_length": np.full(len(names), np.nan)}
        yield reader.checked(
            **numbers,
            **{c: labels(texts[c].tolist()) for c in ("source", "document") if c in schema.columns and c in texts},
            id=names if names.dtype != object else make_ids(names.tolist()),
            prediction=make_texts(texts["prediction"]) if reader.keeps_prediction else None,
            reference=reader.references({"id": names.tolist(), "reference": texts["reference"].tolist()})
            if "reference" in texts
            else None,
            line=rows[chosen],
            group=None if self.groups is None else self.groups[chosen],
        )

    def _is_filled(self, column: str) -> npt.NDArray[np.bool_]:
        """Which rows have a value in a column that is not empty."""
        if isinstance(self.columns[column], Ragged) or column in self.missing:
            return self.has_value(column)
        return np.array([bool(value) for value in self.columns[column]])

    def _kept(self, reader: segment_rows.Reader) -> npt.NDArray[np.bool_]:
        """Which rows have what a segment must have; faults of the others are recorded."""
        schema = reader.schema
        missing = self.missing["delays"]
        doubtful = ~missing if schema.untimed else missing | self.missing["source_length"]
        for column in ("id", *SETTINGS, *(["prediction"] if schema.has_text else [])):
            if isinstance(self.columns.get(column), list):
                allowed = (None, getattr(schema, column)) if column in SETTINGS else ()
                doubtful |= np.array([(v is None) if not allowed else v not in allowed for v in self.columns[column]])
        kept = np.ones(len(self), dtype=bool)
        for row, wrong in self.faults.items():
            name = self.line(row).id
            known = None if isinstance(name, bytes | float) or name is UNSET else name
            self.report.refuse(wrong, self.source, self.before + row + 1, known)
            kept[row] = False
        for row in np.flatnonzero(doubtful & kept).tolist():
            kept[row] = not reader.refuse(self.line(row), self.before + row + 1)
        return kept
