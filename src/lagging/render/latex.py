# SPDX-License-Identifier: Apache-2.0
"""Tables in LaTeX, by booktabs: best values in bold; pairs, notes and signatures are comments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lagging.errors.printable import printable
from lagging.render.table import MISSING, Cell, Column, Difference, Sheet, Table

__all__ = ["latex_text", "write_latex"]

ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{c: "\\" + c for c in "&%$#_{}"},
}
SIGNS = str.maketrans(
    {"↓": r"$\downarrow$", "↑": r"$\uparrow$", "–": "--", "−": "$-$", "●": r"$\bullet$", "τ": r"$\tau$"}
)
"""Signs that fonts of LaTeX may lack: to be put into what `latex_text` returns."""


def latex_text(text: str) -> str:
    r"""Foreign text in LaTeX.

    Example:
        >>> print(latex_text("wait_3 & more"))
        wait\_3 \& more
    """
    return "".join(ESCAPES.get(c, c) for c in printable(re.sub(r"\s+", " ", text)))


def write_latex(sheet: Sheet) -> str:
    """A booktabs table for each table but those of pairs; a floating one, if the sheet has a caption."""
    lines = [r"% needs \usepackage{booktabs}"]
    if sheet.caption is not None:
        lines += [r"\begin{table}", r"\centering", rf"\caption{{{_number(latex_text(sheet.caption))}.}}"]
    for table in sheet.tables:
        if not table.pairs:
            lines += [*_tabular(table), *([""] if sheet.stacked else [])]
    if sheet.caption is not None:
        lines.append(r"\end{table}")
    pairs = [line for table in sheet.tables if table.pairs for line in _comments(table)]
    below = [*pairs, *sheet.notes, *sheet.signatures]
    flat = [re.sub(r"\s+", " ", line) for line in below] if sheet.stacked else below
    return "\n".join([*lines, *(f"% {printable(line)}" for line in flat)])


def _comments(table: Table) -> Iterator[str]:
    for row in ([column.title for column in table.columns], *table.rows):
        yield "  ".join(filter(None, map(str, row)))


def _tabular(table: Table) -> Iterator[str]:
    kinds = [r"r@{\ }l" if column.split else "r" if column.number else "l" for column in table.columns]
    yield rf"\begin{{tabular}}{{{''.join(kinds)}}}"
    yield r"\toprule"
    yield " & ".join(map(_head, table.columns)) + r" \\"
    yield r"\midrule"
    longest = [
        max((cell.mark for row in table.rows if isinstance(cell := row[i], Cell)), key=len, default="")
        for i in range(len(table.columns))
    ]
    for row in table.grouped_rows:
        cells = zip(row, table.columns, longest, strict=True)
        yield " & ".join(_cell(cell, column.split, mark) for cell, column, mark in cells) + r" \\"
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _head(column: Column) -> str:
    if column.latex:
        return column.latex
    title = _text(" ".join(filter(None, (column.name, column.direction)))) + (
        f" ({column.unit})" if column.unit else ""
    )
    return rf"\multicolumn{{2}}{{c}}{{{title}}}" if column.split else title


def _text(text: str) -> str:
    return re.sub(r"(?<![\w.$-])-(?=\d)", "$-$", latex_text(text).translate(SIGNS))


def _cell(cell: str | Cell | Difference, split: bool, longest: str) -> str:
    if not isinstance(cell, Cell):
        return _text(str(cell))
    if split:
        value = _number(cell.value)
        bold = rf"\textbf{{{value}}}" if cell.best else value
        return f"{bold} & {_number(cell.interval)}{_raise(cell.mark, longest)}"
    text = str(cell)
    text = "--" if text == MISSING else f"${text}$" if text.startswith("-") else text
    return rf"\textbf{{{text}}}" if cell.best else text


def _number(text: str) -> str:
    """Numbers with a minus sign, and an en dash where there is none."""
    return re.sub(r"-(?=\d)", "$-$", text).replace(MISSING, "--")


def _raise(mark: str, longest: str) -> str:
    """Letters above the line, as wide as the longest of the column."""
    if not longest:
        return ""
    empty = longest[len(mark) :]
    both = mark + (rf"\phantom{{{empty}}}" if empty else "")
    return f"$^{{{both}}}$".replace("≠", r"\neq ")
