# SPDX-License-Identifier: Apache-2.0
"""The formats there are: how each is recognised, read and written. Its module is imported when it is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from lagging.errors import DataError, Fault, UsageError, did_you_mean
from lagging.formats.run_folder import beside_a_log
from lagging.formats.source import Source

if TYPE_CHECKING:
    from lagging.data.run import Run
    from lagging.formats.options import ReadOptions
    from lagging.formats.report import ReadReport

__all__ = ["FORMATS", "Format", "format_for", "format_named", "recognise"]


def _load(function: str) -> Any:
    module, name = function.split(".")
    return getattr(import_module(f"lagging.formats.{module}"), name)


@dataclass(frozen=True)
class Format:
    """A log format.

    Attributes:
        name: as given to `--format-in`.
        title: for people.
        recogniser: module and function; given the first lines of a file, it says yes, or the name of the format.
        reader: module and function, from a Source, ReadOptions and a ReadReport to Runs.
        writer: module and function; given a Run and an open file, it returns what the format could not hold.
        suffixes: endings of files that are written in it.
        binary: whether its files are bytes.
        remembers: whether its files say what had been repaired and stripped.
        untimed: whether its files may be without delays.
        speech: whether its files may be of output speech, and say so.
    """

    name: str
    title: str
    recogniser: str
    reader: str
    writer: str
    suffixes: tuple[str, ...]
    binary: bool = False
    remembers: bool = False
    untimed: bool = False
    speech: bool = False

    @property
    def columns(self) -> bool:
        """Whether its files have columns, or keys, with names that may be others than ours."""
        return self.reader in (_JSON[1], _TABLE[1], _ARROW[1])

    def recognises(self, head: bytes) -> bool:
        """Whether a file that begins like this is in this format."""
        return _load(self.recogniser)(head) in (True, self.name)

    def scan(self, source: Source, options: ReadOptions, report: ReadReport) -> Iterator[Run]:
        """The segments of a file, in parts; faults and notes go into the report."""
        parts: Iterator[Run] = _load(self.reader)(source, options, report)
        return parts

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


_JSON = ("schema.recognise", "jsonl.scan")
_TABLE = ("delimited.recognise", "delimited.scan")
_ARROW = ("parquet.recognise", "parquet.scan")
_ALL = (
    Format(
        "simuleval",
        "SimulEval's instances.log",
        *_JSON,
        "jsonl_writer.write_simuleval",
        (".log",),
        untimed=True,
        speech=True,
    ),
    Format(
        "omnisteval",
        "OmniSTEval's instances.resegmented.jsonl",
        *_JSON,
        "jsonl_writer.write_omnisteval",
        (".resegmented.jsonl",),
        untimed=True,
    ),
    Format(
        "simulstream",
        "simulstream's metrics.jsonl",
        "schema.recognise",
        "simulstream.scan",
        "simulstream_writer.write",
        (".metrics.jsonl",),
    ),
    Format(
        "jsonl",
        "JSON lines with `delays` and `source_length`",
        *_JSON,
        "jsonl_writer.write_jsonl",
        (".jsonl", ".json", ".ndjson"),
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
        remembers=True,
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
        remembers=True,
        untimed=True,
        speech=True,
    ),
    Format(
        "text", "plain text, a prediction per line", "plain.recognise", "plain.scan", "plain.write", (), untimed=True
    ),
)
FORMATS = {f.name: f for f in _ALL}
"""By name, in the order in which a file is asked whether it is one."""


def format_named(name: str) -> Format:
    """The format of that name."""
    if name not in FORMATS:
        raise UsageError(f"no format is called {name!r}.{did_you_mean(name, FORMATS)}")
    return FORMATS[name]


def format_for(path: str | Path, name: str | None = None) -> Format:
    """The format to write a file in: the one named, or the one that the ending of the path names."""
    if name is not None:
        return format_named(name)
    file = Path(path).name.lower()
    fitting = [f for f in FORMATS.values() if file.endswith(f.suffixes)]
    if not fitting:
        raise UsageError(f"the ending of {path} names no format; give one of {', '.join(FORMATS)}")
    return fitting[0]


def recognise(source: Source, column_map: Mapping[str, str] | None = None) -> Format | None:
    """The format of a file, whose columns may have other names; None if it is empty.

    Raises:
        UsageError: it is in no format that is known.
        DataError: it is almost in one: a JSON list, or a Parquet file that does not begin like one.
    """
    head = source.head()
    if not head.strip():
        return None
    beside_a_log(source, head)
    for known in FORMATS.values():
        if known.recognises(head):
            return known
    if column_map:
        from lagging.formats.delimited import recognise as recognise_table

        if (table := recognise_table(head, column_map)) is not None:
            return FORMATS[table]
    if head.lstrip().startswith(b"["):
        raise DataError(Fault("json-array", path=source.path, line=1))
    binary = (*FORMATS["parquet"].suffixes, *FORMATS["arrow"].suffixes)
    if source.file is not None and source.file.name.endswith(binary):
        raise DataError(Fault("not-arrow", f"it begins with {head[:8]!r}", source.path))
    if Path(source.path).name.startswith(("scores", "evaluation_report")):
        raise UsageError(f"{source.path} holds scores, not a log\n  fix: lagging.read_scores reads it, in Python.")
    shown = head.splitlines()[0][:60].decode("utf-8", "replace")
    raise UsageError(
        f"the format of {source.path} is not recognised; it begins: {shown!r}\n"
        f"  Known formats: {', '.join(FORMATS)}.\n"
        "  fix: name it with `--format-in` (format=… in Python), or convert the log; `text` is a prediction per line."
    )
