# SPDX-License-Identifier: Apache-2.0
"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, cast

from lagging.errors import UsageError

__all__ = ["write_whole"]


@contextmanager
def write_whole(path: str | Path, errors: str = "strict") -> Iterator[TextIO]:
    """A UTF-8 file that replaces `path` when the block ends, and leaves no trace if it fails."""
    import tempfile

    target = Path(path).resolve()  # a link stays a link
    try:
        if target.exists() and not target.is_file():  # a pipe or a device cannot be replaced
            with target.open("w", encoding="utf-8", errors=errors, newline="\n") as file:
                yield file
            return
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", errors=errors, newline="\n", dir=target.parent, delete=False
        ) as new:
            try:
                yield cast("TextIO", new)
                new.flush()
                # a temporary file is private; the result gets the rights that any new file would get
                mask = os.umask(0)
                os.umask(mask)
                Path(new.name).chmod(0o666 & ~mask)
            except BaseException:
                new.close()
                Path(new.name).unlink()
                raise
        Path(new.name).replace(target)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None
