# SPDX-License-Identifier: Apache-2.0
"""The command line: one module per subcommand, imported when it is called, so that `--help` answers at once."""

from __future__ import annotations

import gc
import importlib
import io
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click

from lagging.errors import DataError, LaggingError, UsageError
from lagging.errors.printable import printable
from lagging.errors.remedies import on_command_line
from lagging.version import __version__

__all__ = ["main"]

COMMANDS = {
    "score": "Score logs: AP, AL, LAAL, DAL, BLEU, and any other metric.",
    "compare": "Compare systems: intervals, paired tests, gates.",
    "report": "Write one page about systems: health, comparison, figures, timelines.",
    "curve": "Show quality against latency over several settings, as a table or figure.",
    "inspect": "Show what happened in a sentence, token by token.",
    "validate": "List everything that is wrong with a log, and where.",
    "convert": "Convert logs between formats, or merge several.",
    "resegment": "Cut whole recordings into the segments of a reference.",
    "run": "Run an agent over a test set and score its log; go on after a crash.",
    "serve": "Serve an agent to lagging run --remote on other machines.",
    "watch": "Show the lag of a log that is being written, in the terminal.",
    "metrics": "List the metrics, or describe one with formula and paper.",
    "simulate": "Write the log of a policy (wait-k, antagonist, …) over a test set.",
    "playground": "Open a page where you move the tokens of a schedule and see the metrics.",
}


class Commands(click.Group):
    """Subcommands that are imported only when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the module of that name."""
        if name not in COMMANDS:
            return None
        command = importlib.import_module(f"lagging.cli.{name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A wrong name gets a suggestion."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from lagging.errors import did_you_mean

            raise click.UsageError(f"there is no command {args[0]!r}.{did_you_mean(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """From the table, so that nothing is imported."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", message="lagging %(version)s")
def cli() -> None:
    """How late is a simultaneous translation, and was it worth the wait?

    \b
    lagging score instances.log              the scores of a SimulEval log
    lagging inspect instances.log -i 17      what happened in sentence 17
    lagging metrics DAL                      what DAL is, and whom to cite

    Results go to standard output, everything else to standard error. Exit: 0 fine,
    1 bad data, 2 usage, 3 a gate failed, 130 interrupted, 143 terminated.
    """


@on_command_line()
def main(args: list[str] | None = None) -> None:
    """Run the command line, and exit."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"
    # a log decodes to many small lists that are soon dropped: looking for cycles among them every 700 costs 6 %
    gc.set_threshold(100_000, 50, 50)
    arguments = sys.argv[1:] if args is None else args
    if "--debug" in arguments:
        arguments = [argument for argument in arguments if argument != "--debug"]
        sys.exit(_run(arguments))
    try:
        code = _run(arguments)
    except LaggingError as error:
        click.echo(f"error: {_describe(error)}", err=True)
        code = 2 if isinstance(error, UsageError) else 1
    except BrokenPipeError:
        # the reader of the pipe has closed it; keep Python from complaining when it flushes
        _discard_stdout()
        code = 0
    except OSError as error:
        click.echo(f"error: {printable(error.strerror or str(error))}", err=True)
        code = 1
        _discard_stdout()
    except MemoryError:
        click.echo("error: there is not enough memory\n  fix: check that the file is the right one.", err=True)
        code = 1
    except Terminated:
        click.echo("terminated", err=True)
        code = 143
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        code = 130
    sys.exit(code)


class Terminated(KeyboardInterrupt):
    """SIGTERM was received: the command ends as after Ctrl-C, and leaves no half-written file."""


@contextmanager
def _raise_on_sigterm() -> Iterator[None]:
    """Turn SIGTERM into an exception, so that unfinished files are removed; child processes end at once."""
    here = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        if os.getpid() == here:
            signal.signal(number, signal.SIG_IGN)  # a second signal must not interrupt the cleaning up
            raise Terminated
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _describe(error: LaggingError) -> str:
    """The message of an error; a line break that came from data is escaped, because our own lines are indented."""
    text = str(error)
    if not isinstance(error, DataError):
        text = re.sub(r"\n(?!  )", r"\\x0a", text)
    return printable(text, keep="\n")


def _discard_stdout() -> None:
    """Discard what is left in the buffer of standard output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(args: list[str]) -> int:
    try:
        with _raise_on_sigterm():
            result: Any = cli.main(args, prog_name="lagging", standalone_mode=False)
            sys.stdout.flush()
    except click.Abort as error:
        raise (error.__cause__ if isinstance(error.__cause__, Terminated) else KeyboardInterrupt()) from None
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        click.echo(printable(message.getvalue(), keep="\n"), nl=False, err=True)
        return error.exit_code
    return result if isinstance(result, int) else 0
