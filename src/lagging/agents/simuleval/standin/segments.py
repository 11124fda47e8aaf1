# SPDX-License-Identifier: Apache-2.0
"""Segments: what is pushed into an agent, and what comes out of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = [
    "EmptySegment",
    "Segment",
    "SpeechSegment",
    "SpeechTextSegment",
    "TextSegment",
    "segment_from_json_string",
]


@dataclass
class Segment:
    """A piece of a source or of a translation.

    Attributes:
        index: where in the source it is: the number of a word, or ms.
        content: what it holds.
        finished: whether it is the last.
        is_empty: whether it holds nothing, and only says whether more will come.
        data_type: "text" or "speech".
        tgt_lang: what to translate into.
        config: settings, which go with it from module to module.
    """

    index: float = 0
    content: Any = field(default_factory=list)
    finished: bool = False
    is_empty: bool = False
    data_type: str | None = None
    tgt_lang: str | None = None
    config: dict[str, Any] = field(default_factory=dict)

    def json(self) -> str:
        """All of it, as JSON."""
        return json.dumps(asdict(self))


@dataclass
class EmptySegment(Segment):
    """Nothing new."""

    is_empty: bool = True


@dataclass
class TextSegment(Segment):
    """Text: a word of the source, or whatever an agent writes at once."""

    content: str = ""
    data_type: str | None = "text"


@dataclass
class SpeechSegment(Segment):
    """Speech: samples.

    Attributes:
        sample_rate: samples per second; -1 if that is not known.
    """

    content: list[float] = field(default_factory=list)
    data_type: str | None = "speech"
    sample_rate: int = -1


@dataclass
class SpeechTextSegment:
    """Speech with its text, from one module of a pipeline to another.

    Attributes:
        text_segment, speech_segment: the two; either may be empty.
        data_type: "speech_text".
        config: as in a segment.
    """

    text_segment: Segment = field(default_factory=EmptySegment)
    speech_segment: Segment = field(default_factory=EmptySegment)
    data_type: str = "speech_text"
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """Whether both have ended."""
        return self.text_segment.finished and self.speech_segment.finished

    @property
    def is_empty(self) -> bool:
        """Whether there is neither."""
        return self.text_segment.is_empty and self.speech_segment.is_empty


KINDS: dict[str | None, type[Segment]] = {"text": TextSegment, "speech": SpeechSegment}
"""The type of an agent's source or target → what holds it."""


def segment_from_json_string(text: str) -> Segment:
    """A segment from its JSON.

    Example:
        >>> segment_from_json_string(TextSegment(2, "see").json()).content
        'see'
    """
    fields = json.loads(text)
    kind = EmptySegment if fields["is_empty"] else KINDS[fields["data_type"]]
    return kind(**fields)
