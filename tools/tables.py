# SPDX-License-Identifier: Apache-2.0
"""The pages of the metrics, and the tables that pages take from the code: `python tools/tables.py` writes them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parent.parent / "docs"


def hooks() -> ModuleType:
    """docs/hooks.py, which makes them."""
    spec = importlib.util.spec_from_file_location("docs_hooks", DOCS / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stale(docs: Path = DOCS) -> dict[Path, str]:
    """What is to be written: the pages that are not what the code makes of them; an empty text for one too many."""
    pages = hooks().written_pages(docs)
    gone = {page: "" for page in (docs / "metrics").glob("*.md") if page not in pages}
    return gone | {page: text for page, text in pages.items() if not page.is_file() or page.read_text("utf-8") != text}


def main() -> int:
    """Write the pages that are stale."""
    for page, text in stale().items():
        page.parent.mkdir(exist_ok=True)
        if text:
            page.write_text(text, "utf-8")
        else:
            page.unlink()
        print(page.relative_to(DOCS.parent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
