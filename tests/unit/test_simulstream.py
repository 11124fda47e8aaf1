# SPDX-License-Identifier: Apache-2.0
"""simulstream's metrics.jsonl: streams that are written and deleted, read against a slow oracle; and written."""

from __future__ import annotations

import gzip
import json
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lagging
from lagging import Run
from lagging.data.columns import first_shown
from lagging.errors import DataError, UsageError
from lagging.formats import FORMATS, read, scan, source, validate, write
from lagging.formats.json_kinds import recognise
from lagging.formats.subwords import AS_IS, BYTES, MARKED, WORDS, find_joint, join

ABSENT = object()


def chunk(
    audio: Any, new: Any = (), deleted: Any = (), compute: Any = 0.25, id: Any = 0, **more: Any
) -> dict[str, Any]:
    record = {
        "id": id,
        "total_audio_processed": audio,
        "computation_time": compute,
        "generated_tokens": list(new) if isinstance(new, tuple) else new,
        "deleted_tokens": list(deleted) if isinstance(deleted, tuple) else deleted,
        **more,
    }
    return {key: value for key, value in record.items() if value is not ABSENT}


def meta(name: Any = "talk.wav", id: Any = 0) -> dict[str, Any]:
    return {"id": id, "metadata": {"wav_name": name}}


def dump(*records: object) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _line(record: object) -> bytes:
    return (record if isinstance(record, str) else dump(record)).encode()


