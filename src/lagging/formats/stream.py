# SPDX-License-Identifier: Apache-2.0
"""A text that is written step by step, and whose end may be deleted again: what is left, and since when.

The tokens that stand are a stack, so that every token is written once and deleted at most once: reading takes linear
time. How they join to words is known only when all of them have been read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from lagging.data.checks import FAR, number
from lagging.data.ragged import Ints
from lagging.data.tokens import tokens
from lagging.errors import Fault
from lagging.formats.line import shown
from lagging.formats.subwords import Joint, join

__all__ = ["Stream"]

LONGEST = FAR / 1000


@dataclass(slots=True)
class Stream:
    """What was written so far.

    Attributes:
        id, line: its name, and the line where it begins.
        recording: the sound that was processed.
        audio, compute: of each step, the seconds processed so far and those spent; None where the log does not say.
        tokens, stamps: the tokens that stand, and the step that wrote each.
        deletions: the tokens deleted, at each step that deleted some.
        cuts: of each deletion that may still matter, how many tokens it left, its step, and its place in `deletions`.
        says_deleted: whether every step said what it deleted.
        sure: whether all lines before could be read, so that a deletion can be checked.
        clock: the audio that the last line spoke of, in seconds.
    """

    id: int | str
    line: int
    recording: str | None = None
    audio: list[float] = field(default_factory=list)
    compute: list[float | None] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    stamps: list[int] = field(default_factory=list)
    deletions: list[list[str]] = field(default_factory=list)
    cuts: list[tuple[int, int, int]] = field(default_factory=list)
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
        if gone := list(filter(None, deleted or ())):  # an empty token does not count
            yield from self._delete(gone)
        written = list(filter(None, new or ()))
        self.tokens += written
        self.stamps += [len(self.audio) - 1] * len(written)

    def _delete(self, deleted: list[str]) -> Iterator[Fault]:
        left = max(len(self.tokens) - len(deleted), 0)
        tail = self.tokens[left:]
        if tail != deleted and self.sure:
            same = next((i for i, (a, b) in enumerate(zip(deleted, tail, strict=False)) if a != b), 0)
            yield Fault(
                "other-tokens-deleted", f"deleted {shown(deleted[same:])}, the text ends in {shown(tail[same:])}"
            )
            self.sure = False  # the same fault would be reported again and again
        del self.tokens[left:], self.stamps[left:]
        while self.cuts and self.cuts[-1][0] > left:
            self.cuts.pop()
        self.cuts.append((left, len(self.audio) - 1, len(self.deletions)))
        self.deletions.append(deleted)

    def read(self, joint: Joint, level: str) -> tuple[str, Ints, int]:
        """The text, the step that last changed each of its target tokens, and how many were deleted over time.

        A word changes when it is written, when a sub-word is added to it, and when one is taken away.
        """
        joined, stamps = join(self.tokens, joint), np.array(self.stamps, dtype=np.int64)
        text = joined.text.strip()
        if level not in ("word", "char"):  # the log's own tokens
            return text, stamps if text else stamps[:0], sum(map(len, self.deletions))
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
        return text, steps, sum(len(tokens(text, level)) for text in gone)
