# SPDX-License-Identifier: Apache-2.0
"""Rows with a segment each, from any format, to Runs: the first rows give the schema, and each row is checked by it.

A row has the fields of `line.Line`. Formats differ in how they decode rows, and in nothing else.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
from msgspec import UNSET

from lagging.data.checks import about, check, remark, repair
from lagging.data.columns import no_times
from lagging.data.ragged import Ragged
from lagging.data.run import LISTS, NUMBERS, WRONG, Run, Texts, make_ids, make_texts
from lagging.data.tokens import count_tokens, unknown_pieces
from lagging.errors import Fault, Note
from lagging.formats.line import name_of, shown
from lagging.formats.options import ReadOptions
from lagging.formats.report import ReadReport
from lagging.formats.s2s import check_units, count_units, empty_unaligned
from lagging.formats.schema import (
    SAMPLE,
    SETTINGS,
    LogSchema,
    Sample,
    counts_space,
    resolve_schema,
)
from lagging.formats.source import Source
from lagging.formats.values import are_numbers, compact, labels, numbers, ragged

__all__ = ["Decoder", "Reader", "Rows", "collect", "collect_portion"]

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


def collect_portion(source: Source, options: ReadOptions, report: ReadReport, decoder: Decoder) -> Iterator[Run]:
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


def _failed(row: Any) -> Note:
    """A note that the agent failed on a sentence; what it wrote before is not in the log."""
    what = row.failed.partition(": ")[0]
    name = name_of(row)
    return Note("failed", f"{what}; nothing of it counts", 1, () if name is None else (name,))


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
            check_units(rows, lines, self.source.path, self.report)
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
        scalars = {column: numbers(held[column]) for column in NUMBERS if column in schema.columns}
        if schema.units and schema.has_reference:
            counted = count_units(held["reference"], schema.units)
            given = scalars.get("reference_length", counted)
            scalars["reference_length"] = np.where(np.isnan(given), counted, given)
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
            **scalars,
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
