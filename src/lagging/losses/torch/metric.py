# SPDX-License-Identifier: Apache-2.0
"""Latency in training, as a `torchmetrics.Metric`: in expectation, by chance, and as it translates."""

from __future__ import annotations

from collections.abc import Callable

from lagging.errors import optional

optional("torchmetrics", "torchmetrics")

import torch  # noqa: E402
import torchmetrics  # noqa: E402
from torch import Tensor  # noqa: E402

from lagging.losses.torch.alignment import (  # noqa: E402
    expected_alignment,
    expected_delays,
    hard_alignment,
    sample_alignment,
)
from lagging.losses.torch.latency import al, ap, dal  # noqa: E402
from lagging.losses.torch.tensors import TensorLike, floats  # noqa: E402

__all__ = ["LatencyMetric"]

_LATENCIES: dict[str, Callable[..., Tensor]] = {"DAL": dal, "AL": al, "AP": ap}
_NAMES = tuple(f"{kind} {name}" for kind in ("soft", "sampled", "hard") for name in _LATENCIES)


class LatencyMetric(torchmetrics.Metric):
    r"""Mean latency of sentences, from the probabilities of stopping; sums and a count, which processes add up.

    $$ \text{soft} = \mathrm{DAL}(E[g]) \;\le\; E[\mathrm{DAL}(g)] \approx \text{sampled}, \qquad
       \text{gap} = \text{hard} - \text{soft} $$

    "soft" is what the loss sees. "sampled" is the latency of one draw of each sentence. "hard" is that of p ≥ ½, as the
    model translates: what `lagging score` prints for these targets. With heads, all are those of the slowest.

    Args:
        heads: whether p has a dimension of heads, (..., heads, T, S).
        generator: generator of the draws; torch's default if None.

    Example:
        >>> metric = LatencyMetric()
        >>> metric.update(torch.full((2, 4, 5), 0.5), source_lengths=[5, 3], target_lengths=[4, 4])
        >>> values = metric.compute()
        >>> sorted(values)[:3], f"{values['hard DAL']:.3f}", f"{values['gap DAL']:.3f}"
        (['gap AL', 'gap AP', 'gap DAL'], '1.000', '-0.844')

    References:
        DAL: Cherry & Foster (2019), arXiv:1906.00048.
    """

    full_state_update = False
    sums: Tensor
    count: Tensor

    def __init__(self, heads: bool = False, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.heads, self.generator = heads, generator
        self.add_state("sums", torch.zeros(len(_NAMES), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("count", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")

    @torch.no_grad()
    def update(self, p: TensorLike, source_lengths: TensorLike, target_lengths: TensorLike) -> None:
        """Add a batch.

        Args:
            p: probability to stop reading at j before writing t, shape (..., T, S), without noise.
            source_lengths: how many source tokens are real, padding on the right, shape (...,), without heads.
            target_lengths: how many target tokens are real, the end token not counted, shape (...,).
        """
        p = floats(p)
        x, y = (torch.as_tensor(lengths, device=p.device) for lengths in (source_lengths, target_lengths))
        each = x[..., None] if self.heads else x
        every = {
            "soft": expected_delays(expected_alignment(p, each)),
            "sampled": sample_alignment(p, each, self.generator).delays,
            "hard": hard_alignment(p, each),
        }
        rows = p.shape[:-3] if self.heads else p.shape[:-2]
        values = []
        for delays in every.values():
            g = delays.amax(-2) if self.heads else delays
            values += [latency(g, x, y).double().sum() for latency in _LATENCIES.values()]
        self.sums += torch.stack(values).to(self.sums.device)
        self.count += (y.expand(rows) > 0).sum().to(self.count.device)

    def compute(self) -> dict[str, Tensor]:
        """The means: "soft DAL", "sampled DAL", "hard DAL" and "gap DAL", and the same of AL and AP.

        All are NaN before a sentence was added.
        """
        means = dict(zip(_NAMES, self.sums / self.count, strict=True))
        return means | {f"gap {name}": means[f"hard {name}"] - means[f"soft {name}"] for name in _LATENCIES}
