# SPDX-License-Identifier: Apache-2.0
"""Arguments of the losses: floats of enough precision, lengths as columns, and which positions are real."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lagging.errors import UsageError

__all__ = ["TensorLike", "alike", "boolean", "column", "fitting", "floats", "last", "position", "real"]

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
    fitting(tensor.shape, like.shape[:-1], name)
    return tensor.unsqueeze(-1)


def fitting(shape: Sequence[int], rows: Sequence[int], name: str) -> None:
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
        raise UsageError(f"{name} of shape {tuple(shape)} does not broadcast to {tuple(rows)}{many}")


def real(
    size: int,
    lengths: TensorLike | None,
    mask: TensorLike | None,
    like: Tensor,
    name: str,
    rows: Sequence[int] | None = None,
) -> Tensor | None:
    """Which of `size` positions are not padding, shape (..., size); None if neither is given: then all are.

    Args:
        size: the number of positions.
        lengths, mask: how many positions are real, or which.
        like: a tensor on the device of the result.
        name: how the caller names the lengths.
        rows: the shape that the leading dimensions must broadcast to; not checked if not given.

    Raises:
        UsageError: both lengths and a mask are given, a shape does not fit, or the mask is of floats.
    """
    if mask is not None:
        if lengths is not None:
            raise UsageError(f"give {name} or mask, not both: the mask says how many are real, and where")
        flags = boolean(mask, like, "mask")
        if flags.shape[-1:] != (size,):
            raise UsageError(f"mask must have the shape (..., {size}), but has {tuple(flags.shape)}")
        if rows is not None:
            fitting(flags.shape[:-1], rows, "mask without its last dimension,")
        return flags
    if lengths is None:
        return None
    limits = torch.as_tensor(lengths, device=like.device)
    if rows is not None:
        fitting(limits.shape, rows, name)
    return torch.arange(size, device=like.device) < limits.unsqueeze(-1)


def boolean(mask: TensorLike, like: Tensor, name: str) -> Tensor:
    """A mask as booleans.

    Raises:
        UsageError: it is of floats, as masks are that are added to energies: there, 0 is real and −∞ is padding.
    """
    flags = torch.as_tensor(mask, device=like.device)
    if flags.is_floating_point():
        raise UsageError(
            f"{name} must be of booleans, True where real, but is of floats: give `{name} == 0`, if 0 is real"
        )
    return flags.bool()


def position(flags: Tensor) -> Tensor:
    """The number of real positions up to each, itself included: 1, 2, … at the real ones."""
    return flags.cumsum(-1)


def last(flags: Tensor) -> Tensor:
    """True at the last real position."""
    order = position(flags)
    return flags & (order == order[..., -1:])
