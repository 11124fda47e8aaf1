# SPDX-License-Identifier: Apache-2.0
"""How many segments have no value, which they are, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Undefined"]


class Undefined(int):
    """How many segments have no value; a number that also knows which they are, and why.

    Attributes:
        reasons: the segments, by reason; of scores that were only added up, some of them or none.
        counts: how many there are, by reason.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[1, 2], []], source_length=[2, 2], id=["a", "b"])
        >>> u = lagging.score(run, ["DAL"])["DAL"].undefined
        >>> u, u.ids, u.reasons
        (1, ('b',), {'empty hypothesis': ('b',)})
    """

    reasons: dict[str, tuple[Any, ...]]
    counts: dict[str, int]

    def __new__(cls, reasons: Mapping[str, tuple[Any, ...]], counts: Mapping[str, int] | None = None) -> Undefined:
        """Add up the counts; without any, all ids are given."""
        known = {reason: len(ids) for reason, ids in reasons.items()} if counts is None else dict(counts)
        self = super().__new__(cls, sum(known.values()))
        self.reasons, self.counts = dict(reasons), known
        return self

    @property
    def ids(self) -> tuple[Any, ...]:
        """The segments without a value, as far as they are known."""
        return tuple(i for ids in self.reasons.values() for i in ids)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with the reasons."""
        return Undefined, (self.reasons, self.counts)
