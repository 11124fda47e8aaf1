# SPDX-License-Identifier: Apache-2.0
"""Policies: how much of a model's hypothesis is written after each read.

After each read the model translates the source so far, with what was written before forced as its beginning. The policy
says how many tokens of this hypothesis are written; of these, complete words are. When the source has ended, all of the
hypothesis is written. What was written is never taken back.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from numbers import Integral, Real
from typing import Any, ClassVar

from lagging.errors import UsageError, did_you_mean

__all__ = [
    "POLICIES",
    "AlignAtt",
    "CandidateAgreement",
    "EDAtt",
    "Hold",
    "Hypothesis",
    "LocalAgreement",
    "Offline",
    "Policy",
    "RelaxedAgreement",
    "View",
    "WaitK",
    "make_policy",
]


@dataclass(frozen=True)
class Hypothesis:
    """What a model makes of the source so far.

    Attributes:
        tokens: all tokens, with those that were written before, and without the end of the sentence.
        ended: whether the model ended the sentence; if not, a limit did.
        attention: for each token after those that were written before, the attention to each unit of the source:
            words of text, frames of speech. Empty if the policy does not need it.
    """

    tokens: tuple[int, ...]
    ended: bool
    attention: tuple[tuple[float, ...], ...] = ()


@dataclass
class View:
    """What a policy sees of a sentence.

    Attributes:
        written: how many tokens of the translation have been written.
        words: how many words (characters, if there are no spaces) have been written.
        units: how much source has been read: words of text, or chunks of speech.
        earlier: what the policy keeps: hypotheses of earlier reads.
    """

    written: int = 0
    words: int = 0
    units: int = 0
    earlier: list[Hypothesis] = field(default_factory=list)


class Policy:
    """When to write; see the head of this module.

    Attributes:
        attends: whether it needs the attention to the source.
        beams: how many candidates it needs.
    """

    attends: ClassVar[bool] = False
    beams: int = 1

    def asks(self, view: View) -> bool:
        """Whether the model is to be asked after this read; it always is when the source has ended."""
        return True

    def due(self, view: View) -> int | None:
        """How many words the translation may have after this read; None for any number."""
        return None

    def agreed(self, view: View, candidates: Sequence[Hypothesis]) -> tuple[int, ...]:
        """The tokens to write, from the beginning of the sentence; candidates are in the order of the beam."""
        raise NotImplementedError


class Offline(Policy):
    """Read everything, then write: the topline, and the latest that a system can be."""

    def asks(self, view: View) -> bool:
        """Only at the end."""
        return False


class WaitK(Policy):
    """Wait-k: read k units, then write and read by turns (Ma et al., 2019, STACL, ACL, arXiv:1810.08398).

    The model was not trained for it: this is test-time wait-k. If the model ends the sentence before the source has
    ended, it reads on. For speech a unit is a chunk, and `words` are written after each (Ma et al., 2020, SimulMT to
    SimulST, AACL, arXiv:2011.02048).

    Args:
        k: units to read before the first word, 1 or more.
        words: words for each unit after that, 1 or more.
    """

    def __init__(self, k: int = 3, words: int = 1) -> None:
        self.k, self.words = _whole("k", k, 1), _whole("words", words, 1)

    def asks(self, view: View) -> bool:
        """Whether a word is due."""
        return self.due(view) > view.words

    def due(self, view: View) -> int:
        """Words by the schedule."""
        return max((view.units - self.k + 1) * self.words, 0)

    def agreed(self, view: View, candidates: Sequence[Hypothesis]) -> tuple[int, ...]:
        """All; `due` says how many words."""
        return candidates[0].tokens


class LocalAgreement(Policy):
    """Local agreement: write what the last n hypotheses have in common (Liu et al., 2020, Interspeech,
    arXiv:2005.11185; Polák et al., 2022, IWSLT).

    Args:
        n: how many hypotheses have to agree, 2 or more.
    """

    def __init__(self, n: int = 2) -> None:
        self.n = _whole("n", n, 2)

    def agreed(self, view: View, candidates: Sequence[Hypothesis]) -> tuple[int, ...]:
        """The longest common prefix of the last n hypotheses."""
        view.earlier = [*view.earlier, candidates[0]][-self.n :]
        if len(view.earlier) < self.n:
            return candidates[0].tokens[: view.written]
        common = candidates[0].tokens
        for other in view.earlier:
            common = common[: _shared(common, other.tokens)]
        return common


class Hold(Policy):
    """Hold-n: write all but the last n tokens of each hypothesis (Liu et al., 2020, Interspeech, arXiv:2005.11185).

    Args:
        n: tokens (subwords) to hold back, 0 or more.
    """

    def __init__(self, n: int = 4) -> None:
        self.n = _whole("n", n, 0)

    def agreed(self, view: View, candidates: Sequence[Hypothesis]) -> tuple[int, ...]:
        """All but the last n."""
        tokens = candidates[0].tokens
        return tokens[: max(len(tokens) - self.n, view.written)]


class AlignAtt(Policy):
    """AlignAtt: stop before the first token that attends most to one of the last f units of the source (Papi et al.,
    2023, Interspeech, arXiv:2305.11408).

    Args:
        f: units of the source: words of text, frames of the encoder for speech (20 ms of Whisper); 0 or more.
    """

    attends = True

    def __init__(self, f: int = 1) -> None:
        self.f = _whole("f", f, 0)

    def agreed(self, view: View, candidates: Sequence[Hypothesis]) -> tuple[int, ...]:
        """Tokens before the first that attends to the end."""
        best = candidates[0]
        for index, row in enumerate(best.attention):
            if max(range(len(row)), key=row.__getitem__) >= len(row) - self.f:
                return best.tokens[: view.written + index]
        return best.tokens


class EDAtt(Policy):
    """EDAtt: stop before the first token that gives a share alpha of its attention, or more, to the last units of the
    source (Papi et al., 2023, ACL, arXiv:2212.07850).

    Args:
        alpha: the share, above 0 and at most 1.
        last: how many units: words of text, frames of the encoder for speech; 1 or more.
    """

    attends = True

    def __init__(self, alpha: float = 0.3, last: int = 1) -> None:
        self.alpha, self.last = _share("alpha", alpha), _whole("last", last, 1)

    def agreed(self, view: View, candidates: Sequence[Hypothesis]) -> tuple[int, ...]:
        """Tokens before the first that attends to the end."""
        best = candidates[0]
        for index, row in enumerate(best.attention):
            if sum(row[-self.last :]) >= self.alpha * sum(row):
                return best.tokens[: view.written + index]
        return best.tokens


class RelaxedAgreement(Policy):
    """RALCP: write the longest prefix that a share gamma of the candidates of a beam have (Wang et al., 2024, ALTA,
    arXiv:2309.06706). With gamma = 1 all candidates have to agree, as in ALCP.

    Args:
        gamma: the share, above 0 and at most 1.
        beams: candidates, 2 or more.
    """

    def __init__(self, gamma: float = 0.6, beams: int = 4) -> None:
        self.gamma, self.beams = _share("gamma", gamma), _whole("beams", beams, 2)

    def agreed(self, view: View, candidates: Sequence[Hypothesis]) -> tuple[int, ...]:
        """The longest prefix with enough votes; of several, that of the candidate that comes first."""
        needed = ceil(self.gamma * len(candidates) - 1e-9)
        best = candidates[0].tokens[: view.written]
        for candidate in candidates:
            shared = sorted((_shared(candidate.tokens, other.tokens) for other in candidates), reverse=True)[needed - 1]
            if shared > len(best):
                best = candidate.tokens[:shared]
        return best


class CandidateAgreement(RelaxedAgreement):
    """ALCP: write the longest prefix that all candidates of a beam have (Wang et al., 2024, ALTA, arXiv:2309.06706).

    Args:
        beams: candidates, 2 or more.
    """

    def __init__(self, beams: int = 4) -> None:
        super().__init__(1.0, beams)


POLICIES: dict[str, type[Policy]] = {
    "wait-k": WaitK,
    "local-agreement": LocalAgreement,
    "hold": Hold,
    "alignatt": AlignAtt,
    "edatt": EDAtt,
    "alcp": CandidateAgreement,
    "ralcp": RelaxedAgreement,
    "offline": Offline,
}
"""Names of policies, as `--policy` takes them."""


def make_policy(name: str, options: Mapping[str, Any]) -> Policy:
    """A policy by its name.

    Raises:
        UsageError: there is no such policy, it has no such option, or not with that value.

    Example:
        >>> make_policy("wait-k", {"k": 5}).k
        5
        >>> make_policy("wait-k", {"k": 0})
        Traceback (most recent call last):
        lagging.errors.UsageError: k is a whole number from 1 on, but got 0
    """
    if name not in POLICIES:
        raise UsageError(f"there is no policy {name!r} for models.{did_you_mean(name, POLICIES)}")
    known = inspect.signature(POLICIES[name]).parameters
    for option in options:
        if option not in known:
            raise UsageError(f"{name} has no option {option!r}.{did_you_mean(option, known)}")
    return POLICIES[name](**options)


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise UsageError(f"{name} is a whole number from {least} on, but got {value}")
    return int(value)


def _share(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) <= 1:
        raise UsageError(f"{name} is a share above 0 and at most 1, but got {value}")
    return float(value)


def _shared(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the common prefix."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
