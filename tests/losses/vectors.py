# SPDX-License-Identifier: Apache-2.0
"""One table of vectors for latency in NumPy, torch and JAX, and the batches that are made of them.

`PAPER` has the numbers that Tables 1 to 6 of Cherry & Foster (2019) print. The others have none: what they must give is
computed by the evaluator (`lagging.dal` and relatives) and by `gradient`, which is exact.

Ties are exact ties: a loss must see them as such wherever products of whole numbers are exact, so it may not round
(i−1)·d before it compares (g(i)·|y| − (i−1)·|x| has the same order, and no rounding).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt

Ties = Literal["last", "first", "split"]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Vector:
    """One sentence, and what a paper says of it; None where it says nothing."""

    name: str
    delays: tuple[float, ...]
    source_length: float
    write_cost: float | None = None
    al: float | None = None
    dal: float | None = None
    effective: tuple[float, ...] | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def d(self) -> Fraction:
        """The cost of a write, exactly."""
        if self.write_cost is not None:
            return Fraction(self.write_cost)
        return Fraction(self.source_length) / len(self.delays)

    @property
    def over(self) -> list[Fraction]:
        """g(i) − (i−1)d, exactly."""
        return [Fraction(g) - i * self.d for i, g in enumerate(self.delays)]


PAPER = [
    Vector("table 1 and 3, wait-1", (1, 2, 3, 4), 4, al=1, dal=1, effective=(1, 2, 3, 4)),
    Vector("table 1 and 3, wait-3", (3, 4, 4, 4), 4, al=3, dal=3, effective=(3, 4, 5, 6)),
    Vector("table 2 and 4, wait-4", (4, 5, 5, 5, 5), 5, al=4, dal=4, effective=(4, 5, 6, 7, 8)),
    Vector("table 2 and 4, antagonist", (4, 4, 4, 4, 5), 5, al=2.2, dal=4, effective=(4, 5, 6, 7, 8)),
    Vector("table 5, wait-1", (1, 2, 3, 3, 3, 3), 3, al=1.5, dal=1.75, effective=(1, 2, 3, 3.5, 4, 4.5)),
    Vector("table 5, wait-1-catchup", (1, 1, 2, 2, 3, 3), 3, al=0.8, dal=1, effective=(1, 1.5, 2, 2.5, 3, 3.5)),
    Vector("table 6, wait-1", (1, 2, 3), 6, al=0, dal=1, effective=(1, 3, 5)),
]

TIES = [
    Vector("tie at every step", (3, 4, 5, 6, 6, 6), 6),
    Vector("tie after a pause", (2, 2, 2, 5, 5, 6), 6),
    Vector("tie where |x|/|y| is no binary fraction", (2, 2, 2, 7, 7, 7), 10),
    Vector("ties in two runs", (1, 2, 2, 6, 7, 7, 7, 7), 8),
    Vector("all zero", (0, 0, 0), 3),
    Vector("tie at |x|/|y| = 7/3", (3, 3, 3, 10, 10, 10, 17, 17, 17), 21),
]

PLAIN = [
    Vector("one token for one", (1,), 1),
    Vector("one token after many", (7,), 7),
    Vector("one token, source not read", (2,), 7),
    Vector("many tokens of one", (1, 1, 1, 1, 1, 1, 1), 1),
    Vector("offline", (9, 9, 9, 9), 9),
    Vector("never fully read", (1, 2, 3, 5, 5), 12),
    Vector("beyond the source", (3, 6, 9), 5),
    Vector("fractional delays", (0.5, 1.25, 2.75, 2.75, 4.125), 4.5),
    Vector("milliseconds", (1280.0, 1280.0, 1920.5, 2560.0, 3200.25, 3214.0), 3214.0),
    Vector("reads late", (1, 1, 1, 1, 1, 1, 8, 8), 8),
]

COSTED = [
    Vector("write cost 1", (1, 2, 3), 6, write_cost=1.0),
    Vector("write cost 0.5", (1, 2, 3), 6, write_cost=0.5),
    Vector("writing is free", (1, 3, 3, 7), 7, write_cost=0.0),
    Vector("write cost 2.25", (4, 4, 4, 4, 5), 5, write_cost=2.25),
    Vector("write cost in milliseconds", (640.0, 960.0, 960.0, 3200.0), 3200.0, write_cost=320.0),
]

VECTORS = PAPER + TIES + PLAIN
"""Those whose write cost is |x|/|y|."""


def gradient(vector: Vector, ties: Ties) -> list[Fraction]:
    """∂DAL/∂g(i), exactly: each t gives 1/|y| to the i ≤ t that has the largest g(i) − (i−1)d."""
    over, share = vector.over, Fraction(1, len(vector.delays))
    out = [Fraction(0)] * len(over)
    for t in range(len(over)):
        largest = [i for i in range(t + 1) if over[i] == max(over[: t + 1])]
        chosen = {"last": largest[-1:], "first": largest[:1], "split": largest}[ties]
        for i in chosen:
            out[i] += share / len(chosen)
    return out


@dataclass(frozen=True)
class Batch:
    """Vectors side by side, padded: delays (B, T), lengths (B,), mask (B, T), True where there is a token."""

    delays: Floats
    source_lengths: Floats
    target_lengths: npt.NDArray[np.int64]
    mask: npt.NDArray[np.bool_]
    write_cost: Floats | None

    def spread(self, rows: Sequence[Sequence[float]]) -> Floats:
        """One value per token where the tokens are, 0 at padding."""
        out = np.zeros(self.delays.shape)
        for row, where, values in zip(out, self.mask, rows, strict=True):
            row[where] = values
        return out


def batch(
    vectors: Sequence[Vector],
    padding: Literal["right", "left", "between"] = "right",
    fill: float | Sequence[float] = 0.0,
    width: int | None = None,
) -> Batch:
    """Vectors side by side; `fill` stands in the padding, several values in turn.

    All of them have a write cost, or none. Padding that is "between" surrounds every token.
    """
    lengths = np.array([len(v.delays) for v in vectors], np.int64)
    longest = int(lengths.max())
    width = width or (2 * longest + 1 if padding == "between" else longest + 2)
    delays = np.resize(np.asarray(fill, np.float64), (len(vectors), width))
    mask = np.zeros((len(vectors), width), np.bool_)
    for row, where, vector in zip(delays, mask, vectors, strict=True):
        y = len(vector.delays)
        places = {"right": np.arange(y), "left": np.arange(width - y, width), "between": 1 + 2 * np.arange(y)}[padding]
        where[places] = True
        row[places] = vector.delays
    costs = [v.write_cost for v in vectors if v.write_cost is not None]
    assert len(costs) in (0, len(vectors))
    return Batch(
        delays,
        np.array([v.source_length for v in vectors], np.float64),
        lengths,
        mask,
        np.array(costs, np.float64) if costs else None,
    )
