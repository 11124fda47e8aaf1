# SPDX-License-Identifier: Apache-2.0
"""Runs without times: their text can be judged, and nothing else."""

import json
from dataclasses import replace

import numpy as np
import pytest
import sacrebleu
from click.testing import CliRunner

import lagging
from lagging.cli import cli
from lagging.errors import DataError, MetricError, UsageError
from lagging.formats import FORMATS
from lagging.longform.recordings import check_units, match, streams
from lagging.longform.segmentation import Segmentation
from lagging.metrics import registered
from lagging.render.timeline import timeline

HYPOTHESES = ["see you  soon", "", "no </s>"]
REFERENCES = ["see you soon", "never", "not yet"]
NOTE = "no delays: only the text can be judged"


def texts(**more):
    return lagging.Run.from_texts(HYPOTHESES, reference=REFERENCES, name="base", **more)


def said(run):
    return [str(note) for note in run.notes]


@pytest.fixture
def log(tmp_path):
    def write(content, name="a.jsonl"):
        rows = content if isinstance(content, str) else "".join(json.dumps(row) + "\n" for row in content)
        (tmp_path / name).write_bytes(rows.encode())
        return tmp_path / name

    return write


def lines(*more, **common):
    pairs = zip(HYPOTHESES, REFERENCES, strict=True)
    return [{"prediction": text, "reference": reference, **common} for text, reference in pairs] + list(more)


def call(*args):
    return CliRunner().invoke(cli, [str(arg) for arg in args])


# ---- from Python --------------------------------------------------------------------------------------------------


def test_there_is_a_time_for_every_token_and_it_is_not_known():
    run = texts()
    assert run.delays.lengths.tolist() == [3, 0, 2]
    assert np.isnan(run.delays.values).all()
    assert np.isnan(run.source_length).all()
    assert (run.unit, run.level, run.seg) == ("none", "word", "none")
    assert repr(run) == "Run('base', 3 segments, 5 words, no times)"
    assert run.columns == ("id", "prediction", "reference")
    assert said(run) == [NOTE, "empty hypothesis: 1 segment (1): nothing was written"]


def test_the_notes_follow_the_segments():
    run = texts()
    assert said(run[:1]) == [NOTE]
    assert said(lagging.Run.concat([run[:1], run[1:]])) == said(run)


@pytest.mark.parametrize(
    ("predictions", "level", "lengths"),
    [
        (["你好 吗", "好", "OK then"], "char", [3, 1, 6]),
        (["你好 吗", "good day", "OK then"], "word", [2, 2, 2]),
        ([None, ""], "word", [0, 0]),
    ],
)
def test_characters_where_most_texts_have_no_spaces(predictions, level, lengths):
    run = lagging.Run.from_texts(predictions)
    assert (run.level, run.delays.lengths.tolist()) == (level, lengths)
    assert lagging.Run.from_texts(["你好"], level="word").delays.lengths.tolist() == [1]
    assert said(lagging.Run.from_texts(["你好"], level="word")) == [NOTE]


def test_every_fault_at_once():
    with pytest.raises(DataError) as error:
        lagging.Run.from_texts(["a", 7], reference=["\ud800"], document=[3, "b"])
    assert [(f.kind, f.detail) for f in error.value.faults] == [
        ("length-mismatch", "reference has 1 entries, prediction 2"),
        ("not-utf8", "half of a surrogate pair in reference[0]"),
        ("bad-value", "document[0] is 3, not text"),
        ("bad-value", "prediction[1] is 7, not text"),
    ]
    with pytest.raises(DataError) as error:
        lagging.Run.from_texts(["a", "b", "c"], id=["x", "x", "x"])
    assert error.value.counts == {"duplicate-id": 2}
    with pytest.raises(DataError, match="not a number or a string"):
        lagging.Run.from_texts(["a"], id=[1.5])


def test_what_makes_no_sense():
    with pytest.raises(UsageError, match="a list of texts"):
        lagging.Run.from_texts("a text")
    with pytest.raises(UsageError, match="not known how many tokens of its own"):
        lagging.Run.from_texts(["a"], level="token")
    with pytest.raises(UsageError, match="level must be one of"):
        lagging.Run.from_texts(["a"], level="words")
    with pytest.raises(UsageError, match="unit must be 'token' or 'ms'"):
        lagging.Run.from_delays([[np.nan]], source_length=[np.nan], unit="none")


