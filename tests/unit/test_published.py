# SPDX-License-Identifier: Apache-2.0
import io
import json
import math
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lagging
from lagging.comparison.published import layouts
from lagging.comparison.published.labels import find_metric, number
from lagging.errors.catalogue import KINDS
from lagging.errors.remedies import for_python
from lagging.render import render

TSV = "BLEU\tLAAL\tAL\tAP\n18.227\t1857.713\t1803.919\t0.795\n"
VALUES = {"BLEU": 18.227, "LAAL": 1857.713, "AL": 1803.919, "AP": 0.795}

REPORT = """\
================================================================
OmniSTEval v0.1.9  |  Longform evaluation (with resegmentation)
================================================================

Settings
----------------------------------------------------------------
  Hypothesis         a  file  with gaps.log
  BLEU tokenizer     zh
  Fix CA emissions   yes
  Empty

Scores
----------------------------------------------------------------
  BLEU                                   26.7151
  COMET                                  0.7358
  LongYAAL (CU)                          2171.7749
  LongAL (CU)                            nan
  LongAL (CA)                            2747.8521
  Degeneracy Test Value                  48.2040
  Likely Degenerate Simultaneous Policy  YES

  *** Likely Degenerate Simultaneous Policy ***

Instance-level Details
----------------------------------------------------------------
Empty Predictions: 15
Total Instances:   2641

Instances with empty predictions:
----------------------------------------------------------------
Instance 115 with reference 'BLEU  3' has an empty prediction.
================================================================
"""


@pytest.fixture
def read(tmp_path):
    """Reads text, or bytes, as a score file."""

    def call(content, name="system.tsv", **options):
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return lagging.read_scores(file, **options)

    return call


@pytest.fixture
def refused(read):
    """The faults of a score file, as pairs of kind and line."""

    def call(content, name="system.tsv"):
        with pytest.raises(lagging.DataError) as error:
            read(content, name)
        assert all(fault.path and fault.path.endswith(name) for fault in error.value.faults)
        assert all(for_python(KINDS[fault.kind][2]) in str(error.value) for fault in error.value.faults)
        return [(fault.kind, fault.line) for fault in error.value.faults]

    return call


def values(scores):
    return {s.metric: s.score for s in scores}


def same(one, other):
    return one.keys() == other.keys() and all(repr(one[key]) == repr(other[key]) for key in one)


# ---- OmniSTEval -------------------------------------------------------------------------------------------------


def test_a_name_and_a_value_per_line(read):
    scores = read("metric\tvalue\nBLEU\t18.2271\nAL (CU)\t1803.9192\nLongAP (CA)\t0.8903\nSomething New\t-1e-3\n")
    assert [(s.label, s.metric, s.score, s.unit, s.line) for s in scores] == [
        ("BLEU", "BLEU", 18.2271, "points", 2),
        ("AL (CU)", "AL", 1803.9192, "ms", 3),
        ("LongAP (CA)", "AP(clock=elapsed)", 0.8903, "ratio", 4),
        ("Something New", "Something New", -0.001, None, 5),
    ]
    assert {(s.system, s.tool, s.version, s.settings, s.signature) for s in scores} == {
        ("system", "OmniSTEval", None, (), None)
    }
    with pytest.raises(FrozenInstanceError):
        scores[0].score = 3.0


def test_the_report_has_version_and_settings_and_they_count(read):
    scores = read(REPORT, "r.txt")
    got = {s.label: (s.metric, s.score) for s in scores}
    assert math.isnan(got.pop("LongAL (CU)")[1])
    assert got == {
        "BLEU": ("BLEU(tok=zh)", 26.7151),
        "COMET": ("COMET", 0.7358),
        "LongYAAL (CU)": ("LongYAAL", 2171.7749),
        "LongAL (CA)": ("AL(clock=elapsed)", 2747.8521),
        "Degeneracy Test Value": ("DSPTV", 48.204),
    }
    assert {s.version for s in scores} == {"0.1.9"}
    assert dict(scores[0].settings) == {
        "Hypothesis": "a  file  with gaps.log",
        "BLEU tokenizer": "zh",
        "Fix CA emissions": "yes",
        "Empty": "",
    }
    assert [s.line for s in scores] == [14, 15, 16, 17, 18, 19]


