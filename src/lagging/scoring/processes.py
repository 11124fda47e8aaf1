# SPDX-License-Identifier: Apache-2.0
"""A large log on all cores: stretches of it are read and scored by several processes at once.

A stretch is some of the parts that reading in order would give, so that scores, notes and their order are the same to
the last bit. Whatever is unusual (a fault, a blank line, an id used twice) is left to reading in order, which tells
what is wrong, and where. JSON lines are shared out, and row groups of Parquet. By processes and not threads: decoding
JSON needs the interpreter, and kernels hand it over so often that of two threads one waits (measured).
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lagging.data.ragged import Ragged
from lagging.data.run import Ids, Origin, Run
from lagging.data.strip import check_kinds, strip
from lagging.data.tokens import settle_level
from lagging.errors import LaggingError, Note, UsageError, merge_notes
from lagging.formats import scan
from lagging.formats.ids import SeenIds
from lagging.formats.options import Options
from lagging.formats.run_folder import unfinished
from lagging.formats.sniff import FORMATS, Format
from lagging.formats.source import Source, Stretch, resolve
from lagging.metrics import Metric
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.plan import Plan
from lagging.scoring.scores import Scores
from lagging.scoring.serial import accumulate

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

__all__ = ["ParallelLog", "cores", "plan_parallel", "score"]

PAYS = {"parquet.scan": 1 << 23, "jsonl.scan": 1 << 25}
"""By reader of a format: a log of fewer bytes is read before other processes have started."""

MOST = 1024
"""More processes than any machine has cores for."""

ATTEMPTS = 3
"""How often what killed processes had not finished is begun again."""

HOW = ("format", "level", "unit", "unit_hint", "spm_model", "repair", "strip", "column_map", "by")
"""What of the ways to read a log can be done in stretches."""

THREADED = {"jax", "torch", "tensorflow", "grpc"}
"""What has threads of its own that a copied process would not have, and might wait for."""


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


@dataclass(frozen=True)
class _Share:
    """A stretch of a log, and what to do with it; `size` is its part of the bytes of the file."""

    source: Source
    format: str
    columns: frozenset[str] | None
    how: Mapping[str, Any]
    placed: int
    notes: tuple[Note, ...]
    accumulators: tuple[Accumulator, ...]
    size: int


@dataclass
class _Done:
    """What became of a share: its scores, the names of its segments, what it is, and what its system is called."""

    accumulators: tuple[Accumulator, ...]
    ids: list[Ids] = field(default_factory=list)
    facts: set[tuple[object, ...]] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


_told: dict[str, Any] = {}
"""In a process that scores shares: what has been found out about each file."""


def score_share(share: _Share) -> _Done | None:
    """Read and score a stretch; None if anything about them is unusual. Run in a process of its own."""
    how, source, stretch = share.how, share.source, share.source.stretch
    options = Options(
        format=share.format,
        level=settle_level(how.get("level"), how.get("spm_model")),
        unit=how.get("unit"),
        repair=tuple(how.get("repair", ())),
        columns=share.columns,
        notes=list(share.notes),
        unit_hint=how.get("unit_hint"),
        placed=share.placed,
        strip=check_kinds(how.get("strip", ())),
        column_map=how.get("column_map") or {},
        by=tuple(how.get("by", ())),
    )
    done = _Done(share.accumulators)
    # the first stretch finds out for itself, because it is the one that says what was found
    source.told = _told.get(source.path) if stretch is not None and stretch.start else None
    try:
        for found in FORMATS[share.format].scan(source, options):
            if options.faults:
                return None
            part = replace(found, notes=merge_notes([*found.notes, *options.notes]))
            options.notes.clear()
            part = strip(part, options.strip) if options.strip else part
            for accumulator in done.accumulators:
                accumulator.add(part)
            done.ids.append(part.id)
            done.names.add(part.name)
            if len(part.delays.values):
                done.facts.add((part.unit, part.level, part.seg, part.prediction is None))
    except LaggingError:  # it is told, with its place, by reading in order
        return None
    _told[source.path] = source.told
    odd = options.faults or options.notes or options.torn or source.bom
    return done if not odd and stretch is not None and sum(map(len, done.ids)) == stretch.lines else None


@dataclass(frozen=True)
class ParallelLog:
    """A log that can be scored in stretches by several processes; made by `plan_parallel`.

    Attributes:
        sources: the files, the format of each, and of Parquet the stretches.
        jobs: how many processes, if there are as many stretches.
        columns, how: as in `lagging.scan`.
        progress: called with the number of bytes read since the last call.
    """

    sources: tuple[tuple[Source, Format, Sequence[Stretch] | None], ...]
    jobs: int
    columns: frozenset[str] | None
    how: Mapping[str, Any]
    progress: Callable[[int], None] | None = None

    def score(self, accumulators: Sequence[Accumulator]) -> bool:
        """Score the log into the accumulators; False, and nothing is scored, if it must be read in order.

        Raises:
            LaggingError: processes were killed, again and again.
        """
        sums = tuple(accumulator.empty() for accumulator in accumulators)
        seen, facts, names = SeenIds(), set[tuple[object, ...]](), dict[str, set[str]]()
        shares = self._shares(tuple(accumulator.empty() for accumulator in accumulators))
        first = list(islice(shares, self.jobs))
        if len(first) < 2:
            return False
        with closing(self._scored(chain(first, shares), len(first))) as found:
            for path, done in found:
                if done is None:
                    return False
                facts |= done.facts
                called = names.setdefault(path, set())
                called |= done.names
                for ids in done.ids:
                    none = Ragged(np.empty(0), np.zeros(len(ids) + 1))
                    seen.add(Run(delays=none, source_length=np.zeros(len(ids)), id=ids, origin=Origin(path)))
                if len(facts) > 1 or len(called) > 1 or any(seen.faults([])):
                    return False
                for mine, theirs in zip(sums, done.accumulators, strict=True):
                    mine.join(theirs)
        gaps = list(seen.gaps())
        for accumulator, scored in zip(accumulators, sums, strict=True):
            accumulator.join(scored)
            accumulator.add_notes(gaps)
        return True

    def _shares(self, accumulators: tuple[Accumulator, ...]) -> Iterator[_Share]:
        """The stretches of all files, as they are found."""
        from lagging.formats.jsonl import SEGMENTS_PER_PART

        placed = 0
        notes: tuple[Note, ...] = ()
        if len(self.sources) > 1:
            notes = (Note("several files", f"{len(self.sources)} files are read as the log of one system"),)
        notes += tuple(note for source, *_ in self.sources for note in unfinished(source))
        for source, known, groups in self.sources:
            lines, rows = 0, sum(stretch.lines for stretch in groups or ())
            for stretch in Source(source.path, source.file).stretches(SEGMENTS_PER_PART) if groups is None else groups:
                here = Source(source.path, source.file, stretch=stretch)
                size = stretch.stop - stretch.start if groups is None else stretch.lines * (source.size or 0) // rows
                yield _Share(here, known.name, self.columns, self.how, placed, notes, accumulators, size)
                notes, lines = (), lines + stretch.lines
            placed += lines

    def _scored(self, shares: Iterator[_Share], processes: int) -> Generator[tuple[str, _Done | None]]:
        """What became of every share, in order, and its file; None if it is unusual."""
        from concurrent.futures import ProcessPoolExecutor, as_completed
        from concurrent.futures.process import BrokenProcessPool

        asked: list[_Share] = []
        done: dict[int, _Done | None] = {}
        told = 0
        for _ in range(ATTEMPTS):
            with ProcessPoolExecutor(processes, mp_context=_context()) as pool:
                try:
                    again = [place for place in range(told, len(asked)) if place not in done]
                    futures = {pool.submit(score_share, asked[place]): place for place in again}
                    for share in shares:  # found while the first ones are being scored
                        asked.append(share)
                        futures[pool.submit(score_share, share)] = len(asked) - 1
                    for future in as_completed(futures):
                        place = futures.pop(future)
                        done[place] = future.result()
                        if self.progress is not None:
                            self.progress(asked[place].size)
                        while told in done:
                            yield asked[told].source.path, done.pop(told)
                            told += 1
                    return
                except BrokenProcessPool:
                    continue  # one was killed: all that is not done is begun again
                finally:
                    pool.shutdown(cancel_futures=True)
        stretch = asked[told].source.stretch
        raise LaggingError(
            f"a process that scored {asked[told].source.path} was killed, {ATTEMPTS} times; "
            f"not scored: {len(asked) - told - len(done)} of {len(asked)} parts, the first from line "
            f"{0 if stretch is None else stretch.first} on\n"
            "  Perhaps memory was short.\n"
            "  fix: --jobs 1 (jobs=1 in Python), or fewer jobs."
        )


def _context() -> BaseContext:
    """How processes are started: at once where nothing forbids it; a process with other threads must not be copied."""
    from multiprocessing import get_context

    copied = sys.platform == "linux" and threading.active_count() == 1 and not THREADED & sys.modules.keys()
    return get_context("fork" if copied else "spawn")


def plan_parallel(
    paths: str | Path | Sequence[str | Path],
    jobs: int | None = None,
    *,
    columns: Iterable[str] | None = None,
    progress: Callable[[int], None] | None = None,
    **how: Any,
) -> ParallelLog | None:
    """A log shared out among processes; None if it must be read in order, or that is as quick.

    Args:
        paths: as in `lagging.scan`.
        jobs: how many processes, if there is work for as many; if not given, one for each core, where the log is large
            enough.
        columns, progress, how: as in `lagging.scan`.
    """
    if jobs is not None and not 1 <= jobs <= MOST:
        raise UsageError(f"the number of jobs must be from 1 to {MOST}, but is {jobs}")
    number = cores() if jobs is None else jobs
    given = {key: value for key, value in how.items() if value not in (None, (), {})}
    if number < 2 or not set(given) <= set(HOW) or {"first", "last", "torn"} & set(given.get("repair", ())):
        return None
    sources = [s for path in ([paths] if isinstance(paths, str | Path) else paths) for s in resolve(path)]
    if any(source.file is None or not source.file.is_file() for source in sources):
        return None
    size = sum(source.size or 0 for source in sources)
    if (jobs is None and size < min(PAYS.values())) or len({source.path for source in sources}) < len(sources):
        return None
    some = []
    for source in sources:
        known = _format(source, how.get("format"))
        if known is None or (jobs is None and size < PAYS[known.reader]):
            return None
        groups = _row_groups(source) if known.name == "parquet" else None
        if known.name == "parquet" and groups is None:
            return None
        some.append((source, known, groups))
    if sum(2 if groups is None else len(groups) for _, _, groups in some) < 2:
        return None
    wanted = None if columns is None else frozenset(columns)
    return ParallelLog(tuple(some), number, wanted, given, progress)


def _format(source: Source, name: str | None) -> Format | None:
    """The format of a file that can be read from any line, or row group, on; None of any other file."""
    if source.file is None:
        return None
    with source.file.open("rb") as file:
        start = file.read(8)
    if start.startswith(b"\x1f\x8b"):
        return None
    head = start if start.startswith(b"PAR1") else Source(source.path, source.file).head()
    known = FORMATS.get(name) if name else next((f for f in FORMATS.values() if f.recognises(head)), None)
    return known if known is not None and known.reader in PAYS and known.name != "arrow" else None


def _row_groups(source: Source) -> Sequence[Stretch] | None:
    from lagging.formats.row_groups import stretches

    return stretches(source)


def score(
    paths: str | Path | Sequence[str | Path],
    metrics: Iterable[str | Metric] | str = (),
    *,
    convention: str = "paper",
    jobs: int | None = None,
    name: str | None = None,
    **how: Any,
) -> Scores:
    r"""Score a log without holding it in memory, on all cores where that pays: what `lagging score` does.

    Args:
        paths: a file, a directory that holds one log, a glob, several of them, or "-" for standard input.
        metrics: names or Metric records; what suits the log if not given.
        convention: as in `lagging.score`.
        jobs: how many processes; 1 to read in order. The scores are the same.
        name: name of the system.
        how: as in `lagging.scan`: format, level, unit, repair, strip, …

    Raises:
        DataError, UsageError, MetricError: as `lagging.scan` and `lagging.score`.
        LaggingError: processes were killed, again and again.

    Example:
        >>> import tempfile, pathlib
        >>> log = pathlib.Path(tempfile.mkdtemp()) / "wait-4.jsonl"
        >>> _ = log.write_text('{"delays": [4, 5, 5, 5, 5], "source_length": 5}\n' * 3)
        >>> score(log, ["AL", "DAL"])
        Scores('wait-4', AL=4, DAL=4)
    """
    plan = Plan.make(metrics or None, convention)
    names: list[str] = []

    def plans(first: Run) -> list[Plan]:
        names.append(first.name)
        return [plan]

    parts = scan(paths, name=name, **how)
    (accumulator,) = accumulate(parts, plans, parallel=plan_parallel(paths, jobs, **how))
    return accumulator.scores(names[0])
