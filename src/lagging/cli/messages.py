# SPDX-License-Identifier: Apache-2.0
"""Output of the command line: the result on standard output, messages and progress on standard error."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from lagging.data.run import Run
from lagging.errors import Note, counted
from lagging.errors.printable import printable
from lagging.formats.source import resolve
from lagging.scoring.signature import differing

if TYPE_CHECKING:
    from lagging.scoring.scores import Scores

__all__ = ["Messages", "emit", "has_colour", "print_message", "progress_bar", "terminal_width"]

MANY = 3
"""How many systems a note names that is about more of them."""

COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
"""The codes that colour a text on a terminal."""


def print_message(text: str) -> None:
    """Print a line on standard error, without anything that a terminal would take for a command."""
    click.echo(printable(text), err=True)


@dataclass
class Messages:
    """Messages on standard error, beside the result.

    Attributes:
        quiet: whether messages are left out.
        verbose: whether details are printed.
        progress: whether progress bars are shown.
    """

    quiet: bool = False
    verbose: bool = False
    progress: bool = True
    _announced: set[str] = field(default_factory=set)

    def print(self, text: str) -> None:
        """Print a line, unless messages are left out."""
        if not self.quiet:
            print_message(text)

    def announce(self, run: Run) -> None:
        """Print what a log was recognised as, once for each description."""
        if run.origin.description not in self._announced:
            self._announced.add(run.origin.description)
            self.print(f"{run.name}: {run.origin.description}")

    def print_notes(self, notes: Iterable[Note], name: str) -> None:
        """Print what a reader of the scores must know."""
        for note in notes:
            self.print(f"note: {name}: {note}")

    def print_notes_of(self, systems: Sequence[Scores]) -> None:
        """Print the notes about several systems; one that is about many of them is printed once."""
        names: dict[tuple[str, str], list[str]] = {}
        for scores in systems:
            for note in scores.notes:
                names.setdefault((note.kind, note.text), []).append(scores.system)
        shared = {key for key, about in names.items() if len(about) > MANY}
        for scores in systems:
            self.print_notes([note for note in scores.notes if (note.kind, note.text) not in shared], scores.system)
        for kind, text in names:
            if (kind, text) in shared:
                about = names[kind, text]
                self.print(f"note: {', '.join(about[:MANY])} and {len(about) - MANY} more: {kind}: {text}")

    def print_undefined(self, scores: Scores) -> None:
        """With -v, print which segments have no score, and why."""
        for score in scores if self.verbose else ():
            for reason, ids in score.undefined.reasons.items():
                more = " …" * (score.undefined.counts[reason] > len(ids))
                self.print(
                    f"{scores.system}: {score.metric!r} is undefined ({reason}): {', '.join(map(str, ids))}{more}"
                )

    def print_omissions(self, columns: list[str]) -> None:
        """Print what a format could not hold."""
        if columns:
            self.print(f"note: this format cannot hold: {', '.join(columns)}")

    def print_repairs(self, run: Run, warning: str = "") -> None:
        """Print what was repaired, and what was stripped."""
        for repair, count in run.repaired:
            self.print(f"note: {run.name}: repaired: {counted(count, 'segment')}: by --repair {repair}{warning}")
        for kind, count in run.stripped:
            self.print(
                f"note: {run.name}: stripped: {counted(count, 'token')}: {kind}, of hypotheses and references{warning}"
            )

    def print_differences(self, systems: Sequence[Scores]) -> None:
        """Print where the scores of systems were made in different ways."""
        for scores in systems[1:]:
            for score in scores:
                base = next((first for first in systems[0] if first.metric == score.metric), None)
                if base is not None and (fields := differing(base.signature, score.signature)):
                    both = f"{systems[0].system} and {scores.system}"
                    self.print(f"note: {score.metric} of {both} cannot be compared: {', '.join(fields)}")


def has_colour() -> bool:
    """Whether standard output is a terminal that shows colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int | None:
    """The columns of the terminal; None for a pipe, whose lines are never wrapped."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def emit(text: str, path: str | None = None) -> None:
    """Print the result, or write it to a file: whole or not at all."""
    if path is None or path == "-":
        click.echo(_escape(text), color=True)
        return
    from lagging.data.files import write_whole

    with write_whole(path, errors="backslashreplace") as file:
        file.write(text + "\n")


def _escape(text: str) -> str:
    """Escape what a terminal would take for a command, but for our own colours, line breaks and tabs."""
    if all(map(str.isprintable, text.splitlines())):
        return text
    parts = COLOUR.split(text)
    return "".join(part if COLOUR.fullmatch(part) else printable(part, keep="\n\t\u2068\u2069") for part in parts)


@contextmanager
def progress_bar(name: str, paths: str | Sequence[str], messages: Messages) -> Iterator[Callable[[int], None] | None]:
    """Show the bytes read of a log: only on a terminal, and only if reading takes more than a second."""
    if messages.quiet or not messages.progress or not sys.stderr.isatty():
        yield None
        return
    sizes = [source.size for path in ([paths] if isinstance(paths, str) else paths) for source in resolve(path)]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    started, read = time.monotonic(), 0
    bar: Any = None

    def advance(count: int) -> None:
        nonlocal bar, read
        read += count
        if bar is None and time.monotonic() - started > 1:
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

            label = TextColumn("{task.description}", markup=False)
            columns = (label, BarColumn(), DownloadColumn(), TimeRemainingColumn())
            bar = Progress(*columns, console=Console(stderr=True), transient=True)
            bar.start()
            bar.add_task(printable(name), total=total)
        if bar is not None:
            bar.update(bar.task_ids[0], completed=read)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()
