# SPDX-License-Identifier: Apache-2.0
"""What an agent has read and written so far."""

from __future__ import annotations

from typing import Any

from lagging.agents.simuleval.standin.segments import Segment, SpeechSegment, TextSegment

__all__ = ["AgentStates"]


class AgentStates:
    """What an agent has read and written so far.

    Attributes:
        source, target: words, or samples.
        source_finished, target_finished: whether that was all.
        source_sample_rate, target_sample_rate: of speech; 0 while there was none.
        tgt_lang: what to translate into, if that was said.
        upstream_states: those of the modules before it in a pipeline.
        config: settings that came with the source.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin a sentence."""
        self.source: list[Any] = []
        self.target: list[Any] = []
        self.source_finished = self.target_finished = False
        self.source_sample_rate = self.target_sample_rate = 0
        self.tgt_lang: str | None = None
        self.upstream_states: list[Any] = []
        self.config: dict[str, Any] = {}

    def update_config(self, config: dict[str, Any]) -> None:
        """Take settings over."""
        self.config |= config

    def update_source(self, segment: Segment) -> None:
        """Note what has been read."""
        self.source_finished = segment.finished
        if not segment.is_empty:
            self.source_sample_rate = _add(self.source, segment, self.source_sample_rate)
            if segment.tgt_lang is not None:
                self.tgt_lang = segment.tgt_lang

    def update_target(self, segment: Segment) -> None:
        """Note what has been written; of the last piece, only that it was the last."""
        self.target_finished = segment.finished
        if not (segment.finished or segment.is_empty):
            self.target_sample_rate = _add(self.target, segment, self.target_sample_rate)


def _add(pieces: list[Any], segment: Segment, rate: int) -> int:
    """Add what a segment holds to what there is; the sample rate from now on."""
    if isinstance(segment, TextSegment):
        pieces.append(segment.content)
        return rate
    if isinstance(segment, SpeechSegment):
        pieces.extend(segment.content)
        return segment.sample_rate
    raise NotImplementedError(
        f"an agent's states take a TextSegment or a SpeechSegment, not a {type(segment).__name__}"
    )
