# SPDX-License-Identifier: Apache-2.0
"""The one Table: cells, columns and what stands below them, before any format. Writers: text, Markdown, LaTeX, HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from lagging.data.units import SHOWN, scale
from lagging.metrics import Metric

__all__ = [
    "ARROWS",
    "MISSING",
    "UNITS",
    "Cell",
    "Column",
    "Difference",
    "Estimate",
    "Layout",
    "Sheet",
    "Table",
    "format_interval",
    "format_p",
    "format_value",
    "make_cell",
    "metric_column",
    "metric_title",
]

DIGITS = {"token": 3, "ms": 3, "token/100": 3, "ms/min": 3, "ratio": 3, "count": 2, "points": 2, "score": 4, "none": 3}
UNITS = dict.fromkeys((*DIGITS, ""), "") | SHOWN | {"points": ""}
"""The unit beside a name: nothing for points, as for a ratio or a count."""
ARROWS = {True: "↑", False: "↓", None: ""}
MISSING = "–"
"""Written where there is no number."""


class Estimate(Protocol):
    """A value that may have an interval."""

    @property
    def value(self) -> float:
        """The number; NaN where it is undefined."""

    @property
    def low(self) -> float | None:
        """The lower end of the interval; None where there is none."""

    @property
    def high(self) -> float | None:
        """The upper end."""


@dataclass(frozen=True)
class Cell:
    """A number as it is written.

    Attributes:
        value: the number.
        interval: `[low, high]`, or nothing.
        mark: letters of significance, or nothing.
        unit: the unit, where the column has none.
        best: whether it is the best of its column.
    """

    value: str
    interval: str = ""
    mark: str = ""
    unit: str = ""
    best: bool = False

    def __str__(self) -> str:
        """`1.92 [1.88, 1.96]`, with unit and mark where there are."""
        return " ".join(filter(None, (self.value, self.interval, self.unit, self.mark)))


@dataclass(frozen=True)
class Difference:
    """The names of two systems, of which the second is subtracted."""

    name: str
    subtracted: str

    def __str__(self) -> str:
        """`new − base`."""
        return f"{self.name} − {self.subtracted}"


@dataclass(frozen=True)
class Column:
    """The head of a column.

    Attributes:
        name: what it shows.
        direction: an arrow, if higher or lower is better.
        unit: the unit of all its numbers.
        number: whether it holds numbers, which stand to the right.
        split: whether values, intervals and marks are aligned each by themselves.
        latex: the head in LaTeX, where it is another one.
    """

    name: str
    direction: str = ""
    unit: str = ""
    number: bool = True
    split: bool = False
    latex: str = ""

    @property
    def title(self) -> str:
        """`DAL ↓ s`: name, direction, unit."""
        return " ".join(filter(None, (self.name, self.direction, self.unit)))


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        columns: its heads.
        rows: its cells; a text may come from a log, and is escaped by the writers.
        names: how many columns, from the first, name a row.
        pairs: whether its rows are differences between two systems, which are comments in LaTeX.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[str | Cell | Difference]]
    names: int = 1
    pairs: bool = False

    @property
    def turns(self) -> bool:
        """Whether rows and columns can be exchanged: each row is one system, and has one name."""
        return self.names == 1 and not self.pairs and all(column.number for column in self.columns[1:])

    @property
    def grouped_rows(self) -> list[Sequence[str | Cell | Difference]]:
        """The rows; where several columns name a row, the first is written only where it changes."""
        above = ["", *(row[0] for row in self.rows)]
        repeated = [self.names > 1 and row[0] == before for row, before in zip(self.rows, above, strict=False)]
        return [["", *row[1:]] if again else row for row, again in zip(self.rows, repeated, strict=True)]


@dataclass(frozen=True)
class Sheet:
    """Tables, and what stands below them.

    Attributes:
        tables: one below the other.
        notes: sentences for people.
        signatures: how the numbers were made.
        caption: the caption of the table in LaTeX.
        label: its label.
        stacked: whether the tables are of equal standing: set apart from each other and from the notes.
    """

    tables: Sequence[Table]
    notes: Sequence[str] = ()
    signatures: Sequence[str] = ()
    caption: str = "Scores"
    label: str = "tab:scores"
    stacked: bool = False


@dataclass(frozen=True)
class Layout:
    """How tables are laid out.

    Attributes:
        digits: digits after the decimal point; None for those of each unit.
        transpose: whether a row is a metric, and a column a system.
        caption, label: those of a table in LaTeX; None for our own.
    """

    digits: int | None = None
    transpose: bool = False
    caption: str | None = None
    label: str | None = None

    def apply(self, sheet: Sheet) -> Sheet:
        """A sheet with this layout; its numbers have their digits already."""
        tables = [transpose(table) if self.transpose and table.turns else table for table in sheet.tables]
        caption = sheet.caption if self.caption is None else self.caption
        return replace(sheet, tables=tables, caption=caption, label=self.label or sheet.label)


def transpose(table: Table) -> Table:
    """A table whose rows are columns, and whose columns are rows; units stand beside the names of the rows."""
    first, *others = table.columns
    columns = [replace(first, name="metric", latex="Metric")]
    split = any(column.split for column in others)
    columns += [Column(str(row[0]), split=split) for row in table.rows]
    rows = [[column.title, *(row[i] for row in table.rows)] for i, column in enumerate(others, 1)]
    return Table(columns, rows)


def format_value(value: float | None, unit: str, digits: int | None = None) -> str:
    """A number as tables show it: milliseconds as seconds, NaN as a dash.

    Example:
        >>> format_value(1915.4, "ms"), format_value(float("nan"), "ms")
        ('1.915', '–')
    """
    if value is None or math.isnan(value):
        return MISSING
    return f"{value / scale(unit):z.{DIGITS[unit] if digits is None else digits}f}"


def format_interval(low: float | None, high: float | None, unit: str, digits: int | None = None) -> str:
    """`[1.880, 1.960]`; nothing where there is no interval."""
    return "" if low is None else f"[{format_value(low, unit, digits)}, {format_value(high, unit, digits)}]"


def format_p(p: float) -> str:
    """A p-value, to the four digits that some thousand resamples support."""
    return MISSING if math.isnan(p) else f"{p:.4f}" if p >= 0.0001 else "< 0.0001"


def make_cell(estimate: Estimate, unit: str, mark: str = "", digits: int | None = None) -> Cell:
    """A value with its interval."""
    interval = format_interval(estimate.low, estimate.high, unit, digits)
    return Cell(format_value(estimate.value, unit, digits), interval, mark)


def metric_column(metric: Metric, unit: str, *, split: bool = False) -> Column:
    """The column of a metric."""
    return Column(repr(metric), ARROWS[metric.higher_is_better], UNITS[unit], split=split)


def metric_title(metric: Metric, unit: str) -> str:
    """`DAL ↓ s`: name, direction, unit."""
    return metric_column(metric, unit).title
