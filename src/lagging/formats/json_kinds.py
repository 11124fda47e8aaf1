# SPDX-License-Identifier: Apache-2.0
"""Which kind of JSON lines a file holds, by the keys of its first line."""

from __future__ import annotations

import re

import msgspec

from lagging.formats.dialects import GOOGLE, TIMES
from lagging.formats.source import first_line

__all__ = ["has_known_keys", "recognise"]

OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
KEY = re.compile(rb'"([a-z_]+)"[ \t]*:')


def recognise(head: bytes) -> str | None:
    """The kind of JSON lines, by the first line that is not blank; None if that does not look like JSON."""
    first = first_line(head)
    if not first.lstrip().startswith(b"{"):
        return None
    keys = _keys(first)
    if not keys & {"delays", "prediction"} and _is_simulstream(keys):
        return "simulstream"
    if not keys & {"delays", "prediction", "emission_cu"} and _is_stream(keys):
        return "stream"
    if {"src_trajectory", "target_trajectory"} & keys:
        return "trajectory"
    if {"doc_id", "seg_id"} <= keys and "seg" not in keys:
        return "s2s"
    if "emission_cu" in keys or ({"docid", "segid"} <= keys and "delays" not in keys):
        return "omnisteval"
    if {"seg", "delays"} <= keys:
        return "jsonl"
    if "prediction_length" in keys or {"index", "prediction"} <= keys:
        return "simuleval"
    return "jsonl"


def has_known_keys(head: bytes) -> bool:
    """Whether the first line that is not blank is an object with delays or a prediction."""
    return bool(_keys(first_line(head)) & {"delays", "prediction"})


def _keys(line: bytes) -> set[str]:
    """The keys of a line; if it is not valid JSON, what stands before colons, so that its faults can be reported."""
    try:
        return set(OBJECT.decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {key.decode() for key in KEY.findall(line)}


def _is_simulstream(keys: set[str]) -> bool:
    return bool(keys & {"model_loading_time", "total_audio_processed"}) or {"metadata", "id"} <= keys


def _is_stream(keys: set[str]) -> bool:
    """Whether these are the keys of an update of an event stream: see `lagging.formats.dialects`."""
    if "emission_time" in keys or "translation_text" in keys or {"time", "mode"} <= keys:
        return True
    if {"channel", "is_final"} <= keys or {"turn_order", "transcript"} <= keys or {"message_type", "text"} <= keys:
        return True
    if keys & UNSPECIFIC:
        return bool(keys & {"channel", "message_type", "transcript", "results"})
    shapes = {"text", "channel", "message_type", "results", "message", "response", "type", "transcript", *GOOGLE}
    return bool(keys & TIMES.keys() and keys & shapes)


UNSPECIFIC = {f"timestamp{unit}" for unit in ("", "_ms", "_s")}
"""Keys of times that logs of programs have too."""
