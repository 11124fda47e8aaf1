# SPDX-License-Identifier: Apache-2.0
"""Who differs from whom, as letters: two systems share one unless they differ (Piepho 2004)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from string import ascii_letters

__all__ = ["compact_letters"]


def compact_letters(names: Sequence[str], differ: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The compact letter display of some names, by insertion and absorption.

    All names begin with one letter. For each pair that differs, a group that has both is parted into two, each without
    one of them; a group inside another is dropped, and so is one whose pairs all share another letter.

    Args:
        names: in the order in which letters are given out, the best first.
        differ: the pairs that differ; in either order.

    Example:
        >>> compact_letters(["new", "base", "old"], [("new", "old")])
        {'new': 'a', 'base': 'ab', 'old': 'b'}
    """
    groups = [frozenset(names)]
    for one, other in differ:
        parted = [some for group in groups for some in _part(group, one, other)]
        unique = list(dict.fromkeys(parted))
        groups = [group for group in unique if not any(group < larger for larger in unique)]
    place = {name: at for at, name in enumerate(names)}
    groups.sort(key=lambda group: sorted(place[name] for name in group))
    for group in list(groups):
        others = [some for some in groups if some is not group]
        if all(any({*pair} <= some for some in others) for pair in _pairs(group)):
            groups = others
    return {name: "".join(_letter(at) for at, group in enumerate(groups) if name in group) for name in names}


def _part(group: frozenset[str], one: str, other: str) -> list[frozenset[str]]:
    return [group - {one}, group - {other}] if one in group and other in group else [group]


def _pairs(group: frozenset[str]) -> list[tuple[str, ...]]:
    """All that the group says: which two are alike; of one name, that it is there."""
    return [*combinations(group, 2)] if len(group) > 1 else [(name,) for name in group]


def _letter(at: int) -> str:
    return ascii_letters[at] if at < len(ascii_letters) else f"({at + 1})"
