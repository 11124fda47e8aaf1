# SPDX-License-Identifier: Apache-2.0
"""Broken logs: told with file, line, segment, token and remedy, or scored rightly with a counted note. No traceback."""

from __future__ import annotations

import gc
import gzip
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lagging.cli import main
from lagging.errors.catalogue import KINDS

NAN, INF = float("nan"), float("inf")
ABSENT = object()
WAIT_3 = [3, 4, 5, 6, 6, 6]
CONTROL = {"AP": 5 / 6, "AL": 3.0, "LAAL": 3.0, "DAL": 3.0}


def segment(index: object = 2, **changes: Any) -> str:
    """A line of a text log: wait-3 on six words, AL = LAAL = DAL = 3, AP = 5/6; with something changed."""
    record: dict[str, Any] = {
        "index": index,
        "prediction": "a b c d e f",
        "delays": WAIT_3,
        "elapsed": [0] * 6,
        "prediction_length": 6,
        "reference": "a b c d e f\n",
        "source": "u v w x y z",
        "source_length": 6,
    }
    record.update(changes)
    return json.dumps({k: v for k, v in record.items() if v is not ABSENT}, ensure_ascii=False) + "\n"


def speech(index: object = 2, **changes: Any) -> str:
    """The same in milliseconds."""
    delays = [1000.0 * g for g in WAIT_3]
    facts = ["talk.wav", "samplerate: 16000 Hz", "duration: 6.000 s"]
    given = {"delays": delays, "elapsed": [g + 50 for g in delays], "source": facts, "source_length": 6000.0}
    return segment(index, **{**given, **changes})


def reordered(index: int) -> str:
    return json.dumps(dict(reversed(json.loads(segment(index)).items()))) + "\n"


GOOD = segment(0) + segment(1)
GOOD_SPEECH = speech(0) + speech(1)


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def lagging(tmp_path, monkeypatch, capsys):
    """`lagging …` in this process, in an empty directory; anything but an exit fails the test."""
    monkeypatch.chdir(tmp_path)
    threshold = gc.get_threshold()

    def run(*args: str) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main(list(args))
        said = capsys.readouterr()
        return Outcome(int(stop.value.code or 0), said.out, said.err)

    yield run
    gc.set_threshold(*threshold)


def write(log: str | bytes, name: str = "instances.log") -> None:
    Path(name).write_bytes(log if isinstance(log, bytes) else log.encode())


def no_constant(name: str) -> float:
    raise AssertionError(f"{name} printed as a number")


def parse(outcome: Outcome) -> dict[str, Any]:
    """The scores of `-f json` by metric; NaN and inf are not JSON."""
    found = json.loads(outcome.out, parse_constant=no_constant)
    assert found["schema"] == 1
    return {record["metric"]: record for record in found["scores"]}


def refused(outcome: Outcome) -> list[str]:
    """The first lines of the blocks of an error: one for each kind of fault."""
    assert outcome.err.count("error: ") == 1
    message = outcome.err.split("error: ", 1)[1]
    assert "Traceback" not in outcome.err
    return [line for line in message.splitlines() if not line.startswith("  ")]


# ---- refused ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Refused:
    name: str
    log: str | bytes
    kind: str
    line: int | None = 3
    segment: object = 2
    token: int | None = None
    detail: str = ""
    score: tuple[str, ...] = ()


LATIN = segment(2, prediction="a b c d e QQ").replace("QQ", "Ã").encode("utf-8").replace("Ã".encode(), b"\xe9")
LATIN_SOURCE = segment(2, source="QQ").encode().replace(b"QQ", b"\xe9")

