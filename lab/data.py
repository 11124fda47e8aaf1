# SPDX-License-Identifier: Apache-2.0
"""Sentences to train on and to translate: Multi30k from a folder, or a language whose verbs come last."""

from __future__ import annotations

import gzip
import io
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from torch import Tensor

from lagging.data.files import write_whole

__all__ = [
    "Corpus",
    "Pair",
    "Pieces",
    "batches",
    "clause_pairs",
    "clauses",
    "padded",
    "read_corpus",
    "read_multi30k",
    "verb_final",
]

PAD, BEGIN, END, UNKNOWN = 0, 1, 2, 3
TESTS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")

Pair = tuple[list[int], list[int]]
"""A source and a target, as numbers of pieces."""


@dataclass(frozen=True)
class Corpus:
    """Pairs of sentences, by part: `train`, `val`, and tests."""

    parts: dict[str, list[tuple[str, str]]]

    @property
    def tests(self) -> dict[str, list[tuple[str, str]]]:
        """The test sets."""
        return {part: pairs for part, pairs in self.parts.items() if part.startswith("test")}


def read_multi30k(folder: Path) -> Corpus:
    """Multi30k German–English, lower-cased.

    Raises:
        SystemExit: files are missing; it names all of them.
    """
    parts = ("train", "val", *TESTS)
    files = {(part, language): folder / f"{part}.{language}.gz" for part in parts for language in ("de", "en")}
    missing = [file.name for file in files.values() if not file.is_file()]
    if missing:
        raise SystemExit(f"{folder} lacks {', '.join(missing)}\n  fix: lab/README.md says where Multi30k is to be had.")
    texts = {which: _lines(path, lower=True) for which, path in files.items()}
    return Corpus({part: list(zip(texts[part, "de"], texts[part, "en"], strict=True)) for part in parts})


