# SPDX-License-Identifier: Apache-2.0
"""Arguments that name systems: `PATH` or `NAME=PATH`, globs of settings, and the files that must not be overwritten."""

from __future__ import annotations

import glob
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath

from lagging.data.trees import read_yaml
from lagging.errors import UsageError, did_you_mean
from lagging.formats import system_name
from lagging.formats.run_folder import LOG, MANIFEST
from lagging.formats.source import Source, own_path, resolve
from lagging.scoring.scores import Scores

__all__ = [
    "exists",
    "group_paths",
    "group_settings",
    "make_names_distinct",
    "name_settings",
    "name_systems",
    "parse_renames",
    "parse_system",
    "parse_systems",
    "path_names",
    "refuse_overwrite",
    "refuse_run_file",
    "rename",
]

Systems = list[tuple[str | None, str]]
SEPARATOR = re.compile(r"([_=:+, ]+)")
"""What divides a name into its parts: `step-length_0.3`."""
HYPHEN = re.compile(r"([_=:+, ]+|-)")
"""The same with hyphens, for sweeps."""
SWEEP = 3
"""From so many systems on, names are divided at hyphens too: `wait-3` and `wait-5` stay as they are."""


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
    """Names and paths of the systems; no name twice. A folder of logs in folders is the systems of all of them."""
    systems = [system for argument in arguments for system in _expand_folder(*parse_system(argument))]
    if sum(path == "-" for _, path in systems) > 1:
        raise UsageError("standard input (-) can be read only once")
    names = [name for name, _ in systems if name is not None]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise UsageError(f"two systems are called {repeated!r}")
    return systems


def _expand_folder(name: str | None, path: str) -> Systems:
    """The systems below a folder that is no log itself, in the order of people: 2 before 10."""
    if path == "-" or not Path(path).is_dir() or _sources(path):
        return [(name, path)]
    logs: list[str] = []
    for folder, below, _ in os.walk(path):
        below[:] = sorted((each for each in below if not each.startswith(".")), key=_natural_key)
        if folder != path and _sources(folder):
            logs.append(folder)
            below.clear()  # what lies beside a log is about it
    if not logs:
        return [(name, path)]
    if name is None:
        return [(None, log) for log in logs]
    return [(f"{name}/{setting}".rstrip("/"), log) for setting, log in zip(name_settings(logs), logs, strict=True)]


def _folder_families(name: str | None, path: str) -> list[tuple[str | None, list[str]]]:
    """The systems below a folder that is no log itself, each with its settings: a folder in it is a system."""
    logs = [log for _, log in _expand_folder(None, path) if log != path]
    parts = [Path(log).relative_to(path).parts for log in logs]
    if not logs:
        return []
    if name is not None or min(map(len, parts)) < 2:
        return [(name or own_path(path).name, logs)]
    families: dict[str | None, list[str]] = {}
    for log, (family, *_) in zip(logs, parts, strict=True):
        families.setdefault(family, []).append(log)
    return list(families.items())


def _natural_key(text: str) -> list[tuple[float, str]]:
    """A key by which k2 comes before k10."""
    parts = re.split(r"(\d+)", text)
    return [(float(part), "") if part.isdecimal() else (math.inf, part) for part in parts]


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


def group_settings(
    arguments: Iterable[str], renames: Mapping[str, str] | None = None
) -> list[tuple[str | None, list[tuple[str, str]]]]:
    """Systems, each with its settings and their paths; with `renames`, all of several systems have names.

    Of a folder of folders of logs, each folder is a system.
    """
    by_name: dict[str, list[str]] = {}
    systems: list[tuple[str | None, list[str]]] = []
    for argument in arguments:
        name, pattern = parse_system(argument)
        if families := _folder_families(name, pattern):
            systems += families
            by_name |= {family: paths for family, paths in families if family is not None}
            continue
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
    alone = [paths[0] for name, paths in systems if name is None]
    names = iter(name_systems([(None, path) for path in alone], {}))
    named = [next(names)[0] if name is None and renames is not None else name for name, _ in systems]
    settings = [name_settings(paths) for _, paths in systems]
    if renames:
        known = [name or PurePath(_named_path(paths[0])).name for name, (_, paths) in zip(named, systems, strict=True)]
        rename([*known, *dict.fromkeys(setting for row in settings for setting in row)], renames)
        named = [renames.get(old, name) for old, name in zip(known, named, strict=True)]
        settings = [[renames.get(setting, setting) for setting in row] for row in settings]
    rows = [list(zip(row, paths, strict=True)) for row, (_, paths) in zip(settings, systems, strict=True)]
    return list(zip(named, rows, strict=True))


