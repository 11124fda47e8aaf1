# SPDX-License-Identifier: Apache-2.0
"""Where bytes come from: a file, a directory, a glob, standard input; in batches of whole lines, with line numbers."""

from __future__ import annotations

import glob
import io
import os
import sys
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np

from lagging.data.ragged import Ints
from lagging.errors import DataError, Fault, UsageError

if TYPE_CHECKING:
    from lagging.formats.schema import LogSchema

__all__ = ["Batch", "ByteRange", "RowGroups", "Source", "first_line", "own_path", "resolve", "resolve_all"]

BATCH_BYTES = 1 << 17
"""Bytes per batch: small enough that what a batch decodes to stays in the processor's cache (measured)."""

LONGEST_LINE = 1 << 28
"""The most bytes that a line may have: a longer one means no lines, or no end. A day of speech has some millions."""

VARIABLE = "LAGGING_LONGEST_LINE"
"""The environment variable that sets another limit, in bytes."""

LONGEST_BLANK = 1 << 24
"""The most bytes of blank lines at the start of a file."""

LARGEST_TEXT = 4
"""How many times the longest line a file may have that is read into memory whole."""

LOG_NAMES = (
    "instances.log",
    "instances.jsonl",
    "instances.log.gz",
    "instances.jsonl.gz",
    "instances.resegmented.jsonl",
    "instances.resegmented.json",
    "metrics.jsonl",
    "metrics.jsonl.gz",
    "simulstream_output.json",
    "simulstream_output.jsonl",
)
SCORES = ("scores.", "metrics.tsv")
"""How the names of files begin that hold the scores of a log beside them."""
MOST_FILES = 200
"""How many files of a folder are looked at to find a log."""
ENDINGS = ("log", "jsonl", "parquet", "arrow", "csv", "tsv", "slt")
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Batch:
    """Some whole lines of a file.

    Attributes:
        first: number of the first line.
        text: the lines, each with its line break, but for the last line of a file without one.
        starts: where each begins.
        at: the line of the file that each of them is, where that is not the number of its place: see `json_values`.
    """

    first: int
    text: bytes
    starts: Ints
    at: tuple[int, ...] | None = None

    @property
    def numbers(self) -> Sequence[int]:
        """The line of the file that each line is, for messages."""
        return range(self.first, self.first + len(self.starts)) if self.at is None else self.at

    @property
    def lines(self) -> list[bytes]:
        """The lines one by one."""
        return io.BytesIO(self.text).readlines()


@dataclass(frozen=True)
class ByteRange:
    """Some whole lines of a file.

    Attributes:
        start, stop: the bytes.
        first: the number of the first line.
        count: the number of lines.
    """

    start: int
    stop: int
    first: int
    count: int


@dataclass(frozen=True)
class RowGroups:
    """Some row groups of a Parquet file.

    Attributes:
        start, stop: the numbers of the row groups.
        first: the number of the first row, from 1.
        count: the number of rows.
    """

    start: int
    stop: int
    first: int
    count: int


