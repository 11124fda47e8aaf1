# SPDX-License-Identifier: Apache-2.0
"""Event streams: what each dialect says, what is refused and written; when words were shown, against a slow oracle."""

import itertools
import json

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import lagging
from lagging.cli import cli
from lagging.formats.revisions import Stream
from lagging.formats.subwords import find_joint, join
from lagging.metrics.clocks import clock


@pytest.fixture
def log(tmp_path):
    def write(*lines, name="talk.stream.jsonl"):
        path = tmp_path / name
        rows = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines]
        path.write_text("".join(row + "\n" for row in rows), "utf-8")
        return path

    return write


def event(time, text, mode="append", **more):
    return {"time": time, "text": text, "mode": mode, **more}


def kinds(run):
    return [note.kind for note in run.notes]


def faults(path, **how):
    return [(fault.kind, fault.line) for fault in lagging.validate(path, **how).faults]


# ---- dialects ---------------------------------------------------------------------------------------------------


def test_whisper_streaming(log):
    """A leading space begins a word, and none continues the last one."""
    path = log("1000.0000 0 900  Hel", "1500.0000 900 1400 lo, this", "2600.0000 1400 2500  is it", name="talk.txt")
    run = lagging.read(path)
    assert run.origin.format == "stream"
    assert run.prediction.tolist() == ["Hello, this is it"]
    assert run.delays.tolist() == [[1500, 1500, 2600, 2600]]
    assert run.source_length.tolist() == [2600]
    assert (run.erased.tolist(), run.revisions.tolist(), run.first_times, run.elapsed) == ([0], [0], None, None)
    assert run.document.tolist() == ["talk"]
    assert kinds(run) == ["time unit", "dialect", "no audio times", "source length"]
    assert "whisper_streaming" in str(run.notes[1])


def test_lines_that_never_begin_with_a_space_begin_words(log):
    run = lagging.read(log("2691.4399 300 1380 Chairman, thank you.", "6914.5501 1940 4940 If the", name="t.txt"))
    assert run.prediction.tolist() == ["Chairman, thank you. If the"]
    assert "no leading space" in kinds(run)
    grows = lagging.read(log("2100.0000 0 2000  Good mor", "4400.0000 2000 4100 ning", name="g.txt"))
    assert (grows.prediction.tolist(), grows.delays.tolist()) == (["Good morning"], [[2100, 4400]])
    assert "no leading space" not in kinds(grows)
    chinese = lagging.read(log("1000.0000 300 1380 你好", "2000.0000 1940 4940 世界。", name="zh.txt"))
    assert (chinese.prediction.tolist(), chinese.level) == (["你好世界。"], "char")
    assert chinese.delays.tolist() == [[1000, 1000, 2000, 2000, 2000]]


def test_seconds_are_never_guessed_without_a_note(log):
    older = log("2.6000 0.764 2.6  Hello", name="a.txt")
    assert lagging.read(older).delays.tolist() == [[2600]]
    assert "taken for s" in str(lagging.read(older).notes[0])
    text = "Hello and welcome to this long talk about clouds"
    talk = log("2.6000 0.764 2.6  Hello", f"311.2000 290.5 305.3  {text}", name="c.txt")
    assert lagging.read(talk).delays.tolist() == [[2600] + [311200] * 9]
    assert "nobody could have spoken so fast" in str(lagging.read(talk).notes[0])
    for lines in (["311.2000 0.764 305.3  Hello"], ["3.0000 1 2  Hello"]):
        unclear = log(*lines, name="b.txt")
        assert faults(unclear) == [("unclear-time-unit", 1)]
        time = float(lines[0].split()[0])
        assert lagging.read(unclear, time_unit="s").delays.tolist() == [[time * 1000]]
        assert lagging.read(unclear, time_unit="ms").delays.tolist() == [[time]]
        assert faults(unclear, time_unit="s") == faults(unclear, time_unit="ms") == []


def test_simulstreaming(log):
    words = [{"start": 0.332, "end": 0.5, "text": " And"}]
    path = log(
        {"start": 0.332, "end": 0.832, "text": " And so,", "words": words, "is_final": False, "emission_time": 2.246},
        {"is_final": True, "emission_time": 3.06},
        {"text": " my fel", "is_final": False, "emission_time": 3.5},
        {"text": "low", "is_final": True, "emission_time": 4.0},
        {"text": "No space", "is_final": False, "emission_time": 5.0},
    )
    run = lagging.read(path)
    assert run.prediction.tolist() == ["And so, my fellow No space"]
    assert run.delays.tolist() == [[2246, 2246, 3500, 4000, 5000, 5000]]


