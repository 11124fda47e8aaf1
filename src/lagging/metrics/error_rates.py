# SPDX-License-Identifier: Apache-2.0
"""Error rates of recognition: WER, of words, and CER, of characters.

Both are the fewest substitutions, deletions and insertions that make the reference into the hypothesis, divided by the
length of the reference: of a corpus, a ratio of sums.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lagging.data.ragged import Floats
from lagging.metrics.record import Metric, Param
from lagging.metrics.registry import register

if TYPE_CHECKING:
    from lagging.metrics.schedule import Schedule

NORMALISATIONS = ("none", "lower-nopunct")
NORM = Param(
    "norm",
    "none",
    "what is done to texts first: nothing, or lower case and no punctuation",
    NORMALISATIONS,
)
MORRIS = """\
@inproceedings{morris-etal-2004-wer,
  title     = {From {WER} and {RIL} to {MER} and {WIL}: Improved Evaluation Measures for Connected Speech Recognition},
  author    = {Morris, Andrew Cameron and Maier, Viktoria and Green, Phil},
  booktitle = {Proceedings of Interspeech},
  year      = {2004}
}"""
EDITS = ("substitutions", "deletions", "insertions")
"""The names of the columns of the statistics behind errors and length."""
NO_REFERENCE = "No reference, or an empty one: the segment is left out, and counted as undefined."
NO_WORDS = "A reference without any token once it is normalised: undefined; what is written there is not counted."
UNDEFINED = "nothing is left of the reference once it is normalised"


def normalise(text: str, norm: str) -> str:
    r"""A text with single spaces; `lower-nopunct`: in lower case, and without characters of a category P (Unicode).

    Example:
        >>> normalise(" It's  fine, Ana. ", "none"), normalise("It's fine,\tAna.", "lower-nopunct")
        ("It's fine, Ana.", 'its fine ana')
    """
    if norm == "lower-nopunct":
        text = "".join(letter for letter in text.lower() if unicodedata.category(letter)[0] != "P")
    return " ".join(text.split())


def count_errors(hypothesis: Sequence[str], reference: Sequence[str]) -> tuple[int, int, int]:
    """Substitutions, deletions and insertions of an alignment with the fewest errors.

    Their sum has one value only; how it is divided may depend on the alignment, which is rapidfuzz's.

    Example:
        >>> count_errors("a b x d e".split(), "a b c d".split())
        (1, 0, 1)
    """
    from rapidfuzz.distance import Levenshtein

    distance = Levenshtein.distance(reference, hypothesis)
    # the difference of insertions and deletions is that of the lengths
    more = len(hypothesis) - len(reference)
    if distance == abs(more):
        return 0, max(-more, 0), max(more, 0)
    edits = Levenshtein.editops(reference, hypothesis).as_list()
    deletions = sum(kind == "delete" for kind, *_ in edits)
    return distance - 2 * deletions - more, deletions, deletions + more


def _statistics(s: Schedule, norm: str, split: Callable[[str], Sequence[str]]) -> Floats:
    """Errors, length of the reference, substitutions, deletions and insertions of each segment."""
    rows = np.full((len(s.run), 2 + len(EDITS)), np.nan)
    for row, (text, reference) in enumerate(zip(s.predictions, s.references, strict=True)):
        expected = split(normalise(reference or "", norm))
        if expected:
            errors = count_errors(split(normalise(text or "", norm)), expected)
            rows[row] = [sum(errors), len(expected), *errors]
    return rows


def _rate(sums: Floats) -> Floats:
    """Errors in percent of the length of the reference."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(100 * sums[..., 0] / sums[..., 1])


def _corpus(rows: Floats) -> float:
    return float(_rate(rows.sum(axis=0)))


def _signature(metric: Metric) -> tuple[tuple[str, str], ...]:
    return (("norm", str(metric.get("norm"))),)


@register(
    "WER",
    unit="points",
    clocked=False,
    needs={"prediction", "reference"},
    params=(NORM,),
    aggregate=_corpus,
    from_sums=_rate,
    segment_values=_rate,
    describe=_signature,
    counts=EDITS,
    summary="Word error rate: errors in percent of the words of the reference.",
    formula="WER = 100 · Σ (substitutions + deletions + insertions) ÷ Σ |reference|, in words",
    latex=r"\mathrm{WER} = 100 \cdot \frac{\sum (S + D + I)}{\sum |y^*|}",
    paper="Morris et al. 2004",
    bibtex=MORRIS,
    edge_cases=(
        NO_REFERENCE,
        NO_WORDS,
        "An empty hypothesis counts: all words of the reference are deleted, 100.",
        "It may be above 100.",
        "Words are divided by white space; `norm=lower-nopunct` compares in lower case and without punctuation.",
    ),
    undefined=UNDEFINED,
)
def _wer(s: Schedule, *, norm: str = "none") -> Floats:
    return _statistics(s, norm, str.split)


@register(
    "CER",
    unit="points",
    clocked=False,
    needs={"prediction", "reference"},
    params=(NORM,),
    aggregate=_corpus,
    from_sums=_rate,
    segment_values=_rate,
    describe=_signature,
    counts=EDITS,
    summary="Character error rate: errors in percent of the characters of the reference.",
    formula="CER = 100 · Σ (substitutions + deletions + insertions) ÷ Σ |reference|, in characters",
    latex=r"\mathrm{CER} = 100 \cdot \frac{\sum (S + D + I)}{\sum |y^*|}",
    paper="Morris et al. 2004",
    bibtex=MORRIS,
    edge_cases=(
        NO_REFERENCE,
        NO_WORDS,
        "An empty hypothesis counts: all characters of the reference are deleted, 100.",
        "It may be above 100.",
        "Characters are code points. White space becomes one space between words, which counts as a character.",
    ),
    undefined=UNDEFINED,
)
def _cer(s: Schedule, *, norm: str = "none") -> Floats:
    return _statistics(s, norm, str)
