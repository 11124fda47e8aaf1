# SPDX-License-Identifier: Apache-2.0
"""Quality beside latency: BLEU, chrF, chrF++ and TER as sacreBLEU computes them, and Latency BLEU.

Their statistics are sacreBLEU's, one row per segment, so latency and quality can use the same resamples. sacreBLEU has
the tokenizers, the formulas and the signatures; n-grams are counted by `ngrams.py`, for many segments at once, and
tests compare every count with sacreBLEU's. sacreBLEU is imported when a quality metric is first computed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from lagging.data.ragged import Floats, Ints
from lagging.data.tokens import spans
from lagging.errors import MetricError, MetricNameError, UnavailableError
from lagging.metrics.lexicon import Lexicon, encode_characters
from lagging.metrics.ngrams import Symbols, count_matches, count_ngrams
from lagging.metrics.record import Metric, Param
from lagging.metrics.registry import register
from lagging.metrics.shifts import count_edits

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as SacreMetric
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    from lagging.metrics.schedule import Schedule

Texts = tuple[str, ...]
Count = Callable[[Texts, Texts], Ints | Floats]
"""Hypotheses and references → a row of statistics for each segment."""

SEGMENTS_AT_ONCE = 1 << 12
"""Statistics of so many segments are counted at once, so that little memory is used."""

WORDS = 2
"""The highest order of n-grams of words in chrF++."""

BY_WORD = ("13a", "none", "char")
"""Tokenizers of sacreBLEU to which it does not matter what stands before and after a word."""

SMOOTHINGS = ("exp", "floor", "add-k", "none")
POST = """\
@inproceedings{post-2018-call,
  title     = {A Call for Clarity in Reporting {BLEU} Scores},
  author    = {Post, Matt},
  booktitle = {Proceedings of the Third Conference on Machine Translation: Research Papers},
  year      = {2018}
}"""
NO_REFERENCE = "No reference, or an empty one: the segment is left out, and counted as undefined."
TOK = Param("tok", "13a", "sacreBLEU's tokenizer; zh, ja-mecab, ko-mecab or char for scripts without spaces", (), str)


def _bleu(tok: str = "13a", **options: Any) -> BLEU:
    from sacrebleu.metrics.bleu import BLEU

    if tok not in BLEU.TOKENIZERS:
        names = ", ".join(sorted(map(str, BLEU.TOKENIZERS)))
        raise MetricNameError(f"sacreBLEU has no tokenizer {tok!r}; it has {names}")
    try:
        return BLEU(tokenize=tok, force=True, **options)
    except OSError as error:  # flores101, flores200 and spm fetch a model when they are first used
        raise UnavailableError(
            f"sacreBLEU could not fetch the model of its tokenizer {tok}: {error}\n"
            "  fix: use it once where there is a network; it keeps the model in ~/.sacrebleu, or in $SACREBLEU."
        ) from None
    except (ImportError, RuntimeError):
        extra = {"ja-mecab": "ja", "ko-mecab": "ko"}.get(tok, "spm")
        raise UnavailableError(
            f"sacreBLEU's tokenizer {tok} is not installed here: pip install 'lagging[{extra}]'"
        ) from None


def _chrf(words: int = 0) -> CHRF:
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(word_order=words)


def _ter() -> TER:
    from sacrebleu.metrics.ter import TER

    return TER()


def _statistics(s: Schedule, count: Count) -> Floats:
    """The sufficient statistics, in sacreBLEU's sense, of each segment; NaN where there is no reference."""
    judged = [bool(reference) for reference in s.references]
    hypotheses = [text or "" for text in compress(s.predictions, judged)]
    references = [text or "" for text in compress(s.references, judged)]
    # no texts at the end, so that the number of columns is known even if no segment has a reference
    parts = [slice(start, start + SEGMENTS_AT_ONCE) for start in range(0, len(references) + 1, SEGMENTS_AT_ONCE)]
    rows = np.concatenate([count(tuple(hypotheses[part]), tuple(references[part])) for part in parts])
    statistics = np.full((len(judged), rows.shape[1]), np.nan)
    statistics[judged] = rows
    return statistics


