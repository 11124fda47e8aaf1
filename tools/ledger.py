# SPDX-License-Identifier: Apache-2.0
"""A ledger of what the command line prints: the proof that a change of the code changes no number.

    python tools/ledger.py write before.jsonl            run every command of tools/ledger_commands.py
    python tools/ledger.py write after.jsonl --jobs 2
    python tools/ledger.py compare before.jsonl after.jsonl

`make ledger BASE=main` does all three: once with the code of a commit, once with the code that is here, on the same
logs. `--no-data` leaves out the logs of LAGGING_TEST_DATA, `--quick` runs the small part that the tests run.

A ledger is a file of JSON lines: a header, then a line per command with its name, command lines, exit codes, and hashes
of what it printed and wrote. Beside it, FILE.values.gz keeps the values themselves, so that `compare` can show which
differ. Only the public command line is used, so that a ledger survives any rearrangement of modules.

What counts as a value: in JSON, TSV and the other formats that programs read, everything but sentences; in what people
read (tables, timelines, lists of faults), the words with a digit in them. The rest, and standard error, is words: they
are compared with `--messages` alone. Versions and folders are replaced.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import functools
import gzip
import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ledger_commands import ROOT, Command, commands, make_logs, spark

LIMIT = 120.0
"""Seconds after which a command is ended, and recorded as such."""
SENTENCES = {"description", "detail", "fix", "formula", "help", "how", "key", "message", "messages", "note", "notes"}
SENTENCES |= {"noun", "origin", "reason", "summary", "title", "what", "why"}
"""Keys of JSON whose strings are for people: of these, only words with a digit are values."""
FIELDS: dict[str, str] = {}
"""Keys of JSON that have got another name: the old one, and the new one, under which both are compared."""
SHOWN = 20
"""How many commands that differ are listed."""


# ---- one command -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where commands run: the logs of other tools, if any, those that were made, and the version to take out."""

    data: Path | None
    version: str
    made: Path | None = None

    def folders(self) -> dict[str, Path]:
        """The folders with logs, by the names they have in commands."""
        folders = {"examples": ROOT / "examples", "docs": ROOT / "docs", "test-data": self.data, "made": self.made}
        return {name: folder for name, folder in folders.items() if folder is not None}

    def normalise(self, text: str, folder: Path) -> str:
        """Text without what differs from one machine, folder or version to the next."""
        names = {folder.resolve(): ".", folder: "."} | {path: name for name, path in self.folders().items()}
        for path, name in names.items():
            text = text.replace(str(path), name)
        return re.sub(rf"(?<![\d.]){re.escape(self.version)}(?![\w.])", "VERSION", text) if self.version else text


class Overtime(BaseException):
    """A command has taken longer than `LIMIT`; no handler of errors takes it for one."""


def _end(number: int, frame: object) -> None:
    raise Overtime


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """End what takes too long, where the system has alarms."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, _end)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def call(words: Iterable[str], folder: Path) -> tuple[int | str, bytes, str]:
    """The exit code, standard output and standard error of one command line, run in this process."""
    from lagging.cli import main

    words = list(words)
    if "spark" in words:
        return _call_outside(words, folder)
    given = (folder / words.pop(0)[1:]).read_bytes() if words[0].startswith("<") else b""
    code: int | str = "returned"
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        io.TextIOWrapper(io.BufferedReader(io.BytesIO(given)), encoding="utf-8") as stdin,
        os.fdopen(os.dup(out.fileno()), "w", encoding="utf-8") as stdout,
        os.fdopen(os.dup(err.fileno()), "w", encoding="utf-8") as stderr,
    ):
        before, sys.stdin = sys.stdin, stdin
        try:
            with (
                contextlib.redirect_stdout(stdout),
                contextlib.redirect_stderr(stderr),
                contextlib.chdir(folder),
                warnings.catch_warnings(),
                _limited(),
            ):
                main(words)
        except SystemExit as end:
            code = end.code if isinstance(end.code, (int, str)) else 0
        except Overtime:
            code = f"took longer than {LIMIT:g} s"
        except Exception as error:
            code = f"raised {type(error).__name__}"
            traceback.print_exc(file=stderr)
        finally:
            sys.stdin = before
        stdout.flush()
        stderr.flush()
        out.seek(0)
        err.seek(0)
        return code, out.read(), err.read().decode("utf-8", "replace")


def _call_outside(words: list[str], folder: Path) -> tuple[int | str, bytes, str]:
    """The same in a process of its own: Spark's Java keeps the working folder that it was started in."""
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    command = [sys.executable, "-m", "lagging", *words]
    try:
        ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"took longer than {LIMIT:g} s", b"", ""
    return ran.returncode, ran.stdout, ran.stderr.decode("utf-8", "replace")


