# SPDX-License-Identifier: Apache-2.0
"""What is done where nothing was asked for: which metrics are scored, and what is resampled."""

from __future__ import annotations

from lagging.errors import MetricError
from lagging.run import Run
from lagging.scoring import DEFAULT_METRICS, LONGFORM_METRICS, Scores

__all__ = ["default_metrics", "default_unit"]


def default_metrics(run: Run) -> tuple[str, ...]:
    """The metrics that fit a Run, or its first part: of latency, with BLEU where there are references.

    Raises:
        MetricError: it has neither delays nor references.

    Example:
        >>> import lagging
        >>> default_metrics(lagging.Run.from_delays([[1, 2]], source_length=[2]))
        ('AP', 'AL', 'LAAL', 'DAL')
        >>> default_metrics(lagging.Run.from_texts(["good day"], reference=["good day"]))
        ('BLEU', 'chrF')
    """
    quality = run.reference is not None and run.prediction is not None and not run.speech_out and any(run.reference)
    if run.unit == "none" and not quality:
        raise MetricError(
            f"{run.origin.path or run.name} has neither delays nor references, so nothing can be scored\n"
            "  fix: give each segment its `delays`, or its `reference`."
        )
    if run.unit == "none":
        return "BLEU", "chrF"
    long = run.seg != "none" and run.offset is not None and run.recording_end is not None
    latency = LONGFORM_METRICS if long else DEFAULT_METRICS
    return (*latency, "BLEU") if quality else latency


def default_unit(*systems: Scores) -> str:
    """What another test set would have others of: recordings, where segments were cut from several; else segments.

    Segments of which one has no recording can be resampled by segment only.

    Example:
        >>> import lagging
        >>> def scores(seg):
        ...     run = lagging.Run.from_delays([[1], [2]], source_length=[2, 2], document=["a", "b"], seg=seg)
        ...     return lagging.score(run, ["DAL"])
        >>> default_unit(scores("none")), default_unit(scores("given"))
        ('segment', 'document')
    """
    firsts = [next(iter(scores)) for scores in systems]
    known = [set(s.documents.tolist()) for s in firsts if s.documents is not None]
    several = any(len(names) > 1 for names in known) and not any(None in names for names in known)
    return "document" if several and all(s.signature.get("seg") != "none" for s in firsts) else "segment"
