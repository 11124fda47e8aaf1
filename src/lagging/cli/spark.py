# SPDX-License-Identifier: Apache-2.0
"""`lagging score --engine spark`: the logs are scored where Spark runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path, PurePosixPath
from typing import Any

import click

from lagging.cli.common import Command, Talk, system
from lagging.cli.groups import interval_notes, lakes
from lagging.cli.logs import distinct, say_unlike
from lagging.cli.quarantine import Aside
from lagging.errors import DataError, Fault, UsageError
from lagging.formats import system_name
from lagging.formats.source import resolve
from lagging.metrics.conventions import Convention
from lagging.scoring.poisson import RESAMPLES, SEED
from lagging.scoring.scores import Scores

__all__ = ["Engine", "on_spark", "spark_scores", "spark_systems"]

REMOTE = re.compile(r"(?:(?P<name>[^=/:]+)=)?(?P<path>[A-Za-z][\w+.-]*://.+)")


class Engine:
    """Where logs are scored: here, or on Spark.

    Args:
        name: `local` or `spark`.
        master: of Spark, or a server of Spark Connect; as the environment says if not given.
    """

    def __init__(self, name: str, master: str | None) -> None:
        if master is not None and name != "spark":
            raise UsageError("--master says where Spark runs; give --engine spark too")
        self.spark, self.master = name == "spark", master


def on_spark(command: Command) -> Command:
    """Options about where logs are scored; they arrive as `engine`."""

    @wraps(command)
    def call(*args: Any, engine: str, master: str | None, **rest: Any) -> Any:
        return command(*args, engine=Engine(engine, master), **rest)

    where = click.option(
        "--engine", type=click.Choice(["local", "spark"]), default="local", help="Where Parquet is scored."
    )
    whose = click.option(
        "--master", metavar="URL", help="Of Spark: local[*], yarn, spark://…; sc://… is Spark Connect."
    )
    return where(whose(call))


def spark_systems(arguments: tuple[str, ...]) -> list[tuple[str | None, str]]:
    """Names and paths of systems; what Spark alone can look for is not looked for here."""
    found = [(REMOTE.fullmatch(text), text) for text in arguments]
    return [(m["name"], m["path"]) if m else system(text) for m, text in found]


def spark_scores(
    logs: list[tuple[str | None, str]],
    asked: list[Any],
    chosen: Convention,
    by: tuple[str, ...],
    interval: dict[str, Any] | None,
    how: dict[str, Any],
    segment_scores: str | None,
    aside: Aside,
    talk: Talk,
    engine: Engine,
) -> list[Scores]:
    """The scores of each log, and of each group of it."""
    from lagging.scoring.spark import score_files, session

    for key, option in (("strip", "--strip"), ("spm_model", "--spm-model")):
        if how.get(key):
            raise UsageError(f"{option} is not for --engine spark")
    if how.get("format") not in (None, "parquet"):
        raise UsageError(f"--engine spark reads Parquet, not {how['format']}")
    named_logs = _lakes(logs) if by else [(name, [path]) for name, path in logs]
    if segment_scores is not None and len(named_logs) > 1:
        raise UsageError("--segment-scores on Spark is a directory of Parquet, for one system")
    spark = session(engine.master)
    drawn = {"level": 0.95, "resamples": RESAMPLES, "seed": None if interval is None else SEED, **(interval or {})}
    told: Callable[[Fault], None] | None = aside.reading().get("quarantine")
    found: list[list[Scores]] = []
    for name, paths in named_logs:
        result = score_files(
            spark,
            paths,
            asked or None,
            group_by=by,
            convention=chosen,
            columns=how["column_map"],
            unit=how["unit"],
            level=how["level"],
            repair=how["repair"],
            on_error="fail" if told is None else "quarantine",
            seed=drawn["seed"],
            confidence=drawn["level"],
            resamples=drawn["resamples"],
        )
        if told is not None:
            for fault in result.faults():
                told(fault)
        if not result.scores:
            raise DataError(Fault("nothing-left" if aside.said else "nothing-given"))
        for scores in result.scores:
            scores.system = name or (_called(paths[0]) if _for_spark(paths[0]) else system_name(resolve(paths[0])[0]))
        result.scores[0].notes = (*result.notes, *(interval_notes(result.scores) if interval is not None else ()))
        if segment_scores is not None:
            result.segments.write.parquet(segment_scores)
        found.append(result.scores)
    firsts = distinct([some[0] for some in found], [paths[0] for _, paths in named_logs])
    for first, some in zip(firsts, found, strict=True):
        for scores in some:
            scores.system = first.system
            talk.undefined(scores)
        talk.notes(first.notes, first.system)
    say_unlike(firsts, talk)
    return [scores for some in found for scores in some]


def _lakes(logs: list[tuple[str | None, str]]) -> list[tuple[str | None, list[str]]]:
    """Names and files of systems: files without a name are one log, where systems are told apart by a column."""
    remote = [(name, path) for name, path in logs if _for_spark(path)]
    here = [log for log in logs if log not in remote]
    rest = [path for name, path in remote if name is None]
    return [
        *(lakes(here) if here else []),
        *((name, [path]) for name, path in remote if name is not None),
        *([(None, rest)] if rest else []),
    ]


def _for_spark(path: str) -> bool:
    """Whether Spark alone knows what files a path stands for."""
    return REMOTE.fullmatch(path) is not None or Path(path).is_dir()


def _called(path: str) -> str:
    """The name of a system, from the last part of its path that has no wildcard.

    Example:
        >>> _called("s3a://lake/logs/*.parquet"), _called("runs/wait-3.parquet"), _called("a.parquet")
        ('logs', 'wait-3', 'a')
    """
    parts = [part for part in PurePosixPath(path).parts if not re.search(r"[*?\[{]", part)]
    return parts[-1].partition(".")[0] or parts[-1]
