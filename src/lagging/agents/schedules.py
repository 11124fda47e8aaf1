# SPDX-License-Identifier: Apache-2.0
"""The schedules of `lagging.policies` as agents: g(t) decides when to write, a model or the reference what.

    Scheduled    writes the tokens of a model. The schedule must not depend on the lengths of source and translation:
                 wait-K, wait-K-catchup=C, offline, prescient
    Oracle       writes the words of the reference. It knows both lengths, so that it can follow every schedule, and
                 shows the latency of a schedule in the same loop as that of real agents

Source tokens are read one at a time; if more are read at once, the agent writes after the whole read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from lagging.agents.protocol import DONE, State, Write
from lagging.data.ragged import Floats
from lagging.errors import UsageError, did_you_mean
from lagging.policies import PUNCTUATION, Policy, policy

__all__ = ["NextToken", "Oracle", "Scheduled", "from_name"]

TARGET_LEVELS = ("word", "char")


class NextToken(Protocol):
    """A model that predicts the next token."""

    def __call__(self, source: Sequence[str], target: Sequence[str], finished: bool, /) -> str | None:
        """The next target token, from the source so far, the target so far, and whether that is the whole source.

        None ends the sentence, even if there is more source.
        """


class Scheduled:
    """A model that writes by a schedule: token t as soon as h(t) source tokens have been read, or all of them.

    h(t) is the schedule for an endless source: k + t − 1 for wait-k (Ma et al., 2018).

    Args:
        schedule: a policy, or its name.
        model: predicts the next token.

    Raises:
        UsageError: the schedule depends on the lengths of source and translation.

    Example:
        >>> from lagging.agents import State
        >>> def shout(source, target, finished):
        ...     return source[len(target)].upper() if len(target) < len(source) else None
        >>> agent = Scheduled("wait-2", shout)
        >>> state = State(["see"])
        >>> agent.policy(state)
        >>> state.source = ["see", "you"]
        >>> agent.policy(state).content
        ['SEE']
    """

    def __init__(self, schedule: Policy | str, model: NextToken) -> None:
        self.schedule = policy(schedule) if isinstance(schedule, str) else schedule
        if not self.schedule.online:
            raise UsageError(
                f"{self.schedule.name} cannot be followed online: when it writes depends on "
                "the lengths of source and translation\n  fix: use wait-K, wait-K-catchup=C or offline; or "
                "an Oracle, which knows the lengths."
            )
        self.model = model
        self.eager = self.schedule.due(1) < 1

    def policy(self, state: State) -> Write | None:
        """Read until the next token is due, then write it."""
        if not state.finished and len(state.source) < self.schedule.due(len(state.target) + 1):
            return None
        token = self.model(state.source, state.target, state.finished)
        return DONE if token is None else Write([token])


@dataclass
class _Task:
    """State of a sentence: the tokens and their delays; and the last punctuation mark in the source seen so far."""

    tokens: list[str]
    delays: Floats
    seen: int = 0
    usable: int = 0


class Oracle:
    """Writes the reference by a schedule.

    Its delays are those of `Policy.delays`, including delays of 0: it is called before the first read.

    Args:
        schedule: a policy, or its name.
        level: the unit that is written: "word", or "char". For "char", the run has to join pieces unchanged and count
            characters: `joined_by="none"`, `level="char"`.

    Example:
        >>> from lagging.agents.loop import drive
        >>> from lagging.agents.sentence import Sentence, Traits, TextSource
        >>> agent = Oracle("antagonist-4")
        >>> traits = Traits.of(agent)
        >>> sentence = Sentence(TextSource(list("abcde")), traits, reference="the reference has five words")
        >>> drive(agent, sentence)
        >>> text, steps = sentence.hypothesis.finish()
        >>> text, [sentence.arrivals[step] for step in steps]
        ('the reference has five words', [4, 4, 4, 4, 5])
    """

    eager = True
    sees_reference = True

    def __init__(self, schedule: Policy | str, level: str = "word") -> None:
        if level not in TARGET_LEVELS:
            raise UsageError(f"a reference is written by one of {', '.join(TARGET_LEVELS)}, not {level!r}")
        self.schedule = policy(schedule) if isinstance(schedule, str) else schedule
        self._to_lengths = replace(self.schedule, at_punctuation=False)
        self._token = re.compile(
            r"\S++" if level == "word" else r"(?<!\s)\s*+\S"
        )  # a space goes with the character after it

    def policy(self, state: State) -> Write | None:
        """Write all tokens that are due."""
        if state.memory is None:
            if state.reference is None or state.source_length is None:
                raise UsageError(f"{self.schedule.name} writes the reference, and there is none")
            tokens = self._token.findall(state.reference)
            state.memory = _Task(tokens, self._to_lengths.delays(int(state.source_length), len(tokens)))
        task: _Task = state.memory
        begin = len(state.target)
        end = int(np.searchsorted(task.delays, self._usable_source(state, task), side="right"))
        finished = end == len(task.tokens)
        return Write(task.tokens[begin:end], finished=finished) if end > begin or finished else None

    def _usable_source(self, state: State, task: _Task) -> int:
        """Number of source tokens read; for a schedule that waits for punctuation, up to the last punctuation mark."""
        read = len(state.source)
        if not self.schedule.at_punctuation or state.finished:
            return read
        for position in range(task.seen, read):
            if state.source[position].endswith(PUNCTUATION):
                task.usable = position + 1
        task.seen = read
        return task.usable


def from_name(name: str, options: Mapping[str, str]) -> Oracle:
    """The agent of `lagging run wait-3`: an Oracle.

    Args:
        name: name of a policy; see `lagging.policies.policy`.
        options: `level`, "word" by default.

    Example:
        >>> from_name("wait-3-catchup", {}).schedule.name
        'wait-3-catchup'
    """
    schedule = policy(name)
    for option in options:
        if option != "level":
            raise UsageError(f"{name} has no option {option!r}.{did_you_mean(option, ['level'])}")
    return Oracle(schedule, **options)