@pytest.fixture
def log(tmp_path):
    def write(*records: Any, name: str = "metrics.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(r if isinstance(r, bytes) else _line(r) for r in records))
        return path

    return write


def told(path, **how: Any) -> list[tuple[str, int | None, object]]:
    return [(fault.kind, fault.line, fault.segment) for fault in validate(path, **how).faults]


def kinds(run: Run) -> list[str]:
    return [note.kind for note in run.notes]


# ---- what a log says --------------------------------------------------------------------------------------------


def test_a_log(log):
    path = log(
        {"model_loading_time": 22.95},
        meta("/data/talk1.wav"),
        chunk(1.0, compute=0.49),
        chunk(2.0, ("▁Hal", "lo", "▁da"), compute=0.18),
        chunk(3.0, ("▁hier",), ("▁da",), compute=0.19),
        chunk(3.5),
    )
    run = read(path)
    assert (run.unit, run.level, run.seg, run.origin.format) == ("ms", "word", "none", "simulstream")
    assert run.to_dict() == {
        "id": [0],
        "delays": [[2000, 3000]],
        "source_length": [3500],
        "elapsed": [[2180, 3190]],
        "prediction": ["Hallo hier"],
        "document": ["talk1.wav"],
        "arrivals": [[1000, 2000, 3000, 3500]],
        "compute": [[490, 180, 190, 250]],
        "steps": [[1, 2]],
        "first_times": [[2000, 3000]],
        "erased": [1],
        "revisions": [1],
    }
    assert run.line.tolist() == [2]
    assert run.notes == ()
    assert run.origin.description == (
        "simulstream log, speech → text, delays and source length in ms of audio processed, a word begins at ▁, "
        "target counted in words"
    )


def test_streams_may_interleave(log):
    run = read(
        log(
            meta("a.wav", 7),
            chunk(1, ("▁a",), id=7),
            meta("b.wav", "x"),
            chunk(1, ("▁b",), id="x"),
            chunk(2, ("▁c",), ("▁a",), id=7),
            chunk(4, ("▁d",), id="x"),
            chunk(3, id=7),
        )
    )
    assert run.id.tolist() == ["7", "x"]
    assert run.line.tolist() == [1, 3]
    assert run.prediction.tolist() == ["c", "b d"]
    assert run.delays.tolist() == [[2000], [1000, 4000]]
    assert run.source_length.tolist() == [3000, 4000]
    assert run.erased.tolist() == [1, 0]
    assert run.document.tolist() == ["a.wav", "b.wav"]


def test_keys_in_any_order_and_keys_that_nobody_knows(log):
    record = chunk(2, ("▁a",))
    expected = read(log(meta(), record)).to_dict()
    turned = [dict(reversed({**r, "x": {"id": 9}, "y": [None]}.items())) for r in (meta(), record)]
    assert read(log(*turned)).to_dict() == expected


def test_the_name_of_the_recording_may_come_late_or_with_a_chunk(log):
    run = read(log(chunk(1, ("▁a",)), meta(), chunk(2, id=1, metadata={"wav_name": "b.wav", "lang": "de"}), meta()))
    assert run.document.tolist() == ["talk.wav", "b.wav"]
    assert run.source_length.tolist() == [1000, 2000]
    assert kinds(run) == ["empty hypothesis"]


@pytest.mark.parametrize("metadata", [ABSENT, None, {}, {"wav_name": None}])
def test_a_recording_without_a_name(metadata, log):
    run = read(log(chunk(1, ("▁a",), id=1, metadata=metadata), meta(id=2), chunk(1, ("▁a",), id=2)))
    assert run.document.tolist() == [None, "talk.wav"]
    assert [str(note) for note in run.notes] == [
        "no recording: 1 segment (1): no metadata with a `wav_name`: the document is not known"
    ]
    assert read(log(chunk(1, ("▁a",), metadata=metadata))).document is None


@pytest.mark.parametrize(
    ("names", "documents"),
    [
        (["a/x.wav", "a/y.wav"], ["x.wav", "y.wav"]),
        (["a/x.wav", "b/x.wav"], ["a/x.wav", "b/x.wav"]),
        (["C:\\audio\\x.wav", "y.wav"], ["x.wav", "y.wav"]),
        (["a/", "y"], ["a/", "y"]),
    ],
)
def test_documents(names, documents, log):
    """simulstream itself joins two recordings of one name; here they stay apart."""
    lines = [line for i, name in enumerate(names) for line in (meta(name, i), chunk(1, ("▁a",), id=i))]
    assert read(log(*lines)).document.tolist() == documents


def test_a_stream_without_a_chunk(log):
    run = read(log(meta(), meta("b.wav", 1), chunk(1, ("▁a",), id=1)))
    assert run.source_length.tolist() == [0, 1000]
    assert run.delays.tolist() == [[], [1000]]
    assert kinds(run) == ["empty hypothesis", "empty source"]


def test_the_ids_of_a_server_are_addresses(log):
    run = read(log(*(line for i in (6440336304, 6440339999) for line in (meta(str(i), i), chunk(1, ("▁a",), id=i)))))
    assert run.id.tolist() == ["6440336304", "6440339999"]
    assert kinds(run) == []  # no word of missing indices


def test_everything_erased(log):
    run = read(log(meta(), chunk(1, ("▁a", "b", "▁c")), chunk(2, (), ("▁a", "b", "▁c")), chunk(3)))
    assert run.delays.tolist() == [[]]
    assert run.prediction.tolist() == [""]
    assert (run.erased.tolist(), run.revisions.tolist()) == ([2], [1])
    assert kinds(run) == ["empty hypothesis"]


def test_times_are_kept_to_the_nanosecond(log):
    run = read(log(meta(), chunk(1.001, ("▁a",), compute=0.4919137954711914)))
    assert 1.001 * 1000 != 1001
    assert run.delays.tolist() == [[1001]]
    assert run.elapsed.tolist() == [[1492.913795]]
    assert run.compute.tolist() == [[491.913795]]


def test_no_computing_times(log):
    run = read(log(meta(), chunk(1, ("▁a",), compute=ABSENT), chunk(2, ("▁b",)), chunk(3, compute=None)))
    assert (run.elapsed, run.compute) == (None, None)
    assert run.delays.tolist() == [[1000, 2000]]
    assert [str(note) for note in run.notes] == [
        "no computing time: 2 lines: no `computation_time`: elapsed times and computing times are not available"
    ]


@pytest.mark.parametrize("nothing", [ABSENT, None])
def test_no_deletions(nothing, log):
    run = read(log(meta(), chunk(1, ("▁a",), nothing), meta("b.wav", 1), chunk(1, ("▁b",), id=1)))
    np.testing.assert_array_equal(run.erased, [np.nan, 0])
    np.testing.assert_array_equal(run.revisions, [np.nan, 0])
    assert [str(note) for note in run.notes] == [
        "no deletions: 1 segment (0): no `deleted_tokens`: taken to delete nothing; what was erased is not available"
    ]


def test_elapsed_times_are_simulstreams_own_and_may_decrease(log):
    path = log(meta(), chunk(2, ("▁a",), compute=5.5), chunk(4, ("▁b",), compute=1.0))
    run = read(path)
    assert run.elapsed.tolist() == [[7500, 5000]]
    assert kinds(run) == ["elapsed per step"]
    queue = lagging.score(run, ["DAL(clock=queue)"])["DAL(clock=queue)"]
    assert queue.value == pytest.approx(np.mean([7500, 9500 - 2000]))  # the second step waits for the first: 8500
    mended = read(path, repair=["monotone"])
    assert mended.elapsed.tolist() == [[7500, 7500]]
    assert dict(mended.repaired) == {"monotone": 1}
    assert kinds(mended) == []


def test_lines_that_say_nothing_of_a_stream(log):
    path = log({"model_loading_time": 1}, {"event": "x"}, meta(), "\n", chunk(1, ("▁a",)), {"other": [1]})
    assert [str(note) for note in read(path).notes] == [
        f"blank line: 1 line: skipped, in {path}",
        f"other line: 2 lines: neither a chunk nor metadata: skipped, in {path}",
    ]


def test_a_byte_order_mark(log):
    run = read(log(b"\xef\xbb\xbf" + dump(meta(), chunk(1, ("▁a",))).encode()))
    assert kinds(run) == ["byte order mark"]
    assert run.prediction.tolist() == ["a"]


# ---- when a word was written ------------------------------------------------------------------------------------

TIMED = {
    "a sub-word is added": ([("▁a", "b")], [((), ("c",))], "abc", [2]),
    "a sub-word is rewritten": ([("▁a", "b")], [(("b",), ("c",))], "ac", [2]),
    "a sub-word is rewritten as it was": ([("▁a", "b")], [(("b",), ("b",))], "ab", [2]),
    "a sub-word is taken away": ([("▁a", "b")], [(("b",), ())], "a", [2]),
    "a word is taken away": ([("▁a", "▁b")], [(("▁b",), ())], "a", [1]),
    "a word and what was added to the one before": ([("▁a", "b", "▁c")], [(("b", "▁c"), ("▁d",))], "a d", [2, 2]),
    "a bare space": ([("▁a",)], [((), ("▁",)), ((), ("b",))], "a b", [1, 3]),
    "a bare space taken away": ([("▁a", "▁")], [(("▁",), ("b",))], "ab", [2]),
    "two words in one token": ([("▁a▁b", "c")], [(("c",), ())], "a b", [1, 2]),
    "cut, then a word added": ([("▁a", "b")], [(("b",), ()), ((), ("▁c",))], "a c", [2, 3]),
    "cut, grown, cut at a space": ([("▁a", "b")], [(("b",), ()), ((), ("▁c",)), (("▁c",), ())], "a", [2]),
    "cut further back": ([("▁a", "▁b", "c")], [(("c",), ()), (("▁b",), ("▁d",))], "a d", [1, 3]),
    "an empty token": ([("▁a", "b", "")], [(("b", ""), ("",)), (("",), ())], "a", [2]),
    "all of it": ([("▁a", "b")], [(("▁a", "b"), ("▁a",))], "a", [2]),
}


@pytest.mark.parametrize("case", TIMED, ids=str)
def test_when_a_word_was_last_changed(case, log):
    (first,), later, text, seconds = TIMED[case]
    run = read(log(meta(), chunk(1, first), *(chunk(t, new, old) for t, (old, new) in enumerate(later, 2))))
    assert run.prediction.tolist() == [text]
    assert run.delays.tolist() == [[1000 * t for t in seconds]]
    assert run.steps.tolist() == [[t - 1 for t in seconds]]
    assert run.revisions.tolist() == [sum(any(old) for old, _ in later)]


def detokenise(tokens: list[str]) -> str:
    return "".join(tokens).replace("▁", " ").strip()


def oracle(chunks: list[dict[str, Any]], units) -> tuple[str, list[float], list[float], int]:
    """The whole text anew after every deletion and every addition: a unit that is not as it was is as late as that."""
    tokens: list[str] = []
    words: list[str] = []
    times: list[tuple[float, float]] = []
    erased = 0
    for record in chunks:
        audio, gone = record["total_audio_processed"], record["deleted_tokens"]
        now = (1000 * audio, 1000 * (audio + record["computation_time"]))
        erased += len(units(detokenise(gone)))
        for changed in (
            tokens[: len(tokens) - len(gone)],
            tokens[: len(tokens) - len(gone)] + record["generated_tokens"],
        ):
            after = units(detokenise(changed))
            times = [times[i] if i < len(words) and words[i] == unit else now for i, unit in enumerate(after)]
            words, tokens_after = after, changed
        tokens = tokens_after
    return detokenise(tokens), [t for t, _ in times], [e for _, e in times], erased


PIECES = ["▁", "▁a", "▁der", "en", "s", ",", "▁e▁f", "", "ü", "▁日", "本", "▁x▁", " y"]


@st.composite
def streams(draw, pieces=PIECES):
    """The chunks of some streams, interleaved."""
    n = draw(st.integers(1, 3))
    chunks: list[list[dict[str, Any]]] = [[] for _ in range(n)]
    order = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=20))
    standing: list[list[str]] = [[] for _ in range(n)]
    for stream in order:
        tokens = standing[stream]
        gone = draw(st.integers(0, len(tokens)))
        new = draw(st.lists(st.sampled_from(pieces), max_size=4))
        before = chunks[stream][-1]["total_audio_processed"] if chunks[stream] else 0
        audio = before + draw(st.sampled_from([0, 0.5, 1.375]))
        compute = draw(st.sampled_from([0, 0.125, 2.75]))
        chunks[stream].append(chunk(audio, tuple(new), tuple(tokens[len(tokens) - gone :]), compute, id=stream))
        standing[stream] = tokens[: len(tokens) - gone] + new
    taken = [iter(c) for c in chunks]
    return [c for c in chunks if c], [next(taken[stream]) for stream in order]


