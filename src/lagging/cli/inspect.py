# SPDX-License-Identifier: Apache-2.0
"""`lagging inspect`."""

from __future__ import annotations

import re
import shutil
from typing import Any

import click
import numpy as np

from lagging.cli.layout import check_unsigned, signature_option
from lagging.cli.messages import Messages, emit, has_colour, terminal_width
from lagging.cli.options import (
    convention_option,
    cutting_options,
    message_options,
    output_option,
    plugin_option,
    read_options,
    word_options,
)
from lagging.cli.systems import parse_system
from lagging.data.run import Run
from lagging.data.units import SHOWN, Amount, scale
from lagging.errors import UsageError
from lagging.formats import ReadOptions, scan_log
from lagging.longform.cutting import Cutting
from lagging.metrics import metric
from lagging.metrics.conventions import convention as named_convention
from lagging.render.records import tsv_field
from lagging.render.timeline import Timeline, timeline
from lagging.render.timeline_text import draw, window
from lagging.scoring.log import Log, score

__all__ = ["command"]

LONG = 100
"""Of a segment with more tokens, what a screen holds is shown, even in a pipe."""


@click.command("inspect")
@click.argument("log", metavar="[NAME=]PATH")
@click.option("-i", "--id", "ids", multiple=True, metavar="ID", help="Show this segment. May be repeated: -i 3 -i 7.")
@click.option("--worst", metavar="METRIC", help="Show the segments with the worst values of this metric.")
@click.option("--empty", is_flag=True, help="List the segments with an empty hypothesis.")
@click.option(
    "--top", type=click.IntRange(1), default=1, show_default=True, help="Number of segments that --worst shows."
)
@click.option(
    "--at",
    metavar="TIME",
    help="Of a long segment, show the tokens around this time: 754s, 12:34, or a number in the unit of the table.",
)
@click.option(
    "--rows", type=click.IntRange(1), metavar="N", help="Number of tokens to show; if not given, what the screen holds."
)
@click.option("--all", "every", is_flag=True, help="Show every token of a long segment.")
@convention_option
@click.option(
    "--width",
    type=click.IntRange(40, 10_000),
    help="Width of the drawing, in columns; that of the terminal if not given.",
)
@signature_option
@output_option
@cutting_options
@word_options
@read_options
@plugin_option
@message_options
def command(
    log: str,
    ids: tuple[str, ...],
    worst: str | None,
    empty: bool,
    top: int,
    at: str | None,
    rows: int | None,
    every: bool,
    convention: str,
    width: int | None,
    unsigned: bool,
    output: str | None,
    cutting: Cutting,
    messages: Messages,
    options: ReadOptions,
) -> None:
    """Show what happened in a sentence: what was read, what was written, and how late.

    Without -i, --worst or --empty: the first segment. Time runs to the right; each row is a target token, from the time
    at which the ideal translator writes it to the time g' at which the system has written it, if writing takes time.

    \b
    lagging inspect runs/wait-3 -i 17
    lagging inspect a.log --worst DAL --top 3
    """
    name, path = parse_system(log)
    check_unsigned(unsigned, "table", output)
    cutting.check()
    if cutting.requested:
        run = Log(path, options, name, cutting).read()
    else:
        run = Run.concat(list(scan_log(path, options, name=name)))
    counting = named_convention(convention)
    messages.announce(run)
    messages.print_notes(run.notes if messages.verbose else (), run.name)
    messages.print_repairs(run)
    if run.marked.any():
        action = "kept" if counting.eos == "keep" else "stripped"
        messages.print_later(f"note: {run.name}: </s> at the end of a hypothesis is {action}")
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
    documents = [] if run.document is None else [str(name) for name in run.document.tolist()]
    row_of = {name: row for row, name in enumerate(documents) if documents.count(name) == 1}
    row_of |= {str(name): row for row, name in enumerate(run.id.tolist())}
    for segment in chosen:
        if str(segment) not in row_of:
            raise UsageError(f"there is no segment {segment} in {path}; it has {_range(run.id.tolist())}")
    metrics = list(
        dict.fromkeys(["AP", "AL", "DAL", *["WordLag"] * (run.spoken is not None), *([worst] if worst else [])])
    )
    time = None if at is None else _parse_time(at, run.unit)
    look: dict[str, Any] = {"colour": has_colour() and output is None, "signed": not unsigned}
    drawings = []
    for segment in chosen or run.id[:1].tolist():
        row = row_of[str(segment)]
        line = timeline(run[[row]], run.id.item(row), metrics=metrics, convention=counting)
        most = LONG if terminal_width() is None or output is not None else _screen_rows()
        height = rows or (_screen_rows() if time is not None or len(line.delays) > most else len(line.delays))
        if every or height >= len(line.delays):
            drawings.append(draw(line, width=columns, **look))
            continue
        shown = window(line, height, time)
        drawings.append(
            f"{draw(line, width=columns, rows=shown, **look)}\n\n{_describe_window(run, row, line, shown, time)}"
        )
    emit("\n\n".join(drawings), output)


def _screen_rows() -> int:
    """How many tokens the screen holds, beside head and legend."""
    return max(10, shutil.get_terminal_size((100, 40)).lines - 16)


def _parse_time(text: str, unit: str) -> float:
    """A time in the unit of the log: 754s, 754000ms, 12:34, or a number in the unit of the table."""
    if match := re.fullmatch(r"(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)", text.strip()):
        hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return Amount(hours * 3600 + minutes * 60 + seconds, "s").value(unit, f"--at {text}")
    return Amount.parse(text, "--at").value(unit, f"--at {text}")


def _describe_window(run: Run, row: int, line: Timeline, shown: range, time: float | None) -> str:
    """Which tokens are shown, where in which recording that is, and how to see others."""
    unit, worst = SHOWN[line.unit], int(np.nanargmax(line.lags))
    lag = f"{line.lags[worst] / scale(line.unit):.2f} {unit}"
    name = run.document[row] if run.document is not None else None
    name = name or (line.source if line.unit == "ms" else None) or f"segment {line.id}"
    offset = 0.0 if run.offset is None else float(run.offset[row])
    where = f"{(offset + line.delays[worst]) / scale(line.unit):.2f} {unit} of {name}"
    last = len(line.delays)
    lines = [
        f"tokens {shown.start + 1}–{shown.stop} of {last}; the worst lag, {lag}, is token {worst + 1}, at {where}",
    ]
    later = line.delays[min(shown.stop + len(shown) // 2, last - 1)] / scale(line.unit)
    clock = f"{later:.1f}s" if line.unit == "ms" else f"{later:g}"
    lines.append(f"--at {clock} shows the next ones, --rows N more of them, --all every token")
    return "\n".join(lines)


def _range(ids: list[Any]) -> str:
    return f"{len(ids)} segments, from {ids[0]} to {ids[-1]}"
