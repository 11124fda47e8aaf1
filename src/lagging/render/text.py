# SPDX-License-Identifier: Apache-2.0
"""Tables on a terminal, or in a pipe: aligned columns; on a narrow terminal, other layouts of the same cells."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

from rich.cells import cell_len, set_cell_size

from lagging.errors.printable import printable
from lagging.render.table import MISSING, Cell, Difference, Sheet, Table

__all__ = ["align_columns", "pad", "shorten", "terminal_text", "wrap", "write_text"]

BOLD, PLAIN, DIM = "\x1b[1m", "\x1b[0m", "\x1b[2m"
ISOLATE, END = "\u2068", "\u2069"
"""Around text from right to left, so that a terminal that reorders text leaves the columns beside it where they are."""
SHORTEST = 12
"""Cells of the terminal that a name gets at least."""

Rows = Sequence[Sequence[str]]
Places = set[tuple[int, int]]


def terminal_text(text: str, isolate: bool = True) -> str:
    r"""Text for a terminal: control characters are escaped, text from right to left is isolated.

    Example:
        >>> print(terminal_text("a\x1b[0m"))
        a\x1b[0m
    """
    escaped = printable(text)
    if isolate and any(unicodedata.bidirectional(c) in ("R", "AL") for c in escaped):
        return f"{ISOLATE}{escaped}{END}"
    return escaped


def pad(text: str, width: int, right: bool = False) -> str:
    """Text in a field as wide as the terminal will show it: Chinese takes two cells a character."""
    space = " " * max(0, width - cell_len(text))
    return space + text if right else text + space


def shorten(text: str, width: int) -> str:
    """Text that takes at most `width` cells, with an ellipsis if something was left out."""
    if cell_len(text) <= width:
        return text
    if text.startswith(ISOLATE):
        return ISOLATE + shorten(text[1:-1], width) + END
    return set_cell_size(text, max(0, width - 1)).rstrip() + "…" if width > 0 else ""


def align_columns(rows: Rows, right: Sequence[bool], bold: Places | None = None) -> list[str]:
    """Rows as aligned lines; the cells at `bold` (row, column) are emphasised."""
    widths = [max(cell_len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for r, row in enumerate(rows):
        cells = [pad(text, widths[i], right[i]) for i, text in enumerate(row)]
        cells = [BOLD + text + PLAIN if bold and (r, i) in bold else text for i, text in enumerate(cells)]
        lines.append("  ".join(cells).rstrip())
    return lines


def write_text(sheet: Sheet, *, width: int | None = None, colour: bool = False) -> str:
    """Tables, notes and signatures as text.

    Args:
        sheet: what to write.
        width: columns of the terminal; None to let lines be as long as they are.
        colour: whether terminal colours may be used.
    """
    lines: list[str] = []
    for table in sheet.tables:
        layout = _list_pairs if table.pairs else _list_split if any(c.split for c in table.columns) else _list_plain
        lines += [*layout(table, width, colour), ""]
    notes = [line for note in sheet.notes for line in wrap(terminal_text(note), width)]
    gap = [""] if any(table.pairs for table in sheet.tables) or sheet.label == "tab:comparison" else []
    signatures = [f"{DIM}{line}{PLAIN}" if colour else line for line in sheet.signatures]
    return "\n".join([*lines, *notes, *gap, *signatures]).rstrip()


def _fits(rows: Rows, width: int | None) -> bool:
    return width is None or _width(rows) <= width


def _width(rows: Rows) -> int:
    """The length of the longest line."""
    return max(map(cell_len, align_columns(rows, [True] * len(rows[0]))))


def wrap(text: str, width: int | None) -> list[str]:
    """A line, broken between words where a terminal is narrower."""
    if width is None or cell_len(text) <= width:
        return [text]
    lines, line = [], ""
    for word in text.split(" "):
        if line and cell_len(line) + 1 + cell_len(word) > width:
            lines.append(line)
            line = "  " + word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]


def _bold_places(table: Table) -> Places:
    """The head, and the best cells."""
    best = {(r, i) for r, row in enumerate(table.rows, 1) for i, c in enumerate(row) if isinstance(c, Cell) and c.best}
    return best | {(0, i) for i in range(len(table.columns))}


# ---- a line per row ---------------------------------------------------------------------------------------------


def _list_plain(table: Table, width: int | None, colour: bool) -> list[str]:
    """A line per row; if too wide, with units below the names; then some columns below the others.

    A single row has a line per cell instead.
    """
    head, right = [column.title for column in table.columns], [column.number for column in table.columns]
    rows = [[terminal_text(str(c), isolate=width is not None) for c in row] for row in table.grouped_rows]
    bold = _bold_places(table) if colour else None
    if _fits([head, *rows], width):
        return align_columns([head, *rows], right, bold)
    units = [column.unit for column in table.columns]
    two = [[text.removesuffix(unit).rstrip() for text, unit in zip(head, units, strict=True)], units, *rows]
    if any(units) and _fits(two, width):
        return align_columns(two, right, {(r + (r > 0), i) for r, i in bold} if bold else None)
    whole = [head, *([terminal_text(str(c)) for c in row] for row in table.rows)]
    named = [[" ".join(filter(None, row[: table.names])), *row[table.names :]] for row in whole]
    columns = {(r, i - table.names + 1) for r, i in bold if i >= table.names} | {(0, 0)} if bold else None
    if len(table.rows) > 1:
        return _list_blocks(named, [False, *right[table.names :]], width or 80, columns)
    return _list_cells(named, width or 80, columns)


def _list_blocks(rows: Rows, right: Sequence[bool], width: int, bold: Places | None) -> list[str]:
    """For a narrow terminal: as many columns as fit beside the names, and the others below, with the names again."""
    widths = [max(cell_len(row[i]) for row in rows) for i in range(len(rows[0]))]
    name = min(widths[0], max(width - max(widths[1:]) - 2, SHORTEST))
    blocks: list[list[int]] = []
    room = -1
    for i in range(1, len(widths)):
        if widths[i] + 2 > room:
            blocks.append([])
            room = width - name
        blocks[-1].append(i)
        room -= widths[i] + 2
    lines: list[str] = []
    for block in blocks:
        cells = [[shorten(row[0], name), *(row[i] for i in block)] for row in rows]
        places = {(r, [0, *block].index(i)) for r, i in bold if i in (0, *block)} if bold else None
        lines += [*([""] if lines else []), *align_columns(cells, [False, *(right[i] for i in block)], places)]
    return lines


def _list_cells(rows: Rows, width: int, bold: Places | None) -> list[str]:
    """For a narrow terminal: the name of a row, and its cells below."""
    head, lines = rows[0], []
    widest = max(cell_len(name) for name in head[1:])
    for r, row in enumerate(rows[1:], 1):
        name = shorten(row[0], width)
        lines.append(BOLD + name + PLAIN if bold else name)
        for i in range(1, len(row)):
            text = pad(row[i], 10, right=True)
            text = BOLD + text + PLAIN if bold and (r, i) in bold else text
            lines.append(f"  {pad(head[i], widest)}  {text}")
    return lines


# ---- values, intervals and marks below each other ---------------------------------------------------------------


def _list_split(table: Table, width: int | None, colour: bool) -> list[str]:
    """A line per row, with names cut short where they must be; if still too wide, a block per column.

    The first column names a row, and the last one counts its segments.
    """
    head = [column.title for column in table.columns]
    names = [terminal_text(str(row[0]), isolate=width is not None) for row in table.rows]
    columns = [_align_parts([row[i] for row in table.rows]) for i in range(1, len(head))]
    body = [["", *(column[r] for column in columns)] for r in range(len(names))]
    room = max(map(cell_len, names)) if width is None else width - _width([head, *body]) + len(head[0])
    bold = _bold_places(table) if colour else None
    short = [[shorten(name, max(room, SHORTEST)), *row[1:]] for name, row in zip(names, body, strict=True)]
    if _fits([head, *short], width):
        return align_columns([head, *short], [False] * (len(head) - 1) + [True], bold)
    return _list_columns(head, [[name, *row[1:]] for name, row in zip(names, body, strict=True)], width or 80, bold)


def _align_parts(cells: Sequence[str | Cell | Difference]) -> list[str]:
    """The cells of a column: values end, intervals and marks begin below each other."""
    numbers = [cell if isinstance(cell, Cell) else Cell(str(cell)) for cell in cells]
    value, interval = max(cell_len(c.value) for c in numbers), max(len(c.interval) for c in numbers)
    return [f"{pad(c.value, value, right=True)} {pad(c.interval, interval)} {c.mark}".rstrip() for c in numbers]


def _list_columns(head: Sequence[str], body: Rows, width: int, bold: Places | None) -> list[str]:
    """For a narrow terminal: a block per column, the names below each other."""
    lines: list[str] = []
    counts = dict.fromkeys(count for row in body if (count := row[-1].strip()) != MISSING)
    for i in range(1, len(head) - 1):
        title = f"{head[i]}  ({head[-1]} = {', '.join(counts)})"
        room = max(width - 4 - max(cell_len(row[i]) for row in body), 8)
        rows = [["  " + shorten(row[0], room), row[i]] for row in body]
        marked = {(r, c) for r in range(len(rows)) for c in (0, 1) if bold and (r + 1, i) in bold}
        lines += [BOLD + title + PLAIN if bold else title]
        lines += align_columns(rows, [False, False], marked if bold else None)
    return lines


# ---- pairs of systems -------------------------------------------------------------------------------------------


def _list_pairs(table: Table, width: int | None, colour: bool) -> list[str]:
    """A line per pair; if too wide, without the last column; then with names cut short; then two lines each."""
    rows = _write_pairs(table, lambda name: terminal_text(name, isolate=width is not None))
    if not _fits(rows, width):
        rows = [row[:-1] for row in rows]
    if width is not None and not _fits(rows, width):
        room = (width - _width([[*row[:1], "", *row[2:]] for row in rows]) - len(" − ")) // 2
        if room < SHORTEST:
            return _list_pairs_in_two_lines(table, width)
        rows = [row[:-1] for row in _write_pairs(table, lambda name: shorten(terminal_text(name), room))]
    return align_columns(rows, [False] * len(rows[0]), {(0, i) for i in range(len(rows[0]))} if colour else None)


def _write_pairs(table: Table, clean: Callable[[str], str]) -> list[list[str]]:
    """Head and rows as text; `clean` is for the names of systems."""
    rows = [[str(Difference(clean(c.name), clean(c.subtracted)) if isinstance(c, Difference) else c) for c in row]
            for row in table.rows]  # fmt: skip
    return [[column.title for column in table.columns], *rows]


def _list_pairs_in_two_lines(table: Table, width: int) -> list[str]:
    metric = max(len(str(row[0])) for row in table.rows)
    room = max((width - metric - len(":  − : not significant")) // 2, SHORTEST)
    head, *rows = _write_pairs(table, lambda name: shorten(terminal_text(name), room))
    lines = []
    for name, both, difference, *numbers, verdict, _ in rows:
        values = ", ".join(
            f"{title} {p if p[0] == '<' else f'= {p}'}" for title, p in zip(head[3:], numbers, strict=False)
        )
        below = f"  {difference}, {values}"
        lines += [f"{name}: {both}: {verdict}", *([below] if cell_len(below) <= width else below.split(", p ", 1))]
        if cell_len(below) > width:
            lines[-1] = f"  p {lines[-1]}"
    return lines
