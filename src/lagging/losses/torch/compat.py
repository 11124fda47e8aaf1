# SPDX-License-Identifier: Apache-2.0
r"""The calls of `simuleval.metrics.latency` as SimulEval 1.0.2 had them, so that criteria written for it run again.

SimulEval took them out in 1.1.0; fairseq's `latency_augmented_label_smoothed_cross_entropy` and others still import
them. Either change that import,

    from lagging.losses.torch.compat import AverageLagging, AverageProportion, DifferentiableAverageLagging

or call `install()` before it, and leave the code as it is.

Names, order and defaults of the arguments, the shape of the result and the meaning of a mask are SimulEval's. Where
lags are equal, the first of them gets the gradient, as in SimulEval. Results are those of `lagging.losses.torch`:
computed in float32 at least, with padding anywhere, and independent of the values in it.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import torch
from torch import Tensor

from lagging.losses.torch.latency import al, ap, dal
from lagging.losses.torch.tensors import TensorLike, floats

__all__ = ["AverageLagging", "AverageProportion", "DifferentiableAverageLagging", "install"]


def _rows(delays: TensorLike) -> Tensor:
    """One sentence is a batch of one."""
    g = floats(delays)
    return g[None] if g.dim() == 1 else g


def _each(lengths: TensorLike, like: Tensor) -> Tensor:
    """One length per row: a number, a list, (B,) or (B, 1)."""
    return torch.as_tensor(lengths, dtype=like.dtype, device=like.device).reshape(-1)


def _real(target_padding_mask: Tensor | None) -> Tensor | None:
    return None if target_padding_mask is None else ~target_padding_mask.bool()


def DifferentiableAverageLagging(
    delays: TensorLike,
    src_lens: TensorLike,
    ref_lens: TensorLike | None = None,
    target_padding_mask: Tensor | None = None,
) -> Tensor:
    """DAL of each sentence; see `lagging.losses.torch.dal`.

    Args:
        delays: (B, T), or one sentence.
        src_lens: |x|, a number, (B,) or (B, 1).
        ref_lens: ignored; |y| is the number of tokens that are not padding.
        target_padding_mask: (B, T), True at padding.

    Returns:
        Shape (B,).

    Example:
        >>> DifferentiableAverageLagging([4, 4, 4, 4, 5], 5)
        tensor([4.])
        >>> delays = torch.tensor([[4.0, 4, 4, 4, 5], [1, 2, 3, 0, 0]])
        >>> padding = torch.arange(5) >= torch.tensor([[5], [3]])
        >>> DifferentiableAverageLagging(delays, torch.tensor([5, 6]), None, target_padding_mask=padding)
        tensor([4., 1.])
    """
    g = _rows(delays)
    return dal(g, _each(src_lens, g), mask=_real(target_padding_mask), ties="first")


def AverageProportion(
    delays: TensorLike,
    src_lens: TensorLike,
    ref_lens: TensorLike | None = None,
    target_padding_mask: Tensor | None = None,
) -> Tensor:
    """AP of each sentence; see `lagging.losses.torch.ap`, and `DifferentiableAverageLagging` for the arguments.

    Example:
        >>> AverageProportion([[1, 2, 3, 4]], [4])
        tensor([0.6250])
    """
    g = _rows(delays)
    return ap(g, _each(src_lens, g), mask=_real(target_padding_mask))


def AverageLagging(
    delays: TensorLike,
    src_lens: TensorLike,
    ref_lens: TensorLike | None = None,
    target_padding_mask: Tensor | None = None,
) -> Tensor:
    """AL of each sentence, with |y| of the reference where `ref_lens` gives it; see `lagging.losses.torch.al`.

    The other arguments are those of `DifferentiableAverageLagging`. With references, the ideal translator stops at the
    last token of the longest of them.

    Example:
        >>> AverageLagging([4, 4, 4, 4, 5], 5), AverageLagging([4, 4, 4, 4, 5], 5, 10)
        (tensor([2.2000]), tensor([3.2000]))
    """
    g = _rows(delays)
    x, real = _each(src_lens, g), _real(target_padding_mask)
    if ref_lens is None:
        return al(g, x, mask=real)
    y = _each(ref_lens, g)
    real = torch.ones_like(g, dtype=torch.bool) if real is None else real
    before = (real.cumsum(-1) - 1).clamp(max=y.max().long() - 1)
    read = (g >= x[:, None]) & real
    until = real & (read.cumsum(-1) - read.long() == 0)
    terms = torch.where(until, g - before * (x / y)[:, None], 0.0)
    return terms.sum(-1) / until.sum(-1).clamp(min=1)


def install() -> None:
    """Let `from simuleval.metrics.latency import …` find the functions of this module.

    An installed SimulEval stays as it is, except for this submodule, which it no longer has; a version that still has
    it (before 1.1.0) keeps its own. Call it before the criterion is imported:

        import lagging.losses.torch.compat
        lagging.losses.torch.compat.install()
        from fairseq.criterions import label_smoothed_cross_entropy_latency_augmented
    """
    try:
        importlib.import_module("simuleval.metrics.latency")
        return
    except ModuleNotFoundError:
        pass
    for name in ("simuleval", "simuleval.metrics"):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            _put(name, ModuleType(name, "Holds only what lagging.losses.torch.compat puts here."))
    _put("simuleval.metrics.latency", sys.modules[__name__])


def _put(name: str, module: ModuleType) -> None:
    """Make a module importable by a name."""
    if module is not sys.modules[__name__]:
        module.__path__, module.__spec__ = [], ModuleSpec(name, None, is_package=True)
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
