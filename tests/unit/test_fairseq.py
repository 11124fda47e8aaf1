# SPDX-License-Identifier: Apache-2.0
"""`Delay-`, `RW-` and `L-` lines: what ICTNLP's sim_generate and its relatives print, and what we write like it."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lagging
import oracle
from lagging import Run
from lagging.errors import DataError, UsageError
from lagging.formats import fairseq, read, validate, write


@pytest.fixture
def log(tmp_path):
    def make(*lines: str | bytes, name: str = "pred.out"):
        path = tmp_path / name
        path.write_bytes(b"".join((x if isinstance(x, bytes) else x.encode()) + b"\n" for x in lines))
        return path

    return make


def told(error: pytest.ExceptionInfo[DataError]) -> list[tuple[object, ...]]:
    return [(f.kind, f.line, f.segment, f.token) for f in error.value.faults]


def printed(name: int, delays: list[int], x: float, source: str | None, words: str, reference: str) -> list[str]:
    """The lines of a sentence as sim_generate prints them: scores in single precision, `</s>` counted on both sides."""
    ap, al, dal = (float(np.float32(f(delays, x))) for f in (oracle.ap, oracle.al, oracle.dal))
    rises = sum(b > a for a, b in zip([0, *delays], delays, strict=False))
    return [
        *([] if source is None else [f"S-{name}\t{source}"]),
        f"T-{name}\t{reference}",
        f"Delay-{name}\t-0.41\t{delays}",
        f"L-{name}\tCW:{delays[-1] / rises}\tAP:{ap}\tAL:{al}\tDAL:{dal}",
        f"H-{name}\t-0.41\t{words}",
        f"P-{name}\t{' '.join(['-0.1'] * len(delays))}",
    ]


WORDS = (3, [2, 3, 5, 5], 5.0, "ein Haus steht dort", "a house stands", "there is a house")


# ---- what such logs say -----------------------------------------------------------------------------------------


def test_the_sample_of_the_documentation(log):
    block = (fairseq.__doc__ or "").split("\n\n")[1]
    run = read(log(*textwrap.dedent(block).splitlines()))
    assert (run.id.tolist(), run.unit, run.level) == ([7], "token", "word")
    assert run.delays.tolist() == [[2, 3, 5, 6, 6]]
    assert run.source_length.tolist() == [6]
    assert run.prediction.tolist() == ["there stands a house </s>"]
    assert run.reference.tolist() == ["there is a house"]
    assert run.source.tolist() == ["ein Ha@@ us steht dort"]
    delays = run.delays[0]
    measured = dict(entry.split(":") for entry in block.split("L-7\t")[1].splitlines()[0].split("\t"))
    for name, function in (("AP", lagging.ap), ("AL", lagging.al), ("DAL", lagging.dal), ("CW", lagging.cw)):
        assert function(delays, source_length=6) == pytest.approx(float(measured[name]), rel=1e-6), name


def test_words_get_the_end_of_the_sentence_that_the_delays_count(log):
    run = read(log(*printed(*WORDS)))
    assert (run.level, run.eos.tolist()) == ("word", [True])
    assert run.prediction.tolist() == ["a house stands </s>"]
    assert run.line.tolist() == [3]
    assert [note.kind for note in run.notes] == ["</s>"]
    assert run.source_length.tolist() == [5]  # one more than S- has: </s> of the source is counted too
    # kept, it gives what the log itself says; stripped, it takes its delay along
    assert lagging.score(run, ["AL"], convention="omnisteval")["AL"].value == pytest.approx(
        float(oracle.al(WORDS[1], 5, len(WORDS[5].split())))
    )
    assert lagging.score(run, ["DAL"])["DAL"].value == pytest.approx(float(oracle.dal(WORDS[1][:-1], 5)))


delays_of = st.integers(1, 40).flatmap(
    lambda x: st.tuples(st.just(x), st.lists(st.integers(1, x), min_size=1, max_size=12).map(sorted))
)


@given(st.lists(delays_of, min_size=1, max_size=4))
def test_the_log_gives_the_scores_that_it_says_it_has(tmp_path_factory, sentences):
    path = tmp_path_factory.getbasetemp() / "said.out"
    lines = [
        line
        for name, (x, g) in enumerate(sentences)
        for line in printed(name, g, x, None, " ".join(["w"] * (len(g) - 1)), "r")
    ]
    path.write_text("\n".join([*lines, *printed(99, [1], 3.0, None, "", "")]) + "\n")
    run = read(path, unit="token")[: len(sentences)]
    assert run.delays.tolist() == [g for _, g in sentences]
    assert run.source_length.tolist() == [x for x, _ in sentences]
    for row, (x, g) in enumerate(sentences):
        assert lagging.dal(run.delays[row], source_length=run.source_length[row]) == pytest.approx(
            float(oracle.dal(g, x))
        )


@given(st.integers(1, 500 * 16000), st.lists(st.integers(1, 500_000), min_size=1, max_size=30).map(sorted))
def test_the_length_of_speech_is_in_its_average_proportion(tmp_path_factory, samples, delays):
    """Speech has no S- line; |x| is samples / 16 ms, and AP was computed with it in single precision."""
    path = tmp_path_factory.getbasetemp() / "speech.out"
    words = " ".join(["a"] * (len(delays) - 1))
    lines = [*printed(0, delays, samples / 16, None, words, "b"), *printed(1, [1], 3.0, None, "", "")]
    path.write_text("\n".join(lines) + "\n")
    assert read(path, unit="ms").source_length.tolist() == [samples / 16, 3]


def test_speech(log):
    lines = printed(0, [1280, 2560, 2560], 2811.5625, None, "guten Tag", "guten Tag")
    run = read(log(*(line.replace("H-0", "D-0") for line in lines)))
    assert (run.unit, run.level) == ("ms", "word")
    assert run.prediction.tolist() == ["guten Tag </s>"]
    assert run.source_length.tolist() == [2811.5625]


def test_too_few_digits_of_ap_do_not_tell_a_length(log):
    said = ["S-0\ta b c d", "Delay-0\t0\t[2, 4, 5]", "H-0\t0\tx y"]
    assert read(log(*said, "L-0\tAP:0.7333")).source_length.tolist() == [5]
    assert read(log(*said, "L-0\tAP:0.7")).source_length.tolist() == [5]  # from S-, and one for </s>
    assert read(log(*said, "L-0\tAP:nan")).source_length.tolist() == [5]
    with pytest.raises(DataError) as error:
        read(log(*said[1:], "L-0\tAP:0.7"))
    assert told(error) == [("missing-source-length", 1, 0, None)]


@pytest.mark.parametrize(("delays", "length"), [([2, 4, 5], 5), ([2, 4, 4], 4)])
def test_without_ap_the_source_has_the_tokens_of_its_line(delays, length, log):
    run = read(log("S-0\ta b c d", f"Delay-0\t0\t{delays}", "H-0\t0\tx y"))
    assert run.source_length.tolist() == [length]


def test_one_sentence_that_was_read_to_its_end_tells_of_all(log):
    run = read(log("S-0\ta b", "Delay-0\t0\t[2]", "H-0\t0\t", "S-1\ta b", "Delay-1\t0\t[3]", "H-1\t0\t"))
    assert run.source_length.tolist() == [3, 3]


def test_a_source_in_other_tokens_than_the_delays(log):
    with pytest.raises(DataError, match="it is not in the tokens that they count") as error:
        read(log("S-0\tein Haus", "Delay-0\t0\t[2, 5]", "H-0\t0\tx"))
    assert told(error) == [("missing-source-length", 2, 0, None)]


def test_actions(log):
    """As Wait-info and HMT print them: AL, and then 0 for a read and 1 for a write."""
    run = read(
        log(
            "S-1\tein Haus",
            "T-1\ta house",
            "BS-1\tein Ha@@ us </s>",
            "BT-1\ta hou@@ se </s>",
            "RW-1\t2.1\t0 0 1 0 1 1 0 1 ",
            "H-1\t-0.3\ta house",
        )
    )
    assert run.delays.tolist() == [[2, 3, 3, 4]]
    assert run.source_length.tolist() == [4]
    assert run.level == "token"
    assert run.prediction.tolist() == ["a house"]


def test_actions_in_letters_and_a_source_not_read_to_its_end(log):
    run = read(log("RW-1\tR,R,W,r,w,R", "H-1\t0\ta"))
    assert (run.delays.tolist(), run.source_length.tolist()) == ([[2, 3]], [4])


def test_the_tokens_of_the_model_tell_the_length(log):
    run = read(log("S-1\tein Haus", "BS-1\tein Ha@@ us", "Delay-1\t0\t[2, 3, 4]", "BT-1\ta b", "H-1\t0\tab"))
    assert run.source_length.tolist() == [4]


@pytest.mark.parametrize(
    ("hypothesis", "reference", "joined"),
    [
        ("a hou@@ se", "the hou@@ se .", ("a house", "the house .")),
        ("▁a ▁hou se", "▁the ▁hou se .", ("a house", "the house.")),
    ],
)
def test_subwords_are_the_tokens_of_the_log(hypothesis, reference, joined, log):
    run = read(log("S-0\tx y z", f"T-0\t{reference}", "Delay-0\t0\t[1, 2, 3, 4]", f"H-0\t0\t{hypothesis}"))
    assert run.level == "token"
    assert (run.prediction.tolist(), run.reference.tolist()) == ([joined[0]], [joined[1]])
    assert run.reference_length.tolist() == [5]  # its sub-words, and </s>, as the delays count
    assert "tokens" not in [note.kind for note in run.notes]


def test_subwords_and_a_line_that_is_detokenized(log):
    first = ["S-0\tx", "Delay-0\t0\t[1, 2, 2]", "H-0\t0\thou@@ se", "D-0\t0\tHouse"]
    run = read(log(*first, "S-1\tx", "Delay-1\t0\t[2]", "H-1\t0\t"))
    assert run.prediction.tolist() == ["House", "</s>"]


def test_a_delay_too_few_for_the_subwords(log):
    good = [line for n in (0, 1) for line in (f"S-{n}\tx", f"Delay-{n}\t0\t[1, 2, 2]", f"H-{n}\t0\thou@@ se")]
    with pytest.raises(DataError) as error:
        read(log(*good, "S-2\tx", "Delay-2\t0\t[1, 2]", "H-2\t0\thou@@ se"))
    assert told(error) == [("token-count", 8, 2, None)]
    assert error.value.faults[0].detail == "2 delays, 3 tokens with </s>"


def test_words_where_the_delays_count_subwords(log):
    """--remove-bpe: the hypothesis is words, the delays are not; an empty one has the delay of `</s>` alone."""
    first = ["Delay-0\t0\t[1, 2, 3, 4, 5]", "H-0\t0\ta house", "S-0\tein zwei drei vier"]
    run = read(log(*first, "Delay-1\t0\t[2]", "H-1\t0\t", "S-1\tein"))
    assert run.level == "token"
    assert run.prediction.tolist() == ["a house", "</s>"]
    assert "tokens" in [note.kind for note in run.notes]


def test_delays_without_the_end_of_the_sentence(log):
    run = read(log("S-0\ta b c", "Delay-0\t0\t[1, 2]", "H-0\t0\tx y"))
    assert (run.prediction.tolist(), run.source_length.tolist(), run.notes) == (["x y"], [3], ())


# ---- how such logs look -----------------------------------------------------------------------------------------


def test_lines_in_any_order_and_others_between(log):
    lines = [*printed(*WORDS), *printed(8, [1, 2], 2.0, "ja", "yes", "yes")]
    plain = read(log(*lines))
    by_kind = sorted(lines, key=lambda line: line.split("-")[0])
    mixed = read(log("2022 | INFO | start", "", *by_kind, "Generate test with beam=1: BLEU4 = 27.9", "CW score:  1.5"))
    for run in (plain, mixed):
        assert dict(zip(run.id.tolist(), run.delays.tolist(), strict=True)) == {3: [2, 3, 5, 5], 8: [1, 2]}
    assert [str(n) for n in mixed.notes if n.kind == "other lines"] == [
        f"other lines: 4 lines: that tell of no sentence: skipped, in {mixed.origin.path}"
    ]
    assert "other lines" not in [note.kind for note in plain.notes]


def test_a_progress_bar_and_line_ends_of_windows(log):
    lines = [line + "\r" for line in printed(*WORDS)]
    run = read(log("  0%|    | 0/2 [00:00<?, ?it/s]\r" + lines[0], *lines[1:]))
    assert run.delays.tolist() == [WORDS[1]]
    assert run.source.tolist() == ["ein Haus steht dort"]


def test_a_list_in_a_list(log):
    run = read(log("S-0\ta", "Delay-0\t0\t[[1.0, 2.0]]", "H-0\t0\tx"))
    assert run.delays.tolist() == [[1, 2]]


def test_an_empty_hypothesis(log):
    run = read(log("S-0\ta b", "Delay-0\t0\t[]", "H-0\t0\t", *printed(*WORDS)))
    assert run.delays.tolist() == [[], WORDS[1]]
    assert run.prediction.tolist() == ["", "a house stands </s>"]


def test_a_tab_in_a_text(log):
    assert read(log("S-0\ta\tb", "Delay-0\t0\t[1, 2]", "H-0\t0\tx\ty")).prediction.tolist() == ["x\ty"]


def test_what_is_recognised():
    assert fairseq.recognise(b"2022 | INFO\n\nS-0\tein\n")
    assert fairseq.recognise(b"bar\rDelay-12\t0\t[1]\n")
    for other in (b"S-0 ein\n", b"X-1\ta\n", b"RRWW\n", b"hello\n", b'{"a": "\\nS-0\\t"}\n'):
        assert not fairseq.recognise(other)


# ---- what is wrong ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "kind", "token", "detail"),
    [
        ("Delay-1\t0\t[1, x]", "bad-delay", 2, '"x"'),
        ("Delay-1\t0\t[1, null]", "bad-delay", 2, "null"),
        ("Delay-1\t0\t[1, 2", "delays-not-a-list", None, '"[1, 2"'),
        ("Delay-1\t0\tnone", "delays-not-a-list", None, '"none"'),
        ("Delay-1\t0\t[[1, 2], [3, 4]]", "delays-not-a-list", None, "several lists in one"),
        ("Delay-1\t0\t[1, nan]", "not-finite", 2, "NaN"),
        ("Delay-1\t0\t[2, 1]", "decreasing-delays", 2, "2 → 1"),
        ("Delay-1\t0\t[-1, 1]", "negative-delay", 1, "-1"),
        ("RW-1\t0\t0 0 2 1", "not-an-action", None, "'2' in RW-"),
        ("RW-1\t0\t0 é 1", "not-an-action", None, "'é' in RW-"),
    ],
)
def test_lines_that_cannot_be_read(line, kind, token, detail, log):
    with pytest.raises(DataError) as error:
        read(log("S-1\ta b", "H-1\t0\tx", line, *printed(*WORDS)))
    assert told(error) == [(kind, 3, 1, token)]
    assert error.value.faults[0].detail == detail


def test_a_byte_that_is_no_text(log):
    with pytest.raises(DataError) as error:
        read(log(b"S-1\ta\xe9", "Delay-1\t0\t[1]", "H-1\t0\t"))
    assert told(error) == [("not-utf8", 1, 1, None)]
    assert error.value.faults[0].detail == "byte 0xe9 in S-"


def test_output_of_fairseq_without_delays(log):
    """The plain output of fairseq-generate is recognised, and what it lacks is named."""
    with pytest.raises(DataError) as error:
        read(log("S-0\ta b", "T-0\tx", "H-0\t-0.1\tx y", "D-0\t-0.1\tx y", "P-0\t-0.1 -0.2"))
    assert told(error) == [("missing-delays", 1, 0, None)]


def test_a_sentence_without_delays_among_others(log):
    with pytest.raises(DataError) as error:
        read(log(*printed(*WORDS), "S-9\ta b", "H-9\t0\tx y"))
    assert told(error) == [("missing-delays", 7, 9, None)]


def test_a_number_used_twice(log):
    """Several hypotheses of one sentence (--nbest), or a log that was appended to."""
    path = log(*printed(*WORDS), *printed(3, [5, 5], 5.0, "ein Haus steht dort", "x", "y"))
    with pytest.raises(DataError) as error:
        read(path)
    assert told(error) == [("duplicate-id", 9, 3, None)]
    assert read(path, repair=["first"]).delays.tolist() == [WORDS[1]]
    assert read(path, repair=["last"]).delays.tolist() == [[5, 5]]


def test_all_faults_at_once(log):
    found = validate(log("S-0\ta", "Delay-0\t0\t[2, 1]", "H-0\t0\tx", "S-1\ta", "Delay-1\t0\t[q]", "H-1\t0\tx"))
    assert [(f.kind, f.segment) for f in found.faults] == [("decreasing-delays", 0), ("bad-delay", 1)]


def test_a_level_or_unit_that_there_is_not(log):
    with pytest.raises(UsageError, match="level must be one of"):
        read(log("Delay-0\t0\t[1]", "L-0\tsource_length:1\tlevel:sentence"))
    with pytest.raises(UsageError, match="unit must be"):
        read(log("Delay-0\t0\t[1]", "L-0\tsource_length:1\tunit:hours"))


def test_a_length_that_is_no_number(log):
    with pytest.raises(DataError) as error:
        read(log("Delay-0\t0\t[1]", "L-0\tsource_length:two"))
    assert told(error) == [("bad-source-length", 1, 0, None)]


# ---- writing ----------------------------------------------------------------------------------------------------


def test_layout(tmp_path):
    run = Run.from_delays(
        [[1, 2.5], []],
        source_length=[3, 1],
        prediction=["a b", ""],
        reference=["c", None],
        source=["x y z", ""],
        id=[4, 9],
    )
    assert write(run, tmp_path / "a.out") == []
    assert (tmp_path / "a.out").read_text("utf-8").splitlines() == [
        "S-4\tx y z",
        "T-4\tc",
        "H-4\tnan\ta b",
        "Delay-4\tnan\t[1.0, 2.5]",
        "L-4\tsource_length:3.0\tunit:token\tlevel:word",
        "S-9\t",
        "H-9\tnan\t",
        "Delay-9\tnan\t[]",
        "L-9\tsource_length:1.0\tunit:token\tlevel:word",
    ]


def test_what_is_lost(tmp_path):
    run = Run.from_delays(
        [[1, 2]], source_length=[2], prediction=["a\nb"], id=["x"], elapsed=[[1, 2]], document=["d"], seg="given"
    )
    assert write(run, tmp_path / "a.out") == [
        "document",
        "elapsed",
        "id (numbered instead)",
        "prediction (without line breaks)",
        "seg (given, read back as none)",
    ]
    assert read(tmp_path / "a.out").prediction.tolist() == ["a b"]
    assert "id (numbered instead)" in write(Run.from_delays([[1]], source_length=[1], id=[-1]), tmp_path / "b.out")


def test_a_line_break_at_the_end_becomes_no_space(tmp_path):
    """SimulEval leaves one in references, and under its convention a space would be a word more."""
    run = Run.from_delays([[1, 2]], source_length=[2], prediction=["a b"], reference=["c d e\n"])
    assert write(run, tmp_path / "a.out") == ["reference (without line breaks)"]
    one, two = (lagging.score(r, ["AL"], convention="simuleval")["AL"].value for r in (run, read(tmp_path / "a.out")))
    assert one == two


def test_the_largest_number_there_is_names_a_sentence(tmp_path):
    run = Run.from_delays([[1]], source_length=[2], prediction=["a"], id=[2**63 - 1])
    write(run, tmp_path / "a.fairseq")
    assert read(tmp_path / "a.fairseq", format="fairseq").id.tolist() == [2**63 - 1]
