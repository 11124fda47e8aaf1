# SPDX-License-Identifier: Apache-2.0
"""Run SimulEval agents with `lagging run`, and `lagging` agents with SimulEval.

`from_file` loads an agent that was written for SimulEval, unchanged. `for_simuleval` makes a class for SimulEval's
runner from an agent of `lagging`. Both need SimulEval's package. `DIFFERENCES` lists where the two runners differ.
"""

from __future__ import annotations

from lagging.agents.simuleval.adapter import Wrapped, from_file
from lagging.agents.simuleval.differences import DIFFERENCES, Difference
from lagging.agents.simuleval.export import for_simuleval

__all__ = ["DIFFERENCES", "Difference", "Wrapped", "for_simuleval", "from_file"]
