# SPDX-License-Identifier: Apache-2.0
"""The log of a run, one line per sentence, which survives a crash.

The process that has translated a sentence appends its line, under a lock, before it takes the next sentence. A line
that the system has accepted survives the death of any process; `sync` makes it survive a loss of power. A line that was
written only in part has no line end, and the next writer adds one. When the run is resumed, such partial lines are
moved to `torn.txt`, and their sentences are translated again. At the end the lines are sorted.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from lagging.agents.runner.locks import Descriptor, Lock
from lagging.data.files import UNFINISHED, unwritable
from lagging.errors import LaggingError

__all__ = ["LOG", "TORN", "Contents", "Journal"]

LOG = "instances.log"
TORN = "torn.txt"


class _LineHead(msgspec.Struct):
    """The fields of a line that say which sentence it is, and whether it failed."""

    index: int
    failed: str | None = None
    kind: str | None = None
    traceback: str | None = None


_DECODER = msgspec.json.Decoder(_LineHead)


@dataclass
class Contents:
    """What a log contains.

    Attributes:
        positions: index of a sentence → offset and length of its line.
        failed: index → kind of failure, of the sentences that failed.
        reasons: kind of failure → message of the first such failure.
        torn: number of partial lines.
        sorted: whether the lines are sorted, and none is partial.
    """

    positions: dict[int, tuple[int, int]] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    torn: int = 0
    sorted: bool = True


class Journal:
    """The log of a run in a folder.

    Attributes:
        path: the log.
        lock: held by the process that writes.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOG
        self.lock = Lock(folder / ".log.lock")
        self._open()

    def _open(self) -> None:
        self._file = Descriptor.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        self._synced = self.size()
        self._scanned, self._written = 0, set[int]()
        if hasattr(os, "O_DIRECTORY"):  # makes the creation of the file survive a loss of power
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
            os.fsync(folder)
            os.close(folder)

    def size(self) -> int:
        """Number of bytes in the log."""
        return self._file.stat().st_size

    def append(self, line: bytes) -> None:
        """Write a line. The caller holds the lock.

        Raises:
            LaggingError: the disk is full; the part that was written is removed again.
        """
        size = self.size()
        if size and self._is_torn(size):
            line = b"\n" + line
        done = 0
        try:
            while done < len(line):
                done += os.write(self._file.number, line[done:])
        except OSError as error:
            os.ftruncate(self._file.number, size)
            raise unwritable(self.path, error, LaggingError) from None

    def _is_torn(self, size: int) -> bool:
        os.lseek(self._file.number, size - 1, os.SEEK_SET)
        return os.read(self._file.number, 1) != b"\n"

    def sync(self) -> None:
        """Flush what was written to the disk, if there is anything new."""
        if (size := self.size()) != self._synced:
            os.fsync(self._file.number)
            self._synced = size

    def close(self) -> None:
        """Sync and close the files."""
        self.sync()
        self._file.close()
        self.lock.close()

    def read(self) -> Contents:
        """What the log contains. The caller holds the lock, or is the only process.

        Raises:
            LaggingError: a sentence occurs twice.
        """
        contents, start, last = Contents(), 0, -1
        with self.path.open("rb") as file:
            for line in file:
                offset, start = start, start + len(line)
                head = _head(line)
                if head is None:
                    contents.torn += bool(line.strip())
                    contents.sorted = False  # sorting removes it
                    continue
                if head.index in contents.positions:
                    raise LaggingError(f"{self.path} has the sentence {head.index} twice: somebody else wrote into it")
                contents.positions[head.index] = offset, len(line)
                contents.sorted &= head.index > last
                last = head.index
                if head.failed is not None:
                    contents.failed[head.index] = kind = head.kind or ""
                    contents.reasons.setdefault(kind, f"{head.failed}{_where(head.traceback)}")
        return contents

    def written_indices(self) -> set[int]:
        """The indices in the log; only new lines are read. The caller holds the lock."""
        with self.path.open("rb") as file:
            file.seek(self._scanned)
            for line in file:
                if line.endswith(b"\n"):
                    self._scanned += len(line)
                if (head := _head(line)) is not None:
                    self._written.add(head.index)
        return self._written

    def sort(self, contents: Contents, excluded: frozenset[int] = frozenset()) -> None:
        """Sort the lines, and move partial lines to `torn.txt`. The caller holds the lock, or is the only process.

        Args:
            contents: what the log contains.
            excluded: sentences to remove, because they are translated again.
        """
        if contents.sorted and not excluded:
            return
        fresh = self.path.with_name(f".{LOG}{UNFINISHED}")
        try:
            self._write_sorted(contents, excluded, fresh)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise unwritable(fresh, error, LaggingError) from None
        self._file.close()
        fresh.replace(self.path)
        self._open()

    def _write_sorted(self, contents: Contents, excluded: frozenset[int], fresh: Path) -> None:
        """Write the sorted lines to another file, and the partial lines to `torn.txt`."""
        with self.path.open("rb") as old, fresh.open("wb") as new:
            for index in sorted(contents.positions.keys() - excluded):
                offset, size = contents.positions[index]
                old.seek(offset)
                new.write(old.read(size))
            if contents.torn:
                old.seek(0)
                torn = [line.rstrip(b"\n") + b"\n" for line in old if line.strip() and _head(line) is None]
                with (self.path.parent / TORN).open("ab") as torn_file:
                    torn_file.writelines(torn)
            new.flush()
            os.fsync(new.fileno())


def _where(traceback: str | None) -> str:
    """Where in the agent's code it was raised, as ` (agent.py:12)`; empty if there is no traceback."""
    frames = re.findall(r'^  File "([^"]+)", line (\d+)', traceback or "", re.MULTILINE)
    return f" ({Path(frames[-1][0]).name}:{frames[-1][1]})" if frames else ""


def _head(line: bytes) -> _LineHead | None:
    """Which sentence a line is; None if the line is partial."""
    if not line.endswith(b"\n"):
        return None
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
