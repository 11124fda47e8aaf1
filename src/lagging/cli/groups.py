# SPDX-License-Identifier: Apache-2.0
"""`lagging score --by`: a log scored by group, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lagging.cli.common import Talk
from lagging.conventions import Convention
from lagging.defaults import default_metrics
from lagging.errors import SHOWN, DataError, Fault, Note, UsageError, counted
from lagging.formats import scan
from lagging.formats.source import resolve
from lagging.metrics import Metric, metric
from lagging.parallel import spread
from lagging.run import Run
from lagging.scoring import DEFAULT_METRICS, LONGFORM_METRICS, Scores
from lagging.stats.intervals import FEW, few
from lagging.tallies import Tallies, check_metrics

__all__ = ["grouped", "interval_notes", "lakes", "named_columns"]

Each = Callable[[Run, Scores, str], None]
"""Told of the scores of the segments of each part."""


def named_columns(texts: Iterable[str]) -> tuple[str, ...]:
    """The columns of `--by`, which may be repeated."""
    names = [name.strip() for text in texts for name in text.split(",")]
    if "" in names:
        raise UsageError("--by takes names of columns with commas between, such as lang,model")
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"--by names the column {twice[0]!r} twice")
    return tuple(names)


def lakes(logs: Sequence[tuple[str | None, str]]) -> list[tuple[str | None, list[str]]]:
    """Names and files of systems: files without a name are one log, where systems are told apart by a column."""
    found: list[tuple[str | None, list[str]]] = [(name, [path]) for name, path in logs if name is not None]
    rest = [path for name, path in logs if name is None]
    if rest:
        files = [source.file for path in rest for source in resolve(path) if source.file is not None]
        parents = {file.resolve().parent.name for file in files}
        together = parents.pop() if len(files) > 1 and len(parents) == 1 else ""
        found.append((together or None, rest))
    return found


def grouped(
    paths: list[str],
    name: str | None,
    asked: list[str | Metric],
    chosen: Convention,
    by: tuple[str, ...],
    interval: dict[str, Any] | None,
    how: dict[str, Any],
    talk: Talk,
    said: set[str],
    each: Each | None = None,
    jobs: int | None = 1,
) -> list[Scores]:
    """The scores of each group of a log; what was recognised is said once, and `said` holds what was.

    A large log is scored by several processes, once its first part has told by which metrics; if that fails, in order.
    """
    if asked:
        check_metrics(asked, chosen)
    metrics = [chosen.settle(metric(m)) for m in asked or (*DEFAULT_METRICS, *LONGFORM_METRICS)]
    columns = {column for m in metrics for column in m.columns}
    tallies: Tallies | None = None
    system = ""
    for part in scan(paths, columns=columns, name=name, by=by, **how):
        if tallies is None:
            system = part.name
            if part.origin.description not in said:
                talk.say(f"{system}: {part.origin.description}")
                said.add(part.origin.description)
            seed = None if interval is None else interval["seed"]
            tallies = Tallies(asked or default_metrics(part), chosen, by=by, seed=seed)
            shared = None if each is not None else spread(paths, jobs, columns=columns, by=by, **how)
            if shared is not None and shared.fill([tallies]):
                break
        scores = tallies.scored(part)
        tallies.count(part, scores)
        if each is not None:
            each(part, scores, system)
    if tallies is None:
        raise DataError(Fault("nothing-given"))
    drawn = {} if interval is None else {"level": interval["level"], "resamples": interval["resamples"]}
    found = [Scores(scores, system, (), labels) for labels, scores in tallies.scores(**drawn)]
    for scores in found[:1]:
        scores.notes = (*tallies.notes, *(interval_notes(found) if interval is not None else ()))
    return found


def interval_notes(found: Sequence[Scores]) -> list[Note]:
    """Notes about groups without an interval, and about groups of so few segments that it is too narrow."""
    notes = []
    without = [one.called for one in found if any(score.low is None for score in one)]
    if without:
        notes.append(Note("interval", f"{_some(without)}: there is none: too few segments, or all alike"))
    sizes = [(one.called, min((s.n - s.undefined for s in one if s.low is not None), default=FEW)) for one in found]
    small = [(name, n) for name, n in sizes if n < FEW]
    if small:
        whose = _some([f"{name}: {counted(n, 'segment')}" for name, n in small])
        notes.append(few(min(n for _, n in small), "segment", f"{whose}: " if found[0].group else ""))
    return notes


def _some(names: Sequence[str]) -> str:
    return f"{', '.join(names[:SHOWN])}{' …' * (len(names) > SHOWN)}"
