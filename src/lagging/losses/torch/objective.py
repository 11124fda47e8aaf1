# SPDX-License-Identifier: Apache-2.0
"""Training objectives: likelihood + λ·DAL, with a λ that warms up, or that is adjusted to a requested latency."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, Self, get_args

import torch
import torch.distributed
from torch import Tensor, nn

from lagging.errors import UsageError
from lagging.losses.torch.attention import aggregate_heads
from lagging.losses.torch.latency import Ties, dal
from lagging.losses.torch.tensors import TensorLike, floats, real

HeadLatency = Literal["slowest", "mean", "softmax", "max"]
HIGHEST = 10.0
"""The default upper bound of λ, for a likelihood per token: with 1 already, a token of delay costs more than a word
whose probability falls from 1 to 0.37."""

__all__ = ["LatencyController", "LatencyLoss", "LossTerms", "warm_up"]


class LossTerms(NamedTuple):
    """The parts of a loss: loss = likelihood + weight·latency + variance_weight·variance.

    Attributes:
        loss: what to minimize.
        likelihood: the argument.
        latency: mean DAL of the sentences that have tokens; of heads, as `heads` says.
        variance: of the delays over the heads, mean of all tokens; 0 without heads.
        weight: the λ in force: λ times the factor of the warm-up.
        factor: the factor of the warm-up, from 0 to 1; 1 without a step.
        system: mean DAL of a decoder that waits for its slowest head, without a gradient: what a controller aims at.
            The same as `latency` without heads, and with heads="slowest".
    """

    loss: Tensor
    likelihood: Tensor
    latency: Tensor
    variance: Tensor
    weight: Tensor
    factor: Tensor
    system: Tensor


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

    DAL is that of the expected delays, DAL(E[g]), a lower bound of the expected DAL; see `sample_alignment`. |y| counts
    the target tokens without the end token, as in the evaluation: leave it out of `target_lengths` or `mask`. The
    variance of the delays is taken over the heads at each real token.

    Args:
        weight: λ, where the call does not give one; or a `LatencyController`, which then is a part of this module:
            its λ is used, and `update` adjusts it.
        heads: how several heads become one latency; None if the delays have no heads. "slowest": DAL of the delays
            max_h g_h(t), as a decoder waits for its slowest head: the latency of the system, which `lagging score`
            prints. "mean", "softmax" and "max" aggregate the DAL of each head, and are never above it.
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
        >>> heads = torch.tensor([[[1.0, 4, 4, 4], [3.0, 3, 3, 4]]])  # one sentence, two heads
        >>> [LatencyLoss(heads=how)(0.0, heads, 4).latency.item() for how in ("mean", "max", "slowest")]
        [2.75, 3.0, 3.0]

    References:
        Arivazhagan et al. (2019), arXiv:1906.05218; heads and variance: Ma et al. (2020), arXiv:1909.12406.
    """

    def __init__(
        self,
        weight: float | LatencyController = 1.0,
        heads: HeadLatency | None = None,
        variance_weight: float = 0.0,
        start: int = 0,
        steps: int = 0,
        ties: Ties = "last",
    ) -> None:
        super().__init__()
        if heads is not None and heads not in get_args(HeadLatency):
            raise UsageError(f"heads must be one of {', '.join(get_args(HeadLatency))}, or None, but got {heads!r}")
        if heads is None and variance_weight:
            raise UsageError("variance_weight needs heads: it weighs how far the delays of the heads are apart")
        self.weight = weight  # a controller becomes a submodule
        self.heads, self.variance_weight = heads, variance_weight
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
        weight: TensorLike | LatencyController | None = None,
    ) -> LossTerms:
        """The loss and its parts.

        Args:
            likelihood: −log p(y|x) of the batch, a number: per token or per sentence, as λ was chosen for.
            delays: g, shape (..., T); (..., heads, T) if there are heads.
            source_lengths, target_lengths, mask, write_cost: of the sentences, as for `dal`.
            step: the training step, for the warm-up; without it, the full λ counts.
            weight: λ of this call, a number or a `LatencyController`, instead of that of this module.
        """
        g = floats(delays)
        shape = g.shape if self.heads is None else g.shape[:-2] + g.shape[-1:]
        flags = real(g.shape[-1], target_lengths, mask, g, "target_lengths", shape[:-1])
        flags = g.new_ones(shape, dtype=torch.bool) if flags is None else flags.expand(shape)
        x = torch.as_tensor(source_lengths, device=g.device)
        cost = None if write_cost is None else torch.as_tensor(write_cost, device=g.device)
        variance = g.new_zeros(())
        if self.heads is None:
            latency = dal(g, x, mask=flags, write_cost=cost, ties=self.ties)
        else:
            g = torch.where(flags.unsqueeze(-2), g, 0.0)
            slowest = dal(g.amax(-2), x, mask=flags, write_cost=cost, ties=self.ties)
            latency = slowest
            if self.heads != "slowest":
                each, price = flags.unsqueeze(-2), None if cost is None else cost[..., None]
                latency = aggregate_heads(dal(g, x[..., None], mask=each, write_cost=price, ties=self.ties), self.heads)
            variance = aggregate_heads(g, "variance", dim=-2).sum() / flags.sum().clamp(min=1)
        sentences = flags.any(-1).sum().clamp(min=1)
        system = (latency if self.heads is None else slowest).detach().sum() / sentences
        latency = latency.sum() / sentences
        given = self.weight if weight is None else weight
        if isinstance(given, LatencyController):
            given = given.weight
        price = torch.as_tensor(given, dtype=g.dtype, device=g.device)
        factor = torch.ones_like(price) if step is None else warm_up(step, self.start, self.steps).to(price)
        price, nll = price * factor, floats(likelihood)
        loss = nll + price * latency + self.variance_weight * variance
        return LossTerms(loss, nll, latency, variance, price, factor, system)

    def update(self, terms: LossTerms) -> Tensor:
        """Let the controller adjust λ after a step, by the terms of that step, and return λ.

        Raises:
            UsageError: there is no controller: `weight` is a number.
        """
        if not isinstance(self.weight, LatencyController):
            raise UsageError("this LatencyLoss has a fixed weight: give it a controller, weight=LatencyController(…)")
        return self.weight.update(terms)


