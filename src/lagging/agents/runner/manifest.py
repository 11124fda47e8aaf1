# SPDX-License-Identifier: Apache-2.0
"""`run.json`: how a run was made, so that it can be repeated, and so that only the same run is resumed."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from lagging.agents.loading import digest
from lagging.agents.runner.jobs import Job
from lagging.agents.runner.worker import Handshake
from lagging.agents.sources import SpeechTestSet, TextTestSet
from lagging.data.files import write_whole
from lagging.data.trees import read_json
from lagging.errors import UsageError
from lagging.version import __version__

__all__ = ["MANIFEST", "Manifest"]

MANIFEST = "run.json"
PACKAGES = (
    "numpy",
    "msgspec",
    "sacrebleu",
    "torch",
    "jax",
    "transformers",
    "tokenizers",
    "sentencepiece",
    "soundfile",
    "simuleval",
)
MUST_AGREE = ("agent", "source", "reference", "settings")


class Manifest:
    """The file `run.json` of a run.

    Attributes:
        data: its contents.
    """

    def __init__(self, path: Path, data: dict[str, Any]) -> None:
        self.path, self.data = path, data

    @classmethod
    def of(
        cls,
        job: Job,
        source: TextTestSet | SpeechTestSet,
        handshake: Handshake | None = None,
        arguments: Iterable[str] = (),
        before: Manifest | None = None,
    ) -> Manifest:
        """The manifest of a run that begins; without a handshake, of a resumed run whose agent is not made yet."""
        agent = job.agent.fingerprint()
        if handshake is not None:
            agent |= {"modules": handshake.modules, "traits": asdict(handshake.traits)}
        elif before is not None:
            agent |= {"modules": job.agent.current_modules(before.data["agent"]["modules"])}
        inputs: dict[str, Any] = {"path": job.source, "sha256": digest(job.source), "sentences": len(source)}
        if isinstance(source, SpeechTestSet):
            sizes = [os.stat(path).st_size for path in source.paths]  # noqa: PTH116
            inputs |= {"audio_bytes": sum(sizes), "audio_sizes_sha256": _hash(sizes)}
        reference = None if job.reference is None else {"path": job.reference, "sha256": digest(job.reference)}
        return cls(
            Path(job.output) / MANIFEST,
            {
                "schema": 1,
                "lagging": __version__,
                "agent": agent,
                "source": inputs,
                "reference": reference,
                "settings": job.settings.for_manifest(),
                "arguments": list(arguments),
                "machine": _machine(),
                "versions": _versions(),
                "sessions": [],
                "summary": None,
                "signatures": [],
            },
        )

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """The manifest in a folder; None if there is none.

        Raises:
            UsageError: it cannot be read.
        """
        path = folder / MANIFEST
        if not path.exists():
            return None
        try:
            data = read_json(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read {path}: {error}\n  fix: give another folder.") from None
        if not _is_whole(data):
            raise UsageError(f"{path} is not the manifest of a run\n  fix: give another folder.")
        return cls(path, data)

    def check_same(self, now: Manifest) -> None:
        """Check that a run is the one in this manifest; files may have moved, but not changed.

        Raises:
            UsageError: it is another run; the message lists the differences.
        """
        differences = []
        for part in MUST_AGREE:
            differences += list(_differences(part, self.data.get(part), now.data[part]))
        if differences:
            raise UsageError(
                f"{self.path.parent} holds another run: nothing was written. What has changed since it began:\n  "
                + "\n  ".join(differences)
                + "\n  fix: undo the change to go on with that run, or give another folder with -o."
            )

    def begin(self, workers: int, done: int, job: Job) -> None:
        """Add a session, with the settings that may differ between sessions."""
        session = {
            "started": _now(),
            "workers": workers,
            "batch": job.settings.batch,
            "limits": asdict(job.settings.limits),
            "done_before": done,
            "lagging": __version__,
            "ended": None,
        }
        self.data["sessions"].append(session)
        self.data["summary"] = None
        self.save()

    def end(self, outcome: str, done: int, total: int, failed: Mapping[int, str]) -> None:
        """End a session: `finished`, `interrupted`, or `stopped`."""
        self.data["sessions"][-1] |= {"ended": _now(), "by": outcome}
        kinds = dict(sorted(Counter(failed.values()).items()))
        self.data["summary"] = {"sentences": total, "done": done, "failed": len(failed), "failed_by_kind": kinds}
        self.save()

    def sign(self, signatures: Iterable[str]) -> None:
        """Add the signatures of the scores."""
        self.data["signatures"] = list(signatures)
        self.save()

    def save(self) -> None:
        """Write the file, completely or not at all."""
        with write_whole(self.path, errors="backslashreplace") as file:  # file names that are not UTF-8
            json.dump(self.data, file, indent=2, ensure_ascii=False)
            file.write("\n")


def _is_whole(data: Any) -> bool:
    """Whether the manifest has all entries that a resumed run needs."""
    if not isinstance(data, dict) or data.get("schema") != 1:
        return False
    agent, sessions = data.get("agent"), data.get("sessions")
    if not (isinstance(sessions, list) and sessions and all(isinstance(session, dict) for session in sessions)):
        return False
    if not (
        isinstance(agent, dict) and isinstance(agent.get("modules"), dict) and isinstance(agent.get("traits"), dict)
    ):
        return False
    return agent["traits"].get("source") in ("text", "speech") and all(part in data for part in MUST_AGREE)


def _differences(name: str, then: Any, now: Any) -> Iterable[str]:
    """The differences between two entries; paths do not count."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key in {**then, **now}:
            if key not in ("path", "traits") and (key != "modules" or key in now):
                yield from _differences(f"{name}.{key}", then.get(key), now.get(key))
    elif then != now:
        yield f"{name}: {_shorten(then)} then, {_shorten(now)} now"


def _shorten(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:16]}…"


def _hash(numbers: Iterable[int]) -> str:
    return hashlib.sha256(" ".join(map(str, numbers)).encode()).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _machine() -> dict[str, Any]:
    """The system and its number of cores; no host or user names."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cores": os.cpu_count(),
    }


def _versions() -> dict[str, str]:
    versions = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions
