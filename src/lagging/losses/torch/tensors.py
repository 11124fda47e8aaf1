# SPDX-License-Identifier: Apache-2.0
"""Arguments of the losses: floats of enough precision, lengths as columns, and which positions are real."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lagging.errors import UsageError

__all__ = ["TensorLike", "alike", "column", "floats", "last", "position", "real"]

TensorLike = Tensor | npt.NDArray[np.generic] | Sequence[float] | float
"""A tensor, or anything that `torch.as_tensor` accepts."""


def floats(values: TensorLike) -> Tensor:
    """Convert to floats of at least 32 bits: in half precision, rounding errors reach whole tokens of latency."""
    tensor = torch.as_tensor(values)
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def alike(first: TensorLike, second: TensorLike) -> tuple[Tensor, Tensor]:
    """Convert two tensors to the same shape and the same type, of at least 32 bits."""
    a, b = floats(first), floats(second)
    wide, shape = torch.promote_types(a.dtype, b.dtype), np.broadcast_shapes(a.shape, b.shape)
    return a.to(wide).expand(shape), b.to(wide).expand(shape)


def column(values: TensorLike, like: Tensor, name: str) -> Tensor:
    """One number per row of `like` (..., T), as (..., 1), with its type and device.

    Raises:
        UsageError: the values do not broadcast to the rows.
    """
    tensor = torch.as_tensor(values, dtype=like.dtype, device=like.device)
    rows = like.shape[:-1]
    if tensor.shape != rows and tensor.dim():
        short = len(rows) - tensor.dim()
        fits = short >= 0 and all(a in (1, b) for a, b in zip(tensor.shape, rows[short:], strict=True))
        if not fits:
            raise UsageError(f"{name} of shape {tuple(tensor.shape)} does not broadcast to {tuple(rows)}")
    return tensor.unsqueeze(-1)


def real(size: int, lengths: TensorLike | None, mask: TensorLike | None, like: Tensor, name: str) -> Tensor | None:
    """Which of `size` positions are not padding, shape (..., size); None if neither is given: then all are.

    Raises:
        UsageError: both lengths and a mask are given, or a mask of another size.
    """
    if mask is not None:
        if lengths is not None:
            raise UsageError(f"give {name} or mask, not both: the mask says how many are real, and where")
        flags = torch.as_tensor(mask, dtype=torch.bool, device=like.device)
        if flags.shape[-1:] != (size,):
            raise UsageError(f"mask must have the shape (..., {size}), but has {tuple(flags.shape)}")
        return flags
    if lengths is None:
        return None
    limits = torch.as_tensor(lengths, device=like.device).unsqueeze(-1)
    return torch.arange(size, device=like.device) < limits


def position(flags: Tensor) -> Tensor:
    """The number of real positions up to each, itself included: 1, 2, … at the real ones."""
    return flags.cumsum(-1)


def last(flags: Tensor) -> Tensor:
    """True at the last real position."""
    order = position(flags)
    return flags & (order == order[..., -1:])
