# SPDX-License-Identifier: Apache-2.0
"""`lagging metrics`."""

from __future__ import annotations

import shutil

import click

from lagging.cli.messages import Messages, emit, terminal_width
from lagging.cli.options import message_options, output_option, plugin_option
from lagging.metrics import metric, registered
from lagging.render.card import card, listing

__all__ = ["command"]


@click.command("metrics")
@click.argument("names", nargs=-1, metavar="[NAME…]")
@output_option
@plugin_option
@message_options
def command(names: tuple[str, ...], output: str | None, messages: Messages) -> None:
    """List the metrics, or print the card of each one named: formula, parameters, edge cases, paper, BibTeX."""
    if not names:
        emit(listing(registered(), width=terminal_width()), output)
        return
    columns = min(100, shutil.get_terminal_size((100, 24)).columns)
    emit("\n\n".join(card(metric(name), width=columns) for name in names), output)
