# SPDX-License-Identifier: Apache-2.0
"""`lagging watch`."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lagging.cli.messages import Messages, emit, has_colour, terminal_width
from lagging.cli.options import message_options
from lagging.errors import UsageError

if TYPE_CHECKING:
    from lagging.meter.growing import GrowingLog

__all__ = ["command"]


@click.command("watch")
@click.argument("logs", nargs=-1, required=True, metavar="PATH…")
@click.option(
    "--every",
    type=click.FloatRange(min=0.05),
    metavar="SECONDS",
    help="Seconds between two tables. If not given: 1 on a terminal; in a pipe, only one table is printed.",
)
@click.option("--once", is_flag=True, help="Print one table, and end.")
@message_options
def command(logs: tuple[str, ...], every: float | None, once: bool, messages: Messages) -> None:
    """Show the lag of logs that are being written: event streams, such as those of lagging.Meter.

    A path is a file, or a folder whose files are shown one by one. Ctrl-C ends the command.

    \b
    lagging watch live.stream.jsonl            a table that is drawn again every second
    lagging watch logs/ --every 10 | tee FILE  a table every ten seconds, one below the other
    """
    from lagging.meter.growing import GrowingLog, find_logs
    from lagging.render.watch import live_table

    known: dict[Path, GrowingLog] = {}
    terminal = sys.stdout.isatty()
    once = once or (every is None and not terminal)
    while True:
        for path in logs:
            for file in find_logs(path):
                known.setdefault(file, GrowingLog(file)).read()
        _tell_apart(known.values())
        shown = [log for log in known.values() if log.recordings or log.measured.counts]
        silent = [log for log in known.values() if log.unread and log not in shown]
        if silent and not shown:
            raise UsageError(
                f"{silent[0].path} is no event stream, and `lagging watch` shows nothing else\n"
                "  fix: `lagging score` reads logs of other formats."
            )
        if terminal and not once:
            click.clear()
        if shown:
            emit(live_table([log.snapshot() for log in shown], width=terminal_width(), colour=has_colour()))
        elif once:
            messages.print("nothing has been written yet")
        if once:
            return
        time.sleep(1.0 if every is None else every)


def _tell_apart(logs: Collection[GrowingLog]) -> None:
    """Name logs whose files have the same name by what differs in their paths."""
    from lagging.cli.systems import name_settings

    names = Counter(log.name for log in logs)
    for name in [name for name, count in names.items() if count > 1]:
        alike = [log for log in logs if log.name == name]
        for log, label in zip(alike, name_settings([str(log.path) for log in alike]), strict=True):
            log.label = label
