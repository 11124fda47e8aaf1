# SPDX-License-Identifier: Apache-2.0
r"""Latency that can be trained on: DAL, AL, AP, lags and effective delays of a batch.

The equations are those of `lagging.metrics.kernels`, with gradients. Every function takes

    delays          g(t), shape (..., T): any leading dimensions (batch, heads, layers)
    source_lengths  |x|, a number or a tensor that broadcasts to (...,), in the unit of the delays
    target_lengths  |y|, how many of the T tokens are real, if the padding is on the right; or
    mask            shape (..., T), True where a token is real, wherever the padding is

With neither, all T tokens are real; t counts the real ones. Values in the padding, including NaN and infinity, do not
affect results or gradients. A sentence without real tokens has no latency: its value and its gradient are 0. Half
precision and whole numbers are computed, and returned, in float32, also under autocast; float64 stays float64.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from lagging.errors import UsageError
from lagging.losses.torch.tensors import TensorLike, column, floats, position, real

__all__ = ["Ties", "al", "ap", "dal", "effective_delays", "lags"]

Ties = Literal["last", "first", "split"]
_TIES = get_args(Ties)


class _Batch(NamedTuple):
    """Sentences as the equations see them."""

    g: Tensor  # (..., T), as given: anything at padding
    x: Tensor  # (..., 1)
    y: Tensor  # (..., 1), at least 1
    due: Tensor  # (..., T), −(t − 1): how many real tokens come before, negative
    real: Tensor | None  # (..., T); None if all are
    right: bool  # whether all padding is on the right

    def clean(self, values: Tensor, fill: float = 0.0) -> Tensor:
        """Put `fill` at padding, by selection: NaN times 0 is NaN."""
        return values if self.real is None else torch.where(self.real, values, fill)

    def over(self, write_cost: TensorLike | None) -> tuple[Tensor, Tensor]:
        """s·[g(t) − (t−1)d], 0 at padding, and s, |y| for d = |x|/|y|: so nothing is rounded and ties stay ties."""
        if write_cost is not None:
            return self.clean(self.g + self.due * column(write_cost, self.g, "write_cost")), torch.ones_like(self.y)
        return self.clean(torch.addcmul(self.due * self.x, self.g, self.y)), self.y

    def lags(self, write_cost: TensorLike | None, effective: bool) -> Tensor:
        """ℓ(t), or ℓ'(t), 0 at padding."""
        over, scale = self.over(write_cost)
        if effective:
            over = self.clean(torch.cummax(over if self.right else self.clean(over, -torch.inf), -1).values)
        return over / scale


def _batch(
    delays: TensorLike, source_lengths: TensorLike, target_lengths: TensorLike | None, mask: TensorLike | None
) -> _Batch:
    g = floats(delays)
    if not g.dim():
        raise UsageError("delays must have the shape (..., T), but are one number")
    x, size = column(source_lengths, g, "source_lengths"), g.shape[-1]
    flags = None if mask is None else real(size, target_lengths, mask, g, "target_lengths")
    if flags is not None:
        order = position(flags)
        return _Batch(g, x, order[..., -1:].to(g.dtype).clamp(min=1), (1 - order).to(g.dtype), flags, False)
    due = torch.arange(0, -size, -1, dtype=g.dtype, device=g.device)
    if target_lengths is None:
        return _Batch(g, x, g.new_full((1,), max(size, 1)), due, None, True)
    y = column(target_lengths, g, "target_lengths").detach()
    return _Batch(g, x, y.clamp(1, max(size, 1)), due, due > -y, True)


def _counts(over: Tensor, batch: _Batch, ties: Ties) -> Tensor:
    """c(i): the number of real t for which over(i) is the largest of over(1), …, over(t); shares of it if split."""
    over = over if batch.right else batch.clean(over, -torch.inf)
    top, latest = torch.cummax(over, -1)
    zeros = torch.zeros_like(over, dtype=torch.int32)
    ones = torch.ones_like(zeros) if batch.real is None else batch.real.to(torch.int32).expand(over.shape)
    if ties == "last":  # torch.cummax takes the last of equal values
        return zeros.scatter_add_(-1, latest, ones)
    higher = over > torch.nn.functional.pad(top[..., :-1], (1, 0), value=-torch.inf)
    place = torch.arange(over.shape[-1], device=over.device)
    earliest = torch.cummax(torch.where(higher, place, 0), -1).values
    if ties == "first":
        return zeros.scatter_add_(-1, earliest, ones)
    taken = over == top
    count = taken.cumsum(-1)
    share = ones / (count - count.gather(-1, earliest) + 1).to(over.dtype)  # of each t, for each of the equal maxima
    total = torch.zeros_like(share).scatter_add(-1, earliest, share).gather(-1, earliest)
    passed = share.cumsum(-1) - share
    return torch.where(taken, total - (passed - passed.gather(-1, earliest)), 0.0)  # i has a share in every t from i on