def run(command: Command, place: Place) -> dict[str, Any]:
    """What a command leaves: exit codes, values, words."""
    old = command.in_old_spelling()
    for spelling in (command, old) if old else (command,):
        result = _run(spelling, place)
        if 2 not in result["exit"]:
            break
    return result


def _run(command: Command, place: Place) -> dict[str, Any]:
    exits: list[int | str] = []
    values: dict[str, Any] = {}
    words: dict[str, str] = {}
    errors: list[str] = []
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="lagging-ledger-") as parent:
        folder = Path(parent, "here")
        folder.mkdir()
        for name, target in place.folders().items():
            (folder / name).symlink_to(target, target_is_directory=True)
        for number, step in enumerate(command.steps):
            code, out, err = call(step, folder)
            exits.append(code)
            errors.append(place.normalise(err, folder))
            text = place.normalise(out.decode("utf-8", "replace"), folder)
            _add(f"stdout {number}", *understand(text, _format(step)), values, words)
            if code:
                break
        for file in sorted(_files(folder)):
            name = file.relative_to(folder).as_posix()
            if file.suffix in (".parquet", ".arrow"):
                kind, text = "json", _table(file)
            elif file.suffix == ".html":
                kind, text = "json", _page(file)
            else:
                kind, text = file.suffix[1:], file.read_bytes().decode("utf-8", "replace")
            _add(name, *understand(place.normalise(text, folder), kind), values, words)
    return {
        "name": command.name,
        "steps": [list(step) for step in command.steps],
        "exit": exits,
        "values": values,
        "words": words,
        "stderr": errors,
        "seconds": round(time.perf_counter() - start, 3),
    }


def _add(name: str, value: Any, text: str, values: dict[str, Any], words: dict[str, str]) -> None:
    if value not in (None, "", []):
        values[name] = value
    if text:
        words[name] = text


def _files(folder: Path) -> Iterator[Path]:
    """What a command wrote, but for locks and what measures time."""
    for path in folder.iterdir():
        if path.is_symlink():
            continue
        for file in path.rglob("*") if path.is_dir() else (path,):
            if file.is_file() and file.suffix not in (".lock", ".pyc") and file.name != "run.json":
                yield file


def _format(step: tuple[str, ...]) -> str:
    """What a command line prints, by its `-f` or `--to`."""
    for option in ("-f", "--to"):
        if option in step:
            return step[step.index(option) + 1]
    return "text"


