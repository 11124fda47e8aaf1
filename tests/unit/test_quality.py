# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
import sacrebleu

import lagging

PREDICTIONS = ["the cat sat on the mat", "", "a dog barked at the old man", "he went home"]
REFERENCES = ["the cat sat on a mat", "it rained all day", "the dog barked at the old man", "he walked home early"]


def run():
    delays = [list(range(1, len(p.split()) + 1)) for p in PREDICTIONS]
    return lagging.Run.from_delays(
        delays, source_length=[8] * 4, prediction=PREDICTIONS, reference=[r + "\n" for r in REFERENCES]
    )


def test_quality_is_that_of_sacrebleu() -> None:
    scores = lagging.score(run(), ["BLEU", "chrF", "TER", "BLEU(tok=char)"])
    assert scores["BLEU"].value == sacrebleu.corpus_bleu(PREDICTIONS, [REFERENCES]).score
    assert scores["chrF"].value == pytest.approx(sacrebleu.corpus_chrf(PREDICTIONS, [REFERENCES]).score, abs=1e-12)
    assert scores["TER"].value == pytest.approx(sacrebleu.corpus_ter(PREDICTIONS, [REFERENCES]).score, abs=1e-12)
    assert scores["BLEU(tok=char)"].value == sacrebleu.corpus_bleu(PREDICTIONS, [REFERENCES], tokenize="char").score
    assert "tok:char" in str(scores["BLEU(tok=char)"].signature)
    expected = [sacrebleu.sentence_bleu(p, [r]).score for p, r in zip(PREDICTIONS, REFERENCES, strict=True)]
    np.testing.assert_allclose(scores["BLEU"].segments, expected, atol=1e-9)


@pytest.mark.parametrize("name", ["BLEU", "chrF", "TER"])
def test_many_sums_at_once_are_scored_as_sacrebleu_scores_one(name) -> None:
    metric, dice = lagging.metric(name), np.random.default_rng(6)
    if name == "TER":
        rows = dice.integers(0, 12, (500, 2))
    elif name == "chrF":
        hypothesis, reference = dice.integers(0, 9, (2, 500, 6)) * (dice.random((2, 500, 6)) > 0.2)
        rows = np.stack([hypothesis, reference, dice.integers(0, 1 + np.minimum(hypothesis, reference))], -1)
        rows = rows.reshape(500, 18)
    else:
        # falling totals, as n-grams are; some orders without a match, some without an n-gram
        total = np.maximum(dice.integers(0, 12, (500, 1)) - np.arange(4), 0)
        rows = np.hstack([total[:, :1], dice.integers(0, 14, (500, 1)), dice.integers(0, 1 + total), total])
    sums = np.array(rows, dtype=np.float64)
    want = [metric.aggregate(row[None]) for row in sums]
    np.testing.assert_allclose(metric.from_sums(sums), want, rtol=1e-13, atol=1e-300)
    np.testing.assert_array_equal(metric.from_sums(sums.reshape(5, 100, -1)).ravel(), metric.from_sums(sums))
    assert len(set(want)) > 30


def test_signature_is_that_of_sacrebleu() -> None:
    metric = sacrebleu.BLEU()
    metric.corpus_score(PREDICTIONS, [REFERENCES])
    inner = str(metric.get_signature())
    assert str(lagging.score(run(), ["BLEU"])["BLEU"].signature) == f"BLEU|seg:none|{inner}|n:4|v:{lagging.__version__}"


def test_no_text_no_quality() -> None:
    with pytest.raises(lagging.MetricError, match="no references"):
        lagging.score(lagging.Run.from_delays([[1]], source_length=[1], prediction=["a"]), ["BLEU"])
    with pytest.raises(lagging.MetricError, match="no predictions"):
        lagging.score(lagging.Run.from_delays([[1]], source_length=[1], reference=["a"]), ["BLEU"])


def oracle(prediction: str, reference: str, delays: list[int], length: int) -> list[float]:
    """BLEU of the partial translation after each source token, one by one."""
    words = prediction.split()
    partial = [" ".join(w for w, g in zip(words, delays, strict=True) if g <= j) for j in range(1, length + 1)]
    return [sacrebleu.sentence_bleu(text, [reference]).score if text else 0.0 for text in partial]


