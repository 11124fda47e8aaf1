# SPDX-License-Identifier: Apache-2.0
"""One JSON object per line: SimulEval's `instances.log` (1.0, 1.1.0, 1.1.4; text, speech, speech out) and our own.

A batch of lines is decoded at once by msgspec. Only where that fails is each line looked at by itself, to say what is
wrong with it, and where.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, Protocol, get_type_hints

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from lagging.data.checks import about, check, remark, repair
from lagging.data.columns import no_times
from lagging.data.ragged import Ragged
from lagging.data.run import LISTS, NUMBERS, WRONG, Origin, Run, Texts, make_ids, make_texts
from lagging.data.tokens import count_tokens, unknown_pieces
from lagging.errors import Fault, Note, UsageError
from lagging.formats.line import FIELDS, Line, decode, explain, name_of, read_as_is, shown
from lagging.formats.options import ReadOptions
from lagging.formats.report import ReadReport
from lagging.formats.s2s import count_units, empty_unaligned
from lagging.formats.schema import (
    KEYS,
    OPTIONAL,
    SAMPLE,
    SETTINGS,
    LogSchema,
    Sample,
    counts_space,
    resolve_schema,
)
from lagging.formats.source import Batch, Source
from lagging.formats.tables import joined_labels, label
from lagging.formats.values import are_numbers, compact, labels, numbers, ragged

__all__ = ["Decoder", "Reader", "Rows", "collect", "labels", "scan"]

SEGMENTS_PER_PART = 1 << 14
NOTHING: tuple[Any, ...] = (UNSET, None, [])
"""The values of a column that has none in a row."""


@dataclass
class Rows:
    """Decoded lines.

    `lines` are their line numbers, `places` their indices among the lines that are not blank, `groups` their labels.
    `bare` says that no row has a value in a column that the first rows lack.
    """

    rows: list[Any] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    bare: bool = False


class Decoder(Protocol):
    """Turns a file into rows: formats with one row per segment differ in nothing else."""

    def only(self, columns: Iterable[str], absent: Iterable[str]) -> None:
        """From now on skip the columns that are not requested; the `absent` ones are still looked for."""

    def chunks(self) -> Iterator[Rows]:
        """The rows, some at a time; faults and notes go to the report."""


def scan(source: Source, options: ReadOptions, report: ReadReport) -> Iterator[Run]:
    """The segments of a log, in parts; faults and notes go to the report."""
    decoder = _Decoder(source, options, report)
    collector = collect if source.portion is None else _collect_portion
    return collector(source, options, report, decoder)


def _collect_portion(source: Source, options: ReadOptions, report: ReadReport, decoder: Decoder) -> Iterator[Run]:
    """The segments of a portion of a file, in parts; the first rows of the file give its schema, if it has none yet."""
    if source.schema is None:
        sample = _sample(decoder.chunks())
        if not sample.rows:
            return
        source.schema = _resolve_schema(source, options, report, sample)
    decoder.only(source.schema.columns, source.schema.absent)
    source.seek_portion()
    yield from _in_parts(Reader(source, options, report, source.schema), decoder.chunks())


def collect(source: Source, options: ReadOptions, report: ReadReport, decoder: Decoder) -> Iterator[Run]:
    """The segments of a file, in parts; its first rows give its schema. Faults and notes go to the report."""
    chunks = decoder.chunks()
    sample = _sample(chunks)
    if not sample.rows:
        return
    schema = _resolve_schema(source, options, report, sample)
    decoder.only(schema.columns, schema.absent)
    reader = Reader(source, options, report, schema)
    reader.hold(sample)
    del sample
    yield from _in_parts(reader, chunks)


def _sample(chunks: Iterator[Rows]) -> Rows:
    """The first rows: as many as a schema can be resolved from."""
    sample = Rows()
    for rows in chunks:
        for column in ("rows", "lines", "places", "groups"):
            getattr(sample, column).extend(getattr(rows, column))
        if len(sample.rows) >= SAMPLE and (any(row.delays for row in sample.rows) or len(sample.rows) >= 16 * SAMPLE):
            break
    return sample


def _resolve_schema(source: Source, options: ReadOptions, report: ReadReport, sample: Rows) -> LogSchema:
    """The schema by the first rows, and by the first in which something was written: empty rows do not show it."""
    written = [place for place, row in enumerate(sample.rows) if row.delays]
    places = sorted({*range(min(SAMPLE, len(sample.rows))), *written[:SAMPLE]})
    return resolve_schema(source, options, report, Sample.from_rows([sample.rows[place] for place in places]))


def _in_parts(reader: Reader, chunks: Iterator[Rows]) -> Iterator[Run]:
    """The rows as Runs, each as soon as there are enough rows; memory holds one chunk at a time."""
    for rows in chunks:
        if len(reader.held["line"]) >= SEGMENTS_PER_PART:
            yield reader.part()
        reader.hold(rows)
        del rows
    if reader.held["line"]:
        yield reader.part()


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


def _failed(row: Any) -> Note:
    """A note that the agent failed on a sentence; what it wrote before is not in the log."""
    what = row.failed.partition(": ")[0]
    name = name_of(row)
    return Note("failed", f"{what}; nothing of it counts", 1, () if name is None else (name,))


def _keys(options: ReadOptions) -> dict[str, str]:
    """The keys of the fields that have other names in the lines."""
    keys = {**KEYS.get(options.format or "", {}), **options.column_map}
    mapped = set(options.column_map.values())
    for name in Line.__struct_fields__:  # a key with our name may mean something else
        displaced = keys.get(name, name) in mapped or (name == "index" and "id" in options.column_map)
        if displaced and name not in options.column_map:
            keys[name] = f"\ue000{name}"  # a key that no line has
    return keys


@dataclass
class Reader:
    """Turns the rows of a log into Runs, by its schema.

    Attributes:
        source, options, report, schema: the log, how to read it, what was found, what it is.
        held: rows that are in no Run yet, by column.
        empty: the values of a row that has nothing in the absent columns: most rows are like it.
    """

    source: Source
    options: ReadOptions
    report: ReadReport
    schema: LogSchema
    held: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    empty: list[Any] = field(default_factory=list)

    def hold(self, decoded: Rows) -> None:
        """Add rows to the columns; leave out those that lack what a segment must have."""
        schema, held = self.schema, self.held
        rows, lines = decoded.rows, decoded.lines
        if schema.origin.format == "omnisteval":  # it writes no length of 0
            for row in rows:
                if row.source_length is UNSET and type(row.delays) is list:
                    row.source_length = 0.0
        if not self.options.needs_length:
            for row in rows:
                if row.source_length in (UNSET, None):
                    row.source_length = 0.0  # what cuts the log fills it in
        if schema.origin.format == "s2s":
            empty_unaligned(rows, self.report)
        names = [row.index if row.index is not UNSET else row.id for row in rows]
        self.report.notes += [_failed(row) for row in rows if row.failed]
        delays = [row.delays for row in rows]
        sizes = [row.source_length for row in rows]
        texts = [row.prediction for row in rows]
        mixed = UNSET in names if schema.has_id else any(name is not UNSET for name in names)
        for setting in SETTINGS:
            if setting in schema.columns:
                declared = [getattr(row, setting) for row in rows]
                mixed |= declared.count(UNSET) + declared.count(getattr(schema, setting)) < len(rows)
        mixed |= not decoded.bare and self._has_late(rows, decoded.places)
        mixed |= any(not are_numbers((getattr(row, c) for row in rows), c) for c in self._lists)
        checked = ((delays, list), (sizes, float), (texts, str))[: 3 if schema.has_text else 2]
        if schema.untimed:
            mixed |= any(type(row) is list for row in delays)
            delays, sizes, checked = [[]] * len(rows), [math.nan] * len(rows), ((texts, str),)
        if mixed or any(list(map(type, column)).count(kind) < len(rows) for column, kind in checked):
            kept = [r for r in range(len(rows)) if not self.refuse(rows[r], lines[r])]
            rows, lines, names, sizes, texts, places = (
                [column[r] for r in kept] for column in (rows, lines, names, sizes, texts, decoded.places)
            )
            delays = [[] if schema.untimed else row.delays or [] for row in rows]
            groups = [decoded.groups[r] for r in kept] if decoded.groups else []
        else:
            places, groups = decoded.places, decoded.groups
        lengths = list(map(len, delays))
        held["delays"].append(compact(delays))
        held["length"] += lengths
        held["line"] += lines
        held["group"] += groups
        held["id"] += names if schema.has_id else places
        held["source_length"] += sizes
        held["prediction"] += texts
        held["reference"] += [row.reference for row in rows]
        if schema.units:
            held["raw_units"] += [row.raw_units if isinstance(row.raw_units, list) else [] for row in rows]
        for column in set(schema.columns) - set(SETTINGS):
            held[column] += [getattr(row, column) for row in rows]
        if "first_times" in schema.columns:  # a row without them was never revised
            firsts = held["first_times"]
            firsts[len(firsts) - len(rows) :] = [
                g if (own := row.first_times) is UNSET or own is None else own
                for row, g in zip(rows, delays, strict=True)
            ]

    def _has_late(self, rows: list[Any], places: list[int]) -> bool:
        """Whether rows declare a unit, level or seg that the first rows do not; other late columns are left out."""
        absent = self.schema.absent
        if not absent or not rows:
            return False
        values = list(map(attrgetter(*absent), rows))
        if not self.empty and all(getattr(rows[0], column) in NOTHING for column in absent):
            self.empty = values[:1]
        if self.empty and values.count(self.empty[0]) == len(rows):
            return False
        late: dict[str, list[int | str]] = {}
        for row, place in zip(rows, places, strict=True):
            for column in absent:
                if getattr(row, column) not in NOTHING:
                    name = name_of(row)
                    late.setdefault(column, []).append(place if name is None else name)
        for column in late:
            self.left_out(column, late[column])
        return any(setting in late for setting in SETTINGS)

    def left_out(self, column: str, names: list[Any]) -> None:
        """Add a note about segments with a column that is not read, because the first rows do not have it."""
        if names and column not in SETTINGS:
            text = f"{column}: not in the first {SAMPLE} rows"
            self.report.notes.append(Note("column left out", text, len(names), tuple(names[:5])))

    @cached_property
    def _lists(self) -> tuple[str, ...]:
        """The columns of lists that are read; elapsed times beside source tokens are of no use."""
        return tuple(c for c in LISTS if c in self.schema.columns and (c != "elapsed" or self.schema.unit == "ms"))

    def refuse(self, row: Any, line: int) -> bool:
        """Whether a row lacks what a segment must have; the faults are recorded."""
        schema, name = self.schema, name_of(row)
        empty = row.prediction is None or (isinstance(row.prediction, str) and not row.prediction.strip())
        wrong: list[Fault] = []
        if schema.has_id != (name is not None):
            wrong.append(Fault("missing-id" if schema.has_id else "extra-id"))
        if schema.untimed and type(row.delays) is list:
            wrong.append(Fault("extra-delays"))
        if not schema.untimed and (row.delays is UNSET or row.delays is None) and not empty:
            wrong.append(Fault("missing-delays"))
        if schema.has_text and row.prediction in (UNSET, None) and (row.delays or (schema.untimed and not empty)):
            wrong.append(Fault("missing-prediction"))
        if not schema.untimed and (row.source_length is UNSET or row.source_length is None):
            wrong.append(Fault("missing-source-length"))
        for setting in SETTINGS:
            declared = getattr(row, setting)
            resolved = getattr(schema, setting)
            if declared not in (UNSET, None, resolved) and getattr(self.options, setting, None) is None:
                wrong.append(Fault(f"mixed-{setting}", f"{declared}, not {resolved}"))
        for column in self._lists:
            if not are_numbers([value := getattr(row, column)], column):
                kind = WRONG.get(column, "bad-column")
                wrong.append(Fault(kind, shown(value) if kind in WRONG.values() else f"{column}: {shown(value)}"))
        if wrong:
            self.report.refuse(wrong, self.source, line, name)
        return bool(wrong)

    def part(self) -> Run:
        """A checked Run of the rows held."""
        held, schema = self.held, self.schema
        self.held = defaultdict(list)
        predictions = held["prediction"]
        if not schema.has_text and not schema.speech_out:
            self.left_out("prediction", [name for name, text in zip(held["id"], predictions, strict=True) if text])
        if UNSET in predictions:
            predictions = [None if text is UNSET else text for text in predictions]
        flat = np.concatenate(held["delays"], dtype=np.float64)
        return self.checked(
            held["raw_units"] or held["prediction_spm"],
            delays=no_times(predictions, schema.level) if schema.untimed else Ragged.from_lengths(flat, held["length"]),
            source_length=np.array(held["source_length"], dtype=np.float64),
            id=make_ids(held["id"]),
            prediction=make_texts(predictions) if self.keeps_prediction else None,
            reference=self.references(held),
            source=labels(held["source"]) if "source" in schema.columns else None,
            document=labels(held["document"]) if "document" in schema.columns else None,
            line=np.array(held["line"], dtype=np.int64),
            group=np.array(held["group"], dtype=object) if held["group"] else None,
            **{column: ragged(held[column], column) for column in LISTS if column in schema.columns},
            **{column: numbers(held[column]) for column in NUMBERS if column in schema.columns},
            **(
                {"reference_length": count_units(held["reference"], schema.units)}
                if schema.units and schema.has_reference
                else {}
            ),
        )

    @property
    def keeps_prediction(self) -> bool:
        """Whether predictions are texts that can be counted, or paths of sound files that are requested."""
        return self.schema.has_text or (self.schema.speech_out and self.options.columns is None)

    def checked(self, pieces: Sequence[Any] = (), /, **columns: Any) -> Run:
        """A Run of these columns, repaired as requested, and checked; `pieces` are the subwords that the log shows."""
        report, schema = self.report, self.schema
        settings: dict[str, Any] = {"unit": schema.unit, "level": schema.level, "seg": schema.seg}
        run = Run(**columns, **settings, speech_out=schema.speech_out, origin=schema.origin)
        # `first` and `last` choose among all lines, so they come after the last part
        run = repair(run, [name for name in self.options.repair if name not in ("first", "last")])
        texts = run.prediction if schema.has_text else None
        counts = None if texts is None else count_tokens(texts.tolist(), schema.level, run.delays.lengths)
        if counts is not None and len(pieces):  # a system may cut its words otherwise than the model
            counts = np.array([len(p) if isinstance(p, list) else n for p, n in zip(pieces, counts, strict=True)])
            if not schema.units:
                strange = [isinstance(p, list) and unknown_pieces(p, schema.level) for p in pieces]
                report.notes.extend(about(run, "unknown pieces", "not in the model: is it the right one?", strange))
        if texts is not None and counts is not None and schema.level == "char":
            spaced = np.zeros(len(run), dtype=bool)
            for row in np.flatnonzero(counts != run.delays.lengths).tolist():
                spaced[row] = counts_space(texts[row], int(run.delays.lengths[row]))
            counts = np.where(spaced, run.delays.lengths, counts)
            report.notes.extend(about(run, "white space", "has delays of its own, and is counted", spaced))
        counts = None if counts is None else np.where(run.lone, 1, counts)  # a metric decides what the delay counts
        report.faults.add(*check(run, token_counts=counts))
        report.notes.extend(remark(run))
        return run

    def references(self, held: dict[str, list[Any]]) -> Texts | None:
        """References. Where some lines of a SimulEval log lack the key, SimulEval reads an empty one; so do we."""
        texts = held["reference"]
        if not self.schema.has_reference:
            self.left_out("reference", [n for n, text in zip(held["id"], texts, strict=True) if isinstance(text, str)])
            return None
        if UNSET not in texts:
            return make_texts(texts)
        missing = [name for name, text in zip(held["id"], texts, strict=True) if text is UNSET]
        filled = "" if self.schema.origin.format == "simuleval" else None
        read_as = "an empty reference, as SimulEval reads it" if filled == "" else "no reference"
        text = f"no `reference` key, where other lines have one: read as {read_as}"
        self.report.notes.append(Note("missing reference", text, len(missing), tuple(missing[:5])))
        return make_texts([filled if text is UNSET else text for text in texts])
