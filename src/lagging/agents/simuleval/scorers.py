# SPDX-License-Identifier: Apache-2.0
"""Metrics of `lagging` in SimulEval: importing this module adds LAGGING_AL, LAGGING_DAL, … to its latency metrics.

The instances of SimulEval are read as the lines of its log, and scored by the convention of the paper. So the numbers
are those of `lagging score` on the log, and differ from SimulEval's own where the conventions differ.
"""

from __future__ import annotations

import importlib
import json
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lagging.agents.simuleval.package import import_simuleval
from lagging.data.run import Run
from lagging.errors import MetricError
from lagging.formats import read
from lagging.metrics import Metric, metric
from lagging.metrics.conventions import PAPER
from lagging.metrics.schedule import Schedules

__all__ = ["SCORERS", "register_scorers"]

METRICS = ("AP", "AL", "LAAL", "DAL", "YAAL", "ATD", "LagPercentile", "MaxLag")
"""The metrics that SimulEval gets."""


def _record(instance: Any) -> dict[str, Any]:
    """The line of an instance in SimulEval's log, whether it has just been made or was read."""
    record: dict[str, Any] = instance.info if hasattr(instance, "info") else instance.summarize()
    return record


def _read(instances: Mapping[int, Any]) -> Run:
    """The instances as a Run."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "instances.log"
        log.write_text("".join(json.dumps(_record(instance)) + "\n" for instance in instances.values()), "utf-8")
        return read(log)


def _make_scorer(base: Any, m: Metric, name: str) -> Any:
    """A latency scorer of SimulEval that computes a metric."""

    def call(self: Any, instances: Mapping[int, Any]) -> float:
        run = _read(instances)
        if self.computation_aware and run.unit == "token":
            raise MetricError(f"{name}: the source is text, and has no times\n  fix: leave out --computation-aware.")
        requested = PAPER.resolve(m(clock="elapsed") if self.computation_aware else m)
        rows = requested.statistics(Schedules(run, PAPER).for_metric(requested))
        for instance, value in zip(instances.values(), requested.segments(rows).tolist(), strict=True):
            instance.metrics[name] = value if math.isfinite(value) else None
        return requested.corpus(rows)

    return type(f"{name}Scorer", (base,), {"__doc__": m.summary, "__call__": call})


def register_scorers() -> dict[str, Any]:
    """Add the metrics to SimulEval's registry; again, if that was emptied.

    Returns:
        The scorers, by the name that `--latency-metrics` takes.

    Raises:
        UsageError: SimulEval is not installed.
    """
    import_simuleval()
    theirs = importlib.import_module("simuleval.evaluator.scorers.latency_scorer")
    scorers = {}
    for each in METRICS:
        name = f"LAGGING_{each}"
        scorers[name] = theirs.register_latency_scorer(name)(_make_scorer(theirs.LatencyScorer, metric(each), name))
    return scorers


SCORERS = register_scorers()
"""The scorers, by name."""
