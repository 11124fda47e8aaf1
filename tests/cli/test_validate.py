# SPDX-License-Identifier: Apache-2.0
"""`lagging validate`: its whole output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

BAD = """\
{"id": "a", "delays": [1, 2, 3], "source_length": 3, "prediction": "x y z", "reference": "x y z"}
{"id": "b", "delays": [1, 3, 2], "source_length": 3, "prediction": "x y z", "reference": "x y z"}
{"id": "c", "delays": [1, "2"], "source_length": 3, "prediction": "x y", "reference": "x y"}
{"id": "a", "delays": [], "source_length": 3, "prediction": "", "reference": "x"}
{"id": "e", "delays": [2, 1], "source_length": 3, "prediction": "x y", "reference": null}
{"id": "f", "delays": [1, 2
"""

DESCRIPTION = (
    "JSON lines, text → text, delays in source tokens (guessed from the numbers; --unit ms if not), "
    "target counted in words"
)

TEXT = f"""\
bad.jsonl: {DESCRIPTION}
bad.jsonl:2: segment b, token 3: delays decrease: 3 → 2
bad.jsonl:3: segment c, token 2: a delay is not a number: "2"
bad.jsonl:4: segment a: the index was used before: line 1
bad.jsonl:5: segment e, token 2: delays decrease: 2 → 1
bad.jsonl:6: not valid JSON: Expecting ',' delimiter at column 28
2 × delays decrease
  AL, LAAL and DAL need non-decreasing delays.
  fix: `--repair monotone` clamps them (the signature then says repair:monotone), or re-export the log.
1 × a delay is not a number
  Delays are source tokens or milliseconds.
  fix: write it as a JSON number.
1 × the index was used before
  Two lines for one segment: only one of them can be counted.
  fix: `--repair first` or `--repair last` keeps one of them (the signature then says so), or remove one.
1 × not valid JSON
  Each line of this format is one JSON object.
  fix: re-export the line; if it is the last one, the run was cut off: remove it or resume the run.
note: empty hypothesis: 1 segment (a): nothing was written, so there is no latency
note: no reference: 1 segment (e): left out where a reference is needed
"""


@pytest.fixture
def lagging(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return run


@pytest.fixture
def bad(lagging):
    Path("bad.jsonl").write_text(BAD, "utf-8")
    return lagging


def test_text(bad):
    code, out, err = bad("validate", "bad.jsonl")
    assert out.rpartition("bad.jsonl: ")[0] == TEXT
    assert (code, err) == (1, "")


def test_the_verdict_counts_the_segments_that_could_be_read(bad):
    _, out, _ = bad("validate", "bad.jsonl")
    assert out.splitlines()[-1] == "bad.jsonl: 4 segments, 5 faults"


def test_the_column_of_a_line_that_breaks_off(lagging):
    """The place in the line, not the place after its end."""
    Path("a.jsonl").write_text(
        '{"delays": [1], "source_length": 1}\n{"delays": [1,\n{"delays": [1], "source_length": 1}\n'
    )
    _, out, _ = lagging("validate", "a.jsonl")
    assert "a.jsonl:2: not valid JSON: Expecting value at column 15" in out


def test_json(bad):
    code, out, err = bad("validate", "-f", "json", "bad.jsonl")
    assert (code, err) == (1, "")
    found = json.loads(out)
    log = found["logs"][0]
    assert list(found) == ["schema", "logs"]
    assert found["schema"] == 1
    assert list(log) == ["path", "ok", "segments", "formats", "counts", "faults", "notes"]
    assert (log["path"], log["ok"]) == ("bad.jsonl", False)
    assert log["formats"] == [{"path": "bad.jsonl", "format": "jsonl", "description": DESCRIPTION}]
    assert log["counts"] == {"bad-delay": 1, "not-json": 1, "decreasing-delays": 2, "duplicate-id": 1}
    assert log["faults"][0] == {
        "kind": "decreasing-delays",
        "path": "bad.jsonl",
        "line": 2,
        "segment": "b",
        "token": 3,
        "what": "delays decrease",
        "detail": "3 → 2",
        "why": "AL, LAAL and DAL need non-decreasing delays.",
        "fix": "`--repair monotone` clamps them (the signature then says repair:monotone), or re-export the log.",
    }
    assert [(f["kind"], f["line"], f["segment"], f["token"], f["detail"]) for f in log["faults"][1:4]] == [
        ("bad-delay", 3, "c", 2, '"2"'),
        ("duplicate-id", 4, "a", None, "line 1"),
        ("decreasing-delays", 5, "e", 2, "2 → 1"),
    ]
    assert (log["faults"][4]["kind"], log["faults"][4]["line"], log["faults"][4]["segment"]) == ("not-json", 6, None)
    assert log["notes"] == [
        {
            "kind": "empty hypothesis",
            "text": "nothing was written, so there is no latency",
            "count": 1,
            "segments": ["a"],
        },
        {"kind": "no reference", "text": "left out where a reference is needed", "count": 1, "segments": ["e"]},
    ]


def test_a_good_log(lagging):
    Path("wait-2.rw").write_text("RRWRWW\nRRWW\n")
    assert lagging("validate", "wait-2.rw") == (
        0,
        "wait-2.rw: READ/WRITE strings, delays in source tokens, source length = number of reads\n"
        "wait-2.rw: 2 segments, no faults\n",
        "",
    )


def test_one_segment_is_not_segments(lagging):
    Path("one.rw").write_text("RW\n")
    assert lagging("validate", "one.rw")[1].endswith("one.rw: 1 segment, no faults\n")


def test_several_logs(bad):
    Path("good.rw").write_text("RRWRWW\nRRWW\n")
    code, out, _ = bad("validate", "good.rw", "bad.jsonl")
    assert code == 1
    first, second = out.split("\n\n")
    assert first.endswith("good.rw: 2 segments, no faults")
    assert second.startswith("bad.jsonl: JSON lines")
    code, out, _ = bad("validate", "-f", "json", "good.rw", "bad.jsonl")
    assert [log["ok"] for log in json.loads(out)["logs"]] == [True, False]


def test_a_name_before_a_path(lagging):
    Path("good.rw").write_text("RRWW\nRW\n")
    assert lagging("validate", "base=good.rw")[0] == 0


def test_output_to_a_file(bad):
    code, out, _ = bad("validate", "-o", "report.txt", "bad.jsonl")
    assert (code, out) == (1, "")
    assert Path("report.txt").read_text("utf-8").startswith(TEXT)


def test_the_level_and_the_format_asked_for(lagging):
    Path("a.jsonl").write_text('{"delays": [1, 2], "source_length": 2, "prediction": "ab cd"}\n')
    assert lagging("validate", "a.jsonl")[0] == 0
    code, out, _ = lagging("validate", "--level", "char", "a.jsonl")
    assert code == 1
    assert "2 delays, 4 chars" in out
    code, out, _ = lagging("validate", "--format-in", "rw", "a.jsonl")
    assert code == 1
    assert "not a READ/WRITE action" in out


def test_a_thousand_faults_of_a_kind_are_listed_and_all_are_counted(lagging):
    Path("a.jsonl").write_text('{"delays": [2, 1], "source_length": 2}\n' * 1500)
    code, out, _ = lagging("validate", "a.jsonl")
    assert code == 1
    assert out.count("delays decrease: 2 → 1") == 1000
    assert "1500 × delays decrease" in out
    assert "1500 faults" in out.splitlines()[-1]
    scored = lagging("score", "a.jsonl")
    assert "1499 more with the same fault: 1, 2, 3, 4, 5 and 1494 more." in scored[2]
