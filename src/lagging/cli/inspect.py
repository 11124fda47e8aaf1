# SPDX-License-Identifier: Apache-2.0
"""`lagging inspect`."""

from __future__ import annotations

import shutil
from typing import Any

import click
import numpy as np

from lagging.cli.messages import Messages, emit
from lagging.cli.options import convention_option, message_options, output_option, read_options, word_options
from lagging.cli.systems import parse_system
from lagging.data.run import Run
from lagging.errors import UsageError
from lagging.formats import ReadOptions, scan_log
from lagging.metrics import metric
from lagging.metrics.conventions import convention as named_convention
from lagging.render.records import tsv_field
from lagging.render.timeline import timeline
from lagging.render.timeline_text import draw
from lagging.scoring.log import score

__all__ = ["command"]


@click.command("inspect")
@click.argument("log", metavar="[NAME=]PATH")
@click.option("-i", "--id", "ids", multiple=True, metavar="ID", help="Show this segment. May be repeated: -i 3 -i 7.")
@click.option("--worst", metavar="METRIC", help="Show the segments with the worst values of this metric.")
@click.option("--empty", is_flag=True, help="List the segments with an empty hypothesis.")
@click.option(
    "--top", type=click.IntRange(1), default=1, show_default=True, help="Number of segments that --worst shows."
)
@convention_option
@click.option(
    "--width",
    type=click.IntRange(40, 10_000),
    help="Width of the drawing, in columns; that of the terminal if not given.",
)
@output_option
@word_options
@read_options
@message_options
def command(
    log: str,
    ids: tuple[str, ...],
    worst: str | None,
    empty: bool,
    top: int,
    convention: str,
    width: int | None,
    output: str | None,
    messages: Messages,
    options: ReadOptions,
) -> None:
    """Show what happened in a sentence: what was read, what was written, and how late.

    Without -i, --worst or --empty: the first segment. Time runs to the right; each row is a target token, from the time
    at which the ideal translator writes it to the time at which it is there once writing takes time (g').

    \b
    lagging inspect runs/wait-3 -i 17
    lagging inspect a.log --worst DAL --top 3
    """
    name, path = parse_system(log)
    run = Run.concat(list(scan_log(path, options, name=name)))
    counting = named_convention(convention)
    messages.announce(run)
    messages.print_notes(run.notes if messages.verbose else (), run.name)
    messages.print_repairs(run)
    if run.marked.any():
        action = "kept" if counting.eos == "keep" else "stripped"
        messages.print(f"note: {run.name}: </s> at the end of a hypothesis is {action}")
    chosen: list[Any] = list(ids)
    if worst is not None:
        ranked = score(run, [metric(worst)], convention=counting)[worst]
        values = ranked.segments * (-1 if ranked.metric.higher_is_better else 1)
        order = np.argsort(np.where(np.isnan(values), np.inf, -values), kind="stable")
        chosen += [run.id[row] for row in order[:top].tolist()]
    if empty:
        silent = run.id[run.delays.lengths == 0].tolist()
        emit("\n".join(map(tsv_field, silent)) if silent else "none", output)
        return
    columns = width or shutil.get_terminal_size((100, 24)).columns
    rows = {str(name): row for row, name in enumerate(run.id.tolist())}
    for segment in chosen:
        if str(segment) not in rows:
            raise UsageError(f"there is no segment {segment} in {path}; it has {_range(run.id.tolist())}")
    metrics = list(
        dict.fromkeys(["AP", "AL", "DAL", *["WordLag"] * (run.spoken is not None), *([worst] if worst else [])])
    )
    drawings = [
        draw(timeline(run[[rows[str(segment)]]], segment, metrics=metrics, convention=counting), width=columns)
        for segment in chosen or run.id[:1].tolist()
    ]
    emit("\n\n".join(drawings), output)


def _range(ids: list[Any]) -> str:
    return f"{len(ids)} segments, from {ids[0]} to {ids[-1]}"