def test_a_report_as_it_was_printed_or_pasted(read):
    plain = [(s.metric, s.line) for s in read(REPORT)]
    assert [(s.metric, s.line) for s in read(REPORT.replace("\n", "\r\n"))] == plain
    assert [(s.metric, s.line) for s in read("".join(f"    {line}   \n" for line in REPORT.split("\n")))] == plain
    warned = read("Instance 3 has no emission timestamps. Skipped.\n" + REPORT)
    assert [(s.metric, s.line - 1) for s in warned] == plain


def test_two_reports_in_one_file(refused):
    assert {kind for kind, _ in refused(REPORT + REPORT)} == {"repeated-metric"}


def test_a_report_without_scores(refused):
    assert refused(REPORT.partition("Scores\n")[0]) == [("no-scores", None)]


def test_only_the_verdict_is_skipped_and_only_under_its_label(read, refused):
    verdict = "Likely Degenerate Simultaneous Policy\t{}\n"
    for value in ("YES", "NO", "N/A", "nan"):
        assert values(read("metric\tvalue\nBLEU\t1\n" + verdict.format(value))) == {"BLEU": 1.0}
    assert refused("metric\tvalue\nBLEU\t1\nAnother Verdict\tYES\n") == [("bad-score", 3)]
    assert refused("metric\tvalue\n" + verdict.format("NO")) == [("no-scores", None)]


@pytest.mark.parametrize("row", ["AL (CU)", "AL (CU)\t1\t2", "\t3", "AL (CU) 3"])
def test_a_row_that_is_no_name_and_value(refused, row):
    assert refused(f"metric\tvalue\nBLEU\t1\n{row}\n") == [("score-cells", 3)]


# ---- SimulEval --------------------------------------------------------------------------------------------------


def test_a_row_of_names_and_a_row_of_values(read):
    scores = read(TSV)
    assert values(scores) == VALUES
    assert {(s.tool, s.line, s.system) for s in scores} == {("SimulEval", 2, "system")}
    assert [s.unit for s in scores] == ["points", None, None, "ratio"]


@pytest.mark.parametrize(("kind", "unit"), [("text", "token"), ("speech", "ms"), ("youtube", None)])
def test_the_unit_of_time_is_in_the_config(read, tmp_path, kind, unit):
    (tmp_path / "config.yaml").write_text(f"source_type: {kind}\ntarget_type: speech\n", "utf-8")
    assert {s.metric: s.unit for s in read(TSV)} == {"BLEU": "points", "LAAL": unit, "AL": unit, "AP": "ratio"}


@pytest.mark.parametrize(
    "content",
    [
        "     BLEU      LAAL        AL     AP\n0  18.227  1857.713  1803.919  0.795\n",
        " BLEU     LAAL       AL    AP\n18.227 1857.713 1803.919 0.795",
        "\tBLEU\tLAAL\tAL\tAP\n0\t18.227\t1857.713\t1803.919\t0.795\n",
        "\n\n  BLEU LAAL AL AP  \n\n" + " " * 5000 + "18.227 1857.713" + " " * 5000 + "1803.919 +0.795   \n\n",
        "BLEU\tLAAL\tAL\tAP\t\n18.227\t1857.713\t1803.919\t79.5 %\t\t\n",
        "BLEU LAAL AL AP\n18.227% 1.857713e3 1803.919 .795\n",
        "     BLEU      LAAL  \\\n0  18.227  1857.713   \n\n         AL     AP  \n0  1803.919  0.795  \n",
        "     BLEU      LAAL        AL     AP\n0  18.227  1857.713  1803.919  0.795\n\n[1 rows x 4 columns]\n",
    ],
    ids=["indexed", "plain", "indexed TSV", "blanks", "percent", "notation", "wrapped", "counted"],
)
@pytest.mark.parametrize(
    "change", [str, lambda s: s.replace("\n", "\r\n"), lambda s: "\ufeff" + s], ids=["", "CRLF", "BOM"]
)
def test_layouts(read, content, change):
    got = values(read(change(content)))
    assert got == pytest.approx(VALUES, rel=1e-15)
    assert list(got) == list(VALUES)


