# SPDX-License-Identifier: Apache-2.0
"""Runs from their beginning to their scores: in a program, in processes, text and speech, alone and in batches."""

from __future__ import annotations

import gzip
import json
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import lagging
import oracle
from lagging.agents import Job, Limits, Progress, Revise, Settings, Spec, State, Write, run, run_job
from lagging.agents.failures import failure_from
from lagging.errors import UsageError
from running import hashes, lines, manifest, ran

soundfile = pytest.importorskip("soundfile")

TEXTS = ["see you soon", "no", "", "one two three four five", "größer als 犬"]


class Copy:
    """Wait-2: writes what it has read, in capitals, two words later."""

    def policy(self, state: State) -> str | None:
        place = len(state.target)
        due = state.finished or len(state.source) - place >= 2
        return state.source[place].upper() if due and place < len(state.source) else None


class CopyBatch:
    def policies(self, states: Sequence[State]) -> list[str | None]:
        return [Copy().policy(state) for state in states]


class Pieces:
    """Writes given pieces, one for every word that was read, the rest at the end."""

    def __init__(self, pieces: list[str]) -> None:
        self.pieces = pieces

    def policy(self, state: State) -> list[str] | None:
        place = len(state.target)
        if place >= len(self.pieces):
            return None
        if state.finished:
            return self.pieces[place:]
        return self.pieces[place : place + 1] if place < len(state.source) else None


class Retranslate:
    """Says everything anew whenever it hears a word, the newest word first."""

    def policy(self, state: State) -> Revise:
        return Revise(list(reversed(state.source)))


class Listen:
    """Two words for every chunk of speech."""

    source = "speech"
    chunkwise = True

    def policy(self, state: State) -> Write:
        return Write(f"{len(state.source)} {'end' if state.finished else 'more'}", finished=state.finished)


# ---- here and now ---------------------------------------------------------------------------------------------------


def test_a_text_run_in_a_program() -> None:
    made = run(Copy(), TEXTS, [text.upper() for text in TEXTS], name="copy")
    assert made.name == "copy"
    assert made.unit == "token"
    assert made.prediction.tolist() == [text.upper() for text in TEXTS]
    assert made.delays.tolist() == [[2, 3, 3], [1], [], [2, 3, 4, 5, 5], [2, 3, 3]]
    assert made.source_length.tolist() == [3, 1, 0, 5, 3]
    assert made.id.tolist() == [0, 1, 2, 3, 4]
    assert made.steps is not None
    assert made.arrivals is not None
    assert made.arrivals.pick(made.steps).tolist() == made.delays.tolist()
    assert lagging.score(made, ["DAL"])["DAL"].segments[0] == oracle.dal([2, 3, 3], 3)


