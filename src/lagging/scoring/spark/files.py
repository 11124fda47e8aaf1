# SPDX-License-Identifier: Apache-2.0
"""Files of Parquet, wherever Spark can read them: one that cannot be read is told of by name, or set aside."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lagging.data.trees import read_json
from lagging.errors import DataError, Fault, Faults, LaggingError, UsageError, optional
from lagging.formats.schema import SETTINGS
from lagging.metrics import Metric
from lagging.scoring.spark.batches import decoded
from lagging.scoring.spark.frames import Scored, score

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["is_remote", "score_files", "session"]

MOST = 20
"""How many files may be unreadable before something else must be wrong: each costs another attempt."""

READING = {
    "ignoreCorruptFiles": "false",  # rows would be lost in silence
    "ignoreMissingFiles": "false",
    "parquet.page.verify-checksum.enabled": "true",
}
NO_FILE = re.compile(
    r"FAILED_READ_FILE|CANNOT_READ_FILE_FOOTER|read(?:ing)? footer|while reading file|is not a Parquet file|in file ",
    re.IGNORECASE,
)
CAUSE = re.compile(r"^Caused by: (?:[\w.$]+: )?(.+)$", re.MULTILINE)


def session(master: str | None = None, *, name: str = "lagging") -> SparkSession:
    """A session of Spark: the one that there is, or a new one.

    Args:
        master: such as `local[*]`, `yarn` or `spark://host:7077`; `sc://host:15002` is a server of Spark Connect. As
            `spark-submit` or the environment say, if not given.
        name: what Spark calls the application.
    """
    optional("pyspark", "spark")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
    return builder.getOrCreate()


def is_remote(path: str) -> bool:
    """Whether a path is for Spark to understand: `s3a://…`, `hdfs://…`.

    Example:
        >>> is_remote("s3a://lake/*.parquet"), is_remote("logs/a.parquet")
        (True, False)
    """
    return "://" in path


def score_files(
    spark: SparkSession,
    paths: str | Sequence[str],
    metrics: Iterable[str | Metric] | None = None,
    *,
    on_error: str = "fail",
    **how: Any,
) -> Scored:
    """Score files of Parquet.

    What `lagging` wrote of unit, level and cutting into the metadata of local files is read; of other files the columns
    `unit`, `level` and `seg` tell, or the arguments of `score`.

    Args:
        spark: the session.
        paths: files, directories or globs, as `spark.read.parquet` takes them.
        metrics: names or Metric records; the usual ones if not given.
        on_error: "fail", or "quarantine", which also sets aside files that cannot be read, whole.
        how: the other arguments of `score`.

    Raises:
        DataError: with file and row of every fault; with the file, if one cannot be read.
    """
    given = [paths] if isinstance(paths, str) else list(paths)
    aside: dict[str, Fault] = {}
    said = {} if how.get("unit") else _said(given, aside)
    _check(aside, on_error)
    while True:
        try:
            df = _read(spark, given, aside, said)
            found = score(df, metrics, on_error=on_error, **how)
            break
        except Exception as error:
            path, fault = _unreadable(error, spark, given)
            if fault is None or path in aside:
                raise
            aside[path] = fault
            _check(aside, on_error)
            if len(aside) > MOST:
                raise UsageError(f"more than {MOST} files cannot be read, {decoded(path)} among them") from error
    return _with_files(spark, found, list(aside.values())) if aside else found


def _check(aside: Mapping[str, Fault], on_error: str) -> None:
    if aside and on_error == "fail":
        faults = Faults()
        faults.add(*aside.values())
        raise DataError(faults)


def _read(spark: SparkSession, paths: list[str], aside: Mapping[str, Fault], said: Mapping[str, str]) -> DataFrame:
    """The rows of all files but those that were set aside."""
    from pyspark.sql import functions as F

    reader = spark.read.options(**READING)
    if aside:
        good = [file for file in _files(spark, paths) if decoded(file) not in map(decoded, aside)]
        if not good:
            faults = Faults()
            faults.add(*aside.values())
            raise DataError(faults)
        reader = reader.schema(spark.read.options(**READING).parquet(good[0]).schema)
    df = reader.parquet(*paths)
    if aside:
        names = [form for path in aside for form in _forms(path)]
        df = df.filter(~F.col("_metadata.file_path").isin(names))
    for setting, value in said.items():
        if setting not in df.columns:
            df = df.select("*", F.lit(value).alias(setting), "_metadata")
    return df


def _forms(path: str) -> set[str]:
    """The ways in which Spark may write a path: with `file:` or `file://`, plain or escaped.

    Example:
        >>> sorted(_forms("file:/a b"))
        ['file:///a b', 'file:///a%20b', 'file:/a b', 'file:/a%20b']
    """
    rest = path.removeprefix("file:").removeprefix("//")
    starts = ("",) if rest == path else ("file:", "file://")
    # Java escapes what may not be in the path of a URI, but leaves letters of any alphabet
    plain = {rest, unquote(rest)}
    escaped = {re.sub(r"[\x00-\x20\x7f\"#%<>?\[\\\]^`{|}]", lambda m: f"%{ord(m[0]):02X}", text) for text in plain}
    return {start + text for start in starts for text in plain | escaped}


def _local(path: str) -> list[Path]:
    """The files that Spark finds under a path of this machine."""
    found = [Path(name) for name in sorted(glob.glob(path))]
    inside = (sorted(file.rglob("*")) if file.is_dir() else [file] for file in found)
    return [file for file in chain.from_iterable(inside) if file.is_file() and not file.name.startswith(("_", "."))]


def _said(paths: Sequence[str], aside: dict[str, Fault]) -> dict[str, str]:
    """What the metadata of local files say of all of them; files that say otherwise than the first are set aside."""
    if any(map(is_remote, paths)):
        return {}
    optional("pyarrow", "spark")
    from pyarrow import ArrowException
    from pyarrow.parquet import read_schema

    first: tuple[str, dict[str, str]] | None = None
    for file in chain.from_iterable(map(_local, paths)):
        try:
            metadata = read_schema(file).metadata or {}
            text = read_json(metadata.get(b"lagging", b"{}").decode("utf-8"))
        except (ArrowException, OSError, ValueError):
            continue  # Spark tells what is wrong with it
        here = {s: text[s] for s in SETTINGS if isinstance(text, dict) and isinstance(text.get(s), str)}
        if first is None:
            first = str(file), here
        for setting in (s for s in SETTINGS if here.get(s) != first[1].get(s)):
            told = f"{here.get(setting, 'nothing')}, but {first[1].get(setting, 'nothing')} in {first[0]}"
            aside[file.resolve().as_uri()] = Fault(f"mixed-{setting}", told, str(file))
            break
    return {} if first is None else first[1]


def _unreadable(error: Exception, spark: SparkSession, paths: list[str]) -> tuple[str, Fault | None]:
    """The file that an error of Spark is about, if it is about one."""
    text = str(error)
    if isinstance(error, LaggingError) or NO_FILE.search(text) is None:
        return "", None
    named = [file for file in _files(spark, paths) if any(form in text for form in (*_forms(file), decoded(file)))]
    if not named:
        return "", None
    path = max(named, key=len)  # one name may be the beginning of another
    causes = CAUSE.findall(text)
    return path, Fault("not-arrow", (causes[-1] if causes else text.partition("\n")[0]).strip()[:200], decoded(path))


def _files(spark: SparkSession, paths: list[str]) -> list[str]:
    """The files that Spark finds; their content is not read."""
    rows = spark.read.format("binaryFile").load(paths).select("path").collect()
    return sorted(row["path"] for row in rows)


def _with_files(spark: SparkSession, found: Scored, faults: list[Fault]) -> Scored:
    """What was scored, with the files that were set aside whole."""
    from collections import Counter

    from lagging.formats.quarantine import reason_of

    rows = [(fault.path, None, None, fault.kind, reason_of(fault)) for fault in faults]
    more = spark.createDataFrame(rows, found.quarantine.schema)
    kinds = Counter(found.kinds) + Counter(fault.kind for fault in faults)

    def every() -> Iterator[Fault]:
        yield from faults
        yield from found.faults()

    return replace(found, quarantine=found.quarantine.union(more), kinds=dict(sorted(kinds.items())), faults=every)
