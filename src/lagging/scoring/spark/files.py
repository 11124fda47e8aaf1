# SPDX-License-Identifier: Apache-2.0
"""Parquet files, wherever Spark can read them. Of those on this machine, pyarrow finds the ones that are damaged."""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import unquote

from lagging.data.run import Run
from lagging.data.trees import read_json
from lagging.errors import DataError, Fault, Faults, LaggingError, UsageError, optional
from lagging.formats import ReadOptions, parquet, scan_log
from lagging.formats.quarantine import reason_of
from lagging.formats.report import ReadReport
from lagging.formats.schema import SETTINGS
from lagging.formats.source import Source
from lagging.formats.tables import COUNTS, match
from lagging.metrics import Metric
from lagging.scoring.plan import Plan
from lagging.scoring.spark.batches import Counts, FirstRows
from lagging.scoring.spark.frames import SparkKeywords, SparkOptions, make_request
from lagging.scoring.spark.scored import Scored, check_options, score_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["is_remote", "score_files", "score_paths", "session"]

READ_SETTINGS = {
    "mergeSchema": "true",  # columns that the first file lacks would be lost without a message
    "ignoreCorruptFiles": "false",  # rows would be lost without a message
    "ignoreMissingFiles": "false",
    "parquet.page.verify-checksum.enabled": "true",
}
FIRST_FILES = 10
"""The number of files among whose rows the first segments are looked for."""


def session(master: str | None = None, *, name: str = "lagging") -> SparkSession:
    """The session of Spark that exists, or a new one.

    Args:
        master: such as `local[*]`, `yarn` or `spark://host:7077`; `sc://host:15002` is a server of Spark Connect. If
            not given, `spark-submit` or the environment decide.
        name: the name of the application in Spark.
    """
    optional("pyspark", "spark")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
    return builder.getOrCreate()


def is_remote(path: str) -> bool:
    """Whether only Spark can read a path: `s3a://…`, `hdfs://…`.

    Example:
        >>> is_remote("s3a://lake/*.parquet"), is_remote("logs/a.parquet")
        (True, False)
    """
    return "://" in path


def score_files(
    spark: SparkSession,
    paths: str | Sequence[str],
    metrics: Iterable[str | Metric] | None = None,
    **keywords: Unpack[SparkKeywords],
) -> Scored:
    """Score Parquet files.

    Unit, level and default metrics of files on this machine are resolved as `lagging score` resolves them, from the
    metadata that `lagging` writes and from the first rows; those of other files by their columns and the first rows.

    Args:
        spark: the session.
        paths: files, directories or globs, as `spark.read.parquet` takes them.
        metrics: names or Metric records; the default metrics for the log if not given.
        keywords: as in `lagging.scoring.spark.score`; `on_error="quarantine"` also leaves out, whole, files on this
            machine that cannot be read.

    Raises:
        DataError: with file and row of every fault; with the file, if one on this machine cannot be read.
        UsageError: there are no such files.
        LaggingError: Spark cannot read files elsewhere; with the first line of its message.
    """
    return score_paths(spark, [paths] if isinstance(paths, str) else paths, *make_request(metrics, keywords))


def score_paths(
    spark: SparkSession,
    paths: Sequence[str],
    plan: Plan,
    options: ReadOptions,
    spark_options: SparkOptions,
    *,
    name: str | None = None,
    on_first: Callable[[Run], None] | None = None,
) -> Scored:
    """Run a Plan on Parquet files.

    Args:
        spark: the session.
        paths: files, directories or globs, as `spark.read.parquet` takes them.
        plan: what to score.
        options: how to read the files.
        spark_options: what to do with faults, and how to make intervals.
        name: name of the system.
        on_first: called with the segments of the first rows.
    """
    check_options(options)
    local = LocalFiles.find(paths, options)
    local.check(spark_options.on_error)
    first = local.first_rows(plan, options, name)

    def announce(run: Run) -> None:
        if on_first is not None:
            on_first(run if first is not None else replace(run, name=name or run.name))

    def attempt() -> Scored:
        frame = _read(spark, paths, local)
        return score_frame(frame, plan, options, spark_options, first=first, counts=local.counts, on_first=announce)

    try:
        try:
            scored = attempt()
        except _spark_errors():
            if not local.find_damaged():
                raise
            local.check(spark_options.on_error)
            first = local.first_rows(plan, options, name)
            scored = attempt()
    except _spark_errors() as error:
        raise _explain(error, paths) from error
    return _with_files(spark, scored, list(local.faults.values())) if local.faults else scored