def name_systems(systems: Systems, renames: Mapping[str, str]) -> Systems:
    """The systems with names: their own, or what differs in the paths of those that have none; renamed if requested."""
    unnamed = [path for name, path in systems if name is None and path != "-"]
    if len(unnamed) > 1:
        names = dict(zip(unnamed, name_settings([_named_path(path) for path in unnamed]), strict=True))
        systems = [(names.get(path) if name is None else name, path) for name, path in systems]
    if not renames:
        return systems
    known = [name or PurePath(_named_path(path)).name for name, path in systems]
    rename(known, renames)
    return [(renames.get(old, name), path) for old, (name, path) in zip(known, systems, strict=True)]


def path_names(systems: Systems) -> dict[str, str]:
    """The names of systems, by the last parts of their paths, where these tell them apart."""
    names = [own_path(path).name for _, path in systems]
    own = {name for name, _ in systems}
    pairs = [(last, name) for last, (name, _) in zip(names, systems, strict=True) if name is not None]
    return {last: name for last, name in pairs if names.count(last) == 1 and last not in own}


def _named_path(path: str) -> str:
    """The path with the name of a system instead of that of its log: without `instances.log`, without an ending."""
    if path == "-":
        return "stdin"
    sources = _sources(path)
    if not sources or sources[0].file is None:
        return str(own_path(path))
    name, folder = system_name(sources[0]), own_path(sources[0].file).parent
    return str(folder if folder.name == name else folder / name)


def parse_renames(texts: Iterable[str]) -> dict[str, str]:
    """New names by old ones, of OLD=NEW or of YAML files.

    Example:
        >>> parse_renames(["wait-3=Wait-3 (ours)"])
        {'wait-3': 'Wait-3 (ours)'}
    """
    renames: dict[str, str] = {}
    for text in texts:
        old, equals, new = text.partition("=")
        if exists(text) and Path(text).is_file():
            pairs = _read_names(text)
        elif equals and old.strip() and new.strip():
            pairs = {old.strip(): new.strip()}
        else:
            raise UsageError(
                f"cannot read --rename {text!r}: no such file, and not OLD=NEW\n"
                "  fix: write it like wait-3='Wait-3 (ours)', or name a YAML file with such pairs."
            )
        if twice := renames.keys() & pairs.keys():
            raise UsageError(f"--rename renames {min(twice)!r} twice")
        renames |= pairs
    return renames


