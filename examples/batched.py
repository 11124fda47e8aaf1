# SPDX-License-Identifier: Apache-2.0
"""An agent that takes many sentences at once, for a model on a GPU: one call of the model for all of them.

In the folder of the examples:

    lagging run batched.py -a k=3 --batch 16 --source data/source.txt --reference data/reference.txt -o out
"""

from collections.abc import Sequence

from wait_k import ENGLISH

from lagging.agents import State


class BatchedWaitK:
    """Wait-k over a batch. An agent that keeps something of a sentence puts it into `state.memory`."""

    def __init__(self, k: int = 3) -> None:
        self.k = k

    def policies(self, states: Sequence[State]) -> list[str | None]:
        """One answer for each sentence, in their order."""
        due = [index for index, state in enumerate(states) if self.is_due(state)]
        answers: list[str | None] = [None] * len(states)
        for index, word in zip(due, model([states[index] for index in due]), strict=True):
            answers[index] = word
        return answers

    def is_due(self, state: State) -> bool:
        """Whether a word is to be written in this sentence now."""
        t = len(state.target)
        return t < len(state.source) and (len(state.source) >= self.k + t or state.finished)


def model(states: Sequence[State]) -> list[str]:
    """The next word in each of these sentences; where a real model would pad, and run once."""
    words = [state.source[len(state.target)] for state in states]
    return [ENGLISH.get(word.lower(), word) for word in words]
