# SPDX-License-Identifier: Apache-2.0
r"""CSV and TSV: a row per segment, with the names of the columns in the first line.

    id,delays,source_length,prediction,reference,unit,level
    0,"[3, 4, 5]",5,guten Tag auch,good day to you,token,word
    1,[],4,,\N,token,word

Names of columns are ours, or common others for them (`index`, `hyp`, `ref`, `src_len`, …), without regard to case,
spaces and hyphens. The separator (comma, semicolon, tab) is the one that makes the first line a line of known names.
A list is JSON in one cell, or numbers with spaces or semicolons between. `\N` is a missing text, while an empty
cell is an empty text; a text that reads `\N` itself has one more backslash. An empty cell among numbers is a missing
number. Unit, level and whatever else holds for the whole log are columns too, with the same value in every row.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any, TextIO

import numpy as np
from msgspec import UNSET

from lagging.data.ragged import Floats, Ragged
from lagging.data.run import LISTS, TEXTS, Run
from lagging.data.trees import read_json
from lagging.errors import Fault, counted
from lagging.formats.line import UNREAD, Line, name_of, shown
from lagging.formats.options import ReadOptions
from lagging.formats.report import ReadReport
from lagging.formats.schema import OPTIONAL, SETTINGS, TELLING, is_requested
from lagging.formats.segment_rows import Rows, collect
from lagging.formats.source import Source, first_line
from lagging.formats.tables import (
    MAPS,
    Matched,
    check_columns,
    check_setting,
    joined_labels,
    match,
    parse_list,
    parse_number,
    restore_settings,
    scalars,
    split_cells,
)

__all__ = ["recognise", "scan", "write_csv", "write_tsv"]

SEPARATORS = ",;\t"
ROWS_PER_CHUNK = 512
LONGEST_HEADER = 1 << 14
LARGEST_CELL = 1 << 26
"""The most characters in a cell: a longer one means that a quote was never closed."""

NOTHING = r"\N"
NO_TEXT = re.compile("[\ud800-\udfff]")
"""Characters that stand for bytes that are not UTF-8."""
UNCLOSED = "a quote that is not closed"
WHOLE = re.compile(r"-?[1-9]\d{0,18}|0", re.ASCII)


# ---- the first line ---------------------------------------------------------------------------------------------


def recognise(head: bytes, column_map: Mapping[str, str] | None = None) -> str | None:
    """`csv` or `tsv` if the first line that is not blank names columns of ours, else None."""
    separator, known = _separator(first_line(head).decode("utf-8", "replace"), column_map)
    if len(known) < 2 and not {"delays", "source_length"} & known:
        return None
    return "tsv" if separator == "\t" else "csv"


def _separator(line: str, column_map: Mapping[str, str] | None = None) -> tuple[str, set[str]]:
    """The separator of the names in the first line, and the columns that are known with it."""
    line = line[:LONGEST_HEADER]
    known = {separator: set(match(split_cells(line, separator), column_map).places) for separator in SEPARATORS}
    best = max(known, key=lambda separator: len(known[separator]))
    return best, known[best]


# ---- reading ----------------------------------------------------------------------------------------------------


def scan(source: Source, options: ReadOptions, report: ReadReport) -> Iterator[Run]:
    """The segments of a table, in parts; faults and notes go to the report."""
    decoder = _Decoder(source, options, report)
    return restore_settings(collect(source, options, report, decoder), decoder.declared)


class _Decoder:
    """Turns rows of text into rows of values."""

    def __init__(self, source: Source, options: ReadOptions, report: ReadReport) -> None:
        self.source, self.options, self.report = source, options, report
        self.declared: dict[str, Any] = {}
        self._skipped = frozenset(c for c in OPTIONAL if c not in TELLING and not is_requested(c, options, "ms"))
        self._line = 0
        self._blank = 0
        self._place = report.placed
        self._cut = False

    def only(self, columns: Iterable[str], absent: Iterable[str]) -> None:
        """From now on skip the columns that are not requested; the `absent` ones are still looked for."""
        self._skipped = frozenset(OPTIONAL) - {*columns, *absent}

    def chunks(self) -> Iterator[Rows]:
        """The rows, some at a time."""
        lines = self._lines()
        header = next((line for line in lines if line.strip()), "")
        names, separator = self._header(header)
        matched = match(names, self.options.column_map, self.options.group_by)
        if not names or not check_columns(
            matched, names, self.options.column_map, self.report, self.source.path, self._line
        ):
            return
        table = csv.reader(lines, delimiter=separator, strict=True)
        more = True
        while more:
            chunk = Rows()
            # the limit holds for the whole process: change it for the rows of this file only
            usual = csv.field_size_limit(LARGEST_CELL)
            try:
                more = self._fill(chunk, table, matched, len(names))
            finally:
                csv.field_size_limit(usual)
            yield chunk
        self.report.note_blank_lines(self.source, self._blank)

    def _lines(self) -> Iterator[str]:
        """The lines of the file; bytes that are not UTF-8 are marked, and reported with the row that they are in."""
        for batch in self.source.batches():
            for line in io.StringIO(batch.text.decode("utf-8", "surrogateescape"), newline="\n"):
                self._line += 1
                self._cut = not line.endswith("\n")
                yield line

    def _header(self, line: str) -> tuple[list[str], str]:
        """The names in the first line that is not blank, and what separates them; no names if there is a fault."""
        self._blank = max(self._line - 1, 0)
        separator, _ = _separator(line, self.options.column_map)
        try:
            names = next(csv.reader([line], delimiter=separator, strict=True), [])
        except csv.Error as error:
            self._refuse(None, self._line, [Fault("not-csv", _error_text(error))])
            return [], separator
        if NO_TEXT.search(line):
            self._refuse(None, self._line, [Fault("not-utf8", f"byte {_byte(line)}")])
            return [], separator
        return names, separator

    def _fill(self, chunk: Rows, table: Iterator[list[str]], matched: Matched, width: int) -> bool:
        """Read some rows; False at the end of the file."""
        for _ in range(ROWS_PER_CHUNK):
            line = self._line + 1
            try:
                cells = next(table)
            except StopIteration:
                return False
            except csv.Error as error:
                unclosed = _error_text(error) == UNCLOSED
                self._refuse(
                    None, line, [Fault("truncated" if unclosed and self._cut else "not-csv", _error_text(error))]
                )
                if "field larger" in str(error):
                    return False  # the rest of the quoted text would be taken for rows
                continue
            if not "".join(cells).strip() and len(cells) <= 1:
                self._blank += 1
                continue
            row, faults = self._row(cells, matched, width)
            if faults:
                self._refuse(name_of(row), line, faults)
            else:
                chunk.rows.append(row)
                chunk.lines.append(line)
                chunk.places.append(self._place)
                if matched.by:
                    chunk.groups.append(joined_labels([_text(cells[at]) or None for at in matched.by]))
            self._place += 1
        return True

    def _refuse(self, name: int | str | None, line: int, faults: list[Fault]) -> None:
        """Record the faults of a row, which is left out."""
        if not self.report.leave_out_torn(faults, self.source, line, self.options.repair):
            self.report.refuse(faults, self.source, line, name)

    def _row(self, cells: list[str], matched: Matched, width: int) -> tuple[Line, list[Fault]]:
        """One row, and what is wrong with it."""
        row = Line()
        faults: list[Fault] = []
        if len(cells) != width:
            kind = "truncated" if self._cut and len(cells) < width else "not-csv"
            return row, [Fault(kind, f"{counted(len(cells), 'cell')}, but {width} columns")]
        for column, at in matched.places.items():
            cell = cells[at]
            if not cell.isascii() and NO_TEXT.search(cell):
                faults.append(Fault("not-utf8", f"{column} has the byte {_byte(cell)}"))
            elif column in self._skipped:
                setattr(row, column, UNREAD if cell else UNSET)
            elif column == "id":
                name = _text(cell)
                row.id = UNSET if name is None else int(name) if WHOLE.fullmatch(name) else name
            elif column in TEXTS:
                setattr(row, column, _text(cell))
            elif column in SETTINGS:
                setattr(row, column, UNSET if cell in ("", NOTHING) else cell)
            elif column in ("name", *MAPS):
                faults += self._declare(column, cell)
            else:
                reader = parse_list if column in LISTS or column == "delays" else parse_number
                value, wrong = reader("" if cell == NOTHING else cell, column)
                faults += wrong
                setattr(row, column, value)
        return row, faults

    def _declare(self, column: str, cell: str) -> list[Fault]:
        """Record what holds for the whole table."""
        value: Any = _text(cell) or ""
        if column in MAPS:
            with suppress(ValueError):  # what is not JSON is reported as it is written
                value = read_json(value or "{}")
            if faults := check_setting(column, value):
                return faults
        if self.declared.setdefault(column, value) != value:
            return [Fault("several-systems", f"{column} {shown(value)}, but {shown(self.declared[column])} before")]
        return []


def _text(cell: str) -> str | None:
    """The text in a cell; None for a missing text."""
    if cell == NOTHING:
        return None
    return cell[1:] if cell.endswith("N") and cell[:-1].strip("\\") == "" and len(cell) > 2 else cell


def _error_text(error: csv.Error) -> str:
    """The error of the csv module, in our words."""
    return UNCLOSED if "field larger" in str(error) or "end of data" in str(error) else str(error)


def _byte(cell: str) -> str:
    """The first byte that is not UTF-8, as a message shows it."""
    escaped = NO_TEXT.search(cell)
    return "" if escaped is None else f"0x{ord(escaped[0]) - 0xDC00:02x}"


# ---- writing ----------------------------------------------------------------------------------------------------


class _Unix:
    """Writes lines that end in a line feed: the csv module must know of both line ends, to put both in quotes."""

    def __init__(self, file: TextIO) -> None:
        self.file = file

    def write(self, line: str) -> None:
        self.file.write(line[:-2] + "\n")


def write_csv(run: Run, file: TextIO) -> list[str]:
    """Write a table with commas. Returns what it could not hold."""
    return _write(run, file, ",")


def write_tsv(run: Run, file: TextIO) -> list[str]:
    """Write a table with tabs. Returns what it could not hold."""
    return _write(run, file, "\t")


def _write(run: Run, file: TextIO, separator: str) -> list[str]:
    columns, settings = run.columns, scalars(run)
    table = csv.writer(_Unix(file), delimiter=separator, lineterminator="\r\n")
    table.writerow([*columns, *settings])
    same = [json.dumps(v, ensure_ascii=False) if isinstance(v, dict) else _cell(v) for v in settings.values()]
    for start in range(0, len(run), ROWS_PER_CHUNK):
        cells = [_cells(getattr(run, column)[start : start + ROWS_PER_CHUNK]) for column in columns]
        table.writerows([*row, *same] for row in zip(*cells, strict=True))
    named = run.id.dtype == object and len(run) and all(WHOLE.fullmatch(name) for name in run.id)
    return ["id (names that are numbers are read as numbers)"] if named else []


def _cells(values: Any) -> list[str]:
    """Values of a column as text."""
    if isinstance(values, Ragged):
        digits, ends = _digits(values.values, "null"), values.offsets.tolist()
        return ["[" + ", ".join(digits[a:b]) + "]" for a, b in pairwise(ends)]
    if values.dtype == np.float64:
        return _digits(values, "")
    return [_cell(value) for value in values.tolist()]


def _digits(values: Floats, unknown: str) -> list[str]:
    """Numbers as text, exact; whole numbers without a decimal point."""
    digits = list(map(repr, values.tolist()))
    whole = (values == np.trunc(values)) & (np.abs(values) < 2**53) & ((values != 0) | ~np.signbit(values))
    for place in np.flatnonzero(whole).tolist():
        digits[place] = digits[place][:-2]
    for place in np.flatnonzero(np.isnan(values)).tolist():
        digits[place] = unknown
    return digits


def _cell(value: str | int | None) -> str:
    """A text, or a whole number, as a cell."""
    if value is None:
        return NOTHING
    text = str(value)
    return "\\" + text if text.endswith("N") and text[:-1] and text[:-1].strip("\\") == "" else text
