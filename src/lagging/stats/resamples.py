# SPDX-License-Identifier: Apache-2.0
"""Which segments, or documents, a resample has, and how often: the only module that draws random numbers.

All randomness is whole numbers from `np.random.Generator(np.random.PCG64(seed))`, drawn over units in the order of
their ids, so that neither the machine, nor the number of threads, nor the order of a log changes a resample. Sums over
a resample are exact (`on_grid`), so that they do not depend on the order of addition either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Floats, Ints
from lagging.errors import UsageError

__all__ = ["MOST", "RESAMPLES", "SEED", "check_resamples", "counts", "on_grid", "order", "signs", "swaps"]

SEED = 12345
RESAMPLES = 10_000
MOST = 1_000_000
"""More resamples take hours, and would not move the end of an interval that anybody prints."""
CELLS = 1 << 20
"""How many counts are in memory at a time: 8 MB, and a few times that while they are made."""
WHOLE = re.compile(r"0|-?[1-9]\d*")


def check_resamples(resamples: int) -> None:
    """Refuse so few that there is no interval, and so many that they would take for ever."""
    if not 2 <= resamples <= MOST:
        raise UsageError(f"the resamples of an interval must be from 2 to {MOST}, but are {resamples!r}")


def order(names: Sequence[Any] | npt.NDArray[Any]) -> Ints:
    """Where each name is in the order of resampling: as whole numbers if all are, else as texts.

    Example:
        >>> order(["10", "9", "-8"]), order(["10", "9", "b"])
        (array([2, 1, 0]), array([0, 1, 2]))
    """
    texts = [str(name) for name in names]
    if all(map(WHOLE.fullmatch, texts)):
        sizes = [(len(text), text) for text in texts]  # as numbers, which may have more digits than Python converts
        below = [row for row in range(len(texts)) if texts[row].startswith("-")]
        others = [row for row in range(len(texts)) if not texts[row].startswith("-")]
        rows = sorted(below, key=sizes.__getitem__, reverse=True) + sorted(others, key=sizes.__getitem__)
        return np.array(rows, dtype=np.int64)
    return np.array(sorted(range(len(texts)), key=texts.__getitem__), dtype=np.int64)


def counts(n: int, resamples: int = RESAMPLES, seed: int = SEED, *, cells: int = CELLS) -> Iterator[Floats]:
    """How often each of n units is in each resample (Efron 1979), some resamples at a time.

    A resample is n draws with replacement, so that its counts are multinomial. The draws are those that sacreBLEU and
    `scipy.stats.bootstrap` make of the same seed.

    Example:
        >>> np.concatenate(list(counts(4, resamples=3)))
        array([[1., 1., 1., 1.],
               [1., 0., 2., 1.],
               [0., 2., 0., 2.]])
    """
    dice = _dice(seed)
    step = max(1, cells // max(n, 1))
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = dice.integers(0, n, size=(rows, n))
        drawn += np.arange(rows)[:, None] * n
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def swaps(n: int, resamples: int = RESAMPLES, seed: int = SEED, *, cells: int = CELLS) -> Iterator[Floats]:
    """Which of n units two systems exchange in each trial, 0 or 1 with even chances, some trials at a time.

    Example:
        >>> np.concatenate(list(swaps(4, resamples=3)))
        array([[1., 0., 1., 1.],
               [1., 0., 0., 1.],
               [1., 0., 0., 0.]])
    """
    dice = _dice(seed)
    # NumPy draws 32 of them at once and forgets what is left: whole blocks are the same however they are cut
    part = max(1, cells // max(n, 1))
    step = max(1, part // 32) * 32
    for start in range(0, resamples, step):
        drawn = dice.integers(2, size=(min(step, resamples - start), n), dtype=bool)
        for first in range(0, len(drawn), part):
            yield drawn[first : first + part].astype(np.float64)


def _dice(seed: int) -> np.random.Generator:
    if seed < 0:
        raise UsageError(f"a seed is 0 or more, but is {seed}")
    return np.random.Generator(np.random.PCG64(seed))


WEIGHTS = np.sqrt([0.5, 1.0, 1.5])


def signs(n: int, resamples: int = RESAMPLES, seed: int = SEED, *, cells: int = CELLS) -> Iterator[Floats]:
    """Weights of mean 0 and variance 1 for each of n units: ±√½, ±1 or ±√1½ (Webb 2023), some resamples at a time.

    Example:
        >>> np.concatenate(list(signs(4, resamples=2))).round(2)
        array([[ 1.  , -1.  ,  1.  , -1.  ],
               [-1.  ,  1.  ,  0.71,  1.  ]])
    """
    dice = _dice(seed)
    values = np.concatenate([-WEIGHTS, WEIGHTS])
    step = max(1, cells // max(n, 1))
    for start in range(0, resamples, step):
        yield values[dice.integers(0, 6, size=(min(step, resamples - start), n))]


def on_grid(rows: Floats) -> Floats:
    """Each column in whole multiples of a power of two, so coarse that any resample of the rows adds up exactly.

    A sum of such numbers needs no rounding, whatever the order, be it by one thread or by many. Of 2588 segments, a
    value moves by less than 2⁻⁴¹ of the largest; whole numbers do not move at all.

    Example:
        >>> rows = on_grid(np.array([[0.1], [0.2], [0.3]]))
        >>> float(rows.sum()), float(rows[::-1].sum())
        (0.6000000000000001, 0.6000000000000001)
    """
    _, bound = np.frexp(np.abs(rows).max(axis=0, initial=0))
    step = np.ldexp(1.0, np.maximum(bound + len(rows).bit_length() - 53, -1022))
    return np.asarray(np.rint(rows / step) * step)
