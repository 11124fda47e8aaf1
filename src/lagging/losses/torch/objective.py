# SPDX-License-Identifier: Apache-2.0
"""Training objectives: likelihood + λ·DAL, with a λ that warms up, or that is adjusted to a requested latency."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

import torch
import torch.distributed
from torch import Tensor, nn

from lagging.errors import UsageError
from lagging.losses.torch.attention import Heads, aggregate_heads
from lagging.losses.torch.latency import Ties, dal
from lagging.losses.torch.tensors import TensorLike, floats, real

HIGHEST = 10.0
"""The default upper bound of λ, for a likelihood per token: with 1 already, a token of delay costs more than a word
whose probability falls from 1 to 0.37."""

__all__ = ["LatencyController", "LatencyLoss", "LossTerms", "warm_up"]


class LossTerms(NamedTuple):
    """The parts of a loss: loss = likelihood + weight·latency + variance_weight·variance.

    Attributes:
        loss: what to minimize.
        likelihood: the argument.
        latency: mean DAL of the sentences that have tokens.
        variance: of the delays over the heads, mean of all tokens; 0 without heads.
        weight: the λ in force: λ times the factor of the warm-up.
        factor: the factor of the warm-up, from 0 to 1; 1 without a step.
    """

    loss: Tensor
    likelihood: Tensor
    latency: Tensor
    variance: Tensor
    weight: Tensor
    factor: Tensor


def warm_up(step: TensorLike, start: int = 0, steps: int = 0) -> Tensor:
    """The factor of λ during warm-up: 0 up to step `start`, then growing linearly, and 1 from `start + steps` on.

    Example:
        >>> [warm_up(step, start=10, steps=4).item() for step in (0, 10, 11, 14, 99)]
        [0.0, 0.0, 0.25, 1.0, 1.0]
        >>> [warm_up(step, start=10).item() for step in (9, 10)]
        [0.0, 1.0]
    """
    done = floats(step) - start
    return (done / steps).clamp(0, 1) if steps else (done >= 0).to(done.dtype)


class LatencyLoss(nn.Module):
    r"""Likelihood and latency in one loss: $-\log p(y \mid x) + \lambda \cdot \mathrm{DAL}$ (MILk).

    With several heads, the DAL of each head is computed, and then they are aggregated; the variance of the delays is
    taken over the heads at each real token.

    Args:
        weight: λ, where the call does not give one.
        heads: how the DAL of several heads becomes one ("mean", "softmax", "max"); None if the delays have no heads.
        variance_weight: weight of the variance of the delays over the heads, which keeps them together.
        start, steps: first step and number of steps of the warm-up, see `warm_up`.
        ties: as for `dal`.

    Raises:
        UsageError: `heads` has another value, or there is a variance_weight and no heads.

    Example:
        >>> loss = LatencyLoss(weight=0.1, start=100, steps=100)
        >>> terms = loss(2.5, torch.tensor([[3.0, 4, 4, 4]]), 4, step=150)
        >>> terms.loss, terms.latency, terms.weight
        (tensor(2.6500), tensor(3.), tensor(0.0500))

    References:
        Arivazhagan et al. (2019), arXiv:1906.05218; heads and variance: Ma et al. (2020), arXiv:1909.12406.
    """

    def __init__(
        self,
        weight: float = 1.0,
        heads: Heads | None = None,
        variance_weight: float = 0.0,
        start: int = 0,
        steps: int = 0,
        ties: Ties = "last",
    ) -> None:
        super().__init__()
        if heads not in (None, "mean", "softmax", "max"):
            raise UsageError(f"heads must be one of mean, softmax, max, or None, but got {heads!r}")
        if heads is None and variance_weight:
            raise UsageError("variance_weight needs heads: it weighs how far the delays of the heads are apart")
        self.weight, self.heads, self.variance_weight = weight, heads, variance_weight
        self.start, self.steps, self.ties = start, steps, ties

    def forward(
        self,
        likelihood: TensorLike,
        delays: TensorLike,
        source_lengths: TensorLike,
        target_lengths: TensorLike | None = None,
        *,
        mask: TensorLike | None = None,
        write_cost: TensorLike | None = None,
        step: TensorLike | None = None,
        weight: TensorLike | None = None,
    ) -> LossTerms:
        """The loss and its parts.

        Args:
            likelihood: −log p(y|x) of the batch, a number: per token or per sentence, as λ was chosen for.
            delays: g, shape (..., T); (..., heads, T) if there are heads.
            source_lengths, target_lengths, mask, write_cost: of the sentences, as for `dal`.
            step: the training step, for the warm-up; without it, the full λ counts.
            weight: λ, if it comes from a `LatencyController`.
        """
        g = floats(delays)
        shape = g.shape if self.heads is None else g.shape[:-2] + g.shape[-1:]
        flags = real(g.shape[-1], target_lengths, mask, g, "target_lengths")
        flags = g.new_ones(shape, dtype=torch.bool) if flags is None else flags.expand(shape)
        x = torch.as_tensor(source_lengths, device=g.device)
        cost = None if write_cost is None else torch.as_tensor(write_cost, device=g.device)
        variance = g.new_zeros(())
        if self.heads is None:
            latency = dal(g, x, mask=flags, write_cost=cost, ties=self.ties)
        else:
            x, cost, each = x[..., None], None if cost is None else cost[..., None], flags.unsqueeze(-2)
            latency = aggregate_heads(dal(g, x, mask=each, write_cost=cost, ties=self.ties), self.heads)
            spread = aggregate_heads(torch.where(each, g, 0.0), "variance", dim=-2)
            variance = spread.sum() / flags.sum().clamp(min=1)
        latency = latency.sum() / flags.any(-1).sum().clamp(min=1)
        price = torch.as_tensor(self.weight if weight is None else weight, dtype=g.dtype, device=g.device)
        factor = torch.ones_like(price) if step is None else warm_up(step, self.start, self.steps).to(price)
        price, nll = price * factor, floats(likelihood)
        loss = nll + price * latency + self.variance_weight * variance
        return LossTerms(loss, nll, latency, variance, price, factor)


class LatencyController(nn.Module):
    r"""Finds the λ that gives a requested latency, by dual ascent: "train me at DAL 4".

    $$ \lambda \leftarrow \mathrm{clip}(\lambda + \eta f\,(\mathrm{DAL} - \mathrm{target}),\, 0,\, \mathrm{highest}) $$

    While the model is slower than the target, λ grows; while it is faster, λ falls. Where λ stays constant, the latency
    is the target, or λ is 0 and the model is fast enough without it. f is the factor of the warm-up: while a λ has no
    effect on the model, the latency says nothing about it, and λ stays as it is. Give `update` the terms of the loss,
    which hold both.

    λ is a buffer of float32, whatever type the module is cast to: it is in the `state_dict`, and moves with the module
    to other devices. Where `torch.distributed` is initialised, the latency is the mean over all processes, so all of
    them have the same λ, and all must call `update`.

    Args:
        target: the requested DAL, in source units.
        weight: initial λ.
        rate: η, the change of λ per source unit.
        highest: upper bound of λ. A λ that is far too high makes a model write without reading, from which it may not
            recover.

    Example:
        >>> controller = LatencyController(target=4.0, rate=0.1)
        >>> for latency in (9.0, 6.0, 3.0):
        ...     print(f"{controller.update(latency):.2f}")
        0.50
        0.70
        0.60
        >>> objective, delays = LatencyLoss(start=100, steps=100), torch.tensor([[9.0, 9.0]])
        >>> terms = objective(2.5, delays, 9, step=50, weight=controller.weight)
        >>> print(f"{controller.update(terms):.2f}")  # the warm-up has not begun
        0.60
    """

    weight: Tensor

    def __init__(self, target: float, weight: float = 0.0, rate: float = 0.01, highest: float = HIGHEST) -> None:
        super().__init__()
        if not 0 <= weight <= highest < float("inf"):
            raise UsageError(f"λ must be from 0 to a finite `highest`, but got weight={weight}, highest={highest}")
        self.target, self.rate, self.highest = target, rate, highest
        self.register_buffer("weight", torch.tensor(float(weight), dtype=torch.float32))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        weight = self.weight
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.weight = weight.to(self.weight.device)  # in half precision, small changes of λ would be lost
        return self

    @torch.no_grad()
    def update(self, latency: LossTerms | TensorLike) -> Tensor:
        """Update λ after a batch, and return it; the latency gets no gradient.

        Args:
            latency: the terms of `LatencyLoss`; or a latency, if λ is fully in force. One that is not finite changes
                nothing.
        """
        terms = latency if isinstance(latency, LossTerms) else None
        late = torch.as_tensor(terms.latency if terms else latency).to(self.weight) - self.target
        known = late.isfinite().to(late)
        sums = torch.stack([torch.nan_to_num(late, 0.0, 0.0, 0.0), known])
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(sums)
        step = self.rate * sums[0] / sums[1].clamp(min=1)
        if terms is not None:
            step = step * terms.factor.to(step)
        self.weight = (self.weight + step).clamp(0.0, self.highest)
        return self.weight