# ---- scores -------------------------------------------------------------------------------------------------------


def test_quality_is_that_of_sacrebleu():
    bare = ["see you  soon", "", "no"]
    scores = lagging.score(texts(), ["BLEU", "chrF", "TER"])
    assert scores["BLEU"].value == sacrebleu.corpus_bleu(bare, [REFERENCES], force=True).score
    assert scores["chrF"].value == sacrebleu.corpus_chrf(bare, [REFERENCES]).score
    assert scores["TER"].value == sacrebleu.corpus_ter(bare, [REFERENCES]).score
    assert "</s>: 1 segment: the hypothesis ends in it: stripped" in map(str, scores.notes)
    assert NOTE in map(str, scores.notes)


def test_quality_and_its_signature_do_not_depend_on_delays():
    timed = lagging.Run.from_delays(
        [[1, 2, 3], [], [1, 2]], source_length=[3, 3, 3], prediction=HYPOTHESES, reference=REFERENCES
    )
    for convention in ("paper", "simuleval", "omnisteval"):
        pairs = [lagging.score(run, ["BLEU", "chrF", "TER"], convention=convention) for run in (timed, texts())]
        for one, other in zip(*pairs, strict=True):
            assert (one.value, str(one.signature)) == (other.value, str(other.signature))
            assert one.segments.tobytes() == other.segments.tobytes()


TIMED = [m.name for m in registered() if m.has("clock") or "tokens" in m.needs]


@pytest.mark.parametrize("name", TIMED)
def test_no_metric_of_time(name):
    with pytest.raises(MetricError, match=rf"^{name} of base: it needs delays, and this log has none\n  fix: "):
        lagging.score(texts(), [name])


def test_every_metric_is_of_time_or_of_something_else():
    run = texts()
    rest = [m.name for m in registered() if m.name not in TIMED]
    assert {"AP", "AL", "DAL", "LBLEU", "RTF", "StreamLAAL"} <= set(TIMED)
    for name in rest:
        if name in ("BLEU", "chrF", "chrF++", "TER", "WER", "CER"):
            assert lagging.score(run, [name])[name].value >= 0
        else:
            with pytest.raises(MetricError, match=r"it needs `|there are no times of source and reference"):
                lagging.score(run, [name])


def test_what_was_erased_needs_no_times(log):
    rows = [{"prediction": "a b c", "erased": 2, "revisions": 1}, {"prediction": "d", "erased": 0, "revisions": 0}]
    run = lagging.read(log(rows))
    scores = lagging.score(run, ["NormalizedErasure", "Erased", "Flicker"])
    assert [score.value for score in scores] == [0.5, 2, 2]
    assert scores["NormalizedErasure"].signature["level"] == "word"
    assert scores["NormalizedErasure"].signature.get("unit") is None


def test_timed_and_untimed_segments_are_not_averaged():
    timed = lagging.Run.from_delays([[1]], source_length=[1], prediction=["a"], id=["z"])
    with pytest.raises(UsageError, match="these runs differ in unit: none, token"):
        lagging.Run.concat([texts(), timed])


def test_no_timeline():
    with pytest.raises(MetricError, match="there are no delays in base"):
        timeline(texts(), 0)


def test_tokens_can_be_stripped():
    bare = lagging.strip(lagging.Run.from_texts(["well , yes </s>"], reference=["yes !"]), ["eos", "punctuation"])
    assert (bare.prediction.tolist(), bare.reference.tolist()) == (["well yes"], ["yes"])
    assert bare.delays.lengths.tolist() == [2]
    assert said(bare).count(NOTE) == 1


# ---- JSON lines and tables ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("common", "format"),
    [({}, "jsonl"), ({"docid": 0, "segid": 0}, "omnisteval")],
)
def test_lines_without_delays(log, common, format):
    run = lagging.read(log(lines(**common)))
    assert (run.unit, run.level, run.origin.format) == ("none", "word", format)
    assert "text without delays, target counted in words" in run.origin.description
    assert said(run) == [NOTE, "empty hypothesis: 1 segment (1): nothing was written"]
    assert run.delays.lengths.tolist() == [3, 0, 2]


def test_a_simuleval_log_without_delays(log):
    run = lagging.read(log([{"index": i, **row} for i, row in enumerate(lines())], "instances.log"))
    assert (run.unit, run.origin.format, run.prediction.tolist()) == ("none", "simuleval", HYPOTHESES)