def parsed(tmp_path_factory, records: list[dict[str, Any]], **how: Any) -> Run:
    path = tmp_path_factory.mktemp("log") / "metrics.jsonl"
    path.write_text(dump({"model_loading_time": 1}, *records), "utf-8")
    return read(path, **how)


@given(case=streams())
def test_words_are_timed_as_by_the_oracle(case, tmp_path_factory):
    chunks, lines = case
    named = {record["id"]: meta(f"{record['id']}.wav", record["id"]) for record in lines}
    head = chunk(1, ("▁",), id="marked")  # so that ▁ is the space, whatever is drawn
    run = parsed(tmp_path_factory, [head, *named.values(), *lines], level="word")[1:]
    by_id = {str(c[0]["id"]): c for c in chunks}
    for row, name in enumerate(run.id):
        text, delays, elapsed, erased = oracle(by_id[name], str.split)
        assert run.prediction[row] == text
        assert run.delays[row].tolist() == delays
        assert run.elapsed[row].tolist() == elapsed
        assert run.erased[row] == erased
        assert run.source_length[row] == by_id[name][-1]["total_audio_processed"] * 1000
        np.testing.assert_array_equal(run.arrivals[row][run.steps[row].astype(int)], run.delays[row])


@given(case=streams(["好", "你好", "▁", "本a", "日"]))
def test_characters_are_timed_as_by_the_oracle(case, tmp_path_factory):
    chunks, lines = case
    run = parsed(tmp_path_factory, [chunk(1, ("▁",), id="marked"), *lines], level="char")[1:]
    by_id = {str(c[0]["id"]): c for c in chunks}
    for row, name in enumerate(run.id):
        assert run.prediction[row] == detokenise(_standing(by_id[name]))
        stamps = [(c, t) for token, t in _standing(by_id[name], True) for c in token if c not in "▁ "]
        assert run.delays[row].tolist() == [1000 * t for _, t in stamps]
        gone = "".join(t for record in by_id[name] for t in record["deleted_tokens"])
        assert run.erased[row] == len(gone.replace("▁", ""))