def _read_names(path: str) -> dict[str, str]:
    """The pairs of a YAML file."""
    try:
        tree = read_yaml(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    if tree.repeated:
        line, _, key = tree.repeated[0]
        raise UsageError(f"{path}:{line}: the name {key} twice")
    kinds = (str, int, float)
    if not isinstance(tree.value, dict) or not all(isinstance(v, kinds) for pair in tree.value.items() for v in pair):
        raise UsageError(f"{path} does not have a new name for each old one\n  fix: write lines like `wait-3: Wait-3`.")
    return {str(old): str(new) for old, new in tree.value.items()}


def rename(names: Sequence[str], renames: Mapping[str, str]) -> list[str]:
    """The names, renamed.

    Raises:
        UsageError: there is no such name, or two systems would have the same.
    """
    for old in renames:
        if old not in names:
            known = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
            near = did_you_mean(old, names)
            listed = f"\n  Names: {known}." if names else ""
            raise UsageError(f"--rename: nothing is called {old!r}.{near if '?' in near or not names else ''}{listed}")
    renamed = [renames.get(name, name) for name in names]
    if len(set(renamed)) < len(set(names)):
        twice = next(name for name in renamed if renamed.count(name) > 1)
        raise UsageError(f"--rename gives two systems the name {twice!r}")
    return renamed


def name_settings(paths: Sequence[str]) -> list[str]:
    """What differs in the paths, without what all of them begin and end with; within their components too.

    Example:
        >>> name_settings(["runs/k1/instances.log", "runs/k3/instances.log"]), name_settings(["a/k1.log", "a/k3.log"])
        (['k1', 'k3'], ['k1', 'k3'])
        >>> name_settings(["runs/step-length_0.3/a.log", "runs/step-length_0.5/a.log"])
        ['0.3', '0.5']
        >>> name_settings(["k_1_beam_5", "k_3_beam_5", "k_3_beam_8"]), name_settings(["wait-3", "wait-5", "wait-7"])
        (['1_5', '3_5', '3_8'], ['3', '5', '7'])
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
    if len(suffixes) == 1 and not re.fullmatch(r"\.\d+", suffix):  # not the end of a number
        names = [name.removesuffix(suffix) for name in names]
    components = [name.split("/") for name in names]
    if len({len(row) for row in components}) > 1:
        return names
    short = [_differing(column) for column in zip(*components, strict=True)]
    joined = ["/".join(filter(None, row)) for row in zip(*short, strict=True)]
    return joined if len(set(joined)) == len(set(names)) and all(joined) else names


def _differing(names: Sequence[str]) -> list[str]:
    """The parts of names that are not the same in all of them."""
    if len(set(names)) == 1:
        return [""] * len(names)
    split = [(HYPHEN if len(names) >= SWEEP else SEPARATOR).split(name) for name in names]
    if all(len(parts) == len(split[0]) for parts in split):
        kept = [k for k in range(0, len(split[0]), 2) if len({parts[k] for parts in split}) > 1]
        return ["".join((parts[k - 1] if place else "") + parts[k] for place, k in enumerate(kept)) for parts in split]
    begin, end = 0, 0
    while all(len(p) > begin + 2 for p in split) and len({tuple(p[begin : begin + 2]) for p in split}) == 1:
        begin += 2
    while (
        all(len(p) > begin + end + 2 for p in split)
        and len({tuple(p[len(p) - end - 2 : len(p) - end]) for p in split}) == 1
    ):
        end += 2
    usual = max(map(len, split), key=[len(parts) for parts in split].count)
    alike = [place for place, parts in enumerate(split) if len(parts) == usual]
    if not begin + end and SWEEP <= len(alike) > len(names) / 2:  # beside a folder with a name of another kind
        short = dict(zip(alike, _differing([names[place] for place in alike]), strict=True))
        return [short.get(place, name) for place, name in enumerate(names)]
    return ["".join(parts[begin : len(parts) - end]) for parts in split]


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
    files = [source.file for _, path in systems for source in _sources(path)]
    read = {file.resolve(): "logs" for file in files if file is not None}
    read |= {Path(file).resolve(): "files to be read" for file in inputs if file is not None}
    written: set[Path] = set()
    for file in (Path(name).resolve() for name in outputs if name is not None and name != "-"):
        if file in read:
            raise UsageError(f"{file.name} is one of the {read[file]}; it would be written over")
        if file in written:
            raise UsageError(f"two results would be written to {file.name}")
        refuse_run_file(file)
        written.add(file)


def _sources(path: str) -> list[Source]:
    """The files of a path; none for a folder without a log, which is reported when it is to be scored."""
    try:
        return resolve(path)
    except UsageError:
        return []


def refuse_run_file(output: str | Path) -> None:
    """Refuse to write over the log or the manifest of a run."""
    file = Path(output).resolve()
    if file.name in (LOG, MANIFEST) and file.with_name(LOG).is_file() and file.with_name(MANIFEST).is_file():
        raise UsageError(
            f"{file} belongs to a run of an agent, which could not go on then\n  fix: give another file with -o."
        )
