# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with a run in everyday use, and what is said then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lagging
from lagging.cli import main
from lagging.errors import UsageError
from lagging.parallel import score

LINE = {"index": 0, "prediction": "A B", "delays": [1, 2], "source_length": 2, "reference": "A B"}


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    """A command in this process: its exit code, and what it says on standard error."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    code = ended.value.code
    assert isinstance(code, int)
    return code, capsys.readouterr().err


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What is said of a command that is refused."""
    code, text = said(capsys, *arguments)
    assert code == 2, text
    assert "Traceback" not in text
    return text


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A folder with a test set."""
    (tmp_path / "source.txt").write_text("a b c\nd e\n")
    (tmp_path / "reference.txt").write_text("A B C\nD E\n")
    return tmp_path


def begun(folder: Path, manifest: Any, count: int = 2) -> Path:
    """A folder with so many lines of a log, and a run.json."""
    folder.mkdir()
    lines = [json.dumps(LINE | {"index": index}) + "\n" for index in range(count)]
    (folder / "instances.log").write_text("".join(lines))
    (folder / "run.json").write_text(manifest if isinstance(manifest, str) else json.dumps(manifest, indent=2))
    return folder


# ---- what lies beside a log -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ({"summary": None, "sessions": [{"ended": None}]}, "it has not ended"),
        ({"summary": None}, "it has not ended"),
        ({"summary": {"done": 2}, "sessions": [{"by": "interrupted"}]}, "it was interrupted"),
        ({"summary": {"done": 2}, "sessions": [{"by": "stopped"}]}, "it stopped at a failure"),
        ({"summary": {"done": 2}, "sessions": [{"by": "finished"}]}, "no more were asked for"),
    ],
)
def test_a_run_that_is_not_finished_says_so(tmp_path: Path, rest: dict[str, Any], why: str) -> None:
    folder = begun(tmp_path / "out", {"source": {"sentences": 9}} | rest)
    for notes in (
        lagging.read(folder).notes,
        lagging.validate(folder).notes,
        score(folder, "AL", jobs=1).notes,
        score(folder, "AL", jobs=2).notes,
    ):
        assert [note.text for note in notes if note.kind == "unfinished run"] == [
            f"2 of 9 sentences: run.json says that {why}"
        ]


@pytest.mark.parametrize("manifest", [
    {"source": {"sentences": 2}, "summary": None}, {"source": {"sentences": 9}, "summary": {"done": 9}},
    {"source": None}, {"source": {"sentences": "many"}}, [1], 3, "", "{", "[" * 100_000,
])  # fmt: skip
def test_of_a_run_json_that_tells_nothing_nothing_is_said(tmp_path: Path, manifest: Any) -> None:
    assert not lagging.validate(begun(tmp_path / "out", manifest)).notes


@pytest.mark.parametrize("name", ["run.json", "scores.json"])
def test_what_lies_beside_a_log_is_no_log(tmp_path: Path, name: str) -> None:
    folder = begun(tmp_path / "out", {"source": {}})
    (folder / "scores.json").write_text('{\n  "schema": 1\n}\n')
    with pytest.raises(UsageError, match=f"{name} holds .*, not a log\n  fix: give the folder: .*out"):
        lagging.read(folder / name)
    (folder / "instances.log").replace(folder / name)  # a log may be called that
    assert len(lagging.read(folder / name)) == 2
