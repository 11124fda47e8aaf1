# SPDX-License-Identifier: Apache-2.0
"""Several processes give what one gives: scores to the bit, notes, faults; killed ones change nothing."""

import gzip
import json
import os
import pickle
import signal
import sys
from concurrent import futures
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import lagging
from lagging.cli import cli
from lagging.errors import LaggingError, UsageError
from lagging.formats import segment_rows, source
from lagging.formats.options import ReadOptions
from lagging.formats.source import Source
from lagging.scoring import processes
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.log import score_files
from lagging.scoring.plan import Plan
from lagging.scoring.processes import ParallelLog, plan_parallel, score_task

pytestmark = pytest.mark.slow

ROWS = 2600
NAMES = ["AP", "AL", "LAAL", "DAL", "DAL(write_cost=corpus)", "BLEU", "chrF++", "TER", "WER"]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Parts of a few hundred segments, so that a small log has many; other processes are copies, and have them too."""
    if sys.platform != "linux":
        pytest.skip("processes that are started anew would not know of the small parts")
    monkeypatch.setattr(segment_rows, "SEGMENTS_PER_PART", 300)
    monkeypatch.setattr(source, "BATCH_BYTES", 1 << 12)
    monkeypatch.setattr(processes, "_context", lambda: get_context("fork"))


def rows(count=ROWS, first=0, **more):
    dice = np.random.default_rng(first)
    for index in range(first, first + count):
        y = int(dice.integers(0, 9))
        x = int(dice.integers(1, 12))
        delays = np.sort(dice.integers(1, x + 1, y)).tolist()
        texts = {"prediction": " ".join("abc"[i % 3] for i in range(y)), "reference": " ".join("ab" * (1 + index % 4))}
        yield {"index": index, "delays": delays, "source_length": x, **texts, **more}


def write(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


@pytest.fixture
def log(tmp_path):
    return write(tmp_path / "base.jsonl", rows())


def run(*args):
    """What the command line prints, says, and returns."""
    done = CliRunner().invoke(cli, ["score", *map(str, args)], standalone_mode=False)
    told = f"{type(done.exception).__name__}: {done.exception}" if done.exception is not None else ""
    return done.stdout, done.stderr, told


def spread(paths, jobs=None, **options):
    return plan_parallel(paths, ReadOptions(**options), jobs)


def divided(*args, **options):
    return isinstance(spread(*args, **options), ParallelLog)


def both(tmp_path, *args):
    """The same command with one process and with several; the segments' scores are compared too."""
    found = []
    for jobs in (1, 3):
        scores = tmp_path / "segments.tsv"
        scores.unlink(missing_ok=True)
        said = run(*args, "--jobs", jobs, "-f", "json", "-v", "--segment-scores", scores)
        found.append((*said, scores.read_bytes() if scores.exists() else None))
    return found


def shares(monkeypatch):
    """How many shares were handed out: without any, equal results would show nothing."""
    count = []
    whole = ParallelLog._tasks

    def counted(self, scorers):
        for share in whole(self, scorers):
            count.append(share)
            yield share

    monkeypatch.setattr(ParallelLog, "_tasks", counted)
    return count


def filled(monkeypatch):
    """Whether each log was scored by several processes to its end."""
    answers = []
    fill = ParallelLog.score
    monkeypatch.setattr(ParallelLog, "score", lambda self, s: answers.append(fill(self, s)) or answers[-1])
    return answers


def test_one_large_file(log, tmp_path, monkeypatch):
    handed, answers = shares(monkeypatch), filled(monkeypatch)
    one, several = both(tmp_path, log, "-m", ",".join(NAMES), "--ci")
    assert one == several
    assert one[0]
    assert "empty hypothesis" in one[1]
    assert len(handed) > 5
    assert answers == [True]


def test_default_metrics_and_what_simuleval_would_say(log, tmp_path, monkeypatch):
    answers = filled(monkeypatch)
    one, several = both(tmp_path, log)
    assert one == several
    assert "SimulEval's convention gives AL" in one[1]
    assert answers == [True]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_several_files_of_one_system_without_names(ending, tmp_path, monkeypatch):
    answers = filled(monkeypatch)
    for number in range(3):
        lines = [{k: v for k, v in row.items() if k != "index"} for row in rows(700, first=number)]
        path = tmp_path / f"part-{number}.{ending}"
        write(path, lines) if ending == "jsonl" else table(path, lines, group=100)
    one, several = both(tmp_path, tmp_path / f"part-*.{ending}", "-m", "AL")
    assert one == several
    assert "several files" in one[1]
    assert one[3].count(b"\n") > 2100  # each segment, by its place over all files
    assert answers == [True]


