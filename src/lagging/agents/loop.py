# SPDX-License-Identifier: Apache-2.0
"""Run sentences to their end with an agent: one at a time, or in batches."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import Any

from lagging.agents.failures import Failure, failure_from
from lagging.agents.protocol import Answer, State, shorten
from lagging.agents.sentence import Heartbeat, Sentence

__all__ = ["drive", "drive_batch"]

LOG = logging.getLogger("lagging.agents")


def drive(agent: Any, sentence: Sentence, heartbeat: Heartbeat | None = None) -> None:
    """Run a sentence to its end, with an agent that takes one sentence at a time.

    Args:
        agent: with `policy`, and optionally `reset`.
        sentence: the sentence; afterwards it holds the record.
        heartbeat: where to note when a step begins.

    Raises:
        Failure: the agent broke a rule or a limit.

    Example:
        >>> from lagging.agents.protocol import Traits
        >>> from lagging.agents.sources import TextSource
        >>> class Wait1:
        ...     def policy(self, state):
        ...         if len(state.target) < len(state.source):
        ...             return state.source[len(state.target)].upper()
        >>> sentence = Sentence(TextSource(["see", "you"]), Traits())
        >>> drive(Wait1(), sentence)
        >>> sentence.hypothesis.finish(), sentence.arrivals
        (('SEE YOU', [0, 2]), [1, 1, 2, 2])
    """
    beat: Heartbeat = [0] if heartbeat is None else heartbeat
    now, policy = time.perf_counter_ns, agent.policy
    sentence.heartbeat = beat
    loop = sentence.steps()
    send = loop.send
    try:
        if (reset := getattr(agent, "reset", None)) is not None:
            beat[0] = now()
            reset()
            beat[0] = 0
        state = next(loop)
        while True:
            beat[0] = begin = now()
            answer = sentence.collect_answers(policy(state))
            took = now() - begin
            try:
                send((answer, took))
            except StopIteration:
                break
    except BaseException as error:  # every exception of an agent is recorded
        if heartbeat is None and isinstance(error, KeyboardInterrupt):
            raise  # from the user: worker processes ignore SIGINT
        raise failure_from(error) from None
    finally:
        beat[0] = 0
    sentence.finish()


def drive_batch(
    agent: Any, sentences: Iterable[Sentence], width: int, heartbeat: Heartbeat | None = None
) -> Iterator[tuple[Sentence, Failure | None]]:
    """Run sentences to their end, up to `width` at a time, with an agent that takes batches.

    All sentences of a step are charged the whole time of the step, since a listener of any of them waits for it. If the
    agent raises, its sentences are tried one by one, and only those fail for which it raises again.

    Args:
        agent: with `policies`.
        sentences: the sentences; each is opened when there is room.
        width: the largest batch.
        heartbeat: where to note when a step begins.

    Yields:
        Each sentence when it has ended, and its failure, if it failed.

    Example:
        >>> from lagging.agents.protocol import Traits
        >>> from lagging.agents.sources import TextSource
        >>> class Copy:
        ...     def policies(self, states):
        ...         return [state.source[len(state.target):] for state in states]
        >>> two = [Sentence(TextSource(text.split()), Traits(batched=True)) for text in ("see you", "no")]
        >>> for sentence, failure in drive_batch(Copy(), two, width=2):
        ...     print(sentence.hypothesis.finish()[0], failure)
        no None
        see you None
    """
    beat: Heartbeat = [0] if heartbeat is None else heartbeat
    waiting = iter(sentences)
    active: list[tuple[Sentence, Generator[State, tuple[Answer, int], None]]] = []
    while True:
        for sentence in islice(waiting, width - len(active)):
            loop = sentence.steps()
            next(loop)
            active.append((sentence, loop))
        if not active:
            return
        remaining, finished = [], list[tuple[Sentence, Failure | None]]()
        for (sentence, loop), answer, took in _ask(agent, active, beat, heartbeat is not None):
            try:
                if isinstance(answer, Failure):
                    raise answer
                loop.send((answer, took))
                remaining.append((sentence, loop))
            except StopIteration:
                try:
                    sentence.finish()
                    finished.append((sentence, None))
                except Failure as failure:
                    finished.append((sentence, failure))
            except Exception as error:  # as in `drive`
                finished.append((sentence, failure_from(error)))
        beat[0] = 0  # writing the log line does not count as a step
        yield from finished
        active = remaining


def _ask(agent: Any, batch: list[Any], beat: Heartbeat, watched: bool) -> Iterator[tuple[Any, Answer | Failure, int]]:
    """The answers for a batch; where the agent raises, for one sentence after the other."""
    beat[0] = begin = time.perf_counter_ns()
    answers: Any
    try:
        answers = agent.policies([sentence.state for sentence, _ in batch])
        if not isinstance(answers, (list, tuple)) or len(answers) != len(batch):
            received = f"{len(answers)} answers" if isinstance(answers, (list, tuple)) else shorten(answers)
            raise Failure("wrong-type", f"{received} for {len(batch)} sentences")
        answers = [sentence.collect_answers(answer) for (sentence, _), answer in zip(batch, answers, strict=True)]
        took = time.perf_counter_ns() - begin
    except BaseException as error:
        if not watched and isinstance(error, KeyboardInterrupt):
            raise
        if len(batch) > 1:
            LOG.warning(
                "a batch of %d failed, and its sentences are tried one by one: %s", len(batch), failure_from(error)
            )
            for item in batch:
                yield from _ask(agent, [item], beat, watched)
            return
        answers, took = [failure_from(error)], time.perf_counter_ns() - begin
    for item, answer in zip(batch, answers, strict=True):
        yield item, answer, took
