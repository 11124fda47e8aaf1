# SPDX-License-Identifier: Apache-2.0
"""Locks on files: the system releases them with the process that held them, however it ended."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lagging.data.files import unwritable
from lagging.errors import LaggingError, UsageError

__all__ = ["ClosedError", "Descriptor", "Lock", "irregular"]

READ = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
"""How a file is opened: a pipe is not waited for."""


class ClosedError(LaggingError):
    """A file that this process had open is not open any more."""


class Descriptor:
    """The number of an open file. Whether it still is that file is seen: an agent may close files of its process.

    Attributes:
        number: the number.
    """

    def __init__(self, number: int) -> None:
        self.number, self._then = number, os.fstat(number)

    @classmethod
    def open(cls, path: Path, flags: int) -> Descriptor:
        """Open a regular file.

        Raises:
            UsageError: it is none, or cannot be opened.
        """
        try:
            found = cls(os.open(path, flags | READ, 0o666))
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK) and path.is_symlink():  # as POSIX or FreeBSD has it
                raise UsageError(f"{path} is a link, and is not followed\n  fix: remove it.") from None
            raise unwritable(path, error) from None
        if not stat.S_ISREG(found._then.st_mode):
            found.close()
            raise irregular(path)
        return found

    def look(self) -> os.stat_result:
        """What the system knows of the file.

        Raises:
            ClosedError: it was closed, or is another file by now.
        """
        try:
            now = os.fstat(self.number)
        except OSError:
            now = None
        if now is None or not os.path.samestat(now, self._then):
            raise ClosedError("a file of this process was closed by somebody who had not opened it")
        return now

    def close(self) -> None:
        """Close it."""
        os.close(self.number)


def irregular(path: Path) -> UsageError:
    """What to raise of a pipe, a device or a folder where a file belongs."""
    return UsageError(f"{path} is not a regular file\n  fix: remove it, or give another folder with -o.")


class Lock:
    """A lock between processes: whoever has locked the file has it. A link is not followed."""

    def __init__(self, path: Path) -> None:
        if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():
            raise UsageError(f"{path} is a link, and is not followed\n  fix: remove it.")
        self._file = Descriptor.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0))
        self.path = path

    def take(self, wait: bool = True) -> bool:
        """Lock; whether that was possible.

        Raises:
            UsageError: files cannot be locked there.
        """
        self._file.look()
        try:
            return _lock(self._file.number, wait)
        except OSError as error:  # some network drives
            why = f"cannot lock {self.path}: {error.strerror or error}"
            raise UsageError(f"{why}\n  fix: a folder on a disk whose files can be locked.") from None

    def free(self) -> None:
        """Unlock."""
        _unlock(self._file.number)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Locked while the block lasts."""
        self.take()
        try:
            yield
        finally:
            self.free()

    @property
    def lasts(self) -> bool:
        """Whether the file is still the one of that name: who had it before may have removed it."""
        try:
            return os.path.samestat(self.path.lstat(), self._file.look())
        except OSError:
            return False

    def say(self, text: str) -> None:
        """Write into the file who has it. The caller has the lock."""
        with suppress(OSError):  # a full disk is told by whoever has more to write
            os.ftruncate(self._file.number, 0)
            os.lseek(self._file.number, 0, os.SEEK_SET)
            os.write(self._file.number, text.encode())

    def said(self) -> str:
        """Who has it, by his own words."""
        os.lseek(self._file.number, 0, os.SEEK_SET)
        return os.read(self._file.number, 100).decode("utf-8", errors="replace").strip()

    def close(self) -> None:
        """Let go."""
        self._file.close()


if sys.platform == "win32":
    import msvcrt

    FAR = 1 << 30  # locked bytes cannot be read there, so it is one that the file does not have

    def _lock(handle: int, wait: bool) -> bool:
        while True:
            os.lseek(handle, FAR, os.SEEK_SET)
            try:
                msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
                return True
            except OSError as error:
                if not wait:
                    return False
                if error.errno not in (errno.EDEADLK, errno.EACCES):  # somebody has it; else it will never be had
                    raise

    def _unlock(handle: int) -> None:
        os.lseek(handle, FAR, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(handle: int, wait: bool) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def _unlock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)
