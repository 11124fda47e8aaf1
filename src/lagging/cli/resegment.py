# SPDX-License-Identifier: Apache-2.0
"""`lagging resegment`."""

from __future__ import annotations

import click

from lagging.cli.messages import Messages
from lagging.cli.options import FormatName, cutting_options, message_options, read_options
from lagging.cli.systems import parse_system, refuse_overwrite
from lagging.data.files import write_whole
from lagging.errors import UsageError
from lagging.formats import ReadOptions, format_for, write
from lagging.longform.cutting import Cutting
from lagging.render.records import moves_table

__all__ = ["command"]


@click.command("resegment")
@click.argument("log", metavar="[NAME=]PATH")
@click.option("-o", "--output", required=True, metavar="FILE", help="File to write; - for standard output.")
@click.option("--to", type=FormatName(), help="Format of the new file; that of its ending if not given.")
@click.option(
    "--moves", metavar="FILE", help="Write the words that are not where the fewest edits put them to a TSV file."
)
@cutting_options
@read_options
@message_options
def command(
    log: str,
    output: str,
    to: str | None,
    moves: str | None,
    cutting: Cutting,
    messages: Messages,
    options: ReadOptions,
) -> None:
    """Cut what was written over whole recordings into the segments of a reference.

    A segment per line, in the order of the reference, with delays from the beginning of the segment; `lagging score`
    reads it. No word is lost, and no text changed.

    \b
    lagging resegment instances.log --segmentation dev.yaml --reference dev.de -o segments.jsonl
    lagging resegment talk.rw --hypothesis talk.en --source talk.de --reference ref.en -o segments.jsonl
    """
    if cutting.segmentation is None and cutting.reference is None:
        raise UsageError("nothing to cut by\n  fix: give --segmentation FILE and --reference FILE.")
    cutting.check()
    target = format_for(output, to or ("jsonl" if output == "-" else None))
    name, path = parse_system(log)
    if moves == "-":
        raise UsageError("--moves needs a file: standard output is for the segments")
    refuse_overwrite([(name, path)], output, moves, inputs=cutting.files)
    run = cutting.read(path, options, name=name)
    messages.announce(run)
    if cutting.gives_references(run):
        raise UsageError(
            f"{path} is not one recording, and nothing says where its segments lie: there is nothing to cut\n"
            "  fix: give --segmentation FILE, or `lagging score LOG --reference FILE` to judge the rows as they are."
        )
    result = cutting.cut(run, options.strip)
    messages.print_notes(result.run.notes, run.name)
    messages.print_repairs(result.run, "" if target.remembers else "; the new file, and its scores, will not say so")
    if moves is not None:
        with write_whole(moves, errors="backslashreplace") as file:
            file.writelines(moves_table(result.moves))
    messages.print_omissions(write(result.run, output, format=target.name))
