# SPDX-License-Identifier: Apache-2.0
"""An Utterance: what was heard and written of one sentence, turn or talk, while it happens."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np

from lagging.data.ragged import Floats
from lagging.data.scripts import is_unspaced
from lagging.errors import UsageError
from lagging.formats.dialects import DIGITS, LATEST, Event
from lagging.formats.display import Display
from lagging.formats.subwords import AS_IS

__all__ = ["EndedError", "Finished", "Utterance", "Words"]

Words = Sequence[tuple[float, float, str]]
"""Words of the source: when each began and ended, in ms of the audio of the utterance, and its text."""

LIMIT = 100_000
"""The number of updates that an utterance holds. Later ones are logged, but the utterance is then not measured."""


class EndedError(UsageError):
    """The utterance has ended."""


@dataclass(frozen=True)
class Finished:
    """An utterance that ended, as a row of a Run.

    Attributes:
        name: its recording in the log.
        text: what was shown in the end.
        delays: of each token, how much had been heard when it became stable, in ms.
        elapsed: of each token, when that was, in ms from the beginning.
        first: of each token, how much had been heard when it was first shown.
        backlog: of each update, how far the audio heard was behind the time, in ms.
        source_length: how much was heard.
        erased, revisions: how many tokens were erased, and by how many updates.
        level: what a token is; empty before any text shows it.
        words: the words of the source, where they are known.
    """

    name: str
    text: str
    delays: Floats
    elapsed: Floats
    first: Floats
    backlog: Floats
    source_length: float
    erased: int
    revisions: int
    level: str
    words: Words | None = None


class Utterance:
    """What was heard and written so far; made by `Meter.utterance`.

    The calls of several threads are taken one after the other. As a context manager, it ends with the block.

    Attributes:
        name: its recording in the log.
        level: what a token is; None until the first text.
        updates: how many updates there were.
    """

    def __init__(
        self,
        name: str,
        level: str | None,
        clock: Callable[[], float],
        log: Callable[[dict[str, object]], None] | None,
        on_end: Callable[[Utterance, Finished | None], None],
        limit: int = LIMIT,
    ) -> None:
        self.name, self.level = name, level
        self.updates = 0
        self._clock, self._log, self._on_end, self._limit = clock, log, on_end, limit
        self._lock = threading.Lock()
        self._start: float | None = None  # by the clock, in s
        self._heard = self._time = 0.0  # in ms
        self._display: Display | None = None if level is None else Display(level)
        self._times: list[float] = []
        self._audio: list[float] = []
        self._erased = self._revisions = 0  # those that a log only counts
        self._ended = False

    # ---- calls --------------------------------------------------------------------------------------------------

    def heard(self, ms: float | None = None, *, total: float | None = None) -> None:
        """More audio was heard: handed to the system that writes.

        Args:
            ms: how many ms more.
            total: or how many ms there are by now, from the beginning of the utterance.

        Raises:
            UsageError: neither or both are given, the audio goes back, or the utterance has ended.
        """
        if (ms is None) == (total is None):
            raise UsageError("heard(ms) takes how much more was heard, or heard(total=ms) how much there is by now")
        with self._lock:
            self._check_open()
            try:
                heard = float(total) if ms is None and total is not None else self._heard + ms  # type: ignore[operator]
            except (TypeError, ValueError, OverflowError):
                raise UsageError(f"audio is a number of ms, and not {total if ms is None else ms!r}") from None
            if not self._heard <= heard < LATEST:
                raise UsageError(f"audio cannot go from {self._heard:g} to {heard:g} ms")
            if self._start is None:  # the audio that is there was spoken before
                self._start = self._clock() - heard / 1000
            self._heard = float(heard)

    def wrote(self, text: str, *, final: bool = False) -> None:
        """A text was appended to what is shown; a space at its beginning begins a new word.

        Args:
            text: what was appended.
            final: whether all that is shown is final: the next text begins a new word.
        """
        self._update(text, False, final)

    def shows(self, text: str, *, final: bool = False) -> None:
        """A text replaced all that was shown and is not final.

        Args:
            text: the whole text since the last final one.
            final: whether it will not change any more.
        """
        self._update(text, True, final)

    def ended(self, words: Words | None = None) -> None:
        """The utterance is over; a second call changes nothing.

        Args:
            words: the words of the source, if their times are known: (start, end, word), in ms of its audio.

        Raises:
            UsageError: the times of the words decrease.
        """
        check_words(words)
        with self._lock:
            if self._ended:
                return
            self._ended = True
            begun = self._start is not None
            if begun:
                self._now()
                if self._log is not None:
                    self._log(self._line("", False, True))
            finished = self._finish(words) if begun and self.updates <= self._limit else None
        self._on_end(self, finished)

    # ---- what they do -------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._ended:
            raise EndedError(f"the utterance {self.name} has ended\n  fix: begin another one, by Meter.utterance().")

    def _now(self) -> float:
        now = self._clock()
        if self._start is None:
            self._start = now
        self._time = max(self._time, round((now - self._start) * 1000, DIGITS))
        return self._time

    def _line(self, text: str, replaces: bool, final: bool) -> dict[str, object]:
        return {
            "time": self._time,
            "audio": round(self._heard, DIGITS),
            "text": text,
            "mode": "replace" if replaces else "append",
            "final": final,
            "recording": self.name,
        }

    def _update(self, text: str, replaces: bool, final: bool) -> None:
        if not isinstance(text, str):
            raise UsageError(f"a text is a str, and not {text!r}")
        if not text.isascii():
            text = _without_surrogates(text)
        with self._lock:
            self._check_open()
            self._now()
            self.take(Event(0, self._time, round(self._heard, DIGITS), text, replaces, final))
            if self._log is not None:
                # an empty text that is final is the end of an utterance; white space reads the same, and is none
                self._log(self._line(text or " " * final, replaces, final))

    def take(self, event: Event) -> None:
        """Show an update at the times that it has."""
        self.updates += 1
        if self.updates > self._limit:
            return
        if self._display is None:
            if not event.text.strip():
                self._record(event)
                return
            self.level = "char" if is_unspaced(event.text) else "word"
            self._display = Display(self.level)
        self._display.update(len(self._times), event)
        self._record(event)

    def _record(self, event: Event) -> None:
        self._times.append(event.time)
        self._audio.append(event.audio or 0.0)

    def _finish(self, words: Words | None) -> Finished:
        level = self.level or "word"
        display = self._display or Display(level)
        text, steps, first, erased = display.writing.read(AS_IS, level)
        times, audio = np.array(self._times), np.array(self._audio)
        return Finished(
            name=self.name,
            text=text,
            delays=audio[steps],
            elapsed=times[steps],
            first=np.minimum(audio[first], audio[steps]),
            backlog=np.maximum(times - audio, 0.0),
            source_length=round(self._heard, DIGITS),
            erased=erased + self._erased,
            revisions=len(display.writing.deletions) + self._revisions,
            level=self.level or "",
            words=words,
        )

    def replay(self, event: Event) -> None:
        """Take an update from a log, with the times that it has; without audio times, all audio was heard at once."""
        with self._lock:
            self._start = self._clock() if self._start is None else self._start
            event.time = self._time = max(self._time, event.time)
            event.audio = self._heard = max(self._heard, event.time if event.audio is None else event.audio)
            self._erased += int(event.erased)
            self._revisions += int(event.revisions)
            if event.text or not event.final:  # the last line of an utterance shows nothing
                self.take(event)

    def finished(self) -> Finished:
        """The utterance as if it ended now."""
        with self._lock:
            return self._finish(None)

    @property
    def backlog(self) -> float:
        """How far the audio heard is behind the time, in ms."""
        with self._lock:
            if self._start is None:
                return 0.0
            return max(0.0, (self._clock() - self._start) * 1000 - self._heard)

    # ---- blocks -------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """The utterance itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the utterance, also if the block failed."""
        self.ended()

    async def __aenter__(self) -> Self:
        """The utterance itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the utterance, also if the block failed."""
        self.ended()


def _without_surrogates(text: str) -> str:
    """The text with a replacement character for what no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def check_words(words: Words | None) -> None:
    """Refuse words of the source without order."""
    last = (0.0, 0.0)
    for start, end, word in words or ():
        if not (math.isfinite(end) and last[0] <= start <= end and last[1] <= end):
            raise UsageError(
                f"the word {word!r} is at {start:g} to {end:g} ms, after one at {last[0]:g} to {last[1]:g}"
            )
        last = (start, end)
