# SPDX-License-Identifier: Apache-2.0
"""What is shown, update by update, as tokens that are written and deleted: what changed is found by comparison.

A text that is appended continues the last word, unless white space or the end of an utterance is between them. A text
that replaces another keeps the words, or characters, that both begin with; all others are deleted and written anew. So
a last word that grew is erased and written again, if the whole text was sent, and only grows, if the rest was appended.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lagging.data.scripts import is_unspaced
from lagging.formats.dialects import Event
from lagging.formats.revisions import Writing

__all__ = ["Display"]

PIECES = {"word": re.compile(r"(?<!\s)\s*+\S++"), "char": re.compile(r"(?<!\s)\s*+\S")}
"""The pieces of a text: its words, or characters, each with the white space before it."""


@dataclass
class Display:
    """What is shown of a recording.

    Attributes:
        level: "word" or "char".
        writing: what was written and deleted.
    """

    level: str
    writing: Writing = field(default_factory=Writing)
    _begin: int = 0  # the piece that the utterance begins with
    _space: str = ""  # white space at the end of what is shown
    _turn: int | str | None = None  # the utterance of the last update that names one

    def update(self, step: int, event: Event) -> None:
        """Show an update."""
        if event.turn is not None:
            if self._turn not in (None, event.turn):
                self._end()
            self._turn = event.turn
        if event.replaces:
            self._replace(step, event.text)
        else:
            self._append(step, event.text)
        if event.final:
            self._end()

    def _end(self) -> None:
        self._begin, self._space = len(self.writing.tokens), ""

    def _glue(self, text: str) -> str:
        """The white space before the first text of an utterance: none between letters of scripts that have none."""
        before = self.writing.tokens[self._begin - 1] if self._begin else ""
        return "" if not before or is_unspaced(before[-1]) or is_unspaced(text[0]) else " "

    def _append(self, step: int, text: str) -> None:
        if not text.strip():
            self._space += text
            return
        text = self._space + text
        if self._begin == len(self.writing.tokens) and not text[0].isspace():
            text = self._glue(text) + text
        self._space = text[len(text.rstrip()) :]
        self.writing.change(step, [], PIECES[self.level].findall(text))

    def _replace(self, step: int, text: str) -> None:
        shown = self.writing.tokens[self._begin :]
        new = PIECES[self.level].findall(text)
        kept = pieces = 0
        for unit, count in self._units(shown):
            if kept == len(new) or new[kept].lstrip() != unit:
                break
            kept, pieces = kept + 1, pieces + count
        added = new[kept:]
        if added and not kept:
            bare = added[0].lstrip()
            added[0] = self._glue(bare) + bare
        self._space = ""
        if added or pieces < len(shown):
            self.writing.change(step, shown[pieces:], added)

    def _units(self, shown: list[str]) -> list[tuple[str, int]]:
        """The words, or characters, of the utterance, and how many pieces each is."""
        units: list[tuple[str, int]] = []
        for piece in shown:
            if self.level == "char" or piece[0].isspace() or not units:
                units.append((piece.lstrip(), 1))
            else:
                units[-1] = (units[-1][0] + piece, units[-1][1] + 1)
        return units
