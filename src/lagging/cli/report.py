# SPDX-License-Identifier: Apache-2.0
"""`lagging report`."""

from __future__ import annotations

from typing import Any

import click

from lagging.cli.common import Talk, reading, spare, systems, talking, watched
from lagging.cli.drawing import pairing, read_columns, with_columns
from lagging.cli.logs import distinct, named_metrics
from lagging.cli.longform import Cutting, cutting
from lagging.cli.quarantine import Aside, setting_aside
from lagging.comparison import compare
from lagging.comparison.external import Column
from lagging.data.files import write_whole
from lagging.data.run import Run
from lagging.errors import UsageError, counted, did_you_mean
from lagging.formats import scan
from lagging.metrics.conventions import CONVENTIONS, convention
from lagging.render.report import report
from lagging.render.report.page import alone
from lagging.scoring.plan import default_metrics
from lagging.scoring.scores import Scores
from lagging.scoring.serial import score

__all__ = ["command"]


@click.command("report")
@click.argument("logs", nargs=-1, required=True, metavar="[NAME=]PATH…")
@click.option("-o", "--output", required=True, metavar="FILE", help="The page to write, such as report.html.")
@click.option(
    "-m", "--metric", "names", multiple=True, metavar="LIST", help="Metrics, comma-separated; may be repeated."
)
@click.option("--title", default="", metavar="TEXT", help="Of the page.")
@pairing
@with_columns
@click.option("--convention", "named", type=click.Choice(list(CONVENTIONS)), default="paper", help="Whose counting.")
@setting_aside
@cutting
@reading
@talking
def command(
    logs: tuple[str, ...],
    output: str,
    names: tuple[str, ...],
    title: str,
    base: str | None,
    test: str | None,
    by: str | None,
    correction: str,
    resamples: int,
    seed: int,
    columns: tuple[str, ...],
    lower: tuple[str, ...],
    named: str,
    aside: Aside,
    cutting: Cutting,
    talk: Talk,
    how: dict[str, Any],
) -> None:
    """One page about some systems, as a file that needs nothing else: health, comparison, figures, timelines.

    It opens from disk, without a network. The same logs give the same bytes.

    \b
    lagging report base=a.log new=b.log -o report.html
    lagging report base=a.log new=b.log --column COMET=base:a.comet --column COMET=new:b.comet -o report.html
    lagging report base=a.log new=b.log -m LongYAAL,BLEU --segmentation talks.yaml --reference talks.de -o talks.html
    """
    cutting.check()
    asked, chosen = named_metrics(names), convention(named)
    given = read_columns(columns, lower)
    if output == "-":
        raise UsageError("-o needs a file: a page is nothing for standard output")
    named_logs = systems(logs)
    spare(named_logs, output, aside.file, inputs=[*cutting.files, *(column.path for column in given)])
    read: list[Run] = []
    said = set[str]()
    for name, path in named_logs:
        with watched(name or path, path, talk) as progress:
            read.append(_read(path, name, cutting, {**how, **aside.reading(), "progress": progress}))
        if read[-1].origin.description not in said:
            said.add(read[-1].origin.description)
            talk.say(f"{read[-1].name}: {read[-1].origin.description}")
    results = [score(run, asked or default_metrics(run), convention=chosen) for run in read]
    for run, scores in zip(read, results, strict=True):
        scores.system = run.name
    results = distinct(results, [path for _, path in named_logs])
    runs = {scores.system: run for scores, run in zip(results, read, strict=True)}
    drawn: dict[str, Any] = {"by": by, "resamples": resamples, "seed": seed}
    found = _compared(runs, results, asked, given, drawn, base=base, test=test, correction=correction, named=named)
    made = report(runs, found, title=title, convention_=chosen)
    for scores in found.scores.values():
        talk.notes(scores.notes, scores.system)
    for note in found.notes:
        talk.say(f"note: {note}")
    if made.data["segments"]["note"]:
        talk.say(f"note: {made.data['segments']['note']}")
    aside.close()
    aside.say(talk)
    page = made.to_html()
    with write_whole(output, errors="backslashreplace") as file:
        file.write(page)
    size = len(page.encode("utf-8", "backslashreplace"))
    talk.say(f"{output}: {counted(len(runs), 'system')}, {counted(found.n, 'segment')}, {size / 1e6:.1f} MB")


def _read(path: str, name: str | None, cutting: Cutting, how: dict[str, Any]) -> Run:
    """A whole log, with all its columns; its streams cut, if that was asked for."""
    if not cutting.asked:
        return Run.concat(list(scan(path, name=name, **how)))
    return cutting.cut(cutting.read(path, name, how), how["strip"]).run


def _compared(
    runs: dict[str, Run],
    results: list[Scores],
    asked: list[Any],
    columns: list[Column],
    drawn: dict[str, Any],
    *,
    base: str | None,
    test: str | None,
    correction: str,
    named: str,
) -> Any:
    if len(runs) > 1:
        how: dict[str, Any] = {"base": base, "correction": correction, "convention": named, "columns": columns, **drawn}
        how |= {} if test is None else {"test": test}
        return compare({one.system: one for one in results}, asked or None, **how)
    if base is not None:
        raise UsageError("--base needs other systems to compare with it")
    scores = results[0]
    if strange := [column.system for column in columns if column.system != scores.system]:
        raise UsageError(f"there is no system {strange[0]!r}.{did_you_mean(strange[0], [scores.system])}")
    scores = Scores([*scores, *(column.score(scores) for column in columns)], scores.system, scores.notes)
    return alone(runs, convention(named), scores, **drawn)
