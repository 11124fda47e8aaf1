# SPDX-License-Identifier: Apache-2.0
"""The metrics of Cherry & Foster (2019), registered over Runs. The equations are in `kernels`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lagging.data.exact import exact_sum
from lagging.data.ragged import Floats
from lagging.metrics import kernels
from lagging.metrics.record import Param
from lagging.metrics.registry import register

if TYPE_CHECKING:
    from lagging.metrics.schedule import Schedule

CHERRY_FOSTER = """\
@article{cherry-foster-2019-thinking,
  title   = {Thinking Slow about Latency Evaluation for Simultaneous Machine Translation},
  author  = {Cherry, Colin and Foster, George},
  journal = {CoRR},
  volume  = {abs/1906.00048},
  year    = {2019}
}"""

MA = """\
@inproceedings{ma-etal-2019-stacl,
  title     = {{STACL}: Simultaneous Translation with Implicit Anticipation and Controllable Latency using
               Prefix-to-Prefix Framework},
  author    = {Ma, Mingbo and Huang, Liang and Xiong, Hao and Zheng, Renjie and Liu, Kaibo and Zheng, Baigong and
               Zhang, Chuanqiang and He, Zhongjun and Liu, Hairong and Li, Xing and Wu, Hua and Wang, Haifeng},
  booktitle = {Proceedings of the 57th Annual Meeting of the Association for Computational Linguistics},
  year      = {2019}
}"""

EMPTY = "Empty hypothesis, or |x| = 0: undefined (NaN, counted); `empty=source` charges the whole source instead."


@register(
    "AP",
    aliases=("LongAP",),
    unit="ratio",
    length="hypothesis",
    summary="Average Proportion: the share of the source that had been read, averaged over the target tokens.",
    formula="AP = Σ_t g(t) / (|x|·|y|)",
    latex=r"\mathrm{AP} = \frac{1}{|x|\,|y|} \sum_{t=1}^{|y|} g(t)",
    paper="Cho & Esipova 2016; eq. 1 of Cherry & Foster 2019",
    bibtex="""\
@article{cho-esipova-2016-can,
  title   = {Can Neural Machine Translation Do Simultaneous Translation?},
  author  = {Cho, Kyunghyun and Esipova, Masha},
  journal = {CoRR},
  volume  = {abs/1606.02012},
  year    = {2016}
}""",
    edge_cases=(
        EMPTY,
        "Depends on length: wait-1 with |x| = |y| gets 0.75 at length 2, and tends to 0.5.",
        "At most 1 if |y| is the number of written tokens; with `length=reference`, as in SimulEval, it can exceed 1.",
    ),
)
def _ap(s: Schedule) -> Floats:
    return s.by_row(kernels.ap, s.x, s.y)


@register(
    "CW",
    unit="time",
    summary="Consecutive Wait: mean length of the runs of reads between writes.",
    formula="CW(t) = g(t) − g(t−1), g(0) = min(g(1), 0); CW = mean of CW(t) over the t with CW(t) > 0 "
    "= (g(|y|) − g(0)) ÷ read-runs",
    latex=r"\mathrm{CW}(t) = g(t)-g(t-1), \qquad g(0) = \min\{g(1), 0\}, \qquad"
    r" \mathrm{CW} = \frac{g(|y|) - g(0)}{|\{t : \mathrm{CW}(t) > 0\}|}",
    paper="Gu et al. 2017; averaged by Alinejad et al. 2018; eq. 2 of Cherry & Foster 2019",
    bibtex="""\
