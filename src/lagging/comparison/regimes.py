# SPDX-License-Identifier: Apache-2.0
"""Regimes of shared tasks: the bands of latency, the metric that counts, and the band of a system.

iwslt26        unsegmented speech: LongYAAL as OmniSTEval computes it, low up to 2 s, high up to 4 s
iwslt25        unsegmented speech: StreamLAAL as FBK computes it, en-de and cs-en: up to 2 s, up to 4 s
iwslt25-en-zh  the same: up to 2.5 s, up to 4 s
iwslt25-en-ja  the same: up to 3.5 s, up to 5 s
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lagging.errors import UsageError, did_you_mean
from lagging.metrics import Metric, metric
from lagging.scoring.intervals import with_intervals
from lagging.scoring.scores import Score, Scores

__all__ = ["REGIMES", "Regime", "Verdict", "apply_regime", "regime"]


@dataclass(frozen=True)
class Regime:
    """The bands of latency of a shared task.

    Attributes:
        name: the name that `--regime` takes.
        metric: the metric that counts.
        aligner, convention: the aligner that cuts streams, and the convention of the metric.
        limits: the name and the upper limit of each band, in ms, from the lowest.
        source: where this is published.
        tokenizer: sacreBLEU's tokenizer for the target language; None if that is not fixed, and the references decide.
    """

    name: str
    metric: str
    aligner: str
    convention: str
    limits: tuple[tuple[str, float], ...]
    source: str
    tokenizer: str | None = None

    @property
    def quality(self) -> list[Metric]:
        """BLEU with the tokenizer of the target language; none if the references decide."""
        if self.tokenizer is None:
            return []
        return [metric("BLEU") if self.tokenizer == "13a" else metric("BLEU")(tok=self.tokenizer)]


def _iwslt25(name: str, low: float, high: float, tokenizer: str) -> Regime:
    source = "IWSLT 2025, simultaneous track: non-computation-aware StreamLAAL on the development set"
    return Regime(name, "StreamLAAL", "mwersegmenter", "fbk", (("low", low), ("high", high)), source, tokenizer)


REGIMES = {
    r.name: r
    for r in (
        Regime(
            "iwslt26",
            "LongYAAL",
            "omnisteval",
            "omnisteval",
            (("low", 2000.0), ("high", 4000.0)),
            "IWSLT 2026, simultaneous track: non-computation-aware LongYAAL by OmniSTEval 0.1.7 or later",
        ),
        _iwslt25("iwslt25", 2000.0, 4000.0, "13a"),
        _iwslt25("iwslt25-en-zh", 2500.0, 4000.0, "zh"),
        _iwslt25("iwslt25-en-ja", 3500.0, 5000.0, "ja-mecab"),
    )
}


def regime(name: str) -> Regime:
    """The regime of that name.

    Example:
        >>> regime("iwslt26").limits
        (('low', 2000.0), ('high', 4000.0))
    """
    if name not in REGIMES:
        raise UsageError(f"no regime is called {name!r}.{did_you_mean(name, REGIMES)}")
    return REGIMES[name]


@dataclass(frozen=True)
class Verdict:
    """The band of a system in a regime.

    Attributes:
        regime: the regime.
        score: the score, with its interval.
        band: the band of its value; None above all bands, or without a value.
        sure: the band of its whole interval, "above" if that is above all bands; None where the interval reaches into
            another band, or where there is none.
    """

    regime: Regime
    score: Score
    band: str | None
    sure: str | None

    def __str__(self) -> str:
        """`LongYAAL 1.998 s [1.850, 2.146]: in low (up to 2 s), but not surely`."""
        s = self.score
        if math.isnan(s.value):
            return f"{s.metric!r} is undefined: no regime"
        ends = "no interval" if s.low is None or s.high is None else f"{s.low / 1000:.3f}, {s.high / 1000:.3f}"
        text = f"{s.metric!r} {s.value / 1000:.3f} s [{ends}]: "
        if self.band is None:
            text += f"above {self.regime.limits[-1][0]} (up to {self.regime.limits[-1][1] / 1000:g} s)"
        else:
            text += f"in {self.band} (up to {dict(self.regime.limits)[self.band] / 1000:g} s)"
        return text + (", but not surely" if self.sure != (self.band or ABOVE) else "")


ABOVE = "above"


def apply_regime(scores: Scores, name: str) -> tuple[Scores, Verdict]:
    """The scores with an interval of the metric that counts in a regime, and the band of the system.

    Recordings are resampled where there are several, since another test set would have other recordings; else segments.
    A system is surely in a band if its whole interval is.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[1990], [1996], [2005]], source_length=[4000] * 3, unit="ms", seg="given",
        ...                               recording_end=[9000] * 3)
        >>> scores, verdict = apply_regime(lagging.score(run, ["LongYAAL"]), "iwslt26")
        >>> verdict.band, verdict.sure
        ('low', None)
        >>> print(verdict)
        LongYAAL 1.997 s [1.990, 2.005]: in low (up to 2 s), but not surely
    """
    chosen = regime(name)
    score = scores[chosen.metric]
    documents = set() if score.documents is None else set(score.documents.tolist())
    several = len(documents) > 1 and None not in documents
    with_interval = with_intervals(Scores([score], scores.system), resample="document" if several else "segment")
    judged = next(iter(with_interval))
    ends = [judged.low, judged.high] if judged.low is not None else [None]
    bands = {_band(chosen, end) for end in ends}
    sure = bands.pop() if len(bands) == 1 else None
    band = _band(chosen, judged.value)
    rest = [judged if s.metric == judged.metric else s for s in scores]
    return Scores(rest, scores.system, (*scores.notes, *with_interval.notes)), Verdict(
        chosen, judged, None if band == ABOVE else band, sure
    )


def _band(chosen: Regime, value: float | None) -> str | None:
    if value is None or math.isnan(value):
        return None
    return next((name for name, limit in chosen.limits if value <= limit), ABOVE)
