# SPDX-License-Identifier: Apache-2.0
"""One JSON object per line: SimulEval's `instances.log` (1.0, 1.1.0, 1.1.4; text, speech, speech out) and our own.

A batch of lines is decoded at once by msgspec. Only where that fails is each line looked at by itself, to say what is
wrong with it, and where.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, get_type_hints

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from lagging.data.checks import check
from lagging.data.ragged import Ragged
from lagging.data.run import Origin, Run, make_ids
from lagging.errors import UsageError
from lagging.formats.line import FIELDS, Line, decode, explain, name_of, read_as_is
from lagging.formats.options import ReadOptions
from lagging.formats.report import ReadReport
from lagging.formats.schema import (
    KEYS,
    OPTIONAL,
)
from lagging.formats.segment_rows import Rows, collect, collect_portion
from lagging.formats.source import Batch, Source
from lagging.formats.tables import joined_labels, label

__all__ = ["scan"]


def scan(source: Source, options: ReadOptions, report: ReadReport) -> Iterator[Run]:
    """The segments of a log, in parts; faults and notes go to the report."""
    decoder = _Decoder(source, options, report)
    collector = collect if source.portion is None else collect_portion
    return collector(source, options, report, decoder)


class _Decoder:
    """Turns lines of JSON into rows."""

    def __init__(self, source: Source, options: ReadOptions, report: ReadReport) -> None:
        self.source, self.options, self.report = source, options, report
        self.fields = frozenset(Line.__struct_fields__)
        self.keys = _keys(options)
        called = {key: name for name in self.fields for key in (name, self.keys.get(name, name))}
        self._by = [called.get(name, f"by_{place}") for place, name in enumerate(options.group_by)]
        self._labels = {f: n for f, n in zip(self._by, options.group_by, strict=True) if f not in self.fields}
        self._json = self._decoder()
        self._bare: msgspec.json.Decoder[Any] | None = None
        self._blank = 0

    def only(self, columns: Iterable[str], absent: Iterable[str]) -> None:
        """From now on skip the columns that are not requested; the `absent` ones are still looked for."""
        self.fields -= set(OPTIONAL) - {*columns, *absent, *self._by}
        self._json = self._decoder()
        self._bare = self._decoder(set(absent) - set(self._by))

    def _decoder(self, absent: Collection[str] = ()) -> msgspec.json.Decoder[Any]:
        """A decoder of the fields; it fails on a row that has a value in one of the absent columns."""
        kinds = {**get_type_hints(Line), **dict.fromkeys(absent, UnsetType | None)}
        fields = [(name, kind, UNSET) for name, kind in kinds.items() if name in self.fields]
        labels = [(name, Any, UNSET) for name in self._labels]
        keys = {**self.keys, **self._labels}
        try:
            return msgspec.json.Decoder(msgspec.defstruct("Line", fields + labels, gc=False, rename=keys or None))
        except ValueError as error:  # a key with a quote, or two fields of one key
            raise UsageError(f"--by or --column-map: {error}") from None

    def _groups(self, rows: Iterable[Any]) -> list[str]:
        """The labels of each row, if groups are requested."""
        return [joined_labels([label(getattr(row, name)) for name in self._by]) for row in rows if self._by]

    def chunks(self) -> Iterator[Rows]:
        """The rows of each batch; at the end, a note says what was skipped."""
        for batch in self.source.batches():
            yield self.decode(batch)
        self.report.note_blank_lines(self.source, self._blank)

    def decode(self, batch: Batch) -> Rows:
        """The rows of a batch; a batch that cannot be decoded at once is decoded line by line."""
        rows = None if self._bare is None else decode(batch, self._bare)
        bare = rows is not None
        if rows is None:
            rows = decode(batch, self._json)
            if rows is None:
                return self._one_by_one(batch)
            self._bare = None  # an absent column is there, or is an empty list: check each row from now on
        first = batch.first
        places = first - 1 - self._blank + self.report.placed
        return Rows(rows, list(batch.numbers), list(range(places, places + len(rows))), self._groups(rows), bare)

    def _one_by_one(self, batch: Batch) -> Rows:
        decoded = Rows()
        names = {self.keys.get(name, name): name for name in FIELDS if name in self.fields}
        for nth, (number, line) in enumerate(zip(batch.numbers, batch.lines, strict=True), batch.first):
            if not line.strip():
                self._blank += 1
                continue
            readers = {key: FIELDS[name] for key, name in names.items()}
            values, faults = explain(line, readers | dict.fromkeys(self._labels.values(), read_as_is))
            labels = [None if values is None else values.pop(key, None) for key in self._labels.values()]
            row = None if values is None else Line(**{names[key]: value for key, value in values.items()})
            place = nth - 1 - self._blank + self.report.placed
            if not faults and row is not None:
                decoded.rows.append(row)
                decoded.lines.append(number)
                decoded.places.append(place)
                if self._by:
                    own = dict(zip(self._labels, labels, strict=True))
                    decoded.groups.append(joined_labels([label(own.get(n, getattr(row, n, None))) for n in self._by]))
                continue
            if not self.report.leave_out_torn(faults, self.source, number, self.options.repair):
                self.report.refuse(faults, self.source, number, None if row is None else name_of(row))
            if row is not None:
                self._look_further(row, number)
        return decoded

    def _look_further(self, row: Line, line: int) -> None:
        """Report further faults of a line that is left out for one."""
        if not row.delays:
            return
        name = name_of(row)
        alone = Run(
            delays=Ragged.from_rows([row.delays]),
            source_length=np.array([row.source_length if isinstance(row.source_length, float) else 0.0]),
            id=make_ids(["" if name is None else name]),
            line=np.array([line]),
            origin=Origin(self.source.path),
        )
        self.report.faults.add(*check(alone))


def _keys(options: ReadOptions) -> dict[str, str]:
    """The keys of the fields that have other names in the lines."""
    keys = {**KEYS.get(options.format or "", {}), **options.column_map}
    mapped = set(options.column_map.values())
    for name in Line.__struct_fields__:  # a key with our name may mean something else
        displaced = keys.get(name, name) in mapped or (name == "index" and "id" in options.column_map)
        if displaced and name not in options.column_map:
            keys[name] = f"\ue000{name}"  # a key that no line has
    return keys
