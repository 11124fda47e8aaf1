# SPDX-License-Identifier: Apache-2.0
"""`run.json`: how a run was made, so that it can be repeated, and so that only the same run can go on."""

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
from lagging.agents.runner.worker import Hello
from lagging.agents.sources import Speech, Text
from lagging.data.files import write_whole
from lagging.data.trees import read_json
from lagging.errors import UsageError
from lagging.version import __version__

__all__ = ["MANIFEST", "Manifest"]

MANIFEST = "run.json"
PACKAGES = ("numpy", "msgspec", "sacrebleu", "torch", "jax", "transformers", "sentencepiece", "soundfile", "simuleval")
MUST_AGREE = ("agent", "source", "reference", "settings")


class Manifest:
    """The file `run.json` of a run.

    Attributes:
        data: what is in it.
    """

    def __init__(self, path: Path, data: dict[str, Any]) -> None:
        self.path, self.data = path, data

    @classmethod
    def of(
        cls,
        job: Job,
        source: Text | Speech,
        hello: Hello | None = None,
        arguments: Iterable[str] = (),
        before: Manifest | None = None,
    ) -> Manifest:
        """The manifest of a run that is about to begin; without a hello, of one whose agent has not been made again."""
        agent = job.agent.fingerprint()
        if hello is not None:
            agent |= {"modules": hello.modules, "traits": asdict(hello.traits)}
        elif before is not None:
            agent |= {"modules": job.agent.still(before.data["agent"]["modules"])}
        inputs: dict[str, Any] = {"path": job.source, "sha256": digest(job.source), "sentences": len(source)}
        if isinstance(source, Speech):
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
                "settings": job.settings.told(),
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
        """The manifest of the run in a folder; None if there is none.

        Raises:
            UsageError: it is there, but cannot be read.
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

    def agree(self, now: Manifest) -> None:
        """Whether a run is the one that began here; places of files may have changed, what is in them not.

        Raises:
            UsageError: it is another, with everything that differs.
        """
        unlike = []
        for part in MUST_AGREE:
            unlike += list(_unlike(part, self.data.get(part), now.data[part]))
        if unlike:
            raise UsageError(
                f"{self.path.parent} holds another run: nothing was written. What has changed since it began:\n  "
                + "\n  ".join(unlike)
                + "\n  fix: undo the change to go on with that run, or give another folder with -o."
            )

    def begin(self, workers: int, done: int, job: Job) -> None:
        """A session begins; what may differ between sessions is told of each."""
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

    def end(self, how: str, done: int, total: int, failed: Mapping[int, str]) -> None:
        """A session ends: `finished`, `interrupted`, or `stopped`."""
        self.data["sessions"][-1] |= {"ended": _now(), "by": how}
        kinds = dict(sorted(Counter(failed.values()).items()))
        self.data["summary"] = {"sentences": total, "done": done, "failed": len(failed), "failed_by_kind": kinds}
        self.save()

    def sign(self, signatures: Iterable[str]) -> None:
        """The signatures of the scores that were made of it."""
        self.data["signatures"] = list(signatures)
        self.save()

    def save(self) -> None:
        """Write it, whole or not at all."""
        with write_whole(self.path, errors="backslashreplace") as file:  # names of files that are no UTF-8
            json.dump(self.data, file, indent=2, ensure_ascii=False)
            file.write("\n")


def _is_whole(data: Any) -> bool:
    """Whether all is there that is needed to go on."""
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


def _unlike(name: str, then: Any, now: Any) -> Iterable[str]:
    """What differs, by its name; where a file lies does not matter."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key in {**then, **now}:
            if key not in ("path", "traits") and (key != "modules" or key in now):
                yield from _unlike(f"{name}.{key}", then.get(key), now.get(key))
    elif then != now:
        yield f"{name}: {_short(then)} then, {_short(now)} now"


def _short(value: Any) -> str:
    said = json.dumps(value, ensure_ascii=False)
    return said if len(said) <= 40 else f"{said[:16]}…"


def _hash(numbers: Iterable[int]) -> str:
    return hashlib.sha256(" ".join(map(str, numbers)).encode()).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _machine() -> dict[str, Any]:
    """What it runs on; no name of it, nor of anybody."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cores": os.cpu_count(),
    }


def _versions() -> dict[str, str]:
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
