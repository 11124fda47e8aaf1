# SPDX-License-Identifier: Apache-2.0
"""The files beside the log of a run; its `run.json` says whether the log is complete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lagging.data.trees import read_json
from lagging.errors import Note, UsageError, counted
from lagging.formats.source import Source

__all__ = ["LOG", "MANIFEST", "beside_a_log", "notes_about_files"]

LOG = "instances.log"
MANIFEST = "run.json"
SCORES = "scores.json"
ENDS = {
    "finished": "no more were asked for",
    "interrupted": "it was interrupted",
    "stopped": "it stopped at a failure",
}


def notes_about_files(sources: Sequence[Source]) -> list[Note]:
    """Notes about the files of one log: that there are several, or that a run has not ended."""
    text = f"{len(sources)} files are read as the log of one system"
    folder = next((source.folder for source in sources if source.folder is not None), None)
    if folder is not None:
        text += f", each as a recording of it: all streams in {folder}; name them one by one if they are of several"
    several = [Note("several files", text)]
    return several * (len(sources) > 1) + [note for source in sources for note in unfinished(source)]


def unfinished(source: Source) -> Iterator[Note]:
    """A note that a run has more sentences than its log; none if that is not known, which is no fault of the log."""
    if source.file is None or source.file.name != LOG:
        return
    data = _read(source.file.with_name(MANIFEST))
    total, summary, sessions = _part(data, "source", "sentences"), _part(data, "summary"), _part(data, "sessions")
    if not isinstance(total, int):
        return
    done = _part(summary, "done") if isinstance(summary, dict) else _lines(source)
    if isinstance(done, int) and done < total:
        ending = ENDS.get(str(_part(sessions[-1], "by"))) if isinstance(sessions, list) and sessions else None
        why = f"{MANIFEST} says that {ending or 'it has not ended'}"
        yield Note("unfinished run", f"{done} of {counted(total, 'sentence')}: {why}")


def beside_a_log(source: Source, head: bytes) -> None:
    """Refuse the files that a run puts beside its log, and say where that is.

    Raises:
        UsageError: it is one of them.
    """
    if source.file is None or not head.lstrip().startswith(b"{\n") or not source.file.with_name(LOG).is_file():
        return
    what = {MANIFEST: "how a run was made", SCORES: "its scores"}.get(source.file.name)
    if what is not None:
        raise UsageError(f"{source.path} holds {what}, not a log\n  fix: give the folder: {source.file.parent}")


def _read(path: Path) -> Any:
    try:
        return read_json(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None


def _part(data: Any, *names: str) -> Any:
    for name in names:
        data = data.get(name) if isinstance(data, dict) else None
    return data


def _lines(source: Source) -> int:
    return sum(
        line.endswith(b"\n") and bool(line.strip())
        for batch in Source(source.path, source.file).batches()
        for line in batch.lines
    )
