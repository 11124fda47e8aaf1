# SPDX-License-Identifier: Apache-2.0
"""Arguments of the losses: floats of enough precision, lengths as columns, which positions are real; a recurrence."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, ParamSpec, TypeVar, cast

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from lagging.errors import UsageError

__all__ = ["boolean", "column", "compiled", "count", "fitting", "floats", "position", "real", "recurrence", "shift"]


P = ParamSpec("P")
R = TypeVar("R")


def compiled(*constants: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`jax.jit` that keeps the type of a function: outside of `jit`, it then runs as one kernel instead of thirty."""
    return cast("Callable[[Callable[P, R]], Callable[P, R]]", partial(jax.jit, static_argnames=constants))


def floats(values: ArrayLike) -> jax.Array:
    """Convert to floats of at least 32 bits: in half precision, rounding errors reach whole tokens of latency."""
    array = jnp.asarray(values)
    return array.astype(jnp.promote_types(array.dtype, jnp.float32))


def column(values: ArrayLike, like: jax.Array, name: str) -> jax.Array:
    """One number per row of `like` (..., T), as (..., 1), with its type.

    Raises:
        UsageError: the values do not broadcast to the rows.
    """
    array = jnp.asarray(values).astype(like.dtype)
    fitting(array.shape, like.shape[:-1], name)
    return array[..., None]


def fitting(shape: tuple[int, ...], rows: tuple[int, ...], name: str) -> None:
    """Check that one number per row, of this shape, broadcasts to the rows.

    Raises:
        UsageError: it does not.
    """
    short = len(rows) - len(shape)
    if short < 0 or any(a not in (1, b) for a, b in zip(shape, rows[short:], strict=True)):
        many = (
            "; one number per sentence, for several heads of each, is `lengths[:, None]`"
            if 0 < len(shape) < len(rows)
            else ""
        )
        raise UsageError(f"{name} of shape {shape} does not broadcast to {rows}{many}")


def real(
    size: int, lengths: ArrayLike | None, mask: ArrayLike | None, name: str, rows: tuple[int, ...] | None = None
) -> jax.Array:
    """Which of `size` positions are not padding: shape (..., size), or (size,) if all are real.

    The arguments are those of `lagging.losses.torch.tensors.real`.

    Raises:
        UsageError: both lengths and a mask are given, a shape does not fit, or the mask is of floats.
    """
    if mask is None:
        places = jnp.arange(size)
        if lengths is None:
            return places < places + 1
        limits = jnp.asarray(lengths)
        if rows is not None:
            fitting(limits.shape, rows, name)
        return places < limits[..., None]
    if lengths is not None:
        raise UsageError(f"give {name} or mask, not both: the mask says how many are real, and where")
    flags = boolean(mask, "mask")
    if flags.shape[-1:] != (size,):
        raise UsageError(f"mask must have the shape (..., {size}), but has {flags.shape}")
    if rows is not None:
        fitting(flags.shape[:-1], rows, "mask without its last dimension,")
    return flags


def boolean(mask: ArrayLike, name: str) -> jax.Array:
    """A mask as booleans.

    Raises:
        UsageError: it is of floats, as masks are that are added to energies: there, 0 is real and −∞ is padding.
    """
    flags = jnp.asarray(mask)
    if jnp.issubdtype(flags.dtype, jnp.floating):
        raise UsageError(
            f"{name} must be of booleans, True where real, but is of floats: give `{name} == 0`, if 0 is real"
        )
    return flags.astype(bool)


def position(flags: jax.Array) -> jax.Array:
    """The number of real positions up to each, itself included: 1, 2, … at the real ones."""
    return jnp.cumsum(flags, axis=-1, dtype=jnp.int32)


def count(flags: jax.Array) -> jax.Array:
    """The number of real positions."""
    return jnp.sum(flags, axis=-1, dtype=jnp.int32)


def shift(values: jax.Array, by: Literal[1, -1], fill: float) -> jax.Array:
    """Shift by one to the right (1) or to the left (−1) along the last axis; `fill` is put into the free place."""
    kept, room = (values[..., :-1], (1, 0)) if by == 1 else (values[..., 1:], (0, 1))
    return jnp.pad(kept, [(0, 0)] * (values.ndim - 1) + [room], constant_values=fill)


def _step(state: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    add, keep = now
    state = keep * state + add
    return state, state


def recurrence(keep: jax.Array, add: jax.Array, *, reverse: bool = False) -> jax.Array:
    """s(t) = keep(t)·s(t−1) + add(t) along the last axis, from s = 0; from the end if `reverse`."""
    keep, add = jnp.broadcast_arrays(keep.astype(add.dtype), add)
    steps = (jnp.moveaxis(add, -1, 0), jnp.moveaxis(keep, -1, 0))
    _, states = lax.scan(_step, jnp.zeros(add.shape[:-1], add.dtype), steps, reverse=reverse)
    return jnp.moveaxis(states, 0, -1)
