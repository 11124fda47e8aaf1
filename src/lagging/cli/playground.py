# SPDX-License-Identifier: Apache-2.0
"""`lagging playground`."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from lagging.cli.messages import Messages
from lagging.cli.options import message_options
from lagging.data.files import write_whole
from lagging.errors import UsageError

__all__ = ["command"]


@click.command("playground")
@click.option("-o", "--output", metavar="FILE", help="Write a copy of the page.")
@click.option("--open", "opened", is_flag=True, help="Show the page in the browser.")
@message_options
def command(output: str | None, opened: bool, messages: Messages) -> None:
    """Print the path of the playground: a page on which you drag the tokens of a schedule, and see its scores change.

    It is one file that works without a network. With -o, a copy of it is written.

    \b
    lagging playground                       prints where the page is
    lagging playground --open                shows it
    lagging playground -o playground.html    writes a copy, to send or to put on a site
    """
    page = Path(str(files("lagging.render") / "web" / "playground.html"))
    if output == "-":
        if opened:
            raise UsageError("--open needs a file: what goes to standard output cannot be shown")
        click.echo(page.read_text("utf-8"), nl=False)
        return
    if output is None:
        click.echo(page)
    else:
        with write_whole(output, binary=True) as file:
            file.write(page.read_bytes())
        page = Path(output).resolve()
        messages.print(f"{output}: {page.stat().st_size} bytes; open it in a browser")
    if opened:
        import webbrowser

        if not webbrowser.open(page.as_uri()):
            raise UsageError(f"no browser could be started\n  fix: open {page} in one.")