def test_whole_texts(log):
    def update(audio, time, text):
        return {"update_idx": 0, "audio_processed_ms": audio, "wallclock_elapsed_ms": time, "translation_text": text}

    run = lagging.read(log(update(1000, 1300, "it is"), update(2000, 2200, "it was a"), update(3000, 3300, "it is a")))
    assert run.prediction.tolist() == ["it is a"]
    assert (run.delays.tolist(), run.elapsed.tolist()) == ([[1000, 3000, 3000]], [[1300, 3300, 3300]])
    assert run.first_times.tolist() == [[1000, 1000, 2000]]
    assert (run.erased.tolist(), run.revisions.tolist(), run.source_length.tolist()) == ([3], [2], [3000])


def deepgram(time, text, final, start, duration, **more):
    alternative = {"transcript": text, "words": [{"word": word, "start": 0, "end": 0} for word in text.split()]}
    return {
        "time": time,
        "type": "Results",
        "is_final": final,
        "start": start,
        "duration": duration,
        "channel": {"alternatives": [alternative]},
        **more,
    }


SERVICES = {
    "Deepgram": [
        {"time": 5, "type": "Metadata"},
        deepgram(1100, "hello word", False, 0, 1),
        deepgram(2200, "hello world", True, 0, 2),
        deepgram(3300, "again", False, 2, 1),
    ],
    "AssemblyAI": [
        {"received_ms": 5, "message_type": "SessionBegins"},
        {"received_ms": 1100, "message_type": "PartialTranscript", "audio_end": 1000, "text": "hello word"},
        {"received_ms": 2200, "message_type": "FinalTranscript", "audio_end": 2000, "text": "hello world"},
        {"received_ms": 3300, "message_type": "PartialTranscript", "audio_end": 3000, "text": "again"},
    ],
    "Google": [
        {"time_s": 0.005, "response": {"results": []}},
        {"time_s": 1.1, "response": {"results": [
            {"alternatives": [{"transcript": "hello"}], "stability": 0.9, "resultEndTime": "1s"},
            {"alternatives": [{"transcript": " word"}], "stability": 0.1, "resultEndTime": "1s"},
        ]}},
        {"time_s": 2.2, "results": [
            {"alternatives": [{"transcript": "hello world"}], "is_final": True, "result_end_time": {"seconds": "2"}},
        ]},
        {"time_s": 3.3, "results": [{"alternatives": [{"transcript": " again"}], "resultEndTime": "3s"}]},
    ],
    "Speechmatics": [
        {"time": 5, "message": "RecognitionStarted"},
        {"time": 1100, "message": "AddPartialTranscript", "metadata": {"end_time": 1.0, "transcript": "hello word"}},
        {"time": 2200, "message": "AddTranscript", "metadata": {"end_time": 2.0, "transcript": "hello world "}},
        {"time": 3300, "message": {
            "message": "AddPartialTranscript", "metadata": {"end_time": 3.0, "transcript": "again"}}},
    ],
}  # fmt: skip


@pytest.mark.parametrize("service", SERVICES)
def test_interim_results_replace_each_other_until_one_is_final(service, log):
    run = lagging.read(log(*SERVICES[service]))
    assert f"dialect {service}" in run.origin.description
    assert run.prediction.tolist() == ["hello world again"]
    assert run.delays.tolist() == [[1000, 2000, 3000]]
    assert run.elapsed.tolist() == [[1100, 2200, 3300]]
    assert run.first_times.tolist() == [[1000, 2000, 3000]]
    assert (run.erased.tolist(), run.revisions.tolist()) == ([1], [1])
    assert "other line" in kinds(run)


def test_a_turn_may_be_formatted_after_its_end(log):
    def turn(time, text, order, **more):
        return {"time_ms": time, "type": "Turn", "turn_order": order, "transcript": text, **more}

    lines = [turn(1, "hello", 0, end_of_turn=True), turn(2, "Hello.", 0, turn_is_formatted=True), turn(3, "you", 1)]
    run = lagging.read(log(*lines))
    assert (run.prediction.tolist(), run.delays.tolist()) == (["Hello. you"], [[2, 3]])


