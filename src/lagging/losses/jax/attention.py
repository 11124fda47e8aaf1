# SPDX-License-Identifier: Apache-2.0
"""Attention that decides when to read: monotonic attention with infinite lookback (MILk), its heads, and wait-k."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from lagging.errors import UsageError
from lagging.losses.jax.alignment import expected_alignment, expected_delays, infinite_lookback, stops
from lagging.losses.jax.arrays import boolean, compiled, floats, position, real

__all__ = ["Attended", "Heads", "MonotonicAttention", "aggregate_heads", "multipath", "wait_k_mask"]

Heads = Literal["mean", "softmax", "max", "variance"]
Params = dict[str, jax.Array]


class Attended(NamedTuple):
    """The output of an attention, with its delays: the fields of `lagging.losses.torch.Attended`."""

    context: jax.Array
    delays: jax.Array
    alignment: jax.Array
    weights: jax.Array
    p: jax.Array


@dataclass(frozen=True)
class MonotonicAttention:
    """Monotonic infinite lookback attention (MILk), single or multi-head: two pure functions, `init` and `apply`.

    The formulas and the attributes are those of `lagging.losses.torch.MonotonicAttention`. The parameters are a
    dictionary of arrays. There is noise where `apply` gets a random key, and the policy is hard where `apply` is told
    so: there is no mode of training or evaluation.

    Raises:
        UsageError: the size is not a multiple of the number of heads.

    Example:
        One step of training for latency, on queries and keys of any model:

        >>> from lagging.losses.jax import dal
        >>> attention = MonotonicAttention(8, heads=2)
        >>> params = attention.init(jax.random.key(0))
        >>> queries = jnp.sin(jnp.arange(160.0)).reshape(4, 5, 8)                 # 4 sentences of 5 tokens
        >>> keys = jnp.cos(jnp.arange(160.0)).reshape(4, 5, 8)
        >>> lengths = jnp.array([5, 5, 4, 3])
        >>> def loss(params, key):
        ...     seen = attention.apply(params, queries, keys, lengths, key=key)
        ...     latency = dal(seen.delays.max(-2), lengths, lengths)              # of the slowest head
        ...     return jnp.mean(seen.context**2) + 0.1 * jnp.mean(latency)
        >>> gradient = jax.jit(jax.grad(loss))(params, jax.random.key(2))
        >>> params = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)
        >>> attention.apply(params, queries, keys, lengths, hard=True).delays.shape
        (4, 2, 5)
    """

    size: int
    source_size: int | None = None
    heads: int = 1
    noise: float = 1.0
    bias: float = -2.0
    lookback: bool = True

    def __post_init__(self) -> None:
        if self.size % self.heads:
            raise UsageError(f"size must be a multiple of the number of heads, but {self.size} is none of {self.heads}")

    def init(self, key: jax.Array) -> Params:
        """Parameters to start from."""
        source = self.size if self.source_size is None else self.source_size
        shapes = {"stop_query": (self.size, self.size), "stop_key": (source, self.size)}
        if self.lookback:
            shapes |= {"attend_query": (self.size, self.size), "attend_key": (source, self.size)}
        shapes |= {"value": (source, self.size), "output": (self.size, self.size)}
        glorot = jax.nn.initializers.glorot_uniform()
        keys = jax.random.split(key, len(shapes))
        params = {name: glorot(k, shape) for k, (name, shape) in zip(keys, shapes.items(), strict=True)}
        return params | {"bias": jnp.full(self.heads, self.bias)}

    @compiled("self", "hard")
    def apply(
        self,
        params: Params,
        queries: ArrayLike,
        keys: ArrayLike,
        source_lengths: ArrayLike | None = None,
        *,
        mask: ArrayLike | None = None,
        target_mask: ArrayLike | None = None,
        key: jax.Array | None = None,
        hard: bool = False,
    ) -> Attended:
        """Attend.

        Args:
            params: from `init`.
            queries, keys, source_lengths, mask, target_mask: as in `lagging.losses.torch.MonotonicAttention.forward`.
            key: random key of the noise, in training; no noise if not given.
            hard: stop where p is at least 0.5, as in translating, instead of in expectation; static under `jit`.
        """
        queries, keys = jnp.asarray(queries), jnp.asarray(keys)
        flags = real(keys.shape[-2], source_lengths, mask, "source_lengths", keys.shape[:-2])
        flags = jnp.broadcast_to(flags, keys.shape[:-1])
        keys = jnp.where(flags[..., None], keys, 0)
        energies = self._energies(params, "stop", queries, keys) + floats(params["bias"])[:, None, None]
        if key is not None:
            energies = energies + self.noise * jax.random.normal(key, energies.shape, energies.dtype)
        p = jax.nn.sigmoid(energies)
        each, rows = flags[..., None, :], None
        if target_mask is not None:
            rows = jnp.broadcast_to(boolean(target_mask, "target_mask"), queries.shape[:-1])[..., None, :]
        if hard:
            stop = p >= 0.5 if rows is None else (p >= 0.5) | ~rows[..., None]
            alignment = jax.nn.one_hot(stops(stop, each), p.shape[-1], dtype=p.dtype)
            alignment = alignment if rows is None else alignment * rows[..., None]
        else:
            alignment = expected_alignment(p, mask=each, target_mask=rows)
        weights = alignment
        if self.lookback:
            weights = infinite_lookback(alignment, self._energies(params, "attend", queries, keys), mask=each)
        seen = jnp.einsum("...hts,...hsd->...htd", weights.astype(keys.dtype), self._split(keys @ params["value"]))
        context = jnp.moveaxis(seen, -3, -2).reshape((*queries.shape[:-1], self.size)) @ params["output"]
        return Attended(context, expected_delays(alignment, position(each)), alignment, weights, p)

    def _energies(self, params: Params, name: str, queries: jax.Array, keys: jax.Array) -> jax.Array:
        q, k = self._split(queries @ params[f"{name}_query"]), self._split(keys @ params[f"{name}_key"])
        return floats(jnp.einsum("...htd,...hsd->...hts", q, k)) / math.sqrt(self.size // self.heads)

    def _split(self, wide: jax.Array) -> jax.Array:
        """(..., T, size) as (..., heads, T, size/heads)."""
        return jnp.moveaxis(wide.reshape(*wide.shape[:-1], self.heads, -1), -2, -3)


def aggregate_heads(values: ArrayLike, how: Heads = "mean", *, axis: int = -1) -> jax.Array:
    """Aggregate the values of several heads to one number.

    The values of `how` are those of `lagging.losses.torch.aggregate_heads`; `axis` is its `dim`.

    Raises:
        UsageError: `how` has another value.

    Example:
        >>> [float(aggregate_heads([1.0, 5.0], how)) for how in ("mean", "max", "variance")]
        [3.0, 5.0, 4.0]
        >>> round(float(aggregate_heads([1.0, 5.0], "softmax")), 4)
        4.9281
    """
    v = floats(values)
    match how:
        case "mean":
            return jnp.mean(v, axis=axis)
        case "softmax":
            return jnp.sum(jax.nn.softmax(v, axis=axis) * v, axis=axis)
        case "max":
            return jnp.max(v, axis=axis)
        case "variance":
            return jnp.var(v, axis=axis)
    raise UsageError(f"how must be one of {', '.join(get_args(Heads))}, but got {how!r}")


def wait_k_mask(k: ArrayLike, target_length: int, source_length: int) -> jax.Array:
    """Which source tokens a wait-k policy has read before each target token: those j < t + k, t and j from 0.

    The arguments are those of `lagging.losses.torch.wait_k_mask`; both lengths are static under `jit`.

    Example:
        >>> wait_k_mask(2, 3, 4).astype(int)
        Array([[1, 1, 0, 0],
               [1, 1, 1, 0],
               [1, 1, 1, 1]], dtype=int32)
    """
    read = jnp.asarray(k)[..., None, None] + jnp.arange(target_length)[:, None]
    return jnp.arange(source_length) < read


def multipath(key: jax.Array, batch: int, low: int, high: int) -> jax.Array:
    """A random k from low to high, both included, for each sentence: one model then serves every k.

    As `lagging.losses.torch.multipath`, with a random key instead of a generator.

    Example:
        >>> k = multipath(jax.random.key(0), 4, 1, 9)
        >>> wait_k_mask(k, 5, 6).shape
        (4, 5, 6)
    """
    return jax.random.randint(key, (batch,), low, high + 1)
