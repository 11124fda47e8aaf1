# SPDX-License-Identifier: Apache-2.0
"""The files that give a log its segments and texts, and what is done with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from lagging.data.run import Run
from lagging.data.strip import strip
from lagging.errors import DataError, Fault, Faults, UsageError, counted
from lagging.formats import ReadOptions, scan_log
from lagging.formats.spoken_words import check_alignment
from lagging.longform.recordings import is_one_recording
from lagging.longform.resegment import Cut, cut
from lagging.longform.segmentation import Segmentation, read_segmentation
from lagging.longform.texts import with_predictions, with_references

__all__ = ["Cutting"]


@dataclass(frozen=True)
class Cutting:
    """How the streams of a log are cut into segments, and which files give the texts.

    Attributes:
        segmentation, reference, source: files with the times of the segments, and their texts.
        hypothesis: a file with the output of the system, where the log does not have it.
        aligner: name of the aligner; None for the default.
        subset: whether recordings without segments are left out.
    """

    segmentation: str | None = None
    reference: str | None = None
    source: str | None = None
    hypothesis: str | None = None
    aligner: str | None = None
    subset: bool = False

    @property
    def requested(self) -> bool:
        """Whether any file was given."""
        return any(file is not None for file in self.files)

    @property
    def files(self) -> tuple[str | None, ...]:
        """The files that are read beside the logs."""
        return (self.segmentation, self.reference, self.source, self.hypothesis)

    def check(self) -> None:
        """Refuse options that would change nothing."""
        if self.aligner is not None and not (self.segmentation or self.reference):
            raise UsageError("--aligner cuts streams into segments\n  fix: give --segmentation and --reference too.")
        if self.subset and self.segmentation is None:
            raise UsageError("--subset goes with --segmentation")

    @cached_property
    def segments(self) -> Segmentation:
        """The segments, read once."""
        return read_segmentation(self.segmentation, reference=self.reference, source=self.source)

    def read(
        self,
        paths: str | Path | Sequence[str | Path],
        options: ReadOptions,
        *,
        name: str | None = None,
        progress: Callable[[int], None] | None = None,
        quarantine: Callable[[Fault], None] | None = None,
    ) -> Run:
        """Read a whole log and strip nothing: `cut` strips, once the log has the texts of the files."""
        options = replace(options, strip=(), columns=None)
        if self.segmentation is not None and self.segments.unit != "none":  # it says when each recording ends
            options = replace(options, needs_length=False, unit_hint=options.unit_hint or self.segments.unit)
        return Run.concat(list(scan_log(paths, options, name=name, progress=progress, quarantine=quarantine)))

    def cut(self, run: Run, kinds: tuple[str, ...] = (), clocks: Iterable[str] | None = None) -> Cut:
        """Give the log the texts of the files and cut its streams, unless there is a reference for each row as it is.

        Kinds of tokens are stripped from streams before they are cut, and from the references of segments after.
        """
        if self.hypothesis is not None:
            run = with_predictions(run, self.hypothesis)
            if self.files[:3] == (None, None, None):  # the log has references of its own, or needs none
                return Cut(strip(run, kinds), [])
        if self.gives_references(run):
            run = with_references(run, self.segments)
            if faults := check_alignment(run):
                raise DataError(Faults(kept=faults, counts={faults[0].kind: len(faults)}))
            return Cut(strip(run, kinds), [])
        if run.spoken is not None:
            lines = "" if self.segmentation else f", and these are {counted(len(self.segments), 'line')} for {len(run)}"
            raise UsageError(
                f"--word-times are those of whole recordings{lines}\n"
                "  fix: leave --segmentation and --aligner out, and give --reference a line for each recording."
            )
        stream = strip(run, kinds)
        result = cut(stream, self.segments, aligner=self.aligner, clocks=clocks, subset=self.subset)
        return replace(result, run=strip(result.run, kinds))

    def gives_references(self, run: Run) -> bool:
        """Whether the rows of a log take the references as they are, because no file says where recordings are cut."""
        if self.segmentation is not None or self.source is not None:
            return False
        if not is_one_recording(run):
            return True
        as_many = len(run) == len(self.segments)
        return as_many and (len(run) > 1 or self.aligner is None)  # one line for one recording: nothing is to be cut

    def with_aligner(self, aligner: str) -> Cutting:
        """The same with an aligner, unless one was named."""
        return self if self.aligner is not None else replace(self, aligner=aligner)
