# SPDX-License-Identifier: Apache-2.0
"""Logs in, Runs out, and back: one small module per format.

`read` gives a whole Run, `scan` gives it in parts, `validate` lists what is wrong, `write` writes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from lagging.data.checks import add_counts, repair
from lagging.data.files import write_whole
from lagging.data.run import Origin, Run
from lagging.data.strip import strip as strip_tokens
from lagging.data.tokens import check_units
from lagging.errors import DataError, Fault, Faults, Note, UsageError, did_you_mean, merge_notes
from lagging.formats.ids import SeenIds
from lagging.formats.options import Options, ReadOptions
from lagging.formats.quarantine import drained, each, guarded, without
from lagging.formats.run_folder import beside_a_log, unfinished
from lagging.formats.sniff import FORMATS, Format
from lagging.formats.source import Source, resolve

__all__ = [
    "FORMATS",
    "Format",
    "ReadOptions",
    "Validation",
    "read",
    "scan",
    "scan_log",
    "validate",
    "validate_log",
    "write",
]


Paths = str | Path | Sequence[str | Path]


def format_named(name: str) -> Format:
    """The format of that name."""
    if name not in FORMATS:
        raise UsageError(f"no format is called {name!r}.{did_you_mean(name, FORMATS)}")
    return FORMATS[name]


def _recognise(source: Source, column_map: Mapping[str, str] | None = None) -> Format | None:
    """The format of a file, whose columns may have other names; None if it is empty."""
    head = source.head()
    if not head.strip():
        return None
    beside_a_log(source, head)
    for known in FORMATS.values():
        if known.recognises(head):
            return known
    if column_map:
        from lagging.formats.delimited import recognise

        if (table := recognise(head, column_map)) is not None:
            return FORMATS[table]
    if head.lstrip().startswith(b"["):
        raise DataError(Fault("json-array", path=source.path, line=1))
    if source.file is not None and source.file.name.endswith(
        (*FORMATS["parquet"].suffixes, *FORMATS["arrow"].suffixes)
    ):
        raise DataError(Fault("not-arrow", f"it begins with {head[:8]!r}", source.path))
    shown = head.splitlines()[0][:60].decode("utf-8", "replace")
    if Path(source.path).name.startswith(("scores", "evaluation_report")):
        raise UsageError(f"{source.path} holds scores, not a log\n  fix: lagging.read_scores reads it, in Python.")
    raise UsageError(
        f"the format of {source.path} is not recognised; it begins: {shown!r}\n"
        f"  Known formats: {', '.join(FORMATS)}.\n"
        "  fix: name it with `--format-in` (format=… in Python), or convert the log; `text` is a prediction per line."
    )


def _scan(paths: Paths, options: Options, name: str | None, progress: Callable[[int], None] | None) -> Iterator[Run]:
    """The parts of one system's log; faults and notes are left in `options`."""
    check_units(options.unit, options.level)
    chosen = format_named(options.format) if options.format else None
    sources = [s for path in ([paths] if isinstance(paths, str | Path) else paths) for s in resolve(path)]
    if not sources:
        raise UsageError("no log was given")
    if len(sources) > 1:
        options.notes.append(Note("several files", f"{len(sources)} files are read as the log of one system"))
    options.notes += [note for source in sources for note in unfinished(source)]
    seen = SeenIds()
    held: Run | None = None
    first: Run | None = None
    aside = options.quarantine is not None
    told: set[str] = set()  # kinds of what was set aside
    if aside:
        options.faults.limit = sys.maxsize  # they are told of part by part, and not kept
    for source in sources:
        source.progress, before = progress, len(seen)
        parts, left_out = partial(_parts, source, options, chosen), set[int]()
        for found in guarded(parts, source, options) if aside else parts():
            part = found
            if aside:
                part = without(part, drained(options, left_out, told))
                unlike = [] if first is None or not len(part.delays.values) else [*_unlike(part, first)]
                options.faults.add(*each(part, unlike), *(() if unlike else seen.repeated(part).values()))
                part = without(part, drained(options, left_out, told))
                if not len(part):
                    continue
            if options.strip and not options.faults:
                part = strip_tokens(_with_notes(part, options, part.name), options.strip)
            seen.add(part)
            if first is None:
                first = part
            if len(part.delays.values) and not len(first.delays.values):
                first = part  # what nothing was written in tells nothing
            if part.origin.path != first.origin.path and len(part.delays.values):
                options.faults.add(*_unlike(part, first))
            if held is not None and not (options.stop and options.faults):
                yield held
            held = _with_notes(part, options, name or part.name or system_name(source))
        options.marked(source)
        if aside:
            drained(options, left_out, told)
        options.placed = options.placed + len(left_out) + len(seen) - before
    options.faults.add(*seen.faults(options.refused))
    options.notes.extend(() if options.faults else seen.gaps())
    if first is None and not options.faults:
        kind = "nothing-left" if told - {"empty-log"} else "empty-log"
        options.faults.add(Fault(kind, path=sources[0].path))
    # the last part waits for the notes that come at the end of a file
    if held is not None and not (options.stop and options.faults):
        yield _with_notes(held, options, held.name)


