# SPDX-License-Identifier: Apache-2.0
"""The files of `--column`: scores of segments that another program made, of one system or of several."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from lagging.cli.systems import exists, name_settings
from lagging.errors import UsageError
from lagging.scoring.column_files import read_column
from lagging.scoring.column_files import read_columns as read_systems
from lagging.scoring.columns import Column, Columns

__all__ = ["read_column_files"]


def read_column_files(texts: Iterable[str], lower: Iterable[str]) -> Columns:
    """Read the files of `--column`; lower values of those named by `--lower` are better."""
    files, lower = [_parse_column_file(text) for text in texts], list(lower)
    names = {name for name, _, _ in files}
    if unknown := [name for name in lower if name not in names]:
        raise UsageError(f"--lower {unknown[0]} names no --column")
    columns: list[Column] = []
    offers: list[list[Column]] = []
    for name, system, pattern in files:
        higher = False if name in lower else None
        literal = pattern == "-" or Path(pattern).exists()
        paths = [pattern] if literal else sorted(glob.glob(pattern, recursive=True))
        for setting, path in zip(name_settings(paths), paths, strict=True):
            title = f"{system or ''} {setting}".strip()
            if title:
                columns.append(read_column(path, name, title, higher_is_better=higher))
                continue
            systems = read_systems(path, name, higher_is_better=higher)
            if len(systems) > 1:
                offers.append(systems)
            else:
                columns.append(replace(systems[0], system=""))
    return Columns(columns, offers)


def _parse_column_file(text: str) -> tuple[str, str | None, str]:
    """[NAME:]METRIC=FILE, or METRIC=NAME:FILE; names may have a colon or an equals sign, so the file is what exists."""
    for index, letter in enumerate(text):
        if letter == "=" and exists(text[index + 1 :]):
            system, _, name = text[:index].rpartition(":")
            if name.strip():
                return name.strip(), system or None, text[index + 1 :]
    name, equals, rest = text.partition("=")
    colons = [index for index, letter in enumerate(rest) if letter == ":" and index]
    for index in colons:
        if exists(rest[index + 1 :]):
            return name.strip(), rest[:index], rest[index + 1 :]
    missing = rest[colons[0] + 1 :] if colons else rest
    if not equals or not name.strip() or not missing:
        raise UsageError(f"cannot read --column {text!r}; write it like COMET=comet.json or new:COMET=new.json")
    raise UsageError(f"cannot read --column {text!r}: no such file or directory: {missing}")
