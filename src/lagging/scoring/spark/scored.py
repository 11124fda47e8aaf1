# SPDX-License-Identifier: Apache-2.0
"""Score a DataFrame of segments: run a Plan on the executors, and return tables and scores."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

from lagging.data.run import Run
from lagging.data.tokens import is_spm
from lagging.errors import DataError, Fault, Note, UsageError, optional
from lagging.formats.options import ReadOptions
from lagging.metrics import Metric
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.arrow import scores_schema, total_row, totals_schema
from lagging.scoring.plan import Plan
from lagging.scoring.scores import Scores
from lagging.scoring.spark import tasks
from lagging.scoring.spark.batches import Counts, FirstRows, Task
from lagging.scoring.spark.frames import (
    PassResult,
    SegmentFrame,
    SparkKeywords,
    SparkOptions,
    ddl,
    make_request,
)
from lagging.scoring.spark.tasks import FAULTS

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

__all__ = ["Scored", "check_options", "explain_errors", "score", "score_frame"]


@dataclass
class Scored:
    """The scores of a DataFrame; `segments, totals = scored` takes the two tables.

    Attributes:
        segments: a row per segment: `id`, the columns of the groups, a column per metric, `reasons`, `fault`. It is
            computed when it is used.
        totals: a row per group and metric: value, interval, percentiles, counts, signature.
        quarantine: a row per fault: `file`, `row`, `id`, `kind`, `reason`. It is computed when it is used.
        scores: the same as `totals`, as a list of `Scores`, one for each group.
        kinds: the number of faults of each kind, where rows with faults were left out.
        notes: what a reader of the scores must know.
        description: what the log is, and how that was detected: format, unit, level.
        accumulator: the sums that the scores are made of.
        faults: a function that returns an iterator over all faults.
    """

    segments: DataFrame
    totals: DataFrame
    quarantine: DataFrame
    scores: list[Scores]
    kinds: Mapping[str, int]
    notes: tuple[Note, ...]
    description: str
    accumulator: Accumulator = field(repr=False)
    faults: Callable[[], Iterator[Fault]] = field(repr=False)

    def __iter__(self) -> Iterator[DataFrame]:
        """The segments and the totals."""
        return iter((self.segments, self.totals))


def score(
    df: DataFrame,
    metrics: Iterable[str | Metric] | None = None,
    **keywords: Unpack[SparkKeywords],
) -> Scored:
    """Score the segments of a DataFrame, where they are.

    The scores are those of `lagging score --by`, and so are the intervals, whatever the partitions: sums are exact, and
    the weight of a segment in a resample comes from its id.

    Args:
        df: a row per segment: `id`, `delays`, `source_length`, and whatever else the metrics need. It must give the
            same rows whenever it is computed. If it was read from files, faults have file and row.
        metrics: names or Metric records; if not given AP, AL, LAAL and DAL, and BLEU where there are references.
        group_by: columns; a group is the segments that have the same in all of them.
        convention: as in `lagging.score`.
        column_map: the name that the DataFrame has for a column of ours, such as {"delays": "emission_ms"}.
        unit: "token" or "ms"; if not given that of a column `unit`, or guessed from the first rows, as
            `Scored.description` then tells.
        level: what a target token is; detected from the predictions of the first rows if not given.
        repair, strip: as in `lagging.read`, without the repairs "first" and "last".
        on_error: "fail" raises every fault at once; "quarantine" leaves rows with faults out, and lists them in the
            table `quarantine`. Of several segments with one id the first counts, by file and row.
        seed: of the intervals; None for none.
        confidence: of the intervals, between 0 and 1.
        resamples: of the intervals.
        check_ids: look for ids that occur twice. It takes 8 bytes of shuffle per segment. Without it, only those within
            one Arrow batch are found.

    Raises:
        DataError: with file, row, segment and token of every fault, the first thousand of each kind.
        MetricError: a metric cannot be tallied.
        UsageError: the unit cannot be detected.

    Example:
        `segments, totals = lagging.scoring.spark.score(spark.read.parquet("logs"), ["AL", "DAL"], group_by=["lang"])`
    """
    return score_frame(df, *make_request(metrics, keywords))


def score_frame(
    df: DataFrame,
    plan: Plan,
    options: ReadOptions,
    spark_options: SparkOptions,
    *,
    first: FirstRows | None = None,
    counts: Mapping[str, Counts] | None = None,
    on_first: Callable[[Run], None] | None = None,
) -> Scored:
    """Run a Plan on a DataFrame of segments.

    Args:
        df: the segments.
        plan: what to score.
        options: how to read the rows.
        spark_options: what to do with faults, and how to make intervals.
        first: the first rows, where they were read already; else those of the DataFrame are taken.
        counts: by file, what had been done to a log before it was written.
        on_first: called with the segments of the first rows.
    """
    optional("pyspark", "spark")
    check_options(options)
    with explain_errors():
        frame = SegmentFrame(df, plan, options)
        first = frame.first_rows() if first is None else first
        if first is not None and on_first is not None:
            on_first(first.run)
        task = frame.make_task(first, spark_options, counts or {})
        frame.narrow(task.plan)
        result = frame.run(task)
        if result.twice or result.repeated:
            task, result = frame.resolve_repeated(task, result, spark_options.on_error)
    if result.faults and spark_options.on_error == "fail":
        raise DataError(result.faults)
    if first is not None:
        result.accumulator.system = first.run.name
    result.accumulator.add_notes(_order_notes(result.notes, () if first is None else first.run.notes))
    return _collect(frame, task, result, "" if first is None else first.run.origin.description)


def check_options(options: ReadOptions) -> None:
    """Refuse read options that executors cannot follow.

    Example:
        >>> check_options(ReadOptions(format="csv"))
        Traceback (most recent call last):
        lagging.errors.UsageError: --engine spark reads Parquet, not csv
    """
    if {"first", "last"} & set(options.repair):
        raise UsageError(
            "--repair first and --repair last choose among segments of one id, and need the whole log in one process\n"
            "  fix: on Spark, --on-error quarantine (on_error='quarantine') keeps the first of them."
        )
    if options.level is not None and is_spm(options.level):
        raise UsageError(
            "--spm-model is not for --engine spark: the executors do not have the model\n"
            "  fix: lagging convert counts the pieces on this machine."
        )
    if options.format not in (None, "parquet"):
        raise UsageError(f"--engine spark reads Parquet, not {options.format}")


def _order_notes(partitions: Sequence[Sequence[Note]], first: Sequence[Note]) -> list[Note]:
    """The notes of all partitions in the order of a local run, whichever partition came first.

    Args:
        partitions: the notes of each partition.
        first: the notes about the first segments; those about the log as a whole are only here, because executors see
            parts of it.
    """
    order = {(note.kind, note.text): index for index, note in enumerate(first)}
    ranks: dict[tuple[str, str], int] = {}
    for notes in partitions:
        for rank, note in enumerate(notes):
            key = note.kind, note.text
            ranks[key] = min(rank, ranks.get(key, rank))

    def place(note: Note) -> tuple[int, int, str, str]:
        key = note.kind, note.text
        return order.get(key, len(order)), ranks.get(key, 0), *key

    whole = [note for note in first if (note.kind, note.text) not in ranks]
    return sorted([*whole, *(note for notes in partitions for note in notes)], key=place)


@contextmanager
def explain_errors() -> Iterator[None]:
    """Say how to fix it, if executors lack a package."""
    from pyspark.errors import PythonException

    try:
        yield
    except PythonException as error:
        missing = re.search(r"No module named '([\w.]+)'", str(error))
        if missing is None:
            raise
        raise UsageError(
            f"the executors have no Python module {missing[1]!r}\n"
            "  fix: install lagging[arrow] on them, or send it along: spark-submit --archives, or spark.addArtifacts."
        ) from error


# ---- the result -------------------------------------------------------------------------------------------------


def _collect(frame: SegmentFrame, task: Task, result: PassResult, description: str) -> Scored:
    """The tables, as DataFrames, and the scores."""
    plan, accumulator = task.plan, result.accumulator
    scores = list(accumulator.group_scores(confidence=task.confidence, resamples=task.resamples))
    types = _spark_types(totals_schema(group_by=plan.group_by))
    rows = [total_row(score, group.group) for group in scores for score in group]
    values = [tuple(dict(row[name]) if name == "reasons" else row[name] for name in types) for row in rows]
    segment_types = _spark_types(scores_schema(plan.metrics or (), group_by=plan.group_by))
    faults = frame.map(tasks.list_faults, task, types=FAULTS)
    return Scored(
        segments=frame.map(tasks.score_segments, task, types=segment_types),
        totals=frame.df.sparkSession.createDataFrame(values, ddl(types)),
        quarantine=faults.select("file", "row", "id", "kind", "reason"),
        scores=scores,
        kinds=dict(sorted(result.faults.counts.items())),
        notes=accumulator.all_notes(),
        description=description,
        accumulator=accumulator,
        faults=lambda: map(_as_fault, faults.toLocalIterator()),
    )


def _spark_types(schema: pyarrow.Schema) -> dict[str, str]:
    """The types of a schema of Arrow in Spark's words."""
    names = {"double": "double", "int64": "bigint", "string": "string"}
    maps = {"map<string, string>": "map<string,string>", "map<string, int64>": "map<string,bigint>"}
    return {f.name: {**names, **maps}[str(f.type)] for f in schema}


def _as_fault(row: Any) -> Fault:
    return Fault(row["kind"], row["detail"], row["file"], row["row"], row["id"], row["token"])
