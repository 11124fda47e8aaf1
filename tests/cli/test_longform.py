# SPDX-License-Identifier: Apache-2.0
import base64
import importlib.util
import json
import re
import zlib
from pathlib import Path

import pytest
import sacrebleu

import lagging as lag
from lagging.comparison.regimes import REGIMES
from lagging.longform import ALIGNERS
from lagging.scoring.signature import ALIGNERS as NAMES

TALKS = {
    "a.wav": [(0.5, 2.0, "Guten Morgen, meine Damen."), (2.5, 2.0, "Heute reden wir über Zeit."), (5.0, 1.5, "Danke!")],
    "b.wav": [(0.0, 3.0, "Das Wetter ist schön."), (3.5, 2.5, "Morgen regnet es leider.")],
}
WRITTEN = {
    "a.wav": "Guten Morgen, Damen. Heute sprechen wir über die Zeit. Danke!",
    "b.wav": "Das Wetter war schön. Morgen regnet es.",
}


def write_talks(copies: int = 1) -> None:
    """A log of two talks, or of copies of them that are ever later, their segments and references."""
    entries, lines = [], []
    for copy in range(copies):
        for wav, segments in TALKS.items():
            name = wav if copies == 1 else f"{copy}{wav}"
            entries += [(name, *entry) for entry in segments]
            g = [1000.0 + 600.0 * t + 200.0 * copy for t in range(len(WRITTEN[wav].split()))]
            lines.append(
                {
                    "index": len(lines),
                    "prediction": WRITTEN[wav],
                    "delays": g,
                    "elapsed": [d + 50.0 * (t + 1) for t, d in enumerate(g)],
                    "prediction_length": len(g),
                    "reference": "",
                    "source": [f"/data/{name}", "samplerate: 16000 Hz"],
                    "source_length": 9000.0,
                }
            )
    yaml = [f"- {{duration: {x}, offset: {o}, speaker_id: s, wav: {wav}}}\n" for wav, o, x, _ in entries]
    Path("dev.yaml").write_text("".join(yaml), "utf-8")
    Path("dev.de").write_text("".join(f"{text}\n" for *_, text in entries), "utf-8")
    Path("talks.log").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


