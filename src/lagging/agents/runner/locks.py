# SPDX-License-Identifier: Apache-2.0
"""Locks on files; the system releases them when the process that holds them ends."""

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

__all__ = ["ClosedError", "Descriptor", "Lock", "not_regular_file"]

READ = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
"""Flags with which files are opened: opening a pipe does not block."""


class ClosedError(LaggingError):
    """A file that this process had opened has been closed."""


class Descriptor:
    """An open file. It is checked that the number still refers to that file: an agent may close files of its process.

    Attributes:
        number: the file descriptor.
    """

    def __init__(self, number: int) -> None:
        self.number, self._opened = number, os.fstat(number)

    @classmethod
    def open(cls, path: Path, flags: int) -> Descriptor:
        """Open a regular file.

        Raises:
            UsageError: it is not a regular file, or cannot be opened.
        """
        try:
            descriptor = cls(os.open(path, flags | READ, 0o666))
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK) and path.is_symlink():  # POSIX and FreeBSD
                raise UsageError(f"{path} is a link, and is not followed\n  fix: remove it.") from None
            raise unwritable(path, error) from None
        if not stat.S_ISREG(descriptor._opened.st_mode):
            descriptor.close()
            raise not_regular_file(path)
        return descriptor

    def stat(self) -> os.stat_result:
        """The status of the file.

        Raises:
            ClosedError: it was closed, or the number refers to another file.
        """
        try:
            now = os.fstat(self.number)
        except OSError:
            now = None
        if now is None or not os.path.samestat(now, self._opened):
            raise ClosedError("a file of this process was closed by other code")
        return now

    def close(self) -> None:
        """Close it."""
        os.close(self.number)


def not_regular_file(path: Path) -> UsageError:
    """The error for a pipe, a device or a folder where a file is expected."""
    return UsageError(f"{path} is not a regular file\n  fix: remove it, or give another folder with -o.")


class Lock:
    """A lock between processes, on a file; symbolic links are not followed."""

    def __init__(self, path: Path) -> None:
        if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():
            raise UsageError(f"{path} is a link, and is not followed\n  fix: remove it.")
        self._file = Descriptor.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0))
        self.path = path

    def take(self, wait: bool = True) -> bool:
        """Lock the file; whether that succeeded.

        Raises:
            UsageError: the file system does not support locks.
        """
        self._file.stat()
        try:
            return _lock(self._file.number, wait)
        except OSError as error:  # some network drives
            reason = f"cannot lock {self.path}: {error.strerror or error}"
            raise UsageError(f"{reason}\n  fix: a folder on a disk whose files can be locked.") from None

    def free(self) -> None:
        """Unlock the file."""
        _unlock(self._file.number)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock while the block lasts."""
        self.take()
        try:
            yield
        finally:
            self.free()

    @property
    def is_current(self) -> bool:
        """Whether the locked file is still the one at the path: a previous holder may have removed it."""
        try:
            return os.path.samestat(self.path.lstat(), self._file.stat())
        except OSError:
            return False

    def write_owner(self, text: str) -> None:
        """Write into the file which process holds the lock. The caller holds it."""
        with suppress(OSError):  # a full disk is reported when the log is written
            os.ftruncate(self._file.number, 0)
            os.lseek(self._file.number, 0, os.SEEK_SET)
            os.write(self._file.number, text.encode())

    def read_owner(self) -> str:
        """The process that holds the lock, as it wrote into the file."""
        os.lseek(self._file.number, 0, os.SEEK_SET)
        return os.read(self._file.number, 100).decode("utf-8", errors="replace").strip()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


if sys.platform == "win32":
    import msvcrt

    LOCK_OFFSET = 1 << 30  # beyond the end of the file, as locked bytes cannot be read

    def _lock(handle: int, wait: bool) -> bool:
        while True:
            os.lseek(handle, LOCK_OFFSET, os.SEEK_SET)
            try:
                msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
                return True
            except OSError as error:
                if not wait:
                    return False
                if error.errno not in (errno.EDEADLK, errno.EACCES):  # held by another process
                    raise

    def _unlock(handle: int) -> None:
        os.lseek(handle, LOCK_OFFSET, os.SEEK_SET)
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