def test_words_of_a_turn_that_are_not_final_are_shown(log):
    """`transcript` has the final words alone, and `words` all of them."""

    def turn(time, text, interim):
        words = [{"text": word, "word_is_final": True} for word in text.split()]
        words += [{"text": word, "word_is_final": False} for word in interim.split()]
        return {"time_ms": time, "type": "Turn", "turn_order": 0, "transcript": text, "words": words}

    run = lagging.read(
        log(turn(1000, "", "hi"), turn(2000, "hi", "my"), turn(3000, "hi", "may"), turn(4000, "hi my", ""))
    )
    assert run.prediction.tolist() == ["hi my"]
    assert (run.delays.tolist(), run.first_times.tolist()) == ([[1000, 4000]], [[1000, 2000]])
    assert run.erased.tolist() == [2]
    assert faults(log(turn(1, "", "hi") | {"words": [7]})) == [("bad-value", 1)]
    assert faults(log(turn(1, "", "hi") | {"turn_order": [7]})) == [("bad-value", 1)]


def test_a_response_may_have_results_that_are_final_and_others(log):
    """The interim result beside a final one is replaced by the next response; speech events are no results."""

    def response(time, *results):
        results = [
            {"alternatives": [{"transcript": text}], "isFinal": final, "resultEndOffset": f"{end}s"}
            for text, final, end in results
        ]
        return {"time_ms": time, "results": results}

    path = log(
        {"time_ms": 10, "speechEventType": "SPEECH_ACTIVITY_BEGIN"},
        response(1500, ("to be or", False, 1.2)),
        response(2600, ("to be", True, 2.0), (" that's", False, 2.4)),
        response(3600, (" that is it", True, 3.2)),
    )
    run = lagging.read(path)
    assert run.prediction.tolist() == ["to be that is it"]
    assert run.delays.tolist() == [[1200, 1200, 3200, 3200, 3200]]
    assert run.erased.tolist() == [2]
    assert "other line" in kinds(run)


@pytest.mark.parametrize("key", ["time", "received", "received_at", "receipt_time", "timestamp"])
def test_the_time_of_receipt_has_several_names_and_is_in_ms_or_s(key, log):
    def received(unit):
        lines = [deepgram(None, "hello", False, 0, 1.0), deepgram(None, "hello you", True, 0, 2.0)]
        return log(*({**line, key: time * unit} for line, time in zip(lines, (1.3, 2.4), strict=True)))

    for unit in (1, 1000):
        run = lagging.read(received(unit))
        assert (run.delays.tolist(), run.elapsed.tolist()) == ([[1000, 2000]], [[1300, 2400]])
        assert ("time unit" in kinds(run)) == (unit == 1)
    assert lagging.read(received(1000), time_unit="ms").elapsed.tolist() == [[1300, 2400]]
    assert faults(received(30)) == [("unclear-time-unit", 1)]
    score = lagging.score(lagging.read(received(30), time_unit="s"), ["AL_CA"])["AL_CA"]
    assert score.signature["times"] == "s"


def test_messages_of_which_none_is_a_transcript(log):
    path = log({"time_ms": 5, "message": "AddTranslation", "results": [{"content": "Hallo"}]})
    with pytest.raises(lagging.DataError, match="1 message of Speechmatics, and none is a transcript"):
        lagging.read(path)


def test_a_time_of_receipt_that_names_its_unit(log):
    lines = [deepgram(None, "hello", True, 0, 1.0) | {"received_at_s": 1.3}]
    assert lagging.read(log(*lines)).elapsed.tolist() == [[1300]]
    with pytest.raises(lagging.UsageError, match="name their unit"):
        lagging.read(log(*lines), time_unit="s")


def test_the_unit_of_other_dialects(log):
    generic = log(event(1, "a", audio=0.5, first=0.25), event(2, " b"))
    run = lagging.read(generic, time_unit="s")
    assert (run.delays.tolist(), run.elapsed.tolist()) == ([[500, 500]], [[1000, 2000]])
    assert lagging.score(run, ["AL"])["AL"].signature["times"] == "s"
    simulstreaming = log({"emission_time": 1, "text": " a"})
    assert "times" not in dict(lagging.read(simulstreaming, time_unit="s").given)
    with pytest.raises(lagging.UsageError, match="time_unit='ms' does not go with it"):
        lagging.read(simulstreaming, time_unit="ms")


