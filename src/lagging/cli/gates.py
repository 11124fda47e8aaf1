# SPDX-License-Identifier: Apache-2.0
"""The option `--fail-if`, and the exit code when a gate fails."""

from __future__ import annotations

from collections.abc import Sequence

import click

from lagging.cli.messages import print_message

__all__ = ["gate_option", "report_failed_gates"]

FAILED = 3
"""The exit code when a gate fails."""

gate_option = click.option(
    "--fail-if",
    "conditions",
    multiple=True,
    metavar="GATE",
    help="Exit with 3 if this holds: 'DAL>5s', 'AL.high>3000ms', 'new:BLEU<20'; a number without a unit is in that of "
    "the table. May be repeated.",
)


def report_failed_gates(sentences: Sequence[str]) -> int:
    """Print which gates failed, even with -q, and return the exit code."""
    for sentence in sentences:
        print_message(f"gate failed: {sentence}")
    return FAILED if sentences else 0
