# SPDX-License-Identifier: Apache-2.0
"""Tables in LaTeX, by booktabs: caption and label; best values in bold; pairs, notes and signatures are comments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lagging.errors.printable import printable
from lagging.render.table import MISSING, UNITS, Cell, Column, Difference, Sheet, Table

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

UNIT = re.compile(rf"(?<=[↓↑]) ({'|'.join(sorted(filter(None, set(UNITS.values()))))})\Z")
"""The unit at the end of a title."""

WIDTH = 74
"""Digits of a line of an article, in \\small digits."""
GAP = 2.6
"""Digits between two columns."""
NARROW = ".,;:[]()|iljft "
"""Characters that are about half as wide as a digit."""
NAME = 28
"""Characters of a column of names; longer ones are broken."""
LONGEST = 14
"""Characters of the head of a column; longer names of metrics are abbreviated."""


def latex_text(text: str) -> str:
    r"""Foreign text in LaTeX.

    Example:
        >>> print(latex_text("wait_3 & more"))
        wait\_3 \& more
    """
    return "".join(ESCAPES.get(c, c) for c in printable(re.sub(r"\s+", " ", text)))


def write_latex(sheet: Sheet) -> str:
    """A floating table with caption and label, by booktabs; columns that do not fit stand below the others.

    Names of metrics that are too long for a head are abbreviated, and written out below the table. Pairs, notes and
    signatures are comments.
    """
    caption = _caption(sheet.caption)
    lines = [r"% needs \usepackage{booktabs}", r"\begin{table}", r"\centering", r"\small"]
    lines += [rf"\caption{{{caption}.}}", rf"\label{{{sheet.label}}}"]
    notes: list[str] = []
    panels = [panel for table in sheet.tables if not table.pairs for panel in _panels(_abbreviate(table, notes))]
    for number, panel in enumerate(panels):
        lines += [*([r"\par\medskip"] if number else []), *_tabular(panel)]
    if notes:
        lines += [rf"\par\smallskip\footnotesize {', '.join(notes)}"]
    lines.append(r"\end{table}")
    pairs = [line for table in sheet.tables if table.pairs for line in _comments(table)]
    below = [*pairs, *sheet.notes, *sheet.signatures]
    flat = [re.sub(r"\s+", " ", line) for line in below] if sheet.stacked else below
    return "\n".join([*lines, *(f"% {printable(line)}" for line in flat)])


def _caption(text: str) -> str:
    """A caption, with p-values in mathematics."""
    escaped = _number(latex_text(text)).replace(r"\textless{}", "$<$").replace("≠", r"$\neq$")
    return re.sub(r"\bp \$<\$ ([\d.]+)|\bp\b(?= )", lambda m: f"$p < {m[1]}$" if m[1] else "$p$", escaped)


def _abbreviate(table: Table, notes: list[str]) -> Table:
    """A table whose heads are short; what a mark in a head stands for is added to the notes."""
    columns = []
    for column in table.columns:
        short = column.name.partition("(")[0]
        if not column.latex and column.number and len(column.name) > LONGEST and short != column.name:
            mark = f"$^{{{len(notes) + 1}}}$"
            notes.append(f"{mark}\\,{_text(column.name)}")
            head = _head(replace(column, name=short), mark)
            columns.append(replace(column, latex=head))
        else:
            columns.append(column)
    return replace(table, columns=columns)


def _panels(table: Table) -> Iterator[Table]:
    """The table, or several of fewer columns, each as wide as a line at most; the names of the rows are in all.

    Of several, none has the number of segments where it is the same in all rows: the caption has it.
    """
    panels = list(_divide(table))
    counts = [i for i, column in enumerate(table.columns) if column.latex == "$n$"]
    if len(panels) > 1 and counts and len({str(row[counts[0]]) for row in table.rows}) == 1:
        panels = list(_divide(_select(table, [i for i in range(len(table.columns)) if i not in counts])))
    yield from panels


def _divide(table: Table) -> Iterator[Table]:
    names, line = list(range(table.names)), float(WIDTH)
    for i in names:
        line -= min(_width(table, i), NAME) + GAP
    columns: list[int] = []
    room = line
    for i in range(table.names, len(table.columns)):
        width = _width(table, i) + GAP
        if columns and width > room:
            yield _select(table, [*names, *columns])
            columns, room = [], line
        columns.append(i)
        room -= width
    yield _select(table, [*names, *columns])


def _width(table: Table, i: int) -> float:
    """About how wide a column is, in digits."""
    column = table.columns[i]
    short = replace(column, name=column.name.partition("(")[0], unit=f"({column.unit})" if column.unit else "")
    head = 4 if column.latex in ("$n$", "System") else _length(short.title) + 1
    return max([head, *(_length(str(row[i])) for row in table.rows)])


def _length(text: str) -> float:
    """About how wide a text is, in digits: points and brackets are narrow, capitals are wide."""
    return sum(0.55 if c in NARROW else 1.5 if c.isupper() or c in "mw↓↑" else 1.0 for c in text)


def _select(table: Table, columns: Sequence[int]) -> Table:
    rows = [[row[i] for i in columns] for row in table.rows]
    return replace(table, columns=[table.columns[i] for i in columns], rows=rows)


def _comments(table: Table) -> Iterator[str]:
    for row in ([column.title for column in table.columns], *table.rows):
        yield "  ".join(filter(None, map(str, row)))


def _tabular(table: Table) -> Iterator[str]:
    kinds = [r"r@{\ }l" if column.split else "r" if column.number else "l" for column in table.columns]
    if kinds[0] == "l" and _width(table, 0) > NAME:
        kinds[0] = r"p{0.35\linewidth}"
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


def _head(column: Column, mark: str = "") -> str:
    if column.latex:
        return column.latex
    name = "$p$" + _text(column.name[1:]) if re.fullmatch(r"p\b.*", column.name) else _text(column.name)
    unit = f"({_text(column.unit.strip('()'))})" if column.unit else ""
    name = name if column.number else name[:1].upper() + name[1:]
    title = " ".join(filter(None, (name + mark, _text(column.direction), unit)))
    return rf"\multicolumn{{2}}{{c}}{{{title}}}" if column.split else title


def _text(text: str) -> str:
    text = UNIT.sub(r" (\1)", text)
    return re.sub(r"(?<![\w.$-])-(?=\d)", "$-$", latex_text(text).translate(SIGNS))


def _cell(cell: str | Cell | Difference, split: bool, longest: str) -> str:
    if not isinstance(cell, Cell):
        small = re.fullmatch(r"< ([\d.]+)", str(cell))
        text = f"$<${small[1]}" if small else _text(str(cell))
        return rf"\multicolumn{{2}}{{r}}{{{text}}}" if split else text
    if split:
        value = _number(cell.value)
        bold = rf"\textbf{{{value}}}" if cell.best else value
        return f"{bold} & {_number(cell.interval)}{_raise(cell.mark, longest)}"
    value = rf"\textbf{{{_number(cell.value)}}}" if cell.best else _number(cell.value)
    return " ".join(filter(None, (value, _number(str(replace(cell, value=""))))))


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