@cache
def _lexicon(tok: str) -> Lexicon:
    """The numbers of the tokens that sacreBLEU's tokenizer makes."""
    tokenizer = _bleu(tok).tokenizer
    if tok not in BY_WORD:
        return Lexicon(lambda line: tokenizer(line).split())
    if tok == "13a":  # it separates punctuation alone
        return Lexicon(lambda word: [word] if word.isalnum() else tokenizer(word).split(), by_word=True)
    return Lexicon(lambda word: tokenizer(word).split(), by_word=True)


def _bleu_counts(tok: str) -> Count:
    """The statistics that sacreBLEU has for BLEU: |hyp|, |ref|, 4 × correct, 4 × total."""

    def count(hypotheses: Texts, references: Texts) -> Ints:
        ours, theirs = _lexicon(tok).encode(hypotheses, references)
        lengths = [ours.lengths[:, None], theirs.lengths[:, None]]
        return np.hstack([*lengths, count_matches(ours, theirs, 4), count_ngrams(ours, 4)])

    return count


@cache
def _chrf_lexicon() -> Lexicon:
    """The numbers of the words of chrF++, which has an own way to separate punctuation."""
    return Lexicon(_chrf()._remove_punctuation, by_word=True)


def _chrf_counts(words: int) -> Count:
    """The statistics that sacreBLEU has for chrF: |hyp|, |ref| matches of characters (6 orders), then of words."""

    def triples(ours: Symbols, theirs: Symbols, order: int) -> Ints:
        total = count_ngrams(theirs, order)
        # sacreBLEU does not count n-grams of an order that the reference does not have
        written = np.where(total > 0, count_ngrams(ours, order), 0)
        return np.stack([written, total, count_matches(ours, theirs, order)], axis=-1).reshape(len(total), 3 * order)

    def count(hypotheses: Texts, references: Texts) -> Ints:
        columns = [triples(*encode_characters(hypotheses, references), 6)]
        if words:
            columns.append(triples(*_chrf_lexicon().encode(hypotheses, references), words))
        return np.hstack(columns)

    return count


def _ter_counts(hypotheses: Texts, references: Texts) -> Floats:
    """The statistics that sacreBLEU has for TER: edits and the length of the reference."""
    words = _ter_words()
    pairs = [(words(h), words(r)) for h, r in zip(hypotheses, references, strict=True)]
    return np.array([(count_edits(h, r), len(r)) for h, r in pairs], dtype=np.float64).reshape(-1, 2)


@cache
def _ter_words() -> Callable[[str], list[str]]:
    """The words of a text as TER sees them."""
    tokenizer = _ter().tokenizer
    return lambda text: str(tokenizer(text.rstrip())).split()


def _corpus(make: Callable[[], SacreMetric]) -> Callable[[Floats], float]:
    scorer = cache(make)

    def corpus(rows: Floats) -> float:
        total: list[Any] = [int(n) if n == int(n) else float(n) for n in rows.sum(axis=0)]
        return float(scorer()._compute_score_from_stats(total).score)

    return corpus


def _each(make: Callable[[], SacreMetric]) -> Callable[[Floats], Floats]:
    corpus = _corpus(make)
    return lambda rows: np.array([np.nan if np.isnan(row).any() else corpus(row[None]) for row in rows])


