# SPDX-License-Identifier: Apache-2.0
"""A text that is written step by step, and whose end may be deleted again: what is left, and since when.

The tokens that stand are a stack, so that every token is written once and deleted at most once: reading takes linear
time. How they join to words is known only when all of them have been read.

A word that was revised has two times. It is *stable* since the step that last changed it. It was *first shown* by the
first step after which the text had this word at this place (the same word, with as many words before it), even if it
was erased in between and came back. So it is never first shown after it is stable, and where nothing was erased, the
two are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from lagging.data.checks import FAR, number
from lagging.data.ragged import Ints
from lagging.data.tokens import tokens
from lagging.errors import Fault
from lagging.formats.line import shown
from lagging.formats.subwords import Joint, join, text_of

__all__ = ["Change", "Stream", "Writing", "first_shown"]

LONGEST = FAR / 1000

Change = tuple[int, int, list[str]]
"""A step, how many of the tokens that stood it left, and the tokens that it wrote after them."""


def first_shown(changes: Iterable[Change], joint: Joint, level: str, final: Sequence[str]) -> dict[int, int]:
    """The step by which each target token of the final text was first shown at its place, in a text that changed so.

    After a change, only what follows the last sure beginning of a token before it is split into tokens again.

    Example:
        >>> from lagging.formats.subwords import MARKED
        >>> changes = [(0, 0, ["▁Hal", "lo", "▁da"]), (1, 2, ["▁dort"]), (2, 2, ["▁da"])]
        >>> first_shown(changes, MARKED, "word", ["Hallo", "da"])
        {0: 0, 1: 0}
    """
    seen: dict[int, int] = {}

    def see(tokens: Iterable[str], place: int, step: int) -> None:
        for at, token in enumerate(tokens, place):
            if at < len(final) and token == final[at]:
                seen.setdefault(at, step)

    if level not in ("word", "char"):  # the log's own tokens
        for step, left, new in changes:
            see(new, left, step)
        return seen
    text, ends = bytearray(), [0]  # all pieces, and where each of them begins
    sure = [(0, 0)]  # pieces that certainly begin a token, and the number of tokens before each
    for step, left, new in changes:
        del text[ends[left] :], ends[left + 1 :]
        for token in new:
            text += joint.piece(token)
            ends.append(len(text))
        while sure[-1][0] >= max(left, 1):
            sure.pop()
        begin, before = sure[-1]
        see(tokens(text_of([bytes(text[ends[begin] :])]), level), before, step)
        for place in range(max(begin + 1, left), len(ends) - 1):
            last, piece = (bytes(text[ends[p] : ends[p + 1]]) for p in (place - 1, place))
            if _begins_token(last, piece, level):
                before += len(_units(text_of([bytes(text[ends[begin] : ends[place]])]), level))
                begin = place
                sure.append((begin, before))
    return seen


def _begins_token(last: bytes, piece: bytes, level: str) -> bool:
    """Whether a token certainly begins with a piece: after or at white space, or, for characters, at a whole one."""
    whole = level == "char" and piece != b"" and piece[0] & 0xC0 != 0x80
    return last[-1:].isspace() or piece[:1].isspace() or whole


def _units(text: str, level: str) -> Sequence[str]:
    """The tokens of a text that others follow, where an end-of-sentence mark is nothing special."""
    return "".join(text.split()) if level == "char" else text.split()


@dataclass(slots=True, kw_only=True)
class Writing:
    """A text as it stands, and how it came to be.

    Attributes:
        tokens, stamps: the tokens that stand, and the step that wrote each.
        deletions: the tokens deleted, at each step that deleted some.
        cuts: of each deletion that may still matter, how many tokens it left, its step, and its place in `deletions`.
        changes: everything that was done.
    """

    tokens: list[str] = field(default_factory=list)
    stamps: list[int] = field(default_factory=list)
    deletions: list[list[str]] = field(default_factory=list)
    cuts: list[tuple[int, int, int]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)

    def change(self, step: int, deleted: list[str], new: list[str]) -> None:
        """Delete so many tokens from the end, and write new ones."""
        left = max(len(self.tokens) - len(deleted), 0)
        if deleted:
            del self.tokens[left:], self.stamps[left:]
            while self.cuts and self.cuts[-1][0] > left:
                self.cuts.pop()
            self.cuts.append((left, step, len(self.deletions)))
            self.deletions.append(deleted)
        self.tokens += new
        self.stamps += [step] * len(new)
        if new or deleted:
            self.changes.append((step, left, new))

    def read(self, joint: Joint, level: str) -> tuple[str, Ints, Ints, int]:
        """The text, the steps that last changed and first showed each of its target tokens, and how many were deleted.

        A word changes when it is written, when a sub-word is added to it, and when one is taken away.
        """
        joined, stamps = join(self.tokens, joint), np.array(self.stamps, dtype=np.int64)
        text = joined.text.strip()
        if level not in ("word", "char"):  # the log's own tokens
            steps = stamps if text else stamps[:0]
            return text, steps, self._first(self.tokens, steps, joint, level), sum(map(len, self.deletions))
        ends = joined.ends(level)
        steps = stamps[joined.owners(ends)]
        gone = [join(deleted, joint).text for deleted in self.deletions]
        if level == "word":
            # a deletion that does not begin with a space has cut the word that ends there now
            cuts = [(joined.tokens[left - 1], step) for left, step, n in self.cuts if left and gone[n][:1].strip()]
            at, when = np.array(cuts, dtype=np.int64).reshape(-1, 2).T
            word = np.searchsorted(ends, at, side="right") - 1
            hit = (word >= 0) & (ends[word] == at) if len(ends) else np.zeros(len(at), dtype=bool)
            steps[word[hit]] = when[hit]  # of several, the last
        first = self._first(tokens(joined.text, level), steps, joint, level)
        return text, steps, first, sum(len(tokens(text, level)) for text in gone)

    def _first(self, final: Sequence[str], steps: Ints, joint: Joint, level: str) -> Ints:
        """The step that first showed each target token of the final text."""
        if not self.deletions:
            return steps
        seen = first_shown(self.changes, joint, level, final)
        # the letters of an end-of-sentence mark were one token until text followed them
        return np.array([seen.get(t, step) for t, step in enumerate(steps.tolist())], dtype=np.int64)


@dataclass(slots=True)
class Stream(Writing):
    """What was written so far.

    Attributes:
        id, line: its name, and the line where it begins.
        recording: the sound that was processed.
        audio, compute: of each step, the seconds processed so far and those spent; None where the log does not say.
        says_deleted: whether every step said what it deleted.
        sure: whether all lines before could be read, so that a deletion can be checked.
        clock: the audio that the last line spoke of, in seconds.
    """

    id: int | str
    line: int
    recording: str | None = None
    audio: list[float] = field(default_factory=list)
    compute: list[float | None] = field(default_factory=list)
    says_deleted: bool = True
    sure: bool = True
    clock: float = 0.0

    def step(
        self, audio: float | None, compute: float | None, new: list[str] | None, deleted: list[str] | None
    ) -> Iterator[Fault]:
        """Add a step; None for a field that the log does not have. Yields its faults."""
        if audio is None:
            yield Fault("missing-audio")
        elif not 0 <= audio < LONGEST:
            yield Fault("impossible-time", f"total_audio_processed: {number(audio)} s")
            audio = None
        elif audio < self.clock:
            yield Fault("impossible-time", f"total_audio_processed: {number(self.clock)} → {number(audio)} s")
        if new is None and audio is not None:
            yield Fault("bad-value", "no `generated_tokens`")
        self.clock = self.clock if audio is None else audio
        if compute is not None and not 0 <= compute < LONGEST:
            yield Fault("impossible-time", f"computation_time: {number(compute)} s")
            compute = None
        self.audio.append(max(self.clock, self.audio[-1]) if self.audio else self.clock)
        self.compute.append(compute)
        self.sure &= new is not None
        self.says_deleted &= deleted is not None
        gone = list(filter(None, deleted or ()))  # an empty token does not count
        if gone and self.sure:
            yield from self._check(gone)
        self.change(len(self.audio) - 1, gone, list(filter(None, new or ())))

    def _check(self, deleted: list[str]) -> Iterator[Fault]:
        """Whether the tokens that are deleted are the last ones."""
        tail = self.tokens[max(len(self.tokens) - len(deleted), 0) :]
        if tail != deleted:
            same = next((i for i, (a, b) in enumerate(zip(deleted, tail, strict=False)) if a != b), 0)
            yield Fault(
                "other-tokens-deleted", f"deleted {shown(deleted[same:])}, the text ends in {shown(tail[same:])}"
            )
            self.sure = False  # the same fault would be reported again and again
