# SPDX-License-Identifier: Apache-2.0
"""`lagging score --engine spark`: score logs on Spark."""

from __future__ import annotations

import re
from functools import wraps
from pathlib import Path, PurePosixPath
from typing import Any

import click

from lagging.cli.options import Command
from lagging.cli.quarantine import Quarantine
from lagging.cli.systems import group_paths, parse_system
from lagging.data.tokens import is_spm
from lagging.errors import DataError, Fault, UsageError
from lagging.formats import ReadOptions, system_name
from lagging.formats.source import resolve
from lagging.scoring.intervals import group_notes
from lagging.scoring.plan import IntervalSettings, Plan
from lagging.scoring.poisson import RESAMPLES
from lagging.scoring.scores import Scores

__all__ = ["Engine", "engine_options", "parse_spark_systems", "score_on_spark"]

REMOTE = re.compile(r"(?:(?P<name>[^=/:]+)=)?(?P<path>[A-Za-z][\w+.-]*://.+)")


class Engine:
    """Where logs are scored: on this machine, or on Spark.

    Args:
        name: `local` or `spark`.
        master: address of Spark, or of a server of Spark Connect; that of the environment if not given.
    """

    def __init__(self, name: str, master: str | None) -> None:
        if master is not None and name != "spark":
            raise UsageError("--master says where Spark runs; give --engine spark too")
        self.spark, self.master = name == "spark", master


def engine_options(command: Command) -> Command:
    """Options about where logs are scored; they arrive as `engine`."""

    @wraps(command)
    def call(*args: Any, engine: str, master: str | None, **rest: Any) -> Any:
        return command(*args, engine=Engine(engine, master), **rest)

    name = click.option(
        "--engine",
        type=click.Choice(["local", "spark"]),
        default="local",
        show_default=True,
        help="Where logs are scored: on this machine, or Parquet files on Spark.",
    )
    master = click.option(
        "--master", metavar="URL", help="Address of Spark: local[*], yarn, spark://…; sc://… for Spark Connect."
    )
    return name(master(call))


def parse_spark_systems(arguments: tuple[str, ...]) -> list[tuple[str | None, str]]:
    """Names and paths of systems; addresses that Spark alone understands are taken as they are."""
    matches = [(REMOTE.fullmatch(text), text) for text in arguments]
    return [(m["name"], m["path"]) if m else parse_system(text) for m, text in matches]


def score_on_spark(
    systems: list[tuple[str | None, str]],
    plan: Plan,
    interval: IntervalSettings | None,
    options: ReadOptions,
    segment_scores: str | None,
    quarantine: Quarantine,
    engine: Engine,
) -> tuple[list[str], list[list[Scores]]]:
    """Score each system on Spark: the first path of each, and the Scores of its groups."""
    from lagging.scoring.spark import score_files, session

    if options.strip:
        raise UsageError("--strip is not for --engine spark")
    if options.level is not None and is_spm(options.level):
        raise UsageError("--spm-model is not for --engine spark")
    if options.format not in (None, "parquet"):
        raise UsageError(f"--engine spark reads Parquet, not {options.format}")
    groups = _group_paths(systems) if plan.group_by else [(name, [path]) for name, path in systems]
    if segment_scores is not None and len(groups) > 1:
        raise UsageError("--segment-scores on Spark is a directory of Parquet, for one system")
    spark = session(engine.master)
    settings = interval or IntervalSettings()
    results: list[list[Scores]] = []
    for name, paths in groups:
        result = score_files(
            spark,
            paths,
            plan.metrics,
            group_by=plan.group_by,
            convention=plan.convention,
            columns=options.column_map,
            unit=options.unit,
            level=options.level,
            repair=options.repair,
            on_error="fail" if quarantine.add is None else "quarantine",
            seed=plan.seed,
            confidence=settings.confidence,
            resamples=settings.resamples or RESAMPLES,
        )
        if quarantine.add is not None:
            for fault in result.faults():
                quarantine.add(fault)
        if not result.scores:
            raise DataError(Fault("nothing-left" if quarantine.summary else "nothing-given"))
        system = name or (_name(paths[0]) if _for_spark(paths[0]) else system_name(resolve(paths[0])[0]))
        for scores in result.scores:
            scores.system = system
        result.scores[0].notes = (*result.notes, *(group_notes(result.scores) if interval is not None else ()))
        if segment_scores is not None:
            result.segments.write.parquet(segment_scores)
        results.append(result.scores)
    return [paths[0] for _, paths in groups], results


def _group_paths(systems: list[tuple[str | None, str]]) -> list[tuple[str | None, list[str]]]:
    """Names and paths of systems; paths without a name are one log, whose systems a column tells apart."""
    remote = [(name, path) for name, path in systems if _for_spark(path)]
    local = [system for system in systems if system not in remote]
    unnamed = [path for name, path in remote if name is None]
    return [
        *(group_paths(local) if local else []),
        *((name, [path]) for name, path in remote if name is not None),
        *([(None, unnamed)] if unnamed else []),
    ]


def _for_spark(path: str) -> bool:
    """Whether Spark alone knows what files a path stands for."""
    return REMOTE.fullmatch(path) is not None or Path(path).is_dir()


def _name(path: str) -> str:
    """The name of a system, from the last part of its path that has no wildcard.

    Example:
        >>> _name("s3a://lake/logs/*.parquet"), _name("runs/wait-3.parquet"), _name("a.parquet")
        ('logs', 'wait-3', 'a')
    """
    parts = [part for part in PurePosixPath(path).parts if not re.search(r"[*?\[{]", part)]
    return parts[-1].partition(".")[0] or parts[-1]
