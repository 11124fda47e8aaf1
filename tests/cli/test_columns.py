# SPDX-License-Identifier: Apache-2.0
"""Scores from elsewhere in every command, and quality that cannot be computed beside latency that can."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lagging
from lagging.curves import curves
from lagging.metrics.quality import _lexicon

SCORES = [0.5, 0.75, 1.0, 0.25]
IDS = ["s0", "s1", "s2", "s3"]
FEW = ("--resamples", "200")
JAPANESE = "BLEU(tok=ja-mecab)"


def write_log(path: Path, wait: int) -> None:
    texts = ["a b c d e", "b c d", "c d e f", "d e f g h i"]
    rows = []
    for place, (name, text) in enumerate(zip(IDS, texts, strict=True)):
        x = len(text.split())
        delays = [min(t + wait, x) for t in range(x)]
        row = {"id": name, "prediction": text, "reference": f"{text} z", "delays": delays, "source_length": x}
        rows.append(row | {"lang": "de" if place % 2 else "fr"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for wait in (1, 3):
        write_log(tmp_path / f"wait-{wait}.jsonl", wait)
        (tmp_path / f"wait-{wait}.txt").write_text("".join(f"{value * wait / 3}\n" for value in SCORES))
    return tmp_path


def printed(outcome) -> list[dict]:
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)["scores"]


def write_files() -> dict[str, bool]:
    """Files with the same scores → whether they have ids."""
    pairs = list(zip(IDS, SCORES, strict=True))[::-1]
    segments = "".join(f"mt.txt\tSegment {n}\tscore: {value:.4f}\n" for n, value in enumerate(SCORES))
    files = {
        "numbers.txt": ("\n".join(map(str, SCORES)), False),
        "named.tsv": ("id\tCOMET\n" + "\n".join(f"{n}\t{v}" for n, v in pairs), True),
        "named.csv": ("score,id\n" + "\n".join(f"{v},{n}" for n, v in pairs), True),
        "bare.tsv": ("\n".join(f"{n}\t{v}" for n, v in pairs), True),
        "lines.jsonl": ("\n".join(json.dumps({"id": n, "score": v}) for n, v in pairs), True),
        "comet.json": (json.dumps({"mt.txt": [{"mt": "x", "COMET": v} for v in SCORES]}), False),
        "comet.txt": (segments + "mt.txt\tscore: 0.6250\n", False),
    }
    for name, (text, _) in files.items():
        Path(name).write_text(text, "utf-8")
    return {name: has_ids for name, (_, has_ids) in files.items()}


def test_every_kind_of_file_gives_the_same_score(run, folder):
    signatures = set()
    for name, has_ids in write_files().items():
        (score,) = (
            s
            for s in printed(run("score", "wait-1.jsonl", "-m", "AL", "--column", f"COMET={name}", "-f", "json"))
            if s["metric"] == "COMET"
        )
        assert (score["score"], score["unit"], score["n"]) == (0.625, "score", 4), name
        signatures.add(score["signature"])
        column = lagging.read_column(name, "COMET")
        assert (column.ids is not None) == has_ids
    assert len(signatures) == 1


def test_parquet_with_ids_and_a_model(run, folder):
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    table = arrow.table({"id": IDS[::-1], "COMET": SCORES[::-1], "model": ["Unbabel/wmt22-comet-da"] * 4})
    parquet.write_table(table, "comet.parquet")
    result = run("score", "wait-1.jsonl", "-m", "AL", "--column", "COMET=comet.parquet", "-f", "json")
    score = printed(result)[-1]
    assert score["score"] == 0.625
    assert "|model:Unbabel/wmt22-comet-da|" in score["signature"]


def test_a_column_goes_through_groups_gates_and_intervals(run, folder):
    column = ("--column", "COMET=wait-3.txt")
    groups = printed(run("score", "wait-3.jsonl", "-m", "AL", *column, "--by", "lang", "-f", "json"))
    values = {s["group"]["lang"]: s["score"] for s in groups if s["metric"] == "COMET"}
    assert values == {"fr": 0.75, "de": 0.5}
    assert run("score", "wait-3.jsonl", "-m", "AL", *column, "--fail-if", "COMET<0.8").code == 3
    assert run("score", "wait-3.jsonl", "-m", "AL", *column, "--fail-if", "COMET<0.6").code == 0
    score = printed(run("score", "wait-3.jsonl", "-m", "AL", *column, "--ci", "-f", "json"))[-1]
    assert score["low"] < 0.625 < score["high"]
    one = run("score", "wait-3.jsonl", "-m", "AL", *column, "--jobs", "2")
    assert "--jobs 2 has no effect: --column is matched with the segments in order" in one.err


def test_the_direction_is_known_of_the_name(run, folder):
    for name, arrow in (("COMET", "↑"), ("XCOMET-XL", "↑"), ("MetricX", "↓"), ("BLEURT", "↑"), ("Rating", "↑")):
        assert f"{name} {arrow}" in run("score", "wait-1.jsonl", "-m", "AL", "--column", f"{name}=wait-1.txt").out
    lower = run("score", "wait-1.jsonl", "-m", "AL", "--column", "Rating=wait-1.txt", "--lower", "Rating")
    assert "Rating ↓" in lower.out


def test_a_column_that_does_not_fit_is_refused(run, folder):
    Path("short.txt").write_text("0.5\n0.75\n")
    short = run("score", "wait-1.jsonl", "--column", "COMET=short.txt")
    assert short.code == 1
    assert "2 scores, but 4 segments" in short.err
    Path("other.tsv").write_text("id\tCOMET\ns0\t1\ns1\t1\ns2\t1\nx9\t1\n")
    other = run("score", "wait-1.jsonl", "--column", "COMET=other.tsv")
    assert other.code == 1
    for name in ("x9", "s3"):
        assert name in other.err, "all faults at once"
    two = run("score", "wait-1.jsonl", "wait-3.jsonl", "--column", "COMET=wait-1.txt")
    assert two.code == 2
    assert "does not say which of 2 systems it belongs to" in two.err
    assert "fix: --column NAME:COMET=wait-1.txt, once for each system" in two.err
    assert "in Python, `read_column(FILE, 'COMET', NAME)`" in two.err


@pytest.mark.parametrize("words", [("score", "-m"), ("compare", "-m"), ("curve", "--quality")], ids=" ".join)
def test_what_is_not_computed_names_the_lines_that_make_it(run, folder, words):
    command, option = words
    result = run(command, "wait-1.jsonl", "wait-3.jsonl", option, "COMET")
    assert result.code in (1, 2)
    assert "comet-score -s source.txt -t hypothesis.txt -r reference.txt --to_json comet.json" in result.err
    assert "lagging score LOG --column COMET=comet.json" in result.err


def test_a_curve_of_comet_has_intervals(run, folder):
    columns = ("--column", "w:COMET=wait-*.txt")
    result = run("curve", "w=wait-*.jsonl", *columns, "--latency", "AP", "--quality", "COMET", "-f", "json", *FEW)
    assert result.code == 0, result.err
    comet = [s for s in json.loads(result.out)["scores"] if s["metric"] == "COMET"]
    assert [s["score"] for s in comet] == pytest.approx([0.625 / 3, 0.625])
    assert all(s["low"] < s["score"] < s["high"] for s in comet)
    settings = [(str(wait), lagging.read(f"wait-{wait}.jsonl")) for wait in (1, 3)]
    given = [lagging.read_column(f"wait-{wait}.txt", "COMET", f"w {wait}") for wait in (1, 3)]
    (curve,) = curves({"w": settings}, "AP", "COMET", columns=given, resamples=200).curves
    assert [point.quality.value for point in curve.points] == [s["score"] for s in comet]
    assert [point.quality.low for point in curve.points] == [s["low"] for s in comet]


# ---- tokenizers -------------------------------------------------------------------------------------------------


@pytest.fixture
def without_mecab(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """MeCab cannot be imported, whether it is installed or not; sacreBLEU's module keeps what it found."""
    monkeypatch.setitem(sys.modules, "MeCab", None)
    _lexicon.cache_clear()
    sys.modules.pop("sacrebleu.tokenizers.tokenizer_ja_mecab", None)
    yield
    sys.modules.pop("sacrebleu.tokenizers.tokenizer_ja_mecab", None)


