# SPDX-License-Identifier: Apache-2.0
"""Ready-made agents over models of Hugging Face `transformers`; they need `pip install 'lagging[hf]'`.

    lagging run hf:PATH_OR_NAME --policy local-agreement -a n=2 --source S --reference R -o out

`models` has what a model is (encoder–decoder, causal language model, speech), `languages` how it is told from which
language into which to translate, `policies` when its words are written, `words` when a word is complete, and `agent`
the agent that joins them.
"""

from __future__ import annotations

from lagging.agents.hf.agent import Translator, from_name, match_levels
from lagging.agents.hf.policies import POLICIES, Policy

__all__ = ["POLICIES", "Policy", "Translator", "from_name", "match_levels"]