@dataclass
class Source:
    """One file to read.

    Attributes:
        path: as shown in messages.
        file: the path; None for standard input.
        progress: called with the number of bytes read, after each batch.
        bom: whether a byte order mark was found.
        portion: the lines, or row groups, to read; None for all.
        schema: what the log is, once that is resolved, so that other portions need not resolve it again.
        folder: the folder that stands for this file and others, each a recording of one system.
    """

    path: str
    file: Path | None
    progress: Callable[[int], None] | None = None
    bom: bool = field(default=False, init=False)
    portion: ByteRange | RowGroups | None = None
    schema: LogSchema | None = None
    folder: Path | None = None
    _resumed: Iterator[Batch] | None = field(default=None, init=False, repr=False)
    _head: bytes = field(default=b"", init=False, repr=False)

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        if self.file is None and sys.stdin is None:
            raise UsageError("there is no standard input to read")
        try:
            with nullcontext(sys.stdin.buffer) if self.file is None else self.file.open("rb") as stream:
                if cast("io.BufferedReader", stream).peek(2)[:2] == b"\x1f\x8b":
                    import gzip

                    with gzip.open(stream) as unpacked:
                        yield cast("BinaryIO", io.BufferedReader(unpacked))
                else:
                    yield stream
        except OSError as error:
            raise UsageError(f"cannot read {self.path}: {error.strerror or error}") from None
        except (EOFError, zlib.error) as error:
            raise UsageError(f"cannot unpack {self.path}: {error}") from None

    def start(self) -> bytes:
        """The first bytes of a regular file; b"" for a pipe, which can be read only once."""
        if self.file is None or not self.file.is_file():
            return b""
        with self._open() as stream:
            return cast("io.BufferedReader", stream).peek(8)[:8]

    def head(self) -> bytes:
        """The first lines, up to one that is not blank; `batches` will give them again."""
        if self._resumed is not None:
            return self._head
        seen: list[Batch] = []
        batches = self._read()
        for batch in batches:
            seen.append(batch)
            if batch.text.strip():
                break
            if sum(len(part.text) for part in seen) > LONGEST_BLANK:
                detail = f"nothing but blank lines in the first {LONGEST_BLANK >> 20} MiB"
                raise DataError(Fault("empty-log", detail, self.path))
        self._resumed = chain(seen, batches)  # a pipe can be read only once
        self._head = seen[-1].text if seen else b""
        return self._head

    def give(self, batch: Batch) -> None:
        """Have `head` and `batches` give these lines instead of those of the file."""
        self._head, self._resumed = batch.text, iter([batch])

    def batches(self) -> Iterator[Batch]:
        """The lines, in order."""
        resumed, self._resumed = self._resumed, None
        return self._read() if resumed is None else resumed

    def whole(self) -> bytes:
        """All bytes of a file, up to a limit."""
        limit, texts, size = LARGEST_TEXT * longest_line(), list[bytes](), 0
        for batch in self.batches():
            texts.append(batch.text)
            size += len(batch.text)
            if size > limit:
                raise DataError(Fault("too-large", f"more than {limit} bytes", self.path, batch.first))
        return b"".join(texts)

    def _rest(self, stream: BinaryIO, text: bytes, line: int) -> bytes:
        """The rest of the last line of a text; `line` is the number of its first."""
        limit, begun = longest_line(), len(text) - text.rfind(b"\n") - 1
        rest = stream.readline(max(limit - begun, 0) + 1)
        if begun + len(rest) > limit:
            raise DataError(
                Fault("too-large", f"a line of more than {limit} bytes", self.path, line + text.count(b"\n"))
            )
        return rest

    def seek_portion(self) -> None:
        """Have `batches` give the lines of the portion next."""
        self._resumed = self._read(self.portion)

    def byte_ranges(self, lines: int) -> Iterator[ByteRange]:
        """Divide the file into ranges of so many lines or a few more: each is some of the batches of `batches`."""
        with self._open() as stream:
            start, stop, first, count = 0, 0, 1, 0
            while text := stream.read(BATCH_BYTES):
                if count >= lines:
                    yield ByteRange(start, stop, first, count)
                    start, first, count = stop, first + count, 0
                torn = not text.endswith(b"\n")
                stop += len(text) + (len(self._rest(stream, text, first + count)) if torn else 0)
                count += int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord("\n"))) + torn
            yield ByteRange(start, stop, first, count)

    def _read(self, portion: ByteRange | RowGroups | None = None) -> Generator[Batch]:
        with self._open() as stream:
            first, left = 1, sys.maxsize
            if portion is not None:
                stream.seek(portion.start)
                first, left = portion.first, portion.stop - portion.start
            too_long: DataError | None = None
            while too_long is None and (text := stream.read(min(BATCH_BYTES, left))):
                left -= len(text)
                if not text.endswith(b"\n"):
                    try:
                        rest = self._rest(stream, text, first)
                    except DataError as error:  # raised after the lines before it were read
                        too_long, rest, text = error, b"", text[: text.rfind(b"\n") + 1]
                    text += rest
                    left -= len(rest)
                if self.progress is not None:
                    self.progress(len(text))
                if first == 1 and text.startswith(BOM):
                    self.bom = True
                    text = text[len(BOM) :]
                if too_long is not None and not text:
                    break
                ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
                whole = text.endswith(b"\n")
                starts = np.concatenate([[0], ends[:-1] + 1 if whole else ends + 1])
                yield Batch(first, text, starts)
                first += len(starts)
                if not whole:
                    return  # the end: a line that is appended meanwhile is not read
            if too_long is not None:
                raise too_long

    @property
    def size(self) -> int | None:
        """Bytes in the file, where it can be known."""
        return self.file.stat().st_size if self.file is not None else None


