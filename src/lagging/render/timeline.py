# SPDX-License-Identifier: Apache-2.0
"""The timeline of one sentence: when each token was read, was written, and would have been written ideally."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lagging.data import notebooks
from lagging.data.ragged import Floats
from lagging.data.run import Run
from lagging.data.tokens import tokens
from lagging.errors import MetricError
from lagging.metrics import clocks, kernels, metric
from lagging.metrics.conventions import PAPER, Convention
from lagging.metrics.schedule import Schedules
from lagging.metrics.words import pair_words
from lagging.scoring.log import score
from lagging.scoring.scores import Score, Scores

__all__ = ["Timeline", "timeline"]


@dataclass(frozen=True)
class Timeline:
    """One sentence, token by token, in the paper's terms.

    Attributes:
        id: id of the segment.
        unit: "token" or "ms".
        source, reference: texts, if the log has them.
        source_length: |x|.
        write_cost: d = |x|/|y|.
        target: the target tokens; empty strings where the log has no text.
        read: the source words read right before each target token; empty where they are not known.
        delays: g(t).
        first: when each token was first shown; None if nothing was revised, or that is not known.
        effective_delays: g'(t).
        ideal: (t−1)d, when the ideal translator writes.
        lags: g(t) − (t−1)d.
        effective_lags: g'(t) − (t−1)d.
        spoken: the source word of each target token, where word times are there; empty where it has none.
        word_lags: how long after the end of its source word each target token appeared; NaN where it has none.
        recording, offset: the recording that the segment was cut from, and when it begins in it; NaN if not known.
        broke: whether the lag at t is the largest so far, so that DAL charges for the read before t.
        scores: the scores of the sentence.
    """

    id: int | str
    unit: str
    source: str | None
    reference: str | None
    source_length: float
    write_cost: float
    target: tuple[str, ...]
    read: tuple[str, ...]
    delays: Floats
    first: Floats | None
    effective_delays: Floats
    ideal: Floats
    lags: Floats
    effective_lags: Floats
    broke: tuple[bool, ...]
    scores: tuple[Score, ...]
    spoken: tuple[str, ...] = ()
    word_lags: Floats | None = None
    recording: str = ""
    offset: float = math.nan

    _repr_html_ = notebooks.html


def timeline(
    run: Run, segment: int | str, *, metrics: Sequence[str] = ("AP", "AL", "DAL"), convention: Convention = PAPER
) -> Timeline:
    """The timeline of a segment, by its id.

    Args:
        run: the Run of the segment.
        segment: id of the segment.
        metrics: the metrics whose values are shown beside it.
        convention: the convention of counting, which says whether a final `</s>` is stripped.

    Example:
        >>> run = Run.from_delays([[4, 4, 4, 4, 5]], source_length=[5], prediction=["I saw a black cat"],
        ...     source=["ich habe eine schwarze Katze"])
        >>> line = timeline(run, 0)
        >>> line.read
        ('ich habe eine schwarze', '', '', '', 'Katze')
        >>> line.effective_delays, line.broke
        (array([4., 5., 6., 7., 8.]), (True, False, False, False, False))
    """
    rows = [row for row, name in enumerate(run.id.tolist()) if str(name) == str(segment)]
    if not rows:
        raise MetricError(f"there is no segment {segment} in {run.name or 'this Run'}")
    if run.unit == "none":
        where = f" in {run.origin.path or run.name}" if run.origin.path or run.name else ""
        raise MetricError(
            f"there are no delays{where}, so nothing can be shown over time\n  fix: name a log that has them."
        )
    sentence = run[rows[:1]]
    schedule = Schedules(sentence, convention).for_metric(metric("DAL"))
    g, x = schedule.g[0], float(schedule.x[0])
    spoken = sentence.prediction is None or sentence.durations is not None
    text = None if spoken else schedule.predictions[0]
    words = tokens(text, sentence.level) if text is not None and sentence.level != "token" else []
    source = None if sentence.source is None else sentence.source[0]
    undefined = np.full((1, len(g)), np.nan)
    lags = kernels.lags(g[None], schedule.x[:, None], schedule.y[:, None]) if len(g) and x else undefined
    d = x / len(g) if len(g) else np.nan
    effective = kernels.effective_delays(lags, np.array([[d]]))[0]
    ideal: Floats = np.arange(len(g), dtype=np.float64) * d
    broke = kernels.over_budget(lags)[0] == np.arange(len(g)) if len(g) and x else undefined[0] > 0
    scores: Scores = score(sentence, metrics, convention=convention)
    source_words, word_lags = _spoken_words(sentence, convention) if sentence.spoken is not None else ((), None)
    return Timeline(
        id=sentence.id.item(0),
        unit=sentence.unit,
        source=source,
        reference=None if sentence.reference is None else sentence.reference[0],
        source_length=x,
        write_cost=d,
        target=tuple(words) if len(words) == len(g) else ("",) * len(g),
        read=_words_read(source, x, g) if sentence.unit == "token" else ("",) * len(g),
        delays=g,
        first=None if sentence.first_times is None else clocks.clock(sentence, "first")[0][: len(g)],
        effective_delays=effective,
        ideal=ideal,
        lags=lags[0],
        effective_lags=np.maximum.accumulate(lags[0]),
        broke=tuple(broke.tolist()),
        scores=tuple(scores),
        spoken=source_words,
        word_lags=word_lags,
        recording="" if sentence.document is None else sentence.document[0] or "",
        offset=math.nan if sentence.offset is None else float(sentence.offset[0]),
    )


def _spoken_words(sentence: Run, convention: Convention) -> tuple[tuple[str, ...], Floats]:
    """The source words of each target token, and how long after the end of the last of them it appeared."""
    schedule = Schedules(sentence, convention).for_metric(metric("WordLag"))
    owners = pair_words(schedule).owners[0].astype(int)
    spoken, g = sentence.spoken, schedule.g[0]
    assert spoken is not None
    words, ends = spoken.words[0] or (), spoken.end[0]
    of_token = [np.flatnonzero(owners == t).tolist() for t in range(len(g))]
    texts = tuple(" ".join(words[k] for k in found) for found in of_token)
    return texts, np.array([g[t] - ends[found[-1]] if found else np.nan for t, found in enumerate(of_token)])


def _words_read(source: str | None, x: float, g: Floats) -> tuple[str, ...]:
    """The source words, or characters, read right before each target token; nothing where |x| counts neither."""
    words = next((units for level in ("word", "char") if len(units := tokens(source or "", level)) == x), [])
    separator = " " if words == (source or "").split() else ""
    before = [0, *g[:-1].astype(int).tolist()] if len(g) else []
    return tuple(separator.join(words[a:b]) for a, b in zip(before, g.astype(int).tolist(), strict=True))
