# SPDX-License-Identifier: Apache-2.0
"""`lagging resegment`."""

from __future__ import annotations

from typing import Any

import click

from lagging.cli.common import Talk, reading, spare, system, talking
from lagging.cli.longform import Cutting, cutting
from lagging.data.files import write_whole
from lagging.errors import UsageError
from lagging.formats import FORMATS, format_for, write
from lagging.render.documents import moves_table

__all__ = ["command"]


@click.command("resegment")
@click.argument("log", metavar="[NAME=]PATH")
@click.option("-o", "--output", required=True, metavar="FILE", help="Where to write; - for standard output.")
@click.option("--to", type=click.Choice(list(FORMATS)), help="Format to write; by the ending of FILE if not given.")
@click.option(
    "--moves", metavar="FILE", help="Write every word that is not where the fewest edits put it to a TSV file."
)
@cutting
@reading
@talking
def command(
    log: str,
    output: str,
    to: str | None,
    moves: str | None,
    cutting: Cutting,
    talk: Talk,
    how: dict[str, Any],
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
    name, path = system(log)
    if moves == "-":
        raise UsageError("--moves needs a file: standard output is for the segments")
    spare([(name, path)], output, moves, inputs=cutting.files)
    run = cutting.read(path, name, how)
    talk.say(f"{run.name}: {run.origin.description}")
    if cutting.gives_references(run):
        raise UsageError(
            f"{path} is not one recording, and nothing says where its segments lie: there is nothing to cut\n"
            "  fix: give --segmentation FILE, or `lagging score LOG --reference FILE` to judge the rows as they are."
        )
    done = cutting.cut(run, how["strip"])
    talk.notes(done.run.notes, run.name)
    talk.repairs(done.run, "" if target.remembers else "; the new file, and its scores, will not say so")
    if moves is not None:
        with write_whole(moves, errors="backslashreplace") as file:
            file.writelines(moves_table(done.moves))
    talk.lost(write(done.run, output, format=target.name))
