# SPDX-License-Identifier: Apache-2.0
"""`lagging convert`."""

from __future__ import annotations

import click

from lagging.cli.messages import Messages
from lagging.cli.options import FormatName, message_options, read_options
from lagging.cli.systems import parse_system, refuse_run_file
from lagging.data.run import Run
from lagging.formats import ReadOptions, format_for, scan_log, write
from lagging.formats.merge import merge_logs
from lagging.formats.source import resolve

__all__ = ["command"]


@click.command("convert")
@click.argument("logs", nargs=-1, required=True, metavar="PATH…")
@click.option("-o", "--output", required=True, metavar="FILE", help="File to write; - for standard output.")
@click.option("--to", type=FormatName(), help="Format of the new file; if not given, its ending decides.")
@read_options
@message_options
def command(
    logs: tuple[str, ...],
    output: str,
    to: str | None,
    messages: Messages,
    options: ReadOptions,
) -> None:
    """Convert a log to another format, or merge several logs of one system: shards, a run and what resumed it, copies.

    Segments are matched by their index. A segment that occurs again with the same content is kept once. One that occurs
    again with other content is a fault; --repair first or --repair last chooses between them. Segments of several logs
    are sorted by index where it is a whole number.

    \b
    lagging convert runs/wait-3 -o wait-3.jsonl
    lagging convert schedule.rw -o - --to jsonl
    lagging convert shard-*.log -o all.log --repair torn
    """
    target = format_for(output, to or ("simuleval" if output == "-" else None))
    refuse_run_file(output)
    paths = [path for _, path in map(parse_system, logs)]
    several = sum(len(resolve(path)) for path in paths) > 1
    run = merge_logs(paths, options) if several else Run.concat(list(scan_log(paths, options)))
    messages.announce(run)
    messages.print_notes(run.notes, run.name)
    messages.print_repairs(run, "" if target.remembers else "; the new file, and its scores, will not say so")
    messages.print_omissions(write(run, output, format=target.name))
