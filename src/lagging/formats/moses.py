# SPDX-License-Identifier: Apache-2.0
"""Moses tokens: what SLTev takes for a token, whatever the language.

SLTev reads every file through sacremoses' `MosesTokenizer()`, whose language is English. These are that tokenizer's
rules, put down anew from what they do (Koehn et al. 2007, `tokenizer.perl`; sacremoses 0.2), without its escapes of
XML, which change no count and no comparison:

- What is neither a letter nor a digit stands alone, but for `.` `,` `'` `-` and the backquote. Chinese
  characters and Korean syllables each stand alone.
- Two or more full stops are one token.
- A comma stands alone, unless it is between digits.
- An apostrophe begins a token between letters (`don 't`), and stands alone elsewhere.
- A full stop at the end of a word stands alone, unless the word is an abbreviation, has another full stop in it
  (`e.g.`), or the next word begins with a small letter.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["moses"]

WORDS = """
A B C D E F G H I J K L M N O P Q R S T U V W X Y Z Adj Adm Adv Asst Bart Bldg Brig Bros Capt Cmdr Col Comdr Con Corp
Cpl DR Dr Drs Ens Gen Gov Hon Hr Hosp Insp Lt MM MR MRS MS Maj Messrs Mlle Mme Mr Mrs Ms Msgr Op Ord Pfc Ph Prof Pvt Rep
Reps Res Rev Rt Sen Sens Sfc Sgt Sr St Supt Surg v vs i.e rev e.g Rs Nos Nr Jan Feb Mar Apr Jun Jul Aug Sep Oct Nov Dec
"""
ABBREVIATIONS = frozenset(WORDS.split())
"""Words that keep their full stop (Moses' `nonbreaking_prefix.en`)."""

BEFORE_NUMBERS = frozenset({"No", "Art", "pp"})
"""Words that keep it before a number."""

DIGITS = frozenset("0123456789")

NO_ALPHABET = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0x10000, 0x10FFFF))
"""Chinese characters, Korean syllables, and all that is beyond the basic plane: no letters to Moses."""

MARKS = (0x0590, 0x1CFF)
"""Where the marks are that are part of a letter, as vowel signs are."""


def _is_letter(code: int) -> bool:
    """Whether a character is a letter, or a digit, of an alphabet."""
    kind = unicodedata.category(chr(code))
    if kind in ("Mn", "Mc"):
        return MARKS[0] <= code <= MARKS[1]
    return (kind[0] == "L" or kind in ("Nd", "Nl")) and not any(low <= code <= high for low, high in NO_ALPHABET)


class _Apart(dict[int, str]):
    """For `str.translate`: spaces around each character that stands alone; filled as characters come."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = char if char.isspace() or char in ".,'`-" or _is_letter(code) else f" {char} "
        return self[code]


APART = _Apart()
DOT = "\0"
"""Stands for a full stop that is one of several; no text has it, since control characters are taken out before."""

RULES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(\D),", r"\1 , "),
        (r",(\D)", r" , \1"),
        (r",$", " ,"),
        (r"([\W\d_])'([\W\d_])", r"\1 ' \2"),
        (r"([\W_])'([^\W\d_])", r"\1 ' \2"),
        (r"([^\W\d_])'([\W\d_])", r"\1 ' \2"),
        (r"([^\W\d_])'([^\W\d_])", r"\1 '\2"),
        (r"(\d)'s", r"\1 's"),
    )
)
"""Commas and apostrophes, in order: each rule sees what the one before has done, and no character twice."""


def moses(text: str) -> list[str]:
    """The tokens of a text.

    Example:
        >>> moses("Canonical Ltd. It doesn't say, e.g., why (5,300)...")
        ['Canonical', 'Ltd', '.', 'It', 'doesn', "'t", 'say', ',', 'e.g.', ',', 'why', '(', '5,300', ')', '...']
        >>> moses("Mr. Lt."), moses("No. 5 No. x etc. and")
        (['Mr.', 'Lt.'], ['No.', '5', 'No.', 'x', 'etc.', 'and'])
    """
    text = re.sub("[\0-\x1f]", "", re.sub(r"\s+", " ", text)).strip().translate(APART)
    text = re.sub(r"\.{2,}", lambda dots: f" {DOT * len(dots[0])} ", text).rstrip()
    for pattern, replacement in RULES:
        text = pattern.sub(replacement, text)
    words = text.split()
    out: list[str] = []
    for word, after in zip(words, [*words[1:], ""], strict=False):
        out += [word] if not word.endswith(".") or word == "." or _keeps_stop(word[:-1], after) else [word[:-1], "."]
    if out and out[-1].endswith(".'"):
        out[-1:] = [*filter(None, [out[-1][:-2]]), ".", "'"]
    return [word.replace(DOT, ".") for word in out]


def _keeps_stop(word: str, after: str) -> bool:
    """Whether the full stop after a word is part of it."""
    if "." in word and any(_is_letter(ord(char)) and not char.isdigit() for char in word):
        return True
    return word in ABBREVIATIONS or after[:1].islower() or (word in BEFORE_NUMBERS and after[:1] in DIGITS)
