# SPDX-License-Identifier: Apache-2.0
"""Scripts that put no spaces between words: which texts are in one, and how BLEU divides such texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

__all__ = ["SAMPLE", "are_unspaced", "bleu_tokenizer", "is_unspaced"]

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
UNSPACED = re.compile(f"[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f{HAN}]")
"""Thai, Lao, Tibetan, Burmese, Khmer, Japanese and Chinese: scripts that put no spaces between words."""
CHINESE = re.compile(f"[{HAN}]")
"""The characters of Chinese; Japanese has kana beside them."""
SAMPLE = 200
"""The number of texts that show the script of a log."""


def is_unspaced(text: str) -> bool:
    """Whether most of the text is in a script without spaces, so that its words cannot be counted by them."""
    return 2 * len(UNSPACED.findall(text)) > len("".join(text.split()))


def are_unspaced(texts: Iterable[str | None], sample: int | None = None) -> bool:
    """Whether most texts that are not empty are in a script without spaces.

    Args:
        texts: the texts.
        sample: how many of them are looked at, from the first on; None for all.
    """
    known = [text for text in islice(texts, sample) if text and text.strip()]
    return 2 * sum(map(is_unspaced, known)) > len(known)


def bleu_tokenizer(texts: Iterable[str | None]) -> str:
    """The tokenizer of sacreBLEU for references, by the first 200: `zh` for Chinese, `char` for other scripts without
    spaces, else `13a`, which divides words at spaces.

    Texts are Chinese if nine of ten characters without spaces between words are Chinese; Japanese has more kana.

    Example:
        >>> [bleu_tokenizer([text]) for text in ("guten Tag", "你好吗？", "今日は良い天気です", "")]
        ['13a', 'zh', 'char', '13a']
    """
    known = [text or "" for text in islice(texts, SAMPLE)]
    if not are_unspaced(known):
        return "13a"
    letters = "".join(UNSPACED.findall("".join(known)))
    return "zh" if 10 * len(CHINESE.findall(letters)) >= 9 * len(letters) else "char"
