# SPDX-License-Identifier: Apache-2.0
"""What stands written: pieces, the step that wrote each of them, and what was taken back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, repeat
from typing import Any

import numpy as np

from lagging.agents.failures import Failure
from lagging.errors import UsageError
from lagging.formats.subwords import AS_IS, BYTES, MARKED, WORDS, Joint, join
from lagging.text import tokens

__all__ = ["JOINTS", "LEVELS", "Hypothesis"]

BPE = Joint(
    "@@ joins a piece to the next", lambda piece: (piece[:-2] if piece.endswith("@@") else piece + " ").encode()
)

JOINTS = {"word": WORDS, "none": AS_IS, "spm": MARKED, "bytes": BYTES, "bpe": BPE}
"""How what an agent writes becomes a text: whole words; as it is, spaces and all; ▁ begins a word; Ġ does; @@ joins."""

LEVELS = ("word", "char", "token")
"""What gets a delay: words, characters, or what the agent wrote, piece by piece."""


class Hypothesis:
    """What stands written.

    In the end every token has the step from which on it, and all before it, stayed as they are: a piece that is taken
    back goes with its step, a word is there when its last piece is, and what is left of a word that lost its end is
    there since then. Text that only grows has nothing taken back, also if its last word grows.

    Attributes:
        pieces: what stands written; the list that the agent sees as `state.target`.
        owners: the step that wrote each piece.
        erased: tokens that were taken back.
        revisions: how often that happened.
    """

    __slots__ = ("_joint", "_level", "_split", "erased", "owners", "pieces", "revisions")

    def __init__(self, pieces: list[str], joined_by: str = "word", level: str = "word") -> None:
        if joined_by not in JOINTS:
            raise UsageError(f"pieces are joined by one of {', '.join(JOINTS)}, not {joined_by!r}")
        if level not in LEVELS:
            raise UsageError(f"an agent's tokens are counted by one of {', '.join(LEVELS)}, not {level!r}")
        self.pieces = pieces
        self.owners: list[int] = []
        self.erased = 0
        self.revisions = 0
        self._joint, self._level = JOINTS[joined_by], level
        self._split: Callable[[str], list[str]] = _whole if joined_by == "none" else str.split

    def write(self, content: str | Sequence[str], step: int) -> bool:
        """Write a text or a list of pieces; whether there was anything in it."""
        some = self._split(content) if type(content) is str else self._parts(content)
        self.pieces.extend(some)
        self.owners.extend(repeat(step, len(some)))
        return bool(some)

    def erase(self, count: int, step: int) -> None:
        """Take back the last pieces."""
        if count > len(self.pieces):
            raise Failure("erased-too-much", f"{count} tokens, where {len(self.pieces)} stood")
        before = self._tokens()
        del self.pieces[len(self.pieces) - count :], self.owners[len(self.owners) - count :]
        self._take_stock(before, step)

    def revise(self, content: str | Sequence[str], step: int) -> bool:
        """This is the whole text now; whether that changed anything."""
        before = self._tokens()
        old = list(self.pieces)
        if isinstance(content, str) and self._split is _whole:
            shared = _shared("".join(old), content)
            ends = list(accumulate(map(len, old)))
            kept = sum(end <= shared for end in ends)
            begin = ends[kept - 1] if kept else 0
            cut = begin if self._level == "token" else shared  # the part of a piece that stays is a piece
            new = [*old[:kept], *filter(None, (content[begin:cut], content[cut:]))]
            kept += cut > begin
        else:
            new = self._parts(content)
            kept = _shared(old, new)
        del self.owners[kept:]
        self.owners.extend(repeat(step, len(new) - kept))
        self.pieces[kept:] = new[kept:]
        if new[: len(old)] != old:
            self._take_stock(before, step)
        return new != old

    def _parts(self, content: str | Sequence[str]) -> list[str]:
        """The pieces of what was written; where pieces are words, there is no space in any."""
        if isinstance(content, str):
            return self._split(content)
        if self._joint is WORDS and self._level == "word":
            return [word for piece in content for word in piece.split()]
        return list(content)

    def _tokens(self) -> list[str]:
        if self._level == "token" or (self._level == "word" and self._joint is WORDS):
            return list(self.pieces)
        return tokens(join(self.pieces, self._joint).text, self._level)

    def _take_stock(self, before: list[str], step: int) -> None:
        """Count the tokens that are gone; the first that is new, and all after it, are so since this step."""
        after = self._tokens()
        same = _shared(before, after)
        self.erased += len(before) - same
        self.revisions += same < len(before)
        if same < len(after) and self._level != "token":
            joined = join(self.pieces, self._joint)
            first = int(joined.owners(joined.ends(self._level))[same])
            self.owners[first:] = repeat(step, len(self.owners) - first)

    def is_blank(self) -> bool:
        """Whether there is no text."""
        if self._joint is WORDS and self._level == "word":
            return not self.pieces
        return not join(self.pieces, self._joint).text.strip()

    def finish(self) -> tuple[str, list[int]]:
        """The text, and the step that wrote each of its tokens.

        Example:
            >>> said = Hypothesis([], joined_by="spm")
            >>> said.write(["▁with"], 0), said.write(["out", "▁end"], 1)
            (True, True)
            >>> said.finish()
            ('without end', [1, 1])
        """
        if self._joint is WORDS and self._level != "char":
            return " ".join(self.pieces), self.owners
        joined = join(self.pieces, self._joint)
        if self._level == "token":
            return joined.text.strip(), self.owners
        places: Any = joined.owners(joined.ends(self._level))
        return joined.text.strip(), np.array(self.owners, dtype=np.int64)[places].tolist()


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many items two sequences begin with that are the same."""
    unlike = (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(unlike, min(len(one), len(other)))


def _whole(text: str) -> list[str]:
    return [text] if text else []
