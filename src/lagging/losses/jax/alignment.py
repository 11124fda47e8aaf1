# SPDX-License-Identifier: Apache-2.0
"""Monotonic attention in JAX: where a model that stops with probability p is expected to be, and what it attends to.

Shapes and padding are as in `lagging.losses.torch.alignment`, which also has the formulas. Everything is computed, and
returned, in float32 at least. The functions are in one file for the same reason.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from lagging.errors import UsageError
from lagging.losses.jax.arrays import boolean, compiled, fitting, floats, position, real, recurrence, shift

_Pair = tuple[jax.Array, jax.Array]

__all__ = [
    "Sampled",
    "cif_delays",
    "expected_alignment",
    "expected_alignment_step",
    "expected_delays",
    "hard_alignment",
    "infinite_lookback",
    "sample_alignment",
]


class Sampled(NamedTuple):
    """Delays that were drawn, and how probable they were: the fields of `lagging.losses.torch.Sampled`."""

    delays: jax.Array
    log_probability: jax.Array


def _flags(
    rows: tuple[int, ...], size: int, source_lengths: ArrayLike | None, mask: ArrayLike | None
) -> jax.Array | None:
    """Which source tokens are real, shape (..., S); None if neither is given."""
    if source_lengths is None and mask is None:
        return None
    return real(size, source_lengths, mask, "source_lengths", rows)


def _rows(p: jax.Array, target_mask: ArrayLike | None) -> jax.Array | None:
    """Which target tokens are real, shape (..., T, 1); None if all are.

    Raises:
        UsageError: the shape does not fit, or the mask is of floats.
    """
    if target_mask is None:
        return None
    flags = boolean(target_mask, "target_mask")
    if flags.shape[-1:] != p.shape[-2:-1]:
        raise UsageError(f"target_mask must have the shape (..., {p.shape[-2]}), but has {flags.shape}")
    fitting(flags.shape[:-1], p.shape[:-2], "target_mask without its last dimension,")
    return flags[..., None]


def _last(flags: jax.Array) -> jax.Array:
    """True at the last real source token."""
    return flags & (lax.cumsum(flags.astype(jnp.int32), axis=flags.ndim - 1, reverse=True) == 1)


def _preserved(p: ArrayLike, flags: jax.Array | None) -> jax.Array:
    """Put 1 at the last real source token, where nothing is left to read, and 0 at padding."""
    p = floats(p)
    return p if flags is None else jnp.where(_last(flags), 1, jnp.where(flags, p, 0))


def _skew(rows: jax.Array) -> jax.Array:
    """(..., T, S) as anti-diagonals, (T+S−1, ..., T): cell (t, j) is at [t+j, ..., t], the rest is 0."""
    *lead, t, s = rows.shape
    wide = jnp.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, t)]).reshape(*lead, t * (s + t))
    return jnp.moveaxis(wide[..., : t * (s + t - 1)].reshape(*lead, t, s + t - 1), -1, 0)


def _unskew(diagonals: jax.Array, s: int) -> jax.Array:
    """The inverse of `_skew`."""
    rows = jnp.moveaxis(diagonals, 0, -1)
    *lead, t, n = rows.shape
    wide = jnp.pad(rows.reshape(*lead, t * n), [(0, 0)] * len(lead) + [(0, t)])
    return wide.reshape(*lead, t, n + 1)[..., :s]


def _divide(mass: jax.Array, p: jax.Array) -> _Pair:
    """(p·mass, (1−p)·mass), the larger part by subtraction, so that the parts add up to the mass but for one rounding.

    The sum of two products would be off in the same direction at every step if p is the same.
    """
    likely = p >= 0.5
    small = jnp.where(likely, 1 - p, p) * mass
    large = mass - small
    return jnp.where(likely, large, small), jnp.where(likely, small, large)


@jax.custom_vjp
def _wavefront(p: jax.Array, start: jax.Array) -> jax.Array:
    """α(1), …, α(T) from p and α(0), by anti-diagonals: the cells of each depend only on the one before."""
    return _forward(p, start)[0]


def _forward(p: jax.Array, start: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """q(t, j) = (1−p(t, j−1)) q(t, j−1) + α(t−1, j), α = p q. No term is negative, so nothing cancels."""
    diagonals = _skew(p)
    above = jnp.moveaxis(jnp.pad(start, [(0, 0)] * (start.ndim - 1) + [(0, p.shape[-2] - 1)]), -1, 0)

    def step(state: _Pair, now: _Pair) -> tuple[_Pair, jax.Array]:
        (stopped, read), (p, first) = state, now
        q = read + jnp.concatenate([first[..., None], stopped[..., :-1]], axis=-1)
        return _divide(q, p), q

    blank = jnp.zeros(p.shape[:-1], p.dtype)
    _, q = lax.scan(step, (blank, blank), (diagonals, above))
    return _unskew(_divide(q, diagonals)[0], p.shape[-1]), (diagonals, q)


def _backward(saved: _Pair, gradient: jax.Array) -> _Pair:
    """∂p = q r, where r is the gain of stopping at j over reading on; by anti-diagonals, from the last one back.

    With G = ∂α, r(t, j) = G(t, j) − G(t, j+1) + (1−p(t, j+1)) r(t, j+1) + p(t+1, j) r(t+1, j). It equals
    G(t, j) + ∂q(t+1, j) − ∂q(t, j+1), but these adjoints are large and close together: for expected delays in float32,
    their difference may be rounding error alone. ∂q(t, j) = p r(t, j) + ∂q(t, j+1) is the gradient in α(0). Where r is
    0, as at target tokens that the loss does not use, p may be anything.
    """
    p, q = saved
    diagonals = jnp.where(jnp.isfinite(p), p, 0)
    change = gradient - shift(gradient, -1, 0)

    def step(state: _Pair, now: _Pair) -> tuple[_Pair, jax.Array]:
        (stopped, read), (p, change) = state, now
        worth = change + read + shift(stopped, -1, 0)
        return _divide(worth, p), worth

    blank = jnp.zeros(gradient.shape[:-1], gradient.dtype)
    _, worth = lax.scan(step, (blank, blank), (diagonals, _skew(change)), reverse=True)
    s = gradient.shape[-1]
    first = _divide(worth, diagonals)[0][:s, ..., 0]
    return _unskew(jnp.where(worth == 0, 0, q * worth), s), jnp.moveaxis(lax.cumsum(first, axis=0, reverse=True), 0, -1)


_wavefront.defvjp(_forward, _backward)


@compiled()
def expected_alignment(
    p: ArrayLike,
    source_lengths: ArrayLike | None = None,
    *,
    mask: ArrayLike | None = None,
    target_mask: ArrayLike | None = None,
) -> jax.Array:
    """Where a monotonic policy stops, in expectation, exactly (Raffel et al., 2017).

    The formula and the arguments are those of `lagging.losses.torch.expected_alignment`. It takes T+S−1 steps of
    `lax.scan`, one for each anti-diagonal, and as many for the gradient. There is no division and no logarithm; it is
    computed in the precision of p, not in float64 as in torch.

    Raises:
        UsageError: source_lengths and mask are both given.

    Example:
        >>> expected_alignment(jnp.full((2, 3), 0.5), 3)
        Array([[0.5 , 0.25, 0.25],
               [0.25, 0.25, 0.5 ]], dtype=float32)
    """
    p = floats(p)
    rows, flags = _rows(p, target_mask), _flags(p.shape[:-2], p.shape[-1], source_lengths, mask)
    flags = flags if flags is None else flags[..., None, :]
    if 0 in p.shape:
        return jnp.zeros_like(p)
    start = jnp.broadcast_to((jnp.arange(p.shape[-1]) == 0).astype(p.dtype), (*p.shape[:-2], p.shape[-1]))
    p = _preserved(p, flags)
    p = p if rows is None else jnp.where(rows, p, 1)  # who stops at once stays where it is
    return _within(rows, _within(flags, _wavefront(p, start)))


def _within(flags: jax.Array | None, values: jax.Array) -> jax.Array:
    """0 at padding, and no gradient from there."""
    return values if flags is None else jnp.where(flags, values, 0)


@compiled()
def expected_alignment_step(
    previous: ArrayLike, p: ArrayLike, source_lengths: ArrayLike | None = None, *, mask: ArrayLike | None = None
) -> jax.Array:
    """α(t, ·) from α(t−1, ·), for a decoder that attends one step at a time.

    The formula and the arguments are those of `lagging.losses.torch.expected_alignment_step`.

    Raises:
        UsageError: source_lengths and mask are both given.

    Example:
        >>> first = expected_alignment_step(jnp.array([1.0, 0, 0]), jnp.full(3, 0.5), 3)
        >>> first, expected_alignment_step(first, jnp.full(3, 0.5), 3)
        (Array([0.5 , 0.25, 0.25], dtype=float32), Array([0.25, 0.25, 0.5 ], dtype=float32))
    """
    p, start = floats(p), floats(previous)
    flags = _flags(jnp.broadcast_shapes(p.shape, start.shape)[:-1], p.shape[-1], source_lengths, mask)
    p, start = jnp.broadcast_arrays(_preserved(p, flags), _within(flags, start).astype(p.dtype))
    return _within(flags, _wavefront(p[..., None, :], start)[..., 0, :])


@compiled()
def expected_delays(alignment: ArrayLike, times: ArrayLike | None = None) -> jax.Array:
    """Delays that an alignment is expected to have.

    The formula and the arguments are those of `lagging.losses.torch.expected_delays`. For padding on the left, `times`
    is `jnp.cumsum(mask, -1)`.

    Example:
        >>> alignment = jnp.array([[0.5, 0.5, 0], [0, 0.5, 0.5]])
        >>> expected_delays(alignment), expected_delays(alignment, jnp.array([40.0, 80.0, 120.0]))
        (Array([1.5, 2.5], dtype=float32), Array([ 60., 100.], dtype=float32))
    """
    alpha = floats(alignment)
    if times is None:
        return jnp.sum(alpha * jnp.arange(1, alpha.shape[-1] + 1, dtype=alpha.dtype), axis=-1)
    moments = jnp.asarray(times).astype(alpha.dtype)[..., None, :]
    return jnp.sum(alpha * jnp.where((alpha == 0) & ~jnp.isfinite(moments), 0, moments), axis=-1)


@compiled()
def infinite_lookback(
    alignment: ArrayLike, energies: ArrayLike, source_lengths: ArrayLike | None = None, *, mask: ArrayLike | None = None
) -> jax.Array:
    r"""Soft attention over everything that has been read, in expectation (MILk).

    The formula and the arguments are those of `lagging.losses.torch.infinite_lookback`. Here it is computed in two
    passes, with every exponential relative to the largest energy so far, $h(j) = \max_{l \le j} u(l)$, and with
    $f(j) = \exp(h(j-1) - h(j)) \le 1$:

    $$ z(j) = f(j)\,z(j-1) + \exp(u(j)-h(j)), \qquad v(j) = f(j+1)\,v(j+1) + \alpha(j)/z(j), \qquad
       \beta(j) = \exp(u(j)-h(j))\,v(j) $$

    No term is negative, z is never less than 1, and a rounded f enters both passes, so energies may have any size.

    Raises:
        UsageError: source_lengths and mask are both given.

    Example:
        >>> infinite_lookback(jnp.array([[0.0, 0, 1], [0.5, 0.5, 0]]), jnp.zeros((2, 3)))
        Array([[0.33333334, 0.33333334, 0.33333334],
               [0.75      , 0.25      , 0.        ]], dtype=float32)
    """
    alpha, u = jnp.broadcast_arrays(floats(alignment), floats(energies))
    flags = _flags(alpha.shape[:-2], alpha.shape[-1], source_lengths, mask)
    flags = flags if flags is None else flags[..., None, :]
    alpha = _within(flags, alpha)
    least = np.finfo(u.dtype).min
    u = jnp.maximum(u if flags is None else jnp.where(flags, u, least), least)
    unknown = jnp.any(jnp.isnan(alpha) | jnp.isnan(u), axis=-1, keepdims=True)
    alpha, u = jnp.where(unknown, 0, alpha), jnp.where(unknown, 0, u)  # NaN in a row reaches no gradient
    highest = lax.stop_gradient(lax.cummax(u, axis=u.ndim - 1))  # the value does not depend on it
    new = _within(flags, jnp.exp(u - highest))
    faded = jnp.exp(jnp.concatenate([highest[..., :1], highest[..., :-1]], axis=-1) - highest)
    z = recurrence(faded, new)
    v = recurrence(shift(faded, -1, 0), alpha / jnp.where(z > 0, z, 1), reverse=True)
    return jnp.where(unknown, jnp.nan, _within(flags, new * v))


def cif_delays(
    weights: ArrayLike,
    target_lengths: ArrayLike | None = None,
    *,
    step_ms: float,
    threshold: float = 1.0,
    size: int | None = None,
) -> jax.Array:
    """Delays of continuous integrate-and-fire: when the cumulated weights reach the t-th multiple of the threshold.

    The formula and the arguments are those of `lagging.losses.torch.cif_delays`. Under `jit`, the number of columns
    must be known: give `size`.

    Raises:
        UsageError: size is not given, and the lengths are not known while `jit` traces.

    Example:
        >>> cif_delays(jnp.array([0.5, 0.25, 0.5, 0.75]), 2, step_ms=40)
        Array([100., 160.], dtype=float32)
    """
    w = floats(weights)
    if target_lengths is None:
        target_lengths = jnp.floor(jnp.sum(lax.stop_gradient(w), axis=-1) / threshold).astype(jnp.int32)
    if size is None:
        try:
            size = int(jnp.max(jnp.asarray(target_lengths)))
        except jax.errors.ConcretizationTypeError:
            raise UsageError("under jit, cif_delays needs the number of tokens that it returns: give size=…") from None
    return _fires(w, real(size, target_lengths, None, "target_lengths"), step_ms, threshold)


@compiled()
def _fires(w: jax.Array, flags: jax.Array, step: float, threshold: float) -> jax.Array:
    total = lax.cumsum(w, axis=w.ndim - 1)
    level = threshold * jnp.arange(1, flags.shape[-1] + 1, dtype=w.dtype)
    frame = jnp.sum(total[..., None, :] < level[:, None], axis=-1)
    fired = frame < w.shape[-1]
    place = jnp.where(fired, frame, 0)
    start, weight = (jnp.take_along_axis(values, place, axis=-1) for values in (shift(total, 1, 0), w))
    within = (level - start) / jnp.where(fired, weight, 1)
    return jnp.where(flags, step * (frame + jnp.where(fired, within, 0)), 0)


@compiled()
def hard_alignment(
    p: ArrayLike,
    source_lengths: ArrayLike | None = None,
    threshold: float = 0.5,
    *,
    mask: ArrayLike | None = None,
    target_mask: ArrayLike | None = None,
) -> jax.Array:
    """Delays of the greedy policy: read on while p < threshold, stop at the last source token at the latest.

    The formula and the arguments are those of `lagging.losses.torch.hard_alignment`.

    Raises:
        UsageError: source_lengths and mask are both given, a shape does not fit, or a mask is of floats.

    Example:
        >>> hard_alignment(jnp.array([[0.1, 0.9, 0.2], [0.9, 0.6, 0.9], [0.1, 0.1, 0.1]]))
        Array([2, 2, 3], dtype=int32)
    """
    p = floats(p)
    rows, flags = _rows(p, target_mask), _everywhere(p, source_lengths, mask)
    stop = p >= threshold
    return _read(stops(stop if rows is None else stop | ~rows, flags), flags, rows, p)


def _everywhere(p: jax.Array, source_lengths: ArrayLike | None, mask: ArrayLike | None) -> jax.Array:
    """Which source tokens are real, shape (..., S)."""
    flags = _flags(p.shape[:-2], p.shape[-1], source_lengths, mask)
    return jnp.ones(p.shape[-1], dtype=bool) if flags is None else flags


def _read(places: jax.Array, flags: jax.Array, rows: jax.Array | None, p: jax.Array) -> jax.Array:
    """Positions as numbers of source tokens that were read; 0 at padding of the target."""
    read = jnp.broadcast_to(position(flags), (*p.shape[:-2], p.shape[-1]))
    delays = jnp.take_along_axis(read, places, axis=-1)
    return delays if rows is None else jnp.where(rows[..., 0], delays, 0)


@compiled()
def sample_alignment(
    p: ArrayLike,
    source_lengths: ArrayLike | None = None,
    key: jax.Array | None = None,
    *,
    mask: ArrayLike | None = None,
    target_mask: ArrayLike | None = None,
) -> Sampled:
    """Delays of a policy that stops by chance, with their log-probabilities.

    The formula and the arguments are those of `lagging.losses.torch.sample_alignment`, with a random key instead of a
    generator.

    Raises:
        UsageError: there is no key; source_lengths and mask are both given, a shape does not fit, or a mask is of
            floats.

    Example:
        >>> drawn = sample_alignment(jnp.full((2, 3), 0.5), 3, jax.random.key(0))
        >>> drawn.delays.shape, drawn.log_probability.shape
        ((2,), (2,))
    """
    if key is None:
        raise UsageError("sample_alignment needs a random key: give key=jax.random.key(…)")
    p = floats(p)
    rows, flags = _rows(p, target_mask), _everywhere(p, source_lengths, mask)
    stop = jax.random.uniform(key, p.shape, p.dtype) < p
    places = stops(stop if rows is None else stop | ~rows, flags)
    j, each = jnp.arange(p.shape[-1]), flags[..., None, :]
    before, here = shift(places, 1, 0)[..., None], places[..., None]
    passed, stopped = (j >= before) & (j < here) & each, (j == here) & ~_last(each)
    if rows is not None:
        passed, stopped = passed & rows, stopped & rows
    share = jnp.where(stopped, p, jnp.where(passed, 1 - p, 1))
    return Sampled(_read(places, flags, rows, p), jnp.sum(jnp.log(share), axis=-1))


def stops(stop: jax.Array, flags: jax.Array) -> jax.Array:
    """Columns, from 0, at which a policy stops, shape (..., T); `flags`, (..., S), are True where real.

    `stop`, (..., T, S), is True where it would stop; at the last real source token it stops in any case.
    """
    last, each = stop.shape[-1] - 1, flags[..., None, :]
    here = (stop & each) | _last(each)
    following = lax.cummin(jnp.where(here, jnp.arange(last + 1), last), axis=here.ndim - 1, reverse=True)

    def step(place: jax.Array, following: jax.Array) -> tuple[jax.Array, jax.Array]:
        place = jnp.take_along_axis(following, place, axis=-1)
        return place, place

    start = jnp.zeros((*stop.shape[:-2], 1), dtype=following.dtype)
    _, places = lax.scan(step, start, jnp.moveaxis(following, -2, 0))
    return jnp.moveaxis(places[..., 0], 0, -1)
