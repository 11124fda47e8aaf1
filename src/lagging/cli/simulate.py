# SPDX-License-Identifier: Apache-2.0
"""`lagging simulate`."""

from __future__ import annotations

from pathlib import Path

import click

from lagging.cli.messages import Messages
from lagging.cli.options import FormatName, message_options
from lagging.cli.systems import refuse_run_file
from lagging.errors import UsageError
from lagging.formats import write
from lagging.formats.source import Source
from lagging.policies import NAMES, policy

__all__ = ["command"]


@click.command(
    "simulate",
    help=f"""Write the log that a policy would leave on a test set, as if it translated perfectly.

Policies: {NAMES}.

\b
lagging simulate wait-3 --source test.de --target test.en -o wait-3.log
lagging simulate antagonist-4 --source test.de --target test.en | lagging score -
""",
)
@click.argument("name", metavar="POLICY")
@click.option("--source", required=True, metavar="FILE", help="Source sentences, one per line.")
@click.option("--target", required=True, metavar="FILE", help="Target sentences, one per line; they become the output.")
@click.option("-o", "--output", default="-", metavar="FILE", help="File to write; standard output if not given.")
@click.option("--to", type=FormatName(), help="Format of the new file; if not given, its ending decides.")
@message_options
def command(
    name: str,
    source: str,
    target: str,
    output: str,
    to: str | None,
    messages: Messages,
) -> None:
    """Write the log of a policy over a test set."""
    chosen = policy(name)
    refuse_run_file(output)
    sources, targets = _lines(source), _lines(target)
    if len(sources) != len(targets):
        raise UsageError(f"{source} has {len(sources)} lines, but {target} has {len(targets)}")
    run = chosen.run(source=sources, target=targets)
    lost = write(run, output, format=to or ("simuleval" if output == "-" else None))
    messages.print(f"{chosen.name}: {len(run)} sentences, {len(run.delays.values)} target words")
    messages.print_omissions(lost)


def _lines(path: str) -> list[str]:
    try:
        return Source(path, Path(path)).whole().decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: byte {error.start + 1}") from None
