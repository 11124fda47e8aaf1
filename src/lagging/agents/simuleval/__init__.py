# SPDX-License-Identifier: Apache-2.0
"""SimulEval's agents here, and ours there.

`from_file` runs an agent that was written for SimulEval as it is, with SimulEval's package if that is installed and
without it if not. `for_simuleval` makes a class for SimulEval's own runner from an agent of ours. Where the two runners
differ, is listed in `DIFFERENCES`.
"""

from __future__ import annotations

from lagging.agents.simuleval.adapter import Wrapped, from_file
from lagging.agents.simuleval.differences import DIFFERENCES, Difference
from lagging.agents.simuleval.export import for_simuleval
from lagging.agents.simuleval.standin import NotInStandIn

__all__ = ["DIFFERENCES", "Difference", "NotInStandIn", "Wrapped", "for_simuleval", "from_file"]