def test_from_python(log):
    for jobs in (1, 2):
        found = score_files(log, NAMES, jobs=jobs)
        expected = lagging.score(lagging.scan(log), NAMES)
        assert found.notes == expected.notes
        for name in NAMES:
            assert found[name].segments.tobytes() == expected[name].segments.tobytes()
            assert found[name].value == expected[name].value
            assert found[name].signature == expected[name].signature
            assert found[name].undefined.reasons == expected[name].undefined.reasons
            assert np.array_equal(found[name].references, expected[name].references)


def changed(lines, place, **values):
    lines = list(lines)
    lines[place] |= values
    return lines


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        (changed(rows(), 2000, delays=[3, 2], prediction="a b"), "delays decrease"),
        (changed(rows(), 2000, index=17), "line 2001"),
        (changed(rows(), 2000, source_length="x"), "source_length"),
    ],
    ids=["decreasing", "twice", "no number"],
)
def test_faults_are_told_as_in_order(lines, what, tmp_path, monkeypatch):
    answers = filled(monkeypatch)
    one, several = both(tmp_path, write(tmp_path / "bad.jsonl", lines), "-m", "AL")
    assert one == several
    assert what in one[2] or what in one[2].replace(".jsonl:", ".jsonl, line ")
    assert answers == [False]


def test_blank_lines_and_a_byte_order_mark_are_noted_as_in_order(tmp_path):
    text = "".join(json.dumps(row) + "\n" + "\n" * (row["index"] == 1500) for row in rows())
    (tmp_path / "blank.jsonl").write_text(text, "utf-8")
    (tmp_path / "mark.jsonl").write_text(text.replace("\n\n", "\n"), "utf-8-sig")
    for name, note in (("blank", "blank line"), ("mark", "byte order mark")):
        one, several = both(tmp_path, tmp_path / f"{name}.jsonl", "-m", "AL")
        assert one == several
        assert note in one[1]


def test_a_column_that_comes_late_is_noted_as_in_order(tmp_path, monkeypatch):
    answers = filled(monkeypatch)
    late = [row | ({"erased": 2} if row["index"] >= 1400 else {}) for row in rows()]
    one, several = both(tmp_path, write(tmp_path / "late.jsonl", late), "-m", "AL")
    assert one == several
    assert "column left out: 1200 segments" in one[1]
    assert answers == [True]


def test_files_that_do_not_go_together(tmp_path, monkeypatch):
    write(tmp_path / "a.jsonl", rows(1200))
    write(tmp_path / "b.jsonl", rows(1200, first=2000, unit="ms"))
    one, several = both(tmp_path, tmp_path / "*.jsonl", "-m", "AL")
    assert one == several
    assert "DataError" in one[2]


# ---- Parquet, and groups --------------------------------------------------------------------------------------------


def table(path, lines, group=450, **metadata):
    """A Parquet file with row groups of so many rows."""
    lines = list(lines)
    columns = {"delays": pa.list_(pa.float64()), "source_length": pa.float64()}
    found = pa.Table.from_pylist(
        lines, pa.schema([(k, columns.get(k, pa.int64() if k == "index" else pa.string())) for k in lines[0]])
    )
    found = found.replace_schema_metadata({"lagging": json.dumps(metadata)} if metadata else None)
    pq.write_table(found, path, row_group_size=group)
    return path


def labelled(**more):
    return [row | {"lang": ("de", "cs", "zh")[row["index"] * 7 % 3]} | more for row in rows()]


@pytest.mark.parametrize("names", [NAMES, [], ["LagPercentile"]], ids=["named", "default", "pooled"])
def test_row_groups(names, tmp_path, monkeypatch):
    handed, answers = shares(monkeypatch), filled(monkeypatch)
    one, several = both(tmp_path, table(tmp_path / "a.parquet", rows()), *(["-m", ",".join(names)] if names else []))
    assert one == several
    assert "empty hypothesis" in one[1]
    assert len(handed) == 2  # 2600 rows in groups of 450: at least 1200 together
    assert answers == [True]


