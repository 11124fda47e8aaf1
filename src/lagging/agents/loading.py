# SPDX-License-Identifier: Apache-2.0
"""Load agents: from a file, a class in it and its options, as the command line gives them."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from lagging.agents.protocol import as_agent
from lagging.data.trees import read_json
from lagging.errors import UsageError, did_you_mean

__all__ = ["Spec", "digest", "from_file"]

FACTORIES = {
    "file": "lagging.agents.loading:from_file",
    "simuleval": "lagging.agents.simuleval:from_file",
    "simulstream": "lagging.agents.simulstream:from_name",
    "remote": "lagging.agents.remote:from_address",
    "policy": "lagging.agents.schedules:from_name",
    "hf": "lagging.agents.hf:from_name",
}
"""Kind of agent → the function that makes one from its name and options."""

CONNECTION_OPTIONS = ("reconnect", "timeout", "token_file")
"""Options of a remote agent that concern the connection; they do not identify the agent."""

SIMULEVAL = "simuleval"

MODEL_FILES = (".json", ".safetensors", ".bin", ".spm", ".model", ".txt", ".jinja")
"""Endings of files of a model in a folder that decide its output."""


@dataclass(frozen=True)
class Spec:
    """A description from which any process can make the agent.

    Attributes:
        kind: a key of FACTORIES.
        name: a file, with `:Class` or without; an address; a policy; or a folder or name of a model.
        options: arguments of the constructor, as text.
    """

    kind: str
    name: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def file(self) -> Path | None:
        """The file of the agent; None if it has none."""
        path = split_name(self.name)[0]
        is_file = self.kind in ("file", "simuleval") or (self.kind == "simulstream" and path.endswith(".py"))
        return Path(path) if is_file else None

    def make(self) -> Any:
        """Make the agent."""
        module, _, function = FACTORIES[self.kind].partition(":")
        return getattr(importlib.import_module(module), function)(self.name, dict(self.options))

    def fingerprint(self) -> dict[str, Any]:
        """What identifies the agent without making it, and must be the same when a run is resumed."""
        if self.file is None:
            moves = self.kind == "remote" or (self.kind == "hf" and Path(self.name).is_dir())
            key = "path" if moves else "name"  # an address or folder may change between sessions
            identifying = {
                name: text for name, text in self.options if self.kind != "remote" or name not in CONNECTION_OPTIONS
            }
            return {"kind": self.kind, key: self.name, "options": identifying}
        path, class_name = split_name(self.name)
        fingerprint: dict[str, Any] = {
            "kind": self.kind,
            "path": path,
            "name": class_name,
            "options": dict(self.options),
        }
        return fingerprint | {"sha256": digest(path)}

    def current_modules(self, modules: Mapping[str, str]) -> dict[str, str | None]:
        """Hashes of modules in the folder of the agent's file, as they are now; None for a missing one."""
        if self.kind == "hf" and (hashes := folder_hashes(self.name)):
            others: dict[str, str | None] = {
                name: text for name, text in modules.items() if not name.endswith(MODEL_FILES)
            }
            return others | hashes
        if self.file is None:
            return dict(modules)  # a remote agent reports its identity when it is made
        folder = self.file.parent
        return {name: digest(folder / name) if (folder / name).is_file() else None for name in modules}


def digest(path: str | Path) -> str:
    """SHA-256 of a file."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None


def folder_hashes(folder: str) -> dict[str, str]:
    """Hashes of the files of a model in a folder; none if there is no such folder."""
    files = sorted(Path(folder).iterdir()) if Path(folder).is_dir() else []
    return {file.name: digest(file) for file in files if file.suffix in MODEL_FILES and file.is_file()}


def split_name(name: str) -> tuple[str, str | None]:
    """Split `file.py:Class`; a Windows drive is not a class."""
    head, colon, tail = name.rpartition(":")
    return (head, tail) if colon and tail.isidentifier() and len(head) > 1 else (name, None)


def load_module(path: str) -> ModuleType:
    """Import a file; it can import modules from its folder."""
    file = Path(path).resolve()
    if not file.is_file():
        raise UsageError(f"there is no file {path}")
    sys.path.insert(0, str(file.parent))
    name = file.stem if file.stem.isidentifier() and file.stem not in sys.modules else f"agent_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def sibling_modules(path: Path) -> dict[str, str]:
    """Hashes of the other modules that were imported from the folder of an agent's file."""
    folder, hashes = path.resolve().parent, {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or name.partition(".")[0] == "lagging" or "site-packages" in file:
            continue
        inside = Path(file).resolve()
        if (
            inside != path.resolve()
            and folder in inside.parents
            and Path(sys.prefix).resolve() not in inside.parents
            and inside.is_file()
        ):
            hashes[inside.relative_to(folder).as_posix()] = digest(inside)
    return dict(sorted(hashes.items()))


def from_file(name: str, options: Mapping[str, str]) -> Any:
    """The agent in a Python file.

    Args:
        name: `file.py`, if there is one agent in it, or `file.py:Name`, where Name is a class, a function of the state,
            or an agent.
        options: arguments of the class, as text. JSON values are converted (`3`, `true`); other text stays text.
    """
    path, class_name = split_name(name)
    try:
        module = load_module(path)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != SIMULEVAL:
            raise
        raise UsageError(f"{path} imports {error.name}: {error}\n  fix: give --simuleval.") from None
    agents = candidates(module)
    if class_name is not None:
        if not hasattr(module, class_name):
            raise UsageError(f"{path} has no {class_name!r}.{did_you_mean(class_name, agents)}")
        chosen = getattr(module, class_name)
    elif len(agents) == 1:
        chosen = next(iter(agents.values()))
    else:
        names = ", ".join(agents)
        fault = (
            f"has several agents: {names}; say which: {path}:{next(iter(agents))}"
            if agents
            else ("has no agent: a class with `policy(self, state)`, or a function `policy(state)`")
        )
        raise UsageError(f"{path} {fault}")
    return build(chosen, options)


def candidates(module: ModuleType) -> dict[str, Any]:
    """The agents in a module: its classes with a policy, else a function named `policy`."""
    own = {name: value for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__}
    classes = {
        name: value
        for name, value in own.items()
        if isinstance(value, type) and (hasattr(value, "policy") or hasattr(value, "policies")) and name[0] != "_"
    }
    instances = {name: value for name, value in vars(module).items() if name == "agent" and not isinstance(value, type)}
    return instances or classes or {name: value for name, value in own.items() if name == "policy" and callable(value)}


def build(chosen: Any, options: Mapping[str, str]) -> Any:
    """An agent from a class and its options; a function or an instance takes no options."""
    if not isinstance(chosen, type):
        if options:
            raise UsageError(f"only a class takes options, and this agent is not a class: {', '.join(options)}")
        return as_agent(chosen)
    if any(base.__module__.partition(".")[0] == SIMULEVAL for base in chosen.__mro__):
        raise UsageError(f"{chosen.__name__} is an agent for SimulEval\n  fix: give --simuleval.")
    parameters = inspect.signature(chosen).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for name in options:
        if name not in parameters and not takes_any:
            raise UsageError(f"{chosen.__name__} has no option {name!r}.{did_you_mean(name, parameters)}")
    needed = [
        n for n, p in parameters.items() if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    if missing := [name for name in needed if name not in options]:
        raise UsageError(f"{chosen.__name__} needs an option: -a {missing[0]}=…")
    return as_agent(chosen(**{name: parse_value(text) for name, text in options.items()}))


def parse_value(text: str) -> Any:
    """A JSON value, if the text is one; else the text."""
    try:
        return read_json(text)
    except ValueError:
        return text
