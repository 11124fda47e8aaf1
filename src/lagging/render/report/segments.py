# SPDX-License-Identifier: Apache-2.0
"""The segments of all systems as columns of small numbers, and which of very many segments are shown.

Times are whole milliseconds, or thousandths of a token where they are no whole tokens, each as its difference from the
time before it in the same segment; times on other clocks are differences from the delay. Queue times that follow from
delays and elapsed times are not written down, but "steps": finish(t) = max(g(t), finish(t−1)) + compute(t).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from lagging.data.ragged import Floats, Ints, Ragged
from lagging.data.tokens import is_spm, tokens
from lagging.errors import counted
from lagging.metrics import Metric
from lagging.render.analysis import Analysis
from lagging.render.report.charts import number

__all__ = ["chosen", "columns", "deltas"]

MOST = 40_000
"""At most that many segments of all systems together are shown; a page opens in a moment with as many."""
TOKENS = 1_200_000
"""And as many tokens, at most."""
WORST = 0.5
"""Which part of a sample is kept for what stands out; the rest is evenly spread."""
DIGITS = {"ms": 1, "ms/min": 1, "token": 4, "token/100": 4, "ratio": 4, "count": 2, "points": 3, "score": 5}


def chosen(systems: Sequence[Analysis], flagged: Iterable[int]) -> tuple[Ints, str]:
    """The rows that the page holds, and a note if these are not all.

    Of too many, those that stand out are kept: the largest lags, the largest AL–DAL gaps, the largest differences
    between two systems, and what the health checks found. The rest is every so-manieth segment.
    """
    n = len(systems[0].run)
    lengths = np.sum([one.run.delays.lengths for one in systems], axis=0)
    per = max(float(lengths.mean()), 1.0) if n else 1.0
    most = max(1, min(MOST // len(systems), int(TOKENS / per)))
    if n <= most:
        return np.arange(n), ""
    kept = np.zeros(n, dtype=bool)
    rankings = [*_outstanding(systems), np.fromiter(flagged, dtype=np.int64)]
    share = int(WORST * most) // len(rankings)
    for rows in rankings:
        kept[rows[:share]] = True
    others = np.flatnonzero(~kept)
    spread = np.linspace(0, len(others) - 1, max(most - int(kept.sum()), 0)).astype(np.int64)
    kept[others[spread]] = True
    rows = np.flatnonzero(kept)
    said = (
        f"The list has {len(rows)} of {counted(n, 'segment')}: those that stand out by lag, by AL–DAL gap, by the "
        "difference between two systems or by a health check, and an even sample of the others. Scores and figures are "
        "of all segments."
    )
    return rows, said


def _outstanding(systems: Sequence[Analysis]) -> list[Ints]:
    timed = [one for one in systems if one.timed]
    found = []
    for one in timed:
        dal, al = one.diagnostics["DAL"].segments, one.diagnostics["AL"].segments
        found += [_largest(dal), _largest(dal - al)]
    for a, b in combinations(timed[:4], 2):
        found.append(_largest(np.abs(a.diagnostics["DAL"].segments - b.diagnostics["DAL"].segments)))
    return found


def _largest(values: Floats) -> Ints:
    return np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")


def columns(systems: Sequence[Analysis], metrics: Sequence[Metric], rows: Ints) -> dict[str, Any]:
    """All that the list of segments and the timelines need."""
    first = systems[0].run
    documents = None if first.document is None else first.document[rows].tolist()
    return {
        "id": list(map(str, first.id[rows].tolist())),
        "document": documents if documents and any(documents) else None,
        "source": _common([_texts(one, "source", rows) for one in systems]),
        "reference": _common([_texts(one, "reference", rows) for one in systems]),
        "systems": [_system(one, metrics, rows) for one in systems],
    }


def _texts(one: Analysis, column: str, rows: Ints) -> list[str | None] | None:
    values = getattr(one.run, column)
    if values is None:
        return None
    return [None if text is None else text.strip() for text in values[rows].tolist()]


def _common(lists: Sequence[list[str | None] | None]) -> list[str | None] | None:
    """The texts that the systems share: the first that is there."""
    some = [texts for texts in lists if texts is not None]
    if not some:
        return None
    return [next((text for text in texts if text), None) for texts in zip(*some, strict=True)]


def _system(one: Analysis, metrics: Sequence[Metric], rows: Ints) -> dict[str, Any]:
    out: dict[str, Any] = {"prediction": _predictions(one, rows), "pieces": _pieces(one, rows)}
    values = {repr(m): (one.values(m)[rows], one.scores[m].unit) for m in metrics}
    if one.timed:
        for name in ("AL", "DAL"):
            found = one.diagnostics[name]
            values.setdefault(name, (found.segments[rows], found.unit))
        g = one.schedule().g.take(rows)
        scale = 1 if one.run.unit == "ms" or (g.values == np.rint(g.values)).all() else 1000
        out |= {
            "scale": scale,
            "x": number(one.run.source_length[rows], 3),
            "tokens": g.lengths.tolist(),
            "delays": deltas(g, scale),
        }
        for clock in one.clocks[1:]:
            late = one.schedule(clock).g.take(rows).by_token(lambda e, g: e - g, g)
            out[clock] = "steps" if clock == "queue" and _stepwise(one) else deltas(late, scale)
    else:
        out |= {"tokens": one.run.delays.lengths[rows].tolist()}
    out["values"] = {name: number(found, DIGITS[unit]) for name, (found, unit) in values.items()}
    return out


def _stepwise(one: Analysis) -> bool:
    """Whether the page can tell queue times from elapsed times: a step per token, computing elapsed − delay more."""
    run = one.run
    return run.queue_times is None and (run.arrivals is None or run.compute is None) and "elapsed" in one.clocks


def deltas(times: Ragged, scale: int) -> list[int]:
    """Times as whole numbers, each less the one before it in its row.

    Example:
        >>> deltas(Ragged.from_rows([[3, 4, 4], [], [1, 9]]), 1)
        [3, 1, 0, 1, 8]
    """
    whole = np.rint(times.values * scale).astype(np.int64)
    out = np.diff(whole, prepend=0)
    starts = times.offsets[:-1][times.lengths > 0]
    out[starts] = whole[starts]
    return out.tolist()  # type: ignore[no-any-return]


def _predictions(one: Analysis, rows: Ints) -> list[str | None] | None:
    if one.run.prediction is None:
        return None
    if one.run.speech_out:
        return one.run.prediction[rows].tolist()  # type: ignore[no-any-return]
    texts = one.schedule().predictions if one.timed else one.run.prediction.tolist()
    return [texts[row] for row in rows.tolist()]


def _pieces(one: Analysis, rows: Ints) -> list[list[str]] | None:
    """The tokens of each text, where they are neither words nor characters, which the page can tell itself."""
    if not one.timed or not is_spm(one.run.level) or one.run.prediction is None:
        return None
    texts = one.schedule().predictions
    return [tokens(texts[row] or "", one.run.level) for row in rows.tolist()]
