# SPDX-License-Identifier: Apache-2.0
"""The pictures of README and documentation: `python tools/pictures.py` draws them again, from the bundled examples.

docs/images/terminal.svg is a sentence in the terminal, curve.svg is quality against latency, and report.png and
report-timeline.png are two parts of a report, as Chromium shows them.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image, ImageChops
from rich.console import Console
from rich.text import Text

from lagging.cli import main as lagging

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
INSPECT = ("inspect", "antagonist-5", "-i", "7", "-q", "--width", "90")
CURVE = ("curve", "wait-k=wait-*", "adaptive", "--latency", "DAL", "-q", "--figure")


REPORT = ("report", "wait-5", "antagonist-5", "wait-1", "wait-3", "adaptive", "-m", "AL,DAL,BLEU", "-q")


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


def photograph(address: str, name: str, width: int, height: int) -> None:
    """A page in Chromium, as a picture."""
    browser = os.environ.get("LAGGING_CHROMIUM") or shutil.which("chromium") or "chromium"
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000"]
    target = [f"--window-size={width},{height}", f"--screenshot={IMAGES / name}", address]
    subprocess.run([browser, *flags, *target], check=True, capture_output=True)


def crop_end(picture: Path, height: int) -> None:
    """The end of a picture of a page: the timeline is its last section."""
    with Image.open(picture) as whole:
        drawn = ImageChops.difference(whole.convert("RGB"), Image.new("RGB", whole.size, "white")).getbbox()
        assert drawn is not None
        part = whole.crop((0, drawn[3] - height, whole.width, drawn[3]))
    part.save(picture)


def main() -> None:
    """Draw all pictures."""
    os.chdir(ROOT / "examples" / "data")
    (IMAGES / "terminal.svg").write_text(terminal(*INSPECT), "utf-8")
    printed(*CURVE, str(IMAGES / "curve.svg"))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        printed(*REPORT, "-o", str(page))
        photograph(page.as_uri(), "report.png", 1240, 700)
        photograph(page.as_uri(), "report-timeline.png", 1240, 8000)
    crop_end(IMAGES / "report-timeline.png", 640)


if __name__ == "__main__":
    main()