def test_files_and_lists_give_the_same(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("\n".join(TEXTS) + "\n", "utf-8")
    one, two = run(Copy(), TEXTS, TEXTS), run(Copy(), tmp_path / "source", str(tmp_path / "source"))
    assert one.delays.tolist() == two.delays.tolist()
    assert one.prediction.tolist() == two.prediction.tolist()
    assert one.reference.tolist() == two.reference.tolist()


@pytest.mark.parametrize("batch", [1, 2, 3, 8])
def test_batches_of_any_size_give_the_same(batch: int) -> None:
    made = run(CopyBatch(), TEXTS, settings=Settings(batch=batch))
    assert made.prediction.tolist() == [text.upper() for text in TEXTS]
    assert made.delays.tolist() == run(Copy(), TEXTS).delays.tolist()


@pytest.mark.parametrize(
    ("pieces", "settings", "text", "delays"),
    [
        (["▁wi", "th", "out", "▁end"], Settings(joined_by="spm"), "without end", [3, 4]),
        (["▁wi", "th", "out", "▁end"], Settings(joined_by="spm", level="token"), "without end", [1, 2, 3, 4]),
        (["▁no", "▁go"], Settings(joined_by="spm", level="char"), "no go", [1, 1, 2, 2]),
        (["wi@@", "th@@", "out", "end"], Settings(joined_by="bpe"), "without end", [3, 4]),
        (["Ġno", "Ġg", "o"], Settings(joined_by="bytes"), "no go", [1, 3]),
        (["a", "b", " c"], Settings(joined_by="none"), "ab c", [2, 3]),
        (["犬", "が", "いる"], Settings(joined_by="none", level="char"), "犬がいる", [1, 2, 3, 3]),
        (["one", "two three"], Settings(), "one two three", [1, 2, 2]),
    ],
)
def test_pieces_become_a_text_and_each_token_is_as_late_as_its_last_piece(
    pieces: list[str], settings: Settings, text: str, delays: list[int]
) -> None:
    made = run(Pieces(pieces), ["a b c d"], settings=settings)
    assert made.prediction.tolist() == [text]
    assert made.delays.tolist() == [delays]
    assert made.notes == run(Copy(), ["a"]).notes  # nothing failed


def test_source_by_characters_and_in_chunks() -> None:
    heard: list[list[str]] = []

    def listen(state: State) -> str | None:
        heard.append(list(state.source))
        return "all" if state.finished and not state.target else None

    made = run(listen, ["ab cde"], settings=Settings(source_level="char", chunk=2))
    assert made.source_length.tolist() == [5]
    assert heard[:3] == [["a", "b"], ["a", "b", "c", "d"], ["a", "b", "c", "d", "e"]]
    assert made.delays.tolist() == [[5]]


def test_re_translation_counts_what_was_erased() -> None:
    made = run(Retranslate(), ["a b c"])
    assert made.prediction.tolist() == ["c b a"]
    assert made.delays.tolist() == [[3, 3, 3]]
    assert made.erased is not None
    assert made.erased.tolist() == [1 + 2]


@pytest.mark.parametrize("change", [list.clear, lambda words: words.append("more"), list.reverse])
def test_an_agent_that_changes_what_it_is_shown_still_comes_to_its_end(change: Any) -> None:
    def agent(state: State) -> str | None:
        change(state.source)
        return "word" if state.finished and not state.target else None

    made = run(agent, ["a b c d"])
    assert made.delays.tolist() == [[4]]
    assert made.source_length.tolist() == [4]


def test_what_fails_is_in_the_notes_and_the_rest_counts() -> None:
    def agent(state: State) -> str | None:
        if state.source[:1] == ["no"]:
            raise ValueError("no")
        return Copy().policy(state)

    made = run(agent, TEXTS)
    assert [note.segments for note in made.notes if note.kind == "failed"] == [(1,)]
    assert made.delays.tolist()[1] == []
    assert made.delays.tolist()[3] == [2, 3, 4, 5, 5]


def test_of_what_an_agent_raises_no_more_is_kept_than_somebody_reads() -> None:
    failure = failure_from(ValueError("first" + "x" * 1_000_000 + "last"))
    assert failure.detail.startswith("ValueError: first")
    assert failure.detail.endswith("last")
    assert len(failure.detail) + len(failure.trace) < 50_000


def test_ctrl_c_in_a_program_is_the_users_and_not_the_agents() -> None:
    def agent(state: State) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(agent, TEXTS)


@pytest.mark.parametrize(
    ("source", "settings", "said"),
    [
        ([], Settings(), "nothing to translate"),
        (["a"], Settings(chunk=0), "1 or more tokens"),
        (["a"], Settings(chunk=1.5), "1 or more tokens"),
        (["a"], Settings(chunk=math.nan), "1 or more tokens"),
        (["a"], Settings(source_level="scent"), "word, char, spm"),
        (["a"], Settings(source_level="spm"), "fix: give spm_model=FILE"),
        (["a"], Settings(joined_by="glue"), "joined by one of"),
        (["a"], Settings(level="page"), "counted by one of"),
        (["a"], Settings(batch=2), "batches need an agent"),
        (["a"], Settings(realtime=True), "needs a pace"),
        (["a"], Settings(pace=3), "--pace is a number above 0"),
    ],
)
def test_settings_that_make_no_sense_are_told(source: list[str], settings: Settings, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        run(Copy(), source, settings=settings)


def test_a_source_that_is_compressed_or_broken(tmp_path: Path) -> None:
    file = tmp_path / "source.gz"
    whole = gzip.compress("\n".join(TEXTS).encode())
    file.write_bytes(whole)
    assert run(Copy(), file).delays.tolist() == run(Copy(), TEXTS).delays.tolist()
    for broken in (whole[:-9], whole[:12] + bytes(9) + whole[21:]):
        file.write_bytes(broken)
        with pytest.raises(UsageError, match=f"cannot read {re.escape(str(file))}: "):
            run(Copy(), file)


def test_an_agent_is_not_closed_by_who_did_not_make_it() -> None:
    class Closing(Copy):
        closed = False

        def close(self) -> None:
            self.closed = True

    agent = Closing()
    run(agent, TEXTS)
    assert not agent.closed


def test_no_limit_is_a_limit() -> None:
    made = run(Copy(), TEXTS, settings=Settings(limits=Limits(step=math.inf, sentence=math.inf)))
    assert made.delays.tolist() == run(Copy(), TEXTS).delays.tolist()


# ---- speech ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def wavs(tmp_path: Path) -> list[str]:
    """Recordings of 1250, 400 and 0 ms."""
    made = []
    for number, (samples, rate) in enumerate([(20_000, 16_000), (3_200, 8_000), (0, 16_000)]):
        path = tmp_path / f"{number}.wav"
        soundfile.write(path, np.sin(np.arange(samples) / 9).astype(np.float32), rate)
        made.append(str(path))
    (tmp_path / "wavs.txt").write_text("".join(f"{number}.wav\n" for number in range(3)))
    return made


def test_a_speech_run_in_a_program(wavs: list[str]) -> None:
    made = run(Listen(), wavs)
    assert made.unit == "ms"
    assert made.prediction.tolist() == ["8000 more 16000 more 20000 end", "3200 end", "0 end"]
    assert made.delays.tolist() == [[500, 500, 1000, 1000, 1250, 1250], [400, 400], [0, 0]]
    assert made.source_length.tolist() == [1250, 400, 0]
    assert made.elapsed is not None
    assert all(e >= g for e, g in zip(made.elapsed.values, made.delays.values, strict=True))


def test_the_queue_clock_of_a_speech_run_is_exact(wavs: list[str]) -> None:
    made = run(Listen(), wavs[:2], settings=Settings(chunk=150))
    assert made.arrivals is not None
    assert made.compute is not None
    assert made.steps is not None
    times = []
    for arrivals, compute, steps in zip(*map(as_lists, (made.arrivals, made.compute, made.steps)), strict=True):
        ends = oracle.finishes(arrivals, compute)
        times.append([ends[int(step)] for step in steps])
    scores = lagging.score(made, ["DAL(clock=queue)", "AL(clock=queue)"])
    for place, (ends, length) in enumerate(zip(times, made.source_length, strict=True)):
        assert scores["DAL(clock=queue)"].segments[place] == pytest.approx(float(oracle.dal(ends, length)), rel=1e-12)
        assert scores["AL(clock=queue)"].segments[place] == pytest.approx(float(oracle.al(ends, length)), rel=1e-12)


def as_lists(column: Any) -> list[list[float]]:
    rows: list[list[float]] = column.tolist()
    return rows


def test_only_the_time_inside_the_agent_counts(wavs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 10**15, 7_000_000))  # every look at the clock is 7 ms after the one before
    monkeypatch.setattr("time.perf_counter_ns", lambda: next(now))
    made = run(Listen(), wavs[:1])
    assert made.compute is not None
    assert made.compute.tolist() == [[7.0, 7.0, 7.0]]
    assert lagging.agents.run(Copy(), ["a b"]).compute.tolist() == [[7.0] * 4]  # type: ignore[union-attr]


class Speak:
    source = target = "speech"
    chunkwise = True
    sample_rate = 8_000

    def policy(self, state: State) -> Any:
        return Write(np.full(800, 0.5, np.float32), finished=state.finished)


def test_output_speech_needs_a_folder(wavs: list[str]) -> None:
    with pytest.raises(UsageError, match="needs a folder"):
        run(Speak(), wavs)


# ---- in processes ---------------------------------------------------------------------------------------------------

FILE = Path(__file__)


def job(folder: Path, name: str, source: str = "source.txt", reference: str | None = None, **settings: Any) -> Job:
    settings.setdefault("times", False)
    return Job(
        Spec("file", f"{folder}/agents.py:{name}"), str(folder / source),
        None if reference is None else str(folder / reference), str(folder / "out"), Settings(**settings),
    )  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, wavs: list[str]) -> Path:
    """A folder with the agents of this file, a test set of text, and one of speech."""
    text = FILE.read_text("utf-8")
    begin, end = text.index("class Copy:"), text.index("# ---- here and now")
    head = "import numpy as np\nfrom lagging.agents import Revise, State, Write\nfrom typing import Any, Sequence\n"
    speak = text[text.index("class Speak:") : text.index("def test_output_speech")]
    (tmp_path / "agents.py").write_text(head + text[begin:end] + speak, "utf-8")
    (tmp_path / "source.txt").write_text("\n".join(TEXTS) + "\n", "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "source", "settings"),
    [
        ("Copy", "source.txt", {}),
        ("CopyBatch", "source.txt", {"batch": 2}),
        ("Retranslate", "source.txt", {}),
        ("Listen", "wavs.txt", {"chunk": 100}),
    ],
)
def test_workers_give_the_bytes_of_one_and_what_a_program_gets(
    place: Path, name: str, source: str, settings: dict[str, Any]
) -> None:
    logs = []
    for workers in (1, 2):
        result = run_job(
            job(place, name, source, "source.txt" if name == "Copy" else None, **settings), workers=workers
        )
        assert result.finished
        assert result.failed == {}
        logs.append(result.log.read_bytes())
        result.log.parent.rename(place / f"out-{workers}")
    assert logs[0] == logs[1]
    read = lagging.read(place / "out-1")
    files = [str(place / f"{number}.wav") for number in range(3)]
    here = run(globals()[name](), files if source == "wavs.txt" else place / source, settings=Settings(**settings))
    assert read.delays.tolist() == here.delays.tolist()
    assert read.prediction.tolist() == here.prediction.tolist()
    assert read.unit == here.unit
    for column in ("source_length", "arrivals", "steps", "id"):
        assert getattr(read, column).tolist() == getattr(here, column).tolist(), column
    if name == "Retranslate":
        assert read.erased is not None
        assert here.erased is not None
        assert read.erased.tolist() == here.erased.tolist()


