# SPDX-License-Identifier: Apache-2.0
"""Formats of other packages, through the entry point group `lagging.formats`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = """
from lagging.errors import Fault
from lagging.formats import Format
from lagging.formats.segment_rows import Rows, collect
from lagging.formats.line import Line
from lagging.formats.omissions import lost


def recognise(head):
    return head.startswith(b"#waits")


class Decoder:
    def __init__(self, source, report):
        self.source, self.report = source, report

    def only(self, columns, absent):
        pass

    def chunks(self):
        for batch in self.source.batches():
            rows = Rows()
            for number, line in enumerate(batch.lines, batch.first):
                if line.startswith(b"#"):
                    continue
                try:
                    name, length, *delays = line.decode().split()
                    row = Line(id=name, source_length=float(length), delays=list(map(float, delays)), unit="token")
                except ValueError as error:
                    self.report.refuse([Fault("bad-value", str(error))], self.source, number, None)
                    continue
                rows.rows.append(row)
                rows.lines.append(number)
                rows.places.append(number - 2 + self.report.placed)
            yield rows


def scan(source, options, report):
    return collect(source, options, report, Decoder(source, report))


def write(run, file):
    file.write("#waits\\n")
    for name, length, delays in zip(run.id, run.source_length, run.delays):
        file.write(f"{name} {length:g} {' '.join(format(g, 'g') for g in delays)}\\n")
    return lost(run, {"id", "source_length", "delays"}, unit="token", level="token", seg="none")


waits = Format("waits", "lines of delays", recognise, scan, write, (".waits",))
"""
LOG = "#waits\na 5 4 4 4 4 5\nb 3 1 2 3\n"

FAILURES = {
    "raise RuntimeError('no luck')": "RuntimeError: no luck",
    "import sys; sys.exit(3)": "SystemExit: 3",
    "import nowhere_to_be_found": "ModuleNotFoundError: No module named 'nowhere_to_be_found'",
    "waits = 'waits'": "str is not a lagging.formats.Format",
    "from dataclasses import replace\nwaits = replace(waits, name='csv')": "a format called 'csv' exists already",
    "class Panic(BaseException): pass\nraise Panic('of a library')": "Panic: of a library",
}


def install(directory: Path, **modules: str) -> dict[str, str]:
    """Packages with an entry point, as an installer would leave them."""
    for name, module in modules.items():
        (directory / f"{name}.py").write_text(module)
        info = directory / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[lagging.formats]\nwaits = {name}:waits\n")
    (directory / "base.waits").write_text(LOG)
    (directory / "a.rw").write_text("RRRWRW\n")
    paths = [str(directory), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def call(environment: dict[str, str], *args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lagging", *map(str, args)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8")


def test_a_package_can_bring_a_format(tmp_path: Path) -> None:
    environment = install(tmp_path, lagging_waits=PLUGIN)
    scored = call(environment, "score", tmp_path / "base.waits", "-m", "DAL", "-f", "tsv")
    assert scored.stdout.splitlines()[1].split("\t")[:3] == ["base", "DAL", "2.5"]  # 4.0 and 1.0
    named = call(environment, "validate", tmp_path / "base.waits", "--format-in", "waits")
    assert named.returncode == 0
    assert "lines of delays, text → text, delays in source tokens (says the log)" in named.stdout + named.stderr


def test_its_format_is_written_by_its_name_and_by_its_ending(tmp_path: Path) -> None:
    environment = install(tmp_path, lagging_waits=PLUGIN)
    jsonl, again = tmp_path / "base.jsonl", tmp_path / "again.waits"
    assert call(environment, "convert", tmp_path / "base.waits", "-o", jsonl).returncode == 0
    assert call(environment, "convert", jsonl, "-o", again).returncode == 0
    assert again.read_text() == LOG
    assert call(environment, "convert", jsonl, "-o", "-", "--to", "waits").stdout == LOG


def test_its_faults_have_a_place(tmp_path: Path) -> None:
    environment = install(tmp_path, lagging_waits=PLUGIN)
    (tmp_path / "bad.waits").write_text(LOG + "c x 1\n")
    found = call(environment, "score", tmp_path / "bad.waits")
    assert found.returncode == 1
    assert f"{tmp_path / 'bad.waits'}:4: could not convert string to float: 'x'" in found.stderr


def test_json_lines_of_another_package_come_before_ours(tmp_path: Path) -> None:
    other = PLUGIN.replace('b"#waits"', "b'{\"waits\"'")
    environment = install(tmp_path, lagging_waits=other.replace('b"#"', "b'{'"))
    (tmp_path / "base.log").write_text('{"waits": 1}\na 5 4 4 4 4 5\n')
    scored = call(environment, "score", tmp_path / "base.log", "-m", "DAL", "-f", "tsv")
    assert scored.stdout.splitlines()[1].split("\t")[:3] == ["base", "DAL", "4.0"]


@pytest.mark.slow
@pytest.mark.parametrize("failure", FAILURES)
def test_a_broken_package_is_named_and_harms_nobody_else(tmp_path: Path, failure: str) -> None:
    environment = install(tmp_path, broken_waits=f"{PLUGIN}\n{failure}\n", lagging_waits=PLUGIN)
    scored = call(environment, "score", tmp_path / "base.waits", "-m", "DAL", "-f", "tsv")
    assert scored.stdout.splitlines()[1].split("\t")[:3] == ["base", "DAL", "2.5"]
    reason = f"the format plug-in 'broken_waits:waits' cannot be used: {FAILURES[failure]}"
    assert scored.stderr.count(reason) == 1
    assert call(environment, "score", tmp_path / "a.rw", "-m", "DAL", "-q").stderr == ""


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("return head", "raise RuntimeError('no luck')\n    return head", "is not recognised"),
        ("return head", "import sys; sys.exit(3)\n    return head", "is not recognised"),
        (
            "for batch",
            "raise RuntimeError('no luck')\n        for batch",
            "the reader of the format waits failed: RuntimeError: no luck",
        ),
        (
            "for batch",
            "import sys; sys.exit(3)\n        for batch",
            "the reader of the format waits failed: SystemExit: 3",
        ),
    ],
)
def test_a_format_that_fails_is_named(tmp_path: Path, before: str, after: str, message: str) -> None:
    environment = install(tmp_path, lagging_waits=PLUGIN.replace(before, after, 1))
    found = call(environment, "score", tmp_path / "base.waits", "-m", "DAL")
    assert found.returncode in (1, 2)
    assert message in found.stderr
    assert "Traceback" not in found.stderr
    if "not recognised" in message:
        assert "the recogniser of the format waits failed" in found.stderr
