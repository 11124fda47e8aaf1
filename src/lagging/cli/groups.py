# SPDX-License-Identifier: Apache-2.0
"""`lagging score --by`: a log scored by group, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lagging.cli.logs import Announcer
from lagging.data.run import Run
from lagging.errors import SHOWN, Note, UsageError, counted
from lagging.formats import scan
from lagging.formats.source import resolve
from lagging.scoring.part import Part
from lagging.scoring.plan import IntervalSettings, Plan
from lagging.scoring.processes import plan_parallel
from lagging.scoring.scores import Scores
from lagging.scoring.serial import accumulate
from lagging.stats.intervals import FEW, few

__all__ = ["grouped", "interval_notes", "lakes", "named_columns"]

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
    plan: Plan,
    interval: IntervalSettings | None,
    how: dict[str, Any],
    announcer: Announcer,
    on_part: Callable[[Part], None] | None = None,
    jobs: int | None = 1,
) -> list[Scores]:
    """The scores of each group of a log."""
    names: list[str] = []

    def plans(first: Run) -> list[Plan]:
        announcer.announce(first)
        names.append(first.name)
        return [plan]

    columns, by = plan.columns, plan.group_by
    parallel = None if on_part is not None else plan_parallel(paths, jobs, columns=columns, by=by, **how)
    parts = scan(paths, columns=columns, name=name, by=by, **how)
    (accumulator,) = accumulate(parts, plans, parallel=parallel, on_part=on_part)
    drawn = {} if interval is None else {"confidence": interval.confidence, "resamples": interval.resamples}
    found = list(accumulator.group_scores(names[0], **drawn))
    if found:
        found[0].notes = (*accumulator.all_notes(), *(interval_notes(found) if interval is not None else ()))
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
