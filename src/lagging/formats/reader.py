# SPDX-License-Identifier: Apache-2.0
"""The log of one system, read from its files in order: each file is recognised, and its parts are checked together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from lagging.data.checks import add_counts, repair
from lagging.data.run import Origin, Run
from lagging.data.strip import strip as strip_tokens
from lagging.errors import DataError, Fault, Faults, Note, UsageError, merge_notes
from lagging.formats.ids import SeenIds
from lagging.formats.json_values import unfold
from lagging.formats.options import ReadOptions
from lagging.formats.quarantine import assign_to_segments, catch_unreadable, drop_faulty, flush_faults
from lagging.formats.registry import Format, format_by_ending, format_named
from lagging.formats.report import ReadReport
from lagging.formats.run_folder import notes_about_files
from lagging.formats.sniff import recognise
from lagging.formats.source import Source, own_path, resolve_all
from lagging.formats.spoken_words import with_word_times

__all__ = [
    "Paths",
    "Progress",
    "Validation",
    "add_spoken_words",
    "read_parts",
    "scan_log",
    "system_name",
    "validate_log",
]

Paths = str | Path | Sequence[str | Path]
"""A file, a directory that holds one log, a glob, several of them, or "-" for standard input."""

Progress = Callable[[int], None]
"""Called with the number of bytes read since the last call."""


def scan_log(
    paths: Paths,
    options: ReadOptions,
    *,
    name: str | None = None,
    progress: Progress | None = None,
    quarantine: Callable[[Fault], None] | None = None,
) -> Iterator[Run]:
    r"""A log as a sequence of Runs, like `scan`, with all options in one object.

    Example:
        >>> import tempfile, pathlib
        >>> log = pathlib.Path(tempfile.mkdtemp()) / "wait-2.rw"
        >>> _ = log.write_text("RRWRWW\n")
        >>> list(scan_log(log, ReadOptions(), name="wait-2"))
        [Run('wait-2', 1 segment, 3 tokens, token)]
    """
    if {"first", "last"} & set(options.repair):
        if quarantine is not None:
            raise UsageError(
                "--repair first and --repair last choose among segments of one id, and so does --on-error quarantine\n"
                "  fix: give only one of them."
            )
        return iter([add_spoken_words(_read_deduplicated(paths, options, name), options)])
    parts = _scan_or_raise(paths, options, ReadReport(quarantine=quarantine), name, progress)
    if options.word_times is None:
        return parts
    return iter([add_spoken_words(Run.concat(list(parts)), options)])  # only all rows show which recordings there are


def _scan_or_raise(
    paths: Paths, options: ReadOptions, report: ReadReport, name: str | None, progress: Progress | None
) -> Iterator[Run]:
    yield from _scan(paths, options, report, name, progress)
    if report.faults:
        raise DataError(report.faults)


def add_spoken_words(run: Run, options: ReadOptions) -> Run:
    """The Run with the word times that the options name, if they name any."""
    if options.word_times is None:
        return run
    return with_word_times(run, options.word_times, alignment=options.word_alignment, aligned_with=options.aligned_with)


def _read_deduplicated(paths: Paths, options: ReadOptions, name: str | None) -> Run:
    """The whole log, of several lines with one id the first or last: only then is it known what else is wrong."""
    run = repair(Run.concat(read_parts(paths, options, name)), options.repair)
    return strip_tokens(run, options.strip) if options.strip else run


def read_parts(paths: Paths, options: ReadOptions, name: str | None) -> list[Run]:
    """The parts of a log in which an id may be used several times, nothing stripped; any other fault is raised."""
    report = ReadReport(faults=Faults(mended=("duplicate-id", "id-in-two-files")))
    return list(_scan_or_raise(paths, replace(options, strip=()), report, name, None))


@dataclass(frozen=True)
class Validation:
    """What `validate` found.

    Attributes:
        faults: every fault, in the order of the files (at most a thousand of each kind).
        counts: how many there are of each kind.
        notes: what is not wrong, but must be known.
        segments: number of segments that could be read.
        origins: what each file was recognised as.
    """

    faults: tuple[Fault, ...]
    counts: dict[str, int]
    notes: tuple[Note, ...]
    segments: int
    origins: tuple[Origin, ...]

    @property
    def ok(self) -> bool:
        """Whether the log can be scored."""
        return not self.faults


def validate_log(paths: Paths, options: ReadOptions) -> Validation:
    """Everything that is wrong with a log, like `validate`, with all options in one object."""
    report = ReadReport()
    segments = 0
    notes: list[Note] = []
    origins: dict[Origin, None] = {}
    for part in _scan(paths, options, report, None, None, stop_at_fault=False):
        segments += len(part)
        notes += part.notes
        origins[part.origin] = None
    faults = report.faults
    return Validation(
        faults.sorted(), dict(faults.counts), merge_notes([*notes, *report.notes]), segments, tuple(origins)
    )


def _scan(
    paths: Paths,
    options: ReadOptions,
    report: ReadReport,
    name: str | None,
    progress: Progress | None,
    *,
    stop_at_fault: bool = True,
) -> Iterator[Run]:
    """The parts of one system's log; faults and notes are left in the report.

    A part is held back until the next one comes: the last part takes the notes from the end of the files.
    """
    chosen = format_named(options.format) if options.format else None
    sources = resolve_all(paths)
    if not sources:
        raise UsageError("no log was given")
    report.notes += notes_about_files(sources)
    seen = SeenIds()
    held: Run | None = None
    first: Run | None = None
    quarantining = report.quarantine is not None
    kinds: set[str] = set()  # of the faults of what was left out
    if quarantining:
        report.faults.limit = sys.maxsize  # each part hands its faults on, and none are kept
    for source in sources:
        source.progress, segments_before = progress, len(seen)
        read, left_out = partial(_scan_file, source, options, report, chosen), set[int]()
        for scanned in catch_unreadable(read, source, report) if quarantining else read():
            part = scanned
            if quarantining:
                part = drop_faulty(part, flush_faults(report, left_out, kinds))
                unlike = [] if first is None or not len(part.delays.values) else [*_unlike(part, first)]
                report.faults.add(*assign_to_segments(part, unlike), *(() if unlike else seen.repeated(part).values()))
                part = drop_faulty(part, flush_faults(report, left_out, kinds))
                if not len(part):
                    continue
            if options.strip and not report.faults:
                part = strip_tokens(_with_notes(part, report, part.name), options.strip)
            seen.add(part)
            if first is None or (len(part.delays.values) and not len(first.delays.values)):
                first = part  # a part in which nothing was written does not show what the log is
            if part.origin.path != first.origin.path and len(part.delays.values):
                report.faults.add(*_unlike(part, first))
            if held is not None and not (stop_at_fault and report.faults):
                yield held
            held = _with_notes(part, report, name or part.name or system_name(source))
        report.note_byte_order_mark(source)
        if quarantining:
            flush_faults(report, left_out, kinds)
        report.placed += len(left_out) + len(seen) - segments_before
    report.faults.add(*seen.faults(report.refused))
    report.notes.extend(() if report.faults else seen.gaps())
    if first is None and not report.faults:
        kind = "nothing-left" if kinds - {"empty-log"} else "empty-log"
        report.faults.add(Fault(kind, path=sources[0].path))
    if held is not None and not (stop_at_fault and report.faults):
        yield _with_notes(held, report, held.name)


def _scan_file(source: Source, options: ReadOptions, report: ReadReport, chosen: Format | None) -> Iterator[Run]:
    """The parts of one file; none, and a fault, if it is empty."""
    try:
        known = recognise(source, options.column_map) if chosen is None else chosen
        if chosen is not None and chosen.json:
            unfold(source)
        if known is None:
            report.faults.add(Fault("empty-log", path=source.path))
            return
        if (options.group_by or options.column_map) and not known.columns:
            raise UsageError(f"{source.path}: --by and --column-map need columns with names, and {known.name} has none")
        if (options.source_length is not None or options.time_unit is not None) and known.name != "stream":
            raise UsageError(
                f"{source.path}: --source-length and --time-unit are for event streams, not for {known.name}"
            )
        yield from known.scan(source, replace(options, format=known.name), report)
    except DataError as error:  # what makes the rest of a file unreadable, beside what was wrong before
        report.faults.add(*error.faults)


def _unlike(part: Run, first: Run) -> Iterator[Fault]:
    """Why a file cannot be read together with the one before."""
    for what in ("unit", "level", "seg"):
        if getattr(part, what) != getattr(first, what):
            detail = f"{getattr(part, what)}, but {getattr(first, what)} in {first.origin.path}"
            yield Fault(f"mixed-{what}", detail, part.origin.path)
    if (part.prediction is None) != (first.prediction is None):
        without, other = (part, first) if part.prediction is None else (first, part)
        yield Fault("missing-prediction", f"other lines are in {other.origin.path}", without.origin.path)


def _with_notes(part: Run, report: ReadReport, name: str) -> Run:
    """The part with the notes that have come in since the last one, and the lines that were left out."""
    torn = [Note("torn", f"the last line breaks off, and is left out: {place}") for place in report.torn]
    notes = merge_notes([*part.notes, *report.notes, *torn])
    repaired = add_counts(part.repaired, [("torn", len(torn))])
    report.notes.clear()
    report.torn.clear()
    return replace(part, name=name, notes=notes, repaired=repaired)


def system_name(source: Source) -> str:
    """The default name of a system: its directory for an instances.log, else the file."""
    if source.file is None:
        return "stdin"
    if source.folder is not None:
        return own_path(source.folder).name
    if source.file.name.startswith(("instances.", "metrics.json", "simulstream_output.")):
        return own_path(source.file).parent.name  # a symbolic link is called by its own name
    name = source.file.name.removesuffix(".gz")
    known = format_by_ending(name)
    return name if known is None else next(name.removesuffix(end) for end in known.suffixes if name.endswith(end))
