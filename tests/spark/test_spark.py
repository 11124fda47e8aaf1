# SPDX-License-Identifier: Apache-2.0
"""Real PySpark, with several executors: the numbers must be those of `lagging score --by` on this machine."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import lagging
from lagging.cli import cli
from lagging.errors import DataError, LaggingError, MetricError, UsageError
from lagging.scoring.spark import score, score_files
from lagging.scoring.spark.scored import explain_errors

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

METRICS = ["AL", "DAL", "AL(length=reference)", "CW"]


def segments(first: int, last: int, seed: int = 1) -> list[dict[str, Any]]:
    rng = random.Random(seed * 10_000 + first)
    rows = []
    for number in range(first, last):
        source, target = rng.randint(1, 12), rng.randint(0, 9)
        delays = sorted(rng.uniform(0.1, source) for _ in range(target))
        words = ["w"] * target
        lang = rng.choice(["de", "cs", None])
        rows.append(
            {"id": f"s{number}", "delays": delays, "source_length": float(source), "prediction": " ".join(words)}
            | {"reference_length": float(rng.randint(1, 9)), "lang": lang, "model": number % 2, "unit": "token"}
        )
    return rows


SCHEMA = [("id", "string"), ("delays", "list"), ("source_length", "double"), ("prediction", "string")]
SCHEMA += [("reference_length", "double"), ("lang", "string"), ("model", "int64"), ("unit", "string")]


def write(path: Path, rows: list[dict[str, Any]], **options: Any) -> None:
    types = [(n, pa.list_(pa.float64()) if kind == "list" else pa.type_for_alias(kind)) for n, kind in SCHEMA]
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(types)), path, **{"row_group_size": 64, **options})


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    for part in range(3):
        write(folder / f"part {part}.parquet", segments(200 * part, 200 * part + 200))
    return folder


def run(*arguments: str | Path, code: int = 0) -> dict[str, Any]:
    result = CliRunner().invoke(cli, ["score", *map(str, arguments), "-f", "json", "-q"])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout) if code == 0 else {"error": result.stderr}


def sorted_rows(rows: Any) -> list[dict[str, Any]]:
    return sorted((row.asDict() for row in rows.collect()), key=lambda row: str(sorted(row.items(), key=str)))


# ---- the same numbers -------------------------------------------------------------------------------------------


def test_the_command_line_prints_the_bytes_of_a_local_run(spark: Any, lake: Path) -> None:
    request = [str(lake / "*.parquet"), "-m", ",".join(METRICS), "--by", "lang,model", "--ci"]
    local, remote = run(*request), run(*request, "--engine", "spark")
    assert remote == local
    assert len(local["scores"]) == 6 * len(METRICS)
    assert {one["group"]["lang"] for one in local["scores"]} == {"de", "cs", None}
    assert all("method:poisson" in one["signature"] for one in local["scores"])
    assert all(one["low"] < one["score"] < one["high"] for one in local["scores"])


def test_a_metric_that_cannot_be_computed_is_undefined_as_in_a_local_run(spark: Any, lake: Path) -> None:
    request = [str(lake / "*.parquet"), "-m", "AL,AL_CA,RTF", "--by", "lang", "--ci"]
    local, remote = run(*request), run(*request, "--engine", "spark")
    assert remote == local
    assert {one["metric"] for one in local["scores"] if one["score"] is None} == {"AL(clock=elapsed)", "RTF"}
    with pytest.raises(UsageError, match="elapsed time in milliseconds"):
        score(spark.read.parquet(str(lake)), ["AL_CA"])


def test_without_groups_and_metrics_named(spark: Any, lake: Path) -> None:
    path = lake / "*.parquet"
    local, remote = run(path), run(path, "--engine", "spark")
    assert [one["metric"] for one in remote["scores"]] == ["AP", "AL", "LAAL", "DAL"]
    for here, there in zip(local["scores"], remote["scores"], strict=True):
        assert there["score"] == pytest.approx(here["score"], rel=1e-12)
        assert {**there, "score": here["score"]} == here


def test_any_partitioning_gives_the_same(spark: Any, lake: Path) -> None:
    df = spark.read.parquet(str(lake))
    results = [score(df, METRICS, group_by=["lang"]) for df in (df, df.repartition(5), df.coalesce(1).orderBy("model"))]
    first, *others = (sorted_rows(result.totals) for result in results)
    assert all(other == first for other in others)
    whole = lagging.read(str(lake / "*.parquet"))
    exact = lagging.score(whole, METRICS)
    for name in METRICS:
        means = [row for row in first if row["metric"] == name]
        assert sum(row["n"] for row in means) == len(whole)
        assert sum(row["undefined"] for row in means) == exact[name].undefined
        defined = [(row["score"], row["n"] - row["undefined"]) for row in means]
        pooled = sum(value * n for value, n in defined) / sum(n for _, n in defined)
        assert pooled == pytest.approx(exact[name].value, rel=1e-12)


def test_segments_have_their_local_scores(spark: Any, lake: Path) -> None:
    result = score(spark.read.parquet(str(lake)), METRICS, group_by="lang", seed=None)
    segments, totals = result
    assert totals.filter("low is not null").count() == 0
    exact = lagging.score(lagging.read(str(lake / "*.parquet")), METRICS)
    values = {name: dict(zip(exact[name].ids.tolist(), exact[name].segments.tolist(), strict=True)) for name in METRICS}
    rows = segments.collect()
    assert sorted(row["id"] for row in rows) == sorted(exact["AL"].ids.tolist())
    for row in rows:
        for name in METRICS:
            value = values[name][row["id"]]
            assert row[name] == value or (row[name] is None and math.isnan(value))
            assert math.isnan(value) == (name in (row["reasons"] or {}))
    assert all(row["fault"] is None for row in rows)
    assert result.quarantine.count() == 0


def test_columns_by_other_names(spark: Any, lake: Path, tmp_path: Path) -> None:
    df = spark.read.parquet(str(lake)).withColumnRenamed("delays", "emission ms").drop("unit")
    names = {"delays": "emission ms"}
    guessed = score(df, ["AL"], column_map=names, seed=None)
    assert "delays in source tokens (guessed from the numbers; --unit ms if not)" in guessed.description
    scored = score(df, ["AL"], column_map=names, unit="token", seed=None)
    for result in (guessed, scored):
        assert result.scores[0]["AL"].value == run(lake / "*.parquet", "-m", "AL")["scores"][0]["score"]


def printed(*arguments: str | Path) -> tuple[dict[str, Any], str]:
    """What `lagging score` prints: its scores, and its messages."""
    result = CliRunner().invoke(cli, ["score", *map(str, arguments), "-f", "json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout), result.stderr


def test_the_unit_is_guessed_and_announced_as_in_a_local_run(spark: Any, tmp_path: Path) -> None:
    tokens, ms = segments(0, 60), segments(60, 120)
    for row in tokens:
        row |= {"delays": [math.floor(delay) for delay in row["delays"]], "unit": None}
    for row in ms:
        row |= {"delays": [1000.0 * delay for delay in row["delays"]], "unit": None}
        row["source_length"] = 1000.0 * row["source_length"] + 0.5
    for name, rows, unit in (("tokens", tokens, "source tokens"), ("ms", ms, "ms")):
        write(tmp_path / f"{name}.parquet", rows)
        request = [tmp_path / f"{name}.parquet", "--by", "lang", "-m", "AL,DAL"]
        (local, messages), (remote, announced) = printed(*request), printed(*request, "--engine", "spark")
        assert remote == local
        assert announced == messages
        assert f"delays in {unit} (guessed from the numbers; --unit" in messages


def test_read_options_work_as_in_a_local_run(spark: Any, tmp_path: Path) -> None:
    rows = segments(0, 40)
    for row in rows[:30]:
        row |= {"prediction": "[laughter] w , w", "delays": [1.0, 2.0, 3.0, 3.0], "source_length": 4.0}
    rows[3]["delays"], rows[4]["delays"] = [2.0, 1.0, 3.0, 3.0], [-1.0, 1.0, 2.0, 2.0]
    rows[5]["unit"] = None
    write(tmp_path / "a.parquet", rows)
    repairs = ["--repair", "monotone", "--repair", "clip", "--repair", "torn"]
    request = [
        tmp_path / "a.parquet",
        *repairs,
        "--strip",
        "tags,punctuation",
        "--convention",
        "simuleval",
        "--by",
        "model",
    ]
    (local, messages), (remote, same) = printed(*request), printed(*request, "--engine", "spark")
    assert remote == local
    assert same.splitlines() == messages.splitlines()
    signature = local["scores"][0]["signature"]
    assert "repair:clip+monotone|strip:punctuation+tags" in signature
    repeated = [tmp_path / "a.parquet", "--by", "model", "--like", signature]
    assert printed(*repeated, "--engine", "spark") == printed(*repeated)


def test_what_was_repaired_before_is_in_the_signature(spark: Any, tmp_path: Path) -> None:
    for number, repair in enumerate([(), ("clip",)]):
        ids = [f"{number}-{row}" for row in range(3)]
        lines = [{"id": name, "delays": [-1 if repair else 1, 2], "source_length": 4} for name in ids]
        (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        lagging.write(lagging.read(tmp_path / "log.jsonl", repair=repair), tmp_path / f"{number}.parquet")
    local, remote = (
        run(tmp_path / "*.parquet", "--by", "id", "-m", "AL", *more) for more in ((), ("--engine", "spark"))
    )
    assert remote == local
    assert "repair:clip" in local["scores"][-1]["signature"]


def test_connect_gives_the_same(spark: Any, lake: Path, port: int, tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    request = ["score", str(lake / "*.parquet"), "-m", "AL,DAL", "--by", "lang", "--ci", "-f", "json", "-q"]
    there = ["--engine", "spark", "--master", f"sc://127.0.0.1:{port}", "--segment-scores", str(tmp_path / "segments")]
    remote = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "lagging", *request, *there], capture_output=True, text=True, check=False
    )
    assert remote.returncode == 0, remote.stderr
    assert json.loads(remote.stdout) == run(*request[1:-3])
    assert pq.read_table(tmp_path / "segments").num_rows == 600


# ---- soundness --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with every sort of fault: in a row, between rows, between files."""
    folder = tmp_path_factory.mktemp("poisoned")
    rows = [segments(100 * part, 100 * part + 100, 2) for part in range(4)]
    rows[0][7]["delays"] = [3.0, 1.0]
    rows[0][7]["prediction"] = "w w"
    rows[1][3]["source_length"] = None
    rows[1][90]["id"] = rows[1][80]["id"]  # in one file
    rows[2][50]["unit"] = "ms"
    rows[3][10]["id"] = rows[0][20]["id"]  # in two
    rows[3][11]["id"] = rows[0][7]["id"]  # of a row that has a fault itself
    for part, part_rows in enumerate(rows):
        write(folder / f"part-{part}.parquet", part_rows)
    return folder