@pytest.mark.parametrize(
    "words",
    [
        ("score", "wait-1.jsonl", "-m", f"AP,{JAPANESE}"),
        ("score", "wait-1.jsonl", "-m", f"AP,{JAPANESE}", "--jobs", "2"),
        ("score", "wait-1.jsonl", "-m", f"AP,{JAPANESE}", "--by", "lang"),
        ("score", "wait-1.jsonl", "-m", f"AP,{JAPANESE}", "--by", "lang", "--ci"),
        ("score", "wait-1.jsonl", "-m", f"AP,{JAPANESE}", "--ci"),
        ("compare", "wait-1.jsonl", "wait-3.jsonl", "-m", f"AP,{JAPANESE}", *FEW),
        ("curve", "w=wait-*.jsonl", "--latency", "AP", "--quality", JAPANESE, *FEW),
    ],
)
def test_a_tokenizer_that_is_not_installed_leaves_its_column_undefined(run, folder, without_mecab, words):
    result = run(*words, "-f", "json")
    scores = printed(result)
    assert all(s["score"] is None for s in scores if s["metric"] == JAPANESE)
    assert any(s["metric"] == JAPANESE for s in scores)
    assert all(s["score"] > 0 for s in scores if s["metric"] == "AP")
    assert "pip install 'lagging[ja]'" in result.err


