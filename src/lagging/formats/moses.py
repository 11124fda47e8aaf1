# SPDX-License-Identifier: Apache-2.0
"""Moses tokens: what SLTev takes for a token, whatever the language.

SLTev reads every file through sacremoses' `MosesTokenizer()`, whose language is English; so do we, without its escapes
of XML, which change no count and no comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from lagging.errors import optional

__all__ = ["moses"]


@cache
def _tokenize() -> Callable[..., list[str]]:
    tokenize: Callable[..., list[str]] = optional("sacremoses", "sltev").MosesTokenizer().tokenize
    return tokenize


def moses(text: str) -> list[str]:
    """The tokens of a text.

    Raises:
        MissingExtraError: sacremoses is not installed; `--level word` does without it.

    Example:
        >>> moses("Planet Ubuntu je sada blogů, a basta.")
        ['Planet', 'Ubuntu', 'je', 'sada', 'blogů', ',', 'a', 'basta', '.']
    """
    return _tokenize()(text, escape=False)
