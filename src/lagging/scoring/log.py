# SPDX-License-Identifier: Apache-2.0
"""The one way from a log to its scores: read it in parts, cut its streams where requested, and accumulate by Plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Unpack

from lagging.data.run import TIMES, Run
from lagging.errors import DataError, Fault, Note, UsageError
from lagging.formats import ReadKeywords, ReadOptions, scan_log
from lagging.formats.reader import add_spoken_words
from lagging.longform.cutting import Cutting
from lagging.metrics import Metric
from lagging.metrics.clocks import has_times
from lagging.metrics.conventions import Convention
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.columns import Column, Columns
from lagging.scoring.part import Part
from lagging.scoring.plan import Plan
from lagging.scoring.processes import ParallelLog, plan_parallel
from lagging.scoring.scores import Scores

__all__ = ["Log", "score", "score_files"]

Paths = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class Log:
    """The log of one system: where it is, and how it is read.

    Attributes:
        paths: a file, a directory that holds one log, a glob, several of them, or "-" for standard input.
        options: how it is read.
        name: name of the system; None to take that of the log.
        cutting: how its streams are cut into segments, and which files give the texts.
        progress: called with the number of bytes read since the last call.
        quarantine: called with every fault; faulty rows are then left out.
        columns: scores of the segments from elsewhere, from which the system takes its own.
        aliases: other names by which columns may name the system.
    """

    paths: Paths
    options: ReadOptions
    name: str | None = None
    cutting: Cutting = field(default_factory=Cutting)
    progress: Callable[[int], None] | None = None
    quarantine: Callable[[Fault], None] | None = None
    columns: Columns | None = None
    aliases: tuple[str, ...] = ()

    def parts(self, plan: Plan) -> Iterator[Run]:
        """The parts of the log, with the columns that a Plan needs; all in one part, if its streams are cut."""
        if not self.cutting.requested:
            yield from self._scan(self._options(plan))
            return
        clocks = {str(m.get("clock")) for m in plan.resolved_metrics.values() if m.has("clock")} & TIMES.keys()
        yield self._cut(sorted(clocks))

    def read(self) -> Run:
        """The whole log with all its columns, its streams cut where that is requested."""
        return self._cut() if self.cutting.requested else Run.concat(list(self._scan(self.options)))

    def _options(self, plan: Plan) -> ReadOptions:
        """The read options, with the columns and groups of a Plan."""
        return replace(self.options, columns=frozenset(plan.columns), group_by=plan.group_by)

    def _scan(self, options: ReadOptions) -> Iterator[Run]:
        return scan_log(self.paths, options, name=self.name, progress=self.progress, quarantine=self.quarantine)

    def _cut(self, clocks: Iterable[str] | None = None) -> Run:
        run = self.cutting.read(
            self.paths, self.options, name=self.name, progress=self.progress, quarantine=self.quarantine
        )
        if clocks is not None:  # what the log has no times for, the metric will say itself
            clocks = [name for name in clocks if has_times(run, name)]
        return self.cutting.cut(run, self.options.strip, clocks).run

    def score(
        self,
        plan: Plan,
        *more: Callable[[Run], Plan | None],
        jobs: int | None = 1,
        on_first: Callable[[Run], None] | None = None,
        on_part: Callable[[Part], None] | None = None,
    ) -> list[Accumulator]:
        """Score the log.

        Args:
            plan: what to score.
            more: further Plans, decided by the first part; None for none.
            jobs: the number of processes; None for all cores, where the log is large. The scores are the same.
            on_first: called with the first part.
            on_part: called with each part once `plan` has scored it. The log is then read by one process.

        Returns:
            An Accumulator for each Plan.

        Raises:
            DataError: the log is empty, or has faults.
        """
        accumulators: list[Accumulator] = []
        parallel = self._parallel(plan, jobs, on_part)
        for part in self.parts(plan):
            if not accumulators:
                if on_first is not None:
                    on_first(part)
                if self.columns is not None:
                    plan = replace(plan, external=self.columns.take(part.name, *self.aliases))
                plans = [plan, *(p for decide in more if (p := decide(part)) is not None)]
                accumulators = [Accumulator(p.resolve(part), part.name) for p in plans]
                if isinstance(parallel, ParallelLog) and parallel.score(accumulators):
                    break
            for index, accumulator in enumerate(accumulators):
                accumulator.add(part, on_part if index == 0 else None)
        if not accumulators:
            raise DataError(Fault("nothing-given"))
        if isinstance(parallel, str) and parallel and jobs is not None:
            accumulators[0].add_notes([Note("one process", f"--jobs {jobs} has no effect: {parallel}")])
        return accumulators

    def _parallel(self, plan: Plan, jobs: int | None, on_part: Callable[[Part], None] | None) -> ParallelLog | str:
        """The log divided among processes, or the reason why one process reads it."""
        if jobs == 1:
            return ""
        if self.cutting.requested:
            return "a whole recording is needed to cut it"
        if self.columns is not None and self.columns.metrics:
            return "--column is matched with the segments in order"
        if on_part is not None:
            return "--segment-scores with --by writes the segments in order"
        options = self._options(plan)
        return plan_parallel(self.paths, options, jobs, progress=self.progress, quarantine=self.quarantine is not None)


def score(
    run: Run | Iterable[Run],
    metrics: Iterable[str | Metric] | str | None = None,
    *,
    convention: str | Convention = "paper",
    columns: Iterable[Column] = (),
    word_times: str | Path | None = None,
    word_alignment: str | Path | None = None,
    aligned_with: str = "hypothesis",
) -> Scores:
    """Score a Run, or a Run that comes in parts.

    Args:
        run: a Run, or an iterator over its parts such as `lagging.scan` returns.
        metrics: names or Metric records; if not given those of `lagging score`: AP, AL, LAAL and DAL, and BLEU where
            there are references.
        convention: "paper" (default), "simuleval" or "omnisteval"; shows in the signatures by its effects.
        columns: scores of the segments that another program computed, such as COMET; `lagging.read_column` reads them.
        word_times, word_alignment, aligned_with: as in `lagging.read`, for a Run that was read without them.

    Returns:
        Scores, by metric.

    Raises:
        MetricError: a metric is unknown, or cannot be computed on this Run.
        DataError: a column does not have one score for each segment.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[4, 5, 5, 5, 5], [4, 4, 4, 4, 5]], source_length=[5, 5])
        >>> scores = lagging.score(run, ["AL", "DAL"])
        >>> scores["AL"].value, scores["AL"].segments, scores["DAL"].value
        (3.1, array([4. , 2.2]), 4.0)
        >>> print(scores["DAL"].signature)
        DAL|unit:token|length:hypothesis|clock:ideal|level:token|empty:nan|seg:none|mean:segment|n:2|v:0.2.0.dev0
    """
    if isinstance(run, str | PathLike):
        raise UsageError(f"score takes a Run: lagging.score(lagging.read({str(run)!r}), …)")
    given = Columns(columns)
    words = ReadOptions(word_times=word_times, word_alignment=word_alignment, aligned_with=aligned_with)
    if word_times is not None:
        run = add_spoken_words(run if isinstance(run, Run) else Run.concat(list(run)), words)
    accumulator = Accumulator(Plan.make(metrics, convention, external=given.every))
    system = ""
    for part in [run] if isinstance(run, Run) else run:
        if given.every and not system:
            given.check([part.name])
            accumulator.plan = replace(accumulator.plan, external=given.take(part.name))
        accumulator.add(part)
        system = part.name
    return accumulator.scores(system)


def score_files(
    paths: Paths,
    metrics: Iterable[str | Metric] | str | None = None,
    *,
    convention: str | Convention = "paper",
    jobs: int | None = None,
    name: str | None = None,
    columns: Iterable[Column] = (),
    **options: Unpack[ReadKeywords],
) -> Scores:
    r"""Score a log without holding it in memory, on all cores where that pays, as `lagging score` does.

    Args:
        paths: a file, a directory that holds one log, a glob, several of them, or "-" for standard input.
        metrics: names or Metric records; the default metrics for the log if not given.
        convention: as in `lagging.score`.
        jobs: the number of processes; 1 to read in order. The scores are the same.
        name: name of the system.
        columns: as in `lagging.score`.
        options: as in `lagging.read`: format, level, unit, repair, strip, …

    Raises:
        DataError, UsageError, MetricError: as `lagging.scan` and `lagging.score`.
        LaggingError: processes were killed repeatedly.

    Example:
        >>> import tempfile, pathlib
        >>> log = pathlib.Path(tempfile.mkdtemp()) / "wait-4.jsonl"
        >>> _ = log.write_text('{"delays": [4, 5, 5, 5, 5], "source_length": 5}\n' * 3)
        >>> score_files(log, ["AL", "DAL"])
        Scores('wait-4', AL=4, DAL=4)
    """
    systems: list[str] = []
    given = Columns(columns)
    log = Log(paths, ReadOptions.make(**options), name, columns=given)
    (accumulator,) = log.score(
        Plan.make(metrics, convention, external=given.every),
        jobs=jobs,
        on_first=lambda first: systems.append(first.name),
    )
    given.check_taken(systems)
    return accumulator.scores(systems[0])
