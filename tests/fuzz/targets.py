# SPDX-License-Identifier: Apache-2.0
"""Everything that is tried, by name: how an input is made, and what must hold of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from fuzz.cases import Case
from fuzz.commands import check_command, check_like, make_command, make_like
from fuzz.formats import LOGS
from fuzz.groups import check_groups, make_groups
from fuzz.live import check_growing, check_meter, make_growing, make_meter
from fuzz.logs import check_log, make_log
from fuzz.names import check_grid, check_paths, make_grid, make_paths
from fuzz.spoken import check_spoken, make_spoken
from fuzz.tables import check_column, check_scores, check_segmentation, make_column, make_scores, make_segmentation
from fuzz.words import check_gate, check_metric, check_signature, make_gate, make_metric, make_signature


@dataclass(frozen=True)
class Target:
    """Something to try.

    Attributes:
        make: an input from random numbers.
        check: raises an error unless all is well; the files of the case go into the working directory.
        share: how many inputs it gets where another gets one.
    """

    make: Callable[[Random], Case]
    check: Callable[[Case], None]
    share: int = 1


TARGETS = {
    **{f"log-{name}": Target(partial(make_log, format=name), check_log) for name in LOGS},
    "segmentation": Target(make_segmentation, check_segmentation, share=8),
    "scores": Target(make_scores, check_scores, share=8),
    "column": Target(make_column, check_column, share=8),
    "word-times": Target(make_spoken, check_spoken, share=2),
    "signature": Target(make_signature, check_signature, share=8),
    "gate": Target(make_gate, check_gate, share=8),
    "metric": Target(make_metric, check_metric, share=8),
    "grid": Target(make_grid, check_grid, share=2),
    "paths": Target(make_paths, check_paths, share=2),
    "growing": Target(make_growing, check_growing),
    "meter": Target(make_meter, check_meter),
    "command": Target(make_command, check_command, share=4),
    "like": Target(make_like, check_like),
    "groups": Target(make_groups, check_groups),
}
"""What is tried if nothing else is asked for."""


def _spark(random: Random) -> Case:
    case = make_groups(random, tables=1.0)
    return replace(case, target="spark", options={**case.options, "spark": True})


SPARK = {"spark": Target(_spark, check_groups)}
"""What needs Java, and takes long."""


def make(target: str, seed: int) -> Case:
    """The input of a target that has this number: the same at any time."""
    return {**TARGETS, **SPARK}[target].make(Random(f"{target}:{seed}"))
