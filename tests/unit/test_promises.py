# SPDX-License-Identifier: Apache-2.0
"""The page of promises: every test that it cites is there, and has the size that it says."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from fuzz.targets import TARGETS
from fuzz.test_fuzz import INPUTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "promises.md").read_text("utf-8")
CITED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
ROWS = re.findall(r"^\| .+ \| `(tests/[\w/]+\.py::\w+)` \| (more than )?(\d+) cases?\b.* \|$", PAGE, re.MULTILINE)


@cache
def functions(file: str) -> set[str]:
    """The names of the functions that a file defines."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.fixture(scope="module")
def collected() -> Counter[str]:
    """How many cases pytest finds of each test in the files that are cited."""
    files = sorted({file for file, _ in CITED})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return Counter(line.partition("[")[0] for line in done.stdout.splitlines() if line.startswith("tests/"))


def test_the_page_cites_tests_of_every_group() -> None:
    sections = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    with_tests = [section.partition("\n")[0] for section in sections if "::test_" in section]
    assert with_tests == [
        "Your data",
        "Crashes and hangs",
        "Power loss and kill",
        "A full disk",
        "Hostile text",
        "Hostile agents",
        "Remote agents and `lagging serve`",
    ]


@pytest.mark.parametrize("file", sorted({file for file, _ in CITED}))
def test_every_test_that_is_cited_exists(file: str) -> None:
    assert [name for of, name in CITED if of == file and name not in functions(file)] == []


def test_every_row_with_a_test_says_how_many_cases_it_has() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("|") and "::" in line]
    assert len(lines) == len(ROWS) == len(CITED)


@pytest.mark.slow
def test_the_numbers_of_cases_are_those_that_pytest_finds(collected: Counter[str]) -> None:
    missing = {test.partition("::")[0] for test, *_ in ROWS} - {test.partition("::")[0] for test in collected}
    wrong = [
        f"{test}: {more}{number} on the page, {collected[test]} in the file"
        for test, more, number in ROWS
        if test.partition("::")[0] not in missing  # needs a package that is not installed
        and not (collected[test] > int(number) if more else collected[test] == int(number))
    ]
    assert not wrong, "\n".join(wrong)
    assert len(collected) > 100


def test_the_number_of_hostile_inputs_is_that_of_the_targets() -> None:
    inputs = {name: INPUTS * target.share for name, target in TARGETS.items()}
    logs = sum(number for name, number in inputs.items() if name.startswith("log-"))
    assert f"{sum(inputs.values())} inputs in all" in PAGE
    assert f"{logs} logs" in PAGE
    assert f"{inputs['command']} command lines" in PAGE
    assert f"{inputs['groups']} logs with groups" in PAGE
