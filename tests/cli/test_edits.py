# SPDX-License-Identifier: Apache-2.0
"""`--strip` and `--spm-model`, on the command line."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import lagging

LOG = """\
{"index": 0, "prediction": "well , yes </s>", "delays": [1, 2, 2, 3], "source_length": 3, "reference": "yes ."}
{"index": 1, "prediction": "<unk> no", "delays": [1, 2], "source_length": 3, "reference": "no !"}
{"index": 2, "prediction": "?", "delays": [3], "source_length": 3, "reference": "what ?"}
"""


@pytest.fixture
def log(tmp_path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("a.log").write_text(LOG, "utf-8")
    return "a.log"


def records(out: str) -> dict[str, dict]:
    return {record["metric"]: record for record in json.loads(out)["scores"]}


def test_scores_without_punctuation(run, log) -> None:
    done = run("score", log, "-m", "DAL,LAAL,BLEU", "-f", "json", "--strip", "eos,tags", "--strip", "punctuation")
    assert done.code == 0, done.err
    found = records(done.out)
    plain = lagging.Run.from_delays([[1, 2], [2], []], source_length=[3, 3, 3])
    assert found["DAL"]["score"] == lagging.score(plain, ["DAL"])["DAL"].value
    assert found["DAL"]["undefined"] == 1
    for record in found.values():
        assert "|strip:eos+punctuation+tags|" in record["signature"]
    assert done.err.splitlines()[1:] == [
        "note: a: stripped: 3 segments (0, 1, 2): hypotheses that lost tokens, with their delays, to --strip "
        "eos,tags,punctuation",
        "note: a: emptied: 1 segment (2): nothing but stripped tokens was written: an empty hypothesis",
        "note: a: empty hypothesis: 1 segment (2): nothing was written, so there is no latency",
        "note: a: stripped: 1 token: eos, of hypotheses and references",
        "note: a: stripped: 5 tokens: punctuation, of hypotheses and references",
        "note: a: stripped: 1 token: tags, of hypotheses and references",
    ]


def test_like_repeats_it(run, log) -> None:
    first = records(run("score", log, "-m", "LAAL", "-f", "json", "--strip", "punctuation").out)["LAAL"]
    again = run("score", log, "-f", "json", "--like", first["signature"])
    (record,) = records(again.out).values()
    assert (record["score"], record["signature"]) == (first["score"], first["signature"])
    assert "the signature given has" not in again.err
    other = first["signature"].replace("strip:punctuation", "strip:eos")
    assert "score them one at a time" in run("score", log, "--like", first["signature"], "--like", other).err
    strange = first["signature"].replace("strip:punctuation", "strip:commas")
    done = run("score", log, "--like", strange)
    assert (done.code, done.out) == (2, "")
    assert "no kind of token 'commas' to strip" in done.err


def test_two_systems_stripped_alike_can_be_compared(run, log) -> None:
    """One of them had tags, the other had none: that is no difference in how they were counted."""
    Path("b.log").write_text(LOG.replace("<unk>", "oh"), "utf-8")
    done = run("score", "a.log", "b.log", "-m", "DAL", "--strip", "tags,punctuation")
    assert "strip:punctuation+tags" in done.out
    assert "cannot be compared" not in done.err


def test_nothing_to_strip_leaves_everything(run, log) -> None:
    Path("b.log").write_text(LOG.replace("</s>", "so"), "utf-8")
    plain = run("score", "b.log", "-m", "DAL")
    assert run("score", "b.log", "-m", "DAL", "--strip", "eos") == plain


def test_converting(run, log) -> None:
    done = run("convert", log, "-o", "-", "--to", "jsonl", "--strip", "eos,punctuation,tags")
    assert done.code == 0, done.err
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [line["prediction"] for line in lines] == ["well yes", "no", ""]
    assert [line["delays"] for line in lines] == [[1, 2], [2], []]
    assert [line["reference"] for line in lines] == ["yes", "no", "what"]
    told = (
        "note: a: stripped: 1 token: eos, of hypotheses and references; the new file, and its scores, will not say so"
    )
    assert told in done.err.splitlines()


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_tables_remember(ending, run, log) -> None:
    done = run("convert", log, "-o", f"b.{ending}", "--strip", "punctuation")
    assert "note: a: stripped: 5 tokens: punctuation, of hypotheses and references" in done.err.splitlines()
    assert "|strip:punctuation|" in run("score", f"b.{ending}", "-m", "DAL").out


def test_inspecting(run, log) -> None:
    done = run("inspect", log, "-i", "0", "--strip", "eos,punctuation")
    assert done.code == 0, done.err
    assert "|y| = 2" in done.out
    assert " , " not in done.out.partition("reference:")[2].partition("·")[0]
    assert "note: a: stripped: 5 tokens: punctuation, of hypotheses and references" in done.err
    assert "strip:eos+punctuation" in done.out


def test_what_is_refused(run, log) -> None:
    done = run("score", log, "--strip", "tag")
    assert (done.code, done.out) == (2, "")
    assert "Did you mean tags?" in done.err
    Path("paper.rw").write_text("RRWRW\n")
    done = run("score", "paper.rw", "--strip", "punctuation")
    assert (done.code, done.out) == (2, "")
    assert "paper.rw: nothing can be stripped: there is no text" in done.err


# ---- pieces -----------------------------------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path, log) -> str:
    spm = pytest.importorskip("sentencepiece")
    made = io.BytesIO()
    texts = iter(["the cat sat on the mat", "a black cat saw me"] * 30)
    spm.SentencePieceTrainer.train(
        sentence_iterator=texts, model_writer=made, vocab_size=40, hard_vocab_limit=False, minloglevel=2
    )
    Path("target.model").write_bytes(made.getvalue())
    processor = spm.SentencePieceProcessor(model_file="target.model")
    n = len(processor.encode("the cat saw me"))
    line = {"index": 0, "prediction": "the cat saw me", "delays": [3] * n, "source_length": 4, "reference": "a cat"}
    Path("spm.log").write_text(json.dumps(line) + "\n")
    return "target.model"


def test_scoring_pieces(run, model) -> None:
    done = run("score", "spm.log", "-m", "DAL,LAAL", "-f", "json", "--level", "spm", "--spm-model", model)
    assert done.code == 0, done.err
    signature = records(done.out)["DAL"]["signature"]
    assert "|level:spm-" in signature
    assert "target counted in pieces of spm-" in done.err
    again = run("score", "spm.log", "-f", "json", "--like", signature, "--spm-model", model)
    assert records(again.out)["DAL"] == records(done.out)["DAL"]
    assert again == run("score", "spm.log", "-f", "json", "--like", signature, "--spm-model", model, "--level", "spm")


def test_a_signature_needs_its_model(run, model, monkeypatch) -> None:
    args = ("score", "spm.log", "-f", "json", "--like")
    signature = records(run("score", "spm.log", "-f", "json", "-m", "DAL", "--spm-model", model).out)["DAL"][
        "signature"
    ]
    other = signature.replace(signature.partition("spm-")[2][:8], "00000000")
    for extra in ((), ("--level", "spm")):
        done = run(*args, other, "--spm-model", model, *extra)
        assert (done.code, done.out) == (2, "")
        assert "but spm-00000000 is needed" in done.err
    monkeypatch.setattr("lagging.data.tokens._MODELS", {})
    done = run(*args, signature)
    assert (done.code, done.out) == (2, "")
    assert "which has not been given" in done.err


def test_a_level_without_its_model(run, model) -> None:
    for command in ("score", "inspect", "validate"):
        done = run(command, "spm.log", "--level", "spm")
        assert (done.code, done.out) == (2, "")
        assert "fix: --spm-model FILE" in done.err
    assert run("validate", "spm.log", "--level", "spm", "--spm-model", model).code == 0
    done = run("validate", "spm.log", "--level", "word", "--spm-model", model)
    assert (done.code, done.out) == (2, "")