def dal(
    delays: TensorLike,
    source_lengths: TensorLike,
    target_lengths: TensorLike | None = None,
    *,
    mask: TensorLike | None = None,
    write_cost: TensorLike | None = None,
    ties: Ties = "last",
) -> Tensor:
    r"""Differentiable Average Lagging (Cherry & Foster, 2019).

    $$ \mathrm{DAL} = \frac{1}{|y|} \sum_{t=1}^{|y|} \max_{i \le t} \left[ g(i) - (i-1)d \right]
       = \frac{1}{|y|} \sum_{i=1}^{|y|} c(i) \left[ g(i) - (i-1)d \right], \qquad d = \frac{|x|}{|y|} $$

    where $c(i)$ counts the $t$ whose maximum is at $i$. So $\partial\,\mathrm{DAL} / \partial g(i) = c(i)/|y|$, and
    these sum to 1; $\partial\,\mathrm{DAL} / \partial d = -\frac{1}{|y|} \sum_i c(i)\,(i-1)$, through `write_cost` or,
    where there is none, through `source_lengths`.

    Args:
        delays: g(t), shape (..., T).
        source_lengths: |x|, in the unit of the delays; broadcasts to (...,).
        target_lengths: how many tokens are real, padding on the right; at most T.
        mask: True where a token is real, wherever the padding is; instead of target_lengths.
        write_cost: d, broadcasts to (...,); |x|/|y| if not given.
        ties: which of several equal maxima has the gradient: the "last", the "first", or all of them in equal parts
            ("split"). Wait-k with |x| = |y| has a tie at every step.

    Returns:
        Shape (...,), in source units; 0 for a sentence without tokens.

    Raises:
        UsageError: target_lengths and mask are both given, a shape does not fit, or there is no such rule for ties.

    Example:
        >>> dal(torch.tensor([[4.0, 4, 4, 4, 5], [1, 2, 3, torch.nan, torch.nan]]), torch.tensor([5, 6]), [5, 3])
        tensor([4., 1.])
        >>> wait_3 = torch.tensor([3.0, 4, 5, 6, 6, 6], requires_grad=True)
        >>> for ties in "last", "first", "split":
        ...     torch.autograd.grad(dal(wait_3, 6, ties=ties), wait_3)[0]
        tensor([0.1667, 0.1667, 0.1667, 0.5000, 0.0000, 0.0000])
        tensor([1., 0., 0., 0., 0., 0.])
        tensor([0.4306, 0.2639, 0.1806, 0.1250, 0.0000, 0.0000])

    References:
        arXiv:1906.00048, eqs. 6 to 8.
    """
    if ties not in _TIES:
        raise UsageError(f"ties must be one of {', '.join(_TIES)}, but got {ties!r}")
    batch = _batch(delays, source_lengths, target_lengths, mask)
    over, scale = batch.over(write_cost)
    weights = _counts(over.detach(), batch, ties) / (scale * batch.y)
    return (over * weights).sum(-1)


def al(
    delays: TensorLike,
    source_lengths: TensorLike,
    target_lengths: TensorLike | None = None,
    *,
    mask: TensorLike | None = None,
    tolerance: float = 0.0,
) -> Tensor:
    r"""Average Lagging (Ma et al., 2019), differentiable almost everywhere.

    $$ \mathrm{AL} = \frac{1}{\tau} \sum_{t=1}^{\tau} \left[ g(t) - \frac{t-1}{\gamma} \right], \qquad
       \gamma = \frac{|y|}{|x|} $$

    $\tau$ is the first $t$ with $g(t) \ge |x|$, or $|y|$ if there is none. The gradient takes it as constant. But when
    a delay reaches |x|, $\tau$ and AL jump, and no gradient shows it to the model. DAL has no jumps.

    Args:
        delays: g(t), shape (..., T).
        source_lengths: |x|, in the unit of the delays; broadcasts to (...,).
        target_lengths: how many tokens are real, padding on the right; at most T.
        mask: True where a token is real, wherever the padding is; instead of target_lengths.
        tolerance: how far below |x| a delay may be and still count as |x|; 1 for milliseconds, as in `lagging.al`.

    Returns:
        Shape (...,), in source units; 0 for a sentence without tokens.

    Raises:
        UsageError: target_lengths and mask are both given, or a shape does not fit.

    Example:
        >>> al(torch.tensor([[4.0, 4, 4, 4, 5], [1, 2, 3, torch.nan, torch.nan]]), [5, 3], [5, 3])
        tensor([2.2000, 1.0000])

    References:
        arXiv:1810.08398; eq. 3 of Cherry & Foster (2019).
    """
    batch = _batch(delays, source_lengths, target_lengths, mask)
    over, scale = batch.over(None)
    read = batch.g >= batch.x - tolerance
    if batch.real is not None:
        read = read & batch.real
    until = read.cumsum(-1) - read.to(torch.int64) == 0
    if batch.real is not None:
        until = until & batch.real
    tau = until.sum(-1).clamp(min=1)
    return torch.where(until, over, 0.0).sum(-1) / (tau * scale.squeeze(-1))


