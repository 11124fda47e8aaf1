# SPDX-License-Identifier: Apache-2.0
"""`lagging curve`."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import click

from lagging.cli.layout import caption_options, check_unsigned, signature_option
from lagging.cli.messages import Messages, emit, has_colour, progress_bar, terminal_width
from lagging.cli.options import (
    column_options,
    confidence_option,
    convention_option,
    correction_option,
    cutting_options,
    format_option,
    message_options,
    output_option,
    plugin_option,
    read_options,
    rename_option,
    resample_option,
    resampling_options,
    word_options,
)
from lagging.cli.systems import group_settings, parse_renames, parse_system, refuse_overwrite
from lagging.comparison.published import read_scores
from lagging.comparison.published.rows import PublishedRow, check_ours, is_table, read_rows, rows_of
from lagging.comparison.regimes import REGIMES
from lagging.curves import Setting, axis, check_axes, curves
from lagging.curves.ranking import ranking
from lagging.curves.slopes import lines
from lagging.data.units import Amount
from lagging.errors import SHOWN, UsageError, counted, optional
from lagging.formats import ReadOptions
from lagging.longform.cutting import Cutting
from lagging.metrics import Metric, split_names
from lagging.render.curves import render_curves
from lagging.render.ranking import render_lines, render_ranking
from lagging.render.table import Layout
from lagging.scoring.columns import Columns
from lagging.scoring.log import Log
from lagging.scoring.plan import Plan

__all__ = ["command"]

IMAGES = (".pdf", ".svg", ".png")

Settings = dict[str, list[tuple[str, Setting]]]


@click.command("curve")
@click.argument("logs", nargs=-1, metavar="[NAME=]PATH…")
@click.option(
    "--latency", metavar="METRIC", help="Metric of latency; AL if not given, and LongYAAL where streams are cut."
)
@click.option(
    "--quality",
    metavar="METRIC",
    help="Metric of quality, or the name of a --column; if not given, the --column, or else BLEU.",
)
@click.option(
    "--at-latency",
    multiple=True,
    metavar="X",
    help="Print the quality at this latency: 2500ms, 2.5s, or a number in the unit of the table. May be repeated.",
)
@click.option(
    "--at-quality",
    multiple=True,
    type=float,
    metavar="Q",
    help="Print the latency at which this quality is reached. May be repeated.",
)
@click.option("--base", metavar="NAME", help="Compare the other systems with this one only.")
@correction_option
@resample_option
@resampling_options
@confidence_option("Confidence level of the intervals, in percent.")
@click.option(
    "--against",
    metavar="X,Y",
    help="Instead of curves, show metric Y over metric X, such as AL,DAL, with a line per system.",
)
@click.option("--ranks", metavar="LIST", help="Instead of curves, rank all settings by each of these metrics.")
@click.option(
    "--published",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Table or file of scores without a log. May be repeated.",
)
@click.option(
    "--family", metavar="LIST", help="Columns of a published table that name a system; `system` if not given."
)
@click.option(
    "--where",
    multiple=True,
    metavar="COLUMN=PATTERN",
    help="Take only the rows of a published table whose COLUMN matches PATTERN.",
)
@column_options
@format_option
@signature_option
@caption_options
@convention_option
@click.option(
    "--bands", type=click.Choice(list(REGIMES)), help="Draw the latency bands of a shared task in the figure."
)
@click.option("--figure", metavar="FILE", help="Draw the figure too, and write it to this .pdf, .svg or .png file.")
@rename_option
@output_option
@cutting_options
@word_options
@read_options
@plugin_option
@message_options
def command(
    logs: tuple[str, ...],
    latency: str | None,
    quality: str | None,
    at_latency: tuple[str, ...],
    at_quality: tuple[float, ...],
    base: str | None,
    correction: str,
    resample: str | None,
    resamples: int,
    seed: int,
    confidence: float,
    against: str | None,
    ranks: str | None,
    published: tuple[str, ...],
    family: str | None,
    where: tuple[str, ...],
    columns: Columns,
    form: str,
    unsigned: bool,
    layout: Layout,
    convention: str,
    bands: str | None,
    figure: str | None,
    renames: tuple[str, ...],
    output: str | None,
    cutting: Cutting,
    messages: Messages,
    options: ReadOptions,
) -> None:
    """Show quality against latency for systems at several settings.

    A system is NAME=GLOB, in quotes, or several arguments of one name; a setting is called by what differs in the
    paths. All settings are scored on the segments that all of them have, with intervals on the same resamples. With -o
    and an image (.pdf, .svg, .png), the figure is drawn too.

    \b
    lagging curve 'wait-k=runs/k*/instances.log' 'mma=runs/mma-*' -o curves.pdf
    lagging curve 'wait-k=runs/k*' 'mma=runs/mma-*' --latency DAL --at-latency 3 --at-quality 25
    lagging curve 'wait-k=runs/k*/instances.log' --column 'wait-k:COMET=runs/k*/comet.json' -o comet.pdf
    lagging curve 'wait-k=runs/k*' 'mma=runs/mma-*' --against AL,DAL
    lagging curve 'wait-k=runs/k*' 'mma=runs/mma-*' --ranks AP,AL,DAL
    """
    cutting.check()
    check_unsigned(unsigned, form, output)
    if against is not None and ranks is not None:
        raise UsageError("--against and --ranks are two different results; ask for one of them")
    if (against or ranks) and (at_latency or at_quality or base or bands or latency or quality):
        raise UsageError(
            "--latency, --quality, --at-latency, --at-quality, --base and --bands are about curves of quality"
        )
    if not published and (family or where):
        raise UsageError("--family and --where choose rows of a published table; give --published too")
    by_default = quality is None and not columns.metrics and not against and not ranks
    first = next(iter(columns.metrics), "BLEU")  # a column that is given is the quality, if none is named
    latency = latency or ("LongYAAL" if cutting.requested else "AL")
    metrics = _parse_axes(against, ranks, latency, quality or first, columns)
    figure, output = _split_outputs(figure, output)
    if figure is not None and ranks is not None:
        raise UsageError("--ranks makes a table and no figure; leave --figure out")
    if bands and figure is None:
        raise UsageError("--bands is about the figure; give -o with an image (.pdf, .svg, .png)")
    if figure is not None:
        optional("matplotlib", "plot")  # before an hour of logs is read
    systems = group_settings(logs, parse_renames(renames))
    if systems:
        check_ours(metrics)
    files = [*cutting.files, *options.word_files, *columns.files, *(parse_system(text)[1] for text in published)]
    refuse_overwrite([(None, path) for _, paths in systems for _, path in paths], figure, output, inputs=files)
    columns.check_number(sum(len(paths) for _, paths in systems))
    plan = Plan.make(metrics[:1] if by_default else metrics, convention, external=columns.every, adds_bleu=by_default)
    settings: Settings = {}
    results = []
    for name, paths in systems:
        for setting, path in paths:
            title = None if name is None else f"{name} {setting}".strip()
            with progress_bar(title or path, path, messages) as progress:
                aliases = (path, setting) if len(systems) == 1 else (path,)
                log = Log(path, options, title, cutting, progress, columns=columns, aliases=aliases)
                (accumulator,) = log.score(plan, on_first=messages.announce)
            scores = accumulator.scores(accumulator.system)
            messages.print_notes(scores.notes, scores.system)
            settings.setdefault(name or scores.system, []).append((setting, scores))
            results.append(scores)
    columns.check_taken([scores.system for scores in results])
    if by_default and results:
        metrics = [score.metric for score in results[0]]
    for row in _read_published(published, family, where, options.unit):
        settings.setdefault(row.system, []).append((row.setting, row))
    if not settings:
        raise UsageError("there is nothing to draw: give logs, or --published")
    messages.print_differences(results)
    resampling: dict[str, Any] = {
        "resample": resample,
        "confidence": confidence / 100,
        "resamples": resamples,
        "seed": seed,
    }
    look: dict[str, Any] = {
        "width": terminal_width(),
        "colour": has_colour() and output is None,
        "signed": not unsigned,
        "layout": layout,
    }
    draw: Callable[[str], None] | None = None
    if ranks is not None:
        ranked = ranking(
            {
                _name_setting(name, setting, len(points)): scores
                for name, points in settings.items()
                for setting, scores in points
            },
            metrics,
            **resampling,
        )
        text, draws = render_ranking(ranked, form, **look), ranked.draws
    elif against is not None:
        straight = lines(settings, *metrics, **resampling, correction=correction)
        text, draws = render_lines(straight, form, correction=correction, **look), straight.curves.draws
        draw = partial(_draw_figure, "al_dal", straight)
    else:
        joined = curves(settings, *metrics, **resampling)
        text = render_curves(
            joined,
            form,
            at_latency=[joined.quality_at(_parse_latency(x, joined.unit)) for x in at_latency],
            at_quality=[joined.latency_at(q) for q in at_quality],
            areas=joined.areas(base, correction),
            correction=correction,
            **look,
        )
        draw, draws = partial(_draw_figure, "curves", joined, bands=bands), joined.draws
    if draws is not None:
        if draws.note is not None:
            messages.print_later(f"note: {draws.note}")
        for name, ids in draws.matched.unmatched.items():
            if ids:
                sample = ", ".join(map(str, ids[:SHOWN])) + ", …" * (len(ids) > SHOWN)
                line = f"note: {name}: {counted(len(ids), 'segment')} left out, which not all have: {sample}"
                messages.print_later(line)
    if figure is not None and draw is not None:
        draw(figure)
    emit(text, output)


def _split_outputs(figure: str | None, output: str | None) -> tuple[str | None, str | None]:
    """The file of the figure, and that of the result: `-o` with an image is the file of the figure."""
    if figure is None and output is not None and Path(output).suffix.lower() in IMAGES:
        figure, output = output, None
    for file in (output, figure):
        if file is None or Path(file).suffix.lower() in IMAGES:
            continue
        if file == figure or (mimetypes.guess_type(file, strict=False)[0] or "").startswith("image/"):
            raise UsageError(f"cannot write a figure to {file}: figures end in {', '.join(IMAGES)}")
    if output is not None and Path(output).suffix.lower() in IMAGES:
        raise UsageError(f"-o {output} and --figure {figure} are both figures; one is drawn")
    return figure, output


def _draw_figure(name: str, result: Any, path: str, **options: Any) -> None:
    """Draw a result, and write it: matplotlib is loaded only here."""
    from lagging.render import plots

    plots.save(getattr(plots, name)(result, **options), path)


def _parse_axes(against: str | None, ranks: str | None, latency: str, quality: str, columns: Columns) -> list[Metric]:
    """The metrics to score; a wrong name is refused before a log is read."""
    if ranks is not None:
        return [axis(name, columns) for name in split_names(ranks)]
    if against is not None:
        pair = [axis(name, columns) for name in split_names(against)]
        if len(pair) != 2:
            raise UsageError("--against takes two metrics, such as AL,DAL")
        return pair
    x, y = axis(latency, columns), axis(quality, columns)
    check_axes(x, y)
    return [x, y]


def _read_published(
    files: Iterable[str], family: str | None, where: Iterable[str], unit: str | None
) -> list[PublishedRow]:
    """The rows of published tables, and of score files."""
    patterns = dict(_parse_where(text) for text in where)
    columns = [name.strip() for name in (family or "").split(",") if name.strip()]
    rows: list[PublishedRow] = []
    for name, paths in group_settings(files):
        for setting, path in paths:
            if not is_table(path):
                rows += rows_of(read_scores(path, system=name), setting=setting, unit=unit)
            elif name is not None and len(paths) == 1:
                raise UsageError(f"{path} names its systems itself: leave {name}= out, or choose by --where")
            else:
                rows += read_rows(path, family=columns, where=patterns, unit=unit)
    return rows


def _parse_where(text: str) -> tuple[str, str]:
    column, equals, pattern = text.partition("=")
    if not equals or not column.strip():
        raise UsageError(f"--where takes COLUMN=PATTERN, and not {text!r}")
    return column.strip(), pattern.strip()


def _parse_latency(text: str, unit: str) -> float:
    """A latency in the unit of the logs; a number without a unit is in the unit of the table."""
    return Amount.parse(text, "--at-latency").value(unit, f"--at-latency {text}")


def _name_setting(name: str, setting: str, settings: int) -> str:
    return f"{name} {setting}".strip() if settings > 1 or not name else name
