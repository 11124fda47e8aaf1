# SPDX-License-Identifier: Apache-2.0
"""Metrics of re-translation: how late a text is that may still change, and how much of it is taken back.

An *update* replaces the text shown. It *erases* the tokens of the old text after the first difference between old and
new text, whether or not they appear again. An update that erases at least one token is a *revision*; an update that
only adds tokens is not. An erased token is *gone* if the new text does not contain it.

Logs have these counts in `erased`, `revisions` and `gone`, per segment and in tokens of the Run's level. SLTev's four
numbers of flicker are

    count_changed_content       Erased
    count_changed_Tokens        Erased(gone=True)
    flicker across sentences    NormalizedErasure(mean=segment)
    … across whole documents    NormalizedErasure
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lagging.data.exact import exact_sum
from lagging.data.ragged import Floats, Ragged
from lagging.errors import MetricError
from lagging.metrics import kernels
from lagging.metrics.record import MEANS, Param
from lagging.metrics.registry import alias, register

if TYPE_CHECKING:
    from lagging.metrics.schedule import Schedule

ANSARI = """\
@inproceedings{ansari-etal-2021-sltev,
  title     = {{SLTEV}: Comprehensive Evaluation of Spoken Language Translation},
  author    = {Ansari, Ebrahim and Bojar, Ond{\\v{r}}ej and Haddow, Barry and Mahmoudi, Mohammad},
  booktitle = {Proceedings of the 16th Conference of the European Chapter of the Association for Computational
               Linguistics: System Demonstrations},
  year      = {2021}
}"""

ARIVAZHAGAN = """\
@inproceedings{arivazhagan-etal-2020-retranslation,
  title     = {Re-translation versus Streaming for Simultaneous Translation},
  author    = {Arivazhagan, Naveen and Cherry, Colin and Macherey, Wolfgang and Foster, George},
  booktitle = {Proceedings of the 17th International Conference on Spoken Language Translation},
  year      = {2020}
}"""


COUNTED = "Counted in the tokens of the log: those of SLTev for `.slt` files, unless `--level` says otherwise."


@register(
    "NormalizedErasure",
    unit="ratio",
    clocked=False,
    needs={"erased", "level"},
    params=(Param("mean", "token", "tokens erased per token of the corpus, or the mean of the segments", MEANS),),
    summary="Tokens that were erased again, per token of the final text.",
    formula="NE = Σ erased ÷ Σ |y|; `mean=segment`: the mean of erased ÷ |y|",
    latex=r"\mathrm{NE} = \frac{\sum \mathrm{erased}}{\sum |y|}",
    paper="Arivazhagan et al. 2020; SLTev's flicker (Ansari et al. 2021)",
    bibtex=ARIVAZHAGAN,
    edge_cases=(
        "The final text is empty (everything was erased, or nothing was written): undefined.",
        "A system that never erases anything: 0. There is no upper bound.",
        COUNTED,
    ),
    undefined="nothing is left of the hypothesis, or what was erased is not known",
)
def _normalized_erasure(s: Schedule) -> Floats:
    y = s.g.lengths.astype(np.float64)
    ratio: Floats = s.column("erased") / np.where(y > 0, y, np.nan)
    return ratio


@register(
    "Erased",
    unit="count",
    clocked=False,
    aggregate=lambda rows: exact_sum(rows[:, 0]),
    from_sums=lambda sums: np.asarray(sums[..., 0]),
    needs={"erased", "gone", "level"},
    params=(Param("gone", False, "only the erased tokens that the new text does not contain", ("False", "True")),),
    summary="The total number of tokens that were erased again.",
    formula="Erased = Σ erased; with `gone=True`, Σ gone",
    latex=r"\sum \mathrm{erased}",
    paper="Ansari et al. 2021",
    bibtex=ANSARI,
    edge_cases=(
        "A sum over the corpus, not a mean: it grows with the corpus.",
        "`gone=True` is SLTev's count_changed_Tokens: a word that only moved is not gone.",
        COUNTED,
    ),
    undefined="what was erased is not known",
)
def _erased(s: Schedule, *, gone: bool) -> Floats:
    counts: Floats = s.column("gone" if gone else "erased")
    return counts


@register(
    "Flicker",
    unit="count",
    clocked=False,
    aggregate="ratio",
    needs={"erased", "revisions", "level"},
    summary="The mean number of tokens that a revision erases.",
    formula="Flicker = Σ erased ÷ Σ revisions",
    latex=r"\frac{\sum \mathrm{erased}}{\sum \mathrm{revisions}}",
    paper="after Ansari et al. 2021",
    bibtex=ANSARI,
    edge_cases=(
        "Never revised: undefined; such a segment changes neither sum.",
        "An update that only adds tokens is no revision.",
        "This is not what SLTev calls flicker: see `NormalizedErasure` and `Erased`.",
        COUNTED,
    ),
    undefined="never revised, or what was erased is not known",
)
def _flicker(s: Schedule) -> Floats:
    revisions = s.column("revisions")
    return np.stack([s.column("erased"), np.where(revisions > 0, revisions, np.nan)], axis=1)


@register(
    "TL",
    aggregate="ratio",
    summary="Translation lag: how long after its share of the source a token was there for good.",
    formula="TL = Σ max(0, g(t) − t·|x|/|y|) ÷ Σ |y|, over all tokens of the corpus",
    latex=r"\mathrm{TL} = \frac{\sum \max(0,\; g(t) - t\,|x|/|y|)}{\sum |y|}",
    paper="Arivazhagan et al. 2020 (arXiv:1912.03393), as MeetDot computes it (Arkhangorodsky et al. 2021)",
    bibtex="""\
