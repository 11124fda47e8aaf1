# SPDX-License-Identifier: Apache-2.0
"""Figures for papers, by matplotlib (`pip install 'lagging[plot]'`).

Every function draws on the axes that it is given, or on new ones, and returns them. Nothing is shown, and none of
matplotlib's settings is changed. Units, direction and clock come from the metric; milliseconds are shown as seconds.

    curves          quality against latency
    al_dal          DAL against AL
    ecdf            distribution of lags
    lag_over_time   lags over the time of a recording
    timeline        one sentence
    save            pdf, svg or png; the same bytes every time
"""

from __future__ import annotations

from lagging.render.plots.files import save, signatures
from lagging.render.plots.lags import ecdf, lag_over_time
from lagging.render.plots.sentence import timeline
from lagging.render.plots.tradeoff import al_dal, curves

__all__ = ["al_dal", "curves", "ecdf", "lag_over_time", "save", "signatures", "timeline"]
