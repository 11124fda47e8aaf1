# SPDX-License-Identifier: Apache-2.0
"""The words of the source, the times at which they were spoken, and which target token each belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Ragged
from lagging.errors import UsageError

__all__ = ["ALIGNED", "Spoken"]

ALIGNED = ("hypothesis", "reference")
"""What a word alignment can be of: source words with the words of either."""


@dataclass(frozen=True, eq=False)
class Spoken:
    """The words of the source of each segment of a Run.

    Attributes:
        start, end: when each word began and ended, in ms from the beginning of the segment.
        words: the words of each segment, as tuples of texts; None for a segment without word times.
        source, target: of each pair of a word alignment, the index of the source word and of the target token, from 0;
            None without an alignment.
        times: hash of the file with the word times.
        alignment: what is aligned with the source words, and the hash of its file: "reference-1a2b3c4d".

    Example:
        >>> Spoken.make([[(0, 400, "good"), (400, 900, "day")]]).end.tolist()
        [[400.0, 900.0]]
    """

    start: Ragged
    end: Ragged
    words: npt.NDArray[np.object_]
    source: Ragged | None = None
    target: Ragged | None = None
    times: str = "given"
    alignment: str = ""

    @classmethod
    def make(cls, segments: Sequence[Sequence[tuple[float, float, str]] | None], times: str = "given") -> Spoken:
        """The words of segments; None for one without word times."""
        words = np.empty(len(segments), dtype=object)
        words[:] = [None if segment is None else tuple(word for _, _, word in segment) for segment in segments]
        start = Ragged.from_rows([[start for start, _, _ in segment or ()] for segment in segments])
        end = Ragged.from_rows([[end for _, end, _ in segment or ()] for segment in segments])
        return cls(start, end, words, times=times)

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Which segments have word times."""
        return np.array([words is not None for words in self.words], dtype=bool)

    @property
    def match(self) -> str:
        """How a source word is found in the output: by "text", or by "alignment"."""
        return "alignment" if self.source is not None else "text"

    def __len__(self) -> int:
        """The number of segments."""
        return len(self.words)

    def __getitem__(self, rows: slice | npt.NDArray[np.generic]) -> Spoken:
        """Some of the segments."""
        source, target = (None if column is None else column.take(rows) for column in (self.source, self.target))
        return replace(
            self,
            start=self.start.take(rows),
            end=self.end.take(rows),
            words=self.words[rows],
            source=source,
            target=target,
        )

    @staticmethod
    def concat(parts: Sequence[Spoken]) -> Spoken:
        """The segments of all parts.

        Raises:
            UsageError: their words come from different files.
        """
        for field in ("times", "alignment"):
            if len(values := sorted({getattr(part, field) for part in parts})) > 1:
                raise UsageError(f"these runs differ in their word {field}: {', '.join(v or 'none' for v in values)}")
        sources, targets = ([c for c in (getattr(p, f) for p in parts) if c is not None] for f in ("source", "target"))
        return replace(
            parts[0],
            start=Ragged.concat([part.start for part in parts]),
            end=Ragged.concat([part.end for part in parts]),
            words=np.concatenate([part.words for part in parts]),
            source=Ragged.concat(sources) if sources else None,
            target=Ragged.concat(targets) if targets else None,
        )

    def wrong_times(self, length: npt.NDArray[np.float64]) -> Iterator[tuple[int, int, str, str]]:
        """What is wrong with the times: segment, word, kind of fault, and the times in seconds.

        Args:
            length: of each segment, in ms; NaN where it is not known.

        Example:
            >>> list(Spoken.make([[(900, 400, "day")]]).wrong_times(np.array([800.0])))
            [(0, 0, 'word-times', 'day ends at 0.4 s, before it begins at 0.9 s')]
        """
        start, end = self.start.values, self.end.values
        segment, place = self.start.owner(np.arange(len(start)))
        again = np.concatenate([[False], segment[1:] == segment[:-1]])[: len(start)]
        fallen = again & ((start < np.roll(start, 1)) | (end < np.roll(end, 1)))
        backward = end < start
        wrong = ~(np.isfinite(start) & np.isfinite(end) & (start >= 0)) | backward | fallen
        outside = ~wrong & (start > length[segment])
        for at in np.flatnonzero(wrong | outside).tolist():
            row, k = int(segment[at]), int(place[at])
            word, begin, stop = self.words[row][k], f"{start[at] / 1000:.6g} s", f"{end[at] / 1000:.6g} s"
            if outside[at]:
                yield row, k, "word-outside", f"{word} begins at {begin}, the source ends at {length[row] / 1000:.6g} s"
            elif backward[at]:
                yield row, k, "word-times", f"{word} ends at {stop}, before it begins at {begin}"
            elif fallen[at]:
                before = f"{start[at - 1] / 1000:.6g} to {end[at - 1] / 1000:.6g} s"
                yield row, k, "word-times", f"{word} at {begin} to {stop}, after a word at {before}"
            else:
                yield row, k, "word-times", f"{word} at {begin} to {stop}"