def test_a_table_without_delays(log):
    for separator, name in ((",", "a.csv"), ("\t", "a.tsv")):
        run = lagging.read(log(separator.join(["hyp", "ref"]) + "\n" + separator.join(["a b", "a c"]) + "\n", name))
        assert (run.unit, run.prediction.tolist(), run.reference.tolist()) == ("none", ["a b"], ["a c"])
        assert said(run) == [NOTE]


def test_a_column_that_may_be_the_delays_misspelt_is_still_a_fault(log):
    with pytest.raises(DataError, match="no `delays`, but `dealys`"):
        lagging.read(log("dealys,source_length,prediction\n1,2,a\n", "a.csv"))


def test_nothing_in_the_column_of_delays(log):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = log("", "a.parquet")
    nothing = {"delays": pa.nulls(2, pa.list_(pa.float64())), "source_length": pa.nulls(2)}
    pq.write_table(pa.table({**nothing, "prediction": ["a b", None]}), path)
    run = lagging.read(path)
    assert (run.unit, run.delays.lengths.tolist(), run.prediction.tolist()) == ("none", [2, 0], ["a b", None])
    table = {"prediction": pa.array([b"a b", b"\xff"]), "id": [4, 5]}
    pq.write_table(pa.table(table), path)
    with pytest.raises(DataError) as error:
        lagging.read(path)
    assert [(f.kind, f.line, f.segment) for f in error.value.faults] == [("not-utf8", 2, 5)]


def test_times_that_are_of_no_use_are_named(log):
    run = lagging.read(log(lines(source_length=5, elapsed=[1, 2])))
    assert run.elapsed is None
    assert np.isnan(run.source_length).all()
    assert said(run)[0] == "column left out: source_length, elapsed: there are no delays"


def test_where_nothing_was_written_delays_are_not_missed(log):
    """As ever: with a source length, these are empty hypotheses of a log with times."""
    run = lagging.read(log([{"prediction": "", "source_length": 5}] * 2))
    assert (run.unit, run.source_length.tolist()) == ("token", [5, 5])
    assert lagging.read(log([{"prediction": "", "reference": "a"}] * 2)).unit == "none"


def test_some_lines_with_delays_and_some_without(log):
    with pytest.raises(DataError) as error:
        lagging.read(log(lines({"prediction": "a", "delays": [1], "source_length": 2})))
    counts = error.value.counts
    assert (counts["missing-delays"], counts["missing-source-length"]) == (2, 3)


def test_delays_that_come_late(log):
    rows = [{"id": i, "prediction": "a b"} for i in range(30_000)]
    late = {"id": "late", "prediction": "a b", "delays": [1, 2], "source_length": 2}
    found = lagging.validate(log([*rows, late]))
    assert [(f.kind, f.line, f.segment) for f in found.faults] == [("extra-delays", 30_001, "late")]
    assert found.segments == 30_000


def test_a_line_without_a_prediction(log):
    found = lagging.validate(log(lines({"reference": "a"}, {"prediction": None, "reference": "a"})))
    assert [(f.kind, f.line) for f in found.faults] == [("missing-prediction", 4)]


@pytest.mark.parametrize(("unit", "kind"), [("ms", "missing-delays"), ("token", "missing-delays")])
def test_a_log_that_says_its_unit_has_delays(log, unit, kind):
    for common, how in (({"unit": unit}, {}), ({}, {"unit": unit}), ({"unit": "none"}, {"unit": unit})):
        with pytest.raises(DataError) as error:
            lagging.read(log(lines(**common)), **how)
        assert error.value.counts[kind] == 2


def test_a_log_that_says_that_it_has_none(log):
    with pytest.raises(DataError) as error:
        lagging.read(log(lines({"prediction": "a", "delays": [1], "source_length": 2}, unit="none")))
    assert error.value.counts == {"extra-delays": 1}
    with pytest.raises(UsageError, match="unit must be 'token', 'ms' or 'none', but is 'seconds'"):
        lagging.read(log(lines(unit="seconds")))


def test_sound_without_delays_stays_a_fault(log):
    with pytest.raises(DataError) as error:
        lagging.read(log([{"prediction": "a.wav", "durations": [300], "source_length": 900}]))
    assert error.value.counts == {"missing-delays": 1}


