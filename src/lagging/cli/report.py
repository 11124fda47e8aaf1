# SPDX-License-Identifier: Apache-2.0
"""`lagging report`."""

from __future__ import annotations

from typing import Any

import click

from lagging.cli.messages import Messages, progress_bar
from lagging.cli.options import (
    column_options,
    convention_option,
    cutting_options,
    message_options,
    metric_option,
    pair_options,
    parse_metrics,
    plugin_option,
    quarantine_options,
    read_options,
    rename_option,
    word_options,
)
from lagging.cli.quarantine import Quarantine
from lagging.cli.systems import (
    make_names_distinct,
    name_systems,
    parse_renames,
    parse_systems,
    path_names,
    refuse_overwrite,
)
from lagging.comparison import compare
from lagging.data.files import write_whole
from lagging.data.run import Run
from lagging.errors import UsageError, counted
from lagging.formats import ReadOptions
from lagging.longform.cutting import Cutting
from lagging.metrics.conventions import convention as named_convention
from lagging.render.report import report
from lagging.render.report.page import compare_alone
from lagging.render.report.segments import find_sounds, recording_names
from lagging.scoring.columns import Columns
from lagging.scoring.log import Log, score
from lagging.scoring.scores import Scores

__all__ = ["command"]


@click.command("report")
@click.argument("logs", nargs=-1, required=True, metavar="[NAME=]PATH…")
@click.option("-o", "--output", required=True, metavar="FILE", help="The page to write, such as report.html.")
@metric_option
@click.option(
    "--sounds",
    type=click.Path(exists=True, file_okay=False),
    metavar="FOLDER",
    help="Folder of the recordings, which the page links to and plays; they are not put into the page.",
)
@click.option("--title", default="", metavar="TEXT", help="Title of the page.")
@pair_options
@column_options
@convention_option
@rename_option
@quarantine_options
@cutting_options
@word_options
@read_options
@plugin_option
@message_options
def command(
    logs: tuple[str, ...],
    output: str,
    names: tuple[str, ...],
    sounds: str | None,
    title: str,
    base: str | None,
    test: str | None,
    resample: str | None,
    correction: str,
    resamples: int,
    seed: int,
    columns: Columns,
    convention: str,
    renames: tuple[str, ...],
    quarantine: Quarantine,
    cutting: Cutting,
    messages: Messages,
    options: ReadOptions,
) -> None:
    """Write one page about several systems, as a file that needs nothing else: health, comparison, figures, timelines.

    It opens from disk, without a network. The same logs give the same bytes.

    \b
    lagging report base=a.log new=b.log -o report.html
    lagging report base=a.log new=b.log --column base:COMET=a.json --column new:COMET=b.json -o report.html
    lagging report base=a.log new=b.log -m LongYAAL,BLEU --segmentation talks.yaml --reference talks.de -o talks.html
    """
    cutting.check()
    metrics = parse_metrics(names, columns)
    if output == "-":
        raise UsageError("-o needs a file: a page cannot be written to standard output")
    systems = name_systems(parse_systems(logs), parse_renames(renames))
    files = [*cutting.files, *options.word_files, *columns.files]
    refuse_overwrite(systems, output, quarantine.file, inputs=files)
    columns = columns.renamed(path_names(systems))
    columns.check_number(len(systems))
    computed = None if metrics is None else [m for m in metrics if m.name not in columns.metrics] or None
    runs: list[Run] = []
    for name, path in systems:
        with progress_bar(name or path, path, messages) as progress:
            runs.append(Log(path, options, name, cutting, progress, quarantine.add).read())
        messages.announce(runs[-1])
    results = [score(run, computed, convention=convention) for run in runs]
    make_names_distinct(results, [path for _, path in systems])
    by_name = {scores.system: run for scores, run in zip(results, runs, strict=True)}
    resampling: dict[str, Any] = {"resample": resample, "resamples": resamples, "seed": seed}
    if len(runs) > 1:
        tested: dict[str, Any] = {"base": base, "correction": correction} | ({} if test is None else {"test": test})
        scored = {scores.system: scores for scores in results}
        comparison = compare(scored, metrics, convention=convention, columns=columns, **tested, **resampling)
    elif base is not None:
        raise UsageError("--base needs other systems to compare with it")
    else:
        columns.check([results[0].system])
        own = [column.score(results[0]) for column in columns.take(results[0].system)]
        joined = Scores([*results[0], *own], results[0].system, results[0].notes)
        comparison = compare_alone(by_name, named_convention(convention), joined, **resampling)
    addresses = {}
    if sounds is not None:
        recordings = recording_names(runs[0]) or []
        addresses = find_sounds(recordings, sounds, output)
        if not addresses:
            first = next(filter(None, recordings), None)
            what = f"no recording of this log, such as {first}" if first else "no recording that this log names"
            raise UsageError(f"--sounds: {sounds} has {what}")
    page = report(by_name, comparison, title=title, convention=convention, sounds=addresses)
    for scores in comparison.scores.values():
        messages.print_notes(scores.notes, scores.system)
    messages.print_notes(comparison.notes)
    if page.data["segments"]["note"]:
        messages.print(f"note: {page.data['segments']['note']}")
    quarantine.close()
    quarantine.print_summary(messages)
    html = page.to_html()
    with write_whole(output, errors="backslashreplace") as file:
        file.write(html)
    size = len(html.encode("utf-8", "backslashreplace"))
    messages.print(f"{output}: {counted(len(runs), 'system')}, {counted(comparison.n, 'segment')}, {size / 1e6:.1f} MB")
