# SPDX-License-Identifier: Apache-2.0
"""What is to be done, and the desk at which it is done: a sentence goes in, a line of the log comes out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lagging.agents.failures import Failure
from lagging.agents.loading import Spec
from lagging.agents.loop import drive, drive_batch
from lagging.agents.protocol import Traits
from lagging.agents.runner.records import encode, record, write_wav
from lagging.agents.sentence import Limits, Pulse, Sentence, Wall
from lagging.agents.sources import Speech, Spoken, Text, Written, lines_of, open_source, text_level
from lagging.errors import UsageError, counted

__all__ = ["Desk", "Job", "Settings"]


@dataclass(frozen=True)
class Settings:
    """What, beside agent and inputs, decides what comes out.

    Attributes:
        chunk: how much source is read at a time: tokens (1 if not given), or ms (500).
        source_level, spm_model: of text, what is read at a time: "word", "char", or "spm" with a model.
        joined_by: how what the agent writes becomes a text: a key of `hypothesis.JOINTS`.
        level: what of it gets a delay: "word", "char", or "token".
        limits: how far an agent may go.
        realtime: whether source is given out at its own pace, rather than as soon as it is asked for.
        pace: of text in real time, how many tokens a second.
        batch: how many sentences an agent takes at once.
        times: whether the log tells what was measured, and so is never the same twice.
    """

    chunk: float | None = None
    source_level: str = "word"
    spm_model: str | None = None
    joined_by: str = "word"
    level: str = "word"
    limits: Limits = field(default_factory=Limits)
    realtime: bool = False
    pace: float | None = None
    batch: int = 1
    times: bool = True

    def told(self) -> dict[str, Any]:
        """What has to be the same when a run goes on; limits and batches may change."""
        apart = ("limits", "batch", "spm_model")
        return {name: value for name, value in asdict(self).items() if name not in apart} | {
            "source_level": self.text_level
        }

    def check(self, traits: Traits) -> None:
        """Whether they make sense for an agent with these traits."""
        if self.realtime and traits.source == "text" and self.pace is None:
            raise UsageError("text has no pace of its own: say how many words a second it has, with --pace")
        if self.pace is not None and not (self.realtime and traits.source == "text" and self.pace > 0):
            raise UsageError("--pace is a number above 0, and goes with --realtime and an agent that reads text")
        if self.batch < 1 or (self.batch > 1 and not traits.batched):
            raise UsageError("batches need an agent that takes many sentences at once: one with `policies(states)`")
        if self.realtime and traits.batched:
            raise UsageError("an agent that takes many sentences at once cannot be run in real time")

    @property
    def text_level(self) -> str:
        """What of a text is read at a time, with the model by its name."""
        return text_level(self.source_level, self.spm_model)

    def open(self, path: str, kind: str, check: bool = True) -> Text | Speech:
        """The test set."""
        return open_source(path, kind, level=self.source_level, spm_model=self.spm_model, chunk=self.chunk, check=check)


@dataclass(frozen=True)
class Job:
    """A run: which agent, over what, how, and where the log goes."""

    agent: Spec
    source: str
    reference: str | None
    output: str
    settings: Settings = field(default_factory=Settings)

    def references(self, count: int) -> list[str] | None:
        """The reference translations of so many sentences."""
        if self.reference is None:
            return None
        lines = lines_of(self.reference)
        if len(lines) != count:
            many = f"{self.source} has {counted(count, 'line')}, but {self.reference} has {len(lines)}"
            raise UsageError(f"{many}: sentence and reference would not belong together")
        return lines


class Desk:
    """Where an agent translates the sentences of a test set."""

    def __init__(
        self,
        agent: Any,
        traits: Traits,
        source: Text | Speech,
        references: Sequence[str | None] | None,
        settings: Settings,
        folder: Path | None = None,
    ) -> None:
        if traits.sees_reference and references is None:
            raise UsageError("this agent writes the reference by a schedule: it needs --reference")
        if traits.target == "speech" and folder is None:
            raise UsageError("an agent that writes speech needs a folder for it")
        self.agent, self.traits, self.source, self.settings = agent, traits, source, settings
        self.references, self._folder = references, folder

    def sentence(self, place: int) -> Sentence:
        """A sentence, opened.

        Raises:
            Failure: its source cannot be read.
        """
        return self._sentence(place, self.source.open(place))

    def _sentence(self, place: int, opened: Written | Spoken) -> Sentence:
        s = self.settings
        wall = Wall(1000 / s.pace if s.pace else 1.0) if s.realtime else None
        shown = self.references[place] if self.traits.sees_reference and self.references is not None else None
        return Sentence(opened, self.traits, s.limits, place, s.joined_by, s.level, shown, wall)

    def translate(self, place: int, pulse: Pulse | None = None) -> tuple[bytes, Failure | None]:
        """The line of a sentence, and how it failed, if it did."""
        failed: Failure | None = None
        try:
            sentence = self.sentence(place)
        except Failure as failure:
            return self.fail(place, failure), failure
        try:
            if self.traits.batched:
                _, failed = next(drive_batch(self.agent, [sentence], 1, pulse))
            else:
                drive(self.agent, sentence, pulse)
        except Failure as failure:
            failed = failure
        return self._line(sentence, failed), failed

    def translate_many(
        self, places: Iterable[int], pulse: Pulse | None = None
    ) -> Iterator[tuple[int, bytes, Failure | None]]:
        """The lines of many sentences, as they finish, with an agent that takes several at once."""
        unread: list[tuple[int, Failure]] = []

        def opened() -> Iterator[Sentence]:
            for place in places:
                try:
                    yield self.sentence(place)
                except Failure as failure:
                    unread.append((place, failure))

        for sentence, failure in drive_batch(self.agent, opened(), self.settings.batch, pulse):
            yield sentence.place, self._line(sentence, failure), failure
            while unread:
                place, wrong = unread.pop()
                yield place, self.fail(place, wrong), wrong
        for place, wrong in unread:
            yield place, self.fail(place, wrong), wrong

    def translate_all(self, places: Iterable[int]) -> Iterator[tuple[int, bytes, Failure | None]]:
        """The lines of sentences, as they finish."""
        if self.settings.batch > 1:
            yield from self.translate_many(places)
        else:
            yield from ((place, *self.translate(place)) for place in places)

    def fail(self, place: int, failure: Failure) -> bytes:
        """The line of a sentence of which there is nothing but that it failed."""
        opened: Written | Spoken
        try:
            opened = self.source.open(place)
        except Failure:
            opened = Spoken(np.zeros(0, dtype=np.float32), 16_000, 1)
        return self._line(self._sentence(place, opened), failure)

    def _line(self, sentence: Sentence, failure: Failure | None) -> bytes:
        place, wav = sentence.place, None
        if self.traits.target == "speech" and self._folder is not None:
            wav = (self._folder / "wavs" / f"{place}_pred.wav").resolve()
        reference = None if self.references is None else self.references[place]
        line = record(
            sentence,
            shown=self.source.shown(place),
            reference=reference,
            failure=failure,
            wav=wav,
            times=self.settings.times,
        )
        if wav is not None:
            wav.parent.mkdir(exist_ok=True)
            write_wav(wav, sentence if failure is None else None, line["intervals"])
        return encode(line)