def test_what_was_said_before_the_table_is_skipped(read):
    said = (
        "2024-06-06 09:45:56 | WARNING  | simuleval.scorer | Beta feature: AL\n"
        "Transcribing: 100%|████| 2/2 [00:01<00:00,  1.63it/s]\n"
        "2022-12-05 13:43:58 | INFO | simuleval.sentence_level_evaluator | Results:\n"
        " ASR_BLEU       AL    AL_CA  StartOffset_CA  MyOwn  RTF_CA\n"
        "   15.448 1724.895 2913.508        2213.906      1   1.326\n"
        "\nreal 0m1.0s\n"
    )
    scores = read(said)
    assert values(scores) == {
        "ASR_BLEU": 15.448,
        "AL": 1724.895,
        "AL(clock=elapsed)": 2913.508,
        "StartOffset(clock=elapsed)": 2213.906,
        "MyOwn": 1.0,
        "RTF(clock=elapsed)": 1.326,
    }
    assert {(s.tool, s.version, s.line) for s in scores} == {("SimulEval", None, 5)}


def test_stream_laal_with_the_text_that_it_dumps(read):
    # the hypotheses hold `al`, and are followed by the BLEU alone, as in files of IWSLT 2025
    said = "StreamLAAL v2.0.\nGrazie al pubblico.\nparliamo al\n34.39\n[62.2, 40.5]\n"
    scores = read(said + "BLEU\tStreamLAAL\tStreamLAAL_CA\n34.39\t2366.98\t4508.45\n", "scores.resegmented.tsv")
    assert values(scores) == {"BLEU": 34.39, "StreamLAAL": 2366.98, "StreamLAAL(clock=fbk)": 4508.45}
    assert {(s.tool, s.version, s.unit) for s in scores if s.metric != "BLEU"} == {("StreamLAAL", "2.0", None)}


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("1.0.0", ["StreamLAAL(version=1)", "StreamLAAL(version=1, clock=fbk1)"]),
        ("2.0", ["StreamLAAL", "StreamLAAL(clock=fbk)"]),
    ],
)
def test_stream_laal_of_either_version_is_called_so(read, version, names):
    """Before 2.0, FBK's script did not count what was written before its segment as 0."""
    scores = read(f"StreamLAAL v{version}.\nBLEU\tStreamLAAL\tStreamLAAL_CA\n34.39\t2366.98\t4508.45\n")
    assert [s.metric for s in scores] == ["BLEU", *names]
    assert {s.version for s in scores} == {version}


def test_empty_and_nan_cells(read):
    got = values(read("BLEU\tLAAL\tAL\tDAL\n\tNaN\tnan\t\n"))
    assert len(got) == 4
    assert all(math.isnan(value) for value in got.values())
    assert math.isnan(values(read("  BLEU  AL\n0  NaN  3\n"))["BLEU"])