def _bleu_from_sums(sums: Floats) -> Floats:
    """Corpus BLEU of sacreBLEU, smooth:exp, from sums of its statistics: |hyp|, |ref|, 4 × correct, 4 × total."""
    hypothesis, reference, correct, total = sums[..., 0], sums[..., 1], sums[..., 2:6], sums[..., 6:10]
    # from the first order without n-grams on, precisions stay 0
    defined = np.logical_and.accumulate(total > 0, axis=-1)
    halved = np.cumsum(defined & (correct == 0), axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(correct > 0, correct, 0.5**halved) * 100 / total
        log = np.where(defined, np.log(precision), NO_PRECISION).mean(axis=-1)
        short = np.where(hypothesis < reference, 1 - reference / hypothesis, 0)
        return np.where((correct > 0).any(axis=-1), np.exp(short + log), 0.0)


NO_PRECISION = -9999999999
"""What sacreBLEU uses as the logarithm of 0."""


def _chrf_from_sums(sums: Floats) -> Floats:
    """The chrF or chrF++ of sacreBLEU, from sums of |hyp|, |ref|, matches of each order; only orders that both have."""
    hypothesis, reference, match = (sums[..., column::3] for column in range(3))
    both = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(both.sum(axis=-1), 1)
    precision, recall = (
        np.where(both, match / np.where(both, total, 1), 0).sum(axis=-1) / orders for total in (hypothesis, reference)
    )
    denominator = 4 * precision + recall
    return np.asarray(100 * 5 * precision * recall / np.where(denominator > 0, denominator, 1))


def _ter_from_sums(sums: Floats) -> Floats:
    """The TER of sacreBLEU, from sums of edits and reference lengths."""
    edits, length = sums[..., 0], sums[..., 1]
    return np.asarray(100 * np.where(length > 0, edits / np.where(length > 0, length, 1), edits > 0))


def _signature(make: Callable[..., SacreMetric]) -> Callable[[Metric], tuple[tuple[str, str], ...]]:
    def describe(metric: Metric) -> tuple[tuple[str, str], ...]:
        scorer = make(**{param.name: metric.get(param.name) for param in metric.params})
        scorer.num_refs = 1
        fields = str(scorer.get_signature()).split("|")
        return tuple((key, value) for key, _, value in (field.partition(":") for field in fields))

    return describe


@register(
    "BLEU",
    unit="points",
    higher_is_better=True,
    clocked=False,
    needs={"prediction", "reference"},
    params=(TOK,),
    aggregate=_corpus(_bleu),  # the statistics are already tokenized
    from_sums=_bleu_from_sums,
    segment_values=_each(partial(_bleu, effective_order=True)),
    describe=_signature(_bleu),
    describe_segments=(("eff", "yes"),),
    summary="Corpus BLEU as sacreBLEU computes it, with its signature.",
    formula="as sacreBLEU",
    paper="Papineni et al. 2002; Post 2018",
    bibtex=POST,
    edge_cases=(
        NO_REFERENCE,
        "An empty hypothesis counts: it translates nothing.",
        "The value of a segment is its sentence BLEU, with effective order.",
    ),
)
def _bleu_metric(s: Schedule, *, tok: str = "13a") -> Floats:
    return _statistics(s, _bleu_counts(tok))


@register(
    "chrF",
    unit="points",
    higher_is_better=True,
    clocked=False,
    needs={"prediction", "reference"},
    aggregate=_corpus(_chrf),
    from_sums=_chrf_from_sums,
    segment_values=_each(_chrf),
    describe=_signature(_chrf),
    summary="chrF as sacreBLEU computes it, with its signature.",
    formula="as sacreBLEU",
    paper="Popović 2015; Post 2018",
    bibtex=POST,
    edge_cases=(NO_REFERENCE, "An empty hypothesis counts: it translates nothing."),
)
def _chrf_metric(s: Schedule) -> Floats:
    return _statistics(s, _chrf_counts(0))


@register(
    "chrF++",
    unit="points",
    higher_is_better=True,
    clocked=False,
    needs={"prediction", "reference"},
    aliases=("chrFpp",),
    aggregate=_corpus(partial(_chrf, WORDS)),
    from_sums=_chrf_from_sums,
    segment_values=_each(partial(_chrf, WORDS)),
    describe=_signature(partial(_chrf, WORDS)),
    summary="chrF++, which counts words and pairs of words beside characters, as sacreBLEU computes it.",
    formula="as sacreBLEU, with word_order = 2",
    paper="Popović 2017; Post 2018",
    bibtex=POST,
    edge_cases=(NO_REFERENCE, "An empty hypothesis counts: it translates nothing."),
)
def _chrf_plus_plus(s: Schedule) -> Floats:
    return _statistics(s, _chrf_counts(WORDS))


@register(
    "TER",
    unit="points",
    clocked=False,
    needs={"prediction", "reference"},
    aggregate=_corpus(_ter),
    from_sums=_ter_from_sums,
    segment_values=_each(_ter),
    describe=_signature(_ter),
    summary="Translation Edit Rate as sacreBLEU computes it, with its signature.",
    formula="as sacreBLEU",
    paper="Snover et al. 2006; Post 2018",
    bibtex=POST,
    edge_cases=(NO_REFERENCE, "An empty hypothesis counts: it translates nothing."),
)
def _ter_metric(s: Schedule) -> Floats:
    return _statistics(s, _ter_counts)


def _sentence_bleu_signature(metric: Metric) -> tuple[tuple[str, str], ...]:
    import sacrebleu

    fields = {
        "eff": "yes",
        "tok": metric.get("tok"),
        "smooth": metric.get("smooth"),
        "sacrebleu": sacrebleu.__version__,
    }
    return tuple((key, str(value)) for key, value in fields.items())


@register(
    "LBLEU",
    unit="points",
    higher_is_better=True,
    clocked=False,
    needs={"prediction", "reference", "tokens"},
    params=(
        Param("smooth", "exp", "sacreBLEU's smoothing of sentence BLEU", SMOOTHINGS),
        Param("final", "none", "weighted: add |x| times the BLEU of the final translation", ("none", "weighted")),
        TOK,
    ),
    describe=_sentence_bleu_signature,
    summary="Latency BLEU: BLEU of the partial translation after each source token, averaged over the source tokens.",
    formula="LBLEU = (1/|x|) Σ_j BLEU(y_1 … y_n with g(n) ≤ j, reference), j = 1 … |x|",
    latex=r"\mathrm{LBLEU} = \frac{1}{|x|} \sum_{j=1}^{|x|} \mathrm{BLEU}(\{y_t : g(t) \le j\},\, y^*)",
    paper="Grissom II et al. 2014, as Cherry & Foster 2019 describe it",
    bibtex="""\
@inproceedings{grissom-ii-etal-2014-dont,
  title     = {Don't Until the Final Verb Wait: Reinforcement Learning for Simultaneous Machine Translation},
  author    = {Grissom II, Alvin and He, He and Boyd-Graber, Jordan and Morgan, John and Daum{\\'e} III, Hal},
  booktitle = {Proceedings of the 2014 Conference on Empirical Methods in Natural Language Processing (EMNLP)},
  year      = {2014}
}""",
    edge_cases=(
        NO_REFERENCE,
        "Source tokens only: it is not defined for milliseconds.",
        "An empty partial translation scores 0, so an empty hypothesis scores 0.",
        "Sentence BLEU with brevity penalty, effective order and the smoothing `smooth`.",
        "`final=weighted` adds |x|·BLEU(final translation), as the original reward does.",
    ),
)
def _lbleu(s: Schedule, *, smooth: str = "exp", final: str = "none", tok: str = "13a") -> Floats:
    if s.run.level not in ("word", "char"):
        raise MetricError("it needs to know which words had been written, and the tokens are not words of the text")
    scorer = _bleu(tok, smooth_method=smooth, effective_order=True)
    values = np.full(len(s.run), np.nan)
    for row, (text, reference) in enumerate(zip(s.predictions, s.references, strict=True)):
        length = int(s.x[row])
        if not reference or not length:
            continue
        prefix = _prefixes(text or "", s.run.level)
        # the number of j at which exactly n tokens were written: from g(n), or 1, to g(n+1), or |x| + 1
        edges = np.clip(np.ceil([1.0, *s.g[row], length + 1.0]), 1, length + 1)
        times = np.diff(edges)
        bleus = [_sentence_bleu(scorer, prefix[n], reference) if times[n] else 0.0 for n in range(len(times))]
        values[row] = np.dot(bleus, times) / length
        if final == "weighted":
            values[row] += length * _sentence_bleu(scorer, prefix[-1], reference)
    return values


def _prefixes(text: str, level: str) -> list[str]:
    """The text after 0, 1, 2, … tokens."""
    if level == "char":
        return ["", *(text[:stop] for stop in spans(text, level)[2])]
    words = text.split()
    return [" ".join(words[:n]) for n in range(len(words) + 1)]


def _sentence_bleu(scorer: SacreMetric, text: str, reference: str) -> float:
    return float(scorer.sentence_score(text, [reference]).score) if text else 0.0
