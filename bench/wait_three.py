# SPDX-License-Identifier: Apache-2.0
"""The agents of bench/agents.py: wait-3, which copies, so that next to nothing of the time is theirs."""

from __future__ import annotations

import time
from collections.abc import Sequence

from lagging.agents import State, Write


class Plain:
    """Asked again after each write; silent at the end."""

    def policy(self, state: State) -> str | None:
        """The next word, if it is due."""
        written = len(state.target)
        if len(state.source) - written >= 3 or (state.finished and len(state.source) > written):
            word: str = state.source[written]
            return word
        return None


class Chunkwise:
    """Asked once a word, as SimulEval asks; it says when it has finished."""

    chunkwise = True

    def policy(self, state: State) -> Write | None:
        """The next word, if it is due."""
        written = len(state.target)
        if len(state.source) - written >= 3 or state.finished:
            return Write(state.source[written], finished=state.finished and written + 1 == len(state.source))
        return None


class Batched:
    """Many sentences at once."""

    def policies(self, states: Sequence[State]) -> list[str | None]:
        """The next word of each, if it is due."""
        return [Plain.policy(self, state) for state in states]  # type: ignore[arg-type]


class Slow(Plain):
    """It waits for something, as for a GPU."""

    def reset(self) -> None:
        """A hundredth of a second."""
        time.sleep(0.01)


class Listener:
    """A word for every second of speech, three seconds behind."""

    source = "speech"

    def policy(self, state: State) -> Write | None:
        """A word, if it is due."""
        if state.finished or len(state.source) > (len(state.target) + 3) * state.sample_rate:
            return Write("word", finished=state.finished)
        return None
