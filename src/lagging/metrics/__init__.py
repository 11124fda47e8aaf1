# SPDX-License-Identifier: Apache-2.0
"""Metrics: the equations (`kernels`), sentence functions (`sentence`), and records over Runs, by family."""

from lagging.metrics import (  # noqa: F401  importing registers the metrics
    atd,
    degenerate,
    error_rates,
    laal,
    longform,
    offsets,
    paper,
    quality,
    revision,
    tail,
    words,
)
from lagging.metrics.record import Metric, Param
from lagging.metrics.registry import metric, metric_among, register, registered, split_names

__all__ = ["Metric", "Param", "metric", "metric_among", "register", "registered", "split_names"]
