# SPDX-License-Identifier: Apache-2.0
"""What the subcommands share: options, systems, notes on standard error, the progress bar."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lagging.data.checks import REPAIRS
from lagging.data.run import Run
from lagging.data.strip import KINDS
from lagging.data.tokens import LEVELS
from lagging.errors import Note, UsageError, counted
from lagging.errors.printable import printable
from lagging.formats import FORMATS
from lagging.formats.run_folder import LOG, MANIFEST
from lagging.formats.source import resolve

if TYPE_CHECKING:
    from lagging.scoring.scores import Scores

__all__ = [
    "Talk",
    "emit",
    "mapped",
    "not_a_run",
    "output",
    "reading",
    "recognised",
    "say",
    "spare",
    "system",
    "systems",
    "talking",
    "watched",
]

Command = Callable[..., Any]

COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
"""What colours a text on a terminal."""


def reading(command: Command) -> Command:
    """Options of every subcommand that reads logs; they arrive as `how`, the arguments of `lagging.read`."""

    @wraps(command)
    def call(*args: Any, format_in: str | None, **rest: Any) -> Any:
        how = {"format": format_in, **{key: rest.pop(key) for key in ("level", "unit", "spm_model")}}
        how["column_map"] = mapped(rest.pop("column_map"))
        for key in ("repair", "strip"):
            how[key] = tuple(name.strip() for text in rest.pop(key) for name in text.split(",") if name.strip())
        return command(*args, how=how, **rest)

    mending = click.option("--repair", multiple=True, metavar="NAME", help=f"Mend faults by name: {MENDING}.")
    stripping = click.option(
        "--strip", multiple=True, metavar="KIND", help=f"Leave out tokens with their delays: {STRIPPING}."
    )
    return recognised(mending(stripping(call)))


def mapped(texts: Iterable[str]) -> dict[str, str]:
    """What a log calls columns of ours, by `--column-map`."""
    return dict(_called(one) for text in texts for one in text.split(","))


def _called(text: str) -> tuple[str, str]:
    """OURS=THEIRS."""
    ours, equals, theirs = text.partition("=")
    if not equals or not ours.strip() or not theirs.strip():
        raise UsageError(f"cannot read --column-map {text!r}; write it like delays=emission_ms")
    return ours.strip(), theirs.strip()


def recognised(command: Command) -> Command:
    """Options about what a log is."""
    for option in reversed(RECOGNISED):
        command = option(command)
    return command


RECOGNISED = (
    click.option("--format-in", type=click.Choice(list(FORMATS)), help="Format of the logs; recognised if not given."),
    click.option("--level", type=click.Choice(LEVELS), help="What a target token is; found out if not given."),
    click.option("--spm-model", metavar="FILE", help="The SentencePiece model whose pieces --level spm counts."),
    click.option("--unit", type=click.Choice(["token", "ms"]), help="Unit of the delays; found out if not given."),
    click.option(
        "--column-map",
        multiple=True,
        metavar="OURS=THEIRS",
        help="What a table, or JSON, calls a column: delays=emission_ms. May be repeated.",
    ),
)
MENDING = "; ".join(f"{name}: {what}" for name, what in REPAIRS.items()) + ". May be repeated"
STRIPPING = "; ".join(f"{kind}: {what}" for kind, what in KINDS.items()) + ". May be repeated"


def say(text: str) -> None:
    """A line on standard error, with nothing in it that a terminal would obey."""
    click.echo(printable(text), err=True)


@dataclass(frozen=True)
class Talk:
    """What is said on standard error beside the result."""

    quiet: bool = False
    verbose: bool = False
    progress: bool = True

    def say(self, text: str) -> None:
        """A line, unless nothing is to be said."""
        if not self.quiet:
            say(text)

    def notes(self, notes: Iterable[Note], name: str) -> None:
        """What a reader of the scores must know."""
        for note in notes:
            self.say(f"note: {name}: {note}")

    def undefined(self, scores: Scores) -> None:
        """With -v, which segments have no score, and why."""
        for score in scores if self.verbose else ():
            for reason, ids in score.undefined.reasons.items():
                self.say(f"{scores.system}: {score.metric!r} is undefined ({reason}): {', '.join(map(str, ids))}")

    def lost(self, columns: list[str]) -> None:
        """What a format could not hold."""
        if columns:
            self.say(f"note: this format cannot hold: {', '.join(columns)}")

    def repairs(self, run: Run, warning: str = "") -> None:
        """What was mended, and what was stripped."""
        for repair, count in run.repaired:
            self.say(f"note: {run.name}: repaired: {counted(count, 'segment')}: by --repair {repair}{warning}")
        for kind, count in run.stripped:
            self.say(
                f"note: {run.name}: stripped: {counted(count, 'token')}: {kind}, of hypotheses and references{warning}"
            )


def talking(command: Command) -> Command:
    """Options about what is said on standard error; they arrive as `talk`."""

    @wraps(command)
    def call(*args: Any, quiet: bool, verbose: bool, no_progress: bool, debug: bool, **rest: Any) -> Any:
        return command(*args, talk=Talk(quiet, verbose, not no_progress), **rest)

    options = [
        click.option("-q", "--quiet", is_flag=True, help="No notes on standard error."),
        click.option("-v", "--verbose", is_flag=True, help="More notes on standard error."),
        click.option("--no-progress", is_flag=True, help="No progress bar."),
        click.option("--debug", is_flag=True, help="A traceback if something goes wrong."),
    ]
    for option in reversed(options):
        call = option(call)
    return call


def output(command: Command) -> Command:
    """Where the result goes."""
    option = click.option("-o", "--output", metavar="FILE", help="Write the result to a file instead.")
    return option(command)


def system(argument: str) -> tuple[str | None, str]:
    """A PATH or name=PATH: an existing path is a path; else split at the first `=` whose right side exists."""
    if _exists(argument):
        return None, argument
    for place, letter in enumerate(argument):
        if letter == "=" and place and _exists(argument[place + 1 :]):
            return argument[:place], argument[place + 1 :]
    path = argument.partition("=")[2]
    raise UsageError(f"no such file or directory: {path or argument}" + (f" (of {argument})" if path else ""))


def _exists(path: str) -> bool:
    try:
        return path == "-" or Path(path).exists() or (bool(path) and bool(resolve(path)))
    except (UsageError, OSError):
        return False


def systems(arguments: Iterable[str]) -> list[tuple[str | None, str]]:
    """Names and paths of the systems; no name twice."""
    found = [system(argument) for argument in arguments]
    if sum(path == "-" for _, path in found) > 1:
        raise UsageError("standard input (-) can be read only once")
    names = [name for name, _ in found if name is not None]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two systems are called {twice!r}")
    return found


def spare(logs: list[tuple[str | None, str]], *outputs: str | None, inputs: Iterable[str | Path | None] = ()) -> None:
    """Refuse to write over a log, or another file, that is to be read, or two results into one file."""
    read = {source.file.resolve(): "logs" for _, path in logs for source in resolve(path) if source.file is not None}
    read |= {Path(file).resolve(): "files to be read" for file in inputs if file is not None}
    written: set[Path] = set()
    for file in (Path(name).resolve() for name in outputs if name is not None and name != "-"):
        if file in read:
            raise UsageError(f"{file.name} is one of the {read[file]}; it would be written over")
        if file in written:
            raise UsageError(f"two results would be written to {file.name}")
        not_a_run(file)
        written.add(file)


def not_a_run(output: str | Path) -> None:
    """Refuse to write over the log of a run, or what says how it was made."""
    file = Path(output).resolve()
    if file.name in (LOG, MANIFEST) and file.with_name(LOG).is_file() and file.with_name(MANIFEST).is_file():
        raise UsageError(
            f"{file} is of a run of an agent, which could not go on then\n  fix: give another file with -o."
        )


def colour() -> bool:
    """Whether standard output is a terminal that wants colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width() -> int | None:
    """Columns of the terminal; None for a pipe, whose lines are never broken."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def emit(text: str, path: str | None = None) -> None:
    """The result, to standard output or, whole or not at all, to a file."""
    if path is None or path == "-":
        click.echo(_screened(text), color=True)
        return
    from lagging.data.files import write_whole

    with write_whole(path, errors="backslashreplace") as file:
        file.write(text + "\n")


def _screened(text: str) -> str:
    """A result without what a terminal would obey, but for the colours, line breaks and tabs that are ours."""
    if all(map(str.isprintable, text.splitlines())):
        return text
    parts = COLOUR.split(text)
    return "".join(part if COLOUR.fullmatch(part) else printable(part, keep="\n\t\u2068\u2069") for part in parts)


@contextmanager
def watched(name: str, path: str | Sequence[str], talk: Talk) -> Iterator[Callable[[int], None] | None]:
    """A progress bar over the bytes of a log: only on a terminal, and only if it takes more than a second."""
    if talk.quiet or not talk.progress or not sys.stderr.isatty():
        yield None
        return
    paths = [path] if isinstance(path, str) else path
    sizes = [source.size for one in paths for source in resolve(one)]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    started, read = time.monotonic(), 0
    bar: Any = None

    def advance(count: int) -> None:
        nonlocal bar, read
        read += count
        if bar is None and time.monotonic() - started > 1:
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

            named = TextColumn("{task.description}", markup=False)
            look = (named, BarColumn(), DownloadColumn(), TimeRemainingColumn())
            bar = Progress(*look, console=Console(stderr=True), transient=True)
            bar.start()
            bar.add_task(printable(name), total=total)
        if bar is not None:
            bar.update(bar.task_ids[0], completed=read)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()
