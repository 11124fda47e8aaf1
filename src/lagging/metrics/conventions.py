# SPDX-License-Identifier: Apache-2.0
"""Conventions: the choices that tools make differently, as data, each with what it reproduces.

The signature shows the effect of every choice, not the name of the convention: scores that differ can be told apart.
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
    """The choices of one tool, or of a paper.

    Attributes:
        name: as given to `--convention`.
        params: metric → parameters that differ from the metric's own defaults; requested parameters take precedence.
        tolerance: in ms; a delay that is at most so much before the end of the source counts as the end.
        eos: whether a final `</s>` is stripped, with its delay ("strip"), or counted ("keep").
        count: how a reference is counted: "standard", "simuleval", "omnisteval" or "fbk" (see `schedule`).
        reproduces: what it reproduces, with the source of that information.
    """

    name: str
    params: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    tolerance: float = 1.0
    eos: str = "strip"
    count: str = "standard"
    reproduces: str = ""

    def __post_init__(self) -> None:
        """Refuse values that no tool uses."""
        for name, value, choices in (("eos", self.eos, EOS_CHOICES), ("count", self.count, COUNTS)):
            if value not in choices:
                raise UsageError(f"{name} must be one of {', '.join(choices)}, but got {value!r}")
        if not 0 <= self.tolerance < math.inf:
            raise UsageError(f"tolerance must be a number of ms, 0 or more, but got {self.tolerance}")

    @property
    def replaces_missing_reference(self) -> bool:
        """Whether the hypothesis length replaces that of a missing reference also where length=reference."""
        return self.count != "standard"

    def resolve(self, metric: Metric) -> Metric:
        """The metric with the parameters that the convention sets; parameters that were requested stay."""
        params = self.params.get(metric.name, {})
        return metric(**{name: value for name, value in params.items() if not metric.is_set(name)})


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

S2S_LATENCY = Convention(
    "s2s-latency",
    params={"LongYAAL": {"length": "hypothesis"}, "YAAL": {"length": "hypothesis"}},
    tolerance=0.0,
    eos="keep",
    reproduces=(
        "Speech-to-Speech-Latency (IWSLT 2026, long-form speech to speech): LongYAAL and YAAL with the hypothesis "
        "length, where OmniSTEval takes the longer of hypothesis and reference; the same segments differ by 150 to 620 "
        "ms between the two."
    ),
)

CONVENTIONS = {c.name: c for c in (PAPER, SIMULEVAL, OMNISTEVAL, FBK, S2S_LATENCY)}


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
