# SPDX-License-Identifier: Apache-2.0
"""The Meter: translation lag of a live service, measured while it runs."""

from __future__ import annotations

import threading
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lagging.errors import UsageError
from lagging.meter.log import EventLog
from lagging.meter.measures import METRICS, Measures, check_metrics, measure
from lagging.meter.utterance import LIMIT, EndedError, Finished, Utterance, Words
from lagging.metrics import Metric

__all__ = ["Meter"]

BATCH = 64
"""The number of utterances that are measured together: one alone would cost ten times as much."""
SLOTS = 30
"""The number of parts of the window; the oldest of them is forgotten when a new one begins."""


class Meter:
    """Measures how far a live translation or transcription is behind what it hears.

    A service calls `heard`, `wrote` or `shows`, and `ended`; or these methods of `utterance()`, if several utterances
    go on at once. Any thread may call. A call takes some microseconds, and memory does not grow with the number of
    utterances.

    An utterance is measured when it ends, by the metrics of `lagging score`: the lag of a word is
    ℓ(t) = g(t) − (t−1)/γ, and depends on how long the utterance was. A long talk is best ended at its pauses.

    Args:
        name: name of the system.
        log: a file to which every update is appended, as an event stream in the generic form; `lagging score` reads it.
        window: how many seconds `snapshot(recent=True)` looks back.
        level: what a token is: "word" or "char"; None to decide by the first text of each utterance. Scores of the less
            frequent one have the level behind the name: "DAL (char)".
        metrics: what is scored of each utterance, beside the lags of its words.
        limit: the number of updates that an utterance holds; a longer one is logged, but not measured.
        clock: gives the time in seconds, and never goes back.

    Example:
        >>> meter = Meter()
        >>> meter.heard(600)
        >>> meter.wrote("Guten")
        >>> meter.heard(600)
        >>> meter.wrote(" Tag")
        >>> meter.ended()
        >>> snapshot = meter.snapshot()
        >>> snapshot["words"], snapshot["lag"]["mean"], snapshot["scores"]["DAL"]["score"]
        (2, 600.0, 600.0)
    """

    def __init__(
        self,
        name: str = "",
        *,
        log: str | Path | None = None,
        window: float = 300.0,
        level: str | None = None,
        metrics: Sequence[str | Metric] = METRICS,
        limit: int = LIMIT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if level not in (None, "word", "char"):
            raise UsageError(f"a meter counts words or characters, not {level!r}")
        if not 0 < window < 1e9:
            raise UsageError(f"the window is a number of seconds above 0, not {window!r}")
        if limit < 1:
            raise UsageError(f"an utterance holds at least one update, not {limit!r}")
        self.name, self.level, self.window, self.limit = name, level, float(window), limit
        self._metrics = check_metrics(metrics)
        self._clock = clock
        self._log = None if log is None else EventLog(log)
        self._prefix = uuid.uuid4().hex[:8]
        self._lock = threading.Lock()
        self._beginning = threading.Lock()
        self._folding = threading.Lock()
        self._current: Utterance | None = None
        self._open: weakref.WeakSet[Utterance] = weakref.WeakSet()
        self._started = self._ended = self._too_long = 0
        self._pending: deque[tuple[int, Finished]] = deque()
        self._total = Measures()
        self._slots: dict[int, Measures] = {}

    # ---- utterances ---------------------------------------------------------------------------------------------

    def utterance(self, name: str | None = None) -> Utterance:
        """Begin an utterance; as a context manager, it ends with the block.

        Args:
            name: its recording in the log, which no other utterance has; one is made up if not given.
        """
        with self._lock:
            self._started += 1
            name = f"{self._prefix}-{self._started}" if name is None else name
            utterance = Utterance(
                name, self.level, self._clock, self._log.append if self._log else None, self._on_end, self.limit
            )
            self._open.add(utterance)
        return utterance

    def _call(self, method: Callable[..., None], *args: Any, **options: Any) -> None:
        """Call a method of the utterance of the calls without one; if another thread ends it, that of the next one."""
        while True:
            current = self._current
            if current is None:
                with self._beginning:
                    current = self._current = self._current or self.utterance()
            try:
                return method(current, *args, **options)
            except EndedError:
                with self._beginning:
                    self._current = None if self._current is current else self._current

    def heard(self, ms: float | None = None, *, total: float | None = None) -> None:
        """More audio was heard; see `Utterance.heard`."""
        self._call(Utterance.heard, ms, total=total)

    def wrote(self, text: str, *, final: bool = False) -> None:
        """A text was appended; see `Utterance.wrote`."""
        self._call(Utterance.wrote, text, final=final)

    def shows(self, text: str, *, final: bool = False) -> None:
        """A text replaced what is not final; see `Utterance.shows`."""
        self._call(Utterance.shows, text, final=final)

    def ended(self, words: Words | None = None) -> None:
        """The utterance is over, and the next call begins another one; see `Utterance.ended`."""
        with self._beginning:
            current, self._current = self._current, None
        if current is not None:
            current.ended(words)

    def _on_end(self, utterance: Utterance, finished: Finished | None) -> None:
        with self._lock:
            self._ended += 1
            self._open.discard(utterance)
            self._too_long += finished is None and utterance.updates > 0
            if finished is not None:
                self._pending.append((self._slot(), finished))
            full = len(self._pending) >= BATCH
        if full:
            self._fold()

    # ---- measures -----------------------------------------------------------------------------------------------

    def _slot(self) -> int:
        return int(self._clock() // (self.window / SLOTS))

    def _fold(self) -> None:
        """Measure the utterances that have ended."""
        with self._folding:
            with self._lock:
                pending = list(self._pending)
                self._pending.clear()
            for level in {finished.level for _, finished in pending}:
                rows = [(slot, finished) for slot, finished in pending if finished.level == level]
                measured = measure([f for _, f in rows], self._metrics, self.name, [slot for slot, _ in rows])
                self._total = reduce(add, measured.values(), self._total)
                for slot, part in measured.items():
                    self._slots[slot] = self._slots[slot] + part if slot in self._slots else part
            oldest = self._slot() - SLOTS
            for slot in [slot for slot in self._slots if slot <= oldest]:
                del self._slots[slot]

    def measures(self, *, recent: bool = False) -> Measures:
        """What was measured; two of them add up, so that those of several processes can be added.

        Args:
            recent: only of the utterances that ended within the window.
        """
        self._fold()
        with self._folding:
            return reduce(add, self._slots.values(), Measures()) if recent else self._total

    def snapshot(self, *, recent: bool = False) -> dict[str, Any]:
        """Counts, percentiles and scores, as a dict that JSON can hold; times are in ms.

        A percentile that the number of words does not carry is None: p50 needs 11, p90 64 and p99 662.

        Args:
            recent: only of the utterances that ended within the window.
        """
        window = {"window_s": self.window if recent else None}
        return self.state() | window | self.measures(recent=recent).snapshot()

    def state(self) -> dict[str, Any]:
        """What is not a matter of windows: how many utterances there are, and what became of the log."""
        with self._lock:
            still_open = list(self._open)
            log = self._log
            state: dict[str, Any] = {
                "system": self.name,
                "open": len(still_open),
                "started": self._started,
                "ended": self._ended,
                "too_long": self._too_long,
                "log": None if log is None else {"lines": log.lines, "lost": log.lost, "error": log.error},
            }
        return state | {"backlog_now_ms": max((utterance.backlog for utterance in still_open), default=0.0)}

    def close(self) -> None:
        """End the utterance of the calls without one, and close the log; those of others are still measured."""
        self.ended()
        if self._log is not None:
            self._log.close()

    def __enter__(self) -> Self:
        """The meter itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the log."""
        self.close()
