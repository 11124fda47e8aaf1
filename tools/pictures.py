# SPDX-License-Identifier: Apache-2.0
"""The pictures of README and documentation: `python tools/pictures.py` draws them again, from the bundled examples.

docs/images/terminal.svg is a sentence in the terminal, and docs/images/curve.svg is quality against latency.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

from lagging.cli import main as lagging

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
INSPECT = ("inspect", "antagonist-5", "-i", "7", "-q", "--width", "90")
CURVE = ("curve", "wait-k=wait-*", "adaptive", "--latency", "DAL", "-q", "--figure")


def printed(*args: str) -> str:
    """What a command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        lagging(list(args))
    return out.getvalue()


def terminal(*args: str, columns: int = 92) -> str:
    """A command and what it prints, without signatures, as a picture of a terminal."""
    command = " ".join(arg for arg in args if arg not in ("-q", "--width", "90"))
    lines = [line for line in printed(*args).splitlines() if "|v:" not in line]
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    console.print(Text("\n".join([f"$ lagging {command}", *lines])))
    drawn = console.export_svg(title="lagging inspect", unique_id="lagging")
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)  # no fonts from elsewhere


def main() -> None:
    """Draw all pictures."""
    os.chdir(ROOT / "examples" / "data")
    (IMAGES / "terminal.svg").write_text(terminal(*INSPECT), "utf-8")
    printed(*CURVE, str(IMAGES / "curve.svg"))


if __name__ == "__main__":
    main()
