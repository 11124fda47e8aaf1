# SPDX-License-Identifier: Apache-2.0
"""`lagging convert`."""

from __future__ import annotations

from typing import Any

import click

from lagging.cli.common import Talk, not_a_run, reading, system, talking
from lagging.formats import FORMATS, format_for, read, write
from lagging.formats.merge import merge
from lagging.formats.source import resolve

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
    """Convert a log to another format, or merge several logs of one system: shards, a run and what resumed it, copies.

    Segments are matched by their index. One that occurs again with the same content is kept once; with other content,
    it is a fault that --repair first or last decides. Whole numbers are sorted.

    \b
    lagging convert runs/wait-3 -o wait-3.jsonl
    lagging convert schedule.rw -o - --to jsonl
    lagging convert shard-*.log -o all.log --repair torn
    """
    target = format_for(output, to or ("simuleval" if output == "-" else None))
    not_a_run(output)
    paths = [path for _, path in map(system, logs)]
    several = sum(len(resolve(path)) for path in paths) > 1
    run = merge(paths, **how) if several else read(paths, **how)
    talk.say(f"{run.name}: {run.origin.description}")
    talk.notes(run.notes, run.name)
    talk.repairs(run, "" if target.remembers else "; the new file, and its scores, will not say so")
    talk.lost(write(run, output, format=target.name))