def verb_final(count: int, seed: int = 1, clauses: int = 3) -> Corpus:
    """A language without a licence, whose verbs come last: `s o a p v` becomes `S V O A P`, clause by clause.

    Words are of five kinds, which their first letter tells: subject, object, adverb, place, verb. The translation of a
    word is the same word in capitals. Nobody can write a verb before it has been read, and it is read last.
    """
    chance = random.Random(seed)

    def pair() -> tuple[str, str]:
        source, target = [], []
        for _ in range(chance.randint(1, clauses)):
            subject, *others, verb = clause = [kind + chance.choice("bdfgklmn") for kind in "soapv"]
            source += clause
            target += [word.upper() for word in (subject, verb, *others)]
        return " ".join(source), " ".join(target)

    few = max(count // 20, 50)
    sizes = {"train": count, "val": few, "test": few}
    return Corpus({part: [pair() for _ in range(size)] for part, size in sizes.items()})


CLAUSES = {"train": 4000, "val": 200, "test": 1000}
"""How many sentences of each part are made."""
OTHERS = 8
"""The most words between the subject and the verb of a clause."""


Clauses = tuple[list[str], list[str], list[int]]
"""Source, target, and where each target word is from."""


def clause_pair(chance: random.Random, most: int = 3) -> Clauses:
    """A sentence whose verbs come last, with 1 to 8 words before each: source, target, and where each target word is
    from, counted from 1.
    """
    source: list[str] = []
    target: list[str] = []
    places: list[int] = []
    for _ in range(chance.randint(1, most)):
        others = [chance.choice("oap") + chance.choice("bdfgklmn") for _ in range(chance.randint(1, OTHERS))]
        subject, verb = ("s" + chance.choice("bdfgklmn"), "v" + chance.choice("bdfgklmn"))
        first = len(source) + 1
        places += [first, first + len(others) + 1, *range(first + 1, first + len(others) + 1)]
        source += [subject, *others, verb]
        target += [word.upper() for word in (subject, verb, *others)]
    return source, target, places


def clause_pairs(sizes: Mapping[str, int], seed: int = 1) -> dict[str, list[Clauses]]:
    """Such sentences, by part; see `clause_pair`."""
    chance = random.Random(seed)
    return {part: [clause_pair(chance) for _ in range(size)] for part, size in sizes.items()}


def clauses(sizes: Mapping[str, int] = CLAUSES, seed: int = 1) -> Corpus:
    """The same as a corpus."""
    made = clause_pairs(sizes, seed)
    return Corpus({part: [(" ".join(x), " ".join(y)) for x, y, _ in pairs] for part, pairs in made.items()})


def read_corpus(named: str | Mapping[str, Any], folder: Path | None, reverse: bool = False) -> Corpus:
    """The corpus that a plan names; `folder` has its files.

    Raises:
        SystemExit: there is no such corpus, or files are missing.
    """
    if isinstance(named, Mapping):
        corpus = _from_files(named, folder)
    elif named == "multi30k":
        if folder is None:
            raise SystemExit("say where Multi30k is: --data FOLDER (lab/README.md says where to get it)")
        corpus = read_multi30k(folder)
    elif named in MADE:
        corpus = MADE[named]()
    else:
        known = ", ".join(("multi30k", *MADE))
        raise SystemExit(f"there is no corpus {named!r}; there are {known}, or {{train = …, val = …, tests = …}}")
    if not reverse:
        return corpus
    return Corpus({part: [(target, source) for source, target in pairs] for part, pairs in corpus.parts.items()})


VERB_FINAL = 4000
"""Sentences of the verb-final language to train on."""
MADE: dict[str, Callable[[], Corpus]] = {
    "verb-final": lambda: verb_final(VERB_FINAL),
    "clauses": clauses,
}


def _from_files(named: Mapping[str, Any], folder: Path | None) -> Corpus:
    """`{train = [source, target], val = …, tests = {name = …}, lower = true}`, in files of a folder."""
    faults = [f"it has no {part}" for part in ("train", "val", "tests") if part not in named]
    faults += [f"it has {part!r}, which is none of train, val, tests, lower" for part in named if part not in FILES]
    if faults:
        raise SystemExit("\n".join(f"the corpus of the plan: {fault}" for fault in faults))
    parts = {"train": named["train"], "val": named["val"]}
    parts |= {name if name.startswith("test") else f"test_{name}": files for name, files in named["tests"].items()}
    paths = {part: [(folder or Path()) / file for file in files] for part, files in parts.items()}
    faults = [f"{part} needs two files, but has {len(files)}" for part, files in paths.items() if len(files) != 2]
    faults += [f"there is no {path}" for files in paths.values() for path in files if not path.is_file()]
    if faults:
        raise SystemExit("\n".join(f"the corpus of the plan: {fault}" for fault in faults))
    texts = {part: [_lines(path, bool(named.get("lower", False))) for path in files] for part, files in paths.items()}
    uneven = [part for part, (source, target) in texts.items() if len(source) != len(target)]
    if uneven:
        raise SystemExit(f"the corpus of the plan: source and target of {', '.join(uneven)} have different lengths")
    return Corpus({part: list(zip(*sides, strict=True)) for part, sides in texts.items()})


FILES = ("train", "val", "tests", "lower")


def _lines(path: Path, lower: bool) -> list[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n").lower() if lower else line.rstrip("\n") for line in file]


class Pieces:
    """Subwords of both languages, trained on the training set."""

    def __init__(self, model: Path) -> None:
        self.path = model
        self._model = sentencepiece.SentencePieceProcessor(model_file=str(model))

    @classmethod
    def train(cls, corpus: Corpus, path: Path, size: int) -> Pieces:
        """Train them, unless that was done before."""
        if not path.exists():
            written = io.BytesIO()
            texts = (text for pair in corpus.parts["train"] for text in pair)
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=texts, model_writer=written, vocab_size=size, model_type="bpe",
                character_coverage=1.0, pad_id=PAD, bos_id=BEGIN, eos_id=END, unk_id=UNKNOWN, minloglevel=2,
            )  # fmt: skip
            with write_whole(path, binary=True) as file:
                file.write(written.getvalue())
        return cls(path)

    def __len__(self) -> int:
        """How many there are."""
        return int(self._model.get_piece_size())

    def pairs(self, texts: Sequence[tuple[str, str]]) -> list[Pair]:
        """Sentences as numbers: the source, and the target with its end."""
        return [(self._model.encode(source), [*self._model.encode(target), END]) for source, target in texts]

    def numbers(self, pieces: Sequence[str]) -> list[int]:
        """Pieces as numbers."""
        return [self._model.piece_to_id(piece) for piece in pieces]

    def piece(self, number: int) -> str:
        """A number as a piece."""
        return str(self._model.id_to_piece(number))


def padded(rows: Sequence[Sequence[int]]) -> Tensor:
    """Rows of uneven length, with padding on the right."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows])


def batches(pairs: Sequence[Pair], tokens: int, chance: random.Random | None = None) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs of similar length together, about so many tokens at a time; in the order of chance, if there is one."""
    order = list(range(len(pairs)))
    if chance is not None:
        chance.shuffle(order)
    order.sort(key=lambda i: (len(pairs[i][1]), len(pairs[i][0])))
    groups: list[list[int]] = [[]]
    for i in order:
        longest = max(max(map(len, pairs[k])) for k in (*groups[-1][-1:], i))
        if groups[-1] and longest * (len(groups[-1]) + 1) > tokens:
            groups.append([])
        groups[-1].append(i)
    if chance is not None:
        chance.shuffle(groups)
    for group in groups:
        yield padded([pairs[i][0] for i in group]), padded([pairs[i][1] for i in group])