@settings(max_examples=40)
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("width", [40, 80, 10_000])
@given(
    numbers=st.lists(
        st.one_of(st.floats(-1e6, 1e6).map(lambda v: round(v, 3)), st.just(math.nan), st.integers(0, 99)), min_size=1
    )
)
def test_whatever_pandas_prints(numbers, index, width):
    pandas = pytest.importorskip("pandas")
    labels = ["BLEU", *(f"M{i}" + "_CA" * (i % 3 == 0) for i in range(1, len(numbers)))]
    frame = pandas.DataFrame([dict(zip(labels, numbers, strict=True))])
    with pandas.option_context("display.width", width, "display.max_columns", None):
        printed = [repr(frame)] if index else [frame.to_string(index=False)]
    printed += [frame.to_csv(sep="\t", index=index)] if any(not math.isnan(v) for v in numbers) or index else []
    for text in printed:
        stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BufferedReader(io.BytesIO(text.encode("utf-8"))))
        try:
            got = lagging.read_scores("-")
        finally:
            sys.stdin = stdin
        assert [s.label for s in got] == labels
        for score, value in zip(got, numbers, strict=True):
            # pandas prints six digits after the point, or after the first digit
            assert score.score == pytest.approx(float(value), rel=1e-5, abs=1e-5, nan_ok=True)
        assert {s.system for s in got} == {"stdin"}


def test_columns_that_pandas_left_out(refused):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([{"BLEU": 1.0} | {f"M{i}": 1.0 for i in range(30)}])
    with pandas.option_context("display.width", 80, "display.max_columns", 20):
        printed = repr(frame)
    assert " ... " in printed
    assert refused("said before\n" + printed) == [("elided-scores", 2)]


@pytest.mark.parametrize(
    ("content", "faults"),
    [
        ("", [("no-scores", None)]),
        (" \n\t\n", [("no-scores", None)]),
        ("BLEU\tAL\n", [("no-scores", None)]),
        ("BLEU\tAL\n18.2\n", [("score-cells", 2)]),
        ("BLEU\n18.2\t3\n", [("score-cells", 2)]),
        ("BLEU AL\n1 18.2 3\n", [("score-cells", 2)]),
        ("BLEU\t\tAL\n1\t18.2\t3\n", [("score-cells", 2)]),
        ("BLEU\tAL\n0\t18.2\t3\n", [("score-cells", 2)]),
        ("BLEU\tAL\nabc\tdef\n", [("bad-score", 2), ("bad-score", 2)]),
        ("BLEU\tAL\n18,2\t1_000\n", [("bad-score", 2), ("bad-score", 2)]),
        ("BLEU\tAL\tDAL\n18.2\tinf\t1e999\n", [("bad-score", 2), ("bad-score", 2)]),
        ("BLEU\tAL\tX\n%\t50%\t3%\n", [("bad-score", 2), ("bad-score", 2)]),
        ("BLEU\tAL\tBLEU\n18.2\t3\t18.2\n", [("repeated-metric", 2)]),
        ("AL_CA\tAL (CA)\n1\t2\n", [("repeated-metric", 2)]),
        ("BLEU AL\n18.2 3\n\nBLEU AL\n18.2 3\n", [("repeated-metric", 5), ("repeated-metric", 5)]),
        ("LAAL\tAL\n1\t2\n3\t4\n5\t6\n", [("several-rows", 3), ("several-rows", 4)]),
        ("BLEU \\\n0 1\n", [("score-cells", 2)]),
        ("BLEU \\\n0 1\n\\\n0 2\n", [("score-cells", 4), ("score-cells", 4)]),
        ("BLEU\tAL\t\\\n1\t2\n\t\\\n0\t2\n", [("score-cells", 4), ("score-cells", 4)]),
        ("system BLEU AL\nbase 18.2 3\n", [("bad-score", 2)]),
        ("18.2 3\n19 4\n", [("not-scores", 1)]),
        ("x\ty\n1\t2\n", [("not-scores", 1)]),
        ("bleu al\n1 2\n", [("not-scores", 1)]),
        ("RRRWRW\nRW\n", [("not-scores", 1)]),
        (b"BLEU\tAL\n18.2\t\xff\n", [("not-utf8", 2)]),
    ],
)
def test_tables_that_are_refused(refused, content, faults):
    assert refused(content) == faults