class LatencyController(nn.Module):
    r"""Finds the λ that gives a requested latency, by dual ascent: "train me at DAL 4".

    $$ \lambda \leftarrow \mathrm{clip}(\lambda + \eta f\,(\mathrm{DAL} - \mathrm{target}),\, 0,\, \mathrm{highest}) $$

    While the model is slower than the target, λ grows; while it is faster, λ falls. Where λ stays constant, the latency
    is the target, or λ is 0 and the model is fast enough without it. f is the factor of the warm-up: while a λ has no
    effect on the model, the latency says nothing about it, and λ stays as it is. The loss owns the controller,
    `LatencyLoss(weight=controller)`, and its terms hold both. With several heads, the latency is that of the slowest,
    whatever the loss aggregates: the number that the evaluation prints.

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
        >>> objective, delays = LatencyLoss(controller, start=100, steps=100), torch.tensor([[9.0, 9.0]])
        >>> terms = objective(2.5, delays, 9, step=50)
        >>> print(f"{objective.update(terms):.2f}")  # the warm-up has not begun
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
        late = torch.as_tensor(terms.system if terms else latency).to(self.weight) - self.target
        known = late.isfinite().to(late)
        sums = torch.stack([torch.nan_to_num(late, 0.0, 0.0, 0.0), known])
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(sums)
        step = self.rate * sums[0] / sums[1].clamp(min=1)
        if terms is not None:
            step = step * terms.factor.to(step)
        self.weight = (self.weight + step).clamp(0.0, self.highest)
        return self.weight
