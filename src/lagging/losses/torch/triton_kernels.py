# SPDX-License-Identifier: Apache-2.0
r"""The recurrences of `recurrences` as Triton kernels: one launch forward and one backward, in float64.

A program works on one sentence (or head). In the wavefront it takes one target token after the other; a row of it is
x(j) = a(j) x(j−1) + b(j), an associative scan over the source. A scan multiplies and adds positive numbers, as the
loops in PyTorch do, so nothing cancels. The formulas are in `recurrences`, whose operators call these functions for
tensors on a GPU.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["lookback_backward", "lookback_forward", "wavefront_backward", "wavefront_forward"]


@triton.jit
def _affine(a0, b0, a1, b1):
    """Of x: a0 x + b0, and then a1 x + b1."""
    return a0 * a1, a1 * b0 + b1


@triton.jit
def _sums(m0, s0, m1, s1):
    """Sums of exponentials, each relative to the largest: s0 exp m0 + s1 exp m1."""
    m = tl.maximum(m0, m1)
    return m, s0 * tl.exp(m0 - m) + s1 * tl.exp(m1 - m)


@triton.jit
def _following(k1, e1, v1, k0, e0, v0):
    """R(j) = α(j) + k(j+1) R(j+1): parts of the source, from the right; k of the first, product of the others, R."""
    share = e0 * k1
    return k0, share * e1, v0 + share * v1


@triton.jit
def _finite(values):
    """Values, and 0 for those that are not finite."""
    return tl.where(tl.abs(values) < float("inf"), values, 0.0)


@triton.jit
def _wavefront_forward(p_ptr, start_ptr, alpha_ptr, q_ptr, steps, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, BLOCK)
    real = j < width
    arriving = tl.load(start_ptr + row * width + j, mask=real, other=0.0).to(tl.float64)
    for t in range(steps):
        at = (row * steps + t) * width + j
        p = tl.load(p_ptr + at, mask=real, other=0.0).to(tl.float64)
        before = tl.load(p_ptr + at - 1, mask=real & (j > 0), other=1.0).to(tl.float64)
        _, q = tl.associative_scan((1.0 - before, arriving), 0, _affine)
        arriving = p * q
        tl.store(q_ptr + at, q, mask=real)
        tl.store(alpha_ptr + at, arriving, mask=real)


@triton.jit
def _wavefront_backward(
    gradient_ptr,
    p_ptr,
    q_ptr,
    slope_ptr,
    start_ptr,
    steps,
    width,
    START: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, BLOCK)
    real, inner = j < width, j + 1 < width
    following = tl.zeros((BLOCK,), tl.float64)
    for back in range(steps):
        at = (row * steps + steps - 1 - back) * width + j
        p = _finite(tl.load(p_ptr + at, mask=real, other=0.0).to(tl.float64))
        after = _finite(tl.load(p_ptr + at + 1, mask=inner, other=1.0).to(tl.float64))
        gain = tl.load(gradient_ptr + at, mask=real, other=0.0).to(tl.float64)
        gain -= tl.load(gradient_ptr + at + 1, mask=inner, other=0.0).to(tl.float64)
        _, r = tl.associative_scan((1.0 - after, gain + following), 0, _affine, reverse=True)
        q = tl.load(q_ptr + at, mask=real, other=0.0).to(tl.float64)
        tl.store(slope_ptr + at, tl.where(r == 0, 0.0, q * r), mask=real)
        following = p * r
    if START:
        tl.store(start_ptr + row * width + j, tl.cumsum(following, 0, reverse=True), mask=real)


@triton.jit
def _lookback_forward(alpha_ptr, energies_ptr, beta_ptr, w_ptr, width, BLOCK: tl.constexpr):
    j = tl.arange(0, BLOCK)
    real = j < width
    at = tl.program_id(0).to(tl.int64) * width + j
    alpha = tl.load(alpha_ptr + at, mask=real, other=0.0).to(tl.float64)
    u = tl.load(energies_ptr + at, mask=real, other=float("-inf")).to(tl.float64)
    u = tl.where(real, u, tl.max(tl.where(real, u, float("-inf")), 0))
    highest, total = tl.associative_scan((u, tl.full((BLOCK,), 1.0, tl.float64)), 0, _sums)
    w = tl.exp(u - highest) / total
    one = tl.full((BLOCK,), 1.0, tl.float64)
    _, _, beyond = tl.associative_scan((1.0 - w, one, alpha), 0, _following, reverse=True)
    tl.store(beta_ptr + at, w * beyond, mask=real)
    tl.store(w_ptr + at, w, mask=real)


@triton.jit
def _lookback_backward(
    gradient_ptr,
    alpha_ptr,
    beta_ptr,
    w_ptr,
    alpha_slope_ptr,
    slope_ptr,
    width,
    BLOCK: tl.constexpr,
):
    j = tl.arange(0, BLOCK)
    real = j < width
    at = tl.program_id(0).to(tl.int64) * width + j
    gradient = tl.load(gradient_ptr + at, mask=real, other=0.0).to(tl.float64)
    used = tl.max(tl.where(gradient == 0, 0, 1), 0) > 0
    w = tl.load(w_ptr + at, mask=real, other=0.0).to(tl.float64)
    after = tl.load(w_ptr + at + 1, mask=j + 1 < width, other=1.0).to(tl.float64)
    _, mean = tl.associative_scan((1.0 - w, w * gradient), 0, _affine)
    alpha = tl.load(alpha_ptr + at, mask=real, other=0.0).to(tl.float64)
    beta = tl.load(beta_ptr + at, mask=real, other=0.0).to(tl.float64)
    _, seen = tl.associative_scan((1.0 - after, alpha * mean), 0, _affine, reverse=True)
    tl.store(alpha_slope_ptr + at, tl.where(used, mean, 0.0), mask=real)
    tl.store(slope_ptr + at, tl.where(used, beta * gradient - w * seen, 0.0), mask=real)


def _block(width: int) -> dict[str, int]:
    """The size of a row in registers, a power of 2, and how many warps share it."""
    size: int = triton.next_power_of_2(width)
    return {"BLOCK": size, "num_warps": min(max(size // 256, 1), 16)}


def wavefront_forward(p: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """α and q, as `recurrences.wavefront_forward`."""
    p, start = p.contiguous(), start.contiguous()
    steps, width = p.shape[-2:]
    alpha, q = torch.empty_like(p), torch.empty_like(p)
    with torch.cuda.device_of(p):
        _wavefront_forward[(start.numel() // width,)](p, start, alpha, q, steps, width, **_block(width))
    return alpha, q


def wavefront_backward(gradient: Tensor, p: Tensor, q: Tensor, start: bool) -> tuple[Tensor, Tensor]:
    """∂p, and ∂α(0) if `start`, as `recurrences.wavefront_backward`."""
    gradient, p, q = gradient.contiguous(), p.contiguous(), q.contiguous()
    steps, width = p.shape[-2:]
    slope, first = torch.empty_like(p), p.new_zeros((*p.shape[:-2], width))
    with torch.cuda.device_of(p):
        _wavefront_backward[(first.numel() // width,)](
            gradient, p, q, slope, first, steps, width, START=start, **_block(width)
        )
    return slope, first


def lookback_forward(alpha: Tensor, energies: Tensor) -> tuple[Tensor, Tensor]:
    """β and w, as `recurrences.lookback_forward`."""
    alpha, energies = alpha.contiguous(), energies.contiguous()
    width = alpha.shape[-1]
    beta, w = torch.empty_like(alpha), torch.empty_like(alpha)
    with torch.cuda.device_of(alpha):
        _lookback_forward[(alpha.numel() // width,)](alpha, energies, beta, w, width, **_block(width))
    return beta, w


def lookback_backward(gradient: Tensor, alpha: Tensor, beta: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """∂α and ∂u, as `recurrences.lookback_backward`."""
    gradient, alpha, beta, w = (values.contiguous() for values in (gradient, alpha, beta, w))
    width = alpha.shape[-1]
    mean, slope = torch.empty_like(alpha), torch.empty_like(alpha)
    with torch.cuda.device_of(alpha):
        _lookback_backward[(alpha.numel() // width,)](gradient, alpha, beta, w, mean, slope, width, **_block(width))
    return mean, slope
