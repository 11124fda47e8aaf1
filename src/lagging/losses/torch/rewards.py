# SPDX-License-Identifier: Apache-2.0
r"""Rewards of hard delays, for REINFORCE, GRPO and other policy gradients: batched tensors, no gradients.

Delays come from `sample_alignment`, from `delays_from_actions` or from any other policy that decides by chance.
Shapes and padding are those of `lagging.losses.torch.dal`. A reward is larger for a faster system.

    latency_reward  −DAL, −LAAL, −AP or −CW of each sentence, at its end
    step_rewards    −DAL divided among the tokens by when they cause it
    gu_reward       penalties of Gu et al. (2017) for long waits and for a high AP
    latency_bleu    Latency-BLEU of Grissom et al. (2014), between 0 and 1
    advantages      rewards minus their mean over the draws of a sentence, in standard deviations
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from lagging.errors import UsageError
from lagging.losses.torch.latency import ap, dal, lags
from lagging.losses.torch.tensors import TensorLike, column, floats, real

__all__ = ["RewardMetric", "advantages", "gu_reward", "latency_bleu", "latency_reward", "step_rewards"]

RewardMetric = Literal["dal", "laal", "ap", "cw"]


def _tokens(delays: TensorLike, target_lengths: TensorLike | None) -> tuple[Tensor, Tensor]:
    """Delays, the last of a sentence repeated in its padding, and which are real."""
    g = floats(delays).detach()
    flags = real(g.shape[-1], target_lengths, None, g, "target_lengths", g.shape[:-1])
    if flags is None:
        return g, torch.ones_like(g, dtype=torch.bool)
    flags = flags.expand(g.shape)
    return torch.cummax(torch.where(flags, g, 0.0), -1).values, flags


def _waits(g: Tensor) -> Tensor:
    """How much was read before each token: g(t) − g(t−1)."""
    return g - torch.nn.functional.pad(g[..., :-1], (1, 0))


def latency_reward(
    delays: TensorLike,
    source_lengths: TensorLike,
    target_lengths: TensorLike | None = None,
    *,
    metric: RewardMetric = "dal",
    reference_lengths: TensorLike | None = None,
) -> Tensor:
    r"""The negative latency of each sentence, a reward at its end.

    $$ R = -\mathrm{DAL}, \qquad -\mathrm{LAAL}, \qquad -\mathrm{AP} \qquad \text{or} \qquad -\mathrm{CW} $$

    Args:
        delays: g(t), shape (..., T), non-decreasing.
        source_lengths: |x|, in the unit of the delays; broadcasts to (...,).
        target_lengths: how many tokens are real, padding on the right; at most T.
        metric: "dal"; "laal", AL with γ = max(|y|, |y*|)/|x|; "ap", from 0 to 1; "cw", source per run of reads.
        reference_lengths: |y*|, for "laal"; |y| if not given.

    Returns:
        Shape (...,), the values of `lagging.dal`, `laal`, `ap` and `cw` times −1; 0 for a sentence without tokens.

    Raises:
        UsageError: there is no such metric, or a shape does not fit.

    Example:
        >>> delays = torch.tensor([[4.0, 4, 4, 4, 5], [1, 2, 3, 4, 5]])
        >>> for metric in ("dal", "laal", "ap", "cw"):
        ...     latency_reward(delays, 5, metric=metric)
        tensor([-4.0000, -1.0000])
        tensor([-2.2000, -1.0000])
        tensor([-0.8400, -0.6000])
        tensor([-2.5000, -1.0000])

    References:
        Cherry & Foster (2019), arXiv:1906.00048; Papi et al. (2022), arXiv:2206.05807; Cho & Esipova (2016),
        arXiv:1606.02012; Gu et al. (2017), arXiv:1610.00388.
    """
    g, flags = _tokens(delays, target_lengths)
    match metric:
        case "dal":
            return -dal(g, source_lengths, mask=flags)
        case "ap":
            return -ap(g, source_lengths, mask=flags)
        case "cw":
            runs = ((_waits(g) > 0) & flags).sum(-1)
            return -torch.where(flags, g, 0.0).amax(-1) / runs.clamp(min=1)
        case "laal":
            x = column(source_lengths, g, "source_lengths")
            y = flags.sum(-1, keepdim=True).to(g.dtype)
            if reference_lengths is not None:
                y = torch.maximum(y, column(reference_lengths, g, "reference_lengths"))
            lag = g - torch.arange(g.shape[-1], device=g.device) * x / y.clamp(min=1)
            done = (g >= x) & flags
            until = flags & (done.cumsum(-1) - done.long() == 0)
            return -torch.where(until, lag, 0.0).sum(-1) / until.sum(-1).clamp(min=1)
    raise UsageError(f"metric must be one of {', '.join(get_args(RewardMetric))}, but got {metric!r}")


def step_rewards(delays: TensorLike, source_lengths: TensorLike, target_lengths: TensorLike | None = None) -> Tensor:
    r"""DAL as a reward of each target token: what its own wait adds to the lags from there on.

    $$ r(t) = -\frac{|y| - t + 1}{|y|} \left[ \ell'(t) - \ell'(t-1) \right], \qquad \ell'(0) = 0, \qquad
       \sum_t r(t) = -\mathrm{DAL} $$

    The running maximum ℓ' only grows, and a lag that is caused at t is paid by all tokens from t on. So an action has
    no share in what came before it, and needs no sum over later rewards to know its part of DAL.

    Args:
        delays: g(t), shape (..., T), non-decreasing.
        source_lengths: |x|, in the unit of the delays; broadcasts to (...,).
        target_lengths: how many tokens are real, padding on the right; at most T.

    Returns:
        r, shape (..., T); 0 at padding.

    Raises:
        UsageError: a shape does not fit.

    Example:
        >>> step_rewards([2.0, 2, 4, 4], 4), latency_reward([2.0, 2, 4, 4], 4)
        (tensor([-2., -0., -0., -0.]), tensor(-2.))
        >>> step_rewards([1.0, 4, 4, 4], 4)
        tensor([-1.0000, -1.5000, -0.0000, -0.0000])

    References:
        The running maximum is eq. 8 of Cherry & Foster (2019), arXiv:1906.00048.
    """
    g, flags = _tokens(delays, target_lengths)
    lag = lags(g, source_lengths, mask=flags, effective=True)
    y = flags.sum(-1, keepdim=True).clamp(min=1)
    rest = (y - torch.arange(g.shape[-1], device=g.device)) / y
    return torch.where(flags, -rest * _waits(lag), 0.0)


def gu_reward(
    delays: TensorLike,
    source_lengths: TensorLike,
    target_lengths: TensorLike | None = None,
    *,
    wait: int = 2,
    proportion: float = 0.5,
    wait_weight: float = -0.025,
    proportion_weight: float = -1.0,
) -> Tensor:
    r"""The reward for delays of Gu et al. (2017): a penalty for long waits, and for an AP above a target.

    $$ r(t) = \alpha \sum_{c=1}^{c(t)} \left[ \mathrm{sgn}(c - c^*) + 1 \right]
       \;+\; \beta\,[t = |y|]\,\max(\mathrm{AP} - d^*, 0) $$

    c(t) = g(t) − g(t−1) source tokens are read before target token t. In the paper, each of these reads has its own
    reward; here they are summed, as there is one action per target token.

    Args:
        delays: g(t), shape (..., T), non-decreasing, whole numbers of source tokens.
        source_lengths: |x|; broadcasts to (...,).
        target_lengths: how many tokens are real, padding on the right; at most T.
        wait: c*, at least 1: the number of reads in a row that costs something.
        proportion: d*, the AP above which the sentence costs something.
        wait_weight, proportion_weight: α and β, both 0 or less.

    Returns:
        r, shape (..., T); 0 at padding.

    Raises:
        UsageError: a shape does not fit, or wait is below 1.

    Example:
        >>> gu_reward([4.0, 4, 4, 4, 5], 5)
        tensor([-0.1250,  0.0000,  0.0000,  0.0000, -0.3400])

    References:
        arXiv:1610.00388, section 3.
    """
    if wait < 1:
        raise UsageError(f"wait must be at least 1, but is {wait}")
    g, flags = _tokens(delays, target_lengths)
    reads = _waits(g)
    over = 2 * (reads - wait).clamp(min=0) + (reads >= wait)
    late = (ap(g, source_lengths, mask=flags) - proportion).clamp(min=0)
    place = torch.arange(1, g.shape[-1] + 1, device=g.device)
    final = flags & (place == flags.sum(-1, keepdim=True))
    return torch.where(flags & (over > 0), wait_weight * over, 0.0) + proportion_weight * final * late.unsqueeze(-1)


def latency_bleu(
    quality: TensorLike,
    delays: TensorLike,
    source_lengths: TensorLike,
    target_lengths: TensorLike | None = None,
) -> Tensor:
    r"""Latency-BLEU (Grissom et al., 2014), divided by its largest value: early and good prefixes are rewarded.

    $$ R = \frac{1}{1 + |x|} \left[ \frac{1}{|x|} \sum_{s=1}^{|x|} Q(n(s)) \;+\; |x|\,Q(|y|) \right], \qquad
       n(s) = |\{ t : g(t) \le s \}| $$

    Args:
        quality: Q(n), the quality from 0 to 1 of the first n tokens, shape (..., T+1), n from 0: BLEU in the paper.
        delays: g(t), shape (..., T), non-decreasing, in source tokens.
        source_lengths: |x|, in source tokens; broadcasts to (...,).
        target_lengths: how many tokens are real, padding on the right; at most T.

    Returns:
        Shape (...,), from 0 to 1. The paper's value is (1 + |x|) times that.

    Raises:
        UsageError: a shape does not fit.

    Example:
        >>> quality = [0.0, 0.5, 1.0]
        >>> latency_bleu(quality, [1.0, 2], 2), latency_bleu(quality, [2.0, 2], 2)
        (tensor(0.9167), tensor(0.8333))

    References:
        Grissom II et al. (2014), Don't Until the Final Verb Wait: Reinforcement Learning for Simultaneous Machine
        Translation, EMNLP.
    """
    g, flags = _tokens(delays, target_lengths)
    q = floats(quality).detach()
    if q.shape[-1] != g.shape[-1] + 1:
        raise UsageError(f"quality must have {g.shape[-1] + 1} values, of 0 to {g.shape[-1]} tokens, not {q.shape[-1]}")
    q = q.expand((*g.shape[:-1], q.shape[-1]))
    x = column(source_lengths, g, "source_lengths")
    size = int(x.max()) if x.numel() else 0
    s = torch.arange(1, size + 1, device=g.device)
    count = (flags.unsqueeze(-2) & (g.unsqueeze(-2) <= s.unsqueeze(-1))).sum(-1)
    early = torch.where(s <= x, q.gather(-1, count), 0.0).sum(-1, keepdim=True) / x.clamp(min=1)
    whole = q.gather(-1, flags.sum(-1, keepdim=True))
    return ((early + x * whole) / (1 + x)).squeeze(-1)


def advantages(rewards: TensorLike, *, dim: int = 0, eps: float = 1e-6) -> Tensor:
    r"""Rewards compared with those of other draws of the same sentence (GRPO).

    $$ A = \frac{R - \mathrm{mean}(R)}{\mathrm{std}(R) + \epsilon} $$

    Args:
        rewards: R, with the draws of a sentence along `dim`.
        dim: the dimension of the draws.
        eps: ε; where all draws are equal, A is 0.

    Returns:
        The shape of the rewards.

    Example:
        >>> advantages([[1.0, 5], [3, 5]])
        tensor([[-1.0000,  0.0000],
                [ 1.0000,  0.0000]])

    References:
        Shao et al. (2024), DeepSeekMath, arXiv:2402.03300.
    """
    r = floats(rewards).detach()
    middle = r - r.mean(dim, keepdim=True)
    return middle / (r.std(dim, keepdim=True, correction=0) + eps)
