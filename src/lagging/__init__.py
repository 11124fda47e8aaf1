# SPDX-License-Identifier: Apache-2.0
"""lagging: how late is a simultaneous translation, and was it worth the wait?

The public names are imported when they are first used, so that importing lagging costs next to nothing.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from lagging.version import __version__

if TYPE_CHECKING:
    from lagging import agents, longform, meter, metrics, policies, stats
    from lagging.comparison import Comparison, compare
    from lagging.comparison.published import PublishedScore, read_scores
    from lagging.data.ragged import Ragged
    from lagging.data.run import Run
    from lagging.data.strip import strip
    from lagging.errors import DataError, LaggingError, MetricError, MissingExtraError, UsageError
    from lagging.formats import read, scan, validate, write
    from lagging.formats.merge import merge
    from lagging.meter import Meter
    from lagging.metrics import Metric, metric, register
    from lagging.metrics.atd import atd
    from lagging.metrics.conventions import CONVENTIONS, Convention, convention
    from lagging.metrics.sentence import (
        al,
        al_y,
        ap,
        cw,
        dal,
        effective_delays,
        laal,
        lags,
        over_budget,
        waits,
        yaal,
    )
    from lagging.render.report import Report, report
    from lagging.scoring.audit import Finding, audit
    from lagging.scoring.column_files import read_column
    from lagging.scoring.columns import Column
    from lagging.scoring.log import score
    from lagging.scoring.scores import Score, Scores
    from lagging.scoring.signature import Signature

_HOMES = {
    "lagging.comparison": ("Comparison", "compare"),
    "lagging.metrics.conventions": ("CONVENTIONS", "Convention", "convention"),
    "lagging.errors": ("DataError", "LaggingError", "MetricError", "MissingExtraError", "UsageError"),
    "lagging.data.strip": ("strip",),
    "lagging.formats": ("read", "scan", "validate", "write"),
    "lagging.formats.merge": ("merge",),
    "lagging.formats.spoken_words": ("with_word_times",),
    "lagging.meter": ("Meter",),
    "lagging.metrics": ("Metric", "metric", "register"),
    "lagging.metrics.atd": ("atd",),
    "lagging.metrics.sentence": (
        "al",
        "al_y",
        "ap",
        "cw",
        "dal",
        "effective_delays",
        "laal",
        "lags",
        "over_budget",
        "waits",
        "yaal",
    ),
    "lagging.comparison.published": ("PublishedScore", "read_scores"),
    "lagging.data.ragged": ("Ragged",),
    "lagging.render.report": ("Report", "report"),
    "lagging.data.run": ("Run",),
    "lagging.scoring.scores": ("Score", "Scores"),
    "lagging.scoring.audit": ("Finding", "audit"),
    "lagging.scoring.column_files": ("read_column",),
    "lagging.scoring.columns": ("Column",),
    "lagging.scoring.log": ("score",),
    "lagging.scoring.signature": ("Signature",),
}
_PACKAGES = {
    "agents": "lagging.agents",
    "longform": "lagging.longform",
    "meter": "lagging.meter",
    "metrics": "lagging.metrics",
    "plots": "lagging.render.plots",
    "policies": "lagging.policies",
    "stats": "lagging.stats",
}
PUBLIC_MODULES = (
    "lagging",
    "lagging.agents",
    "lagging.agents.criteria",
    "lagging.agents.hf",
    "lagging.agents.simuleval",
    "lagging.agents.simulstream",
    "lagging.scoring.columns",
    "lagging.comparison.pairs",
    "lagging.curves",
    "lagging.curves.ranking",
    "lagging.curves.slopes",
    "lagging.longform",
    "lagging.losses.torch",
    "lagging.losses.torch.compat",
    "lagging.losses.torch.interleaving",
    "lagging.losses.torch.lightning",
    "lagging.losses.torch.metric",
    "lagging.losses.torch.rewards",
    "lagging.losses.torch.transducer",
    "lagging.losses.jax",
    "lagging.losses.testing",
    "lagging.meter",
    "lagging.meter.opentelemetry",
    "lagging.meter.prometheus",
    "lagging.metrics",
    "lagging.metrics.clocks",
    "lagging.policies",
    "lagging.render.comparison",
    "lagging.render.plots",
    "lagging.render.report",
    "lagging.render.timeline",
    "lagging.render.timeline_text",
    "lagging.scoring.log",
    "lagging.scoring.plan",
    "lagging.scoring.accumulator",
    "lagging.scoring.intervals",
    "lagging.scoring.arrow",
    "lagging.scoring.spark",
    "lagging.stats",
)
"""The modules whose names can be relied on; docs/python.md lists the same."""
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "CONVENTIONS",
    "Column",
    "Comparison",
    "Convention",
    "DataError",
    "Finding",
    "LaggingError",
    "Meter",
    "Metric",
    "MetricError",
    "MissingExtraError",
    "PublishedScore",
    "Ragged",
    "Report",
    "Run",
    "Score",
    "Scores",
    "Signature",
    "UsageError",
    "__version__",
    "agents",
    "al",
    "al_y",
    "ap",
    "atd",
    "audit",
    "compare",
    "convention",
    "cw",
    "dal",
    "effective_delays",
    "laal",
    "lags",
    "longform",
    "merge",
    "meter",
    "metric",
    "metrics",
    "over_budget",
    "plots",
    "policies",
    "read",
    "read_column",
    "read_scores",
    "register",
    "report",
    "scan",
    "score",
    "stats",
    "strip",
    "validate",
    "waits",
    "with_word_times",
    "write",
    "yaal",
]

logging.getLogger("lagging").addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(_PACKAGES[name])
    if name not in _HOME:
        raise AttributeError(f"module 'lagging' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
