# SPDX-License-Identifier: Apache-2.0
"""Lines of JSON in which a key occurs twice: a fast decoder takes the last of the two values, and says nothing.

The keys of all lines of a batch are compared at once, as numbers, and nearly always those of every line are those of
the first. Where two keys of a line look the same, the line is read by itself.
"""

from __future__ import annotations

import json
import re

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Ints
from lagging.data.trees import json_decoder
from lagging.formats.source import Batch

__all__ = ["has_repeated_keys"]

QUOTE, COLON, BACKSLASH, SPACE = b'":\\ '
SPACED = re.compile(rb'"[ \t\r\n]++:')
PADDING = bytes(8)

Words = npt.NDArray[np.uint64]
WORD = np.dtype("<u8")
BYTES = np.uint64(0x0101010101010101)
LOW = np.uint64(0x7F7F7F7F7F7F7F7F)


def has_repeated_keys(batch: Batch) -> bool:
    """Whether an object in one of the lines has a key twice; of a line that is no JSON, this is not known."""
    text, starts = batch.text, batch.starts
    ends = np.append(starts[1:], len(text))
    closing = _closing_quotes(text)
    words = _last_bytes(text, closing)
    suspects = closing[_matches(words, BACKSLASH) != 0] if BACKSLASH in text else closing[:0]  # a key in two ways
    if not _are_alike(words, closing, starts, ends):
        lines = np.searchsorted(starts, closing, side="right")
        order = np.lexsort((words, lines))
        same = (np.diff(words[order]) == 0) & (np.diff(lines[order]) == 0)
        suspects = np.append(suspects, closing[order][1:][same])
    doubtful = np.unique(np.searchsorted(starts, suspects, side="right") - 1).tolist() if len(suspects) else ()
    return any(_has_repeated_key(text[starts[row] : ends[row]]) for row in doubtful)


def _are_alike(words: Words, closing: Ints, starts: Ints, ends: Ints) -> bool:
    """Whether every line has the keys of the first, in its order, and no two of them look the same."""
    count, rest = divmod(len(closing), len(starts))
    if rest or not count:
        return not len(closing)
    places, keys = closing.reshape(-1, count), words.reshape(-1, count)
    in_line = (places[:, 0] > starts).all() and (places[:, -1] < ends).all()
    return bool(in_line and (keys == keys[0]).all()) and len(set(keys[0].tolist())) == count


def _has_repeated_key(line: bytes) -> bool:
    repeated: list[str] = []
    try:
        json_decoder(repeated).decode(line.decode("utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, ValueError, RecursionError):
        return False  # the decoder reports what is wrong with the line
    return bool(repeated)


def _closing_quotes(text: bytes) -> Ints:
    """Where the quotes are that a colon follows: keys end there, and texts that have such a thing in them."""
    raw = np.frombuffer(text, np.uint8)
    colons = np.flatnonzero(raw == COLON)
    before = raw[colons - 1]
    closing: Ints = colons[before == QUOTE] - 1
    if (before <= SPACE).any():
        spaced = [quote.start() for quote in SPACED.finditer(text)]
        closing = np.union1d(closing, np.array(spaced, dtype=np.int64))
    return closing


def _last_bytes(text: bytes, closing: Ints) -> Words:
    """The last eight bytes of each key as a number; of a shorter key, what comes after its first quote."""
    padded = PADDING + text
    words: Words = np.ndarray(len(padded) - 7, WORD, padded, 0, (1,))[closing]
    quotes = _matches(words, QUOTE)
    for shift in (8, 16, 32):  # from the last quote down, all bytes are marked
        quotes |= quotes >> np.uint64(shift)
    return words & ~((quotes >> np.uint64(7)) * np.uint64(0xFF))


def _matches(words: Words, byte: int) -> Words:
    """The high bit of every byte of the words that is this one."""
    other = words ^ (BYTES * np.uint64(byte))
    return ~(((other & LOW) + LOW) | other | LOW)
