# SPDX-License-Identifier: Apache-2.0
"""Latency that can be trained on, in JAX: DAL, AL, AP, lags and effective delays of a batch.

Shapes, padding and precision are as in `lagging.losses.torch.latency`, which also has the formulas.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from lagging.errors import UsageError
from lagging.losses.jax.arrays import column, compiled, count, floats, position, real, recurrence, shift

__all__ = ["Ties", "al", "ap", "dal", "effective_delays", "lags"]

Ties = Literal["last", "first", "split"]


class _Batch(NamedTuple):
    """Sentences as the equations see them."""

    g: jax.Array  # (..., T), as given: anything at padding
    x: jax.Array  # (..., 1), 1 for a sentence without tokens
    y: jax.Array  # (..., 1), at least 1
    before: jax.Array  # (..., T), t − 1: how many real tokens come before
    real: jax.Array  # (..., T)

    def mean(self, terms: jax.Array) -> jax.Array:
        """Over the real tokens; 0 if there are none."""
        return self.sum(terms) / self.y[..., 0]

    def sum(self, terms: jax.Array) -> jax.Array:
        """Over the real tokens."""
        return jnp.sum(jnp.where(self.real, terms, 0), axis=-1)


def _batch(
    delays: ArrayLike, source_lengths: ArrayLike, target_lengths: ArrayLike | None, mask: ArrayLike | None
) -> _Batch:
    g = floats(delays)
    if not g.ndim:
        raise UsageError("delays must have the shape (..., T), but are one number")
    x = column(source_lengths, g, "source_lengths")
    flags = jnp.broadcast_to(real(g.shape[-1], target_lengths, mask, "target_lengths"), g.shape)
    y = count(flags)[..., None]
    before = jnp.maximum(position(flags) - 1, 0).astype(g.dtype)
    return _Batch(g, jnp.where(y > 0, x, 1), jnp.maximum(y, 1).astype(g.dtype), before, flags)


def _over(batch: _Batch, write_cost: ArrayLike | None) -> tuple[jax.Array, jax.Array | float]:
    """Numerator and denominator of g(t) − (t−1)d; for d = |x|/|y| the denominator is |y|.

    So nothing is rounded for whole numbers, and equal lags stay equal.
    """
    if write_cost is None:
        return batch.g * batch.y - batch.before * batch.x, batch.y
    return batch.g - batch.before * _cost(batch, write_cost), 1.0


def _cost(batch: _Batch, write_cost: ArrayLike | None) -> jax.Array:
    """d, of shape (..., 1)."""
    return batch.x / batch.y if write_cost is None else column(write_cost, batch.g, "write_cost")


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def _running(over: jax.Array, ties: Ties) -> jax.Array:
    """max_{i≤t} over(i); `ties` says which of several equal maxima gets the gradient."""
    return lax.cummax(over, axis=over.ndim - 1)


def _forward(over: jax.Array, ties: Ties) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    top = _running(over, ties)
    return top, (over, top)


def _backward(ties: Ties, saved: tuple[jax.Array, jax.Array], gradient: jax.Array) -> tuple[jax.Array]:
    """Give the gradient of each t to the i ≤ t that has the maximum, or, split, to all such i in equal parts.

    So i collects the gradients of the t from i on, up to the next i that takes the maximum.
    """
    over, top = saved
    higher = over > shift(top, 1, -jnp.inf)
    taken = higher if ties == "first" else over >= top
    same = ~(taken if ties == "last" else higher)
    if ties == "split":
        gradient = gradient / jnp.maximum(recurrence(same, taken.astype(over.dtype)), 1)
    return (jnp.where(taken, recurrence(shift(same, -1, False), gradient, reverse=True), 0),)


_running.defvjp(_forward, _backward)


def _lag(batch: _Batch, write_cost: ArrayLike | None) -> jax.Array:
    """ℓ(t)."""
    over, unit = _over(batch, write_cost)
    return over / unit


def _top(batch: _Batch, write_cost: ArrayLike | None, ties: Ties = "last") -> jax.Array:
    """ℓ'(t), the running maximum over the real tokens."""
    if ties not in get_args(Ties):
        raise UsageError(f"ties must be one of {', '.join(get_args(Ties))}, but got {ties!r}")
    over, unit = _over(batch, write_cost)
    return _running(jnp.where(batch.real, over, -jnp.inf), ties) / unit