# ---- JSON -------------------------------------------------------------------------------------------------------

SIMULEVAL_1_0 = """{
    "Quality": {
        "BLEU": 12.79214535384013
    },
    "Latency": {
        "AL": 1669,
        "AL_CA": NaN,
        "AP": null,
        "Mine": "7.5"
    }
}
"""


def test_simuleval_1_0(read):
    scores = read(SIMULEVAL_1_0, "scores")
    assert [(s.metric, s.line) for s in scores] == [
        ("BLEU", 3),
        ("AL", 6),
        ("AL(clock=elapsed)", 7),
        ("AP", 8),
        ("Mine", 9),
    ]
    assert [s.score for s in scores[:2]] == [12.79214535384013, 1669.0]
    assert all(math.isnan(s.score) for s in scores[2:4])
    assert scores[4].score == 7.5
    assert {s.tool for s in scores} == {"SimulEval"}


def test_an_object_of_numbers(read):
    scores = read('{"bleu": 3, "AL": 4.5, "a \\"quoted\\": one": -1}', "s.json")
    assert [(s.label, s.metric, s.score, s.tool) for s in scores] == [
        ("bleu", "BLEU", 3.0, None),
        ("AL", "AL", 4.5, None),
        ('a "quoted": one', 'a "quoted": one', -1.0, None),
    ]


@pytest.mark.parametrize(
    ("tool", "expected"),
    [("SimulEval 1.1.4", ("SimulEval", "1.1.4")), ("our own script", ("our own script", None)), (7, (None, None))],
)
def test_scores_below_their_own_key(read, tool, expected):
    text = json.dumps(
        {"tool": tool, "note": "AL: not a score", "scores": {"AL": 1, "AL --no-use-ref-len": 2}}, indent=1
    )
    scores = read(text, "s.json")
    assert [(s.metric, s.score, s.line) for s in scores] == [("AL", 1.0, 5), ("AL(length=hypothesis)", 2.0, 6)]
    assert {(s.tool, s.version) for s in scores} == {expected}


@pytest.mark.parametrize(
    ("content", "faults"),
    [
        ("{}", [("not-scores", 1)]),
        ("[1, 2]", [("not-scores", 1)]),
        ('{"BLEU": 3', [("not-scores", 1)]),
        ('{"BLEU": 3}\n{"BLEU": 3}\n', [("not-scores", 2)]),
        ('{"delays": [1, 2], "source_length": 2}', [("not-scores", 1)]),
        ("[" * 100_000, [("not-scores", None)]),
        ('{"BLEU": true,\n"AL": [3],\n"DAL": Infinity,\n"LAAL": "x"}', [("bad-score", n) for n in (1, 2, 3, 4)]),
        ('{"BLEU": ' + "9" * 5000 + "}", [("bad-score", 1)]),
        ('{"BLEU": 3,\n"AL": 1,\n"BLEU": 3}', [("repeated-metric", 3)]),
        ('{"AL (CA)": 3,\n"AL_CA": 3}', [("repeated-metric", 2)]),
        ('{"schema": 2, "scores": []}', [("not-scores", 1)]),
        ('{"schema": 1, "scores": []}', [("no-scores", None)]),
        ('{"schema": 1, "scores": [{"system": "a", "metric": "AL"}]}', [("score-cells", 1)]),
        ('{"schema": 1, "scores": [{"system": "a", "score": 1}, 7]}', [("score-cells", 1), ("score-cells", 1)]),
        ('{"schema": 1, "scores": [{"system": 3, "metric": "AL", "score": 1}]}', [("score-cells", 1)]),
        ('{"schema": 1, "scores": [{"system": "a", "metric": "", "score": 1}]}', [("score-cells", 1)]),
    ],
)
def test_json_that_is_refused(refused, content, faults):
    assert refused(content, "s.json") == faults