def test_whole_texts_without_one_of_their_times(log):
    def updates(*times):
        return log(*({**time, "translation_text": text} for time, text in zip(times, ("a", "a b"), strict=True)))

    heard = lagging.read(updates({"audio_processed_ms": 100}, {"audio_processed_ms": 200}))
    assert (heard.delays.tolist(), heard.elapsed, heard.queue_times) == ([[100, 200]], None, None)
    assert "no times of showing" in kinds(heard)
    shown = lagging.read(updates({"wallclock_elapsed_ms": 100}, {"wallclock_elapsed_ms": 200}))
    assert (shown.delays.tolist(), shown.elapsed) == ([[100, 200]], None)
    assert "no audio times" in kinds(shown)
    assert faults(updates({"audio_processed_ms": 100}, {})) == [("missing-time", 2)]
    both = updates({"audio_processed_ms": 100}, {"audio_processed_ms": 200, "wallclock_elapsed_ms": 300})
    assert faults(both) == [("missing-time", 1)]


def test_the_generic_form(log):
    path = log(
        event(900, "it", recording="a"),
        event(500, "ja", "replace", recording="b", final=True),
        event(1000, "self ", recording="a", final=True),
        event(1700, "nein", "replace", recording="b"),
        event(1900, "doch", "replace", recording="b", unknown=7),
        event(2000, "is", recording="a"),
    )
    run = lagging.read(path)
    assert (run.id.tolist(), run.document.tolist()) == (["a", "b"], ["a", "b"])
    assert run.prediction.tolist() == ["itself is", "ja doch"]
    assert run.delays.tolist() == [[1000, 2000], [500, 1900]]
    assert run.erased.tolist() == [0, 1]


def test_several_files_are_several_recordings(log):
    one, two = log("1000.0000 0 900  Yes", name="one.txt"), log("2000.0000 0 900  No", name="two.txt")
    run = lagging.read([one, two])
    assert (run.id.tolist(), run.document.tolist()) == ([0, 1], ["one", "two"])


def test_a_source_length_that_is_given_is_in_the_signature(log):
    path = log(event(1000, "a"), event(2000, " b"))
    run = lagging.read(path, source_length=8000)
    assert run.source_length.tolist() == [8000]
    score = lagging.score(run, ["AL"])["AL"]
    assert score.signature["x"] == "8000"
    args = ["score", str(path), "-q", "-f", "json", "--like", str(score.signature)]
    (row,) = json.loads(CliRunner().invoke(cli, args).stdout)["scores"]
    assert (row["score"], row["signature"]) == (score.value, str(score.signature))
    with pytest.raises(lagging.UsageError, match="above 0"):
        lagging.read(path, source_length=-1)
    other = log('{"delays": [1], "source_length": 2}', name="a.jsonl")
    for function in (lagging.read, lagging.validate, lagging.merge):
        with pytest.raises(lagging.UsageError, match="source_length= and time_unit= are for event streams"):
            function(other, source_length=7)


# ---- what is refused --------------------------------------------------------------------------------------------


GOOD = event(100, "a")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (event(50, "b"), "time-goes-back"),
        ({"time": 200, "mode": "append"}, "missing-text"),
        ({"time": 200, "mode": "append", "final": True}, "missing-text"),
        ({"text": "b", "mode": "append"}, "missing-time"),
        (event(200, "b", "add"), "unknown-mode"),
        ({"time": 200, "text": "b"}, "unknown-mode"),
        (event(-1, "b"), "impossible-stream-time"),
        (event(1e300, "b"), "impossible-stream-time"),
        (event(1.7e12, "b"), "impossible-stream-time"),
        (event("soon", "b"), "bad-value"),
        (event(True, "b"), "bad-value"),
        (event(200, 7), "bad-value"),
        (event(200, "b", final="yes"), "bad-value"),
        (event(200, "b", recording=7), "bad-value"),
        ('{"time": 200, "text": "\\ud800", "mode": "append"}', "not-utf8"),
        ("{broken", "not-json"),
        ("[1]", "not-an-object"),
        ('{"time": 1, "time": 200, "text": "b", "mode": "append"}', "repeated-key"),
        ("200.0 1 2  b", "mixed-dialects"),
        ({"emission_time": 2.0, "text": "b"}, "mixed-dialects"),
        ("what is this", "not-a-stream"),
        ({"what": "is this"}, "not-a-stream"),
    ],
)
def test_what_is_refused(line, kind, log):
    path = log(GOOD, line, event(300, "c"), event(290, "d"))
    assert faults(path) == [(kind, 2), ("time-goes-back", 4)]
    with pytest.raises(lagging.DataError, match=r"talk.stream.jsonl:2: (.|\n)*fix: "):
        lagging.read(path)


