# SPDX-License-Identifier: Apache-2.0
r"""The two recurrences of monotonic attention and their gradients, as operators that torch can compile and batch.

    wavefront   q(t, j) = (1−p(t, j−1)) q(t, j−1) + α(t−1, j),  α = p q: by anti-diagonals, T+S−1 steps
    lookback    β(j) = w(j) R(j),  R(j) = α(j) + (1−w(j+1)) R(j+1),  w(j) = exp u(j) / Σ_{l≤j} exp u(l): S steps

There is no division by a product, no logarithm, and in the forward direction no negative term, so nothing cancels. They
are computed in float64 if the device has it, for arguments of any type: in float32, a rounded 1−p is off in the same
direction at every step, and a thousand steps lose 5e-5 of the mass. Results, and what is kept for the gradient, have
the type of the arguments. Sentences and heads are worked through in chunks, so that the memory of the buffers does not
grow with their number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import torch
from torch import Tensor

__all__ = ["lookback", "wavefront"]

_Pair = tuple[Tensor, Tensor]


CHUNK = {"cpu": 1 << 21}
"""The number of cells, of 8 bytes, that a buffer may have on a device. A sentence that needs more is a chunk itself."""
LARGE_CHUNK = 1 << 26
"""The same for all other devices, where every chunk costs launches."""


def _by_chunks(function: Callable[..., _Pair], cells: int, inputs: tuple[Tensor, ...], like: _Pair) -> _Pair:
    """Apply a function of rows, the first dimension of the inputs, to chunks of them.

    `cells` is what a buffer needs for a row; the results are put into `like`.
    """
    limit = CHUNK.get(inputs[0].device.type, LARGE_CHUNK)
    size, rows = max(limit // max(cells, 1), 1), len(inputs[0])
    if rows <= size:
        return function(*inputs)
    for begin in range(0, rows, size):
        part = slice(begin, begin + size)
        for out, made in zip(like, function(*(values[part] for values in inputs)), strict=True):
            out[part] = made
    return like


def _wide(like: Tensor) -> torch.dtype:
    return torch.float32 if like.device.type == "mps" else torch.float64


# ---- the expected alignment -------------------------------------------------------------------------------------


def _skew(cells: Tensor) -> Tensor:
    """(..., T, S) as anti-diagonals (T+S−1, T, rows): cell (t, j) of a row is at [t+j, t], and the rest is 0."""
    steps, width = cells.shape[-2:]
    columns = cells.reshape(-1, steps * width).t().contiguous().view(steps, width, -1)
    rows = columns.shape[-1]
    out = cells.new_zeros((steps + width - 1, steps, rows), dtype=_wide(cells))
    out.as_strided((steps, width, rows), (steps * rows + rows, steps * rows, 1)).copy_(columns)
    return out


def _unskew(diagonals: Tensor, like: Tensor) -> Tensor:
    """The inverse of `_skew`, with the shape and type of `like`."""
    steps, width = like.shape[-2:]
    rows = diagonals.shape[-1]
    cells = diagonals.as_strided((steps, width, rows), (steps * rows + rows, steps * rows, 1)).to(like.dtype)
    return cells.reshape(steps * width, rows).t().contiguous().view(like.shape)


def wavefront_forward(p: Tensor, start: Tensor) -> _Pair:
    """α and q, both (..., T, S), from p (..., T, S) and α(0) (..., S)."""
    steps, width = p.shape[-2:]
    flat = p.reshape(-1, steps, width)
    like = (torch.empty_like(flat), torch.empty_like(flat))
    made = _by_chunks(_forward, steps * (steps + width - 1), (flat, start.reshape(-1, width)), like)
    return made[0].view(p.shape), made[1].view(p.shape)


def _forward(p: Tensor, start: Tensor) -> _Pair:
    """`wavefront_forward` of a chunk of rows."""
    diagonals = _skew(p)
    q = torch.zeros_like(diagonals)
    q[: p.shape[-1], 0] = start.reshape(-1, p.shape[-1]).t()
    read, one = torch.empty_like(q[0]), q.new_ones(())
    here, above, below = q.unbind(), q[:, :-1].unbind(), q[:, 1:].unbind()
    stop, stops = diagonals.unbind(), diagonals[:, :-1].unbind()
    for n in range(1, len(here)):
        torch.sub(one, stop[n - 1], out=read)
        here[n].addcmul_(read, here[n - 1])  # the mass that reads on
        below[n].addcmul_(stops[n - 1], above[n - 1])  # the mass that stopped at j for the token before
    arrived = _unskew(q, p)
    return p * arrived, arrived


def wavefront_backward(gradient: Tensor, p: Tensor, q: Tensor, start: bool) -> _Pair:
    """∂p = q r, and ∂α(0) if `start`, from G = ∂α, where r is the gain of stopping at j over reading on.

    r(t, j) = G(t, j) − G(t, j+1) + (1−p(t, j+1)) r(t, j+1) + p(t+1, j) r(t+1, j). It equals the difference of the
    adjoints of α(t, j) and q(t, j+1), but is not computed as that difference, which may cancel. Where r is 0, as at
    target tokens that the loss does not use, p and q may be anything. ∂α(0) is a cumulative sum of floats, which CUDA
    does not have in deterministic mode: where α(0) needs no gradient, it is not computed, and is 0.
    """
    steps, width = p.shape[-2:]
    flat = tuple(values.reshape(-1, steps, width) for values in (gradient, p, q))
    like = (torch.empty_like(flat[1]), p.new_zeros((len(flat[1]), width)))
    made = _by_chunks(partial(_backward, start=start), steps * (steps + width - 1), flat, like)
    return made[0].view(p.shape), made[1].view((*p.shape[:-2], width))


def _backward(gradient: Tensor, p: Tensor, q: Tensor, start: bool) -> _Pair:
    """`wavefront_backward` of a chunk of rows."""
    diagonals = _skew(torch.nan_to_num(p, nan=0.0, posinf=0.0, neginf=0.0))
    worth = _skew(gradient - torch.nn.functional.pad(gradient[..., 1:], (0, 1)))
    read, one = torch.empty_like(worth[0]), worth.new_ones(())
    here, above, below = worth.unbind(), worth[:, :-1].unbind(), worth[:, 1:].unbind()
    stop, stops = diagonals.unbind(), diagonals[:, 1:].unbind()
    for n in reversed(range(len(here) - 1)):
        torch.sub(one, stop[n + 1], out=read)
        here[n].addcmul_(read, here[n + 1])
        above[n].addcmul_(stops[n + 1], below[n + 1])
    cells, width = _unskew(worth, p), p.shape[-1]
    slope = torch.where(cells == 0, 0.0, q * cells)
    if not start:
        return slope, slope.new_zeros((*p.shape[:-2], width))
    first = (diagonals[:width, 0] * worth[:width, 0]).flip(0).cumsum(0).flip(0)
    return slope, first.t().contiguous().to(p.dtype).reshape((*p.shape[:-2], width))


# ---- infinite lookback ------------------------------------------------------------------------------------------


def _columns(cells: Tensor) -> Tensor:
    """(..., S) as (S, rows), a copy."""
    columns = cells.reshape(-1, cells.shape[-1]).t()
    return columns.new_empty(columns.shape, dtype=_wide(cells)).copy_(columns)


def _cells(columns: Tensor, like: Tensor) -> Tensor:
    """The inverse of `_columns`, with the shape and type of `like`."""
    return columns.to(like.dtype).t().contiguous().view(like.shape)


def _look(alpha: Tensor, w: Tensor) -> Tensor:
    """β from α and w, all (S, rows); computed in place of α."""
    here, keep = alpha.unbind(), (1 - w).unbind()
    for j in reversed(range(len(here) - 1)):
        here[j].addcmul_(keep[j + 1], here[j + 1])
    return alpha.mul_(w)


def lookback_forward(alpha: Tensor, energies: Tensor) -> _Pair:
    """β and w, both (..., S), from α and u (..., S); every exponential is relative to the largest so far."""
    width = alpha.shape[-1]
    flat = (alpha.reshape(-1, width), energies.reshape(-1, width))
    made = _by_chunks(_lookback_rows, width, flat, (torch.empty_like(flat[0]), torch.empty_like(flat[0])))
    return made[0].view(alpha.shape), made[1].view(alpha.shape)


def _lookback_rows(alpha: Tensor, energies: Tensor) -> _Pair:
    """`lookback_forward` of a chunk of rows."""
    u = _columns(energies)
    highest = torch.cummax(u, 0).values
    new = torch.exp(u - highest)
    faded, here, total = torch.exp(highest[:-1] - highest[1:]).unbind(), new.unbind(), new.clone()
    sums = total.unbind()
    for j in range(1, len(here)):
        torch.addcmul(here[j], faded[j - 1], sums[j - 1], out=sums[j])
    w = new.div_(total)
    return _cells(_look(_columns(alpha), w), alpha), _cells(w, alpha)


def lookback_backward(gradient: Tensor, alpha: Tensor, beta: Tensor, w: Tensor) -> _Pair:
    """∂α(k) = M(k), the mean of G = ∂β over l ≤ k with the weights exp u(l), and ∂u = β G − lookback(α M).

    In rows that the loss does not use, where G is 0, α and u may be anything, NaN too.
    """
    width = alpha.shape[-1]
    flat = tuple(values.reshape(-1, width) for values in (gradient, alpha, beta, w))
    made = _by_chunks(_lookback_back, width, flat, (torch.empty_like(flat[1]), torch.empty_like(flat[1])))
    return made[0].view(alpha.shape), made[1].view(alpha.shape)


def _lookback_back(gradient: Tensor, alpha: Tensor, beta: Tensor, w: Tensor) -> _Pair:
    """`lookback_backward` of a chunk of rows."""
    mean, weights = _columns(gradient), _columns(w)
    here, each = mean.unbind(), weights.unbind()
    for k in range(1, len(here)):
        torch.lerp(here[k - 1], here[k], each[k], out=here[k])
    seen = _look(_columns(alpha).mul_(mean), weights)
    used = (gradient != 0).any(-1, keepdim=True)
    slope = beta * gradient - _cells(seen, alpha)
    return torch.where(used, _cells(mean, alpha), 0.0), torch.where(used, slope, 0.0)


# ---- registration with torch ------------------------------------------------------------------------------------


def _operator(schema: str, forward: Callable[..., _Pair], shapes: Callable[..., _Pair]) -> Callable[..., _Pair]:
    """Register a function as an operator that `torch.compile` does not trace; `vmap` adds one leading dimension."""
    short = schema.split("(")[0]
    name = f"lagging::{short}"

    def batched(info: Any, dims: tuple[int | None, ...], *values: Any) -> tuple[_Pair, tuple[int, int]]:
        size = info.batch_size
        front = (
            x if not isinstance(x, Tensor) else x.expand(size, *x.shape) if d is None else x.movedim(d, 0)
            for x, d in zip(values, dims, strict=True)
        )
        return operator(*front), (0, 0)

    if not hasattr(torch.ops.lagging, short):  # a module that is loaded again finds its operators there
        torch.library.define(name, schema.removeprefix(short))
        torch.library.impl(name, "default", torch.no_grad()(forward))
        torch.library.register_fake(name, shapes)
        torch.library.register_vmap(name, batched)
    operator: Callable[..., _Pair] = getattr(torch.ops.lagging, short).default
    return operator


def _two(first: Tensor, *_: Tensor) -> _Pair:
    return first.new_empty(first.shape), first.new_empty(first.shape)


def _two_of_wavefront(gradient: Tensor, *_: Tensor | bool) -> _Pair:
    return gradient.new_empty(gradient.shape), gradient.new_empty(gradient.shape[:-2] + gradient.shape[-1:])


_wavefront = _operator("wavefront(Tensor p, Tensor start) -> (Tensor, Tensor)", wavefront_forward, _two)
_wavefront_backward = _operator(
    "wavefront_backward(Tensor gradient, Tensor p, Tensor q, bool start) -> (Tensor, Tensor)",
    wavefront_backward,
    _two_of_wavefront,
)
_lookback = _operator("lookback(Tensor alpha, Tensor energies) -> (Tensor, Tensor)", lookback_forward, _two)
_lookback_backward = _operator(
    "lookback_backward(Tensor gradient, Tensor alpha, Tensor beta, Tensor w) -> (Tensor, Tensor)",
    lookback_backward,
    _two,
)


class _Once(torch.autograd.Function):
    """A backward pass, which cannot be differentiated itself, and raises an error then."""

    generate_vmap_rule = True

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: _Pair) -> None:
        """Keep nothing."""

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> NoReturn:
        """Refuse a second derivative."""
        raise NotImplementedError("expected alignments and infinite lookback have a first derivative only")


class _WavefrontBack(_Once):
    @staticmethod
    def forward(gradient: Tensor, p: Tensor, q: Tensor, start: bool) -> _Pair:
        return _wavefront_backward(gradient, p, q, start)


class _LookbackBack(_Once):
    @staticmethod
    def forward(gradient: Tensor, alpha: Tensor, beta: Tensor, w: Tensor) -> _Pair:
        return _lookback_backward(gradient, alpha, beta, w)


_back_wavefront: Callable[..., _Pair] = _WavefrontBack.apply
_back_lookback: Callable[..., _Pair] = _LookbackBack.apply


class Wavefront(torch.autograd.Function):
    """α (..., T, S) from p (..., T, S) and α(0) (..., S); q is returned only for the backward pass."""

    generate_vmap_rule = True

    @staticmethod
    def forward(p: Tensor, start: Tensor) -> _Pair:
        """Call the operator."""
        return _wavefront(p, start)

    @staticmethod
    def setup_context(ctx: Any, inputs: _Pair, output: _Pair) -> None:
        """Keep p and q."""
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(inputs[0], output[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor, Tensor | None]:
        """Call the operator."""
        slope, first = _back_wavefront(gradient, *ctx.saved_tensors, ctx.needs_input_grad[1])
        return slope, first if ctx.needs_input_grad[1] else None


class Lookback(torch.autograd.Function):
    """β (..., S) from α and u (..., S); w is returned only for the backward pass."""

    generate_vmap_rule = True

    @staticmethod
    def forward(alpha: Tensor, energies: Tensor) -> _Pair:
        """Call the operator."""
        return _lookback(alpha, energies)

    @staticmethod
    def setup_context(ctx: Any, inputs: _Pair, output: _Pair) -> None:
        """Keep α, β and w."""
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(inputs[0], *output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> _Pair:
        """Call the operator."""
        return _back_lookback(gradient, *ctx.saved_tensors)


_apply_wavefront: Callable[..., _Pair] = Wavefront.apply
_apply_lookback: Callable[..., _Pair] = Lookback.apply


def wavefront(p: Tensor, start: Tensor) -> Tensor:
    """α (..., T, S) from p (..., T, S) and α(0) (..., S)."""
    return _apply_wavefront(p, start)[0]


def lookback(alpha: Tensor, energies: Tensor) -> Tensor:
    """β (..., S) from α and u (..., S)."""
    return _apply_lookback(alpha, energies)[0]
