# SPDX-License-Identifier: Apache-2.0
"""`lagging run --grid`: the same agent at several settings, each in a folder of its own, and the curve of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from lagging.agents.runner.jobs import Job
from lagging.agents.runner.pool import WorkerPool
from lagging.agents.runner.run import Result
from lagging.agents.sources import read_text_lines
from lagging.cli.messages import Messages, emit, has_colour, print_message, terminal_width
from lagging.curves import Curves, check_axes, curves
from lagging.errors import LaggingError, UsageError, optional
from lagging.formats import ReadOptions
from lagging.metrics import Metric, metric
from lagging.render import render
from lagging.render.curves import render_curves
from lagging.scoring.log import Log
from lagging.scoring.plan import Plan
from lagging.scoring.scores import Scores

__all__ = ["check_figure", "grid_jobs", "run_grid", "score_grid"]

IMAGES = (".pdf", ".svg", ".png")
FORBIDDEN = set('/\\:*?"<>|')
"""What no name of a folder may have, on one system or another."""
LONGEST = 255
"""The most bytes that the name of a folder may have."""
LATENCIES, QUALITY = ("AL", "DAL"), "BLEU"


def grid_jobs(job: Job, grids: Sequence[str]) -> list[tuple[str, Job]]:
    """The jobs of a grid, each with the name of its setting: the product of all values.

    Raises:
        UsageError: a grid is not NAME=VALUE,VALUE,…, or a name or value is there twice.

    Example:
        >>> from lagging.agents import Spec
        >>> job = Job(Spec("policy", "wait-3"), "source.txt", None, "out")
        >>> [(name, job.output) for name, job in grid_jobs(job, ["level=word,char"])]
        [('level=word', 'out/level=word'), ('level=char', 'out/level=char')]
    """
    columns: dict[str, list[str]] = {}
    for text in grids:
        name, equals, values = text.partition("=")
        cells = [value.strip() for value in values.split(",")]
        if not equals or not name or not all(cells):
            raise UsageError(f"--grid {text!r} is not NAME=VALUE,VALUE,…\n  fix: write it like --grid 'k=1,3,5'.")
        if name in columns or name in dict(job.agent.options):
            raise UsageError(f"the option {name} is given twice\n  fix: give it once, with -a or with --grid.")
        if (again := next((cell for cell in cells if cells.count(cell) > 1), None)) is not None:
            raise UsageError(f"--grid {text!r} has {again} twice")
        if (
            bad := next((part for part in (name, *cells) if set(part) & FORBIDDEN or not part.isprintable()), None)
        ) is not None:
            raise UsageError(f"--grid {text!r}: {bad!r} cannot be a part of the name of a folder")
        columns[name] = cells
    jobs = []
    for chosen in product(*columns.values()):
        pairs = tuple(zip(columns, chosen, strict=True))
        setting = ",".join(f"{name}={value}" for name, value in pairs)
        if len(setting.encode()) > LONGEST:
            raise UsageError(f"--grid: the name of a folder, {setting[:40]}…, would be longer than {LONGEST} bytes")
        agent = replace(job.agent, options=(*job.agent.options, *pairs))
        jobs.append((setting, replace(job, agent=agent, output=str(Path(job.output) / setting))))
    return jobs


def check_figure(figure: str) -> None:
    """Check, before the run, that a figure can be drawn.

    Raises:
        UsageError: the ending is not that of a figure.
        MissingExtraError: matplotlib is not installed.
    """
    if Path(figure).suffix.lower() not in IMAGES:
        raise UsageError(f"cannot write a figure to {figure}: figures end in {', '.join(IMAGES)}")
    optional("matplotlib", "plot")


def run_grid(
    jobs: Sequence[tuple[str, Job]],
    run: Callable[[Job, WorkerPool], Result],
    report: Callable[[Result], None],
    workers: int,
    strict: bool,
) -> tuple[list[tuple[str, Result]], int, bool]:
    """Run all settings, one after the other, in the same worker processes, which keep what they have loaded.

    Args:
        jobs: settings and jobs.
        run: runs a job.
        report: reports how one ended.
        workers: number of processes.
        strict: whether the first failure of a sentence ends its run.

    Returns:
        The settings that have a log, how many could not be run, and whether the grid was interrupted.
    """
    first = jobs[0][1]
    count = max(len(read_text_lines(first.source)), 1)
    pool = WorkerPool(first, min(workers, count), strict, min(first.settings.batch, count), stays=True)
    done: list[tuple[str, Result]] = []
    refused = 0
    try:
        for setting, job in jobs:
            try:
                result = run(job, pool)
            except LaggingError as error:
                pool.kill()
                print_message(f"left out: {setting}: {error}")
                refused += 1
                continue
            report(result)
            if result.interrupted or pool.interrupted:
                return done, refused, True
            if result.done == len(result.failed):
                print_message(f"left out: {setting}: every sentence failed")
            else:
                done.append((setting, result))
    finally:
        pool.kill()
    return done, refused, False


def score_grid(
    results: Sequence[tuple[str, Result]],
    metrics: list[Metric] | None,
    convention: str,
    form: str,
    figure: str | None,
    name: str,
    messages: Messages,
) -> None:
    """Score all settings, write `scores.json` of each, and print the curve; without a quality, the scores."""
    plan = Plan.make(metrics, convention)
    points: list[tuple[str, Scores]] = []
    for setting, result in results:
        (accumulator,) = Log(str(result.log), ReadOptions(), setting).score(plan, on_first=messages.announce)
        scores = accumulator.scores(setting)
        messages.print_notes(scores.notes, setting)
        result.manifest.sign(str(score.signature) for score in scores)
        emit(render([scores], "json"), str(result.log.parent / "scores.json"))
        points.append((setting, scores))
    all_curves = _curves(points, metrics, name)
    look: dict[str, Any] = {"width": terminal_width(), "colour": has_colour()}
    if not all_curves:
        messages.print("no curve: without --reference there is no quality")
        emit(render([scores for _, scores in points], form, **look))
        return
    for each in all_curves:
        emit(render_curves(each, form, **look))
    if figure is not None:
        _draw(all_curves, figure)
        messages.print(f"figure: {figure}")


def _curves(points: Sequence[tuple[str, Scores]], metrics: list[Metric] | None, name: str) -> list[Curves]:
    """A curve for each latency that was requested, AL and DAL by default; none where there is no quality."""
    scored = [score.metric for score in points[0][1]]
    qualities = [m for m in scored if _is_axis(metric(LATENCIES[0]), m)]
    latencies = [m for m in scored if (metrics or m.name in LATENCIES) and qualities and _is_axis(m, qualities[0])]
    return [curves({name: points}, latency, qualities[0]) for latency in latencies] if qualities else []


def _is_axis(latency: Metric, quality: Metric) -> bool:
    """Whether these can be the two axes of a curve."""
    try:
        check_axes(latency, quality)
    except UsageError:
        return False
    return latency != quality and quality.higher_is_better is True


def _draw(all_curves: Sequence[Curves], path: str) -> None:
    """Curves side by side; matplotlib is loaded only here."""
    from matplotlib.figure import Figure

    from lagging.render import plots

    figure = Figure(figsize=(6.0 * len(all_curves), 3.8), layout="constrained")
    for each, ax in zip(all_curves, figure.subplots(1, len(all_curves), squeeze=False)[0], strict=True):
        plots.curves(each, ax, settings=True)
    plots.save(figure, path)