def _standing(chunks: list[dict[str, Any]], timed: bool = False) -> list[Any]:
    stack: list[Any] = []
    for record in chunks:
        stack = stack[: len(stack) - len(record["deleted_tokens"])]
        stack += [(token, record["total_audio_processed"]) for token in record["generated_tokens"]]
    return stack if timed else [token for token, _ in stack]


def test_time_is_linear_in_the_log(log):
    """Twenty thousand steps that each rewrite a sub-word of an ever longer text: quadratic, it would take hours."""
    lines = [meta(), chunk(1, ("▁a",))]
    lines += [chunk(t, ("▁Wort", "er"), ("er",) if t > 2 else ()) for t in range(2, 20_002)]
    path = log(dump(*lines))
    start = time.process_time()
    run = read(path)
    assert time.process_time() - start < 10
    assert run.delays.lengths.tolist() == [20_001]
    assert run.delays[0][:3].tolist() == [1000, 3000, 4000]
    assert run.erased.tolist() == [19_999]


# ---- how tokens join --------------------------------------------------------------------------------------------


def byte_level(text: str) -> str:
    """A text in the alphabet of byte-level BPE, from its definition: bytes that cannot be printed come after U+0100."""
    printed = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    letters = dict(zip(printed, printed, strict=True))
    for byte in range(256):
        if byte not in letters:
            letters[byte] = 256 + len(letters) - len(printed)
    return "".join(chr(letters[byte]) for byte in text.encode())


@pytest.mark.parametrize(
    ("tokens", "joint", "text", "level", "count"),
    [
        (["▁Gut", "en", "▁Tag", "!"], MARKED, "Guten Tag!", "word", 2),
        (["Gut", "en", "▁Tag"], MARKED, "Guten Tag", "word", 2),
        (["▁a", "▁Ġ"], MARKED, "a Ġ", "word", 2),
        (["▁今天", "天气", "很", "好", "▁Amy"], MARKED, "今天天气很好 Amy", "char", 9),
        (["▁a", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "▁b"], MARKED, "a😀 b", "word", 2),
        (["▁a", "<0xF0>", "▁b"], MARKED, "a\ufffd b", "word", 2),
        (["Gr", byte_level("ü")[0], byte_level("ü")[1] + byte_level("ße"), "Ġdich"], BYTES, "Grüße dich", "word", 2),
        ([byte_level("你好"), byte_level("吗")], BYTES, "你好吗", "char", 3),
        (["A", byte_level("é")], BYTES, "Aé", "word", 1),
        (["Guten", "Tag"], WORDS, "Guten Tag", "word", 2),
        (["caf\u00e9", "cr\u00e8me"], WORDS, "café crème", "word", 2),
        (["Ġermanja", "ħafna"], WORDS, "Ġermanja ħafna", "word", 2),
        ([" Gut", "en", " Tag"], AS_IS, "Guten Tag", "word", 2),
        (["你", "好", " ", "A", "m", "y"], AS_IS, "你好 Amy", "char", 5),
        (["a", "b", " ", "c"], AS_IS, "ab c", "char", 3),
        (["你好", "吗"], AS_IS, "你好吗", "char", 3),
        (["Ã", "©"], AS_IS, "Ã©", "char", 2),
        (["你", "好", "</s>"], AS_IS, "你好</s>", "char", 3),
    ],
)
def test_how_tokens_join(tokens, joint, text, level, count, log):
    assert find_joint([tokens], set(tokens)) is joint
    run = read(log(meta(), *(chunk(t, (token,)) for t, token in enumerate(tokens, 1))))
    assert run.prediction.tolist() == [text]
    assert (run.level, run.delays.lengths.tolist()) == (level, [count])
    assert joint.description in run.origin.description


def test_a_character_of_two_tokens_is_there_with_the_second(log):
    first, second = byte_level("é")
    run = read(log(meta(), chunk(1, ("Ġa" + first,)), chunk(2, (second,)), chunk(3, ("Ġb",))), level="char")
    assert run.prediction.tolist() == ["aé b"]
    assert run.delays.tolist() == [[1000, 2000, 3000]]


@given(text=st.text(st.characters(exclude_categories=("Cs",)), max_size=20), data=st.data())
def test_bytes_join_to_the_text_however_they_are_cut(text, data):
    letters = byte_level(text)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(letters)), max_size=5)))
    tokens = [letters[a:b] for a, b in zip([0, *cuts], [*cuts, len(letters)], strict=True)]
    joined = join(tokens, BYTES)
    assert joined.text == text
    assert joined.characters.tolist() == np.cumsum([len(c.encode()) for c in text], dtype=int).tolist()
    words = text.split()
    assert len(joined.ends("word")) == len(words)
    assert len(joined.ends("char")) == len("".join(words)) - 3 * text.rstrip().endswith("</s>")


