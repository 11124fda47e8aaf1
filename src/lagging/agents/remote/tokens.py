# SPDX-License-Identifier: Apache-2.0
"""The token of a server: read from a file or the environment, where other users do not see it."""

from __future__ import annotations

from collections.abc import Mapping
from hmac import compare_digest
from pathlib import Path

from lagging.errors import UsageError

__all__ = ["TOKEN", "read_token", "shows_token"]

TOKEN = "LAGGING_TOKEN"
"""The environment variable."""

MIN_LENGTH = 16
GENERATE = "python -c 'import secrets; print(secrets.token_urlsafe())'"


def read_token(file: str | None, environment: Mapping[str, str]) -> str | None:
    """The token in a file, or else in LAGGING_TOKEN; None if there is neither.

    Raises:
        UsageError: the file cannot be read, or the token is too short or cannot be sent.

    Example:
        >>> read_token(None, {"LAGGING_TOKEN": "correct-horse-battery"})
        'correct-horse-battery'
    """
    if file is None:
        where, token = TOKEN, environment.get(TOKEN)
        if token is None:
            return None
    else:
        where = file
        try:
            token = Path(file).read_text("utf-8")
        except OSError as error:
            raise UsageError(f"cannot read {file}: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise UsageError(f"{file} holds no token: it is not a text") from None
    token = token.strip()
    if len(token) < MIN_LENGTH or not all("!" <= letter <= "~" for letter in token):
        raise UsageError(
            f"the token in {where} is not {MIN_LENGTH} or more letters, digits and signs of ASCII\n  fix: {GENERATE}"
        )
    return token


def shows_token(token: str, header: str | None) -> bool:
    """Whether `Authorization: Bearer …` has the token; compared in constant time."""
    scheme, _, shown = (header or "").partition(" ")
    return scheme.lower() == "bearer" and compare_digest(shown.strip().encode("utf-8", "replace"), token.encode())
