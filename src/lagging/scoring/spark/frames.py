# SPDX-License-Identifier: Apache-2.0
"""What the driver does: ask, collect what little comes back, and hand on DataFrames."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lagging.data.checks import check_repairs
from lagging.data.tokens import check_units
from lagging.errors import DataError, Fault, Faults, Note, UsageError, merge_notes, optional
from lagging.formats.options import Options
from lagging.formats.schema import OPTIONAL, SAMPLE, SETTINGS, wanted
from lagging.formats.tables import check_names, labels_of, match
from lagging.metrics import Metric
from lagging.metrics.conventions import Convention
from lagging.metrics.conventions import convention as convention_named
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.arrow import scores_schema, totals_schema
from lagging.scoring.plan import DEFAULT_METRICS, Plan
from lagging.scoring.poisson import RESAMPLES, SEED
from lagging.scoring.scores import Scores
from lagging.scoring.signature import Signature
from lagging.scoring.spark import tasks
from lagging.scoring.spark.batches import ADDED, Task, twin
from lagging.scoring.spark.tasks import FAULTS, PLACES, ROWS, Facts
from lagging.scoring.tally import Tally
from lagging.stats import check_confidence

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

__all__ = ["Scored", "score"]

NAMES = {"int64": "bigint"}
"""What Spark calls types of Arrow, if not the same."""


@dataclass
class Scored:
    """The scores of a DataFrame; `segments, totals = scored` takes the two tables.

    Attributes:
        segments: a row per segment: `id`, the columns of the groups, a column per metric, `reasons`, `fault`. It is
            computed when it is asked for.
        totals: a row per group and metric: value, interval, percentiles, counts, signature.
        quarantine: a row per fault: `file`, `row`, `id`, `kind`, `reason`. It is computed when it is asked for.
        scores: the same as `totals`, for Python.
        kinds: how many faults there are of each kind, where rows with faults were set aside.
        notes: what a reader of the scores must know.
    """

    segments: DataFrame
    totals: DataFrame
    quarantine: DataFrame
    scores: list[Scores]
    kinds: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    faults: Callable[[], Iterator[Fault]] = field(default=lambda: iter(()), repr=False)

    def __iter__(self) -> Iterator[DataFrame]:
        """The segments and the totals."""
        return iter((self.segments, self.totals))


def score(
    df: DataFrame,
    metrics: Iterable[str | Metric] | None = None,
    *,
    group_by: str | Sequence[str] = (),
    convention: str | Convention = "paper",
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
    level: str | None = None,
    repair: Sequence[str] = (),
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
            same rows whenever it is computed. Of one that was read from files, faults have file and row.
        metrics: names or Metric records; if not given AP, AL, LAAL and DAL, and BLEU where there are references.
        group_by: columns; a group is the segments that have the same in all of them.
        convention: as in `lagging.score`.
        columns: what the DataFrame calls a column of ours, such as {"delays": "emission_ms"}.
        unit: "token" or "ms", if no column `unit` says it.
        level: what a target token is; found out from the predictions of the first rows if not given.
        repair: names of repairs, as in `lagging.read`, without "first" and "last".
        on_error: "fail" raises every fault at once; "quarantine" leaves rows with faults out, and tells of them in the
            table `quarantine`. Of several segments with one id the first counts, by file and row.
        seed, confidence, resamples: of the intervals; no intervals if the seed is None.
        check_ids: look for ids that occur twice. It takes 8 bytes of shuffle per segment. Without it, only those within
            one Arrow batch are found.

    Raises:
        DataError: with file, row, segment and token of every fault, the first thousand of each kind.
        MetricError: a metric cannot be tallied.
        UsageError: the unit is not known.

    Example:
        `segments, totals = lagging.scoring.spark.score(spark.read.parquet("logs"), ["AL", "DAL"], group_by=["lang"])`
    """
    optional("pyspark", "spark")
    if on_error not in ("fail", "quarantine"):
        raise UsageError(f"on_error is 'fail' or 'quarantine', but got {on_error!r}")
    check_units(unit, level)
    check_confidence(confidence, resamples)
    check_repairs(tuple(repair))
    if {"first", "last"} & set(repair):
        raise UsageError("first and last choose among segments of one id; on Spark on_error='quarantine' does")
    chosen = convention_named(convention)
    plan = Plan.make(metrics, chosen, summary=True)
    task = Task(
        metrics=(),
        convention=chosen,
        columns=check_names(columns or {}),
        by=(group_by,) if isinstance(group_by, str) else tuple(group_by),
        unit=unit,
        level=level,
        repair=tuple(repair),
        seed=seed,
        confidence=confidence,
        resamples=resamples,
        buckets=_buckets(df) if check_ids else 0,
    )
    with explained():
        log = Log(df, task)
        task, usual = log.settle()
        plan = Plan.make(usual, chosen, summary=True) if plan.metrics is None else plan
        log.narrow(frozenset(plan.columns))
        task = replace(task, metrics=tuple(map(repr, plan.metrics or ())))
        found = log.tally(task)
        if found.twice or found.doubles:
            task, found = log.without_twins(task, found, on_error)
    if found.faults and on_error == "fail":
        raise DataError(found.faults)
    return _scored(log, task, found)


