# SPDX-License-Identifier: Apache-2.0
"""`lagging curve`."""

from __future__ import annotations

import glob
import mimetypes
import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import click

from lagging.cli.common import Talk, colour, emit, output, reading, spare, system, talking, watched, width
from lagging.cli.drawing import confident, drawing
from lagging.cli.logs import parts_of, say_unlike, scored
from lagging.cli.longform import Cutting, cutting
from lagging.comparison.published import read_scores
from lagging.comparison.published.rows import PublishedRow, check_ours, is_table, read_rows, rows_of
from lagging.comparison.regimes import REGIMES
from lagging.curves import Setting, axis, check_axes, curves
from lagging.curves.ranking import lines, ranking
from lagging.data.decimals import DECIMAL
from lagging.errors import SHOWN, UsageError, counted, optional
from lagging.metrics import Metric, split_names
from lagging.metrics.conventions import CONVENTIONS, Convention, convention
from lagging.render import RENDERERS
from lagging.render.curves import render_curves
from lagging.render.disagreement import render_lines, render_ranking
from lagging.scoring.scores import Scores
from lagging.stats import CORRECTIONS

__all__ = ["command"]

IMAGES = (".pdf", ".svg", ".png")
AMOUNT = re.compile(rf"(?P<number>{DECIMAL})\s*+(?P<unit>ms|s|)")

Settings = dict[str, list[tuple[str, Setting]]]


