# SPDX-License-Identifier: Apache-2.0
"""`--reference` and `--hypothesis`: which line belongs to which row."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import lagging as lag
from lagging.longform import Segmentation, with_references

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
TEXTS = [f"the {word} of all the words in line {place}" for place, word in enumerate(WORDS * 3)]


def line(text: str, **more: Any) -> dict[str, Any]:
    delays = [float(t + 1) for t in range(len(text.split()))]
    return {"prediction": text, "delays": delays, "source_length": len(delays), **more}


def write(path: str, lines: Sequence[dict[str, Any]]) -> None:
    Path(path).write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")


def write_texts(path: str, texts: Sequence[str]) -> None:
    Path(path).write_text("".join(f"{text}\n" for text in texts), "utf-8")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory with references."""
    monkeypatch.chdir(tmp_path)
    write_texts("ref.txt", TEXTS)


def bleu(done: Any) -> float:
    assert done.code == 0, done.err
    return float(json.loads(done.out)["scores"][0]["score"])


SCORE = ("--reference", "ref.txt", "-m", "BLEU", "-f", "json")


def test_shards_that_a_glob_takes_out_of_order_have_the_references_of_their_indices(run):
    for shard in range(12):
        write(f"shard-{shard}.jsonl", [line(TEXTS[i], index=i) for i in range(3 * shard, 3 * shard + 3)])
    write("merged.jsonl", [line(text, index=i) for i, text in enumerate(TEXTS)])
    shards, merged = run("score", "shard-*.jsonl", *SCORE), run("score", "merged.jsonl", *SCORE)
    assert bleu(shards) == pytest.approx(100)
    assert bleu(merged) == bleu(shards)
    assert "BY ORDER" not in (shards.err + merged.err).upper()


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet", "arrow", "fairseq", "simuleval", "jsonl"])
def test_rows_out_of_order_are_paired_by_index_in_every_format_that_has_one(run, form):
    order = [*range(35, 17, -1), *range(18)]
    write("log.jsonl", [line(TEXTS[i], id=i) for i in order])
    assert run("convert", "log.jsonl", "--to", form, "-o", f"out.{form}").code == 0
    assert bleu(run("score", f"out.{form}", *SCORE)) == pytest.approx(100)


def test_a_log_without_some_rows_is_paired_by_index(run):
    write("log.jsonl", [line(TEXTS[i], index=i) for i in (35, 3, 0, 20)])
    done = run("score", "log.jsonl", *SCORE)
    assert bleu(done) == pytest.approx(100)
    assert "lines left aside: 32 lines: of ref.txt: no row of the log has their index" in done.err


def test_ids_that_are_numbers_in_quotes_are_indices(run):
    write("log.jsonl", [line(TEXTS[i], id=str(i)) for i in reversed(range(36))])
    assert bleu(run("score", "log.jsonl", *SCORE)) == pytest.approx(100)


def test_indices_that_count_from_1_are_read_so_and_said(run):
    write("log.jsonl", [line(text, index=i + 1) for i, text in reversed(list(enumerate(TEXTS)))])
    done = run("score", "log.jsonl", *SCORE)
    assert bleu(done) == pytest.approx(100)
    assert "counted from 1: the log has no index 0: line 1 of ref.txt belongs to index 1" in done.err
    write("gap.jsonl", [line(TEXTS[i - 1], index=i) for i in (36, 2, 7)])
    assert bleu(run("score", "gap.jsonl", *SCORE)) == pytest.approx(100)


def test_one_shard_is_paired_with_its_own_lines(run):
    write("shard.jsonl", [line(TEXTS[i], index=i) for i in (22, 20, 21)])
    write_texts("ref.txt", TEXTS[20:23])
    done = run("score", "shard.jsonl", *SCORE)
    assert bleu(done) == pytest.approx(100)
    assert "counted from 20" in done.err


def test_a_missing_index_0_is_said_loudly_where_the_log_may_count_from_1(run):
    write("log.jsonl", [line(TEXTS[i], index=i) for i in range(1, 36)])
    done = run("score", "log.jsonl", *SCORE)
    assert bleu(done) == pytest.approx(100)
    assert "COUNTED FROM 0: the log has no index 0" in done.err


