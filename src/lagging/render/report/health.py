# SPDX-License-Identifier: Apache-2.0
"""What is suspicious about a log, and which segments show it: the first thing that the page tells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lagging.comparison.match import UNDEFINED_ELSEWHERE
from lagging.data.ragged import Floats
from lagging.metrics.clocks import ROUNDING
from lagging.render.analysis import Analysis

__all__ = ["Check", "checks"]

RATIO = 2.0
"""A hypothesis that many times longer, or shorter, than its reference is suspicious."""
CORPUS_RATIO = 1.25
"""The same for all hypotheses together."""
HIDDEN = 0.25
"""From this share of hidden lag on, AL says little (see the metric HiddenShare)."""
OFFLINE = 0.5
"""From this share of segments on, a system is hardly simultaneous."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at, in one system.

    Attributes:
        key: the same in all systems.
        title: what was looked for, in a few words.
        help: what it means.
        count: how many segments (or tokens) show it; None where it is a number of the whole log.
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


def checks(system: Analysis, unmatched: Iterable[Any] = ()) -> list[Check]:
    """Everything that was looked at in a system."""
    return [
        *_written(system),
        *_undefined(system),
        *_lengths(system),
        *(_times(system) if system.timed else ()),
        *_changed(system),
        *_unmatched(unmatched),
    ]


def _rows(where: npt.ArrayLike) -> tuple[int, ...]:
    return tuple(np.flatnonzero(where).tolist())


def _some(key: str, title: str, help: str, where: npt.ArrayLike, **more: Any) -> Check:
    rows = _rows(where)
    return Check(key, title, help, len(rows), rows, **{"bad": bool(rows), **more})


def _written(system: Analysis) -> Iterator[Check]:
    yield _some(
        "empty", "empty hypotheses", "Nothing was written: latency is undefined.", system.run.delays.lengths == 0
    )


def _undefined(system: Analysis) -> Iterator[Check]:
    place = {name: row for row, name in enumerate(map(str, system.run.id.tolist()))}
    found: dict[str, tuple[list[str], set[int]]] = {}
    for one in system.scores:
        for reason, ids in one.undefined.reasons.items():
            names, rows = found.setdefault(reason, ([], set()))
            names.append(repr(one.metric))
            rows.update(place[str(name)] for name in ids)
    for reason, (names, rows) in found.items():
        help = f"No value in {', '.join(names)}; these segments are left out of its mean."
        own = reason != UNDEFINED_ELSEWHERE
        yield Check(f"undefined: {reason}", f"undefined: {reason}", help, len(rows), tuple(sorted(rows)), bad=own)


def _lengths(system: Analysis) -> Iterator[Check]:
    reference = system.schedules.reference_length
    if reference is None or not (reference > 0).any():
        return
    written = system.run.delays.lengths - system.run.eos.astype(np.int64)
    known = reference > 0
    ratio: Floats = np.where(known, written, np.nan) / np.where(known, reference, np.nan)
    total = float(written[known].sum() / reference[known].sum())
    odd = (ratio > RATIO) | (ratio < 1 / RATIO)
    yield _some(
        "ratio",
        "hypothesis ÷ reference length",
        f"Of all segments together; counted are those where one is more than {RATIO:g} times as long as the other.",
        odd,
        value=total,
        unit="ratio",
        bad=not 1 / CORPUS_RATIO < total < CORPUS_RATIO,
    )


def _times(system: Analysis) -> Iterator[Check]:
    s = system.schedule()
    tolerance = system.convention.tolerance if system.run.unit == "ms" else 0.0
    with np.errstate(invalid="ignore"):
        beyond = s.by_row(lambda g, x: (g.max(axis=1) > x[:, 0] + tolerance).astype(np.float64), s.x) == 1
        if system.run.seg == "none":
            yield _some("beyond", "delays beyond the source", "More source was read than there is.", beyond)
        else:  # a stream goes on after a segment has ended
            help = "Written after the segment had ended, while the recording went on: no fault in itself."
            yield _some("beyond", "delays beyond the segment", help, beyond, bad=False)
        if "elapsed" in system.clocks:
            e = system.schedule("elapsed").g
            early = e.by_row(lambda e, g: ((e < g - ROUNDING).any(axis=1)).astype(np.float64), s.g) == 1
            help = "A token was there before its source was: clocks that do not agree."
            yield _some("early", "elapsed below ideal", help, early)
        found = system.diagnostics
        al, dal, hidden = found["AL"].segments, found["DAL"].segments, found["HiddenShare"]
        yield _some("negative", "negative AL", "Ahead of the ideal translator: AL rewards what it should not.", al < 0)
        yield _some(
            "hidden",
            "lag that AL hides",
            f"HiddenShare, (DAL − AL) ÷ DAL; counted are segments above {HIDDEN:g}.",
            dal - al > HIDDEN * np.abs(dal),
            value=hidden.value,
            unit="ratio",
            bad=hidden.value > HIDDEN,
        )
    offline = found["Offline"]
    yield _some(
        "offline",
        "written after the source ended",
        "Offline: nothing was written before the source ended, so the segment is not simultaneous.",
        offline.segments == 1,
        value=offline.value,
        unit="ratio",
        bad=system.run.seg == "none" and offline.value >= OFFLINE,
    )
    swf, alone = found["SWF"].value, system.run.seg == "none"
    help = "SWF: the share of target tokens, in %, written before the source ended."
    yield Check("swf", "simultaneous words", help, value=swf, unit="points", bad=alone and swf < 100 * (1 - OFFLINE))


def _changed(system: Analysis) -> Iterator[Check]:
    for name, count in system.whole.repaired:
        yield Check(f"repaired: {name}", f"repaired: {name}", f"Changed by --repair {name}.", count, bad=count > 0)
    for kind, count in system.whole.stripped:
        help = "Taken out of hypotheses and references, with their delays."
        yield Check(f"stripped: {kind}", f"stripped: {kind}", help, count, noun="token")


def _unmatched(ids: Iterable[Any]) -> Iterator[Check]:
    names = tuple(map(str, ids))
    help = "Not all of the other systems have them: left out of everything below."
    yield Check("unmatched", "segments that others lack", help, len(names), bad=bool(names), ids=names)