def _parts(source: Source, options: Options, chosen: Format | None) -> Iterator[Run]:
    """The parts of one file; none, and a fault, if it is empty."""
    try:
        known = _recognise(source, options.column_map) if chosen is None else chosen
    except DataError as error:
        options.faults.add(*error.faults)
        return
    if known is None:
        options.faults.add(Fault("empty-log", path=source.path))
        return
    if (options.by or options.column_map) and not known.columns:
        raise UsageError(f"{source.path}: --by and --column-map need columns with names, and {known.name} has none")
    try:
        yield from known.scan(source, replace(options, format=known.name))
    except DataError as error:  # what makes the rest of a file unreadable, beside what was wrong before
        options.faults.add(*error.faults)


def _unlike(part: Run, first: Run) -> Iterator[Fault]:
    """Why a file cannot be read together with the one before."""
    for what in ("unit", "level", "seg"):
        if getattr(part, what) != getattr(first, what):
            detail = f"{getattr(part, what)}, but {getattr(first, what)} in {first.origin.path}"
            yield Fault(f"mixed-{what}", detail, part.origin.path)
    if (part.prediction is None) != (first.prediction is None):
        without, other = (part, first) if part.prediction is None else (first, part)
        yield Fault("missing-prediction", f"other lines are in {other.origin.path}", without.origin.path)


def _with_notes(part: Run, options: Options, name: str) -> Run:
    """The part with the notes that have come in since the last one, and the lines that were left out."""
    torn = [Note("torn", f"the last line breaks off, and is left out: {place}") for place in options.torn]
    notes = merge_notes([*part.notes, *options.notes, *torn])
    repaired = add_counts(part.repaired, [("torn", len(torn))])
    options.notes.clear()
    options.torn.clear()
    return replace(part, name=name, notes=notes, repaired=repaired)


def system_name(source: Source) -> str:
    """What a system is called if nobody named it: its directory for an instances.log, else the file."""
    if source.file is None:
        return "stdin"
    if source.file.name.startswith(("instances.", "metrics.json")):
        return source.file.resolve().parent.name
    name = source.file.name.removesuffix(".gz")
    endings = [ending for known in FORMATS.values() for ending in known.suffixes]
    return next((name.removesuffix(ending) for ending in endings if name.endswith(ending)), name)


