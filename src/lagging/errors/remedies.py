# SPDX-License-Identifier: Apache-2.0
"""Remedies in the words of the one who reads them: options on the command line, keywords in Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["for_python", "on_command_line", "words_for_reader"]

_COMMAND_LINE = ContextVar("command line", default=False)

KEYWORDS = {"format-in": "format", "by": "group_by"} | {
    name: name.replace("-", "_")
    for name in ("level", "source-level", "unit", "convention", "spm-model", "column-map", "source-length", "time-unit",
                 "word-times", "word-alignment", "aligned-with", "repair", "strip", "resample", "resamples")
}  # fmt: skip
"""Options that are keywords in Python, too."""
LISTS = ("repair", "strip")
"""Those that take several values."""
VALUES = (
    "monotone|clip|first|last|torn|eos|tags|punctuation|word|char|token|spm|ms|s|none|hypothesis|reference|segment|"
    "document|paper|simuleval|omnisteval|simulstream"
)
"""What can follow the name of an option as its value; any other word goes on with the sentence."""
OPTION = re.compile(
    rf"--({'|'.join(sorted(KEYWORDS, key=len, reverse=True))})\b(?!-)(?: ((?:{VALUES})(?:\|[a-z]+)*\b|\d+|[A-Z]+\b))?"
)
REDUNDANT = re.compile(r" \([^()]* in Python\)")
"""What a message for the command line says about Python."""


@contextmanager
def on_command_line() -> Iterator[None]:
    """While this lasts, messages name options of the command line."""
    token = _COMMAND_LINE.set(True)
    try:
        yield
    finally:
        _COMMAND_LINE.reset(token)


def words_for_reader(text: str) -> str:
    """A message as it is to be read: unchanged on the command line."""
    return text if _COMMAND_LINE.get() else for_python(text)


def for_python(text: str) -> str:
    """A message with the keywords of `lagging.read` and its like instead of options.

    Example:
        >>> for_python("fix: `--repair torn` leaves it out, or name what they count with `--level word|char|token`.")
        "fix: `repair=['torn']` leaves it out, or name what they count with `level='word'|'char'|'token'`."
        >>> for_python("fix: leave --unit out, or give `--format-in`; `lagging validate` lists them all.")
        'fix: leave unit= out, or give `format=`; `lagging.validate(path)` lists them all.'
    """

    def keyword(match: re.Match[str]) -> str:
        name, value = KEYWORDS[match[1]], match[2]
        if value is None or value.isupper() or value.isdecimal():
            return f"{name}={value or ''}"
        values = [repr(each) for each in value.split("|")]
        return f"{name}=[{values[0]}]" if match[1] in LISTS else f"{name}={'|'.join(values)}"

    return OPTION.sub(keyword, REDUNDANT.sub("", text)).replace("`lagging validate`", "`lagging.validate(path)`")