@click.command("curve")
@click.argument("logs", nargs=-1, metavar="[NAME=]PATH…")
@click.option("--latency", metavar="METRIC", help="Latency; AL if not given, LongYAAL of streams that are cut.")
@click.option("--quality", metavar="METRIC", help="Quality; BLEU if not given.")
@click.option(
    "--at-latency", multiple=True, metavar="X", help="Quality at a latency: 2500ms, 2.5s, or as the logs count."
)
@click.option("--at-quality", multiple=True, type=float, metavar="Q", help="Latency at which a quality is reached.")
@click.option("--base", metavar="NAME", help="Compare the others with this system only.")
@click.option(
    "--correction", type=click.Choice(list(CORRECTIONS)), default="holm", show_default=True, help="Of p-values."
)
@click.option(
    "--resample",
    "by",
    type=click.Choice(["segment", "document"]),
    help="What is resampled; found out if not given.",
)
@drawing
@confident("Of intervals.")
@click.option("--against", metavar="X,Y", help="Instead: metric Y over metric X, a line per system, such as AL,DAL.")
@click.option("--ranks", metavar="LIST", help="Instead: all settings ranked by each of these metrics.")
@click.option("--published", multiple=True, metavar="[NAME=]FILE", help="Scores without a log: a table or score files.")
@click.option(
    "--family", metavar="LIST", help="Columns of a published table that name a system; `system` if not given."
)
@click.option("--where", multiple=True, metavar="COLUMN=PATTERN", help="Which rows of a published table.")
@click.option("-f", "--format", "form", type=click.Choice(RENDERERS), default="table", help="How to print the result.")
@click.option("--convention", "named", type=click.Choice(list(CONVENTIONS)), default="paper", help="Whose counting.")
@click.option("--bands", type=click.Choice(list(REGIMES)), help="In a figure: the bands of latency of a shared task.")
@output
@cutting
@reading
@talking
def command(
    logs: tuple[str, ...],
    latency: str | None,
    quality: str | None,
    at_latency: tuple[str, ...],
    at_quality: tuple[float, ...],
    base: str | None,
    correction: str,
    by: str | None,
    resamples: int,
    seed: int,
    confidence: float,
    against: str | None,
    ranks: str | None,
    published: tuple[str, ...],
    family: str | None,
    where: tuple[str, ...],
    form: str,
    named: str,
    bands: str | None,
    output: str | None,
    cutting: Cutting,
    talk: Talk,
    how: dict[str, Any],
) -> None:
    """Quality against latency, for systems at several settings.

    A system is NAME=GLOB, in quotes, or several arguments of one name; a setting is called by what differs in the
    paths. All settings are scored on the segments that all of them have, with intervals on the same resamples. With -o
    and an image (.pdf, .svg, .png), the figure is drawn too.

    \b
    lagging curve 'wait-k=runs/k*/instances.log' 'mma=runs/mma-*' -o curves.pdf
    lagging curve 'wait-k=runs/k*' 'mma=runs/mma-*' --latency DAL --at-latency 3 --at-quality 25
    lagging curve 'wait-k=runs/k*' 'mma=runs/mma-*' --against AL,DAL
    lagging curve 'wait-k=runs/k*' 'mma=runs/mma-*' --ranks AP,AL,DAL
    """
    cutting.check()
    if against is not None and ranks is not None:
        raise UsageError("--against and --ranks are two different results; ask for one of them")
    if (against or ranks) and (at_latency or at_quality or base or bands or latency or quality):
        raise UsageError(
            "--latency, --quality, --at-latency, --at-quality, --base and --bands are about curves of quality"
        )
    if not published and (family or where):
        raise UsageError("--family and --where choose rows of a published table; give --published too")
    metrics = _metrics(against, ranks, latency or ("LongYAAL" if cutting.asked else "AL"), quality or "BLEU")
    image = output is not None and Path(output).suffix.lower() in IMAGES
    if image and ranks is not None:
        raise UsageError("ranks are a table, and no figure")
    if output is not None and not image and (mimetypes.guess_type(output, strict=False)[0] or "").startswith("image/"):
        raise UsageError(f"cannot write a figure to {output}: figures end in {', '.join(IMAGES)}")
    if bands and not image:
        raise UsageError("--bands is about the figure; give -o with an image (.pdf, .svg, .png)")
    if image:
        optional("matplotlib", "plot")  # before an hour of logs is read
    found = grouped(logs)
    if found:
        check_ours(metrics)
    beside = [*cutting.files, *(system(text)[1] for text in published)]
    spare([(None, path) for _, some in found for _, path in some], output, inputs=beside)
    settings: Settings = {}
    results = []
    said: set[str] = set()
    for name, some in found:
        for setting, path in some:
            scores = _score(name, setting, path, metrics, convention(named), cutting, how, talk, said)
            settings.setdefault(name or scores.system, []).append((setting, scores))
            results.append(scores)
    for row in _published(published, family, where, how["unit"]):
        settings.setdefault(row.system, []).append((row.setting, row))
    if not settings:
        raise UsageError("there is nothing to draw: give logs, or --published")
    say_unlike(results, talk)
    drawn: dict[str, Any] = {"by": by, "level": confidence / 100, "resamples": resamples, "seed": seed}
    look: dict[str, Any] = {"width": width(), "colour": colour() and output is None}
    draw: Callable[[str], None] | None = None
    if ranks is not None:
        ranked = ranking(
            {_called(n, s, len(some)): one for n, some in settings.items() for s, one in some}, metrics, **drawn
        )
        text, draws = render_ranking(ranked, form, **look), ranked.draws
    elif against is not None:
        straight = lines(settings, *metrics, **drawn, correction=correction)
        text, draws = render_lines(straight, form, correction=correction, **look), straight.curves.draws
        draw = partial(_figure, "al_dal", straight)
    else:
        joined = curves(settings, *metrics, **drawn)
        text = render_curves(
            joined,
            form,
            at_latency=[joined.quality_at(_amount(x, joined.unit, bool(results))) for x in at_latency],
            at_quality=[joined.latency_at(q) for q in at_quality],
            areas=joined.areas(base, correction),
            correction=correction,
            **look,
        )
        draw, draws = partial(_figure, "curves", joined, bands=bands), joined.draws
    if draws is not None:
        if draws.note is not None:
            talk.say(f"note: {draws.note}")
        for name, ids in draws.joint.matched.unmatched.items():
            if ids:
                some_ids = ", ".join(map(str, ids[:SHOWN])) + ", …" * (len(ids) > SHOWN)
                talk.say(f"note: {name}: {counted(len(ids), 'segment')} left out, which not all have: {some_ids}")
    if image and draw is not None and output is not None:
        draw(output)
    emit(text, None if image else output)


def _figure(name: str, result: Any, path: str, **how: Any) -> None:
    """Draw a result, and write it: matplotlib is loaded only here."""
    from lagging.render import plots

    plots.save(getattr(plots, name)(result, **how), path)


def _metrics(against: str | None, ranks: str | None, latency: str, quality: str) -> list[Metric]:
    """What is scored; a wrong name is told before a log is read."""
    if ranks is not None:
        return [axis(name) for name in split_names(ranks)]
    if against is not None:
        pair = [axis(name) for name in split_names(against)]
        if len(pair) != 2:
            raise UsageError("--against takes two metrics, such as AL,DAL")
        return pair
    x, y = axis(latency), axis(quality)
    check_axes(x, y)
    return [x, y]


