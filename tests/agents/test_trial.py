# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with a run in everyday use, and what is said then."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lagging
from lagging.agents import Settings, run
from lagging.agents.loading import Spec
from lagging.agents.runner.manifest import Manifest
from lagging.agents.sources import chunk_size, open_source
from lagging.cli import main
from lagging.data.files import write_whole
from lagging.errors import LaggingError, UsageError
from lagging.scoring.log import score_files

LINE = {"index": 0, "prediction": "A B", "delays": [1, 2], "source_length": 2, "reference": "A B"}


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    """A command in this process: its exit code, and what it says on standard error."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    code = ended.value.code
    assert isinstance(code, int)
    return code, capsys.readouterr().err


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What is said of a command that is refused."""
    code, text = said(capsys, *arguments)
    assert code == 2, text
    assert "Traceback" not in text
    return text


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A folder with a test set."""
    (tmp_path / "source.txt").write_text("a b c\nd e\n")
    (tmp_path / "reference.txt").write_text("A B C\nD E\n")
    return tmp_path


def begun(folder: Path, manifest: Any, count: int = 2) -> Path:
    """A folder with so many lines of a log, and a run.json."""
    folder.mkdir()
    lines = [json.dumps(LINE | {"index": index}) + "\n" for index in range(count)]
    (folder / "instances.log").write_text("".join(lines))
    (folder / "run.json").write_text(manifest if isinstance(manifest, str) else json.dumps(manifest, indent=2))
    return folder


# ---- what lies beside a log -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ({"summary": None, "sessions": [{"ended": None}]}, "it has not ended"),
        ({"summary": None}, "it has not ended"),
        ({"summary": {"done": 2}, "sessions": [{"by": "interrupted"}]}, "it was interrupted"),
        ({"summary": {"done": 2}, "sessions": [{"by": "stopped"}]}, "it stopped at a failure"),
        ({"summary": {"done": 2}, "sessions": [{"by": "finished"}]}, "no more were asked for"),
    ],
)
def test_a_run_that_is_not_finished_says_so(tmp_path: Path, rest: dict[str, Any], why: str) -> None:
    folder = begun(tmp_path / "out", {"source": {"sentences": 9}} | rest)
    for notes in (
        lagging.read(folder).notes,
        lagging.validate(folder).notes,
        score_files(folder, "AL", jobs=1).notes,
        score_files(folder, "AL", jobs=2).notes,
    ):
        assert [note.text for note in notes if note.kind == "unfinished run"] == [
            f"2 of 9 sentences: run.json says that {why}"
        ]


@pytest.mark.parametrize("manifest", [
    {"source": {"sentences": 2}, "summary": None}, {"source": {"sentences": 9}, "summary": {"done": 9}},
    {"source": None}, {"source": {"sentences": "many"}}, [1], 3, "", "{", "[" * 100_000,
])  # fmt: skip
def test_of_a_run_json_that_tells_nothing_nothing_is_said(tmp_path: Path, manifest: Any) -> None:
    assert not lagging.validate(begun(tmp_path / "out", manifest)).notes


@pytest.mark.parametrize("name", ["run.json", "scores.json"])
def test_what_lies_beside_a_log_is_no_log(tmp_path: Path, name: str) -> None:
    folder = begun(tmp_path / "out", {"source": {}})
    (folder / "scores.json").write_text('{\n  "schema": 1\n}\n')
    with pytest.raises(UsageError, match=f"{name} holds .*, not a log\n  fix: give the folder: .*out"):
        lagging.read(folder / name)
    (folder / "instances.log").replace(folder / name)  # a log may be called that
    assert len(lagging.read(folder / name)) == 2


# ---- what is asked for ----------------------------------------------------------------------------------------------

OURS = "class Copy:\n    def policy(self, state):\n        return None\n"
THEIRS = (
    "from simuleval.agents import TextToTextAgent\n"
    "class Theirs(TextToTextAgent):\n    def policy(self, states=None):\n        return None\n"
)


@pytest.mark.usefixtures("simuleval")
def test_an_agent_of_simuleval_without_its_option_and_the_other_way_round(tmp_path: Path) -> None:
    (tmp_path / "ours.py").write_text(OURS)
    (tmp_path / "theirs.py").write_text(THEIRS)
    (tmp_path / "other.py").write_text("import no_such_module_at_all\n")
    with pytest.raises(UsageError, match="leave out --simuleval"):
        Spec("simuleval", str(tmp_path / "ours.py")).make()
    with pytest.raises(UsageError, match="Theirs is an agent for SimulEval\n  fix: give --simuleval"):
        Spec("file", str(tmp_path / "theirs.py")).make()
    missing = "raise ModuleNotFoundError(\"No module named 'simuleval'\", name='simuleval.agents')\n"
    (tmp_path / "theirs.py").write_text(missing)  # which is what Python does where there is none
    with pytest.raises(UsageError, match=r"No module named 'simuleval'\n  fix: give --simuleval"):
        Spec("file", str(tmp_path / "theirs.py")).make()
    with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
        Spec("file", str(tmp_path / "other.py")).make()


def test_how_an_agent_is_reached_is_not_who_it_is() -> None:
    here = Spec("remote", "ws://127.0.0.1:1", (("reconnect", "5"), ("token_file", "a"), ("timeout", "7")))
    assert here.fingerprint()["options"] == {}
    counted = Spec("remote", "ws://127.0.0.1:1", (("count_network", "true"),))
    assert counted.fingerprint()["options"] == {"count_network": "true"}
    assert Spec("file", __file__, (("timeout", "7"),)).fingerprint()["options"] == {"timeout": "7"}


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are UTF-8 elsewhere")
def test_names_of_files_that_are_no_utf_8(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = Path(os.fsdecode(os.fsencode(texts) + b"/\xff"))
    place.mkdir()
    (texts / "source.txt").rename(place / "source.txt")
    asked = ["run", "wait-1", "--source", place / "source.txt", "--reference", texts / "reference.txt"]
    for _ in range(2):
        assert said(capsys, *asked, "-o", place / "out")[0] == 0
    assert Manifest.read(place / "out").data["source"]["path"] == str(place / "source.txt")  # type: ignore[union-attr]
    assert "cannot read" in told(capsys, *asked[:3], place / "none", "-o", place / "new")
    assert "no policy is called" in told(capsys, "run", "wait\udcff", *asked[2:], "-o", place / "new")


def test_so_many_workers_or_so_large_a_batch(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["run", "wait-1", "--source", texts / "source.txt", "--reference", texts / "reference.txt", "-q"]
    assert said(capsys, *asked, "-o", texts / "out", "--workers", 10**20)[0] == 0
    assert json.loads((texts / "out" / "run.json").read_text())["sessions"][0]["workers"] == 2
    assert "batches need an agent" in told(capsys, *asked, "-o", texts / "new", "--batch", 10**20)
    assert "--batch is 1 or more, but got -5" in told(capsys, *asked, "-o", texts / "new", "--batch", -5)


def test_options_are_named_by_what_is_wrong_with_them(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["run", "wait-1", "--source", texts / "source.txt"]
    assert "-o was given without a folder" in told(capsys, *asked, "-o", "")
    remote = ["run", "--simuleval", "--remote", "ws://127.0.0.1:1", *asked[2:], "-o", texts / "out"]
    assert "give --simuleval to lagging serve" in told(capsys, *remote)
    for settings, name in (
        (Settings(chunk=0.5), "--chunk"),
        (Settings(pace=2), "--pace"),
        (Settings(source_level="spm"), "spm_model="),
        (Settings(spm_model="some.model"), "source_level='spm'"),
    ):
        with pytest.raises(UsageError, match=name):
            run(lambda state: None, ["a"], settings=settings)
    with pytest.raises(UsageError, match="--chunk: speech"):
        chunk_size("speech", 0)


def test_sound_files_that_are_missing(tmp_path: Path) -> None:
    pytest.importorskip("soundfile").write(tmp_path / "a.wav", np.zeros(160, np.float32), 16_000)
    (tmp_path / "list.txt").write_text("a.wav\nb.wav\n")
    with pytest.raises(UsageError) as caught:
        open_source(tmp_path / "list.txt", "speech")
    assert f"list.txt:2: no such file: b.wav, nor {tmp_path / 'b.wav'}" in str(caught.value)
    (tmp_path / "list.txt").write_text("see you soon\n" * 20 + "x" * 5000 + "\n")
    with pytest.raises(UsageError, match="a list of sound files, one path a line") as caught:
        open_source(tmp_path / "list.txt", "speech")
    assert str(caught.value).count("no such file") == 1


def test_sound_files_for_an_agent_that_reads(tmp_path: Path) -> None:
    (tmp_path / "a.wav").touch()
    (tmp_path / "list.txt").write_text(f"{tmp_path / 'a.wav'}\n" * 2)
    with pytest.raises(UsageError, match='the agent declares source = "text"'):
        open_source(tmp_path / "list.txt", "text")
    (tmp_path / "list.txt").write_text(f"{tmp_path / 'a.wav'}\nb.wav\n")
    assert len(open_source(tmp_path / "list.txt", "text")) == 2


# ---- what is left behind --------------------------------------------------------------------------------------------


def test_a_command_that_is_refused_leaves_nothing_behind(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (texts / "wrong.py").write_text("import no_such_module\n")
    (texts / "empty").mkdir()
    for folder in ("new", "further/away", "empty"):
        code, text = said(capsys, "run", texts / "wrong.py", "--source", texts / "source.txt", "-o", texts / folder)
        assert code == 1
        assert "no_such_module" in text
    assert sorted(path.name for path in texts.rglob("*") if "__pycache__" not in path.parts) == [
        "empty", "reference.txt", "source.txt", "wrong.py"
    ]  # fmt: skip


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is full")
def test_a_full_disk_is_no_mistake_in_a_command() -> None:
    fix = "No space left on device\n  fix: make room, then give the same command again."
    with pytest.raises(LaggingError, match=fix) as caught, write_whole("/dev/full") as file:
        file.write("x")
    assert not isinstance(caught.value, UsageError)


@pytest.mark.parametrize("name", ["instances.log", "run.json"])
def test_a_run_is_not_written_over(texts: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    folder = begun(texts / "out", {"schema": 1})
    (texts / "other.log").write_text(json.dumps(LINE) + "\n")
    before = (folder / name).read_bytes()
    files = "--source", texts / "source.txt", "--target", texts / "reference.txt"
    for asked in (
        ("convert", texts / "other.log"),
        ("convert", folder),
        ("simulate", "wait-1", *files),
        ("resegment", texts / "other.log", "--source", texts / "source.txt", "--reference", texts / "reference.txt"),
        ("score", texts / "other.log"),
    ):
        assert "belongs to a run of an agent" in told(capsys, *asked, "-o", folder / name)
    assert (folder / name).read_bytes() == before
    (folder / "run.json").unlink()
    assert said(capsys, "simulate", "wait-1", *files, "-o", folder / "instances.log")[0] == 0


def test_why_a_reference_that_is_there_is_not_counted() -> None:
    def notes(level: str) -> list[str]:
        made = lagging.Run.from_delays([[1, 2]], source_length=[2], reference=["A B"], level=level)
        return [note.text for note in lagging.score(made, ["LAAL"]).notes if note.kind == "no reference"]

    assert notes("word") == []
    assert len(notes("token")) == 1
    assert "does not give the reference length in its own tokens" in notes("token")[0]