def test_every_fault_is_told_with_file_and_row(spark: Any, poisoned: Path) -> None:
    with pytest.raises(DataError) as caught:
        score(spark.read.parquet(str(poisoned)), ["AL"])
    places = {(Path(f.path or "").name, f.line, f.kind, f.segment) for f in caught.value.faults}
    assert places == {
        ("part-0.parquet", 8, "decreasing-delays", "s7"),
        ("part-1.parquet", 4, "missing-source-length", "s103"),
        ("part-1.parquet", 91, "duplicate-id", "s180"),
        ("part-2.parquet", 51, "mixed-unit", "s250"),
        ("part-3.parquet", 11, "id-in-two-files", "s20"),
    }


def test_quarantine_is_that_of_a_local_run(spark: Any, poisoned: Path, tmp_path: Path) -> None:
    request = [
        poisoned / "*.parquet",
        "-m",
        "AL,DAL",
        "--by",
        "lang",
        "--ci",
        "--on-error",
        "quarantine",
        "--quarantine",
    ]
    here, there = tmp_path / "here.tsv", tmp_path / "there.tsv"
    local, remote = run(*request, here), run(*request, there, "--engine", "spark")
    assert remote["scores"] == local["scores"]
    assert remote["quarantine"]["kinds"] == local["quarantine"]["kinds"]
    tables = [sorted(line.split("\t")[:4] for line in table.read_text().splitlines()) for table in (here, there)]
    assert tables[0] == tables[1]
    scored = score(spark.read.parquet(str(poisoned)), ["AL"], on_error="quarantine")
    assert scored.kinds == local["quarantine"]["kinds"]
    rows = scored.segments.collect()
    aside = scored.quarantine.collect()
    assert len(rows) == 400
    assert scored.scores[0]["AL"].n + len(aside) == 400
    assert {row["id"] for row in aside} == {row["id"] for row in rows if row["fault"] is not None}
    assert [row["row"] for row in aside if row["kind"] == "mixed-unit"] == [51]


