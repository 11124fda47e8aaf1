# SPDX-License-Identifier: Apache-2.0
"""An agent of `lagging` as a speech processor that simulstream runs."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

from lagging.agents.loading import build
from lagging.agents.protocol import Traits
from lagging.agents.simuleval.export import RunningSentence
from lagging.agents.simulstream.adapter import RATE, import_simulstream
from lagging.errors import UsageError

__all__ = ["for_simulstream"]


def for_simulstream(agent: type, joined_by: str = "word") -> Any:
    """A speech processor for simulstream, from an agent of `lagging` that hears speech and writes words.

        # my_agent.py                          speech.yaml:  type: my_agent.Processor
        from lagging.agents.simulstream import for_simulstream     speech_chunk_size: 0.5

        class Listener:
            source = "speech"
            def policy(self, state): …

        Processor = for_simulstream(Listener)

    The configuration of the processor gives the arguments of the class. Delays and words are those of `lagging run`,
    for an agent that does not write otherwise because the source ends with a chunk; words that are erased are deleted.

    Args:
        agent: the class of the agent.
        joined_by: "word" if it writes words, or "none" if its pieces have their own spaces, as those of models have.

    Returns:
        A subclass of simulstream's SpeechProcessor.

    Raises:
        UsageError: simulstream is not installed, or cannot run such an agent.
    """
    if joined_by not in ("word", "none"):
        raise UsageError(f"joined_by is word or none, not {joined_by!r}")
    package, traits = import_simulstream(), Traits.of(agent)
    if not isinstance(agent, type) or (traits.source, traits.target) != ("speech", "text") or traits.sees_reference:
        raise UsageError("simulstream runs classes of agents that hear speech, write text, and see no reference")
    output = package.IncrementalOutput
    names = [*inspect.signature(agent).parameters]
    between = "" if joined_by == "none" else " "

    class Processor(package.SpeechProcessor):  # type: ignore[misc, name-defined]
        def __init__(self, config: SimpleNamespace) -> None:
            super().__init__(config)
            options = {name: str(value) for name in names if (value := getattr(config, name, None)) is not None}
            self._agent = build(agent, options)
            self._number = -1
            self.clear()

        @classmethod
        def load_model(cls, config: SimpleNamespace) -> None:
            pass

        def set_source_language(self, language: str) -> None:
            pass

        def set_target_language(self, language: str) -> None:
            pass

        def clear(self) -> None:
            self._course: RunningSentence | None = None
            self._shown: list[str] = []

        def tokens_to_string(self, tokens: list[str]) -> str:
            return between.join(tokens)

        def process_chunk(self, waveform: Any) -> Any:
            return self._listen(waveform, False)

        def end_of_stream(self) -> Any:
            return self._listen([], True)

        def _listen(self, samples: Any, finished: bool) -> Any:
            if self._course is None:
                self._number += 1
                self._course = RunningSentence(self._agent, self._number, RATE, joined_by)
            if not self._course.over:
                self._course.hear(samples, finished)
            old, new = self._shown, list(self._course.sentence.state.target)
            kept = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
            self._shown = new
            space = between if kept else ""
            added, deleted = new[kept:], old[kept:]
            return output(
                added,
                space * bool(added) + self.tokens_to_string(added),
                deleted,
                space * bool(deleted) + self.tokens_to_string(deleted),
            )

    Processor.__name__ = Processor.__qualname__ = f"{agent.__name__}Processor"
    Processor.__doc__ = f"{agent.__name__}, as simulstream runs it."
    return Processor
