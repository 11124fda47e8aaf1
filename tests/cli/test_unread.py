# SPDX-License-Identifier: Apache-2.0
"""What `score` does not need it does not read, and says so; what it scores is checked as `validate` checks it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lagging
from lagging.data.run import LISTS

SPEECH: dict[str, Any] = {
    "id": 0,
    "prediction": "a b",
    "delays": [1000, 2000],
    "source_length": 2000,
    "elapsed": [1100, 2100],
    "arrivals": [1000, 2000],
    "compute": [100, 100],
    "steps": [0, 1],
    "queue_times": [1100, 2100],
    "omnisteval_times": [1100, 2100],
    "fbk_times": [1100, 2100],
    "due": [1, 2],
    "due_partial": [1, 2],
    "shown": [1, 2],
    "unit": "ms",
    "level": "word",
}
TEXT = {**SPEECH, "delays": [1, 2], "source_length": 2, "unit": "token"}
WRONG = {column: [1, -(10.0**19)] for column in LISTS}

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def unchecked(err: str) -> set[str]:
    """The columns that the one note names."""
    (note,) = [line for line in err.splitlines() if ": not checked: " in line]
    assert note.endswith(": no metric here needs them; `lagging validate` checks all")
    return set(note.partition(": not checked: ")[2].partition(":")[0].split(", "))


def store(form: str, record: dict[str, Any]) -> str:
    Path("a.jsonl").write_text(json.dumps(record) + "\n")
    if form == "jsonl":
        return "a.jsonl"
    if form in ("csv", "tsv"):
        cells = {k: json.dumps(v) if isinstance(v, list) else v for k, v in record.items()}
        tab = "\t" if form == "tsv" else ";"
        Path(f"a.{form}").write_text(tab.join(cells) + "\n" + tab.join(map(str, cells.values())) + "\n")
    else:
        pa = pytest.importorskip("pyarrow")
        from pyarrow.parquet import write_table

        table = pa.Table.from_pylist([record])
        if form == "parquet":
            write_table(table, "a.parquet")
        else:
            with pa.ipc.new_file("a.arrow", table.schema) as file:
                file.write_table(table)
    return f"a.{form}"


@pytest.mark.parametrize("form", ["jsonl", "csv", "tsv", "parquet", "arrow"])
@pytest.mark.parametrize(
    ("record", "metrics", "needed"),
    [
        (SPEECH, "AL", {"elapsed", "compute"}),
        (SPEECH, "AL,AL(clock=queue)", {"elapsed", "compute", "arrivals", "steps", "queue_times"}),
        (TEXT, "AL", {"elapsed"}),
    ],
    ids=["speech", "the clock of a queue", "text"],
)
def test_one_note_names_the_columns_that_were_not_checked(
    form: str, record: dict[str, Any], metrics: str, needed: set[str], run: Run
) -> None:
    path = store(form, record)
    code, _, err = run("score", path, "-m", metrics)
    assert code == 0, err
    assert unchecked(err) == {column for column in LISTS if column in record} - needed


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("column", [column for column in LISTS if column in SPEECH])
def test_a_fault_is_told_by_score_or_its_column_is_named(form: str, column: str, run: Run) -> None:
    for record in (SPEECH, TEXT):
        path = store(form, {**record, column: WRONG[column]})
        valid = run("validate", path)[0] == 0
        code, _, err = run("score", path, "-m", "AL")
        if valid:
            assert code == 0, err
        else:
            assert code == 1 or column in unchecked(err), (column, err)


def test_what_is_read_whole_is_checked_whole(run: Run) -> None:
    path = store("jsonl", SPEECH)
    assert not [note for note in lagging.read(path).notes if note.kind == "not checked"]
    assert not [note for note in lagging.validate(path).notes if note.kind == "not checked"]
    plain = {key: SPEECH[key] for key in ("id", "prediction", "delays", "source_length", "elapsed", "unit", "level")}
    assert "not checked" not in run("score", store("jsonl", plain), "-m", "AL")[2]


def test_bytes_that_are_no_text_are_a_fault_in_a_column_that_is_not_read(run: Run) -> None:
    Path("a.csv").write_bytes(b'id,delays,source_length,source\n0,"[1, 2]",2,\xff\n')
    assert run("validate", "a.csv")[0] == 1
    code, _, err = run("score", "a.csv", "-m", "AL")
    assert code == 1
    assert "source has the byte 0xff" in err