# ---- our own ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ours():
    run = lagging.Run.from_delays(
        [[4, 4, 4, 4, 5], [1, 2, 2]], source_length=[5, 2], prediction=["a b c d e", "f g h"], reference=["a b", "f g"]
    )
    offline = lagging.Run.from_delays([[5, 5]], source_length=[5])
    metrics = ["AL", "DAL(write_cost=1)", "YAAL", "AP", "Segments", "LagPercentile(p=90, effective=True)"]
    both = [lagging.score(run, [*metrics, "chrF"]), lagging.score(offline, metrics)]
    for scores, name in zip(both, ("base", "new system"), strict=True):
        scores.system = name
    return both


@pytest.mark.parametrize("form", ["json", "tsv"])
def test_what_we_print_is_read_back(read, ours, form):
    text = render(ours, form)
    scores = read(text, f"ours.{form}")
    expected = [(one.system, score) for one in ours for score in one]
    assert len(scores) == len(expected) == 13
    lines = text.splitlines()
    for got, (system, score) in zip(scores, expected, strict=True):
        assert (got.system, got.metric, got.label) == (system, repr(score.metric), repr(score.metric))
        assert got.score == pytest.approx(score.value, rel=0, abs=0, nan_ok=True)
        assert (got.unit, got.signature, got.tool) == (score.unit, str(score.signature), "lagging")
        assert got.metric in lines[got.line - 1]
    assert sum(math.isnan(s.score) for s in scores) == 1  # YAAL of an offline system


def test_a_name_for_one_system_of_ours(read, ours):
    assert {s.system for s in read(render(ours[:1], "json"), "o.json", system="mine")} == {"mine"}
    with pytest.raises(lagging.UsageError, match="holds 2 systems"):
        read(render(ours, "json"), "o.json", system="mine")


def test_rows_of_ours_that_do_not_fit(refused, ours):
    lines = render(ours, "tsv").splitlines()
    cut = [lines[0], lines[1], lines[2].rpartition("\t")[0], lines[3], lines[3]]
    assert refused("\n".join(cut)) == [("score-cells", 3), ("repeated-metric", 5)]


# ---- names, directories -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("AL", "AL"),
        ("AL_CA", "AL(clock=elapsed)"),
        ("AL (CU)", "AL"),
        ("LongLAAL (CA)", "LAAL(clock=elapsed)"),
        ("YAAL (CU)", "YAAL"),
        ("LongYAAL (CA)", "LongYAAL(clock=elapsed)"),
        ("LongYAAL", "LongYAAL"),
        ("LongAL", "AL"),
        ("BLEU (CU)", None),
        ("ATD", "ATD"),
        ("ATD_CA", "ATD(clock=queue)"),
        ("ATD_CA --no-use-ref-len", None),
        ("DAL_CA --no-use-ref-len", "DAL(length=hypothesis, clock=elapsed)"),
        ("StartOffset --no-use-ref-len", None),
        ("AL_SpeechAlign_BOW", None),
        ("ALL", None),
        ("AL(length=reference, clock=elapsed)", "AL(length=reference, clock=elapsed)"),
        ("AL(length=nobody)", None),
        ("", None),
        ("AL" * 200, None),
    ],
)
def test_labels(label, name):
    found = find_metric(label)
    assert (None if found is None else repr(found)) == name


def test_settings_change_only_what_they_concern():
    settings = {"Fix CA emissions": "yes", "BLEU tokenizer": "zh"}
    labels = ["BLEU", "chrF", "AL (CU)", "AL (CA)", "LongYAAL (CA)"]
    assert [repr(find_metric(label, settings)) for label in labels] == [
        "BLEU(tok=zh)",
        "chrF",
        "AL",
        "AL(clock=omnisteval)",
        "LongYAAL(clock=elapsed)",
    ]
    assert repr(find_metric("BLEU", {"BLEU tokenizer": "13a"})) == "BLEU"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_the_same_written_or_not(value):
    assert number(repr(value), "time") == number(value, "time") == value


