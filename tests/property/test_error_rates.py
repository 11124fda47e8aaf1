# SPDX-License-Identifier: Apache-2.0
"""WER and CER are those of jiwer, and exact."""

import json

import jiwer
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st

import lagging
import oracle
from lagging.cli import cli
from lagging.metrics.error_rates import count_errors, normalise

LETTERS = st.sampled_from([*"abcAB ,.'-", " ", "\t", "\u3000", "你", "é", "¿", "«"])
TEXTS = st.text(LETTERS, max_size=25)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6)
OUTPUTS = {"WER": jiwer.process_words, "CER": jiwer.process_characters}


def by_jiwer(name, norm, pairs):
    """What jiwer makes of texts that are already normalised."""
    plain = jiwer.Compose([jiwer.ReduceToListOfListOfWords() if name == "WER" else jiwer.ReduceToListOfListOfChars()])
    hypotheses, references = ([normalise(text, norm) for text in texts] for texts in zip(*pairs, strict=True))
    return OUTPUTS[name](references, hypotheses, reference_transform=plain, hypothesis_transform=plain)


@settings(max_examples=150)
@given(PAIRS, st.sampled_from(["none", "lower-nopunct"]), st.sampled_from(["WER", "CER"]))
@example([("It's  FINE.", "its fine"), ("", "a b"), ("a", ".")], "lower-nopunct", "WER")
def test_error_rates_are_those_of_jiwer(pairs, norm, name):
    hypotheses, references = zip(*pairs, strict=True)
    run = lagging.Run.from_texts(hypotheses, reference=references)
    score = lagging.score(run, [f"{name}(norm={norm})"], convention="simuleval")[f"{name}(norm={norm})"]
    judged = [pair for pair in pairs if normalise(pair[1], norm)]
    assert int(score.undefined) == len(pairs) - len(judged)
    if not judged:
        assert np.isnan(score.value)
        assert score.counts == {}
        return
    want = by_jiwer(name, norm, judged)
    total = want.substitutions + want.deletions + want.insertions
    length = want.hits + want.substitutions + want.deletions
    assert score.value == pytest.approx(100 * (want.wer if name == "WER" else want.cer), rel=1e-14)
    assert score.counts == {
        "substitutions": want.substitutions,
        "deletions": want.deletions,
        "insertions": want.insertions,
    }
    assert score.value == 100 * total / length
    rates = [by_jiwer(name, norm, [pair]) for pair in judged]
    expected = [100 * (one.wer if name == "WER" else one.cer) for one in rates]
    np.testing.assert_allclose(score.segments[~np.isnan(score.segments)], expected, rtol=1e-14)


def brute_force(hypothesis, reference):
    """The fewest errors, by the recursion that defines them."""
    if not hypothesis or not reference:
        return len(hypothesis) + len(reference)
    (*h, x), (*r, y) = hypothesis, reference
    if x == y:
        return brute_force(h, r)
    return 1 + min(brute_force(h, reference), brute_force(hypothesis, r), brute_force(h, r))


@settings(max_examples=60)
@given(st.lists(st.sampled_from("ab"), max_size=5), st.lists(st.sampled_from("abc"), max_size=5))
def test_no_other_alignment_has_fewer_errors(hypothesis, reference):
    errors = count_errors(hypothesis, reference)
    assert sum(errors) == brute_force(hypothesis, reference)
    assert errors[2] - errors[1] == len(hypothesis) - len(reference)
    assert min(errors) >= 0


def test_the_normalisation_is_that_of_jiwers_own_steps():
    """Lower case, and no punctuation: categories P of Unicode, of which jiwer removes the same."""
    steps = jiwer.Compose([jiwer.ToLowerCase(), jiwer.RemovePunctuation(), jiwer.RemoveMultipleSpaces(), jiwer.Strip()])
    for text in ("It's FINE, «Ana» — ¿sí?", "100 % of $5+3", "你好，世界。", "…"):
        assert normalise(text, "lower-nopunct") == steps(text)


def test_the_counts_are_in_the_json_and_the_normalisation_in_the_signature(tmp_path):
    rows = [("the cat sat", "The cat, sat"), ("on mat", "on the mat"), ("a b", "")]
    log = tmp_path / "log.jsonl"
    log.write_text(
        "".join(json.dumps({"prediction": h, "reference": r, "lang": "de"}) + "\n" for h, r in rows), encoding="utf-8"
    )
    found = {}
    for more in ((), ("--ci",), ("--by", "lang"), ("--jobs", "2")):
        command = ["score", str(log), "-m", "WER,WER(norm=lower-nopunct),CER", "-f", "json", "-q", *more]
        ran = CliRunner().invoke(cli, command)
        assert ran.exit_code == 0, ran.output
        for score in json.loads(ran.stdout)["scores"]:
            counts = {name: score[name] for name in ("substitutions", "deletions", "insertions")}
            key = (score["metric"], score["score"], score["undefined"], *counts.values())
            assert found.setdefault(score["metric"], key) == key
            norm = "lower-nopunct" if "lower" in score["metric"] else "none"
            assert f"|norm:{norm}|" in score["signature"]
    assert found["WER"] == ("WER", 100 * 3 / 6, 1, 2, 1, 0)
    assert found["WER(norm=lower-nopunct)"][1:] == (100 / 6, 1, 0, 1, 0)


@pytest.mark.parametrize("name", ["WER", "CER", "WER(norm=lower-nopunct)", "CER(norm=lower-nopunct)"])
def test_like_repeats_an_error_rate(tmp_path, name):
    log = tmp_path / "log.jsonl"
    log.write_text('{"prediction": "A b.", "reference": "a b c"}\n{"prediction": "d", "reference": "D, e"}\n')
    assert lagging.metric(name).higher_is_better is False
    made, again = (
        CliRunner().invoke(cli, ["score", str(log), *how, "-f", "json"])
        for how in (("-m", name), ("--like", str(lagging.score(lagging.read(log), [name])[name].signature)))
    )
    assert made.exit_code == again.exit_code == 0, again.output
    assert json.loads(made.stdout) == json.loads(again.stdout)
    assert "the signature given has" not in again.stderr


@settings(max_examples=60)
@given(PAIRS, st.sampled_from(["none", "lower-nopunct"]))
def test_error_rates_are_exact(pairs, norm):
    hypotheses, references = ([normalise(text, norm) for text in side] for side in zip(*pairs, strict=True))
    run = lagging.Run.from_texts([h for h, _ in pairs], reference=[r for _, r in pairs])
    for name, split in (("WER", str.split), ("CER", list)):
        named = f"{name}(norm={norm})"
        score = lagging.score(run, [named])[named]
        expected = oracle.error_rate([(split(h), split(r)) for h, r in zip(hypotheses, references, strict=True)])
        assert np.isnan(score.value) if expected is None else score.value == pytest.approx(float(expected), rel=1e-14)
        for segment, h, r in zip(score.segments, hypotheses, references, strict=True):
            alone = oracle.error_rate([(split(h), split(r))])
            assert np.isnan(segment) if alone is None else segment == pytest.approx(float(alone), rel=1e-14)
