# SPDX-License-Identifier: Apache-2.0
"""From subwords to words: which tokens are complete words, and the text of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["Words"]

HALF = "\ufffd"
"""What a tokenizer of bytes writes for a part of a character."""


class Words:
    """How tokens of a tokenizer become words.

    Args:
        tokenizer: of `transformers`.
        spaces: whether there are spaces between words; if not, every whole character is complete.
    """

    def __init__(self, tokenizer: Any, spaces: bool = True) -> None:
        self._tokenizer, self._spaces = tokenizer, spaces

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens, without special ones."""
        text: str = self._tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text.lstrip()

    def ends(self, tokens: Sequence[int], begin: int = 0, ended: bool = True) -> list[int]:
        """The places, above `begin`, after which the tokens before are complete words.

        A word is complete when the next token begins another one, or when the sentence has ended.

        Args:
            tokens: from the beginning of the sentence.
            begin: how many of them are known to be complete words.
            ended: whether nothing follows the tokens.
        """
        found, before = [], self.text(tokens[:begin])
        for place in range(begin, len(tokens)):
            text = self.text(tokens[: place + 1])
            if self._spaces:
                new = text[len(before) :] if text.startswith(before) else ""
                if place > begin and before.strip() and (before[-1].isspace() or (new and new[0].isspace())):
                    found.append(place)
            elif not text.endswith(HALF) and text != before:
                found.append(place + 1)
            before = text
        if ended and len(tokens) > begin and found[-1:] != [len(tokens)]:
            found.append(len(tokens))
        return found
