# SPDX-License-Identifier: Apache-2.0
"""Which steps of an alignment lie on a path with the fewest edits, for all of its cells at once (Hyyrö 2003)."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["optimal_steps"]


def optimal_steps(reference: Sequence[int], hypothesis: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """For each row from 1, the columns to which the fewest edits lead by a step to the right, down, but not by a pair.

    Bit j − 1 stands for column j. `larger` and `smaller` are the columns with a distance larger, or smaller, by 1 than
    the column before has; `down`, larger than the row above has; `free`, the same as the row above has in the column
    before.
    """
    columns: dict[int, int] = {}
    for j, token in enumerate(hypothesis):
        columns[token] = columns.get(token, 0) | 1 << j
    every = (1 << len(hypothesis)) - 1
    larger, smaller = every, 0
    rights, downs, unpaired = [], [], []
    for token in reference:
        equal = columns.get(token, 0)
        free = ((((equal & larger) + larger) ^ larger) | equal | smaller) & every
        down = smaller | every ^ (free | larger)
        downs.append(down)
        unpaired.append(free ^ equal)
        down = (down << 1 | 1) & every
        larger = (free & larger) << 1 & every | every ^ (free | down)
        smaller = down & free
        rights.append(larger)
    return rights, downs, unpaired
