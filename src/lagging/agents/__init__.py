# SPDX-License-Identifier: Apache-2.0
"""Agents: run a simultaneous translator over a test set, and lose nothing.

An agent is shown the source so far and answers what to write now; see `lagging.agents.protocol`. `run` takes one over a
test set here and now; `lagging run` does it in processes of its own, that can be watched and ended.
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
    """What runs an agent is imported when it is asked for: workers, which are the agent, start faster without."""
    if name not in ("Progress", "Result", "run", "run_job"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lagging.agents.runner import run as module

    return getattr(module, name)
