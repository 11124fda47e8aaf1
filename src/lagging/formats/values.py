# SPDX-License-Identifier: Apache-2.0
"""The values of decoded rows as columns: numbers, lists of numbers, labels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from lagging.data.ragged import Floats, Ragged
from lagging.data.run import Texts, make_texts

__all__ = ["are_numbers", "compact", "labels", "numbers", "ragged"]


def are_numbers(lists: Iterable[Any], column: str = "") -> bool:
    """Whether every value is a list of numbers, or missing; the times of `shown` may have nulls."""
    present = [times for times in lists if times is not UNSET and times is not None]
    allowed = {int, float, type(None)} if column == "shown" else {int, float}
    return all(type(times) is list for times in present) and set(map(type, chain.from_iterable(present))) <= allowed


def compact(lists: list[list[int | float]]) -> npt.NDArray[np.generic]:
    """Numbers, end to end. Most logs of text have only small whole numbers, which `bytearray` takes over at once."""
    try:
        return np.frombuffer(bytearray(chain.from_iterable(lists)), np.uint8)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return _flat(list(chain.from_iterable(lists)))


def _flat(values: list[int | float]) -> Floats:
    """Numbers as an array."""
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError:  # an integer beyond any float
        return np.array([float(f"{value}") for value in values], dtype=np.float64)


def ragged(lists: list[Any], column: str) -> Ragged:
    """A column of lists; a reference token that was never shown is null in the log."""
    if column == "shown":
        lists = [[math.nan if v is None else v for v in row] if isinstance(row, list) else row for row in lists]
    rows = [row if are_numbers([row]) and isinstance(row, list) else [] for row in lists]
    return Ragged.from_lengths(compact(rows), list(map(len, rows)))


def numbers(values: Iterable[Any]) -> Floats:
    """A column of numbers; NaN where there is none."""
    return np.array([math.nan if v is UNSET or v is None else v for v in values], dtype=np.float64)


def labels(values: list[Any]) -> Texts | None:
    """Texts that enter no score: a number is one too.

    Example:
        >>> labels(["talk", 7, ["a.wav", "duration: 6.850 s"], None]).tolist()
        ['talk', '7', 'a.wav', None]
    """
    # SimulEval describes a sound file by a list whose first entry is its path
    flat = [v[0] if isinstance(v, list) and v else v for v in values]
    return make_texts([str(v) if isinstance(v, str | int) else None for v in flat])