@pytest.mark.parametrize(
    ("good", "bad", "kind"),
    [
        ("2600.0000 764 2600  a", "2500.0000 764 2600  b", "time-goes-back"),
        ("2600.0000 764 2600  a", "2700.0000 764  b", "not-a-stream"),
        ("2600.0000 764 2600  a", "-5 764 2600  b", "impossible-stream-time"),
        ("2600.0000 764 2600  a", '{"time": 9, "text": "b", "mode": "append"}', "mixed-dialects"),
        ({"emission_time": 1, "text": "a"}, {"emission_time": 2, "is_final": False}, "missing-text"),
        ({"emission_time": 1, "text": "a"}, {"emission_time": 0.5, "text": "b"}, "time-goes-back"),
        ({"emission_time": 1, "text": "a"}, {"emission_time": None, "text": "b"}, "missing-time"),
        (
            {"audio_processed_ms": 7, "wallclock_elapsed_ms": 9, "translation_text": "a"},
            {"audio_processed_ms": 8, "wallclock_elapsed_ms": 9},
            "missing-text",
        ),
        (
            {"audio_processed_ms": 7, "translation_text": "a"},
            {"audio_processed_ms": 6, "translation_text": "a"},
            "time-goes-back",
        ),
        (
            {"audio_processed_ms": 7, "wallclock_elapsed_ms": 9, "translation_text": "a"},
            {"audio_processed_ms": 6, "wallclock_elapsed_ms": 10, "translation_text": "a"},
            "time-goes-back",
        ),
        (deepgram(7, "a", False, 0, 1), deepgram(None, "a", False, 0, 1), "missing-time"),
        (deepgram(7, "a", False, 0, 1), {"time": 8, "channel": {"alternatives": []}}, "missing-text"),
        (SERVICES["Google"][1], {"time": 2000, "results": [7]}, "bad-value"),
        (SERVICES["Speechmatics"][1], {"time": 2000, "message": "AddTranscript", "metadata": []}, "missing-text"),
    ],
)
def test_what_is_refused_of_each_dialect(good, bad, kind, log):
    assert faults(log(good, bad, name="talk.txt")) == [(kind, 2)]


def test_recordings_with_and_without_audio(log):
    path = log(event(1, "a", audio=1, recording="x"), event(1, "a", recording="y"))
    assert faults(path) == [("missing-audio-time", 2)]


def test_other_levels_are_refused(log):
    with pytest.raises(lagging.UsageError, match="words and characters"):
        lagging.read(log(GOOD), level="token")
    with pytest.raises(lagging.UsageError, match="its unit is ms"):
        lagging.read(log(GOOD), unit="token")


# ---- when words were shown --------------------------------------------------------------------------------------


def slow(displays, level="word"):
    """The stable and first steps, and what was erased, from every text that was ever shown: loops and nothing else."""
    split = str.split if level == "word" else lambda text: list("".join(text.split()))
    shown = [split(text) for text in displays]
    final = shown[-1]
    first = [next(k for k, words in enumerate(shown) if words[t : t + 1] == [w]) for t, w in enumerate(final)]
    stable = []
    for t in range(len(final)):
        k = len(shown) - 1
        while k and shown[k - 1][: t + 1] == final[: t + 1]:
            k -= 1
        stable.append(k)
    erased = revisions = 0
    for old, new in itertools.pairwise(shown):
        kept = 0
        while kept < min(len(old), len(new)) and old[kept] == new[kept]:
            kept += 1
        erased += len(old) - kept
        revisions += kept < len(old)
    return final, stable, first, erased, revisions


