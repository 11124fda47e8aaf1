# SPDX-License-Identifier: Apache-2.0
"""Import SimulEval, or say what is missing and how to install it."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from dataclasses import dataclass
from typing import Any

from lagging.errors import UsageError

__all__ = ["Package", "import_simuleval"]

WITHOUT_DEPENDENCIES = ("simuleval", "textgrid")
"""Install these by `pip install --no-deps`: SimulEval pins old versions of packages that it does not use."""
IMPORTED = ("pandas", "requests", "tqdm")
"""What SimulEval 1.1.4 imports besides, and `lagging` does not depend on."""


@dataclass(frozen=True)
class Package:
    """SimulEval's modules that agents are made of.

    Attributes:
        agents, segments, utils: `simuleval.agents`, `simuleval.data.segments`, `simuleval.utils`.
    """

    agents: Any
    segments: Any
    utils: Any

    @property
    def systems(self) -> list[Any]:
        """The classes that have been marked by `entrypoint`."""
        return self.utils.EVALUATION_SYSTEM_LIST  # type: ignore[no-any-return]


def import_simuleval() -> Package:
    """Import SimulEval.

    Raises:
        UsageError: it is not installed, a package that it imports is not installed, or it is too old.
    """
    missing = [name for name in (*WITHOUT_DEPENDENCIES, *IMPORTED) if not _is_installed(name)]
    if missing:
        alone = [name for name in WITHOUT_DEPENDENCIES if name in missing]
        imported = [name for name in IMPORTED if name in missing]
        commands = [f"pip install --no-deps {' '.join(alone)}"] if alone else []
        commands += [f"pip install {' '.join(imported)}"] if imported else []
        raise UsageError(
            f"agents for SimulEval need its package; not installed: {', '.join(missing)}\n"
            f"  fix: {' && '.join(commands)}"
        )
    names = ("simuleval.agents", "simuleval.data.segments", "simuleval.utils")
    try:
        return Package(*map(importlib.import_module, names))
    except ImportError as error:
        command = "pip install --no-deps --upgrade simuleval"
        if error.name and error.name.partition(".")[0] != "simuleval":
            command = f"pip install {error.name}"
        raise UsageError(f"SimulEval {_version()} cannot be imported: {error}\n  fix: {command}") from None


def _is_installed(name: str) -> bool:
    """Whether a package can be found; a folder of that name without code does not count."""
    try:
        spec = importlib.util.find_spec(name)
    except ImportError:
        return False
    return spec is not None and spec.origin is not None


def _version() -> str:
    try:
        return importlib.metadata.version("simuleval")
    except importlib.metadata.PackageNotFoundError:
        return "of an unknown version"
