# SPDX-License-Identifier: Apache-2.0
"""An agent of `lagging` as a class that SimulEval runs: `simuleval --agent file.py`.

SimulEval follows every write by a read, and ends a recording with its last chunk. So all that an agent writes for the
source so far is written at once, and after the end of the source, the whole rest. What had been read by then is the
same, and so are the delays.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator
from typing import Any

import numpy as np

from lagging.agents.failures import Failure
from lagging.agents.loading import build
from lagging.agents.protocol import Answer, State, Traits, as_agent
from lagging.agents.sentence import Limits, Sentence
from lagging.agents.simuleval.package import import_simuleval
from lagging.agents.sources import SampleBuffer, SpeechSource, TextSource
from lagging.errors import LaggingError, UsageError

__all__ = ["RunningSentence", "for_simuleval"]

LIMITS = Limits()
JOINTS = {"word": " ", "none": "", "spm": " "}
RATE = 16_000


class _PushedSentence(Sentence):
    """A sentence whose source is pushed by SimulEval; before each call of the agent it waits for source."""

    needs_source = False

    def __post_init__(self) -> None:
        """Open the state."""
        super().__post_init__()
        self._buffer = SampleBuffer()

    def _read(self) -> None:
        self.needs_source = True

    def feed(self, content: Any, finished: bool) -> None:
        """Add source: words, or samples."""
        source = self.source
        if isinstance(source, TextSource):
            source.seen += content
            source.read = source.length = len(source.seen)
        else:
            self._buffer.add(content)
            source.seen = self._buffer.samples_so_far
            source.read = source.length = len(source.seen) * 1000 / source.sample_rate
        self.state.source, self.state.finished = source.seen, finished
        self._max_tokens = LIMITS.max_tokens(source)  # the limit grows with the source
        self.needs_source = False


class RunningSentence:
    """A sentence of an agent, as far as it has been translated."""

    def __init__(self, agent: Any, index: int, rate: int, joined_by: str) -> None:
        self.agent, traits = agent, Traits.of(agent)
        source = SpeechSource(np.zeros(0, dtype=np.float32), rate, 1) if traits.source == "speech" else TextSource([])
        self.sentence = _PushedSentence(source, traits, Limits(tokens=1 << 30), index, joined_by)
        self.over = False
        self._written: list[Any] = []
        if (reset := getattr(agent, "reset", None)) is not None:
            reset()
        self._loop: Generator[State, tuple[Answer, int], None] = self.sentence.steps()
        next(self._loop)

    def listen(self, content: Any, finished: bool) -> list[Any]:
        """Add source; returns all that the agent writes for it."""
        sentence = self.sentence
        self.hear(content, finished)
        written, target = self._written, sentence.state.target
        if len(target) < len(written) or any(a is not b for a, b in zip(written, target, strict=False)):
            raise LaggingError("the agent erases what it has written, which SimulEval does not support")
        new, self._written = target[len(written) :], [*target]
        return new

    def hear(self, content: Any, finished: bool) -> None:
        """Add source, and call the agent."""
        self._call_agent()  # an eager agent is asked before there is any source
        if not self.over:
            self.sentence.feed(content, finished)
            self._call_agent()

    def _call_agent(self) -> None:
        """Call the agent until it needs more source, or has finished."""
        sentence, max_tokens = self.sentence, LIMITS.max_tokens(self.sentence.source)
        n_calls = 0
        while not (sentence.needs_source or self.over):
            n_calls += 1
            if n_calls > max_tokens + 1 or len(sentence.state.target) > max_tokens:
                raise Failure("never-finished", f"{max_tokens} tokens or writes, which is the limit")
            answer = self._ask(sentence.state)
            try:
                self._loop.send((sentence.collect_answers(answer), 0))
            except StopIteration:
                self.over = True

    def _ask(self, state: State) -> Any:
        return self.agent.policies([state])[0] if self.sentence.traits.batched else self.agent.policy(state)


def for_simuleval(agent: Any, joined_by: str = "word") -> Any:
    """A class for SimulEval's runner, from an agent of `lagging`; it is marked as the entry point of its file.

        # my_agent.py                        simuleval --agent my_agent.py --k 3 --source … --target …
        from lagging.agents.simuleval import for_simuleval

        class WaitK:
            def __init__(self, k=3): …
            def policy(self, state): …

        for_simuleval(WaitK)

    The arguments of the class become options of SimulEval's command line. Delays and predictions are those of `lagging
    run`. An agent that erases tokens cannot be run: SimulEval does not support it.

    Args:
        agent: a class, or a function of the state.
        joined_by: what the agent writes: "word" for whole words, "none" for text with its spaces, with SimulEval's
            `--eval-latency-unit char`, "spm" for pieces, with `--eval-latency-unit spm`.

    Returns:
        A subclass of SimulEval's agent for these types.

    Raises:
        UsageError: SimulEval is not installed, or cannot run such an agent.
    """
    package, traits = import_simuleval(), Traits.of(agent)
    if joined_by not in JOINTS:
        raise UsageError(f"in SimulEval, pieces are joined by one of {', '.join(JOINTS)}, not {joined_by!r}")
    if traits.sees_reference:
        raise UsageError(
            "an agent that must see the reference cannot be run in SimulEval, which does not show it to agents"
        )
    kinds = {("text", "text"): "TextToTextAgent", ("speech", "text"): "SpeechToTextAgent"}
    base = getattr(package.agents, kinds.get((traits.source, traits.target), "SpeechToSpeechAgent"))
    read, write, segments = package.agents.ReadAction, package.agents.WriteAction, package.segments
    is_class = isinstance(agent, type)
    names = [*inspect.signature(agent).parameters] if is_class else []

    class SimulEvalAgent(base):  # type: ignore[misc, valid-type]
        def __init__(self, args: Any = None) -> None:
            options = {name: str(value) for name in names if (value := getattr(args, name, None)) is not None}
            self._agent = build(agent, options) if is_class else as_agent(agent)
            self._number = -1
            super().__init__(args)

        @staticmethod
        def add_args(parser: Any) -> None:
            for name in names:
                flag = f"--{name.replace('_', '-')}"
                if flag not in parser._option_string_actions:  # SimulEval's own --device stays
                    parser.add_argument(flag, dest=name)

        def reset(self) -> None:
            super().reset()
            self._course: RunningSentence | None = None
            self._heard: list[Any] = []

        def push(self, source_segment: Any, states: Any = None, upstream_states: Any = None) -> None:
            super().push(source_segment, states, upstream_states)
            if not source_segment.is_empty:
                content = source_segment.content
                self._heard += content.split() if isinstance(content, str) else content

        def policy(self) -> Any:
            if self._course is None:
                self._number += 1
                self._course = RunningSentence(
                    self._agent, self._number, self.states.source_sample_rate or RATE, joined_by
                )
            course, heard, ended = self._course, self._heard, self.states.source_finished
            self._heard = []
            new = [] if course.over else course.listen(heard, ended)
            # SimulEval would continue with the rest of a recording, for which the agent is not called
            finished = course.over and (ended or traits.source == "text")
            if not new:
                return write(segments.EmptySegment(finished=True), True) if finished else read()
            if traits.target == "text":
                return write(JOINTS[joined_by].join(new), finished)
            rate = course.sentence.rates[0]
            samples = np.concatenate(new).tolist()
            return write(segments.SpeechSegment(0, samples, finished, sample_rate=rate), finished)

    SimulEvalAgent.__name__ = SimulEvalAgent.__qualname__ = getattr(agent, "__name__", type(agent).__name__)
    SimulEvalAgent.__doc__ = f"{SimulEvalAgent.__name__}, as SimulEval runs it."
    package.utils.entrypoint(SimulEvalAgent)
    return SimulEvalAgent
