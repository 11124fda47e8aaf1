# SPDX-License-Identifier: Apache-2.0
"""The numbers of sacreBLEU's --confidence, --paired-bs and --paired-ar, of the same seed.

sacreBLEU adds up in single precision, so that its scores have about seven digits; nothing else differs.
"""

import numpy as np
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest

import lagging
from lagging.comparison.pairs import paired
from lagging.scoring.intervals import interval

WORDS = ["the", "a", "cat", "dog", "house", "of", "on", "in", "and", "was", "saw", "went", "home", "old", "man", "it"]
N = 150
METRICS = {"BLEU": sacrebleu.BLEU, "chrF": sacrebleu.CHRF, "TER": sacrebleu.TER}


@pytest.fixture(scope="module")
def texts():
    dice = np.random.default_rng(11)
    references = [dice.choice(WORDS, dice.integers(4, 25)).tolist() for _ in range(N)]

    def system(noise):
        kept = [[w if dice.random() > noise else str(dice.choice(WORDS)) for w in words] for words in references]
        return [" ".join(words) for words in kept]

    return system(0.35), system(0.37), [" ".join(words) for words in references]


def scores(predictions, references, names):
    delays = [list(range(1, len(p.split()) + 1)) for p in predictions]
    run = lagging.Run.from_delays(
        delays, source_length=[30] * N, prediction=predictions, reference=references, level="word"
    )
    return lagging.score(run, names)


@pytest.mark.parametrize("name", ["BLEU", "chrF", "TER"])
def test_confidence(texts, name) -> None:
    base, _, references = texts
    want = METRICS[name]().corpus_score(base, [references], n_bootstrap=1000)
    got = interval(scores(base, references, [name])[name], method="sacrebleu", resamples=1000)
    assert (got.low + got.high) / 2 == pytest.approx(want._mean, rel=1e-6)
    assert (got.high - got.low) / 2 == pytest.approx(want._ci, rel=1e-5)


@pytest.mark.parametrize(("test", "kind", "resamples"), [("bootstrap", "bs", 1000), ("randomisation", "ar", 2000)])
def test_paired(texts, test, kind, resamples) -> None:
    base, new, references = texts
    theirs = PairedTest(
        [("base", base), ("new", new)],
        {name: make() for name, make in METRICS.items()},
        [references],
        test_type=kind,
        n_samples=resamples,
    )()[1]
    systems = {"base": scores(base, references, list(METRICS)), "new": scores(new, references, list(METRICS))}
    ours = paired(systems, test=test, method="sacrebleu", resamples=resamples)
    for pair in ours.pairs:
        # a list of the base's result, then of the system's
        want = next(result for name, result in theirs.items() if name.startswith(pair.metric.name))[1]
        assert pair.value_b == pytest.approx(want.score, rel=1e-9)
        assert pair.p == pytest.approx(want.p_value, abs=1e-12)
        assert 0.001 < pair.p < 1


def test_where_we_differ(texts) -> None:
    """Its bootstrap counts one tail of |d*|, and calls a system significantly different from itself."""
    base, new, references = texts
    one, other = (scores(text, references, ["BLEU"]) for text in (base, new))
    theirs, ours = (
        paired({"base": one, "new": other}, test="bootstrap", method=method, resamples=1000).pairs[0].p
        for method in ("sacrebleu", None)
    )
    assert ours > 1.5 * theirs
    same = {"base": one, "new": one}
    assert paired(same, test="randomisation", method="sacrebleu", resamples=999).pairs[0].p == 0.001
    assert paired(same, test="randomisation", resamples=999).pairs[0].p == 1.0
