# SPDX-License-Identifier: Apache-2.0
"""A DataFrame of segments on the driver: its schema, one pass of the executors over it, ids that occur twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lagging.errors import DataError, Fault, Faults, Note, UsageError, optional
from lagging.formats.options import ReadKeywords, ReadOptions
from lagging.formats.schema import OPTIONAL, SAMPLE, TELLING, is_requested
from lagging.formats.source import Source
from lagging.formats.tables import labels_of, match
from lagging.metrics import Metric, metric
from lagging.metrics.conventions import Convention
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.arrow import PATH, read_batch
from lagging.scoring.plan import DEFAULT_METRICS, Plan
from lagging.scoring.poisson import RESAMPLES, SEED
from lagging.scoring.spark import tasks
from lagging.scoring.spark.batches import ADDED, Counts, FirstRows, Place, Task, repeated_id
from lagging.scoring.spark.tasks import PLACES, ROWS
from lagging.stats import check_confidence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["PassResult", "SegmentFrame", "SparkKeywords", "SparkOptions", "ddl", "make_request"]

SPARK_TYPES = {"int64": "bigint"}
"""The types of Arrow that have another name in Spark."""


class SparkKeywords(ReadKeywords, total=False):
    """Keywords of the functions that score on Spark; `score` says what each of them is."""

    convention: str | Convention
    on_error: str
    seed: int | None
    confidence: float
    resamples: int
    check_ids: bool


@dataclass(frozen=True)
class SparkOptions:
    """How a Plan is run on Spark.

    Attributes:
        on_error: "fail" or "quarantine".
        confidence, resamples: of the intervals, if the Plan has a seed.
        check_ids: whether ids that occur twice are looked for.
    """

    on_error: str = "fail"
    confidence: float = 0.95
    resamples: int = RESAMPLES
    check_ids: bool = True

    def __post_init__(self) -> None:
        """Refuse values that do not exist."""
        if self.on_error not in ("fail", "quarantine"):
            raise UsageError(f"on_error is 'fail' or 'quarantine', but got {self.on_error!r}")
        check_confidence(self.confidence, self.resamples)


def make_request(
    metrics: Iterable[str | Metric] | str | None, keywords: SparkKeywords
) -> tuple[Plan, ReadOptions, SparkOptions]:
    """What is scored, how rows are read, and how Spark does it, from the keywords of a function.

    Example:
        >>> plan, options, _ = make_request("AL", {"group_by": "lang", "unit": "ms"})
        >>> plan.metrics, plan.group_by, options.unit
        ((AL,), ('lang',), 'ms')
    """
    values: dict[str, Any] = dict(keywords)
    running = {name: values.pop(name) for name in SparkOptions.__annotations__ if name in values}
    convention, seed = values.pop("convention", "paper"), values.pop("seed", SEED)
    options = ReadOptions.make(**values)
    plan = Plan.make(metrics, convention, group_by=options.group_by, summary=True, seed=seed)
    return plan, options, SparkOptions(**running)


def _shuffle_partitions(df: DataFrame) -> int:
    return max(1, int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1))


def ddl(types: Mapping[str, str]) -> str:
    """The schema of a DataFrame as Spark writes it.

    Example:
        >>> ddl({"id": "string", "AL(length=reference)": "double", "row": "int64"})
        '`id` string, `AL(length=reference)` double, `row` bigint'
    """
    return ", ".join(f"{_quote(name)} {SPARK_TYPES.get(kind, kind)}" for name, kind in types.items())


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@dataclass
class PassResult:
    """What one pass over the segments returns.

    Attributes:
        accumulator: the sums and intervals.
        faults: of rows.
        repeated: ids that occur before in a batch.
        twice: hashes of ids that occur more than once.
        notes: those of each partition.
    """

    accumulator: Accumulator
    faults: Faults = field(default_factory=Faults)
    repeated: Faults = field(default_factory=Faults)
    twice: frozenset[int] = frozenset()
    notes: list[list[Note]] = field(default_factory=list)


class SegmentFrame:
    """A DataFrame of segments, with the places of its rows where these are known.

    Args:
        df: the segments.
        plan: what is scored.
        options: how rows are read.
    """

    def __init__(self, df: DataFrame, plan: Plan, options: ReadOptions) -> None:
        from pyspark.errors import AnalysisException
        from pyspark.sql import functions as F

        names = df.columns
        self.plan = plan
        self.options = replace(options, format="arrow", group_by=plan.group_by)
        matched = match(names, options.column_map, plan.group_by)
        absent = ["id"] if "id" not in matched.places else matched.absent
        if absent:
            raise DataError(Fault("missing-column", f"no `{absent[0]}` among: {', '.join(names)}"))
        self.names = {column: names[index] for column, index in matched.places.items()}
        self.group_names = [names[index] for index in matched.by]
        own = [F.col(_quote(name)) for name in dict.fromkeys((*self.names.values(), *self.group_names))]
        hashed = F.xxhash64(F.col(_quote(self.names["id"])).cast("string")).alias(ADDED[2])
        try:
            places = (F.col("_metadata.file_path").alias(ADDED[0]), F.col("_metadata.row_index").alias(ADDED[1]))
            self.df, self.has_places = df.select(*own, *places, hashed), True
            self.df.schema  # noqa: B018  (a remote session analyses a query only now)
        except AnalysisException:  # rows that come from no file
            places = (F.lit(None).cast("string").alias(ADDED[0]), F.lit(None).cast("bigint").alias(ADDED[1]))
            self.df, self.has_places = df.select(*own, *places, hashed), False

    def narrow(self, plan: Plan) -> None:
        """Keep the columns that a Plan needs, and those that every score needs."""
        options = ReadOptions(columns=frozenset(plan.columns))
        needed = [
            name
            for column, name in self.names.items()
            if column not in OPTIONAL or column in TELLING or is_requested(column, options, "ms")
        ]
        self.df = self.df.select(*map(_quote, dict.fromkeys((*needed, *self.group_names, *ADDED))))

    def map(self, function: Callable[..., Any], *arguments: Any, types: Mapping[str, str]) -> DataFrame:
        """A DataFrame of what a function returns for each partition."""
        return self.df.mapInArrow(partial(function, *arguments), ddl(types))

    # ---- schema -------------------------------------------------------------------------------------------------

    def first_rows(self) -> FirstRows | None:
        """The first rows, and the schema that they show; None if no row is a segment."""
        rows = self._take_rows()
        if not rows:
            raise DataError(Fault("empty-log"))
        first = self._read_rows(rows)
        if first is not None:
            return first
        task = Task(self.plan, self.options)
        valid = self.df.mapInArrow(partial(tasks.select_valid, task), self.df.schema).take(SAMPLE)
        return self._read_rows(valid) if valid else None

    def _take_rows(self) -> Sequence[Any]:
        """The first rows in which something was written; the first rows of all, if there are none."""
        from pyspark.sql import functions as F

        delays = self.names.get("delays")
        if delays is None or self.df.schema[delays].dataType.typeName() != "array":
            return list(self.df.take(SAMPLE))
        return list(self.df.filter(F.size(F.col(_quote(delays))) > 0).take(SAMPLE) or self.df.take(SAMPLE))

    def _read_rows(self, rows: Sequence[Any]) -> FirstRows | None:
        """Rows of Spark as segments; None if all of them have faults."""
        table = optional("pyarrow", "spark").Table.from_pylist([row.asDict() for row in rows]).combine_chunks()
        batch = table.select([name for name in table.column_names if name not in ADDED]).to_batches()[0]
        log = Source(PATH, None)
        runs, _ = read_batch(batch, self.options, "quarantine", log=log, guess=True)
        return FirstRows(runs[0], log.schema) if runs and log.schema is not None else None

    def make_task(self, first: FirstRows | None, spark_options: SparkOptions, counts: Mapping[str, Counts]) -> Task:
        """What executors do, once the first rows have decided schema and metrics."""
        plan = self.plan
        if first is not None:
            plan = plan.resolve(first.run)
        elif plan.metrics is None:  # there are only faults
            plan = replace(plan, metrics=tuple(map(metric, DEFAULT_METRICS)))
        options = replace(self.options, columns=frozenset(plan.columns))
        return Task(
            plan=plan,
            options=options,
            schema=None if first is None else first.schema.narrow(options),
            given=() if first is None else first.run.given,
            counts=counts,
            confidence=spark_options.confidence,
            resamples=spark_options.resamples,
            buckets=_shuffle_partitions(self.df) if spark_options.check_ids else 0,
            guess=first is None,
        )

    # ---- one pass -----------------------------------------------------------------------------------------------

    def run(self, task: Task) -> PassResult:
        """Score all segments in one pass."""
        parts = self.map(tasks.tally_partition, task, types=ROWS)
        shuffled = parts.repartition(_shuffle_partitions(self.df), "kind", "key")
        result, twice = PassResult(Accumulator(task.plan)), set[int]()
        for row in shuffled.mapInArrow(partial(tasks.merge_partitions, task), ddl(ROWS)).collect():
            kind, data = row["kind"], bytes(row["data"])
            if kind == "error":
                raise UsageError(data.decode())
            if kind == "score":
                *group, _ = labels_of(row["key"], len(task.plan.group_by) + 1)
                result.accumulator.add_tally(tuple(group), *tasks.decode_score(data))
            elif kind in ("faults", "repeated"):
                kept, counts = tasks.decode_faults(data)
                faults = result.faults if kind == "faults" else result.repeated
                faults.kept += kept
                faults.counts = dict(Counter(faults.counts) + Counter(counts))
            elif kind == "notes":
                notes, has_references, unavailable = tasks.decode_notes(data)
                result.accumulator.add_unavailable({metric(name): text for name, text in unavailable.items()})
                result.notes.append(notes)
                result.accumulator.has_references |= has_references
            elif kind == "twice":
                twice.update(np.frombuffer(data, "<i8").tolist())
        return replace(result, twice=frozenset(twice))

    # ---- ids that occur twice -----------------------------------------------------------------------------------

    def resolve_repeated(self, task: Task, result: PassResult, on_error: str) -> tuple[Task, PassResult]:
        """The result with the faults of ids that occur twice, or that of a second pass that leaves them out."""
        repeated = self._find_repeated(task, result)
        if on_error == "fail":
            for (file, row), (name, first) in repeated.items():
                result.faults.add(replace(repeated_id(file, first), path=file, line=row, segment=name))
            return task, result
        if len(result.twice) > tasks.MAX_REPEATED:
            raise UsageError(
                f"more than {tasks.MAX_REPEATED} ids occur twice\n  fix: df.dropDuplicates(['id']) keeps one of each."
            )
        task = replace(task, skip={place: first for place, (_, first) in repeated.items()})
        return task, self.run(task) if repeated else result

    def _find_repeated(self, task: Task, result: PassResult) -> dict[Place, tuple[str, Place]]:
        """The places of segments whose ids occur before, with the id and its first place, by file and row."""
        rows = self.map(tasks.locate_ids, task, result.twice, types=PLACES).collect() if result.twice else []
        places: dict[str, list[Place]] = {}
        for row in rows:
            places.setdefault(row["id"], []).append((row["file"], row["row"]))
        repeated = {name: sorted(places[name]) for name in sorted(places) if len(places[name]) > 1}
        if result.repeated and not repeated:  # hashes must have led to them
            raise DataError(result.repeated)
        if repeated and not self.has_places:
            faults = Faults()
            faults.add(*(Fault("duplicate-id", f"{len(rows)} times", segment=name) for name, rows in repeated.items()))
            raise DataError(faults)
        return {place: (name, first) for name, (first, *rest) in repeated.items() for place in rest}
