# SPDX-License-Identifier: Apache-2.0
"""Checks of the health of a log: what is suspicious, and which segments show it. The page begins with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lagging.comparison.degeneracy import THRESHOLDS
from lagging.comparison.match import UNDEFINED_ELSEWHERE
from lagging.data.ragged import Floats
from lagging.metrics.clocks import ROUNDING
from lagging.render.analysis import Analysis

__all__ = ["Check", "check_system"]

RATIO = 2.0
"""A hypothesis more than this many times longer, or shorter, than its reference is suspicious."""
CORPUS_RATIO = 1.25
"""The same for all hypotheses together."""
LIMITS = {threshold.metric: threshold.suspicious for threshold in THRESHOLDS}
HIDDEN = LIMITS["HiddenShare"]
"""Above this share of hidden lag, AL says little (see the metric HiddenShare)."""
OFFLINE = LIMITS["Offline"]
"""From this share of offline segments on, a system is hardly simultaneous."""


@dataclass(frozen=True)
class Check:
    """The result of one check of one system.

    Attributes:
        key: the same in all systems.
        title: what is checked, in a few words.
        help: what it means.
        count: how many segments (or tokens) show it; None where the check gives a number of the whole log.
        rows: which of the shared segments these are.
        value: that number; `unit` is "ratio" or "points".
        bad: whether a reader must know.
        ids: names of segments that not all systems have.
    """

    key: str
    title: str
    help: str
    count: int | None = None
    rows: tuple[int, ...] = ()
    value: float | None = None
    unit: str = ""
    noun: str = "segment"
    bad: bool = False
    ids: tuple[str, ...] = ()


def check_system(system: Analysis, unmatched: Iterable[Any] = ()) -> list[Check]:
    """The results of all checks of a system."""
    return [
        *_check_empty(system),
        *_check_undefined(system),
        *_check_lengths(system),
        *(_check_times(system) if system.timed else ()),
        *_check_changes(system),
        *_check_unmatched(unmatched),
    ]


def _make_check(key: str, title: str, help: str, mask: npt.ArrayLike, **fields: Any) -> Check:
    """A check that counts the segments of a mask, and is bad if there are any."""
    rows = tuple(np.flatnonzero(mask).tolist())
    return Check(key, title, help, len(rows), rows, **{"bad": bool(rows), **fields})


def _check_empty(system: Analysis) -> Iterator[Check]:
    yield _make_check(
        "empty", "empty hypotheses", "Nothing was written: latency is undefined.", system.run.delays.lengths == 0
    )


def _check_undefined(system: Analysis) -> Iterator[Check]:
    place = {name: row for row, name in enumerate(map(str, system.run.id.tolist()))}
    reasons: dict[str, tuple[list[str], set[int]]] = {}
    for score in system.scores:
        for reason, ids in score.undefined.reasons.items():
            names, rows = reasons.setdefault(reason, ([], set()))
            names.append(repr(score.metric))
            rows.update(place[str(name)] for name in ids)
    for reason, (names, rows) in reasons.items():
        help = f"No value in {', '.join(names)}; these segments are left out of its mean."
        own = reason != UNDEFINED_ELSEWHERE
        yield Check(f"undefined: {reason}", f"undefined: {reason}", help, len(rows), tuple(sorted(rows)), bad=own)


def _check_lengths(system: Analysis) -> Iterator[Check]:
    reference = system.schedules.reference_length
    if reference is None or not (reference > 0).any():
        return
    written = system.run.delays.lengths - system.run.eos.astype(np.int64)
    known = reference > 0
    ratio: Floats = np.where(known, written, np.nan) / np.where(known, reference, np.nan)
    total = float(written[known].sum() / reference[known].sum())
    odd = (ratio > RATIO) | (ratio < 1 / RATIO)
    yield _make_check(
        "ratio",
        "hypothesis ÷ reference length",
        f"Of all segments together; counted are those where one is more than {RATIO:g} times as long as the other.",
        odd,
        value=total,
        unit="ratio",
        bad=not 1 / CORPUS_RATIO < total < CORPUS_RATIO,
    )


def _check_times(system: Analysis) -> Iterator[Check]:
    s = system.schedule()
    tolerance = system.convention.tolerance if system.run.unit == "ms" else 0.0
    with np.errstate(invalid="ignore"):
        beyond = s.by_row(lambda g, x: (g.max(axis=1) > x[:, 0] + tolerance).astype(np.float64), s.x) == 1
        if system.run.seg == "none":
            yield _make_check("beyond", "delays beyond the source", "More source was read than there is.", beyond)
        else:  # a stream goes on after a segment has ended
            help = "Written after the segment had ended, while the recording went on: no fault in itself."
            yield _make_check("beyond", "delays beyond the segment", help, beyond, bad=False)
        if "elapsed" in system.clocks:
            e = system.schedule("elapsed").g
            early = e.by_row(lambda e, g: ((e < g - ROUNDING).any(axis=1)).astype(np.float64), s.g) == 1
            help = "A token was there before its source was: clocks that do not agree."
            yield _make_check("early", "elapsed below ideal", help, early)
        scores = system.diagnostics
        al, dal, hidden = scores["AL"].segments, scores["DAL"].segments, scores["HiddenShare"]
        yield _make_check(
            "negative", "negative AL", "Ahead of the ideal translator: AL rewards what it should not.", al < 0
        )
        yield _make_check(
            "hidden",
            "lag that AL hides",
            f"HiddenShare, (DAL − AL) ÷ DAL; counted are segments above {HIDDEN:g}.",
            dal - al > HIDDEN * np.abs(dal),
            value=hidden.value,
            unit="ratio",
            bad=hidden.value > HIDDEN,
        )
    offline = scores["Offline"]
    yield _make_check(
        "offline",
        "written after the source ended",
        "Offline: nothing was written before the source ended, so the segment is not simultaneous.",
        offline.segments == 1,
        value=offline.value,
        unit="ratio",
        bad=system.run.seg == "none" and offline.value >= OFFLINE,
    )
    swf, whole = scores["SWF"].value, system.run.seg == "none"
    help = "SWF: the share of target tokens, in %, written before the source ended."
    yield Check("swf", "simultaneous words", help, value=swf, unit="points", bad=whole and swf < LIMITS["SWF"])


def _check_changes(system: Analysis) -> Iterator[Check]:
    for name, count in system.whole.repaired:
        yield Check(f"repaired: {name}", f"repaired: {name}", f"Changed by --repair {name}.", count, bad=count > 0)
    for kind, count in system.whole.stripped:
        help = "Taken out of hypotheses and references, with their delays."
        yield Check(f"stripped: {kind}", f"stripped: {kind}", help, count, noun="token")


def _check_unmatched(ids: Iterable[Any]) -> Iterator[Check]:
    names = tuple(map(str, ids))
    help = "Not all of the other systems have them: left out of everything below."
    yield Check("unmatched", "segments that others lack", help, len(names), bad=bool(names), ids=names)
