# SPDX-License-Identifier: Apache-2.0
"""What stands written: pieces, the step that wrote each of them, and what was taken back."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate, repeat

from lagging.agents.failures import Failure
from lagging.data.tokens import tokens
from lagging.errors import UsageError
from lagging.formats.subwords import AS_IS, BYTES, MARKED, WORDS, Joint, join

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

    In the end every token has the step from which on it, and all before it, stayed as they are. A word is there when
    its last piece is; what is left of a word that lost its end is there since then. Where all pieces stay and others
    follow, nothing was taken back, also if the last word grew.

    Attributes:
        pieces: what stands written; the list that the agent sees as `state.target`.
        owners: the step that wrote each piece, or changed what was there.
        erased: tokens that were taken back.
        revisions: how often that happened.
    """

    __slots__ = ("_joint", "_level", "_plain", "_since", "_solid", "_split", "erased", "owners", "pieces", "revisions")

    def __init__(self, pieces: list[str], joined_by: str = "word", level: str = "word") -> None:
        if joined_by not in JOINTS:
            raise UsageError(f"pieces are joined by one of {', '.join(JOINTS)}, not {joined_by!r}")
        if level not in LEVELS:
            raise UsageError(f"an agent's tokens are counted by one of {', '.join(LEVELS)}, not {level!r}")
        self.pieces = pieces
        self.owners: list[int] = []
        self.erased = 0
        self.revisions = 0
        self._since: list[int] = []  # of the tokens that stayed when something was changed last, the step of each
        self._solid = 0  # how many pieces there were then
        self._joint, self._level = JOINTS[joined_by], level
        self._plain = level == "token" or (level == "word" and joined_by == "word")  # a piece is a token
        self._split: Callable[[str], list[str]] = _whole if joined_by == "none" else str.split

    def write(self, content: str | Sequence[str], step: int) -> bool:
        """Write a text or a list of pieces; whether there was anything in it."""
        some = self._split(content) if type(content) is str else self._parts(content)
        self.pieces += some
        self.owners += [step] * len(some)
        return bool(some)

    def has_more(self, text: str, most: int) -> bool:
        """Whether a text has more than so many pieces; the rest of it is not split."""
        return len(text) > 2 * most and self._split is not _whole and len(text.split(None, most)) > most

    def erase(self, count: int, step: int) -> None:
        """Take back the last pieces."""
        if count > len(self.pieces):
            raise Failure("erased-too-much", f"{count} tokens, where {len(self.pieces)} stood")
        kept = len(self.pieces) - count
        if self._plain:
            self._put(kept, [], step)
        else:
            self._replace(self.pieces[:kept], step)

    def revise(self, content: str | Sequence[str], step: int) -> bool:
        """This is the whole text now; whether that changed anything."""
        old = list(self.pieces)
        if isinstance(content, str) and self._split is _whole:
            shared = _shared("".join(old), content)
            kept = [piece for piece, end in zip(old, accumulate(map(len, old)), strict=True) if end <= shared]
            new = kept + _whole(content[sum(map(len, kept)) :])
        else:
            new = self._parts(content)
        if new[: len(old)] == old:
            return self.write(new[len(old) :], step)
        if self._plain:
            same = _shared(old, new)
            self._put(same, new[same:], step)
        else:
            self._replace(new, step)
        return True

    def _parts(self, content: str | Sequence[str]) -> list[str]:
        """The pieces of what was written; where pieces are words, there is no space in any."""
        if isinstance(content, str):
            return self._split(content)
        if self._joint is WORDS and self._level == "word":
            return " ".join(content).split()
        return list(content)

    def _put(self, kept: int, new: list[str], step: int) -> None:
        """Put other pieces in place of those after the first few, where a piece is a token."""
        gone = len(self.pieces) - kept
        self.pieces[kept:] = new
        self.owners[kept:] = repeat(step, len(new))
        self.erased += gone
        self.revisions += gone > 0

    def _replace(self, new: list[str], step: int) -> None:
        """Put other pieces in place of all: tokens that stay keep their step, all others are there since this one."""
        before, since = self._tokens()
        self.pieces[:] = new
        self.owners[:] = repeat(step, len(new))
        after, _ = self._tokens()
        same = _shared(before, after)
        self._since, self._solid = since[:same], len(new)
        self.erased += len(before) - same
        self.revisions += same < len(before)

    def _tokens(self) -> tuple[list[str], list[int]]:
        """What gets a delay, and the step of each."""
        if self._plain:
            return list(self.pieces), list(self.owners)
        joined = join(self.pieces, self._joint)
        places = joined.owners(joined.ends(self._level)).tolist()
        settled = self._since[: bisect_left(places, self._solid)]  # without the last of them, if that has grown
        return tokens(joined.text, self._level), settled + [self.owners[place] for place in places[len(settled) :]]

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
        said = " ".join(self.pieces) if self._joint is WORDS else join(self.pieces, self._joint).text
        return said.strip(), self._tokens()[1]


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many items two sequences begin with that are the same."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # by halves, so that what is long is compared by Python itself
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _whole(text: str) -> list[str]:
    return [text] if text else []