def test_the_level_given(log):
    path = log(meta(), chunk(1, ("▁Hal", "lo")), chunk(2, ("▁du",), ("lo",)))
    by_word, by_char, by_token = (read(path, level=level) for level in ("word", "char", "token"))
    assert [run.level for run in (by_word, by_char, by_token)] == ["word", "char", "token"]
    assert by_word.delays.tolist() == [[2000, 2000]]
    assert by_char.delays.tolist() == [[1000, 1000, 1000, 2000, 2000]]
    assert by_token.delays.tolist() == [[1000, 2000]]
    assert [run.erased.tolist() for run in (by_word, by_char, by_token)] == [[1], [2], [1]]
    assert {run.prediction[0] for run in (by_word, by_char, by_token)} == {"Hal du"}


def test_a_text_of_nothing_but_space_has_no_tokens_at_any_level(log):
    for level in ("word", "char", "token"):
        assert read(log(meta(), chunk(1, ("▁",))), level=level).delays.tolist() == [[]]


# ---- what is wrong ----------------------------------------------------------------------------------------------

WRONG = [
    (chunk(-1, ("▁x",)), "impossible-time", "total_audio_processed: -1 s"),
    (chunk(0.5, ("▁x",)), "impossible-time", "total_audio_processed: 1 → 0.5 s"),
    (chunk(float("nan"), ("▁x",)), "impossible-time", "total_audio_processed: NaN s"),
    (chunk(float("inf"), ("▁x",)), "impossible-time", "total_audio_processed: Infinity s"),
    (chunk(10**400, ("▁x",)), "impossible-time", "total_audio_processed: Infinity s"),
    (chunk(1e15, ("▁x",)), "impossible-time", "total_audio_processed: 1000000000000000 s"),
    (chunk(2, compute=-0.5), "impossible-time", "computation_time: -0.5 s"),
    (chunk(2, compute=float("nan")), "impossible-time", "computation_time: NaN s"),
    (chunk("2", ("▁x",)), "bad-value", 'total_audio_processed: "2"'),
    (chunk(True, ("▁x",)), "bad-value", "total_audio_processed: true"),
    (chunk(2, compute=[1]), "bad-value", "computation_time: [1]"),
    (chunk(2, "▁x"), "bad-value", 'generated_tokens: "▁x"'),
    (chunk(2, ("▁x", 3)), "bad-value", 'generated_tokens: ["▁x", 3]'),
    (chunk(2, ("▁x",), "▁b"), "bad-value", 'deleted_tokens: "▁b"'),
    (chunk(2, ("▁x", "\ud800")), "not-utf8", "half of a surrogate pair in generated_tokens"),
    (chunk(2, ABSENT), "bad-value", "no `generated_tokens`"),
    (chunk(2, None), "bad-value", "no `generated_tokens`"),
    (chunk(ABSENT, ("▁x",)), "missing-audio", ""),
    (chunk(None, ("▁x",)), "missing-audio", ""),
    ({"id": 0}, "missing-audio", ""),
    (chunk(2, (), ("▁a",)), "other-tokens-deleted", 'deleted ["▁a"], the text ends in ["▁b"]'),
    (chunk(2, (), ("▁c", "▁b")), "other-tokens-deleted", 'deleted ["▁c", "▁b"], the text ends in ["▁a", "▁b"]'),
    (chunk(2, (), ("▁a", "▁c")), "other-tokens-deleted", 'deleted ["▁c"], the text ends in ["▁b"]'),
    (chunk(2, (), ("▁x", "▁a", "▁b")), "other-tokens-deleted", 'deleted ["▁x", "▁a", "▁b"], the text ends in ["▁a", '),
    ({"id": 0, "metadata": "a.wav"}, "bad-value", 'metadata: "a.wav"'),
    (meta(3), "bad-value", "wav_name: 3"),
]


@pytest.mark.parametrize(("bad", "kind", "detail"), WRONG, ids=lambda part: part if isinstance(part, str) else "")
def test_a_line_that_is_wrong(bad, kind, detail, log):
    """One fault, with its place, and no other for what follows from it."""
    lines = [meta(), chunk(1, ("▁a", "▁b")), json.dumps(bad) + "\n", chunk(3, ("▁c",)), chunk(4, ("▁d",), ("▁c",))]
    path = log(*lines)
    found = validate(path)
    assert [(fault.kind, fault.line, fault.segment) for fault in found.faults] == [(kind, 3, 0)]
    assert found.faults[0].detail.startswith(detail)
    with pytest.raises(DataError, match=r"metrics\.jsonl:3 \(segment 0\)"):
        read(path)


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ("{\n", "not-json"),
        ("[1]\n", "not-an-object"),
        ("7\n", "not-an-object"),
        ("{}{}\n", "not-json"),
        (dump(chunk(2, id=ABSENT)), "missing-id"),
        (dump({"metadata": {"wav_name": "a.wav"}}), "missing-id"),
        (dump(chunk(2, id=None)), "bad-id"),
        (dump(chunk(2, id=1.5)), "bad-id"),
        (dump(chunk(2, id=True)), "bad-id"),
    ],
)
def test_a_line_of_no_stream(bad, kind, log):
    """Whose tokens it had is not known, so that deletions after it are not blamed."""
    path = log(meta(), chunk(1, ("▁a",)), bad, chunk(3, (), ("▁b",)), chunk(3, (), ("▁b",), id=1))
    assert told(path) == [(kind, 3, None)]