def scan(
    paths: Paths,
    *,
    format: str | None = None,
    level: str | None = None,
    unit: str | None = None,
    unit_hint: str | None = None,
    spm_model: str | Path | None = None,
    repair: Iterable[str] = (),
    strip: Iterable[str] = (),
    columns: Iterable[str] | None = None,
    name: str | None = None,
    progress: Callable[[int], None] | None = None,
    group_by: Iterable[str] = (),
    column_map: Mapping[str, str] | None = None,
    quarantine: Callable[[Fault], None] | None = None,
) -> Iterator[Run]:
    r"""A log as a sequence of Runs: memory does not grow with the log, but by the names of its segments.

    Where nothing is known of a segment before the file has been read to its end, the file is one Run: simulstream,
    fairseq, and SLTev beside a transcript and a reference.

    Args:
        paths: a file, a directory that holds one log, a glob, several of them, or "-" for standard input.
        format: "simuleval", "omnisteval", "simulstream", "jsonl", "rw", "sltev", "fairseq", "csv", "tsv", "parquet",
            "arrow" or "text"; recognised if not given, but for text.
        level: what a target token is: "word", "char", "token", or "spm" with a model; found out if not given.
        unit: "token" or "ms"; found out if not given.
        unit_hint: the unit to take where the log leaves it to be guessed.
        spm_model: the SentencePiece model whose pieces the delays count.
        repair: names of repairs; `first` and `last` need the whole log, and give it as one Run.
        strip: kinds of target tokens to leave out with their delays; see `lagging.strip`.
        columns: columns wanted beyond those that a latency score needs ("elapsed", "source", "document", …); all if
            not given.
        name: name of the system.
        progress: called with the number of bytes read since the last call.
        group_by: names of the columns that segments are grouped by; their labels are in `Run.group`.
        column_map: what the log calls a column of ours, such as {"delays": "emission_ms"}.
        quarantine: called with every fault; rows with faults are then left out, and all others are read. Of several
            segments with one id the first counts; files that are unlike the first are left out.

    Yields:
        Runs, in the order of the log.

    Raises:
        DataError: after the last part, if anything was wrong anywhere: every fault at once.
        UsageError: no such file, or a format that is not recognised.

    Example:
        >>> import tempfile, pathlib
        >>> log = pathlib.Path(tempfile.mkdtemp()) / "antagonist.rw"
        >>> _ = log.write_text("RRRRWRWWWW\nRRRRWWWWRW\n")
        >>> [run.delays.tolist() for run in scan(log)]
        [[[4.0, 5.0, 5.0, 5.0, 5.0], [4.0, 4.0, 4.0, 4.0, 5.0]]]
    """
    options = ReadOptions.make(
        format=format,
        level=level,
        unit=unit,
        unit_hint=unit_hint,
        spm_model=spm_model,
        repair=repair,
        strip=strip,
        columns=columns,
        column_map=column_map,
        group_by=group_by,
    )
    return scan_log(paths, options, name=name, progress=progress, quarantine=quarantine)


