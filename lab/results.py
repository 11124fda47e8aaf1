# SPDX-License-Identifier: Apache-2.0
"""What is kept of a run: delays, lengths, ids, and what BLEU is made of. No text, which the corpus's terms forbid.

So all figures and tables can be made again without training, and every metric of latency that needs no text computed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import lagging
from lab.data import Pieces
from lab.experiments import Setting
from lagging.data.files import write_whole
from lagging.data.ragged import Ragged
from lagging.data.run import Run
from lagging.scoring.scores import Score, Scores, Undefined
from lagging.scoring.signature import Signature

__all__ = ["HIDDEN", "METRICS", "Result", "Trained", "keep", "read_results"]

METRICS = ("AP", "CW", "AL", "LAAL", "DAL", "ATD", "YAAL")
HIDDEN = ("HiddenLag(where=writes)", "HiddenLag(where=tail)")


@dataclass(frozen=True)
class Trained:
    """What training says of a model.

    Attributes:
        tests: the test sets that it was run on, and how many sentences each has.
        experiment: how it was trained, see `lab.experiments.Experiment`.
        history: what each epoch gave.
        expected: of MILk, the latency of writing the references of the first test set, see `lab.training.expected`.
    """

    tests: Mapping[str, int]
    experiment: Mapping[str, Any]
    history: Sequence[Mapping[str, float]]
    expected: Mapping[str, float]


@dataclass(frozen=True)
class Result:
    """A setting on a test set, and what came of it.

    Attributes:
        setting: which it was.
        trained: what training says.
        run: delays and lengths.
        scores: of `METRICS` and `HIDDEN`, and BLEU.
    """

    setting: Setting
    trained: Trained
    run: Run
    scores: Scores


def keep(
    setting: Setting, log: Path, folder: Path, pieces: Pieces, texts: Sequence[tuple[str, str]], trained: Trained
) -> None:
    """Keep what a run's log has, but for its texts; in the log, translations are pieces with spaces between them."""
    run = lagging.read(log)
    if run.prediction is None:
        raise SystemExit(f"{log} has no translations")
    written = [str(text).split(" ") if text else [] for text in run.prediction]
    if [len(row) for row in written] != run.delays.lengths.tolist():
        raise SystemExit(f"{log}: translations and delays have different lengths")
    plain = ["".join(row).replace(MARK, " ").strip() for row in written]
    bleu = lagging.score(replace(run, prediction=np.array(plain, dtype=object)), ["BLEU"])["BLEU"]
    read = [[pieces.piece(number) for number in numbers] for numbers, _ in pieces.pairs(texts)]
    metadata = {"setting": asdict(setting), "trained": asdict(trained), "bleu": str(bleu.signature)}
    folder.mkdir(parents=True, exist_ok=True)
    with write_whole(folder / f"{setting.name}.npz", binary=True) as file:
        np.savez_compressed(
            file,
            delays=run.delays.values.astype(np.int16),
            lengths=run.delays.lengths.astype(np.int16),
            source_length=run.source_length.astype(np.int16),
            reference_length=np.array([len(target) - 1 for _, target in pieces.pairs(texts)], dtype=np.int16),
            id=np.asarray(run.id).astype(np.int16),
            bleu=np.asarray(bleu.statistics).astype(np.int32),
            begins=_begins(written),
            source_begins=_begins(read),
            said=np.array(json.dumps(metadata, ensure_ascii=False)),
        )


MARK = "\u2581"
"""What a piece begins with if it begins a word."""


def _begins(rows: Sequence[Sequence[str]]) -> npt.NDArray[np.int8]:
    """Which pieces begin a word; the first always does."""
    return np.array([n == 0 or piece.startswith(MARK) for row in rows for n, piece in enumerate(row)], dtype=np.int8)


def read_results(folder: Path, test: str | None = None) -> list[Result]:
    """All that was kept of a test set; of the first, if none is named.

    Raises:
        SystemExit: there is nothing.
    """
    results = [result for path in sorted(folder.glob("*.npz")) for result in _read(path, test)]
    if not results:
        raise SystemExit(f"{folder} has no results{f' of {test}' if test else ''}: train first")
    return results


def _read(path: Path, test: str | None) -> Iterator[Result]:
    with np.load(path) as kept:
        metadata: dict[str, Any] = json.loads(str(kept["said"]))
        setting, trained = Setting(**metadata["setting"]), Trained(**metadata["trained"])
        delays = Ragged.from_lengths(kept["delays"].astype(np.float64), kept["lengths"].astype(np.int64))
        columns = {name: kept[name].astype(np.float64) for name in ("source_length", "reference_length")}
        ids, counts = kept["id"].tolist(), kept["bleu"].astype(np.float64)
    ends = dict(zip(trained.tests, accumulate(trained.tests.values()), strict=True))
    test = test or next(iter(ends))
    if test not in ends:
        return
    part = slice(ends[test] - trained.tests[test], ends[test])
    run = Run.from_delays(delays, id=ids, name=setting.name, **columns)[part]
    metric, counts, signature = lagging.metric("BLEU"), counts[part], Signature.parse(metadata["bleu"]).of(len(run))
    bleu = Score(metric, metric.corpus(counts), counts, run.id, Undefined({}), "score", signature, metric)
    yield Result(setting, trained, run, Scores([*lagging.score(run, [*METRICS, *HIDDEN]), bleu], setting.name))
