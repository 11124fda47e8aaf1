# SPDX-License-Identifier: Apache-2.0
"""`lagging convert`."""

from __future__ import annotations

from typing import Any

import click

from lagging.cli.common import Talk, reading, system, talking
from lagging.formats import FORMATS, format_for, read, write

__all__ = ["command"]


@click.command("convert")
@click.argument("logs", nargs=-1, required=True, metavar="PATH…")
@click.option("-o", "--output", required=True, metavar="FILE", help="Where to write; - for standard output.")
@click.option("--to", type=click.Choice(list(FORMATS)), help="Format to write; by the ending of FILE if not given.")
@reading
@talking
def command(
    logs: tuple[str, ...],
    output: str,
    to: str | None,
    talk: Talk,
    how: dict[str, Any],
) -> None:
    """Convert a log to another format; several logs become one, and an index that two of them use is a fault.

    \b
    lagging convert runs/wait-3 -o wait-3.jsonl
    lagging convert schedule.rw -o - --to jsonl
    """
    target = format_for(output, to or ("simuleval" if output == "-" else None))
    run = read([path for _, path in map(system, logs)], **how)
    talk.say(f"{run.name}: {run.origin.description}")
    talk.notes(run.notes, run.name)
    talk.repairs(run, "; the new file, and its scores, will not say so")
    lost = write(run, output, format=target.name)
    if lost:
        talk.say(f"note: this format cannot hold: {', '.join(lost)}")