def test_latency_bleu_is_the_mean_over_source_tokens() -> None:
    delays = [3, 3, 4, 6, 6, 6]
    one = lagging.Run.from_delays([delays], source_length=[6], prediction=PREDICTIONS[:1], reference=REFERENCES[:1])
    partial = oracle(PREDICTIONS[0], REFERENCES[0], delays, 6)
    plain, weighted = lagging.score(one, ["LBLEU", "LBLEU(final=weighted)"])
    assert plain.value == pytest.approx(sum(partial) / 6, rel=1e-12)
    assert weighted.value == pytest.approx(sum(partial) / 6 + 6 * partial[-1], rel=1e-12)
    assert plain.signature["sacrebleu"] == sacrebleu.__version__
    assert weighted.signature.metric == "LBLEU(final=weighted)"


def test_latency_bleu_edges() -> None:
    texts = {"prediction": ["", "a b"], "reference": ["a b", None]}
    score = lagging.score(lagging.Run.from_delays([[], [1, 2]], source_length=[2, 2], **texts), ["LBLEU"])["LBLEU"]
    assert score.segments[0] == 0
    assert score.undefined.reasons == {"no reference": (1,)}
    chars = lagging.Run.from_delays([[1, 2]], source_length=[2], prediction=["你好"], reference=["你好"])
    assert lagging.score(chars, ["LBLEU(tok=zh)"])["LBLEU(tok=zh)"].value > 0
    with pytest.raises(lagging.MetricError, match="source tokens only"):
        lagging.score(
            lagging.Run.from_delays([[1]], source_length=[1], prediction=["a"], reference=["a"], unit="ms"), ["LBLEU"]
        )
    with pytest.raises(lagging.MetricError, match="not words of the text"):
        lagging.score(
            lagging.Run.from_delays([[1, 1]], source_length=[1], prediction=["abc"], reference=["a"], level="token"),
            ["LBLEU"],
        )


def test_a_kept_end_mark_is_one_token_of_latency_bleu() -> None:
    """Characters: after the third token all of "你好</s>" is written, not "你好<"."""
    chars = {"prediction": ["你好</s>"], "reference": ["你好"], "level": "char"}
    run = lagging.Run.from_delays([[1, 2, 3]], source_length=[3], **chars)
    partial = [
        sacrebleu.sentence_bleu(text, ["你好"], tokenize="char", use_effective_order=True).score
        for text in ("你", "你好", "你好</s>")
    ]
    name = "LBLEU(tok=char)"
    kept = lagging.score(run, [name], convention="simuleval")[name]
    assert kept.signature["eos"] == "kept"
    assert kept.value == pytest.approx(sum(partial) / 3)
    assert lagging.score(run, [name])[name].value == pytest.approx((partial[0] + 2 * partial[1]) / 3)


def test_earlier_is_better_in_latency_bleu() -> None:
    texts = {"prediction": PREDICTIONS[:1], "reference": REFERENCES[:1]}
    early = lagging.policies.wait_k(1).delays(6, 6)
    late = lagging.policies.offline().delays(6, 6)
    values = [
        lagging.score(lagging.Run.from_delays([g], source_length=[6], **texts), ["LBLEU"])["LBLEU"].value
        for g in (early, late)
    ]
    assert values[0] > values[1]


@pytest.mark.slow
def test_systems_on_one_test_set_share_the_tokens_of_its_references(monkeypatch) -> None:
    from lagging.metrics.lexicon import Lexicon

    encoded = []
    encode = Lexicon._encode
    monkeypatch.setattr(Lexicon, "_encode", lambda self, lines: encoded.append(lines) or encode(self, lines))
    references = [f"reference {n}, of one test set" for n in range(2588)]
    systems = {f"s{k}": [f"hypothesis {n}, of system {k}" for n in range(2588)] for k in range(10)}
    runs = {name: lagging.Run.from_texts(texts, reference=references) for name, texts in systems.items()}
    lagging.compare(runs, ["BLEU"], resamples=10)
    assert encoded.count(tuple(references)) == 1
    assert len(encoded) == 11


def test_threads_share_a_lexicon() -> None:
    from concurrent.futures import ThreadPoolExecutor

    from lagging.metrics.quality import _lexicon

    _lexicon("13a").clear()
    texts = [[f"word{n * m}, and {n + m}." for n in range(300)] for m in range(8)]
    runs = [lagging.Run.from_texts(hypotheses, reference=texts[0]) for hypotheses in texts]
    with ThreadPoolExecutor(8) as pool:
        values = list(pool.map(lambda each: lagging.score(each, ["BLEU"])["BLEU"].value, runs))
    assert values == [sacrebleu.corpus_bleu(hypotheses, [texts[0]]).score for hypotheses in texts]