def test_a_log_reads_back_with_its_times(place: Path) -> None:
    run_job(job(place, "Listen", "wavs.txt", times=True))
    read, told = lagging.read(place / "out"), lines(place / "out")
    for column in ("delays", "elapsed", "arrivals", "compute", "steps"):
        assert getattr(read, column).tolist() == [line[column] for line in told], column
    for line in told:
        ends = oracle.finishes(line["arrivals"], line["compute"])
        assert line["finishes"] == pytest.approx([float(end) for end in ends], abs=1e-3)
        assert line["starts"] == pytest.approx([f - c for f, c in zip(ends, line["compute"], strict=True)], abs=1e-3)
        spent = np.cumsum(line["compute"])
        assert line["elapsed"] == pytest.approx([line["arrivals"][s] + spent[s] for s in line["steps"]], abs=1e-3)


def test_output_speech(place: Path) -> None:
    result = run_job(job(place, "Speak", "wavs.txt", times=True))
    assert result.failed == {}
    for line, pieces in zip(lines(place / "out"), (3, 1, 1), strict=True):
        samples, rate = soundfile.read(line["prediction"])
        assert rate == 8_000
        assert line["durations"] == [100.0] * pieces
        assert np.count_nonzero(samples) == 800 * pieces
    assert lagging.read(place / "out").durations is not None


