# SPDX-License-Identifier: Apache-2.0
"""SimulEval agents through SimulEval's own runner and through ours; ours through both."""

import dataclasses
import json
import re
from pathlib import Path

import pytest

import lagging
import simuleval_peer as peer
from lagging.agents.simuleval import DIFFERENCES
from lagging.errors import UsageError
from simuleval_peer import Case

SAME = [
    Case("wait_k", options={"waitk": "3"}),
    Case("wait_k", options={"waitk": "1", "shout": "true"}),
    Case("chunks"),
    Case("verbose"),
    Case("chars", unit="char"),
    Case("pieces", unit="spm", theirs={"eval-latency-spm-model": "{folder}/pieces.model"}),
    Case("pipeline", options={"cut-after": "2"}),
    Case("tree", options={"output-index": "0"}),
    Case("tree", options={"output-index": "1"}),
    Case("listener", "speech", chunk=250),
    Case("listener", "speech", chunk=333, options={"wait-seconds": "1"}),
    Case("pauses", "speech", chunk=200),
    Case("mute", "speech", chunk=500),
    Case("speaker", "speech", chunk=400),
    Case("speaker", "speech", chunk=111),
    Case("speaking_pipeline", "speech", chunk=300),
]
"""Agents for which the two runners do the same."""

LANGUAGES = Case("language", "speech", chunk=500, theirs={"tgt-lang": "{folder}/languages"})
FAULTS = {
    "lost-tail": Case("tail", "speech", chunk=700),
    "lost-after-reset": Case("sentences", "speech", chunk=300),
    "leaked-state": Case("endless", "speech", chunk=500),
    "language-of-text": Case("text_language"),
    "never-finishes": Case("never", ends=True),
    "one-fault-ends-all": Case("raises", ends=True),
    "channels": Case("channels", "stereo", chunk=50),
    "segment-size-of-text": Case("chars", chunk=3),
}
"""Agents for which they do not."""

INSIDE = [
    Case("our_wait_k", options={"k": "2"}),
    Case("our_wait_k", options={"k": "3", "mark": "?", "times": "2"}),
    Case("documented", options={"k": "3"}),
    Case("our_chars", unit="char"),
    Case("our_listener", "speech", chunk=300),
    Case("our_early", "speech", chunk=300),
    Case("our_speaker", "speech", chunk=250, options={"rate": "4000"}),
]
"""Agents of ours, inside SimulEval and here."""


pytestmark = pytest.mark.usefixtures("simuleval")


def ids(case):
    return case.name


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("simuleval")
    peer.material(made)
    return made


@pytest.fixture(scope="module")
def runs(folder, simuleval_folder):
    """All of them, by their runner."""
    peer.run_all(folder, [*SAME, *FAULTS.values(), *INSIDE, LANGUAGES], simuleval_folder)
    return folder


def told(line, case):
    """What both runners tell of a sentence, in the same words."""
    same = {key: line[key] for key in ("index", "delays", "source_length", "reference")}
    same["reference"] = same["reference"].removesuffix("\n")  # reference-line-end
    if "durations" in line:
        same |= {key: line[key] for key in ("durations", "prediction_offset", "intervals", "source")}
        return same | {"wav": re.sub(r".*/(theirs|ours[^/]*)/", "", line["prediction"])}
    text = line["prediction"] if case.unit != "char" else line["prediction"].replace(" ", "")  # spaces-by-character
    return same | {"prediction": text, "prediction_length": line["prediction_length"], "source": line["source"]}


@pytest.mark.parametrize("case", SAME, ids=ids)
def test_the_same_by_both_runners(runs, case):
    expected = [told(line, case) for line in peer.log(runs, case)]
    assert [told(line, case) for line in peer.ours(runs, case)] == expected
    assert sum(len(line["delays"]) for line in expected) > 5 or case.agent == "mute"


@pytest.mark.parametrize("case", INSIDE, ids=ids)
def test_our_agents_inside_simuleval(runs, case):
    expected = [told(line, case) for line in peer.ours(runs, case, "file")]
    assert [told(line, case) for line in peer.log(runs, case)] == expected
    assert sum(len(line["delays"]) for line in expected) > 5


