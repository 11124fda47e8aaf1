# SPDX-License-Identifier: Apache-2.0
r"""All paths with the fewest edits, and the narrowest corridor that has them.

Row by row, the edit distances of all beginnings of the hypothesis are kept as differences between neighbours, one bit
per column (Hyyrö 2003), in integers of Python. A row takes a dozen operations on whole integers, so that the whole
table of a talk is computed in milliseconds. From the end of both texts, the leftmost and the rightmost path with the
fewest edits are followed back; all others lie between these two.

Where pairs of equal tokens are worth 2 and others 1, a path that leaves this corridor has at least an edit more. So it
earns at least 1 less, and the potential of the boundaries is all that it can gain.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lagging.data.edits import optimal_steps
from lagging.data.ragged import Ints
from lagging.longform.corridor import Corridor, Path, Potential
from lagging.longform.optimum import ROWS, Solution
from lagging.longform.words import WordPairs

__all__ = ["hull", "relaxed_edits"]

CELLS = 1 << 27
"""Up to so many cells, the table of edit distances is computed. It takes half a byte per cell."""


def hull(reference: Sequence[int], hypothesis: Sequence[int]) -> tuple[Ints, Ints]:
    """The leftmost and the rightmost column of all paths with the fewest edits, in each row.

    Example:
        >>> hull([1, 2, 3], [1, 9, 2, 3])
        (array([0, 1, 3, 4]), array([0, 2, 3, 4]))
        >>> hull([1, 1], [1])
        (array([0, 0, 1]), array([0, 1, 1]))
    """
    right, down, unpaired = optimal_steps(reference, hypothesis)
    rows, columns = len(reference), len(hypothesis)
    low, high = [0] * (rows + 1), [columns] * (rows + 1)
    j = columns
    for i in range(rows, 0, -1):  # leftmost: as far to the left as possible, then a pair, else up
        bits = right[i - 1]
        while j and bits >> (j - 1) & 1:
            j -= 1
        low[i] = j
        if j and not unpaired[i - 1] >> (j - 1) & 1:
            j -= 1
    j = columns
    for i in range(rows, 0, -1):  # rightmost: up, else a pair, else to the left
        high[i], bits, others = j, down[i - 1], unpaired[i - 1]
        while j and not bits >> (j - 1) & 1:
            j -= 1
            if not others >> j & 1:
                break
    high[0] = j
    return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)


def relaxed_edits(pairs: WordPairs, start: Path, ends: Ints, potential: Potential) -> Solution | None:
    """The optimum by edits alone, where every boundary earns the most that its potential has; None for long texts.

    Args:
        pairs: equal tokens are worth 2, and others 1.
        start: a path with the fewest edits.
        ends: the row in which each segment ends.
        potential: what the end of a segment earns.
    """
    rows, columns = len(pairs.reference), len(pairs.hypothesis)
    if rows * columns > CELLS:
        return None
    ours, theirs = start.pairs.T
    earned = len(ours) + np.count_nonzero(pairs.reference[ours] == pairs.hypothesis[theirs])
    most = sum(float(np.max(potential.most(k, columns + 1))) for k in range(len(ends) - 1))
    corridor = Corridor.between(*hull(pairs.reference.tolist(), pairs.hypothesis.tolist()), rows=ROWS)
    return Solution(start, earned + most, corridor, earned + most - 1.0)