@contextmanager
def explained() -> Iterator[None]:
    """Say how to mend it, if executors lack a package."""
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


def _buckets(df: DataFrame) -> int:
    """In how many parts hashes are looked through."""
    return max(1, int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1))


def _ddl(names: Mapping[str, str]) -> str:
    return ", ".join(f"{_quoted(name)} {NAMES.get(kind, kind)}" for name, kind in names.items())


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _types(schema: pyarrow.Schema) -> dict[str, str]:
    """The types of a schema as Spark calls them."""
    known = {"double": "double", "int64": "bigint", "string": "string"}
    maps = {"map<string, string>": "map<string,string>", "map<string, int64>": "map<string,bigint>"}
    return {f.name: {**known, **maps}[str(f.type)] for f in schema}


# ---- the log ----------------------------------------------------------------------------------------------------


@dataclass
class Found:
    """What one pass found."""

    totals: dict[str, tuple[dict[str, Any], Tally]] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)
    doubles: Faults = field(default_factory=Faults)
    notes: list[Note] = field(default_factory=list)
    referenced: bool = False
    twice: frozenset[int] = frozenset()


class Log:
    """A DataFrame of segments, with the places of its rows where these are known.

    Args:
        df: the segments.
        task: how they are to be scored.
    """

    def __init__(self, df: DataFrame, task: Task) -> None:
        from pyspark.errors import AnalysisException
        from pyspark.sql import functions as F

        names = df.columns
        self.task, self.matched = task, match(names, task.columns, task.by)
        absent = ["id"] if "id" not in self.matched.places else self.matched.absent
        if absent:
            raise DataError(Fault("missing-column", f"no `{absent[0]}` among: {', '.join(names)}"))
        self.names = {column: names[place] for column, place in self.matched.places.items()}
        self.by = [names[place] for place in self.matched.by]
        own = [F.col(_quoted(name)) for name in dict.fromkeys((*self.names.values(), *self.by))]
        hashed = F.xxhash64(F.col(_quoted(self.names["id"])).cast("string")).alias(ADDED[2])
        try:
            places = (F.col("_metadata.file_path").alias(ADDED[0]), F.col("_metadata.row_index").alias(ADDED[1]))
            self.df, self.placed = df.select(*own, *places, hashed), True
            self.df.schema  # noqa: B018  (a remote session looks at a plan only now)
        except AnalysisException:  # rows that come from no file
            places = (F.lit(None).cast("string").alias(ADDED[0]), F.lit(None).cast("bigint").alias(ADDED[1]))
            self.df, self.placed = df.select(*own, *places, hashed), False

    def narrow(self, needed: frozenset[str]) -> None:
        """Keep the columns that these are, and those that every score needs."""
        options = Options(columns=needed)
        read = [name for column, name in self.names.items() if column not in OPTIONAL or wanted(column, options, "ms")]
        self.df = self.df.select(*map(_quoted, dict.fromkeys((*read, *self.by, *ADDED))))

    def map(self, function: Callable[..., Any], *given: Any, names: Mapping[str, str]) -> DataFrame:
        """A DataFrame of what a function makes of each partition."""
        return self.df.mapInArrow(partial(function, *given), _ddl(names))

    def settle(self) -> tuple[Task, tuple[str, ...]]:
        """The task with unit, level and cutting, as the first rows with something written say; the usual metrics."""
        facts = self._facts(self._sample())
        if facts is None:
            rows = self.map(tasks.settled, self.task, names=ROWS).collect()
            facts = min((tasks.facts_of(bytes(row["data"])) for row in rows), default=None)
        if facts is None:  # nothing but faults
            return self.task, DEFAULT_METRICS
        given = {"unit": self.task.unit, "level": self.task.level}
        said = {s: getattr(facts, s) for s in SETTINGS if s in self.names and not given.get(s)}
        unit = None if facts.unit == "none" else facts.unit
        return replace(self.task, unit=unit, level=facts.level, said=said), facts.usual

    def _sample(self) -> Sequence[Any]:
        from pyspark.sql import functions as F

        delays = self.names.get("delays")
        if delays is None or self.df.schema[delays].dataType.typeName() != "array":
            return list(self.df.take(SAMPLE))
        return list(self.df.filter(F.size(F.col(_quoted(delays))) > 0).take(SAMPLE) or self.df.take(SAMPLE))

    def _facts(self, rows: Sequence[Any]) -> Facts | None:
        """What some rows are, if any of them is a segment."""
        if not rows:
            raise DataError(Fault("empty-log"))
        pa = optional("pyarrow", "spark")
        table = pa.Table.from_pylist([row.asDict() for row in rows]).combine_chunks()
        batch = table.select([name for name in table.column_names if name not in ADDED]).to_batches()[0]
        runs, _ = self.task.runs_of(batch)
        return Facts.of(runs[0], "", 0) if runs else None

    def tally(self, task: Task) -> Found:
        """One pass."""
        parts = self.map(tasks.tallied, task, names=ROWS)
        number = _buckets(self.df)
        rows = parts.repartition(number, "kind", "key").mapInArrow(partial(tasks.merged, task), _ddl(ROWS)).collect()
        out, twice = Found(), set[int]()
        for row in rows:
            kind, data = row["kind"], bytes(row["data"])
            if kind == "error":
                raise UsageError(data.decode())
            if kind == "score":
                total, tally = tasks.score_of(data)
                out.totals[row["key"]] = total, Tally.from_bytes(tally)
            elif kind in ("faults", "doubles"):
                faults, counts = tasks.faults_of(data)
                into = out.faults if kind == "faults" else out.doubles
                into.kept += faults
                into.counts = dict(Counter(into.counts) + Counter(counts))
            elif kind == "notes":
                notes, referenced = tasks.notes_of(data)
                out.notes += notes
                out.referenced |= referenced
            elif kind == "twice":
                twice.update(np.frombuffer(data, "<i8").tolist())
        return replace(out, twice=frozenset(twice))

    def without_twins(self, task: Task, found: Found, on_error: str) -> tuple[Task, Found]:
        """What was found, where ids occur twice: with their faults, or anew without all but the first of each."""
        twins = self.twins(task, found)
        if on_error == "fail":
            for (file, row), (name, first) in twins.items():
                found.faults.add(replace(twin(file, first), path=file, line=row, segment=name))
            return task, found
        if len(found.twice) > tasks.MOST:
            raise UsageError(f"more than {tasks.MOST} ids occur twice: df.dropDuplicates(['id']) keeps one of each")
        task = replace(task, skip={place: first for place, (_, first) in twins.items()})
        return task, self.tally(task) if twins else found

    def twins(self, task: Task, found: Found) -> Twins:
        """The segments whose ids were used before; which of several is the first, file and row say."""
        rows = self.map(tasks.located, task, found.twice, names=PLACES).collect() if found.twice else []
        places: dict[str, list[tuple[str, int]]] = {}
        for row in rows:
            places.setdefault(row["id"], []).append((row["file"], row["row"]))
        several = {name: sorted(some) for name, some in sorted(places.items()) if len(some) > 1}
        if found.doubles and not several:  # hashes must have told of them
            raise DataError(found.doubles)
        if several and not self.placed:
            faults = Faults()
            faults.add(*(Fault("duplicate-id", f"{len(some)} times", segment=name) for name, some in several.items()))
            raise DataError(faults)
        return {place: (name, some[0]) for name, some in several.items() for place in some[1:]}