SHOWN = st.lists(
    st.lists(st.sampled_from(["a", "b", "ab", "你", "c,"]), max_size=6).map(" ".join), min_size=1, max_size=9
)


@settings(max_examples=300, deadline=None)
@given(SHOWN, st.sampled_from(["word", "char"]))
def test_whole_texts_against_the_oracle(tmp_path_factory, displays, level):
    path = tmp_path_factory.mktemp("log") / "talk.stream.jsonl"
    lines = [event(100 * k, text, "replace", audio=90 * k) for k, text in enumerate(displays, 1)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    run = lagging.read(path, level=level)
    final, stable, first, erased, revisions = slow(displays, level)
    assert lagging.data.tokens.tokens(run.prediction[0], level) == final
    assert run.delays.tolist() == [[90 * (k + 1) for k in stable]]
    assert run.elapsed.tolist() == [[100 * (k + 1) for k in stable]]
    shown = run.delays if run.first_times is None else run.first_times
    assert shown.tolist() == [[90 * (k + 1) for k in first]]
    assert (run.erased.tolist(), run.revisions.tolist()) == ([erased], [revisions])
    assert (shown.values <= run.delays.values).all()
    assert erased or run.first_times is None
    again = path.with_name("again.stream.jsonl")
    assert set(lagging.write(run, again)) <= {"id", f"level (read it with --level {level})"}
    back = lagging.read(again, level=level)
    for column in ("delays", "elapsed", "source_length", "prediction", "erased", "revisions", "document"):
        one, other = getattr(run, column), getattr(back, column)
        assert (one is None and other is None) or one.tolist() == other.tolist(), column
    assert (shown.tolist()) == (back.delays if back.first_times is None else back.first_times).tolist()


STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.sampled_from(["▁a", "b", "▁", "ab", "▁b▁a", "你"]), max_size=4)),
    max_size=8,
)


@settings(max_examples=500, deadline=None)
@given(STEPS, st.sampled_from(["word", "char", "token"]))
def test_simulstream_against_the_oracle(steps, level):
    """Sub-words that are written and deleted: every text that was shown is joined from its beginning."""
    stream, stack, displays = Stream(0, 1), ["▁x"], []
    assert list(stream.step(0.0, None, ["▁x"], [])) == []
    displays.append(list(stack))
    for place, (count, new) in enumerate(steps, 1):
        gone = stack[len(stack) - min(count, len(stack)) :]
        stack = [*stack[: len(stack) - len(gone)], *new]
        assert list(stream.step(float(place), None, new, gone)) == []
        displays.append(list(stack))
    joint = find_joint([stack], {"▁a"})
    split = {
        "word": lambda tokens: join(tokens, joint).text.split(),
        "char": lambda tokens: list("".join(join(tokens, joint).text.split())),
        "token": list,
    }[level]
    shown = [split(tokens) for tokens in displays]
    text, stable, first, _ = stream.read(joint, level)
    final = shown[-1] if text else []
    assert first.tolist() == [
        next(k for k, words in enumerate(shown) if words[t : t + 1] == [w]) for t, w in enumerate(final)
    ]
    assert (first <= stable).all()


def test_sltev_has_both_times(tmp_path):
    path = tmp_path / "talk.slt"
    path.write_text("P 100 0 50 it is\nP 200 0 80 it was a\nC 300 0 90 it is a\n", "utf-8")
    run = lagging.read(path)
    assert (run.delays.tolist(), run.first_times.tolist()) == ([[100, 300, 300]], [[100, 100, 200]])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.text("ab ", max_size=6), st.booleans(), st.booleans()), min_size=1, max_size=8))