def test_a_line_that_cannot_be_read_of_an_id_that_was_used_again(log):
    """The stream that has the id now is the one whose tokens are not known."""
    streams = [meta("a.wav"), chunk(1, ("▁a",)), meta("b.wav"), chunk(1, ("▁b",))]
    assert told(log(*streams, chunk(2, "▁c"), chunk(3, (), ("▁c",)))) == [("bad-value", 5, 0)]


def test_a_wrong_deletion_is_told_once(log):
    path = log(meta(), chunk(1, ("▁a",)), chunk(2, (), ("▁b",)), chunk(3, ("▁c",), ("▁d",)))
    assert told(path) == [("other-tokens-deleted", 3, 0)]


def test_two_lines_on_one_and_none_on_another(log):
    path = log(dump(meta()).strip() + dump(chunk(1, ("▁a",))) + "\n", chunk(2, ("▁b",)))
    assert told(path) == [("not-json", 1, None)]


def test_bytes_that_are_no_text(log):
    path = log(dump(meta(), chunk(1, ("▁a",))).encode() + b'{"id": 0, "x": "\xe9"}\n')
    assert told(path) == [("not-utf8", 3, None)]


def test_a_whole_number_written_as_a_float_is_an_id(log):
    assert read(log(chunk(1, ("▁a",), id=0.0), chunk(2, ("▁b",)))).id.tolist() == [0]


def test_a_last_line_that_breaks_off(log):
    path = log(meta(), chunk(1, ("▁a",)), dump(chunk(2, ("▁b",)))[:-20])
    assert told(path) == [("truncated", 3, None)]
    run = read(path, repair=["torn"])
    assert run.prediction.tolist() == ["a"]
    assert dict(run.repaired) == {"torn": 1}


def test_one_recording_processed_twice(log):
    """simulstream joins the two silently."""
    path = log(meta("a.wav", 0), chunk(1, ("▁a",), id=0), meta("a.wav", 1), chunk(1, ("▁a",), id=1))
    (fault,) = validate(path).faults
    assert (fault.kind, fault.line, fault.segment) == ("stream-twice", 3, 1)
    assert fault.detail == '"a.wav", also stream 0 from line 1 on'


def test_a_stream_that_begins_anew(log):
    again = [chunk(1, ("▁a",)), chunk(2, ("▁b",)), chunk(3)]
    assert told(log(meta(), *again, *again)) == [("impossible-time", 5, 0)]
    assert told(log(meta(), *again, meta(), *again)) == [("impossible-time", 6, 0)]


def test_an_id_that_a_server_gives_out_again(log):
    again = [chunk(1, ("▁a",)), chunk(2, ("▁b",)), chunk(3)]
    run = lagging.read(log(meta("a.wav"), *again, meta("b.wav"), *again[:2], meta("c.wav"), *again[:1]))
    assert run.id.tolist() == ["0", "0-2", "0-3"]
    assert run.document.tolist() == ["a.wav", "b.wav", "c.wav"]
    assert run.delays.tolist() == [[1000, 2000], [1000, 2000], [1000]]
    assert run.source_length.tolist() == [3000, 2000, 1000]
    assert "id used again" in [note.kind for note in run.notes]
    assert told(log(meta("a.wav"), *again, meta("b.wav"), *again, meta("a.wav"), *again)) == [
        ("stream-twice", 9, "0-3")
    ]


def test_a_number_and_a_text_that_are_one_id(log):
    assert told(log(meta("a", 1), chunk(1, id=1), meta("b", "1"), chunk(1, id="1"))) == [("duplicate-id", 3, "1")]


def test_all_faults_at_once(log):
    lines = [meta(), *(json.dumps(bad) + "\n" for bad, *_ in WRONG), '{"id": 0']
    assert {line for _, line, _ in told(log(*lines))} == set(range(2, len(WRONG) + 3)) - {
        2 + i for i, (bad, kind, _) in enumerate(WRONG) if kind == "other-tokens-deleted" or bad == chunk(0.5, ("▁x",))
    }


def test_two_files_share_no_id(log):
    paths = [log(meta(name), chunk(1, ("▁a",)), name=f"{name}.metrics.jsonl") for name in "ab"]
    with pytest.raises(DataError, match="used in another file"):
        read(paths)


@pytest.mark.parametrize("content", ["", "\n\n", '{"model_loading_time": 3}\n'])
def test_a_log_of_nothing(content, log):
    assert [kind for kind, _, _ in told(log(content))] == ["empty-log"]


def test_source_tokens(log):
    with pytest.raises(UsageError, match="its unit is ms"):
        read(log(meta(), chunk(1, ("▁a",))), unit="token")


# ---- where, and which part of it --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first", [{"model_loading_time": 2.5}, meta(), dict(reversed(meta().items())), chunk(1), chunk(1, id=ABSENT)]
)
def test_it_is_recognised_by_its_first_line(first):
    assert recognise(b"\n" + dump(first, {"delays": [1]}).encode()) == "simulstream"


