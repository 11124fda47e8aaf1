# SPDX-License-Identifier: Apache-2.0
"""Agents: run a simultaneous translator over a test set.

An agent sees the source so far and answers what to write now; see `lagging.agents.protocol`. `run` runs one in this
process; `lagging run` and `run_job` run it in worker processes, which are supervised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lagging.agents.loading import Spec
from lagging.agents.protocol import DONE, Agent, Answer, BatchedAgent, Revise, State, Traits, Write, as_agent
from lagging.agents.runner.jobs import Job, Settings
from lagging.agents.sentence import Limits

if TYPE_CHECKING:
    from lagging.agents.runner.run import Progress, Result, run, run_job

__all__ = [
    "DONE",
    "Agent",
    "Answer",
    "BatchedAgent",
    "Job",
    "Limits",
    "Progress",
    "Result",
    "Revise",
    "Settings",
    "Spec",
    "State",
    "Traits",
    "Write",
    "as_agent",
    "run",
    "run_job",
]


def __getattr__(name: str) -> Any:
    """Import the runner when it is first used: worker processes start faster without it."""
    if name not in ("Progress", "Result", "run", "run_job"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lagging.agents.runner import run as module

    return getattr(module, name)
