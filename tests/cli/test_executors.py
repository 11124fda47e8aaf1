# SPDX-License-Identifier: Apache-2.0
"""Every option of `lagging score` works with every executor, or is refused with a sentence: nothing is ignored.

Executors are one process, several (`--jobs`), groups (`--by`) and Spark (`--engine spark`). What Spark can do is tested
in `tests/spark`; what it refuses, it refuses before Java is started.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SPARK = ("--engine", "spark")
BY_DOCUMENT = (
    "DAL|unit:token|length:hypothesis|clock:ideal|level:token|empty:nan|seg:none|mean:segment|ci:95|by:document"
)
BCA = BY_DOCUMENT.replace("document", "segment") + "|method:bca|bs:1000|seed:12345|n:4|v:0.2.0.dev0"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": f"s{i}", "delays": [1.0, 2.0], "source_length": 3.0, "lang": "de" if i % 2 else "cs", "unit": "token"}
        for i in range(4)
    ]
    pq.write_table(pa.Table.from_pylist(rows), "a.parquet")
    pq.write_table(pa.Table.from_pylist(rows), "b.parquet")
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("a.csv").write_text("id,delays,source_length\n" + "".join(f's{i},"[1, 2]",3\n' for i in range(4)))
    Path("dev.yaml").write_text("[]\n")
    Path("dev.de").write_text("x\n")
    Path("scores").mkdir()
    return tmp_path


REFUSED = [
    (("a.parquet", *SPARK, "--jobs", "2"), "--jobs is the number of processes on this machine"),
    (("a.parquet", *SPARK, "--segmentation", "dev.yaml", "--reference", "dev.de"), "takes segments as they are"),
    (("a.parquet", *SPARK, "--reference", "dev.de"), "takes segments as they are"),
    (("a.parquet", *SPARK, "--hypothesis", "dev.de"), "takes segments as they are"),
    (("a.parquet", *SPARK, "--regime", "iwslt26"), "takes segments as they are"),
    (("a.parquet", *SPARK, "--repair", "first"), "--repair first and --repair last choose among segments of one id"),
    (("a.parquet", *SPARK, "--repair", "last"), "--repair first and --repair last choose among segments of one id"),
    (("a.parquet", *SPARK, "--format-in", "csv"), "--engine spark reads Parquet, not csv"),
    (("-", *SPARK), "--engine spark reads files, and not standard input"),
    (("a.parquet", *SPARK, "-m", "LagPercentile"), "LagPercentile cannot be tallied"),
    (("a.parquet", *SPARK, "--ci", "--resample", "document"), "a Poisson bootstrap over segments, and no others"),
    (("a.parquet", *SPARK, "--like", BCA), "a Poisson bootstrap over segments, and no others"),
    (("a.parquet", *SPARK, "--segment-scores", "scores"), "writes a new directory, but scores exists"),
    (("x=a.parquet", "y=b.parquet", *SPARK, "--segment-scores", "new"), "a directory of Parquet, for one system"),
    (("a.parquet", *SPARK, "-o", "a.parquet"), "a.parquet is one of the logs; it would be written over"),
    (("a.parquet", *SPARK, "--quarantine", "q.tsv"), "--quarantine names the table of --on-error quarantine"),
    (("a.parquet", "--master", "local[2]"), "--master says where Spark runs; give --engine spark too"),
    (("a.jsonl", "--by", "lang", "--segmentation", "dev.yaml", "--reference", "dev.de"), "--by groups segments as"),
    (("a.jsonl", "--by", "lang", "--reference", "dev.de"), "--by groups segments as they are in the log"),
    (("a.jsonl", "--by", "lang", "--regime", "iwslt26"), "leave --by out"),
    (("a.jsonl", "--by", "lang", "-m", "LagPercentile"), "LagPercentile cannot be tallied"),
    (("a.jsonl", "--by", "lang", "--ci", "--resample", "document"), "a Poisson bootstrap over segments"),
    (("a.jsonl", "--by", "lang", "--like", BCA), "a Poisson bootstrap over segments, and no others"),
    (("a.jsonl", "--on-error", "quarantine", "--repair", "last"), "--repair first and --repair last choose among"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=[" ".join(arguments) for arguments, _ in REFUSED])
def test_what_an_executor_cannot_do_is_refused(here, run, arguments, message):
    before = sorted(path.name for path in here.iterdir())
    outcome = run("score", *arguments)
    assert (outcome.code in (1, 2), outcome.out) == (True, "")
    assert message in outcome.err
    assert "Traceback" not in outcome.err
    assert sorted(path.name for path in here.iterdir()) == before


def test_pieces_are_refused_on_spark(here, run):
    spm = pytest.importorskip("sentencepiece")
    Path("text").write_text("ja nein gut\n" * 20)
    spm.SentencePieceTrainer.Train(input="text", model_prefix="m", vocab_size=20, hard_vocab_limit=False)
    outcome = run("score", "a.parquet", *SPARK, "--level", "spm", "--spm-model", "m.model")
    assert (outcome.code, outcome.out) == (2, "")
    assert "--spm-model is not for --engine spark: the executors do not have the model" in outcome.err


ONE_PROCESS = [
    (("a.jsonl", "--on-error", "quarantine"), "--on-error quarantine needs the log in order"),
    (("a.jsonl", "--repair", "last"), "--repair last needs the whole log"),
    (("a.jsonl", "--by", "lang", "--segment-scores", "s.tsv"), "--segment-scores with --by writes the segments in ord"),
    (("a.csv",), "a.csv is neither plain JSON lines nor Parquet, so it cannot be divided"),
]


@pytest.mark.parametrize(
    ("arguments", "reason"), ONE_PROCESS, ids=[" ".join(arguments) for arguments, _ in ONE_PROCESS]
)
def test_jobs_without_effect_are_noted(here, run, arguments, reason):
    outcome = run("score", *arguments, "--jobs", "8", "-m", "AL")
    assert outcome.code == 0, outcome.err
    assert f"one process: --jobs 8 has no effect: {reason}" in outcome.err
    alone = run("score", *arguments, "--jobs", "1", "-m", "AL")
    assert alone.out == outcome.out
    assert "one process" not in alone.err


def test_ids_without_a_value_are_marked_as_a_sample(here, run):
    rows = [{"id": f"s{i}", "delays": [] if i else [1], "source_length": 3, "lang": "de"} for i in range(9)]
    Path("e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    outcome = run("score", "e.jsonl", "--by", "lang", "-m", "AL", "-v")
    assert "e: AL is undefined (empty hypothesis): s1, s2, s3, s4, s5 …" in outcome.err
    assert "s6, s7, s8\n" in run("score", "e.jsonl", "-m", "AL", "-v").err
