# SPDX-License-Identifier: Apache-2.0
"""`lagging resegment`."""

from __future__ import annotations

import click

from lagging.cli.messages import Messages
from lagging.cli.options import FormatName, cutting_options, message_options, read_options
from lagging.cli.systems import parse_system, refuse_overwrite
from lagging.data.files import write_whole
from lagging.data.run import Run
from lagging.errors import UsageError, counted
from lagging.formats import ReadOptions, format_for, write
from lagging.longform.cutting import Cutting
from lagging.render.records import moves_table

__all__ = ["command"]


@click.command("resegment")
@click.argument("log", metavar="[NAME=]PATH")
@click.option("-o", "--output", required=True, metavar="FILE", help="File to write; - for standard output.")
@click.option("--to", type=FormatName(), help="Format of the new file; if not given, its ending decides.")
@click.option(
    "--moves",
    metavar="FILE",
    help="Write a TSV file of the words that the alignment with the fewest edits puts into another segment.",
)
@click.option("--hypothesis-out", metavar="FILE", help="Write the hypothesis of each segment to a line of a text file.")
@click.option("--reference-out", metavar="FILE", help="Write the reference of each segment to a line of a text file.")
@click.option("--source-out", metavar="FILE", help="Write the source of each segment to a line of a text file.")
@cutting_options
@read_options
@message_options
def command(
    log: str,
    output: str,
    to: str | None,
    moves: str | None,
    hypothesis_out: str | None,
    reference_out: str | None,
    source_out: str | None,
    cutting: Cutting,
    messages: Messages,
    options: ReadOptions,
) -> None:
    """Cut what was written over whole recordings into the segments of a reference.

    A segment per line, in the order of the reference, with delays from the beginning of the segment; `lagging score`
    reads it. No word is lost, and no text changed. The text files have a line per segment in the same order, as
    comet-score reads them; a line break within a text becomes a space there.

    \b
    lagging resegment instances.log --segmentation dev.yaml --reference dev.de -o segments.jsonl
    lagging resegment talk.rw --hypothesis talk.en --source talk.de --reference ref.en -o segments.jsonl
    lagging resegment instances.log --segmentation dev.yaml --reference dev.de -o segments.jsonl \\
        --source-out source.txt --hypothesis-out hypothesis.txt --reference-out reference.txt
    """
    if cutting.segmentation is None and cutting.reference is None:
        raise UsageError("nothing to cut by\n  fix: give --segmentation FILE and --reference FILE.")
    cutting.check()
    target = format_for(output, to or ("jsonl" if output == "-" else None))
    name, path = parse_system(log)
    if moves == "-":
        raise UsageError("--moves needs a file: standard output is for the segments")
    texts = {"prediction": hypothesis_out, "reference": reference_out, "source": source_out}
    if "-" in texts.values():
        raise UsageError("texts need a file: standard output is for the segments")
    refuse_overwrite([(name, path)], output, moves, *texts.values(), inputs=cutting.files)
    run = cutting.read(path, options, name=name)
    messages.announce(run)
    if cutting.gives_references(run):
        raise UsageError(
            f"{path} is not one recording that has several references, and nothing says where its segments lie: "
            "there is nothing to cut\n"
            "  fix: give --segmentation FILE, or `lagging score LOG --reference FILE` to judge the rows as they are."
        )
    result = cutting.cut(run, options.strip)
    messages.print_notes(result.run.notes, run.name)
    messages.print_repairs(result.run, "" if target.remembers else "; the new file, and its scores, will not say so")
    for column, file_name in texts.items():
        if file_name is not None:
            _write_texts(file_name, column, result.run, messages)
    if moves is not None:
        with write_whole(moves, errors="backslashreplace") as file:
            file.writelines(moves_table(result.moves))
    messages.print_omissions(write(result.run, output, format=target.name))


def _write_texts(path: str, column: str, run: Run, messages: Messages) -> None:
    """Write a text of each segment to a line; a line break within one becomes a space, so that the lines stay in step.

    Raises:
        UsageError: the segments do not have such texts, or one of them does not.
    """
    texts = getattr(run, column)
    missing = [] if texts is None else run.id[[text is None for text in texts]].tolist()
    if texts is None or missing:
        option = {"prediction": "hypothesis"}.get(column, column)
        who = "the segments have" if texts is None else f"segment {missing[0]} has"
        raise UsageError(f"{who} no {option}, so --{option}-out cannot be written\n  fix: give --{option} FILE.")
    lines = [" ".join(text.splitlines()) for text in texts]
    broken = sum(len(text.splitlines()) > 1 for text in texts)
    if broken:
        messages.print(f"note: {path}: line breaks became spaces in {counted(broken, 'segment')}")
    with write_whole(path, errors="backslashreplace") as file:
        file.writelines(f"{line}\n" for line in lines)
