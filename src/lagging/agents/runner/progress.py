# SPDX-License-Identifier: Apache-2.0
"""Progress of a run, and the mean latency of its agent so far."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import msgspec

from lagging.agents.runner.journal import Contents
from lagging.metrics.sentence import dal

__all__ = ["Progress"]


class _LogLine(msgspec.Struct):
    index: int
    delays: list[float] = []
    source_length: float = 0.0
    unit: str = "token"
    failed: str | None = None


_DECODER = msgspec.json.Decoder(_LogLine)


class Progress:
    """Progress of a run, from the lines that have been added to its log.

    Attributes:
        total: number of sentences to translate.
        done, failed: number of sentences in the log, and of failed ones.
        before: number of sentences in the log when the session began.
        tokens: number of tokens written in this session.
        seconds: time since the session began.
        torn: number of partial lines, whose sentences are translated again.
        stopping: whether the run was asked to stop; sentences in progress are finished first.
    """

    def __init__(self, path: Path, total: int, contents: Contents, torn: int = 0) -> None:
        self.total, self.done, self.failed, self.torn = total, len(contents.positions), len(contents.failed), torn
        self.before = self.done
        self.stopping = False
        self.tokens = 0
        self._path, self._offset = path, path.stat().st_size
        self._began = time.monotonic()
        self._lag, self._scored, self._unit = 0.0, 0, ""

    @property
    def seconds(self) -> float:
        """Seconds since the session began."""
        return time.monotonic() - self._began

    @property
    def dal(self) -> float | None:
        """The mean DAL of the sentences of this session, in tokens or seconds; None before the first one."""
        return self._lag / self._scored if self._scored else None

    def update(self) -> None:
        """Read the new lines of the log."""
        if self._path.stat().st_size <= self._offset:
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            new = file.read(1 << 22)
            new = new[: new.rfind(b"\n") + 1] or new + file.readline()
        if not new.endswith(b"\n"):
            return
        self._offset += len(new)
        for line in new.splitlines():
            with contextlib.suppress(msgspec.DecodeError):  # a partial line does not count
                self._take(_DECODER.decode(line))

    def _take(self, line: _LogLine) -> None:
        self.done += 1
        self.failed += line.failed is not None
        self.tokens += len(line.delays)
        if line.delays and line.source_length:
            scale = 1000 if line.unit == "ms" else 1
            self._lag += dal(line.delays, source_length=line.source_length) / scale
            self._unit = "s" if line.unit == "ms" else "tokens"
            self._scored += 1

    def describe(self, short: bool = False) -> str:
        """The progress in words: sentences done, mean DAL, speed.

        Args:
            short: leave out the number of sentences, for a bar that shows it.
        """
        parts = [] if short else [f"{self.done} of {self.total} sentences"]
        if self.dal is not None:
            parts.append(f"DAL {self.dal:.3f} {self._unit}")
        if self.seconds > 0:
            parts.append(f"{(self.done - self.before) / self.seconds:.3g} sentences/s")
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.stopping:
            parts.append("stopping")
        return ", ".join(parts)
