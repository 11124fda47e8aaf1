# SPDX-License-Identifier: Apache-2.0
"""compare(runs, metrics) → Comparison: score each system, match their segments, test the pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import isnan
from os import PathLike
from typing import Any

import numpy as np

from lagging.comparison.comparison import Comparison
from lagging.comparison.external import Column
from lagging.comparison.published import PublishedScore
from lagging.data.run import Run
from lagging.errors import (
    SHOWN,
    DataError,
    Fault,
    Note,
    UsageError,
    counted,
    did_you_mean,
    merge_notes,
)
from lagging.metrics import Metric, metric
from lagging.metrics.conventions import Convention
from lagging.scoring.log import score
from lagging.scoring.plan import default_metrics, default_resample
from lagging.scoring.scores import Score, Scores
from lagging.scoring.signature import Signature, differing
from lagging.stats import DEFAULT_TESTS, Interval, Paired, intervals, match, paired
from lagging.stats.intervals import signed
from lagging.stats.resamples import RESAMPLES, SEED

__all__ = ["compare"]

ROUNDED = 0.01
"""Lengths of sources that differ by less are the same: tools round, or cut off the end."""


def compare(
    runs: Mapping[str, Run | Iterable[Run] | Scores],
    metrics: Iterable[str | Metric] | str | None = None,
    *,
    quality: str | None = None,
    base: str | None = None,
    test: str | None = None,
    by: str | None = None,
    correction: str = "holm",
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    convention: str | Convention = "paper",
    published: Iterable[PublishedScore] = (),
    columns: Iterable[Column] = (),
) -> Comparison:
    """Compare systems on the segments that all of them have: intervals, and paired tests of all metrics together.

    Segments are matched by id; those that not all systems have are left out, and listed. See `lagging.stats.paired`
    for the tests.

    Args:
        runs: by name, a Run, a Run in parts, or the Scores of one.
        metrics: which; by default those that fit all of the Runs, or that all Scores have.
        quality: one more metric, such as "bleu".
        base: compare the others with this system only; all pairs, by default.
        test: "bootstrap" or "randomisation"; by default, randomisation by segment and bootstrap by document.
        by: resample by "segment" or "document"; by default documents where segments were cut from several recordings.
        correction: of p-values for the number of pairs per metric: "holm", "bh" or "none".
        level: of intervals; p-values are significant below 1 − level.
        resamples, seed: how many, and of which random numbers.
        convention: whose counting, for Runs.
        published: scores without a log, such as `lagging.read_scores` reads, to be shown beside these.
        columns: scores of segments from elsewhere, such as `lagging.comparison.external.read_column` reads.

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
        >>> found = compare({"base": wait(5), "new": wait(3)}, ["AL", "DAL"], resamples=1000)
        >>> found
        Comparison(base, new: AL, DAL of 10 segments)
        >>> pair = found.pair("AL", "base", "new")
        >>> round(pair.difference, 2), round(pair.low, 2), round(pair.high, 2), found.verdict(pair)
        (-1.99, -2.05, -1.92, 'better')
        >>> print(found.together("base", "new", {"AL": 0}))
        new, compared with base, is earlier in AL by 1.92–2.05 tokens; in 100.0 % of 1000 resamples it is not worse
    """
    if not isinstance(runs, Mapping):
        raise UsageError("runs are given by name: {'base': lagging.read('a.log'), 'new': …}")
    runs, columns, notes = dict(runs), list(columns), []
    if not runs:
        raise UsageError("a comparison needs at least two systems")
    asked = None if metrics is None else _asked([metrics] if isinstance(metrics, str) else metrics, columns)
    if quality is not None:
        more = _asked([quality], columns)
        asked = None if asked is None else [*asked, *more]
    else:
        more = []
    systems = {name: _scored(name, run, asked, more, convention) for name, run in runs.items()}
    systems = {name: _joined(name, scores, columns, systems) for name, scores in systems.items()}
    wanted = None if asked is None else [*asked, *dict.fromkeys(column.metric for column in columns)]
    if wanted is None:
        notes += _not_common(systems)
    notes += _unlike(systems, wanted)
    by = default_resample(*systems.values()) if by is None else by
    drawn: dict[str, Any] = {"by": by, "level": level, "resamples": resamples, "seed": seed}
    published = list(published)
    found: Paired | None = None
    if len(systems) == 1 and published and base is None:
        one = next(iter(systems.values()))
        kept: Sequence[Sequence[Score]] = [[one[m] for m in wanted] if wanted is not None else list(one)]
        ends: Sequence[Sequence[Interval]] = [intervals(kept[0], **drawn)]
        unmatched: dict[str, tuple[Any, ...]] = dict.fromkeys(systems, ())
    else:
        found = paired(systems, wanted, test=test, base=base, correction=correction, **drawn)
        kept = match(systems, wanted, by=by).scores
        ends, unmatched = found.intervals, found.unmatched
    results = {
        name: signed(of, made, name, systems[name].notes) for name, of, made in zip(systems, kept, ends, strict=True)
    }
    for name, ids in unmatched.items():
        if ids:
            said = f"of {name}, which not all of the other systems have: left out"
            notes.append(Note("unmatched", said, len(ids), ids))
    if found is not None:
        notes += _untested(found)
        most = len(found.pairs) // len(found.metrics) if correction == "holm" else 1
        if most / (resamples + 1) >= round(1 - level, 14):
            said = f"with {resamples} of them, no corrected p of {counted(most, 'pair')} is below {1 - level:.2g}"
            notes.append(Note("TOO FEW RESAMPLES", said))
    rows = _beside(published, kept[0], notes, convention)
    return Comparison(
        systems=tuple(systems),
        metrics=tuple(one.metric for one in kept[0]),
        scores=results,
        pairs=() if found is None else found.pairs,
        base=base,
        n=kept[0][0].n,
        clusters=ends[0][0].clusters,
        unmatched=unmatched,
        published=tuple(rows),
        notes=merge_notes(notes),
        test=found.test if found is not None else test or DEFAULT_TESTS[drawn["by"]],
        correction=correction,
        resampled=found,
        **drawn,
    )


# ---- what is compared -------------------------------------------------------------------------------------------


def _asked(names: Iterable[str | Metric], columns: list[Column]) -> list[Metric]:
    """The metrics to be computed; columns are there without being asked for."""
    given = {column.name for column in columns}
    return [metric(name) for name in names if name not in given]


def _scored(
    name: str,
    run: Run | Iterable[Run] | Scores,
    asked: list[Metric] | None,
    more: list[Metric],
    convention: str | Convention,
) -> Scores:
    if isinstance(run, Scores):
        for m in more:
            run[m]  # refuses what was not scored
        return run
    if isinstance(run, str | PathLike):
        raise UsageError(f"compare takes Runs: {{{name!r}: lagging.read({str(run)!r}), …}}")
    parts = iter([run] if isinstance(run, Run) else run)
    first = next(parts, None)
    if first is None:
        raise DataError(Fault("nothing-given", name))
    wanted = [*map(metric, default_metrics(first)), *more] if asked is None else asked
    return score(chain([first], parts), wanted, convention=convention)


def _joined(name: str, scores: Scores, columns: list[Column], systems: Mapping[str, Scores]) -> Scores:
    """The scores of a system, with its columns."""
    for column in columns:
        if column.system not in systems:
            raise UsageError(f"there is no system {column.system!r}.{did_you_mean(column.system, systems)}")
    mine = []
    for title in dict.fromkeys(column.name for column in columns):
        of = [column for column in columns if column.name == title]
        here = [column for column in of if column.system == name]
        if len(here) != 1:
            raise UsageError(f"{title} is given {counted(len(here), 'time')} for {name}: every system has one column")
        if len({column.higher_is_better for column in of}) > 1:
            raise UsageError(f"{title} is better when higher in one column, and when lower in another")
        mine.append(here[0].score(scores))
    return Scores([*scores, *mine], name, scores.notes)


def _not_common(systems: Mapping[str, Scores]) -> list[Note]:
    """Metrics that were scored by default, but not of all systems."""
    have = {name: {one.metric for one in scores} for name, scores in systems.items()}
    every = dict.fromkeys(one.metric for scores in systems.values() for one in scores)
    notes = []
    for m in every:
        without = [name for name, some in have.items() if m not in some]
        if without:
            notes.append(Note("not compared", f"{m!r}: it was not scored of {', '.join(without)}"))
    return notes


def _unlike(systems: Mapping[str, Scores], wanted: Sequence[Metric] | None) -> list[Note]:
    """Notes about scores that were not made alike; other units cannot be compared at all."""
    notes = []
    first, *others = systems.items()
    for mine in first[1]:
        if wanted is not None and mine.metric not in wanted:
            continue
        for name, scores in others:
            theirs = next((one for one in scores if one.metric == mine.metric), None)
            if theirs is None:
                continue
            if theirs.unit != mine.unit:
                both = f"{first[0]} in {mine.unit} and {name} in {theirs.unit}"
                raise UsageError(f"{mine.metric!r} of {both} cannot be compared")
            fields = differing(mine.signature, theirs.signature)
            if fields:
                said = f"{mine.metric!r} of {first[0]} and {name} differs in {', '.join(fields)}: see the signatures"
                notes.append(Note("NOT MADE ALIKE", said))
    for name, scores in others:
        notes += _other_test_set(first[0], next(iter(first[1])), name, next(iter(scores)))
    return notes


def _other_test_set(a: str, one: Score, b: str, other: Score) -> Iterator[Note]:
    """Notes about segments that have one id, but are not the same."""
    place = {str(name): row for row, name in enumerate(one.ids.tolist())}
    both = [(place[str(name)], row) for row, name in enumerate(other.ids.tolist()) if str(name) in place]
    mine, theirs = np.array(both, dtype=np.int64).reshape(-1, 2).T
    differ = {}
    if one.sources is not None and other.sources is not None:
        x, y = one.sources[mine], other.sources[theirs]
        differ["source lengths"] = np.abs(x - y) > ROUNDED * np.maximum(x, y)
    if one.references is not None and other.references is not None:
        r, q = one.references[mine], other.references[theirs]
        differ["references"] = (r != q) & (r != 0) & (q != 0)
    for what, where in differ.items():
        if where.any():
            names = tuple(one.ids[mine[where]][:SHOWN].tolist())
            said = f"other {what} in {a} than in {b}: are the logs of the same test set?"
            yield Note("OTHER SEGMENTS OF THE SAME NAME", said, int(where.sum()), names)


# ---- what was found ---------------------------------------------------------------------------------------------


def _untested(found: Paired) -> list[Note]:
    """Notes about pairs that have no p-value, or no interval."""
    return [
        Note("no test", f"{pair.metric!r}: {pair.reason}", 1, noun="pair")
        if isnan(pair.p)
        else Note("interval", f"{pair.metric!r}: of the difference: {pair.reason}", 1, noun="pair")
        for pair in found.pairs
        if pair.reason
    ]


def _beside(
    rows: Iterable[PublishedScore], of: Sequence[Score], notes: list[Note], convention: str | Convention
) -> list[PublishedScore]:
    """The published scores that belong into a column of the comparison; the others are noted."""
    paper = convention == "paper" or (isinstance(convention, Convention) and convention.name == "paper")
    shown, said = [], dict[tuple[str, str], list[str]]()
    for row in rows:
        mine = next((one for one in of if row.metric == repr(one.metric)), None)
        kind = "published"
        if mine is None:
            why = f"{row.system}: not compared, and not shown"
        elif row.unit != mine.unit and not (row.unit is None and mine.metric.unit not in ("time", "drift")):
            unit = "of unknown unit" if row.unit is None else f"in {row.unit}"
            why = f"{row.system}: {unit}, not in {mine.unit}, and not shown"
        else:
            shown.append(row)
            kind, why = "NOT MADE ALIKE", ""
            if row.signature and (fields := differing(Signature.parse(row.signature), mine.signature)):
                why = f"{row.system}, published, differs in {', '.join(fields)}"
            elif row.tool not in (None, "lagging") and paper and mine.metric.has("length"):
                why = f"{row.system} is {row.tool}'s, ours is counted as the paper does"
        if why:
            said.setdefault((kind, why), []).append(row.metric)
    notes += [Note(kind, f"{why}: {', '.join(metrics)}") for (kind, why), metrics in said.items()]
    return shown
