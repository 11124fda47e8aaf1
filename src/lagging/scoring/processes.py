# SPDX-License-Identifier: Apache-2.0
"""Score a large log in several processes, which read and score parts of its files at once.

A task covers parts that reading in order would give too, so that scores, notes and their order are the same to the last
bit. Anything unusual (a fault, a blank line, an id used twice) is left to reading in order, which reports what is
wrong, and where. JSON lines and row groups of Parquet can be divided. Processes and not threads: decoding JSON needs
the interpreter, and kernels release it so often that of two threads one waits (measured).
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lagging.data.ragged import Ragged
from lagging.data.run import Ids, Origin, Run
from lagging.data.strip import strip
from lagging.errors import LaggingError, Note, UsageError, merge_notes
from lagging.formats.ids import SeenIds
from lagging.formats.json_values import has_json_values
from lagging.formats.options import ReadOptions
from lagging.formats.registry import FORMATS, Format
from lagging.formats.report import ReadReport
from lagging.formats.run_folder import notes_about_files
from lagging.formats.schema import LogSchema
from lagging.formats.sniff import find_format
from lagging.formats.source import ByteRange, RowGroups, Source, resolve_all
from lagging.scoring.accumulator import Accumulator

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

__all__ = ["MOST", "ParallelLog", "Task", "TaskResult", "cores", "plan_parallel", "score_task"]

PAYS: dict[object, int] = {"parquet.scan": 1 << 23, "jsonl.scan": 1 << 25}
"""By reader of a format: the number of bytes from which starting processes takes less time than it saves."""

MOST = 1024
"""The largest number of processes."""

ATTEMPTS = 3
"""How often tasks of killed processes are tried."""

THREADED = {"jax", "torch", "tensorflow", "grpc"}
"""Libraries with threads of their own, which a forked process would not have, and might wait for."""


def cores() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


@dataclass(frozen=True)
class Task:
    """A part of a file to score in another process.

    Attributes:
        source: the file, and which part of it.
        options: how to read it; the format is resolved.
        placed: the number of segments in the files before.
        notes: notes about the log, which the first task carries.
        accumulators: empty ones, one for each Plan.
        size: the bytes of the file that this part counts for in the progress.
    """

    source: Source
    options: ReadOptions
    placed: int
    notes: tuple[Note, ...]
    accumulators: tuple[Accumulator, ...]
    size: int


@dataclass
class TaskResult:
    """The scores of a task, and what must be the same in all tasks.

    Attributes:
        accumulators: the scores.
        ids: the ids of the segments.
        schemas: unit, level and the like of the parts.
        names: names of the system.
    """

    accumulators: tuple[Accumulator, ...]
    ids: list[Ids] = field(default_factory=list)
    schemas: set[tuple[object, ...]] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


_schemas: dict[str, LogSchema | None] = {}
"""In a worker process: the schema of each file, once it is known."""


def score_task(task: Task) -> TaskResult | None:
    """Read and score a part of a file, in a worker process; None if anything in it needs reading in order."""
    source, portion = task.source, task.source.portion
    report = ReadReport(notes=list(task.notes), placed=task.placed)
    result = TaskResult(task.accumulators)
    # the first part of a file detects the schema itself, because its Run describes the log
    source.schema = _schemas.get(source.path) if portion is not None and portion.start else None
    assert task.options.format is not None
    try:
        for run in FORMATS[task.options.format].scan(source, task.options, report):
            if report.faults:
                return None
            part = replace(run, notes=merge_notes([*run.notes, *report.notes]))
            report.notes.clear()
            part = strip(part, task.options.strip) if task.options.strip else part
            for accumulator in result.accumulators:
                accumulator.add(part)
            result.ids.append(part.id)
            result.names.add(part.name)
            if len(part.delays.values):
                result.schemas.add((part.unit, part.level, part.seg, part.prediction is None))
    except LaggingError:  # reading in order reports it, with its place
        return None
    _schemas[source.path] = source.schema
    odd = report.faults or report.notes or report.torn or source.bom
    return result if not odd and portion is not None and sum(map(len, result.ids)) == portion.count else None


@dataclass(frozen=True)
class ParallelLog:
    """A log that several processes can score; made by `plan_parallel`.

    Attributes:
        sources: the files, the format of each, and of Parquet the row groups.
        jobs: the number of processes, if there are as many tasks.
        options: how to read the log.
        progress: called with the number of bytes read since the last call.
    """

    sources: tuple[tuple[Source, Format, Sequence[ByteRange | RowGroups] | None], ...]
    jobs: int
    options: ReadOptions
    progress: Callable[[int], None] | None = None

    def score(self, accumulators: Sequence[Accumulator]) -> bool:
        """Score the log into the accumulators; False, and nothing is scored, if it must be read in order.

        Raises:
            LaggingError: processes were killed repeatedly.
        """
        sums = tuple(accumulator.empty() for accumulator in accumulators)
        seen, schemas, names = SeenIds(), set[tuple[object, ...]](), dict[str, set[str]]()
        tasks = self._tasks(tuple(accumulator.empty() for accumulator in accumulators))
        first = list(islice(tasks, self.jobs))
        if len(first) < 2:
            return False
        with closing(self._results(chain(first, tasks), len(first))) as results:
            for path, result in results:
                if result is None:
                    return False
                schemas |= result.schemas
                file_names = names.setdefault(path, set())
                file_names |= result.names
                for ids in result.ids:
                    none = Ragged(np.empty(0), np.zeros(len(ids) + 1))
                    seen.add(Run(delays=none, source_length=np.zeros(len(ids)), id=ids, origin=Origin(path)))
                if len(schemas) > 1 or len(file_names) > 1 or any(seen.faults([])):
                    return False
                for total, scored in zip(sums, result.accumulators, strict=True):
                    total.join(scored)
        gaps = list(seen.gaps())
        for accumulator, total in zip(accumulators, sums, strict=True):
            accumulator.join(total)
            accumulator.add_notes(gaps)
        return True

    def _tasks(self, accumulators: tuple[Accumulator, ...]) -> Iterator[Task]:
        """The tasks of all files, in order."""
        from lagging.formats.segment_rows import SEGMENTS_PER_PART

        placed = 0
        notes = tuple(notes_about_files([source for source, *_ in self.sources]))
        for source, known, groups in self.sources:
            options = replace(self.options, format=known.name)
            lines, rows = 0, sum(portion.count for portion in groups or ())
            for portion in (
                Source(source.path, source.file).byte_ranges(SEGMENTS_PER_PART) if groups is None else groups
            ):
                here = Source(source.path, source.file, portion=portion)
                size = portion.stop - portion.start if groups is None else portion.count * (source.size or 0) // rows
                yield Task(here, options, placed, notes, accumulators, size)
                notes, lines = (), lines + portion.count
            placed += lines

    def _results(self, tasks: Iterator[Task], processes: int) -> Generator[tuple[str, TaskResult | None]]:
        """The result of every task, in order, with its file; None if the log must be read in order."""
        from concurrent.futures import ProcessPoolExecutor, as_completed
        from concurrent.futures.process import BrokenProcessPool

        submitted: list[Task] = []
        results: dict[int, TaskResult | None] = {}
        next_index = 0
        for _ in range(ATTEMPTS):
            with ProcessPoolExecutor(processes, mp_context=_context()) as pool:
                try:
                    again = [index for index in range(next_index, len(submitted)) if index not in results]
                    futures = {pool.submit(score_task, submitted[index]): index for index in again}
                    for task in tasks:  # files are divided while the first tasks run
                        submitted.append(task)
                        futures[pool.submit(score_task, task)] = len(submitted) - 1
                    for future in as_completed(futures):
                        index = futures.pop(future)
                        results[index] = future.result()
                        if self.progress is not None:
                            self.progress(submitted[index].size)
                        while next_index in results:
                            yield submitted[next_index].source.path, results.pop(next_index)
                            next_index += 1
                    return
                except BrokenProcessPool:
                    continue  # a worker was killed: start again what is not done
                finally:
                    pool.shutdown(cancel_futures=True)
        task = submitted[next_index]
        raise LaggingError(
            f"a process that scored {task.source.path} was killed, {ATTEMPTS} times; "
            f"not scored: {len(submitted) - next_index - len(results)} of {len(submitted)} parts, the first from line "
            f"{0 if task.source.portion is None else task.source.portion.first} on\n"
            "  Perhaps memory was short.\n"
            "  fix: --jobs 1 (jobs=1 in Python), or fewer jobs."
        )


def _context() -> BaseContext:
    """How worker processes start: by fork where the process has no other threads, else by spawn."""
    from multiprocessing import get_context

    can_fork = sys.platform == "linux" and threading.active_count() == 1 and not THREADED & sys.modules.keys()
    return get_context("fork" if can_fork else "spawn")


def plan_parallel(
    paths: str | Path | Sequence[str | Path],
    options: ReadOptions,
    jobs: int | None = None,
    *,
    progress: Callable[[int], None] | None = None,
    quarantine: bool = False,
) -> ParallelLog | str:
    """Divide a log among processes; or say why it is read by one.

    Args:
        paths: as in `lagging.scan`.
        options: how to read the log.
        jobs: the number of processes, if there is work for as many; if not given, one for each core, where the log is
            large enough.
        progress: called with the number of bytes read since the last call.
        quarantine: whether faulty rows are left out.

    Returns:
        The log, divided; or the reason, empty where one process is as fast.
    """
    if jobs is not None and not 1 <= jobs <= MOST:
        raise UsageError(f"the number of jobs must be from 1 to {MOST}, but is {jobs}")
    number = cores() if jobs is None else jobs
    if number < 2:
        return ""
    if quarantine:
        return "--on-error quarantine needs the log in order"
    if names := {"first", "last", "torn"} & set(options.repair):
        return f"--repair {sorted(names)[0]} needs the whole log"
    if options.word_times is not None:
        return "--word-times needs the whole log"
    sources = resolve_all(paths)
    if any(source.file is None or not source.file.is_file() for source in sources):
        return "standard input cannot be divided"
    size = sum(source.size or 0 for source in sources)
    if jobs is None and size < min(PAYS.values()):
        return ""
    if len({source.path for source in sources}) < len(sources):
        return "a file is given twice"
    files = []
    for source in sources:
        known = _format(source, options.format)
        if known is None:
            return f"{source.path} is neither plain JSON lines nor Parquet, so it cannot be divided"
        if jobs is None and size < PAYS[known.reader]:
            return ""
        groups = _row_groups(source) if known.name == "parquet" else None
        if known.name == "parquet" and groups is None:
            return f"the row groups of {source.path} cannot be read on their own"
        files.append((source, known, groups))
    if sum(2 if groups is None else len(groups) for _, _, groups in files) < 2:
        return ""
    return ParallelLog(tuple(files), number, options, progress)


def _format(source: Source, name: str | None) -> Format | None:
    """The format of a file that can be read from any line, or row group, on; None of any other file."""
    if source.file is None:
        return None
    with source.file.open("rb") as file:
        if file.read(2) == b"\x1f\x8b":  # gzip
            return None
    if has_json_values(Source(source.path, source.file).head()):
        return None
    known = FORMATS.get(name) if name else find_format(Source(source.path, source.file))
    return known if known is not None and known.reader in PAYS and known.name != "arrow" else None


def _row_groups(source: Source) -> Sequence[ByteRange | RowGroups] | None:
    from lagging.formats.row_groups import list_row_groups

    return list_row_groups(source)
