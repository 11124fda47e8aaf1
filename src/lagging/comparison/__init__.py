# SPDX-License-Identifier: Apache-2.0
"""Several systems on the same segments: scores with intervals, paired tests, letters, and a sentence."""

from __future__ import annotations

from lagging.comparison.compare import compare
from lagging.comparison.comparison import Comparison
from lagging.comparison.summary import Together

__all__ = ["Comparison", "Together", "compare"]
