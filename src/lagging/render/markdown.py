# SPDX-License-Identifier: Apache-2.0
"""Tables in Markdown: best values in bold, notes and signatures as lists below."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lagging.errors.printable import printable
from lagging.render.table import Cell, Column, Difference, Sheet

__all__ = ["markdown_text", "write_markdown"]


def markdown_text(text: str) -> str:
    r"""Foreign text in Markdown.

    Example:
        >>> print(markdown_text("wait_3|new"))
        wait\_3\|new
    """
    flat = printable(re.sub(r"\s+", " ", text))
    return re.sub(r"([\\`*_{}\[\]<>()#|~])", r"\\\1", flat)


def write_markdown(sheet: Sheet) -> str:
    """Tables, one below the other, then notes and signatures."""
    lines: list[str] = []
    for table in sheet.tables:
        lines.append(_line(map(_head, table.columns)))
        lines.append("|" + "".join("---:|" if column.number else "---|" for column in table.columns))
        lines += [_line(_cell(cell, c.split) for cell, c in zip(row, table.columns, strict=True))
                  for row in table.grouped_rows]  # fmt: skip
        lines.append("")
    lines += [f"- {markdown_text(note)}" for note in sheet.notes]
    return "\n".join([*lines, *(f"- `{line}`" for line in sheet.signatures)])


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _head(column: Column) -> str:
    return " ".join(filter(None, (markdown_text(column.name), column.direction, column.unit)))


def _cell(cell: str | Cell | Difference, split: bool) -> str:
    if not isinstance(cell, Cell):
        return markdown_text(str(cell))
    if not split:
        return f"**{cell}**" if cell.best else str(cell)
    value = f"**{cell.value}**" if cell.best else cell.value
    return " ".join(filter(None, (value, cell.interval))) + (f" <sup>{cell.mark}</sup>" if cell.mark else "")
