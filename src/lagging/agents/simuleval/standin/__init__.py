# SPDX-License-Identifier: Apache-2.0
"""What stands in for the package `simuleval` where that is not installed, so that agents for it run unchanged.

It was written from the documented interface: from what agents import and call, and from what SimulEval's runner can be
seen to do with them; there is no code of SimulEval in it. It has what agents are made of, and nothing of the rest. An
agent that imports anything else is told to install SimulEval.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from lagging.agents.simuleval.standin import agents, pipelines, segments
from lagging.errors import LaggingError

__all__ = ["PARTS", "NotInStandIn", "install"]


class NotInStandIn(LaggingError, ModuleNotFoundError):
    """An agent imports what only SimulEval itself has.

    Attributes:
        wanted: what it imports. `name`, of an ImportError, stays None: else `from … import …` would not pass this on.
    """

    def __init__(self, wanted: str) -> None:
        super().__init__(
            f"this agent imports {wanted}, which needs SimulEval itself; what stands in for it has only what agents "
            "are made of\n  fix: pip install simuleval"
        )
        self.wanted = wanted

    def __reduce__(self) -> tuple[object, ...]:
        """By what it wanted, so that it can go from one process to another."""
        return (NotInStandIn, (self.wanted,))


MARKED: list[Any] = []
"""The classes that have been marked by `entrypoint`, in that order."""


def entrypoint(system: Any) -> Any:
    """Mark the class that is meant, of those in a file."""
    MARKED.append(system)
    return system


def _named(module: ModuleType, *names: str) -> dict[str, Any]:
    return {name: getattr(module, name) for name in names}


_ACTIONS = _named(agents, "Action", "ReadAction", "WriteAction")
_STATES = _named(agents, "AgentStates")
_AGENTS = _named(
    agents, "GenericAgent", "SpeechToSpeechAgent", "SpeechToTextAgent", "TextToSpeechAgent", "TextToTextAgent"
)
_PIPELINES = _named(pipelines, *pipelines.__all__)

PARTS: dict[str, dict[str, Any]] = {
    "simuleval": {},
    "simuleval.agents": _AGENTS | _PIPELINES | _STATES | _ACTIONS,
    "simuleval.agents.actions": _ACTIONS,
    "simuleval.agents.agent": _AGENTS,
    "simuleval.agents.pipeline": _PIPELINES,
    "simuleval.agents.states": _STATES,
    "simuleval.data": {},
    "simuleval.data.segments": _named(segments, *segments.__all__),
    "simuleval.utils": {"EVALUATION_SYSTEM_LIST": MARKED, "entrypoint": entrypoint},
}
"""Module → what is in it."""


class _Missing(MetaPathFinder):
    """Comes last, and so is asked for what is nowhere.

    All that stands in is a package, so that Python takes a name that it does not find in one for a module, and asks.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name.partition(".")[0] == "simuleval":
            raise NotInStandIn(name)


_MISSING = _Missing()


def install() -> None:
    """Let `import simuleval` find what stands in for it. A module of that name that is there already is added to."""
    for name, contents in PARTS.items():
        module = sys.modules.get(name)
        if module is None:
            module = sys.modules[name] = ModuleType(name, "Stands in for a part of SimulEval.")
            module.__path__, module.__spec__ = [], ModuleSpec(name, None, is_package=True)
        vars(module).update(contents)
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)
    if _MISSING not in sys.meta_path:
        sys.meta_path.append(_MISSING)
