# SPDX-License-Identifier: Apache-2.0
"""Latency that a model can be trained on: the same functions in `lagging.losses.torch` and `lagging.losses.jax`.

    latency     DAL, AL, AP, lags and effective delays of a padded batch, with gradients
    alignment   expected alignments of monotonic attention, exactly; delays from them, and from CIF weights
    attention   MILk as a module, aggregation of heads, wait-k as a mask
    objective   likelihood + λ·latency, and a controller that finds λ
    testing     what anybody's implementation of these has to satisfy

Importing this package loads neither framework.
"""