def longest_line() -> int:
    """How many bytes a line may have."""
    setting = os.environ.get(VARIABLE, "")
    if not setting:
        return LONGEST_LINE
    if not setting.isdecimal() or not 0 < len(setting) <= 18 or int(setting) == 0:
        raise UsageError(f"{VARIABLE} is a number of bytes, but is {setting!r}")
    return int(setting)


def own_path(path: str | Path) -> Path:
    """The absolute path of a file, with the names of symbolic links instead of what they lead to."""
    return Path(os.path.abspath(path))  # noqa: PTH100 (resolve would follow them)


def first_line(head: bytes) -> bytes:
    """The first line that is not blank."""
    return next((line for line in head.splitlines() if line.strip()), b"")


def resolve_all(paths: str | Path | Sequence[str | Path]) -> list[Source]:
    """The files that one or several paths refer to, in order."""
    return [source for path in ([paths] if isinstance(paths, str | Path) else paths) for source in resolve(path)]


def resolve(path: str | Path) -> list[Source]:
    """The files that a path refers to.

    Args:
        path: a file; a directory that holds an `instances.log`; a glob; or "-" for standard input.
    """
    text = str(path)
    if text == "-":
        return [Source("<stdin>", None)]
    file = Path(path)
    try:
        if file.is_dir():
            return _in_directory(file)
        if file.exists():
            return [Source(text, file)]
    except OSError as error:  # for example, a name that no file can have
        raise UsageError(f"cannot read {text[:80]}: {error.strerror}") from None
    matches = [match for match in sorted(glob.glob(text, recursive=True)) if Path(match).exists()]
    if not matches:
        raise UsageError(f"no such file or directory: {text}")
    return [source for match in matches for source in resolve(match)]


def _in_directory(directory: Path) -> list[Source]:
    """The log of a folder: by its name, by its ending, or the only file that is recognised as one.

    Event streams may be several: each is a recording.
    """
    logs = [directory / name for name in LOG_NAMES if (directory / name).is_file()]
    if not logs:
        from lagging.formats.sniff import find_format, is_log

        def recognised(files: list[Path]) -> list[Path]:
            return [file for file in files[:MOST_FILES] if file.is_file() and is_log(Source(str(file), file))]

        all_files = sorted(file for file in directory.iterdir() if not file.name.startswith((".", *SCORES)))
        endings = tuple(f".{ending}{packed}" for ending in ENDINGS for packed in ("", ".gz"))
        by_ending = [file for file in all_files if file.is_file() and file.name.endswith(endings)]
        logs = recognised(by_ending) or recognised(all_files) or by_ending
        if 1 < len(logs) == len(recognised(logs)) and len(all_files) <= MOST_FILES:
            recordings = [Source(str(file), file, folder=directory) for file in logs]
            kinds = {known.name for file in logs if (known := find_format(Source(str(file), file))) is not None}
            if kinds == {"stream"}:
                return recordings
    if len(logs) != 1:
        what, hint = "no instances.log, and nothing else in it is recognised as a log", ""
        if logs:
            what = f"several logs ({', '.join(f.name for f in logs[:5])})"
            hint = f", or quote a glob if they are recordings of one system: '{directory / ('*' + logs[0].suffix)}'"
        raise UsageError(f"{directory} holds {what}; name the file{hint}")
    return [Source(str(logs[0]), logs[0])]
