# SPDX-License-Identifier: Apache-2.0
"""Attention that decides when to read: monotonic attention with infinite lookback (MILk), its heads, and wait-k."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from lagging.errors import UsageError
from lagging.losses.torch.alignment import expected_alignment, expected_delays, infinite_lookback, stops
from lagging.losses.torch.tensors import TensorLike, boolean, floats, last, position, real

__all__ = ["Attended", "Heads", "MonotonicAttention", "Reading", "aggregate_heads", "multipath", "wait_k_mask"]

Heads = Literal["mean", "softmax", "max", "variance"]


class Attended(NamedTuple):
    """The output of an attention, with its delays.

    Attributes:
        context: shape (..., T, size).
        delays: g of each head, expected or (if hard) as it would be read: shape (..., heads, T).
        alignment: α, shape (..., heads, T, S).
        weights: β, the soft attention, shape (..., heads, T, S).
        p: probability to stop, shape (..., heads, T, S).
    """

    context: Tensor
    delays: Tensor
    alignment: Tensor
    weights: Tensor
    p: Tensor


class Reading(NamedTuple):
    """How far `MonotonicAttention.step` is: what was read of each sentence, and where its heads are.

    Attributes:
        stop_keys, attend_keys, values: what the attention makes of the keys so far, shape (..., heads, S, size/heads);
            attend_keys are None without lookback.
        real: which keys are real, shape (..., S).
        places: the position, from 0, of each head, shape (..., heads).
        stopped: whether the head has stopped there for the token that is to be written, shape (..., heads).
        written: whether the last step gave a context, as all heads had stopped, shape (...,).
        delays: how many source tokens had been read at that, by the slowest head, shape (...,); 0 where it gave none.
    """

    stop_keys: Tensor
    attend_keys: Tensor | None
    values: Tensor
    real: Tensor
    places: Tensor
    stopped: Tensor
    written: Tensor
    delays: Tensor

    @property
    def size(self) -> int:
        """The number of keys so far, padding included."""
        return self.real.shape[-1]


class MonotonicAttention(nn.Module):
    r"""Monotonic infinite lookback attention (MILk), single or multi-head.

    Each head reads on until it stops, with probability $p(t,j) = \sigma(q_t \cdot k_j / \sqrt{d} + b + \epsilon)$, and
    attends to all that it has read, by energies $u(t,j) = q'_t \cdot k'_j / \sqrt{d}$: `expected_alignment` and
    `infinite_lookback`. The noise ε, which is added only in training, drives p to 0 or 1, so that a hard policy loses
    little. A head always stops at the last source token, so that no mass is lost. In `eval()` mode it stops where p is
    at least 0.5.

    Args:
        size: width of queries and context; a multiple of the number of heads.
        source_size: width of keys; that of queries if not given.
        heads: the number of heads; each decides on its own when to stop.
        noise: standard deviation of ε.
        bias: initial value of b; the lower it is, the more is read at first.
        lookback: whether the context comes from everything that was read (β), or only from where the head stopped (α).

    Raises:
        UsageError: the size is not a multiple of the number of heads.

    Example:
        One step of training for latency, on queries and keys of any model:

        >>> from lagging.losses.torch import dal
        >>> attention = MonotonicAttention(8, heads=2)
        >>> queries, keys = torch.randn(2, 4, 5, 8)                                 # 4 sentences of 5 tokens
        >>> lengths = torch.tensor([5, 5, 4, 3])
        >>> seen = attention(queries, keys, lengths)
        >>> latency = dal(seen.delays.amax(-2), lengths, lengths)                   # of the slowest head
        >>> (seen.context.square().mean() + 0.1 * latency.mean()).backward()
        >>> attention.eval()(queries, keys, lengths).delays.shape
        torch.Size([4, 2, 5])

        Translating: `start`, then `step` with the query of the next target token and the keys that are new.

        >>> state = attention.start(4)
        >>> context, state = attention.step(queries[:, 0], keys[:, :2], state)
        >>> while not state.written.all():                                          # a head wants to read on
        ...     more = keys[:, state.size : state.size + 1]
        ...     finished = state.size + 1 == keys.shape[1]
        ...     context, state = attention.step(queries[:, 0], more, state, finished=finished)
        >>> context.shape
        torch.Size([4, 8])

    References:
        Arivazhagan et al. (2019), arXiv:1906.05218; Ma et al. (2020), Monotonic Multihead Attention, arXiv:1909.12406.
    """

    def __init__(
        self,
        size: int,
        source_size: int | None = None,
        heads: int = 1,
        noise: float = 1.0,
        bias: float = -2.0,
        lookback: bool = True,
    ) -> None:
        super().__init__()
        if size % heads:
            raise UsageError(f"size must be a multiple of the number of heads, but {size} is none of {heads}")
        source = size if source_size is None else source_size
        self.heads, self.noise, self.lookback = heads, noise, lookback
        self.stop_query, self.stop_key = _linear(size, size), _linear(source, size)
        if lookback:
            self.attend_query, self.attend_key = _linear(size, size), _linear(source, size)
        self.value, self.output = _linear(source, size), _linear(size, size)
        self.bias = nn.Parameter(torch.full((heads,), bias))

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        source_lengths: TensorLike | None = None,
        *,
        mask: TensorLike | None = None,
        target_mask: TensorLike | None = None,
        hard: bool | None = None,
        generator: torch.Generator | None = None,
    ) -> Attended:
        """Attend.

        Args:
            queries: of the target tokens, shape (..., T, size).
            keys: of the source tokens, shape (..., S, source_size).
            source_lengths: how many source tokens are real, padding on the right; broadcasts to (...,).
            mask: shape (..., S), True where a source token is real; instead of source_lengths.
            target_mask: shape (..., T), True where a target token is real; needed where targets are padded on the left.
            hard: stop where p is at least 0.5, as in translating, instead of in expectation; if not given, True in
                `eval()` mode.
            generator: generator of the noise.
        """
        flags = real(keys.shape[-2], source_lengths, mask, keys, "source_lengths", keys.shape[:-2])
        flags = torch.ones_like(keys[..., 0], dtype=torch.bool) if flags is None else flags.expand(keys.shape[:-1])
        keys = torch.where(flags.unsqueeze(-1), keys, 0.0)
        energies = self._energies(self.stop_query(queries), self.stop_key(keys)) + floats(self.bias)[:, None, None]
        if self.training and self.noise and not hard:
            noise = torch.randn(energies.shape, generator=generator, dtype=energies.dtype, device=energies.device)
            energies = energies + self.noise * noise
        p = torch.sigmoid(energies)
        each, rows = flags.unsqueeze(-2), None
        if target_mask is not None:
            rows = boolean(target_mask, queries, "target_mask").expand(queries.shape[:-1]).unsqueeze(-2)
        if hard or (hard is None and not self.training):
            stop = p >= 0.5 if rows is None else (p >= 0.5) | ~rows.unsqueeze(-1)
            alignment = nn.functional.one_hot(stops(stop, each.unsqueeze(-2)), p.shape[-1]).to(p.dtype)
            alignment = alignment if rows is None else alignment * rows.unsqueeze(-1)
        else:
            alignment = expected_alignment(p, mask=each, target_mask=rows)
        weights = alignment
        if self.lookback:
            soft = self._energies(self.attend_query(queries), self.attend_key(keys))
            weights = infinite_lookback(alignment, soft, mask=each)
        values = self._split(self.value(keys))
        context = self.output((weights.to(values.dtype) @ values).transpose(-2, -3).flatten(-2))
        return Attended(context, expected_delays(alignment, position(each)), alignment, weights, p)

    def start(self, *batch: int) -> Reading:
        """The state before anything was read, for sentences of these leading dimensions: `start()` for one."""
        like = self.value.weight
        none = like.new_zeros((*batch, self.heads, 0, like.shape[0] // self.heads))
        at = torch.zeros((*batch, self.heads), dtype=torch.int64, device=like.device)
        flags = torch.zeros((*batch, 0), dtype=torch.bool, device=like.device)
        no = torch.zeros(batch, dtype=torch.bool, device=like.device)
        return Reading(none, none if self.lookback else None, none, flags, at, at.bool(), no, no.long())

    def step(
        self,
        query: Tensor,
        new_keys: Tensor,
        state: Reading,
        *,
        mask: TensorLike | None = None,
        finished: TensorLike = False,
    ) -> tuple[Tensor, Reading]:
        """Read new keys, and attend with the query of the next target token, if all heads have stopped by then.

        Step by step it gives what `forward(…, hard=True)` gives for the whole sentence. Keys are projected once, when
        they are read.

        Args:
            query: of the next target token, shape (..., size). Where the last step gave no context, it is the same
                token's again.
            new_keys: of the source tokens read since the last step, shape (..., n, source_size); n may be 0.
            state: from `start`, or from the last step.
            mask: which of the new keys are real, shape (..., n), as sentences of a batch may read different numbers.
            finished: whether there is no more source, one for all or shape (...,): then heads stop at the last token.

        Returns:
            The context, shape (..., size), and the state. `state.written` says where a context was given; elsewhere a
            head wants to read on, and the context is 0.
        """
        flags = boolean(mask, new_keys, "mask") if mask is not None else new_keys.new_ones(new_keys.shape[:-1]).bool()
        flags = flags.expand(new_keys.shape[:-1])
        new_keys = torch.where(flags.unsqueeze(-1), new_keys, 0.0)
        real_keys = torch.cat([state.real, flags], -1)
        stop_keys = torch.cat([state.stop_keys, self._split(self.stop_key(new_keys))], -2)
        values = torch.cat([state.values, self._split(self.value(new_keys))], -2)
        attend_keys = state.attend_keys
        if attend_keys is not None:
            attend_keys = torch.cat([attend_keys, self._split(self.attend_key(new_keys))], -2)
        if not real_keys.shape[-1]:
            read = state._replace(written=torch.zeros_like(state.written), delays=torch.zeros_like(state.delays))
            return torch.zeros_like(query), read
        j = torch.arange(real_keys.shape[-1], device=query.device)
        done = torch.as_tensor(finished, device=query.device).expand(real_keys.shape[:-1]).unsqueeze(-1)
        energies = self._one(self.stop_query(query), stop_keys) + floats(self.bias)[:, None]
        can = (torch.sigmoid(energies) >= 0.5) & real_keys.unsqueeze(-2) | (last(real_keys) & done).unsqueeze(-2)
        can = (can & (j >= state.places.unsqueeze(-1))) | (
            state.stopped.unsqueeze(-1) & (j == state.places.unsqueeze(-1))
        )
        stopped = can.any(-1)
        first = torch.where(can, j, j[-1] + 1).amin(-1)
        places = torch.where(stopped, first, state.places)
        written = stopped.all(-1)
        seen = real_keys.unsqueeze(-2) & (j <= places.unsqueeze(-1))
        if attend_keys is None:
            weights = (j == places.unsqueeze(-1)).to(values.dtype)
        else:
            soft = self._one(self.attend_query(query), attend_keys)
            weights = torch.where(seen, soft, torch.finfo(soft.dtype).min).softmax(-1).to(values.dtype)
        context = self.output((weights.unsqueeze(-2) @ values).squeeze(-2).flatten(-2))
        delays = torch.where(written, seen.sum(-1).amax(-1), 0)
        after = Reading(
            stop_keys, attend_keys, values, real_keys, places, stopped & ~written.unsqueeze(-1), written, delays
        )
        return torch.where(written.unsqueeze(-1), context, 0.0), after

    def _one(self, query: Tensor, keys: Tensor) -> Tensor:
        """Energies of one query, (..., heads, S), for keys that are split already."""
        q = query.reshape(*query.shape[:-1], self.heads, 1, -1)
        return floats(q @ keys.transpose(-1, -2)).squeeze(-2) / math.sqrt(q.shape[-1])

    def _energies(self, queries: Tensor, keys: Tensor) -> Tensor:
        q, k = self._split(queries), self._split(keys)
        return floats(q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1])

    def _split(self, wide: Tensor) -> Tensor:
        """(..., T, size) as (..., heads, T, size/heads)."""
        return wide.reshape(*wide.shape[:-1], self.heads, wide.shape[-1] // self.heads).transpose(-2, -3)


def _linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs, bias=False)
    nn.init.xavier_uniform_(layer.weight)
    return layer


def aggregate_heads(values: TensorLike, how: Heads = "mean", *, dim: int = -1) -> Tensor:
    r"""Aggregate the values of several heads to one number.

    Args:
        values: the latency of each head, or any other value of heads.
        how: "mean"; "softmax", the mean with the weights $\exp v_h / \sum_h \exp v_h$, which are larger for slow heads;
            "max", the largest; "variance", the spread of the heads: as a penalty on delays, with `dim=-2`, it keeps
            heads together. A decoder waits for its slowest head at every token: its delays are `"max"` of the delays,
            with `dim=-2`, and their DAL is not below the largest DAL of a head.
        dim: the dimension of the heads.

    Returns:
        Shape of the values without that dimension. Heads that are equally slow share the gradient of "max".

    Raises:
        UsageError: `how` has another value.

    Example:
        >>> [aggregate_heads([1.0, 5.0], how).item() for how in ("mean", "max", "variance")]
        [3.0, 5.0, 4.0]
        >>> aggregate_heads([1.0, 5.0], "softmax")
        tensor(4.9281)
    """
    v = floats(values)
    match how:
        case "mean":
            return v.mean(dim)
        case "softmax":
            return (torch.softmax(v, dim) * v).sum(dim)
        case "max":
            return v.amax(dim)
        case "variance":
            return v.var(dim, correction=0)
    raise UsageError(f"how must be one of {', '.join(get_args(Heads))}, but got {how!r}")


def wait_k_mask(k: TensorLike, target_length: int, source_length: int) -> Tensor:
    """Which source tokens a wait-k policy has read before each target token: those j < t + k, t and j from 0.

    Args:
        k: the number of tokens to read first; one number, or one per sentence.
        target_length: T.
        source_length: S.

    Returns:
        True where attention is allowed, shape (T, S), or (..., T, S) for k of shape (...,): a mask for
        `scaled_dot_product_attention`.

    Example:
        >>> wait_k_mask(2, 3, 4).int()
        tensor([[1, 1, 0, 0],
                [1, 1, 1, 0],
                [1, 1, 1, 1]], dtype=torch.int32)

    References:
        Ma et al. (2019), arXiv:1810.08398.
    """
    first = torch.as_tensor(k)
    read = first[..., None, None] + torch.arange(target_length, device=first.device)[:, None]
    return torch.arange(source_length, device=first.device) < read


def multipath(generator: torch.Generator | None, batch: int, low: int, high: int) -> Tensor:
    """A random k from low to high, both included, for each sentence: one model then serves every k.

    Args:
        generator: generator of random numbers; torch's default if None.
        batch: the number of sentences.
        low, high: the smallest and the largest k.

    Returns:
        k, shape (batch,), on the device of the generator.

    Example:
        >>> k = multipath(torch.Generator().manual_seed(0), 4, 1, 9)
        >>> wait_k_mask(k, 5, 6).shape
        torch.Size([4, 5, 6])

    References:
        Elbayad et al. (2020), Efficient Wait-k Models for Simultaneous Machine Translation, arXiv:2005.08595.
    """
    device = None if generator is None else generator.device
    return torch.randint(low, high + 1, (batch,), generator=generator, device=device)
