# SPDX-License-Identifier: Apache-2.0
"""Options about how tables look: digits, direction, caption and label in LaTeX, signatures."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from lagging.errors import UsageError
from lagging.render.table import Layout

__all__ = ["caption_options", "check_unsigned", "layout_options", "signature_option"]

Command = Callable[..., Any]


def _apply(command: Command, options: tuple[Callable[[Command], Command], ...]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


CAPTION_OPTIONS = (
    click.option("--caption", metavar="TEXT", help="Caption of the table in LaTeX, instead of the usual one."),
    click.option("--label", metavar="NAME", help="Label of the table in LaTeX, such as tab:latency."),
)
LAYOUT_OPTIONS = (
    click.option("--digits", type=click.IntRange(0, 15), metavar="N", help="Digits after the decimal point in tables."),
    click.option("--transpose", is_flag=True, help="Make a row of each metric, and a column of each system."),
    *CAPTION_OPTIONS,
)


def layout_options(command: Command) -> Command:
    """How tables are laid out; they arrive as `layout`."""
    return _apply(_with_layout(command), LAYOUT_OPTIONS)


def caption_options(command: Command) -> Command:
    """Caption and label of a table in LaTeX; they arrive in `layout`."""
    return _apply(_with_layout(command), CAPTION_OPTIONS)


def _with_layout(command: Command) -> Command:
    @wraps(command)
    def call(*args: Any, digits: int | None = None, transpose: bool = False, **rest: Any) -> Any:
        layout = Layout(digits, transpose, rest.pop("caption"), rest.pop("label"))
        return command(*args, layout=layout, **rest)

    return call


signature_option = click.option(
    "--no-signatures",
    "unsigned",
    is_flag=True,
    help="Leave the signatures out of the table on the screen; a file and the other formats keep them.",
)


def check_unsigned(unsigned: bool, form: str, output: str | None) -> None:
    """Refuse to leave signatures out of what is kept."""
    if unsigned and (form != "table" or output not in (None, "-")):
        what = f"-f {form}" if form != "table" else f"-o {output}"
        raise UsageError(f"--no-signatures is for the table on the screen; {what} keeps the signatures")