Twins = dict[tuple[str, int], tuple[str, tuple[str, int]]]
"""Segments, by file and row: their ids, and where these were first."""


# ---- what is handed on ------------------------------------------------------------------------------------------


def _scored(log: Log, task: Task, found: Found) -> Scored:
    accumulator = Accumulator(replace(task.plan, seed=None))
    accumulator.has_references = found.referenced
    totals = {}
    for key, (total, tally) in found.totals.items():
        *group, name = labels_of(key, len(task.by) + 1)
        accumulator.add_tally(tuple(group), tally)
        totals[tuple(group), name] = total
    scores, rows = [], []
    for of in accumulator.group_scores():
        made = [totals[tuple(of.group.values()), repr(one.metric)] for one in of]
        rows += made
        drawn = zip(of, made, strict=True)
        done = [replace(s, low=t["low"], high=t["high"], signature=Signature.parse(t["signature"])) for s, t in drawn]
        scores.append(Scores(done, group=of.group))
    types = _types(totals_schema(by=task.by))
    values = [tuple(dict(row[name]) if name == "reasons" else row[name] for name in types) for row in rows]
    faults = log.map(tasks.faulty, task, names=FAULTS)
    return Scored(
        segments=log.map(tasks.segments, task, names=_types(scores_schema(task.metrics, by=task.by))),
        totals=log.df.sparkSession.createDataFrame(values, _ddl(types)),
        quarantine=faults.select("file", "row", "id", "kind", "reason"),
        scores=scores,
        kinds=dict(sorted(found.faults.counts.items())),
        notes=merge_notes(sorted(found.notes, key=lambda note: (note.kind, note.text))),
        faults=lambda: map(_fault, faults.toLocalIterator()),
    )


def _fault(row: Any) -> Fault:
    return Fault(row["kind"], row["detail"], row["file"], row["row"], row["id"], row["token"])
