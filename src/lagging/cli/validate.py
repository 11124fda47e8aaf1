# SPDX-License-Identifier: Apache-2.0
"""`lagging validate`."""

from __future__ import annotations

import json
from typing import Any

import click

from lagging.cli.messages import Messages, emit
from lagging.cli.options import message_options, output_option, schema_options
from lagging.cli.systems import parse_system
from lagging.errors import counted
from lagging.errors.catalogue import KINDS
from lagging.errors.printable import printable
from lagging.formats import ReadOptions, Validation, validate_log

__all__ = ["command"]


@click.command("validate")
@click.argument("logs", nargs=-1, required=True, metavar="PATH…")
@click.option(
    "-f", "--format", "form", type=click.Choice(["text", "json"]), default="text", help="Format of the result."
)
@schema_options
@output_option
@message_options
def command(
    logs: tuple[str, ...],
    form: str,
    output: str | None,
    messages: Messages,
    options: ReadOptions,
) -> int:
    """List everything that is wrong with a log: file and line, segment, token, what it is, and how to mend it.

    Exit code 1 if anything is; `lagging score` refuses the same faults with the same words, in what it reads.
    """
    results = {path: validate_log(path, options) for _, path in map(parse_system, logs)}
    if form == "json":
        emit(
            json.dumps(
                {"schema": 1, "logs": [_record(p, v) for p, v in results.items()]}, ensure_ascii=False, indent=1
            ),
            output,
        )
    else:
        emit("\n\n".join(_text(path, result) for path, result in results.items()), output)
    return 0 if all(result.ok for result in results.values()) else 1


def _text(path: str, result: Validation) -> str:
    lines = [printable(f"{origin.path}: {origin.description}") for origin in result.origins]
    lines += [str(fault) for fault in result.faults]
    for kind in dict.fromkeys(fault.kind for fault in result.faults):
        count = result.counts[kind]
        what, why, fix = KINDS[kind]
        lines += [f"{count} × {what}", f"  {why}", f"  fix: {fix}"]
    lines += [f"note: {note}" for note in result.notes]
    total = sum(result.counts.values())
    faults = counted(total, "fault") if total else "no faults"
    verdict = f"{counted(result.segments, 'segment')}, " if result.segments else ""
    lines.append(printable(f"{path}: {verdict}{faults}"))
    return "\n".join(lines)


def _record(path: str, result: Validation) -> dict[str, Any]:
    fields = ("kind", "path", "line", "segment", "token", "what", "detail", "why", "fix")
    return {
        "path": path,
        "ok": result.ok,
        "segments": result.segments,
        "formats": [{"path": o.path, "format": o.format, "description": o.description} for o in result.origins],
        "counts": result.counts,
        "faults": [{field: getattr(fault, field) for field in fields} for fault in result.faults],
        "notes": [{"kind": n.kind, "text": n.text, "count": n.count, "segments": n.segments} for n in result.notes],
    }
