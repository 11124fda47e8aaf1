# SPDX-License-Identifier: Apache-2.0
"""What the results about several settings share: cells, records, and the five formats."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from lagging.comparison.derived import Derived, Draws
from lagging.curves import At, Axis, Curves
from lagging.curves.ranking import Tau
from lagging.errors import counted
from lagging.metrics import Metric
from lagging.render import check_format
from lagging.render.blocks import Block, blocks_as_latex, blocks_as_markdown, blocks_as_text
from lagging.render.cells import NOTHING, shown, signatures, undefined
from lagging.render.documents import SCHEMA, finite, record, tsv_field
from lagging.scoring.scores import Scores

__all__ = [
    "Record",
    "axis_record",
    "how_made",
    "how_tested",
    "p_value",
    "rendered",
    "share_of",
    "signature_of",
    "with_ends",
    "without_logs",
]

Record = dict[str, Any]


def rendered(
    format: str,
    records: dict[str, list[Record]],
    blocks: Sequence[Block],
    notes: Sequence[str],
    scores: Sequence[Scores],
    made: Record,
    *,
    width: int | None,
    colour: bool,
) -> str:
    """The result in one of the formats; `records` for programs, `blocks` and `notes` for people."""
    check_format(format)
    if format == "json":
        scored = [record(one.system, score) for one in scores for score in one]
        return json.dumps({"schema": SCHEMA, "scores": scored, **records, "made": made}, ensure_ascii=False, indent=1)
    if format == "tsv":
        return _as_tsv({**records, "made": [made]})
    said = [*notes, *undefined(scores)]
    below = signatures(scores)
    if format == "markdown":
        return blocks_as_markdown(blocks, said, below)
    if format == "latex":
        return blocks_as_latex(blocks, said, below)
    return blocks_as_text(blocks, said, below, width=width, colour=colour)


def _as_tsv(records: dict[str, list[Record]]) -> str:
    """A table per kind of record, with its name in the first column; an empty line between them."""
    parts = []
    for kind, some in records.items():
        flat = [dict(_flat(one)) for one in some]
        names = list(dict.fromkeys(name for one in flat for name in one))
        lines = ["\t".join([kind, *names])] + [
            "\t".join([kind, *(tsv_field(one.get(n)) for n in names)]) for one in flat
        ]
        parts += ["\n".join(lines)] if some else []
    return "\n\n".join(parts)


def _flat(one: Record, before: str = "") -> Iterator[tuple[str, object]]:
    for name, value in one.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}_")
        else:
            yield f"{before}{name}".removesuffix("_value"), ", ".join(value) if isinstance(value, list) else value


def share_of(share: float | None) -> str:
    """A share of the resamples, never rounded to all or none."""
    if share is None:
        return NOTHING
    return "< 1 %" if 0 < share < 0.01 else "> 99 %" if 0.99 < share < 1 else f"{100 * share:.0f} %"


def with_ends(one: Axis | At | Derived | Tau, unit: str) -> str:
    """A value with its interval."""
    text = shown(one.value, unit)
    return text if one.low is None else f"{text} [{shown(one.low, unit)}, {shown(one.high, unit)}]"


def p_value(p: float) -> str:
    """A p-value, as far as some thousand resamples tell it."""
    return NOTHING if math.isnan(p) else f"{p:.4f}" if p >= 0.0001 else "< 0.0001"


def how_made(draws: Draws | None, correction: str | None = None, method: str | None = None) -> Record:
    """How intervals and p-values were made; nothing where there are none."""
    if draws is None:
        return {}
    made = draws.template
    return {
        "by": made.resample,
        "units": made.clusters,
        "level": made.confidence,
        "method": method or made.method,
        "resamples": made.resamples,
        "seed": made.seed,
        "correction": correction,
    }


def how_tested(draws: Draws | None, correction: str) -> str:
    """How p-values were made, in words."""
    if draws is None:
        return ""
    made = draws.template
    kind = "wild bootstrap" if made.method == "wild" else "bootstrap"
    units = counted(made.clusters, made.resample)
    named = {"holm": "Holm", "bh": "Benjamini-Hochberg", "none": "not adjusted"}[correction]
    return f"paired {kind} over {units}, {made.resamples} resamples, seed {made.seed}, {named}"


def without_logs(curves: Curves, more: str = "") -> list[str]:
    """Which numbers nobody can compute again, and who says them; a line per file."""
    files: dict[str, list[str]] = {}
    for system, paths in curves.published.items():
        for path in paths:
            files.setdefault(path, []).append(system)
    return [f"published in {path}, without logs{more}: {', '.join(some)}" for path, some in files.items()]


def axis_record(one: Axis | None) -> Record | None:
    """A value and its interval, unrounded."""
    return None if one is None else {"value": finite(one.value), "low": finite(one.low), "high": finite(one.high)}


def signature_of(scores: Scores | None, metric: Metric) -> str | None:
    """How the number was made; None if it was published without that."""
    return None if scores is None else str(scores[metric].signature)
