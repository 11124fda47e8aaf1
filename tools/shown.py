# SPDX-License-Identifier: Apache-2.0
"""The commands that README and documentation show, and what they print.

`python tools/shown.py` runs every command in a ```console block again and writes what it prints below it; the tests
check that nothing changes.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lagging.cli import main as lagging

ROOT = Path(__file__).parent.parent
PAGES = {ROOT / "README.md": ROOT / "examples" / "data"}
PAGES |= dict.fromkeys(sorted((ROOT / "docs").glob("*.md")), ROOT / "docs" / "data")
for name in ("compare", "curve", "disagreement", "report"):  # more sentences, so that something is significant
    PAGES[ROOT / "docs" / f"{name}.md"] = ROOT / "examples" / "data"
for name in ("agents", "hf"):
    PAGES[ROOT / "docs" / f"{name}.md"] = ROOT / "examples"
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)


class _Output(io.TextIOWrapper):
    """Standard output, or error, that can be read afterwards."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def text(self) -> str:
        raw = self.buffer
        assert isinstance(raw, io.BytesIO)
        return raw.getvalue().decode("utf-8")


def run(line: str, code: int) -> tuple[str, int]:
    """What a command prints, on both streams, and its exit code; `lagging` runs in this process."""
    shown, given = _Output(), ""
    stages = line.split(" | ")
    for stage in stages:
        words = shlex.split(stage)
        if words == ["echo", "$?"]:
            return f"{code}\n", 0
        if words[0] in ("cat", "head"):
            lines = Path(words[-1]).read_text("utf-8").splitlines(keepends=True)
            return "".join(lines[: int(words[1][1:])] if words[0] == "head" else lines), 0
        if words[0] != "lagging":
            raise ValueError(f"only lagging, cat, head and echo are known here, not {words[0]}")
        out = shown if stage == stages[-1] else _Output()
        stdin, sys.stdin = sys.stdin, _Input(given)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(shown):
                lagging(words[1:])
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            sys.stdin = stdin
        given = out.text() if out is not shown else ""
    return shown.text(), code


class _Input(io.TextIOWrapper):
    """Standard input that says what it was given."""

    def __init__(self, text: str) -> None:
        super().__init__(io.BufferedReader(io.BytesIO(text.encode("utf-8"))), encoding="utf-8")


@contextlib.contextmanager
def inside(data: Path) -> Iterator[None]:
    """Work in a copy of a directory, as wide as a pipe is."""
    before, columns = Path.cwd(), os.environ.pop("COLUMNS", None)
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(data, copy, dirs_exist_ok=True)
        os.chdir(copy)
        try:
            yield
        finally:
            os.chdir(before)
            if columns is not None:
                os.environ["COLUMNS"] = columns


def rerun(text: str, data: Path) -> str:
    """The text of a page, with what its commands print now."""
    code = 0

    def again(block: re.Match[str]) -> str:
        nonlocal code
        lines = []
        for command in re.split(r"^\$ ", block[0], flags=re.MULTILINE)[1:]:
            line = command.partition("\n")[0]
            printed, code = run(line, code)
            lines.append(f"$ {line}\n{printed.rstrip()}".rstrip() + "\n")
        return "".join(lines)

    with inside(data):
        return BLOCK.sub(again, text)


if __name__ == "__main__":
    for page, data in PAGES.items():
        before = page.read_text("utf-8")
        after = rerun(before, data)
        if after != before:
            page.write_text(after, "utf-8")
            print(f"changed: {page.relative_to(ROOT)}")
