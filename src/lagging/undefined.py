# SPDX-License-Identifier: Apache-2.0
"""How many segments have no value, which they are, and why."""

from __future__ import annotations

from typing import Any

__all__ = ["Undefined"]


class Undefined(int):
    """How many segments have no value; a number that also knows which they are, and why.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[1, 2], []], source_length=[2, 2], id=["a", "b"])
        >>> u = lagging.score(run, ["DAL"])["DAL"].undefined
        >>> u, u.ids, u.reasons
        (1, ('b',), {'empty hypothesis': ('b',)})
    """

    reasons: dict[str, tuple[Any, ...]]

    def __new__(cls, reasons: dict[str, tuple[Any, ...]]) -> Undefined:
        """Count the ids of all reasons."""
        self = super().__new__(cls, sum(map(len, reasons.values())))
        self.reasons = reasons
        return self

    @property
    def ids(self) -> tuple[Any, ...]:
        """The segments without a value."""
        return tuple(i for ids in self.reasons.values() for i in ids)

    @property
    def counts(self) -> dict[str, int]:
        """How many segments each reason concerns."""
        return {reason: len(ids) for reason, ids in self.reasons.items()}

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with the reasons."""
        return Undefined, (self.reasons,)
