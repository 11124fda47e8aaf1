# SPDX-License-Identifier: Apache-2.0
"""Agents that decide by the source, or by a model, when to write.

`Greedy` is the simultaneous greedy decoding of Cho & Esipova (2016, arXiv:1606.02012), for any model that gives
distributions of the next token. Two contexts are compared: C, from which the next token is predicted, and C ∪ C′, with
δ more source tokens. C begins with s₀ tokens. While the criterion holds, C′ is added to C; otherwise the most likely
token given C is written, and C stays. Once C is the whole source, the rest of the translation is written.

    ŷ = argmax_y p(y | y_<t, C)
    wait-if-worse    wait while  log p(ŷ | y_<t, C) > log p(ŷ | y_<t, C ∪ C′):  more source makes ŷ less likely
    wait-if-diff     wait while  ŷ ≠ argmax_y p(y | y_<t, C ∪ C′):              more source makes another token the best

The criterion needs C′ to have been read. A token written from C therefore has the delay |C ∪ C′|, where the paper
counts |C|. There is no length penalty and no length limit; the limits of the run hold.

`Segmented` translates segment by segment, each when it is complete (Fügen et al., 2007; Oda et al., 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

from lagging.agents.protocol import DONE, State, Write
from lagging.data.ragged import Floats
from lagging.errors import UsageError, did_you_mean
from lagging.policies import PUNCTUATION

__all__ = ["CRITERIA", "Distribution", "Greedy", "Segmented", "at_punctuation", "wait_if_diff", "wait_if_worse"]

Criterion: TypeAlias = Callable[[Floats, Floats], bool]
"""Whether to wait, from log-probabilities of the next token given C, and given C ∪ C′."""


class Distribution(Protocol):
    """A model that gives distributions of the next token."""

    @property
    def vocabulary(self) -> Sequence[str]:
        """The tokens of the model, with one for the end of the sentence."""

    def __call__(self, source: Sequence[str], target: Sequence[str], finished: bool, /) -> Any:
        """The log-probability of each token as the next target token, as an array.

        The arguments are the source so far, the target so far, and whether that is the whole source.
        """


def wait_if_worse(now: Floats, more: Floats) -> bool:
    """Whether the best token becomes less likely with more source.

    Example:
        >>> wait_if_worse(np.log([0.6, 0.4]), np.log([0.5, 0.5]))
        True
    """
    best = int(np.argmax(now))
    return bool(now[best] > more[best])


def wait_if_diff(now: Floats, more: Floats) -> bool:
    """Whether another token becomes the best with more source.

    Example:
        >>> wait_if_diff(np.log([0.9, 0.1]), np.log([0.6, 0.4]))
        False
    """
    return bool(np.argmax(now) != np.argmax(more))


CRITERIA: dict[str, Criterion] = {"wait-if-worse": wait_if_worse, "wait-if-diff": wait_if_diff}


@dataclass
class _Context:
    """Context of a sentence: |C|, and the known distributions of target token `n_target`, by source length."""

    size: int
    n_target: int = 0
    known: dict[int, Floats] = field(default_factory=dict)


class Greedy:
    """Simultaneous greedy decoding (Cho & Esipova, 2016); see the module docstring.

    No distribution is computed twice.

    Args:
        model: gives distributions of the next token.
        criterion: "wait-if-worse", "wait-if-diff", or a function of log-probabilities given C and given C ∪ C′.
        s0: the number of source tokens that C begins with.
        delta: the number of further source tokens that the criterion uses.
        end: the token that ends a sentence.

    Raises:
        UsageError: an argument is not valid; while running, the model does not return a distribution.

    Example:
        >>> class Copy:
        ...     vocabulary = ["a", "b", "</s>"]
        ...     def __call__(self, source, target, finished):
        ...         following = source[len(target)] if len(target) < len(source) else "</s>"
        ...         return np.log([0.8 if token == following else 0.1 for token in self.vocabulary])
        >>> from lagging.agents.loop import drive
        >>> from lagging.agents.sentence import Sentence, Traits, TextSource
        >>> agent = Greedy(Copy(), "wait-if-diff", s0=1, delta=1)
        >>> sentence = Sentence(TextSource(["a", "b", "b"]), Traits.of(agent))
        >>> drive(agent, sentence)
        >>> text, steps = sentence.hypothesis.finish()
        >>> text, [sentence.arrivals[step] for step in steps]
        ('a b b', [2, 3, 3])
    """

    def __init__(
        self, model: Distribution, criterion: str | Criterion, *, s0: int = 1, delta: int = 1, end: str = "</s>"
    ) -> None:
        if isinstance(criterion, str):
            if criterion not in CRITERIA:
                raise UsageError(f"there is no criterion {criterion!r}.{did_you_mean(criterion, CRITERIA)}")
            criterion = CRITERIA[criterion]
        for name, value in (("s0", s0), ("delta", delta)):
            if value != int(value) or value < 1:
                raise UsageError(f"{name} is a whole number of source tokens, at least 1, but got {value}")
        if end not in model.vocabulary:
            raise UsageError(f"the model's vocabulary has no {end!r}: give the token that ends a sentence as `end`")
        self.model, self.criterion, self.s0, self.delta, self.end = model, criterion, s0, delta, end

    def policy(self, state: State) -> Write | None:
        """Read while the criterion holds or its source tokens are missing; else write the best token given C."""
        if state.memory is None:
            state.memory = _Context(self.s0)
        context: _Context = state.memory
        read = len(state.source)
        while state.finished or context.size + self.delta <= read:
            context.size = min(context.size, read)
            now = self._distribution(state, context, context.size)
            ahead = min(context.size + self.delta, read)
            if ahead == context.size or not self.criterion(now, self._distribution(state, context, ahead)):
                token = self.model.vocabulary[int(np.argmax(now))]
                return DONE if token == self.end else Write([token])
            context.size = ahead
        return None

    def _distribution(self, state: State, context: _Context, size: int) -> Floats:
        """Log-probabilities of the next token given the first `size` source tokens."""
        if context.n_target != len(state.target):
            context.n_target = len(state.target)
            context.known.clear()
        if size not in context.known:
            whole = state.finished and size == len(state.source)
            logs: Floats = np.asarray(self.model(state.source[:size], state.target, whole), dtype=np.float64)
            if logs.shape != (len(self.model.vocabulary),) or np.isnan(logs).any():
                raise UsageError(
                    f"the model must give a log-probability for each of the {len(self.model.vocabulary)} tokens of its "
                    f"vocabulary, but gave {'NaN' if np.isnan(logs).any() else f'an array of shape {logs.shape}'}"
                )
            context.known[size] = logs
        return context.known[size]


def at_punctuation(source: Sequence[str]) -> bool:
    """Whether the last token ends in a punctuation mark.

    Example:
        >>> at_punctuation(["Yes,"]), at_punctuation(["Yes,", "I"])
        (True, False)
    """
    return source[-1].endswith(PUNCTUATION)


class Segmented:
    """Reads to the end of a segment, translates it, and continues; the end of the source ends the last segment.

    Args:
        translate: returns the translation of a segment, from its tokens; it may be empty.
        ends: whether a segment ends with the last of the given source tokens.

    Example:
        >>> from lagging.agents.loop import drive
        >>> from lagging.agents.sentence import Sentence, Traits, TextSource
        >>> agent = Segmented(lambda segment: " ".join(segment).upper())
        >>> sentence = Sentence(TextSource("Yes, I see.".split()), Traits.of(agent))
        >>> drive(agent, sentence)
        >>> text, steps = sentence.hypothesis.finish()
        >>> text, [sentence.arrivals[step] for step in steps]
        ('YES, I SEE.', [1, 3, 3])
    """

    def __init__(
        self, translate: Callable[[Sequence[str]], str], ends: Callable[[Sequence[str]], bool] = at_punctuation
    ) -> None:
        self.translate, self.ends = translate, ends

    def policy(self, state: State) -> list[str]:
        """The translations of the segments that were completed since the last call."""
        begin, seen = state.memory or (0, 0)
        source, translations = state.source, []
        for read in range(seen + 1, len(source) + 1):
            if self.ends(source[:read]) or (state.finished and read == len(source)):
                translations.append(self.translate(source[begin:read]))
                begin = read
        state.memory = begin, len(source)
        return translations