@given(st.text())
def test_no_text_is_a_number_that_python_takes_for_none(text):
    got, bare = number(text), text.strip().rstrip("%")
    if got is not None and bare:
        assert repr(float(bare)) == repr(got)


def test_a_directory(tmp_path):
    folder = tmp_path / "wait-3"
    folder.mkdir()
    with pytest.raises(lagging.UsageError, match="holds no score file"):
        lagging.read_scores(folder)
    (folder / "instances.log").write_text("{}", "utf-8")
    (folder / "metrics.tsv").write_text("AL\n1\n2\n", "utf-8")
    (folder / "scores.tsv").write_text(TSV, "utf-8")
    assert {s.system for s in lagging.read_scores(folder)} == {"wait-3"}
    assert {s.system for s in lagging.read_scores(str(folder), system="k3")} == {"k3"}
    assert same(values(lagging.read_scores(folder)), VALUES)
    (folder / "scores").write_text(json.dumps({"Quality": {"BLEU": 18.227}}), "utf-8")
    with pytest.raises(lagging.UsageError, match=r"differ \(scores.tsv, scores\); name the file"):
        lagging.read_scores(folder)
    assert values(lagging.read_scores(folder / "scores")) == {"BLEU": 18.227}


def test_of_files_that_say_the_same_the_report_is_read(tmp_path):
    rows = [line.split("  ") for line in REPORT.splitlines()[13:20]]
    (tmp_path / "evaluation_report.txt").write_text(REPORT, "utf-8")
    table = "".join(f"{row[1].strip()}\t{row[-1].strip()}\n" for row in rows)
    (tmp_path / "scores.tsv").write_text("metric\tvalue\n" + table, "utf-8")
    scores = lagging.read_scores(tmp_path)
    assert {(s.version, Path(s.path).name) for s in scores} == {("0.1.9", "evaluation_report.txt")}
    (tmp_path / "scores.tsv").write_text("metric\tvalue\n" + table.replace("26.7151", "26.7152"), "utf-8")
    with pytest.raises(lagging.UsageError, match="differ"):
        lagging.read_scores(tmp_path)


def test_what_cannot_be_read(tmp_path, refused, monkeypatch):
    with pytest.raises(lagging.UsageError, match="no such file or directory"):
        lagging.read_scores(tmp_path / "absent.tsv")
    with pytest.raises(lagging.UsageError, match="cannot read xxx"):
        lagging.read_scores("x" * 5000)
    monkeypatch.setattr(layouts, "LARGEST", 1000)
    assert refused("BLEU\n3\n" * 1000) == [("not-scores", None)]


def test_an_error_says_what_where_and_how(read):
    with pytest.raises(lagging.DataError) as error:
        read("metric\tvalue\nBLEU\tgood\nAL (CU)\t3\nAL_CA\t3 ms\n")
    what, why, fix = KINDS["bad-score"]
    assert str(error.value).splitlines() == [
        f"{what} in {error.value.path}:2: BLEU: good",
        f"  {why} 1 more with the same fault: line 4.",
        f"  fix: {fix}",
    ]


# ---- what simulstream and Speech-to-Speech-Latency print, and text around tables ------------------------------------


