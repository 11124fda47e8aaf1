# SPDX-License-Identifier: Apache-2.0
"""Arrow batches in, Arrow batches out: a row for every row, whatever is in it; tallies that add up."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lagging
from lagging.errors import DataError, MetricError, UsageError
from lagging.scoring.arrow import (
    finish_tallies,
    merge_tallies,
    score_batch,
    scores_schema,
    segment_scores,
    tallies_schema,
    tally_batch,
    totals_schema,
)

METRICS = ["AP", "AL", "LAAL", "DAL"]


def batch(n: int = 50, **changes: Any) -> pa.RecordBatch:
    dice = np.random.default_rng(8)
    lengths = dice.integers(0, 12, n)
    columns = {
        "id": [f"s{i}" for i in range(n)],
        "delays": [np.sort(dice.integers(0, 20, k)).tolist() for k in lengths],
        "source_length": dice.integers(1, 21, n).tolist(),
        "lang": dice.choice(["de", "cs", None], n).tolist(),
        "day": dice.integers(1, 4, n).tolist(),
    }
    return pa.RecordBatch.from_pydict(columns | changes)


def as_run(rows: pa.RecordBatch) -> lagging.Run:
    columns = rows.to_pydict()
    return lagging.Run.from_delays(columns["delays"], source_length=columns["source_length"], id=columns["id"])


# ---- scores of segments -----------------------------------------------------------------------------------------


def test_scores_are_those_of_score_row_by_row():
    rows = batch()
    scored, scores = (
        score_batch(rows, METRICS, unit="token", group_by=["lang", "day"]),
        lagging.score(as_run(rows), METRICS),
    )
    assert scored.schema == scores_schema(METRICS, group_by=["lang", "day"])
    assert scored.column("id").to_pylist() == rows.column("id").to_pylist()
    assert scored.column("lang").to_pylist() == rows.column("lang").to_pylist()
    assert scored.column("day").to_pylist() == [str(day) for day in rows.column("day").to_pylist()]
    for score in scores:
        values = [None if v != v else v for v in score.segments.tolist()]
        assert scored.column(repr(score.metric)).to_pylist() == values
    undefined = [i for i, delays in enumerate(rows.column("delays").to_pylist()) if not delays]
    assert undefined
    for row, row_reasons in enumerate(scored.column("reasons").to_pylist()):
        assert row_reasons == ([(m, "empty hypothesis") for m in METRICS] if row in undefined else None)
    assert set(scored.column("fault").to_pylist()) == {None}


def test_columns_by_other_names():
    rows = batch().rename_columns(["seg", "emission_ms", "len", "lang", "day"])
    named = {"id": "seg", "delays": "emission_ms", "source_length": "len"}
    assert score_batch(rows, METRICS, unit="token", column_map=named).equals(
        score_batch(batch(), METRICS, unit="token")
    )
    with pytest.raises(UsageError, match=r"no column 'delay' .* Did you mean delays\?"):
        score_batch(rows, METRICS, unit="token", column_map={"delay": "emission_ms"})
    with pytest.raises(DataError, match="no `emission`"):
        score_batch(rows, METRICS, unit="token", column_map={**named, "delays": "emission"})


def test_a_column_of_ours_that_is_called_like_another_of_ours():
    rows = batch().rename_columns(["id", "elapsed", "source_length", "lang", "day"])
    scored = score_batch(rows, METRICS, unit="token", column_map={"delays": "elapsed"})
    assert scored.equals(score_batch(batch(), METRICS, unit="token"))


def test_what_is_guessed_of_a_file_must_be_said_of_a_batch():
    with pytest.raises(UsageError, match="the unit of a batch cannot be guessed"):
        score_batch(batch(), METRICS)
    text = batch(unit=["token"] * 50)
    assert score_batch(text, METRICS).equals(score_batch(batch(), METRICS, unit="token"))
    with pytest.raises(DataError, match="no `id`"):
        score_batch(batch().drop_columns(["id"]), METRICS, unit="token")
    with pytest.raises(UsageError, match="unit must be"):
        score_batch(batch(), METRICS, unit="seconds")
    with pytest.raises(UsageError, match="on_error is"):
        score_batch(batch(), METRICS, unit="token", on_error="ignore")


def test_an_empty_batch():
    nothing = batch().slice(0, 0)
    assert score_batch(nothing, METRICS, group_by=["lang"]).equals(
        pa.RecordBatch.from_pylist([], schema=scores_schema(METRICS, group_by=["lang"]))
    )
    assert tally_batch(nothing, METRICS, group_by=["lang"]).equals(
        pa.RecordBatch.from_pylist([], schema=tallies_schema(group_by=["lang"]))
    )


FAULTY = {
    2: ([4, 3], 5.0, "s2", "delays decrease: 4 → 3 (token 2)"),
    4: (None, 5.0, "s4", "no `delays`"),
    5: ([1, 2], None, "s5", "no `source_length`"),
    7: ([1, 2], 5.0, "s1", "the index was used before: line 2"),
    9: ([1, 2], 5.0, None, "no `index`"),
    11: ([1, float("nan")], 5.0, "s11", "not a finite number: NaN (token 2)"),
    12: ([1, None], 5.0, "s12", "a delay is not a number: delays null (token 2)"),
}


def broken() -> pa.RecordBatch:
    columns = batch().to_pydict()
    for row, (delays, length, name, _) in FAULTY.items():
        columns["delays"][row], columns["source_length"][row], columns["id"][row] = delays, length, name
    return pa.RecordBatch.from_pydict(columns)


def test_all_faults_at_once_with_row_segment_and_token():
    with pytest.raises(DataError) as error:
        score_batch(broken(), METRICS, unit="token")
    assert [fault.line for fault in error.value.faults] == [row + 1 for row in FAULTY]
    assert {fault.path for fault in error.value.faults} == {"<batch>"}


def test_in_quarantine_every_row_is_there_once_and_the_good_ones_are_as_alone():
    rows = broken()
    scored = score_batch(rows, METRICS, unit="token", group_by=["lang"], on_error="quarantine")
    assert scored.num_rows == rows.num_rows
    faults = {row: text for row, text in enumerate(scored.column("fault").to_pylist()) if text is not None}
    assert faults.keys() == FAULTY.keys()
    for row, text in faults.items():
        assert text.endswith(FAULTY[row][3].partition(": ")[2]), (row, text)
        assert scored.column("id")[row].as_py() == FAULTY[row][2]
        assert scored.column("lang")[row].as_py() == rows.column("lang")[row].as_py()
        assert all(scored.column(m)[row].as_py() is None for m in METRICS)
    good = [row for row in range(rows.num_rows) if row not in FAULTY]
    alone = score_batch(rows.take(pa.array(good)), METRICS, unit="token", group_by=["lang"])
    assert scored.take(pa.array(good)).equals(alone)


def test_ids_twice_in_a_batch_of_several_parts(monkeypatch):
    monkeypatch.setattr("lagging.formats.segment_rows.SEGMENTS_PER_PART", 8)
    rows = batch(id=[f"s{i % 45}" for i in range(50)])
    with pytest.raises(DataError) as error:
        score_batch(rows, METRICS, unit="token")
    assert [(fault.line, fault.segment) for fault in error.value.faults] == [(46 + i, f"s{i}") for i in range(5)]
    scored = score_batch(rows, METRICS, unit="token", on_error="quarantine")
    assert [row for row, text in enumerate(scored.column("fault").to_pylist()) if text] == [45, 46, 47, 48, 49]


def test_a_batch_without_what_a_log_must_have_is_refused_in_quarantine_too():
    with pytest.raises(DataError, match="no `delays`"):
        score_batch(batch().drop_columns(["delays"]), METRICS, unit="token", on_error="quarantine")


def test_lists_are_not_copied(monkeypatch):
    from lagging.data.ragged import Ragged

    values = pa.array(np.arange(6.0))
    delays = pa.ListArray.from_arrays(pa.array([0, 2, 4, 6], pa.int32()), values)
    rows = pa.RecordBatch.from_arrays(
        [pa.array(["a", "b", "c"]), delays, pa.array([9.0] * 3)], names=["id", "delays", "source_length"]
    )
    seen: list[Any] = []
    from_lengths = Ragged.from_lengths.__func__
    monkeypatch.setattr(
        Ragged, "from_lengths", classmethod(lambda cls, v, n: seen.append(np.asarray(v)) or from_lengths(cls, v, n))
    )
    score_batch(rows, ["DAL"], unit="token")
    assert np.shares_memory(seen[0], values.to_numpy())


def test_segment_scores_of_scores():
    rows = batch()
    scores = lagging.score(as_run(rows), METRICS)
    scored = segment_scores(scores, metrics=["DAL", "CW"], labels={"lang": rows.column("lang").to_pylist()}, system="x")
    assert scored.schema.names == ["system", "id", "lang", "DAL", "CW", "reasons"]
    assert scored.column("DAL").equals(score_batch(rows, ["DAL"], unit="token").column("DAL"))
    assert scored.column("CW").null_count == 50


# ---- tallies ----------------------------------------------------------------------------------------------------


def finished(batches: list[pa.RecordBatch], by: list[str], **options: Any) -> pa.RecordBatch:
    tallied = [tally_batch(rows, METRICS, unit="token", group_by=by, **options) for rows in batches]
    return finish_tallies(merge_tallies(tallied, group_by=by), group_by=by)


@pytest.mark.parametrize("by", [[], ["lang"], ["lang", "day"]])
def test_any_parting_of_batches_gives_the_same(by):
    rows = batch(200)
    whole = finished([rows], by)
    assert whole.schema == totals_schema(group_by=by)
    dice = np.random.default_rng(1)
    for parts in (2, 7, 50):
        mixed = rows.take(pa.array(dice.permutation(200)))
        cuts = [0, *sorted(dice.choice(np.arange(1, 200), parts - 1, replace=False).tolist()), 200]
        pieces = [mixed.slice(a, b - a) for a, b in pairwise(cuts)]
        assert finished(pieces, by).equals(whole)
        steps = [tally_batch(piece, METRICS, unit="token", group_by=by) for piece in pieces]
        half = len(steps) // 2
        tree = merge_tallies(
            [merge_tallies(steps[half:], group_by=by), merge_tallies(steps[:half], group_by=by)], group_by=by
        )
        assert finish_tallies(tree, group_by=by).equals(whole)


def test_totals_are_those_of_score():
    rows = batch(200)
    scores = lagging.score(as_run(rows), METRICS)
    for row in finished([rows.slice(0, 70), rows.slice(70)], []).to_pylist():
        score = scores[row["metric"]]
        assert row["score"] == score.value
        assert (row["n"], row["undefined"], row["unit"]) == (200, int(score.undefined), score.unit)
        assert row["reasons"] == [("empty hypothesis", int(score.undefined))]
        assert row["low"] < row["score"] < row["high"]
        assert f"method:poisson|bs:1000|seed:12345|n:{200 - score.undefined}|" in row["signature"]
        assert row["least"] <= row["p50"] <= row["p90"] <= row["p95"] <= row["p99"] <= row["most"]


def test_groups_are_scored_as_if_alone():
    rows = batch(200)
    scored = {(row["lang"], row["metric"]): row for row in finished([rows], ["lang"]).to_pylist()}
    assert {lang for lang, _ in scored} == {None, "de", "cs"}
    for lang in (None, "de", "cs"):
        mine = [i for i, name in enumerate(rows.column("lang").to_pylist()) if name == lang]
        for score in lagging.score(as_run(rows.take(pa.array(mine))), METRICS):
            assert scored[lang, repr(score.metric)]["score"] == score.value
            assert scored[lang, repr(score.metric)]["n"] == len(mine)


def test_rows_with_faults_are_not_tallied():
    rows = broken()
    good = rows.take(pa.array([row for row in range(50) if row not in FAULTY]))
    assert finished([rows], ["lang"], on_error="quarantine").equals(finished([good], ["lang"]))
    with pytest.raises(DataError):
        tally_batch(rows, METRICS, unit="token")


def test_without_intervals():
    rows = finish_tallies(merge_tallies([tally_batch(batch(), METRICS, unit="token", seed=None)]))
    assert set(rows.column("low").to_pylist()) == {None}
    assert "ci:" not in rows.column("signature")[0].as_py()


def test_metrics_that_cannot_be_tallied():
    with pytest.raises(MetricError, match="LagPercentile cannot be tallied"):
        tally_batch(batch(), ["LagPercentile"], unit="token")
    assert score_batch(batch(), ["LagPercentile"], unit="token").num_rows == 50


def test_reading_json_does_not_load_pyarrow(tmp_path):
    log = tmp_path / "a.jsonl"
    log.write_text('{"delays": [1, 2], "source_length": 2, "lang": "de"}\n')
    code = (
        "import sys; from lagging.cli import main\n"
        f"try: main(['score', {str(log)!r}, '--by', 'lang'])\n"
        "except SystemExit: pass\n"
        "print('pyarrow' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines()[-1] == "False"


def test_what_comes_late_in_a_batch_is_there_as_if_it_had_come_early() -> None:
    count = 20_000  # more than are looked at of a file before it is settled what it is
    rows = {
        "id": list(range(count)),
        "delays": [[500.0, 1000.0]] * count,
        "source_length": [1000.0] * count,
        "document": [None] * (count - 1) + ["talk"],
        "elapsed": [[]] * (count - 1) + [[600.0, 1100.0]],
    }
    batch = pa.RecordBatch.from_pydict(rows)
    early, late = (
        score_batch(chosen, ["DAL", "DAL(clock=elapsed)"], unit="ms", on_error="quarantine").to_pylist()
        for chosen in (batch.take(pa.array(range(count)[::-1])), batch)
    )
    assert early == late[::-1]
    assert late[-1]["DAL(clock=elapsed)"] == 600