@pytest.mark.parametrize(
    ("indices", "count"), [(range(36), 35), (range(35), 36), ((5, 9, 100), 36), ((5, 9, 100), 3), (range(-1, 35), 36)]
)
def test_lines_that_do_not_fit_the_indices_are_refused(run, indices, count):
    write("log.jsonl", [line("so it is", index=i) for i in indices])
    write_texts("ref.txt", TEXTS[:count])
    done = run("score", "log.jsonl", *SCORE)
    assert done.code == 1
    assert "lines that do not fit the rows of the log" in done.err
    assert f"{count} lines, but indices from {min(indices)} to {max(indices)} in log.jsonl" in done.err
    assert "fix:" in done.err


def test_a_log_without_indices_is_paired_by_order_and_says_so(run):
    write("log.jsonl", [line(text) for text in TEXTS])
    done = run("score", "log.jsonl", *SCORE)
    assert bleu(done) == pytest.approx(100)
    assert "note: log: paired by order: the log has no index: line 1 of ref.txt belongs to its first row" in done.err
    Path("more.jsonl").write_text(Path("log.jsonl").read_text("utf-8").splitlines()[0], "utf-8")
    done = run("score", "more.jsonl", *SCORE, "--aligner", "mwer")
    assert "by order" not in done.err.lower()  # one row is a stream, which is cut


def test_several_files_without_indices_are_paired_by_order_and_say_so_loudly(run):
    write("a-10.jsonl", [line(text) for text in TEXTS[:18]])
    write("a-2.jsonl", [line(text) for text in TEXTS[18:]])
    done = run("score", "a-*.jsonl", *SCORE)
    assert bleu(done) == pytest.approx(100)
    assert "PAIRED BY ORDER: the log has no index, and is of several files" in done.err


def test_names_are_no_indices(run):
    write("log.jsonl", [line(text, id=f"utt-{i}") for i, text in enumerate(TEXTS)])
    done = run("score", "log.jsonl", *SCORE)
    assert bleu(done) == pytest.approx(100)
    assert 'PAIRED BY ORDER: ids are names: line 1 of ref.txt belongs to "utt-0"' in done.err
    write_texts("ref.txt", TEXTS[:-1])
    done = run("score", "log.jsonl", *SCORE)
    assert done.code == 1
    assert "35 lines, but 36 rows in log.jsonl" in done.err


def test_numbers_that_a_reader_gave_to_rows_are_no_indices(run):
    write("log.jsonl", [line(text) for text in TEXTS])
    write("sys.jsonl", [line(text, index=i) for i, text in enumerate(TEXTS)])
    assert not lag.read("log.jsonl").origin.named
    assert lag.read("sys.jsonl").origin.named
    Path("sys.rw").write_text("RW\nRW\n")
    assert not lag.read("sys.rw").origin.named
    Path("sys.csv").write_text('delays,source_length\n"[1]",1\n')
    assert not lag.read("sys.csv").origin.named
    assert not lag.Run.from_delays([[1]], source_length=[1]).origin.named
    assert lag.Run.from_delays([[1]], source_length=[1], id=[0]).origin.named


def test_one_file_without_indices_among_others_leaves_none(run):
    write("a.jsonl", [line(TEXTS[i], index=i) for i in (1, 0)])
    write("b.jsonl", [line(text) for text in TEXTS[2:36]])
    done = run("score", "[ab].jsonl", *SCORE)
    assert done.code == 0, done.err
    assert "PAIRED BY ORDER" in done.err


def test_whole_recordings_without_a_segmentation_are_told_what_is_missing(run):
    write("talks.jsonl", [line(text, index=i) for i, text in enumerate(TEXTS[:5])])
    done = run("score", "talks.jsonl", *SCORE)
    assert done.code == 1
    assert "36 lines, but indices from 0 to 4" in done.err
    assert "--segmentation" in done.err


def test_hypotheses_are_paired_by_index_too(run):
    order = list(reversed(range(36)))
    write("log.jsonl", [{k: v for k, v in line(TEXTS[i], index=i).items() if k != "prediction"} for i in order])
    write_texts("hyp.txt", TEXTS)
    assert bleu(run("score", "log.jsonl", "--hypothesis", "hyp.txt", *SCORE)) == pytest.approx(100)
    write_texts("hyp.txt", TEXTS[:-1])
    done = run("score", "log.jsonl", "--hypothesis", "hyp.txt", *SCORE)
    assert done.code == 1
    assert "lines that do not fit the rows of the log" in done.err


def test_pairing_from_python():
    texts = Segmentation.from_lists(["x"] * 3, reference=["no", "one", "two"])
    run = lag.Run.from_delays([[1], [2]], source_length=[2, 2], prediction=["a", "b"], id=[2, 1])
    assert with_references(run, texts).reference.tolist() == ["two", "one"]