@pytest.mark.parametrize(
    ("text", "expected", "tool"),
    [
        (
            "INFO loading\nLatencyScores(ideal_latency=2.53, computational_aware_latency=2.83)\ncomet score: 0.83\n",
            [
                ("StreamLAAL(version=1)", 2530.0, "ms"),
                ("StreamLAAL(version=1, clock=fbk1)", 2830.0, "ms"),
                ("COMET", 0.83, None),
            ],
            "simulstream",
        ),
        (
            "LatencyScores(ideal_latency=2.5, computational_aware_latency=None)\n",
            [("StreamLAAL(version=1)", 2500.0, "ms")],
            "simulstream",
        ),
        (
            "ca_unaware_yaal\tca_aware_yaal\tbleu\tending_offset\tca_ending_offset\n2968.3\t5905.1\t22.9\t-10.5\t20\n",
            [
                ("LongYAAL(length=hypothesis)", 2968.3, "ms"),
                ("LongYAAL(length=hypothesis, clock=elapsed)", 5905.1, "ms"),
                ("BLEU", 22.9, "points"),
                ("EndOffset", -10.5, "ms"),
                ("EndOffset(clock=elapsed)", 20.0, "ms"),
            ],
            "Speech-to-Speech-Latency",
        ),
        (
            "LongYAAL CU\tLongYAAL CA\n1997.8\t2600.5\n",
            [("LongYAAL", 1997.8, "ms"), ("LongYAAL(clock=elapsed)", 2600.5, "ms")],
            "OmniSTEval",
        ),
        (
            '{"LongYAAL CU": 1997.8, "LongYAAL CA": 2600.5}',
            [("LongYAAL", 1997.8, "ms"), ("LongYAAL(clock=elapsed)", 2600.5, "ms")],
            "OmniSTEval",
        ),
        (
            "metric\tvalue\nBLEU\t20.1\nAL (CU)\t1200\n\nEvaluation took 3 minutes.\nDone\n",
            [("BLEU", 20.1, "points"), ("AL", 1200.0, "ms")],
            "OmniSTEval",
        ),
        (
            "BLEU\tAL\n20.1\t1200\n\nEvaluation took 3 minutes.\n",
            [("BLEU", 20.1, "points"), ("AL", 1200.0, None)],
            "SimulEval",
        ),
    ],
)
def test_more_tools_and_text_after_a_table(text, expected, tool, tmp_path):
    file = tmp_path / "file.txt"
    file.write_text(text)
    scores = lagging.read_scores(file)
    assert [(s.metric, s.score, s.unit) for s in scores] == expected
    assert {s.tool for s in scores} == {tool}


@pytest.mark.parametrize("text", ["LatencyScores(ideal_latency=x)\n", "comet score: high\n"])
def test_what_simulstream_prints_must_be_numbers(text, tmp_path):
    file = tmp_path / "file.txt"
    file.write_text(text)
    with pytest.raises(lagging.DataError, match=r"file\.txt:1"):
        lagging.read_scores(file)


@pytest.mark.parametrize("text", ["Evaluation done in 3s", "***\nsee report.txt", "\nnonsense"])
def test_text_after_a_table_of_names_and_values(tmp_path, text):
    file = tmp_path / "scores.tsv"
    file.write_text(f"metric\tvalue\nBLEU\t20.1\nLongYAAL CU\t1700.5\n{text}\n")
    scores = lagging.read_scores(file)
    assert [(s.metric, s.score, s.unit) for s in scores] == [("BLEU", 20.1, "points"), ("LongYAAL", 1700.5, "ms")]
    file.write_text(f"metric\tvalue\n{text}\nBLEU\t20.1\n")
    with pytest.raises(lagging.DataError, match="not a name and a value"):
        lagging.read_scores(file)


def test_names_with_blanks_above_values(tmp_path):
    file = tmp_path / "scores.txt"
    for index in ("", "0  "):
        file.write_text(f"{' ' * len(index)}BLEU  LongYAAL CU  LongYAAL CA\n{index}27.3       1700.5      1990.25\n")
        names = [(s.metric, s.score) for s in lagging.read_scores(file)]
        assert names == [("BLEU", 27.3), ("LongYAAL", 1700.5), ("LongYAAL(clock=elapsed)", 1990.25)]


def test_a_row_that_is_no_pair_is_still_a_fault(tmp_path):
    file = tmp_path / "scores.tsv"
    file.write_text("metric\tvalue\nBLEU\t20.1\nnonsense\n")
    with pytest.raises(lagging.DataError, match="not a name and a value"):
        lagging.read_scores(file)
