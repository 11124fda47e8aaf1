# SPDX-License-Identifier: Apache-2.0
"""Numbers beyond what anybody writes: told or computed, and never a traceback."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import lagging
from lagging.scoring.column_files import read_column

LINE: dict[str, Any] = {"index": 0, "prediction": "a b", "delays": [1, 2], "source_length": 2}
DIGITS = "9" * 5000


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def log(path: str, *indices: object, **changes: Any) -> None:
    lines = (json.dumps({**LINE, "index": index, **changes}) for index in indices)
    Path(path).write_text("\n".join(lines) + "\n")


def test_ids_of_thousands_of_digits_are_in_the_order_of_numbers(run: Any) -> None:
    log("a.log", *(f"{sign}{DIGITS}{k}" for sign in ("", "-") for k in range(6)))
    log("b.log", *(f"{sign}{DIGITS}{k}" for sign in ("", "-") for k in range(6)), source_length=3)
    for command in (["score", "a.log", "--ci"], ["compare", "a.log", "b.log"], ["report", "a.log", "-o", "r.html"]):
        code, _, err = run(*command)
        assert code == 0, err
    from lagging.stats.resamples import order

    assert order([f"{DIGITS}1", "7", f"-{DIGITS}", "-7", f"{DIGITS}0", "0"]).tolist() == [2, 3, 5, 1, 4, 0]


def test_a_number_of_thousands_of_digits_is_told_as_such(run: Any) -> None:
    Path("a.log").write_text(json.dumps(LINE).replace('"index": 0', f'"index": {DIGITS}') + "\n")
    code, out, err = run("validate", "a.log")
    assert code == 1, err
    assert "Exceeds the limit (4300 digits) for integer string conversion: value has 5000 digits\n" in out


def test_a_segid_of_thousands_of_digits(tmp_path: Path) -> None:
    from lagging.longform import read_segmentation

    (tmp_path / "s.txt").write_text(f"docid=0,segid={DIGITS}\ndocid=0,segid=1{DIGITS}\n")
    assert len(read_segmentation(tmp_path / "s.txt")) == 2


@pytest.mark.parametrize("space", ["\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u2003"])
def test_a_score_beside_any_white_space_is_a_score(space: str, tmp_path: Path) -> None:
    (tmp_path / "column.txt").write_text(f"0.5{space}\n{space}1\n")
    assert read_column(tmp_path / "column.txt", "COMET", "base").values.tolist() == [0.5, 1.0]


@pytest.mark.parametrize("form", ["jsonl", "simuleval", "omnisteval", "csv", "tsv", "parquet", "arrow"])
def test_an_elapsed_time_that_is_infinite_and_of_no_use_is_kept(form: str, run: Any) -> None:
    """Beside source tokens no metric can use elapsed times, so that they are not checked; they can be written."""
    Path("a.log").write_text(json.dumps({**LINE, "elapsed": [0, 1]}).replace("[0, 1]", "[0, 1e999]") + "\n")
    code, _, err = run("convert", "a.log", "-o", "b.out", "--to", form)
    assert code == 0, err
    found = lagging.read("b.out", unit="token", format=form)
    assert found.elapsed is not None
    assert found.elapsed.tolist() == [[0, math.inf]]


@pytest.mark.parametrize("length", [1e-320, 5e-324, 1e-19])
@pytest.mark.parametrize("column", ["source_length", "reference_length"])
def test_a_length_too_small_to_divide_by_is_a_fault(column: str, length: float, run: Any) -> None:
    log("a.jsonl", 0, unit="token", **{column: length})
    code, out, _ = run("validate", "a.jsonl")
    assert code == 1
    assert f"`{column}` is not a number of tokens" in out
    code, out, err = run("score", "a.jsonl", "-m", "AP,AL,AL(length=reference)", "-f", "json")
    assert (code, out) == (1, "")
    assert f"`{column}` is not a number of tokens" in err


@pytest.mark.parametrize("name", ["wait-{}", "segment-{}", "antagonist-{}", "wait-1-catchup={}"])
@pytest.mark.parametrize("number", [DIGITS, "9" * 30], ids=["5000 digits", "30 digits"])
def test_a_policy_with_a_number_beyond_any_sentence(name: str, number: str, run: Any) -> None:
    Path("text").write_text("a b c\n")
    code, _, err = run("simulate", name.format(number), "--source", "text", "--target", "text", "-o", "o.rw")
    assert code in (0, 2), err
    assert (code == 0) == Path("o.rw").exists()
