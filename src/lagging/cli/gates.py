# SPDX-License-Identifier: Apache-2.0
"""What the subcommands with gates share: `--fail-if`, and what happens when one fails."""

from __future__ import annotations

from collections.abc import Sequence

import click

from lagging.cli.common import say

__all__ = ["fail_if", "tell"]

FAILED = 3
"""The exit code when a gate failed."""

fail_if = click.option(
    "--fail-if",
    "conditions",
    multiple=True,
    metavar="GATE",
    help="Exit with 3 if this holds: 'DAL>5', 'AL.high>2000', 'new:BLEU<20'. In the unit of the log. May be repeated.",
)


def tell(sentences: Sequence[str]) -> int:
    """Say which gates failed, whatever else is kept quiet, and return the exit code."""
    for sentence in sentences:
        say(f"gate failed: {sentence}")
    return FAILED if sentences else 0
