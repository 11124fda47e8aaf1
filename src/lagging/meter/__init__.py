# SPDX-License-Identifier: Apache-2.0
"""Live measuring: the Meter, and what shows its numbers to Prometheus and OpenTelemetry."""

from __future__ import annotations

from lagging.meter.measures import Measures
from lagging.meter.meter import Meter
from lagging.meter.sketch import Sketch
from lagging.meter.utterance import Utterance

__all__ = ["Measures", "Meter", "Sketch", "Utterance"]