@pytest.mark.parametrize(
    "first",
    [
        {"delays": [1], "source_length": 1},
        {"id": 0, "metadata": {}, "delays": [1], "source_length": 1},
        {"index": 0, "prediction": "a", "model_loading_time": 1, "delays": [1]},
        {"id": 0},
    ],
)
def test_other_logs_are_not_taken_for_it(first):
    assert recognise(dump(first).encode()) != "simulstream"
    assert recognise(b"RRW\n") is None


def test_a_directory(log):
    path = log(meta(), chunk(1, ("▁a",)), name="base/metrics.jsonl")
    assert (read(path.parent).name, read(path).name) == ("base", "base")
    text = path.read_bytes()
    packed = log(gzip.compress(text), name="new/metrics.jsonl.gz")
    assert (read(packed.parent).name, len(read(packed))) == ("new", 1)
    assert read(log(text, name="wait-3.metrics.jsonl")).name == "wait-3"


def test_batches_do_not_matter(log, monkeypatch):
    lines = [meta()] + [chunk(t, ("▁a", "b"), ("b",) if t > 1 else ()) for t in range(1, 50)]
    path = log(*lines)
    whole = read(path).to_dict()
    monkeypatch.setattr(source, "BATCH_BYTES", 10)
    assert read(path).to_dict() == whole


def test_columns_wanted(log):
    path = log(meta(), chunk(1, ("▁a",)))
    (run,) = scan(path, columns=["compute", "document"])
    assert (run.arrivals, run.steps) == (None, None)
    assert run.compute is not None
    assert run.elapsed is not None
    assert run.erased.tolist() == [0]


# ---- writing ----------------------------------------------------------------------------------------------------


def speech(**changes: Any) -> Run:
    given = {
        "delays": [[1000, 1000, 2500], [400]],
        "source_length": [3000, 400],
        "elapsed": [[1100, 1100, 2750], [460]],
        "prediction": ["Guten Tag zusammen", "ja"],
        "document": ["a.wav", "b.wav"],
        "unit": "ms",
        **changes,
    }
    return Run.from_delays(given.pop("delays"), **given)


def again(run: Run, folder, **how: Any) -> tuple[Run, list[str]]:
    lost = write(run, folder / "run.metrics.jsonl")
    return read(folder / "run.metrics.jsonl", **how), lost


def test_layout(tmp_path):
    assert write(speech(), tmp_path / "a.metrics.jsonl") == []
    assert (tmp_path / "a.metrics.jsonl").read_text("utf-8").splitlines() == [
        '{"id": 0, "metadata": {"wav_name": "a.wav"}}',
        '{"id": 0, "total_audio_processed": 1.0, "computation_time": 0.1, "generated_tokens": ["▁Guten", "▁Tag"], '
        '"deleted_tokens": []}',
        '{"id": 0, "total_audio_processed": 2.5, "computation_time": 0.25, "generated_tokens": ["▁zusammen"], '
        '"deleted_tokens": []}',
        '{"id": 0, "total_audio_processed": 3.0, "computation_time": 0.0, "generated_tokens": [], '
        '"deleted_tokens": []}',
        '{"id": 1, "metadata": {"wav_name": "b.wav"}}',
        '{"id": 1, "total_audio_processed": 0.4, "computation_time": 0.06, "generated_tokens": ["▁ja"], '
        '"deleted_tokens": []}',
    ]


def test_characters_are_written_as_such(tmp_path):
    run = Run.from_delays([[1000, 1000, 2000]], source_length=[2000], prediction=["你好 A"], unit="ms", level="char")
    back, lost = again(run, tmp_path)
    assert lost == []
    written = [json.loads(line) for line in (tmp_path / "run.metrics.jsonl").read_text("utf-8").splitlines()]
    assert [record.get("generated_tokens") for record in written] == [None, ["你", "好"], [" ", "A"]]
    assert all("computation_time" not in record for record in written)
    assert back.prediction.tolist() == run.prediction.tolist()
    assert back.delays == run.delays


def test_what_was_read_is_written_step_by_step(log, tmp_path):
    run = read(log(meta(), chunk(1, compute=0.5), chunk(2, ("▁a", "b")), chunk(3, ("▁c",)), chunk(4.5), name="x.jsonl"))
    back, lost = again(run, tmp_path)
    assert lost == []
    assert back.to_dict() == run.to_dict()


