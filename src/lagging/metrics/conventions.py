# SPDX-License-Identifier: Apache-2.0
"""Conventions: the choices that two tools make differently, as data, each with what it reproduces.

Every choice shows in the signature by its effect, so a score can be told apart whatever the convention was called.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lagging.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from lagging.metrics.record import Metric

__all__ = ["CONVENTIONS", "PAPER", "Convention", "convention"]

EOS_CHOICES = ("strip", "keep")
COUNTS = ("standard", "simuleval", "omnisteval", "fbk")


@dataclass(frozen=True)
class Convention:
    """How one tool, or paper, counts.

    Attributes:
        name: as given to `--convention`.
        params: metric → parameters, where they are not the metric's own defaults; what is asked for goes first.
        tolerance: how many ms before the end of the source a delay may be and still count as having read all of it.
        eos: whether a final `</s>` is stripped, with its delay ("strip"), or counted ("keep").
        count: how a reference is counted: "standard", "simuleval", "omnisteval" or "fbk" (see `schedule`).
        reproduces: what it reproduces, and where that was read.
    """

    name: str
    params: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    tolerance: float = 1.0
    eos: str = "strip"
    count: str = "standard"
    reproduces: str = ""

    def __post_init__(self) -> None:
        """Refuse what no tool does."""
        for what, value, known in (("eos", self.eos, EOS_CHOICES), ("count", self.count, COUNTS)):
            if value not in known:
                raise UsageError(f"{what} must be one of {', '.join(known)}, but got {value!r}")
        if not 0 <= self.tolerance < math.inf:
            raise UsageError(f"a tolerance is a number of ms, 0 or more, but got {self.tolerance}")

    @property
    def replaces_missing_reference(self) -> bool:
        """Whether the hypothesis length stands in for a missing reference also where length=reference."""
        return self.count != "standard"

    def resolve(self, metric: Metric) -> Metric:
        """The metric with the parameters that the convention sets, where they were not asked for otherwise."""
        chosen = self.params.get(metric.name, {})
        return metric(**{name: value for name, value in chosen.items() if not metric.is_set(name)})


PAPER = Convention(
    "paper",
    reproduces="Cherry & Foster 2019: |y| is what the system wrote, in every metric, so that AL ≤ DAL.",
)

SIMULEVAL = Convention(
    "simuleval",
    params={
        "AL": {"length": "reference"},
        "AP": {"length": "reference"},
        "NumChunks": {"of": "tokens"},
        "RTF": {"of": "delays"},
    },
    tolerance=0.0,
    eos="keep",
    count="simuleval",
    reproduces=(
        "SimulEval 1.1.4, simuleval/evaluator/scorers/latency_scorer.py: AL and AP with the reference length, DAL "
        "with the hypothesis length, exact ≥, references split at single spaces; NumChunks counts target tokens, "
        "and RTF is the last delay ÷ |x|."
    ),
)

OMNISTEVAL = Convention(
    "omnisteval",
    params={"AL": {"length": "reference"}, "AP": {"length": "reference"}},
    tolerance=0.0,
    eos="keep",
    count="omnisteval",
    reproduces=(
        "OmniSTEval 0.1.10, short and long form: references are stripped, then split at single spaces; their "
        "characters are counted with the spaces between them, and without any in long form."
    ),
)

FBK = Convention(
    "fbk",
    tolerance=0.0,
    eos="keep",
    count="fbk",
    reproduces=(
        "FBK-fairseq's StreamLAAL 2.0 (stream_laal.py), official at IWSLT 2025: references are stripped, then split at "
        "single spaces; their characters are counted with the spaces between them."
    ),
)

CONVENTIONS = {c.name: c for c in (PAPER, SIMULEVAL, OMNISTEVAL, FBK)}


def convention(name: str | Convention) -> Convention:
    """The convention of that name.

    Example:
        >>> convention("simuleval").params["AL"]
        {'length': 'reference'}
    """
    if isinstance(name, Convention):
        return name
    if name not in CONVENTIONS:
        raise UsageError(f"no convention is called {name!r}.{did_you_mean(name, CONVENTIONS)}")
    return CONVENTIONS[name]