def test_nothing_but_sums_comes_back(tmp_path, monkeypatch):
    """Without the values of segments, which nobody asked for here."""
    answers = filled(monkeypatch)
    for log in (write(tmp_path / "a.jsonl", rows()), table(tmp_path / "a.parquet", rows())):
        command = [log, "-f", "json", "-m", "AP,AL,DAL"]
        kept = run(*command, "--jobs", 1, "-v")
        assert [run(*command, "--jobs", jobs)[0] for jobs in (1, 3)] == [kept[0]] * 2
    assert answers == [True] * 2
    scorer = Accumulator(Plan.make(["AP", "AL"], keep="sums"))
    assert spread(tmp_path / "a.parquet", 2).score([scorer])
    assert len(pickle.dumps(scorer)) < 5000


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize("ci", [[], ["--ci"]], ids=["", "ci"])
def test_groups(ending, ci, tmp_path, monkeypatch):
    answers = filled(monkeypatch)
    lines = labelled()
    log = (write if ending == "jsonl" else table)(tmp_path / f"a.{ending}", lines)
    command = [log, "--by", "lang", "-m", "AP,LAAL,DAL,BLEU", "-f", "json", "-v", *ci]
    one, several = (run(*command, "--jobs", jobs) for jobs in (1, 3))
    assert one == several
    assert '"lang": "zh"' in one[0]
    assert answers == [True]


def test_what_the_metadata_say_is_counted_once(tmp_path, monkeypatch):
    answers = filled(monkeypatch)
    log = table(tmp_path / "a.parquet", rows(), unit="token", name="mine", repaired={"clip": 7})
    one, several = both(tmp_path, log, "-m", "AL")
    assert one == several
    assert "repaired: 7 segments" in one[1]
    assert '"mine"' in one[0]
    assert answers == [True]


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        (changed(rows(), 2000, delays=[3.0, 2.0], prediction="a b"), "delays decrease"),
        (changed(rows(), 2000, index=17), "2001"),
        (changed(rows(), 2000, source_length=None), "source_length"),
        ([row | {"name": "a" if row["index"] < 2000 else "b"} for row in rows()], "system"),
        ([row | {"name": None if row["index"] < 2000 else "b"} for row in rows()], '"system": "bad"'),
    ],
    ids=["decreasing", "twice", "null", "two systems", "named late"],
)
def test_faults_of_tables_are_told_as_in_order(lines, what, tmp_path, monkeypatch):
    answers = filled(monkeypatch)
    one, several = both(tmp_path, table(tmp_path / "bad.parquet", lines), "-m", "AL")
    assert one == several
    assert what in one[2] or what in one[0]
    assert answers == [False]


def test_a_damaged_table_is_read_in_order(tmp_path, monkeypatch):
    answers = filled(monkeypatch)
    whole = table(tmp_path / "whole.parquet", rows())
    text = bytearray(whole.read_bytes())
    place = pq.ParquetFile(whole).metadata.row_group(4).column(1).data_page_offset
    text[place : place + 40] = b"x" * 40
    whole.write_bytes(text)
    one, several = both(tmp_path, whole, "-m", "AL")
    assert one == several
    assert "DataError" in one[2]
    assert answers == [False]
    whole.write_bytes(text[:-50])
    one, several = both(tmp_path, whole, "-m", "AL")
    assert one == several
    assert "DataError" in one[2]


def test_tables_that_are_not_shared_out(tmp_path):
    several = table(tmp_path / "several.parquet", rows())
    assert divided(several, 2, group_by=("index",))
    assert divided(several, 2, format="parquet")
    assert spread(several) == ""  # too small to pay
    assert spread(table(tmp_path / "one.parquet", rows(), group=5000), 2) == ""
    lagging.write(lagging.read(several), tmp_path / "a.arrow")
    assert "neither plain JSON lines nor Parquet" in spread(tmp_path / "a.arrow", 2)


# ---- killed processes -----------------------------------------------------------------------------------------------


def killed_once(share):
    """The first process to come here kills itself."""
    flag = Path(os.environ["LAGGING_TEST_KILL"])
    try:
        flag.rename(flag.with_suffix(".gone"))
    except FileNotFoundError:
        return score_task(share)
    os.kill(os.getpid(), signal.SIGKILL)
    return None


def killed_always(share):
    if share.source.portion.start:
        os.kill(os.getpid(), signal.SIGKILL)
    return score_task(share)


def test_a_killed_process_changes_nothing(log, tmp_path, monkeypatch):
    flag = tmp_path / "kill"
    flag.touch()
    monkeypatch.setenv("LAGGING_TEST_KILL", str(flag))
    monkeypatch.setattr(processes, "score_task", killed_once)
    answers = filled(monkeypatch)
    one, several = both(tmp_path, log, "-m", "AP,AL,DAL")
    assert not flag.exists()
    assert one == several
    assert answers == [True]


def test_processes_that_are_always_killed_are_an_error(log, monkeypatch):
    monkeypatch.setattr(processes, "score_task", killed_always)
    scorer = Accumulator(Plan.make(["AL"]))
    with pytest.raises(LaggingError, match=r"base.jsonl was killed, 3 times; not scored: \d+ of \d+ parts") as error:
        spread(log, 2).score([scorer])
    assert "--jobs 1" in str(error.value)
    with pytest.raises(LaggingError, match="nothing"):
        scorer.scores()


