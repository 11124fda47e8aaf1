# SPDX-License-Identifier: Apache-2.0
"""Several systems on the same segments: scores with intervals, paired tests, letters, and a sentence."""

from __future__ import annotations

from lagging.comparing.comparison import Comparison
from lagging.comparing.systems import compare
from lagging.comparing.words import Together

__all__ = ["Comparison", "Together", "compare"]
