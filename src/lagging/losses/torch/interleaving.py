# SPDX-License-Identifier: Apache-2.0
r"""Reads and writes in one sequence, as language models are trained on: to delays, and from delays.

delays_from_actions   reads and writes → delays
delays_from_tokens    ids with markers of reading and writing → delays
interleave            source, target and delays → ids and a loss mask: supervised data for a wanted latency
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lagging.errors import UsageError
from lagging.losses.torch.tensors import TensorLike, boolean

__all__ = ["Delays", "Interleaved", "delays_from_actions", "delays_from_tokens", "interleave"]


class Delays(NamedTuple):
    """Delays of sentences, as `dal` takes them: `dal(*delays)`.

    Attributes:
        delays: g(t), shape (..., T), whole numbers; 0 at padding.
        source_lengths: how many source tokens were read, shape (...,).
        target_lengths: how many target tokens were written, shape (...,).
    """

    delays: Tensor
    source_lengths: Tensor
    target_lengths: Tensor


class Interleaved(NamedTuple):
    """A sentence as one sequence.

    Attributes:
        ids: shape (N,).
        loss_mask: True at what the model writes: target tokens and markers. `torch.where(loss_mask, ids, -100)` are the
            labels of a language model.
    """

    ids: Tensor
    loss_mask: Tensor


def _delays(reads: Tensor, writes: Tensor) -> Delays:
    """From where a source token is read and where a target token is written, (..., N), in order."""
    read, count = reads.cumsum(-1), writes.cumsum(-1)
    lengths = count[..., -1] if count.shape[-1] else writes.sum(-1)
    size = int(lengths.max()) if lengths.numel() else 0
    out = read.new_zeros((*writes.shape[:-1], size + 1))
    out.scatter_(-1, torch.where(writes, count, 0), torch.where(writes, read, 0))
    return Delays(out[..., 1:], reads.sum(-1), lengths)


def delays_from_actions(actions: TensorLike, *, mask: TensorLike | None = None) -> Delays:
    r"""Delays of a sequence of reads and writes.

    $$ g(t) = |\{ i < i_t : \text{action } i \text{ is a read} \}|, \qquad i_t \text{ the } t\text{-th write} $$

    Args:
        actions: 0 or False is to read one source token, 1 or True to write one target token; shape (..., N).
        mask: shape (..., N), True where an action is real; all are, if not given.

    Returns:
        Delays, source tokens read and target tokens written. `dal(*delays_from_actions(…))` is the latency, if the
        whole source was read at the end; otherwise give |x| itself.

    Raises:
        UsageError: an action is neither 0 nor 1, or the mask is of floats.

    Example:
        >>> delays_from_actions([0, 0, 0, 1, 0, 1, 1]).delays
        tensor([3, 4, 4])

    References:
        Gu et al. (2017), arXiv:1610.00388.
    """
    writes = torch.as_tensor(actions)
    flags = torch.ones_like(writes, dtype=torch.bool) if mask is None else boolean(mask, writes, "mask")
    flags = flags.expand(writes.shape)
    if not ((writes == 0) | (writes == 1) | ~flags).all():
        raise UsageError("actions must be 0 (read) or 1 (write)")
    return _delays((writes == 0) & flags, (writes == 1) & flags)


def delays_from_tokens(ids: TensorLike, *, read: int, write: int, ignore: Sequence[int] = ()) -> Delays:
    """Delays of sequences in which markers say whether source or target tokens follow.

    After `read`, and at the beginning, tokens are source tokens; after `write`, they are target tokens. A marker that
    ends a part is the one that begins the other: what ends reading is `write`, what ends writing is `read`.

    Args:
        ids: shape (..., N): `read` x₁ x₂ x₃ `write` y₁ `read` x₄ `write` y₂ y₃.
        read, write: the numbers of the markers.
        ignore: numbers that are neither source nor target: padding, the end token, which has no latency, and others.

    Returns:
        Delays, source tokens read and target tokens written.

    Raises:
        UsageError: the markers are the same.

    Example:
        >>> delays_from_tokens([0, 11, 12, 13, 1, 21, 0, 14, 1, 22, 23, 2], read=0, write=1, ignore=[2]).delays
        tensor([3, 4, 4])

    References:
        Such sequences: Wang et al. (2024), Conversational SimulMT, arXiv:2402.10552; EAST (Fu et al., 2025),
        arXiv:2504.09570.
    """
    tokens = torch.as_tensor(ids)
    if read == write:
        raise UsageError(f"read and write must be different markers, but both are {read}")
    marks = (tokens == read) | (tokens == write)
    place = torch.arange(tokens.shape[-1], device=tokens.device)
    latest = torch.where(marks, place, -1)
    latest = latest.cummax(-1).values if tokens.shape[-1] else latest
    writing = (latest >= 0) & (tokens.gather(-1, latest.clamp(min=0)) == write)
    words = ~marks
    for number in ignore:
        words = words & (tokens != number)
    return _delays(words & ~writing, words & writing)


def interleave(
    source: Sequence[int], target: Sequence[int], delays: TensorLike, *, read: int, write: int, every: bool = False
) -> Interleaved:
    """A sentence as one sequence that reads and writes by given delays, with the mask of its loss.

    With the delays of a schedule of `lagging.policies`, it is a sentence of a wanted latency for a language model to
    learn from. Several sentences: `torch.nn.utils.rnn.pad_sequence`.

    Args:
        source, target: numbers of the tokens.
        delays: g(t) of each target token, whole numbers, non-decreasing, at most |x|.
        read, write: numbers of the markers, as for `delays_from_tokens`.
        every: put `read` before every source token, so that the model decides at each of them whether to read on.
            Without it, there is one `read` before each run of source tokens.

    Returns:
        The sequence and its loss mask. Source tokens that are read after the last target token are left out.

    Raises:
        UsageError: the delays do not fit the lengths, decrease, or are no whole numbers.

    Example:
        >>> from lagging.policies import wait_k
        >>> delays = wait_k(2).delays(source_length=3, target_length=3)
        >>> made = interleave([11, 12, 13], [21, 22, 23], delays, read=0, write=1)
        >>> made.ids.tolist()
        [0, 11, 12, 1, 21, 0, 13, 1, 22, 23]
        >>> made.loss_mask.int().tolist()
        [1, 0, 0, 1, 1, 1, 0, 1, 1, 1]
        >>> delays_from_tokens(made.ids, read=0, write=1).delays
        tensor([2, 3, 3])

    References:
        Wang et al. (2024), arXiv:2402.10552; Fu et al. (2025), arXiv:2504.09570.
    """
    g = delays.tolist() if isinstance(delays, Tensor) else np.asarray(delays, np.float64).tolist()
    faults = []
    if len(g) != len(target):
        faults.append(f"{len(g)} delays for {len(target)} target tokens")
    for t, (before, delay) in enumerate(zip([0.0, *g], g, strict=False), 1):
        if not before <= delay <= len(source) or delay != int(delay):
            faults.append(f"delay {t} is {delay:g}, after {before:g}, of {len(source)} source tokens")
    if faults:
        raise UsageError("delays must be whole numbers that do not decrease, up to |x|: " + "; ".join(faults))
    ids: list[int] = []
    own: list[bool] = []
    done, writing = 0, False
    for delay, token in zip(g, target, strict=True):
        for n, word in enumerate(source[done : int(delay)]):
            if every or n == 0:
                ids.append(read)
                own.append(True)
            ids.append(word)
            own.append(False)
            writing = False
        done = int(delay)
        if not writing:
            ids.append(write)
            own.append(True)
            writing = True
        ids.append(token)
        own.append(True)
    return Interleaved(torch.tensor(ids, dtype=torch.int64), torch.tensor(own, dtype=torch.bool))
