# SPDX-License-Identifier: Apache-2.0
"""An agent in fifteen lines: wait-k, with a dictionary for a model. What is not in the dictionary stays German.

In the folder of the examples:

    lagging run wait_k.py -a k=3 --source data/source.txt --reference data/reference.txt -o out
"""

from lagging.agents import State

WORDS = """der the, die the, das the, den the, dem the, ein a, eine a, einen a, und and, ich I, wir we, sie she, es it,
hat has, habe have, ist is, sind are, in in, im in, aus from, nach after, für for, zu to, mit with, heute today"""
ENGLISH = dict(pair.split() for pair in WORDS.split(","))


class WaitK:
    """Word for word, k words behind the source."""

    def __init__(self, k: int = 3) -> None:
        self.k = k

    def policy(self, state: State) -> str | None:
        """The next word when it is due; None to read on, and at the end to say that this was all."""
        t = len(state.target)
        if t == len(state.source) or (len(state.source) < self.k + t and not state.finished):
            return None
        word: str = state.source[t]
        return ENGLISH.get(word.lower(), word)
