# SPDX-License-Identifier: Apache-2.0
r"""Latency that can be trained on: DAL, AL, AP, lags and effective delays of a batch.

The equations are those of `lagging.metrics.kernels`, with gradients. Every function takes

    delays          g(t), shape (..., T): any leading dimensions (batch, heads, layers)
    source_lengths  |x|, a number or an array that broadcasts to (...,), in the unit of the delays
    target_lengths  |y|, how many of the T tokens are real, if the padding is on the right; or
    mask            shape (..., T), True where a token is real, wherever the padding is

With neither, all T tokens are real; t counts the real ones. What stands in the padding, be it NaN, reaches neither
value nor gradient. A sentence without real tokens has no latency: its value is 0, and so is its gradient. Half
precision and whole numbers are computed, and returned, in float32; float64 stays float64.
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
    """g(t) − (t−1)d as a fraction: for d = |x|/|y| over |y|, so that ties of whole numbers are ties."""
    if write_cost is None:
        return batch.g * batch.y - batch.before * batch.x, batch.y
    return batch.g - batch.before * _cost(batch, write_cost), 1.0


def _cost(batch: _Batch, write_cost: ArrayLike | None) -> jax.Array:
    """d, of shape (..., 1)."""
    return batch.x / batch.y if write_cost is None else column(write_cost, batch.g, "write_cost")


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def _running(over: jax.Array, ties: Ties) -> jax.Array:
    """max_{i≤t} over(i), with the gradient that `ties` asks for."""
    return lax.cummax(over, axis=over.ndim - 1)


def _forward(over: jax.Array, ties: Ties) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    top = _running(over, ties)
    return top, (over, top)


def _backward(ties: Ties, saved: tuple[jax.Array, jax.Array], gradient: jax.Array) -> tuple[jax.Array]:
    """What t gets goes to the one maximal i ≤ t, or in equal parts to all: i collects from the t up to the next one."""
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
    r"""Differentiable Average Lagging (Cherry & Foster, 2019), with its gradient.

    $$ \mathrm{DAL} = \frac{1}{|y|} \sum_{t=1}^{|y|} \max_{i \le t} \left[ g(i) - (i-1)d \right], \qquad
       d = \frac{|x|}{|y|} $$

    The gradient in $g(i)$ is the share of the $t$ at which $i$ has the maximum: $\sum_i \partial\,\mathrm{DAL} /
    \partial g(i) = 1$. It is differentiable in `source_lengths` and `write_cost`, too, with
    $\partial\,\mathrm{DAL} / \partial d = -\operatorname{mean}_t (i^*(t)-1)$.

    Args:
        delays: g(t), shape (..., T).
        source_lengths: |x|, in the unit of the delays; broadcasts to (...,).
        target_lengths: how many tokens are real, padding on the right.
        mask: True where a token is real, wherever the padding is; instead of target_lengths.
        write_cost: d, broadcasts to (...,); |x|/|y| if not given.
        ties: which of several equal maxima has the gradient: the "last", the "first", or all of them in equal
            parts ("split"). wait-k with |x| = |y| ties at every step.

    Returns:
        Shape (...,), in source units; 0 for a sentence without tokens.

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

    References:
        arXiv:1906.00048, eqs. 6 to 8.
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
    r"""Average Lagging (Ma et al., 2019), differentiable almost everywhere.

    $$ \mathrm{AL} = \frac{1}{\tau} \sum_{t=1}^{\tau} \left[ g(t) - \frac{t-1}{\gamma} \right], \qquad
       \gamma = \frac{|y|}{|x|} $$

    $\tau$ is the first $t$ with $g(t) \ge |x|$, or $|y|$ if there is none. It jumps, and the gradient takes it as
    constant: a model can lower its AL by reading the last source token early, and no gradient says so. DAL has no such
    jumps.

    Args:
        delays: g(t), shape (..., T).
        source_lengths: |x|, in the unit of the delays; broadcasts to (...,).
        target_lengths: how many tokens are real, padding on the right.
        mask: True where a token is real, wherever the padding is; instead of target_lengths.
        tolerance: how far below |x| a delay counts as all of the source; 1 for milliseconds, as `lagging.al` has it.

    Returns:
        Shape (...,), in source units; 0 for a sentence without tokens.

    Raises:
        UsageError: target_lengths and mask are both given, or a shape does not fit.

    Example:
        >>> al(jnp.array([[4.0, 4, 4, 4, 5], [1, 2, 3, jnp.nan, jnp.nan]]), jnp.array([5, 3]), jnp.array([5, 3]))
        Array([2.2, 1. ], dtype=float32)

    References:
        arXiv:1810.08398; eq. 3 of Cherry & Foster (2019).
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
    r"""Average Proportion (Cho & Esipova, 2016), with its gradient.

    $$ \mathrm{AP} = \frac{1}{|x|\,|y|} \sum_{t=1}^{|y|} g(t) $$

    Args:
        delays: g(t), shape (..., T).
        source_lengths: |x|, in the unit of the delays; broadcasts to (...,).
        target_lengths: how many tokens are real, padding on the right.
        mask: True where a token is real, wherever the padding is; instead of target_lengths.

    Returns:
        Shape (...,), a proportion; 0 for a sentence without tokens.

    Raises:
        UsageError: target_lengths and mask are both given, or a shape does not fit.

    Example:
        >>> float(ap([1, 2], 2)), float(ap([1, 2, 3, 4], 4))
        (0.75, 0.625)

    References:
        arXiv:1606.02012; eq. 1 of Cherry & Foster (2019).
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
    r"""Lag of each target token behind the ideal translator.

    $$ \ell(t) = g(t) - (t-1)d, \qquad \ell'(t) = \max_{i \le t} \ell(i), \qquad d = \frac{|x|}{|y|} $$

    Args:
        delays: g(t), shape (..., T).
        source_lengths: |x|, in the unit of the delays; broadcasts to (...,).
        target_lengths: how many tokens are real, padding on the right.
        mask: True where a token is real, wherever the padding is; instead of target_lengths.
        write_cost: d, broadcasts to (...,); |x|/|y| if not given.
        effective: ℓ', whose mean is DAL, rather than ℓ; the last of equal maxima has the gradient.

    Returns:
        Shape (..., T); 0 at padding.

    Raises:
        UsageError: target_lengths and mask are both given, or a shape does not fit.

    Example:
        >>> lags([4, 4, 4, 4, 5], 5), lags([4, 4, 4, 4, 5], 5, effective=True)
        (Array([4., 3., 2., 1., 1.], dtype=float32), Array([4., 4., 4., 4., 4.], dtype=float32))

    References:
        Cherry & Foster (2019), Tables 1 to 6.
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
    r"""Delays g' once writing takes time, by the running maximum rather than the recurrence.

    $$ g'(t) = \max\left[ g(t),\; g'(t-1) + d \right] = (t-1)d + \max_{i \le t} \left[ g(i) - (i-1)d \right] $$

    Args:
        delays: g(t), shape (..., T).
        source_lengths: |x|, in the unit of the delays; broadcasts to (...,).
        target_lengths: how many tokens are real, padding on the right.
        mask: True where a token is real, wherever the padding is; instead of target_lengths.
        write_cost: d, broadcasts to (...,); |x|/|y| if not given.

    Returns:
        Shape (..., T); 0 at padding. The last of equal maxima has the gradient.

    Raises:
        UsageError: target_lengths and mask are both given, or a shape does not fit.

    Example:
        >>> effective_delays([4, 4, 4, 4, 5], 5)
        Array([4., 5., 6., 7., 8.], dtype=float32)

    References:
        Cherry & Foster (2019), eqs. 7 and 8.
    """
    batch = _batch(delays, source_lengths, target_lengths, mask)
    return jnp.where(batch.real, batch.before * _cost(batch, write_cost) + _top(batch, write_cost), 0)
