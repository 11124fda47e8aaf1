# SPDX-License-Identifier: Apache-2.0
"""Commands run in this process: how they end, and what they print."""

from __future__ import annotations

import io
import sys
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from fuzz.oracles import Difference, agree, harmless, strict_json
from lagging.cli import main

WRITERS = ("convert", "resegment", "simulate")
"""Commands whose standard output is a log, not for people."""

CODES = (0, 1, 2, 3)


@contextmanager
def streams(stdin: bytes) -> Any:
    """Standard streams that are files, as the command line needs them, and what was written to them."""
    kept = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin)))  # type: ignore[arg-type]
    how: dict[str, Any] = {"mode": "w", "encoding": "utf-8", "newline": ""}
    try:
        with Path(".stdout").open(**how) as sys.stdout, Path(".stderr").open(**how) as sys.stderr:
            yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = kept


def run(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    """How a command ended, and what it wrote to standard output and standard error."""
    code: Any = None
    with streams(stdin):
        try:
            main(list(arguments))
        except SystemExit as ended:
            code = ended.code
    out, err = (Path(name).read_bytes().decode("utf-8", "backslashreplace") for name in (".stdout", ".stderr"))
    return code, out, err


def ended(arguments: list[str], code: Any, out: str, err: str) -> None:
    """All that must hold of a command that has ended."""
    if code not in CODES:
        raise Difference(f"the command ended with {code!r}: {err[-300:]}")
    for text in (out, err):
        if "Traceback (most recent call last)" in text:
            raise Difference(f"a traceback was printed: {text[-900:]}")
    elsewhere = bool({"-o", "--output"} & {*arguments})
    if code in (1, 2) and not (out or err or elsewhere):
        raise Difference(f"the command ended with {code}, and nothing was said")
    harmless("standard error", err)
    form = next((b for a, b in pairwise(arguments) if a in ("-f", "--format")), "table")
    if form in ("table", "text") and arguments[0] not in WRITERS:
        harmless("standard output", out)
    if form == "json" and out:
        strict_json(out)
    left = sorted(file.name for file in Path().iterdir() if file.name.endswith(".unfinished"))
    agree("files that are left over", left, [])


def number_of(value: Any) -> float:
    """A number of our JSON; null is NaN."""
    return float("nan") if value is None else float(value)


def scores(path: Path, how: dict[str, Any]) -> dict[str, str] | None:
    """Scores by their signatures, as `lagging score` prints them; None if it refuses the log."""
    named = {"format": "--format-in", "level": "--level", "unit": "--unit"}
    given = [text for key, value in how.items() if key in named for text in (named[key], value)]
    arguments = ["score", str(path), "-f", "json", "-q", *given]
    code, out, err = run(*arguments)
    ended(arguments, code, out, err)
    if code:
        return None
    return {score["signature"]: repr(number_of(score["score"])) for score in strict_json(out)["scores"]}
