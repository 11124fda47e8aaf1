# SPDX-License-Identifier: Apache-2.0
"""Options of the subcommands that cut streams into segments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

import click

from lagging.cli.common import Command
from lagging.data.run import Run
from lagging.data.strip import check_kinds
from lagging.data.strip import strip as strip_tokens
from lagging.errors import UsageError
from lagging.formats import scan
from lagging.scoring.signature import ALIGNERS

if TYPE_CHECKING:
    from lagging.longform import Cut, Segmentation

__all__ = ["Cutting", "cutting"]


@dataclass(frozen=True)
class Cutting:
    """How streams are to be cut, if at all.

    Attributes:
        segmentation, reference, source: files that say where segments lie, and what they are.
        hypothesis: a file with what was written, where the log does not have it.
        aligner: name of the aligner; the default if None.
        subset: whether recordings without segments are left aside.
    """

    segmentation: str | None = None
    reference: str | None = None
    source: str | None = None
    hypothesis: str | None = None
    aligner: str | None = None
    subset: bool = False

    @property
    def asked(self) -> bool:
        """Whether there is anything to do."""
        return any(file is not None for file in self.files)

    @property
    def files(self) -> tuple[str | None, ...]:
        """What is read beside the logs."""
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
        from lagging.longform import read_segmentation

        return read_segmentation(self.segmentation, reference=self.reference, source=self.source)

    def read(self, path: str, name: str | None, how: dict[str, Any]) -> Run:
        """A whole log, of which nothing is stripped: `cut` does that, once the log has the texts of the files."""
        check_kinds(how["strip"])
        return Run.concat(list(scan(path, name=name, **{**how, "strip": ()})))

    def cut(self, run: Run, strip: Iterable[str] = (), clocks: Iterable[str] | None = None) -> Cut:
        """The log with what the files say; its streams cut, unless there is a reference for each row as it is.

        Kinds of tokens are stripped of streams before, and of the references of segments after they are cut.
        """
        from lagging.longform import Cut, cut, with_predictions, with_references

        kinds = check_kinds(strip)
        if self.hypothesis is not None:
            run = with_predictions(run, self.hypothesis)
        if self.gives_references(run):
            return Cut(strip_tokens(with_references(run, self.segments), kinds), [])
        stream = strip_tokens(run, kinds)
        done = cut(stream, self.segments, aligner=self.aligner, clocks=clocks, subset=self.subset)
        return replace(done, run=strip_tokens(done.run, kinds))

    def gives_references(self, run: Run) -> bool:
        """Whether the rows of a log take the references as they are: nothing says where several recordings are cut."""
        from lagging.longform import is_one_recording

        if self.segmentation is not None or self.source is not None:
            return False
        return not is_one_recording(run) or 1 < len(run) == len(self.segments)

    def by(self, aligner: str) -> Cutting:
        """The same, by an aligner that was not asked for otherwise."""
        return self if self.aligner is not None else replace(self, aligner=aligner)


def cutting(command: Command) -> Command:
    """Options of a subcommand that cuts streams; they arrive as `cutting`."""

    @wraps(command)
    def call(*args: Any, **rest: Any) -> Any:
        names = ("segmentation", "reference", "source", "hypothesis", "aligner", "subset")
        return command(*args, cutting=Cutting(**{name: rest.pop(name) for name in names}), **rest)

    for option in reversed(OPTIONS):
        call = option(call)
    return call


OPTIONS = (
    click.option("--segmentation", metavar="FILE", help="Segments of whole recordings: YAML or JSON, or document ids."),
    click.option("--reference", metavar="FILE", help="Reference translations, a line per segment."),
    click.option("--source", metavar="FILE", help="Source sentences, a line per segment, where delays count words."),
    click.option("--hypothesis", metavar="FILE", help="What was written, where the log does not say: a line per row."),
    click.option("--aligner", type=click.Choice(ALIGNERS), help="Who cuts the streams; timed if not given."),
    click.option("--subset", is_flag=True, help="Leave recordings that the segmentation does not have aside."),
)
