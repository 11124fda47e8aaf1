# SPDX-License-Identifier: Apache-2.0
r"""Properties that every implementation of a latency loss must have, in any framework.

Wrap your functions so that they take and return NumPy arrays, and call:

    from lagging.losses.testing import assert_conforms
    assert_conforms(dal=my_dal, dal_gradient=my_dal_gradient, expected_alignment=my_alignment)

    dal(delays, source_lengths, target_lengths)                 (B, T), (B,), (B,) -> (B,)
    dal_gradient(delays, source_lengths, target_lengths)        of the sum of these with respect to the delays: (B, T)
    expected_alignment(p, source_lengths)                       (B, T, S), (B,) -> (B, T, S)
    alignment_gradient(p, source_lengths, weights)              of Σ weights·α with respect to p: (B, T, S)

Padding is on the right. Functions that are not given are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lagging.metrics.sentence import dal as evaluated

__all__ = ["Finding", "assert_conforms", "findings"]

Array = npt.NDArray[np.float64]
Function = Callable[..., npt.ArrayLike]


@dataclass(frozen=True)
class Finding:
    """A property that does not hold.

    Attributes:
        property: its name.
        detail: what was observed instead, and a frequent cause of it.
    """

    property: str
    detail: str

    def __str__(self) -> str:
        """`property: detail`."""
        return f"{self.property}: {self.detail}"


def assert_conforms(
    *,
    dal: Function | None = None,
    dal_gradient: Function | None = None,
    expected_alignment: Function | None = None,
    alignment_gradient: Function | None = None,
    rtol: float = 1e-5,
) -> None:
    """Raise an AssertionError that names every property that does not hold; see `findings` for the arguments.

    Example:
        >>> assert_conforms(dal=lambda g, x, y: g.mean(axis=1))                          # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: recurrence: DAL is ...
    """
    failed = findings(
        dal=dal,
        dal_gradient=dal_gradient,
        expected_alignment=expected_alignment,
        alignment_gradient=alignment_gradient,
        rtol=rtol,
    )
    if failed:
        raise AssertionError("\n".join(map(str, failed)))


def findings(
    *,
    dal: Function | None = None,
    dal_gradient: Function | None = None,
    expected_alignment: Function | None = None,
    alignment_gradient: Function | None = None,
    rtol: float = 1e-5,
) -> list[Finding]:
    """The properties that do not hold; none if the implementation conforms.

    Args:
        dal, dal_gradient, expected_alignment, alignment_gradient: as in the description of this module.
        rtol: the largest error of a result, relative to the largest value; the default is for float32.

    Returns:
        One finding per property: "recurrence", "padding", "evaluator" and "finite" of DAL; "gradient", "gradient sum",
        "gradient in padding" of its gradient; "alignment", "mass", "hard" of alignments; "alignment gradient".

    Example:
        >>> [finding.property for finding in findings(dal=lambda g, x, y: g.mean(axis=1))]
        ['recurrence', 'padding', 'evaluator']
    """
    failed: list[Finding] = []
    if dal is not None:
        failed += _latency(dal, rtol)
    if dal_gradient is not None:
        failed += _latency_gradient(dal_gradient, rtol)
    if expected_alignment is not None:
        failed += _alignment(expected_alignment, rtol)
    if alignment_gradient is not None:
        failed += _alignment_gradient(alignment_gradient, rtol)
    return failed


# ---- DAL --------------------------------------------------------------------------------------------------------


def _sentences(width: int, fill: float = 0.0) -> tuple[Array, Array, npt.NDArray[np.int64]]:
    """Delays of several policies, whole and fractional, padded to a width; no two lags of a sentence are equal."""
    dice = np.random.default_rng(0)
    y = np.array([1, 2, 5, 9, 16, 24])
    x = np.array([3.0, 1.0, 7.0, 6.0, 23.0, 17.0])
    g = np.full((len(y), width), fill)
    for row, length, source in zip(g, y, x, strict=True):
        row[:length] = np.sort(dice.uniform(0, source, length))
    return g, x, y


def _recurrence(g: Array, d: float) -> float:
    """The mean of g'(t) − (t−1)d, by g'(t) = max(g(t), g'(t−1) + d)."""
    effective, total = -np.inf, 0.0
    for t, delay in enumerate(g):
        effective = max(delay, effective + d)
        total += effective - t * d
    return total / len(g)


def _latency(dal: Function, rtol: float) -> Iterator[Finding]:
    g, x, y = _sentences(24)
    got = np.asarray(dal(g, x, y), np.float64)
    want = np.array([_recurrence(row[:n], source / n) for row, source, n in zip(g, x, y, strict=True)])
    if not _near(got, want, rtol):
        yield Finding(
            "recurrence",
            f"DAL is {_few(got)}, but g'(t) = max(g(t), g'(t−1) + d) with d = |x|/|y| gives {_few(want)}. Look at the "
            "index of g' (t−1, not t), and at |y| (real tokens, not T)",
        )
    for fill in (np.nan, np.inf, -np.inf, 1e6):
        wide, _, _ = _sentences(31, fill)
        other = np.asarray(dal(wide, x, y), np.float64)
        if not _near(other, got, rtol):
            yield Finding(
                "padding",
                f"with {fill:g} in the padding DAL is {_few(other)}, without {_few(got)}: choose, do not multiply",
            )
            break
    hard = np.array([[3.0, 4, 5, 6, 6, 6], [4, 4, 4, 4, 5, 0], [1, 2, 3, 0, 0, 0]])
    sizes, lengths = np.array([6.0, 5.0, 6.0]), np.array([6, 5, 3])
    got = np.asarray(dal(hard, sizes, lengths), np.float64)
    want = np.array([evaluated(r[:n], source_length=s) for r, s, n in zip(hard, sizes, lengths, strict=True)])
    if not _near(got, want, rtol):
        yield Finding("evaluator", f"delays of hard alignments have DAL {_few(got)}, but lagging.dal is {_few(want)}")
    if not np.isfinite(np.asarray(dal(hard[:1], sizes[:1], np.array([0])), np.float64)).all():
        yield Finding(
            "finite", "a sentence without tokens has a DAL that is not finite: it will be in the sum of the batch"
        )


def _latency_gradient(gradient: Function, rtol: float) -> Iterator[Finding]:
    g, x, y = _sentences(24)
    got = np.asarray(gradient(g, x, y), np.float64)
    want = np.zeros_like(g)
    for row, delays, source, n in zip(want, g, x, y, strict=True):
        over = delays[:n] - np.arange(n) * source / n
        for t in range(n):
            row[over[: t + 1].argmax()] += 1 / n
    if not got.any():
        yield Finding("gradient", "there is none: the operator has no backward, or something was detached")
    elif not _near(got, want, rtol):
        yield Finding(
            "gradient", f"∂DAL/∂g(i) is off by {np.abs(got - want).max():.2g}; it is (number of t with i)/|y|"
        )
    ties = np.array([[3.0, 4, 5, 6, 6, 6]])
    sums = np.concatenate(
        [got.sum(axis=1), np.asarray(gradient(ties, np.array([6.0]), np.array([6])), np.float64).sum(1)]
    )
    if not _near(sums, np.ones_like(sums), rtol):
        yield Finding(
            "gradient sum", f"Σ ∂DAL/∂g(i) is {_few(sums)}, but must be 1 for every sentence, with ties or not"
        )
    wide, _, _ = _sentences(31, np.nan)
    other = np.asarray(gradient(wide, x, y), np.float64)
    if not _near(other[:, :24], got, rtol) or other[:, 24:].any():
        yield Finding("gradient in padding", "NaN in the padding reaches the gradient, or the padding has one")


# ---- alignments -------------------------------------------------------------------------------------------------


def _policy(steps: int = 64, width: int = 64) -> tuple[Array, npt.NDArray[np.int64]]:
    """Probabilities around 0.5, so that the product of sixty of them is almost 0."""
    dice = np.random.default_rng(0)
    return 1 / (1 + np.exp(-dice.normal(size=(3, steps, width)))), np.array([width, width - 5, 1])


def _cells(p: Array, lengths: npt.NDArray[np.int64]) -> tuple[Array, Array, Array]:
    """α, q and p with 1 at the last real token, one column after the other."""
    places = np.arange(p.shape[2])
    kept = np.where(places < lengths[:, None, None] - 1, p, places == lengths[:, None, None] - 1)
    q, above = np.zeros_like(p), np.zeros_like(p[:, 0])
    above[:, 0] = 1
    for t in range(p.shape[1]):
        carried = np.zeros(len(p))
        for j in places:
            q[:, t, j] = carried + above[:, j]
            carried = (1 - kept[:, t, j]) * q[:, t, j]
        above = kept[:, t] * q[:, t]
    return kept * q, q, kept


def _alignment(align: Function, rtol: float) -> Iterator[Finding]:
    p, lengths = _policy()
    got, want = np.asarray(align(p, lengths), np.float64), _cells(p, lengths)[0]
    lost = float(np.nanmax(np.abs(1 - got.sum(axis=2)))) if np.isfinite(got).any() else np.nan
    if not lost <= rtol:
        yield Finding(
            "mass",
            f"a row of 64 tokens has lost {lost:.2g} of its mass: a clamped denominator, or no stop at the last token",
        )
    if not _near(got, want, rtol):
        one = np.asarray(align(p[:1, :1, :5], np.array([5])), np.float64)[0, 0]
        stop = np.append(p[0, 0, :4], 1.0)
        inclusive = stop * np.cumprod(1 - stop)
        wrong = any(_near(one, other, 1e-3) for other in (inclusive, inclusive / (1 - stop[0])))
        hint = "; the product of the 1−p(l) has to end before j" * wrong
        yield Finding("alignment", f"α is off by {_most(got - want):.2g}{hint}")
    for hard in (np.zeros((1, 4, 6)), np.ones((1, 4, 6)), np.eye(6)[None, :4]):
        got = np.asarray(align(hard, np.array([6])), np.float64)
        if not _near(got, _cells(hard, np.array([6]))[0], rtol):
            yield Finding("hard", "with p exactly 0 or 1, α is not where the policy stops: 0/0, or a logarithm of 0")
            break


def _alignment_gradient(gradient: Function, rtol: float) -> Iterator[Finding]:
    p, lengths = _policy(12, 40)
    weights = np.broadcast_to(np.arange(1.0, 41.0), p.shape).copy()
    got = np.asarray(gradient(p, lengths, weights), np.float64)
    _, q, kept = _cells(p, lengths)
    want, below = np.zeros_like(p), np.zeros_like(p[:, 0])
    for t in reversed(range(p.shape[1])):
        right, worth = np.zeros(len(p)), weights[:, t] + below
        below = np.zeros_like(below)
        for j in reversed(range(p.shape[2])):
            want[:, t, j] = q[:, t, j] * (worth[:, j] - right)
            right = kept[:, t, j] * worth[:, j] + (1 - kept[:, t, j]) * right
            below[:, j] = right
    want[np.broadcast_to(np.arange(p.shape[2]) >= lengths[:, None, None] - 1, p.shape)] = 0
    if not got.any():
        yield Finding("alignment gradient", "there is none: the operator has no backward, or something was detached")
    elif not _near(got, want, rtol):
        yield Finding("alignment gradient", f"off by {_most(got - want):.2g}, the largest being {_most(want):.2g}")


# ---- comparison -------------------------------------------------------------------------------------------------


def _near(got: Array, want: Array, rtol: float) -> bool:
    return got.shape == want.shape and bool(np.abs(got - want).max() <= rtol * max(_most(want), 1e-30))


def _most(values: Array) -> float:
    return float(np.abs(values).max())


def _few(values: Array) -> str:
    return "[" + ", ".join(f"{value:.6g}" for value in values[:6]) + "]"
