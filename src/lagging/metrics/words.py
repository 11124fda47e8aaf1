# SPDX-License-Identifier: Apache-2.0
"""How long after its own source word was spoken a word appeared, where the times of the source words are known.

A source word is found in the output by its text, as in speech recognition, or by a word alignment, as in translation.
By text: the source words, joined by single spaces, and the output are aligned letter by letter, with the fewest edits
(Levenshtein). A source word is matched if one of its letters is aligned with an equal letter; the last such letter says
which target token it is. Case and punctuation count. Of several alignments with the fewest edits, rapidfuzz's is taken;
`docs/word-lag.md` and `tests/oracle_words.py` say which that is. `letters.py` has the alignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lagging.data.ragged import Floats, Ints, Ragged
from lagging.data.tokens import spans, tokens
from lagging.errors import MetricError
from lagging.metrics.asr_latency import compared_words
from lagging.metrics.letters import equal_letters
from lagging.metrics.record import Metric, Param
from lagging.metrics.registry import register

if TYPE_CHECKING:
    from lagging.data.spoken import Spoken
    from lagging.metrics.schedule import Schedule

__all__ = ["Pairs", "match_words", "pair_words"]

OF = Param("of", "end", "from which time of the source word: its end or its start", ("end", "start"))
PAIRS = Param(
    "pairs",
    "words",
    "what is compared: each source word that is found, once, or what ufal/asr_latency compares, to repeat its numbers",
    ("words", "asr_latency"),
)
NEEDS = frozenset({"spoken", "prediction", "level"})
ASR = "Macháček & Polák 2025 (ufal/asr_latency), with the differences stated on the page on word lag"
BIBTEX = """\
@inproceedings{machacek-polak-2025-simultaneous,
  title     = {Simultaneous Translation with Offline Speech and {LLM} Models in {CUNI} Submission to {IWSLT} 2025},
  author    = {Mach{\\'a}{\\v{c}}ek, Dominik and Pol{\\'a}k, Peter},
  booktitle = {Proceedings of the 22nd International Conference on Spoken Language Translation (IWSLT 2025)},
  year      = {2025}
}"""
UNMATCHED = "no word times, or no source word is found in the output"
INPUT = "Needs `--word-times`; with `--word-alignment`, source words are found by it, else by their text."
SEVERAL = "Aligned with several target tokens, a source word appears with the last of them to appear."
CORPUS = "The corpus value is a mean over words, not over segments."


def match_words(words: Sequence[str], text: str, level: str = "word") -> Ints:
    """The target token in which each word ends, by the text; −1 for a word that the text does not have.

    Args:
        words: the words to be found.
        text: the output.
        level: what a target token is.

    Example:
        >>> match_words(["Hello,", "this", "is", "Ann"], "hello this was Anna")
        array([0, 1, 2, 3])
        >>> match_words(["auto", "completion", "now"], "auto-completion")
        array([ 0,  0, -1])
    """
    if level == "word":
        text = " ".join(text.split())
    _, starts, stops = spans(text, level)
    separator = "" if level == "char" and not any(map(str.isspace, text)) else " "
    letters = separator.join(words)
    lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
    word_of = np.repeat(np.arange(len(words)), lengths + len(separator))[: len(letters)]
    token_of = np.full(len(text) + 1, -1)
    for token, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        token_of[start:stop] = token
    last_tokens = np.full(len(words), -1)
    if not len(words) or not text:
        return last_tokens
    ours, theirs = equal_letters(letters, text)
    printed = np.array([not letter.isspace() for letter in letters])[ours]
    np.maximum.at(last_tokens, word_of[ours[printed]], token_of[theirs[printed]])
    return last_tokens


@dataclass(frozen=True)
class Pairs:
    """When each source word appeared, and each target word with the source words that it belongs to.

    Attributes:
        appeared: of each source word, when it appeared; NaN if it is not found.
        shown: of each target word, when it appeared; NaN if it never did. By text, target words are the source words.
        start, end: of each target word, the start of its first source word and the end of its last; NaN without one.
        owners: of each source word, the target token with which it appeared; −1 if it is not found.
    """

    appeared: Ragged
    shown: Ragged
    start: Ragged
    end: Ragged
    owners: Ragged


def pair_words(s: Schedule) -> Pairs:
    """The source and target words of a schedule.

    Raises:
        MetricError: there are no word times, or it is not known which token is which word.
    """
    spoken: Spoken = s.column("spoken")
    s.used.add("level")
    if s.run.unit != "ms":
        raise MetricError("word times are in milliseconds, and the delays of this log count source tokens")
    if s.run.seg != "none":
        raise MetricError("word times are those of whole recordings, and these are segments cut from them")
    if s.run.level == "token":
        raise MetricError(
            "the delays belong to tokens that are not words of the text\n  fix: name the `--level`, if they are."
        )
    return s.share("pairs of words", lambda: _pair_words(s, spoken))


def _pair_words(s: Schedule, spoken: Spoken) -> Pairs:
    rows: list[tuple[Floats | Ints, ...]] = []
    for row, (words, text) in enumerate(zip(spoken.words, s.predictions, strict=True)):
        g = s.g[row]
        start, end = spoken.start[row], spoken.end[row]
        written = tokens(text or "", s.run.level)
        if text and len(written) != len(g):
            raise MetricError(f"segment {s.run.id.item(row)} has {len(g)} delays for {len(written)} tokens of its text")
        charged = not written and len(g) == 1  # empty=source: everything appears at the end of the source
        if spoken.source is None or spoken.target is None:
            token = _find(words or (), text, s.run.level, charged)
            shown = _at(g, token)
            rows.append((shown, shown, start, end, token))
            continue
        if spoken.alignment.startswith("reference"):
            reference = s.references[row]
            if reference is None:
                raise MetricError(
                    f"the alignment is of the reference, and segment {s.run.id.item(row)} has none\n"
                    "  fix: give `--reference FILE`."
                )
            token = _find(tokens(reference, s.run.level), text, s.run.level, charged)
        else:
            token = np.arange(len(g))
        ours, theirs = spoken.source[row].astype(np.int64), spoken.target[row].astype(np.int64)
        kept = (theirs < len(token)) & (ours < len(start))  # a stripped </s> is no token
        rows.append(_aligned(ours[kept], theirs[kept], token, g, start, end))
    return Pairs(*(Ragged.from_rows(column) for column in zip(*rows, strict=True)))


def _find(words: Sequence[str], text: str | None, level: str, charged: bool) -> Ints:
    """The target token in which each of some words ends, by the text; −1 for none."""
    return np.zeros(len(words), dtype=np.int64) if charged else match_words(words, text or "", level)


def _at(times: Floats, places: Ints) -> Floats:
    """The times at these places; NaN for −1."""
    return np.concatenate([times, [np.nan]])[places]


def _aligned(ours: Ints, theirs: Ints, token: Ints, g: Floats, start: Floats, end: Floats) -> tuple[Floats | Ints, ...]:
    """The columns of `Pairs` for one segment, by a word alignment."""
    owners = np.full(len(start), -1)
    np.maximum.at(owners, ours, token[theirs])
    first, last = np.full(len(token), len(start)), np.full(len(token), -1)
    np.minimum.at(first, theirs, ours)
    np.maximum.at(last, theirs, ours)
    return _at(g, owners), _at(g, token), np.concatenate([start, [np.nan]])[first], _at(end, last), owners


def _lags(s: Schedule, of: str) -> Ragged:
    """The lag of every source word; NaN for one that is not found."""
    spoken: Spoken = s.column("spoken")
    since = spoken.end if of == "end" else spoken.start
    appeared = pair_words(s).appeared
    return Ragged.from_lengths(appeared.values - since.values, appeared.lengths)


def _sums(values: Ragged) -> Floats:
    """The sum of the numbers of each row, and how many they are; NaN for a row without any."""
    row = np.repeat(np.arange(len(values)), values.lengths)
    known = ~np.isnan(values.values)
    count = np.bincount(row[known], minlength=len(values)).astype(np.float64)
    total = np.bincount(row[known], values.values[known], minlength=len(values))
    return np.where(count[:, None] > 0, np.stack([total, count], axis=1), np.nan)


def _describe(metric: Metric) -> tuple[tuple[str, str], ...]:
    return (("of", str(metric.get("of"))),)


@register(
    "WordLag",
    needs=NEEDS,
    aggregate="ratio",
    params=(OF, PAIRS),
    describe=_describe,
    summary="How long after it was spoken a source word appeared in the output, on average.",
    formula="WordLag = mean over the source words k that are found of emission(k) − end(k)",
    latex=r"\mathrm{WordLag} = \frac{1}{|M|} \sum_{k \in M} \left( e_k - \mathrm{end}_k \right)",
    paper=ASR,
    bibtex=BIBTEX,
    edge_cases=(
        INPUT,
        "By text: the letters of both are aligned with the fewest edits; the last letter of a source word that is "
        "aligned with an equal one says when the word appeared. Case and punctuation count, spaces do not.",
        SEVERAL,
        "Source words that are not found are left out; WordsMatched says how many are found.",
        "Negative where a word appeared before it was spoken.",
        "`pairs=asr_latency` repeats the numbers of that tool, which counts some words more than once, and a lag below "
        "0 as 0; of texts of up to about 16 000 letters.",
        CORPUS,
    ),
    undefined=UNMATCHED,
)
def _word_lag(s: Schedule, *, of: str, pairs: str) -> Floats:
    return _sums(_lags(s, of) if pairs == "words" else _lags_of_the_tool(s, of))


def _lags_of_the_tool(s: Schedule, of: str) -> Ragged:
    """The lags that ufal/asr_latency averages."""
    spoken: Spoken = s.column("spoken")
    pairs = pair_words(s)
    if spoken.match != "text" or s.run.level != "word":
        raise MetricError("ufal/asr_latency finds words by their text, and each word has a time of its own")
    rows = []
    for row, (words, text) in enumerate(zip(spoken.words, s.predictions, strict=True)):
        if not text:  # charged with the end of the source, or undefined
            ours, shown = np.arange(len(words or ())), pairs.appeared[row]
        else:
            ours, theirs = compared_words(words or (), text.split()).T
            shown = s.g[row][theirs]
        rows.append(np.maximum(shown - (spoken.end if of == "end" else spoken.start)[row][ours], 0.0))
    return Ragged.from_rows(rows)


def _percentile(lags: Floats, *, p: float, of: str) -> Floats:
    return np.asarray(np.percentile(lags, p, axis=-1))


@register(
    "WordLagPercentile",
    needs=NEEDS,
    pool=_percentile,
    quantile="p",
    params=(Param("p", 90, "which percentile: from 0 to 100", kind=float, least=0, most=100), OF),
    describe=_describe,
    summary="The p-th percentile of the lags of all source words that are found in the output.",
    formula="WordLagPercentile(p) = the p-th percentile of emission(k) − end(k) over all source words k that are found",
    latex=r"\mathrm{WordLagPercentile}(p) = Q_p\{e_k - \mathrm{end}_k\}",
    paper="not from a paper; vendors of speech recognition publish p50, p90 and p99",
    edge_cases=(
        INPUT,
        "A percentile between two words is interpolated linearly.",
        "The value of a segment is the percentile of its own words; the corpus value is not their mean.",
        SEVERAL,
    ),
    undefined=UNMATCHED,
)
def _word_lag_percentile(s: Schedule, *, p: float, of: str) -> Ragged:
    lags = _lags(s, of)
    known = ~np.isnan(lags.values)
    row = np.repeat(np.arange(len(lags)), lags.lengths)
    return Ragged.from_lengths(lags.values[known], np.bincount(row[known], minlength=len(lags)))


@register(
    "WordsMatched",
    unit="ratio",
    higher_is_better=True,
    clocked=False,
    needs=NEEDS,
    aggregate="ratio",
    summary="The share of the source words that are found in the output.",
    formula="WordsMatched = source words that are found ÷ source words",
    latex=r"\mathrm{WordsMatched} = |M| / |x|",
    paper="not from a paper",
    edge_cases=(
        INPUT,
        "WordLag says nothing of the words that are not found: read both.",
        "An empty hypothesis counts: nothing is found in it.",
        "A ratio of sums over the corpus, not a mean of ratios.",
    ),
    undefined="no word times",
)
def _words_matched(s: Schedule) -> Floats:
    appeared = pair_words(s).appeared
    row = np.repeat(np.arange(len(appeared)), appeared.lengths)
    matched = np.bincount(row, ~np.isnan(appeared.values), minlength=len(appeared))
    total = appeared.lengths.astype(np.float64)
    return np.where(total[:, None] > 0, np.stack([matched, total], axis=1), np.nan)


def _charged(lags: Floats, duration: float) -> Floats:
    """Lags below 0 as 0; for one that is not known, that of the word before and one word duration more."""
    place = np.arange(1, len(lags) + 1)
    last = np.maximum.accumulate(np.where(np.isnan(lags), 0, place))
    before = np.concatenate([[0.0], np.maximum(lags, 0.0)])[last]
    return np.asarray(before + duration * (place - last))


@register(
    "MAAL",
    needs=NEEDS,
    aggregate="ratio",
    summary="How long after its source word was spoken a target word appeared, with a charge for words that never did.",
    formula="MAAL = mean over the words t of the reference of max(0, emission(t) − end of its source word); a word "
    "without counterpart: the value of the word before and one mean word duration more",
    latex=r"\mathrm{MAAL} = \frac{1}{|y|} \sum_t m_t, \qquad m_t = \max(0, e_t - \mathrm{end}_{a(t)})"
    r" \text{ or } m_{t-1} + \bar d",
    paper="not from a paper; a fork of SimulEval with word alignments",
    edge_cases=(
        INPUT,
        "With an alignment of the hypothesis, its words take the place of those of the reference; without an "
        "alignment, the source words do.",
        "A word has no counterpart if it is aligned with no source word, or, of the reference, does not appear.",
        "The mean word duration is that of the source words of the segment; before the first word, the value is 0.",
        "A word that is aligned with several source words belongs to the last of them.",
        CORPUS,
    ),
    undefined="no word times",
)
def _maal(s: Schedule) -> Floats:
    spoken: Spoken = s.column("spoken")
    pairs = pair_words(s)
    rows = []
    for row in range(len(s.run)):
        lags = pairs.shown[row] - pairs.end[row]
        spent = spoken.end[row] - spoken.start[row]
        rows.append(_charged(lags, float(spent.mean())) if len(spent) else np.full(len(lags), np.nan))
    return _sums(Ragged.from_rows(rows))


@register(
    "EVS",
    needs=NEEDS,
    aggregate="ratio",
    summary="Ear-voice span: from the onset of a source word to the onset of its target word.",
    formula="EVS = mean over the target words t with a source word of emission(t) − start of its source word",
    latex=r"\mathrm{EVS} = \frac{1}{|M|} \sum_{t \in M} \left( e_t - \mathrm{start}_{a(t)} \right)",
    paper="not from a paper; interpreting studies measure it",
    edge_cases=(
        INPUT,
        "Output text: the onset of a word is when it appeared.",
        "A word that is aligned with several source words belongs to the first of them. Without an alignment, it is "
        "WordLag(of=start).",
        CORPUS,
    ),
    undefined=UNMATCHED,
)
def _evs(s: Schedule) -> Floats:
    pairs = pair_words(s)
    return _sums(Ragged.from_lengths(pairs.shown.values - pairs.start.values, pairs.shown.lengths))