@compiled("ties")
def dal(
    delays: ArrayLike,
    source_lengths: ArrayLike,
    target_lengths: ArrayLike | None = None,
    *,
    mask: ArrayLike | None = None,
    write_cost: ArrayLike | None = None,
    ties: Ties = "last",
) -> jax.Array:
    """Differentiable Average Lagging (Cherry & Foster, 2019), with its gradient.

    The formula, the arguments and their meaning are those of `lagging.losses.torch.dal`. The sum of the gradient over
    the delays of a sentence is 1. `ties` is static under `jit`.

    Raises:
        UsageError: target_lengths and mask are both given, a shape does not fit, or there is no such rule for ties.

    Example:
        >>> float(dal([4, 4, 4, 4, 5], 5))
        4.0
        >>> wait_3 = jnp.array([3.0, 4.0, 5.0, 6.0, 6.0, 6.0])
        >>> for ties in "last", "first", "split":
        ...     gradient = jax.grad(partial(dal, ties=ties))(wait_3, 6)
        ...     print([round(weight, 3) for weight in gradient.tolist()])
        [0.167, 0.167, 0.167, 0.5, 0.0, 0.0]
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        [0.431, 0.264, 0.181, 0.125, 0.0, 0.0]
    """
    batch = _batch(delays, source_lengths, target_lengths, mask)
    return batch.mean(_top(batch, write_cost, ties))


@compiled()
def al(
    delays: ArrayLike,
    source_lengths: ArrayLike,
    target_lengths: ArrayLike | None = None,
    *,
    mask: ArrayLike | None = None,
    tolerance: float = 0.0,
) -> jax.Array:
    """Average Lagging (Ma et al., 2019), differentiable almost everywhere.

    The formula and the arguments are those of `lagging.losses.torch.al`. The gradient takes the cut-off τ as constant.

    Raises:
        UsageError: target_lengths and mask are both given, or a shape does not fit.

    Example:
        >>> al(jnp.array([[4.0, 4, 4, 4, 5], [1, 2, 3, jnp.nan, jnp.nan]]), jnp.array([5, 3]), jnp.array([5, 3]))
        Array([2.2, 1. ], dtype=float32)
    """
    batch = _batch(delays, source_lengths, target_lengths, mask)
    reached = batch.real & ~(batch.g < batch.x - tolerance)
    until = batch.real & (position(reached) - reached == 0)
    return jnp.sum(jnp.where(until, _lag(batch, None), 0), axis=-1) / jnp.maximum(count(until), 1)


@compiled()
def ap(
    delays: ArrayLike,
    source_lengths: ArrayLike,
    target_lengths: ArrayLike | None = None,
    *,
    mask: ArrayLike | None = None,
) -> jax.Array:
    """Average Proportion (Cho & Esipova, 2016), with its gradient.

    The formula and the arguments are those of `lagging.losses.torch.ap`.

    Raises:
        UsageError: target_lengths and mask are both given, or a shape does not fit.

    Example:
        >>> float(ap([1, 2], 2)), float(ap([1, 2, 3, 4], 4))
        (0.75, 0.625)
    """
    batch = _batch(delays, source_lengths, target_lengths, mask)
    return batch.mean(batch.g) / batch.x[..., 0]


@compiled("effective")
def lags(
    delays: ArrayLike,
    source_lengths: ArrayLike,
    target_lengths: ArrayLike | None = None,
    *,
    mask: ArrayLike | None = None,
    write_cost: ArrayLike | None = None,
    effective: bool = False,
) -> jax.Array:
    """Lag of each target token behind the ideal translator.

    The formula and the arguments are those of `lagging.losses.torch.lags`. `effective` is static under `jit`.

    Raises:
        UsageError: target_lengths and mask are both given, or a shape does not fit.

    Example:
        >>> lags([4, 4, 4, 4, 5], 5), lags([4, 4, 4, 4, 5], 5, effective=True)
        (Array([4., 3., 2., 1., 1.], dtype=float32), Array([4., 4., 4., 4., 4.], dtype=float32))
    """
    batch = _batch(delays, source_lengths, target_lengths, mask)
    return jnp.where(batch.real, _top(batch, write_cost) if effective else _lag(batch, write_cost), 0)


@compiled()
def effective_delays(
    delays: ArrayLike,
    source_lengths: ArrayLike,
    target_lengths: ArrayLike | None = None,
    *,
    mask: ArrayLike | None = None,
    write_cost: ArrayLike | None = None,
) -> jax.Array:
    """Delays g' once writing takes time, computed by the running maximum.

    The formula and the arguments are those of `lagging.losses.torch.effective_delays`.

    Raises:
        UsageError: target_lengths and mask are both given, or a shape does not fit.

    Example:
        >>> effective_delays([4, 4, 4, 4, 5], 5)
        Array([4., 5., 6., 7., 8.], dtype=float32)
    """
    batch = _batch(delays, source_lengths, target_lengths, mask)
    return jnp.where(batch.real, batch.before * _cost(batch, write_cost) + _top(batch, write_cost), 0)
