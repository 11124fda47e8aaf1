# SPDX-License-Identifier: Apache-2.0
"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from lagging.errors import LaggingError, UsageError

__all__ = ["UNFINISHED", "unwritable", "write_whole"]

UNFINISHED = ".unfinished"
"""The ending of a file that is being written; a process that is killed leaves it behind."""

FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
TEXT = {"mode": "w", "encoding": "utf-8", "newline": "\n"}


def unwritable(path: str | Path, error: OSError, kind: type[LaggingError] = UsageError) -> LaggingError:
    """The error for a file that cannot be written; a full disk is not an error of usage."""
    message = f"cannot write {path}: {error.strerror or error}"
    if error.errno in FULL:
        return LaggingError(f"{message}\n  fix: make room, then give the same command again.")
    return kind(message)


@contextmanager
def write_whole(path: str | Path, errors: str = "strict", binary: bool = False) -> Iterator[IO[Any]]:
    """A file, of UTF-8 or bytes, that replaces `path` when the block ends, and leaves no trace if it fails.

    What was written is on the disk before it replaces the file: after a power failure there is the old file or the new
    one, whole.
    """
    import tempfile

    how: dict[str, Any] = {"mode": "wb"} if binary else TEXT | {"errors": errors}

    target = Path(path).resolve()  # a link stays a link
    try:
        if target.exists() and not target.is_file():  # a pipe or a device cannot be replaced
            with target.open(**how) as file:
                yield file
            return
        how |= {"prefix": f".{target.name[:40]}-", "suffix": UNFINISHED}
        new = tempfile.NamedTemporaryFile(dir=target.parent, delete=False, **how)  # noqa: SIM115  # closed below
        try:
            yield cast("IO[Any]", new)
            new.flush()
            # a temporary file is private; the result gets the rights that any new file would get
            mask = os.umask(0)
            os.umask(mask)
            Path(new.name).chmod(0o666 & ~mask)
            os.fsync(new.fileno())
            new.close()
            Path(new.name).replace(target)
        except BaseException:
            with suppress(OSError):  # on a full disk, closing fails like writing
                new.close()
            with suppress(OSError):
                Path(new.name).unlink()
            raise
        _sync_folder(target.parent)
    except OSError as error:
        raise unwritable(path, error) from None


def _sync_folder(folder: Path) -> None:
    """Sync the folder of a file, where that is possible, so that its new name is on the disk."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