def test_duplicates_of_rows_without_a_place(spark: Any, lake: Path) -> None:
    df = spark.read.parquet(str(lake))
    both = df.unionByName(df.filter("id = 's17'")).repartition(4)
    for mode in ("fail", "quarantine"):
        with pytest.raises(DataError, match="s17"):
            score(both, ["AL"], on_error=mode)
    assert score(both, ["AL"], check_ids=False, seed=None).scores[0]["AL"].n == 601


def test_a_file_that_breaks_off(spark: Any, lake: Path, tmp_path: Path) -> None:
    for file in lake.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    cut = tmp_path / "part 0.parquet"
    cut.write_bytes(cut.read_bytes()[:3000])
    with pytest.raises(DataError) as caught:
        score_files(spark, str(tmp_path), ["AL"])
    assert [(f.kind, f.path) for f in caught.value.faults] == [("not-arrow", str(cut))]
    scored = score_files(spark, str(tmp_path), ["AL"], on_error="quarantine", seed=None)
    assert scored.scores[0]["AL"].n == 400
    assert [(row["file"], row["kind"]) for row in scored.quarantine.collect()] == [(str(cut), "not-arrow")]
    assert dict(scored.kinds) == {"not-arrow": 1}


def test_a_file_that_is_damaged_in_the_middle(spark: Any, tmp_path: Path) -> None:
    for part in range(2):
        write(tmp_path / f"{part}.parquet", segments(100 * part, 100 * part + 100), write_page_checksum=True)
    broken = tmp_path / "1.parquet"
    column = pq.ParquetFile(broken).metadata.row_group(0).column(1)
    data = bytearray(broken.read_bytes())
    data[column.data_page_offset + column.total_compressed_size // 2] ^= 0xFF
    broken.write_bytes(bytes(data))
    with pytest.raises(DataError) as caught:
        score_files(spark, str(tmp_path), ["AL"])
    assert [(f.kind, f.path) for f in caught.value.faults] == [("not-arrow", str(broken))]
    scored = score_files(spark, str(tmp_path), ["AL"], on_error="quarantine", seed=None)
    assert scored.scores[0]["AL"].n == 100
    assert [(row["file"], row["kind"]) for row in scored.quarantine.collect()] == [(str(broken), "not-arrow")]
    with pytest.raises(LaggingError, match=r"^Spark cannot read file://\S+: .") as refused:
        score_files(spark, tmp_path.as_uri(), ["AL"], on_error="quarantine")
    assert "\n" not in str(refused.value)
    with pytest.raises(UsageError, match=r"^Spark cannot read \S+nowhere.parquet: .*PATH_NOT_FOUND"):
        score_files(spark, str(tmp_path / "nowhere.parquet"), ["AL"])


def test_files_with_other_columns(spark: Any, tmp_path: Path) -> None:
    """Spark takes the columns of one file for those of all, unless it is told otherwise."""
    plain = [{key: row[key] for key in ("id", "delays", "source_length", "unit")} for row in segments(0, 20)]
    texts = [{**row, "id": f"t{row['id']}", "prediction": "w " * len(row["delays"])} for row in plain]
    for name, rows in (("a", plain), ("b", texts)):
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{name}.parquet")
    with pytest.raises(DataError) as caught:
        score_files(spark, str(tmp_path), ["AL"])
    assert [(f.kind, f.path) for f in caught.value.faults] == [("missing-prediction", str(tmp_path / "b.parquet"))]
    more = [{**row, "id": f"r{row['id']}", "reference_length": 3.0} for row in plain]
    pq.write_table(pa.Table.from_pylist(more), tmp_path / "b.parquet")
    request = [tmp_path / "*.parquet", "-m", "AL(length=reference)", "--by", "unit"]
    assert run(*request, "--engine", "spark") == run(*request)
    other = pa.Table.from_pylist(plain).set_column(2, "source_length", pa.array(["x"] * 20))
    pq.write_table(other, tmp_path / "b.parquet")
    with pytest.raises(LaggingError, match=r"CANNOT_MERGE_SCHEMAS.*Failed merging schemas: ."):
        score_files(spark, str(tmp_path), ["AL"])


def test_units_in_the_metadata_of_files(spark: Any, tmp_path: Path) -> None:
    for number, unit in enumerate(["token", "ms", "token"]):
        ids = [f"{number}-{row}" for row in range(3)]
        log = lagging.Run.from_delays([[1, 2]] * 3, source_length=[4] * 3, unit=unit, id=ids)
        lagging.write(log, tmp_path / f"{number}.parquet")
    with pytest.raises(DataError) as caught:
        score_files(spark, str(tmp_path), ["AL"])
    assert [(f.kind, f.path) for f in caught.value.faults] == [("mixed-unit", str(tmp_path / "1.parquet"))]
    scored = score_files(spark, str(tmp_path), ["AL"], on_error="quarantine", seed=None)
    assert (scored.scores[0]["AL"].n, scored.scores[0]["AL"].unit) == (6, "token")


def test_what_cannot_be_done_is_refused(spark: Any, lake: Path) -> None:
    df = spark.read.parquet(str(lake))
    with pytest.raises(MetricError, match="LagPercentile cannot be tallied"):
        score(df, ["LagPercentile"])
    with pytest.raises(DataError, match="no `nothing`"):
        score(df, ["AL"], group_by="nothing")
    with pytest.raises(DataError, match="no `id`"):
        score(df.drop("id"), ["AL"])
    with pytest.raises(UsageError, match="on_error"):
        score(df, ["AL"], on_error="ignore")
    with pytest.raises(UsageError, match="choose among segments of one id"):
        score(df, ["AL"], repair=["first"])
    with pytest.raises(DataError, match=r"no segment|nothing|empty"):
        score(df.filter("false"), ["AL"])


def test_nothing_but_faults(spark: Any, lake: Path) -> None:
    df = spark.read.parquet(str(lake)).selectExpr("* except (source_length)", "cast(null as double) as source_length")
    scored = score(df, ["AL"], group_by="lang", on_error="quarantine")
    assert (scored.scores, dict(scored.kinds), scored.totals.count()) == ([], {"missing-source-length": 600}, 0)
    with pytest.raises(DataError) as caught:
        score(df, ["AL"])
    assert caught.value.counts == {"missing-source-length": 600}
    decreasing = df.selectExpr(
        "* except (delays, source_length, unit)", "array(2D, 1D) as delays", "3D as source_length"
    )
    scored = score(decreasing.drop("prediction"), ["AL"], on_error="quarantine")
    assert (scored.scores, dict(scored.kinds)) == ([], {"decreasing-delays": 600})


def test_a_package_that_executors_lack_is_named(spark: Any) -> None:
    def lacking(batches: Any) -> Any:
        import nowhere_to_be_found  # noqa: F401

        yield from batches

    with pytest.raises(UsageError, match="the executors have no Python module 'nowhere_to_be_found'"), explain_errors():
        spark.range(1).mapInArrow(lacking, "id bigint").collect()


# ---- an executor that dies --------------------------------------------------------------------------------------


def test_a_killed_executor_changes_nothing(spark: Any, lake: Path, tmp_path: Path) -> None:
    df = spark.read.parquet(str(lake)).repartition(4, "id")
    calm = sorted_rows(score(df, METRICS, group_by="lang").totals)

    def slow(batches: Any) -> Any:
        """Hand rows on, in good time; and say who does."""
        import os as system
        import pathlib
        import time as clock

        daemon = pathlib.Path(f"/proc/{system.getppid()}/stat").read_text().rpartition(")")[2].split()
        for batch in batches:
            (tmp_path / f"{daemon[1]}-{system.getpid()}-{clock.time_ns()}").touch()
            clock.sleep(0.2)
            yield batch

    killed: list[int] = []
    done = threading.Event()

    def kill() -> None:
        while not done.is_set() and not killed:
            seen = {name.name.partition("-")[0] for name in tmp_path.iterdir()}
            if len(seen) > 1:  # both executors are at work
                victim = int(min(seen))
                assert "CoarseGrainedExecutorBackend" in Path(f"/proc/{victim}/cmdline").read_text()
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)
            time.sleep(0.05)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        scored = score(df.mapInArrow(slow, df.schema), METRICS, group_by="lang")
    finally:
        done.set()
        killer.join()
    assert killed
    assert sorted_rows(scored.totals) == calm
    assert scored.scores[0]["AL"].n > 0