REFUSED = [
    # what makes SimulEval crash, or fools it
    Refused("truncated last line", GOOD + segment()[:60], "truncated", segment=None, detail="column"),
    Refused("empty file", b"", "empty-log", line=None, segment=None),
    Refused("only blank lines", b"\n\n \n", "empty-log", line=None, segment=None),
    Refused("delays missing", GOOD + segment(delays=ABSENT), "missing-delays"),
    Refused("NaN in delays", GOOD + segment(delays=[3, NAN, 5, 6, 6, 6]), "not-finite", token=2),
    Refused("Infinity in delays", GOOD + segment(delays=[3, 4, 5, 6, 6, INF]), "not-finite", token=6),
    Refused(
        "decreasing delays",
        GOOD + segment(delays=[6, 5, 4, 3, 2, 1]),
        "decreasing-delays",
        token=2,
        detail="6 → 5",
    ),
    Refused("negative delays", GOOD + segment(delays=[0, -1, 5, 6, 6, 6]), "negative-delay", token=2, detail="-1"),
    Refused("more delays than words", GOOD + segment(prediction="a b"), "token-count", detail="6 delays, 2 words"),
    Refused(
        "fewer delays than words",
        GOOD + segment(delays=[3, 4], elapsed=[0, 0]),
        "token-count",
        detail="2 delays, 6 words",
    ),
    Refused("duplicate index", GOOD + segment(1), "duplicate-id", segment=1, detail="line 2"),
    Refused("index missing", GOOD + segment(ABSENT), "missing-id", segment=None),
    Refused("source_length missing", GOOD + segment(source_length=ABSENT), "missing-source-length"),
    Refused("source_length null", GOOD + segment(source_length=None), "missing-source-length"),
    Refused("source_length a string", GOOD + segment(source_length="6"), "bad-source-length", detail='"6"'),
    Refused("source_length negative", GOOD + segment(source_length=-6), "bad-source-length", detail="-6"),
    Refused("source_length NaN", GOOD + segment(source_length=NAN), "bad-source-length"),
    Refused("source_length true", GOOD + segment(source_length=True), "bad-source-length", detail="true"),
    Refused("delays as strings", GOOD + segment(delays=[3, "4", 5, 6, 6, 6]), "bad-delay", token=2, detail='"4"'),
    Refused("delays a scalar", GOOD + segment(delays=3), "delays-not-a-list", detail="3"),
    Refused("delays a string", GOOD + segment(delays="3 4 5"), "delays-not-a-list", detail='"3 4 5"'),
    Refused("delays an object", GOOD + segment(delays={"1": 3}), "delays-not-a-list"),
    Refused("a JSON list line", GOOD + "[1, 2, 3]\n", "not-an-object", segment=None, detail="[1, 2, 3]"),
    Refused("a number line", GOOD + "7\n", "not-an-object", segment=None, detail="7"),
    Refused("a null line", GOOD + "null\n", "not-an-object", segment=None, detail="null"),
    Refused("Latin-1 byte", GOOD.encode() + LATIN, "not-utf8", segment=None, detail="0xe9"),
    Refused("prediction null", GOOD + segment(prediction=None), "missing-prediction"),
    # what OmniSTEval crashes on, or is fooled by
    Refused("prediction missing", GOOD_SPEECH + speech(prediction=ABSENT), "missing-prediction"),
    Refused("delays null", GOOD_SPEECH + speech(delays=None), "missing-delays"),
    Refused(
        "ms decreasing", GOOD_SPEECH + speech(delays=[3e3, 4e3, 3999.5, 6e3, 6e3, 6e3]), "decreasing-delays", token=3
    ),
    Refused("ms negative", GOOD_SPEECH + speech(delays=[-0.5, 4e3, 5e3, 6e3, 6e3, 6e3]), "negative-delay", token=1),
    Refused("ms NaN", GOOD_SPEECH + speech(delays=[3e3, 4e3, NAN, 6e3, 6e3, 6e3]), "not-finite", token=3),
    Refused("ms fewer delays", GOOD_SPEECH + speech(delays=[3e3], elapsed=[3e3]), "token-count", detail="1 delays, 6"),
    Refused("ms more delays", GOOD_SPEECH + speech(prediction="a b c"), "token-count", detail="6 delays, 3 words"),
    Refused("ms source_length missing", GOOD_SPEECH + speech(source_length=ABSENT), "missing-source-length"),
    # further
    Refused(
        "not JSON", segment(0) + "{'index': 1}\n" + segment(2), "not-json", line=2, segment=None, detail="column 2"
    ),
    Refused("two objects on a line", segment(0) + segment(1).strip() + " " + segment(2), "not-json", 2, None),
    Refused(
        "an object on two lines", segment(0) + segment(1).replace(', "delays"', ',\n"delays"'), "not-json", 2, None
    ),
    Refused("bool delays", GOOD + segment(delays=[3, 4, 5, 6, 6, True]), "bad-delay", token=6, detail="true"),
    Refused("null among delays", GOOD + segment(delays=[3, 4, None, 6, 6, 6]), "bad-delay", token=3, detail="null"),
    Refused("list among delays", GOOD + segment(delays=[3, 4, [5], 6, 6, 6]), "bad-delay", token=3, detail="[5]"),
    Refused("1e999", GOOD + segment().replace("6, 6, 6]", "6, 6, 1e999]"), "not-finite", token=6),
    Refused("-1e999", GOOD + segment().replace("[3, 4", "[-1e999, 4"), "not-finite", token=1),
    Refused("source_length 1e999", GOOD + segment(source_length=777).replace("777", "1e999"), "bad-source-length"),
    Refused("huge int delay", GOOD + segment(delays=[3, 4, 5, 6, 6, 10**400]), "not-finite", token=6),
    Refused("huge int source_length", GOOD + segment(source_length=10**400), "bad-source-length"),
    Refused("index 2.5", GOOD + segment(2.5), "bad-id", segment=None, detail="2.5"),
    Refused("index null", GOOD + segment(None), "bad-id", segment=None, detail="null"),
    Refused("index true", GOOD + segment(True), "bad-id", segment=None, detail="true"),
    Refused("index a list", GOOD + segment([2]), "bad-id", segment=None, detail="[2]"),
    Refused("index 1e999", GOOD + segment().replace('"index": 2', '"index": 1e999'), "bad-id", segment=None),
    Refused("index 1 and '1'", GOOD + segment("1"), "duplicate-id", segment=1),
    Refused("index 1 and 1.0", GOOD + segment(1.0), "duplicate-id", segment=1),
    Refused("prediction a number", GOOD + segment(prediction=3), "bad-prediction", detail="3"),
    Refused("prediction a list", GOOD + segment(prediction=["a", "b"]), "bad-prediction"),
    Refused("empty prediction with delays", GOOD + segment(prediction=" "), "token-count", detail="6 delays, 0 words"),
    Refused("delays [] with a prediction", GOOD + segment(delays=[], elapsed=[]), "token-count", detail="0 delays, 6"),
    Refused("reference a number", GOOD + segment(reference=3), "bad-reference", detail="3"),
    Refused("reference a list", GOOD + segment(reference=["a", "b"]), "bad-reference"),
    Refused("deep nesting, unclosed", GOOD + '{"index": 2, "x": ' + "[" * 200_000 + "\n", "not-json", segment=None),
    Refused(
        "deep nesting in a key that nobody reads",
        GOOD + segment().replace('"index": 2', '"index": 2, "x": ' + "[" * 200_000 + "]" * 200_000),
        "not-json",
        segment=None,
        detail="nested too deeply",
    ),
    Refused(
        "first line bad", segment(0, delays=[2, 1, 3, 4, 5, 6]) + segment(1) + segment(2), "decreasing-delays", 1, 0, 2
    ),
    Refused("first line bad type", segment(0, delays="x") + segment(1) + segment(2), "delays-not-a-list", 1, 0),
    Refused(
        "first line blank, then bad", "\n" + GOOD + segment(delays=[2, 1, 3, 4, 5, 6]), "decreasing-delays", 4, 2, 2
    ),
    Refused("every line bad", segment(0, delays="x"), "delays-not-a-list", 1, 0),
    Refused("a lone line that breaks off", segment(0)[:40], "truncated", 1, None),
    # columns that the default scores do not use: a log is sound or it is not
    Refused("elapsed a string", GOOD_SPEECH + speech(elapsed="x"), "bad-elapsed", detail='"x"'),
    Refused("elapsed strings", GOOD_SPEECH + speech(elapsed=[0, "1", 2, 3, 4, 5]), "bad-elapsed"),
    Refused("elapsed too short", GOOD_SPEECH + speech(elapsed=[1, 2]), "elapsed-count", detail="2 elapsed, 6 delays"),
    Refused("elapsed missing on a line", GOOD_SPEECH + speech(elapsed=ABSENT), "elapsed-count"),
    Refused("elapsed NaN", GOOD_SPEECH + speech(elapsed=[NAN] * 6), "elapsed-not-finite", token=1),
    Refused("elapsed decreasing", GOOD_SPEECH + speech(elapsed=[9, 8, 9, 9, 9, 9]), "decreasing-elapsed", token=2),
    Refused("Latin-1 byte in the source", GOOD.encode() + LATIN_SOURCE, "not-utf8", segment=None),
    Refused("Latin-1 byte in the source of line 1", LATIN_SOURCE + GOOD.encode(), "not-utf8", 1, None),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_refused(case, lagging):
    write(case.log)
    text, scored = lagging("validate", "instances.log"), lagging("score", "-f", "json", "instances.log", *case.score)
    found = json.loads(lagging("validate", "-f", "json", "instances.log").out, parse_constant=no_constant)["logs"][0]
    assert (text.code, scored.code) == (1, 1)
    assert scored.out == ""
    what, why, fix = KINDS[case.kind]
    place = "instances.log" if case.line is None else f"instances.log:{case.line}"

    # validate: one line with place, segment, token, words, value; then reason and remedy
    within = [] if case.segment is None else [f"segment {case.segment}"]
    within += [] if case.token is None else [f"token {case.token}"]
    expected = ": ".join(part for part in (place, ", ".join(within), what) if part)
    told = [line for line in text.out.splitlines() if line.startswith(expected)]
    assert told, text.out
    assert case.detail in told[0]
    assert f"  {why}" in text.out
    assert f"  fix: {fix}" in text.out

    # score: the same words
    blocks = refused(scored)
    where = f"{what} in {place}"
    where += "" if case.segment is None else f" (segment {case.segment})"
    where += "" if case.token is None else f", token {case.token}"
    mine = [line for line in blocks if line.startswith(where)]
    assert mine, scored.err
    assert case.detail in mine[0]
    assert f"  fix: {fix}" in scored.err
    assert len(told[0]) < 400
    assert len(mine[0]) < 400

    # and no other faults
    assert {KINDS[kind][0] for kind in found["counts"]} == {
        name for kind, (name, _, _) in KINDS.items() if any(block.startswith(name) for block in blocks)
    }
    assert sum(found["counts"].values()) == len(found["faults"])


def test_a_number_of_five_thousand_digits(lagging):
    write(GOOD + segment(delays=[3, 4, 5, 6, 6, 777]).replace("777", "7" * 5000))
    text, scored = lagging("validate", "instances.log"), lagging("score", "instances.log")
    assert (text.code, scored.code, scored.out) == (1, 1, "")
    assert "instances.log:3" in text.out
    assert "instances.log:3" in scored.err
    assert "fix: " in scored.err


def test_validate_and_score_count_the_faults_of_an_empty_file_once(lagging):
    write(b"")
    found = json.loads(lagging("validate", "-f", "json", "instances.log").out)["logs"][0]
    assert found["counts"] == {"empty-log": 1}


def test_validate_does_not_call_a_log_of_bad_lines_empty(lagging):
    write(segment(0, delays="x"))
    found = json.loads(lagging("validate", "-f", "json", "instances.log").out)["logs"][0]
    assert found["counts"] == {"delays-not-a-list": 1}


# ---- accepted, with a note ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Accepted:
    name: str
    log: str | bytes
    notes: tuple[str, ...] = ()
    scores: dict[str, float | None] = field(default_factory=lambda: CONTROL)
    n: int = 3
    undefined: int = 0
    args: tuple[str, ...] = ()


NOTHING = {"prediction": "", "delays": [], "elapsed": []}
SPEECH = {"AP": 5 / 6, "AL": 3000.0, "LAAL": 3000.0, "DAL": 3000.0}
EOS = {"prediction": "a b c d e f </s>", "delays": [*WAIT_3, 6], "elapsed": [0] * 7, "prediction_length": 7}
STOOD_IN = ("no reference: 2 segments: the hypothesis length stands in for that of the reference",)
LEFT_OUT = "empty reference: 1 segment (2): left out where a reference is needed"

ACCEPTED = [
    Accepted("control", GOOD + segment()),
    Accepted("control, speech", GOOD_SPEECH + speech(), scores=SPEECH),
    Accepted("blank last line", GOOD + segment() + "\n", ("blank line: 1 line: skipped, in instances.log",)),
    Accepted("blank lines", "\n" + GOOD + " \n\t\n" + segment(), ("blank line: 3 lines: skipped, in instances.log",)),
    Accepted("no newline at the end", (GOOD + segment()).rstrip()),
    Accepted("CRLF", (GOOD + segment()).replace("\n", "\r\n").replace("\\r\\n", "\\n")),
    Accepted(
        "one empty prediction",
        GOOD + segment(**NOTHING),
        ("empty hypothesis: 1 segment (2): nothing was written, so there is no latency",),
        {**CONTROL, "BLEU": 60.653065971263366},
        undefined=1,
    ),
    Accepted(
        "all predictions empty",
        segment(0, **NOTHING) + segment(1, **NOTHING) + segment(2, **NOTHING),
        ("empty hypothesis: 3 segments (0, 1, 2): nothing was written",),
        dict.fromkeys(CONTROL),
        undefined=3,
    ),
    Accepted(
        "delays missing, nothing written",
        GOOD + segment(prediction="", delays=ABSENT, elapsed=ABSENT),
        ("empty hypothesis: 1 segment (2): nothing was written",),
        undefined=1,
    ),
    Accepted(
        "delays and prediction null",
        GOOD + segment(prediction=None, delays=None, elapsed=None),
        ("empty hypothesis: 1 segment (2): nothing was written",),
        undefined=1,
    ),
    Accepted("index gap", GOOD + segment(77), ("index gap: 75 of the indices between 0 and 77 are missing",)),
    Accepted("first index 1", segment(1) + segment(2) + segment(3)),
    Accepted("descending index", segment(2) + segment(1) + segment(0)),
    Accepted("negative index", segment(-1) + GOOD),
    Accepted("string index", GOOD + segment("two")),
    Accepted("float index", GOOD + segment(2.0)),
    Accepted("huge index", GOOD + segment(10**30)),
    Accepted("no index at all", segment(ABSENT) * 3),
    Accepted(
        "reference missing",
        GOOD + segment(reference=ABSENT),
        ("missing reference: 1 segment (2): no `reference` key, where other lines have one",),
        {**CONTROL, "BLEU": 100.0},
    ),
    Accepted(
        "reference null",
        GOOD + segment(reference=None),
        ("no reference: 1 segment (2): left out where a reference is needed",),
        {**CONTROL, "BLEU": 100.0},
    ),
    Accepted("reference empty", GOOD + segment(reference=""), (LEFT_OUT,), {**CONTROL, "BLEU": 100.0}),
    Accepted("reference blank", GOOD + segment(reference=" \n"), (LEFT_OUT,), {**CONTROL, "BLEU": 100.0}),
    Accepted(
        "references null, missing, empty",
        segment(0) + segment(1, reference=None) + segment(2, reference=ABSENT) + segment(3, reference=""),
        (
            "no reference: 1 segment (1): left out",
            "missing reference: 1 segment (2): no `reference` key",
            "empty reference: 2 segments (2, 3): left out",
        ),
        {**CONTROL, "BLEU": 100.0},
        n=4,
    ),
    Accepted("references all missing", segment(0, reference=ABSENT) + segment(1, reference=ABSENT), STOOD_IN, n=2),
    Accepted("references all null", segment(0, reference=None) + segment(1, reference=None), STOOD_IN, n=2),
    Accepted("double spaces in the reference", GOOD + segment(reference=" a  b c   d e f ")),
    Accepted(
        "source_length 0",
        GOOD + segment(source_length=0),
        ("empty source: 1 segment (2): source_length is 0, so there is no latency",),
        undefined=1,
    ),
    Accepted(
        "all delays beyond the source",
        GOOD + segment(delays=[9] * 6),
        ("beyond the source: 1 segment (2): delays larger than source_length",),
        {"AP": (5 / 6 + 5 / 6 + 1.5) / 3, "AL": 5.0, "LAAL": 5.0, "DAL": 5.0},
    ),
    Accepted(
        "UTF-8 byte order mark",
        b"\xef\xbb\xbf" + (GOOD + segment()).encode(),
        ("byte order mark: at the start of instances.log: ignored",),
    ),
    # OmniSTEval's list, in milliseconds
    Accepted(
        "every word after the end",
        GOOD_SPEECH + speech(delays=[6500.0] * 6, elapsed=[6600] * 6),
        ("beyond the source: 1 segment (2): delays larger than source_length",),
        {"AL": 12500 / 3, "LAAL": 12500 / 3, "DAL": 12500 / 3},
    ),
    Accepted(
        "delays in seconds, source in milliseconds",
        "".join(speech(i, delays=list(map(float, WAIT_3)), elapsed=ABSENT) for i in range(3)),
        ("suspicious unit: 3 segments (0, 1, 2): delays below 1 % of source_length",),
        {"AL": -2495.0, "DAL": 3.0},
    ),
    Accepted(
        "source_length 0, speech",
        GOOD_SPEECH + speech(source_length=0),
        ("empty source: 1 segment (2)",),
        SPEECH,
        undefined=1,
    ),
    Accepted("reference empty, speech", GOOD_SPEECH + speech(reference=""), (LEFT_OUT,), SPEECH),
    Accepted("double spaces in the reference, speech", GOOD_SPEECH + speech(reference="a  b c  d e f"), (), SPEECH),
    Accepted(
        "final </s> in every line",
        "".join(segment(i, **EOS) for i in range(3)),
        ("</s>: 3 segments: the hypothesis ends in it: stripped with its delay",),
    ),
    Accepted(
        "elapsed below ideal",
        GOOD_SPEECH + speech(elapsed=[2000.0, 3000.0, 4000.0, 5000.0, 6000.0, 6000.0]),
        ("elapsed below ideal: 1 segment (2): written before its source was there",),
        {"AL": 3000.0},
        args=("-m", "AL,AL_CA"),
    ),
    Accepted("keys in another order", "".join(map(reordered, (0, 1, 2)))),
    Accepted(
        "unknown keys", "".join(segment(i, metric={"AL": NAN}, extra=[{}, None], metrics=1e300) for i in range(3))
    ),
]


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_accepted(case, lagging):
    write(case.log)
    text = lagging("validate", "instances.log")
    scored = lagging("score", "-f", "json", "instances.log", *case.args)
    assert (text.code, scored.code) == (0, 0), text.out + scored.err
    records = parse(scored)
    for name, expected in case.scores.items():
        got = records[name]["score"]
        assert got == (None if expected is None else pytest.approx(expected, abs=1e-9)), name
    timed = [record for name, record in records.items() if name != "BLEU"]
    assert {record["n"] for record in timed} == {case.n}
    assert {record["undefined"] for record in timed} == {case.undefined}
    for note in case.notes:
        assert note in scored.err
        if not note.startswith("</s>") and case.notes is not STOOD_IN:  # these two come with the scoring
            assert f"note: {note}" in text.out
    assert text.out.endswith(f"instances.log: {case.n} segments, no faults\n")
    if not case.notes:
        assert "note: " not in scored.err + text.out
    assert not re.search(r"\b(nan|inf)\b", scored.err + text.out, re.IGNORECASE)


@pytest.mark.parametrize("form", ["table", "json", "tsv", "markdown", "latex"])
def test_nothing_to_average_is_never_printed_as_nan(form, lagging):
    write("".join(segment(i, **NOTHING) for i in range(3)))
    scored = lagging("score", "-f", form, "instances.log")
    assert scored.code == 0
    assert not re.search(r"\bnan\b", re.sub(r"empty:nan", "", scored.out + scored.err), re.IGNORECASE)


@pytest.mark.parametrize(
    "changes",
    [{"delays": [1e308] * 6, "source_length": 1e308}, {"delays": [1e300] * 6}],
    ids=["delays 1e308", "delays 1e300"],
)
def test_finite_numbers_out_of_all_proportion(changes, lagging):
    """Overflow is null, or a number; it is neither a warning of NumPy nor a segment silently left out."""
    write(GOOD + segment(**changes))
    scored = lagging("score", "-f", "json", "instances.log", "-m", "AP,AL,LAAL,DAL")
    assert scored.code in (0, 1)
    assert "Warning" not in scored.err
    if scored.code == 0:
        for record in parse(scored).values():
            assert record["score"] is None or record["undefined"] == 1 or abs(record["score"]) > 1e6


# ---- several faults -----------------------------------------------------------------------------------------------

FIVE = {
    "bad-delay": segment(1, delays=[3, 4, 5, 6, 6, "6"]),
    "not-json": "{\n",
    "decreasing-delays": segment(3, delays=[6, 5, 5, 6, 6, 6]),
    "duplicate-id": segment(0),
    "missing-source-length": segment(5, source_length=ABSENT),
}


def test_five_kinds_of_faults_at_once(lagging):
    write(segment(0) + "".join(FIVE.values()) + segment(6) + segment(7))
    text, scored = lagging("validate", "instances.log"), lagging("score", "-f", "json", "instances.log")
    assert (text.code, scored.code, scored.out) == (1, 1, "")
    for line, kind in enumerate(FIVE, 2):
        assert re.search(rf"^instances\.log:{line}: .*{re.escape(KINDS[kind][0])}", text.out, re.MULTILINE), kind
        assert re.search(rf"{re.escape(KINDS[kind][0])} in instances\.log:{line}\b", scored.err), kind
    assert scored.err.count("  fix: ") == text.out.count("  fix: ") == 5
    assert "more kinds" not in scored.err


def test_six_kinds_are_counted(lagging):
    write(segment(0) + "".join(FIVE.values()) + segment(6, delays=[NAN] * 6) + segment(7) + segment(8))
    text, scored = lagging("validate", "instances.log"), lagging("score", "instances.log")
    assert text.out.count("  fix: ") == 6
    assert scored.err.count("  fix: ") == 5
    assert "and 1 more kind of fault: `lagging validate` lists them all." in scored.err


def test_more_segments_with_the_same_fault(lagging):
    write(GOOD + "".join(segment(i, delays=[6, 5, 5, 6, 6, 6]) for i in range(2, 10)))
    scored = lagging("score", "--level", "word", "instances.log")
    assert "7 more with the same fault: 3, 4, 5, 6, 7 and 2 more." in scored.err
    assert lagging("validate", "instances.log").out.count("segment ") == 8


def test_all_faults_of_one_line(lagging):
    write(GOOD_SPEECH + speech(delays=[6, 5, 5, 6, 6, 6], source_length=-1, prediction="a", elapsed=[1]))
    found = json.loads(lagging("validate", "-f", "json", "instances.log").out)["logs"][0]
    expected = {"decreasing-delays", "bad-source-length", "token-count", "elapsed-count"}
    assert set(found["counts"]) == expected


def test_all_faults_of_a_line_with_a_wrong_type(lagging):
    write(GOOD + segment(1, delays=[6, 5, 5, 6, 6, 6], source_length="6"))
    found = json.loads(lagging("validate", "-f", "json", "instances.log").out)["logs"][0]
    assert set(found["counts"]) == {"decreasing-delays", "bad-source-length", "duplicate-id"}


def test_numbers_in_a_message_can_be_told_apart(lagging):
    write(GOOD_SPEECH + speech(delays=[3e3, 4e3, 12345.678, 12345.671, 2e4, 2e4]))
    assert "12345.678 → 12345.671 ms" in lagging("validate", "instances.log").out


def test_a_line_after_a_bad_one_keeps_its_number(lagging):
    """Without ids a segment is named by its place in the file, also while a line before it is broken."""
    good, broken, falling = ({"delays": g, "source_length": 2} for g in ([1, 2], "x", [2, 1]))
    write("".join(json.dumps(record) + "\n" for record in (good, broken, falling)), "a.jsonl")
    assert "a.jsonl:3: segment 2, token 2: delays decrease: 2 → 1" in lagging("validate", "a.jsonl").out


# ---- several files ------------------------------------------------------------------------------------------------


def test_a_duplicate_across_the_files_of_a_glob(lagging):
    write(segment(0) + segment(1), "a.log")
    write(segment(2) + segment(1), "b.log")
    text, scored = lagging("validate", "*.log"), lagging("score", "-f", "json", "*.log")
    assert (text.code, scored.code, scored.out) == (1, 1, "")
    assert "b.log:2: segment 1: the index was used in another file: first at a.log:2" in text.out
    assert "the index was used in another file in b.log:2 (segment 1): first at a.log:2" in scored.err


def test_a_duplicate_across_files_is_reported_once(lagging):
    write(segment(0), "a.log")
    write(segment(0) + segment(0), "b.log")
    found = json.loads(lagging("validate", "-f", "json", "*.log").out)["logs"][0]
    assert [(fault["path"], fault["line"]) for fault in found["faults"]] == [("b.log", 1), ("b.log", 2)]


def test_files_without_ids_are_numbered_through(lagging):
    write('{"delays": [1, 2], "source_length": 2}\n', "a.jsonl")
    write('{"delays": [2, 2], "source_length": 2}\n', "b.jsonl")
    scored = lagging("score", "-f", "json", "-m", "DAL", "*.jsonl")
    assert scored.code == 0, scored.err
    assert parse(scored)["DAL"]["n"] == 2
    assert parse(scored)["DAL"]["score"] == 1.5


def test_files_that_count_differently(lagging):
    """What `validate` lets pass can be scored."""
    write(segment(0), "a.log")
    write(segment(1, prediction="abcdef"), "b.log")
    text, scored = lagging("validate", "*.log"), lagging("score", "-f", "json", "*.log")
    assert (text.code == 0) == (scored.code == 0)
    if scored.code:
        assert "b.log" in scored.err
        assert "--level" in scored.err


def test_an_empty_file_in_a_glob(lagging):
    write(segment(0), "a.log")
    write("", "b.log")
    scored = lagging("score", "*.log")
    assert (scored.code, scored.out) == (1, "")
    assert "the log holds no segments in b.log" in scored.err


# ---- usage --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["score", "validate", "inspect"])
def test_no_such_file(command, lagging):
    outcome = lagging(command, "nowhere.log")
    assert (outcome.code, outcome.out) == (2, "")
    assert "no such file or directory: nowhere.log" in outcome.err


@pytest.mark.parametrize("command", ["score", "validate"])
def test_a_directory_without_a_log(command, lagging):
    Path("empty").mkdir()
    outcome = lagging(command, "empty")
    assert (outcome.code, outcome.out) == (2, "")
    assert "empty holds no instances.log" in outcome.err


@pytest.mark.parametrize("command", ["score", "validate"])
def test_a_directory_with_several_logs(command, lagging):
    Path("two").mkdir()
    for name in ("a.log", "b.log"):
        Path("two", name).write_text(segment(0))
    outcome = lagging(command, "two")
    assert (outcome.code, outcome.out) == (2, "")
    assert "several logs (a.log, b.log)" in outcome.err


@pytest.mark.parametrize("command", ["score", "validate"])
@pytest.mark.parametrize(
    "content",
    [b"hello world\n", b"\x89PNG\r\n\x1a\n\0\0", (GOOD + segment()).encode("utf-16")],
    ids=["text", "png", "utf-16"],
)
def test_an_unrecognised_file(command, content, lagging):
    write(content, "strange")
    outcome = lagging(command, "strange")
    assert (outcome.code, outcome.out) == (2, "")
    assert "the format of strange is not recognised; it begins: " in outcome.err
    assert "Known formats: simuleval, " in outcome.err
    assert "fix: " in outcome.err


@pytest.mark.parametrize(("asked", "meant"), [("DALL", "DAL"), ("laal2", "LAAL"), ("BLUE", "BLEU")])
def test_an_unknown_metric(asked, meant, lagging):
    write(GOOD)
    outcome = lagging("score", "-m", asked, "instances.log")
    assert outcome.out == ""
    assert f"no metric is called {asked!r}. Did you mean {meant}" in outcome.err


def test_an_unknown_metric_is_a_usage_error(lagging):
    write(GOOD)
    assert lagging("score", "-m", "DALL", "instances.log").code == 2


def test_an_unknown_metric_like_no_other_lists_the_names(lagging):
    write(GOOD)
    outcome = lagging("score", "-m", "qqqqqq", "instances.log")
    assert "Known: " in outcome.err
    assert "fix: a metric of your own needs the file that registers it: --plugin FILE.py" in outcome.err
    assert "DAL" in outcome.err


@pytest.mark.parametrize("command", ["score", "validate"])
@pytest.mark.parametrize("cut", ["truncated", "corrupt"])
def test_a_broken_gzip_file(command, cut, lagging):
    packed = bytearray(gzip.compress("".join(segment(i) for i in range(300)).encode()))
    if cut == "truncated":
        del packed[len(packed) // 2 :]
    else:
        packed[40] ^= 255
        packed[60] ^= 255
    write(bytes(packed), "a.log.gz")
    outcome = lagging(command, "a.log.gz")
    assert (outcome.code, outcome.out) in ((1, ""), (2, ""))
    assert "a.log.gz" in outcome.err


@pytest.mark.parametrize(
    "config", ["source_type: [", "\xff", "a: " + "[" * 3000, "a: " + "[" * 100_000, "\0"], ids=range(5)
)
def test_a_broken_config_beside_the_log(config, lagging):
    write(GOOD)
    write(config.encode("latin-1"), "config.yaml")
    for command in ("score", "validate"):
        outcome = lagging(command, "instances.log")
        assert (outcome.code, outcome.out) == (2, "")
        assert "config.yaml is not readable YAML; mend or remove it, or give --unit" in outcome.err


@pytest.mark.parametrize(
    "config",
    ["", "- speech", "7", "source_type: banana", "source_type: 2020-13-45", "source_type: [text]", "source_type: null"],
)
def test_a_config_that_says_nothing(config, lagging):
    write(GOOD)
    write(config, "config.yaml")
    scored = lagging("score", "-f", "json", "instances.log")
    assert scored.code == 0
    assert parse(scored)["DAL"]["unit"] == "token"


def test_an_unknown_unit_in_a_log(lagging):
    write('{"delays": [1, 2], "source_length": 2, "unit": "s"}\n', "a.jsonl")
    text, scored = lagging("validate", "a.jsonl"), lagging("score", "a.jsonl")
    assert text.code == scored.code != 0
    assert "a.jsonl" in scored.err
    assert "unit must be 'token', 'ms' or 'none', but is 's'" in scored.err


def test_lines_in_different_units_are_not_averaged(lagging):
    first = '{"delays": [1, 2], "source_length": 2, "unit": "token"}\n'
    write(first + '{"delays": [1000, 2000], "source_length": 3000, "unit": "ms"}\n', "a.jsonl")
    text, scored = lagging("validate", "a.jsonl"), lagging("score", "-f", "json", "a.jsonl")
    assert (text.code, scored.code, scored.out) == (1, 1, "")
    assert "a.jsonl:2" in scored.err


@pytest.mark.parametrize("value", ["-5", "1e999"])
def test_a_reference_length_that_is_none(value, lagging):
    write(f'{{"delays": [1, 2], "source_length": 2, "reference_length": {value}}}\n', "a.jsonl")
    text = lagging("validate", "a.jsonl")
    scored = lagging("score", "-f", "json", "-m", "AL(length=reference)", "a.jsonl")
    assert text.code == 1
    assert scored.code == 1
    assert scored.out == ""


# ---- repairs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "repair", "said", "scores", "n"),
    [
        (GOOD + segment(delays=[6, 5, 4, 3, 2, 1]), ["monotone"], "monotone", {"AL": 4.0, "DAL": 4.0}, 3),
        (GOOD + segment(delays=[-3, 4, 5, 6, 6, 6]), ["clip"], "clip", {"AL": 8.25 / 3, "DAL": 8.5 / 3}, 3),
        (
            GOOD + segment(delays=[-3, -4, 5, 6, 6, 6]),
            ["monotone", "clip"],
            "clip+monotone",
            {"AL": 7.25 / 3},
            3,
        ),
        (GOOD + segment(delays=[-3, -4, 5, 6, 6, 6]), ["clip,monotone"], "clip+monotone", {"AL": 7.25 / 3}, 3),
        (GOOD + segment(0, delays=[6] * 6), ["first"], "first", {"AL": 3.0, "DAL": 3.0}, 2),
        (GOOD + segment(0, delays=[6] * 6), ["last"], "last", {"AL": 4.5, "DAL": 4.5}, 2),
        (
            GOOD + segment(0, delays=[6] * 6) + segment(0, delays=[5, 5, 6, 6, 6, 6]),
            ["last"],
            "last",
            {"AL": 11 / 3},
            2,
        ),
        (GOOD + segment(0, delays=[6, 5, 4, 3, 2, 1]), ["last", "monotone"], "last+monotone", {"AL": 4.5}, 2),
        (segment("a") + segment("b") + segment("a", delays=[6] * 6), ["last"], "last", {"AL": 4.5}, 2),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else "",
)
def test_repair(log, repair, said, scores, n, lagging):
    write(log)
    assert lagging("score", "instances.log").code == 1
    args = [arg for name in repair for arg in ("--repair", name)]
    scored = lagging("score", "-f", "json", "instances.log", *args)
    assert scored.code == 0, scored.err
    for name, expected in scores.items():
        record = parse(scored)[name]
        assert record["score"] == pytest.approx(expected)
        assert record["n"] == n
        assert f"|repair:{said}|" in record["signature"]
    for name in said.split("+"):
        assert f"by --repair {name}" in scored.err


def test_repair_monotone_mends_elapsed_times(lagging):
    write(GOOD_SPEECH + speech(elapsed=[7000.0, 6000, 6000, 6000, 6000, 6000]))
    scored = lagging("score", "-f", "json", "-m", "AL_CA", "--repair", "monotone", "instances.log")
    assert scored.code == 0
    record = parse(scored)["AL(clock=elapsed)"]
    assert record["score"] == pytest.approx((3050 + 3050 + 7000) / 3)
    assert "|repair:monotone|" in record["signature"]


@pytest.mark.parametrize("repair", ["monotone", "clip", "first", "last", "monotone,clip,last"])
def test_a_repair_without_effect_leaves_the_signature(repair, lagging):
    write(GOOD + segment())
    plain = parse(lagging("score", "-f", "json", "instances.log"))
    mended = lagging("score", "-f", "json", "--repair", repair, "instances.log")
    assert mended.code == 0
    assert parse(mended) == plain
    assert "repaired" not in mended.err


@pytest.mark.parametrize("repair", ["first", "last"])
def test_a_repair_of_duplicates_does_not_hide_other_faults(repair, lagging):
    write(GOOD + segment(0) + segment(3, delays=[3, NAN, 5, 6, 6, 6]))
    scored = lagging("score", "--repair", repair, "instances.log")
    assert (scored.code, scored.out) == (1, "")
    assert "a delay is not finite in instances.log:4 (segment 3), token 2" in scored.err
    assert "no segments" not in scored.err


@pytest.mark.parametrize("repair", ["first", "last"])
def test_a_repair_of_duplicates_across_files(repair, lagging):
    write(GOOD, "a.log")
    write(segment(1, delays=[6] * 6) + segment(2), "b.log")
    scored = lagging("score", "-f", "json", "--repair", repair, "*.log")
    assert scored.code == 0, scored.err
    record = parse(scored)["DAL"]
    assert (record["n"], record["score"]) == (3, 3.0 if repair == "first" else 4.0)
    assert f"|repair:{repair}|" in record["signature"]


@pytest.mark.parametrize("repair", ["first", "last"])
def test_a_repair_on_an_empty_file(repair, lagging):
    write("")
    scored = lagging("score", "--repair", repair, "instances.log")
    assert (scored.code, scored.out) == (1, "")
    assert "the log holds no segments in instances.log\n" in scored.err


def test_a_repair_does_not_mend_what_it_is_not_for(lagging):
    write(GOOD + segment(delays=[-3, 4, 5, 6, 6, 6]))
    scored = lagging("score", "--repair", "monotone", "instances.log")
    assert scored.code == 1
    assert "a delay is negative in instances.log:3 (segment 2), token 1: -3" in scored.err


def test_an_unknown_repair(lagging):
    write(GOOD)
    scored = lagging("score", "--repair", "monoton", "instances.log")
    assert (scored.code, scored.out) == (2, "")
    assert "no repair is called 'monoton'. Did you mean monotone?" in scored.err


def test_first_and_last_exclude_each_other(lagging):
    write(GOOD + segment(0))
    scored = lagging("score", "--repair", "first,last", "instances.log")
    assert (scored.code, scored.out) == (2, "")
    assert "exclude each other" in scored.err


# ---- as a process of its own --------------------------------------------------------------------------------------


def process(*args: str, cwd: Path, given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "lagging", *args], cwd=cwd, input=given, capture_output=True, timeout=60, check=False
    )


def test_a_process_that_is_refused(tmp_path):
    (tmp_path / "instances.log").write_text(GOOD + segment(delays=[6, 5, 4, 3, 2, 1]), "utf-8")
    done = process("score", "-f", "json", "instances.log", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode("utf-8").splitlines() == [
        "error: delays decrease in instances.log:3 (segment 2), token 2: 6 → 5",
        "  AL, LAAL and DAL need non-decreasing delays.",
        "  fix: `--repair monotone` clamps them (the signature then says repair:monotone), or re-export the log.",
    ]


def test_a_process_with_a_lone_surrogate(tmp_path):
    """Half a character: it is scored, or refused, and printing it breaks nothing."""
    odd = GOOD + segment().replace("a b c d e f", "a b c d e \\ud800", 1)
    (tmp_path / "instances.log").write_text(odd, "utf-8")
    scored = process("score", "-f", "json", "instances.log", cwd=tmp_path)
    validated = process("validate", "instances.log", cwd=tmp_path)
    assert scored.returncode == validated.returncode
    for done in (scored, process("inspect", "instances.log", "-i", "2", cwd=tmp_path)):
        assert done.returncode in (0, 1)
        assert b"Traceback" not in done.stderr
    written = process("convert", "instances.log", "-o", "out.jsonl", cwd=tmp_path)
    assert written.returncode in (0, 1)
    assert b"Traceback" not in written.stderr


def test_a_process_that_reads_a_pipe(tmp_path):
    done = process("validate", "-", cwd=tmp_path, given=(GOOD + segment(1)).encode())
    assert done.returncode == 1
    assert "<stdin>:3: segment 1: the index was used before: line 2" in done.stdout.decode("utf-8")
    done = process("score", "-f", "json", "-", cwd=tmp_path, given=b"")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"the log holds no segments in <stdin>" in done.stderr