def _spark_errors() -> tuple[type[Exception], ...]:
    """The exceptions of Spark; a client of Spark Connect may not have those of py4j."""
    from pyspark.errors import PySparkException

    try:
        py4j = import_module("py4j.protocol")
    except ImportError:
        return (PySparkException,)
    return (PySparkException, py4j.Py4JError)


def _explain(error: Exception, paths: Sequence[str]) -> LaggingError:
    """An error of Spark in one sentence: the paths, and the first line of its message."""
    from pyspark.errors import AnalysisException

    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.getMessage() or java)
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [repr(error)]
    reason = " ".join(lines[: 2 if lines[0].endswith(":") else 1])
    message = f"Spark cannot read {', '.join(paths)}: {reason[:500]}"
    return UsageError(message) if isinstance(error, AnalysisException) else LaggingError(message)


# ---- files on this machine --------------------------------------------------------------------------------------


@dataclass
class LocalFiles:
    """The files on this machine that paths stand for; none, if Spark reads them elsewhere.

    Attributes:
        files: the files.
        faults: of files that cannot be read, or not together with the first; they are left out whole.
        settings: the unit, level and segmentation that the metadata of the files have.
        counts: by file, what had been done to the log before it was written.
    """

    files: list[Path]
    faults: dict[Path, Fault] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    counts: dict[str, Counts] = field(default_factory=dict)

    @classmethod
    def find(cls, paths: Sequence[str], options: ReadOptions) -> LocalFiles:
        """Find the files, and read their footers."""
        if any(map(is_remote, paths)):
            return cls([])
        local = cls(list(chain.from_iterable(map(_files_under, paths))))
        local._read_footers(options)
        return local

    @property
    def good(self) -> list[Path]:
        """The files that can be read."""
        return [file for file in self.files if file not in self.faults]

    def check(self, on_error: str) -> None:
        """Raise the faults of files, unless such files may be left out and another is there."""
        if self.faults and (on_error == "fail" or not self.good):
            faults = Faults()
            faults.add(*self.faults.values())
            raise DataError(faults)

    def _read_footers(self, options: ReadOptions) -> None:
        optional("pyarrow", "spark")
        from pyarrow import ArrowException
        from pyarrow.parquet import read_schema

        first: Path | None = None
        first_has_text = False
        for file in self.files:
            if file.stat().st_size == 0:
                self.faults[file] = Fault("empty-log", path=str(file))
                continue
            try:
                schema = read_schema(file)
                metadata = _metadata(schema.metadata)
            except (ArrowException, OSError, ValueError) as error:
                self.faults[file] = _unreadable(file, error)
                continue
            self.counts[str(_absolute(file))] = {name: metadata[name] for name in COUNTS if metadata.get(name)}
            settings = {s: metadata[s] for s in SETTINGS if isinstance(metadata.get(s), str)}
            has_text = "prediction" in match(schema.names, options.column_map).places
            if first is None:
                first, first_has_text, self.settings = file, has_text, settings
            if has_text != first_has_text:
                self.faults[file] = Fault("missing-prediction", f"only one of {first} and {file} has any", str(file))
            for setting in SETTINGS:
                here, there = settings.get(setting), self.settings.get(setting)
                if here != there and getattr(options, setting, None) is None:
                    detail = f"{here or 'nothing'}, but {there or 'nothing'} in {first}"
                    self.faults[file] = Fault(f"mixed-{setting}", detail, str(file))
                    break
        self.counts = {file: counts for file, counts in self.counts.items() if counts}

    def find_damaged(self) -> bool:
        """Read every file to its end, because Spark could not; whether any is damaged."""
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        before = len(self.faults)
        for file in self.good:
            try:
                with ParquetFile(file, page_checksum_verification=True) as table:
                    for _ in table.iter_batches():
                        pass
            except (ArrowException, OSError, ValueError) as error:
                self.faults[file] = _unreadable(file, error)
        return len(self.faults) > before

    def first_rows(self, plan: Plan, options: ReadOptions, name: str | None) -> FirstRows | None:
        """The first rows as a local run reads them, and the schema of their file; None if all have faults."""
        if not self.good:
            return None
        options = replace(options, columns=frozenset(plan.columns), group_by=plan.group_by, format="parquet")
        files = [str(file) for file in self.good[:FIRST_FILES]]
        try:
            run = next(scan_log(files, options, name=name, quarantine=lambda _: None), None)
        except DataError:  # each row has a fault: the executors report all of them
            return None
        if run is None or run.origin.path is None:
            return None
        log = Source(run.origin.path, Path(run.origin.path))
        next(parquet.scan(log, options, ReadReport()), None)
        return None if log.schema is None else FirstRows(run, log.schema)


