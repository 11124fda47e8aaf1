# SPDX-License-Identifier: Apache-2.0
"""What values are measured in, and how people read it: milliseconds are shown as seconds."""

from __future__ import annotations

from typing import Any

__all__ = ["COUNTED", "SHOWN", "fastest", "is_too_fast", "scale"]

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
    return (tokens >= FEW) & (tokens > fastest(level) * ms / 1000)
