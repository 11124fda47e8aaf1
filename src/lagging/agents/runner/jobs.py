# SPDX-License-Identifier: Apache-2.0
"""Jobs, their settings, and the translation of single sentences into log lines."""

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
from lagging.agents.sentence import Heartbeat, Limits, RealTime, Sentence
from lagging.agents.sources import (
    SpeechSource,
    SpeechTestSet,
    TextSource,
    TextTestSet,
    open_source,
    read_text_lines,
    text_level,
)
from lagging.errors import UsageError, counted

__all__ = ["Job", "SentenceRunner", "Settings"]


@dataclass(frozen=True)
class Settings:
    """Settings of a run, besides agent and inputs.

    Attributes:
        chunk: the size of a read: tokens (default 1), or ms (default 500).
        source_level, spm_model: the unit in which text is read: "word", "char", or "spm" with a model.
        joined_by: how the pieces that the agent writes are joined to a text: a key of `hypothesis.JOINTS`.
        level: the unit that gets a delay: "word", "char", or "token".
        limits: limits for the agent.
        realtime: whether the source is read at its own pace, rather than as soon as the agent asks for it.
        pace: tokens per second, of text in real time.
        batch: how many sentences an agent translates at once.
        times: whether the log has measured times, which differ from run to run.
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

    def for_manifest(self) -> dict[str, Any]:
        """The settings that must be the same when a run is resumed; limits and batches may change."""
        excluded = ("limits", "batch", "spm_model")
        return {name: value for name, value in asdict(self).items() if name not in excluded} | {
            "source_level": self.text_level
        }

    def check(self, traits: Traits) -> None:
        """Check the settings for an agent with these traits.

        Raises:
            UsageError: they do not fit.
        """
        if self.realtime and traits.source == "text" and self.pace is None:
            raise UsageError("text in real time needs a pace: give the number of words per second with --pace")
        if self.pace is not None and not (self.realtime and traits.source == "text" and self.pace > 0):
            raise UsageError("--pace is a number above 0, and goes with --realtime and an agent that reads text")
        if self.batch < 1 or (self.batch > 1 and not traits.batched):
            raise UsageError("batches need an agent that takes many sentences at once: one with `policies(states)`")
        if self.realtime and traits.batched:
            raise UsageError("an agent that takes many sentences at once cannot be run in real time")

    @property
    def text_level(self) -> str:
        """The unit in which text is read, with the name of its model."""
        return text_level(self.source_level, self.spm_model)

    def open(self, path: str, kind: str, check: bool = True) -> TextTestSet | SpeechTestSet:
        """Open the test set."""
        return open_source(path, kind, level=self.source_level, spm_model=self.spm_model, chunk=self.chunk, check=check)


@dataclass(frozen=True)
class Job:
    """A run: agent, inputs, output folder and settings."""

    agent: Spec
    source: str
    reference: str | None
    output: str
    settings: Settings = field(default_factory=Settings)

    def references(self, count: int) -> list[str] | None:
        """The reference translations.

        Raises:
            UsageError: their number is not `count`.
        """
        if self.reference is None:
            return None
        lines = read_text_lines(self.reference)
        if len(lines) != count:
            many = f"{self.source} has {counted(count, 'line')}, but {self.reference} has {len(lines)}"
            raise UsageError(f"{many}: sentence and reference would not belong together")
        return lines


class SentenceRunner:
    """Translates sentences of a test set with an agent, and makes their log lines."""

    def __init__(
        self,
        agent: Any,
        traits: Traits,
        source: TextTestSet | SpeechTestSet,
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

    def sentence(self, index: int) -> Sentence:
        """Open a sentence.

        Raises:
            Failure: its source cannot be read.
        """
        return self._sentence(index, self.source.open(index))

    def _sentence(self, index: int, opened: TextSource | SpeechSource) -> Sentence:
        s = self.settings
        real_time = RealTime(1000 / s.pace if s.pace else 1.0) if s.realtime else None
        reference = self.references[index] if self.traits.sees_reference and self.references is not None else None
        return Sentence(opened, self.traits, s.limits, index, s.joined_by, s.level, reference, real_time)

    def translate(self, index: int, heartbeat: Heartbeat | None = None) -> tuple[bytes, Failure | None]:
        """The log line of a sentence, and its failure, if it failed."""
        failed: Failure | None = None
        try:
            sentence = self.sentence(index)
        except Failure as failure:
            return self.fail(index, failure), failure
        try:
            if self.traits.batched:
                _, failed = next(drive_batch(self.agent, [sentence], 1, heartbeat))
            else:
                drive(self.agent, sentence, heartbeat)
        except Failure as failure:
            failed = failure
        return self._line(sentence, failed), failed

    def translate_many(
        self, indices: Iterable[int], heartbeat: Heartbeat | None = None
    ) -> Iterator[tuple[int, bytes, Failure | None]]:
        """The log lines of sentences, in the order in which they finish, with an agent that translates in batches."""
        unread: list[tuple[int, Failure]] = []

        def opened() -> Iterator[Sentence]:
            for index in indices:
                try:
                    yield self.sentence(index)
                except Failure as failure:
                    unread.append((index, failure))

        for sentence, failure in drive_batch(self.agent, opened(), self.settings.batch, heartbeat):
            yield sentence.index, self._line(sentence, failure), failure
            while unread:
                index, failure_to_read = unread.pop()
                yield index, self.fail(index, failure_to_read), failure_to_read
        for index, failure_to_read in unread:
            yield index, self.fail(index, failure_to_read), failure_to_read

    def translate_all(self, indices: Iterable[int]) -> Iterator[tuple[int, bytes, Failure | None]]:
        """The log lines of sentences, in the order in which they finish."""
        if self.settings.batch > 1:
            yield from self.translate_many(indices)
        else:
            yield from ((index, *self.translate(index)) for index in indices)

    def fail(self, index: int, failure: Failure) -> bytes:
        """The log line of a sentence that failed before there was any output."""
        opened: TextSource | SpeechSource
        try:
            opened = self.source.open(index)
        except Failure:
            opened = SpeechSource(np.zeros(0, dtype=np.float32), 16_000, 1)
        return self._line(self._sentence(index, opened), failure)

    def _line(self, sentence: Sentence, failure: Failure | None) -> bytes:
        index, wav = sentence.index, None
        if self.traits.target == "speech" and self._folder is not None:
            wav = (self._folder / "wavs" / f"{index}_pred.wav").resolve()
        reference = None if self.references is None else self.references[index]
        line = record(
            sentence,
            source_entry=self.source.log_entry(index),
            reference=reference,
            failure=failure,
            wav=wav,
            times=self.settings.times,
        )
        if wav is not None:
            wav.parent.mkdir(exist_ok=True)
            write_wav(wav, sentence if failure is None else None, line["intervals"])
        return encode(line)