def _metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """What `lagging` wrote into the metadata of a file."""
    values = read_json((metadata or {}).get(b"lagging", b"{}").decode("utf-8"))
    if not isinstance(values, dict):
        raise ValueError("the metadata `lagging` of the schema are no JSON object")
    return values


def _unreadable(file: Path, error: Exception) -> Fault:
    return Fault("not-arrow", str(error).partition("\n")[0][:100], str(file))


def _files_under(path: str) -> list[Path]:
    """The files that Spark finds under a path of this machine."""
    matches = [Path(name) for name in sorted(glob.glob(path))]
    inside = (sorted(file.rglob("*")) if file.is_dir() else [file] for file in matches)
    return [file for file in chain.from_iterable(inside) if file.is_file() and not file.name.startswith(("_", "."))]


def _absolute(file: Path) -> Path:
    """The path of a file from the root, as Spark has it: symbolic links stay."""
    return Path(os.path.normpath(file.absolute()))


# ---- reading ----------------------------------------------------------------------------------------------------


def _read(spark: SparkSession, paths: Sequence[str], local: LocalFiles) -> DataFrame:
    """The rows of all files but those with faults."""
    from pyspark.sql import functions as F

    reader = spark.read.options(**READ_SETTINGS)
    if local.faults:
        good = spark.read.options(**READ_SETTINGS).parquet(*(str(_absolute(file)) for file in local.good))
        reader = reader.schema(good.schema)
    # relative paths are relative to this process; Java may have been started elsewhere
    df = reader.parquet(*(str(_absolute(Path(path))) if local.files else path for path in paths))
    if local.faults:
        uris = [_absolute(file).as_uri() for file in local.faults]
        df = df.filter(~F.col("_metadata.file_path").isin([form for uri in uris for form in _path_forms(uri)]))
    for setting, value in local.settings.items():
        if setting not in df.columns:
            df = df.select("*", F.lit(value).alias(setting), "_metadata")
    return df


def _path_forms(path: str) -> set[str]:
    """The ways in which Spark may write a path: with `file:` or `file://`, plain or escaped.

    Example:
        >>> sorted(_path_forms("file:/a b"))
        ['file:///a b', 'file:///a%20b', 'file:/a b', 'file:/a%20b']
    """
    rest = path.removeprefix("file:").removeprefix("//")
    starts = ("",) if rest == path else ("file:", "file://")
    # Java escapes what may not be in the path of a URI, but leaves letters of any alphabet
    plain = {rest, unquote(rest)}
    escaped = {re.sub(r"[\x00-\x20\x7f\"#%<>?\[\\\]^`{|}]", lambda m: f"%{ord(m[0]):02X}", text) for text in plain}
    return {start + text for start in starts for text in plain | escaped}


def _with_files(spark: SparkSession, scored: Scored, faults: list[Fault]) -> Scored:
    """The result with the files that were left out whole."""
    rows = [(fault.path, None, None, fault.kind, reason_of(fault)) for fault in faults]
    more = spark.createDataFrame(rows, scored.quarantine.schema)
    kinds = Counter(scored.kinds) + Counter(fault.kind for fault in faults)
    of_rows = scored.faults

    def all_faults() -> Iterator[Fault]:
        yield from faults
        yield from of_rows()

    return replace(
        scored, quarantine=scored.quarantine.union(more), kinds=dict(sorted(kinds.items())), faults=all_faults
    )
