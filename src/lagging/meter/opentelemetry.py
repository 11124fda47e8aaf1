# SPDX-License-Identifier: Apache-2.0
"""The numbers of a Meter for OpenTelemetry (extra `opentelemetry`).

OpenTelemetry has no histogram that is read when it is collected. So distributions are shown as percentiles of the
window, each with the attribute `quantile`, where the number of values carries them; counts are counters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from lagging.errors import optional
from lagging.meter.measures import LAGS, WORD_LAGS
from lagging.meter.prometheus import COUNTERS, HELP
from lagging.meter.sketch import PERCENTILES

if TYPE_CHECKING:
    from lagging.meter.meter import Meter

__all__ = ["export"]


def export(meter: Meter, provider: Any = None, *, prefix: str = "lagging") -> None:
    """Show a Meter to OpenTelemetry, by observable instruments.

    Args:
        meter: the Meter.
        provider: a MeterProvider of OpenTelemetry; the global one if not given.
        prefix: the beginning of all names.

    Raises:
        MissingExtraError: OpenTelemetry is not installed.

    Example:
        >>> from opentelemetry.sdk.metrics import MeterProvider
        >>> from lagging.meter import Meter
        >>> export(Meter("captions"), MeterProvider(shutdown_on_exit=False))
    """
    api = optional("opentelemetry.metrics", "opentelemetry")
    instruments = (api.get_meter_provider() if provider is None else provider).get_meter("lagging")
    labels = {"system": meter.name}

    def count(name: str) -> Callable[[Any], list[Any]]:
        return lambda options: [api.Observation(meter.measures().counts[name], labels)]

    def percentiles(name: str) -> Callable[[Any], Iterator[Any]]:
        def observe(options: Any) -> Iterator[Any]:
            summary = meter.measures(recent=True).snapshot()[name]
            for p in PERCENTILES:
                if (value := summary[f"p{p:g}"]) is not None:
                    yield api.Observation(value / 1000, {**labels, "quantile": f"{p / 100:g}"})

        return observe

    def state(name: str, scale: float = 1.0) -> Callable[[Any], list[Any]]:
        return lambda options: [api.Observation(meter.state()[name] / scale, labels)]

    for name, text in COUNTERS.items():
        instruments.create_observable_counter(f"{prefix}.{name}", [count(name)], description=text)
    instruments.create_observable_counter(
        f"{prefix}.heard",
        [lambda options: [api.Observation(meter.measures().heard / 1000, labels)]],
        unit="s",
        description="Audio that was heard",
    )
    instruments.create_observable_gauge(
        f"{prefix}.open_utterances", [state("open")], description="Utterances that have not ended"
    )
    instruments.create_observable_gauge(
        f"{prefix}.backlog_now",
        [state("backlog_now_ms", 1000)],
        unit="s",
        description="Largest backlog of an open utterance",
    )
    for name in (*LAGS, *WORD_LAGS, "backlog"):
        instruments.create_observable_gauge(
            f"{prefix}.{name}", [percentiles(name)], unit="s", description=f"{HELP[name]}: percentiles of the window"
        )
