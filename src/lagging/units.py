# SPDX-License-Identifier: Apache-2.0
"""What values are measured in, and how people read it: milliseconds are shown as seconds."""

from __future__ import annotations

__all__ = ["COUNTED", "SHOWN", "scale"]

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
