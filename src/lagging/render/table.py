# SPDX-License-Identifier: Apache-2.0
"""The table on the terminal: a row per system; where that is too wide, units below the names, or a row per metric."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from lagging.render.cells import (
    UNITS,
    best,
    cell,
    columns,
    heading,
    labelled,
    labels,
    pad,
    safe,
    shorten,
    signatures,
    undefined,
    wins,
)
from lagging.scoring.scores import Scores

__all__ = ["fits", "grid", "table", "tall"]

BOLD, PLAIN, DIM = "\x1b[1m", "\x1b[0m", "\x1b[2m"


def grid(rows: Sequence[Sequence[str]], right: Sequence[bool], bold: set[tuple[int, int]] | None = None) -> list[str]:
    """Rows as aligned lines; cells in `bold` (row, column) are emphasised."""
    widths = [max(cell_len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for r, row in enumerate(rows):
        cells = [pad(text, widths[i], right[i]) for i, text in enumerate(row)]
        cells = [BOLD + text + PLAIN if bold and (r, i) in bold else text for i, text in enumerate(cells)]
        lines.append("  ".join(cells).rstrip())
    return lines


def table(
    scores: Sequence[Scores], *, width: int | None = None, colour: bool = False, remarks: Sequence[str] = ()
) -> str:
    """The table, what is undefined in it, and the signatures of its numbers."""
    metrics = columns(scores)
    by = labels(scores)
    head = ["system", *by, *(heading(metric, unit) for metric, unit in metrics), "n"]
    rows, bold = [head], {(0, i) for i in range(len(head))}
    winners = [best(scores, metric) for metric, _ in metrics]
    for one in scores:
        row = [safe(text, isolate=width is not None) for text in (one.system, *labelled(one, by))]
        for i, (metric, unit) in enumerate(metrics):
            text = cell(one, metric, unit)
            if wins(text, winners[i]):
                bold.add((len(rows), i + 1 + len(by)))
            row.append(text)
        rows.append([*row, str(max(score.n for score in one))])
    right = [False] * (1 + len(by)) + [True] * (len(head) - 1 - len(by))
    lines = grid(rows, right, bold if colour else None)
    if not fits(rows, width):
        units = [""] * (1 + len(by)) + [*(UNITS[unit] for _, unit in metrics), ""]
        names = [text.removesuffix(unit).rstrip() for text, unit in zip(head, units, strict=True)]
        two = [names, units, *rows[1:]]
        if fits(two, width):
            lines = grid(two, right, {(r + (r > 0), i) for r, i in bold} if colour else None)
        else:
            lines = tall(rows, width or 80, bold if colour else None)
    below = [f"{DIM}{line}{PLAIN}" if colour else line for line in signatures(scores)]
    return "\n".join([*lines, "", *(safe(line) for line in (*remarks, *undefined(scores))), *below])


def fits(rows: Sequence[Sequence[str]], width: int | None) -> bool:
    """Whether no line is longer than the terminal is wide."""
    return width is None or max(map(cell_len, grid(rows, [True] * len(rows[0])))) <= width


def tall(rows: Sequence[Sequence[str]], width: int, bold: set[tuple[int, int]] | None) -> list[str]:
    """For a narrow terminal: the name of a system, and its scores below."""
    head, lines = rows[0], []
    wide = max(cell_len(name) for name in head[1:])
    for r, row in enumerate(rows[1:], 1):
        name = shorten(row[0], width)
        lines.append(BOLD + name + PLAIN if bold else name)
        for i in range(1, len(row)):
            text = pad(row[i], 10, right=True)
            text = BOLD + text + PLAIN if bold and (r, i) in bold else text
            lines.append(f"  {pad(head[i], wide)}  {text}")
    return lines
