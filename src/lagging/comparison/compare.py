# SPDX-License-Identifier: Apache-2.0
"""compare(runs, metrics) → Comparison: score each system, match their segments, test the pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import isnan
from os import PathLike
from typing import Any

import numpy as np

from lagging.comparison.comparison import Comparison
from lagging.comparison.match import Matched
from lagging.comparison.pairs import Paired, paired
from lagging.comparison.published import PublishedScore
from lagging.data.run import Run
from lagging.errors import (
    SHOWN,
    DataError,
    Fault,
    Note,
    UsageError,
    counted,
    merge_notes,
)
from lagging.metrics import Metric, metric
from lagging.metrics.conventions import Convention
from lagging.scoring.columns import Column, Columns
from lagging.scoring.intervals import intervals, sign_intervals
from lagging.scoring.log import score
from lagging.scoring.plan import default_metrics, default_resample
from lagging.scoring.scores import Score, Scores
from lagging.scoring.signature import Signature, differing
from lagging.stats import DEFAULT_TESTS, RESAMPLES, SEED, Interval

__all__ = ["compare"]

FEW_RECORDINGS = 10
"""Of fewer recordings, a difference that is not significant may still be one of the segments."""
ROUNDED = 0.01
"""Source lengths whose relative difference is smaller are the same: tools round, or cut off the end."""


def compare(
    runs: Mapping[str, Run | Iterable[Run] | Scores],
    metrics: Iterable[str | Metric] | str | None = None,
    *,
    quality: str | None = None,
    base: str | None = None,
    test: str | None = None,
    resample: str | None = None,
    correction: str = "holm",
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    convention: str | Convention = "paper",
    published: Iterable[PublishedScore] = (),
    columns: Columns | Iterable[Column] = (),
) -> Comparison:
    """Compare systems on the segments that all of them have: intervals, and paired tests of all metrics together.

    Segments are matched by id; those that not all systems have are left out, and listed. See
    `lagging.stats.paired.compare_pairs` for the tests.

    Args:
        runs: by name, a Run, a Run in parts, or the Scores of one.
        metrics: the metrics; by default those that fit all of the Runs, or that all Scores have.
        quality: one more metric, such as "bleu".
        base: compare the other systems with this system only; all pairs, by default.
        test: "bootstrap" or "randomisation"; by default, randomisation of segments and bootstrap of documents.
        resample: "segment" or "document"; by default documents where segments were cut from several recordings.
        correction: of p-values for the number of pairs per metric: "holm", "bh" or "none".
        confidence: the confidence level of the intervals; p-values are significant below 1 − confidence.
        resamples, seed: the number of resamples, and the seed of the random numbers.
        convention: the convention by which Runs are scored.
        published: scores without a log, such as `lagging.read_scores` reads, to be shown beside these.
        columns: scores of segments that another program computed, one column for each system; `lagging.read_column`
            reads them.

    Returns:
        A Comparison.

    Raises:
        UsageError: fewer than two systems, or scores in different units.
        DataError: no segment in common.

    Example:
        >>> import lagging
        >>> def wait(k):
        ...     policy = lagging.policies.wait_k(k)
        ...     return policy.run(source_lengths=range(8, 18), target_lengths=[9, 8, 12, 10, 12, 14, 14, 13, 19, 16])
        >>> comparison = compare({"base": wait(5), "new": wait(3)}, ["AL", "DAL"], resamples=1000)
        >>> comparison
        Comparison(base, new: AL, DAL of 10 segments)
        >>> pair = comparison.pair("AL", "base", "new")
        >>> round(pair.difference, 2), round(pair.low, 2), round(pair.high, 2), comparison.verdict(pair)
        (-1.99, -2.05, -1.92, 'better')
        >>> print(comparison.together("base", "new", {"AL": 0}))
        new, compared with base, is earlier in AL by 1.92–2.05 tokens; it is at least as good in 100 % of 1000 resamples
    """
    if not isinstance(runs, Mapping):
        raise UsageError("runs are given by name: {'base': lagging.read('a.log'), 'new': …}")
    runs, given, notes = dict(runs), Columns.of(columns), list[Note]()
    if not runs:
        raise UsageError("a comparison needs at least two systems")
    requested = None if metrics is None else _computed([metrics] if isinstance(metrics, str) else metrics, given)
    more = [] if quality is None else _computed([quality], given)
    if requested is not None:
        requested += more
    systems = {name: _score(name, run, requested, more, convention) for name, run in runs.items()}
    given.check(list(systems))
    systems = {name: _add_columns(name, scores, given) for name, scores in systems.items()}
    if requested is None:
        notes += _not_common(systems)
    else:
        requested += given.metrics.values()
    notes += _unlike(systems, requested)
    by_default = resample is None
    resample = default_resample(*systems.values()) if resample is None else resample
    options: dict[str, Any] = {
        "resample": resample,
        "confidence": confidence,
        "resamples": resamples,
        "seed": seed,
    }
    published = list(published)
    result: Paired | None = None
    if len(systems) == 1 and published and base is None:
        ((name, scores),) = systems.items()
        kept = tuple(scores) if requested is None else tuple(scores[m] for m in requested)
        matched = Matched((name,), tuple(score.metric for score in kept), (kept,), {name: ()})
        ends: tuple[tuple[Interval, ...], ...] = (intervals(kept, **options),)
    else:
        result = paired(systems, requested, test=test, base=base, correction=correction, **options)
        matched, ends = result.matched, result.intervals
    signed = {
        name: sign_intervals(scores, row, name, systems[name].notes)
        for name, scores, row in zip(systems, matched.scores, ends, strict=True)
    }
    for name, ids in matched.unmatched.items():
        if ids:
            text = f"of {name}, which not all of the other systems have: left out"
            notes.append(Note("unmatched", text, len(ids), ids))
    if result is not None:
        notes += _untested(result)
        notes += _few_recordings(result, systems, requested, base, by_default)
        tests = len(result.pairs) // len(matched.metrics) if correction == "holm" else 1
        if tests / (resamples + 1) >= round(1 - confidence, 14):
            pairs = counted(tests, "pair")
            text = f"with {resamples} resamples, no corrected p of {pairs} can be below {1 - confidence:.2g}"
            enough = math.ceil(tests / (1 - confidence))
            text += f": give --resamples {enough} or more, or compare with one system only, by --base"
            notes.append(Note("TOO FEW RESAMPLES", text))
    return Comparison(
        systems=matched.systems,
        metrics=matched.metrics,
        scores=signed,
        pairs=() if result is None else result.pairs,
        base=base,
        n=matched.n,
        clusters=ends[0][0].clusters,
        unmatched=matched.unmatched,
        published=tuple(_select_published(published, matched.scores[0], notes, convention)),
        notes=merge_notes(notes),
        test=result.test if result is not None else test or DEFAULT_TESTS[resample],
        correction=correction,
        resampled=result,
        **options,
    )


# ---- what is compared -------------------------------------------------------------------------------------------


def _computed(names: Iterable[str | Metric], columns: Columns) -> list[Metric]:
    """The metrics that must be computed: those of columns are read."""
    return [metric(name) for name in names if str(name) not in columns.metrics]


def _score(
    name: str,
    run: Run | Iterable[Run] | Scores,
    requested: list[Metric] | None,
    more: list[Metric],
    convention: str | Convention,
) -> Scores:
    if isinstance(run, Scores):
        for m in more:
            run[m]  # raises if it was not scored
        return run
    if isinstance(run, str | PathLike):
        raise UsageError(f"compare takes Runs: {{{name!r}: lagging.read({str(run)!r}), …}}")
    parts = iter([run] if isinstance(run, Run) else run)
    first = next(parts, None)
    if first is None:
        raise DataError(Fault("nothing-given", name))
    metrics = requested or None  # where only columns are compared, the segments must be known all the same
    if requested is None and more:
        metrics = [*map(metric, default_metrics(first)), *more]
    return score(chain([first], parts), metrics, convention=convention)


def _add_columns(name: str, scores: Scores, columns: Columns) -> Scores:
    """The scores of a system, with those of its columns."""
    return Scores([*scores, *(column.score(scores) for column in columns.take(name))], name, scores.notes)


def _not_common(systems: Mapping[str, Scores]) -> list[Note]:
    """Notes about metrics that were scored by default, but not for all systems."""
    scored = {name: [each.metric for each in scores] for name, scores in systems.items()}
    notes = []
    for m in dict.fromkeys(m for metrics in scored.values() for m in metrics):
        without = [name for name, metrics in scored.items() if m not in metrics]
        if without:
            notes.append(Note("not compared", f"{m!r}: no score of {', '.join(without)}"))
    return notes


def _unlike(systems: Mapping[str, Scores], requested: Sequence[Metric] | None) -> list[Note]:
    """Notes about scores that were made in different ways; scores in different units cannot be compared at all."""
    notes = []
    (first, first_scores), *rest = systems.items()
    for score_a in first_scores:
        if requested is not None and score_a.metric not in requested:
            continue
        for name, scores in rest:
            score_b = next((score for score in scores if score.metric == score_a.metric), None)
            if score_b is None:
                continue
            if score_b.unit != score_a.unit:
                both = f"{first} in {score_a.unit} and {name} in {score_b.unit}"
                raise UsageError(f"{score_a.metric!r} of {both} cannot be compared")
            fields = differing(score_a.signature, score_b.signature)
            if fields:
                text = f"{score_a.metric!r} of {first} and {name} differs in {', '.join(fields)}: see the signatures"
                notes.append(Note("NOT MADE ALIKE", text))
    for name, scores in rest:
        notes += _other_test_set(first, next(iter(first_scores)), name, next(iter(scores)))
    return notes


def _other_test_set(a: str, score_a: Score, b: str, score_b: Score) -> Iterator[Note]:
    """Notes about segments that have the same id, but another source or reference."""
    row_of = {str(name): row for row, name in enumerate(score_a.ids.tolist())}
    rows = [(row_of[str(name)], row) for row, name in enumerate(score_b.ids.tolist()) if str(name) in row_of]
    rows_a, rows_b = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    differ = {}
    if score_a.sources is not None and score_b.sources is not None:
        x, y = score_a.sources[rows_a], score_b.sources[rows_b]
        differ["source lengths"] = np.abs(x - y) > ROUNDED * np.maximum(x, y)
    if score_a.references is not None and score_b.references is not None:
        r, q = score_a.references[rows_a], score_b.references[rows_b]
        differ["references"] = (r != q) & (r != 0) & (q != 0)
    for what, where in differ.items():
        if where.any():
            names = tuple(score_a.ids[rows_a[where]][:SHOWN].tolist())
            text = f"other {what} in {a} than in {b}: are the logs of the same test set?"
            yield Note("OTHER SEGMENTS OF THE SAME NAME", text, int(where.sum()), names)


# ---- notes on the result ----------------------------------------------------------------------------------------


def _untested(result: Paired) -> list[Note]:
    """Notes about pairs that have no p-value, or no interval."""
    return [
        Note("no test", f"{pair.metric!r}: {pair.reason}", 1, noun="pair")
        if isnan(pair.p)
        else Note("interval", f"{pair.metric!r}: of the difference: {pair.reason}", 1, noun="pair")
        for pair in result.pairs
        if pair.reason
    ]


def _few_recordings(
    result: Paired, systems: Mapping[str, Scores], requested: list[Metric] | None, base: str | None, by_default: bool
) -> list[Note]:
    """A note about differences that few recordings cannot show, and what a test of segments says of them."""
    alpha = round(1 - result.confidence, 14)
    unclear = [pair for pair in result.pairs if alpha <= pair.p_adjusted]
    if not by_default or result.resample != "document" or result.clusters >= FEW_RECORDINGS or not unclear:
        return []
    options: dict[str, Any] = {"confidence": result.confidence, "resamples": result.resamples, "seed": result.seed}
    segments = paired(systems, requested, base=base, correction=result.correction, resample="segment", **options)
    by_metric: dict[str, list[float]] = {}
    for pair in unclear:
        p = segments.pair(pair.metric, pair.a, pair.b).p_adjusted
        if p < alpha:
            by_metric.setdefault(repr(pair.metric), []).append(p)
    if not by_metric:
        return []
    p_values = ", ".join(f"{name} p {'=' if len(p) == 1 else '≤'} {max(p):.2g}" for name, p in by_metric.items())
    text = (
        f"{result.clusters} recordings cannot show a difference of this size; by segment, {p_values}, which assumes "
        "that the sentences of one talk are independent: --resample segment"
    )
    return [Note("FEW RECORDINGS", text)]


def _select_published(
    rows: Iterable[PublishedScore], scores: Sequence[Score], notes: list[Note], convention: str | Convention
) -> list[PublishedScore]:
    """The published scores that fit into a column of the comparison; a note is added about the others."""
    paper = convention == "paper" or (isinstance(convention, Convention) and convention.name == "paper")
    shown, metrics_of = [], dict[tuple[str, str], list[str]]()
    for row in rows:
        own = next((score for score in scores if row.metric == repr(score.metric)), None)
        kind = "published"
        if own is None:
            why = f"{row.system}: not compared, and not shown"
        elif row.unit != own.unit and not (row.unit is None and own.metric.unit not in ("time", "drift")):
            unit = "of unknown unit" if row.unit is None else f"in {row.unit}"
            why = f"{row.system}: {unit}, not in {own.unit}, and not shown"
        else:
            shown.append(row)
            kind, why = "NOT MADE ALIKE", ""
            if row.signature and (fields := differing(Signature.parse(row.signature), own.signature)):
                why = f"{row.system}, published, differs in {', '.join(fields)}"
            elif row.tool not in (None, "lagging") and paper and own.metric.has("length"):
                why = f"{row.system} is {row.tool}'s, ours is counted as the paper does"
        if why:
            metrics_of.setdefault((kind, why), []).append(row.metric)
    notes += [Note(kind, f"{why}: {', '.join(metrics)}") for (kind, why), metrics in metrics_of.items()]
    return shown
