# SPDX-License-Identifier: Apache-2.0
"""Delays that count the pieces of a SentencePiece model; the models are trained here."""

from __future__ import annotations

import hashlib
import io
import json
import sys
from pathlib import Path

import pytest

import lagging
from lagging import MissingExtraError, Run, UsageError
from lagging.data.tokens import check_level, count_tokens, ends_in_eos, load_spm, resolve_level, tokens, unknown_pieces
from lagging.errors import DataError
from lagging.scoring.signature import settings

sentencepiece = pytest.importorskip("sentencepiece")

SENTENCES = ["the cat sat on the mat", "a black cat saw me", "we saw the train at eight", "again and again and again"]


def train(path: Path, size: int, sentences: list[str] = SENTENCES, kind: str = "unigram") -> Path:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences * 20),
        model_writer=model,
        vocab_size=size,
        model_type=kind,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    path.write_bytes(model.getvalue())
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return train(tmp_path_factory.mktemp("spm") / "target.model", 60)


@pytest.fixture(scope="module")
def other(tmp_path_factory) -> Path:
    return train(tmp_path_factory.mktemp("spm") / "other.model", 30, kind="char")


@pytest.fixture(scope="module")
def pieces(model):
    """Cuts a text by the model, without lagging."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    return lambda text: processor.encode(text, out_type=str)


def log(path: Path, pieces, **changes: object) -> Path:
    """What SimulEval writes with --eval-latency-unit spm, but for its pieces."""
    rows = []
    for index, text in enumerate(SENTENCES):
        n = len(pieces(text))
        row = {
            "index": index,
            "prediction": text,
            "delays": [min(3 + t // 2, 6) for t in range(n)],
            "elapsed": [0] * n,
            "prediction_length": n,
            "reference": SENTENCES[index - 1] + "\n",
            "source": "a b c d e f",
            "source_length": 6,
            **{key: value(text) if callable(value) else value for key, value in changes.items()},
        }
        rows.append({key: value for key, value in row.items() if value is not ...})
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def test_the_level_names_the_model(model) -> None:
    level = load_spm(model)
    assert level == f"spm-{hashlib.sha256(model.read_bytes()).hexdigest()[:8]}"
    assert load_spm(str(model)) == level
    check_level(level)


def test_tokens_are_those_of_the_model(model, pieces) -> None:
    level = load_spm(model)
    for text in [*SENTENCES, "", "  the   cat ", "snow☃man"]:
        assert tokens(text, level) == pieces(text)
    counts = count_tokens([*SENTENCES, None, "", "the cat</s>"], level, [0] * 4 + [7, 0, 0])
    assert counts.tolist() == [*(len(pieces(text)) for text in SENTENCES), 7, 0, len(pieces("the cat")) + 1]


@pytest.mark.parametrize("text", ["the cat</s>", "the cat </s>"])
def test_a_final_mark_is_one_piece(text, model, pieces) -> None:
    level = load_spm(model)
    assert tokens(text, level) == [*pieces("the cat"), "</s>"]
    assert ends_in_eos(text, level)
    g = [1.0] * len(pieces("the cat"))
    run = Run.from_delays([[*g, 9.0]], source_length=[9], prediction=[text], level="spm", spm_model=model)
    score = lagging.score(run, ["DAL"])["DAL"]
    assert score.value == lagging.dal(g, source_length=9)
    assert score.signature["eos"] == "stripped"


def test_a_log_of_pieces(model, pieces, tmp_path) -> None:
    path = log(tmp_path / "instances.log", pieces)
    run = lagging.read(path, level="spm", spm_model=model)
    level = load_spm(model)
    assert run.level == level
    assert repr(run).endswith(f"{len(run.delays.values)} pieces, token)")
    assert f"target counted in pieces of {level}" in run.origin.description
    assert lagging.read(path, spm_model=model).level == level
    assert lagging.read(path).level == "token"


@pytest.mark.parametrize("convention", ["paper", "simuleval"])
def test_references_are_counted_by_the_same_model(convention, model, pieces, tmp_path) -> None:
    run = lagging.read(log(tmp_path / "instances.log", pieces), level="spm", spm_model=model)
    score = lagging.score(run, ["AL(length=reference)", "LAAL"], convention=convention)
    for row, text in enumerate(SENTENCES):
        g, y = run.delays[row].tolist(), len(pieces(SENTENCES[row - 1]))
        gamma = y / 6
        tau = next((t for t, d in enumerate(g, 1) if d >= 6), len(g))
        al = sum(d - t / gamma for t, d in enumerate(g[:tau])) / tau
        assert score["AL(length=reference)"].segments[row] == pytest.approx(al)
        expected = lagging.laal(g, source_length=6, reference_length=y)
        assert score["LAAL"].segments[row] == pytest.approx(expected)
        assert len(g) == len(pieces(text))


def test_a_missing_reference_has_no_pieces(model, pieces) -> None:
    g = [[1] * len(pieces("the cat"))] * 2
    run = Run.from_delays(
        g, source_length=[2, 2], prediction=["the cat"] * 2, reference=["the cat", None], level="spm", spm_model=model
    )
    score = lagging.score(run, ["AL(length=reference)"])["AL(length=reference)"]
    assert score.undefined.reasons == {"no reference": (1,)}


def test_predictions_are_checked(model, other, pieces, tmp_path) -> None:
    path = log(tmp_path / "instances.log", pieces)
    with pytest.raises(DataError, match=r"differs from the number of target tokens.* delays, \d+ pieces"):
        lagging.read(path, level="spm", spm_model=other)
    found = lagging.validate(path, level="spm", spm_model=other)
    assert set(found.counts) == {"token-count"}
    assert lagging.validate(path, level="spm", spm_model=model).ok


def test_pieces_that_the_log_shows_count(model, pieces, tmp_path) -> None:
    """A system need not cut its words as the model does when it is asked to cut the text."""
    letters = lambda text: ["▁", *text.replace(" ", "▁")]  # noqa: E731
    g = {"delays": lambda text: [6] * (len(text) + 1), "elapsed": lambda text: [0] * (len(text) + 1)}
    path = log(tmp_path / "instances.log", pieces, prediction_spm=letters, **g)
    run = lagging.read(path, level="spm", spm_model=model)
    assert run.delays.lengths.tolist() == [len(text) + 1 for text in SENTENCES]
    assert not [note for note in run.notes if note.kind == "unknown pieces"]
    path = log(tmp_path / "instances.log", pieces, prediction_spm=letters)
    with pytest.raises(DataError, match="pieces"):
        lagging.read(path, level="spm", spm_model=model)


def test_pieces_of_another_model_are_noted(model, pieces, tmp_path) -> None:
    foreign = lambda text: ["▁zzz"] * len(pieces(text))  # noqa: E731
    run = lagging.read(log(tmp_path / "instances.log", pieces, prediction_spm=foreign), level="spm", spm_model=model)
    told = [str(note) for note in run.notes if note.kind == "unknown pieces"]
    assert told == ["unknown pieces: 4 segments (0, 1, 2, 3): not in the model: is it the right one?"]
    level = load_spm(model)
    assert not unknown_pieces([*pieces("the cat"), "<unk>", "</s>"], level)
    assert unknown_pieces(["▁the", "▁zzz"], level)


def test_signature_and_back(model, other, pieces, tmp_path) -> None:
    path = log(tmp_path / "instances.log", pieces)
    scores = lagging.score(lagging.scan(path, level="spm", spm_model=model), ["DAL"])
    signature = scores["DAL"].signature
    assert signature["level"] == load_spm(model)
    wanted = settings(str(signature)).level
    again = lagging.score(lagging.scan(path, level=wanted, spm_model=model), ["DAL"])
    assert str(again["DAL"].signature) == str(signature)
    with pytest.raises(UsageError, match=f"is the model {load_spm(other)}, but {wanted} is needed"):
        lagging.scan(path, level=wanted, spm_model=other)


def test_written_and_read_again(model, other, pieces, tmp_path, monkeypatch) -> None:
    run = lagging.read(log(tmp_path / "instances.log", pieces), level="spm", spm_model=model)
    copy = tmp_path / "copy.jsonl"
    lagging.write(run, copy)
    lost = lagging.write(run, tmp_path / "copy.log")
    assert lost == ["level (read it with --level spm --spm-model FILE)"]
    assert lagging.read(copy, spm_model=model).to_dict() == run.to_dict()
    assert lagging.read(copy, level="token").level == "token"
    with pytest.raises(UsageError, match=f"its tokens are the pieces of {run.level}, but the model given is spm-"):
        lagging.read(copy, spm_model=other)
    monkeypatch.setattr("lagging.data.tokens._MODELS", {})
    with pytest.raises(
        UsageError, match=rf"copy.jsonl: the tokens are the pieces .* {run.level}, which has not been given"
    ):
        lagging.read(copy)


def test_what_is_refused(model, tmp_path, pieces) -> None:
    path = log(tmp_path / "instances.log", pieces)
    for call in (
        lambda: lagging.read(path, level="spm"),
        lambda: Run.from_delays([[1]], source_length=[1], level="spm"),
    ):
        with pytest.raises(UsageError, match=r"level spm needs a SentencePiece model[\s\S]*fix: spm_model=FILE"):
            call()
    with pytest.raises(UsageError, match="goes with level spm, not with word"):
        lagging.read(path, level="word", spm_model=model)
    with pytest.raises(UsageError, match="which has not been given"):
        resolve_level("spm-00000000", None)
    with pytest.raises(UsageError, match="cannot read the SentencePiece model nowhere: No such file"):
        load_spm("nowhere")
    for content in (b"", b"not a model"):
        (tmp_path / "bad.model").write_bytes(content)
        with pytest.raises(UsageError, match=r"bad\.model is not a SentencePiece model"):
            load_spm(tmp_path / "bad.model")


def test_pieces_in_a_log_of_sltev(model, pieces, tmp_path) -> None:
    (tmp_path / "a.slt").write_text("P 1 0 1 the cat\nC 3 0 3 the cat sat\n")
    run = lagging.read(tmp_path / "a.slt", spm_model=model)
    said = pieces("the cat")
    assert run.delays.tolist() == [[1] * len(said) + [3] * (len(pieces("the cat sat")) - len(said))]
    lost = lagging.write(run, tmp_path / "b.slt")
    assert lost == ["document", "level (read it with --level spm --spm-model FILE)"]
    assert lagging.read(tmp_path / "b.slt", spm_model=model).delays == run.delays


def test_metrics_that_need_words(model, pieces, tmp_path) -> None:
    run = lagging.read(log(tmp_path / "instances.log", pieces), level="spm", spm_model=model)
    with pytest.raises(lagging.MetricError, match="not words of the text"):
        lagging.score(run, ["LBLEU"])
    with pytest.raises(UsageError, match="the delays count the pieces of a model"):
        lagging.strip(run, "punctuation")


def test_without_the_package(model, monkeypatch) -> None:
    monkeypatch.setattr("lagging.data.tokens._MODELS", {})
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lagging\[spm\]'"):
        load_spm(model)
