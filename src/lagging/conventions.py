# SPDX-License-Identifier: Apache-2.0
"""Conventions: the choices that two tools make differently, as data, each with what it reproduces.

Every choice shows in the signature by its effect, so a score can be told apart whatever the convention was called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lagging.errors import UsageError, did_you_mean

__all__ = ["CONVENTIONS", "PAPER", "Convention", "convention"]


@dataclass(frozen=True)
class Convention:
    """How one tool, or paper, counts.

    Attributes:
        name: as given to `--convention`.
        length: metric → whose length is |y|, where that is not the metric's own default.
        tolerance: how many ms before the end of the source a delay may be and still count as having read all of it.
        eos: whether a final `</s>` is stripped, with its delay ("strip"), or counted ("keep").
        count: how a reference is counted: "standard", "simuleval" or "omnisteval" (see `lagging.schedule`).
        stand_in: whether the hypothesis length stands in for a missing reference also where length=reference.
        reproduces: what it reproduces, and where that was read.
    """

    name: str
    length: Mapping[str, str] = field(default_factory=dict)
    tolerance: float = 1.0
    eos: str = "strip"
    count: str = "standard"
    stand_in: bool = False
    reproduces: str = ""


PAPER = Convention(
    "paper",
    reproduces="Cherry & Foster 2019: |y| is what the system wrote, in every metric, so that AL ≤ DAL.",
)

SIMULEVAL = Convention(
    "simuleval",
    length={"AL": "reference", "AP": "reference"},
    tolerance=0.0,
    eos="keep",
    count="simuleval",
    stand_in=True,
    reproduces=(
        "SimulEval 1.1.4, simuleval/evaluator/scorers/latency_scorer.py: AL and AP with the reference length, DAL "
        "with the hypothesis length, exact ≥, references split at single spaces."
    ),
)

OMNISTEVAL = Convention(
    "omnisteval",
    length={"AL": "reference", "AP": "reference"},
    tolerance=0.0,
    eos="keep",
    count="omnisteval",
    stand_in=True,
    reproduces="OmniSTEval 0.1.10, shortform: as SimulEval, and characters of a reference counted with their spaces.",
)

CONVENTIONS = {c.name: c for c in (PAPER, SIMULEVAL, OMNISTEVAL)}


def convention(name: str | Convention) -> Convention:
    """The convention of that name.

    Example:
        >>> convention("simuleval").length["AL"]
        'reference'
    """
    if isinstance(name, Convention):
        return name
    if name not in CONVENTIONS:
        raise UsageError(f"no convention is called {name!r}.{did_you_mean(name, CONVENTIONS)}")
    return CONVENTIONS[name]
