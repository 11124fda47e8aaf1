# SPDX-License-Identifier: Apache-2.0
"""`lagging validate`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from lagging.cli.messages import Messages, emit
from lagging.cli.options import cutting_options, message_options, output_option, schema_options
from lagging.cli.systems import parse_system
from lagging.errors import UsageError, counted
from lagging.errors.catalogue import KINDS
from lagging.errors.printable import printable
from lagging.formats import ReadOptions, Validation, validate_log
from lagging.longform.cutting import Cutting

if TYPE_CHECKING:
    from lagging.scoring.audit import Finding

__all__ = ["command"]


@click.command("validate")
@click.argument("logs", nargs=-1, required=True, metavar="PATH…")
@click.option(
    "-f", "--format", "form", type=click.Choice(["text", "json"]), default="text", help="Format of the result."
)
@click.option("--audit", "audited", is_flag=True, help="Also list what can be scored, but should not be believed.")
@schema_options
@cutting_options
@output_option
@message_options
def command(
    logs: tuple[str, ...],
    form: str,
    audited: bool,
    output: str | None,
    messages: Messages,
    options: ReadOptions,
    cutting: Cutting,
) -> int:
    """List everything that is wrong with a log: file and line, segment, token, what it is, and how to mend it.

    The exit code is 1 if anything is wrong. `lagging score` refuses the same faults with the same words, in the columns
    that it reads. A finding of --audit is not a fault, and leaves the exit code as it is.
    """
    cutting.check()
    if cutting.requested and not audited:
        raise UsageError("--segmentation, --reference, --source and --hypothesis go with --audit")
    results = {path: validate_log(path, options) for _, path in map(parse_system, logs)}
    findings = {path: _audit(path, result, options, cutting) for path, result in results.items() if audited}
    if form == "json":
        emit(
            json.dumps(
                {"schema": 1, "logs": [_record(p, v, findings.get(p)) for p, v in results.items()]},
                ensure_ascii=False,
                indent=1,
            ),
            output,
        )
    else:
        emit("\n\n".join(_text(path, result, findings.get(path)) for path, result in results.items()), output)
    return 0 if all(result.ok for result in results.values()) else 1


def _audit(path: str, result: Validation, options: ReadOptions, cutting: Cutting) -> list[Finding]:
    """The findings about a log; none where it has faults, since it cannot be read then."""
    from lagging.scoring.audit import audit

    if not result.ok:
        return []
    run = cutting.read(path, options)
    return audit(cutting.cut(run).run if cutting.requested else run)


def _text(path: str, result: Validation, findings: list[Finding] | None) -> str:
    lines = [printable(f"{origin.path}: {origin.description}") for origin in result.origins]
    lines += [str(fault) for fault in result.faults]
    for kind in dict.fromkeys(fault.kind for fault in result.faults):
        count = result.counts[kind]
        what, why, fix = KINDS[kind]
        lines += [f"{count} × {what}", f"  {why}", f"  fix: {fix}"]
    lines += [f"note: {note}" for note in result.notes]
    for finding in findings or ():
        lines += [f"audit: {finding}", *([f"  {finding.why}"] if finding.count else [])]
    if findings is not None and not result.ok:
        lines.append("audit: not done: mend the faults first")
    total = sum(result.counts.values())
    faults = counted(total, "fault") if total else "no faults"
    verdict = f"{counted(result.segments, 'segment')}, " if result.segments else ""
    lines.append(printable(f"{path}: {verdict}{faults}"))
    return "\n".join(lines)


def _record(path: str, result: Validation, findings: list[Finding] | None) -> dict[str, Any]:
    fields = ("kind", "path", "line", "segment", "token", "what", "detail", "why", "fix")
    return {
        "path": path,
        "ok": result.ok,
        "segments": result.segments,
        "formats": [{"path": o.path, "format": o.format, "description": o.description} for o in result.origins],
        "counts": result.counts,
        "faults": [{field: getattr(fault, field) for field in fields} for fault in result.faults],
        "notes": [{"kind": n.kind, "text": n.text, "count": n.count, "segments": n.segments} for n in result.notes],
        **({} if findings is None else {"audits": [asdict(finding) for finding in findings]}),
    }
