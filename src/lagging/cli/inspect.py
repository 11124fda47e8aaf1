# SPDX-License-Identifier: Apache-2.0
"""`lagging inspect`."""

from __future__ import annotations

import shutil
from typing import Any

import click
import numpy as np

from lagging.cli.common import Talk, emit, output, reading, system, talking
from lagging.errors import UsageError
from lagging.formats import read
from lagging.metrics import metric
from lagging.metrics.conventions import CONVENTIONS, convention
from lagging.render.documents import tsv_field
from lagging.render.timeline import timeline
from lagging.render.timeline_text import draw
from lagging.scoring.serial import score

__all__ = ["command"]


@click.command("inspect")
@click.argument("log", metavar="[NAME=]PATH")
@click.option("-i", "--id", "ids", multiple=True, metavar="ID", help="Which segment; may be repeated: -i 3 -i 7.")
@click.option("--worst", metavar="METRIC", help="The segments with the worst value of a metric.")
@click.option("--empty", is_flag=True, help="List the segments in which nothing was written.")
@click.option("--top", type=click.IntRange(1), default=1, show_default=True, help="How many, with --worst.")
@click.option("--convention", "named", type=click.Choice(list(CONVENTIONS)), default="paper", help="Whose counting.")
@click.option("--width", type=click.IntRange(40, 10_000), help="Columns; those of the terminal if not given.")
@output
@reading
@talking
def command(
    log: str,
    ids: tuple[str, ...],
    worst: str | None,
    empty: bool,
    top: int,
    named: str,
    width: int | None,
    output: str | None,
    talk: Talk,
    how: dict[str, Any],
) -> None:
    """Show what happened in a sentence: what was read, what was written, and how late.

    Without -i, --worst or --empty: the first segment. Time runs to the right; each row is a target token, from the time
    at which the ideal translator writes it to the time at which it is there once writing takes time (g').

    \b
    lagging inspect runs/wait-3 -i 17
    lagging inspect a.log --worst DAL --top 3
    """
    name, path = system(log)
    run = read(path, name=name, **how)
    counted = convention(named)
    talk.say(f"{run.name}: {run.origin.description}")
    talk.notes(run.notes if talk.verbose else (), run.name)
    talk.repairs(run)
    if run.marked.any():
        talk.say(
            f"note: {run.name}: </s> at the end of a hypothesis is {'kept' if counted.eos == 'keep' else 'stripped'}"
        )
    chosen: list[Any] = list(ids)
    if worst is not None:
        ranked = score(run, [metric(worst)], convention=counted)[worst]
        values = ranked.segments * (-1 if ranked.metric.higher_is_better else 1)
        order = np.argsort(np.where(np.isnan(values), np.inf, -values), kind="stable")
        chosen += [run.id[row] for row in order[:top].tolist()]
    if empty:
        found = run.id[run.delays.lengths == 0].tolist()
        emit("\n".join(map(tsv_field, found)) if found else "none", output)
        return
    columns = width or shutil.get_terminal_size((100, 24)).columns
    rows = {str(name): row for row, name in enumerate(run.id.tolist())}
    for one in chosen:
        if str(one) not in rows:
            raise UsageError(f"there is no segment {one} in {path}; it has {_range(run.id.tolist())}")
    shown = list(dict.fromkeys(["AP", "AL", "DAL", *([worst] if worst else [])]))
    names = chosen or run.id[:1].tolist()
    each = ((run[[rows[str(one)]]], one) for one in names)
    drawn = [draw(timeline(of, one, metrics=shown, convention=counted), width=columns) for of, one in each]
    emit("\n\n".join(drawn), output)


def _range(ids: list[Any]) -> str:
    return f"{len(ids)} segments, from {ids[0]} to {ids[-1]}"
