# SPDX-License-Identifier: Apache-2.0
"""Latency that a model can be trained on: the same functions in `lagging.losses.torch` and `lagging.losses.jax`.

    latency       DAL, AL, AP, lags and effective delays of a padded batch, with gradients
    alignment     expected alignments of monotonic attention, exactly; delays from them, and from CIF weights
    attention     MILk as a module, aggregation of heads, wait-k as a mask
    objective     likelihood + λ·latency, and a controller that adjusts λ
    rewards       rewards of hard delays, for policy gradients (torch)
    interleaving  reads and writes in one sequence, as language models are trained on (torch)
    transducer    expected emission times of transducers and CTC (torch)
    metric        latency in training as a torchmetrics.Metric (torch)
    lightning     a callback of Lightning that adjusts λ, and logs it and the latencies (torch)
    testing       properties that every implementation of these must have

Importing this package loads neither framework.
"""