def _table(file: Path) -> str:
    """The columns of a Parquet or Arrow file, without what its writer says of itself."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if file.suffix == ".parquet":
        table = pq.read_table(file)
    else:
        with pa.memory_map(str(file)) as source:
            table = pa.ipc.open_file(source).read_all()
    types = {field.name: str(field.type) for field in table.schema}
    return json.dumps({"types": types, "columns": table.to_pydict()}, default=str)


def _page(file: Path) -> str:
    """The data in a page."""
    data = re.search(r'<script id="data"[^>]*>(.*?)</script>', file.read_text("utf-8"), re.DOTALL)
    return zlib.decompress(base64.b64decode(data[1])).decode("utf-8") if data else "no data"


# ---- what is a value -------------------------------------------------------------------------------------------------


def understand(text: str, kind: str) -> tuple[Any, str]:
    """The values in a text, and the text if it has words that are no values."""
    if not text.strip():
        return None, ""
    if kind in ("tsv", "csv", "rw", "slt", "txt", "sltev", "fairseq", "out"):
        return text.splitlines(), ""
    try:
        return _values(json.loads(text)), text
    except ValueError:
        pass
    try:
        return [_values(json.loads(line)) for line in text.splitlines()], text
    except ValueError:
        return _digits(text), text


def _values(value: Any, key: str = "") -> Any:
    """JSON without its sentences, with the keys of today."""
    if isinstance(value, dict):
        return {FIELDS.get(name, name): _values(child, name) for name, child in value.items()}
    if isinstance(value, list):
        return [_values(child, key) for child in value]
    return " ".join(_digits(value)) if isinstance(value, str) and key in SENTENCES else value


def _digits(text: str) -> list[str]:
    """The words with a digit in them, without the punctuation of the sentence around them."""
    return [word.strip(".,;:()[]") for word in text.split() if any(c.isdigit() for c in word)]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in a tree, with its path."""
    if isinstance(value, dict):
        for key in sorted(value):
            yield from leaves(value[key], f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for place, child in enumerate(value):
            yield from leaves(child, f"{path}[{place}]")
    else:
        yield path, value


def count_numbers(value: Any) -> int:
    """How many numbers there are: of JSON those that are numbers, of lines the words with a digit."""
    if isinstance(value, dict):
        return sum(map(count_numbers, value.values()))
    if isinstance(value, list):
        return sum(map(count_numbers, value))
    if isinstance(value, str):
        return len(re.findall(r"(?<![\w.:|])-?\d+(?:\.\d+)?(?:e-?\d+)?(?![\w|])", value))
    return int(isinstance(value, (int, float)) and not isinstance(value, bool))


def digest(value: Any) -> str:
    """A hash that does not depend on the order of keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# ---- write -----------------------------------------------------------------------------------------------------------


def _prepare(source: str) -> None:
    """Let a process import `lagging` from a folder, and be as wide as a pipe is."""
    if sys.path[0] != source:
        sys.path.insert(0, source)
    os.environ["PYTHONPATH"] = source
    os.environ.pop("COLUMNS", None)
    import lagging.cli

    imported = Path(lagging.cli.__file__).resolve()
    if not imported.is_relative_to(Path(source).resolve()):
        raise ImportError(f"lagging was imported from {imported}, not from {source}")


def select(*, data: bool, quick: bool = False, only: str = "", with_spark: bool = False) -> tuple[list[Command], str]:
    """The commands to run, and the version of the code under test, which is asked for its metrics and their clocks."""
    with tempfile.TemporaryDirectory() as folder:
        version = call(["--version"], Path(folder))[1].decode().split()[-1]
        listed = call(["metrics"], Path(folder))[1].decode("utf-8")
        names = [line.split()[0] for line in listed.splitlines() if line[:1].strip()]
        cards = {name: call(["metrics", name], Path(folder))[1].decode("utf-8") for name in names}
    chosen = list(commands(names, lambda name: "clock=ideal" in cards[name], data=data, arrow=has_arrow()))
    chosen += spark() if with_spark else ()
    chosen = [c for c in chosen if (c.quick or not quick) and re.search(only, c.name)]
    if again := [name for name, n in Counter(c.name for c in chosen).items() if n > 1]:
        raise ValueError(f"several commands are called {', '.join(again[:5])}")
    return chosen, version


def has_arrow() -> bool:
    """Whether Parquet can be read and written here."""
    return importlib.util.find_spec("pyarrow") is not None


def write(file: Path, source: Path, data: Path | None, *, jobs: int = 2, **selection: Any) -> dict[str, Any]:
    """Run the commands with the package in a folder, and write what they leave to a ledger; its header."""
    _prepare(str(source))
    chosen, version = select(data=data is not None, **selection)
    start, seconds = time.perf_counter(), 0.0
    entries, exits, numbers = [], Counter[str](), 0
    with (
        gzip.open(values_of(file), "wt", encoding="utf-8", compresslevel=3) as kept,
        tempfile.TemporaryDirectory(prefix="lagging-made-") as made,
    ):
        if any("made/" in word for command in chosen for step in command.steps for word in step):
            make_logs(Path(made), has_arrow())
        place = Place(data, version, Path(made))
        for number, result in enumerate(_results(chosen, place, str(source), jobs), start=1):
            if number % 2000 == 0:
                print(f"{number} of {len(chosen)} commands", file=sys.stderr)
            values, words = result.pop("values"), result.pop("words")
            count = sum(map(count_numbers, values.values()))
            hashes = {name: digest(value) for name, value in values.items()}
            errors = result.pop("stderr")
            keep = {"name": result["name"], "values": values, "words": words, "stderr": errors}
            kept.write(json.dumps(keep, ensure_ascii=False) + "\n")
            seconds += result.pop("seconds")
            texts = {"words": digest(words), "stderr": digest(errors)}
            entries.append({**result, "numbers": count, "hashes": hashes, **texts})
            numbers += count
            exits[str(max(result["exit"], key=lambda code: (isinstance(code, str), code)))] += 1
    header = {
        "ledger": 1,
        "version": version,
        "partial": bool(selection.get("quick") or selection.get("only") or data is None),
        "commands": len(entries),
        "numbers": numbers,
        "exit": dict(sorted(exits.items())),
    }
    with file.open("w", encoding="utf-8") as out:
        for line in (header, *entries):
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
    took = time.perf_counter() - start
    print(f"{file}: {_size(header)}; exit codes {header['exit']}; {took:.0f} s, {seconds:.0f} s of commands")
    return header


def _results(chosen: list[Command], place: Place, source: str, jobs: int) -> Iterator[dict[str, Any]]:
    """In the order of the commands, whoever is done first."""
    if jobs == 1:
        yield from (run(command, place) for command in chosen)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_prepare, initargs=(source,)) as pool:
        yield from pool.map(functools.partial(run, place=place), chosen, chunksize=4)


def values_of(file: Path) -> Path:
    """Where the values of a ledger are."""
    return file.with_name(f"{file.name}.values.gz")


def _size(header: dict[str, Any]) -> str:
    return f"{header['commands']} commands, {header['numbers']} numbers"


# ---- compare ---------------------------------------------------------------------------------------------------------


def read(file: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The header of a ledger, and its entries by name."""
    with file.open(encoding="utf-8") as lines:
        header, *entries = map(json.loads, lines)
    return header, {entry["name"]: entry for entry in entries}


def read_values(file: Path, names: set[str]) -> dict[str, dict[str, Any]]:
    """The values of some commands of a ledger."""
    with gzip.open(values_of(file), "rt", encoding="utf-8") as lines:
        kept = (json.loads(line) for line in lines)
        return {entry["name"]: entry for entry in kept if entry["name"] in names}


def compare(old_file: Path, new_file: Path, *, messages: bool = False, shown: int = SHOWN) -> int:
    """Print whether two ledgers are equal, or where they differ; 1 if they do."""
    (old_header, old), (new_header, new) = read(old_file), read(new_file)
    both = [name for name in old if name in new]
    differing = [name for name in both if any(old[name][part] != new[name][part] for part in ("exit", "hashes"))]
    reworded = [name for name in both if any(old[name][part] != new[name][part] for part in ("words", "stderr"))]
    missing = [] if new_header["partial"] else [name for name in old if name not in new]
    listed = differing + [name for name in reworded if messages and name not in differing]
    values = [read_values(file, set(listed[:shown])) for file in (old_file, new_file)] if listed else []
    for name in listed[:shown]:
        print(f"\n{name}\n  lagging {' && lagging '.join(' '.join(step) for step in new[name]['steps'])}")
        if old[name]["exit"] != new[name]["exit"]:
            print(f"  exit code: {old[name]['exit']} → {new[name]['exit']}")
            for line in "".join(values[1][name]["stderr"]).splitlines()[:4]:
                print(f"  stderr: {line}")
        parts = ("values", "words", "stderr") if messages else ("values",)
        before, after = ({part: kept[name][part] for part in parts} for kept in values)
        for line in _differences(before, after):
            print(f"  {line}")
    if len(listed) > shown:
        print(f"\n… and {len(listed) - shown} more:", *(f"  {name}" for name in listed[shown : shown + 50]), sep="\n")
    for name in missing[:shown]:
        print(f"not in {new_file.name}: {name}")
    numbers = sum(old[name]["numbers"] for name in both)
    print(f"{len(both)} commands, {numbers} numbers compared", end="")
    print(f" ({old_header['version']} and {new_header['version']})")
    if added := len(new) - len(both):
        print(f"only in {new_file.name}: {added} commands")
    if reworded and not messages:
        print(f"words differ in {len(reworded)} commands (--messages shows them)")
    if missing or listed:
        print(f"DIFFERENT: {len(differing)} commands differ, {len(missing)} are missing", end="")
        print(f", words differ in {len(reworded)}" if messages else "")
        return 1
    if not both:
        print("NOTHING TO COMPARE: the ledgers have no command in common")
        return 1
    print("equal")
    return 0


def _differences(old: Any, new: Any, most: int = 5) -> Iterator[str]:
    """The first values that differ, by path: old → new."""
    olds, news = dict(leaves(old)), dict(leaves(new))
    paths = [path for path in {**olds, **news} if path not in olds or path not in news or olds[path] != news[path]]
    for path in paths[:most]:
        before, after = (_short(side.get(path, "absent")) for side in (olds, news))
        yield f"{path.removeprefix('values.')}: {before} → {after}"
    if len(paths) > most:
        yield f"… {len(paths)} values differ, of {len({**olds, **news})}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}…"


# ---- the two of a change ---------------------------------------------------------------------------------------------


def against(base: str, *, messages: bool, **options: Any) -> int:
    """Compare the code that is here with that of a commit."""
    with tempfile.TemporaryDirectory(prefix="lagging-base-") as folder:
        packed = subprocess.run(["git", "archive", base, "src"], cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        ledgers = []
        for name, source in (("base", Path(folder, "src")), ("here", ROOT / "src")):
            file = Path(folder, f"{name}.jsonl")
            # each in a process of its own: a package is imported once
            words = [sys.executable, __file__, "write", str(file), "--source", str(source), *_as_words(options)]
            subprocess.run(words, check=True)
            ledgers.append(file)
        code = compare(*ledgers, messages=messages)
        if code:
            kept = Path(tempfile.mkdtemp(prefix="lagging-ledger-"))
            for file in ledgers:
                shutil.copy(file, kept)
                shutil.copy(values_of(file), kept)
            print(f"both ledgers are in {kept}")
        return code


def _as_words(options: dict[str, Any]) -> list[str]:
    """The options of `write` as words of its command line."""
    words = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is True]
    words += [f"--{name}={value}" for name, value in options.items() if not isinstance(value, bool) and value]
    return words


def main(args: list[str] | None = None) -> int:
    """Write, compare, or both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    actions = parser.add_subparsers(dest="action", required=True)
    selection = argparse.ArgumentParser(add_help=False)
    selection.add_argument("--quick", action="store_true", help="only the small part that the tests run")
    selection.add_argument("--only", default="", metavar="REGEX", help="only the commands whose name matches")
    selection.add_argument("--no-data", action="store_true", help="without the logs of LAGGING_TEST_DATA")
    selection.add_argument("--spark", action="store_true", help="with the commands that need Spark")
    selection.add_argument("--jobs", type=int, default=2, metavar="N", help="number of processes (default: 2)")
    writing = actions.add_parser("write", parents=[selection], help="run the commands and write a ledger")
    writing.add_argument("file", type=Path)
    writing.add_argument("--source", type=Path, default=ROOT / "src", help="the folder that has the package lagging")
    comparing = actions.add_parser("compare", help="compare two ledgers; exit 1 if they differ")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    based = actions.add_parser("against", parents=[selection], help="compare this code with that of a commit")
    based.add_argument("base", metavar="COMMIT")
    for one in (comparing, based):
        one.add_argument("--messages", action="store_true", help="compare sentences and standard error too")
    comparing.add_argument("--shown", type=int, default=SHOWN, metavar="N", help="how many commands to list")
    given = parser.parse_args(args)
    if given.action == "compare":
        return compare(given.old, given.new, messages=given.messages, shown=given.shown)
    options = {"quick": given.quick, "only": given.only, "jobs": given.jobs}
    if given.action == "against":
        more = {"no_data": given.no_data, "spark": given.spark}
        return against(given.base, messages=given.messages, **options, **more)
    folder = os.environ.get("LAGGING_TEST_DATA")
    data = Path(folder).resolve() if folder and not given.no_data and not given.quick else None
    write(given.file, given.source.resolve(), data, with_spark=given.spark, **options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