def test_real_time(place: Path) -> None:
    run_job(job(place, "Listen", "wavs.txt", realtime=True, times=True, chunk=200))
    for line in lines(place / "out"):
        assert len(line["arrivals"]) == len(line["starts"]) == len(line["finishes"])
        for arrival, start, finish in zip(line["arrivals"], line["starts"], line["finishes"], strict=True):
            assert finish >= start >= arrival
        assert line["elapsed"] == [line["finishes"][step] for step in line["steps"]]
    assert lines(place / "out")[0]["arrivals"][-1] == 1250


def test_real_time_of_text(place: Path) -> None:
    run_job(job(place, "Copy", realtime=True, pace=50, times=True))
    assert [line["delays"] for line in lines(place / "out")] == run(Copy(), TEXTS).delays.tolist()
    for line in lines(place / "out"):
        assert all(start >= 20 * read for read, start in zip(line["arrivals"], line["starts"], strict=True))
        assert all(end >= start for start, end in zip(line["starts"], line["finishes"], strict=True))


def test_recordings_are_found_though_the_agent_goes_elsewhere(place: Path) -> None:
    agents = (place / "agents.py").read_text("utf-8")
    (place / "agents.py").write_text("import os\nos.chdir('/')\n" + agents, "utf-8")
    done = ran("agents.py:Listen", "wavs.txt", "out", "--no-scores", cwd=place)
    assert done.returncode == 0, done.stderr
    assert [line["source"][0] for line in lines(place / "out")] == ["0.wav", "1.wav", "2.wav"]