@pytest.fixture
def talks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with two talks."""
    monkeypatch.chdir(tmp_path)
    write_talks()
    return tmp_path


CUT = ("--segmentation", "dev.yaml", "--reference", "dev.de")


def test_the_command_line_knows_the_aligners():
    assert tuple(ALIGNERS) == NAMES


def test_resegment_writes_a_line_per_segment(run, talks):
    done = run("resegment", "talks.log", *CUT, "-o", "out.jsonl", "--moves", "moves.tsv")
    assert done.code == 0, done.err
    lines = [json.loads(line) for line in Path("out.jsonl").read_text("utf-8").splitlines()]
    assert [line["index"] for line in lines] == [0, 1, 2, 3, 4]
    assert [line["document"] for line in lines] == ["a.wav"] * 3 + ["b.wav"] * 2
    assert [line["prediction"] for line in lines] == [
        "Guten Morgen, Damen.",
        "Heute sprechen wir über die Zeit.",
        "Danke!",
        "Das Wetter war schön.",
        "Morgen regnet es.",
    ]
    assert lines[1]["delays"] == [300, 900, 1500, 2100, 2700, 3300]
    assert lines[1]["source_length"] == 2000
    assert lines[1]["seg"] == "timed"
    assert lines[2]["recording_end"] == 1500
    assert {"elapsed", "queue_times", "offset", "reference"} <= lines[0].keys()
    assert Path("moves.tsv").read_text("utf-8").startswith("recording\tplace\ttoken\ttime\tby_edits\tsegment\n")


def test_one_command_gives_what_two_do(run, talks):
    assert run("resegment", "talks.log", *CUT, "-o", "out.jsonl", "-q").code == 0
    once = run("score", "x=talks.log", *CUT, "-f", "json", "-q")
    twice = run("score", "x=out.jsonl", "-f", "json", "-q")
    assert once.code == twice.code == 0
    assert once.out == twice.out
    names = [score["metric"] for score in json.loads(once.out)["scores"]]
    assert names == ["LongYAAL", "StreamLAAL", "DAL", "StreamDAL", "BLEU"]
    assert "seg:timed" in json.loads(once.out)["scores"][0]["signature"]


@pytest.mark.parametrize("aligner", NAMES)
def test_the_signature_names_the_aligner(run, talks, aligner):
    done = run("score", "talks.log", *CUT, "--aligner", aligner, "-m", "StreamDAL", "-f", "json", "-q")
    (score,) = json.loads(done.out)["scores"]
    assert f"|seg:{aligner}|" in score["signature"]
    again = run("score", "talks.log", *CUT, "--like", score["signature"], "-f", "json", "-q")
    assert again.out == done.out


def test_the_aligner_of_omnisteval_is_named_where_its_convention_is_asked_for(run, talks):
    hint = "OmniSTEval cuts talks in its own way, so its numbers differ: --aligner omnisteval"
    asked = ("score", "talks.log", *CUT, "-m", "LongYAAL", "--convention", "omnisteval")
    assert hint in run(*asked).err
    assert hint not in run(*asked, "--aligner", "omnisteval").err
    assert hint not in run(*asked[:-2]).err


def test_clocks_are_those_of_the_whole_recording(run, talks):
    asked = "AL_y,AL_y(clock=elapsed),AL_y(clock=queue),AL_y(clock=fbk),AL_y(clock=omnisteval)"
    done = run("score", "talks.log", *CUT, "-m", asked, "-f", "json", "-q")
    ideal, elapsed, queue, fbk, omnisteval = (score["score"] for score in json.loads(done.out)["scores"])
    assert queue == pytest.approx(ideal + 50)  # a step takes 50 ms, and the next one comes after 600
    assert fbk == omnisteval == pytest.approx(queue)
    assert elapsed > queue + 100  # adds up


def test_intervals_are_by_recording_where_there_are_several(run, talks):
    few = run("score", "talks.log", *CUT, "-m", "LAAL", "--ci", "-f", "json")
    assert json.loads(few.out)["scores"][0]["low"] is None
    assert "LAAL: there is none: 2 documents: too few" in few.err
    write_talks(copies=4)
    done = run("score", "talks.log", *CUT, "-m", "LAAL", "--ci", "-f", "json", "-q")
    assert done.code == 0, done.err
    (score,) = json.loads(done.out)["scores"]
    assert "|by:document|" in score["signature"]
    by_segment = run("score", "talks.log", *CUT, "-m", "LAAL", "--ci", "--resample", "segment", "-f", "json", "-q")
    (other,) = json.loads(by_segment.out)["scores"]
    assert "|by:segment|" in other["signature"]
    assert other["low"] <= other["score"] <= other["high"]
    table = run("score", "talks.log", *CUT, "-m", "LAAL", "--ci", "--resample", "segment", "-q").out
    assert f"{other['score'] / 1000:.3f} [{other['low'] / 1000:.3f}, {other['high'] / 1000:.3f}]" in table


def test_a_regime_judges_with_an_interval(run, talks):
    alone = run("score", "talks.log", *CUT, "--regime", "iwslt26")
    assert "[no interval]: in low (up to 2 s), but not surely" in alone.out
    assert "LongYAAL: there is none: 2 documents: too few" in alone.err
    write_talks(copies=4)
    done = run("score", "talks.log", *CUT, "--regime", "iwslt26", "-f", "json", "-q")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    (verdict,) = found["regimes"]
    assert verdict["regime"] == "iwslt26"
    assert verdict["metric"] == "LongYAAL"
    assert verdict["limits"] == {"low": 2000.0, "high": 4000.0}
    assert verdict["band"] == "low"
    first = found["scores"][0]
    assert first["low"] is not None
    assert "|seg:omnisteval|" in first["signature"]
    assert "count:omnisteval" in first["signature"]
    for form in ("table", "markdown", "latex"):
        assert "in low (up to 2 s)" in run(
            "score", "talks.log", *CUT, "--regime", "iwslt26", "-f", form, "-q"
        ).out.replace("\\", "")


CHINESE = ("今天 我们 讨论 同声 传译 的 延迟", "谢谢 大家 今天 来 听 我 的 报告", "下 一 张 幻灯片 是 结果")
JAPANESE = ("今日は遅延について話します", "ありがとうございます", "次のスライドは結果です")


def write_foreign(texts: tuple[str, ...]) -> None:
    """A log of one talk in characters, its segments and references; the last character of each is another."""
    texts = tuple(text.replace(" ", "") for text in texts)
    written = "".join(f"{text[:-1]}々" for text in texts)
    g = [500.0 + 200.0 * t for t in range(len(written))]
    line = {"index": 0, "prediction": written, "delays": g, "elapsed": g, "source": ["/data/a.wav"]}
    Path("talks.log").write_text(json.dumps(line | {"source_length": 9000.0, "reference": ""}) + "\n", "utf-8")
    entries = "".join(f"- {{duration: 3, offset: {3 * n}, wav: a.wav}}\n" for n in range(len(texts)))
    Path("dev.yaml").write_text(entries, "utf-8")
    Path("dev.de").write_text("".join(f"{text}\n" for text in texts), "utf-8")


@pytest.mark.parametrize(("task", "quality"), [("iwslt25-en-zh", "BLEU(tok=zh)"), ("iwslt26", "BLEU(tok=zh)")])
def test_a_regime_counts_bleu_in_the_target_language(run, tmp_path, monkeypatch, task, quality):
    monkeypatch.chdir(tmp_path)
    write_foreign(CHINESE)
    done = run("score", "talks.log", *CUT, "--level", "char", "--regime", task, "-f", "json")
    assert done.code == 0, done.err
    _, bleu = json.loads(done.out)["scores"]
    assert bleu["metric"] == quality
    assert "|tok:zh|" in bleu["signature"]
    run("resegment", "talks.log", *CUT, "--level", "char", "-o", "cut.jsonl", "--aligner", REGIMES[task].aligner)
    rows = [json.loads(line) for line in Path("cut.jsonl").read_text("utf-8").splitlines()]
    written, references = ([row[name] for row in rows] for name in ("prediction", "reference"))
    assert bleu["score"] == sacrebleu.corpus_bleu(written, [references], tokenize="zh").score
    assert bleu["score"] > 60
    assert sacrebleu.corpus_bleu(written, [references]).score < 30


def test_a_regime_in_japanese_with_and_without_mecab(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_foreign(JAPANESE)
    installed = importlib.util.find_spec("MeCab") is not None
    done = run("score", "talks.log", *CUT, "--level", "char", "--regime", "iwslt25-en-ja", "-f", "json")
    assert done.code == 0, done.err
    latency, bleu = json.loads(done.out)["scores"]
    assert (latency["metric"], bleu["metric"]) == ("StreamLAAL", "BLEU(tok=ja-mecab)")
    assert latency["score"] is not None
    assert (bleu["score"] is not None) == installed
    assert ("pip install 'lagging[ja]'" in done.err) != installed


def test_a_regime_with_a_column(run, talks):
    run("resegment", "talks.log", *CUT, "-o", "cut.jsonl", "--aligner", "omnisteval")
    count = len(Path("cut.jsonl").read_text("utf-8").splitlines())
    Path("comet.txt").write_text("".join(f"0.{n + 1}\n" for n in range(count)))
    done = run("score", "talks.log", *CUT, "--regime", "iwslt26", "--column", "COMET=comet.txt", "-f", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert [s["metric"] for s in found["scores"]] == ["LongYAAL", "BLEU", "COMET"]
    comet = found["scores"][-1]
    assert comet["score"] == pytest.approx(sum(range(1, count + 1)) / count / 10)
    assert comet["n"] == count
    assert found["regimes"][0]["metric"] == "LongYAAL"
    Path("short.txt").write_text("0.5\n")
    short = run("score", "talks.log", *CUT, "--regime", "iwslt26", "--column", "COMET=short.txt")
    assert short.code == 1


def test_a_regime_whose_metric_cannot_be_computed_has_no_verdict(run, talks):
    Path("text.jsonl").write_text('{"delays": [1, 2], "source_length": 3, "prediction": "a b", "reference": "a c"}\n')
    done = run("score", "text.jsonl", "--regime", "iwslt26")
    assert done.code == 0
    assert "UNDEFINED: LongYAAL" in done.err
    assert "LongYAAL is undefined: no regime" in done.out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--aligner", "mwer"), "--segmentation and --reference"),
        (("--subset",), "--subset goes with --segmentation"),
        ((*CUT, "--regime", "iwslt26", "--aligner", "mwer"), "leave --like, --convention and --aligner out"),
        ((*CUT, "--regime", "iwslt26", "--convention", "paper"), "leave --like, --convention and --aligner out"),
        (("--resample", "segment"), "give --ci too"),
    ],
)
def test_options_that_make_no_sense(run, talks, more, said):
    done = run("score", "talks.log", *more)
    assert done.code == 2
    assert said in done.err


def test_resegment_needs_something_to_cut_by(run, talks):
    done = run("resegment", "talks.log", "-o", "out.jsonl")
    assert done.code == 2
    assert "--segmentation FILE and --reference FILE" in done.err
    done = run("resegment", "talks.log", "--segmentation", "dev.yaml", "-o", "out.jsonl")
    assert done.code == 1
    assert "no references to cut the stream by" in done.err
    done = run("resegment", "talks.log", *CUT, "-o", "talks.log")
    assert done.code == 2
    assert "would be written over" in done.err
    assert not Path("out.jsonl").exists()


def test_recordings_that_do_not_match(run, talks):
    Path("dev.yaml").write_text(Path("dev.yaml").read_text("utf-8").replace("b.wav", "c.wav"), "utf-8")
    done = run("score", "talks.log", *CUT)
    assert done.code == 1
    assert "c.wav" in done.err
    assert "b.wav" in done.err
    short = [line for line in Path("dev.yaml").read_text("utf-8").splitlines() if "a.wav" in line]
    Path("dev.yaml").write_text("\n".join(short) + "\n", "utf-8")
    Path("dev.de").write_text("".join(f"{text}\n" for *_, text in TALKS["a.wav"]), "utf-8")
    assert run("score", "talks.log", *CUT).code == 1
    done = run("score", "talks.log", *CUT, "--subset")
    assert done.code == 0
    assert "RECORDINGS LEFT ASIDE" in done.err


def test_offsets_in_milliseconds(run, talks):
    text = Path("dev.yaml").read_text("utf-8")
    for number in ("2.0", "2.5", "5.0", "1.5", "3.0", "3.5"):
        text = text.replace(f": {number},", f": {float(number) * 1000},")
    Path("dev.yaml").write_text(text, "utf-8")
    done = run("score", "talks.log", *CUT)
    assert done.code == 1
    assert "do not measure in the same unit" in done.err
    assert "dev.yaml" in done.err


def test_a_hypothesis_of_something_else(run, talks):
    other = Path("talks.log").read_text("utf-8").replace("Wetter war", "x y").replace("Morgen regnet es.", "q w e")
    Path("talks.log").write_text(other.replace("Das", "z").replace("schön.", "k"), "utf-8")
    done = run("score", "talks.log", *CUT)
    assert done.code == 0
    assert "UNRELATED TEXT: 1 recording (b.wav)" in done.err


def test_a_stream_of_reads_and_writes_with_its_text_beside_it(run, talks):
    Path("talk.rw").write_text("RRWRWRWRRWRWRWW\n", "utf-8")
    Path("talk.en").write_text("this is\ngood and that is bad\n", "utf-8")
    Path("ref.en").write_text("this is good\nand that is bad\n", "utf-8")
    Path("src.de").write_text("das ist gut\nund das ist schlecht auch\n", "utf-8")
    cut = ("--hypothesis", "talk.en", "--source", "src.de", "--reference", "ref.en")
    done = run("resegment", "talk.rw", *cut, "-o", "out.jsonl")
    assert done.code == 0, done.err
    segments = lag.read("out.jsonl")
    assert segments.unit == "token"
    assert segments.delays.tolist() == [[2, 3, 4], [3, 4, 5, 5]]
    assert segments.prediction.tolist() == ["this is good", "and that is bad"]
    assert segments.offset.tolist() == [0, 3]
    Path("talk.en").write_text("this is\n", "utf-8")
    done = run("resegment", "talk.rw", *cut, "-o", "out.jsonl")
    assert done.code == 1
    assert "7 delays, 2 words" in done.err


def test_references_for_a_log_that_has_none(run, talks):
    Path("two.txt").write_text(
        "Guten Morgen, Damen. Heute sprechen wir über die Zeit. Danke!\nDas Wetter war schön\n", "utf-8"
    )
    done = run("score", "talks.log", "--reference", "two.txt", "-m", "BLEU,AL(length=reference)", "-f", "json", "-q")
    assert done.code == 0, done.err
    bleu, al = json.loads(done.out)["scores"]
    assert bleu["score"] > 50
    assert "seg:none" in al["signature"]


def test_plain_text_is_cut_for_its_quality(run, talks):
    Path("hyp.txt").write_text("\n".join(WRITTEN.values()) + "\n", "utf-8")
    ids = [f"docid={d},segid={s}" for d, n in ((0, 3), (1, 2)) for s in range(n)]
    Path("ids.txt").write_text("\n".join(ids) + "\n", "utf-8")
    cut = ("--segmentation", "ids.txt", "--reference", "dev.de")
    done = run("resegment", "hyp.txt", "--format-in", "text", *cut, "-o", "out.jsonl")
    assert done.code == 0, done.err
    lines = [json.loads(line) for line in Path("out.jsonl").read_text("utf-8").splitlines()]
    assert [line["prediction"] for line in lines][3:] == ["Das Wetter war schön.", "Morgen regnet es."]
    assert "delays" not in lines[0]
    assert lines[0]["seg"] == "soft"
    done = run("score", "out.jsonl", "-f", "json", "-q")
    assert [score["metric"] for score in json.loads(done.out)["scores"]] == ["BLEU", "chrF"]
    done = run("score", "out.jsonl", "-m", "DAL")
    assert done.code == 1
    assert "needs delays" in done.err
    done = run("resegment", "hyp.txt", "--format-in", "text", *cut, "-o", "out.jsonl", "--aligner", "timed")
    assert done.code == 2
    assert "--aligner soft" in done.err


@pytest.mark.parametrize(
    "words",
    [
        ("score", "talks.log", *CUT, "-o", "dev.yaml"),
        ("score", "talks.log", *CUT, "--segment-scores", "dev.de"),
        ("score", "talks.log", *CUT, "-o", "x", "--segment-scores", "x"),
        ("resegment", "talks.log", *CUT, "-o", "dev.de", "--to", "jsonl"),
        ("resegment", "talks.log", *CUT, "-o", "x.jsonl", "--moves", "dev.yaml"),
        ("resegment", "talks.log", *CUT, "-o", "x.jsonl", "--moves", "x.jsonl"),
        ("resegment", "talks.log", *CUT, "-o", "x.jsonl", "--moves", "-"),
    ],
)
def test_nothing_that_is_read_is_written_over(run, talks, words):
    before = {file.name: file.read_bytes() for file in talks.iterdir()}
    done = run(*words)
    assert done.code == 2, done.out
    assert {file.name: file.read_bytes() for file in talks.iterdir()} == before


def test_references_for_rows_as_they_are(run, talks):
    Path("two.txt").write_text("eins\nzwei\n", "utf-8")
    done = run("resegment", "talks.log", "--reference", "two.txt", "-o", "out.jsonl")
    assert done.code == 2
    assert "there is nothing to cut" in done.err
    text = Path("talks.log").read_text("utf-8").replace('"reference": ""', '"reference": "drei"')
    Path("talks.log").write_text(text, "utf-8")
    assert "REFERENCES REPLACED" in run("score", "talks.log", "--reference", "two.txt").err


def test_a_field_that_is_no_number(run, talks):
    text = Path("dev.yaml").read_text("utf-8").replace("duration: 2.0", "duration: [1]", 1)
    Path("dev.yaml").write_text(text, "utf-8")
    done = run("score", "talks.log", *CUT)
    assert done.code == 1
    assert "dev.yaml:1" in done.err
    assert 'duration: ["1"]' in done.err


@pytest.mark.parametrize("metric", ["BLEU", "chrF", "TER"])
def test_quality_of_cut_segments_names_what_they_were_cut_by(run, talks, metric):
    Path("hyp.txt").write_text("\n".join(WRITTEN.values()) + "\n", "utf-8")
    Path("ids.txt").write_text("".join(f"{wav}\n" for wav, segments in TALKS.items() for _ in segments), "utf-8")

    def signed(*words):
        done = run("score", *words, "--reference", "dev.de", "-m", metric, "-f", "json", "-q")
        assert done.code == 0, done.err
        return json.loads(done.out)["scores"][0]["signature"]

    made = [
        signed("talks.log", "--segmentation", "dev.yaml"),
        signed("talks.log", "--segmentation", "ids.txt"),
        signed("talks.log", "--segmentation", "ids.txt", "--aligner", "mwer"),
        signed("hyp.txt", "--format-in", "text", "--segmentation", "ids.txt", "--level", "char"),
    ]
    by = [("ms", "word", "timed"), ("none", "word", "soft"), ("none", "word", "mwer"), ("none", "char", "soft")]
    fields = [lag.Signature.parse(signature) for signature in made]
    assert [(one["unit"], one["level"], one["seg"]) for one in fields] == by
    files = ("--segmentation", "ids.txt", "--reference", "dev.de")
    done = run("score", "hyp.txt", "--format-in", "text", *files, "--like", made[3], "-f", "json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["scores"][0]["signature"] == made[3]


def test_references_from_a_file_are_stripped_as_those_of_the_log_are(run, talks):
    write = [("a , b", "a b !"), ("c", "c d")]
    rows = [
        {"index": i, "delays": [100.0] * len(h.split()), "source_length": 900.0, "unit": "ms", "prediction": h}
        for i, (h, _) in enumerate(write)
    ]
    Path("own.jsonl").write_text(
        "".join(json.dumps({**row, "reference": r}) + "\n" for row, (_, r) in zip(rows, write, strict=True))
    )
    Path("bare.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("ref.txt").write_text("".join(f"{r}\n" for _, r in write))
    how = ("-m", "LAAL,BLEU", "--strip", "punctuation", "-f", "json")
    own, file = run("score", "own.jsonl", *how), run("score", "bare.jsonl", "--reference", "ref.txt", *how)
    assert own.code == file.code == 0, file.err
    one, other = (json.loads(done.out)["scores"] for done in (own, file))
    assert [(s["score"], s["signature"]) for s in one] == [(s["score"], s["signature"]) for s in other]


def test_references_of_segments_are_stripped_as_the_stream_is(run, talks):
    text = Path("dev.de").read_text("utf-8").replace("Danke!", "Danke !")
    Path("dev.de").write_text(text, "utf-8")
    done = run("resegment", "talks.log", *CUT, "--strip", "punctuation", "-o", "out.jsonl")
    assert done.code == 0, done.err
    assert "stripped: 1 token" in done.err
    assert [json.loads(line)["reference"] for line in Path("out.jsonl").read_text("utf-8").splitlines()][2] == "Danke"


def test_a_kind_that_cannot_be_stripped_is_told_before_anything_is_read(run, talks):
    Path("talks.log").write_text("{", "utf-8")
    done = run("score", "talks.log", *CUT, "--strip", "words")
    assert done.code == 2
    assert "there is no kind of token 'words'" in done.err


# ---- what was not cut ---------------------------------------------------------------------------------------------

LOUD = "WHOLE RECORDINGS: 2 segments (0, 1): "
CUTS = "lagging score LOG --segmentation FILE --reference FILE"


@pytest.fixture
def uncut(tmp_path, monkeypatch):
    """Two systems on two talks of three minutes, a line per talk, and their segments."""
    monkeypatch.chdir(tmp_path)
    for name, late in (("a", 0), ("b", 900)):
        lines = [
            {
                "index": talk,
                "prediction": "Guten Tag! Ich heiße Eva.",
                "delays": [1000 + late, 2000 + late, 90_000 + late, 91_000 + late, 92_000 + late],
                "source": [f"{talk}.wav"],
                "source_length": 180_000.0,
            }
            for talk in range(2)
        ]
        Path(f"{name}.log").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    entries = [{"wav": f"{t}.wav", "offset": o, "duration": 90.0} for t in range(2) for o in (0.0, 90.0)]
    Path("dev.json").write_text(json.dumps(entries))
    Path("dev.de").write_text("Guten Tag!\nIch heiße Eva.\n" * 2, "utf-8")


@pytest.mark.parametrize(
    "command",
    [
        ["score", "a.log"],
        ["score", "a.log", "-m", "AL", "--ci"],
        ["compare", "a.log", "b.log", "-m", "AL"],
        ["report", "a.log", "b.log", "-o", "page.html"],
        ["validate", "a.log"],
        ["validate", "a.log", "-f", "json"],
        ["convert", "a.log", "-o", "a.csv"],
    ],
    ids=" ".join,
)
def test_whole_recordings_that_are_not_cut_are_told_of_in_every_command(command, uncut, run):
    code, out, err = run(*command)
    assert code == 0
    told = out + err
    if command[-1] == "json":
        (note,) = json.loads(out)["logs"][0]["notes"]
        told = f"{note['kind']}: {note['count']} segments ({', '.join(map(str, note['segments']))}): {note['text']}"
    assert LOUD in told
    assert CUTS in told
    if command[0] == "report":
        packed = re.search(r'<script id="data"[^>]*>([^<]+)</script>', Path("page.html").read_text("utf-8"))
        systems = json.loads(zlib.decompress(base64.b64decode(packed[1])))["systems"]
        assert all("WHOLE RECORDINGS" in str(one["notes"]) for one in systems)


@pytest.mark.parametrize("command", [["score", "a.log"], ["compare", "a.log", "b.log", "-m", "AL"]], ids=" ".join)
def test_whole_recordings_that_are_cut_get_no_warning(command, uncut, run):
    code, out, err = run(*command, "--segmentation", "dev.json", "--reference", "dev.de")
    assert code == 0
    assert "WHOLE RECORDINGS" not in out + err
