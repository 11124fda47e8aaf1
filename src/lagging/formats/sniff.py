# SPDX-License-Identifier: Apache-2.0
"""Which format a file is in, by its first bytes and its first lines."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

from lagging.errors import DataError, Fault, LaggingError, UsageError
from lagging.formats.delimited import recognise as recognise_table
from lagging.formats.json_kinds import has_known_keys
from lagging.formats.json_values import unfold
from lagging.formats.registry import FORMATS, Format, outside_formats
from lagging.formats.run_folder import beside_a_log
from lagging.formats.source import Source

__all__ = ["find_format", "is_log", "recognise"]


def recognise(source: Source, column_map: Mapping[str, str] | None = None) -> Format | None:
    """The format of a file, whose columns may have other names; None if it is empty.

    Raises:
        UsageError: it is in no format that is known.
        DataError: it is almost in one: a JSON list, or a Parquet file that does not begin like one.
    """
    known = find_format(source, column_map)
    if known is not None:
        return known
    head = source.head()
    if not head.strip():
        return None
    if head.lstrip().startswith(b"["):
        raise DataError(Fault("json-array", path=source.path, line=1))
    binary = tuple(suffix for known in FORMATS.values() if known.magic for suffix in known.suffixes)
    if source.file is not None and source.file.name.endswith(binary):
        raise DataError(Fault("not-arrow", f"it begins with {head[:8]!r}", source.path))
    if Path(source.path).name.startswith(("scores", "evaluation_report")):
        raise UsageError(f"{source.path} holds scores, not a log\n  fix: lagging.read_scores reads it, in Python.")
    first_line = head.splitlines()[0][:60].decode("utf-8", "replace")
    raise UsageError(
        f"the format of {source.path} is not recognised; it begins: {first_line!r}\n"
        f"  Known formats: {', '.join([*FORMATS, *outside_formats()])}.\n"
        "  fix: name it with `--format-in` (format=… in Python), or convert the log; `text` is a prediction per line."
    )


def is_log(source: Source) -> bool:
    """Whether a file is recognised as a log; of JSON, it must have delays, or a prediction, or be of another format."""
    try:
        known = find_format(source)
        return known is not None and (known.name != "jsonl" or has_known_keys(source.head()))
    except LaggingError:
        return False


def find_format(source: Source, column_map: Mapping[str, str] | None = None) -> Format | None:
    """The format of a file; None if it is empty, or in no format that is known.

    Its first bytes decide, if they are those of a binary format. Then our recognisers see its first lines, in the order
    of FORMATS. The formats of other packages come last; they also come before `jsonl` for a JSON object that has
    neither delays nor a prediction, since any object would be taken for a line of `jsonl`.

    Raises:
        UsageError: it is a file that a run puts beside its log.
    """
    start = source.start()
    for known in FORMATS.values():
        if known.magic and start.startswith(known.magic):
            return known
    head = source.head()
    if not head.strip():
        return None
    beside_a_log(source, head)
    head = source.head() if unfold(source) else head
    if not head.strip():
        return None
    ours = _ask(FORMATS.values(), head)
    if ours is None and column_map:
        ours = FORMATS.get(recognise_table(head, column_map) or "")
    if ours is None or (ours.name == "jsonl" and not column_map and not has_known_keys(head)):
        return _ask(outside_formats().values(), head) or ours
    return ours


def _ask(formats: Iterable[Format], head: bytes) -> Format | None:
    """The first format whose recogniser accepts the first lines; several formats may share a recogniser."""
    recognisers = set()
    for known in formats:
        if known.recogniser in recognisers:
            continue
        recognisers.add(known.recogniser)
        try:
            answer = known.recognise(head)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # it may call sys.exit
            if isinstance(known.recogniser, str):
                raise
            text = f"the recogniser of the format {known.name} failed: {type(error).__name__}: {error}"
            warnings.warn(text, UserWarning, stacklevel=2)
            continue
        if answer is True:
            return known
        if answer:
            return next(other for other in formats if other.name == answer)
    return None