def test_the_level_can_be_set(log):
    assert lagging.read(log(lines()), level="char").delays.lengths.tolist() == [10, 0, 3]
    with pytest.raises(UsageError, match=r"a\.jsonl: without delays it is not known"):
        lagging.read(log(lines()), level="token")


def test_a_log_is_read_in_parts(log):
    rows = [{"prediction": "a b", "reference": "a b"} for _ in range(40_000)]
    parts = list(lagging.scan(log(rows)))
    assert len(parts) > 1
    assert lagging.score(iter(parts), ["BLEU"])["BLEU"].n == 40_000
    assert said(lagging.Run.concat(parts)) == [NOTE]


def test_logs_with_and_without_delays_are_not_one(log, tmp_path):
    log(lines())
    log([{"id": 9, "prediction": "a", "delays": [1], "source_length": 2}], "b.jsonl")
    with pytest.raises(DataError) as error:
        lagging.read([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert error.value.counts == {"mixed-unit": 1}


# ---- plain text ---------------------------------------------------------------------------------------------------


def test_plain_text(log):
    path = log("guten Tag\n\n  ja \r\nnein", "hyp.txt")
    run = lagging.read(path, format="text")
    assert run.prediction.tolist() == ["guten Tag", "", "  ja ", "nein"]
    assert (run.id.tolist(), run.line.tolist()) == ([0, 1, 2, 3], [1, 2, 3, 4])
    assert (run.name, run.unit, run.level) == ("hyp", "none", "word")
    assert run.origin.description == "plain text, text without delays, target counted in words"
    assert lagging.read(log("你好\n", "hyp.txt"), format="text").level == "char"


def test_plain_text_is_read_only_if_asked_for(log):
    with pytest.raises(UsageError, match=r"is not recognised[^$]*`text` is a prediction per line"):
        lagging.read(log("guten Tag\n", "hyp.txt"))
    assert not any(FORMATS["text"].recognises(head) for head in (b"guten Tag\n", b"", b"text\n"))


def test_lines_that_are_no_text(log, tmp_path):
    path = tmp_path / "hyp.txt"
    path.write_bytes(b"a\n\xe9t\xe9\nb\nb\xff")
    with pytest.raises(DataError) as error:
        lagging.read(path, format="text")
    assert [(f.kind, f.line, f.detail) for f in error.value.faults] == [
        ("not-utf8", 2, "byte 1 is 0xe9"),
        ("not-utf8", 4, "byte 2 is 0xff"),
    ]
    with pytest.raises(DataError, match="holds no segments"):
        lagging.read(log("", "hyp.txt"), format="text")
    with pytest.raises(UsageError, match="leave unit= out"):
        lagging.read(log("a\n", "hyp.txt"), format="text", unit="ms")


def test_two_files_of_plain_text(log, tmp_path):
    log("a\nb\n", "1.txt")
    log("c\n", "2.txt")
    assert lagging.read(tmp_path / "*.txt", format="text").id.tolist() == [0, 1, 2]


def test_writing_plain_text(tmp_path):
    path = tmp_path / "hyp.txt"
    assert lagging.write(texts(), path, format="text") == ["reference"]
    assert path.read_bytes() == b"see you  soon\n\nno </s>\n"
    timed = lagging.Run.from_delays([[-1, 2]], source_length=[3], prediction=["a b"], id=["x"], unit="ms", seg="given")
    lost = lagging.write(timed, path, format="text")
    assert lost == ["id", "delays", "source_length", "seg (given, read back as none)"]
    assert path.read_text() == "a b\n"
    lost = lagging.write(lagging.Run.from_texts(["\ufeffa", None], level="char"), path, format="text")
    assert [entry.partition(" (")[0] for entry in lost] == ["prediction", "prediction", "level"]
    sound = lagging.Run.from_delays([[1.0]], source_length=[2.0], prediction=["a.wav"], durations=[[3.0]], unit="ms")
    for run, why in ((sound, "is speech"), (lagging.Run.from_delays([[1]], source_length=[2]), "this Run has none")):
        with pytest.raises(UsageError, match=why):
            lagging.write(run, path, format="text")


def test_a_line_break_in_plain_text(tmp_path):
    with pytest.raises(DataError) as error:
        lagging.write(lagging.Run.from_texts(["a\nb", "c", "\rd"]), tmp_path / "hyp.txt", format="text")
    assert [(f.kind, f.segment, f.detail) for f in error.value.faults] == [
        ("line-break", 0, "'a\\nb'"),
        ("line-break", 2, "'\\rd'"),
    ]
    assert not (tmp_path / "hyp.txt").exists()


# ---- other formats ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["rw", "simulstream", "sltev", "fairseq"])
def test_formats_that_cannot_be_without_delays(format, tmp_path):
    with pytest.raises(
        UsageError, match=f"the format {format} holds delays, and this Run has none\n  fix: write jsonl"
    ):
        lagging.write(texts(), tmp_path / "a", format=format)
    assert not FORMATS[format].untimed


@pytest.mark.parametrize("format", [name for name, known in FORMATS.items() if known.untimed])
def test_formats_that_can(format, tmp_path):
    again = lagging.Run.from_texts(HYPOTHESES)
    lagging.write(texts(document=["0"] * 3), tmp_path / "a", format=format)
    found = lagging.read(tmp_path / "a", format=format)
    assert (found.unit, found.level, found.prediction.tolist()) == ("none", "word", HYPOTHESES)
    assert found.delays.offsets.tolist() == again.delays.offsets.tolist()
    if not FORMATS[format].binary:
        assert not {"delays", "source_length", "emission_cu", "elapsed"} & set((tmp_path / "a").read_text().split('"'))


# ---- recordings ---------------------------------------------------------------------------------------------------


def test_rows_of_a_recording_are_put_together_without_times():
    rows = lagging.Run.from_texts(["good day", "well", "bye"], document=["a", "a", "b"])
    whole = streams(replace(rows, offset=np.array([5.0, 0.0, 0.0])))
    assert whole.prediction.tolist() == ["well good day", "bye"]
    assert (whole.unit, whole.delays.lengths.tolist()) == ("none", [3, 1])
    assert np.isnan(whole.source_length).all()
    assert said(whole) == [NOTE]


def test_times_of_a_segmentation_are_not_compared_with_none():
    run = lagging.Run.from_texts(["a b"], document=["a"])
    cut = Segmentation.from_lists(["a"], [0], [9_000_000])
    assert check_units(run, cut, match(run, cut)) == []


# ---- the command line ---------------------------------------------------------------------------------------------


def test_the_command_line_scores_the_text_alone(log):
    done = call("score", log(lines()), "-f", "json")
    assert done.exit_code == 0
    assert [row["metric"] for row in json.loads(done.stdout)["scores"]] == ["BLEU", "chrF"]
    assert "text without delays" in done.stderr
    assert NOTE in done.stderr
    assert "SimulEval's convention" not in done.stderr
    signature = json.loads(done.stdout)["scores"][0]["signature"]
    again = call("score", log(lines()), "-f", "json", "--like", signature)
    assert json.loads(again.stdout)["scores"] == json.loads(done.stdout)["scores"][:1]


def test_the_command_line_without_references(log):
    failed = call("score", log("a b\n", "hyp.txt"), "--format-in", "text")
    assert isinstance(failed.exception, MetricError)
    assert "neither delays nor references" in str(failed.exception)
    failed = call("score", log(lines()), "-m", "AL")
    assert "it needs delays, and this log has none" in str(failed.exception)
    done = call("score", log(lines()), "-m", "AL,BLEU", "-f", "json")
    assert "UNDEFINED: AL: it needs delays, and this log has none" in done.stderr
    assert [score["undefined"] for score in json.loads(done.stdout)["scores"]] == [3, 0]


def test_the_command_line_validates_and_converts(log, tmp_path):
    done = call("validate", log(lines()))
    assert done.exit_code == 0
    assert f"note: {NOTE}" in done.stdout
    assert "3 segments, no faults" in done.stdout
    done = call("convert", log(lines()), "-o", tmp_path / "hyp.txt", "--to", "text")
    assert done.exit_code == 0
    assert "this format cannot hold: reference" in done.stderr
    done = call("convert", tmp_path / "hyp.txt", "--format-in", "text", "-o", tmp_path / "b.csv", "-q")
    assert done.exit_code == 0
    assert lagging.read(tmp_path / "b.csv").prediction.tolist() == HYPOTHESES
    failed = call("convert", log(lines()), "-o", tmp_path / "a.rw")
    assert isinstance(failed.exception, UsageError)


def test_the_command_line_inspects_nothing(log):
    failed = call("inspect", log(lines()))
    assert "there are no delays in" in str(failed.exception)
    assert call("inspect", log(lines()), "--empty").stdout == "1\n"
