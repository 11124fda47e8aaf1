# SPDX-License-Identifier: Apache-2.0
"""The compact letter display: two systems share a letter unless they differ (Piepho 2004)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from string import ascii_letters

__all__ = ["compact_letters"]


def compact_letters(names: Sequence[str], differ: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The compact letter display of several names, by insertion and absorption.

    All names begin in one group. For each pair that differs, a group that has both is split into two, each without one
    of them. A group inside another is dropped, and so is one whose pairs all share another group. Each group is a
    letter.

    Args:
        names: the names in the order in which letters are assigned, the best first.
        differ: the pairs that differ; in either order.

    Example:
        >>> compact_letters(["new", "base", "old"], [("new", "old")])
        {'new': 'a', 'base': 'ab', 'old': 'b'}
    """
    groups = [frozenset(names)]
    for a, b in differ:
        unique = list(dict.fromkeys(part for group in groups for part in _split(group, a, b)))
        groups = [group for group in unique if not any(group < larger for larger in unique)]
    rank = {name: index for index, name in enumerate(names)}
    groups.sort(key=lambda group: sorted(rank[name] for name in group))
    for group in list(groups):
        rest = [other for other in groups if other is not group]
        if all(any({*pair} <= other for other in rest) for pair in _pairs(group)):
            groups = rest
    return {name: "".join(_letter(index) for index, group in enumerate(groups) if name in group) for name in names}


def _split(group: frozenset[str], a: str, b: str) -> list[frozenset[str]]:
    return [group - {a}, group - {b}] if a in group and b in group else [group]


def _pairs(group: frozenset[str]) -> list[tuple[str, ...]]:
    """The pairs of a group, which do not differ; for a group of one name, that name."""
    return [*combinations(group, 2)] if len(group) > 1 else [(name,) for name in group]


def _letter(index: int) -> str:
    return ascii_letters[index] if index < len(ascii_letters) else f"({index + 1})"
