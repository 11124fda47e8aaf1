# SPDX-License-Identifier: Apache-2.0
r"""When a transducer or a CTC model is expected to emit each token: exact forward–backward, with gradients.

The posterior of an alignment given the target, P(frame of token u | x, y), comes from the lattice of the model. Its
mean is an expected delay, and DAL of it a loss that moves emissions forward: `dal(transducer_delays(…), frames)`.
Everything is in log space and float32 at least.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lagging.errors import UsageError
from lagging.losses.torch.tensors import TensorLike, floats

__all__ = ["ctc_delays", "transducer_delays"]

_NEVER = -1e30
"""The logarithm of 0, finite, so that the gradient of a sum of zeros is not NaN."""


def _limits(values: TensorLike | None, size: int, rows: tuple[int, ...], like: Tensor, name: str) -> Tensor:
    """A length for each sentence, at most `size`.

    Raises:
        UsageError: the lengths do not broadcast to the sentences.
    """
    given = torch.as_tensor(size if values is None else values, device=like.device)
    try:
        return given.expand(rows).clamp(max=size)
    except RuntimeError:
        raise UsageError(f"{name} of shape {tuple(given.shape)} does not broadcast to {rows}") from None


def _mean(mass: Tensor, total: Tensor, flags: Tensor, step_ms: float | None) -> Tensor:
    """Σ_t P(t, u) (t+1), of log P (..., frames, tokens), in frames or milliseconds; 0 at padding."""
    share = torch.exp(mass - total[..., None, None])
    frame = torch.arange(1, mass.shape[-2] + 1, dtype=mass.dtype, device=mass.device)
    delays = torch.where(flags, (share * frame.unsqueeze(-1)).sum(-2), 0.0)
    return delays if step_ms is None else delays * step_ms


def transducer_delays(
    log_blank: TensorLike,
    log_emit: TensorLike,
    frames: TensorLike | None = None,
    target_lengths: TensorLike | None = None,
    *,
    step_ms: float | None = None,
) -> Tensor:
    r"""Expected emission time of each token of a transducer, given the target.

    $$ \alpha(t,u) = \alpha(t-1,u)\,b(t-1,u) + \alpha(t,u-1)\,e(t,u-1), \qquad
       \beta(t,u) = b(t,u)\,\beta(t+1,u) + e(t,u)\,\beta(t,u+1) $$

    $$ P(t \mid u) = \frac{\alpha(t,u)\,e(t,u)\,\beta(t,u+1)}{\beta(0,0)}, \qquad g(u+1) = \sum_t P(t \mid u)\,(t+1) $$

    b(t, u) is the probability of a blank in frame t after u tokens, e(t, u) that of token u+1 of the target. Both
    recurrences go along the anti-diagonals, T+U steps.

    Args:
        log_blank: log b, shape (..., T, U+1), of the joint network.
        log_emit: log e, shape (..., T, U).
        frames: how many frames are real, padding on the right; broadcasts to (...,).
        target_lengths: how many tokens are real; broadcasts to (...,).
        step_ms: the duration of a frame; without it, delays are in frames.

    Returns:
        g, shape (..., U), non-decreasing; 0 at padding. With `dal`, |x| is the number of frames, or their duration.

    Raises:
        UsageError: a shape does not fit.

    Example:
        >>> half = torch.tensor(0.5).log()
        >>> transducer_delays(half.expand(2, 2), half.expand(2, 1))  # paths of equal probability
        tensor([1.5000])

    References:
        Graves (2012), Sequence Transduction with Recurrent Neural Networks, arXiv:1211.3711.
    """
    blank, emit = floats(log_blank), floats(log_emit)
    wide = torch.promote_types(blank.dtype, emit.dtype)
    blank, emit = blank.to(wide), emit.to(wide)
    steps, nodes = blank.shape[-2:]
    if emit.shape != (*blank.shape[:-1], nodes - 1) or not steps:
        raise UsageError(
            f"log_emit must have the shape {(*blank.shape[:-1], nodes - 1)}, with at least one frame, but has "
            f"{tuple(emit.shape)}"
        )
    rows = tuple(blank.shape[:-2])
    t, u = torch.arange(steps, device=blank.device).unsqueeze(-1), torch.arange(nodes, device=blank.device)
    last_frame = _limits(frames, steps, rows, blank, "frames")[..., None, None] - 1
    length = _limits(target_lengths, nodes - 1, rows, blank, "target_lengths")[..., None, None]
    inside = (t <= last_frame) & (u <= length)
    end = (t == last_frame) & (u == length)
    across = torch.where(inside & (t < last_frame), blank, _NEVER)
    up = torch.where((inside & (u < length))[..., :-1], emit, _NEVER)
    up = torch.nn.functional.pad(up, (0, 1), value=_NEVER)

    def skew(cells: Tensor, fill: float) -> list[Tensor]:
        """Anti-diagonals n = t + u, each (..., U+1), indexed by u."""
        n = torch.arange(steps + nodes - 1, device=cells.device).unsqueeze(-1) - u
        taken = cells.gather(-2, n.clamp(0, steps - 1).expand((*rows, *n.shape)))
        return list(torch.where((n >= 0) & (n < steps), taken, fill).unbind(-2))

    blanks, emits = skew(across, _NEVER), skew(up, _NEVER)
    final = skew(torch.where(end, blank, _NEVER), _NEVER)
    state = torch.where(u == 0, blank.new_zeros(()), _NEVER).expand((*rows, nodes))
    forward = [state]
    for b, e in zip(blanks[:-1], emits[:-1], strict=True):
        moved = torch.nn.functional.pad((state + e)[..., :-1], (1, 0), value=_NEVER)
        state = torch.logaddexp(state + b, moved)
        forward.append(state)
    state = final[-1]
    backward = [state]
    for b, e, stop in zip(blanks[-2::-1], emits[-2::-1], final[-2::-1], strict=True):
        moved = torch.nn.functional.pad(state[..., 1:], (0, 1), value=_NEVER)
        state = torch.logaddexp(torch.logaddexp(b + state, e + moved), stop)
        backward.append(state)
    total = backward[-1][..., 0]
    backward.reverse()
    mass = [
        a + e + torch.nn.functional.pad(after[..., 1:], (0, 1), value=_NEVER)
        for a, e, after in zip(forward[:-1], emits[:-1], backward[1:], strict=True)
    ]
    if not mass:
        return blank.new_zeros((*rows, nodes - 1))
    n = (t + u).clamp(max=len(mass) - 1).expand((*rows, steps, nodes))
    cells = torch.stack(mass, -2).gather(-2, n)
    cells = torch.where(t + u < len(mass), cells, _NEVER)[..., :-1]
    return _mean(cells, total, (u < length.squeeze(-2))[..., :-1], step_ms)


def ctc_delays(
    log_probabilities: TensorLike,
    targets: TensorLike,
    frames: TensorLike | None = None,
    target_lengths: TensorLike | None = None,
    *,
    blank: int = 0,
    step_ms: float | None = None,
) -> Tensor:
    r"""Expected time of the first frame of each token of a CTC model, given the target.

    $$ P(t \mid u) = \frac{1}{P(y \mid x)} \sum_{\pi \in B^{-1}(y),\; \pi \text{ first emits } y_u \text{ in } t}
       \prod_\tau p(\tau, \pi_\tau), \qquad g(u) = \sum_t P(t \mid u)\,(t+1) $$

    computed by forward–backward over the states blank, y₁, blank, y₂, …, blank.

    Args:
        log_probabilities: log p, shape (..., T, V).
        targets: y, shape (..., U), without blanks; anything in the padding that is a number of a token.
        frames: how many frames are real, padding on the right; broadcasts to (...,).
        target_lengths: how many tokens are real; broadcasts to (...,).
        blank: the number of the blank.
        step_ms: the duration of a frame; without it, delays are in frames.

    Returns:
        g, shape (..., U), increasing; 0 at padding. A target for which there are too few frames has delays that mean
        nothing, as its probability is 0.

    Raises:
        UsageError: a shape does not fit.

    Example:
        >>> uniform = torch.full((3, 2), 0.5).log()
        >>> ctc_delays(uniform, [1])  # 1·· 3 paths, ·1· 2, ··1 1
        tensor([1.6667])

    References:
        Graves et al. (2006), Connectionist temporal classification, ICML.
    """
    log_p = floats(log_probabilities)
    y = torch.as_tensor(targets, device=log_p.device).long()
    rows, steps = tuple(log_p.shape[:-2]), log_p.shape[-2]
    if y.shape[:-1] != rows or not steps:
        raise UsageError(
            f"targets must have the shape (*{rows}, U), and there must be a frame, but have {tuple(y.shape)}"
        )
    size = y.shape[-1]
    last_frame = _limits(frames, steps, rows, log_p, "frames").unsqueeze(-1) - 1
    length = _limits(target_lengths, size, rows, log_p, "target_lengths").unsqueeze(-1)
    if not size:
        return log_p.new_zeros((*rows, 0))
    states = torch.full((*rows, 2 * size + 1), blank, dtype=torch.int64, device=y.device)
    states[..., 1::2] = y
    s = torch.arange(2 * size + 1, device=y.device)
    skips = torch.nn.functional.pad(states[..., 2:] != states[..., :-2], (2, 0)) & (s % 2 == 1)
    local = log_p.gather(-1, states.unsqueeze(-2).expand((*rows, steps, 2 * size + 1))).unbind(-2)
    ends = (s == 2 * length) | (s == 2 * length - 1)

    def right(values: Tensor, by: int) -> Tensor:
        return torch.nn.functional.pad(values[..., :-by], (by, 0), value=_NEVER)

    def left(values: Tensor, by: int) -> Tensor:
        return torch.nn.functional.pad(values[..., by:], (0, by), value=_NEVER)

    state = torch.where(s < 2, local[0], _NEVER)
    entered = [state]  # log of the mass that comes into a state in this frame, and was not there before
    for now in local[1:]:
        new = torch.logaddexp(right(state, 1), torch.where(skips, right(state, 2), _NEVER)) + now
        state = torch.logaddexp(state + now, new)
        entered.append(new)
    after = [torch.where(ends & (last_frame == steps - 1), 0.0, _NEVER).to(log_p.dtype)]
    for t in range(steps - 2, -1, -1):
        ahead = after[-1] + local[t + 1]
        jump = torch.where(left(skips.to(ahead.dtype), 2) > 0, left(ahead, 2), _NEVER)
        onward = torch.logaddexp(torch.logaddexp(ahead, left(ahead, 1)), jump)
        onward = torch.where(t < last_frame, onward, _NEVER)
        after.append(torch.where(ends & (last_frame == t), 0.0, onward))
    after.reverse()
    mass = torch.stack([a + b for a, b in zip(entered, after, strict=True)], -2)[..., 1::2]
    total = torch.logsumexp(entered[0] + after[0], -1)
    return _mean(mass, total, torch.arange(size, device=y.device) < length, step_ms)
