# SPDX-License-Identifier: Apache-2.0
"""Published settings: a row per setting of a system, from a table of settings or from score files."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from lagging.comparison.published import PublishedScore
from lagging.comparison.published.labels import QUALITY, find_metric, number
from lagging.comparison.published.layouts import Sheet, read_text
from lagging.errors import DataError, UsageError
from lagging.formats.source import Source
from lagging.metrics import Metric
from lagging.metrics.elsewhere import elsewhere
from lagging.metrics.record import Statistics, Unit

__all__ = ["PublishedRow", "check_ours", "is_table", "published_metric", "read_rows", "rows_of"]

SCALED = re.compile(r"(?P<name>.+)_(?P<unit>s|ms)")
"""A column whose name has its unit: `StreamLAAL_s`."""
UNITS = {"ms": ("ms", 1.0), "s": ("ms", 1000.0), "token": ("token", 1.0)}
COUNTED = re.compile(r"token|word|char|piece|bpe", re.IGNORECASE)


@dataclass(frozen=True)
class PublishedRow:
    """One setting of a system, as it was published without a log.

    Attributes:
        system, setting: the names of the system and of the setting.
        values: its values by metric.
        unit: the unit of times: "ms" or "token"; None if there are no times.
        path, line: the file, and the line.
    """

    system: str
    setting: str
    values: Mapping[Metric, float]
    unit: str | None
    path: str
    line: int

    def value(self, metric: Metric) -> float:
        """The value of a metric.

        Raises:
            UsageError: it was not published.
        """
        if metric not in self.values:
            known = ", ".join(map(repr, self.values))
            raise UsageError(f"{self.path}:{self.line}: {self.system} {self.setting} has no {metric!r}; it has {known}")
        return self.values[metric]

    def unit_of(self, metric: Metric) -> str:
        """The unit of a metric; empty for a time whose unit was not published."""
        return (self.unit or "") if metric.unit == "time" else metric.unit


def published_metric(label: str) -> Metric | None:
    """The metric of a label; for a quality that is published but not ours, such as COMET, a record of its direction.

    Example:
        >>> published_metric("DAL_CA"), published_metric("COMET"), published_metric("system")
        (DAL(clock=elapsed), COMET, None)
    """
    metric = find_metric(label)
    if metric is None and label in (*QUALITY, "SacreBLEU"):
        unit: Unit = "score" if label == "COMET" else "points"
        return Metric(label, _refuse, unit=unit, higher_is_better=True)
    return metric


def _refuse(*_: object) -> Statistics:
    raise UsageError("a score that is only known where it was published cannot be computed")


def check_ours(metrics: Iterable[Metric]) -> None:
    """Refuse metrics that are only published, and that lagging does not compute."""
    for m in metrics:
        if m.compute is _refuse:
            family = elsewhere(m.name)
            fix = f"--column {m!r}=FILE." if family is None else family.fix(m.name)
            raise UsageError(
                f"{m!r} is not computed from logs: it is only known where it was published\n"
                f"  fix: give --published alone; or the score of each segment:\n       {fix}"
            )


@dataclass(frozen=True)
class _Column:
    metric: Metric
    unit: str | None


@dataclass
class _Table:
    """The cells of a table, by the names above them."""

    sheet: Sheet
    labels: list[str] = field(default_factory=list)
    columns: dict[str, _Column] = field(default_factory=dict)
    rows: list[tuple[int, dict[str, str]]] = field(default_factory=list)


def is_table(path: str | Path) -> bool:
    """Whether a file is a table of settings: its first line has commas, or tabs, between names, and one is a metric."""
    file = Path(path)
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        head = stream.readline(1 << 16).decode("utf-8", "replace")
    names = [name.strip() for name in next(_cells(head, _delimiter(head)), (0, []))[1]]
    known = [name for name in names if _column(name) is not None]
    return bool(known) and len(known) < len(names) and not {"metric", "score"} <= {name.lower() for name in names}


def read_rows(
    path: str | Path,
    *,
    family: Iterable[str] = (),
    where: Mapping[str, str] | None = None,
    unit: str | None = None,
) -> list[PublishedRow]:
    r"""Read a table with a row per setting: CSV or TSV, columns of names, and columns of metrics.

    A column is a metric if its name is one, perhaps with its unit (`StreamLAAL_s`); else it is a name. The column
    `setting` names a setting, `latency_unit` or `unit` has the unit of times.

    Args:
        path: the file.
        family: the columns that name a system; `system` by default.
        where: patterns by column that select rows, such as {"dataset": "WMT15*"}; all rows by default.
        unit: "token" or "ms", the unit of times where the table does not have it.

    Raises:
        DataError: every fault of the table at once.
        UsageError: no such file, or column, or row; a setting twice; times without a unit.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder, "table.csv")
        ...     _ = file.write_text("system,setting,AL_s,BLEU\nwait-k,k=1,1.25,20.5\nwait-k,k=3,2.5,24\n")
        ...     for row in read_rows(file):
        ...         print(row.system, row.setting, dict(row.values), row.unit)
        wait-k k=1 {AL: 1250.0, BLEU: 20.5} ms
        wait-k k=3 {AL: 2500.0, BLEU: 24.0} ms
    """
    if not Path(path).is_file():
        raise UsageError(f"no such file: {path}")
    table = _read(Source(str(path), Path(path)))
    named = list(family) or ["system"]
    patterns = dict(where or {})
    for name in (*named, *patterns):
        if name not in table.labels:
            labels = ", ".join(table.labels) or "none"
            hint = ""
            if table.labels and name in named:
                some = ",".join(table.labels[:2])
                hint = f"\n  fix: name the columns that tell the systems apart, such as --family {some}."
            raise UsageError(f"{path} has no column {name!r} that names rows; there are: {labels}{hint}")
    chosen = [row for row in table.rows if all(fnmatchcase(row[1][c], p) for c, p in patterns.items())]
    if not chosen:
        raise UsageError(f"no row of {path} has {' and '.join(f'{c}={p}' for c, p in patterns.items())}")
    rest = [c for c in table.labels if c not in named and len({row[c] for _, row in chosen}) > 1]
    setting = ["setting"] if "setting" in table.labels else rest
    rows = [_row(table, line, row, named, setting, unit) for line, row in chosen]
    line_of: dict[tuple[str, str], int] = {}
    for row in rows:
        first = line_of.setdefault((row.system, row.setting), row.line)
        if first != row.line:
            differ = [c for c in rest if dict(chosen)[first][c] != dict(chosen)[row.line][c] and c not in setting]
            raise UsageError(
                f"{path} has the setting {row.setting!r} of {row.system} twice: lines {first} and {row.line}\n"
                f"  fix: tell them apart by --family, or choose by --where; they differ in: {', '.join(differ)}."
            )
    return rows


def rows_of(scores: Iterable[PublishedScore], *, setting: str = "", unit: str | None = None) -> list[PublishedRow]:
    """The scores of score files as rows: each system is one setting."""
    by_system: dict[str, list[PublishedScore]] = {}
    for score in scores:
        by_system.setdefault(score.system, []).append(score)
    rows = []
    for system, published in by_system.items():
        values: dict[Metric, float] = {}
        units: set[str | None] = set()
        for score in published:
            m = published_metric(score.metric)
            if m is not None:
                values[m] = score.score
                units |= {score.unit or unit} if m.unit == "time" else set()
        path, line = published[0].path, published[0].line
        rows.append(PublishedRow(system, setting, values, _time_unit(units, path, line, values), path, line))
    return rows


def _time_unit(units: set[str | None], path: str, line: int, values: Mapping[Metric, float]) -> str | None:
    """The unit of all times of a row."""
    if None in units:
        times = ", ".join(repr(m) for m in values if m.unit == "time")
        raise UsageError(f"{path} does not say the unit of {times}\n  fix: --unit token, or --unit ms.")
    if len(units) > 1:
        raise UsageError(f"{path}:{line} has times in ms and in tokens")
    return units.pop() if units else None


def _delimiter(head: str) -> str:
    return "\t" if "\t" in head else ","


def _cells(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The line and the cells of each row."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    for cells in rows:
        yield rows.line_num, cells


def _column(name: str) -> _Column | None:
    metric = published_metric(name)
    if metric is not None:
        return _Column(metric, None)
    match = SCALED.fullmatch(name)
    scaled = published_metric(match["name"]) if match is not None else None
    return None if match is None or scaled is None or scaled.unit != "time" else _Column(scaled, match["unit"])


def _read(source: Source) -> _Table:
    table = _Table(sheet := Sheet(source.path))
    text = read_text(source, sheet)
    try:
        _fill(table, text)
    except csv.Error as error:
        raise sheet.refusal(str(error)) from None
    if not table.columns:
        raise sheet.refusal("no column is a metric", 1)
    if not table.rows and not sheet.faults:
        sheet.fault("no-scores")
    if sheet.faults:
        raise DataError(sheet.faults)
    return table


def _fill(table: _Table, text: str) -> None:
    """Read the names and the rows of a table, and its faults."""
    sheet = table.sheet
    names: list[str] = []
    for line, cells in _cells(text, _delimiter(text.partition("\n")[0])):
        if not any(cell.strip() for cell in cells):
            continue
        if not names:
            names = [cell.strip() for cell in cells]
            columns = {name: _column(name) for name in names}
            table.columns = {name: column for name, column in columns.items() if column is not None}
            table.labels = [name for name, column in columns.items() if column is None]
            name_of: dict[Metric, str] = {}
            for name, column in table.columns.items():
                if name_of.setdefault(column.metric, name) != name:
                    sheet.fault("repeated-metric", f"{name} and {name_of[column.metric]}", line)
            for name in dict.fromkeys(name for name in names if names.count(name) > 1):
                sheet.fault("score-cells", f"two columns called {name!r}", line)
        elif len(cells) != len(names):
            sheet.fault("score-cells", f"{len(cells)} values below {len(names)} names", line)
        else:
            row = {name: cell.strip() for name, cell in zip(names, cells, strict=True)}
            for name, column in table.columns.items():
                if number(row[name], column.metric.unit) is None:
                    sheet.fault("bad-score", f"{name}: {row[name][:40]}", line)
            table.rows.append((line, row))


def _row(
    table: _Table, line: int, row: dict[str, str], named: list[str], setting: list[str], unit: str | None
) -> PublishedRow:
    own_unit = next((row[c] for c in ("latency_unit", "unit") if c in table.labels), "")
    if own_unit not in UNITS:
        own_unit = "token" if COUNTED.search(own_unit) else ""
    values: dict[Metric, float] = {}
    units: set[str | None] = set()
    for name, column in table.columns.items():
        value = number(row[name], column.metric.unit)
        if value is None or value != value:
            continue
        if column.metric.unit == "time":
            counted, scale = UNITS.get(column.unit or own_unit or unit or "", (None, 1.0))
            value *= scale
            units.add(counted)
        values[column.metric] = value
    system, name = (" ".join(row[c] for c in columns if row[c]) for columns in (named, setting))
    path = table.sheet.path
    return PublishedRow(system, name or f"line {line}", values, _time_unit(units, path, line, values), path, line)
