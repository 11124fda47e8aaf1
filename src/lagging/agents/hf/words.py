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
        places: list[int] = []
        before = last = self.text(tokens[:begin])
        for index in range(begin, len(tokens)):
            text = self.text(tokens[: index + 1])
            if self._spaces:
                if before.strip() != last.strip() and (before[-1:].isspace() or text[len(before) :][:1].isspace()):
                    places.append(index)
                    last = before
            elif not text.endswith(HALF) and text != before:
                places.append(index + 1)
            before = text
        if ended and len(tokens) > begin and places[-1:] != [len(tokens)]:
            places.append(len(tokens))
        return places

    def count(self, tokens: Sequence[int]) -> int:
        """How many words, or characters if there are no spaces, tokens are."""
        words = self.text(tokens).split()
        return len(words) if self._spaces else sum(map(len, words))

    def up_to(self, tokens: Sequence[int], ends: Sequence[int], due: int | None) -> int | None:
        """The first of these places that has so many words, or the last; None if there is none.

        A word that was complete may go on: "house" becomes "house,". That is no further word.
        """
        if due is None or not ends:
            return ends[-1] if ends else None
        return next((end for end in ends if self.count(tokens[:end]) >= due), ends[-1])
