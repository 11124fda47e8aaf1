# SPDX-License-Identifier: Apache-2.0
"""From what is written on the command line to an agent: a file, a class in it, and its options."""

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

MAKERS = {
    "file": "lagging.agents.loading:from_file",
    "simuleval": "lagging.agents.simuleval:from_file",
    "remote": "lagging.agents.remote:from_address",
    "policy": "lagging.agents.schedules:from_name",
}
"""What makes an agent of each kind, from its name and options."""

CONNECTION = ("reconnect", "timeout", "token_file")
"""Options of an agent that is served elsewhere that say how it is reached: with others it is the same agent."""

SIMULEVAL = "simuleval"


@dataclass(frozen=True)
class Spec:
    """How an agent is made, in whatever process.

    Attributes:
        kind: a key of MAKERS.
        name: a file, perhaps with `:Class`; an address; a policy.
        options: what its constructor is given, as text.
    """

    kind: str
    name: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def file(self) -> Path | None:
        """The file that it is in."""
        return Path(split(self.name)[0]) if self.kind in ("file", "simuleval") else None

    def make(self) -> Any:
        """The agent."""
        module, _, function = MAKERS[self.kind].partition(":")
        return getattr(importlib.import_module(module), function)(self.name, dict(self.options))

    def fingerprint(self) -> dict[str, Any]:
        """What can be told of it without making it: what must be the same when a run goes on."""
        if self.file is None:
            said = "path" if self.kind == "remote" else "name"  # it may be served elsewhere by now
            kept = {name: text for name, text in self.options if self.kind != "remote" or name not in CONNECTION}
            return {"kind": self.kind, said: self.name, "options": kept}
        path, wanted = split(self.name)
        made: dict[str, Any] = {"kind": self.kind, "path": path, "name": wanted, "options": dict(self.options)}
        return made | {"sha256": digest(path)}

    def still(self, modules: Mapping[str, str]) -> dict[str, str | None]:
        """What has become of modules that were imported from beside its file; None if one is no longer there."""
        if self.file is None:
            return dict(modules)  # who is served elsewhere says so when it is asked
        folder = self.file.parent
        return {name: digest(folder / name) if (folder / name).is_file() else None for name in modules}


def digest(path: str | Path) -> str:
    """SHA-256 of a file."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None


def split(name: str) -> tuple[str, str | None]:
    """`file.py:Class` in its two parts; a Windows drive is no class."""
    head, colon, tail = name.rpartition(":")
    return (head, tail) if colon and tail.isidentifier() and len(head) > 1 else (name, None)


def load(path: str) -> ModuleType:
    """Import a file; what lies beside it can be imported by it."""
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


def beside(path: Path) -> dict[str, str]:
    """The other modules that were imported from where an agent's file is, with their hashes."""
    folder, found = path.resolve().parent, {}
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
            found[inside.relative_to(folder).as_posix()] = digest(inside)
    return dict(sorted(found.items()))


def from_file(name: str, options: Mapping[str, str]) -> Any:
    """The agent in a Python file.

    Args:
        name: `file.py`, if there is one agent in it, or `file.py:Name`, where Name is a class, a function of the state,
            or an agent.
        options: arguments of the class, as text: `3` is a number, `true` is true, anything that is not JSON is a text.
    """
    path, wanted = split(name)
    try:
        module = load(path)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != SIMULEVAL:
            raise
        raise UsageError(f"{path} imports {error.name}: {error}\n  fix: give --simuleval.") from None
    found = candidates(module)
    if wanted is not None:
        if not hasattr(module, wanted):
            raise UsageError(f"{path} has no {wanted!r}.{did_you_mean(wanted, found)}")
        chosen = getattr(module, wanted)
    elif len(found) == 1:
        chosen = next(iter(found.values()))
    else:
        names = ", ".join(found)
        which = (
            f"has several agents: {names}; say which: {path}:{next(iter(found))}"
            if found
            else ("has no agent: a class with `policy(self, state)`, or a function `policy(state)`")
        )
        raise UsageError(f"{path} {which}")
    return build(chosen, options)


def candidates(module: ModuleType) -> dict[str, Any]:
    """What may be meant by the agent of a module: its own classes with a policy, else a function of that name."""
    own = {name: value for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__}
    classes = {
        name: value
        for name, value in own.items()
        if isinstance(value, type) and (hasattr(value, "policy") or hasattr(value, "policies")) and name[0] != "_"
    }
    instances = {name: value for name, value in vars(module).items() if name == "agent" and not isinstance(value, type)}
    return instances or classes or {name: value for name, value in own.items() if name == "policy" and callable(value)}


def build(chosen: Any, options: Mapping[str, str]) -> Any:
    """An agent from a class and its options; a function or an agent takes none."""
    if not isinstance(chosen, type):
        if options:
            raise UsageError(f"only a class takes options, and this agent is none: {', '.join(options)}")
        return as_agent(chosen)
    if any(base.__module__.partition(".")[0] == SIMULEVAL for base in chosen.__mro__):
        raise UsageError(f"{chosen.__name__} is an agent of SimulEval's\n  fix: give --simuleval.")
    known = inspect.signature(chosen).parameters
    free = any(p.kind is p.VAR_KEYWORD for p in known.values())
    for name in options:
        if name not in known and not free:
            raise UsageError(f"{chosen.__name__} has no option {name!r}.{did_you_mean(name, known)}")
    needed = [
        n for n, p in known.items() if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    if missing := [name for name in needed if name not in options]:
        raise UsageError(f"{chosen.__name__} needs an option: -a {missing[0]}=…")
    return as_agent(chosen(**{name: value_of(text) for name, text in options.items()}))


def value_of(text: str) -> Any:
    """A number, true, false, null, or a list or object, if it is written as JSON has it; else the text."""
    try:
        return read_json(text)
    except ValueError:
        return text
