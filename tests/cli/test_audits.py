# SPDX-License-Identifier: Apache-2.0
"""`lagging validate --audit`."""

import json

import pytest

import lagging
from lagging.scoring.audit import AUDITS


@pytest.fixture
def log(tmp_path):
    times = [320 * k for k in range(1, 12)]
    talk = lagging.Run.from_delays(
        [times],
        elapsed=[[time - 200 for time in times]],
        source_length=[5000],
        prediction=[" ".join(f"w{k}" for k in range(11))],
        document=["talk"],
        unit="ms",
    )
    lagging.write(talk, tmp_path / "talk.jsonl")
    (tmp_path / "talk.yaml").write_text(
        "- {duration: 1.0, offset: 3.0, wav: talk.wav}\n- {duration: 1.0, offset: 4.0, wav: talk.wav}\n", "utf-8"
    )
    (tmp_path / "talk.txt").write_text("w0 w1 w2 w3 w4\nw5 w6 w7 w8 w9 w10\n", "utf-8")
    return tmp_path


def test_validate_prints_findings_and_exits_with_0(run, log):
    result = run("validate", "--audit", str(log / "talk.jsonl"))
    assert result.code == 0, result.err
    assert "audit: emitted before its audio: 11 of 11 words, in segment 0\n  Elapsed time" in result.out
    plain = run("validate", str(log / "talk.jsonl"))
    assert "audit" not in plain.out


def test_validate_cuts_first_and_prints_json(run, log):
    files = ["--segmentation", str(log / "talk.yaml"), "--reference", str(log / "talk.txt")]
    result = run("validate", "--audit", str(log / "talk.jsonl"), *files, "-f", "json")
    assert result.code == 0, result.err
    audits = {audit["name"]: audit for audit in json.loads(result.out)["logs"][0]["audits"]}
    assert list(audits) == list(AUDITS)
    assert audits["outside-the-segmentation"]["count"] > 5
    assert audits["reference-in-hypothesis"]["count"] == 2
    assert (audits["no-chunk-grid"]["count"], audits["no-chunk-grid"]["total"]) == (0, 11)


def test_faults_come_before_findings(run, log):
    (log / "bad.jsonl").write_text('{"delays": [3, 1], "source_length": 3, "unit": "ms"}\n', "utf-8")
    result = run("validate", "--audit", str(log / "bad.jsonl"))
    assert result.code == 1
    assert "audit: not done: mend the faults first" in result.out


def test_references_without_audit_are_refused(run, log):
    result = run("validate", str(log / "talk.jsonl"), "--reference", str(log / "talk.txt"))
    assert result.code == 2
    assert "go with --audit" in result.err
