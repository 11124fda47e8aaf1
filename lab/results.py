# SPDX-License-Identifier: Apache-2.0
"""What is kept of a run: delays, lengths, ids, and what BLEU is made of. No text, which the corpus's terms forbid.

So all figures and tables can be made again without training, and every metric of latency that needs no text computed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import lagging
from lab.data import Pieces
from lab.experiments import Setting
from lagging.data.files import write_whole
from lagging.data.ragged import Floats, Ragged
from lagging.data.run import Run
from lagging.scoring.scores import Score, Scores, Undefined
from lagging.scoring.signature import Signature

__all__ = [
    "HIDDEN",
    "METRICS",
    "Kept",
    "Result",
    "Trained",
    "bleu_of",
    "keep",
    "keep_pieces",
    "read_kept",
    "read_results",
]

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
    setting: Setting, run: Run, folder: Path, reference_lengths: Sequence[int], trained: Trained,
    **more: npt.NDArray[np.int8],
) -> None:  # fmt: skip
    """Keep what a run gave, but for its texts; `reference_lengths` in the tokens that have delays, `more` as it is."""
    bleu = lagging.score(run, ["BLEU"])["BLEU"]
    metadata = {"setting": asdict(setting), "trained": asdict(trained), "bleu": str(bleu.signature)}
    folder.mkdir(parents=True, exist_ok=True)
    with write_whole(folder / f"{setting.name}.npz", binary=True) as file:
        np.savez_compressed(
            file,
            delays=run.delays.values.astype(np.int16),
            lengths=run.delays.lengths.astype(np.int16),
            source_length=run.source_length.astype(np.int16),
            reference_length=np.array(reference_lengths, dtype=np.int16),
            id=np.asarray(run.id).astype(np.int64),
            bleu=np.asarray(bleu.statistics).astype(np.int32),
            said=np.array(json.dumps(metadata, ensure_ascii=False)),
            **more,  # type: ignore[arg-type]
        )


def keep_pieces(
    setting: Setting, run: Run, folder: Path, pieces: Pieces, texts: Sequence[tuple[str, str]], trained: Trained
) -> None:
    """Keep a run whose translations are pieces with spaces between them: BLEU is that of the text that they make."""
    if run.prediction is None:
        raise ValueError(f"{setting.name}: a run without translations")
    written = [str(text).split(" ") if text else [] for text in run.prediction]
    if [len(row) for row in written] != run.delays.lengths.tolist():
        raise ValueError(f"{setting.name}: translations and delays have different lengths")
    plain = np.array(["".join(row).replace(MARK, " ").strip() for row in written], dtype=object)
    numbers = pieces.pairs(texts)
    read = [[pieces.piece(number) for number in source] for source, _ in numbers]
    wanted = [[pieces.piece(number) for number in target[:-1]] for _, target in numbers]
    right = [
        piece == there for row, row_of in zip(written, wanted, strict=True) for piece, there in zip_longest(row, row_of)
        if piece is not None
    ]  # fmt: skip
    keep(
        setting, replace(run, prediction=plain), folder, list(map(len, wanted)), trained, begins=_begins(written),
        source_begins=_begins(read), right=np.array(right, dtype=np.int8),
    )  # fmt: skip


MARK = "\u2581"
"""What a piece begins with if it begins a word."""


def _begins(rows: Sequence[Sequence[str]]) -> npt.NDArray[np.int8]:
    """Which pieces begin a word; the first always does."""
    return np.array([n == 0 or piece.startswith(MARK) for row in rows for n, piece in enumerate(row)], dtype=np.int8)


@dataclass(frozen=True)
class Kept:
    """What was kept of a setting on a test set.

    Attributes:
        setting, trained: as in `Result`.
        run: delays and lengths, in pieces.
        bleu: what BLEU is made of, a row for each sentence; and its signature.
        begins: which pieces of the translations begin a word, and which of the sources do; None where it was not kept.
        right: which of their pieces are those of the reference at the same place; None where it was not kept.
    """

    setting: Setting
    trained: Trained
    run: Run
    bleu: tuple[Floats, str]
    begins: tuple[Ragged, Ragged] | None
    right: Ragged | None

    @property
    def words(self) -> Run | None:
        """The same in words: a word's delay is that of its last piece; a word is read when its first piece is."""
        if self.begins is None:
            return None
        delays, lengths = [], []
        for g, begins, source in zip(self.run.delays, *self.begins, strict=True):
            read = np.concatenate([[0], np.cumsum(source)])
            last = np.append(begins[1:] > 0, True)[: len(g)]
            delays.append(read[g[last].astype(np.int64)].tolist())
            lengths.append(float(read[-1]))
        return Run.from_delays(delays, source_length=lengths, id=self.run.id.tolist(), name=self.run.name, level="word")


def read_results(folder: Path, test: str | None = None) -> list[Result]:
    """All that was kept of a test set, with its scores; of the first, if none is named.

    Raises:
        SystemExit: there is nothing.
    """
    return [_scored(one) for one in read_kept(folder, test)]


def read_kept(folder: Path, test: str | None = None) -> list[Kept]:
    """The same without scores."""
    results = [result for path in sorted(folder.glob("*.npz")) for result in _read(path, test)]
    if not results:
        raise SystemExit(f"{folder} has no results{f' of {test}' if test else ''}: train first")
    return results


def _read(path: Path, test: str | None) -> Iterator[Kept]:
    with np.load(path) as kept:
        metadata: dict[str, Any] = json.loads(str(kept["said"]))
        setting, trained = Setting(**metadata["setting"]), Trained(**metadata["trained"])
        delays = Ragged.from_lengths(kept["delays"].astype(np.float64), kept["lengths"].astype(np.int64))
        columns = {name: kept[name].astype(np.float64) for name in ("source_length", "reference_length")}
        ids, counts = kept["id"].tolist(), kept["bleu"].astype(np.float64)
        shapes = {"begins": delays.lengths, "source_begins": kept["source_length"].astype(np.int64)}
        shapes["right"] = delays.lengths
        rows = {
            name: Ragged.from_lengths(kept[name].astype(np.float64), lengths)
            for name, lengths in shapes.items()
            if name in kept
        }
    ends = dict(zip(trained.tests, accumulate(trained.tests.values()), strict=True))
    test = test or next(iter(ends))
    if test not in ends:
        return
    part = slice(ends[test] - trained.tests[test], ends[test])
    run = Run.from_delays(delays, id=ids, name=setting.name, **columns)[part]
    rows = {name: values[part] for name, values in rows.items()}
    begins = (rows["begins"], rows["source_begins"]) if "begins" in rows else None
    yield Kept(setting, trained, run, (counts[part], metadata["bleu"]), begins, rows.get("right"))


def bleu_of(kept: Kept) -> Score:
    """BLEU, from what was kept."""
    counts, signature = kept.bleu
    metric, signed = lagging.metric("BLEU"), Signature.parse(signature).of(len(kept.run))
    return Score(metric, metric.corpus(counts), counts, kept.run.id, Undefined({}), "score", signed, metric)


def _scored(kept: Kept) -> Result:
    scores = [*lagging.score(kept.run, [*METRICS, *HIDDEN]), bleu_of(kept)]
    return Result(kept.setting, kept.trained, kept.run, Scores(scores, kept.setting.name))