def test_nothing_is_first_shown_after_it_is_stable(tmp_path_factory, updates):
    """Appended and replaced texts in any order; where nothing was revised, nothing was erased."""
    path = tmp_path_factory.mktemp("stream") / "talk.jsonl"
    rows = [
        event(100 * k, text, "replace" if replaces else "append", final=final)
        for k, (text, replaces, final) in enumerate(updates, 1)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    run = lagging.read(path)
    first, stable = clock(run, "first"), clock(run, "stable")
    assert (first.values <= stable.values).all()
    if not any(replaces for _, replaces, _ in updates):
        assert (run.erased.tolist(), first.values.tolist()) == ([0], stable.values.tolist())
    for score in lagging.score(run, ["NormalizedErasure"]) if len(run.delays.values) else ():
        assert (score.value == 0) == (run.revisions.tolist() == [0])


# ---- what works on them -----------------------------------------------------------------------------------------


def test_a_simulated_stream_has_the_times_it_was_made_with(log):
    """A word every 400 ms, shown 300 ms after it was heard; each is first shown with another last word."""
    words = [f"w{k}" for k in range(20)]
    lines = [
        event(400 * k + 300, " ".join([*words[: k - 1], "?" if k % 2 else words[k - 1]]), "replace", audio=400 * k)
        for k in range(1, 21)
    ]
    run = lagging.read(log(*lines))
    g = [400 * (k + k % 2) for k in range(1, 21)]
    assert run.delays.tolist() == [g]
    assert run.elapsed.tolist() == [[time + 300 for time in g]]
    assert run.first_times.tolist() == [g]
    ne, flicker = lagging.score(run, ["NormalizedErasure", "Flicker"])
    assert (ne.value, flicker.value) == (10 / 20, 1)


def test_long_form(log, tmp_path):
    """A stream is cut like any other, and its segments keep the times of the first showing."""
    texts = ["guten Morgen", "guten Tag ich", "guten Tag ich habe", "guten Tag ich habe Bienen"]
    path = log(
        *(event(1000 * k, text, "replace", audio=1000 * k) for k, text in enumerate(texts, 1)), name="talk.jsonl"
    )
    (tmp_path / "talk.yaml").write_text(
        "- {duration: 2.0, offset: 0.0, wav: talk.wav}\n- {duration: 2.0, offset: 2.0, wav: talk.wav}\n", "utf-8"
    )
    (tmp_path / "talk.de").write_text("guten Tag\nich habe Bienen\n", "utf-8")
    args = ["--segmentation", str(tmp_path / "talk.yaml"), "--reference", str(tmp_path / "talk.de"), "-q", "-f", "json"]
    metrics = "StreamLAAL,DAL(clock=first),DAL(clock=elapsed),BLEU"
    result = CliRunner().invoke(cli, ["score", str(path), *args, "-m", metrics])
    assert result.exit_code == 0, result.output
    assert [row["n"] for row in json.loads(result.stdout)["scores"]] == [2] * 4


@pytest.mark.parametrize("command", ["score", "inspect", "validate"])
def test_commands(command, log):
    path = log(event(1000, "it is", "replace"), event(2000, "it was", "replace"), event(3000, "it is", "replace"))
    result = CliRunner().invoke(cli, [command, str(path)])
    assert result.exit_code == 0, result.output
    assert "generic" in result.output


def test_several_jobs_are_refused_in_a_sentence(log):
    result = CliRunner().invoke(cli, ["score", str(log(GOOD)), "--jobs", "2"])
    assert result.exit_code == 0
    assert "cannot be divided" in result.output


# ---- real ones --------------------------------------------------------------------------------------------------


@pytest.mark.data
def test_a_real_whisper_stream(data):
    run = lagging.read(data / "streams" / "whisper_streaming" / "candidate.txt")
    assert run.prediction[0].startswith("Hello, this is Jiawei Zhou from Harvard University. I am")
    assert run.delays.tolist() == [[2600] * 3 + [4440] * 4 + [6280] * 8]
    assert (run.source_length.tolist(), run.erased.tolist()) == ([6280], [0])


@pytest.mark.data
def test_real_updates(data):
    """By the slow oracle, from the texts as they are."""
    path = data / "streams" / "alignatt" / "stream_updates.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    run = lagging.read(path)
    final, stable, first, erased, revisions = slow([row["translation_text"] for row in rows])
    assert run.prediction[0].split() == final
    assert run.delays.tolist() == [[rows[k]["audio_processed_ms"] for k in stable]]
    assert run.first_times.tolist() == [[rows[k]["audio_processed_ms"] for k in first]]
    assert np.allclose(run.elapsed[0], [rows[k]["wallclock_elapsed_ms"] for k in stable], rtol=0, atol=1e-6)
    assert (run.erased.tolist(), run.revisions.tolist()) == ([erased], [revisions])
