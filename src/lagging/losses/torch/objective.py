# SPDX-License-Identifier: Apache-2.0
"""What to minimize: likelihood + λ·DAL, with λ that warms up, or that finds itself for a wanted latency."""

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
    """What a loss is made of: loss = likelihood + weight·latency + its own weight·variance.

    Attributes:
        loss: what to minimize.
        likelihood: as it was given.
        latency: mean DAL of the sentences that have tokens.
        variance: of the delays over the heads, mean of all tokens; 0 without heads.
        weight: λ, warmed up.
    """

    loss: Tensor
    likelihood: Tensor
    latency: Tensor
    variance: Tensor
    weight: Tensor


def warm_up(step: TensorLike, start: int = 0, steps: int = 0) -> Tensor:
    """How much of λ counts: nothing up to `start`, then more at every step, all of it `steps` later.

    Example:
        >>> [warm_up(step, start=10, steps=4).item() for step in (0, 10, 11, 14, 99)]
        [0.0, 0.0, 0.25, 1.0, 1.0]
        >>> [warm_up(step, start=10).item() for step in (9, 10)]
        [0.0, 1.0]
    """
    done = floats(step) - start
    return (done / steps).clamp(0, 1) if steps else (done >= 0).to(done.dtype)


class LatencyLoss(nn.Module):
    r"""Likelihood and latency at once: $-\log p(y \mid x) + \lambda \cdot \mathrm{DAL}$ (MILk).

    With several heads, DAL is that of each head, and then aggregated; the variance of their delays is taken over the
    heads at each real token.

    Args:
        weight: λ, where the call does not give one.
        heads: how the DAL of several heads becomes one ("mean", "softmax", "max"); None if the delays have no heads.
        variance_weight: weight of the variance of the delays over the heads, which keeps them together.
        start, steps: of the warm-up, see `warm_up`.
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
            step: of training, for the warm-up; without it, λ is warm.
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
    r"""Finds the λ that gives a wanted latency, by dual ascent: "train me at DAL 4".

    $$ \lambda \leftarrow \max(0,\; \lambda + \eta\,(\mathrm{DAL} - \mathrm{target})) $$

    As long as the model is too slow λ grows, and as long as it is faster than need be λ falls: where λ stands still,
    the latency is the target, or λ is 0 and the model is fast enough without. λ is a buffer: it is in the `state_dict`,
    and goes where the module goes. Where training is spread over processes, give all of them the same mean latency.

    Args:
        target: the DAL that is wanted, in source units.
        weight: λ to start from.
        rate: η, how fast λ moves per source unit.
        highest: λ goes no higher.

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
        """λ after a batch of this latency, which gets no gradient."""
        late = torch.as_tensor(latency).to(self.weight) - self.target
        self.weight = (self.weight + self.rate * late).clamp(0.0, self.highest)
        return self.weight
