# SPDX-License-Identifier: Apache-2.0
"""Locks on files: the system releases them with the process that held them, however it ended."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from lagging.errors import UsageError
from lagging.files import unwritable

__all__ = ["Lock"]


class Lock:
    """A lock between processes: whoever has locked the file has it."""

    def __init__(self, path: Path) -> None:
        try:
            self._file: IO[bytes] = path.open("a+b", buffering=0)
        except OSError as error:
            raise unwritable(path, error) from None
        self.path = path

    def take(self, wait: bool = True) -> bool:
        """Lock; whether that was possible.

        Raises:
            UsageError: files cannot be locked there.
        """
        try:
            return _lock(self._file.fileno(), wait)
        except OSError as error:  # some network drives
            why = f"cannot lock {self.path}: {error.strerror or error}"
            raise UsageError(f"{why}\n  fix: a folder on a disk whose files can be locked.") from None

    def free(self) -> None:
        """Unlock."""
        _unlock(self._file.fileno())

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
            return os.path.samestat(self.path.stat(), os.fstat(self._file.fileno()))
        except OSError:
            return False

    def say(self, text: str) -> None:
        """Write into the file who has it."""
        with suppress(OSError):  # a full disk is told by whoever has more to write
            self._file.truncate(0)
            self._file.write(text.encode())

    def said(self) -> str:
        """Who has it, by his own words."""
        try:
            return self.path.read_text("utf-8", errors="replace").strip()
        except OSError:
            return ""

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
