# SPDX-License-Identifier: Apache-2.0
"""Files of columns: a score per line, a table, JSON, Parquet, or what comet-score prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lagging.data.decimals import decimal
from lagging.data.trees import read_json
from lagging.errors import DataError, Fault, Faults, counted, optional
from lagging.formats.report import ReadReport
from lagging.formats.tables import split_cells
from lagging.longform.entries import read_lines
from lagging.scoring.columns import Column, pick

__all__ = ["read_column", "read_columns"]

IDS = ("id", "index", "segment", "seg_id")
SCORES = ("score", "value")
"""How a score is called where it is not called by the name of the metric."""
JSON_SCORES = (*SCORES, "comet", "prediction")
"""The same in JSON: comet-score writes COMET for every model, and MetricX `prediction`."""
SEPARATORS = "\t,;"
NAN = ("nan",)
COMET_SEGMENT = re.compile(
    r"(?P<system>[^\t]*+)\tSegment (?P<index>\d{1,18}+)\tscore: (?P<score>[^\t]++)(?:\tvariance: .*)?"
)
COMET_SYSTEM = re.compile(r"(?P<system>[^\t]*+)\tscore: (?P<score>[^\t]++)")
COMET_END = re.compile(r"(?:Predictions|Outputs) saved in: .*")
ROUNDED = 1.01e-4
"""How far the score of a system may be from the mean of its segments: comet-score prints both with four decimals."""


@dataclass(frozen=True)
class Row:
    """A score as it is written.

    Attributes:
        line: where.
        id: of the segment; None if there is none.
        score: a number, or the text of one.
        system: whose it is, where the file says so.
        model: what made it, where the file says so.
    """

    line: int
    id: str | None
    score: object
    system: str = ""
    model: str | None = None


def read_column(path: str | Path, name: str, system: str = "", *, higher_is_better: bool | None = None) -> Column:
    r"""Read the scores of a system's segments.

    - One number per line, in the order of the log.
    - A table (tabs, commas or semicolons) whose first line names an `id` and a `score`; or one of two cells, id and
      score, without names.
    - JSON lines, or a JSON list, of objects with `id` and `score`.
    - What `comet-score` prints (`FILE\tSegment 0\tscore: 0.8301`), or writes with `--to_json`. Of several systems, the
      one with the name of the system is taken. The score of the system that it prints must be the mean.
    - Parquet with the columns `id` and `score` (needs the extra `arrow`).

    The score may also be called by the name of the metric. Without ids, the order is that of the log. Where the file
    has a `model`, the same for all segments, it goes into the signature.

    Args:
        path: the file.
        name: the name of the metric, such as COMET.
        system: the system; it can be left out where there is one only.
        higher_is_better: as in `Column`.

    Raises:
        DataError: the file is none of these, or a score is no number: every fault at once.
        UsageError: it has the scores of several systems, and none of this name.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp(), "base.comet")
        >>> _ = file.write_text("id\tCOMET\n7\t0.8125\n9\tnan\n")
        >>> column = read_column(file, "COMET", "base")
        >>> column.values, column.ids
        (array([0.8125,    nan]), ('7', '9'))
    """
    column = pick(read_columns(path, name, higher_is_better=higher_is_better), [system])
    return replace(column, system=system)


def read_columns(path: str | Path, name: str, *, higher_is_better: bool | None = None) -> list[Column]:
    """Read the scores of all systems of a file; a file that names none has those of one.

    Raises:
        DataError: as `read_column`.
    """
    report = ReadReport()
    faults = report.faults
    if _is_parquet(path):
        file, rows = str(path), list(_parquet_rows(str(path), name, faults))
    else:
        file, texts = read_lines(path, report)
        rows = list(_rows(file, texts, name, faults))
    systems: dict[str, list[Row]] = {}
    for row in rows:
        systems.setdefault(row.system, []).append(row)
    columns = [_column(file, name, system, own, faults, higher_is_better) for system, own in systems.items()]
    if not columns and not faults:
        faults.add(Fault("not-a-column", "there is nothing in it", file))
    if faults:
        raise DataError(faults)
    return columns


def _column(
    file: str, name: str, system: str, rows: Sequence[Row], faults: Faults, higher_is_better: bool | None
) -> Column:
    """The column of one system."""
    values, ids, lines = [], [], []
    for row in rows:
        if isinstance(row.score, str) and not row.score.strip():
            text = "an empty line; `nan` is a segment without a score"
            faults.add(Fault("not-a-column", text, file, row.line, row.id))
            continue
        number = _number(row.score)
        if number is None:
            faults.add(Fault("bad-score", f"{name}: {str(row.score)[:40]}", file, row.line, row.id))
            continue
        values.append(number)
        ids.append(row.id)
        lines.append(row.line)
    known = [row_id for row_id in ids if row_id is not None]
    if known and len(known) < len(ids):
        faults.add(Fault("not-a-column", "an `id` on some lines, and none on others", file, lines[ids.index(None)]))
    models = {row.model for row in rows}
    if len(models) > 1:
        listed = ", ".join(sorted(str(model) for model in models))
        faults.add(Fault("not-a-column", f"scores of several models, and not of one: {listed}", file))
    return Column(
        name,
        system,
        np.array(values),
        tuple(known) if known else None,
        higher_is_better,
        file,
        tuple(lines),
        next(iter(models), None),
    )


def _rows(path: str, lines: list[str], name: str, faults: Faults) -> Iterator[Row]:
    """Every row, as it is written."""
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    first = next((text.strip() for text in lines if text.strip()), "")
    if first.startswith(("{", "[")):
        yield from _json_rows(path, lines, name, faults)
    elif decimal(first, NAN) is not None:
        yield from (Row(line, None, text) for line, text in enumerate(lines, 1))
    elif COMET_SEGMENT.fullmatch(first) or COMET_SYSTEM.fullmatch(first):
        yield from _comet_rows(path, lines, faults)
    elif lines:
        yield from _table_rows(path, lines, name, faults)


# ---- JSON -------------------------------------------------------------------------------------------------------


def _json_rows(path: str, lines: list[str], name: str, faults: Faults) -> Iterator[Row]:
    """The rows of a list, of the lists of `comet-score --to_json`, or of JSON lines."""
    document = _document(lines)
    if document is not None:
        for system, records in document.items():
            for place, record in enumerate(records):
                where = f"{f'{system}, ' if system else ''}score {place}"
                if isinstance(record, dict):
                    yield from _json_row(path, 1, record, name, faults, system, where)
                else:
                    yield Row(1, None, record, system)
        return
    for line, text in enumerate(lines, 1):
        repeated: list[str] = []
        try:
            record = read_json(text, repeated)
        except ValueError:
            faults.add(Fault("not-json", text.strip()[:40], path, line))
            continue
        faults.add(*(Fault("repeated-key", key, path, line) for key in repeated))
        if not isinstance(record, dict):
            faults.add(Fault("not-an-object", text.strip()[:40], path, line))
            continue
        yield from _json_row(path, line, record, name, faults)


def _document(lines: list[str]) -> dict[str, list[Any]] | None:
    """By system, the scores of a file that is one JSON text: a list, or an object of lists; None for JSON lines."""
    try:
        value = read_json("\n".join(lines))
    except ValueError:
        return None
    if isinstance(value, list):
        return {"": value}
    lists = isinstance(value, dict) and bool(value) and all(isinstance(records, list) for records in value.values())
    return value if lists else None


def _json_row(
    path: str, line: int, record: dict[str, Any], name: str, faults: Faults, system: str = "", where: str = ""
) -> Iterator[Row]:
    keys = {key.lower(): key for key in record}
    score = _first(keys, (name.lower(), *JSON_SCORES))
    if score is None:
        text = f"no `score` among {', '.join(record) or 'nothing'}{f' ({where})' if where else ''}"
        faults.add(Fault("not-a-column", text, path, line))
        return
    named, model = _first(keys, IDS), record.get(keys.get("model", ""))
    row_id = None if named is None else str(record[keys[named]])
    yield Row(line, row_id, record[keys[score]], system, model if isinstance(model, str) and model else None)


# ---- what comet-score prints ------------------------------------------------------------------------------------


def _comet_rows(path: str, lines: list[str], faults: Faults) -> Iterator[Row]:
    """The rows that `comet-score` prints; the systems take turns, and the score of each system comes last."""
    values: dict[str, list[float]] = {}
    for line, text in enumerate(lines, 1):
        if (segment := COMET_SEGMENT.fullmatch(text)) is not None:
            known = values.setdefault(segment["system"], [])
            number = _number(segment["score"])
            if int(segment["index"]) != len(known):
                detail = f"Segment {segment['index']} of {segment['system']}, where Segment {len(known)} should be"
                faults.add(Fault("not-a-column", detail, path, line))
            known.append(np.nan if number is None else number)
            yield Row(line, None, segment["score"], segment["system"])
        elif (whole := COMET_SYSTEM.fullmatch(text)) is not None:
            known = values.get(whole["system"], [])
            stated = _number(whole["score"])
            if not known:
                detail = f"only the score of {whole['system']}, and none of its segments: leave --only_system out"
                faults.add(Fault("not-a-column", detail, path, line))
            elif stated is None:
                faults.add(Fault("bad-score", whole["score"][:40], path, line))
            elif not abs(stated - float(np.mean(known))) <= ROUNDED:
                detail = (
                    f"{whole['system']} has the score {stated:g}, but the mean of its {counted(len(known), 'segment')}"
                )
                faults.add(Fault("not-a-column", f"{detail} is {np.mean(known):.4f}", path, line))
        elif text.strip() and not COMET_END.fullmatch(text):
            faults.add(Fault("not-a-column", f"no line of comet-score: {text.strip()[:40]}", path, line))


# ---- tables -----------------------------------------------------------------------------------------------------


def _table_rows(path: str, lines: list[str], name: str, faults: Faults) -> Iterator[Row]:
    separator = max(SEPARATORS, key=lines[0].count)
    head = split_cells(lines[0], separator)
    keys = {text.strip().lower(): column for column, text in enumerate(head)}
    score, named, model = _first(keys, (name.lower(), *SCORES)), _first(keys, IDS), keys.get("model")
    start = 1
    if score is None and len(head) == 2 and decimal(head[1].strip(), NAN) is not None:
        keys, named, score, model, start = {"id": 0, "score": 1}, "id", "score", None, 0
    if score is None:
        faults.add(Fault("not-a-column", f"no column `score` or `{name}`: {lines[0].strip()[:40]}", path, 1))
        return
    for line, text in enumerate(lines[start:], start + 1):
        cells = split_cells(text, separator)
        if len(cells) != len(head):
            faults.add(Fault("not-csv", f"{counted(len(cells), 'cell')}, not {len(head)}", path, line))
            continue
        row_id = None if named is None else cells[keys[named]].strip()
        maker = None if model is None else cells[model].strip() or None
        yield Row(line, row_id, cells[keys[score]].strip() or "nan", model=maker)


def _is_parquet(path: str | Path) -> bool:
    """Whether a file is Parquet, by its first bytes."""
    file = Path(path)
    if str(path) == "-" or not file.is_file():
        return False
    with file.open("rb") as stream:
        return stream.read(4) == b"PAR1"


def _parquet_rows(path: str, name: str, faults: Faults) -> Iterator[Row]:
    parquet = optional("pyarrow.parquet", "arrow")
    from pyarrow import ArrowException

    try:
        table = parquet.ParquetFile(path).read()
    except (ArrowException, OSError) as error:
        faults.add(Fault("not-arrow", str(error).partition("\n")[0][:100], path))
        return
    keys = {column.lower(): place for place, column in enumerate(table.column_names)}
    score, named = _first(keys, (name.lower(), *SCORES)), _first(keys, IDS)
    if score is None:
        faults.add(Fault("not-a-column", f"no column `score` or `{name}`: {', '.join(table.column_names)}", path))
        return
    values = table.column(keys[score]).to_pylist()
    none = [None] * len(values)
    ids = none if named is None else [str(value) for value in table.column(keys[named]).to_pylist()]
    models = table.column(keys["model"]).to_pylist() if "model" in keys else none
    for line, (row_id, value, model) in enumerate(zip(ids, values, models, strict=True), 1):
        yield Row(line, row_id, value, model=None if model is None else str(model))


def _first(keys: dict[str, Any], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in keys), None)


def _number(value: object) -> float | None:
    """A finite number, or NaN where there is none; None if it is neither."""
    if value is None:
        return np.nan
    if isinstance(value, str):
        number = decimal(value.strip(), NAN)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:  # an integer of hundreds of digits
            return None
    else:
        return None
    return None if number is None or np.isinf(number) else number
