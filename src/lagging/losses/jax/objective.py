# SPDX-License-Identifier: Apache-2.0
"""Training objectives: likelihood + λ·DAL, with a λ that warms up, or that is adjusted to a requested latency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from lagging.errors import UsageError
from lagging.losses.jax.arrays import compiled, count, floats, real
from lagging.losses.jax.attention import aggregate_heads
from lagging.losses.jax.latency import Ties, dal

__all__ = ["LatencyController", "LatencyLoss", "LossTerms", "warm_up"]

HeadLatency = Literal["slowest", "mean", "softmax", "max"]


class LossTerms(NamedTuple):
    """The parts of a loss: the fields of `lagging.losses.torch.LossTerms`."""

    loss: jax.Array
    likelihood: jax.Array
    latency: jax.Array
    variance: jax.Array
    weight: jax.Array
    factor: jax.Array
    system: jax.Array


def warm_up(step: ArrayLike, start: int = 0, steps: int = 0) -> jax.Array:
    """The factor of λ during warm-up; see `lagging.losses.torch.warm_up`.

    Example:
        >>> [float(warm_up(step, start=10, steps=4)) for step in (0, 10, 11, 14, 99)]
        [0.0, 0.0, 0.25, 1.0, 1.0]
        >>> [float(warm_up(step, start=10)) for step in (9, 10)]
        [0.0, 1.0]
    """
    done = floats(step) - start
    return jnp.clip(done / steps, 0, 1) if steps else (done >= 0).astype(done.dtype)


@dataclass(frozen=True)
class LatencyLoss:
    r"""Likelihood and latency in one loss: $-\log p(y \mid x) + \lambda \cdot \mathrm{DAL}$ (MILk), a pure function.

    The attributes are the arguments of `lagging.losses.torch.LatencyLoss`; they are static under `jit`. A
    `LatencyController` is a part of the state of training, so it is given to the call, as its `weight`.

    Raises:
        UsageError: `heads` has another value, or there is a variance_weight without heads.

    Example:
        >>> loss = LatencyLoss(weight=0.1, start=100, steps=100)
        >>> terms = loss(2.5, jnp.array([[3.0, 4, 4, 4]]), 4, step=150)
        >>> terms.loss, terms.latency, terms.weight
        (Array(2.65, dtype=float32), Array(3., dtype=float32), Array(0.05, dtype=float32))
    """

    weight: float = 1.0
    heads: HeadLatency | None = None
    variance_weight: float = 0.0
    start: int = 0
    steps: int = 0
    ties: Ties = "last"

    def __post_init__(self) -> None:
        if self.heads is not None and self.heads not in get_args(HeadLatency):
            raise UsageError(
                f"heads must be one of {', '.join(get_args(HeadLatency))}, or None, but got {self.heads!r}"
            )
        if self.heads is None and self.variance_weight:
            raise UsageError("variance_weight needs heads: it weighs how far the delays of the heads are apart")

    @compiled("self")
    def __call__(
        self,
        likelihood: ArrayLike,
        delays: ArrayLike,
        source_lengths: ArrayLike,
        target_lengths: ArrayLike | None = None,
        *,
        mask: ArrayLike | None = None,
        write_cost: ArrayLike | None = None,
        step: ArrayLike | None = None,
        weight: ArrayLike | LatencyController | None = None,
    ) -> LossTerms:
        """The loss and its parts; the arguments are those of `lagging.losses.torch.LatencyLoss.forward`."""
        g = floats(delays)
        shape = g.shape if self.heads is None else g.shape[:-2] + g.shape[-1:]
        flags = jnp.broadcast_to(real(g.shape[-1], target_lengths, mask, "target_lengths", shape[:-1]), shape)
        x, cost = jnp.asarray(source_lengths), None if write_cost is None else jnp.asarray(write_cost)
        variance = jnp.zeros((), g.dtype)
        if self.heads is None:
            latency = dal(g, x, mask=flags, write_cost=cost, ties=self.ties)
        else:
            g = jnp.where(flags[..., None, :], g, 0)
            slowest = dal(jnp.max(g, axis=-2), x, mask=flags, write_cost=cost, ties=self.ties)
            latency = slowest
            if self.heads != "slowest":
                cost = cost if cost is None else cost[..., None]
                each = dal(g, x[..., None], mask=flags[..., None, :], write_cost=cost, ties=self.ties)
                latency = aggregate_heads(each, self.heads)
            variance = jnp.sum(aggregate_heads(g, "variance", axis=-2)) / jnp.maximum(jnp.sum(flags), 1)
        sentences = jnp.maximum(jnp.sum(count(flags) > 0), 1)
        system = jax.lax.stop_gradient(jnp.sum(latency if self.heads is None else slowest)) / sentences
        latency = jnp.sum(latency) / sentences
        given = self.weight if weight is None else weight
        price = jnp.asarray(given.weight if isinstance(given, LatencyController) else given).astype(g.dtype)
        factor = jnp.ones_like(price) if step is None else warm_up(step, self.start, self.steps).astype(price.dtype)
        price, nll = price * factor, floats(likelihood)
        loss = nll + price * latency + self.variance_weight * variance
        return LossTerms(loss, nll, latency, variance, price, factor, system)


class LatencyController(NamedTuple):
    """Finds the λ that gives a requested latency, by dual ascent: "train me at DAL 4".

    The formula and the attributes are those of `lagging.losses.torch.LatencyController`. It is a pytree, so it can be
    part of the state of training: `update` returns a new controller. If training is distributed, give it the mean
    latency of all devices (`jax.lax.pmean`).

    Example:
        >>> controller = LatencyController(target=4.0, rate=0.1)
        >>> for latency in (9.0, 6.0, 3.0):
        ...     controller = controller.update(latency)
        ...     print(f"{controller.weight:.2f}")
        0.50
        0.70
        0.60
    """

    target: ArrayLike
    weight: ArrayLike = 0.0
    rate: ArrayLike = 0.01
    highest: ArrayLike = 10.0

    def update(self, latency: LossTerms | ArrayLike) -> LatencyController:
        """The controller after a batch, given the terms of its loss, or a latency; neither gets a gradient."""
        terms = latency if isinstance(latency, LossTerms) else None
        late = jax.lax.stop_gradient(jnp.asarray(terms.system if terms else latency)) - jnp.asarray(self.target)
        step = self.rate * jnp.where(jnp.isfinite(late), late, 0) * (1 if terms is None else terms.factor)
        weight = jnp.asarray(self.weight, jnp.float32)
        return self._replace(weight=jnp.clip(weight + step, 0, self.highest).astype(jnp.float32))
