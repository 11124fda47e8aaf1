# SPDX-License-Identifier: Apache-2.0
"""AL's successors that use the longer of hypothesis and reference: LAAL and YAAL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lagging.data.ragged import Floats
from lagging.metrics import kernels
from lagging.metrics.paper import EMPTY
from lagging.metrics.registry import register

if TYPE_CHECKING:
    from lagging.metrics.schedule import Schedule

POLAK = """\
@article{polak-etal-2025-better,
  title   = {Better Late Than Never: Meta-Evaluation of Latency Metrics for Simultaneous Speech-to-Text Translation},
  author  = {Pol{\\'a}k, Peter and Papi, Sara and Bentivogli, Luisa and Bojar, Ond{\\v{r}}ej},
  journal = {CoRR},
  volume  = {abs/2509.17349},
  year    = {2025}
}"""
NO_REFERENCE = "No reference: the hypothesis length is used instead; the signature counts these segments as `noref`."


def mean_lag_before(s: Schedule, end: Floats) -> Floats:
    """The mean lag of the leading tokens that were written before the end of the source, or of the recording."""
    return s.by_lag(kernels.al, s.by_row(kernels.inside, end))


@register(
    "LAAL",
    aliases=("LongLAAL",),
    length="longest",
    needs={"cutoff"},
    summary="Length-Adaptive Average Lagging: AL that does not reward writing more than the reference.",
    formula="LAAL = (1/τ) Σ_{t≤τ} [g(t) − (t−1)/γ], γ = max(|y|, |reference|)/|x|",
    latex=r"\mathrm{LAAL} = \frac{1}{\tau} \sum_{t=1}^{\tau} \left[ g(t) - \frac{t-1}{\gamma} \right], \qquad"
    r" \gamma = \frac{\max(|y|, |y^*|)}{|x|}",
    paper="Papi et al. 2022; Polák et al. 2022",
    bibtex="""\
@inproceedings{papi-etal-2022-generation,
  title     = {Over-Generation Cannot Be Rewarded: Length-Adaptive Average Lagging for Simultaneous Speech Translation},
  author    = {Papi, Sara and Gaido, Marco and Negri, Matteo and Turchi, Marco},
  booktitle = {Proceedings of the Third Workshop on Automatic Simultaneous Translation},
  year      = {2022}
}""",
    edge_cases=(EMPTY, NO_REFERENCE, "The cut-off τ and the tolerance of 1 ms are those of AL."),
)
def _laal(s: Schedule) -> Floats:
    return s.by_lag(kernels.al, s.cutoff)


@register(
    "YAAL",
    length="longest",
    needs={"cutoff"},
    summary="Yet Another Average Lagging: LAAL over the tokens written before the source ended.",
    formula="YAAL = mean of g(t) − (t−1)/γ over the leading t with g(t) < |x|, γ = max(|y|, |reference|)/|x|",
    latex=r"\mathrm{YAAL} = \frac{1}{\tau} \sum_{t=1}^{\tau} \left[ g(t) - \frac{t-1}{\gamma} \right], \qquad"
    r" \tau = \max\{t : g(t) < |x|\}",
    paper="Polák et al. 2025 (arXiv:2509.17349)",
    bibtex=POLAK,
    edge_cases=(
        EMPTY,
        NO_REFERENCE,
        "Nothing written before the source ended (an offline system): undefined.",
        "Writing is free, as in AL: the schedule of Table 2 that lowers AL gets 2.5, wait-4 gets 4.",
    ),
    undefined="nothing was written before the source ended",
)
def _yaal(s: Schedule) -> Floats:
    return mean_lag_before(s, s.source_end)
