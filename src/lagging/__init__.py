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
    from lagging import agents, longform, metrics, plots, policies, stats
    from lagging.comparing import Comparison, compare
    from lagging.conventions import CONVENTIONS, Convention, convention
    from lagging.edits import strip
    from lagging.errors import DataError, LaggingError, MetricError, MissingExtraError, UsageError
    from lagging.formats import read, scan, validate, write
    from lagging.merging import merge
    from lagging.metrics import Metric, metric, register
    from lagging.metrics.atd import atd
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
    from lagging.published import PublishedScore, read_scores
    from lagging.ragged import Ragged
    from lagging.reporting import Report, report
    from lagging.run import Run
    from lagging.scoring import Score, Scores, score
    from lagging.signature import Signature

_HOMES = {
    "lagging.comparing": ("Comparison", "compare"),
    "lagging.conventions": ("CONVENTIONS", "Convention", "convention"),
    "lagging.errors": ("DataError", "LaggingError", "MetricError", "MissingExtraError", "UsageError"),
    "lagging.edits": ("strip",),
    "lagging.formats": ("read", "scan", "validate", "write"),
    "lagging.merging": ("merge",),
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
    "lagging.published": ("PublishedScore", "read_scores"),
    "lagging.ragged": ("Ragged",),
    "lagging.reporting": ("Report", "report"),
    "lagging.run": ("Run",),
    "lagging.scoring": ("Score", "Scores", "score"),
    "lagging.signature": ("Signature",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "CONVENTIONS",
    "Comparison",
    "Convention",
    "DataError",
    "LaggingError",
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
    "compare",
    "convention",
    "cw",
    "dal",
    "effective_delays",
    "laal",
    "lags",
    "longform",
    "merge",
    "metric",
    "metrics",
    "over_budget",
    "plots",
    "policies",
    "read",
    "read_scores",
    "register",
    "report",
    "scan",
    "score",
    "stats",
    "strip",
    "validate",
    "waits",
    "write",
    "yaal",
]

logging.getLogger("lagging").addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name in ("agents", "longform", "metrics", "plots", "policies", "stats"):
        return importlib.import_module(f"lagging.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'lagging' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
