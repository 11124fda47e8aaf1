# SPDX-License-Identifier: Apache-2.0
"""`lagging validate`."""

from __future__ import annotations

import json
from typing import Any

import click

from lagging.cli.common import Talk, emit, mapped, output, recognised, system, talking
from lagging.errors import counted
from lagging.errors.catalogue import KINDS
from lagging.errors.printable import printable
from lagging.formats import Validation, validate

__all__ = ["command"]


@click.command("validate")
@click.argument("logs", nargs=-1, required=True, metavar="PATH…")
@click.option("-f", "--format", "form", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
@recognised
@output
@talking
def command(
    logs: tuple[str, ...],
    form: str,
    format_in: str | None,
    level: str | None,
    spm_model: str | None,
    unit: str | None,
    column_map: tuple[str, ...],
    output: str | None,
    talk: Talk,
) -> int:
    """List everything that is wrong with a log: file and line, segment, token, what it is, and how to mend it.

    Exit code 1 if anything is; `lagging score` refuses the same faults with the same words, in what it reads.
    """
    how: dict[str, Any] = {"format": format_in, "level": level, "unit": unit, "spm_model": spm_model}
    how["column_map"] = mapped(column_map)
    found = {path: validate(path, **how) for _, path in map(system, logs)}
    if form == "json":
        emit(
            json.dumps({"schema": 1, "logs": [_record(p, v) for p, v in found.items()]}, ensure_ascii=False, indent=1),
            output,
        )
    else:
        emit("\n\n".join(_text(path, result) for path, result in found.items()), output)
    return 0 if all(result.ok for result in found.values()) else 1


def _text(path: str, found: Validation) -> str:
    lines = [printable(f"{origin.path}: {origin.description}") for origin in found.origins]
    lines += [str(fault) for fault in found.faults]
    for kind in dict.fromkeys(fault.kind for fault in found.faults):
        count = found.counts[kind]
        what, why, fix = KINDS[kind]
        lines += [f"{count} × {what}", f"  {why}", f"  fix: {fix}"]
    lines += [f"note: {note}" for note in found.notes]
    total = sum(found.counts.values())
    faults = counted(total, "fault") if total else "no faults"
    verdict = f"{counted(found.segments, 'segment')}, " if found.segments else ""
    lines.append(printable(f"{path}: {verdict}{faults}"))
    return "\n".join(lines)


def _record(path: str, found: Validation) -> dict[str, Any]:
    fields = ("kind", "path", "line", "segment", "token", "what", "detail", "why", "fix")
    return {
        "path": path,
        "ok": found.ok,
        "segments": found.segments,
        "formats": [{"path": o.path, "format": o.format, "description": o.description} for o in found.origins],
        "counts": found.counts,
        "faults": [{field: getattr(fault, field) for field in fields} for fault in found.faults],
        "notes": [{"kind": n.kind, "text": n.text, "count": n.count, "segments": n.segments} for n in found.notes],
    }