def test_the_speech_that_comes_out_is_the_same(runs):
    import soundfile

    case = Case("speaker", "speech", chunk=400)
    mine = peer.ours(runs, case)
    for one, other in zip(peer.log(runs, case), mine, strict=True):
        (a, rate), (b, other_rate) = soundfile.read(one["prediction"]), soundfile.read(other["prediction"])
        gaps = len(one["delays"])
        assert rate == other_rate == 24000
        assert abs(len(a) - len(b)) <= gaps  # gaps-in-samples
        assert abs(one["prediction_length"] - other["prediction_length"]) <= gaps / rate
        first = int(one["durations"][0] * rate / 1000)
        assert (a[:first] == b[:first]).all()


# ---- what is different, by name -----------------------------------------------------------------------------------


def test_lost_tail(runs):
    case = FAULTS["lost-tail"]
    lines, mine = peer.log(runs, case), peer.ours(runs, case)
    assert [line["prediction_length"] for line in lines] == [4, 2, 1]
    assert [line["prediction"] for line in mine] == ["w0 w1 w2 w3 w4 w5"] * 3
    assert [line["delays"][-1] for line in mine] == [line["source_length"] for line in lines]
    mine = peer.ours(runs, dataclasses.replace(case, only_ours={"stop-with-source": "true"}))
    assert [line["delays"] for line in mine] == [line["delays"] for line in lines]
    assert told(mine[0], case) == told(lines[0], case)  # the next begins with the state of this, in theirs


def test_lost_after_reset(runs):
    case = FAULTS["lost-after-reset"]
    lines, mine = peer.log(runs, case)[0], peer.ours(runs, case)[0]
    said = mine["prediction"].split()
    assert [word[0] for word in said] == ["1", "2"] * 4
    assert mine["delays"] == [300, 600, 900, 1200, 1500, 1800, 2100, pytest.approx(2345.5625)]
    lost = [2, 4, 6]  # what follows each "2", which was the last of a sentence
    assert lines["prediction"].split() == [word for place, word in enumerate(said) if place not in lost]


def test_leaked_state(runs):
    case = FAULTS["leaked-state"]
    lines, mine = peer.log(runs, case), peer.ours(runs, case)
    assert lines[0]["prediction"] == mine[0]["prediction"]
    heard = [[int(word.split(":")[1]) for word in line["prediction"].split()] for line in (lines[1], mine[1])]
    before = int(2.3456 * 16000)
    assert heard[1] == [4000, 8000]
    assert heard[0][0] == before + 4000


def test_language(runs):
    theirs = peer.log(runs, LANGUAGES)
    mine = peer.ours(runs, Case("language", "speech", chunk=500, only_ours={"tgt-lang": "{folder}/languages"}))
    assert [line["prediction"] for line in mine] == [line["prediction"] for line in theirs]
    assert mine[0]["prediction"].split()[0] == "de"
    one = peer.ours(runs, Case("language", "speech", chunk=500, only_ours={"tgt_lang": "fr"}))
    assert {word for line in one for word in line["prediction"].split()} == {"fr"}


def test_language_of_text(runs):
    case = FAULTS["language-of-text"]
    assert "Optional" in peer.log(runs, case)[0]["prediction"]
    assert peer.ours(runs, case)[0]["prediction"].split() == ["None"] * 6


def test_segment_size_of_text(runs):
    case = FAULTS["segment-size-of-text"]
    assert peer.log(runs, case)[0]["delays"] == [1, 2, 3, 4, 5, 6]
    mine = peer.ours(runs, case)[0]
    assert mine["delays"] == [3, 6]
    assert mine["prediction"] == "see all"


def test_never_finishes(runs):
    case = FAULTS["never-finishes"]
    assert (runs / "theirs" / case.name / "error").read_text() == "asked 1000 times after the end"
    assert peer.log(runs, case) == []
    lines = peer.ours(runs, case)
    assert [line["kind"] for line in lines] == ["never-finished"] * 4
    assert "asked 101 times" in lines[0]["failed"]


def test_one_fault_ends_all(runs):
    case = FAULTS["one-fault-ends-all"]
    assert (runs / "theirs" / case.name / "error").read_text() == "not this one"
    assert len(peer.log(runs, case)) == 1
    lines = peer.ours(runs, case)
    assert [line.get("kind") for line in lines] == [None, "raised", None, "raised"]
    assert "not this one" in lines[1]["failed"]
    assert "is not an Action instance" in lines[3]["failed"]
    assert lines[1]["traceback"].splitlines()[1].endswith("in policy")  # it begins in the agent's own code
    assert lines[2]["prediction"] == peer.TEXTS[2]


def test_nothing_written(runs):
    case = next(case for case in SAME if case.agent == "mute")
    assert {line["prediction"] for line in peer.log(runs, case)} == {""}
    assert {(line["prediction"], line["kind"]) for line in peer.ours(runs, case)} == {("", "nothing-written")}


