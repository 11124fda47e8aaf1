# SPDX-License-Identifier: Apache-2.0
"""`--segment-scores FILE`: the score of every segment, as TSV or Parquet, written as the segments come."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from lagging.data.files import write_whole
from lagging.data.run import Run
from lagging.errors import optional
from lagging.formats.tables import labels_of
from lagging.metrics import Metric
from lagging.render.records import tsv_field
from lagging.render.scores import metrics_and_units, segment_table, signature_lines
from lagging.scoring.part import Part
from lagging.scoring.scores import Scores

__all__ = ["Segments", "is_parquet", "segments_file", "write_segments"]

PARQUET = (".parquet", ".pq")


def is_parquet(path: str) -> bool:
    """Whether the ending of a path asks for Parquet."""
    return path.endswith(PARQUET)


def write_segments(path: str, results: Sequence[Scores]) -> None:
    """Write the scores of the segments of some systems."""
    if not is_parquet(path):
        with write_whole(path, errors="backslashreplace") as file:
            file.writelines(segment_table(results))
        return
    with segments_file(path, ()) as segments:
        segments.metrics = [metric for metric, _ in metrics_and_units(results)]
        for scores in results:
            segments.add(None, scores, scores.system)
        segments.signatures = signature_lines(results, segments=True)


class Segments:
    """A table to which the scores of segments are added, part by part.

    Attributes:
        by: the columns of the groups.
        metrics: the columns of scores; those of the first part if not given.
        signatures: how they were made.
    """

    def __init__(self, file: IO[Any], by: tuple[str, ...], parquet: bool) -> None:
        self.by = by
        self.metrics: list[Metric] = []
        self.signatures: list[str] = []
        self._file, self._parquet = file, parquet
        self._table: Any = None

    def add(self, run: Run | None, scores: Scores, system: str) -> None:
        """Add the scores of some segments; those of a group have their labels in the Run."""
        if not self.metrics:
            self.metrics = [score.metric for score in scores]
        ids = next(iter(scores)).ids
        texts = [None] * len(ids) if run is None or run.group is None else run.group.tolist()
        labels = list(zip(*(labels_of(text, len(self.by)) for text in texts), strict=True))
        if self._parquet:
            self._add_batch(scores, system, labels)
            return
        if self._table is None:
            self._table = self._file
            self._file.write(self._line("system", "id", *self.by, *map(repr, self.metrics)))
        values = [[None if math.isnan(v) else v for v in scores[m].segments.tolist()] for m in self.metrics]
        self._file.writelines(self._line(system, *row) for row in zip(ids.tolist(), *labels, *values, strict=True))

    def add_part(self, part: Part) -> None:
        """Add the scores of a part of a log."""
        self.add(part.run, part.scores(), part.run.name)

    @staticmethod
    def _line(*cells: object) -> str:
        return "\t".join(map(tsv_field, cells)) + "\n"

    def _add_batch(self, scores: Scores, system: str, labels: Sequence[Sequence[str | None]]) -> None:
        from lagging.scoring.arrow import segment_scores

        optional("pyarrow", "arrow")
        from pyarrow.parquet import ParquetWriter

        named = dict(zip(self.by, labels, strict=True)) if labels else dict.fromkeys(self.by, ())
        batch = segment_scores(scores, metrics=self.metrics, labels=named, system=system)
        if self._table is None:
            self._table = ParquetWriter(self._file, batch.schema)
        self._table.write_batch(batch)

    def close(self) -> None:
        """Say how the scores were made, and end the table."""
        if self._parquet and self._table is not None:
            self._table.add_key_value_metadata({"lagging.signatures": json.dumps(self.signatures, ensure_ascii=False)})
            self._table.close()
        elif not self._parquet:
            self._file.writelines(f"# {tsv_field(line)}\n" for line in self.signatures)


@contextmanager
def segments_file(path: str, by: Iterable[str]) -> Iterator[Segments]:
    """A table of the scores of segments, written whole or not at all."""
    with write_whole(path, errors="backslashreplace", binary=is_parquet(path)) as file:
        segments = Segments(file, tuple(by), is_parquet(path))
        try:
            yield segments
        finally:  # Arrow ends a table that was not ended when it is forgotten, and its file is closed then
            segments.close()
