# SPDX-License-Identifier: Apache-2.0
"""Records for programs, unrounded and with signatures: as one JSON object, or as TSV."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lagging.errors.printable import field
from lagging.render.table import Estimate
from lagging.scoring.scores import Score, Scores

__all__ = [
    "Record",
    "estimate_record",
    "finite",
    "moves_table",
    "score_record",
    "score_records",
    "tsv_field",
    "write_json",
    "write_tsv",
]

SCHEMA = 1
Record = dict[str, Any]


def finite(value: float | None) -> float | None:
    """A number for JSON: None for NaN and infinity, which JSON has not."""
    return None if value is None or not math.isfinite(value) else float(value)


def score_record(system: str, score: Score, group: Mapping[str, str | None] | None = None) -> Record:
    """One score: unrounded, in the unit named, None for undefined.

    That of a group has its labels too, and percentiles of the values of its segments.
    """
    record = {
        "system": system,
        "metric": repr(score.metric),
        "score": finite(score.value),
        "low": finite(score.low),
        "high": finite(score.high),
        "unit": score.unit,
        "n": score.n,
        "undefined": int(score.undefined),
        "signature": str(score.signature),
        **score.counts,
    }
    if not group:
        return record
    summary = {} if score.summary is None else score.summary.percentiles
    percentiles = {f"p{p:g}": finite(value) for p, value in summary.items()}
    return {"system": system, "group": dict(group), **record, "percentiles": percentiles}


def score_records(results: Sequence[Scores]) -> list[Record]:
    """The scores of several systems, or groups."""
    return [score_record(scores.system, score, scores.group) for scores in results for score in scores]


def estimate_record(estimate: Estimate | None) -> Record | None:
    """A value and its interval, unrounded."""
    if estimate is None:
        return None
    return {"value": finite(estimate.value), "low": finite(estimate.low), "high": finite(estimate.high)}


def write_json(fields: Mapping[str, Any]) -> str:
    """One object: `{"schema": 1, …}`."""
    return json.dumps({"schema": SCHEMA, **fields}, ensure_ascii=False, indent=1)


def write_tsv(records: Mapping[str, Sequence[Record]]) -> str:
    r"""A table per kind of record, with its name in the first column, if it has one; an empty line between them.

    Example:
        >>> print(write_tsv({"": [{"system": "base", "group": {"lang": "de"}, "score": None}]}).replace("\t", ","))
        system,group_lang,score
        base,de,
    """
    tables = []
    for kind, rows in records.items():
        flat = [dict(_flatten(row)) for row in rows]
        names = list(dict.fromkeys(name for row in flat for name in row))
        first = [kind] if kind else []
        lines: list[list[object]] = [[*first, *names], *([*first, *(row.get(name) for name in names)] for row in flat)]
        tables += ["\n".join("\t".join(map(tsv_field, line)) for line in lines)] if rows else []
    return "\n\n".join(tables)


def _flatten(record: Record, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Fields within fields beside the others, such as `group_lang`; the value of an interval has no name of its own."""
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{name}_")
        else:
            full = prefix.removesuffix("_") if prefix and name == "value" and "low" in record else prefix + name
            yield full, ", ".join(value) if isinstance(value, list) else value


def tsv_field(value: object) -> str:
    """A TSV field: nothing for None; a tab or a line break is written as a backslash and a letter."""
    return "" if value is None else field(str(value))


MOVES = ("recording", "place", "token", "time", "by_edits", "segment")


def moves_table(moves: Sequence[Sequence[Any]]) -> Iterator[str]:
    """Lines of a TSV with a row per token that is not where the fewest edits would have put it."""
    yield "\t".join(MOVES) + "\n"
    for move in moves:
        yield "\t".join(tsv_field(None if value != value else value) for value in move) + "\n"
