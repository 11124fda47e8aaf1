# SPDX-License-Identifier: Apache-2.0
"""Run simulstream's speech processors with `lagging run`, and agents of `lagging` in simulstream.

`from_name` loads a speech processor, unchanged. `for_simulstream` makes a speech processor from an agent of `lagging`.
Both need simulstream's package. `DIFFERENCES` lists where the two runners differ.
"""

from __future__ import annotations

from lagging.agents.simulstream.adapter import Wrapped, from_name
from lagging.agents.simulstream.differences import DIFFERENCES
from lagging.agents.simulstream.export import for_simulstream

__all__ = ["DIFFERENCES", "Wrapped", "for_simulstream", "from_name"]
