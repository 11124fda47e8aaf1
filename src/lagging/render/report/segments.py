# SPDX-License-Identifier: Apache-2.0
"""The list of segments: the columns of all systems as small numbers, and the choice among very many segments.

Times are whole milliseconds, or thousandths of a token where they are no whole tokens, each as its difference from the
time before it in the same segment; times on other clocks are differences from the delay. Queue times that follow from
delays and elapsed times are not written down, but "steps": finish(t) = max(g(t), finish(t−1)) + compute(t).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

import numpy as np

from lagging.data.ragged import Floats, Ints, Ragged
from lagging.data.run import Run
from lagging.data.tokens import are_sounds, is_sound, is_spm, tokens
from lagging.errors import counted
from lagging.metrics import Metric
from lagging.render.analysis import Analysis
from lagging.render.report.charts import round_column

__all__ = ["choose_rows", "deltas", "find_sounds", "recording_names", "segment_columns"]

MOST = 40_000
"""The most segments that a page holds, of all systems together; with these it opens in a moment."""
TOKENS = 1_200_000
"""The most tokens that a page holds."""
WORST = 0.5
"""The part of a sample that is kept for segments that stand out; the rest is evenly spread."""
DIGITS = {"ms": 1, "ms/min": 1, "token": 4, "token/100": 4, "ratio": 4, "count": 2, "points": 3, "score": 5, "none": 1}


def choose_rows(systems: Sequence[Analysis], flagged: Iterable[int]) -> tuple[Ints, str]:
    """The rows that the page holds, and a note if these are not all.

    Of too many segments, those that stand out are kept: the largest lags, the largest gaps between AL and DAL, the
    largest differences between two systems, and those of the health checks. The rest is an even sample.
    """
    n = len(systems[0].run)
    lengths = np.sum([system.run.delays.lengths for system in systems], axis=0)
    mean = max(float(lengths.mean()), 1.0) if n else 1.0
    most = max(1, min(MOST // len(systems), int(TOKENS / mean)))
    if n <= most:
        return np.arange(n), ""
    kept = np.zeros(n, dtype=bool)
    rankings = [*_rank_outstanding(systems), np.fromiter(flagged, dtype=np.int64)]
    share = int(WORST * most) // len(rankings)
    for rows in rankings:
        kept[rows[:share]] = True
    rest = np.flatnonzero(~kept)
    sample = np.linspace(0, len(rest) - 1, max(most - int(kept.sum()), 0)).astype(np.int64)
    kept[rest[sample]] = True
    rows = np.flatnonzero(kept)
    note = (
        f"The list has {len(rows)} of {counted(n, 'segment')}: those that stand out by lag, by AL–DAL gap, by the "
        "difference between two systems or by a health check, and an even sample of the others. Scores and figures are "
        "of all segments."
    )
    return rows, note


def _rank_outstanding(systems: Sequence[Analysis]) -> list[Ints]:
    timed = [system for system in systems if system.timed]
    rankings = []
    for system in timed:
        dal, al = system.diagnostics["DAL"].segments, system.diagnostics["AL"].segments
        rankings += [_rank_largest(dal), _rank_largest(dal - al)]
    for a, b in combinations(timed[:4], 2):
        rankings.append(_rank_largest(np.abs(a.diagnostics["DAL"].segments - b.diagnostics["DAL"].segments)))
    return rankings


def _rank_largest(values: Floats) -> Ints:
    return np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")


def segment_columns(systems: Sequence[Analysis], metrics: Sequence[Metric], rows: Ints) -> dict[str, Any]:
    """The columns that the list of segments and the timelines need."""
    first = systems[0].run
    documents = None if first.document is None else first.document[rows].tolist()
    recordings = recording_names(first)
    return {
        "id": list(map(str, first.id[rows].tolist())),
        "document": documents if documents and any(documents) else None,
        "recording": None if recordings is None else [recordings[row] for row in rows.tolist()],
        "offset": None if first.offset is None else round_column(first.offset[rows], 0),
        "source": _merge_texts([_texts(system, "source", rows) for system in systems]),
        "reference": _merge_texts([_texts(system, "reference", rows) for system in systems]),
        "systems": [_system_columns(system, metrics, rows) for system in systems],
    }


def recording_names(run: Run) -> list[str | None] | None:
    """The recording of each segment: its document where it was cut from a talk, the name of its sound file otherwise.

    Example:
        >>> run = Run.from_delays([[900.0]], source_length=[1000.0], source=["/data/talk_7.wav"])
        >>> recording_names(run)
        ['talk_7.wav']
    """
    if run.offset is not None and run.document is not None:
        return run.document.tolist()  # type: ignore[no-any-return]
    if run.source is None or not are_sounds(run.source.tolist()):
        return None
    return [PurePath(name).name if name else None for name in run.source.tolist()]


def find_sounds(names: Iterable[str | None], folder: str | Path, page: str | Path) -> dict[str, str]:
    """Addresses of sound files, as seen from a page: by their names, or by their names without an ending."""
    files = [file for file in sorted(Path(folder).iterdir()) if is_sound(file.name)]
    by_name = {file.stem: file for file in files} | {file.name: file for file in files}
    start = Path(page).resolve().parent
    found = {name: by_name[name] for name in names if name in by_name}
    return {name: quote(PurePath(os.path.relpath(file.resolve(), start)).as_posix()) for name, file in found.items()}


def _texts(system: Analysis, column: str, rows: Ints) -> list[str | None] | None:
    values = getattr(system.run, column)
    if values is None:
        return None
    return [None if text is None else text.strip() for text in values[rows].tolist()]


def _merge_texts(lists: Sequence[list[str | None] | None]) -> list[str | None] | None:
    """The texts that the systems share: for each segment, the first that is known."""
    known = [texts for texts in lists if texts is not None]
    if not known:
        return None
    return [next((text for text in texts if text), None) for texts in zip(*known, strict=True)]


def _system_columns(system: Analysis, metrics: Sequence[Metric], rows: Ints) -> dict[str, Any]:
    columns: dict[str, Any] = {"prediction": _predictions(system, rows), "pieces": _pieces(system, rows)}
    values = {repr(m): (system.values(m)[rows], system.scores[m].unit) for m in metrics}
    if system.timed:
        for name in ("AL", "DAL"):
            score = system.diagnostics[name]
            values.setdefault(name, (score.segments[rows], score.unit))
        g = system.schedule().g.take(rows)
        scale = 1 if system.run.unit == "ms" or (g.values == np.rint(g.values)).all() else 1000
        columns |= {
            "scale": scale,
            "x": round_column(system.run.source_length[rows], 3),
            "tokens": g.lengths.tolist(),
            "delays": deltas(g, scale),
        }
        for clock in system.clocks[1:]:
            late = system.schedule(clock).g.take(rows).by_token(lambda e, g: e - g, g)
            columns[clock] = "steps" if clock == "queue" and _stepwise(system) else deltas(late, scale)
        if system.run.first_times is not None:
            first = system.schedule("first").g.take(rows)
            columns["first"] = deltas(first.by_token(lambda f, g: f - g, g), scale)
    else:
        columns |= {"tokens": system.run.delays.lengths[rows].tolist()}
    columns["values"] = {name: round_column(column, DIGITS[unit]) for name, (column, unit) in values.items()}
    return columns


def _stepwise(system: Analysis) -> bool:
    """Whether the page can tell queue times from elapsed times: a step per token, computing elapsed − delay more."""
    run = system.run
    return run.queue_times is None and (run.arrivals is None or run.compute is None) and "elapsed" in system.clocks


def deltas(times: Ragged, scale: int) -> list[int]:
    """Times as whole numbers, each less the one before it in its row.

    Example:
        >>> deltas(Ragged.from_rows([[3, 4, 4], [], [1, 9]]), 1)
        [3, 1, 0, 1, 8]
    """
    whole = np.rint(times.values * scale).astype(np.int64)
    steps = np.diff(whole, prepend=0)
    starts = times.offsets[:-1][times.lengths > 0]
    steps[starts] = whole[starts]
    return steps.tolist()  # type: ignore[no-any-return]


def _predictions(system: Analysis, rows: Ints) -> list[str | None] | None:
    if system.run.prediction is None:
        return None
    if system.run.speech_out:
        return system.run.prediction[rows].tolist()  # type: ignore[no-any-return]
    texts = system.schedule().predictions if system.timed else system.run.prediction.tolist()
    return [texts[row] for row in rows.tolist()]


def _pieces(system: Analysis, rows: Ints) -> list[list[str]] | None:
    """The tokens of each text, where they are neither words nor characters, which the page can tell itself."""
    if not system.timed or not is_spm(system.run.level) or system.run.prediction is None:
        return None
    texts = system.schedule().predictions
    return [tokens(texts[row] or "", system.run.level) for row in rows.tolist()]
