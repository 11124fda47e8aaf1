# SPDX-License-Identifier: Apache-2.0
"""Sentences taken through to their end by an agent: one at a time, or many at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from types import GeneratorType
from typing import Any

from lagging.agents.failures import Failure, raised
from lagging.agents.protocol import Answer, State, short
from lagging.agents.sentence import Pulse, Sentence

__all__ = ["drive", "drive_batch"]

LOG = logging.getLogger("lagging.agents")


def drive(agent: Any, sentence: Sentence, pulse: Pulse | None = None) -> None:
    """Take a sentence through to its end, with an agent that takes one at a time.

    Args:
        agent: with `policy`, and perhaps `reset`.
        sentence: the sentence; afterwards it holds what happened.
        pulse: where to note when a step begins.

    Raises:
        Failure: the agent has done what it must not.

    Example:
        >>> from lagging.agents.protocol import Traits
        >>> from lagging.agents.sources import Written
        >>> class Wait1:
        ...     def policy(self, state):
        ...         if len(state.target) < len(state.source):
        ...             return state.source[len(state.target)].upper()
        >>> sentence = Sentence(Written(["see", "you"]), Traits())
        >>> drive(Wait1(), sentence)
        >>> sentence.hypothesis.finish(), sentence.arrivals
        (('SEE YOU', [0, 2]), [1, 1, 2, 2])
    """
    watch: Pulse = [0] if pulse is None else pulse
    now, policy = time.perf_counter_ns, agent.policy
    sentence.pulse = watch
    loop = sentence.steps()
    send = loop.send
    try:
        if (reset := getattr(agent, "reset", None)) is not None:
            watch[0] = now()
            reset()
            watch[0] = 0
        state = next(loop)
        while True:
            watch[0] = begin = now()
            answer = policy(state)
            if type(answer) is GeneratorType:
                answer = sentence.drain(answer)
            took = now() - begin
            try:
                send((answer, took))
            except StopIteration:
                break
    except BaseException as error:  # whatever an agent raises is the agent's, and is recorded
        if pulse is None and isinstance(error, KeyboardInterrupt):
            raise  # where nobody watches it is the user's; workers do not hear Ctrl-C
        raise raised(error) from None
    finally:
        watch[0] = 0
    sentence.finish()


def drive_batch(
    agent: Any, sentences: Iterable[Sentence], width: int, pulse: Pulse | None = None
) -> Iterator[tuple[Sentence, Failure | None]]:
    """Take sentences through to their end, up to `width` of them at a time, with an agent that takes many at once.

    All sentences of a step are charged the whole time that the step took: that is what somebody who listens to one of
    them waits for. If the agent raises, the sentences are tried one by one, and those fail that it raises for.

    Args:
        agent: with `policies`.
        sentences: what to translate, opened when there is room.
        width: how many to keep open.
        pulse: where to note when a step begins.

    Yields:
        Each sentence when it is over, and how it failed, if it did.

    Example:
        >>> from lagging.agents.protocol import Traits
        >>> from lagging.agents.sources import Written
        >>> class Copy:
        ...     def policies(self, states):
        ...         return [state.source[len(state.target):] for state in states]
        >>> two = [Sentence(Written(text.split()), Traits(batched=True)) for text in ("see you", "no")]
        >>> for sentence, failure in drive_batch(Copy(), two, width=2):
        ...     print(sentence.hypothesis.finish()[0], failure)
        no None
        see you None
    """
    watch: Pulse = [0] if pulse is None else pulse
    waiting = iter(sentences)
    open_now: list[tuple[Sentence, Generator[State, tuple[Answer, int], None]]] = []
    while True:
        for sentence in islice(waiting, width - len(open_now)):
            loop = sentence.steps()
            next(loop)
            open_now.append((sentence, loop))
        if not open_now:
            return
        still, over = [], list[tuple[Sentence, Failure | None]]()
        for (sentence, loop), answer, took in _ask(agent, open_now, watch, pulse is not None):
            try:
                if isinstance(answer, Failure):
                    raise answer
                loop.send((answer, took))
                still.append((sentence, loop))
            except StopIteration:
                try:
                    sentence.finish()
                    over.append((sentence, None))
                except Failure as failure:
                    over.append((sentence, failure))
            except Exception as error:  # as in `drive`
                over.append((sentence, raised(error)))
        watch[0] = 0  # what is done with a sentence that is over is not the agent's
        yield from over
        open_now = still


def _ask(agent: Any, some: list[Any], watch: Pulse, watched: bool) -> Iterator[tuple[Any, Answer | Failure, int]]:
    """The answers for some sentences at once, or, where the agent raises, for one after the other."""
    watch[0] = begin = time.perf_counter_ns()
    answers: Any
    try:
        answers = agent.policies([sentence.state for sentence, _ in some])
        if not isinstance(answers, (list, tuple)) or len(answers) != len(some):
            said = f"{len(answers)} answers" if isinstance(answers, (list, tuple)) else short(answers)
            raise Failure("wrong-type", f"{said} for {len(some)} sentences")
        answers = [
            sentence.drain(answer) if type(answer) is GeneratorType else answer
            for (sentence, _), answer in zip(some, answers, strict=True)
        ]
        took = time.perf_counter_ns() - begin
    except BaseException as error:
        if not watched and isinstance(error, KeyboardInterrupt):
            raise
        if len(some) > 1:
            LOG.warning("a batch of %d failed, and its sentences are tried one by one: %s", len(some), raised(error))
            for one in some:
                yield from _ask(agent, [one], watch, watched)
            return
        answers, took = [raised(error)], time.perf_counter_ns() - begin
    for one, answer in zip(some, answers, strict=True):
        yield one, answer, took
