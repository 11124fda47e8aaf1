# SPDX-License-Identifier: Apache-2.0
"""`--word-times` and `--word-alignment` on the command line."""

import json
from pathlib import Path

import pytest

GOLD = "0.5\t0.75\thello\n0.75\t1.25\tthere,\n1.5\t2\tAnn\n"
LAGS = (250 + 750 + 500) / 3


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    row = {"id": "talk", "delays": [1000, 2000, 2500], "source_length": 3000, "prediction": "hello there, Ann"}
    row |= {"unit": "ms", "document": "talk", "reference": "hello there Anne"}
    Path("a.jsonl").write_text(json.dumps(row) + "\n")
    Path("b.jsonl").write_text(json.dumps(row | {"delays": [1500, 2500, 3000]}) + "\n")
    Path("gold.tsv").write_text(GOLD)
    Path("talk.align").write_text("0-0 1-1 2-2\n")
    return tmp_path


def scores(outcome) -> dict[str, dict]:
    assert outcome.code == 0, outcome.err
    return {f"{s['system']} {s['metric']}": s for s in json.loads(outcome.out)["scores"]}


def test_score(run, talk) -> None:
    found = scores(run("score", "a.jsonl", "--word-times", "gold.tsv", "-m", "WordLag,WordsMatched", "-f", "json"))
    assert found["a WordLag"]["score"] == LAGS
    assert found["a WordLag"]["unit"] == "ms"
    assert found["a WordsMatched"]["score"] == 1
    assert "|match:text|of:end|" in found["a WordLag"]["signature"]


def test_word_lag_is_among_the_defaults(run, talk) -> None:
    found = scores(run("score", "a.jsonl", "--word-times", "gold.tsv", "-f", "json"))
    assert [name.split()[1] for name in found] == ["AP", "AL", "LAAL", "DAL", "WordLag", "WordsMatched", "BLEU"]


def test_word_times_that_no_metric_needs_are_noted(run, talk) -> None:
    outcome = run("score", "a.jsonl", "--word-times", "gold.tsv", "-m", "DAL")
    assert "note: a: WORD TIMES NOT USED: no metric here needs them" in outcome.err
    assert "NOT USED" not in run("score", "a.jsonl", "--word-times", "gold.tsv", "-m", "DAL,MAAL").err


@pytest.mark.parametrize("target", ["hypothesis", "reference"])
def test_alignments(run, talk, target) -> None:
    words = ["--word-times", "gold.tsv", "--word-alignment", "talk.align", "--aligned-with", target]
    found = scores(run("score", "a.jsonl", *words, "-m", "WordLag", "-f", "json"))["a WordLag"]
    assert found["score"] == LAGS
    assert f"|match:alignment|align:{target}-" in found["signature"]


def test_references_of_a_file_are_checked_against_the_alignment(run, talk) -> None:
    Path("ref.txt").write_text("hallo da\nAnne\n")
    lines = Path("a.jsonl").read_text()
    Path("a.jsonl").write_text(lines + lines.replace("talk", "other"))
    Path("times").mkdir()
    for name in ("talk", "other"):
        Path("times", f"{name}.tsv").write_text(GOLD)
    Path("talk.align").write_text("0-0\n0-1\n")
    words = ["--word-times", "times", "--word-alignment", "talk.align", "--aligned-with", "reference"]
    outcome = run("score", "a.jsonl", *words, "--reference", "ref.txt", "-m", "WordLag")
    assert outcome.code == 1
    assert "0-1: target token 1 of 1" in outcome.err


def test_like_repeats_it_with_the_same_file(run, talk) -> None:
    metric = ["-m", "WordLag(of=start)"]
    first = scores(run("score", "a.jsonl", "--word-times", "gold.tsv", *metric, "-f", "json"))["a WordLag(of=start)"]
    again = run("score", "a.jsonl", "--word-times", "gold.tsv", "--like", first["signature"], "-f", "json")
    assert scores(again)["a WordLag(of=start)"] == first
    assert "the signature given has" not in again.err
    Path("gold.tsv").write_text(GOLD.replace("0.5", "0.4"))
    other = run("score", "a.jsonl", "--word-times", "gold.tsv", "--like", first["signature"])
    assert "WordLag(of=start) has words:" in other.err


def test_compare_uses_the_words_for_every_system(run, talk) -> None:
    outcome = run("compare", "a.jsonl", "b.jsonl", "--word-times", "gold.tsv", "-m", "WordLag", "-f", "json")
    found = scores(outcome)
    assert (found["a WordLag"]["score"], found["b WordLag"]["score"]) == (LAGS, LAGS + 500)


