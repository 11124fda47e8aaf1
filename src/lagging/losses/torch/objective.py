# SPDX-License-Identifier: Apache-2.0
"""Training objectives: likelihood + λ·DAL, with a λ that warms up, or that is adjusted to a requested latency."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from lagging.errors import UsageError
from lagging.losses.torch.attention import Heads, aggregate_heads
from lagging.losses.torch.latency import Ties, dal
from lagging.losses.torch.tensors import TensorLike, floats, real

__all__ = ["LatencyController", "LatencyLoss", "LossTerms", "warm_up"]


class LossTerms(NamedTuple):
    """The parts of a loss: loss = likelihood + weight·latency + variance_weight·variance.

    Attributes:
        loss: what to minimize.
        likelihood: the argument.
        latency: mean DAL of the sentences that have tokens.
        variance: of the delays over the heads, mean of all tokens; 0 without heads.
        weight: λ after warm-up.
    """

    loss: Tensor
    likelihood: Tensor
    latency: Tensor
    variance: Tensor
    weight: Tensor


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
        factor = torch.as_tensor(self.weight if weight is None else weight, dtype=g.dtype, device=g.device)
        if step is not None:
            factor = factor * warm_up(step, self.start, self.steps).to(factor)
        nll = floats(likelihood)
        return LossTerms(nll + factor * latency + self.variance_weight * variance, nll, latency, variance, factor)


class LatencyController(nn.Module):
    r"""Finds the λ that gives a requested latency, by dual ascent: "train me at DAL 4".

    $$ \lambda \leftarrow \max(0,\; \lambda + \eta\,(\mathrm{DAL} - \mathrm{target})) $$

    While the model is slower than the target, λ grows; while it is faster, λ falls. Where λ stays constant, the latency
    is the target, or λ is 0 and the model is fast enough without it. λ is a buffer: it is in the `state_dict`, and
    moves with the module to other devices. If training is distributed over processes, give all of them the same mean
    latency.

    Args:
        target: the requested DAL, in source units.
        weight: initial λ.
        rate: η, the change of λ per source unit.
        highest: upper bound of λ.

    Example:
        >>> controller = LatencyController(target=4.0, rate=0.1)
        >>> for latency in (9.0, 6.0, 3.0):
        ...     print(f"{controller.update(latency):.2f}")
        0.50
        0.70
        0.60
    """

    weight: Tensor

    def __init__(self, target: float, weight: float = 0.0, rate: float = 0.01, highest: float = float("inf")) -> None:
        super().__init__()
        self.target, self.rate, self.highest = target, rate, highest
        self.register_buffer("weight", torch.tensor(float(weight)))

    @torch.no_grad()
    def update(self, latency: TensorLike) -> Tensor:
        """Update λ after a batch of this latency, and return it; the latency gets no gradient."""
        late = torch.as_tensor(latency).to(self.weight) - self.target
        self.weight = (self.weight + self.rate * late).clamp(0.0, self.highest)
        return self.weight
