# SPDX-License-Identifier: Apache-2.0
"""What the driver does: resolve the schema, run a Plan on the executors, and collect what they return."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lagging.data.run import Run
from lagging.data.tokens import is_spm
from lagging.errors import DataError, Fault, Faults, Note, UsageError, optional
from lagging.formats.options import Options, ReadOptions
from lagging.formats.schema import OPTIONAL, SAMPLE, SETTINGS, TELLING, wanted
from lagging.formats.tables import labels_of, match
from lagging.metrics import Metric, metric
from lagging.metrics.conventions import Convention
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.arrow import read_batch, scores_schema, total_row, totals_schema
from lagging.scoring.plan import DEFAULT_METRICS, Plan
from lagging.scoring.poisson import RESAMPLES, SEED
from lagging.scoring.scores import Scores
from lagging.scoring.spark import tasks
from lagging.scoring.spark.batches import ADDED, Counts, Place, Task, repeated_id
from lagging.scoring.spark.tasks import FAULTS, PLACES, ROWS
from lagging.stats.intervals import check_drawn

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

__all__ = ["Scored", "SparkOptions", "score", "score_frame"]

SPARK_TYPES = {"int64": "bigint"}
"""The types of Arrow that have another name in Spark."""


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
        check_drawn(self.confidence, self.resamples)


def score(
    df: DataFrame,
    metrics: Iterable[str | Metric] | None = None,
    *,
    group_by: str | Sequence[str] = (),
    convention: str | Convention = "paper",
    column_map: Mapping[str, str] | None = None,
    unit: str | None = None,
    level: str | None = None,
    repair: Sequence[str] = (),
    strip: Sequence[str] = (),
    on_error: str = "fail",
    seed: int | None = SEED,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    check_ids: bool = True,
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
        repair: names of repairs, as in `lagging.read`, without "first" and "last".
        strip: kinds of target tokens to leave out with their delays, as in `lagging.read`.
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
    columns = (group_by,) if isinstance(group_by, str) else group_by
    plan = Plan.make(metrics, convention, group_by=columns, summary=True, seed=seed)
    options = ReadOptions.make(level=level, unit=unit, repair=repair, strip=strip, column_map=column_map)
    return score_frame(df, plan, options, SparkOptions(on_error, confidence, resamples, check_ids))


def score_frame(
    df: DataFrame,
    plan: Plan,
    options: ReadOptions,
    spark_options: SparkOptions,
    *,
    first: Run | None = None,
    counts: Mapping[str, Counts] | None = None,
    on_first: Callable[[Run], None] | None = None,
) -> Scored:
    """Run a Plan on a DataFrame of segments.

    Args:
        df: the segments.
        plan: what to score.
        options: how to read the rows.
        spark_options: what to do with faults, and how to make intervals.
        first: the first segments, where they were read already; else the first rows of the DataFrame are taken.
        counts: by file, what had been done to a log before it was written.
        on_first: called with the first segments, which decide unit, level and default metrics.
    """
    optional("pyspark", "spark")
    check_options(options)
    with explain_errors():
        frame = SegmentFrame(df, plan, options)
        first = frame.first_run() if first is None else first
        if first is not None and on_first is not None:
            on_first(first)
        task = frame.make_task(first, spark_options, counts or {})
        frame.narrow(task.plan)
        result = frame.run(task)
        if result.twice or result.repeated:
            task, result = frame.resolve_repeated(task, result, spark_options.on_error)
    if result.faults and spark_options.on_error == "fail":
        raise DataError(result.faults)
    if first is not None:
        result.accumulator.system = first.name
    result.accumulator.add_notes(_order_notes(result.notes, () if first is None else first.notes))
    return _collect(frame, task, result, "" if first is None else first.origin.description)


def check_options(options: ReadOptions) -> None:
    """Refuse read options that executors cannot follow.

    Example:
        >>> check_options(ReadOptions(format="csv"))
        Traceback (most recent call last):
        lagging.errors.UsageError: --engine spark reads Parquet, not csv
    """
    if {"first", "last"} & set(options.repair):
        raise UsageError(
            "--repair first and last choose among segments of one id, and need the whole log in one process\n"
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


def _shuffle_partitions(df: DataFrame) -> int:
    return max(1, int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1))


def _ddl(types: Mapping[str, str]) -> str:
    return ", ".join(f"{_quote(name)} {SPARK_TYPES.get(kind, kind)}" for name, kind in types.items())


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _spark_types(schema: pyarrow.Schema) -> dict[str, str]:
    """The types of a schema of Arrow in Spark's words."""
    names = {"double": "double", "int64": "bigint", "string": "string"}
    maps = {"map<string, string>": "map<string,string>", "map<string, int64>": "map<string,bigint>"}
    return {f.name: {**names, **maps}[str(f.type)] for f in schema}


