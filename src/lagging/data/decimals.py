# SPDX-License-Identifier: Apache-2.0
"""Numbers as tools and people write them into text: 3, -2.5, .5, 1e3; read in linear time, and of a bounded length."""

from __future__ import annotations

import re

__all__ = ["DECIMAL", "LONGEST", "decimal", "too_long"]

DECIMAL = r"[-+]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]++)?"
"""Repetitions are possessive, so that a text that is not a number is refused in linear time."""

LONGEST = 1000
"""Characters; no number that means something to a float is longer."""

_PATTERN = re.compile(DECIMAL)


def decimal(text: str, words: tuple[str, ...] = ()) -> float | None:
    """The number in a text; None if it is not a number, or too long for one.

    Args:
        text: without white space around it.
        words: what else counts as one, without regard to case and sign: "nan", "inf", "infinity".

    Example:
        >>> decimal("-2.5e3"), decimal("5."), decimal("nan"), decimal("NaN", ("nan",)), decimal("1" * 2000)
        (-2500.0, 5.0, None, nan, None)
    """
    if len(text) > LONGEST:
        return None
    if _PATTERN.fullmatch(text) or text.lower().removeprefix("-").removeprefix("+") in words:
        return float(text)
    return None


def too_long(text: str) -> str:
    """A remark, for a message, on a number that is too long; "" if it is not.

    Example:
        >>> too_long("1" * 2000)
        ' (2000 characters, and a number has at most 1000)'
    """
    return f" ({len(text)} characters, and a number has at most {LONGEST})" if len(text) > LONGEST else ""
