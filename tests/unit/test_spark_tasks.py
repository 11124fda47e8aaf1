# SPDX-License-Identifier: Apache-2.0
"""What Spark's executors do, without Spark: partitions are lists of batches, and a shuffle is a sort by key.

`tests/spark` does the same with real executors.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pytest

from lagging.formats import ReadOptions
from lagging.formats.source import Source
from lagging.formats.tables import labels_of
from lagging.metrics import metric
from lagging.scoring.arrow import finish_tallies, read_batch, tally_batch, total_row
from lagging.scoring.plan import Plan, default_metrics
from lagging.scoring.poisson import SEED
from lagging.scoring.spark import tasks
from lagging.scoring.spark.batches import ADDED, Places, Task, plain_path
from lagging.scoring.spark.files import _path_forms

pa = pytest.importorskip("pyarrow")

PLAN = Plan.make(["AL", "DAL", "BLEU"], group_by=["lang"], seed=SEED)
TASK = Task(PLAN, ReadOptions(unit="token", level="word", group_by=("lang",)), buckets=3)


def rows(number: int, seed: int = 1) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    out: list[dict[str, Any]] = []
    for at in range(number):
        source, target = rng.randint(1, 12), rng.randint(0, 6)
        text = " ".join(rng.choices(["ja", "nein", "gut", "."], k=target))
        delays = sorted(rng.uniform(0, source) for _ in range(target))
        lang = rng.choice(["de", "cs", None])
        place = (f"file:/lake/{at % 3}%20.parquet", at // 3, at * 0x9E3779B97F4A7C15 % 2**63)
        out.append(
            {"id": f"s{at}", "delays": delays, "source_length": float(source), "prediction": text, "lang": lang}
            | {"reference": "ja gut .", **dict(zip(ADDED, place, strict=True))}
        )
    return out


def batch(segments: list[dict[str, Any]]) -> Any:
    kinds = {"id": pa.string(), "delays": pa.list_(pa.float64()), "source_length": pa.float64()}
    kinds |= {"prediction": pa.string(), "lang": pa.string(), "reference": pa.string()}
    kinds |= {ADDED[0]: pa.string(), ADDED[1]: pa.int64(), ADDED[2]: pa.int64()}
    more = {name: pa.string() for name in segments[0] if name not in kinds} if segments else {}
    return pa.RecordBatch.from_pylist(segments, schema=pa.schema([*kinds.items(), *more.items()]))


def shuffled(task: Task, segments: list[dict[str, Any]], seed: int) -> dict[str, list[tuple[str, bytes]]]:
    """What comes back from partitions and batches of any sizes."""
    rng = random.Random(seed)
    segments = rng.sample(segments, len(segments))
    cuts = sorted({0, *(rng.randrange(len(segments) + 1) for _ in range(4)), len(segments)})
    parts = [segments[low:high] for low, high in pairwise(cuts)] or [segments]
    answered: list[dict[str, Any]] = []
    for part in parts:
        middle = rng.randrange(len(part) + 1)
        batches = [batch(part[:middle]), batch(part[middle:])] if part else []
        answered += chain.from_iterable(b.to_pylist() for b in tasks.tally_partition(task, batches))
    rng.shuffle(answered)
    keys = sorted({(row["kind"], row["key"]) for row in answered})
    reducers: list[list[Any]] = [[], []]
    for row in answered:
        reducers[keys.index((row["kind"], row["key"])) % 2].append(row)
    schema = pa.schema([("kind", pa.string()), ("key", pa.string()), ("data", pa.binary())])

    def merged() -> Iterator[dict[str, Any]]:
        for part in reducers:
            halves = [pa.RecordBatch.from_pylist(half, schema=schema) for half in (part[::2], part[1::2])]
            yield from chain.from_iterable(b.to_pylist() for b in tasks.merge_partitions(task, halves))

    out: dict[str, list[tuple[str, bytes]]] = {}
    for row in merged():
        out.setdefault(row["kind"], []).append((row["key"], row["data"]))
    return out


@pytest.mark.parametrize("seed", range(8))
def test_any_partitions_give_the_scores_of_one_batch(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lagging.scoring.spark.batches.BATCH_ROWS", 10 if seed % 2 else 1000)
    segments = rows(100)
    plain = batch(segments).select(["id", "delays", "source_length", "prediction", "reference", "lang"])
    whole = tally_batch(plain, PLAN.metrics or (), group_by=["lang"], unit="token", level="word")
    totals = {(row["lang"], row["metric"]): row for row in finish_tallies(whole, group_by=["lang"]).to_pylist()}
    answers = shuffled(TASK, segments, seed)
    assert set(answers) == {"score", "notes"}
    assert len(answers["score"]) == len(totals) == 9
    for key, data in answers["score"]:
        tally, interval = tasks.decode_score(data)
        lang, name = labels_of(key, 2)
        total, expected = total_row(tally.score(interval), {"lang": lang}), totals[lang, name]
        assert {**total, "reasons": dict(total["reasons"])} == {**expected, "reasons": dict(expected["reasons"])}
        assert (tally.metric, tally.value, tally.bucket_sums) == (metric(total["metric"]), total["score"], None)
    assert all(tasks.decode_notes(data)[1] for _, data in answers["notes"] if tasks.decode_notes(data)[0])


@pytest.mark.parametrize("seed", range(8))
def test_ids_that_occur_twice_are_found_wherever_they_are(seed: int) -> None:
    segments = rows(60)
    for copy, original in ((50, 3), (51, 3), (52, 9)):
        segments[copy] |= {"id": segments[original]["id"], ADDED[2]: segments[original][ADDED[2]]}
    answers = shuffled(TASK, segments, seed)
    twice = frozenset(chain.from_iterable(np.frombuffer(data, "<i8").tolist() for _, data in answers["twice"]))
    assert twice == {segments[3][ADDED[2]], segments[9][ADDED[2]]}
    places = [row for b in tasks.locate_ids(TASK, twice, [batch(segments)]) for row in b.to_pylist()]
    assert sorted((row["id"], row["file"], row["row"]) for row in places) == sorted(
        (segments[at]["id"], f"/lake/{at % 3} .parquet", at // 3 + 1) for at in (3, 9, 50, 51, 52)
    )


def test_rows_that_are_skipped_have_a_fault() -> None:
    segments = rows(9)
    skip = {("/lake/1 .parquet", 2): ("/lake/1 .parquet", 1), ("/lake/2 .parquet", 1): ("/lake/0 .parquet", 3)}
    task = replace(TASK, skip=skip)
    answers = [row for b in tasks.list_faults(task, [batch(segments)]) for row in b.to_pylist()]
    assert [(row["file"], row["row"], row["id"], row["kind"], row["detail"]) for row in answers] == [
        ("/lake/2 .parquet", 1, "s2", "id-in-two-files", "first at /lake/0 .parquet:3"),
        ("/lake/1 .parquet", 2, "s4", "duplicate-id", "first at /lake/1 .parquet:1"),
    ]
    scored = [row for b in tasks.score_segments(task, [batch(segments)]) for row in b.to_pylist()]
    assert sorted(row["id"] for row in scored) == [f"s{at}" for at in range(9)]
    assert {row["id"] for row in scored if row["fault"] is not None} == {"s2", "s4"}
    assert all((row["AL"] is None) for row in scored if row["fault"] is not None)


def test_faults_have_places_and_are_counted_beyond_those_that_are_kept() -> None:
    segments = rows(2500)
    for row in segments[:2400]:
        row["delays"] = [2.0, 1.0]
        row["prediction"] = "ja ja"
    answers = [
        row for b in tasks.tally_partition(TASK, [batch(segments)]) for row in b.to_pylist() if row["kind"] == "faults"
    ]
    faults, counts = tasks.decode_faults(answers[0]["data"])
    assert (len(faults), counts) == (1000, {"decreasing-delays": 2400})
    assert (faults[4].path, faults[4].line, faults[4].segment, faults[4].token) == ("/lake/1 .parquet", 2, "s4", 2)


def test_rows_that_say_otherwise_than_the_first() -> None:
    segments = [{**row, "unit": "token"} for row in rows(5)]
    segments[3]["unit"], segments[4]["unit"] = "ms", None
    log = Source("log", None)
    first = batch(segments[:3]).drop_columns(list(ADDED))
    read_batch(first, replace(TASK.options, unit=None), log=log)
    task = replace(TASK, options=replace(TASK.options, unit=None), schema=log.schema)
    answers = [row for b in tasks.list_faults(task, [batch(segments)]) for row in b.to_pylist()]
    assert [(row["id"], row["kind"], row["detail"]) for row in answers] == [("s3", "mixed-unit", "ms, not token")]


def test_the_first_segment_tells_what_a_log_is() -> None:
    segments = rows(6)
    for row in segments[:3]:
        row["source_length"] = None
    task = replace(TASK, options=replace(TASK.options, level=None))
    (valid,) = tasks.select_valid(task, [batch([]), batch(segments[:3]), batch(segments[3:])])
    places = Places(valid, {})
    (run,), _ = read_batch(places.log, task.options)
    assert (*places[0], run.unit, run.level) == ("/lake/0 .parquet", 2, "token", "word")
    assert default_metrics(run) == ("AP", "AL", "LAAL", "DAL", "BLEU")
    assert list(tasks.select_valid(task, [batch(segments[:3])])) == []


def test_what_is_wrong_with_the_question_comes_back_as_an_answer() -> None:
    task = replace(TASK, options=replace(TASK.options, unit=None))
    (answer,) = (row for b in tasks.tally_partition(task, [batch(rows(3))]) for row in b.to_pylist())
    assert answer["kind"] == "error"
    assert b"unit" in answer["data"]


def test_without_a_look_at_ids_those_of_a_batch_are_told_all_the_same() -> None:
    segments = rows(4)
    segments[3]["id"] = segments[0]["id"]
    task = replace(TASK, buckets=0)
    answers = [row for b in tasks.tally_partition(task, [batch(segments)]) for row in b.to_pylist()]
    assert "ids" not in {row["kind"] for row in answers}
    (first_answer,) = (row["data"] for row in answers if row["kind"] == "faults")
    assert [fault.kind for fault in tasks.decode_faults(first_answer)[0]] == ["duplicate-id"]


def test_paths_as_people_and_as_spark_write_them() -> None:
    assert "file:///lake/a%20b%25.parquet" in _path_forms("file:/lake/a b%.parquet")
    assert _path_forms("s3a://lake/ä b") == {"s3a://lake/ä b", "s3a://lake/ä%20b"}
    assert plain_path("s3a://lake/a%20b") == "s3a://lake/a b"


def test_a_batch_is_read_by_the_schema_of_the_log() -> None:
    """What a batch would show by itself does not count: a text like the name of a sound file, texts that are absent."""
    segments = rows(4)
    for row, text in zip(segments, ("ja gut", "play b", "play.wav", None), strict=True):
        row |= {"prediction": text, "delays": [1.0] * len((text or "ja").split()), "source_length": 1.0}
    log = Source("log", None)
    read_batch(batch(segments[:2]).drop_columns(list(ADDED)), TASK.options, log=log)
    task = replace(TASK, schema=log.schema, given=(("x", "talk.yaml"),))
    assert [len(task.read(batch([row])).runs) for row in segments] == [1, 1, 1, 0]
    ((run,),) = (task.read(batch(segments[2:3])).runs,)
    assert (run.speech_out, run.level, run.prediction.tolist()) == (False, "word", ["play.wav"])
    assert run.given == task.given
    faults = task.read(batch(segments[3:])).faults
    assert [fault.kind for fault in faults[0]] == ["missing-prediction"]
    late = {**segments[0], "document": "talk 1"}
    assert task.schema is not None
    assert "document" in task.schema.absent
    (run,) = task.read(batch([late])).runs
    assert run.document.tolist() == ["talk 1"]
    timed = batch(segments[:1]).append_column("elapsed", pa.array([[1.0] * len(segments[0]["delays"])]))
    (run,) = task.read(timed).runs
    assert run.elapsed is None
    assert [note.text for note in run.notes if note.kind == "column left out"] == [
        "elapsed: not in the first 1000 rows"
    ]