# ---- the DataFrame ----------------------------------------------------------------------------------------------


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
        options = Options(columns=frozenset(plan.columns))
        needed = [
            name
            for column, name in self.names.items()
            if column not in OPTIONAL or column in TELLING or wanted(column, options, "ms")
        ]
        self.df = self.df.select(*map(_quote, dict.fromkeys((*needed, *self.group_names, *ADDED))))

    def map(self, function: Callable[..., Any], *arguments: Any, types: Mapping[str, str]) -> DataFrame:
        """A DataFrame of what a function returns for each partition."""
        return self.df.mapInArrow(partial(function, *arguments), _ddl(types))

    # ---- schema -------------------------------------------------------------------------------------------------

    def first_run(self) -> Run | None:
        """The first segments, from which unit and level are detected; None if no row is a segment."""
        rows = self._first_rows()
        if not rows:
            raise DataError(Fault("empty-log"))
        run = self._as_run(rows)
        if run is not None:
            return run
        task = Task(self.plan, self.options)
        valid = self.df.mapInArrow(partial(tasks.select_valid, task), self.df.schema).take(SAMPLE)
        return self._as_run(valid) if valid else None

    def _first_rows(self) -> Sequence[Any]:
        """The first rows in which something was written; the first rows of all, if there are none."""
        from pyspark.sql import functions as F

        delays = self.names.get("delays")
        if delays is None or self.df.schema[delays].dataType.typeName() != "array":
            return list(self.df.take(SAMPLE))
        return list(self.df.filter(F.size(F.col(_quote(delays))) > 0).take(SAMPLE) or self.df.take(SAMPLE))

    def _as_run(self, rows: Sequence[Any]) -> Run | None:
        """The segments among rows of Spark, if there are any."""
        table = optional("pyarrow", "spark").Table.from_pylist([row.asDict() for row in rows]).combine_chunks()
        batch = table.select([name for name in table.column_names if name not in ADDED]).to_batches()[0]
        runs, _ = read_batch(batch, self.options, "quarantine", guess=True)
        return runs[0] if runs else None

    def make_task(self, first: Run | None, spark_options: SparkOptions, counts: Mapping[str, Counts]) -> Task:
        """What executors do, once the first segments have decided unit, level and metrics."""
        plan, options, settings = self.plan, self.options, dict[str, str]()
        if first is not None:
            plan = plan.resolve(first)
            requested = {"unit": options.unit, "level": options.level}
            settings = {s: getattr(first, s) for s in SETTINGS if s in self.names and not requested.get(s)}
            options = replace(options, unit=None if first.unit == "none" else first.unit, level=first.level)
        elif plan.metrics is None:  # there are only faults
            plan = replace(plan, metrics=tuple(map(metric, DEFAULT_METRICS)))
        return Task(
            plan=plan,
            options=replace(options, columns=frozenset(plan.columns)),
            settings=settings,
            counts=counts,
            confidence=spark_options.confidence,
            resamples=spark_options.resamples,
            buckets=_shuffle_partitions(self.df) if spark_options.check_ids else 0,
        )

    # ---- one pass -----------------------------------------------------------------------------------------------

    def run(self, task: Task) -> PassResult:
        """Score all segments in one pass."""
        parts = self.map(tasks.tally_partition, task, types=ROWS)
        shuffled = parts.repartition(_shuffle_partitions(self.df), "kind", "key")
        result, twice = PassResult(Accumulator(task.plan)), set[int]()
        for row in shuffled.mapInArrow(partial(tasks.merge_partitions, task), _ddl(ROWS)).collect():
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
                notes, has_references = tasks.decode_notes(data)
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
        totals=frame.df.sparkSession.createDataFrame(values, _ddl(types)),
        quarantine=faults.select("file", "row", "id", "kind", "reason"),
        scores=scores,
        kinds=dict(sorted(result.faults.counts.items())),
        notes=accumulator.all_notes(),
        description=description,
        accumulator=accumulator,
        faults=lambda: map(_as_fault, faults.toLocalIterator()),
    )


def _as_fault(row: Any) -> Fault:
    return Fault(row["kind"], row["detail"], row["file"], row["row"], row["id"], row["token"])
