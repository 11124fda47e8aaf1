# SPDX-License-Identifier: Apache-2.0
"""The log of a Meter: an event stream in the generic form, a line per update, which survives the death of the process.

A line is handed to the system in one call, before the update returns. A last line that was written only in part, as
after a loss of power, is removed when the log is opened again.
"""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

import msgspec

from lagging.data.files import unwritable
from lagging.errors import LaggingError

__all__ = ["EventLog"]

logger = logging.getLogger("lagging")
_ENCODER = msgspec.json.Encoder()
BLOCK = 1 << 16


class EventLog:
    """Appends lines to a file. A line that cannot be written is counted, and told once: the service goes on.

    Attributes:
        path: the file.
        lines, lost: how many lines were written, and how many could not be.
        error: why the last one could not be; empty if it was written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.lines = self.lost = 0
        self.error = ""
        self._lock = threading.Lock()
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        except OSError as error:
            raise unwritable(self.path, error, LaggingError) from None
        self._remove_torn()

    def _remove_torn(self) -> None:
        """Remove a last line that has no end."""
        end = size = os.fstat(self._file).st_size
        while end:
            start = max(end - BLOCK, 0)
            os.lseek(self._file, start, os.SEEK_SET)
            newline = os.read(self._file, end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            os.ftruncate(self._file, end)

    def append(self, record: dict[str, object]) -> None:
        """Write a line."""
        line = _ENCODER.encode(record) + b"\n"
        with self._lock:
            if self._file < 0:
                return
            try:
                written = os.write(self._file, line)
                if written < len(line):
                    os.ftruncate(self._file, os.fstat(self._file).st_size - written)
                    raise OSError("only a part of the line could be written")
            except OSError as error:
                if not self.error:
                    logger.warning("%s: the log of the meter cannot be written: %s", self.path, error)
                self.lost, self.error = self.lost + 1, error.strerror or str(error)
            else:
                self.lines, self.error = self.lines + 1, ""

    def close(self) -> None:
        """Close the file; what was written is handed to the disk."""
        with self._lock:
            if self._file >= 0:
                os.fsync(self._file)
                os.close(self._file)
                self._file = -1
