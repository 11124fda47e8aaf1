# SPDX-License-Identifier: Apache-2.0
"""Arrow batches in, Arrow batches out: a row per segment with its scores, or a row per group and metric that adds up.

Pure functions of a batch, so that they can run wherever batches are: over a file, a dataset, a Flight server, or on the
executors of Spark (`mapInArrow`). Lists go from Arrow's memory to the kernels without a copy. Needs pyarrow (the extra
`arrow`).

    score_batch   batch of segments → batch of segment scores
    tally_batch   batch of segments → batch of tallies, one per group and metric
    merge_tallies batches of tallies → one batch of tallies; in any order, in any number of steps
    finish_tallies batch of tallies → batch of scores, with intervals and percentiles

A batch is a part of something larger, and cannot be looked at to find out what that is. So what is guessed of a file
must be said of a batch: its segments have ids, and the unit, if neither a column nor the metadata tell it, is given.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lagging.data.checks import check_repairs
from lagging.data.run import Run
from lagging.data.tokens import check_units
from lagging.errors import DataError, Fault, UsageError, optional
from lagging.formats.ids import SeenIds
from lagging.formats.options import Options
from lagging.formats.parquet import as_texts, from_batches
from lagging.formats.quarantine import reason_of, without
from lagging.formats.source import Source
from lagging.formats.tables import check_names, joined_labels, match
from lagging.metrics import Metric, metric
from lagging.metrics.conventions import Convention
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.plan import DEFAULT_METRICS, Plan
from lagging.scoring.poisson import RESAMPLES, SEED
from lagging.scoring.scores import Score, Scores
from lagging.scoring.tally import PERCENTILES, Tally

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "finish_tallies",
    "merge_tallies",
    "runs_of",
    "score_batch",
    "scores_schema",
    "segment_scores",
    "tallies_schema",
    "tally_batch",
    "totals_schema",
]

Metrics = Iterable[str | Metric]
PATH = "<batch>"


def _arrow() -> Any:
    return optional("pyarrow", "arrow")


# ---- schemas ----------------------------------------------------------------------------------------------------


def scores_schema(metrics: Metrics = DEFAULT_METRICS, *, by: Sequence[str] = ()) -> pyarrow.Schema:
    """The schema of what `score_batch` returns."""
    pa = _arrow()
    named = [(repr(metric(m)), pa.float64()) for m in metrics]
    labels = [(name, pa.string()) for name in by]
    told = [("reasons", pa.map_(pa.string(), pa.string())), ("fault", pa.string())]
    return pa.schema([("id", pa.string()), *labels, *named, *told])


def tallies_schema(*, by: Sequence[str] = ()) -> pyarrow.Schema:
    """The schema of what `tally_batch` and `merge_tallies` return."""
    pa = _arrow()
    labels = [(name, pa.string()) for name in by]
    return pa.schema([*labels, ("metric", pa.string()), ("n", pa.int64()), ("tally", pa.binary())])


def totals_schema(*, by: Sequence[str] = ()) -> pyarrow.Schema:
    """The schema of what `finish_tallies` returns."""
    pa = _arrow()
    labels = [(name, pa.string()) for name in by]
    numbers = ["score", "low", "high", *(f"p{p:g}" for p in PERCENTILES), "least", "most"]
    counts = [("n", pa.int64()), ("undefined", pa.int64()), ("reasons", pa.map_(pa.string(), pa.int64()))]
    said = [("unit", pa.string()), *counts, ("signature", pa.string())]
    return pa.schema([*labels, ("metric", pa.string()), *((name, pa.float64()) for name in numbers), *said])


# ---- segments ---------------------------------------------------------------------------------------------------


def score_batch(
    batch: pyarrow.RecordBatch,
    metrics: Metrics = DEFAULT_METRICS,
    *,
    convention: str | Convention = "paper",
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
    level: str | None = None,
    by: Sequence[str] = (),
    repair: Sequence[str] = (),
    on_error: str = "fail",
) -> pyarrow.RecordBatch:
    """The scores of the segments of a batch.

    Args:
        batch: a row per segment: `id`, `delays`, `source_length`, and whatever else the metrics need.
        metrics: names or Metric records.
        convention: as in `lagging.score`.
        columns: what the batch calls a column of ours, where it is not a name that is known.
        unit: "token" or "ms", if neither a column nor the metadata of the schema say it.
        level: what a target token is; found out from the predictions if not given.
        by: columns to hand on, as text.
        repair: names of repairs, as in `lagging.read`.
        on_error: "fail" raises every fault at once; "quarantine" gives rows with faults no scores, and says in `fault`
            what is wrong with them.

    Returns:
        As many rows as the batch has, in its order: `id` and the columns of `by` as text; a column per metric, null
        where a segment has no value; `reasons` why not, by metric; `fault`, null for rows without.

    Raises:
        DataError: with row, segment and token of every fault.

    Example:
        >>> import pyarrow as pa
        >>> rows = {"id": ["a", "b"], "delays": [[4, 4, 4, 4, 5], []], "source_length": [5, 5], "lang": ["de", "cs"]}
        >>> score_batch(pa.RecordBatch.from_pydict(rows), ["AL", "DAL"], unit="token", by=["lang"]).to_pylist()[0]
        {'id': 'a', 'lang': 'de', 'AL': 2.2, 'DAL': 4.0, 'reasons': None, 'fault': None}
    """
    plan = Plan.make(metrics, convention, keep="values")
    asked = plan.metrics or ()
    runs, faults = runs_of(batch, columns, unit, level, by, repair, on_error)
    matched = match(batch.schema.names, columns, by)
    rows = batch.num_rows
    ids = as_texts(batch.column(matched.places["id"])) if rows else []
    labels = [as_texts(batch.column(place)) for place in matched.by] if rows else [[] for _ in by]
    found = {m: np.full(rows, np.nan) for m in asked}
    reasons: dict[int, list[tuple[str, str]]] = {}
    for run in runs:
        assert run.line is not None
        accumulator = Accumulator(plan)
        accumulator.add(run)
        for score in accumulator.scores():
            found[score.metric][run.line - 1] = score.segments
            for row, reason in _why(score):
                reasons.setdefault(int(run.line[row]) - 1, []).append((repr(score.metric), reason))
    said = {row: "; ".join(dict.fromkeys(map(reason_of, some))) for row, some in faults.items()}
    pa, schema = _arrow(), scores_schema(asked, by=by)
    arrays = [
        pa.array(ids, pa.string()),
        *(pa.array(column, pa.string()) for column in labels),
        *(pa.array(values, from_pandas=True) for values in found.values()),
        pa.array([reasons.get(row) for row in range(rows)], schema.field("reasons").type),
        pa.array([said.get(row) for row in range(rows)], pa.string()),
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
    pa = _arrow()
    ids = next(iter(scores)).ids
    columns: dict[str, Any] = {} if system is None else {"system": pa.array([system] * len(ids), pa.string())}
    columns["id"] = pa.array(list(map(str, ids.tolist())), pa.string())
    columns |= {name: pa.array(list(texts), pa.string()) for name, texts in (labels or {}).items()}
    found = {score.metric: score for score in scores}
    reasons: dict[int, list[tuple[str, str]]] = {}
    for m in found if metrics is None else map(metric, metrics):
        score = found.get(m)
        values = np.full(len(ids), np.nan) if score is None else score.segments
        columns[repr(m)] = pa.array(values, from_pandas=True)
        for row, reason in () if score is None else _why(score):
            reasons.setdefault(row, []).append((repr(m), reason))
    kind = pa.map_(pa.string(), pa.string())
    columns["reasons"] = pa.array([reasons.get(row) for row in range(len(ids))], kind)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _why(score: Score) -> Iterator[tuple[int, str]]:
    """The rows without a value, and why."""
    if score.undefined:
        place = {name: row for row, name in enumerate(score.ids.tolist())}
        for reason, ids in score.undefined.reasons.items():
            yield from ((place[name], reason) for name in ids)


def runs_of(
    batch: pyarrow.RecordBatch,
    columns: Mapping[str, str] | None,
    unit: str | None,
    level: str | None,
    by: Sequence[str],
    repair: Sequence[str],
    on_error: str,
) -> tuple[list[Run], dict[int, list[Fault]]]:
    """The segments of a batch; and, by rows from 0, the faults of those that are none."""
    if on_error not in ("fail", "quarantine"):
        raise UsageError(f"on_error is 'fail' or 'quarantine', but got {on_error!r}")
    check_units(unit, level)
    check_repairs(tuple(repair))
    chosen = check_names(columns or {})
    if "id" not in match(batch.schema.names, chosen).places:
        raise DataError(Fault("missing-column", "no `id`, and by its place in a batch nothing can be named", PATH))
    if not batch.num_rows:
        return [], {}
    options = Options("arrow", level, unit, tuple(repair), by=tuple(by), column_map=chosen)
    options.faults.limit = sys.maxsize
    seen, runs = SeenIds(), list[Run]()
    for run in from_batches([batch], Source(PATH, None), options):
        options.faults.add(*seen.repeated(run).values())
        seen.add(run)
        runs.append(run)
    told = next((run.origin.description for run in runs if "guessed" in run.origin.description), None)
    if told:
        raise UsageError(f"the unit of a batch cannot be guessed: say unit='token' or unit='ms' ({told})")
    faults = list(options.faults.sorted())
    if faults and (on_error == "fail" or any(fault.line is None for fault in faults)):
        raise DataError(options.faults)
    rows: dict[int, list[Fault]] = {}
    for fault in faults:
        rows.setdefault((fault.line or 0) - 1, []).append(fault)
    return [run for run in (without(run, faults) for run in runs) if len(run)], rows


# ---- tallies ----------------------------------------------------------------------------------------------------


def tally_batch(
    batch: pyarrow.RecordBatch,
    metrics: Metrics = DEFAULT_METRICS,
    *,
    convention: str | Convention = "paper",
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
    level: str | None = None,
    by: Sequence[str] = (),
    repair: Sequence[str] = (),
    on_error: str = "fail",
    seed: int | None = SEED,
) -> pyarrow.RecordBatch:
    """What a batch adds to the scores of a log: a row per group and metric, as `merge_tallies` adds them up.

    Args:
        batch, metrics, convention, columns, unit, level, repair: as in `score_batch`.
        by: the columns to group by; a group is the segments that have the same in all of them.
        on_error: "fail" raises every fault at once; "quarantine" leaves rows with faults out.
        seed: of the intervals; None for none, which is quicker.

    Returns:
        The columns of `by`, `metric`, `n`, and `tally`: a `lagging.scoring.tally.Tally` as bytes.

    Raises:
        DataError: with row, segment and token of every fault.
        MetricError: a metric cannot be tallied.
    """
    accumulator = Accumulator(Plan.make(metrics, convention, group_by=by, summary=True, seed=seed))
    runs, _ = runs_of(batch, columns, unit, level, by, repair, on_error)
    for run in runs:
        accumulator.add(run)
    return _as_batch(accumulator)


def merge_tallies(batches: Iterable[pyarrow.RecordBatch], *, by: Sequence[str] = ()) -> pyarrow.RecordBatch:
    """Tallies added up, a row per group and metric: the same for any order, and any number of steps."""
    found: dict[tuple[str | None, ...], dict[str, Tally]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            into = found.setdefault(tuple(row[name] for name in by), {})
            one = Tally.from_bytes(row["tally"])
            into[row["metric"]] = into[row["metric"]] + one if row["metric"] in into else one
    return _rows(found, by)


def finish_tallies(
    batch: pyarrow.RecordBatch, *, by: Sequence[str] = (), confidence: float = 0.95, resamples: int = RESAMPLES
) -> pyarrow.RecordBatch:
    """The scores of merged tallies: value, interval, percentiles of the segments' values, counts, signature.

    Args:
        batch: what `merge_tallies` returns.
        by: the columns of the groups.
        confidence, resamples: the confidence level of the intervals, and the number of resamples.
    """
    pa = _arrow()
    rows = []
    for row in batch.to_pylist():
        one = Tally.from_bytes(row["tally"])
        score = one.score(None if one.seed is None else one.interval(confidence, resamples))
        assert score.summary is not None
        numbers = {f"p{p:g}": _known(value) for p, value in score.summary.percentiles.items()}
        rows.append(
            {name: row[name] for name in by}
            | {"metric": row["metric"], "score": _known(score.value), "low": score.low, "high": score.high, **numbers}
            | {"least": _known(score.summary.least), "most": _known(score.summary.most), "unit": score.unit}
            | {"n": score.n}
            | {"undefined": int(score.undefined), "reasons": list(score.undefined.counts.items())}
            | {"signature": str(score.signature)}
        )
    return pa.RecordBatch.from_pylist(rows, schema=totals_schema(by=by))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _as_batch(accumulator: Accumulator) -> pyarrow.RecordBatch:
    found = {group: {repr(m): one for m, one in of.items()} for group, of in accumulator.groups.items()}
    return _rows(found, accumulator.plan.group_by)


def _rows(found: Mapping[tuple[str | None, ...], Mapping[str, Tally]], by: Sequence[str]) -> pyarrow.RecordBatch:
    rows = []
    for group in sorted(found, key=joined_labels):
        for name, one in found[group].items():
            said = {"metric": name, "n": one.n, "tally": one.to_bytes()}
            rows.append(dict(zip(by, group, strict=True)) | said)
    return _arrow().RecordBatch.from_pylist(rows, schema=tallies_schema(by=by))