def scan_log(
    paths: Paths,
    options: ReadOptions,
    *,
    name: str | None = None,
    progress: Callable[[int], None] | None = None,
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
    state = Options(
        options.format,
        options.level,
        options.unit,
        options.repair,
        options.columns,
        unit_hint=options.unit_hint,
        strip=options.strip,
        by=options.group_by,
        column_map=options.column_map,
        quarantine=quarantine,
    )
    if {"first", "last"} & set(options.repair):
        if quarantine is not None:
            raise UsageError("--repair first and last choose among segments of one id; --on-error quarantine does, too")
        return iter([_read_deduplicated(paths, state, name)])
    return _scan_or_raise(paths, state, name, progress)


def _scan_or_raise(
    paths: Paths, options: Options, name: str | None, progress: Callable[[int], None] | None
) -> Iterator[Run]:
    yield from _scan(paths, options, name, progress)
    if options.faults:
        raise DataError(options.faults)


def _read_deduplicated(paths: Paths, options: Options, name: str | None) -> Run:
    """The whole log, of several lines with one id the first or last: only then is it known what else is wrong."""
    run = repair(Run.concat(read_parts(paths, options, name)), options.repair)
    return strip_tokens(run, options.strip) if options.strip else run


def read_parts(paths: Paths, options: Options, name: str | None) -> list[Run]:
    """The parts of a log in which an id may be used several times, nothing stripped; any other fault is raised."""
    lenient = replace(options, strip=(), faults=Faults(mended=("duplicate-id", "id-in-two-files")))
    parts = list(_scan(paths, lenient, name, None))
    if lenient.faults:
        raise DataError(lenient.faults)
    return parts


def read(
    paths: Paths,
    *,
    format: str | None = None,
    level: str | None = None,
    unit: str | None = None,
    spm_model: str | Path | None = None,
    repair: Iterable[str] = (),
    strip: Iterable[str] = (),
    name: str | None = None,
    column_map: Mapping[str, str] | None = None,
) -> Run:
    r"""A log as one Run.

    Args:
        paths: a file, a directory that holds one log, a glob, several of them, or "-" for standard input.
        format: "simuleval", "omnisteval", "simulstream", "jsonl", "rw", "sltev", "fairseq", "csv", "tsv", "parquet",
            "arrow" or "text"; recognised if not given, but for text.
        level: what a target token is: "word", "char", "token", or "spm" with a model; found out if not given.
        unit: "token" or "ms"; found out if not given.
        spm_model: the SentencePiece model whose pieces the delays count.
        repair: names of repairs: "monotone", "clip", "first", "last", "torn".
        strip: kinds of target tokens to leave out with their delays: "eos", "tags", "punctuation"; see `lagging.strip`.
        name: name of the system; the name of the directory or file if not given.
        column_map: what the log calls a column of ours, such as {"delays": "emission_ms"}.

    Raises:
        DataError: with every fault of the log at once.
        UsageError: no such file, or a format that is not recognised.

    Example:
        >>> import tempfile, pathlib
        >>> log = pathlib.Path(tempfile.mkdtemp()) / "wait-4.jsonl"
        >>> _ = log.write_text('{"delays": [4, 5, 5, 5, 5], "source_length": 5}\n')
        >>> read(log)
        Run('wait-4', 1 segment, 5 tokens, token)
    """
    options = ReadOptions.make(
        format=format, level=level, unit=unit, spm_model=spm_model, repair=repair, strip=strip, column_map=column_map
    )
    return Run.concat(list(scan_log(paths, options, name=name)))


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


def validate(
    paths: Paths,
    *,
    format: str | None = None,
    level: str | None = None,
    unit: str | None = None,
    spm_model: str | Path | None = None,
    column_map: Mapping[str, str] | None = None,
) -> Validation:
    r"""Everything that is wrong with a log, and everything that a reader of its scores must know.

    Args:
        paths: a file, a directory that holds one log, a glob, several of them, or "-" for standard input.
        format, level, unit, spm_model, column_map: as in `read`.

    Example:
        >>> import tempfile, pathlib
        >>> log = pathlib.Path(tempfile.mkdtemp()) / "bad.jsonl"
        >>> _ = log.write_text('{"delays": [4, 3], "source_length": 5}\n{"delays": [1, "2"], "source_length": 5}\n')
        >>> for fault in validate(log).faults:
        ...     print(str(fault).removeprefix(str(log)))
        :1: segment 0, token 2: delays decrease: 4 → 3
        :2: token 2: a delay is not a number: "2"
    """
    return validate_log(
        paths,
        ReadOptions.make(format=format, level=level, unit=unit, spm_model=spm_model, column_map=column_map),
    )


def validate_log(paths: Paths, options: ReadOptions) -> Validation:
    """Everything that is wrong with a log, like `validate`, with all options in one object."""
    state = Options(options.format, options.level, options.unit, stop=False, column_map=options.column_map)
    segments = 0
    notes: list[Note] = []
    origins: dict[Origin, None] = {}
    for part in _scan(paths, state, None, None):
        segments += len(part)
        notes += part.notes
        origins[part.origin] = None
    faults = state.faults
    return Validation(
        faults.sorted(), dict(faults.counts), merge_notes([*notes, *state.notes]), segments, tuple(origins)
    )


def format_for(path: str | Path, name: str | None = None) -> Format:
    """The format to write a file in: the one named, or the one that the ending of the path names."""
    if name is not None:
        return format_named(name)
    file = Path(path).name.lower()
    fitting = [f for f in FORMATS.values() if file.endswith(f.suffixes)]
    if not fitting:
        raise UsageError(f"the ending of {path} names no format; give one of {', '.join(FORMATS)}")
    return fitting[0]


def write(run: Run, path: str | Path, *, format: str | None = None) -> list[str]:
    r"""Write a Run to a file, all of it or nothing.

    Args:
        run: what to write.
        path: the file; "-" for standard output.
        format: as in `read`; by the ending of the path if not given.

    Returns:
        The columns that the format cannot hold.

    Example:
        >>> import tempfile, pathlib
        >>> log = pathlib.Path(tempfile.mkdtemp()) / "wait-2.rw"
        >>> write(Run.from_delays([[2, 3, 3]], source_length=[3], elapsed=[[60, 90, 95]]), log)
        ['elapsed']
        >>> log.read_text()
        'RRWRWW\n'
    """
    chosen = format_for(path, format)
    if str(path) == "-":
        return chosen.write(run, sys.stdout.buffer if chosen.binary else sys.stdout)
    with write_whole(path, binary=chosen.binary) as file:
        return chosen.write(run, file)
