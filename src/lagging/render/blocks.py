# SPDX-License-Identifier: Apache-2.0
"""Results of several small tables, and the notes below them, as text, Markdown or LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from lagging.errors.printable import printable
from lagging.render.cells import safe
from lagging.render.documents import LATEX_SIGNS, latex_text, markdown_text
from lagging.render.table import DIM, PLAIN, fits, grid, tall

__all__ = ["Block", "blocks_as_latex", "blocks_as_markdown", "blocks_as_text"]


@dataclass(frozen=True)
class Block:
    """A table.

    Attributes:
        head, rows: its cells.
        names: how many columns, from the first, name a row.
        texts: how many columns are text, and not numbers.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1
    texts: int = 1

    @property
    def grouped(self) -> list[list[str]]:
        """The rows; where several columns name a row, the first is written only where it changes."""
        above = ["", *(row[0] for row in self.rows)]
        same = [self.names > 1 and row[0] == before for row, before in zip(self.rows, above, strict=False)]
        return [["", *row[1:]] if repeated else list(row) for row, repeated in zip(self.rows, same, strict=True)]


def blocks_as_text(
    blocks: Sequence[Block], notes: Sequence[str], signatures: Sequence[str], *, width: int | None, colour: bool
) -> str:
    """Tables for a terminal, one below the other; where one is too wide, a line per cell."""
    lines: list[str] = []
    for block in blocks:
        bold = {(0, i) for i in range(len(block.head))} if colour else None
        rows = [list(block.head), *([safe(cell, isolate=width is not None) for cell in row] for row in block.grouped)]
        if fits(rows, width):
            lines += grid(rows, [i >= block.texts for i in range(len(block.head))], bold)
        else:
            whole = [list(block.head), *([safe(cell) for cell in row] for row in block.rows)]
            named = [[" ".join(filter(None, row[: block.names])), *row[block.names :]] for row in whole]
            lines += tall(named, width or 80, bold)
        lines.append("")
    said = [safe(note) for note in notes]
    below = [f"{DIM}{line}{PLAIN}" if colour else line for line in signatures]
    return "\n".join([*lines, *(part for note in said for part in _wrapped(note, width)), *below]).rstrip()


def _wrapped(text: str, width: int | None) -> list[str]:
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


def blocks_as_markdown(blocks: Sequence[Block], notes: Sequence[str], signatures: Sequence[str]) -> str:
    """Tables, one below the other."""
    lines: list[str] = []
    for block in blocks:
        lines.append("| " + " | ".join(map(markdown_text, block.head)) + " |")
        lines.append("|" + "---|" * block.texts + "---:|" * (len(block.head) - block.texts))
        lines += ["| " + " | ".join(map(markdown_text, row)) + " |" for row in block.grouped]
        lines.append("")
    return "\n".join([*lines, *(f"- {markdown_text(note)}" for note in notes), *(f"- `{line}`" for line in signatures)])


def blocks_as_latex(blocks: Sequence[Block], notes: Sequence[str], signatures: Sequence[str]) -> str:
    """A booktabs table per block; notes and signatures as comments."""
    lines = ["% needs \\usepackage{booktabs}"]
    for block in blocks:
        lines.append(rf"\begin{{tabular}}{{{'l' * block.texts}{'r' * (len(block.head) - block.texts)}}}")
        lines += [r"\toprule", " & ".join(map(_cell, block.head)) + r" \\", r"\midrule"]
        lines += [" & ".join(map(_cell, row)) + r" \\" for row in block.grouped]
        lines += [r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join([*lines, *(f"% {_flat(line)}" for line in (*notes, *signatures))])


def _flat(text: str) -> str:
    return printable(re.sub(r"\s+", " ", text))


def _cell(text: str) -> str:
    text = latex_text(text).translate(LATEX_SIGNS)
    return re.sub(r"(?<![\w.$-])-(?=\d)", "$-$", text)
