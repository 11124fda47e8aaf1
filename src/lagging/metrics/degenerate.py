# SPDX-License-Identifier: Apache-2.0
"""Lag that AL does not show: free writes, words after the end, and systems that are not simultaneous at all.

The paper's argument: writing is free in AL, so a system can wait, write many tokens at once, and lower its mean lag by
that. DAL charges for every write. So DAL − AL measures the hidden lag of a segment. It is the sum of two parts:

    DAL − AL = (1/τ) Σ_{t≤τ} [ℓ'(t) − ℓ(t)]                    free writes, before the source was read to its end
             + (1/|y|) Σ_t ℓ'(t) − (1/τ) Σ_{t≤τ} ℓ'(t)         the tail: tokens after τ, which AL leaves out
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lagging.data.exact import exact_sum
from lagging.data.ragged import Floats
from lagging.metrics import kernels
from lagging.metrics.laal import NO_REFERENCE, POLAK, mean_lag_before
from lagging.metrics.paper import CHERRY_FOSTER, EMPTY
from lagging.metrics.record import Param
from lagging.metrics.registry import register

if TYPE_CHECKING:
    from lagging.metrics.schedule import Schedule

WHERE = Param(
    "where",
    "all",
    "which part: free writes before the source ended, the tail after it, or all",
    ("all", "writes", "tail"),
)


def _hidden(s: Schedule, where: str) -> Floats:
    if where == "all":
        return s.lags.by_row(kernels.dal) - s.lags.by_row(kernels.al, s.cutoff)
    charged = s.lags.by_token(kernels.running).by_row(kernels.al, s.cutoff)  # AL of g', where writes are charged
    return charged - s.lags.by_row(kernels.al, s.cutoff) if where == "writes" else s.lags.by_row(kernels.dal) - charged


@register(
    "HiddenLag",
    length="hypothesis",
    needs={"cutoff"},
    params=(WHERE,),
    summary="The lag that DAL shows and AL does not: what a system gains because writing is free in AL.",
    formula="HiddenLag = DAL − AL = (1/τ) Σ_{t≤τ} [ℓ'(t) − ℓ(t)] (writes) + the rest (tail)",
    latex=r"\mathrm{HiddenLag} = \mathrm{DAL} - \mathrm{AL}",
    paper="after Cherry & Foster 2019, sections 3.2 and 4",
    bibtex=CHERRY_FOSTER,
    edge_cases=(
        EMPTY,
        "Neither it nor its parts are negative: lags of g' never decrease, so those after τ are the largest.",
        "wait-k with |x| = |y|: 0. The schedule of Table 2 that lowers AL: 1.8 of 4, all of it free writes.",
        "An offline system hides nothing: AL = DAL = |x|. `Offline` finds it.",
    ),
)
def _hidden_lag(s: Schedule, *, where: str) -> Floats:
    return _hidden(s, where)


@register(
    "HiddenShare",
    unit="ratio",
    length="hypothesis",
    aggregate="ratio",
    needs={"cutoff"},
    params=(WHERE,),
    summary="The share of DAL that AL does not show; above a quarter, AL says little about a system.",
    formula="HiddenShare = Σ (DAL − AL) ÷ Σ DAL",
    latex=r"\frac{\sum (\mathrm{DAL} - \mathrm{AL})}{\sum \mathrm{DAL}}",
    paper="after Cherry & Foster 2019, sections 3.2 and 4",
    bibtex=CHERRY_FOSTER,
    edge_cases=(
        EMPTY,
        "A ratio of sums over the corpus, not a mean of ratios.",
        "Where AL is 0, as for wait-1 that writes half as many tokens as it reads (Table 6), it is 1; where AL is "
        "negative, more.",
        "DAL is 0 or negative: undefined.",
    ),
    undefined="there is no lag, so nothing to hide",
)
def _hidden_share(s: Schedule, *, where: str) -> Floats:
    dal = s.by_lag(kernels.dal)
    return np.stack([_hidden(s, where), np.where(dal > 0, dal, np.nan)], axis=1)


@register(
    "Offline",
    unit="ratio",
    needs={"cutoff"},
    summary="The share of segments in which nothing was written before the source ended.",
    formula="Offline = mean of [g(1) ≥ |x|]",
    latex=r"\mathrm{Offline} = \overline{[g(1) \ge |x|]}",
    paper="not from a paper",
    edge_cases=(EMPTY, "The value of a segment is 0 or 1."),
)
def _offline(s: Schedule) -> Floats:
    return s.by_row(lambda g, source_end: (g[:, 0] >= source_end[:, 0]).astype(np.float64), s.source_end)


OMNISTEVAL = "OmniSTEval; Polák et al. 2025"


def _simultaneous(s: Schedule) -> Floats:
    return s.by_row(lambda g, source_end: np.count_nonzero(g < source_end, axis=1).astype(np.float64), s.source_end)


def _expected(s: Schedule) -> Floats:
    return np.maximum(s.x - mean_lag_before(s, s.source_end), 0.0)


@register(
    "SWF",
    unit="points",
    higher_is_better=None,
    aggregate="ratio",
    needs={"cutoff"},
    summary="Simultaneous Words Fraction: the share of target tokens, in %, written before the source ended.",
    formula="SWF = 100 · Σ #{t : g(t) < |x|} ÷ Σ |y|",
    latex=r"\mathrm{SWF} = 100 \, \frac{\sum |\{t : g(t) < |x|\}|}{\sum |y|}",
    paper=OMNISTEVAL,
    bibtex=POLAK,
    edge_cases=(EMPTY, "A ratio of sums over the corpus, not a mean of ratios."),
)
def _swf(s: Schedule) -> Floats:
    return np.stack([100 * _simultaneous(s), s.g.lengths], axis=1)


@register(
    "EFSW",
    unit="points",
    higher_is_better=None,
    length="longest",
    aggregate="ratio",
    needs={"cutoff"},
    summary="Expected Fraction of Simultaneous Words, in %: what SWF would be if it followed from YAAL.",
    formula="EFSW = 100 · Σ max(0, |x| − YAAL) ÷ Σ |x|",
    latex=r"\mathrm{EFSW} = 100 \, \frac{\sum \max(0, |x| - \mathrm{YAAL})}{\sum |x|}",
    paper=OMNISTEVAL,
    bibtex=POLAK,
    edge_cases=(EMPTY, NO_REFERENCE, "YAAL is undefined (nothing written before the source ended): left out."),
    undefined="nothing was written before the source ended",
)
def _efsw(s: Schedule) -> Floats:
    return np.stack([100 * _expected(s), s.x], axis=1)


def _differences(rows: Floats) -> Floats:
    return np.asarray(rows[..., 0] / np.where(rows[..., 1] > 0, rows[..., 1], np.nan) - rows[..., 2] / rows[..., 3])


def _difference(rows: Floats) -> float:
    return float(_differences(np.array([[exact_sum(column) for column in rows.T]]))[0])


@register(
    "DSPTV",
    unit="points",
    higher_is_better=None,
    length="longest",
    aggregate=_difference,
    from_sums=_differences,
    needs={"cutoff"},
    summary="OmniSTEval's Degeneracy Test Value: EFSW − SWF. A system is called degenerate above 20 or below −20.",
    formula="DSPTV = EFSW − SWF",
    latex=r"\mathrm{DSPTV} = \mathrm{EFSW} - \mathrm{SWF}",
    paper=OMNISTEVAL,
    bibtex=POLAK,
    edge_cases=(
        EMPTY,
        "YAAL is undefined (nothing written before the source ended): left out of EFSW, but not out of SWF. If it is "
        "undefined for all segments, there is no EFSW, and so no DSPTV; the same holds for the value of one segment.",
        "For comparison with OmniSTEval. It does not find an offline system, and it calls a plain wait-1 degenerate; "
        "`HiddenShare` and `Offline` do neither.",
    ),
    undefined="nothing was written before the source ended",
    segment_values=_differences,
)
def _dsptv(s: Schedule) -> Floats:
    expected = _expected(s)
    defined = ~np.isnan(expected)
    columns = [np.where(defined, 100 * expected, 0), np.where(defined, s.x, 0), 100 * _simultaneous(s), s.g.lengths]
    return np.stack(columns, axis=1)