def grouped(arguments: Iterable[str]) -> list[tuple[str | None, list[tuple[str, str]]]]:
    """Systems, each with its settings and their paths; one without a name is called by its log."""
    named: dict[str, list[str]] = {}
    found: list[tuple[str | None, list[str]]] = []
    for argument in arguments:
        name, path = system(argument)
        some = [path] if path == "-" or Path(path).exists() else sorted(glob.glob(path, recursive=True))
        if name is None and len(some) > 1:
            name = Path(os.path.commonpath(some)).name
        if name in named:
            named[name].extend(some)
            continue
        found.append((name, some))
        if name is not None:
            named[name] = some
    if sum(path == "-" for _, some in found for path in some) > 1:
        raise UsageError("standard input (-) can be read only once")
    return [(name, list(zip(settings_of(some), some, strict=True))) for name, some in found]


def settings_of(paths: Sequence[str]) -> list[str]:
    """What differs in the paths, without what all of them begin and end with.

    Example:
        >>> settings_of(["runs/k1/instances.log", "runs/k3/instances.log"]), settings_of(["a/k1.log", "a/k3.log"])
        (['k1', 'k3'], ['k1', 'k3'])
        >>> settings_of(["a/instances.log"])
        ['']
    """
    parts = [list(PurePath(path).parts) for path in paths]
    if len(parts) == 1:
        return [""]
    while all(len(p) > 1 for p in parts) and len({p[0] for p in parts}) == 1:
        parts = [p[1:] for p in parts]
    while all(len(p) > 1 for p in parts) and len({p[-1] for p in parts}) == 1:
        parts = [p[:-1] for p in parts]
    names = ["/".join(p) for p in parts]
    end, *others = {PurePath(name).suffix for name in names}
    if others or re.fullmatch(r"\.\d+", end):  # the end of a number
        return names
    return [name.removesuffix(end) for name in names]


def _score(
    name: str | None,
    setting: str,
    path: str,
    metrics: list[Metric],
    chosen: Convention,
    cutting: Cutting,
    how: dict[str, Any],
    talk: Talk,
    said: set[str],
) -> Scores:
    """The scores of one log."""
    called = None if name is None else f"{name} {setting}".strip()
    asked: list[str | Metric] = list(metrics)
    with watched(called or path, path, talk) as progress:
        parts = parts_of(path, called, asked, chosen, cutting, {**how, "progress": progress})
        scores, _ = scored(parts, asked, chosen, None if talk.quiet else said)
    talk.notes(scores.notes, scores.system)
    return scores


def _published(files: Iterable[str], family: str | None, where: Iterable[str], unit: str | None) -> list[PublishedRow]:
    """The rows of published tables, and of score files."""
    patterns = dict(_pair(text) for text in where)
    columns = [name.strip() for name in (family or "").split(",") if name.strip()]
    found: list[PublishedRow] = []
    for name, some in grouped(files):
        for setting, path in some:
            if not is_table(path):
                found += rows_of(read_scores(path, system=name), setting=setting, unit=unit)
            elif name is not None and len(some) == 1:
                raise UsageError(f"{path} names its systems itself: leave {name}= out, or choose by --where")
            else:
                found += read_rows(path, family=columns, where=patterns, unit=unit)
    return found


def _pair(text: str) -> tuple[str, str]:
    column, equals, pattern = text.partition("=")
    if not equals or not column.strip():
        raise UsageError(f"--where takes COLUMN=PATTERN, and not {text!r}")
    return column.strip(), pattern.strip()


def _amount(text: str, unit: str, logged: bool) -> float:
    """A latency in the unit of the logs; if there are none, a time says its own."""
    match = AMOUNT.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--at-latency takes a number, perhaps with ms or s, and not {text!r}")
    if match["unit"] and unit != "ms":
        raise UsageError(f"--at-latency {text}: these latencies are in {unit or 'no unit'}, and not in time")
    if not match["unit"] and unit == "ms" and not logged:
        raise UsageError(f"--at-latency {text}: write {text}s or {text}ms; without a log, nothing says which is meant")
    return float(match["number"]) * (1000.0 if match["unit"] == "s" else 1.0)


def _called(name: str, setting: str, of: int) -> str:
    return f"{name} {setting}".strip() if of > 1 or not name else name