def test_spaces_by_character(runs):
    case = next(case for case in SAME if case.unit == "char")
    line, mine = peer.log(runs, case)[0], peer.ours(runs, case)[0]
    assert (line["prediction"], mine["prediction"]) == ("whatweseeisnotall", "what we see is not all")
    assert line["delays"] == mine["delays"]


def test_channels(runs):
    case = FAULTS["channels"]
    assert peer.log(runs, case)[0]["prediction"] == "list list"
    with pytest.raises(UsageError, match="has 2 channels; agents hear one"):
        peer.ours(runs, case)


def test_reference_line_end_and_more_keys(runs):
    case = SAME[0]
    line, mine = peer.log(runs, case)[0], peer.ours(runs, case)[0]
    assert list(mine)[: len(line)] == list(line)
    assert "arrivals" in mine
    assert line["reference"] == mine["reference"] + "\n"


def test_elapsed(runs):
    case = next(case for case in SAME if case.agent == "speaker")
    line, mine = peer.log(runs, case)[0], peer.ours(runs, case)[0]
    assert line["elapsed"] == []
    assert len(mine["elapsed"]) == len(mine["delays"])


SHOWN = {
    "lost-tail": test_lost_tail,
    "lost-after-reset": test_lost_after_reset,
    "leaked-state": test_leaked_state,
    "never-finishes": test_never_finishes,
    "one-fault-ends-all": test_one_fault_ends_all,
    "nothing-written": test_nothing_written,
    "spaces-by-character": test_spaces_by_character,
    "reference-line-end": test_reference_line_end_and_more_keys,
    "more-keys": test_reference_line_end_and_more_keys,
    "elapsed": test_elapsed,
    "gaps-in-samples": test_the_speech_that_comes_out_is_the_same,
    "language-of-text": test_language_of_text,
    "segment-size-of-text": test_segment_size_of_text,
    "channels": test_channels,
}
"""Each difference, and the test that shows it."""


def test_every_difference_is_shown_and_on_its_page():
    page = (Path(__file__).parents[2] / "docs" / "simuleval.md").read_text()
    assert list(SHOWN) == list(DIFFERENCES)
    assert re.findall(r"^\| `([a-z][a-z-]+)` \|", page, re.MULTILINE) == list(DIFFERENCES)
    for name, difference in DIFFERENCES.items():
        assert f"| `{name}` | {difference.simuleval} | {difference.lagging} |" in page


# ---- their scoring of our logs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "kinds"),
    [
        (SAME[0], ("text", "text")),
        (SAME[8], ("speech", "text")),
    ],
    ids=["text", "speech"],
)
def test_simuleval_scores_our_log(runs, simuleval, case, kinds):
    peer.ours(runs, case)
    out = runs / "ours" / case.name
    (out / "config.yaml").write_text(f"source_type: {kinds[0]}\ntarget_type: {kinds[1]}\n")
    done = peer.python(
        *("-m", "simuleval.cli", "--score-only", "--output", str(out), "--latency-metrics", "LAAL", "AL", "AP", "DAL"),
        peer=simuleval,
        cwd=runs,
    )
    assert done.returncode == 0, done.stderr
    names, values = (line.split() for line in done.stdout.splitlines()[-2:])
    theirs = dict(zip(names, map(float, values[1:]), strict=True))
    scores = lagging.score(
        lagging.read(out / "instances.log"), ["BLEU", "LAAL", "AL", "AP", "DAL"], convention="simuleval"
    )
    for name, value in theirs.items():
        assert scores[name].value == pytest.approx(value, abs=5.1e-4), name


def test_simuleval_scores_our_log_of_speech(runs, simuleval):
    case = next(case for case in SAME if case.agent == "speaker")
    peer.ours(runs, case)
    out = runs / "ours" / case.name
    command = (
        "-m",
        "simuleval.cli",
        "--score-only",
        "--output",
        str(out),
        "--latency-metrics",
        "StartOffset",
        "EndOffset",
    )
    done = peer.python(*command, "--source-type", "speech", "--target-type", "speech", peer=simuleval, cwd=runs)
    assert done.returncode == 0, done.stderr
    assert "StartOffset" in done.stdout
    lines = [json.loads(line) for line in (out / "instances.log").read_text().splitlines()]
    start = sum(line["delays"][0] for line in lines) / len(lines)
    assert f"{start:.3f}".rstrip("0") in done.stdout
