# SPDX-License-Identifier: Apache-2.0
r"""Monotonic attention: where a model that stops with probability p is expected to be, and what it then attends to.

p(t, j), of shape (..., T, S), is the probability to stop reading at source token j before target token t is written.
The padding of the source is given by `source_lengths`, of shape (...,), if it is on the right, or by `mask`, of shape
(..., S), True where a source token is real. Lengths of sentences, shape (B,), fit p of shape (B, T, S); for p of shape
(B, H, T, S), give `source_lengths[:, None]`. Values in the padding, including NaN, do not affect results or gradients.
Everything is computed in float64 and returned in float32, or in float64 for float64 arguments. The recurrences are in
`recurrences`.

The functions are in one file because they share these shapes, and the treatment of padding.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from lagging.errors import UsageError
from lagging.losses.torch.recurrences import lookback, wavefront
from lagging.losses.torch.tensors import TensorLike, alike, boolean, fitting, floats, last, position, real

__all__ = [
    "Sampled",
    "cif_delays",
    "expected_alignment",
    "expected_alignment_step",
    "expected_delays",
    "hard_alignment",
    "infinite_lookback",
    "sample_alignment",
    "stops",
]


class Sampled(NamedTuple):
    """Delays that were drawn, and how probable they were.

    Attributes:
        delays: the number of source tokens read before each target token, shape (..., T), whole numbers.
        log_probability: of each of them, given the one before, shape (..., T), with a gradient in p. Their sum is the
            log-probability of all.
    """

    delays: Tensor
    log_probability: Tensor


def _flags(cells: Tensor, source_lengths: TensorLike | None, mask: TensorLike | None, rows: bool) -> Tensor | None:
    """Which source tokens are real, shape (..., S), or (..., 1, S) if there are `rows`; None if neither is given."""
    lead = cells.shape[: -2 if rows else -1]
    flags = real(cells.shape[-1], source_lengths, mask, cells, "source_lengths", lead)
    return flags.unsqueeze(-2) if rows and flags is not None else flags


def _rows(p: Tensor, target_mask: TensorLike | None) -> Tensor | None:
    """Which target tokens are real, shape (..., T, 1); None if all are.

    Raises:
        UsageError: the shape does not fit, or the mask is of floats.
    """
    if target_mask is None:
        return None
    flags = boolean(target_mask, p, "target_mask")
    if flags.shape[-1:] != p.shape[-2:-1]:
        raise UsageError(f"target_mask must have the shape (..., {p.shape[-2]}), but has {tuple(flags.shape)}")
    fitting(flags.shape[:-1], p.shape[:-2], "target_mask without its last dimension,")
    return flags.unsqueeze(-1)


def _within(flags: Tensor | None, values: Tensor) -> Tensor:
    """0 at padding, and no gradient from there."""
    return values if flags is None else torch.where(flags, values, 0.0)


def _preserved(p: Tensor, flags: Tensor | None) -> Tensor:
    """Put 1 at the last real source token, where nothing is left to read, and 0 at padding."""
    if flags is None:
        return p
    final = last(flags)
    return torch.where(flags & ~final, p, final.to(p.dtype))


def expected_alignment(
    p: TensorLike,
    source_lengths: TensorLike | None = None,
    *,
    mask: TensorLike | None = None,
    target_mask: TensorLike | None = None,
) -> Tensor:
    r"""Where a monotonic policy stops, in expectation, exactly (Raffel et al., 2017).

    $$ \alpha(t,j) = p(t,j)\,q(t,j), \qquad q(t,j) = (1-p(t,j-1))\,q(t,j-1) + \alpha(t-1,j), \qquad
       \alpha(0,\cdot) = (1, 0, 0, \dots) $$

    α(t, j) is the probability that target token t is written when j source tokens have been read. The closed form with
    cumulative products must clamp a denominator, and loses mass from about 24 tokens on. This recurrence needs neither
    division nor logarithm, and is right for p exactly 0 or 1. It takes T+S−1 steps, one for each anti-diagonal, and as
    many for the gradient.

    Args:
        p: probability to stop reading at j before writing t, shape (..., T, S).
        source_lengths: how many source tokens are real, padding on the right; broadcasts to (...,).
        mask: shape (..., S), True where a source token is real; instead of source_lengths.
        target_mask: shape (..., T), True where a target token is real. Needed where targets are padded on the left, as
            what comes before the first token must not read; α is 0 in rows of padding.

    Returns:
        α, shape (..., T, S). With lengths or mask, p is taken as 1 at the last real source token, where nothing is left
        to read: every row sums to 1, and α is 0 at padding. Without them, the mass that stops nowhere is lost.

    Raises:
        UsageError: source_lengths and mask are both given, a shape does not fit, or a mask is of floats.

    Example:
        >>> expected_alignment(torch.full((2, 3), 0.5), 3)
        tensor([[0.5000, 0.2500, 0.2500],
                [0.2500, 0.2500, 0.5000]])

    References:
        arXiv:1704.00784, eqs. 8 to 10; mass preservation as in MILk (Arivazhagan et al., 2019, arXiv:1906.05218).
    """
    p = floats(p)
    rows = _rows(p, target_mask)
    p = _preserved(p, _flags(p, source_lengths, mask, True))
    if not p.numel():
        return p.clone()
    if rows is not None:
        p = torch.where(rows, p, 1.0)  # who stops at once stays where it is
    start = p.new_zeros(p.shape[-1])
    start[0] = 1.0
    return _within(rows, wavefront(p, start.expand(p.shape[:-2] + p.shape[-1:])))


def expected_alignment_step(
    previous: TensorLike, p: TensorLike, source_lengths: TensorLike | None = None, *, mask: TensorLike | None = None
) -> Tensor:
    r"""α(t, ·) from α(t−1, ·), for a decoder that attends one step at a time.

    $$ q(j) = (1-p(j-1))\,q(j-1) + \alpha_{t-1}(j), \qquad \alpha_t(j) = p(j)\,q(j) $$

    Args:
        previous: α(t−1, ·), shape (..., S); before the first token all mass is at the first source token.
        p: p(t, ·), shape (..., S).
        source_lengths: how many source tokens are real, padding on the right; broadcasts to (...,).
        mask: shape (..., S), True where a source token is real; instead of source_lengths.

    Returns:
        α(t, ·), shape (..., S).

    Raises:
        UsageError: source_lengths and mask are both given, a shape does not fit, or the mask is of floats.

    Example:
        >>> half = torch.full((3,), 0.5)
        >>> first = expected_alignment_step([1.0, 0, 0], half, 3)
        >>> first, expected_alignment_step(first, half, 3)
        (tensor([0.5000, 0.2500, 0.2500]), tensor([0.2500, 0.2500, 0.5000]))
    """
    start, stop = alike(previous, p)
    flags = _flags(stop, source_lengths, mask, False)
    start, stop = _within(flags, start), _preserved(stop, flags)
    return wavefront(stop.unsqueeze(-2), start).squeeze(-2) if stop.numel() else stop.clone()


def expected_delays(alignment: TensorLike, times: TensorLike | None = None) -> Tensor:
    r"""Delays that an alignment is expected to have.

    $$ g(t) = \sum_j \alpha(t,j)\,j $$

    Args:
        alignment: α, shape (..., T, S).
        times: when source position j has been read, shape (S,) or (..., S), in milliseconds or tokens; 1, 2, … if not
            given. For padding on the left, `mask.cumsum(-1)`. Times that are not finite are ignored where α is 0.

    Returns:
        g, shape (..., T).

    Example:
        >>> alignment = torch.tensor([[0.5, 0.5, 0], [0, 0.5, 0.5]])
        >>> expected_delays(alignment), expected_delays(alignment, [40.0, 80.0, 120.0])
        (tensor([1.5000, 2.5000]), tensor([ 60., 100.]))
    """
    alpha = floats(alignment)
    if times is None:
        return (alpha * torch.arange(1, alpha.shape[-1] + 1, dtype=alpha.dtype, device=alpha.device)).sum(-1)
    moments = torch.as_tensor(times, dtype=alpha.dtype, device=alpha.device).unsqueeze(-2)
    return (alpha * torch.where((alpha == 0) & ~moments.isfinite(), 0.0, moments)).sum(-1)


def infinite_lookback(
    alignment: TensorLike,
    energies: TensorLike,
    source_lengths: TensorLike | None = None,
    *,
    mask: TensorLike | None = None,
) -> Tensor:
    r"""Soft attention over everything that has been read, in expectation (MILk).

    $$ \beta(t,j) = \sum_{k \ge j} \alpha(t,k)\, \frac{\exp u(t,j)}{\sum_{l \le k} \exp u(t,l)} $$

    With $w(j) = \exp u(j) / \sum_{l \le j} \exp u(l)$, the weight of j when it has just been read, it is a recurrence
    from the end: $\beta(j) = w(j)\,R(j)$, $R(j) = \alpha(j) + (1-w(j+1))\,R(j+1)$. So finite energies may have
    any size.

    Args:
        alignment: α, shape (..., T, S).
        energies: u, shape (..., T, S), finite (−∞ is taken as the smallest finite number).
        source_lengths: how many source tokens are real, padding on the right; broadcasts to (...,).
        mask: shape (..., S), True where a source token is real; instead of source_lengths.

    Returns:
        β, shape (..., T, S); each row has the same sum as in α.

    Raises:
        UsageError: source_lengths and mask are both given, a shape does not fit, or the mask is of floats.

    Example:
        >>> infinite_lookback([[0.0, 0, 1], [0.5, 0.5, 0]], torch.zeros(2, 3))
        tensor([[0.3333, 0.3333, 0.3333],
                [0.7500, 0.2500, 0.0000]])

    References:
        Arivazhagan et al. (2019), arXiv:1906.05218.
    """
    alpha, u = alike(alignment, energies)
    flags = _flags(alpha, source_lengths, mask, True)
    least = torch.finfo(u.dtype).min
    u = (u if flags is None else torch.where(flags, u, least)).clamp(min=least)
    return _within(flags, lookback(_within(flags, alpha), u)) if alpha.numel() else alpha.clone()


def cif_delays(
    weights: TensorLike,
    target_lengths: TensorLike | None = None,
    *,
    step_ms: float,
    threshold: float = 1.0,
    size: int | None = None,
) -> Tensor:
    r"""Delays of continuous integrate-and-fire: when the cumulated weights reach the t-th multiple of the threshold.

    $$ g(t) = \mathrm{step} \cdot \left[ j - 1 + \frac{t\,\theta - A(j-1)}{w(j)} \right], \qquad
       A(j) = \sum_{l \le j} w(l), \quad j = \min \{ j : A(j) \ge t\,\theta \} $$

    Inside the frame in which token t fires, A grows linearly, so g(t) is differentiable in every weight up to that
    frame. A token that never fires is written at the end of the source, and has no gradient.

    Args:
        weights: w, shape (..., S), 0 or more; 0 at frames that are padding.
        target_lengths: the number of tokens, broadcasts to (...,); the number that fire if not given.
        step_ms: the duration of a frame, in milliseconds.
        threshold: θ.
        size: T, the number of columns to return; the longest target if not given.

    Returns:
        g in milliseconds, shape (..., T); 0 at padding.

    Raises:
        UsageError: the target lengths do not broadcast to the rows of the weights.

    Example:
        >>> cif_delays([0.5, 0.25, 0.5, 0.75], 2, step_ms=40)
        tensor([100., 160.])

    References:
        Dong & Xu (2020), CIF: Continuous Integrate-and-Fire for End-to-End Speech Recognition, arXiv:1905.11235.
    """
    w = floats(weights)
    total = w.cumsum(-1)
    if target_lengths is None:
        fires = (total.detach()[..., -1] / threshold).floor() if w.shape[-1] else w.sum(-1)
        lengths = fires.to(torch.int64)
    else:
        lengths = torch.as_tensor(target_lengths, device=w.device)
        if lengths.dim() > w.dim() - 1:
            raise UsageError(f"target_lengths of shape {tuple(lengths.shape)} are more than the rows of the weights")
    if size is None:
        size = int(lengths.max()) if lengths.numel() else 0
    token = torch.arange(1, size + 1, dtype=w.dtype, device=w.device)
    level = (threshold * token).expand(*w.shape[:-1], size).contiguous()
    frame = torch.searchsorted(total.detach().contiguous(), level)
    fired = frame < w.shape[-1]
    place = torch.where(fired, frame, 0)
    before = torch.nn.functional.pad(total[..., :-1], (1, 0)).gather(-1, place) if w.shape[-1] else level
    weight = torch.where(fired, w.gather(-1, place), 1.0) if w.shape[-1] else level
    within = torch.where(fired, (level - before) / weight, 0.0)
    return torch.where(token <= lengths.unsqueeze(-1), step_ms * (frame + within), 0.0)


def stops(stop: Tensor, flags: Tensor | None) -> Tensor:
    """The source position, from 0, at which a policy stops for each target token: shape (..., T).

    `stop`, (..., T, S), is True where it would stop. `flags` are True where a source token is real, and broadcast to
    it; None if all are. At the last real one it stops in any case.
    """
    size = stop.shape[-1]
    everywhere = torch.ones(size, dtype=torch.bool, device=stop.device) if flags is None else flags
    place = torch.arange(size, device=stop.device)
    final = last(everywhere)
    following = torch.where((stop & everywhere) | final, place, size - 1).flip(-1).cummin(-1).values.flip(-1)
    at, out = torch.zeros((*stop.shape[:-2], 1), dtype=torch.int64, device=stop.device), []
    for row in following.unbind(-2):
        at = row.gather(-1, at)
        out.append(at)
    return torch.cat(out, -1) if out else at[..., :0]


def hard_alignment(
    p: TensorLike,
    source_lengths: TensorLike | None = None,
    threshold: float = 0.5,
    *,
    mask: TensorLike | None = None,
    target_mask: TensorLike | None = None,
) -> Tensor:
    r"""Delays of the greedy policy: read on while p < threshold, stop at the last source token at the latest.

    $$ a(t) = \min \{ j \ge a(t-1) : p(t,j) \ge \theta \;\text{or}\; j = |x| \} $$

    Args:
        p: probability to stop reading at j before writing t, shape (..., T, S).
        source_lengths: how many source tokens are real, padding on the right; broadcasts to (...,).
        threshold: θ.
        mask: shape (..., S), True where a source token is real; instead of source_lengths.
        target_mask: shape (..., T), True where a target token is real, where targets are padded on the left; the delay
            of padding is 0.

    Returns:
        The number of source tokens read before each target token, shape (..., T): the delays that `lagging.dal` takes.

    Raises:
        UsageError: source_lengths and mask are both given, a shape does not fit, or a mask is of floats.

    Example:
        >>> hard_alignment([[0.1, 0.9, 0.2], [0.9, 0.6, 0.9], [0.1, 0.1, 0.1]])
        tensor([2, 2, 3])
    """
    p = floats(p).detach()
    flags, rows = _flags(p, source_lengths, mask, True), _rows(p, target_mask)
    stop = p >= threshold
    return _read(stops(stop if rows is None else stop | ~rows, flags), flags, rows, p)


def _read(places: Tensor, flags: Tensor | None, rows: Tensor | None, p: Tensor) -> Tensor:
    """Positions as numbers of source tokens that were read; 0 at padding of the target."""
    delays = places + 1
    if flags is not None:
        delays = position(flags).expand((*p.shape[:-2], 1, p.shape[-1])).squeeze(-2).gather(-1, places)
    return delays if rows is None else torch.where(rows.squeeze(-1), delays, 0)


def sample_alignment(
    p: TensorLike,
    source_lengths: TensorLike | None = None,
    generator: torch.Generator | None = None,
    *,
    mask: TensorLike | None = None,
    target_mask: TensorLike | None = None,
) -> Sampled:
    r"""Delays of a policy that stops by chance, with their log-probabilities.

    $$ \log P(a(t) \mid a(t-1)) = \log p(t, a(t)) + \sum_{a(t-1) \le j < a(t)} \log(1 - p(t,j)) $$

    At the last source token it stops for certain. The mean DAL of many draws estimates E[DAL(g)], what the policy costs
    if it decides by chance. DAL of `expected_delays` is DAL(E[g]), which is lower, as DAL is convex. For any R of the
    delays, the gradient of E[R] is the mean of R times the gradient of the log-probability (REINFORCE).

    Args:
        p: probability to stop reading at j before writing t, shape (..., T, S). Several draws of each sentence:
            `p.expand(draws, *p.shape)`.
        source_lengths: how many source tokens are real, padding on the right; broadcasts to (...,).
        generator: generator of random numbers; torch's default if None.
        mask: shape (..., S), True where a source token is real; instead of source_lengths.
        target_mask: shape (..., T), True where a target token is real, where targets are padded on the left; delay and
            log-probability of padding are 0.

    Returns:
        Delays and their log-probabilities, both of shape (..., T). Padding of the target on the right is drawn like
        everything else, unless target_mask is given: leave it out by `target_lengths` of the latency.

    Raises:
        UsageError: source_lengths and mask are both given, a shape does not fit, or a mask is of floats.

    Example:
        >>> p = torch.full((2, 3), 0.5).expand(20_000, 2, 3)
        >>> drawn = sample_alignment(p, 3, torch.Generator().manual_seed(0))
        >>> drawn.delays[0], drawn.log_probability[0].exp()
        (tensor([1, 1]), tensor([0.5000, 0.5000]))
        >>> (drawn.delays.double().mean(0) - torch.tensor([1.75, 2.25])).abs().max() < 0.02  # from what is expected
        tensor(True)

    References:
        Raffel et al. (2017), arXiv:1704.00784; Williams (1992), Simple statistical gradient-following algorithms for
        connectionist reinforcement learning, Machine Learning 8.
    """
    p = floats(p)
    flags, rows = _flags(p, source_lengths, mask, True), _rows(p, target_mask)
    chance = torch.rand(p.shape, generator=generator, dtype=p.dtype, device=p.device)
    stop = chance < p.detach()
    places = stops(stop if rows is None else stop | ~rows, flags)
    j = torch.arange(p.shape[-1], device=p.device)
    before = torch.nn.functional.pad(places[..., :-1], (1, 0)).unsqueeze(-1)
    here = places.unsqueeze(-1)
    passed = (j >= before) & (j < here)
    final = j == j[-1:] if flags is None else last(flags)
    stopped = (j == here) & ~final
    if flags is not None:
        passed = passed & flags
    if rows is not None:
        passed, stopped = passed & rows, stopped & rows
    share = torch.where(stopped, p, torch.where(passed, 1 - p, 1.0))
    return Sampled(_read(places, flags, rows, p), share.log().sum(-1))