# ---- what is shared out ---------------------------------------------------------------------------------------------


def test_what_cannot_be_shared_out_is_read_in_order(log, tmp_path):
    assert divided(log, 2)
    assert spread(log, 1) == ""
    assert spread(log) == ""  # too small to pay
    assert spread("-", 2) == "standard input cannot be divided"
    assert spread(log, 2, repair=("first",)) == "--repair first needs the whole log"
    assert plan_parallel(log, ReadOptions(), 2, quarantine=True) == "--on-error quarantine needs the log in order"
    assert spread([log, log], 2) == "a file is given twice"
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    assert "neither plain JSON lines nor Parquet" in spread(packed, 2)
    table = tmp_path / "table.csv"
    table.write_text("id,delays,source_length\n1,1 2,3\n")
    assert "neither plain JSON lines nor Parquet" in spread(table, 2)
    with pytest.raises(UsageError, match="from 1 to 1024"):
        spread(log, 0)


@pytest.mark.parametrize("end", ["\n", ""])
def test_byte_ranges_are_the_file(tmp_path, end):
    text = "\n".join(f"{i} " + "x" * (i * 37 % 400) for i in range(500)) + end
    path = tmp_path / "lines"
    path.write_text(text)
    found = list(Source("lines", path).byte_ranges(60))
    assert len(found) > 4
    read = []
    for portion in found:
        one = Source("lines", path, portion=portion)
        one.seek_portion()
        lines = [(batch.first + place, line) for batch in one.batches() for place, line in enumerate(batch.lines)]
        assert len(lines) == portion.count
        read += lines
    assert [number for number, _ in read] == list(range(1, 501))
    assert b"".join(line for _, line in read).decode() == text


def test_scorers_that_disagree_cannot_be_joined():
    one, other = (Accumulator(Plan.make(["AL"])) for _ in range(2))
    one.add(lagging.Run.from_delays([[1, 2]], source_length=[2]))
    other.add(lagging.Run.from_delays([[1, 2]], source_length=[2], unit="ms"))
    with pytest.raises(UsageError, match="cannot be averaged"):
        one.join(other)


def pools(monkeypatch):
    """How many processes each pool was allowed."""
    sizes = []

    class Counted(futures.ProcessPoolExecutor):
        def __init__(self, workers, **how):
            sizes.append(workers)
            super().__init__(workers, **how)

    monkeypatch.setattr(futures, "ProcessPoolExecutor", Counted)
    return sizes


def test_there_are_no_more_processes_than_byte_ranges(tmp_path, monkeypatch):
    sizes, handed = pools(monkeypatch), shares(monkeypatch)
    log = write(tmp_path / "some.jsonl", rows(700))
    assert run(log, "--jobs", 64, "-f", "json") == run(log, "--jobs", 1, "-f", "json")
    assert sizes == [len(handed)]
    assert 1 < len(handed) < 5


def test_one_stretch_needs_no_other_process(tmp_path, monkeypatch):
    sizes = pools(monkeypatch)
    log = write(tmp_path / "few.jsonl", rows(40))
    assert run(log, "--jobs", 64, "-f", "json") == run(log, "--jobs", 1, "-f", "json")
    assert sizes == []


@pytest.mark.parametrize("jobs", [0, 1025, 10**23])
def test_a_number_of_jobs_that_no_machine_has_is_refused(log, jobs):
    assert "not in the range 1<=x<=1024" in run(log, "--jobs", jobs)[2]
    with pytest.raises(UsageError, match=f"from 1 to 1024, but is {jobs}"):
        spread(log, jobs)


@pytest.mark.parametrize("loaded", [set(), {"torch"}])
def test_processes_are_copied_unless_a_library_has_threads(log, monkeypatch, loaded):
    monkeypatch.undo()  # the small parts are not known to a process that is started anew
    names = {name for name in sys.modules if name not in processes.THREADED} | loaded
    monkeypatch.setattr(processes.sys, "modules", {**{name: sys.modules.get(name) for name in names}})
    monkeypatch.setattr(processes.threading, "active_count", lambda: 1)
    assert processes._context().get_start_method() == ("spawn" if loaded else "fork")


def test_processes_that_are_started_anew_give_the_same(log, monkeypatch):
    monkeypatch.setattr(processes, "_context", lambda: get_context("spawn"))
    answers = filled(monkeypatch)
    alone, several = (score_files(log, ["AP", "AL", "DAL"], jobs=jobs) for jobs in (1, 2))
    assert answers == [True]
    assert [(s.value, str(s.signature)) for s in alone] == [(s.value, str(s.signature)) for s in several]
