# SPDX-License-Identifier: Apache-2.0
"""Resamples: how often each segment, or document, is in each of them. No other module draws random numbers.

All random numbers are integers from `np.random.Generator(np.random.PCG64(seed))`, drawn over units in the order of
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

__all__ = ["MAX_RESAMPLES", "RESAMPLES", "SEED", "check_resamples", "counts", "on_grid", "order", "signs", "swaps"]

SEED = 12345
RESAMPLES = 10_000
MAX_RESAMPLES = 1_000_000
"""More resamples take hours, and would not change the printed digits of an interval."""
CELLS = 1 << 20
"""The number of counts in memory at a time: 8 MB, and a few times that while they are made."""
INTEGER = re.compile(r"0|-?[1-9]\d*")


def check_resamples(resamples: int) -> None:
    """Refuse fewer resamples than an interval needs, and more than anybody can wait for."""
    if not 2 <= resamples <= MAX_RESAMPLES:
        raise UsageError(f"the resamples of an interval must be from 2 to {MAX_RESAMPLES}, but are {resamples!r}")


def order(names: Sequence[Any] | npt.NDArray[Any]) -> Ints:
    """The rows of the names in the order of resampling: sorted as integers if all are integers, else as texts.

    Example:
        >>> order(["10", "9", "-8"]), order(["10", "9", "b"])
        (array([2, 1, 0]), array([0, 1, 2]))
    """
    texts = [str(name) for name in names]
    if all(map(INTEGER.fullmatch, texts)):
        sizes = [(len(text), text) for text in texts]  # integers may have more digits than Python converts
        negative = [row for row in range(len(texts)) if texts[row].startswith("-")]
        positive = [row for row in range(len(texts)) if not texts[row].startswith("-")]
        rows = sorted(negative, key=sizes.__getitem__, reverse=True) + sorted(positive, key=sizes.__getitem__)
        return np.array(rows, dtype=np.int64)
    return np.array(sorted(range(len(texts)), key=texts.__getitem__), dtype=np.int64)


def counts(n: int, resamples: int = RESAMPLES, seed: int = SEED, *, cells: int = CELLS) -> Iterator[Floats]:
    """How often each of n units is in each resample (Efron 1979), in parts of several resamples.

    A resample is n draws with replacement, so its counts are multinomial. The draws are those that sacreBLEU and
    `scipy.stats.bootstrap` make from the same seed.

    Example:
        >>> np.concatenate(list(counts(4, resamples=3)))
        array([[1., 1., 1., 1.],
               [1., 0., 2., 1.],
               [0., 2., 0., 2.]])
    """
    generator = _generator(seed)
    step = max(1, cells // max(n, 1))
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        indices = generator.integers(0, n, size=(rows, n))
        indices += np.arange(rows)[:, None] * n
        yield np.bincount(indices.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def swaps(n: int, resamples: int = RESAMPLES, seed: int = SEED, *, cells: int = CELLS) -> Iterator[Floats]:
    """Which of n units two systems exchange in each trial: 0 or 1 with equal probability, in parts of several trials.

    Example:
        >>> np.concatenate(list(swaps(4, resamples=3)))
        array([[1., 0., 1., 1.],
               [1., 0., 0., 1.],
               [1., 0., 0., 0.]])
    """
    generator = _generator(seed)
    # NumPy draws 32 of them at once and drops the rest: whole blocks are the same however they are divided
    part = max(1, cells // max(n, 1))
    step = max(1, part // 32) * 32
    for start in range(0, resamples, step):
        exchanged = generator.integers(2, size=(min(step, resamples - start), n), dtype=bool)
        for first in range(0, len(exchanged), part):
            yield exchanged[first : first + part].astype(np.float64)


def _generator(seed: int) -> np.random.Generator:
    if seed < 0:
        raise UsageError(f"a seed is 0 or more, but is {seed}")
    return np.random.Generator(np.random.PCG64(seed))


WEIGHTS = np.sqrt([0.5, 1.0, 1.5])


def signs(n: int, resamples: int = RESAMPLES, seed: int = SEED, *, cells: int = CELLS) -> Iterator[Floats]:
    """Weights of mean 0 and variance 1 for each of n units: ±√½, ±1 or ±√1½ (Webb 2023), in parts of resamples.

    Example:
        >>> np.concatenate(list(signs(4, resamples=2))).round(2)
        array([[ 1.  , -1.  ,  1.  , -1.  ],
               [-1.  ,  1.  ,  0.71,  1.  ]])
    """
    generator = _generator(seed)
    values = np.concatenate([-WEIGHTS, WEIGHTS])
    step = max(1, cells // max(n, 1))
    for start in range(0, resamples, step):
        yield values[generator.integers(0, 6, size=(min(step, resamples - start), n))]


def on_grid(rows: Floats) -> Floats:
    """Each column in multiples of a power of two, so coarse that any resample of the rows adds up exactly.

    A sum of such numbers needs no rounding, whatever the order and the number of threads. With 2588 segments, a value
    changes by less than 2⁻⁴¹ of the largest; integers do not change at all.

    Example:
        >>> rows = on_grid(np.array([[0.1], [0.2], [0.3]]))
        >>> float(rows.sum()), float(rows[::-1].sum())
        (0.6000000000000001, 0.6000000000000001)
    """
    _, bound = np.frexp(np.abs(rows).max(axis=0, initial=0))
    step = np.ldexp(1.0, np.maximum(bound + len(rows).bit_length() - 53, -1022))
    return np.asarray(np.rint(rows / step) * step)
