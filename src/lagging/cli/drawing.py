# SPDX-License-Identifier: Apache-2.0
"""Options of comparisons: what is tested, on how many resamples, and which columns stand beside."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from lagging.cli.common import system
from lagging.comparison.external import Column, read_column
from lagging.errors import UsageError
from lagging.stats import CORRECTIONS, MOST, RESAMPLES, SEED, TESTS

__all__ = ["confident", "drawing", "pairing", "read_columns", "with_columns"]

FEWEST = 100
"""With fewer resamples, the ends of an interval are a matter of chance."""


def drawing(command: Callable[..., Any]) -> Callable[..., Any]:
    """How many resamples, and of which random numbers."""
    seed = click.option(
        "--seed", type=click.IntRange(0), default=SEED, show_default=True, metavar="N", help="Of the random numbers."
    )
    resamples = click.option(
        "--resamples",
        type=click.IntRange(FEWEST, MOST),
        default=RESAMPLES,
        show_default=True,
        metavar="N",
        help=f"How many, from {FEWEST} to {MOST}.",
    )
    return resamples(seed(command))


def confident(help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """How sure intervals are, in %."""
    percent = click.FloatRange(0, 100, min_open=True, max_open=True)
    return click.option("--confidence", type=percent, default=95.0, show_default=True, metavar="%", help=help)


def pairing(command: Callable[..., Any]) -> Callable[..., Any]:
    """How pairs of systems are tested."""
    for option in reversed(PAIRING):
        command = option(command)
    return command


def with_columns(command: Callable[..., Any]) -> Callable[..., Any]:
    """Scores of segments that something else computed; `read_columns` reads them."""
    for option in reversed(COLUMNS):
        command = option(command)
    return command


PAIRING = (
    click.option("--base", metavar="NAME", help="Compare the others with this system only, not all pairs."),
    click.option(
        "--test", type=click.Choice(TESTS), help="The paired test; randomisation by segment, bootstrap by document."
    ),
    click.option(
        "--resample",
        "by",
        type=click.Choice(["segment", "document"]),
        help="What is resampled; recordings if several.",
    ),
    click.option(
        "--correction",
        type=click.Choice(list(CORRECTIONS)),
        default="holm",
        show_default=True,
        help="Of p for many pairs.",
    ),
    drawing,
)
COLUMNS = (
    click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="METRIC=NAME:FILE",
        help="A score per segment of a system, such as COMET=new:new.comet; one for each system.",
    ),
    click.option("--lower", multiple=True, metavar="METRIC", help="This column is better when it is lower."),
)


def read_columns(texts: Iterable[str], lower: Iterable[str]) -> list[Column]:
    """The columns of `--column`; those of `--lower` are better when lower."""
    files, lower = [_column(text) for text in texts], list(lower)
    if strange := [name for name in lower if name not in {title for title, _, _ in files}]:
        raise UsageError(f"--lower {strange[0]} names no --column")
    return [read_column(path, name, whose, higher_is_better=name not in lower) for name, whose, path in files]


def _column(text: str) -> tuple[str, str, str]:
    """METRIC=NAME:FILE; names of systems may have a colon, so the file is what exists."""
    name, equals, rest = text.partition("=")
    places = [at for at, letter in enumerate(rest) if letter == ":" and at]
    for at in places:
        try:
            return name.strip(), rest[:at], system(rest[at + 1 :])[1]
        except UsageError:
            continue
    if not equals or not name.strip() or not places:
        raise UsageError(f"cannot read --column {text!r}; write it like COMET=new:new.comet")
    raise UsageError(f"no such file or directory: {rest[places[0] + 1 :]}")