# ---- what a run leaves behind ---------------------------------------------------------------------------------------


def test_what_is_in_the_folder(place: Path) -> None:
    done = ran(f"{place}/agents.py:Copy", place / "source.txt", place / "out", "--reference", place / "source.txt",
               "-m", "AL,DAL", "-f", "json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert hashes(place / "out").keys() == {"instances.log", "run.json", "scores.json", "config.yaml"}
    assert yaml.safe_load((place / "out" / "config.yaml").read_text()) == {"source_type": "text", "target_type": "text"}
    scores = json.loads((place / "out" / "scores.json").read_text())
    assert scores == json.loads(done.stdout)
    told = manifest(place / "out")
    assert told["agent"]["name"] == "Copy"
    assert told["source"]["sentences"] == len(TEXTS)
    assert told["summary"] == {"sentences": len(TEXTS), "done": len(TEXTS), "failed": 0, "failed_by_kind": {}}
    assert told["arguments"][0] == "run"
    assert told["arguments"][-1] == "json"
    assert [text.partition("|")[0] for text in told["signatures"]] == ["AL", "DAL"]
    assert told["versions"]["python"]
    assert os.uname().nodename not in json.dumps(told["machine"])
    (session,) = told["sessions"]
    assert session["by"] == "finished"
    keys = list(lines(place / "out")[0])
    simuleval = [
        "index",
        "prediction",
        "delays",
        "elapsed",
        "prediction_length",
        "reference",
        "source",
        "source_length",
    ]
    assert keys[: len(simuleval)] == simuleval


def test_progress_tells_how_far_it_is(place: Path) -> None:
    seen: list[tuple[int, int]] = []
    said: list[str] = []

    def progress(far: Progress) -> None:
        seen.append((far.done, far.total))
        said.append(far.describe())

    run_job(job(place, "Copy"), progress=progress)
    assert seen == sorted(seen)
    assert seen[-1] == (len(TEXTS), len(TEXTS))
    assert said[-1].startswith(f"{len(TEXTS)} of {len(TEXTS)} sentences, DAL ")


def test_progress_reads_lines_of_any_length(tmp_path: Path) -> None:
    from lagging.agents.runner.journal import Contents

    path = tmp_path / "instances.log"
    path.touch()
    far = Progress(path, 3, Contents())
    line = json.dumps({"index": 0, "prediction": "w" * 6_000_000, "delays": [1], "source_length": 1}).encode() + b"\n"
    path.write_bytes(line + line[: len(line) // 2])
    far.update()
    assert far.done == 1
    path.write_bytes(line + line)
    far.update()
    far.update()
    assert far.done == 2
    assert far.dal == 1.0