def test_deletions_are_gone(log, tmp_path):
    run = read(log(meta(), chunk(1, ("▁a", "▁b")), chunk(2, ("▁c",), ("▁b",)), name="x.jsonl"))
    back, lost = again(run, tmp_path)
    assert lost == ["erased", "revisions"]
    assert (back.delays, back.steps, back.prediction.tolist()) == (run.delays, run.steps, ["a c"])


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"reference": ["x", "y"], "source": ["s", "t"], "offset": [0, 1]}, ["reference", "source", "offset"]),
        ({"elapsed": [[1100, 1200, 2750], [460]]}, ["elapsed"]),
        ({"elapsed": [[900, 900, 2750], [460]]}, ["elapsed"]),
        ({"source_length": [2000, 400]}, ["source_length (read back as the last delay, where that is beyond it)"]),
        ({"document": ["t", "t"]}, ["document"]),
        ({"document": ["t", None]}, ["document"]),
        ({"document": ["x/t", "u"]}, ["document (read back without its directory)"]),
        ({"prediction": ["a▁x b c", "ja"]}, ["prediction (▁ written as _)"]),
        ({"prediction": [" a b c", "ja\n"]}, ["prediction (white space at its ends)"]),
        ({"prediction": ["你 好 吗", "ja"], "level": "word"}, ["level (read it with --level word)"]),
        ({"arrivals": [[1000, 2500], [400]], "steps": [[0, 0, 1], [0]]}, ["arrivals", "steps"]),
        ({"arrivals": [[1000, 2500, 3000], [400]], "steps": [[0, 0, 1], [0]]}, ["elapsed"]),
        ({"erased": [0, np.nan], "revisions": [0, 0]}, []),
        ({"source_length": [3000.0000001, 400]}, ["source_length (kept to the nanosecond)"]),
        ({"seg": "given"}, ["seg (given, read back as none)"]),
    ],
)
def test_what_it_cannot_hold(changes, lost, tmp_path):
    run = speech(**changes)
    back, said = again(run, tmp_path, level=run.level)
    assert said == lost
    assert back.delays == run.delays


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (Run.from_delays([[1]], source_length=[2], prediction=["a"]), "count source tokens"),
        (Run.from_delays([[1]], source_length=[2], unit="ms"), "there is no text"),
        (Run.from_delays([[1, 2]], source_length=[2], prediction=["a b c"], unit="ms"), "the tokens that these delays"),
        (Run.from_delays([[-1]], source_length=[2], prediction=["a"], unit="ms", seg="given"), "negative"),
    ],
)
def test_what_cannot_be_written_at_all(run, why, tmp_path):
    with pytest.raises((UsageError, DataError), match=why):
        write(run, tmp_path / "a.metrics.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_run_in_which_nothing_was_written(tmp_path):
    run = Run.from_delays([[], []], source_length=[2000, 0], unit="ms")
    back, lost = again(run, tmp_path)
    assert lost == []
    assert back.source_length.tolist() == [2000, 0]
    assert back.prediction.tolist() == ["", ""]


def test_the_ending_names_the_format(tmp_path):
    write(speech(), tmp_path / "a.metrics.jsonl")
    assert read(tmp_path / "a.metrics.jsonl").origin.format == "simulstream"
    assert FORMATS["simulstream"].suffixes == (".metrics.jsonl",)


@st.composite
def runs(draw):
    level = draw(st.sampled_from(["word", "char"]))
    n = draw(st.integers(1, 4))
    rows: dict[str, list[Any]] = {key: [] for key in ("delays", "elapsed", "source_length", "prediction")}
    units = ["Haus", "ü", "a,", "日本", "_", "</s>", "Ġx"] if level == "word" else list("aü日本好,Ġ_")
    for _ in range(n):
        times = st.integers(0, 10**8).map(lambda microseconds: microseconds / 1000)
        delays = sorted(draw(st.lists(times, max_size=6)))
        tokens = draw(st.lists(st.sampled_from(units), min_size=len(delays), max_size=len(delays)))
        gaps = [draw(st.sampled_from([" ", "  ", "\t"] if level == "word" else ["", " "])) for _ in tokens]
        rows["delays"].append(delays)
        rows["elapsed"].append(
            np.maximum.accumulate([round(g + draw(st.sampled_from([0, 5, 5, 9.5])), 3) for g in delays]).tolist()
        )
        rows["source_length"].append(draw(times))
        rows["prediction"].append("".join(map(str.__add__, gaps, tokens)).strip())
    names = draw(st.sampled_from([list(range(n)), [f"s{i}" for i in range(n)]]))
    documents = draw(st.sampled_from([None, [f"talk {i}.wav" for i in range(n)]]))
    if draw(st.booleans()):
        rows.pop("elapsed")
    delays = rows.pop("delays")
    return Run.from_delays(delays, **rows, id=names, document=documents, unit="ms", level=level)


def same_but_for(lost: list[str], run: Run, back: Run) -> None:
    gone = {what.split(" ")[0] for what in lost}
    found = {"first_times": first_shown(back).tolist(), **back.to_dict()}
    for column, values in run.to_dict().items():
        if column not in gone:
            assert found[column] == values, column


@given(run=runs())
def test_what_is_written_can_be_read(run, tmp_path_factory):
    back, lost = again(run, tmp_path_factory.mktemp("log"), level=run.level)
    assert {what.split(" ")[0] for what in lost} <= {"elapsed", "source_length", "level"}
    same_but_for(lost, run, back)
    if len(run.delays.values) and "level" not in " ".join(lost):
        assert read(back.origin.path).level == run.level


@given(case=streams(["▁a", "b", "▁日", "▁", "ü"]))
def test_what_was_read_can_be_written(case, tmp_path_factory):
    named = {record["id"]: meta(f"{record['id']}.wav", record["id"]) for record in case[1]}
    run = parsed(tmp_path_factory, [meta("m", "marked"), chunk(1, ("▁x",), id="marked"), *named.values(), *case[1]])
    back, lost = again(run, tmp_path_factory.mktemp("log"), level=run.level)
    assert set(lost) <= {"first_times", "erased", "revisions", f"level (read it with --level {run.level})"}
    same_but_for(lost, run, back)
