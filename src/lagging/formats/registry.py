# SPDX-License-Identifier: Apache-2.0
"""The formats there are: ours, whose modules are imported when they are needed, and those of other packages."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from lagging.data.plugins import load_plugins
from lagging.errors import LaggingError, UsageError, did_you_mean

if TYPE_CHECKING:
    from lagging.data.run import Run
    from lagging.formats.options import ReadOptions
    from lagging.formats.report import ReadReport
    from lagging.formats.source import Source

    Recogniser = Callable[[bytes], bool | str | None]
    Reader = Callable[[Source, ReadOptions, ReadReport], Iterator[Run]]
    Writer = Callable[[Run, IO[Any]], list[str]]

__all__ = ["FORMATS", "Format", "format_for", "format_named", "outside_formats"]


def _load(function: Any) -> Any:
    """A function; one of ours may be named by its module and name."""
    if not isinstance(function, str):
        return function
    module, name = function.split(".")
    return getattr(import_module(f"lagging.formats.{module}"), name)


@dataclass(frozen=True)
class Format:
    """A log format. Another package gives one through the entry point group `lagging.formats`.

    Attributes:
        name: as given to `--format-in`.
        title: for people.
        recogniser: given the first lines of a file, it returns whether it is this format, or the name of the format.
        reader: from a Source, ReadOptions and a ReadReport to Runs.
        writer: given a Run and an open file, it returns what the format could not hold.
        suffixes: endings of files that are written in it.
        magic: the bytes that every file of the format begins with; b"" if there are none.
        binary: whether its files are bytes.
        columns: whether its files have columns, or keys, whose names may be others than ours.
        remembers: whether its files say what had been repaired and stripped.
        untimed: whether its files may be without delays.
        speech: whether its files may be of output speech, and say so.
        json: whether its files are JSON objects, one per line, in an array, or over several lines.
    """

    name: str
    title: str
    recogniser: Recogniser | str
    reader: Reader | str
    writer: Writer | str
    suffixes: tuple[str, ...] = ()
    magic: bytes = b""
    binary: bool = False
    columns: bool = False
    remembers: bool = False
    untimed: bool = False
    speech: bool = False
    json: bool = False

    def recognise(self, head: bytes) -> bool | str | None:
        """What the recogniser says of the first lines of a file."""
        answer: bool | str | None = _load(self.recogniser)(head)
        return answer

    def recognises(self, head: bytes) -> bool:
        """Whether a file that begins like this is in this format."""
        return self.recognise(head) in (True, self.name)

    def scan(self, source: Source, options: ReadOptions, report: ReadReport) -> Iterator[Run]:
        """The segments of a file, in parts; faults and notes go to the report.

        Raises:
            LaggingError: the reader is of another package, and failed.
        """
        parts: Iterator[Run] = _load(self.reader)(source, options, report)
        return parts if isinstance(self.reader, str) else self._guard(parts, source)

    def _guard(self, parts: Iterator[Run], source: Source) -> Iterator[Run]:
        """The parts that a reader of another package gives; what it raises is reported as an error of that reader."""
        try:
            yield from parts
        except (LaggingError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # it may call sys.exit
            reason = f"{type(error).__name__}: {error}"
            raise LaggingError(f"{source.path}: the reader of the format {self.name} failed: {reason}") from error

    def write(self, run: Run, file: IO[Any]) -> list[str]:
        """Write a Run. Returns what the format could not hold.

        Raises:
            UsageError: the Run has no times, and the format cannot be without; or its output is speech, and would be
                taken for text.
        """
        if run.speech_out and not self.speech:
            raise UsageError(
                f"the format {self.name} holds text, and what this Run has written is speech\n"
                "  fix: write jsonl, which holds everything (`--to`, format=… in Python)."
            )
        if run.unit == "none" and not self.untimed:
            raise UsageError(
                f"the format {self.name} holds delays, and this Run has none\n"
                "  fix: write jsonl, which holds everything, or text (`--to`, format=… in Python)."
            )
        lost: list[str] = _load(self.writer)(run, file)
        return lost


_JSON = ("json_kinds.recognise", "jsonl.scan")
_TABLE = ("delimited.recognise", "delimited.scan")
_ARROW = ("row_groups.recognise", "parquet.scan")
_ALL = (
    Format(
        "simuleval",
        "SimulEval's instances.log",
        *_JSON,
        "jsonl_writer.write_simuleval",
        (".log",),
        json=True,
        columns=True,
        untimed=True,
        speech=True,
    ),
    Format(
        "omnisteval",
        "OmniSTEval's instances.resegmented.jsonl",
        *_JSON,
        "jsonl_writer.write_omnisteval",
        (".resegmented.jsonl",),
        json=True,
        columns=True,
        untimed=True,
    ),
    Format(
        "simulstream",
        "simulstream's metrics.jsonl",
        "json_kinds.recognise",
        "simulstream.scan",
        "simulstream_writer.write",
        (".metrics.jsonl",),
        json=True,
    ),
    Format(
        "stream",
        "event streams: a line per update of what is shown (whisper_streaming, speech services and others)",
        "events.recognise",
        "events.scan",
        "events_writer.write",
        (".stream.jsonl",),
        json=True,
    ),
    Format(
        "s2s",
        "segments of output speech, a JSON array (Speech-to-Speech-Latency)",
        *_JSON,
        "jsonl_writer.write_s2s",
        (".resegmented.json",),
        json=True,
        columns=True,
    ),
    Format(
        "trajectory",
        "pairs of chunks, of the source read and of the target written",
        "json_kinds.recognise",
        "trajectory.scan",
        "trajectory.write",
        (".trajectory.jsonl",),
        json=True,
    ),
    Format(
        "jsonl",
        "JSON lines with `delays` and `source_length`",
        *_JSON,
        "jsonl_writer.write_jsonl",
        (".jsonl", ".json", ".ndjson"),
        json=True,
        columns=True,
        untimed=True,
        speech=True,
    ),
    Format("rw", "READ/WRITE strings", "rw.recognise", "rw.scan", "rw.write", (".rw", ".txt"), speech=True),
    Format("sltev", "SLTev's .slt", "sltev.recognise", "sltev.scan", "sltev.write", (".slt", ".asrt")),
    Format(
        "fairseq",
        "`Delay-` and `RW-` lines of programs derived from fairseq",
        "fairseq.recognise",
        "fairseq.scan",
        "fairseq.write",
        (".fairseq", ".out"),
    ),
    Format(
        "csv",
        "a table with commas or semicolons, and names of columns in the first line",
        *_TABLE,
        "delimited.write_csv",
        (".csv",),
        remembers=True,
        columns=True,
        untimed=True,
        speech=True,
    ),
    Format(
        "tsv",
        "the same with tabs",
        *_TABLE,
        "delimited.write_tsv",
        (".tsv", ".tab"),
        remembers=True,
        columns=True,
        untimed=True,
        speech=True,
    ),
    Format(
        "parquet",
        "a Parquet file with a row per segment",
        *_ARROW,
        "parquet_writer.write_parquet",
        (".parquet", ".pq"),
        binary=True,
        magic=b"PAR1",
        remembers=True,
        columns=True,
        untimed=True,
        speech=True,
    ),
    Format(
        "arrow",
        "the same as a file of Arrow's own format",
        *_ARROW,
        "parquet_writer.write_arrow",
        (".arrow", ".feather"),
        binary=True,
        magic=b"ARROW1",
        remembers=True,
        columns=True,
        untimed=True,
        speech=True,
    ),
    Format(
        "text", "plain text, a prediction per line", "plain.recognise", "plain.scan", "plain.write", (), untimed=True
    ),
)
FORMATS = {f.name: f for f in _ALL}
"""Our formats by name, in the order in which their recognisers see a file."""


@cache
def outside_formats() -> Mapping[str, Format]:
    """The formats of other packages, by name; a package that is broken is named in a warning, once.

    They are loaded when they are needed: finding them takes longer than reading a small log.
    """
    formats: dict[str, Format] = {}
    for plugin in load_plugins("lagging.formats"):
        values = plugin.value if isinstance(plugin.value, Iterable) else [plugin.value]
        error = plugin.error
        for value in () if error else values:
            if not isinstance(value, Format):
                error = f"{type(value).__name__} is not a lagging.formats.Format"
            elif value.name in FORMATS or value.name in formats:
                error = f"a format called {value.name!r} exists already"
            else:
                formats[value.name] = value
        if error:
            text = f"the format plug-in {plugin.name!r} cannot be used: {error}"
            warnings.warn(text, UserWarning, stacklevel=2)
    return formats


def format_named(name: str) -> Format:
    """The format of that name.

    Raises:
        UsageError: there is none.

    Example:
        >>> format_named("rw").title
        'READ/WRITE strings'
    """
    known = FORMATS.get(name) or outside_formats().get(name)
    if known is None:
        raise UsageError(f"no format is called {name!r}.{did_you_mean(name, [*FORMATS, *outside_formats()])}")
    return known


def format_for(path: str | Path, name: str | None = None) -> Format:
    """The format to write a file in: the one named, or the one that the ending of the path names.

    Raises:
        UsageError: there is none.

    Example:
        >>> format_for("base.csv").name, format_for("base.csv", "tsv").name
        ('csv', 'tsv')
    """
    if name is not None:
        return format_named(name)
    known = format_by_ending(Path(path).name.lower())
    if known is None:
        names = ", ".join([*FORMATS, *outside_formats()])
        raise UsageError(f"the ending of {path} names no format; give one of {names}")
    return known


def format_by_ending(file: str) -> Format | None:
    """The format whose files end like this one; None if there is none."""
    fitting = [known for known in FORMATS.values() if file.endswith(known.suffixes)]
    fitting = fitting or [known for known in outside_formats().values() if file.endswith(known.suffixes)]
    return fitting[0] if fitting else None
