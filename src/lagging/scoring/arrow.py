# SPDX-License-Identifier: Apache-2.0
"""Arrow batches in, Arrow batches out: a row per segment with its scores, or a row per group and metric that adds up.

Pure functions of a batch, so that they can run wherever batches are: over a file, a dataset, a Flight server, or on the
executors of Spark (`mapInArrow`). Lists go from Arrow's memory to the kernels without a copy. Needs pyarrow (the extra
`arrow`).

    score_batch   batch of segments → batch of segment scores
    tally_batch   batch of segments → batch of tallies, one per group and metric
    merge_tallies batches of tallies → one batch of tallies; in any order, in any number of steps
    finish_tallies batch of tallies → batch of scores, with intervals and percentiles

A batch is a part of a log, and what is guessed from the first rows of a log cannot be guessed from a part. So the
segments of a batch have ids, and its unit is an argument, unless a column or the metadata of the schema have it.

The functions are in one file because each takes what another returns: they share the schemas of these batches.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from lagging.data.run import Run
from lagging.data.strip import strip as strip_tokens
from lagging.errors import DataError, Fault, UsageError, merge_notes
from lagging.formats.arrow_arrays import as_texts, import_arrow
from lagging.formats.ids import SeenIds
from lagging.formats.options import ReadKeywords, ReadOptions
from lagging.formats.parquet import from_batches
from lagging.formats.quarantine import drop_faulty, reason_of
from lagging.formats.report import ReadReport
from lagging.formats.source import Source
from lagging.formats.tables import joined_labels, match
from lagging.metrics import Metric, metric
from lagging.metrics.conventions import Convention
from lagging.scoring.accumulator import Accumulator, Group
from lagging.scoring.plan import DEFAULT_METRICS, Plan
from lagging.scoring.poisson import RESAMPLES, SEED
from lagging.scoring.scores import Score, Scores
from lagging.scoring.tally import PERCENTILES, Tally

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "finish_tallies",
    "merge_tallies",
    "read_batch",
    "score_batch",
    "score_rows",
    "scores_schema",
    "segment_scores",
    "tallies_schema",
    "tally_batch",
    "total_row",
    "totals_schema",
]

Metrics = Iterable[str | Metric]
PATH = "<batch>"


# ---- schemas ----------------------------------------------------------------------------------------------------


def scores_schema(metrics: Metrics = DEFAULT_METRICS, *, group_by: Sequence[str] = ()) -> pyarrow.Schema:
    """The schema of what `score_batch` returns.

    Example:
        >>> scores_schema(["AL"], group_by=["lang"]).names
        ['id', 'lang', 'AL', 'reasons', 'fault']
    """
    pa = import_arrow()
    scores = [(repr(metric(m)), pa.float64()) for m in metrics]
    labels = [(name, pa.string()) for name in group_by]
    comments = [("reasons", pa.map_(pa.string(), pa.string())), ("fault", pa.string())]
    return pa.schema([("id", pa.string()), *labels, *scores, *comments])


def tallies_schema(*, group_by: Sequence[str] = ()) -> pyarrow.Schema:
    """The schema of what `tally_batch` and `merge_tallies` return.

    Example:
        >>> tallies_schema(group_by=["lang"]).names
        ['lang', 'metric', 'n', 'tally']
    """
    pa = import_arrow()
    labels = [(name, pa.string()) for name in group_by]
    return pa.schema([*labels, ("metric", pa.string()), ("n", pa.int64()), ("tally", pa.binary())])


def totals_schema(*, group_by: Sequence[str] = ()) -> pyarrow.Schema:
    """The schema of what `finish_tallies` returns.

    Example:
        >>> totals_schema(group_by=["lang"]).names[:5]
        ['lang', 'metric', 'score', 'low', 'high']
    """
    pa = import_arrow()
    labels = [(name, pa.string()) for name in group_by]
    numbers = ["score", "low", "high", *(f"p{p:g}" for p in PERCENTILES), "least", "most"]
    counts = [("n", pa.int64()), ("undefined", pa.int64()), ("reasons", pa.map_(pa.string(), pa.int64()))]
    more = [("unit", pa.string()), *counts, ("signature", pa.string())]
    return pa.schema([*labels, ("metric", pa.string()), *((name, pa.float64()) for name in numbers), *more])


# ---- segments ---------------------------------------------------------------------------------------------------


def score_batch(
    batch: pyarrow.RecordBatch,
    metrics: Metrics = DEFAULT_METRICS,
    *,
    convention: str | Convention = "paper",
    on_error: str = "fail",
    **options: Unpack[ReadKeywords],
) -> pyarrow.RecordBatch:
    """Score the segments of a batch.

    Args:
        batch: a row per segment: `id`, `delays`, `source_length`, and whatever else the metrics need.
        metrics: names or Metric records.
        convention: as in `lagging.score`.
        on_error: "fail" raises every fault at once; "quarantine" gives rows with faults no scores, and writes into
            `fault` what is wrong with them.
        options: as in `lagging.read`: `column_map`, `level`, `repair`, `strip`; `unit`, if neither a column nor the
            metadata of the schema have it; `group_by`, the columns to copy, as text.

    Returns:
        As many rows as the batch has, in its order: `id` and the columns of `group_by` as text; a column per metric,
        null where a segment has no value; `reasons` why not, by metric; `fault`, null for rows without.

    Raises:
        DataError: with row, segment and token of every fault.

    Example:
        >>> import pyarrow as pa
        >>> rows = {"id": ["a", "b"], "delays": [[4, 4, 4, 4, 5], []], "source_length": [5, 5], "lang": ["de", "cs"]}
        >>> score_batch(pa.RecordBatch.from_pydict(rows), ["AL", "DAL"], unit="token", group_by=["lang"]).to_pylist()[0]
        {'id': 'a', 'lang': 'de', 'AL': 2.2, 'DAL': 4.0, 'reasons': None, 'fault': None}
    """
    plan = Plan.make(metrics, convention, keep="values")
    requested = ReadOptions.make(**options)
    return score_rows(batch, *read_batch(batch, requested, on_error), plan, requested)


def score_rows(
    batch: pyarrow.RecordBatch,
    runs: Sequence[Run],
    faults: Mapping[int, Sequence[Fault]],
    plan: Plan,
    options: ReadOptions,
) -> pyarrow.RecordBatch:
    """The scores of a batch that was read: a row for each of its rows.

    Args:
        batch: the batch.
        runs, faults: what `read_batch` returns.
        plan: the metrics and the convention.
        options: how the batch was read.
    """
    metrics, rows = plan.metrics or (), batch.num_rows
    matched = match(batch.schema.names, options.column_map, options.group_by)
    ids = as_texts(batch.column(matched.places["id"])) if rows else []
    labels = [as_texts(batch.column(index)) for index in matched.by] if rows else [[] for _ in options.group_by]
    values = {m: np.full(rows, np.nan) for m in metrics}
    reasons: dict[int, list[tuple[str, str]]] = {}
    by_segment = Plan.make(metrics, plan.convention, keep="values")
    for run in runs:
        assert run.line is not None
        accumulator = Accumulator(by_segment)
        accumulator.add(run)
        for score in accumulator.scores():
            values[score.metric][run.line - 1] = score.segments
            for row, reason in _undefined_rows(score):
                reasons.setdefault(int(run.line[row]) - 1, []).append((repr(score.metric), reason))
    texts = {row: "; ".join(dict.fromkeys(map(reason_of, row_faults))) for row, row_faults in faults.items()}
    pa, schema = import_arrow(), scores_schema(metrics, group_by=options.group_by)
    arrays = [
        pa.array(ids, pa.string()),
        *(pa.array(column, pa.string()) for column in labels),
        *(pa.array(column, from_pandas=True) for column in values.values()),
        pa.array([reasons.get(row) for row in range(rows)], schema.field("reasons").type),
        pa.array([texts.get(row) for row in range(rows)], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def segment_scores(
    scores: Scores,
    *,
    metrics: Metrics | None = None,
    labels: Mapping[str, Sequence[str | None]] | None = None,
    system: str | None = None,
) -> pyarrow.RecordBatch:
    """Scores as a batch with a row per segment, like that of `score_batch`, but without `fault`.

    Args:
        scores: of the segments.
        metrics: the columns of scores, null where these scores lack one; theirs if not given.
        labels: what each segment is labelled by, by column.
        system: name of the system, as a first column; none if not given.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[4, 4, 4, 4, 5]], source_length=[5], id=["a"])
        >>> segment_scores(lagging.score(run, ["AL", "DAL"]), labels={"lang": ["de"]}).to_pylist()
        [{'id': 'a', 'lang': 'de', 'AL': 2.2, 'DAL': 4.0, 'reasons': None}]
    """
    pa = import_arrow()
    ids = next(iter(scores)).ids
    columns: dict[str, Any] = {} if system is None else {"system": pa.array([system] * len(ids), pa.string())}
    columns["id"] = pa.array(list(map(str, ids.tolist())), pa.string())
    columns |= {name: pa.array(list(texts), pa.string()) for name, texts in (labels or {}).items()}
    by_metric = {score.metric: score for score in scores}
    reasons: dict[int, list[tuple[str, str]]] = {}
    for m in by_metric if metrics is None else map(metric, metrics):
        score = by_metric.get(m)
        values = np.full(len(ids), np.nan) if score is None else score.segments
        columns[repr(m)] = pa.array(values, from_pandas=True)
        for row, reason in () if score is None else _undefined_rows(score):
            reasons.setdefault(row, []).append((repr(m), reason))
    kind = pa.map_(pa.string(), pa.string())
    columns["reasons"] = pa.array([reasons.get(row) for row in range(len(ids))], kind)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _undefined_rows(score: Score) -> Iterator[tuple[int, str]]:
    """The rows without a value, and why."""
    if score.undefined:
        rows = {name: row for row, name in enumerate(score.ids.tolist())}
        for reason, ids in score.undefined.reasons.items():
            yield from ((rows[name], reason) for name in ids)


def read_batch(
    batch: pyarrow.RecordBatch,
    options: ReadOptions,
    on_error: str = "fail",
    *,
    log: Source | None = None,
    guess: bool = False,
) -> tuple[list[Run], dict[int, list[Fault]]]:
    """Divide the rows of a batch into segments and faults.

    Args:
        batch: a row per segment.
        options: how to read it.
        on_error: "fail" or "quarantine".
        log: the log that the batch is a part of. If its schema is known, the batch is read by it; else the batch, as
            its beginning, gives it one.
        guess: whether the unit may be guessed from these rows, because they are the first of a log.

    Returns:
        The segments without a fault, whose `line` is the row, from 1; and the faults of the other rows, by row from 0.

    Raises:
        DataError: the batch has faults, and `on_error` is "fail"; or it cannot be read at all.
        UsageError: the unit would have to be guessed.

    Example:
        >>> import pyarrow as pa
        >>> rows = {"id": ["a", "b"], "delays": [[1, 2], [2, 1]], "source_length": [2, 2]}
        >>> runs, faults = read_batch(pa.RecordBatch.from_pydict(rows), ReadOptions(unit="token"), "quarantine")
        >>> [run.id.tolist() for run in runs], faults[1][0].kind
        ([['a']], 'decreasing-delays')
    """
    if on_error not in ("fail", "quarantine"):
        raise UsageError(f"on_error is 'fail' or 'quarantine', but got {on_error!r}")
    if "id" not in match(batch.schema.names, options.column_map).places:
        raise DataError(Fault("missing-column", "no `id`, and by its place in a batch nothing can be named", PATH))
    if not batch.num_rows:
        return [], {}
    report = ReadReport()
    report.faults.limit = sys.maxsize
    log = Source(PATH, None) if log is None else log
    known = log.schema is not None
    seen, runs = SeenIds(), list[Run]()
    for run in from_batches([batch], log, replace(options, format="arrow"), report):
        report.faults.add(*seen.repeated(run).values())
        seen.add(run)
        runs.append(run)
    descriptions = [run.origin.description for run in runs if "guessed" in run.origin.description]
    if descriptions and not guess and not known:
        raise UsageError(f"the unit of a batch cannot be guessed: say unit='token' or unit='ms' ({descriptions[0]})")
    faults = list(report.faults.sorted())
    if faults and (on_error == "fail" or any(fault.line is None for fault in faults)):
        raise DataError(report.faults)
    rows: dict[int, list[Fault]] = {}
    for fault in faults:
        rows.setdefault((fault.line or 0) - 1, []).append(fault)
    good = [run for run in (drop_faulty(run, faults) for run in runs) if len(run)]
    if known and good:  # the others are notes about the beginning of a log, and come with its first rows
        good[0] = replace(good[0], notes=merge_notes([*good[0].notes, *report.notes]))
    return [strip_tokens(run, options.strip) for run in good] if options.strip else good, rows


# ---- tallies ----------------------------------------------------------------------------------------------------


def tally_batch(
    batch: pyarrow.RecordBatch,
    metrics: Metrics = DEFAULT_METRICS,
    *,
    convention: str | Convention = "paper",
    on_error: str = "fail",
    seed: int | None = SEED,
    **options: Unpack[ReadKeywords],
) -> pyarrow.RecordBatch:
    """Add up the scores of a batch: a row per group and metric, for `merge_tallies`.

    Args:
        batch, metrics, convention: as in `score_batch`.
        on_error: "fail" raises every fault at once; "quarantine" leaves rows with faults out.
        seed: of the intervals; None for none, which is quicker.
        options: as in `score_batch`; `group_by` are the columns to group by: a group is the segments that have the
            same in all of them.

    Returns:
        The columns of `group_by`, `metric`, `n`, and `tally`: a `lagging.scoring.tally.Tally` as bytes.

    Raises:
        DataError: with row, segment and token of every fault.
        MetricError: a metric cannot be tallied.

    Example:
        >>> import pyarrow as pa
        >>> rows = {"id": ["a", "b"], "delays": [[1, 2], [2, 2]], "source_length": [2, 2]}
        >>> tally_batch(pa.RecordBatch.from_pydict(rows), ["AL"], unit="token").select(["metric", "n"]).to_pylist()
        [{'metric': 'AL', 'n': 2}]
    """
    requested = ReadOptions.make(**options)
    accumulator = Accumulator(Plan.make(metrics, convention, group_by=requested.group_by, summary=True, seed=seed))
    runs, _ = read_batch(batch, requested, on_error)
    for run in runs:
        accumulator.add(run)
    return _tallies_as_batch(accumulator.groups, accumulator.plan.group_by)


def merge_tallies(batches: Iterable[pyarrow.RecordBatch], *, group_by: Sequence[str] = ()) -> pyarrow.RecordBatch:
    """Add tallies up, to a row per group and metric: the same for any order, and any number of steps.

    Example:
        >>> import pyarrow as pa
        >>> rows = {"id": ["a", "b"], "delays": [[1, 2], [2, 2]], "source_length": [2, 2]}
        >>> batch = pa.RecordBatch.from_pydict(rows)
        >>> tallies = [tally_batch(batch.slice(row, 1), ["AL"], unit="token") for row in (1, 0)]
        >>> merge_tallies(tallies).select(["metric", "n"]).to_pylist()
        [{'metric': 'AL', 'n': 2}]
    """
    groups: dict[Group, dict[Metric, Tally]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            tallies = groups.setdefault(tuple(row[name] for name in group_by), {})
            tally = Tally.from_bytes(row["tally"])
            tallies[tally.metric] = tallies[tally.metric] + tally if tally.metric in tallies else tally
    return _tallies_as_batch(groups, group_by)


def finish_tallies(
    batch: pyarrow.RecordBatch,
    *,
    group_by: Sequence[str] = (),
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
) -> pyarrow.RecordBatch:
    """The scores of merged tallies: value, interval, percentiles of the segments' values, counts, signature.

    Args:
        batch: what `merge_tallies` returns.
        group_by: the columns of the groups.
        confidence: of the intervals, between 0 and 1.
        resamples: of the intervals.

    Example:
        >>> import pyarrow as pa
        >>> rows = {"id": ["a", "b"], "delays": [[1, 2], [2, 2]], "source_length": [2, 2]}
        >>> tallies = tally_batch(pa.RecordBatch.from_pydict(rows), ["AL"], unit="token")
        >>> finish_tallies(tallies).select(["metric", "score", "n"]).to_pylist()
        [{'metric': 'AL', 'score': 1.5, 'n': 2}]
    """
    totals = []
    for row in batch.to_pylist():
        tally = Tally.from_bytes(row["tally"])
        score = tally.score(None if tally.seed is None else tally.interval(confidence, resamples))
        totals.append(total_row(score, {name: row[name] for name in group_by}))
    return import_arrow().RecordBatch.from_pylist(totals, schema=totals_schema(group_by=group_by))


def total_row(score: Score, group: Mapping[str, str | None]) -> dict[str, Any]:
    """A row of what `finish_tallies` returns."""
    summary = score.summary
    assert summary is not None
    return {
        **group,
        "metric": repr(score.metric),
        "score": _defined(score.value),
        "low": score.low,
        "high": score.high,
        **{f"p{p:g}": _defined(value) for p, value in summary.percentiles.items()},
        "least": _defined(summary.least),
        "most": _defined(summary.most),
        "unit": score.unit,
        "n": score.n,
        "undefined": int(score.undefined),
        "reasons": list(score.undefined.counts.items()),
        "signature": str(score.signature),
    }


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else value


def _tallies_as_batch(groups: Mapping[Group, Mapping[Metric, Tally]], group_by: Sequence[str]) -> pyarrow.RecordBatch:
    rows = []
    for group in sorted(groups, key=joined_labels):
        for m, tally in groups[group].items():
            columns = {"metric": repr(m), "n": tally.n, "tally": tally.to_bytes()}
            rows.append(dict(zip(group_by, group, strict=True)) | columns)
    return import_arrow().RecordBatch.from_pylist(rows, schema=tallies_schema(group_by=group_by))
