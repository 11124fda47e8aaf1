# SPDX-License-Identifier: Apache-2.0
"""Schedules without a model: g(t) of a policy for given lengths.

A policy knows lengths (and, for `punctuation`, where the source has punctuation), but no translation. Its schedules
show how a latency metric rates a policy, and real systems can be compared with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lagging.data.checks import number
from lagging.data.ragged import Floats, Ragged
from lagging.data.run import Run
from lagging.errors import UsageError, did_you_mean

__all__ = ["Policy", "antagonist", "offline", "policy", "prescient", "punctuation", "segmentwise", "wait_k"]

Schedule = Callable[[Floats, Floats, Floats], Floats]
Lengths = Sequence[int] | npt.NDArray[np.integer]

PUNCTUATION = (".", ",", ";", ":", "!", "?", "…", "。", "，", "、", "；", "：", "！", "？", "؟", "،", "؛", "।")


@dataclass(frozen=True)
class Policy:
    """A schedule: g(t) for every target token, from t, |x| and |y|.

    Attributes:
        name: the name on the command line; `policy(name)` returns the same policy.
        schedule: (t, |x|, |y|) → g(t), on flat arrays, t counted from 1.
        at_punctuation: whether every read continues to the next punctuation mark of the source.
        online: whether g(t) is min(h(t), |x|) with an h that does not depend on the lengths. Then a system can follow
            the policy without knowing the lengths; h(t) is the schedule for |x| = ∞.
    """

    name: str
    schedule: Schedule
    at_punctuation: bool = False
    online: bool = False

    def delays(self, source_length: int, target_length: int, source: str | None = None) -> Floats:
        """g(t) for one sentence.

        Example:
            >>> wait_k(3).delays(4, 4)
            array([3., 4., 4., 4.])
        """
        return self._schedule(
            np.array([source_length]), np.array([target_length]), None if source is None else [source]
        )[0]

    def due(self, t: int) -> float:
        """h(t): what to read before writing token t if the lengths are not known; see `online`.

        Example:
            >>> wait_k(3).due(2)
            4.0
        """
        return float(self.schedule(np.array([float(t)]), np.array([np.inf]), np.array([np.nan]))[0])

    def _schedule(self, x: npt.NDArray[np.integer], y: npt.NDArray[np.integer], source: Sequence[str] | None) -> Ragged:
        if len(x) != len(y):
            raise UsageError(f"{len(x)} source lengths, but {len(y)} target lengths")
        if (x < 0).any() or (y < 0).any():
            raise UsageError("a length is negative")
        shape = Ragged.from_lengths(np.zeros(int(y.sum())), y)
        t = np.arange(len(shape.values)) - np.repeat(shape.offsets[:-1], y) + 1
        g = self.schedule(t.astype(np.float64), np.repeat(x, y).astype(np.float64), np.repeat(y, y).astype(np.float64))
        if self.at_punctuation:
            if source is None:
                raise UsageError(f"the policy {self.name} needs the source texts, which have the punctuation")
            g = np.concatenate(
                [
                    _to_punctuation(g[a:b], text)
                    for a, b, text in zip(shape.offsets[:-1], shape.offsets[1:], source, strict=True)
                ]
                or [g]
            )
        return Ragged(g, shape.offsets)

    def run(
        self,
        *,
        source_lengths: Lengths | None = None,
        target_lengths: Lengths | None = None,
        source: Sequence[str] | None = None,
        target: Sequence[str] | None = None,
        name: str | None = None,
    ) -> Run:
        """A Run of this policy over sentences given by their lengths, or by their texts (counted in words).

        Args:
            source_lengths, target_lengths: the numbers of tokens of each sentence.
            source, target: texts instead of lengths; the target becomes prediction and reference.
            name: name of the system; the name of the policy if not given.

        Example:
            >>> import lagging
            >>> run = wait_k(3).run(source_lengths=[4, 9], target_lengths=[4, 9])
            >>> lagging.score(run, ["AL", "DAL"])
            Scores('wait-3', AL=3, DAL=3)
        """
        if (source is None) == (source_lengths is None) or (target is None) == (target_lengths is None):
            raise UsageError("give lengths or texts, one of the two for the source and one for the target")
        x = np.array(source_lengths if source is None else [len(text.split()) for text in source], dtype=np.int64)
        y = np.array(target_lengths if target is None else [len(text.split()) for text in target], dtype=np.int64)
        return Run.from_delays(
            self._schedule(x, y, source),
            source_length=x,
            source=source,
            prediction=target,
            reference=target,
            level="token" if target is None else "word",
            name=self.name if name is None else name,
        )


def _to_punctuation(g: Floats, text: str) -> Floats:
    """Delays raised to the end of the phrase of each word."""
    words = text.split()
    ends = [i for i, word in enumerate(words, 1) if word.endswith(PUNCTUATION)]
    stops = np.array(sorted({*ends, len(words)}), dtype=np.float64)
    moved: Floats = stops[np.minimum(np.searchsorted(stops, g), len(stops) - 1)]
    return moved


def wait_k(k: int, *, catchup: str | float | None = None) -> Policy:
    """Wait-k (Ma et al., 2018): read k tokens, then alternate between writing and reading one token.

    Args:
        k: the number of source tokens to read first.
        catchup: None: g(t) = min(k + t − 1, |x|). "paper": write at the rate |y|/|x|, as in Table 5 of Cherry & Foster:
            g(t) = min(k + ⌊(t−1)·|x|/|y|⌋, |x|). A number c: one of 1/c writes comes without a read, as in section 3.3
            of Ma et al.: g(t) = min(k + t − 1 − ⌊c·t⌋, |x|).

    Example:
        >>> wait_k(1).delays(3, 6), wait_k(1, catchup="paper").delays(3, 6)
        (array([1., 2., 3., 3., 3., 3.]), array([1., 1., 2., 2., 3., 3.]))
    """
    if k != int(k) or k < 0:
        raise UsageError(f"wait-k needs a whole k of at least 0, but got {k}")
    if catchup is None:
        return Policy(f"wait-{k}", lambda t, x, y: np.minimum(k + t - 1, x), online=True)
    if catchup == "paper":
        return Policy(f"wait-{k}-catchup", lambda t, x, y: np.minimum(k + np.floor((t - 1) * x / y), x))
    if isinstance(catchup, str) or not 0 <= catchup < 1:
        raise UsageError(f"catchup must be 'paper', or a number from 0 to below 1, but got {catchup!r}")
    rate = float(catchup)
    # 1e-9: a product such as 5 × 0.2 must not be rounded below the whole number
    return Policy(
        f"wait-{k}-catchup={number(rate)}",
        lambda t, x, y: np.minimum(np.maximum(k + t - 1 - np.floor(rate * t + 1e-9), 0), x),
        online=True,
    )


def antagonist(k: int) -> Policy:
    """Wait-k that delays its last read to its last write: this lowers AL, but not DAL (Cherry & Foster, Table 2).

    Example:
        >>> antagonist(4).delays(5, 5)
        array([4., 4., 4., 4., 5.])
    """
    wait = wait_k(k).schedule

    def schedule(t: Floats, x: Floats, y: Floats) -> Floats:
        g = wait(t, x, y)
        return np.where(t < y, np.minimum(g, np.maximum(x - 1, 0)), g)

    return Policy(f"antagonist-{k}", schedule)


def segmentwise(size: int) -> Policy:
    """Read `size` tokens, write their share of the target, and so on.

    g(t) is the first multiple of `size` (or |x|) at which a translator that writes at the rate |y|/|x| reaches t.

    Example:
        >>> segmentwise(2).delays(5, 5)
        array([2., 2., 4., 4., 5.])
    """
    if size < 1:
        raise UsageError(f"segments need a length of at least 1, but got {size}")
    return Policy(f"segment-{size}", lambda t, x, y: np.minimum(size * np.ceil(np.ceil(t * x / y) / size), x))


def punctuation() -> Policy:
    """Read up to the next punctuation mark, write the phrase's share of the target, and so on.

    Example:
        >>> punctuation().delays(5, 5, "Yes, I see a cat.")
        array([1., 5., 5., 5., 5.])
    """
    return replace(Policy("punctuation", lambda t, x, y: np.ceil(t * x / y)), at_punctuation=True)


def offline() -> Policy:
    """Read everything, then write.

    Example:
        >>> offline().delays(3, 2)
        array([3., 3.])
    """
    return Policy("offline", lambda t, x, y: x, online=True)


def prescient() -> Policy:
    """Write everything without reading: DAL is 0.

    Example:
        >>> prescient().delays(3, 2)
        array([0., 0.])
    """
    return Policy("prescient", lambda t, x, y: np.zeros_like(x), online=True)


NAMES = "wait-K, wait-K-catchup, wait-K-catchup=C, antagonist-K, segment-N, punctuation, offline, prescient"


def policy(name: str) -> Policy:
    """The policy of that name.

    Args:
        name: `wait-3`, `wait-3-catchup`, `wait-3-catchup=0.25`, `antagonist-4`, `segment-5`, `punctuation`, `offline`
            or `prescient`.

    Example:
        >>> policy("wait-3-catchup").name
        'wait-3-catchup'
    """
    without_number = {"punctuation": punctuation, "offline": offline, "prescient": prescient}
    if name in without_number:
        return without_number[name]()
    if match := re.fullmatch(r"wait-(\d{1,18})(?:-(catchup)(?:=([0-9.]+))?)?", name):
        k, catchup, rate = match.groups()
        try:
            return wait_k(int(k), catchup=float(rate) if rate else ("paper" if catchup else None))
        except ValueError as error:
            raise UsageError(f"cannot read the policy {name!r}: {error}") from None
    if match := re.fullmatch(r"(antagonist|segment)-(\d{1,18})", name):
        return {"antagonist": antagonist, "segment": segmentwise}[match[1]](int(match[2]))
    hint = did_you_mean(name, [*without_number, "wait-3", "wait-3-catchup", "antagonist-4", "segment-5"])
    raise UsageError(f"no policy is called {name!r}.{hint if 'mean' in hint else ''}\n  Policies: {NAMES}.")