@inproceedings{gu-etal-2017-learning,
  title     = {Learning to Translate in Real-time with Neural Machine Translation},
  author    = {Gu, Jiatao and Neubig, Graham and Cho, Kyunghyun and Li, Victor O.K.},
  booktitle = {Proceedings of the 15th Conference of the European Chapter of the Association for Computational
               Linguistics: Volume 1, Long Papers},
  year      = {2017}
}""",
    edge_cases=(
        EMPTY,
        "Nothing read before or between the writes (all g = 0): undefined.",
        "g(0) is 0, except in a segment cut from a stream whose first token was written before the segment began: what "
        "was read before that token belongs to earlier segments.",
        "Reads after the last write are not part of any wait.",
        "`lagging.waits` gives CW(t) of one sentence, token by token, zeros included.",
    ),
    undefined="nothing was read",
)
def _cw(s: Schedule) -> Floats:
    return s.by_row(kernels.cw)


@register(
    "AL",
    aliases=("LongAL",),
    length="hypothesis",
    needs={"cutoff"},
    summary="Average Lagging behind an ideal translator, until the source has been read.",
    formula="AL = (1/τ) Σ_{t≤τ} [g(t) − (t−1)/γ], γ = |y|/|x|, τ = first t with g(t) ≥ |x|",
    latex=r"\mathrm{AL} = \frac{1}{\tau} \sum_{t=1}^{\tau} \left[ g(t) - \frac{t-1}{\gamma} \right], \qquad"
    r" \tau = \operatorname{argmin}_t\,[g(t) \ge |x|], \quad \gamma = |y|/|x|",
    paper="Ma et al. 2018; eq. 3 of Cherry & Foster 2019",
    bibtex=MA,
    edge_cases=(
        EMPTY,
        "Source never fully read: τ = |y| (Table 6 of Cherry & Foster).",
        "In milliseconds, a delay within 1 ms of |x| counts as the end of the source. Without this tolerance, a rounding "
        "of 0.007 ms changed AL from 1691 to 2177 ms. `--convention simuleval` compares exactly.",
        "Everything written after the end: τ = 1, so AL = g(1).",
        "Writing is free until τ, so AL can be lowered by delaying the last read (Table 2), and can be negative.",
    ),
)
def _al(s: Schedule) -> Floats:
    return s.by_lag(kernels.al, s.cutoff)


@register(
    "AL_y",
    length="hypothesis",
    aliases=("ALy",),
    summary="Average Lagging over all target tokens: AL without its cut-off.",
    formula="AL_y = (1/|y|) Σ_t [g(t) − (t−1)/γ]",
    latex=r"\mathrm{AL}_{|y|} = \frac{1}{|y|} \sum_{t=1}^{|y|} \left[ g(t) - \frac{t-1}{\gamma} \right]",
    paper="eq. 4 of Cherry & Foster 2019",
    bibtex=CHERRY_FOSTER,
    edge_cases=(EMPTY, "A wait-k system gets less than k for k > 1: 2.25 for wait-3 with |x| = |y| = 4 (Table 1)."),
)
def _al_y(s: Schedule) -> Floats:
    return s.by_lag(kernels.al_y)


@register(
    "DAL",
    aliases=("LongDAL",),
    length="hypothesis",
    params=(
        Param(
            "write_cost",
            None,
            "cost d of writing one token, in source units; |x|/|y| if not given",
            ("corpus",),
            float,
            least=0,
            replaces="length",
        ),
    ),
    summary="Differentiable Average Lagging: every written token costs time, so delay is never recovered.",
    formula="DAL = mean_t max_{i≤t} [g(i) − (i−1)d], d = 1/γ = |x|/|y| unless given",
    latex=r"\mathrm{DAL} = \frac{1}{|y|} \sum_{t=1}^{|y|} \left[ g'(t) - (t-1)d \right], \qquad"
    r" g'(t) = \max\{g(t),\; g'(t-1)+d\}, \quad d = \frac{1}{\gamma} = \frac{|x|}{|y|}",
    paper="Cherry & Foster 2019, eqs. 5 to 8",
    bibtex=CHERRY_FOSTER,
    edge_cases=(
        EMPTY,
        "Never below AL when both use one |y|, and never below 0.",
        "wait-k with |x| = |y| gets k, also if it delays its last read (Table 4).",
        "Source never fully read: every token counts, as always (Table 6).",
        "`write_cost=corpus` takes Σ|x| / Σ|y| over the corpus, as the end of the paper's section 4.1 suggests.",
        "The paper's summary (4.3) says that the lags are bounded below by (t−1)d; in fact g' is.",
    ),
)
def _dal(s: Schedule, *, write_cost: float | str | None = None) -> Floats:
    if write_cost is None:
        return s.by_lag(kernels.dal)
    if write_cost == "corpus":
        defined = (s.g.lengths > 0) & (s.x > 0) & (s.y > 0)
        write_cost = exact_sum(s.x[defined]) / exact_sum(s.y[defined]) if defined.any() else 0.0
    d = np.full(len(s.x), float(write_cost))
    return s.by_row(lambda g, d: kernels.dal(kernels.budget(g, d)), d)


SRIDHAR = """\
@inproceedings{rangarajan-sridhar-etal-2013-segmentation,
  title     = {Segmentation Strategies for Streaming Speech Translation},
  author    = {Rangarajan Sridhar, Vivek Kumar and Chen, John and Bangalore, Srinivas and Ljolje, Andrej and
               Chengalvarayan, Rathinavelu},
  booktitle = {Proceedings of the 2013 Conference of the North American Chapter of the Association for Computational
               Linguistics: Human Language Technologies},
  year      = {2013}
}"""
ODA = """\
@inproceedings{oda-etal-2014-optimizing,
  title     = {Optimizing Segmentation Strategies for Simultaneous Speech Translation},
  author    = {Oda, Yusuke and Neubig, Graham and Sakti, Sakriani and Toda, Tomoki and Nakamura, Satoshi},
  booktitle = {Proceedings of the 52nd Annual Meeting of the Association for Computational Linguistics
               (Volume 2: Short Papers)},
  year      = {2014}
}"""
SEGMENT = "A segment is a run of reads followed by a run of writes; reads after the last write belong to no segment."


@register(
    "Segments",
    unit="count",
    summary="Number of segments that the system divides the source into.",
    formula="Segments = number of t with g(t) > g(t−1), g(0) = 0",
    latex=r"\mathrm{Segments} = |\{t : g(t) > g(t-1)\}|",
    paper="Rangarajan Sridhar et al. 2013; Oda et al. 2014",
    bibtex=ODA,
    higher_is_better=True,
    edge_cases=(EMPTY, SEGMENT),
)
def _segments(s: Schedule) -> Floats:
    return s.by_row(kernels.read_runs)


def _per_segment(s: Schedule, top: Floats) -> Floats:
    runs = s.by_row(kernels.read_runs)
    return np.stack([top, np.where(runs > 0, runs, np.nan)], axis=1)


@register(
    "SourcePerSegment",
    unit="time",
    aggregate="ratio",
    summary="Source read per segment: the corpus-level Consecutive Wait.",
    formula="SourcePerSegment = Σ (g(|y|) − g(0)) ÷ Σ Segments, g(0) = min(g(1), 0)",
    latex=r"\frac{\sum (g(|y|) - g(0))}{\sum \mathrm{Segments}}, \qquad g(0) = \min\{g(1), 0\}",
    paper="Oda et al. 2014",
    bibtex=ODA,
    edge_cases=(EMPTY, SEGMENT, "A ratio of sums over the corpus, not a mean of ratios."),
    undefined="nothing was read",
)
def _source_per_segment(s: Schedule) -> Floats:
    return _per_segment(s, s.by_row(kernels.read))


@register(
    "TargetPerSegment",
    unit="count",
    aggregate="ratio",
    summary="Target tokens written per segment.",
    formula="TargetPerSegment = Σ |y| ÷ Σ Segments",
    latex=r"\frac{\sum |y|}{\sum \mathrm{Segments}}",
    paper="Rangarajan Sridhar et al. 2013",
    bibtex=SRIDHAR,
    edge_cases=(EMPTY, SEGMENT, "A ratio of sums over the corpus, not a mean of ratios."),
    undefined="nothing was read",
)
def _target_per_segment(s: Schedule) -> Floats:
    return _per_segment(s, s.g.lengths.astype(np.float64))
