# SPDX-License-Identifier: Apache-2.0
r"""The two recurrences of monotonic attention and their gradients, as operators that torch can compile and batch.

    wavefront   q(t, j) = (1−p(t, j−1)) q(t, j−1) + α(t−1, j),  α = p q: by anti-diagonals, T+S−1 steps
    lookback    β(j) = w(j) R(j),  R(j) = α(j) + (1−w(j+1)) R(j+1),  w(j) = exp u(j) / Σ_{l≤j} exp u(l): S steps

There is no division by a product, no logarithm, and in the forward direction no negative term, so nothing cancels. They
are computed in float64 if the device has it, for arguments of any type: in float32, a rounded 1−p is off in the same
direction at every step, and a thousand steps lose 5e-5 of the mass. Results, and what is kept for the gradient, have
the type of the arguments.

The wavefront goes through blocks of sentences (or heads) and of target tokens. On a CPU they are small enough for its
cache, and there is one set of buffers for all blocks: so memory does not grow with the batch, and the system does not
hand out new pages for every buffer, which costs more than the arithmetic.

On a GPU, the operators are the kernels of `triton_kernels`, where Triton is installed; LAGGING_TRITON=0 in the
environment keeps to PyTorch.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import Tensor

__all__ = ["lookback", "wavefront"]

_Pair = tuple[Tensor, Tensor]


CHUNK = {"cpu": 1 << 21}
"""The number of cells, of 8 bytes, that a buffer may have on a device. A sentence that needs more is a chunk itself."""
LARGE_CHUNK = 1 << 26
"""The same for all other devices, where every chunk costs launches."""
ROWS, DIAGONAL = 32, 1024
"""On a CPU: the number of sentences in a block, and the number of cells in an anti-diagonal of it."""
LONGEST = 1 << 14
"""The largest number of source tokens for the kernels of Triton: they keep a row of them in registers."""


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


class _Blocks:
    """Blocks of `rows` sentences and `steps` target tokens, and buffers for one of them, used again for every block.

    A buffer holds a block by anti-diagonals, (steps+S−1, steps, rows): cell (t, j) is at [t+j, t]. What is left of the
    first source token and right of the last is in a buffer too: p is 0 there, and nothing comes from there.
    """

    def __init__(self, like: Tensor) -> None:
        count, length, width = like.shape
        if like.device.type == "cpu":
            rows = _even(count, ROWS)
            steps = _even(length, max(DIAGONAL // rows, 1))
        else:
            rows, steps = _even(count, max(LARGE_CHUNK // (length * (length + width - 1)), 1)), length
        shape = steps + width - 1, steps, rows
        self.p, self.values = like.new_zeros((2, *shape), dtype=_wide(like)).unbind()
        self.keep, self._one = torch.empty_like(self.p), self.p.new_ones(())
        size = (steps, width, rows), (steps * rows + rows, steps * rows, 1)
        self.p_cells, self.cells = self.p.as_strided(*size), self.values.as_strided(*size)
        self.parts = [slice(row, row + rows) for row in range(0, count, rows)]
        self.tokens = [slice(t, t + steps) for t in range(0, length, steps)]

    def put(self, p: Tensor) -> None:
        """Take p, (rows, T, S), of a block, or of the smaller one at the end: then the rest is not used."""
        _put(self.p_cells, p)
        torch.sub(self._one, self.p, out=self.keep)

    def carry(self, step: int) -> Tensor:
        """What p sends from a target token of the block to the next, or to the one before: (S, rows)."""
        return self.p_cells[step] * self.cells[step]


def _even(count: int, most: int) -> int:
    """The size of parts, at most `most`, that are about equal."""
    return -(-count // -(-count // most))


def _put(cells: Tensor, values: Tensor) -> None:
    """Copy (rows, T, S) to cells (T, S, rows), which may be larger."""
    rows, steps, _ = values.shape
    cells[:steps, :, :rows].copy_(values.permute(1, 2, 0))


def _get(cells: Tensor, like: Tensor) -> Tensor:
    """Cells (T, S, rows) as (rows, T, S), with the shape and type of `like`."""
    rows, steps, width = like.shape
    taken = cells[:steps, :, :rows].to(like.dtype)
    return taken.reshape(steps * width, rows).t().contiguous().view(like.shape)


def wavefront_forward(p: Tensor, start: Tensor) -> _Pair:
    """α and q, both (..., T, S), from p (..., T, S) and α(0) (..., S)."""
    steps, width = p.shape[-2:]
    flat, first = p.reshape(-1, steps, width), start.reshape(-1, width)
    out = torch.empty_like(flat)
    blocks = _Blocks(flat)
    q, keep, stop = blocks.values, blocks.keep.unbind(), blocks.p[:, :-1].unbind()
    here, above, below = q.unbind(), q[:, :-1].unbind(), q[:, 1:].unbind()
    for part in blocks.parts:
        arriving = first[part].t()
        for tokens in blocks.tokens:
            blocks.put(flat[part, tokens])
            q.zero_()
            blocks.cells[0, :, : arriving.shape[1]].copy_(arriving)
            for n in range(1, len(here)):
                here[n].addcmul_(keep[n - 1], here[n - 1])  # the mass that reads on
                below[n].addcmul_(stop[n - 1], above[n - 1])  # the mass that stopped at j for the token before
            arriving = blocks.carry(-1)
            out[part, tokens] = _get(blocks.cells, flat[part, tokens])
    return (flat * out).view(p.shape), out.view(p.shape)


def wavefront_backward(gradient: Tensor, p: Tensor, q: Tensor, start: bool) -> _Pair:
    """∂p = q r, and ∂α(0) if `start`, from G = ∂α, where r is the gain of stopping at j over reading on.

    r(t, j) = G(t, j) − G(t, j+1) + (1−p(t, j+1)) r(t, j+1) + p(t+1, j) r(t+1, j). It equals the difference of the
    adjoints of α(t, j) and q(t, j+1), but is not computed as that difference, which may cancel. Where r is 0, as at
    target tokens that the loss does not use, p and q may be anything. ∂α(0) is a cumulative sum of floats, which CUDA
    does not have in deterministic mode: where α(0) needs no gradient, it is not computed, and is 0.
    """
    steps, width = p.shape[-2:]
    slopes, flat, arrived = (values.reshape(-1, steps, width) for values in (gradient, p, q))
    out, first = torch.empty_like(flat), flat.new_zeros((len(flat), width))
    blocks = _Blocks(flat)
    r, keep, stop = blocks.values, blocks.keep.unbind(), blocks.p[:, 1:].unbind()
    here, above, below = r.unbind(), r[:, :-1].unbind(), r[:, 1:].unbind()
    for part in blocks.parts:
        following = None
        for tokens in reversed(blocks.tokens):
            blocks.put(torch.nan_to_num(flat[part, tokens], nan=0.0, posinf=0.0, neginf=0.0))
            gain = slopes[part, tokens].clone()
            gain[..., :-1] -= slopes[part, tokens, 1:]
            _put(blocks.cells, gain)
            size = gain.shape[1]
            blocks.cells[size:].zero_()
            if following is not None:
                blocks.cells[size - 1].add_(following)
            for n in reversed(range(len(here) - 1)):
                here[n].addcmul_(keep[n + 1], here[n + 1])
                above[n].addcmul_(stop[n + 1], below[n + 1])
            following = blocks.carry(0)
            cells = _get(blocks.cells, gain)
            slope = torch.mul(arrived[part, tokens], cells, out=out[part, tokens])
            slope.masked_fill_(cells == 0, 0.0)
        if start and following is not None:
            first[part] = following.flip(0).cumsum(0).flip(0).t()[: len(first[part])].to(first.dtype)
    return out.view(p.shape), first.view((*p.shape[:-2], width))


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
        if importlib.util.find_spec("triton") is not None:
            torch.library.impl(name, "CUDA", torch.no_grad()(_on_gpu(forward)))
        torch.library.register_fake(name, shapes)
        torch.library.register_vmap(name, batched)
    operator: Callable[..., _Pair] = getattr(torch.ops.lagging, short).default
    return operator


def _on_gpu(function: Callable[..., _Pair]) -> Callable[..., _Pair]:
    """The kernel of the same name in `triton_kernels`, which is loaded at the first call; or the function itself."""

    def run(*values: Any) -> _Pair:
        if os.environ.get("LAGGING_TRITON") == "0" or values[0].shape[-1] > LONGEST:
            return function(*values)
        from lagging.losses.torch import triton_kernels

        kernel: Callable[..., _Pair] = getattr(triton_kernels, function.__name__)
        return kernel(*values)

    return run


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
        ctx.set_materialize_grads(False)  # of the second output: zeros, as large as p
        ctx.save_for_backward(inputs[0], output[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None, _: None) -> tuple[Tensor | None, Tensor | None]:
        """Call the operator; None is a gradient of 0."""
        if gradient is None:
            return None, None
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
        ctx.set_materialize_grads(False)  # of the second output: zeros, as large as p
        ctx.save_for_backward(inputs[0], *output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None, _: None) -> tuple[Tensor | None, Tensor | None]:
        """Call the operator; None is a gradient of 0."""
        if gradient is None:
            return None, None
        return _back_lookback(gradient, *ctx.saved_tensors)


_apply_wavefront: Callable[..., _Pair] = Wavefront.apply
_apply_lookback: Callable[..., _Pair] = Lookback.apply


def wavefront(p: Tensor, start: Tensor) -> Tensor:
    """α (..., T, S) from p (..., T, S) and α(0) (..., S)."""
    return _apply_wavefront(p, start)[0]


def lookback(alpha: Tensor, energies: Tensor) -> Tensor:
    """β (..., S) from α and u (..., S)."""
    return _apply_lookback(alpha, energies)[0]
