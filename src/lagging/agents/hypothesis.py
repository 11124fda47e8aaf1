# SPDX-License-Identifier: Apache-2.0
"""The translation as it stands: pieces, the step that wrote each of them, and what was erased."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate, repeat

from lagging.agents.failures import Failure
from lagging.data.tokens import tokens
from lagging.errors import UsageError
from lagging.formats.revisions import Change, first_shown
from lagging.formats.subwords import AS_IS, BYTES, MARKED, WORDS, Joint, join

__all__ = ["JOINTS", "LEVELS", "Hypothesis"]

BPE = Joint(
    "@@ joins a piece to the next", lambda piece: (piece[:-2] if piece.endswith("@@") else piece + " ").encode()
)

JOINTS = {"word": WORDS, "none": AS_IS, "spm": MARKED, "bytes": BYTES, "bpe": BPE}
"""How pieces are joined: whole words; unchanged, with their spaces; ▁ begins a word; Ġ begins a word; @@ joins."""

LEVELS = ("word", "char", "token")
"""Units that get a delay: words, characters, or the pieces that the agent wrote."""


class Hypothesis:
    """The translation as it stands.

    In the end, the step of a token is the one since which it and all tokens before it have not changed. A word is there
    when its last piece is; if its end is erased, the rest of it is there since then. Where all pieces stay and others
    follow, nothing was erased, even if the last word grew.

    Attributes:
        pieces: the pieces; the list that the agent sees as `state.target`.
        owners: the step that wrote each piece, or changed what was there.
        erased: number of tokens that were erased.
        revisions: number of times that tokens were erased.
        changes: everything that was done, as in `lagging.formats.revisions`.
    """

    __slots__ = (
        "_joint",
        "_level",
        "_n_settled_pieces",
        "_plain",
        "_settled_steps",
        "_split",
        "changes",
        "erased",
        "owners",
        "pieces",
        "revisions",
    )

    def __init__(self, pieces: list[str], joined_by: str = "word", level: str = "word") -> None:
        if joined_by not in JOINTS:
            raise UsageError(f"pieces are joined by one of {', '.join(JOINTS)}, not {joined_by!r}")
        if level not in LEVELS:
            raise UsageError(f"an agent's tokens are counted by one of {', '.join(LEVELS)}, not {level!r}")
        self.pieces = pieces
        self.owners: list[int] = []
        self.erased = 0
        self.revisions = 0
        self.changes: list[Change] = []
        self._settled_steps: list[int] = []  # the steps of the tokens that stayed at the last revision
        self._n_settled_pieces = 0  # the number of pieces after the last revision
        self._joint, self._level = JOINTS[joined_by], level
        self._plain = level == "token" or (level == "word" and joined_by == "word")  # a piece is a token
        self._split: Callable[[str], list[str]] = _as_piece if joined_by == "none" else str.split

    def write(self, content: str | Sequence[str], step: int) -> bool:
        """Write a text or a list of pieces; whether it was not empty."""
        new_pieces = self._split(content) if type(content) is str else self._parts(content)
        self.changes.append((step, len(self.pieces), new_pieces))
        self.pieces += new_pieces
        self.owners += [step] * len(new_pieces)
        return bool(new_pieces)

    def has_more(self, text: str, limit: int) -> bool:
        """Whether a text has more than `limit` pieces; the rest of it is not split."""
        return len(text) > 2 * limit and self._split is not _as_piece and len(text.split(None, limit)) > limit

    def erase(self, count: int, step: int) -> None:
        """Erase the last pieces."""
        if count > len(self.pieces):
            raise Failure("erased-too-much", f"{count} tokens, where {len(self.pieces)} stood")
        kept = len(self.pieces) - count
        if self._plain:
            self._replace_tail(kept, [], step)
        else:
            self._replace(self.pieces[:kept], step)

    def revise(self, content: str | Sequence[str], step: int) -> bool:
        """Replace the whole text; whether that changed it."""
        old = list(self.pieces)
        if isinstance(content, str) and self._split is _as_piece:
            shared = _common_prefix("".join(old), content)
            kept = [piece for piece, end in zip(old, accumulate(map(len, old)), strict=True) if end <= shared]
            new = kept + _as_piece(content[sum(map(len, kept)) :])
        else:
            new = self._parts(content)
        if new[: len(old)] == old:
            return self.write(new[len(old) :], step)
        if self._plain:
            n_kept = _common_prefix(old, new)
            self._replace_tail(n_kept, new[n_kept:], step)
        else:
            self._replace(new, step)
        return True

    def _parts(self, content: str | Sequence[str]) -> list[str]:
        """The pieces of an answer; where pieces are words, none contains a space."""
        if isinstance(content, str):
            return self._split(content)
        if self._joint is WORDS and self._level == "word":
            return " ".join(content).split()
        return list(content)

    def _replace_tail(self, kept: int, new: list[str], step: int) -> None:
        """Replace the pieces after the first `kept`, where a piece is a token."""
        gone = len(self.pieces) - kept
        self.changes.append((step, kept, new))
        self.pieces[kept:] = new
        self.owners[kept:] = repeat(step, len(new))
        self.erased += gone
        self.revisions += gone > 0

    def _replace(self, new: list[str], step: int) -> None:
        """Replace all pieces: tokens that stay keep their step, the others get this one."""
        before, since = self._tokens()
        self.changes.append((step, 0, new))
        self.pieces[:] = new
        self.owners[:] = repeat(step, len(new))
        after, _ = self._tokens()
        kept = _common_prefix(before, after)
        self._settled_steps, self._n_settled_pieces = since[:kept], len(new)
        self.erased += len(before) - kept
        self.revisions += kept < len(before)

    def _tokens(self) -> tuple[list[str], list[int]]:
        """The units that get a delay, and the step of each."""
        if self._plain:
            return list(self.pieces), list(self.owners)
        joined = join(self.pieces, self._joint)
        last_pieces = joined.owners(joined.ends(self._level)).tolist()
        n_settled = bisect_left(last_pieces, self._n_settled_pieces)  # not the last token, if it has grown since
        steps = self._settled_steps[:n_settled]
        steps += [self.owners[piece] for piece in last_pieces[len(steps) :]]
        return tokens(joined.text, self._level), steps

    def is_blank(self) -> bool:
        """Whether the text is empty."""
        if self._joint is WORDS and self._level == "word":
            return not self.pieces
        return not join(self.pieces, self._joint).text.strip()

    def finish(self) -> tuple[str, list[int]]:
        """The text, and the step that wrote each of its tokens.

        Example:
            >>> hypothesis = Hypothesis([], joined_by="spm")
            >>> hypothesis.write(["▁with"], 0), hypothesis.write(["out", "▁end"], 1)
            (True, True)
            >>> hypothesis.finish()
            ('without end', [1, 1])
        """
        text = " ".join(self.pieces) if self._joint is WORDS else join(self.pieces, self._joint).text
        return text.strip(), self._tokens()[1]

    def first_steps(self) -> list[int]:
        """The step that first showed each token of the text: see `lagging.formats.revisions`.

        Example:
            >>> hypothesis = Hypothesis([])
            >>> hypothesis.write("it is", 0), hypothesis.revise("it was", 1), hypothesis.revise("it is", 2)
            (True, True, True)
            >>> hypothesis.finish(), hypothesis.first_steps()
            (('it is', [0, 2]), [0, 0])
        """
        final, steps = self._tokens()
        if not self.revisions:
            return steps
        seen = first_shown(self.changes, self._joint, self._level, final)
        return [seen.get(t, step) for t, step in enumerate(steps)]


def _common_prefix(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the common prefix of two sequences."""
    low, high = 0, min(len(a), len(b))
    while low < high:  # binary search: slices are compared in C
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _as_piece(text: str) -> list[str]:
    return [text] if text else []
