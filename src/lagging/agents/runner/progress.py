# SPDX-License-Identifier: Apache-2.0
"""How far a run is, and how late its agent is so far."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import msgspec

from lagging.agents.runner.journal import Contents
from lagging.metrics.sentence import dal

__all__ = ["Progress"]


class _Said(msgspec.Struct):
    index: int
    delays: list[float] = []
    source_length: float = 0.0
    unit: str = "token"
    failed: str | None = None


_SAID = msgspec.json.Decoder(_Said)


class Progress:
    """How far a run is, found out from what its log has got since it was last asked.

    Attributes:
        total: sentences of the test set.
        done, failed: sentences in the log.
        tokens: written in this session.
        seconds: since it began.
        torn: how many lines broke off, and are translated again.
        stopping: whether somebody asked to stop; what is under way is finished first.
    """

    def __init__(self, path: Path, total: int, held: Contents, torn: int = 0) -> None:
        self.total, self.done, self.failed, self.torn = total, len(held.at), len(held.failed), torn
        self.before = self.done
        self.stopping = False
        self.tokens = 0
        self._path, self._at = path, path.stat().st_size
        self._began = time.monotonic()
        self._lag, self._scored, self._unit = 0.0, 0, ""

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._began

    @property
    def dal(self) -> float | None:
        """The mean DAL of the sentences of this session, in tokens or seconds; None before there is one."""
        return self._lag / self._scored if self._scored else None

    def look(self) -> None:
        """Read what is new."""
        if self._path.stat().st_size <= self._at:
            return
        with self._path.open("rb") as file:
            file.seek(self._at)
            new = file.read(1 << 22)
            new = new[: new.rfind(b"\n") + 1] or new + file.readline()
        if not new.endswith(b"\n"):
            return
        self._at += len(new)
        for line in new.splitlines():
            with contextlib.suppress(msgspec.DecodeError):  # one that broke off, and is not counted
                self._take(_SAID.decode(line))

    def _take(self, said: _Said) -> None:
        self.done += 1
        self.failed += said.failed is not None
        self.tokens += len(said.delays)
        if said.delays and said.source_length:
            scale = 1000 if said.unit == "ms" else 1
            self._lag += dal(said.delays, source_length=said.source_length) / scale
            self._unit = "s" if said.unit == "ms" else "tokens"
            self._scored += 1

    def said(self, short: bool = False) -> str:
        """In words: how many are done, how late, how fast.

        Args:
            short: without how many are done, for a bar that shows it.
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
