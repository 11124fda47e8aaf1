# SPDX-License-Identifier: Apache-2.0
"""The numbers of a Meter for Prometheus (extra `prometheus`).

Lags are histograms with fixed limits, so that Prometheus adds up those of several processes; times are in seconds, as
its conventions have them. Nothing is computed between scrapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lagging.errors import optional
from lagging.meter.measures import LAGS, WORD_LAGS
from lagging.meter.sketch import Sketch

if TYPE_CHECKING:
    from lagging.meter.meter import Meter

__all__ = ["LIMITS", "PrometheusCollector", "export"]

LIMITS = (0, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10, 15, 20, 30, 60)
"""The limits of the histograms, in seconds."""
HELP = {
    "lag": "Lag of each word behind the audio heard, when it became stable",
    "lag_elapsed": "Lag of each word, computing included",
    "lag_first": "Lag of each word behind the audio heard, when it was first shown",
    "word_lag": "Time from the end of each source word to its appearance",
    "backlog": "How far the audio heard was behind the time, at each update",
}
"""What each distribution is."""
COUNTERS = {
    "utterances": "Utterances that ended",
    "empty": "Utterances that ended without a word",
    "words": "Words that were written",
    "erased": "Words that were erased again",
    "revisions": "Updates that erased words",
}
"""What each count is."""


class PrometheusCollector:
    """A collector for a registry of prometheus_client, made by `export`."""

    def __init__(self, meter: Meter, prefix: str = "lagging") -> None:
        self._core = optional("prometheus_client.core", "prometheus")
        self.meter, self.prefix = meter, prefix

    def collect(self) -> Iterator[Any]:
        """The metrics of a scrape."""
        core, labels = self._core, [self.meter.name]
        measures, state = self.meter.measures(), self.meter.state()

        def family(kind: Any, name: str, text: str, *values: Any, **more: Any) -> Any:
            made = kind(f"{self.prefix}_{name}", text, labels=["system"])
            made.add_metric(labels, *values, **more)
            return made

        for name, text in COUNTERS.items():
            yield family(core.CounterMetricFamily, name, text, measures.counts[name])
        yield family(core.CounterMetricFamily, "heard_seconds", "Audio that was heard", measures.heard / 1000)
        yield family(core.GaugeMetricFamily, "open_utterances", "Utterances that have not ended", state["open"])
        now = state["backlog_now_ms"] / 1000
        yield family(core.GaugeMetricFamily, "backlog_now_seconds", "Largest backlog of an open utterance", now)
        for name in (*LAGS, *WORD_LAGS, "backlog"):
            sketch = measures.sketches.get(name, Sketch())
            limits = [(str(float(limit)), sketch.count_up_to(limit * 1000)) for limit in LIMITS]
            yield family(
                core.HistogramMetricFamily,
                f"{name}_seconds",
                HELP[name],
                buckets=[*limits, ("+Inf", sketch.n)],
                sum_value=sketch.sum / 1000,
            )


def export(meter: Meter, registry: Any = None, *, prefix: str = "lagging") -> PrometheusCollector:
    """Show a Meter to Prometheus.

    Args:
        meter: the Meter.
        registry: a registry of prometheus_client; its default one if not given.
        prefix: the beginning of all names.

    Returns:
        The collector, which `registry.unregister` takes.

    Raises:
        MissingExtraError: prometheus_client is not installed.

    Example:
        >>> from lagging.meter import Meter
        >>> import prometheus_client
        >>> registry = prometheus_client.CollectorRegistry()
        >>> _ = export(Meter("captions"), registry)
        >>> registry.get_sample_value("lagging_words_total", {"system": "captions"})
        0
    """
    collector = PrometheusCollector(meter, prefix)
    (optional("prometheus_client", "prometheus").REGISTRY if registry is None else registry).register(collector)
    return collector
