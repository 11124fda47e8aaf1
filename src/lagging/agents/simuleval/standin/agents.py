# SPDX-License-Identifier: Apache-2.0
"""Actions, and the agents that take them."""

from __future__ import annotations

import inspect
from argparse import ArgumentParser
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from lagging.agents.simuleval.standin.segments import KINDS, EmptySegment, Segment, SpeechTextSegment
from lagging.agents.simuleval.standin.states import AgentStates

__all__ = [
    "Action",
    "AgentStates",
    "GenericAgent",
    "ReadAction",
    "SpeechToSpeechAgent",
    "SpeechToTextAgent",
    "TextToSpeechAgent",
    "TextToTextAgent",
    "WriteAction",
]


class Action:
    """What a policy decides on."""

    def is_read(self) -> bool:
        """Whether it is to read on."""
        raise NotImplementedError(f"{type(self).__name__} does not say whether it reads")


@dataclass(frozen=True)
class ReadAction(Action):
    """Read on."""

    def is_read(self) -> bool:
        """Yes."""
        return True


@dataclass(frozen=True)
class WriteAction(Action):
    """Write.

    Attributes:
        content: text, samples, or a segment.
        finished: whether that was the last.
    """

    content: Any
    finished: bool

    def is_read(self) -> bool:
        """No."""
        return False


class GenericAgent:
    """An agent: segments are pushed into it, and it is asked for one by `pop`.

    A subclass has `policy(self)`, which looks at `self.states`, or `policy(self, states)`, which looks at what it is
    given, and so can go through several sentences at once.

    Attributes:
        source_type, target_type: "text" or "speech".
        args: its options.
        states: what it has read and written.
        device: where it computes.
    """

    source_type: str | None = None
    target_type: str | None = None
    device: Any = "cpu"

    def __init__(self, args: Any = None) -> None:
        for side in ("source_type", "target_type"):
            assert getattr(self, side) is not None, f"{type(self).__name__} has no {side}"
        self.args = args
        self.states = self.build_states()
        self.reset()

    # ---- what a subclass says

    def policy(self, states: Any = None) -> Action:
        """What to do now."""
        raise NotImplementedError(f"{type(self).__name__} has no policy")

    def build_states(self) -> Any:
        """What it keeps of a sentence."""
        return AgentStates()

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        """Add its options; by default it has none."""

    @classmethod
    def from_args(cls, args: Any, **others: Any) -> Self:
        """An agent with these options."""
        return cls(args, **others)

    def to(self, device: Any, *args: Any, **kwargs: Any) -> None:
        """Go to a device; an agent with a model says how."""

    # ---- what is done with it

    def reset(self) -> None:
        """Begin a sentence."""
        self.states.reset()

    def push(self, source_segment: Any, states: Any = None, upstream_states: list[Any] | None = None) -> None:
        """Read a segment.

        Args:
            source_segment: what is read.
            states: where it is noted; in the agent's own if not given.
            upstream_states: of the modules before it in a pipeline.
        """
        states = self.states if states is None else states
        if upstream_states is not None:
            states.upstream_states = upstream_states
        states.update_config(source_segment.config)
        states.update_source(source_segment)

    def pop(self, states: Any = None) -> Any:
        """Ask the policy once.

        Returns:
            What it writes; empty if it reads on; empty and finished after the last.
        """
        if states is None:
            states = self.states
        elif not self._takes_states:
            raise RuntimeError(f"{self!r} cannot be asked about other states: its policy takes none")
        if states.target_finished:
            return EmptySegment(finished=True)
        action = self.policy(states) if self._takes_states else self.policy()
        if not isinstance(action, Action):
            raise TypeError(f"the policy of {self!r} has answered by a {type(action).__name__}, which is no Action")
        return EmptySegment() if action.is_read() else self._written(action, states)

    def pushpop(self, segment: Any, states: Any = None, upstream_states: list[Any] | None = None) -> Any:
        """Read a segment, and ask."""
        self.push(segment, states, upstream_states)
        return self.pop(states)

    def _written(self, action: Any, states: Any) -> Any:
        """What is written, as a segment. If the agent has made one, it is handed out as it is."""
        if isinstance(action.content, Segment | SpeechTextSegment):
            return action.content
        if (kind := KINDS.get(self.target_type)) is None:
            raise TypeError(f"{self!r} has written a {type(action.content).__name__}, where a segment was due")
        segment = kind(content=action.content, finished=action.finished, tgt_lang=states.tgt_lang)
        states.update_target(segment)
        return segment

    @cached_property
    def _takes_states(self) -> bool:
        return bool(inspect.signature(self.policy).parameters)

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.source_type} -> {self.target_type}]"


class SpeechToTextAgent(GenericAgent):
    """From speech to text."""

    source_type, target_type = "speech", "text"


class SpeechToSpeechAgent(GenericAgent):
    """From speech to speech."""

    source_type, target_type = "speech", "speech"


class TextToSpeechAgent(GenericAgent):
    """From text to speech."""

    source_type, target_type = "text", "speech"


class TextToTextAgent(GenericAgent):
    """From text to text."""

    source_type, target_type = "text", "text"
