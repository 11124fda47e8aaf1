# SPDX-License-Identifier: Apache-2.0
"""Latency to train on, in JAX: the functions of `lagging.losses.torch`, with the same values and gradients.

All functions are pure, take lengths as arrays or numbers, and work under `jit`, `vmap` and `grad`. Formulas, arguments
and references are documented once, in `lagging.losses.torch`.
"""

from lagging.errors import optional

optional("jax", "jax")

from lagging.losses.jax.alignment import (  # noqa: E402
    Sampled,
    cif_delays,
    expected_alignment,
    expected_alignment_step,
    expected_delays,
    hard_alignment,
    infinite_lookback,
    sample_alignment,
)
from lagging.losses.jax.attention import (  # noqa: E402
    Attended,
    MonotonicAttention,
    aggregate_heads,
    multipath,
    wait_k_mask,
)
from lagging.losses.jax.latency import al, ap, dal, effective_delays, lags  # noqa: E402
from lagging.losses.jax.objective import LatencyController, LatencyLoss, LossTerms, warm_up  # noqa: E402

__all__ = [
    "Attended",
    "LatencyController",
    "LatencyLoss",
    "LossTerms",
    "MonotonicAttention",
    "Sampled",
    "aggregate_heads",
    "al",
    "ap",
    "cif_delays",
    "dal",
    "effective_delays",
    "expected_alignment",
    "expected_alignment_step",
    "expected_delays",
    "hard_alignment",
    "infinite_lookback",
    "lags",
    "multipath",
    "sample_alignment",
    "wait_k_mask",
    "warm_up",
]
