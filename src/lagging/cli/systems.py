# SPDX-License-Identifier: Apache-2.0
"""Arguments that name systems: `PATH` or `NAME=PATH`, globs of settings, and the files that must not be overwritten."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

from lagging.errors import UsageError
from lagging.formats.run_folder import LOG, MANIFEST
from lagging.formats.source import resolve
from lagging.scoring.scores import Scores

__all__ = [
    "exists",
    "group_paths",
    "group_settings",
    "make_names_distinct",
    "name_settings",
    "parse_system",
    "parse_systems",
    "refuse_overwrite",
    "refuse_run_file",
]


def parse_system(argument: str) -> tuple[str | None, str]:
    """A PATH or name=PATH: an existing path is a path; else split at the first `=` whose right side exists."""
    if exists(argument):
        return None, argument
    for index, letter in enumerate(argument):
        if letter == "=" and index and exists(argument[index + 1 :]):
            return argument[:index], argument[index + 1 :]
    path = argument.partition("=")[2]
    raise UsageError(f"no such file or directory: {path or argument}" + (f" (of {argument})" if path else ""))


def exists(path: str) -> bool:
    """Whether a path is a file, a directory, a glob of some, or standard input."""
    try:
        return path == "-" or Path(path).exists() or (bool(path) and bool(resolve(path)))
    except (UsageError, OSError):
        return False


def parse_systems(arguments: Iterable[str]) -> list[tuple[str | None, str]]:
    """Names and paths of the systems; no name twice."""
    systems = [parse_system(argument) for argument in arguments]
    if sum(path == "-" for _, path in systems) > 1:
        raise UsageError("standard input (-) can be read only once")
    names = [name for name, _ in systems if name is not None]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise UsageError(f"two systems are called {repeated!r}")
    return systems


def group_paths(systems: Sequence[tuple[str | None, str]]) -> list[tuple[str | None, list[str]]]:
    """Names and paths of systems; paths without a name are one log, whose systems a column tells apart."""
    groups: list[tuple[str | None, list[str]]] = [(name, [path]) for name, path in systems if name is not None]
    unnamed = [path for name, path in systems if name is None]
    if unnamed:
        files = [source.file for path in unnamed for source in resolve(path) if source.file is not None]
        folders = {file.resolve().parent.name for file in files}
        name = folders.pop() if len(files) > 1 and len(folders) == 1 else ""
        groups.append((name or None, unnamed))
    return groups


def group_settings(arguments: Iterable[str]) -> list[tuple[str | None, list[tuple[str, str]]]]:
    """Systems, each with its settings and their paths; one without a name is called by its log."""
    by_name: dict[str, list[str]] = {}
    systems: list[tuple[str | None, list[str]]] = []
    for argument in arguments:
        name, pattern = parse_system(argument)
        literal = pattern == "-" or Path(pattern).exists()
        paths = [pattern] if literal else sorted(glob.glob(pattern, recursive=True))
        if name is None and len(paths) > 1:
            name = Path(os.path.commonpath(paths)).name
        if name in by_name:
            by_name[name].extend(paths)
            continue
        systems.append((name, paths))
        if name is not None:
            by_name[name] = paths
    if sum(path == "-" for _, paths in systems for path in paths) > 1:
        raise UsageError("standard input (-) can be read only once")
    return [(name, list(zip(name_settings(paths), paths, strict=True))) for name, paths in systems]


def name_settings(paths: Sequence[str]) -> list[str]:
    """What differs in the paths, without what all of them begin and end with.

    Example:
        >>> name_settings(["runs/k1/instances.log", "runs/k3/instances.log"]), name_settings(["a/k1.log", "a/k3.log"])
        (['k1', 'k3'], ['k1', 'k3'])
        >>> name_settings(["a/instances.log"])
        ['']
    """
    parts = [list(PurePath(path).parts) for path in paths]
    if len(parts) == 1:
        return [""]
    while all(len(p) > 1 for p in parts) and len({p[0] for p in parts}) == 1:
        parts = [p[1:] for p in parts]
    while all(len(p) > 1 for p in parts) and len({p[-1] for p in parts}) == 1:
        parts = [p[:-1] for p in parts]
    names = ["/".join(p) for p in parts]
    suffixes = {PurePath(name).suffix for name in names}
    suffix = next(iter(suffixes))
    if len(suffixes) > 1 or re.fullmatch(r"\.\d+", suffix):  # the end of a number
        return names
    return [name.removesuffix(suffix) for name in names]


def make_names_distinct(systems: Sequence[Scores], paths: Sequence[str]) -> None:
    """Rename systems that share a name: by their paths, and by a number where these are the same too."""
    names = [scores.system for scores in systems]
    for scores, path in zip(systems, paths, strict=True):
        if names.count(scores.system) > 1:
            scores.system = path
    for index, scores in enumerate(systems):
        before = sum(other.system == scores.system for other in systems[:index])
        scores.system += f" ({before + 1})" if before else ""


def refuse_overwrite(
    systems: Iterable[tuple[str | None, str]], *outputs: str | None, inputs: Iterable[str | Path | None] = ()
) -> None:
    """Refuse to write over a file that is read, or two results into one file."""
    read = {source.file.resolve(): "logs" for _, path in systems for source in resolve(path) if source.file is not None}
    read |= {Path(file).resolve(): "files to be read" for file in inputs if file is not None}
    written: set[Path] = set()
    for file in (Path(name).resolve() for name in outputs if name is not None and name != "-"):
        if file in read:
            raise UsageError(f"{file.name} is one of the {read[file]}; it would be written over")
        if file in written:
            raise UsageError(f"two results would be written to {file.name}")
        refuse_run_file(file)
        written.add(file)


def refuse_run_file(output: str | Path) -> None:
    """Refuse to write over the log or the manifest of a run."""
    file = Path(output).resolve()
    if file.name in (LOG, MANIFEST) and file.with_name(LOG).is_file() and file.with_name(MANIFEST).is_file():
        raise UsageError(
            f"{file} belongs to a run of an agent, which could not go on then\n  fix: give another file with -o."
        )
