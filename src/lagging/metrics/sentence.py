# SPDX-License-Identifier: Apache-2.0
"""The metrics of one sentence: a list of delays in, a float out. The equations are in `kernels`.

One function per metric, all of one shape; most lines are their descriptions, with formula, reference and example.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lagging.data.checks import is_length, number
from lagging.data.ragged import Floats, Kernel
from lagging.errors import DataError, Fault, MetricError, UsageError
from lagging.metrics import kernels
from lagging.metrics.record import LENGTHS

__all__ = ["al", "al_y", "ap", "cw", "dal", "effective_delays", "laal", "lags", "over_budget", "waits", "yaal"]

Delays = Sequence[float] | npt.NDArray[np.generic]


class _Sentence(NamedTuple):
    """One sentence as a rectangle of one row: the arguments of `kernels`."""

    g: Floats
    x: Floats
    y: Floats
    source_end: Floats


def as_sentence(
    delays: Delays,
    source_length: float,
    reference_length: float | None = None,
    length: str = "hypothesis",
    unit: str = "token",
) -> _Sentence | None:
    """Check one sentence and make it a rectangle of one row; None if no metric is defined on it.

    Raises:
        DataError: delays or lengths are not valid.
        UsageError: an option has a value that is not allowed.
    """
    try:
        g = np.asarray(delays)
        g = g.astype(np.float64) if g.dtype.kind in "iufb" or not g.size else np.array([as_float(v) for v in delays])
    except (TypeError, ValueError) as error:
        raise DataError(Fault("delays-not-a-list", str(error))) from None
    if g.ndim != 1:
        raise DataError(Fault("delays-not-a-list", f"an array of shape {g.shape}"))
    if reference_length is not None and not is_length(reference_length):
        raise DataError(Fault("bad-reference-length", number(reference_length)))
    for kind, wrong in (("not-finite", ~np.isfinite(g)), ("negative-delay", g < 0)):
        if wrong.any():
            index = int(wrong.argmax())
            raise DataError(Fault(kind, number(g[index]), token=index + 1))
    falls = np.flatnonzero(g[1:] < g[:-1])
    if len(falls):
        index = int(falls[0])
        detail = f"{number(g[index])} → {number(g[index + 1])}"
        raise DataError(Fault("decreasing-delays", detail, token=index + 2))
    if not is_length(source_length):
        raise DataError(Fault("bad-source-length", number(source_length)))
    if length not in LENGTHS:
        raise UsageError(f"length must be one of {', '.join(LENGTHS)}, but got {length!r}")
    if unit not in ("token", "ms"):
        raise UsageError(f"unit must be 'token' or 'ms', but got {unit!r}")
    if length == "reference" and reference_length is None:
        raise UsageError("length='reference' needs reference_length")
    y = float(len(g))
    if length == "reference" and reference_length is not None:
        y = float(reference_length)
    elif length == "longest" and reference_length is not None:
        y = max(y, float(reference_length))
    if not len(g) or not source_length or not y:
        return None
    x = float(source_length)
    column = np.array([[x]])
    return _Sentence(g[None, :], column, np.array([[y]]), column - (1.0 if unit == "ms" else 0.0))


def as_float(value: Any) -> float:
    """A float from a number of any type, such as a Fraction, but not from text."""
    if isinstance(value, str | bytes):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def _value(kernel: Kernel, *arguments: Floats) -> float:
    return float(kernel(*arguments)[0])


def ap(
    delays: Delays, *, source_length: float, reference_length: float | None = None, length: str = "hypothesis"
) -> float:
    r"""Average Proportion (Cho & Esipova, 2016).

    $$ \mathrm{AP} = \frac{1}{|x|\,|y|} \sum_{t=1}^{|y|} g(t) $$

    where $g(t)$ is the source read before target token $t$.

    Args:
        delays: source consumed before each target token, non-decreasing, in source units.
        source_length: |x|, in the same unit.
        reference_length: length of the reference in target tokens, for the other values of `length`.
        length: whose length is |y|: "hypothesis", "reference" or "longest".

    Returns:
        A proportion; NaN when nothing was written, or the source is empty.

    Example:
        >>> ap([1, 2], source_length=2), ap([1, 2, 3, 4], source_length=4)      # wait-1: depends on length
        (0.75, 0.625)

    References:
        arXiv:1606.02012; eq. 1 of Cherry & Foster (2019).
    """
    s = as_sentence(delays, source_length, reference_length, length)
    return math.nan if s is None else _value(kernels.ap, s.g, s.x, s.y)


def waits(delays: Delays, *, source_length: float | None = None) -> Floats:
    r"""Consecutive Wait at each position (Gu et al., 2017).

    $$ \mathrm{CW}(t) = g(t) - g(t-1), \qquad g(0) = 0 $$

    Args:
        delays: source consumed before each target token, non-decreasing.
        source_length: |x|. Waits do not depend on it; it is accepted because other functions need it.

    Returns:
        The source read right before each target token, zeros included.

    Example:
        >>> waits([4, 4, 4, 4, 5])
        array([4., 0., 0., 0., 1.])

    References:
        Gu et al. (2017), Learning to Translate in Real-time with Neural Machine Translation; eq. 2 of Cherry & Foster.
    """
    s = as_sentence(delays, 1.0)
    row: Floats = np.empty(0) if s is None else kernels.waits(s.g)[0]
    return row


def cw(delays: Delays, *, source_length: float | None = None) -> float:
    """Mean Consecutive Wait: source read ÷ number of runs of reads (Gu et al., 2017; Alinejad et al., 2018).

    Args:
        delays: source consumed before each target token, non-decreasing.
        source_length: |x|. CW does not depend on it unless it is 0; it is accepted because other metrics need it.

    Returns:
        Mean of the waits that are not 0; NaN when nothing was written, or nothing was read, or the source is empty.

    Example:
        >>> cw([4, 4, 4, 4, 5]), cw([1, 2, 3, 4])
        (2.5, 1.0)

    References:
        Gu et al. (2017); Alinejad et al. (2018), Prediction Improves Simultaneous Neural Machine Translation.
    """
    s = as_sentence(delays, 1.0 if source_length is None else source_length)
    return math.nan if s is None else _value(kernels.cw, s.g)


def lags(
    delays: Delays,
    *,
    source_length: float,
    effective: bool = False,
    write_cost: float | None = None,
    reference_length: float | None = None,
    length: str = "hypothesis",
) -> Floats:
    r"""Lag of each target token behind the ideal translator.

    $$ \ell(t) = g(t) - (t-1)d, \qquad \ell'(t) = g'(t) - (t-1)d, \qquad d = 1/\gamma = |x|/|y| $$

    Args:
        delays: source consumed before each target token, non-decreasing, in source units.
        source_length: |x|, in the same unit.
        effective: use the effective delays g' (as DAL does) instead of g (as AL does).
        write_cost: cost d of writing one token; |x|/|y| if not given.
        reference_length: length of the reference in target tokens, for the other values of `length`.
        length: whose length is |y|: "hypothesis", "reference" or "longest".

    Returns:
        One lag per token; all NaN where |x| or |y| is 0.

    Example:
        The schedule of Tables 2 and 4, which lowers AL:

        >>> lags([4, 4, 4, 4, 5], source_length=5)
        array([4., 3., 2., 1., 1.])
        >>> lags([4, 4, 4, 4, 5], source_length=5, effective=True)
        array([4., 4., 4., 4., 4.])

    References:
        Cherry & Foster (2019), Tables 1 to 6.
    """
    over = _over(delays, source_length, write_cost, reference_length, length)
    if over is None:
        return np.full(len(delays), np.nan)
    row: Floats = (np.maximum.accumulate(over, axis=1) if effective else over)[0]
    return row


def _over(
    delays: Delays, source_length: float, write_cost: float | None, reference_length: float | None, length: str
) -> Floats | None:
    """g(t) − (t−1)d, as a rectangle of one row."""
    s = as_sentence(delays, source_length, reference_length, length)
    if s is None:
        return None
    return kernels.lags(s.g, s.x, s.y) if write_cost is None else kernels.budget(s.g, _cost(write_cost))


def _cost(write_cost: float | str) -> Floats:
    if isinstance(write_cost, str):
        raise MetricError(f"write_cost must be a number for one sentence, but got {write_cost!r}")
    if not math.isfinite(write_cost) or write_cost < 0:
        raise MetricError(f"write_cost must be a number of source units, 0 or more, but got {write_cost}")
    return np.array([[float(write_cost)]])


def effective_delays(
    delays: Delays,
    *,
    source_length: float,
    write_cost: float | None = None,
    reference_length: float | None = None,
    length: str = "hypothesis",
) -> Floats:
    r"""Effective delays g': the delays if every write takes time (Cherry & Foster, 2019).

    $$ g'(t) = \max\{g(t),\; g'(t-1) + d\} = (t-1)d + \max_{i \le t} [g(i) - (i-1)d] $$

    Args:
        delays: source consumed before each target token, non-decreasing, in source units.
        source_length: |x|, in the same unit.
        write_cost: cost d of writing one token; |x|/|y| if not given.
        reference_length: length of the reference in target tokens, for the other values of `length`.
        length: whose length is |y|: "hypothesis", "reference" or "longest".

    Returns:
        One effective delay per token; all NaN where |x| or |y| is 0.

    Example:
        >>> effective_delays([4, 4, 4, 4, 5], source_length=5)
        array([4., 5., 6., 7., 8.])

    References:
        arXiv:1906.00048, eqs. 5 and 8.
    """
    s = as_sentence(delays, source_length, reference_length, length)
    if s is None:
        return np.full(len(delays), np.nan)
    d = s.x / s.y if write_cost is None else _cost(write_cost)
    over = kernels.lags(s.g, s.x, s.y) if write_cost is None else kernels.budget(s.g, d)
    row: Floats = kernels.effective_delays(over, d)[0]
    return row


def over_budget(
    delays: Delays,
    *,
    source_length: float,
    write_cost: float | None = None,
    reference_length: float | None = None,
    length: str = "hypothesis",
) -> npt.NDArray[np.int64]:
    r"""The read that is most over budget, up to each target token: the one that determines DAL.

    $$ \operatorname{argmax}_{i \le t} [g(i) - (i-1)d] $$

    Args:
        delays: source consumed before each target token, non-decreasing, in source units.
        source_length: |x|, in the same unit.
        write_cost: cost d of writing one token; |x|/|y| if not given.
        reference_length: length of the reference in target tokens, for the other values of `length`.
        length: whose length is |y|: "hypothesis", "reference" or "longest".

    Returns:
        For each token the index (from 0) into `delays` of the read that determines its effective delay, the first of
        equal ones; empty where |x| or |y| is 0.

    Example:
        >>> over_budget([1, 2, 3, 3, 3, 3], source_length=3)       # Table 5: the third read costs most
        array([0, 1, 2, 2, 2, 2])

    References:
        arXiv:1906.00048, section 3.4.
    """
    over = _over(delays, source_length, write_cost, reference_length, length)
    return np.empty(0, np.int64) if over is None else kernels.over_budget(over)[0].astype(np.int64)


def al(
    delays: Delays,
    *,
    source_length: float,
    reference_length: float | None = None,
    length: str = "hypothesis",
    unit: str = "token",
) -> float:
    r"""Average Lagging (Ma et al., 2018).

    $$ \mathrm{AL} = \frac{1}{\tau} \sum_{t=1}^{\tau} g(t) - \frac{t-1}{\gamma} $$

    where $\gamma = |y|/|x|$ and $\tau$ is the first $t$ with $g(t) \ge |x|$, or $|y|$ if there is none.

    Args:
        delays: source consumed before each target token, non-decreasing, in source units.
        source_length: |x|, in the same unit.
        reference_length: length of the reference in target tokens, for the other values of `length`.
        length: whose length is |y|: "hypothesis" (the paper), "reference" (SimulEval), or "longest" (LAAL).
        unit: "token", or "ms": then a delay within 1 ms of the source length counts as its end.

    Returns:
        Mean lag in source units; NaN when nothing was written, or the source is empty.

    Example:
        >>> al([4, 5, 5, 5, 5], source_length=5), al([4, 4, 4, 4, 5], source_length=5)   # wait-4; low AL
        (4.0, 2.2)

    References:
        arXiv:1810.08398; eq. 3 of Cherry & Foster (2019).
    """
    s = as_sentence(delays, source_length, reference_length, length, unit)
    if s is None:
        return math.nan
    return _value(kernels.al, kernels.lags(s.g, s.x, s.y), kernels.cutoff(s.g, s.source_end)[:, None])


def al_y(
    delays: Delays, *, source_length: float, reference_length: float | None = None, length: str = "hypothesis"
) -> float:
    r"""Average Lagging over all target tokens: AL without the cut-off τ.

    $$ \mathrm{AL}_{|y|} = \frac{1}{|y|} \sum_{t=1}^{|y|} g(t) - \frac{t-1}{\gamma} $$

    Args:
        delays: source consumed before each target token, non-decreasing, in source units.
        source_length: |x|, in the same unit.
        reference_length: length of the reference in target tokens, for the other values of `length`.
        length: whose length is |y|: "hypothesis", "reference" or "longest".

    Returns:
        Mean lag in source units; NaN when nothing was written, or the source is empty.

    Example:
        >>> al_y([1, 2, 3, 4], source_length=4), al_y([3, 4, 4, 4], source_length=4)       # Table 1
        (1.0, 2.25)

    References:
        Cherry & Foster (2019), eq. 4.
    """
    s = as_sentence(delays, source_length, reference_length, length)
    return math.nan if s is None else _value(kernels.al_y, kernels.lags(s.g, s.x, s.y))


def laal(delays: Delays, *, source_length: float, reference_length: float | None = None, unit: str = "token") -> float:
    r"""Length-Adaptive Average Lagging (Papi et al., 2022): AL with $\gamma = \max(|y|, |y^*|)/|x|$.

    Args:
        delays: source consumed before each target token, non-decreasing, in source units.
        source_length: |x|, in the same unit.
        reference_length: |y*|, length of the reference in target tokens; without it, LAAL is AL.
        unit: "token", or "ms": then a delay within 1 ms of the source length counts as its end.

    Returns:
        Mean lag in source units; NaN when nothing was written, or the source is empty.

    Example:
        >>> laal([5, 7, 9], source_length=9, reference_length=5)
        5.2

    References:
        arXiv:2206.05807.
    """
    return al(delays, source_length=source_length, reference_length=reference_length, length="longest", unit=unit)


def yaal(delays: Delays, *, source_length: float, reference_length: float | None = None, unit: str = "token") -> float:
    r"""Yet Another Average Lagging (Polák et al., 2025): LAAL over the tokens written before the source ended.

    $$ \mathrm{YAAL} = \frac{1}{\tau} \sum_{t=1}^{\tau} g(t) - \frac{t-1}{\gamma}, \; \tau = \max\{t : g(t) < |x|\} $$

    Args:
        delays: source consumed before each target token, non-decreasing, in source units.
        source_length: |x|, in the same unit.
        reference_length: |y*|, length of the reference in target tokens.
        unit: "token", or "ms": then a delay within 1 ms of the source length counts as its end.

    Returns:
        Mean lag in source units; NaN when nothing was written before the source ended.

    Example:
        >>> yaal([4, 5, 5, 5, 5], source_length=5), yaal([4, 4, 4, 4, 5], source_length=5)
        (4.0, 2.5)

    References:
        arXiv:2509.17349.
    """
    s = as_sentence(delays, source_length, reference_length, "longest", unit)
    if s is None:
        return math.nan
    return _value(kernels.al, kernels.lags(s.g, s.x, s.y), kernels.inside(s.g, s.source_end)[:, None])


def dal(
    delays: Delays,
    *,
    source_length: float,
    write_cost: float | None = None,
    reference_length: float | None = None,
    length: str = "hypothesis",
) -> float:
    r"""Differentiable Average Lagging (Cherry & Foster, 2019).

    $$ \mathrm{DAL} = \frac{1}{|y|}\sum_{t} g'(t) - (t-1)d, \qquad g'(t)=\max\{g(t),\; g'(t-1)+d\} $$

    where $d = 1/\gamma = |x|/|y|$ unless given. It is computed as the mean running maximum of $g(t)-(t-1)d$, which
    is the same. Every write is charged: the second schedule below, which lowers AL from 4 to 2.2, does not lower DAL.

    Args:
        delays: source consumed before each target token, non-decreasing, in source units.
        source_length: |x|, in the same unit.
        write_cost: cost d of writing one token, in source units; |x|/|y| if not given.
        reference_length: length of the reference in target tokens, for the other values of `length`.
        length: whose length is |y|: "hypothesis" (the paper, and every other tool), "reference" or "longest".

    Returns:
        Mean lag in source units; NaN when nothing was written, or the source is empty.

    Example:
        >>> dal([4, 5, 5, 5, 5], source_length=5), dal([4, 4, 4, 4, 5], source_length=5)   # wait-4; low AL
        (4.0, 4.0)
        >>> dal([1, 2, 3, 3, 3, 3], source_length=3), dal([1, 1, 2, 2, 3, 3], source_length=3)  # without, with catch-up
        (1.75, 1.0)
        >>> dal([1, 2, 3], source_length=6), dal([1, 2, 3], source_length=6, write_cost=1)
        (1.0, 1.0)

    References:
        arXiv:1906.00048, section 3.
    """
    over = _over(delays, source_length, write_cost, reference_length, length)
    return math.nan if over is None else _value(kernels.dal, over)
