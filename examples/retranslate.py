# SPDX-License-Identifier: Apache-2.0
"""An agent that revises: after every word it translates all that it has read, and erases what differs.

German keeps its participle for the end; English wants it after the verb. So the whole rest moves when it comes:

    Die Stadt hat den Plan             the Stadt has the Plan
    Die Stadt hat den Plan geändert.   the Stadt has geändert the Plan.

    lagging run retranslate.py --source data/source.txt --reference data/reference.txt -o out
"""

import re

from wait_k import ENGLISH

from lagging.agents import Revise, State

VERBS = {"habe", "hat", "haben", "ist", "sind"}
PARTICIPLE = re.compile(r"(\w*ge\w+(?:t|en))([.,?]?)")


class Retranslate:
    """Every step gives the whole translation."""

    def policy(self, state: State) -> Revise:
        """What has been read so far, translated anew; if nothing has changed, that is READ."""
        return Revise(" ".join(translate(state.source)))


def translate(source: list[str]) -> list[str]:
    """Word for word, but a participle at the end goes behind its verb."""
    words = list(source)
    verb = next((index for index, word in enumerate(words) if word in VERBS), len(words))
    if verb < len(words) - 2 and (last := PARTICIPLE.fullmatch(words[-1])):
        words = [*words[: verb + 1], last[1], *words[verb + 1 : -2], words[-2] + last[2]]
    return [ENGLISH.get(word.lower(), word) for word in words]
