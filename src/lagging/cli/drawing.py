# SPDX-License-Identifier: Apache-2.0
"""Options about resamples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from lagging.stats import RESAMPLES, SEED

__all__ = ["confident", "drawing"]

FEWEST = 100
"""With fewer resamples, the ends of an interval are a matter of chance."""


def drawing(command: Callable[..., Any]) -> Callable[..., Any]:
    """How many resamples, and of which random numbers."""
    seed = click.option(
        "--seed", type=click.IntRange(0), default=SEED, show_default=True, metavar="N", help="Of the random numbers."
    )
    resamples = click.option(
        "--resamples",
        type=click.IntRange(FEWEST),
        default=RESAMPLES,
        show_default=True,
        metavar="N",
        help=f"How many; {FEWEST} or more.",
    )
    return resamples(seed(command))


def confident(help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """How sure intervals are, in %."""
    percent = click.FloatRange(0, 100, min_open=True, max_open=True)
    return click.option("--confidence", type=percent, default=95.0, show_default=True, metavar="%", help=help)
