# SPDX-License-Identifier: Apache-2.0
"""A Stream: what aligners are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Floats, Ints
from lagging.longform.corridor import Path, edit_path
from lagging.longform.words import WordPairs, equality, fold

__all__ = ["Stream"]


@dataclass(frozen=True)
class Stream:
    """A recording: what was written, when, and the reference segments that it is to be cut into.

    Attributes:
        tokens: hypothesis tokens.
        references: the tokens of each segment's reference, in order of time.
        times: when each hypothesis token was written; None if that is not known.
        offset: when each segment begins, in the same unit; None if that is not known.
        unit: of the times, "ms" or "token".
        letters: whether tokens are single characters.
        texts: the hypothesis and the references as they are written, where words are joined by white space that is not
            ASCII; None where there is none.
        glued: which tokens continue a word, so that nothing is cut before them; None if none does.
    """

    tokens: Sequence[str]
    references: Sequence[Sequence[str]]
    times: Floats | None = None
    offset: Floats | None = None
    unit: str = "ms"
    letters: bool = False
    texts: tuple[str, Sequence[str]] | None = None
    glued: npt.NDArray[np.bool_] | None = None

    @cached_property
    def ends(self) -> Ints:
        """How many reference tokens there are up to the end of each segment."""
        return np.cumsum([len(segment) for segment in self.references], dtype=np.int64)

    @cached_property
    def pairs(self) -> WordPairs:
        """The tokens as they are compared: equal pairs are worth 2, and others 1."""
        reference = [fold(token) for segment in self.references for token in segment]
        return WordPairs.of(reference, [fold(token) for token in self.tokens], equality)

    @cached_property
    def edits(self) -> Path:
        """A path with the fewest edits, whichever of them."""
        return edit_path(self.pairs.reference.tolist(), self.pairs.hypothesis.tolist(), self.ends)

    @property
    def has_times(self) -> bool:
        """Whether it is known when tokens were written and segments begin."""
        return self.times is not None and self.offset is not None and not np.isnan(self.offset).any()

    @cached_property
    def shared(self) -> float:
        """How much of the longer text is the same in the other, in order."""
        ours, theirs = self.edits.pairs.T
        reference, hypothesis = self.pairs.reference, self.pairs.hypothesis
        same = np.count_nonzero(reference[ours] == hypothesis[theirs])
        return float(same) / max(len(reference), len(hypothesis), 1)
