# SPDX-License-Identifier: Apache-2.0
"""SimulEval's classes: its own where it is installed, else what stands in for them."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from dataclasses import dataclass
from typing import Any

from lagging.agents.simuleval import standin
from lagging.errors import UsageError

__all__ = ["Provided", "provide"]


@dataclass(frozen=True)
class Provided:
    """SimulEval, as far as agents see it.

    Attributes:
        agents, segments, utils: its modules.
        version: of the installed one; None for the stand-in.
    """

    agents: Any
    segments: Any
    utils: Any
    version: str | None

    @property
    def systems(self) -> list[Any]:
        """The classes that have been marked by `entrypoint`."""
        return self.utils.EVALUATION_SYSTEM_LIST  # type: ignore[no-any-return]


def provide() -> Provided:
    """SimulEval itself if it is installed, else the stand-in, under its name.

    Raises:
        UsageError: what is installed is too old, or cannot be imported.
    """
    version = _installed()
    if version is None:
        standin.install()
    try:
        agents, segments, utils = map(
            importlib.import_module, ("simuleval.agents", "simuleval.data.segments", "simuleval.utils")
        )
    except ImportError as error:
        fix = (
            f"pip install {error.name}" if error.name and "simuleval" not in error.name else "pip install -U simuleval"
        )
        raise UsageError(f"SimulEval {version} cannot be used: {error}\n  fix: {fix}") from None
    return Provided(agents, segments, utils, version)


def _installed() -> str | None:
    """The version that is installed; "unknown" if it does not say so. A mere folder of that name is none."""
    try:
        spec = importlib.util.find_spec("simuleval")
    except ImportError:
        return None
    if spec is None or spec.origin is None:
        return None
    try:
        return importlib.metadata.version("simuleval")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
