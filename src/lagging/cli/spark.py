# SPDX-License-Identifier: Apache-2.0
"""`lagging score --engine spark`: score logs on Spark."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from functools import wraps
from pathlib import Path, PurePosixPath
from typing import Any

import click

from lagging.cli.messages import Messages
from lagging.cli.options import Command
from lagging.cli.quarantine import Quarantine
from lagging.cli.systems import group_paths, parse_system
from lagging.errors import DataError, Fault, UsageError
from lagging.formats import ReadOptions
from lagging.longform.cutting import Cutting
from lagging.scoring.columns import Columns
from lagging.scoring.intervals import finish_scores
from lagging.scoring.plan import IntervalSettings, Plan
from lagging.scoring.poisson import RESAMPLES
from lagging.scoring.scores import Scores

__all__ = ["Engine", "engine_options", "find_local_systems", "parse_spark_systems", "score_on_spark"]

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

    def check(
        self,
        logs: Sequence[str],
        cutting: Cutting,
        options: ReadOptions,
        task: str | None,
        jobs: int | None,
        columns: Columns,
    ) -> None:
        """Refuse options that Spark cannot follow."""
        if not self.spark:
            return
        if cutting.requested or task is not None:
            raise UsageError(
                "--engine spark takes segments as they are; leave --segmentation, --reference, --hypothesis, --source "
                "and --regime out"
            )
        if columns.every:
            raise UsageError(
                "--column is matched with the segments of a log in order, which Spark does not keep\n"
                "  fix: leave --engine spark out; or join the scores with the log in Spark, and take their mean there."
            )
        if options.word_times is not None:
            raise UsageError("--engine spark reads no word times; leave --word-times out, or --engine")
        if jobs is not None:
            raise UsageError("--jobs is the number of processes on this machine; with --engine spark leave it out")
        if "-" in logs:
            raise UsageError("--engine spark reads files, and not standard input")


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


def find_local_systems(systems: Iterable[tuple[str | None, str]]) -> list[tuple[str | None, str]]:
    """The systems whose logs are files on this machine, which must not be written over."""
    return [(name, path) for name, path in systems if not _for_spark(path) and glob.glob(path)]


def score_on_spark(
    systems: list[tuple[str | None, str]],
    plan: Plan,
    interval: IntervalSettings | None,
    options: ReadOptions,
    segment_scores: str | None,
    quarantine: Quarantine,
    engine: Engine,
    messages: Messages,
) -> tuple[list[str], list[list[Scores]]]:
    """Score each system on Spark: the first path of each, and the Scores of its groups."""
    from lagging.scoring.spark import session
    from lagging.scoring.spark.files import score_paths
    from lagging.scoring.spark.frames import SparkOptions
    from lagging.scoring.spark.scored import check_options

    check_options(options)
    groups = _group_paths(systems) if plan.group_by else [(name, [path]) for name, path in systems]
    if segment_scores is not None and len(groups) > 1:
        raise UsageError("--segment-scores on Spark is a directory of Parquet, for one system")
    if segment_scores is not None and Path(segment_scores).exists():
        raise UsageError(f"--segment-scores on Spark writes a new directory, but {segment_scores} exists")
    settings = interval or IntervalSettings()
    spark_options = SparkOptions(
        on_error="fail" if quarantine.add is None else "quarantine",
        confidence=settings.confidence,
        resamples=settings.resamples or RESAMPLES,
    )
    spark = session(engine.master)
    results: list[list[Scores]] = []
    for label, paths in groups:
        name = label or (_name(paths[0]) if _for_spark(paths[0]) else None)
        result = score_paths(spark, paths, plan, options, spark_options, name=name, on_first=messages.announce)
        if quarantine.add is not None:
            for fault in result.faults():
                quarantine.add(fault)
        scores = finish_scores(result.accumulator, result.accumulator.system, interval)
        if not scores:
            raise DataError(Fault("nothing-left" if quarantine.summary else "nothing-given"))
        if segment_scores is not None:
            result.segments.write.parquet(segment_scores)
        results.append(scores)
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
