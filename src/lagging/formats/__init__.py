# SPDX-License-Identifier: Apache-2.0
"""Logs in, Runs out, and back: one small module per format.

`read` gives a whole Run, `scan` gives it in parts, `validate` lists what is wrong, `write` writes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from lagging.data.files import write_whole
from lagging.data.run import Run
from lagging.errors import Fault
from lagging.formats.jsonl_writer import contradict_config
from lagging.formats.options import ReadKeywords, ReadOptions
from lagging.formats.reader import Paths, Validation, read_parts, scan_log, system_name, validate_log
from lagging.formats.registry import FORMATS, Format, format_for, format_named, outside_formats
from lagging.formats.report import ReadReport
from lagging.formats.source import Source

__all__ = [
    "FORMATS",
    "Format",
    "Paths",
    "ReadKeywords",
    "ReadOptions",
    "ReadReport",
    "Source",
    "Validation",
    "format_for",
    "format_named",
    "outside_formats",
    "read",
    "read_parts",
    "scan",
    "scan_log",
    "system_name",
    "validate",
    "validate_log",
    "write",
]


def scan(
    paths: Paths,
    *,
    name: str | None = None,
    progress: Callable[[int], None] | None = None,
    quarantine: Callable[[Fault], None] | None = None,
    columns: Iterable[str] | None = None,
    **options: Unpack[ReadKeywords],
) -> Iterator[Run]:
    r"""A log as a sequence of Runs: memory does not grow with the log, but by the names of its segments.

    Where nothing is known of a segment before the file has been read to its end, the file is one Run: simulstream,
    fairseq, and SLTev beside a transcript and a reference.

    Args:
        paths: a file, a directory that holds one log, a glob, several of them, or "-" for standard input.
        name: name of the system.
        progress: called with the number of bytes read since the last call.
        quarantine: called with every fault; rows with faults are then left out, and all others are read. Of several
            segments with one id the first counts; files that are unlike the first are left out.
        columns: columns to read beyond those that a latency score needs ("elapsed", "source", "document", …); all if
            not given.
        options: as in `read`. The repairs `first` and `last`, and `word_times`, need the whole log, and give it as one
            Run.

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
    requested = replace(ReadOptions.make(**options), columns=None if columns is None else frozenset(columns))
    return scan_log(paths, requested, name=name, progress=progress, quarantine=quarantine)


def read(
    paths: Paths,
    *,
    name: str | None = None,
    **options: Unpack[ReadKeywords],
) -> Run:
    r"""A log as one Run.

    Args:
        paths: a file, a directory that holds one log, a glob, several of them, or "-" for standard input.
        name: name of the system; the name of the directory or file if not given.
        format: "simuleval", "omnisteval", "simulstream", "stream", "s2s", "trajectory", "jsonl", "rw", "sltev",
            "fairseq", "csv", "tsv", "parquet", "arrow" or "text"; recognised if not given, except text.
        level: what a target token is: "word", "char", "token", or "spm" with a model; detected if not given.
        unit: "token" or "ms"; detected if not given.
        unit_hint: the unit to take where the log leaves it to be guessed.
        spm_model: the SentencePiece model whose pieces the delays count.
        repair: names of repairs: "monotone", "clip", "first", "last", "torn".
        strip: kinds of target tokens to leave out with their delays: "eos", "tags", "punctuation"; see `lagging.strip`.
        column_map: the name that the log has for a column of ours, such as {"delays": "emission_ms"}.
        group_by: names of the columns that segments are grouped by; their labels are in `Run.group`.
        source_length: length of the source of each recording of an event stream, in ms; its last time if not given.
        time_unit: unit of the times of an event stream, "s" or "ms", where its dialect has both.
        word_times, word_alignment, aligned_with: as in `lagging.with_word_times`.

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
    return Run.concat(list(scan_log(paths, ReadOptions.make(**options), name=name)))


def validate(paths: Paths, **options: Unpack[ReadKeywords]) -> Validation:
    r"""Everything that is wrong with a log, and everything that a reader of its scores must know.

    Args:
        paths: a file, a directory that holds one log, a glob, several of them, or "-" for standard input.
        options: as in `read`.

    Example:
        >>> import tempfile, pathlib
        >>> log = pathlib.Path(tempfile.mkdtemp()) / "bad.jsonl"
        >>> _ = log.write_text('{"delays": [4, 3], "source_length": 5}\n{"delays": [1, "2"], "source_length": 5}\n')
        >>> for fault in validate(log).faults:
        ...     print(str(fault).removeprefix(str(log)))
        :1: segment 0, token 2: delays decrease: 4 → 3
        :2: token 2: a delay is not a number: "2"
    """
    return validate_log(paths, ReadOptions.make(**options))


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
        losses = chosen.write(run, sys.stdout.buffer if chosen.binary else sys.stdout)
    else:
        with write_whole(path, binary=chosen.binary) as file:
            losses = chosen.write(run, file)
            if chosen.name == "simuleval" and not any(loss.startswith("unit") for loss in losses):
                losses += contradict_config(run, Path(path))
    if run.spoken is not None:
        losses.append("word times (give them again with --word-times)")
    if run.transcribed:
        losses.append("that the texts are transcripts (give them again with --hypothesis)")
    return losses
