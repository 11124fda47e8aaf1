# SPDX-License-Identifier: Apache-2.0
"""An input: its files and options. As JSON it is a finding, or a seed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SEEDS = Path(__file__).parent / "seeds"


@dataclass(frozen=True)
class Case:
    """What one check of a target is given.

    Attributes:
        target: the name of the target.
        files: the bytes of each file, by name; the first is the one that is read.
        options: whatever else the check is given, as JSON holds it.
        what: of a seed, what it shows.
    """

    target: str
    files: dict[str, bytes] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    what: str = ""

    def to_json(self) -> dict[str, Any]:
        """As JSON: a byte is a character, so that text stays legible and nothing is lost."""
        files = {name: content.decode("latin-1") for name, content in self.files.items()}
        return {"target": self.target, "what": self.what, "options": self.options, "files": files}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Case:
        """Read back; what a file holds, or the option `text`, may be a list of texts, some with how often they come."""
        files = {name: _content(parts) for name, parts in record.get("files", {}).items()}
        options = dict(record.get("options", {}))
        if isinstance(options.get("text"), list):
            options["text"] = _content(options["text"]).decode("latin-1")
        return cls(record["target"], files, options, record.get("what", ""))

    def write(self, folder: Path) -> Path:
        """Write the files into a folder; the path of the first, or of the folder if there is none."""
        for name, content in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        return folder / next(iter(self.files), "")


def _content(parts: str | list[Any]) -> bytes:
    if isinstance(parts, str):
        return parts.encode("latin-1")
    return b"".join(_content(part) if isinstance(part, str) else _content(part[0]) * part[1] for part in parts)


def read_seed(path: Path) -> Case:
    """The case in a file."""
    return Case.from_json(json.loads(path.read_text("utf-8")))


def seed_files() -> list[Path]:
    """Every finding that was confirmed."""
    return sorted(SEEDS.glob("*.json"))
