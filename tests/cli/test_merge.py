# SPDX-License-Identifier: Apache-2.0
"""`lagging convert` of several logs: the whole output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def line(index: int | str, delays: list[int], text: str = "a b") -> str:
    return json.dumps({"id": index, "delays": delays, "source_length": 3, "prediction": text}) + "\n"


@pytest.fixture
def shards(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text(line(3, [1, 2]) + line(0, [2, 3]))
    Path("b.jsonl").write_text(line(0, [2, 3]) + line(1, [3, 3]))
    Path("c.jsonl").write_text(line(2, [1, 1]) + line(1, [2, 3], "a c"))
    return tmp_path


def ids(out: str) -> list[int]:
    return [json.loads(row)["id"] for row in out.splitlines()]


def test_shards_become_one(run, shards) -> None:
    code, out, err = run("convert", "a.jsonl", "b.jsonl", "-o", "-", "--to", "jsonl")
    assert (code, ids(out)) == (0, [0, 1, 3])
    first, recognised, last = err.splitlines()
    assert recognised.startswith("a: JSON lines")
    assert [first, last] == [
        "note: a: index gap: 1 of the indices between 0 and 3 are missing: is the log complete?",
        "note: a: duplicate: 1 segment (0): the same line again: kept once",
    ]
    scored = run("score", "-q", "-f", "json", "--repair", "first", "[ab].jsonl")
    Path("all.jsonl").write_text(out)
    merged = run("score", "-q", "-f", "json", "all.jsonl")
    assert [s["score"] for s in json.loads(merged.out)["scores"]] == [
        s["score"] for s in json.loads(scored.out)["scores"]
    ]


def test_a_quoted_pattern_merges_too(run, shards) -> None:
    assert ids(run("convert", "-q", "[ab].jsonl", "-o", "-", "--to", "jsonl").out) == [0, 1, 3]


def test_conflicts_are_listed(run, shards) -> None:
    Path("all.jsonl").write_text("old")
    code, out, err = run("convert", "a.jsonl", "b.jsonl", "c.jsonl", "-o", "all.jsonl")
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "error: lines of one segment that differ in c.jsonl:2 (segment 1): delays at token 1: 3 → 2; "
        "prediction at word 2: b → c (first at b.jsonl:2)",
        "  Only one of them can be counted. Elapsed times count as well: two runs of a sentence are two measurements.",
        "  fix: `--repair first` or `--repair last` decides for all of them, or remove one line of each.",
    ]
    assert Path("all.jsonl").read_text() == "old"


@pytest.mark.parametrize(("keep", "text"), [("first", "a b"), ("last", "a c")])
def test_a_repair_decides(keep, text, run, shards) -> None:
    code, out, err = run("convert", "a.jsonl", "b.jsonl", "c.jsonl", "-o", "-", "--to", "jsonl", "--repair", keep)
    assert (code, ids(out)) == (0, [0, 1, 2, 3])
    assert json.loads(out.splitlines()[1])["prediction"] == text
    assert "note: a: duplicate: 1 segment (0): the same line again: kept once" in err
    said = f"note: a: repaired: 1 segment: by --repair {keep}; the new file, and its scores, will not say so"
    assert said in err.splitlines()


def test_a_torn_shard(run, shards) -> None:
    with Path("b.jsonl").open("a") as file:
        file.write(line(2, [1, 2])[:30])
    code, out, err = run("convert", "a.jsonl", "b.jsonl", "-o", "-")
    assert (code, out) == (1, "")
    assert err.startswith("error: the last line breaks off in b.jsonl:3")
    assert "`--repair torn` leaves it out (the signature then says so)" in err
    code, out, err = run("convert", "a.jsonl", "b.jsonl", "-o", "-", "--to", "jsonl", "--repair", "torn")
    assert (code, ids(out)) == (0, [0, 1, 3])
    assert "note: a: torn: the last line breaks off, and is left out: b.jsonl:3" in err.splitlines()
    assert "note: a: repaired: 1 segment: by --repair torn; the new file" in err
    scored = run("score", "b.jsonl", "-m", "DAL", "--repair", "torn")
    assert "|repair:torn|" in scored.out
    again = run("score", "b.jsonl", "--like", scored.out.splitlines()[-1])
    assert again.code == 0
    assert "|repair:torn|" in again.out


def test_scoring_several_as_one_stays_a_fault(run, shards) -> None:
    code, out, err = run("score", "[ab].jsonl")
    assert (code, out) == (1, "")
    assert "the index was used in another file in b.jsonl:1 (segment 0): first at a.jsonl:2" in err
    assert "`lagging convert` merges logs that belong together" in err


def test_help_says_it(run) -> None:
    out = run("convert", "--help").out
    for word in ("merge several logs", "--repair", "--strip", "--spm-model", "torn"):
        assert word in out
