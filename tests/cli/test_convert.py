# SPDX-License-Identifier: Apache-2.0
"""`lagging convert`: its whole output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

GOOD = """\
{"id": "a", "delays": [1, 2, 3], "source_length": 3, "prediction": "x y z", "reference": "x y z"}
{"id": "b", "delays": [], "source_length": 3, "prediction": "", "reference": "é"}
"""
DESCRIPTION = (
    "good: JSON lines, text → text, delays in source tokens (guessed from the numbers; --unit ms if not), "
    "target counted in words\n"
)
NOTE = "note: good: empty hypothesis: 1 segment (b): nothing was written, so there is no latency\n"

SIMULEVAL = """\
{"index": "a", "prediction": "x y z", "delays": [1, 2, 3], "elapsed": [0, 0, 0], "prediction_length": 3, \
"reference": "x y z", "source": null, "source_length": 3}
{"index": "b", "prediction": "", "delays": [], "elapsed": [], "prediction_length": 0, "reference": "é", \
"source": null, "source_length": 3}
"""
JSONL = """\
{"id": "a", "delays": [1, 2, 3], "source_length": 3, "prediction": "x y z", "reference": "x y z", \
"unit": "token", "level": "word"}
{"id": "b", "delays": [], "source_length": 3, "prediction": "", "reference": "é", "unit": "token", "level": "word"}
"""
RW = "RWRWRW\nRRR\n"
LEVEL = "level (read it with --level word)"


@pytest.fixture
def lagging(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("good.jsonl").write_text(GOOD, "utf-8")
    return run


@pytest.mark.parametrize(
    ("args", "out", "lost"),
    [
        ([], SIMULEVAL, ""),
        (["--to", "simuleval"], SIMULEVAL, ""),
        (["--to", "jsonl"], JSONL, ""),
        (
            ["--to", "rw"],
            RW,
            f"note: this format cannot hold: id, prediction, reference, {LEVEL}\n",
        ),
    ],
)
def test_to_standard_output(args, out, lost, lagging):
    assert lagging("convert", "good.jsonl", "-o", "-", *args) == (0, out, DESCRIPTION + NOTE + lost)


@pytest.mark.parametrize(("name", "content"), [("out.log", SIMULEVAL), ("out.jsonl", JSONL), ("out.rw", RW)])
def test_to_a_file_by_its_ending(name, content, lagging):
    code, out, err = lagging("convert", "good.jsonl", "-o", name)
    assert (code, out) == (0, "")
    assert err.startswith(DESCRIPTION + NOTE)
    assert Path(name).read_text("utf-8") == content
    assert sorted(p.name for p in Path().iterdir()) == sorted(["good.jsonl", name])


def test_quietly(lagging):
    assert lagging("convert", "-q", "good.jsonl", "-o", "-", "--to", "rw") == (0, RW, "")


def test_from_actions(lagging):
    Path("s.rw").write_text("RRW\nRWR\n")
    assert lagging("convert", "s.rw", "-o", "-", "--to", "jsonl") == (
        0,
        '{"id": 0, "delays": [2], "source_length": 2, "unit": "token", "level": "token"}\n'
        '{"id": 1, "delays": [1], "source_length": 2, "unit": "token", "level": "token"}\n',
        "s: READ/WRITE strings, delays in source tokens, source length = number of reads\n",
    )
    code, out, err = lagging("convert", "s.rw", "-o", "-")
    assert code == 0
    assert [json.loads(line)["prediction"] for line in out.splitlines()] == [None, None]
    assert err.endswith("note: this format cannot hold: prediction (this Run has no text)\n")


def test_there_and_back(lagging):
    """Whatever way a log goes through the formats, its scores stay."""
    plain = lagging("score", "-q", "-f", "json", "name=good.jsonl")[1]
    lagging("convert", "good.jsonl", "-o", "a.log")
    lagging("convert", "a.log", "-o", "b.jsonl")
    assert (
        Path("b.jsonl").read_text("utf-8").replace(', "elapsed": [0, 0, 0]', "").replace(', "elapsed": []', "") == JSONL
    )
    for copy in ("a.log", "b.jsonl"):
        assert lagging("score", "-q", "-f", "json", f"name={copy}")[1] == plain


def test_several_logs_become_one(lagging):
    Path("more.jsonl").write_text('{"id": "c", "delays": [3], "source_length": 3, "prediction": "x"}\n')
    code, out, _ = lagging("convert", "-q", "good.jsonl", "more.jsonl", "-o", "-", "--to", "rw")
    assert (code, out) == (0, RW + "RRRW\n")


def test_an_index_that_one_log_uses_twice(lagging):
    Path("bad.jsonl").write_text(GOOD + GOOD, "utf-8")
    code, out, err = lagging("convert", "bad.jsonl", "-o", "-")
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "error: the index was used before in bad.jsonl:3 (segment a): line 1",
        "  Two lines for one segment: only one of them can be counted. 1 more with the same fault: b.",
        "  fix: `--repair first` or `--repair last` keeps one of them (the signature then says so), or remove one.",
    ]


def test_repairing_on_the_way(lagging):
    Path("bad.jsonl").write_text('{"delays": [2, 1, 3], "source_length": 3}\n')
    assert lagging("convert", "-q", "bad.jsonl", "-o", "-", "--to", "rw", "--repair", "monotone")[:2] == (0, "RRWWRW\n")


def test_repairing_duplicates_on_the_way(lagging):
    code, out, _ = lagging("convert", "-q", "good.jsonl", "good.jsonl", "-o", "-", "--to", "rw", "--repair", "first")
    assert (code, out) == (0, RW)


def test_a_bad_log_leaves_the_output_alone(lagging):
    Path("bad.jsonl").write_text('{"delays": [2, 1], "source_length": 3}\n')
    Path("out.log").write_text("old")
    code, out, err = lagging("convert", "bad.jsonl", "-o", "out.log")
    assert (code, out) == (1, "")
    assert err.startswith("error: delays decrease in bad.jsonl:1 (segment 0), token 2: 2 → 1\n")
    assert Path("out.log").read_text() == "old"


def test_speech_has_no_actions(lagging):
    Path("ms.jsonl").write_text('{"delays": [1000.5], "source_length": 2000.5}\n')
    Path("out.rw").write_text("RW\n")
    code, out, err = lagging("convert", "-q", "ms.jsonl", "-o", "out.rw")
    assert (code, out) == (1, "")
    assert "ms.jsonl" in err
    assert "segment 0" in err
    assert "READ/WRITE strings can hold nothing else" in err
    assert "a value has the wrong type" not in err
    assert "It cannot be read." not in err
    assert Path("out.rw").read_text() == "RW\n"
    assert sorted(p.name for p in Path().iterdir()) == ["good.jsonl", "ms.jsonl", "out.rw"]


def test_in_place(lagging):
    lagging("convert", "good.jsonl", "-o", "good.jsonl")
    assert Path("good.jsonl").read_text("utf-8") == JSONL


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["good.jsonl", "-o", "out.xyz"], "the ending of out.xyz names no format; give one of "),
        (["good.jsonl", "-o", "no/out.log"], "cannot write no/out.log: No such file or directory"),
        (["nowhere", "-o", "out.log"], "no such file or directory: nowhere"),
        (["good.jsonl", "-o", "-", "--repair", "all"], "no repair is called 'all'"),
        (["good.jsonl"], "Missing option '-o' / '--output'"),
        (["good.jsonl", "-o", "-", "--to", "xml"], "'xml' is not one of"),
    ],
)
def test_usage(args, said, lagging):
    code, out, err = lagging("convert", *args)
    assert (code, out) == (2, "")
    assert said in err
    assert [p.name for p in Path().iterdir()] == ["good.jsonl"]


def test_an_ending_that_names_no_format_is_told_before_the_log_is_read(lagging):
    _, _, err = lagging("convert", "good.jsonl", "-o", "out.xyz")
    assert err.startswith("error: ")
