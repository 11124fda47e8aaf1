# SPDX-License-Identifier: Apache-2.0
"""One process, several, and Spark come to the same scores; and the score of a group is that of its segments alone."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import lagging
from fuzz.cases import Case
from fuzz.documents import json_lines, parquet, rising, sentence
from fuzz.hostile import TEXTS, Pairs
from fuzz.logs import METRICS
from fuzz.mutators import mutate, mutate_tree
from fuzz.oracles import Difference, agree, numbers, outcome, small_parts
from fuzz.terminal import run
from lagging.data.run import Run
from lagging.formats.tables import labels_of
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.log import score_files
from lagging.scoring.plan import Plan


def rows(random: Random) -> list[Pairs]:
    """Segments with a label each."""
    made = []
    labels = random.choice((("de", "en"), ("de", "en", "\x00"), random.sample(TEXTS, 4), ("de", None)))
    for place in range(random.choice((1, 5, 30))):
        length, count = random.randint(0, 9), random.randrange(5)
        words = sentence(random, count)
        made.append(
            Pairs(
                [
                    ("id", place),
                    ("delays", rising(random, len(words.split()), length, True)),
                    ("source_length", length),
                    ("prediction", words),
                    ("reference", random.choice((sentence(random), sentence(random), None))),
                    ("document", random.choice(labels)),
                    ("unit", "token"),
                ]
            )
        )
    return made


def make_groups(random: Random, tables: float = 0.3) -> Case:
    """A log with labels, as JSON lines, or, as often as is said, as Parquet."""
    made: list[Any] = rows(random)
    asked = random.sample(METRICS, 2)
    if random.random() < tables:
        kinds = {"id": "int64", "delays": "list<float64>", "source_length": "float64"}
        tree = [[key, kinds.get(key, "string"), [dict(row)[key] for row in made]] for key, _ in made[0]]
        return Case("groups", {"base.parquet": parquet(random, tree)}, {"metrics": asked})
    for _ in range(random.choice((0, 0, 1))):
        mutate_tree(random, made)
    content = json_lines(random, made)
    return Case(
        "groups", {"base.jsonl": mutate(random, content) if random.random() < 0.2 else content}, {"metrics": asked}
    )


def check_groups(case: Case) -> None:
    """Scores by one process and two; of groups, and of their segments."""
    path = case.write(Path())
    whole = outcome(lambda: Run.concat(list(lagging.scan(path, group_by=["document"]))))
    for name in case.options["metrics"]:
        with small_parts(5):
            alone, both = (outcome(lambda j=jobs, n=name: score_files(path, [n], jobs=j)) for jobs in (1, 2))
        agree("why one process and two refuse", alone.refusal, both.refusal)
        agree(f"{name} by one process, and by two", numbers(alone.value or ()), numbers(both.value or ()))
        if whole.error is None:
            by_group(whole.value, name)
    if whole.error is None and path.suffix == ".jsonl":
        labels(whole.value)
    if case.options.get("spark"):
        on_spark(path, case.options["metrics"][0])


def by_group(log: Run, name: str) -> None:
    """The scores of groups, added up part by part, are those of their segments."""

    def tallied() -> dict[Any, Any]:
        accumulator = Accumulator(Plan.make([name], group_by=["document"]))
        for start in range(0, len(log), 4):
            accumulator.add(log[np.arange(start, min(start + 4, len(log)))])
        return {scores.group["document"]: next(iter(scores)) for scores in accumulator.group_scores()}

    found = outcome(tallied)
    if found.error is not None:
        return
    for label, score in found.value.items():
        texts = log.group.tolist() if log.group is not None else [None] * len(log)
        some = log[np.flatnonzero([labels_of(text, 1)[0] == label for text in texts])]
        one = outcome(lambda some=some: lagging.score(some, [name])[name])
        if one.error is None and not close(one.value.value, score.value):
            raise Difference(
                f"{name} of the group {label!r} is {score.value!r}, and of its segments {one.value.value!r}"
            )


def close(one: float, other: float) -> bool:
    """The same, but for the order of addition."""
    return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


def labels(log: Run) -> None:
    """Two labels are two groups."""
    if log.document is None or log.group is None:
        return
    groups: dict[str, set[str | None]] = {}
    for group, text in zip(log.group.tolist(), log.document.tolist(), strict=True):
        groups.setdefault(group, set()).add(text)
    several = {group: texts for group, texts in groups.items() if len(texts) > 1}
    if several:
        raise Difference(f"labels that fall into one group: {several}")


def on_spark(path: Path, metric: str) -> None:
    """The bytes that Spark's run prints are those of a local one."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    asked = ["score", str(path.resolve()), "--by", "document", "--unit", "token", "-m", metric, "-f", "json", "-q"]
    code, out, _ = run(*asked)
    other, printed, err = run(*asked, "--engine", "spark", "--master", "local[2]")
    agree(f"how the command ended here, and on Spark ({err[-200:]})", code, other)
    agree("what was printed here, and on Spark", out, printed)