def test_one_process_reads_it_and_says_so(run, talk) -> None:
    outcome = run("score", "a.jsonl", "--word-times", "gold.tsv", "-m", "WordLag", "--jobs", "2")
    assert outcome.code == 0
    assert "--jobs 2 has no effect: --word-times needs the whole log" in outcome.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--engine", "spark"], "--engine spark reads no word times"),
        (["--segmentation", "cut.yaml", "--reference", "ref.txt"], "leave --segmentation and --aligner out"),
        (["-o", "gold.tsv"], "it would be written over"),
    ],
)
def test_what_does_not_go_with_it(run, talk, more, message) -> None:
    Path("cut.yaml").write_text("- {duration: 1.5, offset: 0, wav: talk}\n- {duration: 1.5, offset: 1.5, wav: talk}\n")
    Path("ref.txt").write_text("hallo da\nAnne\n")
    outcome = run("score", "a.jsonl", "--word-times", "gold.tsv", "-m", "WordLag", *more)
    assert outcome.code == 2
    assert message in outcome.err


def test_faults_name_file_and_line(run, talk) -> None:
    Path("gold.tsv").write_text("0.5\t0.4\thello\n0.75\t9\tthere\n0.6\t0.7\tAnn\n")
    outcome = run("score", "a.jsonl", "--word-times", "gold.tsv", "-m", "WordLag")
    assert outcome.code == 1
    assert "impossible word times in gold.tsv:1 (segment talk): hello ends at 0.4 s" in outcome.err
    assert "fix: sort the words by their times" in outcome.err


def test_inspect_shows_each_words_own_source_word(run, talk) -> None:
    outcome = run("inspect", "a.jsonl", "--word-times", "gold.tsv", "--width", "90")
    assert outcome.code == 0
    rows = [line.split()[:4] for line in outcome.out.splitlines() if line and line[0] in "123"]
    assert rows == [["1", "hello", "hello", "0.25"], ["2", "there,", "there,", "0.75"], ["3", "Ann", "Ann", "0.50"]]
    assert "WordLag 0.500" in outcome.out


WHISPER = "1000.0 0 900  hello\n2000.0 900 1900  there,\n2500.0 1900 2400  Ann\n"


def test_one_reference_line_for_one_recording_is_not_cut(run, talk) -> None:
    Path("talk.txt").write_text(WHISPER)
    Path("ref.txt").write_text("hello there Ann\n")
    words = ["--word-times", "gold.tsv", "--reference", "ref.txt"]
    found = scores(run("score", "talk.txt", *words, "-m", "WER,WordLag,DAL", "-f", "json"))
    assert found["talk WordLag"]["score"] == LAGS
    assert found["talk WER"]["score"] == pytest.approx(100 / 3)
    assert "|seg:none|" in found["talk DAL"]["signature"]
    found = scores(run("score", "talk.txt", "--reference", "ref.txt", "-f", "json"))
    assert [name.split()[1] for name in found] == ["AP", "AL", "LAAL", "DAL", "BLEU"]
    found = scores(run("score", "talk.txt", "--reference", "ref.txt", "--aligner", "soft", "-m", "WER", "-f", "json"))
    assert "|seg:soft|" in found["talk WER"]["signature"]
    outcome = run("resegment", "talk.txt", "--reference", "ref.txt", "-o", "cut.jsonl")
    assert outcome.code == 2
    assert "talk.txt is not one recording that has several references" in outcome.err


def test_references_of_segments_do_not_go_with_word_times(run, talk) -> None:
    Path("talk.txt").write_text(WHISPER)
    Path("ref.txt").write_text("hello\nthere Ann\n")
    outcome = run("score", "talk.txt", "--word-times", "gold.tsv", "--reference", "ref.txt")
    assert outcome.code == 2
    assert "--word-times are those of whole recordings, and these are 2 lines for 1" in outcome.err


def test_word_times_in_milliseconds_are_doubted(run, talk) -> None:
    Path("talk.txt").write_text(WHISPER)
    Path("ms.tsv").write_text("500\t750\thello\n750\t1250\tthere,\n1500\t2000\tAnn\n")
    outcome = run("score", "talk.txt", "--word-times", "ms.tsv", "-m", "WordLag", "-q")
    assert "talk: WORD TIMES DO NOT FIT: 1 segment (0): most words begin after everything was written" in outcome.err
    assert "DO NOT FIT" not in run("score", "talk.txt", "--word-times", "gold.tsv", "-m", "WordLag").err
