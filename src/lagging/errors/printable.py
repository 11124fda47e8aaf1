# SPDX-License-Identifier: Apache-2.0
"""Text that came from elsewhere, as it is printed: what a terminal would obey is shown instead."""

from __future__ import annotations

import json
import re
import unicodedata

__all__ = ["field", "printable", "text_of_field"]

HIDDEN = ("Cc", "Cf", "Zl", "Zp", "Cs")
JOINERS = "\u200c\u200d"
"""They are hidden, too, but shape letters and emoji."""

ESCAPE = re.compile(r"\\(?:([tnr\\])|x([0-9a-f]{2})|u([0-9a-f]{4}))")
LETTERS = {"\t": "t", "\n": "n", "\r": "r", "\\": "\\"}
CHARACTERS = {letter: character for character, letter in LETTERS.items()}


def printable(text: str, keep: str = "") -> str:
    r"""A text without control characters, line breaks, marks that reorder text, and halves of characters.

    Each is shown by its number. What JSON has left as it is is shown as JSON shows it, so that JSON stays JSON.

    Args:
        text: the text.
        keep: characters that are left as they are.

    Example:
        >>> print(printable("id\x1b[31m\n\u202e\x9b"))
        id\x1b[31m\x0a\u202e\u009b
    """
    if text.isprintable():
        return text
    return "".join(c if c in JOINERS or c in keep or unicodedata.category(c) not in HIDDEN else _shown(c) for c in text)


def _shown(character: str) -> str:
    return f"\\x{ord(character):02x}" if character < " " else json.dumps(character)[1:-1]


def field(text: str) -> str:
    r"""A text as a field of a table of lines and tabs; no two texts are the same field.

    Example:
        >>> field("a\tb"), field("a\\tb"), field("a b")
        ('a\\tb', 'a\\\\tb', 'a b')
    """
    if "\\" not in text and text.isprintable():
        return text
    return printable("".join(f"\\{LETTERS[c]}" if c in LETTERS else c for c in text))


def text_of_field(text: str) -> str:
    r"""The text that a field stands for.

    Example:
        >>> text_of_field(field("a\t\\tb\x1b\U000e0001")) == "a\t\\tb\x1b\U000e0001"
        True
    """
    if "\\" not in text:
        return text
    plain = ESCAPE.sub(lambda m: CHARACTERS[m[1]] if m[1] else chr(int(m[2] or m[3], 16)), text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")  # halves that belong together
