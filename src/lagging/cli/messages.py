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
from lagging.render.text import wrap
from lagging.scoring.signature import differing

if TYPE_CHECKING:
    from lagging.scoring.scores import Scores

__all__ = ["Messages", "emit", "has_colour", "print_message", "progress_bar", "terminal_width"]

COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
"""The codes that colour a text on a terminal."""


def print_message(text: str) -> None:
    """Print a line on standard error, without anything that a terminal would take for a command.

    A terminal gets it broken between words.
    """
    line = printable(text)
    lines = wrap(line, shutil.get_terminal_size().columns) if sys.stderr is not None and sys.stderr.isatty() else [line]
    click.echo("\n".join(lines), err=True)


NAMED = 3
"""How many systems a line names; of more, it gives the number."""


@dataclass
class Messages:
    """Messages on standard error, beside the result.

    What is known of a log, and the notes about it, wait for `flush`, which comes after the result: the same note about
    several systems is one line, and those that make a number doubtful come first.

    Attributes:
        quiet: whether messages are left out, but for notes that make a number doubtful.
        verbose: whether details are printed.
        progress: whether progress bars are shown.
    """

    quiet: bool = False
    verbose: bool = False
    progress: bool = True
    _announced: set[str] = field(default_factory=set)
    _recognised: list[str] = field(default_factory=list)
    _waiting: list[str] = field(default_factory=list)
    _doubts: list[str] = field(default_factory=list)
    _notes: list[tuple[str, Note]] = field(default_factory=list)

    def print(self, text: str) -> None:
        """Print a line, unless messages are left out."""
        if not self.quiet:
            print_message(text)

    def print_later(self, text: str) -> None:
        """Print a line below the result, unless messages are left out."""
        self._waiting.append(text)

    def print_doubt(self, text: str) -> None:
        """Print below the result, even with -q, why numbers are not to be compared."""
        self._doubts.append(text)

    def announce(self, run: Run) -> None:
        """Print below the result what a log was recognised as, once for each description."""
        if run.origin.description not in self._announced:
            self._announced.add(run.origin.description)
            self._recognised.append(f"{run.name}: {run.origin.description}")

    def print_notes(self, notes: Iterable[Note], name: str = "") -> None:
        """Print below the result what a reader of the scores must know."""
        self._notes += [(name, note) for note in notes]

    def flush(self) -> None:
        """Print what waited for the result."""
        notes, doubts = list(dict.fromkeys(self._notes)), self._doubts
        recognised, waiting = self._recognised, self._waiting
        self._notes, self._doubts, self._recognised, self._waiting = [], [], [], []
        doubtful = [(name, note) for name, note in notes if note.doubtful]
        harmless = [(name, note) for name, note in notes if not note.doubtful and not note.normal]
        normal = [(name, note) for name, note in notes if not note.doubtful and note.normal]
        for line in [*doubts, *self._group(doubtful)]:
            print_message(f"note: {line}")
        notices = [f"note: {line}" for line in self._group(harmless)]
        for line in [*recognised, *notices, *waiting, *self._group(normal)]:
            self.print(line)

    def _group(self, notes: Sequence[tuple[str, Note]]) -> Iterator[str]:
        """A line for each note; one for the same note about several systems, unless details are printed."""
        groups: dict[tuple[str, ...], list[tuple[str, Note]]] = {}
        for name, note in notes:
            groups.setdefault((note.kind, note.text, note.noun, *([name] * self.verbose)), []).append((name, note))
        for alike in groups.values():
            names, note = list(dict.fromkeys(name for name, _ in alike)), alike[0][1]
            if note.normal and not self.verbose:
                counts = _range([each.count for _, each in alike], note.noun)
                yield f"{_list_systems(names)}: {counts}: {note.text} (normal {note.normal}); -v lists them"
            elif len(names) == 1:
                normal = f" (normal {note.normal})" if note.normal else ""
                yield ": ".join(filter(None, (names[0], str(note)))) + normal
            elif len({each for _, each in alike}) == 1:
                yield f"{_list_systems(names)}: {note}"
            else:
                counts = f"{_range([each.count for _, each in alike], note.noun)}: " if note.count else ""
                yield f"{_list_systems(names)}: {note.kind}: {counts}{note.text}"

    def print_notes_of(self, systems: Sequence[Scores]) -> None:
        """Print below the result the notes about several systems."""
        for scores in systems:
            self.print_notes(scores.notes, scores.system)

    def print_undefined(self, scores: Scores) -> None:
        """With -v, print which segments have no score, and why."""
        for score in scores if self.verbose else ():
            for reason, ids in score.undefined.reasons.items():
                more = " …" * (score.undefined.counts[reason] > len(ids))
                self.print_later(
                    f"{scores.system}: {score.metric!r} is undefined ({reason}): {', '.join(map(str, ids))}{more}"
                )

    def print_omissions(self, columns: list[str]) -> None:
        """Print what a format could not hold."""
        if columns:
            self.print_later(f"note: this format cannot hold: {', '.join(columns)}")

    def print_repairs(self, run: Run, warning: str = "") -> None:
        """Print what was repaired, and what was stripped."""
        repairs = [Note("repaired", f"by --repair {name}{warning}", count) for name, count in run.repaired]
        text = f", of hypotheses and references{warning}"
        repairs += [Note("stripped", f"{kind}{text}", count, noun="token") for kind, count in run.stripped]
        self.print_notes(repairs, run.name)

    def print_differences(self, systems: Sequence[Scores]) -> None:
        """Print where the scores of systems were made in different ways."""
        if not systems:
            return
        differences: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        for scores in systems[1:]:
            for score in scores:
                base = next((first for first in systems[0] if first.metric == score.metric), None)
                if base is not None and (fields := differing(base.signature, score.signature)):
                    differences.setdefault(tuple(fields), []).append((repr(score.metric), scores.system))
        for fields_, where in differences.items():
            metrics, names = (list(dict.fromkeys(column)) for column in zip(*where, strict=True))
            text = f"{', '.join(metrics)} of {_list_systems([systems[0].system, *names])} cannot be compared"
            self.print_doubt(f"{text}: {', '.join(fields_)}")


def _list_systems(names: Sequence[str]) -> str:
    """`a, b and c`; of more, how many they are."""
    if len(names) > NAMED:
        return counted(len(names), "system")
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _range(counts: Sequence[int], noun: str) -> str:
    """`41–52 segments`."""
    low, high = min(counts), max(counts)
    return counted(high, noun) if low == high else f"{low}–{counted(high, noun)}"


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
