# SPDX-License-Identifier: Apache-2.0
"""Join sub-words to text without their model: how tokens join, and which token each word came from.

Tokens are taken apart into bytes, since a token of bytes may hold half a character. The tokens themselves
show which of four ways joins them:

    ▁         SentencePiece: ▁ is a space; a byte that it has no piece for is written <0xE4>
    Ġ         byte-level BPE: every byte is a letter of its own alphabet, where Ġ is the space
    as is     tokens that hold their spaces, single characters, or a script that has no spaces
    words     anything else: a token is a word
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from lagging.data.ragged import Ints
from lagging.data.scripts import is_unspaced
from lagging.data.tokens import EOS, ends_in_eos

__all__ = ["Joined", "Joint", "find_joint", "join", "text_of", "usual_level"]

MARK = "▁"
BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")
WORD = re.compile(r"\S+")
ESCAPED = re.compile("[\udc80-\udcff]")

_PRINTED = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_HIDDEN = [byte for byte in range(0x100) if byte not in _PRINTED]
ALPHABET = {code: code for code in _PRINTED} | {0x100 + place: byte for place, byte in enumerate(_HIDDEN)}
"""Byte-level BPE (Radford 2019) writes a byte that can be printed as itself, and the others as U+0100, U+0101, …"""


def _marked(token: str) -> bytes:
    byte = BYTE.fullmatch(token)
    return bytes.fromhex(byte[1]) if byte else token.replace(MARK, " ").encode()


def _of_bytes(token: str) -> bytes:
    return token.translate(ALPHABET).encode("latin-1")


@dataclass(frozen=True)
class Joint:
    """How tokens join to a text.

    Attributes:
        description: in words.
        piece: the bytes that a token stands for.
    """

    description: str
    piece: Callable[[str], bytes]


MARKED = Joint("a word begins at ▁", _marked)
BYTES = Joint("tokens of bytes, a word begins at Ġ", _of_bytes)
AS_IS = Joint("tokens joined as they are", str.encode)
WORDS = Joint("a token is a word", lambda token: b" " + token.encode())


def _are_characters(vocabulary: set[str]) -> bool:
    return all(len(token) < 2 or token == EOS for token in vocabulary)


def _are_bytes(rows: Iterable[list[str]], vocabulary: set[str]) -> bool:
    """Whether these are tokens of bytes: of that alphabet, not of English letters alone, and good UTF-8 when joined."""
    letters = set().union(*vocabulary)
    if _are_characters(vocabulary) or "".join(letters).isascii() or not letters <= set(map(chr, ALPHABET)):
        return False
    try:
        for row in rows:
            codecs.getincrementaldecoder("utf-8")().decode(b"".join(map(_of_bytes, row)))  # the end may be cut off
    except UnicodeDecodeError:
        return False
    return True


def find_joint(rows: list[list[str]], vocabulary: set[str]) -> Joint:
    """How the tokens of these texts join, by the tokens of the whole log.

    Example:
        >>> logs = ["▁Gut", "en", "▁Tag"], ["GrÃ¼", "ÃŁe", "Ġdich"], [" Guten", " Tag"], ["你", "好"], ["Guten", "Tag"]
        >>> for row in logs:
        ...     joint = find_joint([row], set(row))
        ...     print(join(row, joint).text.strip(), "-", joint.description)
        Guten Tag - a word begins at ▁
        Grüße dich - tokens of bytes, a word begins at Ġ
        Guten Tag - tokens joined as they are
        你好 - tokens joined as they are
        Guten Tag - a token is a word
    """
    if any(MARK in token for token in vocabulary):
        return MARKED
    if _are_bytes(rows, vocabulary):
        return BYTES
    text = "".join(vocabulary)
    if _are_characters(vocabulary) or is_unspaced(text) or any(letter.isspace() for letter in text):
        return AS_IS
    return WORDS


def usual_level(texts: Iterable[str], vocabulary: set[str]) -> str:
    """The default level: characters in a script without spaces or a log of characters, else words."""
    written = "".join(texts) or "".join(vocabulary)
    characters = bool(vocabulary) and _are_characters(vocabulary) and not any(MARK in token for token in vocabulary)
    return "char" if characters or is_unspaced(written) else "word"


@dataclass(frozen=True)
class Joined:
    """Tokens joined to a text.

    Attributes:
        text: the text, U+FFFD for each byte that is part of no character.
        characters: the byte where each character ends.
        tokens: the byte where each token ends.
    """

    text: str
    characters: Ints
    tokens: Ints

    def ends(self, level: str) -> Ints:
        """The byte where each word, or each character other than white space, ends."""
        if level == "word":
            last = np.array([word.end() - 1 for word in WORD.finditer(self.text)], dtype=np.int64)
        else:
            last = np.array([i for i, letter in enumerate(self.text) if not letter.isspace()], dtype=np.int64)
            if ends_in_eos(self.text, level):
                last = np.delete(last, np.s_[-len(EOS) : -1])  # the mark is one token
        return self.characters[last]

    def owners(self, ends: Ints) -> Ints:
        """The token that wrote up to each of these bytes."""
        return np.searchsorted(self.tokens, ends)


def text_of(pieces: Iterable[bytes]) -> str:
    """The text that pieces are, U+FFFD for each byte that is part of no character."""
    content = b"".join(pieces)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return ESCAPED.sub("\ufffd", content.decode("utf-8", "surrogateescape"))


def join(tokens: Iterable[str], joint: Joint) -> Joined:
    """Join tokens to a text, and find where in it each of them ends.

    Example:
        >>> joined = join(["▁Gr", "ü", "ße", "▁dich"], MARKED)
        >>> joined.text, joined.owners(joined.ends("word"))
        (' Grüße dich', array([2, 3]))
    """
    pieces = list(map(joint.piece, tokens))
    text = b"".join(pieces).decode("utf-8", "surrogateescape")
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    widths = 1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000)
    widths[(codes >= 0xDC80) & (codes <= 0xDCFF)] = 1
    ends = np.fromiter(accumulate(map(len, pieces)), np.int64, len(pieces))
    return Joined(ESCAPED.sub("\ufffd", text), np.cumsum(widths), ends)