def test_a_tokenizer_whose_model_cannot_be_fetched_says_so(run, folder, monkeypatch):
    """SentencePiece is there, so that installing it again would not help."""
    pytest.importorskip("sentencepiece")
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_spm.SACREBLEU_DIR", str(folder))
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: (_ for _ in ()).throw(OSError("no network")))
    result = run("score", "wait-1.jsonl", "-m", "AP,BLEU(tok=flores200)", "-f", "json")
    assert [s["score"] is None for s in printed(result)] == [False, True]
    assert "could not fetch the model of its tokenizer flores200" in result.err
    assert "pip install" not in result.err


def test_default_bleu_has_the_tokenizer_of_the_script(run, folder):
    for text, tokenizer in (("你好吗今天", "zh"), ("今日はとてもいい", "char"), ("good day to you", "13a")):
        row = {"prediction": text, "reference": text, "delays": [1] * len(text.split()), "source_length": 2}
        Path("log.jsonl").write_text(json.dumps(row), "utf-8")
        result = run("score", "log.jsonl", "--level", "word", "-f", "json")
        (bleu,) = (s for s in printed(result) if s["metric"].startswith("BLEU"))
        assert f"|tok:{tokenizer}|" in bleu["signature"]
        assert ("SCRIPT WITHOUT SPACES" in result.err) == (tokenizer != "13a")


def test_compare_tokenizes_the_references_of_ten_logs_once(run, folder, monkeypatch):
    """In several batches, in which the systems take turns or not."""
    monkeypatch.setattr("lagging.metrics.quality.SEGMENTS_AT_ONCE", 20)
    references = [f"Word{n}, and number {n}." for n in range(50)]
    for system in range(10):
        rows = [
            {"id": n, "prediction": f"guess{system}", "reference": text, "delays": [1], "source_length": 2}
            for n, text in enumerate(references)
        ]
        Path(f"system-{system}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    lexicon, lines = _lexicon("13a"), []
    lexicon.clear()
    monkeypatch.setattr(lexicon, "_encode", lambda texts, encode=lexicon._encode: lines.extend(texts) or encode(texts))
    result = run("compare", *(f"system-{system}.jsonl" for system in range(10)), "-m", "AP,BLEU", *FEW, "-f", "json")
    assert result.code == 0, result.err
    assert [lines.count(text) for text in references] == [1] * len(references)
    assert sum(text.startswith("guess") for text in lines) == 10 * len(references)
    lexicon.clear()


def test_references_are_tokenized_once_for_all_systems(monkeypatch):
    _lexicon("13a").clear()
    references = [f"Word{n}, and number {n}." for n in range(50)]
    runs = {
        f"system {n}": lagging.Run.from_texts([f"guess{n}!"] * 50, reference=references, name=f"system {n}")
        for n in range(10)
    }
    lexicon, seen = _lexicon("13a"), []
    monkeypatch.setattr(
        lexicon, "tokenize", lambda piece, tokenize=lexicon.tokenize: seen.append(piece) or tokenize(piece)
    )
    lines = []
    monkeypatch.setattr(lexicon, "_encode", lambda texts, encode=lexicon._encode: lines.append(texts) or encode(texts))
    lagging.compare(runs, ["BLEU"], resamples=100)
    assert len(seen) == len(set(seen)), "no piece of text is tokenized twice"
    assert sum(texts == tuple(references) for texts in lines) == 1
    lexicon.clear()


def test_a_system_is_called_by_its_folder_too(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = Path(__file__).parents[2] / "docs" / "data" / "system-a" / "instances.log"
    for k in (3, 5):
        (tmp_path / f"wait_{k}").mkdir()
        (tmp_path / f"wait_{k}" / "instances.log").write_bytes(log.read_bytes())
        (tmp_path / f"c{k}.txt").write_text("".join(f"0.{k}{i}\n" for i in range(6)))
    columns = ("--column", "wait_3:COMET=c3.txt", "--column", "5:COMET=c5.txt")  # the names are 3 and 5
    done = run("compare", "wait_3", "wait_5", "-m", "DAL", *columns, "--resamples", "100", "-q", "--no-signatures")
    assert done.code == 0, done.err
    assert "COMET" in done.out
    done = run("report", "wait_3", "wait_5", "-m", "DAL", *columns, "--resamples", "100", "-q", "-o", "r.html")
    assert done.code == 0, done.err
