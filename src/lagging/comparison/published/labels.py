# SPDX-License-Identifier: Apache-2.0
"""The meaning of the labels and values of score files: which metric of ours, and which number."""

from __future__ import annotations

import math
import re

from lagging.data.decimals import decimal
from lagging.errors import MetricNameError
from lagging.metrics import Metric, metric

__all__ = ["FLAGS", "S2S", "find_metric", "has_clock", "is_number", "is_score_label", "number"]

SIMULSTREAM = {
    "ideal_latency": "StreamLAAL(version=1)",
    "computational_aware_latency": "StreamLAAL_v1_CA",
    "sacrebleu": "BLEU",
}
"""What simulstream prints."""

S2S = {
    "ca_unaware_yaal": "LongYAAL(length=hypothesis)",
    "ca_aware_yaal": "LongYAAL(length=hypothesis, clock=elapsed)",
    "ending_offset": "EndOffset",
    "ca_ending_offset": "EndOffset(clock=elapsed)",
}
"""The columns of Speech-to-Speech-Latency."""

NAMES = {
    "Simultaneous Words Fraction (%)": "SWF",
    "Expected Simul. Words Fraction (%)": "EFSW",
    "Degeneracy Test Value": "DSPTV",
    **SIMULSTREAM,
    **S2S,
    "ATD_CA": "ATD(clock=queue)",  # alone among SimulEval's _CA, it computes while it listens
}
"""Labels that are neither a name or alias of ours, nor made from one by `(CU)`, `(CA)` or `--no-use-ref-len`."""

FIRST = {"StreamLAAL": "StreamLAAL_v1", "StreamLAAL_CA": "StreamLAAL_v1_CA"}
"""The meaning of labels before version 2.0 of FBK's script, which counts a token before its segment as 0."""

FLAGS = ("Likely Degenerate Simultaneous Policy",)
"""Labels of rows that hold a verdict (YES, NO, N/A) and no score: these rows are skipped, and no others."""

QUALITY = ("ASR_BLEU", "WHISPER_ASR_BLEU", "COMET")
"""Scores of SimulEval and OmniSTEval that have no name of ours; a file that holds one is a score file."""

LONGEST = 200
"""Characters; no longer label is the name of a metric."""

LABEL = re.compile(r"(?P<name>.+?)(?: (?P<open>\()?(?P<clock>CU|CA)(?(open)\)))?(?P<by_hypothesis> --no-use-ref-len)?")
PERCENT = {"ratio": 100.0, "score": 100.0, "points": 1.0, None: 1.0}
"""The divisor of a percentage, by the unit of the metric; times have no percentages."""


def find_metric(
    label: str, settings: dict[str, str] | None = None, tool: str | None = None, version: str | None = None
) -> Metric | None:
    """The metric of ours that a label means; None if there is none.

    Args:
        label: as the tool writes it.
        settings: the settings of OmniSTEval, if known: its tokenizer, and whether it corrected computation-aware times.
        tool, version: the tool that wrote it, and its version, if known.

    Example:
        >>> find_metric("AL (CA)"), find_metric("LongDAL (CU)"), find_metric("LAAL_CA --no-use-ref-len")
        (AL(clock=elapsed), DAL, LAAL(length=hypothesis, clock=elapsed))
        >>> find_metric("AL (CA)", {"Fix CA emissions": "yes"})
        AL(clock=omnisteval)
        >>> find_metric("StreamLAAL_CA"), find_metric("StreamLAAL", tool="StreamLAAL", version="1.0.0")
        (StreamLAAL(clock=fbk), StreamLAAL(version=1))
        >>> find_metric("BLEU (CA)") is None
        True
    """
    match = LABEL.fullmatch(label) if len(label) <= LONGEST else None
    if match is None:
        return None
    settings = settings or {}
    name, clock, params = match["name"], match["clock"], {}
    if clock == "CA":
        # long-form segments have the corrected times for their elapsed times
        corrected = settings.get("Fix CA emissions") == "yes" and not name.startswith("Long")
        params["clock"] = "omnisteval" if corrected else "elapsed"
    if match["by_hypothesis"]:
        params["length"] = "hypothesis"
    if name == "BLEU" and settings.get("BLEU tokenizer", "13a") != "13a":
        params["tok"] = settings["BLEU tokenizer"]
    if tool == "StreamLAAL" and (version or "").split(".")[0] == "1":
        name = FIRST.get(name, name)
    try:
        meant = metric(NAMES.get(label, name))(**params)
    except MetricNameError:
        return None
    if clock and not meant.has("clock"):
        return None
    return meant


def has_clock(label: str) -> bool:
    """Whether a label ends in CU or CA, as OmniSTEval's do; brackets may be left out.

    Example:
        >>> has_clock("LongYAAL CU"), has_clock("LongYAAL (CA)"), has_clock("AL_CA")
        (True, True, False)
    """
    match = LABEL.fullmatch(label) if len(label) <= LONGEST else None
    return match is not None and match["clock"] is not None


def is_score_label(label: str, exactly: bool = True) -> bool:
    """Whether a label shows that a file is a score file; `exactly` as a tool writes it, where it may be any word."""
    meant = find_metric(label)
    return label in QUALITY or (meant is not None and (not exactly or label in NAMES or meant.name in label))


def is_number(text: str) -> bool:
    """Whether a cell can be a value; an empty one is NaN."""
    return _amount(text) is not None


def _amount(text: str) -> tuple[float | None, bool] | None:
    """The number in a cell (None if it is empty), and whether it is a percentage; None if it is no number."""
    bare = text.removesuffix("%").rstrip()
    value = decimal(bare, ("nan",))
    return None if bare and value is None else (value, text.endswith("%"))


def number(value: object, measure: str | None = None) -> float | None:
    """The number in a cell, NaN where it is empty; None if it is no number, or infinite.

    Args:
        value: a cell of a table, or a value of a JSON text.
        measure: the unit of the metric ("time", "ratio", "count", "points"); None if it is not known.

    Example:
        >>> number("75 %", "ratio"), number("32.9%", "points"), number("50%", "time"), number(""), number("YES")
        (0.75, 32.9, None, nan, None)
    """
    if value is None:
        return math.nan
    if isinstance(value, str):
        amount = _amount(value.strip())
        if amount is None or (amount[1] and (amount[0] is None or measure not in PERCENT)):
            return None
        value = math.nan if amount[0] is None else amount[0] / (PERCENT[measure] if amount[1] else 1.0)
    return value if isinstance(value, float) and not math.isinf(value) else None
