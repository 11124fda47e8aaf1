# SPDX-License-Identifier: Apache-2.0
"""The log of a run, one line per sentence, that survives whatever ends the run.

A line is appended, whole, before the next sentence begins; by whichever process has translated it, one at a time. What
the system has taken is safe from the death of any process; `sync` makes it safe from the loss of power. A line that
broke off all the same has no end, and so is closed by whoever writes next; when the run goes on, such pieces are put
aside into `torn.txt`, and their sentences are translated again. In the end the lines are put in order.
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


class _Head(msgspec.Struct):
    """As much of a line as tells which sentence it is."""

    index: int
    failed: str | None = None
    kind: str | None = None
    traceback: str | None = None


_HEAD = msgspec.json.Decoder(_Head)


@dataclass
class Contents:
    """What a log holds.

    Attributes:
        at: where the line of each sentence begins, and how long it is.
        failed: the sentences that failed, and their kind of failure.
        reasons: of each kind of failure, the first that there was, in words.
        torn: how many lines had broken off.
        sorted: whether the lines are in order.
    """

    at: dict[int, tuple[int, int]] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    torn: int = 0
    sorted: bool = True


class Journal:
    """The log of a run in a folder.

    Attributes:
        path: the log.
        lock: whoever writes to it has this.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOG
        self.lock = Lock(folder / ".log.lock")
        self._open()

    def _open(self) -> None:
        self._file = Descriptor.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        self._synced = self.size()
        self._looked, self._written = 0, set[int]()
        if hasattr(os, "O_DIRECTORY"):  # a new file is safe when its folder is
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
            os.fsync(folder)
            os.close(folder)

    def size(self) -> int:
        """Bytes written."""
        return self._file.look().st_size

    def append(self, line: bytes) -> None:
        """Write a line, whole. The caller has the lock.

        Raises:
            LaggingError: there was no room for all of it; what was written of it is taken back.
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
        """Have the system put what was written onto the disk, if there is anything new."""
        if (size := self.size()) != self._synced:
            os.fsync(self._file.number)
            self._synced = size

    def close(self) -> None:
        """Sync, and let go."""
        self.sync()
        self._file.close()
        self.lock.close()

    def look(self) -> Contents:
        """What the log holds. The caller has the lock, or is alone.

        Raises:
            LaggingError: a sentence is there twice.
        """
        held, start, last = Contents(), 0, -1
        with self.path.open("rb") as file:
            for line in file:
                place, start = start, start + len(line)
                head = _head(line)
                if head is None:
                    held.torn += bool(line.strip())
                    held.sorted = False  # so that it is written anew, without
                    continue
                if head.index in held.at:
                    raise LaggingError(f"{self.path} has the sentence {head.index} twice: somebody else wrote into it")
                held.at[head.index] = place, len(line)
                held.sorted &= head.index > last
                last = head.index
                if head.failed is not None:
                    held.failed[head.index] = kind = head.kind or ""
                    held.reasons.setdefault(kind, f"{head.failed}{_where(head.traceback)}")
        return held

    def written(self) -> set[int]:
        """The sentences that are in it by now; only what is new is read. The caller has the lock."""
        with self.path.open("rb") as file:
            file.seek(self._looked)
            for line in file:
                if line.endswith(b"\n"):
                    self._looked += len(line)
                if (head := _head(line)) is not None:
                    self._written.add(head.index)
        return self._written

    def tidy(self, held: Contents, without: frozenset[int] = frozenset()) -> None:
        """Put the lines in order, and what broke off aside. The caller has the lock, or is alone.

        Args:
            held: what the log holds.
            without: sentences to leave out, because they are to be translated again.
        """
        if held.sorted and not without:
            return
        fresh = self.path.with_name(f".{LOG}{UNFINISHED}")
        try:
            self._sort(held, without, fresh)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise unwritable(fresh, error, LaggingError) from None
        self._file.close()
        fresh.replace(self.path)
        self._open()

    def _sort(self, held: Contents, without: frozenset[int], fresh: Path) -> None:
        """Write the lines in order to another file, and what broke off to a third."""
        with self.path.open("rb") as old, fresh.open("wb") as new:
            for index in sorted(held.at.keys() - without):
                place, size = held.at[index]
                old.seek(place)
                new.write(old.read(size))
            if held.torn:
                old.seek(0)
                torn = [line.rstrip(b"\n") + b"\n" for line in old if line.strip() and _head(line) is None]
                with (self.path.parent / TORN).open("ab") as aside:
                    aside.writelines(torn)
            new.flush()
            os.fsync(new.fileno())


def _where(traceback: str | None) -> str:
    """Where in the agent's own code it was raised, as ` (agent.py:12)`; nothing if nobody knows."""
    places = re.findall(r'^  File "([^"]+)", line (\d+)', traceback or "", re.MULTILINE)
    return f" ({Path(places[-1][0]).name}:{places[-1][1]})" if places else ""


def _head(line: bytes) -> _Head | None:
    """Which sentence a line is; None if it broke off."""
    if not line.endswith(b"\n"):
        return None
    try:
        return _HEAD.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
