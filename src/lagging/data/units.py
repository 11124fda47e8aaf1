# SPDX-License-Identifier: Apache-2.0
"""What values are measured in, and how people read it: milliseconds are shown as seconds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from lagging.data.decimals import DECIMAL
from lagging.errors import UsageError

__all__ = ["COUNTED", "SHOWN", "Amount", "fastest", "is_too_fast", "scale"]

COUNTED = {"token": "tokens", "ms": "ms", "token/100": "tokens/100", "ms/min": "ms/min", "points": "points"}
"""Units by the names that scores have for them, as a log counts; a ratio and a count have none."""
SHOWN = COUNTED | {"ms": "s", "ms/min": "s/min"}
"""As people read them."""


def scale(unit: str) -> float:
    """What a value is divided by to be shown.

    Example:
        >>> 1920 / scale("ms"), SHOWN["ms"], 5 / scale("token"), SHOWN["token"]
        (1.92, 's', 5.0, 'tokens')
    """
    return 1000.0 if unit.startswith("ms") else 1.0


AMOUNT = re.compile(rf"(?P<number>{DECIMAL})\s*+(?P<unit>ms|s|min|)")
TIMES = {"ms": 1.0, "s": 1000.0, "min": 60_000.0}
"""Milliseconds in the units in which people write a time."""
LARGE = 100
"""Seconds; a larger number without a unit was hardly meant in seconds."""


@dataclass(frozen=True)
class Amount:
    """A number that a person wrote, with its unit if it has one: `5s`, `3000ms`, `2.5`.

    Attributes:
        number: the number.
        unit: "ms", "s" or "min"; empty for a number in the unit of the table.
    """

    number: float
    unit: str = ""

    @classmethod
    def parse(cls, text: str, option: str) -> Amount:
        """Parse a number with or without a unit.

        Example:
            >>> Amount.parse("5s", "--margin"), Amount.parse("3000 ms", "--margin").value("ms", "--margin")
            (Amount(number=5.0, unit='s'), 3000.0)

        Raises:
            UsageError: it is no number.
        """
        match = AMOUNT.fullmatch(text.strip())
        if match is None or not math.isfinite(float(match["number"])):
            raise UsageError(f"{option} takes a number, such as 2.5, 5s or 3000ms, and not {text!r}")
        return cls(float(match["number"]), match["unit"])

    def value(self, unit: str, what: str) -> float:
        """The number in the unit of a score; without a unit, it is in the unit of the table.

        Example:
            >>> Amount(5, "s").value("ms", "DAL>5s"), Amount(5).value("ms", "DAL>5"), Amount(5).value("token", "DAL>5")
            (5000.0, 5000.0, 5.0)

        Raises:
            UsageError: it is a time, and the score is none.
        """
        if not self.unit:
            return self.number * scale(unit)
        if not unit.startswith("ms"):
            raise UsageError(f"{what}: this is counted in {COUNTED.get(unit) or 'no unit'}, and not in time")
        return self.number * TIMES[self.unit]

    def reading(self, unit: str) -> str:
        """How a number without a unit was read, where that must be said: `5 s`; empty otherwise."""
        return "" if self.unit or not unit.startswith("ms") else f"{self.number:.15g} {SHOWN[unit]}"

    def __str__(self) -> str:
        """As it is written."""
        return f"{self.number:.15g}{self.unit}"


FASTEST = {"word": 100, "char": 300}
"""Target tokens per second of source that no speech comes near. Nobody says ten words, or thirty letters, a second; a
log in seconds that is taken for milliseconds has a thousand times what was said, thousands of words."""

FEW = 10
"""The least number of tokens that a rate of speech is judged by."""


def fastest(level: str) -> int:
    """How many tokens a second are too many. Pieces of words, and a log's own tokens, are taken for letters."""
    return FASTEST.get(level, FASTEST["char"])


def is_too_fast(tokens: Any, ms: Any, level: str) -> Any:
    """Whether so many target tokens cannot be of so many milliseconds of source; of arrays, for each.

    Example:
        >>> is_too_fast(1641, 737, "word"), is_too_fast(1641, 737_000, "word"), is_too_fast(2, 3, "word")
        (True, False, False)
    """
    return (tokens >= FEW) & (tokens / fastest(level) > ms / 1000)