def ap(
    delays: TensorLike,
    source_lengths: TensorLike,
    target_lengths: TensorLike | None = None,
    *,
    mask: TensorLike | None = None,
) -> Tensor:
    r"""Average Proportion (Cho & Esipova, 2016).

    $$ \mathrm{AP} = \frac{1}{|x|\,|y|} \sum_{t=1}^{|y|} g(t) $$

    Args:
        delays: g(t), shape (..., T).
        source_lengths: |x|, in the unit of the delays; broadcasts to (...,).
        target_lengths: how many tokens are real, padding on the right; at most T.
        mask: True where a token is real, wherever the padding is; instead of target_lengths.

    Returns:
        Shape (...,), a proportion; 0 for a sentence without tokens.

    Raises:
        UsageError: target_lengths and mask are both given, or a shape does not fit.

    Example:
        >>> ap([1, 2], 2), ap([1, 2, 3, 4], 4)
        (tensor(0.7500), tensor(0.6250))

    References:
        arXiv:1606.02012; eq. 1 of Cherry & Foster (2019).
    """
    batch = _batch(delays, source_lengths, target_lengths, mask)
    x = batch.x if batch.real is None else torch.where(batch.real.any(-1, keepdim=True), batch.x, 1.0)
    return batch.clean(batch.g).sum(-1) / (x * batch.y).squeeze(-1)


def lags(
    delays: TensorLike,
    source_lengths: TensorLike,
    target_lengths: TensorLike | None = None,
    *,
    mask: TensorLike | None = None,
    write_cost: TensorLike | None = None,
    effective: bool = False,
) -> Tensor:
    r"""Lag of each target token behind the ideal translator.

    $$ \ell(t) = g(t) - (t-1)d, \qquad \ell'(t) = \max_{i \le t} \ell(i), \qquad d = \frac{|x|}{|y|} $$

    Args:
        delays: g(t), shape (..., T).
        source_lengths: |x|, in the unit of the delays; broadcasts to (...,).
        target_lengths: how many tokens are real, padding on the right; at most T.
        mask: True where a token is real, wherever the padding is; instead of target_lengths.
        write_cost: d, broadcasts to (...,); |x|/|y| if not given.
        effective: return ℓ', whose mean is DAL, instead of ℓ; the last of equal maxima has the gradient.

    Returns:
        Shape (..., T); 0 at padding.

    Raises:
        UsageError: target_lengths and mask are both given, or a shape does not fit.

    Example:
        >>> lags([4, 4, 4, 4, 5], 5), lags([4, 4, 4, 4, 5], 5, effective=True)
        (tensor([4., 3., 2., 1., 1.]), tensor([4., 4., 4., 4., 4.]))

    References:
        Cherry & Foster (2019), Tables 1 to 6.
    """
    return _batch(delays, source_lengths, target_lengths, mask).lags(write_cost, effective)


def effective_delays(
    delays: TensorLike,
    source_lengths: TensorLike,
    target_lengths: TensorLike | None = None,
    *,
    mask: TensorLike | None = None,
    write_cost: TensorLike | None = None,
) -> Tensor:
    r"""Delays g' if writing takes time, computed by the running maximum instead of the recurrence.

    $$ g'(t) = \max\left[ g(t),\; g'(t-1) + d \right] = (t-1)d + \max_{i \le t} \left[ g(i) - (i-1)d \right] $$

    Args:
        delays: g(t), shape (..., T).
        source_lengths: |x|, in the unit of the delays; broadcasts to (...,).
        target_lengths: how many tokens are real, padding on the right; at most T.
        mask: True where a token is real, wherever the padding is; instead of target_lengths.
        write_cost: d, broadcasts to (...,); |x|/|y| if not given.

    Returns:
        Shape (..., T); 0 at padding. The last of equal maxima has the gradient.

    Raises:
        UsageError: target_lengths and mask are both given, or a shape does not fit.

    Example:
        >>> effective_delays([4, 4, 4, 4, 5], 5)
        tensor([4., 5., 6., 7., 8.])

    References:
        arXiv:1906.00048, eqs. 5 and 8.
    """
    batch = _batch(delays, source_lengths, target_lengths, mask)
    d = batch.x / batch.y if write_cost is None else column(write_cost, batch.g, "write_cost")
    return batch.lags(write_cost, True) + batch.clean(batch.due * -d)