@inproceedings{arivazhagan-etal-2020-strategies,
  title     = {Re-Translation Strategies for Long Form, Simultaneous, Spoken Language Translation},
  author    = {Arivazhagan, Naveen and Cherry, Colin and I, Te and Macherey, Wolfgang and Baljekar, Pallavi and Foster,
               George},
  booktitle = {IEEE International Conference on Acoustics, Speech and Signal Processing},
  year      = {2020}
}""",
    edge_cases=(
        "A token is compared with the end of its share of the source, which is taken to be spoken evenly; AL compares "
        "it with the beginning of that share.",
        "A token that is there before that has a lag of 0.",
        "`TL(clock=first)`, or `ETL`, takes the time at which a token was first shown, even if it was erased in "
        "between. How the authors compute a number of that name could not be established: the signature says what "
        "this one is.",
        "The mean is over the tokens of the corpus, and not over segments.",
        "The empty hypothesis is undefined.",
    ),
)
def _tl(s: Schedule) -> Floats:
    y = s.g.lengths.astype(np.float64)
    return np.stack([s.by_row(kernels.translation_lag, s.x), np.where(y > 0, y, np.nan)], axis=1)


alias("ETL", "TL(clock=first)")


def _times(s: Schedule, partial: bool) -> tuple[Ragged, Ragged]:
    """The time at which each reference token was due, and the time at which it was shown."""
    if s.run.due is None or s.run.shown is None:
        where = f" ({s.run.origin.description})" if s.run.origin.format == "sltev" else ""
        raise MetricError(
            f"there are no times of source and reference to compare with{where}\n"
            "  fix: put NAME.SOURCE.OStt and NAME.TARGET.OSt beside NAME.SOURCE.TARGET.slt."
        )
    return s.column("due_partial" if partial else "due"), s.run.shown


def _row_sums(like: Ragged, values: Floats) -> Floats:
    """The sum of the values of each row; 0 for an empty one."""
    return np.nan_to_num(Ragged(values, like.offsets).by_row(lambda row: row.sum(axis=1)))


@register(
    "SLTevDelay",
    clocked=False,
    aggregate="ratio",
    needs={"due", "due_partial", "shown", "reference_length", "level"},
    params=(
        Param("partial", False, "take source times from the partial transcripts (SLTev's PT)", ("False", "True")),
        Param(
            "over",
            "matched",
            "mean over the words that were shown, or over all words of the reference",
            ("matched", "reference"),
        ),
    ),
    summary="SLTev's delay: how long after its source was spoken a word of the reference was shown.",
    formula="SLTevDelay = Σ max(0, shown − due) ÷ words of the reference that were shown",
    latex=r"\frac{\sum \max(0, \mathrm{shown} - \mathrm{due})}{|\{\text{words shown}\}|}",
    paper="Ansari et al. 2021; the rules of version 1.2.3",
    bibtex=ANSARI,
    edge_cases=(
        "SLTev divides by all tokens of the reference. So a word that is never shown counts as one without delay, and "
        "a worse translation seems to be faster. `over=reference` gives SLTev's number.",
        "A word of the final text is timed by when it was first shown in its segment, even if it was erased in between."
        " If it was shown before it was due, its delay is 0.",
        "A word that occurs several times in a sentence is looked for once.",
        "No word of the reference was shown: undefined.",
        "Segments are assigned by time (SLTev's T and PT). SLTev's W variants resegment the text and are not computed.",
    ),
    undefined="no word of the reference was shown",
)
def _sltev_delay(s: Schedule, *, partial: bool, over: str) -> Floats:
    due, shown = _times(s, partial)
    delays = np.nan_to_num(np.maximum(shown.values - due.values, 0.0))
    matched = _row_sums(shown, (~np.isnan(shown.values)).astype(np.float64))
    words = matched if over == "matched" else np.nan_to_num(s.column("reference_length"))
    return np.stack([_row_sums(shown, delays), np.where(words > 0, words, np.nan)], axis=1)


@register(
    "Missed",
    unit="ratio",
    clocked=False,
    aggregate="ratio",
    needs={"due", "shown", "level"},
    summary="The share of the words of the reference that were never shown; SLTevDelay does not measure them.",
    formula="Missed = Σ words never shown ÷ Σ words looked for",
    latex=r"\frac{\sum |\{\text{words never shown}\}|}{\sum |\{\text{words looked for}\}|}",
    paper="Ansari et al. 2021 (MissedTokens)",
    bibtex=ANSARI,
    edge_cases=(
        "A word that occurs several times in a sentence is looked for once.",
        "A segment that no reference belongs to: undefined.",
    ),
    undefined="no reference belongs to it",
)
def _missed(s: Schedule) -> Floats:
    _, shown = _times(s, partial=False)
    missed = _row_sums(shown, np.isnan(shown.values).astype(np.float64))
    words = shown.lengths.astype(np.float64)
    return np.stack([missed, np.where(words > 0, words, np.nan)], axis=1)
